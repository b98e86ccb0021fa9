//! Both directions: rows of the file are settled with the desk, and news of the record are shown in the file.
//!
//! One thread does both, one after the other, so that it always knows what it wrote itself: a row that differs from
//! what was last seen was changed by somebody else.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use deskmate_core::bridge::file::{self, Differing, FileRow, Settled, Shown, Table};
use deskmate_core::hex;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::file::{File, Put};
use super::marks::{Changed, Compared, Marks};
use super::{Trouble, act, read};
use crate::app::App;

/// Rows of the file that are read at once, and those of them that are settled in one transaction of the desk. Both are
/// small, because others wait for the same threads of the store.
const READ_ROWS: usize = 200;
const SETTLE_ROWS: usize = 20;
/// How long one look goes on with each of its longer works before the next one has its turn.
const WORK_TIME: Duration = Duration::from_millis(10);
/// How far back a look at the start searches for the end of what the desk knows.
const TAIL_ROWS: usize = 10_000;
/// Events that are looked at together, and how often in one look.
const EVENTS: u32 = 200;
const TURNS: u32 = 5;
/// How many events a file may be behind at the start and still be brought up to date by them.
const CATCH_UP: u64 = 10_000;
/// Messages or tasks that are compared together, and rows that are looked through for those that are gone.
const PAGE: u32 = 20;
const SWEEP_ROWS: u32 = 200;
/// Rows of a comparison that are written together.
const SHOW_ROWS: usize = 100;
/// How long the file's writer lock is left alone between two writes.
const WRITE_GAP: Duration = Duration::from_millis(300);
/// When rows that could not be taken yet are looked at again.
const AGAIN: Duration = Duration::from_secs(30);

/// What a round through the whole file is at.
struct Round {
    tables: Vec<Table>,
    after: i64,
}

impl Round {
    fn new() -> Self {
        Self { tables: Table::ALL.to_vec(), after: i64::MIN }
    }
}

/// What a comparison from the desk's side is at.
struct Repair {
    tables: Vec<Table>,
    after: String,
    written: u64,
    begun: Instant,
    /// Whether missing rows were there before.
    known: bool,
}

impl Repair {
    fn new(known: bool) -> Self {
        Self { tables: Table::ALL.to_vec(), after: String::new(), written: 0, begun: Instant::now(), known }
    }
}

/// What the search for rows of what the desk no longer keeps is at.
struct Sweep {
    tables: Vec<Table>,
    after: String,
}

impl Sweep {
    fn new() -> Self {
        Self { tables: Table::ALL.to_vec(), after: String::new() }
    }
}

#[derive(Default)]
struct Counts {
    rows: usize,
    imported_or_changed: u64,
    put_back: u64,
    skipped: u64,
}

/// An open file that is kept in step.
pub(super) struct Sync {
    app: App,
    path: PathBuf,
    file: File,
    marks: Marks,
    grown: watch::Receiver<u64>,
    /// The first event that is still to be followed.
    next: u64,
    /// The first event that the file may not show yet, where that is an earlier one: until the file has been read once
    /// after a long absence.
    stale_from: Option<u64>,
    /// The record's size at the start, when everything is compared.
    compared: u64,
    kept: u64,
    follower: String,
    version: i64,
    round: Option<Round>,
    /// Whether somebody wrote while a round was under way.
    again: bool,
    look_at: Option<Instant>,
    /// Rows that were deleted by hand since the last repair began.
    missing: u64,
    repair: Option<Repair>,
    sweep: Option<Sweep>,
    /// Until the file has been read once.
    first: bool,
    /// Until the rows that came to its end while nobody looked were taken.
    tail: bool,
    wrote: Option<Instant>,
    counts: Counts,
}

impl Sync {
    pub(super) fn open(app: &App, path: &Path, marks: &Path) -> Result<Self, Trouble> {
        let digest = hex(&Sha256::digest(path.as_os_str().as_encoded_bytes()));
        let follower = format!("bridge_file:{}", digest.get(..16).unwrap_or_default());
        let name = follower.clone();
        let cursor = read(app, move |tx| file::cursor(tx, &name))?;
        let size = *app.live.size().borrow();
        let file = File::open(path)?;
        let version = file.version()?;
        // What the file has to catch up with is followed one by one, so that news are not taken for rows that were
        // lost; after a long absence comparing is all that is needed.
        let near = cursor.filter(|cursor| size.saturating_sub(*cursor) <= CATCH_UP);
        tracing::info!(file = %path.display(), "the bridge file is open and compared with the desk");
        Ok(Self {
            app: app.clone(),
            path: path.to_owned(),
            file,
            marks: Marks::open(marks)?,
            grown: app.live.size(),
            next: near.unwrap_or(size).min(size),
            stale_from: if near.is_some() { None } else { Some(cursor.unwrap_or(0).min(size)) },
            compared: size,
            kept: cursor.unwrap_or(u64::MAX),
            follower,
            version,
            round: Some(Round::new()),
            again: false,
            look_at: None,
            missing: 0,
            repair: Some(Repair::new(near.is_some())),
            sweep: None,
            first: true,
            tail: true,
            wrote: None,
            counts: Counts::default(),
        })
    }

    pub(super) fn is_same_file(&self, path: &Path) -> bool {
        self.file.is_at(path)
    }

    /// Whether there is more to do at once.
    pub(super) fn is_busy(&self) -> bool {
        self.round.is_some() || self.sweep.is_some() || (self.repair.is_some() && self.next >= self.compared)
    }

    /// One look at both sides.
    pub(super) fn look(&mut self) -> Result<(), Trouble> {
        if self.tail {
            self.find_ends()?;
            self.take_new()?;
            self.tail = false;
        }
        let version = self.file.version()?;
        if version != self.version {
            self.version = version;
            self.take_new()?;
            self.again = true;
        }
        if self.look_at.is_some_and(|at| at <= Instant::now()) {
            self.look_at = None;
            self.again = true;
        }
        if self.again && self.round.is_none() {
            self.again = false;
            self.round = Some(Round::new());
        }
        self.go_round()?;
        self.follow()?;
        self.go_repairing()?;
        self.go_sweeping()
    }

    /// Finds where the rows end that the desk knows. What came behind them while nobody looked is taken before the whole
    /// file is read, which may take minutes.
    fn find_ends(&mut self) -> Result<(), Trouble> {
        for table in Table::ALL {
            let (mut before, mut looked) = (i64::MAX, 0);
            while looked < TAIL_ROWS {
                let rows = self.file.ids_before(table, before, READ_ROWS)?;
                let Some((lowest, _)) = rows.last() else {
                    self.marks.set_end(table, 0);
                    break;
                };
                (before, looked) = (*lowest, looked + rows.len());
                let ids: Vec<String> = rows.iter().map(|(_, id)| id.clone()).collect();
                let known = read(&self.app, move |tx| file::are_known(tx, table, &ids))?;
                if let Some(((number, _), _)) = rows.iter().zip(known).find(|(_, known)| *known) {
                    self.marks.set_end(table, *number);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Rows that came to the end of a table: mostly all that is new, and seen at once however long the table is.
    fn take_new(&mut self) -> Result<(), Trouble> {
        let begun = Instant::now();
        for table in Table::ALL {
            let Some(end) = self.marks.end(table) else { continue };
            // Numbers of deleted rows at the end are given again.
            let mut end = end.min(self.file.newest(table)?);
            // A flood is left to the round, which gives the other direction its turn.
            while begun.elapsed() < 10 * WORK_TIME {
                let rows = self.file.rows(table, end, READ_ROWS)?;
                let Some((last, _)) = rows.last() else { break };
                let last = *last;
                self.compare(table, end, last, rows)?;
                end = last;
            }
            self.marks.set_end(table, end);
        }
        Ok(())
    }

    /// Goes on through the whole file.
    fn go_round(&mut self) -> Result<(), Trouble> {
        let begun = Instant::now();
        while begun.elapsed() < WORK_TIME {
            let Some(Round { tables, after }) = &self.round else { return Ok(()) };
            let Some(table) = tables.first().copied() else {
                self.round = None;
                self.end_round();
                return Ok(());
            };
            let after = *after;
            let rows = self.file.rows(table, after, READ_ROWS)?;
            let last = rows.last().map(|(number, _)| *number);
            self.counts.rows += rows.len();
            self.compare(table, after, last.unwrap_or(i64::MAX), rows)?;
            let Some(round) = &mut self.round else { return Ok(()) };
            if let Some(last) = last {
                round.after = last;
            } else {
                round.tables.remove(0);
                round.after = i64::MIN;
                if self.marks.end(table).is_none() {
                    self.marks.set_end(table, after.max(0));
                }
            }
        }
        Ok(())
    }

    fn end_round(&mut self) {
        let Counts { rows, imported_or_changed, put_back, skipped } = std::mem::take(&mut self.counts);
        if self.first {
            self.first = false;
            self.stale_from = None;
            tracing::info!(file = %self.path.display(), rows, taken = imported_or_changed, put_back, skipped, "the bridge file was read");
        }
    }

    /// Deals with rows of a slice that are not as they were last seen.
    fn compare(&mut self, table: Table, after: i64, upto: i64, rows: Vec<(i64, FileRow)>) -> Result<(), Trouble> {
        let Compared { changed, missing } = self.marks.compare(table, after, upto, rows)?;
        self.missing += missing;
        self.settle(table, &changed)
    }

    /// Deals with rows that nobody has looked at as they are now.
    fn settle(&mut self, table: Table, changed: &[Changed]) -> Result<(), Trouble> {
        for part in changed.chunks(SETTLE_ROWS) {
            let rows: Vec<FileRow> = part.iter().map(|one| one.row.clone()).collect();
            let same = read(&self.app, move |tx| file::same(tx, &rows))?;
            let mut differ = Vec::new();
            for (one, same) in part.iter().zip(same) {
                if same {
                    self.marks.note(table, one.number, &one.row)?;
                } else {
                    differ.push(one.clone());
                }
            }
            if !differ.is_empty() {
                self.settle_differing(table, differ)?;
            }
        }
        Ok(())
    }

    fn settle_differing(&mut self, table: Table, rows: Vec<Changed>) -> Result<(), Trouble> {
        let mirrored = self.stale_from.unwrap_or(self.next);
        let only: Vec<Differing> = rows.iter().map(|one| Differing { row: one.row.clone(), by_hand: one.by_hand }).collect();
        let settled = act(&self.app, move |cx| file::settle(cx, &only, mirrored))?;
        let (mut put, mut remove) = (Vec::new(), Vec::new());
        for (Changed { number, row, .. }, settled) in rows.into_iter().zip(settled) {
            match settled {
                Settled::Keep => self.counts.imported_or_changed += 1,
                Settled::Put(wanted) => put.push(*wanted),
                Settled::Remove => remove.push(row.id.clone()),
                Settled::Skipped { later } => {
                    self.counts.skipped += 1;
                    tracing::warn!(table = table.name(), row = number, later, "a row of the bridge file was not taken; the record says why");
                    if later {
                        self.look_at = Some(Instant::now() + AGAIN);
                        continue;
                    }
                }
            }
            self.marks.note(table, number, &row)?;
        }
        self.counts.put_back += self.file.put(table, &put, Put::Whole, &mut self.marks)?;
        self.file.remove(table, &remove, &self.marks)
    }

    /// Shows what the record has news about.
    fn follow(&mut self) -> Result<(), Trouble> {
        if self.wrote.is_some_and(|wrote| wrote.elapsed() < WRITE_GAP) {
            return Ok(());
        }
        for _ in 0..TURNS {
            let size = *self.grown.borrow_and_update();
            if self.next >= size {
                return Ok(());
            }
            let from = self.next;
            let (touched, rows) = read(&self.app, move |tx| {
                let touched = file::touched(tx, from, EVENTS)?;
                let mut rows = Vec::new();
                for id in &touched.messages {
                    rows.extend(file::shown(tx, Table::Messages, id)?);
                }
                for id in &touched.tasks {
                    rows.extend(file::shown(tx, Table::Tasks, id)?);
                }
                Ok((touched, rows))
            })?;
            if self.show(rows)? > 0 {
                self.wrote = Some(Instant::now());
            }
            if touched.pruned {
                self.sweep = Some(Sweep::new());
            }
            if touched.erased {
                self.file.forget_log()?;
            }
            if touched.next == from {
                return Ok(());
            }
            self.next = touched.next;
        }
        Ok(())
    }

    /// Writes rows as the desk has them.
    fn show(&mut self, rows: Vec<Shown>) -> Result<u64, Trouble> {
        let rows = if rows.iter().all(Shown::is_named) { rows } else { act(&self.app, move |cx| file::name(cx, rows.clone()))? };
        let (messages, tasks): (Vec<_>, Vec<_>) = rows.into_iter().map(|shown| shown.row).partition(|row| row.table() == Table::Messages);
        let mut written = 0;
        for (table, rows) in [(Table::Messages, messages), (Table::Tasks, tasks)] {
            if self.first {
                self.settle_unseen(table, &rows)?;
            }
            written += self.file.put(table, &rows, Put::Shown, &mut self.marks)?;
        }
        Ok(written)
    }

    /// Until the file has been read once, a row in it may say something that nobody has looked at: that comes first.
    fn settle_unseen(&mut self, table: Table, rows: &[FileRow]) -> Result<(), Trouble> {
        let mut unseen = Vec::new();
        for row in rows {
            if let Some((number, found)) = self.file.find(table, &row.id)?
                && !self.marks.has(table, number)?
            {
                unseen.push(Changed { number, row: found, by_hand: false });
            }
        }
        self.settle(table, &unseen)
    }

    /// Goes on comparing from the desk's side: everything that it has is in the file.
    fn go_repairing(&mut self) -> Result<(), Trouble> {
        // Until the file has been read once, nobody can tell a row that is missing from one that is new.
        if self.first || self.next < self.compared {
            return Ok(());
        }
        if self.missing > 0 && self.repair.is_none() && self.round.is_none() {
            self.missing = 0;
            self.repair = Some(Repair::new(true));
        }
        let begun = Instant::now();
        while begun.elapsed() < WORK_TIME {
            let Some(repair) = &self.repair else { return Ok(()) };
            let Some(table) = repair.tables.first().copied() else { return self.end_repair() };
            // Read in small steps, because others read as well, and written together, because each commit waits for the disk.
            let (mut rows, mut next) = (Vec::new(), Some(repair.after.clone()));
            while rows.len() < SHOW_ROWS
                && begun.elapsed() < WORK_TIME
                && let Some(after) = next
            {
                let (more, last) = read(&self.app, move |tx| file::page(tx, table, &after, PAGE))?;
                rows.extend(more);
                next = last;
            }
            let written = self.show(rows)?;
            let Some(repair) = &mut self.repair else { return Ok(()) };
            repair.written += written;
            if next.is_none() {
                repair.tables.remove(0);
            }
            repair.after = next.unwrap_or_default();
        }
        Ok(())
    }

    fn end_repair(&mut self) -> Result<(), Trouble> {
        let Some(Repair { written, begun, known, .. }) = self.repair.take() else { return Ok(()) };
        self.sweep = Some(Sweep::new());
        let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(file = %self.path.display(), written, millis, "the bridge file shows all of the desk");
        if known && written > 0 {
            act(&self.app, move |cx| file::tell_restored(cx, written))?;
        }
        Ok(())
    }

    /// Goes on removing rows of what the desk no longer keeps.
    fn go_sweeping(&mut self) -> Result<(), Trouble> {
        let begun = Instant::now();
        while begun.elapsed() < WORK_TIME {
            let Some(sweep) = &mut self.sweep else { return Ok(()) };
            let Some(table) = sweep.tables.first().copied() else {
                self.sweep = None;
                return Ok(());
            };
            let from = sweep.after.clone();
            let (gone, next) = read(&self.app, move |tx| file::gone(tx, table, &from, SWEEP_ROWS))?;
            if !gone.is_empty() {
                let ids: Vec<String> = gone.iter().map(|gone| gone.spelled.clone()).collect();
                self.file.remove(table, &ids, &self.marks)?;
                act(&self.app, move |cx| file::forget(cx, table, &gone))?;
            }
            let Some(sweep) = &mut self.sweep else { return Ok(()) };
            if next.is_none() {
                sweep.tables.remove(0);
            }
            sweep.after = next.unwrap_or_default();
        }
        Ok(())
    }

    /// Shows the last news before the server ends.
    pub(super) fn finish(&mut self) -> Result<(), Trouble> {
        self.wrote = None;
        self.follow()?;
        self.keep_cursor()
    }

    /// Remembers how far the file has come, for the next start.
    pub(super) fn keep_cursor(&mut self) -> Result<(), Trouble> {
        if self.first || self.repair.is_some() || self.kept == self.next {
            return Ok(());
        }
        let (follower, next) = (self.follower.clone(), self.next);
        act(&self.app, move |cx| file::set_cursor(cx, &follower, next))?;
        self.kept = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use deskmate_core::call::{Call, Credential, Outcome, Registry, Surface};
    use deskmate_core::record::SigningKey;
    use serde_json::{Value, json};

    use super::*;

    /// A desk and its file, where nothing happens unless the test looks.
    struct Kept {
        app: App,
        sync: Sync,
        hand: rusqlite::Connection,
        _folder: tempfile::TempDir,
    }

    impl Kept {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let at = |name: &str| folder.path().join(name);
            let key = SigningKey::parse(&SigningKey::generate("deskmate/test", &[7; 32])).expect("a key");
            let app = App::open(&format!("sqlite:{}", at("desk.db").display()), key, false, Registry::new(), true).expect("a desk");
            let sync = Sync::open(&app, &at("messages.db"), &at("marks")).expect("a file");
            let hand = rusqlite::Connection::open(at("messages.db")).expect("the file again");
            Self { app, sync, hand, _folder: folder }
        }

        fn call(&self, credential: Credential, operation: &str, input: Value) -> Value {
            let call = Call { credential, surface: Surface::Mcp, operation: operation.to_owned(), input };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            match runtime.block_on(self.app.desk.call(call)).expect("an answer").outcome {
                Outcome::Done(answer) | Outcome::NotYet(answer) => answer,
            }
        }

        fn agent(&self, name: &str, operation: &str, input: Value) -> Value {
            self.call(Credential::Named(Some(name.to_owned())), operation, input)
        }

        /// Looks until there is nothing left to do at once.
        fn look(&mut self) {
            self.sync.look().expect("a look");
            while self.sync.is_busy() {
                self.sync.look().expect("a look");
            }
        }

        fn status(&self) -> String {
            self.hand.query_row("select status from tasks", [], |row| row.get(0)).expect("a task")
        }

        fn reports(&self) -> usize {
            let told = self.call(Credential::System, "desk_record_list", json!({ "kind": "bridge_file.reverted" }));
            told["events"].as_array().expect("events").len()
        }
    }

    /// The mark tells a row that somebody changed from one that is only behind.
    #[test]
    fn a_change_by_hand_before_the_file_shows_a_step_is_reported() {
        let mut kept = Kept::new();
        let task = kept.agent("cowork", "bridge_create_task", json!({ "to": "code", "title": "t" }));
        kept.look();
        assert_eq!((kept.status().as_str(), kept.reports()), ("pending", 0));
        kept.agent("code", "bridge_claim_task", json!({ "task_id": task["task_id"] }));
        kept.hand.execute("update tasks set status = 'cancelled'", []).expect("a change by hand");
        kept.look();
        assert_eq!((kept.status().as_str(), kept.reports()), ("in_progress", 1));
    }
}
