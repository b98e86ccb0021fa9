//! Hooks in the settings of a client: the desk is asked before a tool is used, and told afterwards.

use std::collections::BTreeSet;

use serde_json::Value;

use super::document::{Document, Outcome};
use super::known;

/// Puts hooks into settings. Ours are brought up to date where they stand; those of others stay.
pub(super) fn add(document: &mut Document, settings: &Value) -> Outcome<()> {
    if let Some(version) = settings.get("version")
        && document.get(&["version"])?.is_none()
    {
        document.set(&["version"], version)?;
    }
    for (event, groups) in settings.get("hooks").and_then(Value::as_object).into_iter().flatten() {
        let path = ["hooks", event.as_str()];
        let wanted = groups.as_array().cloned().unwrap_or_default();
        if wanted.iter().all(|group| document.list(&path).is_ok_and(|found| found.contains(group))) {
            continue;
        }
        take(document, &path)?;
        for group in &wanted {
            document.push(&path, group)?;
        }
    }
    Ok(())
}

/// Takes our hooks out of settings, and what would be left empty with them.
pub(super) fn remove(document: &mut Document) -> Outcome<()> {
    let events: Vec<String> = match document.get(&["hooks"])? {
        Some(Value::Object(events)) => events.keys().cloned().collect(),
        _ => return Ok(()),
    };
    let mut taken = false;
    for event in &events {
        let path = ["hooks", event.as_str()];
        if take(document, &path)? && document.list(&path)?.is_empty() {
            document.remove(&path)?;
        }
        taken = true;
    }
    if taken && document.get(&["hooks"])?.is_some_and(|left| left.as_object().is_some_and(serde_json::Map::is_empty)) {
        document.remove(&["hooks"])?;
    }
    Ok(())
}

/// Our commands among the hooks of settings, each once, in words.
pub(super) fn commands(document: &Document) -> Vec<Vec<String>> {
    let Ok(Some(Value::Object(events))) = document.get(&["hooks"]) else { return Vec::new() };
    let groups = events.values().filter_map(Value::as_array).flatten();
    let hooks = groups.flat_map(|group| std::iter::once(group.clone()).chain(hooks_of(group))).filter(is_ours);
    hooks.map(|hook| command(&hook)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Takes our hooks out of one event's groups; a group that had no others goes with them.
fn take(document: &mut Document, path: &[&str; 2]) -> Outcome<bool> {
    let mut taken = false;
    for (index, group) in document.list(path)?.iter().enumerate().rev() {
        // Cursor has no groups: each stands for itself.
        if is_ours(group) {
            taken = true;
            document.replace_at(path, index, None)?;
            continue;
        }
        let hooks = hooks_of(group);
        let others: Vec<Value> = hooks.iter().filter(|hook| !is_ours(hook)).cloned().collect();
        if others.len() == hooks.len() {
            continue;
        }
        taken = true;
        let mut left = group.clone();
        if let Some(fields) = left.as_object_mut() {
            fields.insert("hooks".to_owned(), Value::Array(others.clone()));
        }
        document.replace_at(path, index, (!others.is_empty()).then_some(&left))?;
    }
    Ok(taken)
}

fn hooks_of(group: &Value) -> Vec<Value> {
    group.get("hooks").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Whether a hook runs `deskmate hook`.
fn is_ours(hook: &Value) -> bool {
    command(hook).split_first().is_some_and(|(program, words)| known::is_ours("hook", program, words, false))
}

fn command(hook: &Value) -> Vec<String> {
    words(hook.get("command").and_then(Value::as_str).unwrap_or_default())
}

/// The words of a plain command line, as far as quotes go.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    let mut letters = line.chars();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => word.extend(letters.next()),
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => (quote, begun) = (Some(c), true),
            (None, c) if c.is_whitespace() => {
                if begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (_, c) => word.push(c),
        }
    }
    if begun || !word.is_empty() {
        words.push(word);
    }
    words
}

/// A word for `sh`.
pub(super) fn quote(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::hosts::{Format, Leniency};
    use super::*;
    use crate::hook::settings::{claude_code, cursor};

    fn document(text: &str) -> Document {
        Document::parse(text, Format::Json(Leniency { comments: true, trailing_commas: true })).unwrap()
    }

    #[test]
    fn what_decides_blocks_when_it_cannot_be_asked() {
        let settings = claude_code("deskmate hook");
        for (event, blocks) in
            [("PreToolUse", true), ("PermissionRequest", true), ("PostToolUse", false), ("UserPromptSubmit", false), ("SessionStart", false), ("Stop", false)]
        {
            let hook = &settings["hooks"][event][0]["hooks"][0];
            assert_eq!((hook["command"].as_str(), hook["onFailure"] == "block"), (Some("deskmate hook"), blocks), "{event}");
        }
        assert_eq!(settings["hooks"]["PreToolUse"][0]["matcher"], "*");
    }

    #[test]
    fn hooks_of_others_stay() {
        let text = "{\n  // mine\n  \"hooks\": {\n    \"PreToolUse\": [\n      { \"matcher\": \"Bash\", \"hooks\": [{ \"type\": \"command\", \"command\": \"lint\" }] } // first\n    ]\n  }\n}\n";
        let mut settings = document(text);
        let wanted = claude_code("'/opt/my desk/deskmate' hook --agent code");
        add(&mut settings, &wanted).unwrap();
        assert_eq!(commands(&settings).len(), 1);
        let once = settings.text();
        add(&mut settings, &wanted).unwrap();
        assert_eq!(settings.text(), once, "a second time changes nothing");
        assert!(once.contains("// first") && once.contains("// mine"), "{once}");
        assert_eq!(settings.list(&["hooks", "PreToolUse"]).unwrap().len(), 2);
        add(&mut settings, &claude_code("deskmate hook")).unwrap();
        assert_eq!(settings.list(&["hooks", "PreToolUse"]).unwrap().len(), 2, "another command takes the place of the old one");
        remove(&mut settings).unwrap();
        assert!(commands(&settings).is_empty());
        assert_eq!(settings.get(&["hooks"]).unwrap(), document(text).get(&["hooks"]).unwrap());
    }

    #[test]
    fn a_group_that_is_shared_keeps_the_others() {
        let mut settings =
            document(r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "bell"}, {"type": "command", "command": "deskmate hook"}]}]}, "a": 1}"#);
        remove(&mut settings).unwrap();
        assert_eq!(settings.get(&["hooks"]).unwrap(), Some(json!({ "Stop": [{ "hooks": [{ "type": "command", "command": "bell" }] }] })));
        let mut alone = document("{\"a\": 1}");
        add(&mut alone, &claude_code("deskmate hook")).unwrap();
        remove(&mut alone).unwrap();
        assert_eq!((alone.get(&["hooks"]).unwrap(), alone.get(&["a"]).unwrap()), (None, Some(json!(1))));
    }

    #[test]
    fn hooks_without_groups_come_and_go_too() {
        let text = "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [{ \"command\": \"bell\" }]\n  }\n}\n";
        let mut settings = document(text);
        for command in ["deskmate hook --client cursor", "/opt/dm-0.2 hook --client cursor --home /h"] {
            add(&mut settings, &cursor(command)).unwrap();
            assert_eq!(commands(&settings).len(), 1);
            let all = settings.get(&["hooks"]).unwrap().unwrap();
            assert_eq!((all["preToolUse"].as_array().unwrap().len(), all["stop"].as_array().unwrap().len()), (1, 2), "{all}");
            assert_eq!((&all["preToolUse"][0]["command"], &all["preToolUse"][0]["failClosed"]), (&json!(command), &json!(true)));
        }
        remove(&mut settings).unwrap();
        assert_eq!(settings.get(&["hooks"]).unwrap(), document(text).get(&["hooks"]).unwrap());
        let mut alone = document("");
        add(&mut alone, &cursor("deskmate hook")).unwrap();
        assert_eq!(alone.get(&["version"]).unwrap(), Some(json!(1)));
    }

    #[test]
    fn commands_are_read_as_the_shell_does() {
        for (command, ours) in [
            ("deskmate hook", true),
            ("\"/opt/my desk/deskmate\" hook x", true),
            ("'/a b/deskmate'  hook", true),
            ("/opt/dm-0.2 hook --agent code --home '/my desk'", true),
            ("/opt/dm-0.2 hook --token-file /t", true),
            ("/opt/dm-0.2 hook --agent code", false),
            ("lint hook --token-file /t --fix", false),
            ("deskmate-hook", false),
            ("echo deskmate hook", false),
            ("deskmate mcp", false),
            ("", false),
        ] {
            assert_eq!(is_ours(&json!({ "type": "command", "command": command })), ours, "{command}");
        }
        assert_eq!(quote("/plain/path"), "/plain/path");
        assert_eq!(words(&format!("{} hook", quote("/it's here/deskmate"))).last().map(String::as_str), Some("hook"));
    }
}
