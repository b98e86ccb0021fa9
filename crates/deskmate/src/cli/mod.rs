//! The command line. Commands translate: they read arguments, call the server or open the store, and print.

mod audit;
mod busy;
mod call;
mod client;
mod compliance;
#[cfg(feature = "conformance")]
mod conformance;
mod connect;
mod connector;
mod doctor;
mod front;
mod gateway;
mod hook;
mod identity;
mod import;
mod inbox;
mod keep;
mod mcp;
mod notify;
mod output;
mod policy;
mod secret;
mod server;
mod service;
mod short;
mod trust;
mod up;
mod wait;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::config::{self, Given};

pub(crate) use output::Failure;

/// One desk for people and their AI agents.
///
/// Agents propose, message, plan and work; people decide in one inbox; everything that happened can be proved.
/// Start with `deskmate up`, then follow what it prints.
#[derive(Parser)]
#[command(name = "deskmate", version, max_term_width = 100, propagate_version = false)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct Global {
    /// The data directory; ~/.deskmate if not given
    #[arg(long, global = true, env = "DESKMATE_HOME", value_name = "DIR")]
    home: Option<PathBuf>,
    /// Print JSON for programs instead of text for people
    #[arg(long, global = true)]
    json: bool,
    /// The file that holds the token to use; DESKMATE_TOKEN works too
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Read the passphrase from standard input instead of asking on the terminal
    #[arg(long, global = true)]
    passphrase_stdin: bool,
}

impl Global {
    fn given(&self) -> Given {
        Given { home: self.home.clone(), ..Given::default() }
    }
}

#[derive(Subcommand)]
enum Command {
    /// Start the desk in the foreground
    Up(up::UpArgs),
    /// Speak MCP on standard input and output: what an MCP client starts
    Mcp(mcp::McpArgs),
    /// Serve one MCP server that speaks over standard streams to many clients over HTTP, without a desk
    Front(front::Front),
    /// Show whether the desk runs, in which mode, and how large its record is
    Status,
    /// Connect a client to this desk: write its entry into the file that the client reads
    Connect(connect::ConnectArgs),
    /// Take this desk's entry out of a client's file
    Disconnect(connect::DisconnectArgs),
    /// Check the desk, try every connection that clients have to it, and say what is wrong and what to do
    Doctor(doctor::DoctorArgs),
    /// Stop the running desk
    Stop,
    /// Print a new link for the first owner, while the desk has none
    Claim,
    /// Call any operation by its name
    Call(call::CallArgs),
    /// Wait until a message or a task waits for an agent: one line for hooks and scripts
    Wait(wait::WaitArgs),
    /// Answer a client's hook: reads what it says on standard input, and fails closed
    Hook(hook::HookArgs),
    /// Decide what waits for people: full screen on a terminal, or one command at a time
    Inbox(inbox::InboxArgs),
    /// Register agents and manage their tokens
    #[command(subcommand)]
    Agent(identity::AgentCommand),
    /// Invite and list people
    #[command(subcommand)]
    Person(identity::PersonCommand),
    /// Make tokens for your own scripts
    #[command(subcommand)]
    Token(identity::TokenCommand),
    /// Put other MCP servers behind the desk
    #[command(subcommand)]
    Gateway(gateway::GatewayCommand),
    /// Serve one of the desk's own connectors on standard input and output: what a mount starts
    #[command(subcommand)]
    Connector(connector::ConnectorCommand),
    /// Keep the passwords and keys that this desk needs to reach other programs
    #[command(subcommand)]
    Secret(secret::SecretCommand),
    /// Say how you are told that something waits, and look at what did not arrive
    #[command(subcommand)]
    Notify(notify::NotifyCommand),
    /// Show how much agents are trusted, and recompute it from the record
    #[command(subcommand)]
    Trust(trust::TrustCommand),
    /// Pause an agent, or all of them: from now on every act of theirs is denied
    Pause(trust::PauseArgs),
    /// Let an agent, or all of them, go on
    Resume(trust::PauseArgs),
    /// Check, apply and explain policies
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Bring in what another server left
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Show what the record and the settings show about an agent, control by control
    #[command(subcommand)]
    Compliance(compliance::ComplianceCommand),
    /// Verify, prove and export the record
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Write everything that this desk needs into one file
    Backup(keep::BackupArgs),
    /// Bring a backup back into a data directory that has no desk
    Restore(keep::RestoreArgs),
    /// Copy this desk's store to another engine or place
    Move(keep::MoveArgs),
    /// Run this desk under the system's service manager
    #[command(subcommand)]
    Service(service::ServiceCommand),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print a schema or a catalogue: config, openapi, events or operations
    Schema {
        /// Which one
        #[arg(value_parser = ["config", "openapi", "events", "operations"])]
        which: String,
    },
}

/// Runs the command line and answers the exit code.
pub(crate) fn run() -> ExitCode {
    #[cfg(feature = "conformance")]
    if let Some(ended) = conformance::alone(std::env::args_os().skip(1)) {
        return ended;
    }
    let cli = short::read(std::env::args_os().skip(1), config::env_os("DESKMATE_HOME")).unwrap_or_else(Cli::parse);
    let global = cli.global;
    if let Command::Hook(args) = &cli.command {
        return hook::run(&global, args);
    }
    let done = match cli.command {
        Command::Up(args) => up::run(&global, &args),
        Command::Mcp(args) => mcp::run(&global, args),
        Command::Front(args) => front::run(&global, &args),
        Command::Status => server::status(&global),
        Command::Connect(args) => connect::connect(&global, &args),
        Command::Disconnect(args) => connect::disconnect(&global, &args),
        Command::Doctor(args) => doctor::run(&global, &args),
        Command::Stop => server::stop(&global),
        Command::Claim => server::claim(&global),
        Command::Call(args) => call::run(&global, args),
        Command::Wait(args) => wait::run(&global, &args),
        Command::Hook(_) => Ok(()),
        Command::Inbox(args) => inbox::run(&global, args),
        Command::Agent(command) => identity::agent(&global, command),
        Command::Person(command) => identity::person(&global, command),
        Command::Token(command) => identity::token(&global, command),
        Command::Gateway(command) => gateway::run(&global, command),
        Command::Connector(command) => connector::run(&global, &command),
        Command::Secret(command) => secret::run(&global, command),
        Command::Notify(command) => notify::run(&global, command),
        Command::Trust(command) => trust::trust(&global, command),
        Command::Pause(args) => trust::pause(&global, args),
        Command::Resume(args) => trust::resume(&global, args),
        Command::Import(command) => import::run(&global, command),
        Command::Policy(command) => policy::run(&global, command),
        Command::Compliance(command) => compliance::run(&global, command),
        Command::Audit(command) => audit::run(&global, command),
        Command::Backup(args) => keep::backup(&global, args),
        Command::Restore(args) => keep::restore(&global, args),
        Command::Move(args) => keep::move_to(&global, &args),
        Command::Service(command) => service::run(&global, &command),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "deskmate", &mut std::io::stdout());
            Ok(())
        }
        Command::Schema { which } => output::print_schema(&which),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(global.json),
    }
}

/// The whole help text, for the snapshot of the command line.
#[cfg(test)]
fn help() -> String {
    fn add(command: &mut clap::Command, path: &str, text: &mut String) {
        let path = format!("{path} {}", command.get_name());
        text.push_str(&format!("==={path}\n{}\n", command.render_long_help()));
        for sub in command.get_subcommands_mut().filter(|sub| sub.get_name() != "help") {
            add(sub, &path, text);
        }
    }
    let mut command = Cli::command().term_width(100);
    command.build();
    let mut text = String::new();
    add(&mut command, "", &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_is_what_it_was() {
        crate::snapshot::check("cli-help.txt", &help());
    }
}
