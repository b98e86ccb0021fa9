//! What is done on the machine for agents. This crate knows nothing of the desk: no rows, no policy, no actors. It does
//! what it is told within the bounds it is given, and those bounds are kept by the operating system, not by looking at
//! names.

pub mod documents;
pub mod files;
pub mod keeper;
pub mod sandbox;
pub mod web;
