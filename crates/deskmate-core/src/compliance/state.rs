//! What is set at a desk, and how things stand at it: a closed list of names, each with a value that is read where it is kept.

use deskmate_db::args;
use serde_json::{Value, json};

use super::report::EventRef;
use crate::agents::{self, Subject};
use crate::call::Cx;
use crate::policy::{self, PolicyMode, settings::HookMode};
use crate::record::{self, Search};
use crate::{Result, identity};

/// Every setting that a check can ask for, and what it is.
pub(super) const KNOWN: &[(&str, &str)] = &[
    ("desk.claimed", "whether the desk has an owner"),
    ("desk.closed", "whether every agent needs its token"),
    ("policy.strict", "whether what no mapping names is held"),
    ("hooks.enforced", "whether what is decided about agents' own tools holds"),
    ("agent.proved", "whether a credential proves the agent: it is registered, or made here"),
    ("agent.described", "whether somebody said what the agent is for"),
    ("agent.rules", "how many rules hold for the agent anywhere"),
    ("people.owners", "how many owners there are"),
    ("people.deciding", "how many people may decide something"),
    ("people.without_factor", "how many people have neither a passphrase nor a passkey"),
    ("requests.overdue", "how many requests of the agent have waited for people for more than seven days"),
    ("secrets.kept", "how many secrets the desk keeps"),
    ("secrets.unsealed", "how many of them are not encrypted"),
    ("record.signed", "whether the newest checkpoint is signed by this desk's key and vouches for the record as it is"),
    ("record.verified_days", "days since the whole record was verified and found sound"),
    ("record.erasable", "whether what people wrote can be erased while every proof still holds"),
    ("listen.protected", "whether the desk is reached on this machine only, over TLS, or behind a proxy"),
    ("listen.loopback", "whether the desk is reached on this machine only"),
    ("checkpoints.copied", "whether checkpoints are copied elsewhere"),
    ("retention.messages_days", "after how many days acknowledged messages are deleted"),
    ("retention.tasks_days", "after how many days ended tasks are deleted"),
];

const DAY: i64 = 86_400_000_000;
/// Requests that are looked at for those that wait too long.
const PENDING_LOOKED: u32 = 200;

/// A setting as it was found.
pub(super) struct Found {
    /// Its value; nothing where it cannot be seen from here.
    pub(super) value: Option<Value>,
    /// The event that tells it, where one does.
    pub(super) event: Option<EventRef>,
}

impl From<Value> for Found {
    fn from(value: Value) -> Self {
        Self { value: Some(value), event: None }
    }
}

/// Reads a setting.
pub(super) fn read(cx: &mut Cx<'_, '_>, subject: &Subject, name: &str) -> Result<Found> {
    if let Some((section, key)) = name.split_once('.').filter(|(section, _)| matches!(*section, "listen" | "checkpoints" | "retention")) {
        return of_server(cx, section, key);
    }
    Ok(match name {
        "desk.claimed" => json!(identity::is_claimed(cx.tx)?).into(),
        "desk.closed" => json!(identity::mode(cx.tx)? == crate::call::Mode::Closed).into(),
        "policy.strict" => json!(policy::current(cx)?.parts().mode == PolicyMode::Strict).into(),
        "hooks.enforced" => json!(policy::current(cx)?.settings("").hooks.mode == HookMode::Enforce).into(),
        "agent.proved" => json!(subject.registered || subject.task.is_some()).into(),
        "agent.described" => json!(!subject.note.trim().is_empty() || subject.task.as_ref().is_some_and(|task| !task.trim().is_empty())).into(),
        "agent.rules" => json!(rules(cx, subject)?).into(),
        "people.owners" => json!(people(cx, |role, _, _| role == "owner")?).into(),
        "people.deciding" => json!(people(cx, |role, _, _| matches!(role, "owner" | "approver"))?).into(),
        "people.without_factor" => json!(people(cx, |_, factor, passkey| !factor && !passkey)?).into(),
        "requests.overdue" => json!(overdue(cx, &subject.agent)?).into(),
        "secrets.kept" => json!(count(cx, "select count(*) from secret where removed_at is null")?).into(),
        "secrets.unsealed" => json!(count(cx, "select count(*) from secret where removed_at is null and (sealed is null or nonce is null)")?).into(),
        "record.signed" => json!(signed(cx)?).into(),
        "record.verified_days" => verified(cx)?,
        "record.erasable" => erasable(cx)?,
        _ => Found { value: None, event: None },
    })
}

/// How many rules hold for an agent: those for everybody, and those of the policies that mappings give it or that are attached to it.
fn rules(cx: &mut Cx<'_, '_>, subject: &Subject) -> Result<usize> {
    let rulebook = policy::current(cx)?;
    let count = |name: &str| rulebook.policy(name).map_or(0, |(policy, _)| policy.rules.len());
    let mut names: Vec<&str> = domains(&rulebook, &subject.agent).iter().filter_map(|domain| rulebook.mapped(&subject.agent, domain)).flatten().collect();
    names.sort_unstable();
    names.dedup();
    let attached = agents::attached(cx, &subject.agent, &rulebook)?.map_or(0, |attached| attached.rules());
    Ok(count(policy::GLOBAL_POLICY) + names.into_iter().map(count).sum::<usize>() + attached)
}

/// The domains in which an agent is probed: one for each that its mappings name, and one that none names.
pub(super) fn domains(rulebook: &policy::Rulebook, agent: &str) -> Vec<String> {
    let is_for = |pattern: &str| pattern == agent || pattern.strip_suffix('*').is_some_and(|start| agent.starts_with(start));
    let one = |pattern: &str| pattern.strip_suffix('*').map_or_else(|| pattern.to_owned(), |start| format!("{start}any"));
    let mut domains: Vec<String> = rulebook.parts().mappings.iter().filter(|mapping| is_for(&mapping.agent)).map(|mapping| one(&mapping.domain)).collect();
    domains.push("any".to_owned());
    domains.sort_unstable();
    domains.dedup();
    domains
}

fn people(cx: &mut Cx<'_, '_>, fits: impl Fn(&str, bool, bool) -> bool) -> Result<usize> {
    let now = cx.now();
    let rows = cx.tx.query("select id, role, factor from person where state = 'active' order by id limit 5000", &[])?;
    let mut found = 0;
    for row in &rows {
        let (id, role, factor): (String, String, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let passkey = match factor {
            Some(_) => None,
            None => cx.tx.optional(
                "select id from credential where owner = $1 and kind = 'passkey' and revoked_at is null and expires_at > $2 limit 1",
                args![id, now],
            )?,
        };
        found += usize::from(fits(&role, factor.is_some(), passkey.is_some()));
    }
    Ok(found)
}

fn overdue(cx: &mut Cx<'_, '_>, agent: &str) -> Result<usize> {
    let before = cx.now().saturating_sub(7 * DAY);
    let rows = cx.tx.query(
        "select id from request where requester = $1 and created_at < $2 and state = 'pending' and expires_at > $3 order by created_at, id limit $4",
        args![agent, before, cx.now(), PENDING_LOOKED],
    )?;
    Ok(rows.len())
}

fn count(cx: &mut Cx<'_, '_>, sql: &'static str) -> Result<i64> {
    Ok(cx.tx.one(sql, &[])?.get(0)?)
}

fn signed(cx: &mut Cx<'_, '_>) -> Result<bool> {
    let keys = cx.keys.clone();
    let Some(note) = record::newest_checkpoint(cx.tx)? else { return Ok(false) };
    let size = record::size(cx.tx)?;
    Ok(keys.open(&note).is_ok_and(|checkpoint| checkpoint.size() == size))
}

/// When the record was verified last and found sound. A later look that found something wrong counts, too.
fn verified(cx: &mut Cx<'_, '_>) -> Result<Found> {
    let search = Search { kinds: vec![record::VERIFIED.name.to_owned()], limit: 1, ..Search::default() };
    let Some(event) = record::search_heads(cx.tx, &search)?.pop() else { return Ok(Found { value: Some(Value::Null), event: None }) };
    let at = crate::parse_time("at", &event.at)?;
    let sound = event.facts.get("sound") == Some(&json!(true));
    let value = if sound { json!((cx.now() - at).max(0) / DAY) } else { Value::Null };
    Ok(Found { value: Some(value), event: Some(EventRef::of(&event)) })
}

/// Whether what is sealed of the newest event with a payload is a commitment to it, which stays true when the payload goes.
fn erasable(cx: &mut Cx<'_, '_>) -> Result<Found> {
    let row = cx.tx.optional("select seq from event_payload where payload is not null order by seq desc limit 1", &[])?;
    let Some(row) = row else { return Ok(Found { value: None, event: None }) };
    let seq = u64::try_from(row.get::<i64>(0)?).unwrap_or(0);
    let event = record::find_event(cx.tx, seq)?;
    Ok(Found { value: Some(json!(record::is_committed(cx.tx, seq)?)), event: event.as_ref().map(EventRef::of) })
}

/// What the server told of itself when it started last.
fn of_server(cx: &mut Cx<'_, '_>, section: &str, key: &str) -> Result<Found> {
    let search = Search { kinds: vec![crate::desk::STARTED.name.to_owned()], limit: 1, ..Search::default() };
    let Some(event) = record::search_heads(cx.tx, &search)?.pop() else { return Ok(Found { value: None, event: None }) };
    let fact = |name: &str| event.facts.get(name).cloned();
    let value = match (section, key) {
        ("listen", "protected") => {
            let parts: Vec<Value> = ["listen_loopback", "listen_tls", "listen_proxy"].into_iter().filter_map(fact).collect();
            (!parts.is_empty()).then(|| json!(parts.contains(&json!(true))))
        }
        ("listen", "loopback") => fact("listen_loopback"),
        ("checkpoints", _) => fact("checkpoints_copied"),
        ("retention", key) => fact(&format!("retention_{key}")),
        _ => None,
    };
    Ok(Found { value, event: Some(EventRef::of(&event)) })
}
