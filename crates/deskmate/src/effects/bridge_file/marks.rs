//! What each row of the file looked like when it was last seen or written. A row that looks otherwise was changed by
//! somebody else.
//!
//! The marks lie in a scratch file in the data directory, so that the server's memory does not grow with the file. They
//! are good for one opening of the bridge file only: every start compares both sides anew, so nothing here is ever
//! synchronised with the disk, and what a crash leaves behind is thrown away.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use deskmate_core::bridge::file::{FileRow, Table};
use rusqlite::{Connection, OptionalExtension};

use super::Trouble;

/// One transaction that never ends: pages are written when the small cache is full, and never otherwise.
const OPEN: &str = "pragma journal_mode = off; pragma synchronous = off; pragma locking_mode = exclusive; pragma cache_size = -512; \
     create table mark_messages (number integer primary key, id integer not null, print integer not null); \
     create table mark_tasks (number integer primary key, id integer not null, print integer not null); begin exclusive;";

/// The marks of both tables.
pub(super) struct Marks {
    connection: Connection,
    path: PathBuf,
    hasher: RandomState,
    ends: Ends,
}

/// Up to which number all rows of each table have been looked at. Nothing: the tables have no end that is known yet.
#[derive(Default)]
struct Ends {
    messages: Option<i64>,
    tasks: Option<i64>,
}

/// What a slice of the file has that was not there before, and how many rows it lacks.
pub(super) struct Compared {
    pub(super) changed: Vec<Changed>,
    pub(super) missing: u64,
}

/// A row that is not as it was last seen.
#[derive(Clone)]
pub(super) struct Changed {
    pub(super) number: i64,
    pub(super) row: FileRow,
    /// Whether it was seen before, so that somebody changed it since.
    pub(super) by_hand: bool,
}

impl Marks {
    /// Opens an empty scratch file.
    pub(super) fn open(path: &Path) -> Result<Self, Trouble> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)?;
        let connection = Connection::open(path)?;
        connection.execute_batch(OPEN)?;
        Ok(Self { connection, path: path.to_owned(), hasher: RandomState::new(), ends: Ends::default() })
    }

    fn end_mut(&mut self, table: Table) -> &mut Option<i64> {
        match table {
            Table::Messages => &mut self.ends.messages,
            Table::Tasks => &mut self.ends.tasks,
        }
    }

    /// Up to which number all rows have been looked at, if that is known yet. What comes behind it is new.
    pub(super) fn end(&self, table: Table) -> Option<i64> {
        match table {
            Table::Messages => self.ends.messages,
            Table::Tasks => self.ends.tasks,
        }
    }

    /// Rows up to this number have been looked at.
    pub(super) fn set_end(&mut self, table: Table, number: i64) {
        *self.end_mut(table) = Some(number);
    }

    /// A row of our own was added. If others added rows before it, those are still to be looked at.
    pub(super) fn follow_own(&mut self, table: Table, number: i64) {
        if let Some(end) = self.end_mut(table)
            && number == end.saturating_add(1)
        {
            *end = number;
        }
    }

    /// A number for anything, as SQLite keeps numbers.
    fn print(&self, of: impl std::hash::Hash) -> i64 {
        self.hasher.hash_one(of).cast_signed()
    }

    /// Whether a row was ever seen, or written by us.
    pub(super) fn has(&self, table: Table, number: i64) -> Result<bool, Trouble> {
        Ok(self.find(table, number)?.is_some())
    }

    /// Whether a row is as it was last seen.
    pub(super) fn is_current(&self, table: Table, number: i64, row: &FileRow) -> Result<bool, Trouble> {
        Ok(self.find(table, number)? == Some(self.print(row)))
    }

    fn find(&self, table: Table, number: i64) -> Result<Option<i64>, Trouble> {
        let sql = match table {
            Table::Messages => "select print from mark_messages where number = ?1",
            Table::Tasks => "select print from mark_tasks where number = ?1",
        };
        Ok(self.connection.prepare_cached(sql)?.query_row([number], |row| row.get(0)).optional()?)
    }

    /// Notes how a row looks.
    pub(super) fn note(&self, table: Table, number: i64, row: &FileRow) -> Result<(), Trouble> {
        let sql = match table {
            Table::Messages => "insert or replace into mark_messages (number, id, print) values (?1, ?2, ?3)",
            Table::Tasks => "insert or replace into mark_tasks (number, id, print) values (?1, ?2, ?3)",
        };
        self.connection.prepare_cached(sql)?.execute([number, self.print(&row.id), self.print(row)])?;
        Ok(())
    }

    /// Forgets a row that is there no longer.
    pub(super) fn forget(&self, table: Table, number: i64) -> Result<(), Trouble> {
        let sql = match table {
            Table::Messages => "delete from mark_messages where number = ?1",
            Table::Tasks => "delete from mark_tasks where number = ?1",
        };
        self.connection.prepare_cached(sql)?.execute([number])?;
        Ok(())
    }

    /// Compares the rows of a slice with what was seen of it: all rows after one number and up to another one, in order.
    /// Rows that are gone, or whose place another row has now, are forgotten and counted.
    pub(super) fn compare(&self, table: Table, after: i64, upto: i64, rows: Vec<(i64, FileRow)>) -> Result<Compared, Trouble> {
        let sql = match table {
            Table::Messages => "select number, id, print from mark_messages where number > ?1 and number <= ?2 order by number",
            Table::Tasks => "select number, id, print from mark_tasks where number > ?1 and number <= ?2 order by number",
        };
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut marks = statement.query([after, upto])?;
        let mut mark = next(&mut marks)?;
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        for (number, row) in rows {
            while let Some(passed) = mark.filter(|mark| mark.0 < number) {
                gone.push(passed.0);
                mark = next(&mut marks)?;
            }
            let seen = mark.filter(|mark| mark.0 == number);
            let mut by_hand = false;
            if let Some((_, id, print)) = seen {
                mark = next(&mut marks)?;
                if print == self.print(&row) {
                    continue;
                }
                by_hand = id == self.print(&row.id);
                if !by_hand {
                    gone.push(number);
                }
            }
            changed.push(Changed { number, row, by_hand });
        }
        while let Some(passed) = mark {
            gone.push(passed.0);
            mark = next(&mut marks)?;
        }
        drop(marks);
        for number in &gone {
            self.forget(table, *number)?;
        }
        Ok(Compared { changed, missing: u64::try_from(gone.len()).unwrap_or(u64::MAX) })
    }
}

fn next(marks: &mut rusqlite::Rows<'_>) -> Result<Option<(i64, i64, i64)>, Trouble> {
    Ok(marks.next()?.map(|row| Ok::<_, rusqlite::Error>((row.get(0)?, row.get(1)?, row.get(2)?))).transpose()?)
}

impl Drop for Marks {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use deskmate_core::bridge::file::{Columns, FileMessage};

    use super::*;

    fn row(number: i64, content: &str) -> FileRow {
        let columns = FileMessage { sender: "code".to_owned(), recipient: "cowork".to_owned(), content: content.to_owned(), ..FileMessage::default() };
        FileRow { id: format!("row {number}"), columns: Columns::Message(columns), has_result: true }
    }

    fn marks() -> (tempfile::TempDir, Marks) {
        let folder = tempfile::tempdir().expect("a folder");
        let marks = Marks::open(&folder.path().join("marks")).expect("marks");
        (folder, marks)
    }

    #[test]
    fn a_slice_tells_what_changed_and_what_is_gone() {
        let (_folder, marks) = marks();
        for number in [1, 2, 3, 5, 8] {
            marks.note(Table::Messages, number, &row(number, "as it was")).expect("noted");
        }
        let slice = vec![(1, row(1, "as it was")), (3, row(3, "changed")), (5, row(6, "another row in its place")), (7, row(7, "new"))];
        let compared = marks.compare(Table::Messages, 0, 7, slice).expect("compared");
        let changed: Vec<(i64, bool)> = compared.changed.iter().map(|one| (one.number, one.by_hand)).collect();
        assert_eq!(changed, [(3, true), (5, false), (7, false)], "only a row that was seen otherwise was changed by somebody");
        assert_eq!(compared.missing, 2, "2 was deleted, and 5 made place for another one");
        let rest = marks.compare(Table::Messages, 7, i64::MAX, Vec::new()).expect("compared");
        assert_eq!((rest.changed.len(), rest.missing), (0, 1), "8 was deleted");
        assert!(marks.is_current(Table::Messages, 1, &row(1, "as it was")).expect("found"));
        assert!(!marks.has(Table::Messages, 2).expect("found") && !marks.has(Table::Tasks, 1).expect("found"));
    }

    #[test]
    fn rows_of_others_before_our_own_are_still_new() {
        let (_folder, mut marks) = marks();
        marks.follow_own(Table::Messages, 1);
        assert_eq!(marks.end(Table::Messages), None, "nobody knows yet what came before");
        marks.set_end(Table::Messages, 4);
        marks.follow_own(Table::Messages, 5);
        marks.follow_own(Table::Messages, 7);
        assert_eq!(marks.end(Table::Messages), Some(5), "6 is somebody else's");
    }

    /// Anonymous memory of this process in kilobytes.
    fn memory() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
        line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// Tests beside it use memory too, so the marks are made in a process of their own: this test again, alone.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test tells itself in the environment that it is alone")]
    fn a_million_marks_take_no_memory() {
        const ALONE: &str = "DESKMATE_TEST_MARKS_ALONE";
        if std::env::var_os(ALONE).is_none() {
            let name = "effects::bridge_file::marks::tests::a_million_marks_take_no_memory";
            let own = std::env::current_exe().expect("a test");
            let output = std::process::Command::new(own).args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        let (folder, marks) = marks();
        let before = memory();
        for number in 0..1_000_000 {
            marks.note(Table::Messages, number, &row(number, "")).expect("noted");
        }
        let grown = memory().saturating_sub(before);
        let size = std::fs::metadata(folder.path().join("marks")).expect("a file").len();
        assert!(size > 10_000_000, "the marks are not in their file, which has {size} bytes");
        // A million marks in memory would be 40,000 kB.
        assert!(grown < 10_000, "a million marks took {grown} kB of memory");
    }
}
