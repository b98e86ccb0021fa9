//! Agents that people describe: what they are for, when they run, and what holds them.
//!
//! - [`schedule`]: cron in a time zone.
//! - [`template`]: what agents and policies are often made of.

pub mod schedule;
pub mod template;
