//! Groups: names under which several actors are reached at once.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::party::{GROUP_PREFIX, called, find_actor, me, members_of};
use super::rows::{fitting, size_of_all};
use crate::call::{Cx, Page, PageIn};
use crate::edit::{self, Change, EDITED, Held, Target};
use crate::identity::check_name;
use crate::limits::{GROUPS_OF_MEMBER_MAX, RECIPIENTS_MAX};
use crate::record::{Event, Kind};
use crate::{Error, Result, format_time};

/// A group was made or its members changed.
pub(super) const SET: Kind = Kind { name: "group.set", says: "A group was made, or its members were replaced." };

/// The scope of work that groups belong to.
const DOMAIN: &str = "bridge.groups";

/// Make a group, or replace its members. Messages and tasks for `group:NAME` reach all of them. Only who made a group,
/// or a person, may change it. Members that a person set are not replaced by an agent: that waits for a person, and the
/// answer says so in `held`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetGroup {
    /// The group's name, for example `reviewers`.
    name: String,
    /// All members: agents, and people by their names. An empty list leaves the group without anybody.
    members: Vec<String>,
}

/// A group.
#[derive(Serialize, JsonSchema)]
pub(super) struct GroupOut {
    /// Its name.
    name: String,
    /// Who is in it.
    members: Vec<String>,
    /// Who made it.
    owner: String,
    /// When its members were last set.
    updated_at: String,
    /// The fields that a person set. An agent's change of them waits for a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set_by_people: Vec<String>,
    /// Your change, where it waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<Held>,
}

pub(super) fn set(cx: &mut Cx<'_, '_>, input: SetGroup) -> Result<GroupOut> {
    let me = me(cx)?;
    check_name("name", &input.name)?;
    if input.members.len() > RECIPIENTS_MAX {
        return Err(Error::invalid("members", format!("are {}; at most {RECIPIENTS_MAX} are allowed", input.members.len())));
    }
    let found = find(cx, &input.name)?;
    match found.as_ref().map(|(owner, _)| owner) {
        Some(owner) if *owner != me && cx.actor.is_agent() => {
            let owner = called(cx, owner)?;
            return Err(Error::forbidden(format!("the group {} was made by {owner}; only who made it or a person may change it", input.name)));
        }
        Some(_) => {}
        None => check_free(cx, &input.name)?,
    }
    let before = members_of(cx, &input.name)?;
    let members = resolve(cx, &input.members)?;
    let subject = subject(&input.name);
    let split = edit::split(cx, &subject, vec![Change::new("members", before.clone(), members.clone())])?;
    let mut updated_at = cx.now();
    let mut shown = members.clone();
    if split.held.is_empty() {
        // An agent that gives the members that are there already sets nothing.
        let sets = !split.free.is_empty();
        write(cx, &input.name, &me, &before, members, sets)?;
    } else if let Some((_, at)) = &found {
        (updated_at, shown) = (*at, before);
    }
    let target = Target { subject: subject.clone(), domain: DOMAIN, tool: "bridge_set_group", noun: "group" };
    let held = edit::hold(cx, &target, split.held)?;
    let set_by_people = edit::set_by_people(cx.tx, &subject)?;
    let owner = found.map_or(me, |(owner, _)| owner);
    Ok(GroupOut { name: input.name, members: shown, owner, updated_at: format_time(updated_at), set_by_people, held })
}

/// Who made a group, and when it was last set.
fn find(cx: &mut Cx<'_, '_>, name: &str) -> Result<Option<(String, i64)>> {
    let row = cx.tx.optional("select owner, updated_at from actor_group where name = $1", args![name])?;
    row.map(|row| Ok((row.get(0)?, row.get(1)?))).transpose()
}

fn subject(name: &str) -> String {
    format!("{GROUP_PREFIX}{name}")
}

/// The actors whom a list of names means, each once.
fn resolve(cx: &mut Cx<'_, '_>, names: &[String]) -> Result<Vec<String>> {
    let mut members = Vec::with_capacity(names.len());
    for name in names {
        members.push(find_actor(cx, "members", name)?);
    }
    members.sort();
    members.dedup();
    Ok(members)
}

/// Makes a group or replaces its members, and tells the record.
fn write(cx: &mut Cx<'_, '_>, name: &str, owner: &str, before: &[String], members: Vec<String>, sets: bool) -> Result<()> {
    let (now, kind) = (cx.now(), cx.actor.kind.name());
    cx.tx.execute(
        "insert into actor_group (name, owner_kind, owner, created_at, updated_at) values ($1, $2, $3, $4, $4) \
         on conflict (name) do update set updated_at = excluded.updated_at",
        args![name, kind, owner, now],
    )?;
    replace(cx, name, before, &members)?;
    let set: &[&str] = if sets { &["members"] } else { &[] };
    edit::mark(cx, &subject(name), set)?;
    let concerned = before.iter().cloned().chain(members.iter().cloned()).collect::<std::collections::BTreeSet<_>>();
    let event = Event::new(SET, subject(name)).fact("group", name).fact("members", members).fact(EDITED, set.to_vec());
    cx.emit(event.audience(concerned))
}

/// Checks that a held change still fits the group as it was shown, and writes it where a person approved it.
pub(crate) fn accept_group_edit(cx: &mut Cx<'_, '_>, name: &str, changes: &[Change], approved: bool) -> Result<()> {
    let (owner, _) = find(cx, name)?.ok_or_else(|| Error::not_found("the group is gone"))?;
    let before = members_of(cx, name)?;
    edit::check_shown(changes, |field| (field == "members").then(|| before.clone().into()))?;
    for change in changes {
        let names: Vec<String> = serde_json::from_value(change.to.clone()).map_err(|error| Error::invalid("members", error.to_string()))?;
        if names.len() > RECIPIENTS_MAX {
            return Err(Error::invalid("members", format!("are {}; at most {RECIPIENTS_MAX} are allowed", names.len())));
        }
        let members = resolve(cx, &names)?;
        check_room(cx, &before, &members)?;
        if approved {
            write(cx, name, &owner, &before, members, true)?;
        }
    }
    Ok(())
}

/// Refuses members who are in as many groups as one can be.
fn check_room(cx: &mut Cx<'_, '_>, before: &[String], after: &[String]) -> Result<()> {
    let bound = i64::try_from(GROUPS_OF_MEMBER_MAX).unwrap_or(i64::MAX);
    for new in after.iter().filter(|member| !before.contains(member)) {
        let full = cx.tx.optional("select name from member where member = $1 order by name limit 1 offset $2", args![new, bound - 1])?;
        if full.is_some() {
            let new = called(cx, new)?;
            return Err(Error::invalid("members", format!("{new} is in {GROUPS_OF_MEMBER_MAX} groups already")));
        }
    }
    Ok(())
}

/// A group must not take a name under which somebody is reached: their mail would go to the group.
fn check_free(cx: &mut Cx<'_, '_>, name: &str) -> Result<()> {
    let takers = [
        "select id from agent where id = $1",
        "select id from person where id = $1",
        "select id from person where name = $1",
        "select recipient from mailbox where recipient = $1",
        "select id from message where sender = $1 order by project, created_at, id limit 1",
        "select id from task where recipient = $1 order by project, state, created_at, id limit 1",
    ];
    for taker in takers {
        if cx.tx.optional(taker, args![name])?.is_some() {
            return Err(Error::conflict(format!("somebody is reached as {name} already")).hint("choose another name for the group"));
        }
    }
    Ok(())
}

fn replace(cx: &mut Cx<'_, '_>, name: &str, before: &[String], after: &[String]) -> Result<()> {
    let now = cx.now();
    for gone in before.iter().filter(|member| !after.contains(member)) {
        cx.tx.execute("delete from member where name = $1 and member = $2", args![name, gone])?;
    }
    check_room(cx, before, after)?;
    for new in after.iter().filter(|member| !before.contains(member)) {
        cx.tx.execute("insert into member (name, member, created_at) values ($1, $2, $3)", args![name, new, now])?;
    }
    Ok(())
}

/// List the groups with their members, by name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListGroups {
    /// How many groups; at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of groups.
#[derive(Serialize, JsonSchema)]
pub(super) struct Groups {
    /// The groups.
    groups: Vec<GroupOut>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: ListGroups) -> Result<Groups> {
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let after = page.after.as_ref().map_or("", |(_, name)| name.as_str());
    let rows = cx.tx.query("select name, owner, updated_at from actor_group where name > $1 order by name limit $2", args![after, page.look_ahead()])?;
    let mut groups = Vec::with_capacity(rows.len());
    for row in rows {
        let name: String = row.get(0)?;
        let members = members_of(cx, &name)?;
        let set_by_people = edit::set_by_people(cx.tx, &subject(&name))?;
        groups.push(GroupOut { name, members, owner: row.get(1)?, updated_at: format_time(row.get(2)?), set_by_people, held: None });
    }
    let sizes: Vec<i64> = groups.iter().map(|group| size_of_all(&group.members) + 256).collect();
    let page = PageIn { limit: fitting(&sizes).min(page.limit), after: None };
    let page = Page::cut(groups, &page, |group| (0, group.name.clone()));
    Ok(Groups { groups: page.items, next_cursor: page.next_cursor })
}
