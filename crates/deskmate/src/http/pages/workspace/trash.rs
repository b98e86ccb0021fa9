//! The trash of each folder: what is in it, bringing it back, and deleting it for ever.

use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::super::shell::{self, Page, Place};
use super::super::ui::{self, empty, more, said, tabs, time};
use super::super::visit::{Fault, Visit};
use super::{Root, Roots, TABS, size};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Whose {
    root: String,
    rows: String,
}

/// Things that a page begins with, and at most shows.
const ROWS: usize = 200;
const ROWS_MAX: usize = 4_000;

#[derive(Deserialize)]
struct Item {
    trash_id: String,
    path: String,
    deleted_at: String,
    kind: String,
    size: u64,
}

pub(super) async fn serve(visit: Visit, Query(query): Query<Whose>) -> Result<Response, Fault> {
    let Roots { roots } = visit.ask("workspace_list_roots", json!({})).await?;
    let chosen = roots.iter().find(|root| root.name == query.root).or(roots.first());
    let wanted = query.rows.parse().unwrap_or(ROWS).clamp(ROWS, ROWS_MAX);
    let body = html! {
        h1.unseen { "Trash" }
        (tabs(&TABS, "/workspace/trash"))
        @if roots.len() > 1 {
            form.bar data-filters {
                select name="root" aria-label="Folder" { @for root in &roots { option value=(root.name) selected[chosen.is_some_and(|chosen| chosen.name == root.name)] { (root.name) } } }
            }
        }
        section.card aria-label="Trash" {
            @match chosen { Some(root) => { (list(&visit, root, wanted).await) } None => { (empty("No folder is open", html! { p { a href="/workspace" { "How to open one" } } })) } }
        }
    };
    shell::show(&visit, Page { title: "Trash", place: Place::Workspace, topics: "plan", body }).await
}

async fn list(visit: &Visit, root: &Root, wanted: usize) -> Markup {
    let found = visit.gather::<Item>("workspace_list_trash", "items", json!({ "root": root.name }), wanted).await;
    html! {
        @match found {
            Err(fault) => { (empty("The trash cannot be shown", html! { p { (said(fault.message())) } })) }
            Ok((items, _)) if items.is_empty() => { (empty("The trash is empty", html! { p { "What plans delete comes here, and can be brought back." } })) }
            Ok((items, has_more)) => {
                ol.rows {
                    @for item in &items { (row(root, item)) }
                }
                @if has_more {
                    @if wanted < ROWS_MAX { (more(&ui::address("/workspace/trash", &[("root", &root.name), ("rows", &(wanted + ROWS).to_string())]))) }
                    @else { p.hint { "The newest " (items.len()) " are shown; there are more." } }
                }
            }
        }
    }
}

fn row(root: &Root, item: &Item) -> Markup {
    let hidden = html! { input type="hidden" name="root" value=(root.name); };
    html! {
        li.row id={ "trash-" (ui::segment(&item.trash_id)) } {
            strong { (said(&item.path)) }
            p.meta { (item.kind) " · " (size(item.size)) " · deleted " (time(&item.deleted_at)) }
            @if root.access == "write" {
                div.acts {
                    form data-call="workspace_restore" data-then="/workspace/plans/{plan_id}" { (hidden) input type="hidden" name="trash_id" value=(item.trash_id); button.quiet { "Plan to bring it back" } }
                    form data-call="workspace_purge_trash" data-then="/workspace/plans/{plan_id}" { (hidden) input type="hidden" name="trash_ids" data-as="json" value=(json!([item.trash_id])); button.quiet { "Plan to delete it for ever" } }
                }
            }
        }
    }
}
