//! An agent's log as a file, and the proof that what it says is what was sealed.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::audit::{self, AuditLog, Entry};
use crate::call::Cx;
use crate::limits::{AUDIT_LOG_MAX, AUDIT_VERIFY_MAX};
use crate::record::{self, Body, Finding};
use crate::{Error, Result, csv_cell, format_time};

/// The form of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Form {
    /// A line for each event.
    Csv,
    /// A JSON object on each line.
    JsonLines,
}

/// Get what the record tells of an agent as a file, newest first, up to 1,000 events at a time. For the whole record with all its proofs:
/// `deskmate audit export`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExportAudit {
    /// The agent's id or name.
    agent_id: String,
    /// The form.
    format: Form,
    /// Only what happened at this moment or later, for example `2026-11-15T09:30:00Z`.
    start_time: Option<String>,
    /// Only what happened before this moment.
    end_time: Option<String>,
    /// Only actions with this text in their name, tool, verb or domain, in capitals or not.
    action_filter: Option<String>,
    /// Where the previous file ended.
    cursor: Option<String>,
}

/// A file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exported {
    /// A name for it.
    file_name: String,
    /// Its media type.
    media_type: &'static str,
    /// What is in it.
    content: String,
    /// How many events are in it.
    events: usize,
    /// Give this as `cursor` for what comes after. Absent at the end.
    #[serde(rename = "next_cursor", skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

const COLUMNS: &str = "seq,id,timestamp,agent,actor,actorKind,action,target,outcome,request,requestState,decidedBy,facts\r\n";

pub(super) fn export(cx: &mut Cx<'_, '_>, input: ExportAudit) -> Result<Exported> {
    let ExportAudit { agent_id, format, start_time, end_time, action_filter, cursor } = input;
    let page = audit::find(cx, AuditLog { agent_id, start_time, end_time, action_filter, cursor, limit: Some(AUDIT_LOG_MAX) })?;
    let (agent, events) = (page.agent, page.events.len());
    let entries = page.events.into_iter().map(|event| audit::entry(cx, event)).collect::<Result<Vec<_>>>()?;
    let (ending, media_type, content) = match format {
        Form::Csv => ("csv", "text/csv; charset=utf-8", entries.iter().map(|entry| line(&agent, entry)).fold(COLUMNS.to_owned(), |text, line| text + &line)),
        Form::JsonLines => ("jsonl", "application/jsonl", entries.iter().map(|entry| json!(entry).to_string() + "\n").collect()),
    };
    let day: String = format_time(cx.now()).chars().take(10).collect();
    let name: String = agent.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    Ok(Exported { file_name: format!("audit-{name}-{day}.{ending}"), media_type, content, events, next_cursor: page.next.map(|seq| seq.to_string()) })
}

fn line(agent: &str, entry: &Entry) -> String {
    let Entry { seq, id, timestamp, actor, actor_kind, action, target, outcome, request, facts } = entry;
    let (seq, facts) = (seq.to_string(), json!(facts).to_string());
    let (request, state, decided) =
        request.as_ref().map_or(("", "", ""), |request| (request.request_id.as_str(), request.state.name(), request.decided_by.as_deref().unwrap_or_default()));
    let cells = [&seq, id, timestamp, agent, actor, actor_kind, action, target, outcome.name(), request, state, decided, &facts];
    format!("{}\r\n", cells.map(csv_cell).join(","))
}

/// Check that what the record tells of an agent is what was sealed: each event is in the tree that the newest signed checkpoint vouches for, and
/// is found by what was sealed. Up to 200 events at a time, newest first. For the whole record: `deskmate audit verify`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct VerifyAudit {
    /// The agent's id or name.
    agent_id: String,
    /// Only what happened at this moment or later, for example `2026-11-15T09:30:00Z`.
    start_time: Option<String>,
    /// Only what happened before this moment.
    end_time: Option<String>,
    /// How many; between 1 and 200, and 100 if not given.
    limit: Option<i64>,
    /// Where the previous answer ended.
    cursor: Option<String>,
}

/// What came of it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Verified {
    /// In words.
    message: String,
    /// Whether nothing was found.
    sound: bool,
    /// How many events were looked at.
    events: usize,
    /// What does not fit.
    findings: Vec<Finding>,
    /// The signed checkpoint that vouches for them; keep it elsewhere, and compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
    /// The public keys that it was checked with.
    keys: Vec<String>,
    /// Give this as `cursor` for what comes after. Absent at the end.
    #[serde(rename = "next_cursor", skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Whether an event is found by what was sealed of it: the columns that it is looked up by are no part of the sealed text.
fn is_found_by(cx: &mut Cx<'_, '_>, seq: u64, body: &Body) -> Result<bool> {
    let row = cx.tx.one("select at, actor, kind, subject from event where seq = $1", args![i64::try_from(seq).unwrap_or(i64::MAX)])?;
    let texts: [String; 3] = [row.get(1)?, row.get(2)?, row.get(3)?];
    Ok(row.get::<i64>(0)? == body.at && texts == [body.actor.id.as_str(), &body.kind, &body.subject])
}

pub(super) fn verify(cx: &mut Cx<'_, '_>, input: VerifyAudit) -> Result<Verified> {
    let limit = input.limit.unwrap_or(100);
    if !(1..=AUDIT_VERIFY_MAX).contains(&limit) {
        return Err(Error::invalid("limit", format!("must be between 1 and {AUDIT_VERIFY_MAX}")));
    }
    let VerifyAudit { agent_id, start_time, end_time, cursor, .. } = input;
    let page = audit::find(cx, AuditLog { agent_id, start_time, end_time, action_filter: None, cursor, limit: Some(limit) })?;
    let (keys, mut findings) = (cx.keys.clone(), Vec::new());
    for event in &page.events {
        let what = match record::prove(cx.tx, event.seq, &keys).and_then(|proof| record::check_proof(&proof, &keys).map(|()| proof)) {
            Err(error) => Some(format!("its proof does not hold: {error}")),
            Ok(proof) => match serde_json::from_str::<Body>(&proof.body) {
                Err(_) => Some("its sealed text is unreadable".to_owned()),
                Ok(body) => (!is_found_by(cx, event.seq, &body)?).then(|| "it is found by something else than what was sealed".to_owned()),
            },
        };
        findings.extend(what.map(|what| Finding { seq: Some(event.seq), what }));
    }
    let checkpoint = record::newest_checkpoint(cx.tx)?;
    let (sound, events) = (findings.is_empty(), page.events.len());
    let message = if sound {
        format!("{}: each of {events} events is in the signed record, and is what was sealed.", page.agent)
    } else {
        format!("{}: {} OF {events} EVENTS ARE NOT WHAT WAS SEALED.", page.agent, findings.len())
    };
    Ok(Verified { message, sound, events, findings, checkpoint, keys: keys.keys().to_vec(), next_cursor: page.next.map(|seq| seq.to_string()) })
}
