//! The bridge file: a SQLite file with the tables `messages` and `tasks` that people write with the `sqlite3` command
//! line. It is an edge of the desk and never its store. Here are the rules, over an open transaction; the binary opens
//! the file.
//!
//! - A row that the desk does not know enters it once, as what an unverified agent said who claims to be its `sender`.
//! - Messages and tasks of the desk are shown in the file: one row for each recipient. A message to one recipient and a
//!   task have their own id there, the copies of a message to a group have `ID#RECIPIENT`.
//! - A change by hand counts where it is a legal step of somebody who has no credential: nobody acts here for a person
//!   or for a registered agent. Every other change is undone in the file, and reported.
//! - Where the record has news that the file does not show yet, the desk is right.
//!
//! Tables: `bridge_file_row`, `cursor`.

mod change;
mod import;
mod known;
mod mirror;

use deskmate_db::{Tx, args};

use crate::Result;
use crate::call::Cx;
use crate::record::Kind;

pub use change::{Differing, Settled, same, settle};
pub use known::{Gone, are_known, forget, gone};
pub use mirror::{Shown, Touched, name, page, shown, touched};

/// The statements of the file for the test of plans, as in the folder's own list.
pub(super) const INDEXED: &[(&str, &str, &str)] = &[
    (known::FIND, "bridge_file_row_pkey", "kt"),
    (known::SPELLED, "bridge_file_row_by_id", "ktt"),
    (known::GONE_MESSAGES, "bridge_file_row_pkey message_pkey", "ti"),
    (known::GONE_TASKS, "bridge_file_row_pkey task_pkey", "ti"),
    (mirror::MESSAGES, "message_pkey", "ti"),
    (mirror::TASKS, "task_pkey", "ti"),
    (mirror::DELIVERIES, "delivery_pkey", "ti"),
    (change::NEWS, "event_by_subject", "t"),
];

/// Rows of the file could not be taken.
pub(super) const SKIPPED: Kind =
    Kind { name: "bridge_file.skipped", says: "Rows of the bridge file could not be taken into the desk; the payload says which and why." };
/// Changes in the file were undone.
pub(super) const REVERTED: Kind =
    Kind { name: "bridge_file.reverted", says: "Changes in the bridge file were no legal step and were undone there; the payload says which and why." };
/// Rows were put back.
pub(super) const RESTORED: Kind = Kind { name: "bridge_file.restored", says: "Rows that were missing in the bridge file were written there again." };

/// The two tables of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// `messages`.
    Messages,
    /// `tasks`.
    Tasks,
}

impl Table {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Messages, Self::Tasks];

    /// Its name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Tasks => "tasks",
        }
    }

    /// What its rows are here.
    fn kind(self) -> &'static str {
        match self {
            Self::Messages => "message",
            Self::Tasks => "task",
        }
    }
}

/// A row of the table `messages`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileMessage {
    /// Who says to have sent it.
    pub sender: String,
    /// Whom it is for.
    pub recipient: String,
    /// The text.
    pub content: String,
    /// Whether it was read.
    pub read: bool,
    /// When it was sent.
    pub created_at: String,
}

/// A row of the table `tasks`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileTask {
    /// Who says to have given it.
    pub sender: String,
    /// Whom it is for.
    pub recipient: String,
    /// What it is about.
    pub title: String,
    /// What is to be done.
    pub description: String,
    /// Where it stands.
    pub status: String,
    /// What came out; nothing where the file has no such column.
    pub result: Option<String>,
    /// When it was given.
    pub created_at: String,
    /// When it last changed; nothing where the file has no such column.
    pub updated_at: Option<String>,
}

/// The columns of a row besides its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Columns {
    /// Of `messages`.
    Message(FileMessage),
    /// Of `tasks`.
    Task(FileTask),
    /// A column holds no text, or more than the desk takes.
    Unreadable(Table),
}

/// A row of the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileRow {
    /// Its id, as it is spelled.
    pub id: String,
    /// The rest.
    pub columns: Columns,
    /// Whether the file has a column for results.
    pub has_result: bool,
}

impl FileRow {
    /// The table that it is in.
    pub fn table(&self) -> Table {
        match &self.columns {
            Columns::Message(_) => Table::Messages,
            Columns::Task(_) => Table::Tasks,
            Columns::Unreadable(table) => *table,
        }
    }
}

/// How far a follower of the record has come: the next sequence number that it has not dealt with. `None`: it is new.
pub fn cursor(tx: &mut Tx<'_>, follower: &str) -> Result<Option<u64>> {
    let row = tx.optional("select seq from cursor where name = $1", args![follower])?;
    let seq: Option<i64> = row.map(|row| row.get(0)).transpose()?;
    Ok(seq.map(|seq| u64::try_from(seq).unwrap_or(0)))
}

/// Remembers how far a follower of the record has come.
pub fn set_cursor(cx: &mut Cx<'_, '_>, follower: &str, next: u64) -> Result<()> {
    let next = i64::try_from(next).unwrap_or(i64::MAX);
    cx.tx.execute("insert into cursor (name, seq) values ($1, $2) on conflict (name) do update set seq = excluded.seq", args![follower, next])?;
    Ok(())
}

/// Tells the record that rows which were missing in the file are there again.
pub fn tell_restored(cx: &mut Cx<'_, '_>, rows: u64) -> Result<()> {
    cx.emit(crate::record::Event::new(RESTORED, "bridge_file").fact("rows", rows))
}
