//! Asks for a page and follows its redirects.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, HOST, LOCATION, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;
use url::Host;

use super::resolve::{Resolve, System};
use super::target::Target;
use super::{FetchError, Limits, Page, address, body};

/// The least that the HTTP library keeps for an answer's head.
const HEAD_BYTES_MIN: usize = 8 << 10;
const ACCEPTED: &str = "text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.9, application/xml;q=0.8, text/*;q=0.5";

/// Reads pages. It keeps nothing but the certificates it trusts: no cookies, no connections, no cache.
pub struct Client {
    resolver: Box<dyn Resolve>,
    /// Addresses that may be reached although they are not public.
    reaching: Vec<SocketAddr>,
    tls: OnceLock<Arc<ClientConfig>>,
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// A client that reaches the public internet only.
    pub fn new() -> Self {
        Self { resolver: Box::new(System), reaching: Vec::new(), tls: OnceLock::new() }
    }

    /// A client that reaches these addresses, too: for whoever has checked them, and for tests, which serve their pages themselves.
    pub fn reaching(addresses: Vec<SocketAddr>) -> Self {
        Self { reaching: addresses, ..Self::new() }
    }

    /// The same client for whoever trusts other certificates than the system's.
    #[must_use]
    pub fn trusting(self, tls: Arc<ClientConfig>) -> Self {
        Self { tls: OnceLock::from(tls), ..self }
    }

    /// The same client with another resolver and other certificates.
    #[cfg(test)]
    pub(super) fn with(self, resolver: impl Resolve + 'static, roots: RootCertStore) -> Self {
        Self { resolver: Box::new(resolver), ..self.trusting(Arc::new(trusting(roots).unwrap())) }
    }

    /// Reads a page, within the limits.
    pub async fn fetch(&self, url: &str, limits: &Limits) -> Result<Page, FetchError> {
        match tokio::time::timeout(limits.time, self.read(url, limits)).await {
            Ok(page) => page,
            Err(_) => Err(FetchError::TimedOut(limits.time)),
        }
    }

    async fn read(&self, url: &str, limits: &Limits) -> Result<Page, FetchError> {
        let mut target = Target::parse(url, limits)?;
        for _ in 0..=limits.redirects {
            let mut exchange = self.exchange(&target, limits).await?;
            let Some(location) = location(&exchange.answer) else {
                return exchange.page(&target, limits).await;
            };
            target = target.follow(&location, limits)?;
        }
        Err(FetchError::Redirects(limits.redirects))
    }

    async fn exchange(&self, target: &Target, limits: &Limits) -> Result<Exchange, FetchError> {
        let stream = self.connect(target).await?;
        if !target.secure {
            return ask(stream, target, limits).await;
        }
        let failed = |error: String| FetchError::Tls(target.name(), error);
        let name = match &target.host {
            Host::Domain(name) => ServerName::try_from(name.trim_end_matches('.').to_owned()).map_err(|_| failed("the name is not valid".to_owned()))?,
            Host::Ipv4(address) => ServerName::from(IpAddr::V4(*address)),
            Host::Ipv6(address) => ServerName::from(IpAddr::V6(*address)),
        };
        let tls = tokio_rustls::TlsConnector::from(self.tls().map_err(failed)?);
        let stream = tls.connect(name, stream).await.map_err(|error| failed(error.kind().to_string()))?;
        ask(stream, target, limits).await
    }

    /// Connects to one of the addresses that were checked. They are not looked up again: a name that has another address
    /// a moment later would lead elsewhere.
    async fn connect(&self, target: &Target) -> Result<TcpStream, FetchError> {
        let found = match &target.host {
            Host::Domain(name) => self.resolver.resolve(name).await.map_err(|_| FetchError::NotFound(target.name()))?,
            Host::Ipv4(address) => vec![IpAddr::V4(*address)],
            Host::Ipv6(address) => vec![IpAddr::V6(*address)],
        };
        let addresses: Vec<SocketAddr> = found.into_iter().map(|address| SocketAddr::new(address, target.port)).collect();
        if addresses.is_empty() {
            return Err(FetchError::NotFound(target.name()));
        }
        // One that is not public is enough: whoever gives a name such an address wants something with it.
        if !addresses.iter().all(|found| address::is_public(found.ip()) || self.reaching.contains(found)) {
            return Err(FetchError::NotPublic(target.name()));
        }
        let stream = TcpStream::connect(addresses.as_slice()).await.map_err(|error| FetchError::Unreachable(target.name(), error.kind().to_string()))?;
        drop(stream.set_nodelay(true));
        Ok(stream)
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, String> {
        if let Some(tls) = self.tls.get() {
            return Ok(Arc::clone(tls));
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let tls = Arc::new(trusting(roots)?);
        Ok(Arc::clone(self.tls.get_or_init(|| tls)))
    }
}

fn trusting(roots: RootCertStore) -> Result<ClientConfig, String> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// An answer whose body is not read yet, and the connection it comes through, which ends with it.
struct Exchange {
    answer: Response<Incoming>,
    _connection: AbortOnDropHandle<hyper::Result<()>>,
}

async fn ask<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, target: &Target, limits: &Limits) -> Result<Exchange, FetchError> {
    let failed = |error: hyper::Error| FetchError::Http(target.name(), words(&error));
    let head = limits.head_bytes.max(HEAD_BYTES_MIN);
    let (mut sender, connection) =
        hyper::client::conn::http1::Builder::new().max_buf_size(head).handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await.map_err(failed)?;
    let connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let url = &target.url;
    let request = Request::get(&url[url::Position::BeforePath..url::Position::AfterQuery])
        .header(HOST, &url[url::Position::BeforeHost..url::Position::AfterPort])
        .header(USER_AGENT, concat!("deskmate/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, ACCEPTED)
        .header(ACCEPT_ENCODING, "gzip")
        .header(CONNECTION, "close")
        .body(Empty::new())
        .map_err(|error| FetchError::Address(error.to_string()))?;
    let answer = sender.send_request(request).await.map_err(failed)?;
    Ok(Exchange { answer, _connection: connection })
}

impl Exchange {
    /// Reads the body, as far as it may be read.
    async fn page(&mut self, target: &Target, limits: &Limits) -> Result<Page, FetchError> {
        let kind = body::Kind::of(self.answer.headers())?;
        let stream = self.answer.body_mut();
        let mut bytes: Vec<u8> = Vec::new();
        let mut truncated = false;
        while let Some(frame) = stream.frame().await {
            let frame = frame.map_err(|error| FetchError::Http(target.name(), words(&error)))?;
            let data = frame.data_ref().map_or(&[][..], Bytes::as_ref);
            let left = limits.body_bytes.saturating_sub(bytes.len());
            bytes.extend(data.iter().take(left));
            if data.len() > left {
                truncated = true;
                break;
            }
        }
        let (url, status) = (target.url.clone(), self.answer.status().as_u16());
        let limits = limits.clone();
        // Taking a page apart can take a while, and others wait for this thread.
        let read = tokio::task::spawn_blocking(move || kind.page(url, status, bytes, truncated, &limits)).await;
        read.unwrap_or_else(|_| Err(FetchError::Http(target.name(), "the page could not be read".to_owned())))
    }
}

/// Where an answer sends, if it does.
fn location(answer: &Response<Incoming>) -> Option<Vec<u8>> {
    if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    answer.headers().get(LOCATION).map(|location| location.as_bytes().to_vec())
}

/// What went wrong, without what the server said.
fn words(error: &hyper::Error) -> String {
    let words = if error.is_parse_too_large() {
        "its head is too large"
    } else if error.is_parse() {
        "it sent something else than HTTP"
    } else if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        "it closed the connection too early"
    } else {
        "the connection broke"
    };
    words.to_owned()
}
