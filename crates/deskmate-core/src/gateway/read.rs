//! Reading what a mounted server offers besides tools: resources and prompts. Nobody can be asked first, so whatever asks for a
//! person forbids it; and it is on the record, with what it adds to what the reader has read.

use serde_json::json;

use super::call::{may_pass_on, origin};
use super::{mount, taint};
use crate::call::Cx;
use crate::limits::URL_BYTES_MAX;
use crate::policy::{Act, Effect, Mode};
use crate::record::{Event, Kind};
use crate::request::{self, Requester};
use crate::{Error, Result, check_text};

pub(super) const READ: Kind = Kind { name: "mount.read", says: "Somebody read a resource or a prompt of a mounted server." };

/// Tells that something is read, unless policy forbids it. `kind` is `resource.read` or `prompt.get`.
pub fn read(cx: &mut Cx<'_, '_>, mount: &str, kind: &str, name: &str, session: Option<&str>) -> Result<()> {
    check_text("name", name, URL_BYTES_MAX)?;
    let mount = mount::find(cx, mount)?;
    may_pass_on(&mount)?;
    let act = Act {
        kind: kind.to_owned(),
        tool: mount.name.clone(),
        domain: mount.domain(),
        action: kind.to_owned(),
        target: name.to_owned(),
        arguments: json!({ "name": name }),
        taint: taint::of_caller(cx, session)?,
        call: true,
        ..Act::default()
    };
    let decision = request::judge(cx, &act, &Requester::of(&cx.actor), false)?;
    let rule = decision.hits.iter().find(|hit| matches!(hit.effect, Effect::Deny | Effect::RequireApproval)).map(|hit| hit.reason.clone());
    let other = decision.reasons.iter().find(|reason| reason.mode == Mode::Deny).map(|reason| reason.text.clone());
    if let Some(why) = rule.or(other) {
        return Err(Error::forbidden(why).hint("ask a person to look at it, or to change the rule"));
    }
    let event = Event::new(READ, format!("mount:{}", mount.name)).fact("kind", kind);
    cx.emit(event.payload(json!({ "name": name })))?;
    taint::add(cx, session, &origin(&mount.name))
}
