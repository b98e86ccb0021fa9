//! Taking connections and serving each until it ends, is done with, or keeps the desk waiting for too long. Whoever waits
//! for the desk is never cut off: answers, held waits and live streams last as long as they are read.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::ConnectInfo;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use deskmate_core::Error;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connections::{Bounds, Connections, Line, Place, Turn};
use super::listen::{Door, Peer};
use super::receive::{Noted, Timely};
use super::rest::Failure;

/// How many are told at a time that there is no room; further ones are only closed.
const REFUSED_AT_ONCE: usize = 64;
/// How long one of them may take to say what it wants and to hear it.
const REFUSAL_TIME: Duration = Duration::from_secs(2);
/// How often the log says that connections are refused.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// Serves until the token is cancelled; requests under way are finished.
pub(super) async fn serve<D: Door>(door: D, router: Router, bounds: Bounds, stop: CancellationToken) -> io::Result<()> {
    let connections = Connections::new(bounds.connections);
    let refusing = Arc::new(Semaphore::new(REFUSED_AT_ONCE));
    let tasks = TaskTracker::new();
    let mut told: Option<Instant> = None;
    loop {
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let Ok(stream) = accepted else {
            // Most likely there are too many open files; some will be closed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let opening = door.open(stream);
        if let Some(place) = connections.admit() {
            tasks.spawn(attend(opening, place, router.clone(), bounds, stop.clone()));
            continue;
        }
        if told.is_none_or(|at| at.elapsed() > TOLD_EVERY) {
            told = Some(Instant::now());
            tracing::warn!(open = bounds.connections, "every connection is at work, so new ones are refused");
        }
        if let Ok(permit) = Arc::clone(&refusing).try_acquire_owned() {
            tasks.spawn(async move {
                drop(timeout(REFUSAL_TIME, refuse(opening)).await);
                drop(permit);
            });
        }
    }
    // Nobody comes in any more, also while the last requests are finished.
    drop(door);
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// One connection, from its handshake to its end.
async fn attend<S>(opening: impl Future<Output = Option<(S, Option<Peer>)>>, place: Place, router: Router, bounds: Bounds, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let line = &place.line;
    let serving = async {
        let Ok(Some((stream, peer))) = timeout(bounds.head, opening).await else { return };
        let router = TowerToHyperService::new(router);
        let service = service_fn(|request| answer(router.clone(), Arc::clone(line), bounds, peer, request));
        let stream = TokioIo::new(Noted { stream, line: Arc::clone(line) });
        let mut connection = pin!(http1::Builder::new().serve_connection(stream, service));
        let mut stopping = pin!(stop.cancelled());
        let mut stopped = false;
        let mut alarm = pin!(sleep_until(Instant::now() + bounds.idle));
        poll_fn(|context| {
            if !stopped && stopping.as_mut().poll(context).is_ready() {
                stopped = true;
                connection.as_mut().graceful_shutdown();
            }
            if connection.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            // The alarm is set anew only where it would come too late; where it comes too early, it looks again.
            let deadline = line.deadline(&bounds);
            if deadline.is_some_and(|deadline| deadline < alarm.deadline()) {
                alarm.as_mut().reset(deadline.unwrap_or_else(Instant::now));
            }
            while alarm.as_mut().poll(context).is_ready() {
                match line.deadline(&bounds) {
                    Some(deadline) if deadline <= Instant::now() => return Poll::Ready(()),
                    deadline => alarm.as_mut().reset(deadline.unwrap_or_else(|| Instant::now() + bounds.idle)),
                }
            }
            Poll::Pending
        })
        .await;
    };
    line.gone.run_until_cancelled(serving).await;
}

/// One request on a connection, with whose turn it is.
async fn answer(
    router: TowerToHyperService<Router>,
    line: Arc<Line>,
    bounds: Bounds,
    peer: Option<Peer>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    line.turn(if request.body().is_end_stream() { Turn::Answer } else { Turn::Body });
    let (mut parts, body) = request.into_parts();
    if let Some(peer) = peer {
        parts.extensions.insert(ConnectInfo(peer));
    }
    let (body, late) = Timely::new(body, Arc::clone(&line), bounds.body);
    let mut response = router.call(Request::from_parts(parts, Body::new(body))).await?;
    if late.load(Ordering::Acquire) {
        response = too_slow(bounds.body);
    }
    line.turn(Turn::Answer);
    Ok(crate::until_sent::hold(response, Answering { line }))
}

fn too_slow(within: Duration) -> Response {
    let mut response = Failure(Error::invalid("body", format!("did not come within {} seconds", within.as_secs()))).into_response();
    *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
    // What is left of the body is not the next request.
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// An answer under way: then the connection is idle again.
struct Answering {
    line: Arc<Line>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.line.turn(Turn::Idle);
    }
}

/// Tells a connection for which there is no room so, as the answer to its first request.
async fn refuse<S>(opening: impl Future<Output = Option<(S, Option<Peer>)>>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let Some((stream, _)) = opening.await else { return };
    let service = service_fn(|_: Request<Incoming>| async {
        let error = Error::limited("this desk has as many connections as it takes, and all are at work", 1_000);
        let error = error.hint("close connections that wait or follow and are not needed; `deskmate` on the desk's own machine still works");
        Ok::<_, Infallible>(Failure(error).into_response())
    });
    drop(http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service).await);
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::body::Bytes;
    use axum::routing::{get, post};
    use futures_util::stream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::super::listen::Plain;
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);
    const BOUNDS: Bounds = Bounds { connections: 100, head: HOUR, body: HOUR, unread: HOUR, idle: HOUR };
    const SHORT: Duration = Duration::from_millis(200);
    /// Long after every short bound.
    const LATER: Duration = Duration::from_millis(700);

    async fn start(bounds: Bounds) -> SocketAddr {
        let router = Router::new()
            .route("/", post(|body: Bytes| async move { body.len().to_string() }))
            .route("/wait", get(async || tokio::time::sleep(LATER).await))
            .route("/large", get(async || vec![b'x'; 64 << 20]))
            .route("/stream", get(async || Body::from_stream(stream::unfold((), async |()| Some((tick().await, ()))))));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(Plain(listener), router, bounds, CancellationToken::new()));
        address
    }

    async fn tick() -> Result<&'static str, Infallible> {
        tokio::time::sleep(LATER).await;
        Ok("tick")
    }

    async fn open(address: SocketAddr, bytes: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream
    }

    /// Whatever comes until a piece of it, or the end of the connection.
    async fn until(stream: &mut TcpStream, piece: &str) -> String {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(piece) {
            let read = timeout(Duration::from_secs(20), stream.read_buf(&mut seen)).await.expect("it is answered or closed");
            if read.unwrap_or(0) == 0 {
                break;
            }
        }
        String::from_utf8_lossy(&seen).into_owned()
    }

    const POST: &str = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n";

    #[tokio::test]
    async fn a_head_that_comes_in_drops_is_cut_off() {
        let address = start(Bounds { head: SHORT, ..BOUNDS }).await;
        let mut slow = open(address, "POST / HT").await;
        let (mut ends, begun) = (String::new(), Instant::now());
        for byte in "TP/1.1\r\nx-slow: aaaaaaaaaaaaaaaaaaaa".chars() {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if slow.write_all(byte.to_string().as_bytes()).await.is_err() || timeout(Duration::from_millis(1), slow.read_to_string(&mut ends)).await.is_ok() {
                break;
            }
        }
        assert!(begun.elapsed() < LATER, "every byte gave it more time");
    }

    #[tokio::test]
    async fn a_body_that_comes_in_drops_is_answered_and_cut_off() {
        let address = start(Bounds { body: SHORT, ..BOUNDS }).await;
        let mut slow = open(address, &format!("{POST}ab")).await;
        let answer = until(&mut slow, "no such piece").await;
        assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("did not come within"), "{answer}");
        let mut whole = open(address, &format!("{POST}abcd")).await;
        assert!(until(&mut whole, "\r\n\r\n4").await.contains(" 200 "));
    }

    #[tokio::test]
    async fn an_idle_connection_is_no_slow_one() {
        let address = start(Bounds { head: SHORT, body: SHORT, unread: SHORT, ..BOUNDS }).await;
        let mut kept = open(address, "").await;
        for _ in 0..2 {
            tokio::time::sleep(LATER).await;
            kept.write_all(format!("{POST}abcd").as_bytes()).await.unwrap();
            assert!(until(&mut kept, "\r\n\r\n4").await.contains(" 200 "));
        }
        let address = start(Bounds { idle: SHORT, ..BOUNDS }).await;
        assert_eq!(until(&mut open(address, "").await, "no such piece").await, "", "after its own time it is closed");
    }

    #[tokio::test]
    async fn whoever_waits_or_follows_is_not_cut_off() {
        let address = start(Bounds { head: SHORT, body: SHORT, unread: SHORT, idle: SHORT, ..BOUNDS }).await;
        let mut waits = open(address, "GET /wait HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let mut follows = open(address, "GET /stream HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(until(&mut waits, "\r\n\r\n").await.contains(" 200 "));
        for _ in 0..3 {
            assert!(until(&mut follows, "tick").await.contains("tick"));
        }
    }

    #[tokio::test]
    async fn an_answer_that_nobody_reads_is_given_up() {
        let address = start(Bounds { unread: SHORT, ..BOUNDS }).await;
        let mut lazy = open(address, "GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await;
        // The time begins with the answer, which takes a while to make on a busy machine.
        lazy.readable().await.unwrap();
        tokio::time::sleep(LATER).await;
        let mut all = Vec::new();
        drop(timeout(Duration::from_secs(20), lazy.read_to_end(&mut all)).await.expect("it is closed"));
        assert!(all.len() < 64 << 20, "it was kept for a reader that did not read");
    }

    #[tokio::test]
    async fn without_room_idle_connections_go_and_new_ones_are_told() {
        let address = start(Bounds { connections: 2, ..BOUNDS }).await;
        let mut idle = open(address, "").await;
        let mut first = open(address, "GET /stream HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(until(&mut first, "tick").await.contains("tick"));
        let mut second = open(address, "GET /stream HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(until(&mut second, "tick").await.contains("tick"), "an idle one made room");
        assert_eq!(until(&mut idle, "no such piece").await, "");
        let refused = until(&mut open(address, &format!("{POST}abcd")).await, "no such piece").await;
        assert!(refused.starts_with("HTTP/1.1 429 ") && refused.contains("retry-after: 1") && refused.contains("\"limited\""), "{refused}");
        drop(first);
        for _ in 0..100 {
            let answer = until(&mut open(address, &format!("{POST}abcd")).await, "\r\n\r\n").await;
            if answer.contains(" 200 ") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the place of one that is gone was not given back");
    }
}
