//! The local socket: one line of hello in each direction, then MCP over the rest of the stream exactly as over stdio.
//!
//! The hello says who calls and what is to be mounted. It is answered only after the desk has accepted the credential,
//! so a wrong token shows at once and not at the first tool call.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deskmate_core::call::{Call, Credential, Surface};
use deskmate_core::limits::{MCP_LINE_BYTES_MAX, SOCKET_CALLERS_MAX};
use deskmate_core::{Error, Result};
use rmcp::RoleServer;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server_with_ct};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::mcp::{Caller, Server, Shelf};

/// The version of the hello.
const VERSION: u32 = 1;
/// The longest hello: two names and a token.
const HELLO_BYTES_MAX: u64 = 64 * 1024;
/// How long a caller may take for its hello.
const HELLO_TIME: Duration = Duration::from_secs(5);
/// The same where there is no place for them.
const REFUSED_HELLO_TIME: Duration = Duration::from_secs(1);

/// What a caller says first.
#[derive(Deserialize)]
struct Hello {
    v: u32,
    agent: Option<String>,
    token: Option<String>,
    #[serde(default)]
    toolsets: Vec<String>,
    #[serde(default)]
    read_only: bool,
}

/// What it is answered.
#[derive(Serialize)]
struct Welcome<'w> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'w [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'w Error>,
}

/// Takes callers on the socket that was bound at `path` until `stop` is cancelled, and removes it.
pub(crate) async fn serve(app: App, listener: UnixListener, path: PathBuf, stop: CancellationToken) -> io::Result<()> {
    let shelf = Shelf::new(app);
    let places = Arc::new(Semaphore::new(SOCKET_CALLERS_MAX));
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "the local socket took no caller");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let place = Arc::clone(&places).try_acquire_owned();
        let (shelf, stop) = (shelf.clone(), stop.clone());
        tokio::spawn(async move {
            let (read, mut write) = stream.into_split();
            let Ok(_place) = place else {
                // Whoever is still writing their hello would only learn that nobody reads it.
                let mut hello = BufReader::new(read).take(HELLO_BYTES_MAX);
                drop(tokio::time::timeout(REFUSED_HELLO_TIME, hello.read_until(b'\n', &mut Vec::new())).await);
                return refuse(&mut write, &Error::limited("too many callers are connected", 1_000)).await;
            };
            let _held = shelf.app().activity.hold();
            Box::pin(attend(shelf, BufReader::new(read), write, stop)).await;
        });
    }
    drop(listener);
    // A server that took over meanwhile has its own socket under this name only after this one gave up the lock.
    drop(std::fs::remove_file(path));
    Ok(())
}

/// One caller, from its hello to the end of its stream.
async fn attend(shelf: Shelf, mut read: BufReader<OwnedReadHalf>, mut write: OwnedWriteHalf, stop: CancellationToken) {
    let server = match tokio::time::timeout(HELLO_TIME, admit(&shelf, &mut read)).await {
        Ok(Ok((server, notes))) => {
            let welcome = Welcome { ok: true, version: Some(env!("CARGO_PKG_VERSION")), notes: &notes, error: None };
            if say(&mut write, &welcome).await.is_err() {
                return;
            }
            server
        }
        Ok(Err(error)) => return refuse(&mut write, &error).await,
        Err(_) => return refuse(&mut write, &Error::invalid("hello", "did not come in time")).await,
    };
    let _open = shelf.app().telemetry.session();
    let read = server.watched(read);
    let inner = AsyncRwTransport::new_server(read, write).with_max_line_length(MCP_LINE_BYTES_MAX);
    let transport = Patient { inner, server: server.clone(), opened: false };
    // A token of its own: rmcp cancels the one it was given when the connection ends.
    match Box::pin(serve_server_with_ct(server, transport, stop.child_token())).await {
        Ok(running) => drop(running.waiting().await),
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
        Err(error) => tracing::info!(%error, "a caller on the local socket left before it began"),
    }
}

/// Reads the hello and checks it.
async fn admit(shelf: &Shelf, read: &mut BufReader<OwnedReadHalf>) -> Result<(Server, Vec<String>)> {
    let unreadable = |error: &dyn std::fmt::Display| Error::invalid("hello", error.to_string());
    let mut line = Vec::new();
    read.take(HELLO_BYTES_MAX).read_until(b'\n', &mut line).await.map_err(|error| unreadable(&error))?;
    if line.pop() != Some(b'\n') {
        return Err(Error::invalid("hello", format!("is no line of at most {HELLO_BYTES_MAX} bytes")));
    }
    let hello: Hello = serde_json::from_slice(&line).map_err(|error| unreadable(&error))?;
    if hello.v != VERSION {
        let hint = "this program and the running server are of different versions: stop the server, it starts again by itself";
        return Err(Error::invalid("v", format!("this server speaks version {VERSION} of the hello, not {}", hello.v)).hint(hint));
    }
    let (mount, notes) = shelf.choose(hello.toolsets, hello.read_only).await?;
    let named = hello.agent.is_some();
    let credential = match hello.token {
        Some(secret) => Credential::Secret { secret, proved: false },
        None => Credential::Named(hello.agent.clone()),
    };
    check(shelf, &credential, named, hello.agent.as_deref()).await?;
    Ok((Server::new(shelf.endpoint(&mount), Caller::Connection(credential), true), notes))
}

/// Asks the desk who this is. In open mode a caller without any name may go on: its calls name it one by one.
async fn check(shelf: &Shelf, credential: &Credential, named: bool, agent: Option<&str>) -> Result<()> {
    let input = if named || matches!(credential, Credential::Secret { .. }) { json!({}) } else { json!({ "agent_id": "unnamed" }) };
    let call = Call { credential: credential.clone(), surface: Surface::Mcp, operation: "desk_whoami".to_owned(), input };
    let actor = shelf.app().call(call).await?.actor;
    match agent {
        Some(agent) if actor.is_agent() && actor.id != agent => {
            Err(Error::forbidden(format!("--agent says {agent:?}, but the token is {:?}'s", actor.id)).hint("leave --agent out, or use that agent's own token"))
        }
        _ => Ok(()),
    }
}

async fn refuse(write: &mut OwnedWriteHalf, error: &Error) {
    drop(say(write, &Welcome { ok: false, version: None, notes: &[], error: Some(error) }).await);
}

async fn say(write: &mut OwnedWriteHalf, welcome: &Welcome<'_>) -> io::Result<()> {
    let mut line = serde_json::to_vec(welcome)?;
    line.push(b'\n');
    write.write_all(&line).await
}

/// A transport that passes over what comes before the first request. rmcp ends the connection on a notification or an
/// answer in that place; a client that repeats its handshake after a restart may well send one. What follows is heeded in its order.
struct Patient<T> {
    inner: T,
    server: Server,
    opened: bool,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Patient<T> {
    type Error = T::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.inner.receive().await?;
            self.opened |= matches!(message, JsonRpcMessage::Request(_));
            if self.opened {
                self.server.heed(&message);
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
