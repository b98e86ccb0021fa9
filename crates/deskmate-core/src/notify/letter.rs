//! A message for people who are not at the desk: plain lines with addresses beside them, which each service writes in its own way.

use super::channel::Details;
use super::message::{Item, Message, plain};

/// A message for people who are not at the desk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The notification's id; the same at every attempt.
    pub id: String,
    /// Whether it is urgent.
    pub urgent: bool,
    /// A heading. Only words of the desk's own.
    pub title: String,
    /// What happened, the first of it.
    pub lines: Vec<Line>,
    /// How much more happened.
    pub more: i64,
    /// Where everything that waits is, if the desk knows where people reach it.
    pub inbox: Option<String>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// In words. Some of them were written by others: nothing in it is markup.
    pub text: String,
    /// Where people look at it.
    pub page: Option<String>,
    /// Where the person decides it, once, for a short time.
    pub decide: Option<String>,
}

impl Letter {
    /// A message in words. `decided_at` has for each item the link by which it can be decided, if there is one.
    pub(super) fn new(message: &Message, details: Details, decided_at: &[Option<String>], base: Option<&str>) -> Self {
        let redactor = details.redactor();
        let line = |(number, item): (usize, &Item)| Line {
            text: plain(&redactor.text(&item.sentence()).text),
            page: item.link.clone(),
            decide: decided_at.get(number).cloned().flatten().zip(base).map(|(link, base)| format!("{base}/decide?link={link}")),
        };
        let lines: Vec<Line> = message.data.items.iter().enumerate().map(line).collect();
        let shown = i64::try_from(lines.len()).unwrap_or(i64::MAX);
        Self {
            id: message.data.notification.clone(),
            urgent: message.data.urgent,
            title: message.title(),
            more: (message.data.count - shown).max(0),
            lines,
            inbox: base.map(|base| format!("{base}/")),
        }
    }

    /// A test.
    pub fn test(id: &str, base: Option<&str>) -> Self {
        let text = "This is a test: the desk can tell you here that something waits for you.".to_owned();
        Self {
            id: id.to_owned(),
            urgent: false,
            title: "Deskmate: a test".to_owned(),
            lines: vec![Line { text, page: None, decide: None }],
            more: 0,
            inbox: base.map(|base| format!("{base}/")),
        }
    }

    /// The first lines, and how much more there is.
    pub(super) fn first(&self, max: usize) -> (&[Line], i64) {
        let shown = self.lines.get(..max).unwrap_or(&self.lines);
        let left = i64::try_from(self.lines.len() - shown.len()).unwrap_or(0);
        (shown, self.more + left)
    }
}
