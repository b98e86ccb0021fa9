//! What holds a run back while it is under way, on both engines: the kill switch, rules about rates, costs and places, and its budget for
//! cost. The worker and the servers behind the desk are played by the tests.

use std::time::Duration;

use deskmate_core::Code;
use deskmate_core::agents::{self, RunState};
use deskmate_core::call::{Errand, Fetched, Hands};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

const MOUNTS: &str = "
workspace: { web: true }
gateway:
  mounts:
    - { name: crm, command: crm-server, verbs: { '*': crm.write }, cost: 2, environment: production }
    - { name: lab, command: lab-server, verbs: { '*': lab.write }, environment: staging }
rules:
  - { name: passes, match: { kind: [crm.write, lab.write, desk.call, net.fetch] }, effect: allow, waive_trust: true, message: fine }
";

/// Servers with one tool, and pages that say hello.
struct Outside;

impl Hands for Outside {
    fn run(&self, errand: Errand) -> Fetched<'_> {
        let found = match errand {
            Errand::Mount(_) => {
                json!({ "server": { "name": "x" }, "protocol": "2026-07-28", "micros": 1, "tools": [{ "name": "change", "inputSchema": { "type": "object" } }] })
            }
            Errand::Page { url } => {
                json!({ "url": url, "status": 200, "content_type": "text/plain", "title": null, "text": "hello", "truncated": false, "fetched_bytes": 5 })
            }
            _ => panic!("nobody asked for this"),
        };
        Box::pin(async move { Ok(found) })
    }
}

fn people(desk: &TestDesk) -> (Caller, Caller) {
    let owner = desk.claim();
    let code = desk.register(&owner, "code");
    desk.lend(Outside);
    desk.call(&owner, "desk_policy_apply", json!({ "document": MOUNTS })).unwrap();
    for mount in ["crm", "lab"] {
        desk.call(&owner, "desk_mount_test", json!({ "name": mount })).unwrap();
    }
    (owner, code)
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}

/// An agent that is deployed, with these policies.
fn worker(desk: &TestDesk, owner: &Caller, policies: &[(&str, Value)], more: Value) {
    let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "code", "content": "hello" } }]);
    let mut input = json!({ "description": "Say hello to code", "name": "worker", "steps": steps, "policies": [] });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    desk.call(owner, "agents_create_agent", input).unwrap();
    for (policy, more) in policies {
        let mut input = json!({ "agentId": "worker", "policyId": policy });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        desk.call(owner, "agents_attach_policy", input).unwrap();
    }
    assert_eq!(desk.call(owner, "agents_deploy_agent", json!({ "agentId": "worker" })).unwrap()["deployed"], true);
}

fn queued(desk: &TestDesk, owner: &Caller) -> String {
    text(&desk.call(owner, "agents_run_agent", json!({ "agentId": "worker" })).unwrap(), "runId")
}

fn begin(desk: &TestDesk, run: &str) -> bool {
    let run = run.to_owned();
    desk.act(move |cx| Ok(agents::begin(cx, &run)?.is_some())).unwrap()
}

/// A run that has begun, and its agent within it.
fn running(desk: &TestDesk, owner: &Caller) -> (String, Caller) {
    let run = queued(desk, owner);
    assert!(begin(desk, &run));
    (run.clone(), Caller::Run(run))
}

fn say(desk: &TestDesk, run: &Caller, words: &str) -> Value {
    desk.call(run, "bridge_send_message", json!({ "to": "code", "content": words })).unwrap()
}

fn heard(desk: &TestDesk, code: &Caller) -> usize {
    desk.call(code, "bridge_read_messages", json!({ "mark_read": false })).unwrap()["messages"].as_array().unwrap().len()
}

/// A call of a mounted tool. What it was called with makes it another one.
fn change(desk: &TestDesk, run: &Caller, mount: &str, number: u32) -> Value {
    desk.call(run, "gateway_call", changing(mount, number)).unwrap()
}

fn changing(mount: &str, number: u32) -> Value {
    json!({ "mount": mount, "tool": "change", "arguments": { "number": number } })
}

fn runs(desk: &TestDesk, owner: &Caller) -> Vec<Value> {
    desk.call(owner, "agents_list_runs", json!({ "agentId": "worker" })).unwrap()["runs"].as_array().unwrap().clone()
}

/// The acts of the agent that were counted in a domain within the hour.
fn counted(desk: &TestDesk, owner: &Caller, domain: &str) -> i64 {
    let used = desk.call(owner, "desk_meter_get", json!({ "agent": "worker" })).unwrap();
    used["domains"].as_array().unwrap().iter().find(|one| one["domain"] == domain).map_or(0, |one| one["calls_hour"].as_i64().unwrap_or(0))
}

both! {
    fn the_list_of_agents_tells_which_were_made_here(desk: &TestDesk) {
        let (owner, _) = people(desk);
        worker(desk, &owner, &[], json!({}));
        let (_, run) = running(desk, &owner);
        say(desk, &run, "I am here");
        let listed = || desk.call(&owner, "desk_agent_list", json!({ "unregistered": true })).unwrap()["agents"].as_array().unwrap().clone();
        let told = || listed().iter().map(|agent| (text(agent, "agent"), agent["made_here"] == true)).collect::<Vec<_>>();
        assert_eq!(told(), [("code".to_owned(), false), ("worker".to_owned(), true)]);
    }

    fn runs_and_tests_go_after_their_time_but_for_the_newest(desk: &TestDesk) {
        let (owner, _) = people(desk);
        worker(desk, &owner, &[], json!({}));
        let mut ended = Vec::new();
        for _ in 0..3 {
            desk.call(&owner, "agents_test_agent", json!({ "agentId": "worker", "scenario": "Say hello" })).unwrap();
            let (run, _) = running(desk, &owner);
            let told = run.clone();
            desk.act(move |cx| agents::said(cx, &told, &[("agent".to_owned(), "hello".to_owned())], 1)).unwrap();
            let told = run.clone();
            desk.act(move |cx| agents::end(cx, &told, RunState::Done, Ok(json!("over")), 1)).unwrap();
            ended.push(run);
            desk.world.pass(Duration::from_secs(3600));
        }
        let (open, _) = running(desk, &owner);
        let ids = || runs(desk, &owner).iter().map(|run| text(run, "runId")).collect::<Vec<_>>();
        let count = |sql: &'static str| desk.act(move |cx| Ok(cx.tx.one(sql, &[])?.get::<i64>(0)?)).unwrap();
        let (lines, tests) = (|| count("select count(*) from agent_log"), || count("select count(*) from agent_test"));
        let now = desk.desk.world.now();
        let hour = 3_600_000_000;
        assert!(!desk.act(move |cx| agents::prune(cx, now - 10 * hour, 100)).unwrap());
        assert_eq!((ids().len(), lines(), tests()), (4, 3, 3), "none is so old");
        assert!(desk.act(move |cx| agents::prune(cx, now, 1)).unwrap(), "one at a time, and there may be more");
        assert_eq!((ids().len(), tests()), (3, 2));
        while desk.act(move |cx| agents::prune(cx, now, 1)).unwrap() {}
        assert_eq!(ids(), [open, ended[2].clone()], "what is under way stays, and the newest that has ended");
        assert_eq!((lines(), tests()), (1, 1));
        desk.call(&owner, "agents_get_agent_status", json!({ "agentId": "worker" })).unwrap();
        assert!(desk.verify().sound);
    }

    fn what_the_next_run_remembers_stays_however_many_failed_since(desk: &TestDesk) {
        let (owner, _) = people(desk);
        worker(desk, &owner, &[], json!({}));
        let mut ended = Vec::new();
        for state in [RunState::Done, RunState::Done, RunState::Failed, RunState::Failed] {
            let (run, _) = running(desk, &owner);
            let (told, came) = (run.clone(), json!({ "x": ended.len() }));
            desk.act(move |cx| agents::end(cx, &told, state, if state == RunState::Done { Ok(came.clone()) } else { Err("no".to_owned()) }, 1)).unwrap();
            ended.push(run);
            desk.world.pass(Duration::from_secs(3600));
        }
        let now = desk.desk.world.now();
        while desk.act(move |cx| agents::prune(cx, now, 1)).unwrap() {}
        let left: Vec<String> = runs(desk, &owner).iter().map(|run| text(run, "runId")).collect();
        assert_eq!(left, [ended[3].clone(), ended[1].clone()], "the newest, and the newest that was done");
        let next = queued(desk, &owner);
        assert_eq!(desk.act(move |cx| Ok(agents::begin(cx, &next)?.map(|begun| begun.last))).unwrap(), Some(json!({ "x": 1 })));
    }

    fn who_is_put_off_is_told_when_to_ask_again_and_nothing_else_is_told(desk: &TestDesk) {
        let (owner, code) = people(desk);
        worker(desk, &owner, &[], json!({}));
        let (_, as_run) = running(desk, &owner);
        for _ in 0..10 {
            desk.act(|cx| deskmate_core::meter::denied(cx, "worker", "desk.bridge")).unwrap();
        }
        for _ in 0..3 {
            let refused = desk.refused(&as_run, "bridge_send_message", json!({ "to": "code", "content": "hello" }));
            assert_code(&refused, Code::Limited);
            assert!(refused.retry_after_ms.is_some_and(|after| after > 0), "{refused:?}");
        }
        desk.seal();
        let told = desk.call(&owner, "desk_record_list", json!({ "kind": "act.denied" })).unwrap()["events"].clone();
        assert_eq!((told, heard(desk, &code)), (json!([]), 0));
        desk.world.pass(Duration::from_secs(61));
        say(desk, &as_run, "hello");
        assert_eq!(heard(desk, &code), 1);
    }

    fn the_kill_switch_holds_what_is_under_way_and_begins_nothing(desk: &TestDesk) {
        let (owner, code) = people(desk);
        worker(desk, &owner, &[], json!({ "schedule": "* * * * * *", "overlap": true }));
        let (run, as_run) = running(desk, &owner);
        let waiting = queued(desk, &owner);
        say(desk, &as_run, "before");
        for (pause, resume) in [(json!({ "agent": "worker" }), json!({ "agent": "worker" })), (json!({ "all": true }), json!({ "all": true }))] {
            let before = heard(desk, &code);
            desk.call(&owner, "desk_pause", pause.clone()).unwrap();
            let held = say(desk, &as_run, "meanwhile");
            assert_eq!((&held["state"], heard(desk, &code)), (&json!("paused"), before), "{pause}: {held}");
            let task = desk.call(&as_run, "bridge_create_task", json!({ "title": "x", "assignee": "code" })).unwrap();
            assert_eq!(task["state"], "paused", "{task}");
            let refused = desk.call(&as_run, "gateway_call", changing("lab", 1)).unwrap_err();
            assert_code(&refused, Code::Forbidden);
            assert!(refused.message.contains("paused"), "{refused:?}");
            assert!(begin(desk, &run), "what is under way is taken up, and waits");
            let left_out = |run: &Value| run["state"] == "skipped";
            let known = runs(desk, &owner).iter().filter(|run| !left_out(run)).count();
            for _ in 0..3 {
                desk.world.pass(Duration::from_secs(1));
                desk.act(|cx| agents::start_due(cx, 100)).unwrap();
            }
            let now = runs(desk, &owner);
            assert_eq!(now.iter().filter(|run| !left_out(run)).count(), known, "{pause}: no schedule begins anything");
            assert_eq!(now.iter().filter(|run| left_out(run)).count(), 1, "{pause}: that is told once, however long it takes: {now:?}");
            assert!(text(now.iter().find(|run| left_out(run)).unwrap(), "error").contains("is paused"), "{now:?}");
            desk.call(&owner, "desk_resume", resume).unwrap();
            assert_ne!(say(desk, &as_run, "afterwards")["state"], "paused");
            assert_eq!(heard(desk, &code), before + 1, "what was held was not done behind anybody's back");
        }
        desk.call(&owner, "desk_pause", json!({ "agent": "worker" })).unwrap();
        assert!(!begin(desk, &waiting), "what was queued does not begin");
        let ended = runs(desk, &owner).into_iter().find(|one| one["runId"] == waiting.as_str()).unwrap();
        assert_eq!((&ended["state"], &ended["error"]), (&json!("stopped"), &json!("its agent is paused")), "{ended}");
        desk.call(&owner, "desk_resume", json!({ "agent": "worker" })).unwrap();
        desk.world.pass(Duration::from_secs(1));
        desk.act(|cx| agents::start_due(cx, 100)).unwrap();
        assert_eq!(runs(desk, &owner)[0]["state"], "queued", "the schedule goes on");
        assert!(desk.verify().sound);
    }

    fn a_pause_leaves_the_grant_of_a_held_call_unused(desk: &TestDesk) {
        let (owner, code) = people(desk);
        worker(desk, &owner, &[("human-review", json!({}))], json!({}));
        let (_, as_run) = running(desk, &owner);
        let request = text(&say(desk, &as_run, "may I?"), "request_id");
        desk.call(&owner, "desk_request_approve", json!({ "request": request })).unwrap();
        desk.call(&owner, "desk_pause", json!({ "agent": "worker" })).unwrap();
        assert_eq!((&say(desk, &as_run, "may I?")["state"], heard(desk, &code)), (&json!("paused"), 0));
        desk.call(&owner, "desk_resume", json!({ "agent": "worker" })).unwrap();
        say(desk, &as_run, "may I?");
        assert_eq!(heard(desk, &code), 1);
    }

    fn what_a_run_asked_people_for_is_taken_back_when_it_is_stopped(desk: &TestDesk) {
        let (owner, code) = people(desk);
        worker(desk, &owner, &[("human-review", json!({}))], json!({}));
        let state = |request: &str| text(&desk.call(&owner, "desk_request_get", json!({ "request": request })).unwrap(), "state");
        let approve = |request: &str| desk.call(&owner, "desk_request_approve", json!({ "request": request }));
        let (run, as_run) = running(desk, &owner);
        let (other, as_other) = running(desk, &owner);
        let asked = text(&say(desk, &as_run, "may I?"), "request_id");
        let approved = text(&say(desk, &as_run, "and this?"), "request_id");
        approve(&approved).unwrap();
        let held = change(desk, &as_run, "crm", 1);
        assert_eq!(held["state"], "held", "{held}");
        let (held, call) = (text(&held, "request_id"), text(&held, "call_id"));
        let of_other = text(&say(desk, &as_other, "may I, too?"), "request_id");
        desk.call(&owner, "agents_stop_run", json!({ "runId": run })).unwrap();
        assert_eq!([&asked, &approved, &held, &of_other].map(|one| state(one)), ["cancelled", "cancelled", "pending", "pending"], "whose call it is nobody knows");
        assert_code(&approve(&asked).unwrap_err(), Code::Conflict);
        desk.call(&owner, "agents_stop_run", json!({ "runId": other })).unwrap();
        assert_eq!([&held, &of_other].map(|one| state(one)), ["cancelled", "cancelled"]);
        assert_eq!(desk.call(&owner, "gateway_result", json!({ "call_id": call })).unwrap()["state"], "denied");
        // What a run that is done has left is still done once people say yes, unless its agent is stopped.
        let (run, as_run) = running(desk, &owner);
        let (left, begun) = (change(desk, &as_run, "crm", 2), change(desk, &as_run, "crm", 3));
        let (left, begun) = (text(&left, "request_id"), text(&begun, "request_id"));
        let asked = text(&say(desk, &as_run, "one more?"), "request_id");
        desk.act(move |cx| agents::end(cx, &run, RunState::Done, Ok(Value::Null), 3)).unwrap();
        assert_eq!([&asked, &left].map(|one| state(one)), ["cancelled", "pending"]);
        desk.world.pass(Duration::from_secs(1));
        let (next, _) = running(desk, &owner);
        desk.call(&owner, "agents_stop_run", json!({ "runId": next })).unwrap();
        assert_eq!(state(&left), "pending", "another run asked for it");
        approve(&begun).unwrap();
        desk.call(&owner, "agents_stop_agent", json!({ "agentId": "worker" })).unwrap();
        assert_eq!([&left, &begun].map(|one| state(one)), ["cancelled", "cancelled"]);
        assert_eq!(heard(desk, &code), 0);
        assert!(desk.verify().sound);
    }

    fn a_rate_holds_for_messages_pages_and_tools_of_a_run(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let few = json!([{ "name": "few", "condition": "does('send') && counters.calls_hour >= 2", "action": "deny", "message": "two are enough" }]);
        worker(desk, &owner, &[("rate-limiting", json!({ "values": { "calls_per_minute": 2 }, "customRules": few, "force": true }))], json!({}));
        let (_, as_run) = running(desk, &owner);
        for words in ["one", "two"] {
            assert_ne!(say(desk, &as_run, words)["refused_by_policy"], true);
        }
        let third = say(desk, &as_run, "three");
        assert!(third["refused_by_policy"] == true && text(&third, "message").contains("two are enough"), "{third}");
        assert_eq!((heard(desk, &code), counted(desk, &owner, "desk.bridge")), (2, 2));
        let browse = || desk.call(&as_run, "workspace_browse_web", json!({ "url": "https://example.org/" }));
        for _ in 0..2 {
            browse().unwrap();
        }
        let refused = browse().unwrap_err();
        assert_code(&refused, Code::Forbidden);
        assert!(refused.message.contains("2 calls in a minute are enough"), "{refused:?}");
        // What the client of a model asks for before its own tools run.
        let fetch = |call: &str| {
            let input = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/srv/p", "tool_name": "WebFetch", "tool_input": { "url": "https://example.org/" }, "tool_use_id": call });
            desk.call(&as_run, "hook_event", input).unwrap()
        };
        assert_eq!([fetch("a")["decision"].clone(), fetch("b")["decision"].clone()], ["allow", "allow"]);
        let third = fetch("c");
        assert!(third["decision"] == "deny" && text(&third, "reason").contains("2 calls in a minute"), "{third}");
        desk.world.pass(Duration::from_secs(61));
        assert_eq!(fetch("d")["decision"], "allow");
        browse().unwrap();
        assert!(desk.verify().sound);
    }

    fn where_no_rule_looks_at_rates_nothing_is_counted(desk: &TestDesk) {
        let (owner, _) = people(desk);
        worker(desk, &owner, &[("cost-control", json!({}))], json!({}));
        let (_, as_run) = running(desk, &owner);
        say(desk, &as_run, "one");
        desk.call(&as_run, "workspace_browse_web", json!({ "url": "https://example.org/" })).unwrap();
        assert_eq!((counted(desk, &owner, "desk.bridge"), counted(desk, &owner, "web")), (0, 0));
    }

    fn what_calls_of_a_mount_cost_counts_for_rules(desk: &TestDesk) {
        let (owner, _) = people(desk);
        worker(desk, &owner, &[("cost-control", json!({ "values": { "daily_budget": 5, "approve_above": 3 } }))], json!({}));
        let (_, as_run) = running(desk, &owner);
        for number in 0..2 {
            assert_eq!(change(desk, &as_run, "crm", number)["state"], "passed");
        }
        let third = change(desk, &as_run, "crm", 2);
        assert!(third["state"] == "denied" && text(&third, "message").contains("more than the 5 of this day"), "{third}");
        assert_eq!(change(desk, &as_run, "lab", 2)["state"], "passed", "what costs nothing goes on");
        let used = desk.call(&owner, "desk_meter_get", json!({ "agent": "worker" })).unwrap();
        assert_eq!(used["cost_day"], 4.0, "{used}");
    }

    fn where_a_mount_acts_counts_for_rules(desk: &TestDesk) {
        let (owner, _) = people(desk);
        worker(desk, &owner, &[("human-review", json!({}))], json!({}));
        let (_, as_run) = running(desk, &owner);
        assert_eq!(change(desk, &as_run, "lab", 1)["state"], "passed");
        let held = change(desk, &as_run, "crm", 1);
        assert_eq!(held["state"], "held", "{held}");
        let request = desk.call(&owner, "desk_request_get", json!({ "request": text(&held, "request_id") })).unwrap();
        assert!(request.to_string().contains("in_production") && request["act"]["environment"] == "production", "{request}");
    }

    fn the_cost_budget_of_a_program_is_kept_too(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let cli = |client: &str| json!({ "kind": "cli", "client": client, "prompt": "Do it" });
        let runners = [json!({ "kind": "command", "command": ["python3"] }), cli("claude-code"), cli("codex"), cli("gemini")];
        for (number, runner) in runners.into_iter().enumerate() {
            let name = format!("program-{number}");
            let input = json!({ "description": "Does it", "name": name, "runner": runner, "policies": [], "budget": { "cost": 5 } });
            desk.call(&owner, "agents_create_agent", input).unwrap();
            assert_eq!(desk.call(&owner, "agents_deploy_agent", json!({ "agentId": name })).unwrap()["deployed"], true);
            let run = text(&desk.call(&owner, "agents_run_agent", json!({ "agentId": name })).unwrap(), "runId");
            assert!(begin(desk, &run));
            let as_run = Caller::Run(run.clone());
            for number in 0..2 {
                assert_eq!(change(desk, &as_run, "crm", number)["state"], "passed");
            }
            let third = desk.refused(&as_run, "gateway_call", json!({ "mount": "crm", "tool": "change", "arguments": { "number": 2 } }));
            assert!(third.used_up && third.message.contains("budget of 5 for cost"), "{name}: {third:?}");
            assert_eq!(desk.call(&owner, "agents_get_run", json!({ "runId": run })).unwrap()["used"]["cost"], 4.0);
        }
    }

    fn the_cost_budget_of_a_run_of_steps_is_kept(desk: &TestDesk) {
        let (owner, _) = people(desk);
        for wrong in [json!(0), json!(-1), json!(20_000)] {
            let input = json!({ "description": "x", "steps": [{ "id": "a", "do": "log", "with": { "text": "x" } }], "budget": { "cost": wrong } });
            assert_code(&desk.refused(&owner, "agents_create_agent", input), Code::Invalid);
        }
        worker(desk, &owner, &[], json!({ "budget": { "cost": 5 } }));
        let (run, as_run) = running(desk, &owner);
        let used = || desk.call(&owner, "agents_get_run", json!({ "runId": run })).unwrap()["used"]["cost"].clone();
        for number in 0..2 {
            assert_eq!(change(desk, &as_run, "crm", number)["state"], "passed");
        }
        let third = desk.refused(&as_run, "gateway_call", json!({ "mount": "crm", "tool": "change", "arguments": { "number": 2 } }));
        assert!(third.used_up && third.message.contains("budget of 5 for cost") && third.message.contains("4 were spent"), "{third:?}");
        assert_eq!(used(), 4.0);
        let proposal = json!({ "domain": "crm", "action": "a", "target": "b", "proposed_change": { "x": 1 }, "confidence": 0.9, "reasoning": "they asked", "cost": 1.5 });
        assert!(desk.refused(&as_run, "cowork_propose", proposal.clone()).used_up, "a proposal costs what it says");
        assert_eq!(change(desk, &as_run, "lab", 2)["state"], "passed", "what costs nothing goes on");
        let told = run.clone();
        desk.act(move |cx| agents::end(cx, &told, RunState::Failed, Err("over".to_owned()), 3)).unwrap();
        assert_eq!(used(), 4.0, "its end leaves what it cost");
        let (_, next) = running(desk, &owner);
        assert_eq!(change(desk, &next, "crm", 9)["state"], "passed", "each run has a budget of its own");
        // A call that was proposed first costs no less.
        let named = |number: u32| {
            let (arguments, confidence) = (json!({ "number": number }), 0.9);
            let input = json!({ "domain": "gateway.crm", "action": "change", "target": "crm", "proposed_change": arguments, "confidence": confidence, "reasoning": "they asked" });
            let id = text(&desk.call(&next, "cowork_propose", input).unwrap(), "proposal_id");
            desk.call(&owner, "desk_request_approve", json!({ "request": id })).unwrap();
            json!({ "mount": "crm", "tool": "change", "arguments": arguments, "proposal_id": id })
        };
        assert_eq!(desk.call(&next, "gateway_call", named(10)).unwrap()["state"], "passed");
        let over = desk.refused(&next, "gateway_call", named(11));
        assert!(over.used_up && over.message.contains("4 were spent"), "{over:?}");
        let (_, another) = running(desk, &owner);
        desk.call(&another, "cowork_propose", proposal).unwrap();
        assert!(desk.verify().sound);
    }
}
