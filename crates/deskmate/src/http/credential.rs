//! What a request brought to show who sent it.
//!
//! A token comes in the Authorization header. A browser's session comes in a cookie, which alone only reads; what it
//! decides is signed with the key that the browser made at sign-in, over the method, the path, the body and the time.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, Method, Uri};
use data_encoding::BASE64;
use deskmate_core::call::{Credential, Signed};
use deskmate_core::{Error, Result, hex, identity};
use sha2::{Digest, Sha256};

use super::Shared;
use crate::mcp::{AGENT_HEADER, bearer};

/// The session's cookie.
pub(crate) const COOKIE_NAME: &str = "deskmate_session";
const SIGNATURE_HEADER: &str = "deskmate-signature";
const SIGNED_AT_HEADER: &str = "deskmate-signed-at";
/// How far the browser's clock may be off, in milliseconds.
const SIGNED_WITHIN_MS: i64 = 60_000;

/// What was signed in the last minutes, each good once. Only what a session really signed is remembered, and by what it
/// says: one text has many good signatures.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    inner: Arc<Mutex<Remembered>>,
}

#[derive(Default)]
struct Remembered {
    texts: HashSet<[u8; 32]>,
    oldest_first: VecDeque<(i64, [u8; 32])>,
}

impl Seen {
    fn first_time(&self, session: &str, signed: &str, now_ms: i64) -> bool {
        let text: [u8; 32] = Sha256::new().chain_update(session).chain_update("\n").chain_update(signed).finalize().into();
        let mut seen = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((at, old)) = seen.oldest_first.front().copied()
            && now_ms - at > 2 * SIGNED_WITHIN_MS
        {
            seen.oldest_first.pop_front();
            seen.texts.remove(&old);
        }
        let first = seen.texts.insert(text);
        if first {
            seen.oldest_first.push_back((now_ms, text));
        }
        first
    }
}

/// Finds the credential of a request.
pub(super) async fn of(shared: &Shared, method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Result<Credential> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(value) = headers.get(AUTHORIZATION) {
        let secret = value.to_str().ok().and_then(bearer).map(str::to_owned);
        let secret = secret.ok_or_else(|| Error::new(deskmate_core::Code::Unauthenticated, "the Authorization header must be: Bearer TOKEN"))?;
        let proved = !has_key(shared, &secret).await?;
        return Ok(Credential::Secret { secret, proved });
    }
    if let Some(secret) = cookie(headers) {
        let signed = match (header(SIGNATURE_HEADER), header(SIGNED_AT_HEADER)) {
            (Some(signature), Some(at)) => signed(shared, &secret, method, uri, body, signature, at).await?,
            _ => None,
        };
        return Ok(match signed {
            Some(signed) => Credential::Signed { secret, signed },
            None => Credential::Secret { secret, proved: false },
        });
    }
    Ok(Credential::Named(header(AGENT_HEADER).map(str::to_owned)))
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
    cookies.filter_map(|pair| pair.trim().split_once('=')).find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value.to_owned())
}

/// A session that a browser opened is proved by its key only, also when its secret comes as a token.
async fn has_key(shared: &Shared, secret: &str) -> Result<bool> {
    if !secret.starts_with("dms_") {
        return Ok(false);
    }
    let secret = secret.to_owned();
    shared.app.desk.db.read(move |tx| identity::has_key(tx, &secret)).await
}

/// What the browser signed, if it is a good signature of this session's own key that was not used before.
async fn signed(shared: &Shared, secret: &str, method: &Method, uri: &Uri, body: &[u8], signature: &str, at: &str) -> Result<Option<Signed>> {
    let now_ms = shared.app.desk.world.now() / 1_000;
    let fresh = at.parse::<i64>().is_ok_and(|at| (now_ms - at).abs() <= SIGNED_WITHIN_MS);
    let Ok(bytes) = BASE64.decode(signature.as_bytes()) else { return Ok(None) };
    if !fresh {
        return Ok(None);
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let text = format!("{method}\n{path}\n{}\n{at}", hex(&Sha256::digest(body)));
    let (session, asked) = (secret.to_owned(), text.clone());
    let key = shared.app.desk.db.read(move |tx| identity::verify_signature(tx, &session, asked.as_bytes(), Some(&bytes))).await?;
    let key = key.filter(|_| shared.signatures.first_time(secret, &text, now_ms));
    Ok(key.map(|key| Signed { text, signature: signature.to_owned(), key: BASE64.encode(&key) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_signed_is_good_once_and_forgotten_after_its_time() {
        let seen = Seen::default();
        assert!(seen.first_time("dms_a", "POST", 0));
        assert!(!seen.first_time("dms_a", "POST", 1), "whatever its signature looks like");
        assert!(seen.first_time("dms_b", "POST", 1), "another session's own");
        assert!(seen.first_time("dms_c", "POST", 3 * SIGNED_WITHIN_MS));
        assert_eq!(seen.inner.lock().unwrap().texts.len(), 1, "what is too old to be good is not kept");
    }
}
