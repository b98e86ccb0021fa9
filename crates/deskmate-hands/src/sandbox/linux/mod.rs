//! The stages of a sandbox on Linux. Each runs in a process of its own, which has one thread until it has restricted
//! itself, and says what failed on standard error.

mod files;
mod limits;
mod namespaces;
mod program;
mod seccomp;
mod supervise;
mod syscalls;
pub(crate) mod tree;
mod view;

pub(super) use tree::processes_of_this_account;

use rustix::stdio;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::process::ExitCode;

/// Runs the stage that these words name.
pub(super) fn stage(words: &[String]) -> ExitCode {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["probe"] => probe(),
        ["probe-view", at] => namespaces::arrive().and_then(|()| view::probe(at.as_ref())),
        ["outer", network @ ("none" | "allowed"), next @ ..] => namespaces::outer(*network == "none", next),
        ["supervise"] => supervise::supervise(false),
        ["supervise-inside"] => namespaces::arrive().and_then(|()| supervise::supervise(true)),
        ["program"] => program::become_program(),
        _ => Err("this sub-command is for the desk itself".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            drop(writeln!(io::stderr(), "{why}"));
            ExitCode::FAILURE
        }
    }
}

/// What failed, in words.
type Done<T = ()> = Result<T, String>;

/// Says what was being done when something failed.
fn told<E: Display>(what: &str) -> impl FnOnce(E) -> String {
    move |error| format!("{what}: {error}")
}

/// Finds out what can be enforced without namespaces, by doing it.
fn probe() -> Done {
    let landlock = files::version();
    let seccomp = seccomp::probe().err();
    let found = serde_json::to_string(&(landlock, seccomp)).map_err(told("answer"))?;
    io::stdout().write_all(found.as_bytes()).map_err(told("answer"))
}

/// Standard input without a buffer: what is not asked for stays in the pipe, for the program.
struct Input;

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::read(stdio::stdin(), &mut *buffer))?)
    }
}
