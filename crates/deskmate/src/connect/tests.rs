//! Connecting every client on a home directory of its own.

use std::os::unix::fs::MetadataExt;

use deskmate_core::Code;
use tempfile::TempDir;
use url::Url;

use super::hosts::Os;
use super::*;

/// A person's files and a project.
struct Fixture {
    folder: TempDir,
    places: Places,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("me");
        let project = home.join("src/project");
        std::fs::create_dir_all(&project).unwrap();
        let places = Places { os: Os::Linux, settings: home.join(".config"), home, claude: None, codex: None, gemini: None, project };
        Self { folder, places }
    }

    fn file(&self, host: Host, scope: Scope) -> PathBuf {
        self.places.servers(host, scope).unwrap()
    }

    fn read(&self, host: Host, scope: Scope) -> String {
        std::fs::read_to_string(self.file(host, scope)).unwrap()
    }

    fn write(&self, host: Host, scope: Scope, text: &str) {
        let file = self.file(host, scope);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn backups(&self) -> PathBuf {
        self.folder.path().join("backups")
    }

    fn apply(&self, edits: &[Edit]) -> Result<Vec<Applied>> {
        static NOW: std::sync::atomic::AtomicI64 = std::sync::atomic::AtomicI64::new(1);
        apply(edits, &self.backups(), NOW.fetch_add(1_000_000, std::sync::atomic::Ordering::Relaxed))
    }

    fn connect(&self, wanted: &Wanted) -> Result<Vec<Applied>> {
        self.apply(&plan(&self.places, wanted)?)
    }

    fn disconnect(&self, host: Host, scope: Scope) -> Result<Vec<Applied>> {
        self.apply(&plan_removal(&self.places, host, scope, "desk", Path::new("/nowhere"))?)
    }

    fn entry(&self, host: Host, scope: Scope) -> Value {
        let document = Document::parse(&self.read(host, scope), host.format()).unwrap();
        document.get(&[host.section(), "desk"]).unwrap().unwrap_or_default()
    }
}

fn wanted(host: Host, scope: Scope, token: Token) -> Wanted {
    let agent = (token == Token::None).then(|| host.agent().to_owned());
    let entry = Entry { way: Way::Stdio { command: "/opt/deskmate".to_owned(), home: None }, agent, toolsets: Vec::new(), token };
    Wanted { host, scope, name: "desk".to_owned(), entry, hooks: None, plugin: PathBuf::from("/nowhere") }
}

fn everywhere() -> impl Iterator<Item = (Host, Scope)> {
    let both = Host::ALL.into_iter().flat_map(|host| [(host, Scope::User), (host, Scope::Project)]);
    both.filter(|place| *place != (Host::ClaudeDesktop, Scope::Project))
}

/// Something of somebody else's in the file of each client.
fn foreign(host: Host) -> (&'static str, &'static str) {
    match host {
        Host::Codex => ("# my settings\nmodel = \"o\" # best\n\n[mcp_servers.other]\ncommand = \"x\"\n", "# my settings"),
        Host::ClaudeCode | Host::ClaudeDesktop => {
            ("{\n  \"zeta\": 1,\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  },\n  \"alpha\": [1, 2]\n}\n", "\"zeta\": 1")
        }
        Host::Vscode => ("{\n  // my servers\n  \"servers\": {\n    \"other\": { \"command\": \"x\" }, // keep\n  },\n}\n", "// keep"),
        Host::Cursor | Host::Gemini => ("{\n  // my servers\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" } // keep\n  }\n}\n", "// keep"),
    }
}

#[test]
fn every_client_is_connected_once_and_disconnected_again() {
    for (host, scope) in everywhere() {
        let fixture = Fixture::new();
        assert_eq!(fixture.connect(&wanted(host, scope, Token::None)).unwrap().len(), 1, "{host:?} {scope:?}");
        let entry = fixture.entry(host, scope);
        assert_eq!(entry["command"], "/opt/deskmate", "{host:?} {scope:?}");
        assert_eq!(entry["args"], json!(["mcp", "--agent", host.agent()]));
        assert!(!entry.to_string().contains("idle"));
        let once = fixture.read(host, scope);
        assert!(fixture.connect(&wanted(host, scope, Token::None)).unwrap().is_empty(), "{host:?} {scope:?}: a second time writes nothing");
        assert_eq!(fixture.read(host, scope), once);
        assert!(!fixture.backups().exists(), "there was nothing to keep");
        assert_eq!(fixture.disconnect(host, scope).unwrap().len(), 1);
        assert_eq!(fixture.entry(host, scope), Value::Null);
        assert!(fixture.disconnect(host, scope).unwrap().is_empty());
    }
}

#[test]
fn what_others_wrote_stays_in_its_form_and_order() {
    for (host, scope) in everywhere() {
        let fixture = Fixture::new();
        let (text, mark) = foreign(host);
        fixture.write(host, scope, text);
        let applied = fixture.connect(&wanted(host, scope, Token::None)).unwrap();
        assert_eq!(std::fs::read_to_string(applied[0].backup.as_ref().unwrap()).unwrap(), text, "{host:?}");
        let written = fixture.read(host, scope);
        let bare = written.replace(',', "");
        assert!(written.contains(mark) && text.lines().all(|line| bare.contains(&line.replace(',', ""))), "{host:?}\n{written}");
        if host == Host::ClaudeCode {
            assert!(written.find("zeta") < written.find("alpha"), "{written}");
        }
        fixture.disconnect(host, scope).unwrap();
        assert_eq!(fixture.read(host, scope), text, "{host:?} {scope:?}");
    }
}

#[test]
fn broken_files_are_left_alone() {
    for (host, scope) in everywhere() {
        let list = if host == Host::Codex { "mcp_servers = []\n".to_owned() } else { format!("{{\"{}\": []}}", host.section()) };
        for broken in ["{ \"a\": ", "\u{0}", list.as_str()] {
            let fixture = Fixture::new();
            fixture.write(host, scope, broken);
            let error = fixture.connect(&wanted(host, scope, Token::None)).unwrap_err();
            assert!(error.code == Code::Invalid && error.hint.is_some(), "{host:?}: {error}");
            assert!(error.message.contains(fixture.file(host, scope).to_str().unwrap()), "{error}");
            assert_eq!(fixture.read(host, scope), broken, "{host:?}");
            assert!(fixture.disconnect(host, scope).is_err());
        }
    }
    let fixture = Fixture::new();
    fixture.write(Host::ClaudeDesktop, Scope::User, "{ // a comment, which Claude Desktop cannot read\n}");
    assert!(fixture.connect(&wanted(Host::ClaudeDesktop, Scope::User, Token::None)).is_err());
}

#[test]
fn an_entry_of_somebody_else_is_neither_changed_nor_removed() {
    for (host, scope) in everywhere() {
        let fixture = Fixture::new();
        let text = match host {
            Host::Codex => "[mcp_servers.desk]\ncommand = \"standing-desk\"\n".to_owned(),
            _ => format!("{{\"{}\": {{\"desk\": {{\"command\": \"standing-desk\"}}}}}}", host.section()),
        };
        fixture.write(host, scope, &text);
        assert_eq!(fixture.connect(&wanted(host, scope, Token::None)).unwrap_err().code, Code::Conflict);
        assert_eq!(fixture.disconnect(host, scope).err().unwrap().code, Code::Conflict);
        assert_eq!(fixture.read(host, scope), text);
        let other = Wanted { name: "mate".to_owned(), ..wanted(host, scope, Token::None) };
        assert_eq!(fixture.connect(&other).unwrap().len(), 1, "another name will do");
    }
}

#[test]
fn an_entry_is_brought_up_to_date_and_keeps_what_was_added_to_it() {
    let fixture = Fixture::new();
    let text = "{\"mcpServers\": {\"desk\": {\n  \"type\": \"stdio\",\n  \"command\": \"/old/deskmate\",\n  \"args\": [\"mcp\", \"--idle-exit\", \"5m\"],\n  \"env\": { \"MINE\": \"1\", \"DESKMATE_TOKEN\": \"dma_old\" },\n  \"alwaysLoad\": true\n}}}\n";
    fixture.write(Host::ClaudeCode, Scope::User, text);
    fixture.connect(&wanted(Host::ClaudeCode, Scope::User, Token::None)).unwrap();
    let expected = json!({ "type": "stdio", "command": "/opt/deskmate", "args": ["mcp", "--agent", "code"], "env": { "MINE": "1" }, "alwaysLoad": true });
    assert_eq!(fixture.entry(Host::ClaudeCode, Scope::User), expected);
    let by_address = Way::Http { url: Url::parse("http://127.0.0.1:7373/mcp").unwrap() };
    let mut web = wanted(Host::ClaudeCode, Scope::User, Token::None);
    web.entry.way = by_address;
    fixture.connect(&web).unwrap();
    let expected =
        json!({ "type": "http", "url": "http://127.0.0.1:7373/mcp", "headers": { "X-Deskmate-Agent": "code" }, "env": { "MINE": "1" }, "alwaysLoad": true });
    assert_eq!(fixture.entry(Host::ClaudeCode, Scope::User), expected);
    fixture.connect(&wanted(Host::ClaudeCode, Scope::User, Token::None)).unwrap();
    assert_eq!(fixture.entry(Host::ClaudeCode, Scope::User).get("headers"), None, "nothing of the other way is left");
}

#[test]
fn a_token_is_written_for_the_owner_alone_and_never_where_it_is_committed() {
    for host in Host::ALL {
        let fixture = Fixture::new();
        let (text, _) = foreign(host);
        fixture.write(host, Scope::User, text);
        let secret = wanted(host, Scope::User, Token::Written("dma_secret".to_owned()));
        let edits = plan(&fixture.places, &secret).unwrap();
        assert!(!edits[0].diff(&fixture.places).contains("dma_secret") && edits[0].diff(&fixture.places).contains("dma_…"));
        fixture.apply(&edits).unwrap();
        let file = fixture.file(host, Scope::User);
        assert!(fixture.read(host, Scope::User).contains("dma_secret"));
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600, "{host:?}");
        // The same entry in a file that somebody opened up again is no reason to leave it so.
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        fixture.connect(&secret).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600, "{host:?}");
        std::fs::create_dir(fixture.places.home.join(".git")).unwrap();
        let other = wanted(host, Scope::User, Token::Written("dma_other".to_owned()));
        let refused = fixture.connect(&other).unwrap_err();
        assert!(refused.code == Code::Forbidden && refused.hint.unwrap().contains("--token-file"), "{host:?}");
        assert!(!fixture.read(host, Scope::User).contains("dma_other"));
    }
    for (host, scope) in everywhere().filter(|(_, scope)| *scope == Scope::Project) {
        let fixture = Fixture::new();
        fixture.connect(&wanted(host, scope, Token::Asked)).unwrap();
        assert!(!fixture.read(host, scope).contains("dma_s"), "{host:?}");
        assert!(fixture.read(host, scope).contains("DESKMATE_TOKEN"), "{host:?}");
        assert_eq!(std::fs::metadata(fixture.file(host, scope)).unwrap().mode() & 0o777, 0o644, "{host:?}: a project's file is for all in it");
    }
}

#[test]
fn vs_code_asks_once_for_the_token() {
    let fixture = Fixture::new();
    fixture.write(Host::Vscode, Scope::Project, "{\n  \"inputs\": [\n    { \"id\": \"mine\", \"type\": \"promptString\" } // my key\n  ]\n}\n");
    let asked = wanted(Host::Vscode, Scope::Project, Token::Asked);
    fixture.connect(&asked).unwrap();
    fixture.connect(&Wanted { name: "second".to_owned(), ..wanted(Host::Vscode, Scope::Project, Token::Asked) }).unwrap();
    let inputs = |fixture: &Fixture| Document::parse(&fixture.read(Host::Vscode, Scope::Project), Host::Vscode.format()).unwrap().list(&["inputs"]).unwrap();
    assert_eq!(inputs(&fixture).len(), 2);
    assert!(inputs(&fixture)[1]["password"] == true && inputs(&fixture)[1]["id"] == "deskmate-token");
    fixture.disconnect(Host::Vscode, Scope::Project).unwrap();
    assert_eq!(inputs(&fixture).len(), 2, "the other entry still needs it");
    fixture.apply(&plan_removal(&fixture.places, Host::Vscode, Scope::Project, "second", Path::new("/")).unwrap()).unwrap();
    assert_eq!(inputs(&fixture).len(), 1);
    assert!(fixture.read(Host::Vscode, Scope::Project).contains("// my key"));
}

fn has_hooks(fixture: &Fixture, host: Host, scope: Scope) -> bool {
    hooked(&fixture.places, host, Path::new("/nowhere")).iter().any(|found| found.scope == scope)
}

#[test]
fn hooks_come_and_go_with_the_last_entry() {
    for scope in [Scope::User, Scope::Project] {
        let fixture = Fixture::new();
        let settings = fixture.places.hooks(Host::ClaudeCode, scope).unwrap();
        std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
        let text = "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [{ \"hooks\": [{ \"type\": \"command\", \"command\": \"bell\" }] }]\n  }\n}\n";
        std::fs::write(&settings, text).unwrap();
        let hooked = Wanted { hooks: Some("/opt/deskmate hook".to_owned()), ..wanted(Host::ClaudeCode, scope, Token::None) };
        assert_eq!(fixture.connect(&hooked).unwrap().len(), 2);
        assert!(fixture.connect(&hooked).unwrap().is_empty());
        assert!(has_hooks(&fixture, Host::ClaudeCode, scope));
        let written: Value = serde_json::from_str(&std::fs::read_to_string(&settings).unwrap()).unwrap();
        assert_eq!(written["hooks"]["PreToolUse"][0]["hooks"][0]["onFailure"], "block");
        assert_eq!(written["hooks"]["Stop"][0]["hooks"][0]["command"], "bell");
        fixture.connect(&Wanted { name: "second".to_owned(), ..wanted(Host::ClaudeCode, scope, Token::None) }).unwrap();
        fixture.disconnect(Host::ClaudeCode, scope).unwrap();
        assert!(has_hooks(&fixture, Host::ClaudeCode, scope), "another entry is there still");
        fixture.apply(&plan_removal(&fixture.places, Host::ClaudeCode, scope, "second", Path::new("/")).unwrap()).unwrap();
        let left: Value = serde_json::from_str(&std::fs::read_to_string(&settings).unwrap()).unwrap();
        assert_eq!(left, serde_json::from_str::<Value>(text).unwrap());
    }
}

#[test]
fn other_clients_get_their_hooks_in_their_own_words() {
    for (host, event) in [(Host::Codex, "PreToolUse"), (Host::Cursor, "preToolUse"), (Host::Gemini, "BeforeTool")] {
        for scope in [Scope::User, Scope::Project] {
            let fixture = Fixture::new();
            let (text, _) = foreign(host);
            fixture.write(host, scope, text);
            let hooked = Wanted { hooks: Some(format!("/opt/deskmate hook --client {}", host.word())), ..wanted(host, scope, Token::None) };
            let files = if host == Host::Gemini { 1 } else { 2 };
            assert_eq!(fixture.connect(&hooked).unwrap().len(), files, "{host:?}");
            assert!(fixture.connect(&hooked).unwrap().is_empty(), "{host:?}: a second time changes nothing");
            assert!(has_hooks(&fixture, host, scope));
            let path = fixture.places.hooks(host, scope).unwrap();
            let written = Document::parse(&std::fs::read_to_string(&path).unwrap(), host.hooks_format()).unwrap().get(&["hooks"]).unwrap().unwrap();
            assert!(written[event][0].to_string().contains("/opt/deskmate hook --client"), "{written}");
            let servers = Document::parse(&fixture.read(host, scope), host.format()).unwrap();
            assert!(host.hooks_switch().is_none_or(|switch| servers.get(&switch).unwrap() == Some(json!(true))), "{host:?} heeds them");
            fixture.disconnect(host, scope).unwrap();
            assert!(!has_hooks(&fixture, host, scope), "{host:?}");
        }
    }
    assert!(Host::Vscode.hooks().is_none() && Host::ClaudeDesktop.hooks().is_none());
}

#[test]
fn nothing_is_written_when_one_of_two_files_is_broken() {
    let fixture = Fixture::new();
    let settings = fixture.places.hooks(Host::ClaudeCode, Scope::User).unwrap();
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, "{ broken").unwrap();
    let hooked = Wanted { hooks: Some("deskmate hook".to_owned()), ..wanted(Host::ClaudeCode, Scope::User, Token::None) };
    assert!(fixture.connect(&hooked).is_err());
    assert!(!fixture.file(Host::ClaudeCode, Scope::User).exists());
}

#[test]
fn a_dry_run_shows_the_change_and_makes_none() {
    let fixture = Fixture::new();
    let (text, _) = foreign(Host::Codex);
    fixture.write(Host::Codex, Scope::User, text);
    let edits = plan(&fixture.places, &wanted(Host::Codex, Scope::User, Token::None)).unwrap();
    let diff = edits[0].diff(&fixture.places);
    assert!(diff.starts_with("--- ~/.codex/config.toml\n+++ ~/.codex/config.toml\n@@ "), "{diff}");
    assert!(diff.contains("\n+[mcp_servers.desk]\n") && diff.contains("\n+args = [\"mcp\", \"--agent\", \"codex\"]\n"), "{diff}");
    assert!(edits[0].changes());
    assert_eq!(fixture.read(Host::Codex, Scope::User), text);
    assert!(!fixture.backups().exists());
    let fresh = plan(&fixture.places, &wanted(Host::Cursor, Scope::Project, Token::None)).unwrap();
    assert!(fresh[0].diff(&fixture.places).starts_with("--- /dev/null\n"));
    assert!(!fixture.file(Host::Cursor, Scope::Project).parent().unwrap().exists());
}

#[test]
fn a_plugin_is_made_and_taken_away_whole() {
    let fixture = Fixture::new();
    let folder = fixture.places.home.join("plugin");
    let with = Wanted { plugin: folder.clone(), hooks: Some("deskmate hook".to_owned()), ..wanted(Host::ClaudeCode, Scope::Plugin, Token::Asked) };
    assert_eq!(fixture.connect(&with).unwrap().len(), 5);
    assert!(fixture.connect(&with).unwrap().is_empty());
    let read = |path: &str| serde_json::from_str::<Value>(&std::fs::read_to_string(folder.join(path)).unwrap()).unwrap();
    assert_eq!(read(".claude-plugin/marketplace.json")["plugins"][0]["source"], "./deskmate");
    assert_eq!(read("deskmate/.claude-plugin/plugin.json")["name"], "deskmate");
    let server = json!({ "type": "stdio", "command": "/opt/deskmate", "args": ["mcp"], "env": { "DESKMATE_TOKEN": "${DESKMATE_TOKEN}" } });
    assert_eq!(read("deskmate/.mcp.json")["mcpServers"]["desk"], server);
    assert_eq!(read("deskmate/hooks/hooks.json")["hooks"]["PreToolUse"][0]["hooks"][0]["onFailure"], "block");
    let without = Wanted { hooks: None, ..with };
    fixture.connect(&without).unwrap();
    assert!(!folder.join("deskmate/hooks/hooks.json").exists());
    std::fs::write(folder.join("mine.txt"), "x").unwrap();
    let removal = plan_removal(&fixture.places, Host::ClaudeCode, Scope::Plugin, "desk", &folder).unwrap();
    assert_eq!(fixture.apply(&removal).unwrap().len(), 4);
    clear_plugin(&folder);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "what is not ours stays");
    std::fs::create_dir_all(folder.join(".claude-plugin")).unwrap();
    std::fs::write(folder.join(".claude-plugin/marketplace.json"), "{\"name\": \"theirs\"}").unwrap();
    assert_eq!(fixture.connect(&without).unwrap_err().code, Code::Conflict);
}

#[test]
fn entries_are_found_wherever_they_are() {
    let fixture = Fixture::new();
    for (host, scope) in everywhere() {
        fixture.connect(&wanted(host, scope, Token::None)).unwrap();
    }
    fixture.connect(&Wanted { plugin: fixture.places.home.join("plugin"), ..wanted(Host::ClaudeCode, Scope::Plugin, Token::None) }).unwrap();
    let mut local: Value = serde_json::from_str(&fixture.read(Host::ClaudeCode, Scope::User)).unwrap();
    local["projects"] = json!({ "/src": { "mcpServers": { "mine": { "command": "deskmate", "args": ["mcp"] }, "other": { "command": "x" } } } });
    fixture.write(Host::ClaudeCode, Scope::User, &local.to_string());
    let (found, broken) = configured(&fixture.places, &fixture.places.home.join("plugin"));
    assert!(broken.is_empty());
    assert_eq!(found.len(), 13);
    assert!(found.iter().any(|entry| entry.scope == "local" && entry.name == "mine" && entry.folder == Path::new("/src")));
    let at_home = Places { project: fixture.places.home.clone(), ..fixture.places.clone() };
    let scopes: Vec<&str> = configured(&at_home, Path::new("/nowhere")).0.iter().map(|entry| entry.scope).collect();
    assert_eq!(scopes.iter().filter(|scope| **scope == "user").count(), 6, "{scopes:?}");
    assert!(!scopes.contains(&"project"), "in the home directory a person's own file is no project's: {scopes:?}");
    fixture.write(Host::Cursor, Scope::User, "{");
    let (found, broken) = configured(&fixture.places, &fixture.places.home.join("plugin"));
    assert_eq!((found.len(), broken.len()), (12, 1));
}
