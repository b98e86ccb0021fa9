//! A small project for an agent that is a program: what speaks to the desk, what it does, and a test of both. It needs nothing but
//! the language itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::model::{Need, Runner};
use super::runner::{Given, Language};
use super::step::{self, Step};
use super::value::{self, Scope};
use crate::{Error, Result};

/// Whether a step is a call of an operation and nothing else.
fn is_plain(step: &Step) -> bool {
    !step::is_built_in(&step.does) && step.for_each.is_none() && step.when.is_none()
}

/// Steps as plain calls, with the values of parameters in them; nothing if they are more than that.
pub(super) fn plain_calls(steps: &[Step], params: &Map<String, Value>) -> Option<Vec<Step>> {
    let mut scope = Scope::default();
    scope.put("params", Value::Object(params.clone()));
    let plain = |step: &Step| {
        let with = Value::Object(step.with.clone());
        let is_known = value::paths(&with).is_ok_and(|paths| paths.iter().all(|path| path.starts_with("params.")));
        let Value::Object(with) = value::render(&with, &scope).ok().filter(|_| is_known && is_plain(step))? else { return None };
        Some(Step { with, ..step.clone() })
    };
    // What only reads a text as lines or a table does nothing where no later call uses it, and one that does is not plain. Nor does what
    // is checked where no call comes behind it.
    let last = steps.iter().rposition(|step| !step::is_built_in(&step.does)).unwrap_or(0);
    let does_nothing = |number: usize, step: &Step| match step.does.as_str() {
        "lines" | "parse" => true,
        "check" => number > last,
        _ => false,
    };
    let calls: Vec<&Step> = steps.iter().enumerate().filter(|(number, step)| !does_nothing(*number, step)).map(|(_, step)| step).collect();
    if calls.is_empty() { None } else { calls.into_iter().map(plain).collect() }
}

/// What a project needs of which nobody said what it does.
pub(super) fn unwritten(language: Language) -> Need {
    let file = match language {
        Language::Python => "main.py",
        Language::Javascript => "main.mjs",
        Language::Typescript => "main.mts",
        Language::Go => "main.go",
    };
    let what =
        format!("what it does: write {file} and give the project as runner, or give steps that are plain calls of operations; the project does nothing yet");
    Need { what, param: None, words: String::new() }
}

/// Makes the project. Steps that call operations become calls; what passes values between steps has no counterpart and is refused.
pub(super) fn make(language: Language, task: &str, steps: &[Step]) -> Result<Runner> {
    if let Some(other) = steps.iter().find(|step| !is_plain(step)) {
        return Err(Error::invalid("steps", format!("{} is a step that a project cannot be made of: only plain calls of operations are", other.id))
            .hint("leave the language out, and the steps run as they are"));
    }
    let calls: Vec<(String, String)> = steps.iter().map(|step| (step.does.clone(), Value::Object(step.with.clone()).to_string())).collect();
    if calls.iter().any(|(_, with)| with.contains("{{")) {
        return Err(Error::invalid("steps", "a project cannot be made of steps that use values of others").hint("leave the language out"));
    }
    let task: String = task.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(200).collect();
    let calls = serde_json::to_string(&calls).unwrap_or_else(|_| "[]".to_owned());
    let (command, test, files): (&[&str], &[&str], Vec<(&str, &str)>) = match language {
        Language::Python => (
            &["python3", "main.py"],
            &["python3", "-m", "unittest", "-v"],
            vec![
                ("main.py", include_str!("project/main.py")),
                ("desk.py", include_str!("project/desk.py")),
                ("test_main.py", include_str!("project/test_main.py")),
            ],
        ),
        Language::Javascript => (
            &["node", "main.mjs"],
            &["node", "--test"],
            vec![
                ("main.mjs", include_str!("project/main.mjs")),
                ("desk.mjs", include_str!("project/desk.mjs")),
                ("main.test.mjs", include_str!("project/main.test.mjs")),
            ],
        ),
        Language::Typescript => (
            &["node", "--experimental-strip-types", "main.mts"],
            &["node", "--experimental-strip-types", "--test", "main.test.mts"],
            vec![
                ("main.mts", include_str!("project/main.mts")),
                ("desk.mts", include_str!("project/desk.mts")),
                ("main.test.mts", include_str!("project/main.test.mts")),
            ],
        ),
        Language::Go => (
            &["go", "run", "."],
            &["go", "test", "./..."],
            vec![
                ("main.go", include_str!("project/main.go.txt")),
                ("desk.go", include_str!("project/desk.go.txt")),
                ("main_test.go", include_str!("project/main_test.go.txt")),
                ("go.mod", include_str!("project/go.mod.txt")),
            ],
        ),
    };
    let mut files: BTreeMap<String, String> = files.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    files.insert("calls.json".to_owned(), calls);
    files.insert("TASK.md".to_owned(), format!("{task}\n"));
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Ok(Runner::Command { command: words(command), language: Some(language), test: words(test), files, given: Given::default() })
}
