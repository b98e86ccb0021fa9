//! Data protection: what is secret or personal is taken out of traces before they are kept, how much of it is counted in
//! the record, and what the settings keep encrypted is read back by owners alone.
//!
//! The finding itself is [`redact`](crate::redact); what is taken out of requests is with them (`request/keep.rs`).
//! docs/data-protection.md says place by place what is redacted, encrypted, or kept on purpose.

mod read;
mod report;

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

/// Events that tell what programs did and said, and what agents were made into: what acts is the row beside them. What people write for
/// each other, and what a plan would change, is work and no trace of it: taking something out would destroy it.
const TRACES: &[&str] = &["act.", "call.", "hook.", "run.", "notification."];
const TRACES_EXACTLY: &[&str] = &[
    "request.created",
    "request.edited",
    "action.logged",
    "mount.read",
    "workspace.web.asked",
    "agent.made",
    "agent.changed",
    "agent.policy_attached",
    "agent.policy_detached",
    "agent.tested",
];
/// Events that repeat words that stand in a row beside them: they are told without secrets. The row keeps what was written.
const WORDS: &[&str] = &["message.sent"];
/// Marks of a client's session and call: they open nothing, and without them nobody finds what belongs together.
const MARKS: &[&str] = &["session", "tool_use_id"];

/// Whether what was written with an event of this kind is a trace.
fn is_trace(kind: &str) -> bool {
    TRACES.iter().any(|begins| kind.starts_with(begins)) || TRACES_EXACTLY.contains(&kind)
}

/// What takes out of traces what must not be kept. Settings that cannot be read take out everything.
pub(crate) fn redactor(cx: &mut Cx<'_, '_>) -> Redactor {
    policy::current(cx).map_or_else(|_| Redactor::all(), |rulebook| rulebook.settings("").protection.of_record())
}

/// An event as the record keeps it, with how much of each kind is not in it.
pub(crate) fn trace(cx: &mut Cx<'_, '_>, event: Event) -> Event {
    if !event.has_payload() {
        return event;
    }
    let redactor = match event.kind() {
        kind if is_trace(kind) => redactor(cx),
        kind if WORDS.contains(&kind) => Redactor::secrets(),
        _ => return event,
    };
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
