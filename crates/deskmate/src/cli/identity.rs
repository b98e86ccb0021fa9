//! Agents, people and personal tokens.

use clap::{Subcommand, ValueEnum};
use serde_json::json;

use super::client::Client;
use super::output::print;
use super::{Failure, Global};

#[derive(Subcommand)]
pub(super) enum AgentCommand {
    /// Register an agent and print its token, once
    Add {
        /// The agent's name, for example: code
        name: String,
        /// What it is for
        #[arg(long, default_value = "")]
        note: String,
        /// For how many days the token is good
        #[arg(long, value_name = "DAYS")]
        expires_in_days: Option<u32>,
    },
    /// List the registered agents
    List,
    /// Give an agent a new token; the old ones stop working
    Rotate {
        /// The agent's name
        name: String,
        /// For how many days the token is good
        #[arg(long, value_name = "DAYS")]
        expires_in_days: Option<u32>,
        /// How long the old tokens still work
        #[arg(long, value_name = "MINUTES")]
        grace_minutes: Option<u32>,
    },
    /// Revoke an agent: its tokens stop working at once
    Revoke {
        /// The agent's name
        name: String,
        /// Why, for the record
        #[arg(long, default_value = "")]
        reason: String,
    },
}

pub(super) fn agent(global: &Global, command: AgentCommand) -> Result<(), Failure> {
    let (operation, input) = match command {
        AgentCommand::Add { name, note, expires_in_days } => ("desk_agent_add", json!({ "agent": name, "note": note, "expires_in_days": expires_in_days })),
        AgentCommand::List => ("desk_agent_list", json!({})),
        AgentCommand::Rotate { name, expires_in_days, grace_minutes } => {
            ("desk_agent_rotate", json!({ "agent": name, "expires_in_days": expires_in_days, "grace_minutes": grace_minutes }))
        }
        AgentCommand::Revoke { name, reason } => ("desk_agent_revoke", json!({ "agent": name, "reason": reason })),
    };
    as_person(global, operation, input)
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum RoleArg {
    Viewer,
    Member,
    Approver,
    Owner,
}

#[derive(Subcommand)]
pub(super) enum PersonCommand {
    /// Invite a person and print the link for them, once
    Invite {
        /// How the person is called here
        name: String,
        /// What they may do
        #[arg(long, value_enum, default_value = "member")]
        role: RoleArg,
        /// For approvers: a domain they decide; may be repeated
        #[arg(long, value_name = "DOMAIN")]
        domain: Vec<String>,
    },
    /// List the people of this desk
    List,
}

pub(super) fn person(global: &Global, command: PersonCommand) -> Result<(), Failure> {
    match command {
        PersonCommand::List => as_person(global, "desk_person_list", json!({})),
        PersonCommand::Invite { name, role, domain } => {
            let role = role.to_possible_value().map(|value| value.get_name().to_owned());
            let client = Client::present(global)?;
            let mut answer = client.call("desk_person_invite", &json!({ "name": name, "role": role, "domains": domain }))?;
            let base = client.home().running().and_then(|holder| holder.url).unwrap_or_default();
            let code = answer.get("code").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
            if let Some(fields) = answer.as_object_mut() {
                fields.insert("link".to_owned(), json!(format!("{base}/join?code={code}")));
            }
            print(&answer, global.json)
        }
    }
}

#[derive(Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token for your own scripts and print it, once
    Create {
        /// What it is for
        note: String,
        /// What it may call, for example bridge, bridge:read or '*:read'; may be repeated
        #[arg(long = "scope", required = true, value_name = "SCOPE")]
        scopes: Vec<String>,
        /// For how many days it is good
        #[arg(long, value_name = "DAYS")]
        expires_in_days: Option<u32>,
    },
    /// List your tokens
    List,
    /// Revoke a token
    Revoke {
        /// Its id, as `token list` shows it
        credential: String,
    },
}

pub(super) fn token(global: &Global, command: TokenCommand) -> Result<(), Failure> {
    let (operation, input) = match command {
        TokenCommand::Create { note, scopes, expires_in_days } => {
            ("desk_token_create", json!({ "note": note, "scopes": scopes, "expires_in_days": expires_in_days }))
        }
        TokenCommand::List => ("desk_token_list", json!({})),
        TokenCommand::Revoke { credential } => ("desk_token_revoke", json!({ "credential": credential })),
    };
    as_person(global, operation, input)
}

/// Calls as the person at the terminal; a personal token is enough for what only looks.
fn as_person(global: &Global, operation: &str, input: serde_json::Value) -> Result<(), Failure> {
    let client = Client::new(global)?;
    let client = if client.has_token() && operation.ends_with("_list") { client } else { Client::present(global)? };
    let mut answer = client.call(operation, &input)?;
    // Lists come in pages; a terminal shows them whole.
    while let Some(cursor) = answer.as_object_mut().and_then(|fields| fields.remove("next_cursor")) {
        let next = client.call(operation, &json!({ "cursor": cursor }))?;
        for (name, value) in next.as_object().into_iter().flatten() {
            match (answer.get_mut(name), value) {
                (Some(serde_json::Value::Array(all)), serde_json::Value::Array(more)) if matches!(name.as_str(), "agents" | "people") => {
                    all.extend(more.iter().cloned());
                }
                (None, cursor) if name == "next_cursor" => {
                    answer.as_object_mut().map(|fields| fields.insert(name.clone(), cursor.clone()));
                }
                _ => {}
            }
        }
    }
    print(&answer, global.json)
}
