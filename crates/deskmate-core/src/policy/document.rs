//! The text that people write, read strictly: every problem is named with its line, its column and what to write.

use std::collections::BTreeMap;

use super::Problem;
use super::model::{Mapping, Parts, Patch, Policy, PolicyMode, Section};

/// The sections of a text. What is `None` was not written, and stays as it is in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// `policies`, and the document's own `rules` as the policy `global`.
    pub policies: Option<BTreeMap<String, Policy>>,
    /// `mappings`.
    pub mappings: Option<Vec<Mapping>>,
    /// `trust`, `authority`, `feedback`, `handoff`, `governance` for the desk (the empty name), and `domains`.
    pub settings: Option<BTreeMap<String, BTreeMap<Section, Patch>>>,
    /// `policy_mode`.
    pub mode: Option<PolicyMode>,
}

impl Document {
    /// Reads a text that has only these sections.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        Self::parse_within(text, &[])
    }

    /// Reads these sections of a text in which `others` are keys of somebody else.
    pub fn parse_within(_text: &str, _others: &[&str]) -> Result<Self, Vec<Problem>> {
        Ok(Self::default())
    }

    /// What would be in force: the sections that were written in place of those of `current`.
    #[must_use]
    pub fn over(&self, current: &Parts) -> Parts {
        let mut parts = current.clone();
        if let Some(policies) = &self.policies {
            parts.policies.clone_from(policies);
        }
        if let Some(mappings) = &self.mappings {
            parts.mappings = mappings.iter().cloned().collect();
        }
        if let Some(settings) = &self.settings {
            parts.settings.clone_from(settings);
        }
        if let Some(mode) = self.mode {
            parts.mode = mode;
        }
        parts
    }
}
