//! What is around every page: the head, the ways to the other pages, the state of the connection, and the dialogs.

use axum::http::HeaderValue;
use axum::http::header::REFRESH;
use axum::response::{Html, IntoResponse, Response};
use deskmate_core::{Code, Error};
use maud::{DOCTYPE, Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::assets::address;
use super::visit::{Fault, Visit};

/// How many requests are counted for the mark at the inbox; beyond that it says so.
const COUNTED: usize = 99;

/// What makes the shell itself out of date, on every page: how many wait, whether agents are paused, what did not arrive.
const TOPICS: &str = "request pause notification";

/// The pages that every page leads to, with the key after `g`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Inbox,
    Agents,
    Policies,
    Record,
    Messages,
    Tasks,
    Workspace,
    Gateway,
    Tools,
    People,
    Other,
}

impl Place {
    const ALL: [(Self, &'static str, &'static str, &'static str); 10] = [
        (Self::Inbox, "/", "Inbox", "i"),
        (Self::Agents, "/agents", "Agents", "a"),
        (Self::Policies, "/policies", "Policies", "p"),
        (Self::Record, "/record", "Record", "r"),
        (Self::Messages, "/messages", "Messages", "m"),
        (Self::Tasks, "/tasks", "Tasks", "t"),
        (Self::Workspace, "/workspace", "Workspace", "w"),
        (Self::Gateway, "/gateway", "Gateway", "g"),
        (Self::Tools, "/tools", "Tools", "o"),
        (Self::People, "/people", "People", "e"),
    ];
}

/// A page before it has its shell.
pub(super) struct Page<'p> {
    pub(super) title: &'p str,
    pub(super) place: Place,
    /// Which topics of the record make it out of date.
    pub(super) topics: &'p str,
    pub(super) body: Markup,
}

#[derive(Deserialize)]
struct Waiting {
    requests: Vec<serde_json::Value>,
    /// When the newest of all that wait was made.
    #[serde(default)]
    newest_at: String,
}

/// What `desk_notification_list` answers.
#[derive(Deserialize)]
struct Told {
    dead: i64,
}

#[derive(Deserialize)]
struct Pauses {
    items: Vec<Pause>,
}

#[derive(Deserialize)]
struct Pause {
    agent: String,
}

/// Puts the shell around a page.
pub(super) async fn show(visit: &Visit, page: Page<'_>) -> Result<Response, Fault> {
    let waiting: Waiting = visit.ask("desk_request_list", json!({ "limit": COUNTED + 1 })).await?;
    let pauses: Pauses = visit.ask("desk_pause_list", json!({ "limit": 100 })).await?;
    let told: Told = visit.ask("desk_notification_list", json!({ "limit": 1 })).await?;
    let all_paused = pauses.items.iter().any(|pause| pause.agent == "*");
    let count = waiting.requests.len();
    let counted = if count > COUNTED { format!("{COUNTED}+") } else { count.to_string() };
    let topics = format!("{} {TOPICS}", page.topics);
    let body = html! {
        body data-topics=(topics) data-size=(visit.size) data-count=(counted) data-newest=(waiting.newest_at) data-you=(visit.you.id) {
            a.skip href="#main" { "Skip to the content" }
            header.top {
                a.brand href="/" { img src=(address("desk.svg")) width="24" height="24" alt=""; "Deskmate" }
                nav aria-label="Pages" {
                    @for (place, path, name, key) in Place::ALL {
                        a href=(path) aria-current=[(place == page.place).then_some("page")] data-go=(key) {
                            (name)
                            @if place == Place::Inbox && count > 0 { " " span.count id="count" { (counted) } }
                        }
                    }
                    @if told.dead > 0 { a href="/people/notifications#dead" id="not-arrived" { "Not arrived " span.count.alarm { (told.dead) } } }
                }
                div.tools {
                    button.quiet type="button" data-open="palette" aria-keyshortcuts="Control+K" { "Search" kbd { "Ctrl K" } }
                    @if visit.decides() { (stop(all_paused)) }
                    details.you {
                        summary { (super::ui::said(&visit.you.name)) }
                        div.menu {
                            p { "Signed in as " (super::ui::spaced(&visit.you.role)) }
                            a href="/passkeys" { "Your passkeys" }
                            a href="/people/notifications" { "How you are told" }
                            button.quiet type="button" data-notify { "Notify me in this browser" }
                            button.quiet type="button" data-open="help" { "Keys" kbd { "?" } }
                            form data-call="desk_sign_out" data-then="/sign-in" { button.quiet { "Sign out" } }
                        }
                    }
                }
            }
            @if all_paused { p.banner role="status" { "All agents are paused: every act of theirs is denied until you let them go on." } }
            p.banner id="connection" role="status" hidden data-keep {}
            main id="main" tabindex="-1" { (page.body) }
            div id="toasts" role="status" aria-live="polite" data-keep {}
            (dialogs())
        }
    };
    Ok(Html(document(page.title, "desk.js", body).into_string()).into_response())
}

/// The kill switch, on every page of whoever may use it.
fn stop(all_paused: bool) -> Markup {
    html! {
        @if all_paused {
            form id="resume-all" data-call="desk_resume" data-done="Agents may go on" data-confirm="Let all agents go on?" { input type="hidden" name="all" value="true" data-as="json"; button.warning { "Let agents go on" } }
        } @else {
            form id="pause-all" data-call="desk_pause" data-done="All agents are paused" data-confirm="Pause all agents? Every act of theirs is denied at once, also what was approved and not yet begun, until you let them go on." {
                input type="hidden" name="all" value="true" data-as="json";
                button.alarm { "Pause all" }
            }
        }
    }
}

fn dialogs() -> Markup {
    html! {
        dialog id="presence" aria-labelledby="presence-title" data-keep {
            form method="dialog" {
                h2 id="presence-title" { "Show that it is you" }
                p { "Deciding and configuring need your passphrase, PIN or passkey. It is remembered for a few minutes; what is of high risk asks again." }
                label for="presence-passphrase" { "Passphrase or PIN" }
                input id="presence-passphrase" name="passphrase" type="password" autocomplete="current-password" required;
                p role="alert" {}
                div.row { button { "Go on" } button.quiet type="button" data-passkey hidden { "Use a passkey" } button.quiet type="button" data-close { "Cancel" } }
            }
        }
        dialog id="confirm" aria-labelledby="confirm-text" data-keep {
            form method="dialog" {
                h2 id="confirm-text" {}
                div id="confirm-list" {}
                div.field id="confirm-why" hidden {
                    label for="confirm-reason" { "Reason, for the agents to learn from" }
                    textarea id="confirm-reason" rows="2" required disabled {}
                }
                div.row { button value="yes" { "Yes" } button.quiet type="button" data-close { "No" } }
            }
        }
        dialog id="rule" aria-labelledby="rule-title" data-keep {
            h2 id="rule-title" { "A rule was drafted" }
            p { "It would let acts like this one pass. Nothing is in force yet: add it to the rules of a policy, and look at what it would change." }
            pre.block id="rule-text" tabindex="0" {}
            p id="rule-matched" {}
            ul id="rule-list" {}
            div.row { button type="button" data-copy="rule-text" { "Copy" } a href="/policies/edit" { "Edit the policies" } button.quiet type="button" data-close { "Close" } }
        }
        dialog id="palette" aria-label="Search and commands" data-keep {
            input id="palette-query" type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list" placeholder="Go to a page, do something, or search the inbox" aria-label="Search and commands" autocomplete="off" enterkeyhint="go";
            ul id="palette-list" role="listbox" aria-label="Found" {}
            div id="further" hidden { @for (path, name) in FURTHER { a href=(path) { (name) } } }
        }
        dialog id="help" aria-labelledby="help-title" data-keep {
            h2 id="help-title" { "Keys" }
            dl.keys {
                @for (key, what) in KEYS { div { dt { kbd { (key) } } dd { (what) } } }
            }
            div.row { button.quiet type="button" data-close { "Close" } }
        }
    }
}

/// The pages that are no places of their own, for the palette.
const FURTHER: [(&str, &str); 17] = [
    ("/trust", "Trust"),
    ("/compliance", "Compliance"),
    ("/make", "Make an agent"),
    ("/templates", "Templates"),
    ("/policies/edit", "Edit the policies"),
    ("/policies/why", "Why this answer?"),
    ("/messages/groups", "Groups"),
    ("/tasks?view=board", "Board of tasks"),
    ("/tasks/files", "Reserved files"),
    ("/workspace/plans", "Plans for files"),
    ("/workspace/trash", "Trash"),
    ("/gateway/calls", "Calls of tools"),
    ("/passkeys", "Passkeys"),
    ("/people/you", "Your sessions and tokens"),
    ("/people/approvals", "Standing approvals"),
    ("/people/notifications", "Notifications"),
    ("/design", "Design system"),
];

const KEYS: [(&str, &str); 17] = [
    ("j / k", "next and previous in a list"),
    ("Enter", "open"),
    ("a", "approve"),
    ("e", "edit, then approve"),
    ("r", "reject"),
    ("q", "ask the agent a question"),
    ("d", "give to somebody else"),
    ("s", "put off"),
    ("x", "select, to decide many"),
    ("u", "undo the last decision"),
    ("n", "something new: a message, a task, an invitation, a token"),
    ("t d r c p", "of an agent that the desk runs: test, deploy, run, change, pause"),
    ("/", "search"),
    ("g then a letter", "go to a page: i inbox, a agents, p policies, r record, m messages, t tasks, w workspace, g gateway, o tools, e people"),
    ("Ctrl or Cmd K", "search and commands"),
    ("Esc", "close, or back to the list"),
    ("?", "these keys"),
];

/// A whole document.
pub(super) fn document(title: &str, script: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="description" content="The desk that people and their agents share";
                title { (title) " · Deskmate" }
                link rel="stylesheet" href=(address("desk.css"));
                link rel="icon" href=(address("desk.svg")) type="image/svg+xml";
                link rel="manifest" href=(address("manifest.webmanifest"));
                script type="module" src=(address(script)) {}
            }
            (body)
        }
    }
}

/// A page with one thing on it.
pub(super) fn sheet(title: &str, script: &str, content: Markup) -> Response {
    let body = html! { body.plain { main.sheet id="main" { (content) } } };
    Html(document(title, script, body).into_string()).into_response()
}

/// How soon a page that the desk could not answer is asked for again by itself, in seconds.
const AGAIN: HeaderValue = HeaderValue::from_static("5");

/// A page that says why there is no other one.
pub(super) fn fault(error: &Error) -> Response {
    let mut response = sheet(title_of(error), "sign-in.js", why_not(error));
    if error.code == Code::Unavailable {
        response.headers_mut().insert(REFRESH, AGAIN);
    }
    response
}

/// The same with what is around every page.
pub(super) async fn show_fault(visit: &Visit, error: &Error) -> Result<Response, Fault> {
    let body = html! { div.alone { (why_not(error)) } };
    show(visit, Page { title: title_of(error), place: Place::Other, topics: "", body }).await
}

fn title_of(error: &Error) -> &'static str {
    match error.code {
        Code::NotFound => "There is no such thing here",
        Code::Forbidden => "This is not for you",
        Code::Unavailable => "The desk cannot answer now",
        _ => "That did not work",
    }
}

fn why_not(error: &Error) -> Markup {
    html! {
        h1 { (title_of(error)) }
        p { (super::ui::said(&error.message)) }
        @if let Some(hint) = &error.hint { p { (super::ui::said(hint)) } }
        @if let Some(incident) = &error.incident { p { "The desk's log tells more under " code { (incident) } "." } }
        p { a href="/" { "Back to the inbox" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_desk_that_cannot_answer_is_asked_again() {
        let again = |code| fault(&Error::new(code, "why")).headers().get(REFRESH).cloned();
        assert_eq!((again(Code::Unavailable), again(Code::NotFound)), (Some(AGAIN), None));
    }
}
