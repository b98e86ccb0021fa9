//! Jobs of programs that are paired with a person: the numbered kinds of work of the file coworker, done through the desk's
//! own queue by the operations of the toolset `workspace`, with the checks that the program's token would meet.
//!
//! - [`kinds`]: the kinds, and how their texts become the input of an operation.
//! - [`roots`]: what a program narrows its own job to.
//! - [`jobs`]: putting jobs into the queue, looking at them, and at the approval of what they planned. A program sees those of its own
//!   pairing.
//! - [`work`]: the steps that the worker takes, each in one transaction.
//!
//! A job holds the id of the credential, never a secret: a token that is revoked ends the work that waits with it.

mod jobs;
mod kinds;
mod roots;
mod work;

use crate::call::{Access, Op, Role, Toolset};

pub use kinds::{KINDS, Kind, input};
pub use work::{Work, begin, stop};

/// The kind of these jobs in the queue.
pub const JOB: &str = "program.call";
/// The scope of tokens that covers them.
const SCOPE: &str = "workspace";

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let person = Access::Person(Role::Viewer);
    let of_program = |op: Op| op.access(person).within(SCOPE);
    vec![
        // The same job again is the same job, and then there is nothing to tell.
        of_program(Op::write(Toolset::Desk, "program_job_submit", jobs::submit).idempotent()),
        of_program(Op::read(Toolset::Desk, "program_job_list", jobs::list)),
        of_program(Op::read(Toolset::Desk, "program_job_get", jobs::get)),
        of_program(Op::wait(Toolset::Desk, "program_job_wait", jobs::wait)),
        of_program(Op::read(Toolset::Desk, "program_job_result", jobs::result)),
        // Where nothing ends sooner there is nothing to tell.
        of_program(Op::write(Toolset::Desk, "program_approval", jobs::approval).idempotent()),
        of_program(Op::write(Toolset::Desk, "program_job_cancel", jobs::cancel).destructive().idempotent()),
    ]
}
