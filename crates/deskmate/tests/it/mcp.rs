//! What MCP clients rely on, over the stdio shim.

use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::{Client, Desk, modern};

fn tool_names(list: &Value) -> Vec<String> {
    let tools = list.get("tools").and_then(Value::as_array).expect("tools");
    tools.iter().filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned)).collect()
}

#[test]
fn both_eras_see_the_same_tools() {
    let desk = Desk::new();
    let mut old = Client::start(&desk, &["--toolset", "bridge", "--agent", "code"]);
    for version in ["2025-06-18", "2025-11-25"] {
        let mut client = Client::start(&desk, &["--toolset", "bridge", "--agent", "code"]);
        assert_eq!(client.initialize(version).get("protocolVersion"), Some(&json!(version)));
    }
    let server = old.initialize("2025-11-25");
    assert_eq!(server.pointer("/serverInfo/name"), Some(&json!("deskmate")));
    assert!(server.get("instructions").and_then(Value::as_str).is_some_and(|text| text.contains("is data") && text.len() < 4_096));
    let listed = old.call("tools/list", json!({}));
    let mut new = Client::start(&desk, &["--toolset", "bridge", "--agent", "code"]);
    let found = new.call("server/discover", modern(json!({})));
    assert!(found.get("supportedVersions").is_some_and(|versions| versions.to_string().contains("2026-07-28")));
    let modern_list = new.call("tools/list", modern(json!({})));
    assert_eq!(listed.get("tools"), modern_list.get("tools"));
    assert_eq!(modern_list.get("resultType"), Some(&json!("complete")));
    assert!(modern_list.get("ttlMs").is_some() && modern_list.get("cacheScope").is_some());
    for tool in listed.get("tools").and_then(Value::as_array).expect("tools") {
        let name = tool.get("name").and_then(Value::as_str).expect("a name");
        assert!(!name.starts_with("bridge_"), "{name}: alone, a toolset has plain names");
        assert!(name.len() <= 64 && tool.get("title").is_some() && tool.get("outputSchema").is_some(), "{name}");
        assert!(tool.get("description").and_then(Value::as_str).is_some_and(|text| !text.is_empty() && text.len() < 4_096), "{name}");
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool.pointer(&format!("/annotations/{hint}")).is_some_and(Value::is_boolean), "{name}: {hint}");
        }
        assert!(!tool.to_string().contains("\"null\""), "{name}: some clients refuse nullable types");
    }
}

#[test]
fn answers_are_data_with_a_text_copy_and_refusals_can_be_read() {
    let desk = Desk::new();
    let mut client = Client::start(&desk, &["--toolset", "bridge", "--agent", "code"]);
    client.initialize("2025-06-18");
    let sent = client.tool("send_message", json!({ "to": "cowork", "content": "hello" }));
    let copy: Value = serde_json::from_str(sent.pointer("/content/0/text").and_then(Value::as_str).expect("text")).expect("JSON");
    assert_eq!(sent.get("structuredContent"), Some(&copy));
    assert_eq!(sent.get("isError"), Some(&json!(false)));
    assert_eq!(sent.pointer("/_meta/deskmate~1unverified"), Some(&json!(true)));
    let wrong = client.tool("send_message", json!({ "to": "cowork", "contents": "hello" }));
    assert_eq!(wrong.get("isError"), Some(&json!(true)));
    // Clients check structured content against the output schema even when the call failed.
    assert_eq!(wrong.get("structuredContent"), None);
    let error: Value = serde_json::from_str(wrong.pointer("/content/0/text").and_then(Value::as_str).expect("text")).expect("JSON");
    assert_eq!((error.get("code"), error.get("field")), (Some(&json!("invalid")), Some(&json!("contents"))));
    assert_eq!(wrong.pointer("/_meta/deskmate~1error"), Some(&error));
    let other = client.tool("send_message", json!({ "to": "cowork", "content": "hello", "agent_id": "somebody" }));
    assert!(other.to_string().contains("forbidden"), "{other}");
    assert_eq!(client.fail("tools/call", json!({ "name": "nonsense" })).get("code"), Some(&json!(-32602)));
    assert_eq!(client.fail("tools/call", json!({ "name": "bridge_send_message" })).get("code"), Some(&json!(-32602)));
    // No arguments at all are no arguments.
    assert_eq!(client.call("tools/call", json!({ "name": "get_tasks" })).get("isError"), Some(&json!(false)));
}

#[test]
fn deep_and_odd_input_is_answered_and_the_connection_stays() {
    let desk = Desk::new();
    let mut client = Client::start(&desk, &["--toolset", "bridge", "--agent", "code"]);
    client.initialize("2025-11-25");
    for (depth, code) in [(11, "invalid"), (90, "invalid")] {
        let nested = (0..depth).fold(json!("x"), |inner, _| json!({ "a": inner }));
        let answer = client.tool("send_message", json!({ "to": "cowork", "content": "x", "deep": nested }));
        assert_eq!(answer.pointer("/_meta/deskmate~1error/code"), Some(&json!(code)), "{depth}: {answer}");
    }
    let deep = format!("{}1{}", "{\"a\":".repeat(500), "}".repeat(500));
    client.send_line(&format!("{{\"jsonrpc\":\"2.0\",\"id\":900,\"method\":\"tools/call\",\"params\":{{\"name\":\"get_tasks\",\"arguments\":{deep}}}}}"));
    assert_eq!(client.answer(900).pointer("/error/code"), Some(&json!(-32600)));
    for line in [
        "nonsense",
        "[]",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"1.0\",\"id\":{},\"method\":1}",
        "\u{feff}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unknown\"}",
    ] {
        client.send_line(line);
    }
    for line in ["nonsense", "{\"jsonrpc\":\"2.0\",\"id\":901,"] {
        client.send_line(line);
        let refusal = client.expect("a line that is not JSON is refused", |message| message.pointer("/error/code") == Some(&json!(-32700)));
        assert_eq!(refusal.get("id"), Some(&Value::Null), "{refusal}");
    }
    assert!(!tool_names(&client.call("tools/list", json!({}))).is_empty());
}

#[test]
fn hostile_text_passes_through_the_stream_and_comes_back_as_it_was() {
    let desk = Desk::new();
    let mut client = Client::start(&desk, &["--toolset", "bridge", "--agent", "code"]);
    client.initialize("2025-11-25");
    let mut sent = Vec::new();
    for text in testkit::HOSTILE {
        let answer = client.tool("send_message", json!({ "to": "code", "content": text }));
        if text.is_empty() || text.contains('\0') {
            assert_eq!(answer.pointer("/_meta/deskmate~1error/code"), Some(&json!("invalid")), "{text:?}: {answer}");
        } else {
            assert_eq!(answer.get("isError"), Some(&json!(false)), "{text:?}: {answer}");
            sent.push(json!(text));
        }
    }
    let read = client.tool("read_messages", json!({}));
    let read: Vec<_> = read["structuredContent"]["messages"].as_array().expect("messages").iter().map(|message| message["content"].clone()).collect();
    assert_eq!(read, sent);
}

#[test]
fn oversized_lines_are_refused_by_their_id() {
    let desk = Desk::new();
    let mut client = Client::start(&desk, &["--toolset", "bridge", "--agent", "code"]);
    client.initialize("2025-11-25");
    let text = "x".repeat(17 << 20);
    client.send_line(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"big\",\"method\":\"tools/call\",\"params\":{{\"name\":\"send_message\",\"arguments\":{{\"content\":\"{text}\"}}}}}}"
    ));
    let answer = client.expect("the refusal", |message| message.get("id") == Some(&json!("big")));
    assert_eq!(answer.pointer("/error/code"), Some(&json!(-32600)));
    assert!(!tool_names(&client.call("tools/list", json!({}))).is_empty());
}

#[test]
fn read_only_leaves_out_what_changes_something() {
    let desk = Desk::new();
    let mut client = Client::start(&desk, &["--toolset", "bridge", "--agent", "code", "--read-only"]);
    client.initialize("2025-11-25");
    let list = client.call("tools/list", json!({}));
    assert!(
        list.get("tools")
            .and_then(Value::as_array)
            .is_some_and(|tools| !tools.is_empty() && tools.iter().all(|tool| tool.pointer("/annotations/readOnlyHint") == Some(&json!(true))))
    );
    assert!(!tool_names(&list).contains(&"send_message".to_owned()));
    let prompts = client.call("prompts/list", json!({})).to_string();
    assert!(!prompts.contains("hand_over"), "a prompt without its tool: {prompts}");
    assert_eq!(client.fail("tools/call", json!({ "name": "send_message", "arguments": { "to": "a", "content": "b" } })).get("code"), Some(&json!(-32602)));
}

#[test]
fn resources_are_read_with_the_callers_credential() {
    let desk = Desk::new();
    let mut code = Client::start(&desk, &["--toolset", "bridge", "--agent", "code"]);
    let mut cowork = Client::start(&desk, &["--toolset", "bridge", "--agent", "cowork"]);
    code.initialize("2025-11-25");
    cowork.initialize("2025-11-25");
    code.tool("send_message", json!({ "to": "cowork", "content": "for you alone" }));
    let mine = cowork.call("resources/read", json!({ "uri": "deskmate://messages" }));
    assert!(mine.to_string().contains("for you alone"), "{mine}");
    assert!(!code.call("resources/read", json!({ "uri": "deskmate://messages" })).to_string().contains("for you alone"));
    let task = code.tool("create_task", json!({ "to": "cowork", "title": "look" }));
    let id = task.pointer("/structuredContent/task_id").or_else(|| task.pointer("/structuredContent/id")).and_then(Value::as_str).expect("an id").to_owned();
    let read = cowork.call("resources/read", json!({ "uri": format!("deskmate://tasks/{id}") }));
    assert!(read.to_string().contains("look"), "{read}");
    let mut other = Client::start(&desk, &["--toolset", "bridge", "--agent", "other"]);
    other.initialize("2025-11-25");
    assert_eq!(other.fail("resources/read", json!({ "uri": format!("deskmate://tasks/{id}") })).get("code"), Some(&json!(-32002)));
    assert_eq!(other.fail("resources/read", json!({ "uri": "deskmate://nothing" })).get("code"), Some(&json!(-32002)));
    let prompts = other.call("prompts/list", json!({}));
    assert!(prompts.to_string().contains("check_messages"), "{prompts}");
    let prompt = other.call("prompts/get", json!({ "name": "hand_over", "arguments": { "to": "code", "work": "the rest" } }));
    assert!(prompt.to_string().contains("the rest"));
    assert_eq!(other.fail("prompts/get", json!({ "name": "hand_over" })).get("code"), Some(&json!(-32602)));
}

#[test]
fn a_read_only_mount_cancels_nothing() {
    let desk = Desk::new();
    let mut client = Client::start(&desk, &["--toolset", "bridge", "--agent", "code", "--read-only"]);
    let mut params = modern(json!({ "taskId": "6b29fc40-ca47-1067-b31d-00dd010662da" }));
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let refused = client.fail("tasks/cancel", params);
    assert!(refused.to_string().contains("only reads"), "{refused}");
}

#[test]
fn followers_of_both_eras_are_told() {
    let desk = Desk::new();
    let mut old = Client::start(&desk, &["--toolset", "bridge", "--agent", "cowork"]);
    old.initialize("2025-11-25");
    old.call("resources/subscribe", json!({ "uri": "deskmate://messages" }));
    let mut new = Client::start(&desk, &["--toolset", "bridge", "--agent", "cowork"]);
    let filter = json!({ "notifications": { "resourceSubscriptions": ["deskmate://messages", "deskmate://nothing"], "toolsListChanged": true } });
    let stream = new.ask("subscriptions/listen", modern(filter));
    let accepted = new.notification("notifications/subscriptions/acknowledged");
    assert_eq!(accepted.pointer("/params/notifications/resourceSubscriptions"), Some(&json!(["deskmate://messages"])), "{accepted}");
    let mut code = Client::start(&desk, &["--toolset", "bridge", "--agent", "code"]);
    code.initialize("2025-11-25");
    // The followers have taken their first look by the time an answer to a later call is there.
    old.call("resources/read", json!({ "uri": "deskmate://messages" }));
    std::thread::sleep(Duration::from_millis(200));
    code.tool("send_message", json!({ "to": "cowork", "content": "news" }));
    let told = old.notification("notifications/resources/updated");
    assert_eq!(told.pointer("/params/uri"), Some(&json!("deskmate://messages")));
    let told = new.notification("notifications/resources/updated");
    assert_eq!(told.pointer("/params/_meta/io.modelcontextprotocol~1subscriptionId"), Some(&json!(stream)), "{told}");
    // What concerns others is not told.
    code.tool("send_message", json!({ "to": "other", "content": "not yours" }));
    assert_eq!(old.receive(Duration::from_millis(500)), None);
    old.call("resources/unsubscribe", json!({ "uri": "deskmate://messages" }));
    code.tool("send_message", json!({ "to": "cowork", "content": "more news" }));
    new.notification("notifications/resources/updated");
    assert_eq!(old.receive(Duration::from_millis(300)), None);
}

#[test]
fn followers_are_told_of_mail_that_changes_no_first_page() {
    let desk = Desk::new();
    let mut code = Client::start(&desk, &["--toolset", "bridge", "--agent", "code"]);
    code.initialize("2025-11-25");
    for number in 0..55 {
        code.tool("send_message", json!({ "to": "cowork", "content": format!("old {number}") }));
    }
    code.tool("send_message", json!({ "to": "cowork", "content": "first there", "project": "web" }));
    let mut cowork = Client::start(&desk, &["--toolset", "bridge", "--agent", "cowork"]);
    cowork.initialize("2025-11-25");
    cowork.call("resources/subscribe", json!({ "uri": "deskmate://messages" }));
    cowork.call("resources/subscribe", json!({ "uri": "deskmate://tasks" }));
    cowork.call("resources/read", json!({ "uri": "deskmate://messages" }));
    std::thread::sleep(Duration::from_millis(200));
    code.tool("send_message", json!({ "to": "cowork", "content": "behind the page" }));
    cowork.notification("notifications/resources/updated");
    code.tool("send_message", json!({ "to": "cowork", "content": "second there", "project": "web" }));
    cowork.notification("notifications/resources/updated");
    code.tool("create_task", json!({ "to": "cowork", "title": "elsewhere", "description": "x", "project": "web" }));
    let told = cowork.notification("notifications/resources/updated");
    assert_eq!(told.pointer("/params/uri"), Some(&json!("deskmate://tasks")));
}

#[test]
fn a_follower_outlasts_a_store_that_fails_for_a_while() {
    let desk = Desk::new();
    let mut code = Client::start(&desk, &["--toolset", "bridge", "--agent", "code"]);
    code.initialize("2025-11-25");
    let made = code.tool("create_task", json!({ "to": "cowork", "title": "long", "description": "x" }));
    let task = made.pointer("/structuredContent/task_id").cloned().unwrap_or_else(|| panic!("{made}"));
    let mut cowork = Client::start(&desk, &["--toolset", "bridge", "--agent", "cowork"]);
    cowork.initialize("2025-11-25");
    let uri = format!("deskmate://tasks/{}", task.as_str().expect("an id"));
    cowork.call("resources/subscribe", json!({ "uri": uri }));
    std::thread::sleep(Duration::from_millis(200));
    let sql = |text: &str| {
        let done = std::process::Command::new("sqlite3").args(["-cmd", ".timeout 5000"]).arg(desk.path().join("desk.db")).arg(text).output();
        assert!(done.as_ref().is_ok_and(|output| output.status.success()), "{done:?}");
    };
    // The task cannot be read meanwhile; adding a note still works.
    sql("alter table task_blocker rename to aside");
    let noted = code.tool("add_task_note", json!({ "task_id": task, "note": "half-way" }));
    assert_eq!(noted.get("isError"), Some(&json!(false)), "{noted}");
    assert_eq!(cowork.receive(Duration::from_millis(500)), None);
    sql("alter table aside rename to task_blocker");
    cowork.notification("notifications/resources/updated");
}

#[test]
fn waiting_calls_report_progress_and_are_woken_or_cancelled() {
    let desk = Desk::new();
    let mut cowork = Client::start(&desk, &["--toolset", "bridge", "--agent", "cowork"]);
    cowork.initialize("2025-11-25");
    let wait = json!({ "name": "wait_for_messages", "arguments": { "timeout_seconds": 25 }, "_meta": { "progressToken": "p" } });
    let waiting = cowork.ask("tools/call", wait.clone());
    let progress = cowork.notification("notifications/progress");
    assert_eq!(progress.pointer("/params/progressToken"), Some(&json!("p")));
    let mut code = Client::start(&desk, &["--toolset", "bridge", "--agent", "code"]);
    code.initialize("2025-11-25");
    code.tool("send_message", json!({ "to": "cowork", "content": "wake up" }));
    assert!(cowork.answer(waiting).to_string().contains("wake up"));
    let mut other = Client::start(&desk, &["--toolset", "bridge", "--agent", "other"]);
    let cancelled = other.ask("tools/call", modern(wait));
    std::thread::sleep(Duration::from_millis(200));
    other.notify("notifications/cancelled", json!({ "requestId": cancelled }));
    assert!(!tool_names(&other.call("tools/list", modern(json!({})))).is_empty());
    assert_eq!(other.receive(Duration::from_millis(300)), None);
}

#[test]
fn without_a_name_each_call_names_its_agent() {
    let desk = Desk::new();
    let mut client = Client::start(&desk, &["--toolset", "bridge"]);
    client.initialize("2025-06-18");
    let nameless = client.tool("get_tasks", json!({}));
    assert!(nameless.to_string().contains("unauthenticated"), "{nameless}");
    let named = client.tool("get_tasks", json!({ "agent_id": "code" }));
    assert_eq!(named.get("isError"), Some(&json!(false)), "{named}");
}

#[test]
fn a_mount_offers_only_what_belongs_to_it() {
    let desk = Desk::new();
    let mut cowork = Client::start(&desk, &["--toolset", "cowork", "--agent", "code"]);
    cowork.initialize("2025-11-25");
    let (prompts, resources) = (cowork.call("prompts/list", json!({})), cowork.call("resources/list", json!({})));
    assert!(!prompts.to_string().contains("check_messages"), "{prompts}");
    assert!(!resources.to_string().contains("deskmate://messages") && resources.to_string().contains("deskmate://record/checkpoint"), "{resources}");
    let mut all = Client::start(&desk, &["--agent", "code"]);
    all.initialize("2025-11-25");
    let names = tool_names(&all.call("tools/list", json!({})));
    for name in ["cowork_propose", "bridge_send_message"] {
        assert!(names.contains(&name.to_owned()), "without a choice {name} is missing: {names:?}");
    }
    assert!(all.call("prompts/list", json!({})).to_string().contains("check_messages"));
}
