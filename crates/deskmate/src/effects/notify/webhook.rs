//! A signed request to another program, as Standard Webhooks describes it: an id that stays the same at every attempt, the
//! time of the attempt, and an HMAC over both and the body. One request, no redirects; only 2xx counts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use sha2::Sha256;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::config::{Endpoint, Key};

/// How long a receiver may take, from the connection to its answer.
const TIMEOUT: Duration = Duration::from_secs(15);

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
    let answer = match tokio::time::timeout(TIMEOUT, exchange(endpoint, &post)).await {
        Ok(answer) => answer.map_err(Refused::Other)?,
        Err(_) => return Err(Refused::Other(format!("the receiver did not answer within {} s", TIMEOUT.as_secs()))),
    };
    let error = |status: StatusCode| format!("the receiver answered {}", status.as_u16());
    match (answer.status, answer.retry_after.and_then(|text| wait(&text, post.at))) {
        (status, _) if status.is_success() => Ok(()),
        (StatusCode::GONE, _) => Err(Refused::Gone),
        (status @ (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE), Some(by)) => Err(Refused::Later { error: error(status), by }),
        (status, _) => Err(Refused::Other(error(status))),
    }
}

/// What a receiver answers, as far as anybody looks at it.
struct Answer {
    status: StatusCode,
    retry_after: Option<String>,
}

/// How long `Retry-After` asks to wait, from a time in seconds on: it is a number of seconds or a date. `None` if it is
/// neither, and nothing for a date that has passed.
fn wait(text: &str, now: i64) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(date.saturating_sub(Duration::from_secs(u64::try_from(now).unwrap_or(0))))
}

async fn exchange(endpoint: &Endpoint, post: &Post<'_>) -> Result<Answer, String> {
    let url = &endpoint.url;
    let host = url.host().ok_or_else(|| "the address has no host".to_owned())?;
    let secure = url.scheme_str() == Some("https");
    let stream = connect(host, url.port_u16().unwrap_or(if secure { 443 } else { 80 }), !secure).await?;
    if !secure {
        return send(stream, url, endpoint, post).await;
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(bare).map_err(|_| "the address has no valid host".to_owned())?;
    let tls = tokio_rustls::TlsConnector::from(Arc::new(tls(endpoint)?));
    let stream = tls.connect(name, stream).await.map_err(|error| format!("TLS: {error}"))?;
    send(stream, url, endpoint, post).await
}

/// Connects to the first address that answers. Without TLS only this machine is spoken to, whatever a name resolves to.
async fn connect(host: &str, port: u16, local_only: bool) -> Result<TcpStream, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((bare, port)).await.map_err(|error| format!("{host}: {error}"))?;
    let addresses: Vec<SocketAddr> = found.filter(|address| !local_only || address.ip().is_loopback()).collect();
    let stream = TcpStream::connect(addresses.as_slice()).await.map_err(|error| format!("{host}:{port}: {error}"))?;
    drop(stream.set_nodelay(true));
    Ok(stream)
}

fn tls(endpoint: &Endpoint) -> Result<rustls::ClientConfig, String> {
    let mut roots = rustls::RootCertStore::empty();
    match &endpoint.ca_file {
        Some(file) => {
            let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let (_, unread) = roots.add_parsable_certificates(read.map_err(|error| format!("{}: {error}", file.display()))?);
            if unread > 0 || roots.is_empty() {
                return Err(format!("{} holds no certificates that can be used", file.display()));
            }
        }
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

async fn send<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, url: &Uri, endpoint: &Endpoint, post: &Post<'_>) -> Result<Answer, String> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.map_err(|error| format!("HTTP: {error}"))?;
    // It ends with the sender, and with the time that the whole exchange has.
    let connection = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(connection));
    let request = Request::post(url.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str))
        .header(HOST, url.authority().map_or("", hyper::http::uri::Authority::as_str))
        .header(USER_AGENT, concat!("deskmate/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, "application/json")
        .header(CONNECTION, "close")
        .header("webhook-id", post.id)
        .header("webhook-timestamp", post.at.to_string())
        .header("webhook-signature", signature(&endpoint.keys, post))
        .body(Full::new(Bytes::copy_from_slice(post.body.as_bytes())))
        .map_err(|error| format!("HTTP: {error}"))?;
    let answer = sender.send_request(request).await.map_err(|error| format!("HTTP: {error}"))?;
    drop(connection);
    let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(Answer { status: answer.status(), retry_after })
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
