//! Everything in force, compiled once for each content and shared.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use cel::Env;
use regex::Regex;

use super::attached::Attached;
use super::condition::{Condition, environment, regex};
use super::index::{Matches, Patterns};
use super::model::{DEFAULT_POLICY, FieldRule, GLOBAL_POLICY, GeneralRule, Mapping, Parts, Policy, PolicyMode, Rule};
use super::store::Content;
use super::{COUNTERS, Problem, Settings, rules};
use crate::hook::{self, HOOK_POLICY};
use crate::{Result, digest};

/// Everything in force, ready to decide with.
pub struct Rulebook {
    digest: String,
    parts: Parts,
    versions: BTreeMap<String, i64>,
    policies: Vec<Compiled>,
    by_name: BTreeMap<String, u32>,
    default: u32,
    starter: u32,
    pub(super) global: Option<u32>,
    agents: Patterns,
    domains_of: Vec<Patterns>,
    settings: Vec<InDomain>,
    settings_by: Patterns,
    pub(super) env: Arc<Env>,
    pub(super) patterns: Arc<HashMap<String, Regex>>,
    asked: BTreeSet<&'static str>,
}

impl fmt::Debug for Rulebook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rulebook").field("digest", &self.digest).field("policies", &self.policies.len()).finish_non_exhaustive()
    }
}

/// The settings of a domain.
#[derive(Debug, Default)]
pub(super) struct InDomain {
    pub(super) settings: Settings,
    /// The numbers are positions in `high_risk_fields`.
    pub(super) high_risk: Patterns,
}

impl InDomain {
    fn new(settings: Settings) -> Self {
        let mut high_risk = Patterns::default();
        for (number, field) in (0..).zip(&settings.authority.high_risk_fields) {
            high_risk.add(field, number);
        }
        Self { settings, high_risk }
    }
}

/// A policy, compiled.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    pub(super) name: String,
    pub(super) version: i64,
    pub(super) rules: Vec<Ready>,
    /// Rules about fields, by the field.
    pub(super) fields: Patterns,
    /// General rules, by what they match.
    pub(super) matches: Matches,
}

/// A rule, compiled.
#[derive(Debug)]
pub(super) enum Ready {
    Field(FieldReady),
    General(Box<GeneralReady>),
}

#[derive(Debug)]
pub(super) struct FieldReady {
    pub(super) id: String,
    pub(super) rule: FieldRule,
    pub(super) regex: Option<Regex>,
}

#[derive(Debug)]
pub(super) struct GeneralReady {
    pub(super) rule: GeneralRule,
    pub(super) condition: Option<Condition>,
}

impl Compiled {
    pub(super) fn new(policy: &Policy, version: i64) -> Result<Self, String> {
        let mut compiled = Self { name: policy.id.clone(), version, ..Self::default() };
        for (number, rule) in (0..).zip(&policy.rules) {
            compiled.rules.push(match rule {
                Rule::Field(field) => {
                    compiled.fields.add(&field.field, number);
                    let regex = field.pattern.as_deref().map(regex).transpose()?;
                    Ready::Field(FieldReady { id: rules::rule_id(rule), rule: field.clone(), regex })
                }
                Rule::General(general) => {
                    let compile =
                        |when: &str| Condition::compile(when).map_err(|faults| faults.into_iter().next().map_or_else(String::new, |fault| fault.message));
                    let condition = general.when.as_deref().map(compile).transpose()?;
                    Ready::General(Box::new(GeneralReady { rule: (**general).clone(), condition }))
                }
            });
        }
        compiled.matches = Matches::new(compiled.rules.iter().map(|rule| match rule {
            Ready::Field(_) => None,
            Ready::General(general) => Some(&general.rule.matches),
        }))?;
        Ok(compiled)
    }

    /// A policy that is in force but cannot be read denies whatever it would have been asked about.
    pub(super) fn unreadable(name: &str, version: i64, why: &str) -> Self {
        let rule = GeneralRule {
            name: "unreadable_policy".to_owned(),
            matches: super::Match::default(),
            when: None,
            effect: super::Effect::Deny,
            approvers: Vec::new(),
            quorum: None,
            grant_seconds: None,
            expires_seconds: None,
            paths: Vec::new(),
            severity: super::Severity::Critical,
            message: format!("the policy {name} is in force but cannot be read: {why}"),
            alternative: None,
            waive_trust: false,
        };
        let rules = vec![Ready::General(Box::new(GeneralReady { rule, condition: None }))];
        let matches = Matches::new(std::iter::once(Some(&super::Match::default()))).unwrap_or_default();
        Self { name: name.to_owned(), version, rules, fields: Patterns::default(), matches }
    }
}

/// What was stored, with what of it cannot be read.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) digest: String,
    pub(super) parts: Parts,
    pub(super) versions: BTreeMap<String, i64>,
    /// Policies whose rows cannot be read, and why.
    pub(super) unreadable: BTreeMap<String, String>,
}

impl Rulebook {
    /// Compiles a draft; every problem is named. `versions` are those of the policies; one without has version 0.
    pub fn compile(parts: Parts, versions: BTreeMap<String, i64>) -> Result<Self, Vec<Problem>> {
        let problems = rules::parts(&parts);
        if !problems.is_empty() {
            return Err(problems);
        }
        let whole = |message: String| vec![Problem { line: 0, column: 0, path: String::new(), message }];
        let digest = Content::of(&parts, &versions).and_then(|content| content.digest()).map_err(|error| whole(error.to_string()))?;
        Self::assemble(Loaded { digest, parts, versions, unreadable: BTreeMap::new() }, true).map_err(whole)
    }

    /// Compiles what is stored. A policy that cannot be compiled denies.
    pub(super) fn stored(loaded: Loaded) -> Result<Self, String> {
        Self::assemble(loaded, false)
    }

    fn assemble(loaded: Loaded, strict: bool) -> Result<Self, String> {
        let Loaded { digest, parts, versions, unreadable } = loaded;
        let version = |name: &str| versions.get(name).copied().unwrap_or(0);
        let mut policies = Vec::new();
        let mut by_name = BTreeMap::new();
        let mut add = |name: &str, compiled: Compiled| {
            let number = u32::try_from(policies.len()).unwrap_or(u32::MAX);
            policies.push(compiled);
            by_name.insert(name.to_owned(), number);
        };
        for (name, policy) in &parts.policies {
            let compiled = match Compiled::new(policy, version(name)) {
                Err(why) if !strict => Compiled::unreadable(name, version(name), &why),
                compiled => compiled?,
            };
            add(name, compiled);
        }
        for (name, why) in &unreadable {
            add(name, Compiled::unreadable(name, version(name), why));
        }
        for name in parts.mappings.iter().map(|mapping| mapping.policy.as_str()).collect::<BTreeSet<_>>() {
            if name != DEFAULT_POLICY && name != HOOK_POLICY && !parts.policies.contains_key(name) && !unreadable.contains_key(name) {
                add(name, Compiled::unreadable(name, 0, "it does not exist"));
            }
        }
        if !parts.policies.contains_key(DEFAULT_POLICY) && !unreadable.contains_key(DEFAULT_POLICY) {
            add(DEFAULT_POLICY, Compiled { name: DEFAULT_POLICY.to_owned(), ..Compiled::default() });
        }
        if !parts.policies.contains_key(HOOK_POLICY) && !unreadable.contains_key(HOOK_POLICY) {
            let built_in = hook::starter().map_err(str::to_owned).and_then(|policy| Compiled::new(policy, 0));
            add(HOOK_POLICY, built_in.unwrap_or_else(|why| Compiled::unreadable(HOOK_POLICY, 0, &why)));
        }
        let default = by_name.get(DEFAULT_POLICY).copied().unwrap_or(0);
        let starter = by_name.get(HOOK_POLICY).copied().unwrap_or(0);
        let (agents, domains_of) = index_mappings(&parts, &by_name);
        let (settings, settings_by) = settle(&parts)?;
        let mut patterns = HashMap::new();
        let mut asked = BTreeSet::new();
        let conditions = policies.iter().flat_map(|policy| &policy.rules).filter_map(|rule| match rule {
            Ready::General(general) => general.condition.as_ref(),
            Ready::Field(_) => None,
        });
        for condition in conditions {
            asked.extend(&condition.variables);
            for pattern in &condition.patterns {
                patterns.insert(pattern.clone(), regex(pattern)?);
            }
        }
        let global = by_name.get(GLOBAL_POLICY).copied();
        let (env, patterns) = (environment(), Arc::new(patterns));
        Ok(Self { digest, parts, versions, policies, by_name, default, starter, global, agents, domains_of, settings, settings_by, env, patterns, asked })
    }

    /// The digest of everything in force, versions included.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What it was compiled from.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The versions of the policies.
    pub fn versions(&self) -> &BTreeMap<String, i64> {
        &self.versions
    }

    /// A policy by its name, and its version. The built-in default is not among them until somebody writes one.
    pub fn policy(&self, name: &str) -> Option<(&Policy, i64)> {
        self.parts.policies.get(name).map(|policy| (policy, self.versions.get(name).copied().unwrap_or(0)))
    }

    /// The settings that hold in a domain.
    pub fn settings(&self, domain: &str) -> &Settings {
        &self.in_domain(domain).settings
    }

    /// The names of the policies that a mapping gives an agent in a domain; `None` if no mapping names them.
    pub fn mapped(&self, agent: &str, domain: &str) -> Option<Vec<&str>> {
        let numbers = self.mapped_numbers(agent, domain)?;
        Some(numbers.iter().filter_map(|number| self.compiled(*number)).map(|policy| policy.name.as_str()).collect())
    }

    /// Whether the desk's own list calls a field high-risk in a domain.
    pub fn is_high_risk(&self, domain: &str, field: &str) -> bool {
        let last = field.rsplit('.').next().unwrap_or(field);
        let high_risk = &self.in_domain(domain).high_risk;
        high_risk.fits(field) || high_risk.fits(last)
    }

    /// Whether any condition asks for a variable, such as `counters.calls_minute`; what nobody asks for need not be read.
    pub fn asks_for(&self, variable: &str) -> bool {
        self.asked.contains(variable)
    }

    /// Whether any condition asks what an agent used up.
    pub fn asks_for_counters(&self) -> bool {
        self.asked.iter().any(|variable| variable.starts_with(COUNTERS))
    }

    pub(super) fn in_domain(&self, domain: &str) -> &InDomain {
        let number = self.settings_by.best(domain).and_then(|(_, numbers)| numbers.first().copied()).unwrap_or(0);
        // The first is always there: it holds what is true for the whole desk.
        self.settings.get(number as usize).unwrap_or(&EMERGENCY)
    }

    pub(super) fn compiled(&self, number: u32) -> Option<&Compiled> {
        self.policies.get(number as usize)
    }

    pub(super) fn number_of(&self, policy: &str) -> Option<u32> {
        self.by_name.get(policy).copied()
    }

    /// Exact agents before prefixes, longer prefixes before shorter ones, and for each the same with domains.
    pub(super) fn mapped_numbers(&self, agent: &str, domain: &str) -> Option<&[u32]> {
        let mut found = None;
        self.agents.find(agent, |number| {
            if found.is_none() {
                found = self.domains_of.get(number as usize).and_then(|domains| domains.best(domain)).map(|(_, numbers)| numbers);
            }
        });
        found
    }

    /// The policies for an agent in a domain, and whether a mapping names them. Nothing at all means: hold it. In the domains
    /// of agents' own tools the starter policy holds as well, unless a mapping names that domain and not just all.
    pub(super) fn applied(&self, agent: &str, domain: &str) -> (bool, Cow<'_, [u32]>) {
        let (mapped, numbers) = match self.mapped_numbers(agent, domain) {
            Some(numbers) => (true, numbers),
            None if self.parts.mappings.is_empty() || self.parts.mode == PolicyMode::Permissive => (false, std::slice::from_ref(&self.default)),
            None => (false, &[][..]),
        };
        if !hook::is_for(domain) || numbers.contains(&self.starter) {
            return (mapped, Cow::Borrowed(numbers));
        }
        let is_applied = |mapping: &&Mapping| numbers.iter().any(|number| self.is_called(*number, &mapping.policy));
        if mapped && self.parts.mappings.iter().filter(is_applied).any(|mapping| covers(mapping, agent, domain)) {
            return (mapped, Cow::Borrowed(numbers));
        }
        (mapped, Cow::Owned([numbers, &[self.starter]].concat()))
    }

    fn is_called(&self, number: u32, name: &str) -> bool {
        self.compiled(number).is_some_and(|policy| policy.name == name)
    }
}

/// Whether a mapping is for an agent, and names a domain of agents' own tools and not just all.
fn covers(mapping: &Mapping, agent: &str, domain: &str) -> bool {
    let fits = |pattern: &str, name: &str| pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix));
    fits(&mapping.agent, agent) && fits(&mapping.domain, domain) && hook::is_named_by(&mapping.domain)
}

/// Settings for a rulebook without any: the defaults, which hold agents to what a new one may do.
static EMERGENCY: std::sync::LazyLock<InDomain> = std::sync::LazyLock::new(|| InDomain::new(Settings::default()));

fn index_mappings(parts: &Parts, by_name: &BTreeMap<String, u32>) -> (Patterns, Vec<Patterns>) {
    let mut agents = Patterns::default();
    let mut domains_of: Vec<Patterns> = Vec::new();
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    // The set is in order, so the policies of a pair come in the order of their names.
    for mapping in &parts.mappings {
        let number = *numbers.entry(&mapping.agent).or_insert_with(|| {
            let number = u32::try_from(domains_of.len()).unwrap_or(u32::MAX);
            agents.add(&mapping.agent, number);
            domains_of.push(Patterns::default());
            number
        });
        if let (Some(domains), Some(policy)) = (domains_of.get_mut(number as usize), by_name.get(&mapping.policy)) {
            domains.add(&mapping.domain, *policy);
        }
    }
    (agents, domains_of)
}

/// The settings of the desk, and of every domain that has some of its own: first the desk's, then those of shorter
/// patterns, then of longer ones, then its own.
fn settle(parts: &Parts) -> Result<(Vec<InDomain>, Patterns), String> {
    let apply = |mut settings: Settings, domain: &str| -> Result<Settings, String> {
        for (section, patch) in parts.settings.get(domain).into_iter().flatten() {
            settings = settings.patched(*section, patch)?;
        }
        Ok(settings)
    };
    let desk = apply(Settings::default(), "")?;
    let mut all = vec![InDomain::new(desk.clone())];
    let mut by = Patterns::default();
    for domain in parts.settings.keys().filter(|domain| !domain.is_empty()) {
        let covers = |other: &&String| other.strip_suffix('*').is_some_and(|prefix| domain.starts_with(prefix) && *other != domain);
        let mut wider: Vec<&String> = parts.settings.keys().filter(covers).collect();
        wider.sort_by_key(|pattern| pattern.len());
        let mut settings = desk.clone();
        for pattern in wider.into_iter().chain([domain]) {
            settings = apply(settings, pattern)?;
        }
        by.add(domain, u32::try_from(all.len()).unwrap_or(0));
        all.push(InDomain::new(settings));
    }
    Ok((all, by))
}

/// The rulebook that was used last, and the policies of single agents that were read beside it. Both are known by the digests of
/// their content, so they can be old but never wrong.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    last: Arc<RwLock<Option<Arc<Rulebook>>>>,
    attached: Arc<RwLock<AttachedByDigest>>,
    /// The same by the digest of the policies alone: many agents have the same ones, and compiling them takes long.
    shared: Arc<RwLock<AttachedByDigest>>,
}

/// By a digest, with that of the rulebook that they were read beside.
type AttachedByDigest = HashMap<Vec<u8>, (String, Option<Arc<Attached>>)>;

/// For how many agents their own policies are held ready.
const ATTACHED_HELD: usize = 1_000;

/// What is held under a key beside this rulebook, or what is read now and held from now on.
fn held(
    all: &RwLock<AttachedByDigest>,
    key: &[u8],
    rulebook: &Rulebook,
    read: impl FnOnce() -> Result<Option<Arc<Attached>>>,
) -> Result<Option<Arc<Attached>>> {
    let held = all.read().unwrap_or_else(PoisonError::into_inner).get(key).filter(|(beside, _)| *beside == rulebook.digest()).cloned();
    if let Some((_, attached)) = held {
        return Ok(attached);
    }
    let attached = read()?;
    let mut all = all.write().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= ATTACHED_HELD {
        all.clear();
    }
    all.insert(key.to_vec(), (rulebook.digest().to_owned(), attached.clone()));
    Ok(attached)
}

impl Cache {
    /// The policies of an agent with this definition, read beside this rulebook: as they were held, or as they are read now.
    pub(crate) fn attached(
        &self,
        definition: &[u8],
        rulebook: &Rulebook,
        read: impl FnOnce() -> Result<Option<Arc<Attached>>>,
    ) -> Result<Option<Arc<Attached>>> {
        held(&self.attached, definition, rulebook, read)
    }

    /// These policies with their versions, ready to decide with beside this rulebook; `None` if there are none.
    pub(crate) fn compiled(&self, policies: &[(Policy, i64)], rulebook: &Rulebook) -> Result<Option<Arc<Attached>>> {
        if policies.is_empty() {
            return Ok(None);
        }
        let key = digest(&policies)?;
        held(&self.shared, &key, rulebook, || Ok(Some(Arc::new(Attached::compile(rulebook, policies)))))
    }

    pub(super) fn get(&self, digest: &str) -> Option<Arc<Rulebook>> {
        let held = self.last.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().filter(|rulebook| rulebook.digest() == digest).map(Arc::clone)
    }

    pub(super) fn put(&self, rulebook: &Arc<Rulebook>) {
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(rulebook));
    }
}
