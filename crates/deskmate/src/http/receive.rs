//! What a caller sends, with an eye on how long it takes: the bytes of a connection and the body of a request.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::connections::Line;

/// A connection's bytes, noted as they come and go.
pub(super) struct Noted<S> {
    pub(super) stream: S,
    pub(super) line: Arc<Line>,
}

impl<S> Noted<S> {
    fn note(&self, sent: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.line.sent(sent.is_ready());
        sent
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Noted<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        if into.filled().len() > before {
            self.line.came();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noted<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(sent)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note(sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The body of a request, which fails when it does not come in time.
pub(super) struct Timely {
    body: Incoming,
    line: Arc<Line>,
    alarm: Pin<Box<Sleep>>,
    late: Arc<AtomicBool>,
}

impl Timely {
    /// The body, and what tells later whether it was late.
    pub(super) fn new(body: Incoming, line: Arc<Line>, within: Duration) -> (Self, Arc<AtomicBool>) {
        let late = Arc::new(AtomicBool::new(false));
        (Self { body, line, alarm: Box::pin(sleep(within)), late: Arc::clone(&late) }, late)
    }
}

impl HttpBody for Timely {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.late.load(Ordering::Acquire) {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            if frame.is_none() || self.body.is_end_stream() {
                self.line.received();
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)));
        }
        ready!(self.alarm.as_mut().poll(context));
        self.late.store(true, Ordering::Release);
        Poll::Ready(Some(Err(axum::Error::new(io::Error::from(io::ErrorKind::TimedOut)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Timely {
    fn drop(&mut self) {
        self.line.received();
    }
}
