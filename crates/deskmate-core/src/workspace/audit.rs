//! The audit file of a root: one line for each step that was done or tried there, made from the record, with the place and
//! the hash of the event that tells it. Whoever holds the record or a proof from it can check every line.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::{self, Action, StepState};
use crate::call::Cx;
use crate::record::{self, Leaf};
use crate::{Result, canonical, parse_time};

/// Events that one look takes; each tells of some hundred steps.
const LOOK: u32 = 4;

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
    Lines(String),
    /// The file does not end with what the record says: somebody else wrote to it.
    NotOurs,
}

/// What comes behind the last line of a root's audit file, or at its beginning.
pub fn audit_next(cx: &mut Cx<'_, '_>, root: &str, last: Option<&str>) -> Result<AuditNext> {
    let end: Option<End> = match last.map(serde_json::from_str).transpose() {
        Ok(end) => end,
        Err(_) => return Ok(AuditNext::NotOurs),
    };
    let mut lines = String::new();
    let mut after = None;
    if let Some(end) = &end {
        let Some(leaf) = record::leaf(cx.tx, plan::OUTCOMES.name, end.seq)?.filter(|leaf| leaf.hash == end.leaf && is_of(leaf, root)) else {
            return Ok(AuditNext::NotOurs);
        };
        add(cx, &leaf, end.step, &mut lines)?;
        after = Some(end.seq);
    }
    loop {
        let leaves = record::leaves_after(cx.tx, plan::OUTCOMES.name, after, LOOK)?;
        for leaf in leaves.iter().filter(|leaf| is_of(leaf, root)) {
            add(cx, leaf, 0, &mut lines)?;
        }
        match leaves.last() {
            Some(last) if lines.is_empty() => after = Some(last.event.seq),
            _ => return Ok(AuditNext::Lines(lines)),
        }
    }
}

fn is_of(leaf: &Leaf, root: &str) -> bool {
    leaf.event.facts.get("root").and_then(Value::as_str) == Some(root)
}

/// Adds the lines of the steps that an event tells of, behind a number of them. Steps that were erased have none.
fn add(cx: &mut Cx<'_, '_>, leaf: &Leaf, behind: usize, lines: &mut String) -> Result<()> {
    let id = leaf.event.subject.trim_start_matches("plan:");
    let number = leaf.event.facts.get("part").and_then(Value::as_i64).unwrap_or(-1);
    let actor = leaf.event.audience.first().map_or("", String::as_str);
    for (at, (step, outcome)) in plan::done(cx, id, number)?.iter().enumerate().skip(behind) {
        let line = Line {
            action: word(step.action),
            from: step.from.as_deref(),
            to: step.to.as_deref(),
            ts_unix_ms: parse_time("at", &leaf.event.at)? / 1_000,
            seq: leaf.event.seq,
            leaf: &leaf.hash,
            plan: id,
            step: at + 1,
            actor,
            state: outcome.state,
            note: outcome.note.as_deref(),
        };
        lines.push_str(&canonical("line", &line)?);
        lines.push('\n');
    }
    Ok(())
}

/// The word of earlier servers where they had one.
fn word(action: Action) -> &'static str {
    match action {
        Action::Trash => "soft_delete",
        other => other.name(),
    }
}
