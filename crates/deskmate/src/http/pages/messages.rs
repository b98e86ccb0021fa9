//! Conversations between agents and people: which there are, and beside them the one that is open.

use std::collections::BTreeSet;

use axum::Router;
use axum::extract::Query;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::Shared;
use super::parties::{Group, Parties};
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, block, choice, empty, field, part, said, tabs, time};
use super::visit::{Fault, Visit};

/// How many of those who take part a heading names.
const NAMED_MAX: usize = 5;
/// How many messages can be acknowledged at once.
const ACKNOWLEDGED_MAX: usize = 200;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/messages", get(serve)).route("/messages/groups", get(groups))
}

const TABS: [(&str, &str); 2] = [("/messages", "Conversations"), ("/messages/groups", "Groups")];

/// What the address of the page says.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Open {
    view: String,
    thread: String,
    /// To whom a new message is to be written; `-` if that is still open.
    write: String,
    rows: String,
    cursor: String,
    /// How many messages of the conversation, and from where on.
    shown: String,
    earlier: String,
}

impl Open {
    fn address(&self) -> String {
        let list = [("view", &self.view), ("rows", &self.rows), ("cursor", &self.cursor)];
        let beside = [("thread", &self.thread), ("write", &self.write), ("shown", &self.shown), ("earlier", &self.earlier)];
        let pairs: Vec<(&str, &str)> = list.into_iter().chain(beside).map(|(name, value)| (name, value.as_str())).collect();
        ui::address("/messages", &pairs)
    }

    /// The same with so many conversations, from a cursor on if one is given.
    fn from(&self, rows: String, cursor: Option<&str>) -> String {
        Self { rows, cursor: cursor.unwrap_or(&self.cursor).to_owned(), ..self.clone() }.address()
    }

    /// The same with so many messages, from a cursor on if one is given.
    fn shown_from(&self, shown: String, cursor: Option<&str>) -> String {
        Self { shown, earlier: cursor.unwrap_or(&self.earlier).to_owned(), ..self.clone() }.address()
    }

    /// The same list with nothing open beside it.
    fn closed(&self) -> Self {
        Self { thread: String::new(), write: String::new(), shown: String::new(), earlier: String::new(), ..self.clone() }
    }
}

#[derive(Deserialize)]
struct Thread {
    thread: String,
    project: String,
    opening: Excerpt,
    latest: Excerpt,
    waiting: u32,
}

#[derive(Deserialize)]
struct Excerpt {
    sender: String,
    verified: bool,
    to: String,
    priority: String,
    text: Option<String>,
    created_at: String,
}

#[derive(Deserialize)]
struct Message {
    message_id: String,
    project: String,
    sender: String,
    verified: bool,
    origin: String,
    trust: String,
    to: String,
    reply_to: Option<String>,
    priority: String,
    content: Option<String>,
    created_at: String,
    receipts: Vec<Receipt>,
}

#[derive(Deserialize)]
struct Receipt {
    recipient: String,
    acknowledged_at: Option<String>,
}

async fn serve(visit: Visit, Query(open): Query<Open>) -> Result<Response, Fault> {
    let parties = Parties::load(&visit).await?;
    let wanted = json!({ "waiting": open.view == "waiting" });
    let (threads, next) = visit.gather_from::<Thread>("desk_thread_list", "threads", wanted, ui::rows(&open.rows), &open.cursor).await?;
    let seen: Vec<&str> =
        threads.iter().flat_map(|thread| [&thread.opening, &thread.latest]).flat_map(|said| [said.sender.as_str(), said.to.as_str()]).collect();
    let detail = match open.thread.as_str() {
        "" if !visit.writes() => html! { p.hint { "Choose a conversation. Your role looks on; from member on people write." } },
        "" => compose(&parties, &open, &seen),
        thread => match visit.gather_from::<Message>("desk_thread_get", "messages", json!({ "thread": thread }), ui::rows(&open.shown), &open.earlier).await {
            Ok((messages, next)) => conversed(&visit, &parties, &open, &messages, next.as_deref()),
            Err(fault) => html! { p.hint { (said(fault.message())) } },
        },
    };
    let is_open = !open.thread.is_empty() || !open.write.is_empty();
    let body = html! {
        h1.unseen { "Messages" }
        (tabs(&TABS, "/messages"))
        div.split data-open=[is_open.then_some("detail")] {
            section.list aria-label="Conversations" {
                (bar(&visit, &open))
                @if !open.cursor.is_empty() { (ui::back_to_first(&open.from(String::new(), Some("")))) }
                (listed(&visit, &parties, &open, &threads))
                (ui::onward(ui::rows(&open.rows), next.as_deref(), |rows, cursor| open.from(rows, cursor)))
            }
            section.detail id="detail" aria-label="The conversation that is open" {
                @if is_open { a.back href=(open.closed().address()) data-in-place data-key="Escape" { "Back to the list" } }
                (detail)
            }
        }
    };
    shell::show(&visit, Page { title: "Messages", place: Place::Messages, topics: "message group person agent", body }).await
}

const VIEWS: [(&str, &str); 2] = [("", "All conversations"), ("waiting", "Waits for me")];

fn bar(visit: &Visit, open: &Open) -> Markup {
    let write = Open { write: "-".to_owned(), ..open.closed() }.address();
    html! {
        form.filters data-filters {
            select name="view" aria-label="Which conversations" {
                @for (value, label) in VIEWS { option value=(value) selected[value == open.view] { (label) } }
            }
            @if visit.writes() { a.button href=(write) data-in-place data-key="n" { "Write " kbd { "n" } } }
        }
    }
}

fn listed(visit: &Visit, parties: &Parties, open: &Open, threads: &[Thread]) -> Markup {
    match (threads, open.view.as_str()) {
        ([], "waiting") => empty("Nothing waits for you", html! { p { a href="/messages" data-in-place { "Show all conversations" } } }),
        ([], _) => empty(
            "Nobody has written yet",
            html! {
                p { "Agents write to each other and to you, and what they write is here. " @if visit.writes() { "Write to one yourself, or let one begin:" } @else { "One begins like this:" } }
                pre.block { "deskmate call bridge_send_message --agent code to=cowork content='The build is green.'" }
            },
        ),
        _ => html! { ol.rows id="rows" { @for thread in threads { (line(parties, open, thread)) } } },
    }
}

fn line(parties: &Parties, open: &Open, thread: &Thread) -> Markup {
    let is_open = open.thread == thread.thread;
    let address = Open { thread: thread.thread.clone(), ..open.closed() }.address();
    let latest = &thread.latest;
    html! {
        li id={ "row-" (thread.thread) } {
            a href=(address) data-in-place data-row aria-current=[is_open.then_some("true")] {
                span.title { (said(thread.opening.text.as_deref().unwrap_or("erased"))) }
                span.meta {
                    (parties.who(&latest.sender)) @if !latest.verified { " (unverified)" }
                    " to " (parties.who(&latest.to)) " · " (time(&latest.created_at))
                }
                @if latest.created_at != thread.opening.created_at { span.excerpt { (said(latest.text.as_deref().unwrap_or("erased"))) } }
                span.badges {
                    @if thread.waiting > 0 { (badge(Tone::Warning, &format!("{} for you", thread.waiting))) }
                    @if latest.priority != "normal" { (badge(Tone::of_priority(&latest.priority), &latest.priority)) }
                    @if thread.project != "default" { span.badge { (said(&thread.project)) } }
                }
            }
        }
    }
}

const PRIORITIES: [(&str, &str); 4] = [("", "Normal"), ("low", "Low"), ("high", "High"), ("urgent", "Urgent")];

/// A new message.
fn compose(parties: &Parties, open: &Open, seen: &[&str]) -> Markup {
    let to = if open.write == "-" { "" } else { parties.address(&open.write) };
    html! {
        article id="write" {
            h2 { "Write a message" }
            p.hint { "Agents get it when they read their messages, marked as written by a person. It waits until they acknowledge it." }
            form data-call="bridge_send_message" data-done="Sent" data-opens="/messages?thread={thread}" data-reset {
                (parties.choose("write-to", "To", "to", to, seen))
                (field("write-content", "Message", html! { textarea id="write-content" name="content" required rows="5" {} }))
                details id="write-more" {
                    summary { "Priority and project" }
                    (field("write-priority", "Priority", choice("write-priority", "priority", &PRIORITIES, "")))
                    (field("write-project", "Project", html! { input id="write-project" name="project" placeholder="default" maxlength="128"; }))
                }
                button { "Send" }
            }
        }
    }
}

/// The conversation that is open, newest message first, with an answer on top.
fn conversed(visit: &Visit, parties: &Parties, open: &Open, messages: &[Message], next: Option<&str>) -> Markup {
    let unread = unread(visit, messages);
    html! {
        article id={ "thread-" (open.thread) } {
            h2 { "Between " (taking_part(parties, messages)) }
            @if !unread.is_empty() && visit.writes() {
                form.acts data-call="bridge_acknowledge_messages" data-done="Marked as read" {
                    input type="hidden" name="message_ids" value=(Value::from(unread.clone())) data-as="json";
                    button data-key="a" { "Mark " (unread.len()) " as read " kbd { "a" } }
                }
            }
            @if !open.earlier.is_empty() { (ui::back_to_first(&open.shown_from(String::new(), Some("")))) }
            @else if let Some(newest) = messages.first().filter(|_| visit.writes()) { (answer(visit, parties, open, newest)) }
            ol.thread id={ "messages-" (open.thread) } { @for message in messages { (shown(visit, parties, message)) } }
            (ui::onward(ui::rows(&open.shown), next, |shown, cursor| open.shown_from(shown, cursor)))
        }
    }
}

/// Who wrote the messages that are shown and whom they are for.
fn taking_part(parties: &Parties, messages: &[Message]) -> Markup {
    let all: BTreeSet<&str> = messages.iter().flat_map(|message| [message.sender.as_str(), message.to.as_str()]).collect();
    let others = all.len().saturating_sub(NAMED_MAX);
    html! {
        @for (index, id) in all.into_iter().take(NAMED_MAX).enumerate() { @if index > 0 { ", " } (parties.who(id)) }
        @if others > 0 { " and " (others) " more" }
    }
}

/// Which of the messages wait for whoever looks.
fn unread(visit: &Visit, messages: &[Message]) -> Vec<String> {
    let waits = |message: &&Message| message.receipts.iter().any(|receipt| receipt.recipient == visit.you.id && receipt.acknowledged_at.is_none());
    messages.iter().filter(waits).take(ACKNOWLEDGED_MAX).map(|message| message.message_id.clone()).collect()
}

/// Whom an answer goes to: the group that talks, else whoever wrote last, else whom one wrote to oneself.
fn answered<'m>(visit: &Visit, newest: &'m Message) -> &'m str {
    if newest.to.starts_with("group:") || newest.sender == visit.you.id { &newest.to } else { &newest.sender }
}

fn answer(visit: &Visit, parties: &Parties, open: &Open, newest: &Message) -> Markup {
    let id = &open.thread;
    html! {
        details.answer id={ "answer-" (id) } {
            summary data-key="r" { "Answer " kbd { "r" } }
            form data-call="bridge_send_message" data-done="Sent" data-reset {
                input type="hidden" name="reply_to" value=(newest.message_id);
                (parties.choose("answer-to", "To", "to", parties.address(answered(visit, newest)), &[&newest.sender, &newest.to]))
                (field("answer-content", "Message", html! { textarea id="answer-content" name="content" required rows="4" {} }))
                (field("answer-priority", "Priority", choice("answer-priority", "priority", &PRIORITIES, "")))
                button { "Send" }
            }
        }
    }
}

/// One message: who wrote it and what is known of them first, then what they wrote, as data.
fn shown(visit: &Visit, parties: &Parties, message: &Message) -> Markup {
    let is_own = message.sender == visit.you.id;
    html! {
        li.message id={ "message-" (message.message_id) } {
            p.meta {
                strong { @if is_own { "You" } @else { (parties.who(&message.sender)) } }
                " to " @if message.to == visit.you.id { "you" } @else { (parties.who(&message.to)) }
                " · " (time(&message.created_at)) " · over " (message.origin)
                @if message.project != "default" { " · project " (said(&message.project)) }
                @if message.reply_to.is_some() { " · an answer" }
            }
            p.badges {
                span class=(if message.verified { "badge good" } else { "badge warning" }) { (said(&message.trust)) }
                @if message.priority != "normal" { (badge(Tone::of_priority(&message.priority), &message.priority)) }
                (receipts(visit, parties, &message.receipts))
            }
            @match &message.content { Some(text) => { (block(text)) } None => { p.hint { "erased" } } }
        }
    }
}

/// Who has read a message: by name where it is one, counted where they are many.
fn receipts(visit: &Visit, parties: &Parties, receipts: &[Receipt]) -> Markup {
    let name = |receipt: &Receipt| {
        if receipt.recipient == visit.you.id {
            html! { "you" }
        } else {
            parties.who(&receipt.recipient)
        }
    };
    match receipts {
        [] => Markup::default(),
        [one] => html! {
            span.deadline { @match &one.acknowledged_at { Some(at) => { "read by " (name(one)) " " (time(at)) } None => { "waits for " (name(one)) } } }
        },
        many => html! {
            details.deadline {
                summary { (many.iter().filter(|receipt| receipt.acknowledged_at.is_some()).count()) " of " (many.len()) " have read it" }
                ul { @for receipt in many { li { (name(receipt)) @match &receipt.acknowledged_at { Some(at) => { " " (time(at)) } None => { ": waits" } } } } }
            }
        },
    }
}

async fn groups(visit: Visit) -> Result<Response, Fault> {
    let parties = Parties::load(&visit).await?;
    let body = html! {
        h1.unseen { "Groups" }
        (tabs(&TABS, "/messages/groups"))
        div.alone {
            h2 { "Groups" }
            p.hint { "What is sent to a group reaches all of its members; a task for a group is claimed by one of them. Members that a person set are not replaced by agents without a person's word." }
            @if parties.groups.is_empty() { (empty("There is no group yet", html! { p { @if visit.writes() { "Make one below" } @else { "From member on people make them" } ", for example " code { "reviewers" } ", and write to " code { "group:reviewers" } "." } })) }
            ul.cards id="groups" { @for group in &parties.groups { (grouped(&visit, &parties, group)) } }
            @if parties.more_groups { p.hint { "There are more groups than are shown; " code { "deskmate call bridge_list_groups" } " lists them all." } }
            @if visit.writes() { (new_group()) }
        }
    };
    shell::show(&visit, Page { title: "Groups", place: Place::Messages, topics: "group person agent", body }).await
}

fn new_group() -> Markup {
    part(
        "A new group",
        html! {
            form data-call="bridge_set_group" data-done="The group is made" data-reset {
                (field("group-name", "Name", html! { input id="group-name" name="name" required maxlength="128" placeholder="reviewers"; }))
                (members("group-members", ""))
                button { "Make the group" }
            }
        },
    )
}

fn members(id: &str, now: &str) -> Markup {
    field(id, "Members: agents and people, with commas between", html! { textarea id=(id) name="members" data-as="list" rows="2" { (now) } })
}

fn grouped(visit: &Visit, parties: &Parties, group: &Group) -> Markup {
    let now = group.members.iter().map(|member| parties.address(member)).collect::<Vec<_>>().join(", ");
    let write = Open { write: format!("group:{}", group.name), ..Open::default() }.address();
    html! {
        li.card id={ "group-" (group.name) } {
            h3 { (said(&group.name)) }
            p {
                @for (index, member) in group.members.iter().enumerate() { @if index > 0 { ", " } (parties.who(member)) }
                @if group.members.is_empty() { "Nobody is in it." }
            }
            p.meta {
                "made by " (parties.who(&group.owner)) " · set " (time(&group.updated_at))
                @if !group.set_by_people.is_empty() { " " (badge(Tone::Quiet, "members set by a person")) }
            }
            @if visit.writes() {
                div.acts {
                    a.button href=(write) { "Write to it" }
                    details id={ "change-" (group.name) } {
                        summary { "Change members" }
                        form data-call="bridge_set_group" data-done="The members are set" {
                            input type="hidden" name="name" value=(group.name);
                            (members(&format!("members-{}", group.name), &now))
                            button { "Set the members" }
                        }
                    }
                }
            }
        }
    }
}
