//! Chats of teams: Slack, Microsoft Teams, Discord and Mattermost, by their incoming webhooks.

use serde_json::{Map, Value, json};

use super::super::letter::{Letter, Line};
use super::escape::{cut, harmless, markdown, slack as slack_text};

/// Lines that one message shows.
const LINES: usize = 10;
/// Slack takes 3,000 characters in a section and 150 in a header.
const SLACK_SECTION: usize = 2_900;
const SLACK_HEADER: usize = 140;
/// Discord takes 2,000 characters.
const DISCORD: usize = 1_900;
/// Mattermost takes 16,383 characters in one post, and 4,000 on older servers.
const MATTERMOST: usize = 3_900;

/// What is said at the end: how much more there is, and where everything is.
fn rest(letter: &Letter, more: i64) -> Vec<String> {
    let more = (more > 0).then(|| format!("and {more} more"));
    more.into_iter().chain(letter.inbox.as_ref().filter(|_| letter.lines.len() != 1).map(|inbox| format!("Everything that waits: {inbox}"))).collect()
}

/// The addresses of a line, with what they are for.
fn links(line: &Line) -> Vec<(&'static str, &str)> {
    let page = line.page.as_deref().map(|page| ("Look at it", page));
    let decide = line.decide.as_deref().map(|decide| ("Decide it, once and within half an hour", decide));
    page.into_iter().chain(decide).collect()
}

/// Blocks with plain text, in which Slack reads no markup, no names and no links; the desk's own links stand in blocks of theirs.
pub(super) fn slack(letter: &Letter) -> Value {
    let plain = |text: &str, max: usize| json!({ "type": "plain_text", "text": cut(text, max), "emoji": false });
    let (lines, more) = letter.first(LINES);
    let mut blocks = vec![json!({ "type": "header", "text": plain(&letter.title, SLACK_HEADER) })];
    let mut words = vec![slack_text(&letter.title)];
    for line in lines {
        blocks.push(json!({ "type": "section", "text": plain(&harmless(&line.text), SLACK_SECTION) }));
        words.push(slack_text(&harmless(&line.text)));
        let named: Vec<String> = links(line).into_iter().map(|(what, address)| format!("<{}|{what}>", slack_text(address))).collect();
        if !named.is_empty() {
            blocks.push(json!({ "type": "section", "text": { "type": "mrkdwn", "text": named.join(" · "), "verbatim": true } }));
        }
    }
    for text in rest(letter, more) {
        blocks.push(json!({ "type": "section", "text": { "type": "mrkdwn", "text": slack_text(&text) } }));
    }
    // What is shown where blocks cannot be: in the notification of a phone, for example.
    json!({ "text": cut(&words.join("\n"), SLACK_SECTION), "blocks": blocks, "unfurl_links": false, "unfurl_media": false })
}

/// An adaptive card. Its runs of text know no markup, and names are called only by a list that is not there.
pub(super) fn teams(letter: &Letter) -> Value {
    let said = |text: &str, weight: &str| json!({ "type": "RichTextBlock", "inlines": [{ "type": "TextRun", "text": cut(text, 1_000), "weight": weight }] });
    let (lines, more) = letter.first(LINES);
    let mut body = vec![said(&letter.title, "Bolder")];
    for line in lines {
        body.push(said(&harmless(&line.text), "Default"));
        let open = links(line).into_iter().map(|(what, address)| json!({ "type": "Action.OpenUrl", "title": what, "url": address }));
        let actions: Vec<Value> = open.collect();
        if !actions.is_empty() {
            body.push(json!({ "type": "ActionSet", "actions": actions }));
        }
    }
    body.extend(rest(letter, more).iter().map(|text| said(text, "Default")));
    let card = json!({ "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": body });
    json!({ "type": "message", "attachments": [{ "contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": null, "content": card }] })
}

/// Lines of Markdown that fit; what does not says so.
fn in_markdown(letter: &Letter, max: usize) -> String {
    let (lines, more) = letter.first(LINES);
    let mut text = format!("**{}**", markdown(&letter.title));
    let mut shown = 0;
    let mut left = more + i64::try_from(lines.len()).unwrap_or(0);
    for line in lines {
        let mut part = format!("\n{}", markdown(&harmless(&line.text)));
        for (what, address) in links(line) {
            part.push_str(&format!("\n{what}: <{address}>"));
        }
        // Whole lines only: half of an escape or of a link would be another text.
        if text.chars().count() + part.chars().count() > max - 200 {
            break;
        }
        text.push_str(&part);
        (shown, left) = (shown + 1, left - 1);
    }
    if shown < lines.len() {
        text.push_str("\n… (cut)");
    }
    for end in rest(letter, left) {
        text.push_str(&format!("\n{end}"));
    }
    text
}

/// Nobody is called by a name in it, whatever it says, and links show no pictures of what they lead to.
pub(super) fn discord(letter: &Letter) -> Value {
    const SUPPRESS_EMBEDS: u32 = 1 << 2;
    json!({ "content": in_markdown(letter, DISCORD), "allowed_mentions": { "parse": [] }, "flags": SUPPRESS_EMBEDS })
}

pub(super) fn mattermost(letter: &Letter, to: Option<&str>) -> Value {
    let mut body = Map::from_iter([("text".to_owned(), Value::from(in_markdown(letter, MATTERMOST)))]);
    if let Some(to) = to {
        body.insert("channel".to_owned(), Value::from(to));
    }
    Value::Object(body)
}
