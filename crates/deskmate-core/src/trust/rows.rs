//! The rows of trust, and the doors through which other capabilities look at trust and move it.

use deskmate_db::args;

use super::facts::{self, Cause, Key};
use super::rules::{self, Known, Moved, POLICY_CHANGE, Rates, Severity, State, Step, Verdict, override_impact};
use super::{CHANGED, Points};
use crate::call::Cx;
use crate::policy::{self, Mode};
use crate::record::Event;
use crate::{Error, Result};

/// How much an agent is trusted in a domain, at the moment of the call.
#[derive(Clone, Debug)]
pub struct Trust {
    /// The agent.
    pub agent: String,
    /// The domain.
    pub domain: String,
    /// Whether the agent proved who it is; what was earned without that stays apart.
    pub verified: bool,
    /// The score now, after fading.
    pub score: Points,
    /// The row as it is stored; `None` if there is none yet.
    pub stored: Option<State>,
    rates: Rates,
    now: i64,
}

impl Trust {
    /// The row, or what a new one would be.
    pub fn state(&self) -> State {
        self.stored.unwrap_or_else(|| State::fresh(&self.rates, self.now))
    }

    /// What the score alone allows.
    pub fn mode(&self) -> Mode {
        if self.score >= self.rates.act_from {
            Mode::Act
        } else if self.score >= Points::SUGGEST {
            Mode::Suggest
        } else {
            Mode::Escalate
        }
    }

    /// The score before fading.
    pub fn score_before_decay(&self) -> Points {
        self.state().score
    }

    /// How many proposals and acts people answered: the size of the sample.
    pub fn decided(&self) -> i64 {
        self.state().decided()
    }

    /// The share of them that was approved; 0 without any.
    #[expect(clippy::cast_precision_loss, reason = "counts of proposals are far below 2^52")]
    pub fn accuracy(&self) -> f64 {
        let state = self.state();
        if state.decided() == 0 { 0.0 } else { state.approved as f64 / state.decided() as f64 }
    }

    /// The share that the sample stands for, with 95 % certainty.
    pub fn interval(&self) -> (f64, f64) {
        rules::interval(self.state().approved, self.decided())
    }
}

/// What a person's answer did to trust.
#[derive(Clone, Debug)]
#[must_use]
pub struct Change {
    /// Trust after it.
    pub trust: Trust,
    /// The score before it, after fading.
    pub previous: Points,
    /// The score after it.
    pub new: Points,
    /// What it does on its own, a demotion and an approval taken back included, before the score is kept within 0 and 1.
    pub impact: Points,
    /// Whether it demoted.
    pub demoted: bool,
    /// A promotion is due and waits for a person: whoever made this change makes a request for it, to this score, and
    /// later calls [`promoted`] or [`not_promoted`]. It is told once.
    pub promotion_due: Option<Points>,
    /// The promotion that happened at once, because the settings say so.
    pub promoted_to: Option<Points>,
}

/// Whose trust in what is meant, and for which request.
#[derive(Clone, Copy, Debug)]
pub struct Of<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The domain.
    pub domain: &'a str,
    /// Whether the agent had proved who it is.
    pub verified: bool,
    /// The request that was answered; an override may be without one.
    pub request: Option<&'a str>,
    /// How sure the agent was.
    pub confidence: Option<Points>,
}

pub(super) fn rates(cx: &mut Cx<'_, '_>, domain: &str) -> Result<Rates> {
    Ok(Rates::of(policy::current(cx)?.settings(domain)))
}

/// How much an agent is trusted in a domain now. It only looks: fading is written by the next change.
pub fn look(cx: &mut Cx<'_, '_>, agent: &str, domain: &str, verified: bool) -> Result<Trust> {
    let rates = rates(cx, domain)?;
    look_by(cx, rates, agent, domain, verified)
}

/// Like [`look`], with the rates of the domain's settings, for callers that have them at hand.
pub fn look_by(cx: &mut Cx<'_, '_>, rates: Rates, agent: &str, domain: &str, verified: bool) -> Result<Trust> {
    let row = cx.tx.optional(
        "select score, proposals, approved, overridden, streak, demoted, changes, decided_since, approved_since, promoting, confidence_sum, \
         confidence_count, brier_sum, updated_at from trust where agent = $1 and domain = $2 and verified = $3",
        args![agent, domain, verified],
    )?;
    let stored = row.as_ref().map(|row| read_state(row, 0)).transpose()?;
    Ok(shown(agent, domain, verified, stored, rates, cx.now()))
}

pub(super) fn shown(agent: &str, domain: &str, verified: bool, stored: Option<State>, rates: Rates, now: i64) -> Trust {
    let score = stored.map_or(rates.start, |state| state.score_at(now, rates.decay_per_day));
    Trust { agent: agent.to_owned(), domain: domain.to_owned(), verified, score, stored, rates, now }
}

/// The counters of a row, from a column on.
pub(super) fn read_state(row: &deskmate_db::Row, from: usize) -> Result<State> {
    Ok(State {
        score: Points(row.get(from)?),
        proposals: row.get(from + 1)?,
        approved: row.get(from + 2)?,
        overridden: row.get(from + 3)?,
        streak: row.get(from + 4)?,
        demoted: row.get(from + 5)?,
        changes: row.get(from + 6)?,
        decided_since: row.get(from + 7)?,
        approved_since: row.get(from + 8)?,
        promoting: row.get(from + 9)?,
        confidence_sum: row.get(from + 10)?,
        confidence_count: row.get(from + 11)?,
        brier_sum: row.get(from + 12)?,
        updated_at: row.get(from + 13)?,
    })
}

/// An agent proposed something. The numbers go into the event that tells of the proposal, which comes back to be
/// emitted: one event for both, because proposals are many.
pub fn proposed(cx: &mut Cx<'_, '_>, trust: &Trust, event: Event) -> Result<Event> {
    let moved = trust.state().after(&Step::Proposed, &trust.rates, cx.now());
    write(cx, &Key::of(trust), &moved.state)?;
    Ok(event.fact("trust", facts::proposed(&Key::of(trust), &moved, &trust.rates)))
}

/// A person approved a proposal.
pub fn approved(cx: &mut Cx<'_, '_>, of: Of<'_>) -> Result<Change> {
    let change = decide(cx, of, Cause::Approved, |_| Step::Approved { confidence: of.confidence })?;
    promoted_alone(cx, of, change)
}

/// Promotes at once where a promotion is due and the settings ask nobody.
fn promoted_alone(cx: &mut Cx<'_, '_>, of: Of<'_>, mut change: Change) -> Result<Change> {
    if change.trust.rates.promote_alone
        && let Some(target) = change.promotion_due.take()
    {
        let promoted = step(cx, of, &Cause::Promoted { target }, &Step::Promoted { target })?;
        change = Change { trust: promoted.trust, new: promoted.new, promoted_to: Some(target), ..change };
    }
    Ok(change)
}

/// A person corrected the agent: said no to a proposal, or undid what it did. An approval of the same request is taken
/// back first, so that nothing counts twice.
pub fn overridden(cx: &mut Cx<'_, '_>, of: Of<'_>, kind: &str, severity: Severity) -> Result<Change> {
    let standing = match of.request {
        Some(request) => verdict(cx, request)?,
        None => None,
    };
    let back = if standing.is_some_and(|verdict| verdict.approved) { Some(taken_back(cx, of)?) } else { None };
    let feeds_streak = kind != POLICY_CHANGE;
    let step = |rates: &Rates| Step::Overridden { impact: override_impact(kind, severity, rates), feeds_streak, confidence: of.confidence };
    let change = decide(cx, of, Cause::Overridden { kind: kind.to_owned(), severity }, step)?;
    let change = promoted_alone(cx, of, change)?;
    Ok(match back {
        None => change,
        Some(back) => Change { previous: back.previous, impact: Points(back.impact.0 + change.impact.0), ..change },
    })
}

/// A person took the answer to a request back: what it did to the score is undone, and it no longer counts.
pub fn taken_back(cx: &mut Cx<'_, '_>, of: Of<'_>) -> Result<Change> {
    let request = of.request.unwrap_or_default();
    let verdict = verdict(cx, request)?.ok_or_else(|| Error::conflict(format!("no answer to request {request} moved trust")))?;
    cx.tx.execute("delete from trust_verdict where request = $1", args![request])?;
    step(cx, of, &Cause::TakenBack, &Step::TakenBack(verdict))
}

/// A person ratified a promotion to a score.
pub fn promoted(cx: &mut Cx<'_, '_>, of: Of<'_>, target: Points) -> Result<Change> {
    if target != Points::SUGGEST && target != Points::ACT {
        return Err(Error::invalid("target", "must be 0.5 or 0.8"));
    }
    step(cx, of, &Cause::Promoted { target }, &Step::Promoted { target })
}

/// A promotion was refused, or its request ended without an answer: counting starts anew.
pub fn not_promoted(cx: &mut Cx<'_, '_>, of: Of<'_>) -> Result<Change> {
    step(cx, of, &Cause::NotPromoted, &Step::NotPromoted)
}

/// What another system knew of an agent. It stands only where this desk knows nothing yet.
pub fn imported(cx: &mut Cx<'_, '_>, of: Of<'_>, known: &Known) -> Result<Change> {
    if look(cx, of.agent, of.domain, of.verified)?.stored.is_some() {
        return Err(Error::conflict(format!("the desk knows agent {} in domain {} already", of.agent, of.domain)));
    }
    step(cx, of, &Cause::Imported, &Step::Imported(*known))
}

/// A step that answers a request, which is kept so that it counts once and can be taken back.
fn decide(cx: &mut Cx<'_, '_>, of: Of<'_>, cause: Cause, answer: impl FnOnce(&Rates) -> Step) -> Result<Change> {
    if let Some(request) = of.request
        && verdict(cx, request)?.is_some()
    {
        return Err(Error::conflict(format!("the answer to request {request} has moved trust already")));
    }
    let trust = look(cx, of.agent, of.domain, of.verified)?;
    let (before, step) = (trust.state(), answer(&trust.rates));
    let change = step_from(cx, trust, of, &cause, &step)?;
    if let Some(request) = of.request {
        let now = cx.now();
        cx.tx.execute(
            "insert into trust_verdict (request, agent, domain, verified, approved, applied, change, streak_before, demoted_before, confidence, at) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            args![
                request,
                of.agent,
                of.domain,
                of.verified,
                matches!(step, Step::Approved { .. }),
                change.new.0 - change.previous.0,
                change.trust.state().changes,
                before.streak,
                before.demoted,
                of.confidence.map(|confidence| confidence.0),
                now
            ],
        )?;
    }
    Ok(change)
}

fn step(cx: &mut Cx<'_, '_>, of: Of<'_>, cause: &Cause, step: &Step) -> Result<Change> {
    let trust = look(cx, of.agent, of.domain, of.verified)?;
    step_from(cx, trust, of, cause, step)
}

/// Does a step: the row, and the event from which it can be recomputed.
fn step_from(cx: &mut Cx<'_, '_>, trust: Trust, of: Of<'_>, cause: &Cause, step: &Step) -> Result<Change> {
    let moved = trust.state().after(step, &trust.rates, cx.now());
    let key = Key::of(&trust);
    write(cx, &key, &moved.state)?;
    let event = Event::new(CHANGED, key.subject()).audience([of.agent]);
    cx.emit(facts::changed(event, &key, cause, of, &moved, &trust.rates))?;
    let Moved { state, previous, impact, demoted, promotion_due } = moved;
    let new = state.score;
    let trust = Trust { score: new, stored: Some(state), ..trust };
    Ok(Change { trust, previous, new, impact, demoted, promotion_due, promoted_to: None })
}

fn verdict(cx: &mut Cx<'_, '_>, request: &str) -> Result<Option<Verdict>> {
    let row =
        cx.tx.optional("select approved, applied, change, streak_before, demoted_before, confidence from trust_verdict where request = $1", args![request])?;
    row.map(|row| {
        Ok(Verdict {
            approved: row.get(0)?,
            applied: Points(row.get(1)?),
            change: row.get(2)?,
            streak_before: row.get(3)?,
            demoted_before: row.get(4)?,
            confidence: row.get::<Option<i64>>(5)?.map(Points),
        })
    })
    .transpose()
}

fn write(cx: &mut Cx<'_, '_>, key: &Key, state: &State) -> Result<()> {
    cx.tx.execute(
        "insert into trust (agent, domain, verified, score, proposals, approved, overridden, streak, demoted, changes, decided_since, approved_since, \
         promoting, confidence_sum, confidence_count, brier_sum, updated_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) \
         on conflict (agent, domain, verified) do update set score = excluded.score, proposals = excluded.proposals, approved = excluded.approved, \
         overridden = excluded.overridden, streak = excluded.streak, demoted = excluded.demoted, changes = excluded.changes, \
         decided_since = excluded.decided_since, approved_since = excluded.approved_since, promoting = excluded.promoting, \
         confidence_sum = excluded.confidence_sum, confidence_count = excluded.confidence_count, brier_sum = excluded.brier_sum, \
         updated_at = excluded.updated_at",
        args![
            key.agent,
            key.domain,
            key.verified,
            state.score.0,
            state.proposals,
            state.approved,
            state.overridden,
            state.streak,
            state.demoted,
            state.changes,
            state.decided_since,
            state.approved_since,
            state.promoting,
            state.confidence_sum,
            state.confidence_count,
            state.brier_sum,
            state.updated_at
        ],
    )?;
    Ok(())
}
