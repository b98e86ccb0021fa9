//! Bytes that nobody expects: in bodies, in every text field of every write, in queries.

use serde_json::{Map, Value, json};

use super::support::{Answer, Chance, Desk, deskmate, verify};

const HOSTILE: [&str; 9] = [
    "a\u{0}b",
    "line one\nline two\r\n\r\nHTTP/1.1 200 OK",
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
    "'; drop table message; --",
    "../../../../etc/passwd",
    "\u{202e}\u{feff}\u{fffd}\u{1f980}",
    "",
    "$1 %s %n {{x}} <script>alert(1)</script>",
    "**/[!a-z{a,b",
];

fn fine(answer: &Answer, what: &str) {
    assert!(answer.status < 500, "{what}: {} {}", answer.status, answer.text());
    if answer.status != 200 {
        assert!(!answer.code().is_empty(), "{what}: a refusal without a code: {}", answer.text());
    }
}

#[test]
fn hostile_text_in_every_field_of_every_write_is_data_or_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let (desk, session) = Desk::owned(&home);
    let listed = deskmate(&home, &["schema", "operations"]);
    let mut operations: Vec<Value> = serde_json::from_slice(&listed.stdout).expect("a list of operations");
    // The session's own end comes last.
    operations.sort_by_key(|operation| operation["name"] == "desk_sign_out");
    let mut http = desk.http();
    let mut tried = 0;
    for operation in operations.iter().filter(|operation| operation["effect"] == "write") {
        let name = operation["name"].as_str().expect("a name");
        let fields = operation["input"]["properties"].as_object().cloned().unwrap_or_default();
        for (field, schema) in &fields {
            for text in HOSTILE {
                let input = with_hostile(&fields, field, schema, text);
                let bearer = format!("Bearer {session}");
                for caller in [("x-deskmate-agent", "code"), ("authorization", bearer.as_str())] {
                    let answer = http.post(&format!("/api/{name}"), &[caller], input.to_string().as_bytes()).expect("the server answers");
                    fine(&answer, &format!("{name} {input}"));
                    if text.contains('\0') {
                        assert_ne!(answer.status, 200, "{name}: NUL was taken in {field}");
                    }
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 200, "only {tried} calls were tried: is the list of operations right?");
    drop(desk);
    verify(&home);
}

/// An input with something plain in every required place and the hostile text in one.
fn with_hostile(fields: &Map<String, Value>, hostile: &str, schema: &Value, text: &str) -> Value {
    let mut input = Map::new();
    for (name, schema) in fields {
        if name == hostile || ["to", "content", "title", "description", "paths", "agent", "name"].contains(&name.as_str()) {
            input.insert(name.clone(), if is_list(schema) { json!(["plain"]) } else { json!("plain") });
        }
    }
    input.insert(hostile.to_owned(), if is_list(schema) { json!([text]) } else { json!(text) });
    Value::Object(input)
}

fn is_list(schema: &Value) -> bool {
    let kind = &schema["type"];
    kind == "array" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "array"))
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
