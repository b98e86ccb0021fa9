//! The clients that a desk can be connected to: which file each reads, in which shape, and what it calls things.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use deskmate_core::{Code, Error, Result};
use serde::Serialize;

use crate::{config, hook};

/// A client that reads MCP servers from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Host {
    ClaudeCode,
    /// Claude Desktop, and Cowork in it
    ClaudeDesktop,
    Codex,
    Cursor,
    /// Gemini CLI
    Gemini,
    /// Visual Studio Code
    Vscode,
}

/// For whom an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scope {
    /// Everything you do with the client
    User,
    /// One folder, in a file that is usually committed
    Project,
    /// Claude Code only: a plugin in a marketplace of its own, for you to install
    Plugin,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json(Leniency),
    Toml,
}

/// What beyond JSON a client reads in its file. A file that its client cannot read is broken, whoever else could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leniency {
    pub(super) comments: bool,
    pub(super) trailing_commas: bool,
}

const STRICT: Leniency = Leniency { comments: false, trailing_commas: false };

impl Host {
    pub(crate) const ALL: [Self; 6] = [Self::ClaudeCode, Self::ClaudeDesktop, Self::Codex, Self::Cursor, Self::Gemini, Self::Vscode];

    /// As people call it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::Gemini => "Gemini CLI",
            Self::Vscode => "VS Code",
        }
    }

    /// As the command line calls it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
            Self::Vscode => "vscode",
        }
    }

    /// What its agent is called where nobody said.
    pub(crate) fn agent(self) -> &'static str {
        match self {
            Self::ClaudeCode => "code",
            Self::ClaudeDesktop => "cowork",
            other => other.word(),
        }
    }

    /// As what its hooks are answered, if it has hooks that a program answers.
    pub(crate) fn hooks(self) -> Option<hook::Client> {
        match self {
            Self::ClaudeCode => Some(hook::Client::ClaudeCode),
            Self::Codex => Some(hook::Client::Codex),
            Self::Cursor => Some(hook::Client::Cursor),
            Self::Gemini => Some(hook::Client::Gemini),
            Self::ClaudeDesktop | Self::Vscode => None,
        }
    }

    /// How the file with its hooks is written.
    pub(super) fn hooks_format(self) -> Format {
        if self == Self::Codex { Format::Json(STRICT) } else { self.format() }
    }

    /// The setting without which it does not heed its hooks, in the file with its servers.
    pub(super) fn hooks_switch(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Codex => Some(["features", "hooks"]),
            Self::Gemini => Some(["hooksConfig", "enabled"]),
            _ => None,
        }
    }

    pub(super) fn format(self) -> Format {
        match self {
            Self::Codex => Format::Toml,
            Self::ClaudeCode | Self::ClaudeDesktop => Format::Json(STRICT),
            Self::Gemini => Format::Json(Leniency { comments: true, trailing_commas: false }),
            Self::Cursor | Self::Vscode => Format::Json(Leniency { comments: true, trailing_commas: true }),
        }
    }

    /// The part of the file that holds the servers.
    pub(super) fn section(self) -> &'static str {
        match self {
            Self::Codex => "mcp_servers",
            Self::Vscode => "servers",
            _ => "mcpServers",
        }
    }

    /// What a person does for the client to read its file again.
    pub(crate) fn afterwards(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code reads it when it starts; `claude mcp list` shows it.",
            Self::ClaudeDesktop => "Claude Desktop reads it when it starts: quit it and start it again.",
            Self::Codex => "Codex reads it when it starts; /mcp shows it.",
            Self::Cursor => "Cursor shows it in its settings under MCP; turn it on there if it is off.",
            Self::Gemini => "Gemini CLI reads it when it starts; `gemini mcp list` shows it.",
            Self::Vscode => "VS Code asks whether to trust it when it starts it; MCP: List Servers shows it.",
        }
    }
}

impl Scope {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Plugin => "plugin",
        }
    }

    /// Whether what is written may end up with others.
    pub(super) fn is_shared(self) -> bool {
        self != Self::User
    }
}

/// An operating system, as far as files lie elsewhere there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Os {
    Linux,
    Mac,
    Windows,
}

impl Os {
    fn here() -> Self {
        if cfg!(target_os = "macos") {
            Self::Mac
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }
}

/// Where the files of clients lie for somebody.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(super) os: Os,
    pub(super) home: PathBuf,
    /// Where programs with windows keep their settings.
    pub(super) settings: PathBuf,
    /// What the clients' own variables say.
    pub(super) claude: Option<PathBuf>,
    pub(super) codex: Option<PathBuf>,
    pub(super) gemini: Option<PathBuf>,
    /// The folder of the project.
    pub(super) project: PathBuf,
}

impl Places {
    /// The places of whoever runs this, and of the project in a folder.
    pub(crate) fn here(project: &Path) -> Result<Self> {
        let home = config::user_home().ok_or_else(|| Error::new(Code::Unavailable, "there is no home directory").hint("set HOME"))?;
        let project = project
            .canonicalize()
            .map_err(|error| Error::invalid("dir", format!("{}: {error}", project.display())))
            .and_then(|found| if found.is_dir() { Ok(found) } else { Err(Error::invalid("dir", format!("{} is no folder", found.display()))) })?;
        let folder = |name: &str| config::env(name).map(PathBuf::from);
        let os = Os::here();
        let settings = settings_folder(os, &home, folder("XDG_CONFIG_HOME"), folder("APPDATA"));
        let (claude, codex, gemini) = (folder("CLAUDE_CONFIG_DIR"), folder("CODEX_HOME"), folder("GEMINI_CLI_HOME"));
        Ok(Self { os, home, settings, claude, codex, gemini, project })
    }

    /// The file with the servers of a client.
    pub(crate) fn servers(&self, host: Host, scope: Scope) -> Result<PathBuf> {
        if scope == Scope::Plugin {
            return Err(no_such_scope(host, scope));
        }
        let in_project = scope == Scope::Project;
        Ok(match host {
            Host::ClaudeCode if in_project => self.project.join(".mcp.json"),
            Host::ClaudeCode => self.claude.as_ref().unwrap_or(&self.home).join(".claude.json"),
            Host::ClaudeDesktop if in_project => return Err(no_such_scope(host, scope)),
            Host::ClaudeDesktop => self.settings.join("Claude").join("claude_desktop_config.json"),
            Host::Codex if in_project => self.project.join(".codex").join("config.toml"),
            Host::Codex => self.codex.clone().unwrap_or_else(|| self.home.join(".codex")).join("config.toml"),
            Host::Cursor => self.base(in_project).join(".cursor").join("mcp.json"),
            Host::Gemini if in_project => self.project.join(".gemini").join("settings.json"),
            Host::Gemini => self.gemini.as_ref().unwrap_or(&self.home).join(".gemini").join("settings.json"),
            Host::Vscode if in_project => self.project.join(".vscode").join("mcp.json"),
            Host::Vscode => self.settings.join("Code").join("User").join("mcp.json"),
        })
    }

    /// The file with a client's hooks, if it has hooks that a program answers.
    pub(super) fn hooks(&self, host: Host, scope: Scope) -> Option<PathBuf> {
        let in_project = scope == Scope::Project;
        Some(match host {
            Host::ClaudeCode if in_project => self.project.join(".claude").join("settings.json"),
            Host::ClaudeCode => self.claude.clone().unwrap_or_else(|| self.home.join(".claude")).join("settings.json"),
            // Beside the file with its servers, and with Gemini CLI in it.
            Host::Codex | Host::Cursor => self.servers(host, scope).ok()?.with_file_name("hooks.json"),
            Host::Gemini => self.servers(host, scope).ok()?,
            Host::ClaudeDesktop | Host::Vscode => return None,
        })
    }

    fn base(&self, in_project: bool) -> &Path {
        if in_project { &self.project } else { &self.home }
    }

    /// The project's folder.
    pub(crate) fn project(&self) -> &Path {
        &self.project
    }

    /// A path as somebody would write it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(rest) if self.os != Os::Windows => format!("~/{}", rest.display()),
            _ => path.display().to_string(),
        }
    }
}

fn settings_folder(os: Os, home: &Path, xdg: Option<PathBuf>, appdata: Option<PathBuf>) -> PathBuf {
    match os {
        Os::Linux => xdg.unwrap_or_else(|| home.join(".config")),
        Os::Mac => home.join("Library").join("Application Support"),
        Os::Windows => appdata.unwrap_or_else(|| home.join("AppData").join("Roaming")),
    }
}

fn no_such_scope(host: Host, scope: Scope) -> Error {
    let (known, word) = match host {
        Host::ClaudeCode => ("user, project and plugin", scope.word()),
        Host::ClaudeDesktop => ("user only", scope.word()),
        _ => ("user and project", scope.word()),
    };
    Error::invalid("scope", format!("{} has no scope {word:?}: it has {known}", host.title()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(os: Os) -> Places {
        let home = PathBuf::from("/home/me");
        let settings = settings_folder(os, &home, None, None);
        Places { os, settings, home, claude: None, codex: None, gemini: None, project: "/src/project".into() }
    }

    #[test]
    fn every_client_has_its_file_on_every_system() {
        let user = [
            (Host::ClaudeCode, [".claude.json"; 3]),
            (
                Host::ClaudeDesktop,
                [
                    ".config/Claude/claude_desktop_config.json",
                    "Library/Application Support/Claude/claude_desktop_config.json",
                    "AppData/Roaming/Claude/claude_desktop_config.json",
                ],
            ),
            (Host::Codex, [".codex/config.toml"; 3]),
            (Host::Cursor, [".cursor/mcp.json"; 3]),
            (Host::Gemini, [".gemini/settings.json"; 3]),
            (Host::Vscode, [".config/Code/User/mcp.json", "Library/Application Support/Code/User/mcp.json", "AppData/Roaming/Code/User/mcp.json"]),
        ];
        for (host, files) in user {
            for (os, file) in [Os::Linux, Os::Mac, Os::Windows].into_iter().zip(files) {
                assert_eq!(places(os).servers(host, Scope::User).unwrap(), Path::new("/home/me").join(file), "{host:?} {os:?}");
            }
        }
        let project = [
            (Host::ClaudeCode, ".mcp.json"),
            (Host::Codex, ".codex/config.toml"),
            (Host::Cursor, ".cursor/mcp.json"),
            (Host::Gemini, ".gemini/settings.json"),
            (Host::Vscode, ".vscode/mcp.json"),
        ];
        for (host, file) in project {
            assert_eq!(places(Os::Linux).servers(host, Scope::Project).unwrap(), Path::new("/src/project").join(file), "{host:?}");
        }
        assert!(places(Os::Linux).servers(Host::ClaudeDesktop, Scope::Project).unwrap_err().to_string().contains("user only"));
    }

    #[test]
    fn the_variables_of_the_clients_are_heeded() {
        let home = Path::new("/home/me");
        assert_eq!(settings_folder(Os::Linux, home, Some("/xdg".into()), None), Path::new("/xdg"));
        assert_eq!(settings_folder(Os::Windows, home, None, Some("/roaming".into())), Path::new("/roaming"));
        let moved = Places { claude: Some("/c".into()), codex: Some("/x".into()), gemini: Some("/g".into()), ..places(Os::Linux) };
        assert_eq!(moved.servers(Host::ClaudeCode, Scope::User).unwrap(), Path::new("/c/.claude.json"));
        assert_eq!(moved.hooks(Host::ClaudeCode, Scope::User).unwrap(), Path::new("/c/settings.json"));
        assert_eq!(moved.hooks(Host::Codex, Scope::User).unwrap(), Path::new("/x/hooks.json"));
        assert_eq!(moved.hooks(Host::Gemini, Scope::User), moved.servers(Host::Gemini, Scope::User).ok());
        assert_eq!(moved.hooks(Host::Cursor, Scope::Project).unwrap(), Path::new("/src/project/.cursor/hooks.json"));
        assert_eq!(moved.hooks(Host::Vscode, Scope::User), None);
        assert_eq!(moved.servers(Host::Codex, Scope::User).unwrap(), Path::new("/x/config.toml"));
        assert_eq!(moved.servers(Host::Gemini, Scope::User).unwrap(), Path::new("/g/.gemini/settings.json"));
        assert_eq!(places(Os::Linux).hooks(Host::ClaudeCode, Scope::Project).unwrap(), Path::new("/src/project/.claude/settings.json"));
    }
}
