//! From one English sentence, or a short paragraph, to a sketch of an agent: by words and patterns that people can read, all of
//! them in `lexicon.yaml`. No model, no guess: what is not understood is said.
//!
//! - [`tokens`]: words with their places. [`lexicon`]: the patterns.
//! - [`when`]: schedules. [`limit`]: limits. [`name`]: name and task. [`like`]: what speaks for a template.
//! - [`policy`]: from sentences to rules.
//!
//! The text is data. Nothing of it is put into a pattern, a condition or a command; what is kept of it are its own words.

mod lexicon;
mod like;
mod limit;
mod name;
mod policy;
mod tokens;
mod when;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::lexicon::{Found, Lexicon, lexicon};
use self::tokens::{Break, Kind, Token, tokens};
use super::schedule;
use super::template::{self, Library};
use crate::{Error, Result, check_text};

pub(super) use like::likeness;
pub(super) use name::problem as name_problem;
pub use policy::{DraftedPolicy, DraftedRule, POLICY_DESCRIPTION_BYTES_MAX, Refused, draft_policy};

/// How long a description may be.
pub const DESCRIPTION_BYTES_MAX: usize = 4_000;
/// How many clauses are named that were not understood.
const UNCLEAR_MAX: usize = 10;

/// Something that a sentence names, with the words for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// What it is, such as `mail` or `files`.
    pub kind: String,
    /// The words it came from; empty if it was given.
    pub words: String,
}

/// One thing that the agent does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What it is, such as `read_mail` or `classify`.
    pub kind: String,
    /// The verb under which policies see it, such as `mail.read`.
    pub verb: String,
    /// The words it came from.
    pub words: String,
}

/// When it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Planned {
    /// The cron expression.
    pub cron: String,
    /// The time zone.
    pub time_zone: String,
    /// The words it came from; empty if it was given.
    pub words: String,
    /// The schedule for people.
    pub says: String,
    /// What the sentence left open, and what stands there now.
    pub assumed: Vec<String>,
}

/// Data that it touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Touched {
    /// `personal`, `payment`, `health`, `credentials` or `confidential`.
    pub kind: String,
    /// The words it came from.
    pub words: String,
    /// Why that is so.
    pub why: String,
}

/// A limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// What is counted, such as `emails` or `cost`.
    pub what: String,
    /// How much of it is allowed.
    pub most: f64,
    /// After what it begins anew: `run`, `minute`, `hour`, `day`, `week`, `month`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    /// The words it came from.
    #[serde(default)]
    pub words: String,
}

/// A policy that goes with it: a template, and what fills its gaps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chosen {
    /// The template.
    pub template: String,
    /// Values that differ from what stands there if nobody says.
    #[serde(default)]
    pub values: Map<String, Value>,
    /// Why.
    #[serde(default)]
    pub why: String,
}

/// A template of an agent that is like it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Match {
    /// The template.
    pub id: String,
    /// How much speaks for it.
    pub score: u32,
    /// Its part of all that speaks for any, 0 to 1.
    pub share: f64,
    /// What speaks for it.
    pub why: Vec<String>,
}

/// What a sentence says about an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sketch {
    /// A name; another agent may have it already.
    pub name: String,
    /// What it does, in the words of the sentence.
    pub task: String,
    /// Where what it works on comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Part>,
    /// Further sources.
    pub other_sources: Vec<Part>,
    /// What it does with it.
    pub processing: Vec<Part>,
    /// Where what comes of it goes.
    pub output: Vec<Part>,
    /// When it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Planned>,
    /// What makes it run, if that is something that happens and no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// Everything that it does, in order.
    pub steps: Vec<Step>,
    /// What it must not do, in the words of the sentence.
    pub forbidden: Vec<String>,
    /// The words with which a person's agreement is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// Data that it touches.
    pub data: Vec<Touched>,
    /// Limits.
    pub limits: Vec<Limit>,
    /// Frameworks that it names.
    pub frameworks: Vec<String>,
    /// Policies that go with it.
    pub policies: Vec<Chosen>,
    /// Templates that are like it, the best first.
    pub templates: Vec<Match>,
    /// What was not understood.
    pub not_understood: Vec<String>,
    /// What was given and takes the place of what the sentence says.
    pub given: Vec<String>,
}

/// What somebody says beside the sentence. It counts more than the sentence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Given {
    /// A name: small letters, digits and `-`.
    pub name: Option<String>,
    /// What it does.
    pub task: Option<String>,
    /// Where what it works on comes from.
    pub source: Option<String>,
    /// Where what comes of it goes.
    pub output: Option<String>,
    /// A cron expression; empty for an agent that has no schedule.
    pub schedule: Option<String>,
    /// A time zone, such as `Europe/Berlin`.
    pub time_zone: Option<String>,
    /// Limits.
    pub limits: Option<Vec<Limit>>,
    /// Templates of policies with what fills their gaps.
    pub policies: Option<Vec<Chosen>>,
}

/// Every kind of source, output, step and data that a sketch can have: for documents, forms and checks.
pub fn kinds() -> Result<BTreeMap<&'static str, Vec<String>>> {
    let lexicon = lexicon()?;
    let of = |groups: &[lexicon::Group]| groups.iter().map(|group| group.kind.clone()).collect::<Vec<_>>();
    let steps: BTreeSet<String> = lexicon.steps.iter().map(|step| step.kind.clone()).chain(lexicon.sources.iter().map(|source| source.with.clone())).collect();
    let outputs: BTreeSet<String> = lexicon.outputs.values().cloned().collect();
    Ok([("source", of(&lexicon.sources)), ("output", outputs.into_iter().collect()), ("step", steps.into_iter().collect()), ("data", of(&lexicon.data))].into())
}

/// Reads a sentence or a short paragraph about an agent. `time_zone` holds where neither the sentence nor `given` names one.
pub fn sketch(description: &str, given: &Given, time_zone: &str) -> Result<Sketch> {
    sketch_among(&Library::default(), description, given, time_zone)
}

/// The same, compared with the templates that a desk has.
pub fn sketch_among(templates: &Library, description: &str, given: &Given, time_zone: &str) -> Result<Sketch> {
    check_text("description", description, DESCRIPTION_BYTES_MAX)?;
    if description.trim().is_empty() {
        return Err(Error::invalid("description", "is empty: write in a sentence what the agent does"));
    }
    let lexicon = lexicon()?;
    let tokens = tokens(description);
    let mut reading = Reading { lexicon, templates, text: description, tokens: &tokens, used: BTreeSet::new(), ends: BTreeSet::new() };
    let mut sketch = reading.read(time_zone)?;
    take_given(&mut sketch, given, time_zone)?;
    reading.choose(&mut sketch);
    if let Some(policies) = &given.policies {
        sketch.policies.clone_from(policies);
        sketch.given.push("policies".to_owned());
    }
    Ok(sketch)
}

/// Puts what was given in the place of what the sentence says.
fn take_given(sketch: &mut Sketch, given: &Given, time_zone: &str) -> Result<()> {
    let mut noted = Vec::new();
    if let Some(name) = &given.name {
        if let Some(problem) = name::problem(name) {
            return Err(Error::invalid("name", problem));
        }
        sketch.name.clone_from(name);
        noted.push("name");
    }
    if let Some(task) = &given.task {
        check_text("task", task, DESCRIPTION_BYTES_MAX)?;
        if task.trim().is_empty() {
            return Err(Error::invalid("task", "is empty"));
        }
        sketch.task.clone_from(task);
        noted.push("task");
    }
    let kinds = kinds()?;
    let known = |field: &'static str, kind: &str| {
        let all = kinds.get(field).map(Vec::as_slice).unwrap_or_default();
        if all.iter().any(|known| known == kind) {
            Ok(Part { kind: kind.to_owned(), words: String::new() })
        } else {
            Err(Error::invalid(field, format!("is one of {}", all.join(", "))))
        }
    };
    if let Some(source) = &given.source {
        sketch.source = Some(known("source", source)?);
        noted.push("source");
    }
    if let Some(output) = &given.output {
        sketch.output = vec![known("output", output)?];
        noted.push("output");
    }
    if let Some(zone) = &given.time_zone {
        schedule::zone(zone)?;
        noted.push("time_zone");
    }
    if let Some(cron) = &given.schedule {
        sketch.schedule = if cron.trim().is_empty() { None } else { Some(planned(cron, given.time_zone.as_deref().unwrap_or(time_zone))?) };
        sketch.trigger = None;
        noted.push("schedule");
    } else if let (Some(zone), Some(held)) = (&given.time_zone, &mut sketch.schedule) {
        let read = schedule::Schedule::read(&held.cron, zone)?;
        (held.time_zone, held.says) = (read.time_zone().to_owned(), read.words());
    }
    if let Some(limits) = &given.limits {
        for limit in limits {
            if !limit.most.is_finite() || limit.most < 0.0 || limit.what.is_empty() || limit.what.len() > 100 {
                return Err(Error::invalid("limits", "a limit has `what` is counted, and `most`, a number that is not below 0"));
            }
        }
        sketch.limits.clone_from(limits);
        noted.push("limits");
    }
    for chosen in given.policies.iter().flatten() {
        let Some(template) = template::policy(&chosen.template) else {
            let all: Vec<&str> = template::policies().iter().map(|template| template.id.as_str()).collect();
            return Err(Error::invalid("policies", format!("has a template that is not known; there are {}", all.join(", "))));
        };
        template.values(&chosen.values).map_err(|problems| Error::invalid("policies", problems.first().map_or_else(String::new, ToString::to_string)))?;
    }
    sketch.given.extend(noted.into_iter().map(str::to_owned));
    Ok(())
}

fn planned(cron: &str, zone: &str) -> Result<Planned> {
    let read = schedule::Schedule::read(cron, zone)?;
    Ok(Planned { cron: read.cron().to_owned(), time_zone: read.time_zone().to_owned(), words: String::new(), says: read.words(), assumed: Vec::new() })
}

/// Leaves away what another step says more exactly.
fn settled(steps: Vec<(usize, Step)>) -> Vec<(usize, Step)> {
    let all: BTreeMap<String, String> = steps.iter().map(|(_, step)| (step.kind.clone(), step.words.to_lowercase())).collect();
    let has = |kind: &str| all.contains_key(kind);
    let begins = |words: &str, with: &[&str]| with.iter().any(|word| words.starts_with(word));
    let keep = |step: &Step| {
        let words = step.words.to_lowercase();
        match step.kind.as_str() {
            // "send me a summary": the summary is the report.
            "summarise" => !has("write_report") || !begins(&words, &["summary", "summaries", "digest", "recap", "highlights", "key", "gist", "tldr"]),
            // "summarise it and post the summary": there is no other report than that.
            "write_report" if words.contains("summary") => !all.get("summarise").is_some_and(|verb| begins(verb, &["summarise", "summarize", "sum "])),
            "write_report" if words.starts_with("report") || words.contains(" report") && !words.contains(" a ") => {
                !all.get("hand_to_person").is_some_and(|hand| begins(hand, &["report"]))
            }
            "delete" => !has("moderate"),
            "classify" => !has("organise_files"),
            "write_files" => !has("back_up") && !has("organise_files"),
            "transform" => !(has("back_up") || has("organise_files") && begins(&words, &["clean"])),
            "extract" => !has("back_up"),
            "update_records" => !has("back_up") && (!has("hand_to_person") || !words.contains("ticket")),
            // What answers in a chat, or is only drafted, is not sent by mail.
            "send_mail" => !(has("draft") || has("post_chat")) || !begins(&words, &["repl", "respond", "answer"]),
            _ => true,
        }
    };
    steps.into_iter().filter(|(_, step)| keep(step)).collect()
}

/// Whether something comes from a place or goes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    From,
    Unsaid,
    Destination,
}

struct Reading<'t> {
    lexicon: &'t Lexicon,
    templates: &'t Library,
    text: &'t str,
    tokens: &'t [Token],
    /// The pieces that something was understood from.
    used: BTreeSet<usize>,
    /// Those of them that say where something goes.
    ends: BTreeSet<usize>,
}

impl Reading<'_> {
    /// The words between two pieces as they were written.
    fn words(&self, start: usize, end: usize) -> String {
        let (Some(first), Some(last)) = (self.tokens.get(start), self.tokens.get(end.saturating_sub(1))) else { return String::new() };
        self.text.get(first.start..last.end).unwrap_or_default().to_owned()
    }

    /// The words of pieces that may stand apart.
    fn scattered(&self, used: &BTreeSet<usize>) -> String {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for at in used {
            match runs.last_mut() {
                Some((_, end)) if *end == *at => *end = at + 1,
                _ => runs.push((*at, at + 1)),
            }
        }
        runs.iter().map(|(start, end)| self.words(*start, *end)).collect::<Vec<_>>().join(" … ")
    }

    fn read(&mut self, time_zone: &str) -> Result<Sketch> {
        let begin = name::begin(self.lexicon, self.tokens);
        let plan = when::find(self.lexicon, self.tokens);
        let (limits, limiting) = limit::find(self.lexicon, self.tokens, &plan.used, self.text);
        let mut not_understood = plan.problems.clone();
        let schedule = match &plan.cron {
            Some(cron) => {
                let mut held = planned(cron, plan.zone.as_deref().unwrap_or(time_zone))?;
                held.words = self.scattered(&plan.used);
                held.assumed.clone_from(&plan.assumed);
                Some(held)
            }
            None => None,
        };
        let apart: BTreeSet<usize> = plan.used.union(&limiting).copied().collect();
        self.used.extend(0..begin);
        self.used.extend(&apart);
        let is_english = self.is_english();
        let (mut steps, mut forbidden) = if is_english { self.steps(begin, &limiting) } else { Default::default() };
        let refused = self.refused(begin, &limiting, &mut forbidden);
        let sources = if is_english { self.sources(&mut steps, begin, &apart) } else { Vec::new() };
        let event = Lexicon::first(&self.lexicon.events, self.tokens).filter(|_| schedule.is_none());
        let trigger = event.map(|found| self.clause_from(found));
        // What makes it run is not what it does, so it gives no name.
        let eventful: BTreeSet<usize> = event.filter(|found| found.start == begin).map(|found| (found.start..self.end_of(found)).collect()).unwrap_or_default();
        if schedule.is_none()
            && trigger.is_none()
            && let Some(vague) = Lexicon::first(&self.lexicon.vague, self.tokens)
        {
            self.used.extend(vague.start..vague.end);
            not_understood.push(format!("how often \"{}\" is", self.words(vague.start, vague.end)));
        }
        let approval = Lexicon::first(&self.lexicon.approval, self.tokens).filter(|found| !self.lexicon.is_negated(self.tokens, found.start)).map(|found| {
            self.used.extend(found.start..found.end);
            self.words(found.start, found.end)
        });
        let data = if is_english { self.data(&sources) } else { Vec::new() };
        for (_, words) in &self.lexicon.policies {
            self.used.extend(Lexicon::first(words, self.tokens).into_iter().flat_map(|found| found.start..found.end));
        }
        let frameworks: Vec<String> = self
            .lexicon
            .frameworks
            .iter()
            .filter_map(|framework| {
                let found = Lexicon::first(&framework.patterns, self.tokens)?;
                self.used.extend(found.start..found.end);
                Some(framework.kind.clone())
            })
            .collect();
        not_understood.extend(if is_english { self.unclear(begin) } else { vec!["this does not read as English, and only English is understood".to_owned()] });
        steps.sort_by_key(|(at, _)| *at);
        let steps: Vec<Step> = steps.into_iter().map(|(_, step)| step).collect();
        let is_output = |kind: &str| self.lexicon.outputs.contains_key(kind);
        let is_reading = |kind: &str| self.lexicon.sources.iter().any(|source| source.with == kind);
        let processing = steps
            .iter()
            .filter(|step| !is_output(&step.kind) && !is_reading(&step.kind))
            .map(|step| Part { kind: step.kind.clone(), words: step.words.clone() });
        let output = steps.iter().filter_map(|step| Some(Part { kind: self.lexicon.outputs.get(&step.kind)?.clone(), words: step.words.clone() }));
        let mut sources = sources.into_iter();
        Ok(Sketch {
            name: name::name(self.lexicon, self.tokens, begin, &apart.iter().chain(&refused).chain(&eventful).copied().collect()),
            task: name::task(self.text, self.tokens, begin),
            source: sources.next(),
            other_sources: sources.collect(),
            processing: processing.collect(),
            output: output.collect(),
            schedule,
            trigger,
            forbidden,
            approval,
            data,
            limits,
            frameworks,
            policies: Vec::new(),
            templates: Vec::new(),
            not_understood,
            given: Vec::new(),
            steps,
        })
    }

    /// The words from a place to the end of its part of the sentence.
    fn clause_from(&mut self, found: Found) -> String {
        self.used.extend(found.start..found.end);
        self.words(found.start, self.end_of(found))
    }

    /// The end of the part of the sentence that something stands in.
    fn end_of(&self, found: Found) -> usize {
        let end =
            (found.start + 1..self.tokens.len()).find(|at| self.tokens.get(*at).is_some_and(|token| token.before != Break::No)).unwrap_or(self.tokens.len());
        end.max(found.end)
    }

    /// What it does, with where that stands; and what it must not do.
    fn steps(&mut self, begin: usize, limiting: &BTreeSet<usize>) -> (Vec<(usize, Step)>, Vec<String>) {
        let mut steps: Vec<(usize, Step)> = Vec::new();
        let mut forbidden: Vec<(usize, String)> = Vec::new();
        for step in &self.lexicon.steps {
            let mut found: Vec<Found> = step
                .patterns
                .iter()
                .flat_map(|pattern| pattern.all(self.tokens))
                .filter(|found| found.end > begin && !limiting.contains(&found.start))
                .collect();
            found.sort_by_key(|found| (found.start, usize::MAX - found.end));
            let mut first = true;
            for found in found {
                if self.lexicon.is_negated(self.tokens, found.start) {
                    forbidden.push((found.start, self.words(found.start, found.end)));
                    self.used.extend(found.start..found.end);
                    continue;
                }
                self.used.extend(found.start..found.end);
                if step.output {
                    // Short ones are about nothing else; in longer ones something may stand between.
                    let is_short = found.end - found.start <= 3;
                    self.ends.extend(if is_short { found.start } else { found.last }..found.end);
                    self.ends.insert(found.start);
                }
                if first && !steps.iter().any(|(_, known)| known.kind == step.kind) {
                    let words = self.words(found.start, found.end);
                    steps.push((found.start, Step { kind: step.kind.clone(), verb: step.verb.clone(), words }));
                    first = false;
                }
            }
        }
        forbidden.sort();
        forbidden.dedup_by(|one, other| one.0 == other.0);
        (settled(steps), forbidden.into_iter().map(|(_, words)| words).collect())
    }

    /// Where what it works on comes from. The first is the main one; further ones count where they are named exactly. Each comes
    /// with the step that gets it, unless another step takes care of that.
    fn sources(&mut self, steps: &mut Vec<(usize, Step)>, begin: usize, apart: &BTreeSet<usize>) -> Vec<Part> {
        let mut found: Vec<(usize, usize, &lexicon::Group)> = Vec::new();
        for source in &self.lexicon.sources {
            for place in source.patterns.iter().flat_map(|pattern| pattern.all(self.tokens)) {
                let is_free = (place.start..place.end).any(|at| !self.ends.contains(&at) && !apart.contains(&at));
                if place.end > begin && is_free && !self.lexicon.is_negated(self.tokens, place.start) && self.origin(place.start) != Origin::Destination {
                    found.push((place.start, place.end, source));
                }
            }
        }
        // "web form" is a form, and nothing of the web.
        let spans: Vec<(usize, usize)> = found.iter().map(|(start, end, _)| (*start, *end)).collect();
        found.retain(|(start, end, _)| !spans.iter().any(|(from, to)| from <= start && end <= to && to - from > end - start));
        // What comes "from" somewhere says best where it comes from, then what names a place exactly, then what stands first.
        let rank = |origin: Origin, kind: &str| match (origin, kind) {
            (Origin::From, "server" | "api") => 3,
            (_, "server" | "api") => 5,
            (Origin::From, "records" | "web" | "comments") => 1,
            (_, "records" | "web" | "comments") => 4,
            (Origin::From, _) => 0,
            _ => 2,
        };
        found.sort_by_key(|(start, _, source)| (rank(self.origin(*start), &source.kind), *start));
        if found.first().is_some_and(|(_, _, first)| first.kind == "files")
            && let Some(sheet) = found.iter().position(|(_, _, source)| source.kind == "spreadsheet")
        {
            let sheet = found.remove(sheet);
            found.insert(0, sheet);
        }
        let mut parts: Vec<Part> = Vec::new();
        for (start, end, source) in found {
            self.used.extend(start..end);
            let is_main = parts.is_empty();
            if parts.iter().any(|part| part.kind == source.kind) {
                continue;
            }
            parts.push(Part { kind: source.kind.clone(), words: self.words(start, end) });
            let is_taken = steps.iter().any(|(_, step)| self.lexicon.steps.iter().any(|known| known.kind == step.kind && known.takes.contains(&source.kind)));
            let is_there = steps.iter().any(|(_, step)| step.kind == source.with);
            let is_exact = is_main || matches!(source.kind.as_str(), "mail" | "chat" | "database");
            if is_exact && !is_taken && !is_there {
                let verb = reading_verb(&source.with).to_owned();
                // It is got before anything else is done with it.
                let at = steps.iter().map(|(at, _)| *at).min().unwrap_or(start).min(start);
                steps.insert(0, (at, Step { kind: source.with.clone(), verb, words: self.words(start, end) }));
            }
        }
        // Who answers in a chat answers there, and not by mail.
        if parts.iter().any(|part| part.kind == "chat") {
            let answers =
                |step: &Step| step.kind == "send_mail" && ["answer", "repl", "respond"].iter().any(|word| step.words.to_lowercase().starts_with(word));
            for (_, step) in steps.iter_mut().filter(|(_, step)| answers(step)) {
                (step.kind, step.verb) = ("post_chat".to_owned(), "chat.post".to_owned());
            }
        }
        parts
    }

    /// What the words before a place say about it.
    fn origin(&self, at: usize) -> Origin {
        let mut back = at;
        for _ in 0..4 {
            if back == 0 || self.tokens.get(back).is_none_or(|token| token.before != Break::No) {
                return Origin::Unsaid;
            }
            back -= 1;
            match self.tokens.get(back).map(|token| token.text.as_str()) {
                Some("from" | "in" | "on" | "through" | "across" | "inside" | "within") => return Origin::From,
                Some("to" | "into" | "onto" | "as") => {
                    let before = back.checked_sub(1).and_then(|before| self.tokens.get(before)).map_or("", |token| token.text.as_str());
                    let is_answer = matches!(
                        before,
                        "respond"
                            | "responds"
                            | "reply"
                            | "replies"
                            | "listen"
                            | "listens"
                            | "according"
                            | "access"
                            | "answers"
                            | "subscribe"
                            | "changes"
                            | "react"
                            | "reacts"
                    );
                    let is_each = self.tokens.get(back + 1).is_some_and(|token| matches!(token.text.as_str(), "every" | "each" | "all" | "new" | "incoming"));
                    return if is_answer || is_each { Origin::Unsaid } else { Origin::Destination };
                }
                // What is only talked about is not read.
                Some("about")
                    if matches!(
                        self.tokens.get(back.wrapping_sub(1)).map(|token| token.text.as_str()),
                        Some("post" | "posts" | "tweets" | "article" | "blog" | "newsletter" | "joke" | "video")
                    ) =>
                {
                    return Origin::Destination;
                }
                Some("by" | "with" | "and" | "for" | "of" | "that" | "which" | "about") | None => return Origin::Unsaid,
                _ => {}
            }
        }
        Origin::Unsaid
    }

    /// Whether enough of the words are English.
    fn is_english(&self) -> bool {
        let words: Vec<&Token> = self.tokens.iter().filter(|token| token.kind == Kind::Word).collect();
        let english = words.iter().filter(|token| self.lexicon.is_english(&token.text)).count();
        let is_short = !words.is_empty() && words.len() < 3;
        english > 0 && (is_short || english * 4 >= words.len()) || (is_short && words.iter().all(|word| word.text.is_ascii()))
    }

    /// Parts of the sentence that say what must not be done, as a whole.
    fn refused(&mut self, begin: usize, limiting: &BTreeSet<usize>, forbidden: &mut Vec<String>) -> BTreeSet<usize> {
        let mut refused = BTreeSet::new();
        for (start, end) in self.clauses(begin) {
            let next = |at: usize| self.tokens.get(at + 1).map_or("", |token| token.text.as_str());
            let first = (start..end.min(start + 4)).find(|at| self.tokens.get(*at).is_some_and(|token| Lexicon::is_negation(&token.text, next(*at))));
            let Some(first) = first else { continue };
            let is_condition = (start..first).any(|at| {
                self.tokens
                    .get(at)
                    .is_some_and(|token| matches!(token.text.as_str(), "if" | "when" | "whether" | "that" | "which" | "unless" | "who" | "is" | "are" | "does"))
            });
            let is_limit = (first..end).any(|at| limiting.contains(&at));
            let leads = self.tokens.get(first + 1).map_or("", |token| token.text.as_str());
            if is_condition || is_limit || matches!(leads, "only" | "forget" | "more" | "later") {
                continue;
            }
            refused.extend(start..end);
            self.used.extend(start..end);
            let is_last_word = self.tokens.get(first).is_some_and(|token| token.is("nothing"));
            let words = self.words(if is_last_word { start } else { first }, end);
            forbidden.retain(|known| !words.contains(known.as_str()));
            forbidden.push(words);
        }
        refused
    }

    /// The parts of the sentence between commas and ends.
    fn clauses(&self, begin: usize) -> Vec<(usize, usize)> {
        let mut clauses = Vec::new();
        let mut start = begin;
        while start < self.tokens.len() {
            let end =
                (start + 1..self.tokens.len()).find(|at| self.tokens.get(*at).is_some_and(|token| token.before != Break::No)).unwrap_or(self.tokens.len());
            clauses.push((start, end));
            start = end;
        }
        clauses
    }

    fn data(&mut self, sources: &[Part]) -> Vec<Touched> {
        let mut touched = Vec::new();
        for data in &self.lexicon.data {
            let Some(found) = Lexicon::first(&data.patterns, self.tokens) else { continue };
            // "health check" is about no patient.
            let words = self.words(found.start, found.end);
            self.used.extend(found.start..found.end);
            touched.push(Touched { kind: data.kind.clone(), why: data.with.replace("{words}", &words), words });
        }
        if let Some(mail) = sources.iter().find(|source| source.kind == "mail")
            && !touched.iter().any(|data| data.kind == "personal")
        {
            touched.insert(0, Touched { kind: "personal".to_owned(), words: mail.words.clone(), why: "e-mails have names and addresses of people".to_owned() });
        }
        touched
    }

    /// Parts of the sentence from which nothing was understood.
    fn unclear(&self, begin: usize) -> Vec<String> {
        let mut unclear = Vec::new();
        for (start, end) in self.clauses(begin) {
            let content = (start..end)
                .filter(|at| self.tokens.get(*at).is_some_and(|token| token.kind == Kind::Word && !self.lexicon.stops.contains(&token.text)))
                .count();
            if content >= 2 && !(start..end).any(|at| self.used.contains(&at)) {
                unclear.push(format!("\"{}\"", self.words(start, end)));
            }
        }
        unclear.truncate(UNCLEAR_MAX);
        unclear
    }

    /// Templates that are like it, and policies that go with it.
    fn choose(&self, sketch: &mut Sketch) {
        sketch.templates = self.matches(sketch);
        let mut chosen: Vec<Chosen> = Vec::new();
        for (policy, words) in &self.lexicon.policies {
            let by_data = sketch.data.iter().find(|data| policy.data.contains(&data.kind)).map(|data| data.words.clone());
            let by_step = || sketch.steps.iter().find(|step| policy.steps.contains(&step.kind)).map(|step| step.words.clone());
            let by_framework = || sketch.frameworks.iter().find(|framework| policy.frameworks.contains(framework)).cloned();
            let by_word = || Lexicon::first(words, self.tokens).map(|found| self.words(found.start, found.end));
            if let Some(reason) = by_data.or_else(by_step).or_else(by_framework).or_else(by_word) {
                chosen.push(Chosen { template: policy.template.clone(), values: Map::new(), why: policy.why.replace("{words}", &reason) });
            }
        }
        if let Some(asked) = &sketch.approval
            && !chosen.iter().any(|chosen| chosen.template == "human-review")
        {
            chosen.push(Chosen { template: "human-review".to_owned(), values: Map::new(), why: format!("a person has to agree ({asked})") });
        }
        if let Some(best) = sketch.templates.first().and_then(|best| self.templates.get(&best.id)) {
            for policy in &best.policies {
                if !chosen.iter().any(|chosen| chosen.template == *policy) {
                    chosen.push(Chosen { template: policy.clone(), values: Map::new(), why: format!("it goes with agents such as {}", best.id) });
                }
            }
        }
        for limit in &sketch.limits {
            let Some((template, name, is_whole)) = policy_of(limit) else { continue };
            let value = if is_whole { Value::from(whole(limit.most.clamp(1.0, 999_999.0).round()).unwrap_or(1)) } else { Value::from(limit.most) };
            let why = format!("it says a limit ({})", limit.words);
            match chosen.iter_mut().find(|chosen| chosen.template == template) {
                Some(held) => {
                    held.values.insert(name.to_owned(), value);
                    held.why = format!("{}; {why}", held.why);
                }
                None => chosen.push(Chosen { template: template.to_owned(), values: [(name.to_owned(), value)].into_iter().collect(), why }),
            }
        }
        sketch.policies = chosen;
    }

    fn matches(&self, sketch: &Sketch) -> Vec<Match> {
        let mut matches = Vec::new();
        let words: BTreeSet<&str> = self.tokens.iter().map(|token| token.text.as_str()).collect();
        for template in self.templates.all() {
            let mut score = 0;
            let mut why = Vec::new();
            let mut add = |points: Option<&u32>, reason: String| {
                if let Some(points) = points {
                    score += points;
                    why.push(reason);
                }
            };
            for step in &sketch.steps {
                add(template.like.steps.get(&step.kind), format!("{} ({})", step.kind, step.words));
            }
            if let Some(source) = &sketch.source {
                add(template.like.sources.get(&source.kind), format!("source {}", source.kind));
            }
            for word in &words {
                add(template.like.words.get(*word), format!("\"{word}\""));
            }
            if score > 0 {
                matches.push(Match { id: template.id.clone(), score, share: 0.0, why });
            }
        }
        let all: u32 = matches.iter().map(|found| found.score).sum();
        for found in &mut matches {
            found.share = (f64::from(found.score) / f64::from(all.max(1)) * 100.0).round() / 100.0;
        }
        // The order of the templates decides between equals.
        matches.sort_by_key(|found| std::cmp::Reverse(found.score));
        matches.truncate(3);
        matches
    }
}

/// The template of a policy that keeps a limit, its gap for it, and whether that takes whole numbers only.
fn policy_of(limit: &Limit) -> Option<(&'static str, &'static str, bool)> {
    match (limit.what.as_str(), limit.per.as_deref()) {
        ("calls" | "pages" | "messages" | "emails" | "queries", Some("minute")) => Some(("rate-limiting", "calls_per_minute", true)),
        ("queries" | "calls", Some("hour")) => Some(("rate-limiting", "queries_per_hour", true)),
        ("cost", Some("day")) => Some(("cost-control", "daily_budget", false)),
        ("cost", Some("run") | None) => Some(("cost-control", "approve_above", false)),
        _ => None,
    }
}

/// Whether a policy keeps a limit.
pub(super) fn is_policy(limit: &Limit) -> bool {
    policy_of(limit).is_some()
}

/// A small whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be a small whole number")]
pub(super) fn whole(number: f64) -> Option<u32> {
    (number.fract() == 0.0 && (0.0..1e6).contains(&number)).then_some(number as u32)
}

fn reading_verb(step: &str) -> &'static str {
    match step {
        "read_mail" => "mail.read",
        "read_files" => "file.read",
        "fetch_url" => "net.fetch",
        "query_database" => "database.query",
        "read_chat" => "chat.read",
        "read_calendar" => "calendar.read",
        "call_api" => "api.call",
        _ => "record.read",
    }
}
