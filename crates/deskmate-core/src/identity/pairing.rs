//! Pairing a browser extension or a program with a person: a short code goes from a page of the desk into the other
//! program, which gets a session or a token for it, once.
//!
//! A code is typed by people, so it is shorter than other secrets. It is good for minutes, and kept and looked up by a hash
//! that is slow on purpose, as passphrases are: guessing is bounded by that, whether at the door or over a copy of the
//! store. The slow part happens in the first step of both operations, which does not hold the writer.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::people::check_label;
use super::rows::{self, CREDENTIAL, CredentialRow, PERSON, PersonRow};
use super::sessions::{self, SESSION_TTL};
use super::{SecretKind, factor};
use crate::call::{Actor, Cx, Presence};
use crate::{Code, Error, Result, format_time};

const CODE_TTL: i64 = 10 * 60_000_000;
const TOKEN_TTL: i64 = 90 * 86_400_000_000;
/// What a paired program may call.
const PROGRAM_SCOPE: &str = "workspace";
/// Digits that cannot be mistaken for each other, five bits each (Crockford's base 32).
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CODE_DIGITS: usize = 12;
const GROUP: usize = 4;
/// Codes are looked up by their hash, so all have one salt.
const SALT: &[u8; 32] = b"deskmate pairing, a code's salt\0";

/// What is paired.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum PairingKind {
    /// A browser extension: it gets a session of yours, bound to a key of its own. What it decides asks for your passphrase, as
    /// anywhere else.
    Extension,
    /// A program on this machine: it gets a token for the toolset `workspace`, good for 90 days.
    Program,
}

impl PairingKind {
    fn name(self) -> &'static str {
        match self {
            Self::Extension => "extension",
            Self::Program => "program",
        }
    }
}

/// Make a code that pairs a browser extension or a program with you. It is for one use within 10 minutes; a newer code for
/// the same kind ends it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    /// What is paired.
    kind: PairingKind,
    /// How it will be listed among your sessions or tokens.
    name: String,
}

/// A code to type into the other program.
#[derive(Serialize, JsonSchema)]
pub(super) struct Started {
    /// The code. It is shown only here.
    code: String,
    /// Until when it works.
    expires_at: String,
}

/// A new code and what is kept of it.
pub(super) struct Fresh {
    code: String,
    hash: [u8; 32],
}

pub(super) fn make(cx: &mut Cx<'_, '_>, input: &Start) -> Result<Fresh> {
    check_label("name", &input.name)?;
    let digits: String = cx.secret().iter().take(CODE_DIGITS).filter_map(|byte| DIGITS.get(usize::from(byte & 31))).map(|digit| char::from(*digit)).collect();
    let hash = hash(&digits)?;
    let groups: Vec<&str> = (0..CODE_DIGITS).step_by(GROUP).filter_map(|at| digits.get(at..at + GROUP)).collect();
    Ok(Fresh { code: groups.join("-"), hash })
}

pub(super) fn start(cx: &mut Cx<'_, '_>, input: Start, fresh: &Fresh) -> Result<Started> {
    let (now, owner, kind) = (cx.now(), cx.actor.id.clone(), vec![input.kind.name().to_owned()]);
    for row in rows::good_of(cx, &owner, SecretKind::Pairing)? {
        if kind_of(&row) == Some(input.kind) {
            rows::end(cx, &row.id, now, "a newer code was made")?;
        }
    }
    let id = rows::keep(cx, SecretKind::Pairing, &owner, &fresh.hash, &kind, CODE_TTL)?;
    rows::set_note(cx.tx, &id, Some(&input.name))?;
    Ok(Started { code: fresh.code.clone(), expires_at: format_time(now + CODE_TTL) })
}

/// Pair with a person by the code that they got on their page. An extension gets a session, a program a token.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Pair {
    /// The code, in capitals or not, with dashes or without.
    code: String,
    /// For an extension: the public key that it made (P-256, uncompressed point, base64), which then signs what it changes.
    public_key: Option<String>,
}

/// What was paired, with whom, and its secret.
#[derive(Serialize, JsonSchema)]
pub(super) struct Paired {
    /// What was paired.
    kind: PairingKind,
    /// How it is listed.
    name: String,
    /// The id under which it is listed and can be ended.
    credential: String,
    /// The id of the person.
    person: String,
    /// How the person is called.
    person_name: String,
    /// What the person may do.
    role: String,
    /// The session's secret, for an extension. It is shown only here.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// The token, for a program. It is shown only here.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// Until when it is good.
    expires_at: String,
}

/// The hash of a code that somebody brought.
pub(super) struct Brought([u8; 32]);

pub(super) fn look_up(cx: &mut Cx<'_, '_>, input: &Pair) -> Result<Brought> {
    // What is no code costs as much time as a wrong one, and is answered alike.
    let hash = hash(&read(&input.code).unwrap_or_else(|| "0".repeat(CODE_DIGITS)))?;
    open(cx, &hash)?;
    Ok(Brought(hash))
}

pub(super) fn pair(cx: &mut Cx<'_, '_>, input: Pair, brought: &Brought) -> Result<Paired> {
    let (code, kind, person) = open(cx, &brought.0)?;
    let name = code.note.unwrap_or_default();
    let now = cx.now();
    // From here on it is known for whom this is, and the record says so; that they are there was not shown.
    cx.actor = Actor { presence: Presence::NotShown, ..Actor::person(&person.id) };
    let (credential, secret, ttl) = match (kind, &input.public_key) {
        (PairingKind::Extension, Some(key)) => {
            let (credential, secret) = sessions::issue_paired(cx, &person.id, key)?;
            (credential, secret, SESSION_TTL)
        }
        (PairingKind::Extension, None) => return Err(Error::invalid("public_key", "is needed to pair an extension")),
        (PairingKind::Program, _) => {
            let (credential, secret) = rows::issue(cx, SecretKind::Personal, &person.id, &[PROGRAM_SCOPE.to_owned()], TOKEN_TTL)?;
            (credential, secret, TOKEN_TTL)
        }
    };
    rows::end(cx, &code.id, now, "used")?;
    rows::set_note(cx.tx, &credential, Some(&name))?;
    let text = Some(secret.reveal().to_owned());
    let (session, token) = if kind == PairingKind::Extension { (text, None) } else { (None, text) };
    let expires_at = format_time(now + ttl);
    Ok(Paired { kind, name, credential, person: person.id, person_name: person.name, role: person.role, session, token, expires_at })
}

/// A code that is still good, what it pairs, and with whom.
fn open(cx: &mut Cx<'_, '_>, hash: &[u8; 32]) -> Result<(CredentialRow, PairingKind, PersonRow)> {
    let refused = || {
        Error::new(Code::Unauthenticated, "this code is unknown, expired or used up")
            .hint("a person makes a new one on the page \"Your sessions and tokens\" of Deskmate")
    };
    let row = cx.tx.optional(CREDENTIAL, args![hash])?.map(|row| CredentialRow::read(&row)).transpose()?;
    let row = row.filter(|row| row.kind == SecretKind::Pairing.name() && row.is_good(cx.now())).ok_or_else(refused)?;
    let kind = kind_of(&row).ok_or_else(refused)?;
    let person = cx.tx.optional(PERSON, args![row.owner])?.map(|row| PersonRow::read(&row)).transpose()?;
    let person = person.filter(|person| person.state == "active").ok_or_else(refused)?;
    Ok((row, kind, person))
}

fn kind_of(row: &CredentialRow) -> Option<PairingKind> {
    serde_json::from_str::<Vec<PairingKind>>(&row.scopes).ok()?.into_iter().next()
}

/// The digits of a code as somebody wrote it, with what is easily mistaken put right.
fn read(code: &str) -> Option<String> {
    let digit = |c: char| match c.to_ascii_uppercase() {
        'O' => Some('0'),
        'I' | 'L' => Some('1'),
        c => u8::try_from(c).is_ok_and(|byte| DIGITS.contains(&byte)).then_some(c),
    };
    let digits: Option<String> = code.chars().filter(|c| !matches!(c, '-' | ' ')).take(CODE_DIGITS + 1).map(digit).collect();
    digits.filter(|digits| digits.len() == CODE_DIGITS)
}

/// What is kept of a code.
fn hash(digits: &str) -> Result<[u8; 32]> {
    Ok(Sha256::digest(factor::hash(digits, SALT)?.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_people_write_them() {
        for good in ["7K3F-9QMD-X2TP", "7k3f9qmdx2tp", " 7K3F 9qmd-X2TP "] {
            assert_eq!(read(good).as_deref(), Some("7K3F9QMDX2TP"), "{good}");
        }
        assert_eq!(read("oOiI-lL00-1111").as_deref(), Some("001111001111"), "what looks alike is the same");
        for bad in ["", "7K3F-9QMD-X2T", "7K3F-9QMD-X2TPA", "7K3F-9QMD-X2TU", "7K3F_9QMD_X2TP", "ⅦK3F9QMDX2TP", "7K3F9QMDX2T\u{17f}"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
