//! The rows of identity, and the events from which they can be rebuilt.

use deskmate_db::{Row, Tx, args};
use serde_json::json;

use super::token::{Secret, SecretKind};
use crate::call::Cx;
use crate::record::{Event, Kind};
use crate::{Error, Result, hex};

/// Something that proves an identity was handed out.
pub(super) const ISSUED: Kind =
    Kind { name: "credential.issued", says: "A token, session, invitation, link or code was handed out; its hash is among the facts." };
/// Something that proves an identity was revoked or used up.
pub(super) const REVOKED: Kind = Kind { name: "credential.revoked", says: "A token, session, invitation, link or code was revoked or used up." };

/// A stored credential.
pub(super) struct CredentialRow {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) owner: String,
    pub(super) scopes: String,
    pub(super) created_at: i64,
    pub(super) expires_at: i64,
    pub(super) revoked_at: Option<i64>,
    pub(super) present_until: Option<i64>,
    pub(super) note: Option<String>,
}

pub(super) const CREDENTIAL: &str =
    "select id, kind, owner, scopes, created_at, expires_at, revoked_at, present_until, hash, note from credential where hash = $1";
pub(super) const CREDENTIAL_BY_ID: &str =
    "select id, kind, owner, scopes, created_at, expires_at, revoked_at, present_until, hash, note from credential where id = $1";
const GOOD_CREDENTIALS_OF: &str = "select id, kind, owner, scopes, created_at, expires_at, revoked_at, present_until, hash, note from credential \
     where owner = $1 and kind = $2 and revoked_at is null and expires_at > $3 order by created_at desc, id desc limit 1000";

impl CredentialRow {
    pub(super) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            kind: row.get(1)?,
            owner: row.get(2)?,
            scopes: row.get(3)?,
            created_at: row.get(4)?,
            expires_at: row.get(5)?,
            revoked_at: row.get(6)?,
            present_until: row.get(7)?,
            note: row.get(9)?,
        })
    }

    pub(super) fn is_good(&self, now: i64) -> bool {
        self.revoked_at.is_none() && self.expires_at > now
    }
}

/// The credentials of somebody that are still good, newest first.
pub(super) fn good_of(cx: &mut Cx<'_, '_>, owner: &str, kind: SecretKind) -> Result<Vec<CredentialRow>> {
    let now = cx.now();
    let rows = cx.tx.query(GOOD_CREDENTIALS_OF, args![owner, kind.name(), now])?;
    rows.iter().map(CredentialRow::read).collect()
}

/// Deletes a slice of credentials that ended before a moment, with the keys of sessions, and tells how many there were.
/// The record still tells of them.
pub fn prune_credentials(cx: &mut Cx<'_, '_>, before: i64, limit: u32) -> Result<u64> {
    let rows = cx.tx.query("select id from credential where expires_at < $1 order by expires_at, id limit $2", args![before, limit])?;
    for row in &rows {
        let id: String = row.get(0)?;
        cx.tx.execute("delete from session_key where credential = $1", args![id])?;
        cx.tx.execute("delete from credential where id = $1", args![id])?;
    }
    Ok(u64::try_from(rows.len()).unwrap_or(0))
}

/// Hands out a new credential and tells the record.
pub(super) fn issue(cx: &mut Cx<'_, '_>, kind: SecretKind, owner: &str, scopes: &[String], ttl_us: i64) -> Result<(String, Secret)> {
    let secret = Secret::new(kind, &cx.secret());
    let id = keep(cx, kind, owner, &secret.hash(), scopes, ttl_us)?;
    Ok((id, secret))
}

/// Writes down what a credential is for, or forgets it. That is no part of the record, because a person's name may stand
/// there.
pub(super) fn set_note(tx: &mut Tx<'_>, id: &str, note: Option<&str>) -> Result<()> {
    tx.execute("update credential set note = $2 where id = $1", args![id, note])?;
    Ok(())
}

/// Keeps the hash of a credential and tells the record.
pub(super) fn keep(cx: &mut Cx<'_, '_>, kind: SecretKind, owner: &str, hash: &[u8; 32], scopes: &[String], ttl_us: i64) -> Result<String> {
    let id = cx.new_id();
    let (now, scopes) = (cx.now(), serde_json::Value::from(scopes).to_string());
    let expires_at = now.saturating_add(ttl_us);
    cx.tx.execute(
        "insert into credential (id, kind, owner, hash, scopes, created_at, expires_at) values ($1, $2, $3, $4, $5, $6, $7)",
        args![id, kind.name(), owner, hash, scopes, now, expires_at],
    )?;
    let event = Event::new(ISSUED, format!("credential:{id}"))
        .fact("credential", id.as_str())
        .fact("kind", kind.name())
        .fact("owner", owner)
        .fact("hash", hex(hash))
        .fact("scopes", scopes)
        .fact("expires_at", expires_at);
    cx.emit(event)?;
    Ok(id)
}

/// Ends a credential at a moment, now or later, and tells the record.
pub(super) fn end(cx: &mut Cx<'_, '_>, id: &str, at: i64, why: &str) -> Result<()> {
    let found = cx.tx.optional(CREDENTIAL_BY_ID, args![id])?.map(|row| CredentialRow::read(&row)).transpose()?;
    let Some(row) = found.filter(|row| row.revoked_at.is_none()) else {
        return Err(Error::conflict("it was revoked before"));
    };
    let revoked_at = (at <= cx.now()).then_some(at);
    cx.tx.execute("update credential set revoked_at = $2, expires_at = $3 where id = $1", args![id, revoked_at, row.expires_at.min(at)])?;
    if revoked_at.is_some() {
        set_note(cx.tx, id, None)?;
    }
    let event = Event::new(REVOKED, format!("credential:{id}")).fact("credential", id).fact("at", at).fact("now", cx.now());
    cx.emit(event.payload(json!({ "why": why })))
}

/// A stored person.
pub(super) struct PersonRow {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) role: String,
    pub(super) domains: String,
    pub(super) factor: Option<String>,
    pub(super) state: String,
    pub(super) created_at: i64,
    pub(super) failures: i64,
    pub(super) locked_until: Option<i64>,
}

pub(super) const PERSON: &str = "select id, name, role, domains, factor, state, created_at, failures, locked_until from person where id = $1";
pub(super) const PERSON_BY_NAME: &str = "select id, name, role, domains, factor, state, created_at, failures, locked_until from person where name = $1";
pub(super) const PEOPLE: &str = "select id, name, role, domains, factor, state, created_at, failures, locked_until from person \
     where (created_at, id) > ($1, $2) order by created_at, id limit $3";

impl PersonRow {
    pub(super) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            name: row.get(1)?,
            role: row.get(2)?,
            domains: row.get(3)?,
            factor: row.get(4)?,
            state: row.get(5)?,
            created_at: row.get(6)?,
            failures: row.get(7)?,
            locked_until: row.get(8)?,
        })
    }
}
