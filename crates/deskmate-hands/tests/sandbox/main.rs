//! Hostile programs in the sandbox. Each does its worst there and, where that is harmless, outside of it too: what cannot
//! succeed outside proves nothing by failing inside.
//!
//! They run under an ordinary account. When the tests run as root, the account is `nobody`, to whom everything that must
//! stay out of reach belongs, so that nothing but the sandbox keeps it away.

#![cfg_attr(
    all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(clippy::unwrap_used, clippy::panic, reason = "tests stop where they stand")
)]
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod bench;
mod files;
mod life;
mod limits;
mod network;
mod others;
mod plain;
