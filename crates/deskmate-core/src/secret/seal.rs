//! Encrypting a value. Its name and version are bound to it, so that no row can take another's place or come back older.

use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::key::{Key, mac};
use crate::{Code, Error, Result, hex};

/// How many hexadecimal digits of a fingerprint are shown: enough to tell two values apart, and no more.
const FINGERPRINT_DIGITS: usize = 8;

/// An encrypted value.
pub(super) struct Sealed {
    pub(super) nonce: [u8; 24],
    pub(super) text: Vec<u8>,
}

fn bound_to(name: &str, version: i64) -> String {
    format!("deskmate secret 1\n{name}\n{version}")
}

/// Encrypts a value with 24 unguessable bytes that are used for nothing else.
pub(super) fn seal(key: &Key, name: &str, version: i64, value: &str, nonce: [u8; 24]) -> Result<Sealed> {
    let cipher = XChaCha20Poly1305::new((&*key.derived("encryption")).into());
    let bound = bound_to(name, version);
    let text = cipher.encrypt(&nonce.into(), Payload { msg: value.as_bytes(), aad: bound.as_bytes() });
    let text = text.map_err(|_| Error::new(Code::Internal, "a secret could not be encrypted"))?;
    Ok(Sealed { nonce, text })
}

/// Decrypts a value.
pub(super) fn open(key: &Key, name: &str, version: i64, nonce: &[u8], text: &[u8]) -> Result<Zeroizing<String>> {
    let altered = || {
        Error::new(Code::Unavailable, format!("the secret {name} was changed in the store by something else than the desk"))
            .hint("`deskmate audit verify` tells more; set the value again with `deskmate secret rotate`")
    };
    let cipher = XChaCha20Poly1305::new((&*key.derived("encryption")).into());
    let nonce: [u8; 24] = nonce.try_into().map_err(|_| altered())?;
    let bound = bound_to(name, version);
    let value = cipher.decrypt(&nonce.into(), Payload { msg: text, aad: bound.as_bytes() }).map_err(|_| altered())?;
    String::from_utf8(value).map(Zeroizing::new).map_err(|_| altered())
}

/// A short mark by which its owner knows a value again. Without the key it tells nothing, not even whether two secrets
/// have the same value.
pub(super) fn fingerprint(key: &Key, name: &str, value: &str) -> String {
    let digest = hex(&mac(&key.derived("fingerprint"), &[name.as_bytes(), b"\n", value.as_bytes()]));
    digest.get(..FINGERPRINT_DIGITS).unwrap_or_default().to_owned()
}

/// The digest of an encrypted value, which the record keeps: a row that was put back shows.
pub(super) fn digest(nonce: &[u8], text: &[u8]) -> String {
    hex(&Sha256::new().chain_update(nonce).chain_update(text).finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_opens_only_under_its_name_version_and_key() {
        let key = Key::parse(&Key::generate(&[1; 32])).unwrap();
        let other = Key::parse(&Key::generate(&[2; 32])).unwrap();
        let sealed = seal(&key, "mail", 3, "p\u{e4}ss", [9; 24]).unwrap();
        assert_eq!(*open(&key, "mail", 3, &sealed.nonce, &sealed.text).unwrap(), "p\u{e4}ss");
        assert!(open(&key, "mail2", 3, &sealed.nonce, &sealed.text).is_err());
        assert!(open(&key, "mail", 2, &sealed.nonce, &sealed.text).is_err());
        assert!(open(&other, "mail", 3, &sealed.nonce, &sealed.text).is_err());
        assert!(open(&key, "mail", 3, &[9; 12], &sealed.text).is_err());
        for at in 0..sealed.text.len() {
            let mut changed = sealed.text.clone();
            changed[at] ^= 1;
            assert!(open(&key, "mail", 3, &sealed.nonce, &changed).is_err());
        }
    }

    #[test]
    fn a_fingerprint_is_of_the_value_the_name_and_the_key() {
        let (key, other) = (Key::parse(&Key::generate(&[1; 32])).unwrap(), Key::parse(&Key::generate(&[2; 32])).unwrap());
        let marks = [fingerprint(&key, "a", "x"), fingerprint(&key, "b", "x"), fingerprint(&key, "a", "y"), fingerprint(&other, "a", "x")];
        assert!(marks.iter().enumerate().all(|(at, mark)| mark.len() == 8 && !marks[..at].contains(mark)), "{marks:?}");
        assert_eq!(fingerprint(&key, "a", "x"), marks[0]);
    }
}
