//! The audit file of a root: one line for each step that was done or tried there, made from the record, with the place and
//! the hash of the event that tells it. Whoever holds the record or a proof from it can check every line.
//!
//! - Here: which lines come next. [`check`]: whether a whole file says what the record says.
//! - [`verify`]: the job that looks, and what is told of it.

mod check;
mod verify;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::{self, Action, StepState};
use crate::call::Cx;
use crate::record::{self, Leaf};
use crate::{Result, canonical, parse_time};

pub use check::{AuditCheck, BadLine};
pub use verify::{AUDIT_JOB, AuditFound, audited_roots, mended, schedule_audit};
pub(super) use verify::{followed, verify_audit_file};

/// Events that one look takes; each tells of some hundred steps.
const LOOK: u32 = 4;
/// A plan whose lines are missing although it ended so long ago: somebody took them out, or they could not be written then.
const LATE_US: i64 = 60_000_000;

/// A line. The names of the first four are those that the files of earlier servers had.
#[derive(Serialize)]
struct Line<'l> {
    action: &'l str,
    from: Option<&'l str>,
    to: Option<&'l str>,
    ts_unix_ms: i64,
    seq: u64,
    leaf: &'l str,
    plan: &'l str,
    step: usize,
    actor: &'l str,
    state: StepState,
    note: Option<&'l str>,
}

/// Where a file ends.
#[derive(Deserialize)]
struct End {
    seq: u64,
    leaf: String,
    step: usize,
}

/// What comes behind the last line of an audit file.
#[derive(Debug, PartialEq, Eq)]
pub enum AuditNext {
    /// These lines; none if the file tells everything.
    Lines {
        /// One below the other.
        text: String,
        /// How many of them should have been there for a while.
        late: u64,
    },
    /// The file does not end with what the record says: somebody else wrote to it.
    NotOurs,
}

/// Lines to be written.
#[derive(Default)]
struct Lines {
    text: String,
    late: u64,
}

/// What comes behind the last line of a root's audit file, or at its beginning.
pub fn audit_next(cx: &mut Cx<'_, '_>, root: &str, last: Option<&str>) -> Result<AuditNext> {
    let end: Option<End> = match last.map(serde_json::from_str).transpose() {
        Ok(end) => end,
        Err(_) => return Ok(AuditNext::NotOurs),
    };
    let mut lines = Lines::default();
    let mut after = None;
    if let Some(end) = &end {
        let Some(leaf) = record::leaf(cx.tx, plan::OUTCOMES.name, end.seq)?.filter(|leaf| leaf.hash == end.leaf && is_of(leaf, root)) else {
            return Ok(AuditNext::NotOurs);
        };
        lines.add(cx, &leaf, end.step)?;
        after = Some(end.seq);
    }
    loop {
        let leaves = record::leaves_after(cx.tx, plan::OUTCOMES.name, after, LOOK)?;
        for leaf in leaves.iter().filter(|leaf| is_of(leaf, root)) {
            lines.add(cx, leaf, 0)?;
        }
        match leaves.last() {
            Some(last) if lines.text.is_empty() => after = Some(last.event.seq),
            _ => return Ok(AuditNext::Lines { text: lines.text, late: lines.late }),
        }
    }
}

impl Lines {
    /// Adds the lines of the steps that an event tells of, behind a number of them.
    fn add(&mut self, cx: &mut Cx<'_, '_>, leaf: &Leaf, behind: usize) -> Result<()> {
        let before = cx.now().saturating_sub(LATE_US);
        let is_late = plan::ended_before(cx, plan_of(leaf), before)?;
        for line in lines_of(cx, leaf)?.into_iter().skip(behind) {
            self.text.push_str(&line);
            self.text.push('\n');
            self.late += u64::from(is_late);
        }
        Ok(())
    }
}

fn is_of(leaf: &Leaf, root: &str) -> bool {
    leaf.event.facts.get("root").and_then(Value::as_str) == Some(root)
}

fn plan_of(leaf: &Leaf) -> &str {
    leaf.event.subject.trim_start_matches("plan:")
}

/// The lines of the steps that an event tells of. Steps that were erased, or went with an old plan, have none.
fn lines_of(cx: &mut Cx<'_, '_>, leaf: &Leaf) -> Result<Vec<String>> {
    let id = plan_of(leaf);
    let number = leaf.event.facts.get("part").and_then(Value::as_i64).unwrap_or(-1);
    let actor = leaf.event.audience.first().map_or("", String::as_str);
    let ts_unix_ms = parse_time("at", &leaf.event.at)? / 1_000;
    let line = |(at, (step, outcome)): (usize, &(plan::Step, plan::StepOutcome))| {
        let line = Line {
            action: word(step.action),
            from: step.from.as_deref(),
            to: step.to.as_deref(),
            ts_unix_ms,
            seq: leaf.event.seq,
            leaf: &leaf.hash,
            plan: id,
            step: at + 1,
            actor,
            state: outcome.state,
            note: outcome.note.as_deref(),
        };
        canonical("line", &line)
    };
    plan::done(cx, id, number)?.iter().enumerate().map(line).collect()
}

/// The word of earlier servers where they had one.
fn word(action: Action) -> &'static str {
    match action {
        Action::Trash => "soft_delete",
        other => other.name(),
    }
}
