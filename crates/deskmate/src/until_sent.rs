//! An answer's body that holds something until its last byte is out, or until whoever asked is gone.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

/// Holds `what` as long as the answer is under way, so that a live stream holds it as long as it is open.
pub(crate) fn hold<T: Send + Unpin + 'static>(response: Response, what: T) -> Response {
    response.map(|body| Body::new(Held { body, _what: what }))
}

/// A body, unchanged, with its known length.
struct Held<T> {
    body: Body,
    _what: T,
}

impl<T: Unpin> HttpBody for Held<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
