//! The file itself: opened, made if it is missing, read in slices, and written in transactions of a millisecond.

use std::path::Path;
use std::time::Duration;

use deskmate_core::bridge::file::{Columns, FileRow, Table};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::Trouble;
use super::marks::Marks;
use super::rows::{STAGES, Shape, needed, size, values};

/// What one transaction writes at most: the command line does not wait for us, so we are done before it notices.
const WRITE_ROWS_MAX: usize = 100;
const WRITE_BYTES_MAX: usize = 256 * 1024;
/// What one slice holds at most, unless its first row alone is larger.
const READ_BYTES_MAX: usize = 1024 * 1024;
/// How often a write is prepared anew because somebody else wrote meanwhile.
const TRIES: u32 = 10;
/// How long we wait for others.
const PATIENCE: Duration = Duration::from_secs(2);

const CREATE: &str = "create table if not exists messages (id TEXT PRIMARY KEY, sender TEXT, recipient TEXT, content TEXT, read INTEGER DEFAULT 0, created_at TEXT); \
     create table if not exists tasks (id TEXT PRIMARY KEY, sender TEXT, recipient TEXT, title TEXT, description TEXT, status TEXT DEFAULT 'pending', \
     result TEXT, created_at TEXT, updated_at TEXT DEFAULT NULL);";

/// How a row is written over another one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// What the desk shows; names stay as the file spells them.
    Shown,
    /// All of it: somebody changed what cannot be changed.
    Whole,
}

/// An open bridge file.
pub(super) struct File {
    connection: Connection,
    shape: Shape,
    identity: Option<(u64, u64)>,
}

/// Which file a path leads to.
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|data| (data.dev(), data.ino()))
}

impl File {
    /// Opens the file, or makes it.
    pub(super) fn open(path: &Path) -> Result<Self, Trouble> {
        let made = make(path)?;
        let connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        // The schema may be anybody's: nothing in it runs with our rights beyond plain SQL.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        // What is erased must not stay in free pages. Nothing here needs a full fsync: the desk is the truth, and the
        // start compares both sides.
        connection.execute_batch(
            "pragma trusted_schema = off; pragma cache_size = -1000; pragma temp_store = memory; pragma secure_delete = on; pragma cell_size_check = on; pragma synchronous = normal;",
        )?;
        if made {
            // In a file of ours readers never stand in a writer's way, and a commit needs no fsync: `sqlite3` has no
            // busy timeout, so each moment of lock that is saved is an INSERT that succeeds. A file that was there
            // before stays in its own mode.
            connection.query_row("pragma journal_mode = wal", [], |_| Ok(()))?;
        } else if mode(&connection)? != "wal" {
            // Only for this connection: one fsync less under the lock than deleting the journal.
            connection.query_row("pragma journal_mode = truncate", [], |_| Ok(()))?;
        }
        connection.execute_batch(CREATE)?;
        connection.execute_batch(STAGES)?;
        let shape = shape(&connection)?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(Self { connection, shape, identity: identity(path) })
    }

    pub(super) fn is_at(&self, path: &Path) -> bool {
        self.identity.is_some() && self.identity == identity(path)
    }

    /// Changes whenever somebody else committed.
    pub(super) fn version(&self) -> Result<i64, Trouble> {
        Ok(self.connection.prepare_cached("pragma data_version")?.query_row([], |row| row.get(0))?)
    }

    /// Rows after a number, in the order in which they came: as many as asked for, or fewer if they are large. None
    /// only at the end.
    pub(super) fn rows(&self, table: Table, after: i64, limit: usize) -> Result<Vec<(i64, FileRow)>, Trouble> {
        let sql = format!("{} where rowid > ?1 order by rowid limit ?2", self.shape.select(table));
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = statement.query([after, i64::try_from(limit).unwrap_or(i64::MAX)])?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while bytes < READ_BYTES_MAX {
            let Some(row) = found.next()? else { break };
            let (number, row) = self.shape.read(table, row)?;
            bytes += size(&row);
            rows.push((number, row));
        }
        Ok(rows)
    }

    /// The last rows before a number, backwards: their numbers and ids.
    pub(super) fn ids_before(&self, table: Table, before: i64, limit: usize) -> Result<Vec<(i64, String)>, Trouble> {
        let mut statement = self.connection.prepare_cached(Shape::ids_before(table))?;
        let rows = statement.query_map([before, i64::try_from(limit).unwrap_or(i64::MAX)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The highest number of a row; 0 in an empty table.
    pub(super) fn newest(&self, table: Table) -> Result<i64, Trouble> {
        Ok(self.ids_before(table, i64::MAX, 1)?.first().map_or(0, |(number, _)| *number))
    }

    /// A row by its id.
    pub(super) fn find(&self, table: Table, id: &str) -> Result<Option<(i64, FileRow)>, Trouble> {
        let sql = format!("{} where id = ?1", self.shape.select(table));
        Ok(self.connection.prepare_cached(&sql)?.query_row([id], |row| self.shape.read(table, row)).optional()?)
    }

    /// Writes rows as they should be, a few at a time. Rows that somebody changed meanwhile are left: they are looked at
    /// first. Answers how many were written.
    pub(super) fn put(&mut self, table: Table, rows: &[FileRow], how: Put, marks: &mut Marks) -> Result<u64, Trouble> {
        let mut written = 0;
        let mut rest = rows;
        while !rest.is_empty() {
            let mut bytes = 0;
            let count = rest.iter().take(WRITE_ROWS_MAX).take_while(|row| {
                let fits = bytes == 0 || bytes + size(row) <= WRITE_BYTES_MAX;
                bytes += size(row);
                fits
            });
            let (batch, later) = rest.split_at(count.count());
            written += self.put_batch(table, batch, how, marks)?;
            rest = later;
            if !rest.is_empty() {
                // Somebody's INSERT may be waiting for just this moment.
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Ok(written)
    }

    fn put_batch(&mut self, table: Table, rows: &[FileRow], how: Put, marks: &mut Marks) -> Result<u64, Trouble> {
        for _ in 0..TRIES {
            // Everything that can be done without the lock is: looking rows up, and bringing the new ones to SQLite.
            let version = self.version()?;
            let mut wanted: Vec<(FileRow, bool)> = Vec::new();
            for row in rows {
                match self.find(table, &row.id)? {
                    None => wanted.push((row.clone(), true)),
                    Some((_, found)) if how == Put::Shown && is_shown(&found, row) => {}
                    Some((number, found)) if marks.is_current(table, number, &found)? => {
                        wanted.push((if how == Put::Whole { row.clone() } else { spelled_like(row, &found) }, false));
                    }
                    Some(_) => {}
                }
            }
            if wanted.is_empty() {
                return Ok(0);
            }
            self.stage(table, &wanted)?;
            if !self.write_staged(table, version)? {
                continue;
            }
            for (row, fresh) in &wanted {
                if let Some((number, row)) = self.find(table, &row.id)? {
                    marks.note(table, number, &row)?;
                    if *fresh {
                        marks.follow_own(table, number);
                    }
                }
            }
            return Ok(u64::try_from(wanted.len()).unwrap_or(u64::MAX));
        }
        Err(Trouble::Desk(deskmate_core::Error::limited("others write to the file all the time", 100)))
    }

    /// Brings rows to SQLite, into tables of this connection that nobody else has to wait for.
    fn stage(&mut self, table: Table, rows: &[(FileRow, bool)]) -> Result<(), Trouble> {
        let transaction = self.connection.transaction()?;
        transaction.execute(&format!("delete from temp.staged_{}", table.name()), [])?;
        for (row, fresh) in rows {
            let mut values = values(row);
            values.push(fresh);
            transaction.prepare_cached(Shape::stage(table))?.execute(values.as_slice())?;
        }
        Ok(transaction.commit()?)
    }

    /// Writes what is staged, if nobody else wrote since the rows were looked up: a few statements under the lock.
    fn write_staged(&mut self, table: Table, version: i64) -> Result<bool, Trouble> {
        let (insert, update) = (self.shape.insert(table), self.shape.update(table));
        let (mut insert, mut update) = (self.connection.prepare_cached(&insert)?, self.connection.prepare_cached(&update)?);
        let mut now = self.connection.prepare_cached("pragma data_version")?;
        let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        if now.query_row([], |row| row.get::<_, i64>(0))? != version {
            return Ok(false);
        }
        insert.execute([])?;
        update.execute([])?;
        transaction.commit()?;
        Ok(true)
    }

    /// Deletes rows whose time is over.
    pub(super) fn remove(&mut self, table: Table, ids: &[String], marks: &Marks) -> Result<(), Trouble> {
        for batch in ids.chunks(WRITE_ROWS_MAX) {
            let mut numbers = Vec::new();
            for id in batch {
                numbers.extend(self.find(table, id)?.map(|(number, _)| number));
            }
            let sql = format!("delete from {} where id = ?1", table.name());
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for id in batch {
                transaction.prepare_cached(&sql)?.execute([id])?;
            }
            transaction.commit()?;
            for number in numbers {
                marks.forget(table, number)?;
            }
        }
        Ok(())
    }

    /// Takes erased texts out of the write-ahead log as well, where the file has one.
    pub(super) fn forget_log(&self) -> Result<(), Trouble> {
        Ok(self.connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))?)
    }
}

/// Makes an empty file for its owner only, if there is none.
fn make(path: &Path) -> Result<bool, Trouble> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn mode(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("pragma journal_mode", [], |row| row.get(0))
}

/// Which columns the tables have. Extra ones are left alone; a table without the documented ones is not ours to touch.
fn shape(connection: &Connection) -> Result<Shape, Trouble> {
    let mut shape = Shape { result: false, updated_at: false };
    for table in Table::ALL {
        let mut statement = connection.prepare("select name from pragma_table_info(?1)")?;
        let columns = statement.query_map([table.name()], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        let has = |name: &str| columns.iter().any(|column| column.eq_ignore_ascii_case(name));
        if let Some(missing) = needed(table).iter().find(|name| !has(name)) {
            return Err(Trouble::Shape(format!(
                "its table {} has no column {missing}, so it is no bridge file; name another one with bridge.file",
                table.name()
            )));
        }
        // Views and tables without row numbers have no order in which rows came.
        connection
            .prepare(&format!("select rowid from {} limit 1", table.name()))
            .map_err(|_| Trouble::Shape(format!("{} is no plain table, so it is no bridge file; name another one with bridge.file", table.name())))?;
        if table == Table::Tasks {
            (shape.result, shape.updated_at) = (has("result"), has("updated_at"));
        }
    }
    Ok(shape)
}

/// Whether a row shows what it should. Names and times stay as they are spelled: who looks for changes by hand judges them.
fn is_shown(found: &FileRow, wanted: &FileRow) -> bool {
    match (&found.columns, &wanted.columns) {
        (Columns::Message(found), Columns::Message(wanted)) => found.read == wanted.read && found.content == wanted.content,
        (Columns::Task(task), Columns::Task(wanted)) => {
            let same_result = !found.has_result || task.result == wanted.result;
            task.status == wanted.status && same_result && task.title == wanted.title && task.description == wanted.description
        }
        _ => false,
    }
}

/// A row for the file, with the names that the file has for sender and recipient.
fn spelled_like(row: &FileRow, found: &FileRow) -> FileRow {
    let mut row = row.clone();
    match (&mut row.columns, &found.columns) {
        (Columns::Message(row), Columns::Message(found)) => {
            (row.sender, row.recipient) = (found.sender.clone(), found.recipient.clone());
        }
        (Columns::Task(row), Columns::Task(found)) => {
            (row.sender, row.recipient) = (found.sender.clone(), found.recipient.clone());
        }
        _ => {}
    }
    row
}
