//! Work on files: agents look around beneath roots, and what changes anything is a plan that people approve.
//!
//! - [`root`]: the folders that are open, as settings in force name them; [`open`]: changing that; [`trash`]: when things
//!   leave their trash by themselves; [`place`]: how callers name what is beneath; [`reach`]: what of it a client leaves itself.
//! - [`look`]: listing, reading and searching. Who has hands looks; see [`crate::call::Hands`].
//! - [`scan`]: looks at trees of any size, by a job, in pages.
//! - [`web`]: pages; [`past`]: what was done before.
//! - [`plan`]: what changes something, from the asking to the undoing.
//! - [`judge`]: what policy says to it; [`audit`]: the copy of what was done that lies in the root.

mod audit;
mod judge;
mod look;
mod open;
mod past;
mod place;
pub mod plan;
mod reach;
mod root;
pub mod scan;
mod trash;
mod web;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::call::{Access, Errand, Op, Role, Toolset};
use crate::record::Kind;

pub use audit::{AUDIT_JOB, AuditCheck, AuditFound, AuditNext, BadLine, audit_next, audited_roots, mended, schedule_audit};
pub(crate) use judge::{foresee, is_look};
pub use look::{
    Found, FoundEntries, FoundEntry, FoundMatch, FoundMatches, FoundText, FoundTrash, ListAsk, Look, Part, ReadAsk, SearchAsk, TrashAsk, TrashEntry, What, page,
};
pub(crate) use place::{is_root, whole_path, within};
pub(crate) use plan::ask::in_trash;
pub use reach::heeds_client_roots;
pub use root::{Root, RootAccess, all as roots};
pub(crate) use root::{problem as root_problem, tightens as roots_tighten};
pub use trash::{Expiring, TRASH_JOB, expire, expired, expiring, schedule_trash};
pub use web::FoundPage;

const EXPIRING: Kind = Kind { name: "trash.expiring", says: "Things that lay in the trash for long are about to be deleted." };
const EXPIRED: Kind = Kind { name: "trash.expired", says: "Things that lay in the trash for long were deleted." };
const MENDED: Kind = Kind { name: "workspace.audit.mended", says: "The audit file of a root did not say what the record says, and was mended." };
const LOOKED: Kind = Kind { name: "workspace.looked", says: "An agent looked at files beneath a root." };
const WEB_ASKED: Kind = Kind { name: "workspace.web.asked", says: "An agent asked for a page of the web." };

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[
    LOOKED,
    WEB_ASKED,
    MENDED,
    EXPIRING,
    EXPIRED,
    plan::ASKED,
    plan::MADE,
    plan::FAILED,
    plan::BEGUN,
    plan::INTENDED,
    plan::OUTCOMES,
    plan::ENDED,
    plan::PRUNED,
];

/// A look that comes in pages, and goes on as a job where it takes long.
fn paged<P>() -> Op
where
    P: look::Paged + DeserializeOwned + JsonSchema + 'static,
    P::Page: JsonSchema + 'static,
{
    Op::look(Toolset::Workspace, P::OPERATION, look::wants::<P>, look::tells::<P>).queued(look::queues::<P>).followed_if(look::goes_on, look::followed::<P>)
}

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let workspace = Toolset::Workspace;
    vec![
        Op::read(workspace, "list_roots", look::list_roots),
        Op::write(workspace, "open_root", open::open_root).access(Access::Present(Role::Owner)).idempotent(),
        Op::write(workspace, "close_root", open::close_root).access(Access::Present(Role::Owner)).destructive(),
        paged::<look::ListFiles>(),
        Op::look(workspace, "file_info", look::wants_info, look::file_info),
        Op::look(workspace, "read_file", look::wants_text, look::read_file),
        paged::<look::SearchFiles>(),
        paged::<look::ListTrash>(),
        Op::write(workspace, "scan_index", scan::scan_index).idempotent().followed(scan::followed::<scan::IndexFound>),
        Op::write(workspace, "tree", scan::tree).idempotent().followed(scan::followed::<scan::TreeFound>),
        Op::write(workspace, "sizes", scan::sizes).idempotent().followed(scan::followed::<scan::SizesFound>),
        Op::write(workspace, "duplicates", scan::duplicates).idempotent().followed(scan::followed::<scan::DuplicatesFound>),
        Op::wait(workspace, "wait_for_scan", scan::wait_for_scan),
        Op::look(workspace, "browse_web", web::wants_page, web::browse_web).open_world().told_first(),
        Op::read(workspace, "search_past_actions", past::search_past_actions),
        Op::write(workspace, "verify_audit_file", audit::verify_audit_file).access(Access::Person(Role::Member)).idempotent().followed(audit::followed),
        Op::write(workspace, "organize_plan", plan::ask::organize_plan).followed(plan::show::followed),
        Op::write(workspace, "change_plan", plan::ask::change_plan).followed(plan::show::followed),
        Op::write(workspace, "soft_delete", plan::ask::soft_delete).followed(plan::show::followed),
        Op::write(workspace, "restore", plan::ask::restore).followed(plan::show::followed),
        Op::write(workspace, "purge_trash", plan::ask::purge_trash).access(Access::Present(Role::Member)).followed(plan::show::followed),
        Op::write(workspace, "create_excel", plan::ask::create_excel).followed(plan::show::followed),
        Op::write(workspace, "create_word", plan::ask::create_word).followed(plan::show::followed),
        Op::write(workspace, "create_pdf", plan::ask::create_pdf).followed(plan::show::followed),
        Op::write(workspace, "execute_python", plan::python::execute_python)
            .after(|_: &plan::python::ExecutePython| Errand::Sandbox)
            .followed(plan::show::followed),
        Op::write(workspace, "undo_plan", plan::ask::undo_plan).followed(plan::show::followed),
        Op::write(workspace, "execute_plan", plan::execute::execute_plan)
            .destructive()
            .idempotent()
            .untold_when(plan::execute::is_untold)
            .followed(plan::show::followed),
        Op::read(workspace, "get_plan", plan::show::get_plan),
        Op::read(workspace, "read_diff", plan::show::read_diff),
        Op::read(workspace, "list_plans", plan::show::list_plans),
        Op::wait(workspace, "wait_for_plan", plan::show::wait_for_plan),
    ]
}
