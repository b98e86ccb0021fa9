//! What can be in force, piece by piece: a policy, a mapping, or one section of settings. Drafts, differences and what is
//! in force are all sets of these.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::model::{Mapping, Parts, Policy, PolicyMode, Section};
use super::super::{DEFAULT_POLICY, Document, GLOBAL_POLICY};
use crate::hook::HOOK_POLICY;
use crate::{Code, Error, Result, digest, hex};

/// The one setting that stands alone.
pub(super) const MODE: &str = "policy_mode";

/// Which piece.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "piece")]
pub enum Key {
    /// A policy by its name.
    Policy {
        /// The name.
        policy: String,
    },
    /// A mapping.
    Mapping {
        /// The agent, or a pattern.
        agent: String,
        /// The domain, or a pattern.
        domain: String,
        /// The policy's name.
        policy: String,
    },
    /// A section of settings.
    Setting {
        /// The section's name.
        section: String,
        /// The domain; empty for the whole desk.
        domain: String,
    },
}

impl Key {
    /// The piece that says what happens to what no mapping names.
    pub(super) fn mode() -> Self {
        Self::Setting { section: MODE.to_owned(), domain: String::new() }
    }

    fn mapping(mapping: &Mapping) -> Self {
        Self::Mapping { agent: mapping.agent.clone(), domain: mapping.domain.clone(), policy: mapping.policy.clone() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy { policy } => write!(f, "policy {policy}"),
            Self::Mapping { agent, domain, policy } => write!(f, "mapping {agent} × {domain} → {policy}"),
            Self::Setting { section, domain } if domain.is_empty() => f.write_str(section),
            Self::Setting { section, domain } => write!(f, "{section} in {domain}"),
        }
    }
}

/// A set of pieces with their bodies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Set {
    pieces: BTreeMap<Key, Value>,
}

impl Set {
    /// Puts a piece in; one with the same key is replaced.
    pub fn insert(&mut self, key: Key, body: Value) {
        self.pieces.insert(key, body);
    }

    /// Puts a piece in or takes it out.
    pub fn set(&mut self, key: &Key, body: Option<&Value>) {
        match body {
            Some(body) => self.pieces.insert(key.clone(), body.clone()),
            None => self.pieces.remove(key),
        };
    }

    /// The body of a piece.
    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.pieces.get(key)
    }

    /// All pieces in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.pieces.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The body of a policy.
    pub fn policy(&self, name: &str) -> Option<&Value> {
        self.get(&Key::Policy { policy: name.to_owned() })
    }

    /// All mappings: agent, domain, policy.
    pub fn mappings(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.pieces.keys().filter_map(|key| match key {
            Key::Mapping { agent, domain, policy } => Some((agent.as_str(), domain.as_str(), policy.as_str())),
            _ => None,
        })
    }

    /// The domains, and patterns of domains, that have settings of their own.
    pub fn domains(&self) -> impl Iterator<Item = &str> {
        self.pieces.keys().filter_map(|key| match key {
            Key::Setting { domain, .. } if !domain.is_empty() => Some(domain.as_str()),
            _ => None,
        })
    }

    /// The policies that hold somewhere: mapped ones, the one for everybody, and the one that stands in for a mapping.
    pub fn is_used(&self, policy: &str) -> bool {
        policy == DEFAULT_POLICY || policy == GLOBAL_POLICY || policy == HOOK_POLICY || self.mappings().any(|(_, _, mapped)| mapped == policy)
    }

    /// The pieces of everything that can be in force.
    pub fn of(parts: &Parts) -> Result<Self> {
        let mut set = Self::default();
        for (name, policy) in &parts.policies {
            set.insert(Key::Policy { policy: name.clone() }, value(policy)?);
        }
        for mapping in &parts.mappings {
            set.insert(Key::mapping(mapping), json!({}));
        }
        for (domain, sections) in &parts.settings {
            for (section, patch) in sections.iter().filter(|(_, patch)| !patch.is_empty()) {
                set.insert(Key::Setting { section: section.name().to_owned(), domain: domain.clone() }, Value::Object(patch.clone()));
            }
        }
        if parts.mode != PolicyMode::default() {
            set.insert(Key::mode(), value(&parts.mode)?);
        }
        Ok(set)
    }

    /// The pieces of a draft: what its sections name.
    pub fn of_document(document: &Document) -> Result<Self> {
        Self::of(&document.over(&Parts::default()))
    }

    /// What would be in force.
    pub fn parts(&self) -> Result<Parts> {
        let mut parts = Parts::default();
        for (key, body) in &self.pieces {
            match key {
                Key::Policy { policy } => drop(parts.policies.insert(policy.clone(), read::<Policy>(body)?)),
                Key::Mapping { agent, domain, policy } => {
                    parts.mappings.insert(Mapping { agent: agent.clone(), domain: domain.clone(), policy: policy.clone() });
                }
                Key::Setting { section, .. } if section == MODE => parts.mode = read(body)?,
                Key::Setting { section, domain } => {
                    let section = Section::of(section).ok_or_else(|| Error::new(Code::Internal, format!("there is no section {section}")))?;
                    parts.settings.entry(domain.clone()).or_default().insert(section, read(body)?);
                }
            }
        }
        Ok(parts)
    }

    /// The digest of every piece: what a later draft is compared with.
    pub fn digests(&self) -> Result<Digests> {
        let pieces = self.pieces.iter().map(|(key, body)| Ok((key.clone(), hex(&digest(body)?)))).collect::<Result<Vec<_>>>()?;
        Ok(Digests { pieces })
    }

    /// The digest of the whole.
    pub fn digest(&self) -> Result<String> {
        Ok(hex(&digest(&json!(self.digests()?))?))
    }

    /// Every piece, as it is kept.
    pub fn to_json(&self) -> Value {
        json!(self.pieces.iter().collect::<Vec<_>>())
    }

    /// Reads what was kept.
    pub fn from_json(text: &str) -> Result<Self> {
        let pieces: Vec<(Key, Value)> = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        Ok(Self { pieces: pieces.into_iter().collect() })
    }
}

fn value<T: Serialize>(piece: &T) -> Result<Value> {
    serde_json::to_value(piece).map_err(|error| unreadable(&error))
}

fn read<T: serde::de::DeserializeOwned>(body: &Value) -> Result<T> {
    serde_json::from_value(body.clone()).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Error {
    Error::new(Code::Internal, format!("a piece of a policy is unreadable: {error}"))
}

/// Everything in force as a document that can be written to a file and applied again.
pub fn to_document(parts: &Parts) -> Result<Value> {
    let mut document = Map::new();
    let mut policies = Vec::new();
    for (name, policy) in &parts.policies {
        if name == GLOBAL_POLICY {
            document.insert("rules".to_owned(), value(&policy.rules)?);
            if !policy.tests.is_empty() {
                document.insert("tests".to_owned(), value(&policy.tests)?);
            }
        } else {
            policies.push(value(policy)?);
        }
    }
    let mappings = parts.mappings.iter().map(|one| json!({ "agent_id": one.agent, "domain": one.domain, "policy_id": one.policy }));
    document.extend([("policies".to_owned(), Value::Array(policies)), ("mappings".to_owned(), Value::Array(mappings.collect()))]);
    document.insert(MODE.to_owned(), value(&parts.mode)?);
    for (domain, sections) in &parts.settings {
        let own: Map<String, Value> = sections.iter().map(|(section, patch)| (section.name().to_owned(), Value::Object(patch.clone()))).collect();
        if domain.is_empty() {
            document.extend(own);
        } else if let Some(domains) = document.entry("domains").or_insert_with(|| json!({})).as_object_mut() {
            domains.insert(domain.clone(), Value::Object(own));
        }
    }
    Ok(Value::Object(document))
}

/// The digests of a draft's pieces, as they are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digests {
    pieces: Vec<(Key, String)>,
}

impl Digests {
    /// Reads what was kept.
    pub fn read(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| unreadable(&error))
    }

    /// Leaves out pieces, as if they had never been submitted.
    pub fn forget<'k>(&mut self, keys: impl IntoIterator<Item = &'k Key>) {
        let keys: std::collections::BTreeSet<&Key> = keys.into_iter().collect();
        self.pieces.retain(|(key, _)| !keys.contains(key));
    }

    /// As a map, for many look-ups.
    pub fn by_key(&self) -> BTreeMap<&Key, &str> {
        self.pieces.iter().map(|(key, digest)| (key, digest.as_str())).collect()
    }
}

/// One piece that would change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Which.
    #[serde(flatten)]
    pub key: Key,
    /// What is in force now; absent when it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    /// What would be in force; absent when it would be taken away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

/// What a draft would change: its pieces compared with what is in force. With `base`, the digests of the draft as it was
/// last submitted, only what the draft itself changed since then counts, and what it no longer names is taken away.
pub fn difference(in_force: &Set, draft: &Set, base: Option<&Digests>) -> Result<Vec<Change>> {
    let known = base.map(Digests::by_key).unwrap_or_default();
    let mut changes = Vec::new();
    for (key, body) in draft.iter() {
        let same_as_before = match known.get(key) {
            Some(before) => *before == hex(&digest(body)?),
            None => false,
        };
        if !same_as_before && in_force.get(key) != Some(body) {
            changes.push(Change { key: key.clone(), from: in_force.get(key).cloned(), to: Some(body.clone()) });
        }
    }
    for key in known.keys().filter(|key| draft.get(key).is_none()) {
        if let Some(body) = in_force.get(key) {
            changes.push(Change { key: (*key).clone(), from: Some(body.clone()), to: None });
        }
    }
    changes.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(changes)
}

/// What it takes to get from one set to another: everything that only one of them has, or that differs.
pub fn whole_difference(from: &Set, to: &Set) -> Vec<Change> {
    let keys: std::collections::BTreeSet<&Key> = from.pieces.keys().chain(to.pieces.keys()).collect();
    let differs = keys.into_iter().filter(|key| from.get(key) != to.get(key));
    differs.map(|key| Change { key: key.clone(), from: from.get(key).cloned(), to: to.get(key).cloned() }).collect()
}
