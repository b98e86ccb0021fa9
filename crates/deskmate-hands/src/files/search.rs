//! Finding by name and by content, in the walk's order, never more than a bound.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::Mode;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::digest::BLOCK;
use super::fault::{Code, Fault};
use super::identity::{Entry, Kind};
use super::list::choice;
use super::root::Root;
use super::sys;
use super::walk::{Gaps, Visit, walk};
use super::watch::{Progress, Watch};

/// Results of one search at most.
const RESULTS_MAX: usize = 10_000;
/// What is looked at of one line, and shown of it.
const LINE_MAX: usize = 64 * 1024;
const SHOWN_MAX: usize = 500;
/// A pattern may take this much memory when it is compiled.
const PATTERN_MAX: usize = 2 * 1024 * 1024;
/// A NUL up to here makes a file binary.
const BINARY_SAMPLE: usize = 8_000;

/// Where and what to search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchSpec {
    /// The folder; empty for the root.
    pub path: String,
    /// Levels of folders.
    pub depth: usize,
    /// Also names that begin with a dot.
    pub hidden: bool,
    /// Also what ignore files leave out.
    pub ignored: bool,
    /// Only entries that match one of these globs.
    pub include: Vec<String>,
    /// Upper and lower case are one.
    pub any_case: bool,
    /// Results at most, up to 10,000.
    pub limit: usize,
    /// Files longer than this are not searched for content.
    pub file_max: u64,
    /// Where the last page ended: a path, and the number of a line in it, which does not count for names.
    pub after: Option<(String, u64)>,
}

impl Default for SearchSpec {
    fn default() -> Self {
        let (path, include) = (String::new(), Vec::new());
        Self {
            path,
            depth: super::path::DEPTH_MAX,
            hidden: false,
            ignored: false,
            include,
            any_case: false,
            limit: 200,
            file_max: 64 * 1024 * 1024,
            after: None,
        }
    }
}

/// What was found by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Set if the limit was reached.
    pub truncated: bool,
    /// Names on the way that are not UTF-8, folders that could not be read or lie too deep.
    pub left_out: u64,
}

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The file.
    pub path: String,
    /// The line's number, the first one is 1.
    pub line: u64,
    /// Where in the line the match begins, in bytes from 0.
    pub column: usize,
    /// The line, or the part of a long one around the match; what is not UTF-8 is replaced.
    pub text: String,
}

/// What was found by content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hits {
    /// The lines, by file and number.
    pub hits: Vec<Hit>,
    /// Files that were read.
    pub files: u64,
    /// Set if the limit was reached.
    pub truncated: bool,
    /// What was left out on the way: names that are not UTF-8, folders that could not be read or lie too deep, files that are
    /// binary, too long or not readable, and lines of which only the start was looked at.
    pub left_out: u64,
}

/// Finds entries whose name holds a text; an empty text finds whatever the globs choose.
pub fn search_names(root: &Root, text: &str, spec: &SearchSpec, watch: &Watch<'_>) -> Result<Names, Fault> {
    let limit = spec.limit.clamp(1, RESULTS_MAX);
    let fold = |text: &str| if spec.any_case { text.to_lowercase() } else { text.to_owned() };
    let wanted = fold(text);
    let choice = choice(root, spec.depth, spec.hidden, spec.ignored, &spec.include)?;
    let (mut found, mut before) = (Names::default(), Gaps::default());
    let after = spec.after.as_ref().map(|(path, _)| path.as_str());
    let mut gaps = walk(root, &spec.path, after, &choice, watch, &mut |visit| {
        let name = visit.name.to_str().unwrap_or_default();
        if !fold(name).contains(&wanted) {
            return ControlFlow::Continue(());
        }
        if found.entries.len() == limit {
            found.truncated = true;
            return ControlFlow::Break(());
        }
        found.entries.push(Entry { path: visit.path.to_owned(), identity: visit.identity });
        before = visit.gaps;
        ControlFlow::Continue(())
    })?;
    // What could not be shown behind the last entry is counted by the next page.
    if found.truncated {
        gaps = before;
    }
    found.left_out = gaps.count();
    Ok(found)
}

/// Finds lines that match a regular expression.
pub fn search_content(root: &Root, pattern: &str, spec: &SearchSpec, watch: &Watch<'_>) -> Result<Hits, Fault> {
    let regex = RegexBuilder::new(pattern).case_insensitive(spec.any_case).size_limit(PATTERN_MAX).dfa_size_limit(PATTERN_MAX).build();
    let regex = regex.map_err(|error| root.fault(Code::Invalid, "", &format!("the pattern is wrong: {error}")))?;
    let choice = choice(root, spec.depth, spec.hidden, spec.ignored, &spec.include)?;
    let mut search = Search {
        regex,
        limit: spec.limit.clamp(1, RESULTS_MAX),
        found: Hits::default(),
        gaps: 0,
        skipped: 0,
        block: Vec::new(),
        passed: 0,
        progress: Progress::default(),
    };
    let after = spec.after.as_ref().map(|(path, _)| path.as_str());
    // The file in which the last page ended may hold more.
    if let Some((path, line)) = &spec.after
        && let Some(file) = open_again(root, path, spec.file_max)
    {
        search.passed = *line;
        let flow = search.file(path, file.as_fd(), watch);
        search.passed = 0;
        if flow.is_break() {
            return Ok(search.found);
        }
    }
    // How far it is, is told with what was read: that is what takes the time.
    let quiet = Watch { progress: None, ..*watch };
    let gaps = walk(root, &spec.path, after, &choice, &quiet, &mut |visit| {
        search.progress.entries += 1;
        search.gaps = visit.gaps.count();
        if visit.identity.kind != Kind::File {
            return ControlFlow::Continue(());
        }
        if let Some(file) = (visit.identity.size <= spec.file_max).then(|| open(&visit)).flatten() {
            return search.file(visit.path, file.as_fd(), watch);
        }
        search.skipped += 1;
        ControlFlow::Continue(())
    })?;
    // What was left out behind the last line is counted by the next page.
    if !search.found.truncated {
        search.found.left_out = gaps.count() + search.skipped;
    }
    Ok(search.found)
}

fn open(visit: &Visit<'_>) -> Option<OwnedFd> {
    let file = rustix::fs::openat(visit.folder, visit.name, sys::FILE, Mode::empty()).ok()?;
    (sys::look_at(file.as_fd()).ok()?.kind == Kind::File).then_some(file)
}

/// The file in which a page ended, if it is still one.
fn open_again(root: &Root, path: &str, file_max: u64) -> Option<OwnedFd> {
    let path = root.path(path).ok()?;
    let file = sys::open_beneath(root.folder(), path.as_str(), sys::FILE).ok()?;
    let found = sys::look_at(file.as_fd()).ok()?;
    (found.kind == Kind::File && found.size <= file_max).then_some(file)
}

struct Search {
    /// Lines up to this one were shown before.
    passed: u64,
    regex: Regex,
    limit: usize,
    found: Hits,
    /// What the walk could not show so far, and what was left out of the files that it did show.
    gaps: u64,
    skipped: u64,
    block: Vec<u8>,
    progress: Progress,
}

impl Search {
    /// Reads a file in blocks and looks at each whole line; of a line that is longer than the bound only the start is.
    fn file(&mut self, path: &str, file: BorrowedFd<'_>, watch: &Watch<'_>) -> ControlFlow<()> {
        let mut block = std::mem::take(&mut self.block);
        block.resize(BLOCK, 0);
        let (mut kept, mut line, mut passing) = (0_usize, 1_u64, false);
        let mut first = true;
        let flow = loop {
            if watch.is_cancelled() {
                break ControlFlow::Continue(());
            }
            let Some(space) = block.get_mut(kept..) else { break ControlFlow::Continue(()) };
            let read = match rustix::io::read(file, space) {
                Ok(read) => read,
                Err(Errno::INTR) => continue,
                Err(_) => {
                    self.skipped += 1;
                    break ControlFlow::Continue(());
                }
            };
            self.progress.bytes += read as u64;
            watch.tell(self.progress);
            let mut rest = block.get(..kept + read).unwrap_or_default();
            if first {
                first = false;
                if rest.iter().take(BINARY_SAMPLE).any(|byte| *byte == 0) {
                    self.skipped += 1;
                    break ControlFlow::Continue(());
                }
                self.found.files += 1;
            }
            while let Some(end) = memchr::memchr(b'\n', rest) {
                let (this, next) = rest.split_at(end + 1);
                if !passing && self.line(path, line, this.strip_suffix(b"\n").unwrap_or(this)).is_break() {
                    self.block = block;
                    return ControlFlow::Break(());
                }
                (rest, passing) = (next, false);
                line += 1;
            }
            let at_end = read == 0;
            if !passing && (at_end || rest.len() > LINE_MAX) && !rest.is_empty() {
                if self.line(path, line, rest).is_break() {
                    self.block = block;
                    return ControlFlow::Break(());
                }
                passing = true;
            }
            if at_end {
                break ControlFlow::Continue(());
            }
            let (begin, length) = (kept + read - rest.len(), if passing { 0 } else { rest.len() });
            block.copy_within(begin..begin + length, 0);
            kept = length;
        };
        self.block = block;
        flow
    }

    fn line(&mut self, path: &str, number: u64, line: &[u8]) -> ControlFlow<()> {
        if number <= self.passed {
            return ControlFlow::Continue(());
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.skipped += u64::from(line.len() > LINE_MAX);
        let Some(found) = self.regex.find(line.get(..line.len().min(LINE_MAX)).unwrap_or_default()) else { return ControlFlow::Continue(()) };
        if self.found.hits.len() == self.limit {
            self.found.truncated = true;
            return ControlFlow::Break(());
        }
        let begin = if line.len() <= SHOWN_MAX { 0 } else { found.start().saturating_sub(SHOWN_MAX / 4) };
        let shown = line.get(begin..line.len().min(begin + SHOWN_MAX)).unwrap_or_default();
        let text = String::from_utf8_lossy(shown).into_owned();
        self.found.left_out = self.gaps + self.skipped;
        self.found.hits.push(Hit { path: path.to_owned(), line: number, column: found.start(), text });
        ControlFlow::Continue(())
    }
}
