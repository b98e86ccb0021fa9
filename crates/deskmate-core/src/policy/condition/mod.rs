//! Conditions in CEL: compiled when they are loaded, checked against what an act has, evaluated when a rule is about an
//! act. The `cel` crate parses and evaluates; it takes unknown names and mixed types as they come, so [`check`] walks
//! every expression first. Whatever cannot be evaluated is an error, and an error makes its rule fire.
//!
//! Of the crate's two parsers this uses the one that needs little stack and time; [`places`] makes up for the places that
//! it does not tell.
//!
//! - [`check`]: names, functions, types and nesting, with the place of every fault.
//! - [`scope`]: what a condition is given, and its evaluation.

mod check;
mod places;
mod scope;

use std::collections::BTreeSet;

use cel::common::ast::IdedExpr;
use cel::parser::PrattParser;
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
    /// Whether it asks for what an act is called with.
    pub(super) asks_for_the_change: bool,
    /// Whether it may ask which paths an act is about.
    pub(super) asks_for_paths: bool,
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
    pub(super) asks_for_the_change: bool,
    pub(super) asks_for_paths: bool,
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
        let parse = || PrattParser::new().parse(source);
        let mut expression = parse().map_err(|errors| syntax(source, &errors))?;
        let mut found = Found::default();
        check(&mut expression, &mut found);
        if found.faults.is_empty() {
            let Found { patterns, variables, asks_for_the_change, asks_for_paths, .. } = found;
            return Ok(Self { expression, patterns, variables, asks_for_the_change, asks_for_paths });
        }
        // The walk changed the tree, so the places are those of a fresh one.
        let places = parse().map(|expression| places::places(source, &expression)).unwrap_or_default();
        let place = |id: u64| places.get(&id).copied().unwrap_or(0);
        let mut faults: Vec<Fault> = found.faults.into_iter().map(|(id, message)| Fault { before: place(id), message }).collect();
        faults.sort_by_key(|fault| fault.before);
        Err(faults)
    }
}

/// What the parser complains of, the first thing only: the others follow from it.
fn syntax(source: &str, errors: &cel::ParseErrors) -> Vec<Fault> {
    let Some(error) = errors.errors.first() else {
        return vec![Fault { before: 0, message: "this is not CEL".to_owned() }];
    };
    let (line, column) = (usize::try_from(error.pos.0).unwrap_or(1).max(1), usize::try_from(error.pos.1).unwrap_or(1).max(1));
    let start: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
    // The parser counts bytes.
    let before = source.char_indices().take_while(|(at, _)| *at < start + column - 1).count();
    let said = error.msg.trim_start_matches("Syntax error: ");
    vec![Fault { before, message: format!("this is not CEL: {said}; write for example `act.kind == 'propose' && args.amount > 1000`") }]
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn faults(source: &str) -> Vec<(usize, String)> {
        Condition::compile(source).err().unwrap_or_default().into_iter().map(|fault| (fault.before, fault.message)).collect()
    }

    #[test]
    fn a_fault_has_the_place_of_its_word() {
        for (source, before) in [
            ("act.kind == 'a' && act.knd == 'b'", 19),
            ("act.kind == 'ü' || act.kind > 5", 28),
            ("args.a.exists(x, x > 1) && nope", 27),
            ("args.a.filter(x, x > 1).exists(y, y == nope)", 39),
            ("args.a.map(x, x.b, nope + x).size() == 1", 19),
            ("args.a.exists_one(x, x == nope) && true", 26),
            ("has(args.a) && nope", 15),
            ("has(args.a) && has(act.kind)", 19),
            ("size(args.a) > 1 && sise(args.b) > 2", 20),
            ("args.a.contains('x') && args.a.contain('y')", 31),
            ("args.list[0] == 1 && act.kind[0] == 'a'", 29),
            ("[1, nope, 2] == [1]", 4),
            ("{'a': nope}.a == 1", 6),
            ("args.x ? nope : 2 == 2", 9),
            ("-5 == -nope", 7),
            ("true && (false || !act.kind)", 18),
            ("args.a.matches('ok') && args.a.matches('(')", 31),
            ("args.a.exists(x, args.b.exists(y, y == x))", 22),
        ] {
            let faults = faults(source);
            assert_eq!(faults.first().map(|(before, _)| *before), Some(before), "{source}: {faults:?}");
        }
    }

    /// On a stack half as large as that of a thread, in a build that needs more of it than the one that ships.
    #[test]
    fn no_expression_exhausts_the_stack() {
        let deep = [
            format!("{}true{}", "[".repeat(900), "]".repeat(900)),
            format!("{}true{}", "(".repeat(900), ")".repeat(900)),
            format!("{}true", "!".repeat(1_900)),
            format!("args{} == 1", ".a".repeat(900)),
            format!("args{} == 1", "[0]".repeat(600)),
            format!("{}1{}", "{'a': ".repeat(200), "}".repeat(200)),
            format!("{}true", "true ? false : ".repeat(100)),
            format!("{}1{} == 1", "int(".repeat(300), ")".repeat(300)),
            format!("args == 1{}", " + 1".repeat(400)),
            format!("true{}", "||true".repeat(300)),
        ];
        let run = move || deep.iter().for_each(|source| drop(Condition::compile(source)));
        std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
    }

    proptest! {
        #[test]
        fn any_text_is_compiled_or_refused_within_it(source in "\\PC{0,60}|([a-z.()\\[\\]{}'\"<>=!&|?:,+*/0-9 \n-]|act|args|é){0,40}") {
            if let Err(faults) = Condition::compile(&source) {
                prop_assert!(!faults.is_empty());
                prop_assert!(faults.iter().all(|fault| fault.before <= source.chars().count()));
            }
        }
    }
}
