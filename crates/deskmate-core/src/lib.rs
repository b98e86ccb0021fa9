//! Every rule and row of Deskmate. An operation is a plain function over an open transaction: it reads and writes
//! rows, tells the record what happened, and does nothing else. Time and chance come in through [`World`]; files,
//! networks and processes are not reachable from here, which is why this crate depends on none of them.
//!
//! A capability is one folder: `bridge`, `compliance`, `cowork`, `edit`, `gateway`, `hook`, `identity`, `import`, `job`, `meter`, `notify`,
//! `policy`, `program`, `record`, `request`, `secret`, `trust`, `workspace`. What they share is in `call`;
//! `redact` takes secrets and personal data out of what others wrote.

#![warn(missing_docs)]

pub mod agents;
pub mod backlog;
pub mod bridge;
pub mod call;
pub mod compliance;
pub mod cowork;
pub mod desk;
pub mod edit;
mod error;
pub mod gateway;
pub mod hook;
pub mod identity;
pub mod import;
pub mod job;
pub mod lease;
pub mod limits;
pub mod meter;
pub mod notify;
pub mod policy;
pub mod program;
mod protection;
pub mod record;
pub mod redact;
pub mod request;
mod schema;
pub mod secret;
mod text;
pub mod trust;
pub mod workspace;
mod world;

pub(crate) use desk::{DESK_EVENTS, desk_operations};
pub use error::{Code, Error, Result};
pub use schema::{MIGRATIONS, TABLES};
pub(crate) use text::{canonical, canonical_value, csv_cell};
pub use text::{check_text, digest, format_time, hex, parse_time};
pub use world::World;
