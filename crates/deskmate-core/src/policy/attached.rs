//! Policies that hold for one agent, beside whatever is mapped for it. They only take away: a rule that allows something is left
//! out, no mapping comes into being, and so nothing changes for anybody else. One that cannot be read denies.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use regex::Regex;

use super::condition::regex;
use super::model::{Match, Policy, Rule};
use super::rulebook::{Compiled, Ready, Rulebook};
use super::{COUNTERS, Effect, Hit, PolicyRef};

/// Policies that hold for one agent, ready to decide with.
#[derive(Debug)]
pub struct Attached {
    pub(super) policies: Vec<Compiled>,
    /// Those of the rulebook and of these.
    pub(super) patterns: Arc<HashMap<String, Regex>>,
    asked: BTreeSet<&'static str>,
}

impl Attached {
    /// Compiles policies with their versions, to be decided with beside a rulebook.
    pub fn compile(rulebook: &Rulebook, policies: &[(Policy, i64)]) -> Self {
        let compiled = policies.iter().map(|(policy, version)| {
            let taking = |rule: &&Rule| !matches!(rule, Rule::General(rule) if rule.effect == Effect::Allow);
            let taking = Policy { rules: policy.rules.iter().filter(taking).cloned().collect(), ..policy.clone() };
            Compiled::new(&taking, *version).unwrap_or_else(|why| Compiled::unreadable(&policy.id, *version, &why))
        });
        let mut policies: Vec<Compiled> = compiled.collect();
        let mut patterns: HashMap<String, Regex> = HashMap::new();
        let mut asked = BTreeSet::new();
        for policy in &mut policies {
            let conditions = policy.rules.iter().filter_map(|rule| match rule {
                Ready::General(general) => general.condition.as_ref(),
                Ready::Field(_) => None,
            });
            let mut wrong = None;
            for condition in conditions {
                asked.extend(&condition.variables);
                for pattern in &condition.patterns {
                    match regex(pattern) {
                        Ok(regex) => drop(patterns.insert(pattern.clone(), regex)),
                        Err(why) => wrong = Some(why),
                    }
                }
            }
            if let Some(why) = wrong {
                *policy = Compiled::unreadable(&policy.name, policy.version, &why);
            }
        }
        let patterns = if patterns.is_empty() {
            Arc::clone(&rulebook.patterns)
        } else {
            patterns.extend(rulebook.patterns.iter().map(|(pattern, regex)| (pattern.clone(), regex.clone())));
            Arc::new(patterns)
        };
        Self { policies, patterns, asked }
    }

    /// How many rules they have.
    pub fn rules(&self) -> usize {
        self.policies.iter().map(|policy| policy.rules.len()).sum()
    }

    /// Whether any of their conditions asks for a variable.
    pub fn asks_for(&self, variable: &str) -> bool {
        self.asked.contains(variable)
    }

    /// Whether any of their conditions asks what an agent used up.
    pub fn asks_for_counters(&self) -> bool {
        self.asked.iter().any(|variable| variable.starts_with(COUNTERS))
    }

    /// The acts that a rule of theirs that fired is about.
    pub fn matches_of<'a>(&'a self, hit: &'a Hit) -> impl Iterator<Item = &'a Match> {
        let rules = self.policies.iter().filter(|policy| policy.name == hit.policy).flat_map(|policy| &policy.rules);
        rules.filter_map(|rule| match rule {
            Ready::General(general) if general.rule.name == hit.rule_id => Some(&general.rule.matches),
            _ => None,
        })
    }

    /// Their names and versions.
    pub fn names(&self) -> Vec<PolicyRef> {
        self.policies.iter().map(|policy| PolicyRef { policy: policy.name.clone(), version: policy.version }).collect()
    }
}
