//! Work on files: the folders that are open and what is in them, plans with what they change, and the trash.

mod jobs;
mod plan;
mod trash;
mod tree;

use axum::Router;
use axum::extract::Query;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use deskmate_core::Error;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

pub(super) use plan::steps_of;

use super::super::Shared;
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, block, empty, field, more, said, spaced, tabs, time};
use super::visit::{Fault, People, Visit};

const TABS: [(&str, &str); 3] = [("/workspace", "Folders"), ("/workspace/plans", "Plans"), ("/workspace/trash", "Trash")];
/// Plans that a list begins with, and at most shows.
const PLANS: usize = 30;
const PLANS_MAX: usize = 500;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/workspace", get(serve))
        .route("/workspace/plans", get(plans))
        .route("/workspace/plans/{id}", get(plan::serve))
        .route("/workspace/plans/{id}/steps/{number}", get(plan::diff))
        .route("/workspace/trash", get(trash::serve))
}

#[derive(Deserialize)]
struct Roots {
    roots: Vec<Root>,
}

#[derive(Deserialize)]
struct Root {
    name: String,
    access: String,
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    path: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Where {
    at: String,
    file: String,
    after: String,
    hidden: String,
    /// The job that looks, where looking takes long.
    job: String,
}

#[derive(Deserialize)]
struct Files {
    items: Vec<Entry>,
    next_cursor: Option<String>,
    #[serde(default)]
    left_out: u64,
    job: Option<String>,
}

/// A look that a job took over.
#[derive(Deserialize)]
struct Looked {
    ended: bool,
    result: Option<Files>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    path: String,
    kind: String,
    is_dir: bool,
    size: u64,
    mtime: String,
}

async fn serve(visit: Visit, Query(query): Query<Where>) -> Result<Response, Fault> {
    let Roots { roots } = visit.ask("workspace_list_roots", json!({})).await?;
    let shown = match (query.at.as_str(), query.file.as_str()) {
        ("", "") => list(&roots, visit.you.role == "owner"),
        (_, "") => {
            let found = files(&visit, &query).await;
            // From here on the page waits for that job, and begins no other one each time it is read again.
            if let Ok(Some(Files { job: Some(job), .. })) = &found {
                let at = [("at", query.at.as_str()), ("after", &query.after), ("hidden", &query.hidden), ("job", job)];
                return Ok(Redirect::to(&ui::address("/workspace", &at)).into_response());
            }
            folder(&roots, &query, found)
        }
        (_, path) => file(&visit, path).await,
    };
    let body = html! {
        h1.unseen { "Workspace" }
        (tabs(&TABS, "/workspace"))
        (jobs::under_way(&visit).await)
        (shown)
    };
    shell::show(&visit, Page { title: "Workspace", place: Place::Workspace, topics: "plan job setting rulebook", body }).await
}

fn list(roots: &[Root], is_owner: bool) -> Markup {
    if roots.is_empty() {
        return html! {
            (empty("No folder is open to agents", html! { p { "Agents look around only in folders that an owner names, and change something there only by a plan that a person approved." } }))
            @if is_owner { (open_form(true)) }
        };
    }
    html! {
        section.card aria-label="Folders" {
            ol.rows id="roots" { @for root in roots { (root_row(root, is_owner)) } }
        }
        @if is_owner { (open_form(false)) }
        p.hint { "Which folders are open is a setting in force, like the " a href="/policies" { "policies" } @if !is_owner { "; only an owner changes it" } "." }
    }
}

fn root_row(root: &Root, is_owner: bool) -> Markup {
    let writes = root.access == "write";
    html! {
        li.row id={ "root-" (root.name) } {
            a href=(ui::address("/workspace", &[("at", &root.name)])) { strong { (said(&root.name)) } }
            " " (badge(if writes { Tone::Good } else { Tone::Quiet }, if writes { "plans may change it" } else { "for looking" }))
            p.meta { code { (said(&root.path)) } @if !root.deny.is_empty() { " without " (said(&root.deny.join(", "))) } }
            @if is_owner { (root_acts(root, writes)) }
        }
    }
}

fn root_acts(root: &Root, writes: bool) -> Markup {
    let (name, deny) = (html! { input type="hidden" name="name" value=(root.name); }, format!("deny-{}", root.name));
    html! {
        div.acts {
            @if writes {
                form data-call="workspace_open_root" data-done="It is for looking only now" { (name) input type="hidden" name="access" value="read"; button.quiet { "For looking only" } }
            } @else {
                form data-call="workspace_open_root" data-done="Plans that you approve may change it now" { (name) input type="hidden" name="access" value="write"; button.quiet { "Let plans change it" } }
            }
            form data-call="workspace_close_root" data-done="The folder is closed" data-confirm={ "Close " (root.name) " to agents? Nothing in it is touched." } { (name) button.quiet { "Close" } }
            details id={ "leave-out-" (root.name) } {
                summary { "Change what is left out" }
                form data-call="workspace_open_root" data-done="What is left out was changed" data-reset {
                    (name)
                    (deny_field(&deny, &root.deny))
                    button { "Save" }
                }
            }
        }
    }
}

/// What is left out of a root. All that is in force is in the field, so what is saved is what was seen.
fn deny_field(id: &str, deny: &[String]) -> Markup {
    let rows = deny.len().max(2);
    field(
        id,
        "Left out, a glob a line",
        html! { textarea id=(id) name="deny" data-as="lines" rows=(rows) spellcheck="false" placeholder="**/.env" { "\n" (deny.join("\n")) } },
    )
}

const ACCESS: [(&str, &str); 2] = [("read", "looking only"), ("write", "plans may change it")];

fn open_form(is_first: bool) -> Markup {
    html! {
        details.card.create id="open-root" open[is_first] {
            summary { "Open a folder to agents" }
            form data-call="workspace_open_root" data-done="The folder is open" data-reset {
                // A root that is there is changed where its own settings are seen.
                input type="hidden" name="new" data-as="json" value="true";
                div.grid {
                    (field("root-name", "Name", html! { input #root-name name="name" required maxlength="64" pattern="[a-z0-9_\\-]+" placeholder="notes"; }))
                    (field("root-path", "Folder", html! { input #root-path name="path" required placeholder="/home/you/notes"; }))
                    (field("root-access", "For", ui::choice("root-access", "access", &ACCESS, "read")))
                }
                (deny_field("root-deny", &[]))
                p.hint { "Agents see the name, and never where it lies. Small letters, digits, - and _. What is left out is not there for anybody: " code { "**/.env" } ", " code { "private/" } "." }
                button { "Open it" }
            }
        }
    }
}

/// What is in a folder; `None` while a job still looks.
async fn files(visit: &Visit, query: &Where) -> Result<Option<Files>, Fault> {
    if !query.job.is_empty() {
        let looked: Looked = visit.ask("workspace_wait_for_scan", json!({ "job": query.job, "timeout_seconds": 0 })).await?;
        return match looked {
            Looked { ended: false, .. } => Ok(None),
            Looked { result: Some(files), .. } => Ok(Some(files)),
            Looked { error, .. } => Err(Error::conflict(error.unwrap_or_else(|| "the look was stopped".to_owned())).into()),
        };
    }
    let cursor = (!query.after.is_empty()).then_some(&query.after);
    let hidden = query.hidden == "yes";
    let input = json!({ "root": query.at, "recursive": false, "limit": 500, "hidden": hidden, "ignored": true, "cursor": cursor, "timeout_seconds": 1 });
    visit.ask("workspace_list_files", input).await.map(Some)
}

/// What is in a folder, and what can be planned there.
fn folder(roots: &[Root], query: &Where, found: Result<Option<Files>, Fault>) -> Markup {
    let writes = roots.iter().any(|root| root.access == "write" && query.at.split('/').next() == Some(root.name.as_str()));
    html! {
        (trail(&query.at))
        @if writes { (organize(&query.at)) }
        section.card aria-label="Files" {
            @match found {
                Err(fault) => { (empty("This folder cannot be shown", html! { p { (said(fault.message())) } })) }
                Ok(None) => { div id="looking" data-again { (empty("This folder is being looked at", html! { p { "It holds a lot. What is found is shown here when the job above is done." } })) } }
                Ok(Some(files)) if files.items.is_empty() && files.left_out == 0 => { (empty("Nothing is here", html! { p { "Names that begin with a dot are shown on request." } })) }
                Ok(Some(files)) => {
                    table.files {
                        thead { tr { th { "Name" } th.number { "Size" } th { "Changed" } @if writes { th { span.unseen { "What can be done" } } } } }
                        tbody { @for entry in &files.items { (line(entry, writes)) } }
                    }
                    @if files.left_out > 0 { p.hint.padded { "Left out: " (files.left_out) " that cannot be shown, such as names that are no text." } }
                    @if let Some(cursor) = &files.next_cursor { (more(&ui::address("/workspace", &[("at", &query.at), ("after", cursor), ("hidden", &query.hidden)]))) }
                }
            }
            @if query.hidden != "yes" { p.hint.padded { a href=(ui::address("/workspace", &[("at", &query.at), ("hidden", "yes")])) { "Show hidden names too" } } }
        }
    }
}

fn line(entry: &Entry, writes: bool) -> Markup {
    let name = entry.path.rsplit('/').next().unwrap_or(&entry.path);
    html! {
        tr {
            td {
                @match entry.kind.as_str() {
                    "folder" => a href=(ui::address("/workspace", &[("at", &entry.path)])) { (said(name)) "/" },
                    "file" => a href=(ui::address("/workspace", &[("file", &entry.path)])) { (said(name)) },
                    _ => (said(name)),
                }
                @if !matches!(entry.kind.as_str(), "file" | "folder") { " " (badge(Tone::Quiet, &entry.kind)) }
            }
            td.number { @if !entry.is_dir { (size(entry.size)) } }
            td { (time(&entry.mtime)) }
            @if writes {
                td {
                    form data-call="workspace_soft_delete" data-then="/workspace/plans/{plan_id}" { input type="hidden" name="path" value=(entry.path); button.quiet aria-label={ "Plan to delete " (crate::visible::visible(name)) } { "Delete…" } }
                }
            }
        }
    }
}

#[derive(Deserialize)]
struct Content {
    size: u64,
    truncated: bool,
    text: Option<String>,
}

/// The beginning of a file.
async fn file(visit: &Visit, path: &str) -> Markup {
    let found: Result<Content, Fault> = visit.ask("workspace_read_file", json!({ "path": path })).await;
    html! {
        (trail(path.rsplit_once('/').map_or(path, |(folder, _)| folder)))
        section.card.padded aria-label="File" {
            h2 { (said(path.rsplit('/').next().unwrap_or(path))) }
            @match found {
                Err(fault) => { (empty("This file cannot be shown", html! { p { (said(fault.message())) } })) }
                Ok(Content { text: None, size: bytes, .. }) => { (empty("This is no text", html! { p { (size(bytes)) } })) }
                Ok(Content { text: Some(text), size: bytes, truncated }) => {
                    p.meta { (size(bytes)) @if truncated { ", of which this is the beginning" } }
                    (block(&text))
                }
            }
        }
    }
}

/// Bytes as people read them.
pub(super) fn size(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut rest = bytes;
    let mut unit = 0;
    while rest >= 10_000 && unit + 1 < units.len() {
        rest /= 1_000;
        unit += 1;
    }
    format!("{rest} {}", units.get(unit).copied().unwrap_or_default())
}

/// The folders above, each of which can be opened.
fn trail(at: &str) -> Markup {
    let ends: Vec<usize> = at.match_indices('/').map(|(end, _)| end).chain([at.len()]).collect();
    html! {
        nav.trail aria-label="Folders above" {
            a href="/workspace" { "Folders" }
            @for end in ends {
                @let path = at.get(..end).unwrap_or_default();
                " / " a href=(ui::address("/workspace", &[("at", path)])) { (said(path.rsplit('/').next().unwrap_or_default())) }
            }
        }
    }
}

const BY: [(&str, &str); 3] = [("by_ext", "by kind of file"), ("by_date", "by year and month"), ("by_size", "by size")];

fn organize(at: &str) -> Markup {
    html! {
        details.card.create id="organize" {
            summary { "Put the files into folders" }
            form data-call="workspace_organize_plan" data-then="/workspace/plans/{plan_id}" {
                input type="hidden" name="root" value=(at);
                (field("organize-by", "How", ui::choice("organize-by", "policy", &BY, "by_ext")))
                p.hint { "You get a plan first, and nothing is moved before you say so." }
                button { "Make a plan" }
            }
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Shown {
    rows: String,
}

async fn plans(visit: Visit, Query(query): Query<Shown>) -> Result<Response, Fault> {
    let wanted = query.rows.parse().unwrap_or(PLANS).clamp(PLANS, PLANS_MAX);
    let people = visit.people().await?;
    let (rows, has_more) = visit.gather::<plan::Plan>("workspace_list_plans", "plans", json!({}), wanted).await?;
    let body = html! {
        h1.unseen { "Plans" }
        (tabs(&TABS, "/workspace/plans"))
        (jobs::under_way(&visit).await)
        section.card aria-label="Plans" {
            @if rows.is_empty() {
                (empty("There is no plan yet", html! { p { "What an agent, or you, want changed in a folder comes here as a plan: every step before it is done, and what came of it." } }))
            } @else {
                ol.rows id="plans" { @for row in &rows { (row_of(&people, row)) } }
            }
            @if has_more && wanted < PLANS_MAX { (more(&ui::address("/workspace/plans", &[("rows", &(wanted + PLANS).to_string())]))) }
            @else if has_more { p.hint.lead { "There are older plans than are shown; " code { "deskmate call workspace_list_plans" } " lists them all." } }
        }
    };
    shell::show(&visit, Page { title: "Plans", place: Place::Workspace, topics: "plan request job", body }).await
}

fn row_of(people: &People, row: &plan::Plan) -> Markup {
    html! {
        li.row id={ "plan-" (row.plan_id) } {
            a href={ "/workspace/plans/" (row.plan_id) } { strong { (spaced(&row.kind)) " in " (said(&row.root)) } }
            " " (row.marks())
            p.meta { (said(people.name(&row.owner))) " · " (row.count) " steps · " (time(&row.created_at)) }
            @if let Some(ended) = row.under_way() { progress max=(row.count) value=(ended) aria-label="Steps that have ended" {} }
        }
    }
}
