//! Sending a message to an actor or to a group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::messages::find_visible;
use super::party::{self, Addressee, GROUP_PREFIX, Priority, called, check_said, find_addressee, me};
use super::rows::{self, MessageRow};
use crate::call::Cx;
use crate::identity::check_name;
use crate::limits::{CONTENT_BYTES_MAX, UNREAD_MAX};
use crate::record::{Event, Kind};
use crate::{Error, Result, format_time};

/// A message was sent.
pub(super) const SENT: Kind = Kind { name: "message.sent", says: "An actor sent a message to another actor or to a group." };

/// Send a message to another agent, a person or a group. It waits until the recipient acknowledges it. You are the
/// sender, whatever the content says.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendMessage {
    /// The recipient: an agent such as `cowork`, a person's name or id, or `group:NAME` for all members of a group.
    to: String,
    /// The text. It reaches the reader as it is, marked as data.
    content: String,
    /// The project it belongs to; that of `reply_to`, else `default`.
    project: Option<String>,
    /// The conversation it belongs to; that of `reply_to`, else a new one.
    thread: Option<String>,
    /// The id of the message that this answers.
    reply_to: Option<String>,
    /// How urgent it is; `normal` if not given.
    priority: Option<Priority>,
}

/// What was sent.
#[derive(Serialize, JsonSchema)]
pub(super) struct Sent {
    /// The message's id.
    message_id: String,
    /// The conversation it belongs to.
    thread: String,
    /// The project it belongs to.
    project: String,
    /// Whom it was delivered to.
    recipients: Vec<String>,
    /// When.
    created_at: String,
}

pub(super) fn send(cx: &mut Cx<'_, '_>, input: SendMessage) -> Result<Sent> {
    let me = me(cx)?;
    check_said("content", &input.content, CONTENT_BYTES_MAX)?;
    if let Some(thread) = &input.thread {
        check_name("thread", thread)?;
    }
    let answered = match &input.reply_to {
        None => None,
        Some(id) => Some(find_visible(cx, "reply_to", id, &me)?),
    };
    let project = party::project(input.project.or_else(|| answered.as_ref().map(|message| message.project.clone())))?;
    let id = cx.new_id();
    let thread = match (input.thread, &answered) {
        (Some(thread), Some(answered)) if thread != answered.thread => {
            return Err(Error::invalid("thread", format!("differs from that of reply_to, which is {}", answered.thread)));
        }
        (Some(thread), _) => thread,
        (None, Some(answered)) => answered.thread.clone(),
        (None, None) => id.clone(),
    };
    let (to_name, recipients) = match find_addressee(cx, "to", &input.to)? {
        Addressee::One(actor) => (actor.clone(), vec![actor]),
        Addressee::Group { name, members } => (format!("{GROUP_PREFIX}{name}"), members.into_iter().filter(|member| *member != me).collect()),
    };
    if recipients.is_empty() {
        return Err(Error::invalid("to", "this group has no other member"));
    }
    let message = MessageRow {
        id,
        project,
        sender_kind: cx.actor.kind.name().to_owned(),
        sender: me,
        sender_name: None,
        verified: cx.actor.verified,
        origin: cx.surface.name().to_owned(),
        to_name,
        thread,
        reply_to: answered.map(|message| message.id),
        rank: input.priority.unwrap_or_default().rank(),
        content: Some(input.content),
        created_at: cx.now(),
        acknowledged_at: None,
    };
    post(cx, message, recipients)
}

/// Writes a message, delivers it and tells the record. Its time is later than that of everything that its recipients
/// have got.
pub(super) fn post(cx: &mut Cx<'_, '_>, mut message: MessageRow, recipients: Vec<String>) -> Result<Sent> {
    let mut entered = Vec::with_capacity(recipients.len());
    for recipient in &recipients {
        let Some(at) = rows::enter_mailbox(cx.tx, recipient, message.created_at)? else {
            let full = format!("{} has {UNREAD_MAX} messages that it did not acknowledge", called(cx, recipient)?);
            return Err(Error::limited(full, 60_000).hint("wait until it reads its messages"));
        };
        message.created_at = at;
        entered.push(message.created_at);
    }
    for (recipient, _) in recipients.iter().zip(entered).filter(|(_, entered)| *entered < message.created_at) {
        rows::move_newest(cx.tx, recipient, message.created_at)?;
    }
    rows::insert_message(cx.tx, &message)?;
    for recipient in &recipients {
        rows::deliver(cx.tx, &message, recipient)?;
    }
    let bytes = message.content.as_ref().map_or(0, String::len);
    let mut event = Event::new(SENT, format!("message:{}", message.id))
        .fact("message", message.id.as_str())
        .fact("project", message.project.as_str())
        .fact("to", message.to_name.as_str())
        .fact("thread", message.thread.as_str())
        .fact("priority", Priority::from_rank(message.rank).name())
        .fact("recipients", recipients.len())
        .fact("bytes", bytes)
        .payload(json!({ "content": message.content }))
        .audience(recipients.iter().cloned());
    if let Some(answered) = &message.reply_to {
        event = event.fact("reply_to", answered.as_str());
    }
    cx.emit(event)?;
    let created_at = format_time(message.created_at);
    Ok(Sent { message_id: message.id, thread: message.thread, project: message.project, recipients, created_at })
}
