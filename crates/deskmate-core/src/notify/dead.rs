//! Dead letters: notifications that were given up. People look at them, send them round again, or dismiss them.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::deliver::{self, JOB};
use crate::call::{Cx, Role};
use crate::job::{self, NewJob, Owner, Priority};
use crate::record::{Event, Kind};
use crate::{Error, Result};

/// A person sends a dead letter round again.
pub(super) const RETRIED: Kind = Kind { name: "notification.retried", says: "A person sent a notification round again that had been given up." };
/// A person needs it no more.
pub(super) const DISMISSED: Kind = Kind { name: "notification.dismissed", says: "A person dismissed a notification that had been given up." };

/// How often a dead letter is tried once more.
const ATTEMPTS: i64 = 5;

pub(super) const COUNT: &str =
    "select count(*) from (select id from notification where state = 'failed' and (person is null or person = $1 or $2) limit 1000) dead";

/// How many dead letters somebody may see, or all of them, counted up to a thousand.
pub(super) fn count(cx: &mut Cx<'_, '_>, person: &str, all: bool) -> Result<i64> {
    Ok(cx.tx.one(COUNT, args![person, all])?.get(0)?)
}

/// Send a notification round again that was given up. What was decided meanwhile is left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Retry {
    /// The notification's id.
    notification: String,
}

/// What became of a dead letter.
#[derive(Serialize, JsonSchema)]
pub(super) struct Changed {
    /// The notification's id.
    notification: String,
    /// `sending`, or `dismissed`.
    state: String,
    /// The job that delivers it: `desk_job_wait` waits for its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
}

pub(super) fn retry(cx: &mut Cx<'_, '_>, input: Retry) -> Result<Changed> {
    let row = dead(cx, &input.notification)?;
    if row.test {
        return Err(Error::conflict("this was a test").hint("send another one"));
    }
    let id = input.notification;
    let new = NewJob {
        priority: Priority::Urgent,
        unique_key: Some(id.clone()),
        attempts_max: ATTEMPTS,
        owner: Some(Owner::from(&crate::call::Actor::system())),
        ..NewJob::new(JOB, json!({ "notification": id, "channel": row.channel }))
    };
    let job = job::enqueue(cx, new)?.job;
    cx.tx.execute(
        "update notification set state = 'sending', finished_at = null, body = null, error = null, permanent = false, job = $2 where id = $1",
        args![id, job],
    )?;
    cx.emit(Event::new(RETRIED, format!("notification:{id}")).fact("notification", id.as_str()).fact("channel", row.channel))?;
    Ok(Changed { notification: id, state: "sending".to_owned(), job: Some(job) })
}

/// Dismiss a notification that was given up: nobody needs it any more.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Dismiss {
    /// The notification's id.
    notification: String,
}

pub(super) fn dismiss(cx: &mut Cx<'_, '_>, input: Dismiss) -> Result<Changed> {
    let row = dead(cx, &input.notification)?;
    let id = input.notification;
    cx.tx.execute("update notification set state = 'dismissed' where id = $1", args![id])?;
    cx.emit(Event::new(DISMISSED, format!("notification:{id}")).fact("notification", id.as_str()).fact("channel", row.channel))?;
    Ok(Changed { notification: id, state: "dismissed".to_owned(), job: None })
}

/// A dead letter that the caller may see.
fn dead(cx: &mut Cx<'_, '_>, id: &str) -> Result<deliver::Row> {
    let missing = || Error::not_found("there is no such notification for you").hint("desk_notification_list with state=failed shows what was given up");
    let row = deliver::find(cx, id)?.filter(|row| is_seen(cx, row.person.as_deref())).ok_or_else(missing)?;
    check_changes(cx, row.person.as_deref())?;
    if row.state != "failed" {
        return Err(Error::conflict(format!("this notification is {}: only one that was given up can be sent round again or dismissed", row.state)));
    }
    Ok(row)
}

/// Whether the caller may see a notification: of a channel everybody, of a person that person and the owners.
pub(super) fn is_seen(cx: &Cx<'_, '_>, person: Option<&str>) -> bool {
    person.is_none_or(|person| person == cx.actor.id || cx.actor.role == Some(Role::Owner) || cx.actor.is_system())
}

/// Refuses who only looks, where it is about more than themselves.
pub(super) fn check_changes(cx: &Cx<'_, '_>, person: Option<&str>) -> Result<()> {
    let own = person.is_some_and(|person| person == cx.actor.id);
    if own || cx.actor.is_system() || cx.actor.role.is_some_and(|role| role >= Role::Member) {
        return Ok(());
    }
    Err(Error::forbidden(format!("this needs the role {} or more", Role::Member.name())))
}
