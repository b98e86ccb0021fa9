//! What the minimum is taken over, in words: for agents what holds them, for people also what would change it.

use super::criteria::wanting;
use super::decide::{act_threshold, mode_of_trust};
use super::{Act, Counters, Mode, Reason, Settings, Standing};
use crate::trust::Points;

/// Reasons under collection.
#[derive(Default)]
pub(super) struct Reasons {
    all: Vec<Reason>,
}

/// How many reasons of rules an answer names.
const RULES_MAX: usize = 20;

impl Reasons {
    fn add(&mut self, source: &str, mode: Mode, text: String, would_change: Option<String>) {
        self.all.push(Reason { source: source.to_owned(), mode, text, would_change });
    }

    /// A rule that fired.
    #[expect(clippy::too_many_arguments, reason = "they are the parts of one sentence")]
    pub(super) fn rule(&mut self, source: &str, mode: Mode, policy: &str, version: i64, rule: &str, reason: &str, instead: Option<&str>) {
        // One that restricts more than all before it is never left out.
        if self.all.len() >= RULES_MAX && self.all.iter().any(|reason| reason.mode <= mode) {
            return;
        }
        let text = format!("{reason} (rule {rule} of {policy})");
        let same = |known: &Reason| known.source == source && known.mode == mode && known.text == text;
        if self.all.iter().any(same) {
            return;
        }
        let change_it = if version == 0 { format!("another setting of {policy}") } else { format!("another version of {policy} than {version}") };
        let would_change = match instead {
            Some(instead) => format!("{instead}, or {change_it}"),
            None if mode == Mode::Suggest => format!("an approval; for all such acts {change_it}"),
            None => change_it,
        };
        self.add(source, mode, text, Some(would_change));
    }

    /// No mapping names the agent and domain, but there are mappings.
    pub(super) fn unmapped(&mut self, agent: &str, domain: &str) {
        let text = format!("no mapping names {agent} in {domain}, so a person looks at it");
        self.add("mapping", Mode::Escalate, text, Some(format!("a mapping of {agent} and {domain} to a policy, or policy_mode permissive")));
    }

    /// Rules whose approvers have too few people in common.
    pub(super) fn nobody_can_approve(&mut self, rules: &[String], quorum: u32, people: usize) {
        let text = format!("{quorum} must approve, but the rules {} together leave {people} who may", rules.join(" and "));
        self.add("policy", Mode::Deny, text, Some("approvers that these rules have in common".to_owned()));
    }

    /// Everything but rules.
    pub(super) fn of_standing(&mut self, act: &Act, standing: &Standing, counters: &Counters, settings: &Settings, waived_by: Option<&str>) {
        if standing.paused {
            let text = format!("{} is paused", standing.agent);
            self.add("pause", Mode::Deny, text, Some("a person who ends the pause".to_owned()));
        }
        self.limits(act, counters, settings);
        if standing.over_a_persons_edit {
            let text = "a person set what this would overwrite".to_owned();
            self.add("edit", Mode::Suggest, text, Some("an approval, or a person who gives the field back".to_owned()));
        }
        if !standing.verified {
            let text = format!("nothing proved that this is {}", standing.agent);
            self.add("unverified", Mode::Suggest, text, Some("a registered agent with its token".to_owned()));
        }
        self.trust(standing, settings, waived_by);
    }

    /// What the domain requires a proposal to be based on.
    pub(super) fn criteria(&mut self, act: &Act, settings: &Settings, now: i64) {
        let Some(criteria) = &act.criteria else { return };
        let wanting = wanting(criteria, &settings.authority, now);
        if !wanting.is_empty() {
            let would_change = "criteria that this domain requires, each with value, source and a recent time".to_owned();
            self.add("criteria", Mode::Escalate, wanting.join("; "), Some(would_change));
        }
    }

    fn trust(&mut self, standing: &Standing, settings: &Settings, waived_by: Option<&str>) {
        let score = standing.score;
        let mode = mode_of_trust(settings, score);
        if let Some(by) = waived_by {
            self.add("trust", Mode::Act, format!("trust is {}, which {by} stands in for", shown(score)), None);
        } else if mode == Mode::Act {
            self.add("trust", Mode::Act, format!("trust is {}", shown(score)), None);
        } else {
            let next = if mode == Mode::Escalate { Points::SUGGEST } else { act_threshold(settings) };
            let step = Points::of(settings.feedback.approval_trust_impact);
            let would_change = match (next.0 - score.0 + step.0 - 1).checked_div(step.0) {
                Some(approvals) if approvals > 0 && next <= Points::ONE => format!("a score of {}: {approvals} approvals from here", shown(next)),
                _ => format!("a score of {}", shown(next)),
            };
            self.add("trust", mode, format!("trust is {}, below {}", shown(score), shown(next)), Some(would_change));
        }
        let default_mode = settings.authority.default_mode;
        // A person's word stands in for experience as it does for trust, unless newcomers may do nothing at all.
        let lifted = waived_by.is_some() && default_mode != Mode::Deny;
        if standing.decided == 0 && default_mode < Mode::Act && !lifted {
            let text = format!("nobody has decided a proposal of {} in this domain yet", standing.agent);
            self.add("default_mode", default_mode, text, Some("one decided proposal, or another authority.default_mode".to_owned()));
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "costs are far below 2^53 millionths")]
    fn limits(&mut self, act: &Act, counters: &Counters, settings: &Settings) {
        let authority = &settings.authority;
        let mut count = |used: i64, cap: Option<u32>, what: &str, key: &str| {
            if let Some(cap) = cap.filter(|cap| used >= i64::from(*cap)) {
                let text = format!("{used} {what} were made, and {cap} are allowed");
                self.add("limit", Mode::Deny, text, Some(format!("waiting, or a higher authority.{key}")));
            }
        };
        if act.call {
            count(counters.called_hour, authority.call_cap, "calls in this domain within an hour", "call_cap");
        } else {
            let (one, all) = (counters.calls_hour - counters.called_hour, counters.calls_hour_all - counters.called_hour_all);
            count(one, Some(authority.volume_cap), "proposals in this domain within an hour", "volume_cap");
            count(all, authority.volume_cap_per_agent, "proposals within an hour", "volume_cap_per_agent");
        }
        count(counters.calls_day_all, authority.calls_per_day, "acts on this day", "calls_per_day");
        if let Some(cap) = authority.cost_per_day {
            let used = counters.cost_day.saturating_add(act.cost) as f64 / 1e6;
            if used > cap {
                let text = format!("it would bring the cost of this day to {used}, and {cap} are allowed");
                self.add("limit", Mode::Deny, text, Some("tomorrow, or a higher authority.cost_per_day".to_owned()));
            }
        }
    }

    /// The answer, and the reasons with the most restrictive first.
    pub(super) fn settle(mut self, counters: &Counters, settings: &Settings) -> (Mode, Vec<Reason>) {
        let mut mode = self.all.iter().map(|reason| reason.mode).min().unwrap_or(Mode::Escalate);
        let pending_max = settings.authority.pending_max;
        if matches!(mode, Mode::Suggest | Mode::Escalate) && counters.pending >= i64::from(pending_max) {
            mode = Mode::Deny;
            let text = format!("{} requests wait for a person already, and {pending_max} may", counters.pending);
            self.add("limit", Mode::Deny, text, Some("decisions on those that wait, or a higher authority.pending_max".to_owned()));
        }
        self.all.sort_by_key(|reason| reason.mode);
        (mode, self.all)
    }
}

/// A score for people.
fn shown(score: Points) -> String {
    let text = format!("{:.3}", score.to_f64());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
