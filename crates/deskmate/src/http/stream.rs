//! The record as it grows: server-sent events from any sequence number on. The stream reads the record itself, so a
//! reconnect goes on exactly where it ended, and nothing is lost or told twice.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use deskmate_core::call::{Credential, Desk};
use deskmate_core::record::{self, EventRow};
use deskmate_core::{Error, Result};
use deskmate_db::Tx;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use super::rest::{Failure, is_named, marked};
use super::{Shared, credential};
use crate::places::Place;

/// How many events one look takes, and how many wait for a slow reader.
const LOOK: u32 = 200;
const WAITING_MAX: usize = 8;
/// Whoever may call this may follow.
const LIST: &str = "desk_record_list";
/// A sign of life when nothing happens.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// From where somebody follows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct From {
    /// The first sequence number wanted; without it, what happens from now on.
    pub(super) from: Option<u64>,
    /// What a reader that comes again was told last, which counts more.
    pub(super) last: Option<u64>,
}

impl From {
    /// What is no number is refused: taken for nothing, it would leave out what happened meanwhile, and nobody would know.
    pub(super) fn of(uri: &Uri, headers: &HeaderMap) -> Result<Self> {
        let last = match headers.get("last-event-id").map(HeaderValue::as_bytes) {
            None | Some(b"") => None,
            Some(id) => Some(number("last-event-id", std::str::from_utf8(id).unwrap_or_default())?),
        };
        let pairs: Vec<(String, String)> =
            serde_urlencoded::from_str(uri.query().unwrap_or_default()).map_err(|error| Error::invalid("query", error.to_string()))?;
        let mut from = None;
        for (name, value) in pairs {
            if name != "from" {
                return Err(Error::invalid(&name, "is not known here: a stream is asked for with `from` alone"));
            }
            if from.replace(number("from", &value)?).is_some() {
                return Err(Error::invalid("from", "was given twice"));
            }
        }
        Ok(Self { from, last })
    }
}

fn number(field: &str, text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::invalid(field, "must be the sequence number of an event"))
}

pub(super) async fn serve(State(shared): State<Shared>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let opened = async {
        let wanted = From::of(&uri, &headers)?;
        let credential = credential::of(&shared, &method, &uri, &headers, &[]).await?;
        let place = place(&shared, &credential).await?;
        Ok::<_, Error>((wanted, credential, place))
    };
    let (wanted, credential, place) = match opened.await {
        Ok(opened) => opened,
        Err(error) => return Failure(error).into_response(),
    };
    let named = is_named(&credential);
    let mut grown = shared.app.live.size();
    let now = *grown.borrow_and_update();
    let mut next = wanted.last.map_or_else(|| wanted.from.unwrap_or(now), |last| last.saturating_add(1));
    let (sender, events) = mpsc::channel::<std::result::Result<Event, Infallible>>(WAITING_MAX);
    let (desk, stop) = (shared.app.desk.clone(), shared.app.stop.clone());
    tokio::spawn(async move {
        // A reader that reconnects before the first event for it must go on from here, so it is told where that is.
        // Later it is told with the signs of life, so that nothing is looked through twice.
        let mut told_at: Option<Instant> = None;
        loop {
            // The credential is looked at each time: a revoked one ends the stream.
            let (visible, reached) = match look(&desk, &credential, next).await {
                Ok(found) => found,
                Err(error) => {
                    drop(sender.send(Ok(Event::default().event("error").data(error.to_string()))).await);
                    return;
                }
            };
            for event in visible {
                let message = Event::default().id(event.seq.to_string()).event(event.kind.clone()).json_data(&event);
                if sender.send(Ok(message.unwrap_or_default())).await.is_err() {
                    return;
                }
            }
            if reached > next {
                next = reached;
                continue;
            }
            if next > 0 && told_at.is_none_or(|at| at.elapsed() >= HEARTBEAT) {
                told_at = Some(Instant::now());
                if sender.send(Ok(Event::default().id((next - 1).to_string()))).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                changed = grown.changed() => if changed.is_err() { return },
                () = sender.closed() => return,
                () = stop.cancelled() => return,
                () = tokio::time::sleep(HEARTBEAT) => {}
            }
        }
    });
    marked(respond(events, place), named)
}

/// A place for one more stream of whoever may look at the record.
pub(super) async fn place(shared: &Shared, credential: &Credential) -> Result<Place> {
    let (credential, desk) = (credential.clone(), shared.app.desk.clone());
    let actor = shared.app.desk.db.read(move |tx| desk.admit(tx, &credential, LIST)).await?;
    shared.app.streams.take(Some(&actor))
}

/// Events on their way to a reader, with signs of life between them and no proxy that gathers them. The place is given
/// back when the stream ends, also when its reader is just gone.
pub(super) fn respond(events: mpsc::Receiver<std::result::Result<Event, Infallible>>, place: Place) -> Response {
    let keep_alive = KeepAlive::new().interval(HEARTBEAT).text("alive");
    let mut response = Sse::new(ReceiverStream::new(events)).keep_alive(keep_alive).into_response();
    response.headers_mut().insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
    crate::until_sent::hold(response, place)
}

/// The events from a place on that the caller may see, and the place after the last one looked at.
async fn look(desk: &Desk, credential: &Credential, from: u64) -> Result<(Vec<EventRow>, u64)> {
    let (credential, admitting) = (credential.clone(), desk.clone());
    desk.db
        .read(move |tx| {
            let (visible, reached) = heads(tx, &admitting, &credential, from, LOOK)?;
            let found = visible.len();
            let filled = record::fill(tx, visible)?;
            let reached = if filled.len() < found { filled.last().map_or(reached, |event| event.seq + 1) } else { reached };
            Ok((filled, reached))
        })
        .await
}

/// The same without what was written, by the same right as the list of the record.
pub(super) fn heads(tx: &mut Tx<'_>, desk: &Desk, credential: &Credential, from: u64, limit: u32) -> Result<(Vec<EventRow>, u64)> {
    let actor = desk.admit(tx, credential, LIST)?;
    let events = record::heads_after(tx, from, limit)?;
    let reached = events.last().map_or(from, |event| event.seq + 1);
    Ok((events.into_iter().filter(|event| event.visible_to(&actor)).collect(), reached))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str, last: Option<&str>) -> Result<From> {
        let headers = last.map(|last| ("last-event-id".parse().unwrap(), last.parse().unwrap()));
        From::of(&format!("/api/stream{query}").parse().unwrap(), &headers.into_iter().collect())
    }

    #[test]
    fn a_place_that_is_no_number_is_refused() {
        assert_eq!(of("", None).unwrap(), From::default());
        assert_eq!(of("?from=7", Some("")).unwrap(), From { from: Some(7), last: None });
        assert_eq!(of("?from=7", Some("9")).unwrap(), From { from: Some(7), last: Some(9) });
        for (query, last, field) in [
            ("?from=abc", None, "from"),
            ("?from=-1", None, "from"),
            ("?from=", None, "from"),
            ("?from=1&from=2", None, "from"),
            ("?form=1", None, "form"),
            ("?from=1", Some("x"), "last-event-id"),
            ("", Some("1.5"), "last-event-id"),
        ] {
            let refused = of(query, last).expect_err(query);
            assert_eq!((refused.code, refused.field.as_deref()), (deskmate_core::Code::Invalid, Some(field)), "{query} {last:?}");
        }
    }
}
