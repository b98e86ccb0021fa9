//! Notifications: a follower of the record that makes them, and the ways in which they leave the desk. The jobs that
//! deliver them are in the worker; nobody who decides ever waits for one.

pub(crate) mod desktop;
pub(crate) mod mail;
mod service;
pub(crate) mod webhook;

use std::sync::Arc;
use std::time::Duration;

use deskmate_core::call::{Actor, Surface};
use deskmate_core::notify::{self, Channel, Letter, Look, OutletRow, Reminders, Rendered};
use deskmate_core::{Result, secret};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use self::webhook::Refused;
use crate::app::App;
use crate::config::{Notifications, Outlet, Way};

/// How many events one look takes.
const LOOK: u32 = 1_000;
/// A follower is in no hurry: events that come one after the other are looked at together.
const PACE: Duration = Duration::from_millis(200);
/// After so many events without anything to tell, the place in the record is written down all the same.
const KEEP_AFTER: u64 = 20_000;

/// The outlets of the configuration, with what it takes to use them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outlets(Arc<Notifications>);

impl Outlets {
    pub(crate) fn new(notifications: Notifications) -> Self {
        Self(Arc::new(notifications))
    }

    /// An outlet by its name.
    pub(crate) fn find(&self, name: &str) -> Option<&Outlet> {
        self.0.outlets.iter().find(|outlet| outlet.row.name == name)
    }

    /// When requests are told again.
    pub(crate) fn reminders(&self) -> &Reminders {
        &self.0.reminders
    }

    /// Whether there is anybody to tell.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.outlets.is_empty()
    }

    /// Where people reach the desk's pages.
    pub(crate) fn base<'a>(&'a self, app: &'a App) -> Option<&'a str> {
        self.0.base_url.as_deref().or_else(|| app.url())
    }

    fn channels(&self) -> Vec<Channel> {
        self.0.outlets.iter().filter_map(|outlet| outlet.channel.clone()).collect()
    }

    fn rows(&self) -> Vec<OutletRow> {
        self.0.outlets.iter().map(|outlet| outlet.row.clone()).collect()
    }
}

/// Writes down which outlets there are, and finds the place in the record to go on from. This is done before anybody can
/// call: what the first caller does is told like everything after it.
pub(crate) async fn begin(app: &App, outlets: &Outlets) -> Result<u64> {
    for outlet in &outlets.0.outlets {
        if let Way::Desktop(command) = &outlet.way {
            let is_away = !desktop::is_there(command);
            app.desk.away.set("desktop", is_away);
            if is_away {
                tracing::warn!(command = ?command.first(), "desktop notifications are configured, but the program that shows them is not there");
            }
        }
        app.desk.safe.uses(&format!("outlet:{}", outlet.row.name), outlet.way.secrets());
    }
    let rows = outlets.rows();
    let begun = app.desk.act(Surface::System, move |cx| {
        notify::register(cx, &rows)?;
        if rows.is_empty() { Ok(0) } else { notify::begin(cx) }
    });
    begun.await
}

/// Sends a letter through an outlet, now; answers the id that the receiver gave it, if it did. Secrets are looked up here, and are
/// nowhere afterwards.
pub(crate) async fn send(app: &App, outlet: &Outlet, to: Option<&str>, letter: &Letter) -> Result<Option<String>, Refused> {
    let secrets = secrets(app, outlet).await?;
    let rendered = notify::render(outlet.row.kind, letter, to).map_err(|error| Refused::Never(error.to_string()))?;
    match (&outlet.way, rendered) {
        (Way::Mail(server), Rendered::Mail(mail)) => {
            let to = to.ok_or_else(|| Refused::Never("there is no address".to_owned()))?;
            mail::send(server, secrets, to, &mail).await
        }
        (Way::Post(service), Rendered::Json(body)) => service::send(service, secrets, &body, app.desk.world.now() / 1_000_000).await,
        _ => Err(Refused::Never("this outlet takes no letters".to_owned())),
    }
}

/// The secret of an outlet. One that is missing stays so until a person sets it.
async fn secrets(app: &App, outlet: &Outlet) -> Result<Option<Zeroizing<String>>, Refused> {
    let Some(name) = outlet.way.secrets().into_iter().next() else { return Ok(None) };
    let desk = app.desk.clone();
    let found = app.desk.db.read(move |tx| secret::resolve(&mut desk.cx(tx, Actor::system(), Surface::System), &name)).await;
    found.map(Some).map_err(|error| Refused::Never(error.to_string()))
}

/// Follows the record from a place on until the server stops, where there is anybody to tell.
pub(super) async fn run(app: App, outlets: Outlets, begun: u64, stop: CancellationToken) {
    if !outlets.is_empty() {
        follow(app, outlets, begun, stop).await;
    }
}

async fn follow(app: App, outlets: Outlets, begun: u64, stop: CancellationToken) {
    let mut grown = app.live.size();
    let (mut next, mut kept) = (begun, begun);
    loop {
        grown.mark_unchanged();
        match step(&app, &outlets, next, kept).await {
            Ok(done) => {
                let more = done.next - next >= u64::from(LOOK);
                next = done.next;
                if done.told {
                    kept = next;
                }
                if more {
                    continue;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "following the record for notifications failed; it is tried again");
                grown.mark_changed();
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PACE) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = grown.changed() => if changed.is_err() { return },
        }
    }
}

struct Step {
    next: u64,
    told: bool,
}

/// Looks on; only what may be worth a message costs a write.
async fn step(app: &App, outlets: &Outlets, from: u64, kept: u64) -> Result<Step> {
    let look: Look = app.desk.db.read(move |tx| notify::look(tx, from, LOOK)).await?;
    if !look.rings() && look.next - kept < KEEP_AFTER {
        return Ok(Step { next: look.next, told: false });
    }
    let (channels, reminders) = (outlets.channels(), outlets.reminders().clone());
    let next = app.desk.act(Surface::System, move |cx| notify::follow_with(cx, &channels, &reminders, &look)).await?;
    Ok(Step { next, told: true })
}
