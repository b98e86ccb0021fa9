//! Upstreams in the same process: a peer that speaks either era, and does what the name of the tool says.

mod calls;
mod life;
mod peer;
mod talks;
mod web;

pub(crate) use peer::Within;
