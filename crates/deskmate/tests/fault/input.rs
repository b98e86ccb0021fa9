//! Bytes that nobody expects: in bodies, in every field of every operation, in queries.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use testkit::HOSTILE;

use super::support::{Answer, Chance, Desk, Http, deskmate, verify};

fn fine(answer: &Answer, what: &str) {
    // Where a machine cannot confine programs, that is said, whatever the program is.
    let cannot_confine = what.starts_with("workspace_execute_python ") && answer.status == 503 && answer.code() == "unavailable";
    assert!(answer.status < 500 || cannot_confine, "{what}: {} {}", answer.status, answer.text());
    if answer.status != 200 {
        assert!(!answer.code().is_empty(), "{what}: a refusal without a code: {}", answer.text());
    }
}

/// Operations that take a hostile text into the desk, so that the test below reaches more than the check of its input.
const TAKES_TEXT: [&str; 21] = [
    "agents_list_templates",
    "bridge_add_task_note",
    "bridge_create_task",
    "bridge_reserve_paths",
    "bridge_send_message",
    "bridge_set_group",
    "bridge_update_task",
    "cowork_approve",
    "cowork_cancel_request",
    "cowork_handoff",
    "cowork_log",
    "cowork_override",
    "cowork_propose",
    "cowork_resolve_handoff",
    "desk_pause",
    "desk_record_list",
    "desk_request_approve",
    "desk_request_ask",
    "desk_request_list",
    "desk_request_reject",
    "desk_token_create",
];

#[test]
fn hostile_text_in_every_field_of_every_operation_is_data_or_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let (desk, session) = Desk::owned(&home);
    let listed = deskmate(&home, &["schema", "operations"]);
    let mut operations: Vec<Value> = serde_json::from_slice(&listed.stdout).expect("a list of operations");
    // What stops agents comes late, then what locks the person out, and the session's own end last.
    operations.sort_by_key(|operation| match operation["name"].as_str() {
        Some("desk_sign_out") => 3,
        Some("desk_show_presence" | "desk_sign_in") => 2,
        Some("desk_agent_add" | "desk_pause") => 1,
        _ => 0,
    });
    let mut http = desk.http();
    let bearer = format!("Bearer {session}");
    let (mut tried, mut takers, mut refusals) = (0, BTreeSet::new(), BTreeMap::new());
    for (turn, operation) in operations.iter().enumerate() {
        let name = operation["name"].as_str().expect("a name");
        let fields = operation["input"]["properties"].as_object().cloned().unwrap_or_default();
        for (number, field) in fields.keys().enumerate() {
            let agent = format!("agent-{turn}-{number}");
            let plain = plain_values(&mut http, &agent);
            for text in HOSTILE {
                let mut input = with_hostile(&operation["input"], field, text, &plain);
                // Whoever waits would wait for nothing, and a hook holds its caller for a person: nobody decides here.
                let waits = operation["effect"] == "read" || name.starts_with("hook_");
                for wait in fields.keys().filter(|wait| waits && wait.starts_with("timeout") && *wait != field) {
                    input[wait] = json!(0);
                }
                for caller in [("x-deskmate-agent", agent.as_str()), ("authorization", bearer.as_str())] {
                    let answer = http.post(&format!("/api/{name}"), &[caller], input.to_string().as_bytes()).expect("the server answers");
                    fine(&answer, &format!("{name} {input}"));
                    if answer.status == 200 {
                        assert!(!text.contains('\0'), "{name}: NUL was taken in {field}");
                        takers.insert(name.to_owned());
                    } else {
                        refusals.insert(name.to_owned(), answer.text());
                    }
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 15_000, "only {tried} calls were tried: is the list of operations right?");
    let strict: Vec<_> = TAKES_TEXT.iter().filter(|name| !takers.contains(**name)).map(|name| (name, refusals.get(*name))).collect();
    assert!(strict.is_empty(), "these took nothing, so nothing was tried behind their doors: {strict:#?}");
    drop(desk);
    verify(&home);
}

/// What fields of these names take: things that an agent has on the desk, and words that mean something.
fn plain_values(http: &mut Http, agent: &str) -> Map<String, Value> {
    let mut made = |name: &str, input: Value, field: &str| {
        let answer = http.call(agent, name, &input).expect("the server answers");
        // A desk that is closed by then has nothing of an agent without a token.
        if answer.status == 200 { answer.json()[field].clone() } else { Value::from("plain") }
    };
    let change = r#"{"next_step":"call back"}"#;
    let task = made("bridge_create_task", json!({ "to": agent, "title": "plain" }), "task_id");
    let reservation = made("bridge_reserve_paths", json!({ "paths": [format!("{agent}/*")] }), "reservation_id");
    let proposal = json!({
        "domain": "crm.deals", "action": "update", "target": "deal/7", "proposed_change": change, "confidence": 0.5, "reasoning": "plain",
    });
    let proposal = made("cowork_propose", proposal, "proposal_id");
    let handoff = json!({ "domain": "crm.deals", "reason": "plain", "context": "plain", "attempted_actions": "plain", "confidence": 0.5 });
    let handoff = made("cowork_handoff", handoff, "handoff_id");
    let known = json!({
        "action": "update", "actor": "agent", "agent": agent, "confidence": 0.5, "domain": "crm.deals", "fence": 1, "handoff_id": handoff,
        "override_type": "human_preference", "proposal_id": proposal, "proposed_change": change, "request": proposal, "request_id": proposal,
        "reservation_id": reservation, "scopes": ["bridge_get_tasks"], "target": "deal/7", "task_id": task, "to": agent,
    });
    known.as_object().cloned().unwrap_or_default()
}

/// What is optional in a schema because there is another way to name the thing.
const ALSO: [&str; 2] = ["proposal_id", "agent"];

/// An input with something plain in every required place and the hostile text in one.
fn with_hostile(schema: &Value, hostile: &str, text: &str, plain: &Map<String, Value>) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let of_one_thing = ALSO.into_iter().filter(|name| !schema["properties"][name].is_null());
    let mut input = Map::new();
    for name in required.iter().filter_map(Value::as_str).chain(of_one_thing) {
        let value = plain.get(name).cloned().unwrap_or_else(|| filled(&schema["properties"][name], "plain"));
        input.insert(name.to_owned(), value);
    }
    input.insert(hostile.to_owned(), filled(&schema["properties"][hostile], text));
    Value::Object(input)
}

/// Something of a schema's shape with a text in every place, also where no text belongs.
fn filled(schema: &Value, text: &str) -> Value {
    let kind = schema["type"].as_str().or_else(|| schema["type"].as_array()?.iter().find_map(Value::as_str));
    match kind {
        Some("array") => json!([filled(&schema["items"], text)]),
        Some("object") => {
            let Some(fields) = schema["properties"].as_object() else { return json!({ text: text }) };
            fields.iter().map(|(name, schema)| (name.clone(), filled(schema, text))).collect::<Map<_, _>>().into()
        }
        _ => Value::from(text),
    }
}

#[test]
fn malformed_and_oversized_bodies_are_refused_and_the_desk_goes_on() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let desk = Desk::start(&directory.path().join("home"));
    let path = "/api/bridge_send_message";
    let nested = |levels: usize| format!(r#"{{"to":"a","content":{}1{}}}"#, "[".repeat(levels), "]".repeat(levels));
    let bodies = [
        String::new(),
        "{".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "\"text\"".to_owned(),
        r#"{"to":"a","content":"b"} trailing"#.to_owned(),
        r#"{"to":"a","to":"b","content":"c"}"#.to_owned(),
        r#"{"to":"a","content":"b","extra":1}"#.to_owned(),
        r#"{"to":"a","content":9007199254740993}"#.to_owned(),
        r#"{"to":"a","content":"\ud800"}"#.to_owned(),
        r#"{"to":"a","content":1e999}"#.to_owned(),
        nested(11),
        nested(100),
        nested(100_000),
    ];
    for body in &bodies {
        let answer = desk.http().post(path, &[("x-deskmate-agent", "code")], body.as_bytes()).expect("the server answers");
        assert_eq!((answer.status, answer.code().as_str()), (400, "invalid"), "{:.80}: {}", body, answer.text());
    }
    let answer = desk.http().post(path, &[("x-deskmate-agent", "code")], b"{\"to\":\"a\",\"content\":\"\xff\xfe\"}").expect("the server answers");
    assert_eq!(answer.status, 400, "bytes that are not UTF-8: {}", answer.text());
    let large = format!(r#"{{"to":"a","content":"{}"}}"#, "x".repeat(3 * 1024 * 1024));
    // The server may answer and hang up before it has read everything.
    if let Ok(answer) = desk.http().post(path, &[("x-deskmate-agent", "code")], large.as_bytes()) {
        assert_eq!(answer.status, 413, "{}", answer.text());
    }
    let long = format!(r#"{{"to":"a","content":"{}"}}"#, "x".repeat(300 * 1024));
    let answer = desk.http().post(path, &[("x-deskmate-agent", "code")], long.as_bytes()).expect("the server answers");
    assert_eq!((answer.status, answer.code().as_str()), (400, "invalid"), "{}", answer.text());
    let answer = desk.http().post(path, &[("x-deskmate-agent", "code"), ("content-type", "text/plain")], br#"{"to":"a","content":"b"}"#).expect("answers");
    assert_eq!(answer.status, 400, "{}", answer.text());
    desk.http().send("code", "cowork", "still here").expect("the server answers").good();
}

#[test]
fn random_bytes_on_the_wire_break_nothing() {
    let mut chance = Chance::new("wire");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let desk = Desk::start(&directory.path().join("home"));
    for _ in 0..300 {
        let length = usize::try_from(1 + chance.below(200)).expect("small");
        let mut bytes: Vec<u8> = (0..length).map(|_| chance.below(256).to_le_bytes()[0]).collect();
        if chance.below(2) == 0 {
            let query = bytes.iter().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat();
            let names = ["limit", "cursor", "project", "from", "seq"];
            let name = names[usize::try_from(chance.below(5)).expect("small")];
            let target = ["/api/bridge_get_tasks", "/api/stream", "/api/desk_record_list", "/claim"][usize::try_from(chance.below(4)).expect("small")];
            bytes = format!("GET {target}?{name}={query} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-deskmate-agent: code\r\n\r\n").into_bytes();
        } else {
            bytes.extend(b"\r\n\r\n");
        }
        let mut http = desk.http();
        http.stream().set_read_timeout(Some(std::time::Duration::from_millis(500))).expect("a time-out");
        if let Ok(answer) = http.raw(&bytes) {
            assert!(answer.status < 500, "{} {}: {}", String::from_utf8_lossy(&bytes), answer.status, answer.text());
        }
    }
    assert!(!desk.log().contains("panicked"), "{}", desk.log());
    desk.http().send("code", "cowork", "still here").expect("the server answers").good();
}

#[test]
fn random_bytes_on_the_local_socket_break_nothing() {
    use std::io::{Read, Write};
    let mut chance = Chance::new("socket");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let desk = Desk::start(&home);
    let socket = home.join("desk.sock");
    super::support::eventually("the socket answers", std::time::Duration::from_secs(5), || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    let hello = br#"{"v":1,"toolsets":["bridge"],"agent":"code"}"#;
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_tasks","arguments":{"status":"pending"}}}"#;
    let mut welcome = 0;
    for round in 0..200 {
        let Ok(mut stream) = std::os::unix::net::UnixStream::connect(&socket) else { panic!("round {round}: the socket does not answer") };
        stream.set_read_timeout(Some(std::time::Duration::from_millis(20))).expect("a time-out");
        // Half of the rounds get past the door, and are broken behind it.
        let behind = chance.below(2) == 0;
        if behind {
            drop(stream.write_all(&[hello.as_slice(), b"\n"].concat()));
            let mut answer = [0_u8; 1024];
            welcome += usize::from(stream.read(&mut answer).is_ok_and(|length| answer[..length].starts_with(br#"{"ok":true"#)));
        }
        let mut bytes = if behind { call.to_vec() } else { hello.to_vec() };
        for _ in 0..=chance.below(8) {
            let at = usize::try_from(chance.below(bytes.len() as u64)).expect("small");
            bytes[at] = chance.below(256).to_le_bytes()[0];
        }
        bytes.push(b'\n');
        // The server may hang up at any byte; only its going on matters.
        drop(stream.write_all(&bytes));
        drop(stream.read(&mut [0_u8; 1024]));
    }
    assert!(welcome > 20, "hardly anybody got past the door: {welcome}");
    assert!(!desk.log().contains("panicked"), "{}", desk.log());
    desk.http().send("code", "cowork", "still here").expect("the server answers").good();
}
