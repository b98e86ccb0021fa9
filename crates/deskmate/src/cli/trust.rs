//! How much agents are trusted, and the kill switch.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::output::print;
use super::{Failure, Global};

#[derive(Subcommand)]
pub(super) enum TrustCommand {
    /// List how much agents are trusted, by agent and domain
    List {
        /// Only this agent
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
        /// How many rows
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Where the previous page ended
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
    },
    /// Show how much an agent is trusted in a domain, and how that came about
    Show {
        /// The agent's name
        agent: String,
        /// The domain, for example: crm.deals
        domain: String,
        /// How many changes
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Where the previous page of changes ended
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
    },
    /// Recompute every score from the record and compare; ends with 7 if any differs
    Replay {
        /// Only this agent
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
        /// Only this domain
        #[arg(long, value_name = "DOMAIN")]
        domain: Option<String>,
    },
}

pub(super) fn trust(global: &Global, command: TrustCommand) -> Result<(), Failure> {
    let (operation, input) = match command {
        TrustCommand::List { agent, limit, cursor } => ("desk_trust_list", json!({ "agent": agent, "limit": limit, "cursor": cursor })),
        TrustCommand::Show { agent, domain, limit, cursor } => {
            ("desk_trust_get", json!({ "agent": agent, "domain": domain, "limit": limit, "cursor": cursor }))
        }
        TrustCommand::Replay { agent, domain } => ("desk_trust_replay", json!({ "agent": agent, "domain": domain })),
    };
    let answer = looking(global)?.call(operation, &given(input))?;
    print(&answer, global.json)?;
    if answer.get("agrees") == Some(&Value::Bool(false)) { Err(Failure::NotSound) } else { Ok(()) }
}

#[derive(Args)]
pub(super) struct PauseArgs {
    /// The agent's name
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    agent: Option<String>,
    /// All agents
    #[arg(long)]
    all: bool,
    /// Why, for the record
    #[arg(long, default_value = "")]
    reason: String,
}

/// Pausing only tightens, so a personal token is enough for it.
pub(super) fn pause(global: &Global, args: PauseArgs) -> Result<(), Failure> {
    print(&looking(global)?.call("desk_pause", &input(args))?, global.json)
}

/// Lifting a pause needs the person.
pub(super) fn resume(global: &Global, args: PauseArgs) -> Result<(), Failure> {
    print(&Client::present(global)?.call("desk_resume", &input(args))?, global.json)
}

fn input(args: PauseArgs) -> Value {
    given(json!({ "agent": args.agent, "all": args.all, "reason": args.reason }))
}

/// Without what was not given.
fn given(mut input: Value) -> Value {
    if let Some(fields) = input.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    input
}

/// Whoever the token belongs to, or the person at the terminal.
fn looking(global: &Global) -> Result<Client, Failure> {
    let client = Client::new(global)?;
    if client.has_token() { Ok(client) } else { Client::present(global) }
}
