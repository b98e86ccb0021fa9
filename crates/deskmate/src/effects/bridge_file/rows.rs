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

/// Where rows wait to be written.
pub(super) const STAGES: &str = "create temp table staged_messages (id TEXT, sender TEXT, recipient TEXT, content TEXT, read INTEGER, created_at TEXT, fresh INTEGER); \
     create temp table staged_tasks (id TEXT, sender TEXT, recipient TEXT, title TEXT, description TEXT, status TEXT, created_at TEXT, result TEXT, \
     updated_at TEXT, fresh INTEGER);";

/// The columns that must be there.
pub(super) fn needed(table: Table) -> &'static [&'static str] {
    match table {
        Table::Messages => &["id", "sender", "recipient", "content", "read", "created_at"],
        Table::Tasks => &["id", "sender", "recipient", "title", "description", "status", "created_at"],
    }
}

/// A column, or a blob in place of more than any text of the desk may hold, so that it is refused without being read.
fn bounded(column: &str) -> String {
    format!("case when octet_length({column}) > {CONTENT_BYTES_MAX} then x'' else {column} end")
}

impl Shape {
    /// The columns of a query: the row's number, then the row.
    pub(super) fn select(self, table: Table) -> String {
        let mut columns: Vec<String> = match table {
            Table::Messages => {
                vec![bounded("id"), bounded("sender"), bounded("recipient"), bounded("content"), "read".to_owned(), bounded("created_at")]
            }
            Table::Tasks => ["id", "sender", "recipient", "title", "description", "status", "created_at"].map(bounded).to_vec(),
        };
        if table == Table::Tasks {
            columns.push(if self.result { bounded("result") } else { "null".to_owned() });
            columns.push(if self.updated_at { bounded("updated_at") } else { "null".to_owned() });
        }
        format!("select rowid, {} from {}", columns.join(", "), table.name())
    }

    /// Numbers and ids, backwards from a number. What is no text cannot be an id that the desk knows.
    pub(super) fn ids_before(table: Table) -> &'static str {
        match table {
            Table::Messages => {
                "select rowid, case when typeof(id) = 'text' then substr(id, 1, 1000) else '' end from messages where rowid < ?1 order by rowid desc limit ?2"
            }
            Table::Tasks => {
                "select rowid, case when typeof(id) = 'text' then substr(id, 1, 1000) else '' end from tasks where rowid < ?1 order by rowid desc limit ?2"
            }
        }
    }

    /// The columns that this file has, in the order of [`values`].
    fn columns(self, table: Table) -> Vec<&'static str> {
        let mut columns = needed(table).to_vec();
        if table == Table::Tasks {
            columns.extend(self.result.then_some("result"));
            columns.extend(self.updated_at.then_some("updated_at"));
        }
        columns
    }

    /// A statement that puts a row where it waits to be written; its parameters are those of [`values`] and whether the
    /// row is new.
    pub(super) fn stage(table: Table) -> &'static str {
        match table {
            Table::Messages => "insert into temp.staged_messages (id, sender, recipient, content, read, created_at, fresh) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            Table::Tasks => {
                "insert into temp.staged_tasks (id, sender, recipient, title, description, status, created_at, result, updated_at, fresh) \
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
            }
        }
    }

    /// A statement that writes the waiting rows that are new.
    pub(super) fn insert(self, table: Table) -> String {
        let (name, columns) = (table.name(), self.columns(table).join(", "));
        format!("insert into main.{name} ({columns}) select {columns} from temp.staged_{name} where fresh order by rowid")
    }

    /// A statement that puts rows right, all but their times.
    pub(super) fn update(self, table: Table) -> String {
        let name = table.name();
        let changes = self.columns(table).into_iter().filter(|column| !matches!(*column, "id" | "created_at")).map(|column| format!("{column} = s.{column}"));
        format!("update main.{name} set {} from temp.staged_{name} as s where {name}.id = s.id and not s.fresh", changes.collect::<Vec<_>>().join(", "))
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
