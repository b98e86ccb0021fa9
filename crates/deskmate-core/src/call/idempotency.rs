//! Doing something once: a caller's key, per actor and operation, with the digest of what was asked and the answer.

use deskmate_db::args;
use serde_json::Value;

use super::cx::Cx;
use crate::limits::{IDEMPOTENCY_KEPT, IDEMPOTENCY_KEY_CHARS_MAX};
use crate::{Code, Error, Result, check_text, digest};

/// A key that came with a call.
pub(crate) struct Key {
    key: String,
    digest: [u8; 32],
}

impl Key {
    /// The key as it was given.
    pub(crate) fn text(&self) -> &str {
        &self.key
    }

    /// Takes `idempotency_key` out of an input.
    pub(crate) fn take(input: &mut Value) -> Result<Option<Self>> {
        let Some(given) = input.as_object_mut().and_then(|fields| fields.remove("idempotency_key")) else { return Ok(None) };
        let Value::String(key) = given else {
            return Err(Error::invalid("idempotency_key", "must be a text"));
        };
        check_text("idempotency_key", &key, IDEMPOTENCY_KEY_CHARS_MAX)?;
        if key.is_empty() {
            return Err(Error::invalid("idempotency_key", "must not be empty"));
        }
        Self::new(key, input).map(Some)
    }

    /// A key of an operation's own, for what it was asked.
    pub(crate) fn new(key: String, asked: &Value) -> Result<Self> {
        Ok(Self { key, digest: digest(asked)? })
    }

    /// The first answer, if the same call was done before.
    pub(crate) fn answered(&self, cx: &mut Cx<'_, '_>, operation: &str) -> Result<Option<Value>> {
        let row = cx.tx.optional(
            "select digest, answer from idempotency where actor = $1 and operation = $2 and key = $3 and at > $4",
            args![actor_key(cx), operation, self.key, oldest(cx.now())],
        )?;
        let Some(row) = row else { return Ok(None) };
        if row.get::<Vec<u8>>(0)? != self.digest {
            return Err(Error::conflict("this idempotency_key was used for another call").hint("take a new key for a new call"));
        }
        let answer: String = row.get(1)?;
        serde_json::from_str(&answer).map(Some).map_err(|error| Error::new(Code::Internal, format!("a kept answer is unreadable: {error}")))
    }

    /// Keeps the answer in the transaction of the call.
    pub(crate) fn keep(&self, cx: &mut Cx<'_, '_>, operation: &str, answer: &Value) -> Result<()> {
        let (actor, now) = (actor_key(cx), cx.now());
        cx.tx.execute(
            "insert into idempotency (actor, operation, key, digest, answer, at) values ($1, $2, $3, $4, $5, $6) \
             on conflict (actor, operation, key) do update set digest = excluded.digest, answer = excluded.answer, at = excluded.at",
            args![actor, operation, self.key, self.digest, answer.to_string(), now],
        )?;
        Ok(())
    }
}

fn actor_key(cx: &Cx<'_, '_>) -> String {
    format!("{}:{}", cx.actor.kind.name(), cx.actor.id)
}

/// Keys older than this count as unused.
pub(crate) fn oldest(now: i64) -> i64 {
    now - i64::try_from(IDEMPOTENCY_KEPT.as_micros()).unwrap_or(i64::MAX)
}

/// Deletes a slice of keys whose time is over, and tells how many there were.
pub fn prune_keys(cx: &mut Cx<'_, '_>, limit: u32) -> Result<u64> {
    let deleted = cx.tx.execute(
        "delete from idempotency where (actor, operation, key) in \
         (select actor, operation, key from idempotency where at <= $1 order by at, actor, operation, key limit $2)",
        args![oldest(cx.now()), limit],
    )?;
    Ok(deleted)
}
