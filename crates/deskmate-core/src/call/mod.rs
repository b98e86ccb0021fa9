//! What every capability shares: who acts, the context of a call, the declaration of an operation, and the one path
//! from a call to its answer.

mod actor;
mod cx;
mod decode;
mod errand;
mod idempotency;
mod op;
mod page;
mod pipeline;
mod registry;

pub use actor::{Access, Actor, ActorKind, Credential, Presence, Role, Signed, Surface};
pub use cx::Cx;
pub use decode::parse_strict;
pub(crate) use decode::{bytes_of, check_value};
pub use errand::{Errand, Fetched, Hands, NoHands, Tried};
pub(crate) use idempotency::Key;
pub use idempotency::prune_keys;
pub use op::{Effect, Hints, Need, Op, Outcome, RESERVED, Toolset, Wait, Without};
pub use page::{Page, PageIn};
pub use pipeline::{Answer, Away, Call, Desk, Mode};
pub use registry::{Registry, event_catalogue};
