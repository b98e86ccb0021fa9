//! One desk for people and their AI agents: the binary. Surfaces and effects live here; every rule is in the core.

mod activity;
mod app;
mod background;
mod clean_log;
mod cli;
mod config;
mod connect;
mod connector;
mod data_files;
mod effects;
mod frameworks;
mod front;
mod gateway;
mod hands;
mod home;
mod hook;
mod http;
mod import;
mod keep;
mod live;
mod mcp;
mod places;
mod reference;
mod refusals;
mod runs;
mod secrets;
mod service;
mod shim;
#[cfg(test)]
mod snapshot;
mod socket;
mod telemetry;
mod templates;
mod until_sent;
mod upstream;
mod visible;
mod worker;
mod world;

use std::process::ExitCode;

/// A call makes many small things and lets go of them on another thread, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The sandbox starts this binary again. It comes first, because its stages restrict themselves before anything else runs.
    if let Some(ended) = deskmate_hands::sandbox::enter(std::env::args_os()) {
        return ended;
    }
    // So does whoever keeps a program for the gateway: it must outlive the desk, and so be another process.
    if let Some(ended) = deskmate_hands::keeper::enter(std::env::args_os()) {
        return ended;
    }
    // Whatever a desk writes is its owner's alone, in whatever directory it lies.
    #[cfg(unix)]
    upstream::remember_umask(rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o077)).bits());
    cli::run()
}
