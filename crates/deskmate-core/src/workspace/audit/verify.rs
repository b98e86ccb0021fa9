//! Verifying audit files: on request, and once a day. What is wrong is told to the record; the file is kept under another name
//! and written anew.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::MENDED;
use super::super::place;
use super::super::root::{self, Root, RootAccess};
use crate::call::{Cx, Wait};
use crate::job::{self, NewJob, Priority, Progress};
use crate::record::Event;
use crate::{Code, Error, Result, policy};

/// The kind of the job that does it.
pub const AUDIT_JOB: &str = "workspace.audit";

const DAY: i64 = 86_400_000_000;

/// What was found in the audit file of a root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditFound {
    /// The root.
    pub root: String,
    /// Whether the file said what the record says, from its first line to the last one of the record.
    pub sound: bool,
    /// How many lines are good, from the first one on.
    pub lines: u64,
    /// The first line that does not say what the record says, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bad: Option<u64>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many lines of the record were missing at its end; they were added.
    pub missing: u64,
    /// Under which name the file was set aside before it was written anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
}

/// The roots that an audit file belongs to; one of them if it is named.
pub fn audited_roots(cx: &mut Cx<'_, '_>, input: &Value) -> Result<Vec<Root>> {
    if !policy::current(cx)?.settings("").workspace.audit_file {
        return Ok(Vec::new());
    }
    let named = input.get("root").and_then(Value::as_str);
    let all = root::all(cx)?.into_iter().filter(|root| root.access == RootAccess::Write);
    Ok(all.filter(|root| named.is_none_or(|named| named == root.name)).collect())
}

/// Puts the daily look into the queue, if there is anything to look at.
pub fn schedule_audit(cx: &mut Cx<'_, '_>) -> Result<()> {
    if !audited_roots(cx, &Value::Null)?.is_empty() {
        job::ensure_scheduled(cx, AUDIT_JOB, "all", DAY)?;
    }
    Ok(())
}

/// Tells that an audit file did not say what the record says.
pub fn mended(cx: &mut Cx<'_, '_>, found: &AuditFound) -> Result<()> {
    let event = Event::new(MENDED, format!("root:{}", found.root))
        .fact("root", found.root.as_str())
        .fact("first_bad", found.first_bad)
        .fact("missing", found.missing)
        .fact("set_aside", found.set_aside.is_some());
    cx.emit(event.payload(json!({ "why": found.why, "set_aside": found.set_aside })))
}

/// Verify the audit file of a root (`.deskmate-audit.jsonl`) line by line against the record. A file that was changed is kept under
/// another name and written anew. It holds until it is done, up to 25 seconds; after that the answer names the job to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct VerifyAuditFile {
    /// The root; the only one if not given.
    root: Option<String>,
    /// How long to wait, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

/// How the verifying stands, and what was found once it has ended.
#[derive(Serialize, JsonSchema)]
pub(in crate::workspace) struct AuditVerified {
    /// The job that looks.
    job: String,
    /// How that stands.
    state: job::State,
    /// Whether it has ended; if not, wait with desk_job_wait.
    ended: bool,
    /// How far it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    /// What was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<AuditFound>,
    /// Why it could not be verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(in crate::workspace) fn verify_audit_file(cx: &mut Cx<'_, '_>, input: VerifyAuditFile) -> Result<AuditVerified> {
    let root = place::find(cx, "root", input.root.as_deref())?.root;
    if audited_roots(cx, &json!({ "root": root.name }))?.is_empty() {
        let why = format!("{} has no audit file: plans cannot change anything there, or `audit_file` is off", root.name);
        return Err(Error::conflict(why).hint("the settings under `workspace` say so"));
    }
    let key = format!("root:{}", root.name);
    let new = NewJob { priority: Priority::Urgent, unique_key: Some(key), ..NewJob::new(AUDIT_JOB, json!({ "root": root.name })) };
    let begun = job::enqueue(cx, new)?;
    stands(cx, &begun.job)
}

fn stands(cx: &mut Cx<'_, '_>, id: &str) -> Result<AuditVerified> {
    let seen = job::seen(cx, id, AUDIT_JOB)?;
    let unreadable = |error: serde_json::Error| Error::new(Code::Internal, format!("the result of job {id} is unreadable: {error}"));
    let found = seen.result.and_then(|mut result| result.get_mut("roots").and_then(Value::as_array_mut).and_then(Vec::pop));
    let result = found.map(AuditFound::deserialize).transpose().map_err(unreadable)?;
    let ended = seen.state.is_end();
    Ok(AuditVerified { job: id.to_owned(), state: seen.state, ended, progress: seen.progress, result, error: seen.error.filter(|_| ended) })
}

/// Whether the verifying that a call put into the queue has ended.
pub(in crate::workspace) fn followed(cx: &mut Cx<'_, '_>, answer: &Value) -> Result<Wait<AuditVerified>> {
    let verified = stands(cx, answer.get("job").and_then(Value::as_str).unwrap_or_default())?;
    Ok(if verified.ended { Wait::Ready(verified) } else { Wait::NotYet(verified) })
}
