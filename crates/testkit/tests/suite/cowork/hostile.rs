//! What an agent could try.

use deskmate_core::Code;
use serde_json::{Value, json};
use testkit::{Caller, assert_code, both};

use super::{SALES, approve, in_force, no, ok, proposal, proposed, sound, text};

both! {
    fn nothing_an_agent_sends_decides_anything(desk: &TestDesk) {
        let owner = desk.claim();
        let (sales, support) = (desk.register(&owner, "sales"), desk.register(&owner, "support"));
        let Caller::Secret(token) = &sales else { panic!("no token") };
        let (mine, theirs) = (proposed(desk, &sales, "crm"), proposed(desk, &support, "crm"));
        let me = text(&desk.call(&owner, "desk_whoami", json!({})).unwrap(), "id");
        for id in [&mine, &theirs] {
            for extra in [json!({}), json!({ "agent_token": token }), json!({ "agent_id": "sales" }), json!({ "agent_id": me }), json!({ "agent_id": "Owner" })] {
                let mut input = json!({ "proposal_id": id });
                input.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
                assert_code(&no(desk, &sales, "approve", input), Code::Forbidden);
            }
        }
        // A person's session that an agent sends as its token decides nothing over MCP.
        let Caller::Secret(session) = &owner else { panic!("no session") };
        let as_argument = desk.call(&Caller::Agent("sales"), "cowork_approve", json!({ "proposal_id": mine, "agent_token": session }));
        assert_code(&as_argument.unwrap_err(), Code::Forbidden);
        let over_mcp = desk.call_on(deskmate_core::call::Surface::Mcp, &owner, "cowork_approve", json!({ "proposal_id": mine }));
        assert_code(&over_mcp.unwrap_err(), Code::Forbidden);
        for unknown in ["decided_by", "actor", "mode", "grant", "state"] {
            let mut input = proposal("crm", json!({}));
            input[unknown] = json!("act");
            assert_code(&no(desk, &sales, "propose", input), Code::Invalid);
        }
        assert_eq!(ok(desk, &owner, "get_request", json!({ "request_id": mine }))["request"]["state"], "pending");
        sound(desk);
    }

    fn anothers_proposal_is_as_if_it_were_not_there(desk: &TestDesk) {
        let owner = desk.claim();
        let (sales, support) = (desk.register(&owner, "sales"), desk.register(&owner, "support"));
        let theirs = proposed(desk, &support, "crm");
        approve(desk, &owner, &theirs);
        for (tool, input) in [
            ("get_request", json!({ "request_id": theirs })),
            ("wait_for_decision", json!({ "request_id": theirs })),
            ("begin", json!({ "proposal_id": theirs })),
            ("cancel_request", json!({ "request_id": theirs })),
            ("answer_question", json!({ "request_id": theirs, "answer": "a" })),
        ] {
            let (real, unreal) = (no(desk, &sales, tool, input.clone()), {
                let mut input = input;
                for field in ["request_id", "proposal_id"] {
                    if input.get(field).is_some() {
                        input[field] = json!("019b76da-0000-7000-8000-000000000000");
                    }
                }
                no(desk, &sales, tool, input)
            });
            assert_eq!((real.code, unreal.code), (Code::NotFound, Code::NotFound), "{tool}");
            assert_eq!(real.message.replace(&theirs, ""), unreal.message.replace("019b76da-0000-7000-8000-000000000000", ""), "{tool}");
        }
        assert_eq!(ok(desk, &sales, "audit_trail", json!({ "proposal_id": theirs }))["found"], false);
        // Reporting on it is kept as what it is, and does not close the other's loop.
        let logged = ok(desk, &sales, "log", json!({ "domain": "crm", "action": "a", "actor": "agent", "proposal_id": theirs }));
        assert_eq!((&logged["proposal_id"], &logged["findings"]), (&Value::Null, &json!(["orphaned_execution"])));
        assert_eq!(ok(desk, &support, "begin", json!({ "proposal_id": theirs }))["go"], true);
        sound(desk);
    }

    fn too_much_and_nul_are_refused_everywhere(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        let mine = proposed(desk, &sales, "crm");
        let handed = json!({ "domain": "crm", "reason": "r", "confidence": 0.1, "attempted_actions": "[]", "context": "{}" });
        let logged = json!({ "domain": "crm", "action": "a", "actor": "agent" });
        let inputs: Vec<(&Caller, &str, Value, &str)> = vec![
            (&sales, "propose", proposal("crm", json!({})), "domain action target proposed_change reasoning field environment supersedes reversibility target_state"),
            (&sales, "check_trust", json!({ "domain": "crm" }), "domain field"),
            (&sales, "validate_policy", json!({ "domain": "crm", "field": "f" }), "domain field proposed_value agent_role"),
            (&sales, "handoff", handed, "domain reason attempted_actions context goal state proposal_id assignee"),
            (&sales, "log", logged, "domain action reasoning proposal_id executed_change"),
            (&sales, "get_request", json!({ "request_id": mine }), "request_id"),
            (&sales, "answer_question", json!({ "request_id": mine, "answer": "a" }), "request_id answer"),
            (&sales, "cancel_request", json!({ "request_id": mine }), "request_id reason"),
            (&sales, "audit_trail", json!({ "proposal_id": mine }), "proposal_id"),
            (&owner, "approve", json!({ "proposal_id": mine }), "proposal_id agent_id domain feedback"),
            (&owner, "override", json!({ "proposal_id": mine, "action_description": "a", "override_type": "edge_case", "description": "d" }), "proposal_id action_description description"),
            (&owner, "resolve_handoff", json!({ "handoff_id": mine, "resolution": "r" }), "handoff_id resolution instructions"),
            (&owner, "bulk_approve", json!({ "feedback": "f", "preview": true }), "feedback filter_agent_id filter_domain"),
        ];
        let huge = "x".repeat(600 * 1024);
        for (caller, tool, input, fields) in inputs {
            for field in fields.split(' ') {
                for text in [huge.as_str(), "a\0b"] {
                    let mut input = input.clone();
                    input[field] = json!(text);
                    let refusal = no(desk, caller, tool, input);
                    assert!(refusal.code == Code::Invalid, "{tool} {field}: {refusal}");
                }
            }
        }
        for (field, wrong) in [
            ("confidence", json!(1.5)),
            ("confidence", json!(-0.1)),
            ("confidence", json!("high")),
            ("cost", json!(-1)),
            ("deadline_seconds", json!(0)),
            ("priority", json!("now")),
            ("taint", json!(vec!["web"; 101])),
            ("criteria", json!(vec![json!({ "name": "n", "value": 1 }); 101])),
            ("criteria", json!([{ "name": "n", "value": 1, "at": "soon" }])),
            ("criteria", json!([{ "name": "n", "value": 1, "weight": 2 }])),
            ("proposed_change", json!("{\"amount\": 1, \"amount\": 2}")),
            ("proposed_change", json!("{\"amount\": 9007199254740993}")),
            ("proposed_change", json!("{\"name\": \"\\u0000\"}")),
        ] {
            let mut input = proposal("crm", json!({}));
            input[field] = wrong.clone();
            let refusal = no(desk, &sales, "propose", input);
            assert!(refusal.code == Code::Invalid, "{field} {wrong}: {refusal}");
        }
        assert_eq!(ok(desk, &sales, "status", json!({}))["pending_proposals"], 1);
        sound(desk);
    }

    fn a_paused_agent_gets_no_further_and_its_report_is_kept(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        let id = proposed(desk, &sales, "crm");
        approve(desk, &owner, &id);
        desk.call(&owner, "desk_pause", json!({ "agent": "sales" })).unwrap();
        let denied = super::propose(desk, &sales, "crm", json!({ "name": "x" }));
        assert_eq!((&denied["error"], &denied["mode"]), (&json!(true), &json!("deny")), "{denied}");
        assert_code(&no(desk, &sales, "begin", json!({ "proposal_id": id })), Code::Forbidden);
        let logged = super::log(desk, &sales, &id, json!({ "name": "x" }));
        assert_eq!((&logged["approved"], &logged["findings"]), (&json!(false), &json!(["execution_without_approval"])), "{logged}");
        sound(desk);
    }

    fn what_an_act_cost_beyond_its_proposal_is_charged_to_the_day(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "authority: { cost_per_day: 10 }");
        let spent = || desk.act(|cx| deskmate_core::meter::counters(cx, "sales", "crm")).unwrap().cost_day;
        let costing = |cost: f64| {
            let mut input = proposal("crm", json!({ "name": "x" }));
            input["cost"] = json!(cost);
            ok(desk, &SALES, "propose", input)
        };
        let report = |caller: &Caller, id: Option<&str>, cost: f64| {
            ok(desk, caller, "log", json!({ "domain": "crm", "action": "a", "actor": "agent", "reasoning": "r", "proposal_id": id, "cost": cost }));
        };
        let id = text(&costing(3.0), "proposal_id");
        approve(desk, &owner, &id);
        assert_eq!(spent(), 3_000_000);
        // What was declared is paid once, however many reports share it.
        report(&SALES, Some(&id), 2.0);
        assert_eq!(spent(), 3_000_000, "nothing is given back");
        report(&SALES, Some(&id), 2.0);
        assert_eq!(spent(), 4_000_000);
        report(&SALES, Some(&id), 1.5);
        assert_eq!(spent(), 5_500_000);
        // What belongs to no proposal was declared by none; what a person spends is not the agent's.
        report(&SALES, None, 4.0);
        report(&owner, Some(&id), 100.0);
        assert_eq!(spent(), 9_500_000);
        let refused = costing(1.0);
        assert!(refused["error"] == true && text(&refused, "message").contains("9.5 of 10 are used up"), "{refused}");
        assert!(refused.get("volume_cap").is_none() && refused.get("proposals_this_hour").is_none(), "a cost is no number of proposals: {refused}");
        assert!(costing(0.5)["proposal_id"].is_string());
        super::pass(desk, 86_400);
        assert_eq!(spent(), 0);
        sound(desk);
    }
}
