//! Secrets on the surfaces: owners put values in, replace and remove them, and see everything about them but the values.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::rows::{self, check_name, find};
use super::seal::{self, Sealed};
use crate::call::{Cx, Page, PageIn};
use crate::limits::{SECRET_BYTES_MAX, SECRETS_MAX};
use crate::record::{Event, Kind};
use crate::{Code, Error, Result, check_text, format_time};

/// A secret got its first value.
pub(super) const SET: Kind = Kind { name: "secret.set", says: "A person put a secret into the store. The record never holds its value." };
/// A secret got another value.
pub(super) const ROTATED: Kind = Kind { name: "secret.rotated", says: "A person gave a secret another value; whatever names it uses that from now on." };
/// A secret was removed.
pub(super) const REMOVED: Kind = Kind { name: "secret.removed", says: "A person removed a secret; its encrypted value was overwritten." };

/// Put a secret into the store. It is encrypted, settings name it as `secret:NAME`, and no answer ever shows it again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Set {
    /// Its name: lower-case letters, digits, `_`, `.` and `-`.
    name: String,
    /// The value, up to 64 KiB.
    value: String,
}

/// A secret, without its value.
#[derive(Serialize, JsonSchema)]
pub(super) struct SecretOut {
    /// Its name.
    name: String,
    /// How many values it has had.
    version: i64,
    /// A short mark of the value, by which you know it again. It tells nothing to anybody else.
    fingerprint: String,
    /// When it was put in.
    created_at: String,
    /// By which person.
    created_by: String,
    /// When it last got another value.
    #[serde(skip_serializing_if = "Option::is_none")]
    rotated_at: Option<String>,
    /// By which person.
    #[serde(skip_serializing_if = "Option::is_none")]
    rotated_by: Option<String>,
    /// What on this server names it.
    used_by: Vec<String>,
}

pub(super) fn set(cx: &mut Cx<'_, '_>, input: Set) -> Result<SecretOut> {
    let value = checked(&input.name, input.value)?;
    let before = find(cx.tx, &input.name)?;
    if before.as_ref().is_some_and(|row| row.sealed.is_some()) {
        return Err(Error::conflict(format!("there is a secret {} already", input.name)).hint("`deskmate secret rotate` gives it another value"));
    }
    if kept(cx)? >= SECRETS_MAX {
        return Err(Error::new(Code::Limited, format!("there are {SECRETS_MAX} secrets already")).hint("remove one that nothing uses any more"));
    }
    let version = before.map_or(1, |row| row.version + 1);
    let (sealed, fingerprint) = seal_new(cx, &input.name, version, &value)?;
    let (now, person) = (cx.now(), cx.actor.id.clone());
    cx.tx.execute(
        "insert into secret (name, version, nonce, sealed, fingerprint, created_at, created_by) values ($1, $2, $3, $4, $5, $6, $7) \
         on conflict (name) do update set version = excluded.version, nonce = excluded.nonce, sealed = excluded.sealed, \
         fingerprint = excluded.fingerprint, created_at = excluded.created_at, created_by = excluded.created_by, \
         rotated_at = null, rotated_by = null, removed_at = null",
        args![input.name, version, sealed.nonce.as_slice(), sealed.text, fingerprint, now, person],
    )?;
    tell(cx, SET, &input.name, version, Some(&sealed))?;
    show(cx, &input.name)
}

/// Give a secret another value. Whatever names it uses the new value from its next use on, and no file changes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rotate {
    /// Its name.
    name: String,
    /// The new value, up to 64 KiB.
    value: String,
}

pub(super) fn rotate(cx: &mut Cx<'_, '_>, input: Rotate) -> Result<SecretOut> {
    let value = checked(&input.name, input.value)?;
    let before = find(cx.tx, &input.name)?.filter(|row| row.sealed.is_some()).ok_or_else(|| missing(&input.name))?;
    let version = before.version + 1;
    let (sealed, fingerprint) = seal_new(cx, &input.name, version, &value)?;
    if fingerprint == before.fingerprint {
        return Err(Error::invalid("value", "is the one that the secret has already"));
    }
    let (now, person) = (cx.now(), cx.actor.id.clone());
    cx.tx.execute(
        "update secret set version = $2, nonce = $3, sealed = $4, fingerprint = $5, rotated_at = $6, rotated_by = $7 where name = $1",
        args![input.name, version, sealed.nonce.as_slice(), sealed.text, fingerprint, now, person],
    )?;
    cx.tx.erases();
    tell(cx, ROTATED, &input.name, version, Some(&sealed))?;
    show(cx, &input.name)
}

/// Remove a secret. Its encrypted value is overwritten, and whatever still names it fails with an error that says so.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Remove {
    /// Its name.
    name: String,
}

/// What was removed.
#[derive(Serialize, JsonSchema)]
pub(super) struct Removed {
    /// Its name.
    name: String,
    /// What on this server still names it, and will fail.
    used_by: Vec<String>,
}

/// It needs no key, so that a desk whose key is lost can be put in order.
pub(super) fn remove(cx: &mut Cx<'_, '_>, input: Remove) -> Result<Removed> {
    check_name("name", &input.name)?;
    let before = find(cx.tx, &input.name)?.filter(|row| row.sealed.is_some()).ok_or_else(|| missing(&input.name))?;
    let now = cx.now();
    cx.tx.execute("update secret set nonce = null, sealed = null, fingerprint = '', removed_at = $2 where name = $1", args![input.name, now])?;
    cx.tx.erases();
    rows::forget_key(cx.tx)?;
    tell(cx, REMOVED, &input.name, before.version, None)?;
    Ok(Removed { used_by: cx.safe.users_of(&input.name), name: input.name })
}

/// List the secrets by name: everything about them but their values.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// How many; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// The secrets.
#[derive(Serialize, JsonSchema)]
pub(super) struct Secrets {
    /// One after the other.
    secrets: Vec<SecretOut>,
    /// Why this server cannot use them, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    locked: Option<String>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<Secrets> {
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let (_, after) = page.after.clone().unwrap_or_default();
    let rows = cx.tx.query("select name from secret where sealed is not null and name > $1 order by name limit $2", args![after, page.look_ahead()])?;
    let mut secrets = Vec::with_capacity(rows.len());
    for row in &rows {
        secrets.push(show(cx, &row.get::<String>(0)?)?);
    }
    let locked = rows::key(cx).err().map(|error| error.message);
    let page = Page::cut(secrets, &page, |secret| (0, secret.name.clone()));
    Ok(Secrets { secrets: page.items, locked, next_cursor: page.next_cursor })
}

/// A value within its bounds. No error repeats any of it.
fn checked(name: &str, value: String) -> Result<Zeroizing<String>> {
    let value = Zeroizing::new(value);
    check_name("name", name)?;
    check_text("value", &value, SECRET_BYTES_MAX)?;
    if value.is_empty() {
        return Err(Error::invalid("value", "must not be empty"));
    }
    Ok(value)
}

fn seal_new(cx: &mut Cx<'_, '_>, name: &str, version: i64, value: &str) -> Result<(Sealed, String)> {
    let key = rows::key_for_new(cx)?;
    let mut nonce = [0_u8; 24];
    for (byte, drawn) in nonce.iter_mut().zip(cx.secret()) {
        *byte = drawn;
    }
    Ok((seal::seal(&key, name, version, value, nonce)?, seal::fingerprint(&key, name, value)))
}

fn kept(cx: &mut Cx<'_, '_>) -> Result<i64> {
    let row = cx.tx.optional("select count(*) from secret where sealed is not null", &[])?;
    Ok(row.map(|row| row.get(0)).transpose()?.unwrap_or(0))
}

fn missing(name: &str) -> Error {
    Error::not_found(format!("there is no secret {name}")).hint("`deskmate secret list` shows all")
}

fn tell(cx: &mut Cx<'_, '_>, kind: Kind, name: &str, version: i64, sealed: Option<&Sealed>) -> Result<()> {
    let mut event = Event::new(kind, format!("secret:{name}")).fact("secret", name).fact("version", version);
    if let Some(sealed) = sealed {
        event = event.fact("sealed", seal::digest(&sealed.nonce, &sealed.text));
    }
    cx.emit(event)
}

fn show(cx: &mut Cx<'_, '_>, name: &str) -> Result<SecretOut> {
    let row = cx.tx.optional(
        "select version, fingerprint, created_at, created_by, rotated_at, rotated_by from secret where name = $1 and sealed is not null",
        args![name],
    )?;
    let row = row.ok_or_else(|| missing(name))?;
    Ok(SecretOut {
        name: name.to_owned(),
        version: row.get(0)?,
        fingerprint: row.get(1)?,
        created_at: format_time(row.get(2)?),
        created_by: row.get(3)?,
        rotated_at: row.get::<Option<i64>>(4)?.map(format_time),
        rotated_by: row.get(5)?,
        used_by: cx.safe.users_of(name),
    })
}
