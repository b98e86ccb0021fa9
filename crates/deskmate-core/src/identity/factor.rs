//! The presence factor: a passphrase or PIN that only its person knows, kept as an argon2id hash.

use argon2::password_hash::phc::{PasswordHash, Salt};
use argon2::{Argon2, PasswordHasher, PasswordVerifier};

use crate::{Code, Error, Result};

/// The shortest passphrase or PIN; the lock-out makes even a short one hard to guess.
const CHARS_MIN: usize = 6;
const BYTES_MAX: usize = 1024;

/// Hashes a new factor. Slow on purpose.
pub(crate) fn hash(factor: &str, salt: &[u8; 32]) -> Result<String> {
    if factor.chars().count() < CHARS_MIN || factor.len() > BYTES_MAX {
        return Err(Error::invalid("passphrase", format!("must have at least {CHARS_MIN} characters and at most {BYTES_MAX} bytes")));
    }
    let failed = |error: &dyn std::fmt::Display| Error::new(Code::Internal, format!("hashing the passphrase failed: {error}"));
    let salt = Salt::new(salt.get(..16).unwrap_or_default()).map_err(|error| failed(&error))?;
    let hash = Argon2::default().hash_password_with_salt(factor.as_bytes(), salt.as_ref()).map_err(|error| failed(&error))?;
    Ok(hash.to_string())
}

/// Whether this is the factor. Slow on purpose.
pub(crate) fn verify(factor: &str, hash: &str) -> bool {
    PasswordHash::new(hash).is_ok_and(|hash| Argon2::default().verify_password(factor.as_bytes(), &hash).is_ok())
}
