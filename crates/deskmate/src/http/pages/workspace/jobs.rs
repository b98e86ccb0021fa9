//! Work on files that goes on: how far it is, and stopping it.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::super::ui::{said, spaced, time};
use super::super::visit::{Fault, Visit};

/// A job, as `desk_job_get` and `desk_job_list` tell it.
#[derive(Deserialize)]
pub(super) struct Job {
    job: String,
    kind: String,
    state: String,
    progress: Option<Progress>,
    created_at: String,
}

#[derive(Deserialize)]
struct Progress {
    percent: Option<u8>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<Job>,
}

/// The kinds of work, those that somebody asks for first.
const KINDS: [&str; 5] = ["workspace.plan", "workspace.execute", "workspace.scan", "workspace.audit", "workspace.trash"];
/// How many of them somebody asks for; of the others nobody waits for their turn.
const ASKED_FOR: usize = 3;

/// What goes on or waits for its turn, if anything does. The page looks again until nothing does any more.
pub(super) async fn under_way(visit: &Visit) -> Markup {
    let mut jobs = Vec::new();
    for (state, kinds) in [("running", KINDS.as_slice()), ("waiting", KINDS.get(..ASKED_FOR).unwrap_or_default())] {
        for kind in kinds {
            let found: Result<Jobs, Fault> = visit.ask("desk_job_list", json!({ "state": state, "kind": kind, "limit": 50 })).await;
            jobs.extend(found.map(|found| found.jobs).unwrap_or_default());
        }
    }
    html! {
        @if !jobs.is_empty() {
            section.card id="under-way" aria-label="Under way" data-again {
                ol.rows {
                    @for job in &jobs {
                        li.row id={ "job-" (job.job) } {
                            strong { (what(&job.kind)) } span.meta { "since " (time(&job.created_at)) }
                            (progress(job))
                            form data-call="desk_job_cancel" data-done="It stops as soon as it can" data-confirm="Stop it? What was done stays done." { input type="hidden" name="job" value=(job.job); button.quiet { "Stop" } }
                        }
                    }
                }
            }
        }
    }
}

fn what(kind: &str) -> &'static str {
    match kind {
        "workspace.plan" => "Making a plan",
        "workspace.execute" => "Doing a plan",
        "workspace.scan" => "Looking at a whole tree",
        "workspace.audit" => "Verifying audit files",
        "workspace.trash" => "Emptying the trash of what is old",
        _ => "Work on files",
    }
}

/// How far a job is.
pub(super) fn progress(job: &Job) -> Markup {
    html! {
        p.standing data-again[job.state == "running"] {
            @match &job.progress {
                Some(Progress { percent, text }) => {
                    progress max="100" value=[*percent] aria-label="Progress" {}
                    @if let Some(text) = text { " " (said(text)) }
                }
                None if job.state == "waiting" => { "It waits for its turn." }
                None => { "Its job is " (spaced(&job.state)) "." }
            }
        }
    }
}
