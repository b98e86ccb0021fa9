//! Whether a change tightens or loosens. What cannot be told for certain loosens: then a person looks at it first.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::Mode;
use super::super::{DEFAULT_POLICY, GLOBAL_POLICY, PolicyMode, Rulebook};
use super::items::{Change, Key, Set};
use crate::hook::{self, HOOK_POLICY};
use crate::{gateway, workspace};

/// What a change does to what agents may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Nothing: it may be applied at once.
    Neutral,
    /// Agents may do the same or less: it is applied at once.
    Tightens,
    /// Agents may do more, or nobody can tell: a person accepts it first.
    Loosens,
}

/// A change with its direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Classified {
    /// The change.
    #[serde(flatten)]
    pub change: Change,
    /// What it does.
    pub direction: Direction,
    /// Why that was said.
    pub why: String,
}

/// Splits changes into those that can be applied at once and those that a person has to accept. Both are valid on their
/// own: if what tightens would leave something dangling, it waits as well.
pub fn classify(in_force: &Set, changes: Vec<Change>) -> Vec<Classified> {
    let after = with(in_force, &changes);
    let mut classified: Vec<Classified> = changes
        .into_iter()
        .map(|change| {
            let (direction, why) = judge(in_force, &after, &change);
            Classified { change, direction, why: why.to_owned() }
        })
        .collect();
    // A mapping must not be in force without its policy. If the policy waits, so does what rests on it; and a policy that
    // comes into use with a mapping waits with that mapping, so that whoever accepts it sees what it says.
    loop {
        let held_with: BTreeSet<String> = classified
            .iter()
            .filter(|one| one.direction == Direction::Loosens && one.change.to.is_some())
            .filter_map(|one| match &one.change.key {
                Key::Mapping { policy, .. } => Some(policy.clone()),
                _ => None,
            })
            .collect();
        let now: Vec<Change> = classified.iter().filter(|one| one.direction != Direction::Loosens).map(|one| one.change.clone()).collect();
        let applied = with(in_force, &now);
        let names: BTreeSet<String> = applied.mappings().map(|(_, _, policy)| policy.to_owned()).collect();
        let dangling: BTreeSet<String> = names.into_iter().filter(|name| applied.policy(name).is_none()).collect();
        // All settings together must not loosen what each alone tightens.
        let looser = !settings_tighten(in_force, &applied);
        let mut held = false;
        for one in classified.iter_mut().filter(|one| one.direction != Direction::Loosens) {
            let rests = match &one.change.key {
                Key::Policy { policy } if one.direction == Direction::Neutral => held_with.contains(policy) || dangling.contains(policy),
                Key::Mapping { policy, .. } | Key::Policy { policy } => dangling.contains(policy),
                Key::Setting { .. } => looser,
            };
            if rests {
                (one.direction, one.why, held) = (Direction::Loosens, "it goes together with something that a person has to accept".to_owned(), true);
            }
        }
        if !held {
            return classified;
        }
    }
}

/// A set with changes made.
pub(crate) fn with<'c>(set: &Set, changes: impl IntoIterator<Item = &'c Change>) -> Set {
    let mut after = set.clone();
    for change in changes {
        after.set(&change.key, change.to.as_ref());
    }
    after
}

fn judge(before: &Set, after: &Set, change: &Change) -> (Direction, &'static str) {
    match &change.key {
        Key::Setting { .. } => {
            let alone = with(before, [change]);
            if settings_tighten(before, &alone) {
                (Direction::Tightens, "every value that changes gives agents the same or less")
            } else {
                (Direction::Loosens, "a value gives agents more, or nobody can tell")
            }
        }
        Key::Policy { policy } => match (before.is_used(policy), &change.from, &change.to) {
            (false, _, _) => (Direction::Neutral, "no mapping in force names this policy"),
            (true, Some(from), None) if policy == GLOBAL_POLICY && is_narrower(from, &json!({ "id": policy })) => {
                (Direction::Tightens, "its rules only gave something")
            }
            (true, _, None) => (Direction::Loosens, "its rules would no longer hold"),
            // The one that is built in has rules that would no longer hold.
            (true, None, Some(_)) if policy == HOOK_POLICY => (Direction::Loosens, "it takes the place of the one that is built in"),
            (true, None, Some(to)) if is_restrictive(to) => (Direction::Tightens, "it only adds restrictions"),
            (true, Some(from), Some(to)) if is_narrower(from, to) => (Direction::Tightens, "every rule stays or becomes narrower, and new ones only restrict"),
            (true, _, Some(_)) => (Direction::Loosens, "a rule goes, becomes wider, or gives something"),
        },
        Key::Mapping { policy, domain, .. } => {
            if change.to.is_some() && hook::is_named_by(domain) {
                return (Direction::Loosens, "the starter policy for agents' own tools would no longer hold there");
            }
            if change.to.is_none() {
                return (Direction::Loosens, "the policy's rules would no longer hold there");
            }
            let first = before.mappings().next().is_none() && before.policy(DEFAULT_POLICY).is_none();
            let restrictive = after.policy(policy).is_some_and(is_restrictive);
            if first && restrictive {
                (Direction::Tightens, "it is among the first mappings, and the policy only restricts")
            } else {
                (Direction::Loosens, "the pair was held or had another policy before")
            }
        }
    }
}

/// Whether a policy has only rules that restrict.
fn is_restrictive(policy: &Value) -> bool {
    let known = |name: &str| matches!(name, "id" | "description" | "category" | "framework" | "rules" | "tests");
    let rules = policy.get("rules").and_then(Value::as_array);
    policy.as_object().is_some_and(|fields| fields.keys().all(|name| known(name))) && rules.is_none_or(|rules| rules.iter().all(restricts))
}

/// Keys of a rule that say what it is about and what is told when it fires. A match or a condition can only make a rule
/// fire less often, which for a new restriction is never more than was allowed before.
const PLAIN: [&str; 9] = ["name", "field", "match", "when", "effect", "severity", "message", "alternative", "reason"];

/// Whether a new rule can only take something from agents. Naming approvers, times or hidden paths moves authority about
/// or hides something from whoever decides, so that is not certain.
fn restricts(rule: &Value) -> bool {
    let Some(fields) = rule.as_object() else { return false };
    let only = |more: &[&str]| fields.keys().all(|name| PLAIN.contains(&name.as_str()) || more.contains(&name.as_str()));
    match (fields.get("constraint").and_then(Value::as_str), fields.get("effect").and_then(Value::as_str)) {
        (Some("high_risk" | "readonly"), None) => only(&["constraint"]),
        (Some("value_range"), None) => only(&["constraint", "min", "max"]),
        (Some("enum"), None) => only(&["constraint", "values"]),
        (Some("regex"), None) => only(&["constraint", "pattern"]),
        (None, Some("deny" | "log")) => only(&[]),
        (None, Some("require_approval")) => only(&["quorum"]),
        _ => false,
    }
}

/// Whether a rule only gives something. Where it goes, agents have the same or less: it stood in for trust, and nothing else.
fn gives(rule: &Value) -> bool {
    rule.get("effect").and_then(Value::as_str) == Some("allow")
}

/// Whether a changed policy can only take something: each old rule stays, has a narrower successor or only gave something, and
/// what is new restricts. The order of rules plays no part, because the most restrictive answer wins.
fn is_narrower(from: &Value, to: &Value) -> bool {
    let told = |name: &String| matches!(name.as_str(), "description" | "category" | "framework" | "tests" | "rules");
    let rest = |policy: &Value| -> Option<Map<String, Value>> {
        Some(policy.as_object()?.iter().filter(|(name, _)| !told(name)).map(|(name, value)| (name.clone(), value.clone())).collect())
    };
    if rest(from).is_none() || rest(from) != rest(to) {
        return false;
    }
    let rules = |policy: &Value| policy.get("rules").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut new = rules(to);
    let mut gone = Vec::new();
    for old in rules(from) {
        match new.iter().position(|rule| *rule == old) {
            Some(at) => drop(new.swap_remove(at)),
            None => gone.push(old),
        }
    }
    for old in gone {
        match new.iter().position(|rule| narrows(&old, rule)) {
            Some(at) => drop(new.swap_remove(at)),
            None if gives(&old) => {}
            None => return false,
        }
    }
    new.iter().all(restricts)
}

/// Whether a rule stops everything that another one stops.
fn narrows(old: &Value, new: &Value) -> bool {
    let (Some(was), Some(is)) = (old.as_object(), new.as_object()) else { return false };
    let told = ["message", "alternative", "reason", "severity", "name"];
    let changed: BTreeSet<&str> = was.keys().chain(is.keys()).map(String::as_str).filter(|name| was.get(*name) != is.get(*name)).collect();
    let constraint = was.get("constraint").and_then(Value::as_str);
    changed.into_iter().all(|name| match (name, constraint) {
        // A severity sets the risk, and what is of high risk asks whoever decides for more; so it may not change freely.
        ("severity", _) => false,
        (name, _) if told.contains(&name) => true,
        ("min", Some("value_range")) => match (number(was.get("min")), number(is.get("min"))) {
            (None, Some(_)) => true,
            (Some(was), Some(is)) => is >= was,
            _ => false,
        },
        ("max", Some("value_range")) => match (number(was.get("max")), number(is.get("max"))) {
            (None, Some(_)) => true,
            (Some(was), Some(is)) => is <= was,
            _ => false,
        },
        ("constraint", Some("high_risk")) => is.get("constraint").and_then(Value::as_str) == Some("readonly"),
        ("values", Some("enum")) => contains(was.get("values"), is.get("values")),
        // What is forbidden is stopped wherever it was held; whoever would have approved has no say any more.
        ("effect", None) => [was, is].map(|rule| rule.get("effect").and_then(Value::as_str)) == [Some("require_approval"), Some("deny")],
        ("quorum", None) => {
            let quorum = |rule: &Map<String, Value>| number(rule.get("quorum")).unwrap_or(1.0);
            was.get("effect").and_then(Value::as_str) == Some("require_approval") && quorum(is) >= quorum(was)
        }
        _ => false,
    })
}

fn number(value: Option<&Value>) -> Option<f64> {
    value.and_then(Value::as_f64)
}

/// Whether a list holds everything of another one.
fn contains(larger: Option<&Value>, smaller: Option<&Value>) -> bool {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let larger = list(larger);
    list(smaller).iter().all(|item| larger.contains(item))
}

/// Whether every setting, on the whole desk and wherever a domain has its own, gives agents the same or less.
fn settings_tighten(before: &Set, after: &Set) -> bool {
    let (Some(was), Some(is)) = (compiled(before), compiled(after)) else { return false };
    // A default policy of the desk's own may forbid what would then only be held for a person.
    let stricter = is.parts().mode == PolicyMode::Strict && before.policy(DEFAULT_POLICY).is_none();
    if was.parts().mode != is.parts().mode && !stricter {
        return false;
    }
    let domains: BTreeSet<&str> = before.domains().chain(after.domains()).chain([""]).collect();
    domains.into_iter().all(|domain| {
        // A pattern is looked at where no narrower one reaches.
        let place = domain.strip_suffix('*').map_or_else(|| domain.to_owned(), |prefix| format!("{prefix}\u{1}"));
        same_or_less(&sections(&was, &place), &sections(&is, &place))
    })
}

/// The settings alone: rules have no part in this, and need not be compiled for it.
fn compiled(set: &Set) -> Option<Rulebook> {
    let mut parts = set.parts().ok()?;
    parts.policies.clear();
    parts.mappings.clear();
    Rulebook::compile(parts, std::collections::BTreeMap::new()).ok()
}

fn sections(rulebook: &Rulebook, domain: &str) -> Map<String, Value> {
    match serde_json::to_value(rulebook.settings(domain)) {
        Ok(Value::Object(sections)) => sections,
        _ => Map::new(),
    }
}

fn same_or_less(was: &Map<String, Value>, is: &Map<String, Value>) -> bool {
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let nothing = Value::Null;
    names.into_iter().all(|section| {
        let (was, is) = (was.get(section).unwrap_or(&nothing), is.get(section).unwrap_or(&nothing));
        let keys: BTreeSet<&String> = [was, is].into_iter().filter_map(Value::as_object).flat_map(Map::keys).collect();
        was.is_object() == is.is_object()
            && keys.into_iter().all(|name| {
                let (was, is) = (was.get(name).unwrap_or(&nothing), is.get(name).unwrap_or(&nothing));
                was == is || value_tightens(section, name, was, is)
            })
    })
}

/// Whether a setting's new value gives agents the same or less.
fn value_tightens(section: &str, name: &str, was: &Value, is: &Value) -> bool {
    let lower = || matches!((was.as_f64(), is.as_f64()), (Some(was), Some(is)) if is <= was);
    let higher = || matches!((was.as_f64(), is.as_f64()), (Some(was), Some(is)) if is >= was);
    match (section, name) {
        ("trust", "default_level" | "auto_demote_after")
        | ("authority", "volume_cap" | "pending_max" | "grant_seconds" | "request_seconds" | "probe_limit" | "criteria_seconds")
        | ("feedback", "override_trust_impact" | "approval_trust_impact")
        | ("handoff", "timeout_seconds")
        | ("governance", "slow_decision_seconds" | "open_outcome_seconds" | "rubber_stamp_count") => lower(),
        ("trust", "auto_promote_after" | "auto_promote_accuracy" | "decay_per_day" | "autonomous_threshold") | ("governance", "rubber_stamp_seconds") => {
            higher()
        }
        ("trust", "promotion") => is == "ratify",
        ("authority", "default_mode") => {
            let mode = |value: &Value| serde_json::from_value::<Mode>(value.clone()).ok();
            matches!((mode(was), mode(is)), (Some(was), Some(is)) if is <= was)
        }
        ("authority", "volume_cap_per_agent" | "call_cap" | "calls_per_day" | "cost_per_day") => (was.is_null() && is.is_number()) || lower(),
        ("authority", "high_risk_fields" | "required_criteria") | ("protection", "record" | "requests") => contains(Some(is), Some(was)),
        ("authority", "break_glass") => is == "off" || (was == "approver" && is == "owner"),
        ("authority", "token_deciders") => contains(Some(was), Some(is)),
        ("workspace", "web") => *is == false,
        ("hooks", "mode") => is == "enforce",
        ("hooks", "wake") => true,
        ("protection", "keep") => is == "none",
        ("workspace", "roots") => workspace::roots_tighten(was, is),
        ("gateway", "mounts") => gateway::mounts_tighten(was, is),
        ("feedback", "override_requires_reason")
        | ("handoff", "include_reasoning" | "include_confidence" | "include_attempted")
        | ("workspace", "client_roots") => *is == true,
        _ => false,
    }
}
