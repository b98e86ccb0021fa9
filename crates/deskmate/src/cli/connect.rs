//! Connecting clients to this desk, and disconnecting them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use deskmate_core::{Code, Error, identity};
use serde_json::{Value, json};
use url::Url;

use super::client::{As, Client, token};
use super::output::{print, say};
use super::{Failure, Global};
use crate::connect::{
    Applied, Edit, Entry, Host, PLUGIN, Places, Scope, TOKEN_VARIABLE, Token, Wanted, Way, apply, clear_plugin, configured, plan, plan_removal, quote,
};
use crate::home::Home;
use crate::mcp::Mount;
use crate::{background, config, world};

/// How often a file that another program changes at the same moment is tried again.
const ATTEMPTS: u32 = 3;
/// What the entry is called where nobody said.
const NAME: &str = "desk";
/// Where what was in a client's file before is kept, in the data directory.
const BACKUPS: &str = "client-backups";
/// Where a plugin is put where nobody said, in the data directory.
const PLUGIN_FOLDER: &str = "claude-code-plugin";

#[derive(Args)]
pub(super) struct ConnectArgs {
    /// The client
    #[arg(value_enum)]
    client: Host,
    #[command(flatten)]
    place: PlaceArgs,
    /// The agent's name on an open desk; on a closed one the token says who it is
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The toolsets and servers behind the desk to mount, separated by commas; the usual toolsets if not given
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    toolset: Vec<String>,
    /// Speak HTTP instead of starting a program: with this address, or with this desk's own
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    url: Option<String>,
    /// Let the desk decide about the client's own tools too, by hooks: Claude Code, Codex, Cursor and Gemini CLI have them
    #[arg(long)]
    hooks: bool,
}

#[derive(Args)]
pub(super) struct DisconnectArgs {
    /// The client
    #[arg(value_enum)]
    client: Host,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Args)]
struct PlaceArgs {
    /// For whom the entry is
    #[arg(long, value_enum, default_value = "user")]
    scope: Scope,
    /// The project's folder, or where a plugin is put; the current folder, or a folder in the data directory if not given
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// What the entry is called in the client's file
    #[arg(long, value_name = "NAME", default_value = NAME)]
    name: String,
    /// Only show what would be changed, as a diff
    #[arg(long)]
    dry_run: bool,
}

impl PlaceArgs {
    /// Names become part of the names of tools, so they are plain.
    fn check(&self) -> Result<(), Error> {
        let plain = self.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if self.name.is_empty() || self.name.len() > 40 || !plain {
            return Err(Error::invalid("name", format!("{:?} is no name for an entry: write up to 40 letters, digits, '-' and '_'", self.name)));
        }
        Ok(())
    }

    fn places(&self) -> Result<Places, Error> {
        let folder = self.dir.clone().filter(|_| self.scope == Scope::Project);
        Places::here(&folder.unwrap_or_else(|| PathBuf::from(".")))
    }

    fn plugin(&self, home: &Path) -> Result<PathBuf, Failure> {
        plugin_folder(self.dir.as_deref().filter(|_| self.scope == Scope::Plugin), home)
    }
}

/// Where the plugin is.
pub(super) fn plugin_folder(given: Option<&Path>, home: &Path) -> Result<PathBuf, Failure> {
    Ok(std::path::absolute(given.map_or_else(|| home.join(PLUGIN_FOLDER), Path::to_owned))?)
}

pub(super) fn connect(global: &Global, args: &ConnectArgs) -> Result<(), Failure> {
    args.place.check()?;
    let (host, scope, home) = (args.client, args.place.scope, config::home(global.home.clone())?);
    let places = args.place.places()?;
    if scope != Scope::Plugin || host != Host::ClaudeCode {
        // A client that has no such scope is told before anything else is asked.
        places.servers(host, scope)?;
    }
    refuse_what_the_client_cannot(args)?;
    let mut notes = Vec::new();
    // Names that can only be those of servers behind the desk are asked about once it is there.
    let servers: Vec<String> = args.toolset.iter().map(|name| name.trim().to_owned()).filter(|name| Mount::is_server(name)).collect();
    check_names(&servers)?;
    notes.extend(Mount::named(args.toolset.iter().map(String::as_str), false, &servers)?.1);
    let way = way(args, &home, &mut notes)?;
    let given = token(global)?;
    let agent = caller(global, args, &way, given.as_deref(), &mut notes)?;
    ask_for(global, &servers, &way, given.as_deref(), agent.as_deref(), &mut notes)?;
    let token = token_for(global, args, &places, &way, given, &mut notes)?;
    let hooks = hooks(args, &way, &token, agent.as_deref())?;
    let entry = Entry { way, agent, toolsets: args.toolset.clone(), token };
    let wanted = Wanted { host, scope, name: args.place.name.clone(), entry, hooks, plugin: args.place.plugin(&home)? };
    let (edits, applied) = settle(args.place.dry_run, &home, || plan(&places, &wanted))?;
    if scope == Scope::Plugin && !edits.is_empty() {
        let folder = quote(&wanted.plugin.display().to_string());
        notes.push(format!("install it: claude plugin marketplace add {folder} && claude plugin install {PLUGIN}@{PLUGIN}"));
        notes.push(format!("Claude Code keeps a copy: after another `connect`, claude plugin uninstall {PLUGIN}@{PLUGIN}, and install it again"));
    } else {
        notes.push(host.afterwards().to_owned());
    }
    if host == Host::ClaudeCode {
        notes.extend(overridden(&places, &wanted));
    }
    if args.hooks && matches!(host, Host::Codex | Host::Gemini) {
        notes.push(format!("{} goes on when the hook itself cannot be started: it has no setting that blocks then.", host.title()));
    }
    notes.push("`deskmate doctor` tries it.".to_owned());
    let (done, not_done) = if scope == Scope::Plugin { ("ready to be connected", "ready to be connected already") } else { ("connected", "already connected") };
    Told { host, places: &places, place: &args.place, done, not_done, edits, applied, notes }.tell(global)
}

pub(super) fn disconnect(global: &Global, args: &DisconnectArgs) -> Result<(), Failure> {
    args.place.check()?;
    let (host, scope, home) = (args.client, args.place.scope, config::home(global.home.clone())?);
    let places = args.place.places()?;
    let plugin = args.place.plugin(&home)?;
    let (edits, applied) = settle(args.place.dry_run, &home, || plan_removal(&places, host, scope, &args.place.name, &plugin))?;
    let mut notes = Vec::new();
    if scope == Scope::Plugin && !args.place.dry_run {
        clear_plugin(&plugin);
        notes.push(format!("Claude Code keeps its copy until: claude plugin uninstall {PLUGIN}@{PLUGIN} && claude plugin marketplace remove {PLUGIN}"));
    } else if edits.iter().any(Edit::changes) {
        notes.push("a client that runs keeps its connection until it ends; the agent's token still works until `deskmate agent revoke`".to_owned());
    }
    let (others, _) = configured(&places, &plugin);
    for other in others.iter().filter(|other| other.host == host && (other.scope, other.name.as_str()) != (scope.word(), args.place.name.as_str())) {
        notes.push(format!("it has another entry for a desk: {:?} in {} ({})", other.name, places.shown(&other.file), other.scope));
    }
    Told { host, places: &places, place: &args.place, done: "disconnected", not_done: "not connected", edits, applied, notes }.tell(global)
}

/// Entries of the same name that Claude Code prefers to this one, each in one folder.
fn overridden(places: &Places, wanted: &Wanted) -> Vec<String> {
    let (found, _) = configured(places, &wanted.plugin);
    let local = found.into_iter().filter(|entry| entry.scope == "local" && entry.name == wanted.name);
    local.map(|entry| format!("in {} an older entry of that name wins: claude mcp remove -s local {}", places.shown(&entry.folder), entry.name)).collect()
}

/// Plans and makes the changes, again when another program was at the same file.
fn settle(dry_run: bool, home: &Path, plan: impl Fn() -> Result<Vec<Edit>, Error>) -> Result<(Vec<Edit>, Vec<Applied>), Failure> {
    let (mut all, mut attempt) = (Vec::new(), 0);
    loop {
        attempt += 1;
        let edits = plan()?;
        if dry_run {
            return Ok((edits, all));
        }
        if edits.iter().any(Edit::changes) {
            Home::new(home.to_owned()).create()?;
        }
        match apply(&edits, &home.join(BACKUPS), world::wall()) {
            Ok(applied) => {
                all.extend(applied);
                return Ok((edits, all));
            }
            Err(error) if error.code == Code::Conflict && attempt < ATTEMPTS => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn refuse_what_the_client_cannot(args: &ConnectArgs) -> Result<(), Error> {
    if args.url.is_some() && args.client == Host::ClaudeDesktop {
        return Err(Error::invalid("url", "Claude Desktop takes no addresses in its file, only programs to start").hint("leave --url out"));
    }
    if args.hooks && args.client.hooks().is_none() {
        return Err(Error::invalid("hooks", format!("{} has no hooks that a program can answer", args.client.title())).hint("leave --hooks out"));
    }
    Ok(())
}

/// How the client reaches the desk.
fn way(args: &ConnectArgs, home: &Path, notes: &mut Vec<String>) -> Result<Way, Failure> {
    let Some(given) = &args.url else {
        let program = background::program()?;
        let usual = config::user_home().is_some_and(|user| user.join(".deskmate") == home);
        let shared = args.place.scope == Scope::Project;
        let command = if shared && on_path(&program) { "deskmate".to_owned() } else { program.display().to_string() };
        if shared && (command != "deskmate" || !usual) {
            notes.push("the entry names a path of this machine: others in the project need the same one, or `deskmate` on their search path".to_owned());
        }
        return Ok(Way::Stdio { command, home: (!usual).then(|| home.to_owned()) });
    };
    let text = if given.is_empty() {
        let running = Home::new(home.to_owned()).running().and_then(|holder| holder.url);
        running.ok_or_else(|| {
            Error::new(Code::Unavailable, format!("no desk runs in {}", home.display())).hint("start it with `deskmate up`, or name its address")
        })?
    } else {
        given.clone()
    };
    Ok(Way::Http { url: address(&text, &args.toolset)? })
}

/// Whether the search path leads to this program by its name.
fn on_path(program: &Path) -> bool {
    let Ok(own) = program.canonicalize() else { return false };
    let paths = config::env("PATH").unwrap_or_default();
    std::env::split_paths(&paths).find_map(|folder| folder.join("deskmate").canonicalize().ok()).is_some_and(|found| found == own)
}

/// The address of a desk's MCP endpoint. Without TLS only this machine is spoken to.
fn address(text: &str, toolsets: &[String]) -> Result<Url, Error> {
    let wrong = |why: &str| Error::invalid("url", format!("{text:?} {why}")).hint("write for example http://127.0.0.1:7373 or https://desk.example.org");
    let mut url = Url::parse(text).map_err(|_| wrong("is no address"))?;
    let local = is_local(&url);
    match url.scheme() {
        "https" => {}
        "http" if local => {}
        "http" => return Err(wrong("would send the token in the clear: beyond this machine it takes https")),
        _ => return Err(wrong("is no http:// or https:// address")),
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(wrong("holds more than an address"));
    }
    if url.path() == "/" {
        url.set_path("/mcp");
    }
    if url.path() == "/mcp" && !toolsets.is_empty() {
        url.set_path(&format!("/mcp/{}", toolsets.join(",")));
    }
    Ok(url)
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// Who will call: the name that an open desk takes. On a closed desk the token says it, and without one nobody gets in.
fn caller(global: &Global, args: &ConnectArgs, way: &Way, given: Option<&str>, notes: &mut Vec<String>) -> Result<Option<String>, Failure> {
    if let Some(agent) = &args.agent {
        identity::check_name("agent", agent)?;
    }
    let named = || Some(args.agent.clone().unwrap_or_else(|| args.client.agent().to_owned()));
    let client = Client::new(global)?;
    let own = client.home().running().and_then(|holder| holder.url).and_then(|url| Url::parse(&url).ok());
    if let Way::Http { url } = way
        && own.as_ref().is_none_or(|own| own.origin() != url.origin())
    {
        // Another desk: it cannot be asked from here without giving it the token.
        if given.is_none() && !is_local(url) {
            return Err(needs_token(args, "a desk on another machine takes agents by their tokens only").into());
        }
        return Ok(if given.is_some() { None } else { named() });
    }
    if own.is_none() && args.place.dry_run {
        notes.push("no desk runs, so it was not asked whether it is closed or knows the token".to_owned());
        return Ok(if given.is_some() { None } else { named() });
    }
    background::ensure_running(client.home())?;
    let Some(token) = given else {
        let status = client.with(As::Nobody).get("/api/desk_status")?;
        if status.get("mode").and_then(Value::as_str) == Some("open") {
            return Ok(named());
        }
        return Err(needs_token(args, "this desk is closed: every agent needs its token").into());
    };
    let you = client.with(As::Token(token.to_owned())).call("desk_whoami", &json!({}))?;
    let id = you.get("id").and_then(Value::as_str).unwrap_or_default();
    if you.get("kind").and_then(Value::as_str) != Some("agent") {
        return Err(Error::forbidden("this is not an agent's token, and a client acts as an agent").hint("`deskmate agent add NAME` prints one").into());
    }
    match &args.agent {
        Some(agent) if agent != id => Err(Error::forbidden(format!("the token belongs to the agent {id}, not to {agent}")).hint("leave --agent out").into()),
        _ => Ok(None),
    }
}

/// Refuses what could not even be the name of a server behind the desk.
fn check_names(servers: &[String]) -> Result<(), Error> {
    let plain = |name: &String| name.len() <= 32 && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
    match servers.iter().find(|name| !plain(name)) {
        Some(wrong) => Err(Mount::named([wrong.as_str()], false, &[]).err().unwrap_or_else(|| Error::invalid("toolset", format!("{wrong:?} is no name")))),
        None => Ok(()),
    }
}

/// Asks this desk whether it has these servers; another one cannot be asked from here.
fn ask_for(global: &Global, servers: &[String], way: &Way, token: Option<&str>, agent: Option<&str>, notes: &mut Vec<String>) -> Result<(), Failure> {
    if servers.is_empty() {
        return Ok(());
    }
    let client = Client::new(global)?;
    let own = client.home().running().and_then(|holder| holder.url).and_then(|url| Url::parse(&url).ok());
    let is_own = own.as_ref().is_some_and(|own| !matches!(way, Way::Http { url } if own.origin() != url.origin()));
    if !is_own {
        notes.push(format!("it was not asked whether the desk has {}", servers.join(", ")));
        return Ok(());
    }
    let who = match (token, agent) {
        (Some(token), _) => As::Token(token.to_owned()),
        (None, Some(agent)) => As::Agent(agent.to_owned()),
        (None, None) => As::Nobody,
    };
    let client = client.with(who);
    for name in servers {
        match client.call("gateway_list_tools", &json!({ "mount": name })) {
            Err(Failure::Desk(error)) if error.code == Code::NotFound => {
                let known = Mount::named([name.as_str()], false, &[]).err().and_then(|error| error.hint).unwrap_or_default();
                let message = format!("{name:?} is no toolset and no server behind this desk: {}", error.message);
                return Err(Error::not_found(message).hint(format!("toolsets: {known}; `deskmate gateway list` shows the servers")).into());
            }
            answer => drop(answer?),
        }
    }
    Ok(())
}

fn needs_token(args: &ConnectArgs, why: &str) -> Error {
    let (agent, word) = (args.agent.as_deref().unwrap_or(args.client.agent()), args.client.word());
    let how = format!("`deskmate agent add {agent}` prints one; then {TOKEN_VARIABLE}=dma_… deskmate connect {word}, or --token-file FILE");
    Error::new(Code::Unauthenticated, why).hint(how)
}

/// How the client gets the token: written into the user's own file, by a variable where others may read the file.
fn token_for(global: &Global, args: &ConnectArgs, places: &Places, way: &Way, given: Option<String>, notes: &mut Vec<String>) -> Result<Token, Failure> {
    let (Some(token), host) = (given, args.client) else { return Ok(Token::None) };
    let http = matches!(way, Way::Http { .. });
    if let (Some(file), false) = (&global.token_file, http) {
        let file = file.canonicalize()?;
        if args.place.scope == Scope::Project && file.starts_with(places.project()) {
            let message = format!("{} lies in the project, where it could be committed", file.display());
            return Err(Error::forbidden(message).hint("keep the token elsewhere, for example in the data directory").into());
        }
        if std::fs::metadata(&file)?.permissions().mode() & 0o077 != 0 {
            notes.push(format!("others can read the token: chmod 600 {}", quote(&file.display().to_string())));
        }
        return Ok(Token::File(file));
    }
    let asked = args.place.scope != Scope::User || host == Host::Vscode || (host == Host::Codex && http);
    if !asked {
        return Ok(Token::Written(token));
    }
    notes.push(match host {
        Host::Vscode => "VS Code asks for the token when it first needs it".to_owned(),
        _ => format!("the token is not in the file: set {TOKEN_VARIABLE} where {} starts", host.title()),
    });
    Ok(Token::Asked)
}

/// The command that answers hooks. It runs with the client's environment, not with that of the entry.
fn hooks(args: &ConnectArgs, way: &Way, token: &Token, agent: Option<&str>) -> Result<Option<String>, Failure> {
    if !args.hooks {
        return Ok(None);
    }
    let Way::Stdio { command, home } = way else {
        return Err(Error::invalid("hooks", "hooks start this program, so they go with a connection that does too").hint("leave --url out").into());
    };
    let mut words = vec![command.clone(), "hook".to_owned()];
    match token {
        Token::Written(_) => return Err(Error::invalid("hooks", "hooks need the token in a file of its own").hint("give --token-file FILE").into()),
        Token::File(file) => words.extend(["--token-file".to_owned(), file.display().to_string()]),
        Token::Asked | Token::None => {}
    }
    if args.client != Host::ClaudeCode {
        words.extend(["--client".to_owned(), args.client.word().to_owned()]);
    }
    words.extend(agent.iter().flat_map(|agent| ["--agent".to_owned(), (*agent).to_owned()]));
    // The desk's own calls are decided there and not twice; nobody else's server passes for it.
    if args.place.name != NAME {
        words.extend(["--server".to_owned(), args.place.name.clone()]);
    }
    if args.place.scope == Scope::Project {
        words.push("--project-server".to_owned());
    }
    words.extend(home.iter().flat_map(|home| ["--home".to_owned(), home.display().to_string()]));
    Ok(Some(words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")))
}

/// What is told in the end.
struct Told<'t> {
    host: Host,
    places: &'t Places,
    place: &'t PlaceArgs,
    done: &'static str,
    not_done: &'static str,
    edits: Vec<Edit>,
    applied: Vec<Applied>,
    notes: Vec<String>,
}

impl Told<'_> {
    fn tell(self, global: &Global) -> Result<(), Failure> {
        let (host, place) = (self.host, self.place);
        let changes = !self.applied.is_empty() || self.edits.iter().any(|edit| place.dry_run && edit.changes());
        if global.json {
            return print(&self.json(changes), true);
        }
        if place.dry_run {
            say(if changes { "Nothing was changed. This would be:\n" } else { "Nothing was changed, and nothing would be." })?;
            for edit in self.edits.iter().filter(|edit| edit.changes()) {
                say(&edit.diff(self.places))?;
            }
            return self.notes.iter().filter(|_| changes).try_for_each(|note| say(note));
        }
        if !changes {
            say(&format!("{} is {}: nothing was changed.", host.title(), self.not_done))?;
            return self.notes.iter().filter(|_| self.done == "disconnected").try_for_each(|note| say(note));
        }
        say(&format!("{} is {} (entry {:?}, scope {}).", host.title(), self.done, place.name, place.scope.word()))?;
        for applied in &self.applied {
            let before = applied.backup.as_ref().map_or(String::new(), |kept| format!("; as it was: {}", self.places.shown(kept)));
            say(&format!("  {}{before}", self.places.shown(&applied.path)))?;
        }
        self.notes.iter().try_for_each(|note| say(note))
    }

    fn json(&self, changes: bool) -> Value {
        let dry_run = self.place.dry_run;
        let files: Vec<Value> = if dry_run {
            let planned = self.edits.iter().filter(|edit| edit.changes());
            planned.map(|edit| json!({ "path": edit.path(), "diff": edit.diff(self.places) })).collect()
        } else {
            self.applied.iter().map(|applied| json!({ "path": applied.path, "backup": applied.backup })).collect()
        };
        json!({
            "client": self.host, "scope": self.place.scope, "name": self.place.name,
            "changed": changes && !dry_run, "dry_run": dry_run, "files": files, "notes": self.notes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_a_desk() {
        let toolsets = vec!["bridge".to_owned(), "cowork".to_owned()];
        for (text, toolsets, expected) in [
            ("http://127.0.0.1:7373", &[][..], "http://127.0.0.1:7373/mcp"),
            ("http://127.0.0.1:7373/", &toolsets, "http://127.0.0.1:7373/mcp/bridge,cowork"),
            ("https://desk.example.org/mcp", &[], "https://desk.example.org/mcp"),
            ("http://mine.localhost:1/mcp/bridge", &[], "http://mine.localhost:1/mcp/bridge"),
            ("http://[::1]:7373", &[], "http://[::1]:7373/mcp"),
        ] {
            assert_eq!(address(text, toolsets).unwrap().as_str(), expected);
        }
        for wrong in ["", "desk", "ftp://127.0.0.1", "http://desk.example.org", "http://192.168.0.2:7373", "https://a:b@desk.example.org", "https://x/#y"] {
            assert!(address(wrong, &[]).unwrap_err().hint.is_some(), "{wrong}");
        }
    }
}
