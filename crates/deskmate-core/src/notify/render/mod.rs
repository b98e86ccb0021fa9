//! A letter in the form that each service documents. Whatever somebody wrote is escaped for that service, calls nobody by name,
//! leads nowhere by itself, and is cut where the service would refuse it; what was cut says so.

mod chat;
mod escape;
mod mail;
mod push;

use serde_json::Value;

use super::channel::ChannelKind;
use super::letter::Letter;
use crate::{Error, Result};

pub use mail::Mail;

/// A letter as a service takes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Rendered {
    /// An e-mail.
    Mail(Mail),
    /// A request with this body.
    Json(Value),
}

/// Writes a letter for a service. `to` is where to, for services that are told so in the message.
pub fn render(kind: ChannelKind, letter: &Letter, to: Option<&str>) -> Result<Rendered> {
    let needed = || to.ok_or_else(|| Error::invalid("address", "is needed for this outlet"));
    Ok(match kind {
        ChannelKind::Email => Rendered::Mail(mail::mail(letter)),
        ChannelKind::Slack => Rendered::Json(chat::slack(letter)),
        ChannelKind::Teams => Rendered::Json(chat::teams(letter)),
        ChannelKind::Discord => Rendered::Json(chat::discord(letter)),
        ChannelKind::Mattermost => Rendered::Json(chat::mattermost(letter, to)),
        ChannelKind::Ntfy => Rendered::Json(push::ntfy(letter, needed()?)),
        ChannelKind::Telegram => Rendered::Json(push::telegram(letter, needed()?)),
        ChannelKind::Desktop | ChannelKind::Webhook => return Err(Error::invalid("kind", "has a form of its own")),
    })
}

#[cfg(test)]
mod tests;
