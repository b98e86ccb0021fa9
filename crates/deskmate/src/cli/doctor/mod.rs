//! Looking at everything that a desk and its clients need, and saying what is wrong and what to do.

mod clients;
mod desk;
mod programs;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::output::{print, say};
use super::{Failure, Global};
use crate::visible::visible;
use programs::Programs;

#[derive(Args)]
pub(super) struct DoctorArgs {
    /// Also try what the files of this folder's project say, whatever they would start or speak to
    #[arg(long)]
    trust_project: bool,
}

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    /// It works, and somebody should know.
    Warning,
    /// It does not work.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    what: String,
    state: State,
    said: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Check {
    fn new(what: &str, state: State, said: impl Into<String>) -> Self {
        Self { what: what.to_owned(), state, said: said.into(), fix: None }
    }

    fn ok(what: &str, said: impl Into<String>) -> Self {
        Self::new(what, State::Ok, said)
    }

    fn warning(what: &str, said: impl Into<String>) -> Self {
        Self::new(what, State::Warning, said)
    }

    fn problem(what: &str, said: impl Into<String>) -> Self {
        Self::new(what, State::Problem, said)
    }

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    fn tell(&self) -> Result<(), Failure> {
        let state = match self.state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Problem => "PROBLEM",
        };
        // What a client's file or a server says is shown, never obeyed.
        say(&format!("  {state:<8} {:<16} {}", self.what, visible(&self.said)))?;
        self.fix.as_ref().map_or(Ok(()), |fix| say(&format!("  {:<8} {:<16} → {}", "", "", visible(fix))))
    }
}

/// Whether everything works is also the exit code; what only deserves a warning does not count.
pub(super) fn run(global: &Global, args: &DoctorArgs) -> Result<(), Failure> {
    let desk = desk::checks(global)?;
    let clients = clients::checks(global, args.trust_project)?;
    let programs = Programs::look()?;
    let ok = desk.iter().chain(&clients).all(|check| check.state != State::Problem);
    if global.json {
        print(&json!({ "ok": ok, "desk": desk, "clients": clients, "programs": programs }), true)?;
    } else {
        say("The desk\n")?;
        desk.iter().try_for_each(Check::tell)?;
        say("\nClients\n")?;
        clients.iter().try_for_each(Check::tell)?;
        programs.tell()?;
        say(if ok { "\nEverything that was looked at works." } else { "\nSomething does not work: see above." })?;
    }
    if ok { Ok(()) } else { Err(Failure::Told) }
}
