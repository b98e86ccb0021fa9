//! Policies of sentences: what they say, what they would have caught, and how they come into force. An owner who is there puts one
//! in force; whatever anybody else wishes is a request that an owner decides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::sentence::{DraftedRule, Refused, draft_policy};
use super::{attach, guard};
use crate::call::{Cx, Presence, Role};
use crate::limits::NAME_CHARS_MAX;
use crate::policy::{self, Caught, Effect, GLOBAL_POLICY, Policy, Rule, draft};
use crate::{Error, Result, check_text};

/// How many past acts a new policy is tried on, and how many examples are shown.
const LOOKED_AT: u32 = 200;
const EXAMPLES: usize = 5;

/// What a policy is about.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Category {
    /// Doors, keys, deletions.
    Security,
    /// Data of people.
    Privacy,
    /// What a framework asks for.
    Compliance,
    /// Rates, costs, times.
    Operational,
    /// What people decide.
    Governance,
    /// Anything else.
    Custom,
}

impl Category {
    fn name(self) -> &'static str {
        match self {
            Self::Security => "security",
            Self::Privacy => "privacy",
            Self::Compliance => "compliance",
            Self::Operational => "operational",
            Self::Governance => "governance",
            Self::Custom => "custom",
        }
    }
}

/// Make a policy of sentences such as "Block deleting more than 100 records. Require approval for payments above 500 euros." Each
/// rule is shown with the words it came from, and with past acts that it would have caught. What cannot be expressed is refused and
/// said. An owner who is there puts it in force; otherwise an owner decides. It holds for nobody until it is attached or mapped.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CreatePolicy {
    /// What agents must not do, what a person decides, what is noted, hidden or limited.
    description: String,
    /// What it is about.
    category: Category,
    /// The framework that it helps with, such as `GDPR`.
    framework: Option<String>,
    /// Begin with the rules of this policy of the desk, or of this template.
    based_on: Option<String>,
    /// Its name; made from what its rules do if not given.
    name: Option<String>,
    /// Make it of what was understood, though a statement was not; no if not given.
    #[serde(default)]
    leave_out: bool,
}

/// What came of it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Became {
    /// It is in force; it holds where it is attached or mapped.
    InForce,
    /// An owner decides.
    Waits,
    /// Nothing was made, because a statement cannot be expressed.
    NotMade,
}

/// A policy of sentences.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyMade {
    /// All of this in words, for people.
    message: String,
    /// What came of it.
    state: Became,
    /// Its name.
    policy_id: String,
    /// The version that is in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i64>,
    /// The request that an owner decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// The rules that were made, each with the words it came from.
    rules: Vec<DraftedRule>,
    /// How many rules it has of the one that it is based on.
    based_on_rules: usize,
    /// Statements that became no rule, and why.
    refused: Vec<Refused>,
    /// What it would have caught of what agents asked for.
    past: Caught,
    /// What to do next.
    next_steps: Vec<String>,
}

/// Whether nothing was made.
pub(super) fn is_untold(answer: &Value) -> bool {
    answer.get("state") == Some(&Value::from("not_made"))
}

/// A name that no policy and no template has.
fn free_name(cx: &mut Cx<'_, '_>, given: Option<&str>, rules: &[DraftedRule], category: Category) -> Result<String> {
    let rulebook = policy::current(cx)?;
    let is_used = |name: &str| rulebook.policy(name).is_some() || cx.templates.policy(name).is_some() || matches!(name, GLOBAL_POLICY | policy::DEFAULT_POLICY);
    if let Some(name) = given {
        check_text("name", name, NAME_CHARS_MAX)?;
        if is_used(name) {
            return Err(Error::conflict(format!("there is a policy or a template {name} already")).hint("give it another name"));
        }
        return Ok(name.to_owned());
    }
    let first = rules.first().map_or("policy", |drafted| drafted.rule.name.as_str()).replace('_', "-");
    let plain: String = format!("{}-{first}", category.name()).chars().take(60).collect();
    let names = (1..1_000).map(|number| if number == 1 { plain.clone() } else { format!("{plain}-{number}") });
    names.into_iter().find(|name| !is_used(name)).ok_or_else(|| Error::conflict(format!("there are very many policies called {plain}")).hint("give it a name"))
}

/// Whether the caller puts policies in force by saying so.
fn is_owner_there(cx: &Cx<'_, '_>) -> bool {
    cx.actor.is_person() && cx.actor.role == Some(Role::Owner) && cx.actor.presence == Presence::Shown
}

pub(super) fn create(cx: &mut Cx<'_, '_>, input: CreatePolicy) -> Result<PolicyMade> {
    guard::not_from_a_run(cx)?;
    check_text("framework", input.framework.as_deref().unwrap_or_default(), NAME_CHARS_MAX)?;
    let drafted = draft_policy("draft", &input.description)?;
    let base = match &input.based_on {
        None => None,
        Some(id) => Some(attach::find(cx, "basedOn", id, &Map::new(), "")?.policy),
    };
    let (mut rules, refused) = (drafted.rules, drafted.refused);
    if rules.is_empty() && (base.is_none() || refused.is_empty()) || (rules.is_empty() && !input.leave_out) {
        let why: Vec<String> = refused.iter().map(|one| format!("\"{}\": {}", one.words, one.why)).collect();
        return Err(Error::invalid("description", format!("no rule can be made of it. {}", why.join("; ")))
            .hint("say what is blocked, needs approval, is logged, hidden or limited: by what is done, its amount, its time, its data or who gets it"));
    }
    let id = free_name(cx, input.name.as_deref(), &rules, input.category)?;
    let based: Vec<Rule> = base.iter().flat_map(|base| base.rules.iter().filter(|rule| !is_allow(rule)).cloned()).collect();
    let taken: Vec<String> = based.iter().filter_map(|rule| if let Rule::General(rule) = rule { Some(rule.name.clone()) } else { None }).collect();
    for drafted in &mut rules {
        if taken.contains(&drafted.rule.name) {
            drafted.rule.name = format!("{}_here", drafted.rule.name);
        }
    }
    let own = rules.iter().map(|drafted| Rule::General(Box::new(drafted.rule.clone())));
    let policy = Policy {
        id: id.clone(),
        description: input.description.chars().take(500).collect(),
        category: Some(input.category.name().to_owned()),
        framework: input.framework.clone().or_else(|| base.as_ref().and_then(|base| base.framework.clone())),
        rules: based.iter().cloned().chain(own).collect(),
        tests: Vec::new(),
    };
    if let Some(problem) = policy::problems(&policy).into_iter().next() {
        return Err(Error::invalid("description", problem.to_string()));
    }
    let past = policy::would_catch(cx, &policy, LOOKED_AT, EXAMPLES)?;
    let mut made = PolicyMade {
        message: String::new(),
        state: Became::NotMade,
        policy_id: id.clone(),
        version: None,
        request_id: None,
        rules,
        based_on_rules: based.len(),
        refused,
        past,
        next_steps: Vec::new(),
    };
    if !made.refused.is_empty() && !input.leave_out {
        made.next_steps.push("say the refused statements in other words, or leave them out with leaveOut: true".to_owned());
    } else if is_owner_there(cx) {
        let mut target = policy::current(cx)?.parts().clone();
        target.policies.insert(id.clone(), policy);
        draft::compile(&target)?;
        let by = cx.actor.id.clone();
        let stored = policy::store(cx, &target, &by)?;
        made.state = Became::InForce;
        made.version = stored.policies.iter().find(|one| one.policy == id).map(|one| one.version);
        made.next_steps.push(format!("attach it to an agent with agents_attach_policy, or map it: it holds for nobody yet as {id}"));
    } else {
        let mut target = policy::current(cx)?.parts().clone();
        target.policies.insert(id.clone(), policy);
        let body = draft::Set::of(&target)?.policy(&id).cloned();
        let change = draft::Change { key: draft::Key::Policy { policy: id.clone() }, from: None, to: body };
        let asked = draft::propose(cx, vec![change], format!("Accept the policy {id}"), input.description.clone())?;
        made.state = Became::Waits;
        made.request_id = Some(asked.id);
        made.next_steps.push("an owner decides; then it can be attached with agents_attach_policy".to_owned());
    }
    made.message = told(&made);
    Ok(made)
}

fn is_allow(rule: &Rule) -> bool {
    matches!(rule, Rule::General(rule) if rule.effect == Effect::Allow)
}

fn told(made: &PolicyMade) -> String {
    let mut lines = vec![match made.state {
        Became::InForce => format!("{} is in force, with {} rules.", made.policy_id, made.rules.len() + made.based_on_rules),
        Became::Waits => format!("{} waits for an owner, as request {}.", made.policy_id, made.request_id.as_deref().unwrap_or_default()),
        Became::NotMade => "Nothing was made, because not all of it can be expressed.".to_owned(),
    }];
    for drafted in &made.rules {
        lines.push(format!("{} (from \"{}\"): {}", drafted.rule.name, drafted.words, drafted.rule.message));
        lines.extend(drafted.left_out.iter().map(|word| format!("  it does not heed \"{word}\"")));
        lines.extend(drafted.assumed.iter().map(|assumed| format!("  assumed: {assumed}")));
    }
    lines.extend(made.refused.iter().map(|one| format!("Refused \"{}\": {}", one.words, one.why)));
    let past = &made.past;
    lines.push(match past.looked_at {
        0 => "There are no past acts to try it on.".to_owned(),
        all => format!("Of the newest {all} acts it would have caught {}.", past.caught),
    });
    lines.extend(past.examples.iter().map(|one| format!("  {} {} in {}: {} ({})", one.at, one.agent, one.domain, one.act, one.rules.join(", "))));
    lines.extend(made.next_steps.iter().map(|next| format!("Next: {next}.")));
    lines.join("\n")
}

/// Take a policy out of force that no mapping names. Its versions stay readable, and where it is attached it goes on holding. An owner
/// who is there does it; otherwise an owner decides.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeletePolicy {
    /// The policy's name.
    policy_id: String,
}

/// What came of it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyDeleted {
    /// The policy's name.
    policy_id: String,
    /// Whether it is out of force.
    deleted: bool,
    /// The request that an owner decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// In words.
    message: String,
}

pub(super) fn delete(cx: &mut Cx<'_, '_>, input: DeletePolicy) -> Result<PolicyDeleted> {
    guard::not_from_a_run(cx)?;
    let rulebook = policy::current(cx)?;
    let id = input.policy_id;
    if id == GLOBAL_POLICY || rulebook.policy(&id).is_none() {
        let known: Vec<&str> = rulebook.parts().policies.keys().filter(|name| *name != GLOBAL_POLICY).map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Error::not_found(format!("there is no policy {id:?} in force; there are {known}")));
    }
    let mapped: Vec<String> =
        rulebook.parts().mappings.iter().filter(|mapping| mapping.policy == id).map(|mapping| format!("{} in {}", mapping.agent, mapping.domain)).collect();
    if !mapped.is_empty() {
        return Err(Error::conflict(format!("{id} is mapped for {}", mapped.join(", "))).hint("take the mappings away first, with desk_policy_apply"));
    }
    if is_owner_there(cx) {
        let mut target = rulebook.parts().clone();
        target.policies.remove(&id);
        draft::compile(&target)?;
        let by = cx.actor.id.clone();
        policy::store(cx, &target, &by)?;
        let message = format!("{id} is not in force any more; its versions stay, and where it is attached it goes on holding");
        return Ok(PolicyDeleted { policy_id: id, deleted: true, request_id: None, message });
    }
    let from = draft::Set::of(rulebook.parts())?.policy(&id).cloned();
    let change = draft::Change { key: draft::Key::Policy { policy: id.clone() }, from, to: None };
    let asked = draft::propose(cx, vec![change], format!("Take the policy {id} out of force"), format!("{} asks for it", cx.actor.id))?;
    let message = format!("an owner decides, as request {}", asked.id);
    Ok(PolicyDeleted { policy_id: id, deleted: false, request_id: Some(asked.id), message })
}

/// The versions of a policy, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PolicyVersions {
    /// The policy's name.
    policy_id: String,
}

/// Versions.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Versions {
    /// The policy's name.
    policy_id: String,
    /// The newest versions, at most 50.
    versions: Value,
}

pub(super) fn versions(cx: &mut Cx<'_, '_>, input: PolicyVersions) -> Result<Versions> {
    let whole = policy::get(cx, policy::Get::named(input.policy_id.clone()))?;
    let whole = serde_json::to_value(whole).map_err(|error| Error::invalid("policyId", error.to_string()))?;
    Ok(Versions { policy_id: input.policy_id, versions: whole.get("versions").cloned().unwrap_or_default() })
}
