//! What changed, by name: a stream of topics that tells pages when what they show is out of date. It carries no content;
//! the page reads that again by its own right.
//!
//! The topics of an event are the first part of its kind (`request`, `trust`), its subject (`request:ID`), and `record`; `*` is
//! told where there are too many to name.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use deskmate_core::call::{Credential, Desk};
use deskmate_core::{Error, Result};
use tokio::sync::mpsc;

use super::super::rest::Failure;
use super::super::stream::{From, heads, place, respond};
use super::super::{Shared, credential};

/// How many events one look takes.
const LOOK: u32 = 500;
/// How long news are gathered before they are told, so that a flood is told four times a second.
const GATHER: Duration = Duration::from_millis(250);
/// How often a page is told that the desk is still there: what keeps the connection open is nothing that a script sees. The
/// page's script (`live.js`) takes three times this long without a word for a connection that is lost.
const ALIVE: Duration = Duration::from_secs(5);
/// How many events a page may have missed and still be told what they were about.
const CATCH_UP: u64 = 10_000;
/// More topics than these are not named in one telling: `*` stands for all.
const SUBJECTS_MAX: usize = 100;

pub(super) async fn serve(State(shared): State<Shared>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let wanted = match From::of(&uri, &headers) {
        Ok(wanted) => wanted,
        Err(error) => return Failure(error).into_response(),
    };
    let mut grown = shared.app.live.size();
    let now = *grown.borrow_and_update();
    // A page that was away for long is told from where it ended; what it missed is in one telling.
    let from = wanted.last.or(wanted.from).unwrap_or(now).min(now);
    let far = now - from > CATCH_UP;
    let mut next = if far { now } else { from };
    let opened = async {
        let credential = credential::of(&shared, &method, &uri, &headers, &[]).await?;
        let place = place(&shared, &credential).await?;
        Ok::<_, Error>((credential, place))
    };
    let (credential, place) = match opened.await {
        Ok(opened) => opened,
        Err(error) => return Failure(error).into_response(),
    };
    let (sender, events) = mpsc::channel::<std::result::Result<Event, Infallible>>(4);
    let (desk, stop) = (shared.app.desk.clone(), shared.app.stop.clone());
    tokio::spawn(async move {
        // Who was away for too long reads everything again.
        let mut topics: BTreeSet<String> = far.then(|| "*".to_owned()).into_iter().collect();
        let mut first = true;
        loop {
            loop {
                match look(&desk, &credential, next).await {
                    Ok((found, reached)) => {
                        topics.extend(found);
                        if topics.len() > SUBJECTS_MAX {
                            topics.retain(|topic: &String| !topic.contains(':'));
                            topics.insert("*".to_owned());
                        }
                        if reached == next {
                            break;
                        }
                        next = reached;
                    }
                    // Signed out, or the store is away: the page finds out which when it comes again.
                    Err(_) => return,
                }
            }
            if first || !topics.is_empty() {
                first = false;
                let message = Event::default().id(next.to_string()).json_data(std::mem::take(&mut topics));
                if sender.send(Ok(message.unwrap_or_default())).await.is_err() {
                    return;
                }
                tokio::time::sleep(GATHER).await;
            }
            tokio::select! {
                changed = grown.changed() => if changed.is_err() { return },
                () = sender.closed() => return,
                () = stop.cancelled() => return,
                () = tokio::time::sleep(ALIVE) => {
                    if sender.send(Ok(Event::default().event("alive").data("yes"))).await.is_err() {
                        return;
                    }
                }
            }
        }
    });
    respond(events, place)
}

/// The topics of the events from a place on that the caller may see, and the place after the last one looked at.
async fn look(desk: &Desk, credential: &Credential, from: u64) -> Result<(Vec<String>, u64)> {
    let (credential, admitting) = (credential.clone(), desk.clone());
    desk.db
        .read(move |tx| {
            let (events, reached) = heads(tx, &admitting, &credential, from, LOOK)?;
            let mut topics = Vec::new();
            for event in events {
                topics.extend(["record".to_owned(), event.kind.split('.').next().unwrap_or_default().to_owned(), event.subject]);
            }
            Ok((topics, reached))
        })
        .await
}
