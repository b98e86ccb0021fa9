//! A new connection: what the server offers is compared with what people know, before anything is called over it. A server
//! that says later that its tools have changed is looked at again.

use std::sync::{Arc, PoisonError, Weak};

use deskmate_core::call::Surface;
use deskmate_core::gateway::{self, FoundMount, Mount};
use rmcp::model::ServerPeerInfo;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::clean::Cleaner;
use super::{Gateway, spec};
use crate::app::App;
use crate::upstream::{Change, Error, Upstream};

/// On whose behalf the desk itself looks at a server.
const DESK: &str = "desk";

/// A connection over which what is offered was looked at.
pub(super) struct Met {
    info: Arc<ServerPeerInfo>,
    upstream: Weak<Upstream>,
    _watch: AbortOnDropHandle<()>,
}

/// A server behind the desk, and what takes secrets out of what it says.
pub(crate) struct Behind {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) cleaner: Arc<Cleaner>,
}

impl Gateway {
    /// Looks at what a connection offers, unless that was done. Answers whether it was done now.
    pub(super) async fn meet(&self, app: &App, mount: &Mount, upstream: &Arc<Upstream>, agent: &str, info: Arc<ServerPeerInfo>) -> Result<bool, Error> {
        let key = (mount.name.clone(), (!mount.shared).then(|| agent.to_owned()));
        let known = self.0.met.lock().unwrap_or_else(PoisonError::into_inner).get(&key).is_some_and(|met| Arc::ptr_eq(&met.info, &info));
        if known {
            return Ok(false);
        }
        // Opened before the look, so that nothing between the look and the wait is missed.
        let changes = upstream.changes();
        self.look(app, &mount.name, upstream).await?;
        let upstream = Arc::downgrade(upstream);
        let watch = tokio::spawn(self.clone().watch(app.clone(), mount.name.clone(), upstream.clone(), changes));
        let mut met = self.0.met.lock().unwrap_or_else(PoisonError::into_inner);
        met.retain(|_, met| met.upstream.strong_count() > 0);
        // Whoever watched the connection before this one ends with it.
        met.insert(key, Met { info, upstream, _watch: AbortOnDropHandle::new(watch) });
        Ok(true)
    }

    /// Looks at the tools of a server, and takes in what is different.
    async fn look(&self, app: &App, mount: &str, upstream: &Arc<Upstream>) -> Result<(), Error> {
        let (of, spec) = spec::of(app, mount).await.map_err(|error| Error::NotStarted { name: mount.to_owned(), why: error.message })?;
        let cleaner = self.cleaner(&of, &spec);
        let tools = upstream.list_tools().await?;
        let tools: Arc<Vec<Value>> = Arc::new(tools.iter().filter_map(|tool| cleaner.offered(serde_json::to_value(tool).ok()?)).collect());
        let name = mount.to_owned();
        let seen = app.desk.act(Surface::System, move |cx| {
            gateway::mount_of(cx, &name)?;
            gateway::seen(cx, &name, &tools)
        });
        let seen = seen.await.map_err(|error| Error::NotStarted { name: mount.to_owned(), why: error.message })?;
        if !seen.waiting.is_empty() {
            tracing::warn!(mount, tools = %seen.waiting.join(", "), "tools are new or have changed; they wait for a person");
        }
        for why in &seen.refused {
            tracing::warn!(mount, why, "a tool is left out");
        }
        Ok(())
    }

    /// Looks again whenever the server says that its tools have changed, as long as the connection is there.
    async fn watch(self, app: App, mount: String, upstream: Weak<Upstream>, mut changes: Receiver<Change>) {
        loop {
            match changes.recv().await {
                Ok(Change::Tools) | Err(RecvError::Lagged(_)) => {}
                Ok(_) => continue,
                Err(RecvError::Closed) => return,
            }
            let Some(upstream) = upstream.upgrade() else { return };
            if let Err(error) = self.look(&app, &mount, &upstream).await {
                tracing::warn!(mount, %error, "what a server offers could not be looked at");
            }
        }
    }

    /// The connection of an agent to a mount, over which everything was looked at, for what is read there besides tools.
    pub(crate) async fn upstream(&self, app: &App, mount: &str, agent: &str) -> deskmate_core::Result<Behind> {
        let (mount, spec) = spec::of(app, mount).await?;
        gateway::may_pass_on(&mount)?;
        let upstream = self.pool().slot(&spec, agent).map_err(|error| error.to_core())?;
        let info = upstream.ready().await.map_err(|error| error.to_core())?;
        self.meet(app, &mount, &upstream, agent, info).await.map_err(|error| error.to_core())?;
        Ok(Behind { cleaner: self.cleaner(&mount, &spec), upstream })
    }

    /// Connects to a mount for whoever wants to see what it offers.
    pub(crate) async fn visit(&self, app: &App, mount: &Mount) -> deskmate_core::Result<FoundMount> {
        let (mount, spec) = spec::of(app, &mount.name).await?;
        let cleaner = self.cleaner(&mount, &spec);
        let started = Instant::now();
        let upstream = self.pool().slot(&spec, DESK).map_err(|error| error.to_core())?;
        // Who asks for a look does not want to hear that it was given up before.
        upstream.retry();
        let told = |error: Error| {
            let mut told = error.to_core();
            let log = upstream.log();
            if let Some(last) = log.last() {
                told.message = format!("{}; it wrote last: {}", told.message, spec.hide(last));
            }
            told
        };
        let info = upstream.ready().await.map_err(told)?;
        let tools = upstream.list_tools().await.map_err(told)?;
        Ok(FoundMount {
            server: cleaner.offered(json!(info.server_info)).unwrap_or_default(),
            protocol: info.protocol_version.to_string(),
            tools: tools.iter().filter_map(|tool| cleaner.offered(serde_json::to_value(tool).ok()?)).collect(),
            micros: i64::try_from(started.elapsed().as_micros()).unwrap_or(i64::MAX),
        })
    }
}
