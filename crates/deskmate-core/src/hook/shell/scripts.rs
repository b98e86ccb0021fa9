//! Programs with a small language of their own, whose scripts stand in the line.

use super::options;
use super::programs::{Call, unknown};
use super::syntax::Word;
use super::walk::Walk;
use super::{ShellAct, Verb};

/// Options with which `sed` does what its script says, and reads it from nowhere else.
const SED: &str = "-nErsuzb -e: -i? --quiet --silent --regexp-extended --expression: --in-place? --separate --unbuffered --null-data --posix --debug --sandbox --help \
    --version";

/// `sed` changes files with `-i`, and its scripts can write and run; only plain ones are looks.
pub(super) fn sed(walk: &mut Walk, call: &Call<'_>) {
    let options = options::read(&[SED], call.arguments, false).filter(|options| !options.is_doubtful && !call.arguments.iter().any(Word::is_loose));
    let Some(options) = options else { return unknown(walk, "sed", "what it does with these options is not known here") };
    let in_place = options.has(&["i", "in-place"]);
    if options.values(&["i", "in-place"]).any(|ending| ending.shown().contains(['/', '*'])) {
        return unknown(walk, "sed", "where it puts the copies is not known here");
    }
    let mut files = options.operands.clone();
    let mut scripts: Vec<Word> = options.values(&["e", "expression"]).cloned().collect();
    // Some take the first word for the ending of copies, so that the next one is the script.
    while scripts.iter().all(|script| in_place && script.shown().is_empty()) && !files.is_empty() {
        scripts.push(files.remove(0).clone());
    }
    // Where the first word is taken for the ending of copies, the script is the next one.
    let is_second = in_place && !options.has(&["e", "expression"]) && options.value("i").is_some_and(<[Word]>::is_empty);
    let second = files.first().filter(|_| is_second).map(|word| word.shown());
    if !scripts.iter().all(|script| script.literal().as_deref().is_some_and(is_plain_sed)) || second.is_some_and(|text| names_file(&text)) {
        return unknown(walk, "sed", "its script can write files or run programs");
    }
    let verb = if in_place { Verb::FileWrite } else { Verb::FileRead };
    let targets = files.into_iter().map(|word| walk.target(word)).collect();
    walk.add(ShellAct { targets, is_raised: call.is_raised, ..ShellAct::new(verb, "sed") });
}

/// Whether a word that should be a file would be a script that writes, reads or runs something.
fn names_file(text: &str) -> bool {
    let command = text.trim_start_matches(|char: char| char.is_ascii_digit() || matches!(char, ',' | '$' | '!' | ';' | '{' | ' '));
    command.strip_prefix(['w', 'W', 'r', 'R', 'e']).is_some_and(|rest| rest.starts_with(['/', '~', ' ', '\t']))
}

/// Whether a script only prints, deletes lines, or substitutes without writing or running.
fn is_plain_sed(script: &str) -> bool {
    let mut chars = script.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '0'..='9' | ',' | '$' | ';' | ' ' | '\n' | '!' | '~' | '+' | 'p' | 'd' | 'q' | '=' | 'n' | 'g' | 'G' | 'h' | 'H' | 'x' | '{' | '}' => {}
            '/' => {
                if !until(&mut chars, '/', true) {
                    return false;
                }
            }
            's' | 'y' => {
                let Some(mark) = chars.next().filter(|mark| !mark.is_alphanumeric() && *mark != '\\' && *mark != '\n') else { return false };
                if !until(&mut chars, mark, char == 's') || !until(&mut chars, mark, false) {
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

/// Passes over a part of a script. What its end is in brackets of a pattern, some see otherwise than others.
fn until(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, mark: char, is_pattern: bool) -> bool {
    let mut is_in_brackets = false;
    while let Some(char) = chars.next() {
        match char {
            '\\' if is_in_brackets => return false,
            '\\' => drop(chars.next()),
            _ if char == mark => return !is_in_brackets,
            '[' if is_pattern && !is_in_brackets => {
                is_in_brackets = true;
                // What stands first is one of its characters, also a bracket.
                chars.next_if_eq(&'^');
                chars.next_if_eq(&']');
            }
            ']' => is_in_brackets = false,
            _ => {}
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
        if word.may_be_several() || text.contains("${") {
            return unknown(walk, program, "an argument may become another one when it runs");
        }
        match text.as_str() {
            "-F" | "-v" if words.next().is_none_or(Word::may_be_several) => {
                return unknown(walk, program, "an argument may become another one when it runs");
            }
            "-F" | "-v" => {}
            _ if text.starts_with("-F") || text.starts_with("-v") => {}
            _ if text.starts_with('-') => return unknown(walk, program, "its program is in a file"),
            _ => {
                script = word.literal();
                break;
            }
        }
    }
    let plain = script
        .is_some_and(|script| !script.contains(['|', '>', '@']) && !["system", "getline", "ENVIRON", "ARG", "close"].iter().any(|word| script.contains(word)));
    if !plain {
        return unknown(walk, program, "its program can write files or run programs");
    }
    let targets = words.map(|word| walk.target(word)).collect();
    walk.add(ShellAct { targets, is_raised: call.is_raised, ..ShellAct::new(Verb::FileRead, program) });
}
