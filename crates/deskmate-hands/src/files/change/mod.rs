//! Changing files: a step says what is to be done and to which thing exactly, `apply` does it, `undo` reverses it, and
//! `probe` tells after a crash whether it was done.
//!
//! What holds for every step: the root must be open for writing; paths lead through no link, name nothing that is reserved
//! or withheld; the thing that is acted on is the one that was named when the step was planned, checked by handle right
//! before the effect and, where the kernel has no call that does both in one, once more after it, with the way back taken if
//! it was swapped in between; nothing that exists is ever replaced or removed without being kept.

mod across;
mod apply;
mod away;
mod back;
mod copy;
mod probe;
mod resume;
mod spot;
mod step;
mod trash;
mod undo;

pub use apply::apply;
pub use away::{Mounts, carries_kept};
pub use back::Back;
pub use probe::{Probe, probe, with_folders_since};
pub use resume::{resume, resume_undo};
pub use step::{Blob, Done, Step};
pub use trash::{TrashListing, Trashed, list_trash, newest_trash, sweep_trash, was_at};
pub use undo::{settle, undo};
