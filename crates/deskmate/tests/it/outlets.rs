//! Mail, chats and phones from outside: a mail server that checks TLS and passwords, listeners that keep what each service would get,
//! some of which fail, and links that decide.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::desk::{Desk, until};
use super::http::{get, post};
use super::notify::{call, claimed};
use super::smtp::{MailServer, PASSWORD, Protected, USER, nobody};
use super::tls;

/// A request as a service got it.
#[derive(Clone, Debug)]
struct Got {
    path: String,
    head: String,
    body: Value,
}

/// A service on loopback: it keeps what it gets, and answers as it is told, then with 200. An empty answer hangs.
struct Service {
    url: String,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Service {
    fn new(answers: &[&str]) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), answers)
    }

    fn on(listener: TcpListener, answers: &[&str]) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let got: Arc<Mutex<Vec<Got>>> = Arc::default();
        let kept = Arc::clone(&got);
        let mut answers: VecDeque<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
        std::thread::spawn(move || {
            let mut hanging = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(one) = read(&stream) else { continue };
                kept.lock().unwrap().push(one);
                let answer = answers.pop_front().unwrap_or_else(|| "200||{\"ok\":true,\"id\":\"m-1\",\"result\":{\"message_id\":77}}".to_owned());
                match answer.splitn(3, '|').collect::<Vec<_>>().as_slice() {
                    [status, headers, body] => {
                        let head = format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
                        drop((&stream).write_all(head.as_bytes()));
                    }
                    _ => hanging.push(stream),
                }
            }
        });
        Self { url, got }
    }

    fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    fn wait(&self, number: usize) -> Vec<Got> {
        until("the requests come", || Some(self.got()).filter(|got| got.len() >= number))
    }
}

fn read(stream: &TcpStream) -> Option<Got> {
    let (head, body) = crate::notify::read(stream)?;
    let path = head.split(' ').nth(1)?.to_owned();
    Some(Got { path, head, body: serde_json::from_slice(&body).ok()? })
}

const AGENT_WROTE: &str = "@everyone <!channel> **now** https://evil.example ada@example.com";

fn secret(url: &str, session: &str, name: &str, value: &str) {
    call(url, session, "desk_secret_set", &json!({ "name": name, "value": value }));
}

fn subscribe(url: &str, session: &str, input: &Value) {
    call(url, session, "desk_subscription_set", input);
}

fn try_it(url: &str, session: &str, name: &str) -> Value {
    call(url, session, "desk_subscription_test", &json!({ "name": name }))
}

fn propose(url: &str, target: &str) -> String {
    let input =
        json!({ "domain": "crm.deals", "action": "update", "target": target, "proposed_change": "{\"amount\": 1}", "confidence": 0.5, "reasoning": "because" });
    let answer = post(url, "/api/cowork_propose", &[("X-Deskmate-Agent", "code")], &input.to_string());
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()["request_id"].as_str().expect("a request").to_owned()
}

fn notifications(url: &str, session: &str) -> Vec<Value> {
    call(url, session, "desk_notification_list", &json!({}))["notifications"].as_array().unwrap().clone()
}

fn newest(url: &str, session: &str, state: &str) -> Value {
    until(state, || notifications(url, session).into_iter().find(|one| one["state"] == state))
}

/// No file of the desk but the encrypted store's own has any of these in it.
fn nowhere(desk: &Desk, needles: &[&str]) {
    for entry in std::fs::read_dir(desk.path()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let bytes = std::fs::read(&entry).unwrap();
        for needle in needles {
            assert!(!bytes.windows(needle.len()).any(|part| part == needle.as_bytes()), "{needle} is in {}", entry.display());
        }
    }
}

fn mail(server: &MailServer, tls: &str, more: &str) -> String {
    format!(
        "notifications:\n  outlets:\n    - name: mail\n      kind: email\n      host: localhost\n      port: {}\n      tls: {tls}\n      from: Deskmate <desk@example.org>\n{more}",
        server.port
    )
}

const LOGIN: &str = "      user: desk\n      password: secret:mail\n";

#[test]
fn mail_arrives_over_both_kinds_of_tls_with_a_password_that_nobody_sees() {
    for (protected, tls) in [(Protected::Implicit, "implicit"), (Protected::Starttls, "starttls")] {
        let desk = Desk::new();
        tls::certificate(desk.path(), "DNS:localhost");
        let server = MailServer::new(protected, Some(desk.path()), &[]);
        let (url, session) = claimed(&desk, &mail(&server, tls, &format!("{LOGIN}      ca_file: cert.pem\n")));
        subscribe(&url, &session, &json!({ "outlet": "mail", "address": "ada@example.net", "details": "redacted" }));
        // A secret that is not there is said, and can be put right.
        let without = try_it(&url, &session, "mail");
        assert_eq!((&without["arrived"], &without["permanent"]), (&json!(false), &json!(true)), "{without}");
        assert!(without["why"].as_str().unwrap().contains("there is no secret mail"), "{without}");
        secret(&url, &session, "mail", PASSWORD);
        std::thread::sleep(Duration::from_secs(6));
        let done = try_it(&url, &session, "mail");
        assert_eq!(done["arrived"], true, "{done}");
        let test = server.wait(1).remove(0);
        assert_eq!((test.tls, test.user.as_deref()), (true, Some(USER)));
        assert_eq!((test.header("message-id"), test.header("auto-submitted")), (done["receipt"].as_str().unwrap(), "auto-generated"));
        let request = propose(&url, AGENT_WROTE);
        let told = server.wait(2).remove(1);
        assert!(told.from.contains("<desk@example.org>") && told.to == ["TO:<ada@example.net>"], "{told:?}");
        assert_eq!((told.header("subject"), told.header("to")), ("Deskmate: something needs you", "ada@example.net"));
        let body = told.body();
        assert!(body.contains("risk] code asks for a proposal in crm.deals: ") && body.contains(&format!("{url}/requests/{request}")), "{body}");
        for bad in ["ada@example.com", "@everyone", "://evil"] {
            assert!(!body.contains(bad), "{bad} in {body}");
        }
        let one = newest(&url, &session, "delivered");
        assert_eq!(one["receipt"], told.header("message-id"));
        assert!(told.header("message-id").contains(one["notification"].as_str().unwrap()));
        let listed = call(&url, &session, "desk_secret_list", &json!({}));
        assert_eq!(listed["secrets"][0]["used_by"], json!(["outlet:mail"]));
        assert!(desk.run(&["stop"]).status.success());
        nowhere(&desk, &[PASSWORD]);
    }
}

#[test]
fn mail_without_tls_goes_to_this_machine_alone() {
    let desk = Desk::new();
    let server = MailServer::new(Protected::No, None, &[]);
    let (url, session) = claimed(&desk, &mail(&server, "none", ""));
    subscribe(&url, &session, &json!({ "outlet": "mail", "address": "ada@example.net" }));
    assert_eq!(try_it(&url, &session, "mail")["arrived"], true);
    assert!(!server.wait(1)[0].tls);
}

#[test]
fn mail_that_is_not_protected_as_it_should_be_is_not_sent() {
    // A certificate that nobody vouches for, and a server that has no TLS to offer.
    for (protected, tls, says) in
        [(Protected::Implicit, "implicit", "certificate"), (Protected::Starttls, "starttls", "certificate"), (Protected::No, "starttls", "STARTTLS")]
    {
        let desk = Desk::new();
        tls::certificate(desk.path(), "DNS:localhost");
        let server = MailServer::new(protected, Some(desk.path()), &[]);
        let (url, session) = claimed(&desk, &mail(&server, tls, LOGIN));
        secret(&url, &session, "mail", PASSWORD);
        subscribe(&url, &session, &json!({ "outlet": "mail", "address": "ada@example.net" }));
        let failed = try_it(&url, &session, "mail");
        assert_eq!(failed["arrived"], false, "{failed}");
        assert!(failed["why"].as_str().unwrap().to_lowercase().contains(&says.to_lowercase()), "{tls}: {failed}");
        assert!(server.taken().is_empty());
    }
}

#[test]
fn a_mail_server_that_refuses_for_now_is_tried_again_and_one_that_refuses_for_good_is_not() {
    let desk = Desk::new();
    let server = MailServer::new(Protected::No, None, &["451 4.3.0 later", "452 4.3.1 full"]);
    let (url, session) = claimed(&desk, &mail(&server, "none", ""));
    subscribe(&url, &session, &json!({ "outlet": "mail", "address": "ada@example.net", "batch_seconds": 0 }));
    propose(&url, "deal/1");
    let one = newest(&url, &session, "delivered");
    assert_eq!((&one["attempt"], server.taken().len()), (&json!(3), 1));
    // An address that the server does not know.
    subscribe(&url, &session, &json!({ "outlet": "mail", "address": "nobody@example.net", "batch_seconds": 0 }));
    propose(&url, "deal/2");
    let dead = newest(&url, &session, "failed");
    assert_eq!((&dead["error"], &dead["attempt"], &dead["permanent"]), (&json!("the mail server answered 550"), &json!(1), &json!(true)), "{dead}");
    assert!(!std::fs::read_to_string(desk.path().join("server.log")).unwrap_or_default().contains("whose-name-is-secret"));
    // Put right and sent round again, it arrives.
    subscribe(&url, &session, &json!({ "outlet": "mail", "address": "ada@example.net", "batch_seconds": 0 }));
    call(&url, &session, "desk_notification_retry", &json!({ "notification": dead["notification"] }));
    until("it arrives", || (server.taken().len() == 2).then_some(()));
    until("nothing is dead", || (call(&url, &session, "desk_notification_list", &json!({}))["dead"] == 0).then_some(()));
    let wrong = call(&url, &session, "desk_subscription_test", &json!({ "name": "mail" }));
    assert_eq!(wrong["arrived"], true);
}

#[test]
fn a_wrong_password_is_told_as_such() {
    let desk = Desk::new();
    tls::certificate(desk.path(), "DNS:localhost");
    let server = MailServer::new(Protected::Implicit, Some(desk.path()), &[]);
    let (url, session) = claimed(&desk, &mail(&server, "implicit", &format!("{LOGIN}      ca_file: cert.pem\n")));
    secret(&url, &session, "mail", "not-the-password-2fk3");
    subscribe(&url, &session, &json!({ "outlet": "mail", "address": "ada@example.net" }));
    let failed = try_it(&url, &session, "mail");
    assert_eq!((&failed["why"], &failed["permanent"]), (&json!("the mail server answered 535"), &json!(true)), "{failed}");
}

#[test]
fn a_killed_server_sends_what_was_on_its_way_with_the_same_id() {
    let desk = Desk::new();
    let server = MailServer::new(Protected::No, None, &["hang"]);
    let (url, session) = claimed(&desk, &mail(&server, "none", ""));
    subscribe(&url, &session, &json!({ "outlet": "mail", "address": "ada@example.net" }));
    propose(&url, "deal/1");
    newest(&url, &session, "sending");
    std::thread::sleep(Duration::from_millis(500));
    desk.kill_server();
    let url = desk.up();
    let mails = server.wait(1);
    let one = newest(&url, &session, "delivered");
    assert!(mails[0].header("message-id").contains(one["notification"].as_str().unwrap()));
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(server.taken().len(), 1, "once in the ordinary case");
}

/// Outlets of every kind that speaks over HTTP, all on one listener; the addresses of webhooks are secrets.
fn chats(service: &Service) -> String {
    let url = &service.url;
    format!(
        "notifications:\n  outlets:\n    - {{ name: slack, kind: slack, url: 'secret:slack' }}\n    - {{ name: teams, kind: teams, url: 'secret:teams' }}\n    \
         - {{ name: discord, kind: discord, url: 'secret:discord' }}\n    - {{ name: mattermost, kind: mattermost, url: 'secret:mattermost' }}\n    \
         - {{ name: ntfy, kind: ntfy, url: '{url}', token: 'secret:ntfy' }}\n    - {{ name: telegram, kind: telegram, url: '{url}', token: 'secret:telegram' }}\n"
    )
}

const TOKEN: &str = "4711:AAH-secret-of-the-bot";

#[test]
fn each_service_gets_what_it_documents() {
    let (desk, service) = (Desk::new(), Service::new(&[]));
    let (url, session) = claimed(&desk, &chats(&service));
    for name in ["slack", "teams", "discord", "mattermost"] {
        secret(&url, &session, name, &format!("{}/hooks/{name}-secret-path", service.url));
    }
    secret(&url, &session, "ntfy", "tk_secret_of_ntfy");
    secret(&url, &session, "telegram", TOKEN);
    let ways = [("slack", None), ("teams", None), ("discord", None), ("mattermost", Some("@ada")), ("ntfy", Some("ada-desk")), ("telegram", Some("4711"))];
    for (outlet, address) in ways {
        let mut input = json!({ "outlet": outlet, "details": "full" });
        if let Some(address) = address {
            input["address"] = json!(address);
        }
        subscribe(&url, &session, &input);
    }
    let request = propose(&url, AGENT_WROTE);
    let got = service.wait(6);
    let of = |path: &str| got.iter().find(|one| one.path == path).unwrap_or_else(|| panic!("{path} in {got:#?}")).clone();
    let page = format!("{url}/requests/{request}");
    let slack = of("/hooks/slack-secret-path").body;
    assert_eq!(slack["blocks"][1]["text"]["type"], "plain_text");
    let teams = of("/hooks/teams-secret-path").body;
    assert_eq!(teams["attachments"][0]["contentType"], "application/vnd.microsoft.card.adaptive");
    let discord = of("/hooks/discord-secret-path?wait=true").body;
    assert_eq!(discord["allowed_mentions"], json!({ "parse": [] }));
    let mattermost = of("/hooks/mattermost-secret-path").body;
    assert_eq!(mattermost["channel"], "@ada");
    let ntfy = of("/");
    assert!(ntfy.head.to_lowercase().contains("authorization: bearer tk_secret_of_ntfy"), "{}", ntfy.head);
    assert_eq!((&ntfy.body["topic"], &ntfy.body["click"]), (&json!("ada-desk"), &json!(page)));
    let telegram = of(&format!("/bot{TOKEN}/sendMessage")).body;
    assert_eq!((&telegram["chat_id"], &telegram["parse_mode"]), (&json!(4711), &json!("HTML")));
    for body in [slack, teams, discord, mattermost, ntfy.body, telegram] {
        let said = body.to_string();
        assert!(said.contains(&page) && said.contains("code asks for a proposal"), "{said}");
        for bad in ["@everyone", "<!channel>", "://evil"] {
            assert!(!said.contains(bad), "{bad} in {said}");
        }
    }
    until("all arrived", || notifications(&url, &session).iter().all(|one| one["state"] == "delivered").then_some(()));
    let receipts: Vec<Value> = notifications(&url, &session).iter().filter_map(|one| one.get("receipt").cloned()).collect();
    assert!(receipts.contains(&json!("77")) && receipts.contains(&json!("m-1")), "{receipts:?}");
    // Neither record, rows, log nor answers know the secrets.
    let said = call(&url, &session, "desk_subscription_list", &json!({})).to_string() + &call(&url, &session, "desk_notification_list", &json!({})).to_string();
    assert!(!said.contains("secret-path") && !said.contains("AAH-") && !said.contains("tk_secret"), "{said}");
    assert!(desk.run(&["stop"]).status.success());
    nowhere(&desk, &["slack-secret-path", TOKEN, "tk_secret_of_ntfy"]);
}

#[test]
fn services_that_fail_are_waited_for_or_given_up() {
    let (desk, service) = (Desk::new(), Service::new(&["500||", "429|Retry-After: 2\r\n|", "429||{\"retry_after\":1.2}"]));
    let (url, session) = claimed(&desk, &chats(&service));
    secret(&url, &session, "discord", &format!("{}/hooks/x", service.url));
    subscribe(&url, &session, &json!({ "outlet": "discord", "batch_seconds": 0 }));
    propose(&url, "deal/1");
    let one = newest(&url, &session, "delivered");
    assert_eq!((&one["attempt"], service.got().len()), (&json!(4), 4));
    let bodies: Vec<Value> = service.got().into_iter().map(|one| one.body).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "the same at every attempt");
}

#[test]
fn a_webhook_that_is_gone_or_wrong_is_not_asked_again() {
    let (desk, service) = (Desk::new(), Service::new(&["400||{}", "404||{}"]));
    let (url, session) = claimed(&desk, &chats(&service));
    secret(&url, &session, "slack", &format!("{}/hooks/x", service.url));
    secret(&url, &session, "teams", "not an address at all");
    subscribe(&url, &session, &json!({ "outlet": "slack", "batch_seconds": 0 }));
    propose(&url, "deal/1");
    let refused = newest(&url, &session, "failed");
    assert_eq!((&refused["error"], &refused["permanent"]), (&json!("the service answered 400"), &json!(true)));
    propose(&url, "deal/2");
    let off = until("the way is off", || {
        Some(call(&url, &session, "desk_subscription_list", &json!({}))["subscriptions"][0].clone()).filter(|one| one["on"] == false)
    });
    assert!(off["disabled_at"].is_string(), "{off}");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!((service.got().len(), call(&url, &session, "desk_notification_list", &json!({}))["dead"].clone()), (2, json!(2)));
    // What is no address is said without being repeated.
    subscribe(&url, &session, &json!({ "outlet": "teams" }));
    let wrong = try_it(&url, &session, "teams");
    assert!(wrong["why"].as_str().unwrap().contains("not an address") && !wrong.to_string().contains("at all"), "{wrong}");
    // The command line shows them, and deals with them.
    let with_passphrase = |args: &[&str]| {
        let mut child = desk
            .command(&[args, &["--json", "--passphrase-stdin"]].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
        child.wait_with_output().unwrap()
    };
    let dead: Value = serde_json::from_slice(&with_passphrase(&["notify", "dead"]).stdout).unwrap();
    assert_eq!(dead["notifications"].as_array().unwrap().len(), 2);
    std::thread::sleep(Duration::from_secs(5));
    let tested = with_passphrase(&["notify", "test", "teams"]);
    assert_eq!(tested.status.code(), Some(1), "what did not arrive is a failure: {tested:?}");
    let dismissed = with_passphrase(&["notify", "dismiss", "--all"]);
    assert!(dismissed.status.success(), "{dismissed:?}");
    assert_eq!(call(&url, &session, "desk_notification_list", &json!({}))["dead"], 0);
    let set =
        with_passphrase(&["notify", "set", "slack", "--name", "nightly", "--digest", "monday@08:00", "--quiet", "22:00-07:00", "--zone", "Europe/Berlin"]);
    let set: Value = serde_json::from_slice(&set.stdout).unwrap_or_else(|_| panic!("{set:?}"));
    assert_eq!((&set["digest"], &set["quiet_hours"]["to"]), (&json!({ "every": "week", "on": "monday", "at": "08:00" }), &json!("07:00")));
}

#[test]
fn a_service_that_hangs_or_is_away_is_tried_again() {
    let desk = Desk::new();
    let away = nobody();
    let service = Service { url: format!("http://{away}"), got: Arc::default() };
    let (url, session) = claimed(&desk, &chats(&service));
    secret(&url, &session, "mattermost", &format!("http://{away}/hooks/x"));
    subscribe(&url, &session, &json!({ "outlet": "mattermost" }));
    propose(&url, "deal/1");
    until("the first attempt failed", || notifications(&url, &session).first()?["error"].as_str().map(str::to_owned));
    let back = Service::on(TcpListener::bind(away).unwrap(), &["", ""]);
    // It takes the request and says nothing.
    until("a second one is under way", || (!back.got().is_empty()).then_some(()));
    assert_eq!(notifications(&url, &session)[0]["state"], "sending");
}

#[test]
fn a_chat_can_be_a_channel_for_everybody() {
    let (desk, service) = (Desk::new(), Service::new(&[]));
    let section = "notifications:\n  base_url: http://localhost:7373\n  outlets:\n    - name: team\n      kind: slack\n      url: secret:slack\n      channel: { domains: [crm.*], text: true, batch_seconds: 0 }\n    \
                   - name: lists\n      kind: email\n      host: localhost\n      tls: none\n      from: desk@example.org\n";
    let (url, session) = claimed(&desk, section);
    secret(&url, &session, "slack", &format!("{}/hooks/x", service.url));
    let request = propose(&url, AGENT_WROTE);
    let told = service.wait(1).remove(0).body.to_string();
    assert!(told.contains(&format!("http://localhost:7373/requests/{request}")) && told.contains("[redacted:email]"), "{told}");
    let channels = call(&url, &session, "desk_notification_list", &json!({}))["channels"].clone();
    let tells: Vec<(&Value, &Value)> = channels.as_array().unwrap().iter().map(|one| (&one["channel"], &one["tells"])).collect();
    assert_eq!(tells, [(&json!("lists"), &json!(false)), (&json!("team"), &json!(true))]);
}

#[test]
fn a_link_in_a_mail_decides_once_and_looking_decides_nothing() {
    let desk = Desk::new();
    let server = MailServer::new(Protected::No, None, &[]);
    let (url, session) = claimed(&desk, &mail(&server, "none", ""));
    subscribe(&url, &session, &json!({ "outlet": "mail", "address": "ada@example.net", "decide_links": true, "batch_seconds": 0 }));
    let request = propose(&url, "deal/<script>alert(1)</script>");
    let body = server.wait(1).remove(0).body();
    let link = body.lines().find_map(|line| line.split_once("/decide?link=")).map_or_else(|| panic!("no link in {body}"), |(_, link)| link.trim().to_owned());
    let state = || call(&url, &session, "desk_request_get", &json!({ "request": request }))["state"].clone();
    // Whatever fetches links in a mailbox fetches a page that says what would be decided.
    for _ in 0..3 {
        let page = get(&url, &format!("/decide?link={link}"), &[]);
        assert_eq!(page.status, 200, "{}", page.body);
        assert!(page.body.contains("&lt;script&gt;") && !page.body.contains("<script>alert"), "{}", page.body);
        assert!(page.body.contains("Nothing is decided yet") && page.head.to_lowercase().contains("referrer-policy: no-referrer"), "{}", page.head);
    }
    assert_eq!(state(), "pending");
    let answer = |link: &str, origin: &str| post(&url, "/decide", &[("Origin", origin)], &json!({ "link": link, "answer": "approve" }).to_string());
    assert_eq!(answer(&link, "http://evil.example").status, 403, "a page of another origin presses no button");
    assert_eq!(state(), "pending");
    let done = answer(&link, &url);
    assert_eq!((done.status, &done.json()["state"]), (200, &json!("approved")), "{}", done.body);
    assert_eq!(state(), "approved");
    let again = answer(&link, &url);
    assert_eq!((again.status, &again.json()["decided"]), (410, &json!(false)), "{}", again.body);
    let page = get(&url, &format!("/decide?link={link}"), &[]);
    assert!(page.status == 410 && page.body.contains("used already") && page.body.contains(&format!("/requests/{request}")), "{}", page.body);
    assert_eq!(get(&url, "/decide?link=dml_nonsense", &[]).status, 401);
    let used = call(&url, &session, "desk_record_list", &json!({ "kind": "decision_link.used" }));
    assert_eq!(used["events"].as_array().unwrap().len(), 1);
    assert!(desk.run(&["stop"]).status.success());
    nowhere(&desk, &[&link]);
}

#[test]
fn an_owner_can_forbid_links_for_everybody() {
    let desk = Desk::new();
    let server = MailServer::new(Protected::No, None, &[]);
    let (url, session) = claimed(&desk, &mail(&server, "none", "  decide_links: false\n"));
    let input = json!({ "outlet": "mail", "address": "ada@example.net", "decide_links": true });
    let refused = post(&url, "/api/desk_subscription_set", &[("Authorization", &format!("Bearer {session}"))], &input.to_string());
    assert!(refused.status == 400 && refused.body.contains("deskmate.yaml turns it off"), "{}", refused.body);
}

#[test]
fn mistakes_in_outlets_stop_the_start_and_repeat_no_secret() {
    let outlet = |text: &str| format!("notifications:\n  outlets:\n    - {text}\n");
    for (text, says) in [
        (outlet("{ name: mail, kind: email, host: smtp.example.org, tls: none, from: a@b.example }"), "this machine"),
        (outlet("{ name: mail, kind: email, host: smtp.example.org }"), "from is needed"),
        (outlet("{ name: mail, kind: email, host: smtp.example.org, from: nobody }"), "from must be"),
        (outlet("{ name: mail, kind: email, from: a@b.example }"), "host is needed"),
        (outlet("{ name: mail, kind: email, host: h, from: a@b.example, user: desk }"), "belong together"),
        (outlet("{ name: mail, kind: email, host: h, from: a@b.example, user: desk, password: hunter2-plain }"), "secret:NAME"),
        (outlet("{ name: mail, kind: email, host: h, from: a@b.example, url: 'https://x.example' }"), "url means nothing"),
        (outlet("{ name: s, kind: slack, url: 'https://hooks.slack.com/services/T0/B0/plainsecret' }"), "secret:NAME"),
        (outlet("{ name: s, kind: slack }"), "url is needed"),
        (outlet("{ name: s, kind: slack, url: 'secret:x', addresses: [a] }"), "addresses means nothing"),
        (outlet("{ name: t, kind: telegram, token: '123:plain' }"), "secret:NAME"),
        (outlet("{ name: t, kind: telegram }"), "token is needed"),
        (outlet("{ name: n, kind: ntfy, url: 'http://ntfy.example.org' }"), "https"),
        (outlet("{ name: n, kind: ntfy, channel: {} }"), "channel.to is needed"),
        (outlet("{ name: n, kind: ntfy, channel: { to: 'a b' } }"), "channel.to"),
        (outlet("{ name: p, kind: pigeon }"), "pigeon"),
        (outlet("{ name: desktop, kind: slack, url: 'secret:x' }"), "not desktop"),
        ("notifications:\n  base_url: https://elsewhere.example\n".to_owned(), "does not answer to elsewhere.example"),
        ("notifications:\n  reminders: { medium: soon }\n".to_owned(), "4h"),
    ] {
        let desk = Desk::new();
        std::fs::write(desk.path().join("deskmate.yaml"), &text).unwrap();
        let output = desk.run(&["up"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(stderr.contains(says) && stderr.contains("deskmate.yaml"), "{text}: {stderr}");
        for bad in ["hunter2-plain", "plainsecret", "123:plain"] {
            assert!(!stderr.contains(bad), "{stderr}");
        }
    }
}
