//! From a sketch to steps that run. What the desk can do becomes a step; what it cannot (a mailbox, a database, a summary) becomes a
//! need, with what to mount or to fill in, and the steps behind it work on `{{input.items}}` until then.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::model::{Definition, Need};
use super::project;
use super::runner::Language;
use super::sentence::{self, Sketch, Step as Said};
use super::step::{Condition, Step};
use super::template::{self, AgentTemplate, ParameterKind};
use super::value;
use crate::call::Cx;
use crate::gateway::{self, Served};
use crate::limits::FILE_READ_BYTES_MAX;
use crate::{Error, Result};

/// What came of a sketch.
#[derive(Default)]
pub(super) struct Composed {
    pub(super) steps: Vec<Step>,
    pub(super) params: Map<String, Value>,
    pub(super) needs: Vec<Need>,
    pub(super) assumed: Vec<String>,
    /// Limits of the sentence that these steps keep, by their place.
    pub(super) kept: BTreeSet<usize>,
}

/// Words by which a class of texts is known if nobody gives others.
const CLASSES: &[(&str, &[&str], &[&str])] = &[
    (
        "negative",
        &["negative", "complaint", "complaints", "angry", "unhappy", "dissatisfied"],
        &[
            "terrible",
            "awful",
            "bad",
            "disappointed",
            "disappointing",
            "angry",
            "complaint",
            "refund",
            "broken",
            "worst",
            "unacceptable",
            "not working",
            "cancel",
        ],
    ),
    ("urgent", &["urgent", "critical", "emergency"], &["urgent", "urgently", "asap", "immediately", "emergency", "critical", "deadline", "outage", "down"]),
    ("spam", &["spam", "abusive", "offensive"], &["viagra", "casino", "lottery", "winner", "crypto", "free money", "click here", "unsubscribe"]),
    ("positive", &["positive", "praise", "happy"], &["great", "excellent", "thanks", "thank you", "love", "perfect", "happy"]),
];

/// What a step of a sentence needs of a mounted server: the words that a tool's name has, and what it is for.
const TOOLS: &[(&str, &[&[&str]], &str)] = &[
    (
        "read_mail",
        &[&["mail", "email", "emails", "mails", "gmail", "outlook", "imap", "inbox", "messages"], &["read", "list", "search", "get", "fetch", "find"]],
        "reads mail",
    ),
    ("send_mail", &[&["mail", "email", "emails", "gmail", "outlook", "smtp"], &["send", "reply"]], "sends mail"),
    ("draft", &[&["mail", "email", "gmail", "outlook", "draft"], &["draft", "create"]], "drafts mail"),
    ("query_database", &[&["query", "select", "sql"]], "asks a database"),
    ("read_chat", &[&["slack", "teams", "discord", "chat", "channel", "telegram"], &["read", "list", "history", "get", "search"]], "reads a chat"),
    ("post_chat", &[&["slack", "teams", "discord", "chat", "channel", "telegram"], &["post", "send"]], "posts to a chat"),
    ("read_calendar", &[&["calendar", "events", "event"], &["read", "list", "get", "search"]], "reads a calendar"),
    (
        "read_records",
        &[&["record", "records", "issues", "issue", "tickets", "ticket", "deals", "contacts", "crm", "comments"], &["read", "list", "search", "get", "query"]],
        "reads these records",
    ),
    (
        "update_records",
        &[&["record", "records", "issue", "ticket", "deal", "contact", "crm", "calendar", "event"], &["update", "create", "set", "edit", "write", "add"]],
        "changes these records",
    ),
    ("call_api", &[&["http", "api", "fetch", "request"]], "calls this interface"),
    ("publish", &[&["publish", "post", "tweet", "blog"]], "publishes"),
    ("pay", &[&["pay", "payment", "payments", "refund", "charge", "invoice"]], "moves money"),
    ("deploy", &[&["deploy", "release", "rollout"]], "deploys"),
    ("summarise", &[&["summarize", "summarise", "summary"]], "summarises"),
    ("translate", &[&["translate", "translation"]], "translates"),
    ("extract", &[&["extract", "parse"]], "extracts this"),
    ("transform", &[&["transform", "convert", "clean"]], "transforms this"),
    ("analyse", &[&["analyse", "analyze", "analysis"]], "analyses this"),
    ("moderate", &[&["moderate", "moderation"]], "moderates"),
];

/// The parameter that says how many items a run works on.
const MOST: &str = "most";
/// How many mails the connector `mail` reads at once, at most, and if nobody says.
const MAILS_MAX: u32 = 200;
const MAILS: u32 = 20;
/// The template of agents that make backups.
const BACKUP: &str = "backup-agent";
/// The tools of the connector `storage` that a backup is made, checked and tried with.
const BACKUP_TOOLS: [&str; 3] = ["back_up", "verify_backup", "test_restore"];

/// A limit of how many items one run works on: its place, how many, and whether that is about what goes out.
fn items_limit(sketch: &Sketch) -> Option<(usize, u32, bool)> {
    let sends = |kinds: &[&str]| sketch.steps.iter().any(|step| kinds.contains(&step.kind.as_str()));
    let reads = |kind: &str| sketch.source.as_ref().is_some_and(|source| source.kind == kind);
    sketch.limits.iter().enumerate().find_map(|(at, limit)| {
        let goes_out = match limit.what.as_str() {
            "emails" => sends(&["send_mail"]) && !reads("mail"),
            "messages" => sends(&["post_chat", "notify", "send_mail"]) && !reads("chat"),
            "files" | "records" | "pages" => false,
            _ => return None,
        };
        let most = sentence::whole(limit.most).filter(|_| limit.per.as_deref().is_none_or(|per| per == "run"))?;
        Some((at, most, goes_out))
    })
}

/// The steps of a template, with what fills its gaps. What has to be given and is not becomes a need.
pub(super) fn from_template(template: &AgentTemplate, sketch: Option<&Sketch>, mut given: Map<String, Value>) -> Result<Composed> {
    let mut made = Composed { steps: template.steps.clone(), ..Composed::default() };
    let counts = template.params.iter().any(|param| param.name == MOST && param.kind == ParameterKind::Number);
    if let Some((at, most, _)) = sketch.and_then(items_limit).filter(|_| counts && !given.contains_key(MOST)) {
        given.insert(MOST.to_owned(), Value::from(most));
        made.kept.insert(at);
    }
    if let Some(name) = given.keys().find(|name| !template.params.iter().any(|param| param.name == **name)) {
        let all: Vec<&str> = template.params.iter().map(|param| param.name.as_str()).collect();
        return Err(Error::invalid("params", format!("{} has no parameter {name:?}; it has {}", template.id, all.join(", "))));
    }
    for param in &template.params {
        match given.get(&param.name).filter(|value| !value.is_null()) {
            Some(value) => {
                param.check(value).map_err(|why| Error::invalid("params", why))?;
                made.params.insert(param.name.clone(), value.clone());
            }
            None if param.default.is_some() || param.optional => {
                made.params.insert(param.name.clone(), param.default.clone().unwrap_or(Value::Null));
            }
            None => {
                let what = format!("params.{}: {}", param.name, param.about);
                made.needs.push(Need { what, param: Some(param.name.clone()), words: String::new() });
            }
        }
    }
    Ok(made)
}

/// Steps that a model suggested. Parameters that they use and nobody gave are needs.
pub(super) fn suggested(steps: Vec<Step>, params: Map<String, Value>) -> Composed {
    let used = serde_json::to_value(&steps).ok().and_then(|steps| value::paths(&steps).ok()).unwrap_or_default();
    let names: BTreeSet<&str> = used.iter().filter_map(|path| path.strip_prefix("params.")).filter_map(|rest| rest.split('.').next()).collect();
    let open = names.into_iter().filter(|name| params.get(*name).is_none_or(Value::is_null));
    let needs = open.map(|name| Need { what: format!("params.{name}, which its steps use"), param: Some(name.to_owned()), words: String::new() }).collect();
    Composed { steps, params, needs, ..Composed::default() }
}

/// The same for a project in a language: the steps if they are plain calls, and otherwise that whoever wants it writes it. A sentence is no
/// program.
pub(super) fn for_project(made: Composed, language: Language) -> Composed {
    match project::plain_calls(&made.steps, &made.params).filter(|_| made.needs.is_empty()) {
        Some(steps) => Composed { steps, ..made },
        None => Composed { params: made.params, needs: vec![project::unwritten(language)], ..Composed::default() },
    }
}

/// What the sentence says and nothing came of: what must not be done, and what should start it. Somebody has to hear of it, or they rely on it. What
/// only a template says of itself its steps keep.
pub(super) fn without_effect(sketch: &Sketch, description: &str, definition: &Definition) -> Vec<String> {
    let own = |words: &&String| description.contains(words.as_str());
    let reads_a_database = sketch.source.as_ref().is_some_and(|source| source.kind == "database");
    let is_kept = |words: &str| {
        let by = definition.policies.iter().find(|held| held.policy.id == "read-only-access").filter(|_| reads_a_database);
        let why = by.and_then(|held| held.why.split_once('(')).map(|(_, why)| why.trim_end_matches(')'));
        why.is_some_and(|why| words.contains(why) || why.contains(words))
    };
    let open = sketch.forbidden.iter().filter(own).filter(|words| !is_kept(words));
    let mut said: Vec<String> = open
        .map(|words| format!("what it must not do (\"{words}\") is kept by nothing: attach a policy that says so (agents_create_policy, agents_attach_policy)"))
        .collect();
    // Who asks for it starts it.
    let by_hand = |words: &&String| ["on demand", "on request", "when i ", "when we "].iter().any(|start| words.to_lowercase().starts_with(start));
    let trigger = sketch.trigger.as_ref().filter(|_| definition.schedule.is_none()).filter(own).filter(|words| !by_hand(words));
    said.extend(trigger.map(|words| format!("\"{words}\" starts nothing: give a schedule, or start it with agents_run_agent")));
    said
}

struct Builder<'s> {
    sketch: &'s Sketch,
    text: String,
    made: Composed,
    /// The list that the next step works on, as a path.
    items: Option<String>,
    /// What of an item is its text.
    field: Option<&'static str>,
    /// The class that was asked for, once items are classified.
    class: Option<String>,
    /// What was read, as it stands there, while the items are still all of it.
    read: Option<String>,
    /// Whether what was read are lines, or rows with fields.
    lines: bool,
    /// Whether it stands within items that say its class, and whether all of these are of one class.
    classified: (bool, bool),
    /// The text that was made last.
    said: Option<String>,
    /// Where the place stands from which the next run reads on.
    after: Option<String>,
}

/// Makes steps of a sketch.
pub(super) fn compose(cx: &mut Cx<'_, '_>, sketch: &Sketch, description: &str, given: &Map<String, Value>) -> Result<Composed> {
    let made = Composed { params: given.clone(), ..Composed::default() };
    let text = description.to_owned();
    let mut builder =
        Builder { sketch, text, made, items: None, field: None, class: None, read: None, lines: false, classified: (false, false), said: None, after: None };
    // A sentence may name what goes out before what it is made of: "forward negative cases". Reading comes first, sending last.
    let mut in_order: Vec<&Said> = sketch.steps.iter().collect();
    in_order.sort_by_key(|said| rank(&said.kind));
    let mut limit = items_limit(sketch);
    for said in in_order {
        if let Some((at, most, goes_out)) = limit
            && rank(&said.kind) >= if goes_out { 3 } else { 1 }
        {
            builder.at_most(at, most);
            limit = None;
        }
        builder.step(cx, said)?;
    }
    if let Some((at, most, _)) = limit.filter(|_| builder.items.is_some()) {
        builder.at_most(at, most);
    }
    if let Some(after) = builder.after.take() {
        builder.add("result", "set", json!({ "after": after }));
    }
    if sketch.steps.is_empty() {
        let what = "no step was understood: say what it reads, what it does with it and where that goes, or give steps with agents_update_agent".to_owned();
        builder.made.needs.push(Need { what, param: None, words: String::new() });
    }
    Ok(builder.made)
}

/// When a step has its turn: what reads, what works on it, what makes a text of it, what brings it somewhere.
fn rank(kind: &str) -> u8 {
    match kind {
        "fetch_url" | "query_database" | "call_api" => 0,
        kind if kind.starts_with("read_") => 0,
        // Who is told of a backup is told once it was made.
        "write_report" | "draft" | "back_up" => 2,
        "send_mail" | "post_chat" | "notify" | "publish" | "hand_to_person" | "write_files" | "update_records" | "pay" | "deploy" | "delete"
        | "organise_files" => 3,
        _ => 1,
    }
}

/// Something in the text that is a path of a file.
fn path_in(text: &str) -> Option<String> {
    paths_in(text).into_iter().next()
}

/// All of them, in their order.
fn paths_in(text: &str) -> Vec<String> {
    const ENDS: [&str; 10] = [".csv", ".txt", ".md", ".json", ".jsonl", ".log", ".tsv", ".html", ".xml", ".yaml"];
    let words = text.split_whitespace().map(|word| word.trim_matches(['"', '\'', '`', ',', ';', '(', ')', ':', '“', '”']).trim_end_matches('.'));
    let is_path = |word: &&str| {
        let lower = word.to_lowercase();
        !lower.contains("://") && !lower.contains('@') && (ENDS.iter().any(|end| lower.ends_with(end)) && lower.len() > 4)
    };
    words.filter(is_path).map(str::to_owned).collect()
}

/// Whether the name of a file ends so.
fn ends(path: &str, with: &str) -> bool {
    std::path::Path::new(path).extension().is_some_and(|end| end.eq_ignore_ascii_case(with))
}

fn url_in(text: &str) -> Option<String> {
    let words = text.split_whitespace().map(|word| word.trim_matches(['"', '\'', '`', ',', ';', '(', ')', '“', '”']).trim_end_matches(['.', ':']));
    words.into_iter().find(|word| word.starts_with("https://") || word.starts_with("http://")).map(str::to_owned)
}

impl Builder<'_> {
    /// A name for a step that none has yet.
    fn id(&self, wanted: &str) -> String {
        let taken = |id: &str| self.made.steps.iter().any(|step| step.id == id);
        let mut number = 1;
        let mut id = wanted.to_owned();
        while taken(&id) {
            number += 1;
            id = format!("{wanted}_{number}");
        }
        id
    }

    fn add(&mut self, wanted: &str, does: &str, with: Value) -> String {
        let id = self.id(wanted);
        let mut fields = Map::new();
        fields.insert("id".to_owned(), Value::from(id.clone()));
        fields.insert("do".to_owned(), Value::from(does));
        fields.insert("with".to_owned(), with);
        // A step of ours is always one.
        if let Ok(step) = serde_json::from_value(Value::Object(fields)) {
            self.made.steps.push(step);
        }
        id
    }

    fn need(&mut self, param: Option<&str>, what: &str, words: &str) {
        let is_given = param.is_some_and(|param| self.made.params.get(param).is_some_and(|value| !value.is_null()));
        let is_there = |need: &Need| need.what == what || (param.is_some() && need.param.as_deref() == param);
        if !is_given && !self.made.needs.iter().any(is_there) {
            self.made.needs.push(Need { what: what.to_owned(), param: param.map(str::to_owned), words: words.to_owned() });
        }
    }

    /// A parameter with what the sentence says for it, or a need.
    fn param(&mut self, name: &str, found: Option<String>, what: &str, words: &str) {
        if let Some(found) = found
            && !self.made.params.contains_key(name)
        {
            self.made.params.insert(name.to_owned(), Value::from(found));
        }
        self.need(Some(name), what, words);
    }

    /// What it is for, as words of a step: nothing in it stands for a value.
    fn task(&self) -> String {
        self.sketch.task.replace("{{", "{ {").chars().take(300).collect()
    }

    fn items(&self) -> String {
        self.items.clone().unwrap_or_else(|| "{{input.items}}".to_owned())
    }

    fn step(&mut self, cx: &mut Cx<'_, '_>, said: &Said) -> Result<()> {
        match said.kind.as_str() {
            "read_files" => self.read_files(said),
            "fetch_url" => {
                self.param("url", url_in(&self.text.clone()), "params.url: the page that it reads", &said.words);
                let id = self.add("page", "workspace_browse_web", json!({ "url": "{{params.url}}" }));
                self.whole(&id, "only the beginning of {{params.url}} could be read: it is too long");
                let text = format!("{{{{steps.{id}.text}}}}");
                let lines = self.add("lines", "lines", json!({ "text": text }));
                self.reads(&lines, text, true);
            }
            "classify" => self.classify(said),
            "filter" => self.filter(said),
            "analyse" if self.items.is_some() => {
                self.count();
                self.made.assumed.push(format!("\"{}\" is counting, because the desk reckons with nothing else by itself", said.words));
            }
            "write_report" => {
                let id = self.report();
                self.said = Some(format!("{{{{steps.{id}.text}}}}"));
            }
            "write_files" => {
                let text = self.text_so_far();
                self.param("output", None, "params.output: the file that it writes, such as reports/today.md", &said.words);
                let plan = self.add(
                    "plan",
                    "workspace_change_plan",
                    json!({ "steps": [{ "action": "write", "to": "{{params.output}}", "text": text }], "reasoning": self.task() }),
                );
                self.carry_out(&plan);
            }
            "organise_files" => {
                self.param("folder", None, "params.folder: the folder that it tidies", &said.words);
                let plan = self.add("plan", "workspace_organize_plan", json!({ "root": "{{params.folder}}", "reasoning": self.task() }));
                self.carry_out(&plan);
            }
            "back_up" => match paths_in(&self.text).as_slice() {
                [file] => self.copy(file.clone(), said),
                _ => self.back_up(cx, said)?,
            },
            "delete" if self.sketch.source.as_ref().is_some_and(|source| matches!(source.kind.as_str(), "files" | "logs" | "spreadsheet")) => {
                self.param("path", path_in(&self.text.clone()), "params.path: what goes to the trash", &said.words);
                let plan = self.add("plan", "workspace_soft_delete", json!({ "path": "{{params.path}}", "reasoning": self.task() }));
                self.carry_out(&plan);
            }
            "notify" if self.tells_of_failure() => {}
            "notify" => self.notify(cx, said),
            "hand_to_person" => self.hand_over(said),
            kind => self.by_tool(cx, kind, said)?,
        }
        Ok(())
    }

    /// A copy of one file, by a plan.
    fn copy(&mut self, file: String, said: &Said) {
        self.param("from", Some(file), "params.from: what is copied", &said.words);
        self.param("to_folder", None, "params.to_folder: where the copy goes, beneath a root of the desk", &said.words);
        let steps = json!([{ "action": "copy", "from": "{{params.from}}", "to": "{{params.to_folder}}/{{run.id}}" }]);
        let plan = self.add("plan", "workspace_change_plan", json!({ "steps": steps, "reasoning": self.task() }));
        self.carry_out(&plan);
    }

    /// A backup is what the template does: plans copy no folders, the connector `storage` does.
    fn back_up(&mut self, cx: &mut Cx<'_, '_>, said: &Said) -> Result<()> {
        let all = gateway::tools_like(cx, &[])?;
        let has = |mount: &str, tool: &str| all.iter().any(|one| one.mount == mount && one.tool == tool);
        let mut mounts: Vec<String> = all.iter().filter(|one| BACKUP_TOOLS.iter().all(|tool| has(&one.mount, tool))).map(|one| one.mount.clone()).collect();
        mounts.dedup();
        let found = if let [mount] = mounts.as_slice() { Some(mount.clone()) } else { None };
        let need = match mounts.as_slice() {
            [] => "params.mount: mount the connector `storage`, which says what it copies and where to, and give the name of that mount".to_owned(),
            several => format!("params.mount: which mount of the connector `storage` makes the backup ({})", several.join(", ")),
        };
        if let Some(mount) = found.as_ref().filter(|_| !self.made.params.contains_key("mount")) {
            self.made.assumed.push(format!("{mount} makes the backup, of all that it may read: params.folder names a folder beneath that"));
        }
        self.param("mount", found, &need, &said.words);
        self.made.params.entry("folder").or_insert_with(|| Value::from(""));
        let me = cx.actor.is_person().then(|| cx.actor.id.clone());
        if me.is_some() && !self.made.params.contains_key("to") {
            self.made.assumed.push("whoever made it is told when a backup fails".to_owned());
        }
        self.param("to", me, "params.to: the agent or person who is told when it fails", &said.words);
        self.made.steps.extend(template::agent(BACKUP).into_iter().flat_map(|template| template.steps.iter().cloned()));
        self.said = Some("The backup {{steps.result.backup}} was made: {{steps.result.files}} files".to_owned());
        Ok(())
    }

    /// Whether the sentence only wants to hear of failures, which the steps of a backup tell.
    fn tells_of_failure(&self) -> bool {
        let lower = self.text.to_lowercase();
        let says = |start: &str| lower.split(|letter: char| !letter.is_alphabetic()).any(|word| word.starts_with(start));
        self.made.steps.iter().any(|step| step.id == "faults") && (says("fail") || says("error") || says("wrong"))
    }

    /// How many a tool that reads on from where it was is asked for at once.
    fn most_at_once(&mut self, mount: &str, tool: &str) {
        let most = items_limit(self.sketch).map_or(MAILS, |(_, most, _)| most);
        let most = self.made.params.entry(MOST).or_insert_with(|| Value::from(most)).as_u64();
        if let Some(most) = most.filter(|most| *most > u64::from(MAILS_MAX)) {
            let what =
                format!("{mount} {tool} may give fewer than {most} at once (the connector `mail` at most {MAILS_MAX}); the next run reads on behind them");
            self.made.assumed.push(what);
        }
    }

    fn read_files(&mut self, said: &Said) {
        let found = path_in(&self.text.clone());
        self.param("path", found, "params.path: the file that it reads, beneath a root of the desk", &said.words);
        let id = self.add("file", "workspace_read_file", json!({ "path": "{{params.path}}", "max_bytes": FILE_READ_BYTES_MAX }));
        self.whole(&id, &format!("{{{{params.path}}}} is longer than {FILE_READ_BYTES_MAX} bytes"));
        let text = format!("{{{{steps.{id}.text}}}}");
        let path = self.made.params.get("path").and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_table = ends(&path, "csv") || (path.is_empty() && self.sketch.source.as_ref().is_some_and(|source| source.kind == "spreadsheet"));
        let rows = if is_table {
            self.add("rows", "parse", json!({ "text": text, "as": "csv" }))
        } else if ends(&path, "jsonl") {
            self.add("rows", "parse", json!({ "text": text, "as": "json_lines" }))
        } else {
            self.add("lines", "lines", json!({ "text": text }))
        };
        self.field = None;
        let lines = self.made.steps.iter().any(|step| step.id == rows && step.does == "lines");
        self.reads(&rows, text, lines);
    }

    /// What a step reads has to be all that is there: nobody would miss the rest.
    fn whole(&mut self, id: &str, message: &str) {
        let that = json!({ "value": format!("{{{{steps.{id}.truncated}}}}"), "is": "not_equal", "than": true });
        self.add("whole", "check", json!({ "that": that, "message": message }));
    }

    /// The items that were read, and the text that they were read from.
    fn reads(&mut self, items: &str, text: String, lines: bool) {
        self.items = Some(format!("{{{{steps.{items}.items}}}}"));
        (self.read, self.lines, self.classified, self.said) = (Some(text), lines, (false, false), None);
    }

    /// Others of the items stand in their place, so what was read says more than they do.
    fn works_on(&mut self, items: &str) {
        self.items = Some(format!("{{{{steps.{items}.items}}}}"));
        self.read = None;
    }

    fn count(&mut self) {
        let id = self.add("count", "count", json!({ "items": self.items() }));
        self.said = Some(format!("{{{{steps.{id}.count}}}} items"));
    }

    /// No more items than the sentence allows for one run.
    fn at_most(&mut self, at: usize, most: u32) {
        self.made.params.entry(MOST).or_insert_with(|| Value::from(most));
        let id = self.add("at_most", "first", json!({ "items": self.items(), "most": format!("{{{{params.{MOST}}}}}") }));
        self.works_on(&id);
        self.made.kept.insert(at);
    }

    fn classify(&mut self, said: &Said) {
        let lower = self.text.to_lowercase();
        let has = |word: &&str| lower.split(|letter: char| !letter.is_alphanumeric()).any(|own| own == *word);
        let named: Vec<&(&str, &[&str], &[&str])> = CLASSES.iter().filter(|(_, names, _)| names.iter().any(has)).collect();
        if !named.is_empty() && !self.made.params.contains_key("classes") {
            let classes: Map<String, Value> = named.iter().map(|(class, _, words)| ((*class).to_owned(), json!(words))).collect();
            self.made.params.insert("classes".to_owned(), Value::Object(classes));
            self.made.assumed.push("the word lists of params.classes, by which texts are told apart: look at them and change them".to_owned());
        }
        self.class = named.first().map(|(class, ..)| (*class).to_owned());
        self.need(Some("classes"), "params.classes: for each class the words by which it is known, such as {\"negative\": [\"refund\"]}", &said.words);
        let mut with = json!({ "items": self.items(), "classes": "{{params.classes}}" });
        if let (Some(field), Some(fields)) = (self.field, with.as_object_mut()) {
            fields.insert("field".to_owned(), Value::from(field));
        }
        let id = self.add("classified", "classify", with);
        self.works_on(&id);
        self.classified = (true, false);
    }

    fn filter(&mut self, said: &Said) {
        let is_classified = self.made.steps.iter().any(|step| step.does == "classify");
        if is_classified {
            let class = self.class.clone();
            self.param("keep", class, "params.keep: the class that is kept", &said.words);
            let keep = json!({ "value": "{{item.class}}", "is": "equal", "than": "{{params.keep}}" });
            self.keep(&keep);
            self.classified.1 = true;
        } else if self.made.steps.iter().any(|step| step.does == "lines") {
            self.need(Some("keep"), "params.keep: the words that a line has to have to be kept", &said.words);
            let keep = json!({ "value": "{{item}}", "is": "contains", "than": "{{params.keep}}" });
            self.keep(&keep);
        } else {
            self.need(None, "which items are kept: give steps with a filter on a field of theirs", &said.words);
        }
    }

    /// Keeps only the items that fit. Who counted them before counts what is left.
    fn keep(&mut self, condition: &Value) {
        let counted = self.made.steps.iter().position(|step| step.does == "count").filter(|_| self.said.is_some());
        if let Some(at) = counted {
            self.made.steps.remove(at);
        }
        let id = self.add("kept", "filter", json!({ "items": self.items(), "keep": condition }));
        self.works_on(&id);
        if counted.is_some() {
            self.count();
        }
    }

    /// The text that a message or a file is made of.
    fn text_so_far(&mut self) -> String {
        if let Some(said) = self.said.clone().or_else(|| self.read.clone()) {
            return said;
        }
        let id = self.report();
        format!("{{{{steps.{id}.text}}}}")
    }

    fn report(&mut self) -> String {
        let body = self.said.clone().or_else(|| self.read.clone()).unwrap_or_else(|| self.written());
        let task = self.task();
        self.add("report", "text", json!({ "text": format!("{task}\n\n{body}") }))
    }

    /// The items as people read them: lines as they are, rows as a table. Where all are of one class, that need not be said of each.
    fn written(&mut self) -> String {
        let Some(mut items) = self.items.clone() else { return self.items() };
        let (classified, of_one) = self.classified;
        if of_one {
            let id = self.add("plain", "map", json!({ "items": items, "to": "{{item.item}}" }));
            items = format!("{{{{steps.{id}.items}}}}");
        }
        let form = if self.lines && classified == of_one { "lines" } else { "csv" };
        let id = self.add("table", "format", json!({ "items": items, "as": form }));
        format!("{{{{steps.{id}.text}}}}")
    }

    fn notify(&mut self, cx: &Cx<'_, '_>, said: &Said) {
        // "Tell me" is whoever asked, where that is a person.
        let lower = format!(" {} ", said.words.to_lowercase());
        let is_me = lower.contains(" me ") || self.text.to_lowercase().split(|letter: char| !letter.is_alphabetic()).any(|word| word == "me");
        let me = (is_me && cx.actor.is_person()).then(|| cx.actor.id.clone());
        self.param("to", me, "params.to: the agent or person who is told", &said.words);
        let content = self.text_so_far();
        let id = self.add("tell", "bridge_send_message", json!({ "to": "{{params.to}}", "content": content }));
        self.only_if_any(&id);
    }

    fn hand_over(&mut self, said: &Said) {
        let with = json!({
            "domain": "desk.agents",
            "reason": self.task(),
            "confidence": 0.5,
            "attempted_actions": "[]",
            "context": { "items": self.items() },
            "goal": said.words.replace("{{", "{ {"),
        });
        let id = self.add("hand_over", "cowork_handoff", with);
        self.only_if_any(&id);
    }

    /// Nobody is told of nothing.
    fn only_if_any(&mut self, id: &str) {
        let Some(items) = self.items.clone() else { return };
        let when = serde_json::from_value(json!({ "value": items, "is": "not_empty" })).ok();
        if let Some(step) = self.made.steps.iter_mut().find(|step| step.id == id) {
            step.when = when;
        }
    }

    /// A plan is carried out once a person has approved it. What could not be made, was rejected or was done in part fails the run; where there
    /// is nothing to do, nothing of it is done.
    fn carry_out(&mut self, plan: &str) {
        let of = |id: &str, field: &str| format!("{{{{steps.{id}.{field}}}}}");
        let check = |value: String, than: Value, message: String| json!({ "that": { "value": value, "is": "equal", "than": than }, "message": message });
        let begins = self.made.steps.len();
        self.add("made", "check", check(of(plan, "state"), json!("ready"), format!("the plan could not be made: {}", of(plan, "note"))));
        let decided = self.add("decided", "cowork_wait_for_decision", json!({ "request_id": of(plan, "request_id") }));
        self.add("agreed", "check", check(of(&decided, "approved"), json!(true), "it was not approved, and nothing was changed".to_owned()));
        let done = self.add("done", "workspace_execute_plan", json!({ "plan_id": of(plan, "plan_id") }));
        let [state, applied, failed, skipped] = ["state", "applied", "failed", "skipped"].map(|field| of(&done, field));
        let message = format!("it is {state}: {applied} steps were done, {failed} failed, {skipped} were left out");
        self.add("complete", "check", check(state, json!("done"), message));
        let when: Option<Condition> = serde_json::from_value(json!({ "value": of(plan, "state"), "is": "not_equal", "than": "empty" })).ok();
        for step in self.made.steps.iter_mut().skip(begins) {
            step.when.clone_from(&when);
        }
    }

    /// What only a mounted server can do: its tool if there is exactly one that fits, else a need.
    fn by_tool(&mut self, cx: &mut Cx<'_, '_>, kind: &str, said: &Said) -> Result<()> {
        let known = TOOLS.iter().find(|(known, ..)| *known == kind);
        let found = match known {
            Some((_, words, _)) => gateway::tools_like(cx, words)?,
            None => Vec::new(),
        };
        let does = known.map_or("does this", |(.., does)| does);
        if let [Served { mount, tool, required, takes }] = found.as_slice() {
            let name = format!("{kind}_arguments");
            let reads_on = kind.starts_with("read_")
                && required.is_empty()
                && !self.made.params.contains_key(&name)
                && ["after", MOST].iter().all(|own| takes.iter().any(|one| one == own));
            if reads_on {
                self.most_at_once(mount, tool);
            } else if !required.is_empty() {
                self.need(Some(&name), &format!("params.{name}: what {mount} {tool} is called with; it has to have {}", required.join(", ")), &said.words);
            } else if !self.made.params.contains_key(&name) {
                self.made.params.insert(name.clone(), json!({}));
            }
            let arguments = if reads_on {
                json!({ "after": "{{last.after}}", "most": format!("{{{{params.{MOST}}}}}") })
            } else {
                Value::from(format!("{{{{params.{name}}}}}"))
            };
            let id = self.add(kind, "gateway_call", json!({ "mount": mount, "tool": tool, "arguments": arguments, "reasoning": self.task() }));
            self.items = Some(format!("{{{{steps.{id}.result.structuredContent.items}}}}"));
            (self.read, self.lines, self.classified, self.said) = (None, false, (false, false), None);
            if rank(kind) == 0 {
                self.whole(&format!("{id}.result.structuredContent"), &format!("{mount} {tool} gave only the beginning of what is there"));
            }
            if reads_on {
                self.after = Some(format!("{{{{steps.{id}.result.structuredContent.after}}}}"));
            }
            self.made.assumed.push(format!("{mount} {tool} {does}, because it is the only tool behind this desk whose name says so"));
            return Ok(());
        }
        let what = if found.is_empty() {
            format!("a tool that {does}: mount a server that has one, and give a gateway_call step for \"{}\"", said.words)
        } else {
            let all: Vec<String> = found.iter().take(5).map(|one| format!("{} {}", one.mount, one.tool)).collect();
            format!("which tool {does} ({}): give a gateway_call step for \"{}\"", all.join(", "), said.words)
        };
        self.need(None, &what, &said.words);
        Ok(())
    }
}
