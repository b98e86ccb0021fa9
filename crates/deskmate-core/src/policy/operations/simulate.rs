//! A draft replayed over the record: which past answers would differ.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{Counters, Decision, Mode, Rulebook, Standing, current, decide};
use super::apply::read;
use crate::call::{Cx, Page, PageIn};
use crate::request::Bound;
use crate::trust::Points;
use crate::{Result, format_time, parse_time};

/// Replay a draft over past requests and show which answers would differ. The act and who acted are taken as they were;
/// counters of that time are not kept, so limits and rates play no part.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Simulate {
    /// The draft, as it would stand in `deskmate.yaml`; what is in force if not given.
    document: Option<String>,
    /// Only from this time on, RFC 3339.
    since: Option<String>,
    /// Only this agent.
    agent: Option<String>,
    /// Only this domain.
    domain: Option<String>,
    /// How many past requests one call looks at; at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// Which past answers would differ.
#[derive(Serialize, JsonSchema)]
pub(super) struct Simulated {
    /// How many past requests this page looked at.
    looked_at: usize,
    /// How many would get the same answer.
    same: usize,
    /// How many would get a more restrictive one.
    stricter: usize,
    /// How many would get a less restrictive one.
    looser: usize,
    /// How many could not be replayed, because what was proposed was erased.
    erased: usize,
    /// Those that differ, newest first.
    differing: Vec<Differing>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Differing {
    /// The request.
    request: String,
    /// When it was made.
    at: String,
    /// Who asked.
    agent: String,
    /// In which domain.
    domain: String,
    /// What was answered.
    then: Mode,
    /// What the draft answers.
    now: Mode,
    /// The rules of the draft that fire.
    hits: Vec<String>,
    /// Why, in words.
    why: String,
}

struct Past {
    id: String,
    agent: String,
    domain: String,
    verified: bool,
    created_at: i64,
    bound: Option<String>,
    decision: Option<String>,
}

pub(super) fn simulate(cx: &mut Cx<'_, '_>, input: Simulate) -> Result<Simulated> {
    let in_force = current(cx)?;
    let rulebook = match &input.document {
        None => in_force,
        Some(text) => {
            let parts = read(text)?.over(in_force.parts());
            let compiled = Rulebook::compile(parts, std::collections::BTreeMap::new());
            std::sync::Arc::new(compiled.map_err(|problems| super::super::draft::refused(&problems))?)
        }
    };
    let since = input.since.as_deref().map(|text| parse_time("since", text)).transpose()?.unwrap_or(i64::MIN);
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let past = past(cx, &input.agent, &input.domain, since, &page)?;
    let mut out = Simulated { looked_at: 0, same: 0, stricter: 0, looser: 0, erased: 0, differing: Vec::new(), next_cursor: None };
    let page = Page::cut(past, &page, |past| (past.created_at, past.id.clone()));
    out.next_cursor = page.next_cursor;
    for past in page.items {
        out.looked_at += 1;
        let bound = past.bound.as_deref().and_then(|text| serde_json::from_str::<Bound>(text).ok());
        let then = past.decision.as_deref().and_then(|text| serde_json::from_str::<Decision>(text).ok());
        let (Some(bound), Some(then)) = (bound, then) else {
            out.erased += 1;
            continue;
        };
        let standing = standing(cx, &past, &then)?;
        let now = decide(&rulebook, &bound.act, &standing, &Counters::default(), past.created_at);
        match now.mode.cmp(&then.mode) {
            std::cmp::Ordering::Equal => out.same += 1,
            std::cmp::Ordering::Less => out.stricter += 1,
            std::cmp::Ordering::Greater => out.looser += 1,
        }
        if now.mode != then.mode {
            out.differing.push(Differing {
                request: past.id,
                at: format_time(past.created_at),
                agent: past.agent,
                domain: past.domain,
                then: then.mode,
                now: now.mode,
                hits: now.hits.iter().map(|hit| hit.rule_id.clone()).collect(),
                why: now.reasons.first().map(|reason| reason.text.clone()).unwrap_or_default(),
            });
        }
    }
    Ok(out)
}

/// Requests of agents, newest first.
fn past(cx: &mut Cx<'_, '_>, agent: &Option<String>, domain: &Option<String>, since: i64, page: &PageIn) -> Result<Vec<Past>> {
    let (at, id) = page.after.clone().unwrap_or((i64::MAX, "\u{10ffff}".to_owned()));
    let limit = page.look_ahead();
    let rows = match (agent, domain) {
        (Some(agent), _) => cx.tx.query(
            "select id, requester, domain, verified, created_at, act, decision from request \
             where requester = $1 and kind = 'proposal' and requester_kind = 'agent' and created_at >= $2 and (created_at, id) < ($3, $4) \
             and ($5 = '' or domain = $5) order by created_at desc, id desc limit $6",
            args![agent, since, at, id, domain.as_deref().unwrap_or(""), limit],
        )?,
        (None, Some(domain)) => cx.tx.query(
            "select id, requester, domain, verified, created_at, act, decision from request \
             where domain = $1 and kind = 'proposal' and requester_kind = 'agent' and created_at >= $2 and (created_at, id) < ($3, $4) \
             order by created_at desc, id desc limit $5",
            args![domain, since, at, id, limit],
        )?,
        (None, None) => cx.tx.query(
            "select id, requester, domain, verified, created_at, act, decision from request \
             where kind = 'proposal' and requester_kind = 'agent' and created_at >= $1 and (created_at, id) < ($2, $3) \
             order by created_at desc, id desc limit $4",
            args![since, at, id, limit],
        )?,
    };
    rows.iter()
        .map(|row| {
            Ok(Past {
                id: row.get(0)?,
                agent: row.get(1)?,
                domain: row.get(2)?,
                verified: row.get(3)?,
                created_at: row.get(4)?,
                bound: row.get(5)?,
                decision: row.get(6)?,
            })
        })
        .collect()
}

fn standing(_cx: &mut Cx<'_, '_>, past: &Past, _then: &Decision) -> Result<Standing> {
    Ok(Standing {
        agent: past.agent.clone(),
        verified: past.verified,
        paused: false,
        score: Points::ZERO,
        decided: 0,
        over_a_persons_edit: false,
        waived_by: None,
    })
}
