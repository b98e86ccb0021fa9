//! People: inviting them, changing what they may do, and their tokens for scripts.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::rows::{self, CREDENTIAL_BY_ID, CredentialRow, PEOPLE, PERSON, PersonRow};
use super::token::SecretKind;
use crate::call::{Cx, Page, PageIn, Role};
use crate::limits::{NAME_CHARS_MAX, PAGE_MAX, TITLE_CHARS_MAX};
use crate::policy::nearest;
use crate::record::{Event, Kind};
use crate::{Error, Result, check_text, format_time};

/// A person joined.
pub(super) const ADDED: Kind = Kind { name: "person.added", says: "A person joined the desk, by claiming it or by an invitation." };
/// A person's role or state changed.
pub(super) const CHANGED: Kind = Kind { name: "person.changed", says: "A person's role, domains or state changed." };

const DAY: i64 = 86_400_000_000;

/// Invite a person. The answer holds a link for them; it works once and for the given number of days.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Invite {
    /// How the person is called here.
    name: String,
    /// What they may do.
    role: Role,
    /// For approvers: the domains they decide, for example `crm.deals`; `*` is all.
    #[serde(default)]
    domains: Vec<String>,
    /// How long the link works; 7 days if not given.
    expires_in_days: Option<u32>,
}

/// An invitation.
#[derive(Serialize, JsonSchema)]
pub(super) struct Invitation {
    /// How the person is called here.
    name: String,
    /// The id under which it can be revoked.
    credential: String,
    /// The code of the link. It is shown only here.
    code: String,
    /// Until when it works.
    expires_at: String,
}

pub(super) fn invite(cx: &mut Cx<'_, '_>, input: Invite) -> Result<Invitation> {
    check_person_name(cx, &input.name)?;
    let days = input.expires_in_days.unwrap_or(7);
    if days == 0 || days > 90 {
        return Err(Error::invalid("expires_in_days", "must be between 1 and 90"));
    }
    let ttl = i64::from(days) * DAY;
    let scopes = [vec![input.role.name().to_owned()], input.domains].concat();
    let inviter = cx.actor.id.clone();
    let (credential, secret) = rows::issue(cx, SecretKind::Invitation, &inviter, &scopes, ttl)?;
    rows::set_note(cx.tx, &credential, Some(&input.name))?;
    Ok(Invitation { name: input.name, credential, code: secret.reveal().to_owned(), expires_at: format_time(cx.now() + ttl) })
}

/// A name that a person can take: not empty, and free.
pub(super) fn check_person_name(cx: &mut Cx<'_, '_>, name: &str) -> Result<()> {
    check_label("name", name)?;
    if cx.tx.optional(rows::PERSON_BY_NAME, args![name])?.is_some() {
        return Err(Error::conflict(format!("somebody is called {name} already")));
    }
    Ok(())
}

/// A name for people to read: not empty, and on one line.
pub(super) fn check_label(field: &str, name: &str) -> Result<()> {
    check_text(field, name, NAME_CHARS_MAX)?;
    if name.trim().is_empty() || name != name.trim() || name.chars().any(char::is_control) {
        return Err(Error::invalid(field, "must not be empty, begin or end with a space, or hold control characters"));
    }
    Ok(())
}

/// Adds a person and tells the record.
pub(super) fn insert(cx: &mut Cx<'_, '_>, name: &str, role: Role, domains: &[String], factor: Option<&str>) -> Result<String> {
    check_person_name(cx, name)?;
    let (id, now) = (cx.new_id(), cx.now());
    let domains = serde_json::Value::from(domains).to_string();
    cx.tx.execute(
        "insert into person (id, name, role, domains, factor, state, created_at, updated_at, failures) values ($1, $2, $3, $4, $5, 'active', $6, $6, 0)",
        args![id, name, role.name(), domains, factor, now],
    )?;
    let event = Event::new(ADDED, format!("person:{id}"))
        .fact("person", id.as_str())
        .fact("role", role.name())
        .fact("domains", domains)
        .fact("factor", factor.map(factor_digest).unwrap_or_default())
        .payload(json!({ "name": name }));
    cx.emit(event)?;
    Ok(id)
}

/// What the record says about a factor: enough to notice that it was replaced, not enough to guess it more easily.
pub(super) fn factor_digest(factor: &str) -> String {
    use sha2::Digest;
    crate::hex(&sha2::Sha256::digest(factor.as_bytes()))
}

/// List the people of this desk, and the invitations that still work.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// How many people; 200 if not given, which is also the most.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// The people of this desk.
#[derive(Serialize, JsonSchema)]
pub(super) struct People {
    people: Vec<PersonOut>,
    /// Invitations that still work.
    invitations: Vec<InvitationOut>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct InvitationOut {
    /// The id under which it can be revoked.
    credential: String,
    /// How the person will be called.
    name: String,
    /// What they will be allowed to do.
    role: String,
    /// Until when it works.
    expires_at: String,
}

#[derive(Serialize, JsonSchema)]
struct PersonOut {
    /// The id.
    person: String,
    /// How they are called.
    name: String,
    /// What they may do.
    role: String,
    /// The domains they decide.
    domains: Vec<String>,
    /// `active` or `disabled`.
    state: String,
    /// Since when.
    created_at: String,
    /// Until when signing in is locked after too many wrong passphrases.
    #[serde(skip_serializing_if = "Option::is_none")]
    locked_until: Option<String>,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<People> {
    let now = cx.now();
    let page = PageIn::new(input.limit.or(Some(PAGE_MAX)), input.cursor.as_deref())?;
    let (created_at, id) = page.after.clone().unwrap_or((i64::MIN, String::new()));
    let rows = cx.tx.query(PEOPLE, args![created_at, id, page.look_ahead()])?;
    let rows = rows.iter().map(PersonRow::read).collect::<Result<Vec<_>>>()?;
    let page = Page::cut(rows, &page, |row| (row.created_at, row.id.clone()));
    let people = page.items.into_iter().map(|row| PersonOut {
        person: row.id,
        name: row.name,
        role: row.role,
        domains: serde_json::from_str(&row.domains).unwrap_or_default(),
        state: row.state,
        created_at: format_time(row.created_at),
        locked_until: row.locked_until.filter(|until| *until > now).map(format_time),
    });
    Ok(People { people: people.collect(), invitations: invitations(cx)?, next_cursor: page.next_cursor })
}

/// The newest invitations that still work.
fn invitations(cx: &mut Cx<'_, '_>) -> Result<Vec<InvitationOut>> {
    let now = cx.now();
    let rows = cx.tx.query(
        "select id, coalesce(note, ''), scopes, expires_at from credential where expires_at > $1 and kind = 'invitation' and revoked_at is null \
         order by expires_at desc, id desc limit $2",
        args![now, PAGE_MAX],
    )?;
    let read = |row: &deskmate_db::Row| {
        let scopes: Vec<String> = serde_json::from_str(&row.get::<String>(2)?).unwrap_or_default();
        let role = scopes.into_iter().next().unwrap_or_default();
        Ok(InvitationOut { credential: row.get(0)?, name: row.get(1)?, role, expires_at: format_time(row.get(3)?) })
    };
    rows.iter().map(read).collect()
}

/// Change what a person may do, or disable them. The last active owner cannot be taken away.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    /// The person's id.
    person: String,
    /// The new role.
    role: Option<Role>,
    /// The new domains.
    domains: Option<Vec<String>>,
    /// Whether they may sign in.
    active: Option<bool>,
}

/// The person as they are now.
#[derive(Serialize, JsonSchema)]
pub(super) struct Changed {
    /// The person's id.
    person: String,
    /// What they may do.
    role: String,
    /// `active` or `disabled`.
    state: String,
}

pub(super) fn change(cx: &mut Cx<'_, '_>, input: Change) -> Result<Changed> {
    let absent = || Error::not_found("there is no such person");
    let row = cx.tx.optional(PERSON, args![input.person])?.map(|row| PersonRow::read(&row)).transpose()?.ok_or_else(absent)?;
    let role = input.role.map_or(row.role.clone(), |role| role.name().to_owned());
    let domains = input.domains.map_or(row.domains.clone(), |domains| serde_json::Value::from(domains).to_string());
    let state = match input.active {
        None => row.state.clone(),
        Some(true) => "active".to_owned(),
        Some(false) => "disabled".to_owned(),
    };
    let was_owner = row.role == "owner" && row.state == "active";
    if was_owner && (role != "owner" || state != "active") {
        let others: i64 = cx.tx.one("select count(*) from person where role = 'owner' and state = 'active' and id <> $1", args![input.person])?.get(0)?;
        if others == 0 {
            return Err(Error::conflict("this is the only owner").hint("make somebody else an owner first"));
        }
    }
    let now = cx.now();
    cx.tx.execute("update person set role = $2, domains = $3, state = $4, updated_at = $5 where id = $1", args![input.person, role, domains, state, now])?;
    let event = Event::new(CHANGED, format!("person:{}", input.person))
        .fact("person", input.person.as_str())
        .fact("role", role.as_str())
        .fact("domains", domains)
        .fact("state", state.as_str());
    cx.emit(event)?;
    Ok(Changed { person: input.person, role, state })
}

/// Make a token for your own scripts. It is limited to scopes and never decides anything. A scope is a toolset or an
/// operation, with `:read` if it should only look: `bridge`, `bridge:read`, `desk_record_list:read`, `*:read`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateToken {
    /// What it is for.
    note: String,
    /// What it may call.
    scopes: Vec<String>,
    /// For how many days it is good; 30 if not given, at most 365.
    expires_in_days: Option<u32>,
}

/// A new personal token.
#[derive(Serialize, JsonSchema)]
pub(super) struct PersonalToken {
    /// The token. It is shown only here.
    token: String,
    /// The id under which it can be revoked.
    credential: String,
    /// Until when it is good.
    expires_at: String,
}

pub(super) fn create_token(cx: &mut Cx<'_, '_>, input: CreateToken) -> Result<PersonalToken> {
    check_text("note", &input.note, TITLE_CHARS_MAX)?;
    let days = input.expires_in_days.unwrap_or(30);
    if days == 0 || days > 365 {
        return Err(Error::invalid("expires_in_days", "must be between 1 and 365"));
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    for scope in &input.scopes {
        let (name, limit) = scope.split_once(':').unwrap_or((scope, "write"));
        if !(name == "*" || (!name.is_empty() && name.chars().all(plain))) || !matches!(limit, "read" | "write") {
            return Err(Error::invalid("scopes", format!("{scope:?} is not a scope")).hint("for example bridge, bridge:read or *:read"));
        }
        check_names_something(cx, name)?;
    }
    if input.scopes.is_empty() || input.scopes.len() > 50 {
        return Err(Error::invalid("scopes", "needs between 1 and 50 scopes"));
    }
    let owner = cx.actor.id.clone();
    let ttl = i64::from(days) * DAY;
    let (credential, secret) = rows::issue(cx, SecretKind::Personal, &owner, &input.scopes, ttl)?;
    rows::set_note(cx.tx, &credential, Some(&input.note))?;
    Ok(PersonalToken { token: secret.reveal().to_owned(), credential, expires_at: format_time(cx.now() + ttl) })
}

/// Refuses the name of a scope in which nothing is: a token with it could do nothing, and would say so only when it is used.
fn check_names_something(cx: &Cx<'_, '_>, name: &str) -> Result<()> {
    if cx.registry.all().any(|op| op.is_in_scope(name)) {
        return Ok(());
    }
    let known: Vec<String> = cx.registry.all().flat_map(|op| [op.toolset.name().to_owned(), op.full_name()]).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let hint = nearest(name, &known).map_or_else(|| "`deskmate call --list` names all".to_owned(), |near| format!("did you mean `{near}`?"));
    Err(Error::invalid("scopes", format!("there is no toolset and no operation {name}")).hint(hint))
}

/// List your own personal tokens that still work, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListTokens {}

/// Personal tokens, without their secrets.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tokens {
    tokens: Vec<TokenOut>,
}

#[derive(Serialize, JsonSchema)]
struct TokenOut {
    /// The id under which it can be revoked.
    credential: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// What it may call.
    scopes: Vec<String>,
    /// Since when.
    created_at: String,
    /// Until when.
    expires_at: String,
}

pub(super) fn list_tokens(cx: &mut Cx<'_, '_>, _: ListTokens) -> Result<Tokens> {
    let owner = cx.actor.id.clone();
    let tokens = rows::good_of(cx, &owner, SecretKind::Personal)?.into_iter().map(|row| TokenOut {
        credential: row.id,
        note: row.note,
        scopes: serde_json::from_str(&row.scopes).unwrap_or_default(),
        created_at: format_time(row.created_at),
        expires_at: format_time(row.expires_at),
    });
    Ok(Tokens { tokens: tokens.collect() })
}

/// Revoke one of your personal tokens. An owner may revoke anybody's, and an agent's token or an invitation too.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RevokeToken {
    /// Its id.
    credential: String,
}

/// What was revoked.
#[derive(Serialize, JsonSchema)]
pub(super) struct TokenRevoked {
    /// Its id.
    credential: String,
}

pub(super) fn revoke_token(cx: &mut Cx<'_, '_>, input: RevokeToken) -> Result<TokenRevoked> {
    let kinds: &[SecretKind] = match cx.actor.role {
        Some(Role::Owner) => &[SecretKind::Personal, SecretKind::Agent, SecretKind::Imported, SecretKind::Invitation],
        _ => &[SecretKind::Personal],
    };
    end_own(cx, &input.credential, kinds)?;
    Ok(TokenRevoked { credential: input.credential })
}

/// Ends a credential of the caller's own, or anybody's if an owner asks.
pub(super) fn end_own(cx: &mut Cx<'_, '_>, id: &str, kinds: &[SecretKind]) -> Result<()> {
    let absent = || Error::not_found("you have nothing with this id");
    let row = cx.tx.optional(CREDENTIAL_BY_ID, args![id])?.map(|row| CredentialRow::read(&row)).transpose()?.ok_or_else(absent)?;
    let own = row.owner == cx.actor.id || cx.actor.role == Some(Role::Owner);
    if !own || !kinds.iter().any(|kind| kind.name() == row.kind) {
        return Err(absent());
    }
    let now = cx.now();
    rows::end(cx, id, now, "revoked by a person")
}
