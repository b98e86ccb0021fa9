//! Settings of the desk's judgement, for the whole desk and for single domains. The names and defaults of `trust`,
//! `authority`, `handoff` and `feedback` are those that users of earlier cowork servers know.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::yaml::{nearest, or, short};
use super::{Mode, Patch, Section};
use crate::gateway::{self, Mount};
use crate::limits::NAME_CHARS_MAX;
use crate::redact::{Kind, Redactor};
use crate::workspace::{self, Root};
use crate::{Error, Result};
use Allowed::{Count, Fields, Flag, Kinds, MaybeCount, MaybeNumber, Mounts, Number, Roots, Texts, Word};

/// All settings as they hold in one domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How trust is earned and lost.
    pub trust: TrustSettings,
    /// What agents may do at most, and how often.
    pub authority: AuthoritySettings,
    /// What people's answers do.
    pub feedback: FeedbackSettings,
    /// How work is handed to people.
    pub handoff: HandoffSettings,
    /// When the governance report speaks up.
    pub governance: GovernanceSettings,
    /// Where agents may look around, and plans change something; for the whole desk only.
    pub workspace: WorkspaceSettings,
    /// What the desk does when clients' hooks ask; for the whole desk only.
    pub hooks: HookSettings,
    /// Other MCP servers behind the desk; for the whole desk only.
    pub gateway: GatewaySettings,
    /// What is taken out before it is kept; for the whole desk only.
    pub protection: ProtectionSettings,
}

/// Whether a promotion waits for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Promotion {
    /// A person ratifies it.
    #[default]
    Ratify,
    /// It happens by itself.
    Auto,
}

/// How trust is earned and lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrustSettings {
    /// The score that an agent starts with.
    pub default_level: f64,
    /// Decided proposals after which a promotion is considered.
    pub auto_promote_after: u32,
    /// The share of them that must be approved.
    pub auto_promote_accuracy: f64,
    /// Overrides in a row that demote.
    pub auto_demote_after: u32,
    /// Points lost for each day without any act.
    pub decay_per_day: f64,
    /// The score from which an agent may act alone; it can only raise the bar of 0.8.
    pub autonomous_threshold: f64,
    /// Whether a promotion waits for a person.
    pub promotion: Promotion,
}

impl Default for TrustSettings {
    fn default() -> Self {
        Self {
            default_level: 0.3,
            auto_promote_after: 20,
            auto_promote_accuracy: 0.8,
            auto_demote_after: 3,
            decay_per_day: 0.01,
            autonomous_threshold: 0.7,
            promotion: Promotion::Ratify,
        }
    }
}

/// What agents may do at most, and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuthoritySettings {
    /// The best answer for an agent of whose proposals in the domain nobody has decided any yet.
    pub default_mode: Mode,
    /// Proposals of one agent in one domain within an hour.
    pub volume_cap: u32,
    /// Proposals of one agent in all domains within an hour; not limited if not given.
    pub volume_cap_per_agent: Option<u32>,
    /// Calls of tools in one domain within an hour.
    pub call_cap: Option<u32>,
    /// Fields that always need a person; a trailing `*` stands for any ending.
    pub high_risk_fields: Vec<String>,
    /// Acts of one agent on one day (UTC); not limited if not given.
    pub calls_per_day: Option<u32>,
    /// Cost units of one agent on one day (UTC); not limited if not given.
    pub cost_per_day: Option<f64>,
    /// Requests of one agent that may be pending at once.
    pub pending_max: u32,
    /// How long a grant is good.
    pub grant_seconds: u32,
    /// How long a request waits before it expires.
    pub request_seconds: u32,
    /// Denied attempts within ten minutes after which the agent's further attempts are put off.
    pub probe_limit: u32,
    /// Personal tokens that may decide over MCP, by the name or id of their owner; none unless named.
    pub token_deciders: Vec<String>,
    /// What a proposal must be based on, by name; without one of them a person decides.
    pub required_criteria: Vec<String>,
    /// How old such a thing may be.
    pub criteria_seconds: u32,
    /// Who may decide alone what needs several people, in an emergency and with a reason that everybody reads.
    pub break_glass: BreakGlass,
    /// After how many seconds without a decision a request also goes to `escalate_to`; never if not given.
    pub escalate_seconds: Option<u32>,
    /// The people, by name or id, to whom it goes then; the owners if none is named. They need roles that cover the domain.
    pub escalate_to: Vec<String>,
}

/// Who may decide alone what needs several people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakGlass {
    /// Nobody.
    #[default]
    Off,
    /// Owners.
    Owner,
    /// Owners, and approvers whose role covers the domain.
    Approver,
}

impl AuthoritySettings {
    /// The same for calls of tools, which have a cap of their own and use up none of the others.
    #[must_use]
    pub(crate) fn for_calls(&self) -> Self {
        Self { volume_cap: self.call_cap.unwrap_or(u32::MAX), volume_cap_per_agent: None, ..self.clone() }
    }
}

impl Default for AuthoritySettings {
    fn default() -> Self {
        Self {
            default_mode: Mode::Suggest,
            volume_cap: 50,
            volume_cap_per_agent: None,
            call_cap: None,
            high_risk_fields: ["deal_stage", "owner", "commission", "utm_*", "billing_*"].map(str::to_owned).to_vec(),
            calls_per_day: None,
            cost_per_day: None,
            pending_max: 200,
            grant_seconds: 15 * 60,
            request_seconds: 7 * 24 * 3600,
            probe_limit: 10,
            token_deciders: Vec::new(),
            required_criteria: Vec::new(),
            criteria_seconds: 24 * 3600,
            break_glass: BreakGlass::Off,
            escalate_seconds: None,
            escalate_to: Vec::new(),
        }
    }
}

/// What people's answers do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FeedbackSettings {
    /// Whether an override needs a reason in words.
    pub override_requires_reason: bool,
    /// The types that an override may have. One that names none is a `human_preference`, or the first of these where that is not among them.
    pub reason_types: Vec<String>,
    /// The base impact of a type that has no number of its own.
    pub override_trust_impact: f64,
    /// What an approval adds.
    pub approval_trust_impact: f64,
}

impl Default for FeedbackSettings {
    fn default() -> Self {
        let reason_types = ["agent_wrong", "human_preference", "missing_context", "policy_change", "edge_case"].map(str::to_owned).to_vec();
        Self { override_requires_reason: true, reason_types, override_trust_impact: -0.05, approval_trust_impact: 0.02 }
    }
}

impl FeedbackSettings {
    /// The type of an override that names none.
    pub fn usual_type(&self) -> &str {
        let usual = "human_preference";
        self.reason_types.iter().find(|kind| *kind == usual).or(self.reason_types.first()).map_or(usual, String::as_str)
    }

    /// Whether an override may have a type. What a person says without naming one always may.
    pub fn check_type(&self, field: &str, kind: &str) -> Result<()> {
        if kind == self.usual_type() || self.reason_types.iter().any(|allowed| allowed == kind) {
            return Ok(());
        }
        Err(Error::invalid(field, format!("must be one of {}", self.reason_types.join(", "))))
    }
}

/// The form of a handoff's context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextFormat {
    /// Fields.
    #[default]
    Structured,
    /// One text.
    Text,
}

/// How work is handed to people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HandoffSettings {
    /// The form of the context packet.
    pub context_format: ContextFormat,
    /// Whether the packet tells why.
    pub include_reasoning: bool,
    /// Whether the packet tells how sure the agent is.
    pub include_confidence: bool,
    /// Whether the packet tells what was tried.
    pub include_attempted: bool,
    /// How long a handoff waits before it is escalated to the owners.
    pub timeout_seconds: u32,
}

impl Default for HandoffSettings {
    fn default() -> Self {
        Self { context_format: ContextFormat::Structured, include_reasoning: true, include_confidence: true, include_attempted: true, timeout_seconds: 3_600 }
    }
}

/// When the governance report speaks up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GovernanceSettings {
    /// A pending request older than this is a slow decision.
    pub slow_decision_seconds: u32,
    /// An ambiguous or unreported execution older than this is left open.
    pub open_outcome_seconds: u32,
    /// This many approvals of one person ...
    pub rubber_stamp_count: u32,
    /// ... within this time are rubber-stamping.
    pub rubber_stamp_seconds: u32,
}

impl Default for GovernanceSettings {
    fn default() -> Self {
        Self { slow_decision_seconds: 24 * 3_600, open_outcome_seconds: 3_600, rubber_stamp_count: 5, rubber_stamp_seconds: 10 }
    }
}

/// Where agents may look around, and plans change something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspaceSettings {
    /// The folders.
    pub roots: Vec<Root>,
    /// Days that deleted things stay in the trash; for ever if not given.
    pub trash_days: Option<u32>,
    /// Whether a copy of what plans did is written into each folder where they do it, `.deskmate-audit.jsonl`.
    pub audit_file: bool,
    /// Whether agents may read pages of the public web.
    pub web: bool,
    /// Whether the roots that an MCP client names narrow what its workspace tools reach.
    pub client_roots: bool,
}

impl Default for WorkspaceSettings {
    fn default() -> Self {
        Self { roots: Vec::new(), trash_days: None, audit_file: true, web: false, client_roots: true }
    }
}

/// Whether what is decided about agents' own tools holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookMode {
    /// It does.
    #[default]
    Enforce,
    /// It is told to the record, and nothing is enforced.
    Observe,
}

impl HookMode {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Observe => "observe",
        }
    }
}

/// What the desk does when clients' hooks ask about agents' own tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HookSettings {
    /// Whether what is decided holds (`enforce`) or is only told to the record (`observe`).
    pub mode: HookMode,
    /// Whether a message or a decision that waits keeps an agent from stopping, once.
    pub wake: bool,
}

impl Default for HookSettings {
    fn default() -> Self {
        Self { mode: HookMode::Enforce, wake: true }
    }
}

/// Other MCP servers behind the desk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GatewaySettings {
    /// The servers.
    pub mounts: Vec<Mount>,
}

/// Whether what was taken out of a request can be read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// It is gone once the request has ended.
    #[default]
    None,
    /// It stays encrypted, and owners who are there can read it back, which is told to the record.
    Encrypted,
}

/// What is taken out before it is kept. Secrets always are; these are the kinds of personal data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProtectionSettings {
    /// Kinds that are taken out of what the record and the tables of calls keep of acts and calls; all of them if not given.
    pub record: Vec<String>,
    /// Kinds that are taken out of a request once it has ended; all of them if not given. Until then it lies encrypted.
    pub requests: Vec<String>,
    /// Whether what was taken out of a request stays beside it, encrypted.
    pub keep: Keep,
}

impl Default for ProtectionSettings {
    fn default() -> Self {
        let all: Vec<String> = Kind::PERSONAL.iter().map(|kind| kind.name().to_owned()).collect();
        Self { record: all.clone(), requests: all, keep: Keep::None }
    }
}

impl ProtectionSettings {
    /// What takes out what the record must not keep.
    pub(crate) fn of_record(&self) -> Redactor {
        redactor(&self.record)
    }

    /// What takes out what must not stay of a request.
    pub(crate) fn of_requests(&self) -> Redactor {
        redactor(&self.requests)
    }
}

/// A name that is not known takes out everything.
fn redactor(kinds: &[String]) -> Redactor {
    Redactor::named(kinds.iter().map(String::as_str)).unwrap_or_else(|_| Redactor::all())
}

/// What a setting may be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Allowed {
    /// A number within bounds.
    Number(f64, f64),
    /// A whole number within bounds.
    Count(u32, u32),
    /// The same, or nothing for "not limited".
    MaybeCount(u32, u32),
    /// A number within bounds, or nothing for "not limited".
    MaybeNumber(f64, f64),
    /// Yes or no.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A list of field patterns.
    Fields,
    /// A list of folders.
    Roots,
    /// A list of servers.
    Mounts,
    /// A list of kinds of personal data.
    Kinds,
}

/// Ten years.
const SECONDS_MAX: u32 = 10 * 366 * 24 * 3_600;

const TRUST: &[(&str, Allowed)] = &[
    ("default_level", Number(0.0, 1.0)),
    ("auto_promote_after", Count(1, 1_000_000)),
    ("auto_promote_accuracy", Number(0.0, 1.0)),
    ("auto_demote_after", Count(1, 1_000_000)),
    ("decay_per_day", Number(0.0, 1.0)),
    ("autonomous_threshold", Number(0.0, 1.0)),
    ("promotion", Word(&["ratify", "auto"])),
];

const AUTHORITY: &[(&str, Allowed)] = &[
    ("default_mode", Word(&["deny", "escalate", "suggest", "act"])),
    ("volume_cap", Count(0, 1_000_000)),
    ("volume_cap_per_agent", MaybeCount(0, 1_000_000)),
    ("call_cap", MaybeCount(0, 1_000_000_000)),
    ("high_risk_fields", Fields),
    ("calls_per_day", MaybeCount(0, 1_000_000_000)),
    ("cost_per_day", MaybeNumber(0.0, 1e9)),
    ("pending_max", Count(0, 1_000_000)),
    ("grant_seconds", Count(1, SECONDS_MAX)),
    ("request_seconds", Count(1, SECONDS_MAX)),
    ("probe_limit", Count(1, 1_000_000)),
    ("token_deciders", Texts),
    ("required_criteria", Texts),
    ("criteria_seconds", Count(1, SECONDS_MAX)),
    ("break_glass", Word(&["off", "owner", "approver"])),
    ("escalate_seconds", MaybeCount(1, SECONDS_MAX)),
    ("escalate_to", Texts),
];

const FEEDBACK: &[(&str, Allowed)] =
    &[("override_requires_reason", Flag), ("reason_types", Texts), ("override_trust_impact", Number(-1.0, 0.0)), ("approval_trust_impact", Number(0.0, 1.0))];

const HANDOFF: &[(&str, Allowed)] = &[
    ("context_format", Word(&["structured", "text"])),
    ("include_reasoning", Flag),
    ("include_confidence", Flag),
    ("include_attempted", Flag),
    ("timeout_seconds", Count(1, SECONDS_MAX)),
];

const GOVERNANCE: &[(&str, Allowed)] = &[
    ("slow_decision_seconds", Count(1, SECONDS_MAX)),
    ("open_outcome_seconds", Count(1, SECONDS_MAX)),
    ("rubber_stamp_count", Count(2, 1_000_000)),
    ("rubber_stamp_seconds", Count(1, SECONDS_MAX)),
];

const WORKSPACE: &[(&str, Allowed)] = &[("roots", Roots), ("trash_days", MaybeCount(1, 36_600)), ("audit_file", Flag), ("web", Flag), ("client_roots", Flag)];

const HOOKS: &[(&str, Allowed)] = &[("mode", Word(&["enforce", "observe"])), ("wake", Flag)];
const GATEWAY: &[(&str, Allowed)] = &[("mounts", Mounts)];
const PROTECTION: &[(&str, Allowed)] = &[("record", Kinds), ("requests", Kinds), ("keep", Word(&["none", "encrypted"]))];

fn allowed(section: Section) -> &'static [(&'static str, Allowed)] {
    match section {
        Section::Trust => TRUST,
        Section::Authority => AUTHORITY,
        Section::Feedback => FEEDBACK,
        Section::Handoff => HANDOFF,
        Section::Governance => GOVERNANCE,
        Section::Workspace => WORKSPACE,
        Section::Hooks => HOOKS,
        Section::Gateway => GATEWAY,
        Section::Protection => PROTECTION,
    }
}

/// The keys of a section.
pub(super) fn keys(section: Section) -> Vec<&'static str> {
    allowed(section).iter().map(|(key, _)| *key).collect()
}

/// What is wrong with a setting, and what to write.
pub(super) fn problem(section: Section, key: &str, value: &Value) -> Option<String> {
    let Some((_, allowed)) = allowed(section).iter().find(|(known, _)| *known == key) else {
        return Some(unknown(section, key));
    };
    let outside = |min: f64, max: f64| format!("{value} is not a number from {min} to {max}: write one");
    let not_counted = |min: u32, max: u32| format!("{value} is not a whole number from {min} to {max}: write one");
    let in_bounds = |min: f64, max: f64| value.as_f64().is_some_and(|number| number >= min && number <= max);
    let counted = |min: u32, max: u32| value.as_u64().is_some_and(|number| number >= u64::from(min) && number <= u64::from(max));
    match *allowed {
        Number(min, max) => (!in_bounds(min, max)).then(|| outside(min, max)),
        MaybeNumber(min, max) => (!value.is_null() && !in_bounds(min, max)).then(|| outside(min, max)),
        Count(min, max) => (!counted(min, max)).then(|| not_counted(min, max)),
        MaybeCount(min, max) => (!value.is_null() && !counted(min, max)).then(|| not_counted(min, max)),
        Flag => (!value.is_boolean()).then(|| format!("{value} is not a yes or no: write true or false")),
        Word(words) => (!value.as_str().is_some_and(|word| words.contains(&word))).then(|| format!("{value} is not known here: write {}", or(words))),
        Roots => workspace::root_problem(value),
        Mounts => gateway::mounts_problem(value),
        Kinds => texts_problem(value, false).or_else(|| kinds_problem(value)),
        Texts | Fields => texts_problem(value, *allowed == Fields),
    }
}

/// Why a setting must not be written anew, though it is heeded where it is in force.
pub(super) fn must_not_be_written(section: Section, key: &str, value: &Value) -> Option<String> {
    if section == Section::Gateway && key == "mounts" { gateway::must_not_be_written(value) } else { None }
}

fn texts_problem(value: &Value, fields: bool) -> Option<String> {
    let Some(list) = value.as_array() else {
        return Some(format!("{value} is not a list: write for example [a, b]"));
    };
    if list.len() > 1_000 {
        return Some(format!("{} entries are too many: write at most 1000", list.len()));
    }
    list.iter().find_map(|entry| match entry.as_str() {
        Some(text) if !fields => {
            (text.is_empty() || text.len() > NAME_CHARS_MAX).then(|| format!("{entry} is empty or too long: write up to {NAME_CHARS_MAX} characters"))
        }
        Some(text) => super::rules::field_problem(text),
        None => Some(format!("{entry} is not a text: write it in quotes")),
    })
}

fn kinds_problem(value: &Value) -> Option<String> {
    let names = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    let unknown = names.into_iter().find(|name| Kind::personal(name).is_err())?;
    Some(format!("{} is no kind of personal data: write some of {}; secrets are always taken out", short(unknown), Kind::PERSONAL.map(Kind::name).join(", ")))
}

/// What to say of a key that does not exist, also of those that earlier servers had.
fn unknown(section: Section, key: &str) -> String {
    let known = keys(section);
    let hint = match key {
        "auto_promote_threshold" => "write auto_promote_after and auto_promote_accuracy".to_owned(),
        "handoff_timeout" => "write timeout_seconds".to_owned(),
        "implicit_approval_seconds" => "silence is neither yes nor no here: leave it out".to_owned(),
        _ => nearest(key, &known).map_or_else(|| format!("write one of {}", known.join(", ")), |near| format!("did you mean `{near}`?")),
    };
    format!("the key `{}` is not known in `{}`: {hint}", short(key), section.name())
}

impl Settings {
    /// These settings with the keys of a patch in their place.
    pub(super) fn patched(&self, section: Section, patch: &Patch) -> Result<Self, String> {
        let mut all = serde_json::to_value(self).map_err(|error| error.to_string())?;
        let Some(Value::Object(keys)) = all.get_mut(section.name()) else {
            return Err(format!("there is no section `{}`", section.name()));
        };
        for (key, value) in patch {
            keys.insert(key.clone(), value.clone());
        }
        serde_json::from_value(all).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_bounds_and_its_default_keeps_them() {
        let defaults = serde_json::to_value(Settings::default()).unwrap();
        for section in Section::ALL {
            let stored: Vec<&str> = defaults[section.name()].as_object().unwrap().keys().map(String::as_str).collect();
            let mut known = keys(section);
            known.sort_unstable();
            assert_eq!(known, stored, "{}", section.name());
            for (key, value) in defaults[section.name()].as_object().unwrap() {
                assert_eq!(problem(section, key, value), None, "{key}");
            }
        }
    }

    #[test]
    fn the_defaults_are_those_that_users_know() {
        let settings = Settings::default();
        let trust = &settings.trust;
        assert_eq!((trust.default_level, trust.auto_promote_after, trust.auto_promote_accuracy, trust.auto_demote_after), (0.3, 20, 0.8, 3));
        assert_eq!((trust.decay_per_day, trust.autonomous_threshold), (0.01, 0.7));
        assert_eq!((settings.authority.default_mode, settings.authority.volume_cap), (Mode::Suggest, 50));
        assert_eq!(settings.authority.high_risk_fields, ["deal_stage", "owner", "commission", "utm_*", "billing_*"]);
        assert_eq!((settings.feedback.approval_trust_impact, settings.feedback.override_trust_impact), (0.02, -0.05));
        assert_eq!(settings.handoff.timeout_seconds, 3_600);
    }
}
