//! Agents and policies that are made of sentences, on both engines. Where a test is named after a defect, it is one that servers before
//! this had.

use deskmate_core::{Code, agents};
use serde_json::{Value, json};
use testkit::{assert_code, both};

use crate::agent_policies::{attach, deploy, names, people, teller, text};

pub(crate) const SENTENCE: &str = "Create an agent that processes customer feedback from support/feedback.csv daily at 7:30, classifies it and forwards negative cases to a person, \
                        at most 1,000 e-mails per run.";

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
        assert_eq!(does, ["workspace_read_file", "check", "parse", "first", "classify", "filter", "cowork_handoff"], "{made}");
        assert_eq!(made["definition"]["params"]["path"], "support/feedback.csv");
        assert_eq!(made["definition"]["params"]["most"], 1_000, "at most 1,000 in one run");
        let policies = names(&made["policies"], "id");
        assert!(policies.contains(&"pii-protection".to_owned()) && policies.contains(&"human-review".to_owned()), "{policies:?}");
        assert!(made["policies"].as_array().unwrap().iter().all(|policy| !text(policy, "reason").is_empty()));
        assert!(names(&made["data"], "kind").contains(&"personal".to_owned()) && text(&made, "message").contains("Touches personal data"), "{made}");
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
        assert!(at("first") > at("parse") && at("format") == at("first") + 1, "what goes out is counted last, and that is what is told: {does:?}");
        assert_eq!(does.last().map(String::as_str), Some("bridge_send_message"));
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

    fn what_is_told_is_what_was_kept_and_nothing_is_cut_without_a_word(desk: &TestDesk) {
        let (owner, _) = people(desk);
        desk.call(&owner, "desk_policy_apply", json!({ "document": "workspace: { roots: [{ name: notes, path: /srv/notes }, { name: logs, path: /srv/logs }] }" })).unwrap();
        let tried = |sentence: &str, mocks: Value, params: Value| {
            let made = desk.call(&owner, "agents_create_agent", json!({ "description": sentence, "params": params, "policies": [] })).unwrap();
            assert_eq!(made["needs"], json!([]), "{made}");
            desk.call(&owner, "agents_test_agent", json!({ "agentId": made["agentId"], "scenario": "Try it", "mockData": mocks })).unwrap()
        };
        let sent = |tested: &Value| {
            let acts = tested["acts"].as_array().unwrap();
            acts.iter().find(|act| act["operation"] == "bridge_send_message").map(|act| text(&act["with"], "content")).unwrap_or_else(|| panic!("{tested}"))
        };
        let table = "id,text\n1,The service was terrible\n2,All good\n3,A refund please\n";
        let few = sent(&tried("Read notes/today.csv every day and notify me, at most 2 rows per run", json!({ "file": { "text": table } }), json!({})));
        assert!(few.ends_with("id,text\n1,The service was terrible\n2,All good\n"), "{few}");
        let negative = "Read notes/today.csv every day, classify the feedback, filter the negative cases and notify me";
        let kept = sent(&tried(negative, json!({ "file": { "text": table } }), json!({})));
        assert!(kept.ends_with("id,text\n1,The service was terrible\n3,A refund please\n"), "{kept}");
        let classes = json!({ "classes": { "negative": ["refund"] } });
        let all = sent(&tried("Read logs/app.log every day, classify the feedback and notify me", json!({ "file": { "text": "fine\na refund" } }), classes));
        assert!(all.ends_with("because,class,item\n,other,fine\nrefund,negative,a refund\n"), "what each is goes with it: {all}");
        let log = "ok\nan error of the disk\nfine\nerror again\n";
        let lines = sent(&tried("Read logs/app.log every day, filter the lines and notify me", json!({ "file": { "text": log } }), json!({ "keep": "error" })));
        assert!(lines.ends_with("an error of the disk\nerror again\n") && !lines.contains("fine"), "{lines}");
        let whole = sent(&tried("Read notes/today.csv every day and notify me", json!({ "file": { "text": table } }), json!({})));
        assert_eq!(whole, table, "where nothing is left out it is told as it is");
        let cut = tried("Read notes/today.csv every day and notify me", json!({ "file": { "text": table, "truncated": true } }), json!({}));
        assert!(cut["passed"] == false && cut.to_string().contains("notes/today.csv is longer than 400000 bytes"), "{cut}");
    }

    fn a_plan_that_was_not_carried_out_in_full_is_no_success(desk: &TestDesk) {
        let (owner, _) = people(desk);
        desk.call(&owner, "desk_policy_apply", json!({ "document": "workspace: { roots: [{ name: downloads, path: /srv/downloads }] }" })).unwrap();
        let made = desk
            .call(&owner, "agents_create_agent", json!({ "description": "Tidy my downloads folder every evening", "params": { "folder": "downloads" }, "policies": [] }))
            .unwrap();
        let tried = |state: &str, approved: bool, done: &str| {
            let mocks = json!({ "plan": { "state": state, "plan_id": "p", "request_id": "r", "note": "a disk is full" }, "decided": { "approved": approved },
                "done": { "state": done, "applied": 2, "failed": 1, "skipped": 0 } });
            desk.call(&owner, "agents_test_agent", json!({ "agentId": made["agentId"], "scenario": "Tidy", "mockData": mocks })).unwrap()
        };
        assert_eq!(tried("ready", true, "done")["passed"], true, "{made}");
        for (tested, says) in [
            (tried("failed", true, "done"), "the plan could not be made: a disk is full"),
            (tried("ready", false, "done"), "it was not approved"),
            (tried("ready", true, "partly"), "it is partly: 2 steps were done, 1 failed"),
        ] {
            assert!(tested["passed"] == false && tested.to_string().contains(says), "{says}: {tested}");
        }
        let empty = tried("empty", false, "");
        assert!(empty["passed"] == true && empty["steps"].as_array().unwrap().iter().filter(|step| step["state"] == "left_out").count() == 5, "{empty}");
    }

    fn a_backup_needs_the_connector_for_it_and_only_one_file_is_copied_by_a_plan(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let made = desk.call(&owner, "agents_create_agent", json!({ "description": "Back up my Documents folder every night" })).unwrap();
        let tools: Vec<&str> = made["definition"]["runner"]["steps"].as_array().unwrap().iter().filter_map(|step| step["with"]["tool"].as_str()).collect();
        assert_eq!(tools, ["back_up", "verify_backup", "test_restore"], "a plan copies no folder: {made}");
        assert_eq!(names(&made["needs"], "param"), ["mount"], "{made}");
        assert!(text(&made["needs"][0], "what").contains("mount the connector `storage`") && made["schedule"]["cron"] == "0 2 * * *", "{made}");
        let id = text(&made, "agentId");
        assert_code(&desk.refused(&owner, "agents_deploy_agent", json!({ "agentId": id })), Code::Conflict);
        desk.call(&owner, "agents_update_agent", json!({ "agentId": id, "params": { "mount": "vault" } })).unwrap();
        deploy(desk, &owner, &id);
        let failing = desk.call(&code, "agents_sketch_agent", json!({ "description": "Back up the photos folder every night and tell ada if it fails" })).unwrap();
        let tells = names(&failing["definition"]["runner"]["steps"], "do").iter().filter(|does| *does == "bridge_send_message").count();
        let needs = vec!["mount".to_owned(), "to".to_owned()];
        assert_eq!((tells, names(&failing["needs"], "param")), (2, needs), "who wants to hear of failures hears of those and of what could not be read: {failing}");
        let one = desk.call(&owner, "agents_sketch_agent", json!({ "description": "Back up notes/ledger.csv every night" })).unwrap();
        let does = ["workspace_change_plan", "check", "cowork_wait_for_decision", "check", "workspace_execute_plan", "check"];
        assert_eq!(names(&one["definition"]["runner"]["steps"], "do"), does, "{one}");
        assert_eq!(one["definition"]["params"]["from"], "notes/ledger.csv");
        let two = desk.call(&owner, "agents_sketch_agent", json!({ "description": "Back up notes/ledger.csv and notes/other.csv every night" })).unwrap();
        assert!(!names(&two["definition"]["runner"]["steps"], "do").contains(&"workspace_change_plan".to_owned()), "no half of what was asked for: {two}");
    }

    fn what_must_not_be_done_is_kept_by_a_policy_or_it_is_said(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let said = |input: Value| desk.call(&owner, "agents_sketch_agent", input).unwrap()["notUnderstood"].to_string();
        let open = said(json!({ "description": "Read notes/today.csv every day and notify me, but never delete a row" }));
        assert!(open.contains("never delete a row") && open.contains("is kept by nothing") && open.contains("agents_create_policy"), "{open}");
        let given = json!([{ "id": "say", "do": "log", "with": { "text": "x" } }]);
        let with_steps = said(json!({ "description": "Look at the rows. Never delete a row.", "steps": given }));
        assert!(with_steps.contains("is kept by nothing"), "whoever gives steps reads it, too: {with_steps}");
        let kept = "Query the sales database every morning, never change anything";
        let held = desk.call(&owner, "agents_sketch_agent", json!({ "description": kept })).unwrap();
        assert!(names(&held["policies"], "id").contains(&"read-only-access".to_owned()) && !held["notUnderstood"].to_string().contains("is kept by nothing"), "{held}");
        assert!(said(json!({ "description": kept, "policies": [] })).contains("is kept by nothing"), "without the policy nothing keeps it");
        let plain = said(json!({ "description": "Read notes/today.csv every day and notify me" }));
        assert!(!plain.contains("is kept by nothing") && !plain.contains("starts nothing"), "{plain}");
    }

    fn what_should_start_it_and_is_no_schedule_is_said(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let said = |input: Value| desk.call(&owner, "agents_sketch_agent", input).unwrap()["notUnderstood"].to_string();
        let waits = said(json!({ "description": "Whenever a new invoice arrives, read notes/today.csv and notify me" }));
        assert!(waits.contains("Whenever a new invoice arrives") && waits.contains("starts nothing: give a schedule"), "{waits}");
        let given = said(json!({ "description": "Whenever a new invoice arrives, read notes/today.csv and notify me", "schedule": "*/5 * * * *" }));
        assert!(!given.contains("starts nothing"), "{given}");
        let by_hand = said(json!({ "description": "On demand, read notes/today.csv and notify me" }));
        assert!(!by_hand.contains("starts nothing"), "whoever asks for it starts it: {by_hand}");
    }

    fn a_framework_that_the_sentence_names_is_checked_next(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let next = |description: &str| desk.call(&owner, "agents_create_agent", json!({ "description": description })).unwrap()["nextSteps"].to_string();
        let named = next("Read notes/today.csv every day and notify me. The result must pass a SOC 2 check and respect the GDPR");
        for framework in ["SOC2", "GDPR"] {
            assert!(named.contains(&format!("check it with agents_check_compliance, framework {framework}")), "{named}");
        }
        assert!(!next("Read notes/today.csv every day and notify me").contains("agents_check_compliance"));
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
        for field in ["name", "definition", "schedule", "policies", "data", "templates", "needs", "assumed", "notUnderstood", "stepWords"] {
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
        assert_eq!((&runner["kind"], &runner["language"]), (&json!("command"), &json!("go")), "{program}");
        assert_eq!(names(&program["needs"], "what").len(), 1, "{program}");
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

    fn a_project_of_a_sentence_has_calls_or_needs_to_be_written(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let made = |input: Value| desk.call(&owner, "agents_create_agent", input).unwrap();
        let empty = made(json!({ "description": SENTENCE, "language": "python" }));
        assert!(text(&empty["needs"][0], "what").contains("write main.py") && text(&empty, "message").contains("write main.py"), "{empty}");
        assert_eq!(empty["definition"]["runner"]["files"]["calls.json"], "[]");
        let id = text(&empty, "agentId");
        let refused = desk.refused(&owner, "agents_deploy_agent", json!({ "agentId": id }));
        assert!(refused.code == Code::Conflict && refused.message.contains("write main.py"), "what does nothing is not deployed: {refused}");
        let mut runner = empty["definition"]["runner"].clone();
        runner["files"]["main.py"] = json!("print('done')");
        let written = desk.call(&owner, "agents_update_agent", json!({ "agentId": id, "runner": runner })).unwrap();
        assert!(written["definition"].get("needs").is_none(), "{written}");
        deploy(desk, &owner, &id);
        for (given, file) in [
            (json!({ "template": "file-organizer", "params": { "folder": "downloads" }, "language": "go" }), "main.go"),
            (json!({ "description": "x", "steps": [], "language": "typescript" }), "main.mts"),
        ] {
            assert!(text(&made(given)["needs"][0], "what").contains(file));
        }
        // What is a plain call becomes one, with the values that are known.
        let plain = made(json!({ "description": "Read the file notes/today.md every day", "language": "javascript" }));
        let calls = text(&plain["definition"]["runner"]["files"], "calls.json");
        assert!(plain["needs"] == json!([]) && calls.contains("workspace_read_file") && calls.contains("notes/today.md") && !calls.contains("{{"), "{plain}");
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

    fn defect_recall_a_therapist_was_an_api_call(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = teller(desk, &owner, json!({}));
        let tested = desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "recall a therapist" })).unwrap();
        assert!(!tested["notDone"].to_string().contains("api") && tested["acts"].as_array().unwrap().len() == 1, "{tested}");
    }

    fn a_new_description_alone_is_said_to_change_nothing_else(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = teller(desk, &owner, json!({}));
        let update = |more: Value| {
            let mut input = json!({ "agentId": id });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            desk.call(&owner, "agents_update_agent", input).unwrap()
        };
        assert!(text(&update(json!({ "description": "Delete all old files" })), "warning").contains("does what it did before"));
        assert!(update(json!({ "description": "Delete all old files" })).get("warning").is_none(), "it says so already");
        let steps = json!([{ "id": "say", "do": "log", "with": { "text": "x" } }]);
        assert!(update(json!({ "description": "Log a word", "steps": steps })).get("warning").is_none());
    }
}
