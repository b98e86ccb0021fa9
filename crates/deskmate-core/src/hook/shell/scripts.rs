//! Programs with a small language of their own, whose scripts stand in the line.

use super::programs::{Call, has, has_prefix, is_option, unknown};
use super::syntax::Word;
use super::walk::Walk;
use super::{ShellAct, Verb};

/// `sed` changes files with `-i`, and its scripts can write and run; only plain ones are looks.
pub(super) fn sed(walk: &mut Walk, call: &Call<'_>) {
    if has_prefix(call, &["-f", "--file"]) {
        return unknown(walk, "sed", "its script is in a file");
    }
    let in_place = call
        .arguments
        .iter()
        .map(Word::shown)
        .any(|text| text.starts_with("--in-place") || (text.starts_with('-') && !text.starts_with("--") && text.contains('i')));
    let named = has(call, &["-e", "--expression"]);
    let (mut scripts, mut files, mut next_is_script) = (Vec::new(), Vec::new(), false);
    for word in call.arguments {
        let text = word.shown();
        if next_is_script || (!named && scripts.is_empty() && !is_option(word)) {
            scripts.push(word.literal());
            next_is_script = false;
        } else if text == "-e" || text == "--expression" {
            next_is_script = true;
        } else if let Some(script) = text.strip_prefix("--expression=") {
            scripts.push(word.literal().map(|_| script.to_owned()));
        } else if !is_option(word) {
            files.push(walk.target(word));
        }
    }
    if !scripts.iter().all(|script| script.as_deref().is_some_and(is_plain_sed)) {
        return unknown(walk, "sed", "its script can write files or run programs");
    }
    let verb = if in_place { Verb::FileWrite } else { Verb::FileRead };
    walk.add(ShellAct { targets: files, is_raised: call.is_raised, ..ShellAct::new(verb, "sed") });
}

/// Whether a script only prints, deletes lines, or substitutes without writing or running.
fn is_plain_sed(script: &str) -> bool {
    let mut chars = script.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '0'..='9' | ',' | '$' | ';' | ' ' | '\n' | '!' | '~' | '+' | 'p' | 'd' | 'q' | '=' | 'n' | 'g' | 'G' | 'h' | 'H' | 'x' | '{' | '}' => {}
            '/' => {
                if !until(&mut chars, '/') {
                    return false;
                }
            }
            's' | 'y' => {
                let Some(mark) = chars.next().filter(|mark| !mark.is_alphanumeric() && *mark != '\\' && *mark != '\n') else { return false };
                if !until(&mut chars, mark) || !until(&mut chars, mark) {
                    return false;
                }
                while let Some(flag) = chars.peek() {
                    match flag {
                        'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => drop(chars.next()),
                        'e' | 'w' => return false,
                        _ => break,
                    }
                }
            }
            _ => return false,
        }
    }
    true
}

fn until(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, mark: char) -> bool {
    while let Some(char) = chars.next() {
        if char == '\\' {
            chars.next();
        } else if char == mark {
            return true;
        }
    }
    false
}

/// `awk` runs a program of its own; only one that can neither write nor run anything is a look.
pub(super) fn awk(walk: &mut Walk, call: &Call<'_>, program: &str) {
    let mut words = call.arguments.iter();
    let mut script = None;
    while let Some(word) = words.next() {
        let text = word.shown();
        match text.as_str() {
            "-F" | "-v" => drop(words.next()),
            _ if text.starts_with("-F") || text.starts_with("-v") => {}
            _ if text.starts_with('-') => return unknown(walk, program, "its program is in a file"),
            _ => {
                script = word.literal();
                break;
            }
        }
    }
    let plain =
        script.is_some_and(|script| !script.contains(['|', '>', '@']) && !["system", "getline", "ENVIRON", "close"].iter().any(|word| script.contains(word)));
    if !plain {
        return unknown(walk, program, "its program can write files or run programs");
    }
    let targets = words.map(|word| walk.target(word)).collect();
    walk.add(ShellAct { targets, is_raised: call.is_raised, ..ShellAct::new(Verb::FileRead, program) });
}
