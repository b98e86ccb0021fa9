//! Templates of agents: what such an agent is for, what it needs to be told, and the steps that it does. Those of the desk and those
//! that people add are files of the same form.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::define::CALLABLE;
use super::super::runner::IfInterrupted;
use super::super::sentence;
use super::super::step::{self, Step};
use super::super::value;
use crate::limits::{AGENT_TEMPLATE_BYTES_MAX, CONTENT_BYTES_MAX, NAME_CHARS_MAX, NOTE_BYTES_MAX, TITLE_CHARS_MAX};
use crate::policy::{Problem, Template};
use crate::{Error, Result};

/// The texts of those that are built in. Their order decides between equals.
const TEXTS: [&str; 12] = [
    include_str!("agents/data-processor.yaml"),
    include_str!("agents/email-assistant.yaml"),
    include_str!("agents/database-analyst.yaml"),
    include_str!("agents/file-organizer.yaml"),
    include_str!("agents/backup-agent.yaml"),
    include_str!("agents/web-scraper.yaml"),
    include_str!("agents/slack-bot.yaml"),
    include_str!("agents/api-monitor.yaml"),
    include_str!("agents/report-generator.yaml"),
    include_str!("agents/content-moderator.yaml"),
    include_str!("agents/log-watcher.yaml"),
    include_str!("agents/duplicate-finder.yaml"),
];

/// Gaps of one template, words under which it is found, and policies that go with it.
const PARTS_MAX: usize = 50;

/// What fills a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterKind {
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// A number.
    Number,
    /// Yes or no.
    Flag,
    /// A list of whatever.
    List,
    /// Values by name.
    Object,
}

impl ParameterKind {
    fn says(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Texts => "a list of texts",
            Self::Number => "a number",
            Self::Flag => "true or false",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            Self::Number => value.is_number(),
            Self::Flag => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// A gap: what its steps find as `{{params.NAME}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What fills it.
    pub kind: ParameterKind,
    /// What it is.
    pub about: String,
    /// What stands there if nobody says. Without it, and if it is not optional, it has to be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Whether nothing may stand there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

impl Parameter {
    /// Refuses what cannot fill it.
    pub(in crate::agents) fn check(&self, value: &Value) -> Result<(), String> {
        if self.kind.fits(value) { Ok(()) } else { Err(format!("{} must be {}: {}", self.name, self.kind.says(), self.about)) }
    }
}

/// How much parts of a sentence speak for a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::agents) struct Likeness {
    pub(in crate::agents) steps: BTreeMap<String, u32>,
    pub(in crate::agents) sources: BTreeMap<String, u32>,
    pub(in crate::agents) words: BTreeMap<String, u32>,
}

/// A template of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentTemplate {
    /// Its name.
    pub id: String,
    /// Its title for people.
    pub title: String,
    /// What such an agent does.
    pub description: String,
    /// What it belongs to.
    pub category: String,
    /// `beginner`, `intermediate` or `advanced`.
    #[serde(default = "beginner")]
    pub difficulty: String,
    /// The language that a program for it is usually written in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub language: String,
    /// Templates of policies that go with it.
    #[serde(default)]
    pub policies: Vec<String>,
    /// Whether a person looks at what it does first.
    #[serde(default = "yes")]
    pub approval: bool,
    /// Whether its runs may start other agents.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_start: bool,
    /// Words under which it is found.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What it does if nobody says more.
    pub task: String,
    /// A sentence that describes one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
    /// Its gaps.
    #[serde(default)]
    pub params: Vec<Parameter>,
    /// What it does.
    pub steps: Vec<Step>,
    /// What becomes of a run that is left in the middle, because its server ended or was lost; `resume` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_interrupted: Option<IfInterrupted>,
    /// How much parts of a sentence speak for it.
    #[serde(skip_serializing, default)]
    #[schemars(skip)]
    pub(in crate::agents) like: Likeness,
}

fn beginner() -> String {
    "beginner".to_owned()
}

/// Who does not say that nobody has to look gets the stricter answer.
fn yes() -> bool {
    true
}

impl AgentTemplate {
    /// Reads a template, and says what is wrong with it.
    pub fn read(text: &str) -> Result<Self> {
        let invalid = |why: String| Error::invalid("template", why);
        if text.len() > AGENT_TEMPLATE_BYTES_MAX {
            return Err(invalid(format!("the text is longer than {AGENT_TEMPLATE_BYTES_MAX} bytes")));
        }
        let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
        let template: Self = serde_saphyr::from_str_with_options(text, options).map_err(|error| invalid(error.to_string()))?;
        let problems = template.problems();
        if problems.is_empty() { Ok(template) } else { Err(invalid(problems.join("; "))) }
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let plain = |name: &str, more: char| {
            !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == more)
        };
        if !plain(&self.id, '-') {
            problems.push(format!("id: {:?} is not a name of small letters, digits and `-`", self.id));
        }
        for (field, text, most) in
            [("title", &self.title, TITLE_CHARS_MAX), ("description", &self.description, NOTE_BYTES_MAX), ("task", &self.task, CONTENT_BYTES_MAX)]
        {
            if text.trim().is_empty() || text.len() > most || text.contains('\0') {
                problems.push(format!("{field}: write between 1 and {most} bytes"));
            }
        }
        if [self.params.len(), self.tags.len(), self.policies.len()].iter().any(|count| *count > PARTS_MAX) {
            problems.push(format!("params, tags and policies have at most {PARTS_MAX} entries"));
        }
        let mut known = BTreeSet::new();
        for param in &self.params {
            if !plain(&param.name, '_') || !known.insert(param.name.as_str()) {
                problems.push(format!("params: {:?} has no name of its own of small letters, digits and `_`", param.name));
            }
            if let Some(why) = param.default.as_ref().and_then(|default| param.check(default).err()) {
                problems.push(format!("params: {why}"));
            }
        }
        if self.steps.is_empty() {
            problems.push("steps: write at least one".to_owned());
        }
        if let Err(error) = step::check(&self.steps, |name| CALLABLE.contains(name)) {
            problems.push(error.to_string());
        }
        let used = serde_json::to_value(&self.steps).ok().and_then(|steps| value::paths(&steps).ok()).unwrap_or_default();
        for name in used.iter().filter_map(|path| path.strip_prefix("params.")).filter_map(|rest| rest.split('.').next()) {
            if !known.contains(name) {
                problems.push(format!("steps use params.{name}, which is not among its params"));
            }
        }
        problems.dedup();
        problems
    }
}

static AGENTS: LazyLock<Vec<AgentTemplate>> = LazyLock::new(|| TEXTS.iter().filter_map(|text| AgentTemplate::read(text).ok()).collect());

/// A template of agents that is built in, by its name.
pub fn agent(id: &str) -> Option<&'static AgentTemplate> {
    AGENTS.iter().find(|template| template.id == id)
}

/// A file of a desk's own templates.
#[derive(Clone, Debug)]
pub enum File {
    /// Of agents.
    Agent(Box<AgentTemplate>),
    /// Of policies: what has a table `template`.
    Policy(Box<Template>),
}

impl File {
    /// Reads a template of agents or of policies, and says what is wrong with it.
    pub fn read(text: &str) -> Result<Self> {
        if !text.lines().any(|line| line.starts_with("template:")) {
            return AgentTemplate::read(text).map(Self::from);
        }
        let said = |problems: Vec<Problem>| Error::invalid("template", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        Template::read(text).map(|template| Self::Policy(Box::new(template))).map_err(said)
    }
}

impl From<AgentTemplate> for File {
    fn from(template: AgentTemplate) -> Self {
        Self::Agent(Box::new(template))
    }
}

/// What is built in, and what a desk has of its own.
#[derive(Clone, Debug, Default)]
pub struct Library {
    own: Arc<Vec<AgentTemplate>>,
    own_policies: Arc<Vec<Template>>,
    problems: Arc<Vec<String>>,
}

impl Library {
    /// A desk's own templates, each with the file that it comes from, and what is wrong with files that could not be read. A name is
    /// taken once: what is built in, and whatever comes first, is not replaced.
    pub fn of<F: Into<File>>(files: Vec<(String, F)>, mut problems: Vec<String>) -> Self {
        let (mut own, mut agents): (Self, Vec<(String, AgentTemplate)>) = (Self::default(), Vec::new());
        let (mut policies, mut taken): (Vec<Template>, Vec<AgentTemplate>) = (Vec::new(), Vec::new());
        let is_taken = |file: &str, id: &str| format!("{file}: there is a template {id:?} already; name it otherwise");
        for (file, template) in files {
            match template.into() {
                File::Agent(template) => agents.push((file, *template)),
                File::Policy(template) if super::policy(&template.id).is_some() || policies.iter().any(|known| known.id == template.id) => {
                    problems.push(is_taken(&file, &template.id));
                }
                File::Policy(template) => policies.push(*template),
            }
        }
        own.own_policies = Arc::new(policies);
        for (file, mut template) in agents {
            if agent(&template.id).is_some() || taken.iter().any(|known| known.id == template.id) {
                problems.push(is_taken(&file, &template.id));
            } else if let Some(id) = template.policies.iter().find(|id| own.policy(id).is_none()) {
                problems.push(format!("{file}: policies: there is no template {id:?}"));
            } else {
                if template.like == Likeness::default() {
                    template.like = sentence::likeness(&template);
                }
                taken.push(template);
            }
        }
        Self { own: Arc::new(taken), problems: Arc::new(problems), ..own }
    }

    /// All templates of policies.
    pub fn policies(&self) -> impl Iterator<Item = &Template> {
        super::policies().iter().chain(self.own_policies.iter())
    }

    /// A template of policies by its name.
    pub fn policy(&self, id: &str) -> Option<&Template> {
        self.policies().find(|template| template.id == id)
    }

    /// What is wrong with files that could not be taken in.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// All templates of agents.
    pub fn all(&self) -> impl Iterator<Item = &AgentTemplate> {
        AGENTS.iter().chain(self.own.iter())
    }

    /// One by its name, if there is one.
    pub(in crate::agents) fn get(&self, id: &str) -> Option<&AgentTemplate> {
        self.all().find(|template| template.id == id)
    }

    /// One by its name.
    pub fn find(&self, id: &str) -> Result<AgentTemplate> {
        let all: Vec<&str> = self.all().map(|template| template.id.as_str()).collect();
        let missing = || Error::invalid("template", format!("there is no template {id:?}; there are {}", all.join(", ")));
        self.get(id).cloned().ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
id: greeter
title: Greeter
description: Says hello.
category: custom
task: Say hello to somebody.
params:
  - { name: to, kind: text, about: who is greeted }
steps:
  - { id: tell, do: bridge_send_message, with: { to: '{{params.to}}', content: hello } }
";

    #[test]
    fn those_that_are_built_in_can_all_be_read() {
        for text in TEXTS {
            if let Err(error) = AgentTemplate::read(text) {
                panic!("{}: {error}", text.lines().next().unwrap_or_default());
            }
        }
        assert_eq!(AGENTS.len(), TEXTS.len());
    }

    #[test]
    fn what_is_wrong_with_ones_own_is_said() {
        let good = AgentTemplate::read(GOOD).unwrap();
        assert!(good.approval, "a person looks first unless the file says otherwise");
        for (from, to, says) in [
            ("id: greeter", "id: Greeter!", "small letters"),
            ("do: bridge_send_message", "do: desk_claim", "desk_claim"),
            ("{{params.to}}", "{{params.whom}}", "params.whom"),
            ("kind: text, about", "kind: text, default: 3, about", "must be a text"),
            ("category: custom", "category: custom\nshell: rm", "shell"),
            ("title: Greeter\n", "", "title"),
        ] {
            let error = AgentTemplate::read(&GOOD.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_sentence_finds_ones_own() {
        let invoices = GOOD
            .replace("greeter", "invoice-chaser")
            .replace("Greeter", "Chaser of invoices")
            .replace("Say hello to somebody.", "Read the invoices in a spreadsheet and tell somebody which are overdue.")
            .replace("category: custom", "category: custom\ntags: [dunning]\npolicies: [cost-control]");
        let library = Library::of(vec![("a.yaml".into(), AgentTemplate::read(&invoices).unwrap())], Vec::new());
        let best = |text: &str| {
            let read = sentence::sketch_among(&library, text, &sentence::Given::default(), "UTC").unwrap();
            (read.templates.first().map(|best| best.id.clone()), read.policies.iter().any(|chosen| chosen.template == "cost-control"))
        };
        assert_eq!(best("Every Monday look for overdue invoices in the spreadsheet and send dunning notes to clerk"), (Some("invoice-chaser".into()), true));
        assert_eq!(best("Back up my Documents folder every night").0.as_deref(), Some("backup-agent"), "what is built in is still found");
        assert!(best("Create an agent that greets people").0.as_deref() != Some("invoice-chaser"), "a word that says nothing finds nothing");
        let told = invoices.replace("steps:\n", "like: { words: { dunning: 1 } }\nsteps:\n");
        let told = AgentTemplate::read(&told).unwrap();
        assert_eq!(Library::of(vec![("a.yaml".into(), told.clone())], Vec::new()).get("invoice-chaser").unwrap().like, told.like, "what a file says counts");
    }

    const FEW_CALLS: &str = "
template:
  id: few-calls
  title: Few calls
  description: No more calls in a minute than are good for the server.
  category: operational
  parameters:
    - { name: most, kind: count, default: 20, min: 1, max: 1000, about: Calls in a minute }
rules:
  - { name: enough, when: \"does('call') && counters.calls_minute >= ${most}\", effect: deny, message: \"${most} calls in a minute are enough\" }
";

    #[test]
    fn policies_of_ones_own_are_found_beside_those_that_are_built_in() {
        let read = |texts: &[String]| {
            let files = texts.iter().map(|text| ("a.yaml".to_owned(), File::read(text).unwrap())).collect();
            Library::of(files, Vec::new())
        };
        let greeter = GOOD.replace("category: custom", "policies: [few-calls]\ncategory: custom");
        let library = read(&[greeter.clone(), FEW_CALLS.to_owned()]);
        assert!(library.problems().is_empty() && library.find("greeter").is_ok(), "a template of agents goes with one's own: {:?}", library.problems());
        assert_eq!((library.policies().count(), library.policy("few-calls").unwrap().text()), (super::super::policies().len() + 1, FEW_CALLS));
        for (texts, says) in [
            (vec![greeter], "no template \"few-calls\""),
            (vec![FEW_CALLS.to_owned(), FEW_CALLS.to_owned()], "already"),
            (vec![FEW_CALLS.replace("few-calls", "rate-limiting")], "already"),
        ] {
            let problems = read(&texts).problems().join("\n");
            assert!(problems.contains(says), "{says}: {problems}");
        }
        let error = File::read(&FEW_CALLS.replace("effect: deny", "effect: forbid")).unwrap_err().to_string();
        assert!(error.contains("effect"), "{error}");
    }

    #[test]
    fn a_name_is_taken_once() {
        let own = AgentTemplate::read(GOOD).unwrap();
        let shadow = AgentTemplate { id: "email-assistant".into(), ..own.clone() };
        let library = Library::of(vec![("a.yaml".into(), own.clone()), ("b.yaml".into(), own), ("c.yaml".into(), shadow)], vec!["d.yaml: broken".into()]);
        assert_eq!(library.all().count(), TEXTS.len() + 1);
        assert_eq!(library.problems().len(), 3);
        assert!(library.find("greeter").is_ok() && library.find("no-such").is_err());
    }
}
