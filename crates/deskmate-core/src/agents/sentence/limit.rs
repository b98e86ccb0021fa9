//! Limits that a sentence says: "at most 1,000 e-mails per run", "never spend more than 20 euros a day".

use std::collections::BTreeSet;

use super::Limit;
use super::lexicon::Lexicon;
use super::tokens::{Break, Kind, Token, number_at};

/// Words that make a number a limit, before it.
const BEFORE: [&[&str]; 31] = [
    &["at", "most"],
    &["up", "to"],
    &["no", "more", "than"],
    &["not", "more", "than"],
    &["never", "more", "than"],
    &["more", "than"],
    &["maximum", "of"],
    &["max", "of"],
    &["maximum"],
    &["max"],
    &["limit", "of"],
    &["limited", "to"],
    &["limit", "it", "to"],
    &["limit", "to"],
    &["limit", "yourself", "to"],
    &["capped", "at"],
    &["cap", "at"],
    &["cap", "of"],
    &["not", "exceed"],
    &["never", "exceed"],
    &["without", "exceeding"],
    &["not", "exceeding"],
    &["budget", "of"],
    &["budget", "is"],
    &["budget"],
    &["stop", "after"],
    &["stops", "after"],
    &["timeout", "of"],
    &["timeout"],
    &["only", "the", "first"],
    &["only", "the", "latest"],
];
/// Words that can stand between the number and what it counts.
const BETWEEN: [&str; 24] = [
    "api",
    "new",
    "outgoing",
    "incoming",
    "support",
    "customer",
    "different",
    "of",
    "the",
    "sql",
    "web",
    "http",
    "tool",
    "single",
    "more",
    "small",
    "slack",
    "chat",
    "unread",
    "database",
    "model",
    "log",
    "bulk",
    "paid",
];
/// After what time a limit begins anew.
const PERIODS: [(&str, &str); 18] = [
    ("run", "run"),
    ("execution", "run"),
    ("time", "run"),
    ("batch", "run"),
    ("go", "run"),
    ("call", "run"),
    ("second", "second"),
    ("minute", "minute"),
    ("min", "minute"),
    ("hour", "hour"),
    ("day", "day"),
    ("night", "day"),
    ("week", "week"),
    ("month", "month"),
    ("customer", "customer"),
    ("person", "person"),
    ("user", "person"),
    ("recipient", "person"),
];

/// Finds limits, and the pieces that they came from.
pub(super) fn find(lexicon: &Lexicon, tokens: &[Token], taken: &BTreeSet<usize>, text: &str) -> (Vec<Limit>, BTreeSet<usize>) {
    let reading = Reading { lexicon, tokens };
    let mut limits: Vec<Limit> = Vec::new();
    let mut used = BTreeSet::new();
    let mut at = 0;
    while at < tokens.len() {
        match reading.limit_at(at, taken) {
            Some((mut limit, end)) => {
                let (start, stop) = (tokens.get(at).map_or(0, |token| token.start), tokens.get(end - 1).map_or(0, |token| token.end));
                text.get(start..stop).unwrap_or_default().clone_into(&mut limit.words);
                if !limits.iter().any(|known| known.what == limit.what && known.per == limit.per) {
                    limits.push(limit);
                }
                used.extend(at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    (limits, used)
}

struct Reading<'t> {
    lexicon: &'t Lexicon,
    tokens: &'t [Token],
}

impl Reading<'_> {
    fn next(&self, at: usize) -> &str {
        self.tokens.get(at).filter(|token| token.before == Break::No).map_or("", |token| token.text.as_str())
    }

    fn limit_at(&self, at: usize, taken: &BTreeSet<usize>) -> Option<(Limit, usize)> {
        let words = BEFORE.iter().find(|words| {
            words
                .iter()
                .enumerate()
                .all(|(offset, word)| if offset == 0 { self.tokens.get(at).is_some_and(|token| token.is(word)) } else { self.next(at + offset) == *word })
        });
        if let Some(words) = words {
            // "more than" alone is a condition, and no limit, unless something is not to be exceeded.
            if words.first() == Some(&"more") && !self.is_forbidden(at) {
                return None;
            }
            return self.counted(at + words.len(), false);
        }
        // "1,000 e-mails per run", "100 calls per minute at most"
        if number_at(self.tokens, at).is_some() && !taken.contains(&at) {
            let (limit, end) = self.counted(at, true)?;
            let most = self.next(end) == "at" && matches!(self.next(end + 1), "most" | "maximum");
            let most = most || matches!(self.next(end), "max" | "maximum" | "tops");
            let end = if most { end + if self.next(end) == "at" { 2 } else { 1 } } else { end };
            return (limit.per.is_some() || most).then_some((limit, end));
        }
        None
    }

    fn is_forbidden(&self, at: usize) -> bool {
        let mut back = at;
        for _ in 0..5 {
            if back == 0 || self.tokens.get(back).is_none_or(|token| token.before == Break::Hard) {
                return false;
            }
            back -= 1;
            if self
                .tokens
                .get(back)
                .is_some_and(|token| matches!(token.text.as_str(), "never" | "not" | "dont" | "no" | "without" | "cannot" | "mustnt" | "shouldnt"))
            {
                return true;
            }
        }
        false
    }

    /// A number, what it counts, and per what.
    fn counted(&self, at: usize, must_count: bool) -> Option<(Limit, usize)> {
        let is_money = |token: &Token| token.kind == Kind::Sign && matches!(token.text.as_str(), "$" | "€" | "£");
        let before = self.tokens.get(at).is_some_and(is_money);
        let at = at + usize::from(before);
        let (most, taken) = number_at(self.tokens, at)?;
        let mut end = at + taken;
        let after = self.tokens.get(end).is_some_and(|token| is_money(token) || matches!(token.text.as_str(), "%"));
        let mut what = if before || self.tokens.get(end).is_some_and(is_money) { Some("cost".to_owned()) } else { None };
        end += usize::from(after);
        let mut place = end;
        for _ in 0..4 {
            if what.is_some() {
                break;
            }
            match self.next(place) {
                word if self.lexicon.units.contains_key(word) => {
                    what = self.lexicon.units.get(word).cloned();
                    end = place + 1;
                }
                word if BETWEEN.contains(&word) => place += 1,
                _ => break,
            }
        }
        if what.as_deref() == Some("cost") && self.lexicon.units.get(self.next(end)).is_some_and(|unit| unit == "cost") {
            end += 1;
        }
        // What is not known as a unit is named by its word.
        let what = match what {
            Some(what) => what,
            None if must_count => return None,
            None => {
                let word = self.next(end);
                let is_noun = word.len() > 2 && !self.lexicon.stops.iter().any(|stop| stop == word);
                if !is_noun {
                    return None;
                }
                end += 1;
                word.to_owned()
            }
        };
        let mut per = None;
        let mut ahead = end;
        // "e-mails sent per day": one word may stand between.
        if !matches!(self.next(ahead), "per" | "a" | "an" | "each" | "every" | "in" | "/" | "within")
            && matches!(self.next(ahead + 1), "per" | "each" | "every")
        {
            ahead += 1;
        }
        if matches!(self.next(ahead), "per" | "a" | "an" | "each" | "every" | "in" | "/" | "within" | "for") {
            let skip = 1 + usize::from(matches!(self.next(ahead + 1), "a" | "an" | "one" | "each" | "every" | "single"));
            let period = PERIODS.iter().find(|(word, _)| *word == self.next(ahead + skip)).map(|(_, period)| *period);
            if let Some(period) = period {
                per = Some(period.to_owned());
                end = ahead + skip + 1;
            }
        }
        let per = per.or_else(|| match self.next(end) {
            "daily" => Some("day".to_owned()),
            "hourly" => Some("hour".to_owned()),
            "weekly" => Some("week".to_owned()),
            "monthly" => Some("month".to_owned()),
            _ => None,
        });
        end += usize::from(matches!(self.next(end), "daily" | "hourly" | "weekly" | "monthly"));
        end += if self.next(end) == "at" && self.next(end + 1) == "once" { 2 } else { 0 };
        Some((Limit { what, most, per, words: String::new() }, end))
    }
}
