//! The steps of a plan for whoever decides about it: nobody approves them unseen.

use deskmate_core::Code;
use serde_json::{Value, json};

use super::super::Failure;
use super::super::client::Client;
use super::text::{Line, Tone, each, part, shown};
use crate::visible::visible;

/// Steps that are shown of a plan.
const STEPS: usize = 50;

/// A request as the server tells it; one about a plan with the plan's first steps beside it, under `plan`.
pub(super) fn get(client: &Client, request: &str) -> Result<Value, Failure> {
    let mut request = client.call("desk_request_get", &json!({ "request": request }))?;
    if part(&request, "kind") == "plan"
        && let Some(plan) = request.pointer("/act/arguments/plan").cloned()
        && let Some(fields) = request.as_object_mut()
    {
        let shown = match client.call("workspace_get_plan", &json!({ "plan_id": plan, "limit": STEPS })) {
            // Plans are kept for a while, and requests for longer.
            Err(Failure::Desk(error)) if error.code == Code::NotFound => json!({ "plan_id": plan, "gone": true }),
            shown => shown?,
        };
        fields.insert("plan".to_owned(), shown);
    }
    Ok(request)
}

/// What a plan changes, step by step.
pub(super) fn lines(plan: &Value, lines: &mut Vec<Line>) {
    let id = part(plan, "plan_id");
    let all = plan.get("count").and_then(Value::as_i64).unwrap_or(0);
    let shown = each(plan, "steps").count();
    lines.push((Tone::Head, "What it changes".to_owned()));
    if plan.get("gone").is_some() {
        lines.push((Tone::Warning, format!("Plan {id} is not there for you any more, so its steps cannot be shown; the record tells what came of it.")));
        return;
    }
    if i64::try_from(shown).unwrap_or(i64::MAX) < all {
        lines.push((
            Tone::Warning,
            format!("Steps 1 to {shown} of {all}: the rest is on the page /workspace/plans/{id} and in `deskmate call workspace_get_plan`."),
        ));
    } else {
        lines.push((Tone::Plain, format!("All {all} step{}.", if all == 1 { "" } else { "s" })));
    }
    for step in each(plan, "steps") {
        one(&id, step, lines);
    }
}

fn one(plan: &str, step: &Value, lines: &mut Vec<Line>) {
    let (action, from, to, was) = (part(step, "action"), part(step, "from"), part(step, "to"), part(step, "was"));
    let from = if was.is_empty() { from } else { format!("{from} (was {was})") };
    let path = match (from.as_str(), to.as_str()) {
        ("", path) | (path, "") => path.to_owned(),
        (from, to) => format!("{from} → {to}"),
    };
    let of = Some(part(step, "undoes")).filter(|undone| !undone.is_empty()).map_or(String::new(), |undone| format!(" of {undone}"));
    let outcome = Some(part(step, "outcome")).filter(|outcome| !outcome.is_empty()).map_or(String::new(), |outcome| format!("  [{outcome}]"));
    let tone = if step.get("blocked").is_some() { Tone::Faint } else { Tone::Plain };
    lines.push((tone, format!("{}. {action}{of}  {path}{outcome}", part(step, "number"))));
    for (field, word) in [("blocked", "cannot be done, and is left out"), ("warning", "warning"), ("irreversible", "cannot be undone"), ("note", "note")] {
        let text = part(step, field);
        if !text.is_empty() {
            lines.push((Tone::Warning, format!("   {word}: {text}")));
        }
    }
    if let Some(given) = step.get("given") {
        given_to(given, lines);
    }
    let Some(diff) = step.get("diff").and_then(Value::as_str) else { return };
    let is_program = action == "run";
    for (at, line) in diff.lines().enumerate() {
        // The first two lines name the file before and after.
        let tone = match line.as_bytes().first().filter(|_| at > 1 && !is_program) {
            Some(b'+') => Tone::New,
            Some(b'-') => Tone::Old,
            _ if is_program => Tone::Plain,
            _ => Tone::Faint,
        };
        lines.push((tone, format!("   {}", visible(line))));
    }
    if let Some(bytes) = step.get("diff_bytes").and_then(Value::as_u64) {
        let (shown, number) = (diff.len(), part(step, "number"));
        lines.push((Tone::Warning, format!("   The first {shown} of {bytes} bytes: all of it is on the page /workspace/plans/{plan}/steps/{number}.")));
    }
}

/// What a program is given: whoever approves its code approves that too.
fn given_to(given: &Value, lines: &mut Vec<Line>) {
    let told = lines.len();
    for (field, may) in [("read", "may read"), ("write", "may read and change")] {
        lines.extend(each(given, field).map(|folder| (Tone::Warning, format!("   {may}: {}", shown(folder)))));
    }
    if lines.len() == told {
        lines.push((Tone::Plain, "   is given no folder".to_owned()));
    }
    let seconds = part(given, "timeout_seconds");
    lines.push((Tone::Plain, format!("   may take {seconds} second{}", if seconds == "1" { "" } else { "s" })));
}
