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
            (shown("space", "Custom properties too: 1 within a line, 2 between things of one kind, 3 below a thing, 4 between things, 5 around a page.", html! {
                ul.spaces { @for number in 1..=5 { li { span.space data-space=(number) {} code { "--space-" (number) } } } }
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
            (shown("onward and back_to_first", "A list that is longer than a page: on to the next page, and back to where it begins.", html! { (ui::onward(ui::ROWS_MAX, Some("next"), |_, _| "#onward".to_owned())) (ui::back_to_first("#first")) }))
            (shown("tabs", "The pages of one place, of which one is open.", ui::tabs(&[("#list", "List"), ("#board", "Board")], "#list")))
            (shown("rows", "A list to walk through with j and k: title, who and when, and the marks that matter at a glance.", html! { ol.rows {
                li { a href="#rows" { span.title { (said("update: deal/7")) } span.meta { (said("crm-agent")) " · proposal in crm.deals · " (time("2026-11-16T09:30:00Z")) } span.badges { (badge(Tone::Alarm, "risk high")) span.deadline { "until " (time("2026-11-17T09:30:00Z")) } } } }
                li { a href="#rows" aria-current="true" { span.title { (said("The one that is open")) } span.meta { (said("billing")) " · handoff in billing" } } }
            } }))
            (shown("table", "Things with the same few properties. On a phone each row is a block.", html! { table.stack {
                thead { tr { th scope="col" { "When" } th scope="col" { "What" } th scope="col" { "By how much" } } }
                tbody { tr { td { (time("2026-11-16T09:30:00Z")) } td data-label="What" { "approved" } td data-label="By how much" { "+0.020" } } }
            } }))
            (shown("diff", "What is there now and what would be, field by field.", html! { table.diff {
                thead { tr { th scope="col" { "Field" } th scope="col" { "Now" } th scope="col" { "Then" } } }
                tbody { tr { th scope="row" { (said("/amount")) } td { del { (ui::value(&json!(500))) } } td { ins { (ui::value(&json!(300))) } } } }
            } }))
            (shown("chart", "A drawing, always with the same in words or as a table.", super::trust::example()))
            (shown("progress", "Work that goes on.", html! { p { label for="sample-progress" { "Verifying" } progress id="sample-progress" max="100" value="40" {} } }))
            (places())
            (shown("dialog", "One question at a time, over the page. Escape and the quiet button leave everything as it is.", html! { dialog open aria-labelledby="sample-dialog" { h2 id="sample-dialog" { "Reject these 2?" } ul { li { "update: deal/7 · crm-agent · risk high" } li { "update: deal/8 · crm-agent · risk low" } } div.row { button type="button" { "Yes" } button.quiet type="button" { "No" } } } }))
            (shown("toast", "What became of what one did, at the edge of the page, with its undo.", html! { div.toast { span { "Approved" } button.quiet type="button" { "Undo" } } }))
            (shown("banner", "What holds for the whole desk.", html! { p.banner { "All agents are paused." } }))
        }
    }
}

/// What places are made of: larger parts, each of which is on a few pages.
fn places() -> Markup {
    let at = "2026-11-16T09:30:00Z";
    html! {
        (shown("card", "A thing of its own on a page; a list of them is of cards.", html! { ul.cards { li.card { p { strong { "This browser" } " " (badge(Tone::Good, "active")) } p.meta { "since " (time(at)) } } } }))
        (shown("fold", "A card that opens: what is rarely done.", html! { details.card.fold { summary { "Register an agent" } p { "A form." } } }))
        (shown("board", "Things by how they stand; on a phone the columns are below each other.", html! { div.board {
            @for (name, titles) in [("Pending", ["Write the notes", "Send them out"].as_slice()), ("In progress", &["Fix the build"]), ("Finished", &[])] {
                section.column aria-label=(name) { h2 { (name) " " span.meta { (titles.len()) } } ol { @for title in titles { li.card { a href="#board" { span.title { (said(title)) } span.meta { (said("cowork")) " to " (said("code")) } } } } } }
            }
        } }))
        (shown("acts", "What can be done with a thing, the most likely first; what needs words opens.", html! { div.acts {
            button type="button" { "Approve " kbd { "a" } }
            details { summary { "Reject " kbd { "r" } } (field("sample-reason", "Why", html! { input id="sample-reason" name="sample-reason"; })) }
        } }))
        (shown("many", "What can be done with all that is selected; it stays in reach below a list.", html! { div.many { span { "2 selected" } button type="button" { "Approve selected" } button.quiet type="button" { "Select none" } } }))
        (shown("thread", "What was said, with who said it and when.", html! { ol.thread { li.message { p.meta { strong { (said("code")) } " to " (said("Ada")) " · " (time(at)) } (block("Which of both?")) } li.message { p.meta { strong { "You" } " to " (said("code")) " · " (time(at)) } (block("The second.")) } } }))
        (shown("story", "What happened to a thing, from the record.", html! { ol.story { li { p { strong { "It was proposed" } } p.meta { (time(at)) " · " (said("code")) } } li { p { strong { "It was approved" } } p.meta { (time(at)) " · " (said("Ada")) } } } }))
        (shown("lines", "Two texts, line by line.", html! { pre.block.lines tabindex="0" { span { "  rules:\n" } del { "-   max: 500\n" } ins { "+   max: 5000\n" } } }))
        (shown("log", "What a run says as it goes on; the newest line stays in sight.", html! { ol.log tabindex="0" aria-label="An example of a log" { li { span.meta { (time(at)) " " (said("out")) " " } span.text { "read 12 files" } } } }))
        (shown("tree", "Files as they lie now, and as they will.", html! { div.trees { @for (title, folder) in [("Now", "inbox"), ("Then", "letters")] { div { h4 { (title) } ul.tree { li { (said(folder)) "/" ul.tree { li { (said("letter.txt")) } } } } } } } }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_shown() {
        let page = include_str!("design.rs").split("#[cfg(test)]").next().unwrap();
        let parts = include_str!("ui.rs").lines().filter(|line| line.starts_with("pub(super) fn ") && line.contains("-> Markup"));
        let parts: Vec<&str> = parts.filter_map(|line| line.trim_start_matches("pub(super) fn ").split('(').next()).collect();
        let missing: Vec<_> = parts
            .iter()
            .filter(|part| !page.contains(&format!("({part}(")) && !page.contains(&format!("ui::{part}(")) && !page.contains(&format!(", {part}(")))
            .collect();
        assert!(parts.len() > 12 && missing.is_empty(), "{missing:?} of {parts:?}");
    }

    #[test]
    fn spaces_are_those_of_the_design() {
        let style = include_str!("assets/desk.css");
        let spaces: Vec<&str> =
            style.lines().filter_map(|line| line.trim().strip_prefix("--space-")?.split_once(": ")).map(|(_, value)| value.trim_end_matches(';')).collect();
        assert_eq!(spaces, [".25rem", ".5rem", ".75rem", "1rem", "1.25rem"]);
        let declared = style.split(['{', ';', '}']).filter_map(|declaration| declaration.trim().split_once(": "));
        let set = declared.filter(|(name, _)| ["margin", "padding", "gap"].into_iter().any(|part| name.starts_with(part)) || name.ends_with("-gap"));
        let literal: Vec<_> = set.filter(|(_, value)| value.split(' ').any(|one| spaces.contains(&one))).collect();
        assert!(literal.is_empty(), "written as var(--space-N): {literal:?}");
    }

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
