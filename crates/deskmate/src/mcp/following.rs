//! Telling the clients of one server behind the desk what changes there: its lists, and the resources that they follow. A mount that
//! is reached otherwise now, or was taken away and came back, is followed on.

use std::sync::Arc;
use std::time::Duration;

use deskmate_core::call::{Credential, Surface};
use deskmate_core::gateway::{self, ReadKind, Reading};
use deskmate_core::{Code, Result};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};

use super::handler::Server;
use super::passage::{self, LIST};
use crate::app::App;
use crate::front::{Following, Sink, wants};
use crate::gateway::Behind;
use crate::upstream::{Change, Upstream};

/// How long to wait before a mount that ended is looked for again; twice as long after each time, up to the second.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_mins(1);

/// A client that follows one server.
pub(super) struct Follower {
    app: App,
    mount: String,
    credential: Credential,
    session: Option<Arc<str>>,
    sink: Sink,
}

impl Follower {
    pub(super) fn new(server: &Server, mount: &str, credential: Credential, sink: Sink) -> Self {
        Self { app: server.endpoint.app.clone(), mount: mount.to_owned(), credential, session: server.session.clone(), sink }
    }

    /// Who follows, if they may still.
    async fn who(&self) -> Result<String> {
        let (desk, credential) = (self.app.desk.clone(), self.credential.clone());
        Ok(self.app.desk.db.read(move |tx| desk.admit(tx, &credential, LIST)).await?.id)
    }

    /// Whether the client may be told of a change, as things stand.
    async fn may(&self, change: &Change) -> Result<()> {
        let Change::Resource(uri) = change else { return self.who().await.map(drop) };
        let (desk, credential, mount, session) = (self.app.desk.clone(), self.credential.clone(), self.mount.clone(), self.session.clone());
        let reading = followed(uri);
        let may = self.app.desk.db.read(move |tx| {
            let actor = desk.admit(tx, &credential, LIST)?;
            gateway::may_read(&mut desk.cx(tx, actor, Surface::Mcp), &mount, &reading, session.as_deref())
        });
        may.await
    }

    /// Tells of a change. `false` when the client is gone, or may not know any more.
    async fn tell(&self, change: &Change) -> bool {
        match self.may(change).await {
            Ok(()) => self.sink.tell(change).await,
            Err(error) => match error.code {
                // The store is away: nobody is turned away because of that.
                Code::Unavailable | Code::Limited | Code::Internal => self.sink.tell(change).await,
                // The mount is switched off: it is followed on when it is back.
                Code::NotFound => true,
                // Told once more, so that it reads and learns why.
                Code::Forbidden => {
                    self.sink.tell(change).await;
                    false
                }
                _ => false,
            },
        }
    }

    async fn begin(&self, uris: Vec<String>) -> Result<Following> {
        let who = self.who().await?;
        let Behind { upstream, .. } = self.app.gateway.upstream(&self.app, &self.mount, &who).await?;
        Following::begin(&upstream, uris).await.map_err(|error| error.to_core())
    }

    /// Tells what changes, of what is wanted, until the client is gone.
    async fn follow(self, mut following: Following, wanted: impl Fn(&Change) -> bool) {
        loop {
            let hold = following.upstream().hold();
            while let Some(change) = following.next().await {
                if wanted(&change) && !self.tell(&change).await {
                    return;
                }
            }
            drop(hold);
            let uris = following.uris().to_vec();
            let mut again = AGAIN;
            following = loop {
                tokio::time::sleep(again).await;
                match self.begin(uris.clone()).await {
                    Ok(following) => break following,
                    Err(error) if matches!(error.code, Code::Unauthenticated | Code::Forbidden) => return,
                    Err(_) => again = (again * 2).min(AGAIN_MAX),
                }
            };
            // What happened meanwhile is not known.
            for change in following.everything().filter(|change| wanted(change)) {
                if !self.tell(&change).await {
                    return;
                }
            }
        }
    }

    /// Tells a client of the older era when the server has other prompts or resources. It keeps no connection for that: one that
    /// is made anew is told of as changed.
    pub(super) async fn follow_lists(self) {
        let Ok(who) = self.who().await else { return };
        let mut is_other = false;
        loop {
            let found = self.app.gateway.pool().find(&self.mount, &who);
            if let Some(upstream) = found
                && let Ok(mut following) = Following::begin(&upstream, Vec::new()).await
            {
                let mut due: Vec<Change> = if is_other { following.everything().collect() } else { Vec::new() };
                loop {
                    for change in due.drain(..).filter(|change| declares(&upstream, change)) {
                        if !self.tell(&change).await {
                            return;
                        }
                    }
                    match following.next().await {
                        Some(change) => due.push(change),
                        None => break,
                    }
                }
                is_other = true;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

/// Whether a change is of a list that the server said may change. Tools are told of when those that are there for a caller do.
fn declares(upstream: &Upstream, change: &Change) -> bool {
    let Some(info) = upstream.info() else { return false };
    match change {
        Change::Prompts => info.capabilities.prompts.as_ref().is_some_and(|prompts| prompts.list_changed == Some(true)),
        Change::Resources => info.capabilities.resources.as_ref().is_some_and(|resources| resources.list_changed == Some(true)),
        Change::Tools | Change::Resource(_) => false,
    }
}

/// What is asked of a server by following a resource.
fn followed(uri: &str) -> Reading {
    Reading::plain(ReadKind::Subscription, uri)
}

/// Follows a resource for a client of the older era, over its connection.
pub(super) async fn subscribe(server: &Server, mount: &str, uri: String, context: &RequestContext<RoleServer>) -> std::result::Result<bool, ErrorData> {
    let Behind { upstream, cleaner } = passage::ask_of(server, mount, followed(&uri), context).await?;
    let following = Following::begin(&upstream, vec![uri.clone()]).await.map_err(|error| cleaner.fault(&error))?;
    let follower = Follower::new(server, mount, server.caller.credential(context), Sink::Connection(context.peer.clone()));
    Ok(server.followed.start(uri, follower.follow(following, |change| matches!(change, Change::Resource(_)))))
}

/// Tells a client of the newer era what changes: the server's lists and resources.
pub(super) async fn listen(server: &Server, mount: &str, context: SubscriptionContext) -> std::result::Result<(), ErrorData> {
    let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
    for uri in &uris {
        passage::allowed(server, mount, followed(uri), context.request_context()).await?;
    }
    let Behind { upstream, cleaner } = passage::behind(server, mount, context.request_context()).await?;
    let credential = server.caller.credential(context.request_context());
    let _place = server.place(&credential).await?;
    let _tools = passage::tools_follower(server, &credential, &context);
    let filter = context.accepted().clone();
    let following = Following::begin(&upstream, uris).await.map_err(|error| cleaner.fault(&error))?;
    let follower = Follower::new(server, mount, credential, Sink::Listen(context.sink().clone()));
    // Of tools a client is told by whoever knows which of them are there for it.
    let wanted = move |change: &Change| *change != Change::Tools && wants(&filter, change);
    tokio::select! {
        () = context.cancelled() => {}
        () = follower.follow(following, wanted) => {}
    }
    Ok(())
}
