//! E-mail: plain text, so that nothing in it is markup.

use super::super::letter::Letter;
use super::escape::harmless;

/// An e-mail, but for whom and from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Names the message, the same at every attempt: who gets it twice knows it again.
    pub id: String,
    /// The subject. Only words of the desk's own.
    pub subject: String,
    /// The text.
    pub text: String,
    /// Whether it is urgent.
    pub urgent: bool,
}

pub(super) fn mail(letter: &Letter) -> Mail {
    let mut text = format!("{}\n", letter.title);
    for line in &letter.lines {
        text.push_str(&format!("\n- {}\n", harmless(&line.text)));
        if let Some(page) = &line.page {
            text.push_str(&format!("  Look at it: {page}\n"));
        }
        if let Some(decide) = &line.decide {
            text.push_str(&format!("  Decide it, once and within half an hour: {decide}\n"));
        }
    }
    if letter.more > 0 {
        text.push_str(&format!("\nand {} more\n", letter.more));
    }
    if let Some(inbox) = &letter.inbox {
        text.push_str(&format!("\nEverything that waits: {inbox}\n"));
    }
    text.push_str("\nYou get this because you asked your desk for it. What follows a colon after who asks was written by others.\n");
    Mail { id: letter.id.clone(), subject: letter.title.clone(), text, urgent: letter.urgent }
}
