//! The rows in force: loading them, and putting others in their place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use deskmate_db::{Tx, args};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::model::{Mapping, Parts, Policy, PolicyMode, Section};
use super::rulebook::{Loaded, Rulebook};
use super::{PolicyRef, Problem, rules};
use crate::call::Cx;
use crate::record::{Event, Kind};
use crate::{Code, Error, Result, canonical, gateway, hex};

/// A version of a policy came into force.
pub const ACCEPTED: Kind = Kind { name: "policy.accepted", says: "A version of a policy came into force." };
/// A policy is no longer in force.
pub const RETIRED: Kind = Kind { name: "policy.retired", says: "A policy is no longer in force." };
/// A policy was given to an agent in a domain.
pub const MAPPED: Kind = Kind { name: "mapping.added", says: "A policy was given to an agent in a domain." };
/// A policy was taken from an agent in a domain.
pub const UNMAPPED: Kind = Kind { name: "mapping.removed", says: "A policy was taken from an agent in a domain." };
/// A section of settings came into force, or went back to its defaults.
pub const SETTING: Kind = Kind { name: "setting.changed", says: "A section of settings came into force, or went back to its defaults." };
/// Everything that is in force has another digest.
pub const CHANGED: Kind = Kind { name: "rulebook.changed", says: "What is in force changed; decisions name it by its digest." };

/// The section under which `policy_mode` is kept.
const MODE: &str = "policy_mode";

/// What a rulebook's digest covers.
#[derive(Default, Serialize)]
pub(super) struct Content {
    /// Versions and the digests of their texts.
    policies: BTreeMap<String, (i64, String)>,
    mappings: BTreeSet<Mapping>,
    /// By domain and section, the canonical text.
    settings: BTreeMap<(String, String), String>,
}

impl Content {
    /// The content that `parts` would be.
    pub(super) fn of(parts: &Parts, versions: &BTreeMap<String, i64>) -> Result<Self> {
        let mut content = Self { mappings: parts.mappings.clone(), ..Self::default() };
        for (name, policy) in &parts.policies {
            let text = canonical("policy", policy)?;
            content.policies.insert(name.clone(), (versions.get(name).copied().unwrap_or(0), hex(&sha256(&text))));
        }
        content.settings = setting_rows(parts)?;
        Ok(content)
    }

    pub(super) fn digest(&self) -> Result<String> {
        let settings: Vec<_> = self.settings.iter().collect();
        Ok(hex(&crate::digest(&(&self.policies, &self.mappings, settings))?))
    }
}

/// The digest while nothing was ever put in force.
static NOTHING: LazyLock<String> = LazyLock::new(|| Content::default().digest().unwrap_or_default());

pub(super) fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// Settings as rows: only what somebody set.
fn setting_rows(parts: &Parts) -> Result<BTreeMap<(String, String), String>> {
    let mut rows = BTreeMap::new();
    for (domain, sections) in &parts.settings {
        for (section, patch) in sections.iter().filter(|(_, patch)| !patch.is_empty()) {
            rows.insert((domain.clone(), section.name().to_owned()), canonical("settings", patch)?);
        }
    }
    if parts.mode != PolicyMode::default() {
        rows.insert((String::new(), MODE.to_owned()), canonical("mode", &parts.mode)?);
    }
    Ok(rows)
}

/// Everything in force now, compiled once for each content. A store whose rows do not fit their digest is an error, and
/// so is everything that would have to be decided with it.
pub fn current(cx: &mut Cx<'_, '_>) -> Result<Arc<Rulebook>> {
    if let Some(rulebook) = &cx.rulebook {
        return Ok(Arc::clone(rulebook));
    }
    let rulebook = in_force(cx)?;
    cx.rulebook = Some(Arc::clone(&rulebook));
    Ok(rulebook)
}

fn in_force(cx: &mut Cx<'_, '_>) -> Result<Arc<Rulebook>> {
    let named = named_digest(cx.tx)?;
    let digest = named.as_deref().unwrap_or(&NOTHING);
    if let Some(held) = cx.rulebooks.get(digest) {
        return Ok(held);
    }
    let loaded = load(cx.tx)?;
    if loaded.digest != digest {
        return Err(Error::new(Code::Internal, "the policies, mappings and settings in the store are not those that were put in force")
            .hint("run `deskmate audit verify`; it names the row that was changed"));
    }
    let rulebook = Rulebook::stored(loaded).map_err(|why| Error::new(Code::Internal, format!("the settings in force cannot be read: {why}")))?;
    let rulebook = Arc::new(rulebook);
    cx.rulebooks.put(&rulebook);
    Ok(rulebook)
}

/// The digest of the rows as they are.
pub fn stored_digest(cx: &mut Cx<'_, '_>) -> Result<String> {
    Ok(load(cx.tx)?.digest)
}

pub(super) fn named_digest(tx: &mut Tx<'_>) -> Result<Option<String>> {
    let row = tx.optional("select value from desk where key = 'rulebook'", &[])?;
    Ok(row.map(|row| row.get(0)).transpose()?)
}

/// The rows in force. A policy that cannot be read is named as such.
pub(super) fn load(tx: &mut Tx<'_>) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    let mut content = Content::default();
    for row in tx.query("select name, version, body from policy where state = 'in_force' order by name", &[])? {
        let (name, version, body): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        content.policies.insert(name.clone(), (version, hex(&sha256(&body))));
        loaded.versions.insert(name.clone(), version);
        match serde_json::from_str::<Policy>(&body) {
            Ok(policy) => {
                loaded.parts.policies.insert(name, policy);
            }
            Err(error) => {
                loaded.unreadable.insert(name, error.to_string());
            }
        }
    }
    for row in tx.query("select agent, domain, policy from mapping order by agent, domain, policy", &[])? {
        content.mappings.insert(Mapping { agent: row.get(0)?, domain: row.get(1)?, policy: row.get(2)? });
    }
    for row in tx.query("select domain, section, body from setting order by section, domain", &[])? {
        content.settings.insert((row.get(0)?, row.get(1)?), row.get(2)?);
    }
    loaded.parts.mappings.clone_from(&content.mappings);
    let unreadable = |what: &str| Error::new(Code::Internal, format!("the setting {what} in the store cannot be read"));
    for ((domain, name), body) in &content.settings {
        if name == MODE {
            loaded.parts.mode = serde_json::from_str(body).map_err(|_| unreadable(name))?;
        } else {
            let section = Section::of(name).ok_or_else(|| unreadable(name))?;
            let patch = serde_json::from_str(body).map_err(|_| unreadable(name))?;
            loaded.parts.settings.entry(domain.clone()).or_default().insert(section, patch);
        }
    }
    loaded.digest = content.digest()?;
    Ok(loaded)
}

/// What came into force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The digest of everything in force now.
    pub digest: String,
    /// Policies with a new version.
    pub policies: Vec<PolicyRef>,
    /// Policies that are no longer in force.
    pub retired: Vec<String>,
    /// Mappings that are new.
    pub mapped: Vec<Mapping>,
    /// Mappings that are gone.
    pub unmapped: Vec<Mapping>,
    /// Settings that differ: domain and section.
    pub settings: Vec<(String, String)>,
}

impl Stored {
    /// Whether nothing differed.
    pub fn is_empty(&self) -> bool {
        let Self { digest: _, policies, retired, mapped, unmapped, settings } = self;
        policies.is_empty() && retired.is_empty() && mapped.is_empty() && unmapped.is_empty() && settings.is_empty()
    }
}

/// Puts `target` in force: whatever differs from the rows is written and told. `by` is the person who accepted it.
/// Where nothing differs, nothing is written and nothing told.
pub fn store(cx: &mut Cx<'_, '_>, target: &Parts, by: &str) -> Result<Stored> {
    let before = load(cx.tx)?;
    // Whichever way a mount goes, what is known of it and what lets its tools pass goes with it.
    let lost = gateway::mounts_lost(&before.parts, target);
    let without = if lost.is_empty() { None } else { Some(gateway::without_passing(cx, target, &lost)?) };
    let target = without.as_ref().unwrap_or(target);
    let problems = rules::parts(target);
    if let Some(first) = problems.first() {
        let more = if problems.len() == 1 { String::new() } else { format!(" (and {} more)", problems.len() - 1) };
        return Err(Error::invalid("policy", format!("{}{more}", Problem::to_string(first))).hint("`deskmate policy check` names every problem"));
    }
    let mut stored = Stored::default();
    policies(cx, &before, target, by, &mut stored)?;
    mappings(cx, &before, target, by, &mut stored)?;
    settings(cx, &before, target, by, &mut stored)?;
    stored.digest = load(cx.tx)?.digest;
    if !stored.is_empty() {
        let sql = "insert into desk (key, value) values ('rulebook', $1) on conflict (key) do update set value = excluded.value";
        cx.tx.execute(sql, args![stored.digest])?;
        cx.rulebook = None;
        cx.emit(Event::new(CHANGED, "desk").fact("digest", stored.digest.clone()).fact("before", before.digest).fact("by", by))?;
    }
    for mount in &lost {
        gateway::forget(cx, mount)?;
    }
    Ok(stored)
}

fn policies(cx: &mut Cx<'_, '_>, before: &Loaded, target: &Parts, by: &str, stored: &mut Stored) -> Result<()> {
    let now = cx.now();
    for (name, policy) in &target.policies {
        let body = canonical("policy", policy)?;
        if before.parts.policies.get(name).is_some_and(|held| held == policy) {
            continue;
        }
        let row = cx.tx.one("select coalesce(max(version), 0) from policy where name = $1", args![name])?;
        let version = row.get::<i64>(0)? + 1;
        let digest = sha256(&body);
        cx.tx.execute("update policy set state = 'past' where name = $1 and state = 'in_force'", args![name])?;
        let sql = "insert into policy (name, version, state, body, digest, accepted_by, accepted_at) values ($1, $2, 'in_force', $3, $4, $5, $6)";
        cx.tx.execute(sql, args![name, version, body, digest.to_vec(), by, now])?;
        let event = Event::new(ACCEPTED, format!("policy:{name}"));
        let event = event.fact("policy", name.clone()).fact("version", version).fact("digest", hex(&digest)).fact("by", by);
        cx.emit(event.payload(json!({ "policy": policy })))?;
        stored.policies.push(PolicyRef { policy: name.clone(), version });
    }
    let held = before.parts.policies.keys().chain(before.unreadable.keys());
    for name in held.filter(|name| !target.policies.contains_key(*name)) {
        cx.tx.execute("update policy set state = 'past' where name = $1 and state = 'in_force'", args![name])?;
        let version = before.versions.get(name).copied().unwrap_or(0);
        let event = Event::new(RETIRED, format!("policy:{name}"));
        cx.emit(event.fact("policy", name.clone()).fact("version", version).fact("by", by))?;
        stored.retired.push(name.clone());
    }
    Ok(())
}

fn mappings(cx: &mut Cx<'_, '_>, before: &Loaded, target: &Parts, by: &str, stored: &mut Stored) -> Result<()> {
    let now = cx.now();
    let event = |kind: Kind, mapping: &Mapping| {
        let event = Event::new(kind, format!("policy:{}", mapping.policy));
        event.fact("agent", mapping.agent.clone()).fact("domain", mapping.domain.clone()).fact("policy", mapping.policy.clone()).fact("by", by)
    };
    for mapping in before.parts.mappings.difference(&target.mappings) {
        let sql = "delete from mapping where agent = $1 and domain = $2 and policy = $3";
        cx.tx.execute(sql, args![mapping.agent, mapping.domain, mapping.policy])?;
        cx.emit(event(UNMAPPED, mapping))?;
        stored.unmapped.push(mapping.clone());
    }
    for mapping in target.mappings.difference(&before.parts.mappings) {
        let sql = "insert into mapping (agent, domain, policy, accepted_by, accepted_at) values ($1, $2, $3, $4, $5)";
        cx.tx.execute(sql, args![mapping.agent, mapping.domain, mapping.policy, by, now])?;
        cx.emit(event(MAPPED, mapping))?;
        stored.mapped.push(mapping.clone());
    }
    Ok(())
}

fn settings(cx: &mut Cx<'_, '_>, before: &Loaded, target: &Parts, by: &str, stored: &mut Stored) -> Result<()> {
    let now = cx.now();
    let (held, wanted) = (setting_rows(&before.parts)?, setting_rows(target)?);
    let keys: BTreeSet<&(String, String)> = held.keys().chain(wanted.keys()).collect();
    for key in keys {
        let (domain, section) = key;
        let (old, new) = (held.get(key), wanted.get(key));
        if old == new {
            continue;
        }
        let subject = if domain.is_empty() { format!("setting:{section}") } else { format!("setting:{section}:{domain}") };
        let event = Event::new(SETTING, subject).fact("section", section.clone()).fact("domain", domain.clone()).fact("by", by);
        match new {
            None => {
                cx.tx.execute("delete from setting where section = $1 and domain = $2", args![section, domain])?;
                cx.emit(event)?;
            }
            Some(body) => {
                let sql = "insert into setting (section, domain, body, accepted_by, accepted_at) values ($1, $2, $3, $4, $5) \
                           on conflict (section, domain) do update set body = excluded.body, accepted_by = excluded.accepted_by, accepted_at = excluded.accepted_at";
                cx.tx.execute(sql, args![section, domain, body, by, now])?;
                let value: Value = serde_json::from_str(body).unwrap_or_default();
                cx.emit(event.fact("digest", hex(&sha256(body))).payload(json!({ "setting": value })))?;
            }
        }
        stored.settings.push((domain.clone(), section.clone()));
    }
    Ok(())
}
