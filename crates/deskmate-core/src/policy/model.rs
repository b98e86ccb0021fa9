//! Policies, mappings and settings as they are stored: plain data, one canonical JSON for one meaning.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Effect, Mode};

/// The policy that applies where nobody mapped any.
pub const DEFAULT_POLICY: &str = "default";
/// The policy that holds the rules for everybody: the document's own `rules`.
pub const GLOBAL_POLICY: &str = "global";

/// A named set of rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Its name.
    pub id: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Such as `security`, `privacy`, `compliance`, `operational`, `governance` or `custom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The framework that it helps with, such as `GDPR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
    /// What it says.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// What it must answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<Case>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Rule {
    /// About a field of the change.
    Field(FieldRule),
    /// About the whole act.
    General(Box<GeneralRule>),
}

/// What a field of a change has to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldRule {
    /// The path of the field, or its last part; a trailing `*` stands for any ending.
    pub field: String,
    /// What holds for it.
    pub constraint: Constraint,
    /// Why, for people and agents alike.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The least value of a `value_range`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The greatest value of a `value_range`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// The values of an `enum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Value>>,
    /// The pattern of a `regex`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// What holds for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// A person decides.
    HighRisk,
    /// It is not changed.
    Readonly,
    /// It is a number between `min` and `max`.
    ValueRange,
    /// It is one of `values`.
    Enum,
    /// It is a text that `pattern` matches.
    Regex,
}

impl Constraint {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::HighRisk => "high_risk",
            Self::Readonly => "readonly",
            Self::ValueRange => "value_range",
            Self::Enum => "enum",
            Self::Regex => "regex",
        }
    }

    /// Whether it looks at the value that a field would have.
    pub(super) fn is_about_the_value(self) -> bool {
        matches!(self, Self::ValueRange | Self::Enum | Self::Regex)
    }
}

/// A rule about the whole act.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneralRule {
    /// Its name, once in its policy.
    pub name: String,
    /// The acts that it is about.
    #[serde(rename = "match", default, skip_serializing_if = "Match::is_empty")]
    pub matches: Match,
    /// A condition in CEL; without it the rule fires on every act that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What it does.
    pub effect: Effect,
    /// Who may approve: names or ids of people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// How many people have to approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    /// How long a grant is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_seconds: Option<u32>,
    /// How long the request waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_seconds: Option<u32>,
    /// What `redact` hides, as field paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// How bad it is.
    #[serde(default)]
    pub severity: Severity,
    /// Why, for people and agents alike.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What the agent could do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternative: Option<String>,
    /// Whether an `allow` stands in for trust.
    #[serde(default, skip_serializing_if = "is_false")]
    pub waive_trust: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// How bad it is when a rule fires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth a note.
    Info,
    /// Worth a look.
    #[default]
    Warning,
    /// Bad.
    High,
    /// Very bad.
    Critical,
}

impl Severity {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// The acts that a rule is about: each list that is not empty has to name the act's value. `*` stands for any text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// Verbs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kind: Vec<String>,
    /// Tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool: Vec<String>,
    /// Domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domain: Vec<String>,
    /// Agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent: Vec<String>,
    /// Environments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
}

impl Match {
    /// Whether it is about every act.
    pub fn is_empty(&self) -> bool {
        self.lists().iter().all(|list| list.is_empty())
    }

    /// The lists in the order of the index.
    pub(super) fn lists(&self) -> [&Vec<String>; 5] {
        [&self.kind, &self.tool, &self.domain, &self.agent, &self.environment]
    }
}

/// An act and what a policy must answer to it, kept beside the policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// The act, as far as it matters: the keys of an act; `arguments` is the change.
    pub act: Map<String, Value>,
    /// Who acts; a trusted agent if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its score; 1 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<f64>,
    /// What it used up.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub counters: Map<String, Value>,
    /// The moment, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// The mode that must come out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The ids of exactly the rules that must fire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<Vec<String>>,
}

/// Which policy holds for which agent in which domain; a trailing `*` stands for any ending.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// The agent.
    pub agent: String,
    /// The domain.
    pub domain: String,
    /// The policy's name.
    pub policy: String,
}

/// What happens to an agent and domain that no mapping names, once there is any mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyMode {
    /// A person looks at everything.
    #[default]
    Strict,
    /// The default policy applies.
    Permissive,
}

/// A section of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// How trust is earned and lost.
    Trust,
    /// What agents may do at most, and how often.
    Authority,
    /// What people's answers do.
    Feedback,
    /// How work is handed to people.
    Handoff,
    /// When the governance report speaks up.
    Governance,
    /// Where agents may look around, and plans change something.
    Workspace,
    /// What the desk does when clients' hooks ask about agents' own tools.
    Hooks,
    /// Other MCP servers behind the desk.
    Gateway,
    /// What is taken out before it is kept.
    Protection,
}

impl Section {
    /// All of them.
    pub const ALL: [Self; 9] =
        [Self::Trust, Self::Authority, Self::Feedback, Self::Handoff, Self::Governance, Self::Workspace, Self::Hooks, Self::Gateway, Self::Protection];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::Authority => "authority",
            Self::Feedback => "feedback",
            Self::Handoff => "handoff",
            Self::Governance => "governance",
            Self::Workspace => "workspace",
            Self::Hooks => "hooks",
            Self::Gateway => "gateway",
            Self::Protection => "protection",
        }
    }

    /// Whether a domain may have its own: folders, hooks, servers and what is taken out are not a matter of domains.
    pub(super) fn is_for_domains(self) -> bool {
        !matches!(self, Self::Workspace | Self::Hooks | Self::Gateway | Self::Protection)
    }

    /// The section of a name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.name() == name)
    }
}

/// The keys of a section that somebody set; the others keep what holds outside.
pub type Patch = Map<String, Value>;

/// Everything that can be put in force, without versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// Policies by name. [`GLOBAL_POLICY`] holds the rules for everybody.
    pub policies: BTreeMap<String, Policy>,
    /// Mappings.
    pub mappings: BTreeSet<Mapping>,
    /// Settings by domain (empty for the whole desk; a trailing `*` stands for any ending), then by section.
    pub settings: BTreeMap<String, BTreeMap<Section, Patch>>,
    /// What happens to what no mapping names.
    pub mode: PolicyMode,
}

impl Parts {
    /// Leaves out what says nothing, so that one meaning has one form.
    pub(super) fn tidy(&mut self) {
        for sections in self.settings.values_mut() {
            sections.retain(|_, patch| !patch.is_empty());
        }
        self.settings.retain(|_, sections| !sections.is_empty());
    }
}
