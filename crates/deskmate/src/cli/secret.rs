//! Secrets from the command line. A value is typed without being shown or comes on standard input; it is never an argument,
//! because arguments are seen by every program of the machine.

use std::io::{IsTerminal, Read};

use clap::Subcommand;
use deskmate_core::Error;
use deskmate_core::limits::SECRET_BYTES_MAX;
use deskmate_core::secret::check_name;
use serde_json::{Value, json};

use super::client::Client;
use super::output::print;
use super::{Failure, Global};

#[derive(Subcommand)]
pub(super) enum SecretCommand {
    /// Put a secret into the store; its value is asked for, or read from standard input
    Set {
        /// Its name; settings name it as secret:NAME
        name: String,
    },
    /// List the secrets, without their values
    List,
    /// Give a secret another value; nothing that names it has to change
    Rotate {
        /// Its name
        name: String,
    },
    /// Remove a secret; whatever still names it fails and says so
    Remove {
        /// Its name
        name: String,
    },
}

pub(super) fn run(global: &Global, command: SecretCommand) -> Result<(), Failure> {
    match command {
        SecretCommand::List => list(global),
        SecretCommand::Set { name } => put(global, "desk_secret_set", &name),
        SecretCommand::Rotate { name } => put(global, "desk_secret_rotate", &name),
        SecretCommand::Remove { name } => print(&Client::present(global)?.call("desk_secret_remove", &json!({ "name": name }))?, global.json),
    }
}

fn put(global: &Global, operation: &str, name: &str) -> Result<(), Failure> {
    // What is wrong is told before anybody types a passphrase and a value.
    check_name("name", name)?;
    let client = Client::present(global)?;
    let value = value(global)?;
    print(&client.call(operation, &json!({ "name": name, "value": value }))?, global.json)
}

/// The value: typed twice on a terminal, or the whole standard input without the newline at its end. With
/// `--passphrase-stdin` the first line there was the passphrase.
fn value(global: &Global) -> Result<String, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() || global.passphrase_stdin {
        let mut bytes = Vec::new();
        stdin.lock().take(SECRET_BYTES_MAX as u64 + 2).read_to_end(&mut bytes)?;
        let text = String::from_utf8(bytes).map_err(|_| Error::invalid("value", "must be text in UTF-8"))?;
        let value = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
        return Ok(value.to_owned());
    }
    let first = rpassword::prompt_password("Value: ")?;
    if rpassword::prompt_password("Once more: ")? != first {
        return Err(Error::invalid("value", "was not the same both times").into());
    }
    Ok(first)
}

/// Lists come in pages; a terminal shows them whole.
fn list(global: &Global) -> Result<(), Failure> {
    let client = Client::new(global)?;
    let client = if client.has_token() { client } else { Client::present(global)? };
    let mut answer = client.call("desk_secret_list", &json!({}))?;
    while let Some(cursor) = answer.as_object_mut().and_then(|fields| fields.remove("next_cursor")) {
        let mut next = client.call("desk_secret_list", &json!({ "cursor": cursor }))?;
        let more = next.get_mut("secrets").map(Value::take);
        if let (Some(Value::Array(all)), Some(Value::Array(more))) = (answer.get_mut("secrets"), more) {
            all.extend(more);
        }
        if let (Some(cursor), Some(fields)) = (next.get("next_cursor"), answer.as_object_mut()) {
            fields.insert("next_cursor".to_owned(), cursor.clone());
        }
    }
    print(&answer, global.json)
}
