//! Taking secrets and personal data out of what others wrote, before it is kept, shown or passed on: one module for the whole
//! desk.
//!
//! What is found is replaced by `[redacted:KIND]`: no digest, because a short secret can be guessed from one. Every step is
//! linear in the text. What cannot be looked into (too deep, or made so that taking one thing out brings up the next, again
//! and again) is taken out whole: the redactor fails closed. It reads nothing from outside and keeps nothing.

mod context;
mod ids;
mod keys;
mod kind;
mod known;
mod line;
mod names;
mod personal;
mod scan;
mod tokens;
mod value;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use scan::{Scan, Span};

pub use context::{ends_key, is_of_key, opens_key};
pub use kind::{Found, Kind};
pub use known::Known;
pub use line::{line, names_a_secret};

/// How often what is left between two findings is looked at again.
const ROUNDS_MAX: usize = 8;
/// So long is a word that needs no look. No form of a token is as short.
const WORD_BYTES_MAX: usize = 16;
/// How every replacement begins.
const MARK: &str = "[redacted:";

/// A text without what was found in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted {
    /// The text.
    pub text: String,
    /// What was found, how often.
    pub found: Found,
}

/// JSON without what was found in it.
#[derive(Clone, Debug, PartialEq)]
pub struct RedactedValue {
    /// The value.
    pub value: Value,
    /// What was found, how often.
    pub found: Found,
}

/// Takes secrets and every kind of personal data out of a text.
pub fn text(text: &str) -> Redacted {
    Redactor::all().text(text)
}

/// Takes secrets and every kind of personal data out of JSON: strings, keys and numbers.
pub fn value(value: &Value) -> RedactedValue {
    Redactor::all().value(value)
}

/// The kinds that JSON holds: those that are in it, and those that were taken out before.
pub fn kinds_in(json: &Value) -> BTreeSet<Kind> {
    fn walk(value: &Value, kinds: &mut BTreeSet<Kind>) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => marks(text, kinds),
            Value::Array(list) => list.iter().for_each(|entry| walk(entry, kinds)),
            Value::Object(table) => table.iter().for_each(|(key, entry)| {
                marks(key, kinds);
                walk(entry, kinds);
            }),
        }
    }
    fn marks(text: &str, kinds: &mut BTreeSet<Kind>) {
        for (at, _) in text.match_indices(MARK) {
            let rest = text.get(at + MARK.len()..).unwrap_or_default();
            kinds.extend(Kind::ALL.into_iter().find(|kind| rest.strip_prefix(kind.name()).is_some_and(|rest| rest.starts_with(']'))));
        }
    }
    let mut kinds = BTreeSet::new();
    // What is found is replaced by a mark, beside the marks that are there already.
    walk(&value(json).value, &mut kinds);
    kinds
}

/// Whether one text is what was left of another: the same but for what was taken out, whatever the settings were then.
pub fn is_left_of(left: &str, whole: &str) -> bool {
    let pieces = split_at_marks(left);
    // Where nothing is left any text could be the whole, so only one counts of which nothing would be left today.
    if !pieces.is_empty() && has_nothing_open(&pieces) {
        return left == whole || has_nothing_open(&split_at_marks(&text(whole).text)) && !whole.is_empty();
    }
    let (mut rest, mut may_skip) = (whole, false);
    for (number, piece) in pieces.iter().enumerate() {
        let Piece::Open(range) = piece else {
            may_skip = true;
            continue;
        };
        let same = left.get(range.clone()).unwrap_or_default();
        let found = match (may_skip, number + 1 == pieces.len()) {
            // The end of both; what was taken out before it may hold the same words.
            (true, true) => rest.ends_with(same).then(|| rest.len() - same.len()),
            (true, false) => rest.find(same),
            (false, _) => rest.starts_with(same).then_some(0),
        };
        let Some(at) = found else { return false };
        rest = rest.get(at + same.len()..).unwrap_or_default();
        may_skip = false;
    }
    may_skip || rest.is_empty()
}

/// Which kinds are taken out. Secrets always are.
#[derive(Clone, Default)]
pub struct Redactor {
    personal: Vec<Kind>,
    known: Option<Arc<Known>>,
}

impl Redactor {
    /// Secrets only.
    pub fn secrets() -> Self {
        Self::default()
    }

    /// Secrets and every kind of personal data.
    pub fn all() -> Self {
        Self { personal: Kind::PERSONAL.to_vec(), known: None }
    }

    /// Secrets, and the kinds of personal data with these names.
    pub fn named<'n>(names: impl IntoIterator<Item = &'n str>) -> crate::Result<Self> {
        let personal = names.into_iter().map(Kind::personal).collect::<crate::Result<_>>()?;
        Ok(Self { personal, known: None })
    }

    /// Also takes these very values out, however they are encoded.
    #[must_use]
    pub fn knowing(mut self, known: Arc<Known>) -> Self {
        self.known = Some(known);
        self
    }

    /// Takes out of a text what this redactor is for.
    pub fn text(&self, text: &str) -> Redacted {
        let mut found = Found::default();
        let text = self.clean(text, &mut found).into_owned();
        Redacted { text, found }
    }

    /// Takes out of JSON what this redactor is for.
    pub fn value(&self, value: &Value) -> RedactedValue {
        let mut found = Found::default();
        let value = value::clean(self, value, &mut found).unwrap_or_else(|| value.clone());
        RedactedValue { value, found }
    }

    /// Whether JSON has nothing in it that this redactor is for.
    pub fn leaves(&self, value: &Value) -> bool {
        value::clean(self, value, &mut Found::default()).is_none()
    }

    /// The same of JSON that nobody else needs: hardly any has something in it, and then it is not copied.
    pub fn own_value(&self, value: Value) -> RedactedValue {
        let mut found = Found::default();
        let value = value::clean(self, &value, &mut found).unwrap_or(value);
        RedactedValue { value, found }
    }

    fn clean<'t>(&self, text: &'t str, found: &mut Found) -> Cow<'t, str> {
        // Hardly any text has something in it.
        if (self.known.is_none() && is_plain_word(text)) || (!text.contains(MARK) && self.scan(text).is_empty()) {
            return Cow::Borrowed(text);
        }
        let mut pieces = split_at_marks(text);
        for round in 0..=ROUNDS_MAX {
            let mut next = Vec::with_capacity(pieces.len());
            let mut is_changed = false;
            for piece in pieces {
                let Piece::Open(range) = piece else {
                    next.push(piece);
                    continue;
                };
                let spans = self.scan(text.get(range.clone()).unwrap_or_default());
                if spans.is_empty() {
                    next.push(Piece::Clean(range));
                    continue;
                }
                is_changed = true;
                if round == ROUNDS_MAX {
                    next.push(Piece::Gone(Kind::Unclear));
                    continue;
                }
                let mut from = range.start;
                for span in spans {
                    let (start, end) = (range.start + span.start, range.start + span.end);
                    // What stands between two findings is looked at again: it may read differently without them.
                    next.extend((from < start).then_some(Piece::Open(from..start)));
                    next.push(Piece::Gone(span.kind));
                    from = end;
                }
                next.extend((from < range.end).then_some(Piece::Open(from..range.end)));
            }
            pieces = next;
            if !is_changed {
                break;
            }
        }
        Cow::Owned(put_together(text, &pieces, found))
    }

    /// What is found in a piece of text that has no replacement in it: in order, and apart from each other.
    fn scan(&self, text: &str) -> Vec<Span> {
        let scan = Scan::new(text);
        let mut spans = Vec::new();
        if let Some(known) = &self.known {
            known.find(&scan, &mut spans);
        }
        tokens::find(&scan, &mut spans);
        personal::find(&scan, &self.personal, &mut spans);
        scan::merge(spans)
    }

    fn has(&self, kind: Kind) -> bool {
        self.personal.contains(&kind)
    }
}

/// Whether a text is one short word in small letters, as nearly all keys are: everything that is looked for is longer, or has
/// a digit or a sign in it.
fn is_plain_word(text: &str) -> bool {
    text.len() <= WORD_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// A part of a text on its way.
enum Piece {
    /// Not looked at yet.
    Open(Range<usize>),
    /// Looked at, and nothing is in it; or a replacement that was there before.
    Clean(Range<usize>),
    /// Taken out.
    Gone(Kind),
}

/// Replacements that are in a text already stay as they are, so that redacting twice is the same as once. Only our own kinds
/// count: other words in such brackets could be somebody's secret.
fn split_at_marks(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices(MARK) {
        let rest = text.get(at + MARK.len()..).unwrap_or_default();
        let kind = Kind::ALL.into_iter().find(|kind| rest.strip_prefix(kind.name()).is_some_and(|rest| rest.starts_with(']')));
        let Some(kind) = kind else { continue };
        let end = at + MARK.len() + kind.name().len() + 1;
        pieces.extend((from < at).then_some(Piece::Open(from..at)));
        pieces.push(Piece::Clean(at..end));
        from = end;
    }
    pieces.extend((from < text.len()).then_some(Piece::Open(from..text.len())));
    pieces
}

fn has_nothing_open(pieces: &[Piece]) -> bool {
    !pieces.iter().any(|piece| matches!(piece, Piece::Open(_)))
}

fn put_together(text: &str, pieces: &[Piece], found: &mut Found) -> String {
    let mut clean = String::with_capacity(text.len());
    for piece in pieces {
        match piece {
            Piece::Open(range) | Piece::Clean(range) => clean.push_str(text.get(range.clone()).unwrap_or_default()),
            Piece::Gone(kind) => {
                found.add(*kind);
                clean.push_str(&kind.mark());
            }
        }
    }
    clean
}
