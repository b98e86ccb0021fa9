//! The file as a draft: what becomes of it when the desk starts, and when the desk is claimed.

use deskmate_db::args;
use serde_json::{Value, json};

use super::super::{Act, Document, store};
use super::apply::compile;
use super::compare::{Classified, Direction, classify, with};
use super::items::{Change, Digests, Key, Set, difference};
use super::show;
use crate::call::Cx;
use crate::identity;
use crate::limits::CONTENT_BYTES_MAX;
use crate::record::{Event, Kind};
use crate::request::{self, New, Packet, Priority, RequestKind};
use crate::{Error, Result, digest, hex};

/// A draft was compared with what is in force.
pub(crate) const CHANGED: Kind =
    Kind { name: "policy.drafted", says: "A draft of policies was compared with what is in force; what tightens was applied, the rest waits for an owner." };

/// The digests of the file's pieces as they were last submitted.
const DRAFT: &str = "policy_draft";
/// The pieces of a file that waits for the first owner.
const WAITING: &str = "policy_waiting";
/// The request that holds what waits.
const REQUEST: &str = "policy_request";

/// What became of a draft.
#[derive(Clone, Debug, Default)]
pub struct Submitted {
    /// What was applied at once.
    pub applied: Vec<Classified>,
    /// What waits for an owner.
    pub waiting: Vec<Classified>,
    /// The request that holds what waits.
    pub request: Option<String>,
    /// Whether the desk has no owner yet, so that all of it waits for the claim.
    pub unclaimed: bool,
    /// Whether what waits is too much for one request: then an owner applies the file.
    pub too_large: bool,
}

/// Takes the file as a draft. Only what the file itself changed since it was last submitted counts, so a file that stays
/// as it was never undoes what a person accepted later.
pub fn submit(cx: &mut Cx<'_, '_>, document: &Document) -> Result<Submitted> {
    let draft = Set::of_document(document)?;
    if !identity::is_claimed(cx.tx)? {
        keep(cx, WAITING, &draft.to_json().to_string())?;
        return Ok(Submitted { unclaimed: true, ..Submitted::default() });
    }
    let mut base = kept(cx, DRAFT)?.map(|text| Digests::read(&text)).transpose()?.unwrap_or_default();
    let digests = draft.digests()?;
    if digests == base {
        return Ok(Submitted::default());
    }
    keep(cx, DRAFT, &json!(digests).to_string())?;
    let in_force = Set::of(super::super::current(cx)?.parts())?;
    // What still waits is drawn anew, as far as the file still says so: the new request stands in the place of the old.
    let held = pending(cx)?;
    let held_changes = held.as_ref().map(|request| request.act().and_then(|act| changes_of(&act))).transpose()?.unwrap_or_default();
    base.forget(held_changes.iter().map(|change| &change.key));
    let mut changes = difference(&in_force, &draft, Some(&base))?;
    for change in held_changes.into_iter().filter(|change| change.to.is_none() && draft.get(&change.key).is_none()) {
        if let Some(body) = in_force.get(&change.key) {
            changes.push(Change { from: Some(body.clone()), ..change });
        }
    }
    let (waiting, applied): (Vec<_>, Vec<_>) = classify(&in_force, changes).into_iter().partition(|one| one.direction == Direction::Loosens);
    if let Some(held) = held.as_ref().filter(|_| waiting.is_empty()) {
        request::withdraw(cx, &held.id, "the file no longer says so")?;
    }
    if waiting.is_empty() && applied.is_empty() {
        return Ok(Submitted::default());
    }
    if !applied.is_empty() {
        let target = with(&in_force, applied.iter().map(|one| &one.change)).parts()?;
        compile(&target)?;
        store(cx, &target, "desk")?;
    }
    let size: usize =
        waiting.iter().map(|one| [&one.change.from, &one.change.to].into_iter().flatten().map(|body| body.to_string().len()).sum::<usize>()).sum();
    let too_large = size > CONTENT_BYTES_MAX;
    if too_large {
        // Nothing of it holds. It counts as not submitted, so that the next start says so again.
        keep(cx, DRAFT, &json!(without(&digests, &waiting)).to_string())?;
    }
    let request = if waiting.is_empty() || too_large { None } else { Some(hold(cx, &waiting, held.map(|held| held.id))?) };
    let event = Event::new(CHANGED, "policy:draft").fact("applied", applied.len()).fact("waiting", waiting.len()).fact("request", json!(request));
    cx.emit(event.payload(json!({ "applied": bounded(&applied), "waiting": bounded(&waiting) })))?;
    Ok(Submitted { applied, waiting, request, unclaimed: false, too_large })
}

fn without(digests: &Digests, waiting: &[Classified]) -> Digests {
    let mut rest = digests.clone();
    rest.forget(waiting.iter().map(|one| &one.change.key));
    rest
}

/// So many lines of a difference are told; the whole is in the act.
const LINES_MAX: usize = 500;

fn bounded(changes: &[Classified]) -> Vec<String> {
    let mut lines = show::lines(changes);
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("… and {more} more lines"));
    }
    lines
}

/// The first file is accepted with the desk: whoever claims it accepts what the server was started with.
pub fn claimed(cx: &mut Cx<'_, '_>, owner: &str) -> Result<()> {
    let Some(text) = kept(cx, WAITING)? else { return Ok(()) };
    let draft = Set::from_json(&text)?;
    cx.tx.execute("delete from desk where key = $1", args![WAITING])?;
    keep(cx, DRAFT, &json!(draft.digests()?).to_string())?;
    let in_force = Set::of(super::super::current(cx)?.parts())?;
    let target = with(&in_force, &difference(&in_force, &draft, None)?).parts()?;
    compile(&target)?;
    store(cx, &target, owner)?;
    Ok(())
}

/// Notes that the file as it is now was submitted, because an owner applied it.
pub(super) fn note_applied(cx: &mut Cx<'_, '_>, draft: &Set) -> Result<()> {
    keep(cx, DRAFT, &json!(draft.digests()?).to_string())
}

/// Makes the request that holds what loosens, in the place of an earlier one.
fn hold(cx: &mut Cx<'_, '_>, waiting: &[Classified], supersedes: Option<String>) -> Result<String> {
    let changes: Vec<&Change> = waiting.iter().map(|one| &one.change).collect();
    let after = with(&Set::of(super::super::current(cx)?.parts())?, changes.iter().copied());
    let act = act_of(&changes, &after)?;
    let decision = request::for_people(cx, DOMAIN, "high", "it loosens what agents may do, so an owner accepts it")?;
    let title = format!("Accept {} in the policies", if changes.len() == 1 { "a change".to_owned() } else { format!("{} changes", changes.len()) });
    let packet = Packet {
        reasoning: Some("deskmate.yaml differs from what is in force, and this part of the difference may give agents more.".to_owned()),
        reversibility: Some("Every version is kept; an earlier one can be applied again.".to_owned()),
        more: json!({ "difference": bounded(waiting) }),
        ..Packet::default()
    };
    let new = New { packet, priority: Priority::High, supersedes, ..New::new(RequestKind::Policy, title, act, decision) };
    let made = request::submit(cx, new)?;
    keep(cx, REQUEST, &made.id)?;
    Ok(made.id)
}

/// Asks an owner for a change of policies that somebody wishes.
pub(crate) fn propose(cx: &mut Cx<'_, '_>, changes: Vec<Change>, title: String, why: String) -> Result<request::Request> {
    let in_force = Set::of(super::super::current(cx)?.parts())?;
    let after = with(&in_force, &changes);
    compile(&after.parts()?)?;
    let act = act_of(&changes.iter().collect::<Vec<_>>(), &after)?;
    let decision = request::for_people(cx, DOMAIN, "high", "what holds on this desk is decided by an owner")?;
    let packet = Packet {
        reasoning: Some(why),
        reversibility: Some("Every version is kept; an earlier one can be applied again.".to_owned()),
        more: json!({ "difference": bounded(&classify(&in_force, changes)) }),
        ..Packet::default()
    };
    request::submit(cx, New { packet, ..New::new(RequestKind::Policy, title, act, decision) })
}

/// The domain of what concerns the desk itself.
const DOMAIN: &str = "desk.policy";
/// The kind of the act that puts policies in force.
pub(super) const ACT_KIND: &str = "policy.apply";

/// The act that puts changes in force. It names the digest of every policy that a new mapping brings into use, so that
/// none of them says something else by the time it is accepted.
fn act_of(changes: &[&Change], after: &Set) -> Result<Act> {
    let mut policies = serde_json::Map::new();
    for change in changes.iter().filter(|change| change.to.is_some()) {
        if let Key::Mapping { policy, .. } = &change.key
            && let Some(body) = after.policy(policy)
        {
            policies.insert(policy.clone(), Value::from(hex(&digest(body)?)));
        }
    }
    let changes = serde_json::to_value(changes).map_err(|error| Error::invalid("changes", error.to_string()))?;
    Ok(Act {
        kind: ACT_KIND.to_owned(),
        tool: "desk_policy_apply".to_owned(),
        domain: DOMAIN.to_owned(),
        action: "apply".to_owned(),
        target: "the policies in force".to_owned(),
        arguments: json!({ "changes": changes, "policies": policies }),
        ..Act::default()
    })
}

/// The changes of a request.
pub(super) fn changes_of(act: &Act) -> Result<Vec<Change>> {
    let changes = act.arguments.get("changes").cloned().unwrap_or(Value::Null);
    serde_json::from_value(changes).map_err(|error| Error::invalid("changes", format!("cannot be read: {error}")))
}

/// The digests of the policies that new mappings of a request bring into use.
pub(super) fn policies_of(act: &Act) -> Vec<(String, String)> {
    let named = act.arguments.get("policies").and_then(Value::as_object).into_iter().flatten();
    named.map(|(name, digest)| (name.clone(), digest.as_str().unwrap_or_default().to_owned())).collect()
}

fn kept(cx: &mut Cx<'_, '_>, key: &str) -> Result<Option<String>> {
    Ok(cx.tx.optional("select value from desk where key = $1", args![key])?.map(|row| row.get(0)).transpose()?)
}

fn keep(cx: &mut Cx<'_, '_>, key: &str, value: &str) -> Result<()> {
    cx.tx.execute("insert into desk (key, value) values ($1, $2) on conflict (key) do update set value = excluded.value", args![key, value])?;
    Ok(())
}

/// The pending request that holds what waits, if there is one.
pub(super) fn pending(cx: &mut Cx<'_, '_>) -> Result<Option<request::Request>> {
    let Some(id) = kept(cx, REQUEST)? else { return Ok(None) };
    let now = cx.now();
    Ok(request::find_whole(cx, &id)?.filter(|request| request.state_at(now) == request::State::Pending))
}
