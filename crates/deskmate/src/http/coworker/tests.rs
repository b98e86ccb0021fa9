//! The messages, the page for other languages and JSON say the same: names, numbers, and every value there and back.

use std::collections::{BTreeMap, BTreeSet};

use deskmate_core::program::KINDS;
use prost::Message;
use prost::encoding::{DecodeContext, decode_key, skip_field};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::exchange::read;
use super::wire::{
    ApproveRequest, ApproveResponse, CancelJobResponse, ErrorDetail, ErrorResponse, GetJobResponse, GetResultResponse, HandshakeRequest, HandshakeResponse,
    Job, JobStatus, JobType, ListJobsResponse, ListToolsResponse, SubmitJobRequest, SubmitJobResponse, Tool,
};

const PAGE: &str = include_str!("../../../../../docs/reference/coworker.proto");

/// A field of the page: its number, and whether it may be absent.
struct Field {
    number: u32,
    optional: bool,
}

/// What stands between the braces behind a head.
fn block(head: &str) -> Vec<&'static str> {
    let (_, rest) = PAGE.split_once(&format!("\n{head} {{\n")).unwrap_or_else(|| panic!("{head} is not on the page"));
    let (block, _) = rest.split_once("\n}").unwrap();
    block.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect()
}

/// The fields of a message by their names in JSON.
fn fields(message: &str) -> BTreeMap<String, Field> {
    let read = |line: &str| {
        let (left, right) = line.split_once(" = ").unwrap();
        let number = right.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
        let renamed = right.split_once("json_name = \"").map(|(_, rest)| rest.split('"').next().unwrap().to_owned());
        let name = renamed.unwrap_or_else(|| left.rsplit(' ').next().unwrap().to_owned());
        let plain = ["string ", "bool ", "int64 ", "uint32 ", "uint64 ", "bytes ", "repeated ", "map<", "JobType ", "JobStatus "];
        (name, Field { number, optional: !plain.iter().any(|kind| left.starts_with(kind)) })
    };
    block(&format!("message {message}")).into_iter().map(read).collect()
}

/// The numbers of the fields in some bytes.
fn numbers(mut bytes: &[u8]) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    while !bytes.is_empty() {
        let (number, kind) = decode_key(&mut bytes).unwrap();
        skip_field(kind, number, &mut bytes, DecodeContext::default()).unwrap();
        found.insert(number);
    }
    found
}

fn empty(value: &Value) -> Value {
    match value {
        Value::String(_) => json!(""),
        Value::Number(_) => json!(0),
        Value::Bool(_) => json!(false),
        Value::Array(_) => json!([]),
        _ => json!({}),
    }
}

/// `sample` has a value in every field.
fn check<M: Message + Default + Serialize + DeserializeOwned>(name: &str, sample: &Value) {
    let fields = fields(name);
    let sample_fields = sample.as_object().unwrap();
    assert_eq!(sample_fields.keys().collect::<BTreeSet<_>>(), fields.keys().collect(), "{name}: the page has the fields that the message has");
    there_and_back::<M>(name, sample);
    for (field, said) in &fields {
        let mut alone = sample.clone();
        for (other, value) in alone.as_object_mut().unwrap().iter_mut().filter(|(other, _)| *other != field) {
            *value = if fields[other].optional { Value::Null } else { empty(value) };
        }
        let message: M = serde_json::from_value(alone).unwrap();
        assert_eq!(numbers(&message.encode_to_vec()), BTreeSet::from([said.number]), "{name}.{field}");
    }
}

fn there_and_back<M: Message + Default + Serialize + DeserializeOwned>(name: &str, sample: &Value) {
    let message: M = serde_json::from_value(sample.clone()).unwrap();
    let back = M::decode(message.encode_to_vec().as_slice()).unwrap();
    assert_eq!(serde_json::to_value(&back).unwrap(), *sample, "{name}");
}

fn job() -> Value {
    json!({
        "job_id": "j", "dedupe_key": "k", "type": 5, "status": 4, "created_at_ms": 1, "started_at_ms": 2, "finished_at_ms": i64::MAX,
        "error_message": "why", "staleness_ms": 9, "allowed_roots": ["notes", "b"], "params": { "root": "notes", "x": "" },
        "progress_percent": 40, "progress_text": "4 of 10", "cancel_requested": true,
    })
}

#[test]
fn the_page_the_messages_and_json_are_equal() {
    let tool = json!({ "name": "read_file", "type": 3, "params": ["path"], "requires_approval": true });
    let detail = json!({ "code": "limited", "message": "m", "hint": "h", "field": "f", "retry_after_ms": 7, "needs_presence": true, "incident": "i" });
    check::<HandshakeRequest>("HandshakeRequest", &json!({ "code": "7K3F-9QMD-X2TP" }));
    check::<HandshakeResponse>("HandshakeResponse", &json!({ "session_id": "s", "token": "t" }));
    check::<Tool>("Tool", &tool);
    check::<ListToolsResponse>("ListToolsResponse", &json!({ "tools": [tool] }));
    check::<ApproveRequest>("ApproveRequest", &json!({ "plan_job_id": "j", "ttl_seconds": 120 }));
    check::<ApproveResponse>("ApproveResponse", &json!({ "approval_token": "a", "plan_job_id": "j", "plan_hash": "h", "ttl_seconds": 120 }));
    let submit = json!({ "job_id": "j", "dedupe_key": "k", "type": 2, "allowed_roots": ["notes"], "params": { "root": "notes" }, "approval_token": "x" });
    check::<SubmitJobRequest>("SubmitJobRequest", &submit);
    check::<SubmitJobResponse>("SubmitJobResponse", &json!({ "job_id": "j", "status": 1, "accepted_at_ms": 5, "created_new": true }));
    check::<Job>("Job", &job());
    check::<ListJobsResponse>("ListJobsResponse", &json!({ "jobs": [job()], "next_cursor": "c" }));
    check::<CancelJobResponse>("CancelJobResponse", &json!({ "job_id": "j", "status": 5 }));
    check::<GetResultResponse>("GetResultResponse", &json!({ "content_type": "text/plain", "bytes_base64": "AP8=" }));
    check::<ErrorDetail>("ErrorDetail", &detail);
    check::<ErrorResponse>("ErrorResponse", &json!({ "error": detail }));
    // In JSON this one is the job itself.
    there_and_back::<GetJobResponse>("GetJobResponse", &job());
    let wrapped: GetJobResponse = serde_json::from_value(job()).unwrap();
    assert_eq!(numbers(&wrapped.encode_to_vec()), fields("GetJobResponse").values().map(|field| field.number).collect());
}

#[test]
fn the_page_has_no_message_that_is_not_checked() {
    let named: BTreeSet<&str> = PAGE.lines().filter_map(|line| line.strip_prefix("message ")?.split(' ').next()).collect();
    let checked = include_str!("tests.rs");
    // What stands in the address is no message here.
    let unchecked: Vec<_> = named.into_iter().filter(|name| !checked.contains(&format!("::<{name}>(\"{name}\"")) && *name != "GetJobRequest").collect();
    assert!(unchecked.is_empty(), "{unchecked:?}");
}

#[test]
fn kinds_and_states_have_their_numbers() {
    let read = |name: &str, prefix: &str| -> BTreeMap<i32, String> {
        let entry = |line: &str| {
            let (name, number) = line.trim_end_matches(';').split_once(" = ").unwrap();
            (number.parse().unwrap(), name.strip_prefix(prefix).unwrap().to_ascii_lowercase())
        };
        block(&format!("enum {name}")).into_iter().map(entry).collect()
    };
    let mut kinds: BTreeMap<i32, String> = KINDS.iter().map(|kind| (kind.number, kind.name.to_owned())).collect();
    kinds.insert(0, "unspecified".to_owned());
    assert_eq!(read("JobType", "JOB_TYPE_"), kinds);
    assert!(kinds.keys().all(|number| JobType::try_from(*number).is_ok()) && JobType::try_from(14).is_err());
    for (number, name) in read("JobStatus", "JOB_STATUS_") {
        assert_eq!(format!("{:?}", JobStatus::try_from(number).unwrap()).to_ascii_lowercase(), name);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// Whatever a program sends, as protobuf or as JSON, is read or refused.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..120), cut in 0_usize..200) {
        let job = SubmitJobRequest { dedupe_key: "key".to_owned(), params: [("path".to_owned(), "a".repeat(40))].into(), ..SubmitJobRequest::default() };
        let mut whole = job.encode_to_vec();
        whole.truncate(cut);
        for kind in ["application/x-protobuf", "application/json"] {
            let headers = [(axum::http::header::CONTENT_TYPE, axum::http::HeaderValue::from_static(kind))].into_iter().collect();
            for body in [&bytes, &whole] {
                drop(read::<SubmitJobRequest>(&headers, body));
                drop(read::<ApproveRequest>(&headers, body));
                drop(read::<HandshakeRequest>(&headers, body));
            }
        }
    }
}
