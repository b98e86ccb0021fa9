//! Other MCP servers behind the desk, from the command line.

mod import;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use super::client::Client;
use super::output::print;
use super::{Failure, Global};

#[derive(Subcommand)]
pub(super) enum GatewayCommand {
    /// Put an MCP server behind the desk: `gateway add files -- npx some-server`, or with --url
    Add(Box<AddArgs>),
    /// List the servers behind the desk, and which of their tools wait for you
    List,
    /// Take a server away
    Remove {
        /// Its name
        name: String,
    },
    /// Serve it
    Enable {
        /// Its name
        name: String,
    },
    /// Stop serving it, and keep its settings
    Disable {
        /// Its name
        name: String,
    },
    /// Change what is said of a server, besides how it is reached; what is not given stays
    Set(Box<SetArgs>),
    /// Connect to it now, and look at what it offers
    Test {
        /// Its name
        name: String,
    },
    /// Show its tools, with what is new or has changed
    Tools {
        /// Its name
        name: String,
    },
    /// Accept a tool that is new or has changed, as `gateway tools` shows it
    Accept {
        /// The server
        name: String,
        /// The tool
        tool: String,
    },
    /// Set what agents get when they call one of its tools
    Answer {
        /// The server
        name: String,
        /// The tool
        tool: String,
        /// `pass`, `ask` a person, `forbid`, or what the `policies` say
        #[arg(value_enum)]
        answer: AnswerArg,
        /// Why, for people and agents alike
        #[arg(long)]
        reason: Option<String>,
    },
    /// Show the calls that were made, newest first
    Calls {
        /// Only of this server
        #[arg(long, value_name = "NAME")]
        mount: Option<String>,
        /// Only of this agent
        #[arg(long)]
        agent: Option<String>,
        /// Only those that are held, passed, done, failed, ambiguous or denied
        #[arg(long)]
        state: Option<String>,
        /// How many
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
    /// Show what agents have read that nobody vouches for, as far as it still counts, or clear it
    Taint(TaintArgs),
    /// Bring in servers from a client's configuration: .mcp.json, claude_desktop_config.json, or a NAME.service.json
    Import(import::ImportArgs),
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct TaintArgs {
    #[command(subcommand)]
    clear: Option<TaintCommand>,
    /// Only of this agent
    #[arg(long)]
    agent: Option<String>,
}

#[derive(Subcommand)]
enum TaintCommand {
    /// Clear what an agent has read, because you looked at it: what it does from now on does not carry it any more
    Clear {
        /// The agent
        agent: String,
        /// Only what came from here, as `gateway taint` names it
        #[arg(long)]
        origin: Option<String>,
        /// Why it does not count
        #[arg(long)]
        reason: String,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum IntentArg {
    Off,
    Warn,
    Strict,
}

#[derive(Clone, Copy, ValueEnum)]
enum ScanArg {
    Off,
    Require,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum AnswerArg {
    Pass,
    Ask,
    Forbid,
    Policies,
}

#[derive(Args)]
pub(super) struct AddArgs {
    /// Its name: the address /mcp/NAME
    name: String,
    /// Its address, where it speaks over HTTP
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// A header of every request to it, for example 'Authorization=Bearer secret:NAME'; may be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = pair, requires = "url")]
    headers: Vec<(String, String)>,
    /// What the program finds in its environment, for example TOKEN=secret:NAME; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// The folder in which it starts
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// One connection for all agents: only where the server remembers nothing between two calls
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    told: ToldArgs,
    /// Change how a server is reached that is there already; of the rest, what is not given stays
    #[arg(long)]
    replace: bool,
    /// The program and what it is given
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(Args)]
pub(super) struct SetArgs {
    /// The server
    name: String,
    #[command(flatten)]
    told: ToldArgs,
    /// A tool that --hide left out and that is there again; may be repeated
    #[arg(long, value_name = "TOOL")]
    show: Vec<String>,
    /// Personal data that is not taken out any more; may be repeated
    #[arg(long, value_name = "KIND")]
    leave: Vec<String>,
    /// One connection for all agents, or one for each
    #[arg(long, value_name = "true|false")]
    shared: Option<bool>,
}

/// What is said of a server, besides how it is reached.
#[derive(Args)]
struct ToldArgs {
    /// The domain in which its calls are judged; gateway.NAME if not given
    #[arg(long)]
    domain: Option<String>,
    /// What a tool does, for rules, for example 'send_*=email.send'; may be repeated. `set` keeps the others, and takes one away with 'TOOL='
    #[arg(long = "verb", value_name = "TOOL=VERB", value_parser = pair)]
    verbs: Vec<(String, String)>,
    /// A tool that is not there for anybody; may be repeated
    #[arg(long, value_name = "TOOL")]
    hide: Vec<String>,
    /// Personal data that is taken out of what comes back, for example email; may be repeated
    #[arg(long, value_name = "KIND")]
    redact: Vec<String>,
    /// Whether callers say why they call
    #[arg(long, value_enum)]
    intent: Option<IntentArg>,
    /// Whether what comes back has to be looked through before it is passed on
    #[arg(long, value_enum)]
    scan: Option<ScanArg>,
    /// What one call costs, in units, for rules and budgets
    #[arg(long, value_name = "UNITS")]
    cost: Option<f64>,
    /// Where its tools act, such as production, for rules
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,
    /// How long one call may take
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,
}

impl ToldArgs {
    /// What of it was given.
    fn fields(self) -> Map<String, Value> {
        let fields = [
            ("domain", self.domain.map(Value::from)),
            ("verbs", object(self.verbs)),
            ("hide", (!self.hide.is_empty()).then(|| json!(self.hide))),
            ("redact", (!self.redact.is_empty()).then(|| json!(self.redact))),
            ("intent", self.intent.and_then(|intent| intent.to_possible_value()).map(|intent| json!(intent.get_name()))),
            ("scan", self.scan.and_then(|scan| scan.to_possible_value()).map(|scan| json!(scan.get_name()))),
            ("cost", self.cost.map(Value::from)),
            ("environment", self.environment.map(Value::from)),
            ("timeout_seconds", self.timeout.map(Value::from)),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// A name and a value, with = between them.
fn pair(text: &str) -> Result<(String, String), String> {
    text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| "write NAME=VALUE".to_owned())
}

fn object(pairs: Vec<(String, String)>) -> Option<Value> {
    (!pairs.is_empty()).then(|| pairs.into_iter().map(|(name, value)| (name, Value::from(value))).collect::<Map<_, _>>().into())
}

fn mount(args: AddArgs) -> Result<Map<String, Value>, Failure> {
    let (command, rest) = match (args.command.split_first(), &args.url) {
        (None, None) => return Err(Failure::Other("name the program after --, or its address with --url".to_owned())),
        (Some((command, rest)), _) => (Some(command.clone()), rest.to_vec()),
        (None, Some(_)) => (None, Vec::new()),
    };
    // What is relative is so to where it is written, and not to where the desk was started.
    let whole = |path: &Path| std::path::absolute(path).map_err(|error| Failure::Other(format!("{}: {error}", path.display())));
    let cwd = args.cwd.as_deref().map(whole).transpose()?;
    let command = match command {
        Some(command) if cwd.is_none() && command.contains('/') => Some(whole(Path::new(&command))?.to_string_lossy().into_owned()),
        command => command,
    };
    let fields = [
        ("name", Some(json!(args.name))),
        ("command", command.map(Value::from)),
        ("args", (!rest.is_empty()).then(|| json!(rest))),
        ("env", object(args.env)),
        ("cwd", cwd.map(|cwd| json!(cwd))),
        ("url", args.url.map(Value::from)),
        ("headers", object(args.headers)),
        ("shared", args.shared.then_some(json!(true))),
    ];
    let reached = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(reached.chain(args.told.fields()).collect())
}

pub(super) fn run(global: &Global, command: GatewayCommand) -> Result<(), Failure> {
    let (operation, input) = match command {
        GatewayCommand::Add(args) => return add(global, *args),
        GatewayCommand::Import(args) => return import::run(global, args),
        GatewayCommand::Set(args) => return set(global, *args),
        GatewayCommand::Accept { name, tool } => return accept(global, &name, &tool),
        GatewayCommand::List => ("desk_mount_list", json!({})),
        GatewayCommand::Remove { name } => ("desk_mount_remove", json!({ "name": name })),
        GatewayCommand::Enable { name } => ("desk_mount_switch", json!({ "name": name, "enabled": true })),
        GatewayCommand::Disable { name } => ("desk_mount_switch", json!({ "name": name, "enabled": false })),
        GatewayCommand::Test { name } => ("desk_mount_test", json!({ "name": name })),
        GatewayCommand::Tools { name } => ("desk_mount_tools", json!({ "name": name })),
        GatewayCommand::Answer { name, tool, answer, reason } => {
            let answer = answer.to_possible_value().map(|answer| answer.get_name().to_owned());
            ("desk_mount_answer", json!({ "mount": name, "tool": tool, "answer": answer, "reason": reason }))
        }
        GatewayCommand::Taint(TaintArgs { clear: None, agent }) => ("desk_taint_list", json!({ "agent": agent })),
        GatewayCommand::Taint(TaintArgs { clear: Some(TaintCommand::Clear { agent, origin, reason }), .. }) => {
            ("desk_taint_clear", json!({ "agent": agent, "origin": origin, "reason": reason }))
        }
        GatewayCommand::Calls { mount, agent, state, limit } => {
            ("gateway_list_calls", json!({ "mount": mount, "agent": agent, "state": state, "limit": limit }))
        }
    };
    let looks = matches!(operation, "desk_mount_list" | "desk_mount_tools" | "gateway_list_calls" | "desk_taint_list");
    let client = Client::new(global)?;
    let client = if client.has_token() && looks { client } else { Client::present(global)? };
    print(&client.call(operation, &input)?, global.json)
}

/// Adds a server and looks at it at once: what it offers now is what agents see.
fn add(global: &Global, args: AddArgs) -> Result<(), Failure> {
    let replace = args.replace;
    let mount = mount(args)?;
    let client = Client::present(global)?;
    client.call("desk_mount_add", &json!({ "mount": mount, "replace": replace }))?;
    let name = mount.get("name").cloned().unwrap_or_default();
    match client.call("desk_mount_test", &json!({ "name": name })) {
        Ok(mut tested) => {
            let base = client.home().running().and_then(|holder| holder.url).unwrap_or_default();
            if let Some(fields) = tested.as_object_mut() {
                fields.insert("served_at".to_owned(), json!(format!("{base}/mcp/{}", name.as_str().unwrap_or_default())));
            }
            print(&tested, global.json)
        }
        Err(Failure::Desk(error)) => {
            let hint = error.hint.clone().unwrap_or_default();
            let text = format!("it is added, and could not be reached: {}", error.message);
            Err(Failure::Desk(
                deskmate_core::Error::new(error.code, text).hint(format!("{hint} `deskmate gateway test {}` tries again", name.as_str().unwrap_or_default())),
            ))
        }
        Err(other) => Err(other),
    }
}

/// Changes what is said of a server that is there. Lists get longer by what is given, and shorter only by what is named for that.
fn set(global: &Global, args: SetArgs) -> Result<(), Failure> {
    let client = Client::present(global)?;
    let find = |answer: &Value| {
        let mounts = answer.get("mounts").and_then(Value::as_array).into_iter().flatten();
        mounts.filter(|mount| mount.get("name") == Some(&json!(args.name))).find_map(Value::as_object).cloned()
    };
    let listed = client.call("desk_mount_list", &json!({}))?;
    let Some(mut mount) = find(&listed) else {
        return Err(Failure::Other(format!("there is no server {}; `deskmate gateway list` shows those that are there", args.name)));
    };
    // What was seen of it is not what was said of it.
    mount.retain(|field, _| !["tools", "waiting", "secrets"].contains(&field.as_str()));
    for (field, value) in args.told.fields() {
        let value = match (mount.remove(&field), value) {
            (Some(Value::Object(mut before)), Value::Object(more)) => {
                before.extend(more);
                Value::Object(before)
            }
            (Some(Value::Array(mut before)), Value::Array(more)) => {
                before.extend(more.into_iter().filter(|one| !before.contains(one)).collect::<Vec<_>>());
                Value::Array(before)
            }
            // Nothing stands for what holds where nothing is said.
            (_, Value::String(text)) if text.is_empty() => Value::Null,
            (_, value) => value,
        };
        mount.insert(field, value);
    }
    if let Some(verbs) = mount.get_mut("verbs").and_then(Value::as_object_mut) {
        verbs.retain(|_, verb| verb.as_str() != Some(""));
    }
    for (field, gone) in [("hide", &args.show), ("redact", &args.leave)] {
        if let Some(list) = mount.get_mut(field).and_then(Value::as_array_mut) {
            list.retain(|one| !one.as_str().is_some_and(|one| gone.iter().any(|gone| gone == one)));
        }
    }
    if let Some(shared) = args.shared {
        mount.insert("shared".to_owned(), json!(shared));
    }
    let changed = client.call("desk_mount_add", &json!({ "mount": mount, "replace": true }))?;
    print(&json!(find(&changed)), global.json)
}

/// Accepts what is shown at this moment.
fn accept(global: &Global, name: &str, tool: &str) -> Result<(), Failure> {
    let client = Client::present(global)?;
    let listed = client.call("desk_mount_tools", &json!({ "name": name }))?;
    let found = listed.get("tools").and_then(Value::as_array).into_iter().flatten().find(|found| found.get("name") == Some(&json!(tool)));
    let Some(digest) = found.and_then(|found| found.get("offered_digest")).cloned() else {
        return Err(Failure::Other(format!("{name} has no tool {tool} that waits for you; `deskmate gateway tools {name}` shows all")));
    };
    print(&client.call("desk_mount_accept", &json!({ "mount": name, "tool": tool, "digest": digest }))?, global.json)
}
