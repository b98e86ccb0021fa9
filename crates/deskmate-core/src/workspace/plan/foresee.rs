//! The act of a plan that is not made: as far as the wish tells, it is what the plan's own would be, so that rules answer the same.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::place::{self, Place, join, relative};
use super::make::{self, Total};
use super::model::{Action, Program, Step};
use super::{PURGE, UNDO, python, rows};
use crate::call::Cx;
use crate::limits::{PLAN_PATHS_SHOWN, PROGRAM_SECONDS_USUAL};
use crate::policy::Act;
use crate::{Error, Result};

/// The kind of the plan that an operation asks for; `None` if it asks for none.
pub(in crate::workspace) fn kind(operation: &str) -> Option<&'static str> {
    Some(match operation {
        "organize_plan" => "organize",
        "change_plan" => "change",
        "soft_delete" => "trash",
        "restore" => "restore",
        "purge_trash" => PURGE,
        "create_excel" | "create_word" | "create_pdf" => "document",
        "undo_plan" => UNDO,
        "execute_python" => python::KIND,
        _ => return None,
    })
}

/// What would be done. The steps of some wishes are known only when files are looked at: then one stands for all.
pub(in crate::workspace) fn act(cx: &mut Cx<'_, '_>, kind: &str, operation: &str, input: &Value, place: Option<&Place>) -> Result<Act> {
    let folder = place.map_or("", |place| place.path.as_str());
    let steps = steps(cx, kind, input, folder)?;
    let mut total = Total { steps: i64::try_from(steps.len()).unwrap_or(i64::MAX), sum: rows::Sum::of(&steps), ..Total::default() };
    total.paths = steps.into_iter().flat_map(|step| step.from.into_iter().chain(step.to)).collect();
    total.cut = total.paths.len() > PLAN_PATHS_SHOWN;
    total.paths.truncate(PLAN_PATHS_SHOWN);
    total.program = if kind == python::KIND { Some(program(input, folder)?) } else { None };
    let tool = make::tool(kind, operation.strip_prefix("create_").unwrap_or_default());
    Ok(make::act(kind, &tool, place.map(|place| &place.root), &total, Vec::new()))
}

/// What would be looked at to make it.
pub(in crate::workspace) fn looked(cx: &mut Cx<'_, '_>, kind: &str, input: &Value, place: &Place) -> Result<Vec<Place>> {
    let steps = steps(cx, kind, input, &place.path)?;
    let paths: BTreeSet<&str> = steps.iter().filter_map(|step| step.action.looks_at(step.from.as_deref(), step.to.as_deref())).collect();
    if kind == "organize" && paths.is_empty() {
        return Ok(vec![place.clone()]);
    }
    Ok(paths.into_iter().map(|path| Place { path: path.to_owned(), ..place.clone() }).collect())
}

/// The steps, with paths as the plan's own are: relative to the root, behind the folder that the wish names.
fn steps(cx: &mut Cx<'_, '_>, kind: &str, input: &Value, folder: &str) -> Result<Vec<Step>> {
    let list = |field: &str| input.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    match kind {
        "organize" if !list("moves").is_empty() => list("moves").iter().map(|one| step(Action::Move, one, folder)).collect(),
        "organize" => Ok(vec![step(Action::Move, &Value::Null, folder)?]),
        // Here the folder is the thing itself.
        "trash" => Ok(vec![step(Action::Trash, &json!({ "from": "" }), folder)?]),
        "restore" => {
            let to = input.get("restore_to").and_then(Value::as_str).map(|to| place::find(cx, "restore_to", Some(to))).transpose()?;
            Ok(vec![step(Action::Restore, &json!({ "from": input.get("trash_id"), "to": to.map(|to| to.path) }), "")?])
        }
        PURGE => list("trash_ids").iter().map(|id| step(Action::Purge, &json!({ "from": id }), "")).collect(),
        "document" => {
            let rows = input.get("data").map(|rows| serde_json::to_string_pretty(rows).unwrap_or_default());
            let text = input.get("content").cloned().or_else(|| rows.map(Value::from));
            Ok(vec![step(Action::Write, &json!({ "to": "", "text": text }), folder)?])
        }
        UNDO => Ok(vec![step(Action::Undo, &Value::Null, "")?]),
        python::KIND => Ok(vec![step(Action::Run, &Value::Null, "")?]),
        _ => list("steps").iter().filter_map(|one| Some(step(serde_json::from_value(one.get("action")?.clone()).ok()?, one, folder))).collect(),
    }
}

/// A step as far as a wish tells: paths, and the texts that it would add.
fn step(action: Action, wish: &Value, folder: &str) -> Result<Step> {
    let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    let path = |field: &str| text(wish, field).map(|path| Ok::<_, Error>(join(folder, &relative(field, &path)?))).transpose();
    let edits = wish.get("edits").and_then(Value::as_array).into_iter().flatten().filter_map(|edit| text(edit, "new"));
    let added: Vec<String> = text(wish, "text").into_iter().chain(edits).collect();
    let lines = added.iter().flat_map(|text| text.lines()).flat_map(|line| ["+", line, "\n"]);
    let diff = (!added.is_empty()).then(|| ["\n", "\n"].into_iter().chain(lines).collect());
    Ok(Step {
        action,
        undoes: None,
        from: path("from")?,
        was: None,
        to: path("to")?,
        exact: Value::Null,
        diff,
        irreversible: None,
        warning: None,
        blocked: None,
        bytes: 0,
    })
}

fn program(input: &Value, folder: &str) -> Result<Program> {
    let texts = |field: &str| -> Result<Vec<String>> {
        let named: Vec<String> = input.get(field).and_then(|list| serde_json::from_value(list.clone()).ok()).unwrap_or_default();
        named.iter().map(|path| Ok(join(folder, &relative(field, path)?))).collect()
    };
    let seconds = input.get("timeout_seconds").and_then(Value::as_u64).and_then(|seconds| u32::try_from(seconds).ok());
    let code = input.get("code").and_then(Value::as_str).unwrap_or_default().to_owned();
    let timeout_seconds = seconds.unwrap_or(PROGRAM_SECONDS_USUAL);
    Ok(Program { code, folder: folder.to_owned(), read: texts("read")?, write: texts("write")?, timeout_seconds })
}
