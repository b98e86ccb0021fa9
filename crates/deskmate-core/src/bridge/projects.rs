//! Which projects there is work in, so that people need not know their names.

use std::collections::BTreeSet;

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::party::me;
use crate::Result;
use crate::call::Cx;

/// How many projects an answer names at most.
const PROJECTS_MAX: usize = 200;

/// List the projects in which there are tasks or reservations, by name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListProjects {}

/// Projects.
#[derive(Serialize, JsonSchema)]
pub(super) struct Projects {
    /// Their names.
    projects: Vec<String>,
    /// True when there are more than this answer names.
    more: bool,
}

// Written as its index is.
pub(super) const NEXT_WITH_TASKS: &str = "select (project || '') from task where (project || '') > $1 order by (project || ''), state, created_at, id limit 1";
pub(super) const NEXT_WITH_RESERVATIONS: &str =
    "select project from reservation where project > $1 and released_at is null order by project, created_at, id limit 1";

pub(super) fn list(cx: &mut Cx<'_, '_>, _: ListProjects) -> Result<Projects> {
    me(cx)?;
    let mut projects = BTreeSet::new();
    for next in [NEXT_WITH_TASKS, NEXT_WITH_RESERVATIONS] {
        let mut last = String::new();
        // One step of the index for each, however much there is in it.
        for _ in 0..=PROJECTS_MAX {
            let Some(row) = cx.tx.optional(next, args![last])? else { break };
            last = row.get(0)?;
            projects.insert(last.clone());
        }
    }
    let more = projects.len() > PROJECTS_MAX;
    Ok(Projects { projects: projects.into_iter().take(PROJECTS_MAX).collect(), more })
}
