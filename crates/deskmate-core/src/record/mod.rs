//! The record: an append-only log of events, sealed as an RFC 6962 Merkle tree with signed checkpoints.
//!
//! - An event's canonical body is the leaf. It holds the *facts* (ids, kinds, numbers), which stay for ever, and a
//!   salted commitment to the *payload*, which can be erased without breaking any proof.
//! - Events are staged by operations and sealed when their transaction commits (SQLite) or by the elected sealer
//!   (PostgreSQL). Nothing else writes these tables.
//! - Verification derives everything again from the stored rows and trusts no column.
//!
//! Tables: `event`, `event_payload`, `record_hash`, `checkpoint`, `event_staged`.

mod bundle;
mod entry;
mod erase;
mod key;
mod list;
mod proof;
mod prune;
mod read;
mod seal;
mod tree;
mod verified;
mod verify;

/// The kind of the job that verifies the record.
pub const VERIFY_JOB: &str = "record.verify";

pub use bundle::{BundleHeader, BundleLine, verify_bundle};
pub(crate) use entry::REDACTED;
pub use entry::{Body, Entry, Event, Kind};
pub use erase::ERASED;
pub(crate) use erase::{erase, is_committed, still_has};
pub use key::{Keyring, SigningKey};
pub(crate) use list::{Events, Sought, find, list};
pub use proof::{Proof, check_consistency, check_proof, consistency, prove};
pub use prune::prune_checkpoints;
pub(crate) use read::repeating;
pub use read::{
    EventRow, Leaf, Named, SEALED_OF_REQUEST, Search, Told, fill, find_event, heads_after, heads_of_request, leaf, leaves_after, named_after,
    newest_checkpoint, place_at, search, search_heads, size, told_of, told_of_request,
};
pub use seal::{Sealer, Sealing, Stager, check_end, seal_staged};
pub use tree::{Frontier, StoredHashes};
pub use verified::VERIFIED;
pub(crate) use verified::job_ended;
pub(crate) use verify::differences;
pub use verify::{Finding, Projection, Report, Verifier};
