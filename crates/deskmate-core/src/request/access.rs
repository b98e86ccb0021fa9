//! Who decides: a person who is there, whose role covers the domain, and who did not ask for it.

use deskmate_db::{Row, args};

use super::link::check_linked;
use super::model::{Request, RequestKind};
use super::stand_in::Seats;
use crate::call::{ActorKind, Cx, Presence, Role, Surface};
use crate::policy::{self, Decision, Effect};
use crate::{Error, Result};

/// How long ago the passphrase may have been given for a decision of high risk.
pub const FRESH: i64 = 60_000_000;

/// How people decide, for whoever may not.
pub const WAYS: &str = "a person decides with `deskmate inbox` on a terminal, on the inbox page in their signed-in browser, or with their session at POST /api/desk_request_approve";

/// Whether a list of domains covers one: its name, `*`, or a beginning followed by `*`.
pub(super) fn covers(domains: &[String], domain: &str) -> bool {
    domains.iter().any(|own| own == domain || own.strip_suffix('*').is_some_and(|start| domain.starts_with(start)))
}

/// A person, as far as deciding cares.
pub(super) struct Person {
    pub(super) id: String,
    pub(super) name: String,
    role: Role,
    domains: Vec<String>,
    active: bool,
}

/// Whether a role covers a domain.
pub(crate) fn role_decides(role: Role, domains: &[String], domain: &str) -> bool {
    role == Role::Owner || (role == Role::Approver && covers(domains, domain))
}

impl Person {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            name: row.get(1)?,
            role: Role::from_name(&row.get::<String>(2)?),
            domains: serde_json::from_str(&row.get::<String>(3)?).unwrap_or_default(),
            active: row.get::<String>(4)? == "active",
        })
    }

    /// Whether their role covers a domain.
    pub(super) fn decides_in(&self, domain: &str) -> bool {
        self.active && role_decides(self.role, &self.domains, domain)
    }

    /// Whether their role decides at all.
    pub(super) fn decides_anywhere(&self) -> bool {
        self.active && (self.role == Role::Owner || (self.role == Role::Approver && !self.domains.is_empty()))
    }

    fn is_named(&self, names: &[String]) -> bool {
        names.iter().any(|name| *name == self.id || *name == self.name)
    }
}

const BY_ID: &str = "select id, name, role, domains, state from person where id = $1";
const BY_NAME: &str = "select id, name, role, domains, state from person where name = $1";
const DECIDING: &str = "select id, name, role, domains, state from person where state = 'active' and role in ('owner', 'approver') order by id limit 1000";

/// A person by id or name.
pub(super) fn find_person(cx: &mut Cx<'_, '_>, who: &str) -> Result<Option<Person>> {
    let row = match cx.tx.optional(BY_ID, args![who])? {
        None => cx.tx.optional(BY_NAME, args![who])?,
        found => found,
    };
    row.as_ref().map(Person::read).transpose()
}

/// Everybody whose role covers a request's domain and who did not ask for it, by id: to them it can be given.
pub(super) fn deciders(cx: &mut Cx<'_, '_>, request: &Request) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for row in &cx.tx.query(DECIDING, &[])? {
        let person = Person::read(row)?;
        if person.decides_in(&request.domain) && !request.is_asked_by(&person.id) {
            found.push(person.id);
        }
    }
    Ok(found)
}

/// Whether a person may still decide in a domain.
pub(crate) fn may_decide_in(cx: &mut Cx<'_, '_>, person: &str, domain: &str) -> Result<bool> {
    Ok(find_person(cx, person)?.is_some_and(|person| person.decides_in(domain)))
}

/// Whether the caller's role covers a domain.
pub fn covers_domain(cx: &mut Cx<'_, '_>, domain: &str) -> Result<bool> {
    let me = cx.actor.id.clone();
    may_decide_in(cx, &me, domain)
}

/// Whether a person's vote on a request counts now, as far as their role and who asked go.
pub(super) fn counts(cx: &mut Cx<'_, '_>, person: &str, request: &Request) -> Result<bool> {
    let own = asked_themselves(request, person)?;
    let found = find_person(cx, person)?;
    Ok(!own && found.is_some_and(|person| person.decides_in(&request.domain)))
}

/// Refuses whoever must not decide a request: every deciding operation calls it first.
pub fn check_decider(cx: &mut Cx<'_, '_>, request: &Request) -> Result<()> {
    check_person(cx, &request.domain, Some(request))?;
    if request.asked_by.as_ref() == Some(&cx.actor.id) {
        return Err(Error::forbidden("you ask for it: somebody else decides").hint(WAYS));
    }
    if asked_themselves(request, &cx.actor.id)? {
        return Err(Error::forbidden("this is your own request: somebody else decides it").hint(WAYS));
    }
    if request.requester.is_token() && request.requester.id == cx.actor.id && cx.actor.scopes.is_some() {
        return Err(Error::forbidden("a token asked for this: no token of the same person decides it").hint(WAYS));
    }
    Ok(())
}

/// Whether a person asked for it and so must not decide it. What a program asked for with their token they decide like
/// anybody else's, unless a rule wants a second person for what they do, or it was asked for in an agent's name.
fn asked_themselves(request: &Request, person: &str) -> Result<bool> {
    if request.asked_by.as_deref() == Some(person) {
        return Ok(true);
    }
    if request.requester.kind != ActorKind::Person || request.requester.id != person {
        return Ok(false);
    }
    let second = |decision: Decision| decision.hits.iter().any(|hit| hit.effect == Effect::RequireApproval);
    Ok(!request.requester.is_token() || request.decided()?.is_none_or(second))
}

/// Refuses whoever must not decide anything in a domain.
pub fn check_decider_in(cx: &mut Cx<'_, '_>, domain: &str) -> Result<()> {
    check_person(cx, domain, None)
}

fn check_person(cx: &mut Cx<'_, '_>, domain: &str, request: Option<&Request>) -> Result<()> {
    let forbidden = |why: String| Err(Error::forbidden(why).hint(WAYS));
    if !cx.actor.is_person() {
        return forbidden("only people decide".to_owned());
    }
    let person = find_person(cx, &cx.actor.id.clone())?.ok_or_else(|| Error::forbidden("you are not one of the people of this desk"))?;
    let token = cx.actor.scopes.is_some();
    if token {
        let rulebook = policy::current(cx)?;
        if !person.is_named(&rulebook.settings(domain).authority.token_deciders) {
            return forbidden("a personal token decides only where the policy names its owner in authority.token_deciders".to_owned());
        }
    } else if matches!(cx.surface, Surface::Mcp | Surface::File) {
        return forbidden("over MCP a session never decides, because a model drives it".to_owned());
    } else if cx.actor.presence == Presence::Linked {
        check_linked(request)?;
    } else if cx.actor.presence != Presence::Shown {
        return Err(Error::needs_presence("this needs you to show that you are there").hint(WAYS));
    }
    if !person.decides_in(domain) {
        return forbidden(format!("your role does not cover the domain {domain}"));
    }
    Ok(())
}

/// Refuses whoever is not among the approvers that policy names, nor stands in for one.
pub(super) fn check_named(cx: &mut Cx<'_, '_>, request: &Request, decision: Option<&Decision>) -> Result<()> {
    let Some(decision) = decision else { return Ok(()) };
    match Seats::of(cx, request, decision)? {
        Some(seats) if !seats.admits(&cx.actor.id) => Err(Error::forbidden(format!("policy names who decides this: {}", decision.needs.approvers.join(", ")))),
        _ => Ok(()),
    }
}

/// Whether an approval loosens something or is of high risk: then the passphrase must have been given just now.
pub(super) fn is_grave(request: &Request) -> bool {
    matches!(request.risk.as_str(), "high" | "critical") || matches!(request.kind, RequestKind::Policy | RequestKind::Promotion)
}

/// Refuses a person who has not given the passphrase within the last minute.
pub fn check_fresh(cx: &Cx<'_, '_>, what: &str) -> Result<()> {
    if cx.actor.presence_since.is_some_and(|since| since > cx.now() - FRESH) {
        return Ok(());
    }
    Err(Error::needs_presence(format!("{what} needs your passphrase again"))
        .hint("give it with desk_show_presence (POST /api/desk_show_presence; `deskmate inbox` and the inbox page ask for it), then decide within 60 seconds"))
}
