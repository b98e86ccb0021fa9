//! What the worker does for a program's job: it learns what to call and as whom, and, where a plan is being done, stops it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{JOB, kinds, roots};
use crate::call::Cx;
use crate::workspace::{self, plan};
use crate::{Code, Error, Result, job};

/// What a program asked for, as the job keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) session: String,
    #[serde(rename = "type")]
    pub(super) number: i32,
    pub(super) dedupe_key: String,
    pub(super) allowed_roots: Vec<String>,
    pub(super) params: BTreeMap<String, String>,
}

impl Asked {
    pub(super) fn read(input: &Value) -> Result<Self> {
        Self::deserialize(input).map_err(|error| Error::new(Code::Internal, format!("what a program asked for is unreadable: {error}")))
    }

    /// What the keys of all jobs of a pairing begin with.
    pub(super) fn prefix_of(session: &str) -> String {
        format!("{session}:")
    }

    pub(super) fn prefix(&self) -> String {
        Self::prefix_of(&self.session)
    }

    /// The key under which the job is the only one.
    pub(super) fn unique_key(&self) -> String {
        format!("{}{}:{}", self.prefix(), self.number, self.dedupe_key)
    }

    /// Kind and dedupe key of such a key.
    pub(super) fn read_key(key: &str) -> (i32, String) {
        let mut parts = key.splitn(3, ':').skip(1);
        let number = parts.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        (number, parts.next().unwrap_or_default().to_owned())
    }
}

/// What a job has to do.
#[derive(Clone, Debug)]
pub struct Work {
    /// As whom: the id of the program's credential.
    pub credential: String,
    /// The number of the kind.
    pub number: i32,
    /// The parameters, within what the job is narrowed to.
    pub params: BTreeMap<String, String>,
    /// The plan to do, where it does one.
    pub plan: Option<String>,
    /// The folders that it is narrowed to, by whole paths; none if it is not.
    pub within: Vec<String>,
}

/// What a job has to do, under today's roots.
pub fn begin(cx: &mut Cx<'_, '_>, input: &Value) -> Result<Work> {
    let asked = Asked::read(input)?;
    let kind = kinds::find(asked.number)?;
    let params = roots::narrowed(cx, kind, &asked.allowed_roots, &asked.params)?;
    let plan = if asked.number == kinds::EXECUTE_PLAN { Some(plan_of(cx, &asked)?) } else { None };
    let within = asked.allowed_roots.iter().map(|named| workspace::whole_path(cx, "allowed_roots", named)).collect::<Result<_>>()?;
    Ok(Work { credential: asked.session, number: asked.number, params, plan, within })
}

/// The plan that an earlier job of the same pairing made.
fn plan_of(cx: &mut Cx<'_, '_>, asked: &Asked) -> Result<String> {
    let id = asked.params.get("plan_job_id").ok_or_else(|| Error::invalid("params.plan_job_id", "is needed"))?;
    let own = job::entry(cx, JOB, id)?.filter(|entry| entry.unique_key.as_deref().is_some_and(|key| key.starts_with(&asked.prefix())));
    let made = own.map(|entry| job::contents(cx, &entry.id)).transpose()?.and_then(|(_, result)| result);
    let plan = made.as_ref().and_then(|made| made.get("plan_id")).and_then(Value::as_str).map(str::to_owned);
    plan.ok_or_else(|| Error::not_found("params.plan_job_id names no job of this program that made a plan"))
}

/// Somebody stopped the job: what it began stops too.
pub fn stop(cx: &mut Cx<'_, '_>, input: &Value) -> Result<()> {
    let asked = Asked::read(input)?;
    if asked.number != kinds::EXECUTE_PLAN {
        return Ok(());
    }
    let plan = plan_of(cx, &asked)?;
    plan::stop(cx, &plan)
}
