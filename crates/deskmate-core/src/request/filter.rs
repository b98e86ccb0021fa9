//! Filters of the inbox that a person keeps by name: the same in every browser in which they sign in.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::list::{Risk, View};
use super::model::RequestKind;
use crate::call::Cx;
use crate::limits::{KEPT_FILTERS_MAX, NAME_CHARS_MAX, TITLE_CHARS_MAX};
use crate::record::{Event, Kind};
use crate::{Error, Result, canonical, check_text};

/// A person kept a filter.
pub(super) const KEPT: Kind = Kind { name: "filter.kept", says: "A person kept a filter of the inbox under a name." };
/// It is no longer kept.
pub(super) const FORGOTTEN: Kind = Kind { name: "filter.forgotten", says: "A filter of the inbox is no longer kept." };

/// What is looked for: the same words as in `desk_request_list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    /// Which ones; `inbox` if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    view: Option<View>,
    /// Only this kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<RequestKind>,
    /// Only requests of this risk.
    #[serde(skip_serializing_if = "Option::is_none")]
    risk: Option<Risk>,
    /// Only requests that are older than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    older_than_minutes: Option<u32>,
    /// Only requests of this agent or person.
    #[serde(skip_serializing_if = "Option::is_none")]
    requester: Option<String>,
    /// Only this domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    /// Only what was given to this person: a name or an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    assignee: Option<String>,
    /// Only requests whose title has this text in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<String>,
}

impl Filter {
    fn check(&self) -> Result<()> {
        if *self == Self::default() {
            return Err(Error::invalid("filter", "looks for nothing: give at least one of its fields"));
        }
        for (field, text) in [("requester", &self.requester), ("domain", &self.domain), ("assignee", &self.assignee), ("search", &self.search)] {
            check_text(field, text.as_deref().unwrap_or_default(), TITLE_CHARS_MAX)?;
        }
        Ok(())
    }
}

/// Keep a filter of the inbox under a name. It takes the place of what this name stood for. It is yours alone.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Keep {
    /// What you call it.
    name: String,
    /// What is looked for.
    filter: Filter,
}

/// A filter that is kept.
#[derive(Serialize, JsonSchema)]
pub(super) struct Kept {
    /// What you call it.
    name: String,
    /// What is looked for.
    filter: Filter,
}

const OF_PERSON: &str = "select name, filter from kept_filter where person = $1 order by kept_at, name";

pub(super) fn keep(cx: &mut Cx<'_, '_>, input: Keep) -> Result<Kept> {
    check_name(&input.name)?;
    input.filter.check()?;
    let person = cx.actor.id.clone();
    let others: i64 = cx.tx.one("select count(*) from kept_filter where person = $1 and name <> $2", args![person, input.name])?.get(0)?;
    if others >= KEPT_FILTERS_MAX {
        return Err(
            Error::invalid("name", format!("would be one too many: at most {KEPT_FILTERS_MAX} filters are kept")).hint("forget one with desk_filter_forget")
        );
    }
    let now = cx.now();
    cx.tx.execute(
        "insert into kept_filter (person, name, filter, kept_at) values ($1, $2, $3, $4) \
         on conflict (person, name) do update set filter = excluded.filter, kept_at = excluded.kept_at",
        args![person, input.name, canonical("filter", &input.filter)?, now],
    )?;
    tell(cx, KEPT)?;
    Ok(Kept { name: input.name, filter: input.filter })
}

/// List the filters of the inbox that you keep.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {}

/// The filters, the one that was kept first at the beginning.
#[derive(Serialize, JsonSchema)]
pub(super) struct Filters {
    /// The filters.
    filters: Vec<Kept>,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, _: List) -> Result<Filters> {
    let rows = cx.tx.query(OF_PERSON, args![cx.actor.id])?;
    let filters = rows.iter().map(|row| {
        let filter = serde_json::from_str(&row.get::<String>(1)?).map_err(|_| Error::conflict("a stored filter is unreadable"))?;
        Ok(Kept { name: row.get(0)?, filter })
    });
    Ok(Filters { filters: filters.collect::<Result<_>>()? })
}

/// Keep a filter of the inbox no longer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Forget {
    /// What you called it.
    name: String,
}

/// It is gone.
#[derive(Serialize, JsonSchema)]
pub(super) struct Forgotten {
    /// What it was called.
    name: String,
}

pub(super) fn forget(cx: &mut Cx<'_, '_>, input: Forget) -> Result<Forgotten> {
    check_name(&input.name)?;
    let gone = cx.tx.execute("delete from kept_filter where person = $1 and name = $2", args![cx.actor.id, input.name])?;
    if gone == 0 {
        return Err(Error::not_found("you keep no filter of this name").hint("desk_filter_list shows yours"));
    }
    tell(cx, FORGOTTEN)?;
    Ok(Forgotten { name: input.name })
}

fn check_name(name: &str) -> Result<()> {
    check_text("name", name, NAME_CHARS_MAX)?;
    if name.trim().is_empty() {
        return Err(Error::invalid("name", "is needed: say what you call this filter"));
    }
    Ok(())
}

/// What somebody looks for is theirs: the record tells only that they keep something else now.
fn tell(cx: &mut Cx<'_, '_>, kind: Kind) -> Result<()> {
    let person = cx.actor.id.clone();
    cx.emit(Event::new(kind, format!("person:{person}")).fact("person", person.as_str()))
}
