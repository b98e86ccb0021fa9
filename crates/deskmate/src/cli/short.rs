//! The arguments of what clients start again and again, read without the whole command line: a shim stays, and what was touched
//! once stays in its memory; a hook is a process for each of an agent's steps. Whatever is not plain `deskmate mcp …` or
//! `deskmate hook …` is left to the command line, with its help and its errors.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;

use super::{Cli, Command, Global, hook, mcp};
use crate::hook::Client;

pub(super) fn read(mut words: impl Iterator<Item = OsString>, home: Option<OsString>) -> Option<Cli> {
    let mut command = match words.next()?.to_str()? {
        "mcp" => Command::Mcp(mcp::McpArgs::default()),
        "hook" => Command::Hook(hook::HookArgs { client: Client::default(), agent: None, hold: None, server: None, project_server: false, command: None }),
        _ => return None,
    };
    let mut global = Global { home: None, json: false, token_file: None, passphrase_stdin: false };
    let mut seen = Vec::new();
    while let Some(word) = words.next() {
        let word = word.into_string().ok()?;
        let (flag, attached) = word.split_once('=').map_or((word.as_str(), None), |(flag, value)| (flag, Some(value.to_owned())));
        // Toolsets add up; anything else that is said twice is a mistake.
        if flag != "--toolset" {
            if seen.iter().any(|known| known == flag) {
                return None;
            }
            seen.push(flag.to_owned());
        }
        let switch = match (flag, &mut command) {
            ("--json", _) => Some(&mut global.json),
            ("--passphrase-stdin", _) => Some(&mut global.passphrase_stdin),
            ("--read-only", Command::Mcp(args)) => Some(&mut args.read_only),
            ("--project-server", Command::Hook(args)) => Some(&mut args.project_server),
            _ => None,
        };
        if let Some(switch) = switch {
            if attached.is_some() {
                return None;
            }
            *switch = true;
            continue;
        }
        let value = attached.or_else(|| words.next()?.into_string().ok()).filter(|value| !value.is_empty() && !value.starts_with('-'))?;
        match (flag, &mut command) {
            ("--home", _) => global.home = Some(value.into()),
            ("--token-file", _) => global.token_file = Some(value.into()),
            ("--toolset", Command::Mcp(args)) => args.toolset.extend(value.split(',').map(str::to_owned)),
            ("--agent", Command::Mcp(mcp::McpArgs { agent, .. }) | Command::Hook(hook::HookArgs { agent, .. })) => *agent = Some(value),
            ("--idle-exit", Command::Mcp(args)) => args.idle_exit = Some(value),
            ("--server", Command::Hook(args)) => args.server = Some(value),
            ("--client", Command::Hook(args)) => args.client = Client::from_str(&value, false).ok()?,
            ("--hold", Command::Hook(args)) => args.hold = Some(value.parse().ok().filter(|seconds| *seconds <= hook::HOLD)?),
            _ => return None,
        }
    }
    if global.home.is_none() {
        global.home = home.filter(|home| !home.is_empty()).map(PathBuf::from);
    }
    Some(Cli { global, command })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn told(cli: Cli) -> String {
        match cli.command {
            Command::Mcp(args) => format!("{args:?} {:?}", cli.global),
            Command::Hook(args) => format!("{args:?} {:?}", cli.global),
            _ => "another command".to_owned(),
        }
    }

    #[test]
    fn the_short_way_reads_arguments_as_the_long_one_does() {
        let good = [
            "mcp",
            "mcp --toolset bridge --agent code",
            "mcp --toolset=cowork,bridge --toolset a,b --read-only --idle-exit=5m",
            "mcp --home /tmp/x --json --token-file=/tmp/t --passphrase-stdin --agent=a=b",
            "hook",
            "hook --client gemini --agent code --hold 5",
            "hook --server desk-2 --project-server",
            "hook --home=/tmp/x --token-file /tmp/t --client=claude-code --hold=0",
        ];
        let left = [
            "status",
            "mcp --help",
            "mcp --toolset",
            "mcp --agent=",
            "mcp --agent -x",
            "mcp --agent a --agent b",
            "mcp --read-only --read-only",
            "mcp --read-only=yes",
            "mcp --client codex",
            "mcp more",
            "mcp --verbose x",
            "--home /x mcp",
            "hook --hold 26",
            "hook --hold x",
            "hook --client nobody",
            "hook --read-only",
            "hook --project-server=yes",
            "hook print-config",
            "hook --agent a --agent b",
        ];
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in good {
            let long = Cli::try_parse_from(words(&format!("deskmate {line}"))).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(read(words(line).into_iter(), None).map(told), Some(told(long)), "{line}");
        }
        for line in left {
            assert!(read(words(line).into_iter(), None).is_none(), "{line}");
        }
        let at_home = read(words("mcp").into_iter(), Some("/from/environment".into())).unwrap();
        assert_eq!(at_home.global.home, Some("/from/environment".into()));
        let elsewhere = read(words("mcp --home /y").into_iter(), Some("/from/environment".into())).unwrap();
        assert_eq!(elsewhere.global.home, Some("/y".into()));
    }
}
