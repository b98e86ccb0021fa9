//! Looking at everything that a desk and its clients need, and saying what is wrong and what to do.

mod clients;
mod desk;
mod programs;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::busy::busy;
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

/// What was looked at, told to people one by one as it ends.
struct Checks {
    told: bool,
    all: Vec<Check>,
}

impl Checks {
    /// The checks of one part, under its title.
    fn of(global: &Global, title: &str) -> Result<Self, Failure> {
        let told = !global.json;
        if told {
            say(&format!("{title}\n"))?;
        }
        Ok(Self { told, all: Vec::new() })
    }

    fn look(&mut self, look: impl FnOnce() -> Check) -> Result<(), Failure> {
        let sign = busy("looking");
        let check = look();
        drop(sign);
        self.add([check])
    }

    fn add(&mut self, checks: impl IntoIterator<Item = Check>) -> Result<(), Failure> {
        for check in checks {
            if self.told {
                check.tell()?;
            }
            self.all.push(check);
        }
        Ok(())
    }
}

/// Whether everything works is also the exit code; what only deserves a warning does not count.
pub(super) fn run(global: &Global, args: &DoctorArgs) -> Result<(), Failure> {
    let mut desk = Checks::of(global, "The desk")?;
    desk::checks(global, &mut desk)?;
    let mut clients = Checks::of(global, "\nClients")?;
    clients::checks(global, args.trust_project, &mut clients)?;
    let sign = busy("looking");
    let programs = Programs::look()?;
    drop(sign);
    let ok = desk.all.iter().chain(&clients.all).all(|check| check.state != State::Problem);
    if global.json {
        print(&json!({ "ok": ok, "desk": desk.all, "clients": clients.all, "programs": programs }), true)?;
    } else {
        programs.tell()?;
        say(if ok { "\nEverything that was looked at works." } else { "\nSomething does not work: see above." })?;
    }
    if ok { Ok(()) } else { Err(Failure::Told) }
}
