//! Finding messages by what they say, among those that the caller may read anyhow. There is no index of words: what is looked
//! through is bounded in each call, and the next page goes on from there.

use deskmate_db::{Param, ToParam, Tx, args};
use schemars::JsonSchema;
use serde::Deserialize;

use super::messages::{Listing, Messages, listing};
use super::party::{self, me, sees_all};
use super::rows::{MessageRow, fitting, fitting_in, message_columns};
use crate::call::{Cx, Page, PageIn};
use crate::limits::TITLE_CHARS_MAX;
use crate::{Error, Result, check_text};

/// How many messages one call looks through of those that wait for its caller, of those it is done with, and of those it sent; and how many
/// bytes of each.
const LOOK: u32 = 2_000;
const LOOK_BYTES: usize = 4 << 20;

pub(super) const WAITING: Listing = listing!(
    "d.acknowledged_at",
    "from delivery d join message m on m.id = d.message left join person p on p.id = m.sender \
     where d.recipient = $1 and d.project = $2 and d.acknowledged_at is null and (d.created_at, d.message) < ($3, $4) \
     order by d.created_at desc, d.message desc limit $5"
);
pub(super) const DONE: Listing = listing!(
    "d.acknowledged_at",
    "from delivery d join message m on m.id = d.message left join person p on p.id = m.sender \
     where d.recipient = $1 and d.project = $2 and d.acknowledged_at is not null and (d.created_at, d.message) < ($3, $4) \
     order by d.created_at desc, d.message desc limit $5"
);
pub(super) const SENT: Listing = listing!(
    "d.acknowledged_at",
    "from message m left join person p on p.id = m.sender left join delivery d on d.message = m.id and d.recipient = $1 \
     where m.sender = $1 and m.project = $2 and (m.created_at, m.id) < ($3, $4) order by m.created_at desc, m.id desc limit $5"
);
pub(super) const ALL: Listing = listing!(
    "cast(null as bigint)",
    "from message m left join person p on p.id = m.sender where (m.created_at, m.id) < ($1, $2) order by m.created_at desc, m.id desc limit $3"
);

/// Find messages that you sent or got by what they say, newest first. People find those of everybody. Reading changes nothing. Each call
/// looks through a part of the messages, so a page may be short or empty and still have a next one: go on while there is a `next_cursor`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchMessages {
    /// What the message has in it, in capitals or not.
    text: String,
    /// Which project; `default` if not given.
    project: Option<String>,
    /// How many messages; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

type Key = (i64, String);

fn key(row: &MessageRow) -> Key {
    (row.created_at, row.id.clone())
}

/// The next messages of a list, and the place up to which that is all of them, where there are more.
fn look(tx: &mut Tx<'_>, listing: &Listing, params: &[Param<'_>]) -> Result<(Vec<MessageRow>, Option<Key>)> {
    let sizes = tx.query(listing.sizes, &[params, &[LOOK.to_param()]].concat())?;
    let sizes = sizes.iter().map(|row| row.get(0)).collect::<deskmate_db::Result<Vec<i64>>>()?;
    let count = fitting_in(&sizes, LOOK_BYTES);
    let rows = tx.query(listing.rows, &[params, &[count.to_param()]].concat())?;
    let rows = rows.iter().map(MessageRow::read).collect::<Result<Vec<_>>>()?;
    let cut = count >= LOOK || (count as usize) < sizes.len();
    let end = rows.last().filter(|_| cut).map(key);
    Ok((rows, end))
}

pub(super) fn search(cx: &mut Cx<'_, '_>, input: SearchMessages) -> Result<Messages> {
    let (me, project) = (me(cx)?, party::project(input.project)?);
    check_text("text", &input.text, TITLE_CHARS_MAX)?;
    let wanted = input.text.to_lowercase();
    if wanted.trim().is_empty() {
        return Err(Error::invalid("text", "must say something to look for"));
    }
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let (before, id) = page.after.clone().unwrap_or((i64::MAX, String::new()));
    let (mut rows, mut end) = if sees_all(cx) {
        look(cx.tx, &ALL, args![before, id])?
    } else {
        let (mut rows, mut end) = (Vec::new(), None);
        for listing in [&WAITING, &DONE, &SENT] {
            let (more, cut) = look(cx.tx, listing, args![me, project, before, id])?;
            rows.extend(more);
            // Where one list was cut, nothing older of the others comes before what is left of it.
            end = end.max(cut);
        }
        (rows, end)
    };
    let fits = |row: &MessageRow| row.project == project && row.content.as_ref().is_some_and(|content| content.to_lowercase().contains(&wanted));
    rows.retain(|row| fits(row) && end.as_ref().is_none_or(|end| key(row) >= *end));
    rows.sort_by_key(|row| std::cmp::Reverse(key(row)));
    // What somebody sent to themselves is in both lists.
    rows.dedup_by_key(|row| row.id.clone());
    let sizes: Vec<i64> = rows.iter().map(|row| i64::try_from(row.content.as_ref().map_or(0, String::len) + 512).unwrap_or(i64::MAX)).collect();
    let count = (fitting(&sizes).min(page.limit)) as usize;
    if rows.len() > count {
        rows.truncate(count);
        end = rows.last().map(key);
    }
    let next_cursor = end.map(|(at, id)| Page::<()>::cursor(at, &id));
    Ok(Messages::new(Page { items: rows, next_cursor }, Vec::new()))
}
