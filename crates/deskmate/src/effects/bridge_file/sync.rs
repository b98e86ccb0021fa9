//! Both directions: rows of the file are settled with the desk, and news of the record are shown in the file.
//!
//! One thread does both, one after the other, so that it always knows what it wrote itself: a row that differs from
//! what was last seen was changed by somebody else.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use deskmate_core::bridge::file::{self, FileRow, Settled, Shown, Table};
use deskmate_core::hex;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::file::{File, Put, Seen};
use super::{Trouble, act, read};
use crate::app::App;

/// Rows of the file that are read at once, and those of them that are settled in one transaction of the desk.
const READ_ROWS: usize = 500;
const SETTLE_ROWS: usize = 100;
/// How long one look goes through the file before the other direction has its turn.
const READ_TIME: Duration = Duration::from_millis(150);
/// Events that are looked at together, and how often in one look.
const EVENTS: u32 = 200;
const TURNS: u32 = 5;
/// How many events a file may be behind at the start and still be brought up to date by them.
const CATCH_UP: u64 = 10_000;
/// Messages or tasks that are compared together.
const PAGE: u32 = 100;
/// How long the file's writer lock is left alone between two writes.
const WRITE_GAP: Duration = Duration::from_millis(300);
/// When rows that could not be taken yet are looked at again.
const AGAIN: Duration = Duration::from_secs(30);

/// What a round through the whole file is at.
struct Round {
    tables: Vec<Table>,
    after: i64,
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

#[derive(Default)]
struct Counts {
    imported_or_changed: u64,
    put_back: u64,
    skipped: u64,
}

/// An open file that is kept in step.
pub(super) struct Sync {
    app: App,
    path: PathBuf,
    file: File,
    messages: Seen,
    tasks: Seen,
    grown: watch::Receiver<u64>,
    /// The first event that the file does not show yet.
    mirrored: u64,
    /// The record's size at the start, when everything is compared.
    compared: u64,
    /// Whether events before that are followed one by one first, so that news are not taken for rows that were lost.
    near: bool,
    kept: u64,
    follower: String,
    version: i64,
    number: u32,
    round: Option<Round>,
    /// Whether somebody wrote while a round was under way.
    again: bool,
    look_at: Option<Instant>,
    repair: Option<Repair>,
    first: bool,
    wrote: Option<Instant>,
    counts: Counts,
}

impl Sync {
    pub(super) fn open(app: &App, path: &Path) -> Result<Self, Trouble> {
        let digest = hex(&Sha256::digest(path.as_os_str().as_encoded_bytes()));
        let follower = format!("bridge_file:{}", digest.get(..16).unwrap_or_default());
        let name = follower.clone();
        let cursor = read(app, move |tx| file::cursor(tx, &name))?;
        let size = *app.live.size().borrow();
        let file = File::open(path)?;
        let version = file.version()?;
        // What the file has to catch up with is followed; after a long absence comparing is all that is needed.
        let near = cursor.filter(|cursor| size.saturating_sub(*cursor) <= CATCH_UP);
        let repair = Repair { tables: Table::ALL.to_vec(), after: String::new(), written: 0, begun: Instant::now(), known: near.is_some() };
        tracing::info!(file = %path.display(), "the bridge file is open and compared with the desk");
        Ok(Self {
            app: app.clone(),
            path: path.to_owned(),
            file,
            messages: Seen::default(),
            tasks: Seen::default(),
            grown: app.live.size(),
            mirrored: cursor.unwrap_or(0).min(size),
            compared: size,
            near: near.is_some(),
            kept: cursor.unwrap_or(u64::MAX),
            follower,
            version,
            number: 1,
            round: Some(Round { tables: Table::ALL.to_vec(), after: 0 }),
            again: false,
            look_at: None,
            repair: Some(repair),
            first: true,
            wrote: None,
            counts: Counts::default(),
        })
    }

    pub(super) fn is_same_file(&self, path: &Path) -> bool {
        self.file.is_at(path)
    }

    /// Whether there is more to do at once.
    pub(super) fn is_busy(&self) -> bool {
        self.round.is_some() || (self.repair.is_some() && self.mirrored >= self.compared)
    }

    /// One look at both sides.
    pub(super) fn look(&mut self) -> Result<(), Trouble> {
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
            self.number = self.number.wrapping_add(1);
            self.round = Some(Round { tables: Table::ALL.to_vec(), after: 0 });
        }
        self.go_round()?;
        if self.first {
            // Until the file has been read once, nobody can tell a row that is missing from one that is new.
            return Ok(());
        }
        self.follow()?;
        self.go_repairing()
    }

    fn seen(&mut self, table: Table) -> &mut Seen {
        match table {
            Table::Messages => &mut self.messages,
            Table::Tasks => &mut self.tasks,
        }
    }

    /// Rows that came to the end of a table: mostly all that is new, and seen at once however long the table is.
    fn take_new(&mut self) -> Result<(), Trouble> {
        if self.first {
            return Ok(());
        }
        let begun = Instant::now();
        for table in Table::ALL {
            // A flood is left to the round, which gives the other direction its turn.
            while begun.elapsed() < READ_TIME {
                let newest = self.seen(table).newest;
                let rows = self.file.rows(table, newest, READ_ROWS)?;
                let Some((last, _)) = rows.last() else { break };
                let last = *last;
                self.settle(table, rows)?;
                let seen = self.seen(table);
                seen.newest = seen.newest.max(last);
            }
        }
        Ok(())
    }

    /// Goes on through the whole file.
    fn go_round(&mut self) -> Result<(), Trouble> {
        let begun = Instant::now();
        while begun.elapsed() < READ_TIME {
            let Some(round) = &mut self.round else { return Ok(()) };
            let Some(table) = round.tables.first().copied() else {
                self.round = None;
                self.end_round();
                return Ok(());
            };
            let after = round.after;
            let rows = self.file.rows(table, after, READ_ROWS)?;
            let last = rows.last().map(|(rowid, _)| *rowid);
            self.settle(table, rows)?;
            if let Some(round) = &mut self.round {
                round.after = last.unwrap_or(0);
                if last.is_none() {
                    round.tables.remove(0);
                }
            }
        }
        Ok(())
    }

    fn end_round(&mut self) {
        let number = self.number;
        let missing = self.messages.drop_missing(number) + self.tasks.drop_missing(number);
        if self.first {
            self.first = false;
            if !self.near {
                self.mirrored = self.mirrored.max(self.compared);
            }
            let Counts { imported_or_changed, put_back, skipped } = std::mem::take(&mut self.counts);
            let rows = self.messages.len() + self.tasks.len();
            tracing::info!(file = %self.path.display(), rows, taken = imported_or_changed, put_back, skipped, "the bridge file was read");
        }
        if missing > 0 && self.repair.is_none() {
            self.repair = Some(Repair { tables: Table::ALL.to_vec(), after: String::new(), written: 0, begun: Instant::now(), known: true });
        }
    }

    /// Deals with rows that are not as they were last seen.
    fn settle(&mut self, table: Table, rows: Vec<(i64, FileRow)>) -> Result<(), Trouble> {
        let number = self.number;
        let seen = self.seen(table);
        let changed: Vec<(i64, FileRow)> = rows.into_iter().filter(|(rowid, row)| !seen.knows(*rowid, row, number)).collect();
        for part in changed.chunks(SETTLE_ROWS) {
            let rows: Vec<FileRow> = part.iter().map(|(_, row)| row.clone()).collect();
            let same = read(&self.app, {
                let rows = rows.clone();
                move |tx| file::same(tx, &rows)
            })?;
            let mut differ = Vec::new();
            for ((rowid, row), same) in part.iter().zip(same) {
                if same {
                    self.seen(table).note(*rowid, row, number);
                } else {
                    differ.push((*rowid, row.clone()));
                }
            }
            if !differ.is_empty() {
                self.settle_differing(table, differ)?;
            }
        }
        Ok(())
    }

    fn settle_differing(&mut self, table: Table, rows: Vec<(i64, FileRow)>) -> Result<(), Trouble> {
        let (number, mirrored) = (self.number, self.mirrored);
        let only: Vec<FileRow> = rows.iter().map(|(_, row)| row.clone()).collect();
        let settled = act(&self.app, move |cx| file::settle(cx, &only, mirrored))?;
        let (mut put, mut remove) = (Vec::new(), Vec::new());
        for ((rowid, row), settled) in rows.into_iter().zip(settled) {
            match settled {
                Settled::Keep => self.counts.imported_or_changed += 1,
                Settled::Put(wanted) => put.push(*wanted),
                Settled::Remove => remove.push(row.id.clone()),
                Settled::Skipped { later } => {
                    self.counts.skipped += 1;
                    tracing::warn!(table = table.name(), row = rowid, later, "a row of the bridge file was not taken; the record says why");
                    if later {
                        self.look_at = Some(Instant::now() + AGAIN);
                        continue;
                    }
                }
            }
            self.seen(table).note(rowid, &row, number);
        }
        let seen = match table {
            Table::Messages => &mut self.messages,
            Table::Tasks => &mut self.tasks,
        };
        self.counts.put_back += self.file.put(table, &put, Put::Whole, seen, number)?;
        self.file.remove(table, &remove, seen)
    }

    /// Shows what the record has news about.
    fn follow(&mut self) -> Result<(), Trouble> {
        if self.wrote.is_some_and(|wrote| wrote.elapsed() < WRITE_GAP) {
            return Ok(());
        }
        for _ in 0..TURNS {
            let size = *self.grown.borrow_and_update();
            if self.mirrored >= size {
                return Ok(());
            }
            let from = self.mirrored;
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
                self.remove_gone()?;
            }
            if touched.erased {
                self.file.forget_log()?;
            }
            if touched.next == from {
                return Ok(());
            }
            self.mirrored = touched.next;
        }
        Ok(())
    }

    /// Writes rows as the desk has them.
    fn show(&mut self, rows: Vec<Shown>) -> Result<u64, Trouble> {
        let rows = if rows.iter().all(Shown::is_named) { rows } else { act(&self.app, move |cx| file::name(cx, rows.clone()))? };
        let number = self.number;
        let (messages, tasks): (Vec<_>, Vec<_>) = rows.into_iter().map(|shown| shown.row).partition(|row| row.table() == Table::Messages);
        let written = self.file.put(Table::Messages, &messages, Put::Shown, &mut self.messages, number)?;
        Ok(written + self.file.put(Table::Tasks, &tasks, Put::Shown, &mut self.tasks, number)?)
    }

    /// Goes on comparing from the desk's side: everything that it has is in the file.
    fn go_repairing(&mut self) -> Result<(), Trouble> {
        if self.mirrored < self.compared {
            return Ok(());
        }
        let begun = Instant::now();
        while begun.elapsed() < READ_TIME {
            let Some(repair) = &mut self.repair else { return Ok(()) };
            let Some(table) = repair.tables.first().copied() else { return self.end_repair() };
            let after = repair.after.clone();
            let (rows, next) = read(&self.app, move |tx| file::page(tx, table, &after, PAGE))?;
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
        self.remove_gone()?;
        let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(file = %self.path.display(), written, millis, "the bridge file shows all of the desk");
        if known && written > 0 {
            act(&self.app, move |cx| file::tell_restored(cx, written))?;
        }
        Ok(())
    }

    /// Removes rows of what the desk no longer keeps.
    fn remove_gone(&mut self) -> Result<(), Trouble> {
        for table in Table::ALL {
            let mut after = Some(String::new());
            while let Some(from) = after {
                let (gone, next) = read(&self.app, move |tx| file::gone(tx, table, &from, 10 * PAGE))?;
                after = next;
                if gone.is_empty() {
                    continue;
                }
                let ids: Vec<String> = gone.iter().map(|gone| gone.spelled.clone()).collect();
                let seen = match table {
                    Table::Messages => &mut self.messages,
                    Table::Tasks => &mut self.tasks,
                };
                self.file.remove(table, &ids, seen)?;
                act(&self.app, move |cx| file::forget(cx, table, &gone))?;
            }
        }
        Ok(())
    }

    /// Shows the last news before the server ends.
    pub(super) fn finish(&mut self) -> Result<(), Trouble> {
        if !self.first {
            self.wrote = None;
            self.follow()?;
        }
        self.keep_cursor()
    }

    /// Remembers how far the file has come, for the next start.
    pub(super) fn keep_cursor(&mut self) -> Result<(), Trouble> {
        if self.first || self.repair.is_some() || self.kept == self.mirrored {
            return Ok(());
        }
        let (follower, next) = (self.follower.clone(), self.mirrored);
        act(&self.app, move |cx| file::set_cursor(cx, &follower, next))?;
        self.kept = next;
        Ok(())
    }
}
