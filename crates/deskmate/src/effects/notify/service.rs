//! Chats and phones: one request to a service, in the form that it documents. What the service wrote is not repeated, but for the id
//! that it gave the message.

use std::time::Duration;

use deskmate_core::notify::ChannelKind;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use serde_json::Value;
use zeroize::Zeroizing;

use super::webhook::{Refused, wait};
use crate::config::{Service, address};
use crate::effects::outbound::Receiver;

/// How much of an answer is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Sends a message; answers the id that the service gave it, if it did. `now` is in seconds.
pub(super) async fn send(service: &Service, secret: Option<Zeroizing<String>>, body: &Value, now: i64) -> Result<Option<String>, Refused> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let url = match (service.kind, secret, &service.base) {
        (ChannelKind::Telegram, Some(token), Some(base)) => Zeroizing::new(format!("{base}/bot{}/sendMessage", token.trim())),
        (ChannelKind::Ntfy, token, Some(base)) => {
            if let Some(token) = token {
                let bearer = Zeroizing::new(format!("Bearer {}", token.trim()));
                let mut value = HeaderValue::from_str(&bearer).map_err(|_| Refused::Never("the token cannot be sent in a header".to_owned()))?;
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
            Zeroizing::new(format!("{base}/"))
        }
        (ChannelKind::Discord, Some(url), _) => {
            // Only then does it answer with the id of the message.
            let mark = if url.contains('?') { '&' } else { '?' };
            Zeroizing::new(format!("{}{mark}wait=true", url.trim()))
        }
        (_, Some(url), _) => Zeroizing::new(url.trim().to_owned()),
        (_, None, _) => return Err(Refused::Never("the outlet has no secret".to_owned())),
    };
    let url = address(&url).map_err(|_| Refused::Never("the secret is not an address that can be used: https, or http to this machine".to_owned()))?;
    let receiver = Receiver::new(url, service.ca_file.clone());
    let answer = receiver.ask(headers, Bytes::from(body.to_string()), ANSWER_BYTES_MAX).await.map_err(Refused::Other)?;
    let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(|text| wait(text, now));
    judged(service.kind, answer.status(), answer.body(), retry_after)
}

/// What an answer means.
fn judged(kind: ChannelKind, status: StatusCode, body: &[u8], retry_after: Option<Duration>) -> Result<Option<String>, Refused> {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let refused_by_bot = kind == ChannelKind::Telegram && said.get("ok") == Some(&Value::Bool(false));
    if status.is_success() && !refused_by_bot {
        return Ok(receipt(kind, &said));
    }
    let error = format!("the service answered {}", status.as_u16());
    // Telegram and Discord also say it in the body.
    let seconds = said.pointer("/parameters/retry_after").or_else(|| said.get("retry_after")).and_then(Value::as_f64);
    let by = retry_after.or_else(|| seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.ceil()).ok()));
    match (status, by) {
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, Some(by)) => Err(Refused::Later { error, by }),
        (StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS, _) => Err(Refused::Other(error)),
        (status, _) if status.is_server_error() => Err(Refused::Other(error)),
        (StatusCode::GONE, _) => Err(Refused::Gone),
        // An incoming webhook that was deleted, and a person who has blocked the bot.
        (StatusCode::NOT_FOUND, _) if !matches!(kind, ChannelKind::Telegram | ChannelKind::Ntfy) => Err(Refused::Gone),
        (StatusCode::FORBIDDEN, _) if kind == ChannelKind::Telegram => Err(Refused::Gone),
        _ => Err(Refused::Never(error)),
    }
}

fn receipt(kind: ChannelKind, said: &Value) -> Option<String> {
    let place = match kind {
        ChannelKind::Telegram => "/result/message_id",
        ChannelKind::Ntfy | ChannelKind::Discord => "/id",
        _ => return None,
    };
    match said.pointer(place)? {
        Value::String(id) => Some(id.chars().take(64).collect()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge(kind: ChannelKind, status: u16, body: &Value, retry_after: Option<u64>) -> Result<Option<String>, Refused> {
        judged(kind, StatusCode::from_u16(status).unwrap(), body.to_string().as_bytes(), retry_after.map(Duration::from_secs))
    }

    #[test]
    fn answers_are_told_apart() {
        use ChannelKind::{Discord, Ntfy, Slack, Teams, Telegram};
        assert_eq!(judge(Telegram, 200, &json!({ "ok": true, "result": { "message_id": 77 } }), None), Ok(Some("77".to_owned())));
        assert_eq!(judge(Ntfy, 200, &json!({ "id": "hwQ2YpKdmg" }), None), Ok(Some("hwQ2YpKdmg".to_owned())));
        assert_eq!(judge(Discord, 200, &json!({ "id": "123" }), None), Ok(Some("123".to_owned())));
        assert_eq!((judge(Slack, 200, &json!("ok"), None), judge(Teams, 202, &Value::Null, None)), (Ok(None), Ok(None)));
        let later = |seconds: u64, status: u16| Err(Refused::Later { error: format!("the service answered {status}"), by: Duration::from_secs(seconds) });
        assert_eq!(judge(Slack, 429, &Value::Null, Some(30)), later(30, 429));
        assert_eq!(judge(Telegram, 429, &json!({ "ok": false, "parameters": { "retry_after": 35 } }), None), later(35, 429));
        assert_eq!(judge(Discord, 429, &json!({ "retry_after": 0.3 }), None), later(1, 429));
        for (kind, status) in [(Slack, 500), (Slack, 429), (Ntfy, 507), (Telegram, 502), (Teams, 408)] {
            assert_eq!(judge(kind, status, &Value::Null, None), Err(Refused::Other(format!("the service answered {status}"))), "{status}");
        }
        for (kind, status) in [(Slack, 410), (Slack, 404), (Discord, 404), (Telegram, 403)] {
            assert_eq!(judge(kind, status, &Value::Null, None), Err(Refused::Gone), "{status}");
        }
        for (kind, status) in [(Slack, 400), (Slack, 302), (Ntfy, 401), (Ntfy, 404), (Telegram, 404), (Telegram, 400)] {
            assert_eq!(judge(kind, status, &Value::Null, None), Err(Refused::Never(format!("the service answered {status}"))), "{status}");
        }
        assert!(matches!(judge(Telegram, 200, &json!({ "ok": false }), None), Err(Refused::Never(_))), "it says so in the body");
    }
}
