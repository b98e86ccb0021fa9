//! Checking a draft, and putting it in force.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::draft::{self, Classified, Direction, Set, classify, whole_difference};
use super::super::{Document, FILE_KEYS, PolicyRef, Problem, Rulebook, current};
use crate::call::Cx;
use crate::limits::POLICY_BYTES_MAX;
use crate::{Error, Result, check_text};

/// Reads a draft that somebody gave, or tells all its problems at once.
pub(super) fn read(text: &str) -> Result<Document> {
    check_text("document", text, POLICY_BYTES_MAX)?;
    Document::parse_within(text, FILE_KEYS).map_err(|problems| draft::refused(&problems))
}

/// Check a draft of policies, mappings and settings without applying it: every problem with its line and column, and
/// what it would change.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    /// The text, as it would stand in `deskmate.yaml`.
    document: String,
}

/// What a draft would do.
#[derive(Serialize, JsonSchema)]
pub(super) struct Checked {
    /// Whether it could be applied.
    ok: bool,
    /// What is wrong with it.
    problems: Vec<Problem>,
    /// What it would change, in lines for people.
    difference: Vec<String>,
    /// Whether any of that loosens, or may loosen, what agents may do.
    loosens: bool,
}

pub(super) fn check(cx: &mut Cx<'_, '_>, input: Check) -> Result<Checked> {
    check_text("document", &input.document, POLICY_BYTES_MAX)?;
    let rulebook = current(cx)?;
    let read = Document::parse_within(&input.document, FILE_KEYS);
    let target = read.map(|document| document.over(rulebook.parts()));
    let compiled = target.and_then(|target| Rulebook::compile(target.clone(), std::collections::BTreeMap::new()).map(|_| target));
    match compiled {
        Err(problems) => Ok(Checked { ok: false, problems, difference: Vec::new(), loosens: false }),
        Ok(target) => {
            let in_force = Set::of(rulebook.parts())?;
            let changes = classify(&in_force, whole_difference(&in_force, &Set::of(&target)?));
            let loosens = changes.iter().any(|one| one.direction == Direction::Loosens);
            Ok(Checked { ok: true, problems: Vec::new(), difference: draft::lines(&changes), loosens })
        }
    }
}

/// Put policies, mappings and settings in force, as an owner who is there. Each section that the text has takes the place
/// of the one in force; sections that it does not have stay. What is the same keeps its version.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Apply {
    /// The text, as it would stand in `deskmate.yaml`; its other settings are not looked at.
    document: String,
    /// Whether this is the file that the server reads at its start. Then it counts as submitted.
    #[serde(default)]
    file: bool,
    /// The digest of everything that was in force when you looked; if that has changed meanwhile, the answer is a conflict.
    expected_rulebook: Option<String>,
}

/// What is in force now.
#[derive(Serialize, JsonSchema)]
pub(super) struct Applied {
    /// The digest of everything in force.
    rulebook: String,
    /// Whether anything changed.
    changed: bool,
    /// What changed, in lines for people.
    difference: Vec<String>,
    /// Policies with a new version.
    policies: Vec<PolicyRef>,
    /// Policies that are no longer in force.
    retired: Vec<String>,
    /// How many changes loosened, or may have loosened, what agents may do.
    loosened: usize,
}

pub(super) fn apply(cx: &mut Cx<'_, '_>, input: Apply) -> Result<Applied> {
    let document = read(&input.document)?;
    if let Some(expected) = &input.expected_rulebook
        && *expected != current(cx)?.digest()
    {
        return Err(Error::conflict("something else was put in force meanwhile").hint("look at what is in force now, and at what your draft changes of it"));
    }
    let done = draft::apply(cx, &document, input.file)?;
    let loosened = done.changes.iter().filter(|one: &&Classified| one.direction == Direction::Loosens).count();
    Ok(Applied {
        rulebook: done.stored.digest,
        changed: !done.changes.is_empty(),
        difference: draft::lines(&done.changes),
        policies: done.stored.policies,
        retired: done.stored.retired,
        loosened,
    })
}
