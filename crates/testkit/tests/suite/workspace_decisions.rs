//! What policies, people and their tokens decide about plans, on both engines.

use deskmate_core::Code;
use deskmate_core::agents::template;
use deskmate_core::call::Actor;
use deskmate_core::gateway::taint;
use deskmate_core::workspace::plan::{self, Action, PLAN_JOB, PlanState, Step, StepState};
use serde_json::{Map, Value, json};
use testkit::{Caller, assert_code, both};

use super::workspace::{apply, approve, execute, get, make, people, ready, run, sound, step, take};

both! {
    fn rules_see_what_a_plan_does(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let in_force = |id: &str| {
            let policy = template::policy(id).unwrap().fill(id, &Map::new()).unwrap();
            apply(desk, &owner, &json!({ "policies": [policy], "mappings": [{ "agent": "*", "domain": "*", "policy": id }] }).to_string());
        };
        let planned = |steps: Vec<Step>| {
            let wish = json!({ "root": "notes", "steps": [{ "action": "trash", "from": "a" }] });
            let asked = desk.call(&agent, "workspace_change_plan", wish).unwrap();
            make(desk, &asked, steps);
            get(desk, &agent, &asked)
        };
        let hits = |plan: &Value| desk.call(&owner, "desk_request_get", json!({ "request": plan["request_id"] })).unwrap()["hits"].to_string();
        let changes = |line: &str| Step { action: Action::Replace, diff: Some(format!("--- x\n+++ x\n@@ -1 +1 @@\n{line}\n")), ..step(0) };
        let key = "key = 'ghp_16C7e42F292c6912E7710c838347Ae178B4a'";
        in_force("secrets-protection");
        for (line, state) in [(format!("+{key}"), "failed"), (format!("-{key}"), "ready"), (format!(" {key}"), "ready"), ("+let answer = 42;".to_owned(), "ready")] {
            let plan = planned(vec![step(1), step(2), changes(&line)]);
            assert_eq!(plan["state"], state, "{line}: {plan}");
        }
        in_force("pci-dss-payments");
        assert_eq!(planned(vec![changes("+4111111111111111")])["state"], "failed");
        in_force("data-deletion");
        let trash = |number: usize| Step { action: Action::Trash, to: None, ..step(number) };
        let many = planned((0..101).map(trash).collect());
        assert!(hits(&many).contains("delete_many"), "{}", hits(&many));
        let moved = planned((0..101).map(step).collect());
        assert!(!hits(&moved).contains("delete_many"), "nothing is deleted: {}", hits(&moved));
        in_force("untrusted-input");
        desk.act(|cx| {
            cx.actor = Actor::agent("code", true);
            taint::add(cx, Some("a session"), "web")
        })
        .unwrap();
        let tidy = ready(desk, &agent, 2);
        assert_eq!((&tidy["state"], &tidy["decision"]), (&json!("ready"), &json!("pending")), "no program is run: {tidy}");
        assert!(hits(&tidy).contains("acts_after_strangers"), "{}", hits(&tidy));
    }

    fn a_test_of_an_agent_is_answered_as_its_plan_would_be(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let steps = json!([
            { "id": "tidy", "do": "workspace_change_plan", "with": { "root": "notes", "steps": [{ "action": "trash", "from": "old.txt" }] } },
            { "id": "run", "do": "workspace_execute_python", "with": { "code": "print(1)" } },
        ]);
        let made = desk.call(&owner, "agents_create_agent", json!({ "description": "Tidy up", "steps": steps, "policies": [] })).unwrap();
        apply(desk, &owner, "rules:\n  - { name: frozen, match: { kind: file.change }, when: \"does('file_delete') && args.actions.trash > 0\", effect: deny, message: frozen }\n  - { name: still, match: { kind: code.run, domain: code }, when: \"args.program.code.contains('print')\", effect: deny, message: still }\n");
        let tested = desk.call(&owner, "agents_test_agent", json!({ "agentId": made["agentId"], "scenario": "Tidy up" })).unwrap();
        let said = tested["violations"].to_string();
        assert!(said.contains("frozen") && said.contains("still"), "{tested}");
    }

    fn a_test_of_an_agent_foresees_the_paths_that_its_plan_will_have(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let asks = [
            ("change_plan", json!({ "root": "notes/2026", "steps": [{ "action": "move", "from": "./a.txt", "to": "b/a.txt" }] }), json!(["2026/a.txt", "2026/b/a.txt"])),
            ("organize_plan", json!({ "root": "/srv/notes/2026", "moves": [{ "from": "a.txt", "to": "b/a.txt" }] }), json!(["2026/a.txt", "2026/b/a.txt"])),
            ("soft_delete", json!({ "path": "/srv/notes/2026/a.txt" }), json!(["2026/a.txt"])),
            ("restore", json!({ "root": "notes", "trash_id": "t1", "restore_to": "notes/2026/a.txt" }), json!(["t1", "2026/a.txt"])),
        ];
        for (operation, input, paths) in asks {
            // What the plan is asked for is what its steps are made of.
            let asked = desk.call(&agent, &format!("workspace_{operation}"), input.clone()).unwrap();
            let job = asked["plan_job_id"].as_str().unwrap().to_owned();
            let wanted = desk.act(move |cx| {
                let hold = take(cx, "worker", PLAN_JOB, &job)?;
                Ok(plan::making(cx, &hold)?.unwrap().ask)
            });
            let plan::Ask::Steps { steps: wanted } = wanted.unwrap() else { panic!("no steps") };
            let of: Vec<String> = wanted.into_iter().flat_map(|step| step.from.into_iter().chain(step.to)).collect();
            assert_eq!(json!(of), paths, "{operation}");
            let rule = format!("rules:\n  - {{ name: there, match: {{ kind: file.change }}, when: \"args.paths == {}\", effect: deny, message: there }}\n", paths.to_string().replace('"', "'"));
            apply(desk, &owner, &rule);
            let steps = json!([{ "id": "a", "do": format!("workspace_{operation}"), "with": input }]);
            let made = desk.call(&owner, "agents_create_agent", json!({ "description": "Tidy up", "steps": steps, "policies": [] })).unwrap();
            let tested = desk.call(&owner, "agents_test_agent", json!({ "agentId": made["agentId"], "scenario": "Tidy up" })).unwrap();
            assert!(tested["violations"].to_string().contains("there"), "{operation}: {tested}");
        }
    }

    fn only_a_rule_lets_a_plan_pass_without_a_person(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        apply(desk, &owner, "policies:\n  - id: tidy\n    rules: [{ name: tidy, match: { kind: file.change }, effect: allow, waive_trust: true }]\nmappings:\n  - { agent_id: code, domain: files.notes, policy_id: tidy }\n");
        let plan = ready(desk, &agent, 2);
        assert_eq!((&plan["decision"], &plan["state"]), (&json!("approved"), &json!("ready")), "{plan}");
        assert_eq!(execute(desk, &agent, &plan)["state"], "running");
        run(desk, &plan, |_| StepState::Done);
        apply(desk, &owner, "policies:\n  - id: tidy\n    rules: [{ name: tidy, match: { kind: propose }, effect: allow, waive_trust: true }]\n");
        assert_eq!(ready(desk, &agent, 2)["decision"], "pending");
        apply(desk, &owner, "rules:\n  - { name: frozen, match: { kind: file.change }, effect: deny, message: frozen }\n");
        let plan = ready(desk, &agent, 2);
        assert_eq!(plan["state"], "failed");
        assert!(plan["note"].as_str().unwrap().contains("frozen"), "{plan}");
        sound(desk);
    }

    fn more_paths_than_rules_look_at_wait_for_a_person(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let made = desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": ["workspace"] })).unwrap();
        let token = Caller::Secret(made["token"].as_str().unwrap().to_owned());
        let allow = |when: &str| {
            let rule = format!("{{ name: tidy, match: {{ kind: file.change }}, when: \"{when}\", effect: allow, waive_trust: true }}");
            apply(desk, &owner, &format!("policies:\n  - id: tidy\n    rules: [{rule}]\nmappings:\n  - {{ agent_id: '*', domain: files.notes, policy_id: tidy }}\n"));
        };
        // Fifty moves name a hundred paths; behind them stands what no rule sees.
        let decided = |caller: &Caller, count: usize| {
            let asked = desk.call(caller, "workspace_organize_plan", json!({ "root": "notes" })).unwrap();
            let last = Step { action: Action::Trash, from: Some("payroll".to_owned()), to: None, ..step(count) };
            let steps = (0..count).map(step).chain((count == 50).then_some(last));
            make(desk, &asked, steps.collect());
            let plan = get(desk, caller, &asked);
            let request = desk.call(&owner, "desk_request_get", json!({ "request": plan["request_id"] })).unwrap();
            (plan["decision"].as_str().unwrap().to_owned(), request.to_string())
        };
        for when in ["args.paths.all(p, !p.startsWith('payroll'))", "!args['paths'].exists(p, p == 'payroll')", "!texts.exists(t, t == 'payroll')"] {
            allow(when);
            assert_eq!(decided(&agent, 49).0, "approved", "{when}");
            for caller in [&agent, &token] {
                let (decision, request) = decided(caller, 50);
                assert!(decision == "pending" && request.contains("more of them than rules look at"), "{when}: {request}");
            }
        }
        // A rule that does not ask which they are sees all that it looks at, and one for what is looked at in parts says so itself.
        allow("args.steps < 1000 && args.actions.move > 0");
        assert_eq!(decided(&agent, 50).0, "approved");
        allow("!args.paths_cut");
        assert_eq!((decided(&agent, 49).0.as_str(), decided(&agent, 50).0.as_str()), ("approved", "pending"));
        sound(desk);
    }

    fn a_persons_own_plan_needs_no_other_person(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &owner, 2);
        assert_eq!(plan["decision"], "approved");
        assert_eq!(execute(desk, &owner, &plan)["state"], "running");
        assert_eq!(run(desk, &plan, |_| StepState::Done), PlanState::Done);
        // A person may also begin what an agent planned and a person approved.
        let plan = ready(desk, &agent, 2);
        approve(desk, &owner, &plan);
        assert_eq!(execute(desk, &owner, &plan)["state"], "running");
    }

    fn a_plan_that_a_token_asked_for_waits_for_a_person_who_is_there(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let made = desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": ["workspace", "desk_request_approve"] })).unwrap();
        let token = Caller::Secret(made["token"].as_str().unwrap().to_owned());
        let plan = ready(desk, &token, 2);
        assert_eq!(plan["decision"], "pending", "{plan}");
        assert_eq!(execute(desk, &token, &plan)["begun"], false);
        assert_code(&desk.refused(&token, "desk_request_approve", json!({ "request": plan["request_id"] })), Code::Forbidden);
        let id = desk.call(&owner, "desk_whoami", json!({})).unwrap()["id"].as_str().unwrap().to_owned();
        apply(desk, &owner, &format!("authority: {{ token_deciders: [{id}] }}\n"));
        assert_code(&desk.refused(&token, "desk_request_approve", json!({ "request": plan["request_id"] })), Code::Forbidden);
        // It is their own token, but it was not they who asked: with presence shown they decide it like an agent's.
        approve(desk, &owner, &plan);
        assert_eq!(execute(desk, &token, &plan)["state"], "running");
        assert_eq!(run(desk, &plan, |_| StepState::Done), PlanState::Done);
        sound(desk);
    }

    fn a_second_person_decides_what_a_token_asked_for_where_a_rule_wants_one(desk: &TestDesk) {
        let (owner, _) = people(desk);
        apply(desk, &owner, "rules:\n  - { name: two, match: { kind: file.change }, effect: require_approval, message: two of us }\n");
        let made = desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": ["workspace"] })).unwrap();
        let plan = ready(desk, &Caller::Secret(made["token"].as_str().unwrap().to_owned()), 2);
        assert_eq!(plan["decision"], "pending");
        assert_code(&desk.refused(&owner, "desk_request_approve", json!({ "request": plan["request_id"] })), Code::Forbidden);
    }
}
