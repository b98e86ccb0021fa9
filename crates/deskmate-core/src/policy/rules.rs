//! What single rules, policies and mappings must be, wherever they come from: a text, a call or a stored row.

use std::collections::BTreeSet;

use super::ask::{held_kind, held_problem};
use super::condition::{Condition, regex};
use super::index::check_glob;
use super::model::{Constraint, FieldRule, GeneralRule, Mapping, Policy, Rule};
use super::{DEFAULT_POLICY, Effect, GLOBAL_POLICY, Parts, Problem, settings};
use crate::hook::HOOK_POLICY;
use crate::limits::{DOMAIN_SETTINGS_MAX, MAPPINGS_MAX, NAME_CHARS_MAX, POLICIES_MAX, RULES_MAX, TITLE_CHARS_MAX};

/// How many entries a list of a rule may have.
pub(super) const ENTRIES_MAX: usize = 200;
/// How long a pattern may be.
pub(super) const PATTERN_BYTES_MAX: usize = 1_000;
/// The longest that a rule can make something wait.
pub(super) const SECONDS_MAX: u32 = 366 * 24 * 3_600;

/// What is wrong with a part of a rule: its key, and what to write.
pub(super) type Wrong = (&'static str, String);

/// What is wrong with a field pattern.
pub(super) fn field_problem(pattern: &str) -> Option<String> {
    if pattern.is_empty() || pattern.len() > NAME_CHARS_MAX {
        return Some(format!("a field has 1 to {NAME_CHARS_MAX} characters"));
    }
    if pattern.strip_suffix('*').unwrap_or(pattern).contains('*') {
        return Some("`*` stands only at the end of a field, for any ending: write for example `billing_*`".to_owned());
    }
    None
}

/// What is wrong with a name that people and agents refer to.
pub(super) fn name_problem(name: &str) -> Option<String> {
    let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':');
    (name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(fits))
        .then(|| format!("a name has 1 to {NAME_CHARS_MAX} letters, digits, `-`, `_`, `.` or `:`"))
}

/// What is wrong with an agent or domain of a mapping, or a domain of settings.
pub(super) fn scope_problem(pattern: &str) -> Option<String> {
    if pattern.is_empty() || pattern.len() > NAME_CHARS_MAX {
        return Some(format!("this has 1 to {NAME_CHARS_MAX} characters; `*` stands for any"));
    }
    if pattern.strip_suffix('*').unwrap_or(pattern).contains('*') {
        return Some("`*` stands only at the end, for any ending: write for example `crm.*`".to_owned());
    }
    None
}

/// What is wrong with a rule about a field.
pub(super) fn field_rule(rule: &FieldRule) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    wrong.extend(field_problem(&rule.field).map(|problem| ("field", problem)));
    let constraint = rule.constraint;
    let mut belongs = |key: &'static str, given: bool, owner: Constraint| {
        if given && constraint != owner {
            wrong.push((key, format!("`{key}` goes with `constraint: {}`: leave it out", owner.name())));
        }
    };
    belongs("min", rule.min.is_some(), Constraint::ValueRange);
    belongs("max", rule.max.is_some(), Constraint::ValueRange);
    belongs("values", rule.values.is_some(), Constraint::Enum);
    belongs("pattern", rule.pattern.is_some(), Constraint::Regex);
    match constraint {
        Constraint::ValueRange => match (rule.min, rule.max) {
            (None, None) => wrong.push(("constraint", "a value_range needs `min`, `max` or both".to_owned())),
            (Some(min), Some(max)) if min > max => wrong.push(("min", format!("no number is at least {min} and at most {max}: swap them"))),
            (min, max) if [min, max].iter().flatten().any(|bound| !bound.is_finite()) => wrong.push(("min", "a bound is a finite number".to_owned())),
            _ => {}
        },
        Constraint::Enum => match rule.values.as_deref() {
            None | Some([]) => wrong.push(("constraint", "an enum needs `values`: write for example `values: [low, high]`".to_owned())),
            Some(values) if values.len() > ENTRIES_MAX => wrong.push(("values", format!("{} values are too many: write at most {ENTRIES_MAX}", values.len()))),
            Some(values) if values.iter().any(|value| value.is_object() || value.is_array()) => {
                wrong.push(("values", "a value is a text, a number, true, false or null".to_owned()));
            }
            Some(_) => {}
        },
        Constraint::Regex => match rule.pattern.as_deref() {
            None => wrong.push(("constraint", "a regex needs `pattern`: write for example `pattern: '^[A-Z]{3}$'`".to_owned())),
            Some(pattern) if pattern.len() > PATTERN_BYTES_MAX => wrong.push(("pattern", format!("a pattern has at most {PATTERN_BYTES_MAX} bytes"))),
            Some(pattern) => wrong.extend(regex(pattern).err().map(|problem| ("pattern", problem))),
        },
        Constraint::HighRisk | Constraint::Readonly => {}
    }
    if rule.reason.len() > TITLE_CHARS_MAX {
        wrong.push(("reason", format!("a reason has at most {TITLE_CHARS_MAX} bytes")));
    }
    wrong
}

/// What is wrong with a general rule, but for its condition.
pub(super) fn general_rule(rule: &GeneralRule) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    wrong.extend(name_problem(&rule.name).map(|problem| ("name", problem)));
    for patterns in rule.matches.lists() {
        for pattern in patterns {
            if pattern.is_empty() || pattern.len() > PATTERN_BYTES_MAX {
                wrong.push(("match", format!("a pattern has 1 to {PATTERN_BYTES_MAX} bytes")));
            } else if let Err(problem) = check_glob(pattern) {
                wrong.push(("match", format!("`{pattern}` cannot be read: {problem}")));
            }
        }
        if patterns.len() > ENTRIES_MAX {
            wrong.push(("match", format!("{} patterns are too many: write at most {ENTRIES_MAX}", patterns.len())));
        }
    }
    let mut belongs = |key: &'static str, given: bool, owner: Effect, name: &str| {
        if given && rule.effect != owner {
            wrong.push((key, format!("`{key}` goes with `effect: {name}`: leave it out, or change the effect")));
        }
    };
    belongs("approvers", !rule.approvers.is_empty(), Effect::RequireApproval, "require_approval");
    belongs("quorum", rule.quorum.is_some(), Effect::RequireApproval, "require_approval");
    belongs("grant_seconds", rule.grant_seconds.is_some(), Effect::RequireApproval, "require_approval");
    belongs("expires_seconds", rule.expires_seconds.is_some(), Effect::RequireApproval, "require_approval");
    belongs("paths", !rule.paths.is_empty(), Effect::Redact, "redact");
    belongs("waive_trust", rule.waive_trust, Effect::Allow, "allow");
    if rule.effect == Effect::Redact && rule.paths.is_empty() {
        wrong.push(("effect", "redact needs `paths`: write for example `paths: [card_number]`".to_owned()));
    }
    for path in &rule.paths {
        let problem = held_kind(path).map_or_else(|| field_problem(path), held_problem);
        wrong.extend(problem.map(|problem| ("paths", problem)));
    }
    if let Some(quorum) = rule.quorum {
        let people = rule.approvers.iter().collect::<BTreeSet<_>>().len();
        if !(1..=50).contains(&quorum) {
            wrong.push(("quorum", format!("{quorum} is not a number of people from 1 to 50")));
        } else if people > 0 && quorum as usize > people {
            wrong.push(("quorum", format!("{quorum} people have to approve, but only {people} may: name more, or ask for fewer")));
        }
    }
    for (key, seconds) in [("grant_seconds", rule.grant_seconds), ("expires_seconds", rule.expires_seconds)] {
        if seconds.is_some_and(|seconds| !(1..=SECONDS_MAX).contains(&seconds)) {
            wrong.push((key, format!("this is a number of seconds from 1 to {SECONDS_MAX}")));
        }
    }
    for (key, text) in [("message", Some(&rule.message)), ("alternative", rule.alternative.as_ref())] {
        if text.is_some_and(|text| text.len() > TITLE_CHARS_MAX) {
            wrong.push((key, format!("this has at most {TITLE_CHARS_MAX} bytes")));
        }
    }
    wrong
}

/// The id under which a rule is named.
pub fn rule_id(rule: &Rule) -> String {
    match rule {
        Rule::Field(rule) => format!("{}_{}", rule.constraint.name(), rule.field),
        Rule::General(rule) => rule.name.clone(),
    }
}

/// What is wrong with a policy.
pub(super) fn policy(name: &str, policy: &Policy, path: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut problem = |path: String, message: String| problems.push(Problem { line: 0, column: 0, path, message });
    if policy.id != name {
        problem(path.to_owned(), format!("the policy `{}` is filed under `{name}`", policy.id));
    }
    if let Some(message) = name_problem(name) {
        problem(format!("{path}.id"), message);
    }
    if policy.rules.len() > RULES_MAX {
        problem(format!("{path}.rules"), format!("{} rules are too many: write at most {RULES_MAX}", policy.rules.len()));
    }
    let mut names = BTreeSet::new();
    for (number, rule) in policy.rules.iter().enumerate() {
        let at = format!("{path}.rules[{number}]");
        let wrong = match rule {
            Rule::Field(rule) => field_rule(rule),
            Rule::General(rule) => {
                if !names.insert(rule.name.as_str()) {
                    problem(format!("{at}.name"), format!("the name `{}` is taken by another rule of this policy", rule.name));
                }
                if let Some(Err(faults)) = rule.when.as_deref().map(Condition::compile) {
                    for fault in faults {
                        problem(format!("{at}.when"), fault.message);
                    }
                }
                general_rule(rule)
            }
        };
        for (key, message) in wrong {
            problem(format!("{at}.{key}"), message);
        }
    }
    problems
}

/// What is wrong with a mapping, given the policies that there are.
pub(super) fn mapping(mapping: &Mapping, exists: impl Fn(&str) -> bool) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    wrong.extend(scope_problem(&mapping.agent).map(|problem| ("agent", problem)));
    wrong.extend(scope_problem(&mapping.domain).map(|problem| ("domain", problem)));
    if mapping.policy == GLOBAL_POLICY {
        wrong.push(("policy", format!("`{GLOBAL_POLICY}` holds for everybody already: leave this mapping out")));
    } else if mapping.policy != DEFAULT_POLICY && mapping.policy != HOOK_POLICY && !exists(&mapping.policy) {
        wrong.push(("policy", format!("there is no policy `{}`: add it under `policies`, or name one that is there", super::yaml::short(&mapping.policy))));
    }
    wrong
}

/// What is wrong with everything together.
pub(super) fn parts(parts: &Parts) -> Vec<Problem> {
    let mut problems = Vec::new();
    let problem = |path: String, message: String| Problem { line: 0, column: 0, path, message };
    if parts.policies.len() > POLICIES_MAX {
        problems.push(problem("policies".to_owned(), format!("{} policies are too many: write at most {POLICIES_MAX}", parts.policies.len())));
    }
    if parts.mappings.len() > MAPPINGS_MAX {
        problems.push(problem("mappings".to_owned(), format!("{} mappings are too many: write at most {MAPPINGS_MAX}", parts.mappings.len())));
    }
    if parts.settings.len() > DOMAIN_SETTINGS_MAX {
        problems.push(problem("domains".to_owned(), format!("{} domains are too many: write at most {DOMAIN_SETTINGS_MAX}", parts.settings.len())));
    }
    for (name, one) in &parts.policies {
        problems.extend(policy(name, one, &format!("policies.{name}")));
    }
    for one in &parts.mappings {
        let wrong = mapping(one, |policy| parts.policies.contains_key(policy));
        problems.extend(wrong.into_iter().map(|(key, message)| problem(format!("mappings({}, {}).{key}", one.agent, one.domain), message)));
    }
    for (domain, sections) in &parts.settings {
        let at = if domain.is_empty() { String::new() } else { format!("domains.{domain}.") };
        problems.extend(scope_problem(domain).filter(|_| !domain.is_empty()).map(|message| problem(format!("domains.{domain}"), message)));
        for (section, patch) in sections {
            let wrong = patch.iter().filter_map(|(key, value)| Some((key, settings::problem(*section, key, value)?)));
            problems.extend(wrong.map(|(key, message)| problem(format!("{at}{}.{key}", section.name()), message)));
        }
    }
    problems
}
