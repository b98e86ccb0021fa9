//! One command at a time: list, show, decide. Every deciding command asks for the passphrase.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::client::Client;
use super::super::output::{cut, print, say};
use super::super::{Failure, Global};
use super::bell::{Bell, requests};
use super::text::{SHORT, details, distance, moment, part, short};
use super::{Filter, InboxCommand, Remember, View, plan};
use crate::world::wall as now;

const LOOK: Duration = Duration::from_secs(2);
/// How many requests are asked for at once where all are looked through, and how often at most.
const PAGE: u32 = 200;
const PAGES_MAX: u32 = 50;

pub(super) fn run(global: &Global, filter: &Filter, command: InboxCommand) -> Result<(), Failure> {
    let client = Client::new(global)?;
    let looks = matches!(command, InboxCommand::List | InboxCommand::Show { .. });
    let client = if looks && client.has_token() { client } else { Client::present(global)? };
    let done = act(global, &client, filter, command);
    client.leave();
    done
}

fn act(global: &Global, client: &Client, filter: &Filter, command: InboxCommand) -> Result<(), Failure> {
    let call = |operation: &str, input: Value| print_outcome(global, &client.call(operation, &input)?);
    match command {
        InboxCommand::List => {
            let page = client.call("desk_request_list", &filter.input())?;
            if global.json { print(&page, true) } else { say(table(&page).trim_end()) }
        }
        InboxCommand::Show { request } => {
            let request = plan::get(client, &find(client, &request)?)?;
            if global.json { print(&request, true) } else { say(&in_words(&request)) }
        }
        InboxCommand::Approve { request, reason, edits, digest, remember, hours } => {
            let id = find(client, &request)?;
            let edits = edits.map(|text| deskmate_core::call::parse_strict(text.as_bytes())).transpose()?;
            let digest = if let Some(digest) = digest {
                digest
            } else {
                let shown = plan::get(client, &id)?;
                if !global.json {
                    say(&in_words(&shown))?;
                }
                part(&shown, "digest")
            };
            let remember = remember.map(|remember| match remember {
                Remember::Session => "session",
                Remember::Rule => "rule",
            });
            let input = json!({ "request": id, "expected_digest": digest, "reason": reason, "edits": edits, "remember": remember, "hours": hours });
            call("desk_request_approve", without_nulls(input))
        }
        InboxCommand::Reject { request, reason, kind, severity } => {
            let input = json!({ "request": find(client, &request)?, "reason": reason, "type": kind, "severity": severity });
            call("desk_request_reject", without_nulls(input))
        }
        InboxCommand::Ask { request, question } => call("desk_request_ask", without_nulls(json!({ "request": find(client, &request)?, "question": question }))),
        InboxCommand::Delegate { request, to, note } => {
            call("desk_request_delegate", without_nulls(json!({ "request": find(client, &request)?, "to": to, "note": note })))
        }
        InboxCommand::Snooze { request, until } => {
            let until = until.map(|text| {
                moment(&text, now()).ok_or_else(|| Failure::Other(format!("{text:?} is not a time: write for example 2h or 2026-11-15T09:30:00Z")))
            });
            call("desk_request_snooze", without_nulls(json!({ "request": find(client, &request)?, "until": until.transpose()? })))
        }
        InboxCommand::Undo { request, reason } => call("desk_request_undo", without_nulls(json!({ "request": find(client, &request)?, "reason": reason }))),
    }
}

/// The id that a person means: the whole of it, or an end of it that only one pending request has.
fn find(client: &Client, given: &str) -> Result<String, Failure> {
    if given.len() >= 32 {
        return Ok(given.to_ascii_lowercase());
    }
    let given = given.to_ascii_lowercase();
    let mut found = BTreeSet::new();
    for view in ["pending", "all"] {
        let page = client.call("desk_request_list", &json!({ "view": view, "limit": 200 }))?;
        let ids = page.get("requests").and_then(Value::as_array).into_iter().flatten().map(|request| part(request, "request"));
        found.extend(ids.filter(|id| id.ends_with(&given)));
        if !found.is_empty() {
            break;
        }
    }
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id),
        (Some(_), Some(_)) => Err(Failure::Other(format!("several requests end in {given:?}: write more of the id"))),
        (None, _) => Err(Failure::Other(format!("no request of the newest 200 ends in {given:?}: write the whole id"))),
    }
}

fn without_nulls(input: Value) -> Value {
    let Value::Object(fields) = input else { return input };
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

fn print_outcome(global: &Global, answer: &Value) -> Result<(), Failure> {
    if global.json {
        return print(answer, true);
    }
    say(&format!("{}: {} ({})", part(answer, "state"), part(answer, "title"), short(&part(answer, "request"))))?;
    match answer.pointer("/rule/yaml").and_then(Value::as_str) {
        Some(rule) => {
            say(&format!("\nA rule for acts like it; put it into deskmate.yaml and run `deskmate policy apply`:\n\n{rule}"))?;
            say(&matched(answer.pointer("/rule").unwrap_or(&Value::Null)))
        }
        None => Ok(()),
    }
}

/// What a drafted rule would have matched.
fn matched(rule: &Value) -> String {
    let matched = rule.get("would_have_matched").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let looked_at = rule.get("looked_at").and_then(Value::as_u64).unwrap_or_default();
    let mut text = format!("Of the newest {looked_at} requests it would have matched {}.", matched.len());
    for request in matched {
        text.push_str(&format!("\n  {}  {}  {}", short(&part(request, "request")), part(request, "state"), part(request, "title")));
    }
    text
}

fn in_words(request: &Value) -> String {
    details(request, now()).into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

fn table(page: &Value) -> String {
    let requests = page.get("requests").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let more = page.get("next_cursor").and_then(Value::as_str).map_or(String::new(), |cursor| format!("\nThere are more: --cursor {cursor}\n"));
    if requests.is_empty() {
        return if more.is_empty() { "Nothing waits.".to_owned() } else { more };
    }
    let mut text = format!("{:SHORT$}  {:>4}  {:8}  {:16}  {:16}  WHAT\n", "ID", "AGE", "RISK", "FROM", "DOMAIN");
    for request in requests {
        let (id, age) = (short(&part(request, "request")), distance(&part(request, "created_at"), now()));
        let (from, domain) = (cut(&part(request, "requester"), 16), cut(&part(request, "domain"), 16));
        text.push_str(&format!(
            "{id:SHORT$}  {age:>4}  {:8}  {from:16}  {domain:16}  {}\n",
            part(request, "risk"),
            cut(&part(request, "title").replace('\n', "⏎"), 70)
        ));
    }
    text + &more
}

/// Rings and prints a line for whatever comes in, until it is stopped. For terminals that are not watched.
pub(super) fn watch(global: &Global, filter: &Filter) -> Result<(), Failure> {
    let client = Client::new(global)?;
    let client = if client.has_token() { client } else { Client::present(global)? };
    let mut bell = Bell::default();
    loop {
        let asked = filter.input();
        let page = client.call("desk_request_list", &asked)?;
        if let Some(before) = bell.hears(&asked, &page) {
            for request in arrived(&client, filter, page, &before)? {
                if global.json {
                    say(&request.to_string())?;
                } else {
                    let (id, risk) = (short(&part(&request, "request")), part(&request, "risk"));
                    say(&format!("\u{7}{id}  {risk}  {}: {}", part(&request, "requester"), part(&request, "title")))?;
                }
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// What was made after a moment, on whichever pages it stands: in most views what is urgent comes first, and not what is new.
fn arrived(client: &Client, filter: &Filter, mut page: Value, before: &str) -> Result<Vec<Value>, Failure> {
    let mut filter = Filter { limit: Some(PAGE), ..filter.clone() };
    let mut new = Vec::new();
    for _ in 0..PAGES_MAX {
        new.extend(requests(&page).iter().filter(|request| *part(request, "created_at") > *before).cloned());
        let is_past = filter.view == View::All && requests(&page).last().is_some_and(|request| *part(request, "created_at") <= *before);
        let Some(next) = page.get("next_cursor").and_then(Value::as_str).filter(|_| !is_past) else { return Ok(new) };
        filter.cursor = Some(next.to_owned());
        page = client.call("desk_request_list", &filter.input())?;
    }
    // Where a note cannot be written, what was found still stands.
    drop(writeln!(std::io::stderr(), "note: {} requests were looked through; more may have come in", PAGES_MAX * PAGE));
    Ok(new)
}
