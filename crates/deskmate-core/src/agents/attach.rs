//! Policies that hold for one agent. They stand in what the agent is, as they were when they were attached, and are asked with
//! everything that the agent does, beside whatever is mapped. They only take away, and no mapping comes of them, so nothing changes
//! for anybody else.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::conflict::{self, Conflict, ConflictKind};
use super::model::{Attachment, Definition, Source};
use super::rows;
use super::{ATTACHED, DETACHED, guard};
use crate::call::Cx;
use crate::limits::NAME_CHARS_MAX;
use crate::policy::{self, Attached, Effect, GLOBAL_POLICY, GeneralRule, Match, Policy, Rule, Rulebook, Severity};
use crate::{Error, Result, check_text};

/// How many policies an agent has at most, and how many rules are added at once.
const ATTACHED_MAX: usize = 32;
const CUSTOM_MAX: usize = 50;

/// The policies that hold for an agent alone, ready to decide with; `None` if it has none.
pub(crate) fn attached(cx: &mut Cx<'_, '_>, agent: &str, rulebook: &Rulebook) -> Result<Option<Arc<Attached>>> {
    // Asked for every act of every agent: only the digest is read, unless it is new.
    let Some(digest) = rows::digest_of(cx.tx, agent)? else { return Ok(None) };
    let held = cx.rulebooks.clone();
    held.attached(&digest, rulebook, || match rows::by_agent(cx.tx, agent)? {
        Some(row) => held.compiled(&policies_of(&row.definition, rulebook), rulebook),
        None => Ok(None),
    })
}

/// The policies of an agent with their versions, as they hold beside a rulebook.
fn policies_of(definition: &Definition, rulebook: &Rulebook) -> Vec<(Policy, i64)> {
    let mut all: Vec<(Policy, i64)> = Vec::new();
    for held in &definition.policies {
        all.push((held.policy.clone(), held.version));
        // What was tightened since holds as well; what was loosened holds as it was until a person attaches it anew.
        if held.source == Source::Desk
            && let Some((newer, version)) = rulebook.policy(&held.policy.id)
            && version != held.version
        {
            all.push((newer.clone(), version));
        }
    }
    all
}

/// A rule of one's own, for one agent.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CustomRule {
    /// Its name, once in its policy.
    name: String,
    /// When it fires, as in policies: such as `does('delete') && count('ids') > 10`; `true` for every act.
    condition: String,
    /// What it does: `deny`, `require_approval` or `log`. What is attached only takes away, so `allow` is refused.
    action: Effect,
    /// How bad it is; `warning` if not given.
    #[serde(default)]
    severity: Severity,
    /// Why, for people and agents alike.
    #[serde(default)]
    message: String,
}

impl CustomRule {
    fn rule(self) -> Result<GeneralRule> {
        let field = format!("customRules.{}", self.name);
        if !matches!(self.action, Effect::Deny | Effect::RequireApproval | Effect::Log) {
            let why = "what is attached to an agent only takes away: the action is deny, require_approval or log";
            return Err(Error::invalid(&field, why));
        }
        check_text("customRules", &self.message, 2_000)?;
        let when = Some(self.condition.trim().to_owned()).filter(|condition| condition != "true");
        Ok(GeneralRule {
            name: self.name,
            matches: Match::default(),
            when,
            effect: self.action,
            approvers: Vec::new(),
            quorum: None,
            grant_seconds: None,
            expires_seconds: None,
            paths: Vec::new(),
            severity: self.severity,
            message: self.message,
            alternative: None,
            waive_trust: false,
        })
    }
}

/// Attach a policy to an agent that was made here: a policy of the desk, or a template. It holds from now on for everything that
/// the agent's runs do, and only takes away. What contradicts what holds already is refused, unless a person says `force`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AttachPolicy {
    /// The agent's id or name.
    agent_id: String,
    /// The policy: the name of one of the desk, or of a template.
    policy_id: String,
    /// Values for the gaps of a template.
    #[serde(default)]
    values: Map<String, Value>,
    /// Rules that are added for this agent alone.
    #[serde(default)]
    custom_rules: Vec<CustomRule>,
    /// Attach it though it contradicts what holds already. Only a person says so.
    #[serde(default)]
    force: bool,
}

/// What holds now.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyAttached {
    /// What came of it, in words.
    message: String,
    /// The agent's id.
    agent_id: String,
    /// Its name.
    name: String,
    /// The version of what the agent is.
    version: i64,
    /// The policy.
    policy: Shown,
    /// The names of all policies that are attached to it.
    policies: Vec<String>,
    /// Conflicts between this policy and what else holds for the agent.
    conflicts: Vec<Conflict>,
    /// Whether rules were compared; not if there are too many.
    compared: bool,
}

/// A policy as it is shown.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    /// Its name.
    pub(super) id: String,
    /// What it is for.
    pub(super) description: String,
    /// The framework that it helps with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) framework: Option<String>,
    /// Why it is there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    /// Its rules, the first of them.
    pub(super) rules: Vec<ShownRule>,
    /// How many it has.
    pub(super) rule_count: usize,
}

/// A rule as it is shown to everybody: without its condition, which is for people.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct ShownRule {
    /// Its name.
    name: String,
    /// What it does.
    effect: Effect,
    /// Why.
    message: String,
    /// When; only people are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    when: Option<String>,
}

impl Shown {
    pub(super) fn of(held: &Attachment, for_people: bool) -> Self {
        let shown = |rule: &Rule| match rule {
            Rule::Field(field) => ShownRule {
                name: format!("{}_{}", field.constraint.name(), field.field),
                effect: if field.constraint == policy::Constraint::HighRisk { Effect::RequireApproval } else { Effect::Deny },
                message: field.reason.clone(),
                when: None,
            },
            Rule::General(rule) => {
                let when = rule.when.clone().filter(|_| for_people);
                ShownRule { name: rule.name.clone(), effect: rule.effect, message: rule.message.clone(), when }
            }
        };
        Self {
            id: held.policy.id.clone(),
            description: held.policy.description.clone(),
            framework: held.policy.framework.clone(),
            reason: held.why.clone(),
            rules: held.policy.rules.iter().take(10).map(shown).collect(),
            rule_count: held.policy.rules.len(),
        }
    }
}

/// A policy of the desk, or a template with values in its gaps. An unknown one is refused with the names of those that are there.
pub(super) fn find(cx: &mut Cx<'_, '_>, field: &str, id: &str, values: &Map<String, Value>, why: &str) -> Result<Attachment> {
    check_text(field, id, NAME_CHARS_MAX)?;
    let rulebook = policy::current(cx)?;
    if id == GLOBAL_POLICY {
        return Err(Error::invalid(field, "holds for every agent already"));
    }
    let plain = |policy: Policy| Policy { tests: Vec::new(), ..policy };
    if let Some((policy, version)) = rulebook.policy(id) {
        if !values.is_empty() {
            return Err(Error::invalid("values", format!("are for the gaps of templates, and {id} is a policy of the desk")));
        }
        return Ok(Attachment { policy: plain(policy.clone()), version, source: Source::Desk, why: why.to_owned(), custom: Vec::new() });
    }
    let Some(template) = cx.templates.policy(id) else {
        let desk = rulebook.parts().policies.keys().filter(|name| *name != GLOBAL_POLICY).map(String::as_str);
        let known: Vec<&str> = desk.chain(cx.templates.policies().map(|template| template.id.as_str())).collect();
        return Err(Error::not_found(format!("there is no policy {id:?}; there are {}", known.join(", "))).hint("agents_create_policy makes one of sentences"));
    };
    let filled = template.fill(id, values).map_err(|problems| Error::invalid("values", problems.first().map_or_else(String::new, ToString::to_string)))?;
    Ok(Attachment { policy: plain(filled), version: 0, source: Source::Template, why: why.to_owned(), custom: Vec::new() })
}

/// Puts a policy among those of an agent. Rules are added to what is there and none goes. Says whether anything changed.
pub(super) fn put(definition: &mut Definition, new: Attachment) -> Result<bool> {
    let name = new.policy.id.clone();
    let Some(held) = definition.policies.iter_mut().find(|held| held.policy.id == name) else {
        if definition.policies.len() >= ATTACHED_MAX {
            return Err(Error::invalid("policyId", format!("an agent has at most {ATTACHED_MAX} policies")));
        }
        definition.policies.push(new);
        return Ok(true);
    };
    let mut changed = false;
    for rule in new.policy.rules {
        if held.policy.rules.contains(&rule) {
            continue;
        }
        let named = |rule: &Rule| if let Rule::General(rule) = rule { Some(rule.name.clone()) } else { None };
        let own = named(&rule);
        if let Some(own) = own.filter(|own| held.policy.rules.iter().any(|rule| named(rule).as_ref() == Some(own))) {
            return Err(Error::conflict(format!("{name} is attached already, with another rule {own}"))
                .hint("give the rule another name; or a person takes the policy away with agents_detach_policy first"));
        }
        held.policy.rules.push(rule);
        changed = true;
    }
    for custom in new.custom {
        if !held.custom.contains(&custom) {
            held.custom.push(custom);
        }
    }
    Ok(changed)
}

/// Conflicts that a policy of an agent, or any of its policies, has with what else holds for it. `None` if there are too many rules
/// to compare.
pub(super) fn conflicts_of(cx: &mut Cx<'_, '_>, agent: &str, definition: &Definition, policy: Option<&str>) -> Result<Option<Vec<Conflict>>> {
    let rulebook = policy::current(cx)?;
    let mut all: Vec<Policy> = definition.policies.iter().map(|held| held.policy.clone()).collect();
    let mapped = rulebook.parts().mappings.iter().filter(|mapping| policy::fits_pattern(&mapping.agent, agent)).map(|mapping| mapping.policy.as_str());
    for name in mapped.chain([GLOBAL_POLICY]) {
        if let Some((found, _)) = rulebook.policy(name)
            && !all.iter().any(|held| held.id == found.id)
        {
            all.push(Policy { tests: Vec::new(), ..found.clone() });
        }
    }
    let Ok(found) = conflict::conflicts(&all) else { return Ok(None) };
    let meant = |name: &str| policy.map_or_else(|| definition.policies.iter().any(|held| held.policy.id == name), |policy| policy == name);
    let about = |one: &Conflict| meant(&one.rule.policy) || one.other.as_ref().is_some_and(|other| meant(&other.policy));
    let mut about: Vec<Conflict> = found.found.into_iter().filter(about).collect();
    if cx.actor.is_agent() {
        // An act that shows a conflict shows where bounds are.
        for one in &mut about {
            one.example = None;
        }
    }
    Ok(Some(about))
}

pub(super) fn attach(cx: &mut Cx<'_, '_>, input: AttachPolicy) -> Result<PolicyAttached> {
    guard::not_from_a_run(cx)?;
    let mut row = rows::find(cx, &input.agent_id)?;
    guard::maker_or_person(cx, &row)?;
    if input.force && cx.actor.is_agent() {
        return Err(Error::forbidden("only a person attaches what contradicts").hint("leave force out, or ask a person"));
    }
    if input.custom_rules.len() > CUSTOM_MAX {
        return Err(Error::invalid("customRules", format!("must be at most {CUSTOM_MAX}")));
    }
    let mut new = find(cx, "policyId", &input.policy_id, &input.values, "")?;
    for custom in input.custom_rules {
        let rule = custom.rule()?;
        new.custom.push(rule.name.clone());
        new.policy.rules.push(Rule::General(Box::new(rule)));
    }
    if let Some(problem) = policy::problems(&new.policy).into_iter().next() {
        return Err(Error::invalid("customRules", problem.to_string()).hint("docs/policy.md says what conditions can ask for"));
    }
    let name = new.policy.id.clone();
    let mut definition = row.definition.clone();
    let changed = put(&mut definition, new)?;
    let conflicts = conflicts_of(cx, &row.agent, &definition, Some(&name))?;
    let compared = conflicts.is_some();
    let conflicts = conflicts.unwrap_or_default();
    if let Some(worst) = conflicts.iter().find(|one| one.kind == ConflictKind::Contradicting)
        && changed
        && !input.force
    {
        let other = worst.other.as_ref().map_or_else(String::new, |other| format!(" and {} of {}", other.rule, other.policy));
        return Err(Error::conflict(format!("{} of {}{other} contradict each other: {}", worst.rule.rule, worst.rule.policy, worst.why))
            .hint("a person who wants it so attaches it with force: true; then the stricter one counts"));
    }
    let agent = row.agent.clone();
    if changed {
        row.definition = definition;
        row.version += 1;
        let payload = json!({ "policy": name, "definition": row.definition.for_agents() });
        rows::save(cx, &mut row, ATTACHED, payload)?;
    }
    let shown = row.definition.policies.iter().find(|held| held.policy.id == name).map(|held| Shown::of(held, !cx.actor.is_agent()));
    let shown = shown.ok_or_else(|| Error::not_found(format!("{name} is not attached")))?;
    let held = row.definition.policies.iter().map(|held| held.policy.id.clone()).collect::<Vec<_>>();
    let said = if changed { format!("{name} holds for {agent} from now on") } else { format!("{name} was attached to {agent} already") };
    let lines: Vec<String> = conflicts.iter().map(|one| format!("{}: {}", one.rule.rule, one.why)).collect();
    let beside = if lines.is_empty() { String::new() } else { format!(" Beside it: {}.", lines.join("; ")) };
    let message = format!("{said}, with {} rules. Attached to it: {}.{beside}", shown.rule_count, held.join(", "));
    Ok(PolicyAttached { message, agent_id: row.id, name: agent, version: row.version, policy: shown, policies: held, conflicts, compared })
}

/// Take a policy away from an agent that is not deployed. That loosens, so only an owner who is there does it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DetachPolicy {
    /// The agent's id or name.
    agent_id: String,
    /// The policy's name.
    policy_id: String,
}

/// What is left.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyDetached {
    /// The agent's id.
    agent_id: String,
    /// The names of the policies that are still attached.
    policies: Vec<String>,
}

pub(super) fn detach(cx: &mut Cx<'_, '_>, input: DetachPolicy) -> Result<PolicyDetached> {
    let mut row = rows::find(cx, &input.agent_id)?;
    if row.status.is_fixed() {
        return Err(Error::conflict(format!("{} is {}, and runs under what was approved", row.agent, row.status.name())).hint("stop it first"));
    }
    let before = row.definition.policies.len();
    row.definition.policies.retain(|held| held.policy.id != input.policy_id);
    if row.definition.policies.len() == before {
        let held: Vec<&str> = row.definition.policies.iter().map(|held| held.policy.id.as_str()).collect();
        return Err(Error::not_found(format!(
            "{} is not attached; attached are {}",
            input.policy_id,
            if held.is_empty() { "none".to_owned() } else { held.join(", ") }
        )));
    }
    row.version += 1;
    let payload = json!({ "policy": input.policy_id, "definition": row.definition.for_agents() });
    rows::save(cx, &mut row, DETACHED, payload)?;
    Ok(PolicyDetached { agent_id: row.id, policies: row.definition.policies.into_iter().map(|held| held.policy.id).collect() })
}
