//! Other MCP servers behind the desk: every call of their tools is decided like any other act, and is on the record before it
//! is handed on.
//!
//! - [`mount`]: which servers there are, as settings in force name them; [`manage`]: changing that, and looking at them.
//! - [`tool`]: what they offer, and what people have seen of it; [`projection`]: the same, rebuilt from the record.
//! - [`call`]: a call, up to the decision; [`done`]: what comes after it. Who has hands speaks with the servers.
//! - [`read`]: what else is asked of them: resources, prompts, completions.
//! - [`taint`]: where what an agent has read came from.
//! - [`show`]: what callers and people see; [`outlook`]: what each tool would get; [`answer`]: setting that for one of them.
//!
//! Tables: `mount_met`, `mount_tool`, `gateway_call`, `taint`.

mod answer;
mod call;
mod done;
mod erase;
mod manage;
mod mount;
mod outlook;
mod projection;
mod read;
mod rows;
mod show;
pub mod taint;
mod tool;

use crate::call::{Access, Op, Role, Toolset};
use crate::record::Kind;

pub(crate) use answer::without_passing;
pub use call::{CallOut, FIND_OUT, deliver, forwarded, is_served, is_under_way, may_pass_on};
pub(crate) use call::{VERB as TOOL_CALL, origin};
pub(crate) use done::{CallOf, approved, call_of, job_ended, not_approved, withdraw};
pub use done::{Ended, Handed, abandon, begin, end, may_go_on, mount_of, prune, served, unseen};
pub(crate) use erase::erase;
pub use manage::{FoundMount, keep_what_was_set};
pub use mount::holds_a_secret;
pub use mount::{Intent, Mount, SECRET, Scan, all as mounts};
pub(crate) use mount::{lost as mounts_lost, must_not_be_written, problem as mounts_problem, tightens as mounts_tighten};
pub use projection::ToolProjection;
pub(crate) use read::read;
pub use read::{ReadKind, Reading, may_read};
pub use show::named;
pub(crate) use show::{Served, foresee, tools_like};
pub(crate) use tool::forget;
pub use tool::{Seen, seen};

/// The job that does a held call once it is approved.
pub const CALL_JOB: &str = "gateway.call";

const PASSED: Kind = Kind { name: "call.passed", says: "A call of a mounted tool may be handed on, exactly so, once." };
const HELD: Kind = Kind { name: "call.held", says: "A call of a mounted tool waits for a person." };
const DENIED: Kind = Kind { name: "call.denied", says: "A call of a mounted tool was not handed on." };
const ENDED: Kind = Kind { name: "call.ended", says: "What came of a call of a mounted tool." };
const DELIVERED: Kind = Kind { name: "call.delivered", says: "The caller fetched what came of a call that was held." };
const MISMATCHED: Kind =
    Kind { name: "call.mismatched", says: "A call named an approved proposal and was something else, or needs more than that; it was decided as new." };

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[
    PASSED,
    HELD,
    DENIED,
    ENDED,
    DELIVERED,
    MISMATCHED,
    read::READ,
    manage::LOOKED,
    tool::MET,
    tool::PINNED,
    tool::OFFERED,
    tool::SETTLED,
    tool::GONE,
    tool::ACCEPTED,
    tool::FORGOTTEN,
    taint::TAINTED,
    taint::CLEARED,
];

/// The statements whose cost must not grow with what the tables hold, each with the index that it has to go through: a
/// test reads their plans on both engines.
#[doc(hidden)]
pub const INDEXED: &[(&str, &str)] = &[
    (show::ALL, "gateway_call_by_age"),
    (show::OF_MOUNT, "gateway_call_by_mount"),
    (show::OF_ACTOR, "gateway_call_by_actor"),
    (show::OF_ACTOR_AND_MOUNT, "gateway_call_by_actor_and_mount"),
    (rows::WAITING, "gateway_call_waiting"),
    (done::HELD_OF, "gateway_call_waiting"),
    (done::UNDER_WAY, "gateway_call_under_way"),
    (done::OVER, "gateway_call_by_age"),
];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let (desk, gateway, owner) = (Toolset::Desk, Toolset::Gateway, Access::Present(Role::Owner));
    vec![
        Op::read(gateway, "list_tools", show::list_tools),
        Op::write(gateway, "call", call::call).destructive().open_world().untold_when(call::is_untold).followed(call::followed),
        Op::wait(gateway, "result", call::result),
        Op::read(gateway, "list_calls", show::list_calls),
        Op::read(desk, "mount_list", manage::list),
        Op::write(desk, "mount_add", manage::add).access(owner).idempotent(),
        Op::write(desk, "mount_remove", manage::remove).access(owner).destructive(),
        Op::write(desk, "mount_switch", manage::switch).access(owner).idempotent(),
        Op::look(desk, "mount_test", manage::wants_test, manage::test).access(Access::Present(Role::Member)).open_world().writes(),
        Op::look(desk, "mount_status", manage::wants_status, manage::status),
        Op::read(desk, "mount_tools", manage::tools),
        Op::read(desk, "mount_policy", outlook::policy),
        Op::write(desk, "mount_answer", answer::answer).access(owner).idempotent(),
        Op::write(desk, "mount_accept", manage::accept).access(owner),
        Op::read(desk, "taint_list", taint::list),
        Op::write(desk, "taint_clear", taint::clear).access(Access::Present(Role::Approver)).destructive(),
    ]
}
