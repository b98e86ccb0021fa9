//! The jobs API for other programs, through the built binary: pairing, roots, plans that people approve, doing each job once,
//! a server that is killed, and the same in protobuf.

use std::time::{Duration, Instant};

use data_encoding::BASE64;
use prost::Message;
use serde_json::{Value, json};

use super::http::{Answer, get, post, request};
use super::workspace::{approve, desk, desk_of, names, person, tree};
use crate::desk::{Desk, give, until};

const PROTOBUF: &str = "application/x-protobuf";

/// What the owner's session answers: signed in without a browser's key, as the command line is.
fn owner(url: &str, operation: &str, input: &Value) -> Value {
    let session = post(url, "/api/desk_sign_in", &[], &json!({ "name": "Ada", "passphrase": "correct horse" }).to_string()).json();
    let bearer = format!("Bearer {}", session["session"].as_str().unwrap());
    let answer = post(url, &format!("/api/{operation}"), &[("Authorization", &bearer)], &input.to_string());
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

fn code(url: &str, kind: &str) -> String {
    owner(url, "desk_pairing_start", &json!({ "kind": kind, "name": "a program" }))["code"].as_str().unwrap().to_owned()
}

/// A paired program.
struct Program {
    url: String,
    prefix: &'static str,
    session: String,
    token: String,
}

impl Program {
    fn pair(desk: &Desk) -> Self {
        let url = desk.url();
        let paired = post(&url, "/api/coworker/handshake", &[], &json!({ "code": code(&url, "program") }).to_string());
        assert_eq!(paired.status, 200, "{}", paired.body);
        let text = |field: &str| paired.json()[field].as_str().unwrap().to_owned();
        Self { url, prefix: "/api/coworker", session: text("session_id"), token: text("token") }
    }

    fn headers(&self) -> [(&str, &str); 2] {
        [("X-Coworker-Session", &self.session), ("X-Coworker-Token", &self.token)]
    }

    fn get(&self, path: &str) -> Answer {
        get(&self.url, &format!("{}{path}", self.prefix), &self.headers())
    }

    fn post(&self, path: &str, input: &Value) -> Answer {
        post(&self.url, &format!("{}{path}", self.prefix), &self.headers(), &input.to_string())
    }

    fn proto(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let headers = [&self.headers()[..], &[("Content-Type", PROTOBUF), ("Accept", PROTOBUF)]].concat();
        request(method, &self.url, &format!("{}{path}", self.prefix), &headers, body)
    }

    fn submit(&self, input: &Value) -> String {
        let answer = self.post("/jobs", input);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()["job_id"].as_str().unwrap().to_owned()
    }

    /// A job as it is when it has ended.
    fn ended(&self, job: &str) -> Value {
        let deadline = Instant::now() + Duration::from_mins(2);
        loop {
            let told = self.get(&format!("/jobs/{job}/wait?timeout_seconds=10"));
            assert_eq!(told.status, 200, "{}", told.body);
            if told.json()["status"].as_i64().unwrap() > 2 {
                return told.json();
            }
            assert!(Instant::now() < deadline, "{}", told.body);
        }
    }

    /// Does a job, and answers how it ended and what came out of it.
    fn run(&self, input: &Value) -> (Value, Value) {
        let job = self.ended(&self.submit(input));
        let result = self.get(&format!("/jobs/{}/result", job["job_id"].as_str().unwrap())).json();
        let bytes = BASE64.decode(result["bytes_base64"].as_str().unwrap_or_default().as_bytes()).unwrap();
        (job, serde_json::from_slice(&bytes).unwrap_or_else(|_| Value::from(String::from_utf8(bytes).unwrap())))
    }
}

fn job(key: &str, number: i32, params: Value) -> Value {
    json!({ "dedupe_key": key, "type": number, "allowed_roots": [], "params": params })
}

#[test]
fn who_was_not_paired_gets_nothing() {
    let (desk, _folder, _) = desk();
    let url = desk.url();
    let shake = |body: &str| post(&url, "/api/coworker/handshake", &[], body);
    for body in ["", "{}", r#"{"code":""}"#] {
        let refused = shake(body);
        assert_eq!(refused.status, 403);
        assert!(refused.body.contains("/people/you"), "it says where a code comes from: {}", refused.body);
    }
    assert_eq!(shake(r#"{"code":"7K3F-9QMD-X2TP"}"#).status, 403);
    let good = json!({ "code": code(&url, "program") }).to_string();
    let paired = shake(&good).json();
    assert_eq!(shake(&good).status, 403, "a code is good once");
    let (session, token) = (paired["session_id"].as_str().unwrap(), paired["token"].as_str().unwrap());
    let tools = |headers: &[(&str, &str)]| get(&url, "/api/coworker/tools", headers).status;
    assert_eq!(tools(&[("X-Coworker-Session", session), ("X-Coworker-Token", token)]), 200);
    for missing in [&[][..], &[("X-Coworker-Session", session)], &[("X-Coworker-Token", token)]] {
        assert_eq!(tools(missing), 401);
    }
    let other = Program::pair(&desk);
    for (session, token) in [(session, "x"), ("x", token), (other.session.as_str(), token), (session, other.token.as_str())] {
        assert_eq!(tools(&[("X-Coworker-Session", session), ("X-Coworker-Token", token)]), 403);
    }
    for (name, value) in [("Origin", "https://evil.example"), ("Origin", "null"), ("Host", "evil.example")] {
        let [a, b] = other.headers();
        assert_eq!(tools(&[a, b, (name, value)]), 403, "{name}: {value}");
        assert_eq!(post(&url, "/api/coworker/handshake", &[(name, value)], &json!({ "code": code(&url, "program") }).to_string()).status, 403);
    }
    assert_eq!(post(&url, "/api/coworker/handshake", &[("Content-Type", "text/plain")], "{}").status, 400, "a form of another page sends no JSON");
}

#[test]
fn a_job_stays_within_the_roots_in_force() {
    let (desk, folder, _) = desk();
    let program = Program::pair(&desk);
    let read = |roots: Value, path: &str| json!({ "dedupe_key": format!("{roots}{path}"), "type": 3, "allowed_roots": roots, "params": { "path": path } });
    assert_eq!(program.post("/jobs", &read(json!(["/etc"]), "/etc/passwd")).status, 403, "no root is added");
    assert_eq!(program.post("/jobs", &read(json!(["notes/sub"]), "notes/a.txt")).status, 403);
    let (job, result) = program.run(&read(json!([]), "/etc/passwd"));
    assert_eq!(job["status"], 4, "{job}");
    assert!(!result.to_string().contains("root:x"), "{result}");
    let (job, result) = program.run(&read(json!([folder.path()]), folder.path().join("a.txt").to_str().unwrap()));
    assert_eq!((&job["status"], &result["data_base64"]), (&json!(3), &json!(BASE64.encode(b"one"))), "{job} {result}");
    std::os::unix::fs::symlink("../a.txt", folder.path().join("sub/up")).unwrap();
    let (job, result) = program.run(&read(json!(["notes/sub"]), "notes/sub/up"));
    assert_eq!(job["status"], 4, "a link leads out of what a job is narrowed to: {job} {result}");
    std::fs::remove_file(folder.path().join("sub/up")).unwrap();
    let (_, scanned) = program.run(&json!({ "dedupe_key": "s", "type": 1, "allowed_roots": [], "params": { "root": "notes", "hash_files": "true" } }));
    assert_eq!((&scanned["truncated"], &scanned["files"][1]["path"]), (&json!(false), &json!("notes/a.txt")), "{scanned}");
    assert_eq!(scanned["files"][1]["sha256"].as_str().unwrap().len(), 64);
    let (_, listed) = program.run(&json!({ "dedupe_key": "l", "type": 2, "allowed_roots": ["notes/sub"], "params": {} }));
    assert_eq!(listed["items"][0]["path"], "notes/sub/d.txt", "{listed}");
}

#[test]
fn what_was_done_before_is_told_of_the_roots_that_a_job_is_narrowed_to() {
    let (desk, _folder, _) = desk();
    let program = Program::pair(&desk);
    let more = tempfile::tempdir().unwrap();
    std::fs::write(more.path().join("m.txt"), "more").unwrap();
    owner(&desk.url(), "workspace_open_root", &json!({ "name": "more", "path": more.path(), "access": "write" }));
    for path in ["notes/a.txt", "more/m.txt"] {
        assert_eq!(program.run(&job(path, 6, json!({ "path": path }))).0["status"], 3);
    }
    let past = |roots: Value| {
        let (told, found) =
            program.run(&json!({ "dedupe_key": format!("past{roots}"), "type": 13, "allowed_roots": roots, "params": { "query": "plan.asked" } }));
        assert_eq!(told["status"], 3, "{told}");
        found["events"].as_array().unwrap().iter().map(|event| event["facts"]["root"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((past(json!([])), past(json!(["more"]))), (vec!["more".to_owned(), "notes".to_owned()], vec!["more".to_owned()]));
}

#[test]
fn a_thing_in_the_trash_is_found_in_the_root_that_its_path_names() {
    let (desk, _folder, _) = desk();
    let program = Program::pair(&desk);
    let more = tempfile::tempdir().unwrap();
    std::fs::write(more.path().join("m.txt"), "more").unwrap();
    owner(&desk.url(), "workspace_open_root", &json!({ "name": "more", "path": more.path(), "access": "write" }));
    let (planned, plan) = program.run(&job("trash", 6, json!({ "path": "more/m.txt" })));
    approve(&desk, &plan);
    let (done, _) = program.run(&job("do", 5, json!({ "plan_job_id": planned["job_id"] })));
    assert_eq!(done["status"], 3, "{done}");
    let lies = std::fs::read_dir(more.path().join(".trash/files")).unwrap().next().unwrap().unwrap().path();
    let named = format!("more/.trash/files/{}", lies.file_name().unwrap().to_str().unwrap());
    for path in [lies.to_str().unwrap(), &named] {
        let restore =
            |roots: Value| json!({ "dedupe_key": format!("{roots}{path}"), "type": 7, "allowed_roots": roots, "params": { "trash_item_path": path } });
        for roots in [json!([]), json!(["notes", "more"]), json!([more.path()])] {
            let (told, plan) = program.run(&restore(roots.clone()));
            assert_eq!(
                (&told["status"], &plan["root"], &plan["moves"][0]["to"]),
                (&json!(3), &json!("more"), &json!("more/m.txt")),
                "{path} in {roots}: {told} {plan}"
            );
        }
        let beyond = program.post("/jobs", &restore(json!(["notes"])));
        assert_eq!(beyond.status, 403, "what a job is narrowed to holds for the trash, too: {}", beyond.body);
    }
}

#[test]
fn nothing_changes_without_a_person() {
    let (desk, folder, _) = desk();
    let (program, other) = (Program::pair(&desk), Program::pair(&desk));
    let before = tree(folder.path());
    let (planned, plan) = program.run(&job("plan", 4, json!({ "root": "notes", "policy": "by_ext" })));
    assert_eq!((&planned["status"], &plan["count"], &plan["decision"]), (&json!(3), &json!(4), &json!("pending")), "{planned} {plan}");
    let plan_job = planned["job_id"].as_str().unwrap();
    let execute = |key: &str| json!({ "dedupe_key": key, "type": 5, "params": { "plan_job_id": plan_job }, "approval_token": "made-up-approval" });
    let (early, _) = program.run(&execute("early"));
    assert_eq!(early["status"], 4);
    let address = format!("/requests/{}", plan["request_id"].as_str().unwrap());
    assert!(early["error_message"].as_str().unwrap().contains(&address), "{early}");
    assert!(!early.to_string().contains("made-up-approval"), "{early}");
    let own = program.post("/approve", &json!({ "plan_job_id": plan_job }));
    assert!(own.status == 403 && own.body.contains(&address), "who asks does not approve: {}", own.body);
    assert_eq!(program.post("/approve", &json!({ "plan_job_id": "nothing" })).status, 404);
    assert_eq!(program.post("/approve", &json!({ "plan_job_id": early["job_id"] })).status, 400, "it did not succeed");
    for (key, number, params) in [
        ("trash", 6, json!({ "path": "notes/a.txt" })),
        ("word", 10, json!({ "path": "notes/new.docx", "content": "hello" })),
        ("excel", 9, json!({ "path": "notes/new.xlsx", "data": "[{\"a\":1}]" })),
    ] {
        let mut asked = job(key, number, params);
        asked["approval_token"] = json!("made-up-approval");
        let (told, made) = program.run(&asked);
        assert_eq!((&told["status"], &made["decision"]), (&json!(3), &json!("pending")), "{told} {made}");
    }
    let tools = program.get("/tools").json();
    // What others do is neither offered nor taken, and the answer says who does it.
    for number in [14, 15, 16] {
        assert!(!tools["tools"].as_array().unwrap().iter().any(|tool| tool["type"] == number), "{tools}");
        let refused = program.post("/jobs", &job("elsewhere", number, json!({})));
        assert!(refused.status == 400 && refused.body.contains("mount"), "{number}: {}", refused.body);
    }
    let python = tools["tools"].as_array().unwrap().iter().find(|tool| tool["type"] == 12).unwrap();
    assert_eq!(python["requires_approval"], true);
    // Where programs cannot be confined the job fails and says so; otherwise it waits like the others.
    let (told, made) = program.run(&job("python", 12, json!({ "code": "print(1)" })));
    let refused = told["status"] == 4 && made.as_str().is_some_and(|text| text.contains("cannot confine"));
    assert!(refused || made["decision"] == "pending", "{told} {made}");
    assert_eq!(tree(folder.path()), before, "so far nothing was touched");
    approve(&desk, &plan);
    let (foreign, _) = other.run(&execute("foreign"));
    assert_eq!(foreign["status"], 4, "an approval is of the program that asked: {foreign}");
    assert_eq!(tree(folder.path()), before);
    assert_eq!(program.post("/approve", &json!({ "plan_job_id": plan_job })).json()["plan_hash"], plan["plan_hash"]);
    assert_eq!(program.post("/approve", &json!({ "plan_job_id": plan_job, "ttl_seconds": 0 })).status, 400);
    assert_eq!(program.post("/approve", &json!({ "plan_job_id": plan_job, "ttl_seconds": 300 })).json()["ttl_seconds"], 300, "it ends sooner");
    assert!(program.post("/approve", &json!({ "plan_job_id": plan_job, "ttl_seconds": 3600 })).json()["ttl_seconds"].as_i64().unwrap() <= 300, "and no later");
    let mut beyond = execute("beyond");
    beyond["allowed_roots"] = json!(["notes/sub"]);
    let (told, _) = program.run(&beyond);
    assert!(told["status"] == 4 && told["error_message"].as_str().unwrap().contains("outside"), "{told}");
    assert_eq!(tree(folder.path()), before, "a job does no plan that goes beyond what it is narrowed to");
    let (done, result) = program.run(&execute("now"));
    assert_eq!((&done["status"], &result["applied"], &result["errors"]), (&json!(3), &json!(4), &json!([])), "{done} {result}");
    let after = tree(folder.path());
    assert_eq!(names(folder.path()), [".hidden", "no_ext/plain", "pdf/c.pdf", "secret.env", "sub/d.txt", "txt/a.txt", "txt/b.TXT"]);
    program.run(&execute("again"));
    assert_eq!(tree(folder.path()), after, "a grant is used once");
    let report = person(&desk, &["audit", "verify", "--json"]);
    assert_eq!(report["sound"], true, "{report}");
}

#[test]
fn a_plan_that_came_to_nothing_is_a_job_that_failed() {
    let (desk, folder, _) = desk_of(Desk::ordinary());
    for name in ["", "a.txt", "b.TXT"] {
        give(&folder.path().join(name));
    }
    let program = Program::pair(&desk);
    let execute = |planned: &Value| {
        let job = planned["job_id"].as_str().unwrap();
        json!({ "dedupe_key": job, "type": 5, "params": { "plan_job_id": job } })
    };
    let (planned, plan) = program.run(&job("python", 12, json!({ "code": "import sys\nprint('no such luck', file=sys.stderr)\nsys.exit(3)" })));
    assert_eq!((&planned["status"], &plan["decision"]), (&json!(3), &json!("pending")), "{planned} {plan}");
    approve(&desk, &plan);
    let (told, _) = program.run(&execute(&planned));
    assert_eq!(told["status"], 4, "{told}");
    let error = told["error_message"].as_str().unwrap();
    assert!(error.contains("failed") && error.contains("exit code 3") && error.contains("no such luck"), "{error}");
    // Where the folder lies on this machine is not told, though the program knows it and says so.
    let code = "import os\nopen(os.environ['WORKSPACE'] + '/sub/none')";
    let (planned, plan) = program.run(&job("lost", 12, json!({ "code": code, "root": "notes", "read": "[\"sub\"]" })));
    approve(&desk, &plan);
    let (told, _) = program.run(&execute(&planned));
    let error = told["error_message"].as_str().unwrap();
    assert!(error.contains("FileNotFoundError") && error.contains("'sub/none'"), "{error}");
    assert!(!error.contains(folder.path().to_str().unwrap()), "{error}");
    // The same of files: what is not any more what was approved is left alone, and that is all there was.
    let (planned, plan) = program.run(&job("trash", 6, json!({ "path": "notes/a.txt" })));
    approve(&desk, &plan);
    std::fs::write(folder.path().join("a.txt"), "something else").unwrap();
    let (told, _) = program.run(&execute(&planned));
    assert_eq!(told["status"], 4, "{told}");
    let error = told["error_message"].as_str().unwrap();
    assert!(error.contains("nothing of plan") && error.contains("notes/a.txt"), "{error}");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "something else");
}

#[test]
fn every_step_that_failed_is_told_wherever_it_stands_in_the_plan() {
    let (desk, folder, _) = desk();
    let many = folder.path().join("many");
    std::fs::create_dir(&many).unwrap();
    for number in 0..120 {
        std::fs::write(many.join(format!("{number}.dat")), "x").unwrap();
    }
    std::fs::write(many.join("z.zzz"), "x").unwrap();
    let program = Program::pair(&desk);
    let (planned, plan) = program.run(&job("plan", 4, json!({ "root": "notes/many", "policy": "by_ext" })));
    assert_eq!((&plan["count"], &plan["moves_truncated"]), (&json!(121), &json!(true)), "{plan}");
    assert_eq!(plan["moves"].as_array().unwrap().len(), 100);
    approve(&desk, &plan);
    // Where the folder should be made is a file by now.
    std::fs::write(many.join("zzz"), "in the way").unwrap();
    let (told, done) = program.run(&json!({ "dedupe_key": "x", "type": 5, "params": { "plan_job_id": planned["job_id"] } }));
    assert_eq!((&told["status"], &done["applied"], &done["failed"]), (&json!(3), &json!(120), &json!(1)), "{told} {done}");
    let errors = done["errors"].as_array().unwrap();
    assert_eq!((errors.len(), &errors[0]["from"], &done["errors_truncated"]), (1, &json!("notes/many/z.zzz"), &json!(false)), "{errors:?}");
    assert!(errors[0]["error"].is_string(), "{errors:?}");
    let (_, small) = program.run(&job("small", 4, json!({ "root": "notes/sub", "policy": "by_ext" })));
    assert_eq!((&small["count"], &small["moves_truncated"]), (&json!(1), &json!(false)), "{small}");
}

#[test]
fn a_job_is_done_once_and_is_its_programs_own() {
    let (desk, _folder, _) = desk();
    let (program, other) = (Program::pair(&desk), Program::pair(&desk));
    let list = job("same", 2, json!({ "root": "notes" }));
    let first = program.ended(&program.submit(&list));
    let again = program.post("/jobs", &list).json();
    assert_eq!((&again["created_new"], &again["job_id"], &again["status"]), (&json!(false), &first["job_id"], &json!(3)));
    assert_eq!(program.post("/jobs", &job("same", 2, json!({ "root": "notes/sub" }))).status, 409);
    let id = first["job_id"].as_str().unwrap();
    for path in [format!("/jobs/{id}"), format!("/jobs/{id}/wait"), format!("/jobs/{id}/result")] {
        assert_eq!((program.get(&path).status, other.get(&path).status), (200, 404), "{path}");
    }
    assert_eq!(other.post(&format!("/jobs/{id}/cancel"), &json!({})).status, 404);
    assert_eq!(program.post(&format!("/jobs/{id}/cancel"), &json!({})).status, 409, "it has ended");
    assert_eq!(other.get("/jobs").json()["jobs"], json!([]));
    assert_eq!(program.get("/jobs?limit=1").json()["jobs"][0]["job_id"], first["job_id"]);
    for (bad, status) in [
        (job("k", 99, json!({})), 400),
        (job("k", 15, json!({})), 400),
        (job("k", 2, json!({ "sudo": "yes" })), 400),
        (job("k", 3, json!({ "path": "notes/a.txt", "max_bytes": "-1" })), 400),
        (job("", 2, json!({})), 400),
        (job("k", 2, json!({ "limit": 1 })), 422),
        (json!({ "dedupe_key": "k" }), 422),
    ] {
        let refused = program.post("/jobs", &bad);
        assert_eq!(refused.status, status, "{bad}: {}", refused.body);
    }
    assert!(program.post("/jobs", &job("k", 16, json!({}))).body.contains("mount"), "it says who does that");
    let large = job("k", 10, json!({ "path": "notes/x.docx", "content": "x".repeat(2_000_000) }));
    assert_eq!(program.post("/jobs", &large).status, 413);
    owner(&program.url, "desk_token_revoke", &json!({ "credential": program.session }));
    assert_eq!(program.get("/jobs").status, 403, "what a person revokes is over");
}

#[test]
fn a_job_of_a_server_that_was_killed_ends() {
    let (desk, folder, _) = desk();
    let many = folder.path().join("many");
    std::fs::create_dir(&many).unwrap();
    for number in 0..5_000 {
        std::fs::write(many.join(format!("{number}.dat")), number.to_string()).unwrap();
    }
    let mut program = Program::pair(&desk);
    let running = program.submit(&job("plan", 4, json!({ "root": "notes/many" })));
    let deadline = Instant::now() + Duration::from_secs(20);
    while program.get(&format!("/jobs/{running}")).json()["status"] == 1 {
        assert!(Instant::now() < deadline);
    }
    let waiting = program.submit(&job("list", 2, json!({ "root": "notes/sub" })));
    let killed = desk.holder();
    desk.kill_server();
    desk.up();
    // What the lock says of the server that is gone stays there until the new one knows its own address.
    program.url = until("the new server listens", || desk.holder().filter(|holder| Some(holder) != killed.as_ref())?["url"].as_str().map(str::to_owned));
    assert_eq!(program.ended(&waiting)["status"], 3);
    let ended = program.ended(&running);
    assert_eq!(ended["status"], 3, "{ended}");
    let plans = owner(&program.url, "workspace_list_plans", &json!({}));
    assert_eq!(plans["plans"].as_array().unwrap().len(), 1, "a second attempt makes no second plan: {plans}");
}

/// The messages as a program in another language has them from the page for it.
mod messages {
    use std::collections::HashMap;

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Submit {
        #[prost(string, tag = "2")]
        pub(super) dedupe_key: String,
        #[prost(int32, tag = "3")]
        pub(super) kind: i32,
        #[prost(map = "string, string", tag = "5")]
        pub(super) params: HashMap<String, String>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Submitted {
        #[prost(string, tag = "1")]
        pub(super) job_id: String,
        #[prost(int32, tag = "2")]
        pub(super) status: i32,
        #[prost(bool, tag = "4")]
        pub(super) created_new: bool,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct GetJob {
        #[prost(message, optional, tag = "1")]
        pub(super) job: Option<Job>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Job {
        #[prost(string, tag = "1")]
        pub(super) job_id: String,
        #[prost(int32, tag = "4")]
        pub(super) status: i32,
        #[prost(int64, tag = "5")]
        pub(super) created_at: i64,
        #[prost(string, tag = "8")]
        pub(super) error_message: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Outcome {
        #[prost(string, tag = "1")]
        pub(super) content_type: String,
        #[prost(bytes = "vec", tag = "2")]
        pub(super) bytes: Vec<u8>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Refused {
        #[prost(message, optional, tag = "1")]
        pub(super) error: Option<Detail>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Detail {
        #[prost(string, tag = "1")]
        pub(super) code: String,
        #[prost(string, tag = "2")]
        pub(super) message: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Approve {
        #[prost(string, tag = "1")]
        pub(super) plan_job_id: String,
        #[prost(int64, optional, tag = "2")]
        pub(super) ttl_seconds: Option<i64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Approved {
        #[prost(string, tag = "1")]
        pub(super) approval_token: String,
        #[prost(int64, tag = "4")]
        pub(super) ttl_seconds: i64,
    }
}

use messages::{Approve, Approved, GetJob, Outcome, Refused, Submit, Submitted};

/// Does a job in protobuf, and sees that JSON says the same of it.
fn run_in_protobuf(program: &Program, key: &str, kind: i32, params: &[(&str, &str)]) -> (messages::Job, Vec<u8>) {
    let params = params.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let taken = program.proto("POST", "/jobs", &Submit { dedupe_key: key.to_owned(), kind, params }.encode_to_vec());
    assert!(taken.status == 200 && taken.head.to_lowercase().contains(PROTOBUF), "{} {}", taken.head, taken.body);
    let taken = Submitted::decode(taken.bytes.as_slice()).unwrap();
    assert!(taken.created_new && taken.status == 1);
    let told = program.ended(&taken.job_id);
    let job = GetJob::decode(program.proto("GET", &format!("/jobs/{}", taken.job_id), b"").bytes.as_slice()).unwrap().job.unwrap();
    let error = told["error_message"].as_str().unwrap_or_default();
    assert_eq!(
        (Some(job.job_id.as_str()), i64::from(job.status), job.created_at, job.error_message.as_str()),
        (told["job_id"].as_str(), told["status"].as_i64().unwrap(), told["created_at_ms"].as_i64().unwrap(), error)
    );
    let path = format!("/jobs/{}/result", taken.job_id);
    let outcome = Outcome::decode(program.proto("GET", &path, b"").bytes.as_slice()).unwrap();
    let in_json = program.get(&path).json();
    assert_eq!((json!(outcome.content_type), json!(BASE64.encode(&outcome.bytes))), (in_json["content_type"].clone(), in_json["bytes_base64"].clone()));
    (job, outcome.bytes)
}

#[test]
fn a_whole_tour_in_protobuf_at_a_door_of_its_own() {
    let (desk, folder, _) = desk();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    std::fs::write(desk.path().join("deskmate.yaml"), format!("coworker: {{ listen: 127.0.0.1:{port} }}\n")).unwrap();
    assert!(desk.run(&["stop"]).status.success());
    desk.up();
    let door = format!("http://127.0.0.1:{port}");
    let shaken = request("POST", &door, "/handshake", &[("Content-Type", PROTOBUF), ("Accept", PROTOBUF)], b"");
    let refused = Refused::decode(shaken.bytes.as_slice()).unwrap().error.unwrap();
    assert!(shaken.status == 403 && refused.code == "forbidden" && refused.message.contains("code"), "{refused:?}");
    let program = Program { url: door.clone(), prefix: "", ..Program::pair(&desk) };
    assert_eq!(get(&door, "/inbox", &[]).status, 404, "pages are not served here");
    assert_eq!(get(&door, "/tools", &[("Origin", "https://evil.example")]).status, 403);
    let (planned, bytes) = run_in_protobuf(&program, "plan", 4, &[("root", "notes")]);
    let plan: Value = serde_json::from_slice(&bytes).unwrap();
    let ask = Approve { plan_job_id: planned.job_id.clone(), ttl_seconds: Some(300) }.encode_to_vec();
    let own = program.proto("POST", "/approve", &ask);
    assert!(own.status == 403 && Refused::decode(own.bytes.as_slice()).unwrap().error.unwrap().message.contains("/requests/"));
    let (early, _) = run_in_protobuf(&program, "early", 5, &[("plan_job_id", &planned.job_id)]);
    assert!(early.status == 4 && early.error_message.contains("person"), "{early:?}");
    approve(&desk, &plan);
    let approved = Approved::decode(program.proto("POST", "/approve", &ask).bytes.as_slice()).unwrap();
    assert_eq!((json!(approved.approval_token), approved.ttl_seconds), (plan["request_id"].clone(), 300));
    let in_json = program.post("/approve", &json!({ "plan_job_id": planned.job_id, "ttl_seconds": 200 })).json();
    assert_eq!((&in_json["approval_token"], &in_json["ttl_seconds"]), (&plan["request_id"], &json!(200)));
    let (done, bytes) = run_in_protobuf(&program, "now", 5, &[("plan_job_id", &planned.job_id)]);
    let result: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!((done.status, &result["applied"]), (3, &json!(4)), "{result}");
    assert!(folder.path().join("txt/a.txt").exists());
    assert_eq!(program.proto("POST", "/jobs", b"\xff\xff").status, 422);
}
