//! Agents that people describe: what they are for, when they run, and what holds them.
//!
//! - [`schedule`]: cron in a time zone.

pub mod schedule;
