//! Agents' own tools: before an agent's client runs one of them, its hook asks here, and the same policy, trust, inbox and
//! record hold as for everything else.
//!
//! - [`shell`]: what a command line would do; [`place`]: where that reaches; [`tool`]: a tool call as an act; [`veil`]: what is
//!   kept of its input.
//! - [`starter`]: the policy that holds where nobody mapped one.
//! - [`event`]: the operations, one for every event of a client; [`decide`]: whether a call may run; [`after`]: what came of
//!   it; [`news`]: what an agent is told at its next step.
//!
//! May use: the call, the record, requests, policy, the gateway and the bridge. Tables: `hook_call`, `hook_request`, `hook_told`.

mod after;
mod decide;
mod event;
mod news;
mod place;
mod rows;
pub mod shell;
mod starter;
mod tool;
mod veil;

use crate::call::{Op, Toolset};
use crate::record::Kind;

pub use after::{prune, sweep};
pub use event::{Decided, HookOut};
pub use starter::{HOOK_POLICY, STARTER};
pub(crate) use starter::{is_for, is_named_by, starter};

const PASSED: Kind = Kind { name: "hook.passed", says: "An agent's own tool call was allowed." };
const OBSERVED: Kind =
    Kind { name: "hook.observed", says: "An agent's own tool call was only observed: what would have been decided is told, and nothing was enforced." };
const ENDED: Kind = Kind { name: "hook.ended", says: "What came of an agent's own tool call." };
const SESSION: Kind = Kind { name: "hook.session", says: "An agent's client began a session with hooks." };
const TOLD: Kind = Kind { name: "hook.told", says: "An agent was told at its next step what waits for it." };

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[PASSED, OBSERVED, ENDED, SESSION, TOLD];

/// What can be done. They are a toolset of their own: an agent's credential reaches them, but no model is offered them as
/// tools unless somebody mounts them for a client's hooks.
pub(crate) fn operations() -> Vec<Op> {
    let hook = Toolset::Hook;
    // The same call is the same act, so it needs no key to be done once; and no error repeats what a tool is given.
    vec![
        Op::write(hook, "hook_event", event::event).idempotent().takes_secrets(&["tool_input"]).followed_when(event::waits, event::follow),
        Op::write(hook, "hook_permission", event::permission).idempotent().takes_secrets(&["input"]).followed_when(event::waits, event::follow),
    ]
}
