//! REST from outside: every operation has its route, and whatever is wrong is said in JSON.

use serde_json::{Value, json};

use super::desk::Desk;
use super::http::{Answer, get, post};

const CODE: (&str, &str) = ("X-Deskmate-Agent", "code");

fn json_of(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("not JSON: {}", answer.body))
}

/// The code of a refusal, and its status.
fn refusal(answer: &Answer) -> (u16, String) {
    (answer.status, json_of(answer)["error"]["code"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn every_operation_has_its_route_and_its_page() {
    let desk = Desk::new();
    let url = desk.up();
    let openapi = json_of(&get(&url, "/api/openapi.json", &[]));
    assert_eq!(openapi["openapi"], "3.1.0");
    let paths = openapi["paths"].as_object().unwrap();
    assert!(paths.len() > 40);
    for (path, methods) in paths {
        // An input that no operation takes: the route is there, and it refuses for its own reason.
        let answer = post(&url, path, &[CODE], "{\"no such field\": 1}");
        assert_ne!(answer.status, 404, "{path}: {}", answer.body);
        assert!(answer.status < 500, "{path}: {}", answer.body);
        assert!(methods["post"]["operationId"].is_string());
        if methods.get("get").is_none() {
            assert_eq!(refusal(&get(&url, path, &[CODE])), (400, "invalid".to_owned()), "{path}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_request_is_said() {
    let desk = Desk::new();
    let url = desk.up();
    let send = |body: &str| post(&url, "/api/bridge_send_message", &[CODE], body);
    assert_eq!(refusal(&post(&url, "/api/no_such_operation", &[CODE], "{}")), (404, "not_found".to_owned()));
    assert_eq!(refusal(&get(&url, "/nowhere", &[])), (404, "not_found".to_owned()));
    for bad in ["{", "[]", "7", "{\"to\":\"x\",\"to\":\"y\",\"content\":\"z\"}", "{\"to\":\"x\",\"content\":\"z\",\"limit\":9007199254740993}"] {
        assert_eq!(refusal(&send(bad)), (400, "invalid".to_owned()), "{bad}");
    }
    let form = post(&url, "/api/bridge_send_message", &[CODE, ("Content-Type", "text/plain")], "{\"to\":\"x\",\"content\":\"y\"}");
    assert_eq!(refusal(&form), (400, "invalid".to_owned()), "a form of another page must not get through");
    assert_eq!(refusal(&post(&url, "/api/bridge_send_message", &[], "{\"to\":\"x\",\"content\":\"y\"}")), (401, "unauthenticated".to_owned()));
    assert_eq!(refusal(&post(&url, "/api/desk_agent_add", &[CODE], "{\"agent\":\"x\"}")), (403, "forbidden".to_owned()));
    let large = format!("{{\"to\":\"x\",\"content\":\"{}\"}}", "y".repeat(300 * 1024));
    let answer = send(&large);
    assert_eq!(refusal(&answer), (400, "invalid".to_owned()));
    assert_eq!(json_of(&answer)["error"]["field"], "content");
    assert_eq!(send(&"x".repeat(2 * 1024 * 1024)).status, 413);
}

#[test]
fn no_header_stands_for_the_servers_terminal() {
    let desk = Desk::new();
    let url = desk.up();
    for headers in [vec![], vec![("X-Deskmate-Surface", "cli")], vec![("X-Deskmate-Surface", "cli"), CODE]] {
        assert_eq!(refusal(&post(&url, "/api/desk_new_claim_link", &headers, "{}")), (403, "forbidden".to_owned()));
    }
    let asked = desk.run(&["call", "desk_new_claim_link", "--json"]);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
}

#[test]
fn every_answer_to_a_name_that_nothing_proves_is_marked() {
    let desk = Desk::new();
    let url = desk.up();
    let is_marked = |answer: &Answer| answer.head.to_ascii_lowercase().lines().any(|line| line == "deskmate-unverified: true");
    assert!(is_marked(&post(&url, "/api/desk_whoami", &[CODE], "{}")));
    assert!(is_marked(&get(&url, "/api/desk_whoami", &[CODE])));
    let refused = post(&url, "/api/desk_agent_add", &[CODE], "{\"agent\":\"x\"}");
    assert!(refused.status == 403 && is_marked(&refused), "{}", refused.head);
    assert!(!is_marked(&get(&url, "/api/desk_status", &[])), "who says no name claims none");
    assert!(desk.run(&["stop"]).status.success());
    let token = desk.register("code");
    assert!(!is_marked(&post(&desk.url(), "/api/desk_whoami", &[("Authorization", &format!("Bearer {token}"))], "{}")));
}

#[test]
fn a_query_is_read_by_the_operations_schema() {
    let desk = Desk::new();
    let url = desk.up();
    post(&url, "/api/bridge_send_message", &[CODE], &json!({ "to": "cowork", "content": "hello" }).to_string());
    let sent = get(&url, "/api/bridge_list_sent_messages?limit=1", &[CODE]);
    assert_eq!(sent.status, 200, "{}", sent.body);
    assert_eq!(refusal(&get(&url, "/api/bridge_list_sent_messages?limit=many", &[CODE])), (400, "invalid".to_owned()));
    assert_eq!(refusal(&get(&url, "/api/bridge_list_sent_messages?limit=1&limit=2", &[CODE])), (400, "invalid".to_owned()));
    for (path, last) in [("/api/stream?from=abc", "1"), ("/api/stream?form=1", "1"), ("/api/stream", "x")] {
        assert_eq!(refusal(&get(&url, path, &[CODE, ("Last-Event-ID", last)])), (400, "invalid".to_owned()), "{path}");
    }
}

#[test]
fn health_readiness_and_headers() {
    let desk = Desk::new();
    let url = desk.up();
    let health = get(&url, "/healthz", &[]);
    assert_eq!(json_of(&health)["ok"], true);
    assert!(health.head.to_ascii_lowercase().contains("x-content-type-options: nosniff"), "{}", health.head);
    assert_eq!(json_of(&get(&url, "/readyz", &[]))["ready"], true);
    let page = get(&url, "/claim?code=x", &[]);
    let head = page.head.to_ascii_lowercase();
    assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self'"), "{head}");
    assert!(!page.body.contains("<script>") && !page.body.contains("onclick"), "no inline script");
    assert!(page.status == 401 && page.body.contains("This link does not work") && !page.body.contains("<form"), "{}", page.body);
    let nothing = get(&url, "/polices", &[("Accept", "text/html,*/*")]);
    assert_eq!((nothing.status, nothing.body.contains("<h1>There is no such thing here</h1>")), (404, true), "{}", nothing.body);
    assert!(nothing.head.to_ascii_lowercase().contains("content-security-policy: default-src 'none'"), "{}", nothing.head);
    assert_eq!(refusal(&get(&url, "/polices", &[])), (404, "not_found".to_owned()), "programs are told as ever");
    for (name, value) in [("Host", "evil.example"), ("Origin", "http://localhost:1"), ("Origin", "null")] {
        assert_eq!(get(&url, "/healthz", &[(name, value)]).status, 403, "{name}: {value}");
    }
}

#[test]
fn a_person_verifies_the_record_as_a_job() {
    let desk = Desk::new();
    let token = desk.register("code");
    let url = desk.url();
    let signed_in = json_of(&post(&url, "/api/desk_sign_in", &[], "{\"passphrase\":\"correct horse\"}"));
    let person = format!("Bearer {}", signed_in["session"].as_str().unwrap());
    let person = ("Authorization", person.as_str());
    let job = json_of(&post(&url, "/api/desk_record_verify", &[person], "{}"))["job"].as_str().unwrap().to_owned();
    let done = json_of(&post(&url, "/api/desk_job_wait", &[person], &json!({ "job": job }).to_string()));
    assert_eq!(done["state"], "done", "{done}");
    assert_eq!(done["result"]["sound"], true, "{done}");
    let agent = format!("Bearer {token}");
    assert_eq!(refusal(&post(&url, "/api/desk_job_get", &[("Authorization", &agent)], &json!({ "job": job }).to_string())), (404, "not_found".to_owned()));
    assert_eq!(refusal(&post(&url, "/api/desk_whoami", &[("Authorization", "Basic abc")], "{}")), (401, "unauthenticated".to_owned()));
}
