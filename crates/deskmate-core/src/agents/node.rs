//! The servers of a desk that do runs. One that has a name is a *node*: it offers itself for runs that were deployed with `cloud`, and
//! for those that were deployed on itself. A server is there while it holds the lease `node:NAME`; whoever loses it takes no run any
//! more, and other servers tell that it is gone.

use std::collections::BTreeMap;

use deskmate_db::{Engine, Row, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::place::{self, Place};
use super::{NODE_GONE, NODE_HERE, RUN_JOB};
use crate::call::{Cx, Page, PageIn};
use crate::job::{self, ANYWHERE, Claimed};
use crate::limits::{NODE_KEPT, NODE_LEASE, NODE_NAMELESS_KEPT, NODE_PLACES_MAX};
use crate::record::Event;
use crate::{Code, Error, Result, format_time, identity, lease};

/// The server that a call is done on.
#[derive(Clone, Debug, Default)]
pub struct Server {
    id: String,
    name: Option<String>,
    labels: Vec<String>,
}

impl Server {
    /// A server. `id` is its own while it runs, and holds its lease; with a name it offers itself for runs.
    pub fn new(id: &str, name: Option<&str>, labels: &[String]) -> Result<Self> {
        if let Some(name) = name {
            identity::check_name("name", name)?;
        } else if !labels.is_empty() {
            return Err(Error::invalid("labels", "are for a node, so it needs a name"));
        }
        Ok(Self { id: id.to_owned(), name: name.map(str::to_owned), labels: place::check_labels(labels)? })
    }

    /// Its name, if it offers itself.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Under what it is listed.
    fn listed(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }
}

fn subject(listed: &str) -> String {
    format!("node:{listed}")
}

fn micros(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// A sign of life of this server, with the fence that the one before answered. `None`: another server has its name, or one that
/// had it gave its last sign of life only a short while ago; until that is over this one takes no runs.
pub fn beat(cx: &mut Cx<'_, '_>, fence: Option<i64>) -> Result<Option<i64>> {
    let (server, now) = (cx.server.clone(), cx.now());
    let subject = subject(server.listed());
    if let Some(fence) = fence {
        match lease::renew(cx.tx, &subject, &server.id, fence, None, now) {
            Ok(_) => return Ok(Some(fence)),
            Err(error) if error.code == Code::Conflict => {}
            Err(error) => return Err(error),
        }
    }
    let Some(lease) = lease::acquire(cx.tx, &subject, &server.id, micros(NODE_LEASE), now)? else { return Ok(None) };
    cx.tx.execute(
        "insert into node (name, offers, labels, since) values ($1, $2, $3, $4) \
         on conflict (name) do update set offers = excluded.offers, labels = excluded.labels, since = excluded.since, gone_at = null",
        args![server.listed(), server.name.is_some(), json!(server.labels).to_string(), now],
    )?;
    if let Some(name) = &server.name {
        cx.emit(Event::new(NODE_HERE, subject).fact("node", name.as_str()).payload(json!({ "labels": server.labels })))?;
    }
    Ok(Some(lease.fence))
}

/// This server ends: nobody has to wait for its lease.
pub fn leave(cx: &mut Cx<'_, '_>, fence: i64) -> Result<()> {
    let (server, now) = (cx.server.clone(), cx.now());
    let subject = subject(server.listed());
    if lease::check(cx.tx, &subject, &server.id, Some(fence), now).is_err() {
        return Ok(());
    }
    lease::release(cx.tx, &subject, now)?;
    gone(cx, server.listed(), server.name.is_some(), now)
}

fn gone(cx: &mut Cx<'_, '_>, listed: &str, offers: bool, at: i64) -> Result<()> {
    cx.tx.execute("update node set gone_at = $2 where name = $1", args![listed, at])?;
    if offers {
        cx.emit(Event::new(NODE_GONE, subject(listed)).fact("node", listed))?;
    }
    Ok(())
}

const ALL: &str = "select node.name, offers, labels, since, gone_at, renewed_at, expires_at from node \
     left join lease on subject = 'node:' || node.name where node.name > $1 order by node.name limit $2";

/// A server as it is stored.
struct NodeRow {
    name: String,
    offers: bool,
    labels: Vec<String>,
    since: i64,
    gone_at: Option<i64>,
    seen_at: i64,
    here: bool,
}

impl NodeRow {
    fn read(row: &Row, now: i64) -> Result<Self> {
        let expires_at: Option<i64> = row.get(6)?;
        let since = row.get(3)?;
        Ok(Self {
            name: row.get(0)?,
            offers: row.get(1)?,
            labels: serde_json::from_str(&row.get::<String>(2)?).unwrap_or_default(),
            since,
            gone_at: row.get(4)?,
            seen_at: row.get::<Option<i64>>(5)?.unwrap_or(since),
            here: expires_at.is_some_and(|at| at > now),
        })
    }
}

/// Every server that is known, in slices: there are as many as machines, and those that are long gone are forgotten.
fn all(cx: &mut Cx<'_, '_>) -> Result<Vec<NodeRow>> {
    let (now, mut found, mut after) = (cx.now(), Vec::<NodeRow>::new(), String::new());
    loop {
        let rows = cx.tx.query(ALL, args![after, 500])?;
        for row in &rows {
            found.push(NodeRow::read(row, now)?);
        }
        match found.last() {
            Some(last) if rows.len() == 500 => after.clone_from(&last.name),
            _ => return Ok(found),
        }
    }
}

impl NodeRow {
    /// Whether it was gone for so long that nobody asks for it any more.
    fn is_forgotten(&self, now: i64) -> bool {
        let kept = micros(if self.offers { NODE_KEPT } else { NODE_NAMELESS_KEPT });
        !self.here && self.gone_at.is_some_and(|at| now.saturating_sub(at) > kept)
    }

    /// Whether it gave no sign of life, and nobody has told so yet.
    fn is_lost(&self) -> bool {
        !self.here && self.gone_at.is_none()
    }
}

/// Whether there is anything for [`sweep`].
pub fn is_due(cx: &mut Cx<'_, '_>) -> Result<bool> {
    let now = cx.now();
    Ok(all(cx)?.iter().any(|node| node.is_lost() || node.is_forgotten(now)))
}

/// Tells of servers that gave no sign of life, and forgets those that are gone for long.
pub fn sweep(cx: &mut Cx<'_, '_>) -> Result<()> {
    let now = cx.now();
    for node in all(cx)? {
        if node.is_lost() {
            gone(cx, &node.name, node.offers, now)?;
        } else if node.is_forgotten(now) {
            cx.tx.execute("delete from node where name = $1", args![node.name])?;
            lease::forget(cx.tx, &subject(&node.name))?;
        }
    }
    Ok(())
}

/// The places whose runs this server may do now. A look, outside of the transaction that takes them.
pub fn places(cx: &mut Cx<'_, '_>) -> Result<Vec<String>> {
    let server = cx.server.clone();
    let Some(name) = server.name() else { return Ok(vec![ANYWHERE.to_owned()]) };
    let waiting = job::waiting_places(cx, RUN_JOB, NODE_PLACES_MAX)?;
    let mut places: Vec<String> = waiting.into_iter().filter(|place| Place::read(place).is_for(name, &server.labels)).collect();
    // What was deployed on servers without a name is theirs; where there are none any more, somebody has to do it.
    let since = cx.now().saturating_sub(micros(NODE_NAMELESS_KEPT));
    if !all(cx)?.iter().any(|node| !node.offers && node.seen_at > since) {
        places.push(ANYWHERE.to_owned());
    }
    Ok(places)
}

/// Takes runs that are due at these places, if this server still holds its lease.
pub fn claim_runs(cx: &mut Cx<'_, '_>, fence: i64, worker: &str, places: &[String], ttl_us: i64, limit: u32) -> Result<Vec<Claimed>> {
    let (server, now) = (cx.server.clone(), cx.now());
    lease::check(cx.tx, &subject(server.listed()), &server.id, Some(fence), now)?;
    job::claim_at(cx, worker, &[RUN_JOB], places, ttl_us, limit)
}

/// What runs of a place wait for, if there is nobody who could do them now.
pub(super) fn missing(cx: &mut Cx<'_, '_>, place: &Place) -> Result<Option<String>> {
    if *place == Place::Anywhere {
        return Ok(None);
    }
    let nodes: Vec<NodeRow> = all(cx)?.into_iter().filter(|node| node.offers).collect();
    if nodes.iter().any(|node| node.here && place.is_for(&node.name, &node.labels)) {
        return Ok(None);
    }
    if let Place::Node(name) = place {
        let since = nodes.iter().find(|node| node.name == *name).map(|node| format!(" since {}", format_time(node.gone_at.unwrap_or(node.seen_at))));
        let gone = since.map_or_else(|| "which is not there".to_owned(), |since| format!("which is gone{since}"));
        return Ok(Some(format!("the node {name}, {gone}; start it again, or stop the agent and deploy it elsewhere")));
    }
    let here: Vec<String> = nodes.iter().filter(|node| node.here).map(|node| format!("{} ({})", node.name, node.labels.join(", "))).collect();
    let here = if here.is_empty() { "no node is there now".to_owned() } else { format!("there are {}", here.join(", ")) };
    let (wanted, how) = match place.labels() {
        [] => ("a node that offers itself".to_owned(), String::new()),
        labels => (format!("a node with the labels {}", labels.join(", ")), format!(" --node-labels {}", labels.join(","))),
    };
    Ok(Some(format!("{wanted}; {here}. `deskmate up --node NAME{how}` on this desk's database starts one")))
}

/// The nodes of this desk: servers that offer themselves for runs of agents that are deployed with `cloud`, with their labels, and
/// whether each is there or gone.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListNodes {
    /// How many; at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of nodes.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Nodes {
    /// The nodes, by name.
    nodes: Vec<NodeOut>,
    /// How many servers without a name are there; they do what is deployed on any of them.
    servers: usize,
    /// The node that answers this, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    this_node: Option<String>,
    /// How to get one, where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(rename = "next_cursor", skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A node.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeOut {
    /// Its name.
    name: String,
    /// Whether it is there; if not, it is gone: it ended, or gave no sign of life.
    here: bool,
    /// What it has, as runs ask for it.
    labels: Vec<String>,
    /// How many runs are under way on it.
    runs: i64,
    /// Since when it is there, or was the last time.
    since: String,
    /// Its last sign of life.
    last_seen: String,
    /// When it was told as gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    gone_at: Option<String>,
}

const UNDER_WAY: &str = "select node, count(*) from agent_run where node is not null and finished_at is null group by node order by node";

/// All nodes that offer themselves, or did, by name.
pub(crate) fn listed(cx: &mut Cx<'_, '_>) -> Result<Vec<NodeOut>> {
    let mut runs = BTreeMap::new();
    for row in cx.tx.query(UNDER_WAY, &[])? {
        runs.insert(row.get::<String>(0)?, row.get::<i64>(1)?);
    }
    let out = |node: NodeRow| NodeOut {
        runs: runs.get(&node.name).copied().unwrap_or(0),
        here: node.here,
        labels: node.labels,
        since: format_time(node.since),
        last_seen: format_time(node.seen_at),
        gone_at: node.gone_at.filter(|_| !node.here).map(format_time),
        name: node.name,
    };
    let mut nodes: Vec<NodeOut> = all(cx)?.into_iter().filter(|node| node.offers).map(out).collect();
    nodes.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(nodes)
}

const HOW: &str = "No node is there: a server is one when it is started with a name, such as `deskmate up --node east-1 --node-labels gpu,eu`, on the \
     same PostgreSQL database.";
const ALONE: &str = "This desk is on SQLite and has one server, so there are no nodes; with PostgreSQL further servers can offer themselves.";

pub(super) fn list(cx: &mut Cx<'_, '_>, input: ListNodes) -> Result<Nodes> {
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let after = page.after.clone().map(|(_, name)| name).unwrap_or_default();
    let servers = all(cx)?.iter().filter(|node| !node.offers && node.here).count();
    let nodes: Vec<NodeOut> = listed(cx)?.into_iter().filter(|node| node.name > after).collect();
    let message = match cx.tx.engine() {
        Engine::Sqlite => Some(ALONE),
        Engine::Postgres => (!nodes.iter().any(|node| node.here) && after.is_empty()).then_some(HOW),
    };
    let nodes: Vec<NodeOut> = nodes.into_iter().take(page.look_ahead() as usize).collect();
    let page = Page::cut(nodes, &page, |node| (0, node.name.clone()));
    Ok(Nodes { nodes: page.items, servers, this_node: cx.server.name().map(str::to_owned), message, next_cursor: page.next_cursor })
}
