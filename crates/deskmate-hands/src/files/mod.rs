//! Files for agents: looking, changing, trash, undo. Everything happens beneath a [`Root`], whose folder is opened once;
//! from then on the kernel resolves every path relative to that handle and refuses to leave it, so that no name that was
//! checked can be swapped for another before it is used.
//!
//! - Paths are `/`-separated UTF-8 text relative to the root ([`path`]). A name that is not UTF-8 can't be spoken of: it is
//!   left out of listings and counted, and goes along when its folder is moved.
//! - What a root withholds (deny globs) does not exist for its users: the answer is `not_found`, whatever is on the disk.
//! - A symbolic link is followed for reading only, by a resolution that can't leave the root, and never for changing.
//! - A change is a [`Step`] that names the identity of what it acts on; [`apply`] checks it by handle, [`undo`] reverses
//!   it, and [`probe`] tells after a crash whether it happened.
//!
//! Linux 5.6 or newer is what this is made for; where `openat2` is missing, paths are walked one folder at a time, which
//! holds the same promise more slowly. All calls to the kernel that differ between systems are in `sys.rs`.

mod audit;
mod beneath;
mod change;
mod digest;
mod duplicates;
mod entries;
mod fault;
mod identity;
mod ignores;
mod index;
mod list;
mod organize;
pub mod path;
mod read;
mod root;
mod scan;
mod search;
mod sizes;
mod sys;
#[cfg(test)]
mod tests;
mod top;
mod tree;
mod walk;
mod watch;
mod withheld;

pub use audit::{AuditEnd, AuditLines, add_to_audit, audit_end, audit_lines, set_audit_aside};
pub use change::{
    Back, Blob, Done, Mounts, Probe, Step, TrashListing, Trashed, apply, carries_kept, list_trash, newest_trash, probe, resume, resume_undo, settle,
    sweep_trash, undo, was_at, with_folders_since,
};
pub use digest::digest_of;
pub use duplicates::{Duplicates, DuplicatesSpec, Same, SameSpec, duplicates, same};
pub use entries::Entries;
pub use fault::{Code, Fault};
pub use identity::{Digest, Entry, Identity, Kind};
pub use index::{ExtensionSize, Index, IndexSpec, index};
pub use list::{ListSpec, Listing, list};
pub use organize::{How, LeftOut, Move, Moves, OrganizeSpec, Organizer, Rule, extension};
pub use read::{Content, Part, READ_MAX, read};
pub use root::{Access, Root, RootSpec};
pub use scan::{ScanSpec, Scanned, Summary, scan};
pub use search::{Hit, Hits, Names, SearchSpec, search_content, search_names};
pub use sizes::{FolderSize, Sizes, SizesSpec, sizes};
pub use tree::{Tree, TreeSpec, tree};
pub use watch::{Progress, Watch};
