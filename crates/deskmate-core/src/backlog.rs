//! What waits on the desk, in numbers: for whoever watches over it. Every number is read along an index of what waits, so
//! the cost does not grow with what happened before.

use std::collections::BTreeMap;

use deskmate_db::{Engine, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Cx;
use crate::request::RequestKind;
use crate::{Result, job, record};

const PENDING: &str = "select count(*) from request where kind = $1 and state = 'pending'";
const WAITING: &str = "select count(*) from job where state = 'waiting'";
const RUNNING: &str = "select count(*) from job where state = 'running'";
const UNSEALED: &str = "select count(*) from event_staged";

/// The statements whose cost must not grow with what the tables hold: a test reads their plans on both engines.
#[doc(hidden)]
pub const INDEXED: &[&str] = &[PENDING, WAITING, RUNNING];

/// Count what waits: requests by kind, jobs by state, and events that are not sealed yet.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetBacklog {}

/// What waits, in numbers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Backlog {
    /// How many requests of each kind wait for people.
    pub requests_pending: BTreeMap<String, i64>,
    /// How many jobs are `waiting` or `running`.
    pub jobs: BTreeMap<String, i64>,
    /// How many events the sealed record has.
    pub events: u64,
    /// How many events wait to be sealed; with SQLite there are never any.
    pub events_unsealed: i64,
}

pub(crate) fn backlog(cx: &mut Cx<'_, '_>, _: GetBacklog) -> Result<Backlog> {
    let mut requests_pending = BTreeMap::new();
    for kind in RequestKind::ALL {
        requests_pending.insert(kind.name().to_owned(), cx.tx.one(PENDING, args![kind.name()])?.get(0)?);
    }
    let mut jobs = BTreeMap::new();
    for (state, sql) in [(job::State::Waiting, WAITING), (job::State::Running, RUNNING)] {
        jobs.insert(state.name().to_owned(), cx.tx.one(sql, &[])?.get(0)?);
    }
    let events_unsealed = match cx.tx.engine() {
        Engine::Sqlite => 0,
        Engine::Postgres => cx.tx.one(UNSEALED, &[])?.get(0)?,
    };
    Ok(Backlog { requests_pending, jobs, events: record::size(cx.tx)?, events_unsealed })
}
