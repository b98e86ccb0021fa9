//! What an AgentOS server kept in its data directory: agents, approvals and audit lines. Everything is redacted before it is kept,
//! because that server redacted nothing.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::history::one_line;
use super::report::{Outcome, Report};
use super::{IMPORTED, ROW, is_known, keep};
use crate::agents::{self, ForeignAgent, ForeignApproval};
use crate::call::Cx;
use crate::identity::check_name;
use crate::limits::{CONTENT_BYTES_MAX, IMPORT_ROWS_MAX, NAME_CHARS_MAX, PATH_BYTES_MAX};
use crate::record::Event;
use crate::{Error, Result, check_text, parse_time, redact};

/// Where these rows come from.
const SOURCE: &str = "agentos";

/// Bring in agents, approvals and audit lines of an AgentOS data directory; `deskmate import agentos` reads it and calls this. Agents
/// become drafts, approvals that were still open wait here, audit lines become history. Secrets and personal data are taken out.
/// What is there already stays. With `dry_run` nothing is written and the report says what would be.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Agentos {
    /// Only say what would happen.
    #[serde(default)]
    dry_run: bool,
    /// What was in its files; agents before their approvals.
    rows: Vec<FileRow>,
}

/// What one file, or one line of one, holds.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileRow {
    /// The folder.
    folder: Folder,
    /// The file, and of an audit file the line, for the report.
    file: String,
    /// What it holds.
    row: Map<String, Value>,
}

/// A folder of the data directory.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Folder {
    Agents,
    Approvals,
    Audit,
}

impl Folder {
    fn name(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Approvals => "approvals",
            Self::Audit => "audit",
        }
    }
}

/// What a row became: an id here where it became more than an event, and what was done differently.
struct Became {
    local: Option<String>,
    changed: Vec<String>,
}

pub(super) fn agentos(cx: &mut Cx<'_, '_>, input: Agentos) -> Result<Report> {
    if input.rows.len() > IMPORT_ROWS_MAX {
        return Err(Error::invalid("rows", format!("at most {IMPORT_ROWS_MAX} at once; send the rest with the next call")));
    }
    let mut report = Report::new(input.dry_run);
    for row in input.rows {
        check_text("file", &row.file, PATH_BYTES_MAX)?;
        bring_in(cx, row, &mut report)?;
    }
    if !report.dry_run && report.did_anything() {
        let event = Event::new(IMPORTED, "import:agentos").fact("imported", true).fact("counts", json!(report.counts));
        cx.emit(event.payload(json!({ "entries": report.entries })))?;
    }
    Ok(report)
}

/// Brings in one row. One that cannot be taken is refused alone.
fn bring_in(cx: &mut Cx<'_, '_>, FileRow { folder, file, row }: FileRow, report: &mut Report) -> Result<()> {
    let head = match folder {
        Folder::Agents => row.get("config").and_then(Value::as_object).unwrap_or(&row),
        Folder::Approvals | Folder::Audit => &row,
    };
    let id = match id_of(head, &row) {
        Ok(id) => id,
        Err(why) => {
            report.note(folder.name(), file, Outcome::Refused, Some(why));
            return Ok(());
        }
    };
    if is_known(cx, SOURCE, folder.name(), &id)? {
        report.count(folder.name(), Outcome::Known);
        return Ok(());
    }
    let cleaned = redact::value(&Value::Object(row.clone()));
    let done = match folder {
        Folder::Agents => agent(cx, &id, head, report.dry_run)?,
        Folder::Approvals => approval(cx, &id, &row, report.dry_run)?,
        Folder::Audit => time(&row, "timestamp").map(|_| Became { local: None, changed: Vec::new() }),
    };
    let mut became = match done {
        Ok(became) => became,
        Err(why) => {
            report.note(folder.name(), file, Outcome::Refused, Some(why));
            return Ok(());
        }
    };
    if !cleaned.found.is_empty() {
        let kinds: Vec<String> = cleaned.found.iter().map(|(kind, count)| format!("{count} {}", kind.name())).collect();
        became.changed.push(format!("taken out: {}", kinds.join(", ")));
    }
    let outcome = if became.changed.is_empty() { Outcome::Taken } else { Outcome::Changed };
    match folder {
        Folder::Audit => report.count(folder.name(), outcome),
        _ => report.note(folder.name(), format!("{file} ({id})"), outcome, Some(became.changed.join("; ")).filter(|why| !why.is_empty())),
    }
    if report.dry_run {
        return Ok(());
    }
    keep(cx, SOURCE, folder.name(), &id, became.local.as_deref())?;
    tell(cx, folder, &id, &row, cleaned.value, became.local)
}

/// The id of a row that can be taken: bounded in all it holds.
fn id_of(head: &Map<String, Value>, row: &Map<String, Value>) -> Result<String, String> {
    let id = text(head, "id").ok_or("it has no id")?;
    if id.is_empty() || id.len() > NAME_CHARS_MAX || id.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("its id cannot be used".to_owned());
    }
    let size = Value::Object(row.clone()).to_string().len();
    if size > CONTENT_BYTES_MAX {
        return Err(format!("it is {size} bytes long; at most {CONTENT_BYTES_MAX} are taken"));
    }
    Ok(id.to_owned())
}

fn text<'r>(row: &'r Map<String, Value>, name: &str) -> Option<&'r str> {
    row.get(name).and_then(Value::as_str)
}

fn time(row: &Map<String, Value>, name: &str) -> Result<i64, String> {
    let at = text(row, name).ok_or_else(|| format!("it has no {name}"))?;
    parse_time(name, at).map_err(|error| error.to_string())
}

/// A text without secrets and personal data.
fn clean(row: &Map<String, Value>, name: &str) -> Option<String> {
    text(row, name).map(|text| redact::text(text).text)
}

fn agent(cx: &mut Cx<'_, '_>, id: &str, head: &Map<String, Value>, dry: bool) -> Result<Result<Became, String>> {
    let task = clean(head, "task").or_else(|| clean(head, "description")).filter(|task| !task.trim().is_empty());
    let Some(task) = task else { return Ok(Err("it does not say what it is for (config.task)".to_owned())) };
    let policies = match head.get("policies") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(|name| redact::text(name).text).collect(),
        Some(_) => return Ok(Err("its policies are not a list".to_owned())),
    };
    let foreign = ForeignAgent {
        id: id.to_owned(),
        name: clean(head, "name"),
        task,
        policies,
        schedule: clean(head, "schedule"),
        // What cannot be read as no counts as yes.
        approval_required: !matches!(head.get("approvalRequired"), None | Some(Value::Null | Value::Bool(false))),
        was_deployed: text(head, "status") == Some("deployed"),
        source: SOURCE,
    };
    Ok(agents::bring_in(cx, foreign, dry)?.map(|done| Became { local: Some(done.id), changed: done.changed }))
}

/// An approval that was open there and has not expired waits here; nobody could have decided it there.
fn approval(cx: &mut Cx<'_, '_>, id: &str, row: &Map<String, Value>, dry: bool) -> Result<Result<Became, String>> {
    let history = |why: &str| Ok(Ok(Became { local: None, changed: if why.is_empty() { Vec::new() } else { vec![why.to_owned()] } }));
    if let Err(why) = time(row, "requestedAt") {
        return Ok(Err(why));
    }
    if text(row, "status") != Some("pending") {
        return history("");
    }
    let expires_at = match time(row, "expiresAt") {
        Ok(at) => at,
        Err(why) => return Ok(Err(why)),
    };
    if expires_at <= cx.now() {
        return history("it has expired, so it is history only");
    }
    let foreign = text(row, "agentId").unwrap_or_default();
    let local = cx.tx.optional("select local from imported where source = $1 and kind = 'agents' and foreign_id = $2", args![SOURCE, foreign])?;
    let local: Option<String> = local.map(|row| row.get(0)).transpose()?.flatten();
    let Some(agent) = local.or_else(|| dry.then(|| foreign.to_owned())) else {
        return Ok(Err(format!("its agent {} was not brought in", one_line(foreign))));
    };
    let approvers = row.get("approvers").and_then(Value::as_array).into_iter().flatten();
    let approvers = approvers.filter_map(|one| one.get("email").or(Some(one)).and_then(Value::as_str)).map(str::to_owned).collect();
    let foreign = ForeignApproval {
        id: id.to_owned(),
        agent,
        action: one_line(&clean(row, "action").unwrap_or_default()),
        description: clean(row, "description").unwrap_or_default(),
        risk: text(row, "riskLevel").unwrap_or("high").to_owned(),
        approvers,
        expires_at,
        source: SOURCE,
    };
    Ok(agents::bring_in_approval(cx, foreign, dry)?.map(|done| Became { local: Some(done.id), changed: done.changed }))
}

/// Words of that server that are kinds and not what somebody wrote.
const WORDS: [&str; 15] = [
    "draft",
    "testing",
    "deployed",
    "paused",
    "stopped",
    "error",
    "pending",
    "approved",
    "rejected",
    "expired",
    "cancelled",
    "SUCCESS",
    "FAILURE",
    "BLOCKED",
    "PENDING",
];

/// Tells the record what stood there: kinds, ids and times as facts, everything else as payload, redacted.
fn tell(cx: &mut Cx<'_, '_>, folder: Folder, id: &str, row: &Map<String, Value>, payload: Value, local: Option<String>) -> Result<()> {
    let head = row.get("config").and_then(Value::as_object).unwrap_or(row);
    let at = ["timestamp", "requestedAt", "createdAt"].into_iter().find_map(|name| time(head, name).ok());
    let mut event = Event::new(ROW, format!("imported:{}:{id}", folder.name()))
        .fact("imported", true)
        .fact("source", SOURCE)
        .fact("table", folder.name())
        .fact("id", id)
        .fact("at", at)
        .fact("local", local);
    for name in ["status", "outcome"] {
        if let Some(word) = text(head, name).filter(|word| WORDS.contains(word)) {
            event = event.fact(name, word);
        }
    }
    if let Some(agent) = text(row, "agentId").filter(|agent| check_name("agentId", agent).is_ok()) {
        event = event.fact("agent", agent);
    }
    cx.emit(event.payload(payload))
}
