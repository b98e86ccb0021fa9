//! For the tests: runs one program in a sandbox, as the desk would, so that the tests can run it under an ordinary account,
//! end it, and look at what it leaves. Reads a request from standard input and writes what became of it as JSON.

use deskmate_hands::keeper;
use deskmate_hands::sandbox::{Error, Namespaces, Outcome, Report, Runner, Spec, Stop, enter};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

#[derive(Deserialize)]
struct Request {
    spec: Spec,
    input: Vec<u8>,
    namespaces: Namespaces,
    scratch: PathBuf,
    stop_after_ms: Option<u64>,
}

#[derive(Serialize)]
struct Response {
    outcome: Option<Outcome>,
    error: Option<String>,
    report: Option<Report>,
}

fn main() -> ExitCode {
    if let Some(code) = enter(std::env::args_os()).or_else(|| keeper::enter(std::env::args_os())) {
        return code;
    }
    match answer() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "{error}"));
            ExitCode::FAILURE
        }
    }
}

fn answer() -> io::Result<()> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let request: Request = serde_json::from_str(&text)?;
    let runner = Runner::new().with_namespaces(request.namespaces).with_scratch(request.scratch);
    let stop = Stop::new();
    if let Some(after) = request.stop_after_ms {
        let stop = stop.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(after));
            stop.now();
        });
    }
    let done: Result<Outcome, Error> = runner.run(&request.spec, &request.input, &stop);
    let report = runner.capabilities().ok();
    let response = match done {
        Ok(outcome) => Response { outcome: Some(outcome), error: None, report },
        Err(error) => Response { outcome: None, error: Some(error.to_string()), report },
    };
    io::stdout().write_all(&serde_json::to_vec(&response)?)
}
