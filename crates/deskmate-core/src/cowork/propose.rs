//! An agent says what it intends, and learns whether it may do it alone, has to wait for people, or must not do it.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::criteria;
use super::words::{self, check_domain, check_said, check_share};
use crate::call::Cx;
use crate::gateway::taint;
use crate::limits::{CHANGE_BYTES_MAX, NAME_CHARS_MAX, PACKET_ITEMS_MAX, PATH_BYTES_MAX, REASONING_BYTES_MAX, TITLE_CHARS_MAX};
use crate::meter::{self, Full, Room, Taken, Why};
use crate::policy::{self, Act, Criterion, Decision, Hit, Mode};
use crate::request::{self, Judged, New, Packet, Priority, Request, RequestKind, Requester, State};
use crate::{Error, Result, agents, check_text, format_time};

/// The verb of proposals that rules match.
pub(super) const VERB: &str = "propose";

/// Say what you intend to do before you do it. The answer's `mode` says what follows: `act`: do exactly this now, and
/// report it with cowork_log; `suggest` or `escalate`: a person decides, wait with cowork_wait_for_decision. With
/// `error: true` it must not be done: `violations` say why and `alternative` what you could do instead.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Propose {
    /// The scope of work, such as `crm.deals`. Trust and policy are per domain.
    domain: String,
    /// What you would do, in a word or two, such as `update_field`.
    action: String,
    /// To what, such as `deal/4711`.
    target: String,
    /// The whole change as JSON text, such as `{"amount": 5000}`; every changed field is looked at. Text that is no JSON
    /// is taken as `{"raw": text}`.
    #[schemars(with = "String")]
    proposed_change: Value,
    /// How sure you are, between 0 and 1.
    confidence: f64,
    /// Why, for the person who may have to decide.
    reasoning: String,
    /// The field that you change, if it is one.
    field: Option<String>,
    /// Where it would happen, such as `production`.
    environment: Option<String>,
    /// What it would cost, in the units of the desk's budgets.
    cost: Option<f64>,
    /// Where inputs came from that nobody vouches for, such as `web` or `mail`.
    #[serde(default)]
    taint: Vec<String>,
    /// What you based it on, each with its source and the time at which it was true; at most 100. A domain can require
    /// some, and what is missing or too old goes to a person.
    #[serde(default)]
    criteria: Vec<Criterion>,
    /// How urgent it is; `normal` if not given.
    priority: Option<Priority>,
    /// After how many seconds the answer is of no use any more; the request expires then.
    deadline_seconds: Option<u32>,
    /// The id of an earlier proposal of yours in whose place this one stands.
    supersedes: Option<String>,
    /// What is there now, as JSON, as far as you know it: approved is the change of that. Give it again to cowork_begin.
    #[schemars(with = "Option<String>")]
    target_state: Option<Value>,
    /// Whether and how it could be undone.
    reversibility: Option<String>,
}

/// A rule that stands against a proposal.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct Violation {
    /// The rule.
    pub(super) rule_id: String,
    /// Why it stands against it.
    pub(super) reason: String,
    /// The changed field that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<String>,
    /// How bad it is: `warning`, `hard_stop` and others.
    pub(super) severity: String,
    /// The policy it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) policy_id: Option<String>,
    /// That policy's version; 0 for what is built in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) policy_version: Option<i64>,
    /// What you could do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) alternative: Option<String>,
}

impl Violation {
    pub(super) fn of(hit: &Hit) -> Self {
        Self {
            rule_id: hit.rule_id.clone(),
            reason: hit.reason.clone(),
            field: hit.field.clone(),
            severity: hit.severity.clone(),
            policy_id: Some(hit.policy.clone()),
            policy_version: Some(hit.version),
            alternative: hit.alternative.clone(),
        }
    }
}

/// A permission to do exactly what was proposed, once.
#[derive(Serialize, JsonSchema)]
pub(super) struct GrantOut {
    /// Its id.
    grant_id: String,
    /// Until when it is good.
    expires_at: String,
}

/// What the desk answers to a proposal, or why it refuses it.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Proposed {
    /// True when it must not be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<bool>,
    /// True when a policy forbids it.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_error: Option<bool>,
    /// True when a limit is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    volume_cap_error: Option<bool>,
    /// The proposal's id: for cowork_log and cowork_wait_for_decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal_id: Option<String>,
    /// The id of the intended act; the proposal's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    action_id: Option<String>,
    /// The id under which it is in people's inbox; the proposal's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// `act`: do it. `suggest`, `escalate`: a person decides. `deny`: do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    /// Your score in this domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    trust_level: Option<f64>,
    /// How sure you were.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    /// Whether a changed field is on the desk's list of those that always need a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    high_risk_field: Option<bool>,
    /// How many rules fired without forbidding it.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_warnings: Option<usize>,
    /// Those rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Violation>,
    /// The policy that was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_id: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_description: Option<String>,
    /// Its version; 0 for what is built in.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_version: Option<i64>,
    /// How many rules were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_rules_checked: Option<u32>,
    /// Whether a mapping names you and this domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    mapping_found: Option<bool>,
    /// How many further proposals of yours fit in this domain: into its hour, your hour in all domains, and your day, whichever is nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    volume_remaining: Option<i64>,
    /// How many proposals an hour holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    volume_cap: Option<i64>,
    /// How many were used when the limit was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    proposals_this_hour: Option<i64>,
    /// When asking again makes sense.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// The rules that forbid it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    violations: Vec<Violation>,
    /// What you could do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    alternative: Option<String>,
    /// The answer in words.
    message: String,
    /// Whether your credential proved who you are.
    verified: bool,
    /// The permission, when you may do it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<GrantOut>,
    /// What exactly was proposed, as a digest; a decision and a grant are for this.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// When the request expires if nobody decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// What to call next.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Answers that changed nothing: the limit of an hour.
pub(super) fn is_untold(answer: &Value) -> bool {
    answer.get("volume_cap_error") == Some(&Value::Bool(true))
}

pub(super) fn propose(cx: &mut Cx<'_, '_>, input: Propose) -> Result<Proposed> {
    if !cx.actor.is_agent() {
        return Err(Error::forbidden("only agents propose: a person's own act needs no proposal").hint("do it, and report it with cowork_log"));
    }
    check(&input)?;
    let who = Requester::of(&cx.actor);
    let mut act = input.act()?;
    act.taint = taint::with_read(cx, act.taint)?;
    let target_state = input.target_state.map(|state| words::said("target_state", state, CHANGE_BYTES_MAX)).transpose()?;
    let Judged { mut decision, trust, gauge, .. } = request::weigh(cx, &act, &who, false)?;
    if let Some(held) = gauge.as_ref().and_then(|gauge| gauge.held.clone()) {
        return Ok(limited(&held, who.verified));
    }
    let rulebook = policy::current(cx)?;
    let settings = rulebook.settings(&act.domain);
    let score = trust.as_ref().map(|trust| trust.score.to_f64());
    let mut answer = Proposed { verified: who.verified, trust_level: score, confidence: Some(input.confidence), ..Proposed::default() };
    answer.show(&decision, &rulebook);
    if decision.mode == Mode::Deny && !is_only_limited(&decision) {
        request::denied(cx, &who, &act, &decision)?;
        return Ok(answer.denied(&decision));
    }
    let taken = match gauge {
        Some(gauge) => meter::take_from(cx, gauge, &settings.authority, act.cost)?,
        None => meter::take(cx, &who.id, &act.domain, act.cost)?,
    };
    let room = match taken {
        Taken::Room(room) => room,
        Taken::Full(full) => return Ok(limited(&full, who.verified)),
    };
    agents::spend(cx, act.cost)?;
    if decision.mode == Mode::Deny {
        let why: Vec<String> = violations(&decision).into_iter().map(|violation| violation.reason).collect();
        return Err(Error::limited(why.join("; "), 60_000).hint("cancel what is no longer needed, or wait until people decide"));
    }
    if let Some(seconds) = input.deadline_seconds {
        decision.needs.expires_seconds = decision.needs.expires_seconds.min(i64::from(seconds));
    }
    let mut new = New::new(RequestKind::Proposal, title(&act), act, decision);
    new.packet = Packet {
        reasoning: Some(input.reasoning),
        old: target_state.clone().filter(Value::is_object),
        reversibility: input.reversibility,
        more: if input.criteria.is_empty() { Value::Null } else { json!({ "criteria": input.criteria }) },
        ..Packet::default()
    };
    new.confidence = Some(input.confidence);
    new.priority = input.priority.unwrap_or_default();
    new.target = target_state;
    new.supersedes = input.supersedes.as_deref().map(|id| words::id("supersedes", id)).transpose()?;
    new.trust = trust;
    let made = request::submit(cx, new)?;
    answer.made(cx, &made, room)
}

impl Propose {
    /// The act that it is, as its input tells it.
    fn act(&self) -> Result<Act> {
        Ok(Act {
            kind: VERB.to_owned(),
            tool: "cowork_propose".to_owned(),
            domain: self.domain.clone(),
            environment: self.environment.clone().unwrap_or_default(),
            action: self.action.clone(),
            target: self.target.clone(),
            field: self.field.clone(),
            arguments: words::said("proposed_change", self.proposed_change.clone(), CHANGE_BYTES_MAX)?,
            cost: millionths("cost", self.cost)?,
            taint: self.taint.clone(),
            call: false,
            criteria: Some(self.criteria.clone()),
        })
    }
}

/// What an agent's proposal of this input would be answered; nothing is counted or kept.
pub(crate) fn foresee(cx: &mut Cx<'_, '_>, mut input: Value, who: &Requester) -> Result<(Act, Decision)> {
    if let Some(fields) = input.as_object_mut() {
        fields.remove("idempotency_key");
    }
    let input: Propose = serde_json::from_value(input).map_err(|error| Error::invalid("cowork_propose", error.to_string()))?;
    check(&input)?;
    let act = input.act()?;
    let decision = request::judge(cx, &act, who, false)?;
    Ok((act, decision))
}

fn check(input: &Propose) -> Result<()> {
    check_domain("domain", &input.domain)?;
    check_said("action", &input.action, TITLE_CHARS_MAX)?;
    check_text("target", &input.target, PATH_BYTES_MAX)?;
    check_share("confidence", input.confidence)?;
    check_text("reasoning", &input.reasoning, REASONING_BYTES_MAX)?;
    check_text("reversibility", input.reversibility.as_deref().unwrap_or_default(), REASONING_BYTES_MAX)?;
    for (field, name) in [("field", &input.field), ("environment", &input.environment)] {
        check_text(field, name.as_deref().unwrap_or_default(), NAME_CHARS_MAX)?;
    }
    if input.taint.len() > PACKET_ITEMS_MAX {
        return Err(Error::invalid("taint", format!("at most {PACKET_ITEMS_MAX} sources")));
    }
    for source in &input.taint {
        check_said("taint", source, NAME_CHARS_MAX)?;
    }
    if input.deadline_seconds == Some(0) {
        return Err(Error::invalid("deadline_seconds", "must be at least 1"));
    }
    criteria::check(&input.criteria)
}

/// Units as whole millionths.
pub(super) fn millionths(field: &str, units: Option<f64>) -> Result<i64> {
    let units = units.unwrap_or(0.0);
    if !(0.0..=1e9).contains(&units) {
        return Err(Error::invalid(field, "must be between 0 and 1000000000"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range was just checked")]
    let whole = (units * 1e6).round() as i64;
    Ok(whole)
}

/// A line for the inbox: what to what, in the agent's own words.
fn title(act: &Act) -> String {
    let title = if act.target.is_empty() { act.action.clone() } else { format!("{}: {}", act.action, act.target) };
    words::one_line(&title, TITLE_CHARS_MAX)
}

/// The unused grant of a request.
pub(super) fn grant_of(cx: &mut Cx<'_, '_>, request: &str) -> Result<Option<GrantOut>> {
    let row = cx.tx.optional(
        "select id, expires_at from act_grant where request = $1 and used_at is null and revoked_at is null and expires_at > $2 \
         order by granted_at desc, id desc limit 1",
        args![request, cx.now()],
    )?;
    row.map(|row| Ok(GrantOut { grant_id: row.get(0)?, expires_at: format_time(row.get(1)?) })).transpose()
}

/// Whether a request has a grant that nobody used and nobody took back, be it run out or not.
pub(super) fn has_unused_grant(cx: &mut Cx<'_, '_>, request: &str) -> Result<bool> {
    let sql = "select id from act_grant where request = $1 and used_at is null and revoked_at is null order by granted_at desc, id desc limit 1";
    Ok(cx.tx.optional(sql, args![request])?.is_some())
}

fn limited(full: &Full, verified: bool) -> Proposed {
    // The other limits count days and costs, and are told in words.
    let is_volume = matches!(full.why, Why::Domain | Why::Agent);
    Proposed {
        error: Some(true),
        volume_cap_error: Some(true),
        volume_cap: is_volume.then_some(full.cap),
        volume_remaining: is_volume.then_some(0),
        proposals_this_hour: is_volume.then_some(full.used),
        retry_after_ms: Some(full.retry_after_ms),
        message: format!("Nothing was proposed: {}. Ask again in {} seconds.", full.message(), full.retry_after_ms.div_ceil(1_000)),
        verified,
        ..Proposed::default()
    }
}

impl Proposed {
    /// What policy said.
    fn show(&mut self, decision: &Decision, rulebook: &policy::Rulebook) {
        self.mode = Some(decision.mode);
        self.high_risk_field = Some(decision.high_risk_field);
        self.warnings = decision.warnings().map(Violation::of).collect();
        self.policy_warnings = Some(self.warnings.len());
        self.policy_rules_checked = Some(decision.rules_checked);
        self.mapping_found = Some(decision.mapping_found);
        if let Some(applied) = decision.policies.first() {
            self.policy_id = Some(applied.policy.clone());
            self.policy_version = Some(applied.version);
            self.policy_description = rulebook.policy(&applied.policy).map(|(policy, _)| policy.description.clone()).filter(|text| !text.is_empty());
        }
    }

    fn denied(mut self, decision: &Decision) -> Self {
        self.violations = violations(decision);
        self.alternative = self.violations.iter().find_map(|violation| violation.alternative.clone());
        self.error = Some(true);
        self.policy_error = Some(true);
        let why: Vec<&str> = self.violations.iter().map(|violation| violation.reason.as_str()).collect();
        self.message = format!("This must not be done: {}. The attempt is on the record.", why.join("; "));
        self
    }

    fn made(mut self, cx: &mut Cx<'_, '_>, made: &Request, room: Room) -> Result<Self> {
        self.grant = if made.state == State::Approved { grant_of(cx, &made.id)? } else { None };
        self.proposal_id = Some(made.id.clone());
        self.action_id = Some(made.id.clone());
        self.request_id = Some(made.id.clone());
        self.digest = Some(made.digest_hex());
        self.volume_remaining = Some(room.remaining);
        self.volume_cap = Some(room.cap);
        let (message, next) = match (&self.grant, self.mode) {
            (Some(grant), _) => (
                format!("You may do exactly this now, once, until {}.", grant.expires_at),
                format!("do it, then call cowork_log with proposal_id {} and outcome done, failed or ambiguous", made.id),
            ),
            (None, Some(Mode::Escalate)) => (self.why_escalated(), waiting(&made.id)),
            (None, _) => ("A person has to approve this before you do it.".to_owned(), waiting(&made.id)),
        };
        if self.grant.is_none() {
            self.expires_at = Some(format_time(made.expires_at));
        }
        self.message = message;
        self.next = Some(next);
        Ok(self)
    }

    fn why_escalated(&self) -> String {
        let why = if self.mapping_found == Some(false) && self.policy_id.is_none() { " No policy is mapped to you and this domain." } else { "" };
        format!("A person has to look at this before anything is done.{why}")
    }
}

/// Whether nothing but a limit stands against an act: that is no fault of the act, and passes.
fn is_only_limited(decision: &Decision) -> bool {
    decision.hard_stops().next().is_none() && decision.reasons.iter().filter(|reason| reason.mode == Mode::Deny).all(|reason| reason.source == "limit")
}

/// What forbids an act: its rules, or what else makes the answer no.
pub(super) fn violations(decision: &Decision) -> Vec<Violation> {
    let rules: Vec<Violation> = decision.hard_stops().map(Violation::of).collect();
    if !rules.is_empty() {
        return rules;
    }
    let others = decision.reasons.iter().filter(|reason| reason.mode == Mode::Deny);
    let of = |reason: &policy::Reason| Violation {
        rule_id: reason.source.clone(),
        reason: reason.text.clone(),
        field: None,
        severity: "hard_stop".to_owned(),
        policy_id: None,
        policy_version: None,
        alternative: None,
    };
    others.map(of).collect()
}

fn waiting(id: &str) -> String {
    format!("call cowork_wait_for_decision with request_id {id}; it holds up to 25 seconds and says how it stands")
}
