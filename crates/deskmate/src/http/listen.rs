//! Listening: TCP with or without TLS, and the local socket of the command line.

use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use super::connections::Bounds;
use super::serve::serve;
use crate::config::Tls;

/// A bound address.
pub(crate) struct Bound {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl Bound {
    /// Binds the address, and reads the certificate files if there are any.
    pub(crate) async fn new(address: SocketAddr, tls: Option<&Tls>) -> io::Result<Self> {
        let tls = tls.map(acceptor).transpose()?;
        Ok(Self { listener: TcpListener::bind(address).await?, tls })
    }

    /// Where it listens: the port is known now, also if 0 was asked for.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The address as people type it.
    pub(crate) fn url(&self) -> io::Result<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{}", self.address()?))
    }
}

fn acceptor(tls: &Tls) -> io::Result<TlsAcceptor> {
    let bad = |path: &Path, error: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()));
    let chain =
        CertificateDer::pem_file_iter(&tls.certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(|error| bad(&tls.certificate, &error))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| bad(&tls.key, &error))?;
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| bad(&tls.certificate, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves until the token is cancelled; requests under way are finished.
pub(crate) async fn serve_tcp(bound: Bound, router: Router, bounds: Bounds, stop: CancellationToken) -> io::Result<()> {
    match bound.tls {
        None => serve(Plain(bound.listener), router, bounds, stop).await,
        Some(acceptor) => serve(Secure(bound.listener, acceptor), router, bounds, stop).await,
    }
}

/// Where connections come in.
pub(super) trait Door: Send + 'static {
    /// What comes in.
    type Came: Send + 'static;
    /// What is left of it to read and write, once it is opened.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    fn accept(&self) -> impl Future<Output = io::Result<Self::Came>> + Send;

    /// Makes a connection ready, beside the others, so that one that stalls delays nobody. `None` is one that ended.
    fn open(&self, came: Self::Came) -> impl Future<Output = Option<(Self::Stream, Option<Peer>)>> + Send + 'static;
}

async fn accept_tcp(listener: &TcpListener) -> io::Result<TcpStream> {
    let (stream, _) = listener.accept().await?;
    // Without this, every answer in several writes waits 40 ms for the other side.
    drop(stream.set_nodelay(true));
    Ok(stream)
}

pub(super) struct Plain(pub(super) TcpListener);

impl Door for Plain {
    type Came = TcpStream;
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        accept_tcp(&self.0).await
    }

    fn open(&self, came: TcpStream) -> impl Future<Output = Option<(TcpStream, Option<Peer>)>> + Send + 'static {
        ready(Some((came, None)))
    }
}

struct Secure(TcpListener, TlsAcceptor);

impl Door for Secure {
    type Came = TcpStream;
    type Stream = TlsStream<TcpStream>;

    async fn accept(&self) -> io::Result<TcpStream> {
        accept_tcp(&self.0).await
    }

    fn open(&self, came: TcpStream) -> impl Future<Output = Option<(Self::Stream, Option<Peer>)>> + Send + 'static {
        let handshake = self.1.accept(came);
        async { Some((handshake.await.ok()?, None)) }
    }
}

struct Local(UnixListener);

impl Door for Local {
    type Came = UnixStream;
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.0.accept().await?.0)
    }

    fn open(&self, came: UnixStream) -> impl Future<Output = Option<(UnixStream, Option<Peer>)>> + Send + 'static {
        let peer = Peer::of(&came);
        ready(Some((came, Some(peer))))
    }
}

/// Whoever opened a connection to the local socket. A connection over TCP has none of this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// Whether it is the account that this server runs under, or root. The socket's mode says the same; this asks the
    /// kernel, so that a mode that was widened opens nothing.
    pub(crate) is_own: bool,
}

impl Peer {
    fn of(stream: &UnixStream) -> Self {
        let own = rustix::process::geteuid().as_raw();
        Self { is_own: stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0) }
    }
}

/// Serves the command line on a socket that only its owner can open.
pub(crate) async fn serve_unix(listener: UnixListener, router: Router, bounds: Bounds, stop: CancellationToken) -> io::Result<()> {
    serve(Local(listener), router, bounds, stop).await
}

/// The longest path that a local socket can have, with room for the name under which it is bound first.
const SOCKET_PATH_BYTES_MAX: usize = 103;

/// A bound socket that nobody can find yet.
pub(crate) struct Private {
    listener: UnixListener,
    fresh: PathBuf,
    path: PathBuf,
}

impl Private {
    /// Puts the socket in its place, where callers find it.
    pub(crate) fn open(self) -> io::Result<UnixListener> {
        std::fs::rename(&self.fresh, &self.path)?;
        Ok(self.listener)
    }
}

/// Binds a socket for its owner only: under another name, so that it is never there with wider permissions, and not
/// before it is served. Whoever holds the data directory may replace a dead one.
pub(crate) fn bind_private(path: &Path) -> io::Result<Private> {
    let told = |error: io::Error| {
        let long = path.as_os_str().len() > SOCKET_PATH_BYTES_MAX;
        let why = if long { format!("its path is longer than {SOCKET_PATH_BYTES_MAX} bytes: give a shorter --home") } else { error.to_string() };
        io::Error::new(error.kind(), format!("cannot open the local socket {}: {why}", path.display()))
    };
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    drop(std::fs::remove_file(&fresh));
    let listener = UnixListener::bind(&fresh).map_err(told)?;
    std::fs::set_permissions(&fresh, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(Private { listener, fresh, path: path.to_owned() })
}
