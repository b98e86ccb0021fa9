//! MCP, in both protocol eras, over HTTP and over the local socket. Everything that a client can do here is an
//! operation of the registry, called with the client's own credential: this folder only translates.
//!
//! `rmcp` is known here and in `socket.rs`, and as a client in `upstream` and `front`, and nowhere else.

mod caller;
mod changes;
#[cfg(feature = "conformance")]
mod conformance;
mod following;
mod handler;
mod held;
mod http;
mod malformed;
mod mount;
mod passage;
mod prompts;
mod resources;
mod roots;
mod standin;
mod subscriptions;
mod suggest;
mod tasks;
mod tools;

pub(crate) use caller::{AGENT_HEADER, Caller, bearer};
pub(crate) use handler::Server;
pub(crate) use http::{Allowed, respond, router};
pub(crate) use mount::{Mount, Shelf};
