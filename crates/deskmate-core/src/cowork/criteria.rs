//! Structured reasoning: what a proposal is based on, each with its value, its source and the time at which it was true.
//! A domain names what it requires; what is missing or too old goes to a person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::words::check_said;
use crate::limits::{NAME_CHARS_MAX, PACKET_ITEMS_MAX, REASONING_BYTES_MAX};
use crate::policy::{Decision, Mode, Reason, Settings};
use crate::{Error, Result, check_text, parse_time};

/// The source of the reason that missing criteria give.
const SOURCE: &str = "criteria";
const SECOND: i64 = 1_000_000;

/// One thing that a proposal is based on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Criterion {
    /// Its name, such as `credit_limit`.
    name: String,
    /// What it was.
    value: Value,
    /// Where it was read, such as `erp` or a link.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    source: String,
    /// When it was true, for example `2026-11-15T09:30:00Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

/// Checks the criteria of an input.
pub(super) fn check(criteria: &[Criterion]) -> Result<()> {
    if criteria.len() > PACKET_ITEMS_MAX {
        return Err(Error::invalid("criteria", format!("at most {PACKET_ITEMS_MAX}")));
    }
    for criterion in criteria {
        check_said("criteria.name", &criterion.name, NAME_CHARS_MAX)?;
        check_text("criteria.source", &criterion.source, REASONING_BYTES_MAX)?;
        check_text("criteria.value", &criterion.value.to_string(), REASONING_BYTES_MAX)?;
        if let Some(at) = &criterion.at {
            parse_time("criteria.at", at)?;
        }
    }
    Ok(())
}

/// Sends a decision to a person when a required criterion is missing, says nothing, has no source, or is too old.
pub(super) fn hold(decision: &mut Decision, criteria: &[Criterion], settings: &Settings, now: i64) -> Result<()> {
    let authority = &settings.authority;
    let oldest = now.saturating_sub(i64::from(authority.criteria_seconds).saturating_mul(SECOND));
    let mut wanting = Vec::new();
    for required in &authority.required_criteria {
        let Some(given) = criteria.iter().find(|criterion| criterion.name == *required) else {
            wanting.push(format!("{required} is missing"));
            continue;
        };
        let at = given.at.as_deref().map(|at| parse_time("criteria.at", at)).transpose()?;
        match at {
            _ if given.value.is_null() || given.source.is_empty() => wanting.push(format!("{required} has no value or no source")),
            None => wanting.push(format!("{required} does not say when it was true")),
            Some(at) if at < oldest => wanting.push(format!("{required} is too old")),
            // What claims to be from later is not known either; a clock that is a little ahead is.
            Some(at) if at > now.saturating_add(300 * SECOND) => wanting.push(format!("{required} is from the future")),
            Some(_) => {}
        }
    }
    if wanting.is_empty() {
        return Ok(());
    }
    let reason = Reason {
        source: SOURCE.to_owned(),
        mode: Mode::Escalate,
        text: wanting.join("; "),
        would_change: Some("criteria that this domain requires, each with value, source and a recent time".to_owned()),
    };
    let place = decision.reasons.iter().position(|other| other.mode > Mode::Escalate).unwrap_or(decision.reasons.len());
    decision.reasons.insert(place, reason);
    decision.mode = decision.mode.min(Mode::Escalate);
    Ok(())
}
