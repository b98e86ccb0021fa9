//! Connections follow the settings in force: those of mounts that are gone are ended, and what was never seen is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deskmate_core::Result;
use deskmate_core::call::{Actor, Surface};
use deskmate_core::gateway::{self as core, Mount};
use deskmate_db::Engine;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::spec;
use crate::app::App;
use crate::upstream::Upstream;

/// How often the settings are looked at. It is one read of what is kept in memory.
const LOOK: Duration = Duration::from_secs(1);
/// How long a mount is left alone that could not be looked at.
const AGAIN: Duration = Duration::from_mins(1);
/// Calls that a server before this one left behind, at once.
const SLICE: u32 = 200;
/// How long a call may take at most. What is older and has no outcome has none any more, whichever server handed it on.
const LONGEST: i64 = 11 * 60 * 1_000_000;

/// Ends what was under way when a server before this one was killed: nobody knows what came of it. Where several servers share
/// a store, a call of another one may still be under way.
pub(crate) async fn abandon_left_behind(app: &App) -> Result<()> {
    let own = app.desk.db.engine() == Engine::Sqlite;
    while app
        .desk
        .act(Surface::System, move |cx| {
            let before = if own { cx.now() } else { cx.now() - LONGEST };
            core::abandon(cx, before, SLICE)
        })
        .await?
        >= SLICE as usize
    {}
    Ok(())
}

/// Ends calls of which nothing was heard for longer than any call may take, and forgets what counts no longer.
pub(crate) async fn sweep(app: &App) -> Result<()> {
    while app.desk.act(Surface::System, |cx| core::abandon(cx, cx.now() - LONGEST, SLICE)).await? >= SLICE as usize {}
    Ok(())
}

/// Forgets calls that were made longer ago than they are kept, and what was read long ago; the record tells of both for ever.
pub(crate) async fn prune(app: &App, kept: Option<i64>) -> Result<()> {
    if let Some(kept) = kept {
        while app.desk.act(Surface::System, move |cx| core::prune(cx, cx.now() - kept, SLICE)).await? >= u64::from(SLICE) {}
    }
    while app.desk.act(Surface::System, |cx| core::taint::prune(cx, SLICE)).await? >= u64::from(SLICE) {}
    Ok(())
}

/// The mounts that are served now, and those of which nothing was seen yet.
async fn served(app: &App) -> Result<(BTreeMap<String, Mount>, BTreeSet<String>)> {
    let desk = app.desk.clone();
    let read = app.desk.db.read(move |tx| {
        let mut cx = desk.cx(tx, Actor::system(), Surface::System);
        let served = core::served(&mut cx)?.into_iter().map(|mount| (mount.name.clone(), mount)).collect();
        Ok((served, core::unseen(&mut cx)?.into_iter().collect()))
    });
    read.await
}

/// Ends connections of mounts that are not any more what they were: those of mounts that are gone at once, and those that are
/// reached otherwise now once what is under way there has ended. Only those are looked at that were there before the settings were
/// read: a later one may be of a mount that came since. A mount may also have come back since, over a connection that it had before.
async fn end_stale(app: &App, there: Vec<Arc<Upstream>>, known: &BTreeMap<String, Mount>, now: &BTreeMap<String, Mount>) {
    let pool = app.gateway.pool();
    let (there, gone): (Vec<_>, Vec<_>) = there.into_iter().partition(|upstream| now.contains_key(upstream.mount()));
    for (name, _) in now.iter().filter(|(name, mount)| known.get(*name) != Some(*mount)) {
        let own: Vec<_> = there.iter().filter(|upstream| upstream.mount() == name.as_str()).cloned().collect();
        if own.is_empty() {
            continue;
        }
        let spec = spec::of(app, name).await.ok();
        let other: Vec<_> = own.into_iter().filter(|upstream| spec.as_ref().is_none_or(|(_, spec)| !upstream.is_of(spec))).collect();
        pool.replace(&other);
    }
    if !gone.is_empty() {
        // Where nobody can tell, what is under way is let be.
        let all = || gone.iter().map(|upstream| upstream.mount().to_owned()).collect();
        pool.remove(&gone, async { served(app).await.map_or_else(|_| all(), |(served, _)| served.into_keys().collect()) }).await;
    }
}

/// Keeps connections in step with the settings, until the server stops.
pub(crate) async fn follow(app: App, stop: CancellationToken) {
    let mut known: BTreeMap<String, Mount> = BTreeMap::new();
    let mut not_before: BTreeMap<String, Instant> = BTreeMap::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(LOOK) => {}
        }
        let there = app.gateway.pool().list();
        let Ok((now, unseen)) = served(&app).await else { continue };
        if known != now {
            app.gateway.0.state.fetch_add(1, Ordering::Relaxed);
        }
        not_before.retain(|name, _| known.get(name) == now.get(name));
        end_stale(&app, there, &known, &now).await;
        for mount in now.values() {
            app.desk.safe.uses(&format!("mount:{}", mount.name), mount.secrets().into_iter().map(str::to_owned));
        }
        for gone in known.keys().filter(|name| !now.contains_key(*name)) {
            app.desk.safe.uses(&format!("mount:{gone}"), []);
        }
        for name in unseen {
            let Some(mount) = now.get(&name).filter(|_| not_before.get(&name).is_none_or(|at| *at <= Instant::now())) else { continue };
            not_before.insert(name.clone(), Instant::now() + AGAIN);
            let (app, mount) = (app.clone(), mount.clone());
            tokio::spawn(async move {
                match app.gateway.visit(&app, &mount).await {
                    Ok(found) => {
                        let (name, tools) = (mount.name.clone(), Arc::new(found.tools));
                        let seen = app.desk.act(Surface::System, move |cx| {
                            // It may have been taken away meanwhile.
                            core::mount_of(cx, &name)?;
                            core::seen(cx, &name, &tools)
                        });
                        let seen = seen.await;
                        if let Err(error) = seen {
                            tracing::warn!(mount = mount.name, %error, "what a server offers could not be kept");
                        }
                    }
                    Err(error) => tracing::warn!(mount = mount.name, %error, "a server could not be reached; it is tried again in a minute"),
                }
            });
        }
        known = now;
    }
    app.gateway.shut_down().await;
}
