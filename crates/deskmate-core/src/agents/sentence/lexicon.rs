//! The words and patterns of `lexicon.yaml`, compiled once.
//!
//! A pattern is a row of words. `a|b` is either, `go_through` are two words, `summar*` is a beginning, `@name` is any of a set,
//! `..` are up to six words between, `..2` up to two, `^` is the beginning of a part of a sentence, `!word` is anything but a
//! word, `=word` is a word that follows and is no part of it, `%number`, `%url`, `%address` and `%path` are what they say. A pattern never goes over a comma or the end of a sentence.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;

use super::tokens::{Break, Kind, Token, sign};

const GAP: usize = 6;

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Verbs in their plain form; the others follow.
    verbs: BTreeMap<String, Vec<String>>,
    words: BTreeMap<String, Vec<String>>,
    leads: Vec<String>,
    stops: Vec<String>,
    english: Vec<String>,
    negations: Vec<String>,
    steps: Vec<StepFile>,
    sources: Vec<Named>,
    outputs: BTreeMap<String, String>,
    data: Vec<DataFile>,
    frameworks: Vec<Named>,
    policies: Vec<PolicyFile>,
    approval: Vec<String>,
    events: Vec<String>,
    vague: Vec<String>,
    units: BTreeMap<String, Vec<String>>,
    zones: BTreeMap<String, String>,
    times: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepFile {
    kind: String,
    verb: String,
    /// Whether what it names at its end is where something goes, and not where it comes from.
    #[serde(default)]
    output: bool,
    /// Sources that it takes care of itself.
    #[serde(default)]
    takes: Vec<String>,
    patterns: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    kind: String,
    #[serde(default)]
    step: Option<String>,
    patterns: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DataFile {
    kind: String,
    why: String,
    patterns: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyFile {
    pub(super) template: String,
    pub(super) why: String,
    #[serde(default)]
    pub(super) data: Vec<String>,
    #[serde(default)]
    pub(super) steps: Vec<String>,
    #[serde(default)]
    pub(super) frameworks: Vec<String>,
    #[serde(default)]
    pub(super) words: Vec<String>,
}

/// A step that a sentence can name.
pub(super) struct Step {
    pub(super) kind: String,
    pub(super) verb: String,
    pub(super) output: bool,
    pub(super) takes: Vec<String>,
    pub(super) patterns: Vec<Pattern>,
}

/// A kind with its patterns.
pub(super) struct Group {
    pub(super) kind: String,
    /// The step that goes with a source, or the reason that goes with data.
    pub(super) with: String,
    pub(super) patterns: Vec<Pattern>,
}

/// Everything, compiled.
pub(super) struct Lexicon {
    pub(super) leads: Vec<Pattern>,
    pub(super) stops: Vec<String>,
    english: Vec<String>,
    negations: Vec<String>,
    pub(super) steps: Vec<Step>,
    pub(super) sources: Vec<Group>,
    pub(super) outputs: BTreeMap<String, String>,
    pub(super) data: Vec<Group>,
    pub(super) frameworks: Vec<Group>,
    pub(super) policies: Vec<(PolicyFile, Vec<Pattern>)>,
    pub(super) approval: Vec<Pattern>,
    pub(super) events: Vec<Pattern>,
    pub(super) vague: Vec<Pattern>,
    /// Units of limits by their words.
    pub(super) units: HashMap<String, String>,
    pub(super) zones: Vec<(Pattern, String)>,
    pub(super) times: BTreeMap<String, String>,
    /// Plain forms of verbs.
    pub(super) bases: HashMap<String, String>,
}

static LEXICON: LazyLock<Result<Lexicon, String>> = LazyLock::new(|| Lexicon::read(include_str!("lexicon.yaml")));

/// The lexicon, or what is wrong with it.
pub(super) fn lexicon() -> crate::Result<&'static Lexicon> {
    LEXICON.as_ref().map_err(|why| crate::Error::new(crate::Code::Internal, format!("the lexicon cannot be read: {why}")))
}

impl Lexicon {
    fn read(text: &str) -> Result<Self, String> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        let (sets, bases) = sets(&file.verbs, &file.words);
        let compile = |patterns: &[String]| patterns.iter().map(|pattern| Pattern::read(pattern, &sets)).collect::<Result<Vec<_>, _>>();
        let group = |named: &Named| {
            Ok::<_, String>(Group { kind: named.kind.clone(), with: named.step.clone().unwrap_or_default(), patterns: compile(&named.patterns)? })
        };
        let mut units = HashMap::new();
        for (unit, words) in &file.units {
            units.extend(words.iter().map(|word| (word.clone(), unit.clone())));
        }
        Ok(Self {
            leads: compile(&file.leads)?,
            stops: file.stops,
            english: file.english,
            negations: file.negations,
            steps: file
                .steps
                .iter()
                .map(|step| {
                    let patterns = compile(&step.patterns)?;
                    Ok(Step { kind: step.kind.clone(), verb: step.verb.clone(), output: step.output, takes: step.takes.clone(), patterns })
                })
                .collect::<Result<_, String>>()?,
            sources: file.sources.iter().map(group).collect::<Result<_, _>>()?,
            outputs: file.outputs,
            data: file
                .data
                .iter()
                .map(|data| Ok(Group { kind: data.kind.clone(), with: data.why.clone(), patterns: compile(&data.patterns)? }))
                .collect::<Result<_, String>>()?,
            frameworks: file.frameworks.iter().map(group).collect::<Result<_, _>>()?,
            policies: file.policies.into_iter().map(|policy| compile(&policy.words).map(|words| (policy, words))).collect::<Result<_, _>>()?,
            approval: compile(&file.approval)?,
            events: compile(&file.events)?,
            vague: compile(&file.vague)?,
            units,
            zones: file.zones.iter().map(|(words, zone)| Ok((Pattern::read(words, &sets)?, zone.clone()))).collect::<Result<_, String>>()?,
            times: file.times,
            bases,
        })
    }

    pub(super) fn is_english(&self, word: &str) -> bool {
        self.english.iter().chain(&self.stops).any(|known| known == word) || self.bases.contains_key(word)
    }

    /// Whether what begins at a place is not to be done: `never`, `do not`, `without` shortly before it.
    pub(super) fn is_negated(&self, tokens: &[Token], at: usize) -> bool {
        if tokens.get(at).is_some_and(|token| self.negations.contains(&token.text) && !token.is("without")) {
            return true;
        }
        let mut back = at;
        for _ in 0..4 {
            if tokens.get(back).is_none_or(|token| token.before != Break::No) {
                return false;
            }
            back -= 1;
            let Some(token) = tokens.get(back) else { return false };
            if self.negations.contains(&token.text) && (!token.is("without") || tokens.get(back + 1).is_some_and(|next| next.text.ends_with("ing"))) {
                // "no more than", "do not forget to", "not only"
                let next = tokens.get(back + 1).map(|token| token.text.as_str());
                return !matches!(next, Some("more" | "forget" | "only" | "later"));
            }
        }
        false
    }

    /// Whether a word says that something is not to be done.
    pub(super) fn is_negation(word: &str, next: &str) -> bool {
        matches!(word, "never" | "dont" | "not" | "cannot" | "mustnt" | "shouldnt" | "avoid" | "nothing") || (word == "without" && next.ends_with("ing"))
    }

    /// The first place where one of some patterns fits.
    pub(super) fn first(patterns: &[Pattern], tokens: &[Token]) -> Option<Found> {
        patterns.iter().filter_map(|pattern| pattern.find(tokens, 0)).min_by_key(|found| (found.start, usize::MAX - found.end))
    }
}

/// Sets of words by their names.
pub(super) type Sets = HashMap<String, Vec<Phrase>>;

/// Compiles sets: verbs in all their forms, and words; and the plain forms of the verbs.
pub(super) fn sets(verbs: &BTreeMap<String, Vec<String>>, words: &BTreeMap<String, Vec<String>>) -> (Sets, HashMap<String, String>) {
    let mut sets = Sets::new();
    let mut bases = HashMap::new();
    for (name, verbs) in verbs {
        let mut phrases = Vec::new();
        for verb in verbs {
            let (plain, rest) = verb.split_once(' ').unwrap_or((verb, ""));
            for form in forms(plain) {
                bases.entry(form.clone()).or_insert_with(|| plain.to_owned());
                phrases.push(phrase(&format!("{form} {rest}")));
            }
        }
        sets.insert(name.clone(), phrases);
    }
    for (name, words) in words {
        sets.insert(name.clone(), words.iter().map(|word| phrase(word)).collect());
    }
    (sets, bases)
}

pub(super) type Phrase = Vec<Word>;

/// One word of a pattern.
#[derive(Clone, Debug)]
pub(super) enum Word {
    Exact(String),
    Begins(String),
    Any(Kind),
}

impl Word {
    fn fits(&self, token: &Token) -> bool {
        match self {
            Self::Exact(word) => token.text == *word,
            Self::Begins(word) => token.text.starts_with(word.as_str()),
            Self::Any(kind) => token.kind == *kind,
        }
    }
}

/// Some phrases, and the signs of their first words by which most are passed over; 0 for what is no whole word.
#[derive(Clone, Debug)]
struct Phrases {
    /// A bit for each sign, by its last eight bits: most words begin none of the phrases, which this tells at once.
    begins: [u64; 4],
    signs: Vec<u32>,
    all: Vec<Phrase>,
}

/// The place of a sign among four times 64 bits.
fn bit(sign: u32) -> (usize, u64) {
    ((sign >> 6 & 3) as usize, 1 << (sign & 63))
}

impl Phrases {
    fn new(all: Vec<Phrase>) -> Self {
        let first = |phrase: &Phrase| match phrase.first() {
            Some(Word::Exact(word)) => sign(word),
            _ => 0,
        };
        let signs: Vec<u32> = all.iter().map(first).collect();
        let mut begins = [0; 4];
        for sign in &signs {
            let (place, bit) = bit(*sign);
            if let Some(part) = begins.get_mut(place) {
                *part |= bit;
            }
        }
        if signs.contains(&0) {
            begins = [u64::MAX; 4];
        }
        Self { begins, signs, all }
    }

    /// Those that fit at a place, in their order. `joined` says whether a piece belongs to the one before.
    fn at<'a>(&'a self, tokens: &'a [Token], at: usize, joined: impl Fn(usize) -> bool + 'a) -> impl Iterator<Item = &'a Phrase> {
        let begun = tokens.get(at).map_or(0, |token| token.sign);
        let (place, bit) = bit(begun);
        let is_likely = self.begins.get(place).is_some_and(|part| part & bit != 0);
        let signs = if is_likely { self.signs.as_slice() } else { &[] };
        let likely = signs.iter().zip(&self.all).filter(move |(sign, _)| **sign == begun || **sign == 0).map(|(_, phrase)| phrase);
        likely.filter(move |phrase| {
            phrase.iter().enumerate().all(|(offset, word)| joined(at + offset) && tokens.get(at + offset).is_some_and(|token| word.fits(token)))
        })
    }
}

#[derive(Clone, Debug)]
enum Part {
    Words(Phrases),
    Gap(usize),
    Start,
    Not(Phrases),
    Ahead(Phrases),
}

/// A pattern.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    parts: Vec<Part>,
}

/// Where a pattern fits: its first and the end of its last piece, and where its last part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) last: usize,
}

fn phrase(text: &str) -> Phrase {
    text.split_whitespace()
        .map(|word| match word.strip_suffix('*') {
            Some(begin) => Word::Begins(begin.to_owned()),
            None => Word::Exact(word.to_owned()),
        })
        .collect()
}

/// The alternatives of one part of a pattern.
fn phrases(part: &str, text: &str, sets: &Sets) -> Result<Phrases, String> {
    let mut phrases = Vec::new();
    for word in part.split('|') {
        match (word.strip_prefix('@'), word) {
            (Some(set), _) => phrases.extend(sets.get(set).ok_or_else(|| format!("there is no set `{set}` for `{text}`"))?.iter().cloned()),
            (None, "%number") => phrases.push(vec![Word::Any(Kind::Number)]),
            (None, "%url") => phrases.push(vec![Word::Any(Kind::Url)]),
            (None, "%address") => phrases.push(vec![Word::Any(Kind::Address)]),
            (None, "%path") => phrases.push(vec![Word::Any(Kind::Path)]),
            (None, word) => phrases.push(phrase(&word.replace('_', " "))),
        }
    }
    Ok(Phrases::new(phrases))
}

impl Pattern {
    pub(super) fn read(text: &str, sets: &Sets) -> Result<Self, String> {
        let mut parts = Vec::new();
        for part in text.split_whitespace() {
            if part == "^" {
                parts.push(Part::Start);
            } else if let Some(words) = part.strip_prefix('!') {
                parts.push(Part::Not(phrases(words, text, sets)?));
            } else if let Some(words) = part.strip_prefix('=') {
                parts.push(Part::Ahead(phrases(words, text, sets)?));
            } else if let Some(count) = part.strip_prefix("..") {
                parts.push(Part::Gap(if count.is_empty() { GAP } else { count.parse().map_err(|_| format!("`{part}` in `{text}`"))? }));
            } else {
                parts.push(Part::Words(phrases(part, text, sets)?));
            }
        }
        if parts.is_empty() { Err("an empty pattern".to_owned()) } else { Ok(Self { parts }) }
    }

    /// The first place from another on where it fits.
    pub(super) fn find(&self, tokens: &[Token], from: usize) -> Option<Found> {
        (from..tokens.len()).find_map(|start| self.at(tokens, start))
    }

    /// Whether it fits here.
    pub(super) fn at(&self, tokens: &[Token], start: usize) -> Option<Found> {
        let (end, last) = fit(&self.parts, tokens, start, start, start)?;
        Some(Found { start, end, last })
    }

    /// The pieces that its words stand for where it fits: without those that stand between.
    pub(super) fn marks(&self, tokens: &[Token], start: usize) -> Vec<usize> {
        let mut marks = Vec::new();
        mark(&self.parts, tokens, start, start, &mut marks);
        marks
    }

    /// Every place where it fits, the next after the end of the one before.
    pub(super) fn all<'a>(&'a self, tokens: &'a [Token]) -> impl Iterator<Item = Found> + 'a {
        let mut from = 0;
        std::iter::from_fn(move || {
            let found = self.find(tokens, from)?;
            from = found.end.max(found.start + 1);
            Some(found)
        })
    }
}

/// Fits the rest of a pattern at a place: the end, and where the last part with words began.
fn fit(parts: &[Part], tokens: &[Token], start: usize, at: usize, last: usize) -> Option<(usize, usize)> {
    let Some((part, rest)) = parts.split_first() else { return (at > start).then_some((at, last)) };
    let joined = |place: usize| place == start || tokens.get(place).is_some_and(|token| token.before == Break::No);
    match part {
        Part::Start => (at == 0 || tokens.get(at).is_some_and(|token| token.before != Break::No)).then(|| fit(rest, tokens, start, at, last))?,
        Part::Gap(most) => {
            for skip in 0..=*most {
                if (at..at + skip).any(|place| !joined(place)) {
                    return None;
                }
                if let Some(found) = fit(rest, tokens, start, at + skip, last) {
                    return Some(found);
                }
            }
            None
        }
        Part::Not(phrases) | Part::Ahead(phrases) => {
            let is_there = phrases.at(tokens, at, joined).next().is_some();
            if is_there == matches!(part, Part::Ahead(_)) { fit(rest, tokens, start, at, last) } else { None }
        }
        Part::Words(phrases) => phrases.at(tokens, at, joined).find_map(|phrase| fit(rest, tokens, start, at + phrase.len(), at)),
    }
}

/// Like [`fit`], noting the pieces that words stand for.
fn mark(parts: &[Part], tokens: &[Token], start: usize, at: usize, marks: &mut Vec<usize>) -> bool {
    let Some((part, rest)) = parts.split_first() else { return at > start };
    let joined = |place: usize| place == start || tokens.get(place).is_some_and(|token| token.before == Break::No);
    match part {
        Part::Start | Part::Not(_) | Part::Ahead(_) => mark(rest, tokens, start, at, marks),
        Part::Gap(most) => (0..=*most)
            .take_while(|skip| (at..at + skip).all(joined))
            .any(|skip| fit(rest, tokens, start, at + skip, at).is_some() && mark(rest, tokens, start, at + skip, marks)),
        Part::Words(phrases) => phrases.at(tokens, at, joined).any(|phrase| {
            if !rest.is_empty() && fit(rest, tokens, start, at + phrase.len(), at).is_none() {
                return false;
            }
            let kept = marks.len();
            marks.extend(at..at + phrase.len());
            let is_whole = mark(rest, tokens, start, at + phrase.len(), marks);
            if !is_whole {
                marks.truncate(kept);
            }
            is_whole
        }),
    }
}

/// The forms of a verb: `classify`, `classifies`, `classifying`, `classified`.
fn forms(verb: &str) -> Vec<String> {
    let is_vowel = |letter: char| "aeiou".contains(letter);
    let letters: Vec<char> = verb.chars().collect();
    let (last, before, third) = match letters.as_slice() {
        [.., third, before, last] => (*last, *before, Some(*third)),
        [before, last] => (*last, *before, None),
        _ => return vec![verb.to_owned()],
    };
    let stem: String = letters.iter().take(letters.len() - 1).collect();
    let mut forms = vec![verb.to_owned()];
    if last == 'y' && !is_vowel(before) {
        forms.extend([format!("{stem}ies"), format!("{verb}ing"), format!("{stem}ied")]);
    } else if last == 'e' {
        let ing = if before == 'e' { format!("{verb}ing") } else { format!("{stem}ing") };
        forms.extend([format!("{verb}s"), ing, format!("{verb}d")]);
    } else {
        let hisses = verb.ends_with("sh") || verb.ends_with("ch") || matches!(last, 's' | 'x' | 'z' | 'o');
        forms.push(if hisses { format!("{verb}es") } else { format!("{verb}s") });
        let doubles =
            letters.len() <= 4 && !is_vowel(last) && is_vowel(before) && third.is_some_and(|third| !is_vowel(third)) && !matches!(last, 'w' | 'x' | 'y');
        let stem = if doubles { format!("{verb}{last}") } else { verb.to_owned() };
        forms.extend([format!("{stem}ing"), format!("{stem}ed")]);
        if doubles {
            forms.extend([format!("{verb}ing"), format!("{verb}ed")]);
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    #[test]
    fn the_file_can_be_read() {
        if let Err(why) = Lexicon::read(include_str!("lexicon.yaml")) {
            panic!("{why}");
        }
    }

    #[test]
    fn verbs_have_their_forms() {
        assert_eq!(forms("classify"), ["classify", "classifies", "classifying", "classified"]);
        assert_eq!(forms("scrape"), ["scrape", "scrapes", "scraping", "scraped"]);
        assert_eq!(forms("watch"), ["watch", "watches", "watching", "watched"]);
        assert!(forms("scan").contains(&"scanning".to_owned()));
        assert!(forms("email").contains(&"emailed".to_owned()));
    }

    #[test]
    fn patterns_stay_within_a_part_of_a_sentence() {
        let sets = HashMap::new();
        let pattern = Pattern::read("send .. mail|email", &sets).unwrap();
        let find = |text: &str| pattern.find(&tokens(text), 0).map(|found| (found.start, found.end, found.last));
        assert_eq!(find("please send me a mail"), Some((1, 5, 4)));
        assert_eq!(find("please send it, by mail"), None);
        assert_eq!(find("please send it. Mail"), None);
        assert_eq!(find("send one two three four five six seven mail"), None);
        let begins = Pattern::read("^ email me|us", &sets).unwrap();
        assert!(begins.find(&tokens("check it, email me"), 0).is_some() && begins.find(&tokens("check email me"), 0).is_none());
    }
}
