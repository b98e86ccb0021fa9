//! Whether a text is what was left of another.

use crate::redact::{is_left_of, text};

#[test]
fn what_is_left_of_a_text_is_known_again() {
    for whole in
        ["", "plain words", "call jane@example.org", "jane@example.org and bob@example.org", "a jane@example.org b bob@example.org c", "jane@example.org"]
    {
        assert!(is_left_of(&text(whole).text, whole) && is_left_of(whole, whole), "{whole}");
    }
    let left = "call [redacted:email] or [redacted:phone] today";
    for other in ["call x or y today", "call  or  today", "call a or b or c today today"] {
        assert!(is_left_of(left, other), "{other}");
    }
    for other in ["", "call", "call x today", "call x or y tomorrow", "now call x or y today", "call x or y today!"] {
        assert!(!is_left_of(left, other), "{other}");
    }
    for (left, other) in [
        ("plain", "plain words"),
        ("", "x"),
        ("x", ""),
        ("[redacted:nothing]", "x"),
        ("[redacted:email]x", "x!"),
        ("ab[redacted:email]ba", "aba"),
        ("[redacted:email]", "Quarterly report"),
        ("[redacted:email]", ""),
    ] {
        assert!(!is_left_of(left, other), "{left} {other}");
    }
}
