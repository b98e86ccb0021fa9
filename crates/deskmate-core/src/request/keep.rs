//! How what a request would do lies in its row: encrypted until it ends, for those who decide and for doing it; afterwards
//! without what is secret or personal. In memory a request has its exact texts wherever this server has the key.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::digest::Bound;
use super::events::{Known, differs};
use super::hidden::shown_act;
use super::model::{Packet, Request, RequestKind, State, unreadable};
use super::rows;
use super::submit::missing;
use crate::call::Cx;
use crate::policy::{Act, Keep};
use crate::redact::{Found, Redactor};
use crate::secret::{self, Wrapped};
use crate::{Error, Result, hex, policy};

/// How the texts lie in the row.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    /// Open, as before they were encrypted; or not read, in lists.
    Plain,
    /// Encrypted.
    Sealed(Wrapped),
    /// Without what was taken out; with `whole` beside it where the settings keep that encrypted.
    Redacted { bound: String, packet: String, whole: Option<Wrapped> },
    /// Erased, or ended where nobody could read them.
    Gone,
}

/// What is encrypted together.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    act: String,
    packet: String,
}

impl Kept {
    /// How it is stored: the word, and the two texts that lie open.
    pub(super) fn columns<'r>(&'r self, request: &'r Request) -> (Option<&'static str>, Option<&'r str>, Option<&'r str>) {
        match self {
            Self::Plain => (None, request.bound.as_deref(), request.packet.as_deref()),
            Self::Sealed(_) | Self::Gone => (Some("sealed"), None, None),
            Self::Redacted { bound, packet, .. } => (Some("redacted"), Some(bound), Some(packet)),
        }
    }

    /// What of it is encrypted.
    pub(super) fn wrapped(&self) -> Option<&Wrapped> {
        match self {
            Self::Sealed(wrapped) => Some(wrapped),
            Self::Redacted { whole, .. } => whole.as_ref(),
            Self::Plain | Self::Gone => None,
        }
    }

    /// Reads it from its columns.
    pub(super) fn read(word: Option<&str>, bound: Option<&String>, packet: Option<&String>, wrapped: Option<Wrapped>) -> Self {
        match (word, bound, packet, wrapped) {
            (None, ..) => Self::Plain,
            (Some("redacted"), Some(bound), Some(packet), whole) => Self::Redacted { bound: bound.clone(), packet: packet.clone(), whole },
            (Some("sealed"), _, _, Some(wrapped)) => Self::Sealed(wrapped),
            _ => Self::Gone,
        }
    }

    /// A digest of what lies there, for the record. `None` where it lies open, which its own digest covers, or is gone.
    pub(super) fn digest(&self) -> Option<String> {
        let mut hash = Sha256::new();
        match self {
            Self::Plain | Self::Gone => return None,
            Self::Sealed(_) => {}
            // Its nonce is drawn anew, so this tells nothing of what was taken out.
            Self::Redacted { bound, .. } => hash.update(bound),
        }
        for part in self.wrapped().iter().flat_map(|wrapped| [&wrapped.key, &wrapped.text]) {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        Some(hex(&hash.finalize()))
    }
}

impl Request {
    /// Whether nothing more is decided or done about it. What is ambiguous may still become known.
    pub(super) fn has_ended(&self) -> bool {
        match self.state {
            State::Rejected | State::Expired | State::Cancelled | State::Superseded | State::Done | State::Failed => true,
            State::Approved => !self.kind.is_act(),
            State::Pending | State::Executing | State::Ambiguous => false,
        }
    }

    /// Whether what is known of its act is what was left of it after its end.
    pub fn is_redacted(&self) -> bool {
        matches!(&self.kept, Kept::Redacted { bound, .. } if self.bound.as_ref() == Some(bound))
    }

    /// Whether its act is encrypted and this server could not read it.
    pub(super) fn is_closed(&self) -> bool {
        self.bound.is_none() && matches!(self.kept, Kept::Sealed(_))
    }

    /// Reads what is encrypted, where this server can. Where it cannot, the act stays unknown, and whoever needs it says so.
    pub(super) fn opened(mut self, cx: &Cx<'_, '_>) -> Self {
        let Kept::Sealed(wrapped) = &self.kept else { return self };
        if let Ok(Some((bound, packet))) = read_back(cx, &self.subject(), wrapped) {
            (self.bound, self.packet) = (Some(bound), Some(packet));
        }
        self
    }

    /// As its row has it once it has ended: what is answered may be kept for a repeated call.
    pub(super) fn into_kept(mut self) -> Self {
        if let Kept::Redacted { bound, packet, .. } = &self.kept {
            (self.bound, self.packet) = (Some(bound.clone()), Some(packet.clone()));
        }
        self
    }

    /// As somebody sees it who does not decide about it: what is left of it after its end.
    pub(super) fn without_what_is_hidden(mut self, cx: &mut Cx<'_, '_>) -> Result<Self> {
        if self.bound.is_some() && !self.is_redacted() {
            let redactor = policy::current(cx)?.settings("").protection.of_requests();
            let mut found = Found::default();
            let (bound, packet) = redacted(cx, &self, &redactor, &mut found)?;
            (self.bound, self.packet) = (Some(bound.clone()), Some(packet.clone()));
            self.kept = Kept::Redacted { bound, packet, whole: None };
        }
        Ok(self)
    }
}

/// The exact act and packet, decrypted. `None` where they cannot be read as such.
pub(super) fn read_back(cx: &Cx<'_, '_>, subject: &str, wrapped: &Wrapped) -> Result<Option<(String, String)>> {
    let text = secret::unwrap(&cx.safe, subject, wrapped)?;
    Ok(serde_json::from_str::<Texts>(&text).ok().map(|texts| (texts.act, texts.packet)))
}

/// The exact act of a request that has ended, and what was told with it, where it was kept.
pub(crate) fn whole(cx: &mut Cx<'_, '_>, id: &str) -> Result<(Act, Packet)> {
    let known = Known::load(cx, id)?.ok_or_else(|| missing(id))?;
    let request = known.request;
    let Kept::Redacted { whole: Some(wrapped), .. } = &request.kept else {
        let why = if request.has_ended() {
            "nothing was taken out of this request, or it was not kept when it ended"
        } else {
            "this request has not ended: look at it as it is"
        };
        return Err(Error::not_found(why));
    };
    let read = read_back(cx, &request.subject(), wrapped)?;
    let (bound, packet) = read.ok_or_else(|| unreadable("act", id))?;
    let exact = Request { bound: Some(bound), packet: Some(packet), ..request.clone() };
    // What is shown is what was approved, or nothing.
    if !super::digest::fits(&exact) {
        return Err(differs(id));
    }
    Ok((exact.act()?, exact.told()?))
}

/// Brings the texts into the form that the row is to have now, and tells what was taken out.
pub(super) fn keep(cx: &mut Cx<'_, '_>, request: &mut Request) -> Result<Found> {
    let mut found = Found::default();
    let ended = request.has_ended();
    match (&request.kept, &request.bound) {
        (Kept::Redacted { .. } | Kept::Gone, _) | (Kept::Plain, None) => {}
        (Kept::Sealed(_), None) => {
            // Its key is thrown away all the same, so that nobody reads it later.
            if ended {
                request.kept = Kept::Gone;
            }
        }
        (_, Some(_)) if ended => {
            let settings = policy::current(cx)?.settings("").protection.clone();
            let (bound, packet) = redacted(cx, request, &settings.of_requests(), &mut found)?;
            let whole = if settings.keep == Keep::Encrypted && !found.is_empty() { Some(sealed(cx, request)?) } else { None };
            let title = settings.of_requests().text(request.title.as_deref().unwrap_or_default());
            found.extend(&title.found);
            request.title = request.title.is_some().then_some(title.text);
            request.kept = Kept::Redacted { bound, packet, whole };
        }
        (_, Some(_)) => request.kept = Kept::Sealed(sealed(cx, request)?),
    }
    Ok(found)
}

fn sealed(cx: &mut Cx<'_, '_>, request: &Request) -> Result<Wrapped> {
    let (act, packet) = (request.bound.clone().unwrap_or_default(), request.packet.clone().unwrap_or_default());
    let text = zeroize::Zeroizing::new(rows::text("act", &Texts { act, packet })?);
    secret::wrap(cx, &request.subject(), &text)
        .map_err(|error| Error { message: format!("what waits for people is kept encrypted, and this server cannot do that: {}", error.message), ..error })
}

/// What is left of an act and of what was told with it. The nonce is another one: with the old one, the digest that was
/// approved would let anybody try out what was taken out.
fn redacted(cx: &Cx<'_, '_>, request: &Request, redactor: &Redactor, found: &mut Found) -> Result<(String, String)> {
    let bound = Bound::read(request)?;
    // What policy hides from people was there for doing it, and stays nowhere.
    let hidden = request.decided()?.and_then(|decision| serde_json::from_value::<Act>(shown_act(&bound.act, &decision)).ok());
    let keeps_target = request.kind == RequestKind::ToolCall && request.state == State::Rejected;
    let left = Bound {
        act: act_without(hidden.as_ref().unwrap_or(&bound.act), redactor, found),
        nonce: hex(&cx.secret()),
        // A call that a person rejected is known again by its salted digest.
        target: bound.target.as_ref().filter(|_| keeps_target).map(|target| value_without(target, redactor, found)),
        ..bound
    };
    let (text, _) = left.seal()?;
    let packet = rows::text("packet", &packet_without(&request.told()?, redactor, found))?;
    Ok((text, packet))
}

fn value_without(value: &Value, redactor: &Redactor, found: &mut Found) -> Value {
    let clean = redactor.value(value);
    found.extend(&clean.found);
    clean.value
}

fn text_without(text: &str, redactor: &Redactor, found: &mut Found) -> String {
    let clean = redactor.text(text);
    found.extend(&clean.found);
    clean.text
}

/// Names of verbs, tools, domains and fields stay: they say what it was, and rules go by them.
fn act_without(act: &Act, redactor: &Redactor, found: &mut Found) -> Act {
    let criteria = act.criteria.as_ref().map(|criteria| {
        let clean = value_without(&serde_json::json!(criteria), redactor, found);
        serde_json::from_value(clean).unwrap_or_default()
    });
    Act {
        action: text_without(&act.action, redactor, found),
        target: text_without(&act.target, redactor, found),
        arguments: value_without(&act.arguments, redactor, found),
        criteria,
        ..act.clone()
    }
}

fn packet_without(packet: &Packet, redactor: &Redactor, found: &mut Found) -> Packet {
    Packet {
        reasoning: packet.reasoning.as_deref().map(|text| text_without(text, redactor, found)),
        old: packet.old.as_ref().map(|value| value_without(value, redactor, found)),
        reversibility: packet.reversibility.as_deref().map(|text| text_without(text, redactor, found)),
        proposed: packet.proposed.as_ref().map(|value| value_without(value, redactor, found)),
        more: value_without(&packet.more, redactor, found),
    }
}
