//! One desk for people and their AI agents: the binary. Surfaces and effects live here; every rule is in the core.

mod activity;
mod app;
mod background;
mod cli;
mod config;
mod effects;
mod hands;
mod home;
mod hook;
mod http;
mod import;
mod keep;
mod live;
mod mcp;
mod reference;
mod refusals;
mod service;
mod shim;
#[cfg(test)]
mod snapshot;
mod socket;
mod streams;
mod telemetry;
mod until_sent;
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
    // Whatever a desk writes is its owner's alone, in whatever directory it lies.
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o077));
    cli::run()
}
