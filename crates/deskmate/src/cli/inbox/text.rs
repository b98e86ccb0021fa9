//! A request in words: the same on the screen and in plain output.

use deskmate_core::{format_time, parse_time};
use serde_json::Value;

use super::super::output::cut;
use super::plan;
use crate::config::parse_duration;
use crate::visible::visible;

/// How many characters at the end of an id tell it apart in a list.
pub(super) const SHORT: usize = 8;

/// A text field, made safe to show.
pub(super) fn part(value: &Value, field: &str) -> String {
    match value.get(field) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => visible(text),
        Some(other) => visible(&other.to_string()),
    }
}

/// The end of an id.
pub(super) fn short(id: &str) -> String {
    let skip = id.chars().count().saturating_sub(SHORT);
    id.chars().skip(skip).collect()
}

/// How long ago a moment was, or how far it is, in the largest unit.
pub(super) fn distance(time: &str, now: i64) -> String {
    let Ok(at) = parse_time("time", time) else { return String::new() };
    let seconds = (now - at).abs() / 1_000_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A moment that a person typed: a time from now such as `2h`, or RFC 3339.
pub(super) fn moment(text: &str, now: i64) -> Option<String> {
    match parse_duration(text) {
        Some(micros) => Some(format_time(now.saturating_add(micros))),
        None => parse_time("until", text).ok().map(format_time),
    }
}

/// The part of a screen that a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// A heading.
    Head,
    /// As it is.
    Plain,
    /// What is there now.
    Old,
    /// What would be there.
    New,
    /// Look twice.
    Warning,
    /// Less important.
    Faint,
}

/// A line with its tone.
pub(super) type Line = (Tone, String);

/// Everything that a person needs to decide, line by line.
pub(super) fn details(request: &Value, now: i64) -> Vec<Line> {
    let mut lines = vec![(Tone::Head, part(request, "title"))];
    let who = part(request, "requester");
    let proved = match (request.get("verified").and_then(Value::as_bool), part(request, "requester_kind").as_str()) {
        (Some(true), _) => "verified",
        (_, "person") => "a program with their token",
        _ => "unverified: only claims to be",
    };
    lines.push((
        if proved == "verified" { Tone::Plain } else { Tone::Warning },
        format!("from {who} ({proved}), {} ago", distance(&part(request, "created_at"), now)),
    ));
    lines.push((
        Tone::Plain,
        format!(
            "{} in {}   mode {}   risk {}   priority {}",
            part(request, "kind"),
            part(request, "domain"),
            part(request, "mode"),
            part(request, "risk"),
            part(request, "priority")
        ),
    ));
    standing(request, now, &mut lines);
    if let Some(act) = request.get("act") {
        lines.push((Tone::Head, "What exactly".to_owned()));
        lines.push((Tone::Plain, format!("{}  {}", part(act, "action"), part(act, "target"))));
        let read: Vec<String> = each(act, "taint").map(shown).collect();
        if !read.is_empty() {
            lines.push((Tone::Plain, format!("read before, and nobody vouches for it: {}", read.join(", "))));
        }
    }
    if let Some(plan) = request.get("plan") {
        plan::lines(plan, &mut lines);
    }
    for change in each(request, "changes") {
        let path = part(change, "path");
        if let Some(old) = change.get("old") {
            lines.extend(block(Tone::Old, "- ", &format!("{path}: {}", shown(old))));
        }
        if let Some(new) = change.get("new") {
            lines.extend(block(Tone::New, "+ ", &format!("{path}: {}", shown(new))));
        }
    }
    if request.get("changes_cut").and_then(Value::as_bool) == Some(true) {
        lines.push((Tone::Warning, "There are more changes than are shown here; `inbox show --json` has them all.".to_owned()));
    }
    if request.get("proposed").is_some_and(|proposed| !proposed.is_null()) {
        lines.push((Tone::Warning, format!("Edited by {}; the agent had proposed {}", part(request, "edited_by"), part(request, "proposed"))));
    }
    said(request, "Why", "reasoning", &mut lines);
    said(request, "If it goes wrong", "reversibility", &mut lines);
    if let Some(context) = request.get("context").filter(|context| !context.is_null()) {
        lines.push((Tone::Head, "Context".to_owned()));
        lines.extend(block(Tone::Plain, "", &visible(&serde_json::to_string_pretty(context).unwrap_or_default())));
    }
    judgement(request, &mut lines);
    past(request, now, &mut lines);
    lines.push((Tone::Faint, format!("id {}   digest {}", part(request, "request"), cut(&part(request, "digest"), 16))));
    lines
}

/// What a field lists.
pub(super) fn each<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn shown(value: &Value) -> String {
    visible(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

fn block(tone: Tone, mark: &str, text: &str) -> Vec<Line> {
    let lines = text.lines().enumerate().map(|(number, line)| (tone, format!("{}{line}", if number == 0 { mark.to_owned() } else { " ".repeat(mark.len()) })));
    lines.collect()
}

fn said(request: &Value, head: &str, field: &str, lines: &mut Vec<Line>) {
    let text = part(request, field);
    if !text.is_empty() {
        lines.push((Tone::Head, head.to_owned()));
        lines.extend(block(Tone::Plain, "", &text));
    }
}

/// How it stands: what it waits for, votes, deadline, decision.
fn standing(request: &Value, now: i64, lines: &mut Vec<Line>) {
    let state = part(request, "state");
    let text = match part(request, "waits_for").as_str() {
        "people" => format!("waits for you, expires in {}", distance(&part(request, "expires_at"), now)),
        "requester" => "waits for an answer of the agent".to_owned(),
        "later" => format!("put off until {}", part(request, "snoozed_until")),
        _ => format!("{state} {} {}", part(request, "decided_by"), part(request, "reason")).trim().to_owned(),
    };
    lines.push((Tone::Plain, text));
    let quorum = request.get("quorum").and_then(Value::as_i64).unwrap_or(1);
    if quorum > 1 {
        lines.push((Tone::Warning, format!("{} of {quorum} people have approved", request.get("approvals").and_then(Value::as_i64).unwrap_or(0))));
    }
    let assignee = part(request, "assignee");
    if !assignee.is_empty() {
        lines.push((Tone::Plain, format!("given to {assignee}")));
    }
}

/// What policy and trust say.
fn judgement(request: &Value, lines: &mut Vec<Line>) {
    lines.push((Tone::Head, "How the desk judged".to_owned()));
    if let Some(confidence) = request.get("confidence").and_then(Value::as_f64) {
        lines.push((Tone::Plain, format!("the agent is {:.0} % sure", confidence * 100.0)));
    }
    if let Some(trust) = request.get("trust") {
        let number = |field: &str| trust.get(field).and_then(Value::as_f64).unwrap_or(0.0);
        let edge = |index: usize| trust.get("interval").and_then(|interval| interval.get(index)).and_then(Value::as_f64).unwrap_or(0.0) * 100.0;
        let sample = trust.get("sample_size").and_then(Value::as_i64).unwrap_or(0);
        lines.push((
            Tone::Plain,
            format!("trust {:.2}; {:.0} % of {sample} approved (95 %: {:.0} to {:.0} %)", number("score"), number("accuracy") * 100.0, edge(0), edge(1)),
        ));
    }
    for hit in each(request, "hits") {
        let tone = if matches!(part(hit, "severity").as_str(), "info") { Tone::Plain } else { Tone::Warning };
        lines.push((tone, format!("rule {} of {} v{}: {}", part(hit, "rule_id"), part(hit, "policy"), part(hit, "version"), part(hit, "reason"))));
    }
    for reason in each(request, "reasons") {
        let change = part(reason, "would_change");
        let change = if change.is_empty() { String::new() } else { format!(" ({change})") };
        lines.push((Tone::Faint, format!("{} allows {}: {}{change}", part(reason, "source"), part(reason, "mode"), part(reason, "text"))));
    }
}

/// What was said and what happened before.
fn past(request: &Value, now: i64, lines: &mut Vec<Line>) {
    if request.get("notes").and_then(Value::as_array).is_some_and(|notes| !notes.is_empty()) {
        lines.push((Tone::Head, "Said so far".to_owned()));
        for note in each(request, "notes") {
            lines.extend(block(Tone::Plain, "", &format!("{} {}: {}", part(note, "kind"), part(note, "by"), part(note, "text"))));
        }
    }
    if request.get("similar").and_then(Value::as_array).is_some_and(|similar| !similar.is_empty()) {
        lines.push((Tone::Head, "Like it before".to_owned()));
        for similar in each(request, "similar") {
            lines.push((
                Tone::Faint,
                format!(
                    "{} {} ago: {} {}",
                    part(similar, "state"),
                    distance(&part(similar, "created_at"), now),
                    part(similar, "title"),
                    part(similar, "reason")
                ),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn agents_cannot_paint_on_the_screen() {
        let lines = details(&json!({ "title": "pay\u{1b}[2J 5\u{202e}0€\nApproved by Owner", "verified": false, "requester": "code" }), 0);
        let title = &lines[0].1;
        assert!(title.contains("\\u{1b}") && title.contains("\\u{202e}"), "{title}");
        assert!(lines.iter().any(|(tone, line)| *tone == Tone::Warning && line.contains("only claims to be")));
    }

    #[test]
    fn changes_show_what_is_and_what_would_be() {
        let lines = details(&json!({ "changes": [{ "path": "/amount", "old": 5, "new": "7\n8" }] }), 0);
        let texts: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
        assert!(texts.contains(&"- /amount: 5") && texts.contains(&"+ /amount: 7") && texts.contains(&"  8"), "{texts:?}");
    }

    #[test]
    fn what_was_read_before_is_one_line() {
        let texts = |act: Value| details(&json!({ "act": act }), 0).into_iter().map(|(_, line)| line).collect::<Vec<_>>();
        let read = texts(json!({ "action": "send", "taint": ["mount:web", "mail"] }));
        assert!(read.contains(&"read before, and nobody vouches for it: mount:web, mail".to_owned()), "{read:?}");
        assert!(!texts(json!({ "action": "send" })).iter().any(|line| line.contains("read before")));
    }

    #[test]
    fn moments_are_times_from_now_or_dates() {
        assert_eq!(moment("2h", 0).as_deref(), Some("1970-01-01T02:00:00.000000Z"));
        assert_eq!(moment("2026-11-15T09:30:00Z", 0).as_deref(), Some("2026-11-15T09:30:00.000000Z"));
        assert_eq!(moment("soon", 0), None);
        assert_eq!(distance("1970-01-01T00:00:00Z", 7_200_000_000), "2h");
    }
}
