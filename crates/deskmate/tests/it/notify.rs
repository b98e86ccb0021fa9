//! Notifications from outside: a real receiver that checks signatures on its own, a program that stands in for the
//! desktop, and servers that are killed in between.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::desk::{Desk, until};
use super::http::post;
use super::tls;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What a receiver got.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")));
        line.and_then(|line| line.split_once(':')).map_or_else(|| panic!("no {name} in {}", self.head), |(_, value)| value.trim())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Checks the signature with an HMAC of this test's own.
    fn check(&self) {
        assert_eq!(self.header("webhook-signature"), self.signature());
        let at: u64 = self.header("webhook-timestamp").parse().unwrap();
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        assert!(now.abs_diff(at) < 60, "{at} {now}");
    }

    /// The signature that it should have.
    fn signature(&self) -> String {
        let key = BASE64.decode(SECRET.strip_prefix("whsec_").unwrap().as_bytes()).unwrap();
        let signed = format!("{}.{}.{}", self.header("webhook-id"), self.header("webhook-timestamp"), self.body);
        let pad = |with: u8| {
            let mut block = [with; 64];
            block.iter_mut().zip(&key).for_each(|(byte, key)| *byte ^= key);
            block
        };
        let inner = Sha256::new().chain_update(pad(0x36)).chain_update(&signed).finalize();
        let outer = Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize();
        format!("v1,{}", BASE64.encode(&outer))
    }
}

/// Answers with the statuses that it is given, and then with 200. A status of 0 does not answer at all; with 503 it asks to
/// be left alone for two hours.
pub(crate) struct Receiver {
    pub(crate) url: String,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Receiver {
    pub(crate) fn new(statuses: &[u16]) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), statuses)
    }

    pub(crate) fn on(listener: TcpListener, statuses: &[u16]) -> Self {
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let got: Arc<Mutex<Vec<Got>>> = Arc::default();
        let (kept, mut statuses) = (Arc::clone(&got), statuses.iter().copied().collect::<VecDeque<_>>());
        std::thread::spawn(move || {
            let mut hanging = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(one) = one_of(&stream) else { continue };
                kept.lock().unwrap().push(one);
                match statuses.pop_front().unwrap_or(200) {
                    0 => hanging.push(stream),
                    status => {
                        let more = if status == 503 { "Retry-After: 7200\r\n" } else { "" };
                        drop((&stream).write_all(format!("HTTP/1.1 {status} X\r\nLocation: /elsewhere\r\n{more}Content-Length: 0\r\n\r\n").as_bytes()));
                    }
                }
            }
        });
        Self { url, got }
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// Waits for a number of requests.
    fn wait(&self, number: usize) -> Vec<Got> {
        let deadline = Instant::now() + Duration::from_mins(1);
        while self.got().len() < number {
            assert!(Instant::now() < deadline, "{} of {number} requests came", self.got().len());
            std::thread::sleep(Duration::from_millis(10));
        }
        self.got()
    }
}

fn one_of(stream: impl Read) -> Option<Got> {
    let (head, body) = read(stream)?;
    Some(Got { head, body: String::from_utf8(body).unwrap() })
}

/// The head and the body of a request.
pub(crate) fn read(stream: impl Read) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// Writes the section and claims the desk; answers where it listens and the owner's session.
pub(crate) fn claimed(desk: &Desk, section: &str) -> (String, String) {
    std::fs::write(desk.path().join("deskmate.yaml"), section).unwrap();
    let mut server = desk.command(&["up"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    let code = lines.find_map(|line| line.split_once("/claim?code=").map(|(_, code)| code.trim().to_owned())).expect("a link");
    std::thread::spawn(move || drop(server.wait()));
    let url = desk.url();
    let answer = post(&url, "/api/desk_claim", &[], &json!({ "code": code, "name": "Ada", "passphrase": "correct horse" }).to_string());
    assert_eq!(answer.status, 200, "{}", answer.body);
    let session = serde_json::from_str::<Value>(&answer.body).unwrap()["session"].as_str().unwrap().to_owned();
    (url, session)
}

pub(crate) fn call(url: &str, session: &str, operation: &str, input: &Value) -> Value {
    let answer = post(url, &format!("/api/{operation}"), &[("Authorization", &format!("Bearer {session}"))], &input.to_string());
    assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

/// Locks signing in, which is an urgent event.
fn lock_out(url: &str) {
    for _ in 0..5 {
        post(url, "/api/desk_sign_in", &[], &json!({ "name": "Ada", "passphrase": "wrong" }).to_string());
    }
}

fn webhook(receiver: &Receiver, more: &str) -> String {
    format!("notifications:\n  webhooks:\n    - name: team\n      url: {}\n      secret: {SECRET}\n{more}", receiver.url)
}

#[test]
fn a_signed_message_arrives_and_no_secret_is_kept() {
    let (desk, receiver) = (Desk::new(), Receiver::new(&[]));
    let (url, session) = claimed(&desk, &webhook(&receiver, ""));
    let tested = call(&url, &session, "desk_notification_test", &json!({ "channel": "team" }));
    let test = receiver.wait(1).remove(0);
    test.check();
    assert!(test.head.starts_with("POST /hook HTTP/1.1\r\n"), "{}", test.head);
    assert_eq!(test.header("webhook-id"), format!("msg_{}", tested["notification"].as_str().unwrap()));
    assert_eq!((test.header("content-type"), &test.json()["type"]), ("application/json", &json!("desk.test")));
    lock_out(&url);
    let told = receiver.wait(2).remove(1);
    told.check();
    let body = told.json();
    assert_eq!((&body["type"], &body["data"]["urgent"], &body["data"]["items"][0]["event"]), (&json!("desk.attention"), &json!(true), &json!("person.locked")));
    let listed = until("both are known to have arrived", || {
        let listed = call(&url, &session, "desk_notification_list", &json!({}));
        listed["notifications"].as_array().unwrap().iter().all(|one| one["state"] == "delivered").then_some(listed)
    });
    assert_eq!(listed["channels"][0]["target"], receiver.url.trim_end_matches("/hook"));
    // Neither the record nor the store nor the log knows the secret.
    assert!(desk.run(&["stop"]).status.success());
    let key = BASE64.decode(SECRET.trim_start_matches("whsec_").as_bytes()).unwrap();
    for entry in std::fs::read_dir(desk.path()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file() && !path.ends_with("deskmate.yaml")) {
        let bytes = std::fs::read(&entry).unwrap();
        for needle in [SECRET.trim_start_matches("whsec_").as_bytes(), &key, HEXLOWER.encode(&key).as_bytes()] {
            assert!(!bytes.windows(needle.len()).any(|part| part == needle), "{}", entry.display());
        }
    }
}

#[test]
fn a_receiver_that_fails_three_times_gets_the_same_again() {
    let (desk, receiver) = (Desk::new(), Receiver::new(&[500, 302, 429]));
    let (url, session) = claimed(&desk, &webhook(&receiver, ""));
    lock_out(&url);
    let got = receiver.wait(4);
    got.iter().for_each(Got::check);
    assert!(got.iter().all(|one| one.body == got[0].body && one.header("webhook-id") == got[0].header("webhook-id")), "{got:#?}");
    assert!(got.iter().all(|one| one.head.starts_with("POST /hook ")), "redirects are not followed");
    let one = until("it arrived", || {
        let listed = call(&url, &session, "desk_notification_list", &json!({}));
        Some(listed["notifications"][0].clone()).filter(|one| one["state"] == "delivered")
    });
    assert_eq!(one["attempt"], 4);
}

#[test]
fn a_receiver_that_asks_for_time_gets_it() {
    let (desk, receiver) = (Desk::new(), Receiver::new(&[503]));
    let (url, session) = claimed(&desk, &webhook(&receiver, ""));
    lock_out(&url);
    let one = until("it was put off", || {
        let listed = call(&url, &session, "desk_notification_list", &json!({}));
        Some(listed["notifications"][0].clone()).filter(|one| one["error"] == "the receiver answered 503")
    });
    let job = until("the job waits", || {
        let jobs = call(&url, &session, "desk_job_list", &json!({ "kind": "notification.deliver" }));
        Some(jobs["jobs"][0].clone()).filter(|job| job["state"] == "waiting")
    });
    let at = |name: &str| deskmate_core::parse_time(name, job[name].as_str().unwrap()).unwrap();
    assert!(at("run_at") - at("updated_at") >= 7_200_000_000, "{job} for {one}");
    assert_eq!(receiver.got().len(), 1);
}

#[test]
fn a_killed_server_delivers_after_its_restart() {
    let desk = Desk::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let away = Receiver { url: format!("http://{address}/hook"), got: Arc::default() };
    drop(listener);
    let (url, session) = claimed(&desk, &webhook(&away, ""));
    lock_out(&url);
    until("the first attempt failed", || call(&url, &session, "desk_notification_list", &json!({}))["notifications"][0]["error"].as_str().map(str::to_owned));
    desk.kill_server();
    let receiver = Receiver::on(TcpListener::bind(address).unwrap(), &[]);
    desk.up();
    let got = receiver.wait(1);
    // The lock file may have named the killed server still.
    let url = desk.url();
    got[0].check();
    assert_eq!(got[0].json()["data"]["items"][0]["event"], "person.locked");
    // What happened is told once: the follower went on where it was.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(receiver.got().len(), 1);
    assert_eq!(call(&url, &session, "desk_notification_list", &json!({}))["notifications"].as_array().unwrap().len(), 1);
}

#[test]
fn a_receiver_that_is_gone_turns_its_channel_off() {
    let (desk, receiver) = (Desk::new(), Receiver::new(&[410]));
    let (url, session) = claimed(&desk, &webhook(&receiver, ""));
    lock_out(&url);
    let listed = until("the channel is off", || {
        let listed = call(&url, &session, "desk_notification_list", &json!({}));
        listed["channels"][0]["disabled_at"].is_string().then_some(listed)
    });
    assert_eq!(listed["notifications"][0]["state"], "failed");
    assert_eq!(call(&url, &session, "desk_record_list", &json!({ "kind": "notification.given_up" }))["events"].as_array().unwrap().len(), 1);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(receiver.got().len(), 1, "it is not asked again");
}

fn propose(url: &str, agent: &str, target: &str) -> Value {
    let input =
        json!({ "domain": "crm.deals", "action": "update", "target": target, "proposed_change": "{\"amount\": 1}", "confidence": 0.5, "reasoning": "because" });
    let answer = post(url, "/api/cowork_propose", &[("X-Deskmate-Agent", agent)], &input.to_string());
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

#[test]
fn a_delivery_that_hangs_can_be_cancelled() {
    let (desk, receiver) = (Desk::new(), Receiver::new(&[0; 10]));
    let (url, session) = claimed(&desk, &webhook(&receiver, ""));
    lock_out(&url);
    receiver.wait(1);
    let jobs = call(&url, &session, "desk_job_list", &json!({ "kind": "notification.deliver" }));
    let job = jobs["jobs"][0]["job"].clone();
    call(&url, &session, "desk_job_cancel", &json!({ "job": job }));
    let begun = Instant::now();
    until("the running job stops", || (call(&url, &session, "desk_job_get", &json!({ "job": job }))["state"] == "cancelled").then_some(()));
    assert!(begun.elapsed() < Duration::from_secs(12), "it was only noticed when the receiver had had its time: {:?}", begun.elapsed());
    let listed = call(&url, &session, "desk_notification_list", &json!({}));
    assert_eq!(listed["notifications"][0]["state"], "failed", "{listed}");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(receiver.got().len(), 1, "it is not tried again");
}

#[test]
fn a_receiver_that_hangs_slows_nobody_down() {
    let (desk, receiver) = (Desk::new(), Receiver::new(&[0; 100]));
    let (url, session) = claimed(&desk, &webhook(&receiver, "      batch_seconds: 0\n"));
    for _ in 0..10 {
        call(&url, &session, "desk_notification_test", &json!({ "channel": "team" }));
    }
    // All places for notifications are taken.
    receiver.wait(8);
    let mut times: Vec<Duration> = (0..40)
        .map(|number| {
            let request = propose(&url, "code", &format!("deal/{number}"))["request_id"].clone();
            let begun = Instant::now();
            call(&url, &session, "desk_request_approve", &json!({ "request": request }));
            begun.elapsed()
        })
        .collect();
    times.sort();
    assert!(times[20] < Duration::from_millis(100), "{times:?}");
    // Other jobs have places of their own.
    let job = call(&url, &session, "desk_record_verify", &json!({}))["job"].clone();
    let done = call(&url, &session, "desk_job_wait", &json!({ "job": job, "timeout_seconds": 15 }));
    assert_eq!(done["state"], "done", "{done}");
}

#[test]
fn a_flood_of_proposals_rings_twice() {
    let (desk, receiver) = (Desk::new(), Receiver::new(&[]));
    let (url, session) = claimed(&desk, &webhook(&receiver, "      batch_seconds: 5\n      text: true\n      domains: [crm.*]\n"));
    // Many agents, because each has a cap of its own.
    std::thread::scope(|scope| {
        for agent in 0..8 {
            let url = &url;
            scope.spawn(move || (0..40).for_each(|number| drop(propose(url, &format!("agent-{agent}"), &format!("deal/{number}")))));
        }
    });
    let pending = || -> i64 {
        call(&url, &session, "desk_notification_list", &json!({}))["notifications"].as_array().unwrap().iter().map(|one| one["count"].as_i64().unwrap()).sum()
    };
    until("all are told", || (pending() == 320).then_some(()));
    until("all arrived", || {
        call(&url, &session, "desk_notification_list", &json!({}))["notifications"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["state"] == "delivered")
            .then_some(())
    });
    let got = receiver.got();
    got.iter().for_each(Got::check);
    assert!((1..=4).contains(&got.len()), "{}", got.len());
    let told: i64 = got.iter().map(|one| one.json()["data"]["count"].as_i64().unwrap()).sum();
    assert_eq!(told, 320);
    let item = got[0].json()["data"]["items"][0].clone();
    assert_eq!((&item["event"], &item["domain"], &item["request_kind"]), (&json!("request.created"), &json!("crm.deals"), &json!("proposal")));
    assert!(item["title"].as_str().unwrap().contains("deal/"), "{item}");
}

#[test]
fn checkpoints_are_sent_to_a_receiver_with_its_own_certificate() {
    let desk = Desk::new();
    tls::certificate(desk.path(), "DNS:localhost");
    let config = tls::config(desk.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let config = Arc::new(config);
        for stream in listener.incoming().map_while(Result::ok) {
            let mut tls = rustls::StreamOwned::new(rustls::ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
            if let Some(got) = one_of(&mut tls) {
                drop(tls.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").and_then(|()| tls.flush()));
                drop(sender.send(got));
            }
        }
    });
    std::fs::write(desk.path().join("hook.secret"), format!("{SECRET}\nwhsec_b2xkZXIga2V5IG9mIHRoZSBzYW1lIGRlc2s=\n")).unwrap();
    let section = |ca: &str| format!("checkpoints:\n  webhook:\n    url: https://localhost:{port}/checkpoints\n    secret_file: hook.secret\n{ca}");
    // A certificate that nobody vouches for is not spoken to.
    std::fs::write(desk.path().join("deskmate.yaml"), section("")).unwrap();
    desk.up();
    until("the log says so", || std::fs::read_to_string(desk.path().join("server.log")).ok().filter(|log| log.contains("could not be sent")));
    assert!(desk.run(&["stop"]).status.success());
    assert!(received.try_recv().is_err());
    std::fs::write(desk.path().join("deskmate.yaml"), section("    ca_file: cert.pem\n")).unwrap();
    desk.up();
    let got: Got = received.recv_timeout(Duration::from_secs(20)).expect("a checkpoint");
    let body = got.json();
    assert_eq!(body["type"], "record.checkpoint");
    assert!(body["data"]["checkpoint"].as_str().unwrap().starts_with("deskmate/"), "{body}");
    // Each key of the file signs, the newest first.
    let signatures: Vec<&str> = got.header("webhook-signature").split(' ').collect();
    assert_eq!(signatures.len(), 2);
    assert_eq!(signatures[0], got.signature());
}

/// A program that writes down what it was given, and its environment.
fn fake_desktop(desk: &Desk) -> (String, std::path::PathBuf) {
    let (program, out) = (desk.path().join("fake-notify"), desk.path().join("shown"));
    std::fs::write(
        &program,
        format!("#!/bin/sh\nfor part in \"$@\"; do printf '%s\\n--\\n' \"$part\"; done > {0}.new\nenv >> {0}.new\nmv {0}.new {0}\n", out.display()),
    )
    .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    (program.display().to_string(), out)
}

#[test]
fn the_desktop_is_told_without_a_shell() {
    let desk = Desk::new();
    let (program, out) = fake_desktop(&desk);
    let (url, session) = claimed(&desk, &format!("notifications:\n  desktop:\n    command: [{program}, \"$(id)\", --]\n"));
    call(&url, &session, "desk_notification_test", &json!({ "channel": "desktop" }));
    let shown = until("it is shown", || std::fs::read_to_string(&out).ok());
    assert!(shown.starts_with("$(id)\n--\n--\n--\nDeskmate: a test\n--\nthis is a test\n--\n"), "{shown}");
    assert!(!shown.contains("DESKMATE_HOME"), "{shown}");
    // What an agent wrote is text: no markup, no control characters, one line.
    std::fs::remove_file(&out).unwrap();
    propose(&url, "code", "<b>deal</b> & `id`\u{1b}[2J\nsecond line");
    let shown = until("the proposal is shown", || std::fs::read_to_string(&out).ok());
    assert!(shown.contains("&lt;b&gt;deal&lt;/b&gt; &amp; `id`[2J second line"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn a_desktop_that_is_not_there_is_said() {
    let desk = Desk::new();
    let (url, session) = claimed(&desk, "notifications:\n  desktop:\n    command: [no-such-program]\n    attempts: 1\n");
    let tested = call(&url, &session, "desk_notification_test", &json!({ "channel": "desktop" }));
    assert!(tested["degraded"].as_str().unwrap().contains("not there"), "{tested}");
    until("the failure is shown", || call(&url, &session, "desk_notification_list", &json!({}))["channels"][0]["error"].as_str().map(str::to_owned));
}

#[test]
fn mistakes_in_the_section_stop_the_start() {
    let hook = |more: &str| format!("notifications:\n  webhooks:\n    - name: team\n{more}");
    let secret = format!("      secret: {SECRET}\n");
    for (text, says) in [
        (hook(&format!("      url: http://example.org/\n{secret}")), "https"),
        (hook(&format!("      url: https://a:b@example.org/\n{secret}")), "password"),
        (hook("      url: https://example.org/\n      secret: whsec_c2hvcnQ=\n"), "openssl rand"),
        (hook("      url: https://example.org/\n"), "secret_file"),
        (hook(&format!("      url: https://example.org/\n{secret}      events: [everything]\n")), "everything"),
        (hook(&format!("      url: https://example.org/\n{secret}      quiet_hours: {{ from: late, to: '07:00' }}\n")), "22:00"),
        (hook(&format!("      url: https://example.org/\n{secret}      quiet_hours: {{ from: '22:00', to: '07:00', zone: Europe/Nowhere }}\n")), "time zone"),
        (hook(&format!("      url: https://example.org/\n{secret}    - name: team\n      url: https://example.org/\n{secret}")), "two channels"),
        ("notifications:\n  dekstop: {}\n".to_owned(), "dekstop"),
        ("notifications:\n  desktop:\n    attempts: 0\n".to_owned(), "attempts"),
    ] {
        let desk = Desk::new();
        std::fs::write(desk.path().join("deskmate.yaml"), &text).unwrap();
        let output = desk.run(&["up"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(stderr.contains(says) && stderr.contains("deskmate.yaml"), "{text}: {stderr}");
        assert!(!stderr.contains("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") && !stderr.contains("c2hvcnQ"), "{stderr}");
    }
}
