//! What clients' hooks say and are answered, in the words of each client. Everything is decided by the operations of the
//! toolset `hook`; this folder only translates.

pub(crate) mod settings;
mod wire;

pub(crate) use wire::{Client, permission, question};
