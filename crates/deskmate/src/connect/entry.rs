//! What an entry for a desk says, in the words of each client, and what an entry that was found says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deskmate_core::redact;
use serde_json::{Value, json};
use url::Url;

use super::hosts::Host;
use super::known;

/// The variable that holds an agent's token.
pub(crate) const TOKEN_VARIABLE: &str = "DESKMATE_TOKEN";
/// What VS Code asks for, and keeps for itself.
pub(super) const INPUT: &str = "deskmate-token";
const AGENT_HEADER: &str = "X-Deskmate-Agent";
const AUTHORIZATION: &str = "Authorization";

/// How the client gets the agent's token.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// Not at all: the desk is open.
    None,
    /// It is written into the client's file.
    Written(String),
    /// From the environment in which the client starts, or, with VS Code, from the person.
    Asked,
    /// From a file of its own.
    File(PathBuf),
}

/// How the client reaches the desk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It starts this program.
    Stdio { command: String, home: Option<PathBuf> },
    /// It speaks to this address.
    Http { url: Url },
}

/// An entry to be written.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) way: Way,
    pub(crate) agent: Option<String>,
    pub(crate) toolsets: Vec<String>,
    pub(crate) token: Token,
}

/// A key of an entry, and what it should hold; nothing means that it should not be there.
pub(super) type Field = (Vec<&'static str>, Option<Value>);

impl Entry {
    /// The words after the program's name.
    pub(super) fn arguments(&self, home: Option<&Path>) -> Vec<String> {
        let mut words = vec!["mcp".to_owned()];
        let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        if let Some(agent) = &self.agent {
            add("--agent", agent.clone());
        }
        if !self.toolsets.is_empty() {
            add("--toolset", self.toolsets.join(","));
        }
        if let Some(home) = home {
            add("--home", home.display().to_string());
        }
        if let Token::File(file) = &self.token {
            add("--token-file", file.display().to_string());
        }
        words
    }

    /// Every key of the entry that is ours. Whatever else somebody put there stays.
    pub(super) fn fields(&self, host: Host, before: &Value) -> Vec<Field> {
        let (stdio, http) = match &self.way {
            Way::Stdio { command, home } => (Some((json!(command), json!(self.arguments(home.as_deref())))), None),
            Way::Http { url } => (None, Some(json!(url.as_str()))),
        };
        let kind = match host {
            Host::ClaudeCode | Host::Vscode => Some(json!(if http.is_some() { "http" } else { "stdio" })),
            _ => None,
        };
        let (command, arguments) = stdio.unzip();
        let token = self.token_text(host);
        let agent = http.as_ref().and(self.agent.as_ref()).map(|agent| json!(agent));
        let address = if host == Host::Gemini { "httpUrl" } else { "url" };
        let mut fields = vec![(vec!["type"], kind), (vec!["command"], command), (vec!["args"], arguments), (vec![address], http.clone())];
        if host == Host::Codex {
            // Codex takes no token in an address's entry, and hands on only the variables that it is told to.
            let asked = self.token == Token::Asked;
            let written = token.filter(|_| http.is_none() && !asked);
            fields.push((vec!["env", TOKEN_VARIABLE], written.map(Value::String)));
            fields.push((vec!["env_vars"], variables(before, asked && http.is_none())));
            fields.push((vec!["bearer_token_env_var"], (asked && http.is_some()).then(|| json!(TOKEN_VARIABLE))));
            fields.push((vec!["http_headers", AGENT_HEADER], agent));
            return fields;
        }
        let bearer = token.clone().filter(|_| http.is_some()).map(|token| json!(format!("Bearer {token}")));
        fields.push((vec!["env", TOKEN_VARIABLE], token.filter(|_| http.is_none()).map(Value::String)));
        fields.push((vec!["headers", AUTHORIZATION], bearer));
        fields.push((vec!["headers", AGENT_HEADER], agent));
        fields
    }

    /// What stands for the token in the client's file.
    fn token_text(&self, host: Host) -> Option<String> {
        match &self.token {
            Token::None | Token::File(_) => None,
            Token::Written(token) => Some(token.clone()),
            Token::Asked => Some(match host {
                Host::Cursor => format!("${{env:{TOKEN_VARIABLE}}}"),
                Host::Vscode => format!("${{input:{INPUT}}}"),
                _ => format!("${{{TOKEN_VARIABLE}}}"),
            }),
        }
    }
}

/// The variables that Codex hands on: those that were there, with ours or without it.
fn variables(before: &Value, wanted: bool) -> Option<Value> {
    let mut names: Vec<Value> = before.get("env_vars").and_then(Value::as_array).cloned().unwrap_or_default();
    let has = names.iter().any(|name| name == TOKEN_VARIABLE);
    if wanted && !has {
        names.push(json!(TOKEN_VARIABLE));
    } else if !wanted {
        names.retain(|name| name != TOKEN_VARIABLE);
    }
    (!names.is_empty()).then_some(Value::Array(names))
}

/// An entry as it stands in a client's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        /// Variables that must be there where the client starts.
        passed: Vec<String>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
        /// The variable with the token.
        bearer: Option<String>,
    },
}

impl Written {
    /// Reads an entry of any client.
    pub(crate) fn read(entry: &Value) -> Option<Self> {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        let texts = |key: &str| entry.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        let pairs = |key: &str| {
            let fields = entry.get(key).and_then(Value::as_object).into_iter().flatten();
            fields.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect::<BTreeMap<_, _>>()
        };
        if let Some(command) = text("command") {
            return Some(Self::Stdio { command, args: texts("args"), env: pairs("env"), passed: texts("env_vars") });
        }
        let url = text("httpUrl").or_else(|| text("url"))?;
        let headers = pairs("headers").into_iter().chain(pairs("http_headers")).collect();
        Some(Self::Http { url, headers, bearer: text("bearer_token_env_var") })
    }

    /// Whether it leads to a desk.
    pub(crate) fn is_ours(&self) -> bool {
        match self {
            Self::Stdio { command, args, env, passed } => {
                let takes_our_token = env.contains_key(TOKEN_VARIABLE) || passed.iter().any(|name| name == TOKEN_VARIABLE);
                known::is_ours("mcp", command, args, takes_our_token)
            }
            Self::Http { url, headers, bearer } => {
                let Ok(url) = Url::parse(url) else { return false };
                let said = headers.iter().any(|(name, value)| name.eq_ignore_ascii_case(AGENT_HEADER) || names_our_token(value));
                let named = url.query_pairs().any(|(key, _)| key == "agent");
                (url.path() == "/mcp" || url.path().starts_with("/mcp/")) && (said || named || bearer.as_deref() == Some(TOKEN_VARIABLE))
            }
        }
    }

    /// The value of a flag of the program that it starts.
    pub(crate) fn flag(&self, flag: &str) -> Option<&str> {
        let Self::Stdio { args, .. } = self else { return None };
        let attached = args.iter().find_map(|word| word.strip_prefix(flag)?.strip_prefix('='));
        attached.or_else(|| args.iter().zip(args.iter().skip(1)).find(|(word, _)| *word == flag).map(|(_, value)| value.as_str()))
    }
}

fn names_our_token(value: &str) -> bool {
    value.contains("dma_") || value.contains(TOKEN_VARIABLE) || value.contains(INPUT)
}

/// A text in which no secret can be read, for showing: no token of an agent, and nothing else that has the form of one.
pub(crate) fn without_secrets(text: &str) -> String {
    redact::text(&without_tokens(text)).text
}

fn without_tokens(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("dma_") {
        let secret = after.len() - after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-').len();
        shown.push_str(before);
        shown.push_str("dma_…");
        rest = after.get(secret..).unwrap_or_default();
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(way: Way, token: Token) -> Entry {
        let agent = matches!(token, Token::None).then(|| "code".to_owned());
        Entry { way, agent, toolsets: Vec::new(), token }
    }

    fn stdio() -> Way {
        Way::Stdio { command: "/bin/deskmate".to_owned(), home: None }
    }

    fn http() -> Way {
        Way::Http { url: Url::parse("http://127.0.0.1:7373/mcp").unwrap() }
    }

    /// The entry as one value.
    fn whole(host: Host, entry: &Entry) -> Value {
        let mut value = json!({});
        for (path, field) in entry.fields(host, &Value::Null) {
            let Some(field) = field else { continue };
            match path.as_slice() {
                [one] => value[*one] = field,
                [one, two] => value[*one][*two] = field,
                _ => panic!("{path:?}"),
            }
        }
        value
    }

    #[test]
    fn every_client_gets_its_own_words() {
        let args = json!(["mcp", "--agent", "code"]);
        let open = entry(stdio(), Token::None);
        assert_eq!(whole(Host::ClaudeCode, &open), json!({ "type": "stdio", "command": "/bin/deskmate", "args": args }));
        assert_eq!(whole(Host::Vscode, &open), json!({ "type": "stdio", "command": "/bin/deskmate", "args": args }));
        for host in [Host::ClaudeDesktop, Host::Codex, Host::Cursor, Host::Gemini] {
            assert_eq!(whole(host, &open), json!({ "command": "/bin/deskmate", "args": args }), "{host:?}");
        }
        let web = entry(http(), Token::None);
        let (url, headers) = (json!("http://127.0.0.1:7373/mcp"), json!({ "X-Deskmate-Agent": "code" }));
        assert_eq!(whole(Host::ClaudeCode, &web), json!({ "type": "http", "url": url, "headers": headers }));
        assert_eq!(whole(Host::Vscode, &web), json!({ "type": "http", "url": url, "headers": headers }));
        assert_eq!(whole(Host::Cursor, &web), json!({ "url": url, "headers": headers }));
        assert_eq!(whole(Host::Gemini, &web), json!({ "httpUrl": url, "headers": headers }));
        assert_eq!(whole(Host::Codex, &web), json!({ "url": url, "http_headers": headers }));
    }

    #[test]
    fn tokens_are_told_as_each_client_can_take_them() {
        let asked = |host| whole(host, &entry(stdio(), Token::Asked));
        for host in [Host::ClaudeCode, Host::Gemini] {
            assert_eq!(asked(host)["env"], json!({ "DESKMATE_TOKEN": "${DESKMATE_TOKEN}" }), "{host:?}");
        }
        assert_eq!(asked(Host::Cursor)["env"], json!({ "DESKMATE_TOKEN": "${env:DESKMATE_TOKEN}" }));
        assert_eq!(asked(Host::Vscode)["env"], json!({ "DESKMATE_TOKEN": "${input:deskmate-token}" }));
        assert_eq!((&asked(Host::Codex)["env_vars"], &asked(Host::Codex)["env"]), (&json!(["DESKMATE_TOKEN"]), &Value::Null));
        let by_address = |host| whole(host, &entry(http(), Token::Asked));
        assert_eq!(by_address(Host::ClaudeCode)["headers"], json!({ "Authorization": "Bearer ${DESKMATE_TOKEN}" }));
        assert_eq!(by_address(Host::Cursor)["headers"], json!({ "Authorization": "Bearer ${env:DESKMATE_TOKEN}" }));
        assert_eq!(by_address(Host::Codex), json!({ "url": "http://127.0.0.1:7373/mcp", "bearer_token_env_var": "DESKMATE_TOKEN" }));
        let written = entry(stdio(), Token::Written("dma_x".to_owned()));
        assert_eq!(whole(Host::ClaudeDesktop, &written)["env"], json!({ "DESKMATE_TOKEN": "dma_x" }));
        assert_eq!(whole(Host::Codex, &written)["env"], json!({ "DESKMATE_TOKEN": "dma_x" }));
        let file = Entry { toolsets: vec!["bridge".into(), "cowork".into()], ..entry(stdio(), Token::File("/t".into())) };
        assert_eq!(whole(Host::Cursor, &file)["args"], json!(["mcp", "--toolset", "bridge,cowork", "--token-file", "/t"]));
        assert_eq!(whole(Host::Cursor, &file)["env"], Value::Null);
    }

    #[test]
    fn variables_of_others_are_handed_on_still() {
        let before = json!({ "env_vars": ["PATH"] });
        assert_eq!(variables(&before, true), Some(json!(["PATH", "DESKMATE_TOKEN"])));
        assert_eq!(variables(&json!({ "env_vars": ["PATH", "DESKMATE_TOKEN"] }), false), Some(json!(["PATH"])));
        assert_eq!(variables(&Value::Null, false), None);
    }

    #[test]
    fn entries_of_a_desk_are_known_in_whatever_form() {
        let ours = [
            json!({ "command": "deskmate", "args": ["mcp"] }),
            json!({ "command": "C:\\bin\\Deskmate.exe", "args": ["mcp", "--agent", "x"] }),
            // A program that somebody gave another name.
            json!({ "command": "/opt/dm-0.2", "args": ["mcp", "--agent", "x", "--toolset=cowork,bridge"] }),
            json!({ "command": "/opt/dm-0.2", "args": ["mcp", "--token-file", "/t", "--read-only"] }),
            json!({ "command": "/opt/dm-0.2", "args": ["mcp", "--agent", "x", "--home", "/h"] }),
            json!({ "command": "/opt/dm-0.2", "args": ["mcp"], "env": { "DESKMATE_TOKEN": "${DESKMATE_TOKEN}" } }),
            json!({ "command": "/opt/dm-0.2", "args": ["mcp"], "env_vars": ["DESKMATE_TOKEN"] }),
            json!({ "command": std::env::current_exe().unwrap(), "args": ["mcp"] }),
            json!({ "httpUrl": "http://127.0.0.1:7373/mcp/bridge?agent=code" }),
            json!({ "url": "https://desk.example.org/mcp", "headers": { "authorization": "Bearer ${DESKMATE_TOKEN}" } }),
            json!({ "url": "http://localhost/mcp", "bearer_token_env_var": "DESKMATE_TOKEN" }),
        ];
        for entry in &ours {
            assert!(Written::read(entry).unwrap().is_ours(), "{entry}");
        }
        let others = [
            json!({ "command": "deskmate", "args": ["front"] }),
            json!({ "command": "/opt/deskmate/node", "args": ["mcp"] }),
            json!({ "command": "/opt/other", "args": ["mcp", "--agent", "x"] }),
            json!({ "command": "/opt/other", "args": ["mcp", "--toolset", "all", "--port", "1"] }),
            json!({ "command": "/opt/other", "args": ["serve", "--toolset", "all"], "env": { "DESKMATE_TOKEN": "x" } }),
            json!({ "command": "/opt/other", "args": ["mcp", "--toolset"] }),
            json!({ "command": "/opt/other", "args": ["mcp", "--read-only=yes", "--toolset", "a"] }),
            json!({ "url": "https://example.org/mcp" }),
            json!({ "url": "https://example.org/other", "headers": { "X-Deskmate-Agent": "x" } }),
            json!({ "url": "no address" }),
        ];
        for entry in &others {
            assert!(!Written::read(entry).unwrap().is_ours(), "{entry}");
        }
        assert!(Written::read(&json!({ "disabled": true })).is_none());
        let flags = Written::read(&json!({ "command": "deskmate", "args": ["mcp", "--home", "/h", "--agent=a"] })).unwrap();
        assert_eq!((flags.flag("--home"), flags.flag("--agent"), flags.flag("--toolset")), (Some("/h"), Some("a"), None));
    }

    #[test]
    fn no_token_is_shown() {
        assert_eq!(without_tokens("a dma_AbC_1-2\" dma_ x"), "a dma_…\" dma_… x");
        assert_eq!(without_tokens("nothing"), "nothing");
        let file =
            "{\n  \"env\": {\n    \"GITHUB_TOKEN\": \"ghp_0123456789abcdefghijABCDEFGHIJ012345\",\n    \"DESKMATE_TOKEN\": \"${DESKMATE_TOKEN}\"\n  }\n}\n";
        let shown = without_secrets(file);
        assert!(!shown.contains("ghp_0123") && shown.contains("GITHUB_TOKEN"), "{shown}");
        assert!(shown.contains("${DESKMATE_TOKEN}"), "where a token comes from is no secret: {shown}");
        assert_eq!(shown.lines().count(), file.lines().count(), "a diff keeps its lines");
    }
}
