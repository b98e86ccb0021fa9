//! The rows, and whether this server's key is the one that they were encrypted with.

use deskmate_db::{Tx, args};

use super::key::Key;
use crate::call::Cx;
use crate::{Code, Error, Result};

/// The row of `desk` by which the right key is known.
const CHECK: &str = "secret_key_check";
/// How long a name may be.
const NAME_CHARS_MAX: usize = 64;

/// A secret as it is stored.
pub(super) struct SecretRow {
    pub(super) version: i64,
    /// Nothing when it was removed.
    pub(super) sealed: Option<(Vec<u8>, Vec<u8>)>,
    pub(super) fingerprint: String,
    pub(super) removed_at: Option<i64>,
}

/// Refuses what is no name of a secret. What was given is not repeated: it may be the value, in the wrong place.
pub fn check_name(field: &str, name: &str) -> Result<()> {
    let begins = name.bytes().next().is_some_and(|first| first.is_ascii_lowercase() || first.is_ascii_digit());
    let goes_on = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.' | b'-'));
    if begins && goes_on && name.len() <= NAME_CHARS_MAX {
        return Ok(());
    }
    Err(Error::invalid(
        field,
        format!("must be a name of up to {NAME_CHARS_MAX} lower-case letters, digits, `_`, `.` or `-`, and begin with a letter or digit"),
    ))
}

pub(super) fn find(tx: &mut Tx<'_>, name: &str) -> Result<Option<SecretRow>> {
    let row = tx.optional("select version, nonce, sealed, fingerprint, removed_at from secret where name = $1", args![name])?;
    let Some(row) = row else { return Ok(None) };
    let (nonce, sealed): (Option<Vec<u8>>, Option<Vec<u8>>) = (row.get(1)?, row.get(2)?);
    Ok(Some(SecretRow { version: row.get(0)?, sealed: nonce.zip(sealed), fingerprint: row.get(3)?, removed_at: row.get(4)? }))
}

/// Whether this desk has something that only its key opens: secrets, or requests that are not over.
pub fn is_kept(tx: &mut Tx<'_>) -> Result<bool> {
    Ok(check(tx)?.is_some() && is_sealed(tx)?)
}

fn is_sealed(tx: &mut Tx<'_>) -> Result<bool> {
    let secret = tx.optional("select name from secret where sealed is not null order by name limit 1", &[])?;
    let waits = "select id from request where state = 'pending' and sealed is not null order by place, id limit 1";
    let waited = "select id from request where state <> 'pending' and sealed is not null order by id limit 1";
    Ok(secret.is_some() || tx.optional(waits, &[])?.is_some() || tx.optional(waited, &[])?.is_some())
}

/// Whether a key is the one of this desk's secrets; any key is, while there are none.
pub fn key_fits(tx: &mut Tx<'_>, key: &Key) -> Result<bool> {
    let known = check(tx)?;
    Ok(known.is_none_or(|known| key.fits(&known)) || !is_sealed(tx)?)
}

fn check(tx: &mut Tx<'_>) -> Result<Option<String>> {
    tx.optional("select value from desk where key = $1", args![CHECK])?.map(|row| row.get(0).map_err(Error::from)).transpose()
}

/// The key, if this server has the right one. Servers that share a store may have been given different ones.
pub(super) fn key(cx: &mut Cx<'_, '_>) -> Result<Key> {
    let key = cx.safe.key()?;
    if key_fits(cx.tx, &key)? {
        return Ok(key);
    }
    Err(foreign())
}

fn foreign() -> Error {
    let message = "this server's secret.key is not the one that the secrets of this desk were encrypted with";
    Error::new(Code::Unavailable, message).hint("give every server of this desk the same secret.key, and start this one again")
}

/// The key for a new value. The first value of a desk says which key is the right one from now on.
pub(super) fn key_for_new(cx: &mut Cx<'_, '_>) -> Result<Key> {
    let key = cx.safe.key()?;
    match check(cx.tx)? {
        Some(known) if key.fits(&known) => return Ok(key),
        // Nothing is left that another key encrypted: this one begins anew.
        Some(_) if !is_kept(cx.tx)? => cx.tx.execute("delete from desk where key = $1", args![CHECK]).map(drop)?,
        Some(_) => return Err(foreign()),
        None => {}
    }
    cx.tx.execute("insert into desk (key, value) values ($1, $2) on conflict (key) do nothing", args![CHECK, key.check()])?;
    Ok(key)
}

/// With the last value goes what tells the right key: a desk whose key is lost can begin anew.
pub(super) fn forget_key(tx: &mut Tx<'_>) -> Result<()> {
    if !is_sealed(tx)? {
        tx.execute("delete from desk where key = $1", args![CHECK])?;
    }
    Ok(())
}
