//! Agents of sentences, policies of sentences, policies that hold for one agent, and tests of agents: on both engines. Where a test is
//! named after a defect, it is one that servers before this had.

use deskmate_core::Code;
use deskmate_core::agents::{self, RunState};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

const SENTENCE: &str = "Create an agent that processes customer feedback from support/feedback.csv daily at 7:30, classifies it and forwards negative cases to a person, \
                        at most 1,000 e-mails per run.";

fn people(desk: &TestDesk) -> (Caller, Caller) {
    let owner = desk.claim();
    (owner.clone(), desk.register(&owner, "code"))
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}

fn names(value: &Value, field: &str) -> Vec<String> {
    value.as_array().unwrap().iter().map(|one| text(one, field)).collect()
}

fn teller(desk: &TestDesk, who: &Caller, more: Value) -> String {
    let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "code", "content": "{{params.words}}" } }]);
    let mut input = json!({ "description": "Say hello to code", "steps": steps, "params": { "words": "hello" }, "policies": [] });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    text(&desk.call(who, "agents_create_agent", input).unwrap(), "agentId")
}

fn attach(desk: &TestDesk, who: &Caller, agent: &str, policy: &str, more: Value) -> Value {
    let mut input = json!({ "agentId": agent, "policyId": policy });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    desk.call(who, "agents_attach_policy", input).unwrap()
}

fn deploy(desk: &TestDesk, owner: &Caller, agent: &str) {
    assert_eq!(desk.call(owner, "agents_deploy_agent", json!({ "agentId": agent })).unwrap()["deployed"], true);
}

/// A run that has begun, as its agent.
fn running(desk: &TestDesk, owner: &Caller, agent: &str) -> (String, Caller) {
    let run = text(&desk.call(owner, "agents_run_agent", json!({ "agentId": agent })).unwrap(), "runId");
    let begun = run.clone();
    assert!(desk.act(move |cx| Ok(agents::begin(cx, &begun)?.is_some())).unwrap());
    (run.clone(), Caller::Run(run))
}

fn say(desk: &TestDesk, run: &Caller, words: &str) -> Value {
    desk.call(run, "bridge_send_message", json!({ "to": "code", "content": words })).unwrap()
}

/// A schedule as it is kept.
fn kept_cron(cron: &str) -> Value {
    agents::schedule::Schedule::read(cron, "UTC").unwrap().cron().into()
}

both! {
    fn one_sentence_is_enough_for_an_agent(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let made = desk.call(&owner, "agents_create_agent", json!({ "description": SENTENCE })).unwrap();
        assert_eq!(made["status"], "draft");
        assert!(text(&made, "name").contains("customer-feedback"), "{made}");
        assert_eq!((&made["schedule"]["cron"], made["schedule"]["nextRuns"].as_array().unwrap().len()), (&json!("30 7 * * *"), 3));
        let does: Vec<String> = names(&made["definition"]["runner"]["steps"], "do");
        assert_eq!(does, ["workspace_read_file", "parse", "first", "classify", "filter", "cowork_handoff"], "{made}");
        assert_eq!(made["definition"]["params"]["path"], "support/feedback.csv");
        assert_eq!(made["definition"]["params"]["most"], 1_000, "at most 1,000 in one run");
        let policies = names(&made["policies"], "id");
        assert!(policies.contains(&"pii-protection".to_owned()) && policies.contains(&"human-review".to_owned()), "{policies:?}");
        assert!(made["policies"].as_array().unwrap().iter().all(|policy| !text(policy, "reason").is_empty()));
        assert!((1..=3).contains(&made["templates"].as_array().unwrap().len()));
        assert_eq!(made["needs"], json!([]), "{made}");
        let message = text(&made, "message");
        assert!(message.contains("pii-protection") && message.contains("Next:"), "{message}");
        assert!(desk.verify().sound);
    }

    fn a_limit_is_kept_by_something_or_it_is_said(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let sketch = |input: Value| desk.call(&owner, "agents_sketch_agent", input).unwrap();
        let said = |sketched: &Value| sketched["notUnderstood"].to_string().contains("is kept by nothing");
        let reading = sketch(json!({ "description": "Read notes/today.csv every day and notify me, at most 20 rows per run" }));
        assert_eq!((&reading["definition"]["params"]["most"], said(&reading)), (&json!(20), false), "{reading}");
        let sending = sketch(json!({ "description": "Read notes/today.csv and notify me of it, at most 3 messages per run" }));
        let does = names(&sending["definition"]["runner"]["steps"], "do");
        let at = |step: &str| does.iter().position(|does| does == step).unwrap_or_else(|| panic!("{does:?}"));
        assert!(at("first") > at("parse") && at("first") + 1 == at("bridge_send_message"), "what goes out is counted last: {does:?}");
        let quick = sketch(json!({ "description": "Read notes/today.csv and notify me, at most 5 minutes per run, at most 7 calls per run" }));
        assert_eq!((&quick["definition"]["budget"]["seconds"], &quick["definition"]["budget"]["calls"], said(&quick)), (&json!(300), &json!(7), false), "{quick}");
        let by_policy = sketch(json!({ "description": "Ask the database about sales every hour, at most 100 queries per hour" }));
        assert!(names(&by_policy["policies"], "id").contains(&"rate-limiting".to_owned()) && !said(&by_policy), "{by_policy}");
        let template = sketch(json!({ "template": "email-assistant", "description": "Sort the mail, at most 40 e-mails per run" }));
        assert_eq!((&template["definition"]["params"]["most"], said(&template)), (&json!(40), false), "{template}");
        for open in [
            json!({ "description": "Read notes/today.csv every day and notify me, at most 300 files a week" }),
            json!({ "description": "Read notes/today.csv and notify me, at most 20 rows per run", "steps": [{ "id": "say", "do": "log", "with": { "text": "x" } }] }),
        ] {
            assert!(said(&sketch(open.clone())), "{open}");
        }
    }

    fn a_sketch_is_what_is_made_and_makes_nothing(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let before = desk.call(&owner, "desk_record_list", json!({ "limit": 1 })).unwrap()["events"][0]["seq"].clone();
        for input in [
            json!({ "description": SENTENCE }),
            json!({ "description": SENTENCE, "name": "reader", "schedule": "@hourly", "timeZone": "Europe/Berlin", "policies": ["cost-control"], "params": { "keep": "urgent" } }),
            json!({ "template": "file-organizer", "params": { "folder": "downloads" } }),
        ] {
            let sketched = desk.call(&owner, "agents_sketch_agent", input).unwrap();
            assert_eq!(desk.call(&owner, "agents_list_agents", json!({})).unwrap()["agents"], json!([]), "a sketch makes nothing");
            assert_eq!(desk.call(&owner, "desk_record_list", json!({ "limit": 1 })).unwrap()["events"][0]["seq"], before, "and tells nothing");
            assert_eq!(sketched["stepWords"].as_array().unwrap().len(), sketched["definition"]["runner"]["steps"].as_array().unwrap().len());
        }
        let sketched = desk.call(&owner, "agents_sketch_agent", json!({ "description": SENTENCE })).unwrap();
        let made = desk.call(&owner, "agents_create_agent", json!({ "description": SENTENCE })).unwrap();
        for field in ["name", "definition", "schedule", "policies", "templates", "needs", "assumed", "notUnderstood", "stepWords"] {
            assert_eq!(sketched[field], made[field], "{field}");
        }
        let again = desk.call(&owner, "agents_sketch_agent", json!({ "description": SENTENCE })).unwrap();
        assert_ne!(again["name"], made["name"], "a name that is taken by now is another one");
        for wrong in [json!({ "description": " " }), json!({ "description": "x", "name": made["name"] }), json!({ "description": "x", "steps": [{ "id": "a", "do": "no_such" }] })] {
            desk.refused(&owner, "agents_sketch_agent", wrong);
        }
        // An agent that sketches is not told where the bounds of the desk's policies are.
        let rules = "policies:\n  - { id: bounds, rules: [{ name: few, when: \"args.amount > 4711\", effect: deny, message: too much }] }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": rules })).unwrap();
        let told = desk.call(&code, "agents_sketch_agent", json!({ "description": "Log a word", "policies": ["bounds"] })).unwrap();
        assert!(!told.to_string().contains("4711") && told.to_string().contains("bounds"), "{told}");
        let shown = desk.call(&owner, "agents_sketch_agent", json!({ "description": "Log a word", "policies": ["bounds"] })).unwrap();
        assert!(shown.to_string().contains("4711"), "{shown}");
    }

    fn the_status_of_an_agent_has_its_last_test_and_its_conflicts(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = teller(desk, &owner, json!({}));
        let status = |more: Value| {
            let mut input = json!({ "agentId": id });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            desk.call(&owner, "agents_get_agent_status", input).unwrap()
        };
        assert_eq!((&status(json!({}))["lastTest"], &status(json!({}))["conflicts"]), (&Value::Null, &Value::Null));
        desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "Say hello" })).unwrap();
        let tested = status(json!({}));
        assert_eq!((&tested["lastTest"]["passed"], &tested["lastTest"]["current"], &tested["lastTest"]["strict"]), (&json!(true), &json!(true), &json!(true)));
        desk.call(&owner, "agents_update_agent", json!({ "agentId": id, "params": { "words": "good day" } })).unwrap();
        assert_eq!(status(json!({}))["lastTest"]["current"], false, "it was of what the agent was before");
        let rules = "policies:\n  - { id: opens, rules: [{ name: passes, match: { domain: [crm.deals] }, effect: allow, message: fine }] }\n  \
                     - { id: closes, rules: [{ name: stays, match: { domain: [crm.deals] }, effect: deny, message: no }] }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": rules })).unwrap();
        attach(desk, &owner, &id, "opens", json!({}));
        assert_eq!(status(json!({ "includeConflicts": true }))["conflicts"], json!([]));
        attach(desk, &owner, &id, "closes", json!({ "force": true }));
        let contradicting = |status: &Value| status["conflicts"].as_array().unwrap().iter().filter(|one| one["kind"] == "contradicting").count();
        let found = status(json!({ "includeConflicts": true }));
        assert_eq!(contradicting(&found), 1, "{found}");
        let made_by_it = desk.register(&owner, "maker");
        let own = teller(desk, &made_by_it, json!({ "name": "own" }));
        attach(desk, &made_by_it, &own, "opens", json!({}));
        attach(desk, &owner, &own, "closes", json!({ "force": true }));
        let seen = desk.call(&made_by_it, "agents_get_agent_status", json!({ "agentId": own, "includeConflicts": true })).unwrap();
        assert_eq!(contradicting(&seen), 1, "{seen}");
        assert!(!seen["conflicts"].to_string().contains("example"), "an agent is shown no act that tells where bounds are: {seen}");
    }

    fn the_status_says_in_words_how_it_stands_and_what_waits(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let agent = teller(desk, &code, json!({ "schedule": "@daily", "policies": ["rate-limiting"] }));
        let asked = text(&desk.call(&code, "agents_deploy_agent", json!({ "agentId": agent })).unwrap(), "requestId");
        let status = desk.call(&owner, "agents_get_agent_status", json!({ "agentId": agent })).unwrap();
        let words = text(&status, "message");
        assert!(words.contains("is draft") && words.contains("every day") && words.contains("rate-limiting") && words.contains("0 runs"), "{words}");
        assert!(!words.contains("Say hello"), "what somebody wrote comes with its origin and not in the words");
        assert_eq!(status["request"], json!(asked));
        let mine = text(&desk.call(&code, "agents_get_agent_status", json!({ "agentId": agent })).unwrap(), "name");
        let held = desk.call(&code, "agents_request_approval", json!({ "agentId": mine, "action": "read_report", "description": "Read it", "approvers": ["Owner"] })).unwrap();
        let status = desk.call(&owner, "agents_get_agent_status", json!({ "agentId": agent })).unwrap();
        let waits = &status["pendingApprovals"][0];
        assert_eq!((&waits["requestId"], &waits["kind"], &waits["risk"]), (&held["approvalId"], &json!("approval"), &json!("low")), "{status}");
        assert!(text(&status, "message").contains("Waits for people: approval"), "{status}");
        desk.call(&owner, "desk_request_approve", json!({ "request": held["approvalId"] })).unwrap();
        assert_eq!(desk.call(&owner, "agents_get_agent_status", json!({ "agentId": agent })).unwrap()["pendingApprovals"], json!([]));
    }

    fn templates_of_policies_have_titles_gaps_and_tags_to_search(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let found = desk.call(&owner, "agents_list_templates", json!({ "type": "policy", "search": "cost" })).unwrap();
        let cost = &found["policies"][0];
        assert_eq!((&cost["id"], found["agents"].as_array().map(Vec::len)), (&json!("cost-control"), Some(0)), "{found}");
        let gaps = names(&cost["parameters"], "name");
        assert!(gaps.contains(&"daily_budget".to_owned()) && !text(cost, "title").is_empty(), "{cost}");
    }

    fn what_is_given_counts_more_than_the_sentence(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let given = json!({ "description": SENTENCE, "name": "reader", "schedule": "@hourly", "timeZone": "Europe/Berlin", "policies": ["cost-control"],
            "approvalRequired": true, "params": { "classes": { "negative": ["mine"] } } });
        let made = desk.call(&owner, "agents_create_agent", given).unwrap();
        assert_eq!((&made["name"], &made["schedule"]["timeZone"], names(&made["policies"], "id")), (&json!("reader"), &json!("Europe/Berlin"), vec!["cost-control".to_owned()]));
        assert_eq!(made["definition"]["approval_required"], true);
        assert_eq!(made["definition"]["params"]["classes"], json!({ "negative": ["mine"] }));
        // A language makes a project in the place of steps.
        let program = desk.call(&owner, "agents_create_agent", json!({ "description": SENTENCE, "language": "go" })).unwrap();
        let runner = &program["definition"]["runner"];
        assert_eq!((&runner["kind"], &runner["language"], &program["needs"]), (&json!("command"), &json!("go"), &json!([])), "{program}");
        let none = desk.call(&owner, "agents_create_agent", json!({ "description": SENTENCE, "schedule": "" })).unwrap();
        assert_eq!(none["schedule"], Value::Null);
        for (wrong, says) in [
            (json!({ "description": SENTENCE, "policies": ["no-such"] }), "pii-protection"),
            (json!({ "description": SENTENCE, "template": "no-such" }), "email-assistant"),
            (json!({ "description": SENTENCE, "language": "cobol" }), "cobol"),
            (json!({ "description": SENTENCE, "schedule": "whenever" }), "schedule"),
        ] {
            let error = format!("{:?}", desk.refused(&owner, "agents_create_agent", wrong));
            assert!(error.contains(says), "{error}");
        }
    }

    fn what_a_model_suggests_is_used_where_it_can_be_and_takes_nothing_away(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let sketch = |more: Value| {
            let mut input = json!({ "description": SENTENCE });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            desk.call(&owner, "agents_sketch_agent", input).unwrap()
        };
        let alone = sketch(json!({}));
        let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "{{params.whom}}", "content": "feedback is there" } }]);
        let answer = json!({ "name": "feedback-herald", "schedule": "0 8 * * mon-fri", "timeZone": "Europe/Berlin", "steps": steps, "policies": ["cost-control"], "approvalRequired": true });
        let fenced = format!("Here it is:\n```json\n{answer}\n```");
        let with = sketch(json!({ "suggested": fenced }));
        assert_eq!((&with["name"], &with["schedule"]["cron"], &with["schedule"]["timeZone"]), (&json!("feedback-herald"), &kept_cron("0 8 * * mon-fri"), &json!("Europe/Berlin")), "{with}");
        assert_eq!(names(&with["definition"]["runner"]["steps"], "do"), ["bridge_send_message"]);
        assert_eq!(names(&with["needs"], "param"), ["whom"], "what its steps use and nobody gave is a need");
        assert_eq!(with["definition"]["approval_required"], true);
        let held = names(&with["policies"], "id");
        assert!(names(&alone["policies"], "id").iter().all(|policy| held.contains(policy)) && held.contains(&"cost-control".to_owned()), "{held:?}");
        assert!(with["assumed"].to_string().contains("steps, as a model suggested"), "{with}");
        // What is given counts more.
        let given = sketch(json!({ "suggested": fenced, "name": "mine", "schedule": "@hourly", "params": { "whom": "ada" } }));
        assert_eq!((&given["name"], &given["schedule"]["cron"], &given["needs"]), (&json!("mine"), &kept_cron("@hourly"), &json!([])), "{given}");
        // What cannot be is left out, each by itself, and said.
        let hostile = json!({ "name": "../../x", "schedule": "whenever", "steps": [{ "id": "a", "do": "desk_agent_add" }], "policies": [], "approvalRequired": false,
            "params": { "path": "other.csv" }, "mayStart": true, "budget": { "calls": 100_000 }, "runner": { "kind": "command", "command": ["sh"] } });
        let left = sketch(json!({ "suggested": hostile.to_string() }));
        for field in ["name", "schedule", "policies"] {
            assert_eq!(left[field], alone[field], "{field}");
        }
        assert_eq!(names(&left["definition"]["runner"]["steps"], "do"), names(&alone["definition"]["runner"]["steps"], "do"));
        assert!(left["definition"].get("may_start").is_none() && left["definition"]["budget"] == alone["definition"]["budget"], "{left}");
        let said = left["notUnderstood"].to_string();
        for word in ["suggested name", "suggested schedule", "suggested steps", "mayStart", "runner"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        for useless in ["", "I cannot help with that", "[1, 2]", "{\"name\": "] {
            let same = sketch(json!({ "suggested": useless }));
            assert_eq!(same["definition"], alone["definition"], "{useless}");
            assert!(same["notUnderstood"].to_string().contains("no JSON object"), "{same}");
        }
        desk.refused(&owner, "agents_sketch_agent", json!({ "description": SENTENCE, "suggested": "x".repeat(70_000) }));
        // The record tells what came from a model.
        let made = desk.call(&owner, "agents_create_agent", json!({ "description": SENTENCE, "suggested": fenced })).unwrap();
        assert_eq!(made["definition"], with["definition"]);
        let told = desk.call(&owner, "desk_record_list", json!({ "kind": "agent.made", "limit": 1 })).unwrap();
        let seq = told["events"][0]["seq"].as_u64().unwrap();
        let event = desk.call(&owner, "desk_record_get", json!({ "seq": seq })).unwrap();
        assert!(event.to_string().contains("\"suggested\":[\"name\""), "{event}");
    }

    fn what_the_desk_cannot_do_is_a_need_and_a_draft_with_needs_is_not_deployed(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let made = desk.call(&owner, "agents_create_agent", json!({ "description": "Every morning query the sales database, summarise it and tell the team" })).unwrap();
        let needs = names(&made["needs"], "what").join("\n");
        assert!(needs.contains("asks a database") && needs.contains("summarises") && needs.contains("params.to"), "{needs}");
        let id = text(&made, "agentId");
        let refused = desk.refused(&owner, "agents_deploy_agent", json!({ "agentId": id }));
        assert_code(&refused, Code::Conflict);
        assert!(format!("{refused:?}").contains("database"), "{refused:?}");
        let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "{{params.to}}", "content": "hello" } }]);
        desk.call(&owner, "agents_update_agent", json!({ "agentId": id, "steps": steps })).unwrap();
        assert_code(&desk.refused(&owner, "agents_deploy_agent", json!({ "agentId": id })), Code::Conflict);
        desk.call(&owner, "agents_update_agent", json!({ "agentId": id, "params": { "to": "code" } })).unwrap();
        deploy(desk, &owner, &id);
    }

    fn an_agent_is_made_from_a_template(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let made = desk.call(&owner, "agents_create_agent", json!({ "template": "file-organizer", "params": { "folder": "downloads" } })).unwrap();
        assert_eq!(made["definition"]["template"], "file-organizer");
        assert!(names(&made["policies"], "id").contains(&"data-deletion".to_owned()), "{made}");
        assert!(names(&made["definition"]["runner"]["steps"], "do").contains(&"workspace_organize_plan".to_owned()), "{made}");
        assert_eq!(made["needs"], json!([]), "{made}");
    }

    fn a_description_that_looks_like_values_stays_words(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let made = desk.call(&owner, "agents_create_agent", json!({ "description": "Read {{params.secret}} from notes.txt every day and escalate it to a person {{steps.file.text}}" })).unwrap();
        let steps = made["definition"]["runner"]["steps"].to_string();
        assert!(!steps.contains("{{params.secret}}"), "{steps}");
    }

    fn an_attached_policy_holds_for_what_the_runs_do_and_for_nobody_else(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let (held, free) = (teller(desk, &owner, json!({})), teller(desk, &owner, json!({})));
        let rules = json!([{ "name": "no_secrets_here", "condition": "texts.exists(text, text.contains('falcon'))", "action": "deny", "severity": "critical", "message": "Not about falcon" }]);
        let attached = attach(desk, &owner, &held, "rate-limiting", json!({ "customRules": rules }));
        assert!(text(&attached, "message").contains("rate-limiting"), "{attached}");
        for id in [&held, &free] {
            deploy(desk, &owner, id);
        }
        let ((_, one), (_, other)) = (running(desk, &owner, &held), running(desk, &owner, &free));
        assert!(say(desk, &one, "hello")["message_id"].is_string());
        let refused = say(desk, &one, "about falcon");
        assert!(refused["refused_by_policy"] == true && text(&refused, "message").contains("Not about falcon"), "{refused}");
        assert!(say(desk, &other, "about falcon")["message_id"].is_string(), "nobody else is held");
        let proposal = json!({ "action": "x", "target": "t", "domain": "crm.deals", "reasoning": "y", "confidence": 0.5, "proposed_change": { "a": 1 } });
        let proposed = desk.call(&code, "cowork_propose", proposal).unwrap();
        assert_eq!(proposed["policy_id"], "default", "no mapping came of it that would hold others: {proposed}");
        let got = desk.call(&code, "bridge_read_messages", json!({})).unwrap().to_string();
        assert_eq!(got.matches("about falcon").count(), 1, "{got}");
        assert!(desk.verify().sound);
    }

    fn a_rule_that_asks_for_a_person_makes_the_run_wait_for_one(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let id = teller(desk, &owner, json!({}));
        attach(desk, &owner, &id, "human-review", json!({}));
        deploy(desk, &owner, &id);
        let (_, run) = running(desk, &owner, &id);
        let waits = say(desk, &run, "may I?");
        assert_eq!(waits["state"], "held_for_person", "{waits}");
        assert_eq!(say(desk, &run, "may I?")["request_id"], waits["request_id"], "asking again asks nobody twice");
        assert!(!desk.call(&code, "bridge_read_messages", json!({})).unwrap().to_string().contains("may I?"));
        let request = text(&waits, "request_id");
        desk.call(&owner, "desk_request_approve", json!({ "request": request })).unwrap();
        assert!(say(desk, &run, "may I?")["message_id"].is_string());
        assert_eq!(desk.call(&owner, "desk_request_get", json!({ "request": request })).unwrap()["state"], "done");
        let again = say(desk, &run, "may I?");
        assert!(again["state"] == "held_for_person" && again["request_id"] != waits["request_id"], "an approval works once: {again}");
        let other = text(&say(desk, &run, "and this?"), "request_id");
        desk.call(&owner, "desk_request_reject", json!({ "request": other, "reason": "no" })).unwrap();
        assert_eq!(say(desk, &run, "and this?")["refused_by_policy"], true);
        assert!(desk.verify().sound);
    }

    fn attaching_never_loosens(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let document = "policies:\n  - { id: generous, rules: [{ name: passes, match: { kind: [step] }, effect: allow, waive_trust: true, message: fine }] }\nrules:\n  - { name: nothing, match: { tool: [bridge_send_message] }, effect: deny, message: no messages }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": document })).unwrap();
        let id = teller(desk, &owner, json!({}));
        let error = desk.refused(&owner, "agents_attach_policy", json!({ "agentId": id, "policyId": "generous" }));
        assert_code(&error, Code::Conflict);
        assert_code(&desk.refused(&code, "agents_attach_policy", json!({ "agentId": id, "policyId": "generous", "force": true })), Code::NotFound);
        let own = teller(desk, &code, json!({}));
        assert_code(&desk.refused(&code, "agents_attach_policy", json!({ "agentId": own, "policyId": "generous", "force": true })), Code::Forbidden);
        let forced = attach(desk, &owner, &id, "generous", json!({ "force": true }));
        assert!(forced["conflicts"].to_string().contains("contradicting"), "{forced}");
        deploy(desk, &owner, &id);
        let (_, run) = running(desk, &owner, &id);
        assert_eq!(say(desk, &run, "hello")["refused_by_policy"], true, "what is attached gives nothing");
        for action in ["allow", "redact"] {
            let rules = json!([{ "name": "x", "condition": "true", "action": action }]);
            assert_code(&desk.refused(&owner, "agents_attach_policy", json!({ "agentId": id, "policyId": "cost-control", "customRules": rules })), Code::Invalid);
        }
        assert_code(&desk.refused(&code, "agents_detach_policy", json!({ "agentId": own, "policyId": "generous" })), Code::Forbidden);
        assert_code(&desk.refused(&owner, "agents_detach_policy", json!({ "agentId": id, "policyId": "generous" })), Code::Conflict);
    }

    fn a_policy_that_was_attached_holds_as_it_was_and_as_it_is_tightened(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let with = |words: &str| format!("policies:\n  - {{ id: words, rules: [{{ name: no_word, when: \"texts.exists(text, text.contains('{words}'))\", effect: deny, message: no {words} }}] }}\n");
        desk.call(&owner, "desk_policy_apply", json!({ "document": with("red") })).unwrap();
        let id = teller(desk, &owner, json!({}));
        attach(desk, &owner, &id, "words", json!({}));
        deploy(desk, &owner, &id);
        let (_, run) = running(desk, &owner, &id);
        desk.call(&owner, "desk_policy_apply", json!({ "document": with("blue") })).unwrap();
        assert_eq!(say(desk, &run, "a red one")["refused_by_policy"], true);
        assert_eq!(say(desk, &run, "a blue one")["refused_by_policy"], true);
        desk.call(&owner, "agents_delete_policy", json!({ "policyId": "words" })).unwrap();
        assert_eq!(say(desk, &run, "a red one")["refused_by_policy"], true, "what was attached goes on holding");
        assert!(say(desk, &run, "a green one")["message_id"].is_string());
    }

    fn defect_custom_rules_were_checked_and_thrown_away(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = teller(desk, &owner, json!({}));
        let rules = json!([{ "name": "mine", "condition": "does('message')", "action": "require_approval", "severity": "high", "message": "I look at it" }]);
        attach(desk, &owner, &id, "cost-control", json!({ "customRules": rules }));
        let again = attach(desk, &owner, &id, "cost-control", json!({ "customRules": rules }));
        assert!(text(&again, "message").contains("already"), "{again}");
        deploy(desk, &owner, &id);
        let (_, run) = running(desk, &owner, &id);
        assert_eq!(say(desk, &run, "x")["state"], "held_for_person");
        for condition in ["action.type == 'delete'", "always", "", "does('fly')"] {
            let wrong = json!([{ "name": "x", "condition": condition, "action": "deny" }]);
            assert_code(&desk.refused(&owner, "agents_attach_policy", json!({ "agentId": id, "policyId": "cost-control", "customRules": wrong })), Code::Invalid);
        }
    }

    fn defect_unknown_policy_ids_were_skipped(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = teller(desk, &owner, json!({}));
        let error = desk.refused(&owner, "agents_attach_policy", json!({ "agentId": id, "policyId": "no-such" }));
        assert!(error.code == Code::NotFound && format!("{error:?}").contains("gdpr-compliance"), "{error:?}");
        assert_code(&desk.refused(&owner, "agents_attach_policy", json!({ "agentId": "no-such", "policyId": "gdpr-compliance" })), Code::NotFound);
    }

    fn defect_templates_could_be_attached_and_were_never_asked(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = teller(desk, &owner, json!({ "params": { "words": "card 4111 1111 1111 1111" } }));
        attach(desk, &owner, &id, "pii-protection", json!({}));
        let tested = desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "Tell code the card number" })).unwrap();
        assert!(tested["passed"] == false && tested["violations"].to_string().contains("pii-protection"), "{tested}");
    }

    fn a_policy_of_sentences_is_shown_with_its_words_and_put_in_force_by_an_owner(desk: &TestDesk) {
        let (owner, code) = people(desk);
        desk.call(&code, "cowork_propose", json!({ "action": "delete_contacts", "target": "old ones", "domain": "crm.contacts", "reasoning": "old", "confidence": 0.9, "proposed_change": { "ids": [1, 2, 3] } })).unwrap();
        let made = desk
            .call(&owner, "agents_create_policy", json!({ "description": "Block deleting more than 2 records. Require approval for payments above 500 euros.", "category": "security", "basedOn": "read-only-access", "framework": "SOC2" }))
            .unwrap();
        assert_eq!((&made["state"], &made["version"]), (&json!("in_force"), &json!(1)), "{made}");
        assert_eq!(made["rules"][0]["words"], "Block deleting more than 2 records");
        assert!(made["basedOnRules"].as_u64().unwrap() >= 2);
        assert_eq!((&made["past"]["looked_at"], &made["past"]["caught"]), (&json!(1), &json!(1)), "{made}");
        assert!(text(&made, "message").contains("delete_contacts"), "{made}");
        let id = text(&made, "policyId");
        assert!(names(&desk.call(&code, "agents_list_policies", json!({})).unwrap()["policies"], "policy").contains(&id));
        assert_eq!(desk.call(&owner, "agents_get_policy", json!({ "policy": id })).unwrap()["body"]["framework"], "SOC2");
        assert_eq!(desk.call(&owner, "agents_policy_versions", json!({ "policyId": id })).unwrap()["versions"][0]["version"], 1);
        assert_code(&desk.refused(&code, "agents_get_policy", json!({ "policy": id })), Code::Forbidden);
        let gone = desk.call(&owner, "agents_delete_policy", json!({ "policyId": id })).unwrap();
        assert_eq!(gone["deleted"], true);
        assert_code(&desk.refused(&owner, "agents_delete_policy", json!({ "policyId": id })), Code::NotFound);
        assert!(desk.verify().sound);
    }

    fn a_policy_that_an_agent_wishes_waits_for_an_owner(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let asked = desk.call(&code, "agents_create_policy", json!({ "description": "Never delete files", "category": "custom", "name": "keep-files" })).unwrap();
        assert_eq!(asked["state"], "waits", "{asked}");
        assert_code(&desk.refused(&code, "agents_attach_policy", json!({ "agentId": teller(desk, &code, json!({})), "policyId": "keep-files" })), Code::NotFound);
        desk.call(&owner, "desk_request_approve", json!({ "request": asked["requestId"] })).unwrap();
        attach(desk, &code, &teller(desk, &code, json!({})), "keep-files", json!({}));
        let gone = desk.call(&code, "agents_delete_policy", json!({ "policyId": "keep-files" })).unwrap();
        assert_eq!(gone["deleted"], false);
        desk.call(&owner, "desk_request_approve", json!({ "request": gone["requestId"] })).unwrap();
        assert_code(&desk.refused(&owner, "agents_delete_policy", json!({ "policyId": "keep-files" })), Code::NotFound);
        assert!(desk.verify().sound);
    }

    fn defect_a_sentence_that_could_not_be_expressed_became_a_rule_that_never_fired(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let error = desk.refused(&owner, "agents_create_policy", json!({ "description": "Block anything suspicious", "category": "security" }));
        assert!(error.code == Code::Invalid && format!("{error:?}").contains("suspicious"), "{error:?}");
        let partly = json!({ "description": "Block deleting files. Block anything suspicious.", "category": "security" });
        let said = desk.call(&owner, "agents_create_policy", partly.clone()).unwrap();
        assert!(said["state"] == "not_made" && said["refused"][0]["words"] == "Block anything suspicious", "{said}");
        assert_eq!(desk.call(&owner, "agents_list_policies", json!({})).unwrap()["policies"], json!([]));
        let mut rest = partly;
        rest["leaveOut"] = json!(true);
        assert_eq!(desk.call(&owner, "agents_create_policy", rest).unwrap()["state"], "in_force");
    }

    fn a_test_runs_the_real_steps_and_does_nothing(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let made = desk.call(&owner, "agents_create_agent", json!({ "description": SENTENCE, "policies": [] })).unwrap();
        let id = text(&made, "agentId");
        desk.call(&owner, "desk_policy_apply", json!({ "document": "workspace: { roots: [{ name: support, path: /srv/support }] }" })).unwrap();
        let csv = "id,text\n1,The service was terrible\n2,All good\n";
        let tested = desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "One customer is angry", "mockData": { "file": { "text": csv } } })).unwrap();
        let states: Vec<(String, String)> = tested["steps"].as_array().unwrap().iter().map(|step| (text(step, "step"), text(step, "state"))).collect();
        assert_eq!(states.last().map(|(step, state)| (step.as_str(), state.as_str())), Some(("hand_over", "done")), "{tested}");
        assert_eq!(tested["passed"], true, "{tested}");
        assert_eq!(tested["estimate"]["pastRuns"], 0);
        assert!(text(&tested["estimate"], "from").contains("not run yet"));
        assert_eq!(desk.call(&owner, "desk_request_list", json!({})).unwrap()["requests"], json!([]), "nothing was handed over");
        let without = desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "One customer is angry" })).unwrap();
        assert!(without["passed"] == false && without.to_string().contains("mockData for file"), "{without}");
        assert_code(&desk.refused(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "x", "mockData": { "nothing": 1 } })), Code::Invalid);
        assert_code(&desk.refused(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": " " })), Code::Invalid);
        assert_code(&desk.refused(&code, "agents_test_agent", json!({ "agentId": id, "scenario": "x" })), Code::NotFound);
        assert!(desk.verify().sound);
    }

    fn defect_a_test_passed_in_strict_mode_though_a_rule_forbade_it(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = teller(desk, &owner, json!({}));
        let rules = json!([{ "name": "quiet", "condition": "does('message')", "action": "deny", "severity": "high", "message": "no messages" }]);
        attach(desk, &owner, &id, "cost-control", json!({ "customRules": rules }));
        let strict = desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "Say hello" })).unwrap();
        assert!(strict["passed"] == false && strict["acts"][0]["answer"] == "deny", "{strict}");
        let loose = desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "Say hello", "strict": false })).unwrap();
        assert_eq!(loose["passed"], true, "only what is critical fails it then");
    }

    fn defect_recall_a_therapist_was_an_api_call(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = teller(desk, &owner, json!({}));
        let tested = desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "recall a therapist" })).unwrap();
        assert!(!tested["not_done"].to_string().contains("api") && tested["acts"].as_array().unwrap().len() == 1, "{tested}");
    }

    fn defect_deploying_needed_no_passed_test(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let rule = "rules:\n  - { name: tested_first, match: { kind: [agent.deploy] }, when: '!args.tested', effect: deny, message: test it first, alternative: agents_test_agent }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": rule })).unwrap();
        let id = teller(desk, &owner, json!({}));
        let refused = desk.call(&owner, "agents_deploy_agent", json!({ "agentId": id })).unwrap();
        assert!(refused["deployed"] == false && text(&refused, "message").contains("test it first"), "{refused}");
        assert_eq!(desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "Say hello" })).unwrap()["passed"], true);
        desk.call(&owner, "agents_update_agent", json!({ "agentId": id, "params": { "words": "other" } })).unwrap();
        assert_eq!(desk.call(&owner, "agents_deploy_agent", json!({ "agentId": id })).unwrap()["deployed"], false, "it is another agent now");
        desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "Say hello" })).unwrap();
        deploy(desk, &owner, &id);
    }

    fn a_test_for_real_is_a_run_that_says_so(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = teller(desk, &owner, json!({}));
        assert_code(&desk.refused(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "x", "dryRun": false })), Code::Conflict);
        deploy(desk, &owner, &id);
        let (first, _) = running(desk, &owner, &id);
        desk.act(move |cx| agents::end(cx, &first, RunState::Done, Ok(json!({})), 3)).unwrap();
        let real = desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "x", "dryRun": false })).unwrap();
        let runs = desk.call(&owner, "agents_list_runs", json!({ "agentId": id })).unwrap();
        assert_eq!((&runs["runs"][0]["cause"], &runs["runs"][0]["runId"]), (&json!("trial"), &real["runId"]));
        assert_code(&desk.refused(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "x", "dryRun": false, "mockData": { "tell": {} } })), Code::Invalid);
        let estimated = desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "x" })).unwrap();
        assert_eq!((&estimated["estimate"]["pastRuns"], &estimated["estimate"]["calls"]), (&json!(1), &json!(3)));
    }

    fn an_agent_is_not_told_where_the_bounds_are(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let document = "policies:\n  - { id: quiet, rules: [{ name: no_word, when: \"texts.exists(text, text.contains('falcon'))\", effect: deny, message: not this }, { field: amount, constraint: value_range, max: 4711 }] }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": document })).unwrap();
        let id = teller(desk, &code, json!({ "params": { "words": "falcon" } }));
        let attached = attach(desk, &code, &id, "quiet", json!({})).to_string();
        let status = desk.call(&code, "agents_get_agent_status", json!({ "agentId": id })).unwrap().to_string();
        let listed = desk.call(&code, "agents_list_agents", json!({})).unwrap().to_string();
        for said in [attached, status, listed] {
            assert!(!said.contains("text.contains") && !said.contains("4711"), "{said}");
        }
        assert!(desk.call(&owner, "agents_get_agent_status", json!({ "agentId": id })).unwrap().to_string().contains("4711"));
        let mut held = false;
        for _ in 0..40 {
            let tried = desk.call(&code, "agents_test_agent", json!({ "agentId": id, "scenario": "probing" }));
            held = held || tried.is_err_and(|error| error.code == Code::Limited);
        }
        assert!(held, "who probes is slowed down");
    }

    fn runs_attach_test_and_make_nothing(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = teller(desk, &owner, json!({}));
        deploy(desk, &owner, &id);
        let (_, run) = running(desk, &owner, &id);
        for (operation, input) in [
            ("agents_attach_policy", json!({ "agentId": id, "policyId": "cost-control" })),
            ("agents_test_agent", json!({ "agentId": id, "scenario": "x" })),
            ("agents_create_policy", json!({ "description": "Never delete files", "category": "custom" })),
            ("agents_delete_policy", json!({ "policyId": "x" })),
        ] {
            let said = desk.call(&run, operation, input);
            assert!(said.as_ref().is_err_and(|error| error.code == Code::Forbidden), "{operation}: {said:?}");
        }
    }
}

#[test]
fn defect_custom_policies_were_lost_at_restart() {
    let mut desk = TestDesk::new(testkit::Backend::Sqlite);
    let (owner, _) = people(&desk);
    desk.call(&owner, "agents_create_policy", json!({ "description": "Rate limit queries to 100 per minute", "category": "operational", "name": "slow" }))
        .unwrap();
    let id = teller(&desk, &owner, json!({}));
    attach(&desk, &owner, &id, "slow", json!({}));
    desk.restart();
    assert_eq!(desk.call(&owner, "agents_get_policy", json!({ "policy": "slow" })).unwrap()["state"], "in_force");
    let status = desk.call(&owner, "agents_get_agent_status", json!({ "agentId": id })).unwrap();
    assert_eq!(status["definition"]["policies"][0]["policy"]["id"], "slow");
}
