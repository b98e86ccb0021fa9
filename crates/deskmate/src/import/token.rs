//! Which tokens are secrets, and which only stand where a secret should be.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// The hash under which a token is known.
pub(super) fn hash(token: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(token.as_bytes()))
}

/// Parts of texts that people write into examples.
const PLACEHOLDERS: [&str; 14] =
    ["replace", "placeholder", "your", "changeme", "change-me", "change_me", "example", "generated", "insert", "xxxx", "dummy", "sample", "todo", "..."];

/// The shortest secret of a token, and how many different characters it must have.
const SECRET_CHARS_MIN: usize = 20;
const DIFFERENT_MIN: usize = 8;

/// Why a token is not a secret, if it is not.
pub(super) fn weakness(agent: &str, token: &str) -> Option<String> {
    let lower = token.to_lowercase();
    let secret = lower.strip_prefix("sk-cowork-").unwrap_or(&lower);
    let different: std::collections::BTreeSet<char> = secret.chars().collect();
    if token.chars().any(|c| !c.is_ascii_graphic()) {
        Some("it holds spaces or characters that no header carries".to_owned())
    } else if PLACEHOLDERS.iter().any(|word| lower.contains(word)) {
        Some("it is a placeholder".to_owned())
    } else if secret.contains(&agent.to_lowercase()) {
        Some("it holds the agent's name, so it can be guessed".to_owned())
    } else if secret.chars().count() < SECRET_CHARS_MIN || different.len() < DIFFERENT_MIN {
        Some("it is too short or too plain, so it can be guessed".to_owned())
    } else if token.len() > 512 {
        Some("it is longer than 512 characters".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w7_placeholders_and_guessable_tokens_are_no_credentials() {
        for token in [
            "sk-cowork-REPLACE_WITH_GENERATED_TOKEN",
            "sk-cowork-your-token-here-0123456789",
            "changeme",
            "",
            "sk-cowork-",
            "sk-cowork-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "sk-cowork-1234567890123",
            "sales-agent-token-0123456789abcdef",
            "a token with spaces 0123456789 abcdef",
        ] {
            assert!(weakness("sales-agent", token).is_some(), "{token}");
        }
        assert_eq!(weakness("sales-agent", "sk-cowork-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c"), None);
    }
}
