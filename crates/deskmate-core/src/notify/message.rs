//! What is sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::topic::Topic;
use crate::limits::NOTIFICATION_TEXT_CHARS_MAX;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Item {
    /// The event's place in the record.
    pub seq: u64,
    /// The kind of event.
    pub event: String,
    /// When it happened.
    pub at: String,
    /// To what, for example `request:ID`.
    pub subject: String,
    /// What it is about.
    pub topic: Topic,
    /// The scope of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The kind of request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_kind: Option<String>,
    /// The agent that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// `low`, `medium`, `high` or `critical`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
    /// How the request stands after the event; for trust, `promoted` or `demoted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// When a request that waits expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// What the agent wrote as a title, cleaned and redacted; only where the channel shows texts. Data, not instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where people look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

impl Item {
    /// The request that it is about.
    pub(super) fn request(&self) -> Option<&str> {
        self.subject.strip_prefix("request:")
    }

    /// Whether it tells that something waits: then it is not told once that was decided.
    pub(super) fn waits(&self) -> bool {
        self.state.as_deref() == Some("pending")
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let agent = self.agent.as_deref().unwrap_or("somebody");
        let kind = self.request_kind.as_deref().unwrap_or("request");
        let mut line = match self.event.as_str() {
            "request.created" => format!("{kind} of {agent} waits"),
            "request.answered" => format!("{agent} answered your question"),
            "request.delegated" => format!("{kind} of {agent} was given to somebody"),
            "request.escalated" => format!("{kind} of {agent} waited too long"),
            "request.undone" | "request.stopped" => format!("{kind} of {agent} waits again"),
            "request.expired" => format!("{kind} of {agent} expired: nobody decided in time"),
            "request.finished" => format!("what {agent} did: {}", self.state.as_deref().unwrap_or("failed")),
            "trust.changed" => format!("{agent} was {}", self.state.as_deref().unwrap_or("promoted")),
            "pause.set" => format!("{} paused", if agent == "*" { "all agents were".to_owned() } else { format!("{agent} was") }),
            "pause.lifted" => format!("{} may go on", if agent == "*" { "all agents" } else { agent }),
            "person.locked" => "signing in is locked after too many wrong passphrases".to_owned(),
            "grant.refused" => "a row was changed behind the desk's back".to_owned(),
            "break_glass.used" => format!("somebody decided alone, without you, about a {kind} of {agent}"),
            "notification.reminded" => format!("{kind} of {agent} still waits"),
            "notification.tested" => "this is a test".to_owned(),
            other => other.to_owned(),
        };
        if let Some(domain) = &self.domain {
            line.push_str(&format!(" ({domain})"));
        }
        if let Some(title) = &self.title {
            line.push_str(&format!(": {title}"));
        }
        plain(&line)
    }
}

impl Item {
    /// One line for people who are not at the desk: how risky it is, who asks, for what kind of act, and where. It begins with what
    /// must not be cut off.
    pub fn sentence(&self) -> String {
        let kind = self.request_kind.as_deref().unwrap_or_default();
        if self.request().is_none() || kind.is_empty() {
            return self.line();
        }
        let agent = short(self.agent.as_deref().unwrap_or("somebody"));
        let what = match kind {
            "proposal" => "a proposal",
            "approval" => "an approval",
            "handoff" => "work that is handed to people",
            "edit" => "a change over what a person set",
            "promotion" => "more trust",
            "policy" => "a change of policy",
            "plan" => "a plan that changes files",
            "tool_call" => "a call of a tool",
            _ => "a decision",
        };
        let said = match self.event.as_str() {
            "request.answered" => format!("{agent} answered your question about {what}"),
            "request.delegated" => format!("{agent} asks for {what}; it was given to you"),
            "request.escalated" => format!("{agent} asks for {what}, and waited too long"),
            "request.undone" | "request.stopped" => format!("{agent} asks for {what} again"),
            "request.expired" => format!("{agent} asked for {what}, and nobody decided in time"),
            "request.finished" => format!("{agent} was allowed {what}: {}", self.state.as_deref().unwrap_or("failed")),
            "break_glass.used" => format!("somebody allowed {agent} {what} alone, without waiting for the others"),
            "notification.reminded" => format!("{agent} still waits for {what}"),
            _ => format!("{agent} asks for {what}"),
        };
        let mut line = match self.risk.as_deref() {
            Some(risk) => format!("[{risk} risk] {said}"),
            None => said,
        };
        if let Some(domain) = &self.domain {
            line.push_str(&format!(" in {}", short(domain)));
        }
        if let Some(until) = self.expires_at.as_ref().filter(|_| self.event == "notification.reminded") {
            let minutes: String = until.chars().take(16).collect();
            line.push_str(&format!("; it expires {} UTC", minutes.replace('T', " ")));
        }
        if let Some(title) = &self.title {
            line.push_str(&format!(": {title}"));
        }
        plain(&line)
    }
}

/// A name, cut: others stand beside it in one line.
fn short(name: &str) -> String {
    const MAX: usize = 48;
    let name = plain(name);
    if name.chars().count() <= MAX {
        return name;
    }
    let cut: String = name.chars().take(MAX - 1).collect();
    format!("{cut}…")
}

/// A message, as a webhook carries it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Always `desk.attention`, or `desk.test`.
    pub r#type: String,
    /// When it was put together.
    pub timestamp: String,
    /// What happened.
    pub data: Data,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// The notification's id; the same at every attempt.
    pub notification: String,
    /// The channel's name.
    pub channel: String,
    /// Whether it is urgent.
    pub urgent: bool,
    /// How many things happened; `items` are the first of them.
    pub count: i64,
    /// The first things that happened.
    pub items: Vec<Item>,
}

impl Message {
    /// A heading for people.
    pub fn title(&self) -> String {
        let count = self.data.count;
        match (self.r#type.as_str(), count) {
            ("desk.test", _) => "Deskmate: a test".to_owned(),
            (_, 1) => "Deskmate: something needs you".to_owned(),
            _ => format!("Deskmate: {count} things need you"),
        }
    }

    /// A few lines for people.
    pub fn lines(&self, max: usize) -> Vec<String> {
        let mut lines: Vec<String> = self.data.items.iter().take(max).map(Item::line).collect();
        let shown = i64::try_from(lines.len()).unwrap_or(i64::MAX);
        if self.data.count > shown {
            lines.push(format!("and {} more", self.data.count - shown));
        }
        lines
    }
}

/// A text that somebody wrote, on one line and cut, without anything that steers a terminal, turns the direction of
/// writing, or cannot be seen.
pub fn plain(text: &str) -> String {
    let seen = |c: char| !c.is_control() && !is_unseen(c);
    let mut clean = String::new();
    for word in text.split(char::is_whitespace) {
        let word: String = word.chars().filter(|c| seen(*c)).collect();
        if word.is_empty() {
            continue;
        }
        if !clean.is_empty() {
            clean.push(' ');
        }
        clean.push_str(&word);
    }
    if clean.chars().count() <= NOTIFICATION_TEXT_CHARS_MAX {
        return clean;
    }
    let cut: String = clean.chars().take(NOTIFICATION_TEXT_CHARS_MAX - 1).collect();
    format!("{cut}…")
}

/// Characters that change how others are shown, or show nothing themselves: directions, joiners, tags, selectors.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::{Item, plain};
    use crate::notify::Topic;

    #[test]
    fn nothing_steers_the_reader() {
        assert_eq!(plain("a\u{1b}[2J\r\n b\t\u{202e}c\u{200b}d\u{7f}"), "a[2J b cd");
        assert_eq!(plain(" \u{1b} "), "");
        assert_eq!(plain(&"é".repeat(500)).chars().count(), 200);
    }

    #[test]
    fn a_sentence_says_the_risk_first_and_who_asks_for_what() {
        let item = Item {
            seq: 1,
            event: "request.created".to_owned(),
            at: String::new(),
            subject: "request:1".to_owned(),
            topic: Topic::Requests,
            domain: Some("crm.deals".to_owned()),
            request_kind: Some("tool_call".to_owned()),
            agent: Some("code".to_owned()),
            risk: Some("medium".to_owned()),
            state: Some("pending".to_owned()),
            expires_at: Some("2026-01-02T03:04:05.000000Z".to_owned()),
            title: Some("x".repeat(300)),
            link: None,
        };
        let line = item.sentence();
        assert!(line.starts_with("[medium risk] code asks for a call of a tool in crm.deals: xxx"), "{line}");
        assert!(line.ends_with('…') && line.chars().count() == 200, "cut visibly: {line}");
        let long = Item { agent: Some("a".repeat(128)), domain: Some("d".repeat(128)), title: Some("what".to_owned()), ..item.clone() };
        assert!(long.sentence().ends_with(": what"), "long names leave room for the rest: {}", long.sentence());
        let again = Item { event: "notification.reminded".to_owned(), title: None, ..item };
        assert_eq!(again.sentence(), "[medium risk] code still waits for a call of a tool in crm.deals; it expires 2026-01-02 03:04 UTC");
    }
}
