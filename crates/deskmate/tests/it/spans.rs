//! Spans from outside: a collector of the test's own takes them, with the protocol's own types; nothing that anybody said or
//! keeps secret is among them; and a collector that is dead costs no call anything.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Held;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::json;

use super::desk::{Client, Desk, LONG, modern, until};
use super::http::{get, post};
use super::notify::{Receiver, call, claimed};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-00f067aa0ba902b7-00";

fn settings(url: &str) -> String {
    format!("telemetry:\n  prometheus: true\n  otlp:\n    url: {url}\n")
}

/// Every span that came, read by the protocol's own types.
fn spans(receiver: &Receiver) -> Vec<Span> {
    let read = |body: &str| serde_json::from_str::<ExportTraceServiceRequest>(body).unwrap_or_else(|error| panic!("{error}: {body}"));
    let all = receiver.got().into_iter().flat_map(|got| read(&got.body).resource_spans);
    all.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
}

fn attribute<'s>(span: &'s Span, key: &str) -> Option<&'s str> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Held::StringValue(text) => Some(text),
        other => panic!("{key} is {other:?}"),
    }
}

fn wait_for(receiver: &Receiver, what: &str, fits: impl Fn(&Span) -> bool) -> Span {
    until(what, || spans(receiver).into_iter().find(|span| fits(span)))
}

#[test]
fn a_collector_gets_one_span_for_each_call_and_nothing_that_was_said() {
    let receiver = Receiver::new(&[]);
    let desk = Desk::new();
    std::fs::write(desk.path().join("collector.headers"), "X-Collector-Key: hush-collector\n").unwrap();
    let (url, session) = claimed(&desk, &format!("{}    headers_file: collector.headers\n", settings(&receiver.url)));
    let made = call(&url, &session, "desk_token_create", &json!({ "note": "hush-note", "scopes": ["bridge"] }));
    let secret = made["token"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {secret}");
    let message = json!({ "to": "hush-recipient", "content": "hush-content", "idempotency_key": "hush-key" }).to_string();
    assert_eq!(post(&url, "/api/bridge_send_message", &[("X-Deskmate-Agent", "hush-agent"), ("traceparent", PARENT)], &message).status, 200);
    assert_eq!(post(&url, "/api/bridge_send_message", &[("Authorization", &bearer)], "{\"to\":\"x\",\"hush-field\":1}").status, 400);
    post(&url, "/api/desk_sign_in", &[], "{\"passphrase\":\"hush-passphrase\"}");
    assert_eq!(post(&url, "/api/bridge_read_messages", &[("Authorization", "Bearer dma_hush")], "{}").status, 401);
    let proposal =
        json!({ "domain": "hush.domain", "action": "hush-act", "target": "hush", "proposed_change": "{\"hush\":1}", "confidence": 0.5, "reasoning": "hush" });
    let proposed = post(
        &url,
        "/api/cowork_propose?hush=1",
        &[("X-Deskmate-Agent", "hush-agent"), ("tracestate", "hush=1"), ("traceparent", UNSAMPLED)],
        &proposal.to_string(),
    );
    assert_eq!(proposed.status, 200);
    assert_eq!(post(&url, "/api/cowork_propose", &[("X-Deskmate-Agent", "hush-agent")], &proposal.to_string()).status, 200);

    let sent = wait_for(&receiver, "the send", |span| span.name == "bridge_send_message" && !span.parent_span_id.is_empty());
    assert_eq!((hex(&sent.trace_id), hex(&sent.parent_span_id)), ("4bf92f3577b34da6a3ce929d0e0e4736".to_owned(), "00f067aa0ba902b7".to_owned()));
    assert_eq!(attribute(&sent, "deskmate.operation"), Some("bridge_send_message"));
    assert_eq!(attribute(&sent, "deskmate.surface"), Some("rest"));
    assert_eq!(attribute(&sent, "deskmate.actor.kind"), Some("agent"));
    assert_eq!(attribute(&sent, "deskmate.outcome"), Some("done"));
    assert_eq!(sent.kind, 2);
    let took = Duration::from_nanos(sent.end_time_unix_nano - sent.start_time_unix_nano);
    assert!(took > Duration::ZERO && took < LONG, "{took:?}");
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    assert!(now.abs_diff(Duration::from_nanos(sent.end_time_unix_nano)) < Duration::from_mins(1));

    let refused = wait_for(&receiver, "the refusal", |span| attribute(span, "deskmate.outcome") == Some("invalid"));
    assert_eq!(attribute(&refused, "deskmate.actor.kind"), Some("person"));
    assert_eq!(refused.status.map_or(0, |status| status.code), 0, "the caller's mistake is no error of the desk");
    let unknown = wait_for(&receiver, "the wrong token", |span| span.name == "bridge_read_messages");
    assert_eq!((attribute(&unknown, "deskmate.outcome"), attribute(&unknown, "deskmate.actor.kind")), (Some("unauthenticated"), Some("unknown")));
    wait_for(&receiver, "the wrong passphrase", |span| span.name == "desk_sign_in");
    let decided = wait_for(&receiver, "the proposal", |span| span.name == "cowork_propose");
    assert_eq!(attribute(&decided, "deskmate.decision"), Some("escalate"));
    assert!(decided.parent_span_id.is_empty() && decided.trace_id.iter().any(|byte| *byte != 0), "a trace of its own");
    let all = spans(&receiver);
    assert_eq!(all.iter().filter(|span| span.name == "cowork_propose").count(), 1, "a trace that nobody keeps gets nothing");
    let ids: std::collections::BTreeSet<_> = all.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), all.len(), "every span has an id of its own");
    for got in receiver.got() {
        assert!(got.head.starts_with("POST /hook/v1/traces "), "{}", got.head);
        assert_eq!((got.header("content-type"), got.header("x-collector-key")), ("application/json", "hush-collector"));
        for private in ["hush", "Ada", "correct horse", session.as_str(), secret.as_str(), "dms_", "dmp_"] {
            assert!(!got.body.contains(private), "{private} is in {}", got.body);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

#[test]
fn mcp_calls_belong_to_the_trace_of_their_client() {
    let receiver = Receiver::new(&[]);
    let desk = Desk::new();
    let (url, _) = claimed(&desk, &settings(&receiver.url));
    let over_http = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "get_tasks", "arguments": {} } }).to_string();
    assert_eq!(post(&url, "/mcp/bridge?agent=code", &[("traceparent", PARENT)], &over_http).status, 200);
    let first = wait_for(&receiver, "the call over HTTP", |span| span.name == "bridge_get_tasks");
    assert_eq!((hex(&first.parent_span_id), attribute(&first, "deskmate.surface")), ("00f067aa0ba902b7".to_owned(), Some("mcp")));
    let mut client = Client::start(&desk, &["--toolset", "bridge", "--agent", "code"]);
    let parent = PARENT.replace("00f067aa0ba902b7", "1111111111111111");
    client.call("tools/call", modern(json!({ "name": "get_tasks", "arguments": {}, "_meta": { "traceparent": parent } })));
    wait_for(&receiver, "the call over stdio", |span| hex(&span.parent_span_id) == "1111111111111111");
}

#[test]
fn what_was_called_last_is_sent_before_the_server_ends() {
    let receiver = Receiver::new(&[]);
    let desk = Desk::new();
    let (url, _) = claimed(&desk, &settings(&receiver.url));
    assert_eq!(post(&url, "/api/bridge_send_message", &[("X-Deskmate-Agent", "code")], "{\"to\":\"x\",\"content\":\"y\"}").status, 200);
    assert!(desk.run(&["stop"]).status.success());
    assert!(spans(&receiver).iter().any(|span| span.name == "bridge_send_message"), "{:?}", spans(&receiver));
}

#[test]
fn a_collector_that_comes_back_gets_what_waited() {
    let receiver = Receiver::new(&[503, 429]);
    let desk = Desk::new();
    std::fs::write(desk.path().join("deskmate.yaml"), settings(&receiver.url)).unwrap();
    let url = desk.up();
    get(&url, "/api/desk_status", &[]);
    until("it came three times", || (receiver.got().len() >= 3).then_some(()));
    let got = receiver.got();
    assert_eq!((&got[0].body, &got[1].body), (&got[1].body, &got[2].body), "the same spans, until they were taken");
    assert!(desk.run(&["stop"]).status.success());
    let log = std::fs::read_to_string(desk.path().join("server.log")).unwrap();
    assert!(log.contains("the collector answered 503") && log.contains("takes spans again"), "{log}");
    assert!(!log.contains("spans were dropped"), "{log}");
}

/// The middle of the times that calls take.
fn middle(url: &str) -> Duration {
    let one = || {
        let started = Instant::now();
        assert_eq!(get(url, "/api/desk_status", &[]).status, 200);
        started.elapsed()
    };
    let mut times: Vec<Duration> = (0..60).map(|_| one()).collect();
    times.sort();
    times[times.len() / 2]
}

#[test]
fn a_dead_collector_slows_nobody() {
    // One that answers nothing, ever; one where nobody listens; and for comparison, none.
    let hanging = Receiver::new(&[0; 64]);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (none, hangs, gone) = (Desk::new(), Desk::new(), Desk::new());
    let (usual, _) = claimed(&none, "");
    let (first, _) = claimed(&hangs, &settings(&hanging.url));
    let (second, _) = claimed(&gone, &settings(&format!("http://{nobody}")));
    get(&first, "/api/desk_status", &[]);
    until("the collector was called and hangs", || (!hanging.got().is_empty()).then_some(()));
    let (usual, first, second) = (middle(&usual), middle(&first), middle(&second));
    // A call takes a millisecond or so; waiting for a collector would take a thousand and more.
    let much = usual * 5 + Duration::from_millis(100);
    assert!(first < much && second < much, "usual {usual:?}, hanging {first:?}, gone {second:?}");
    for desk in [hangs, gone] {
        let started = Instant::now();
        assert!(desk.run(&["stop"]).status.success());
        assert!(started.elapsed() < LONG / 2, "its end does not wait for long either: {:?}", started.elapsed());
    }
}

#[test]
fn spans_that_the_collector_refuses_are_counted_and_told() {
    let receiver = Receiver::new(&[400; 1_000]);
    let desk = Desk::new();
    std::fs::write(desk.path().join("deskmate.yaml"), settings(&receiver.url)).unwrap();
    let url = desk.up();
    assert_eq!(post(&url, "/api/bridge_send_message", &[("X-Deskmate-Agent", "code")], "{\"to\":\"x\",\"content\":\"y\"}").status, 200);
    until("it was refused", || (!receiver.got().is_empty()).then_some(()));
    assert!(desk.run(&["stop"]).status.success());
    let log = std::fs::read_to_string(desk.path().join("server.log")).unwrap();
    assert!(log.contains("the collector answered 400"), "{log}");
    assert!(log.contains("spans were dropped") && log.contains("in_all="), "{log}");
    let (desk, receiver) = (Desk::new(), Receiver::new(&[400; 1_000]));
    let (url, session) = claimed(&desk, &settings(&receiver.url));
    let bearer = format!("Bearer {session}");
    until("it is counted", || {
        let text = get(&url, "/metrics", &[("Authorization", &bearer)]).body;
        let dropped = text.lines().find_map(|line| line.strip_prefix("deskmate_spans_dropped_total "))?.parse::<u64>().ok()?;
        (dropped > 0 && text.contains("deskmate_spans_sent_total 0\n")).then_some(())
    });
}

#[test]
fn no_variable_of_the_environment_makes_the_desk_call_anybody() {
    let receiver = Receiver::new(&[]);
    let desk = Desk::new();
    let mut command = desk.command(&["up", "--background"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.url).env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &receiver.url);
    let mut child = command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    get(&desk.url(), "/api/desk_status", &[("traceparent", PARENT)]);
    assert!(desk.run(&["stop"]).status.success());
    child.wait().unwrap();
    assert!(receiver.got().is_empty());
}

#[test]
fn a_collector_that_cannot_be_one_stops_the_start() {
    for (section, says) in [
        ("  otlp:\n    url: http://collector.example.org:4318\n", "https"),
        ("  otlp:\n    url: http://127.0.0.1:4318\n    headers_file: none\n", "headers_file"),
        ("  otlp:\n    adress: x\n", "adress"),
        ("  prometheus: perhaps\n", "perhaps"),
    ] {
        let desk = Desk::new();
        std::fs::write(desk.path().join("deskmate.yaml"), format!("telemetry:\n{section}")).unwrap();
        let output = desk.run(&["up"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("deskmate.yaml") && said.contains(says), "{section}: {said}");
    }
}
