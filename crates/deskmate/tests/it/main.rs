//! Black-box tests of the built binary.

#![expect(clippy::disallowed_methods, reason = "tests read their environment")]

mod keep;
mod running;
mod service;
