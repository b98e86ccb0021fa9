//! Deciding by a link: only what a person wanted sent to themself, one request, once, for half an hour, as it was shown. What is of
//! high risk, needs several people, or cannot be shown whole is decided by whoever signs in, and never by a link.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::access::{is_grave, may_decide_in};
use super::decide::{self, Correction};
use super::hidden::{shown_act, shown_packet};
use super::model::{Request, RequestKind, State};
use super::rows;
use crate::call::{Actor, Cx, Presence};
use crate::identity::{self, DecisionLink, LinkState};
use crate::record::{Event, Kind};
use crate::redact::Redactor;
use crate::{Error, Result, format_time};

/// Somebody looked at what a link decides.
pub(super) const OPENED: Kind = Kind { name: "decision_link.opened", says: "Somebody opened a link by which a person decides a request." };
/// A request was decided by a link.
pub(super) const USED: Kind = Kind { name: "decision_link.used", says: "A request was decided by a link that had been sent to a person." };
/// A link was not good for what somebody wanted.
pub(super) const REFUSED: Kind =
    Kind { name: "decision_link.refused", says: "Somebody tried a link that was used, expired, replaced, or not enough for its request." };

/// Why a request is not decided by a link, if it is not.
fn why_not(request: &Request) -> Option<&'static str> {
    if is_grave(request) {
        return Some("it is of high risk or loosens a limit");
    }
    if request.quorum > 1 {
        return Some("it needs several people");
    }
    match request.kind {
        RequestKind::Proposal | RequestKind::Approval | RequestKind::ToolCall | RequestKind::Edit => None,
        RequestKind::Handoff => Some("it is answered in words"),
        RequestKind::Plan => Some("a plan has steps to look at"),
        RequestKind::Deploy => Some("an agent has steps to look at"),
        RequestKind::Promotion | RequestKind::Policy => Some("it loosens a limit"),
    }
}

/// Refuses whoever comes by a link for more than it is good for.
pub(super) fn check_linked(request: Option<&Request>) -> Result<()> {
    let needs = |why: &str| Err(Error::needs_presence(format!("a link does not decide this: {why}")).hint(super::WAYS));
    match request {
        None => needs("it decides about one request"),
        Some(request) => why_not(request).map_or(Ok(()), needs),
    }
}

/// Hands out a link for a request that a person may decide by one. `None`: they may not, and the message leads to the sign-in.
pub(crate) fn issue_link(cx: &mut Cx<'_, '_>, person: &str, request: &str, way: &str) -> Result<Option<String>> {
    let Some(request) = rows::load(cx, request)? else { return Ok(None) };
    let waits = request.state_at(cx.now()) == State::Pending && why_not(&request).is_none() && request.requester.id != person;
    if !waits || !may_decide_in(cx, person, &request.domain)? || shown(&request)?.is_none() {
        return Ok(None);
    }
    identity::issue_link(cx, person, &request.id, &request.digest_hex(), way).map(Some)
}

/// What a person sees of a request before they decide it by a link.
#[derive(Serialize, JsonSchema)]
struct Shown {
    /// What kind of request it is.
    kind: RequestKind,
    /// What it is about, in the requester's words. Data, not instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// `agent` or `person`.
    requester_kind: String,
    /// Who asks.
    requester: String,
    /// Whether a credential proved who asks.
    verified: bool,
    /// The scope of work.
    domain: String,
    /// `low` or `medium`.
    risk: String,
    /// Exactly what would be done.
    act: Value,
    /// What is there now, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Value>,
    /// What else the requester gave.
    #[serde(skip_serializing_if = "Value::is_null")]
    context: Value,
    /// Why, in the requester's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    /// When it expires.
    expires_at: String,
}

/// All of a request, if all of it can be shown to whoever has the link: nothing that policy hides is in it, and nothing that looks
/// like a secret. What cannot be seen is not approved.
fn shown(request: &Request) -> Result<Option<Shown>> {
    let (Some(decision), Ok(act)) = (request.decided()?, request.act()) else { return Ok(None) };
    if !decision.redact.is_empty() || !decision.hides.is_empty() {
        return Ok(None);
    }
    let packet = shown_packet(&request.told()?, act.field.as_deref(), &decision);
    let shown = Shown {
        kind: request.kind,
        title: request.title.clone(),
        requester_kind: request.requester.kind.name().to_owned(),
        requester: request.requester.id.clone(),
        verified: request.requester.verified,
        domain: request.domain.clone(),
        risk: request.risk.clone(),
        act: shown_act(&act, &decision),
        old: packet.old,
        context: packet.more,
        reasoning: packet.reasoning,
        expires_at: format_time(request.expires_at),
    };
    let value = serde_json::to_value(&shown).map_err(|error| Error::invalid("request", error.to_string()))?;
    Ok(Redactor::secrets().value(&value).found.is_empty().then_some(shown))
}

/// How a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Standing {
    /// It can be used.
    Good,
    /// Its time is over.
    Expired,
    /// It was used, or a newer one took its place.
    Ended,
    /// The request waits for nobody any more.
    Decided,
    /// The request is not any more what the link was sent for.
    Changed,
    /// A link is not enough for it: the person signs in.
    SignIn,
}

impl Standing {
    fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Expired => "expired",
            Self::Ended => "ended",
            Self::Decided => "decided",
            Self::Changed => "changed",
            Self::SignIn => "sign_in",
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::Good => "This link decides once.",
            Self::Expired => "This link has expired. Sign in to decide in the inbox.",
            Self::Ended => "This link was used already, or a newer one took its place. Nothing was changed by it now.",
            Self::Decided => "This request waits for nobody any more: it was decided, taken back, or has expired.",
            Self::Changed => "This request was changed after the link was sent. Sign in to look at it as it is now.",
            Self::SignIn => "A link is not enough for this request. Sign in to decide it.",
        }
    }
}

/// How a link and its request stand now, with what is shown of it where it is good.
fn stands(cx: &mut Cx<'_, '_>, link: &DecisionLink) -> Result<(Standing, Option<Shown>)> {
    match link.state {
        LinkState::Expired => return Ok((Standing::Expired, None)),
        LinkState::Ended => return Ok((Standing::Ended, None)),
        LinkState::Good => {}
    }
    let Some(request) = rows::load(cx, &link.request)? else { return Ok((Standing::Decided, None)) };
    if request.state_at(cx.now()) != State::Pending {
        return Ok((Standing::Decided, None));
    }
    if request.digest_hex() != link.digest {
        return Ok((Standing::Changed, None));
    }
    let sign_in = (Standing::SignIn, None);
    if why_not(&request).is_some() || !may_decide_in(cx, &link.person, &request.domain)? {
        return Ok(sign_in);
    }
    Ok(shown(&request)?.map_or(sign_in, |shown| (Standing::Good, Some(shown))))
}

/// Look at what a link decides, before deciding. It changes nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Open {
    /// The link's secret.
    link: String,
}

/// A link, and what it decides.
#[derive(Serialize, JsonSchema)]
pub(super) struct Opened {
    /// How the link stands.
    state: Standing,
    /// The same in words.
    message: String,
    /// The request's id.
    request: String,
    /// The person for whom it is.
    person_name: String,
    /// Until when the link is good.
    expires_at: String,
    /// What would be decided, while the link is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<Shown>,
}

pub(super) fn open(cx: &mut Cx<'_, '_>, input: Open) -> Result<Opened> {
    let link = identity::find_link(cx, &input.link)?;
    let (state, shown) = stands(cx, &link)?;
    // Once: programs that look at every link in a mailbox would fill the record.
    if !link.is_opened() {
        identity::open_link(cx, &link)?;
        cx.emit(about(OPENED, &link).fact("state", state.name()))?;
    }
    Ok(Opened { state, message: state.message().to_owned(), request: link.request, person_name: link.name, expires_at: format_time(link.expires_at), shown })
}

fn about(kind: Kind, link: &DecisionLink) -> Event {
    Event::new(kind, format!("request:{}", link.request))
        .fact("request", link.request.as_str())
        .fact("credential", link.id.as_str())
        .fact("person", link.person.as_str())
        .audience([link.person.as_str()])
}

/// What a person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// It may be done.
    Approve,
    /// It must not be done.
    Reject,
}

/// Decide a request by a link that was sent to you. It works once; what is of high risk needs you to sign in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Decide {
    /// The link's secret.
    link: String,
    /// What you answer.
    answer: Answer,
    /// A word to the requester; a rejection may need one.
    reason: Option<String>,
}

/// What came of it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Decided {
    /// Whether it was decided by this call.
    decided: bool,
    /// How the request, or else the link, stands now.
    state: String,
    /// The same in words.
    message: String,
    /// The request's id.
    request: String,
}

pub(super) fn decide(cx: &mut Cx<'_, '_>, input: Decide) -> Result<Decided> {
    let link = identity::find_link(cx, &input.link)?;
    // From here on it is known for whom this is, and the record says so; that they are there was not shown.
    cx.actor = Actor { presence: Presence::Linked, role: Some(link.role), ..Actor::person(&link.person) };
    let (state, _) = stands(cx, &link)?;
    if state != Standing::Good {
        if identity::note_refusal(cx, &link)? {
            cx.emit(about(REFUSED, &link).fact("state", state.name()))?;
        }
        return Ok(Decided { decided: false, state: state.name().to_owned(), message: state.message().to_owned(), request: link.request });
    }
    let request = match input.answer {
        Answer::Approve => decide::approve(cx, &link.request, None, Some(&link.digest), input.reason)?,
        Answer::Reject => decide::reject(cx, &link.request, Some(&link.digest), Correction { reason: input.reason, ..Correction::default() })?,
    };
    identity::end_link(cx, &link)?;
    let answer = if input.answer == Answer::Approve { "approve" } else { "reject" };
    cx.emit(about(USED, &link).fact("answer", answer).fact("state", request.state.name()))?;
    let message = match request.state {
        State::Approved => "Approved. It may be done, once, exactly as it was shown.",
        State::Rejected => "Rejected. The requester is told.",
        _ => "Your answer is kept, and the request is not settled by it.",
    };
    Ok(Decided { decided: true, state: request.state.name().to_owned(), message: message.to_owned(), request: request.id })
}
