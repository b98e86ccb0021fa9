//! Agents that are programs, on both engines: what is refused of them, who lets them run, and what the token of a run is good for. No
//! program is started here.

use deskmate_core::Code;
use deskmate_core::agents::{self, RunState};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

fn people(desk: &TestDesk) -> (Caller, Caller) {
    let owner = desk.claim();
    (owner.clone(), desk.register(&owner, "code"))
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}

fn command() -> Value {
    json!({ "kind": "command", "command": ["python3", "main.py"], "test": ["python3", "-m", "unittest"], "files": { "main.py": "print(1)" } })
}

fn deployed(desk: &TestDesk, owner: &Caller, name: &str, more: Value) -> String {
    let mut input = json!({ "description": "Print something", "name": name, "runner": command() });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    desk.call(owner, "agents_create_agent", input).unwrap();
    assert_eq!(desk.call(owner, "agents_deploy_agent", json!({ "agentId": name })).unwrap()["deployed"], true);
    name.to_owned()
}

/// A run that is under way, and its token.
fn under_way(desk: &TestDesk, owner: &Caller, name: &str) -> (String, String) {
    let run = text(&desk.call(owner, "agents_run_agent", json!({ "agentId": name })).unwrap(), "runId");
    let begun = run.clone();
    let token = desk.act(move |cx| {
        agents::begin(cx, &begun)?;
        agents::credential(cx, &begun, 60)
    });
    (run, token.unwrap())
}

both! {
    fn a_program_that_was_interrupted_is_told_so_also_while_its_agent_is_paused(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let again = |run: &str| {
            let run = run.to_owned();
            desk.act(move |cx| Ok(agents::begin(cx, &run)?.is_some())).unwrap()
        };
        for (name, more) in [("once", json!({})), ("repeated", json!({ "ifInterrupted": "again" }))] {
            deployed(desk, &owner, name, more);
            let (run, _) = under_way(desk, &owner, name);
            let waiting = text(&desk.call(&owner, "agents_run_agent", json!({ "agentId": name })).unwrap(), "runId");
            desk.call(&owner, "desk_pause", json!({ "agent": name })).unwrap();
            assert!(!again(&run) && !again(&waiting), "neither begins");
            let how = |run: &str| desk.call(&owner, "agents_get_run", json!({ "runId": run })).unwrap();
            let (left, never) = (how(&run), how(&waiting));
            assert!(left["state"] == "ambiguous" && text(&left, "error").contains("interrupted"), "nobody knows how far it came: {left}");
            assert_eq!((&never["state"], &never["error"]), (&json!("stopped"), &json!("its agent is paused")), "{never}");
        }
    }

    fn what_a_program_cannot_be_is_refused_with_its_reason(desk: &TestDesk) {
        let (_, code) = people(desk);
        let cli = |more: Value| {
            let mut runner = json!({ "kind": "cli", "client": "claude-code", "prompt": "go" });
            runner.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            runner
        };
        for (runner, budget, why) in [
            (json!({ "kind": "command", "command": [] }), json!({}), "must name a program"),
            (json!({ "kind": "command", "command": ["x"], "shell": true }), json!({}), "shell"),
            (json!({ "kind": "command", "command": ["x"], "files": { "../x": "" } }), json!({}), "working folder"),
            (json!({ "kind": "command", "command": ["x"], "files": { "/x": "" } }), json!({}), "working folder"),
            (json!({ "kind": "command", "command": ["x"], "files": { "a": "", "a/b": "" } }), json!({}), "a file and a folder"),
            (json!({ "kind": "command", "command": ["x"], "files": { "input.json": "" } }), json!({}), "working folder"),
            (json!({ "kind": "command", "command": ["x"], "given": { "environment": { "PATH": "/tmp" } } }), json!({}), "set by the desk"),
            (json!({ "kind": "command", "command": ["x"], "given": { "environment": { "LD_PRELOAD": "x" } } }), json!({}), "set by the desk"),
            (json!({ "kind": "command", "command": ["x"], "given": { "environment": { "DESKMATE_TOKEN": "x" } } }), json!({}), "set by the desk"),
            (json!({ "kind": "command", "command": ["x"], "given": { "environment": { "A B": "x" } } }), json!({}), "name of a variable"),
            (json!({ "kind": "command", "command": ["x"], "given": { "environment": { "A": "secret:No Name" } } }), json!({}), "secret"),
            (json!({ "kind": "command", "command": ["x"], "given": { "read": ["data"] } }), json!({}), "absolute path"),
            (json!({ "kind": "command", "command": ["x"], "given": { "read": ["/srv/../etc"] } }), json!({}), "absolute path"),
            (json!({ "kind": "command", "command": ["x"] }), json!({ "cost": -1 }), "cost"),
            (json!({ "kind": "command", "command": ["x"] }), json!({ "disk_bytes": 0 }), "disk_bytes"),
            (json!({ "kind": "command", "command": ["x"] }), json!({ "processes": 100_000 }), "processes"),
            (json!({ "kind": "steps", "steps": [] }), json!({ "memory_bytes": 1_000 }), "programs"),
            (cli(json!({ "prompt": " " })), json!({}), "prompt"),
            (cli(json!({ "client": "other" })), json!({}), "other"),
            (cli(json!({ "program": "claude" })), json!({}), "absolute path"),
            (cli(json!({ "model": "--dangerously-skip-permissions" })), json!({}), "model"),
            (cli(json!({ "files": { "sub/.Gemini/settings.json": "{}" } })), json!({}), "keep settings"),
            (cli(json!({ "files": { ".mcp.json": "{}" } })), json!({}), "keep settings"),
            (cli(json!({ "given": { "network": "none" } })), json!({}), "needs the desk"),
            (cli(json!({})), json!({ "cost": 0 }), "cost"),
        ] {
            let error = desk.refused(&code, "agents_create_agent", json!({ "description": "x", "runner": runner, "budget": budget }));
            assert!(error.code == Code::Invalid && format!("{error:?}").contains(why), "{runner} {budget}: {error:?}");
        }
        let both = json!({ "description": "x", "runner": command(), "steps": [{ "id": "a", "do": "log", "with": { "text": "x" } }] });
        assert_code(&desk.refused(&code, "agents_create_agent", both), Code::Invalid);
        assert_eq!(desk.call(&code, "agents_list_agents", json!({})).unwrap()["agents"], json!([]), "nothing of it was kept");
    }

    fn deploying_a_program_is_of_high_risk_and_bound_to_its_files(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let made = desk.call(&code, "agents_create_agent", json!({ "description": "Print something", "name": "printer", "runner": command() })).unwrap();
        let digest = |desk: &TestDesk| desk.call(&code, "agents_deploy_agent", json!({ "agentId": made["agentId"] })).unwrap();
        let asked = digest(desk);
        let request = text(&asked, "requestId");
        let shown = desk.call(&owner, "desk_request_get", json!({ "request": request })).unwrap();
        assert_eq!(shown["risk"], "high", "{shown}");
        let mut other = command();
        other["files"]["main.py"] = json!("print(2)");
        desk.call(&code, "agents_update_agent", json!({ "agentId": "printer", "runner": other })).unwrap();
        assert_code(&desk.refused(&owner, "desk_request_approve", json!({ "request": request })), Code::Conflict);
        assert_eq!(desk.call(&owner, "agents_get_agent_status", json!({ "agentId": "printer" })).unwrap()["status"], "draft");
    }

    fn a_program_is_deployed_by_as_many_people_as_its_risk_wants_or_as_there_are(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let join = |name: &str, role: &str, domains: Value| {
            let invited = desk.call(&owner, "desk_person_invite", json!({ "name": name, "role": role, "domains": domains })).unwrap();
            let joined = desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": invited["code"], "passphrase": "a passphrase of mine" })).unwrap();
            Caller::Secret(text(&joined, "session"))
        };
        let asked = |name: &str, more: Value| {
            let mut input = json!({ "description": "Print something", "name": name });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            desk.call(&code, "agents_create_agent", input).unwrap();
            let asked = desk.call(&code, "agents_deploy_agent", json!({ "agentId": name })).unwrap();
            let shown = desk.call(&owner, "desk_request_get", json!({ "request": asked["requestId"] })).unwrap();
            (asked, shown)
        };
        // Whoever decides elsewhere, or nowhere, is not counted.
        join("Elsewhere", "approver", json!(["crm.*"]));
        join("Viewer", "viewer", json!([]));
        let (alone, shown) = asked("alone", json!({ "runner": command() }));
        assert_eq!((&shown["quorum"], alone["warning"].as_str().map(|warning| warning.contains("FEWER PEOPLE"))), (&json!(1), Some(true)), "{alone}");
        assert!(shown.to_string().contains("only 1 may decide it"), "who decides is told, too: {shown}");
        desk.call(&owner, "desk_request_approve", json!({ "request": alone["requestId"] })).unwrap();
        assert_eq!(desk.call(&owner, "agents_get_agent_status", json!({ "agentId": "alone" })).unwrap()["status"], "deployed");
        let grace = join("Grace", "approver", json!(["desk.agents"]));
        let (both, shown) = asked("both", json!({ "runner": command() }));
        assert!(shown["quorum"] == 2 && both.get("warning").is_none() && both["message"].as_str().unwrap().contains("2 people approve"), "{both}");
        for (who, status) in [(&owner, "draft"), (&grace, "deployed")] {
            desk.call(who, "desk_request_approve", json!({ "request": both["requestId"] })).unwrap();
            assert_eq!(desk.call(&owner, "agents_get_agent_status", json!({ "agentId": "both" })).unwrap()["status"], status);
        }
        let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "code", "content": "hello" } }]);
        let (plain, shown) = asked("plain", json!({ "steps": steps, "policies": [] }));
        assert!(shown["quorum"] == 1 && plain.get("warning").is_none(), "what is of no high risk wants one: {plain} {shown}");
        // Where a rule names who decides, only they are there; and what it asks for is not lowered.
        let rules = "rules:\n  - { name: by_ann, match: { kind: [agent.deploy] }, effect: require_approval, approvers: [Owner], message: the owner looks }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": rules })).unwrap();
        let (named, shown) = asked("named", json!({ "runner": command() }));
        assert!(shown["quorum"] == 1 && named["warning"].is_string(), "{named} {shown}");
        let rules = "rules:\n  - { name: three, match: { kind: [agent.deploy] }, effect: require_approval, quorum: 3, message: three look }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": rules })).unwrap();
        assert_eq!(asked("strict", json!({ "runner": command() })).1["quorum"], 3);
        assert!(desk.verify().sound);
    }

    fn a_personal_token_alone_deploys_no_program(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let made = desk.call(&owner, "desk_token_create", json!({ "note": "scripts", "scopes": ["agents"] })).unwrap();
        let script = Caller::Secret(text(&made, "token"));
        desk.call(&script, "agents_create_agent", json!({ "description": "Print something", "name": "printer", "runner": command() })).unwrap();
        for (operation, input) in [("agents_deploy_agent", json!({ "agentId": "printer" })), ("agents_run_agent", json!({ "agentId": "printer", "test": true }))] {
            assert_code(&desk.refused(&script, operation, input), Code::Forbidden);
        }
    }

    fn a_run_s_token_is_its_agent_s_until_the_run_ends(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let name = deployed(desk, &owner, "printer", json!({}));
        let (run, token) = under_way(desk, &owner, &name);
        assert!(token.starts_with("dmr_"), "{token}");
        let holder = Caller::Secret(token.clone());
        let who = desk.call(&holder, "desk_whoami", json!({})).unwrap();
        assert_eq!((&who["id"], &who["verified"]), (&json!("printer"), &json!(true)), "{who}");
        assert_code(&desk.refused(&holder, "desk_whoami", json!({ "agent_id": "code" })), Code::Forbidden);
        for (operation, input) in [
            ("agents_create_agent", json!({ "description": "another" })),
            ("agents_deploy_agent", json!({ "agentId": name })),
            ("agents_run_agent", json!({ "agentId": name })),
            ("agents_run_agent", json!({ "agentId": name, "test": true })),
            ("agents_stop_agent", json!({ "agentId": name })),
            ("desk_policy_apply", json!({ "document": "rules: []" })),
        ] {
            assert_code(&desk.refused(&holder, operation, input), Code::Forbidden);
        }
        // Brought as an argument nobody would count it.
        assert_code(&desk.refused(&Caller::Agent("someone"), "desk_whoami", json!({ "agent_token": token })), Code::Unauthenticated);
        // A further attempt has a token of its own.
        let again = run.clone();
        let newer = desk.act(move |cx| agents::credential(cx, &again, 60)).unwrap();
        assert_code(&desk.refused(&holder, "desk_whoami", json!({})), Code::Unauthenticated);
        let holder = Caller::Secret(newer);
        assert!(desk.call(&holder, "desk_whoami", json!({})).is_ok());
        let ended = run.clone();
        desk.act(move |cx| agents::end(cx, &ended, RunState::Done, Ok(json!({})), 1)).unwrap();
        assert_code(&desk.refused(&holder, "desk_whoami", json!({})), Code::Unauthenticated);
        assert!(desk.verify().sound);
    }

    fn a_run_starts_only_so_many_others(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let name = deployed(desk, &owner, "starter", json!({ "mayStart": true }));
        let (_, token) = under_way(desk, &owner, &name);
        let holder = Caller::Secret(token);
        for _ in 0..20 {
            desk.call(&holder, "agents_run_agent", json!({ "agentId": name })).unwrap();
        }
        assert_code(&desk.refused(&holder, "agents_run_agent", json!({ "agentId": name })), Code::Forbidden);
    }

    fn a_person_tests_a_draft_and_only_what_they_looked_at(desk: &TestDesk) {
        let (owner, code) = people(desk);
        desk.call(&code, "agents_create_agent", json!({ "description": "Print something", "name": "printer", "runner": command() })).unwrap();
        let test = json!({ "agentId": "printer", "test": true });
        assert_code(&desk.refused(&code, "agents_run_agent", test.clone()), Code::Forbidden);
        let run = text(&desk.call(&owner, "agents_run_agent", test.clone()).unwrap(), "runId");
        let begun = desk.act(move |cx| agents::begin(cx, &run)).unwrap().unwrap();
        assert!(begun.test && begun.agent == "printer");
        let run = text(&desk.call(&owner, "agents_run_agent", test).unwrap(), "runId");
        desk.call(&code, "agents_update_agent", json!({ "agentId": "printer", "description": "Print something else" })).unwrap();
        let looked = run.clone();
        assert!(desk.act(move |cx| agents::begin(cx, &looked)).unwrap().is_none(), "what was changed meanwhile does not run");
        let seen = desk.call(&owner, "agents_wait_for_run", json!({ "runId": run, "timeoutSeconds": 0 })).unwrap();
        assert_eq!((&seen["state"], &seen["error"]), (&json!("stopped"), &json!("its agent was changed")), "{seen}");
        let without = json!({ "description": "No test", "name": "untested", "runner": { "kind": "command", "command": ["true"] } });
        desk.call(&code, "agents_create_agent", without).unwrap();
        assert_code(&desk.refused(&owner, "agents_run_agent", json!({ "agentId": "untested", "test": true })), Code::Conflict);
    }

    fn a_language_makes_a_project_with_a_test(desk: &TestDesk) {
        let (_, code) = people(desk);
        let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "ada", "content": "hello" } }]);
        for (language, main, program) in [("python", "main.py", "python3"), ("javascript", "main.mjs", "node"), ("typescript", "main.mts", "node"), ("go", "main.go", "go")] {
            let made = desk.call(&code, "agents_create_agent", json!({ "description": "Tell Ada hello", "language": language, "steps": steps })).unwrap();
            let runner = &made["definition"]["runner"];
            assert_eq!((&runner["kind"], &runner["language"], &runner["command"][0]), (&json!("command"), &json!(language), &json!(program)), "{made}");
            assert!(runner["files"][main].is_string() && !runner["test"].as_array().unwrap().is_empty(), "{made}");
            assert!(text(&runner["files"], "calls.json").contains("bridge_send_message"), "{made}");
        }
        for steps in [
            json!([{ "id": "a", "do": "log", "with": { "text": "x" } }]),
            json!([{ "id": "a", "do": "bridge_send_message", "with": { "to": "{{params.x}}", "content": "x" } }]),
        ] {
            assert_code(&desk.refused(&code, "agents_create_agent", json!({ "description": "x", "language": "go", "steps": steps })), Code::Invalid);
        }
        assert_code(&desk.refused(&code, "agents_create_agent", json!({ "description": "x", "language": "cobol" })), Code::Invalid);
    }
}
