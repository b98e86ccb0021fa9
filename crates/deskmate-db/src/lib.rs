//! Transactions and rows. This crate knows SQLite and PostgreSQL and nothing of Deskmate.
//!
//! There are two doors: [`Db::read`] and [`Db::write`]. Both take a closure over a [`Tx`]; the closure sees one
//! consistent state and does no other input or output, so it may be batched (SQLite) or run again (PostgreSQL)
//! without anyone noticing. An answer is given only after the commit is on disk.
//!
//! SQL is written once, in the dialect that both engines share, with `$n` parameters.

#![warn(missing_docs)]

mod ask;
mod copy;
mod db;
mod error;
mod here;
mod migrate;
mod postgres;
mod sqlite;
mod tx;
mod value;
mod work;

pub use ask::{Asked, ask_postgres};
pub use copy::{copy_sqlite, seal_file};
pub use db::{Db, Engine, Options};
pub use error::{Error, Kind};
pub use migrate::Migration;
pub use tx::Tx;
pub use value::{FromValue, Param, Row, ToParam, Value};
pub use work::{Committed, Seal, Staged};

/// The outcome of anything that touches the database.
pub type Result<T, E = Error> = std::result::Result<T, E>;
