//! Home: everything that waits for a person, and beside it the request that is open.

use std::collections::BTreeSet;

use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::request::{self, Request};
use super::shell::{self, Page, Place};
use super::tour;
use super::ui::{self, Tone, badge, empty, filter, said, short, spaced, time};
use super::visit::{Fault, People, Visit};
use crate::visible::visible;

/// What the address of the page says.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Filters {
    pub(super) view: String,
    pub(super) kind: String,
    pub(super) requester: String,
    pub(super) domain: String,
    pub(super) risk: String,
    pub(super) age: String,
    pub(super) assignee: String,
    pub(super) search: String,
    pub(super) rows: String,
    pub(super) cursor: String,
    pub(super) request: String,
}

impl Filters {
    fn pairs(&self) -> [(&'static str, &str); 11] {
        [
            ("view", &self.view),
            ("kind", &self.kind),
            ("requester", &self.requester),
            ("domain", &self.domain),
            ("risk", &self.risk),
            ("age", &self.age),
            ("assignee", &self.assignee),
            ("search", &self.search),
            ("rows", &self.rows),
            ("cursor", &self.cursor),
            ("request", &self.request),
        ]
    }

    fn address(&self) -> String {
        ui::address("/", &self.pairs())
    }

    /// The same list with so many rows, from a cursor on if one is given.
    fn from(&self, rows: String, cursor: Option<&str>) -> String {
        Self { rows, cursor: cursor.unwrap_or(&self.cursor).to_owned(), ..self.clone() }.address()
    }

    fn rows(&self) -> usize {
        ui::rows(&self.rows)
    }

    fn are_set(&self) -> bool {
        [&self.kind, &self.requester, &self.domain, &self.risk, &self.age, &self.assignee, &self.search].into_iter().any(|filter| !filter.is_empty())
    }

    /// The input of `desk_request_list`.
    fn input(&self) -> Value {
        let mut input = Map::new();
        for (name, value) in self.pairs().into_iter().filter(|(name, value)| !value.is_empty() && !["rows", "cursor", "request"].contains(name)) {
            let (name, value) =
                if name == "age" { ("older_than_minutes", value.parse::<u64>().map_or(Value::from(value), Value::from)) } else { (name, Value::from(value)) };
            input.insert(name.to_owned(), value);
        }
        Value::Object(input)
    }
}

#[derive(Deserialize)]
struct KeptFilters {
    filters: Vec<Kept>,
}

#[derive(Deserialize)]
struct Kept {
    name: String,
    filter: KeptFilter,
}

/// A kept filter as `desk_filter_list` tells it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct KeptFilter {
    older_than_minutes: Option<u32>,
    #[serde(flatten)]
    filters: Filters,
}

impl KeptFilter {
    fn address(&self) -> String {
        let age = self.older_than_minutes.map(|age| age.to_string()).unwrap_or_default();
        Filters { age, ..self.filters.clone() }.address()
    }
}

#[derive(Deserialize)]
struct Row {
    request: String,
    title: Option<String>,
    kind: String,
    requester: String,
    requester_kind: String,
    verified: bool,
    domain: String,
    risk: String,
    state: String,
    priority: String,
    digest: String,
    created_at: String,
    expires_at: String,
    assignee: Option<String>,
    overdue: bool,
    waits_for: Option<String>,
}

pub(super) async fn serve(visit: Visit, Query(filters): Query<Filters>) -> Result<Response, Fault> {
    let people = visit.people().await?;
    let found = visit.gather_from::<Row>("desk_request_list", "requests", filters.input(), filters.rows(), &filters.cursor).await;
    // A filter that fits nobody is said where the list would be; what else is wrong is wrong with the whole page.
    let (rows, next, wrong) = match found {
        Ok((rows, next)) => (rows, next, None),
        Err(fault) => (Vec::new(), None, Some(wrong(&fault).ok_or(fault)?)),
    };
    let known = Known::load(&visit, &people, &rows).await?;
    let open = match filters.request.as_str() {
        "" => None,
        id => Some(visit.ask::<Request>("desk_request_get", json!({ "request": id })).await),
    };
    let detail = match &open {
        None => html! { p.hint { "Choose a request, or press " kbd { "j" } " and " kbd { "Enter" } "." } },
        Some(Ok(request)) => request::detail(&visit, &people, request).await,
        Some(Err(fault)) => html! { p.hint { (said(fault.message())) } },
    };
    let kept = visit.ask::<KeptFilters>("desk_filter_list", json!({})).await?.filters;
    let back = Filters { request: String::new(), ..filters.clone() }.address();
    let (tour, further) = if filters.request.is_empty() { tour::show(&visit).await? } else { (Markup::default(), "") };
    let body = html! {
        h1.unseen { "Inbox" }
        (tour)
        div.split data-open=[open.is_some().then_some("detail")] {
            section.list aria-label="What waits" {
                (bar(&filters, &known))
                (kept_filters(&kept))
                @if !filters.cursor.is_empty() { (ui::back_to_first(&filters.from(String::new(), Some("")))) }
                @match wrong {
                    Some(why) => (empty("Nothing fits", html! { p role="alert" { (said(&why)) } p { a href="/" data-in-place { "Show all that waits" } } })),
                    None => (listed(&visit, &people, &filters, &rows)),
                }
                (ui::onward(filters.rows(), next.as_deref(), |rows, cursor| filters.from(rows, cursor)))
            }
            section.detail id="detail" aria-label="The request that is open" {
                @if open.is_some() { a.back href=(back) data-in-place data-key="Escape" { "Back to the list" } }
                (detail)
            }
        }
        @if visit.decides() { (many()) }
    };
    let topics = format!("request trust pause policy agent taint request:{} {further}", filters.request);
    shell::show(&visit, Page { title: "Inbox", place: Place::Inbox, topics: &topics, body }).await
}

/// Why a filter cannot be used, if that is what is wrong.
fn wrong(fault: &Fault) -> Option<String> {
    let field = fault.field()?;
    let label = LABELS.iter().find(|(name, _)| *name == field).map_or_else(|| spaced(field), |(_, label)| (*label).to_owned());
    Some(format!("{label}: {}", fault.message()))
}

/// What the fields are called on the page whose names in the operation differ.
const LABELS: [(&str, &str); 5] = [("assignee", "Given to"), ("requester", "Agent"), ("domain", "Domain"), ("search", "Search"), ("older_than_minutes", "Age")];

/// How many agents and domains are offered to filter by.
const OFFERED: usize = 200;

/// What can be filtered by: who asked and where, in this list and before, and who decides.
#[derive(Default)]
struct Known {
    agents: BTreeSet<String>,
    domains: BTreeSet<String>,
    people: Vec<String>,
}

#[derive(Deserialize)]
struct Trusted {
    items: Vec<Earned>,
}

#[derive(Deserialize)]
struct Earned {
    agent: String,
    domain: String,
}

impl Known {
    async fn load(visit: &Visit, people: &People, rows: &[Row]) -> Result<Self, Fault> {
        let Trusted { items } = visit.ask("desk_trust_list", json!({ "limit": OFFERED })).await?;
        let mut known =
            Self { people: people.people.iter().filter(|person| request::decides(person)).map(|person| person.name.clone()).collect(), ..Self::default() };
        let before = items.into_iter().map(|earned| (earned.agent, earned.domain));
        let now = rows.iter().map(|row| (row.requester.clone(), row.domain.clone()));
        for (agent, domain) in now.chain(before) {
            known.agents.insert(agent);
            known.domains.insert(domain);
        }
        known.agents.retain(|agent| people.people.iter().all(|person| person.person != *agent));
        Ok(known)
    }
}

/// A field with what is known for it.
fn offered<'k>(label: &str, name: &str, value: &str, known: impl IntoIterator<Item = &'k String>, further: &[(&str, &str)]) -> Markup {
    let list = format!("known-{name}");
    html! {
        input name=(name) value=(value) placeholder=(label) aria-label=(label) list=(list) autocomplete="off";
        datalist id=(list) {
            @for one in known.into_iter().filter(|one| visible(one) == **one) { option value=(one) {} }
            @for (one, called) in further { option value=(one) label=(called) {} }
        }
    }
}

const VIEWS: [(&str, &str); 5] =
    [("", "Waits for people"), ("asked", "Waits for an answer"), ("snoozed", "Put off"), ("pending", "All that is open"), ("all", "Everything, decided too")];
const KINDS: [(&str, &str); 10] = [
    ("", "Any kind"),
    ("proposal", "Proposals"),
    ("approval", "Approvals"),
    ("handoff", "Handoffs"),
    ("edit", "Edits of what people set"),
    ("promotion", "Promotions"),
    ("policy", "Policies"),
    ("plan", "Plans for files"),
    ("tool_call", "Tool calls"),
    ("deploy", "Agents to be run"),
];
const RISKS: [(&str, &str); 5] = [("", "Any risk"), ("low", "Low"), ("medium", "Medium"), ("high", "High"), ("critical", "Critical")];
const AGES: [(&str, &str); 5] = [("", "Any age"), ("10", "Over 10 minutes"), ("60", "Over an hour"), ("1440", "Over a day"), ("10080", "Over a week")];

/// Search and filters. The form is sent by its address, so that a filter can be kept and shared as a link.
fn bar(filters: &Filters, known: &Known) -> Markup {
    html! {
        form.filters data-filters role="search" {
            input type="search" name="search" value=(filters.search) placeholder="Search titles" aria-label="Search titles: what would be done, and to what" data-key="/";
            (filter("What is shown", "view", &VIEWS, &filters.view))
            details open[filters.are_set()] {
                summary { "Filter" }
                div.grid {
                    (filter("Kind", "kind", &KINDS, &filters.kind))
                    (filter("Risk", "risk", &RISKS, &filters.risk))
                    (filter("Age", "age", &AGES, &filters.age))
                    (offered("Agent", "requester", &filters.requester, &known.agents, &[]))
                    (offered("Domain", "domain", &filters.domain, &known.domains, &[]))
                    (offered("Given to", "assignee", &filters.assignee, &known.people, &[(request::OWNERS, "the owners")]))
                }
                div.row {
                    button { "Filter" }
                    @if filters.are_set() { a href="/" data-in-place { "Clear" } }
                    button.quiet type="button" data-save-filter { "Keep this filter" }
                }
            }
        }
    }
}

/// The filters that this person keeps, each a link.
fn kept_filters(kept: &[Kept]) -> Markup {
    html! {
        @if !kept.is_empty() {
            ul.saved id="saved-filters" aria-label="Kept filters" {
                @for (number, Kept { name, filter }) in kept.iter().enumerate() {
                    li id={ "kept-" (number) } {
                        a href=(filter.address()) data-in-place { (said(name)) }
                        form data-call="desk_filter_forget" data-done="Forgotten" {
                            input type="hidden" name="name" value=(name);
                            button.quiet aria-label={ "Forget " (visible(name)) } { "×" }
                        }
                    }
                }
            }
        }
    }
}

fn listed(visit: &Visit, people: &People, filters: &Filters, rows: &[Row]) -> Markup {
    if rows.is_empty() {
        return if filters.are_set() || !filters.view.is_empty() {
            empty("Nothing fits", html! { p { a href="/" data-in-place { "Show all that waits" } } })
        } else {
            empty("Nothing waits for you", html! { p { "What agents want to do and may not do alone arrives here." } })
        };
    }
    html! { ol.rows id="rows" { @for row in rows { (line(visit, people, filters, row)) } } }
}

fn line(visit: &Visit, people: &People, filters: &Filters, row: &Row) -> Markup {
    let address = Filters { request: row.request.clone(), ..filters.clone() }.address();
    let is_open = filters.request == row.request;
    let title = row.title.as_deref().unwrap_or("erased");
    html! {
        li id={ "row-" (row.request) } {
            // A handoff is answered in words, each with its own.
            @if row.state == "pending" && row.kind != "handoff" && visit.decides() {
                input type="checkbox" name="selected" value=(row.request) data-digest=(row.digest) data-risk=(row.risk) data-requester=(visible(&row.requester)) aria-label={ "Select " (visible(title)) };
            }
            a href=(address) data-in-place data-row aria-current=[is_open.then_some("true")] {
                span.title { (said(title)) }
                span.meta {
                    (said(&row.requester)) @if !row.verified { " (" (ui::unproved(&row.requester_kind)) ")" }
                    " · " (spaced(&row.kind)) " in " (said(&row.domain)) " · " (time(&row.created_at))
                }
                span.badges {
                    @if row.risk != "low" { (badge(Tone::of_risk(&row.risk), &format!("risk {}", row.risk))) }
                    @if row.priority != "normal" { (badge(Tone::Quiet, &row.priority)) }
                    @if row.state != "pending" { (badge(Tone::of_state(&row.state), &row.state)) }
                    @if row.waits_for.as_deref() == Some("requester") { (badge(Tone::Quiet, "asked")) }
                    @if row.waits_for.as_deref() == Some("later") { (badge(Tone::Quiet, "put off")) }
                    @if let Some(assignee) = &row.assignee { span.badge { "for " (said(request::given(people, assignee))) } }
                    @if row.state == "pending" { (request::pressing(visit.now(), row.overdue, &row.expires_at)) }
                    @if row.state == "pending" { span.deadline { "until " (time(&row.expires_at)) } }
                }
                span.unseen { "id " (short(&row.request)) }
            }
        }
    }
}

/// The bar that decides many: it shows when something is selected, and lists exactly what it would decide.
fn many() -> Markup {
    html! {
        div.many id="many" hidden {
            span id="many-count" {}
            button type="button" data-many="desk_request_approve" data-word="Approve" { "Approve selected" }
            button.quiet type="button" data-many="desk_request_reject" data-word="Reject" { "Reject selected" }
            button.quiet type="button" data-many="" { "Select none" }
        }
    }
}
