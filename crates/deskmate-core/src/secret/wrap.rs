//! Encrypting a text under a key of its own, which the key of the secrets wraps: whoever throws the wrapped key away has
//! erased the text, wherever copies of it lie.

use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use zeroize::Zeroizing;

use super::key::Key;
use super::rows::key_for_new;
use super::safe::Safe;
use crate::call::Cx;
use crate::{Code, Error, Result};

/// How long a nonce is, which stands before what is encrypted with it.
const NONCE_BYTES: usize = 24;

/// A text and its key, both encrypted. It has no `Debug`: there is nothing in it to read.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Wrapped {
    /// The text, under its own key.
    pub(crate) text: Vec<u8>,
    /// Its key, under the key of the secrets.
    pub(crate) key: Vec<u8>,
}

impl std::fmt::Debug for Wrapped {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Wrapped")
    }
}

/// Encrypts a text. `of` says whose it is, such as `request:ID`: it opens as nobody else's.
pub(crate) fn wrap(cx: &mut Cx<'_, '_>, of: &str, text: &str) -> Result<Wrapped> {
    let outer = key_for_new(cx)?;
    let own = Zeroizing::new(cx.secret());
    let text = encrypt(&own, &bound_to("text", of), text.as_bytes(), cx.secret())?;
    let key = encrypt(outer.wrapping(), &bound_to("key", of), &*own, cx.secret())?;
    Ok(Wrapped { text, key })
}

/// Decrypts a text.
pub(crate) fn unwrap(safe: &Safe, of: &str, wrapped: &Wrapped) -> Result<Zeroizing<String>> {
    open(&safe.key()?, of, wrapped).ok_or_else(|| {
        Error::new(Code::Unavailable, "this server's secret.key does not open what was encrypted here, or somebody changed it in the store")
            .hint("give every server of this desk the same secret.key; `deskmate audit verify` tells whether it was changed")
    })
}

fn open(key: &Key, of: &str, wrapped: &Wrapped) -> Option<Zeroizing<String>> {
    let own = Zeroizing::new(decrypt(key.wrapping(), &bound_to("key", of), &wrapped.key)?);
    let own: Zeroizing<[u8; 32]> = Zeroizing::new(own.as_slice().try_into().ok()?);
    let text = decrypt(&own, &bound_to("text", of), &wrapped.text)?;
    String::from_utf8(text).ok().map(Zeroizing::new)
}

fn bound_to(what: &str, of: &str) -> String {
    format!("deskmate wrapped {what} 1\n{of}")
}

fn encrypt(key: &[u8; 32], bound: &str, text: &[u8], chance: [u8; 32]) -> Result<Vec<u8>> {
    let nonce: [u8; NONCE_BYTES] = chance.first_chunk().copied().unwrap_or_default();
    let sealed = XChaCha20Poly1305::new(key.into()).encrypt(&nonce.into(), Payload { msg: text, aad: bound.as_bytes() });
    let sealed = sealed.map_err(|_| Error::new(Code::Internal, "a text could not be encrypted"))?;
    Ok([nonce.as_slice(), &sealed].concat())
}

fn decrypt(key: &[u8; 32], bound: &str, sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, text) = sealed.split_first_chunk::<NONCE_BYTES>()?;
    XChaCha20Poly1305::new(key.into()).decrypt(&(*nonce).into(), Payload { msg: text, aad: bound.as_bytes() }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_opens_only_as_its_own_with_both_keys() {
        let (key, other) = (Key::parse(&Key::generate(&[1; 32])).unwrap(), Key::parse(&Key::generate(&[2; 32])).unwrap());
        let text = encrypt(&[7; 32], &bound_to("text", "request:a"), b"{}", [3; 32]).unwrap();
        let own = encrypt(key.wrapping(), &bound_to("key", "request:a"), &[7; 32], [4; 32]).unwrap();
        let wrapped = Wrapped { text, key: own };
        assert_eq!(open(&key, "request:a", &wrapped).unwrap().as_str(), "{}");
        assert!(open(&key, "request:b", &wrapped).is_none() && open(&other, "request:a", &wrapped).is_none());
        assert!(open(&key, "request:a", &Wrapped { key: Vec::new(), ..wrapped.clone() }).is_none(), "without its key nothing is left");
        for at in 0..wrapped.text.len() {
            let mut changed = wrapped.clone();
            changed.text[at] ^= 1;
            assert!(open(&key, "request:a", &changed).is_none());
        }
    }
}
