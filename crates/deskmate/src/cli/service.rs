//! The desk under the system's service manager.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use super::output::{print, say};
use super::{Failure, Global};
use crate::config;
use crate::home::Home;
use crate::service::{self, Account, Done, Service};

#[derive(Subcommand)]
pub(super) enum ServiceCommand {
    /// Install and start the desk as a service; again, this only brings it up to date
    Install {
        /// Run it under this account of its own, with its data where only that account can read it; needs root
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// A folder that this account may write to, beside its data; may be given several times. Those given before stay if none is
        #[arg(long, value_name = "DIR", requires = "user")]
        root: Vec<PathBuf>,
        /// Only show what would be written and run
        #[arg(long)]
        dry_run: bool,
    },
    /// Stop and remove the service; the desk's data stays
    Uninstall {
        /// The account that it was installed with
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// Only show what would be run
        #[arg(long)]
        dry_run: bool,
    },
    /// Show how the service stands
    Status {
        /// The account that it was installed with
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
    },
    /// Print the end of the server's log
    Logs {
        /// The account that it was installed with
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// How many lines
        #[arg(long, default_value_t = 100, value_name = "N")]
        lines: usize,
    },
}

pub(super) fn run(global: &Global, command: &ServiceCommand) -> Result<(), Failure> {
    let service = |user: &Option<String>| -> Result<Service, Failure> { Ok(Service::new(Account::new(user.as_deref())?, config::home(global.home.clone())?)?) };
    match command {
        ServiceCommand::Install { user, root, dry_run } => tell(global, &service::install(&service(user)?.with_roots(root)?, *dry_run)?, "installed", *dry_run),
        ServiceCommand::Uninstall { user, dry_run } => tell(global, &service::uninstall(&service(user)?, *dry_run)?, "uninstalled", *dry_run),
        ServiceCommand::Status { user } => print(&service::status(&service(user)?)?, global.json),
        ServiceCommand::Logs { user, lines } => logs(global, &Home::new(service(user)?.home), *lines),
    }
}

fn tell(global: &Global, done: &Done, what: &str, dry_run: bool) -> Result<(), Failure> {
    if global.json {
        return print(&json!(done), true);
    }
    let file = done.file.as_ref().map_or(String::new(), |file| format!(": {}", file.display()));
    if dry_run {
        say(&format!("Nothing was changed. To be {what} with {}{file}", done.manager))?;
        if let Some(content) = &done.content {
            say(&format!("\n{content}"))?;
        }
        return done.commands.iter().chain(&done.notes).try_for_each(|line| say(line));
    }
    say(&format!("The service is {what}{}{file}", if done.changed { "" } else { ", as it was before" }))?;
    done.notes.iter().try_for_each(|note| say(note))
}

fn logs(global: &Global, home: &Home, lines: usize) -> Result<(), Failure> {
    let path = home.log_file();
    let file = std::fs::File::open(&path).map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
    let mut last = VecDeque::new();
    for line in BufReader::new(file).split(b'\n') {
        if last.len() >= lines {
            last.pop_front();
        }
        last.push_back(line?);
    }
    let mut last = last.iter().take(lines).map(|line| String::from_utf8_lossy(line));
    if global.json {
        return print(&json!({ "lines": last.collect::<Vec<_>>() }), true);
    }
    last.try_for_each(|line| say(&line))
}
