//! Proofs that somebody else can check: that an event is in the record, and that the record only grew.

use data_encoding::BASE64;
use deskmate_db::{Tx, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tlog_tiles::{Hash, check_record, check_tree, prove_record, prove_tree, record_hash};

use super::key::Keyring;
use super::tree::{StoredHashes, signed};
use crate::{Code, Error, Result};

/// That an event is in the tree which a signed checkpoint vouches for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The event's place.
    pub seq: u64,
    /// The exact bytes that were sealed.
    pub body: String,
    /// The hashes from the leaf to the root, base64.
    pub hashes: Vec<String>,
    /// The signed checkpoint.
    pub checkpoint: String,
    /// The public key that signed it.
    pub key: String,
}

/// Proves that an event is in the record as of the newest checkpoint.
pub fn prove(tx: &mut Tx<'_>, seq: u64, keys: &Keyring) -> Result<Proof> {
    let absent = || Error::not_found(format!("the record has no event {seq}"));
    let row = tx.optional("select body from event where seq = $1", args![signed(seq)])?.ok_or_else(absent)?;
    let note = super::newest_checkpoint(tx)?.ok_or_else(absent)?;
    let checkpoint = keys.open(&note)?;
    let hashes = prove_record(checkpoint.size(), seq, &StoredHashes::new(tx)).map_err(unprovable)?;
    Ok(Proof {
        seq,
        body: row.get(0)?,
        hashes: hashes.iter().map(|hash| BASE64.encode(&hash.0)).collect(),
        checkpoint: note,
        key: keys.keys().first().cloned().unwrap_or_default(),
    })
}

/// Checks a proof against the keys that the reader believes.
pub fn check_proof(proof: &Proof, keys: &Keyring) -> Result<()> {
    let checkpoint = keys.open(&proof.checkpoint)?;
    let hashes = proof.hashes.iter().map(|text| decode(text)).collect::<Result<Vec<_>>>()?;
    check_record(&hashes, checkpoint.size(), *checkpoint.hash(), proof.seq, record_hash(proof.body.as_bytes()))
        .map_err(|_| Error::invalid("hashes", "the proof does not lead to the checkpoint's root"))
}

/// Checks that the record which one checkpoint vouches for is the beginning of that of a newer one.
pub fn check_consistency(hashes: &[String], older: &str, newer: &str, keys: &Keyring) -> Result<()> {
    let (older, newer) = (keys.open(older)?, keys.open(newer)?);
    let hashes = hashes.iter().map(|text| decode(text)).collect::<Result<Vec<_>>>()?;
    check_tree(&hashes, newer.size(), *newer.hash(), older.size(), *older.hash())
        .map_err(|_| Error::invalid("hashes", "the proof does not show that the older record is the beginning of the newer one"))
}

/// The hashes which show that the tree of the older size is the beginning of the newer one, base64.
pub fn consistency(tx: &mut Tx<'_>, older: u64, newer: u64) -> Result<Vec<String>> {
    let size = super::size(tx)?;
    if older == 0 || older > newer || newer > size {
        return Err(Error::invalid("older", format!("needs 1 ≤ older ≤ newer ≤ {size}")));
    }
    let hashes = prove_tree(newer, older, &StoredHashes::new(tx)).map_err(unprovable)?;
    Ok(hashes.iter().map(|hash| BASE64.encode(&hash.0)).collect())
}

fn decode(text: &str) -> Result<Hash> {
    let bytes = BASE64.decode(text.as_bytes()).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    bytes.map(Hash).ok_or_else(|| Error::invalid("hashes", "each must be 32 bytes in base64"))
}

fn unprovable(error: tlog_tiles::Error) -> Error {
    Error::new(Code::Internal, format!("the record's tree cannot be proved: {error}")).hint("run `deskmate audit verify`")
}
