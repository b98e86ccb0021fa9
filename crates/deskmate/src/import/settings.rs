//! A `cowork.config.yaml`, translated piece by piece. What that server never looked at, it also never checked: so each
//! piece is checked here on its own, what cannot be taken is told, and a rule that cannot be read holds its field back.

use std::path::Path;

use deskmate_core::policy::{Document, Parts, Rulebook};
use serde_json::{Map, Value, json};

use super::{Found, token};

/// Settings that had another name in the file that came with the server.
const OTHER_NAMES: [(&str, &str, &str); 2] = [("trust", "auto_promote_threshold", "auto_promote_accuracy"), ("handoff", "handoff_timeout", "timeout_seconds")];

/// Settings that the other server read from nowhere, and that have an effect here.
const NOW_EFFECTIVE: [(&str, &str, &str); 8] = [
    ("trust", "auto_promote_after", "had no effect there; here promotions are proposed to people after so many decided proposals"),
    ("trust", "auto_promote_accuracy", "had no effect there; here it is the share of approvals that a promotion needs"),
    ("trust", "autonomous_threshold", "had no effect there; here it can raise the bar of 0.8 for acting alone"),
    ("authority", "default_mode", "was only shown there; here it is the best answer until people have decided a proposal of the agent in the domain"),
    ("handoff", "timeout_seconds", "had no effect there; here a handoff goes to the owners after this time"),
    ("handoff", "context_format", "had no effect there; here it is the form of the packet"),
    ("feedback", "override_requires_reason", "had no effect there; here an override without a reason is refused"),
    ("feedback", "override_trust_impact", "had no effect there; here it is the impact of types without a number of their own"),
];

/// Reads a file's text. A text that is not YAML, or not a mapping, is refused as a whole.
pub(crate) fn read(path: &Path, text: &str) -> Result<Found, String> {
    let at = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    let whole: Value = serde_saphyr::from_str(text).map_err(|error| at(&error))?;
    let Value::Object(sections) = whole else {
        return Err(at(&"this is not a cowork configuration: it must be a mapping of sections"));
    };
    let mut found = Found::default();
    let mut document = Map::new();
    for (name, section) in sections {
        match name.as_str() {
            "trust" | "authority" | "handoff" | "feedback" => settings(&name, section, &mut document, &mut found),
            "policies" => policies(section, &mut document, &mut found),
            "mappings" => {
                document.insert("\u{0}mappings".to_owned(), section);
            }
            "agents" => agents(section, &mut found),
            "storage" => {
                found.storage_path = section.get("path").and_then(Value::as_str).map(str::to_owned);
                found.refused("settings", "storage", "the desk keeps everything in its own store");
            }
            "sentry" => found.refused("settings", "sentry", "the proxy and its traces are not brought in; the desk keeps its own record"),
            other => found.refused("settings", other, "nothing here has this name"),
        }
    }
    if let Some(section) = document.remove("\u{0}mappings") {
        mappings(section, &mut document, &mut found);
    }
    if !document.is_empty() {
        found.document = Some(Value::Object(document).to_string());
    }
    Ok(found)
}

/// Whether a document can be taken; the first problem otherwise.
fn refusal(document: &Map<String, Value>) -> Option<String> {
    let parsed = Document::parse(&Value::Object(document.clone()).to_string());
    let compiled = parsed.and_then(|document| Rulebook::compile(document.over(&Parts::default()), std::collections::BTreeMap::new()));
    compiled.err().map(|problems| problems.first().map(|problem| problem.message.clone()).unwrap_or_default())
}

fn settings(section: &str, given: Value, document: &mut Map<String, Value>, found: &mut Found) {
    let Value::Object(given) = given else {
        if !given.is_null() {
            found.refused("settings", section, "it must be a mapping of settings");
        }
        return;
    };
    for (name, value) in given {
        let what = format!("{section}.{name}");
        if (section, name.as_str()) == ("feedback", "implicit_approval_seconds") {
            found.refused("settings", what, "silence is not consent here: a request waits, and expires visibly");
            continue;
        }
        let renamed = OTHER_NAMES.iter().find(|(own, old, _)| *own == section && *old == name).map(|(_, _, new)| *new);
        let key = renamed.unwrap_or(&name).to_owned();
        let (value, mapped) = match (section, key.as_str(), value.as_str()) {
            ("authority", "default_mode", Some("review")) => (json!("suggest"), Some("review is called suggest here".to_owned())),
            _ => (value, None),
        };
        let alone = Map::from_iter([(section.to_owned(), json!({ key.as_str(): value }))]);
        if let Some(why) = refusal(&alone) {
            found.refused("settings", what, why);
            continue;
        }
        let effect = NOW_EFFECTIVE.iter().find(|(own, setting, _)| *own == section && *setting == key).map(|(_, _, effect)| (*effect).to_owned());
        let renamed = renamed.map(|new| format!("it is called {section}.{new} here"));
        let why: Vec<String> = [renamed, mapped, effect].into_iter().flatten().collect();
        if !why.is_empty() {
            found.changed("settings", what, why.join("; "));
        }
        if let Some(own) = document.entry(section.to_owned()).or_insert_with(|| json!({})).as_object_mut() {
            own.insert(key, value);
        }
    }
}

fn policies(given: Value, document: &mut Map<String, Value>, found: &mut Found) {
    let Value::Array(given) = given else {
        if !given.is_null() {
            found.refused("policies", "policies", "it must be a list");
        }
        return;
    };
    let mut taken: Vec<Value> = Vec::new();
    for policy in given {
        let Some(id) = policy.get("id").and_then(Value::as_str).map(str::to_owned) else {
            found.refused("policies", "a policy without an id", "nothing could name it");
            continue;
        };
        let mut whole = Map::from_iter([("id".to_owned(), json!(id))]);
        for (name, value) in policy.as_object().into_iter().flatten() {
            match name.as_str() {
                "id" | "rules" => {}
                "description" => drop(whole.insert(name.clone(), value.clone())),
                other => found.refused("policies", format!("policy {id}: {other}"), "nothing here has this name"),
            }
        }
        let rules = policy.get("rules").and_then(Value::as_array).cloned().unwrap_or_default();
        let rules: Vec<Value> = rules.into_iter().filter_map(|given| rule(&id, &given, found)).collect();
        whole.insert("rules".to_owned(), Value::Array(rules));
        if let Some(why) = refusal(&Map::from_iter([("policies".to_owned(), json!([whole]))])) {
            found.refused("policies", format!("policy {id}"), why);
            continue;
        }
        if let Some(earlier) = taken.iter().position(|policy| policy.get("id") == whole.get("id")) {
            found.changed("policies", format!("policy {id}"), "it stands twice in the file; the last one counts, as it did there");
            taken.remove(earlier);
        }
        taken.push(Value::Object(whole));
    }
    document.insert("policies".to_owned(), Value::Array(taken));
}

/// A rule as it can be taken. One that cannot be read would have been passed over there; here its field goes to people.
fn rule(policy: &str, given: &Value, found: &mut Found) -> Option<Value> {
    let field = given.get("field").and_then(Value::as_str).unwrap_or_default().to_owned();
    let constraint = given.get("constraint").and_then(Value::as_str).unwrap_or("without a constraint");
    let what = format!("policy {policy}: {constraint} on {}", if field.is_empty() { "no field" } else { &field });
    let keys = ["field", "constraint", "reason", "min", "max", "values", "pattern"];
    let mut clean = Map::new();
    for (name, value) in given.as_object().into_iter().flatten() {
        if keys.contains(&name.as_str()) {
            clean.insert(name.clone(), value.clone());
        } else {
            found.refused("rules", format!("{what}: {name}"), "nothing here has this name");
        }
    }
    let alone = |rule: &Value| refusal(&Map::from_iter([("policies".to_owned(), json!([{ "id": "alone", "rules": [rule] }]))]));
    let rule = Value::Object(clean);
    let Some(why) = alone(&rule) else { return Some(rule) };
    let held = json!({ "field": field, "constraint": "high_risk", "reason": "a rule of another server could not be read here" });
    if field.is_empty() || alone(&held).is_some() {
        found.refused("rules", what, why);
        return None;
    }
    found.changed("rules", what, format!("{why}. It had no effect there; here every change of the field goes to a person until you write it anew"));
    Some(held)
}

fn mappings(given: Value, document: &mut Map<String, Value>, found: &mut Found) {
    let Value::Array(given) = given else {
        if !given.is_null() {
            found.refused("mappings", "mappings", "it must be a list");
        }
        return;
    };
    let known: Vec<String> =
        document.get("policies").and_then(Value::as_array).into_iter().flatten().filter_map(|policy| policy.get("id")?.as_str().map(str::to_owned)).collect();
    let mut taken: Vec<Value> = Vec::new();
    for mapping in given {
        let part = |name: &str| mapping.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (agent, domain, policy) = (part("agent_id"), part("domain"), part("policy_id"));
        let what = format!("mapping {agent} × {domain} → {policy}");
        if !known.contains(&policy) {
            found.refused("mappings", what, "there is no such policy; until you map the pair, everything in it is held for a person");
            continue;
        }
        if taken.iter().any(|earlier| earlier.get("agent_id") == Some(&json!(agent)) && earlier.get("domain") == Some(&json!(domain))) {
            found.refused("mappings", what, "the pair is mapped already, and there the first mapping counted");
            continue;
        }
        // There a star was a character like any other; here it would reach further than it did.
        if agent.contains('*') || domain.contains('*') {
            found.refused("mappings", what, "a star matched nothing there; here it would match every ending: map it yourself if that is meant");
            continue;
        }
        let one = json!({ "agent_id": agent, "domain": domain, "policy_id": policy });
        let mut alone = document.clone();
        alone.retain(|name, _| name == "policies");
        alone.insert("mappings".to_owned(), json!([one]));
        match refusal(&alone) {
            Some(why) => found.refused("mappings", what, why),
            None => taken.push(one),
        }
    }
    document.insert("mappings".to_owned(), Value::Array(taken));
}

fn agents(given: Value, found: &mut Found) {
    let Value::Array(given) = given else {
        if !given.is_null() {
            found.refused("agents", "agents", "it must be a list");
        }
        return;
    };
    let mut hashes: Vec<(String, String)> = Vec::new();
    for agent in given {
        let part = |name: &str| agent.get(name).and_then(Value::as_str).map(str::to_owned);
        let Some(id) = part("id") else {
            found.refused("agents", "an agent without an id", "nobody could name it");
            continue;
        };
        for name in agent.as_object().into_iter().flatten().map(|(name, _)| name).filter(|name| !matches!(name.as_str(), "id" | "token" | "token_hash")) {
            found.refused("agents", format!("agent {id}: {name}"), "it had no effect there, and nothing here has this name");
        }
        // There a hash beat a token that stood beside it.
        let hash = match (part("token_hash"), part("token")) {
            (Some(hash), _) => Some(hash.to_lowercase()),
            (None, Some(text)) => match token::weakness(&id, &text) {
                None => Some(token::hash(&text)),
                Some(why) => {
                    found.refused("tokens", format!("token of {id}"), format!("{why}; `deskmate agent rotate {id}` gives it a new one"));
                    None
                }
            },
            (None, None) => {
                found.refused("tokens", format!("token of {id}"), format!("it has none; `deskmate agent rotate {id}` gives it one"));
                None
            }
        };
        let hash = hash.filter(|hash| {
            let other = hashes.iter().find(|(_, known)| known == hash).map(|(other, _)| other.clone());
            if let Some(other) = &other {
                found.refused("tokens", format!("token of {id}"), format!("{other} has the same one; `deskmate agent rotate {id}` gives it its own"));
            }
            other.is_none()
        });
        if let Some(hash) = &hash {
            hashes.push((id.clone(), hash.clone()));
        }
        found.agents.push(json!({ "agent": id, "token_hash": hash }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Whatever a file holds, it is translated piece by piece or refused, and what is taken is a policy document.
        #[test]
        fn any_bytes_are_read_or_refused(
            text in "(?s).{0,120}",
            section in "(trust|authority|handoff|feedback|policies|mappings|agents|storage|sentry|[a-z]{1,5})",
            key in "(id|rules|default_mode|auto_promote_after|handoff_timeout|token|path|[a-z]{1,5})",
            value in "(null|review|[0-9]{1,4}|-[0-9]|\\[\\]|\\[[a-z]\\]|\\{ id: [a-z]{0,3}, rules: \\[\\{ field: [a-z]{0,2}, constraint: [a-z_]{0,12} \\}\\] \\})",
        ) {
            for text in [text, format!("{section}: {{ {key}: {value} }}"), format!("{section}: [{{ {key}: {value} }}, {value}]"), format!("{section}: {value}")] {
                if let Ok(Found { document: Some(document), .. }) = read(Path::new("cowork.config.yaml"), &text) {
                    assert!(Document::parse(&document).is_ok(), "{text}: {document}");
                }
            }
        }
    }
}
