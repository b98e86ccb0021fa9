//! The inbox: what waits for people, what is most at stake first and of that the newest; and what became of the rest, newest
//! first. Every list walks an index that is already in its order, so a page costs the same however much history there is.

use deskmate_db::{Row, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::find_person;
use super::model::{OWNERS, Request, RequestKind, State};
use super::rows::{self, KEY_PLACE, SHORT_PLACE, select_request, select_request_key, select_request_short};
use super::submit::as_seen;
use super::view::{RequestOut, WaitsFor};
use crate::call::{Cx, Page, PageIn, Role};
use crate::limits::{PAGE_MAX, TITLE_CHARS_MAX};
use crate::{Error, Result, check_text, format_time};

/// Which requests a list shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum View {
    /// What waits for people now, what is most at stake first and of that the newest.
    #[default]
    Inbox,
    /// What was put off.
    Snoozed,
    /// What waits for an answer of its requester.
    Asked,
    /// Everything that is pending.
    Pending,
    /// Everything that ever was, newest first; `state` chooses among it.
    All,
}

/// How much is at stake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Risk {
    /// Little.
    Low,
    /// Something.
    Medium,
    /// Much.
    High,
    /// Everything.
    Critical,
}

impl Risk {
    fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// List requests: by default the inbox, that is what waits for people now: what is most at stake (by its risk or its
/// priority) first, and of that the newest. With `state` or `view: all` it shows what became of others, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// Which ones; `inbox` if not given.
    view: Option<View>,
    /// Only requests in this state; any but `pending` looks at history.
    state: Option<State>,
    /// Only this domain.
    domain: Option<String>,
    /// Only requests of this agent or person.
    requester: Option<String>,
    /// Only this kind.
    kind: Option<RequestKind>,
    /// Only what was given to you, or, if you are an owner, went to the owners.
    #[serde(default)]
    mine: bool,
    /// Only what was given to this person: a name or an id; `role:owner` for what went to the owners.
    assignee: Option<String>,
    /// Only requests of this risk.
    risk: Option<Risk>,
    /// Only requests that are older than this.
    older_than_minutes: Option<u32>,
    /// Only requests whose title has this text in it, in capitals or not.
    search: Option<String>,
    /// How many; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of requests.
#[derive(Serialize, JsonSchema)]
pub(super) struct Requests {
    /// The requests.
    requests: Vec<RequestOut>,
    /// Give this as `cursor` for the next page. Absent at the end. A page may be short, even empty, before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// When the newest of all that waits for people was made, wherever it stands in the list. Only on the first page of the
    /// inbox, without a filter: who looks again sees by it that something arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_at: Option<String>,
}

const MINUTE: i64 = 60_000_000;
/// How many rows one call looks at while it seeks those that fit.
const SCAN_MAX: usize = 5_000;

/// Where a walk along an index stands: the place among what waits, or the time in history, and the id.
type At = (i64, String);

impl List {
    fn fits(&self, request: &Request, now: i64, given_to: Option<&[String]>) -> bool {
        let waits = WaitsFor::of(request, now);
        let in_view = match self.view() {
            View::Inbox => waits == Some(WaitsFor::People),
            View::Snoozed => waits == Some(WaitsFor::Later),
            View::Asked => waits == Some(WaitsFor::Requester),
            View::Pending => waits.is_some(),
            View::All => true,
        };
        in_view
            && self.state.is_none_or(|state| state == request.state_at(now))
            && self.domain.as_ref().is_none_or(|domain| *domain == request.domain)
            && self.requester.as_ref().is_none_or(|requester| *requester == request.requester.id)
            && self.may_fit(request.kind.name(), request.title.as_deref())
            && self.risk.is_none_or(|risk| risk.name() == request.risk)
            && self.older_than_minutes.is_none_or(|minutes| now - request.created_at > i64::from(minutes) * MINUTE)
            && given_to.is_none_or(|people| request.assignee.as_ref().is_some_and(|assignee| people.contains(assignee)))
    }

    /// Whether it asks for the inbox as it is.
    fn is_plain(&self) -> bool {
        let filters = self.state.is_some() || self.risk.is_some() || self.kind.is_some() || self.older_than_minutes.is_some() || self.mine;
        let texts = [&self.domain, &self.requester, &self.assignee, &self.search, &self.cursor];
        self.view() == View::Inbox && !filters && texts.into_iter().all(Option::is_none)
    }

    /// What can be said without the whole row.
    fn may_fit(&self, kind: &str, title: Option<&str>) -> bool {
        let has = |text: &String| title.is_some_and(|title| title.to_lowercase().contains(&text.to_lowercase()));
        self.kind.is_none_or(|wanted| wanted.name() == kind) && self.search.as_ref().is_none_or(has)
    }

    /// A state that is not pending looks at history.
    fn view(&self) -> View {
        match (self.view, self.state) {
            (Some(view), _) => view,
            (None, None) => View::Inbox,
            (None, Some(State::Pending)) => View::Pending,
            (None, Some(_)) => View::All,
        }
    }
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<Requests> {
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    if let Some(search) = &input.search {
        check_text("search", search, TITLE_CHARS_MAX)?;
    }
    if input.state.is_some_and(|state| state != State::Pending) && input.view.is_some_and(|view| view != View::All) {
        return Err(Error::invalid("view", "shows only pending requests; leave it out, or take `all`"));
    }
    let (now, history) = (cx.now(), input.view() == View::All);
    let given_to = given_to(cx, &input)?;
    let newest_at = if input.is_plain() { newest(cx)?.map(format_time) } else { None };
    let mut after = page.after.clone();
    let (mut found, mut looked): (Vec<Request>, usize) = (Vec::new(), 0);
    loop {
        let slice = if history { past(cx, &input, after.as_ref())? } else { waiting(cx, &input, given_to.as_deref(), after.as_ref(), page.look_ahead())? };
        looked += slice.read;
        after = slice.last.or(after);
        found.extend(slice.rows.into_iter().filter(|request| input.fits(request, now, given_to.as_deref())));
        if found.len() > page.limit as usize || !slice.more {
            let page = Page::cut(found, &page, |request| at(request, history));
            return Ok(Requests {
                requests: page.items.iter().map(|request| RequestOut::new(request, now)).collect(),
                next_cursor: page.next_cursor,
                newest_at,
            });
        }
        if looked >= SCAN_MAX {
            let next_cursor = after.map(|after| cursor_at(&after));
            return Ok(Requests { requests: found.iter().map(|request| RequestOut::new(request, now)).collect(), next_cursor, newest_at });
        }
    }
}

/// When the newest of what waits for people was made. The index is in the order of the inbox, where the newest of each group
/// that is equally at stake comes first: one look for each group is enough.
fn newest(cx: &mut Cx<'_, '_>) -> Result<Option<i64>> {
    let (mut newest, mut after) = (None, None);
    while let Some(row) = step(cx, View::Inbox, of_view(View::Inbox, PENDING.keys), None, after.as_ref(), 1)?.first() {
        let (made_at, next) = Request::made_at(row.get(KEY_PLACE)?);
        newest = newest.max(Some(made_at));
        after = Some((next, String::new()));
    }
    Ok(newest)
}

/// Whose requests are wanted, if only those that were given to somebody are.
fn given_to(cx: &mut Cx<'_, '_>, input: &List) -> Result<Option<Vec<String>>> {
    if input.assignee.as_deref() == Some(OWNERS) {
        return Ok(Some(vec![OWNERS.to_owned()]));
    }
    if let Some(name) = &input.assignee {
        let person = find_person(cx, name)?.ok_or_else(|| Error::invalid("assignee", "there is no person of this name or id"))?;
        return Ok(Some(vec![person.id]));
    }
    if !input.mine {
        return Ok(None);
    }
    let owners = (cx.actor.role == Some(Role::Owner)).then(|| OWNERS.to_owned());
    Ok(Some(std::iter::once(cx.actor.id.clone()).chain(owners).collect()))
}

fn at(request: &Request, history: bool) -> At {
    (if history { request.created_at } else { request.place() }, request.id.clone())
}

/// The cursor behind a place: a page of it alone, where another one follows.
fn cursor_at(at: &At) -> String {
    Page::cut(vec![(), ()], &PageIn { limit: 1, after: None }, |()| at.clone()).next_cursor.unwrap_or_default()
}

/// What is pending, along one index, in each view. Whether it is put off or asked back stands in the index, so what a
/// view leaves out costs no look at a row. The order is that of [`View`].
macro_rules! pending {
    ($select:ident, $of:literal) => {
        [
            pending!($select, $of, "asked_at is null and (snoozed_until is null or snoozed_until <= $4)"),
            pending!($select, $of, "asked_at is null and snoozed_until > $4"),
            pending!($select, $of, "asked_at <= $4"),
            pending!($select, $of, "created_at <= $4"),
        ]
    };
    ($select:ident, $of:literal, $view:literal) => {
        $select!("where state = 'pending' and ", $of, "(place, id) > ($1, $2) and ", $view, " order by place, id limit $3")
    };
}

/// The ways along an index, with whole rows and with keys only.
pub(super) struct Way {
    pub(super) rows: [&'static str; 4],
    pub(super) keys: [&'static str; 4],
}

pub(super) const PENDING: Way = Way { rows: pending!(select_request_short, ""), keys: pending!(select_request_key, "") };
pub(super) const PENDING_IN: Way = Way { rows: pending!(select_request_short, "domain = $5 and "), keys: pending!(select_request_key, "domain = $5 and ") };
pub(super) const PENDING_KIND: Way = Way { rows: pending!(select_request_short, "kind = $5 and "), keys: pending!(select_request_key, "kind = $5 and ") };
pub(super) const PENDING_OF: Way =
    Way { rows: pending!(select_request_short, "requester = $5 and "), keys: pending!(select_request_key, "requester = $5 and ") };
pub(super) const PENDING_FOR: Way = Way {
    rows: pending!(select_request_short, "assignee is not null and assignee = $5 and "),
    keys: pending!(select_request_key, "assignee is not null and assignee = $5 and "),
};

/// A part of a walk.
struct Slice {
    /// The rows that may fit.
    rows: Vec<Request>,
    /// Where it ended.
    last: Option<At>,
    /// How many were looked at.
    read: usize,
    /// Whether there may be more.
    more: bool,
}

/// The next pending rows by the index that narrows most. Where few may fit, only keys are read on the way.
fn waiting(cx: &mut Cx<'_, '_>, input: &List, given_to: Option<&[String]>, after: Option<&At>, limit: u32) -> Result<Slice> {
    // A kind alone has an index of its own; beside a requester, a domain or a person, those narrow more.
    let by_kind = input.kind.filter(|_| given_to.is_none() && input.requester.is_none() && input.domain.is_none());
    let narrow = input.search.is_some() || (input.kind.is_some() && by_kind.is_none());
    let count = if narrow { KEYS_MAX } else { limit };
    let mut keys: Vec<(At, Row)> = Vec::new();
    let mut walk = |way: &Way, owner: Option<&str>| -> Result<()> {
        let sql = of_view(input.view(), if narrow { way.keys } else { way.rows });
        for row in step(cx, input.view(), sql, owner, after, count)? {
            keys.push(((row.get(if narrow { KEY_PLACE } else { SHORT_PLACE })?, row.get(0)?), row));
        }
        Ok(())
    };
    match (given_to, &input.requester, &input.domain) {
        (Some(people), ..) => people.iter().try_for_each(|person| walk(&PENDING_FOR, Some(person)))?,
        (None, Some(requester), _) => walk(&PENDING_OF, Some(requester))?,
        (None, None, Some(domain)) => walk(&PENDING_IN, Some(domain))?,
        (None, None, None) => match by_kind {
            Some(kind) => walk(&PENDING_KIND, Some(kind.name()))?,
            None => walk(&PENDING, None)?,
        },
    }
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    let more = keys.len() >= count as usize;
    keys.truncate(count as usize);
    let (read, mut last) = (keys.len(), keys.last().map(|(at, _)| at.clone()));
    let mut rows = Vec::new();
    for (at, row) in keys {
        if !narrow {
            rows.push(Request::read(&row)?);
        } else if input.may_fit(&row.get::<String>(2)?, row.get::<Option<String>>(3)?.as_deref()) {
            rows.extend(rows::load(cx, &at.1)?);
            if rows.len() == limit as usize {
                last = Some(at);
                return Ok(Slice { rows, last, read, more: true });
            }
        }
    }
    Ok(Slice { rows, last, read, more })
}

/// Keys of one step.
const KEYS_MAX: u32 = 1_000;

fn of_view(view: View, [inbox, snoozed, asked, pending]: [&'static str; 4]) -> &'static str {
    match view {
        View::Inbox => inbox,
        View::Snoozed => snoozed,
        View::Asked => asked,
        View::Pending | View::All => pending,
    }
}

fn step(cx: &mut Cx<'_, '_>, view: View, sql: &'static str, owner: Option<&str>, after: Option<&At>, count: u32) -> Result<Vec<Row>> {
    let (place, id) = after.cloned().unwrap_or((i64::MIN, String::new()));
    let until = if matches!(view, View::Inbox | View::Snoozed) { cx.now() } else { i64::MAX };
    Ok(match owner {
        None => cx.tx.query(sql, args![place, id, count, until])?,
        Some(owner) => cx.tx.query(sql, args![place, id, count, until, owner])?,
    })
}

pub(super) const PAST_OF: &str = select_request_short!("where requester = $4 and (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3");
pub(super) const PAST_IN: &str = select_request_short!("where domain = $4 and (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3");
pub(super) const PAST_STATE: &str =
    select_request_short!("where state = $4 and state <> 'pending' and (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3");
pub(super) const PAST_KIND: &str = select_request_short!("where kind = $4 and (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3");
pub(super) const PAST: &str = select_request_short!("where (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3");

/// The next rows of history by the index that narrows most; whether the rest fits is seen in the rows themselves.
fn past(cx: &mut Cx<'_, '_>, input: &List, after: Option<&At>) -> Result<Slice> {
    let (time, id) = after.cloned().unwrap_or((i64::MAX, String::new()));
    let rows = match (&input.requester, &input.domain, input.state, input.kind) {
        (Some(requester), ..) => cx.tx.query(PAST_OF, args![time, id, PAGE_MAX, requester])?,
        (None, Some(domain), ..) => cx.tx.query(PAST_IN, args![time, id, PAGE_MAX, domain])?,
        (None, None, Some(state), _) if state != State::Pending => cx.tx.query(PAST_STATE, args![time, id, PAGE_MAX, state.name()])?,
        (None, None, _, Some(kind)) => cx.tx.query(PAST_KIND, args![time, id, PAGE_MAX, kind.name()])?,
        (None, None, _, None) => cx.tx.query(PAST, args![time, id, PAGE_MAX])?,
    };
    let rows: Vec<Request> = rows.iter().map(Request::read).collect::<Result<_>>()?;
    let (read, last) = (rows.len(), rows.last().map(|request| at(request, true)));
    Ok(Slice { rows, last, read, more: read >= PAGE_MAX as usize })
}

const FULL_OF: &str = select_request!("where requester = $4 and (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3");

/// The requests of one requester, newest first. A page may be short, even empty, before the end.
pub fn of_requester(cx: &mut Cx<'_, '_>, requester: &str, state: Option<State>, page: &PageIn) -> Result<Page<Request>> {
    let now = cx.now();
    let (mut time, mut id) = page.after.clone().unwrap_or((i64::MAX, String::new()));
    let (mut found, mut looked): (Vec<Request>, usize) = (Vec::new(), 0);
    loop {
        let rows = cx.tx.query(FULL_OF, args![time, id, PAGE_MAX, requester])?;
        looked += rows.len();
        let rows: Vec<Request> = rows.iter().map(|row: &Row| Request::read(row)).collect::<Result<_>>()?;
        let read = rows.len();
        if let Some(last) = rows.last() {
            (time, id) = (last.created_at, last.id.clone());
        }
        for request in rows.into_iter().filter(|request| state.is_none_or(|state| state == request.state_at(now))) {
            let request = request.opened(cx);
            found.push(as_seen(cx, request)?);
        }
        if found.len() > page.limit as usize || read < PAGE_MAX as usize {
            return Ok(Page::cut(found, page, |request| (request.created_at, request.id.clone())));
        }
        if looked >= SCAN_MAX {
            let next_cursor = Page::cut(vec![(), ()], &PageIn { limit: 1, after: None }, |()| (time, id.clone())).next_cursor;
            return Ok(Page { items: found, next_cursor });
        }
    }
}
