//! One request: everything that a person needs to decide it, and what can be done with it.

use axum::extract::Path;
use axum::response::Response;
use deskmate_core::parse_time;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::judgement::{Hit, Reason, hits, reasons};
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, block, choice, fact, field, part, percent, plain, said, share, short, spaced, time, words};
use super::visit::{Fault, People, Person, Visit};
use super::{gateway, trust, workspace};
use crate::visible::visible;

/// When a request that waits is about to expire, in microseconds.
const SOON: i64 = 60 * MINUTE;
const MINUTE: i64 = 60 * 1_000_000;
/// The assignee of what went to the owners.
pub(super) const OWNERS: &str = "role:owner";

/// What `desk_request_get` answers.
#[derive(Deserialize)]
pub(super) struct Request {
    request: String,
    title: Option<String>,
    kind: String,
    state: String,
    requester: String,
    requester_kind: String,
    asked_by: Option<String>,
    verified: bool,
    domain: String,
    risk: String,
    priority: String,
    mode: String,
    digest: String,
    created_at: String,
    expires_at: String,
    waits_for: Option<String>,
    snoozed_until: Option<String>,
    overdue: bool,
    assignee: Option<String>,
    approvers: Vec<String>,
    approvals: i64,
    reason_types: Vec<String>,
    usual_reason_type: String,
    quorum: i64,
    break_glass: Option<Glass>,
    may_break_glass: bool,
    deciders: Vec<String>,
    round: i64,
    votes: Vec<Vote>,
    confidence: Option<f64>,
    editable: bool,
    answerable: bool,
    undoable: bool,
    act: Option<Act>,
    changes: Vec<Change>,
    changes_cut: bool,
    proposed: Option<Value>,
    edited_by: Option<String>,
    reasoning: Option<String>,
    reversibility: Option<String>,
    context: Option<Value>,
    hits: Vec<Hit>,
    reasons: Vec<Reason>,
    trust: Option<Trust>,
    notes: Vec<Note>,
    similar: Vec<Similar>,
    grant: Option<Grant>,
    decided_by: Option<String>,
    decided_at: Option<String>,
    reason: Option<String>,
    supersedes: Option<String>,
}

/// How somebody decided alone.
#[derive(Deserialize)]
struct Glass {
    by: String,
    passed_over: Vec<String>,
}

#[derive(Deserialize)]
struct Act {
    #[serde(default)]
    action: String,
    #[serde(default)]
    target: String,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    environment: Option<String>,
    #[serde(default)]
    arguments: Value,
    /// Where what was read before came from.
    #[serde(default)]
    taint: Vec<String>,
}

/// What `desk_taint_list` answers.
#[derive(Deserialize)]
struct Counted {
    items: Vec<CountedOrigin>,
}

#[derive(Deserialize)]
struct CountedOrigin {
    origin: String,
}

#[derive(Deserialize)]
struct Change {
    path: String,
    old: Option<Value>,
    new: Option<Value>,
}

#[derive(Deserialize)]
struct Vote {
    person: String,
    vote: String,
    round: i64,
}

#[derive(Deserialize)]
struct Trust {
    score: f64,
    accuracy: f64,
    sample_size: i64,
    interval: Vec<f64>,
}

#[derive(Deserialize)]
struct Note {
    note: String,
    kind: String,
    by: String,
    at: String,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Similar {
    request: String,
    title: Option<String>,
    state: String,
    created_at: String,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Grant {
    expires_at: String,
    used_at: Option<String>,
    revoked_at: Option<String>,
}

impl Request {
    /// The agent that it would deploy, if it is about that.
    fn deploys(&self) -> Option<&str> {
        self.act.as_ref().filter(|_| self.kind == "deploy").map(|act| act.target.as_str())
    }

    /// Whether somebody asks for it: themselves, or in the agent's name.
    fn is_of(&self, person: &str) -> bool {
        self.asked_by.as_deref() == Some(person) || (self.requester_kind == "person" && self.requester == person)
    }

    /// Whether whoever asks for it never decides it. What only a program asked for with their token they may.
    fn is_for_others(&self) -> bool {
        self.asked_by.is_some() || self.verified
    }

    /// What takes an approval back, if anything does: most kinds take effect when they are approved.
    fn undo(&self) -> Option<&'static str> {
        self.undoable.then_some("desk_request_undo")
    }

    /// The plan that it decides about, if it does.
    fn plan(&self) -> Option<&str> {
        let plan = self.act.as_ref()?.arguments.get("plan")?.as_str();
        plan.filter(|_| self.kind == "plan")
    }
}

pub(super) async fn serve(visit: Visit, Path(id): Path<String>) -> Result<Response, Fault> {
    let request: Request = visit.ask("desk_request_get", json!({ "request": id })).await?;
    let people = visit.people().await?;
    let body = html! { div.alone { h1.unseen { "Request" } (detail(&visit, &people, &request).await) } };
    let topics = format!("trust pause policy taint request:{id}");
    let title = request.title.as_deref().map_or_else(|| "Request".to_owned(), visible);
    shell::show(&visit, Page { title: &title, place: Place::Other, topics: &topics, body }).await
}

/// A request as it is shown beside the list and on a page of its own.
pub(super) async fn detail(visit: &Visit, people: &People, request: &Request) -> Markup {
    let lately = match &request.trust {
        Some(_) => trust::lately(visit, people, &request.requester, &request.domain).await,
        None => Markup::default(),
    };
    html! {
        article.request id={ "request-" (request.request) } {
            header {
                @let title = request.title.as_deref().unwrap_or("This request was erased");
                h2 tabindex=[(title.len() > 100).then_some("0")] { (said(title)) }
                p.meta {
                    strong { (said(&request.requester)) }
                    @if !request.verified { " " (badge(Tone::Warning, ui::unproved(&request.requester_kind))) }
                    " · " (spaced(&request.kind)) " in " (said(&request.domain)) " · " (time(&request.created_at))
                    " " (badge(Tone::of_state(&request.state), &request.state))
                    " " (badge(Tone::of_risk(&request.risk), &format!("risk {}", request.risk)))
                    @if request.priority != "normal" { " " (badge(Tone::Quiet, &request.priority)) }
                    @if request.state == "pending" { (pressing(visit.now(), request.overdue, &request.expires_at)) }
                }
                (standing(people, request))
            }
            @if let Some(agent) = request.deploys() { p { a href={ "/agents/" (ui::segment(agent)) } { "The agent " (said(agent)) ", with its steps in words" } } }
            @let own = request.is_of(&visit.you.id) && visit.writes();
            @if own && request.state == "pending" { (own_acts(request)) }
            @if visit.decides() {
                @if request.state == "pending" && !(own && request.is_for_others()) { (acts(visit, people, request)) }
                @if can_undo(request) { (undo(request)) }
            } @else if request.state == "pending" {
                p.hint { "Your role looks on; approvers and owners decide." }
            }
            @match request.plan() {
                Some(plan) => {
                    (part("What it changes", workspace::steps_of(visit, plan).await))
                    details.part { summary { "As policy sees it" } (what(people, request)) }
                }
                None if request.kind == "handoff" => (packet(people, request)),
                None => (what(people, request)),
            }
            (read_before(visit, request).await)
            @if request.kind == "tool_call" { (gateway::of_request(visit, &request.request).await) }
            @if let Some(text) = &request.reasoning { (part("Why", words(text))) }
            @if let Some(text) = &request.reversibility { (part("If it goes wrong", words(text))) }
            (judged(request, &lately))
            (thread(people, request))
            (before(request))
            footer.meta {
                a href={ "/requests/" (request.request) } { "Page of its own" }
                " · " a href={ "/case/request/" (request.request) } { "Everything that happened to it" }
                " · id " code title=(request.request) { (short(&request.request)) } " · digest " code title=(request.digest) { (request.digest.chars().take(12).collect::<String>()) }
            }
        }
    }
}

/// How it stands, in a sentence.
fn standing(people: &People, request: &Request) -> Markup {
    html! {
        p.standing {
            @match request.waits_for.as_deref() {
                Some("people") => { "Waits for a person until " (time(&request.expires_at)) "." }
                Some("requester") => {
                    "Waits for an answer of " @if request.requester_kind == "agent" { "the agent" } @else { (said(people.name(&request.requester))) }
                    @if let Some(by) = &request.asked_by { " or of " (said(people.name(by))) }
                    "."
                }
                Some("later") => { "Put off until " (time(request.snoozed_until.as_deref().unwrap_or_default())) "." }
                _ => {
                    @if let Some(by) = &request.decided_by { (spaced(&request.state)) " by " (said(people.name(by))) }
                    @if let Some(at) = &request.decided_at { " " (time(at)) }
                    @if let Some(reason) = &request.reason { ": " (said(reason)) }
                }
            }
            @if let Some(glass) = &request.break_glass {
                " " (badge(Tone::Alarm, "glass broken")) " " strong { (said(people.name(&glass.by))) " decided this alone." }
                @if !glass.passed_over.is_empty() { " Passed over: " (said(&names(people, &glass.passed_over))) "." }
            }
            @if request.quorum > 1 { (quorum(people, request)) }
            @if !request.approvers.is_empty() { " Only these decide: " (said(&names(people, &request.approvers))) "." }
            @if let Some(assignee) = &request.assignee { " Given to " (said(given(people, assignee))) "." }
            @if let Some(earlier) = &request.supersedes { " In place of " a href={ "/requests/" (earlier) } { "an earlier one" } "." }
            @if let Some(grant) = &request.grant { " " (granted(grant)) }
        }
    }
}

/// People by name.
fn names<'p>(people: &'p People, ids: impl IntoIterator<Item = &'p String>) -> String {
    ids.into_iter().map(|id| people.name(id)).collect::<Vec<_>>().join(", ")
}

/// Who has approved in this round, and how many are missing.
fn quorum(people: &People, request: &Request) -> Markup {
    let counted: Vec<&String> = request.votes.iter().filter(|vote| vote.vote == "approve" && vote.round == request.round).map(|vote| &vote.person).collect();
    let missing = request.quorum.saturating_sub(request.approvals).max(0);
    html! {
        " " strong { (request.approvals) " of " (request.quorum) " people have approved" }
        @if !counted.is_empty() { ": " (said(&names(people, counted))) }
        @if missing > 0 && request.state == "pending" { ", " (missing) " " (if missing == 1 { "is" } else { "are" }) " missing" }
        "."
        @if request.round > 1 { " It was changed since: what was approved before does not count." }
    }
}

/// Who a request was given to: a person, or whoever has a role.
pub(super) fn given<'p>(people: &'p People, assignee: &'p str) -> &'p str {
    if assignee == OWNERS { "the owners" } else { people.name(assignee) }
}

/// How near the end of a request that waits is: nobody answered in time, or it is about to expire.
pub(super) fn pressing(now: i64, overdue: bool, expires_at: &str) -> Markup {
    let soon = parse_time("expires_at", expires_at).is_ok_and(|at| at - now < SOON);
    html! {
        @if overdue { " " (badge(Tone::Alarm, "overdue")) }
        @if soon { " " (badge(Tone::Alarm, "expires soon")) }
    }
}

pub(super) fn decides(person: &Person) -> bool {
    person.state == "active" && matches!(person.role.as_str(), "owner" | "approver")
}

fn granted(grant: &Grant) -> Markup {
    html! {
        @if let Some(at) = &grant.used_at { "The agent began " (time(at)) "." }
        @else if let Some(at) = &grant.revoked_at { "The approval was taken back " (time(at)) "." }
        @else { "The agent may begin until " (time(&grant.expires_at)) "." }
    }
}

fn can_undo(request: &Request) -> bool {
    request.state == "approved" && request.grant.as_ref().is_some_and(|grant| grant.used_at.is_none() && grant.revoked_at.is_none())
}

fn undo(request: &Request) -> Markup {
    html! {
        form.acts data-call="desk_request_undo" data-done="The approval was taken back" {
            input type="hidden" name="request" value=(request.request);
            button.quiet data-key="u" { "Take the approval back " kbd { "u" } }
        }
    }
}

/// What can be done with a request that waits.
fn acts(visit: &Visit, people: &People, request: &Request) -> Markup {
    let id = &request.request;
    let hidden = html! { input type="hidden" name="request" value=(id); };
    let seen = html! { (hidden) input type="hidden" name="expected_digest" value=(request.digest); };
    let is_handoff = request.kind == "handoff";
    html! {
        div.acts {
            @if is_handoff {
                details id={ "answer-" (id) } {
                    summary data-key="a" { "Answer " kbd { "a" } }
                    form data-call="cowork_resolve_handoff" data-done="Answered" data-next {
                        input type="hidden" name="handoff_id" value=(id);
                        input type="hidden" name="expected_digest" value=(request.digest);
                        (field("resolution", "What you decided", html! { textarea id="resolution" name="resolution" required rows="3" {} }))
                        (field("instructions", "What the agent is to do", html! { textarea id="instructions" name="instructions" rows="3" {} }))
                        label.check { input type="checkbox" name="hand_back" value="true" data-as="json" checked; " Hand the work back to the agent" }
                        button { "Send the answer" }
                    }
                }
            } @else {
                form data-call="desk_request_approve" data-done="Approved" data-undo=[request.undo()] data-next {
                    (seen)
                    button data-key="a" { "Approve " kbd { "a" } }
                }
                @if request.editable { (edit(request, &seen)) }
            }
            details id={ "reject-" (id) } {
                summary data-key="r" { "Reject " kbd { "r" } }
                form data-call="desk_request_reject" data-done="Rejected" data-next {
                    (seen)
                    (field("reject-reason", "Why, for the agent to learn from", html! { textarea id="reject-reason" name="reason" rows="2" {} }))
                    (field("reject-type", "What was wrong", choice("reject-type", "type", &wrong(&request.reason_types, &request.usual_reason_type), &request.usual_reason_type)))
                    (field("reject-severity", "How bad", choice("reject-severity", "severity", &SEVERITIES, "")))
                    button.alarm { "Reject" }
                }
            }
            (ask(request, &seen))
            details id={ "delegate-" (id) } {
                summary data-key="d" { "Give away " kbd { "d" } }
                (give(visit, people, request, &seen))
            }
            @if given_to(request).is_some() {
                form data-call="desk_request_delegate" data-done="It is nobody's in particular any more" data-undo="desk_request_delegate" data-undo-to=[given_to(request)] { (seen) button.quiet { "Take it back" } }
            }
            details id={ "snooze-" (id) } {
                summary data-key="s" { "Put off " kbd { "s" } }
                form data-call="desk_request_snooze" data-done="Put off" data-undo="desk_request_snooze" data-next {
                    (hidden)
                    (until(visit.now(), &request.expires_at))
                    button { "Put off" }
                }
            }
            @if request.waits_for.as_deref() == Some("later") {
                form data-call="desk_request_snooze" data-done="It waits again" { (hidden) button.quiet { "Take up again" } }
            }
            @if request.undoable && request.plan().is_none() && request.requester_kind == "agent" { (remember(request, &seen)) }
            @if request.may_break_glass { (break_glass(request, &seen)) }
        }
    }
}

/// Asking before deciding, and taking the question back where no answer comes.
fn ask(request: &Request, seen: &Markup) -> Markup {
    html! {
        @if request.answerable {
            details id={ "ask-" (request.request) } {
                summary data-key="q" { "Ask " kbd { "q" } }
                form data-call="desk_request_ask" data-done="Asked; it comes back with the answer" data-undo="desk_request_ask" data-next {
                    (seen)
                    (field("question", "What you want to know", html! { textarea id="question" name="question" required rows="2" {} }))
                    button { "Ask" }
                }
            }
        }
        @if request.waits_for.as_deref() == Some("requester") {
            form data-call="desk_request_ask" data-done="It waits for no answer any more" { (seen) button.quiet { "Do not wait for the answer" } }
        }
    }
}

/// What whoever asks for it can do: answer what they were asked, and take it back.
fn own_acts(request: &Request) -> Markup {
    let id = &request.request;
    let hidden = html! { input type="hidden" name="request_id" value=(id); };
    html! {
        p.hint { @if request.is_for_others() { "You ask for this, so somebody else decides." } @else { "A program asked for this with a token of yours." } }
        div.acts {
            @if request.waits_for.as_deref() == Some("requester") {
                details id={ "own-answer-" (id) } open {
                    summary { "Answer the question" }
                    form data-call="cowork_answer_question" data-done="Answered; it waits for people again" {
                        (hidden)
                        (field("own-answer", "Your answer", html! { textarea id="own-answer" name="answer" required rows="3" {} }))
                        button { "Send your answer" }
                    }
                }
            }
            details id={ "withdraw-" (id) } {
                summary { "Withdraw" }
                form data-call="cowork_cancel_request" data-done="Withdrawn" {
                    (hidden)
                    (field("withdraw-reason", "Why it is no longer needed", html! { input id="withdraw-reason" name="reason"; }))
                    button.alarm { "Withdraw the request" }
                }
            }
        }
    }
}

/// To whom a request can be given: whoever else may decide it.
fn give(visit: &Visit, people: &People, request: &Request, seen: &Markup) -> Markup {
    let others: Vec<&Person> = people.people.iter().filter(|person| request.deciders.contains(&person.person) && person.person != visit.you.id).collect();
    if others.is_empty() {
        return html! { p.hint { "Nobody else decides in " (visible(&request.domain)) ". " a href="/people" { "Invite an approver" } " to give it to." } };
    }
    html! {
        form data-call="desk_request_delegate" data-done="Given away" data-undo=[takes_back(request)] data-undo-to=[given_to(request)] data-next {
            (seen)
            (field("delegate-to", "To whom", html! {
                select id="delegate-to" name="to" required { @for person in others { option value=(person.person) { (visible(&person.name)) } } }
            }))
            (field("delegate-note", "A word to them", html! { input id="delegate-note" name="note"; }))
            button { "Give away" }
        }
    }
}

/// The person that a request was given to.
fn given_to(request: &Request) -> Option<&str> {
    request.assignee.as_deref().filter(|assignee| *assignee != OWNERS)
}

/// What takes the giving away back. What went to the owners because it waited too long is not theirs again by that, so there is no undo.
fn takes_back(request: &Request) -> Option<&'static str> {
    (request.assignee.as_deref() != Some(OWNERS)).then_some("desk_request_delegate")
}

const LATER: [(i64, &str); 5] =
    [(60, "in an hour"), (4 * 60, "in four hours"), (24 * 60, "tomorrow"), (3 * 24 * 60, "in three days"), (7 * 24 * 60, "in a week")];
/// How long somebody may look at the page before what it offers is too late, in microseconds.
const LOOKING: i64 = 10 * MINUTE;

/// Until when a request can be put off: before it expires, a few moments at choice or one of one's own.
fn until(now: i64, expires_at: &str) -> Markup {
    let end = parse_time("expires_at", expires_at).unwrap_or(now);
    let before: Vec<_> = LATER.iter().filter(|(minutes, _)| now + minutes * MINUTE + LOOKING < end).collect();
    html! {
        @if !before.is_empty() {
            (field("snooze-until", "Until", html! {
                select id="snooze-until" name="until" data-as="later" { @for (minutes, words) in &before { option value=(minutes) { (words) } } }
            }))
        }
        (field("snooze-moment", if before.is_empty() { "Until" } else { "Or until a moment of your own" }, html! {
            input id="snooze-moment" name="until" type="datetime-local" data-as="moment" required[before.is_empty()];
        }))
        p.hint { "It expires " (time(expires_at)) "." }
    }
}

/// Deciding alone, in an emergency.
fn break_glass(request: &Request, seen: &Markup) -> Markup {
    html! {
        details id={ "glass-" (request.request) } {
            summary { "Break the glass" }
            p.hint { "For an emergency: you decide alone what needs others. They are all told, with your reason, and the record keeps it." }
            form data-call="desk_request_break_glass" data-done="Approved by you alone; the others are told" data-undo=[request.undo()] data-next {
                (seen)
                (field("glass-reason", "Why nobody can be waited for", html! { textarea id="glass-reason" name="reason" required rows="2" {} }))
                button.alarm { "Approve alone" }
            }
        }
    }
}

/// The types that a rejection may have, the usual one first. Those of the domain's own are their names.
fn wrong<'a>(types: &'a [String], usual: &'a str) -> Vec<(&'a str, &'a str)> {
    let others = types.iter().map(String::as_str).filter(|kind| *kind != usual);
    let named = |kind: &'a str| match kind {
        "agent_wrong" => "The agent erred",
        "human_preference" => "I want it otherwise",
        "missing_context" => "It could not know",
        "policy_change" => "The rules changed; costs no trust",
        "edge_case" => "It was unusual",
        own => own,
    };
    std::iter::once(usual).chain(others).map(|kind| (kind, named(kind))).collect()
}

const SEVERITIES: [(&str, &str); 5] = [("", "As usual"), ("low", "Little"), ("medium", "Medium"), ("high", "High"), ("critical", "Critical")];

/// The arguments as fields, to change before approving; what has no fields as a whole.
fn edit(request: &Request, seen: &Markup) -> Markup {
    let Some(arguments) = request.act.as_ref().map(|act| &act.arguments).filter(|arguments| !arguments.is_null()) else { return Markup::default() };
    let named = arguments.as_object().filter(|fields| !fields.is_empty());
    let fields: Vec<(String, &str, &Value)> = match named {
        Some(fields) => fields.iter().map(|(name, value)| (format!("edits.{name}"), name.as_str(), value)).collect(),
        None => vec![("edits".to_owned(), "All of it", arguments)],
    };
    html! {
        details id={ "edit-" (request.request) } {
            summary data-key="e" { "Edit, then approve " kbd { "e" } }
            form data-whole data-call="desk_request_approve" data-done="Approved as you edited it" data-undo=[request.undo()] data-next {
                (seen)
                @for (name, label, value) in &fields {
                    @let id = format!("edit-{label}");
                    (field(&id, &visible(label), html! {
                        textarea id=(id) name=(name) data-as=(if value.is_string() { "text" } else { "json" }) rows=(rows(value)) data-original=(value) { "\n" (plain(value)) }
                    }))
                }
                button { "Approve as edited" }
            }
        }
    }
}

fn rows(value: &Value) -> usize {
    plain(value).lines().count().clamp(1, 12)
}

/// Approving for acts like it as well.
fn remember(request: &Request, seen: &Markup) -> Markup {
    html! {
        details id={ "remember-" (request.request) } {
            summary { "Approve more like it" }
            form data-call="desk_request_approve" data-done="Approved, and acts like it for a while" data-undo=[request.undo()] data-next {
                (seen)
                input type="hidden" name="remember" value="session";
                (field("remember-hours", "For how many hours acts like it pass without a person", html! { input id="remember-hours" name="hours" type="number" min="1" max="24" value="8" data-as="json"; }))
                button { "Approve, also for acts like it" }
            }
            form data-call="desk_request_approve" data-done="Approved, and a rule was drafted" data-undo=[request.undo()] data-rule {
                (seen)
                input type="hidden" name="remember" value="rule";
                button.quiet { "Approve, and draft a rule" }
            }
        }
    }
}

/// What exactly would be done.
fn what(people: &People, request: &Request) -> Markup {
    let act = request.act.as_ref();
    part(
        "What exactly",
        html! {
            @if let Some(act) = act {
                p { strong { (said(&act.action)) } " " (said(&act.target)) @if let Some(tool) = &act.tool { " with " code { (said(tool)) } } @if let Some(place) = &act.environment { " in " (said(place)) } }
            }
            @if request.kind == "tool_call" && !request.changes.is_empty() && request.changes.iter().all(|change| change.old.is_none()) {
                table.diff {
                    thead { tr { th scope="col" { "Argument" } th scope="col" { "Value" } } }
                    tbody { @for change in &request.changes { tr { th scope="row" { (said(change.path.trim_start_matches('/'))) } td { @if let Some(new) = &change.new { (ui::value(new)) } } } } }
                }
            } @else if !request.changes.is_empty() {
                table.diff {
                    thead { tr { th scope="col" { "Field" } th scope="col" { @if request.kind == "proposal" { "Now, as the agent says" } @else { "Now" } } th scope="col" { "Then" } } }
                    tbody {
                        @for change in &request.changes {
                            tr {
                                th scope="row" { (said(&change.path)) }
                                td { @if let Some(old) = &change.old { del { (ui::value(old)) } } }
                                td { @if let Some(new) = &change.new { ins { (ui::value(new)) } } }
                            }
                        }
                    }
                }
            }
            @if let Some(act) = act.filter(|act| !act.arguments.is_null()) {
                details id={ "all-" (request.request) } open[request.changes_cut || request.changes.is_empty()] { summary { "All that is approved" } (ui::value(&act.arguments)) }
            }
            @if let Some(proposed) = request.proposed.as_ref().filter(|proposed| !proposed.is_null()) {
                p { "Edited by " (said(request.edited_by.as_deref().map_or("somebody", |by| people.name(by)))) ". The agent had proposed:" }
                (ui::value(proposed))
            }
            @if let Some(context) = request.context.as_ref().filter(|context| !context.is_null()) {
                details { summary { "Context" } (ui::value(context)) }
            }
        },
    )
}

/// Where what was read before came from, and the way to clear what of it still counts.
async fn read_before(visit: &Visit, request: &Request) -> Markup {
    let origins = request.act.as_ref().map_or(&[][..], |act| &act.taint);
    if origins.is_empty() {
        return Markup::default();
    }
    let clears = request.requester_kind == "agent" && visit.decides();
    let counted: Option<Counted> = if clears { visit.ask("desk_taint_list", json!({ "agent": request.requester })).await.ok() } else { None };
    let counts = |origin: &&String| counted.iter().flat_map(|counted| &counted.items).any(|one| one.origin == **origin);
    let left: Vec<(&str, &str)> = origins.iter().filter(counts).map(|origin| (origin.as_str(), origin.as_str())).collect();
    part(
        "Read before",
        html! {
            p { "Before it asked for this, " (said(&request.requester)) " read what nobody vouches for: " @for (at, origin) in origins.iter().enumerate() { @if at > 0 { ", " } code { (said(origin)) } } "." }
            @if !left.is_empty() {
                details id={ "taint-" (request.request) } {
                    summary { "Clear it" }
                    p.hint { "What the agent does from then on does not carry it any more. This request stays as it was asked." }
                    form data-call="desk_taint_clear" data-done="It does not count any more" {
                        input type="hidden" name="agent" value=(request.requester);
                        (field("taint-origin", "What", choice("taint-origin", "origin", &left, "")))
                        (field("taint-reason", "Why it does not count", html! { input id="taint-reason" name="reason" required; }))
                        button { "Clear" }
                    }
                }
            }
        },
    )
}

/// The parts of what an agent hands over, in the order in which they are read.
const PACKET: [(&str, &str); 7] = [
    ("goal", "The goal"),
    ("context", "What it knows"),
    ("state", "How far it came"),
    ("tried", "What it tried"),
    ("ruled_out", "What it ruled out"),
    ("open_requests", "What is open"),
    ("proposal_id", "About"),
];
/// Those that the page shows in another place.
const ELSEWHERE: [&str; 3] = ["confidence", "mode", "reasoning"];

/// What an agent hands over.
fn packet(people: &People, request: &Request) -> Markup {
    let Some(Value::Object(context)) = &request.context else { return what(people, request) };
    let known = |name: &str| ELSEWHERE.contains(&name) || PACKET.iter().any(|(known, _)| *known == name);
    html! {
        @for (name, title) in PACKET {
            @if let Some(value) = context.get(name).filter(|value| !is_nothing(value)) { (part(title, read(unwrapped(value)))) }
        }
        @for (name, value) in context.iter().filter(|(name, value)| !known(name) && !is_nothing(value)) { (part(&spaced(name), read(unwrapped(value)))) }
    }
}

/// A part of what is handed over, to be read: words as words, a list of them as one, anything else as it is.
fn read(value: &Value) -> Markup {
    match value {
        Value::String(text) => ui::words(text),
        Value::Array(items) if items.iter().all(Value::is_string) => html! { ul { @for item in items { li { (ui::words(&ui::plain(item))) } } } },
        other => ui::value(other),
    }
}

/// Words that came where JSON was expected are kept as `raw`.
fn unwrapped(value: &Value) -> &Value {
    match value.as_object() {
        Some(fields) if fields.len() == 1 => fields.get("raw").unwrap_or(value),
        _ => value,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// What policy and trust say.
fn judged(request: &Request, lately: &Markup) -> Markup {
    part(
        "How the desk judged",
        html! {
            dl.facts {
                (fact("Answer", badge(Tone::of_state(&request.mode), &request.mode)))
                @if let Some(confidence) = request.confidence { (fact("The agent is sure", share("Confidence", confidence))) }
                @if let Some(trust) = &request.trust {
                    (fact("Trust", html! { a href=(trust::address(&request.requester, &request.domain)) { (format!("{:.2}", trust.score)) } }))
                    (fact("Approved before", html! {
                        @if trust.sample_size == 0 { "nothing decided yet" } @else {
                            (percent(trust.accuracy)) " of " (trust.sample_size)
                            @if let [low, high] = trust.interval.as_slice() { " (95 %: " (percent(*low)) " to " (percent(*high)) ")" }
                        }
                    }))
                }
            }
            (lately)
            @if !request.hits.is_empty() { (hits(&request.hits)) }
            @if !request.reasons.is_empty() { details id="reasons" { summary { "Why this answer" } (reasons(&request.reasons)) } }
            p { a href=(ui::address("/policies/why", &[("request", &request.request)])) { "What the desk would say now, and what would change that" } }
        },
    )
}

/// What was asked and answered.
fn thread(people: &People, request: &Request) -> Markup {
    if request.notes.is_empty() {
        return Markup::default();
    }
    part(
        "Said so far",
        html! {
            ol.thread {
                @for note in &request.notes {
                    li id={ "note-" (note.note) } {
                        p.meta { (spaced(&note.kind)) " · " (said(people.name(&note.by))) " · " (time(&note.at)) }
                        @match &note.text { Some(text) => { (block(text)) } None => { p.hint { "erased" } } }
                    }
                }
            }
        },
    )
}

/// How earlier ones like it were decided.
fn before(request: &Request) -> Markup {
    if request.similar.is_empty() {
        return Markup::default();
    }
    part(
        "Like it before",
        html! {
            ul.similar {
                @for similar in &request.similar {
                    li {
                        (badge(Tone::of_state(&similar.state), &similar.state)) " "
                        a href={ "/requests/" (similar.request) } { (said(similar.title.as_deref().unwrap_or("erased"))) }
                        " " (time(&similar.created_at))
                        @if let Some(reason) = &similar.reason { ": " (said(reason)) }
                    }
                }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::wrong;

    #[test]
    fn a_rejection_offers_what_the_domain_knows() {
        let of = |kinds: &[&str]| kinds.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            wrong(&of(&["agent_wrong", "human_preference"]), "human_preference"),
            [("human_preference", "I want it otherwise"), ("agent_wrong", "The agent erred")]
        );
        assert_eq!(wrong(&of(&["too_late", "too_much"]), "too_late"), [("too_late", "too_late"), ("too_much", "too_much")]);
        assert_eq!(wrong(&[], "human_preference"), [("human_preference", "I want it otherwise")], "a person can always say no");
    }
}
