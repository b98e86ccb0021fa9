//! Configuration is an act. The policy sections of `deskmate.yaml`, and whatever a person applies, are drafts: they are
//! compared with what is in force, what tightens applies at once, and what loosens waits for an owner.
//!
//! - [`items`]: drafts and what is in force, as sets of pieces, and the difference between two.
//! - [`compare`]: which difference tightens. What cannot be told for certain loosens.
//! - [`submit`]: what becomes of the file when the desk starts and when it is claimed.
//! - [`apply`]: what an owner who is there applies, and what becomes of a request that an owner accepted.
//!
//! Rows of `desk`: `policy_draft` (the digests of the file's pieces as they were last submitted), `policy_waiting` (the
//! pieces of a file that waits for the first owner), `policy_request` (the request that holds what waits).

mod apply;
mod compare;
mod items;
mod show;
mod submit;

pub use apply::{Applied, accept, apply};
pub use compare::{Classified, Direction, classify};
pub use items::{Change, Key, Set, difference, to_document, whole_difference};
pub use show::{line, lines};
pub use submit::{Submitted, claimed, submit};

pub(crate) use apply::{compile, refused};
pub(crate) use compare::with;
pub(crate) use submit::{CHANGED, propose};
