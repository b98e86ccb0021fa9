//! The command line as people and scripts use it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::desk::Desk;

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("not JSON: {} {}", stdout(output), String::from_utf8_lossy(&output.stderr)))
}

fn with_passphrase(desk: &Desk, passphrase: &str, args: &[&str]) -> Output {
    let mut child =
        desk.command(&[args, &["--passphrase-stdin"]].concat()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{passphrase}\n").as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// What `up` prints before it serves.
fn greeting(desk: &Desk, args: &[&str], last: &str) -> String {
    let mut server = desk.command(&[&["up"], args].concat()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut text = String::new();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    while !text.contains(last) {
        text.push_str(&lines.next().expect("it goes on"));
        text.push('\n');
    }
    assert!(desk.run(&["stop"]).status.success());
    server.wait().unwrap();
    text
}

#[test]
fn a_start_says_where_it_listens_in_which_mode_and_what_comes_next() {
    let desk = Desk::new();
    let open = greeting(&desk, &[], "Ctrl-C");
    for part in ["listens on http://127.0.0.1:", "mode       open", "/claim?code=", "connect claude-code"] {
        assert!(open.contains(part), "{part}: {open}");
    }
    let said: serde_json::Value = serde_json::from_str(&greeting(&desk, &["--json"], "}")).expect("JSON");
    assert!(
        said["url"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:"))
            && said["claim"].as_str().is_some_and(|link| link.contains("/claim?code="))
    );
    assert_eq!((&said["mode"], &said["agents"]), (&serde_json::json!("open"), &serde_json::json!(0)));
    desk.register("code");
    desk.run(&["stop"]);
    let closed = greeting(&desk, &[], "Ctrl-C");
    assert!(closed.contains("closed: 1 registered agent\n") && closed.contains("DESKMATE_TOKEN=") && !closed.contains("/claim?code="), "{closed}");
}

/// The commands of the README's block that has this line in it, as they stand there.
fn block(with: &str) -> String {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let found = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).find(|block| block.contains(with));
    found.unwrap_or_else(|| panic!("the README has no block with {with:?}")).to_owned()
}

/// Runs commands as somebody types them, with `deskmate` in the path.
fn typed(desk: &Desk, commands: &str) -> String {
    typed_at(desk, desk.path(), commands)
}

/// The same in a home of its own.
fn typed_at(desk: &Desk, home: &Path, commands: &str) -> String {
    let bin = desk.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    drop(std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_deskmate"), bin.join("deskmate")));
    let script = format!("PATH={}:$PATH\n{commands}", bin.display());
    let own = desk.command(&[]);
    let mut shell = std::process::Command::new("bash");
    shell.args(["-e", "-o", "pipefail", "-c", &script]).current_dir(home).env_remove("DESKMATE_TOKEN");
    for (name, value) in own.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        shell.env(name, value);
    }
    let done = shell.env("HOME", home).stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{commands}: {}{}", stdout(&done), String::from_utf8_lossy(&done.stderr));
    stdout(&done)
}

#[test]
fn the_tour_of_the_readme_works() {
    let desk = Desk::new();
    desk.up();
    let talk = block("bridge_send_message");
    for command in ["bridge_send_message", "bridge_read_messages", "bridge_create_task", "bridge_claim_task", "deskmate wait"] {
        assert!(talk.contains(command), "{talk}");
    }
    let said = typed(&desk, &talk);
    assert!(
        said.contains("The build is green.") && said.contains("unverified") && said.contains("Write the release notes") && said.contains("1 message"),
        "{said}"
    );
    // What needs no passphrase of the last part.
    let proofs: Vec<String> = block("deskmate audit verify").lines().filter(|line| line.starts_with("deskmate audit")).map(str::to_owned).collect();
    assert_eq!(proofs.len(), 4, "{proofs:?}");
    let said = typed(&desk, &proofs.join("\n"));
    assert_eq!(said.matches("sound").count(), 3, "{said}");
}

/// Commands that ask for a passphrase, given it as a script gives it.
fn answered(commands: &str) -> String {
    let line = |line: &str| match line.split_once('#') {
        Some((command, says)) if says.contains("asks for your passphrase") || says.contains("so does this") => {
            format!("printf 'correct horse\\n' | {} --passphrase-stdin\n", command.trim_end())
        }
        _ => format!("{line}\n"),
    };
    commands.lines().map(line).collect()
}

/// What stands before and after the line on which somebody decides in the inbox, or approves what of this kind waits there.
fn decided(desk: &Desk, home: &Path, block: &str, kind: &str) -> (String, String) {
    let (before, after) = block.split_once("deskmate inbox").unwrap_or_else(|| panic!("nothing is decided in {block}"));
    let said = typed_at(desk, home, &answered(before));
    let waiting = json(&with_passphrase(desk, "correct horse", &["call", "desk_request_list", &format!("kind={kind}"), "--json"]));
    let request = waiting["requests"][0]["request"].as_str().unwrap_or_else(|| panic!("nothing waits: {waiting} {said}"));
    let approved = with_passphrase(desk, "correct horse", &["inbox", "approve", request]);
    assert!(approved.status.success(), "{}", String::from_utf8_lossy(&approved.stderr));
    (said, after.split_once('\n').map_or_else(String::new, |(_, after)| after.to_owned()))
}

#[test]
fn what_the_tour_of_the_readme_does_as_a_person_works() {
    let desk = Desk::new();
    desk.claim();
    let own = tempfile::tempdir().unwrap();
    let home = own.path();
    std::os::unix::fs::symlink(desk.path(), home.join(".deskmate")).unwrap();
    let (_, after) = decided(&desk, home, &block("cowork_propose"), "proposal");
    let said = typed_at(&desk, home, &after);
    assert!(said.contains("approved") && said.contains("deal/7"), "{said}");

    let said = typed_at(&desk, home, &answered(&block("deskmate policy apply")));
    assert!(said.contains("crm.deals"), "{said}");

    let (_, after) = decided(&desk, home, &block("workspace_organize_plan"), "plan");
    let plans = json(&desk.run(&["call", "workspace_list_plans", "--agent", "code", "--json"]));
    let plan = plans["plans"][0]["plan_id"].as_str().unwrap_or_else(|| panic!("{plans}"));
    let said = typed_at(&desk, home, &after.replace('…', plan).replace(&format!("# {plan} "), "# "));
    assert!(said.contains("applied"), "{said}");
    for put in ["png/photo.png", "txt/letter.txt", "txt/list.txt"] {
        assert!(home.join("inbox-demo").join(put).is_file(), "{put} is not where the plan put it: {said}");
    }

    let (said, after) = decided(&desk, home, &block("agents_create_agent"), "deploy");
    assert!(said.contains("every weekday at 09:00") && said.contains("PASSED"), "{said}");
    let (run, wait) = after.split_once('\n').unwrap();
    let said = typed_at(&desk, home, run);
    let run = said.split_once("runId: ").and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or_else(|| panic!("{said}"));
    let said = typed_at(&desk, home, &wait.replace("runId=…", &format!("runId={run}")));
    assert!(said.contains("state: done") && said.contains("\"count\":2"), "{said}");

    let said = typed_at(&desk, home, &block("deskmate doctor"));
    assert!(home.join(".claude.json").exists() && said.contains("connects: "), "{said}");

    let close = answered(&block("deskmate agent add code"));
    let (add, rest) = close.split_once('\n').unwrap();
    let added = typed_at(&desk, home, add);
    let token = added.split_whitespace().find(|word| word.starts_with("dma_")).unwrap_or_else(|| panic!("{added}"));
    let said = typed_at(&desk, home, &rest.replace("dma_…", token));
    assert!(said.contains("closed"), "{said}");

    let said = typed_at(&desk, home, &answered(&block("deskmate audit verify")));
    assert_eq!(said.matches("sound").count(), 3, "{said}");
    // What nobody can run here: the desk itself, which runs already, and what builds it.
    let run = [
        "bridge_send_message",
        "cowork_propose",
        "policy apply",
        "organize_plan",
        "agents_create_agent",
        "doctor",
        "agent add code",
        "audit verify",
        "cargo run",
        "deskmate up",
    ];
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    for block in readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        assert!(run.iter().any(|known| block.contains(known)), "nobody tries this block of the README: {block}");
    }
}

/// Runs a command on a terminal of its own and answers what it showed there.
fn on_a_terminal(desk: &Desk, words: &str) -> String {
    let own = desk.command(&[]);
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &format!("'{}' {words}", env!("CARGO_BIN_EXE_deskmate")), "/dev/null"]).stdin(Stdio::null()).env_remove("DESKMATE_TOKEN");
    for (name, value) in own.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        script.env(name, value);
    }
    let done = script.output().expect("script runs");
    assert!(done.status.success(), "{}", stdout(&done));
    stdout(&done)
}

#[test]
fn a_link_is_for_whoever_sits_at_the_terminal() {
    let desk = Desk::new();
    // A server that a program started prints nothing that the program could read.
    let mut server = desk.command(&["up", "--background"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let url = desk.url();
    let shown = on_a_terminal(&desk, "claim");
    let code = shown.split_once(&format!("{url}/claim?code=")).and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or_else(|| panic!("{shown}"));
    let claim = serde_json::json!({ "code": code, "name": "Ada", "passphrase": "correct horse" });
    let answer = super::http::post(&url, "/api/desk_claim", &[], &claim.to_string());
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(desk.run(&["stop"]).status.success());
    let mut said = (String::new(), String::new());
    std::io::Read::read_to_string(&mut server.stdout.take().unwrap(), &mut said.0).unwrap();
    std::io::Read::read_to_string(&mut server.stderr.take().unwrap(), &mut said.1).unwrap();
    server.wait().unwrap();
    let log = std::fs::read_to_string(desk.path().join("server.log")).unwrap();
    assert!(said == (String::new(), String::new()) && !log.contains("code="), "{said:?} {log}");
}

#[test]
fn whoever_sits_at_the_terminal_sees_how_far_a_backup_and_an_audit_are() {
    let desk = Desk::new();
    desk.up();
    let other = Desk::new();
    let file = other.path().join("desk.backup");
    let shown = on_a_terminal(&desk, &format!("backup '{}'", file.display()));
    for part in ["copying", "packing", "checking"] {
        assert!(shown.contains(part), "{part}: {shown:?}");
    }
    let shown = on_a_terminal(&other, &format!("restore '{}' --home '{}'", file.display(), other.path().join("home").display()));
    assert!(shown.contains("unpacking"), "{shown:?}");
    let shown = on_a_terminal(&desk, "audit verify");
    assert!(shown.contains("verifying") && shown.contains("comparing") && shown.contains("sound"), "{shown:?}");
    let export = other.path().join("record.jsonl");
    let shown = on_a_terminal(&desk, &format!("audit export '{}'", export.display()));
    assert!(shown.contains("exporting") && shown.contains("were written"), "{shown:?}");
    let shown = on_a_terminal(&desk, &format!("audit verify '{}'", export.display()));
    assert!(shown.contains("verifying") && shown.contains("sound"), "{shown:?}");
    let quiet = desk.run(&["audit", "verify"]);
    assert!(quiet.status.success() && quiet.stderr.is_empty(), "{}", String::from_utf8_lossy(&quiet.stderr));
    let quiet = desk.run(&["backup", other.path().join("second").to_str().unwrap()]);
    assert!(quiet.status.success() && quiet.stderr.is_empty(), "{}", String::from_utf8_lossy(&quiet.stderr));
}

#[test]
fn whoever_sits_at_the_terminal_sees_that_something_takes_long() {
    let desk = Desk::new();
    desk.up();
    let shown = on_a_terminal(&desk, "call bridge_wait_for_messages --agent code timeout_seconds=2");
    assert!(shown.contains("waiting for the desk, "), "{shown:?}");
    let quick = on_a_terminal(&desk, "call bridge_send_message --agent code to=cowork content=quick");
    assert!(!quick.contains("waiting for the desk"), "what is done at once needs no sign: {quick:?}");
    let looked = on_a_terminal(&desk, "doctor");
    assert!(looked.contains("The desk") && looked.contains("both answer") && looked.contains("Clients"), "{looked:?}");
    let quiet = desk.run(&["call", "bridge_wait_for_messages", "--agent", "other", "timeout_seconds=2"]);
    assert!(!String::from_utf8_lossy(&quiet.stderr).contains("waiting for the desk"), "programs see none of it");
}

#[test]
fn what_programs_ask_for_is_json() {
    let desk = Desk::new();
    desk.up();
    let link: Value = serde_json::from_str(on_a_terminal(&desk, "claim --json").trim()).unwrap();
    assert!(link["claim"].as_str().unwrap().contains("/claim?code="), "{link}");
    let policy = json(&desk.run(&["hook", "print-policy", "--json"]));
    assert!(policy.is_object() && policy.as_object().is_some_and(|sections| !sections.is_empty()), "{policy}");
}

#[test]
fn nobody_is_asked_for_a_passphrase_that_nobody_has() {
    let desk = Desk::new();
    let refused = |code: i32, says: &str| {
        let output = desk.command(&["inbox", "list"]).stdin(Stdio::null()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && told.contains(says) && !told.contains("passphrase"), "{told}");
    };
    refused(6, "no desk runs in");
    desk.up();
    refused(5, "this desk has no owner yet");
    assert!(desk.run(&["stop"]).status.success());
}

#[test]
fn closing_proving_and_tampering() {
    let desk = Desk::new();
    let token = desk.register("code");
    let you = json(&desk.command(&["call", "desk_whoami", "--json"]).env("DESKMATE_TOKEN", &token).output().unwrap());
    assert_eq!((you["id"].as_str(), you["verified"].as_bool()), (Some("code"), Some(true)));
    let status = json(&desk.run(&["status", "--json"]));
    assert_eq!((status["mode"].as_str(), status["agents"].as_i64()), (Some("closed"), Some(1)));
    assert_eq!(desk.run(&["call", "desk_whoami", "--agent", "code"]).status.code(), Some(3));
    assert_eq!(with_passphrase(&desk, "wrong guess", &["agent", "list"]).status.code(), Some(3));
    assert!(with_passphrase(&desk, "correct horse", &["call", "desk_record_list"]).status.success());
    let people = json(&with_passphrase(&desk, "correct horse", &["person", "list", "--json"]));
    assert_eq!((&people["people"][0]["name"], &people["people"][0]["role"]), (&"Ada".into(), &"owner".into()), "{people}");
    let shown = stdout(&with_passphrase(&desk, "correct horse", &["person", "list"]));
    assert!(shown.contains("Ada") && shown.contains("owner"), "{shown}");
    assert!(desk.run(&["audit", "verify"]).status.success());
    let checkpoint = desk.run(&["audit", "checkpoint"]);
    let kept = desk.path().join("checkpoint.txt");
    std::fs::write(&kept, &checkpoint.stdout).unwrap();
    let bundle = desk.path().join("record.jsonl");
    assert!(desk.run(&["audit", "export", bundle.to_str().unwrap()]).status.success());
    assert!(desk.run(&["audit", "verify", bundle.to_str().unwrap()]).status.success());
    let proof = json(&desk.run(&["audit", "prove", "2"]));
    assert_eq!(proof["seq"], 2);
    assert_eq!(desk.run(&["audit", "prove", "99999"]).status.code(), Some(4));
    assert!(desk.run(&["stop"]).status.success());

    let text = std::fs::read_to_string(&bundle).unwrap();
    std::fs::write(&bundle, text.replacen("agent.registered", "agent.rehistered", 1)).unwrap();
    assert_eq!(desk.run(&["audit", "verify", bundle.to_str().unwrap()]).status.code(), Some(7));
    let cut: Vec<&str> = text.lines().collect();
    std::fs::write(&bundle, cut[..cut.len() - 1].join("\n")).unwrap();
    assert_eq!(desk.run(&["audit", "verify", bundle.to_str().unwrap()]).status.code(), Some(7));

    let database = rusqlite::Connection::open(desk.path().join("desk.db")).unwrap();
    database.execute("delete from event where seq = (select max(seq) from event)", []).unwrap();
    drop(database);
    let found = desk.run(&["audit", "verify"]);
    assert_eq!(found.status.code(), Some(7), "{}", stdout(&found));
    assert!(stdout(&found).contains("NOT SOUND"));
    assert_eq!(desk.run(&["audit", "verify", "--checkpoint", kept.to_str().unwrap()]).status.code(), Some(7));
}

#[test]
fn a_second_server_says_who_holds_the_directory() {
    let desk = Desk::new();
    desk.up();
    let pid = desk.holder().unwrap()["pid"].to_string();
    let second = desk.run(&["up"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains(&pid), "{}", String::from_utf8_lossy(&second.stderr));
}

#[test]
fn a_store_is_held_by_one_server_of_whichever_directory() {
    let (one, two) = (Desk::new(), Desk::new());
    one.up();
    std::fs::create_dir_all(two.path()).unwrap();
    std::fs::copy(one.path().join("record.key"), two.path().join("record.key")).unwrap();
    let pid = one.holder().unwrap()["pid"].to_string();
    let other_name = two.path().join("link.db");
    std::os::unix::fs::symlink(one.path().join("desk.db"), &other_name).unwrap();
    for name in [one.path().join("desk.db"), other_name] {
        let url = format!("sqlite:{}", name.display());
        let said = |words: &[&str]| {
            let done = two.command(words).env("DESKMATE_DATABASE_URL", &url).output().unwrap();
            assert!(!done.status.success());
            String::from_utf8_lossy(&done.stderr).into_owned()
        };
        for words in [&["up"][..], &["move", "--to", "sqlite:/nowhere/desk.db"]] {
            let told = said(words);
            assert!(told.contains(&format!("process {pid}, http://")) && told.contains("desk.db"), "{words:?}: {told}");
        }
    }
}

#[test]
fn a_key_without_its_store_begins_no_second_record() {
    let desk = Desk::new();
    desk.up();
    assert!(desk.run(&["stop"]).status.success());
    let (store, aside) = (desk.path().join("desk.db"), desk.path().join("aside.db"));
    std::fs::rename(&store, &aside).unwrap();
    let refused = || {
        let output = desk.run(&["up"]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains("record.key") && told.contains("deskmate restore"), "{told}");
    };
    // The second try finds as little as the first.
    refused();
    refused();
    assert!(!store.exists());
    // What is not there is not sound either, and looking makes none.
    let verified = desk.run(&["audit", "verify"]);
    let told = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(!verified.status.success() && told.contains("there is no store"), "{told}");
    assert!(!store.exists());
    std::fs::write(&store, "").unwrap();
    refused();
    assert_eq!(std::fs::metadata(&store).unwrap().len(), 0);
    std::fs::rename(&aside, &store).unwrap();
    desk.up();
    assert!(desk.run(&["stop"]).status.success());
    // Who moves the key away too wants a new desk, and one that was killed before it kept its key begins anew.
    std::fs::rename(desk.path().join("record.key"), desk.path().join("aside.key")).unwrap();
    std::fs::rename(&store, &aside).unwrap();
    desk.up();
}

#[test]
fn the_command_line_tells_that_a_name_was_taken_without_proof() {
    let desk = Desk::new();
    desk.up();
    let told = |output: &Output| String::from_utf8_lossy(&output.stderr).contains("without proof");
    assert!(told(&desk.run(&["call", "desk_whoami", "--agent", "code"])));
    assert!(!told(&desk.run(&["call", "desk_status"])));
    assert!(desk.run(&["stop"]).status.success());
    let token = desk.register("code");
    assert!(!told(&desk.command(&["call", "desk_whoami"]).env("DESKMATE_TOKEN", &token).output().unwrap()));
}

#[test]
fn commands_without_a_server_say_what_to_do() {
    let desk = Desk::new();
    let status = desk.run(&["status", "--json"]);
    assert_eq!(json(&status)["running"], false);
    let call = desk.run(&["call", "desk_whoami", "--agent", "code"]);
    assert_eq!(call.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&call.stderr).contains("deskmate up"));
    let claim = desk.run(&["claim"]);
    assert_eq!(claim.status.code(), Some(1), "a link is printed on a terminal only");
    assert_eq!(desk.run(&["call", "no_such_operation"]).status.code(), Some(4));
    assert_eq!(desk.run(&["frobnicate"]).status.code(), Some(2));
}

#[test]
fn waiting_ends_at_its_time_or_with_mail() {
    let desk = Desk::new();
    desk.up();
    let started = Instant::now();
    assert_eq!(desk.run(&["wait", "--agent", "code", "--timeout", "1s"]).status.code(), Some(8));
    assert!(started.elapsed() >= Duration::from_secs(1));
    let waiting = desk.command(&["wait", "--agent", "code"]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let sent = Instant::now();
    desk.run(&["call", "bridge_send_message", "to=code", "content=hello", "--agent", "cowork"]);
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(sent.elapsed() < Duration::from_secs(5));
}

#[test]
fn waiting_is_for_tasks_too() {
    let desk = Desk::new();
    desk.up();
    let wait = |args: &[&str]| desk.run(&[&["wait", "--agent", "code"], args].concat());
    let given = desk.run(&["call", "bridge_create_task", "to=code", "title=t", "project=web", "--agent", "cowork"]);
    assert!(given.status.success(), "{given:?}");
    let woken = wait(&["--timeout", "10s"]);
    assert!(woken.status.success() && stdout(&woken).contains("in web: take it with claim_task"), "{woken:?}");
    let told = json(&wait(&["--timeout", "10s", "--json"]));
    assert_eq!(told["tasks_ready_in"], serde_json::json!(["web"]), "{told}");
    for elsewhere in [&["--timeout", "300ms", "--for", "messages"][..], &["--timeout", "300ms", "--project", "default"]] {
        assert_eq!(wait(elsewhere).status.code(), Some(8), "{elsewhere:?}");
    }
    for own in [&["--timeout", "10s", "--for", "tasks"][..], &["--timeout", "10s", "--for", "tasks", "--project", "web"]] {
        let woken = wait(own);
        assert!(woken.status.success() && stdout(&woken).contains("web"), "{woken:?}");
    }
}

#[test]
fn waiting_outlives_a_restart_and_holds_no_server_up() {
    let desk = Desk::new();
    desk.up();
    let waits = || desk.command(&["wait", "--agent", "eve"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (waiting, begun) = (waits(), Instant::now());
    std::thread::sleep(Duration::from_millis(500));
    assert!(desk.run(&["stop"]).status.success());
    assert!(begun.elapsed() < Duration::from_secs(5), "whoever waits is answered at once: {:?}", begun.elapsed());
    desk.up();
    desk.run(&["call", "bridge_send_message", "to=eve", "content=hello", "--agent", "cowork"]);
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success() && stdout(&output).contains("1 message waits"), "{output:?}");
    desk.run(&["call", "bridge_read_messages", "mark_read=true", "--agent", "eve"]);
    let waiting = waits();
    std::thread::sleep(Duration::from_millis(500));
    desk.kill_server();
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{output:?}");
}

#[test]
fn a_server_that_a_client_starts_stays_in_no_folder_of_its_project() {
    let desk = Desk::new();
    let project = tempfile::tempdir().unwrap();
    let client = desk.command(&["mcp", "--agent", "code"]).current_dir(project.path()).stdin(Stdio::null()).output().unwrap();
    assert!(client.status.success(), "{client:?}");
    desk.url();
    let pid = desk.holder().unwrap()["pid"].as_u64().unwrap();
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), desk.path().canonicalize().unwrap());
}

#[test]
fn every_shell_gets_its_completions() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = desk.run(&["completions", shell]);
        assert!(output.status.success() && stdout(&output).contains("deskmate"), "{shell}");
    }
    for document in ["config", "openapi", "events", "operations"] {
        assert!(json(&desk.run(&["schema", document])).is_object() || json(&desk.run(&["schema", document])).is_array());
    }
}

#[test]
fn waiting_without_a_project_is_for_mail_of_any() {
    let desk = Desk::new();
    let url = desk.up();
    let started = std::time::Instant::now();
    let none = desk.run(&["wait", "--agent", "code", "--timeout", "300ms", "--json"]);
    assert_eq!(json(&none)["messages"], serde_json::json!([]), "a time-out is JSON too");
    let none = desk.run(&["wait", "--agent", "code", "--timeout", "300ms"]);
    assert_ne!(none.status.code(), Some(0));
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    let sent =
        super::http::post(&url, "/api/bridge_send_message", &[("X-Deskmate-Agent", "cowork")], "{\"to\":\"code\",\"content\":\"x\",\"project\":\"web\"}");
    assert_eq!(sent.status, 200, "{}", sent.body);
    let woken = desk.run(&["wait", "--agent", "code", "--timeout", "10s"]);
    assert!(woken.status.success() && String::from_utf8_lossy(&woken.stdout).contains("web"), "{woken:?}");
    let other = desk.run(&["wait", "--agent", "code", "--timeout", "300ms", "--project", "default"]);
    assert_ne!(other.status.code(), Some(0));
    let own = desk.run(&["wait", "--agent", "code", "--timeout", "10s", "--project", "web"]);
    assert!(own.status.success(), "{own:?}");
}

#[test]
fn a_command_of_a_person_leaves_no_session() {
    let desk = Desk::new();
    desk.register("code");
    for _ in 0..3 {
        assert!(with_passphrase(&desk, "correct horse", &["agent", "list"]).status.success());
    }
    let listed = json(&with_passphrase(&desk, "correct horse", &["call", "desk_session_list", "--json"]));
    // The session that claimed the desk over HTTP, and the one of this very command.
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2, "{listed}");
}

#[test]
fn the_log_repeats_no_secret() {
    let desk = Desk::new();
    desk.up();
    let url = desk.url();
    super::http::post(&url, "/api/desk_sign_in", &[], "{\"passphrase\":77441199}");
    super::http::post(&url, "/api/bridge_send_message", &[("X-Deskmate-Agent", "code")], "{\"to\":\"x\",\"content\":88442200}");
    let log = super::desk::until("the refusals are logged", || {
        std::fs::read_to_string(desk.path().join("server.log")).ok().filter(|log| log.matches("refused").count() >= 2)
    });
    assert!(!log.contains("77441199") && !log.contains("88442200"), "{log}");
}

#[test]
fn looking_at_a_record_makes_no_key() {
    let desk = Desk::new();
    desk.up();
    assert!(desk.run(&["stop"]).status.success());
    let key = desk.path().join("record.key");
    let aside = desk.path().join("aside.key");
    std::fs::rename(&key, &aside).unwrap();
    for words in [["audit", "verify"], ["audit", "checkpoint"]] {
        let output = desk.run(&words);
        assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("record.key"), "{output:?}");
    }
    let refused = desk.run(&["up"]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("record.key"), "{refused:?}");
    assert!(!key.exists(), "a lost key is not replaced by another");
    std::fs::rename(&aside, &key).unwrap();
    assert!(desk.run(&["audit", "verify"]).status.success());
}

#[test]
fn a_kept_checkpoint_that_is_unreadable_is_a_finding() {
    let desk = Desk::new();
    desk.up();
    assert!(desk.run(&["stop"]).status.success());
    let note = String::from_utf8(desk.run(&["audit", "checkpoint"]).stdout).unwrap();
    let line = serde_json::Value::from(note).to_string();
    let file = desk.path().join("kept.jsonl");
    let verify = |text: String| {
        std::fs::write(&file, text).unwrap();
        desk.run(&["audit", "verify", "--checkpoint", file.to_str().unwrap()]).status.code()
    };
    assert_eq!(verify(format!("{line}\n")), Some(0));
    assert_eq!(verify(format!("{line}\n{line}\n\"half a li")), Some(0), "a line that was never finished");
    assert_eq!(verify(format!("{line}\nscratched out\n")), Some(7));
    assert_eq!(verify("scratched out\n".to_owned()), Some(7));
}

#[test]
fn the_files_of_a_desk_are_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    std::fs::set_permissions(desk.path(), std::fs::Permissions::from_mode(0o775)).unwrap();
    std::fs::write(desk.path().join("messages.db"), "").unwrap();
    std::fs::set_permissions(desk.path().join("messages.db"), std::fs::Permissions::from_mode(0o644)).unwrap();
    desk.up();
    let mode = |name: &str| std::fs::metadata(desk.path().join(name)).unwrap().permissions().mode() & 0o777;
    for name in ["desk.db", "desk.db-wal", "messages.db", "record.key", "desk.sock", "http.sock", "server.log"] {
        assert_eq!(mode(name) & 0o077, 0, "{name} is {:o}", mode(name));
    }
    assert_eq!(mode("") & 0o022, 0, "nobody else puts files into it");
}
