//! Whether an audit file says what the record says: both are read side by side, from the first line to the last, so that a line
//! that was changed, taken out, put in or moved is found where it stands.

use std::collections::VecDeque;

use serde_json::Value;

use super::super::plan;
use super::{End, LATE_US, LOOK, is_of, lines_of, plan_of};
use crate::Result;
use crate::call::Cx;
use crate::record::{self, Leaf};

/// The first line that does not say what the record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, counted from 1.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}

/// A walk through an audit file beside the record. It holds the lines of one event at a time.
#[derive(Clone)]
pub struct AuditCheck {
    root: String,
    lines: u64,
    /// Events up to this place were read.
    after: Option<u64>,
    ahead: VecDeque<Leaf>,
    now: Option<Told>,
}

/// An event, and how far the file has told it.
#[derive(Clone)]
struct Told {
    plan: String,
    seq: u64,
    leaf: String,
    /// How many steps it tells of.
    steps: usize,
    /// Their lines; none if the steps were erased, or went with an old plan.
    lines: Vec<String>,
    /// How many the file has had.
    at: usize,
}

impl Told {
    fn is_over(&self) -> bool {
        self.at >= self.steps
    }
}

impl AuditCheck {
    /// Before the first line of the file of this root.
    pub fn new(root: &str) -> Self {
        Self { root: root.to_owned(), lines: 0, after: None, ahead: VecDeque::new(), now: None }
    }

    /// How many lines were good so far.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Checks the next lines.
    pub fn check(&mut self, cx: &mut Cx<'_, '_>, lines: &[String]) -> Result<Option<BadLine>> {
        for line in lines {
            if let Some(why) = self.wrong(cx, line)? {
                return Ok(Some(BadLine { line: self.lines + 1, why }));
            }
            self.lines += 1;
        }
        Ok(None)
    }

    /// How many lines the record has behind the last one of the file, of so many events, and whether there are more of those.
    /// Lines of plans that only just ended, or have not yet, do not count: they are still to be written.
    pub fn missing(&mut self, cx: &mut Cx<'_, '_>, events: usize) -> Result<(u64, bool)> {
        let (mut missing, before) = (0, cx.now().saturating_sub(LATE_US));
        for _ in 0..events {
            if !self.go_on(cx)? {
                return Ok((missing, false));
            }
            if let Some(told) = self.now.take()
                && plan::ended_before(cx, &told.plan, before)?
            {
                missing += told.lines.len().saturating_sub(told.at) as u64;
            }
        }
        Ok((missing, true))
    }

    fn wrong(&mut self, cx: &mut Cx<'_, '_>, line: &str) -> Result<Option<String>> {
        let Ok(said) = serde_json::from_str::<End>(line) else { return Ok(Some("it is not a whole line of an audit file".to_owned())) };
        loop {
            if !self.go_on(cx)? {
                return Ok(Some(format!("it tells of event {}, and the record has no further event of this root", said.seq)));
            }
            let Some(told) = &mut self.now else { return Ok(None) };
            // Of steps that are not there any more the file may tell, if it was written before; it need not.
            if said.seq > told.seq && told.at == 0 && told.lines.is_empty() {
                told.at = told.steps;
                continue;
            }
            if said.seq != told.seq {
                return Ok(Some(format!("it tells of event {}, where step {} of event {} should stand", said.seq, told.at + 1, told.seq)));
            }
            if said.leaf != told.leaf {
                return Ok(Some(format!("its hash is not that of event {} of the record", told.seq)));
            }
            if said.step != told.at + 1 {
                return Ok(Some(format!("it tells of step {} of event {}, where step {} should stand", said.step, told.seq, told.at + 1)));
            }
            if told.lines.get(told.at).is_some_and(|known| known != line) {
                return Ok(Some(format!("it does not say what event {} of the record says of step {}", told.seq, said.step)));
            }
            told.at += 1;
            return Ok(None);
        }
    }

    /// Goes on to the next event of the root if all of this one was told; says whether there is one.
    fn go_on(&mut self, cx: &mut Cx<'_, '_>) -> Result<bool> {
        while self.now.as_ref().is_none_or(Told::is_over) {
            if self.ahead.is_empty() {
                let leaves = record::leaves_after(cx.tx, plan::OUTCOMES.name, self.after, LOOK)?;
                let Some(last) = leaves.last() else { return Ok(false) };
                self.after = Some(last.event.seq);
                self.ahead.extend(leaves.into_iter().filter(|leaf| is_of(leaf, &self.root)));
            }
            let Some(leaf) = self.ahead.pop_front() else { continue };
            let count = |name: &str| leaf.event.facts.get(name).and_then(Value::as_u64).unwrap_or(0);
            let steps = ["done", "skipped", "failed", "unclear"].map(count).iter().sum::<u64>();
            let lines = lines_of(cx, &leaf)?;
            let plan = plan_of(&leaf).to_owned();
            self.now = Some(Told { plan, seq: leaf.event.seq, leaf: leaf.hash, steps: usize::try_from(steps).unwrap_or(usize::MAX), lines, at: 0 });
        }
        Ok(true)
    }
}
