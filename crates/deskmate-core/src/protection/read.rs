//! Reading back what was taken out of a request, where the settings keep it encrypted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::Cx;
use crate::limits::{NAME_CHARS_MAX, REASONING_BYTES_MAX};
use crate::policy::{self, Keep};
use crate::record::{Event, Kind};
use crate::{Error, Result, check_text, request};

/// Somebody read what had been taken out.
pub(super) const READ: Kind = Kind { name: "protection.read", says: "An owner read back what had been taken out of a request that has ended." };

/// Read back what was taken out of a request that has ended: its exact act, and what was told with it. Only where the setting
/// `protection.keep` is `encrypted`, and was when the request ended; the record tells that you did, and why.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    /// The request's id.
    request: String,
    /// Why you have to see it.
    reason: String,
}

/// What a request was about, exactly.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReadOut {
    /// The request's id.
    request: String,
    /// The act as it was decided.
    act: Value,
    /// What was told to whoever decided.
    context: Value,
}

pub(super) fn read(cx: &mut Cx<'_, '_>, input: Read) -> Result<ReadOut> {
    check_text("request", &input.request, NAME_CHARS_MAX)?;
    check_text("reason", &input.reason, REASONING_BYTES_MAX)?;
    if input.reason.trim().is_empty() {
        return Err(Error::invalid("reason", "must say why: it is kept with who read"));
    }
    if policy::current(cx)?.settings("").protection.keep != Keep::Encrypted {
        return Err(
            Error::forbidden("what is taken out of requests is not kept on this desk").hint("the setting protection.keep says so; see docs/data-protection.md")
        );
    }
    let (act, packet) = request::whole(cx, &input.request)?;
    let event = Event::new(READ, format!("request:{}", input.request)).fact("request", input.request.as_str());
    cx.emit(event.payload(json!({ "reason": input.reason })))?;
    Ok(ReadOut { request: input.request, act: json!(act), context: json!(packet) })
}
