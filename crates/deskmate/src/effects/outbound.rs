//! One request to another program: no redirects, no cookies, a time limit over all of it. Without TLS only this machine is
//! spoken to.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// How long a receiver may take, from the connection to its answer.
const TIMEOUT: Duration = Duration::from_secs(15);

/// What a receiver answers, as far as anybody looks at it.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// When to come again, in its words.
    pub(crate) retry_after: Option<String>,
}

/// A program that takes requests.
pub(crate) struct Receiver {
    url: Uri,
    ca_file: Option<PathBuf>,
    /// Which certificates are believed, once they were needed.
    tls: OnceLock<Arc<rustls::ClientConfig>>,
}

impl Receiver {
    pub(crate) fn new(url: Uri, ca_file: Option<PathBuf>) -> Self {
        Self { url, ca_file, tls: OnceLock::new() }
    }

    /// Sends a body and waits for the answer's first line. What goes wrong is told in our words: what the receiver wrote is
    /// not repeated.
    pub(crate) async fn post(&self, headers: HeaderMap, body: Bytes) -> Result<Answer, String> {
        let answer = self.within_time(headers, body, None).await?;
        let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(Answer { status: answer.status(), retry_after })
    }

    /// Sends a body and takes the whole answer, which may not be larger than that.
    pub(crate) async fn ask(&self, headers: HeaderMap, body: Bytes, bytes_max: usize) -> Result<Response<Bytes>, String> {
        self.within_time(headers, body, Some(bytes_max)).await
    }

    async fn within_time(&self, headers: HeaderMap, body: Bytes, take: Option<usize>) -> Result<Response<Bytes>, String> {
        match tokio::time::timeout(TIMEOUT, self.exchange(headers, body, take)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("the receiver did not answer within {} s", TIMEOUT.as_secs())),
        }
    }

    async fn exchange(&self, headers: HeaderMap, body: Bytes, take: Option<usize>) -> Result<Response<Bytes>, String> {
        let host = self.url.host().ok_or_else(|| "the address has no host".to_owned())?;
        let secure = self.url.scheme_str() == Some("https");
        let stream = connect(host, self.url.port_u16().unwrap_or(if secure { 443 } else { 80 }), !secure).await?;
        if !secure {
            return self.send(stream, headers, body, take).await;
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare).map_err(|_| "the address has no valid host".to_owned())?;
        let tls = tokio_rustls::TlsConnector::from(self.tls()?);
        let stream = tls.connect(name, stream).await.map_err(|error| format!("TLS: {error}"))?;
        self.send(stream, headers, body, take).await
    }

    fn tls(&self) -> Result<Arc<rustls::ClientConfig>, String> {
        if let Some(known) = self.tls.get() {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(tls(self.ca_file.as_deref())?);
        Ok(Arc::clone(self.tls.get_or_init(|| read)))
    }

    /// One request. Of the answer's body nothing is taken, or as much as is asked for.
    async fn send<S>(&self, stream: S, headers: HeaderMap, body: Bytes, take: Option<usize>) -> Result<Response<Bytes>, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.map_err(|error| format!("HTTP: {error}"))?;
        // It ends with the sender, and with the time that the whole exchange has.
        let connection = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(connection));
        let mut request = Request::post(self.url.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str))
            .header(HOST, self.url.authority().map_or("", hyper::http::uri::Authority::as_str))
            .body(Full::new(body))
            .map_err(|error| format!("HTTP: {error}"))?;
        request.headers_mut().extend(headers);
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(concat!("deskmate/", env!("CARGO_PKG_VERSION"))));
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        let answer = sender.send_request(request).await.map_err(|error| format!("HTTP: {error}"))?;
        let (head, body) = answer.into_parts();
        let body = match take {
            None => Bytes::new(),
            Some(bytes_max) => Limited::new(body, bytes_max).collect().await.map_err(|error| format!("HTTP: {error}"))?.to_bytes(),
        };
        drop(connection);
        Ok(Response::from_parts(head, body))
    }
}

/// Connects to the first address that answers. Without TLS only this machine is spoken to, whatever a name resolves to.
pub(crate) async fn connect(host: &str, port: u16, local_only: bool) -> Result<TcpStream, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((bare, port)).await.map_err(|error| format!("{host}: {error}"))?;
    let addresses: Vec<SocketAddr> = found.filter(|address| !local_only || address.ip().is_loopback()).collect();
    let stream = TcpStream::connect(addresses.as_slice()).await.map_err(|error| format!("{host}:{port}: {error}"))?;
    drop(stream.set_nodelay(true));
    Ok(stream)
}

/// TLS with the certificates of this file, or with those that the system believes.
pub(crate) fn tls(ca_file: Option<&Path>) -> Result<rustls::ClientConfig, String> {
    let mut roots = rustls::RootCertStore::empty();
    match ca_file {
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
