//! Listening: TCP with or without TLS, and the local socket of the command line.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener, ListenerExt};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::config::Tls;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that finished their handshake and wait to be taken.
const TLS_WAITING_MAX: usize = 64;

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
pub(crate) async fn serve_tcp(bound: Bound, router: Router, stop: CancellationToken) -> io::Result<()> {
    match bound.tls {
        None => {
            // Without this, every answer in several writes waits 40 ms for the other side.
            let listener = bound.listener.tap_io(|stream| drop(stream.set_nodelay(true)));
            axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
        }
        Some(acceptor) => {
            let address = bound.listener.local_addr()?;
            let (ready, accepted) = mpsc::channel(TLS_WAITING_MAX);
            tokio::spawn(handshakes(bound.listener, acceptor, ready, stop.clone()));
            axum::serve(TlsListener { accepted, address }, router).with_graceful_shutdown(stop.cancelled_owned()).await
        }
    }
}

/// Shakes hands beside each other, so that a client that stalls delays nobody else.
async fn handshakes(listener: TcpListener, acceptor: TlsAcceptor, ready: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let Ok((stream, address)) = accepted else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        drop(stream.set_nodelay(true));
        let (acceptor, ready) = (acceptor.clone(), ready.clone());
        tokio::spawn(async move {
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                drop(ready.send((stream, address)).await);
            }
        });
    }
}

struct TlsListener {
    accepted: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.accepted.recv().await {
            Some(accepted) => accepted,
            // The server is stopping; nothing will be accepted any more.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.address)
    }
}

/// Whoever opened a connection to the local socket. A connection over TCP has none of this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// Whether it is the account that this server runs under, or root. The socket's mode says the same; this asks the
    /// kernel, so that a mode that was widened opens nothing.
    pub(crate) is_own: bool,
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        let own = rustix::process::geteuid().as_raw();
        Self { is_own: stream.io().peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0) }
    }
}

/// Serves the command line on a socket that only its owner can open.
pub(crate) async fn serve_unix(listener: UnixListener, router: Router, stop: CancellationToken) -> io::Result<()> {
    let service = router.into_make_service_with_connect_info::<Peer>();
    axum::serve(listener, service).with_graceful_shutdown(stop.cancelled_owned()).await
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
