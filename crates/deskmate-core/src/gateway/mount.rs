//! Mounts: the other MCP servers that stand behind the desk. Only what is in force names them, so one that is new, or reaches
//! further, waits for an owner like any other loosening.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use globset::Glob;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::call::Cx;
use crate::limits::{CONTENT_BYTES_MAX, MOUNT_PARTS_MAX, MOUNTS_MAX, NAME_CHARS_MAX, PATH_BYTES_MAX, URL_BYTES_MAX};
use crate::policy::{self, Parts, Section};
use crate::redact::Redactor;
use crate::{Error, Result, meter};

/// What a value begins with that is only the name of a secret.
pub const SECRET: &str = "secret:";

/// Whether callers say why they call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// Nobody asks.
    #[default]
    Off,
    /// A call without it is noted.
    Warn,
    /// A call without it is refused.
    Strict,
}

/// Whether what comes back is looked through for instructions to the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scan {
    /// It is passed on as data, with its origin.
    #[default]
    Off,
    /// It is passed on only after a scanner has seen it. Without a scanner nothing is passed on.
    Require,
}

/// Another MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Its name: the address `/mcp/NAME`, and what stands before its tools where several servers are served together.
    pub name: String,
    /// The program that is started, where it speaks over standard input and output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What the program is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// What it finds in its environment. A value `secret:NAME` is taken from the secret store when the program starts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The folder in which it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The address, where it speaks over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of every request to it. A value may name a secret, also after a word: `Bearer secret:NAME`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whether it is served.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Whether all agents share one connection: only for servers that remember nothing between two calls.
    #[serde(default)]
    pub shared: bool,
    /// The domain in which its calls are judged and trust is earned; `gateway.NAME` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// What its tools do, for rules to match: a tool's name or a glob, and a verb such as `email.send`. A tool without a verb
    /// is `tool.call`, and every call of it waits for a person unless a rule lets it pass.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub verbs: BTreeMap<String, String>,
    /// Tools that are not there for anybody: names or globs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<String>,
    /// Whether callers say why they call, in `_cowork_metadata`.
    #[serde(default)]
    pub intent: Intent,
    /// Whether what comes back is looked through for instructions to the agent.
    #[serde(default)]
    pub scan: Scan,
    /// Which personal data is taken out of what comes back, by kind, such as `email`; what looks like a secret always is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
    /// What one call of its tools costs, in units, for rules and budgets; nothing if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Where its tools act, such as `production`, for rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// How long one call may take.
    #[serde(default = "timeout")]
    pub timeout_seconds: u32,
}

fn yes() -> bool {
    true
}

fn timeout() -> u32 {
    60
}

impl Mount {
    /// The domain in which its calls are judged.
    pub fn domain(&self) -> String {
        self.domain.clone().unwrap_or_else(|| format!("gateway.{}", self.name))
    }

    /// What one call costs, in millionths of a unit.
    pub(super) fn cost(&self) -> i64 {
        self.cost.map_or(0, meter::millionths)
    }

    /// What a tool does, where somebody said so. A whole name counts before a glob, and a longer glob before a shorter one.
    pub(super) fn verb(&self, tool: &str) -> Option<&str> {
        if let Some(verb) = self.verbs.get(tool) {
            return Some(verb);
        }
        let mut fitting: Vec<_> = self.verbs.iter().filter(|(glob, _)| fits(glob, tool)).collect();
        fitting.sort_by_key(|(glob, _)| std::cmp::Reverse(glob.len()));
        fitting.first().map(|(_, verb)| verb.as_str())
    }

    /// Whether a tool is left out for everybody.
    pub(super) fn hides(&self, tool: &str) -> bool {
        self.hide.iter().any(|glob| fits(glob, tool))
    }

    /// The names of the secrets that it is given.
    pub fn secrets(&self) -> BTreeSet<&str> {
        let values = self.env.values().chain(self.headers.values());
        values.filter_map(|value| value.split_once(SECRET)).map(|(_, name)| name.trim()).collect()
    }

    /// Whether this gives agents no more than another mount of the same name did.
    fn is_within(&self, was: &Self) -> bool {
        let same = Self {
            enabled: was.enabled,
            verbs: was.verbs.clone(),
            hide: was.hide.clone(),
            redact: was.redact.clone(),
            intent: was.intent,
            scan: was.scan,
            ..self.clone()
        };
        // A verb that is taken away makes calls wait; another verb may be one that a rule lets pass.
        same == *was
            && (was.enabled || !self.enabled)
            && self.intent >= was.intent
            && self.scan >= was.scan
            && was.hide.iter().all(|glob| self.hide.contains(glob))
            && was.redact.iter().all(|kind| self.redact.contains(kind))
            && self.verbs.iter().all(|(glob, verb)| was.verbs.get(glob) == Some(verb))
    }

    fn problem(&self) -> Option<String> {
        let name = &self.name;
        let letters = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-' || letter == '_';
        if name.is_empty() || name.len() > 32 || !name.starts_with(|letter: char| letter.is_ascii_alphanumeric()) || !name.chars().all(letters) {
            return Some(format!("`{name}` is no name of a mount: write up to 32 small letters, digits, - and _"));
        }
        if crate::call::RESERVED.contains(&name.as_str()) {
            return Some(format!("`{name}` is the name of a toolset: choose another one"));
        }
        match (&self.command, &self.url) {
            (Some(command), None) if command.trim().is_empty() || command.len() > PATH_BYTES_MAX => return Some("its command is empty or too long".to_owned()),
            (Some(_), None) if !self.headers.is_empty() => return Some("headers belong to an address: leave them out, or write `url`".to_owned()),
            (None, Some(_)) if !self.args.is_empty() || !self.env.is_empty() || self.cwd.is_some() => {
                return Some("args, env and cwd belong to a command: leave them out, or write `command`".to_owned());
            }
            (None, Some(url)) => {
                if let Some(wrong) = url_problem(url) {
                    return Some(wrong);
                }
            }
            (Some(_), None) => {}
            _ => return Some(format!("`{name}` needs either a `command` or a `url`")),
        }
        if let Some(domain) = &self.domain
            && (domain.is_empty() || domain.len() > NAME_CHARS_MAX || domain.chars().any(|letter| letter.is_control() || letter.is_whitespace()))
        {
            return Some(format!("`{domain}` is no domain: write for example crm.deals"));
        }
        if let Some(environment) = &self.environment
            && (environment.is_empty() || environment.len() > NAME_CHARS_MAX || environment.chars().any(|letter| letter.is_control() || letter.is_whitespace()))
        {
            return Some(format!("`{environment}` is no environment: write for example production"));
        }
        if let Some(cost) = self.cost.filter(|cost| !(0.0..=1e9).contains(cost)) {
            return Some(format!("cost is {cost}: write what one call costs, 0 to 1000000000"));
        }
        if self.timeout_seconds == 0 || self.timeout_seconds > 600 {
            return Some(format!("timeout_seconds is {}: write 1 to 600", self.timeout_seconds));
        }
        self.parts_problem()
    }

    fn parts_problem(&self) -> Option<String> {
        let counts = [self.args.len(), self.env.len(), self.headers.len(), self.verbs.len(), self.hide.len()];
        if counts.iter().any(|count| *count > MOUNT_PARTS_MAX) {
            return Some(format!("`{}` has a list of more than {MOUNT_PARTS_MAX} entries", self.name));
        }
        let texts = self.args.iter().chain(self.env.values()).chain(self.headers.values());
        if texts.clone().any(|text| text.len() > CONTENT_BYTES_MAX || text.contains('\0')) {
            return Some(format!("`{}` has a value that is too long or holds NUL", self.name));
        }
        let variable =
            |name: &String| !name.is_empty() && !name.starts_with("DESKMATE_") && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if let Some(wrong) = self.env.keys().find(|name| !variable(name)) {
            return Some(format!("`{wrong}` is no name of a variable that a mount may be given: write letters, digits and _, and none of DESKMATE_"));
        }
        if let Some(wrong) = self.headers.keys().find(|name| !is_header(name)) {
            return Some(format!("`{wrong}` is no name of a header that can be set: write for example Authorization"));
        }
        if let Some(wrong) = self.headers.values().find(|value| value.chars().any(char::is_control)) {
            return Some(format!("a header's value holds a control character, at {} characters", wrong.len()));
        }
        if let Some(wrong) = self.secrets().into_iter().find(|name| !is_secret_name(name)) {
            return Some(format!("`{wrong}` is no name of a secret: write small letters, digits, - _ and ."));
        }
        let verb = |verb: &String| {
            verb.split('.').all(|part| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'))
        };
        if let Some(wrong) = self.verbs.values().find(|named| named.len() > NAME_CHARS_MAX || !verb(named)) {
            return Some(format!("`{wrong}` is no verb: write for example email.send"));
        }
        self.verbs.keys().chain(&self.hide).find_map(|glob| {
            let wrong = glob.is_empty() || glob.len() > NAME_CHARS_MAX || Glob::new(glob).is_err();
            wrong.then(|| format!("`{glob}` is no name or glob of tools: write for example delete_*"))
        })
    }

    /// Why this must not be written anew, though it is heeded where it is in force, and what to write: secrets in plain words, because
    /// what is in force is on the record for ever and everybody at the desk may read it, and a folder that may be anywhere.
    pub(super) fn must_not_be_written(&self) -> Option<String> {
        let name = &self.name;
        let redactor = Redactor::secrets();
        // What stands before the name of a secret is a word such as Bearer, and may be a secret as well.
        let plain = |value: &String| value.split_once(SECRET).map_or_else(|| value.clone(), |(before, _)| before.to_owned());
        let secret_in = |values: &BTreeMap<String, String>| {
            values.iter().find(|(name, value)| !redactor.leaves(&json!({ *name: plain(value) }))).map(|(name, _)| name.clone())
        };
        let told = |place: String, field: &str, write: &str| {
            let kept = format!("{name}-{}", field.to_ascii_lowercase().replace('_', "-"));
            Some(format!(
                "`{name}` has a secret {place}, and what is written here stays on the record: put it into the store with `deskmate secret set {kept}`, and write {}",
                write.replace("NAME", &kept)
            ))
        };
        if let Some(variable) = secret_in(&self.env) {
            return told(format!("in {variable}"), &variable, "`secret:NAME` in its place");
        }
        if let Some(header) = secret_in(&self.headers) {
            return told(format!("in {header}"), &header, "`secret:NAME` in its place, after the word that belongs before it, such as Bearer");
        }
        if holds_a_secret(&self.args) {
            return told("among what its program is given".to_owned(), "key", "it as a variable of its environment, with `secret:NAME` as the value");
        }
        if self.url.as_ref().is_some_and(|url| !redactor.text(url).found.is_empty()) {
            return told("in its address".to_owned(), "key", "it as a header, `Bearer secret:NAME`");
        }
        let relative = self.cwd.as_ref().filter(|cwd| !Path::new(cwd).is_absolute())?;
        Some(format!("`{name}` starts in `{relative}`, and nobody knows where that is: write the whole path"))
    }
}

/// Whether what a program is given holds a secret, alone or after the option that names it.
pub fn holds_a_secret(args: &[String]) -> bool {
    let redactor = Redactor::secrets();
    let is_secret = |text: &str| !redactor.text(text).found.is_empty();
    let is_option = |word: &String| word.starts_with('-') && !word.contains('=');
    args.iter().any(|word| is_secret(word))
        || args.iter().zip(args.iter().skip(1)).any(|(option, word)| is_option(option) && !is_option(word) && is_secret(&format!("{option} {word}")))
}

/// Why a list of mounts must not be written, and what to write.
pub(crate) fn must_not_be_written(value: &Value) -> Option<String> {
    Vec::<Mount>::deserialize(value).ok()?.iter().find_map(Mount::must_not_be_written)
}

fn fits(glob: &str, tool: &str) -> bool {
    glob == tool || Glob::new(glob).is_ok_and(|glob| glob.compile_matcher().is_match(tool))
}

fn url_problem(url: &str) -> Option<String> {
    if url.len() > URL_BYTES_MAX {
        return Some("its address is too long".to_owned());
    }
    let Ok(read) = Url::parse(url) else { return Some(format!("`{url}` is no address: write for example https://tools.example.org/mcp")) };
    if !matches!(read.scheme(), "http" | "https") || read.host_str().is_none() {
        return Some(format!("`{url}` is no address of HTTP: write for example https://tools.example.org/mcp"));
    }
    if !read.username().is_empty() || read.password().is_some() {
        return Some("an address must not hold a password: write it into the secret store, and `Authorization: Bearer secret:NAME` into headers".to_owned());
    }
    None
}

/// Headers that belong to the connection itself are not a mount's to set.
fn is_header(name: &str) -> bool {
    let own =
        ["host", "content-length", "content-type", "accept", "connection", "transfer-encoding", "upgrade", "te", "mcp-session-id", "mcp-protocol-version"];
    let lower = name.to_ascii_lowercase();
    !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') && !own.contains(&lower.as_str())
}

fn is_secret_name(name: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '_' | '.');
    !name.is_empty() && name.len() <= 64 && name.chars().all(inner) && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
}

/// What is wrong with a list of mounts, and what to write.
pub(crate) fn problem(value: &Value) -> Option<String> {
    let Some(list) = value.as_array() else {
        return Some(format!("{value} is not a list: write for example [{{ name: files, command: npx, args: [some-server] }}]"));
    };
    if list.len() > MOUNTS_MAX {
        return Some(format!("{} mounts are too many: write at most {MOUNTS_MAX}", list.len()));
    }
    let mut names = BTreeSet::new();
    list.iter().find_map(|entry| match Mount::deserialize(entry) {
        // What is wrong may be a secret that somebody wrote there, so the entry is not repeated.
        Err(error) => Some(format!("an entry is not a mount ({error}): write {{ name: files, command: npx, args: [some-server] }}")),
        Ok(mount) => {
            mount.problem().or_else(|| (!names.insert(mount.name.clone())).then(|| format!("there are two mounts called `{}`: name them apart", mount.name)))
        }
    })
}

/// Whether a list of mounts gives agents no more than another one.
pub(crate) fn tightens(was: &Value, is: &Value) -> bool {
    let read = |value: &Value| Vec::<Mount>::deserialize(value).ok();
    let (Some(was), Some(is)) = (read(was), read(is)) else { return false };
    is.iter().all(|mount| was.iter().any(|before| before.name == mount.name && mount.is_within(before)))
}

/// The mounts that are there before a change of what is in force, and not after it.
pub(crate) fn lost(before: &Parts, after: &Parts) -> Vec<String> {
    let names = |parts: &Parts| -> Vec<String> {
        let mounts = parts.settings.get("").and_then(|sections| sections.get(&Section::Gateway)).and_then(|patch| patch.get("mounts"));
        let named = mounts.and_then(Value::as_array).into_iter().flatten().filter_map(|mount| mount.get("name")?.as_str());
        named.map(str::to_owned).collect()
    };
    let left = names(after);
    names(before).into_iter().filter(|name| !left.contains(name)).collect()
}

/// The mounts in force.
pub fn all(cx: &mut Cx<'_, '_>) -> Result<Vec<Mount>> {
    Ok(policy::current(cx)?.settings("").gateway.mounts.clone())
}

/// A mount that is served, by its name.
pub(super) fn find(cx: &mut Cx<'_, '_>, name: &str) -> Result<Mount> {
    let rulebook = policy::current(cx)?;
    let mounts = &rulebook.settings("").gateway.mounts;
    match mounts.iter().find(|mount| mount.name == name) {
        Some(mount) if mount.enabled => Ok(mount.clone()),
        Some(_) => Err(Error::not_found(format!("the mount {name} is switched off")).hint("an owner switches it on with `deskmate gateway enable`")),
        None => {
            let names: Vec<&str> = mounts.iter().filter(|mount| mount.enabled).map(|mount| mount.name.as_str()).collect();
            let hint = if names.is_empty() { "an owner adds one with `deskmate gateway add`".to_owned() } else { format!("there are: {}", names.join(", ")) };
            Err(Error::not_found(format!("there is no mount {name}")).hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bad_mounts_are_told_with_what_to_write() {
        assert_eq!(problem(&json!([])), None);
        let good = json!([{ "name": "files", "command": "npx", "args": ["x"], "env": { "TOKEN": "secret:github" } },
            { "name": "far", "url": "https://tools.example.org/mcp", "headers": { "Authorization": "Bearer secret:far" }, "verbs": { "send_*": "email.send" } }]);
        assert_eq!(problem(&good), None);
        for (bad, says) in [
            (json!({}), "not a list"),
            (json!([{ "name": "A", "command": "x" }]), "no name"),
            (json!([{ "name": "cowork", "command": "x" }]), "toolset"),
            (json!([{ "name": "a" }]), "either"),
            (json!([{ "name": "a", "command": "x", "url": "https://x.example" }]), "either"),
            (json!([{ "name": "a", "url": "ftp://x.example" }]), "HTTP"),
            (json!([{ "name": "a", "url": "https://u:p@x.example" }]), "secret store"),
            (json!([{ "name": "a", "url": "https://x.example", "args": ["x"] }]), "belong to a command"),
            (json!([{ "name": "a", "command": "x", "headers": { "X-Y": "z" } }]), "belong to an address"),
            (json!([{ "name": "a", "url": "https://x.example", "headers": { "Host": "z" } }]), "header"),
            (json!([{ "name": "a", "command": "x", "env": { "DESKMATE_TOKEN": "z" } }]), "DESKMATE_"),
            (json!([{ "name": "a", "command": "x", "env": { "T": "secret:NO" } }]), "no name of a secret"),
            (json!([{ "name": "a", "command": "x", "verbs": { "x": "a b" } }]), "no verb"),
            (json!([{ "name": "a", "command": "x", "hide": ["["] }]), "glob"),
            (json!([{ "name": "a", "command": "x", "timeout_seconds": 0 }]), "1 to 600"),
            (json!([{ "name": "a", "command": "x", "cost": -1 }]), "what one call costs"),
            (json!([{ "name": "a", "command": "x", "environment": "a b" }]), "no environment"),
            (json!([{ "name": "a", "command": "x", "colour": 1 }]), "not a mount"),
            (json!([{ "name": "a", "command": "x" }, { "name": "a", "command": "y" }]), "two mounts"),
        ] {
            assert!(problem(&bad).is_some_and(|text| text.contains(says)), "{bad}: {:?}", problem(&bad));
        }
    }

    #[test]
    fn secrets_in_plain_words_and_folders_that_may_be_anywhere_must_not_be_written() {
        const KEY: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        for (bad, says) in [
            (json!({ "command": "x", "env": { "K": KEY } }), "deskmate secret set a-k"),
            (json!({ "command": "x", "env": { "DB_PASSWORD": "hunter2hunter2" } }), "deskmate secret set a-db-password"),
            (json!({ "url": "https://x.example", "headers": { "Authorization": format!("Bearer {KEY}") } }), "deskmate secret set a-authorization"),
            (json!({ "url": "https://x.example", "headers": { "Authorization": format!("{KEY} secret:x") } }), "deskmate secret set a-authorization"),
            (json!({ "url": format!("https://x.example/mcp?api_key={KEY}") }), "as a header"),
            (json!({ "command": "x", "args": [format!("--api-key={KEY}")] }), "as a variable"),
            (json!({ "command": "x", "args": ["--password", "hunter2-hunter2"] }), "as a variable"),
            (json!({ "command": "x", "cwd": "." }), "whole path"),
        ] {
            let mut mount = json!({ "name": "a" });
            mount.as_object_mut().unwrap().extend(bad.as_object().unwrap().clone());
            let told = must_not_be_written(&json!([mount])).unwrap_or_else(|| panic!("{bad}"));
            assert!(told.contains(says) && !told.contains(KEY) && !told.contains("hunter2"), "{told}");
            assert_eq!(problem(&json!([mount])), None, "what is in force is heeded");
        }
        for good in [
            json!({ "command": "npx", "args": ["-y", "some-server@1.2.3", "--verbose", "/srv/notes", "--key-file", "/etc/key"], "env": { "TOKEN": "secret:github", "MODE": "fast", "PATH": "/usr/bin" }, "cwd": "/srv" }),
            json!({ "url": "https://tools.example.org/mcp/v1", "headers": { "Authorization": "Bearer secret:far", "X-Api-Key": "secret:a-0123456789abcdefABCDEF", "X-Team": "notes" } }),
        ] {
            let mut mount = json!({ "name": "a" });
            mount.as_object_mut().unwrap().extend(good.as_object().unwrap().clone());
            assert_eq!(must_not_be_written(&json!([mount])), None);
        }
    }

    #[test]
    fn what_is_new_or_reaches_further_loosens() {
        let mount = |more: Value| {
            let mut mount = json!({ "name": "a", "command": "x" });
            mount.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!([mount])
        };
        let plain = mount(json!({}));
        assert!(tightens(&plain, &json!([])));
        assert!(tightens(&plain, &mount(json!({ "enabled": false, "hide": ["rm"], "intent": "strict", "scan": "require" }))));
        assert!(tightens(&mount(json!({ "verbs": { "x": "file.read" } })), &plain));
        for looser in [
            json!({ "command": "y" }),
            json!({ "env": { "A": "b" } }),
            json!({ "verbs": { "x": "file.read" } }),
            json!({ "shared": true }),
            json!({ "domain": "d" }),
            json!({ "cost": 2 }),
            json!({ "environment": "test" }),
        ] {
            assert!(!tightens(&plain, &mount(looser.clone())), "{looser}");
        }
        assert!(!tightens(&mount(json!({ "hide": ["x"] })), &plain));
        assert!(!tightens(&mount(json!({ "enabled": false })), &plain));
        assert!(!tightens(&json!([]), &plain));
    }

    #[test]
    fn the_nearest_verb_counts() {
        let mount: Mount =
            serde_json::from_value(json!({ "name": "a", "command": "x", "verbs": { "*": "tool.any", "send_*": "email.send", "send_draft": "email.draft" } }))
                .unwrap();
        assert_eq!(mount.verb("send_draft"), Some("email.draft"));
        assert_eq!(mount.verb("send_now"), Some("email.send"));
        assert_eq!(mount.verb("other"), Some("tool.any"));
    }
}
