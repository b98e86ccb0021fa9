//! One desk for people and their AI agents: the binary. Surfaces and effects live here; every rule is in the core.

mod activity;
mod app;
mod background;
mod cli;
mod config;
mod home;
mod http;
mod keep;
mod live;
mod reference;
mod refusals;
mod service;
#[cfg(test)]
mod snapshot;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
