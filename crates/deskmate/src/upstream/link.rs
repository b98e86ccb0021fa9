//! One connection to an upstream: made, used, and ended as a whole.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, ServerPeerInfo};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, Peer, RunningService, serve_client_with_lifecycle_and_ct};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use tokio::sync::{Mutex, broadcast};
use tokio_util::sync::CancellationToken;

use super::child::{self, Program};
use super::handler::{Change, Handler};
use super::http::{Client, Fault};
use super::lines::{Lines, Wire};
use super::log::Log;
use super::relay::Ledger;
use super::spec::{Spec, Transport};

/// How long a program may take to say how it ended once its streams are closed.
const LAST_WORDS: Duration = Duration::from_millis(1_500);
/// How many of its last lines an error shows.
const SHOWN_LINES: usize = 5;
/// How long the protocol's own good-bye may take.
const GOOD_BYE: Duration = Duration::from_secs(3);
/// How many requests over HTTP may be without an answer at once. A stream of events counts no more once it is open.
const POSTS_MAX: usize = 64;

/// A live connection.
pub(super) struct Link {
    pub(super) peer: Peer<RoleClient>,
    pub(super) info: Arc<ServerPeerInfo>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) program: Option<Program>,
    /// Cancelled when nothing more can come over it.
    pub(super) closed: CancellationToken,
    wire: Option<Arc<Wire>>,
    running: Mutex<Option<RunningService<RoleClient, Handler>>>,
    mark: u64,
}

/// What a connection is made with.
pub(super) struct Making<'m> {
    pub(super) spec: &'m Arc<Spec>,
    pub(super) log: &'m Arc<Log>,
    pub(super) changes: &'m broadcast::Sender<Change>,
    /// Whether to begin in the older era at once.
    pub(super) legacy: bool,
}

/// A connection that was not made.
pub(super) struct Unmade {
    pub(super) why: String,
    /// Whether it may work in the older era: a few servers leave when they are spoken to in the newer one, or answer nonsense.
    pub(super) try_older: bool,
}

impl From<String> for Unmade {
    fn from(why: String) -> Self {
        Self { why, try_older: false }
    }
}

impl Making<'_> {
    fn lifecycle(&self) -> ClientLifecycleMode {
        if self.legacy {
            return ClientLifecycleMode::Initialize;
        }
        ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE) }
    }

    /// Makes the connection, within the time that it may take.
    pub(super) async fn make(&self) -> Result<Link, Unmade> {
        self.spec.check().map_err(|error| error.to_string())?;
        let mark = self.log.mark();
        match &self.spec.transport {
            Transport::Stdio { command, args, env, cwd } => {
                let (program, streams) = child::start((command, args, env, cwd.as_deref()), self.spec, self.log)?;
                self.over_streams(streams.read, streams.write, Some(program), mark).await
            }
            Transport::Http { url, headers } => {
                let headers: Vec<(String, String)> = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                let ledger = Arc::new(Ledger::default());
                let client = Client::new(url, &headers, Arc::clone(self.spec), Arc::clone(&ledger))?;
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).max_concurrent_requests(POSTS_MAX);
                config.max_sse_event_size = self.spec.bounds.answer_bytes;
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let closed = CancellationToken::new();
                let handler = Handler::new(Arc::clone(&ledger), self.spec.questions(), self.changes.clone());
                let made =
                    tokio::time::timeout(self.spec.bounds.start, serve_client_with_lifecycle_and_ct(handler, transport, self.lifecycle(), closed.clone()));
                let running = match made.await {
                    Ok(Ok(running)) => running,
                    Ok(Err(error)) => {
                        let try_older =
                            !self.legacy && matches!(error, ClientInitializeError::ExpectedInitResult(_) | ClientInitializeError::ExpectedInitResponse(_));
                        return Err(Unmade { why: self.spec.hide(&told(&error)), try_older });
                    }
                    Err(_) => return Err(self.late().into()),
                };
                Link::new(running, ledger, closed, None, None, mark).map_err(Unmade::from)
            }
            #[cfg(test)]
            Transport::Within(peer) => {
                let (read, write) = tokio::io::split(peer.open()?);
                self.over_streams(read, write, None, mark).await
            }
        }
    }

    fn late(&self) -> String {
        format!("it did not say what it is within {} s", self.spec.bounds.start.as_secs())
    }

    async fn over_streams(
        &self,
        read: impl tokio::io::AsyncRead + Send + Unpin + 'static,
        write: impl tokio::io::AsyncWrite + Send + Unpin + 'static,
        program: Option<Program>,
        mark: u64,
    ) -> Result<Link, Unmade> {
        let wire = Wire::new(Arc::clone(self.log));
        let lines = Lines::new(read, write, Arc::clone(self.spec), Arc::clone(&wire));
        let handler = Handler::new(Arc::clone(&wire.ledger), self.spec.questions(), self.changes.clone());
        let made = tokio::time::timeout(self.spec.bounds.start, serve_client_with_lifecycle_and_ct(handler, lines, self.lifecycle(), CancellationToken::new()));
        let (why, try_older) = match made.await {
            Ok(Ok(running)) => {
                let (ledger, closed) = (Arc::clone(&wire.ledger), wire.closed.clone());
                return Link::new(running, ledger, closed, Some(wire), program, mark).map_err(Unmade::from);
            }
            Ok(Err(error)) => {
                let nonsense = matches!(error, ClientInitializeError::ExpectedInitResult(_) | ClientInitializeError::ExpectedInitResponse(_));
                let left = matches!(error, ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. });
                (told(&error), (nonsense || left) && !self.legacy)
            }
            Err(_) => (self.late(), false),
        };
        let why = ending(self.spec, self.log, mark, wire.why(), program.as_ref(), why).await;
        if let Some(program) = program {
            program.end().await;
        }
        Err(Unmade { why, try_older: try_older && wire.why().is_none() })
    }
}

impl Link {
    fn new(
        running: RunningService<RoleClient, Handler>,
        ledger: Arc<Ledger>,
        closed: CancellationToken,
        wire: Option<Arc<Wire>>,
        program: Option<Program>,
        mark: u64,
    ) -> Result<Self, String> {
        let peer = running.peer().clone();
        let info = peer.peer_info().ok_or("it did not say what it is")?;
        Ok(Self { peer, info, ledger, program, closed, wire, running: Mutex::new(Some(running)), mark })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled() || self.peer.is_transport_closed()
    }

    pub(super) fn is_modern(&self) -> bool {
        !self.info.protocol_version.has_initialize()
    }

    /// Why it ended, as far as anybody knows.
    pub(super) async fn ending(&self, spec: &Spec, log: &Log) -> String {
        let why = self.wire.as_ref().and_then(|wire| wire.why());
        ending(spec, log, self.mark, why, self.program.as_ref(), "the connection was closed".to_owned()).await
    }

    /// Ends the connection and, where it is a program, all of that.
    pub(super) async fn end(&self) {
        self.closed.cancel();
        if let Some(mut running) = self.running.lock().await.take() {
            // The lifeline first: a program that hangs must not hold up the rest.
            let good_bye = running.close_with_timeout(GOOD_BYE);
            match &self.program {
                Some(program) => drop(tokio::join!(good_bye, program.end())),
                None => drop(good_bye.await),
            }
        }
    }
}

/// Puts together how a connection ended: our reason, the program's end, and its last words.
async fn ending(spec: &Spec, log: &Log, mark: u64, ours: Option<String>, program: Option<&Program>, otherwise: String) -> String {
    let exit = match program {
        Some(program) if ours.is_none() => program.exit_within(LAST_WORDS).await,
        _ => None,
    };
    let why = ours.or_else(|| exit.map(|exit| exit.to_string())).unwrap_or(otherwise);
    let words = program.and_then(|_| log.tail(mark, SHOWN_LINES));
    spec.hide(&match words {
        Some(words) => format!("{why}; its last lines: {words}"),
        None => why,
    })
}

/// What went wrong while a connection was made, in words.
fn told(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => "the connection was closed before it said what it is".to_owned(),
        ClientInitializeError::JsonRpcError(error) => format!("it refused the handshake: {}", error.message),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            format!("it speaks no version of the protocol that the desk speaks, but: {}", versions.join(", "))
        }
        ClientInitializeError::TransportError { error, .. } => told_by_transport(error.error.as_ref()),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => told(fallback),
        ClientInitializeError::ExpectedInitResult(_) | ClientInitializeError::ExpectedInitResponse(_) => {
            "its answer to the handshake cannot be read".to_owned()
        }
        other => other.to_string(),
    }
}

/// The same for what a transport says.
pub(super) fn told_by_transport(error: &(dyn std::error::Error + 'static)) -> String {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<StreamableHttpError<Fault>>() {
            return match error {
                StreamableHttpError::AuthRequired(_) => "it wants another credential (HTTP 401): give it one with a header from the secret store".to_owned(),
                StreamableHttpError::InsufficientScope(_) => "it does not allow this with its credential (HTTP 403)".to_owned(),
                StreamableHttpError::Client(fault) => fault.to_string(),
                other => other.to_string(),
            };
        }
        if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
            return "the connection was closed".to_owned();
        }
        next = error.source();
    }
    error.to_string()
}
