//! `deskmate front`: one MCP server that speaks over its standard streams, for many clients over HTTP. No desk and no store:
//! one child, loopback, a token. What it passes on it does not decide about; the desk's gateway does that.

mod caller;
mod door;
mod following;
mod server;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::Failure;
use crate::http::{self, Bound, Bounds};
use crate::upstream::{Pool, Spec};

pub(crate) use caller::Client;
pub(crate) use door::Token;
pub(crate) use following::{Following, Sink, wants};

/// How many clients may be connected.
const FILES: u64 = 1024;
/// The only one who calls.
const CALLER: &str = "front";

/// What `deskmate front` was told.
pub(crate) struct FrontArgs {
    pub(crate) spec: Spec,
    pub(crate) listen: SocketAddr,
    /// Without one everybody on this machine may call.
    pub(crate) token: Option<Token>,
}

/// Serves until it is told to stop. `ready` is called with the address once it answers.
pub(crate) async fn run(args: FrontArgs, ready: impl FnOnce(&str) -> Result<(), Failure>) -> Result<(), Failure> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let bound = Bound::new(args.listen, None)
        .await
        .map_err(|error| Failure::Other(format!("cannot listen on {}: {error}; give another address with --listen", args.listen)))?;
    let (address, url) = (bound.address()?, bound.url()?);
    let pool = Arc::new(Pool::new());
    // What cannot even start is told now, to whoever reads the terminal.
    let first = tokio::select! {
        first = pool.get(&args.spec, CALLER) => first,
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
    };
    let upstream = match first {
        Ok(upstream) => upstream,
        Err(error) => {
            pool.shut_down().await;
            return Err(error.to_core().into());
        }
    };
    let stop = CancellationToken::new();
    let router = door::router(server::Fronted::new(upstream), args.token, address, &stop);
    let serving = tokio::spawn(http::serve_tcp(bound, router, Bounds::network(FILES), stop.clone()));
    let told = ready(&format!("{url}/mcp"));
    if told.is_ok() {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
    stop.cancel();
    // The child first gets what is under way done, and is then ended with all that it started.
    drop(tokio::time::timeout(Duration::from_secs(3), serving).await);
    pool.shut_down().await;
    told
}
