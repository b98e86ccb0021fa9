//! Makes text fit for documents. XML knows no control characters, and a PDF viewer shows nothing for them; they become the
//! replacement character, so that something is seen where something was.

use std::borrow::Cow;

/// The text with line breaks of one kind and without control characters.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c == '\r' || is_refused(c)) {
        return Cow::Borrowed(text);
    }
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    Cow::Owned(lines.chars().map(|c| if is_refused(c) { char::REPLACEMENT_CHARACTER } else { c }).collect())
}

/// What XML 1.0 refuses, and the rarely wanted rest of the control characters.
fn is_refused(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t' && c != '\r') || matches!(c, '\u{FFFE}' | '\u{FFFF}')
}
