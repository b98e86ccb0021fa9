//! Secrets from outside: the command line, the key's file, backups, and a search for the value in everything that a desk leaves.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use super::desk::{Desk, until};
use super::http::post;
use crate::running::text;

const VALUE: &str = "hunter2-Zx9-do-not-tell";
const OTHER: &str = "rotated-Qw8-do-not-tell";

/// Starts a desk with an owner, and answers what a second start would no longer print.
fn claimed(desk: &Desk) {
    let mut server = desk.command(&["up", "--log", "trace"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log(desk)).spawn().unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    let code = lines.into_iter().find_map(|line| line.split_once("/claim?code=").map(|(_, code)| code.trim().to_owned())).unwrap();
    std::thread::spawn(move || drop(server.wait()));
    let claim = json!({ "code": code, "name": "Ada", "passphrase": "correct horse" });
    assert_eq!(post(&desk.url(), "/api/desk_claim", &[], &claim.to_string()).status, 200);
}

/// Everything that servers of this desk say, in one file beside its data.
fn log(desk: &Desk) -> Stdio {
    let path = desk.path().join("stderr.log");
    std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap().into()
}

/// Stops the server and starts another one.
fn again(desk: &Desk) {
    assert!(desk.run(&["stop"]).status.success());
    start(desk);
}

fn start(desk: &Desk) {
    let mut server = desk.command(&["up", "--log", "trace"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log(desk)).spawn().unwrap();
    std::thread::spawn(move || drop(server.wait()));
    until("it answers", || std::os::unix::net::UnixStream::connect(desk.path().join("http.sock")).ok());
}

/// A command with the passphrase and more on its standard input.
pub(crate) fn typed(desk: &Desk, words: &[&str], input: &str) -> Output {
    let words = [words, &["--json", "--passphrase-stdin"]].concat();
    let mut child = desk.command(&words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdin.take().unwrap().write_all(format!("correct horse\n{input}").as_bytes()));
    child.wait_with_output().unwrap()
}

fn answer(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The files beneath a folder in which some bytes stand.
fn holding(folder: &Path, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, bytes));
        } else if path.metadata().is_ok_and(|found| found.is_file()) {
            let mut content = Vec::new();
            std::fs::File::open(&path).unwrap().read_to_end(&mut content).unwrap();
            if content.windows(bytes.len()).any(|window| window == bytes) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// The value as it is, and as programs write it.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let digest = <sha2::Sha256 as sha2::Digest>::digest(value.as_bytes());
    vec![
        value.as_bytes().to_vec(),
        data_encoding::BASE64.encode(value.as_bytes()).into_bytes(),
        data_encoding::HEXLOWER.encode(value.as_bytes()).into_bytes(),
        data_encoding::HEXLOWER.encode(&digest).into_bytes(),
        digest.to_vec(),
    ]
}

#[test]
fn the_value_is_in_no_file_and_on_no_surface() {
    let desk = Desk::new();
    claimed(&desk);
    let made = answer(&typed(&desk, &["secret", "set", "mail"], &format!("{VALUE}\n")));
    assert_eq!((&made["name"], &made["version"]), (&json!("mail"), &json!(1)));
    let key = desk.path().join("secret.key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    // A call that is refused, one that is malformed, and the value in the place of the name.
    assert!(!typed(&desk, &["secret", "set", "mail"], VALUE).status.success());
    assert!(!typed(&desk, &["secret", "set", "Mail"], VALUE).status.success());
    let wrong = format!("{{\"name\": \"x\", \"value\": [\"{VALUE}\"]}}");
    assert!(!typed(&desk, &["call", "desk_secret_set", "--input", "-"], &wrong).status.success());
    let nobody = post(&desk.url(), "/api/desk_secret_set", &[], &json!({ "name": "y", "value": VALUE }).to_string());
    assert!(nobody.status >= 400 && !nobody.body.contains(VALUE));
    answer(&typed(&desk, &["secret", "rotate", "mail"], OTHER));
    let sign_in = post(&desk.url(), "/api/desk_sign_in", &[], &json!({ "passphrase": "correct horse" }).to_string());
    let session: Value = serde_json::from_str(&sign_in.body).unwrap();
    let bearer = format!("Bearer {}", session["session"].as_str().unwrap());
    let surfaces = ["desk_secret_list", "desk_record_list", "desk_status", "desk_job_list", "desk_notification_list", "desk_whoami"];
    let mut said = String::new();
    for operation in surfaces {
        said.push_str(&post(&desk.url(), &format!("/api/{operation}"), &[("Authorization", bearer.as_str())], "{}").body);
    }
    assert!(said.contains("\"mail\"") && said.contains("secret.rotated"), "{said}");
    let beside = desk.path().join("beside");
    std::fs::create_dir(&beside).unwrap();
    let file = |name: &str| beside.join(name).display().to_string();
    let saved = answer(&desk.run(&["backup", &file("desk.backup"), "--json"]));
    assert!(saved["notes"].to_string().contains("secret.key"), "{saved}");
    assert!(desk.run(&["audit", "export", &file("record.jsonl")]).status.success());
    assert!(desk.path().join("desk.db-wal").exists(), "the search is over a running desk");
    for value in [VALUE, OTHER] {
        for form in forms(value) {
            assert_eq!(holding(desk.path(), &form), Vec::<String>::new());
            let form = String::from_utf8_lossy(&form).into_owned();
            assert!(!said.contains(&form));
        }
    }
    let key = std::fs::read(&key).unwrap();
    let in_files = holding(desk.path(), key.trim_ascii_end());
    assert_eq!(in_files, [desk.path().join("secret.key").display().to_string()], "the key is in its file, and in no backup that is open");
}

#[test]
fn a_value_is_never_an_argument() {
    let desk = Desk::new();
    for words in [
        ["call", "desk_secret_set", "name=mail", "value=hunter2"].as_slice(),
        &["call", "desk_secret_set", "--input", "{\"name\":\"m\",\"value\":\"hunter2\"}"],
    ] {
        let refused = desk.run(words);
        let said = text(&refused);
        assert!(!refused.status.success() && said.contains("not given as arguments") && !said.contains("hunter2"), "{said}");
    }
    assert!(!desk.run(&["secret", "set", "mail", "hunter2"]).status.success());
}

#[test]
fn lines_of_a_key_come_in_whole_and_one_newline_at_the_end_does_not_count() {
    let desk = Desk::new();
    claimed(&desk);
    let one = answer(&typed(&desk, &["secret", "set", "one"], "line 1\nline 2\n"));
    let same = typed(&desk, &["secret", "rotate", "one"], "line 1\nline 2");
    assert!(text(&same).contains("has already"), "{}", text(&same));
    let other = answer(&typed(&desk, &["secret", "rotate", "one"], "line 1\nline 2\n\n"));
    assert_ne!(one["fingerprint"], other["fingerprint"]);
    let long = typed(&desk, &["secret", "set", "two"], &"x".repeat(65 * 1024));
    assert!(text(&long).contains("at most 65536"), "{}", text(&long));
    assert_eq!(answer(&typed(&desk, &["secret", "list"], ""))["secrets"].as_array().unwrap().len(), 1);
    answer(&typed(&desk, &["secret", "remove", "one"], ""));
    assert_eq!(answer(&typed(&desk, &["secret", "list"], ""))["secrets"], json!([]));
}

#[test]
fn a_key_that_is_open_missing_or_another_locks_the_secrets_and_not_the_desk() {
    let desk = Desk::new();
    claimed(&desk);
    answer(&typed(&desk, &["secret", "set", "mail"], VALUE));
    let key = desk.path().join("secret.key");
    let right = std::fs::read(&key).unwrap();
    let locked = |why: &str| {
        again(&desk);
        let listed = answer(&typed(&desk, &["secret", "list"], ""));
        assert!(listed["locked"].as_str().is_some_and(|said| said.contains(why)), "{why}: {listed}");
        let refused = typed(&desk, &["secret", "set", "other"], VALUE);
        assert!(!refused.status.success() && text(&refused).contains(why), "{}", text(&refused));
        let log = std::fs::read_to_string(desk.path().join("stderr.log")).unwrap();
        assert!(log.lines().any(|line| line.contains("WARN") && line.contains("secret")), "said at start: {log}");
    };
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    locked("others can reach it");
    std::fs::remove_file(&key).unwrap();
    locked("is missing");
    assert!(!key.exists(), "no new key takes the place of a lost one");
    let another = Desk::new();
    claimed(&another);
    std::fs::copy(another.path().join("secret.key"), &key).unwrap();
    locked("is not the one");
    std::fs::write(&key, right).unwrap();
    again(&desk);
    assert!(answer(&typed(&desk, &["secret", "list"], "")).get("locked").is_none());
}

#[test]
fn a_backup_brings_the_key_when_it_is_encrypted_and_says_so_when_it_is_not() {
    let desk = Desk::new();
    claimed(&desk);
    let made = answer(&typed(&desk, &["secret", "set", "mail"], VALUE));
    let file = |name: &str| desk.path().join(name).display().to_string();
    let open = answer(&desk.run(&["backup", &file("open"), "--json"]));
    assert!(open["notes"].to_string().contains("their key is not"), "{open}");
    let closed = answer(&typed(&desk, &["backup", &file("closed"), "--encrypt"], ""));
    assert!(!closed["notes"].to_string().contains("secret.key"), "{closed}");
    let restored = Desk::new();
    answer(&typed(&restored, &["restore", &file("closed")], ""));
    let key = restored.path().join("secret.key");
    assert_eq!(std::fs::read(&key).unwrap(), std::fs::read(desk.path().join("secret.key")).unwrap());
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    start(&restored);
    let listed = answer(&typed(&restored, &["secret", "list"], ""));
    assert_eq!((listed.get("locked"), &listed["secrets"][0]["fingerprint"]), (None, &made["fingerprint"]));
    let bare = Desk::new();
    let told = answer(&bare.run(&["restore", &file("open"), "--json"]));
    assert!(told["notes"].to_string().contains("need their key"), "{told}");
    assert!(!bare.path().join("secret.key").exists());
    start(&bare);
    assert!(answer(&typed(&bare, &["secret", "list"], ""))["locked"].as_str().unwrap().contains("is missing"));
}

#[test]
fn what_a_request_would_do_is_in_no_file_and_comes_back_with_its_key() {
    let mail = "jane.doe.zx9@example.org";
    let change = json!({ "to": mail, "password": VALUE });
    let desk = Desk::new();
    claimed(&desk);
    let input = json!({ "domain": "crm", "action": "update", "target": "deal/1", "proposed_change": change.to_string(), "confidence": 0.9, "reasoning": format!("{mail} asked") });
    let proposed = || {
        answer(&desk.run(&["call", "cowork_propose", "--agent", "sales", "--input", &input.to_string(), "--json"]))["proposal_id"].as_str().unwrap().to_owned()
    };
    let (id, other) = (proposed(), proposed());
    let get = |desk: &Desk, id: &str| answer(&typed(desk, &["call", "desk_request_get", "--input", &json!({ "request": id }).to_string()], ""));
    assert_eq!(get(&desk, &id)["act"]["arguments"], change);
    answer(&typed(&desk, &["call", "desk_request_reject", "--input", &json!({ "request": other, "reason": "no" }).to_string()], ""));
    assert_eq!(get(&desk, &other)["act"]["arguments"], json!({ "to": "[redacted:email]", "password": "[redacted:secret_field]" }));
    let file = |name: &str| desk.path().join(name).display().to_string();
    let open = answer(&desk.run(&["backup", &file("open"), "--json"]));
    assert!(open["notes"].to_string().contains("requests that are not over"), "{open}");
    answer(&typed(&desk, &["backup", &file("closed"), "--encrypt"], ""));
    assert!(desk.run(&["audit", "export", &file("record.jsonl")]).status.success());
    for value in [mail, VALUE] {
        assert_eq!(holding(desk.path(), value.as_bytes()), Vec::<String>::new(), "not in the store, the log, an export or a backup");
    }
    let restored = Desk::new();
    answer(&typed(&restored, &["restore", &file("closed")], ""));
    start(&restored);
    assert_eq!(get(&restored, &id)["act"]["arguments"], change);
    // Without its key a desk starts, and says why it decides nothing.
    let bare = Desk::new();
    answer(&bare.run(&["restore", &file("open"), "--json"]));
    start(&bare);
    let refused = typed(&bare, &["call", "desk_request_approve", "--input", &json!({ "request": id }).to_string()], "");
    assert!(!refused.status.success() && text(&refused).contains("secret.key"), "{}", text(&refused));
    assert!(bare.run(&["audit", "verify"]).status.success(), "the record is whole without it");
}
