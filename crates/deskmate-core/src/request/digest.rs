//! What was approved is what runs: the exact act, who acts, a nonce, the tool's schema and the state that it changes,
//! as canonical JSON (RFC 8785) under one SHA-256.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::model::{Request, Requester, unreadable};
use crate::call::check_value;
use crate::policy::Act;
use crate::{Code, Error, Result, canonical_value};

/// Everything that a digest covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// The exact act.
    pub act: Act,
    /// Who would do it.
    pub actor: BoundActor,
    /// Random, so that two equal acts have two digests and a grant fits only one.
    pub nonce: String,
    /// The digest of the schema of the tool that would do it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The state of what it would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Value>,
}

/// Who would do it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundActor {
    /// `person`, `agent` or `system`.
    pub kind: String,
    /// The id.
    pub id: String,
}

impl Bound {
    /// Binds an act to who would do it.
    pub fn new(act: Act, requester: &Requester, nonce: String, schema: Option<String>, target: Option<Value>) -> Self {
        Self { act, actor: BoundActor { kind: requester.kind.name().to_owned(), id: requester.id.clone() }, nonce, schema, target }
    }

    /// The canonical text and its digest. Integers beyond ±2^53 are refused: readers disagree on them.
    pub fn seal(&self) -> Result<(String, [u8; 32])> {
        let value = serde_json::to_value(self).map_err(|error| Error::invalid("act", error.to_string()))?;
        check_value(&value, 0)?;
        let text = canonical_value("act", &value)?;
        let digest = Sha256::digest(text.as_bytes()).into();
        Ok((text, digest))
    }

    /// What a request is bound to.
    pub fn read(request: &Request) -> Result<Self> {
        let text = request.bound.as_deref().ok_or_else(|| unknown(request))?;
        serde_json::from_str(text).map_err(|_| unreadable("act", &request.id))
    }

    /// The nonce of a stored text alone.
    pub(super) fn read_nonce(id: &str, text: &str) -> Result<String> {
        #[derive(Deserialize)]
        struct Nonce {
            nonce: String,
        }
        serde_json::from_str(text).map(|Nonce { nonce }| nonce).map_err(|_| unreadable("act", id))
    }
}

/// Why the act of a request cannot be known.
pub(super) fn unknown(request: &Request) -> Error {
    if request.is_closed() {
        return Error::new(
            Code::Unavailable,
            "what this request would do is encrypted, and this server cannot read it: its secret.key is missing or another one",
        )
        .hint("put the secret.key of this desk back and start the server again (docs/secrets.md); rejecting it works without");
    }
    Error::conflict("what this request would do was erased").hint("reject it, or let it expire")
}

/// Whether a request's digest is still the one of its text, as far as that can be read and nothing was taken out of it.
pub(super) fn fits(request: &Request) -> bool {
    request.is_redacted() || request.bound.as_ref().is_none_or(|text| Sha256::digest(text.as_bytes()).as_slice() == request.digest.as_slice())
}
