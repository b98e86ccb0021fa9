//! What an agent used up, as people see it.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limit::{authority, gauge, units};
use crate::Result;
use crate::call::{Cx, Page, PageIn};
use crate::identity::check_name;

/// Show what an agent used up of its limits: in all domains together, and in each domain where it acted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Get {
    /// The agent's name.
    agent: String,
    /// How many domains; at most 200.
    limit: Option<u32>,
    /// Where the previous page of domains ended.
    cursor: Option<String>,
}

/// What an agent used up.
#[derive(Serialize, JsonSchema)]
pub(super) struct Used {
    /// The agent's name.
    agent: String,
    /// Whether it, or everybody, is paused.
    paused: bool,
    /// Acts in all domains within the last hour, without calls of tools.
    acts_hour: i64,
    /// Calls of tools in all domains within the last hour; none if absent.
    #[serde(skip_serializing_if = "is_none")]
    calls_hour: i64,
    /// Acts in all domains on this day (UTC), with calls of tools.
    acts_day: i64,
    /// Cost in all domains on this day, in units.
    cost_day: f64,
    /// Attempts that were denied on this day.
    denied_day: i64,
    /// For how long its further attempts are put off, because too many were denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_for_ms: Option<u64>,
    /// The domains where it acted, by name.
    domains: Vec<UsedIn>,
    /// Give this as `cursor` for the next page of domains. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// What an agent used up in a domain, and what the domain's settings allow.
#[derive(Serialize, JsonSchema)]
pub(super) struct UsedIn {
    /// The domain.
    domain: String,
    /// Acts in it within the last hour, without calls of tools.
    acts_hour: i64,
    /// How many may be.
    acts_hour_max: u32,
    /// Calls of tools in it within the last hour; none if absent.
    #[serde(skip_serializing_if = "is_none")]
    calls_hour: i64,
    /// How many may be; not limited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls_hour_max: Option<u32>,
    /// Acts in it on this day (UTC), with calls of tools.
    acts_day: i64,
    /// Acts in all domains within an hour that this domain allows; not limited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    acts_hour_all_max: Option<u32>,
    /// Acts in all domains on a day that this domain allows; not limited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    acts_day_all_max: Option<u32>,
    /// Cost in all domains on a day that this domain allows, in units; not limited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_day_all_max: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "this is how it is asked")]
fn is_none(count: &i64) -> bool {
    *count == 0
}

/// The domains of an agent's meters, those of calls among them.
const DOMAINS: &str = "select distinct domain from (select case when substr(scope, 1, 5) = 'call ' then substr(scope, 6) else scope end as domain \
     from meter where agent = $1) as used where domain > $2 order by domain limit $3";

pub(super) fn get(cx: &mut Cx<'_, '_>, input: Get) -> Result<Used> {
    check_name("agent", &input.agent)?;
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let (_, after) = page.after.clone().unwrap_or_default();
    let rows = cx.tx.query(DOMAINS, args![input.agent, after, page.look_ahead()])?;
    let whole = gauge(cx, &input.agent, "")?;
    let mut domains = Vec::with_capacity(rows.len());
    for row in &rows {
        let domain: String = row.get(0)?;
        let counters = gauge(cx, &input.agent, &domain)?.counters;
        let authority = authority(cx, &domain)?;
        domains.push(UsedIn {
            domain,
            acts_hour: counters.calls_hour - counters.called_hour,
            acts_hour_max: authority.volume_cap,
            calls_hour: counters.called_hour,
            calls_hour_max: authority.call_cap,
            acts_day: counters.calls_day,
            acts_hour_all_max: authority.volume_cap_per_agent,
            acts_day_all_max: authority.calls_per_day,
            cost_day_all_max: authority.cost_per_day,
        });
    }
    let page = Page::cut(domains, &page, |used| (0, used.domain.clone()));
    Ok(Used {
        agent: input.agent,
        paused: whole.paused,
        acts_hour: whole.counters.calls_hour_all - whole.counters.called_hour_all,
        calls_hour: whole.counters.called_hour_all,
        acts_day: whole.counters.calls_day_all,
        cost_day: units(whole.counters.cost_day),
        denied_day: whole.counters.denied_day,
        held_for_ms: whole.held.map(|full| full.retry_after_ms),
        domains: page.items,
        next_cursor: page.next_cursor,
    })
}
