//! The rows of calls.

use deskmate_db::{Row, Tx, args};

use crate::call::ActorKind;
use crate::request::Requester;
use crate::{Code, Error, Result};

/// How a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallState {
    /// People decide about it, or it waits to be done after they did.
    Held,
    /// It was handed on, and its outcome is not known yet.
    Passed,
    /// It was done.
    Done,
    /// It was tried and did not work, or the tool says that it did not.
    Failed,
    /// It was handed on, and nobody knows what came of it.
    Ambiguous,
    /// It was not handed on: a rule, a pause or a limit forbids it, or people said no.
    Denied,
}

impl CallState {
    /// The stable name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Passed => "passed",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Ambiguous => "ambiguous",
            Self::Denied => "denied",
        }
    }

    pub(super) fn from_name(name: &str) -> Result<Self> {
        let all = [Self::Held, Self::Passed, Self::Done, Self::Failed, Self::Ambiguous, Self::Denied];
        all.into_iter().find(|state| state.name() == name).ok_or_else(|| Error::new(Code::Internal, format!("{name} is no state of a call")))
    }

    /// Whether nothing more will come of it.
    pub(super) fn is_over(self) -> bool {
        !matches!(self, Self::Held | Self::Passed)
    }
}

/// A stored call.
#[derive(Clone, Debug)]
pub(super) struct CallRow {
    pub(super) id: String,
    pub(super) mount: String,
    pub(super) tool: String,
    pub(super) kind: String,
    pub(super) domain: String,
    pub(super) who: Requester,
    pub(super) digest: Vec<u8>,
    pub(super) state: CallState,
    pub(super) mode: String,
    pub(super) request: Option<String>,
    pub(super) proposal: Option<String>,
    pub(super) created_at: i64,
    pub(super) passed_at: Option<i64>,
    pub(super) ended_at: Option<i64>,
    pub(super) micros: Option<i64>,
    pub(super) bytes: Option<i64>,
    pub(super) delivered_at: Option<i64>,
    pub(super) intent: Option<String>,
    /// What it was called with, redacted.
    pub(super) arguments: Option<String>,
    pub(super) note: Option<String>,
    /// What came back, kept only where the caller may have gone.
    pub(super) result: Option<String>,
    /// What the desk's answer came from, as a list of sentences.
    pub(super) why: Option<String>,
}

impl CallRow {
    pub(super) fn subject(&self) -> String {
        subject(&self.id)
    }

    pub(super) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            mount: row.get(1)?,
            tool: row.get(2)?,
            kind: row.get(3)?,
            domain: row.get(4)?,
            who: Requester { kind: ActorKind::from_name(&row.get::<String>(5)?), id: row.get(6)?, verified: row.get(7)? },
            digest: row.get(8)?,
            state: CallState::from_name(&row.get::<String>(9)?)?,
            mode: row.get(10)?,
            request: row.get(11)?,
            proposal: row.get(12)?,
            created_at: row.get(13)?,
            passed_at: row.get(14)?,
            ended_at: row.get(15)?,
            micros: row.get(16)?,
            bytes: row.get(17)?,
            delivered_at: row.get(18)?,
            intent: row.get(19)?,
            arguments: row.get(20)?,
            note: row.get(21)?,
            result: row.get(22)?,
            why: row.get(23)?,
        })
    }
}

pub(super) fn subject(id: &str) -> String {
    format!("call:{id}")
}

/// A query for [`CallRow`]s.
macro_rules! select_call {
    ($rest:literal) => {
        concat!(
            "select id, mount, tool, kind, domain, actor_kind, actor, verified, digest, state, mode, request, proposal, created_at, passed_at, ended_at, micros, \
             bytes, delivered_at, intent, arguments, note, result, why from gateway_call ",
            $rest
        )
    };
}
pub(super) use select_call;

const BY_ID: &str = select_call!("where id = $1");
const BY_REQUEST: &str = select_call!("where request = $1 order by created_at desc, id desc limit 1");
pub(super) const WAITING: &str = select_call!(
    "where actor_kind = $1 and actor = $2 and digest = $3 and request is not null and delivered_at is null order by created_at desc, id desc limit 1"
);

pub(super) fn load(tx: &mut Tx<'_>, id: &str) -> Result<Option<CallRow>> {
    tx.optional(BY_ID, args![id])?.map(|row| CallRow::read(&row)).transpose()
}

/// The call that a request is about.
pub(super) fn of_request(tx: &mut Tx<'_>, request: &str) -> Result<Option<CallRow>> {
    tx.optional(BY_REQUEST, args![request])?.map(|row| CallRow::read(&row)).transpose()
}

/// The same call of the same caller, if it waits or its outcome was not fetched yet.
pub(super) fn waiting(tx: &mut Tx<'_>, who: &Requester, digest: &[u8]) -> Result<Option<CallRow>> {
    tx.optional(WAITING, args![who.kind.name(), who.id, digest])?.map(|row| CallRow::read(&row)).transpose()
}

pub(super) fn insert(tx: &mut Tx<'_>, call: &CallRow) -> Result<()> {
    tx.execute(
        "insert into gateway_call (id, mount, tool, kind, domain, actor_kind, actor, verified, digest, state, mode, request, proposal, created_at, passed_at, \
         ended_at, intent, arguments, note, why) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)",
        args![
            call.id,
            call.mount,
            call.tool,
            call.kind,
            call.domain,
            call.who.kind.name(),
            call.who.id,
            call.who.verified,
            call.digest,
            call.state.name(),
            call.mode,
            call.request,
            call.proposal,
            call.created_at,
            call.passed_at,
            call.ended_at,
            call.intent,
            call.arguments,
            call.note,
            call.why
        ],
    )?;
    Ok(())
}

/// Writes down what changes about a call.
pub(super) fn save(tx: &mut Tx<'_>, call: &CallRow) -> Result<()> {
    tx.execute(
        "update gateway_call set state = $2, passed_at = $3, ended_at = $4, micros = $5, bytes = $6, delivered_at = $7, note = $8, result = $9 where id = $1",
        args![call.id, call.state.name(), call.passed_at, call.ended_at, call.micros, call.bytes, call.delivered_at, call.note, call.result],
    )?;
    Ok(())
}
