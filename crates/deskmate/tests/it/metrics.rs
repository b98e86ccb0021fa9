//! `/metrics` from outside: off by default, for people's credentials only, in the text format that Prometheus reads, and
//! with labels that no caller can make more of.

#![expect(clippy::float_cmp, reason = "the figures are counts, and the format writes them as floats")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use super::desk::{Client, Desk, LONG, until};
use super::http::{get, post};
use super::notify::{call, claimed};

const ON: &str = "telemetry:\n  prometheus: true\n";
const CODE: (&str, &str) = ("X-Deskmate-Agent", "code");

/// A sample's name and its labels.
type Series = (String, BTreeMap<String, String>);

/// Figures as Prometheus would read them.
struct Figures {
    samples: BTreeMap<Series, f64>,
}

impl Figures {
    fn of(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.samples.get(&(name.to_owned(), labels)).copied().unwrap_or_else(|| panic!("there is no {name} in {:#?}", self.samples.keys()))
    }

    fn find(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let fits = |series: &Series| series.0 == name && labels.iter().all(|(name, value)| series.1.get(*name).is_some_and(|found| found == value));
        self.samples.iter().find(|(series, _)| fits(series)).map(|(_, value)| *value)
    }

    /// Every value of a label.
    fn words(&self, label: &str) -> BTreeSet<&str> {
        self.samples.keys().filter_map(|(_, labels)| labels.get(label)).map(String::as_str).collect()
    }
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_' || first == ':')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
}

/// Reads the labels between the braces; a value ends at a quote that no backslash stands before.
fn labels(mut text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").expect("a label has a value");
        assert!(is_name(name) && !name.contains(':'), "{name}");
        let (mut value, mut chars) = (String::new(), rest.chars());
        loop {
            match chars.next().expect("a value ends") {
                '"' => break,
                '\\' => value.push(match chars.next().expect("an escape is whole") {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    other => panic!("\\{other} is no escape"),
                }),
                c => value.push(c),
            }
        }
        assert!(found.insert(name.to_owned(), value).is_none(), "{name} is there twice");
        text = chars.as_str();
        text = text.strip_prefix(',').unwrap_or(text);
    }
    found
}

/// Reads the text format strictly: each family has its help, its type, and then all its samples; nothing is there twice, and
/// histograms add up.
fn parse(text: &str) -> Figures {
    assert!(text.ends_with('\n'), "the last line ends");
    let (mut samples, mut families) = (BTreeMap::new(), BTreeMap::new());
    let mut helped = String::new();
    let mut family = (String::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            helped = rest.split_once(' ').expect("a help has a text").0.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type has a name");
            assert!(is_name(name) && name == helped, "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(families.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} is told twice");
            family = (name.to_owned(), kind.to_owned());
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
            let (name, inside) = series.strip_suffix('}').map_or((series, ""), |series| series.split_once('{').expect("braces"));
            let known = if family.1 == "histogram" { ["_bucket", "_sum", "_count"].iter().any(|end| name == family.0.clone() + end) } else { name == family.0 };
            assert!(is_name(name) && known, "{line} does not belong to {family:?}");
            assert!(family.1 != "counter" || name.ends_with("_total"), "{line}");
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
            assert!(samples.insert((name.to_owned(), labels(inside)), value).is_none(), "{line} is there twice");
        }
    }
    for ((name, labels), count) in samples.iter().filter(|((name, _), _)| name.ends_with("_seconds_count")) {
        let bucket = name.replace("_count", "_bucket");
        let of = |series: &Series| series.0 == bucket && labels.iter().all(|(label, value)| series.1.get(label) == Some(value));
        let mut buckets: Vec<(f64, f64)> =
            samples.iter().filter(|(series, _)| of(series)).map(|(series, value)| (series.1["le"].parse().unwrap(), *value)).collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.is_sorted_by(|a, b| a.1 <= b.1), "{buckets:?}");
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, *count)));
    }
    Figures { samples }
}

/// A personal token that may read the figures and nothing else.
fn token(url: &str, session: &str, scope: &str) -> String {
    let made = call(url, session, "desk_token_create", &json!({ "note": "watching", "scopes": [scope] }));
    format!("Bearer {}", made["token"].as_str().unwrap())
}

fn scrape(url: &str, token: &str) -> Figures {
    let answer = get(url, "/metrics", &[("Authorization", token)]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.head.contains("text/plain; version=0.0.4"), "{}", answer.head);
    parse(&answer.body)
}

fn send(url: &str, content: &str) -> u16 {
    post(url, "/api/bridge_send_message", &[CODE], &json!({ "to": "cowork", "content": content }).to_string()).status
}

#[test]
fn figures_are_off_unless_they_are_asked_for() {
    let desk = Desk::new();
    let (url, session) = claimed(&desk, "");
    for headers in [vec![], vec![("Authorization", format!("Bearer {session}"))]] {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = get(&url, "/metrics", &headers);
        assert_eq!(answer.status, 404, "{}", answer.body);
        assert!(answer.body.contains("telemetry"), "{}", answer.body);
    }
}

#[test]
fn figures_are_for_people_only() {
    let desk = Desk::new();
    let (url, session) = claimed(&desk, ON);
    let good = token(&url, &session, "desk_backlog:read");
    scrape(&url, &good);
    let status = |headers: &[(&str, &str)]| get(&url, "/metrics", headers).status;
    assert_eq!(status(&[("Authorization", &format!("Bearer {session}"))]), 200, "a person who is signed in");
    assert_eq!(status(&[("Cookie", &format!("deskmate_session={session}"))]), 200, "and in the browser");
    assert_eq!(status(&[]), 401, "also on this machine");
    assert_eq!(status(&[CODE]), 403, "an agent by its name");
    assert_eq!(status(&[("Authorization", "Bearer dmp_nonsense")]), 401);
    let added = call(&url, &session, "desk_agent_add", &json!({ "agent": "code" }));
    assert_eq!(status(&[("Authorization", &format!("Bearer {}", added["token"].as_str().unwrap()))]), 403, "an agent by its token");
    assert_eq!(status(&[("Authorization", &token(&url, &session, "bridge:read"))]), 403, "a token for something else");
    for foreign in [("Host", "evil.example"), ("Origin", "http://evil.example"), ("Origin", "http://localhost:1"), ("Origin", "null")] {
        assert_eq!(status(&[("Authorization", &good), foreign]), 403, "{foreign:?}");
    }
    let answer = get(&url, "/metrics", &[("Authorization", &good), ("Origin", &url)]);
    assert!(!answer.head.to_lowercase().contains("access-control-"), "{}", answer.head);
}

#[test]
fn calls_decisions_and_what_waits_are_counted() {
    let desk = Desk::new();
    let (url, session) = claimed(&desk, ON);
    let token = token(&url, &session, "desk_backlog");
    let before = scrape(&url, &token);
    for number in 0..5 {
        assert_eq!(send(&url, &format!("hello {number}")), 200);
    }
    assert_eq!(send(&url, ""), 400);
    let proposal =
        json!({ "domain": "crm.deals", "action": "update", "target": "deal/1", "proposed_change": "{\"a\":1}", "confidence": 0.5, "reasoning": "x" });
    assert_eq!(post(&url, "/api/cowork_propose", &[CODE], &proposal.to_string()).status, 200);
    assert_eq!(post(&url, "/api/bridge_send_message", &[], "{\"to\":\"x\",\"content\":\"y\"}").status, 401);
    call(&url, &session, "desk_record_verify", &json!({}));
    // What is in the store is read before what is counted here, so the end of the job may show in the one and not in the other.
    let ended =
        |found: &Figures| found.of("deskmate_jobs_ended_total", &[("state", "done")]) >= 1.0 && found.of("deskmate_jobs", &[("state", "running")]) == 0.0;
    let after = until("the job ended", || Some(scrape(&url, &token)).filter(ended));
    let calls = |outcome: &str| after.of("deskmate_calls_total", &[("operation", "bridge_send_message"), ("outcome", outcome), ("surface", "rest")]);
    assert_eq!((calls("done"), calls("invalid"), calls("unauthenticated")), (5.0, 1.0, 1.0));
    assert_eq!(after.of("deskmate_call_duration_seconds_count", &[("operation", "bridge_send_message")]), 7.0);
    assert!(after.of("deskmate_call_duration_seconds_sum", &[("operation", "bridge_send_message")]) > 0.0);
    assert_eq!(after.of("deskmate_decisions_total", &[("mode", "escalate")]), 1.0);
    assert_eq!(after.of("deskmate_decisions_total", &[("mode", "act")]), 0.0);
    assert_eq!(before.of("deskmate_requests_pending", &[("kind", "proposal")]), 0.0);
    assert_eq!(after.of("deskmate_requests_pending", &[("kind", "proposal")]), 1.0);
    assert!(after.of("deskmate_record_events", &[]) >= before.of("deskmate_record_events", &[]) + 6.0);
    assert!(after.of("deskmate_commits_total", &[]) > before.of("deskmate_commits_total", &[]));
    assert!(after.of("deskmate_committed_writes_total", &[]) >= after.of("deskmate_commits_total", &[]));
    assert_eq!(after.of("deskmate_build_info", &[("engine", "sqlite"), ("version", env!("CARGO_PKG_VERSION"))]), 1.0);
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    assert!((0.0..600.0).contains(&(now - after.of("process_start_time_seconds", &[]))));
    let scrapes = after.find("deskmate_calls_total", &[("operation", "desk_backlog"), ("outcome", "done")]).unwrap();
    assert!(scrapes >= 1.0, "reading is a call as well");
}

#[test]
fn what_is_open_is_counted_while_it_is_open() {
    let desk = Desk::new();
    let (url, session) = claimed(&desk, ON);
    let token = token(&url, &session, "desk_backlog");
    let open = |name: &str| scrape(&url, &token).of(name, &[]);
    assert_eq!((open("deskmate_streams_open"), open("deskmate_mcp_sessions")), (0.0, 0.0));
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    write!(stream, "GET /api/stream HTTP/1.1\r\nHost: localhost\r\nX-Deskmate-Agent: code\r\n\r\n").unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    until("the stream is counted", || (open("deskmate_streams_open") == 1.0).then_some(()));
    drop(stream);
    until("its end too", || (open("deskmate_streams_open") == 0.0).then_some(()));
    let mut client = Client::start(&desk, &["--agent", "code"]);
    client.initialize("2025-06-18");
    until("the session is counted", || (open("deskmate_mcp_sessions") == 1.0).then_some(()));
    client.close();
    until("its end too", || (open("deskmate_mcp_sessions") == 0.0).then_some(()));
    let figures = scrape(&url, &token);
    assert!(figures.words("surface").contains("mcp"), "{:?}", figures.words("surface"));
}

#[test]
fn a_call_that_its_caller_gave_up_is_counted_as_that() {
    let desk = Desk::new();
    let (url, session) = claimed(&desk, ON);
    let token = token(&url, &session, "desk_backlog");
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let body = "{\"timeout_seconds\":20}";
    let head = "POST /api/bridge_wait_for_messages HTTP/1.1\r\nHost: localhost\r\nX-Deskmate-Agent: code\r\nContent-Type: application/json";
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(stream);
    until("it is counted", || scrape(&url, &token).find("deskmate_calls_total", &[("operation", "bridge_wait_for_messages"), ("outcome", "cancelled")]));
}

#[test]
fn no_caller_makes_labels() {
    let desk = Desk::new();
    let (url, session) = claimed(&desk, ON);
    let token = token(&url, &session, "desk_backlog");
    let play = |from: usize| {
        for number in from..from + 20 {
            let name = format!("made-up-{number}");
            post(&url, "/api/bridge_send_message", &[("X-Deskmate-Agent", &name)], &json!({ "to": name, "content": name }).to_string());
            post(&url, &format!("/api/{name}"), &[CODE], "{}");
            post(&url, "/mcp", &[CODE], &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": {} } }).to_string());
            get(&url, "/api/desk_status", &[("X-Deskmate-Surface", &name)]);
        }
        scrape(&url, &token)
    };
    play(0);
    let (first, second) = (play(20), play(40));
    let series = |figures: &Figures| figures.samples.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(series(&first), series(&second), "more callers and names are not more lines");
    for (_, labels) in series(&second) {
        assert!(labels.values().all(|value| !value.contains("made-up") && !value.contains("code") && !value.contains("Ada")), "{labels:?}");
    }
}
