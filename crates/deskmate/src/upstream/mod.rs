//! Other MCP servers, as their client: programs and HTTP servers of both protocol eras, kept connected, bounded, and told
//! apart from each other. Nothing here knows of policy: whoever calls has decided already.
//!
//! - [`Spec`]: what an upstream is. `child`, `lines` and `http` reach it; `link` is one connection.
//! - [`Pool`] and [`Upstream`]: connections are made when they are needed, made again with pauses when they fail, and ended
//!   when nobody needs them. `calls` is what can be asked; `rounds` asks the caller what an upstream wants to know.
//! - [`Talks`]: calls that wait while a caller of the newer era is asked for an upstream of the older one.
//! - [`Relay`] and [`CallContext`]: whom a call is made for, where questions and progress go.
//! - [`Error`]: what went wrong, and above all whether the call can have been carried out.

mod calls;
mod child;
mod error;
mod follow;
mod handler;
mod http;
mod lines;
mod link;
mod log;
mod pool;
mod relay;
mod rounds;
mod slot;
mod spec;
mod state;
mod talks;
#[cfg(test)]
mod tests;

pub(crate) use child::remember_umask;
pub(crate) use error::{Error, Result};
pub(crate) use handler::Change;
pub(crate) use pool::Pool;
pub(crate) use relay::{CallContext, Relay};
pub(crate) use slot::Upstream;
pub(crate) use spec::{Questions, Spec, Transport};
pub(crate) use state::State;
pub(crate) use talks::Talks;
