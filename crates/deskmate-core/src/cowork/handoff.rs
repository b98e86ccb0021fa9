//! Handing work to people, and hearing what they say. A handoff is a request whose answer is instructions.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::instruction::{self, INSTRUCTIONS_MAX};
use super::show::find;
use super::words::{self, NOTICE, check_domain, check_said, check_share};
use crate::call::Cx;
use crate::limits::{CHANGE_BYTES_MAX, NAME_CHARS_MAX, PACKET_ITEMS_MAX, PAGE_BYTES_MAX, REASONING_BYTES_MAX, TITLE_CHARS_MAX};
use crate::policy::settings::{ContextFormat, HandoffSettings};
use crate::policy::{self, Act, Decision, Mode};
use crate::request::{self, Judged, New, Packet, Priority, Request, RequestKind, Requester, State};
use crate::{Error, Result, check_text, format_time};

/// The longest that a handoff may wait before it goes to the owners: thirty days.
const TIMEOUT_SECONDS_MAX: u32 = 30 * 24 * 3_600;

/// How a person comes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum HandoffMode {
    /// A person decides what happens.
    #[default]
    Escalate,
    /// A person looks at what was done.
    Review,
    /// Person and agent go on together.
    Collaborate,
    /// A person does it, under the agent's plan.
    Delegate,
    /// A person takes it over for good.
    Takeover,
}

impl HandoffMode {
    fn name(self) -> &'static str {
        match self {
            Self::Escalate => "escalate",
            Self::Review => "review",
            Self::Collaborate => "collaborate",
            Self::Delegate => "delegate",
            Self::Takeover => "takeover",
        }
    }

    fn asks_for(self) -> &'static str {
        match self {
            Self::Escalate => "asks you to decide what happens next",
            Self::Review => "asks you to look at what it did",
            Self::Collaborate => "asks you to go on together with it",
            Self::Delegate => "asks you to do it, under its plan",
            Self::Takeover => "asks you to take it over",
        }
    }
}

/// Hand a piece of work to a person, with everything they need to go on. Their answer comes through
/// cowork_check_handoff until you acknowledge it; cowork_wait_for_decision waits for it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HandOff {
    /// The scope of work, such as `crm.deals`.
    domain: String,
    /// Why you hand it over.
    reason: String,
    /// How sure you are, between 0 and 1.
    confidence: f64,
    /// What you tried, as a JSON array in text.
    #[schemars(with = "String")]
    attempted_actions: Value,
    /// Whatever else a person needs, as JSON text.
    #[schemars(with = "String")]
    context: Value,
    /// How a person comes in; `escalate` if not given.
    handoff_mode: Option<HandoffMode>,
    /// What was to be reached.
    goal: Option<String>,
    /// How things stand now, as JSON text or in words.
    #[schemars(with = "Option<String>")]
    state: Option<Value>,
    /// What you found out not to work, and why; at most 100.
    #[serde(default)]
    ruled_out: Vec<String>,
    /// Requests of yours that still wait and belong to this; at most 100.
    #[serde(default)]
    open_requests: Vec<String>,
    /// A proposal that this is about.
    proposal_id: Option<String>,
    /// How urgent it is; `normal` if not given.
    priority: Option<Priority>,
    /// The person who is asked first, by name or id; somebody who decides in the domain.
    assignee: Option<String>,
    /// After how many seconds without an answer it goes to the owners; as the desk is set if not given.
    timeout_seconds: Option<u32>,
}

/// What was handed over.
#[derive(Serialize, JsonSchema)]
pub(super) struct HandedOff {
    /// The handoff's id.
    handoff_id: String,
    /// The id under which it is in people's inbox; the same.
    request_id: String,
    /// How a person comes in.
    mode: HandoffMode,
    /// What the person is shown.
    context_packet: Value,
    /// A sentence for the person.
    for_human: String,
    /// In words, for you.
    message: String,
    /// When it goes to the owners if nobody answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    escalates_at: Option<String>,
    /// When it expires if nobody answers at all.
    expires_at: String,
    /// The proposal that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal_id: Option<String>,
    /// What to call next.
    next: String,
}

pub(super) fn hand_off(cx: &mut Cx<'_, '_>, input: HandOff) -> Result<HandedOff> {
    if !cx.actor.is_agent() {
        return Err(Error::forbidden("only agents hand work over here").hint("a person gives work to others with bridge_create_task"));
    }
    check_domain("domain", &input.domain)?;
    check_said("reason", &input.reason, REASONING_BYTES_MAX)?;
    check_share("confidence", input.confidence)?;
    let timeout = input.timeout_seconds;
    if timeout.is_some_and(|seconds| seconds == 0 || seconds > TIMEOUT_SECONDS_MAX) {
        return Err(Error::invalid("timeout_seconds", format!("must be between 1 and {TIMEOUT_SECONDS_MAX}")));
    }
    let mode = input.handoff_mode.unwrap_or_default();
    let rulebook = policy::current(cx)?;
    let settings = &rulebook.settings(&input.domain).handoff;
    let proposal = input.proposal_id.as_deref().map(|id| find(cx, "proposal_id", id)).transpose()?.map(|request| request.id);
    let assignee = input.assignee.as_deref().map(|who| person(cx, who, &input.domain)).transpose()?;
    let parts = Parts {
        mode,
        reason: input.reason,
        confidence: input.confidence,
        tried: words::said_list("attempted_actions", input.attempted_actions, CHANGE_BYTES_MAX)?,
        context: words::said("context", input.context, CHANGE_BYTES_MAX)?,
        goal: input.goal,
        state: input.state.map(|state| words::said("state", state, CHANGE_BYTES_MAX)).transpose()?,
        ruled_out: input.ruled_out,
        open_requests: open_requests(cx, &input.open_requests)?,
        proposal: proposal.clone(),
    };
    parts.check()?;
    let packet = parts.packet(settings);
    let act = Act {
        kind: request::HANDOFF.to_owned(),
        tool: "cowork_handoff".to_owned(),
        domain: input.domain,
        action: mode.name().to_owned(),
        target: proposal.clone().unwrap_or_default(),
        arguments: packet.clone(),
        ..Act::default()
    };
    let decision = may_hand_off(cx, &act)?;
    let why = if settings.include_reasoning { words::one_line(&parts.reason, TITLE_CHARS_MAX / 2) } else { "it does not say why".to_owned() };
    let for_human = format!("{} {}: {why}", cx.actor.id, mode.asks_for());
    let title = if settings.include_reasoning { why } else { words::one_line(&for_human, TITLE_CHARS_MAX) };
    let mut new = New::new(RequestKind::Handoff, title, act, decision).escalating(timeout.unwrap_or(settings.timeout_seconds));
    new.packet = Packet { reasoning: Some(parts.reason.clone()).filter(|_| settings.include_reasoning), more: packet.clone(), ..Packet::default() };
    new.confidence = Some(input.confidence).filter(|_| settings.include_confidence);
    new.priority = input.priority.unwrap_or_default();
    new.assignee = assignee;
    let request = request::submit(cx, new)?;
    Ok(HandedOff {
        for_human,
        message: "A person was asked. What they say comes through cowork_check_handoff until you acknowledge it.".to_owned(),
        next: format!("call cowork_wait_for_decision with request_id {}, or cowork_check_handoff later", request.id),
        mode,
        context_packet: packet,
        escalates_at: request.escalate_at.map(format_time),
        expires_at: format_time(request.expires_at),
        proposal_id: proposal,
        request_id: request.id.clone(),
        handoff_id: request.id,
    })
}

/// Whether the caller may ask people now: not while it is paused or was denied too much lately, nor against a rule that names handoffs.
fn may_hand_off(cx: &mut Cx<'_, '_>, act: &Act) -> Result<Decision> {
    let who = Requester::of(&cx.actor);
    let Judged { decision, gauge, .. } = request::judge_handoff(cx, act, &who)?;
    if let Some(held) = gauge.as_ref().and_then(|gauge| gauge.held.as_ref()) {
        return Err(held.error());
    }
    if decision.mode != Mode::Deny {
        return Ok(decision);
    }
    if gauge.is_some_and(|gauge| gauge.paused) {
        // Surfaces count such refusals, and each one is no news.
        let why = "you are paused, and nothing of yours reaches people until a person ends that";
        return Err(Error::forbidden(why).hint("stop here; a person lets you go on"));
    }
    let error = match decision.hard_stops().next() {
        Some(hit) => Error::forbidden(hit.reason.clone()).hint(hit.alternative.clone().unwrap_or_else(|| "a person has to come by themselves".to_owned())),
        None => Error::forbidden("this cannot be handed over now"),
    };
    Err(request::refused(cx, who, act, decision, error))
}

/// A person by name or id, who can answer in a domain.
fn person(cx: &mut Cx<'_, '_>, who: &str, domain: &str) -> Result<String> {
    check_said("assignee", who, NAME_CHARS_MAX)?;
    let row = cx.tx.optional("select id from person where (id = $1 or name = $1) and state = 'active' order by id limit 1", args![who])?;
    let unknown = || Error { field: Some("assignee".to_owned()), ..Error::not_found(format!("no person here is called {who}")) };
    let id: String = row.ok_or_else(unknown)?.get(0)?;
    if !request::may_decide_in(cx, &id, domain)? {
        return Err(Error::invalid("assignee", format!("nobody of this name decides in {domain}")));
    }
    Ok(id)
}

/// Requests of the caller's own that it says still wait; each is shown with how it stands.
fn open_requests(cx: &mut Cx<'_, '_>, ids: &[String]) -> Result<Vec<Value>> {
    if ids.len() > PACKET_ITEMS_MAX {
        return Err(Error::invalid("open_requests", format!("at most {PACKET_ITEMS_MAX}")));
    }
    let now = cx.now();
    let mut shown = Vec::new();
    for id in ids {
        let request = find(cx, "open_requests", id)?;
        shown.push(json!({ "request_id": request.id, "state": request.state_at(now), "title": request.title }));
    }
    Ok(shown)
}

/// What a packet is made of.
struct Parts {
    mode: HandoffMode,
    reason: String,
    confidence: f64,
    tried: Vec<Value>,
    context: Value,
    goal: Option<String>,
    state: Option<Value>,
    ruled_out: Vec<String>,
    open_requests: Vec<Value>,
    proposal: Option<String>,
}

impl Parts {
    fn check(&self) -> Result<()> {
        check_text("goal", self.goal.as_deref().unwrap_or_default(), REASONING_BYTES_MAX)?;
        if self.ruled_out.len() > PACKET_ITEMS_MAX {
            return Err(Error::invalid("ruled_out", format!("at most {PACKET_ITEMS_MAX}")));
        }
        self.ruled_out.iter().try_for_each(|item| check_text("ruled_out", item, REASONING_BYTES_MAX))
    }

    /// The packet under the desk's settings: what they leave out is not in it, and as text it is one text.
    fn packet(&self, settings: &HandoffSettings) -> Value {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                fields.insert(name.to_owned(), value);
            }
        };
        put("mode", json!(self.mode));
        put("goal", json!(self.goal));
        put("state", json!(self.state));
        if settings.include_attempted {
            put("tried", json!(self.tried));
            put("ruled_out", if self.ruled_out.is_empty() { Value::Null } else { json!(self.ruled_out) });
        }
        put("open_requests", if self.open_requests.is_empty() { Value::Null } else { json!(self.open_requests) });
        put("proposal_id", json!(self.proposal));
        if settings.include_confidence {
            put("confidence", json!(self.confidence));
        }
        if settings.include_reasoning {
            put("reasoning", json!(self.reason));
        }
        put("context", self.context.clone());
        match settings.context_format {
            ContextFormat::Structured => Value::Object(fields),
            ContextFormat::Text => json!({ "text": in_words(&fields) }),
        }
    }
}

/// A packet as one text, a line for each field.
fn in_words(fields: &Map<String, Value>) -> String {
    let line = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}: {text}"),
        other => format!("{name}: {other}"),
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// See what people said to what you handed over, and what still waits for them. Instructions come again until you
/// acknowledge them with cowork_acknowledge_instructions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckHandoff {
    /// Only this domain.
    domain: Option<String>,
}

/// What a person said.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct PendingInstruction {
    /// The instruction's id, for cowork_acknowledge_instructions.
    instruction_id: String,
    /// The handoff that it answers.
    handoff_id: String,
    /// The scope of work.
    domain: String,
    /// When it was said.
    resolved_at: String,
    /// Who said it; absent where nobody did, as when it expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_by: Option<String>,
    /// What was decided: the person's words, or that nobody answered.
    resolution: Option<String>,
    /// What you are to do, or null when there is nothing.
    instructions: Option<String>,
    /// Whether the work comes back to you.
    hand_back: bool,
    /// Why you had handed it over.
    original_reason: Option<String>,
    /// Which of those about this handoff it is, counted from 1; the highest is what holds.
    number: i64,
}

/// Something that you handed over and that is not closed for you.
#[derive(Serialize, JsonSchema)]
pub(super) struct PendingHandoff {
    /// Its id.
    handoff_id: String,
    /// The scope of work.
    domain: String,
    /// `waiting` for a person, `asked_back`; or `resolved`, `rejected` or `expired`, and not acknowledged.
    status: &'static str,
    /// How urgent it is.
    priority: String,
    /// Who is asked first.
    #[serde(skip_serializing_if = "Option::is_none")]
    assignee: Option<String>,
    /// When you handed it over.
    created_at: String,
    /// When it expires if nobody answers.
    expires_at: String,
    /// What was said to it and is not acknowledged, oldest first.
    instructions: Vec<PendingInstruction>,
}

/// What people said, and what waits for them.
#[derive(Serialize, JsonSchema)]
pub(super) struct Checked {
    /// How to treat texts below.
    notice: &'static str,
    /// What people said and you did not acknowledge, oldest first; plain resolutions too.
    pending_instructions: Vec<PendingInstruction>,
    /// What you handed over and is not closed for you: what waits for a person, and what was answered.
    pending_handoffs: Vec<PendingHandoff>,
    /// How many instructions there are.
    count: usize,
    /// True when more wait than this answer holds: acknowledge these, and ask again.
    more: bool,
    /// True when more handoffs wait for people than this answer names: ask for one domain.
    more_handoffs: bool,
    /// In words.
    message: String,
}

/// How many handoffs that wait one answer names.
const OPEN_MAX: u32 = 200;
const OPEN: &str = "select id from request where requester = $1 and kind = 'handoff' and state = 'pending' order by created_at, id limit $2";
const OPEN_IN: &str = "select id from request where requester = $1 and kind = 'handoff' and state = 'pending' and domain = $3 order by created_at, id limit $2";

pub(super) fn check(cx: &mut Cx<'_, '_>, input: CheckHandoff) -> Result<Checked> {
    if let Some(domain) = &input.domain {
        check_domain("domain", domain)?;
    }
    let (me, now) = (cx.actor.id.clone(), cx.now());
    let (mut instructions, mut bytes, mut more): (Vec<PendingInstruction>, usize, bool) = (Vec::new(), 0, false);
    let mut handoffs: Vec<PendingHandoff> = Vec::new();
    let mut waiting = instruction::waiting(cx.tx, &me, input.domain.as_deref())?;
    if waiting.len() > INSTRUCTIONS_MAX {
        more = true;
        waiting.truncate(INSTRUCTIONS_MAX);
    }
    for row in waiting {
        bytes += [&row.resolution, &row.instructions].into_iter().flatten().map(String::len).sum::<usize>();
        if bytes > PAGE_BYTES_MAX / 2 && !instructions.is_empty() {
            more = true;
            break;
        }
        let Some(request) = request::find(cx, &row.request)? else { continue };
        let said = PendingInstruction {
            instruction_id: row.id,
            handoff_id: row.request,
            domain: row.domain,
            resolved_at: format_time(row.created_at),
            resolved_by: row.person.or_else(|| request.decided_by.clone()),
            resolution: row.resolution,
            instructions: row.instructions,
            hand_back: row.hand_back,
            original_reason: reason_of(&request)?,
            number: row.number,
        };
        match handoffs.iter_mut().find(|handoff| handoff.handoff_id == request.id) {
            Some(handoff) => handoff.instructions.push(said.clone()),
            None => handoffs.push(PendingHandoff { instructions: vec![said.clone()], ..PendingHandoff::of(&request, ended(&request)) }),
        }
        instructions.push(said);
    }
    let open = match &input.domain {
        None => cx.tx.query(OPEN, args![me, OPEN_MAX + 1])?,
        Some(domain) => cx.tx.query(OPEN_IN, args![me, OPEN_MAX + 1, domain])?,
    };
    let mut open: Vec<String> = open.iter().map(|row| row.get(0)).collect::<deskmate_db::Result<_>>()?;
    let more_handoffs = open.len() > OPEN_MAX as usize;
    open.truncate(OPEN_MAX as usize);
    for id in open {
        let Some(request) = request::find(cx, &id)? else { continue };
        let status = match request.state_at(now) {
            State::Expired => "expired",
            _ if request.asked_at.is_some() => "asked_back",
            _ => "waiting",
        };
        handoffs.push(PendingHandoff::of(&request, status));
    }
    let count = instructions.len();
    let message = match count {
        0 => "Nothing new was said to you.".to_owned(),
        _ => format!("{count} answers wait. Acknowledge them with cowork_acknowledge_instructions once you have taken them in."),
    };
    Ok(Checked { notice: NOTICE, pending_instructions: instructions, pending_handoffs: handoffs, count, more, more_handoffs, message })
}

/// How a handoff ended.
fn ended(request: &Request) -> &'static str {
    match request.state {
        State::Rejected => "rejected",
        State::Expired => "expired",
        _ => "resolved",
    }
}

/// Why something was handed over, unless that was erased or left out.
pub(super) fn reason_of(request: &Request) -> Result<Option<String>> {
    Ok(request.told()?.reasoning.or_else(|| request.title.clone()))
}

impl PendingHandoff {
    fn of(request: &Request, status: &'static str) -> Self {
        Self {
            handoff_id: request.id.clone(),
            domain: request.domain.clone(),
            status,
            priority: request.priority.name().to_owned(),
            assignee: request.assignee.clone(),
            created_at: format_time(request.created_at),
            expires_at: format_time(request.expires_at),
            instructions: Vec::new(),
        }
    }
}
