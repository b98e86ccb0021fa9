//! The kill switch: an agent, or all of them, answered `deny` until a person lifts it.

use std::collections::BTreeMap;

use deskmate_db::{Row, Tx, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::{Cx, Page, PageIn};
use crate::identity::check_name;
use crate::limits::TITLE_CHARS_MAX;
use crate::record::{Body, Event, Finding, Kind, Projection, differences};
use crate::{Error, Result, check_text, format_time};

/// An agent, or everybody, was paused.
pub(super) const SET: Kind = Kind { name: "pause.set", says: "A person paused an agent, or all of them." };
/// A pause was lifted.
pub(super) const LIFTED: Kind = Kind { name: "pause.lifted", says: "A person let an agent, or all of them, go on." };

/// Stands for all agents.
const ALL: &str = "*";

/// Pause an agent, or all of them: from now on every act of theirs is denied, also ones that were approved and not yet
/// begun. Runs of theirs begin nothing and wait before their next step, and programs of runs are ended. It holds until
/// `desk_resume`, over restarts too.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Pause {
    /// The agent's name.
    agent: Option<String>,
    /// Pause all agents.
    #[serde(default)]
    all: bool,
    /// Why, for the record.
    #[serde(default)]
    reason: String,
}

/// Let an agent, or all of them, go on. Agents that were paused by name stay paused when the pause of all is lifted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Resume {
    /// The agent's name.
    agent: Option<String>,
    /// Lift the pause of all agents.
    #[serde(default)]
    all: bool,
    /// Why, for the record.
    #[serde(default)]
    reason: String,
}

/// How an agent stands now.
#[derive(Serialize, JsonSchema)]
pub(super) struct Paused {
    /// The agent's name, or `*` for all.
    agent: String,
    /// Whether it is paused now, by its name or with all.
    paused: bool,
    /// Whether this call changed anything.
    changed: bool,
}

/// Whom an input means.
fn target(agent: Option<String>, all: bool) -> Result<String> {
    match (agent, all) {
        (Some(agent), false) => {
            check_name("agent", &agent)?;
            Ok(agent)
        }
        (None, true) => Ok(ALL.to_owned()),
        _ => Err(Error::invalid("agent", "name one agent, or say all: true")),
    }
}

pub(super) fn pause(cx: &mut Cx<'_, '_>, input: Pause) -> Result<Paused> {
    let agent = target(input.agent, input.all)?;
    check_text("reason", &input.reason, TITLE_CHARS_MAX)?;
    let (person, now) = (cx.actor.id.clone(), cx.now());
    let changed =
        cx.tx.execute("insert into pause (agent, paused_by, paused_at) values ($1, $2, $3) on conflict (agent) do nothing", args![agent, person, now])?;
    if changed > 0 {
        tell(cx, SET, &agent, &input.reason)?;
    }
    Ok(Paused { agent, paused: true, changed: changed > 0 })
}

pub(super) fn resume(cx: &mut Cx<'_, '_>, input: Resume) -> Result<Paused> {
    let agent = target(input.agent, input.all)?;
    check_text("reason", &input.reason, TITLE_CHARS_MAX)?;
    let changed = cx.tx.execute("delete from pause where agent = $1", args![agent])?;
    if changed > 0 {
        tell(cx, LIFTED, &agent, &input.reason)?;
    }
    let paused = super::paused(cx, &agent)?;
    Ok(Paused { agent, paused, changed: changed > 0 })
}

fn tell(cx: &mut Cx<'_, '_>, kind: Kind, agent: &str, reason: &str) -> Result<()> {
    let person = cx.actor.id.clone();
    let mut event = Event::new(kind, format!("pause:{agent}")).fact("agent", agent).fact("person", person);
    if !reason.is_empty() {
        event = event.payload(json!({ "reason": reason }));
    }
    cx.emit(if agent == ALL { event } else { event.audience([agent]) })
}

/// List who is paused: agents, and `*` for all of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// How many rows; at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// Who is paused.
#[derive(Serialize, JsonSchema)]
pub(super) struct PauseRow {
    /// The agent's name, or `*` for all.
    agent: String,
    /// Who paused it.
    paused_by: String,
    /// Since when.
    paused_at: String,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<Page<PauseRow>> {
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let after = page.after.as_ref().map_or("", |(_, agent)| agent.as_str());
    let rows = cx.tx.query("select agent, paused_by, paused_at from pause where agent > $1 order by agent limit $2", args![after, page.look_ahead()])?;
    let read = |row: &Row| -> Result<PauseRow> { Ok(PauseRow { agent: row.get(0)?, paused_by: row.get(1)?, paused_at: format_time(row.get(2)?) }) };
    let items = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Page::cut(items, &page, |row| (0, row.agent.clone())))
}

/// Who is paused as the record says.
#[derive(Default)]
pub struct PauseProjection {
    paused: BTreeMap<String, (String, i64)>,
}

impl Projection for PauseProjection {
    fn apply(&mut self, _seq: u64, body: &Body) {
        let text = |name: &str| body.facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        if body.kind == SET.name {
            self.paused.insert(text("agent"), (text("person"), body.at));
        } else if body.kind == LIFTED.name {
            self.paused.remove(&text("agent"));
        }
    }

    fn compare(&self, tx: &mut Tx<'_>) -> Result<Vec<Finding>> {
        let (mut stored, mut findings) = (BTreeMap::new(), Vec::new());
        for row in tx.query("select agent, paused_by, paused_at from pause order by agent", &[])? {
            stored.insert(row.get::<String>(0)?, (row.get::<String>(1)?, row.get::<i64>(2)?));
        }
        differences(&self.paused, &stored, |agent| format!("pause {agent}"), &mut findings);
        Ok(findings)
    }
}
