//! Structured reasoning: what a proposal is based on, each with its value, its source and the time at which it was true.
//! A domain names what it requires; what is missing or too old goes to a person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::settings::AuthoritySettings;
use crate::parse_time;

const SECOND: i64 = 1_000_000;
/// A clock that is ahead by no more than this is still believed.
const AHEAD_MAX: i64 = 300 * SECOND;

/// One thing that a proposal is based on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// Its name, such as `credit_limit`.
    pub name: String,
    /// What it was.
    pub value: Value,
    /// Where it was read, such as `erp` or a link.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// When it was true, for example `2026-11-15T09:30:00Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// What is wrong with each required criterion that is missing, says nothing, has no source, or is not of now.
pub(super) fn wanting(criteria: &[Criterion], authority: &AuthoritySettings, now: i64) -> Vec<String> {
    let oldest = now.saturating_sub(i64::from(authority.criteria_seconds).saturating_mul(SECOND));
    let wrong = |required: &String| {
        let Some(given) = criteria.iter().find(|criterion| criterion.name == *required) else { return Some("is missing") };
        match given.at.as_deref().and_then(|at| parse_time("at", at).ok()) {
            _ if given.value.is_null() || given.source.is_empty() => Some("has no value or no source"),
            None => Some("does not say when it was true"),
            Some(at) if at < oldest => Some("is too old"),
            // What claims to be from later is not known either.
            Some(at) if at > now.saturating_add(AHEAD_MAX) => Some("is from the future"),
            Some(_) => None,
        }
    };
    authority.required_criteria.iter().filter_map(|required| Some(format!("{required} {}", wrong(required)?))).collect()
}
