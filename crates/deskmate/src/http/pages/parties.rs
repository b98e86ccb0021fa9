//! Who can be written to and given work: agents, groups and people, by the names that people know them by.

use std::collections::BTreeSet;

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::ui::{field, said};
use super::visit::{Fault, People, Visit};

const GROUP: &str = "group:";

/// Everybody whom a message or a task can be for.
pub(super) struct Parties {
    pub(super) people: People,
    agents: Vec<Agent>,
    pub(super) groups: Vec<Group>,
    /// Whether there are more groups than these.
    pub(super) more_groups: bool,
    me: String,
}

#[derive(Deserialize)]
struct Agents {
    agents: Vec<Agent>,
}

#[derive(Deserialize)]
struct Agent {
    agent: String,
    state: String,
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
    next_cursor: Option<String>,
}

/// What `bridge_list_groups` tells of a group.
#[derive(Deserialize)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) members: Vec<String>,
    pub(super) owner: String,
    pub(super) updated_at: String,
    #[serde(default)]
    pub(super) set_by_people: Vec<String>,
}

impl Parties {
    pub(super) async fn load(visit: &Visit) -> Result<Self, Fault> {
        let Agents { agents } = visit.ask("desk_agent_list", json!({})).await?;
        let Groups { groups, next_cursor } = visit.ask("bridge_list_groups", json!({ "limit": 200 })).await?;
        Ok(Self { people: visit.people().await?, agents, groups, more_groups: next_cursor.is_some(), me: visit.you.id.clone() })
    }

    /// Somebody, for reading: a person by name, a group as such, an agent by its id.
    pub(super) fn who(&self, id: &str) -> Markup {
        who(&self.people, id)
    }

    /// Somebody, as a form names them: a person by name, unless that means somebody else as well.
    pub(super) fn address<'p>(&'p self, id: &'p str) -> &'p str {
        let name = self.people.name(id);
        let is_taken = self.agents.iter().any(|agent| agent.agent == name) || self.groups.iter().any(|group| group.name == name);
        if is_taken || name.contains([',', '\n']) { id } else { name }
    }

    /// A place to say for whom something is, with whoever is known offered. A desk without registered agents takes any
    /// name of an agent, so it is no choice out of a list.
    pub(super) fn choose(&self, id: &str, label: &str, name: &str, chosen: &str, seen: &[&str]) -> Markup {
        let list = format!("{id}-known");
        let people = self.people.people.iter().filter(|person| person.state == "active" && person.person != self.me).map(|person| self.address(&person.person));
        let agents = self.agents.iter().filter(|agent| agent.state == "active").map(|agent| agent.agent.as_str());
        let seen = seen.iter().copied().filter(|seen| *seen != self.me && !seen.starts_with(GROUP)).map(|seen| self.address(seen));
        let known: BTreeSet<&str> = people.chain(agents).chain(seen).collect();
        html! {
            (field(id, label, html! { input id=(id) name=(name) value=(chosen) list=(list) required autocomplete="off" maxlength="140" placeholder="an agent, a person or group:NAME"; }))
            datalist id=(list) {
                @for name in known { option value=(name) {} }
                @for group in &self.groups { option value={ (GROUP) (group.name) } {} }
            }
        }
    }
}

/// Somebody, for reading.
pub(super) fn who(people: &People, id: &str) -> Markup {
    match id.strip_prefix(GROUP) {
        Some(group) => html! { "group " (said(group)) },
        None => said(people.name(id)),
    }
}
