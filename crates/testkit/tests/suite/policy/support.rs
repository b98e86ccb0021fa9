//! Acts, agents and rulebooks that the tests speak of.

use std::collections::BTreeMap;

use deskmate_core::policy::{Act, Counters, Decision, Document, Parts, Rulebook, Standing, decide};
use deskmate_core::trust::Points;
use serde_json::{Value, json};

/// A Monday, 2026-11-16, at 10:30.
pub(crate) const NOW: i64 = 1_794_825_000_000_000;

/// A rulebook from a text that must be right.
pub(crate) fn rulebook(text: &str) -> Rulebook {
    let document = Document::parse(text).unwrap_or_else(|problems| panic!("{problems:#?}"));
    compile(document.over(&Parts::default()))
}

pub(crate) fn compile(parts: Parts) -> Rulebook {
    let versions: BTreeMap<String, i64> = parts.policies.keys().map(|name| (name.clone(), 1)).collect();
    Rulebook::compile(parts, versions).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// What is wrong with a text, as `LINE:COLUMN: PATH: MESSAGE`.
pub(crate) fn problems(text: &str) -> Vec<String> {
    match Document::parse(text) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

/// A registered agent that earned everything, so that only rules hold it.
pub(crate) fn trusted(agent: &str) -> Standing {
    Standing {
        agent: agent.to_owned(),
        verified: true,
        paused: false,
        score: Points::ONE,
        decided: 40,
        over_a_persons_edit: false,
        waived_by: None,
        attached: None,
    }
}

/// A proposal in a domain.
pub(crate) fn propose(domain: &str, arguments: Value) -> Act {
    Act {
        kind: "propose".to_owned(),
        tool: "cowork_propose".to_owned(),
        domain: domain.to_owned(),
        action: "update".to_owned(),
        target: "record 1".to_owned(),
        arguments,
        ..Act::default()
    }
}

/// The old form: a declared field, and its value beside it.
pub(crate) fn field(domain: &str, field: &str, value: Value) -> Act {
    Act { field: Some(field.to_owned()), ..propose(domain, json!({ "value": value })) }
}

pub(crate) fn answer(rulebook: &Rulebook, agent: &str, act: &Act) -> Decision {
    decide(rulebook, act, &trusted(agent), &Counters::default(), NOW)
}

pub(crate) fn ids(decision: &Decision) -> Vec<&str> {
    decision.hits.iter().map(|hit| hit.rule_id.as_str()).collect()
}

/// The policies that the cases of the earlier server use.
pub(crate) const REFERENCE: &str = r"
policies:
  - id: crm-write
    description: What agents may change in the CRM
    rules:
      - { field: commission, constraint: value_range, min: 0, max: 50, reason: Commission is capped }
      - { field: deal_stage, constraint: enum, values: [prospect, qualified, proposal, won, lost] }
      - { field: owner, constraint: readonly, reason: Owners are set by people }
      - { field: 'billing_*', constraint: high_risk }
  - id: support-write
    rules:
      - { field: priority, constraint: enum, values: [low, medium, high, critical] }
      - { field: escalation_reason, constraint: regex, pattern: '.{10,}' }
mappings:
  - { agent_id: crm-agent, domain: crm.deals, policy_id: crm-write }
  - { agent_id: crm-agent, domain: support.tickets, policy_id: support-write }
  - { agent_id: support-agent, domain: support.tickets, policy_id: support-write }
";
