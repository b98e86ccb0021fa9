//! Conflicts among the rules of policies that hold together: rules that contradict each other, rules that never change an answer
//! because another is at least as strict on all that they match, and rules that can never fire. Only what is certain is said. A
//! contradiction comes with an act that shows it; where that cannot be found and cannot be ruled out, it says so.
//!
//! - [`logic`]: conditions as lists of cases. [`example`]: acts that fit conditions.

mod example;
mod logic;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use self::logic::Conjunction;
use crate::policy::{Constraint, Effect, FieldRule, GeneralRule, Match, Parts, Policy, Problem, Rule, Rulebook, fits_pattern};

/// How many rules are compared with each other.
pub const RULES_COMPARED_MAX: usize = 400;
/// How many pairs are named that nothing can be said about.
const UNKNOWN_MAX: usize = 50;

/// What is wrong between rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConflictKind {
    /// What one gives, another takes; or together they leave nothing.
    Contradicting,
    /// It never changes an answer, because another is at least as strict on all that it matches.
    Shadowed,
    /// It can never fire.
    Unreachable,
}

/// A rule of a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct RuleRef {
    /// The policy.
    pub policy: String,
    /// The rule: its name, or `CONSTRAINT_FIELD`.
    pub rule: String,
    /// Its place in the policy, counted from 0: a policy can have the same rule about a field twice.
    pub place: usize,
}

/// A conflict that is certain.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Conflict {
    /// What is wrong.
    pub kind: ConflictKind,
    /// The rule.
    pub rule: RuleRef,
    /// The rule that it is in conflict with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<RuleRef>,
    /// In words.
    pub why: String,
    /// An act that shows it, as in the cases of a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
}

/// Two rules of which it cannot be told whether they contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Untold {
    /// One of them.
    pub rule: RuleRef,
    /// The other.
    pub other: RuleRef,
    /// Why not.
    pub why: String,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Conflicts {
    /// Conflicts that are certain.
    pub found: Vec<Conflict>,
    /// What cannot be told.
    pub untold: Vec<Untold>,
}

/// Compares the rules of policies that hold together.
pub fn conflicts(policies: &[Policy]) -> Result<Conflicts, Vec<Problem>> {
    let mut parts = Parts::default();
    for policy in policies {
        parts.policies.insert(policy.id.clone(), policy.clone());
    }
    let rulebook = Rulebook::compile(parts, BTreeMap::new())?;
    let all: Vec<Looked<'_>> =
        policies.iter().flat_map(|policy| policy.rules.iter().enumerate().map(move |(place, rule)| Looked::new(policy, place, rule))).collect();
    if all.len() > RULES_COMPARED_MAX {
        let message = format!("{} rules are too many to compare each with each: at most {RULES_COMPARED_MAX}", all.len());
        return Err(vec![Problem { line: 0, column: 0, path: "policies".to_owned(), message }]);
    }
    let mut conflicts = Conflicts::default();
    for rule in all.iter().filter(|rule| rule.is_unreachable()) {
        let why = "its condition can never hold for an act that it matches".to_owned();
        conflicts.found.push(Conflict { kind: ConflictKind::Unreachable, rule: rule.named(), other: None, why, example: None });
    }
    let live: Vec<(usize, &Looked<'_>)> = all.iter().enumerate().filter(|(_, rule)| !rule.is_unreachable()).collect();
    for (place, rule) in &live {
        // Of two that are alike the later one is in the shadow.
        let stricter = live
            .iter()
            .find(|(other_place, other)| other_place != place && rule.is_in_shadow_of(other) && (other_place < place || !other.is_in_shadow_of(rule)));
        if let Some((_, other)) = stricter {
            let why = format!("{} is at least as strict on everything that it matches", other.shown());
            conflicts.found.push(Conflict { kind: ConflictKind::Shadowed, rule: rule.named(), other: Some(other.named()), why, example: None });
        }
    }
    for (number, (_, one)) in live.iter().enumerate() {
        for (_, other) in live.iter().skip(number + 1) {
            contradiction(&rulebook, one, other, &mut conflicts);
        }
    }
    conflicts.found.sort_by(|one, other| (one.kind, &one.rule, &one.other).cmp(&(other.kind, &other.rule, &other.other)));
    conflicts.untold.truncate(UNKNOWN_MAX);
    Ok(conflicts)
}

/// A rule, taken apart.
struct Looked<'p> {
    policy: &'p Policy,
    place: usize,
    rule: &'p Rule,
    /// The cases of its condition; `None` if it has too many.
    cases: Option<Vec<Conjunction>>,
}

impl<'p> Looked<'p> {
    fn new(policy: &'p Policy, place: usize, rule: &'p Rule) -> Self {
        let cases = match rule {
            Rule::Field(_) => Some(vec![Vec::new()]),
            Rule::General(rule) => logic::cases(rule.when.as_deref()).map(|cases| cases.into_iter().filter(|case| !is_impossible(rule, case)).collect()),
        };
        Self { policy, place, rule, cases }
    }

    fn named(&self) -> RuleRef {
        let rule = match self.rule {
            Rule::Field(rule) => format!("{}_{}", rule.constraint.name(), rule.field),
            Rule::General(rule) => rule.name.clone(),
        };
        RuleRef { policy: self.policy.id.clone(), rule, place: self.place }
    }

    fn shown(&self) -> String {
        let named = self.named();
        format!("{} of {}", named.rule, named.policy)
    }

    fn general(&self) -> Option<&'p GeneralRule> {
        match self.rule {
            Rule::General(rule) => Some(rule),
            Rule::Field(_) => None,
        }
    }

    /// Whether no act can make it fire.
    fn is_unreachable(&self) -> bool {
        self.cases.as_ref().is_some_and(Vec::is_empty)
    }

    /// Whether it never changes an answer that the other gives as well.
    fn is_in_shadow_of(&self, other: &Self) -> bool {
        match (self.rule, other.rule) {
            (Rule::General(rule), Rule::General(by)) => is_outdone(rule, by) && covers_match(&by.matches, &rule.matches) && self.is_covered_by(other),
            // Only within a policy: one that has rules about fields also holds changes that it cannot look into.
            (Rule::Field(rule), Rule::Field(by)) => self.policy.id == other.policy.id && is_field_outdone(rule, by),
            (Rule::General(_), Rule::Field(_)) | (Rule::Field(_), Rule::General(_)) => false,
        }
    }

    fn is_covered_by(&self, other: &Self) -> bool {
        match (&self.cases, &other.cases) {
            (Some(narrow), Some(wide)) => logic::covers(wide, narrow),
            _ => self.general().zip(other.general()).is_some_and(|(rule, by)| by.when.is_none() || by.when == rule.when),
        }
    }
}

/// Whether a case of a condition can never be, given what its rule matches.
fn is_impossible(rule: &GeneralRule, case: &Conjunction) -> bool {
    logic::is_impossible(case, |name, value| {
        let list = match name {
            "act.kind" => &rule.matches.kind,
            "act.tool" => &rule.matches.tool,
            "act.domain" => &rule.matches.domain,
            "agent.id" => &rule.matches.agent,
            "act.environment" => &rule.matches.environment,
            _ => return true,
        };
        list.is_empty() || list.iter().any(|pattern| fits_pattern(pattern, value))
    })
}

/// Whether what a rule does is done by another as well, wherever both fire: the same answer, the same needs, the same risk.
fn is_outdone(rule: &GeneralRule, by: &GeneralRule) -> bool {
    if by.severity < rule.severity {
        return false;
    }
    match (rule.effect, by.effect) {
        (Effect::Deny | Effect::Allow, Effect::Deny) => true,
        // Nobody can approve what is refused. What a rule asks of approvers is told beside the refusal, so it must ask nothing.
        (Effect::RequireApproval, Effect::Deny) => {
            rule.approvers.is_empty() && rule.quorum.is_none() && rule.grant_seconds.is_none() && rule.expires_seconds.is_none()
        }
        (Effect::RequireApproval, Effect::RequireApproval) => {
            let same_people = rule.approvers.is_empty() || rule.approvers == by.approvers;
            let quorum = rule.quorum.is_none_or(|quorum| by.quorum.is_some_and(|by| by >= quorum));
            let within = |one: Option<u32>, by: Option<u32>| one.is_none_or(|one| by.is_some_and(|by| by <= one));
            same_people && quorum && within(rule.grant_seconds, by.grant_seconds) && within(rule.expires_seconds, by.expires_seconds)
        }
        // Noting and hiding have a use of their own, whatever else is answered.
        _ => false,
    }
}

/// Whether a rule about a field refuses or holds whatever another of its policy does.
fn is_field_outdone(rule: &FieldRule, by: &FieldRule) -> bool {
    if !covers_pattern(&by.field, &rule.field) {
        return false;
    }
    // A table below a pattern with a star has paths of its own, and is not a value.
    let sees_tables = !by.field.ends_with('*') || rule.field.ends_with('*');
    match (rule.constraint, by.constraint) {
        (Constraint::HighRisk, Constraint::HighRisk | Constraint::Readonly) => true,
        (Constraint::HighRisk, _) => false,
        (_, Constraint::Readonly) => true,
        (Constraint::ValueRange, Constraint::ValueRange) => {
            let above = rule.min.is_none_or(|min| by.min.is_some_and(|by| by >= min));
            let below = rule.max.is_none_or(|max| by.max.is_some_and(|by| by <= max));
            sees_tables && above && below
        }
        (Constraint::Enum, Constraint::Enum) => {
            let values = rule.values.as_deref().unwrap_or_default();
            sees_tables && by.values.as_deref().unwrap_or_default().iter().all(|value| values.contains(value))
        }
        (Constraint::Regex, Constraint::Regex) => sees_tables && rule.pattern == by.pattern,
        _ => false,
    }
}

/// Whether one `match` is about every act that another is about.
fn covers_match(wide: &Match, narrow: &Match) -> bool {
    let lists = |rule: &Match| [rule.kind.clone(), rule.tool.clone(), rule.domain.clone(), rule.agent.clone(), rule.environment.clone()];
    lists(wide).iter().zip(lists(narrow).iter()).all(|(wide, narrow)| {
        wide.is_empty()
            || (narrow.is_empty() && wide.iter().any(|pattern| pattern == "*"))
            || (!narrow.is_empty() && narrow.iter().all(|pattern| wide.iter().any(|wide| covers_pattern(wide, pattern))))
    })
}

fn is_plain(text: &str) -> bool {
    !text.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

/// Whether a pattern fits everything that another fits, as far as that is certain.
fn covers_pattern(wide: &str, narrow: &str) -> bool {
    if wide == narrow {
        return true;
    }
    let begin = |text: &str| text.strip_suffix('*').filter(|begin| is_plain(begin)).map(str::to_owned);
    match (begin(wide), is_plain(narrow), begin(narrow)) {
        (Some(wide), true, _) => narrow.starts_with(&wide),
        (Some(wide), false, Some(narrow)) => narrow.starts_with(&wide),
        (Some(wide), false, None) => wide.is_empty(),
        _ => false,
    }
}

/// Whether two patterns can fit the same text: yes, no, or nobody knows.
fn meet(one: &str, other: &str) -> Option<bool> {
    let begin = |text: &str| text.strip_suffix('*').filter(|begin| is_plain(begin)).map(str::to_owned);
    match (is_plain(one), is_plain(other)) {
        (true, true) => Some(one == other),
        (true, false) => Some(fits_pattern(other, one)),
        (false, true) => Some(fits_pattern(one, other)),
        (false, false) => match (begin(one), begin(other)) {
            (Some(one), Some(other)) => Some(one.starts_with(&other) || other.starts_with(&one)),
            _ if one == other => Some(true),
            _ => None,
        },
    }
}

/// Whether two rules can be about the same act, by what they match.
fn matches_meet(one: &Match, other: &Match) -> Option<bool> {
    let lists = |rule: &Match| [rule.kind.clone(), rule.tool.clone(), rule.domain.clone(), rule.agent.clone(), rule.environment.clone()];
    let mut is_known = true;
    for (one, other) in lists(one).iter().zip(lists(other).iter()) {
        if one.is_empty() || other.is_empty() {
            continue;
        }
        let answers: Vec<Option<bool>> = one.iter().flat_map(|pattern| other.iter().map(move |other| meet(pattern, other))).collect();
        if answers.iter().all(|answer| *answer == Some(false)) {
            return Some(false);
        }
        is_known &= answers.contains(&Some(true));
    }
    is_known.then_some(true)
}

/// What one gives and the other takes, and what both leave nothing of.
fn contradiction(rulebook: &Rulebook, one: &Looked<'_>, other: &Looked<'_>, conflicts: &mut Conflicts) {
    match (one.rule, other.rule) {
        (Rule::Field(first), Rule::Field(second)) => {
            if let Some(why) = no_value_left(first, second) {
                conflicts.found.push(Conflict { kind: ConflictKind::Contradicting, rule: one.named(), other: Some(other.named()), why, example: None });
            }
        }
        (Rule::General(first), Rule::General(second)) => {
            let why = match (first.effect, second.effect) {
                (Effect::Allow, Effect::Deny) => format!("{} allows what {} refuses; what is refused stays refused", one.shown(), other.shown()),
                (Effect::Deny, Effect::Allow) => format!("{} allows what {} refuses; what is refused stays refused", other.shown(), one.shown()),
                (Effect::RequireApproval, Effect::RequireApproval) => match nobody_left(first, second) {
                    Some(why) => why,
                    None => return,
                },
                _ => return,
            };
            let (allowing, refusing) = if first.effect == Effect::Deny { (other, one) } else { (one, other) };
            let meets = matches_meet(&first.matches, &second.matches);
            if meets == Some(false) {
                return;
            }
            if let Some(example) = example::of_both(rulebook, (allowing.policy, allowing.general()), (refusing.policy, refusing.general())) {
                let (rule, other) = (allowing.named(), Some(refusing.named()));
                conflicts.found.push(Conflict { kind: ConflictKind::Contradicting, rule, other, why, example: Some(example) });
            } else {
                let reason = if meets == Some(true) {
                    "both match the same acts, but no act was found for which both conditions hold"
                } else {
                    "whether both match the same acts cannot be told from their patterns"
                };
                conflicts.untold.push(Untold { rule: allowing.named(), other: refusing.named(), why: reason.to_owned() });
            }
        }
        _ => {}
    }
}

/// Two rules about one field that no value satisfies.
fn no_value_left(one: &FieldRule, other: &FieldRule) -> Option<String> {
    if one.field != other.field {
        return None;
    }
    let why = match (one.constraint, other.constraint) {
        (Constraint::ValueRange, Constraint::ValueRange) => {
            let min = one.min.into_iter().chain(other.min).fold(f64::NEG_INFINITY, f64::max);
            let max = one.max.into_iter().chain(other.max).fold(f64::INFINITY, f64::min);
            (min > max).then(|| format!("no number is at least {min} and at most {max}"))
        }
        (Constraint::Enum, Constraint::Enum) => {
            let values = other.values.as_deref().unwrap_or_default();
            (!one.values.as_deref().unwrap_or_default().iter().any(|value| values.contains(value))).then(|| "they have no value in common".to_owned())
        }
        _ => None,
    };
    why.map(|why| format!("together they leave no value for {}: {why}", one.field))
}

/// Two rules whose approvers have too few people in common.
fn nobody_left(one: &GeneralRule, other: &GeneralRule) -> Option<String> {
    if one.approvers.is_empty() || other.approvers.is_empty() {
        return None;
    }
    let both = one.approvers.iter().filter(|person| other.approvers.contains(person)).count();
    let quorum = one.quorum.max(other.quorum).unwrap_or(1) as usize;
    (both < quorum).then(|| format!("{quorum} must approve, and together the rules leave {both} who may, so everything that both match is refused"))
}
