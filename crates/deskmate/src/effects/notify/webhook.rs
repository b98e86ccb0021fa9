//! A signed request to another program, as Standard Webhooks describes it: an id that stays the same at every attempt, the
//! time of the attempt, and an HMAC over both and the body. One request, no redirects; only 2xx counts.

use std::time::Duration;

use data_encoding::BASE64;
use hmac::{Hmac, KeyInit, Mac};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, InvalidHeaderValue};
use sha2::Sha256;

use crate::config::{Endpoint, Key};
use crate::effects::outbound::Receiver;

/// What is sent.
pub(crate) struct Post<'a> {
    /// Names what is sent; receivers that get it twice know by this that it is the same.
    pub(crate) id: &'a str,
    /// Seconds since 1970.
    pub(crate) at: i64,
    /// The text.
    pub(crate) body: &'a str,
}

/// Why something did not arrive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The receiver says that it is gone for good.
    Gone,
    /// The receiver has too much to do, and says how long not to come back.
    Later {
        /// What it answered, in our words.
        error: String,
        /// How long to wait.
        by: Duration,
    },
    /// Trying again cannot help as things are.
    Never(String),
    /// Anything else, in our words: what the receiver wrote is not repeated.
    Other(String),
}

/// The header that proves where a request comes from: one signature for each key, so that keys can be replaced.
pub(crate) fn signature(keys: &[Key], post: &Post<'_>) -> String {
    let signed = keys.iter().filter_map(|key| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key.bytes()).ok()?;
        mac.update(format!("{}.{}.", post.id, post.at).as_bytes());
        mac.update(post.body.as_bytes());
        Some(format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes())))
    });
    signed.collect::<Vec<_>>().join(" ")
}

/// Sends a request and waits for the answer's first line.
pub(crate) async fn post(endpoint: &Endpoint, post: Post<'_>) -> Result<(), Refused> {
    let headers = headers(&endpoint.keys, &post).map_err(|error| Refused::Other(format!("HTTP: {error}")))?;
    let receiver = Receiver::new(endpoint.url.clone(), endpoint.ca_file.clone());
    let answer = receiver.post(headers, Bytes::copy_from_slice(post.body.as_bytes())).await.map_err(Refused::Other)?;
    let error = |status: StatusCode| format!("the receiver answered {}", status.as_u16());
    match (answer.status, answer.retry_after.and_then(|text| wait(&text, post.at))) {
        (status, _) if status.is_success() => Ok(()),
        (StatusCode::GONE, _) => Err(Refused::Gone),
        (status @ (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE), Some(by)) => Err(Refused::Later { error: error(status), by }),
        (status, _) => Err(Refused::Other(error(status))),
    }
}

/// How long `Retry-After` asks to wait, from a time in seconds on: it is a number of seconds or a date. `None` if it is
/// neither, and nothing for a date that has passed.
pub(super) fn wait(text: &str, now: i64) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(date.saturating_sub(Duration::from_secs(u64::try_from(now).unwrap_or(0))))
}

fn headers(keys: &[Key], post: &Post<'_>) -> Result<HeaderMap, InvalidHeaderValue> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("webhook-id", HeaderValue::from_str(post.id)?);
    headers.insert("webhook-timestamp", HeaderValue::from(post.at));
    headers.insert("webhook-signature", HeaderValue::from_str(&signature(keys, post))?);
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples that the makers of Standard Webhooks publish.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let key = |text: &str| Key::parse(text).unwrap();
        let post = Post { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", at: 1_614_265_330, body: r#"{"test": 2432232314}"# };
        let first = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        assert_eq!(signature(std::slice::from_ref(&first), &post), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let ping = Post { id: "msg_loFOjxBNrRLzqYUf", at: 1_731_705_121, body: r#"{"event_type":"ping","data":{"success":true}}"# };
        // Published with a key that is shorter than the standard asks for.
        let second = Key::of(BASE64.decode(b"plJ3nmyCDGBKInavdOK15jsl").unwrap());
        assert_eq!(signature(std::slice::from_ref(&second), &ping), "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=");
        let both = signature(&[first, second], &post);
        assert!(both.starts_with("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1,"), "{both}");
    }

    #[test]
    fn how_long_to_wait_is_read_in_both_forms() {
        let now = 784_111_700;
        for (text, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(77)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(77)),
            ("Sun Nov  6 08:49:37 1994", Some(77)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(wait(text, now), seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        let key = Key::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        assert_eq!(format!("{key:?}"), "…");
        for bad in ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_c2hvcnQ=", "whsec_plJ3nmyCDGBKInavdOK15jsl", "whsec_???"] {
            assert!(Key::parse(bad).is_none(), "{bad}");
        }
    }
}
