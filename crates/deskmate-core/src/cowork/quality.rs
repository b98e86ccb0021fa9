//! How good proposals are: the share that was approved, how long decisions take, how often something is proposed anew,
//! how sure agents were, and how good they say results are; by agent and domain.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::scan::Found;
use crate::trust::Points;

/// Figures of one agent in one domain.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Quality {
    /// The agent.
    agent_id: String,
    /// The domain.
    domain: String,
    /// Proposals made.
    proposals: usize,
    /// Proposals that people decided.
    decided: usize,
    /// The share of them that was approved; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy: Option<f64>,
    /// Half of the decisions of people took at most this many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_p50_seconds: Option<f64>,
    /// 95 % of them took at most this many.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_p95_seconds: Option<f64>,
    /// The share of proposals that stand in the place of an earlier one.
    retry_rate: f64,
    /// How sure the agent was on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_confidence: Option<f64>,
    /// How good results are on average, as reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_quality: Option<f64>,
    /// The share of reported outcomes that were done; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    success_rate: Option<f64>,
    /// What was reported as spent, in cost units.
    cost: f64,
}

#[derive(Default)]
struct Sums {
    proposals: usize,
    retries: usize,
    approved: usize,
    latencies: Vec<i64>,
    confidences: Vec<i64>,
    qualities: Vec<i64>,
    reported: usize,
    done: usize,
    cost: i64,
}

/// The figures of what a scan found.
pub(super) fn figures(found: &Found) -> Vec<Quality> {
    let mut sums: BTreeMap<(&str, &str), Sums> = BTreeMap::new();
    for fate in found.requests.values().filter(|fate| fate.is_act()) {
        let sum = sums.entry((&fate.agent, &fate.domain)).or_default();
        sum.proposals += 1;
        sum.retries += usize::from(fate.supersedes.is_some());
        sum.confidences.extend(fate.confidence);
        if let (Some(decided), Some(_)) = (fate.decided_at, fate.person()) {
            sum.latencies.push(decided - fate.created_at);
            sum.approved += usize::from(fate.was_approved());
        }
    }
    for row in &found.executions {
        let sum = sums.entry((&row.agent, &row.domain)).or_default();
        sum.reported += 1;
        sum.done += usize::from(row.outcome == "done");
        sum.cost = sum.cost.saturating_add(row.cost);
        sum.qualities.extend(row.quality);
    }
    sums.into_iter().map(|((agent, domain), sum)| sum.shown(agent, domain)).collect()
}

impl Sums {
    fn shown(mut self, agent: &str, domain: &str) -> Quality {
        self.latencies.sort_unstable();
        let decided = self.latencies.len();
        Quality {
            agent_id: agent.to_owned(),
            domain: domain.to_owned(),
            proposals: self.proposals,
            decided,
            accuracy: share(self.approved, decided),
            latency_p50_seconds: percentile(&self.latencies, 50),
            latency_p95_seconds: percentile(&self.latencies, 95),
            retry_rate: share(self.retries, self.proposals).unwrap_or(0.0),
            mean_confidence: mean(&self.confidences),
            mean_quality: mean(&self.qualities),
            success_rate: share(self.done, self.reported),
            cost: Points(self.cost.saturating_mul(1_000)).to_f64(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of rows are far below 2^52")]
fn share(part: usize, of: usize) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

/// The mean of shares in billionths.
fn mean(shares: &[i64]) -> Option<f64> {
    let count = i64::try_from(shares.len()).ok().filter(|count| *count > 0)?;
    Some(Points(shares.iter().sum::<i64>() / count).to_f64())
}

/// The smallest time that covers a share of sorted times in microseconds, in seconds.
#[expect(clippy::cast_precision_loss, reason = "seconds need no more than 52 bits")]
fn percentile(sorted: &[i64], percent: usize) -> Option<f64> {
    let place = (sorted.len() * percent).div_ceil(100).checked_sub(1)?;
    sorted.get(place).map(|micros| *micros as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_smallest_times_that_cover_a_share() {
        let times: Vec<i64> = (1..=100).map(|second| second * 1_000_000).collect();
        assert_eq!((percentile(&times, 50), percentile(&times, 95)), (Some(50.0), Some(95.0)));
        assert_eq!((percentile(&[3_000_000], 50), percentile(&[], 95)), (Some(3.0), None));
        assert_eq!((mean(&[1_000_000_000, 500_000_000]), mean(&[])), (Some(0.75), None));
    }
}
