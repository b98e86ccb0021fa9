//! The key that encrypts secrets, and the keys that are made from it, one for each use.

use data_encoding::BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::{Code, Error, Result, hex};

/// How the text of a key begins, so that a file with anything else in it is recognised.
const PREFIX: &str = "DESKMATE-SECRET-KEY-1-";

/// A key. It has no `Debug`, so that it cannot reach a log by accident, and its memory is wiped at its end.
#[derive(Clone)]
pub struct Key {
    bytes: Zeroizing<[u8; 32]>,
    /// What every request is encrypted with, and what is compared then; worked out once.
    wrapping: Zeroizing<[u8; 32]>,
    check: String,
}

impl Key {
    /// Makes the text of a new key from 32 unguessable bytes.
    pub fn generate(seed: &[u8; 32]) -> Zeroizing<String> {
        let sum = hex(&*derived(seed, "checksum"));
        Zeroizing::new(format!("{PREFIX}{}-{}", BASE64.encode(seed), sum.get(..8).unwrap_or_default()))
    }

    /// Reads a key from its text.
    pub fn parse(text: &str) -> Result<Self> {
        let malformed = || Error::new(Code::Unavailable, "the key of the secrets is malformed").hint("restore secret.key from a copy");
        let text = text.trim();
        let encoded = text.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('-')).ok_or_else(malformed)?.0;
        let bytes = Zeroizing::new(BASE64.decode(encoded.as_bytes()).map_err(|_| malformed())?);
        let bytes: [u8; 32] = bytes.as_slice().try_into().map_err(|_| malformed())?;
        if *Self::generate(&bytes) != text {
            return Err(malformed());
        }
        Ok(Self::of(&bytes))
    }

    fn of(bytes: &[u8; 32]) -> Self {
        let bytes = Zeroizing::new(*bytes);
        let (wrapping, check) = (derived(&bytes, "wrapping"), hex(&*derived(&bytes, "check")));
        Self { bytes, wrapping, check }
    }

    /// What the store keeps to know this key again. It tells nothing of the key.
    pub(super) fn check(&self) -> &str {
        &self.check
    }

    /// The key with which keys of single texts are encrypted.
    pub(super) fn wrapping(&self) -> &[u8; 32] {
        &self.wrapping
    }

    /// Whether the store's secrets were encrypted with this key.
    pub(super) fn fits(&self, check: &str) -> bool {
        self.check().as_bytes().ct_eq(check.as_bytes()).into()
    }

    /// The key for one use.
    pub(super) fn derived(&self, purpose: &str) -> Zeroizing<[u8; 32]> {
        derived(&self.bytes, purpose)
    }
}

fn derived(bytes: &[u8; 32], purpose: &str) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(mac(bytes, &[b"deskmate secrets 1: ", purpose.as_bytes()]))
}

/// HMAC-SHA256 over some parts. The key is padded to a whole block here, as the algorithm does it, because a block's key cannot
/// be of a wrong length.
pub(super) fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut block = Zeroizing::new([0_u8; 64]);
    for (padded, byte) in block.iter_mut().zip(key) {
        *padded = *byte;
    }
    let mut mac = Hmac::<Sha256>::new(&(*block).into());
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_text_and_a_damaged_one_does_not() {
        let text = Key::generate(&[7; 32]);
        assert_eq!(*Key::parse(&format!("{}\n", *text)).unwrap().bytes, [7; 32]);
        for at in 0..text.len() {
            let mut damaged = text.as_bytes().to_vec();
            damaged[at] = if damaged[at] == b'B' { b'C' } else { b'B' };
            assert!(Key::parse(&String::from_utf8(damaged).unwrap()).is_err(), "{at}");
        }
        assert!(Key::parse("").is_err() && Key::parse(text.get(..20).unwrap()).is_err());
    }

    #[test]
    fn a_key_knows_its_own_check_only() {
        let (one, other) = (Key::of(&[1; 32]), Key::of(&[2; 32]));
        assert!(one.fits(one.check()) && !one.fits(other.check()) && !one.fits(""));
    }

    #[test]
    fn the_mac_is_the_one_of_the_standard() {
        // The second case of RFC 4231 has a short key, which is padded with zeros as ours is.
        let mut key = [0_u8; 32];
        key[..4].copy_from_slice(b"Jefe");
        let told = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&mac(&key, &[b"what do ya want ", b"for nothing?"])), told);
    }
}
