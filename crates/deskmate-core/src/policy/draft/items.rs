//! What can be in force, piece by piece: a policy, a mapping, or one section of settings. Drafts, differences and what is
//! in force are all sets of these.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::settings::Settings;
use crate::{Code, Error, Result, digest, hex};

/// The sections that hold settings, in the order in which people read them.
pub(crate) const SECTIONS: [&str; 5] = ["trust", "authority", "feedback", "handoff", "governance"];
/// The one setting that stands alone.
pub(crate) const MODE: &str = "policy_mode";

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

    /// Whether what no mapping names is let through to the default policy.
    pub fn is_permissive(&self) -> bool {
        self.get(&Key::Setting { section: MODE.to_owned(), domain: String::new() }).and_then(Value::as_str) == Some("permissive")
    }

    /// The domains that have settings of their own.
    pub fn domains(&self) -> impl Iterator<Item = &str> {
        self.pieces.keys().filter_map(|key| match key {
            Key::Setting { domain, .. } if !domain.is_empty() => Some(domain.as_str()),
            _ => None,
        })
    }

    /// A section as it holds in a domain: what is built in, then what the desk says, then what the domain says.
    pub fn effective(&self, section: &str, domain: &str) -> Map<String, Value> {
        let built_in = serde_json::to_value(Settings::default()).unwrap_or_default();
        let mut merged = built_in.get(section).and_then(Value::as_object).cloned().unwrap_or_default();
        for domain in if domain.is_empty() { vec![""] } else { vec!["", domain] } {
            let key = Key::Setting { section: section.to_owned(), domain: domain.to_owned() };
            if let Some(own) = self.get(&key).and_then(Value::as_object) {
                merged.extend(own.clone());
            }
        }
        merged
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

    /// The whole as a document that can be written to a file and applied again.
    pub fn to_document(&self) -> Value {
        let mut document = Map::new();
        let mut policies = Vec::new();
        let mut mappings = Vec::new();
        for (key, body) in &self.pieces {
            match key {
                Key::Policy { policy } => {
                    let mut whole = Map::from_iter([("id".to_owned(), Value::from(policy.as_str()))]);
                    whole.extend(body.as_object().cloned().unwrap_or_default());
                    policies.push(Value::Object(whole));
                }
                Key::Mapping { agent, domain, policy } => mappings.push(json!({ "agent_id": agent, "domain": domain, "policy_id": policy })),
                Key::Setting { section, domain } if domain.is_empty() => drop(document.insert(section.clone(), body.clone())),
                Key::Setting { section, domain } => {
                    let domains = document.entry("domains").or_insert_with(|| json!({}));
                    if let Some(domains) = domains.as_object_mut()
                        && let Some(own) = domains.entry(domain.clone()).or_insert_with(|| json!({})).as_object_mut()
                    {
                        own.insert(section.clone(), body.clone());
                    }
                }
            }
        }
        document.extend([("policies".to_owned(), Value::Array(policies)), ("mappings".to_owned(), Value::Array(mappings))]);
        Value::Object(document)
    }
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
        serde_json::from_str(text).map_err(|error| Error::new(Code::Internal, format!("the kept draft is unreadable: {error}")))
    }

    /// The digest of a piece.
    pub fn get(&self, key: &Key) -> Option<&str> {
        self.pieces.iter().find(|(own, _)| own == key).map(|(_, digest)| digest.as_str())
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.pieces.iter().map(|(key, _)| key)
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
