//! Conditions in CEL: compiled when they are loaded, checked against what an act has, evaluated when a rule is about an
//! act. The `cel` crate parses and evaluates; it takes unknown names and mixed types as they come, so [`check`] walks
//! every expression first. Whatever cannot be evaluated is an error, and an error makes its rule fire.
//!
//! - [`check`]: names, functions, types and nesting, with the place of every fault.
//! - [`scope`]: what a condition is given, and its evaluation.

mod check;
mod scope;

use std::collections::BTreeSet;

use cel::common::ast::IdedExpr;
use regex::{Regex, RegexBuilder};

use crate::limits::CONDITION_CHARS_MAX;

pub(super) use check::{VARIABLES, check};
pub(super) use scope::{Scope, environment, holds};

/// A condition that can be evaluated.
#[derive(Debug)]
pub(super) struct Condition {
    expression: IdedExpr,
    /// The patterns that it matches texts with.
    pub(super) patterns: BTreeSet<String>,
    /// The variables that it asks for.
    pub(super) variables: BTreeSet<&'static str>,
}

/// What is wrong with an expression, and where: the characters before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) before: usize,
    pub(super) message: String,
}

/// What a walk over an expression found.
#[derive(Default)]
pub(super) struct Found {
    /// Faults with the node that they are about.
    pub(super) faults: Vec<(u64, String)>,
    pub(super) patterns: BTreeSet<String>,
    pub(super) variables: BTreeSet<&'static str>,
}

impl Condition {
    /// Compiles an expression.
    pub(super) fn compile(source: &str) -> Result<Self, Vec<Fault>> {
        let length = source.chars().count();
        if length > CONDITION_CHARS_MAX {
            return Err(vec![Fault { before: 0, message: format!("the condition is {length} characters long: write at most {CONDITION_CHARS_MAX}") }]);
        }
        if source.trim().is_empty() {
            return Err(vec![Fault { before: 0, message: "the condition is empty: leave `when` out for a rule that always fires".to_owned() }]);
        }
        // Two parsers of the same crate: the quick one for what is right, and the one that remembers places for what is
        // not. A test holds them to the same trees.
        let mut expression = match cel::parser::PrattParser::new().parse(source) {
            Ok(expression) => expression,
            Err(errors) => return Err(located(source).unwrap_or_else(|| syntax(source, &errors))),
        };
        let mut found = Found::default();
        check(&mut expression, &mut found);
        if !found.faults.is_empty() {
            let unplaced = || found.faults.iter().map(|(_, message)| Fault { before: 0, message: message.clone() }).collect();
            return Err(located(source).unwrap_or_else(unplaced));
        }
        Ok(Self { expression, patterns: found.patterns, variables: found.variables })
    }
}

/// The faults of an expression with their places; `None` if this parser sees none.
fn located(source: &str) -> Option<Vec<Fault>> {
    let (mut expression, places) = match cel::parser::Parser::new().parse_with_source_info(source) {
        Ok(parsed) => parsed,
        Err(errors) => return Some(syntax(source, &errors)),
    };
    let mut found = Found::default();
    check(&mut expression, &mut found);
    let place = |id: u64| places.offset_for(id).map_or(0, |(start, _)| start as usize);
    let mut faults: Vec<Fault> = found.faults.into_iter().map(|(id, message)| Fault { before: place(id), message }).collect();
    faults.sort_by_key(|fault| fault.before);
    (!faults.is_empty()).then_some(faults)
}

/// What a parser complains of, the first thing only: the others follow from it.
fn syntax(source: &str, errors: &cel::ParseErrors) -> Vec<Fault> {
    let Some(error) = errors.errors.first() else {
        return vec![Fault { before: 0, message: "this is not CEL".to_owned() }];
    };
    let (line, column) = (usize::try_from(error.pos.0).unwrap_or(1).max(1), usize::try_from(error.pos.1).unwrap_or(1).max(1));
    let before: usize = source.split_inclusive('\n').take(line - 1).map(|line| line.chars().count()).sum();
    let said = error.msg.trim_start_matches("Syntax error: ");
    let said = said.split(" expecting ").next().unwrap_or(said);
    vec![Fault { before: before + column - 1, message: format!("this is not CEL: {said}; write for example `act.kind == 'propose' && args.amount > 1000`") }]
}

/// Compiles a pattern as rules and conditions use them: linear in the text, and bounded in memory.
pub(super) fn regex(pattern: &str) -> Result<Regex, String> {
    let problem = |error: regex::Error| match error {
        regex::Error::CompiledTooBig(_) => "the pattern is too large: write a smaller one".to_owned(),
        error => {
            let said = error.to_string();
            let last = said.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            format!("the pattern cannot be read: {last}; look-around and back references do not exist here")
        }
    };
    RegexBuilder::new(pattern).size_limit(1 << 20).dfa_size_limit(1 << 20).build().map_err(problem)
}
