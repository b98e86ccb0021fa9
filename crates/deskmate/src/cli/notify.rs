//! How people are told, from the command line: their own subscriptions, a test, and what did not arrive.

use clap::{Args, Subcommand};
use deskmate_core::Error;
use serde_json::{Map, Value, json};

use super::client::Client;
use super::output::print;
use super::{Failure, Global};

#[derive(Subcommand)]
pub(super) enum NotifyCommand {
    /// List the ways in which you are told, and the outlets that you can choose
    List(Whose),
    /// Say how you are told; what stood under this name before is replaced
    Set(Box<SetArgs>),
    /// No longer be told in one of your ways
    Remove {
        /// Its name
        name: String,
        #[command(flatten)]
        whose: Whose,
    },
    /// Send yourself a test, and see what becomes of it
    Test {
        /// Its name
        name: String,
        #[command(flatten)]
        whose: Whose,
    },
    /// List messages that did not arrive and are not tried again
    Dead,
    /// Send messages round again that did not arrive
    Retry(Which),
    /// Dismiss messages that did not arrive and that nobody needs any more
    Dismiss(Which),
}

#[derive(Args)]
pub(super) struct Whose {
    /// For owners: the id of the person whom it is about, as `person list` shows it
    #[arg(long, value_name = "ID")]
    person: Option<String>,
}

#[derive(Args)]
pub(super) struct Which {
    /// Their ids, as `notify dead` shows them
    #[arg(required_unless_present = "all")]
    notifications: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "notifications")]
    all: bool,
}

#[derive(Args)]
pub(super) struct SetArgs {
    /// The outlet, as `notify list` shows it
    outlet: String,
    /// Where to: an e-mail address, a topic, the number of a chat
    #[arg(long)]
    address: Option<String>,
    /// Its name; the outlet's if not given
    #[arg(long)]
    name: Option<String>,
    /// What it tells about; may be repeated; everything if not given
    #[arg(long = "event", value_name = "EVENT")]
    events: Vec<String>,
    /// A kind of request that it tells about; may be repeated; all if not given
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
    /// A domain that it tells about, with a trailing * as a wildcard; may be repeated; all if not given
    #[arg(long = "domain", value_name = "DOMAIN")]
    domains: Vec<String>,
    /// Tell only requests from this risk on: low, medium, high or critical
    #[arg(long, value_name = "RISK")]
    least_risk: Option<String>,
    /// Also tell what you cannot decide
    #[arg(long)]
    others: bool,
    /// Do not tell again what nobody decided
    #[arg(long)]
    no_reminders: bool,
    /// Whose clock counts, for example Europe/Berlin; UTC if not given
    #[arg(long)]
    zone: Option<String>,
    /// Hours in which nothing is told, for example 22:00-07:30
    #[arg(long, value_name = "FROM-TO")]
    quiet: Option<String>,
    /// Tell all together, for example day@08:00 or monday@08:00
    #[arg(long, value_name = "DAY@TIME")]
    digest: Option<String>,
    /// Let what is urgent through in quiet hours and before the next digest
    #[arg(long)]
    urgent_passes: bool,
    /// How much of what somebody wrote is shown: none, redacted or full; none if not given
    #[arg(long)]
    details: Option<String>,
    /// The shortest time between two messages; 60 if not given
    #[arg(long, value_name = "SECONDS")]
    batch_seconds: Option<u32>,
    /// Put links into messages by which you decide without signing in; whoever reads your messages can use them
    #[arg(long)]
    decide_links: bool,
    #[command(flatten)]
    whose: Whose,
}

impl SetArgs {
    fn input(self) -> Result<Value, Failure> {
        let mut input = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                input.insert(name.to_owned(), value);
            }
        };
        put("outlet", json!(self.outlet));
        put("address", json!(self.address));
        put("name", json!(self.name));
        put("events", json!(self.events));
        put("kinds", json!(self.kinds));
        put("domains", json!(self.domains));
        put("least_risk", json!(self.least_risk));
        put("others", json!(self.others));
        put("reminders", json!(!self.no_reminders));
        put("zone", json!(self.zone));
        put("quiet_hours", self.quiet.as_deref().map(quiet).transpose()?.unwrap_or_default());
        put("digest", self.digest.as_deref().map(digest).transpose()?.unwrap_or_default());
        put("urgent_passes", json!(self.urgent_passes));
        put("details", json!(self.details));
        put("batch_seconds", json!(self.batch_seconds));
        put("decide_links", json!(self.decide_links));
        put("person", json!(self.whose.person));
        Ok(Value::Object(input))
    }
}

fn quiet(text: &str) -> Result<Value, Failure> {
    let (from, to) = text.split_once('-').ok_or_else(|| Error::invalid("quiet", "must be two times, for example 22:00-07:30"))?;
    Ok(json!({ "from": from.trim(), "to": to.trim() }))
}

fn digest(text: &str) -> Result<Value, Failure> {
    let (day, at) = text.split_once('@').ok_or_else(|| Error::invalid("digest", "must be a day and a time, for example day@08:00 or monday@08:00"))?;
    let day = day.trim().to_lowercase();
    Ok(if day == "day" { json!({ "every": "day", "at": at.trim() }) } else { json!({ "every": "week", "on": day, "at": at.trim() }) })
}

pub(super) fn run(global: &Global, command: NotifyCommand) -> Result<(), Failure> {
    match command {
        NotifyCommand::List(whose) => print(&looking(global)?.call("desk_subscription_list", &of("", whose))?, global.json),
        NotifyCommand::Set(args) => {
            let input = args.input()?;
            print(&Client::present(global)?.call("desk_subscription_set", &input)?, global.json)
        }
        NotifyCommand::Remove { name, whose } => print(&Client::present(global)?.call("desk_subscription_remove", &of(&name, whose))?, global.json),
        NotifyCommand::Test { name, whose } => {
            let answer = Client::present(global)?.call("desk_subscription_test", &of(&name, whose))?;
            print(&answer, global.json)?;
            if answer.get("arrived") == Some(&Value::Bool(true)) { Ok(()) } else { Err(Failure::Told) }
        }
        NotifyCommand::Dead => print(&json!({ "notifications": dead(&looking(global)?)? }), global.json),
        NotifyCommand::Retry(which) => each(global, "desk_notification_retry", which),
        NotifyCommand::Dismiss(which) => each(global, "desk_notification_dismiss", which),
    }
}

/// A personal token is enough for what only looks.
fn looking(global: &Global) -> Result<Client, Failure> {
    let client = Client::new(global)?;
    if client.has_token() { Ok(client) } else { Client::present(global) }
}

fn of(name: &str, whose: Whose) -> Value {
    let mut input = Map::new();
    if !name.is_empty() {
        input.insert("name".to_owned(), json!(name));
    }
    if let Some(person) = whose.person {
        input.insert("person".to_owned(), json!(person));
    }
    Value::Object(input)
}

/// Everything that was given up, from all pages.
fn dead(client: &Client) -> Result<Vec<Value>, Failure> {
    let (mut all, mut input) = (Vec::new(), json!({ "state": "failed", "limit": 200 }));
    loop {
        let mut answer = client.call("desk_notification_list", &input)?;
        if let Some(Value::Array(more)) = answer.get_mut("notifications").map(Value::take) {
            all.extend(more);
        }
        match (answer.get("next_cursor"), input.as_object_mut()) {
            (Some(cursor), Some(fields)) => drop(fields.insert("cursor".to_owned(), cursor.clone())),
            _ => return Ok(all),
        }
    }
}

fn each(global: &Global, operation: &str, which: Which) -> Result<(), Failure> {
    let client = Client::present(global)?;
    let ids = if which.all {
        let found = dead(&client)?;
        found.iter().filter_map(|one| one.get("notification").and_then(Value::as_str).map(str::to_owned)).collect()
    } else {
        which.notifications
    };
    let mut done = Vec::new();
    for id in ids {
        done.push(client.call(operation, &json!({ "notification": id }))?);
    }
    print(&json!({ "notifications": done }), global.json)
}
