//! What the record and the settings of a desk show about an agent, control by control.
//!
//! - [`framework`]: controls as data files; the language of their checks is closed.
//! - [`look`]: finding events, a bounded number, through the record's indexes; [`state`]: what is set, and how things stand.
//! - [`check`]: asking the checks. What nothing shows counts neither for nor against, and a look that was cut short never makes
//!   anything met.
//! - [`report`]: what comes out; [`render`]: the same as HTML, CSV, OSCAL and a text for PDF; [`bundle`]: with proofs, for
//!   whoever verifies it without the desk.

mod bundle;
mod check;
mod framework;
mod look;
mod operations;
mod render;
mod report;
mod state;

use crate::call::{Access, Op, Role, Toolset};

pub use bundle::{EvidenceReport, is_bundle, verify_bundle};
pub use framework::{Check, Control, Framework, Library, That, Whose, built_in_texts};
pub use report::{Checked, ControlOut, Counts, EventRef, Report, Status, Verdict};

/// The statements whose cost must not grow with what the tables hold, each with the index that it has to go through: a test reads
/// their plans on both engines.
#[doc(hidden)]
pub const INDEXED: &[(&str, &str)] = &[(check::EARLIER, "event_by_subject"), (check::WRITTEN, "event_by_subject")];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let set = Toolset::Agents;
    vec![
        Op::read(set, "check_compliance", operations::check),
        Op::read(set, "list_frameworks", operations::list),
        Op::read(set, "compliance_report", operations::download).access(Access::Person(Role::Viewer)),
        Op::look(set, "compliance_pdf", operations::print, operations::printed).access(Access::Person(Role::Viewer)),
    ]
}
