//! The design system: every part that pages are made of, as a function. `/design` shows them all.
//!
//! Whatever somebody wrote goes through [`said`], [`words`] or [`block`], which keep it apart from the page's own words
//! and make visible what would hide or turn it.

use maud::{Markup, html};
use serde_json::Value;

use crate::visible::visible;

/// How loud something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Quiet,
    Good,
    Warning,
    Alarm,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Quiet => "badge",
            Self::Good => "badge good",
            Self::Warning => "badge warning",
            Self::Alarm => "badge alarm",
        }
    }

    /// The tone of a risk.
    pub(super) fn of_risk(risk: &str) -> Self {
        match risk {
            "critical" | "high" => Self::Alarm,
            "medium" => Self::Warning,
            _ => Self::Quiet,
        }
    }

    /// The tone of a priority.
    pub(super) fn of_priority(priority: &str) -> Self {
        match priority {
            "urgent" => Self::Alarm,
            "high" => Self::Warning,
            _ => Self::Quiet,
        }
    }

    /// The tone of what a rule does.
    pub(super) fn of_effect(effect: &str) -> Self {
        match effect {
            "deny" => Self::Alarm,
            "allow" => Self::Good,
            "log" => Self::Quiet,
            _ => Self::Warning,
        }
    }

    /// The tone of a state.
    pub(super) fn of_state(state: &str) -> Self {
        match state {
            "approved" | "done" | "completed" | "executing" | "in_progress" | "active" | "act" => Self::Good,
            "rejected" | "failed" | "revoked" | "deny" | "denied" => Self::Alarm,
            "pending" | "held" | "ambiguous" | "input_needed" | "escalate" | "suggest" => Self::Warning,
            _ => Self::Quiet,
        }
    }
}

/// A short word with a tone.
pub(super) fn badge(tone: Tone, text: &str) -> Markup {
    html! { span class=(tone.class()) { (spaced(text)) } }
}

/// A name of the desk's own, for people: `input_needed` is "input needed".
pub(super) fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

/// What somebody wrote, in a line.
pub(super) fn said(text: &str) -> Markup {
    html! { bdi.said { (visible(text)) } }
}

/// What somebody wrote, in paragraphs. A long text scrolls within its place, which is reached without a mouse, too.
pub(super) fn words(text: &str) -> Markup {
    let is_long = text.len() > 500 || text.lines().count() > 10;
    html! { p.words tabindex=[is_long.then_some("0")] { (said(text)) } }
}

/// What somebody wrote, with its spaces and lines.
pub(super) fn block(text: &str) -> Markup {
    html! { pre.block tabindex="0" { (visible(text)) } }
}

/// Any value: text as text, the rest as JSON.
pub(super) fn value(value: &Value) -> Markup {
    block(&plain(value))
}

/// A value as people would write it.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(_) | Value::Array(_) => serde_json::to_string_pretty(value).unwrap_or_default(),
        other => other.to_string(),
    }
}

/// What is said of a requester that was not shown to be who it says: an agent only named itself, and a person's program came with
/// a token of theirs.
pub(super) fn unproved(requester_kind: &str) -> &'static str {
    if requester_kind == "person" { "a program with their token" } else { "unverified" }
}

/// A moment. The script shows it in the reader's zone; without it, it is UTC.
pub(super) fn time(at: &str) -> Markup {
    let until_minutes: String = at.chars().take(16).collect();
    html! { time datetime=(at) { (until_minutes.replace('T', " ")) " UTC" } }
}

/// A share between 0 and 1, as a bar and in percent.
pub(super) fn share(name: &str, share: f64) -> Markup {
    html! { span.share { meter min="0" max="1" value=(share) aria-label=(name) {} (percent(share)) } }
}

/// A share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A name and what it stands for, for lists of facts.
pub(super) fn fact(name: &str, what: Markup) -> Markup {
    html! { div { dt { (name) } dd { (what) } } }
}

/// What a page shows when there is nothing, with what to do next.
pub(super) fn empty(title: &str, next: Markup) -> Markup {
    html! { div.empty { h2 { (title) } (next) } }
}

/// A part of a page with its heading; nothing if there is nothing in it.
pub(super) fn part(title: &str, body: Markup) -> Markup {
    if body.0.is_empty() {
        return body;
    }
    html! { section.part { h3 { (title) } (body) } }
}

/// A labelled place to write in.
pub(super) fn field(id: &str, label: &str, input: Markup) -> Markup {
    html! { div.field { label for=(id) { (label) } (input) } }
}

/// A choice out of a few, with a label beside it.
pub(super) fn choice(id: &str, name: &str, options: &[(&str, &str)], chosen: &str) -> Markup {
    html! { select id=(id) name=(name) { (options_of(options, chosen)) } }
}

/// A choice out of a few that stands alone, and says to those who do not see it what it is about.
pub(super) fn filter(label: &str, name: &str, options: &[(&str, &str)], chosen: &str) -> Markup {
    html! { select name=(name) aria-label=(label) { (options_of(options, chosen)) } }
}

fn options_of(options: &[(&str, &str)], chosen: &str) -> Markup {
    html! { @for (value, label) in options { option value=(value) selected[*value == chosen] { (label) } } }
}

/// The pages of one place, of which one is open.
pub(super) fn tabs(pages: &[(&str, &str)], open: &str) -> Markup {
    html! {
        nav.tabs aria-label="Parts of this page" {
            @for (path, name) in pages { a href=(path) aria-current=[(*path == open).then_some("page")] { (name) } }
        }
    }
}

/// How many rows a list begins with, and how many more it shows at once.
pub(super) const ROWS: usize = 50;
/// How many rows one page shows at most: what follows is on a page of its own.
pub(super) const ROWS_MAX: usize = 500;

/// How many rows an address asks for.
pub(super) fn rows(given: &str) -> usize {
    given.parse().unwrap_or(ROWS).clamp(ROWS, ROWS_MAX)
}

/// The way to the rest of a list, if there is one: more rows below as long as that is easy to read, then from where this page
/// ends. `address` is that of so many rows, from a cursor on if one is given and else from where this page begins.
pub(super) fn onward(rows: usize, next: Option<&str>, address: impl Fn(String, Option<&str>) -> String) -> Markup {
    match next {
        None => Markup::default(),
        Some(_) if rows < ROWS_MAX => more(&address((rows + ROWS).to_string(), None)),
        next => html! { p.more { a href=(address(String::new(), next)) data-in-place { "Show the next ones" } } },
    }
}

/// The way back from a page that does not begin where the list does.
pub(super) fn back_to_first(address: &str) -> Markup {
    html! { p.more { a href=(address) data-in-place { "Back to the first ones" } } }
}

/// The link that shows more of a list.
pub(super) fn more(address: &str) -> Markup {
    html! { p.more { a href=(address) data-in-place { "Show more" } } }
}

/// The end of an id, which tells it apart.
pub(super) fn short(id: &str) -> String {
    let skip = id.chars().count().saturating_sub(8);
    id.chars().skip(skip).collect()
}

/// A name or an id as one part of an address.
pub(super) fn segment(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    text.bytes().map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The address of a page with a query.
pub(super) fn address(path: &str, query: &[(&str, &str)]) -> String {
    let given: Vec<_> = query.iter().filter(|(_, value)| !value.is_empty()).collect();
    match serde_urlencoded::to_string(given) {
        Ok(query) if !query.is_empty() => format!("{path}?{query}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_goes_on_to_its_end() {
        let onward = |rows: usize, next| onward(rows, next, |rows, cursor| format!("/?rows={rows}&cursor={}", cursor.unwrap_or("here"))).into_string();
        assert_eq!(onward(ROWS, None), "");
        assert!(onward(ROWS, Some("there")).contains("rows=100&amp;cursor=here"), "more rows, from the same place on");
        assert!(onward(ROWS_MAX, Some("there")).contains("rows=&amp;cursor=there"), "a full page is followed by another one");
        assert_eq!((rows(""), rows("1"), rows("120"), rows("9000")), (ROWS, ROWS, 120, ROWS_MAX));
    }
}
