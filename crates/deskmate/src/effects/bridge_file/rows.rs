//! Rows of the file as SQLite gives and takes them. What other programs wrote may be of any type and any size.

use deskmate_core::bridge::file::{Columns, FileMessage, FileRow, FileTask, Table};
use deskmate_core::limits::CONTENT_BYTES_MAX;
use rusqlite::types::ValueRef;
use rusqlite::{Row, ToSql};

/// Which of the columns that may be missing a file has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) result: bool,
    pub(super) updated_at: bool,
}

/// The columns that must be there.
pub(super) fn needed(table: Table) -> &'static [&'static str] {
    match table {
        Table::Messages => &["id", "sender", "recipient", "content", "read", "created_at"],
        Table::Tasks => &["id", "sender", "recipient", "title", "description", "status", "created_at"],
    }
}

impl Shape {
    /// The columns of a query: the row's number, then the row. Texts are cut a little beyond what the desk takes, so
    /// that a huge one is refused without being read.
    pub(super) fn select(self, table: Table) -> String {
        let cut = CONTENT_BYTES_MAX + 1;
        match table {
            Table::Messages => format!(
                "select rowid, substr(id, 1, 1000), substr(sender, 1, 1000), substr(recipient, 1, 1000), substr(content, 1, {cut}), read, \
                 substr(created_at, 1, 100) from messages"
            ),
            Table::Tasks => format!(
                "select rowid, substr(id, 1, 1000), substr(sender, 1, 1000), substr(recipient, 1, 1000), substr(title, 1, {cut}), \
                 substr(description, 1, {cut}), substr(status, 1, 100), substr(created_at, 1, 100), {}, {} from tasks",
                if self.result { format!("substr(result, 1, {cut})") } else { "null".to_owned() },
                if self.updated_at { "substr(updated_at, 1, 100)" } else { "null" }
            ),
        }
    }

    /// A statement that writes a new row; its parameters are those of [`values`].
    pub(super) fn insert(self, table: Table) -> String {
        match table {
            Table::Messages => "insert into messages (id, sender, recipient, content, read, created_at) values (?1, ?2, ?3, ?4, ?5, ?6)".to_owned(),
            Table::Tasks => format!(
                "insert into tasks (id, sender, recipient, title, description, status, created_at{}{}) values (?1, ?2, ?3, ?4, ?5, ?6, ?7{}{})",
                if self.result { ", result" } else { "" },
                if self.updated_at { ", updated_at" } else { "" },
                if self.result { ", ?8" } else { "" },
                if self.updated_at { ", ?9" } else { "" }
            ),
        }
    }

    /// A statement that puts a row right, all but its time.
    pub(super) fn update(self, table: Table) -> String {
        match table {
            Table::Messages => "update messages set sender = ?2, recipient = ?3, content = ?4, read = ?5 where id = ?1".to_owned(),
            Table::Tasks => format!(
                "update tasks set sender = ?2, recipient = ?3, title = ?4, description = ?5, status = ?6{}{} where id = ?1",
                if self.result { ", result = ?8" } else { "" },
                if self.updated_at { ", updated_at = ?9" } else { "" }
            ),
        }
    }

    /// Reads a row of [`Shape::select`].
    pub(super) fn read(self, table: Table, row: &Row<'_>) -> rusqlite::Result<(i64, FileRow)> {
        let rowid = row.get(0)?;
        let id = text(row, 1)?;
        let columns = match table {
            Table::Messages => message(row)?.map(Columns::Message),
            Table::Tasks => task(row)?.map(Columns::Task),
        };
        let columns = columns.filter(|_| id.is_some()).unwrap_or(Columns::Unreadable(table));
        Ok((rowid, FileRow { id: id.unwrap_or_default(), columns, has_result: self.result }))
    }
}

fn message(row: &Row<'_>) -> rusqlite::Result<Option<FileMessage>> {
    let (Some(sender), Some(recipient), Some(content), Some(created_at)) = (text(row, 2)?, text(row, 3)?, text(row, 4)?, text(row, 6)?) else {
        return Ok(None);
    };
    let read = match row.get_ref(5)? {
        ValueRef::Integer(read) => read != 0,
        ValueRef::Text(read) => read == b"1" || read.eq_ignore_ascii_case(b"true"),
        _ => false,
    };
    Ok(Some(FileMessage { sender, recipient, content, read, created_at }))
}

fn task(row: &Row<'_>) -> rusqlite::Result<Option<FileTask>> {
    let texts = (text(row, 2)?, text(row, 3)?, text(row, 4)?, text(row, 5)?, text(row, 6)?, text(row, 7)?);
    let (Some(sender), Some(recipient), Some(title), Some(description), Some(status), Some(created_at)) = texts else { return Ok(None) };
    let (Some(result), Some(updated_at)) = (text(row, 8)?, text(row, 9)?) else { return Ok(None) };
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    // A row that was inserted without a status has the column's default, or none in a table without one.
    let status = if status.is_empty() { "pending".to_owned() } else { status };
    Ok(Some(FileTask { sender, recipient, title, description, status, result: some(result), created_at, updated_at: some(updated_at) }))
}

/// A column as text; numbers are written out, null is empty. `None`: it is neither.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => Some(String::new()),
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(text) => String::from_utf8(text.to_vec()).ok(),
        ValueRef::Blob(_) => None,
    })
}

/// The parameters of a row.
pub(super) fn values(row: &FileRow) -> Vec<&dyn ToSql> {
    match &row.columns {
        Columns::Message(message) => vec![&row.id, &message.sender, &message.recipient, &message.content, &message.read, &message.created_at],
        Columns::Task(task) => {
            vec![&row.id, &task.sender, &task.recipient, &task.title, &task.description, &task.status, &task.created_at, &task.result, &task.updated_at]
        }
        Columns::Unreadable(_) => vec![&row.id],
    }
}

/// How much a row writes, roughly.
pub(super) fn size(row: &FileRow) -> usize {
    64 + match &row.columns {
        Columns::Message(message) => message.content.len(),
        Columns::Task(task) => task.title.len() + task.description.len() + task.result.as_ref().map_or(0, String::len),
        Columns::Unreadable(_) => 0,
    }
}
