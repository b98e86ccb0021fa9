//! What policy says to work on files. Looking is open where a root is, unless a rule, a pause or a limit forbids it;
//! changing waits for a person whatever the trust, unless a rule says in so many words that it may pass.

use serde_json::json;

use super::place::Place;
use super::plan;
use crate::call::Cx;
use crate::policy::{Act, Decision, Effect, Mode};
use crate::request::{self, Judged, Requester};
use crate::{Error, Result};

/// The verb of looks.
const READ: &str = "file.read";
/// The verb of reading pages, and the domain in which it is judged.
const WEB_READ: &str = "web.read";
const WEB: &str = "web";

/// Whether the caller may look there.
pub(super) fn may_look(cx: &mut Cx<'_, '_>, operation: &str, place: &Place) -> Result<()> {
    may_read(cx, &look(operation, place)).map(drop)
}

fn look(operation: &str, place: &Place) -> Act {
    Act {
        kind: READ.to_owned(),
        tool: format!("workspace_{operation}"),
        domain: place.root.domain(),
        action: operation.to_owned(),
        target: place.name(),
        arguments: json!({ "path": place.name() }),
        ..Act::default()
    }
}

/// Whether the caller may read this page. It is counted where a rule looks at how many there were.
pub(super) fn may_browse(cx: &mut Cx<'_, '_>, host: &str, url: &str) -> Result<()> {
    let act = Act {
        kind: WEB_READ.to_owned(),
        tool: "workspace_browse_web".to_owned(),
        domain: WEB.to_owned(),
        action: "browse_web".to_owned(),
        target: host.to_owned(),
        arguments: json!({ "host": host, "url": url }),
        ..Act::default()
    };
    may_read(cx, &act)?.count(cx, act.cost)
}

/// Whether the caller may do what only reads: nobody can be asked first, so whatever asks for a person forbids it.
fn may_read(cx: &mut Cx<'_, '_>, act: &Act) -> Result<Judged> {
    let who = Requester::of(&cx.actor);
    let judged = request::weigh(cx, act, &who, false)?;
    if let Some(held) = judged.gauge.as_ref().and_then(|gauge| gauge.held.as_ref()) {
        return Err(held.error());
    }
    match stops(&judged.decision) {
        None => Ok(judged),
        // Everything is denied to who is paused. Surfaces count such refusals, and each one is no news.
        Some((why, _)) if judged.stopped().is_some() => Err(Error::forbidden(why)),
        Some((why, alternative)) => {
            let error = Error::forbidden(why);
            let error = match alternative {
                Some(alternative) => error.hint(alternative),
                None => error,
            };
            Err(request::refused(cx, who, act, judged.decision, error))
        }
    }
}

/// Why a look is refused: what denies it, or a rule that asks for a person, for whom a look cannot wait.
pub(super) fn stops(decision: &Decision) -> Option<(String, Option<String>)> {
    let rule = decision.hits.iter().find(|hit| matches!(hit.effect, Effect::Deny | Effect::RequireApproval));
    if let Some(hit) = rule {
        let why = if hit.effect == Effect::Deny { "" } else { "; ask a person to look, or to change the rule" };
        return Some((format!("{}{why}", hit.reason), hit.alternative.clone()));
    }
    let denied = decision.reasons.iter().find(|reason| reason.mode == Mode::Deny);
    denied.map(|reason| (reason.text.clone(), None))
}

/// What policy says to a change of files, and to a program: whatever the trust, a person decides, unless a rule that names
/// the verb lets it pass.
pub(super) fn may_change(cx: &mut Cx<'_, '_>, act: &Act, who: &Requester) -> Result<Decision> {
    let mut decision = request::judge(cx, act, who, false)?;
    request::hold_unless_named(cx, &mut decision, act, who)?;
    Ok(decision)
}

/// Whether a verb only looks.
pub(crate) fn is_look(verb: &str) -> bool {
    matches!(verb, READ | WEB_READ)
}

/// What an operation on files or pages would be answered, without doing it.
pub(crate) fn foresee(cx: &mut Cx<'_, '_>, operation: &str, input: &serde_json::Value, who: &Requester) -> Result<(Act, Decision)> {
    let text = |name: &str| input.get(name).and_then(serde_json::Value::as_str);
    let tool = format!("workspace_{operation}");
    if operation == "browse_web" {
        let url = text("url").unwrap_or_default();
        let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
        let (action, target, arguments) = (operation.to_owned(), host.to_owned(), json!({ "host": host, "url": url }));
        let act = Act { kind: WEB_READ.to_owned(), tool, domain: WEB.to_owned(), action, target, arguments, ..Act::default() };
        let decision = request::judge(cx, &act, who, false)?;
        return Ok((act, decision));
    }
    if let Some(kind) = plan::foresee::kind(operation) {
        // A program that is given no folder needs no root.
        let needs_none = operation == "execute_python" && ["read", "write"].iter().all(|field| input.get(field).is_none());
        let named = text("path").or_else(|| text("root")).or_else(|| text("workspace_root"));
        let place = if needs_none { None } else { Some(super::place::find(cx, "path", named)?) };
        for looked in place.as_ref().map_or(Ok(Vec::new()), |place| plan::foresee::looked(cx, kind, input, place))? {
            let act = look(operation, &looked);
            let decision = request::judge(cx, &act, who, false)?;
            if stops(&decision).is_some() {
                return Ok((act, decision));
            }
        }
        let act = plan::foresee::act(cx, kind, operation, input, place.as_ref())?;
        let decision = may_change(cx, &act, who)?;
        return Ok((act, decision));
    }
    let named = text("path").or_else(|| text("root"));
    let place = super::place::find(cx, "path", named)?;
    let looks = matches!(operation, "list_files" | "file_info" | "read_file" | "search_files" | "list_trash" | "scan_index" | "tree" | "sizes" | "duplicates");
    if looks {
        let act = look(operation, &place);
        let decision = request::judge(cx, &act, who, false)?;
        return Ok((act, decision));
    }
    let (kind, action, domain, target) = ("file.write".to_owned(), operation.to_owned(), place.root.domain(), place.name());
    let act = Act { kind, tool, domain, action, target, arguments: input.clone(), ..Act::default() };
    let decision = may_change(cx, &act, who)?;
    Ok((act, decision))
}
