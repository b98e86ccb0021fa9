//! Agents of another cowork server, brought in with the hashes of their tokens.
//!
//! Such a token has no form of ours, so a wrong one cannot be told from a mistyped one, and nobody knows how well it was
//! made or kept. That is why it is good for a year at most, why what can be guessed or was published is refused, and why
//! whoever brings it in is advised to rotate it.

use deskmate_db::args;
use sha2::{Digest, Sha256};

use super::agents;
use super::authenticate::check_agent_name;
use super::rows::{self, CREDENTIAL, CredentialRow};
use super::token::SecretKind;
use crate::call::Cx;
use crate::{Result, hex};

const YEAR: i64 = 365 * 86_400_000_000;

/// Hashes of tokens that stand in public files of cowork servers, so that anybody can know them.
const PUBLISHED: [&str; 2] =
    ["d03f462b83c1b6121e9e97662456dc63a57ac1ec676045660591fa1d3e059b11", "9753d18f06642d134785da14fa02a9dda4eec8a0f4a098c1dcfe13e2531ef05b"];

/// What people write where a secret should be.
const GUESSES: [&str; 16] = [
    "",
    "token",
    "secret",
    "password",
    "changeme",
    "change-me",
    "test",
    "demo",
    "example",
    "placeholder",
    "agent",
    "admin",
    "none",
    "null",
    "todo",
    "sk-cowork-",
];

/// What became of an agent that was brought in.
pub(crate) struct BroughtIn {
    /// Whether the agent was registered by this.
    pub(crate) registered: bool,
    /// Whether its token was taken by this.
    pub(crate) token: bool,
    /// Why the agent or its token was not taken, if it was not.
    pub(crate) refused: Option<String>,
}

/// Brings in an agent. One whose token is refused is registered all the same: it needs a new token, and the desk is
/// closed, as the other server was. With `dry` nothing is written.
pub(crate) fn bring_in(cx: &mut Cx<'_, '_>, agent: &str, hash: Option<[u8; 32]>, dry: bool) -> Result<BroughtIn> {
    let mut done = BroughtIn { registered: false, token: false, refused: None };
    if let Err(error) = check_agent_name(cx.tx, "agent", agent) {
        done.refused = Some(error.message);
        return Ok(done);
    }
    let state: Option<String> = cx.tx.optional("select state from agent where id = $1", args![agent])?.map(|row| row.get(0)).transpose()?;
    if state.as_deref().is_some_and(|state| state != "active") {
        done.refused = Some("the agent was revoked here; `deskmate agent add` registers it again".to_owned());
        return Ok(done);
    }
    done.registered = state.is_none();
    if done.registered && !dry {
        agents::enter(cx, agent, "brought in from a cowork server", false)?;
    }
    let Some(hash) = hash else { return Ok(done) };
    done.refused = refusal(cx, agent, &hash)?;
    let known = cx.tx.optional(CREDENTIAL, args![hash])?.map(|row| CredentialRow::read(&row)).transpose()?;
    match (&done.refused, known) {
        (Some(_), _) => {}
        (None, Some(known)) if known.owner == agent && known.is_good(cx.now()) => {}
        (None, Some(known)) if known.owner == agent => done.refused = Some("the token was revoked or has expired here".to_owned()),
        (None, Some(_)) => done.refused = Some("another agent has the same token".to_owned()),
        (None, None) => {
            done.token = true;
            if !dry {
                rows::keep(cx, SecretKind::Imported, agent, &hash, &[], YEAR)?;
            }
        }
    }
    Ok(done)
}

/// Why a token is not taken, judged by its hash: whoever can name it without having seen it is enough.
fn refusal(cx: &mut Cx<'_, '_>, agent: &str, hash: &[u8; 32]) -> Result<Option<String>> {
    if PUBLISHED.contains(&hex(hash).as_str()) {
        return Ok(Some("the token stands in a public example file, so anybody can know it".to_owned()));
    }
    let is = |guess: &str| <[u8; 32]>::from(Sha256::digest(guess.as_bytes())) == *hash;
    let guessed = GUESSES.iter().any(|guess| is(guess) || is(&format!("sk-cowork-{guess}")) || is(&format!("{agent}-{guess}")))
        || [agent.to_owned(), format!("sk-cowork-{agent}"), format!("{agent}123")].iter().any(|guess| is(guess));
    if guessed {
        return Ok(Some("the token can be guessed".to_owned()));
    }
    let ended = cx.tx.optional("select id from credential where hash = $1 and kind <> $2", args![*hash, SecretKind::Imported.name()])?;
    Ok(ended.map(|_| "the token belongs to something else here".to_owned()))
}
