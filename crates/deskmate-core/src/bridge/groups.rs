//! Groups: names under which several actors are reached at once.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::party::{find_actor, me, members_of};
use super::rows::{fitting, size_of_all};
use crate::call::{Cx, Page, PageIn};
use crate::identity::check_name;
use crate::limits::{GROUPS_OF_MEMBER_MAX, RECIPIENTS_MAX};
use crate::record::{Event, Kind};
use crate::{Error, Result, format_time};

/// A group was made or its members changed.
pub(super) const SET: Kind = Kind { name: "group.set", says: "A group was made, or its members were replaced." };

/// Make a group, or replace its members. Messages and tasks for `group:NAME` reach all of them. Only who made a group,
/// or a person, may change it.
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
}

pub(super) fn set(cx: &mut Cx<'_, '_>, input: SetGroup) -> Result<GroupOut> {
    let me = me(cx)?;
    check_name("name", &input.name)?;
    if input.members.len() > RECIPIENTS_MAX {
        return Err(Error::invalid("members", format!("are {}; at most {RECIPIENTS_MAX} are allowed", input.members.len())));
    }
    let (now, kind) = (cx.now(), cx.actor.kind.name());
    let owner: Option<String> = cx.tx.optional("select owner from actor_group where name = $1", args![input.name])?.map(|row| row.get(0)).transpose()?;
    match &owner {
        Some(owner) if *owner != me && cx.actor.is_agent() => {
            return Err(Error::forbidden(format!("the group {} was made by {owner}; only {owner} or a person may change it", input.name)));
        }
        Some(_) => {}
        None => check_free(cx, &input.name)?,
    }
    let before = members_of(cx, &input.name)?;
    let mut members = Vec::with_capacity(input.members.len());
    for name in &input.members {
        members.push(find_actor(cx, "members", name)?);
    }
    members.sort();
    members.dedup();
    cx.tx.execute(
        "insert into actor_group (name, owner_kind, owner, created_at, updated_at) values ($1, $2, $3, $4, $4) \
         on conflict (name) do update set updated_at = excluded.updated_at",
        args![input.name, kind, me, now],
    )?;
    replace(cx, &input.name, &before, &members)?;
    let concerned = before.into_iter().chain(members.iter().cloned()).collect::<std::collections::BTreeSet<_>>();
    let event = Event::new(SET, format!("group:{}", input.name)).fact("group", input.name.as_str()).fact("members", members.clone());
    cx.emit(event.audience(concerned))?;
    Ok(GroupOut { name: input.name, members, owner: owner.unwrap_or(me), updated_at: format_time(now) })
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
    let bound = i64::try_from(GROUPS_OF_MEMBER_MAX).unwrap_or(i64::MAX);
    for new in after.iter().filter(|member| !before.contains(member)) {
        let full = cx.tx.optional("select name from member where member = $1 order by name limit 1 offset $2", args![new, bound - 1])?;
        if full.is_some() {
            return Err(Error::invalid("members", format!("{new} is in {GROUPS_OF_MEMBER_MAX} groups already")));
        }
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
        groups.push(GroupOut { name, members, owner: row.get(1)?, updated_at: format_time(row.get(2)?) });
    }
    let sizes: Vec<i64> = groups.iter().map(|group| size_of_all(&group.members) + 256).collect();
    let page = PageIn { limit: fitting(&sizes).min(page.limit), after: None };
    let page = Page::cut(groups, &page, |group| (0, group.name.clone()));
    Ok(Groups { groups: page.items, next_cursor: page.next_cursor })
}
