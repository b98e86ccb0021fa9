//! What a name says about its value, and whether a value looks as if it had been drawn by chance.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// What something is called that holds a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A password: anything can be one.
    Password,
    /// A token or a key: those are drawn by chance, and look so.
    Token,
    /// A header with cookies.
    Cookie,
}

/// Words that make a name one of a password, alone or at the end of a compound.
const PASSWORDS: &[&str] = &["password", "passwd", "passphrase", "passcode", "pwd"];
/// What may follow such a word in a name that is still one of a password.
const AFTER_PASSWORD: &[&str] = &[
    "hash",
    "value",
    "old",
    "new",
    "confirm",
    "confirmation",
    "confirmed",
    "prod",
    "production",
    "dev",
    "test",
    "staging",
    "plain",
    "text",
    "plaintext",
    "current",
    "encrypted",
    "again",
    "repeat",
    "default",
    "admin",
    "root",
    "user",
    "db",
    "env",
    "secret",
];
/// Whose `pass` is a password; other passes are counted or walked.
const BEFORE_PASS: &[&str] = &["db", "database", "user", "smtp", "mysql", "pg", "postgres", "root", "admin", "mail", "ftp", "ssh", "redis", "imap", "login"];
/// Whose `pin` is a password; other pins are of a chip.
const BEFORE_PIN: &[&str] = &["user", "card", "security", "access", "login", "sim"];
/// Words that make a name one of a token, alone or at the end of a compound.
const TOKENS: &[&str] = &["token", "secret", "apikey", "secretkey", "accesskey", "privatekey", "accountkey", "credential", "credentials", "secrets"];
/// What stands before `tokens`, or else they are counted.
const BEFORE_TOKENS: &[&str] = &["access", "refresh", "auth", "api", "secret", "bearer", "session"];
/// Whose `token` is none that opens anything: places in lists, and parts of what models read.
const NOT_BEFORE_TOKEN: &[&str] = &[
    "page",
    "next",
    "continuation",
    "sync",
    "cursor",
    "pagination",
    "start",
    "end",
    "eos",
    "bos",
    "pad",
    "unk",
    "special",
    "stop",
    "mask",
    "sep",
    "cls",
    "prompt",
    "completion",
    "input",
    "output",
    "total",
    "max",
    "min",
    "cached",
    "reasoning",
    "remaining",
    "num",
    "first",
    "last",
    "previous",
    "prev",
    "resume",
    "progress",
];
/// Whose `key` is a secret; keys of tables, maps and keyboards are not.
const BEFORE_KEY: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "signing",
    "encryption",
    "encrypt",
    "decryption",
    "master",
    "account",
    "shared",
    "auth",
    "client",
    "service",
    "storage",
    "subscription",
    "admin",
    "root",
    "app",
    "deploy",
    "webhook",
    "hmac",
    "aes",
    "rsa",
    "ssh",
    "gpg",
    "pgp",
    "jwt",
    "symmetric",
    "consumer",
    "openai",
    "anthropic",
    "stripe",
    "aws",
    "azure",
    "google",
    "github",
    "gitlab",
    "slack",
    "sendgrid",
    "twilio",
    "license",
    "session",
];
/// Other whole names.
const WHOLE: &[&str] = &["authorization", "auth", "x auth", "jwt", "bearer", "otp", "session id", "sessionid", "sid", "jsessionid", "phpsessid", "connect sid"];
/// What a name ends with that speaks about a secret and holds none.
const NOT_LAST: &[&str] = &[
    "count",
    "counts",
    "type",
    "types",
    "limit",
    "limits",
    "length",
    "len",
    "size",
    "sizes",
    "name",
    "names",
    "id",
    "ids",
    "ttl",
    "expiry",
    "expires",
    "expiration",
    "at",
    "in",
    "age",
    "policy",
    "policies",
    "rule",
    "rules",
    "required",
    "enabled",
    "disabled",
    "strength",
    "field",
    "fields",
    "label",
    "hint",
    "format",
    "prefix",
    "suffix",
    "usage",
    "used",
    "budget",
    "index",
    "url",
    "uri",
    "endpoint",
    "path",
    "file",
    "files",
    "dir",
    "version",
    "status",
    "state",
    "error",
    "errors",
    "message",
    "minutes",
    "seconds",
    "days",
    "description",
    "title",
    "parameter",
    "params",
    "manager",
    "provider",
    "store",
    "arn",
    "kind",
    "scope",
    "scopes",
    "column",
    "position",
    "algorithm",
    "method",
    "class",
    "changed",
    "reset",
    "ref",
    "template",
    "placeholder",
    "set",
    "is",
    "valid",
    "present",
    "configured",
    "rotation",
    "rate",
];

/// The words of a name: `X-Api-Key`, `apiKey` and `API_KEY` have the same.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let characters: Vec<char> = name.chars().take(96).collect();
    for (at, character) in characters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| characters.get(before));
        let after = characters.get(at + 1);
        let is_new = character.is_ascii_uppercase()
            && (before.is_some_and(|before| before.is_ascii_lowercase() || before.is_ascii_digit())
                || (before.is_some_and(char::is_ascii_uppercase) && after.is_some_and(char::is_ascii_lowercase)));
        if (is_new || !character.is_ascii_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if character.is_ascii_alphanumeric() {
            word.push(character.to_ascii_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    // `password2` and `token_1` are what they are without the number.
    for word in &mut words {
        let letters = word.trim_end_matches(|character: char| character.is_ascii_digit()).len();
        word.truncate(letters);
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Every name with a class has one of these in it. Most names have none, and are not taken apart.
const STEMS: &[&str] = &["cookie", "pass", "pwd", "pin", "token", "secret", "key", "credential", "auth", "jwt", "bearer", "otp", "sess", "sid"];

fn has_stem(name: &str) -> bool {
    static AUTOMATON: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let built = AUTOMATON.get_or_init(|| AhoCorasick::builder().ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA)).build(STEMS).ok());
    // It is built from constants, and tests find names by it; without it every name is taken apart.
    built.as_ref().is_none_or(|automaton| automaton.is_match(name))
}

/// Which kind of secret something with this name holds, if any.
pub(super) fn class_of(name: &str) -> Option<Class> {
    if !has_stem(name) {
        return None;
    }
    let words = words(name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let last = *words.last()?;
    if last == "cookie" || (last == "cookies" && words.len() == 1) {
        return Some(Class::Cookie);
    }
    if WHOLE.contains(&words.join(" ").as_str()) {
        return Some(Class::Token);
    }
    if NOT_LAST.contains(&last) {
        return None;
    }
    let before = |at: usize| at.checked_sub(1).and_then(|before| words.get(before)).copied().unwrap_or_default();
    for (at, word) in words.iter().enumerate() {
        let rest = words.get(at + 1..).unwrap_or_default();
        let is_password = PASSWORDS.iter().any(|password| word.ends_with(password))
            || (*word == "pass" && rest.is_empty() && BEFORE_PASS.contains(&before(at)))
            || (*word == "pin" && rest.is_empty() && BEFORE_PIN.contains(&before(at)));
        if is_password && rest.iter().all(|word| AFTER_PASSWORD.contains(word)) {
            return Some(Class::Password);
        }
    }
    let is_token = words.iter().enumerate().any(|(at, word)| {
        let is_key = *word == "key" && BEFORE_KEY.contains(&before(at));
        let is_plural = *word == "tokens" && BEFORE_TOKENS.contains(&before(at));
        let is_token = TOKENS.iter().any(|token| word.ends_with(token)) && !NOT_BEFORE_TOKEN.contains(&before(at));
        is_key || is_plural || is_token
    });
    is_token.then_some(Class::Token)
}

/// Whether something with this name is a place in a list, such as `page_token`, and nothing that lets anybody in.
pub(super) fn is_a_place(name: &str) -> bool {
    let words = words(name);
    let is_place =
        words.windows(2).any(|pair| matches!(pair, [before, word] if TOKENS.contains(&word.as_str()) && NOT_BEFORE_TOKEN.contains(&before.as_str())));
    is_place && class_of(name).is_none()
}

/// What stands where a secret would, and is none.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.trim().to_ascii_lowercase();
    let begins = ["<", "${", "$(", "{{", "%(", "%{", "secret:", "env:", "vault:", "op://", "process.env", "os.environ", "os.getenv", "env["];
    let words = [
        "null",
        "nil",
        "none",
        "undefined",
        "true",
        "false",
        "yes",
        "no",
        "on",
        "off",
        "string",
        "str",
        "text",
        "int",
        "integer",
        "number",
        "bool",
        "boolean",
        "object",
        "array",
        "any",
        "required",
        "optional",
        "example",
        "placeholder",
        "hidden",
        "masked",
        "redacted",
        "removed",
        "unset",
        "empty",
        "n/a",
        "secretstr",
        "password",
        "token",
        "secret",
        "varchar",
    ];
    let bytes = lower.as_bytes();
    let is_one_character = bytes.first().is_some_and(|first| bytes.iter().all(|byte| byte == first));
    let is_variable = lower.strip_prefix('$').is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
    let is_yours = (lower.starts_with("your") || lower.starts_with("my-") || lower.starts_with("my_")) && !lower.bytes().any(|byte| byte.is_ascii_digit());
    let is_masked = lower.bytes().filter(|byte| matches!(byte, b'*' | b'.' | b'x')).count() * 4 >= lower.len() * 3;
    lower.is_empty()
        || is_one_character
        || is_variable
        || is_yours
        || is_masked
        || words.contains(&lower.as_str())
        || begins.iter().any(|begins| lower.starts_with(begins))
}

/// Bits of information in each character, as far as its own characters tell.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    let mut total = 0_u32;
    for byte in text.bytes().take(256) {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
            total += 1;
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(total.max(1));
    counts.iter().filter(|count| **count > 0).map(|count| -share(*count) * share(*count).log2()).sum()
}

/// Whether a value looks drawn by chance: not a word, a sentence, a number, a date, a path or an address.
pub(super) fn looks_random(value: &str) -> bool {
    let value = value.trim();
    if value.len() < 8 || value.contains(char::is_whitespace) || value.contains("://") || value.starts_with(['/', '~']) || value.starts_with("./") {
        return false;
    }
    let count = |is: fn(&u8) -> bool| value.bytes().filter(is).count();
    let (digits, lower, upper) = (count(u8::is_ascii_digit), count(u8::is_ascii_lowercase), count(u8::is_ascii_uppercase));
    if lower + upper == 0 {
        return false;
    }
    let groups: Vec<&str> = value.split(['-', '_', '.', ':', '/', ',']).collect();
    let is_word = |group: &&str| group.bytes().skip(1).all(|byte| byte.is_ascii_lowercase()) || group.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_wordy = |group: &&str| {
        (group.bytes().all(|byte| byte.is_ascii_alphabetic()) && is_word(group)) || (group.len() <= 8 && group.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if groups.iter().all(is_wordy) {
        return false;
    }
    if digits == 0 {
        let turns = value.as_bytes().windows(2).filter(|pair| matches!(pair, [one, two] if one.is_ascii_lowercase() && two.is_ascii_uppercase())).count();
        return value.len() >= 16 && turns * 6 >= value.len() && entropy(value) >= 3.2;
    }
    entropy(value) >= 2.6 && (digits >= 2 || (upper > 0 && lower > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_told_from_names_that_only_sound_so() {
        let passwords = [
            "password",
            "Passwd",
            "db_password",
            "DB_PASS",
            "userPassword",
            "PASSWORD_PROD",
            "passphrase",
            "mysqlPwd",
            "password2",
            "new-password",
            "password_hash",
        ];
        for name in passwords {
            assert_eq!(class_of(name), Some(Class::Password), "{name}");
        }
        let tokens = [
            "token",
            "access_token",
            "accessToken",
            "API_KEY",
            "apiKey",
            "X-Api-Key",
            "apikey",
            "client_secret",
            "clientSecret",
            "aws_secret_access_key",
            "AccountKey",
            "private_key",
            "authorization",
            "auth_token",
            "_authToken",
            "csrfToken",
            "session_id",
            "credentials",
            "access_tokens",
            "OPENAI_API_KEY",
            "signing.key",
        ];
        for name in tokens {
            assert_eq!(class_of(name), Some(Class::Token), "{name}");
        }
        let others = [
            "author",
            "authors",
            "keyboard",
            "primary_key",
            "foreignKey",
            "token_count",
            "max_tokens",
            "tokens",
            "next_page_token",
            "nextPageToken",
            "token_type",
            "password_policy",
            "passwordLength",
            "key",
            "keys",
            "monkey",
            "cache_key",
            "public_key",
            "access_key_id",
            "secretary",
            "passenger",
            "bypass",
            "compass",
            "first_pass",
            "pin",
            "authority",
            "tokenizer",
            "sort-key",
            "secret_name",
            "password_reset",
            "hotkey",
            "keyword",
            "",
            "passwords_file",
            "unauthorized",
        ];
        for name in others {
            assert_eq!(class_of(name), None, "{name}");
        }
    }

    #[test]
    fn every_word_that_makes_a_class_has_a_stem() {
        for word in [PASSWORDS, TOKENS, WHOLE, &["pass", "pin", "key", "tokens", "cookie", "cookies"]].concat() {
            assert!(has_stem(&word.to_uppercase()), "{word}");
        }
        assert!(!has_stem("amount") && !has_stem("") && !has_stem("ке"));
    }

    #[test]
    fn chance_is_told_from_words_numbers_and_dates() {
        for value in
            ["hT7bQ2xLw9", "550e8400-e29b-41d4-a716-446655440000", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY", "a3f1c09be2", "QzXwVbNmKjHgFdSaPo", "p4ssw0rd123"]
        {
            assert!(looks_random(value), "{value}");
        }
        for value in [
            "letmein",
            "correct-horse",
            "2026-11-16",
            "1.2.3",
            "12345678901",
            "https://a.b/c1d2",
            "/etc/keys/1a2b3c",
            "AccessToken",
            "release-2024",
            "word word1 2",
            "my_token_name",
        ] {
            assert!(!looks_random(value), "{value}");
        }
    }
}
