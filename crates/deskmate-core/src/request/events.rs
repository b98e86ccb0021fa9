//! What requests tell the record. Every event of a request repeats its whole row, texts aside, so that the row can be
//! rebuilt from the newest one, and a row that somebody changed behind the desk's back is noticed before it is used.

use serde_json::{Map, Value};

use super::keep::{Kept, keep};
use super::model::{Request, State};
use super::rows;
use crate::call::Cx;
use crate::record::{self, Event, Kind};
use crate::{Error, Result, hex};

pub(super) const CREATED: Kind = Kind { name: "request.created", says: "Something was asked of people, or passed at once because policy lets it." };
pub(super) const VOTED: Kind = Kind { name: "request.voted", says: "A person approved a request that needs more people." };
pub(super) const EDITED: Kind = Kind { name: "request.edited", says: "A person changed what a request would do; earlier votes are void." };
pub(super) const APPROVED: Kind = Kind { name: "request.approved", says: "A request was approved." };
pub(super) const REJECTED: Kind = Kind { name: "request.rejected", says: "A person rejected a request." };
pub(super) const EXPIRED: Kind = Kind { name: "request.expired", says: "Nobody decided a request in time." };
pub(super) const CANCELLED: Kind = Kind { name: "request.cancelled", says: "The requester, or the desk, took a request back." };
pub(super) const SUPERSEDED: Kind = Kind { name: "request.superseded", says: "A newer request stands in the place of this one." };
pub(super) const ASKED: Kind = Kind { name: "request.asked", says: "A person asked the requester something before deciding." };
pub(super) const ANSWERED: Kind = Kind { name: "request.answered", says: "The requester answered a question; the request waits for people again." };
pub(super) const UNASKED: Kind =
    Kind { name: "request.unasked", says: "A person took a question back; the request waits for people again, without an answer." };
pub(super) const DELEGATED: Kind = Kind { name: "request.delegated", says: "A request was given to a person." };
pub(super) const RETURNED: Kind = Kind { name: "request.returned", says: "A request that was given to somebody is nobody's in particular any more." };
pub(super) const SNOOZED: Kind = Kind { name: "request.snoozed", says: "A request was put off, or taken up again." };
pub(super) const ESCALATED: Kind =
    Kind { name: "request.escalated", says: "A request waited too long; its priority rose and it went to the owners, or to whom policy names." };
pub(super) const UNDONE: Kind = Kind { name: "request.undone", says: "An approval was taken back before it was used; the request waits for people again." };
pub(super) const STOPPED: Kind = Kind { name: "request.stopped", says: "An approved act was stopped when it was about to begin." };
pub(super) const STARTED: Kind = Kind { name: "request.started", says: "What was approved is being done." };
pub(super) const FINISHED: Kind = Kind { name: "request.finished", says: "What was approved was done, failed, or has an outcome that is not known." };
pub(super) const DENIED: Kind = Kind { name: "act.denied", says: "An intended act was denied." };
pub(super) const QUESTIONED: Kind = Kind { name: "act.questioned", says: "An agent asked about an act that policy forbids, without proposing it." };
pub(super) const GRANTED: Kind = Kind { name: "grant.issued", says: "A single-use permission for exactly what was approved was given." };
pub(super) const USED: Kind = Kind { name: "grant.used", says: "A grant was used up." };
pub(super) const REVOKED: Kind = Kind { name: "grant.revoked", says: "A grant was revoked before it was used." };
pub(super) const REFUSED: Kind = Kind { name: "grant.refused", says: "A grant was refused because a row differs from what the record tells." };
pub(super) const STANDING: Kind = Kind { name: "standing_approval.given", says: "A person approved acts like one that they saw, for a while." };
pub(super) const STANDING_ENDED: Kind = Kind { name: "standing_approval.revoked", says: "A person ended a standing approval." };

/// The facts that every event of a request carries.
pub(super) const ROW: [&str; 33] = [
    "request",
    "request_kind",
    "state",
    "requester_kind",
    "requester",
    "verified",
    "domain",
    "rank",
    "mode",
    "risk",
    "assignee",
    "quorum",
    "snoozed_until",
    "asked_at",
    "expires_at",
    "escalate_at",
    "created_at",
    "updated_at",
    "decided_at",
    "decided_by",
    "edited_by",
    "finished_at",
    "version",
    "round",
    "supersedes",
    "batch",
    "confidence",
    "rulebook",
    "digest",
    "texts",
    "kept",
    "asked_by",
    "overdue_since",
];

/// What the record told of a row's texts, for where they are gone.
#[derive(Clone, Debug, Default)]
pub(super) struct ToldTexts {
    texts: Option<String>,
    kept: Option<String>,
}

impl ToldTexts {
    /// What some facts tell.
    pub(super) fn of(facts: &Map<String, Value>) -> Self {
        let text = |name: &str| facts.get(name).and_then(Value::as_str).map(str::to_owned);
        Self { texts: text("texts"), kept: text("kept") }
    }
}

/// A request's row as facts, in the order of [`ROW`]; what is not there is left out. `texts` and `kept` come from the texts
/// themselves, or, once they were erased, from what was told.
pub(super) fn facts(request: &Request, told: &ToldTexts) -> Result<Map<String, Value>> {
    let texts = match request.texts_digest()? {
        Some(digest) => Some(hex(&digest)),
        None => told.texts.clone(),
    };
    let kept = match &request.kept {
        Kept::Gone => told.kept.clone(),
        kept => kept.digest(),
    };
    let values: [Value; 33] = [
        Value::from(request.id.as_str()),
        Value::from(request.kind.name()),
        Value::from(request.state.name()),
        Value::from(request.requester.kind.name()),
        Value::from(request.requester.id.as_str()),
        Value::from(request.requester.verified),
        Value::from(request.domain.as_str()),
        Value::from(request.priority.rank()),
        Value::from(request.mode.as_str()),
        Value::from(request.risk.as_str()),
        Value::from(request.assignee.clone()),
        Value::from(request.quorum),
        Value::from(request.snoozed_until),
        Value::from(request.asked_at),
        Value::from(request.expires_at),
        Value::from(request.escalate_at),
        Value::from(request.created_at),
        Value::from(request.updated_at),
        Value::from(request.decided_at),
        Value::from(request.decided_by.clone()),
        Value::from(request.edited_by.clone()),
        Value::from(request.finished_at),
        Value::from(request.version),
        Value::from(request.round),
        Value::from(request.supersedes.clone()),
        Value::from(request.batch.clone()),
        Value::from(request.confidence),
        Value::from(request.rulebook.as_str()),
        Value::from(request.digest_hex()),
        Value::from(texts),
        Value::from(kept),
        Value::from(request.asked_by.clone()),
        Value::from(request.overdue_since),
    ];
    Ok(ROW.into_iter().map(str::to_owned).zip(values).filter(|(_, value)| !value.is_null()).collect())
}

/// The row's facts of an event, in the same form.
pub(super) fn facts_of(body: &record::Body) -> Map<String, Value> {
    ROW.into_iter().filter_map(|name| Some((name.to_owned(), body.facts.get(name)?.clone()))).collect()
}

/// An event about a request, with its row and for its requester to see.
pub(super) fn about(kind: Kind, request: &Request, told: &ToldTexts) -> Result<Event> {
    let event = Event::new(kind, request.subject()).facts(facts(request, told)?);
    let assignee = request.assignee.iter().filter(|assignee| *assignee != super::OWNERS).cloned();
    Ok(event.audience(std::iter::once(request.requester.id.clone()).chain(assignee)))
}

/// The newest that the record tells of a request's row.
pub(super) fn told(cx: &mut Cx<'_, '_>, subject: &str) -> Result<Option<record::Body>> {
    // Others tell of the request too, such as of what an agent reports, as often as they like; the row is in its own events.
    Ok(record::told_of_request(cx.tx, subject, 1)?.pop().map(|told| told.body))
}

/// A request that is about to change: what the row says is what the record told last.
pub(super) struct Known {
    pub(super) request: Request,
    told: ToldTexts,
}

impl Known {
    /// Reads a request, and refuses one that somebody changed behind the desk's back.
    pub(super) fn load(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<Self>> {
        let Some(request) = rows::load(cx, id)? else { return Ok(None) };
        match Self::check(cx, request)? {
            Ok(known) => Ok(Some(known)),
            Err(_) => Err(differs(id)),
        }
    }

    /// Compares a row with the record; the row comes back if they differ.
    pub(super) fn check(cx: &mut Cx<'_, '_>, request: Request) -> Result<Result<Self, Request>> {
        let told = told(cx, &request.subject())?.map(|body| facts_of(&body));
        let texts = told.as_ref().map(ToldTexts::of).unwrap_or_default();
        let same = match &told {
            // The digest covers the text of the act, unless that was erased.
            Some(told) => *told == facts(&request, &texts)? && super::digest::fits(&request),
            None => false,
        };
        Ok(if same { Ok(Self { request, told: texts }) } else { Err(request) })
    }

    /// Moves it on and tells so. Whatever else changes was set before; `more` adds to the event.
    pub(super) fn step(&mut self, cx: &mut Cx<'_, '_>, kind: Kind, next: State, more: impl FnOnce(Event) -> Event) -> Result<()> {
        let request = &mut self.request;
        let before = request.state;
        if before != next && !before.may_become(next) {
            return Err(Error::conflict(format!("this request is {} and cannot become {}", before.name(), next.name())));
        }
        request.state = next;
        request.version += 1;
        request.updated_at = cx.now();
        let taken_out = keep(cx, request)?;
        rows::save(cx.tx, request)?;
        match (before == State::Pending, next == State::Pending) {
            (true, false) => rows::count_out(cx.tx, &request.requester.id)?,
            (false, true) => {
                rows::count_in(cx.tx, &request.requester.id, i64::MAX)?;
            }
            _ => {}
        }
        let event = about(kind, request, &self.told)?.taken_out(&taken_out);
        cx.emit(more(event.fact("was", before.name())))
    }
}

pub(super) fn differs(id: &str) -> Error {
    Error::conflict(format!("request {id} differs from what the record tells of it: somebody changed it behind the desk's back"))
        .hint("run `deskmate audit verify`, and let the agent ask again")
}
