//! A text under the eyes of the redactor, and what was found where.

use super::kind::Kind;

/// Something that is to be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

/// A text, byte by byte. Everything that is looked for begins and ends at ASCII, so a position is always between characters.
pub(super) struct Scan<'t> {
    pub(super) text: &'t str,
    bytes: &'t [u8],
}

impl<'t> Scan<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, bytes: text.as_bytes() }
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    pub(super) fn before(&self, at: usize) -> Option<u8> {
        at.checked_sub(1).and_then(|before| self.byte(before))
    }

    pub(super) fn part(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or_default()
    }

    pub(super) fn is_at(&self, at: usize, text: &str) -> bool {
        self.bytes.get(at..).is_some_and(|rest| rest.starts_with(text.as_bytes()))
    }

    /// The end of what fits from a place on, at most so many bytes.
    pub(super) fn run(&self, from: usize, most: usize, fits: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        from + rest.iter().take(most).take_while(|byte| fits(**byte)).count()
    }

    /// The beginning of what fits up to a place, at most so many bytes.
    pub(super) fn run_back(&self, to: usize, most: usize, fits: impl Fn(u8) -> bool) -> usize {
        let head = self.bytes.get(..to).unwrap_or_default();
        to - head.iter().rev().take(most).take_while(|byte| fits(**byte)).count()
    }

    /// A span that covers whole characters.
    pub(super) fn span(&self, start: usize, end: usize, kind: Kind) -> Span {
        Span { start: self.text.floor_char_boundary(start), end: self.text.ceil_char_boundary(end), kind }
    }

    /// Whether a word begins here: nothing that belongs to it stands before.
    pub(super) fn begins(&self, at: usize) -> bool {
        !self.before(at).is_some_and(|byte| byte.is_ascii_alphanumeric())
    }
}

/// Puts findings in order, and makes one of those that touch: nothing of either is left.
pub(super) fn merge(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|span| span.start < span.end);
    spans.sort_by_key(|span| (span.start, span.end));
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start < last.end => {
                last.end = last.end.max(span.end);
                last.kind = last.kind.min(span.kind);
            }
            _ => merged.push(span),
        }
    }
    merged
}
