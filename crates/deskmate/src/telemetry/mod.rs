//! What the desk tells the machines that watch it: figures for Prometheus and spans for OpenTelemetry. Both are off unless
//! the configuration turns them on, and then cost a call nothing but a look at an empty option.
//!
//! They carry numbers, names of operations and words from fixed lists; never who it was, what was said, or a secret. So
//! whatever a caller makes up, the number of labels stays the same.

mod figures;
mod otlp;
mod parent;
mod spans;

use std::sync::Arc;
use std::time::Instant;

use deskmate_core::call::{ActorKind, Answer, Call, Credential, Desk, Outcome};
use deskmate_core::{Code, Result, job};
use tokio::sync::mpsc::Receiver;

pub(crate) use figures::{Figures, Open};
pub(crate) use otlp::{CONTENT_TYPE, encode};
pub(crate) use parent::{NAME as TRACEPARENT, Parent, within};
pub(crate) use spans::{QUEUE_MAX, Span, Spans};

/// What stands for the name of an operation that there is not.
const UNKNOWN: &str = "unknown";

/// The two ways of watching, each if it is on. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Telemetry {
    pub(crate) figures: Option<Arc<Figures>>,
    pub(crate) spans: Option<Spans>,
}

impl Telemetry {
    /// Turns on what is asked for. Spans come out of the receiver.
    pub(crate) fn new(desk: &Desk, figures: bool, spans: bool) -> prometheus::Result<(Self, Option<Receiver<Span>>)> {
        let engine = crate::keep::engine_name(desk.db.engine());
        let figures = if figures { Some(Arc::new(Figures::new(engine, crate::world::wall())?)) } else { None };
        let (spans, queue) = if spans { Some(Spans::new()).unzip() } else { (None, None) };
        Ok((Self { figures, spans }, queue))
    }

    /// Begins to watch a call; `None` where nobody wants to know.
    pub(crate) fn begin<'c>(&'c self, desk: &'c Desk, call: &'c Call) -> Option<Watch<'c>> {
        if self.figures.is_none() && self.spans.is_none() {
            return None;
        }
        Some(Watch { telemetry: self, desk, call, parent: parent::current(), started: Instant::now(), ended: false })
    }

    /// An MCP session is open as long as this lives.
    pub(crate) fn session(&self) -> Option<Open> {
        self.figures.as_ref().map(|figures| figures.session())
    }

    /// A job came to its end, or to the end of an attempt.
    pub(crate) fn job_ended(&self, state: job::State) {
        if let Some(figures) = &self.figures {
            figures.job_ended(state.name());
        }
    }
}

/// What became of a call, in words from fixed lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// `done`, `not_yet`, `cancelled`, or the code of a refusal.
    pub(crate) outcome: &'static str,
    /// `person`, `agent`, `system` or `unknown`.
    pub(crate) actor: &'static str,
    /// What the desk answered to an intended act.
    pub(crate) decision: Option<&'static str>,
    /// Whether the desk is to blame, and not the caller.
    pub(crate) fault: bool,
}

impl Fate {
    fn of(call: &Call, answer: &Result<Answer>) -> Self {
        match answer {
            Ok(answer) => {
                let outcome = if matches!(answer.outcome, Outcome::Done(_)) { "done" } else { "not_yet" };
                Self { outcome, actor: answer.actor.kind.name(), decision: answer.decision.map(deskmate_core::policy::Mode::name), fault: false }
            }
            Err(error) => {
                let actor = if error.code == Code::Unauthenticated { UNKNOWN } else { brought(&call.credential) };
                Self { outcome: error.code.name(), actor, decision: None, fault: matches!(error.code, Code::Internal | Code::Unavailable) }
            }
        }
    }

    /// The caller went away before there was an answer.
    fn cancelled(call: &Call) -> Self {
        Self { outcome: "cancelled", actor: brought(&call.credential), decision: None, fault: false }
    }
}

/// The kind of actor that a credential is made for: a refusal does not say who it was.
fn brought(credential: &Credential) -> &'static str {
    match credential {
        Credential::Secret { secret, .. } if secret.starts_with("dma_") || secret.starts_with("dmr_") => ActorKind::Agent.name(),
        Credential::Secret { secret, .. } if secret.starts_with("dmp_") || secret.starts_with("dms_") => ActorKind::Person.name(),
        Credential::Signed { .. } | Credential::Kept(_) => ActorKind::Person.name(),
        Credential::Named(Some(_)) | Credential::Run(_) => ActorKind::Agent.name(),
        Credential::Local | Credential::System => ActorKind::System.name(),
        Credential::Secret { .. } | Credential::Named(None) | Credential::Nobody => UNKNOWN,
    }
}

/// A call under way. One that is dropped before its end was given up by its caller, and counts as that.
pub(crate) struct Watch<'c> {
    telemetry: &'c Telemetry,
    desk: &'c Desk,
    call: &'c Call,
    parent: Option<Parent>,
    started: Instant,
    ended: bool,
}

impl Watch<'_> {
    /// The call has its answer.
    pub(crate) fn end(mut self, answer: &Result<Answer>) {
        self.ended = true;
        self.tell(Fate::of(self.call, answer));
    }

    fn tell(&self, fate: Fate) {
        let took = self.started.elapsed();
        let operation = if self.desk.registry.get(&self.call.operation).is_some() { self.call.operation.as_str() } else { UNKNOWN };
        let surface = self.call.surface.name();
        if let Some(figures) = &self.telemetry.figures {
            figures.called(operation, surface, fate, took);
        }
        if let Some(spans) = self.telemetry.spans.as_ref().filter(|_| self.parent.is_none_or(|parent| parent.sampled)) {
            let world = self.desk.world.as_ref();
            spans.tell(Span::new(world, self.parent, operation, surface, fate, took));
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.tell(Fate::cancelled(self.call));
        }
    }
}

#[cfg(test)]
mod tests {
    use deskmate_core::call::Surface;

    use super::*;

    fn call(credential: Credential) -> Call {
        Call { credential, surface: Surface::Rest, operation: "x".to_owned(), input: serde_json::json!({}) }
    }

    #[test]
    fn a_refused_caller_is_of_the_kind_that_its_credential_is_made_for() {
        let secret = |secret: &str| Credential::Secret { secret: secret.to_owned(), proved: false };
        for (credential, kind) in [
            (secret("dma_x"), "agent"),
            (secret("dmp_x"), "person"),
            (secret("dms_x"), "person"),
            (secret("hello"), "unknown"),
            (Credential::Named(Some("code".to_owned())), "agent"),
            (Credential::Named(None), "unknown"),
            (Credential::Local, "system"),
        ] {
            let call = call(credential);
            assert_eq!(Fate::of(&call, &Err(deskmate_core::Error::forbidden("no"))).actor, kind);
            assert_eq!(Fate::cancelled(&call).actor, kind);
            let unknown = Fate::of(&call, &Err(deskmate_core::Error::new(Code::Unauthenticated, "no")));
            assert_eq!((unknown.actor, unknown.outcome), ("unknown", "unauthenticated"), "nothing was proved");
        }
    }
}
