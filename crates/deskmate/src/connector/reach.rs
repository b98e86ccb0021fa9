//! How connectors speak HTTP: to the addresses that their mount names, without redirects or cookies, bounded in time and size. A name
//! must not lead into the machine's own network unless the operator says that it may.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deskmate_hands::web::is_public;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;
use url::{Host, Url};

use super::Fault;
use crate::effects::outbound;

/// How long one exchange may take.
const TIME: Duration = Duration::from_secs(30);

/// A way to other programs.
pub(crate) struct Reach {
    tls: Arc<rustls::ClientConfig>,
    /// Whether names may stand for addresses that are not public. Addresses that are written out may anyway: whoever wrote them
    /// knows where they lead.
    private_names: bool,
}

/// What came back.
pub(super) struct Came {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Whether there was more than was asked for.
    pub(super) cut: bool,
}

/// What is asked.
pub(super) struct Asked<'a> {
    pub(super) method: Method,
    pub(super) url: &'a Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// How much of the answer is taken.
    pub(super) most: usize,
}

impl Reach {
    pub(crate) fn new(ca_file: Option<&Path>, private_names: bool) -> Result<Self, String> {
        Ok(Self { tls: Arc::new(outbound::tls(ca_file)?), private_names })
    }

    /// The certificates that are believed.
    pub(super) fn tls(&self) -> Arc<rustls::ClientConfig> {
        Arc::clone(&self.tls)
    }

    /// Refuses what a secret must not be sent to: without TLS only this machine.
    pub(super) fn check_private(url: &Url) -> Result<(), String> {
        match (url.scheme(), url.host()) {
            ("https", Some(_)) | ("http", Some(Host::Domain("localhost"))) => Ok(()),
            ("http", Some(Host::Ipv4(address))) if address.is_loopback() => Ok(()),
            ("http", Some(Host::Ipv6(address))) if address.is_loopback() => Ok(()),
            ("http", Some(host)) => Err(format!("{host} is not this machine, and http: is not private: write https:")),
            _ => Err(format!("{} is no address of https:", url.scheme())),
        }
    }

    /// The addresses behind an address, all of which may be reached.
    pub(super) async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, String> {
        let port = url.port_or_known_default().ok_or("the address has no port")?;
        let name = match url.host() {
            None => return Err("the address has no host".to_owned()),
            Some(Host::Ipv4(address)) => return Ok(vec![SocketAddr::new(IpAddr::V4(address), port)]),
            Some(Host::Ipv6(address)) => return Ok(vec![SocketAddr::new(IpAddr::V6(address), port)]),
            Some(Host::Domain(name)) => name.to_owned(),
        };
        let found = tokio::net::lookup_host((name.as_str(), port)).await.map_err(|error| format!("{name}: {error}"))?;
        let found: Vec<SocketAddr> = found.collect();
        if name == "localhost" {
            let local: Vec<SocketAddr> = found.into_iter().filter(|address| address.ip().is_loopback()).collect();
            return if local.is_empty() { Err("localhost is not this machine".to_owned()) } else { Ok(local) };
        }
        if found.is_empty() {
            return Err(format!("{name} has no address"));
        }
        if !self.private_names && !found.iter().all(|address| is_public(address.ip())) {
            return Err(format!("{name} leads to an address that is not public; where that is meant, the mount says --private-names"));
        }
        Ok(found)
    }

    /// Asks once. Before the request is out nothing was done; after that nobody knows.
    pub(super) async fn ask(&self, asked: Asked<'_>) -> Result<Came, Fault> {
        let host = asked.url.host_str().unwrap_or_default().to_owned();
        let late = || format!("{host} did not answer within {} s", TIME.as_secs());
        match tokio::time::timeout(TIME, self.exchange(asked)).await {
            Ok(came) => came,
            Err(_) => Err(Fault::Unknown(late())),
        }
    }

    /// The same for what only reads: whatever goes wrong, nothing was done.
    pub(super) async fn look(&self, asked: Asked<'_>) -> Result<Came, String> {
        self.ask(asked).await.map_err(|fault| match fault {
            Fault::Failed(why) | Fault::Unknown(why) => why,
        })
    }

    async fn exchange(&self, asked: Asked<'_>) -> Result<Came, Fault> {
        let (url, addresses) = (asked.url, self.addresses(asked.url).await?);
        let failed = |error: String| Fault::Failed(format!("{}: {error}", url.host_str().unwrap_or_default()));
        let stream = TcpStream::connect(addresses.as_slice()).await.map_err(|error| failed(error.to_string()))?;
        drop(stream.set_nodelay(true));
        if url.scheme() != "https" {
            return send(stream, asked).await;
        }
        let name = match url.host() {
            Some(Host::Ipv4(address)) => ServerName::from(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => ServerName::from(IpAddr::V6(address)),
            Some(Host::Domain(name)) => ServerName::try_from(name.to_owned()).map_err(|_| failed("the name is not valid".to_owned()))?,
            None => return Err(failed("the address has no host".to_owned())),
        };
        let tls = tokio_rustls::TlsConnector::from(Arc::clone(&self.tls));
        let stream = tls.connect(name, stream).await.map_err(|error| failed(format!("TLS: {error}")))?;
        send(stream, asked).await
    }
}

async fn send<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, asked: Asked<'_>) -> Result<Came, Fault> {
    let url = asked.url;
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", url.host_str().unwrap_or_default());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.map_err(|error| Fault::Failed(failed(&error)))?;
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let path = url.as_str().split_once("://").map_or("", |(_, rest)| rest);
    let path = path.find(['/', '?']).and_then(|at| path.get(at..)).unwrap_or("/");
    let path = path.split('#').next().unwrap_or("/");
    let host = match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (host, _) => host.unwrap_or_default().to_owned(),
    };
    let mut request =
        Request::builder().method(asked.method).uri(path).header(HOST, host).body(Full::new(asked.body)).map_err(|error| Fault::Failed(failed(&error)))?;
    request.headers_mut().extend(asked.headers);
    request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(concat!("deskmate/", env!("CARGO_PKG_VERSION"))));
    request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    let unknown = |error: hyper::Error| Fault::Unknown(failed(&error));
    let answer = sender.send_request(request).await.map_err(unknown)?;
    let (head, mut stream) = answer.into_parts();
    let (mut body, mut cut) = (Vec::new(), false);
    while let Some(frame) = stream.frame().await {
        let frame = frame.map_err(unknown)?;
        let data = frame.data_ref().map_or(&[][..], Bytes::as_ref);
        let left = asked.most.saturating_sub(body.len());
        body.extend(data.iter().take(left));
        if data.len() > left {
            cut = true;
            break;
        }
    }
    Ok(Came { status: head.status.as_u16(), headers: head.headers, body: body.into(), cut })
}
