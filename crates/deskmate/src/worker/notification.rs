//! Delivering a notification: the job that stands behind each message to the outside.

use deskmate_core::call::{Actor, Surface};
use deskmate_core::job::Outcome;
use deskmate_core::notify::{self, Channel, Failure, Taken};
use deskmate_core::{Error, Result};
use serde_json::{Value, json};

use super::{Running, hopeless};
use crate::config::{Outlet, Way};
use crate::effects;
use crate::effects::notify::webhook::{Post, Refused};
use crate::effects::notify::{desktop, webhook};

pub(super) async fn run(job: &Running) -> Result<Outcome> {
    let (id, name) = (text(job, "notification"), text(job, "channel"));
    let Some((outlet, channel)) = find(job, &name).await? else {
        let gone = format!("there is no channel {name} any more");
        report(job, &id, Failure { error: gone.clone(), last: true, permanent: true, ..Failure::default() }).await?;
        return Ok(hopeless(&Error::not_found(gone)));
    };
    let (wanted, known, base) = (id.clone(), channel.clone(), job.outlets.base(&job.app).map(str::to_owned));
    let taken = job.app.desk.act(Surface::System, move |cx| notify::take(cx, &wanted, &known, base.as_deref())).await?;
    let Taken::Send { body, message, letter } = taken else { return Ok(Outcome::Done(json!({ "sent": false }))) };
    let sent = match &outlet.way {
        Way::Desktop(command) => desktop::show(command, &message).await.map(|()| None).map_err(Refused::Other),
        Way::Webhook(endpoint) => {
            let (at, webhook_id) = (job.app.desk.world.now() / 1_000_000, format!("msg_{id}"));
            webhook::post(endpoint, Post { id: &webhook_id, at, body: &body }).await.map(|()| None)
        }
        Way::Mail(_) | Way::Post(_) => effects::notify::send(&job.app, outlet, channel.to.as_deref(), &letter).await,
    };
    match sent {
        Ok(receipt) => {
            let (own, attempt) = (job.clone(), job.claimed.attempt);
            let arrived = job.app.desk.act(Surface::System, move |cx| {
                own.held(cx)?;
                notify::arrived(cx, &id, attempt, receipt.as_deref())
            });
            arrived.await?;
            Ok(Outcome::Done(json!({ "sent": true })))
        }
        Err(refused) => not_sent(job, &id, &channel.name, refused).await,
    }
}

/// The outlet and the channel of a job: the configuration's own, or a person's.
async fn find<'j>(job: &'j Running, name: &str) -> Result<Option<(&'j Outlet, Channel)>> {
    if !name.starts_with(notify::PREFIX) {
        return Ok(job.outlets.find(name).and_then(|outlet| Some((outlet, outlet.channel.clone()?))));
    }
    let (desk, own) = (job.app.desk.clone(), name.to_owned());
    let channel = job.app.desk.db.read(move |tx| notify::channel_of(&mut desk.cx(tx, Actor::system(), Surface::System), &own)).await?;
    Ok(channel.and_then(|channel| Some((job.outlets.find(&channel.outlet)?, channel))))
}

fn text(job: &Running, name: &str) -> String {
    job.claimed.input.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Somebody stopped the job while the receiver had not answered yet.
pub(super) async fn stopped(job: &Running) -> Result<()> {
    let error = "it was cancelled while the receiver had not answered".to_owned();
    report(job, &text(job, "notification"), Failure { error, last: true, ..Failure::default() }).await
}

async fn not_sent(job: &Running, id: &str, channel: &str, refused: Refused) -> Result<Outcome> {
    let (error, gone, permanent, later) = match refused {
        Refused::Gone => ("the receiver says that it is gone for good, so the channel is off".to_owned(), true, true, None),
        Refused::Later { error, by } => (error, false, false, Some(by)),
        Refused::Never(error) => (error, false, true, None),
        Refused::Other(error) => (error, false, false, None),
    };
    let last = job.claimed.attempt >= job.claimed.attempts_max;
    if last || permanent {
        tracing::error!(channel, notification = %id, error, attempts = job.claimed.attempt, "a notification was given up");
    }
    report(job, id, Failure { error: error.clone(), last, gone, permanent }).await?;
    Ok(match later {
        Some(by) => Outcome::PutOff { error, by },
        None => Outcome::Failed { error, retry: !permanent },
    })
}

async fn report(job: &Running, id: &str, failure: Failure) -> Result<()> {
    let (own, id, attempt) = (job.clone(), id.to_owned(), job.claimed.attempt);
    let failed = job.app.desk.act(Surface::System, move |cx| {
        own.held(cx)?;
        notify::failed(cx, &id, attempt, &failure)
    });
    failed.await
}
