//! Compliance from the command line: how an agent stands, reports as files, and checking one's own frameworks.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::client::Client;
use super::output::{print, say};
use super::{Failure, Global};
use crate::frameworks;

#[derive(Subcommand)]
pub(super) enum ComplianceCommand {
    /// Write the report of an agent and a framework to a file; a bundle is verified with `deskmate audit verify FILE`
    Report {
        /// The agent's name or id
        agent: String,
        /// The framework, for example: SOC2
        framework: String,
        /// The form of the report
        #[arg(long, value_enum, default_value = "html")]
        format: Form,
        /// The file to write, which must not be there yet
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// How many days to look back; 90 if not given
        #[arg(long, value_name = "N")]
        days: Option<u32>,
    },
    /// Show how an agent stands against a framework; ends with 7 if there are gaps
    Check {
        /// The agent's name or id
        agent: String,
        /// The framework, for example: SOC2
        framework: String,
        /// How many days to look back; 90 if not given
        #[arg(long, value_name = "N")]
        days: Option<u32>,
    },
    /// List the frameworks, or check files of your own before they go into the folder `compliance` of the data directory
    Frameworks {
        /// Files to check
        files: Vec<PathBuf>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    Html,
    Pdf,
    Csv,
    Json,
    Oscal,
    Markdown,
    Bundle,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Pdf => "pdf",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Oscal => "oscal",
            Self::Markdown => "markdown",
            Self::Bundle => "bundle",
        }
    }
}

pub(super) fn run(global: &Global, command: ComplianceCommand) -> Result<(), Failure> {
    match command {
        ComplianceCommand::Report { agent, framework, format, out, days } => report(global, input(&agent, &framework, days), format, &out),
        ComplianceCommand::Check { agent, framework, days } => check(global, &input(&agent, &framework, days)),
        ComplianceCommand::Frameworks { files } if files.is_empty() => print(&looking(global)?.call("agents_list_frameworks", &json!({}))?, global.json),
        ComplianceCommand::Frameworks { files } => check_files(global, &files),
    }
}

fn input(agent: &str, framework: &str, days: Option<u32>) -> Value {
    let mut input = json!({ "agentId": agent, "framework": framework });
    if let (Some(days), Some(fields)) = (days, input.as_object_mut()) {
        fields.insert("days".to_owned(), days.into());
    }
    input
}

fn report(global: &Global, mut input: Value, format: Form, out: &Path) -> Result<(), Failure> {
    let client = looking(global)?;
    let operation = if format == Form::Pdf { "agents_compliance_pdf" } else { "agents_compliance_report" };
    if let Some(fields) = input.as_object_mut().filter(|_| format != Form::Pdf) {
        fields.insert("format".to_owned(), format.name().into());
    }
    let answer = client.call(operation, &input)?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default();
    let bytes = match format {
        Form::Pdf => BASE64.decode(text("base64").as_bytes()).map_err(|error| Failure::Other(format!("the desk sent no PDF: {error}")))?,
        _ => text("content").as_bytes().to_vec(),
    };
    let mut file = std::fs::File::create_new(out).map_err(|error| Failure::Other(format!("{}: {error}", out.display())))?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    if global.json { print(&json!({ "file": out, "bytes": bytes.len() }), true) } else { say(&format!("The report was written to {}.", out.display())) }
}

fn check(global: &Global, input: &Value) -> Result<(), Failure> {
    let answer = looking(global)?.call("agents_check_compliance", input)?;
    if global.json {
        print(&answer, true)?;
    } else {
        say(answer.get("message").and_then(Value::as_str).unwrap_or_default())?;
        for control in answer.pointer("/report/controls").and_then(Value::as_array).into_iter().flatten() {
            let text = |name: &str| control.get(name).and_then(Value::as_str).unwrap_or_default();
            say(&format!("  {:<14} {:<18} {}", text("id"), text("status").replace('_', " "), text("title")))?;
            let missing = |check: &&Value| matches!(check.get("status").and_then(Value::as_str), Some("not_met" | "partly"));
            for check in control.get("checks").and_then(Value::as_array).into_iter().flatten().filter(missing) {
                let text = |name: &str| check.get(name).and_then(Value::as_str).unwrap_or_default();
                say(&format!("                 not shown: {}: {}", text("shows"), text("why")))?;
            }
        }
    }
    if answer.get("verdict") == Some(&Value::from("gaps")) { Err(Failure::NotSound) } else { Ok(()) }
}

fn check_files(global: &Global, files: &[PathBuf]) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for file in files {
        match frameworks::read(file) {
            Ok(framework) if !global.json => say(&format!("{}: {} with {} controls", file.display(), framework.id, framework.controls.len()))?,
            Ok(_) => {}
            Err(problem) => wrong.push(problem),
        }
    }
    if global.json {
        print(&json!({ "files": files.len(), "problems": wrong }), true)?;
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::Other(wrong.join("\n"))) }
}

/// Whoever the token belongs to, or the person at the terminal.
fn looking(global: &Global) -> Result<Client, Failure> {
    let client = Client::new(global)?;
    if client.has_token() { Ok(client) } else { Client::present(global) }
}
