//! Where what an agent has read came from. Every later act carries it, rules can ask for it, and a person can clear it.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::{Cx, Page};
use crate::limits::{NAME_CHARS_MAX, PAGE_MAX};
use crate::record::{Event, Kind};
use crate::{Error, Result, check_text, format_time};

pub(super) const TAINTED: Kind = Kind { name: "taint.added", says: "An agent read something that nobody vouches for; what it does later carries that." };
pub(super) const CLEARED: Kind = Kind { name: "taint.cleared", says: "A person cleared what an agent had read." };

/// How long something that was read counts, where no session says when it ended.
const KEPT: i64 = 86_400_000_000;
/// How long a session is thought to last at most.
const SESSION_KEPT: i64 = 30 * KEPT;
/// What a held call brings comes to whoever asks for it, and so belongs to every session of its agent for a day.
pub(super) const EVERY: &str = "*";
/// A note of the same origin is renewed no more often than this.
const RENEWED: i64 = 600_000_000;

/// What the sessions of hooks are kept under, apart from connections.
const HOOK: &str = "hook:";

/// The name under which a session of hooks is kept.
#[must_use]
pub fn of_hooks(session: &str) -> String {
    format!("{HOOK}{session}")
}

/// The origins of what the caller has read: in its run or session, or else by itself within a day. The connection of a client
/// does not know which of that client's sessions calls over it, so it carries what all of them have read within a day.
pub fn of_caller(cx: &mut Cx<'_, '_>, session: Option<&str>) -> Result<Vec<String>> {
    if !cx.actor.is_agent() {
        return Ok(Vec::new());
    }
    let (actor, own, since) = (cx.actor.id.clone(), cx.actor.run.clone(), cx.now() - KEPT);
    let Some(within) = own.as_deref().or(session) else { return of_agent(cx, &actor) };
    // Where none of them count, what every session has read is only named a second time.
    let hooks = if own.is_none() && !within.starts_with(HOOK) { "hook:%" } else { EVERY };
    let rows = cx.tx.query(
        "select origin from taint where actor = $1 and (session = $2 or ((session = $4 or session like $5) and at > $3)) group by origin order by origin",
        args![actor, within, since, EVERY, hooks],
    )?;
    rows.iter().map(|row| Ok(row.get(0)?)).collect()
}

/// What any agent has read within a day, wherever it did.
pub fn of_agent(cx: &mut Cx<'_, '_>, agent: &str) -> Result<Vec<String>> {
    let since = cx.now() - KEPT;
    let rows = cx.tx.query("select origin from taint where actor = $1 and at > $2 group by origin order by origin", args![agent, since])?;
    rows.iter().map(|row| Ok(row.get(0)?)).collect()
}

/// What goes with anything that the caller asks for besides calls: what its run has read, or else its connection, however long ago,
/// and all that was read under its credential within a day.
pub fn of_asking(cx: &mut Cx<'_, '_>) -> Result<Vec<String>> {
    let own = of_caller(cx, None)?;
    with_read(cx, own)
}

/// What a caller says of where its inputs came from, with what the desk knows it has read.
pub fn with_read(cx: &mut Cx<'_, '_>, mut said: Vec<String>) -> Result<Vec<String>> {
    let session = cx.session.clone();
    let connection = session.map_or(Ok(Vec::new()), |session| of_caller(cx, Some(&session)))?;
    for origin in of_caller(cx, None)?.into_iter().chain(connection) {
        if !said.contains(&origin) {
            said.push(origin);
        }
    }
    Ok(said)
}

/// Notes that the caller reads something of an origin. It is noted before it is read, so that no act can come in between.
pub fn add(cx: &mut Cx<'_, '_>, session: Option<&str>, origin: &str) -> Result<()> {
    if !cx.actor.is_agent() {
        return Ok(());
    }
    let (actor, own, now) = (cx.actor.id.clone(), cx.actor.run.clone(), cx.now());
    let session = own.as_deref().or(session).unwrap_or_default();
    let known = cx.tx.optional("select at from taint where actor = $1 and session = $2 and origin = $3", args![actor, session, origin])?;
    match known.map(|row| row.get::<i64>(0)).transpose()? {
        Some(at) if now - at < RENEWED => return Ok(()),
        Some(_) => {
            cx.tx.execute("update taint set at = $4 where actor = $1 and session = $2 and origin = $3", args![actor, session, origin, now])?;
            return Ok(());
        }
        None => {}
    }
    cx.tx.execute("insert into taint (actor, session, origin, at) values ($1, $2, $3, $4)", args![actor, session, origin, now])?;
    cx.emit(Event::new(TAINTED, format!("agent:{actor}")).fact("origin", origin))
}

/// Removes what counts no longer. Answers how many rows went.
pub fn prune(cx: &mut Cx<'_, '_>, limit: u32) -> Result<u64> {
    let (cut, session_cut) = (cx.now() - KEPT, cx.now() - SESSION_KEPT);
    let rows = cx.tx.query(
        "select actor, session, origin from taint where at < $1 and (session in ('', '*') or at < $2) order by at, actor, session, origin limit $3",
        args![cut, session_cut, i64::from(limit)],
    )?;
    for row in &rows {
        let (actor, session, origin): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        cx.tx.execute("delete from taint where actor = $1 and session = $2 and origin = $3", args![actor, session, origin])?;
    }
    Ok(rows.len() as u64)
}

/// What agents have read that nobody vouches for, as far as it still counts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListTaint {
    /// Only of this agent.
    agent: Option<String>,
}

/// Something that was read.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct TaintOut {
    /// By which agent.
    agent: String,
    /// In which session; absent where it named none.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// Where it came from.
    origin: String,
    /// When it was noted last.
    at: String,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: ListTaint) -> Result<Page<TaintOut>> {
    let (since, session_since) = (cx.now() - KEPT, cx.now() - SESSION_KEPT);
    let rows = cx.tx.query(
        "select actor, session, origin, at from taint where (at > $1 or (session not in ('', '*') and at > $4)) and ($2 = '' or actor = $2) \
         order by at desc, actor, session, origin limit $3",
        args![since, input.agent.unwrap_or_default(), i64::from(PAGE_MAX), session_since],
    )?;
    let items = rows.iter().map(|row| {
        let session: String = row.get(1)?;
        let session = session.strip_prefix(HOOK).unwrap_or(&session);
        Ok(TaintOut {
            agent: row.get(0)?,
            session: (!session.is_empty() && session != EVERY).then(|| session.to_owned()),
            origin: row.get(2)?,
            at: format_time(row.get(3)?),
        })
    });
    Ok(Page { items: items.collect::<Result<_>>()?, next_cursor: None })
}

/// Clear what an agent has read, because you looked at it: what it does from now on does not carry it any more.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ClearTaint {
    /// The agent.
    agent: String,
    /// Only this origin; all of them if not given.
    origin: Option<String>,
    /// Why it does not count.
    reason: String,
}

/// What was cleared.
#[derive(Serialize, JsonSchema)]
pub(super) struct Cleared {
    /// How many notes.
    cleared: u64,
}

pub(super) fn clear(cx: &mut Cx<'_, '_>, input: ClearTaint) -> Result<Cleared> {
    check_text("agent", &input.agent, NAME_CHARS_MAX)?;
    check_text("reason", &input.reason, crate::limits::NOTE_BYTES_MAX)?;
    if input.reason.trim().is_empty() {
        return Err(Error::invalid("reason", "is needed"));
    }
    let origin = input.origin.clone().unwrap_or_default();
    let cleared = cx.tx.execute("delete from taint where actor = $1 and ($2 = '' or origin = $2)", args![input.agent, origin])?;
    let event = Event::new(CLEARED, format!("agent:{}", input.agent)).fact("cleared", cleared).fact("origin", input.origin);
    cx.emit(event.payload(serde_json::json!({ "reason": input.reason })))?;
    Ok(Cleared { cleared })
}
