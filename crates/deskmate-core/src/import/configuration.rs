//! Policies, mappings, settings and agents of another server.

use data_encoding::HEXLOWER_PERMISSIVE;

use super::report::{Outcome, Report};
use crate::call::Cx;
use crate::limits::POLICY_BYTES_MAX;
use crate::policy::draft::{self, Key, Set, difference};
use crate::policy::{self, Document};
use crate::{Result, check_text, identity};

/// Puts a document's pieces beside what is in force. A section of settings is merged key by key.
pub(super) fn bring_in(cx: &mut Cx<'_, '_>, text: &str, report: &mut Report) -> Result<()> {
    check_text("document", text, POLICY_BYTES_MAX)?;
    let document = Document::parse(text).map_err(|problems| draft::refused(&problems))?;
    let in_force = Set::of(policy::current(cx)?.parts())?;
    let mut draft = Set::default();
    for (key, body) in Set::of_document(&document)?.iter() {
        let mut body = body.clone();
        if let (Key::Setting { .. }, Some(serde_json::Value::Object(own)), Some(new)) = (key, in_force.get(key), body.as_object_mut()) {
            for (name, value) in own {
                new.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        draft.insert(key.clone(), body);
    }
    for (key, body) in draft.iter() {
        let outcome = match in_force.get(key) {
            None => (Outcome::Taken, None),
            Some(own) if own == body => (Outcome::Known, None),
            Some(_) => (Outcome::Changed, Some("something else was in force here; it stays as an earlier version".to_owned())),
        };
        report.note(kind_of(key), key.to_string(), outcome.0, outcome.1);
    }
    let changes = difference(&in_force, &draft, None)?;
    let target = draft::with(&in_force, &changes).parts()?;
    draft::compile(&target)?;
    if !report.dry_run && !changes.is_empty() {
        let by = cx.actor.id.clone();
        policy::store(cx, &target, &by)?;
    }
    Ok(())
}

fn kind_of(key: &Key) -> &'static str {
    match key {
        Key::Policy { .. } => "policies",
        Key::Mapping { .. } => "mappings",
        Key::Setting { .. } => "settings",
    }
}

/// Brings in an agent with the hash of its token.
pub(super) fn agent(cx: &mut Cx<'_, '_>, agent: &str, token_hash: Option<&str>, report: &mut Report) -> Result<()> {
    let what = format!("agent {agent}");
    let hash = match token_hash.map(|text| HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok())) {
        Some(None) => {
            report.note("tokens", format!("token of {agent}"), Outcome::Refused, Some("the hash is not a SHA-256 in hexadecimal digits".to_owned()));
            None
        }
        Some(Some(hash)) => Some(hash),
        None => None,
    };
    let dry = report.dry_run;
    let done = identity::bring_in(cx, agent, hash, dry)?;
    if dry && done.registered {
        report.so_far.agents.insert(agent.to_owned());
    }
    match (&done.refused, done.registered) {
        (Some(why), false) if hash.is_none() => report.note("agents", what, Outcome::Refused, Some(why.clone())),
        (_, true) => report.note("agents", what, Outcome::Taken, None),
        (_, false) => report.note("agents", what, Outcome::Known, None),
    }
    if hash.is_none() {
        return Ok(());
    }
    let advice = format!("good for 365 days; `deskmate agent rotate {agent}` gives it one of this desk's own, which is better kept");
    let (outcome, why) = match done.refused {
        Some(why) => (Outcome::Refused, Some(format!("{why}; `deskmate agent rotate {agent}` gives it a new one"))),
        None if done.token => (Outcome::Taken, Some(advice)),
        None => (Outcome::Known, None),
    };
    report.note("tokens", format!("token of {agent}"), outcome, why);
    Ok(())
}
