//! The arithmetic of trust: what each thing that happens does to a score and its counters. Nothing here reads a row, a
//! clock or a setting, so the same functions make a change and recompute it from the record.

use super::Points;
use crate::policy::Settings;
use crate::policy::settings::Promotion;

/// What a demotion costs, once in each streak.
pub(super) const DEMOTION: Points = Points(100_000_000);
/// Fading up to this is not worth a change.
const FADING_IGNORED: i64 = 1_000_000;
/// A day in microseconds.
const DAY: i128 = 86_400_000_000;

/// The settings of a domain that the arithmetic needs, in whole billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// The score of an agent that nothing is known of.
    pub start: Points,
    /// Lost for each day without any act.
    pub decay_per_day: Points,
    /// What an approval adds.
    pub approval: Points,
    /// The base of an override whose type has no number of its own.
    pub custom_override: Points,
    /// Overrides in a row that demote.
    pub demote_after: i64,
    /// Decided proposals after which a promotion is due ...
    pub promote_after: i64,
    /// ... if at least this share of them was approved.
    pub promote_accuracy: Points,
    /// Whether a promotion that is due happens at once.
    pub promote_alone: bool,
    /// The score from which an agent may act alone.
    pub act_from: Points,
}

impl Rates {
    /// The rates of a domain's settings.
    pub fn of(settings: &Settings) -> Self {
        Self {
            start: Points::of(settings.trust.default_level).clamped(),
            decay_per_day: Points::of(settings.trust.decay_per_day).clamped(),
            approval: Points::of(settings.feedback.approval_trust_impact).clamped(),
            custom_override: Points::of(settings.feedback.override_trust_impact).min(Points::ZERO),
            demote_after: i64::from(settings.trust.auto_demote_after).max(1),
            promote_after: i64::from(settings.trust.auto_promote_after).max(1),
            promote_accuracy: Points::of(settings.trust.auto_promote_accuracy).clamped(),
            promote_alone: settings.trust.promotion == Promotion::Auto,
            act_from: Points::ACT.max(Points::of(settings.trust.autonomous_threshold)),
        }
    }
}

/// How bad it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Half as bad as usual.
    Low,
    /// As usual.
    Medium,
    /// Half as bad again.
    High,
    /// Two and a half times as bad.
    Critical,
}

impl Severity {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    /// The factor, in tenths.
    fn tenths(self) -> i64 {
        match self {
            Self::Low => 5,
            Self::Medium => 10,
            Self::High => 15,
            Self::Critical => 25,
        }
    }
}

/// The type of override that says that the rules changed, not that the agent erred: it costs nothing and feeds no streak.
pub const POLICY_CHANGE: &str = "policy_change";

/// What an override of a type and a severity does to a score, before a demotion.
pub fn override_impact(kind: &str, severity: Severity, rates: &Rates) -> Points {
    let base = match kind {
        "agent_wrong" => -80_000_000,
        "missing_context" => -30_000_000,
        "edge_case" => -20_000_000,
        "human_preference" => -10_000_000,
        POLICY_CHANGE => 0,
        _ => rates.custom_override.0,
    };
    Points(base * severity.tenths() / 10)
}

/// Everything that is known of an agent in a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The score at `updated_at`.
    pub score: Points,
    /// Proposals made.
    pub proposals: i64,
    /// Proposals that people approved.
    pub approved: i64,
    /// Proposals and acts that people overrode.
    pub overridden: i64,
    /// Overrides in a row.
    pub streak: i64,
    /// Whether this streak has cost its demotion.
    pub demoted: bool,
    /// How often people's answers moved this row.
    pub changes: i64,
    /// Decided since the last decision on a promotion.
    pub decided_since: i64,
    /// Approved since then.
    pub approved_since: i64,
    /// Whether a promotion waits for a person.
    pub promoting: bool,
    /// How sure the agent was of what was decided, summed up.
    pub confidence_sum: i64,
    /// Of how many.
    pub confidence_count: i64,
    /// The squares of how far off it was, summed up.
    pub brier_sum: i64,
    /// When anything last happened.
    pub updated_at: i64,
}

/// How people answered one proposal: what is needed to take it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Approved, or overridden.
    pub approved: bool,
    /// What it really did to the score.
    pub applied: Points,
    /// The number of the change.
    pub change: i64,
    /// The streak before.
    pub streak_before: i64,
    /// Whether the streak before had cost its demotion.
    pub demoted_before: bool,
    /// How sure the agent was.
    pub confidence: Option<Points>,
}

/// Something that happens to trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The agent proposed something.
    Proposed,
    /// A person approved a proposal.
    Approved {
        /// How sure the agent was.
        confidence: Option<Points>,
    },
    /// A person corrected the agent.
    Overridden {
        /// What it costs, before a demotion.
        impact: Points,
        /// Whether it counts towards a demotion.
        feeds_streak: bool,
        /// How sure the agent was.
        confidence: Option<Points>,
    },
    /// A person took an answer back.
    TakenBack(Verdict),
    /// A promotion was ratified, or happened by itself.
    Promoted {
        /// The score that it raises to.
        target: Points,
    },
    /// A person said no to a promotion, or never answered.
    NotPromoted,
    /// What another system knew.
    Imported(Known),
}

/// What another system knew of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its score when it was last updated there.
    pub score: Points,
    /// Proposals made.
    pub proposals: i64,
    /// Approved ones.
    pub approved: i64,
    /// Overridden ones.
    pub overridden: i64,
    /// Overrides in a row.
    pub streak: i64,
    /// When it was last updated there: fading goes on from then.
    pub updated_at: i64,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The state after it.
    pub state: State,
    /// The score before it, after fading.
    pub previous: Points,
    /// What the step does on its own, demotion included, before the score is kept within 0 and 1.
    pub impact: Points,
    /// Whether it demoted.
    pub demoted: bool,
    /// The score that a promotion would raise to, if one is due now.
    pub promotion_due: Option<Points>,
}

impl State {
    /// An agent that nothing is known of.
    pub fn fresh(rates: &Rates, now: i64) -> Self {
        Self {
            score: rates.start,
            proposals: 0,
            approved: 0,
            overridden: 0,
            streak: 0,
            demoted: false,
            changes: 0,
            decided_since: 0,
            approved_since: 0,
            promoting: false,
            confidence_sum: 0,
            confidence_count: 0,
            brier_sum: 0,
            updated_at: now,
        }
    }

    /// The score at a moment. Fading stops at the floor and never raises; a clock that stepped back fades nothing.
    pub fn score_at(&self, now: i64, decay_per_day: Points) -> Points {
        let idle = i128::from(now) - i128::from(self.updated_at);
        let loss = i64::try_from(idle.max(0) * i128::from(decay_per_day.0) / DAY).unwrap_or(i64::MAX);
        if loss <= FADING_IGNORED {
            return self.score;
        }
        Points(self.score.0.saturating_sub(loss)).max(Points::FLOOR.min(self.score))
    }

    /// What a step does at a moment.
    pub fn after(&self, step: &Step, rates: &Rates, now: i64) -> Moved {
        let previous = self.score_at(now, rates.decay_per_day);
        let mut state = Self { score: previous, updated_at: now, ..*self };
        let mut moved = Moved { state, previous, impact: Points::ZERO, demoted: false, promotion_due: None };
        match *step {
            Step::Proposed => state.proposals += 1,
            Step::Approved { confidence } => {
                moved.impact = rates.approval;
                state.decide(true, confidence);
                (state.streak, state.demoted) = (0, false);
            }
            Step::Overridden { impact, feeds_streak, confidence } => {
                moved.impact = impact;
                state.decide(false, confidence);
                if feeds_streak {
                    state.streak += 1;
                    moved.demoted = !state.demoted && state.streak >= rates.demote_after;
                }
                if moved.demoted {
                    state.demoted = true;
                    moved.impact.0 -= DEMOTION.0;
                }
            }
            Step::TakenBack(verdict) => {
                moved.impact = Points(-verdict.applied.0);
                state.take_back(&verdict);
            }
            Step::Promoted { target } => {
                moved.impact = Points((target.0 - previous.0).max(0));
                state.restart_promotion();
            }
            Step::NotPromoted => state.restart_promotion(),
            Step::Imported(known) => {
                let demoted = known.streak >= rates.demote_after;
                let Known { proposals, approved, overridden, streak, .. } = known;
                let updated_at = known.updated_at.min(now);
                state = Self { proposals, approved, overridden, streak, demoted, updated_at, ..Self::fresh(rates, now) };
                moved.impact = Points(known.score.0 - previous.0);
            }
        }
        state.score = Points(previous.0.saturating_add(moved.impact.0)).clamped();
        if matches!(step, Step::Approved { .. } | Step::Overridden { .. }) && state.promotion_earned(rates) {
            moved.promotion_due = state.next_threshold();
            state.promoting = moved.promotion_due.is_some();
        }
        moved.state = state;
        moved
    }

    /// Proposals and acts that people answered.
    pub fn decided(&self) -> i64 {
        self.approved + self.overridden
    }

    /// The threshold above the score, if there is one.
    fn next_threshold(&self) -> Option<Points> {
        [Points::SUGGEST, Points::ACT].into_iter().find(|threshold| self.score < *threshold)
    }

    fn promotion_earned(&self, rates: &Rates) -> bool {
        let enough = i128::from(self.approved_since) * i128::from(Points::ONE.0) >= i128::from(rates.promote_accuracy.0) * i128::from(self.decided_since);
        // What was just demoted is not promoted: the next approval ends its streak, and is counted.
        !self.promoting && !self.demoted && self.decided_since >= rates.promote_after && enough
    }

    fn restart_promotion(&mut self) {
        (self.decided_since, self.approved_since, self.promoting) = (0, 0, false);
    }

    fn decide(&mut self, approved: bool, confidence: Option<Points>) {
        self.changes += 1;
        self.decided_since += 1;
        if approved {
            self.approved += 1;
            self.approved_since += 1;
        } else {
            self.overridden += 1;
        }
        if let Some(confidence) = confidence {
            self.confidence_sum += confidence.0;
            self.confidence_count += 1;
            self.brier_sum += brier(confidence, approved);
        }
    }

    fn take_back(&mut self, verdict: &Verdict) {
        if self.changes == verdict.change {
            // Nothing was decided since: the streak is what it was before.
            (self.streak, self.demoted) = (verdict.streak_before, verdict.demoted_before);
        }
        self.changes += 1;
        self.decided_since = (self.decided_since - 1).max(0);
        if verdict.approved {
            self.approved -= 1;
            self.approved_since = (self.approved_since - 1).max(0);
        } else {
            self.overridden -= 1;
        }
        self.approved_since = self.approved_since.min(self.decided_since);
        if let Some(confidence) = verdict.confidence {
            self.confidence_sum -= confidence.0;
            self.confidence_count -= 1;
            self.brier_sum -= brier(confidence, verdict.approved);
        }
    }
}

/// The square of how far off a confidence was, in billionths.
fn brier(confidence: Points, approved: bool) -> i64 {
    let off = if approved { Points::ONE.0 - confidence.0 } else { confidence.0 };
    i64::try_from(i128::from(off) * i128::from(off) / i128::from(Points::ONE.0)).unwrap_or(i64::MAX)
}

/// The share of approvals that such a sample stands for, with 95 % certainty (Wilson): the lower and the upper end.
#[expect(clippy::cast_precision_loss, reason = "counts of proposals are far below 2^52")]
pub fn interval(approved: i64, decided: i64) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    if decided <= 0 {
        return (0.0, 1.0);
    }
    let (n, p) = (decided as f64, approved as f64 / decided as f64);
    let centre = p + Z * Z / (2.0 * n);
    let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    (((centre - spread) / scale).max(0.0), ((centre + spread) / scale).min(1.0))
}
