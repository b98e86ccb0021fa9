//! What is asked of a mounted server besides calls of its tools: reading and following resources, getting prompts, completing what
//! they are given. Nobody can be asked first, so whatever asks for a person forbids it; and it is on the record, with what it adds to
//! what the reader has read.

use serde_json::{Map, Value, json};

use super::call::{may_pass_on, origin};
use super::mount::{self, Mount};
use super::taint;
use crate::call::Cx;
use crate::limits::{CHANGE_BYTES_MAX, URL_BYTES_MAX};
use crate::policy::{Act, Effect, Mode};
use crate::record::{Event, Kind};
use crate::request::{self, Judged, Requester};
use crate::{Error, Result, canonical_value, check_text, digest, hex};

pub(super) const READ: Kind =
    Kind { name: "mount.read", says: "Somebody reads or follows a resource of a mounted server, gets a prompt, or has one completed." };

/// What is asked of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadKind {
    /// What a resource holds.
    Resource,
    /// Word whenever a resource changes.
    Subscription,
    /// A prompt, filled in.
    Prompt,
    /// What a prompt or an address could be given.
    Completion,
}

impl ReadKind {
    /// The verb that rules match: the protocol's method.
    #[must_use]
    pub fn verb(self) -> &'static str {
        match self {
            Self::Resource => "resource.read",
            Self::Subscription => "resource.subscribe",
            Self::Prompt => "prompt.get",
            Self::Completion => "completion.complete",
        }
    }
}

/// Something that is asked of a server.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What.
    pub kind: ReadKind,
    /// The prompt, or the address of the resource.
    pub name: String,
    /// What a prompt is given, or an address is filled in with.
    pub arguments: Map<String, Value>,
}

impl Reading {
    /// Something that is given nothing.
    #[must_use]
    pub fn plain(kind: ReadKind, name: &str) -> Self {
        Self { kind, name: name.to_owned(), arguments: Map::new() }
    }

    fn act(&self, mount: &Mount, taint: Vec<String>) -> Act {
        let mut arguments = json!({ "name": self.name });
        if let (false, Some(fields)) = (self.arguments.is_empty(), arguments.as_object_mut()) {
            fields.insert("arguments".to_owned(), Value::Object(self.arguments.clone()));
        }
        Act {
            kind: self.kind.verb().to_owned(),
            tool: mount.name.clone(),
            domain: mount.domain(),
            action: self.kind.verb().to_owned(),
            target: self.name.clone(),
            arguments,
            taint,
            call: true,
            ..Act::default()
        }
    }
}

/// What would be done, unless it is forbidden.
fn decide(cx: &mut Cx<'_, '_>, mount: &str, reading: &Reading, session: Option<&str>) -> Result<(Mount, Act)> {
    check_text("name", &reading.name, URL_BYTES_MAX)?;
    let mount = mount::find(cx, mount)?;
    may_pass_on(&mount)?;
    let act = reading.act(&mount, taint::of_caller(cx, session)?);
    if canonical_value("arguments", &act.arguments)?.len() > CHANGE_BYTES_MAX {
        return Err(Error::invalid("arguments", format!("are longer than {CHANGE_BYTES_MAX} bytes")));
    }
    let who = Requester::of(&cx.actor);
    let Judged { decision, gauge, .. } = request::weigh(cx, &act, &who, false)?;
    if let Some(full) = gauge.as_ref().and_then(|gauge| gauge.held.as_ref()) {
        return Err(full.error());
    }
    let rule = decision.hits.iter().find(|hit| matches!(hit.effect, Effect::Deny | Effect::RequireApproval));
    let other = decision.reasons.iter().find(|reason| reason.mode == Mode::Deny).map(|reason| reason.text.clone());
    let Some(why) = rule.map(|hit| hit.reason.clone()).or(other) else { return Ok((mount, act)) };
    let instead = rule.and_then(|hit| hit.alternative.clone());
    let error = Error::forbidden(why).hint(instead.unwrap_or_else(|| "ask a person to look at it, or to change the rule".to_owned()));
    // Of a rule that asks for a person, and of a pause, the caller's refusals tell: these are counted.
    if decision.mode != Mode::Deny || gauge.is_some_and(|gauge| gauge.paused) {
        return Err(error);
    }
    Err(request::refused(cx, who, &act, decision, error))
}

/// Whether something may be asked of a server now.
pub fn may_read(cx: &mut Cx<'_, '_>, mount: &str, reading: &Reading, session: Option<&str>) -> Result<()> {
    decide(cx, mount, reading, session).map(drop)
}

/// Tells that something is asked of a server, unless that is forbidden.
pub(crate) fn read(cx: &mut Cx<'_, '_>, mount: &str, reading: &Reading, session: Option<&str>) -> Result<()> {
    let (mount, act) = decide(cx, mount, reading, session)?;
    let own = digest(&json!({ "mount": mount.name, "kind": act.kind, "arguments": act.arguments }))?;
    let mut event = Event::new(READ, origin(&mount.name)).fact("kind", act.kind).fact("domain", act.domain).fact("digest", hex(&own));
    if !act.taint.is_empty() {
        event = event.fact("taint", act.taint);
    }
    cx.emit(event.payload(act.arguments))?;
    // Whoever follows something hears only of an address that they named.
    if reading.kind == ReadKind::Subscription {
        return Ok(());
    }
    taint::add(cx, session, &origin(&mount.name))
}
