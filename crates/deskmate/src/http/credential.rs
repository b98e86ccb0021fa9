//! What a request brought to show who sent it.
//!
//! A token comes in the Authorization header. A browser's session comes in a cookie, or from our extension in that header;
//! alone it only reads. What it decides is signed with the key that the browser made at sign-in, over the method, the path,
//! the body and the time.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, Method, Uri};
use data_encoding::BASE64;
use deskmate_core::call::{Credential, Signed};
use deskmate_core::{Code, Error, Result, hex, identity};
use sha2::{Digest, Sha256};

use super::Shared;
use crate::mcp::{AGENT_HEADER, bearer};

/// The session's cookie.
pub(crate) const COOKIE_NAME: &str = "deskmate_session";
const SIGNATURE_HEADER: &str = "deskmate-signature";
const SIGNED_AT_HEADER: &str = "deskmate-signed-at";
/// How far from the desk's time something may be signed, in milliseconds.
const SIGNED_WITHIN_MS: u64 = 60_000;

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
            && now_ms.saturating_sub(at) > 2 * SIGNED_WITHIN_MS.cast_signed()
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

/// What of a request may be signed.
struct Asked<'r> {
    method: &'r Method,
    uri: &'r Uri,
    headers: &'r HeaderMap,
    body: &'r [u8],
}

impl Asked<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Finds the credential of a request.
pub(super) async fn of(shared: &Shared, method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Result<Credential> {
    let asked = Asked { method, uri, headers, body };
    if let Some(value) = headers.get(AUTHORIZATION) {
        let secret = value.to_str().ok().and_then(bearer).map(str::to_owned);
        let secret = secret.ok_or_else(|| Error::new(Code::Unauthenticated, "the Authorization header must be: Bearer TOKEN"))?;
        return if has_key(shared, &secret).await? { of_browser(shared, secret, &asked).await } else { Ok(Credential::Secret { secret, proved: true }) };
    }
    match cookie(headers) {
        Some(secret) => of_browser(shared, secret, &asked).await,
        None => Ok(Credential::Named(asked.header(AGENT_HEADER).map(str::to_owned))),
    }
}

/// A browser's session is proved by a signature of its key, and by nothing else.
async fn of_browser(shared: &Shared, secret: String, asked: &Asked<'_>) -> Result<Credential> {
    Ok(match signed(shared, &secret, asked).await? {
        Some(signed) => Credential::Signed { secret, signed },
        None => Credential::Secret { secret, proved: false },
    })
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
    cookies.filter_map(|pair| pair.trim().split_once('=')).find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value.to_owned())
}

/// Whether this is the secret of a session that a browser opened.
async fn has_key(shared: &Shared, secret: &str) -> Result<bool> {
    if !secret.starts_with("dms_") {
        return Ok(false);
    }
    let secret = secret.to_owned();
    shared.app.desk.db.read(move |tx| identity::has_key(tx, &secret)).await
}

/// The desk's time, in milliseconds.
pub(super) fn now_ms(shared: &Shared) -> i64 {
    shared.app.desk.world.now() / 1_000
}

/// The refusal of what was rightly signed, but with another time than the desk's. It would be taken for unsigned otherwise, and
/// nobody would look at the clock.
fn signed_elsewhen(at: &str, now_ms: i64) -> Error {
    let at: i64 = at.parse().unwrap_or(0);
    let side = if at < now_ms { "behind" } else { "ahead of" };
    let seconds = now_ms.abs_diff(at) / 1_000;
    Error::new(Code::Unauthenticated, format!("this was signed by a clock that is {seconds} s {side} the desk's, and a signature is good for a minute"))
        .hint("try again; where that does not help, reload the page or compare the clocks of this machine and of the desk's")
}

/// Whether a browser says that it signed just now.
fn is_fresh(at: &str, now_ms: i64) -> bool {
    at.parse::<i64>().is_ok_and(|at| now_ms.abs_diff(at) <= SIGNED_WITHIN_MS)
}

/// What the browser signed, if it is a good signature of this session's own key that was not used before.
async fn signed(shared: &Shared, secret: &str, asked: &Asked<'_>) -> Result<Option<Signed>> {
    let (Some(signature), Some(at)) = (asked.header(SIGNATURE_HEADER), asked.header(SIGNED_AT_HEADER)) else { return Ok(None) };
    let now_ms = now_ms(shared);
    let Ok(bytes) = BASE64.decode(signature.as_bytes()) else { return Ok(None) };
    let path = asked.uri.path_and_query().map_or("/", |path| path.as_str());
    let text = format!("{}\n{path}\n{}\n{at}", asked.method, hex(&Sha256::digest(asked.body)));
    let (session, said) = (secret.to_owned(), text.clone());
    let key = shared.app.desk.db.read(move |tx| identity::verify_signature(tx, &session, said.as_bytes(), Some(&bytes))).await?;
    if key.is_some() && !is_fresh(at, now_ms) {
        return Err(signed_elsewhen(at, now_ms));
    }
    let key = key.filter(|_| shared.signatures.first_time(secret, &text, now_ms));
    Ok(key.map(|key| Signed { text, signature: signature.to_owned(), key: BASE64.encode(&key) }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_signed_is_good_once_and_forgotten_after_its_time() {
        let seen = Seen::default();
        assert!(seen.first_time("dms_a", "POST", 0));
        assert!(!seen.first_time("dms_a", "POST", 1), "whatever its signature looks like");
        assert!(seen.first_time("dms_b", "POST", 1), "another session's own");
        assert!(seen.first_time("dms_c", "POST", 3 * SIGNED_WITHIN_MS.cast_signed()));
        assert_eq!(seen.inner.lock().unwrap().texts.len(), 1, "what is too old to be good is not kept");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_cookie_header_is_read_and_only_the_sessions_own_is_taken(
            values in prop::collection::vec(prop::collection::vec(prop_oneof![32_u8..=126, 128_u8..=255], 0..60), 0..4), secret in "[A-Za-z0-9_]{0,40}",
            others in prop::collection::vec("[a-z_]{0,3}[a-z_]{1,20}=[^;,\\p{C}\\P{ASCII}]{0,20}", 0..4), at in any::<prop::sample::Index>(),
        ) {
            let mut headers = HeaderMap::new();
            for value in &values {
                headers.append(COOKIE, axum::http::HeaderValue::from_bytes(value).unwrap());
            }
            let names = |text: &str| text.split(';').any(|pair| pair.trim().starts_with(&format!("{COOKIE_NAME}=")));
            let said = values.iter().any(|value| std::str::from_utf8(value).is_ok_and(names));
            prop_assert_eq!(cookie(&headers).is_some(), said);
            let mut pairs: Vec<String> = others.into_iter().filter(|pair| !names(pair)).collect();
            pairs.extend([format!("x{COOKIE_NAME}=no"), format!("{COOKIE_NAME}2=no")]);
            pairs.insert(at.index(pairs.len()), format!("{COOKIE_NAME}={secret}"));
            let headers = HeaderMap::from_iter([(COOKIE, axum::http::HeaderValue::from_str(&pairs.join("; ")).unwrap())]);
            prop_assert_eq!(cookie(&headers), Some(secret));
        }

        #[test]
        fn any_time_is_fresh_within_a_minute_only(text in ".{0,25}", at in any::<i64>(), now in any::<i64>(), near in -60_000_i64..=60_000) {
            prop_assert!(!is_fresh(&text, now) || text.parse::<i64>().is_ok(), "{text}");
            prop_assert_eq!(is_fresh(&at.to_string(), now), (i128::from(at) - i128::from(now)).abs() <= 60_000);
            prop_assert!(is_fresh(&now.saturating_add(near).to_string(), now));
        }
    }
}
