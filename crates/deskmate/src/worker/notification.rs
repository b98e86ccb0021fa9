//! Delivering a notification: the job that stands behind each message to the outside.

use deskmate_core::call::Surface;
use deskmate_core::job::Outcome;
use deskmate_core::notify::{self, Failure, Taken};
use deskmate_core::{Error, Result};
use serde_json::{Value, json};

use super::{Running, hopeless};
use crate::config::{Outlet, Way};
use crate::effects::notify::webhook::{Post, Refused};
use crate::effects::notify::{desktop, webhook};

pub(super) async fn run(job: &Running) -> Result<Outcome> {
    let (id, name) = (text(job, "notification"), text(job, "channel"));
    let Some(outlet) = job.outlets.find(&name) else {
        let gone = format!("the configuration has no channel {name} any more");
        report(job, &id, Failure { error: gone.clone(), last: true, gone: false }).await?;
        return Ok(hopeless(&Error::not_found(gone)));
    };
    let (wanted, channel) = (id.clone(), outlet.channel.clone());
    let taken = job.app.desk.act(Surface::System, move |cx| notify::take(cx, &wanted, &channel)).await?;
    let Taken::Send { body, message } = taken else { return Ok(Outcome::Done(json!({ "sent": false }))) };
    let sent = match &outlet.way {
        Way::Desktop(command) => desktop::show(command, &message).await.map_err(Refused::Other),
        Way::Webhook(endpoint) => {
            let (at, webhook_id) = (job.app.desk.world.now() / 1_000_000, format!("msg_{id}"));
            webhook::post(endpoint, Post { id: &webhook_id, at, body: &body }).await
        }
    };
    match sent {
        Ok(()) => {
            let attempt = job.claimed.attempt;
            job.app.desk.act(Surface::System, move |cx| notify::arrived(cx, &id, attempt)).await?;
            Ok(Outcome::Done(json!({ "sent": true })))
        }
        Err(refused) => not_sent(job, &id, outlet, refused).await,
    }
}

fn text(job: &Running, name: &str) -> String {
    job.claimed.input.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Somebody stopped the job while the receiver had not answered yet.
pub(super) async fn stopped(job: &Running) -> Result<()> {
    let error = "it was cancelled while the receiver had not answered".to_owned();
    report(job, &text(job, "notification"), Failure { error, last: true, gone: false }).await
}

async fn not_sent(job: &Running, id: &str, outlet: &Outlet, refused: Refused) -> Result<Outcome> {
    let (error, gone, later) = match refused {
        Refused::Gone => ("the receiver answered 410: it is gone for good, and the channel is off".to_owned(), true, None),
        Refused::Later { error, by } => (error, false, Some(by)),
        Refused::Other(error) => (error, false, None),
    };
    let last = job.claimed.attempt >= job.claimed.attempts_max;
    if last || gone {
        tracing::error!(channel = %outlet.channel.name, notification = %id, error, attempts = job.claimed.attempt, "a notification was given up");
    }
    report(job, id, Failure { error: error.clone(), last, gone }).await?;
    Ok(match later {
        Some(by) => Outcome::PutOff { error, by },
        None => Outcome::Failed { error, retry: !gone },
    })
}

async fn report(job: &Running, id: &str, failure: Failure) -> Result<()> {
    let (id, attempt) = (id.to_owned(), job.claimed.attempt);
    job.app.desk.act(Surface::System, move |cx| notify::failed(cx, &id, attempt, &failure)).await
}
