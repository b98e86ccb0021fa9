//! What a hook costs: a fresh process that asks a running server about a tool call, against one append with fdatasync. Both
//! are measured in turns in one run, so that they meet the same disk.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::floor::{Floor, micros};
use crate::load::{ms, times};
use crate::server::{Server, binary};

/// What a client says before a look inside the project, which passes and is told to the record.
const ASKED: &str =
    r#"{"hook_event_name":"PreToolUse","session_id":"bench","cwd":"/srv/project","tool_name":"Bash","tool_input":{"command":"git status && ls -la src"}}"#;

/// Measures `rounds` of each.
pub fn run(program: Option<&Path>, rounds: u32) -> Floor {
    let home = tempfile::tempdir().expect("a temporary directory");
    let program = binary(program);
    let _server = Server::start(&program, home.path(), None);
    let mut file = OpenOptions::new().create(true).append(true).open(home.path().join("floor")).expect("a file");
    let (mut disk, mut call) = (times(), times());
    for round in 0..rounds + 20 {
        let started = Instant::now();
        file.write_all(&[7; 4096]).and_then(|()| file.sync_data()).expect("the disk takes it");
        let synced = Instant::now();
        let mut command = Command::new(&program);
        command.arg("hook").env("DESKMATE_HOME", home.path()).env_remove("DESKMATE_TOKEN");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the hook starts");
        child.stdin.take().expect("piped").write_all(ASKED.as_bytes()).expect("the hook reads");
        let output = child.wait_with_output().expect("the hook ends");
        let answered = Instant::now();
        assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("\"allow\""), "{output:?}");
        if round >= 20 {
            disk.saturating_record(micros(synced - started));
            call.saturating_record(micros(answered - synced));
        }
    }
    Floor { disk: ms(disk.value_at_quantile(0.5)), call: ms(call.value_at_quantile(0.5)) }
}
