//! Making an agent: of one sentence, of a template, or of what is given piece by piece.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::attach::{self, Shown};
use super::define::{AgentOut, check, free_name, name_of, own_name, runner_of, timing};
use super::model::{Budget, Definition, IfMissed, Need, Runner, Status};
use super::place::Place;
use super::rows::{self, AgentRow};
use super::runner::{IfInterrupted, Language};
use super::schedule::Schedule;
use super::sentence::{self, DESCRIPTION_BYTES_MAX, Given, Match, Planned, Sketch, Touched};
use super::step::Step;
use super::suggest::{self, Hints};
use super::{MADE, compose, deploy, guard, template, words};
use crate::call::Cx;
use crate::limits::{AGENTS_MAX, CONTENT_BYTES_MAX};
use crate::{Error, Result, check_text, format_time};

/// Make an agent that the desk runs. One sentence is enough: its name, schedule, steps, limits and policies are read out of it, by
/// words; a client that offers sampling is asked what its model suggests. The answer says what was not understood and what it still
/// needs. What is given beside the sentence counts more. It stays a draft until it is deployed. Its steps are operations of the desk,
/// called as that agent, each decided like any other act.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CreateAgent {
    /// What it is for, in a sentence or a short paragraph; only with a template it may be left out.
    description: Option<String>,
    /// Its name: letters, digits, '-' and '_'; made from the description if not given.
    name: Option<String>,
    /// Make it from this template, such as `email-assistant`; agents_list_templates shows them. Values for its gaps go into `params`.
    template: Option<String>,
    /// What it does, one step after another; read out of the description if not given.
    steps: Option<Vec<Step>>,
    /// Values that its steps use as `{{params.NAME}}`.
    #[serde(default)]
    params: Map<String, Value>,
    /// The policies that hold for it: names of policies of the desk, or of templates; chosen by the description if not given.
    policies: Option<Vec<String>>,
    /// What it does, where that is not steps: `{"kind": "command", "command": ["python3", "main.py"], "files": {"main.py": "…"}}` or
    /// `{"kind": "cli", "client": "claude-code", "prompt": "…"}` (also `codex`, `gemini`), both with `given` (environment, network,
    /// read).
    #[schemars(with = "Option<Map<String, Value>>")]
    runner: Option<Runner>,
    /// Makes a small project in this language, with a test, instead of steps: python, typescript, javascript or go. Plain calls of operations
    /// become its calls; what is more than that is written by whoever wants it, and needed before it is deployed.
    language: Option<Language>,
    /// When it runs by itself, as cron: five fields, or six with seconds first; or a short name such as `@daily`. Read out of the
    /// description if not given; an empty text for none.
    schedule: Option<String>,
    /// The time zone of the schedule, such as `Europe/Berlin`; UTC if not given.
    time_zone: Option<String>,
    /// Each run is put off by up to so many seconds, always the same ones for this agent.
    #[serde(default)]
    jitter_seconds: u32,
    /// What happens to moments that went by while the desk was away; `skip` if not given.
    #[serde(default)]
    missed: IfMissed,
    /// Whether a run may begin while the one before is still under way.
    #[serde(default)]
    overlap: bool,
    /// Whether deploying it waits for people whatever the trust.
    #[serde(default)]
    approval_required: bool,
    /// What a run may use up.
    budget: Option<Budget>,
    /// Whether its runs may start other agents.
    #[serde(default)]
    may_start: bool,
    /// What becomes of a run that is left in the middle, because its server ended or was lost: `resume` goes on without doing a step
    /// twice, and is what holds for steps if nothing is given; `again` begins anew; `end` tells it as ambiguous, and is what holds for
    /// programs, which cannot be resumed.
    if_interrupted: Option<IfInterrupted>,
    /// What a model made of the description: the text of a JSON object with any of name, schedule, timeZone, params, steps, policies and
    /// approvalRequired. It counts less than what is given, and more than what is read by words; each field is checked, what cannot be is
    /// left out and said, and nothing is taken away by it. A client that offers sampling is asked for it by the desk.
    suggested: Option<String>,
    #[serde(skip)]
    pub(super) hints: Hints,
}

impl CreateAgent {
    /// Whether the caller said this itself, so that nobody else does.
    pub(super) fn gives(&self, field: &str) -> bool {
        match field {
            "name" => self.name.is_some(),
            "schedule" => self.schedule.is_some(),
            "timeZone" => self.time_zone.is_some(),
            "policies" => self.policies.is_some(),
            "steps" => self.steps.is_some() || self.template.is_some() || self.runner.is_some() || self.language.is_some(),
            _ => false,
        }
    }

    /// One of which only what it is for is known; with `without_steps` nothing is read out of that.
    pub(super) fn described(description: String, without_steps: bool) -> Self {
        Self {
            description: Some(description),
            name: None,
            template: None,
            steps: without_steps.then(Vec::new),
            params: Map::new(),
            policies: None,
            runner: None,
            language: None,
            schedule: Some(String::new()),
            time_zone: None,
            jitter_seconds: 0,
            missed: IfMissed::default(),
            overlap: false,
            approval_required: false,
            budget: None,
            may_start: false,
            if_interrupted: None,
            suggested: None,
            hints: Hints::default(),
        }
    }
}

/// An agent that was made, with what was read out of its description.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Made {
    /// All of this in words, for people.
    message: String,
    #[serde(flatten)]
    agent: AgentOut,
    #[serde(flatten)]
    told: Told,
    /// What to do next.
    next_steps: Vec<String>,
}

/// See what agents_create_agent would make of the same input, without making anything. Change what you give until it is what you
/// want, then make it.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct SketchAgent(CreateAgent);

/// An agent that is not made yet.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sketched {
    /// The name that it would have.
    name: String,
    /// What it would be.
    definition: Definition,
    /// Its steps in words.
    step_words: Vec<String>,
    #[serde(flatten)]
    told: Told,
}

/// What was read out of a description, and what follows from it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Told {
    /// When it would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<WouldRun>,
    /// The policies that hold for it, each with its reason.
    policies: Vec<Shown>,
    /// Data that it touches, each with the words that say so.
    data: Vec<Touched>,
    /// Templates that are like it, the best first.
    templates: Vec<Match>,
    /// What it needs before it can be deployed.
    needs: Vec<Need>,
    /// What the description left open, and how it was taken.
    assumed: Vec<String>,
    /// What of the description was not understood.
    not_understood: Vec<String>,
}

/// An agent as it was read, before anything is written.
pub(super) struct Drafted {
    name: String,
    definition: Definition,
    data: Vec<Touched>,
    templates: Vec<Match>,
    /// The frameworks that the description names.
    frameworks: Vec<String>,
    pub(super) assumed: Vec<String>,
    pub(super) not_understood: Vec<String>,
    /// What of it a model suggested.
    pub(super) suggested: Vec<&'static str>,
}

/// When an agent would run.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WouldRun {
    /// The cron expression.
    cron: String,
    /// The time zone.
    time_zone: String,
    /// In words.
    says: String,
    /// The next three moments.
    next_runs: Vec<String>,
}

/// What a description says, and what of it is only assumed.
struct Read {
    sketch: Option<Sketch>,
    template: Option<template::AgentTemplate>,
    description: String,
    not_understood: Vec<String>,
}

fn read(cx: &Cx<'_, '_>, input: &CreateAgent) -> Result<Read> {
    let template = input.template.as_deref().map(|name| cx.templates.find(name)).transpose()?;
    let description = match (&input.description, &template) {
        (Some(description), _) => description.clone(),
        (None, Some(template)) => template.task.clone(),
        (None, None) => return Err(Error::invalid("description", "must say what the agent is for")),
    };
    check_text("description", &description, CONTENT_BYTES_MAX)?;
    if description.trim().is_empty() {
        return Err(Error::invalid("description", "must say what the agent is for"));
    }
    // A template says what such an agent does; the description says more about this one.
    let text = match &template {
        Some(template) if input.description.is_some() => format!("{} {description}", template.task),
        _ => description.clone(),
    };
    if text.len() > DESCRIPTION_BYTES_MAX {
        if input.steps.is_none() {
            return Err(Error::invalid("description", format!("is longer than the {DESCRIPTION_BYTES_MAX} bytes that are read for steps"))
                .hint("say it in a short paragraph, or give steps"));
        }
        let why = "the description is too long to be read; only what was given beside it counts".to_owned();
        return Ok(Read { sketch: None, template, description, not_understood: vec![why] });
    }
    let sketch = sentence::sketch_among(&cx.templates, &text, &Given::default(), "UTC")?;
    let not_understood = sketch.not_understood.clone();
    Ok(Read { sketch: Some(sketch), template, description, not_understood })
}

/// The policies that hold for it: those that were given, or those that the description and the template ask for; and those that a model
/// suggested beside them.
fn policies(cx: &mut Cx<'_, '_>, input: &CreateAgent, read: &Read, definition: &mut Definition) -> Result<()> {
    chosen_policies(cx, input, read, definition)?;
    for id in &input.hints.policies {
        if !definition.policies.iter().any(|held| held.policy.id == *id) {
            attach::put(definition, attach::find(cx, "policies", id, &Map::new(), "a model suggested it for this description")?)?;
        }
    }
    Ok(())
}

fn chosen_policies(cx: &mut Cx<'_, '_>, input: &CreateAgent, read: &Read, definition: &mut Definition) -> Result<()> {
    if let Some(given) = &input.policies {
        for id in given {
            attach::put(definition, attach::find(cx, "policies", id, &Map::new(), "it was given")?)?;
        }
        return Ok(());
    }
    for id in read.template.iter().flat_map(|template| &template.policies) {
        let why = format!("it belongs to the template {}", read.template.as_ref().map_or("", |template| template.id.as_str()));
        attach::put(definition, attach::find(cx, "policies", id, &Map::new(), &why)?)?;
    }
    for chosen in read.sketch.iter().flat_map(|sketch| &sketch.policies) {
        // Who gives the steps knows what it does; then what agents like it often have does not count.
        let is_by_likeness = chosen.why.starts_with("it goes with agents such as");
        let is_there = definition.policies.iter().any(|held| held.policy.id == chosen.template);
        if !(is_there || is_by_likeness && input.steps.is_some()) {
            attach::put(definition, attach::find(cx, "policies", &chosen.template, &chosen.values, &chosen.why)?)?;
        }
    }
    Ok(())
}

/// Puts a limit of the sentence into the budget of a run, if that counts it.
fn budgeted(limit: &sentence::Limit, budget: &mut Budget) -> bool {
    let (Some(most), Some("run")) = (sentence::whole(limit.most), limit.per.as_deref()) else { return false };
    let seconds = |each: u32| most.saturating_mul(each).clamp(1, 86_400);
    match limit.what.as_str() {
        "calls" => budget.calls = most.clamp(1, 100_000),
        "seconds" => budget.seconds = seconds(1),
        "minutes" => budget.seconds = seconds(60),
        "hours" => budget.seconds = seconds(3_600),
        _ => return false,
    }
    true
}

/// Takes the limits of the sentence that a budget keeps into it, and names those that nothing keeps: such a limit is worse than none if nobody
/// says so.
fn limits(input: &CreateAgent, read: &Read, mut kept: BTreeSet<usize>, budget: &mut Budget) -> Vec<String> {
    let all = read.sketch.as_ref().map_or(&[][..], |sketch| &sketch.limits);
    if input.budget.is_none() {
        kept.extend(all.iter().enumerate().filter(|(_, limit)| budgeted(limit, budget)).map(|(at, _)| at));
    }
    let is_kept = |(at, limit): &(usize, &sentence::Limit)| kept.contains(at) || (input.policies.is_none() && sentence::is_policy(limit));
    let open = all.iter().enumerate().filter(|limit| !is_kept(limit));
    open.map(|(_, limit)| format!("the limit \"{}\" is kept by nothing: neither steps, budgets nor policies count that", limit.words)).collect()
}

/// When it runs, in which time zone, and what of that is only assumed: as it is given, as a model suggests, as it was read.
fn when(input: &CreateAgent, hints: &Hints, planned: Option<&Planned>) -> (Option<String>, Option<String>, Vec<String>) {
    let own = |cron: &String| Some(cron.clone()).filter(|cron| !cron.trim().is_empty());
    let read_zone = || planned.map(|planned| planned.time_zone.clone());
    let zone = input.time_zone.clone();
    match (&input.schedule, &hints.schedule) {
        (Some(cron), _) => (own(cron), zone, Vec::new()),
        (None, Some(cron)) => match own(cron) {
            Some(cron) => (Some(cron), zone.or_else(|| hints.time_zone.clone()).or_else(read_zone), Vec::new()),
            None => (None, zone, Vec::new()),
        },
        (None, None) => {
            let assumed = planned.map(|planned| planned.assumed.clone()).unwrap_or_default();
            (planned.map(|planned| planned.cron.clone()), zone.or_else(|| hints.time_zone.clone()).or_else(read_zone), assumed)
        }
    }
}

/// What an agent of this input is. It reads only, so that a sketch is what is made.
fn draft(cx: &mut Cx<'_, '_>, mut input: CreateAgent) -> Result<Drafted> {
    match input.suggested.take() {
        Some(answer) => suggest::draft(cx, input, &answer),
        None => drafted(cx, input),
    }
}

/// The same, with what was taken of a model's answer.
pub(super) fn drafted(cx: &mut Cx<'_, '_>, mut input: CreateAgent) -> Result<Drafted> {
    let hints = input.hints.clone();
    let read = read(cx, &input)?;
    let planned = read.sketch.as_ref().and_then(|sketch| sketch.schedule.clone());
    let (cron, zone, mut assumed) = when(&input, &hints, planned.as_ref());
    let schedule = timing(cron, zone, input.jitter_seconds, input.missed, input.overlap)?;
    let mut given = std::mem::take(&mut input.params);
    for (name, value) in hints.params {
        given.entry(name).or_insert(value);
    }
    let reads = input.runner.is_none();
    let mut composed = match (&input.steps, hints.steps, &read.template, &read.sketch) {
        (None, Some(steps), ..) => compose::suggested(steps, given),
        (None, None, Some(template), sketch) if reads => compose::from_template(template, sketch.as_ref(), given)?,
        (None, None, None, Some(sketch)) if reads => compose::compose(cx, sketch, &read.description, &given)?,
        (steps, ..) => compose::Composed { steps: steps.clone().unwrap_or_default(), params: given, ..compose::Composed::default() },
    };
    if let Some(language) = input.language.filter(|_| reads && input.steps.as_ref().is_none_or(Vec::is_empty)) {
        composed = compose::for_project(composed, language);
    }
    assumed.extend(composed.assumed);
    let mut budget = input.budget.clone().unwrap_or_default();
    let mut not_kept = limits(&input, &read, composed.kept, &mut budget);
    let asks = read.template.as_ref().is_some_and(|template| template.approval) || read.sketch.as_ref().is_some_and(|sketch| sketch.approval.is_some());
    let mut definition = Definition {
        task: read.description.clone(),
        runner: runner_of(composed.steps, input.runner.take(), input.language, &read.description)?,
        schedule,
        approval_required: input.approval_required || asks || hints.approval_required,
        budget,
        template: read.template.as_ref().map(|template| template.id.clone()),
        params: composed.params,
        imported: None,
        may_start: input.may_start || read.template.as_ref().is_some_and(|template| template.may_start),
        if_interrupted: input.if_interrupted.or_else(|| read.template.as_ref().and_then(|template| template.if_interrupted)),
        policies: Vec::new(),
        needs: composed.needs,
    };
    policies(cx, &input, &read, &mut definition)?;
    if let (Some(sketch), Some(description)) = (&read.sketch, &input.description) {
        not_kept.extend(compose::without_effect(sketch, description, &definition));
    }
    check(&definition)?;
    let name = if let Some(name) = &input.name {
        own_name(cx, name)?
    } else if let Some(name) = &hints.name {
        free_name(cx, name)?
    } else {
        let wanted = read.sketch.as_ref().map_or_else(|| name_of(&read.description), |sketch| sketch.name.clone());
        free_name(cx, if wanted.is_empty() { "agent" } else { &wanted })?
    };
    let (templates, data, frameworks) =
        read.sketch.map(|sketch| (sketch.templates.into_iter().take(3).collect(), sketch.data, sketch.frameworks)).unwrap_or_default();
    let not_understood = read.not_understood.into_iter().chain(not_kept).collect();
    Ok(Drafted { name, definition, data, templates, frameworks, assumed, not_understood, suggested: Vec::new() })
}

pub(super) fn sketch(cx: &mut Cx<'_, '_>, SketchAgent(input): SketchAgent) -> Result<Sketched> {
    let mut drafted = draft(cx, input)?;
    rows::sealed(&drafted.definition)?;
    if let Some(most) = drafted.definition.schedule.as_ref().map(|timing| timing.jitter_seconds).filter(|most| *most > 0) {
        drafted.assumed.push(format!("the next runs are those of the schedule; once it is made, each is put off by its own share of {most} seconds"));
    }
    let told = told(cx, &drafted)?;
    let Drafted { name, definition, .. } = drafted;
    let step_words = words::of(definition.runner.steps());
    Ok(Sketched { name, definition: if cx.actor.is_agent() { definition.for_agents() } else { definition }, step_words, told })
}

pub(super) fn create(cx: &mut Cx<'_, '_>, input: CreateAgent) -> Result<Made> {
    guard::not_from_a_run(cx)?;
    let drafted = draft(cx, input)?;
    let mut told = told(cx, &drafted)?;
    let (suggested, frameworks) = (drafted.suggested.clone(), drafted.frameworks.clone());
    let (row, text) = built(cx, drafted)?;
    if let Some(schedule) = &mut told.schedule {
        schedule.next_runs = deploy::due_times(&row, cx.now(), 3)?.into_iter().map(format_time).collect();
    }
    rows::insert(cx, &row, &text)?;
    let mut payload = json!({ "definition": row.definition.for_agents() });
    if let Some(fields) = payload.as_object_mut().filter(|_| !suggested.is_empty()) {
        fields.insert("suggested".to_owned(), json!(suggested));
    }
    rows::tell(cx, &row, MADE, payload)?;
    let next_steps = next_steps(&row.definition, &told, &frameworks);
    let message = in_words(&row, &told, &next_steps);
    Ok(Made { message, agent: AgentOut::of(&row, cx)?, told, next_steps })
}

/// An agent of this input as it would be stored; nothing is.
pub(super) fn build(cx: &mut Cx<'_, '_>, input: CreateAgent) -> Result<AgentRow> {
    let drafted = draft(cx, input)?;
    Ok(built(cx, drafted)?.0)
}

pub(super) const COUNT: &str = "select count(*) from agent_definition where deleted_at is null";

/// The row of a draft and the text of its definition, if there is room for one more.
fn built(cx: &mut Cx<'_, '_>, drafted: Drafted) -> Result<(AgentRow, String)> {
    let count: i64 = cx.tx.one(COUNT, &[])?.get(0)?;
    if count >= AGENTS_MAX {
        return Err(Error::limited(format!("there are {AGENTS_MAX} agents already"), 60_000).hint("delete those that nobody needs"));
    }
    let (text, digest) = rows::sealed(&drafted.definition)?;
    let now = cx.now();
    let row = AgentRow {
        id: cx.new_id(),
        agent: drafted.name,
        status: Status::Draft,
        version: 1,
        digest,
        definition: drafted.definition,
        creator_kind: cx.actor.kind,
        creator: cx.actor.id.clone(),
        due_at: None,
        place: Place::default(),
        request: None,
        created_at: now,
        updated_at: now,
        deployed_at: None,
        deleted_at: None,
    };
    Ok((row, text))
}

/// What was read and follows from it, for people and programs.
fn told(cx: &Cx<'_, '_>, drafted: &Drafted) -> Result<Told> {
    let definition = &drafted.definition;
    let schedule = match &definition.schedule {
        None => None,
        Some(timing) => {
            let read = Schedule::read(&timing.cron, &timing.time_zone)?;
            let next_runs = read.next(cx.now(), 3).into_iter().map(format_time).collect();
            Some(WouldRun { cron: timing.cron.clone(), time_zone: timing.time_zone.clone(), says: read.words(), next_runs })
        }
    };
    Ok(Told {
        schedule,
        policies: definition.policies.iter().map(|held| Shown::of(held, !cx.actor.is_agent())).collect(),
        data: drafted.data.clone(),
        templates: drafted.templates.clone(),
        needs: definition.open_needs().cloned().collect(),
        assumed: drafted.assumed.clone(),
        not_understood: drafted.not_understood.clone(),
    })
}

fn next_steps(definition: &Definition, told: &Told, frameworks: &[String]) -> Vec<String> {
    let mut next = Vec::new();
    if !told.needs.is_empty() || (definition.runner.steps().is_empty() && !definition.runner.is_program()) {
        next.push("fill in what it needs with agents_update_agent".to_owned());
    }
    next.push("look at what it would do with agents_test_agent".to_owned());
    next.extend(frameworks.iter().map(|framework| format!("check it with agents_check_compliance, framework {framework}")));
    next.push("let it run with agents_deploy_agent".to_owned());
    next
}

fn in_words(row: &AgentRow, told: &Told, next_steps: &[String]) -> String {
    let definition = &row.definition;
    let mut lines = vec![format!("{} is a draft ({}).", row.agent, row.id), format!("Task: {}", definition.task)];
    lines.push(match &told.schedule {
        Some(schedule) => format!("Runs {}; next: {}", schedule.says, schedule.next_runs.join(", ")),
        None => "Runs when somebody starts it.".to_owned(),
    });
    if definition.approval_required {
        lines.push("An agent that deploys it waits for a person.".to_owned());
    }
    lines.extend(definition.runner.steps().iter().enumerate().map(|(number, step)| format!("{}. {}: {}", number + 1, step.id, step.does)));
    lines.extend(told.policies.iter().map(|policy| format!("Policy {}: {}", policy.id, policy.reason)));
    lines.extend(told.data.iter().map(|data| format!("Touches {} data: {}", data.kind, data.words)));
    lines.extend(told.templates.iter().map(|template| format!("Like the template {}", template.id)));
    lines.extend(told.needs.iter().map(|need| format!("Needs {}", need.what)));
    lines.extend(told.assumed.iter().map(|assumed| format!("Assumed: {assumed}")));
    lines.extend(told.not_understood.iter().map(|unclear| format!("Not understood: {unclear}")));
    lines.push(format!("Next: {}.", next_steps.join("; ")));
    lines.join("\n")
}
