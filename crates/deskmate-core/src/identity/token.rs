//! Secrets as people and programs carry them: a prefix that scanners can find, 256 random bits, and a checksum that
//! tells a mistyped one from a wrong one without asking the store.

use data_encoding::{BASE32_NOPAD, Encoding, Specification};
use sha2::{Digest, Sha256};

use crate::{Code, Error, Result};

/// How long a token of another server may be.
const FOREIGN_MIN: usize = 16;
const FOREIGN_MAX: usize = 512;

/// What a secret is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    /// An agent's token.
    Agent,
    /// A person's token for scripts.
    Personal,
    /// A signed-in session.
    Session,
    /// An invitation to a person.
    Invitation,
    /// The first link, which claims the desk.
    Claim,
    /// A code that pairs an extension or a program with a person. It is shorter than the others and has a form of its own.
    Pairing,
    /// An agent's token of another server, brought in by its hash. It has no form of ours.
    Imported,
    /// A link by which a person decides one request, once.
    Decision,
    /// The token of one run of an agent, for the program that does it.
    Run,
    /// A passkey, kept by the hash of its id. It is no secret of ours, and nobody brings it as one.
    Passkey,
}

impl SecretKind {
    /// Those with a form of our own; an imported token is not among them, because any text could be one.
    const ALL: [Self; 7] = [Self::Agent, Self::Personal, Self::Session, Self::Invitation, Self::Claim, Self::Decision, Self::Run];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Personal => "personal",
            Self::Session => "session",
            Self::Invitation => "invitation",
            Self::Claim => "claim",
            Self::Pairing => "pairing",
            Self::Imported => "imported",
            Self::Decision => "decision",
            Self::Run => "run",
            Self::Passkey => "passkey",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Agent => "dma_",
            Self::Personal => "dmp_",
            Self::Session => "dms_",
            Self::Invitation => "dmi_",
            Self::Claim => "dmc_",
            Self::Decision => "dml_",
            Self::Run => "dmr_",
            Self::Pairing | Self::Imported | Self::Passkey => "",
        }
    }
}

/// A secret and its kind. It has no `Debug`, so that it cannot reach a log by accident.
#[derive(Clone)]
pub struct Secret {
    kind: SecretKind,
    text: String,
}

impl Secret {
    /// A new secret from 256 unguessable bits.
    pub fn new(kind: SecretKind, bits: &[u8; 32]) -> Self {
        let body = alphabet().encode(bits);
        let text = format!("{}{body}{}", kind.prefix(), checksum(kind, &body));
        Self { kind, text }
    }

    /// Reads a secret that somebody brought.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let wrong = || Error::new(Code::Unauthenticated, "this is not a token of a desk").hint("check that it was copied whole");
        let kind = SecretKind::ALL.into_iter().find(|kind| text.starts_with(kind.prefix())).ok_or_else(wrong)?;
        let rest = text.strip_prefix(kind.prefix()).ok_or_else(wrong)?;
        let (body, sum) = rest.len().checked_sub(7).and_then(|at| rest.split_at_checked(at)).ok_or_else(wrong)?;
        if sum != checksum(kind, body) {
            return Err(wrong());
        }
        Ok(Self { kind, text: text.to_owned() })
    }

    /// Whether a text begins as a secret of ours does, whole or not.
    pub(super) fn is_ours(text: &str) -> bool {
        SecretKind::ALL.into_iter().any(|kind| text.trim_start().starts_with(kind.prefix()))
    }

    /// A text that is no secret of ours, as the token of another server that may have been brought in. Only the store can
    /// tell whether it was.
    pub(super) fn foreign(text: &str) -> Option<Self> {
        let text = text.trim();
        let plain = (FOREIGN_MIN..=FOREIGN_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        (plain && !Self::is_ours(text)).then(|| Self { kind: SecretKind::Imported, text: text.to_owned() })
    }

    /// What it is for.
    pub fn kind(&self) -> SecretKind {
        self.kind
    }

    /// The text to hand over, once.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// What is stored. The secret has 256 random bits, so a plain hash is enough.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.text.as_bytes()).into()
    }
}

fn checksum(kind: SecretKind, body: &str) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(kind.prefix().as_bytes());
    hasher.update(body.as_bytes());
    alphabet().encode(&hasher.finalize().to_be_bytes())
}

/// Base 32 in lower case, without padding.
fn alphabet() -> Encoding {
    let mut specification: Specification = BASE32_NOPAD.specification();
    specification.symbols = specification.symbols.to_ascii_lowercase();
    specification.encoding().unwrap_or(BASE32_NOPAD)
}
