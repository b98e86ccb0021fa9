//! What somebody types or has typed for them: command lines, and what tools are given. There a secret is often short and seldom drawn by
//! chance, and nothing is lost by hiding too much, so what stands under a name of a secret is hidden whatever it looks like.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::keys::{class_of, is_a_place};
use super::{Kind, Redactor};

/// What stands behind an assignment, an option, the word of a header, or a name in an address.
static GIVEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = r"\b(?<name>[a-z0-9_]*(?:token|secret|password|passwd|api_?key)[a-z0-9_]*)\s*[=:]\s*";
    let options = r"--(?:password|token|secret|api-key)[= ]";
    let pattern = format!(r#"(?i)((?:{names}|{options})["']?|\b(?:bearer|basic)\s+|://[^\s/:@]+:)(?<value>[^\s"'@&]{{4,}})"#);
    Regex::new(&pattern).ok()
});

/// Whether something of this name holds a secret, whatever it looks like.
pub fn names_a_secret(name: &str) -> bool {
    class_of(name).is_some()
}

/// A line without what is given under a name of a secret, and without what looks like one. What could not be looked for hides everything.
pub fn line(text: &str) -> String {
    let mark = Kind::SecretAssignment.mark();
    let Some(given) = GIVEN.as_ref() else { return mark };
    let own = given.replace_all(text, |found: &Captures<'_>| {
        let is_other = found.name("name").is_some_and(|name| is_a_place(name.as_str()));
        let (whole, before) = (found.get(0).map_or("", |all| all.as_str()), found.get(1).map_or("", |before| before.as_str()));
        if is_other { whole.to_owned() } else { format!("{before}{mark}") }
    });
    Redactor::secrets().text(&own).text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_under_the_name_of_a_secret_is_hidden_and_places_in_lists_are_not() {
        let text = "API_TOKEN=abcdef12 curl -H 'Authorization: Bearer xyz12345' https://a:hunter22@example.org --password hunter22 --token=tok12345";
        let left = line(text);
        for secret in ["abcdef12", "xyz12345", "hunter22", "tok12345"] {
            assert!(!left.contains(secret), "{secret}: {left}");
        }
        assert!(left.contains("API_TOKEN=[redacted:secret_assignment] curl"), "{left}");
        assert_eq!(
            line("curl 'https://example.org/list?next_page_token=abcd1234&page_token=efgh5678'"),
            "curl 'https://example.org/list?next_page_token=abcd1234&page_token=efgh5678'"
        );
        for given in ["DB_PASSWORD_REPLICA=hunter22", "mysecretvalue=hunter22", "page_token_secret=hunter22", "token_count=12345678"] {
            assert!(line(given).ends_with("=[redacted:secret_assignment]"), "{given}");
        }
        assert!(names_a_secret("api_key") && names_a_secret("password") && !names_a_secret("page_token") && !names_a_secret("author"));
    }
}
