//! Bringing in what another server left.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use deskmate_core::import::{Outcome, Report, SoFar};
use serde_json::{Value, json};

use super::busy::busy;
use super::client::Client;
use super::output::{print, say};
use super::{Failure, Global};
use crate::config;
use crate::import::{self, Found};

#[derive(Subcommand)]
pub(super) enum ImportCommand {
    /// Bring in the agents, approvals and audit of an AgentOS server
    Agentos(AgentosArgs),
    /// Bring in the configuration and the database of a cowork server
    Cowork(CoworkArgs),
}

#[derive(Args)]
pub(super) struct AgentosArgs {
    /// Its data directory; AGENTOS_DATA_DIR, or .agentos in this directory, if not given
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Only say what would be taken, changed and refused
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
pub(super) struct CoworkArgs {
    /// Its configuration; cowork.config.yaml or .yml in this directory if not given
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Its database; where the configuration says, or cowork.db beside it, if not given
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
    /// Only say what would be taken, changed and refused
    #[arg(long)]
    dry_run: bool,
}

/// Rows and bytes of one call.
const ROWS_MAX: usize = 200;
const BYTES_MAX: usize = 512 * 1024;

pub(super) fn run(global: &Global, command: ImportCommand) -> Result<(), Failure> {
    match command {
        ImportCommand::Agentos(args) => agentos(global, args),
        ImportCommand::Cowork(args) => cowork(global, args),
    }
}

fn agentos(global: &Global, args: AgentosArgs) -> Result<(), Failure> {
    let folder = args.folder.or_else(|| config::env("AGENTOS_DATA_DIR").map(PathBuf::from)).unwrap_or_else(|| PathBuf::from(".agentos"));
    let mut calls = Calls::new(global, "desk_import_agentos", args.dry_run)?;
    let (mut failed, mut unread) = (None, Report::new(args.dry_run));
    let busy = busy("reading and bringing in");
    let read = import::read_agentos(&folder, &mut unread, |row| calls.take(row).map_err(|failure| failed.insert(failure).text()));
    if let Some(failure) = failed {
        return Err(failure);
    }
    read.map_err(Failure::Other)?;
    calls.send()?;
    calls.report.add(unread);
    drop(busy);
    tell(global, &calls.report, &[("folder", Some(&folder))])
}

fn cowork(global: &Global, args: CoworkArgs) -> Result<(), Failure> {
    let config = config_file(args.config)?;
    let found = match &config {
        None => Found::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
            import::read_settings(path, &text).map_err(Failure::Other)?
        }
    };
    let database = database_file(args.db, config.as_deref(), found.storage_path.as_deref());
    if config.is_none() && database.is_none() {
        return Err(Failure::Other("there is no cowork.config.yaml here: name it with --config, or a database with --db".to_owned()));
    }
    let mut calls = Calls::new(global, "desk_import_cowork", args.dry_run)?;
    let busy = busy("reading and bringing in");
    calls.report.add(found.report);
    if found.document.is_some() || !found.agents.is_empty() {
        calls.call(&json!({ "document": found.document, "agents": found.agents }))?;
    }
    if let Some(path) = &database {
        let mut failed = None;
        let read = import::read_database(path, |row| calls.take(row).map_err(|failure| failed.insert(failure).text()));
        if let Some(failure) = failed {
            return Err(failure);
        }
        read.map_err(Failure::Other)?;
        calls.send()?;
    }
    drop(busy);
    tell(global, &calls.report, &[("config", config.as_deref()), ("database", database.as_deref())])
}

fn config_file(given: Option<PathBuf>) -> Result<Option<PathBuf>, Failure> {
    match given {
        Some(path) if !path.is_file() => Err(Failure::Other(format!("{}: there is no such file", path.display()))),
        Some(path) => Ok(Some(path)),
        None => Ok(["cowork.config.yaml", "cowork.config.yml"].map(PathBuf::from).into_iter().find(|path| path.is_file())),
    }
}

/// The database: as given, as the configuration names it, or beside the configuration.
fn database_file(given: Option<PathBuf>, config: Option<&Path>, named: Option<&str>) -> Option<PathBuf> {
    if given.is_some() {
        return given;
    }
    let folder = config?.parent()?;
    [named.unwrap_or("cowork.db"), "cowork.db"].into_iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// Calls to the desk: rows are sent in slices, and the reports are put together.
struct Calls {
    client: Client,
    operation: &'static str,
    dry_run: bool,
    rows: Vec<Value>,
    bytes: usize,
    report: Report,
    /// What a dry run would have written so far: nothing of it is there to judge later rows by.
    so_far: SoFar,
}

impl Calls {
    fn new(global: &Global, operation: &'static str, dry_run: bool) -> Result<Self, Failure> {
        let (client, report) = (Client::present(global)?, Report::new(dry_run));
        Ok(Self { client, operation, dry_run, rows: Vec::new(), bytes: 0, report, so_far: SoFar::default() })
    }

    fn take(&mut self, row: Value) -> Result<(), Failure> {
        let size = row.to_string().len();
        if self.rows.len() == ROWS_MAX || (self.bytes + size > BYTES_MAX && !self.rows.is_empty()) {
            self.send()?;
        }
        self.bytes += size;
        self.rows.push(row);
        Ok(())
    }

    fn send(&mut self) -> Result<(), Failure> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        self.call(&json!({ "rows": rows }))
    }

    fn call(&mut self, input: &Value) -> Result<(), Failure> {
        let mut input = input.clone();
        if let Some(fields) = input.as_object_mut() {
            fields.insert("dry_run".to_owned(), json!(self.dry_run));
            if !self.so_far.is_empty() {
                fields.insert("so_far".to_owned(), json!(self.so_far));
            }
            fields.retain(|_, value| !value.is_null());
        }
        let answer = self.client.call(self.operation, &input)?;
        let mut report: Report = serde_json::from_value(answer).map_err(|error| Failure::Other(format!("the server's report is unreadable: {error}")))?;
        self.so_far = std::mem::take(&mut report.so_far);
        self.report.add(report);
        Ok(())
    }
}

fn tell(global: &Global, report: &Report, read: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    if global.json {
        let mut whole = json!(report);
        if let Some(fields) = whole.as_object_mut() {
            fields.extend(read.iter().map(|(name, path)| ((*name).to_owned(), json!(path))));
        }
        return print(&whole, true);
    }
    for (outcome, title) in [(Outcome::Refused, "Refused"), (Outcome::Changed, "Changed"), (Outcome::Taken, "Taken"), (Outcome::Known, "Here already")] {
        let entries: Vec<_> = report.entries.iter().filter(|entry| entry.outcome == outcome).collect();
        if entries.is_empty() {
            continue;
        }
        say(&format!("{title}:"))?;
        for entry in entries {
            let why = entry.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            say(&crate::visible::visible(&format!("  {}{why}", entry.what)))?;
        }
        say("")?;
    }
    for (kind, counts) in &report.counts {
        let counts: Vec<String> = counts.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        say(&format!("{kind}: {}", counts.join(", ")))?;
    }
    if report.dry_run { say("\nNothing was written: this was a dry run.") } else { say("\nBringing the same in again changes nothing.") }
}
