//! Text of others is shown as text.

/// Makes visible what could move the cursor of a terminal, or make a text look like something else: control characters,
/// and marks of direction or of no width.
pub(crate) fn visible(text: &str) -> String {
    let hides = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    text.chars().flat_map(|c| if hides(c) { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}
