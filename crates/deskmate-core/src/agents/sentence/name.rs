//! A name and a task: what is left of a sentence without its beginning, and the words in it that say most.

use std::collections::BTreeSet;

use super::lexicon::Lexicon;
use super::tokens::{Break, Kind, Token};

/// Words of a name, and how long it is.
const WORDS: usize = 4;
const CHARS_MAX: usize = 48;
/// What a sentence is called that says nothing that could be a name.
pub(super) const NAMELESS: &str = "agent";

/// Where the description itself begins: after "create an agent that".
pub(super) fn begin(lexicon: &Lexicon, tokens: &[Token]) -> usize {
    let mut begin = 0;
    for _ in 0..3 {
        let Some(end) = lexicon.leads.iter().filter_map(|lead| lead_at(lead, tokens, begin)).max() else { break };
        begin = end;
    }
    if begin >= tokens.len() { 0 } else { begin }
}

fn lead_at(lead: &super::lexicon::Pattern, tokens: &[Token], begin: usize) -> Option<usize> {
    // What follows a lead begins anew.
    let mut rest: Vec<Token> = tokens.get(begin..)?.to_vec();
    rest.first_mut()?.before = Break::Hard;
    lead.at(&rest, 0).map(|found| begin + found.end)
}

/// The task: the text from its description on.
pub(super) fn task(text: &str, tokens: &[Token], begin: usize) -> String {
    let start = tokens.get(begin).map_or(0, |token| token.start);
    let task = text.get(start..).unwrap_or(text).trim().trim_end_matches(['.', ' ']);
    let mut letters = task.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The name: the first words that say something, apart from those that say when and how much.
pub(super) fn name(lexicon: &Lexicon, tokens: &[Token], begin: usize, apart: &BTreeSet<usize>) -> String {
    let mut words: Vec<String> = Vec::new();
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        if token.before != Break::No && words.len() >= 2 {
            break;
        }
        if apart.contains(&at) || !matches!(token.kind, Kind::Word) || lexicon.stops.contains(&token.text) || token.text.chars().count() < 2 {
            continue;
        }
        if super::tokens::number_at(tokens, at).is_some() {
            continue;
        }
        // The first word is the verb, in its plain form.
        let plain = lexicon.bases.get(&token.text).filter(|_| words.is_empty());
        let mut word = latin(plain.map_or(token.text.as_str(), String::as_str));
        // "back up" is one word here.
        if word == "back" && tokens.get(at + 1).is_some_and(|next| next.is("up")) {
            "backup".clone_into(&mut word);
        }
        if word.is_empty() || words.contains(&word) {
            continue;
        }
        words.push(word);
        if words.len() == WORDS {
            break;
        }
    }
    let mut name = String::new();
    for word in words {
        if name.len() + word.len() < CHARS_MAX {
            if !name.is_empty() {
                name.push('-');
            }
            name.push_str(&word);
        }
    }
    if name.is_empty() || !name.starts_with(|letter: char| letter.is_ascii_lowercase()) { NAMELESS.to_owned() } else { name }
}

/// A word in letters that a name can have.
fn latin(word: &str) -> String {
    let mut out = String::new();
    for letter in word.chars() {
        match letter {
            'a'..='z' | '0'..='9' => out.push(letter),
            'ä' | 'æ' => out.push_str("ae"),
            'ö' | 'ø' | 'œ' => out.push_str("oe"),
            'ü' => out.push_str("ue"),
            'ß' => out.push_str("ss"),
            'à' | 'á' | 'â' | 'ã' | 'å' => out.push('a'),
            'ç' | 'ć' | 'č' => out.push('c'),
            'è' | 'é' | 'ê' | 'ë' => out.push('e'),
            'ì' | 'í' | 'î' | 'ï' => out.push('i'),
            'ñ' | 'ń' => out.push('n'),
            'ò' | 'ó' | 'ô' | 'õ' => out.push('o'),
            'ś' | 'š' => out.push('s'),
            'ù' | 'ú' | 'û' => out.push('u'),
            'ż' | 'ź' | 'ž' => out.push('z'),
            'ł' => out.push('l'),
            _ => {}
        }
    }
    out
}

/// What is wrong with a name that somebody gave.
pub(in crate::agents) fn problem(name: &str) -> Option<&'static str> {
    let fits = name.len() <= CHARS_MAX
        && name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && !name.ends_with('-')
        && !name.contains("--")
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    (!fits).then_some("has 1 to 48 small letters, digits and `-` between them, and begins with a letter")
}
