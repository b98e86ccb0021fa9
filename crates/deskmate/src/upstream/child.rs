//! An upstream that is a program: started with a keeper that ends all of it, in an environment that holds nothing of the
//! desk's own, with its standard error kept.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deskmate_hands::keeper::{Held, Keeper};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use super::log::Log;
use super::spec::Spec;

/// What a program gets of the desk's environment, besides what its mount gives it: where to find programs, its person and
/// temporary files, and how to speak with people.
const KEPT: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// With which rights new files are made where nobody says otherwise. The desk's own are its owner's alone, but what a
/// mounted server writes for people is as everything else of theirs.
static UMASK: OnceLock<u32> = OnceLock::new();

/// Takes note of the rights that new files had before the desk narrowed them for itself.
pub(crate) fn remember_umask(umask: u32) {
    let _ = UMASK.set(umask);
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    code: Option<i32>,
}

impl Exit {
    /// Whether it says of itself that all was well.
    pub(super) fn is_clean(self) -> bool {
        self.code == Some(0)
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.code {
            Some(0) => f.write_str("it ended by itself (exit code 0)"),
            Some(127) => f.write_str("there is no such program (exit code 127)"),
            Some(code @ 129..=192) => write!(f, "it was ended by signal {} (exit code {code})", code - 128),
            Some(code) => write!(f, "it ended with exit code {code}"),
            None => f.write_str("its keeper was killed"),
        }
    }
}

/// A running program.
pub(super) struct Program {
    /// The keeper's process.
    keeper: u32,
    /// The program lives as long as this does.
    held: std::sync::Mutex<Option<Held>>,
    exit: watch::Receiver<Option<Exit>>,
    grace: Duration,
}

/// A program's streams.
pub(super) struct Streams {
    pub(super) read: ChildStdout,
    pub(super) write: ChildStdin,
}

/// Starts a program.
pub(super) fn start(
    (command, args, env, cwd): (&str, &[String], &BTreeMap<String, String>, Option<&Path>),
    spec: &Arc<Spec>,
    log: &Arc<Log>,
) -> Result<(Program, Streams), String> {
    if let Some(cwd) = cwd.filter(|cwd| !cwd.is_absolute()) {
        return Err(format!("the folder {} to start it in may be anywhere: give the whole path", cwd.display()));
    }
    if let Some(cwd) = cwd
        && !cwd.is_dir()
    {
        return Err(format!("there is no directory {} to start it in", cwd.display()));
    }
    let keeper = Keeper::new(spec.bounds.grace).map_err(|error| error.to_string())?.with_umask(UMASK.get().copied());
    let (started, lifeline) = keeper.command(command.as_ref(), args).map_err(|error| error.to_string())?;
    let mut started = Command::from(started);
    started.env_clear().envs(inherited(std::env::vars_os())).envs(env);
    if let Some(cwd) = cwd {
        started.current_dir(cwd);
    }
    started.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = started.spawn().map_err(|error| format!("no process could be started: {error}"))?;
    let held = lifeline.started();
    let (Some(write), Some(read), Some(errors), Some(keeper)) = (child.stdin.take(), child.stdout.take(), child.stderr.take(), child.id()) else {
        return Err("its streams could not be opened".to_owned());
    };
    let (told, exit) = watch::channel(None);
    let (log, spec_of_log) = (Arc::clone(log), Arc::clone(spec));
    tokio::spawn(async move {
        // What it wrote last belongs to how it ended, so that is read first. A daemon that it left cannot hold this up.
        let mut reading = tokio::spawn(async move { log.follow(errors, &spec_of_log).await });
        let status = child.wait().await;
        if tokio::time::timeout(Duration::from_millis(500), &mut reading).await.is_err() {
            reading.abort();
        }
        told.send_replace(Some(Exit { code: status.ok().and_then(|status| status.code()) }));
    });
    let program = Program { keeper, held: std::sync::Mutex::new(Some(held)), exit, grace: spec.bounds.grace };
    Ok((program, Streams { read, write }))
}

/// The part of an environment that programs get.
fn inherited(all: impl Iterator<Item = (OsString, OsString)>) -> impl Iterator<Item = (OsString, OsString)> {
    all.filter(|(name, _)| KEPT.iter().any(|kept| name == kept))
}

impl Program {
    /// How it ended, if it has.
    pub(super) fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// Waits for its end, but not for long.
    pub(super) async fn exit_within(&self, time: Duration) -> Option<Exit> {
        let mut exit = self.exit.clone();
        let ended = tokio::time::timeout(time, exit.wait_for(Option::is_some)).await;
        ended.ok().and_then(Result::ok).and_then(|exit| *exit)
    }

    /// Ends it and everything that it started; answers when that is done.
    pub(super) async fn end(&self) {
        drop(self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
        // The keeper waits a moment, asks, waits, ends, and sweeps.
        if self.exit_within(self.grace + Duration::from_secs(5)).await.is_none() {
            tracing::warn!(keeper = self.keeper, "the keeper of a mounted server does not end");
        }
    }

    /// The program's own process, where the system tells.
    pub(super) fn pid(&self) -> Option<u32> {
        if self.exit().is_some() {
            return None;
        }
        children(self.keeper).first().copied()
    }

    /// How much memory it and what it started hold, where the system tells.
    pub(super) fn memory(&self) -> Option<u64> {
        let mut waiting = vec![self.pid()?];
        let (mut bytes, mut seen) = (0, 0);
        while let Some(pid) = waiting.pop().filter(|_| seen < 256) {
            seen += 1;
            bytes += resident(pid).unwrap_or(0);
            waiting.extend(children(pid));
        }
        Some(bytes)
    }
}

fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

fn resident(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_desk_is_inherited() {
        let all = ["PATH", "HOME", "DESKMATE_TOKEN", "DESKMATE_HOME", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "LD_PRELOAD", "LANG"];
        let kept: Vec<_> = inherited(all.map(|name| (name.into(), "x".into())).into_iter()).map(|(name, _)| name).collect();
        assert_eq!(kept, ["PATH", "HOME", "LANG"]);
    }

    #[test]
    fn ends_are_told_in_words() {
        let told = |code| Exit { code }.to_string();
        assert!(told(Some(127)).contains("no such program") && told(Some(137)).contains("signal 9") && told(Some(3)).contains("code 3"));
    }
}
