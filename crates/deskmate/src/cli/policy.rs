//! Policies: checking a draft without a server, applying it, and asking why.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use deskmate_core::policy::{self, Document, FILE_KEYS, Problem, Rulebook};
use deskmate_core::{Code, Error};
use serde_json::{Value, json};

use super::client::Client;
use super::output::{print, say};
use super::{Failure, Global};
use crate::config;

#[derive(Subcommand)]
pub(super) enum PolicyCommand {
    /// Check a file: every problem with its line and column. Needs no server
    Check {
        /// The file; deskmate.yaml in the data directory if not given
        file: Option<PathBuf>,
    },
    /// Put a file's policies, mappings and settings in force, as an owner
    Apply {
        /// The file; deskmate.yaml in the data directory if not given
        file: Option<PathBuf>,
        /// Only show what would change
        #[arg(long)]
        dry_run: bool,
    },
    /// List the policies in force
    List {
        /// How many
        #[arg(long)]
        limit: Option<u32>,
        /// Where the previous page ended
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Show a policy and its versions, or everything in force as one document
    Show {
        /// The policy's name
        policy: Option<String>,
        /// Which version; the one in force if not given
        #[arg(long, requires = "policy")]
        version: Option<i64>,
    },
    /// Run the cases that are kept beside the policies of files. Needs no server
    Test {
        /// The files; deskmate.yaml in the data directory if not given
        files: Vec<PathBuf>,
        /// Run the cases of what is in force instead
        #[arg(long, conflicts_with = "files")]
        in_force: bool,
        /// Only the cases of this policy
        #[arg(long, value_name = "NAME")]
        policy: Option<String>,
    },
    /// Replay a draft over the record and show which past answers would differ
    ///
    /// What an agent had used up is that of then, where a rule asked for it then; the last line says of how many acts it is not known.
    Simulate {
        /// The file; deskmate.yaml in the data directory if not given
        file: Option<PathBuf>,
        /// Only from this time on, for example 2026-11-01T00:00:00Z
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Only this agent
        #[arg(long)]
        agent: Option<String>,
        /// Only this domain
        #[arg(long)]
        domain: Option<String>,
        /// How many past acts to look at, at most 200; all of them if not given
        #[arg(long)]
        limit: Option<u32>,
        /// Where the previous page ended
        #[arg(long, requires = "limit")]
        cursor: Option<String>,
    },
    /// Say why an act got its answer, and what would change it
    Explain {
        /// The request's id
        #[arg(required_unless_present = "act")]
        request: Option<String>,
        /// An act as JSON, for example '{"domain": "crm.deals", "arguments": {"amount": 5}}'
        #[arg(long, value_name = "JSON", requires = "agent", conflicts_with = "request")]
        act: Option<String>,
        /// Who would act
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
    },
}

pub(super) fn run(global: &Global, command: PolicyCommand) -> Result<(), Failure> {
    match command {
        PolicyCommand::Check { file } => check(global, file),
        PolicyCommand::Apply { file, dry_run } => apply(global, file, dry_run),
        PolicyCommand::List { limit, cursor } => print(&reader(global)?.call("desk_policy_list", &json!({ "limit": limit, "cursor": cursor }))?, global.json),
        PolicyCommand::Show { policy, version } => show(global, policy, version),
        PolicyCommand::Test { files, in_force, policy } => test(global, files, in_force, policy.as_deref()),
        PolicyCommand::Simulate { file, since, agent, domain, limit, cursor } => {
            let document = read(&named(global, file)?.0)?;
            let input = json!({ "document": document, "since": since, "agent": agent, "domain": domain, "limit": limit, "cursor": cursor });
            simulate(global, input, limit.is_some())
        }
        PolicyCommand::Explain { request, act, agent } => {
            let act = act.map(|text| deskmate_core::call::parse_strict(text.as_bytes())).transpose()?;
            let answer = reader(global)?.call("desk_policy_explain", &json!({ "request": request, "act": act, "agent": agent }))?;
            if global.json { print(&answer, true) } else { say(&lines(&answer, "lines").join("\n")) }
        }
    }
}

/// The file that is meant, and whether it is the one that the server reads at its start.
fn named(global: &Global, file: Option<PathBuf>) -> Result<(PathBuf, bool), Failure> {
    let own = config::home(global.home.clone())?.join(config::FILE);
    let Some(file) = file else { return Ok((own, true)) };
    let same = matches!((file.canonicalize(), own.canonicalize()), (Ok(file), Ok(own)) if file == own);
    Ok((file, same))
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::Other(format!("{}: {error}", path.display())))
}

/// A client for what only looks: a personal token is enough.
fn reader(global: &Global) -> Result<Client, Failure> {
    let client = Client::new(global)?;
    if client.has_token() { Ok(client) } else { Client::present(global) }
}

/// Reads a file's policy sections and compiles what they say on their own.
fn compile(text: &str) -> Result<Rulebook, Vec<Problem>> {
    let document = Document::parse_within(text, FILE_KEYS)?;
    Rulebook::compile(document.over(&policy::Parts::default()), BTreeMap::new())
}

fn check(global: &Global, file: Option<PathBuf>) -> Result<(), Failure> {
    let (path, own) = named(global, file)?;
    let text = read(&path)?;
    let problems = compile(&text).err().unwrap_or_default();
    // The other sections of the server's own file stop its start as well, so they are checked with it.
    let other = if own { config::check_file(&path, &text).err().map(|error| error.to_string()) } else { None };
    let ok = problems.is_empty() && other.is_none();
    if global.json {
        print(&json!({ "ok": ok, "file": path, "problems": problems, "other": other }), true)?;
    } else if ok {
        say(&format!("{}: nothing is wrong with it", path.display()))?;
    }
    if ok {
        return Ok(());
    }
    let told: Vec<String> = problems.iter().map(|problem| format!("{}:{problem}", path.display())).chain(other).collect();
    if global.json { Err(Failure::Told) } else { Err(Failure::Other(told.join("\n"))) }
}

fn apply(global: &Global, file: Option<PathBuf>, dry_run: bool) -> Result<(), Failure> {
    let (path, own) = named(global, file)?;
    let text = read(&path)?;
    // What is wrong is told with the file's name, before anybody is asked for a passphrase.
    if let Err(problems) = Document::parse_within(&text, FILE_KEYS) {
        let told: Vec<String> = problems.iter().map(|problem| format!("{}:{problem}", path.display())).collect();
        return Err(Error::new(Code::Invalid, told.join("\n")).into());
    }
    let answer = if dry_run {
        reader(global)?.call("desk_policy_check", &json!({ "document": text }))?
    } else {
        Client::present(global)?.call("desk_policy_apply", &json!({ "document": text, "file": own }))?
    };
    if global.json {
        return print(&answer, true);
    }
    for line in lines(&answer, "problems").into_iter().chain(lines(&answer, "difference")) {
        say(&line)?;
    }
    let part = |name: &str| answer.get(name).cloned().unwrap_or_default();
    let nothing = lines(&answer, "difference").is_empty();
    match (dry_run, nothing) {
        (true, _) if part("ok") == false => Err(Failure::Told),
        (_, true) => say("nothing differs from what is in force"),
        (true, false) if part("loosens") == true => say("\nthis loosens, or may loosen, what agents may do: only an owner can apply it"),
        (true, false) => say("\nthis only tightens what agents may do"),
        (false, false) => say(&format!("\nin force: {}", part("rulebook").as_str().unwrap_or_default())),
    }
}

fn show(global: &Global, policy: Option<String>, version: Option<i64>) -> Result<(), Failure> {
    let answer = reader(global)?.call("desk_policy_get", &json!({ "policy": policy, "version": version }))?;
    if global.json {
        return print(&answer, true);
    }
    let mut rest = answer.clone();
    let body = rest.as_object_mut().and_then(|fields| fields.remove("body")).unwrap_or_default();
    if policy.is_some() {
        print(&rest, false)?;
        say("")?;
    }
    // JSON is YAML, so what is printed can be written to a file and applied.
    say(&serde_json::to_string_pretty(&body).unwrap_or_default())
}

fn test(global: &Global, files: Vec<PathBuf>, in_force: bool, policy: Option<&str>) -> Result<(), Failure> {
    if in_force {
        return tell_tested(global, &reader(global)?.call("desk_policy_test", &json!({ "policy": policy }))?);
    }
    let files = if files.is_empty() { vec![named(global, None)?.0] } else { files };
    let mut all = Vec::new();
    for path in files {
        let wrong = |problems: Vec<Problem>| {
            let told: Vec<String> = problems.iter().map(|problem| format!("{}:{problem}", path.display())).collect();
            Failure::from(Error::new(Code::Invalid, told.join("\n")))
        };
        let rulebook = compile(&read(&path)?).map_err(wrong)?;
        all.extend(policy::run_cases(&rulebook, policy));
    }
    tell_tested(global, &json!(policy::Tested::of(all)))
}

fn tell_tested(global: &Global, tested: &Value) -> Result<(), Failure> {
    if global.json {
        print(tested, true)?;
    } else {
        for case in tested.get("cases").and_then(Value::as_array).into_iter().flatten() {
            let part = |name: &str| case.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let ok = case.get("passed") == Some(&json!(true));
            say(&format!("{} {}: {}", if ok { "ok  " } else { "FAIL" }, part("policy"), part("name")))?;
            if !ok {
                say(&format!("     {}", part("difference")))?;
            }
        }
        let number = |name: &str| tested.get(name).and_then(Value::as_u64).unwrap_or(0);
        say(&format!("{} passed, {} failed", number("passed"), number("failed")))?;
    }
    if tested.get("ok") == Some(&json!(true)) { Ok(()) } else { Err(Failure::Told) }
}

/// One page, or all of them put together.
fn simulate(global: &Global, mut input: Value, one_page: bool) -> Result<(), Failure> {
    let client = reader(global)?;
    if !one_page && let Some(fields) = input.as_object_mut() {
        fields.insert("limit".to_owned(), json!(200));
    }
    let mut sum = client.call("desk_policy_simulate", &input)?;
    while !one_page && let Some(cursor) = sum.get("next_cursor").cloned() {
        if let Some(fields) = input.as_object_mut() {
            fields.insert("cursor".to_owned(), cursor);
        }
        let next = client.call("desk_policy_simulate", &input)?;
        add(&mut sum, next);
    }
    if global.json {
        return print(&sum, true);
    }
    let number = |name: &str| sum.get(name).and_then(Value::as_u64).unwrap_or(0);
    for one in sum.get("differing").and_then(Value::as_array).into_iter().flatten() {
        let part = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default();
        say(&format!("{}  {} in {}: {} → {}  {}", part("at"), part("agent"), part("domain"), part("then"), part("now"), part("why")))?;
    }
    let text = format!("{} past acts: {} the same, {} stricter, {} looser", number("looked_at"), number("same"), number("stricter"), number("looser"));
    say(&text)?;
    if number("erased") > 0 {
        say(&format!("{} could not be replayed, because what was proposed was erased", number("erased")))?;
    }
    if number("without_counters") > 0 {
        say(&format!(
            "{} were replayed as if nothing had been used up: the draft asks how much was, and no rule asked for it then",
            number("without_counters")
        ))?;
    }
    Ok(())
}

/// Adds a page to the sum of the earlier ones.
fn add(sum: &mut Value, mut next: Value) {
    let Some(fields) = sum.as_object_mut() else { return };
    fields.remove("next_cursor");
    for (name, value) in next.as_object_mut().into_iter().flatten() {
        match (fields.get_mut(name), value) {
            (Some(Value::Array(own)), Value::Array(more)) => own.append(more),
            (Some(own), Value::Number(more)) => *own = json!(own.as_u64().unwrap_or(0) + more.as_u64().unwrap_or(0)),
            (Some(_), _) => {}
            (None, value) => drop(fields.insert(name.clone(), value.take())),
        }
    }
}

fn lines(answer: &Value, name: &str) -> Vec<String> {
    let items = answer.get(name).and_then(Value::as_array).into_iter().flatten();
    items.map(|item| item.as_str().map_or_else(|| problem(item), str::to_owned)).collect()
}

fn problem(item: &Value) -> String {
    let part = |name: &str| item.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default();
    format!("{}:{}: {}: {}", part("line"), part("column"), part("path"), part("message"))
}
