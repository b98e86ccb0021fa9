//! What reaches a phone: ntfy and Telegram.

use serde_json::{Value, json};

use super::super::letter::Letter;
use super::escape::{cut_bytes, harmless, html};

/// Lines that one message shows.
const LINES: usize = 5;
/// ntfy makes a file of what has more than 4,096 bytes.
const NTFY: usize = 3_900;
/// Telegram takes 4,096 characters, counted after its markup is read.
const TELEGRAM: usize = 3_900;

/// Plain text; the desk's links are what opens at a tap.
pub(super) fn ntfy(letter: &Letter, topic: &str) -> Value {
    let (lines, more) = letter.first(LINES);
    let mut words: Vec<String> = lines.iter().map(|line| harmless(&line.text)).collect();
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    let alone = match lines {
        [line] => Some(line),
        _ => None,
    };
    let click = alone.and_then(|line| line.page.as_ref()).or(letter.inbox.as_ref());
    let view = |label: &str, url: &String| json!({ "action": "view", "label": label, "url": url });
    let decide = alone.and_then(|line| line.decide.as_ref()).map(|url| view("Decide", url));
    let actions: Vec<Value> = click.map(|url| view("Look at it", url)).into_iter().chain(decide).collect();
    let mut message = json!({
        "topic": topic,
        "title": letter.title,
        "message": cut_bytes(&words.join("\n"), NTFY),
        "priority": if letter.urgent { 5 } else { 3 },
    });
    if let Some(fields) = message.as_object_mut() {
        if let Some(click) = click {
            fields.insert("click".to_owned(), json!(click));
        }
        if !actions.is_empty() {
            fields.insert("actions".to_owned(), json!(actions));
        }
    }
    message
}

/// What others wrote stands in `<code>`, in which Telegram makes no links, names or commands of anything.
pub(super) fn telegram(letter: &Letter, chat: &str) -> Value {
    let (lines, more) = letter.first(LINES);
    let mut text = format!("<b>{}</b>", html(&letter.title));
    for line in lines {
        let mut part = format!("\n\n<code>{}</code>", html(&harmless(&line.text)));
        if let Some(page) = &line.page {
            part.push_str(&format!("\nLook at it: {}", html(page)));
        }
        if let Some(decide) = &line.decide {
            part.push_str(&format!("\nDecide it, once and within half an hour: {}", html(decide)));
        }
        if text.chars().count() + part.chars().count() > TELEGRAM {
            text.push_str("\n\n… (cut)");
            break;
        }
        text.push_str(&part);
    }
    if more > 0 {
        text.push_str(&format!("\n\nand {more} more"));
    }
    if let Some(inbox) = letter.inbox.as_ref().filter(|_| lines.len() != 1) {
        text.push_str(&format!("\n\nEverything that waits: {}", html(inbox)));
    }
    // A number stays one: names of channels are texts.
    let chat = chat.parse::<i64>().map_or_else(|_| json!(chat), |number| json!(number));
    json!({ "chat_id": chat, "text": text, "parse_mode": "HTML", "link_preview_options": { "is_disabled": true }, "disable_notification": false })
}
