//! Frameworks as people write them: controls, and for each what shows it. The language of checks is closed, so a control is a data
//! file and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state;
use crate::call::event_catalogue;
use crate::limits::{COMPLIANCE_CONTROLS_MAX, COMPLIANCE_TEXT_BYTES_MAX};
use crate::policy::{Act, Counters, Effect, Mode};
use crate::{Error, Result};

/// The frameworks that are built in.
const BUILT_IN: [&str; 8] = [
    include_str!("frameworks/soc2.yaml"),
    include_str!("frameworks/gdpr.yaml"),
    include_str!("frameworks/hipaa.yaml"),
    include_str!("frameworks/pci-dss.yaml"),
    include_str!("frameworks/ccpa.yaml"),
    include_str!("frameworks/nist.yaml"),
    include_str!("frameworks/iso27001.yaml"),
    include_str!("frameworks/fedramp.yaml"),
];

/// A framework.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Framework {
    /// Its name, such as `SOC2`.
    pub id: String,
    /// Its title for people.
    pub title: String,
    /// Which edition of it this follows.
    pub edition: String,
    /// What no program can attest of it, each a sentence.
    pub cannot: Vec<String>,
    /// Its controls.
    pub controls: Vec<Control>,
}

/// One control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Its name in the framework, such as `CC6.1`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it asks, in our words.
    pub asks: String,
    /// What of it cannot be shown from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cannot: Option<String>,
    /// What to do where it is not met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// What shows it. Without any it cannot be shown from here.
    #[serde(default)]
    pub checks: Vec<Check>,
}

/// One check: exactly one of `setting`, `probe`, `events` and `every`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// What is shown where it holds.
    pub shows: String,
    /// Whether its lack alone makes the control partly met, and not unmet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub also: bool,
    /// Something that is set, or how something stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<SettingCheck>,
    /// An act that nobody does: what the desk would answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeCheck>,
    /// Events that are there, or are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<EventsCheck>,
    /// Something that holds of each of some events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<EveryCheck>,
}

/// What a setting has to be: one of the bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingCheck {
    /// Its name.
    pub name: String,
    /// Exactly this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<Value>,
    /// At least this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// At most this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
}

/// An act, and what must be answered to it even if the agent were trusted in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeCheck {
    /// The act.
    pub act: ProbeAct,
    /// What the agent had used up by then.
    #[serde(default)]
    pub counters: ProbeCounters,
    /// The answers that are good; any if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answer: Vec<Mode>,
    /// The effects of which a rule must fire with one; none has to if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fires: Vec<Effect>,
    /// How many people have to approve at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub people: Option<u32>,
}

/// An act that nobody does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProbeAct {
    kind: String,
    tool: String,
    environment: String,
    action: String,
    target: String,
    arguments: Value,
    call: bool,
}

impl ProbeAct {
    /// The act in a domain.
    pub(super) fn within(&self, domain: &str) -> Act {
        Act {
            kind: if self.kind.is_empty() { "propose".to_owned() } else { self.kind.clone() },
            tool: self.tool.clone(),
            domain: domain.to_owned(),
            environment: self.environment.clone(),
            action: self.action.clone(),
            target: self.target.clone(),
            arguments: if self.arguments.is_null() { Value::Object(serde_json::Map::new()) } else { self.arguments.clone() },
            call: self.call,
            ..Act::default()
        }
    }

    /// The act in a few words.
    pub(super) fn words(&self) -> String {
        let said: Vec<&str> =
            [&self.kind, &self.action, &self.tool, &self.environment].into_iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        let with = if self.arguments.is_null() { String::new() } else { format!(" with {}", self.arguments) };
        format!("{}{with}", said.join(" "))
    }
}

/// What an agent had used up, for a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProbeCounters {
    calls_minute: i64,
    calls_hour_all: i64,
    denied_day: i64,
}

impl ProbeCounters {
    pub(super) fn counters(self) -> Counters {
        Counters { calls_minute: self.calls_minute, calls_hour_all: self.calls_hour_all, denied_day: self.denied_day, ..Counters::default() }
    }
}

/// Whose events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// Those that the agent did, or that concern it.
    #[default]
    Agent,
    /// Those of the whole desk.
    Desk,
}

/// Events that have to be there, or must not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsCheck {
    /// Of these kinds.
    pub kinds: Vec<String>,
    /// Whose.
    #[serde(default)]
    pub of: Whose,
    /// With these facts: each must be one of the values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, Vec<Value>>,
    /// So many at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<u64>,
    /// So many at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
}

/// Something that has to hold of each event. Where there is none, nothing is shown by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EveryCheck {
    /// Of these kinds.
    pub kinds: Vec<String>,
    /// Whose.
    #[serde(default)]
    pub of: Whose,
    /// With these facts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, Vec<Value>>,
    /// What has to hold.
    pub that: That,
}

/// What can hold of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum That {
    /// The desk had answered the act: the event names the rulebook, the grant or who decided.
    Decided,
    /// Nobody had said no to it before: no rejection, expiry, cancellation or denial of the same subject came last.
    Allowed,
    /// A person did it.
    ByPerson,
    /// A person did it who is not the one who wrote what the agent is.
    ByAnother,
    /// A credential proved who did it.
    Proved,
}

impl Framework {
    /// Reads a framework, and names everything that is wrong with it.
    pub fn read(text: &str) -> Result<Self> {
        let invalid = |why: String| Error::invalid("framework", why);
        if text.len() > COMPLIANCE_TEXT_BYTES_MAX {
            return Err(invalid(format!("the text is longer than {COMPLIANCE_TEXT_BYTES_MAX} bytes")));
        }
        let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
        let framework: Self = serde_saphyr::from_str_with_options(text, options).map_err(|error| invalid(error.to_string()))?;
        let problems = framework.problems();
        if problems.is_empty() { Ok(framework) } else { Err(invalid(problems.join("; "))) }
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let named = |id: &str| !id.is_empty() && id.chars().count() <= 64 && !id.chars().any(char::is_control);
        if !named(&self.id) || !self.id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
            problems.push(format!("id: {:?} is not a name of letters, digits, `_` and `-`", self.id));
        }
        if self.controls.is_empty() || self.controls.len() > COMPLIANCE_CONTROLS_MAX {
            problems.push(format!("controls: write between 1 and {COMPLIANCE_CONTROLS_MAX}"));
        }
        let (mut seen, kinds) = (BTreeSet::new(), event_catalogue());
        for control in &self.controls {
            if !named(&control.id) || !seen.insert(control.id.as_str()) {
                problems.push(format!("the control {:?} has no name of its own", control.id));
            }
            if control.checks.is_empty() && control.cannot.is_none() {
                problems.push(format!("{}: write a check, or say under `cannot` why there is none", control.id));
            }
            for (number, check) in (1..).zip(&control.checks) {
                let at = format!("{}, check {number}", control.id);
                problems.extend(check.problem(&kinds).map(|problem| format!("{at}: {problem}")));
            }
        }
        problems
    }
}

impl Check {
    fn problem(&self, kinds: &[crate::record::Kind]) -> Option<String> {
        let known = |names: &[String]| {
            let missing = names.iter().find(|name| !kinds.iter().any(|kind| kind.name == name.as_str()));
            match missing {
                _ if names.is_empty() => Some("name the kinds of events".to_owned()),
                Some(name) => Some(format!("there is no kind of event {name:?}: `deskmate schema events` lists them")),
                None => None,
            }
        };
        match (&self.setting, &self.probe, &self.events, &self.every) {
            _ if self.shows.trim().is_empty() => Some("say under `shows` what it shows".to_owned()),
            (Some(setting), None, None, None) => {
                let bounds = usize::from(setting.is.is_some()) + usize::from(setting.at_least.is_some()) + usize::from(setting.at_most.is_some());
                if !state::KNOWN.iter().any(|(name, _)| *name == setting.name) {
                    let all: Vec<&str> = state::KNOWN.iter().map(|(name, _)| *name).collect();
                    return Some(format!("there is no setting {:?}; there are {}", setting.name, all.join(", ")));
                }
                (bounds != 1).then(|| "give exactly one of `is`, `at_least` and `at_most`".to_owned())
            }
            (None, Some(probe), None, None) => {
                (probe.answer.is_empty() && probe.fires.is_empty()).then(|| "say under `answer` or `fires` what has to come out".to_owned())
            }
            (None, None, Some(events), None) => {
                known(&events.kinds).or_else(|| (events.at_least.is_some() == events.at_most.is_some()).then(|| "give `at_least` or `at_most`".to_owned()))
            }
            (None, None, None, Some(every)) => known(&every.kinds),
            _ => Some("give exactly one of `setting`, `probe`, `events` and `every`".to_owned()),
        }
    }
}

static SHIPPED: LazyLock<Vec<Framework>> = LazyLock::new(|| BUILT_IN.iter().filter_map(|text| Framework::read(text).ok()).collect());

/// The texts of the frameworks that are built in: examples of how one is written.
pub fn built_in_texts() -> &'static [&'static str] {
    &BUILT_IN
}

/// All frameworks that a desk knows: those that are built in, and its own. Every call holds one: cheap to make and to clone, and
/// nothing is read before somebody asks for a framework.
#[derive(Clone, Debug, Default)]
pub struct Library {
    own: Arc<Vec<Framework>>,
    problems: Arc<Vec<String>>,
}

impl Library {
    /// Adds a desk's own frameworks. One with the name of another stands in its place, so that controls can be added to what is built in.
    #[must_use]
    pub fn with(&self, own: impl IntoIterator<Item = Framework>) -> Self {
        let mut all = (*self.own).clone();
        for framework in own {
            all.retain(|known| !known.id.eq_ignore_ascii_case(&framework.id));
            all.push(framework);
        }
        Self { own: Arc::new(all), problems: Arc::clone(&self.problems) }
    }

    /// Says what is wrong with files that could not be taken in, each with its name: a framework that is missing says so itself.
    #[must_use]
    pub fn without(&self, problems: Vec<String>) -> Self {
        Self { own: Arc::clone(&self.own), problems: Arc::new(problems) }
    }

    /// What is wrong with files that could not be taken in.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Framework> {
        let replaced = |shipped: &&Framework| self.own.iter().any(|own| own.id.eq_ignore_ascii_case(&shipped.id));
        SHIPPED.iter().filter(move |shipped| !replaced(shipped)).chain(self.own.iter())
    }

    /// One by its name.
    pub fn find(&self, id: &str) -> Result<Framework> {
        let found = self.all().find(|framework| framework.id.eq_ignore_ascii_case(id));
        let names: Vec<&str> = self.all().map(|framework| framework.id.as_str()).collect();
        found.cloned().ok_or_else(|| {
            let error = Error::invalid("framework", format!("there is none called {id:?}; there are {}", names.join(", ")));
            if self.problems.is_empty() { error } else { error.hint(format!("these files could not be taken in: {}", self.problems.join("; "))) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_framework_that_is_built_in_can_be_read() {
        for text in built_in_texts() {
            Framework::read(text).unwrap();
        }
        assert_eq!(Library::default().all().count(), BUILT_IN.len());
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named() {
        let control =
            |checks: &str| format!("id: OWN\ntitle: t\nedition: e\ncannot: []\ncontrols:\n  - id: A\n    title: t\n    asks: a\n    checks:\n{checks}");
        for (text, says) in [
            ("id: X".to_owned(), "title"),
            (control("      - { shows: x }"), "exactly one of `setting`"),
            (control("      - { shows: x, setting: { name: moon.phase, is: full } }"), "no setting \"moon.phase\""),
            (control("      - { shows: x, setting: { name: desk.claimed } }"), "exactly one of `is`"),
            (control("      - { shows: x, events: { kinds: [moon.rose], at_least: 1 } }"), "no kind of event \"moon.rose\""),
            (control("      - { shows: x, events: { kinds: [desk.started] } }"), "at_least"),
            (control("      - { shows: x, probe: { act: { kind: y } } }"), "answer"),
            (control("      - { shows: x, every: { kinds: [desk.started], that: shines } }"), "shines"),
            (control("      - { shows: x, sql: drop }"), "sql"),
        ] {
            let error = Framework::read(&text).unwrap_err();
            assert!(error.message.contains(says), "{text}\n{error}");
        }
        Framework::read(&control("      - { shows: x, setting: { name: desk.claimed, is: true } }")).unwrap();
    }
}
