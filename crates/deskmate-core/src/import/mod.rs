//! Bringing in what another cowork server knew (policies and settings, agents with the hashes of their tokens, scores,
//! and its history), and what an AgentOS server kept (agents, approvals and its audit), marked as imported. Nothing is taken silently: everything that was taken, changed or refused is in
//! the report, and bringing the same in twice changes nothing.
//!
//! Table: `imported`.

mod agentos;
mod configuration;
mod history;
mod report;
mod rows;

use deskmate_db::args;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::call::{Access, Cx, Op, Role, Toolset};
use crate::limits::IMPORT_ROWS_MAX;
use crate::record::{Event, Kind};
use crate::{Error, Result};

pub use report::{Entry, Outcome, Report, SoFar};

/// Something was brought in.
pub(crate) const IMPORTED: Kind = Kind { name: "import.done", says: "Policies, agents, approvals, scores or history of another server were brought in." };
/// A row of another server's history.
pub(crate) const ROW: Kind = Kind { name: "import.row", says: "A row of another server's history, as it stood there. This desk did not see it happen." };

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[IMPORTED, ROW];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let writes = |input: &Value| input.get("dry_run") != Some(&Value::Bool(true));
    let owner = Access::Present(Role::Owner);
    vec![
        Op::write(Toolset::Desk, "import_agentos", agentos::agentos).access(owner).idempotent().writes_when(writes),
        Op::write(Toolset::Desk, "import_cowork", cowork).access(owner).idempotent().writes_when(writes),
    ]
}

/// Whether a row of another system was brought in before.
fn is_known(cx: &mut Cx<'_, '_>, source: &str, kind: &str, id: &str) -> Result<bool> {
    Ok(cx.tx.optional("select kind from imported where source = $1 and kind = $2 and foreign_id = $3", args![source, kind, id])?.is_some())
}

/// Keeps that it was, and what it became here.
fn keep(cx: &mut Cx<'_, '_>, source: &str, kind: &str, id: &str, local: Option<&str>) -> Result<()> {
    let now = cx.now();
    cx.tx.execute("insert into imported (source, kind, foreign_id, local, imported_at) values ($1, $2, $3, $4, $5)", args![source, kind, id, local, now])?;
    Ok(())
}

/// Bring in what a cowork server kept in its configuration and its database; `deskmate import cowork` reads both and
/// calls this. What is there already stays. With `dry_run` nothing is written and the report says what would be.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cowork {
    /// Only say what would happen.
    #[serde(default)]
    dry_run: bool,
    /// Policies, mappings and settings, as they would stand in `deskmate.yaml`. They are put beside what is in force.
    document: Option<String>,
    /// Agents.
    #[serde(default)]
    agents: Vec<AgentIn>,
    /// Rows of the tables `trust_scores`, `actions`, `proposals`, `overrides`, `handoffs` and `timeline`.
    #[serde(default)]
    rows: Vec<RowIn>,
    /// What the report of the call before said under this name, where a dry run takes several calls.
    #[serde(default)]
    so_far: SoFar,
}

/// An agent of the other server.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentIn {
    /// Its id.
    agent: String,
    /// The SHA-256 of its token in hexadecimal digits. The token itself is never sent.
    token_hash: Option<String>,
}

/// A row of the other server's database.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RowIn {
    /// Its table.
    table: rows::Table,
    /// Its columns.
    row: Map<String, Value>,
}

fn cowork(cx: &mut Cx<'_, '_>, input: Cowork) -> Result<Report> {
    if input.rows.len() > IMPORT_ROWS_MAX || input.agents.len() > IMPORT_ROWS_MAX {
        return Err(Error::invalid("rows", format!("at most {IMPORT_ROWS_MAX} at once; send the rest with the next call")));
    }
    let mut report = Report::new(input.dry_run);
    if input.dry_run {
        report.so_far = input.so_far;
    }
    if let Some(document) = &input.document {
        configuration::bring_in(cx, document, &mut report)?;
    }
    for agent in input.agents {
        configuration::agent(cx, &agent.agent, agent.token_hash.as_deref(), &mut report)?;
    }
    for RowIn { table, row } in input.rows {
        history::bring_in(cx, table, row, &mut report)?;
    }
    if !report.dry_run && report.did_anything() {
        let event = Event::new(IMPORTED, "import:cowork").fact("imported", true).fact("counts", json!(report.counts));
        cx.emit(event.payload(json!({ "entries": report.entries })))?;
    }
    Ok(report)
}
