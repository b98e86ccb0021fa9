//! Settings that cannot be understood stop the start; exposure without protection is refused.

use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::desk::{Client, Desk, until};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_mistake_in_the_file_stops_the_start_with_its_line() {
    for (text, says, line) in [
        ("listen: 127.0.0.1:0\nlog:\n  levle: info\n", "levle", 3),
        ("policy_mode: strickt\n", "strickt", 1),
        ("log:\n  level: loud\n", "loud", 2),
        ("listen: 127.0.0.1:0\n\tbad: yes\n", "deskmate.yaml", 1),
    ] {
        let desk = Desk::new();
        let file = desk.path().join("deskmate.yaml");
        std::fs::write(&file, text).unwrap();
        let output = desk.run(&["up"]);
        assert_eq!(output.status.code(), Some(1));
        let named = [format!("deskmate.yaml:{line}:"), format!("line {line} column")].iter().any(|place| stderr(&output).contains(place));
        assert!(named, "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
        assert!(!desk.path().join("desk.db").exists(), "nothing was made");
    }
}

#[test]
fn a_log_level_that_is_not_one_stops_the_start() {
    let desk = Desk::new();
    let output = desk.run(&["up", "--log", "loud"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("loud"), "{}", stderr(&output));
}

#[test]
fn listening_beyond_this_machine_needs_protection() {
    let desk = Desk::new();
    let output = desk.run(&["up", "--listen", "0.0.0.0:0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("TLS"), "{}", stderr(&output));
    std::fs::write(desk.path().join("deskmate.yaml"), "proxy: https://desk.example.org\n").unwrap();
    let output = desk.run(&["up", "--listen", "0.0.0.0:0"]);
    assert!(stderr(&output).contains("open"), "{}", stderr(&output));
}

#[test]
fn a_proxy_in_front_of_this_machine_needs_a_closed_desk() {
    let desk = Desk::new();
    std::fs::write(desk.path().join("deskmate.yaml"), "proxy: https://desk.example.org\n").unwrap();
    let output = desk.run(&["up"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("open"), "{}", stderr(&output));
}

#[test]
fn a_path_that_is_too_long_for_a_socket_is_said() {
    let desk = Desk::new();
    let home = desk.path().join("deep").join("x".repeat(100));
    let output = desk.command(&["up"]).env("DESKMATE_HOME", &home).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("--home") && stderr(&output).contains("desk.sock"), "{}", stderr(&output));
    assert!(!String::from_utf8_lossy(&output.stdout).contains("claim?code"), "nobody is greeted at a desk that has no doors");
}

#[test]
fn an_address_that_is_taken_is_said() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let desk = Desk::new();
    let output = desk.run(&["up", "--listen", &taken.local_addr().unwrap().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--listen"), "{}", stderr(&output));
}

/// Makes a certificate for this machine and settings that use it; answers the certificate's path.
fn certified(desk: &Desk) -> std::path::PathBuf {
    let (certificate, key) = (desk.path().join("cert.pem"), desk.path().join("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:TRUE", "-keyout"])
        .args([&key, std::path::Path::new("-out"), &certificate])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success());
    std::fs::write(desk.path().join("deskmate.yaml"), format!("tls:\n  certificate: {}\n  key: {}\n", certificate.display(), key.display())).unwrap();
    certificate
}

fn fetch(url: &str, extra: &[&str]) -> std::process::Output {
    Command::new("curl").args(["-sS", "--max-time", "10"]).args(extra).arg(url).output().unwrap()
}

#[test]
fn certificate_files_make_it_https() {
    let desk = Desk::new();
    let certificate = certified(&desk);
    let url = desk.up();
    assert!(url.starts_with("https://"), "{url}");
    let trusted = ["--cacert", certificate.to_str().unwrap()];
    let answer = until("https answers", || Some(fetch(&format!("{url}/healthz"), &trusted)).filter(|answer| answer.status.success()));
    assert!(String::from_utf8_lossy(&answer.stdout).contains("\"ok\":true"));
    assert!(!fetch(&format!("{url}/healthz"), &[]).status.success(), "a certificate that nobody vouches for is not believed");
    // Somebody who connects and says nothing must not keep others waiting.
    let silent = std::net::TcpStream::connect(url.strip_prefix("https://").unwrap()).unwrap();
    assert!(fetch(&format!("{url}/healthz"), &trusted).status.success());
    drop(silent);
    assert!(desk.run(&["status"]).status.success(), "the command line does not depend on TLS");
}

#[test]
fn a_closed_desk_with_a_certificate_listens_beyond_this_machine() {
    let desk = Desk::new();
    let token = desk.register("code");
    assert!(desk.run(&["stop"]).status.success());
    let certificate = certified(&desk);
    let mut server =
        desk.command(&["up", "--background", "--listen", "0.0.0.0:0"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let authority = certificate.to_str().unwrap();
    let port = until("it answers", || {
        let port = desk.holder()?["url"].as_str()?.rsplit(':').next()?.parse::<u16>().ok()?;
        fetch(&format!("https://127.0.0.1:{port}/healthz"), &["--cacert", authority]).status.success().then_some(port)
    });
    let url = format!("https://127.0.0.1:{port}/api/bridge_read_messages");
    let trusted = ["--cacert", authority, "--json", "{}", "-w", " %{http_code}"];
    let said = |extra: &[&str]| String::from_utf8_lossy(&fetch(&url, &[&trusted[..], extra].concat()).stdout).into_owned();
    assert!(said(&[]).ends_with(" 401"), "{}", said(&[]));
    assert!(said(&["-H", "X-Deskmate-Agent: code"]).ends_with(" 401"), "a name proves nothing");
    let bearer = format!("Authorization: Bearer {token}");
    assert!(said(&["-H", &bearer]).ends_with(" 200"), "{}", said(&["-H", &bearer]));
    assert!(desk.run(&["stop"]).status.success());
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_record_of_another_key_is_refused() {
    let desk = Desk::new();
    desk.up();
    assert!(desk.run(&["stop"]).status.success());
    std::fs::remove_file(desk.path().join("record.key")).unwrap();
    let output = desk.run(&["up"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("record.key"), "{}", stderr(&output));
}

#[test]
fn the_log_names_the_decision_of_a_call() {
    let desk = Desk::new();
    std::fs::write(desk.path().join("deskmate.yaml"), "log:\n  level: debug\n  format: json\n").unwrap();
    let url = desk.up();
    let proposal =
        json!({ "domain": "crm.deals", "action": "update", "target": "deal/1", "proposed_change": "{\"a\":1}", "confidence": 0.5, "reasoning": "x" });
    assert_eq!(super::http::post(&url, "/api/cowork_propose", &[("X-Deskmate-Agent", "code")], &proposal.to_string()).status, 200);
    let log = until("the line is there", || {
        let log = std::fs::read_to_string(desk.path().join("server.log")).ok()?;
        log.lines().find(|line| line.contains("\"operation\":\"cowork_propose\"")).map(str::to_owned)
    });
    let line: Value = serde_json::from_str(&log).unwrap();
    let fields = &line["fields"];
    assert_eq!((&fields["decision"], &fields["actor"], &fields["surface"]), (&json!("escalate"), &json!("code"), &json!("rest")));
    assert!(fields["micros"].as_u64().is_some(), "{line}");
}

#[test]
fn a_server_in_the_background_keeps_the_store_that_was_named_where_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::new();
    let mut command = desk.command(&["mcp", "--agent", "code"]);
    command.current_dir(folder.path()).env("DESKMATE_DATABASE_URL", "sqlite:kept.db");
    let mut client = Client::of(&desk, command);
    client.call("initialize", json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } }));
    assert!(folder.path().join("kept.db").is_file());
    assert!(!desk.path().join("kept.db").exists() && !desk.path().join("desk.db").exists());
}
