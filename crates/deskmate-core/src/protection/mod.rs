//! Data protection: what is secret or personal is taken out of what the record is told before it is kept, how much of it is
//! counted there, and what the settings keep encrypted is read back by owners alone.
//!
//! The finding itself is [`redact`](crate::redact); what is taken out of requests is with them (`request/keep.rs`).
//! docs/data-protection.md says place by place what is redacted, encrypted, or kept on purpose.

mod read;
mod report;

use std::sync::LazyLock;

use serde_json::Value;

use crate::call::{Access, Cx, Op, Role, Toolset};
use crate::record::{Event, Kind};
use crate::redact::Redactor;
use crate::{policy, redact};

/// What this capability tells the record.
pub(crate) const EVENTS: &[Kind] = &[read::READ];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    vec![
        Op::read(Toolset::Desk, "protection_report", report::report).access(Access::Person(Role::Approver)),
        Op::write(Toolset::Desk, "protection_read", read::read).access(Access::Present(Role::Owner)).shows_once(&["act", "context"]),
    ]
}

/// Events that are told as they were written: rules and settings, what tools say of themselves, the names with which people sign in, and
/// rows that were brought in from elsewhere. Of everything else the record is a trace: what works and acts stands in a row beside it.
const AS_WRITTEN: &[&str] = &["policy.", "setting.", "tool.", "person.", "import."];
/// What takes out all that could be found.
static EVERYTHING: LazyLock<Redactor> = LazyLock::new(Redactor::all);
/// Marks of a client's session and call: they open nothing, and without them nobody finds what belongs together.
const MARKS: &[&str] = &["session", "tool_use_id"];

/// What takes out of what the record is told what must not be kept. Settings that cannot be read take out everything.
pub(crate) fn redactor(cx: &mut Cx<'_, '_>) -> Redactor {
    policy::current(cx).map_or_else(|_| Redactor::all(), |rulebook| rulebook.settings("").protection.of_record())
}

/// An event as the record keeps it, with how much of each kind is not in it.
pub(crate) fn trace(cx: &mut Cx<'_, '_>, event: Event) -> Event {
    if AS_WRITTEN.iter().any(|begins| event.kind().starts_with(begins)) {
        return event;
    }
    // Hardly anything has something in it, and then nobody asks what the settings take out.
    if event.written().is_none_or(|payload| EVERYTHING.leaves(payload)) {
        return event;
    }
    let redactor = redactor(cx);
    event.cleaned(|payload| clean(&redactor, payload))
}

fn clean(redactor: &Redactor, payload: Value) -> redact::RedactedValue {
    let given = |mark: &&'static str| payload.get(*mark).and_then(Value::as_str).map(|given| (*mark, given.to_owned()));
    let marks: Vec<(&str, String)> = MARKS.iter().filter_map(given).collect();
    let mut clean = redactor.own_value(payload);
    for (mark, was) in marks {
        let Some(now) = clean.value.get_mut(mark) else { continue };
        // Under such a name anything random looks like a secret; its own form still tells one.
        if *now != *was && redactor.text(&was).found.is_empty() {
            *now = Value::from(was);
            clean.found.take(redact::Kind::SecretField);
        }
    }
    clean
}
