//! Rows that somebody put into the file enter the desk.

use deskmate_db::args;

use super::known::{self, Known};
use super::{FileMessage, FileRow, FileTask, Table};
use crate::bridge::claim::take;
use crate::bridge::messages::acknowledge_one;
use crate::bridge::party::{self, Addressee, GROUP_PREFIX, Priority, check_said, find_addressee, me};
use crate::bridge::rows::{self, MessageRow, TaskRow};
use crate::bridge::send::post;
use crate::bridge::state::State;
use crate::bridge::tasks::tell_created;
use crate::bridge::update::change;
use crate::call::{Actor, Cx};
use crate::identity::check_name;
use crate::limits::{CONTENT_BYTES_MAX, LEASE_MAX, TITLE_CHARS_MAX, UNREAD_MAX};
use crate::{Error, Result, check_text, parse_time};

/// Does something as an unverified agent who claims a name.
pub(super) fn claiming<T>(cx: &mut Cx<'_, '_>, name: &str, act: impl FnOnce(&mut Cx<'_, '_>) -> Result<T>) -> Result<T> {
    let before = std::mem::replace(&mut cx.actor, Actor::agent(name, false));
    let done = act(cx);
    cx.actor = before;
    done
}

/// Takes over what a new row says that its recipient did already. Where nobody can act by hand for them, it is the desk's
/// own act: the record never says that they did it.
fn taking_over<T>(cx: &mut Cx<'_, '_>, recipient: &str, act: impl FnOnce(&mut Cx<'_, '_>) -> Result<T>) -> Result<T> {
    if may_act_by_hand(cx, recipient)? {
        return claiming(cx, recipient, act);
    }
    let before = std::mem::replace(&mut cx.actor, Actor::system());
    let done = act(cx);
    cx.actor = before;
    done
}

/// Whether a name can act by hand: people and registered agents have credentials, and a row in a file is none.
pub(super) fn may_act_by_hand(cx: &mut Cx<'_, '_>, name: &str) -> Result<bool> {
    if name.starts_with(GROUP_PREFIX) {
        return Ok(false);
    }
    let holder = cx.tx.optional("select id from agent where id = $1 union all select id from person where id = $1 limit 1", args![name])?;
    Ok(holder.is_none())
}

/// How long work that somebody began by hand stands: nobody gives signs of life for it.
pub(super) fn by_hand_ttl() -> i64 {
    i64::try_from(LEASE_MAX.as_micros()).unwrap_or(i64::MAX)
}

/// The times that the file knows: `YYYY-MM-DD HH:MM:SS` in UTC from `datetime('now')`, and RFC 3339.
fn claimed_time(text: &str) -> Option<i64> {
    let text = text.trim();
    parse_time("created_at", text).or_else(|_| parse_time("created_at", &format!("{text}Z"))).ok().filter(|time| *time > 0)
}

/// The id that a row gets here: its own where it is a UUID that nobody has, else a new one. Ids become facts of the
/// record, and facts are never erased, so nothing that somebody made up becomes one.
fn own_id(cx: &mut Cx<'_, '_>, table: Table, id: &str) -> Result<String> {
    let lower = id.to_ascii_lowercase();
    let is_uuid = lower.len() == 36 && uuid::Uuid::try_parse(&lower).is_ok();
    let sql = match table {
        Table::Messages => "select id from message where id = $1",
        Table::Tasks => "select id from task where id = $1",
    };
    let free = is_uuid && cx.tx.optional(sql, args![lower])?.is_none();
    Ok(if free { lower } else { cx.new_id() })
}

/// Takes a message in. All checks come before the first write, because the rows beside it share the transaction.
pub(super) fn message(cx: &mut Cx<'_, '_>, row: &FileRow, message: &FileMessage) -> Result<()> {
    check_name("sender", &message.sender)?;
    check_said("content", &message.content, CONTENT_BYTES_MAX)?;
    claiming(cx, &message.sender, |cx| {
        let sender = me(cx)?;
        let (to_name, recipients) = match find_addressee(cx, "recipient", &message.recipient)? {
            Addressee::One(actor) => (actor.clone(), vec![actor]),
            Addressee::Group { name, members } => (format!("{GROUP_PREFIX}{name}"), members.into_iter().filter(|member| *member != sender).collect()),
        };
        if recipients.is_empty() {
            return Err(Error::invalid("recipient", "this group has no other member"));
        }
        for recipient in &recipients {
            check_room(cx, recipient)?;
        }
        let id = own_id(cx, Table::Messages, &row.id)?;
        let stored = MessageRow {
            id: id.clone(),
            project: party::project(None)?,
            sender_kind: cx.actor.kind.name().to_owned(),
            sender: sender.clone(),
            sender_name: None,
            verified: false,
            origin: cx.surface.name().to_owned(),
            to_name,
            thread: id.clone(),
            reply_to: None,
            rank: Priority::default().rank(),
            content: Some(message.content.clone()),
            created_at: claimed_time(&message.created_at).unwrap_or(i64::MAX).min(cx.now()),
            acknowledged_at: None,
        };
        post(cx, stored, recipients.clone())?;
        known::remember(cx.tx, Table::Messages, &Known { id: id.clone(), recipient: String::new(), spelled: row.id.clone() })?;
        if message.read {
            for recipient in &recipients {
                taking_over(cx, recipient, |cx| acknowledge_one(cx, &id, &sender, recipient))?;
            }
        }
        Ok(())
    })
}

fn check_room(cx: &mut Cx<'_, '_>, recipient: &str) -> Result<()> {
    let unread: Option<i64> = cx.tx.optional("select unread from mailbox where recipient = $1", args![recipient])?.map(|row| row.get(0)).transpose()?;
    if unread.is_some_and(|unread| unread >= UNREAD_MAX) {
        return Err(Error::limited(format!("{recipient} has {UNREAD_MAX} messages that it did not acknowledge"), 60_000));
    }
    Ok(())
}

/// Takes a task in, in the state that the file says.
pub(super) fn task(cx: &mut Cx<'_, '_>, row: &FileRow, task: &FileTask) -> Result<()> {
    check_name("sender", &task.sender)?;
    check_said("title", &task.title, TITLE_CHARS_MAX)?;
    check_text("description", &task.description, CONTENT_BYTES_MAX)?;
    if let Some(result) = &task.result {
        check_text("result", result, CONTENT_BYTES_MAX)?;
    }
    let state = state(&task.status)?;
    let recipient = claiming(cx, &task.sender, |cx| {
        me(cx)?;
        Ok(match find_addressee(cx, "recipient", &task.recipient)? {
            Addressee::One(actor) => actor,
            Addressee::Group { name, .. } => format!("{GROUP_PREFIX}{name}"),
        })
    })?;
    let stored = create(cx, row, task, recipient)?;
    let recipient = stored.recipient.clone();
    if state == State::InProgress {
        // Work goes on under a lease here. Whom nobody can act for has not begun, and the file is told so.
        if may_act_by_hand(cx, &recipient)? {
            claiming(cx, &recipient, |cx| take(cx, stored, &recipient, by_hand_ttl()).map(drop))?;
        }
    } else if state != State::Pending {
        let mut stored = stored;
        taking_over(cx, &recipient, |cx| change(cx, &mut stored, state, task.result.clone()))?;
    }
    Ok(())
}

/// The state that a text of the file names.
pub(super) fn state(status: &str) -> Result<State> {
    State::ALL.into_iter().find(|state| state.name() == status).ok_or_else(|| Error::invalid("status", "is no state of a task"))
}

fn create(cx: &mut Cx<'_, '_>, row: &FileRow, task: &FileTask, recipient: String) -> Result<TaskRow> {
    claiming(cx, &task.sender, |cx| {
        let now = cx.now();
        let stored = TaskRow {
            id: own_id(cx, Table::Tasks, &row.id)?,
            project: party::project(None)?,
            sender_kind: cx.actor.kind.name().to_owned(),
            sender: task.sender.clone(),
            sender_name: None,
            verified: false,
            origin: cx.surface.name().to_owned(),
            recipient,
            title: Some(task.title.clone()),
            description: Some(task.description.clone()),
            stored: State::Pending,
            rank: Priority::default().rank(),
            open_blockers: 0,
            deadline: None,
            thread: None,
            result: None,
            result_by: None,
            worker: None,
            erased: false,
            attempt: 0,
            version: 1,
            created_at: claimed_time(&task.created_at).unwrap_or(i64::MAX).min(now),
            updated_at: now,
            finished_at: None,
            lease: None,
            set_by_people: Vec::new(),
        };
        rows::insert_task(cx.tx, &stored)?;
        known::remember(cx.tx, Table::Tasks, &Known { id: stored.id.clone(), recipient: String::new(), spelled: row.id.clone() })?;
        tell_created(cx, &stored, &[])?;
        Ok(stored)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::claimed_time;
    use crate::format_time;

    #[test]
    fn both_spellings_of_time_are_one_moment() {
        let moment = Some(1_794_735_000_000_000);
        for text in ["2026-11-15 09:30:00", "2026-11-15T09:30:00Z", "2026-11-15T09:30:00.000000+00:00", " 2026-11-15 09:30:00 ", "2026-11-15T10:30:00+01:00"] {
            assert_eq!(claimed_time(text), moment, "{text}");
        }
        for text in ["", "soon", "15.11.2026", "0000-00-00 00:00:00", "1969-12-31 00:00:00"] {
            assert_eq!(claimed_time(text), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_a_time_after_1970_or_none(
            text in any::<String>(), like_one in "[ ]?-?[0-9]{0,6}-[0-9]{0,3}-[0-9]{0,3}[T ][0-9]{0,3}:[0-9]{0,3}:[0-9.]{0,12}(Z|[+-][0-9:]{0,6})?",
        ) {
            prop_assert!(claimed_time(&text).is_none_or(|time| time > 0));
            prop_assert!(claimed_time(&like_one).is_none_or(|time| time > 0));
        }

        #[test]
        fn both_ways_of_writing_a_time_are_read(seconds in 1_i64..250_000_000_000, space in "[ ]{0,2}") {
            let time = seconds * 1_000_000;
            let written = format_time(time);
            prop_assert_eq!(claimed_time(&written), Some(time));
            let by_sqlite: String = written.replace('T', " ").chars().take(19).collect();
            prop_assert_eq!(claimed_time(&format!("{space}{by_sqlite}{space}")), Some(time));
        }
    }
}
