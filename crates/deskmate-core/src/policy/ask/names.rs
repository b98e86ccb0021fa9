//! Names in one spelling, so that `cardNumber`, `Card-Number` and `card_number` are one.

/// How long a name may be in that spelling; the rest of a longer one says nothing.
const NAME_CHARS_MAX: usize = 200;

/// The words of a name or of a few words: small letters, apart where the writing changes.
pub(in crate::policy) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    let letters: Vec<char> = name.chars().take(NAME_CHARS_MAX).collect();
    for (at, letter) in letters.iter().copied().enumerate() {
        let next_is_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        // `cardNumber` has two words, and so has `HTTPServer`.
        let begins = letter.is_uppercase() && (before.is_lowercase() || before.is_numeric() || (before.is_uppercase() && next_is_small));
        if (begins || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// A name with `_` between its words.
pub(in crate::policy) fn snake(name: &str) -> String {
    words(name).join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_spelling() {
        for name in ["card_number", "cardNumber", "CardNumber", "card-number", "Card Number", "CARD_NUMBER", "card..number"] {
            assert_eq!(snake(name), "card_number", "{name}");
        }
        assert_eq!(snake("HTTPServer2Go"), "http_server2_go");
        assert_eq!(snake("Straße"), "straße");
        assert_eq!(snake("…"), "");
    }
}
