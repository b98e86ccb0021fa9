//! What an MCP client starts.

use std::time::Duration;

use clap::Args;

use super::{Failure, Global};
use crate::config;
use crate::shim::{self, ShimArgs};

#[derive(Args, Debug, Default)]
pub(super) struct McpArgs {
    /// The toolsets to mount, separated by commas; cowork,bridge if not given
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) toolset: Vec<String>,
    /// The name of the agent that calls
    #[arg(long, value_name = "NAME")]
    pub(super) agent: Option<String>,
    /// Leave out every tool that changes something
    #[arg(long)]
    pub(super) read_only: bool,
    /// Exit after this time without a request, for example 5m; stays for ever if not given
    #[arg(long, value_name = "TIME")]
    pub(super) idle_exit: Option<String>,
}

pub(super) fn run(global: &Global, args: McpArgs) -> Result<(), Failure> {
    let idle_exit = args.idle_exit.map(|text| {
        let micros = config::parse_duration(&text).and_then(|micros| u64::try_from(micros).ok());
        micros.map(Duration::from_micros).ok_or_else(|| Failure::Other(format!("--idle-exit: {text:?} is not a time: write for example 300ms or 5m")))
    });
    let served = shim::run(ShimArgs {
        home: config::home(global.home.clone())?,
        toolsets: args.toolset,
        agent: args.agent,
        read_only: args.read_only,
        idle_exit: idle_exit.transpose()?,
        token_file: global.token_file.clone(),
    });
    if served { Ok(()) } else { Err(Failure::Told) }
}
