//! Agents that the desk runs, on both engines: what one is, who lets it run, when it is due, and what its runs may not do. The
//! worker is played by the tests.

use std::time::Duration;

use deskmate_core::Code;
use deskmate_core::agents::{self, RunState};
use deskmate_db::Param;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

fn people(desk: &TestDesk) -> (Caller, Caller) {
    let owner = desk.claim();
    (owner.clone(), desk.register(&owner, "code"))
}

fn steps() -> Value {
    json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "ada", "content": "hello {{params.who}}" } }])
}

fn made(desk: &TestDesk, who: &Caller, more: Value) -> Value {
    let mut input = json!({ "description": "Tell Ada hello", "steps": steps(), "params": { "who": "you" } });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    desk.call(who, "agents_create_agent", input).unwrap()
}

fn deployed(desk: &TestDesk, owner: &Caller, more: Value) -> String {
    let id = text(&made(desk, owner, more), "agentId");
    assert_eq!(desk.call(owner, "agents_deploy_agent", json!({ "agentId": id })).unwrap()["deployed"], true);
    id
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}

fn runs(desk: &TestDesk, owner: &Caller, id: &str) -> Vec<Value> {
    desk.call(owner, "agents_list_runs", json!({ "agentId": id })).unwrap()["runs"].as_array().unwrap().clone()
}

fn begin(desk: &TestDesk, run: &str) -> bool {
    let run = run.to_owned();
    desk.act(move |cx| Ok(agents::begin(cx, &run)?.is_some())).unwrap()
}

fn end(desk: &TestDesk, run: &str) {
    let run = run.to_owned();
    desk.act(move |cx| agents::end(cx, &run, RunState::Done, Ok(json!({ "x": 1 })), 1)).unwrap();
}

both! {
    fn an_agent_is_made_changed_and_deleted(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let first = made(desk, &code, json!({}));
        assert_eq!((&first["status"], &first["name"]), (&json!("draft"), &json!("tell-ada-hello")));
        assert_eq!(made(desk, &code, json!({}))["name"], "tell-ada-hello-2", "a name is used once");
        let id = text(&first, "agentId");
        let changed = desk.call(&code, "agents_update_agent", json!({ "agentId": id, "schedule": "@daily", "timeZone": "Europe/Berlin", "expectedVersion": 1 })).unwrap();
        assert_eq!((&changed["version"], &changed["definition"]["schedule"]["time_zone"]), (&json!(2), &json!("Europe/Berlin")));
        assert_code(&desk.refused(&code, "agents_update_agent", json!({ "agentId": id, "description": "x", "expectedVersion": 1 })), Code::Conflict);
        let later = desk.call(&code, "agents_update_agent", json!({ "agentId": id, "jitterSeconds": 30, "missed": "catch_up", "overlap": true, "mayStart": true })).unwrap();
        let timing = &later["definition"]["schedule"];
        assert_eq!((&timing["jitter_seconds"], &timing["missed"], &timing["overlap"]), (&json!(30), &json!("catch_up"), &json!(true)), "{later}");
        assert_eq!((&timing["time_zone"], &timing["cron"], &later["definition"]["may_start"]), (&json!("Europe/Berlin"), &changed["definition"]["schedule"]["cron"], &json!(true)));
        let without = desk.call(&code, "agents_update_agent", json!({ "agentId": id, "schedule": "", "mayStart": false })).unwrap();
        assert!(without["definition"].get("schedule").is_none() && without["definition"].get("may_start").is_none(), "{without}");
        assert_code(&desk.refused(&code, "agents_update_agent", json!({ "agentId": id, "overlap": true })), Code::Invalid);
        desk.call(&owner, "agents_delete_agent", json!({ "agentId": id })).unwrap();
        assert_code(&desk.refused(&code, "agents_get_agent_status", json!({ "agentId": id })), Code::NotFound);
        assert_eq!(made(desk, &code, json!({}))["name"], "tell-ada-hello-3", "and not again after it was deleted");
        assert!(desk.verify().sound);
    }

    fn what_cannot_be_is_refused_with_its_reason(desk: &TestDesk) {
        let (_, code) = people(desk);
        for (wrong, field) in [
            (json!({ "description": "  " }), "description"),
            (json!({ "description": "x", "steps": [{ "id": "a", "do": "desk_agent_add" }] }), "steps"),
            (json!({ "description": "x", "steps": [{ "id": "a", "do": "agents_create_agent" }] }), "steps"),
            (json!({ "description": "x", "steps": [{ "id": "a", "do": "set", "with": { "x": "{{steps.b}}" } }] }), "steps"),
            (json!({ "description": "x", "schedule": "never" }), "schedule"),
            (json!({ "description": "x", "schedule": "@daily", "timeZone": "Mars/Base" }), "time_zone"),
            (json!({ "description": "x", "timeZone": "UTC" }), "schedule"),
            (json!({ "description": "x", "budget": { "seconds": 0 } }), "budget"),
            (json!({ "description": "x", "name": "code" }), "code"),
        ] {
            let error = desk.refused(&code, "agents_create_agent", wrong.clone());
            assert!(format!("{error:?}").contains(field), "{wrong}: {error:?}");
        }
        let empty = desk.call(&code, "agents_create_agent", json!({ "description": "x" })).unwrap();
        assert_code(&desk.refused(&code, "agents_deploy_agent", json!({ "agentId": empty["agentId"] })), Code::Conflict);
    }

    fn agents_see_and_change_only_what_they_made(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let other = desk.register(&owner, "other");
        let id = text(&made(desk, &code, json!({})), "agentId");
        for operation in ["agents_get_agent_status", "agents_update_agent", "agents_deploy_agent", "agents_delete_agent", "agents_run_agent", "agents_list_runs"] {
            assert_code(&desk.refused(&other, operation, json!({ "agentId": id })), Code::NotFound);
        }
        assert_eq!(desk.call(&other, "agents_list_agents", json!({})).unwrap()["agents"], json!([]));
        assert_eq!(desk.call(&owner, "agents_list_agents", json!({})).unwrap()["agents"].as_array().unwrap().len(), 1);
    }

    fn what_an_agent_deploys_waits_for_a_person_who_sees_what_it_is(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let id = text(&made(desk, &code, json!({ "schedule": "@hourly" })), "agentId");
        let asked = desk.call(&code, "agents_deploy_agent", json!({ "agentId": id, "autoStart": true })).unwrap();
        assert_eq!(asked["deployed"], false, "{asked}");
        let request = text(&asked, "requestId");
        let shown = desk.call(&owner, "desk_request_get", json!({ "request": request })).unwrap();
        assert!(shown.to_string().contains("bridge_send_message"), "{shown}");
        assert_code(&desk.refused(&code, "agents_deploy_agent", json!({ "agentId": id })), Code::Conflict);
        desk.call(&owner, "desk_request_approve", json!({ "request": request })).unwrap();
        let status = desk.call(&code, "agents_get_agent_status", json!({ "agentId": id })).unwrap();
        assert_eq!((&status["status"], status["runs"].as_array().map(Vec::len)), (&json!("deployed"), Some(1)), "{status}");
        assert_eq!(status["nextRuns"].as_array().map(Vec::len), Some(5));
        assert!(desk.verify().sound);
    }

    fn an_approval_is_for_what_the_agent_was(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let id = text(&made(desk, &code, json!({})), "agentId");
        let request = text(&desk.call(&code, "agents_deploy_agent", json!({ "agentId": id })).unwrap(), "requestId");
        desk.call(&code, "agents_update_agent", json!({ "agentId": id, "params": { "who": "somebody else" } })).unwrap();
        assert_code(&desk.refused(&owner, "desk_request_approve", json!({ "request": request })), Code::Conflict);
        assert_eq!(desk.call(&owner, "agents_get_agent_status", json!({ "agentId": id })).unwrap()["status"], "draft");
    }

    fn policy_can_forbid_and_let_pass_deployments(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let rules = "rules:\n  - { name: passes, match: { kind: agent.deploy }, effect: allow, waive_trust: true, message: fine }\n  - { name: never, match: { kind: agent.deploy }, when: 'args.definition.task.contains(\"danger\")', effect: deny, message: too dangerous }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": rules })).unwrap();
        let fine = text(&made(desk, &code, json!({})), "agentId");
        assert_eq!(desk.call(&code, "agents_deploy_agent", json!({ "agentId": fine })).unwrap()["deployed"], true);
        let bad = text(&made(desk, &code, json!({ "description": "danger" })), "agentId");
        let denied = desk.call(&code, "agents_deploy_agent", json!({ "agentId": bad })).unwrap();
        assert!(denied["deployed"] == false && text(&denied, "message").contains("too dangerous"), "{denied}");
        let asks = text(&made(desk, &code, json!({ "approvalRequired": true })), "agentId");
        assert!(desk.call(&code, "agents_deploy_agent", json!({ "agentId": asks })).unwrap()["requestId"].is_string(), "it asks whatever policy says");
    }

    fn a_moment_has_one_run_and_none_begins_over_another(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = deployed(desk, &owner, json!({ "schedule": "* * * * * *" }));
        desk.world.pass(Duration::from_secs(1));
        for _ in 0..3 {
            desk.act(|cx| agents::start_due(cx, 100)).unwrap();
        }
        let first = runs(desk, &owner, &id);
        assert_eq!((first.len(), &first[0]["cause"], &first[0]["state"]), (1, &json!("schedule"), &json!("queued")));
        desk.world.pass(Duration::from_secs(1));
        desk.act(|cx| agents::start_due(cx, 100)).unwrap();
        let left_out = runs(desk, &owner, &id)[0].clone();
        assert_eq!((&left_out["state"], &left_out["error"]), (&json!("skipped"), &json!("the run before was still under way")), "the first has not ended");
        let run = text(&first[0], "runId");
        assert!(begin(desk, &run));
        end(desk, &run);
        desk.world.pass(Duration::from_secs(1));
        desk.act(|cx| agents::start_due(cx, 100)).unwrap();
        assert_eq!(runs(desk, &owner, &id)[0]["state"], "queued");
    }

    fn moments_that_went_by_are_left_out_or_made_up_for_once(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let skips = deployed(desk, &owner, json!({ "schedule": "0 * * * *" }));
        let makes_up = deployed(desk, &owner, json!({ "schedule": "0 * * * *", "missed": "catch_up" }));
        desk.world.pass(Duration::from_secs(5 * 3_600 + 600));
        desk.act(|cx| agents::start_due(cx, 100)).unwrap();
        desk.act(|cx| agents::start_due(cx, 100)).unwrap();
        let (left_out, made_up) = (runs(desk, &owner, &skips), runs(desk, &owner, &makes_up));
        assert_eq!((left_out.len(), &left_out[0]["state"], made_up.len(), &made_up[0]["state"]), (1, &json!("skipped"), 1, &json!("queued")), "{left_out:?}");
        assert!(text(&left_out[0], "error").contains("away") && text(&left_out[0], "error").contains("5 moments"), "whoever looks finds why: {left_out:?}");
        let status = desk.call(&owner, "agents_get_agent_status", json!({ "agentId": skips })).unwrap();
        assert_eq!(status["metrics"]["skipped"], 1, "{status}");
        let next: Option<i64> = desk.act(|cx| agents::next_due(cx.tx)).unwrap();
        assert!(next.is_some_and(|at| at > desk.desk.world.now()), "the next moment lies ahead");
    }

    fn the_next_runs_that_are_shown_are_when_it_is_due(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let plain = made(desk, &owner, json!({ "schedule": "0 * * * *" }))["schedule"]["nextRuns"].clone();
        let asks = json!({ "schedule": "0 * * * *", "jitterSeconds": 300 });
        let put_off = made(desk, &owner, asks.clone());
        let id = text(&put_off, "agentId");
        desk.call(&owner, "agents_deploy_agent", json!({ "agentId": id })).unwrap();
        let status = desk.call(&owner, "agents_get_agent_status", json!({ "agentId": id })).unwrap();
        let due: Option<i64> = {
            let id = id.clone();
            desk.act(move |cx| Ok(cx.tx.one("select due_at from agent_definition where id = $1", &[Param::Text(&id)])?.get(0)?)).unwrap()
        };
        let due = json!(deskmate_core::format_time(due.unwrap()));
        assert_eq!((&put_off["schedule"]["nextRuns"][0], &status["nextRuns"][0]), (&due, &due));
        assert_ne!(status["nextRuns"][0], plain[0], "it is put off");
        assert_eq!(status["nextRuns"][1], put_off["schedule"]["nextRuns"][1]);
        let mut sketch = asks;
        sketch["description"] = json!("Tell Ada hello");
        let sketched = desk.call(&owner, "agents_sketch_agent", sketch).unwrap();
        assert!(sketched["schedule"]["nextRuns"] == plain && sketched["assumed"].to_string().contains("300 seconds"), "its share is known once it is made: {sketched}");
    }

    fn who_is_paused_stopped_or_deleted_begins_nothing(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = deployed(desk, &owner, json!({ "schedule": "* * * * * *" }));
        let queued = text(&desk.call(&owner, "agents_run_agent", json!({ "agentId": id })).unwrap(), "runId");
        desk.call(&owner, "agents_pause_agent", json!({ "agentId": id })).unwrap();
        desk.world.pass(Duration::from_secs(3));
        desk.act(|cx| agents::start_due(cx, 100)).unwrap();
        assert_eq!(runs(desk, &owner, &id).len(), 1);
        assert!(!begin(desk, &queued), "what was queued before does not begin either");
        assert_code(&desk.refused(&owner, "agents_run_agent", json!({ "agentId": id })), Code::Conflict);
        desk.call(&owner, "agents_resume_agent", json!({ "agentId": id })).unwrap();
        let again = text(&desk.call(&owner, "agents_run_agent", json!({ "agentId": id })).unwrap(), "runId");
        assert!(begin(desk, &again));
        // What is under way goes on, also when its server was lost meanwhile.
        desk.call(&owner, "agents_pause_agent", json!({ "agentId": id })).unwrap();
        desk.call(&Caller::Run(again.clone()), "bridge_read_messages", json!({})).unwrap();
        assert!(begin(desk, &again));
        desk.call(&owner, "agents_stop_agent", json!({ "agentId": id })).unwrap();
        assert_code(&desk.refused(&Caller::Run(again), "bridge_read_messages", json!({})), Code::Unauthenticated);
    }

    fn a_run_acts_as_its_agent_and_makes_none(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = deployed(desk, &owner, json!({ "name": "worker" }));
        let run = text(&desk.call(&owner, "agents_run_agent", json!({ "agentId": id })).unwrap(), "runId");
        let as_run = Caller::Run(run.clone());
        assert_code(&desk.refused(&as_run, "bridge_read_messages", json!({})), Code::Unauthenticated);
        assert!(begin(desk, &run));
        let sent = desk.call(&as_run, "bridge_send_message", json!({ "to": "code", "content": "hello" })).unwrap();
        assert!(sent.to_string().contains("worker") || sent["message_id"].is_string() || sent["id"].is_string(), "{sent}");
        for (operation, input) in [
            ("agents_create_agent", json!({ "description": "another", "steps": steps() })),
            ("agents_update_agent", json!({ "agentId": id, "description": "x" })),
            ("agents_deploy_agent", json!({ "agentId": id })),
            ("agents_run_agent", json!({ "agentId": id })),
            ("agents_resume_agent", json!({ "agentId": id })),
            ("agents_delete_agent", json!({ "agentId": id })),
            ("desk_policy_apply", json!({ "document": "rules: []" })),
        ] {
            assert_code(&desk.refused(&as_run, operation, input), Code::Forbidden);
        }
        end(desk, &run);
        assert_code(&desk.refused(&as_run, "bridge_read_messages", json!({})), Code::Unauthenticated);
    }

    fn runs_that_start_runs_end_at_a_depth(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = deployed(desk, &owner, json!({ "mayStart": true }));
        let mut run = text(&desk.call(&owner, "agents_run_agent", json!({ "agentId": id })).unwrap(), "runId");
        for _ in 0..3 {
            assert!(begin(desk, &run));
            run = text(&desk.call(&Caller::Run(run), "agents_run_agent", json!({ "agentId": id })).unwrap(), "runId");
        }
        assert!(begin(desk, &run));
        assert_code(&desk.refused(&Caller::Run(run), "agents_run_agent", json!({ "agentId": id })), Code::Forbidden);
    }

    fn a_run_says_how_far_it_is_and_what_it_used(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let other = desk.register(&owner, "other");
        let id = deployed(desk, &owner, json!({ "budget": { "seconds": 60, "calls": 7, "log_bytes": 1000 } }));
        let run = text(&desk.call(&owner, "agents_run_agent", json!({ "agentId": id, "input": { "key": "AKIAIOSFODNN7EXAMPLE", "who": "you" } })).unwrap(), "runId");
        let got = || desk.call(&owner, "agents_get_run", json!({ "runId": run })).unwrap();
        assert_eq!((&got()["state"], &got()["ended"], &got()["used"]["seconds"], &got()["lastLine"]), (&json!("queued"), &json!(false), &json!(0.0), &json!(0)));
        assert!(begin(desk, &run));
        desk.world.pass(Duration::from_secs(5));
        let told = run.clone();
        desk.act(move |cx| agents::said(cx, &told, &[("tell".to_owned(), "grüß".to_owned()), ("tell".to_owned(), "gott".to_owned())], 3)).unwrap();
        let seen = got();
        let seconds = |seen: &Value| seen["used"]["seconds"].as_f64().unwrap().round();
        assert_eq!((seconds(&seen), &seen["used"]["calls"], &seen["used"]["log_characters"]), (5.0, &json!(3), &json!(8)), "{seen}");
        assert_eq!((&seen["lastLine"], &seen["stopping"]), (&json!(2), &json!(false)), "{seen}");
        assert_eq!((&seen["budget"]["calls"], &seen["input"]["who"]), (&json!(7), &json!("you")));
        assert!(!seen.to_string().contains("AKIAIOSFODNN7EXAMPLE"), "what it was started with is shown without secrets: {seen}");
        assert_code(&desk.refused(&other, "agents_get_run", json!({ "runId": run })), Code::NotFound);
        assert_code(&desk.refused(&owner, "agents_get_run", json!({ "runId": "no-such" })), Code::NotFound);
        end(desk, &run);
        desk.world.pass(Duration::from_secs(100));
        assert_eq!((&got()["ended"], seconds(&got()), &got()["result"]), (&json!(true), 5.0, &json!({ "x": 1 })), "its seconds end with it");
    }

    fn logs_hold_no_secrets(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = deployed(desk, &owner, json!({}));
        let run = text(&desk.call(&owner, "agents_run_agent", json!({ "agentId": id })).unwrap(), "runId");
        assert!(begin(desk, &run));
        let told = run.clone();
        let line = "the key is AKIAIOSFODNN7EXAMPLE and ada@example.org asked";
        desk.act(move |cx| agents::said(cx, &told, &[("tell".to_owned(), line.to_owned())], 1)).unwrap();
        let log = desk.call(&owner, "agents_run_log", json!({ "runId": run })).unwrap().to_string();
        assert!(!log.contains("AKIAIOSFODNN7EXAMPLE") && !log.contains("ada@example.org") && log.contains("redacted"), "{log}");
    }

    fn a_program_may_end_with_any_characters(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = deployed(desk, &owner, json!({}));
        let run = text(&desk.call(&owner, "agents_run_agent", json!({ "agentId": id })).unwrap(), "runId");
        assert!(begin(desk, &run));
        let told = run.clone();
        desk.act(move |cx| {
            agents::said(cx, &told, &[("stderr".to_owned(), "a\0b".to_owned())], 0)?;
            agents::end(cx, &told, RunState::Failed, Err("a\0b".to_owned()), 0)
        })
        .unwrap();
        let seen = desk.call(&owner, "agents_get_run", json!({ "runId": run })).unwrap();
        assert_eq!((&seen["state"], &seen["error"]), (&json!("failed"), &json!("a\u{fffd}b")), "{seen}");
    }

    fn templates_are_found_by_what_they_are_for(desk: &TestDesk) {
        let (_, code) = people(desk);
        let all = desk.call(&code, "agents_list_templates", json!({})).unwrap();
        assert_eq!((all["agents"].as_array().unwrap().len(), all["policies"].as_array().unwrap().len()), (12, 19));
        let found = desk.call(&code, "agents_list_templates", json!({ "type": "policy", "framework": "soc2" })).unwrap();
        assert_eq!(found["policies"][0]["id"], "soc2-security", "{found}");
        let found = desk.call(&code, "agents_list_templates", json!({ "type": "agent", "search": "backup" })).unwrap();
        assert!(found["agents"].to_string().contains("backup-agent") && found["policies"] == json!([]), "{found}");
        assert_eq!(desk.call(&code, "agents_list_templates", json!({ "category": "moderation" })).unwrap()["agents"].as_array().unwrap().len(), 1);
    }

    fn a_template_says_what_it_needs_and_takes_nothing_else(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let make = |params: Value| desk.call(&owner, "agents_create_agent", json!({ "template": "report-generator", "params": params }));
        let made = make(json!({ "path": "notes/x.csv", "of": "amount" })).unwrap();
        let needs: Vec<&str> = made["needs"].as_array().unwrap().iter().map(|need| need["param"].as_str().unwrap()).collect();
        assert_eq!(needs, ["by", "folder"], "{made}");
        assert_eq!(made["definition"]["params"]["title"], "Report", "what nobody gives has its default");
        let refused = desk.refused(&owner, "agents_deploy_agent", json!({ "agentId": made["agentId"] }));
        assert_code(&refused, Code::Conflict);
        for (params, says) in [(json!({ "pth": "x" }), "pth"), (json!({ "of": 3 }), "must be a text")] {
            let refused = make(params).unwrap_err();
            assert!(refused.code == Code::Invalid && refused.message.contains(says), "{refused:?}");
        }
        let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "code", "content": "hello" } }]);
        let own = desk.call(&owner, "agents_create_agent", json!({ "template": "report-generator", "steps": steps, "params": { "mine": 1 } })).unwrap();
        assert_eq!(own["definition"]["runner"]["steps"].as_array().unwrap().len(), 1, "steps that are given count more");
    }

    fn a_run_remembers_what_came_of_the_one_before(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = deployed(desk, &owner, json!({}));
        let start = || text(&desk.call(&owner, "agents_run_agent", json!({ "agentId": id })).unwrap(), "runId");
        let begun = |run: &str| {
            let run = run.to_owned();
            desk.act(move |cx| agents::begin(cx, &run)).unwrap().unwrap().last
        };
        let end = |run: &str, state: RunState, came: Result<Value, String>| {
            let run = run.to_owned();
            desk.act(move |cx| agents::end(cx, &run, state, came.clone(), 0)).unwrap();
        };
        let first = start();
        assert_eq!(begun(&first), Value::Null);
        end(&first, RunState::Done, Ok(json!({ "seen": 1 })));
        let second = start();
        assert_eq!(begun(&second), json!({ "seen": 1 }));
        end(&second, RunState::Failed, Err("no".to_owned()));
        assert_eq!(begun(&start()), json!({ "seen": 1 }), "what failed left nothing");
    }

    fn statements_of_agents_go_through_their_index(desk: &TestDesk) {
        let (owner, _) = people(desk);
        for _ in 0..8 {
            deployed(desk, &owner, json!({ "schedule": "@daily" }));
        }
        let plans: deskmate_db::Result<Vec<String>> = desk.desk.db.write_blocking(|tx| {
            let (text, number) = (Param::Text("x"), Param::Int(20));
            let params = |sql: &str| match (1..=4).take_while(|at| sql.contains(&format!("${at}"))).count() {
                0 => vec![],
                2 if sql.contains("definition = $1") => vec![text, number],
                2 => vec![number, number],
                3 if sql.contains("from event") => vec![text, number, number],
                3 => vec![number, text, number],
                _ => vec![number, text, number, text],
            };
            agents::INDEXED.iter().map(|(sql, _)| testkit::plan(tx, sql, &params(sql))).collect()
        });
        for ((sql, index), plan) in agents::INDEXED.iter().zip(plans.unwrap()) {
            assert!(plan.contains(index), "{sql}\ndoes not use {index}:\n{plan}");
            // What is only counted is counted without reading the rows; PostgreSQL decides that by what it has swept.
            let counts = sql.starts_with("select count") || *index == "event_by_actor";
            let alone = plan.contains(&format!("COVERING INDEX {index}"));
            assert!(!counts || alone || desk.desk.db.engine() == deskmate_db::Engine::Postgres, "{sql}\nreads rows beside {index}:\n{plan}");
        }
    }
}

#[test]
fn nobody_else_takes_the_name_of_an_agent_that_the_desk_runs() {
    let desk = TestDesk::new(testkit::Backend::Sqlite);
    desk.agent("maker", "agents_create_agent", json!({ "description": "x", "name": "worker", "steps": steps() })).unwrap();
    assert_code(&desk.refused(&Caller::Agent("worker"), "bridge_read_messages", json!({})), Code::Unauthenticated);
}

#[test]
fn long_sentences_take_no_long_time() {
    use deskmate_core::agents::sentence::{DESCRIPTION_BYTES_MAX, Given, sketch};
    for word in ["send ", "post to in on ", "every ", "9 ", "check the api of the ", "at most ", "not ", "a, ", "* ", "the last of "] {
        let text = word.repeat(DESCRIPTION_BYTES_MAX / word.len());
        let begun = std::time::Instant::now();
        sketch(&text, &Given::default(), "UTC").unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5), "{word}: {:?}", begun.elapsed());
    }
}
