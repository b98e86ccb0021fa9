//! Streamable HTTP for rmcp, over the desk's own TLS and a few connections that are kept open: another HTTP library would
//! bring a second TLS library along. No redirects and no cookies; without TLS only this machine is spoken to.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode, Uri};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage, ServerNotification};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use rustls::pki_types::ServerName;
use sse_stream::{Sse, SseStream};
use tokio::io::{AsyncRead, AsyncWrite};

use super::lines::{Pace, TOO_LARGE, UNREADABLE};
use super::relay::{Call, Ledger};
use super::spec::Spec;
use crate::effects::outbound;

/// How many connections wait for the next request, and how long: less than the five seconds after which the usual servers close
/// one, because nobody knows what came of a request that meets the closing.
const IDLE_MAX: usize = 8;
const IDLE_FOR: Duration = Duration::from_secs(4);
/// The longest that a server is believed that says how long it keeps a connection.
const IDLE_FOR_MAX: Duration = Duration::from_secs(50);
/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How much of an answer that is no message is shown.
const SHOWN_BYTES: usize = 300;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// What goes wrong between here and the server.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// Nothing was sent.
    #[error("{0}")]
    Connect(String),
    /// The request may have arrived.
    #[error("the connection broke: {0}")]
    Broken(String),
}

type Failed = StreamableHttpError<Fault>;

/// A client of one upstream.
#[derive(Clone)]
pub(super) struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    url: Uri,
    headers: HeaderMap,
    tls: Option<(tokio_rustls::TlsConnector, ServerName<'static>)>,
    /// Connections that are open, and until when they may be used again.
    idle: Mutex<Vec<(SendRequest<Full<Bytes>>, Instant)>>,
    spec: Arc<Spec>,
    ledger: Arc<Ledger>,
}

impl Client {
    pub(super) fn new(url: &str, headers: &[(String, String)], spec: Arc<Spec>, ledger: Arc<Ledger>) -> Result<Self, String> {
        let url: Uri = url.parse().map_err(|_| "its address is not one".to_owned())?;
        let host = url.host().ok_or("its address has no host")?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let tls = if url.scheme_str() == Some("https") {
            let name = ServerName::try_from(host).map_err(|_| "its address has no valid host".to_owned())?;
            Some((tokio_rustls::TlsConnector::from(Arc::new(outbound::tls(None)?)), name))
        } else {
            None
        };
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::try_from(name).map_err(|_| format!("the header {name:?} cannot be sent"))?;
            let mut value = HeaderValue::try_from(value).map_err(|_| format!("the header {name} has a value that cannot be sent"))?;
            value.set_sensitive(true);
            sent.insert(name, value);
        }
        Ok(Self { inner: Arc::new(Inner { url, headers: sent, tls, idle: Mutex::default(), spec, ledger }) })
    }

    /// A connection that is open and free, or a new one.
    async fn connection(&self) -> Result<(SendRequest<Full<Bytes>>, bool), Fault> {
        let kept = {
            let mut idle = self.inner.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            idle.retain(|(sender, until)| !sender.is_closed() && now < *until);
            idle.iter().rposition(|(sender, _)| sender.is_ready()).map(|at| idle.swap_remove(at).0)
        };
        if let Some(sender) = kept {
            return Ok((sender, true));
        }
        let made = tokio::time::timeout(CONNECT, self.connect()).await;
        let sender = made.map_err(|_| Fault::Connect(format!("no connection within {} s", CONNECT.as_secs())))?.map_err(Fault::Connect)?;
        Ok((sender, false))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let inner = &self.inner;
        let host = inner.url.host().unwrap_or_default();
        let port = inner.url.port_u16().unwrap_or(if inner.tls.is_some() { 443 } else { 80 });
        let stream = outbound::connect(host, port, inner.tls.is_none()).await?;
        match &inner.tls {
            Some((tls, name)) => handshake(tls.connect(name.clone(), stream).await.map_err(|error| format!("TLS: {error}"))?).await,
            None => handshake(stream).await,
        }
    }

    /// Sends a request. One that met a connection which the server had closed meanwhile is sent again; one that may have
    /// arrived is not.
    async fn send(&self, method: Method, headers: HeaderMap, body: Bytes, call: Option<&Call>) -> Result<Response<Incoming>, Fault> {
        let inner = &self.inner;
        let path = inner.url.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str);
        let host = inner.url.authority().map_or("", hyper::http::uri::Authority::as_str);
        loop {
            let (mut sender, kept) = self.connection().await?;
            let mut request = Request::builder().method(method.clone()).uri(path).header(HOST, host);
            if let Some(all) = request.headers_mut() {
                all.extend(inner.headers.clone());
                all.extend(headers.clone());
                all.insert(USER_AGENT, HeaderValue::from_static(concat!("deskmate/", env!("CARGO_PKG_VERSION"))));
            }
            let request = request.body(Full::new(body.clone())).map_err(|error| Fault::Connect(error.to_string()))?;
            // Marked before: from here on it may arrive.
            if !call.is_none_or(Call::leave) {
                return Err(Fault::Connect("nobody waits for it any more".to_owned()));
            }
            match sender.try_send_request(request).await {
                Ok(response) => {
                    let mut idle = inner.idle.lock().unwrap_or_else(PoisonError::into_inner);
                    if idle.len() < IDLE_MAX {
                        // It is free again once the answer is read.
                        idle.push((sender, Instant::now() + kept_for(response.headers())));
                    }
                    return Ok(response);
                }
                Err(error) if kept && error.message().is_some() => call.into_iter().for_each(Call::is_back),
                Err(error) => return Err(Fault::Broken(error.error().to_string())),
            }
        }
    }

    fn headers(session: Option<&str>, token: Option<&str>, custom: HashMap<HeaderName, HeaderValue>) -> Result<HeaderMap, Failed> {
        let text =
            |value: &str| HeaderValue::try_from(value).map_err(|_| StreamableHttpError::UnexpectedServerResponse("a session id that cannot be sent".into()));
        let mut headers: HeaderMap = custom.into_iter().collect();
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, text(&format!("Bearer {token}"))?);
        }
        if let Some(session) = session {
            headers.insert(SESSION, text(session)?);
        }
        Ok(headers)
    }

    /// Events of a bounded size, at a bounded pace. One that is too large becomes a failure of the call it belongs to.
    fn events(&self, body: Incoming, id: Option<RequestId>) -> BoxStream<'static, Result<Sse, SseError>> {
        let most = self.inner.spec.bounds.answer_bytes;
        let mut meter = Meter::new(most);
        let bytes = body.into_data_stream().map(move |piece| {
            let piece = piece.map_err(io::Error::other)?;
            if meter.exceeds(&piece) { Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large")) } else { Ok(piece) }
        });
        let events = SseStream::from_bytes_stream(bytes);
        let pace = Pace::new(&self.inner.spec.bounds);
        let ledger = Arc::clone(&self.inner.ledger);
        futures_util::stream::unfold((events, pace, false), move |(mut events, mut pace, over)| {
            let (id, ledger) = (id.clone(), Arc::clone(&ledger));
            async move {
                if over {
                    return None;
                }
                let event = loop {
                    let event = events.next().await?;
                    match event.as_ref().ok().and_then(|event| progress(event.data.as_deref()?)) {
                        Some(progress) => drop(ledger.aside(progress)),
                        None => break event,
                    }
                    if let Some(wait) = pace.took() {
                        tokio::time::sleep_until(wait).await;
                    }
                };
                let large = matches!(&event, Err(SseError::Body(error)) if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::FileTooLarge));
                if large && let Some(id) = id {
                    return Some((Ok(Sse::default().data(failure(TOO_LARGE, "too large", id))), (events, pace, true)));
                }
                if let Some(wait) = pace.took() {
                    tokio::time::sleep_until(wait).await;
                }
                let over = large;
                Some((event, (events, pace, over)))
            }
        })
        .boxed()
    }

    async fn whole(&self, body: Incoming) -> Result<Bytes, Unwhole> {
        match Limited::new(body, self.inner.spec.bounds.answer_bytes).collect().await {
            Ok(collected) => Ok(collected.to_bytes()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(Unwhole::TooLarge),
            Err(error) => Err(Unwhole::Broken(error.to_string())),
        }
    }

    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let mut headers = Self::headers(session.as_deref(), token.as_deref(), custom)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let call = self.inner.ledger.enter(&message);
        let response = self.send(Method::POST, headers, body, call.as_deref()).await.map_err(StreamableHttpError::Client)?;
        let status = response.status();
        refused(&response)?;
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        let asked = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
        let opened = response.headers().get(&SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if !status.is_success() {
            return self.unsuccessful(response, &message, asked, session.is_some()).await;
        }
        if kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response.into_body(), asked), opened));
        }
        let Some(id) = asked else { return Ok(StreamableHttpPostResponse::Accepted) };
        if !kind.starts_with(JSON) {
            return Err(StreamableHttpError::UnexpectedContentType(Some(kind)));
        }
        let answer = match self.whole(response.into_body()).await {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .unwrap_or_else(|error| ServerJsonRpcMessage::error(ErrorData::new(UNREADABLE, error.to_string(), None), Some(id))),
            Err(Unwhole::TooLarge) => ServerJsonRpcMessage::error(ErrorData::new(TOO_LARGE, "too large", None), Some(id)),
            Err(Unwhole::Broken(why)) => return Err(StreamableHttpError::Client(Fault::Broken(why))),
        };
        Ok(StreamableHttpPostResponse::Json(answer, opened))
    }

    /// An answer with a status that says no. It may still hold an error of the protocol, which says more.
    async fn unsuccessful(
        &self,
        response: Response<Incoming>,
        message: &ClientJsonRpcMessage,
        asked: Option<RequestId>,
        in_session: bool,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        let retry = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = self.whole(response.into_body()).await.unwrap_or_default();
        let error = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error.error),
            _ => None,
        };
        let discovers = matches!(message, ClientJsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::DiscoverRequest(_)));
        // A server of the older era refuses a question of the newer one in whatever way it likes.
        let legacy = discovers && !in_session && status.is_client_error();
        let error = error.or_else(|| legacy.then(|| ErrorData::invalid_request(format!("server/discover was refused with HTTP {status}"), None)));
        match (error, asked) {
            (Some(error), Some(id)) => Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, Some(id)), None)),
            _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Err(StreamableHttpError::HttpStatus(HttpStatusError::new(status.as_u16(), retry)))
            }
            _ => {
                let shown: String = String::from_utf8_lossy(&body).chars().filter(|c| !c.is_control()).take(SHOWN_BYTES).collect();
                Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}: {}", self.inner.spec.hide(&shown)))))
            }
        }
    }

    async fn stream(
        &self,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let mut headers = Self::headers(session.as_deref(), token.as_deref(), custom)?;
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(last) = last_event.and_then(|last| HeaderValue::try_from(last).ok()) {
            headers.insert(LAST_EVENT, last);
        }
        let response = self.send(Method::GET, headers, Bytes::new(), None).await.map_err(StreamableHttpError::Client)?;
        #[cfg(feature = "conformance")]
        self.inner.ledger.listened.store(true, std::sync::atomic::Ordering::Relaxed);
        refused(&response)?;
        let status = response.status();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return Err(StreamableHttpError::HttpStatus(HttpStatusError::new(status.as_u16(), None)));
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
        if !kind.starts_with(EVENTS) {
            return Err(StreamableHttpError::UnexpectedContentType(Some(kind)));
        }
        Ok(self.events(response.into_body(), None))
    }
}

/// For how long a connection may be used again: a second less than its server says that it keeps it.
fn kept_for(headers: &HeaderMap) -> Duration {
    let said = headers.get("keep-alive").and_then(|value| value.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
    let seconds = said.split(',').find_map(|part| part.trim().strip_prefix("timeout=")?.trim().parse::<u64>().ok());
    seconds.map_or(IDLE_FOR, |seconds| Duration::from_secs(seconds.saturating_sub(1)).min(IDLE_FOR_MAX))
}

/// Why a body is not there.
enum Unwhole {
    TooLarge,
    Broken(String),
}

/// An event that is progress: that is taken out before it can be overtaken.
fn progress(data: &str) -> Option<ServerJsonRpcMessage> {
    data.contains("notifications/progress").then(|| serde_json::from_str(data).ok()).flatten().filter(|message| {
        matches!(message, ServerJsonRpcMessage::Notification(notification) if matches!(notification.notification, ServerNotification::ProgressNotification(_)))
    })
}

/// A failure of a call, as the server would have written it.
fn failure(code: rmcp::model::ErrorCode, message: &'static str, id: RequestId) -> String {
    serde_json::to_string(&ServerJsonRpcMessage::error(ErrorData::new(code, message, None), Some(id))).unwrap_or_default()
}

/// A server that wants another credential says so in a header.
fn refused(response: &Response<Incoming>) -> Result<(), Failed> {
    let challenge = || response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok()).unwrap_or("no challenge").to_owned();
    match response.status() {
        StatusCode::UNAUTHORIZED => Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge()))),
        StatusCode::FORBIDDEN => Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge(), None))),
        _ => Ok(()),
    }
}

async fn handshake<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S) -> Result<SendRequest<Full<Bytes>>, String> {
    let (sender, connection) = hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream)).await.map_err(|error| format!("HTTP: {error}"))?;
    // It ends with the last of its sender and its answer's body.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

/// Counts the bytes of an event.
struct Meter {
    most: usize,
    event: usize,
    ends: u8,
}

impl Meter {
    fn new(most: usize) -> Self {
        // The field's name and the line's end come on top.
        Self { most: most.saturating_add(64), event: 0, ends: 0 }
    }

    fn exceeds(&mut self, piece: &[u8]) -> bool {
        for byte in piece {
            match byte {
                b'\n' => self.ends += 1,
                b'\r' => {}
                _ => self.ends = 0,
            }
            self.event = if self.ends >= 2 { 0 } else { self.event + 1 };
            if self.event > self.most {
                return true;
            }
        }
        false
    }
}

impl StreamableHttpClient for Client {
    type Error = Fault;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.post(message, session, token, custom).await
    }

    async fn delete_session(&self, _: Arc<str>, session: Arc<str>, token: Option<String>, custom: HashMap<HeaderName, HeaderValue>) -> Result<(), Failed> {
        let headers = Self::headers(Some(&session), token.as_deref(), custom)?;
        let response = self.send(Method::DELETE, headers, Bytes::new(), None).await.map_err(StreamableHttpError::Client)?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportDeleteSession);
        }
        Ok(())
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        self.stream(session, last_event, token, custom).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_left_before_its_server_leaves_it() {
        let says = |text: &'static str| kept_for(&[(HeaderName::from_static("keep-alive"), HeaderValue::from_static(text))].into_iter().collect());
        assert_eq!(kept_for(&HeaderMap::new()), Duration::from_secs(4));
        assert_eq!((says("timeout=5"), says("max=9, Timeout=30")), (Duration::from_secs(4), Duration::from_secs(29)));
        assert_eq!((says("timeout=0"), says("timeout=9000"), says("timeout=x")), (Duration::ZERO, IDLE_FOR_MAX, IDLE_FOR));
    }

    #[test]
    fn an_event_is_measured_by_itself() {
        let mut meter = Meter::new(10);
        for _ in 0..100 {
            assert!(!meter.exceeds(b"data: 0123456789\r\n\r\n"));
            assert!(!meter.exceeds(b": still there\n\n"));
        }
        assert!(!meter.exceeds(&[b'x'; 70]));
        assert!(meter.exceeds(&[b'x'; 70]), "one that never ends");
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn any_header_keeps_a_connection_for_a_bounded_time(text in "(timeout=)?[ -~]{0,30}", seconds in proptest::num::u64::ANY) {
            let says = |text: &str| kept_for(&[(HeaderName::from_static("keep-alive"), HeaderValue::from_str(text).unwrap())].into_iter().collect());
            proptest::prop_assert!(says(&text) <= IDLE_FOR_MAX);
            proptest::prop_assert_eq!(says(&format!("timeout={seconds}")), Duration::from_secs(seconds.saturating_sub(1)).min(IDLE_FOR_MAX));
        }

        #[test]
        fn any_event_is_progress_or_none(data in "(?s).{0,80}", number in proptest::num::i64::ANY) {
            proptest::prop_assert!(progress(&data).is_none());
            let params = serde_json::json!({ "progressToken": number, "progress": 1 });
            let note = serde_json::json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string();
            proptest::prop_assert!(progress(&note).is_some());
        }
    }
}
