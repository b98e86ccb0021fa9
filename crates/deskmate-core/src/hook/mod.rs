//! Agents' own tools: what they would do, before they do it.

pub mod shell;
