//! Calling any operation.

use std::io::{Read, Write};

use clap::Args;
use deskmate_core::Error;
use deskmate_core::call::{Access, Op, Registry, parse_strict};
use serde_json::{Map, Value};

use super::client::{As, Client};
use super::output::{print, say};
use super::{Failure, Global};

#[derive(Args)]
pub(super) struct CallArgs {
    /// The operation, for example bridge_send_message
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// Fields of the input: to=cowork content=Hello
    #[arg(value_name = "FIELD=VALUE")]
    fields: Vec<String>,
    /// The whole input as JSON; - reads it from standard input
    #[arg(long, value_name = "JSON", conflicts_with = "fields")]
    input: Option<String>,
    /// Call as this agent (open mode; in closed mode its token is needed)
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// List all operations
    #[arg(long)]
    list: bool,
}

pub(super) fn run(global: &Global, args: CallArgs) -> Result<(), Failure> {
    let registry = Registry::new();
    let Some(name) = args.name.filter(|_| !args.list) else { return list(global, &registry) };
    let op = registry.find(&name).ok_or_else(|| Error::not_found(format!("there is no operation {name}")).hint("`deskmate call --list` shows all"))?;
    let input = match args.input.as_deref() {
        Some("-") => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes)?;
            parse_strict(&bytes)?
        }
        Some(text) => {
            let given = parse_strict(text.as_bytes())?;
            given.as_object().into_iter().flatten().try_for_each(|(field, _)| no_secret(op, field))?;
            given
        }
        None => fields(op, &args.fields)?,
    };
    let client = Client::new(global)?;
    let client = match (args.agent, client.has_token(), op.access) {
        (_, _, Access::Local) => client.with(As::Nobody),
        (_, true, _) | (None, false, Access::Public) => client,
        (Some(agent), false, _) => client.with(As::Agent(agent)),
        (None, false, _) => Client::present(global)?,
    };
    let answer = client.call(&op.full_name(), &input)?;
    if client.is_unverified() {
        let note = "note: this desk is open, so the name was taken without proof and is marked as unverified; `deskmate agent add` closes it";
        // Where a note cannot be written the answer still stands.
        drop(writeln!(std::io::stderr(), "{note}"));
    }
    print(&answer, global.json)
}

/// Reads `name=value` by the operation's schema: what is not a text there is read as JSON, and what may be anything is a text where it is no JSON.
fn fields(op: &Op, pairs: &[String]) -> Result<Value, Error> {
    let mut fields = Map::new();
    for pair in pairs {
        let (name, value) = pair.split_once('=').ok_or_else(|| Error::invalid("field", format!("{pair:?} must be name=value")))?;
        no_secret(op, name)?;
        let schema = op.input().pointer(&format!("/properties/{name}"));
        let text = || Value::String(value.to_owned());
        let value = match schema.map(|schema| schema.get("type").and_then(Value::as_str)) {
            None | Some(Some("string")) => text(),
            Some(None) => parse_strict(value.as_bytes()).unwrap_or_else(|_| text()),
            Some(Some(_)) => parse_strict(value.as_bytes()).map_err(|_| Error::invalid(name, "must be JSON of the field's type"))?,
        };
        fields.insert(name.to_owned(), value);
    }
    Ok(Value::Object(fields))
}

/// Arguments are seen by every program of the machine, and shells keep them.
fn no_secret(op: &Op, field: &str) -> Result<(), Error> {
    if op.is_secret(field) {
        let hint = "give the input as JSON on standard input, with --input -";
        return Err(Error::invalid(field, "is a secret, and secrets are not given as arguments").hint(hint));
    }
    Ok(())
}

fn list(global: &Global, registry: &Registry) -> Result<(), Failure> {
    if global.json {
        return print(&crate::reference::operations(registry), true);
    }
    let mut text = String::new();
    for op in registry.all() {
        let does = op.description().split_inclusive('.').next().unwrap_or_default().replace('\n', " ");
        text.push_str(&format!("{:30}  {does}\n{:30}  for {}\n", op.full_name(), "", op.access.describe()));
    }
    say(text.trim_end())?;
    say("\ndeskmate call NAME field=value …   calls one; /api/openapi.json has every schema")
}
