//! Giving tasks to others and looking at them.

use deskmate_db::{Row, Tx, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::claim::projects_ready;
use super::edits::given;
use super::notes::{NoteOut, notes_of};
use super::party::{self, Addressee, GROUP_PREFIX, NOTICE, Priority, addresses_of, check_said, find_addressee, me, sees_all};
use super::rows::{self, TaskRow, fitting};
use super::state::State;
use super::task_out::{TaskOut, find_visible, parties};
use crate::call::{Cx, Page, PageIn};
use crate::edit::{self, EDITED, FieldOut};
use crate::identity::check_name;
use crate::limits::{BLOCKERS_MAX, CONTENT_BYTES_MAX, DEPENDENTS_MAX, TITLE_CHARS_MAX};
use crate::record::{Event, Kind};
use crate::{Error, Result, check_text, parse_time};

/// A task was given.
pub(super) const CREATED: Kind = Kind { name: "task.created", says: "An actor gave a task to another actor or to a group." };

/// Give a task to another agent, a person or a group. It waits until somebody claims it; you see its state and result
/// with get_task, and wait_for_task tells you when it changes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateTask {
    /// The recipient: an agent such as `cowork`, a person's name or id, or `group:NAME`: then one member claims it.
    to: String,
    /// What it is about, in a line.
    title: String,
    /// What is to be done.
    #[serde(default)]
    description: String,
    /// The project it belongs to; `default` if not given.
    project: Option<String>,
    /// How urgent it is; `normal` if not given.
    priority: Option<Priority>,
    /// Until when it should be done, for example `2026-11-15T09:30:00Z`.
    deadline: Option<String>,
    /// The ids of tasks that must be completed before this one can be claimed; at most 100.
    #[serde(default)]
    depends_on: Vec<String>,
    /// The conversation it belongs to.
    thread: Option<String>,
}

pub(super) fn create(cx: &mut Cx<'_, '_>, input: CreateTask) -> Result<TaskOut> {
    let me = me(cx)?;
    check_said("title", &input.title, TITLE_CHARS_MAX)?;
    check_text("description", &input.description, CONTENT_BYTES_MAX)?;
    let project = party::project(input.project)?;
    if let Some(thread) = &input.thread {
        check_name("thread", thread)?;
    }
    let deadline = input.deadline.as_deref().map(|deadline| parse_time("deadline", deadline)).transpose()?;
    let recipient = match find_addressee(cx, "to", &input.to)? {
        Addressee::One(actor) => actor,
        Addressee::Group { name, .. } => format!("{GROUP_PREFIX}{name}"),
    };
    let (id, now) = (cx.new_id(), cx.now());
    let blockers = find_blockers(cx, &input.depends_on, &me)?;
    let open = blockers.iter().filter(|blocker| blocker.stored != State::Completed).count();
    let mut task = TaskRow {
        id,
        project,
        sender_kind: cx.actor.kind.name().to_owned(),
        sender: me,
        sender_name: None,
        verified: cx.actor.verified,
        origin: cx.surface.name().to_owned(),
        recipient,
        title: Some(input.title),
        description: Some(input.description),
        stored: State::Pending,
        rank: input.priority.unwrap_or_default().rank(),
        open_blockers: i64::try_from(open).unwrap_or(i64::MAX),
        deadline,
        thread: input.thread,
        result: None,
        result_by: None,
        worker: None,
        erased: false,
        attempt: 0,
        version: 1,
        created_at: now,
        updated_at: now,
        finished_at: None,
        lease: None,
        set_by_people: Vec::new(),
    };
    rows::insert_task(cx.tx, &task)?;
    if cx.actor.is_person() {
        let fields = given(&task, input.priority.is_some());
        edit::mark(cx, &task.subject(), &fields)?;
        task.set_by_people = fields.into_iter().map(str::to_owned).collect();
    }
    for blocker in &blockers {
        cx.tx.execute("insert into task_blocker (task, blocker) values ($1, $2)", args![task.id, blocker.id])?;
    }
    tell_created(cx, &task, &blockers)?;
    Ok(TaskOut::new(task, now))
}

pub(super) fn tell_created(cx: &mut Cx<'_, '_>, task: &TaskRow, blockers: &[TaskRow]) -> Result<()> {
    let audience = parties(cx, task)?;
    let depends_on: Vec<&str> = blockers.iter().map(|blocker| blocker.id.as_str()).collect();
    let mut event = Event::new(CREATED, task.subject())
        .fact("task", task.id.as_str())
        .fact("project", task.project.as_str())
        .fact("to", task.recipient.as_str())
        .fact("priority", Priority::from_rank(task.rank).name())
        .fact("depends_on", depends_on)
        .payload(json!({ "title": task.title, "description": task.description }))
        .audience(audience);
    if let Some(deadline) = task.deadline {
        event = event.fact("deadline", deadline);
    }
    if !task.set_by_people.is_empty() {
        event = event.fact(EDITED, task.set_by_people.clone());
    }
    cx.emit(event)
}

/// The tasks that a new one waits for. They exist before it, so that no circle can arise.
fn find_blockers(cx: &mut Cx<'_, '_>, ids: &[String], me: &str) -> Result<Vec<TaskRow>> {
    if ids.len() > BLOCKERS_MAX {
        return Err(Error::invalid("depends_on", format!("names {} tasks; at most {BLOCKERS_MAX} are allowed", ids.len())));
    }
    let bound = i64::try_from(DEPENDENTS_MAX).unwrap_or(i64::MAX);
    let mut blockers: Vec<TaskRow> = Vec::with_capacity(ids.len());
    for id in ids {
        let blocker = find_visible(cx, "depends_on", id, me)?;
        let full = cx.tx.optional("select task from task_blocker where blocker = $1 order by task limit 1 offset $2", args![blocker.id, bound - 1])?;
        if full.is_some() {
            return Err(Error::invalid("depends_on", format!("{DEPENDENTS_MAX} tasks wait for {} already", blocker.id)));
        }
        if blockers.iter().all(|other| other.id != blocker.id) {
            blockers.push(blocker);
        }
    }
    Ok(blockers)
}

/// Whose tasks a list shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum View {
    /// Tasks that were given to you or to a group that you are in.
    #[default]
    Assigned,
    /// Tasks that you gave to others.
    Created,
    /// Everybody's; for people only.
    All,
}

/// List tasks, newest first: those given to you, or with `view: created` those that you gave, with state and result.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetTasks {
    /// Only tasks in this state.
    status: Option<State>,
    /// Whose tasks; `assigned` if not given.
    view: Option<View>,
    /// Which project; `default` if not given.
    project: Option<String>,
    /// Only tasks that can be claimed now: pending, and waiting for no other task.
    #[serde(default)]
    ready: bool,
    /// How many tasks; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of tasks.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tasks {
    /// How to treat what follows.
    notice: &'static str,
    /// The tasks, newest first.
    tasks: Vec<TaskOut>,
    /// True when there are more than this answer holds.
    more: bool,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// Other projects in which tasks are ready for you.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    elsewhere: Vec<String>,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: GetTasks) -> Result<Tasks> {
    let (me, now) = (me(cx)?, cx.now());
    let project = party::project(input.project)?;
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let (status, blockers_max) = match (input.status, input.ready) {
        (status, false) => (status, i64::MAX),
        (None | Some(State::Pending), true) => (Some(State::Pending), 0),
        (Some(other), true) => return Err(Error::invalid("ready", format!("only pending tasks can be claimed, and status is {}", other.name()))),
    };
    let view = input.view.unwrap_or_default();
    let elsewhere = if view == View::Assigned { projects_ready(cx, &me, &project)? } else { Vec::new() };
    let (list, owners) = match view {
        View::Assigned => (ASSIGNED, addresses_of(cx, &me)?),
        View::Created => (CREATED_BY, vec![me]),
        View::All if sees_all(cx) => (EVERYBODYS, vec![String::new()]),
        View::All => return Err(Error::forbidden("only people see everybody's tasks").hint("`assigned` and `created` show yours")),
    };
    let mut keys = Vec::new();
    for owner in &owners {
        for part in Part::of(status, now) {
            keys.extend(part.query(cx.tx, &list, owner, &project, blockers_max, &page)?);
        }
    }
    keys.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
    keys.truncate(page.look_ahead() as usize);
    let sizes: Vec<i64> = keys.iter().map(|key| key.size).collect();
    let limit = fitting(&sizes).min(page.limit);
    let found = Page::cut(keys, &PageIn { limit, after: None }, |key| (key.created_at, key.id.clone()));
    let mut tasks = Vec::with_capacity(found.items.len());
    for key in &found.items {
        if let Some(task) = rows::find_task(cx.tx, &key.id)? {
            tasks.push(TaskOut::new(task, now));
        }
    }
    Ok(Tasks { notice: NOTICE, tasks, more: found.next_cursor.is_some(), next_cursor: found.next_cursor, elsewhere })
}

/// A row of a list before its texts are read.
struct Key {
    created_at: i64,
    id: String,
    size: i64,
}

impl Key {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self { created_at: row.get(0)?, id: row.get(1)?, size: row.get(2)? })
    }
}

/// One stored state, and for work in progress the range in which its lease must end. Each is one walk along an index,
/// already in the order of the list, so that a page costs the same however many tasks there were.
struct Part {
    state: State,
    lease: Option<(i64, i64)>,
}

impl Part {
    /// The parts of which a wanted state consists: work whose lease ended is pending.
    fn of(status: Option<State>, now: i64) -> Vec<Self> {
        let whole = |state| Self { state, lease: None };
        match status {
            None => State::ALL.into_iter().map(whole).collect(),
            Some(State::Pending) => vec![whole(State::Pending), Self { state: State::InProgress, lease: Some((0, now)) }],
            Some(State::InProgress) => vec![Self { state: State::InProgress, lease: Some((now + 1, i64::MAX)) }],
            Some(state) => vec![whole(state)],
        }
    }

    fn query(&self, tx: &mut Tx<'_>, list: &List, owner: &str, project: &str, blockers_max: i64, page: &PageIn) -> Result<Vec<Key>> {
        let (created_at, id) = page.after.clone().unwrap_or((i64::MAX, String::new()));
        let (state, limit) = (self.state.name(), page.look_ahead());
        let rows = match self.lease {
            None => tx.query(list.whole, args![project, state, created_at, id, blockers_max, limit, owner])?,
            Some((from, to)) => tx.query(list.leased, args![project, created_at, id, from, to, blockers_max, limit, owner])?,
        };
        rows.iter().map(Key::read).collect()
    }
}

/// The statements of a list: a whole state, and work in progress by the end of its lease.
pub(super) struct List {
    pub(super) whole: &'static str,
    pub(super) leased: &'static str,
}

/// Both statements from their conditions on the owner, which end with the project.
macro_rules! task_list {
    ($whole:literal, $leased:literal) => {
        List {
            whole: concat!(
                "select t.created_at, t.id, coalesce(octet_length(t.description), 0) + coalesce(octet_length(t.result), 0) + 1024 from task t where ",
                $whole,
                " = $1 and t.state = $2 and (t.created_at, t.id) < ($3, $4) and t.open_blockers <= $5 \
                 order by t.created_at desc, t.id desc limit $6"
            ),
            leased: concat!(
                "select t.created_at, t.id, coalesce(octet_length(t.description), 0) + coalesce(octet_length(t.result), 0) + 1024 \
                 from task t left join lease l on l.subject = 'task:' || t.id where ",
                $leased,
                " = $1 and t.state = 'in_progress' and (t.created_at, t.id) < ($2, $3) \
                 and coalesce(l.expires_at, 0) between $4 and $5 and t.open_blockers <= $6 order by t.created_at desc, t.id desc limit $7"
            ),
        }
    };
}

pub(super) const ASSIGNED: List = task_list!("t.recipient = $7 and t.project", "t.recipient = $8 and t.project");
pub(super) const CREATED_BY: List = task_list!("t.sender = $7 and t.project", "t.sender = $8 and t.project");
// Written as its index is.
pub(super) const EVERYBODYS: List = task_list!("(t.project || '')", "(t.project || '')");

/// Look at one task: its state and result, who works on it, what it waits for, and the notes on it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetTask {
    /// The task's id.
    task_id: String,
    /// How many notes; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page of notes ended.
    cursor: Option<String>,
}

/// Another task that must be completed first.
#[derive(Serialize, JsonSchema)]
pub(super) struct BlockerOut {
    /// Its id.
    task_id: String,
    /// Where it stands.
    status: State,
    /// Whether it still holds this task up.
    open: bool,
    /// Why it holds this task up for good, and what can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// A task with what belongs to it.
#[derive(Serialize, JsonSchema)]
pub(super) struct TaskDetail {
    /// How to treat what follows.
    notice: &'static str,
    /// The task.
    task: TaskOut,
    /// Who set which field last, people first. Fields that are as the sender gave them are not named.
    edits: Vec<FieldOut>,
    /// What it waits for.
    blockers: Vec<BlockerOut>,
    /// The notes on it, newest first.
    notes: Vec<NoteOut>,
    /// Give this as `cursor` for older notes. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn get(cx: &mut Cx<'_, '_>, input: GetTask) -> Result<TaskDetail> {
    let (me, now) = (me(cx)?, cx.now());
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let task = find_visible(cx, "task_id", &input.task_id, &me)?;
    let edits = edit::fields(cx.tx, &task.subject())?;
    let blockers = blockers_of(cx.tx, &task.id, now)?;
    let notes = notes_of(cx.tx, &task.id, &page)?;
    Ok(TaskDetail { notice: NOTICE, task: TaskOut::new(task, now), edits, blockers, notes: notes.items, next_cursor: notes.next_cursor })
}

fn blockers_of(tx: &mut Tx<'_>, task: &str, now: i64) -> Result<Vec<BlockerOut>> {
    let bound = i64::try_from(BLOCKERS_MAX).unwrap_or(i64::MAX);
    let rows = tx.query(
        "select b.blocker, t.state, l.expires_at from task_blocker b join task t on t.id = b.blocker \
         left join lease l on l.subject = 'task:' || t.id where b.task = $1 order by b.blocker limit $2",
        args![task, bound],
    )?;
    let mut blockers = Vec::with_capacity(rows.len());
    for row in &rows {
        let (stored, expires_at) = (State::from_name(&row.get::<String>(1)?)?, row.get::<Option<i64>>(2)?);
        let lost = stored == State::InProgress && expires_at.is_none_or(|expires_at| expires_at <= now);
        let status = if lost { State::Pending } else { stored };
        let open = status != State::Completed;
        let why = (open && status.is_final())
            .then(|| format!("it is {} and will never be completed; who gave this task can drop it with unblock_task", status.name()));
        blockers.push(BlockerOut { task_id: row.get(0)?, status, open, why });
    }
    Ok(blockers)
}
