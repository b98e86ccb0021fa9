//! Claiming the desk, joining it, signing in, and showing that one is there.
//!
//! Checking and hashing a passphrase is slow on purpose, so it happens in the first step of these operations, which
//! does not hold the writer. What that step found is used only if nothing changed meanwhile.

use deskmate_db::{Tx, args};
use p256::ecdsa::signature::Verifier;
use p256::ecdsa::{Signature, VerifyingKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::passkey::{self, Answered, Assertion, NewPasskey, Purpose};
use super::people::{self, factor_digest};
use super::rows::{self, CREDENTIAL, CredentialRow, PERSON, PERSON_BY_NAME, PersonRow};
use super::token::{Secret, SecretKind};
use super::{factor, mode};
use crate::call::{Actor, Cx, Mode, Presence, Role};
use crate::record::{Event, Kind};
use crate::{Code, Error, Result, format_time};

/// The desk got its first owner.
pub(super) const CLAIMED: Kind = Kind { name: "desk.claimed", says: "The desk got its first owner." };
/// Somebody tried a wrong passphrase.
pub(super) const SIGN_IN_FAILED: Kind = Kind { name: "person.sign_in_failed", says: "Somebody tried to sign in with a wrong passphrase." };
/// Signing in is locked for a while.
pub(super) const LOCKED: Kind = Kind { name: "person.locked", says: "Too many wrong passphrases: signing in is locked for a while." };
/// A person showed that they are there.
pub(super) const PRESENT: Kind = Kind { name: "session.present", says: "A person showed that they are there, for a few minutes." };
/// A person set a passphrase.
pub(super) const PASSPHRASE_SET: Kind = Kind { name: "person.passphrase_set", says: "A person set a passphrase or PIN, their first one or a new one." };

const MINUTE: i64 = 60_000_000;
const CLAIM_TTL: i64 = 10 * MINUTE;
/// How long a session is good.
pub(super) const SESSION_TTL: i64 = 30 * 24 * 60 * MINUTE;
/// How the credential of a session says that a code opened it, and no passphrase.
pub(super) const PAIRED: &str = "paired";
/// How long a shown presence lasts.
pub(super) const PRESENT_TTL: i64 = 5 * MINUTE;
/// Wrong passphrases before the first lock; each further one doubles the time, up to a day.
const FAILURES_MAX: i64 = 5;

/// A link for the first owner.
pub struct Link {
    /// Its code.
    pub code: String,
    /// Until when it works.
    pub expires_at: i64,
}

/// Nobody can sign in at a desk that nobody has claimed.
pub fn no_owner() -> Error {
    Error::conflict("this desk has no owner yet").hint("open the link that `deskmate up` printed; `deskmate claim` prints a new one")
}

/// Whether the desk has an owner.
pub fn is_claimed(tx: &mut Tx<'_>) -> Result<bool> {
    Ok(tx.optional("select id from person order by id limit 1", &[])?.is_some())
}

/// Hands out the link that claims the desk. Earlier ones stop working.
pub fn issue_claim(cx: &mut Cx<'_, '_>) -> Result<Link> {
    check_unclaimed(cx)?;
    let now = cx.now();
    for row in rows::good_of(cx, "desk", SecretKind::Claim)? {
        rows::end(cx, &row.id, now, "a newer link was made")?;
    }
    let (_, secret) = rows::issue(cx, SecretKind::Claim, "desk", &[], CLAIM_TTL)?;
    Ok(Link { code: secret.reveal().to_owned(), expires_at: now + CLAIM_TTL })
}

/// Claim the desk: become its first owner with the link that the server printed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    /// The code of the link.
    code: String,
    /// How you are called.
    name: String,
    /// The passphrase or PIN that from now on shows that you are there. At least six characters.
    passphrase: Option<String>,
    /// A passkey in its place. Its challenge is the SHA-256 of `deskmate passkey first`, `code`, `public_key` and `asked_at`, each on
    /// a line of its own.
    passkey: Option<NewPasskey>,
    /// The public key of your browser (P-256, uncompressed point, base64), which then signs what you decide.
    public_key: Option<String>,
}

/// The hash of a new passphrase, made before the transaction that stores it; none where a passkey takes its place.
pub(super) struct FactorHash(Option<String>);

/// Adds somebody new, who from now on shows presence with their passphrase, or with the passkey that their browser made for this link.
fn add_person(cx: &mut Cx<'_, '_>, new: New<'_>, factor: &FactorHash, passkey: Option<NewPasskey>) -> Result<String> {
    let person = people::insert(cx, new.name, new.role, new.domains, factor.0.as_deref())?;
    if let Some(passkey) = passkey {
        let key = new.public_key.ok_or_else(|| Error::invalid("public_key", "is needed with a passkey, which names it"))?;
        passkey::keep_first(cx, passkey, &person, new.code, key)?;
    }
    Ok(person)
}

/// Somebody who comes with a link.
struct New<'i> {
    name: &'i str,
    role: Role,
    domains: &'i [String],
    code: &'i str,
    public_key: Option<&'i str>,
}

/// You are signed in.
#[derive(Serialize, JsonSchema)]
pub(super) struct SignedIn {
    /// Your id.
    person: String,
    /// How you are called.
    name: String,
    /// What you may do.
    role: String,
    /// The session's secret. It is shown only here.
    session: String,
    /// Until when the session is good.
    expires_at: String,
    /// Until when your presence counts as shown.
    present_until: String,
}

pub(super) fn hash_factor_of_claim(cx: &mut Cx<'_, '_>, input: &Claim) -> Result<FactorHash> {
    open_link(cx, &input.code, SecretKind::Claim)?;
    hash_first(cx, input.passphrase.as_deref(), input.passkey.is_some())
}

/// Hashes the passphrase of somebody new, if that is what they show presence with.
fn hash_first(cx: &mut Cx<'_, '_>, passphrase: Option<&str>, passkey: bool) -> Result<FactorHash> {
    match passphrase {
        Some(passphrase) if !passkey => factor::hash(passphrase, &cx.secret()).map(Some).map(FactorHash),
        None if passkey => Ok(FactorHash(None)),
        _ => Err(one_of_both()),
    }
}

pub(super) fn claim(cx: &mut Cx<'_, '_>, input: Claim, factor: &FactorHash) -> Result<SignedIn> {
    let link = open_link(cx, &input.code, SecretKind::Claim)?;
    check_unclaimed(cx)?;
    let now = cx.now();
    rows::end(cx, &link.id, now, "used")?;
    let new = New { name: &input.name, role: Role::Owner, domains: &["*".to_owned()], code: &input.code, public_key: input.public_key.as_deref() };
    let person = add_person(cx, new, factor, input.passkey)?;
    cx.emit(Event::new(CLAIMED, "desk").fact("person", person.as_str()))?;
    crate::policy::draft::claimed(cx, &person)?;
    open_session(cx, &person, input.public_key.as_deref())
}

/// Join the desk with an invitation.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Accept {
    /// The code of the invitation.
    code: String,
    /// The passphrase or PIN that from now on shows that you are there. At least six characters.
    passphrase: Option<String>,
    /// A passkey in its place. Its challenge is the SHA-256 of `deskmate passkey first`, `code`, `public_key` and `asked_at`, each on
    /// a line of its own.
    passkey: Option<NewPasskey>,
    /// The public key of your browser (P-256, uncompressed point, base64), which then signs what you decide.
    public_key: Option<String>,
}

pub(super) fn hash_factor_of_invited(cx: &mut Cx<'_, '_>, input: &Accept) -> Result<FactorHash> {
    open_link(cx, &input.code, SecretKind::Invitation)?;
    hash_first(cx, input.passphrase.as_deref(), input.passkey.is_some())
}

pub(super) fn accept(cx: &mut Cx<'_, '_>, input: Accept, factor: &FactorHash) -> Result<SignedIn> {
    let link = open_link(cx, &input.code, SecretKind::Invitation)?;
    let now = cx.now();
    rows::end(cx, &link.id, now, "used")?;
    let scopes: Vec<String> = serde_json::from_str(&link.scopes).unwrap_or_default();
    let (role, domains) = scopes.split_first().ok_or_else(|| Error::new(Code::Internal, "the invitation names no role"))?;
    let name = link.note.ok_or_else(|| Error::new(Code::Internal, "the invitation names nobody"))?;
    let new = New { name: &name, role: Role::from_name(role), domains, code: &input.code, public_key: input.public_key.as_deref() };
    let person = add_person(cx, new, factor, input.passkey)?;
    open_session(cx, &person, input.public_key.as_deref())
}

/// Whether a link still claims the desk or lets somebody join, so that nobody fills a form in vain. Looking uses nothing up.
pub fn check_link(cx: &mut Cx<'_, '_>, code: &str, kind: SecretKind) -> Result<()> {
    open_link(cx, code, kind)?;
    if kind == SecretKind::Claim { check_unclaimed(cx) } else { Ok(()) }
}

fn check_unclaimed(cx: &mut Cx<'_, '_>) -> Result<()> {
    if is_claimed(cx.tx)? { Err(Error::conflict("this desk has an owner already").hint("ask them for an invitation")) } else { Ok(()) }
}

fn open_link(cx: &mut Cx<'_, '_>, code: &str, kind: SecretKind) -> Result<CredentialRow> {
    let hint = if kind == SecretKind::Claim {
        "`deskmate claim` in a terminal prints a new one while the desk has no owner; an owner gives an invitation"
    } else {
        "an owner of the desk gives a new invitation"
    };
    let refused = || Error::new(Code::Unauthenticated, "this link is unknown, expired or used up").hint(hint);
    let secret = Secret::parse(code).map_err(|_| refused())?;
    let row = cx.tx.optional(CREDENTIAL, args![secret.hash()])?.map(|row| CredentialRow::read(&row)).transpose()?;
    row.filter(|row| row.kind == kind.name() && row.is_good(cx.now())).ok_or_else(refused)
}

/// Sign in with your name and passphrase, or with a passkey.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignIn {
    /// How you are called. Not needed while the desk has only one person.
    name: Option<String>,
    /// Your passphrase or PIN.
    passphrase: Option<String>,
    /// A passkey in its place. Its challenge is the SHA-256 of `deskmate passkey sign-in`, `public_key` and `asked_at`, each on a
    /// line of its own.
    passkey: Option<Assertion>,
    /// The public key of your browser (P-256, uncompressed point, base64), which then signs what you decide.
    public_key: Option<String>,
}

/// What the slow check found: which person, against which hash or with which passkey, and whether it fitted.
pub(super) struct Checked {
    person: String,
    factor: Option<String>,
    passkey: Option<String>,
    fits: bool,
}

/// What somebody shows to prove that they are there.
enum Shows<'i> {
    Passphrase(&'i str),
    Passkey(&'i Assertion),
}

impl<'i> Shows<'i> {
    fn one_of(passphrase: Option<&'i String>, passkey: Option<&'i Assertion>) -> Result<Self> {
        match (passphrase, passkey) {
            (Some(passphrase), None) => Ok(Self::Passphrase(passphrase)),
            (None, Some(passkey)) => Ok(Self::Passkey(passkey)),
            _ => Err(one_of_both()),
        }
    }
}

fn one_of_both() -> Error {
    Error::invalid("passphrase", "is needed, or `passkey`, and not both")
}

pub(super) fn check_factor(cx: &mut Cx<'_, '_>, input: &SignIn) -> Result<Checked> {
    if !is_claimed(cx.tx)? {
        return Err(no_owner());
    }
    let shows = Shows::one_of(input.passphrase.as_ref(), input.passkey.as_ref())?;
    if let Shows::Passkey(assertion) = shows {
        let key = input.public_key.as_ref().ok_or_else(|| Error::invalid("public_key", "is needed with a passkey, which signs it"))?;
        let answered = passkey::verify(cx, assertion, Purpose::SignIn, key)?.ok_or_else(wrong_passkey)?;
        let person = PersonRow::read(&cx.tx.one(PERSON, args![answered.owner])?)?;
        return by_passkey(person, answered);
    }
    let row = if let Some(name) = &input.name {
        cx.tx.optional(PERSON_BY_NAME, args![name])?
    } else {
        let rows = cx.tx.query(rows::PEOPLE, args![i64::MIN, "", 2_u32])?;
        if rows.len() > 1 {
            return Err(Error::invalid("name", "is needed, because this desk has several people"));
        }
        rows.into_iter().next()
    };
    let person = row.map(|row| PersonRow::read(&row)).transpose()?.ok_or_else(wrong)?;
    refuse_locked(cx, &person)?;
    check(cx, person, shows)
}

/// Whoever guesses over the network locks the network's callers out. The account that the server runs under is not held
/// up by that: it could read the store anyway, and its owner must be able to come in and end it.
fn refuse_locked(cx: &Cx<'_, '_>, person: &PersonRow) -> Result<()> {
    match person.locked_until.filter(|until| *until > cx.now() && !cx.actor.is_local()) {
        None => Ok(()),
        Some(until) => {
            let wait = u64::try_from((until - cx.now()) / 1_000).unwrap_or(0);
            let told = Error::limited(format!("signing in is locked until {} after too many wrong passphrases", format_time(until)), wait);
            Err(told.hint("a terminal of the account that the server runs under is not locked, and a session that is signed in goes on"))
        }
    }
}

fn check(cx: &mut Cx<'_, '_>, person: PersonRow, shows: Shows<'_>) -> Result<Checked> {
    match shows {
        _ if person.state != "active" => Err(wrong()),
        Shows::Passphrase(passphrase) => {
            // Nothing can be guessed here, so it is said instead of counted.
            let hash = person.factor.as_deref().ok_or_else(no_passphrase)?;
            let fits = factor::verify(passphrase, hash);
            Ok(Checked { person: person.id, factor: person.factor, passkey: None, fits })
        }
        Shows::Passkey(assertion) => {
            let answered = passkey::verify(cx, assertion, Purpose::Presence, &person.id)?.filter(|answered| answered.owner == person.id);
            by_passkey(person, answered.ok_or_else(wrong_passkey)?)
        }
    }
}

/// What a passkey that answered rightly shows.
fn by_passkey(person: PersonRow, answered: Answered) -> Result<Checked> {
    if person.state != "active" {
        return Err(wrong());
    }
    Ok(Checked { person: person.id, factor: person.factor, passkey: Some(answered.credential), fits: true })
}

fn wrong_passkey() -> Error {
    Error::new(Code::Unauthenticated, "this passkey is not known here, or did not answer this").hint("use your passphrase")
}

fn no_passphrase() -> Error {
    Error::new(Code::Unauthenticated, "you have no passphrase: a passkey shows that you are there, and passkeys answer in a browser")
        .hint("sign in there and set a passphrase on the page of your passkeys (/passkeys); the command line and the extension need one")
}

fn wrong() -> Error {
    Error::new(Code::Unauthenticated, "the name or the passphrase is wrong")
}

/// The person whom a check found, if nothing changed meanwhile.
fn unchanged(cx: &mut Cx<'_, '_>, checked: &Checked) -> Result<PersonRow> {
    let row = cx.tx.optional(PERSON, args![checked.person])?.map(|row| PersonRow::read(&row)).transpose()?.ok_or_else(wrong)?;
    let gone = match &checked.passkey {
        Some(credential) => !passkey::is_good(cx, credential)?,
        None => false,
    };
    if row.factor == checked.factor && row.state == "active" && !gone { Ok(row) } else { Err(wrong()) }
}

/// Uses what the check found: counts a failure, or says that the person may go on. `None` is a failure that was told.
fn settle(cx: &mut Cx<'_, '_>, checked: &Checked) -> Result<Option<PersonRow>> {
    let row = unchanged(cx, checked)?;
    // Nobody guesses a passkey, so whoever guesses passphrases does not lock it out.
    if checked.passkey.is_none() {
        refuse_locked(cx, &row)?;
    }
    let (now, subject) = (cx.now(), format!("person:{}", row.id));
    if checked.fits {
        if row.failures > 0 {
            cx.tx.execute("update person set failures = 0, locked_until = null where id = $1", args![row.id])?;
        }
        return Ok(Some(row));
    }
    let failures = row.failures + 1;
    let over = failures - FAILURES_MAX;
    let locked_until = (over >= 0).then(|| now + (MINUTE << over.min(11)).min(24 * 60 * MINUTE));
    cx.tx.execute("update person set failures = $2, locked_until = $3 where id = $1", args![row.id, failures, locked_until])?;
    cx.emit(Event::new(SIGN_IN_FAILED, subject.clone()).fact("person", row.id.as_str()).fact("failures", failures))?;
    if let Some(until) = locked_until {
        cx.emit(Event::new(LOCKED, subject).fact("person", row.id.as_str()).fact("until", until))?;
    }
    Ok(None)
}

/// An answer that may be a refusal: a refusal that must be remembered cannot be an error, which would undo it.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum MaySignIn {
    /// You are signed in.
    Yes(SignedIn),
    /// The passphrase was wrong.
    No {
        /// Always `false`.
        signed_in: bool,
        /// What to tell the person.
        message: String,
    },
}

fn refused() -> MaySignIn {
    MaySignIn::No { signed_in: false, message: "the name or the passphrase is wrong".to_owned() }
}

pub(super) fn sign_in(cx: &mut Cx<'_, '_>, input: SignIn, checked: &Checked) -> Result<MaySignIn> {
    match settle(cx, checked)? {
        None => Ok(refused()),
        Some(person) => Ok(MaySignIn::Yes(open_session(cx, &person.id, input.public_key.as_deref())?)),
    }
}

fn open_session(cx: &mut Cx<'_, '_>, person: &str, public_key: Option<&str>) -> Result<SignedIn> {
    // From here on it is known who acts, and the record says so.
    cx.actor = Actor::person(person);
    let key = public_key.map(read_key).transpose()?;
    let (id, secret) = issue(cx, person, key, &[])?;
    let until = present(cx, &id)?;
    let row = PersonRow::read(&cx.tx.one(PERSON, args![person])?)?;
    Ok(SignedIn {
        person: row.id,
        name: row.name,
        role: row.role,
        session: secret.reveal().to_owned(),
        expires_at: format_time(cx.now() + SESSION_TTL),
        present_until: format_time(until),
    })
}

/// A session for an extension that was paired: bound to its key, and without presence shown.
pub(super) fn issue_paired(cx: &mut Cx<'_, '_>, person: &str, public_key: &str) -> Result<(String, Secret)> {
    let key = read_key(public_key)?;
    issue(cx, person, Some(key), &[PAIRED.to_owned()])
}

fn issue(cx: &mut Cx<'_, '_>, person: &str, key: Option<Vec<u8>>, marks: &[String]) -> Result<(String, Secret)> {
    // The record vouches for the credential's row, and that row for the key and for whether there is one.
    let bound: Vec<String> = key.iter().map(|key| key_scope(key)).chain(marks.iter().cloned()).collect();
    let (id, secret) = rows::issue(cx, SecretKind::Session, person, &bound, SESSION_TTL)?;
    if let Some(key) = key {
        cx.tx.execute("insert into session_key (credential, public_key) values ($1, $2)", args![id, key])?;
    }
    Ok((id, secret))
}

fn read_key(text: &str) -> Result<Vec<u8>> {
    let bytes = data_encoding::BASE64.decode(text.as_bytes()).ok().filter(|bytes| VerifyingKey::from_sec1_bytes(bytes).is_ok());
    bytes.ok_or_else(|| Error::invalid("public_key", "must be an uncompressed P-256 point in base64"))
}

/// How a session's credential names the key of its browser.
fn key_scope(key: &[u8]) -> String {
    use sha2::Digest;
    format!("key:{}", crate::hex(&sha2::Sha256::digest(key)))
}

fn present(cx: &mut Cx<'_, '_>, credential: &str) -> Result<i64> {
    let until = cx.now() + PRESENT_TTL;
    cx.tx.execute("update credential set present_until = $2, failures = 0 where id = $1", args![credential, until])?;
    cx.emit(Event::new(PRESENT, format!("credential:{credential}")).fact("credential", credential).fact("until", until))?;
    Ok(until)
}

/// Show that you are there, with your passphrase or a passkey, for the next few minutes of this session.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowPresence {
    /// Your passphrase or PIN.
    passphrase: Option<String>,
    /// A passkey in its place. Its challenge is the SHA-256 of `deskmate passkey presence`, your id and `asked_at`, each on a line
    /// of its own.
    passkey: Option<Assertion>,
}

/// Whether your presence is shown now.
#[derive(Serialize, JsonSchema)]
pub(super) struct Shown {
    /// Whether the passphrase fitted.
    shown: bool,
    /// Until when it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    present_until: Option<String>,
}

pub(super) fn check_own_factor(cx: &mut Cx<'_, '_>, input: &ShowPresence) -> Result<Checked> {
    let person = PersonRow::read(&cx.tx.one(PERSON, args![cx.actor.id])?)?;
    check(cx, person, Shows::one_of(input.passphrase.as_ref(), input.passkey.as_ref())?)
}

pub(super) fn show_presence(cx: &mut Cx<'_, '_>, _: ShowPresence, checked: &Checked) -> Result<Shown> {
    let credential = own_session(cx)?;
    let person = unchanged(cx, checked)?;
    if !checked.fits {
        count_in_session(cx, &credential, &person.id)?;
        return Ok(Shown { shown: false, present_until: None });
    }
    let until = present(cx, &credential)?;
    Ok(Shown { shown: true, present_until: Some(format_time(until)) })
}

/// A session counts its own wrong passphrases, apart from those of callers who are not signed in: those cannot keep it
/// from showing presence, and after a few the session ends.
fn count_in_session(cx: &mut Cx<'_, '_>, credential: &str, person: &str) -> Result<()> {
    let failures: i64 = cx.tx.one("update credential set failures = failures + 1 where id = $1 returning failures", args![credential])?.get(0)?;
    let event = Event::new(SIGN_IN_FAILED, format!("person:{person}")).fact("person", person).fact("failures", failures);
    cx.emit(event.fact("credential", credential))?;
    if failures >= FAILURES_MAX {
        let now = cx.now();
        rows::end(cx, credential, now, "too many wrong passphrases")?;
    }
    Ok(())
}

fn own_session(cx: &Cx<'_, '_>) -> Result<String> {
    let session = if cx.actor.scopes.is_none() { cx.actor.credential.clone() } else { None };
    session.ok_or_else(|| Error::forbidden("this needs a signed-in session, not a token"))
}

/// Set your passphrase or PIN: your first one, if you came with a passkey, or a new one in place of the old.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetPassphrase {
    /// The passphrase or PIN that from now on shows that you are there. At least six characters.
    passphrase: String,
}

/// The passphrase is set.
#[derive(Serialize, JsonSchema)]
pub(super) struct PassphraseSet {
    /// Whose it is.
    person: String,
}

pub(super) fn hash_own_factor(cx: &mut Cx<'_, '_>, input: &SetPassphrase) -> Result<FactorHash> {
    factor::hash(&input.passphrase, &cx.secret()).map(Some).map(FactorHash)
}

pub(super) fn set_passphrase(cx: &mut Cx<'_, '_>, _: SetPassphrase, factor: &FactorHash) -> Result<PassphraseSet> {
    let (person, now, hash) = (cx.actor.id.clone(), cx.now(), factor.0.as_deref());
    cx.tx.execute("update person set factor = $2, updated_at = $3 where id = $1", args![person, hash, now])?;
    let event = Event::new(PASSPHRASE_SET, format!("person:{person}")).fact("person", person.as_str());
    cx.emit(event.fact("factor", rebuilt_factor(hash)))?;
    Ok(PassphraseSet { person })
}

/// End this session: its secret stops working at once.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignOut {}

/// The session has ended.
#[derive(Serialize, JsonSchema)]
pub(super) struct SignedOut {
    /// The session's id.
    session: String,
}

pub(super) fn sign_out(cx: &mut Cx<'_, '_>, _: SignOut) -> Result<SignedOut> {
    let session = own_session(cx)?;
    let now = cx.now();
    rows::end(cx, &session, now, "signed out")?;
    Ok(SignedOut { session })
}

/// List your signed-in sessions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListSessions {}

/// Your sessions that are still good, newest first.
#[derive(Serialize, JsonSchema)]
pub(super) struct Sessions {
    sessions: Vec<SessionOut>,
}

#[derive(Serialize, JsonSchema)]
struct SessionOut {
    /// Its id.
    session: String,
    /// How it was called when it was paired, if it is an extension's.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Since when.
    created_at: String,
    /// Until when.
    expires_at: String,
    /// Whether this is the one you are using.
    this_one: bool,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, _: ListSessions) -> Result<Sessions> {
    let (owner, own) = (cx.actor.id.clone(), cx.actor.credential.clone());
    let sessions = rows::good_of(cx, &owner, SecretKind::Session)?.into_iter().map(|row| SessionOut {
        this_one: own.as_ref() == Some(&row.id),
        session: row.id,
        name: row.note,
        created_at: format_time(row.created_at),
        expires_at: format_time(row.expires_at),
    });
    Ok(Sessions { sessions: sessions.collect() })
}

/// End one of your sessions; an owner may end anybody's.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RevokeSession {
    /// Its id.
    session: String,
}

pub(super) fn revoke(cx: &mut Cx<'_, '_>, input: RevokeSession) -> Result<SignedOut> {
    people::end_own(cx, &input.session, &[SecretKind::Session])?;
    Ok(SignedOut { session: input.session })
}

/// Say who you are here: what the desk makes of your credential.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WhoAmI {}

/// Who you are here.
#[derive(Serialize, JsonSchema)]
pub(super) struct You {
    /// `person`, `agent` or `system`.
    kind: String,
    /// Your id.
    id: String,
    /// How a person is called here.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Whether a credential proved it.
    verified: bool,
    /// Whether this desk is open (a name is enough) or closed (every agent needs its token).
    mode: Mode,
    /// A person's role.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// Whether a person's presence counts as shown.
    present: bool,
}

pub(super) fn whoami(cx: &mut Cx<'_, '_>, _: WhoAmI) -> Result<You> {
    let person = if cx.actor.role.is_some() { cx.tx.optional(PERSON, args![cx.actor.id])? } else { None };
    Ok(You {
        kind: cx.actor.kind.name().to_owned(),
        id: cx.actor.id.clone(),
        name: person.map(|row| PersonRow::read(&row)).transpose()?.map(|person| person.name),
        verified: cx.actor.verified,
        mode: mode(cx.tx)?,
        role: cx.actor.role.map(|role| role.name().to_owned()),
        present: cx.actor.presence == Presence::Shown,
    })
}

/// Whether a session belongs to a browser that made a key at sign-in. One without a key belongs to the command line,
/// which keeps its secret in memory and sends it in the Authorization header, as no page of another origin can.
pub fn has_key(tx: &mut Tx<'_>, session: &str) -> Result<bool> {
    let row = tx.optional(SESSION_KEY, args![Secret::parse(session)?.hash()])?;
    let Some(row) = row else { return Ok(false) };
    let (scopes, key): (String, Option<Vec<u8>>) = (row.get(0)?, row.get(1)?);
    Ok(key.is_some() || scopes != "[]")
}

const SESSION_KEY: &str = "select c.scopes, k.public_key from credential c left join session_key k on k.credential = c.id where c.hash = $1";

/// The key of the browser that signed in, if it signed this request of the session.
pub fn verify_signature(tx: &mut Tx<'_>, session: &str, signed: &[u8], signature: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
    let row = tx.optional(SESSION_KEY, args![Secret::parse(session)?.hash()])?;
    let Some(row) = row else { return Ok(None) };
    let scopes: Vec<String> = serde_json::from_str(&row.get::<String>(0)?).unwrap_or_default();
    let Some(key) = row.get::<Option<Vec<u8>>>(1)?.filter(|key| scopes.contains(&key_scope(key))) else { return Ok(None) };
    let checked = VerifyingKey::from_sec1_bytes(&key).ok().zip(signature.and_then(|bytes| Signature::from_slice(bytes).ok()));
    Ok(checked.is_some_and(|(key, signature)| key.verify(signed, &signature).is_ok()).then_some(key))
}

/// What the sessions' events say, for rebuilding.
pub(super) fn rebuilt_factor(factor: Option<&str>) -> String {
    factor.map(factor_digest).unwrap_or_default()
}
