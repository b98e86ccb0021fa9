//! Links by which a person decides one request, once: kept like every credential, by a hash, and good for nothing else.

use deskmate_db::args;

use super::rows::{self, CREDENTIAL, CredentialRow, PERSON, PersonRow};
use super::token::{Secret, SecretKind};
use crate::call::{Cx, Role};
use crate::limits::{DECISION_LINK, DECISION_LINK_REFUSALS_MAX};
use crate::{Code, Error, Result};

/// How a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkState {
    /// It can be used.
    Good,
    /// Its time is over.
    Expired,
    /// It was used, or a newer one took its place.
    Ended,
}

/// A link that was handed out.
pub(crate) struct DecisionLink {
    /// The id of its credential.
    pub(crate) id: String,
    /// For whom.
    pub(crate) person: String,
    pub(crate) name: String,
    pub(crate) role: Role,
    /// For which request.
    pub(crate) request: String,
    /// The digest of what it decides about.
    pub(crate) digest: String,
    pub(crate) state: LinkState,
    pub(crate) expires_at: i64,
    note: String,
}

impl DecisionLink {
    /// Whether somebody has looked at it.
    pub(crate) fn is_opened(&self) -> bool {
        self.note.starts_with(OPENED)
    }
}

const OPENED: &str = "opened";

/// Hands out a link. The one that went the same way for the same request before stops working.
pub(crate) fn issue_link(cx: &mut Cx<'_, '_>, person: &str, request: &str, digest: &str, way: &str) -> Result<String> {
    let (now, ttl) = (cx.now(), i64::try_from(DECISION_LINK.as_micros()).unwrap_or(i64::MAX));
    let scopes = [request.to_owned(), digest.to_owned(), way.to_owned()];
    for row in rows::good_of(cx, person, SecretKind::Decision)? {
        let known: Vec<String> = serde_json::from_str(&row.scopes).unwrap_or_default();
        if known.first() == scopes.first() && known.last() == scopes.last() {
            rows::end(cx, &row.id, now, "a newer link was sent")?;
        }
    }
    let (_, secret) = rows::issue(cx, SecretKind::Decision, person, &scopes, ttl)?;
    Ok(secret.reveal().to_owned())
}

/// A link that somebody brought. One that was never handed out, or whose person is no longer here, is refused.
pub(crate) fn find_link(cx: &mut Cx<'_, '_>, text: &str) -> Result<DecisionLink> {
    let refused = || Error::new(Code::Unauthenticated, "this link is not one of this desk").hint("sign in, and decide in the inbox");
    let secret = Secret::parse(text).ok().filter(|secret| secret.kind() == SecretKind::Decision).ok_or_else(refused)?;
    let row = cx.tx.optional(CREDENTIAL, args![secret.hash()])?.map(|row| CredentialRow::read(&row)).transpose()?;
    let row = row.filter(|row| row.kind == SecretKind::Decision.name()).ok_or_else(refused)?;
    let person = cx.tx.optional(PERSON, args![row.owner])?.map(|row| PersonRow::read(&row)).transpose()?;
    let person = person.filter(|person| person.state == "active").ok_or_else(refused)?;
    let scopes: Vec<String> = serde_json::from_str(&row.scopes).unwrap_or_default();
    let [request, digest, _] = scopes.as_slice() else { return Err(refused()) };
    let state = match (row.revoked_at, row.expires_at > cx.now()) {
        (Some(_), _) => LinkState::Ended,
        (None, false) => LinkState::Expired,
        (None, true) => LinkState::Good,
    };
    Ok(DecisionLink {
        person: person.id,
        name: person.name,
        role: Role::from_name(&person.role),
        request: request.clone(),
        digest: digest.clone(),
        state,
        expires_at: row.expires_at,
        note: row.note.unwrap_or_default(),
        id: row.id,
    })
}

/// Somebody looks at it for the first time.
pub(crate) fn open_link(cx: &mut Cx<'_, '_>, link: &DecisionLink) -> Result<()> {
    rows::set_note(cx.tx, &link.id, Some(&format!("{OPENED} {}", refusals(link))))
}

/// It was used.
pub(crate) fn end_link(cx: &mut Cx<'_, '_>, link: &DecisionLink) -> Result<()> {
    let now = cx.now();
    rows::end(cx, &link.id, now, "used")
}

fn refusals(link: &DecisionLink) -> i64 {
    link.note.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Counts a refused try; answers whether it is still worth an event of its own.
pub(crate) fn note_refusal(cx: &mut Cx<'_, '_>, link: &DecisionLink) -> Result<bool> {
    let count = refusals(link);
    if count >= DECISION_LINK_REFUSALS_MAX {
        return Ok(false);
    }
    let opened = if link.is_opened() { OPENED } else { "sent" };
    rows::set_note(cx.tx, &link.id, Some(&format!("{opened} {}", count + 1)))?;
    Ok(true)
}
