//! Why an act got its answer, and what would change it. For people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::{Decision, current};
use super::cases::act_of;
use crate::call::Cx;
use crate::identity::check_name;
use crate::request::{self, Requester};
use crate::{Error, Result, identity};

/// Say why an act got its answer and what would change it: of a request by its id, or of an act that somebody might
/// intend. The answer is for people; an agent is told only a rule's message and alternative.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Explain {
    /// The request's id.
    request: Option<String>,
    /// Who would act.
    agent: Option<String>,
    /// The act, as far as it matters: `kind`, `tool`, `domain`, `environment`, `action`, `target`, `field`, `arguments`,
    /// `cost`, `taint`, `criteria`.
    act: Option<Map<String, Value>>,
}

/// Why.
#[derive(Serialize, JsonSchema)]
pub(super) struct Explained {
    /// Who would act.
    agent: String,
    /// What was answered when the request was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    then: Option<Decision>,
    /// What would be answered now.
    now: Decision,
    /// The digest of everything in force.
    rulebook: String,
    /// The same in lines for people: the most restrictive reason first.
    lines: Vec<String>,
}

pub(super) fn explain(cx: &mut Cx<'_, '_>, input: Explain) -> Result<Explained> {
    let (who, now, then) = match (input.request, input.agent, input.act) {
        (Some(id), None, None) => {
            let found = request::find(cx, &id)?.ok_or_else(|| Error::not_found(format!("there is no request {id}")))?;
            (found.requester.clone(), request::judge_again(cx, &found)?, found.decided()?)
        }
        (None, Some(agent), Some(act)) => {
            check_name("agent", &agent)?;
            let act = act_of(&act).map_err(|error| Error::invalid("act", error))?;
            // Where agents need their tokens, nobody acts without having shown who they are.
            let verified = identity::mode(cx.tx)? == crate::call::Mode::Closed;
            let who = Requester::agent(agent, verified);
            let now = request::judge_intended(cx, &act, &who)?;
            (who, now, None)
        }
        _ => return Err(Error::invalid("request", "give either a request's id, or an agent and an act")),
    };
    let rulebook = current(cx)?.digest().to_owned();
    let lines = tell(&now, then.as_ref());
    Ok(Explained { agent: who.id, then, now, rulebook, lines })
}

fn tell(now: &Decision, then: Option<&Decision>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(then) = then {
        lines.push(format!("When it was asked, the answer was {}; now it would be {}.", then.mode.name(), now.mode.name()));
        if then.mode != now.mode {
            lines.push(format!("Why it was {}:", then.mode.name()));
            why(then, &mut lines);
            lines.push(format!("Why it would be {}:", now.mode.name()));
        }
    } else {
        lines.push(format!("The answer is {}.", now.mode.name()));
    }
    why(now, &mut lines);
    if !now.mapping_found {
        lines.push("No mapping names this agent and domain.".to_owned());
    }
    lines
}

/// The reasons of an answer, and the rules that fired.
fn why(decision: &Decision, lines: &mut Vec<String>) {
    for reason in &decision.reasons {
        lines.push(format!("{}: at best {}: {}", reason.source, reason.mode.name(), reason.text));
        if let Some(change) = &reason.would_change {
            lines.push(format!("    {change}"));
        }
    }
    for hit in &decision.hits {
        let field = hit.field.as_ref().map(|field| format!(" on {field}")).unwrap_or_default();
        let failed = if hit.failed { ", because it could not be evaluated" } else { "" };
        lines.push(format!("rule {} of {} v{}{field}: {}{failed}", hit.rule_id, hit.policy, hit.version, hit.reason));
    }
}
