//! Bringing in what another cowork server left, on both engines.

use deskmate_core::Code;
use deskmate_core::trust;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::{Caller, TestDesk, assert_code, both};

const TOKEN: &str = "sk-cowork-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c";
const AT: &str = "2025-12-31T10:00:00.000Z";

fn hash(token: &str) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(token.as_bytes()))
}

fn import(desk: &TestDesk, owner: &Caller, input: Value) -> Value {
    desk.call(owner, "desk_import_cowork", input).unwrap()
}

fn outcome(report: &Value, what: &str) -> (String, String) {
    let entries = report["entries"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["what"] == what).unwrap_or_else(|| panic!("{what} is not in {report:#}"));
    (entry["outcome"].as_str().unwrap().to_owned(), entry["why"].as_str().unwrap_or_default().to_owned())
}

fn agents() -> Value {
    json!({ "agents": [{ "agent": "sales-agent", "token_hash": hash(TOKEN) }, { "agent": "support-agent", "token_hash": null }] })
}

fn rows() -> Value {
    json!({ "rows": [
        { "table": "trust_scores", "row": { "agent_id": "sales-agent", "domain": "crm.deals", "score": 0.62, "accuracy": 0.4, "total_actions": 40,
            "approved_actions": 16, "overridden_actions": 2, "consecutive_overrides": 1, "last_updated": "2026-01-01T00:00:00.000Z" } },
        { "table": "trust_scores", "row": { "agent_id": "stranger", "domain": "crm.deals", "score": 0.95, "last_updated": "2026-01-01T00:00:00Z" } },
        { "table": "trust_scores", "row": { "agent_id": "sales-agent", "domain": "crm.leads", "score": 7, "last_updated": AT } },
        { "table": "actions", "row": { "id": "a-1", "agent_id": "sales-agent", "action_type": "propose", "domain": "crm.deals", "description": "update deal 7",
            "confidence": 0.9, "reasoning": "the customer asked", "status": "proposed", "actor": "agent", "created_at": AT } },
        { "table": "proposals", "row": { "id": "p-1", "action_id": "a-1", "agent_id": "sales-agent", "domain": "crm.deals", "description": "update deal 7",
            "reasoning": "the customer asked", "confidence": 0.9, "proposed_change": "{\"field\":\"amount\",\"value\":5}", "trust_at_proposal": 0.3,
            "threshold_required": 0.8, "auto_approved": 0, "created_at": AT } },
        { "table": "proposals", "row": { "id": "p-2", "action_id": "a-1", "agent_id": "sales-agent", "domain": "crm.deals", "proposed_change": "{}",
            "auto_approved": 0, "human_decision": "approved", "decided_at": AT, "created_at": AT } },
        { "table": "proposals", "row": { "id": "p-3", "action_id": "gone", "proposed_change": "{}", "auto_approved": 0, "created_at": AT } },
        { "table": "overrides", "row": { "id": "o-1", "action_id": "a-1", "override_type": "agent_wrong", "description": "no", "trust_impact": -0.08, "created_at": AT } },
        { "table": "handoffs", "row": { "id": "h-1", "agent_id": "sales-agent", "domain": "crm.deals", "reason": "I am stuck", "confidence_at_handoff": 0.2,
            "context_packet": "{\"mode\":\"review\",\"context\":{\"deal\":7}}", "attempted_actions": "[\"called them\"]", "hand_back": 0, "instructions_read": 0, "created_at": AT } },
        { "table": "handoffs", "row": { "id": "h-2", "agent_id": "sales-agent", "domain": "crm.deals", "reason": "done", "context_packet": "{}",
            "attempted_actions": "[]", "resolution": "closed it", "resolved_at": AT, "hand_back": 0, "instructions_read": 0, "created_at": AT } },
        { "table": "handoffs", "row": { "id": "h-3", "agent_id": "sales-agent", "domain": "crm.deals", "reason": "and now?", "context_packet": "{}",
            "attempted_actions": "[]", "resolution": "go on", "resolved_at": AT, "instructions": "call them", "hand_back": 1, "instructions_read": 0, "created_at": AT } },
        { "table": "timeline", "row": { "id": "t-1", "session_id": "session_1", "actor": "agent", "event_type": "proposal", "reference_id": "p-1",
            "summary": "sales-agent proposed", "created_at": AT } },
        { "table": "timeline", "row": { "id": "t-2", "session_id": "session_1", "actor": "agent", "event_type": "proposal", "reference_id": "p-1", "summary": "x", "created_at": "yesterday" } },
    ] })
}

both! {
    fn a_brought_in_token_proves_its_agent_until_it_is_rotated(desk: &TestDesk) {
        let owner = desk.claim();
        let report = import(desk, &owner, agents());
        assert_eq!(outcome(&report, "agent sales-agent").0, "taken");
        assert!(outcome(&report, "token of sales-agent").1.contains("rotate"));
        let sales = Caller::Secret(TOKEN.to_owned());
        let you = desk.call(&sales, "desk_whoami", json!({})).unwrap();
        assert_eq!((you["id"].as_str(), you["verified"].as_bool(), you["mode"].as_str()), (Some("sales-agent"), Some(true), Some("closed")));
        let argument = json!({ "agent_id": "sales-agent", "agent_token": TOKEN });
        assert_eq!(desk.call(&Caller::Nobody, "desk_whoami", argument).unwrap()["verified"], true);
        for wrong in [TOKEN.to_uppercase(), format!("{TOKEN}0"), hash(TOKEN), "sk-cowork-00000000000000000000000000".to_owned(), String::new()] {
            assert_code(&desk.refused(&Caller::Secret(wrong), "desk_whoami", json!({})), Code::Unauthenticated);
        }
        assert_code(&desk.refused(&Caller::Agent("support-agent"), "desk_whoami", json!({})), Code::Unauthenticated);
        desk.call(&owner, "desk_agent_rotate", json!({ "agent": "sales-agent" })).unwrap();
        assert_code(&desk.refused(&sales, "desk_whoami", json!({})), Code::Unauthenticated);
        let again = import(desk, &owner, agents());
        assert_eq!(outcome(&again, "token of sales-agent").0, "refused", "what was ended here stays ended");
        assert_code(&desk.refused(&sales, "desk_whoami", json!({})), Code::Unauthenticated);
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn a_brought_in_token_expires_after_a_year(desk: &TestDesk) {
        let owner = desk.claim();
        import(desk, &owner, agents());
        let sales = Caller::Secret(TOKEN.to_owned());
        desk.world.pass(std::time::Duration::from_hours(364 * 24));
        desk.call(&sales, "desk_whoami", json!({})).unwrap();
        desk.world.pass(std::time::Duration::from_hours(2 * 24));
        assert_code(&desk.refused(&sales, "desk_whoami", json!({})), Code::Unauthenticated);
    }

    fn w7_published_and_guessable_tokens_are_refused_and_the_desk_is_closed(desk: &TestDesk) {
        let owner = desk.claim();
        let published = "d03f462b83c1b6121e9e97662456dc63a57ac1ec676045660591fa1d3e059b11";
        let given = json!({ "agents": [
            { "agent": "one", "token_hash": published },
            { "agent": "two", "token_hash": hash("sk-cowork-two") },
            { "agent": "three", "token_hash": "not a hash" },
            { "agent": "not a name", "token_hash": hash(TOKEN) },
        ] });
        let report = import(desk, &owner, given);
        for agent in ["one", "two", "three"] {
            assert_eq!(outcome(&report, &format!("agent {agent}")).0, "taken");
            assert_eq!(outcome(&report, &format!("token of {agent}")).0, "refused");
        }
        assert_eq!(outcome(&report, "token of not a name").0, "refused");
        for caller in [Caller::Agent("one"), Caller::Agent("anybody"), Caller::Secret("sk-cowork-two".to_owned()), Caller::Secret(TOKEN.to_owned())] {
            assert_code(&desk.refused(&caller, "desk_whoami", json!({})), Code::Unauthenticated);
        }
    }

    fn a_token_that_was_not_brought_in_stays_unknown_however_it_looks(desk: &TestDesk) {
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        let Caller::Secret(own) = &code else { panic!("a token") };
        // The hash of one of our own tokens cannot be brought in as somebody else's.
        let report = import(desk, &owner, json!({ "agents": [{ "agent": "thief", "token_hash": hash(own) }] }));
        assert_eq!(outcome(&report, "token of thief").0, "refused");
        assert_eq!(desk.call(&code, "desk_whoami", json!({})).unwrap()["id"], "code");
        assert_code(&desk.refused(&Caller::Secret(TOKEN.to_owned()), "desk_whoami", json!({})), Code::Unauthenticated);
    }

    fn history_is_marked_and_what_was_open_is_open(desk: &TestDesk) {
        let owner = desk.claim();
        import(desk, &owner, agents());
        let report = import(desk, &owner, rows());
        assert_eq!(report["counts"]["actions"], json!({ "taken": 1 }));
        assert_eq!(report["counts"]["proposals"], json!({ "taken": 2, "refused": 1 }));
        assert_eq!(report["counts"]["handoffs"], json!({ "taken": 3 }));
        assert_eq!(report["counts"]["timeline"], json!({ "taken": 1, "refused": 1 }));
        assert!(outcome(&report, "timeline t-2").1.contains("time"));
        assert!(outcome(&report, "proposals p-3").1.contains("action is missing"));
        let pending = desk.call(&owner, "desk_request_list", json!({})).unwrap();
        let rows = pending["requests"].as_array().or(pending["items"].as_array()).unwrap();
        let kinds: Vec<&str> = rows.iter().map(|row| row["kind"].as_str().unwrap()).collect();
        assert_eq!((kinds.len(), kinds.iter().filter(|kind| **kind == "handoff").count()), (3, 2), "{pending:#}");
        assert!(rows.iter().all(|row| row.to_string().contains("sales-agent")));
        let events = desk.call(&owner, "desk_record_list", json!({ "kind": "import.row" })).unwrap();
        let events = events["events"].as_array().unwrap();
        assert_eq!(events.len(), 10);
        assert!(events.iter().all(|event| event["facts"]["imported"] == true));
        assert!(events.iter().all(|event| !event["facts"].to_string().contains("the customer asked")), "what somebody wrote is no fact");
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn a_brought_in_handoff_goes_to_the_owners_like_any_other(desk: &TestDesk) {
        let owner = desk.claim();
        import(desk, &owner, agents());
        import(desk, &owner, rows());
        desk.world.pass(std::time::Duration::from_secs(3_601));
        assert_eq!(desk.act(|cx| deskmate_core::request::escalate_due(cx, 10)).unwrap(), 2);
    }

    fn a_brought_in_proposal_is_decided_like_any_other(desk: &TestDesk) {
        let owner = desk.claim();
        import(desk, &owner, agents());
        let report = import(desk, &owner, rows());
        let why = outcome(&report, "proposals p-1").1;
        let request = why.rsplit(' ').next().unwrap();
        let sales = Caller::Secret(TOKEN.to_owned());
        let seen = desk.call(&sales, "cowork_get_request", json!({ "request_id": request })).unwrap();
        assert_eq!(seen["request"]["state"], "pending", "{seen}");
        desk.call(&owner, "desk_request_approve", json!({ "request": request })).unwrap();
        assert_eq!(desk.call(&sales, "cowork_get_request", json!({ "request_id": request })).unwrap()["request"]["state"], "approved");
    }

    fn scores_come_in_but_nobody_acts_alone_before_people_here_decided(desk: &TestDesk) {
        let owner = desk.claim();
        import(desk, &owner, agents());
        let mut high = rows();
        high["rows"][0]["row"]["score"] = json!(0.97);
        let report = import(desk, &owner, high);
        assert_eq!(outcome(&report, "trust of sales-agent in crm.deals").0, "changed");
        assert!(outcome(&report, "trust of stranger in crm.deals").1.contains("nobody proved"));
        assert_eq!(outcome(&report, "trust of sales-agent in crm.leads").0, "refused");
        let looked = desk.act(|cx| trust::look(cx, "sales-agent", "crm.deals", true)).unwrap();
        assert_eq!((looked.score_before_decay().to_f64(), looked.decided(), looked.state().streak), (0.97, 0, 1));
        let stranger = desk.act(|cx| trust::look(cx, "stranger", "crm.deals", true)).unwrap();
        assert!(stranger.stored.is_none(), "an unproven score stays apart");
        let sales = Caller::Secret(TOKEN.to_owned());
        let input = json!({ "domain": "crm.deals", "action": "update", "target": "deal 7", "proposed_change": "{\"name\": \"x\"}", "confidence": 0.9, "reasoning": "r" });
        assert_eq!(desk.call(&sales, "cowork_propose", input).unwrap()["mode"], "suggest", "the counts of a server where agents approved themselves do not count");
    }

    fn bringing_the_same_in_again_changes_nothing(desk: &TestDesk) {
        let owner = desk.claim();
        let document = "policies: [{ id: crm, rules: [{ field: owner, constraint: high_risk }] }]\nmappings: [{ agent_id: sales-agent, domain: crm.deals, policy_id: crm }]\ntrust: { default_level: 0.2 }";
        let all = |dry_run: bool| {
            let mut input = rows();
            input["agents"] = agents()["agents"].clone();
            input["document"] = json!(document);
            input["dry_run"] = json!(dry_run);
            input
        };
        let size = |desk: &TestDesk| desk.call(&owner, "desk_status", json!({})).unwrap()["events"].as_u64().unwrap();
        let before = size(desk);
        let dry = import(desk, &owner, all(true));
        assert_eq!((size(desk), &dry["dry_run"]), (before, &json!(true)), "a dry run tells nothing and writes nothing");
        assert!(desk.call(&owner, "desk_agent_list", json!({})).unwrap()["agents"].as_array().unwrap().is_empty());
        let first = import(desk, &owner, all(false));
        let counts = |report: &Value, kind: &str| report["counts"][kind].clone();
        for kind in ["agents", "tokens", "policies", "mappings", "settings", "trust_scores", "actions", "timeline", "overrides", "handoffs", "proposals"] {
            assert_eq!(counts(&first, kind), counts(&dry, kind), "{kind}");
        }
        let after = size(desk);
        let second = import(desk, &owner, all(false));
        assert_eq!(size(desk), after);
        for kind in ["agents", "policies", "mappings", "settings", "actions", "overrides", "handoffs"] {
            let counts = counts(&second, kind);
            assert!(counts.get("taken").is_none() && counts.get("changed").is_none(), "{kind}: {second:#}");
        }
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn a_dry_run_in_several_calls_says_what_the_import_then_does(desk: &TestDesk) {
        let owner = desk.claim();
        desk.call(&owner, "desk_policy_apply", json!({ "document": "authority: { pending_max: 3 }" })).unwrap();
        let handoff = |number: u32| json!({ "table": "handoffs", "row": { "id": format!("h-{number}"), "agent_id": "eager", "domain": "crm.deals", "reason": "stuck", "context_packet": "{}",
            "attempted_actions": "[]", "hand_back": 0, "instructions_read": 0, "created_at": AT } });
        let slices = [agents(), rows(), json!({ "rows": [handoff(11), handoff(12)] }), json!({ "rows": [handoff(13), handoff(14), handoff(15)] })];
        let run = |dry_run: bool| {
            let (mut entries, mut so_far) = (Vec::new(), json!({}));
            for slice in &slices {
                let mut input = slice.clone();
                (input["dry_run"], input["so_far"]) = (json!(dry_run), so_far);
                let report = import(desk, &owner, input);
                so_far = report.get("so_far").cloned().unwrap_or(json!({}));
                for entry in report["entries"].as_array().unwrap() {
                    // A request has its id only once it is there.
                    let why = entry["why"].as_str().unwrap_or_default().split(": request ").next().unwrap().to_owned();
                    entries.push((entry["what"].as_str().unwrap().to_owned(), entry["outcome"].clone(), why));
                }
            }
            (entries, so_far)
        };
        let (foreseen, so_far) = run(true);
        let of = |what: &str| foreseen.iter().find(|entry| entry.0 == what).unwrap().2.clone();
        assert!(!of("trust of sales-agent in crm.deals").contains("nobody proved") && of("trust of stranger in crm.deals").contains("nobody proved"));
        assert!(of("handoffs h-14").contains("at most 3") && !of("handoffs h-13").contains("at most"), "{foreseen:#?}");
        assert_eq!(so_far, json!({ "agents": ["sales-agent", "support-agent"], "opened": { "eager": 3, "sales-agent": 3 } }));
        assert_eq!(run(false), (foreseen, json!({})));
    }

    fn what_is_brought_in_stands_beside_what_is_in_force(desk: &TestDesk) {
        let owner = desk.claim();
        desk.call(&owner, "desk_policy_apply", json!({ "document": "policies: [{ id: own, rules: [] }, { id: crm, rules: [] }]\nauthority: { volume_cap: 7 }" })).unwrap();
        let document = "policies: [{ id: crm, rules: [{ field: owner, constraint: high_risk }] }]\nauthority: { default_mode: escalate }";
        let report = import(desk, &owner, json!({ "document": document }));
        assert_eq!(outcome(&report, "policy crm").0, "changed");
        let body = desk.call(&owner, "desk_policy_get", json!({})).unwrap()["body"].clone();
        assert_eq!(body["policies"].as_array().unwrap().len(), 2);
        assert_eq!(body["authority"], json!({ "default_mode": "escalate", "volume_cap": 7 }));
    }

    fn only_an_owner_who_is_there_brings_in(desk: &TestDesk) {
        let owner = desk.claim();
        let agent = desk.register(&owner, "code");
        for dry_run in [true, false] {
            assert_code(&desk.refused(&agent, "desk_import_cowork", json!({ "dry_run": dry_run })), Code::Forbidden);
        }
        let too_many: Vec<Value> = (0..501).map(|_| json!({ "table": "actions", "row": {} })).collect();
        assert_code(&desk.refused(&owner, "desk_import_cowork", json!({ "rows": too_many })), Code::Invalid);
        assert_code(&desk.refused(&owner, "desk_import_cowork", json!({ "document": "trust: { default_level: 9 }" })), Code::Invalid);
    }
}
