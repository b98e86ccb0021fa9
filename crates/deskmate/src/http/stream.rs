//! The record as it grows: server-sent events from any sequence number on. The stream reads the record itself, so a
//! reconnect goes on exactly where it ended, and nothing is lost or told twice.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use deskmate_core::call::{Credential, Desk};
use deskmate_core::record::{self, EventRow};
use deskmate_core::{Error, Result};
use deskmate_db::Tx;
use serde::Deserialize;
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

#[derive(Deserialize)]
pub(super) struct From {
    /// The first sequence number wanted; without it, what happens from now on.
    from: Option<u64>,
}

pub(super) async fn serve(State(shared): State<Shared>, Query(query): Query<From>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let opened = async {
        let credential = credential::of(&shared, &method, &uri, &headers, &[]).await?;
        let place = place(&shared, &credential).await?;
        Ok::<_, Error>((credential, place))
    };
    let (credential, place) = match opened.await {
        Ok(opened) => opened,
        Err(error) => return Failure(error).into_response(),
    };
    let named = is_named(&credential);
    let mut grown = shared.app.live.size();
    let now = *grown.borrow_and_update();
    let mut next = last.map_or_else(|| query.from.unwrap_or(now), |last| last.saturating_add(1));
    let (sender, events) = mpsc::channel::<std::result::Result<Event, Infallible>>(WAITING_MAX);
    let desk = shared.app.desk.clone();
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
