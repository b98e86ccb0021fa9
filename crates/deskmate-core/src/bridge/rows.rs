//! The rows of messages and tasks. Whoever brings in messages another way writes them with these functions as well.

use deskmate_db::{Row, Tx, args};

use super::state::State;
use crate::limits::{PAGE_BYTES_MAX, UNREAD_MAX};
use crate::{Error, Result, edit};

/// A stored message.
pub(super) struct MessageRow {
    pub(super) id: String,
    pub(super) project: String,
    pub(super) sender_kind: String,
    pub(super) sender: String,
    pub(super) sender_name: Option<String>,
    pub(super) verified: bool,
    pub(super) origin: String,
    pub(super) to_name: String,
    pub(super) thread: String,
    pub(super) reply_to: Option<String>,
    pub(super) rank: i64,
    pub(super) content: Option<String>,
    pub(super) created_at: i64,
    /// When the reader acknowledged it, where a statement asks for a reader.
    pub(super) acknowledged_at: Option<i64>,
}

/// The columns of a message `m` and its sender `p`; when the reader acknowledged it is the last one, and the statement's own.
macro_rules! message_columns {
    () => {
        "select m.id, m.project, m.sender_kind, m.sender, m.verified, m.origin, m.to_name, m.thread, m.reply_to, m.rank, m.content, m.created_at, p.name, "
    };
}
pub(super) use message_columns;

const MESSAGE: &str = concat!(
    message_columns!(),
    "d.acknowledged_at from message m left join person p on p.id = m.sender \
     left join delivery d on d.message = m.id and d.recipient = $2 where m.id = $1"
);

impl MessageRow {
    pub(super) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            project: row.get(1)?,
            sender_kind: row.get(2)?,
            sender: row.get(3)?,
            verified: row.get(4)?,
            origin: row.get(5)?,
            to_name: row.get(6)?,
            thread: row.get(7)?,
            reply_to: row.get(8)?,
            rank: row.get(9)?,
            content: row.get(10)?,
            created_at: row.get(11)?,
            sender_name: row.get(12)?,
            acknowledged_at: row.get(13)?,
        })
    }
}

/// A message by its id, with what one reader did with it.
pub(super) fn find_message(tx: &mut Tx<'_>, id: &str, reader: &str) -> Result<Option<MessageRow>> {
    tx.optional(MESSAGE, args![id, reader])?.map(|row| MessageRow::read(&row)).transpose()
}

/// Who sent a message, if it was delivered to this recipient.
pub(super) fn sender_to(tx: &mut Tx<'_>, message: &str, recipient: &str) -> Result<Option<String>> {
    let row =
        tx.optional("select m.sender from delivery d join message m on m.id = d.message where d.message = $1 and d.recipient = $2", args![message, recipient])?;
    Ok(row.map(|row| row.get(0)).transpose()?)
}

/// Writes a message.
pub(super) fn insert_message(tx: &mut Tx<'_>, row: &MessageRow) -> Result<()> {
    tx.execute(
        "insert into message (id, project, sender_kind, sender, verified, origin, to_name, thread, reply_to, rank, content, created_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        args![
            row.id,
            row.project,
            row.sender_kind,
            row.sender,
            row.verified,
            row.origin,
            row.to_name,
            row.thread,
            row.reply_to,
            row.rank,
            row.content,
            row.created_at
        ],
    )?;
    Ok(())
}

/// Makes room for a message in one recipient's mailbox. Nothing: it is full. Else it is when it comes there: at the given
/// moment, or right after the newest message, which another server with another clock may have brought. Whoever comes
/// next waits for this transaction, so what is committed later is always later here.
pub(super) fn enter_mailbox(tx: &mut Tx<'_>, recipient: &str, at: i64) -> Result<Option<i64>> {
    let entered = tx.optional(
        "insert into mailbox (recipient, unread, newest) values ($1, 1, $3) on conflict (recipient) do update set unread = mailbox.unread + 1, \
         newest = case when mailbox.newest >= excluded.newest then mailbox.newest + 1 else excluded.newest end \
         where mailbox.unread < $2 returning newest",
        args![recipient, UNREAD_MAX, at],
    )?;
    Ok(entered.map(|row| row.get(0)).transpose()?)
}

/// Delivers a message to a recipient whose mailbox has room for it.
pub(super) fn deliver(tx: &mut Tx<'_>, message: &MessageRow, recipient: &str) -> Result<()> {
    tx.execute(
        "insert into delivery (message, recipient, project, rank, created_at) values ($1, $2, $3, $4, $5)",
        args![message.id, recipient, message.project, message.rank, message.created_at],
    )?;
    Ok(())
}

/// A message came into a mailbox later than the mailbox took it for, because it came into another one even later.
pub(super) fn move_newest(tx: &mut Tx<'_>, recipient: &str, at: i64) -> Result<()> {
    tx.execute("update mailbox set newest = $2 where recipient = $1 and newest < $2", args![recipient, at])?;
    Ok(())
}

/// Written with `coalesce`, so that no planner walks the index of waiting messages to find this one by its key.
pub(super) const ACKNOWLEDGE: &str = "update delivery set acknowledged_at = $3 where message = $1 and recipient = $2 and coalesce(acknowledged_at, 0) = 0";

/// Marks a message as acknowledged by one recipient. `false`: it was before, or was never sent to them.
pub(super) fn acknowledge(tx: &mut Tx<'_>, message: &str, recipient: &str, now: i64) -> Result<bool> {
    let changed = tx.execute(ACKNOWLEDGE, args![message, recipient, now])?;
    if changed > 0 {
        tx.execute("update mailbox set unread = unread - 1 where recipient = $1 and unread > 0", args![recipient])?;
    }
    Ok(changed > 0)
}

/// How many rows of these sizes fit in one answer: at least one, so that a page always moves on.
pub(super) fn fitting(sizes: &[i64]) -> u32 {
    fitting_in(sizes, PAGE_BYTES_MAX)
}

/// How many of them fit in so many bytes: at least one.
pub(super) fn fitting_in(sizes: &[i64], bytes_max: usize) -> u32 {
    let mut total = 0_usize;
    let mut count = 0;
    for size in sizes {
        total = total.saturating_add(usize::try_from(*size).unwrap_or(usize::MAX));
        if total > bytes_max && count > 0 {
            break;
        }
        count += 1;
    }
    count
}

/// The size of a list of texts in an answer.
pub(super) fn size_of_all(texts: &[String]) -> i64 {
    texts.iter().map(|text| i64::try_from(text.len()).unwrap_or(i64::MAX)).fold(0, |sum: i64, size| sum.saturating_add(size).saturating_add(4))
}

/// A stored task with the lease on it.
#[derive(Clone)]
pub(super) struct TaskRow {
    pub(super) id: String,
    pub(super) project: String,
    pub(super) sender_kind: String,
    pub(super) sender: String,
    pub(super) sender_name: Option<String>,
    pub(super) verified: bool,
    pub(super) origin: String,
    pub(super) recipient: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    /// As it is stored; [`TaskRow::state`] takes the lease into account.
    pub(super) stored: State,
    pub(super) rank: i64,
    pub(super) open_blockers: i64,
    pub(super) deadline: Option<i64>,
    pub(super) thread: Option<String>,
    pub(super) result: Option<String>,
    /// Kind, id and proof of who wrote the result.
    pub(super) result_by: Option<(String, String, bool)>,
    pub(super) worker: Option<String>,
    pub(super) erased: bool,
    pub(super) attempt: i64,
    pub(super) version: i64,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    pub(super) finished_at: Option<i64>,
    /// Holder, fence and end of the newest lease.
    pub(super) lease: Option<(String, i64, i64)>,
    /// The fields that a person set last.
    pub(super) set_by_people: Vec<String>,
}

const TASK: &str = "select t.id, t.project, t.sender_kind, t.sender, t.verified, t.origin, t.recipient, t.title, t.description, t.state, t.rank, \
     t.open_blockers, t.deadline, t.thread, t.result, t.worker, t.erased, t.attempt, t.version, t.created_at, t.updated_at, t.finished_at, \
     p.name, l.holder, l.fence, l.expires_at, t.result_kind, t.result_by, t.result_verified, \
     (select count(*) from field_edit f where f.subject = 'task:' || t.id and f.set_by_kind = 'person') \
     from task t left join person p on p.id = t.sender left join lease l on l.subject = 'task:' || t.id where t.id = $1";

impl TaskRow {
    fn read(row: &Row) -> Result<Self> {
        let holder: Option<String> = row.get(23)?;
        let lease = match holder {
            Some(holder) => Some((holder, row.get(24)?, row.get(25)?)),
            None => None,
        };
        let result_kind: Option<String> = row.get(26)?;
        let result_by = match result_kind {
            Some(kind) => Some((kind, row.get(27)?, row.get(28)?)),
            None => None,
        };
        Ok(Self {
            id: row.get(0)?,
            project: row.get(1)?,
            sender_kind: row.get(2)?,
            sender: row.get(3)?,
            verified: row.get(4)?,
            origin: row.get(5)?,
            recipient: row.get(6)?,
            title: row.get(7)?,
            description: row.get(8)?,
            stored: State::from_name(&row.get::<String>(9)?)?,
            rank: row.get(10)?,
            open_blockers: row.get(11)?,
            deadline: row.get(12)?,
            thread: row.get(13)?,
            result: row.get(14)?,
            result_by,
            worker: row.get(15)?,
            erased: row.get(16)?,
            attempt: row.get(17)?,
            version: row.get(18)?,
            created_at: row.get(19)?,
            updated_at: row.get(20)?,
            finished_at: row.get(21)?,
            sender_name: row.get(22)?,
            lease,
            set_by_people: Vec::new(),
        })
    }

    /// The state now: work whose lease ended is nobody's and counts as pending at once.
    pub(super) fn state(&self, now: i64) -> State {
        if self.stored == State::InProgress && self.held(now).is_none() { State::Pending } else { self.stored }
    }

    /// Holder, fence and end of the lease, if it stands.
    pub(super) fn held(&self, now: i64) -> Option<&(String, i64, i64)> {
        self.lease.as_ref().filter(|(_, _, expires_at)| self.stored == State::InProgress && *expires_at > now)
    }

    fn result_columns(&self) -> (Option<String>, Option<String>, Option<bool>) {
        match self.result_by.clone() {
            Some((kind, by, verified)) => (Some(kind), Some(by), Some(verified)),
            None => (None, None, None),
        }
    }

    /// What the lease is on.
    pub(super) fn subject(&self) -> String {
        subject(&self.id)
    }
}

/// What the lease of a task is on, and what its events are about.
pub(super) fn subject(task: &str) -> String {
    format!("task:{task}")
}

/// A task by its id.
pub(super) fn find_task(tx: &mut Tx<'_>, id: &str) -> Result<Option<TaskRow>> {
    let Some(row) = tx.optional(TASK, args![id])? else { return Ok(None) };
    let mut task = TaskRow::read(&row)?;
    // Most tasks have none, and then there is nothing more to ask.
    if row.get::<i64>(29)? > 0 {
        task.set_by_people = edit::set_by_people(tx, &task.subject())?;
    }
    Ok(Some(task))
}

/// Writes a task.
pub(super) fn insert_task(tx: &mut Tx<'_>, row: &TaskRow) -> Result<()> {
    let (kind, by, verified) = row.result_columns();
    tx.execute(
        "insert into task (id, project, sender_kind, sender, verified, origin, recipient, title, description, state, rank, open_blockers, deadline, \
         thread, result, worker, erased, attempt, version, created_at, updated_at, finished_at, result_kind, result_by, result_verified) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)",
        args![
            row.id,
            row.project,
            row.sender_kind,
            row.sender,
            row.verified,
            row.origin,
            row.recipient,
            row.title,
            row.description,
            row.stored.name(),
            row.rank,
            row.open_blockers,
            row.deadline,
            row.thread,
            row.result,
            row.worker,
            row.erased,
            row.attempt,
            row.version,
            row.created_at,
            row.updated_at,
            row.finished_at,
            kind,
            by,
            verified
        ],
    )?;
    Ok(())
}

/// Writes what changes in a task's life, and counts the change.
pub(super) fn update_task(tx: &mut Tx<'_>, row: &mut TaskRow, now: i64) -> Result<()> {
    let (kind, by, verified) = row.result_columns();
    let read_at = row.version;
    row.version += 1;
    row.updated_at = now;
    row.finished_at = row.stored.is_final().then_some(now);
    let changed = tx.execute(
        "update task set state = $3, open_blockers = $4, result = $5, worker = $6, attempt = $7, version = $8, updated_at = $9, finished_at = $10, \
         result_kind = $11, result_by = $12, result_verified = $13, title = $14, description = $15, rank = $16, deadline = $17, recipient = $18 \
         where id = $1 and version = $2",
        args![
            row.id,
            read_at,
            row.stored.name(),
            row.open_blockers,
            row.result,
            row.worker,
            row.attempt,
            row.version,
            row.updated_at,
            row.finished_at,
            kind,
            by,
            verified,
            row.title,
            row.description,
            row.rank,
            row.deadline,
            row.recipient
        ],
    )?;
    if changed == 0 {
        return Err(Error::conflict("the task changed meanwhile").hint("read it again"));
    }
    Ok(())
}
