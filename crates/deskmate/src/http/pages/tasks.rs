//! Tasks as a list and as a board, and the files that agents reserved.

use axum::Router;
use axum::extract::Query;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::Shared;
use super::parties::Parties;
use super::shell::{self, Page, Place};
use super::task;
use super::ui::{self, Tone, badge, empty, field, said, tabs, time};
use super::visit::{Fault, Visit};

/// How many tasks of each state a board shows.
const COLUMN: usize = 50;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/tasks", get(serve)).route("/tasks/files", get(files)).route("/tasks/{id}", get(task::serve))
}

const TABS: [(&str, &str); 3] = [("/tasks", "List"), ("/tasks?view=board", "Board"), ("/tasks/files", "Reserved files")];

/// What the address of the page says.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Filters {
    view: String,
    whose: String,
    status: String,
    project: String,
    rows: String,
    cursor: String,
}

impl Filters {
    fn address(&self) -> String {
        let place = [("view", &self.view), ("rows", &self.rows), ("cursor", &self.cursor)];
        let pairs = [("whose", &self.whose), ("status", &self.status), ("project", &self.project)];
        let pairs: Vec<(&str, &str)> = pairs.into_iter().chain(place).map(|(name, value)| (name, value.as_str())).collect();
        ui::address("/tasks", &pairs)
    }

    /// The same list with so many rows, from a cursor on if one is given.
    fn from(&self, rows: String, cursor: Option<&str>) -> String {
        Self { rows, cursor: cursor.unwrap_or(&self.cursor).to_owned(), ..self.clone() }.address()
    }

    fn are_set(&self) -> bool {
        [&self.whose, &self.status, &self.project].into_iter().any(|filter| !filter.is_empty())
    }

    /// The input of `bridge_get_tasks`.
    fn input(&self, status: &str) -> Value {
        let mut input = Map::from_iter([("view".to_owned(), Value::from(if self.whose.is_empty() { "all" } else { &self.whose }))]);
        let (status, is_ready) = if status == "ready" { ("pending", true) } else { (status, false) };
        let given = [("project", self.project.as_str()), ("status", status)];
        input.extend(given.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name.to_owned(), Value::from(value))));
        input.extend(is_ready.then(|| ("ready".to_owned(), Value::from(true))));
        Value::Object(input)
    }
}

/// What the list shows of a task.
#[derive(Deserialize)]
struct Row {
    task_id: String,
    sender: String,
    verified: bool,
    recipient: String,
    title: Option<String>,
    status: String,
    priority: String,
    open_blockers: i64,
    ready: bool,
    deadline: Option<String>,
    overdue: bool,
    lease: Option<task::Lease>,
    created_at: String,
    updated_at: String,
}

/// What `desk_project_list` answers.
#[derive(Deserialize)]
struct Projects {
    projects: Vec<String>,
    more: bool,
}

/// The project of work that names none.
const DEFAULT: &str = "default";
/// Into how many other projects a page looks.
const LOOKED_INTO: usize = 20;

/// In which other projects there is something of what a list shows: it shows one project, and what is in another is not to be missed.
struct Elsewhere<'p> {
    /// The project that is shown.
    shown: &'p str,
    found: Vec<&'p str>,
    /// Whether there are projects that were not looked into.
    more: bool,
}

impl<'p> Elsewhere<'p> {
    async fn look(visit: &Visit, operation: &str, list: &str, input: &Value, projects: &'p Projects, chosen: &'p str) -> Result<Self, Fault> {
        let shown = if chosen.is_empty() { DEFAULT } else { chosen };
        let others: Vec<&str> = projects.projects.iter().map(String::as_str).filter(|project| *project != shown).collect();
        let mut found = Vec::new();
        for project in others.iter().take(LOOKED_INTO) {
            let mut input = input.as_object().cloned().unwrap_or_default();
            input.insert("project".to_owned(), Value::from(*project));
            let (rows, _) = visit.gather::<Value>(operation, list, Value::Object(input), 1).await?;
            found.extend((!rows.is_empty()).then_some(*project));
        }
        Ok(Self { shown, found, more: projects.more || others.len() > LOOKED_INTO })
    }

    /// Whether nothing is known to be anywhere else.
    fn is_empty(&self) -> bool {
        self.found.is_empty() && !self.more
    }

    /// The ways there; `address` is that of the same list in another project.
    fn links(&self, address: impl Fn(&str) -> String) -> Markup {
        html! {
            @if !self.is_empty() {
                p.hint id="elsewhere" {
                    "This is the project " (said(self.shown)) "."
                    @if !self.found.is_empty() {
                        " There is more in "
                        @for (at, project) in self.found.iter().enumerate() { @if at > 0 { ", " } a href=(address(project)) data-in-place { (said(project)) } }
                        "."
                    }
                    @if self.more { " There are projects that were not looked into: choose one above, or write its name into the address as " code { "project=NAME" } "." }
                }
            }
        }
    }
}

async fn serve(visit: Visit, Query(filters): Query<Filters>) -> Result<Response, Fault> {
    let parties = Parties::load(&visit).await?;
    let projects: Projects = visit.ask("desk_project_list", json!({})).await?;
    let is_board = filters.view == "board";
    let status = if is_board { "" } else { &filters.status };
    let elsewhere = Elsewhere::look(&visit, "bridge_get_tasks", "tasks", &filters.input(status), &projects, &filters.project).await?;
    let shown = if is_board { board(&visit, &parties, &filters, &elsewhere).await? } else { list(&visit, &parties, &filters, &elsewhere).await? };
    let body = html! {
        h1.unseen { "Tasks" }
        (tabs(&TABS, if is_board { "/tasks?view=board" } else { "/tasks" }))
        (bar(&filters, &projects.projects))
        (elsewhere.links(|project| Filters { project: project.to_owned(), cursor: String::new(), ..filters.clone() }.address()))
        @if visit.writes() { (create(&parties, &filters)) }
        (shown)
    };
    shell::show(&visit, Page { title: "Tasks", place: Place::Tasks, topics: "task group person agent", body }).await
}

const WHOSE: [(&str, &str); 3] = [("", "Everybody's"), ("assigned", "For me"), ("created", "From me")];
const STATUSES: [(&str, &str); 9] = [
    ("", "Any state"),
    ("ready", "Can be claimed"),
    ("pending", "Pending"),
    ("in_progress", "In progress"),
    ("input_needed", "Input needed"),
    ("completed", "Completed"),
    ("failed", "Failed"),
    ("rejected", "Rejected"),
    ("cancelled", "Cancelled"),
];

fn bar(filters: &Filters, projects: &[String]) -> Markup {
    html! {
        form.bar data-filters {
            @if filters.view == "board" { input type="hidden" name="view" value="board"; }
            (ui::filter("Whose tasks", "whose", &WHOSE, &filters.whose))
            @if filters.view != "board" { (ui::filter("State", "status", &STATUSES, &filters.status)) }
            (project(projects, &filters.project))
        }
    }
}

/// A choice of a project. Work that names none is in `default`.
fn project(projects: &[String], chosen: &str) -> Markup {
    let is_known = chosen.is_empty() || projects.iter().any(|project| project == chosen);
    html! {
        select name="project" aria-label="Project" {
            option value="" { "Project " (DEFAULT) }
            @if !is_known { option value=(chosen) selected { "Project " (crate::visible::visible(chosen)) } }
            @for project in projects.iter().filter(|project| *project != DEFAULT) {
                option value=(project) selected[project == chosen] { "Project " (crate::visible::visible(project)) }
            }
        }
    }
}

fn create(parties: &Parties, filters: &Filters) -> Markup {
    html! {
        details.card.create id="create" {
            summary data-key="n" { "Give a task " kbd { "n" } }
            form data-call="bridge_create_task" data-done="The task is given" data-reset {
                (parties.choose("task-to", "To", "to", "", &[]))
                (field("task-title", "Title", html! { input id="task-title" name="title" required maxlength="200"; }))
                (field("task-description", "What is to be done", html! { textarea id="task-description" name="description" rows="4" {} }))
                div.grid {
                    (field("task-priority", "Priority", ui::choice("task-priority", "priority", &task::PRIORITIES, "")))
                    (field("task-deadline", "Until", html! { input id="task-deadline" name="deadline" type="datetime-local" data-as="moment"; }))
                    (field("task-project", "Project", html! { input id="task-project" name="project" value=(filters.project) placeholder="default" maxlength="128"; }))
                }
                (field("task-depends", "Ids of tasks that must be completed first", html! { input id="task-depends" name="depends_on" data-as="list" placeholder="none"; }))
                button { "Give the task" }
            }
        }
    }
}

async fn list(visit: &Visit, parties: &Parties, filters: &Filters, elsewhere: &Elsewhere<'_>) -> Result<Markup, Fault> {
    let wanted = ui::rows(&filters.rows);
    let (rows, next) = visit.gather_from::<Row>("bridge_get_tasks", "tasks", filters.input(&filters.status), wanted, &filters.cursor).await?;
    Ok(html! {
        section.card aria-label="Tasks" {
            @if !filters.cursor.is_empty() { (ui::back_to_first(&filters.from(String::new(), Some("")))) }
            @if rows.is_empty() { (none(visit, filters, elsewhere)) } @else {
                ol.rows id="rows" { @for row in &rows { (line(parties, row)) } }
            }
            (ui::onward(wanted, next.as_deref(), |rows, cursor| filters.from(rows, cursor)))
        }
    })
}

fn none(visit: &Visit, filters: &Filters, elsewhere: &Elsewhere<'_>) -> Markup {
    if filters.are_set() {
        return empty("Nothing fits", html! { p { a href=(ui::address("/tasks", &[("view", &filters.view)])) data-in-place { "Show everybody's tasks" } } });
    }
    empty(
        if elsewhere.is_empty() { "There is no task yet" } else { "There is no task in this project yet" },
        html! {
            p { "Work that one gives another is here: agents claim it, tell how far they are, and come back with a result. " @if visit.writes() { "Give one above, or let an agent do it:" } @else { "An agent gives one like this:" } }
            pre.block { "deskmate call bridge_create_task --agent cowork to=code title='Write the release notes'" }
        },
    )
}

/// The marks of a task that matter at a glance.
fn marks(parties: &Parties, row: &Row, with_state: bool) -> Markup {
    html! {
        span.badges {
            @if with_state { (badge(Tone::of_state(&row.status), &row.status)) }
            @if row.priority != "normal" { (badge(Tone::of_priority(&row.priority), &row.priority)) }
            @if row.overdue { (badge(Tone::Alarm, "overdue")) }
            @if row.ready { (badge(Tone::Quiet, "can be claimed")) }
            @if row.open_blockers > 0 { (badge(Tone::Warning, &format!("waits for {}", row.open_blockers))) }
            @if let Some(lease) = &row.lease { span.deadline { (parties.who(&lease.holder)) " works on it, until " (time(&lease.expires_at)) } }
            @if let Some(deadline) = &row.deadline { span.deadline { "due " (time(deadline)) } }
        }
    }
}

fn from_and_to(parties: &Parties, row: &Row) -> Markup {
    html! {
        span.meta {
            (parties.who(&row.sender)) @if !row.verified { " (unverified)" }
            " to " (parties.who(&row.recipient)) " · " (time(&row.created_at))
        }
    }
}

fn line(parties: &Parties, row: &Row) -> Markup {
    html! {
        li id={ "task-" (row.task_id) } {
            a href={ "/tasks/" (row.task_id) } data-row {
                span.title { (said(row.title.as_deref().unwrap_or("erased"))) }
                (from_and_to(parties, row))
                (marks(parties, row, true))
            }
        }
    }
}

/// The columns of the board, with the states in each.
const COLUMNS: [(&str, &[&str]); 4] = [
    ("Pending", &["pending"]),
    ("In progress", &["in_progress"]),
    ("Input needed", &["input_needed"]),
    ("Finished", &["completed", "failed", "rejected", "cancelled"]),
];

async fn board(visit: &Visit, parties: &Parties, filters: &Filters, elsewhere: &Elsewhere<'_>) -> Result<Markup, Fault> {
    let mut columns = Vec::new();
    for (title, states) in COLUMNS {
        let (mut rows, mut has_more) = (Vec::new(), false);
        for state in states {
            let (tasks, more) = visit.gather::<Row>("bridge_get_tasks", "tasks", filters.input(state), COLUMN).await?;
            rows.extend(tasks);
            has_more |= more;
        }
        rows.sort_by(|a, b| (&b.updated_at, &b.task_id).cmp(&(&a.updated_at, &a.task_id)));
        has_more |= rows.len() > COLUMN;
        rows.truncate(COLUMN);
        columns.push((title, states, rows, has_more));
    }
    if columns.iter().all(|(_, _, rows, _)| rows.is_empty()) {
        return Ok(html! { section.card { (none(visit, filters, elsewhere)) } });
    }
    Ok(html! {
        div.board {
            @for (title, states, rows, has_more) in &columns {
                section.column id={ "column-" (states.first().copied().unwrap_or_default()) } aria-label=(title) {
                    h2 { (title) " " span.meta { (rows.len()) @if *has_more { "+" } } }
                    ol { @for row in rows { (tile(parties, row, states.len() > 1)) } }
                    @if *has_more { (all_of(filters, states)) }
                }
            }
        }
    })
}

/// The way from a column to the list of all that is in it, which is one for each state.
fn all_of(filters: &Filters, states: &[&str]) -> Markup {
    let address = |state: &str| Filters { view: String::new(), status: state.to_owned(), ..filters.clone() }.address();
    html! {
        p.more {
            @for (at, state) in states.iter().enumerate() {
                @if at > 0 { " · " }
                a href=(address(state)) { "All " (ui::spaced(state)) }
            }
        }
    }
}

fn tile(parties: &Parties, row: &Row, with_state: bool) -> Markup {
    html! {
        li.card id={ "task-" (row.task_id) } {
            a href={ "/tasks/" (row.task_id) } data-row {
                span.title { (said(row.title.as_deref().unwrap_or("erased"))) }
                (from_and_to(parties, row))
                (marks(parties, row, with_state))
            }
        }
    }
}

#[derive(Deserialize)]
struct Reservation {
    reservation_id: String,
    holder: String,
    trust: String,
    mode: String,
    paths: Vec<String>,
    reason: Option<String>,
    created_at: String,
    expires_at: String,
}

/// What the address of the page says.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Which {
    project: String,
    path: String,
    rows: String,
    cursor: String,
}

impl Which {
    /// The same list with so many rows, from a cursor on if one is given.
    fn from(&self, rows: &str, cursor: Option<&str>) -> String {
        let cursor = cursor.unwrap_or(&self.cursor);
        ui::address("/tasks/files", &[("project", &self.project), ("path", &self.path), ("rows", rows), ("cursor", cursor)])
    }
}

/// Who holds which files.
async fn files(visit: Visit, Query(which): Query<Which>) -> Result<Response, Fault> {
    let people = visit.people().await?;
    let projects: Projects = visit.ask("desk_project_list", json!({})).await?;
    let given = [("project", &which.project), ("path", &which.path)];
    let input: Map<_, _> =
        given.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name.to_owned(), Value::from(value.as_str()))).collect();
    let (wanted, input) = (ui::rows(&which.rows), Value::Object(input));
    let elsewhere = Elsewhere::look(&visit, "bridge_list_reservations", "reservations", &input, &projects, &which.project).await?;
    let (reservations, next) = visit.gather_from::<Reservation>("bridge_list_reservations", "reservations", input, wanted, &which.cursor).await?;
    let body = html! {
        h1.unseen { "Reserved files" }
        (tabs(&TABS, "/tasks/files"))
        form.bar data-filters role="search" {
            input type="search" name="path" value=(which.path) placeholder="A file, to see who holds it" aria-label="A file or pattern" data-key="/";
            (project(&projects.projects, &which.project))
        }
        (elsewhere.links(|project| Which { project: project.to_owned(), path: which.path.clone(), ..Which::default() }.from("", None)))
        section class=[reservations.is_empty().then_some("card")] aria-label="Reserved files" {
            @if !which.cursor.is_empty() { (ui::back_to_first(&which.from("", Some("")))) }
            @if reservations.is_empty() {
                @if which.path.is_empty() && which.project.is_empty() {
                    (empty(if elsewhere.is_empty() { "Nobody holds a file" } else { "Nobody holds a file in this project" }, html! {
                        p { "Agents reserve the files that they are about to change, so that others keep off:" }
                        pre.block { "deskmate call bridge_reserve_paths --agent code 'paths=[\"src/**\"]' reason='renaming a module'" }
                    }))
                } @else { (empty("Nothing fits", html! { p { a href="/tasks/files" data-in-place { "Show all of the default project" } } })) }
            }
            ul.cards id="reservations" {
                @for held in &reservations {
                    li.card id={ "reservation-" (held.reservation_id) } {
                        p {
                            strong { (said(people.name(&held.holder))) } " "
                            span class=(if held.trust.starts_with("verified") { "badge" } else { "badge warning" }) { (said(&held.trust)) } " "
                            (badge(if held.mode == "exclusive" { Tone::Warning } else { Tone::Quiet }, &held.mode))
                        }
                        ul.paths { @for path in &held.paths { li { code { (said(path)) } } } }
                        @if let Some(reason) = &held.reason { p { (said(reason)) } }
                        p.meta { "since " (time(&held.created_at)) " · until " (time(&held.expires_at)) }
                        @if visit.writes() {
                            form data-call="bridge_release_paths" data-done="Released" data-confirm="Release these files? Whoever holds them may be changing them right now." {
                                input type="hidden" name="reservation_id" value=(held.reservation_id);
                                button.quiet { "Release" }
                            }
                        }
                    }
                }
            }
            (ui::onward(wanted, next.as_deref(), |rows, cursor| which.from(&rows, cursor)))
        }
    };
    shell::show(&visit, Page { title: "Reserved files", place: Place::Tasks, topics: "paths person", body }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_leads_to_all_that_is_in_it() {
        let filters = Filters { view: "board".to_owned(), project: "web".to_owned(), ..Filters::default() };
        for (title, states) in COLUMNS {
            let html = all_of(&filters, states).into_string();
            let links: Vec<String> = states.iter().map(|state| format!("/tasks?status={state}&amp;project=web\"")).collect();
            assert!(links.iter().all(|link| html.contains(link)) && html.matches("<a ").count() == states.len(), "{title}: {html}");
        }
    }
}
