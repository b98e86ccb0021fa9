//! A tool call of an agent's client as an act: which verb it is, in which domain, to what, and what rules can ask of it.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::place::{destroys, is_inside, is_secret};
use super::shell::{self, ShellAct, Target, Verb, joined};
use super::veil;
use crate::policy::Act;
use crate::{Result, canonical_value, hex};

/// Lines of shells.
pub(super) const SHELL: &str = "shell";
/// Files of the project that the agent works in.
pub(super) const PROJECT: &str = "files.project";
/// Files elsewhere.
pub(super) const OUTSIDE: &str = "files.outside";
/// Pages.
pub(super) const WEB: &str = "web.fetch";
/// The client itself: its lists, its plans, its own helpers, and the desk.
pub(super) const CLIENT: &str = "client";
/// Every domain for which there is a starter policy.
pub(super) const DOMAINS: [&str; 5] = [SHELL, PROJECT, OUTSIDE, WEB, CLIENT];

/// The verb of what stays within the client.
pub(super) const CLIENT_OWN: &str = "client.own";
/// The verb of calls to the desk, which are decided there.
pub(super) const DESK_CALL: &str = "desk.call";
/// The verb of tools of other MCP servers.
pub(super) const TOOL_CALL: &str = "tool.call";

/// The names under which clients know the desk's own MCP server, unless the hook says another.
const DESK: [&str; 2] = ["desk", "deskmate"];
/// The same as Claude Code names the one of the plugin.
const DESK_PLUGIN: &str = "plugin_deskmate_desk";
/// Where a client got a server from that whoever runs the client chose: not a project, and nobody far away.
const CHOSEN: [&str; 5] = ["user", "local", "dynamic", "managed", "enterprise"];
/// Under which names clients give a line of a shell, and the folder in which it runs. Each client takes its own of them, and nobody
/// knows which: two that differ are none that is known.
const LINES: [&str; 3] = ["command", "cmd", "script"];
const FOLDERS: [&str; 5] = ["workdir", "working_directory", "directory", "cwd", "dir_path"];
/// The same for files and folders that a tool works on; every one that is named is looked at.
const PATHS: [&str; 8] = ["file_path", "notebook_path", "path", "absolute_path", "dir_path", "target_file", "target_directory", "paths"];
/// What searches take for a filter of files, and other tools for files.
const FILTERS: [&str; 3] = ["glob", "include", "include_pattern"];
/// A line that nobody knows.
const UNSEEN: &str = "$unknown";
/// Acts of one call that rules and people are shown.
const ACTS_SHOWN: usize = 50;
const TARGETS_SHOWN: usize = 20;

/// A tool call that an agent's client asks about.
pub(super) struct ToolCall<'c> {
    pub(super) tool: &'c str,
    pub(super) input: &'c Value,
    /// The folder that the agent works in.
    pub(super) folder: Option<&'c str>,
    /// The MCP server whose tool it is.
    pub(super) server: Server<'c>,
}

/// What is known of the MCP server whose tool is called, besides the name in the tool's name, which anybody can give to a server.
#[derive(Clone, Copy, Default)]
pub(super) struct Server<'c> {
    /// Where the client says that it got the server from; older clients, and other ones, do not say it.
    pub(super) source: Option<&'c str>,
    /// The name of the desk's own server, as the hook was told it.
    pub(super) desk: Option<&'c str>,
    /// Whether the desk's own server is named in the project's file.
    pub(super) in_project: bool,
}

impl Server<'_> {
    /// A server of which nobody says where it comes from, at a client where a project can name one as it likes: never the desk.
    pub(super) const UNSAID: Self = Self { source: Some(""), desk: None, in_project: false };

    /// Whether a server of this name is the desk, which decides about its calls itself.
    fn is_desk(self, name: &str) -> bool {
        if name == DESK_PLUGIN {
            return self.source.is_none_or(|source| source == "plugin");
        }
        let named = self.desk.map_or_else(|| DESK.contains(&name), |desk| desk == name);
        named && self.source.is_none_or(|source| CHOSEN.contains(&source) || (self.in_project && source == "project"))
    }
}

/// What a call does.
struct Seen {
    verb: String,
    domain: String,
    action: String,
    acts: Vec<ShellAct>,
    /// Whether it is about files at all.
    on_files: bool,
    /// Whether a secret stands in it: then only what is shown of it anyway is shown apart.
    hides: bool,
}

impl Seen {
    /// A text of the call as it is shown.
    fn shown(&self, text: &str) -> String {
        let text = veil::hidden(text);
        if self.hides && !self.action.contains(&text) { veil::HIDDEN.to_owned() } else { text }
    }
}

impl ToolCall<'_> {
    /// The act without what binds it to this very call: the same for the same call.
    pub(super) fn act(&self) -> Act {
        let project = self.folder.filter(|folder| folder.starts_with('/')).map(|folder| joined("/", folder));
        let project = project.as_deref();
        let seen = self.see(project);
        let targets = || seen.acts.iter().flat_map(|act| &act.targets);
        let is_certain = seen.verb != Verb::Unknown.name();
        let inside = targets().all(|target| is_inside(target, project)) && (!seen.on_files || project.is_some());
        let secret = seen.acts.iter().any(|act| act.is_secret)
            || targets().any(|target| is_secret(&target.shown) || target.places.iter().flatten().any(|place| is_secret(place)));
        let lost = seen.acts.iter().any(|act| destroys(act, project));
        let raised = seen.acts.iter().any(|act| act.is_raised);
        let fetches = seen.acts.iter().any(|act| act.verb == Verb::NetFetch);
        let shown: Vec<Value> = seen.acts.iter().take(ACTS_SHOWN).map(|act| shown(&seen, act, project)).collect();
        let target = targets().next().map(|target| seen.shown(&target.shown)).unwrap_or_default();
        let arguments = json!({
            "input": veil::kept(self.input), "cwd": self.folder, "acts": shown, "more_acts": seen.acts.len().saturating_sub(ACTS_SHOWN),
            "certain": is_certain, "inside": inside, "secret": secret, "destroys": lost, "raised": raised, "fetches": fetches,
        });
        let domain = if seen.domain == PROJECT && !inside { OUTSIDE.to_owned() } else { seen.domain.clone() };
        Act { kind: seen.verb, tool: self.tool.to_owned(), domain, action: cut(&seen.action, 120), target: cut(&target, 500), arguments, ..Act::default() }
    }

    /// Binds the exact call, with what is not kept of it, to a salt: nobody can guess it from the record.
    pub(super) fn seal(&self, salt: &str) -> Result<String> {
        let exact = canonical_value("tool_input", &json!([self.tool, self.input, self.folder]))?;
        Ok(hex(&Sha256::new().chain_update(salt).chain_update("\n").chain_update(exact).finalize()))
    }

    fn see(&self, project: Option<&str>) -> Seen {
        let name = self.tool.to_lowercase();
        if matches!(name.as_str(), "bash" | "shell" | "run_shell_command" | "exec_command" | "local_shell" | "run_terminal_cmd" | "monitor") {
            return self.see_lines(project);
        }
        if let Some((server, tool)) = mcp(self.tool) {
            let is_desk = self.server.is_desk(server);
            let (verb, domain) = if is_desk { (DESK_CALL, CLIENT.to_owned()) } else { (TOOL_CALL, format!("mcp.{}", cut(server, 64))) };
            return Seen { verb: verb.to_owned(), domain, action: tool.to_owned(), acts: Vec::new(), on_files: false, hides: false };
        }
        let files = |verb: Verb| {
            let targets = self.files(&name, project).unwrap_or_default();
            // Of what names no file that is understood here, nobody knows what it reaches.
            let verb = if targets.is_empty() { Verb::Unknown } else { verb };
            let act = ShellAct { verb, program: self.tool.to_owned(), targets, ..ShellAct::look(Target::default()) };
            Seen { verb: verb.name().to_owned(), domain: PROJECT.to_owned(), action: self.tool.to_owned(), acts: vec![act], on_files: true, hides: false }
        };
        let plain = |verb: &str, domain: &str| Seen {
            verb: verb.to_owned(),
            domain: domain.to_owned(),
            action: self.tool.to_owned(),
            acts: Vec::new(),
            on_files: false,
            hides: false,
        };
        match name.as_str() {
            "read"
            | "read_file"
            | "read_many_files"
            | "notebookread"
            | "view"
            | "view_image"
            | "ls"
            | "list_directory"
            | "list_dir"
            | "glob"
            | "grep"
            | "search_file_content"
            | "grep_search"
            | "tabread" => files(Verb::FileRead),
            "write" | "write_file" | "edit" | "multiedit" | "replace" | "strreplace" | "notebookedit" | "apply_patch" | "tabwrite" => files(Verb::FileWrite),
            "delete" | "delete_file" => files(Verb::FileDelete),
            "webfetch" | "web_fetch" | "websearch" | "web_search" | "google_web_search" => {
                let to = self.text(&["url", "query", "prompt"]).unwrap_or_default();
                let target = Target { shown: to.to_owned(), places: None };
                let act = ShellAct { verb: Verb::NetFetch, program: self.tool.to_owned(), ..ShellAct::look(target) };
                Seen { acts: vec![act], ..plain(Verb::NetFetch.name(), WEB) }
            }
            "todowrite"
            | "todoread"
            | "write_todos"
            | "update_plan"
            | "enterplanmode"
            | "exitplanmode"
            | "askuserquestion"
            | "bashoutput"
            | "taskoutput"
            | "taskcreate"
            | "taskupdate"
            | "tasklist"
            | "taskget"
            | "taskstop"
            | "toolsearch"
            | "skill"
            | "task"
            | "agent"
            | "killshell"
            | "killbash"
            | "listmcpresourcestool"
            | "save_memory"
            | "sendmessage" => plain(CLIENT_OWN, CLIENT),
            _ => plain(Verb::Unknown.name(), CLIENT),
        }
    }

    /// What a line of a shell does.
    fn see_lines(&self, project: Option<&str>) -> Seen {
        let (lines, folders) = (self.said(&LINES), self.said(&FOLDERS));
        // Without a line nobody knows what it runs.
        let line = if lines.is_empty() { UNSEEN.to_owned() } else { lines.iter().map(|line| line.unwrap_or(UNSEEN)).collect::<Vec<_>>().join("\n") };
        let own: Vec<String> = folders.iter().flatten().map(|own| joined(project.unwrap_or("/"), own)).collect();
        let is_one = lines.len() < 2 && folders.len() < 2 && own.len() == folders.len();
        let folder = if folders.is_empty() { project } else { own.first().filter(|_| is_one).map(String::as_str) };
        let mut acts = shell::acts(&line, folder);
        if !is_one {
            acts.push(ShellAct::unknown("", "it says in several ways what to run, or where"));
        }
        // What names no file works on the folder that it is in.
        acts.extend(own.into_iter().map(|folder| ShellAct::look(Target { shown: folder.clone(), places: Some(vec![folder]) })));
        let verb = acts.iter().map(|act| act.verb).max().unwrap_or(Verb::FileRead);
        let action = veil::hidden(&line);
        Seen { verb: verb.name().to_owned(), domain: SHELL.to_owned(), hides: action != line, action, acts, on_files: true }
    }

    fn text(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.input.get(*name)?.as_str())
    }

    /// What differs of what the input says under some names; `None` for what is no text.
    fn said(&self, names: &[&str]) -> Vec<Option<&str>> {
        let mut said = Vec::new();
        for value in names.iter().filter_map(|name| self.input.get(*name)).filter(|value| !value.is_null()) {
            if !said.contains(&value.as_str()) {
                said.push(value.as_str());
            }
        }
        said
    }

    /// All texts that the input has under some names, alone or in lists; `None` if one is something else.
    fn texts(&self, names: &[&str]) -> Option<Vec<&str>> {
        let mut texts = Vec::new();
        for value in names.iter().filter_map(|name| self.input.get(*name)).filter(|value| !value.is_null()) {
            match value.as_array() {
                Some(list) => texts.extend(list.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?),
                None => texts.push(value.as_str()?),
            }
        }
        Some(texts)
    }

    /// The files that the input names; `None` if it names one in a way that is not understood.
    fn files(&self, name: &str, project: Option<&str>) -> Option<Vec<Target>> {
        let place = |path: &str| {
            let is_open = path.starts_with('~') || path.contains('$');
            let places = match project {
                _ if is_open => None,
                _ if path.starts_with('/') => Some(vec![joined("/", path)]),
                Some(project) => Some(vec![joined(project, path)]),
                None => None,
            };
            Target { shown: path.to_owned(), places }
        };
        let bases = self.texts(&PATHS)?;
        let mut found: Vec<Target> = bases.iter().map(|path| place(path)).collect();
        let searches = matches!(name, "grep" | "search_file_content" | "grep_search");
        // Patterns of a glob are paths, and so is what is included where nothing is searched for; of a search only its filters are.
        let patterns = match name {
            "glob" => self.texts(&["pattern", "glob", "include"])?,
            _ => self.texts(&FILTERS)?,
        };
        if name == "glob" || searches {
            for pattern in patterns.into_iter().filter(|pattern| pattern.contains('/') || pattern.contains("..") || is_secret(pattern)) {
                if bases.is_empty() || pattern.starts_with(['/', '~']) {
                    found.push(place(pattern));
                } else {
                    found.extend(bases.iter().map(|base| place(&format!("{base}/{pattern}"))));
                }
            }
        } else {
            found.extend(patterns.into_iter().map(place));
        }
        if name == "apply_patch" {
            let marks = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
            let lines = self.texts(&["command", "patch", "input"])?.into_iter().flat_map(str::lines);
            found.extend(lines.filter_map(|line| marks.iter().find_map(|mark| line.strip_prefix(mark))).map(|path| place(path.trim())));
        }
        if found.is_empty() && (searches || matches!(name, "glob" | "ls" | "list_directory" | "list_dir")) {
            found.push(place("."));
        }
        Some(found)
    }
}

/// Server and tool of a name such as `mcp__server__tool`.
pub(super) fn mcp(tool: &str) -> Option<(&str, &str)> {
    if let Some(rest) = tool.strip_prefix("mcp__").or_else(|| tool.strip_prefix("MCP:")) {
        return Some(rest.split_once("__").unwrap_or(("unnamed", rest)));
    }
    // Gemini CLI writes one line less.
    tool.strip_prefix("mcp_").map(|rest| rest.split_once('_').unwrap_or(("unnamed", rest)))
}

fn shown(seen: &Seen, act: &ShellAct, project: Option<&str>) -> Value {
    let targets: Vec<String> = act.targets.iter().take(TARGETS_SHOWN).map(|target| cut(&seen.shown(&target.shown), 300)).collect();
    let mut shown = Map::new();
    shown.insert("verb".to_owned(), json!(act.verb));
    shown.insert("program".to_owned(), json!(cut(&seen.shown(&act.program), 120)));
    shown.insert("targets".to_owned(), json!(targets));
    shown.insert("inside".to_owned(), json!(act.targets.iter().all(|target| is_inside(target, project))));
    if act.is_recursive {
        shown.insert("recursive".to_owned(), json!(true));
    }
    if let Some(why) = act.why {
        shown.insert("why".to_owned(), json!(why));
    }
    Value::Object(shown)
}

/// The beginning of a text, in one line.
pub(super) fn cut(text: &str, chars: usize) -> String {
    let mut line: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).take(chars + 1).collect();
    if line.chars().count() > chars {
        line = line.chars().take(chars.saturating_sub(1)).collect();
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(tool: &str, input: &Value) -> Act {
        ToolCall { tool, input, folder: Some("/p"), server: Server::default() }.act()
    }

    #[test]
    fn tools_have_verbs_and_domains() {
        for (tool, input, kind, domain, inside) in [
            ("Bash", json!({ "command": "ls" }), "file.read", SHELL, true),
            ("Bash", json!({ "command": "cat /etc/passwd" }), "file.read", SHELL, false),
            ("Bash", json!({ "command": "cat ../x" }), "file.read", SHELL, false),
            ("Bash", json!({}), "unknown", SHELL, true),
            ("run_shell_command", json!({ "command": "rm -rf x" }), "file.delete", SHELL, true),
            ("Shell", json!({ "command": "ls", "working_directory": "/etc" }), "file.read", SHELL, false),
            ("Bash", json!({ "command": "cd /etc && ls" }), "file.read", SHELL, false),
            ("Shell", json!({ "command": "cat passwd", "working_directory": "/etc" }), "file.read", SHELL, false),
            ("Read", json!({ "file_path": "/p/a" }), "file.read", PROJECT, true),
            ("Read", json!({ "file_path": "/q/a" }), "file.read", OUTSIDE, false),
            // Whatever a tool calls the file that it reads: where none is understood, nobody knows what it reaches.
            ("Read", json!({}), "unknown", PROJECT, true),
            ("Read", json!({ "uri": "/etc/shadow" }), "unknown", PROJECT, true),
            ("read_file", json!({ "target": "~/.ssh/id_rsa" }), "unknown", PROJECT, true),
            ("view_image", json!({ "path": { "of": "/etc" } }), "unknown", PROJECT, true),
            ("Read", json!({ "file_path": "a", "path": 1 }), "unknown", PROJECT, true),
            ("read_many_files", json!({ "paths": "/etc/shadow" }), "file.read", OUTSIDE, false),
            ("read_many_files", json!({ "include": ["a", "/etc/shadow"] }), "file.read", OUTSIDE, false),
            ("read_many_files", json!({ "include": ["a", { "path": "/etc/shadow" }] }), "unknown", PROJECT, true),
            ("list_directory", json!({}), "file.read", PROJECT, true),
            // Every name under which a client may have it counts.
            ("Grep", json!({ "pattern": "x", "file_path": "a", "path": "/etc" }), "file.read", OUTSIDE, false),
            ("Write", json!({ "file_path": "a", "path": "/etc/a" }), "file.write", OUTSIDE, false),
            ("list_dir", json!({ "path": "a", "target_directory": "/etc" }), "file.read", OUTSIDE, false),
            ("exec_command", json!({ "command": "ls", "cmd": "rm -rf x" }), "unknown", SHELL, true),
            ("exec_command", json!({ "command": "ls", "cmd": "ls" }), "file.read", SHELL, true),
            ("exec_command", json!({ "cmd": "ls", "command": ["ls"] }), "unknown", SHELL, true),
            ("exec_command", json!({ "cmd": "ls", "workdir": "a", "cwd": "/etc" }), "unknown", SHELL, false),
            ("exec_command", json!({ "cmd": "ls", "workdir": ["/etc"] }), "unknown", SHELL, true),
            ("exec_command", json!({ "cmd": "ls", "workdir": null, "cwd": "a" }), "file.read", SHELL, true),
            ("Grep", json!({ "pattern": "/etc" }), "file.read", PROJECT, true),
            ("Grep", json!({ "pattern": "x", "path": "/etc" }), "file.read", OUTSIDE, false),
            ("Glob", json!({ "pattern": "../**" }), "file.read", OUTSIDE, false),
            ("Glob", json!({ "pattern": "**/*.rs" }), "file.read", PROJECT, true),
            ("Write", json!({ "file_path": "a", "content": "x" }), "file.write", PROJECT, true),
            ("Edit", json!({ "file_path": "/p/../q" }), "file.write", OUTSIDE, false),
            ("Write", json!({}), "unknown", PROJECT, true),
            ("apply_patch", json!({ "command": "*** Begin Patch\n*** Update File: src/a\n*** Delete File: /etc/x\n" }), "file.write", OUTSIDE, false),
            ("WebFetch", json!({ "url": "https://example.org" }), "net.fetch", WEB, false),
            ("mcp__crm__update", json!({}), "tool.call", "mcp.crm", true),
            ("mcp__deskmate__bridge_send_message", json!({}), "desk.call", CLIENT, true),
            ("TodoWrite", json!({}), "client.own", CLIENT, true),
            ("Mystery", json!({}), "unknown", CLIENT, true),
        ] {
            let act = act(tool, &input);
            assert_eq!((act.kind.as_str(), act.domain.as_str(), &act.arguments["inside"]), (kind, domain, &json!(inside)), "{tool} {input}");
        }
        assert_eq!(act("Read", &json!({ "file_path": "/p/.env" })).arguments["secret"], true);
        // A search for everything in one file reads it, whatever the client calls its filter.
        for filter in ["glob", "include", "include_pattern"] {
            let searched = act("grep_search", &json!({ "pattern": "", filter: ".env" }));
            assert_eq!((&searched.arguments["secret"], &searched.arguments["inside"]), (&json!(true), &json!(true)), "{filter}");
            let searched = act("grep_search", &json!({ "pattern": "x", "dir_path": "a", filter: ["*.rs"] }));
            assert_eq!((&searched.arguments["secret"], &searched.arguments["inside"]), (&json!(false), &json!(true)), "{filter}");
            assert_eq!(act("grep_search", &json!({ "pattern": "x", "dir_path": "a", filter: "../../q/*" })).arguments["inside"], false, "{filter}");
        }
        assert_eq!(act("Bash", &json!({ "command": "rm -rf /" })).arguments["destroys"], true);
        assert_eq!(act("exec_command", &json!({ "command": "ls", "cmd": "rm -rf /" })).arguments["destroys"], true);
        let nowhere = ToolCall { tool: "Read", input: &json!({ "file_path": "a" }), folder: None, server: Server::default() }.act();
        assert_eq!(nowhere.arguments["inside"], false);
    }

    #[test]
    fn the_seal_is_of_exactly_this_call() {
        let (one, other) =
            (json!({ "command": "echo hunter2222 | login --password hunter2222" }), json!({ "command": "echo hunter3333 | login --password hunter3333" }));
        let call = |input| ToolCall { tool: "Bash", input, folder: Some("/p"), server: Server::default() };
        assert_eq!(call(&one).seal("s").unwrap(), call(&one).seal("s").unwrap());
        assert_ne!(call(&one).seal("s").unwrap(), call(&one).seal("t").unwrap());
        assert_ne!(call(&one).seal("s").unwrap(), call(&other).seal("s").unwrap());
        assert_ne!(ToolCall { folder: Some("/q"), ..call(&one) }.seal("s").unwrap(), call(&one).seal("s").unwrap());
    }
}
