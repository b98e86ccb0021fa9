//! What an owner who is there puts in force.

use std::collections::BTreeMap;

use super::super::model::Parts;
use super::super::{Act, Document, Problem, Rulebook, Stored, current, store};
use super::compare::{Classified, classify, with};
use super::items::{Set, whole_difference};
use super::submit::{changes_of, note_applied, pending, policies_of};
use crate::call::{Cx, Role};
use crate::{Error, Result, digest, hex, request};

/// What was put in force.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// What changed, and how it was judged.
    pub changes: Vec<Classified>,
    /// What was written.
    pub stored: Stored,
}

/// Puts a document in force: each section that it has takes the place of the one in force, and what is the same keeps its
/// version. Whoever calls this is an owner who is there; that is the acceptance. `is_file` says that this is the file
/// that the server reads at its start.
pub fn apply(cx: &mut Cx<'_, '_>, document: &Document, is_file: bool) -> Result<Applied> {
    let rulebook = current(cx)?;
    let target = document.over(rulebook.parts());
    compile(&target)?;
    let in_force = Set::of(rulebook.parts())?;
    let changes = classify(&in_force, whole_difference(&in_force, &Set::of(&target)?));
    let by = cx.actor.id.clone();
    let stored = if changes.is_empty() { Stored { digest: rulebook.digest().to_owned(), ..Stored::default() } } else { store(cx, &target, &by)? };
    if is_file {
        note_applied(cx, &Set::of_document(document)?)?;
        // What waited came from this file, and all of it holds now.
        if let Some(waiting) = pending(cx)? {
            request::withdraw(cx, &waiting.id, "an owner applied the whole file")?;
        }
    }
    Ok(Applied { changes, stored })
}

/// Puts in force what a request holds, because an owner accepted it. What was shown is what applies: if a piece is not
/// any more what it was when the difference was drawn, nothing is applied.
pub fn accept(cx: &mut Cx<'_, '_>, act: &Act) -> Result<()> {
    if cx.actor.role != Some(Role::Owner) {
        return Err(Error::forbidden("only an owner accepts a change of policies").hint("delegate it to an owner"));
    }
    let changes = changes_of(act)?;
    let in_force = Set::of(current(cx)?.parts())?;
    if let Some(moved) = changes.iter().find(|change| in_force.get(&change.key) != change.from.as_ref()) {
        return Err(Error::conflict(format!("{} was changed after this difference was drawn", moved.key))
            .hint("reject this; `deskmate policy apply` draws the difference anew"));
    }
    let after = with(&in_force, &changes);
    for (name, shown) in policies_of(act) {
        let same = match after.policy(&name) {
            Some(body) => hex(&digest(body)?) == shown,
            None => false,
        };
        if !same {
            return Err(Error::conflict(format!("the policy {name}, which a mapping would bring into use, was changed after this difference was drawn"))
                .hint("reject this; `deskmate policy apply` draws the difference anew"));
        }
    }
    let target = after.parts()?;
    compile(&target)?;
    let by = cx.actor.id.clone();
    store(cx, &target, &by)?;
    Ok(())
}

/// Refuses what could not be compiled once it is in force.
pub(crate) fn compile(parts: &Parts) -> Result<Rulebook> {
    Rulebook::compile(parts.clone(), BTreeMap::new()).map_err(|problems| refused(&problems))
}

/// All problems as one refusal.
pub(crate) fn refused(problems: &[Problem]) -> Error {
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Error::invalid("document", all.join("\n")).hint("`deskmate policy check FILE` shows every problem with its line and column")
}
