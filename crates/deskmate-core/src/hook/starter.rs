//! The policy that holds for agents' own tools where no mapping names their domain. A policy with its id takes its place.

use std::sync::LazyLock;

use super::tool::DOMAINS;
use crate::policy::{Document, Policy};

/// Its id.
pub const HOOK_POLICY: &str = "hooks";
/// Its text, as somebody would write it.
pub const STARTER: &str = include_str!("starter.yaml");

static READ: LazyLock<Result<Policy, String>> = LazyLock::new(|| {
    let document = Document::parse(STARTER).map_err(|problems| problems.first().map(ToString::to_string).unwrap_or_default())?;
    document.policies.and_then(|mut policies| policies.remove(HOOK_POLICY)).ok_or_else(|| "it is missing".to_owned())
});

/// The policy.
pub(crate) fn starter() -> Result<&'static Policy, &'static str> {
    READ.as_ref().map_err(String::as_str)
}

/// Whether it is for a domain.
pub(crate) fn is_for(domain: &str) -> bool {
    DOMAINS.contains(&domain)
}

/// Whether a pattern of domains, other than the one for all, names one of its own.
pub(crate) fn is_named_by(pattern: &str) -> bool {
    pattern != "*" && DOMAINS.iter().any(|domain| pattern.strip_suffix('*').map_or(pattern == *domain, |prefix| domain.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::policy::{Parts, Rulebook, run_cases};

    #[test]
    fn it_does_what_its_cases_say() {
        let policy = starter().unwrap().clone();
        let parts = Parts { policies: [(HOOK_POLICY.to_owned(), policy)].into(), ..Parts::default() };
        let book = Rulebook::compile(parts, BTreeMap::new()).unwrap();
        let cases = run_cases(&book, None);
        assert_eq!(cases.len(), 7);
        for case in cases {
            assert!(case.passed, "{case:?}");
        }
    }

    #[test]
    fn patterns_name_domains() {
        assert!(is_named_by("shell") && is_named_by("files.*") && is_named_by("files.project"));
        assert!(!is_named_by("*") && !is_named_by("crm.*") && !is_named_by("shells"));
    }
}
