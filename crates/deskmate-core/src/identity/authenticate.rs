//! From what a caller brought to who acts.

use deskmate_db::{Tx, args};
use serde_json::Value;
use subtle::ConstantTimeEq;

use super::rows::{CREDENTIAL, CREDENTIAL_BY_ID, CredentialRow, PERSON, PersonRow};
use super::sessions::PRESENT_TTL;
use super::token::{Secret, SecretKind};
use crate::call::{Actor, ActorKind, Credential, Mode, Op, Presence, Role};
use crate::limits::NAME_CHARS_MAX;
use crate::{Code, Error, Result, agents};

/// What the arguments of existing clients say about the caller. It never proves anything.
#[derive(Default)]
pub struct Claims {
    agent_id: Option<String>,
    token: Option<String>,
}

impl Claims {
    /// Takes `agent_id` and `agent_token` out of an input. An operation that has a use of its own for an `agent_id` keeps
    /// it, and it counts as a claim all the same.
    pub fn take(op: &Op, input: &mut Value) -> Result<Self> {
        let own = op.has_own_agent_id();
        let mut claims = Self::default();
        let Some(fields) = input.as_object_mut() else {
            return Err(Error::invalid("input", "must be a JSON object"));
        };
        for (name, slot) in [("agent_id", &mut claims.agent_id), ("agent_token", &mut claims.token)] {
            let given = if own && name == "agent_id" { fields.get(name).cloned() } else { fields.remove(name) };
            match given {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => *slot = Some(text),
                Some(_) => return Err(Error::invalid(name, "must be a text")),
            }
        }
        Ok(claims)
    }
}

/// Who acts. An error tells no more than that the credential is not good.
pub fn authenticate(tx: &mut Tx<'_>, credential: &Credential, claims: &Claims, now: i64, open_allowed: bool) -> Result<Actor> {
    // Models fill in what they have no value for: a blank token is none.
    let token = claims.token.as_deref().filter(|token| !token.trim().is_empty());
    let actor = match (credential, token) {
        (Credential::System, _) => return Ok(Actor::system()),
        (Credential::Secret { secret, proved }, _) => by_secret(tx, secret, *proved, now)?,
        (Credential::Signed { secret, .. }, _) => by_secret(tx, secret, true, now)?,
        (Credential::Kept(id), _) => by_id(tx, id, now)?,
        (Credential::Run(run), _) => agents::actor(tx, run)?,
        // A run's token comes as a credential only: as an argument nobody would count it.
        (_, Some(token)) if Secret::parse(token).is_ok_and(|secret| secret.kind() == SecretKind::Run) => return Err(refused()),
        (_, Some(token)) => match by_secret(tx, token, false, now) {
            // Another server's token says nothing here, and in an open desk a name is enough: it goes on as without one.
            Err(error) if error.code == Code::Unauthenticated && !Secret::is_ours(token) && open_allowed && mode(tx)? == Mode::Open => {
                without_secret(tx, credential, claims, open_allowed)?
            }
            found => found?,
        },
        (_, None) => without_secret(tx, credential, claims, open_allowed)?,
    };
    if let Some(claimed) = &claims.agent_id
        && actor.is_agent()
        && *claimed != actor.id
    {
        return Err(Error::forbidden(format!("agent_id says {claimed:?}, but the credential is {:?}'s", actor.id)));
    }
    Ok(actor)
}

fn unauthenticated(message: &str) -> Error {
    Error::new(Code::Unauthenticated, message).hint("an agent sends its token in DESKMATE_TOKEN, a token file or the Authorization header")
}

fn by_secret(tx: &mut Tx<'_>, text: &str, proved: bool, now: i64) -> Result<Actor> {
    let secret = Secret::parse(text).or_else(|error| Secret::foreign(text).ok_or(error))?;
    let hash = secret.hash();
    let row = tx.optional(CREDENTIAL, args![hash])?.ok_or_else(refused)?;
    let stored: Vec<u8> = row.get(8)?;
    let found = CredentialRow::read(&row)?;
    let same: bool = stored.as_slice().ct_eq(&hash).into();
    if !same || found.kind != secret.kind().name() {
        return Err(refused());
    }
    actor(tx, found, secret.kind(), proved, now)
}

/// Whoever holds a personal token, for work that waits: the same person with the same scopes, while the token is good.
fn by_id(tx: &mut Tx<'_>, id: &str, now: i64) -> Result<Actor> {
    let row = tx.optional(CREDENTIAL_BY_ID, args![id])?.map(|row| CredentialRow::read(&row)).transpose()?;
    let row = row.filter(|row| row.kind == SecretKind::Personal.name()).ok_or_else(refused)?;
    actor(tx, row, SecretKind::Personal, false, now)
}

fn refused() -> Error {
    unauthenticated("this credential is unknown, expired or revoked")
}

/// Who acts with a stored credential, if it is still good.
fn actor(tx: &mut Tx<'_>, found: CredentialRow, kind: SecretKind, proved: bool, now: i64) -> Result<Actor> {
    if !found.is_good(now) {
        return Err(refused());
    }
    match kind {
        SecretKind::Agent | SecretKind::Imported => {
            let state: Option<String> = tx.optional("select state from agent where id = $1", args![found.owner])?.map(|row| row.get(0)).transpose()?;
            if state.as_deref() != Some("active") {
                return Err(refused());
            }
            Ok(Actor { credential: Some(found.id), ..Actor::agent(found.owner, true) })
        }
        SecretKind::Personal | SecretKind::Session => {
            let person = tx.optional(PERSON, args![found.owner])?.map(|row| PersonRow::read(&row)).transpose()?.ok_or_else(refused)?;
            if person.state != "active" {
                return Err(refused());
            }
            let session = kind == SecretKind::Session;
            let present = session && proved && found.present_until.is_some_and(|until| until > now);
            let scopes = if session { None } else { Some(serde_json::from_str(&found.scopes).unwrap_or_default()) };
            Ok(Actor {
                kind: ActorKind::Person,
                id: person.id,
                verified: true,
                role: Some(Role::from_name(&person.role)),
                presence: match (session, proved) {
                    (true, false) => Presence::Unproved,
                    _ if present => Presence::Shown,
                    _ => Presence::NotShown,
                },
                presence_since: found.present_until.filter(|_| present).map(|until| until - PRESENT_TTL),
                scopes,
                credential: Some(found.id),
                run: None,
            })
        }
        // A run's token is good for as long as the run is under way, and as its agent.
        SecretKind::Run => Ok(Actor { credential: Some(found.id), ..agents::actor(tx, &found.owner)? }),
        SecretKind::Invitation | SecretKind::Claim | SecretKind::Pairing | SecretKind::Decision | SecretKind::Passkey => Err(refused()),
    }
}

/// Who acts where nothing proves it.
fn without_secret(tx: &mut Tx<'_>, credential: &Credential, claims: &Claims, open_allowed: bool) -> Result<Actor> {
    match credential {
        Credential::Named(name) => by_name(tx, name.as_deref(), claims, open_allowed),
        Credential::Local => by_name(tx, None, claims, open_allowed),
        _ => Err(unauthenticated("no credential was given")),
    }
}

fn by_name(tx: &mut Tx<'_>, name: Option<&str>, claims: &Claims, open_allowed: bool) -> Result<Actor> {
    if !open_allowed {
        return Err(unauthenticated("this desk accepts no caller without a credential"));
    }
    if mode(tx)? == Mode::Closed {
        return Err(unauthenticated("this desk is in closed mode: every agent needs its token"));
    }
    match (name, claims.agent_id.as_deref()) {
        (Some(name), _) | (None, Some(name)) => {
            check_agent_name(tx, "agent", name)?;
            if agents::is_taken(tx, name)? {
                return Err(unauthenticated(&format!("{name} is an agent that the desk runs, and only its runs act as it")));
            }
            Ok(Actor::agent(name, false))
        }
        (None, None) => Err(unauthenticated("nobody said who is calling").hint("in open mode a name is enough: --agent NAME, or the argument agent_id")),
    }
}

/// A name that an agent can have: a person's id is not one, because what concerns a person is addressed by it.
pub(super) fn check_agent_name(tx: &mut Tx<'_>, field: &str, name: &str) -> Result<()> {
    check_name(field, name)?;
    if tx.optional(PERSON, args![name])?.is_some() {
        return Err(Error::invalid(field, "is the id of a person"));
    }
    Ok(())
}

/// How many agents are registered.
pub fn agent_count(tx: &mut Tx<'_>) -> Result<i64> {
    Ok(tx.one("select count(*) from agent where state = 'active'", &[])?.get(0)?)
}

/// Open until the first agent was registered, closed ever after.
pub fn mode(tx: &mut Tx<'_>) -> Result<Mode> {
    let any = tx.optional("select id from agent order by id limit 1", &[])?;
    Ok(if any.is_some() { Mode::Closed } else { Mode::Open })
}

/// A name of an agent, a group or a project: short and without anything that could be mistaken for something else.
pub fn check_name(field: &str, name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(plain) || name == "desk" || name.chars().all(|c| c == '.') {
        return Err(Error::invalid(field, format!("must be 1 to {NAME_CHARS_MAX} letters, digits, '-', '_', '.' or '@', not dots alone, and not \"desk\"")));
    }
    Ok(())
}
