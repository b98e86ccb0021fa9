//! One task: what is to be done, how far it is, and what a person can do with it.

use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::parties::Parties;
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, block, choice, fact, field, more, part, said, short, spaced, time};
use super::visit::{Fault, Visit};

/// How many notes a page begins with, and how many more it shows at once.
const NOTES: usize = 50;
const NOTES_MAX: usize = 200;

pub(super) const PRIORITIES: [(&str, &str); 4] = [("", "Normal"), ("low", "Low"), ("high", "High"), ("urgent", "Urgent")];
const NEW_PRIORITIES: [(&str, &str); 4] = [("low", "Low"), ("normal", "Normal"), ("high", "High"), ("urgent", "Urgent")];

/// Who works on a task, and until when without a sign of life.
#[derive(Deserialize)]
pub(super) struct Lease {
    pub(super) holder: String,
    pub(super) expires_at: String,
}

/// What `bridge_get_task` answers.
#[derive(Deserialize)]
struct Detail {
    task: Task,
    edits: Vec<Edit>,
    blockers: Vec<Blocker>,
    notes: Vec<Note>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Task {
    task_id: String,
    project: String,
    sender: String,
    verified: bool,
    origin: String,
    trust: String,
    recipient: String,
    title: Option<String>,
    description: Option<String>,
    status: String,
    priority: String,
    open_blockers: i64,
    ready: bool,
    deadline: Option<String>,
    overdue: bool,
    thread: Option<String>,
    result: Option<String>,
    result_by: Option<String>,
    result_trust: Option<String>,
    worker: Option<String>,
    lease: Option<Lease>,
    attempt: i64,
    created_at: String,
    updated_at: String,
    finished_at: Option<String>,
    #[serde(default)]
    set_by_people: Vec<String>,
}

impl Task {
    fn is_final(&self) -> bool {
        self.finished_at.is_some()
    }
}

#[derive(Deserialize)]
struct Edit {
    field: String,
    set_by: String,
    set_at: String,
}

#[derive(Deserialize)]
struct Blocker {
    task_id: String,
    status: String,
    open: bool,
    why: Option<String>,
    /// What it is about, as the page looked it up.
    #[serde(skip)]
    title: Option<String>,
}

/// What of another task is shown.
#[derive(Deserialize)]
struct Named {
    task: Titled,
}

#[derive(Deserialize)]
struct Titled {
    title: Option<String>,
}

/// Of how many tasks that one waits for the page looks up what they are about.
const TITLES: usize = 20;

#[derive(Deserialize)]
struct Note {
    note_id: String,
    actor: String,
    trust: String,
    note: Option<String>,
    erased: bool,
    percent: Option<i64>,
    created_at: String,
}

/// What the address of the page says.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Shown {
    notes: String,
}

pub(super) async fn serve(visit: Visit, Path(id): Path<String>, Query(shown): Query<Shown>) -> Result<Response, Fault> {
    let limit = shown.notes.parse().unwrap_or(NOTES).clamp(NOTES, NOTES_MAX);
    let mut detail: Detail = visit.ask("bridge_get_task", json!({ "task_id": id, "limit": limit })).await?;
    for blocker in detail.blockers.iter_mut().take(TITLES) {
        let named: Named = visit.ask("bridge_get_task", json!({ "task_id": blocker.task_id, "limit": 1 })).await?;
        blocker.title = named.task.title;
    }
    let parties = Parties::load(&visit).await?;
    let (task, title) = (&detail.task, detail.task.title.as_deref().unwrap_or("This task was erased"));
    let body = html! {
        div.alone {
            h1.unseen { "Task" }
            p { a href="/tasks" data-key="Escape" { "All tasks" } }
            article id={ "task-" (task.task_id) } {
                header {
                    h2 { (said(title)) }
                    (heading(&parties, task))
                }
                @if visit.writes() { (acts(&visit, &parties, task)) }
                (facts(&parties, task))
                @if let Some(text) = task.description.as_deref().filter(|text| !text.is_empty()) { (part("What is to be done", block(text))) }
                (result(&parties, task))
                (blockers(&visit, task, &detail.blockers))
                (notes(&parties, task, &detail, limit))
                (edits(&parties, &detail.edits))
                footer.meta {
                    a href={ "/case/task/" (task.task_id) } { "All that happened with it" }
                    " · id " code { (task.task_id) }
                }
            }
        }
    };
    let topics = format!("task group person task:{id}");
    let title = crate::visible::visible(title);
    shell::show(&visit, Page { title: &title, place: Place::Tasks, topics: &topics, body }).await
}

fn heading(parties: &Parties, task: &Task) -> Markup {
    html! {
        p.meta {
            strong { (parties.who(&task.sender)) } " to " strong { (parties.who(&task.recipient)) }
            " · " (time(&task.created_at)) " · over " (task.origin)
            @if task.project != "default" { " · project " (said(&task.project)) }
        }
        p.badges {
            (badge(Tone::of_state(&task.status), &task.status))
            span class=(if task.verified { "badge" } else { "badge warning" }) { (said(&task.trust)) }
            @if task.priority != "normal" { (badge(Tone::of_priority(&task.priority), &task.priority)) }
            @if task.overdue { (badge(Tone::Alarm, "overdue")) }
            @if task.ready { (badge(Tone::Quiet, "can be claimed")) }
            @if task.open_blockers > 0 { (badge(Tone::Warning, &format!("waits for {}", task.open_blockers))) }
        }
        @if !task.set_by_people.is_empty() {
            p.meta { "Set by people, so that agents do not overwrite it without a person's word: " (task.set_by_people.iter().map(|field| spaced(field)).collect::<Vec<_>>().join(", ")) "." }
        }
    }
}

fn facts(parties: &Parties, task: &Task) -> Markup {
    html! {
        dl.facts {
            @if let Some(lease) = &task.lease { (fact("Works on it", html! { (parties.who(&lease.holder)) ", until " (time(&lease.expires_at)) })) }
            @else if let Some(worker) = &task.worker { (fact("Claimed last by", parties.who(worker))) }
            @if task.attempt > 1 { (fact("Claimed", html! { (task.attempt) " times" })) }
            @if let Some(deadline) = &task.deadline { (fact("Due", time(deadline))) }
            (fact("Last change", time(&task.updated_at)))
            @if let Some(at) = &task.finished_at { (fact("Finished", time(at))) }
            @if let Some(thread) = &task.thread { (fact("Conversation", html! { a href=(ui::address("/messages", &[("thread", thread)])) { "Open" } })) }
        }
    }
}

fn result(parties: &Parties, task: &Task) -> Markup {
    let Some(text) = &task.result else { return Markup::default() };
    let title = match task.status.as_str() {
        "input_needed" => "What it needs to know",
        "failed" => "What went wrong",
        "rejected" | "cancelled" => "Why",
        _ => "Result",
    };
    part(
        title,
        html! {
            @if let Some(by) = &task.result_by {
                p.meta { (parties.who(by)) @if let Some(trust) = &task.result_trust { " " span.badge { (said(trust)) } } }
            }
            (block(text))
        },
    )
}

/// What can be done with a task.
fn acts(visit: &Visit, parties: &Parties, task: &Task) -> Markup {
    let id = &task.task_id;
    let hidden = html! { input type="hidden" name="task_id" value=(id); };
    html! {
        div.acts {
            details id={ "note-" (id) } {
                summary data-key="c" { "Add a note " kbd { "c" } }
                form data-call="bridge_add_task_note" data-done="Noted" data-reset {
                    (hidden)
                    (field("note", "Note", html! { textarea id="note" name="note" required rows="3" {} }))
                    button { "Add the note" }
                }
            }
            @if task.status == "input_needed" {
                details id={ "answer-" (id) } {
                    summary data-key="a" { "Answer " kbd { "a" } }
                    form data-call="bridge_update_task" data-done="Answered; it can be claimed again" data-reset {
                        (hidden)
                        input type="hidden" name="status" value="pending";
                        (field("answer", "Your answer", html! { textarea id="answer" name="result" required rows="3" {} }))
                        button { "Answer" }
                    }
                }
            }
            @if !task.is_final() {
                (edit(parties, task, &hidden))
                (work(visit, task, &hidden))
                details id={ "cancel-" (id) } {
                    summary { "Cancel" }
                    form data-call="bridge_update_task" data-done="Cancelled" {
                        (hidden)
                        input type="hidden" name="status" value="cancelled";
                        (field("cancel-reason", "Why", html! { textarea id="cancel-reason" name="result" rows="2" {} }))
                        button.alarm { "Cancel the task" }
                    }
                }
            }
        }
    }
}

/// What a task says, to change. What a person sets here, agents do not overwrite without a person's word.
fn edit(parties: &Parties, task: &Task, hidden: &Markup) -> Markup {
    let id = &task.task_id;
    html! {
        details id={ "edit-" (id) } {
            summary data-key="e" { "Change " kbd { "e" } }
            form data-call="bridge_update_task" data-done="Changed" data-changed data-reset {
                (hidden)
                (field("edit-title", "Title", html! { input id="edit-title" name="title" value=[task.title.as_deref()] required maxlength="200"; }))
                (field("edit-description", "What is to be done", html! { textarea id="edit-description" name="description" data-as="text" rows="5" { (task.description.as_deref().unwrap_or_default()) } }))
                (field("edit-priority", "Priority", choice("edit-priority", "priority", &NEW_PRIORITIES, &task.priority)))
                (field("edit-deadline", "A new deadline", html! { input id="edit-deadline" name="deadline" type="datetime-local" data-as="moment"; }))
                @if task.lease.is_none() { (parties.choose("edit-to", "To", "to", parties.address(&task.recipient), &[&task.recipient, &task.sender])) }
                button { "Change" }
            }
            @if task.deadline.is_some() {
                form data-call="bridge_update_task" data-done="The deadline is taken away" {
                    (hidden)
                    input type="hidden" name="deadline" value="" data-as="text";
                    button.quiet { "Take the deadline away" }
                }
            }
        }
    }
}

/// The work of somebody whom a task was given to.
fn work(visit: &Visit, task: &Task, hidden: &Markup) -> Markup {
    let id = &task.task_id;
    let is_own = task.lease.as_ref().is_some_and(|lease| lease.holder == visit.you.id);
    html! {
        @if task.ready && task.recipient == visit.you.id {
            form data-call="bridge_claim_task" data-done="It is yours" {
                (hidden)
                input type="hidden" name="lease_seconds" value="86400" data-as="json";
                button { "Take it up" }
            }
        }
        @if is_own {
            details id={ "finish-" (id) } {
                summary { "Finish" }
                form data-call="bridge_update_task" data-done="Finished" {
                    (hidden)
                    (field("finish-status", "How it went", choice("finish-status", "status", &[("completed", "Completed"), ("failed", "Failed"), ("pending", "Give it back")], "completed")))
                    (field("finish-result", "Result", html! { textarea id="finish-result" name="result" rows="3" {} }))
                    button { "Finish" }
                }
            }
        }
    }
}

/// What it waits for.
fn blockers(visit: &Visit, task: &Task, blockers: &[Blocker]) -> Markup {
    if blockers.is_empty() {
        return Markup::default();
    }
    part(
        "Waits for",
        html! {
            ul.similar {
                @for blocker in blockers {
                    li id={ "blocker-" (blocker.task_id) } {
                        (badge(if blocker.open { Tone::Warning } else { Tone::Good }, &blocker.status)) " "
                        a href={ "/tasks/" (blocker.task_id) } { @match &blocker.title { Some(title) => (said(title)), None => { "task " code { (short(&blocker.task_id)) } } } }
                        @if let Some(why) = &blocker.why { " " (said(why)) }
                        @if blocker.open && !task.is_final() && visit.writes() {
                            form data-call="bridge_unblock_task" data-done="It no longer waits for that" {
                                input type="hidden" name="task_id" value=(task.task_id);
                                input type="hidden" name="blocker" value=(blocker.task_id);
                                button.quiet { "Go on without it" }
                            }
                        }
                    }
                }
            }
        },
    )
}

/// How far it is, newest first.
fn notes(parties: &Parties, task: &Task, detail: &Detail, limit: usize) -> Markup {
    if detail.notes.is_empty() {
        return Markup::default();
    }
    part(
        "Notes",
        html! {
            @if let Some(percent) = detail.notes.iter().find_map(|note| note.percent) {
                p { progress max="100" value=(percent) aria-label="How much is done" {} " " (percent) " %" }
            }
            ol.thread {
                @for note in &detail.notes {
                    li id={ "note-" (note.note_id) } {
                        p.meta {
                            (parties.who(&note.actor)) " " span.badge { (said(&note.trust)) } " · " (time(&note.created_at))
                            @if let Some(percent) = note.percent { " · " (percent) " %" }
                        }
                        @if note.erased { p.hint { "erased" } }
                        @if let Some(text) = note.note.as_deref().filter(|text| !text.is_empty()) { (block(text)) }
                    }
                }
            }
            @if detail.next_cursor.is_some() {
                @if limit < NOTES_MAX { (more(&ui::address(&format!("/tasks/{}", task.task_id), &[("notes", &(limit + NOTES).to_string())]))) }
                @else { p.hint { "There are older ones; " code { "deskmate call bridge_get_task" } " has them all." } }
            }
        },
    )
}

/// Who set which field last.
fn edits(parties: &Parties, edits: &[Edit]) -> Markup {
    if edits.is_empty() {
        return Markup::default();
    }
    part(
        "Who set what",
        html! {
            ul.similar { @for edit in edits { li { strong { (spaced(&edit.field)) } " by " (parties.who(&edit.set_by)) " " (time(&edit.set_at)) } } }
        },
    )
}
