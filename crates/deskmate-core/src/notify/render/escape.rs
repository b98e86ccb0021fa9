//! What others wrote, made harmless for each kind of markup, and cut so that it shows.

/// Cannot be seen, and keeps what stands on both its sides from being read as one.
const APART: char = '\u{200b}';
/// What says that something was cut.
const CUT: &str = " … (cut)";

/// A text of at most so many characters; what was cut says so.
pub(super) fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars_max.saturating_sub(CUT.chars().count())).collect();
    format!("{kept}{CUT}")
}

/// A text of at most so many bytes.
pub(super) fn cut_bytes(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max.saturating_sub(CUT.len()));
    format!("{}{CUT}", text.get(..end).unwrap_or_default())
}

/// Calls nobody by name (`@everyone`, `<!channel>`), is no command, and leads nowhere by itself: a link in a message of the desk
/// is the desk's own.
pub(super) fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        safe.push(c);
        let next = rest.peek().copied().unwrap_or(' ');
        let begins_link = c == ':' && next == '/';
        let begins_name = matches!(c, '@' | '<');
        let begins_command = c == '/' && before.is_whitespace();
        let is_web = matches!(c, 'w' | 'W') && next == '.' && safe.chars().rev().take(3).filter(|c| matches!(c, 'w' | 'W')).count() == 3;
        if begins_link || begins_name || begins_command || is_web {
            safe.push(APART);
        }
        before = c;
    }
    safe
}

/// Text in HTML.
pub(super) fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Text in the markup of Slack, where `<…>` is a name or a link.
pub(super) fn slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text in Markdown: each character that could be markup stands for itself.
pub(super) fn markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\`*_{}[]()#+-.!>~|".contains(c) {
            safe.push('\\');
        }
        safe.push(c);
    }
    safe
}
