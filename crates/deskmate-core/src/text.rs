//! Texts as they cross the desk's border: checked on the way in, one spelling on the way out.

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// Refuses what no text field may hold: NUL, and more than its bound.
pub fn check_text(field: &str, text: &str, bytes_max: usize) -> Result<()> {
    if text.contains('\0') {
        return Err(Error::invalid(field, "must not contain the NUL character"));
    }
    if text.len() > bytes_max {
        return Err(Error::invalid(field, format!("is {} bytes long; at most {bytes_max} are allowed", text.len())));
    }
    Ok(())
}

/// Microseconds since 1970 as RFC 3339 in UTC.
pub fn format_time(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |time| format!("{time:.6}"))
}

/// RFC 3339 as microseconds since 1970.
pub fn parse_time(field: &str, text: &str) -> Result<i64> {
    text.parse::<Timestamp>().map(Timestamp::as_microsecond).map_err(|_| Error::invalid(field, "must be a time such as 2026-11-15T09:30:00Z"))
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// SHA-256 over the canonical JSON (RFC 8785) of a value.
pub fn digest<T: Serialize>(value: &T) -> Result<[u8; 32]> {
    let canonical = serde_json_canonicalizer::to_vec(value).map_err(|error| Error::invalid("", format!("has no canonical form: {error}")))?;
    Ok(Sha256::digest(canonical).into())
}
