//! Agents that really run: the built binary does their steps, on time and by hand, once however it dies, and stops when told to.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desk::{Client, Desk, until};
use crate::gateway;
use crate::workspace::{ask, open, person};

/// An agent's client with the tools of agents and of the bridge.
pub(crate) fn client(desk: &Desk, token: &str) -> Client {
    let mut command = desk.command(&["mcp", "--toolset", "agents,bridge"]);
    command.env("DESKMATE_TOKEN", token);
    let mut client = Client::of(desk, command);
    client.initialize("2025-11-25");
    client
}

pub(crate) fn owner(desk: &Desk, operation: &str, input: &Value) -> Value {
    person(desk, &["call", operation, "--input", &input.to_string(), "--passphrase-stdin", "--json"])
}

/// Makes and deploys an agent, and answers its id.
fn deployed(desk: &Desk, client: &mut Client, input: Value) -> String {
    let made = ask(client, "agents_create_agent", input);
    let id = made["agentId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    let done = owner(desk, "agents_deploy_agent", &json!({ "agentId": id }));
    assert_eq!(done["deployed"], true, "{done}");
    id
}

fn started(desk: &Desk, id: &str, input: Value) -> String {
    let run = owner(desk, "agents_run_agent", &json!({ "agentId": id, "input": input }));
    run["runId"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned()
}

fn ended(client: &mut Client, run: &str) -> Value {
    until("the run has ended", || {
        let seen = ask(client, "agents_wait_for_run", json!({ "runId": run, "timeoutSeconds": 5 }));
        (seen["ended"] == true).then_some(seen)
    })
}

fn messages(client: &mut Client) -> Vec<String> {
    let read = ask(client, "bridge_read_messages", json!({}));
    read["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn answers_about_agents_are_words_for_people_and_data_for_programs() {
    let desk = Desk::new();
    let token = desk.register("code");
    let mut code = client(&desk, &token);
    let made = code.tool("agents_create_agent", json!({ "description": "Tell ada hello every day at 9" }));
    let id = made["structuredContent"]["agentId"].clone();
    for (tool, input, word) in [
        ("agents_get_agent_status", json!({ "agentId": id }), "is draft"),
        ("agents_audit_log", json!({ "agentId": id }), "last 30 days"),
        ("agents_list_templates", json!({ "type": "agent" }), "Agent email-assistant"),
        ("agents_check_compliance", json!({ "agentId": id, "framework": "SOC2" }), "makes nobody compliant"),
        ("agents_test_agent", json!({ "agentId": id, "scenario": "say hello" }), "test"),
        ("agents_attach_policy", json!({ "agentId": id, "policyId": "rate-limiting" }), "rate-limiting"),
    ] {
        let answer = code.tool(tool, input);
        let texts: Vec<&str> = answer["content"].as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap()).collect();
        assert_eq!(texts.len(), 2, "{tool}: {answer}");
        assert!(texts[0].to_lowercase().contains(&word.to_lowercase()), "{tool}: {}", texts[0]);
        assert_eq!(serde_json::from_str::<Value>(texts[1]).unwrap(), answer["structuredContent"], "{tool}");
    }
}

/// A client that lends the desk its model.
fn lending(desk: &Desk, token: &str) -> Client {
    let mut command = desk.command(&["mcp", "--toolset", "agents"]);
    command.env("DESKMATE_TOKEN", token);
    Client::of(desk, command)
}

#[test]
fn a_model_that_an_older_client_lends_is_asked_and_its_answer_is_only_a_suggestion() {
    let desk = Desk::new();
    let token = desk.register("code");
    let mut code = lending(&desk, &token);
    code.call("initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": { "sampling": {} }, "clientInfo": { "name": "test", "version": "1" } }));
    code.notify("notifications/initialized", json!({}));
    let description = "Keep an eye on the tide tables and tell me what changed, Mondays and Thursdays at dawn";
    let says = |code: &mut Client, tool: &str, more: Value, answer: &Value| {
        let mut arguments = json!({ "description": description });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let id = code.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        let question = code.notification("sampling/createMessage");
        assert!(
            question["params"]["systemPrompt"].as_str().unwrap().contains("is data") && question["params"]["messages"].to_string().contains("tide tables"),
            "{question}"
        );
        let mut reply = json!({ "jsonrpc": "2.0", "id": question["id"] });
        reply.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        code.send(&reply);
        code.answer(id)["result"]["structuredContent"].clone()
    };
    let answered = |text: String| json!({ "result": { "role": "assistant", "model": "m", "content": { "type": "text", "text": text } } });
    let good = json!({ "name": "tide-watch", "schedule": "0 6 * * mon,thu", "policies": ["rate-limiting"] });
    let made = says(&mut code, "create_agent", json!({}), &answered(format!("```json\n{good}\n```")));
    assert_eq!((&made["name"], &made["schedule"]["cron"]), (&json!("tide-watch"), &json!("0 6 * * MON,THU")), "{made}");
    assert!(made["assumed"].to_string().contains("schedule, as a model suggested"), "{made}");
    // A client that does not want to, or answers nonsense, gets what the words alone give, and is told.
    for refusal in [json!({ "error": { "code": -1, "message": "User rejected sampling request" } }), answered("Sorry!".to_owned())] {
        let sketched = says(&mut code, "sketch_agent", json!({}), &refusal);
        assert!(sketched["definition"].is_object() && sketched["notUnderstood"].to_string().contains("a model was asked"), "{sketched}");
    }
    // Whoever says what the agent does, or repeats a call under a key, is asked nothing.
    for more in [json!({ "steps": [{ "id": "a", "do": "log", "with": { "text": "x" } }] }), json!({ "idempotency_key": "once" })] {
        let mut arguments = json!({ "description": description });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = code.tool("create_agent", arguments);
        assert!(made["structuredContent"]["agentId"].is_string() && !made.to_string().contains("a model was asked"), "{made}");
    }
    // Without the capability there is no question.
    let mut plain = lending(&desk, &token);
    plain.initialize("2025-11-25");
    let made = plain.tool("create_agent", json!({ "description": description }));
    assert!(made["structuredContent"]["agentId"].is_string(), "{made}");
}

#[test]
fn a_model_that_a_newer_client_lends_is_asked_in_a_round() {
    let desk = Desk::new();
    let token = desk.register("code");
    let mut code = lending(&desk, &token);
    let mut ask = |capabilities: Value, answers: Option<Value>| {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" } });
        let mut params = json!({ "name": "sketch_agent", "arguments": { "description": "Tell ada hello at noon" }, "_meta": meta });
        if let Some(answers) = answers {
            params["inputResponses"] = answers;
        }
        code.call("tools/call", params)
    };
    let asked = ask(json!({ "sampling": {} }), None);
    assert_eq!((&asked["resultType"], &asked["inputRequests"]["suggested"]["method"]), (&json!("input_required"), &json!("sampling/createMessage")), "{asked}");
    let answer = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "{\"name\": \"noon-herald\"}" } });
    let done = ask(json!({ "sampling": {} }), Some(json!({ "suggested": answer })));
    assert_eq!(done["structuredContent"]["name"], "noon-herald", "{done}");
    let declined = ask(json!({ "sampling": {} }), Some(json!({})));
    assert!(declined["structuredContent"]["notUnderstood"].to_string().contains("a model was asked"), "{declined}");
    let plain = ask(json!({}), None);
    assert!(plain["structuredContent"]["name"].is_string() && !plain.to_string().contains("a model was asked"), "{plain}");
}

#[test]
fn steps_pass_values_on_and_reach_other_agents() {
    let desk = Desk::new();
    let token = desk.register("code");
    let mut code = client(&desk, &token);
    let steps = json!([
        { "id": "rows", "do": "parse", "with": { "text": "{{input.table}}", "as": "csv" } },
        { "id": "sorted", "do": "classify", "with": { "items": "{{steps.rows.items}}", "field": "text", "classes": { "negative": ["terrible", "refund"] } } },
        { "id": "bad", "do": "filter", "with": { "items": "{{steps.sorted.items}}", "keep": { "value": "{{item.class}}", "is": "equal", "than": "negative" } } },
        { "id": "tell", "do": "bridge_send_message", "when": { "value": "{{steps.bad.count}}", "is": "more", "than": 0 },
          "for_each": "{{steps.bad.items}}", "with": { "to": "code", "content": "look at {{item.item.id}}: {{item.because}}" } },
        { "id": "note", "do": "log", "with": { "text": "{{steps.bad.count}} of {{steps.rows.count}} are negative" } }
    ]);
    let id = deployed(&desk, &mut code, json!({ "description": "Sort feedback", "steps": steps }));
    let run = started(&desk, &id, json!({ "table": "id,text\n1,all fine\n2,terrible service\n3,\"I want a refund, now\"\n" }));
    let seen = ended(&mut code, &run);
    assert_eq!(seen["state"], "done", "{seen}");
    assert!(seen["log"].to_string().contains("2 of 3 are negative"), "{seen}");
    let mut told = messages(&mut code);
    told.sort();
    assert_eq!(told, ["look at 2: terrible", "look at 3: refund"]);
}

#[test]
fn a_step_that_fails_is_said_and_ends_the_run_unless_it_may_go_on() {
    let desk = Desk::new();
    let token = desk.register("code");
    let mut code = client(&desk, &token);
    let failing = json!({ "id": "read", "do": "workspace_read_file", "with": { "path": "nowhere/x" } });
    let id = deployed(
        &desk,
        &mut code,
        json!({ "description": "Fails", "steps": [failing, { "id": "never", "do": "bridge_send_message", "with": { "to": "code", "content": "no" } }] }),
    );
    let seen = ended(&mut code, &started(&desk, &id, Value::Null));
    assert_eq!(seen["state"], "failed");
    assert!(seen["error"].as_str().unwrap().starts_with("read: "), "{seen}");
    let mut going_on = failing.clone();
    going_on["on_error"] = json!("go_on");
    let id = deployed(
        &desk,
        &mut code,
        json!({ "description": "Goes on", "steps": [going_on, { "id": "then", "do": "set", "with": { "why": "{{steps.read.error}}" } }] }),
    );
    let seen = ended(&mut code, &started(&desk, &id, Value::Null));
    assert_eq!(seen["state"], "done");
    assert!(!seen["result"]["why"].as_str().unwrap().is_empty(), "{seen}");
    assert!(messages(&mut code).is_empty());
}

#[test]
fn budgets_end_a_run() {
    let desk = Desk::new();
    let token = desk.register("code");
    let mut code = client(&desk, &token);
    let steps = json!([
        { "id": "many", "do": "lines", "with": { "text": "1\n2\n3\n4\n5" } },
        { "id": "tell", "do": "bridge_send_message", "for_each": "{{steps.many.items}}", "with": { "to": "code", "content": "{{item}}" } }
    ]);
    let id = deployed(&desk, &mut code, json!({ "description": "Calls too often", "steps": steps, "budget": { "calls": 3 } }));
    let seen = ended(&mut code, &started(&desk, &id, Value::Null));
    assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("budget of 3 calls"), "{seen}");
    assert_eq!(messages(&mut code).len(), 3);
}

#[test]
fn a_schedule_begins_runs_until_the_agent_is_stopped() {
    let desk = Desk::new();
    let token = desk.register("code");
    let mut code = client(&desk, &token);
    let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "code", "content": "tick" } }]);
    let id = deployed(&desk, &mut code, json!({ "description": "Tick", "steps": steps, "schedule": "* * * * * *" }));
    until("it ticked three times", || {
        let runs = ask(&mut code, "agents_list_runs", json!({ "agentId": id }));
        (runs["runs"].as_array().unwrap().iter().filter(|run| run["state"] == "done").count() >= 3).then_some(())
    });
    owner(&desk, "agents_stop_agent", &json!({ "agentId": id }));
    let count = |code: &mut Client| ask(code, "agents_list_runs", json!({ "agentId": id, "limit": 200 }))["runs"].as_array().unwrap().len();
    let then = count(&mut code);
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(count(&mut code), then, "nothing begins any more");
}

#[test]
fn a_run_under_way_stops_between_its_steps() {
    let desk = Desk::new();
    let token = desk.register("code");
    let mut code = client(&desk, &token);
    // Nobody answers, so this waits until it is stopped.
    let steps = json!([
        { "id": "wait", "do": "bridge_wait_for_messages", "with": {} },
        { "id": "never", "do": "bridge_send_message", "with": { "to": "code", "content": "no" } }
    ]);
    let id = deployed(&desk, &mut code, json!({ "description": "Waits", "steps": steps }));
    let run = started(&desk, &id, Value::Null);
    until("it runs", || (ask(&mut code, "agents_wait_for_run", json!({ "runId": run, "timeoutSeconds": 0 }))["state"] == "running").then_some(()));
    let asked = Instant::now();
    owner(&desk, "agents_stop_run", &json!({ "runId": run }));
    let seen = ended(&mut code, &run);
    assert_eq!(seen["state"], "stopped", "{seen}");
    assert!(asked.elapsed() < Duration::from_secs(20));
    assert!(messages(&mut code).is_empty());
}

#[test]
fn pausing_the_agent_holds_its_run_and_letting_it_go_on_ends_that() {
    let desk = Desk::new();
    let token = desk.register("code");
    let mut code = client(&desk, &token);
    let steps = json!([
        { "id": "wait", "do": "bridge_wait_for_messages", "with": {} },
        { "id": "tell", "do": "bridge_send_message", "with": { "to": "code", "content": "done" } }
    ]);
    let id = deployed(&desk, &mut code, json!({ "description": "Waits and tells", "name": "teller", "steps": steps, "budget": { "seconds": 2 } }));
    let run = started(&desk, &id, Value::Null);
    until("it runs", || (ask(&mut code, "agents_wait_for_run", json!({ "runId": run, "timeoutSeconds": 0 }))["state"] == "running").then_some(()));
    owner(&desk, "desk_pause", &json!({ "agent": "teller" }));
    ask(&mut code, "bridge_send_message", json!({ "to": "teller", "content": "go" }));
    let log = |code: &mut Client| ask(code, "agents_run_log", json!({ "runId": run })).to_string();
    until("it says that it is paused", || log(&mut code).contains("its agent is paused").then_some(()));
    // However the server ends meanwhile, and for longer than its own time.
    drop(code);
    desk.kill_server();
    desk.up();
    let mut code = client(&desk, &token);
    std::thread::sleep(Duration::from_secs(3));
    let seen = ask(&mut code, "agents_wait_for_run", json!({ "runId": run, "timeoutSeconds": 0 }));
    assert_eq!((&seen["state"], messages(&mut code).len()), (&json!("running"), 0), "{seen}");
    owner(&desk, "desk_resume", &json!({ "agent": "teller" }));
    let seen = ended(&mut code, &run);
    assert_eq!((&seen["state"], messages(&mut code)), (&json!("done"), vec!["done".to_owned()]), "{seen}");
}

#[test]
fn paused_runs_leave_their_places_to_others() {
    let (desk, _folder, token) = gateway::desk();
    let mut code = client(&desk, &token);
    // As many as a server does beside each other, each of them busy for long.
    let steps = json!([{ "id": "call", "do": "gateway_call", "retry": { "times": 9, "wait_seconds": 5 }, "with": { "mount": "notes", "tool": "fail" } }]);
    let patient = json!({ "description": "Tries again and again", "name": "patient", "steps": steps, "policies": [] });
    let id = deployed(&desk, &mut code, patient);
    let tells = json!([{ "id": "say", "do": "log", "with": { "text": "hello" } }]);
    let other = deployed(&desk, &mut code, json!({ "description": "Says hello", "steps": tells, "policies": [] }));
    let runs: Vec<Value> = (0..64).map(|_| ask(&mut code, "agents_run_agent", json!({ "agentId": id }))["runId"].clone()).collect();
    let log = |code: &mut Client, run: &Value| ask(code, "agents_run_log", json!({ "runId": run })).to_string();
    until("all are under way", || runs.iter().all(|run| log(&mut code, run).contains("is tried again")).then_some(()));
    owner(&desk, "desk_pause", &json!({ "agent": "patient" }));
    let seen = ended(&mut code, &started(&desk, &other, Value::Null));
    assert_eq!(seen["state"], "done", "{seen}");
    owner(&desk, "desk_resume", &json!({ "agent": "patient" }));
    let seen = ask(&mut code, "agents_wait_for_run", json!({ "runId": runs[0], "timeoutSeconds": 0 }));
    assert_eq!(seen["state"], "running", "{seen}");
}

#[test]
fn a_loop_tells_how_far_it_is() {
    let (desk, _folder, token) = gateway::desk();
    let mut code = client(&desk, &token);
    let steps = json!([
        { "id": "begin", "do": "log", "with": { "text": "begun" } },
        { "id": "look", "do": "gateway_call", "for_each": "{{input.items}}", "with": { "mount": "notes", "tool": "slow", "arguments": { "seconds": 0.7 } } }
    ]);
    let id = deployed(&desk, &mut code, json!({ "description": "Looks at each", "steps": steps, "policies": [] }));
    let run = started(&desk, &id, json!({ "items": [1, 2, 3, 4, 5, 6, 7, 8] }));
    let seen = until("it says how far it is", || {
        let seen = ask(&mut code, "agents_get_run", json!({ "runId": run }));
        (seen["ended"] == true || seen["progress"]["text"].as_str().is_some_and(|text| text.contains("of 8"))).then_some(seen)
    });
    let percent = seen["progress"]["percent"].as_u64().unwrap_or_else(|| panic!("{seen}"));
    assert!(percent > 50 && percent < 100 && seen["calls"].as_i64() > Some(0), "{seen}");
    let seen = ended(&mut code, &run);
    assert_eq!((&seen["state"], &seen["result"]["count"]), (&json!("done"), &json!(8)), "{seen}");
}

#[test]
fn a_run_that_waits_to_try_again_stops_at_once_and_waits_no_longer_than_its_seconds() {
    let (desk, folder, token) = gateway::desk();
    let mut code = client(&desk, &token);
    let steps = |wait: u32| json!([{ "id": "call", "do": "gateway_call", "retry": { "times": 3, "wait_seconds": wait }, "with": { "mount": "notes", "tool": "fail" } }]);
    let id = deployed(&desk, &mut code, json!({ "description": "Tries again much later", "steps": steps(500), "policies": [] }));
    let run = started(&desk, &id, Value::Null);
    until("it waits", || ask(&mut code, "agents_run_log", json!({ "runId": run })).to_string().contains("is tried again in 500 s").then_some(()));
    let asked = Instant::now();
    owner(&desk, "agents_stop_run", &json!({ "runId": run }));
    let seen = ended(&mut code, &run);
    assert_eq!((&seen["state"], asked.elapsed() < Duration::from_secs(30)), (&json!("stopped"), true), "{seen}");
    let made = gateway::done(&folder).len();
    let id = deployed(&desk, &mut code, json!({ "description": "Has no time for it", "steps": steps(60), "policies": [], "budget": { "seconds": 30 } }));
    let seen = ended(&mut code, &started(&desk, &id, Value::Null));
    let error = seen["error"].as_str().unwrap_or_default();
    assert!(seen["state"] == "failed" && error.contains("budget of 30 seconds") && error.contains("it is broken"), "{seen}");
    assert_eq!(gateway::done(&folder).len(), made + 1);
}

#[test]
fn seconds_and_cost_end_a_run_of_steps_whatever_may_go_on() {
    let (desk, folder, token) = gateway::desk();
    gateway::mount(&desk, &folder, "dear", &["--cost", "2", "--environment", "production"]);
    let mut code = client(&desk, &token);
    let steps = |mount: &str, tool: &str| {
        json!([
            { "id": "many", "do": "lines", "with": { "text": "1\n2\n3\n4\n5\n6" } },
            { "id": "call", "do": "gateway_call", "for_each": "{{steps.many.items}}", "on_error": "go_on",
              "with": { "mount": mount, "tool": tool, "arguments": { "seconds": 1, "number": "{{item}}" } } },
            { "id": "then", "do": "bridge_send_message", "with": { "to": "code", "content": "went on" } }
        ])
    };
    let input = json!({ "description": "Takes long", "steps": steps("notes", "slow"), "policies": [], "budget": { "seconds": 2 } });
    let id = deployed(&desk, &mut code, input);
    let seen = ended(&mut code, &started(&desk, &id, Value::Null));
    assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("budget of 2 seconds"), "{seen}");
    assert!(gateway::done(&folder).len() < 5, "{:?}", gateway::done(&folder));
    let input = json!({ "description": "Costs much", "steps": steps("dear", "read"), "policies": [], "budget": { "cost": 5 } });
    let id = deployed(&desk, &mut code, input);
    let run = started(&desk, &id, Value::Null);
    let seen = ended(&mut code, &run);
    assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("budget of 5 for cost"), "{seen}");
    assert_eq!(owner(&desk, "agents_get_run", &json!({ "runId": run }))["used"]["cost"], 4.0);
    let dear = std::fs::read_to_string(folder.path().join("dear")).unwrap();
    assert_eq!((dear.lines().count(), messages(&mut code).len()), (2, 0), "{dear}");
}

#[test]
fn however_often_the_server_dies_a_run_does_each_step_once() {
    let desk = Desk::new();
    let token = desk.register("code");
    let mut code = client(&desk, &token);
    let lines: Vec<String> = (0..200).map(|number| format!("message {number}")).collect();
    let steps = json!([
        { "id": "many", "do": "lines", "with": { "text": lines.join("\n") } },
        { "id": "tell", "do": "bridge_send_message", "for_each": "{{steps.many.items}}", "with": { "to": "code", "content": "{{item}}" } },
        { "id": "last", "do": "bridge_send_message", "with": { "to": "code", "content": "that was all" } }
    ]);
    let id = deployed(&desk, &mut code, json!({ "description": "Tells a lot", "steps": steps }));
    let run = started(&desk, &id, Value::Null);
    drop(code);
    for pause in [20, 150, 60] {
        std::thread::sleep(Duration::from_millis(pause));
        desk.kill_server();
        desk.up();
    }
    let mut code = client(&desk, &token);
    let seen = ended(&mut code, &run);
    assert_eq!(seen["state"], "done", "{seen}");
    let mut told = Vec::new();
    loop {
        let read = ask(&mut code, "bridge_read_messages", json!({ "limit": 200, "mark_read": true }));
        let found: Vec<String> = read["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect();
        if found.is_empty() || found.iter().all(|one| told.contains(one)) {
            break;
        }
        told.extend(found);
    }
    assert_eq!((told.len(), told.last().map(String::as_str)), (201, Some("that was all")));
}

#[test]
fn a_call_of_a_mounted_tool_that_was_under_way_is_not_made_twice() {
    let (desk, folder, token) = gateway::desk();
    let mut code = client(&desk, &token);
    let call = |tool: &str| json!([{ "id": "call", "do": "gateway_call", "retry": { "times": 1, "wait_seconds": 0 }, "with": { "mount": "notes", "tool": tool, "arguments": { "seconds": 20 } } }]);
    let id = deployed(&desk, &mut code, json!({ "description": "Calls", "steps": call("slow"), "policies": [] }));
    let run = started(&desk, &id, Value::Null);
    let made = |tool: &str| gateway::done(&folder).iter().filter(|call| call["tool"] == tool).count();
    until("the call is under way", || (made("slow") == 1).then_some(()));
    drop(code);
    desk.kill_server();
    desk.up();
    let mut code = client(&desk, &token);
    let seen = ended(&mut code, &run);
    assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("not tried again"), "{seen}");
    assert_eq!(made("slow"), 1);
    // What says that it failed did nothing, and is tried again.
    let id = deployed(&desk, &mut code, json!({ "description": "Fails", "steps": call("fail"), "policies": [] }));
    let seen = ended(&mut code, &started(&desk, &id, Value::Null));
    assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("it is broken"), "{seen}");
    assert_eq!(made("fail"), 2);
    // Of a server that was lost in the middle nobody knows what it did.
    let id = deployed(&desk, &mut code, json!({ "description": "Dies", "steps": call("die"), "policies": [] }));
    let seen = ended(&mut code, &started(&desk, &id, Value::Null));
    assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("not tried again"), "{seen}");
    assert_eq!(made("die"), 1);
}

#[test]
fn a_rule_that_asks_for_a_person_holds_the_run_and_one_that_forbids_fails_it() {
    let desk = Desk::new();
    let token = desk.register("code");
    let mut code = client(&desk, &token);
    let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "code", "content": "{{input.words}}" } }]);
    let id = deployed(&desk, &mut code, json!({ "description": "Tell code something", "steps": steps, "policies": ["human-review"] }));
    let run = started(&desk, &id, json!({ "words": "may I?" }));
    let request = until("the call waits for a person", || {
        let listed = owner(&desk, "desk_request_list", &json!({}));
        listed["requests"].as_array().and_then(|all| all.iter().find(|one| one["kind"] == "approval")).map(|one| one["request"].clone())
    });
    assert_eq!(messages(&mut code), Vec::<String>::new());
    owner(&desk, "desk_request_approve", &json!({ "request": request }));
    let seen = ended(&mut code, &run);
    assert_eq!((&seen["state"], &seen["calls"]), (&json!("done"), &json!(1)), "waiting is no call: {seen}");
    assert_eq!(messages(&mut code), ["may I?"]);
    let rules = json!([{ "name": "quiet", "condition": "texts.exists(text, text.contains('falcon'))", "action": "deny", "message": "not about falcon" }]);
    owner(&desk, "agents_attach_policy", &json!({ "agentId": id, "policyId": "cost-control", "customRules": rules }));
    let run = started(&desk, &id, json!({ "words": "about falcon" }));
    let seen = ended(&mut code, &run);
    assert!(seen["state"] == "failed" && seen["error"].as_str().is_some_and(|why| why.contains("not about falcon")), "{seen}");
}

/// What lets agents reach what is mounted without a person.
const OUTSIDE: &str = "
rules:
  - { name: outside, match: { kind: [outside.read, backup.make] }, effect: allow, waive_trust: true, message: fine }
";

/// Runs what the owner made once, and answers what came of it.
fn once(desk: &Desk, id: &Value) -> Value {
    let run = started(desk, id.as_str().unwrap(), Value::Null);
    until("the run has ended", || {
        let seen = owner(desk, "agents_wait_for_run", &json!({ "runId": run, "timeoutSeconds": 5 }));
        (seen["ended"] == true).then_some(seen)
    })
}

#[test]
fn a_sentence_about_a_backup_makes_one_that_is_checked_and_can_be_brought_back() {
    let desk = Desk::new();
    desk.register("code");
    open(&desk, OUTSIDE);
    let folder = tempfile::tempdir().unwrap();
    let (source, kept) = (folder.path().join("Documents"), folder.path().join("kept"));
    std::fs::create_dir_all(source.join("deep")).unwrap();
    std::fs::create_dir(&kept).unwrap();
    std::fs::write(source.join("a.txt"), "one").unwrap();
    std::fs::write(source.join("deep/b.txt"), "two").unwrap();
    let verbs = ["--verb=back_up=backup.make", "--verb=verify_backup=outside.read", "--verb=test_restore=outside.read"];
    let connector = ["--", "deskmate", "connector", "storage", "--read", source.to_str().unwrap(), "--to", kept.to_str().unwrap()];
    person(&desk, &[&["gateway", "add", "safe", "--passphrase-stdin", "--json"][..], &verbs, &connector].concat());
    let made = owner(&desk, "agents_create_agent", &json!({ "description": "Back up my Documents folder every night" }));
    assert_eq!((&made["needs"], &made["definition"]["params"]["mount"]), (&json!([]), &json!("safe")), "{made}");
    assert!(made["assumed"].to_string().contains("all that it may read"), "{made}");
    let done = owner(&desk, "agents_deploy_agent", &json!({ "agentId": made["agentId"] }));
    assert_eq!(done["deployed"], true, "{done}");
    let seen = once(&desk, &made["agentId"]);
    assert_eq!((&seen["state"], &seen["result"]["files"], &seen["result"]["restored"]), (&json!("done"), &json!(2), &json!(true)), "{seen}");
    assert_eq!((&seen["result"]["left_out"], &seen["calls"]), (&json!(0), &json!(3)), "{seen}");
    // What cannot be copied is told, and the rest is copied nevertheless.
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff.txt");
    std::fs::write(source.join(name), "three").unwrap();
    let seen = once(&desk, &made["agentId"]);
    assert_eq!((&seen["state"], &seen["result"]["files"], &seen["calls"]), (&json!("done"), &json!(2), &json!(4)), "{seen}");
    assert_eq!(seen["result"]["not_read"], json!(["1 names that are not UTF-8"]), "{seen}");
}

/// A server that reads three mails at once, behind the place that it is told, and writes down what it was asked.
const MAILBOX: &str = r#"
import json, sys
def say(id, **result):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}) + "\n"); sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line); id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method == "initialize":
        say(id, protocolVersion="2025-11-25", capabilities={"tools": {}}, serverInfo={"name": "mailbox", "version": "1"})
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"after": {"type": "string"}, "most": {"type": "number"}}}
        say(id, tools=[{"name": "read_mail", "description": "reads mail", "inputSchema": schema}])
    elif method == "tools/call":
        given = params.get("arguments") or {}
        with open(sys.argv[1], "a") as file: file.write(json.dumps(given) + "\n")
        first = int(given.get("after") or 0)
        found = [{"id": n, "text": "a terrible service"} for n in range(first + 1, min(first + 3, 5) + 1)]
        say(id, content=[{"type": "text", "text": "mail"}], structuredContent={"items": found, "after": str(found[-1]["id"]) if found else str(first)})
    elif id is not None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}}) + "\n"); sys.stdout.flush()
"#;

#[test]
fn an_agent_of_a_sentence_that_reads_mail_reads_on_where_it_was() {
    let desk = Desk::new();
    desk.register("code");
    open(&desk, OUTSIDE);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mailbox.py"), MAILBOX).unwrap();
    let (script, log) = (gateway::path(&folder, "mailbox.py"), gateway::path(&folder, "asked"));
    person(&desk, &["gateway", "add", "post", "--passphrase-stdin", "--json", "--verb=read_mail=outside.read", "--", "python3", &script, &log]);
    let sentence = "Create an agent that processes customer feedback from support e-mails daily, classifies it and forwards negative cases to a person, \
                    at most 1,000 e-mails per run.";
    let made = owner(&desk, "agents_create_agent", &json!({ "description": sentence, "schedule": "", "policies": [] }));
    assert_eq!(made["needs"], json!([]), "{made}");
    assert!(made["assumed"].to_string().contains("at most 200"), "what the connector gives at once is less: {made}");
    owner(&desk, "agents_deploy_agent", &json!({ "agentId": made["agentId"] }));
    for _ in 0..3 {
        let seen = once(&desk, &made["agentId"]);
        assert_eq!(seen["state"], "done", "{seen}");
    }
    let asked: Vec<Value> = std::fs::read_to_string(&log).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let asked: Vec<(&Value, &Value)> = asked.iter().map(|given| (&given["after"], &given["most"])).collect();
    let most = json!(1_000);
    assert_eq!(asked, [(&Value::Null, &most), (&json!("3"), &most), (&json!("5"), &most)]);
    let handed = owner(&desk, "desk_request_list", &json!({}))["requests"].as_array().unwrap().iter().filter(|one| one["kind"] == "handoff").count();
    assert_eq!(handed, 2, "nobody is handed the same mail twice, nor none");
}

/// A mailbox with a person's questions and a complaint in it, of which everything is new once. It writes down what it sends.
const QUESTIONS: &str = r#"
import json, sys
def mail(id, subject, text): return {"id": id, "subject": subject, "from": "grace@example.org", "text": text, "answerable": True}
mails = [mail("1", "Where is it", "When does my order come?"), mail("2", "The bill", "How much is my invoice?"), mail("3", "A return", "I want a refund.")]
for line in sys.stdin:
    message = json.loads(line); id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    def say(**answer): print(json.dumps({"jsonrpc": "2.0", "id": id, **answer}), flush=True)
    if method == "initialize":
        say(result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "mailbox", "version": "1"}})
    elif method == "tools/list":
        say(result={"tools": [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in ("read_mail", "draft_mail", "send_mail")]})
    elif method == "tools/call":
        given, after = params["arguments"], int(params["arguments"].get("after") or 0)
        if params["name"] == "read_mail": came = {"items": mails[after:], "after": "3"}
        else:
            with open(sys.argv[1], "a") as file: file.write(given["reply_to"])
            came = {"sent": True}
        say(result={"content": [{"type": "text", "text": "550 no" if given.get("text") == "refuse" else json.dumps(came)}], "structuredContent": came, "isError": given.get("text") == "refuse"})
    elif id is not None: say(error={"code": -32601, "message": "Method not found"})
"#;

#[test]
fn an_answer_that_was_rejected_or_failed_is_not_tried_again_and_neither_is_any_other() {
    let desk = Desk::new();
    desk.register("code");
    open(&desk, OUTSIDE);
    let folder = tempfile::tempdir().unwrap();
    let (script, sent) = (gateway::path(&folder, "mailbox.py"), gateway::path(&folder, "sent"));
    std::fs::write(&script, QUESTIONS).unwrap();
    let verbs = ["--verb=read_mail=outside.read", "--verb=draft_mail=outside.read"];
    person(&desk, &[&["gateway", "add", "mail", "--passphrase-stdin", "--json"][..], &verbs, &["--", "python3", &script, &sent]].concat());
    let sends = || std::fs::read_to_string(&sent).unwrap_or_default();
    let made = |params: Value| {
        let made = owner(&desk, "agents_create_agent", &json!({ "template": "email-assistant", "params": params, "policies": [], "schedule": "" }));
        let done = owner(&desk, "agents_deploy_agent", &json!({ "agentId": made["agentId"] }));
        assert_eq!(done["deployed"], true, "{made} {done}");
        made["agentId"].clone()
    };
    let waiting = |kind: &str| {
        let listed = owner(&desk, "desk_request_list", &json!({}));
        listed["requests"].as_array().unwrap().iter().filter(|one| one["kind"] == kind).map(|one| one["request"].clone()).collect::<Vec<_>>()
    };
    let id = made(json!({ "send": true }));
    let run = started(&desk, id.as_str().unwrap(), Value::Null);
    for answer in ["reject", "approve"] {
        let request = until("the answer waits for a person", || waiting("tool_call").pop());
        owner(&desk, &format!("desk_request_{answer}"), &json!({ "request": request, "reason": "not like this" }));
    }
    let ended = |run: &str| {
        until("the run has ended", || {
            let seen = owner(&desk, "agents_wait_for_run", &json!({ "runId": run, "timeoutSeconds": 5 }));
            (seen["ended"] == true).then_some(seen)
        })
    };
    let seen = ended(&run);
    let result = &seen["result"];
    assert_eq!((&seen["state"], &result["answered"], &result["handed_over"]), (&json!("done"), &json!(1), &json!(1)), "{seen}");
    let unanswered = result["unanswered"].as_array().unwrap();
    assert!(unanswered.len() == 1 && unanswered[0]["subject"] == "Where is it" && unanswered[0]["mail"] == "1", "{result}");
    assert!(unanswered[0]["why"].as_str().unwrap().contains("not like this"), "{result}");
    assert_eq!((sends().as_str(), waiting("handoff").len()), ("2", 1));
    let seen = once(&desk, &id);
    assert_eq!((&seen["state"], &seen["result"]["stopped"]), (&json!("done"), &json!(true)), "{seen}");
    assert_eq!((sends().as_str(), waiting("handoff").len(), waiting("tool_call")), ("2", 1, Vec::new()), "nothing is done again");
    // Drafts that cannot be put away are no reason to read everything anew, either.
    let id = made(json!({ "answer": "refuse" }));
    let seen = once(&desk, &id);
    assert_eq!((&seen["state"], &seen["result"]["answered"]), (&json!("done"), &json!(0)), "{seen}");
    assert!(seen["result"]["unanswered"].as_array().is_some_and(|all| all.len() == 2 && all[1]["why"].as_str().unwrap().contains("550 no")), "{seen}");
    assert_eq!(once(&desk, &id)["result"]["stopped"], true);
    assert_eq!(sends(), "212");
}
