//! Asking for a plan. What is asked for is checked here as far as names go; a job looks at the files, and makes the steps.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::judge;
use super::super::look::told;
use super::super::place::{self, Place, relative};
use super::super::root::{Root, RootAccess};
use super::model::{Action, Ask, OrganizeRule, PlanState, TextEdit, Wanted};
use super::rows::{self, Plan};
use super::show::PlanOut;
use super::{ASKED, PLAN_JOB, PURGE, UNDO, make, python};
use crate::call::Cx;
use crate::gateway::taint;
use crate::job::{self, NewJob};
use crate::limits::{CONTENT_BYTES_MAX, PLAN_DOCUMENT_BYTES_MAX, PLAN_WANTED_MAX, PLANNING_MAX, ROOT_DENY_MAX};
use crate::record::Event;
use crate::request::Requester;
use crate::{Error, Result, check_text, meter};

/// Asks for a plan that changes something beneath a root.
fn start(cx: &mut Cx<'_, '_>, place: &Place, kind: &str, ask: &Ask, why: Option<&str>, undo_of: Option<String>) -> Result<PlanOut> {
    writable(&place.root)?;
    look(cx, place, kind, ask)?;
    queue(cx, &place.root.name, kind, ask, why, undo_of)
}

/// A plan tells what its steps are about before anybody decides, so whoever asks for it has to be one who may look there.
fn look(cx: &mut Cx<'_, '_>, place: &Place, kind: &str, ask: &Ask) -> Result<()> {
    let operation = make::operation(kind, "");
    let places: Vec<Place> = ask.looks_at().into_iter().map(|path| Place { path: path.to_owned(), ..place.clone() }).collect();
    for place in &places {
        judge::may_look(cx, operation, place)?;
    }
    match places.as_slice() {
        [] => Ok(()),
        [only] => told(cx, operation, only, 0),
        _ => told(cx, operation, place, 0),
    }
}

/// Refuses a root that is not open for changes.
pub(super) fn writable(root: &Root) -> Result<()> {
    if root.access == RootAccess::Write {
        return Ok(());
    }
    Err(Error::forbidden(format!("the root {} is open for looking only", root.name)).hint("an owner can open it for plans too"))
}

/// Puts a plan into the queue. The name of its root is empty if it needs none.
pub(super) fn queue(cx: &mut Cx<'_, '_>, root: &str, kind: &str, ask: &Ask, why: Option<&str>, undo_of: Option<String>) -> Result<PlanOut> {
    if let Some(why) = why {
        check_text("reasoning", why, CONTENT_BYTES_MAX)?;
    }
    let owner = Requester::of(&cx.actor);
    if owner.is_agent() {
        if meter::paused(cx, &owner.id)? {
            return Err(Error::forbidden(format!("{} is paused until a person lets it go on", owner.id)));
        }
        let under_way =
            "select count(*) from (select id from plan where owner_kind = 'agent' and owner = $1 and state = 'planning' and created_at > $2 limit 100) p";
        let since = cx.now().saturating_sub(3_600_000_000);
        let row = cx.tx.optional(under_way, args![owner.id, since])?;
        if row.map(|row| row.get::<i64>(0)).transpose()?.unwrap_or(0) >= PLANNING_MAX {
            return Err(Error::limited(format!("{PLANNING_MAX} plans of yours are being made already"), 5_000).hint("wait for them, or cancel their jobs"));
        }
    }
    // Whoever makes the plan does not know over which connection it was asked for.
    let read = taint::of_asking(cx)?;
    let id = cx.new_id();
    let input = if read.is_empty() { json!({ "plan": id }) } else { json!({ "plan": id, "read": read }) };
    let job = job::enqueue(cx, NewJob { priority: job::Priority::Urgent, ..NewJob::new(PLAN_JOB, input) })?;
    let now = cx.now();
    let plan = Plan {
        id,
        root: root.to_owned(),
        kind: kind.to_owned(),
        state: PlanState::Planning,
        owner,
        steps: 0,
        bytes: 0,
        digest: None,
        done: 0,
        skipped: 0,
        failed: 0,
        unclear: 0,
        request: None,
        plan_job: job.job,
        job: None,
        undo_of,
        created_at: now,
        updated_at: now,
        finished_at: None,
        ask: Some(crate::canonical("ask", ask)?),
        summary: why.map(str::to_owned),
        note: None,
        begun_at: None,
    };
    rows::insert(cx.tx, &plan)?;
    let event = Event::new(ASKED, plan.subject()).fact("root", plan.root.as_str()).fact("plan_kind", plan.kind.as_str()).fact("job", plan.plan_job.as_str());
    cx.emit(event.payload(json!({ "ask": shown(ask), "reasoning": why })).audience([plan.owner.id.as_str()]))?;
    super::show::shown(cx, &plan)
}

/// What was asked for, without the contents of files: those are in the plan itself.
fn shown(ask: &Ask) -> Value {
    let mut value = json!(ask);
    if let Some(steps) = value.get_mut("steps").and_then(Value::as_array_mut) {
        for step in steps.iter_mut().filter_map(Value::as_object_mut) {
            step.remove("text");
            step.remove("edits");
        }
    }
    if let Some(fields) = value.as_object_mut() {
        fields.remove("content");
        if let Some(program) = fields.get_mut("program").and_then(Value::as_object_mut) {
            program.remove("code");
        }
    }
    value
}

/// Plan to put files into folders by what they are. Nothing is moved: you get a plan that a person approves, and then
/// execute_plan does exactly that.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct OrganizePlan {
    /// The folder: the name of a root, or a path beneath it. The only root if not given.
    root: Option<String>,
    /// `by_ext`, `by_date` (year and month), `by_size`, or `rules`; `by_ext` if not given.
    policy: Option<String>,
    /// With `rules`: which files go where; the first that fits counts.
    #[serde(default)]
    rules: Vec<OrganizeRule>,
    /// Also files in the folders beneath, except in those under version control; only the folder's own if not given.
    #[serde(default)]
    recursive: bool,
    /// Or, instead of all that, the moves themselves, relative to the folder; at most 1000.
    #[serde(default)]
    moves: Vec<MoveIn>,
    /// Why, for the person who decides.
    reasoning: Option<String>,
    /// How long to wait for the plan, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

/// A move.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MoveIn {
    /// From where.
    from: String,
    /// To where.
    to: String,
}

pub(in crate::workspace) fn organize_plan(cx: &mut Cx<'_, '_>, input: OrganizePlan) -> Result<PlanOut> {
    let place = place::find(cx, "root", input.root.as_deref())?;
    let why = input.reasoning.as_deref();
    if !input.moves.is_empty() {
        if input.policy.is_some() || !input.rules.is_empty() || input.recursive {
            return Err(Error::invalid("moves", "say themselves what goes where: leave out `policy`, `rules` and `recursive`"));
        }
        let steps = input.moves.into_iter().map(|one| {
            let at = |field: &str, path: &str| -> Result<String> { Ok(place::join(&place.path, &relative(field, path)?)) };
            Ok(Wanted { action: Action::Move, from: Some(at("from", &one.from)?), to: Some(at("to", &one.to)?), text: None, edits: Vec::new() })
        });
        let steps = counted("moves", steps.collect::<Result<Vec<_>>>()?)?;
        return start(cx, &place, "organize", &Ask::Steps { steps }, why, None);
    }
    let policy = input.policy.unwrap_or_else(|| if input.rules.is_empty() { "by_ext" } else { "rules" }.to_owned());
    if !matches!(policy.as_str(), "by_ext" | "by_date" | "by_size" | "rules") {
        return Err(Error::invalid("policy", "must be `by_ext`, `by_date`, `by_size` or `rules`"));
    }
    if (policy == "rules") == input.rules.is_empty() || input.rules.len() > ROOT_DENY_MAX {
        return Err(Error::invalid("rules", format!("belong to the policy `rules`, at most {ROOT_DENY_MAX}")));
    }
    for rule in &input.rules {
        relative("folder", &rule.folder)?;
        globset::Glob::new(&rule.glob).map_err(|error| Error::invalid("glob", error.to_string()))?;
    }
    start(cx, &place, "organize", &Ask::Organize { path: place.path.clone(), policy, rules: input.rules, recursive: input.recursive }, why, None)
}

/// Plan changes of files: move, copy, write a new file, change a text, make folders, put things into the trash. Nothing is
/// changed: you get a plan that a person approves, and then execute_plan does exactly that.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct ChangePlan {
    /// The folder that paths are relative to: the name of a root, or a path beneath it. The only root if not given.
    root: Option<String>,
    /// The steps, in this order; at most 1000.
    steps: Vec<StepIn>,
    /// Why, for the person who decides.
    reasoning: Option<String>,
    /// How long to wait for the plan, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

/// A step.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepIn {
    /// What to do: `move` (also renames), `copy`, `write` (a new file), `replace` (other content in a file), `make_folder`, `trash`.
    action: Action,
    /// What it is done to: for `move`, `copy`, `trash`.
    from: Option<String>,
    /// Where it goes: for `move`, `copy`, `write`, `replace`, `make_folder`.
    to: Option<String>,
    /// The content for `write`, or the whole new content for `replace`.
    text: Option<String>,
    /// For `replace`: parts that change; each old text must be there exactly once.
    #[serde(default)]
    edits: Vec<TextEdit>,
}

impl StepIn {
    fn wanted(self, place: &Place) -> Result<Wanted> {
        let at = |field: &str, path: Option<String>| -> Result<Option<String>> {
            path.map(|path| match relative(field, &path)? {
                path if path.is_empty() => Err(Error::invalid(field, "names the root itself")),
                path => Ok(place::join(&place.path, &path)),
            })
            .transpose()
        };
        let (needs_from, needs_to) = match self.action {
            Action::Move | Action::Copy => (true, true),
            Action::Trash => (true, false),
            Action::Write | Action::Replace | Action::MakeFolder => (false, true),
            Action::Restore | Action::Purge | Action::Undo | Action::Run => {
                let own = "has an operation of its own: workspace_restore, workspace_purge_trash, workspace_undo_plan, workspace_execute_python";
                return Err(Error::invalid("action", own));
            }
        };
        for (field, needed, given) in [("from", needs_from, self.from.is_some()), ("to", needs_to, self.to.is_some())] {
            if needed != given {
                return Err(Error::invalid(field, format!("is {} for {}", if needed { "needed" } else { "not used" }, self.action.name())));
            }
        }
        let has_content = (self.text.is_some(), !self.edits.is_empty());
        let content_fits = match self.action {
            Action::Write => has_content == (true, false),
            Action::Replace => has_content.0 != has_content.1,
            _ => has_content == (false, false),
        };
        if !content_fits {
            return Err(Error::invalid("text", "is needed for `write`; `replace` takes either `text` or `edits`; others take none"));
        }
        Ok(Wanted { action: self.action, from: at("from", self.from)?, to: at("to", self.to)?, text: self.text, edits: self.edits })
    }
}

fn counted(field: &str, steps: Vec<Wanted>) -> Result<Vec<Wanted>> {
    if steps.is_empty() || steps.len() > PLAN_WANTED_MAX {
        return Err(Error::invalid(field, format!("must be between 1 and {PLAN_WANTED_MAX}")));
    }
    Ok(steps)
}

pub(in crate::workspace) fn change_plan(cx: &mut Cx<'_, '_>, input: ChangePlan) -> Result<PlanOut> {
    let place = place::find(cx, "root", input.root.as_deref())?;
    let steps = counted("steps", input.steps.into_iter().map(|step| step.wanted(&place)).collect::<Result<Vec<_>>>()?)?;
    start(cx, &place, "change", &Ask::Steps { steps }, input.reasoning.as_deref(), None)
}

/// Plan to put a file or a folder into the trash, from where it can be restored. A person approves it; then execute_plan
/// does it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct SoftDelete {
    /// Which, such as `notes/2026/plan.md`.
    path: String,
    /// The folder that it has to lie in: the name of a root, or a path beneath it. It need not be given.
    workspace_root: Option<String>,
    /// Why, for the person who decides.
    reasoning: Option<String>,
    /// How long to wait for the plan, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(in crate::workspace) fn soft_delete(cx: &mut Cx<'_, '_>, input: SoftDelete) -> Result<PlanOut> {
    let place = place::find(cx, "path", Some(&input.path))?;
    if let Some(folder) = &input.workspace_root
        && !place::within(cx, "path", folder, &input.path)?
    {
        return Err(Error::invalid("path", "does not lie in `workspace_root`"));
    }
    if place.path.is_empty() {
        return Err(Error::invalid("path", "names the root itself"));
    }
    let step = Wanted { action: Action::Trash, from: Some(place.path.clone()), to: None, text: None, edits: Vec::new() };
    start(cx, &place, "trash", &Ask::Steps { steps: vec![step] }, input.reasoning.as_deref(), None)
}

/// Plan to bring something back out of the trash. A person approves it; then execute_plan does it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Restore {
    /// The root; the only one if not given.
    root: Option<String>,
    /// The same as `root`, as clients of earlier servers name it.
    workspace_root: Option<String>,
    /// The id that list_trash shows.
    trash_id: Option<String>,
    /// Or the path of the thing in the trash, as clients of earlier servers name it.
    trash_item_path: Option<String>,
    /// Where to; where it was if not given.
    restore_to: Option<String>,
    /// Why, for the person who decides.
    reasoning: Option<String>,
    /// How long to wait for the plan, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(in crate::workspace) fn restore(cx: &mut Cx<'_, '_>, input: Restore) -> Result<PlanOut> {
    if input.root.is_some() && input.workspace_root.is_some() && input.root != input.workspace_root {
        return Err(Error::invalid("workspace_root", "is another name for `root`, and both say something else"));
    }
    let (id, root) = match (input.trash_id, input.trash_item_path, input.root.or(input.workspace_root)) {
        (Some(id), None, root) => (trash_id(&id)?, root),
        (None, Some(path), root) => item(cx, &path, root)?,
        _ => return Err(Error::invalid("trash_id", "give either `trash_id` or `trash_item_path`")),
    };
    let place = place::whole(cx, "root", root.as_deref())?;
    let to = input.restore_to.as_deref().map(|to| place::find(cx, "restore_to", Some(to))).transpose()?;
    if to.as_ref().is_some_and(|to| to.root.name != place.root.name || to.path.is_empty()) {
        return Err(Error::invalid("restore_to", "must be beneath the same root"));
    }
    let step = Wanted { action: Action::Restore, from: Some(id), to: to.map(|to| to.path), text: None, edits: Vec::new() };
    start(cx, &place, "restore", &Ask::Steps { steps: vec![step] }, input.reasoning.as_deref(), None)
}

/// What stands before and behind the name of the trash in the path of something in it; nothing before it where the path names no root.
pub(crate) fn in_trash(path: &str) -> Option<(&str, &str)> {
    let (root, within) = path.trim_end_matches('/').split_once(".trash/")?;
    Some((root.trim_end_matches('/'), within))
}

/// The id of something in the trash, and its root, by its path there. Earlier servers had no folder `files` in it.
fn item(cx: &mut Cx<'_, '_>, path: &str, root: Option<String>) -> Result<(String, Option<String>)> {
    let wrong = || Error::invalid("trash_item_path", "is not the path of something in the trash");
    let Some((named, within)) = in_trash(path) else {
        // A name alone is an id.
        return if path.contains('/') { Err(wrong()) } else { Ok((trash_id(path)?, root)) };
    };
    let id = trash_id(within.strip_prefix("files/").unwrap_or(within)).map_err(|_| wrong())?;
    let named = match named {
        "" => return Ok((id, root)),
        named => place::find(cx, "trash_item_path", Some(named))?,
    };
    if !named.path.is_empty() {
        return Err(wrong());
    }
    if let Some(root) = &root
        && place::find(cx, "root", Some(root))?.root.name != named.root.name
    {
        return Err(Error::invalid("trash_item_path", "is not in the trash of this root"));
    }
    Ok((id, Some(named.root.name)))
}

/// An id of the trash is one name.
fn trash_id(id: &str) -> Result<String> {
    match relative("trash_id", id)? {
        name if name.is_empty() || name.contains('/') => Err(Error::invalid("trash_id", "is not an id that list_trash shows")),
        name => Ok(name),
    }
}

/// Plan to delete things in the trash for ever. Only people do this, and it cannot be undone.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct PurgeTrash {
    /// The root; the only one if not given.
    root: Option<String>,
    /// The ids that list_trash shows; at most 1000.
    trash_ids: Vec<String>,
    /// How long to wait for the plan, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(in crate::workspace) fn purge_trash(cx: &mut Cx<'_, '_>, input: PurgeTrash) -> Result<PlanOut> {
    let place = place::whole(cx, "root", input.root.as_deref())?;
    let steps = input.trash_ids.iter().map(|id| Ok(Wanted { action: Action::Purge, from: Some(trash_id(id)?), to: None, text: None, edits: Vec::new() }));
    let steps = counted("trash_ids", steps.collect::<Result<Vec<_>>>()?)?;
    start(cx, &place, PURGE, &Ask::Steps { steps }, None, None)
}

/// Plan to take back what another plan did: everything goes back to where it was, with its bytes, mode and times. A person
/// approves it; then execute_plan does it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct UndoPlan {
    /// The plan.
    plan_id: String,
    /// Why, for the person who decides.
    reasoning: Option<String>,
    /// How long to wait for the plan, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(in crate::workspace) fn undo_plan(cx: &mut Cx<'_, '_>, input: UndoPlan) -> Result<PlanOut> {
    let plan = super::show::visible(cx, &input.plan_id)?;
    if !plan.state.has_run() {
        return Err(Error::conflict(format!("this plan is {}; only what was done can be taken back", plan.state.name())));
    }
    let why = match plan.kind.as_str() {
        UNDO => Some("what was taken back is not taken back itself: plan the change again"),
        PURGE => Some("what was deleted for ever does not come back"),
        python::KIND => Some("what a program did is not taken back"),
        _ => None,
    };
    if let Some(why) = why {
        return Err(Error::conflict(why));
    }
    let place = place::whole(cx, "root", Some(&plan.root))?;
    start(cx, &place, UNDO, &Ask::Undo { plan: plan.id.clone() }, input.reasoning.as_deref(), Some(plan.id))
}

/// Plan to write a spreadsheet. A person approves it; then execute_plan writes it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct CreateExcel {
    /// Where, such as `reports/2026.xlsx`. Nothing is overwritten.
    path: String,
    /// The rows: objects whose keys become the first row. Texts stay texts, also those that look like formulas.
    data: Vec<Map<String, Value>>,
    /// The columns in their order; in the order of the alphabet if not given.
    #[serde(default)]
    columns: Vec<String>,
    /// Why, for the person who decides.
    reasoning: Option<String>,
    /// How long to wait for the plan, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(in crate::workspace) fn create_excel(cx: &mut Cx<'_, '_>, input: CreateExcel) -> Result<PlanOut> {
    document(cx, &input.path, "excel", json!({ "columns": input.columns, "rows": input.data }), input.reasoning.as_deref())
}

/// Plan to write a document for a word processor. A person approves it; then execute_plan writes it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct CreateWord {
    /// Where, such as `reports/2026.docx`. Nothing is overwritten.
    path: String,
    /// The text: paragraphs with an empty line between them, `#` headings, `-` lists, `|` tables.
    content: String,
    /// Why, for the person who decides.
    reasoning: Option<String>,
    /// How long to wait for the plan, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(in crate::workspace) fn create_word(cx: &mut Cx<'_, '_>, input: CreateWord) -> Result<PlanOut> {
    document(cx, &input.path, "word", Value::from(input.content), input.reasoning.as_deref())
}

/// Plan to write a PDF. A person approves it; then execute_plan writes it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct CreatePdf {
    /// Where, such as `reports/2026.pdf`. Nothing is overwritten.
    path: String,
    /// The text: paragraphs with an empty line between them, `#` headings, `-` lists, `|` tables.
    content: String,
    /// Why, for the person who decides.
    reasoning: Option<String>,
    /// How long to wait for the plan, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(in crate::workspace) fn create_pdf(cx: &mut Cx<'_, '_>, input: CreatePdf) -> Result<PlanOut> {
    document(cx, &input.path, "pdf", Value::from(input.content), input.reasoning.as_deref())
}

fn document(cx: &mut Cx<'_, '_>, path: &str, format: &str, content: Value, why: Option<&str>) -> Result<PlanOut> {
    let place = place::find(cx, "path", Some(path))?;
    if place.path.is_empty() {
        return Err(Error::invalid("path", "names the root itself"));
    }
    check_text("content", &content.to_string(), PLAN_DOCUMENT_BYTES_MAX)?;
    let ask = Ask::Document { path: place.path.clone(), format: format.to_owned(), content };
    start(cx, &place, "document", &ask, why, None)
}
