//! Bringing in what another cowork server knew: policies and settings, agents with the hashes of their tokens, scores,
//! and its history, marked as imported. Nothing is taken silently: everything that was taken, changed or refused is in
//! the report, and bringing the same in twice changes nothing.
//!
//! Table: `imported`.

mod configuration;
mod history;
mod report;
mod rows;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::call::{Access, Cx, Op, Role, Toolset};
use crate::limits::IMPORT_ROWS_MAX;
use crate::record::{Event, Kind};
use crate::{Error, Result};

pub use report::{Entry, Outcome, Report};

/// Something was brought in.
pub(crate) const IMPORTED: Kind = Kind { name: "import.done", says: "Policies, agents, scores or history of another cowork server were brought in." };
/// A row of another server's history.
pub(crate) const ROW: Kind = Kind { name: "import.row", says: "A row of another server's history, as it stood there. This desk did not see it happen." };

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[IMPORTED, ROW];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let writes = |input: &Value| input.get("dry_run") != Some(&Value::Bool(true));
    vec![Op::write(Toolset::Desk, "import_cowork", cowork).access(Access::Present(Role::Owner)).idempotent().writes_when(writes)]
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
