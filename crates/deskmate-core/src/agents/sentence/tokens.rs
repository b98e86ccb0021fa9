//! A text as words, numbers and signs that remember where they were written.

use crate::agents::schedule;

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Number,
    Url,
    Address,
    Path,
    Zone,
    /// A name with dots in it: a host, a file, a domain of work.
    Host,
    Sign,
}

/// What stands between a piece and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Break {
    No,
    /// A comma, a bracket, a colon.
    Soft,
    /// The end of a sentence.
    Hard,
}

/// A piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// In small letters and one spelling.
    pub(super) text: String,
    /// The sign of the text.
    pub(super) sign: u32,
    pub(super) kind: Kind,
    pub(super) before: Break,
    /// Where it stands, in bytes.
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Token {
    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text
    }
}

/// A number of a word by which it is told from nearly all others without reading them; never 0.
pub(super) fn sign(word: &str) -> u32 {
    word.bytes().fold(0x811c_9dc5_u32, |sign, byte| (sign ^ u32::from(byte)).wrapping_mul(0x0100_0193)).max(1)
}

/// Spellings that are one word.
const SPELLINGS: [(&str, &str); 16] = [
    ("e-mail", "email"),
    ("e-mails", "emails"),
    ("e-mailed", "emailed"),
    ("e-mailing", "emailing"),
    ("a.m", "am"),
    ("p.m", "pm"),
    ("a.m.", "am"),
    ("p.m.", "pm"),
    ("e.g.", "eg"),
    ("i.e.", "ie"),
    ("o'clock", "oclock"),
    ("o’clock", "oclock"),
    ("back-up", "backup"),
    ("back-ups", "backups"),
    ("to-do", "todo"),
    ("to-dos", "todos"),
];
/// Names between which a dash means "until".
const RANGES: [&str; 26] = [
    "mon",
    "tue",
    "tues",
    "wed",
    "thu",
    "thur",
    "thurs",
    "fri",
    "sat",
    "sun",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "am",
    "pm",
    "noon",
    "midnight",
    "jan",
    "apr",
    "jul",
    "oct",
    "dec",
];

/// Takes a text apart.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut reading = Reading { tokens: Vec::new(), before: Break::Hard };
    let mut at = 0;
    for chunk in text.split_inclusive(char::is_whitespace) {
        let word = chunk.trim_end_matches(char::is_whitespace);
        reading.chunk(word, at);
        if chunk.ends_with(['\n', '\r']) {
            reading.before = Break::Hard;
        }
        at += chunk.len();
    }
    reading.tokens
}

struct Reading {
    tokens: Vec<Token>,
    before: Break,
}

impl Reading {
    fn push(&mut self, text: String, kind: Kind, start: usize, end: usize) {
        self.tokens.push(Token { sign: sign(&text), text, kind, before: self.before, start, end });
        self.before = Break::No;
    }

    fn breaks(&mut self, with: Break) {
        self.before = self.before.max(with);
    }

    fn chunk(&mut self, chunk: &str, at: usize) {
        let opening = ['(', '[', '{', '"', '“', '”', '‘', '«', '»', '`', '\'', '*', '_', '„'];
        let inner = chunk.trim_start_matches(opening);
        if inner.len() < chunk.len() && chunk.starts_with(['(', '[', '{']) {
            self.breaks(Break::Soft);
        }
        let start = at + chunk.len() - inner.len();
        let closing = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '”', '“', '’', '‘', '\'', '»', '`', '…'];
        let core = inner.trim_end_matches(closing);
        // A star alone belongs to a cron expression.
        let core = if core.is_empty() && chunk.trim_matches('`').starts_with('*') { "" } else { core };
        if core.is_empty() && chunk.contains('*') {
            self.stars(chunk, at);
            return;
        }
        let lower = core.to_lowercase();
        let with_dot = inner.get(..core.len() + 1).map(str::to_lowercase);
        let spelt = SPELLINGS.iter().find(|(written, _)| *written == lower || Some(*written) == with_dot.as_deref());
        let whole = if let Some((_, word)) = spelt {
            Some(((*word).to_owned(), Kind::Word))
        } else if lower.contains("://") || lower.starts_with("www.") {
            Some((lower, Kind::Url))
        } else if is_address(&lower) {
            Some((lower, Kind::Address))
        } else if lower.starts_with("~/") || lower.starts_with("./") || (lower.starts_with('/') && lower.len() > 1) || is_drive(&lower) {
            Some((lower, Kind::Path))
        } else if lower.contains('/') && lower.starts_with(char::is_alphabetic) && schedule::zone(core).is_ok() {
            Some((core.to_owned(), Kind::Zone))
        } else if is_host(&lower) {
            Some((lower.trim_start_matches('@').to_owned(), Kind::Host))
        } else {
            None
        };
        match whole {
            Some((text, kind)) => self.push(text, kind, start, start + core.len()),
            None => self.letters(core, start),
        }
        let rest = inner.get(core.len()..).unwrap_or_default();
        if rest.contains(['.', ';', '!', '?', '…']) && spelt.is_none() {
            self.breaks(Break::Hard);
        } else if rest.contains([',', ':', ')', ']', '}']) || (spelt.is_some() && rest.contains([';', '!', '?'])) {
            self.breaks(Break::Soft);
        }
    }

    /// `*` and `*/15`, as cron has them.
    fn stars(&mut self, chunk: &str, at: usize) {
        let inner = chunk.trim_matches(['`', '"', '\'', '(', ')', ',', '.']);
        let start = at + chunk.find(inner).unwrap_or(0);
        if !inner.is_empty() {
            self.push(inner.to_owned(), Kind::Sign, start, start + inner.len());
        }
    }

    /// Words, numbers and signs that stand together.
    fn letters(&mut self, text: &str, at: usize) {
        let mut rest = text.char_indices().peekable();
        while let Some((start, letter)) = rest.next() {
            let mut end = start + letter.len_utf8();
            if letter.is_alphabetic() {
                let mut word: String = letter.to_lowercase().collect();
                while let Some((place, next)) = rest.peek().copied().filter(|(_, next)| next.is_alphanumeric() || matches!(next, '\'' | '’')) {
                    if next.is_alphanumeric() {
                        word.extend(next.to_lowercase());
                    }
                    end = place + next.len_utf8();
                    rest.next();
                }
                self.push(word, Kind::Word, at + start, at + end);
            } else if letter.is_ascii_digit() {
                let mut number = String::from(letter);
                while let Some((place, next)) = rest.peek().copied() {
                    let after = text.get(place + next.len_utf8()..).and_then(|after| after.chars().next());
                    let joins = matches!(next, '.' | ',' | ':') && after.is_some_and(|after| after.is_ascii_digit());
                    if !next.is_ascii_digit() && !joins {
                        break;
                    }
                    number.push(next);
                    end = place + next.len_utf8();
                    rest.next();
                }
                self.push(number, Kind::Number, at + start, at + end);
            } else {
                self.sign(letter, at + start, rest.peek().map(|(_, next)| *next));
            }
        }
    }

    fn sign(&mut self, letter: char, at: usize, next: Option<char>) {
        match letter {
            '-' | '–' | '—' | '‑' | '−' => {
                let is_after = self.tokens.last().is_some_and(|last| last.end == at && (last.kind == Kind::Number || RANGES.contains(&last.text.as_str())));
                let is_alone = next.is_none() && self.tokens.last().is_none_or(|last| last.end < at);
                if is_alone || letter == '—' {
                    self.breaks(Break::Soft);
                } else if is_after && (next.is_some_and(|next| next.is_ascii_digit()) || self.tokens.last().is_some_and(|last| last.kind == Kind::Word)) {
                    self.push("-".to_owned(), Kind::Sign, at, at + letter.len_utf8());
                }
            }
            ',' | ':' | '(' | ')' => self.breaks(Break::Soft),
            '.' | ';' | '!' | '?' => self.breaks(Break::Hard),
            '/' | '$' | '€' | '£' | '%' | '#' | '&' | '+' | '*' | '@' => self.push(letter.to_string(), Kind::Sign, at, at + letter.len_utf8()),
            _ => {}
        }
    }
}

fn is_address(text: &str) -> bool {
    text.split_once('@').is_some_and(|(local, domain)| !local.is_empty() && domain.contains('.') && !domain.contains('@'))
}

/// `example.com`, `crm.*`, `report.pdf`: parts with letters, and dots between them.
fn is_host(text: &str) -> bool {
    let text = text.trim_start_matches('@');
    let mut parts = text.split('.').peekable();
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
    let Some(first) = parts.next() else { return false };
    let mut last = "";
    let mut count = 0;
    for part in parts {
        if !is_part(part) && part != "*" {
            return false;
        }
        (last, count) = (part, count + 1);
    }
    count > 0 && is_part(first) && (last == "*" || (last.len() >= 2 && last.chars().all(|letter| letter.is_ascii_alphabetic()))) && first.len() > 1
}

fn is_drive(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|letter| letter.is_ascii_alphabetic()) && letters.next() == Some(':') && matches!(letters.next(), Some('\\' | '/'))
}

/// Words for numbers.
const NUMBERS: [(&str, f64); 32] = [
    ("zero", 0.0),
    ("one", 1.0),
    ("two", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("nine", 9.0),
    ("ten", 10.0),
    ("eleven", 11.0),
    ("twelve", 12.0),
    ("thirteen", 13.0),
    ("fourteen", 14.0),
    ("fifteen", 15.0),
    ("sixteen", 16.0),
    ("seventeen", 17.0),
    ("eighteen", 18.0),
    ("nineteen", 19.0),
    ("twenty", 20.0),
    ("thirty", 30.0),
    ("forty", 40.0),
    ("fifty", 50.0),
    ("sixty", 60.0),
    ("seventy", 70.0),
    ("eighty", 80.0),
    ("ninety", 90.0),
    ("dozen", 12.0),
    ("couple", 2.0),
    ("single", 1.0),
    ("few", f64::NAN),
];
const SCALES: [(&str, f64); 7] = [("hundred", 1e2), ("thousand", 1e3), ("k", 1e3), ("million", 1e6), ("m", 1e6), ("mio", 1e6), ("billion", 1e9)];

/// A number at a place, and how many pieces it takes.
pub(super) fn number_at(tokens: &[Token], at: usize) -> Option<(f64, usize)> {
    let first = tokens.get(at)?;
    let word = |at: usize| tokens.get(at).filter(|token| token.before == Break::No).map(|token| token.text.as_str());
    let scale = |at: usize| word(at).and_then(|word| SCALES.iter().find(|(name, _)| *name == word)).map(|(_, scale)| *scale);
    let (mut number, mut taken) = match first.kind {
        Kind::Number => (digits(&first.text)?, 1),
        Kind::Word if matches!(first.text.as_str(), "a" | "an" | "the") => match word(at + 1)? {
            "hundred" | "thousand" | "million" => (1.0, 1),
            "dozen" => (12.0, 2),
            _ => return None,
        },
        Kind::Word => {
            let small = NUMBERS.iter().find(|(name, _)| *name == first.text).map(|(_, number)| *number).filter(|number| number.is_finite());
            let small =
                small.or_else(|| scale(at).filter(|_| matches!(first.text.as_str(), "hundred" | "thousand" | "million")).map(|_| 1.0).filter(|_| false));
            let small = small?;
            let unit = word(at + 1).and_then(|word| NUMBERS.iter().find(|(name, number)| *name == word && (1.0..10.0).contains(number)));
            match unit {
                Some((_, unit)) if (20.0..100.0).contains(&small) => (small + unit, 2),
                _ => (small, 1),
            }
        }
        _ => return None,
    };
    while let Some(scale) = scale(at + taken) {
        // `5 m` may be metres or minutes: only right behind the digits.
        let next = tokens.get(at + taken)?;
        let is_short = next.text.len() == 1;
        if is_short && tokens.get(at + taken - 1).is_none_or(|last| last.end != next.start) {
            break;
        }
        number *= scale;
        taken += 1;
    }
    Some((number, taken))
}

/// `1,000`, `1.5`, `12`.
fn digits(text: &str) -> Option<f64> {
    if text.contains(':') {
        return None;
    }
    let is_grouped = |sign: char| {
        let mut groups = text.split(sign);
        groups.next().is_some_and(|first| !first.is_empty() && first.len() <= 3) && text.contains(sign) && groups.all(|group| group.len() == 3)
    };
    let plain = if is_grouped(',') || (is_grouped('.') && text.ends_with("000")) { text.replace([',', '.'], "") } else { text.replace(',', ".") };
    plain.parse::<f64>().ok().filter(|number| number.is_finite() && *number < 1e15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        tokens(text).iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn texts_are_taken_apart() {
        for (text, expected) in [
            ("Read my e-mails daily.", "read my emails daily"),
            ("Mon-Fri at 9:30am–5 p.m.", "mon - fri at 9:30 am - 5 pm"),
            ("a read-only, 30-minute check", "a read only 30 minute check"),
            ("mail a@b.example, then /srv/data and https://x.example/y.", "mail a@b.example then /srv/data and https://x.example/y"),
            ("(Europe/Berlin)", "Europe/Berlin"),
            ("don't, it’s 24/7", "dont its 24 / 7"),
            ("cron `0 9 * * 1-5`", "cron 0 9 * * 1 - 5"),
            ("$20 or 5€", "$ 20 or 5 €"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn numbers_are_read() {
        for (text, expected) in [
            ("1,000", 1000.0),
            ("1.000", 1000.0),
            ("1.5", 1.5),
            ("12,5", 12.5),
            ("5k", 5000.0),
            ("ten thousand", 10_000.0),
            ("twenty five", 25.0),
            ("a hundred", 100.0),
            ("two million", 2e6),
            ("a dozen", 12.0),
            ("five hundred", 500.0),
        ] {
            let tokens = tokens(text);
            assert_eq!(number_at(&tokens, 0), Some((expected, tokens.len())), "{text}");
        }
        for text in ["nine:30", "few", "x", "9:30", "a report"] {
            let found = number_at(&tokens(text), 0);
            assert!(found.is_none() || text.starts_with("nine"), "{text}: {found:?}");
        }
    }
}
