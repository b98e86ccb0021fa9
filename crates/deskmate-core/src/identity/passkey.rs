//! Passkeys: another way to show that one is there, beside the passphrase or in its place.
//!
//! A passkey signs a challenge that is made of what it is asked for, of whom it stands for and of the time, so nothing has to
//! be kept between asking and answering. What was signed is good for a few minutes and for nothing else: to sign in it
//! names the new browser key, and to show presence the call itself is signed by the session's key, each time anew. The first one
//! of somebody who claims the desk or joins it names the link, which it uses up.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use deskmate_db::args;
use p256::ecdsa::signature::Verifier;
use p256::ecdsa::{Signature, VerifyingKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::rows::{self, CREDENTIAL, CREDENTIAL_BY_ID, CredentialRow, PERSON, PersonRow};
use super::token::SecretKind;
use crate::call::Cx;
use crate::limits::TITLE_CHARS_MAX;
use crate::{Code, Error, Result, check_text, format_time};

/// How long before or after now a passkey may have been asked, in milliseconds.
const ASKED_WITHIN_MS: u64 = 5 * 60 * 1_000;
/// A passkey is good until it is taken away.
const TTL: i64 = 10 * 365 * 24 * 60 * 60 * 1_000_000;
const ID_BYTES_MAX: usize = 1_024;
/// How browsers write a P-256 key: this, and then the point.
const KEY_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Somebody touched the authenticator, and it knows who.
const PRESENT_AND_VERIFIED: u8 = 0b101;

/// What a passkey is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To be known from now on; bound to the person.
    Add,
    /// To be the first thing that shows that somebody new is there; bound to their link and to the new key of the browser.
    First,
    /// To show presence; bound to the person.
    Presence,
    /// To sign in; bound to the new key of the browser.
    SignIn,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::First => "first",
            Self::Presence => "presence",
            Self::SignIn => "sign-in",
        }
    }

    /// What the browser says that it did.
    fn ceremony(self) -> &'static str {
        if matches!(self, Self::Add | Self::First) { "webauthn.create" } else { "webauthn.get" }
    }
}

/// What a passkey answered.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Assertion {
    /// The passkey's id, base64url.
    id: String,
    /// When it was asked, in milliseconds since 1970.
    asked_at: i64,
    /// The browser's `clientDataJSON`, base64.
    client_data: String,
    /// The `authenticatorData`, base64.
    authenticator_data: String,
    /// The signature over both, base64.
    signature: String,
}

/// Add a passkey, which from now on shows that you are there. Its challenge is the SHA-256 of `deskmate passkey add`, your id
/// and `asked_at`, each on a line of its own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPasskey {
    /// The passkey's id, base64url.
    id: String,
    /// Its public key (P-256), as browsers give it (SPKI), base64.
    public_key: String,
    /// When it was asked, in milliseconds since 1970.
    asked_at: i64,
    /// The browser's `clientDataJSON`, base64.
    client_data: String,
    /// The `authenticatorData`, base64.
    authenticator_data: String,
    /// What you call it.
    #[serde(default)]
    note: String,
}

/// A passkey of yours.
#[derive(Serialize, JsonSchema)]
pub(super) struct PasskeyOut {
    /// Its id on the desk.
    passkey: String,
    /// What you call it.
    note: String,
    /// The name of the desk under which it works.
    host: String,
    /// Since when.
    created_at: String,
}

/// List your passkeys, which show that you are there.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListPasskeys {}

/// Your passkeys, newest first.
#[derive(Serialize, JsonSchema)]
pub(super) struct Passkeys {
    passkeys: Vec<PasskeyOut>,
    /// Whether you have a passphrase or PIN as well.
    passphrase: bool,
}

/// Take a passkey away: it shows nothing any more. The last one of somebody without a passphrase stays.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RemovePasskey {
    /// Its id on the desk.
    passkey: String,
}

/// The passkey was taken away.
#[derive(Serialize, JsonSchema)]
pub(super) struct Removed {
    /// Its id on the desk.
    passkey: String,
}

#[derive(Deserialize)]
struct ClientData {
    #[serde(rename = "type")]
    ceremony: String,
    challenge: String,
    origin: String,
}

/// A passkey that answered rightly.
pub(super) struct Answered {
    /// Its id on the desk.
    pub(super) credential: String,
    /// Whose it is.
    pub(super) owner: String,
}

fn bytes(field: &str, text: &str) -> Result<Vec<u8>> {
    BASE64.decode(text.as_bytes()).map_err(|_| Error::invalid(field, "must be base64"))
}

fn hash(id: &str) -> Result<[u8; 32]> {
    let id = BASE64URL_NOPAD.decode(id.as_bytes()).map_err(|_| Error::invalid("id", "must be base64url"))?;
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        return Err(Error::invalid("id", format!("must have 1 to {ID_BYTES_MAX} bytes")));
    }
    Ok(Sha256::new().chain_update("passkey\n").chain_update(id).finalize().into())
}

/// What a passkey is asked to sign.
fn challenge(purpose: Purpose, bound: &str, asked_at: i64) -> String {
    BASE64URL_NOPAD.encode(&Sha256::digest(format!("deskmate passkey {}\n{bound}\n{asked_at}", purpose.name())))
}

/// The name of the host in an origin.
fn host_of(origin: &str) -> Option<&str> {
    let (_, rest) = origin.split_once("://")?;
    rest.split(':').next()
}

const ASK_AGAIN: &str = "ask it again; where that does not help, compare this machine's clock with the desk's";

/// How far from the desk's time something was asked for, where that is too far: by a clock that is off, or of somebody who took too
/// long.
fn off_by(asked_at: i64, now_ms: i64) -> Option<String> {
    let off = now_ms.abs_diff(asked_at);
    let side = if asked_at < now_ms { "behind" } else { "ahead of" };
    (off > ASKED_WITHIN_MS).then(|| format!("is {} s {side} the desk's time; it answers within {} minutes", off / 1_000, ASKED_WITHIN_MS / 60_000))
}

/// The origin for which a browser asked a passkey for this, now; nothing where it asked for something else. Browsers give a
/// passkey to every port of a host, so a page on another port is told apart here.
fn asked(purpose: Purpose, bound: &str, asked_at: i64, client: &[u8], authenticator: &[u8], now_ms: i64) -> Option<String> {
    let said: ClientData = serde_json::from_slice(client).ok()?;
    let host = host_of(&said.origin)?;
    let (rp, flags) = (authenticator.get(..32)?, authenticator.get(32)?);
    let holds = said.ceremony == purpose.ceremony()
        && said.challenge == challenge(purpose, bound, asked_at)
        && now_ms.abs_diff(asked_at) <= ASKED_WITHIN_MS
        && *rp == *Sha256::digest(host)
        && flags & PRESENT_AND_VERIFIED == PRESENT_AND_VERIFIED;
    holds.then_some(said.origin)
}

pub(super) fn add(cx: &mut Cx<'_, '_>, input: NewPasskey) -> Result<PasskeyOut> {
    let owner = cx.actor.id.clone();
    keep(cx, input, &owner, Purpose::Add, &owner)
}

/// Keeps the first passkey of somebody who claims the desk or joins it, for whom their link and their browser's new key speak.
pub(super) fn keep_first(cx: &mut Cx<'_, '_>, input: NewPasskey, owner: &str, code: &str, public_key: &str) -> Result<PasskeyOut> {
    keep(cx, input, owner, Purpose::First, &format!("{code}\n{public_key}"))
}

fn keep(cx: &mut Cx<'_, '_>, input: NewPasskey, owner: &str, purpose: Purpose, bound: &str) -> Result<PasskeyOut> {
    check_text("note", &input.note, TITLE_CHARS_MAX)?;
    let hash = hash(&input.id)?;
    let (client, authenticator) = (bytes("client_data", &input.client_data)?, bytes("authenticator_data", &input.authenticator_data)?);
    if let Some(off) = off_by(input.asked_at, cx.now() / 1_000) {
        return Err(Error::invalid("asked_at", off).hint(ASK_AGAIN));
    }
    let origin = asked(purpose, bound, input.asked_at, &client, &authenticator, cx.now() / 1_000)
        .ok_or_else(|| Error::invalid("client_data", "is not the answer of a passkey that verified you, to this desk, just now"))?;
    let key = bytes("public_key", &input.public_key)?;
    let point = key.strip_prefix(&KEY_HEAD).filter(|point| VerifyingKey::from_sec1_bytes(point).is_ok());
    let point = point.ok_or_else(|| Error::invalid("public_key", "must be a P-256 key"))?;
    if cx.tx.optional(CREDENTIAL, args![hash])?.is_some() {
        return Err(Error::conflict("this passkey is known already, or was taken away").hint("make a new one"));
    }
    let passkey = rows::keep(cx, SecretKind::Passkey, owner, &hash, &[format!("key:{}", BASE64.encode(point)), format!("origin:{origin}")], TTL)?;
    rows::set_note(cx.tx, &passkey, Some(&input.note))?;
    let host = host_of(&origin).unwrap_or_default().to_owned();
    Ok(PasskeyOut { passkey, note: input.note, host, created_at: format_time(cx.now()) })
}

pub(super) fn list(cx: &mut Cx<'_, '_>, _: ListPasskeys) -> Result<Passkeys> {
    let owner = cx.actor.id.clone();
    let passkeys = rows::good_of(cx, &owner, SecretKind::Passkey)?.into_iter().map(|row| {
        let host = part(&row, "origin:").as_deref().and_then(host_of).unwrap_or_default().to_owned();
        PasskeyOut { passkey: row.id, note: row.note.unwrap_or_default(), host, created_at: format_time(row.created_at) }
    });
    let passkeys = passkeys.collect();
    Ok(Passkeys { passkeys, passphrase: has_passphrase(cx, &owner)? })
}

/// Whether somebody has a passphrase or PIN.
fn has_passphrase(cx: &mut Cx<'_, '_>, person: &str) -> Result<bool> {
    Ok(PersonRow::read(&cx.tx.one(PERSON, args![person])?)?.factor.is_some())
}

pub(super) fn remove(cx: &mut Cx<'_, '_>, input: RemovePasskey) -> Result<Removed> {
    let row = cx.tx.optional(CREDENTIAL_BY_ID, args![input.passkey])?.map(|row| CredentialRow::read(&row)).transpose()?;
    let own = row.filter(|row| row.kind == SecretKind::Passkey.name() && row.owner == cx.actor.id && row.is_good(cx.now()));
    let row = own.ok_or_else(|| Error::not_found("you have no such passkey"))?;
    if rows::good_of(cx, &row.owner, SecretKind::Passkey)?.len() == 1 && !has_passphrase(cx, &row.owner)? {
        return Err(Error::conflict("this is all that shows that you are there").hint("set a passphrase, or make another passkey first"));
    }
    let now = cx.now();
    rows::end(cx, &row.id, now, "taken away")?;
    Ok(Removed { passkey: row.id })
}

/// A part of what a credential's row says of it.
fn part(row: &CredentialRow, name: &str) -> Option<String> {
    let scopes: Vec<String> = serde_json::from_str(&row.scopes).unwrap_or_default();
    scopes.iter().find_map(|scope| scope.strip_prefix(name).map(str::to_owned))
}

/// Whose passkey answered, if it is one that the desk knows and it signed just this.
pub(super) fn verify(cx: &mut Cx<'_, '_>, assertion: &Assertion, purpose: Purpose, bound: &str) -> Result<Option<Answered>> {
    let row = cx.tx.optional(CREDENTIAL, args![hash(&assertion.id)?])?.map(|row| CredentialRow::read(&row)).transpose()?;
    let (client, authenticator) = (bytes("client_data", &assertion.client_data)?, bytes("authenticator_data", &assertion.authenticator_data)?);
    let signature = Signature::from_der(&bytes("signature", &assertion.signature)?).map_err(|_| Error::invalid("signature", "is no signature"))?;
    let Some(row) = row.filter(|row| row.kind == SecretKind::Passkey.name() && row.is_good(cx.now())) else { return Ok(None) };
    if let Some(off) = off_by(assertion.asked_at, cx.now() / 1_000) {
        return Err(Error::new(Code::Unauthenticated, format!("when this passkey was asked {off}")).hint(ASK_AGAIN));
    }
    let point = part(&row, "key:").and_then(|key| BASE64.decode(key.as_bytes()).ok());
    let key = point.and_then(|point| VerifyingKey::from_sec1_bytes(&point).ok());
    let origin = asked(purpose, bound, assertion.asked_at, &client, &authenticator, cx.now() / 1_000);
    let signed = [authenticator.as_slice(), Sha256::digest(&client).as_slice()].concat();
    let good = origin.is_some() && origin == part(&row, "origin:") && key.is_some_and(|key| key.verify(&signed, &signature).is_ok());
    Ok(good.then_some(Answered { credential: row.id, owner: row.owner }))
}

/// Whether a passkey that answered is still good.
pub(super) fn is_good(cx: &mut Cx<'_, '_>, credential: &str) -> Result<bool> {
    let row = cx.tx.optional(CREDENTIAL_BY_ID, args![credential])?.map(|row| CredentialRow::read(&row)).transpose()?;
    Ok(row.is_some_and(|row| row.is_good(cx.now())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ORIGIN: &str = "https://desk.example.org:7373";

    /// What a browser and an authenticator say when they are rightly asked.
    fn answer(purpose: Purpose, bound: &str, asked_at: i64) -> (Vec<u8>, Vec<u8>) {
        let client =
            serde_json::json!({ "type": purpose.ceremony(), "challenge": challenge(purpose, bound, asked_at), "origin": ORIGIN, "crossOrigin": false });
        let mut authenticator = Sha256::digest("desk.example.org").to_vec();
        authenticator.extend([PRESENT_AND_VERIFIED, 0, 0, 0, 0]);
        (client.to_string().into_bytes(), authenticator)
    }

    fn purpose() -> impl Strategy<Value = Purpose> {
        prop_oneof![Just(Purpose::Add), Just(Purpose::First), Just(Purpose::Presence), Just(Purpose::SignIn)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_no_answer(
            text in any::<String>(), client in prop::collection::vec(any::<u8>(), 0..200), authenticator in prop::collection::vec(any::<u8>(), 0..60),
            purpose in purpose(), asked_at in any::<i64>(), now in any::<i64>(),
        ) {
            prop_assert_eq!(asked(purpose, "person", asked_at, &client, &authenticator, now), None);
            let (right, whole) = answer(purpose, "person", asked_at);
            prop_assert_eq!(asked(purpose, "person", asked_at, &right, &authenticator, asked_at), None, "another host, or nobody was there");
            prop_assert_eq!(asked(purpose, "person", asked_at, &client, &whole, asked_at), None);
            drop((hash(&text), bytes("field", &text), host_of(&text)));
        }

        #[test]
        fn an_answer_is_good_for_what_was_asked_and_nothing_else(
            purpose in purpose(), other in purpose(), bound in any::<String>(), else_bound in any::<String>(), asked_at in any::<i64>(), late in any::<i64>(),
            cut in any::<prop::sample::Index>(), flags in any::<u8>(),
        ) {
            let (client, authenticator) = answer(purpose, &bound, asked_at);
            let now = asked_at.saturating_add(late % 400_000);
            let held = asked(purpose, &bound, asked_at, &client, &authenticator, now);
            prop_assert_eq!(held.is_some(), now.abs_diff(asked_at) <= ASKED_WITHIN_MS);
            prop_assert!(held.is_none_or(|origin| origin == ORIGIN));
            prop_assert_eq!(asked(other, &bound, asked_at, &client, &authenticator, asked_at).is_some(), other == purpose);
            prop_assert_eq!(asked(purpose, &else_bound, asked_at, &client, &authenticator, asked_at).is_some(), else_bound == bound);
            prop_assert_eq!(asked(purpose, &bound, asked_at.wrapping_add(1), &client, &authenticator, asked_at), None, "another time");
            prop_assert_eq!(asked(purpose, &bound, asked_at, &client, &authenticator[..cut.index(33)], asked_at), None, "cut off");
            let mut marked = authenticator;
            marked[32] = flags;
            prop_assert_eq!(asked(purpose, &bound, asked_at, &client, &marked, asked_at).is_some(), flags & 0b101 == 0b101);
        }
    }
}
