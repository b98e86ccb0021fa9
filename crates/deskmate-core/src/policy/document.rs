//! The text that people write, read strictly: every problem is named with its line, its column and what to write.

use std::collections::{BTreeMap, BTreeSet};

use serde_saphyr::Location;

use super::cases::{act_of, counters_of};
use super::condition::Condition;
use super::model::{Case, Constraint, FieldRule, GLOBAL_POLICY, GeneralRule, Mapping, Match, Parts, Patch, Policy, PolicyMode, Rule, Section, Severity};
use super::rules::{self, ENTRIES_MAX, PATTERN_BYTES_MAX, SECONDS_MAX};
use super::yaml::{self, Node, Reader, Table, Yaml, below, short};
use super::{Effect, Mode, Problem, settings};
use crate::limits::{CONDITION_CHARS_MAX, MAPPINGS_MAX, NAME_CHARS_MAX, POLICIES_MAX, POLICY_TEXT_BYTES_MAX, RULES_MAX, TITLE_CHARS_MAX};

/// The sections of a text. What is `None` was not written, and stays as it is in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// `policies`, without the rules for everybody.
    pub policies: Option<BTreeMap<String, Policy>>,
    /// `rules`: those for everybody, as the policy `global`, with their cases in `tests`.
    pub global: Option<Policy>,
    /// `mappings`.
    pub mappings: Option<Vec<Mapping>>,
    /// `trust`, `authority`, `feedback`, `handoff` and `governance`, as far as they were written.
    pub desk: BTreeMap<Section, Patch>,
    /// `domains`.
    pub domains: Option<BTreeMap<String, BTreeMap<Section, Patch>>>,
    /// `policy_mode`.
    pub mode: Option<PolicyMode>,
}

const EFFECTS: [(&str, Effect); 5] =
    [("allow", Effect::Allow), ("deny", Effect::Deny), ("require_approval", Effect::RequireApproval), ("log", Effect::Log), ("redact", Effect::Redact)];
const CONSTRAINTS: [(&str, Constraint); 5] = [
    ("high_risk", Constraint::HighRisk),
    ("readonly", Constraint::Readonly),
    ("value_range", Constraint::ValueRange),
    ("enum", Constraint::Enum),
    ("regex", Constraint::Regex),
];
const SEVERITIES: [(&str, Severity); 4] =
    [("info", Severity::Info), ("warning", Severity::Warning), ("high", Severity::High), ("critical", Severity::Critical)];
const MODES: [(&str, Mode); 4] = [("act", Mode::Act), ("suggest", Mode::Suggest), ("escalate", Mode::Escalate), ("deny", Mode::Deny)];

impl Document {
    /// Reads a text that has only these sections.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        Self::parse_within(text, &[])
    }

    /// Reads these sections of a text in which `others` are keys of somebody else.
    pub fn parse_within(text: &str, others: &[&str]) -> Result<Self, Vec<Problem>> {
        let whole = |message: String| vec![Problem { line: 1, column: 1, path: String::new(), message }];
        if text.len() > POLICY_TEXT_BYTES_MAX {
            return Err(whole(format!("the text is {} bytes long: write at most {POLICY_TEXT_BYTES_MAX}", text.len())));
        }
        let root = yaml::parse(text).map_err(|problem| vec![problem])?;
        let mut reader = Reader::new(text);
        let document = reader.document(&root, others).unwrap_or_default();
        if reader.problems.is_empty() {
            return Ok(document);
        }
        let mut problems = reader.problems;
        problems.sort_by_key(|problem| (problem.line, problem.column));
        Err(problems)
    }

    /// What would be in force: the sections that were written in place of those of `current`.
    #[must_use]
    pub fn over(&self, current: &Parts) -> Parts {
        let mut parts = current.clone();
        let held = parts.policies.remove(GLOBAL_POLICY);
        let global = self.global.clone().or(held);
        if let Some(policies) = &self.policies {
            parts.policies.clone_from(policies);
        }
        // No rules for everybody are not a policy.
        parts.policies.extend(global.filter(|global| !global.rules.is_empty()).map(|global| (GLOBAL_POLICY.to_owned(), global)));
        if let Some(mappings) = &self.mappings {
            parts.mappings = mappings.iter().cloned().collect();
        }
        if let Some(domains) = &self.domains {
            parts.settings.retain(|domain, _| domain.is_empty());
            parts.settings.extend(domains.clone());
        }
        for (section, patch) in &self.desk {
            parts.settings.entry(String::new()).or_default().insert(*section, patch.clone());
        }
        parts.tidy();
        if let Some(mode) = self.mode {
            parts.mode = mode;
        }
        parts
    }
}

impl Reader<'_> {
    fn document(&mut self, root: &Node, others: &[&str]) -> Option<Document> {
        let mut table = self.table(root, "")?;
        let mut document = Document::default();
        if let Some(node) = table.get("policies") {
            document.policies = Some(self.policies(node));
        }
        document.global = self.global(&mut table);
        if let Some(node) = table.get("mappings") {
            document.mappings = Some(self.mappings(node, document.policies.as_ref()));
        }
        if let Some(node) = table.get("policy_mode") {
            document.mode = self.word(node, "policy_mode", &[("strict", PolicyMode::Strict), ("permissive", PolicyMode::Permissive)]);
        }
        document.desk = self.sections(&mut table, Section::ALL.into_iter());
        if let Some(node) = table.get("domains") {
            document.domains = Some(self.domains(node));
        }
        self.finish_but(&table, others);
        Some(document)
    }

    /// The rules for everybody and the cases beside them. Cases alone would test rules that somebody else wrote.
    fn global(&mut self, table: &mut Table<'_>) -> Option<Policy> {
        let (rules, tests) = (table.get("rules"), table.get("tests"));
        if let Some(node) = tests
            && rules.is_none_or(|rules| matches!(&rules.value, Yaml::List(list) if list.is_empty()))
        {
            self.problem(node.at, "tests", "cases here are for the rules for everybody: write those under `rules`, or the cases beside their policy");
        }
        let tests = tests.map(|node| self.cases(node, "tests")).unwrap_or_default();
        let rules = self.rules(rules?, "rules");
        Some(Policy { id: GLOBAL_POLICY.to_owned(), description: "The rules for everybody.".to_owned(), rules, tests, ..Policy::default() })
    }

    fn policies(&mut self, node: &Node) -> BTreeMap<String, Policy> {
        let mut policies = BTreeMap::new();
        let Some(list) = self.list(node, "policies") else { return policies };
        if list.len() > POLICIES_MAX {
            self.problem(node.at, "policies", format!("{} policies are too many: write at most {POLICIES_MAX}", list.len()));
            return policies;
        }
        for (number, entry) in list.iter().enumerate() {
            let path = format!("policies[{number}]");
            let Some((at, policy)) = self.policy(entry, &path) else { continue };
            if policy.id == GLOBAL_POLICY {
                self.problem(at, &format!("{path}.id"), "rules for everybody are not a policy of their own: write them under `rules` at the top");
            } else if policies.contains_key(&policy.id) {
                self.problem(at, &format!("{path}.id"), format!("the id `{}` is taken by another policy: choose another one", short(&policy.id)));
            } else {
                policies.insert(policy.id.clone(), policy);
            }
        }
        policies
    }

    fn policy(&mut self, node: &Node, path: &str) -> Option<(Location, Policy)> {
        let mut table = self.table(node, path)?;
        let id = self.need_text(&mut table, "id", NAME_CHARS_MAX, "crm-write").map(str::to_owned);
        let at = table.get("id").map_or(table.at, |node| node.at);
        if let Some(problem) = id.as_deref().and_then(rules::name_problem) {
            self.problem(at, &table.at("id"), problem);
        }
        let description = self.text(&mut table, "description", 4 * TITLE_CHARS_MAX).unwrap_or_default().to_owned();
        let category = self.text(&mut table, "category", NAME_CHARS_MAX).map(str::to_owned);
        let framework = self.text(&mut table, "framework", NAME_CHARS_MAX).map(str::to_owned);
        let rules = match table.get("rules") {
            Some(node) => self.rules(node, &table.at("rules")),
            None => Vec::new(),
        };
        let tests = match table.get("tests") {
            Some(node) => self.cases(node, &table.at("tests")),
            None => Vec::new(),
        };
        self.finish(&table);
        Some((at, Policy { id: id?, description, category, framework, rules, tests }))
    }

    pub(super) fn rules(&mut self, node: &Node, path: &str) -> Vec<Rule> {
        let Some(list) = self.list(node, path) else { return Vec::new() };
        if list.len() > RULES_MAX {
            self.problem(node.at, path, format!("{} rules are too many: write at most {RULES_MAX}", list.len()));
            return Vec::new();
        }
        let mut names = BTreeSet::new();
        let mut rules = Vec::new();
        for (number, entry) in list.iter().enumerate() {
            let path = format!("{path}[{number}]");
            let Some(rule) = self.rule(entry, &path) else { continue };
            if let Rule::General(general) = &rule
                && !names.insert(general.name.clone())
            {
                self.problem(
                    entry.at,
                    &format!("{path}.name"),
                    format!("the name `{}` is taken by another rule here: choose another one", short(&general.name)),
                );
            }
            rules.push(rule);
        }
        rules
    }

    fn rule(&mut self, node: &Node, path: &str) -> Option<Rule> {
        let table = self.table(node, path)?;
        if table.has("field") || table.has("constraint") {
            self.field_rule(table).map(Rule::Field)
        } else {
            self.general_rule(table).map(|rule| Rule::General(Box::new(rule)))
        }
    }

    fn field_rule(&mut self, mut table: Table<'_>) -> Option<FieldRule> {
        let field = self.need_text(&mut table, "field", NAME_CHARS_MAX, "billing_*").map(str::to_owned);
        let constraint = if let Some(node) = table.get("constraint") {
            self.word(node, &table.at("constraint"), &CONSTRAINTS)
        } else {
            self.missing(&table, "constraint", "readonly");
            None
        };
        let reason = self.text(&mut table, "reason", TITLE_CHARS_MAX).unwrap_or_default().to_owned();
        let bound = f64::from(u32::MAX) * f64::from(1 << 21);
        let number = |reader: &mut Self, table: &mut Table<'_>, key| {
            let path = table.at(key);
            table.get(key).and_then(|node| reader.number(node, &path, -bound, bound))
        };
        let (min, max) = (number(self, &mut table, "min"), number(self, &mut table, "max"));
        let values = table.get("values").and_then(|node| {
            let path = table.at("values");
            let list = self.list(node, &path)?;
            list.iter().enumerate().map(|(number, entry)| self.json(entry, &format!("{path}[{number}]"))).collect::<Option<Vec<_>>>()
        });
        let pattern = self.text(&mut table, "pattern", PATTERN_BYTES_MAX).map(str::to_owned);
        self.finish(&table);
        let rule = FieldRule { field: field?, constraint: constraint?, reason, min, max, values, pattern };
        // A value that could not be read was named already, and is not missing as well.
        let unread = |key: &str| table.has(key) && matches!(key, "min" | "max" | "values" | "pattern");
        let half_read = (unread("values") && rule.values.is_none())
            || (unread("pattern") && rule.pattern.is_none())
            || (unread("min") && rule.min.is_none())
            || (unread("max") && rule.max.is_none());
        if !half_read {
            self.wrong(&table, rules::field_rule(&rule));
        }
        Some(rule)
    }

    fn general_rule(&mut self, mut table: Table<'_>) -> Option<GeneralRule> {
        let name = self.need_text(&mut table, "name", NAME_CHARS_MAX, "no_drop_table").map(str::to_owned);
        let effect = if let Some(node) = table.get("effect") {
            self.word(node, &table.at("effect"), &EFFECTS)
        } else {
            self.missing(&table, "effect", "require_approval");
            None
        };
        let matches = match table.get("match") {
            Some(node) => self.matches(node, &table.at("match")).unwrap_or_default(),
            None => Match::default(),
        };
        let when = table.get("when").and_then(|node| self.condition(node, &table.at("when")));
        let approvers = self.texts_at(&mut table, "approvers", NAME_CHARS_MAX);
        let count = |reader: &mut Self, table: &mut Table<'_>, key, max| {
            let path = table.at(key);
            table.get(key).and_then(|node| reader.count(node, &path, 1, max))
        };
        let quorum = count(self, &mut table, "quorum", 50);
        let grant_seconds = count(self, &mut table, "grant_seconds", SECONDS_MAX);
        let expires_seconds = count(self, &mut table, "expires_seconds", SECONDS_MAX);
        let paths = self.texts_at(&mut table, "paths", NAME_CHARS_MAX).iter().map(|path| pointed(path)).collect();
        let severity = table.get("severity").and_then(|node| self.word(node, &table.at("severity"), &SEVERITIES)).unwrap_or_default();
        let message = self.text(&mut table, "message", TITLE_CHARS_MAX).unwrap_or_default().to_owned();
        let alternative = self.text(&mut table, "alternative", TITLE_CHARS_MAX).map(str::to_owned);
        let waive_trust = table.get("waive_trust").and_then(|node| self.flag(node, &table.at("waive_trust"))).unwrap_or_default();
        self.finish(&table);
        let rule = GeneralRule {
            name: name?,
            matches,
            when,
            effect: effect?,
            approvers,
            quorum,
            grant_seconds,
            expires_seconds,
            paths,
            severity,
            message,
            alternative,
            waive_trust,
        };
        self.wrong(&table, rules::general_rule(&rule));
        Some(rule)
    }

    /// Notes what is wrong with a rule at the keys that it is about.
    fn wrong(&mut self, table: &Table<'_>, wrong: Vec<rules::Wrong>) {
        for (key, message) in wrong {
            let at = table.entries().iter().find(|(name, _)| name.name == key).map_or(table.at, |(_, node)| node.at);
            self.problem(at, &table.at(key), message);
        }
    }

    fn texts_at(&mut self, table: &mut Table<'_>, key: &'static str, max: usize) -> Vec<String> {
        let path = table.at(key);
        let texts = table.get(key).map(|node| self.texts(node, &path, max, ENTRIES_MAX)).unwrap_or_default();
        texts.into_iter().map(|(text, _)| text).collect()
    }

    fn matches(&mut self, node: &Node, path: &str) -> Option<Match> {
        let mut table = self.table(node, path)?;
        let mut patterns = |reader: &mut Self, key| reader.texts_at(&mut table, key, PATTERN_BYTES_MAX);
        let matches = Match {
            kind: patterns(self, "kind"),
            tool: patterns(self, "tool"),
            domain: patterns(self, "domain"),
            agent: patterns(self, "agent"),
            environment: patterns(self, "environment"),
        };
        self.finish(&table);
        Some(matches)
    }

    /// A condition; what is wrong with it is placed in the text.
    fn condition(&mut self, node: &Node, path: &str) -> Option<String> {
        let source = match &node.value {
            // `when: true` is a condition as well.
            Yaml::Bool(value) => value.to_string(),
            _ => self.text_of(node, path, 4 * CONDITION_CHARS_MAX)?.to_owned(),
        };
        if let Err(faults) = Condition::compile(&source) {
            for fault in faults {
                let (line, column) = place(self.text, node.at, &source, fault.before);
                self.problem_at(line, column, path, fault.message);
            }
            return None;
        }
        Some(source)
    }

    pub(super) fn cases(&mut self, node: &Node, path: &str) -> Vec<Case> {
        let Some(list) = self.list(node, path) else { return Vec::new() };
        if list.len() > RULES_MAX {
            self.problem(node.at, path, format!("{} tests are too many: write at most {RULES_MAX}", list.len()));
            return Vec::new();
        }
        list.iter().enumerate().filter_map(|(number, entry)| self.case(entry, &format!("{path}[{number}]"))).collect()
    }

    fn case(&mut self, node: &Node, path: &str) -> Option<Case> {
        let mut table = self.table(node, path)?;
        let name = self.need_text(&mut table, "name", TITLE_CHARS_MAX, "a small amount passes").map(str::to_owned);
        let act = if let Some(node) = table.get("act") {
            self.json_table(node, &table.at("act"))
        } else {
            self.missing(&table, "act", "{ domain: crm.deals, arguments: { amount: 5 } }");
            None
        };
        let agent = self.text(&mut table, "agent", NAME_CHARS_MAX).map(str::to_owned);
        let trust = table.get("trust").and_then(|node| self.number(node, &table.at("trust"), 0.0, 1.0));
        let counters = table.get("counters").and_then(|node| self.json_table(node, &table.at("counters"))).unwrap_or_default();
        let now = self.text(&mut table, "now", 64).map(str::to_owned);
        if let Some(at) = now.as_deref().and_then(|now| crate::parse_time("now", now).err()).and(table.get("now")) {
            self.problem(at.at, &below(path, "now"), "this is not a time: write for example 2026-11-15T09:30:00Z");
        }
        let mode = table.get("mode").and_then(|node| self.word(node, &table.at("mode"), &MODES));
        let hits = table.get("hits").map(|node| self.texts(node, &below(path, "hits"), 2 * NAME_CHARS_MAX, ENTRIES_MAX));
        let hits = hits.map(|hits| hits.into_iter().map(|(text, _)| text).collect());
        if !table.has("mode") && !table.has("hits") {
            self.problem(table.at, path, "this case expects nothing: write `mode`, `hits` or both");
        }
        self.finish(&table);
        let case = Case { name: name?, act: act?, agent, trust, counters, now, mode, hits };
        if let Err(message) = act_of(&case) {
            self.problem(table.at, &below(path, "act"), message);
        }
        if let Err(message) = counters_of(&case) {
            self.problem(table.at, &below(path, "counters"), message);
        }
        Some(case)
    }

    fn mappings(&mut self, node: &Node, policies: Option<&BTreeMap<String, Policy>>) -> Vec<Mapping> {
        let Some(list) = self.list(node, "mappings") else { return Vec::new() };
        if list.len() > MAPPINGS_MAX {
            self.problem(node.at, "mappings", format!("{} mappings are too many: write at most {MAPPINGS_MAX}", list.len()));
            return Vec::new();
        }
        let mut mappings = Vec::new();
        let mut seen = BTreeSet::new();
        for (number, entry) in list.iter().enumerate() {
            let path = format!("mappings[{number}]");
            let Some(mut table) = self.table(entry, &path) else { continue };
            let agent = self.either(&mut table, ["agent_id", "agent"], "sales-agent");
            let domain = self.need_text(&mut table, "domain", NAME_CHARS_MAX, "crm.*").map(str::to_owned);
            let policy = self.either(&mut table, ["policy_id", "policy"], "crm-write");
            self.finish(&table);
            let (Some(agent), Some(domain), Some(policy)) = (agent, domain, policy) else { continue };
            let mapping = Mapping { agent, domain, policy };
            for (key, message) in rules::mapping(&mapping, |name| policies.is_none_or(|policies| policies.contains_key(name))) {
                let is = |name: &str| name == key || name.strip_suffix("_id") == Some(key);
                let at = table.entries().iter().find(|(name, _)| is(&name.name)).map_or(table.at, |(_, node)| node.at);
                self.problem(at, &below(&path, key), message);
            }
            if !seen.insert(mapping.clone()) {
                self.problem(entry.at, &path, "this mapping is there already: leave it out");
            }
            mappings.push(mapping);
        }
        mappings
    }

    /// A text under one of two names.
    fn either(&mut self, table: &mut Table<'_>, [first, second]: [&'static str; 2], example: &str) -> Option<String> {
        let (one, other) = (table.get(first).is_some(), table.get(second));
        if let (true, Some(node)) = (one, other) {
            self.problem(node.at, &table.at(second), format!("`{first}` and `{second}` say the same: leave one out"));
        }
        let key = if other.is_some() { second } else { first };
        self.need_text(table, key, NAME_CHARS_MAX, example).map(str::to_owned)
    }

    fn sections(&mut self, table: &mut Table<'_>, known: impl Iterator<Item = Section>) -> BTreeMap<Section, Patch> {
        let mut sections = BTreeMap::new();
        for section in known {
            let path = table.at(section.name());
            let Some(node) = table.get(section.name()) else { continue };
            let Some(inner) = self.table(node, &path) else { continue };
            let mut given = Patch::new();
            for (key, node) in inner.entries() {
                let at = below(&path, &key.name);
                let Some(value) = self.json(node, &at) else { continue };
                match settings::problem(section, &key.name, &value).or_else(|| settings::must_not_be_written(section, &key.name, &value)) {
                    None => {
                        given.insert(key.name.clone(), value);
                    }
                    Some(message) if settings::keys(section).contains(&key.name.as_str()) => self.problem(node.at, &at, message),
                    Some(message) => self.problem(key.at, &at, message),
                }
            }
            sections.insert(section, given);
        }
        sections
    }

    fn domains(&mut self, node: &Node) -> BTreeMap<String, BTreeMap<Section, Patch>> {
        let mut all = BTreeMap::new();
        let Some(table) = self.table(node, "domains") else { return all };
        for (key, node) in table.entries() {
            let path = format!("domains.{}", short(&key.name));
            if let Some(message) = rules::scope_problem(&key.name) {
                self.problem(key.at, &path, message);
                continue;
            }
            let Some(mut inner) = self.table(node, &path) else { continue };
            let sections = self.sections(&mut inner, Section::ALL.into_iter().filter(|section| section.is_for_domains()));
            self.finish(&inner);
            all.insert(key.name.clone(), sections);
        }
        all
    }
}

/// `/a/b` as `a.b`.
fn pointed(path: &str) -> String {
    match path.strip_prefix('/') {
        None => path.to_owned(),
        Some(pointer) => pointer.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect::<Vec<_>>().join("."),
    }
}

/// The line and column in the text of a character of a value that was written there: plain, in quotes, folded or as a
/// block. Both texts are followed side by side; what only the written one has (quotes, escapes, indentation) is passed over.
fn place(text: &str, at: Location, value: &str, before: usize) -> (u64, u64) {
    let (mut line, mut column) = (at.line(), at.column());
    let first = usize::try_from(line.saturating_sub(1)).unwrap_or(0);
    let start: usize = text.split_inclusive('\n').take(first).map(str::len).sum();
    let mut written = text.get(start..).unwrap_or_default().chars().skip(usize::try_from(column.saturating_sub(1)).unwrap_or(0)).peekable();
    // A block begins in the line after its sign.
    if matches!(written.peek(), Some('|' | '>')) {
        for letter in written.by_ref() {
            if letter == '\n' {
                break;
            }
        }
        (line, column) = (line + 1, 1);
    }
    let mut wanted = value.chars().take(before + 1).peekable();
    while let (Some(next), Some(letter)) = (wanted.peek().copied(), written.peek().copied()) {
        let meets = next == letter || (next.is_whitespace() && letter.is_whitespace());
        if meets {
            wanted.next();
            if wanted.peek().is_none() {
                break;
            }
        }
        written.next();
        if letter == '\n' {
            (line, column) = (line + 1, 1);
        } else {
            column += 1;
        }
    }
    (line, column)
}
