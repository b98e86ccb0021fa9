//! Templates, as data files: of policies, with gaps to be filled in and cases that show every rule firing and not firing, and of
//! agents.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::Template;

/// The texts of the templates of policies.
const POLICIES: [&str; 16] = [
    include_str!("policies/pii-protection.yaml"),
    include_str!("policies/rate-limiting.yaml"),
    include_str!("policies/cost-control.yaml"),
    include_str!("policies/data-deletion.yaml"),
    include_str!("policies/secrets-protection.yaml"),
    include_str!("policies/human-review.yaml"),
    include_str!("policies/gdpr-compliance.yaml"),
    include_str!("policies/soc2-security.yaml"),
    include_str!("policies/hipaa-healthcare.yaml"),
    include_str!("policies/pci-dss-payments.yaml"),
    include_str!("policies/read-only-access.yaml"),
    include_str!("policies/production-safety.yaml"),
    include_str!("policies/ccpa-privacy.yaml"),
    include_str!("policies/nist-csf.yaml"),
    include_str!("policies/iso27001-controls.yaml"),
    include_str!("policies/fedramp-moderate.yaml"),
];

/// A template of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentTemplate {
    /// Its name.
    pub id: String,
    /// Its title for people.
    pub title: String,
    /// What such an agent does.
    pub description: String,
    /// What it belongs to.
    pub category: String,
    /// `beginner`, `intermediate` or `advanced`.
    pub difficulty: String,
    /// The language that a program for it is usually written in.
    pub language: String,
    /// Templates of policies that go with it.
    pub policies: Vec<String>,
    /// Whether a person looks at what it does first.
    pub approval: bool,
    /// Words under which it is found.
    pub tags: Vec<String>,
    /// What it does if nobody says more.
    pub task: String,
    /// A sentence that describes one.
    pub example: String,
    /// How much steps of a sentence speak for it.
    #[serde(skip_serializing, default)]
    pub(super) steps: BTreeMap<String, u32>,
    /// How much sources do.
    #[serde(skip_serializing, default)]
    pub(super) sources: BTreeMap<String, u32>,
    /// How much single words do.
    #[serde(skip_serializing, default)]
    pub(super) words: BTreeMap<String, u32>,
}

static BUILT_IN: LazyLock<Vec<Template>> = LazyLock::new(|| POLICIES.iter().filter_map(|text| Template::read(text).ok()).collect());
static AGENTS: LazyLock<Vec<AgentTemplate>> = LazyLock::new(|| serde_saphyr::from_str(include_str!("agents.yaml")).unwrap_or_default());

/// The templates of policies that are built in.
pub fn policies() -> &'static [Template] {
    &BUILT_IN
}

/// The text of a template of policies that is built in, as it would be written in a file.
pub fn policy_text(id: &str) -> Option<&'static str> {
    POLICIES.iter().zip(BUILT_IN.iter()).find(|(_, template)| template.id == id).map(|(text, _)| *text)
}

/// A template of policies that is built in, by its name.
pub fn policy(id: &str) -> Option<&'static Template> {
    BUILT_IN.iter().find(|template| template.id == id)
}

/// The templates of policies that help with a framework, such as `SOC2`.
pub fn policies_for(framework: &str) -> impl Iterator<Item = &'static Template> {
    BUILT_IN.iter().filter(move |template| template.framework.as_deref() == Some(framework))
}

/// The templates of agents.
pub fn agents() -> &'static [AgentTemplate] {
    &AGENTS
}

/// A template of agents by its name.
pub fn agent(id: &str) -> Option<&'static AgentTemplate> {
    AGENTS.iter().find(|template| template.id == id)
}
