//! Content that wants to break something.

use proptest::prelude::*;

use crate::documents::*;

/// With the built-in fonts alone.
fn pdf(text: &str) -> Result<Pdf, DocumentError> {
    crate::documents::pdf(text, &[])
}

/// Neither may panic; what they cannot make, they say.
fn both(text: &str) {
    if let Err(error) = word(text) {
        assert!(!matches!(error, DocumentError::Unwritable(_)), "{error}");
    }
    if let Err(error) = pdf(text) {
        assert!(!matches!(error, DocumentError::Unwritable(_)), "{error}");
    }
}

#[test]
fn much_markup_is_text_or_an_error() {
    let mut all = String::new();
    for piece in
        ["*", "**_`", "[", "![](", "> ", "- ", "1. ", "#", "|", "|-", "`", "<b>", "<!--", "&amp;", "\\", "~", "\t", "[a](b)", "*a*", "a\n", "| a |\n|---|\n"]
    {
        both(&piece.repeat(20_000 / piece.len()));
        all.push_str(&piece.repeat(5_000 / piece.len()));
    }
    both(&all);
}

#[test]
fn many_parts_are_an_error() {
    for piece in ["a\n\n", "*a*b", "- a\n"] {
        let text = piece.repeat(PARTS_MAX + 1);
        assert_eq!(word(&text), Err(DocumentError::TooManyParts), "{piece}");
        assert_eq!(pdf(&text), Err(DocumentError::TooManyParts), "{piece}");
    }
    // Rows are filled up to the header's cells, so a short text can be a large table.
    let wide = format!("{}|\n{}|\n{}", "|a".repeat(2_000), "|-".repeat(2_000), "|b|\n".repeat(2_000));
    assert_eq!(word(&wide), Err(DocumentError::TooManyParts));
}

#[test]
fn deep_nesting_is_an_error() {
    for piece in ["> ", "- ", "1. ", "> - "] {
        let text = format!("{}x", piece.repeat(500));
        assert_eq!(word(&text), Err(DocumentError::TooDeep), "{piece}");
        assert_eq!(pdf(&text), Err(DocumentError::TooDeep), "{piece}");
    }
    let text = format!("{}x", "> ".repeat(DEPTH_MAX));
    assert!(word(&text).is_ok() && pdf(&text).is_ok());
    let text = (0..DEPTH_MAX).map(|depth| format!("{}- x\n", "  ".repeat(depth))).collect::<Vec<_>>().concat();
    assert!(word(&text).is_ok() && pdf(&text).is_ok());
}

#[test]
fn strange_characters_do_not_break_anything() {
    both("a\0b\u{1}\u{7f}\u{85}\u{fffe}\u{ffff}\u{feff}");
    // A letter under more marks than its length has room for.
    both(&format!("a{}b", "\u{301}".repeat(3_000)));
    both(&"\u{301}".repeat(5_000));
    both(&"\u{202e}\u{2066}abc".repeat(2_000));
    both(&"👩\u{200d}👩\u{200d}👧".repeat(500));
    both(&"👩\u{200d}".repeat(2_000));
    both(&"\u{e0041}\u{fe0f}".repeat(500));
    both("\u{2028}x\u{2029}y\u{b}z\u{c}");
    both(&"ﷺ".repeat(1_000));
    both(&"الل".repeat(3_000));
    both(&"fi".repeat(10_000));
    both(&"**a**b".repeat(15_000));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn random_text_never_panics(text in "\\PC{0,300}") {
        both(&text);
    }

    #[test]
    fn random_markup_never_panics(pieces in prop::collection::vec(prop_oneof![
        Just("# ".to_owned()), Just("\n".to_owned()), Just("\n\n".to_owned()), Just("- ".to_owned()), Just("  ".to_owned()), Just("1. ".to_owned()),
        Just("|".to_owned()), Just("|---|---|\n".to_owned()), Just("> ".to_owned()), Just("```\n".to_owned()), Just("*".to_owned()), Just("**".to_owned()),
        Just("`".to_owned()), Just("[".to_owned()), Just("](".to_owned()), Just(")".to_owned()), Just("<b>".to_owned()), Just("\u{202e}".to_owned()),
        Just("سلام".to_owned()), Just("e\u{301}".to_owned()), Just("🦀".to_owned()), any::<String>(), "[a-z ]{1,40}",
    ], 0..120)) {
        both(&pieces.concat());
    }

    #[test]
    fn random_rows_never_panic(keys in prop::collection::vec(any::<String>(), 0..6), texts in prop::collection::vec(any::<String>(), 0..40)) {
        let rows: Vec<serde_json::Value> = texts
            .chunks(3)
            .map(|chunk| keys.iter().cloned().zip(chunk.iter().map(|text| serde_json::Value::from(text.as_str()))).collect::<serde_json::Map<_, _>>().into())
            .collect();
        prop_assert!(excel(&rows).is_ok());
    }
}
