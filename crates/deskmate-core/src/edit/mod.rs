//! People's edits win: each mutable field of a shared record keeps who set it last, and what a person set an agent does
//! not overwrite. Its write becomes a request that shows both values, and is done when a person approves it.
//!
//! A capability that has such fields
//! 1. gives a write as a list of [`Change`]s to [`split`], which says what may be written now and what is held,
//! 2. writes what may be written, tells of it in an event with the fact `edited` ([`EDITED`]), and calls [`mark`],
//! 3. hands what is held to [`hold`], and answers the agent with it,
//! 4. has a line in [`accept`], which writes what a person approved.
//!
//! Who set a field can be rebuilt from the record: any event with the fact `edited` says that its actor set those fields
//! of its subject.
//!
//! May use: the call, the record and requests. Table: `field_edit`.

mod accept;
mod fields;
mod hold;
mod operations;
mod projection;

use crate::call::{Access, Op, Role, Toolset};
use crate::record::Kind;

pub(crate) use accept::check_shown;
pub use accept::{accept, stale};
pub use fields::{Change, FieldOut, Split, fields, forget, mark, set_by_people, split};
pub use hold::{Held, Target, hold};
pub use projection::EditProjection;

/// The fact that names the fields which an event's actor set.
pub const EDITED: &str = "edited";

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[hold::ASKED_AGAIN, operations::RELEASED];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    vec![
        Op::read(Toolset::Desk, "edit_list", operations::list),
        // It lets agents write again, so somebody has to be there.
        Op::write(Toolset::Desk, "edit_release", operations::release).access(Access::Present(Role::Member)),
    ]
}
