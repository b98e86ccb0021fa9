//! Into the queue and out of it: enqueueing in the caller's transaction, and claiming under a lease.

use std::collections::BTreeSet;
use std::time::Duration;

use deskmate_db::{Engine, args};

use super::events::{ENQUEUED, STARTED, about, tell};
use super::model::{Claimed, Enqueued, NewJob, Owner, Priority, State};
use super::rows::{self, find, find_unique, from_text, to_text};
use crate::call::Cx;
use crate::limits::{
    CONTENT_BYTES_MAX, INPUT_BYTES_MAX, JOB_AHEAD_MAX, JOB_ATTEMPTS_MAX, JOB_PERIOD_MIN, JOB_SLICE_MAX, LEASE_MAX, LEASE_MIN, NAME_CHARS_MAX, TITLE_CHARS_MAX,
};
use crate::{Error, Result, check_text, lease};

/// Puts a job into the queue, with whatever else the caller's transaction does. A key that is taken by a job that waits
/// or runs answers that job.
pub fn enqueue(cx: &mut Cx<'_, '_>, new: NewJob) -> Result<Enqueued> {
    let input = check(cx.now(), &new)?;
    if let Some(key) = &new.unique_key
        && let Some(job) = find_unique(cx, &new.kind, key)?
    {
        return Ok(Enqueued { job, created: false });
    }
    let (id, now) = (cx.new_id(), cx.now());
    let owner = new.owner.unwrap_or_else(|| Owner::from(&cx.actor));
    let run_at = new.run_at.unwrap_or(now);
    cx.tx.execute(
        "insert into job (id, kind, state, priority, run_at, unique_key, owner_kind, owner, if_lost, attempt, attempts_max, cancel_requested, \
         created_at, updated_at, input, place) values ($1, $2, 'waiting', $3, $4, $5, $6, $7, $8, 0, $9, false, $10, $10, $11, $12)",
        args![
            id,
            new.kind,
            new.priority.rank(),
            run_at,
            new.unique_key,
            owner.kind.name(),
            owner.id,
            new.if_lost.name(),
            new.attempts_max,
            now,
            input,
            new.place
        ],
    )?;
    let event = about(ENQUEUED, &id, &new.kind, &owner)
        .fact("state", State::Waiting.name())
        .fact("attempt", 0)
        .fact("attempts_max", new.attempts_max)
        .fact("run_at", run_at)
        .fact("owner_kind", owner.kind.name())
        .fact("owner", owner.id.as_str());
    cx.emit(event)?;
    Ok(Enqueued { job: id, created: true })
}

/// Refuses what the queue does not take; answers the input as it is stored.
fn check(now: i64, new: &NewJob) -> Result<String> {
    let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    if new.kind.is_empty() || new.kind.len() > NAME_CHARS_MAX || !new.kind.chars().all(named) {
        return Err(Error::invalid("kind", format!("must be 1 to {NAME_CHARS_MAX} lower-case letters, digits, dots, dashes or underscores")));
    }
    if let Some(key) = &new.unique_key {
        // An empty key would make one job of all that forgot to name one.
        if key.is_empty() {
            return Err(Error::invalid("unique_key", "must not be empty"));
        }
        check_text("unique_key", key, TITLE_CHARS_MAX)?;
    }
    if !(1..=JOB_ATTEMPTS_MAX).contains(&new.attempts_max) {
        return Err(Error::invalid("attempts_max", format!("must be between 1 and {JOB_ATTEMPTS_MAX}")));
    }
    if new.run_at.is_some_and(|run_at| run_at < 0 || run_at > now.saturating_add(micros(JOB_AHEAD_MAX))) {
        return Err(Error::invalid("run_at", "must be a moment since 1970 and at most ten years ahead"));
    }
    check_text("place", &new.place, CONTENT_BYTES_MAX)?;
    if let Some(owner) = &new.owner {
        check_text("owner", &owner.id, TITLE_CHARS_MAX)?;
    }
    to_text("input", &new.input, INPUT_BYTES_MAX)
}

/// Sees to it that the next run of periodic work is in the queue, once. Runs stand on a grid of `every_us` since 1970, so
/// that they neither drift nor begin anew with every start; after a pause, one that is overdue runs once.
pub fn ensure_scheduled(cx: &mut Cx<'_, '_>, kind: &str, key: &str, every_us: i64) -> Result<Enqueued> {
    if every_us < micros(JOB_PERIOD_MIN) || every_us > micros(JOB_AHEAD_MAX) {
        return Err(Error::invalid("every_us", "must be between one second and ten years"));
    }
    let next = cx.now().div_euclid(every_us).saturating_add(1).saturating_mul(every_us);
    let owner = Owner::from(&crate::call::Actor::system());
    enqueue(
        cx,
        NewJob {
            priority: Priority::Background,
            run_at: Some(next),
            unique_key: Some(key.to_owned()),
            owner: Some(owner),
            ..NewJob::new(kind, serde_json::json!({ "key": key, "every_us": every_us }))
        },
    )
}

/// The place of jobs that may be done anywhere.
pub const ANYWHERE: &str = "";

// Each priority alone, so that it is the first entry of an index that is read, and not all of them.
pub(super) const NEXT_DUE: &str = "select min(due) from (\
     select min(run_at) as due from job where state = 'waiting' and kind = $1 and place = $2 and priority = 0 \
     union all select min(run_at) from job where state = 'waiting' and kind = $1 and place = $2 and priority = 1 \
     union all select min(run_at) from job where state = 'waiting' and kind = $1 and place = $2 and priority = 2) each";

/// When the next job of these kinds at these places is due, in the past or in the future: a worker with nothing to do looks for that.
pub fn next_due(cx: &mut Cx<'_, '_>, kinds: &[&str], places: &[String]) -> Result<Option<i64>> {
    let mut next: Option<i64> = None;
    for (kind, place) in kinds.iter().flat_map(|kind| places.iter().map(move |place| (kind, place))) {
        let due: Option<i64> = cx.tx.one(NEXT_DUE, args![kind, place])?.get(0)?;
        next = [next, due].into_iter().flatten().min();
    }
    Ok(next)
}

pub(super) const NEXT_PLACE: &str = "select place from job where state = 'waiting' and kind = $1 and place > $2 order by place limit 1";

/// The places besides [`ANYWHERE`] at which jobs of a kind wait, at most so many. It goes from one place to the next, however many
/// jobs wait at each.
pub fn waiting_places(cx: &mut Cx<'_, '_>, kind: &str, most: usize) -> Result<Vec<String>> {
    let (mut found, mut after) = (Vec::new(), String::new());
    while found.len() < most {
        let Some(row) = cx.tx.optional(NEXT_PLACE, args![kind, after])? else { break };
        after = row.get(0)?;
        found.push(after.clone());
    }
    Ok(found)
}

// Two texts, because on PostgreSQL the nodes of a desk claim at the same time: each passes over the rows that another is
// just taking, where waiting for them would end in a conflict. SQLite has one writer and does not know the clause.
pub(super) const DUE_SQLITE: &str = "select id, run_at from job where state = 'waiting' and kind = $1 and place = $2 and priority = $3 \
     and run_at <= $4 order by run_at, id limit $5";
const DUE_POSTGRES: &str = "select id, run_at from job where state = 'waiting' and kind = $1 and place = $2 and priority = $3 \
     and run_at <= $4 order by run_at, id limit $5 for update skip locked";

/// Takes due jobs of some kinds that may be done anywhere; see [`claim_at`].
pub fn claim(cx: &mut Cx<'_, '_>, worker: &str, kinds: &[&str], ttl_us: i64, limit: u32) -> Result<Vec<Claimed>> {
    claim_at(cx, worker, kinds, &[ANYWHERE.to_owned()], ttl_us, limit)
}

/// Takes due jobs of some kinds at some places: the most urgent first, then those that are due longest. Each is running, under a
/// lease of `ttl_us` for this worker, when this is committed.
pub fn claim_at(cx: &mut Cx<'_, '_>, worker: &str, kinds: &[&str], places: &[String], ttl_us: i64, limit: u32) -> Result<Vec<Claimed>> {
    check_text("worker", worker, TITLE_CHARS_MAX)?;
    if worker.is_empty() {
        return Err(Error::invalid("worker", "must not be empty"));
    }
    if ttl_us < micros(LEASE_MIN) || ttl_us > micros(LEASE_MAX) {
        return Err(Error::invalid("ttl_us", format!("must be between {} s and {} s", LEASE_MIN.as_secs(), LEASE_MAX.as_secs())));
    }
    let limit = limit.min(JOB_SLICE_MAX) as usize;
    // The one look of an idle worker.
    if next_due(cx, kinds, places)?.is_none_or(|due| due > cx.now()) {
        return Ok(Vec::new());
    }
    let kinds: BTreeSet<&str> = kinds.iter().copied().collect();
    let mut claimed = Vec::new();
    for priority in Priority::ALL {
        for job in due(cx, &kinds, places, priority, limit.saturating_sub(claimed.len()))? {
            claimed.extend(start(cx, &job, worker, ttl_us)?);
        }
        if claimed.len() >= limit {
            break;
        }
    }
    Ok(claimed)
}

/// The ids of due jobs of one priority, in the order in which they run.
fn due(cx: &mut Cx<'_, '_>, kinds: &BTreeSet<&str>, places: &[String], priority: Priority, limit: usize) -> Result<Vec<String>> {
    let now = cx.now();
    let sql = match cx.tx.engine() {
        Engine::Sqlite => DUE_SQLITE,
        Engine::Postgres => DUE_POSTGRES,
    };
    let mut found: Vec<(i64, String)> = Vec::new();
    for (kind, place) in kinds.iter().flat_map(|kind| places.iter().map(move |place| (kind, place))) {
        for row in cx.tx.query(sql, args![kind, place, priority.rank(), now, i64::try_from(limit).unwrap_or(0)])? {
            found.push((row.get(1)?, row.get(0)?));
        }
    }
    found.sort_unstable();
    Ok(found.into_iter().take(limit).map(|(_, id)| id).collect())
}

/// Makes one job running under a lease. `None`: somebody still holds a lease on it, and then it is not ours to run.
fn start(cx: &mut Cx<'_, '_>, job: &str, worker: &str, ttl_us: i64) -> Result<Option<Claimed>> {
    let now = cx.now();
    let Some(lease) = lease::acquire(cx.tx, &rows::subject(job), worker, ttl_us, now)? else { return Ok(None) };
    let texts = cx.tx.optional(
        "update job set state = 'running', attempt = attempt + 1, updated_at = $2 where id = $1 and state = 'waiting' returning input, step",
        args![job, now],
    )?;
    let (Some(texts), Some(row)) = (texts, find(cx, job)?) else {
        return Err(Error::conflict("the job was taken meanwhile"));
    };
    cx.tx.execute(
        "insert into job_attempt (job, number, worker, fence, started_at) values ($1, $2, $3, $4, $5)",
        args![job, row.attempt, worker, lease.fence, now],
    )?;
    tell(cx, STARTED, &row, State::Running, |event| event.fact("fence", lease.fence))?;
    let step: Option<String> = texts.get(1)?;
    Ok(Some(Claimed {
        input: from_text(&texts.get::<String>(0)?)?,
        step: step.map(|step| from_text(&step)).transpose()?,
        attempt: row.attempt,
        attempts_max: row.attempts_max,
        fence: lease.fence,
        expires_at: lease.expires_at,
        cancel_requested: row.cancel_requested,
        job: row.id,
        kind: row.kind,
    }))
}

pub(super) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
