//! An AgentOS data directory, read without touching it: `agents/*.json`, `approvals/*.json` and `audit/*.jsonl`. A file or a line that
//! cannot be read is named, and the rest is read all the same.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use deskmate_core::call::parse_strict;
use deskmate_core::import::{Outcome, Report};
use deskmate_core::limits::{CONTENT_BYTES_MAX, INPUT_DEPTH_MAX};
use serde_json::{Value, json};

/// The folders, in the order in which they are brought in, and how the names of their files end.
const FOLDERS: [(&str, &str); 3] = [("agents", "json"), ("approvals", "json"), ("audit", "jsonl")];
/// Files of one folder.
const FILES_MAX: usize = 100_000;
/// How deep a row may nest: it stands within the input of a call, which has a bound of its own.
const DEPTH_MAX: usize = INPUT_DEPTH_MAX - 8;

/// Hands everything to `take`, as the desk's operation expects it; what cannot be read goes into the report.
pub(crate) fn read(folder: &Path, report: &mut Report, mut take: impl FnMut(Value) -> Result<(), String>) -> Result<(), String> {
    if !FOLDERS.iter().any(|(name, _)| folder.join(name).is_dir()) {
        return Err(format!("{}: this is not an AgentOS data directory: it has no folder agents, approvals or audit", folder.display()));
    }
    for (name, ending) in FOLDERS {
        for path in files(&folder.join(name), ending)? {
            let shown = format!("{name}/{}", path.file_name().unwrap_or_default().to_string_lossy());
            let mut refuse = |what: String, why: String| report.note(name, what, Outcome::Refused, Some(why));
            let file = match std::fs::File::open(&path) {
                Ok(file) => file,
                Err(error) => {
                    refuse(shown, error.to_string());
                    continue;
                }
            };
            if name != "audit" {
                let mut text = Vec::new();
                let size = file.take(CONTENT_BYTES_MAX as u64 + 1).read_to_end(&mut text).map_err(|error| error.to_string());
                match size.and_then(|_| parsed(&text)) {
                    Ok(row) => take(json!({ "folder": name, "file": shown, "row": row }))?,
                    Err(why) => refuse(shown, why),
                }
                continue;
            }
            let mut lines = BufReader::new(file);
            for number in 1_u64.. {
                let at = format!("{shown}:{number}");
                match line(&mut lines) {
                    Ok(None) => break,
                    Ok(Some(text)) if text.trim_ascii().is_empty() => {}
                    Ok(Some(text)) => match parsed(&text) {
                        Ok(row) => take(json!({ "folder": name, "file": at, "row": row }))?,
                        Err(why) => refuse(at, why),
                    },
                    Err(why) => {
                        refuse(at, why);
                        break;
                    }
                }
            }
        }
    }
    Ok(())
}

/// The files of a folder with this ending, by name. Links are not followed: they may lead out of the directory.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let at = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(at)?;
        if entry.file_type().is_ok_and(|kind| kind.is_file()) && entry.path().extension().is_some_and(|own| own == ending) {
            found.push(entry.path());
        }
        if found.len() > FILES_MAX {
            return Err(format!("{}: it has more than {FILES_MAX} files", folder.display()));
        }
    }
    found.sort();
    Ok(found)
}

/// The next line, whole or cut just beyond what is taken; the rest of a longer one is passed over.
fn line(lines: &mut impl BufRead) -> Result<Option<Vec<u8>>, String> {
    let mut text = Vec::new();
    let most = CONTENT_BYTES_MAX as u64 + 2;
    let got = lines.by_ref().take(most).read_until(b'\n', &mut text).map_err(|error| error.to_string())?;
    if got == 0 {
        return Ok(None);
    }
    if text.last() != Some(&b'\n') && text.len() as u64 == most {
        loop {
            let mut rest = Vec::new();
            let more = lines.by_ref().take(most).read_until(b'\n', &mut rest).map_err(|error| error.to_string())?;
            if more == 0 || rest.last() == Some(&b'\n') {
                break;
            }
        }
    }
    Ok(Some(text))
}

/// An object that any call may hold: no doubled keys, no numbers that lose digits, no NUL, not too deep, not too long.
fn parsed(text: &[u8]) -> Result<Value, String> {
    if text.len() > CONTENT_BYTES_MAX {
        return Err(format!("it is longer than {CONTENT_BYTES_MAX} bytes"));
    }
    let value = parse_strict(text).map_err(|error| error.message)?;
    if !value.is_object() {
        return Err("it is no JSON object".to_owned());
    }
    // The desk's own bounds are checked here too, so that one odd value does not take its neighbours along.
    check(&value, 0).map(|()| value)
}

fn check(value: &Value, depth: usize) -> Result<(), String> {
    let plain = |text: &str| if text.contains('\0') { Err("it contains the NUL character".to_owned()) } else { Ok(()) };
    match value {
        Value::Array(_) | Value::Object(_) if depth > DEPTH_MAX => Err(format!("it is nested more than {DEPTH_MAX} deep")),
        Value::String(text) => plain(text),
        Value::Array(items) => items.iter().try_for_each(|item| check(item, depth + 1)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| plain(name).and_then(|()| check(value, depth + 1))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_hides_none_of_the_others() {
        let long = format!("{{\"a\":\"{}\"}}\n{{\"b\":1}}\n", "x".repeat(CONTENT_BYTES_MAX * 3));
        let mut lines = std::io::Cursor::new(long.into_bytes());
        assert!(parsed(&line(&mut lines).unwrap().unwrap()).is_err());
        assert_eq!(parsed(&line(&mut lines).unwrap().unwrap()), Ok(json!({ "b": 1 })));
        assert_eq!(line(&mut lines), Ok(None));
    }

    #[test]
    fn what_no_call_may_hold_is_refused_alone() {
        for text in ["", "{", "[]", "null", "{\"a\":1,\"a\":2}", "{\"a\":9007199254740993}", "{\"a\":\"\\u0000\"}", "{\"a\":1} x", "\u{feff}{}"] {
            assert!(parsed(text.as_bytes()).is_err(), "{text:?}");
        }
        for depth in [60, 200] {
            let deep = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
            assert!(parsed(deep.as_bytes()).is_err());
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Whatever the files hold, every one of them is handed on or named as refused, and nothing else happens.
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..120), json in "[\\[\\]{}:,\"a1\\\\\n-]{0,60}") {
            let folder = tempfile::tempdir().unwrap();
            for (name, ending) in FOLDERS {
                std::fs::create_dir(folder.path().join(name)).unwrap();
                std::fs::write(folder.path().join(name).join(format!("a.{ending}")), &bytes).unwrap();
                std::fs::write(folder.path().join(name).join(format!("b.{ending}")), &json).unwrap();
            }
            let (mut report, mut taken) = (Report::new(true), 0);
            read(folder.path(), &mut report, |row| {
                taken += 1;
                assert!(row["row"].is_object());
                Ok(())
            })
            .unwrap();
            assert!(taken + report.entries.len() >= 4, "two agents and two approvals at least: {taken}");
        }
    }
}
