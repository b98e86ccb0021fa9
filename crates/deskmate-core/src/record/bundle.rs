//! An export that can be verified without the desk: one JSON line for the header, one for each event.

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};

use super::key::Keyring;
use super::verify::{Report, Verifier};
use crate::{Error, Result};

/// The format's name, first in every bundle.
const FORMAT: &str = "deskmate-record-1";

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleHeader {
    /// Always `deskmate-record-1`.
    pub format: String,
    /// How many events follow.
    pub size: u64,
    /// The public keys that the exporting desk believes. A reader who has them from elsewhere uses those.
    pub keys: Vec<String>,
    /// The signed checkpoint over exactly these events.
    pub checkpoint: String,
}

impl BundleHeader {
    /// The header for a record of a size.
    pub fn new(size: u64, keys: Vec<String>, checkpoint: String) -> Self {
        Self { format: FORMAT.to_owned(), size, keys, checkpoint }
    }
}

/// One event.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleLine {
    /// The sealed text.
    pub body: String,
    /// The salt of the payload's commitment, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salt: Option<String>,
    /// The payload's canonical text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

/// Verifies a bundle line by line. `keys` are the reader's own; without any, the bundle's are used, which shows only
/// that it is consistent with itself.
pub fn verify_bundle(lines: impl Iterator<Item = std::io::Result<String>>, keys: Option<Keyring>, kept: &[String]) -> Result<Report> {
    let unreadable = |what: &str| Error::invalid("bundle", what.to_owned());
    let mut lines = lines.map(|line| line.map_err(|error| Error::invalid("bundle", error.to_string())));
    let first = lines.next().ok_or_else(|| unreadable("is empty"))??;
    let header: BundleHeader = serde_json::from_str(&first).map_err(|error| Error::invalid("bundle", format!("line 1: {error}")))?;
    if header.format != FORMAT {
        return Err(unreadable("is of a format that this version does not know"));
    }
    let keys = keys.unwrap_or_else(|| Keyring::new(header.keys.clone()));
    let mut verifier = Verifier::new(header.size, &keys, kept, Vec::new());
    let mut seq = 0;
    for line in lines {
        let line = line?;
        let event: BundleLine = serde_json::from_str(&line).map_err(|error| Error::invalid("bundle", format!("line {}: {error}", seq + 2)))?;
        let salt = event.salt.map(|salt| BASE64.decode(salt.as_bytes())).transpose().map_err(|_| unreadable("holds a salt that is not base64"))?;
        verifier.leaf(seq, &event.body, salt.as_deref(), event.payload.as_deref(), None, &mut |_| Ok(true))?;
        seq += 1;
    }
    if seq != header.size {
        verifier.missing(seq, header.size);
    }
    verifier.close(&keys, Some(&header.checkpoint));
    Ok(verifier.report(Some(header.checkpoint)))
}
