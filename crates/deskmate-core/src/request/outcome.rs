//! What an answer does, by kind of request.

use super::decide::{Correction, Further};
use super::grant;
use super::judge::for_people;
use super::model::{New, Packet, Request, RequestKind, Requester};
use super::submit::submit;
use crate::call::Cx;
use crate::cowork;
use crate::policy::Act;
use crate::trust::{self, Of, Points};
use crate::{Result, edit, gateway};

/// The verb of promotions.
const PROMOTE: &str = "trust.promote";

fn of(request: &Request) -> Of<'_> {
    Of {
        agent: &request.requester.id,
        domain: &request.domain,
        verified: request.requester.verified,
        request: Some(&request.id),
        confidence: request.confidence.map(Points),
    }
}

/// Whether people's answers to it move an agent's trust.
pub(crate) fn moves_trust(request: &Request) -> bool {
    request.kind.moves_trust() && request.requester.is_agent()
}

/// A request was approved, by people or, where policy lets it pass, at once.
pub(super) fn approved(cx: &mut Cx<'_, '_>, request: &Request, reason: Option<&str>, further: &Further) -> Result<()> {
    match request.kind {
        RequestKind::Proposal | RequestKind::Approval | RequestKind::Plan | RequestKind::ToolCall => {
            let seconds = request.decided()?.map_or(0, |decision| decision.needs.grant_seconds);
            grant::issue(cx, request, seconds)?;
            if moves_trust(request) {
                let change = trust::approved(cx, of(request))?;
                ask_for_promotion(cx, of(request), &change)?;
            }
            if request.kind == RequestKind::ToolCall { gateway::approved(cx, request) } else { Ok(()) }
        }
        RequestKind::Promotion => {
            let to = request.act()?.arguments.get("to").and_then(serde_json::Value::as_f64).unwrap_or(0.0);
            // Nothing is due any more: what the promotion itself answers is not asked for again.
            let _ = trust::promoted(cx, of(request), Points::of(to))?;
            Ok(())
        }
        RequestKind::Edit => edit::accept(cx, request),
        RequestKind::Handoff => cowork::resolved(cx, request, reason, further),
        RequestKind::Policy => crate::policy::accept(cx, &request.act()?),
        RequestKind::Deploy => crate::agents::approved(cx, request),
    }
}

/// A person rejected a request.
pub(super) fn rejected(cx: &mut Cx<'_, '_>, request: &Request, correction: &Correction) -> Result<()> {
    if moves_trust(request) {
        let (kind, severity) = (correction.kind.as_deref().unwrap_or("human_preference"), correction.severity.unwrap_or(trust::Severity::Medium));
        let change = trust::overridden(cx, of(request), kind, severity)?;
        ask_for_promotion(cx, of(request), &change)?;
        let (description, action) = (correction.reason.as_deref(), correction.action.as_deref());
        cowork::overrode(cx, &cowork::Overridden { of: of(request), kind, severity, impact: change.impact, description, action })?;
    }
    ended(cx, request)
}

/// A request ended without being approved.
pub(super) fn ended(cx: &mut Cx<'_, '_>, request: &Request) -> Result<()> {
    match request.kind {
        RequestKind::Promotion => trust::not_promoted(cx, of(request)).map(drop),
        RequestKind::Handoff => cowork::unresolved(cx, request),
        RequestKind::ToolCall => gateway::not_approved(cx, request),
        _ => Ok(()),
    }
}

/// An approval was taken back.
pub(super) fn undone(cx: &mut Cx<'_, '_>, request: &Request) -> Result<()> {
    if moves_trust(request) && request.decided_by.as_deref() != Some("desk") {
        let _ = trust::taken_back(cx, of(request))?;
    }
    Ok(())
}

/// Asks people whether an agent may be trusted more, where that is due.
pub(crate) fn ask_for_promotion(cx: &mut Cx<'_, '_>, of: Of<'_>, change: &trust::Change) -> Result<()> {
    let Some(target) = change.promotion_due else { return Ok(()) };
    let (Of { agent, domain, .. }, trust) = (of, &change.trust);
    let (low, high) = trust.interval();
    let act = Act {
        kind: PROMOTE.to_owned(),
        tool: PROMOTE.to_owned(),
        domain: domain.to_owned(),
        action: "promote".to_owned(),
        target: agent.to_owned(),
        arguments: serde_json::json!({ "to": target.to_f64() }),
        ..Act::default()
    };
    let decision = for_people(cx, domain, "high", "trust rises only when a person ratifies it")?;
    let title = format!("Promote {agent} in {domain} to {}", target.to_f64());
    let packet = Packet {
        reasoning: Some(format!(
            "{} of {} decided proposals were approved, which stands for {:.0} to {:.0} %.",
            trust.state().approved,
            trust.decided(),
            low * 100.0,
            high * 100.0
        )),
        old: Some(serde_json::json!({ "to": trust.score.to_f64() })),
        reversibility: Some("overrides and idle days lower the score again".to_owned()),
        ..Packet::default()
    };
    let new = New { requester: Some(Requester::agent(agent, of.verified)), packet, ..New::new(RequestKind::Promotion, title, act, decision) };
    submit(cx, new)?;
    Ok(())
}
