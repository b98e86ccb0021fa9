//! What was done with files before, as the record tells it. No file is looked at: a folder is only compared by its name.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{EVENTS, place, reach};
use crate::Result;
use crate::call::Cx;
use crate::record::{self, Events, Sought};

/// Search what was done with files before: plans, their steps, looks, documents, programs and pages of the web, newest first.
/// You see your own acts and what concerns you; where your client narrows itself to folders, nothing of roots that it does not reach.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchPastActions {
    /// A text that is in them, in capitals or not: a path, a kind such as `plan.ended`, an id.
    query: String,
    /// Only beneath this root: its name, or a whole path of something beneath it.
    workspace_root: Option<String>,
    /// How many; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

pub(super) fn search_past_actions(cx: &mut Cx<'_, '_>, input: SearchPastActions) -> Result<Events> {
    let root = match input.workspace_root {
        Some(named) if named.starts_with('/') || cx.within.is_some() => Some(place::find(cx, "workspace_root", Some(&named))?.root.name),
        // A root that is not in force any more has a past too.
        Some(named) => Some(named.split('/').next().unwrap_or_default().to_owned()),
        None => None,
    };
    // The record tells beneath which root something was done, so what is narrowed to folders is narrowed to their roots. What was done
    // in none, such as reading a page, lies outside of nothing; a program that was given no folder has an empty root.
    let reached = reach::roots(cx)?.map(|mut roots| {
        roots.insert(String::new());
        ("root", roots)
    });
    let sought = Sought {
        kinds: EVENTS.iter().map(|kind| kind.name.to_owned()).collect(),
        fact: root.map(|root| ("root", root)),
        among: reached,
        words: Some(("query", input.query)).filter(|(_, words)| !words.is_empty()),
        limit: input.limit,
        cursor: input.cursor,
        ..Sought::default()
    };
    record::find(cx, sought)
}
