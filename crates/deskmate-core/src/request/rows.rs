//! The rows of requests, votes and notes.

use deskmate_db::{Row, Tx, args};
use sha2::{Digest, Sha256};

use super::digest::Bound;
use super::keep::Kept;
use super::model::{Priority, Request, RequestKind, Requester, State};
use crate::call::{ActorKind, Cx};
use crate::limits::VOTES_MAX;
use crate::secret::Wrapped;
use crate::{Error, Result, hex};

/// A query for [`Request`]s.
macro_rules! select_request {
    ($rest:literal) => {
        concat!(
            "select id, kind, state, requester_kind, requester, verified, domain, rank, mode, risk, assignee, quorum, snoozed_until, asked_at, expires_at, \
             escalate_at, created_at, updated_at, decided_at, decided_by, edited_by, finished_at, version, round, supersedes, batch, confidence, rulebook, \
             digest, title, act, decision, packet, reason, kept, sealed, sealed_key, asked_by, overdue_since from request ",
            $rest
        )
    };
}
pub(super) use select_request;

/// The same rows without their long texts, for lists, and with their place.
macro_rules! select_request_short {
    ($($rest:literal),+) => {
        concat!(
            "select id, kind, state, requester_kind, requester, verified, domain, rank, mode, risk, assignee, quorum, snoozed_until, asked_at, expires_at, \
             escalate_at, created_at, updated_at, decided_at, decided_by, edited_by, finished_at, version, round, supersedes, batch, confidence, rulebook, \
             digest, title, null, null, null, null, null, null, null, asked_by, overdue_since, place from request ",
            $($rest),+
        )
    };
}
pub(super) use select_request_short;
/// Where the place stands in such a row.
pub(super) const SHORT_PLACE: usize = 39;

/// What a walk looks at before it reads whole rows.
macro_rules! select_request_key {
    ($($rest:literal),+) => {
        concat!("select id, place, kind, title from request ", $($rest),+)
    };
}
pub(super) use select_request_key;
/// Where the place stands in such a row.
pub(super) const KEY_PLACE: usize = 1;

impl Request {
    /// Reads a row as it lies there; [`Request::opened`] also reads what is encrypted.
    pub(super) fn read(row: &Row) -> Result<Self> {
        let (bound, packet): (Option<String>, Option<String>) = (row.get(30)?, row.get(32)?);
        let (text, key): (Option<Vec<u8>>, Option<Vec<u8>>) = (row.get(35)?, row.get(36)?);
        let wrapped = text.zip(key).map(|(text, key)| Wrapped { text, key });
        Ok(Self {
            kept: Kept::read(row.get::<Option<String>>(34)?.as_deref(), bound.as_ref(), packet.as_ref(), wrapped),
            id: row.get(0)?,
            kind: RequestKind::from_name(&row.get::<String>(1)?)?,
            state: State::from_name(&row.get::<String>(2)?)?,
            requester: Requester { kind: ActorKind::from_name(&row.get::<String>(3)?), id: row.get(4)?, verified: row.get(5)? },
            asked_by: row.get(37)?,
            overdue_since: row.get(38)?,
            domain: row.get(6)?,
            priority: Priority::from_rank(row.get(7)?),
            mode: row.get(8)?,
            risk: row.get(9)?,
            assignee: row.get(10)?,
            quorum: row.get(11)?,
            snoozed_until: row.get(12)?,
            asked_at: row.get(13)?,
            expires_at: row.get(14)?,
            escalate_at: row.get(15)?,
            created_at: row.get(16)?,
            updated_at: row.get(17)?,
            decided_at: row.get(18)?,
            decided_by: row.get(19)?,
            edited_by: row.get(20)?,
            finished_at: row.get(21)?,
            version: row.get(22)?,
            round: row.get(23)?,
            supersedes: row.get(24)?,
            batch: row.get(25)?,
            confidence: row.get(26)?,
            rulebook: row.get(27)?,
            digest: row.get(28)?,
            title: row.get(29)?,
            bound,
            decision: row.get(31)?,
            packet,
            reason: row.get(33)?,
        })
    }

    /// A salted digest of what people are shown: with it the record notices when somebody changes it behind the desk's
    /// back, and after an erasure it tells nothing. `None` once a text is gone.
    pub(super) fn texts_digest(&self) -> Result<Option<[u8; 32]>> {
        let (Some(title), Some(decision)) = (&self.title, &self.decision) else { return Ok(None) };
        // What is random in the row salts it: the act's nonce, or the key of what is encrypted, which has the packet in it.
        let (salt, packet) = match (&self.kept, &self.bound, &self.packet) {
            (Kept::Plain, Some(bound), Some(packet)) | (Kept::Redacted { bound, packet, .. }, ..) => (Bound::read_nonce(&self.id, bound)?, packet.as_str()),
            (Kept::Sealed(wrapped), ..) => (hex(&wrapped.key), ""),
            (Kept::Plain | Kept::Gone, ..) => return Ok(None),
        };
        let mut hash = Sha256::new();
        for text in [salt.as_str(), title, decision, packet] {
            hash.update(text.len().to_be_bytes());
            hash.update(text);
        }
        Ok(Some(hash.finalize().into()))
    }
}

const BY_ID: &str = select_request!("where id = $1");

/// A request by its id, with what is encrypted of it where this server can read that.
pub(super) fn load(cx: &mut Cx<'_, '_>, id: &str) -> Result<Option<Request>> {
    let row = cx.tx.optional(BY_ID, args![id])?;
    row.map(|row| Request::read(&row).map(|request| request.opened(cx))).transpose()
}

pub(super) fn insert(tx: &mut Tx<'_>, request: &Request) -> Result<()> {
    let (kept, bound, packet) = request.kept.columns(request);
    let (sealed, sealed_key) = request.kept.wrapped().map(|wrapped| (wrapped.text.clone(), wrapped.key.clone())).unzip();
    tx.execute(
        "insert into request (id, kind, state, requester_kind, requester, verified, domain, rank, mode, risk, assignee, quorum, snoozed_until, asked_at, \
         expires_at, escalate_at, created_at, updated_at, decided_at, decided_by, edited_by, finished_at, version, round, supersedes, batch, confidence, \
         rulebook, digest, title, act, decision, packet, reason, place, kept, sealed, sealed_key, asked_by, overdue_since) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
         $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40)",
        args![
            request.id,
            request.kind.name(),
            request.state.name(),
            request.requester.kind.name(),
            request.requester.id,
            request.requester.verified,
            request.domain,
            request.priority.rank(),
            request.mode,
            request.risk,
            request.assignee,
            request.quorum,
            request.snoozed_until,
            request.asked_at,
            request.expires_at,
            request.escalate_at,
            request.created_at,
            request.updated_at,
            request.decided_at,
            request.decided_by,
            request.edited_by,
            request.finished_at,
            request.version,
            request.round,
            request.supersedes,
            request.batch,
            request.confidence,
            request.rulebook,
            request.digest,
            request.title,
            bound,
            request.decision,
            packet,
            request.reason,
            request.place(),
            kept,
            sealed,
            sealed_key,
            request.asked_by,
            request.overdue_since
        ],
    )?;
    Ok(())
}

/// Writes what may change, over the version that was read.
pub(super) fn save(tx: &mut Tx<'_>, request: &Request) -> Result<()> {
    let (kept, bound, packet) = request.kept.columns(request);
    let (sealed, sealed_key) = request.kept.wrapped().map(|wrapped| (wrapped.text.clone(), wrapped.key.clone())).unzip();
    let changed = tx.execute(
        "update request set state = $3, rank = $4, risk = $5, assignee = $6, quorum = $7, snoozed_until = $8, asked_at = $9, escalate_at = $10, \
         updated_at = $11, decided_at = $12, decided_by = $13, edited_by = $14, finished_at = $15, version = $16, round = $17, rulebook = $18, digest = $19, \
         act = $20, decision = $21, packet = $22, reason = $23, batch = $24, place = $25, title = $26, kept = $27, sealed = $28, sealed_key = $29, \
         overdue_since = $30 \
         where id = $1 and version = $2",
        args![
            request.id,
            request.version - 1,
            request.state.name(),
            request.priority.rank(),
            request.risk,
            request.assignee,
            request.quorum,
            request.snoozed_until,
            request.asked_at,
            request.escalate_at,
            request.updated_at,
            request.decided_at,
            request.decided_by,
            request.edited_by,
            request.finished_at,
            request.version,
            request.round,
            request.rulebook,
            request.digest,
            bound,
            request.decision,
            packet,
            request.reason,
            request.batch,
            request.place(),
            request.title,
            kept,
            sealed,
            sealed_key,
            request.overdue_since
        ],
    )?;
    if changed == 1 { Ok(()) } else { Err(Error::conflict("this request changed meanwhile").hint("look at it again")) }
}

/// Counts one more pending request, unless the requester has as many as it may.
pub(super) fn count_in(tx: &mut Tx<'_>, requester: &str, cap: i64) -> Result<bool> {
    let counted = tx.execute(
        "insert into request_count (requester, pending) values ($1, 1) \
         on conflict (requester) do update set pending = request_count.pending + 1 where request_count.pending < $2",
        args![requester, cap],
    )?;
    Ok(counted == 1)
}

/// Counts one pending request less.
pub(super) fn count_out(tx: &mut Tx<'_>, requester: &str) -> Result<()> {
    tx.execute("update request_count set pending = pending - 1 where requester = $1", args![requester])?;
    Ok(())
}

/// How many requests of a requester are pending.
pub(super) fn pending_of(tx: &mut Tx<'_>, requester: &str) -> Result<i64> {
    let row = tx.optional("select pending from request_count where requester = $1", args![requester])?;
    Ok(row.map(|row| row.get(0)).transpose()?.unwrap_or(0))
}

/// A stored vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VoteRow {
    pub(super) round: i64,
    pub(super) person: String,
    pub(super) vote: String,
    pub(super) at: i64,
}

/// What people said, in all rounds.
pub(super) fn votes(tx: &mut Tx<'_>, request: &str) -> Result<Vec<VoteRow>> {
    let rows = tx.query("select round, person, vote, at from vote where request = $1 order by request, round, person limit $2", args![request, VOTES_MAX])?;
    rows.iter().map(|row| Ok(VoteRow { round: row.get(0)?, person: row.get(1)?, vote: row.get(2)?, at: row.get(3)? })).collect()
}

/// Keeps a vote; a person has one in each round.
pub(super) fn insert_vote(cx: &mut Cx<'_, '_>, request: &Request, vote: &str) -> Result<()> {
    let now = cx.now();
    let kept = cx.tx.execute(
        "insert into vote (request, round, person, vote, at) values ($1, $2, $3, $4, $5) on conflict (request, round, person) do nothing",
        args![request.id, request.round, cx.actor.id, vote, now],
    )?;
    if kept == 1 {
        Ok(())
    } else {
        Err(Error::conflict("you have said yes to this already; it waits for others").hint("desk_request_get shows who is missing"))
    }
}

/// A stored note.
pub(super) struct NoteRow {
    pub(super) id: String,
    pub(super) actor_kind: String,
    pub(super) actor: String,
    pub(super) kind: String,
    pub(super) note: Option<String>,
    pub(super) created_at: i64,
}

/// The newest notes of a request, oldest first.
pub(super) fn notes(tx: &mut Tx<'_>, request: &str) -> Result<Vec<NoteRow>> {
    let rows = tx.query(
        "select id, actor_kind, actor, kind, note, created_at from request_note where request = $1 order by created_at desc, id desc limit 100",
        args![request],
    )?;
    let read = |row: &Row| -> Result<NoteRow> {
        Ok(NoteRow { id: row.get(0)?, actor_kind: row.get(1)?, actor: row.get(2)?, kind: row.get(3)?, note: row.get(4)?, created_at: row.get(5)? })
    };
    rows.iter().rev().map(read).collect()
}

/// Keeps a note and answers its id.
pub(super) fn insert_note(cx: &mut Cx<'_, '_>, request: &str, kind: &str, note: &str) -> Result<String> {
    let (id, now) = (cx.new_id(), cx.now());
    cx.tx.execute(
        "insert into request_note (id, request, actor_kind, actor, kind, note, created_at) values ($1, $2, $3, $4, $5, $6, $7)",
        args![id, request, cx.actor.kind.name(), cx.actor.id, kind, note, now],
    )?;
    Ok(id)
}

/// A value as the text that is stored of it.
pub(super) fn text<T: serde::Serialize>(field: &str, value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::invalid(field, format!("cannot be written: {error}")))
}
