//! What changes at an upstream, told in either era: as notifications of the connection in the older one, and over a
//! stream that is opened for it in the newer one.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rmcp::model::{ErrorCode, ServerNotification, SubscriptionFilter};
use rmcp::service::{ServiceError, Subscription};

use super::handler::Change;
use super::link::Link;
use super::slot::Upstream;

/// How long to wait before a stream that ended is opened again; twice as long after each further end.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_mins(2);

/// Follows an upstream as long as its connection lasts.
pub(super) async fn follow(upstream: Weak<Upstream>, link: Arc<Link>) {
    let Some(mut followed) = upstream.upgrade().map(|upstream| upstream.followed.subscribe()) else { return };
    if !link.is_modern() {
        if let Some(upstream) = upstream.upgrade() {
            upstream.resubscribe(&link).await;
        }
        return;
    }
    let mut again = AGAIN;
    let mut stream;
    loop {
        let filter = filter(&link, &followed.borrow_and_update());
        if filter == SubscriptionFilter::default() {
            stream = None;
        } else {
            // The new stream is there before the old one goes, so that nothing is missed between them.
            match link.peer.listen(filter).await {
                Ok(opened) => stream = Some(opened),
                Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => stream = None,
                Err(_) => {
                    tokio::time::sleep(again).await;
                    again = (again * 2).min(AGAIN_MAX);
                    continue;
                }
            }
        }
        let opened = Instant::now();
        let ended = loop {
            tokio::select! {
                changed = followed.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    break false;
                }
                told = next(stream.as_mut()) => match (told, upstream.upgrade()) {
                    (Some(change), Some(upstream)) => upstream.tell([change]),
                    (None, Some(_)) => break true,
                    (_, None) => return,
                },
            }
        };
        if opened.elapsed() > AGAIN_MAX {
            again = AGAIN;
        }
        if ended {
            tokio::time::sleep(again).await;
            again = (again * 2).min(AGAIN_MAX);
            if let Some(upstream) = upstream.upgrade() {
                // What happened meanwhile is not known.
                let resources: Vec<String> = followed.borrow().keys().cloned().collect();
                upstream.tell([Change::Tools, Change::Prompts, Change::Resources].into_iter().chain(resources.into_iter().map(Change::Resource)));
            }
        }
    }
}

/// What is listened for: the lists that may change, as the upstream says, and the resources that somebody follows.
fn filter(link: &Link, followed: &BTreeMap<String, usize>) -> SubscriptionFilter {
    let can = &link.info.capabilities;
    let mut filter = SubscriptionFilter::default();
    filter.tools_list_changed = can.tools.as_ref().and_then(|tools| tools.list_changed).filter(|changes| *changes);
    filter.prompts_list_changed = can.prompts.as_ref().and_then(|prompts| prompts.list_changed).filter(|changes| *changes);
    filter.resources_list_changed = can.resources.as_ref().and_then(|resources| resources.list_changed).filter(|changes| *changes);
    filter.resource_subscriptions = (!followed.is_empty()).then(|| followed.keys().cloned().collect());
    filter
}

/// The next change; `None` when the stream has ended. Without a stream there is none.
async fn next(stream: Option<&mut Subscription>) -> Option<Change> {
    let Some(stream) = stream else { return std::future::pending().await };
    loop {
        match stream.next().await {
            Ok(Some(ServerNotification::ToolListChangedNotification(_))) => return Some(Change::Tools),
            Ok(Some(ServerNotification::PromptListChangedNotification(_))) => return Some(Change::Prompts),
            Ok(Some(ServerNotification::ResourceListChangedNotification(_))) => return Some(Change::Resources),
            Ok(Some(ServerNotification::ResourceUpdatedNotification(updated))) => return Some(Change::Resource(updated.params.uri)),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return None,
        }
    }
}
