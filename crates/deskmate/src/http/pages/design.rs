//! The design system on one page: every part of [`super::ui`] as it looks, with when to use it. `docs/design-system.html` is the
//! same page for who has no desk running.

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde_json::json;

use super::super::Shared;
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, block, choice, empty, fact, field, filter, more, part, said, share, time, words};
use super::visit::{Fault, Visit};

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/design", get(serve))
}

async fn serve(visit: Visit) -> Result<Response, Fault> {
    shell::show(&visit, Page { title: "Design", place: Place::Other, topics: "", body: all() }).await
}

/// A part, and when it is used.
fn shown(name: &str, when: &str, example: Markup) -> Markup {
    html! { section.part { h3 { code { (name) } } p.hint { (when) } (example) } }
}

/// Every part.
fn all() -> Markup {
    let hostile = "text that turns \u{202e}around\u{202c} and <b>marks</b> itself";
    html! {
        div.alone {
            h1 { "Design" }
            p { "Calm, dense enough to work in, the same in light and dark. Words first: colour says again what a word already says. One accent for what one can do, and three tones for how things stand." }
            (shown("colours", "Custom properties of desk.css; light and dark in one value each.", html! {
                ul.swatches { @for name in ["ground", "sheet", "well", "ink", "quiet", "line", "accent", "good", "warning", "alarm"] { li { span.swatch data-colour=(name) {} code { "--" (name) } } } }
            }))
            (shown("type", "The system's own typeface, 16 px, two sizes of headings. What somebody wrote in code or data is set in the fixed one.", html! { h1 { "A page" } h2 { "A thing" } h3 { "A part of it" } p { "A sentence." } p.meta { "What stands beside it." } p.hint { "What helps." } p { code { "deskmate up" } " " kbd { "a" } } }))
            (shown("badge", "A state or a risk, in a word.", html! { (badge(Tone::Quiet, "low")) " " (badge(Tone::Good, "approved")) " " (badge(Tone::Warning, "pending")) " " (badge(Tone::Alarm, "rejected")) }))
            (shown("buttons", "One filled button at most for one thing; the rest is quiet. Alarm is for what takes something away.", html! { div.row { button type="button" { "Approve" } button.quiet type="button" { "Ask" } button.warning type="button" { "Let agents go on" } button.alarm type="button" { "Reject" } button type="button" disabled { "Under way" } } }))
            (shown("said", "Whatever somebody wrote, in a line: kept apart, and what would hide or turn it made visible.", said(hostile)))
            (shown("words", "The same in paragraphs.", words("They asked for it.\nTwice.")))
            (shown("block", "The same with its spaces and lines.", block("first line\n    second line")))
            (shown("value", "Any value: text as text, the rest as JSON.", ui::value(&json!({ "next_step": "call back", "amount": 12000 }))))
            (shown("time", "A moment, in the reader's zone.", time("2026-11-16T09:30:00Z")))
            (shown("share", "A share, as a bar and in percent.", share("An example", 0.8)))
            (shown("fact", "Names and what they stand for.", html! { dl.facts { (fact("Answer", badge(Tone::Warning, "escalate"))) (fact("Trust", html! { "0.62" })) (fact("Approved before", html! { "92 % of 24" })) } }))
            (shown("field", "A labelled place to write in.", field("example", "What you want to know", html! { input id="example" name="example"; })))
            (shown("choice and filter", "A choice out of a few, with a label beside it, or alone.", html! { (field("sample", "How bad", choice("sample", "sample", &[("", "As usual"), ("high", "High")], ""))) (filter("Risk", "sample-risk", &[("", "Any risk"), ("high", "High")], "")) }))
            (shown("part", "A part of a page with its heading.", part("Why", words("They asked for it."))))
            (shown("empty", "What a page shows when there is nothing: it teaches the next step.", empty("Nothing waits for you", html! { p { "What agents may not do alone arrives here." } })))
            (shown("more", "The rest of a list; what is read stays where it is.", more("#")))
            (shown("toast", "What became of what one did, at the edge of the page, with its undo.", html! { div.toast { span { "Approved" } button.quiet type="button" { "Undo" } } }))
            (shown("banner", "What holds for the whole desk.", html! { p.banner { "All agents are paused." } }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page as a file: the same parts, with the style from where it lies in the repository.
    #[test]
    fn the_document_shows_every_part() {
        let html = html! {
            (maud::DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { "Design · Deskmate" }
                    link rel="stylesheet" href="../crates/deskmate/src/http/pages/assets/desk.css";
                }
                body { main { (all()) } }
            }
        };
        let text = html.into_string().replace("<section", "\n<section").replace("<head>", "\n<head>\n").replace("<body>", "\n<body>\n");
        crate::snapshot::check_at("../../docs/design-system.html", &(text + "\n"));
    }
}
