//! From sentences to rules of the policy engine: "block deleting more than 100 records", "require approval for payments above 500
//! euros", "never e-mail anyone outside example.com". The words are in `rules.yaml`.
//!
//! A statement becomes a rule only if everything in it that narrows it down was understood. Otherwise it is refused, with the words
//! that no condition can express: a rule that holds more or less than was said would be worse than none.
//!
//! - [`words`]: the patterns. [`amount`]: numbers and times. [`build`]: the rule.

mod amount;
mod build;
mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use self::amount::{Amount, Times};
use self::words::{About, Said, Words, words};
use super::lexicon::{Lexicon, lexicon};
use super::tokens::{Break, Kind, Token, tokens};
use crate::policy::{GeneralRule, Policy, Rule};
use crate::{Error, Result, check_text};

/// How long a description may be.
pub const POLICY_DESCRIPTION_BYTES_MAX: usize = 4_000;
/// Rules that come of one description.
const RULES_MAX: usize = 50;

/// A rule with the words it came from.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DraftedRule {
    /// The rule.
    pub rule: GeneralRule,
    /// The words it came from.
    pub words: String,
    /// Words that the rule does not heed, so that it holds for more than they say.
    pub left_out: Vec<String>,
    /// What the words left open, and how it was taken.
    pub assumed: Vec<String>,
}

/// A statement that became no rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refused {
    /// Its words.
    pub words: String,
    /// What of it cannot be expressed, and what to write.
    pub why: String,
}

/// A policy that came of sentences.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DraftedPolicy {
    /// The policy; without rules if nothing was understood.
    pub policy: Policy,
    /// Its rules with the words that they came from, in the same order.
    pub rules: Vec<DraftedRule>,
    /// Statements that became no rule.
    pub refused: Vec<Refused>,
}

/// Makes rules of sentences. The policy gets the name `id`.
pub fn draft_policy(id: &str, description: &str) -> Result<DraftedPolicy> {
    check_text("description", description, POLICY_DESCRIPTION_BYTES_MAX)?;
    if description.trim().is_empty() {
        return Err(Error::invalid("description", "is empty: write what agents must not do, or what a person decides"));
    }
    let tokens = tokens(description);
    let reading = Reading { lexicon: lexicon()?, words: words()?, text: description, tokens: &tokens };
    let (mut rules, mut refused): (Vec<DraftedRule>, Vec<Refused>) = (Vec::new(), Vec::new());
    let mut before: Option<Statement> = None;
    for (start, end) in reading.statements() {
        let mut statement = reading.statement(start, end);
        // "Block deleting files and log it" is about the same acts twice.
        if statement.is_about_nothing()
            && statement.refers
            && let Some(before) = &before
        {
            statement.same_as(before);
        }
        match build::rules(&reading, &statement) {
            Ok(made) => rules.extend(made),
            Err(why) => refused.push(Refused { words: reading.said(start, end), why }),
        }
        before = Some(statement);
    }
    if rules.len() > RULES_MAX {
        return Err(Error::invalid("description", format!("would make {} rules; one description makes at most {RULES_MAX}", rules.len())));
    }
    let mut names = BTreeSet::new();
    for drafted in &mut rules {
        let plain = drafted.rule.name.clone();
        let mut number = 1;
        while !names.insert(drafted.rule.name.clone()) {
            number += 1;
            drafted.rule.name = format!("{plain}_{number}");
        }
    }
    let policy = Policy {
        id: id.to_owned(),
        description: "Made of a description in words".to_owned(),
        category: None,
        framework: None,
        rules: rules.iter().map(|drafted| Rule::General(Box::new(drafted.rule.clone()))).collect(),
        tests: Vec::new(),
    };
    if let Some(problem) = crate::policy::problems(&policy).into_iter().next() {
        return Err(Error::invalid("description", format!("makes a rule that cannot be taken: {problem}")));
    }
    Ok(DraftedPolicy { policy, rules, refused })
}

struct Reading<'t> {
    lexicon: &'t Lexicon,
    words: &'t Words,
    text: &'t str,
    tokens: &'t [Token],
}

/// One thing that is about acts, with where it stands.
#[derive(Clone, Debug)]
struct Found {
    about: About,
    start: usize,
}

/// Who gets something.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Recipients {
    /// Anybody whose address does not end so.
    Outside(Vec<String>),
    /// Whoever has one of these addresses, or an address that ends so.
    Are(Vec<String>),
}

/// What a statement says.
#[derive(Clone, Debug, Default)]
struct Statement {
    start: usize,
    end: usize,
    effects: BTreeSet<Said>,
    found: Vec<Found>,
    amounts: Vec<(usize, Amount)>,
    times: Option<Times>,
    recipients: Option<Recipients>,
    /// Words in quotes that a text has.
    texts: Vec<String>,
    domains: Vec<String>,
    tools: Vec<String>,
    agents: Vec<String>,
    trust_below: Option<f64>,
    unverified: bool,
    approvers: Vec<String>,
    quorum: Option<u32>,
    /// Whether what follows is what may be.
    is_exception: bool,
    /// Whether it speaks of "it" or "them".
    refers: bool,
    /// Words that were not understood.
    unknown: Vec<String>,
    /// Words that cannot be heeded.
    wider: Vec<String>,
    /// What cannot be expressed at all.
    cannot: Vec<String>,
}

impl Statement {
    fn is_about_nothing(&self) -> bool {
        self.found.is_empty()
            && self.amounts.is_empty()
            && self.times.is_none()
            && self.recipients.is_none()
            && self.texts.is_empty()
            && self.domains.is_empty()
            && self.tools.is_empty()
    }

    fn same_as(&mut self, before: &Self) {
        let (start, end, effects) = (self.start, self.end, std::mem::take(&mut self.effects));
        let (quorum, approvers) = (self.quorum, std::mem::take(&mut self.approvers));
        let mut unknown = std::mem::take(&mut self.unknown);
        unknown.extend(before.unknown.iter().cloned());
        *self = Self { start, end, effects, approvers, quorum, unknown, ..before.clone() };
    }
}

impl Reading<'_> {
    fn word(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text.as_str())
    }

    fn said(&self, start: usize, end: usize) -> String {
        let (Some(first), Some(last)) = (self.tokens.get(start), self.tokens.get(end.saturating_sub(1))) else { return String::new() };
        self.text.get(first.start..last.end).unwrap_or_default().to_owned()
    }

    /// The pieces as they were written from the end of one on, up to a space.
    fn chunk_after(&self, at: usize) -> Option<(&str, usize)> {
        let end = self.tokens.get(at)?.end;
        let rest = self.text.get(end..)?;
        let begin = end + (rest.len() - rest.trim_start_matches([' ', '`', '"', '\'', '“']).len());
        let chunk = self.text.get(begin..)?.split(|letter: char| letter.is_whitespace() || matches!(letter, '`' | '"' | '\'' | '”' | ',' | ';')).next()?;
        let chunk = chunk.trim_end_matches(['.', ':', '!', '?']);
        Some((chunk, begin + chunk.len()))
    }

    /// Where an effect is named: its kind, the first piece, and all of its pieces.
    fn effects(&self, start: usize, end: usize) -> Vec<(Said, usize, Vec<usize>)> {
        let mut found = Vec::new();
        for (said, patterns) in &self.words.effects {
            for pattern in patterns {
                for place in pattern.all(self.tokens).filter(|place| place.start >= start && place.end <= end) {
                    found.push((*said, place.start, pattern.marks(self.tokens, place.start)));
                }
            }
        }
        found.sort_by_key(|(said, at, marks)| (*at, usize::MAX - marks.len(), *said));
        found
    }

    /// Sentences, and parts of them that say something of their own.
    fn statements(&self) -> Vec<(usize, usize)> {
        let mut statements = Vec::new();
        let mut start = 0;
        while start < self.tokens.len() {
            let end =
                (start + 1..self.tokens.len()).find(|at| self.tokens.get(*at).is_some_and(|token| token.before == Break::Hard)).unwrap_or(self.tokens.len());
            let effects: Vec<usize> = self.effects(start, end).into_iter().map(|(_, at, _)| at).collect();
            let mut from = start;
            for at in start + 1..end {
                let token = self.tokens.get(at);
                let is_break = token.is_some_and(|token| token.before == Break::Soft);
                let is_link = matches!(self.word(at), "and" | "but" | "then" | "also" | "plus");
                if !is_break && !is_link {
                    continue;
                }
                let next = if is_link { at + 1 } else { at };
                let skip = usize::from(is_break && matches!(self.word(at), "and" | "but"));
                let has_before = effects.iter().any(|effect| (from..at).contains(effect));
                let has_after = effects.iter().any(|effect| (at..=next + skip + 2).contains(effect) && *effect < end);
                if has_before && has_after {
                    statements.push((from, at));
                    from = at;
                }
            }
            statements.push((from, end));
            start = end;
        }
        statements.into_iter().filter(|(start, end)| (*start..*end).any(|at| self.tokens.get(at).is_some_and(|token| token.kind == Kind::Word))).collect()
    }

    /// Everything that a statement says.
    fn statement(&self, start: usize, end: usize) -> Statement {
        let mut statement = Statement { start, end, ..Statement::default() };
        let mut used: BTreeSet<usize> = BTreeSet::new();
        for (said, _, marks) in self.effects(start, end) {
            statement.effects.insert(said);
            used.extend(marks);
        }
        statement.is_exception =
            (start..end).any(|at| matches!(self.word(at), "except" | "unless" | "other") || (self.word(at) == "but" && self.word(at + 1) == "not"));
        statement.refers = (start..end).any(|at| matches!(self.word(at), "it" | "them" | "this" | "that" | "those" | "these" | "each"));
        self.people(&mut statement, &mut used);
        self.places(&mut statement, &mut used);
        self.amounts(&mut statement, &mut used);
        self.times(&mut statement, &mut used);
        self.abouts(&mut statement, &mut used);
        for at in start..end {
            let Some(token) = self.tokens.get(at) else { continue };
            let word = &token.text;
            // Whom a mail goes to is a part of what is done, and still not heeded.
            let is_whom = matches!(word.as_str(), "customers" | "clients" | "employees" | "users" | "partners" | "suppliers");
            if used.contains(&at) && !is_whom {
                continue;
            }
            let is_word = token.kind == Kind::Word && !self.lexicon.stops.contains(word) && !self.words.filler.contains(word) && word.len() > 1;
            if self.words.wider.contains(word) {
                statement.wider.push(word.clone());
            } else if is_word || matches!(token.kind, Kind::Host | Kind::Path | Kind::Url | Kind::Address | Kind::Zone) {
                statement.unknown.push(word.clone());
            }
        }
        statement
    }

    /// What acts it is about: of what fits at one place the longest.
    fn abouts(&self, statement: &mut Statement, used: &mut BTreeSet<usize>) {
        let mut candidates: Vec<(usize, usize, Vec<usize>, &About)> = Vec::new();
        for (about, patterns) in &self.words.about {
            for pattern in patterns {
                for place in pattern.all(self.tokens).filter(|place| place.start >= statement.start && place.end <= statement.end) {
                    candidates.push((place.start, place.end - place.start, pattern.marks(self.tokens, place.start), about));
                }
            }
        }
        candidates.sort_by_key(|(start, _, marks, _)| (usize::MAX - marks.len(), *start));
        for (start, _, marks, about) in candidates {
            if marks.iter().any(|mark| used.contains(mark)) {
                continue;
            }
            used.extend(&marks);
            statement.found.push(Found { about: about.clone(), start });
        }
        statement.found.sort_by_key(|found| found.start);
    }

    /// Who approves, who acts, and how far they are trusted.
    fn people(&self, statement: &mut Statement, used: &mut BTreeSet<usize>) {
        for at in statement.start..statement.end {
            let word = self.word(at);
            // "two people", "2 approvals"
            if let Some((number, taken)) = super::tokens::number_at(self.tokens, at)
                && matches!(
                    self.word(at + taken),
                    "people" | "persons" | "approvers" | "approvals" | "reviewers" | "managers" | "owners" | "humans" | "signatures"
                )
                && statement.effects.contains(&Said::RequireApproval)
                && (1.0..=50.0).contains(&number)
            {
                statement.quorum = super::whole(number);
                used.extend(at..=at + taken);
            }
            // "approval from Ada and Grace"
            if matches!(word, "from" | "by" | "of")
                && at > statement.start
                && matches!(
                    self.word(at - 1),
                    "approval" | "approvals" | "approved" | "reviewed" | "checked" | "sign_off" | "confirmation" | "confirmed" | "permission" | "off"
                )
            {
                let mut place = at + 1;
                while let Some(name) = self.tokens.get(place).filter(|_| place < statement.end) {
                    let written = self.text.get(name.start..name.end).unwrap_or_default();
                    let is_name = name.kind == Kind::Address || (name.kind == Kind::Word && written.starts_with(char::is_uppercase) && written.len() > 1);
                    if is_name {
                        statement.approvers.push(written.to_owned());
                        used.insert(place);
                    } else if !matches!(name.text.as_str(), "and" | "or" | "either" | "both") {
                        break;
                    }
                    place += 1;
                }
            }
            if matches!(word, "agent" | "agents" | "bot" | "tool" | "tools")
                && let Some((chunk, end)) = self.chunk_after(at)
                && chunk.contains(['-', '_', '*'])
                && chunk.len() <= 128
                && chunk.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.*:".contains(letter))
            {
                if word.starts_with("tool") {
                    statement.tools.push(chunk.to_owned());
                } else {
                    statement.agents.push(chunk.to_owned());
                }
                used.extend((at..statement.end).filter(|place| self.tokens.get(*place).is_some_and(|token| token.start < end)));
            }
            if word == "trust" || word == "score" {
                let number = (at..at + 6).find_map(|place| Some((place, super::tokens::number_at(self.tokens, place)?)));
                if let Some((place, (number, taken))) =
                    number.filter(|(place, (number, _))| *number <= 1.0 && matches!(self.word(place - 1), "below" | "under" | "than"))
                {
                    statement.trust_below = Some(number);
                    used.extend(at..place + taken);
                }
            }
            if matches!(word, "unverified" | "unproven" | "unauthenticated" | "unknown") && matches!(self.word(at + 1), "agent" | "agents" | "bots" | "callers")
            {
                statement.unverified = true;
                used.extend(at..=at + 1);
            }
        }
    }

    /// Addresses, domains and words in quotes.
    fn places(&self, statement: &mut Statement, used: &mut BTreeSet<usize>) {
        let range = statement.start..statement.end;
        let has = |words: &[&str]| range.clone().any(|at| words.contains(&self.word(at)));
        let is_outside = has(&["outside", "external", "except", "unless", "only", "beyond", "other"])
            || range.clone().any(|at| self.word(at) == "not" && matches!(self.word(at + 1), "at" | "in" | "from" | "ending"));
        let mut addresses = Vec::new();
        for at in range.clone() {
            let Some(token) = self.tokens.get(at) else { continue };
            match token.kind {
                Kind::Address => {
                    addresses.push(token.text.clone());
                    used.insert(at);
                }
                Kind::Host => {
                    let before: Vec<&str> = (at.saturating_sub(3)..at).map(|place| self.word(place)).collect();
                    let is_address = before
                        .iter()
                        .any(|word| matches!(*word, "outside" | "to" | "at" | "anyone" | "addresses" | "except" | "than" | "from" | "people" | "with"))
                        || is_outside && !before.contains(&"domain");
                    let is_work = before.contains(&"in") && !before.contains(&"outside");
                    if is_address && !is_work {
                        addresses.push(format!("@{}", token.text));
                    } else {
                        statement.domains.push(token.text.clone());
                    }
                    used.insert(at);
                }
                _ => {}
            }
        }
        if !addresses.is_empty() {
            statement.recipients = Some(if is_outside { Recipients::Outside(addresses) } else { Recipients::Are(addresses) });
        } else if has(&["outside", "external"])
            && has(&["company", "organisation", "organization", "recipients", "address", "addresses", "domain", "firm"])
            && !has(&["hours"])
        {
            statement.cannot.push("who is outside: name the domain of your addresses, such as example.com".to_owned());
        }
        let (first, last) =
            (self.tokens.get(statement.start).map_or(0, |token| token.start), self.tokens.get(statement.end.saturating_sub(1)).map_or(0, |token| token.end));
        if has(&[
            "mention",
            "mentions",
            "mentioning",
            "contain",
            "contains",
            "containing",
            "word",
            "words",
            "phrase",
            "text",
            "say",
            "says",
            "about",
            "titled",
            "called",
        ]) {
            // A closing quote stands behind the last piece.
            let text = self.text.get(first..).unwrap_or_default();
            for (begin, quoted) in quoted(text) {
                if first + begin < last && quoted.len() <= 100 {
                    statement.texts.push(quoted.to_lowercase());
                    let end = first + begin + quoted.len();
                    used.extend(range.clone().filter(|at| self.tokens.get(*at).is_some_and(|token| token.start >= first + begin && token.end <= end)));
                }
            }
        }
    }
}

/// Texts in double quotes, with where they begin.
fn quoted(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut open: Option<usize> = None;
    for (at, letter) in text.char_indices() {
        if matches!(letter, '"' | '“' | '”' | '„' | '«' | '»') {
            match open.take() {
                None => open = Some(at + letter.len_utf8()),
                Some(start) => found.extend(text.get(start..at).filter(|quoted| !quoted.trim().is_empty()).map(|quoted| (start, quoted))),
            }
        }
    }
    found
}
