//! What became of messages that the caller sent.

use deskmate_db::{Row, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::messages::{Listing, MessageOut, fetch, find_visible, listing};
use super::party::{self, me, sees_all};
use super::rows::{MessageRow, fitting, message_columns};
use crate::call::{Cx, Page, PageIn};
use crate::limits::RECIPIENTS_MAX;
use crate::{Error, Result, format_time};

/// What one recipient did with a message.
#[derive(Serialize, JsonSchema)]
pub(super) struct Receipt {
    /// The recipient.
    recipient: String,
    /// When they acknowledged it. Absent while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged_at: Option<String>,
}

impl Receipt {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self { recipient: row.get(0)?, acknowledged_at: row.get::<Option<i64>>(1)?.map(format_time) })
    }
}

/// See who has acknowledged a message that you sent, and who has not yet.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetReceipts {
    /// The id of your message.
    message_id: String,
}

/// The receipts of a message.
#[derive(Serialize, JsonSchema)]
pub(super) struct Receipts {
    /// The message's id.
    message_id: String,
    /// One for each recipient.
    receipts: Vec<Receipt>,
    /// How many have acknowledged it.
    acknowledged: usize,
    /// How many have not yet.
    waiting: usize,
}

pub(super) fn receipts(cx: &mut Cx<'_, '_>, input: GetReceipts) -> Result<Receipts> {
    let me = me(cx)?;
    let message = find_visible(cx, "message_id", &input.message_id, &me)?;
    if message.sender != me && !sees_all(cx) {
        return Err(Error::forbidden("only the sender of a message sees its receipts"));
    }
    let receipts = receipts_of(cx, &message.id)?;
    let acknowledged = receipts.iter().filter(|receipt| receipt.acknowledged_at.is_some()).count();
    Ok(Receipts { message_id: message.id, waiting: receipts.len() - acknowledged, acknowledged, receipts })
}

fn receipts_of(cx: &mut Cx<'_, '_>, message: &str) -> Result<Vec<Receipt>> {
    let bound = i64::try_from(RECIPIENTS_MAX).unwrap_or(i64::MAX);
    let rows = cx.tx.query("select recipient, acknowledged_at from delivery where message = $1 order by recipient limit $2", args![message, bound])?;
    rows.iter().map(Receipt::read).collect()
}

/// List the messages that you sent, newest first, with who has acknowledged them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListSentMessages {
    /// Which project; `default` if not given.
    project: Option<String>,
    /// How many messages; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A message that was sent, with its receipts.
#[derive(Serialize, JsonSchema)]
pub(super) struct SentOut {
    /// The message.
    #[serde(flatten)]
    message: MessageOut,
    /// One for each recipient.
    receipts: Vec<Receipt>,
}

/// A page of messages that were sent.
#[derive(Serialize, JsonSchema)]
pub(super) struct SentMessages {
    /// The messages, newest first.
    messages: Vec<SentOut>,
    /// True when there are more than this answer holds.
    more: bool,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

// Who acknowledged it is in the receipts.
pub(super) const SENT: Listing = listing!(
    "cast(null as bigint)",
    "from message m left join person p on p.id = m.sender \
     where m.sender = $1 and m.project = $2 and (m.created_at, m.id) < ($3, $4) order by m.created_at desc, m.id desc limit $5"
);

/// About what a receipt takes in an answer.
const RECEIPT_BYTES: usize = 200;

pub(super) fn list(cx: &mut Cx<'_, '_>, input: ListSentMessages) -> Result<SentMessages> {
    let (me, project) = (me(cx)?, party::project(input.project)?);
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let (created_at, id) = page.after.clone().unwrap_or((i64::MAX, String::new()));
    let found = fetch(cx.tx, &SENT, args![me, project, created_at, id], &page, |row| (row.created_at, row.id.clone()))?;
    with_receipts(cx, found)
}

/// A page of messages with the receipts of each.
pub(super) fn with_receipts(cx: &mut Cx<'_, '_>, found: Page<MessageRow>) -> Result<SentMessages> {
    let mut messages = Vec::with_capacity(found.items.len());
    let mut sizes = Vec::with_capacity(found.items.len());
    for row in found.items {
        let receipts = receipts_of(cx, &row.id)?;
        let content = row.content.as_ref().map_or(0, String::len);
        sizes.push(i64::try_from(content + 512 + receipts.len() * RECEIPT_BYTES).unwrap_or(i64::MAX));
        messages.push(((row.created_at, row.id.clone()), SentOut { message: row.into(), receipts }));
    }
    // Receipts of large groups may leave room for fewer messages than their contents did.
    let cut = Page::cut(messages, &PageIn { limit: fitting(&sizes), after: None }, |(key, _)| key.clone());
    let next_cursor = cut.next_cursor.or(found.next_cursor);
    Ok(SentMessages { messages: cut.items.into_iter().map(|(_, message)| message).collect(), more: next_cursor.is_some(), next_cursor })
}
