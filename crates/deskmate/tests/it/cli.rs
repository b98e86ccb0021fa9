//! The command line as people and scripts use it.

use std::io::{BufRead, BufReader, Write};
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

#[test]
fn the_tour_of_the_readme_works() {
    let desk = Desk::new();
    desk.up();
    let agent = |name: &str, args: &[&str]| desk.run(&[&["call"], args, &["--agent", name, "--json"]].concat());
    let sent = agent("code", &["bridge_send_message", "to=cowork", "content=The build is green."]);
    assert!(sent.status.success());
    let read = json(&agent("cowork", &["bridge_read_messages"]));
    assert_eq!(read["messages"][0]["content"], "The build is green.");
    assert_eq!(read["messages"][0]["verified"], false);
    assert!(agent("cowork", &["bridge_create_task", "to=code", "title=Write the release notes"]).status.success());
    assert!(agent("code", &["bridge_claim_task"]).status.success());
    let waited = desk.run(&["wait", "--agent", "cowork", "--timeout", "5s"]);
    assert!(waited.status.success());
    assert!(stdout(&waited).contains("1 message"), "{}", stdout(&waited));
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
