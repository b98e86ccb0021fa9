//! What this machine can do for a desk: the bounds that it keeps around programs of agents.

use deskmate_hands::sandbox::{Namespaces, Network, Report, Runner, python_spec};
use serde::Serialize;

use super::super::Failure;
use super::super::output::say;

/// What is known for the account that asks; a desk under another account may have more or less.
#[derive(Serialize)]
pub(super) struct Programs {
    can_run: bool,
    missing: Vec<String>,
    machine: Report,
}

impl Programs {
    pub(super) fn look() -> Result<Self, Failure> {
        let machine = Runner::new().capabilities().map_err(|error| Failure::Other(error.to_string()))?;
        let mut missing = machine.missing(Namespaces::WhereAvailable, Network::None);
        missing.extend(python_spec("").err().map(|error| error.to_string()));
        Ok(Self { can_run: missing.is_empty(), missing, machine })
    }

    pub(super) fn tell(&self) -> Result<(), Failure> {
        say("\nPrograms of agents (workspace_execute_python), under this account\n")?;
        for (what, kept) in bounds(&self.machine) {
            say(&format!("  {what:<16} {kept}"))?;
        }
        if self.can_run {
            return say("\nThey can run here, once a person approved.");
        }
        say("\nThey do not run here. What is missing:")?;
        self.missing.iter().try_for_each(|missing| say(&format!("  - {missing}")))
    }
}

/// What keeps each bound.
fn bounds(report: &Report) -> [(&'static str, String); 5] {
    let landlock = if report.landlock > 0 { format!("Landlock, version {}", report.landlock) } else { "not by Landlock, which is missing".to_owned() };
    let seccomp = if report.seccomp { "seccomp" } else { "not by seccomp, which is missing" };
    let also = |what: &str| if report.namespaces { format!("; {what}") } else { String::new() };
    let why = report.namespaces_why.as_deref().unwrap_or("no reason is known");
    [
        ("files", format!("{landlock}{}", also("a view that holds only what was granted"))),
        ("network", format!("{seccomp}{}", also("a network of its own without anything in it"))),
        ("other processes", format!("{landlock}{}", also("processes that see only each other"))),
        ("time and memory", "limits and a supervisor that ends everything".to_owned()),
        ("namespaces", if report.namespaces { "yes".to_owned() } else { format!("no: {why}") }),
    ]
}
