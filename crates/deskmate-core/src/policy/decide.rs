//! Act, suggest, escalate or deny: the minimum over everything that has a say.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::change::{Change, Held};
use super::condition::{Scope, holds};
use super::index::values;
use super::model::{Constraint, GLOBAL_POLICY, Severity};
use super::reasons::Reasons;
use super::rulebook::{Compiled, FieldReady, GeneralReady, InDomain, Ready, Rulebook};
use super::{Act, Counters, Decision, Effect, Hit, Mode, Needs, PATHS, PATHS_CUT, PolicyRef, Settings, Standing};
use crate::limits::HITS_MAX;
use crate::trust::Points;

/// The policy under which the desk's own list of high-risk fields is named.
pub const HIGH_RISK_LIST: &str = "authority.high_risk_fields";

/// The answer to an intended act: the most restrictive over trust, policy, limits, pauses and people's edits. Pure.
/// Where the act's own use was already taken from the meters, give [`Counters::without`] it.
pub fn decide(rulebook: &Rulebook, act: &Act, standing: &Standing, counters: &Counters, now: i64) -> Decision {
    let (mapping_found, applied) = rulebook.applied(&standing.agent, &act.domain);
    Run::new(rulebook, act, standing, counters, now).decide(mapping_found, &applied)
}

/// What acts like one would get, of which what they are called with is not known yet.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// The answer, as far as it is the same for all of them.
    pub decision: Decision,
    /// Rules that may change it: whether they fire is seen in what an act is called with.
    pub open: Vec<OpenRule>,
}

/// A rule whose condition cannot be answered yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OpenRule {
    /// Its name.
    pub rule_id: String,
    /// The policy it is in.
    pub policy: String,
    /// That policy's version.
    pub version: i64,
    /// What it does where it fires.
    pub effect: Effect,
    /// When it does.
    pub when: String,
    /// Why, for people and agents alike.
    pub message: String,
}

/// The answer to acts that are called with anything: rules that ask for it are set aside.
pub fn outlook(rulebook: &Rulebook, act: &Act, standing: &Standing, counters: &Counters, now: i64) -> Outlook {
    let (mapping_found, applied) = rulebook.applied(&standing.agent, &act.domain);
    let mut open = Vec::new();
    let decision = Run { open: Some(&mut open), ..Run::new(rulebook, act, standing, counters, now) }.decide(mapping_found, &applied);
    Outlook { decision, open }
}

/// The answer under one policy and the rules for everybody, as if a mapping named it: for the cases beside a policy.
pub fn decide_under(rulebook: &Rulebook, policy: &str, act: &Act, standing: &Standing, counters: &Counters, now: i64) -> Decision {
    let number: Vec<u32> = rulebook.number_of(policy).into_iter().filter(|_| policy != GLOBAL_POLICY).collect();
    Run::new(rulebook, act, standing, counters, now).decide(true, &number)
}

/// What a score alone allows.
pub fn mode_of_trust(settings: &Settings, score: Points) -> Mode {
    if score >= act_threshold(settings) {
        Mode::Act
    } else if score >= Points::SUGGEST {
        Mode::Suggest
    } else {
        Mode::Escalate
    }
}

/// The score from which an agent may act alone.
pub(super) fn act_threshold(settings: &Settings) -> Points {
    Points::ACT.max(Points::of(settings.trust.autonomous_threshold))
}

/// A rule that may concern the act: the policy's place, the rule, and the changed path if it is about one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    policy: u32,
    rule: u32,
    path: u32,
}

/// No path: a general rule.
const WHOLE: u32 = u32::MAX;

struct Run<'a> {
    rulebook: &'a Rulebook,
    act: &'a Act,
    standing: &'a Standing,
    counters: &'a Counters,
    now: i64,
    within: &'a InDomain,
    hits: Vec<Hit>,
    checked: u32,
    reasons: Reasons,
    severity: Option<Severity>,
    waived_by: Option<String>,
    needs: Asked,
    /// What the rules that fired hide.
    hidden: Vec<&'a [String]>,
    /// Where rules go that cannot be answered yet; without it they fire.
    open: Option<&'a mut Vec<OpenRule>>,
}

/// What the rules that ask for approval want, the strictest of each.
#[derive(Default)]
struct Asked {
    quorum: Option<u32>,
    approvers: Option<Vec<String>>,
    /// The rules that named approvers.
    named_by: Vec<String>,
    grant_seconds: Option<u32>,
    expires_seconds: Option<u32>,
}

impl<'a> Run<'a> {
    fn new(rulebook: &'a Rulebook, act: &'a Act, standing: &'a Standing, counters: &'a Counters, now: i64) -> Self {
        let within = rulebook.in_domain(&act.domain);
        Self {
            rulebook,
            act,
            standing,
            counters,
            now,
            within,
            hits: Vec::new(),
            checked: 0,
            reasons: Reasons::default(),
            severity: None,
            waived_by: standing.waived_by.clone(),
            needs: Asked::default(),
            hidden: Vec::new(),
            open: None,
        }
    }

    fn decide(mut self, mapping_found: bool, applied: &[u32]) -> Decision {
        let own = self.standing.attached.iter().flat_map(|attached| &attached.policies);
        let policies: Vec<&Compiled> = applied.iter().chain(&self.rulebook.global).filter_map(|number| self.rulebook.compiled(*number)).chain(own).collect();
        let change = Change::of(self.act);
        if applied.is_empty() && !mapping_found {
            self.reasons.unmapped(&self.standing.agent, &self.act.domain);
        }
        self.apply(&policies, &change);
        let high_risk_field = self.high_risk_list(&change);
        self.reasons.of_standing(self.act, self.standing, self.counters, &self.within.settings, self.waived_by.as_deref());
        self.reasons.criteria(self.act, &self.within.settings, self.now);
        let needs = self.needs();
        let (mode, reasons) = self.reasons.settle(self.counters, &self.within.settings);
        let mut decision = Decision {
            mode,
            mapping_found,
            policies: policies.iter().map(|policy| PolicyRef { policy: policy.name.clone(), version: policy.version }).collect(),
            rulebook: self.rulebook.digest().to_owned(),
            rules_checked: self.checked,
            risk: risk(mode, high_risk_field, self.severity, self.act).to_owned(),
            hits: self.hits,
            high_risk_field,
            reasons,
            needs,
            redact: Vec::new(),
            hides: Vec::new(),
            waived_by: self.standing.waived_by.clone(),
            counters: None,
        };
        if !self.hidden.is_empty() {
            decision.hide(self.act, &self.hidden.concat());
        }
        decision
    }

    /// Looks at every rule of the policies that concerns the act, in their order.
    fn apply(&mut self, policies: &[&'a Compiled], change: &Change<'_>) {
        let mut candidates = Vec::new();
        let values = values(self.act, self.standing);
        for (number, policy) in (0..).zip(policies) {
            policy.matches.find(&values, |rule| candidates.push(Candidate { policy: number, rule, path: WHOLE }));
            if !policy.fields.is_empty() {
                for (path, (full, last, _)) in (0..).zip(change.entries()) {
                    policy.fields.find(full, |rule| candidates.push(Candidate { policy: number, rule, path }));
                    if last.len() != full.len() {
                        policy.fields.find(last, |rule| candidates.push(Candidate { policy: number, rule, path }));
                    }
                }
                self.beyond_sight(policy, change);
            }
        }
        candidates.sort_unstable();
        candidates.dedup();
        let ready =
            |candidate: &Candidate| policies.get(candidate.policy as usize).and_then(|policy| Some((*policy, policy.rules.get(candidate.rule as usize)?)));
        let conditional = |candidate: &Candidate| matches!(ready(candidate), Some((_, Ready::General(general))) if general.condition.is_some());
        let scope = || Scope::new(self.act, change, self.standing, self.counters, self.now);
        let scope = candidates.iter().any(conditional).then(|| if self.open.is_some() { scope().foreseen() } else { scope() });
        let patterns = self.standing.attached.as_ref().map_or(&self.rulebook.patterns, |attached| &attached.patterns);
        let context = scope.as_ref().map(|scope| scope.context(&self.rulebook.env, patterns));
        let mut before = None;
        for candidate in &candidates {
            if before != Some((candidate.policy, candidate.rule)) {
                self.checked += 1;
                before = Some((candidate.policy, candidate.rule));
            }
            match ready(candidate) {
                Some((policy, Ready::Field(field))) => {
                    if let Some((path, _, held)) = change.entry(candidate.path as usize) {
                        self.beyond_paths(policy, &field.id, path.starts_with(PATHS));
                        self.field(policy, field, path, held);
                    }
                }
                Some((policy, Ready::General(general))) => {
                    self.beyond_paths(policy, &general.rule.name, general.condition.as_ref().is_some_and(|condition| condition.asks_for_paths));
                    let held = match (&general.condition, &context) {
                        (None, _) => Ok(true),
                        (Some(condition), Some(context)) => holds(condition, context),
                        (Some(_), None) => Err("there is nothing to evaluate it with".to_owned()),
                    };
                    self.general(policy, general, held);
                }
                None => {}
            }
        }
    }

    /// A change that rules about fields cannot see all of.
    fn beyond_sight(&mut self, policy: &Compiled, change: &Change<'_>) {
        let mut say = |rule_id: &str, effect: Effect, severity: &str, reason: &str, alternative: &str| {
            let mode = if effect == Effect::Deny { Mode::Deny } else { Mode::Suggest };
            self.reasons.rule("policy", mode, &policy.name, policy.version, rule_id, reason, Some(alternative));
            self.severity = self.severity.max(Some(Severity::High));
            self.hits.push(Hit {
                rule_id: rule_id.to_owned(),
                policy: policy.name.clone(),
                version: policy.version,
                field: None,
                effect,
                severity: severity.to_owned(),
                reason: reason.to_owned(),
                alternative: Some(alternative.to_owned()),
                failed: true,
            });
        };
        if change.over {
            let alternative = "propose it in smaller parts";
            say("change_too_large", Effect::Deny, "hard_stop", "the change is larger than what the rules about its fields can look at", alternative);
        }
        if change.opaque {
            let alternative = "write the change as JSON, each field with its new value";
            say("opaque_change", Effect::RequireApproval, "warning", "the change is a text, so the rules about its fields cannot look into it", alternative);
        }
    }

    /// A rule about the paths of an act that are more than it names: whatever the rule says of those, people see the others, too.
    fn beyond_paths(&mut self, policy: &Compiled, rule: &str, asks_for_paths: bool) {
        if asks_for_paths && self.act.arguments.get(PATHS_CUT) == Some(&Value::Bool(true)) {
            let reason = "the rule is about paths, and there are more of them than rules look at";
            self.reasons.rule("policy", Mode::Suggest, &policy.name, policy.version, rule, reason, Some("ask for it in smaller parts"));
        }
    }

    fn field(&mut self, policy: &Compiled, ready: &FieldReady, path: &str, held: &Held<'_>) {
        let Some(expected) = violated(ready, held) else { return };
        let rule = &ready.rule;
        if let Some(open) = &mut self.open
            && *held == Held::Missing
            && rule.constraint.is_about_the_value()
        {
            let (rule_id, message, when) = (ready.id.clone(), rule.reason.clone(), format!("the value of {} is not allowed", rule.field));
            open.push(OpenRule { rule_id, policy: policy.name.clone(), version: policy.version, effect: Effect::Deny, when, message });
            return;
        }
        let high_risk = rule.constraint == Constraint::HighRisk;
        let (effect, mode, source) = if high_risk { (Effect::RequireApproval, Mode::Suggest, "high_risk") } else { (Effect::Deny, Mode::Deny, "policy") };
        self.severity = self.severity.max(Some(if high_risk { Severity::Warning } else { Severity::High }));
        let field = if path.is_empty() { &rule.field } else { path };
        let reason = if rule.reason.is_empty() { default_reason(rule.constraint, field, held) } else { rule.reason.clone() };
        self.reasons.rule(source, mode, &policy.name, policy.version, &ready.id, &reason, expected.as_deref());
        self.hit(Hit {
            rule_id: ready.id.clone(),
            policy: policy.name.clone(),
            version: policy.version,
            field: Some(field.to_owned()),
            effect,
            severity: if high_risk { "warning" } else { "hard_stop" }.to_owned(),
            reason,
            alternative: hint(rule.constraint).map(str::to_owned),
            failed: false,
        });
    }

    /// Notes a hit, unless it is there already or there are very many. The first that denies or hides is never left out.
    fn hit(&mut self, hit: Hit) {
        let same = |known: &&Hit| known.rule_id == hit.rule_id && known.policy == hit.policy && known.field == hit.field;
        let must = matches!(hit.effect, Effect::Deny | Effect::Redact);
        let bound = if must { 2 * HITS_MAX } else { HITS_MAX };
        if self.hits.len() < bound && !self.hits.iter().any(|known| same(&known)) {
            self.hits.push(hit);
        }
    }

    fn general(&mut self, policy: &Compiled, ready: &'a GeneralReady, held: Result<bool, String>) {
        let rule = &ready.rule;
        if let (Some(open), Some(when)) = (&mut self.open, &rule.when)
            && held.is_err()
            && ready.condition.as_ref().is_some_and(|condition| condition.asks_for_the_change)
        {
            let (rule_id, message) = (rule.name.clone(), rule.message.clone());
            open.push(OpenRule { rule_id, policy: policy.name.clone(), version: policy.version, effect: rule.effect, when: when.clone(), message });
            return;
        }
        let failure = match held {
            Ok(false) => return,
            Ok(true) => None,
            Err(why) => Some(why),
        };
        let said = if rule.message.is_empty() { format!("the rule {} applies", rule.name) } else { rule.message.clone() };
        let reason = match &failure {
            None => said,
            Some(why) => format!("{said} (its condition could not be evaluated: {why})"),
        };
        if rule.effect != Effect::Allow {
            self.severity = self.severity.max(Some(rule.severity));
        }
        match rule.effect {
            Effect::Deny => self.reasons.rule("policy", Mode::Deny, &policy.name, policy.version, &rule.name, &reason, rule.alternative.as_deref()),
            Effect::RequireApproval => {
                self.reasons.rule("policy", Mode::Suggest, &policy.name, policy.version, &rule.name, &reason, rule.alternative.as_deref());
                self.needs.add(ready, &policy.name);
            }
            Effect::Allow if rule.waive_trust && failure.is_none() && self.waived_by.is_none() => {
                self.waived_by = Some(format!("rule {} of policy {}", rule.name, policy.name));
            }
            Effect::Allow | Effect::Log | Effect::Redact => {}
        }
        if rule.effect == Effect::Redact {
            self.hidden.push(&rule.paths);
        }
        self.hit(Hit {
            rule_id: rule.name.clone(),
            policy: policy.name.clone(),
            version: policy.version,
            field: None,
            effect: rule.effect,
            severity: rule.severity.name().to_owned(),
            reason,
            alternative: rule.alternative.clone(),
            failed: failure.is_some(),
        });
    }

    /// The desk's own list of fields that always need a person, mapped or not.
    fn high_risk_list(&mut self, change: &Change<'_>) -> bool {
        let within = self.within;
        if within.high_risk.is_empty() {
            return false;
        }
        let mut found: Vec<(u32, u32)> = Vec::new();
        for (path, (full, last, _)) in (0..).zip(change.entries()) {
            within.high_risk.find(full, |number| found.push((number, path)));
            if last.len() != full.len() {
                within.high_risk.find(last, |number| found.push((number, path)));
            }
        }
        if change.over {
            found.push((0, 0));
        }
        found.sort_unstable();
        found.dedup();
        let mut before = None;
        for (number, path) in &found {
            let Some(pattern) = within.settings.authority.high_risk_fields.get(*number as usize) else { continue };
            let field = change.entry(*path as usize).map_or("", |(path, ..)| path);
            let id = format!("global_high_risk_{}", pattern.strip_suffix('*').unwrap_or(pattern));
            let reason = format!("{field} is a field of high risk on this desk");
            if before != Some(number) {
                self.checked += 1;
                before = Some(number);
                self.reasons.rule("high_risk", Mode::Suggest, HIGH_RISK_LIST, 0, &id, &reason, None);
            }
            self.hit(Hit {
                rule_id: id,
                policy: HIGH_RISK_LIST.to_owned(),
                version: 0,
                field: Some(field.to_owned()),
                effect: Effect::RequireApproval,
                severity: "warning".to_owned(),
                reason,
                alternative: None,
                failed: change.over,
            });
        }
        if change.opaque {
            self.opaque_to_the_list();
        }
        change.opaque || !found.is_empty()
    }

    /// A text may change any field, so it counts as touching one of high risk.
    fn opaque_to_the_list(&mut self) {
        let (id, alternative) = ("global_high_risk_opaque", "write the change as JSON, each field with its new value");
        let reason = "the change is a text that cannot be looked into, so it counts as touching a field of high risk";
        self.checked += 1;
        self.reasons.rule("high_risk", Mode::Suggest, HIGH_RISK_LIST, 0, id, reason, Some(alternative));
        self.hit(Hit {
            rule_id: id.to_owned(),
            policy: HIGH_RISK_LIST.to_owned(),
            version: 0,
            field: None,
            effect: Effect::RequireApproval,
            severity: "warning".to_owned(),
            reason: reason.to_owned(),
            alternative: Some(alternative.to_owned()),
            failed: true,
        });
    }

    /// What a request needs; where nobody could ever give it, the answer is no.
    fn needs(&mut self) -> Needs {
        let authority = &self.within.settings.authority;
        let asked = std::mem::take(&mut self.needs);
        let quorum = asked.quorum.unwrap_or(1);
        let approvers = asked.approvers.unwrap_or_default();
        if !asked.named_by.is_empty() && approvers.len() < quorum as usize {
            self.reasons.nobody_can_approve(&asked.named_by, quorum, approvers.len());
        }
        Needs {
            quorum,
            approvers,
            grant_seconds: i64::from(asked.grant_seconds.unwrap_or(authority.grant_seconds)),
            expires_seconds: i64::from(asked.expires_seconds.unwrap_or(authority.request_seconds)),
        }
    }
}

impl Asked {
    fn add(&mut self, ready: &GeneralReady, policy: &str) {
        let rule = &ready.rule;
        self.quorum = self.quorum.max(rule.quorum);
        let least = |held: Option<u32>, new: Option<u32>| held.into_iter().chain(new).min();
        self.grant_seconds = least(self.grant_seconds, rule.grant_seconds);
        self.expires_seconds = least(self.expires_seconds, rule.expires_seconds);
        if rule.approvers.is_empty() {
            return;
        }
        self.named_by.push(format!("{policy}/{}", rule.name));
        let mut named = rule.approvers.clone();
        named.sort_unstable();
        named.dedup();
        self.approvers = Some(match self.approvers.take() {
            None => named,
            Some(held) => held.into_iter().filter(|person| named.contains(person)).collect(),
        });
    }
}

/// What an agent could write instead. Bounds, values and patterns are for people: who learns them from a refusal has only
/// to probe. A rule whose author wants them known says them in its reason.
fn hint(constraint: Constraint) -> Option<&'static str> {
    match constraint {
        Constraint::HighRisk => None,
        Constraint::Readonly => Some("leave this field as it is"),
        Constraint::ValueRange => Some("a number that the rule allows; people know which"),
        Constraint::Enum => Some("a value that the rule allows; people know which"),
        Constraint::Regex => Some("a text of the form that the rule asks for; people know which"),
    }
}

/// What a rule expects instead of a value, if it is violated: what to write, where that can be said. For people.
#[expect(clippy::option_option, reason = "violated or not, and what to write or nothing to say")]
fn violated(ready: &FieldReady, held: &Held<'_>) -> Option<Option<String>> {
    let rule = &ready.rule;
    // What is below a table has paths of its own, which a rule with a wildcard meets as well.
    let only_a_table = *held == Held::Many && rule.field.ends_with('*');
    match rule.constraint {
        Constraint::HighRisk => Some(None),
        Constraint::Readonly => Some(Some("leave this field as it is".to_owned())),
        _ if only_a_table => None,
        Constraint::ValueRange => {
            let number = match held {
                Held::Number(number) => Some(*number),
                Held::Text(text) => text.trim().parse::<f64>().ok(),
                _ => None,
            };
            let fits = number.is_some_and(|number| number.is_finite() && rule.min.is_none_or(|min| number >= min) && rule.max.is_none_or(|max| number <= max));
            (!fits).then(|| {
                Some(match (rule.min, rule.max) {
                    (Some(min), Some(max)) => format!("a number from {min} to {max}"),
                    (Some(min), None) => format!("a number of at least {min}"),
                    (None, Some(max)) => format!("a number of at most {max}"),
                    (None, None) => "a number".to_owned(),
                })
            })
        }
        Constraint::Enum => {
            let values = rule.values.as_deref().unwrap_or_default();
            (!values.iter().any(|value| equal(value, held))).then(|| {
                let shown: Vec<String> = values.iter().take(20).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect();
                Some(format!("one of {}", shown.join(", ")))
            })
        }
        Constraint::Regex => {
            let fits = matches!((held, &ready.regex), (Held::Text(text), Some(regex)) if regex.is_match(text));
            (!fits).then(|| Some(format!("a text that {} matches", rule.pattern.as_deref().unwrap_or_default())))
        }
    }
}

fn equal(value: &serde_json::Value, held: &Held<'_>) -> bool {
    match held {
        Held::Text(text) => value.as_str() == Some(&**text),
        Held::Bool(flag) => value.as_bool() == Some(*flag),
        Held::Null => value.is_null(),
        #[expect(clippy::float_cmp, reason = "a listed number is met exactly or not at all")]
        Held::Number(number) => value.as_f64().is_some_and(|listed| listed == *number),
        Held::Missing | Held::Many => false,
    }
}

fn default_reason(constraint: Constraint, field: &str, held: &Held<'_>) -> String {
    match constraint {
        Constraint::HighRisk => format!("{field} is a field of high risk"),
        Constraint::Readonly => format!("{field} must not be changed"),
        Constraint::ValueRange | Constraint::Enum | Constraint::Regex => match held {
            Held::Missing => format!("the value of {field} is missing"),
            held @ (Held::Many | Held::Null | Held::Bool(_)) => format!("the value of {field} is {}", held.what()),
            Held::Number(_) | Held::Text(_) => format!("the value of {field} is not allowed"),
        },
    }
}

/// How much is at stake.
fn risk(mode: Mode, high_risk_field: bool, severity: Option<Severity>, act: &Act) -> &'static str {
    match severity {
        Some(Severity::Critical) => "critical",
        Some(Severity::High) => "high",
        _ if mode == Mode::Deny || high_risk_field => "high",
        Some(Severity::Warning) => "medium",
        _ if !act.taint.is_empty() => "medium",
        _ => "low",
    }
}
