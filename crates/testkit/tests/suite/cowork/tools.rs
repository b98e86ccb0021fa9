//! The tools as clients see them: names, parameters and fields of the reference, and what is new.

use std::collections::BTreeSet;

use deskmate_core::Code;
use deskmate_core::call::{Effect, Registry, Toolset};
use serde_json::{Value, json};
use testkit::{assert_code, both};

use super::{SALES, SUPPORT, approve, in_force, is, log, no, ok, pass, proposal, propose, proposed, signed_in, sound, text, trusted};

/// Every tool of earlier servers with its parameters; those with a star are required there.
const OLD: [(&str, &str); 14] = [
    ("propose", "agent_id agent_token domain action target proposed_change confidence reasoning field"),
    ("check_trust", "agent_id agent_token domain field"),
    ("handoff", "agent_id agent_token domain reason confidence attempted_actions context handoff_mode"),
    ("log", "agent_id agent_token domain action actor confidence reasoning proposal_id"),
    ("override", "agent_id agent_token domain action_description override_type severity description proposal_id"),
    ("approve", "proposal_id agent_id agent_token domain feedback"),
    ("resolve_handoff", "handoff_id resolution hand_back_to_agent instructions hand_back"),
    ("status", "agent_id include_timeline timeline_limit"),
    ("validate_policy", "agent_id agent_token domain field proposed_value agent_role"),
    ("bulk_approve", "agent_id agent_token filter_agent_id filter_domain filter_min_confidence filter_min_trust_score feedback"),
    ("bulk_reject", "agent_id agent_token filter_domain override_type severity description"),
    ("audit_trail", "agent_id agent_token proposal_id"),
    ("governance_report", "agent_id agent_token agent_id_filter domain_filter start_time end_time"),
    ("check_handoff", "agent_id agent_token domain"),
];

const NEW: [&str; 7] = ["list_requests", "get_request", "wait_for_decision", "answer_question", "cancel_request", "begin", "acknowledge_instructions"];

#[test]
fn every_tool_and_parameter_of_existing_clients_is_there() {
    let registry = Registry::new();
    let ops: Vec<_> = registry.of_toolsets(&[Toolset::Cowork]).collect();
    let names: BTreeSet<&str> = ops.iter().map(|op| op.name).collect();
    let expected: BTreeSet<String> = OLD.iter().map(|(name, _)| *name).chain(NEW).map(|name| format!("cowork_{name}")).collect();
    assert_eq!(names, expected.iter().map(String::as_str).collect());
    let mut found = Vec::new();
    for op in &ops {
        assert_eq!(op.input()["additionalProperties"], json!(false), "{}", op.name);
        assert!(!op.description().is_empty() && op.description().len() < 1_024, "{}", op.name);
        testkit::undescribed(op.input(), op.name, &mut found);
        testkit::undescribed(&op.output(), &format!("{} answers", op.name), &mut found);
        // Whatever existing clients send along is shown, so that those which check before sending do send it.
        for name in ["agent_id", "agent_token"] {
            assert!(op.input()["properties"].get(name).is_some(), "{} has no {name}", op.name);
        }
    }
    assert_eq!(found, Vec::<String>::new());
    for (name, parameters) in OLD {
        let op = registry.get(&format!("cowork_{name}")).expect(name);
        for parameter in parameters.split(' ') {
            assert!(op.input()["properties"].get(parameter).is_some(), "{name} has no {parameter}");
        }
        // Nothing is required now that was not required before.
        let required: Vec<&str> = op.input()["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        assert!(required.iter().all(|field| parameters.split(' ').any(|known| known == *field)), "{name} requires {required:?}");
    }
    for name in ["check_trust", "status", "audit_trail", "governance_report", "check_handoff"] {
        assert_eq!(registry.get(&format!("cowork_{name}")).expect(name).effect, Effect::Read, "{name}");
    }
}

/// Every field that an earlier server answered is there.
fn has(answer: &Value, fields: &str) {
    for field in fields.split(' ') {
        assert!(answer.get(field).is_some(), "no {field} in {answer}");
    }
}

both! {
    fn answers_have_the_fields_of_earlier_servers(desk: &TestDesk) {
        let owner = desk.claim();
        let answer = propose(desk, &SALES, "crm", json!({ "name": "x" }));
        has(&answer, "proposal_id action_id mode trust_level confidence high_risk_field policy_warnings policy_id policy_rules_checked mapping_found volume_remaining volume_cap message");
        has(&answer, "request_id digest expires_at next verified");
        has(&ok(desk, &SALES, "check_trust", json!({ "domain": "crm" })), "agent_id domain trust_score accuracy total_actions overridden_actions consecutive_overrides mode high_risk message");
        let id = text(&answer, "proposal_id");
        has(&approve(desk, &owner, &id), "proposal_id approved trust_impact previous_trust new_trust new_mode feedback message");
        has(&log(desk, &SALES, &id, json!({ "name": "x" })), "action_id proposal_id logged message");
        has(&ok(desk, &SALES, "log", json!({ "domain": "crm", "action": "a", "actor": "agent" })), "action_id proposal_id logged message");
        let no_thanks = proposed(desk, &SALES, "crm");
        let overridden = ok(desk, &owner, "override", json!({ "proposal_id": no_thanks, "action_description": "a", "override_type": "agent_wrong", "description": "d" }));
        has(&overridden, "override_id override_type trust_impact previous_trust new_trust demoted message");
        let handed = ok(desk, &SALES, "handoff", json!({ "domain": "crm", "reason": "r", "confidence": 0.5, "attempted_actions": "[]", "context": "c" }));
        has(&handed, "handoff_id mode message context_packet for_human");
        has(&handed["context_packet"], "tried confidence reasoning context");
        has(&ok(desk, &owner, "resolve_handoff", json!({ "handoff_id": handed["handoff_id"], "resolution": "r" })), "handoff_id resolved resolution message");
        has(&ok(desk, &SALES, "check_handoff", json!({})), "pending_instructions pending_handoffs count message");
        let status = ok(desk, &SALES, "status", json!({}));
        has(&status, "session_id auth_mode stats trust_scores pending_proposals open_handoffs timeline config text");
        has(&status["stats"], "total_actions approved_actions overrides override_rate pending_proposals open_handoffs override_reasons trust_scores");
        has(&status["trust_scores"][0], "agent_id domain score accuracy total_actions approved_actions overridden_actions consecutive_overrides last_updated");
        has(&status["stats"]["trust_scores"][0], "agent domain score accuracy sample_size");
        has(&status["timeline"][0], "id session_id actor event_type summary created_at");
        has(&status["config"], "default_trust default_mode volume_cap");
        has(&ok(desk, &SALES, "validate_policy", json!({ "domain": "crm", "field": "owner", "proposed_value": "x" })), "valid hard_stop violations policy_id mapping_found policy_rules_checked");
        let trail = ok(desk, &SALES, "audit_trail", json!({ "proposal_id": id }));
        has(&trail, "proposal_id found verified trail");
        has(&trail["trail"], "id agent_id action status proposal_timestamp approved_timestamp executed_timestamp sentry_trace_id notes");
        let report = ok(desk, &SALES, "governance_report", json!({}));
        has(&report, "audit_report governance_issues issue_count");
        has(&report["audit_report"], "total proposed approved executed orphaned verified_chains");
        proposed(desk, &SALES, "crm");
        has(&ok(desk, &owner, "bulk_approve", json!({ "feedback": "f" })), "batch_id count approved rejected errors error_count");
        proposed(desk, &SALES, "crm");
        has(&ok(desk, &owner, "bulk_reject", json!({ "override_type": "edge_case", "description": "d" })), "batch_id count rejected errors error_count");
        sound(desk);
    }

    fn refusals_of_a_domain_are_ordinary_answers(desk: &TestDesk) {
        let owner = desk.claim();
        for (tool, input) in [
            ("approve", json!({ "proposal_id": "nonsense" })),
            ("override", json!({ "proposal_id": "nonsense", "action_description": "a", "override_type": "edge_case", "description": "d" })),
            ("resolve_handoff", json!({ "handoff_id": "nonsense", "resolution": "r" })),
        ] {
            let answer = ok(desk, &owner, tool, input);
            assert!(answer["error"] == true && !text(&answer, "message").is_empty(), "{tool}: {answer}");
        }
        let id = proposed(desk, &SALES, "crm");
        approve(desk, &owner, &id);
        let before = ok(desk, &SALES, "check_trust", json!({ "domain": "crm" }));
        assert_eq!(approve(desk, &owner, &id)["error"], true);
        assert_eq!(ok(desk, &SALES, "check_trust", json!({ "domain": "crm" }))["trust_score"], before["trust_score"]);
    }

    fn a_grant_follows_an_answer_of_act_and_is_used_once(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        trusted(desk, &owner, &sales, "crm");
        let answer = propose(desk, &sales, "crm", json!({ "name": "x" }));
        assert_eq!(answer["mode"], "act", "{answer}");
        let id = text(&answer, "proposal_id");
        assert!(!answer["grant"]["grant_id"].is_null() && answer.get("expires_at").is_none(), "{answer}");
        let begun = ok(desk, &sales, "begin", json!({ "proposal_id": id }));
        assert_eq!((&begun["go"], &begun["change"], &begun["grant_id"]), (&json!(true), &json!({ "name": "x" }), &answer["grant"]["grant_id"]));
        assert_code(&no(desk, &sales, "begin", json!({ "proposal_id": id })), Code::Conflict);
        let logged = log(desk, &sales, &id, json!({ "name": "x" }));
        assert_eq!((&logged["state"], &logged["approved"], &logged["matches"]), (&json!("done"), &json!(true), &json!("exact")));
        // Reported again, it is kept, and it is not covered twice.
        let again = log(desk, &sales, &id, json!({ "name": "x" }));
        assert_eq!((&again["approved"], &again["findings"]), (&json!(false), &json!(["execution_without_approval"])), "{again}");
        sound(desk);
    }

    fn criteria_that_a_domain_requires_hold_a_proposal(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        trusted(desk, &owner, &sales, "crm");
        in_force(desk, "domains: { crm: { authority: { required_criteria: [credit_limit, owner_consent], criteria_seconds: 3600 } } }");
        let with = |criteria: Value| {
            let mut input = proposal("crm", json!({ "name": "x" }));
            input["criteria"] = criteria;
            ok(desk, &sales, "propose", input)
        };
        let fresh = |name: &str| json!({ "name": name, "value": 5, "source": "erp", "at": "2026-01-01T00:00:00Z" });
        assert_eq!(with(json!([fresh("credit_limit"), fresh("owner_consent")]))["mode"], "act");
        for wanting in [
            json!([]),
            json!([fresh("credit_limit")]),
            json!([fresh("credit_limit"), { "name": "owner_consent", "value": null, "source": "erp", "at": "2026-01-01T00:00:00Z" }]),
            json!([fresh("credit_limit"), { "name": "owner_consent", "value": 1, "source": "", "at": "2026-01-01T00:00:00Z" }]),
            json!([fresh("credit_limit"), { "name": "owner_consent", "value": 1, "source": "erp" }]),
            json!([fresh("credit_limit"), { "name": "owner_consent", "value": 1, "source": "erp", "at": "2025-12-31T22:00:00Z" }]),
            json!([fresh("credit_limit"), { "name": "owner_consent", "value": 1, "source": "erp", "at": "2027-01-01T00:00:00Z" }]),
        ] {
            let answer = with(wanting);
            assert_eq!(answer["mode"], "escalate", "{answer}");
            let shown = ok(desk, &sales, "get_request", json!({ "request_id": answer["request_id"] }));
            assert!(shown["request"]["reasons"].to_string().contains("owner_consent"), "{shown}");
        }
        // Another domain does not ask for them; the person sees what was given.
        assert_eq!(propose(desk, &sales, "tickets", json!({ "name": "x" }))["mode"], "escalate");
        let held = with(json!([fresh("credit_limit")]));
        let shown = ok(desk, &owner, "get_request", json!({ "request_id": held["request_id"] }));
        assert_eq!(shown["request"]["context"]["criteria"][0]["name"], "credit_limit");
    }

    fn a_proposal_can_stand_in_the_place_of_another_or_be_taken_back(desk: &TestDesk) {
        let old = proposed(desk, &SALES, "crm");
        let mut input = proposal("crm", json!({ "name": "better" }));
        input["supersedes"] = json!(old);
        let new = text(&ok(desk, &SALES, "propose", input.clone()), "proposal_id");
        let state = |id: &str| ok(desk, &SALES, "get_request", json!({ "request_id": id }))["request"]["state"].clone();
        assert_eq!((state(&old), state(&new)), (json!("superseded"), json!("pending")));
        assert_code(&no(desk, &SUPPORT, "propose", input), Code::Invalid);
        assert_code(&no(desk, &SUPPORT, "cancel_request", json!({ "request_id": new })), Code::NotFound);
        assert_eq!(ok(desk, &SALES, "cancel_request", json!({ "request_id": new, "reason": "no longer" }))["request"]["state"], "cancelled");
        assert_eq!(ok(desk, &SALES, "list_requests", json!({ "state": "superseded" }))["requests"][0]["request_id"], json!(old));
    }

    fn what_an_agent_claims_to_be_so_already_is_shown_to_who_approves_it(desk: &TestDesk) {
        let owner = desk.claim();
        let mut input = proposal("crm", json!({ "note": "hello", "iban": "mine" }));
        input["target_state"] = json!("{\"iban\": \"mine\"}");
        let id = text(&ok(desk, &SALES, "propose", input), "proposal_id");
        let shown = desk.call(&owner, "desk_request_get", json!({ "request": id })).unwrap();
        let paths: Vec<_> = shown["changes"].as_array().unwrap().iter().map(|change| change["path"].clone()).collect();
        assert_eq!(paths, ["/iban", "/note"]);
    }

    fn what_was_approved_is_the_change_of_what_was_seen(desk: &TestDesk) {
        let owner = desk.claim();
        let mut input = proposal("crm", json!({ "amount": 2 }));
        input["target_state"] = json!("{\"amount\": 1}");
        let id = text(&ok(desk, &SALES, "propose", input), "proposal_id");
        approve(desk, &owner, &id);
        let stopped = ok(desk, &SALES, "begin", json!({ "proposal_id": id, "target_state": "{\"amount\": 7}" }));
        assert_eq!((&stopped["go"], &stopped["error"], &stopped["stopped"], &stopped["state"]), (&json!(false), &json!(true), &json!("target_changed"), &json!("pending")), "{stopped}");
        approve(desk, &owner, &id);
        assert_eq!(ok(desk, &SALES, "begin", json!({ "proposal_id": id, "target_state": "{\"amount\": 1}" }))["go"], true);
        sound(desk);
    }

    fn the_same_key_proposes_once_and_a_limit_is_not_remembered(desk: &TestDesk) {
        in_force(desk, "authority: { volume_cap: 1 }");
        let mut input = proposal("crm", json!({ "name": "x" }));
        input["idempotency_key"] = json!("one");
        let first = ok(desk, &SALES, "propose", input.clone());
        assert_eq!(ok(desk, &SALES, "propose", input.clone()), first);
        input["idempotency_key"] = json!("two");
        assert_eq!(ok(desk, &SALES, "propose", input.clone())["volume_cap_error"], true);
        pass(desk, 3_601);
        assert!(ok(desk, &SALES, "propose", input)["proposal_id"].is_string());
    }

    fn outcomes_are_done_failed_or_ambiguous(desk: &TestDesk) {
        let owner = desk.claim();
        let report = |id: &str, outcome: &str| ok(desk, &SALES, "log", json!({ "domain": "crm", "action": "a", "actor": "agent", "reasoning": "r", "proposal_id": id, "outcome": outcome }));
        for (outcome, state) in [("done", "done"), ("failed", "failed"), ("ambiguous", "ambiguous")] {
            let id = proposed(desk, &SALES, "crm");
            approve(desk, &owner, &id);
            assert_eq!(report(&id, outcome)["state"], state);
            if outcome == "ambiguous" {
                // Still not known, then known.
                assert_eq!(report(&id, "ambiguous")["state"], "ambiguous");
                assert_eq!(report(&id, "failed")["state"], "failed");
            }
        }
        sound(desk);
    }

    fn a_correction_counts_once_and_takes_an_approval_back(desk: &TestDesk) {
        let owner = desk.claim();
        let correct = |id: &str| ok(desk, &owner, "override", json!({ "proposal_id": id, "action_description": "a", "override_type": "agent_wrong", "severity": "high", "description": "d" }));
        let score = || ok(desk, &SALES, "check_trust", json!({ "domain": "crm" }))["trust_score"].clone();
        // Done already: the approval is taken back, and the correction counts.
        let id = proposed(desk, &SALES, "crm");
        approve(desk, &owner, &id);
        log(desk, &SALES, &id, json!({ "name": "x" }));
        let first = correct(&id);
        assert!(is(&first["previous_trust"], 0.32) && is(&first["new_trust"], 0.18) && is(&score(), 0.18), "{first}");
        let again = correct(&id);
        assert_eq!((&again["repeated"], &again["override_id"]), (&json!(true), &first["override_id"]));
        assert!(is(&score(), 0.18));
        // Approved and not done: it is taken back and rejected, and its grant is gone.
        let id = proposed(desk, &SALES, "crm");
        approve(desk, &owner, &id);
        assert!(is(&correct(&id)["new_trust"], 0.06));
        assert_eq!(ok(desk, &SALES, "get_request", json!({ "request_id": id }))["request"]["state"], "rejected");
        assert_code(&no(desk, &SALES, "begin", json!({ "proposal_id": id })), Code::Conflict);
        // Without a proposal, with a reason.
        let input = |description: &str| json!({ "agent_id": "sales", "domain": "crm", "action_description": "a", "override_type": "human_preference", "description": description });
        assert_code(&no(desk, &owner, "override", input(" ")), Code::Invalid);
        assert!(is(&ok(desk, &owner, "override", input("not like this"))["trust_impact"], -0.11));
        let trust = ok(desk, &SALES, "check_trust", json!({ "domain": "crm" }));
        assert_eq!((&trust["overridden_actions"], &trust["sample_size"]), (&json!(3), &json!(3)), "{trust}");
        let stats = ok(desk, &owner, "status", json!({}))["stats"].clone();
        assert_eq!(stats["override_reasons"], json!({ "agent_wrong": 2, "human_preference": 1 }));
        sound(desk);
    }

    fn criteria_are_part_of_every_answer(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        trusted(desk, &owner, &sales, "crm");
        pass(desk, 300);
        let early = propose(desk, &sales, "crm", json!({ "name": "x" }));
        assert_eq!(early["mode"], "act", "{early}");
        in_force(desk, "domains: { crm: { authority: { required_criteria: [credit_limit] } } }");
        // Required after it was answered, they stop it.
        let begun = ok(desk, &sales, "begin", json!({ "proposal_id": early["proposal_id"] }));
        assert_eq!((&begun["go"], &begun["stopped"], &begun["state"]), (&json!(false), &json!("stricter"), &json!("pending")), "{begun}");
        assert!(text(&begun, "message").contains("credit_limit is missing"), "{begun}");
        pass(desk, 300);
        let owner = signed_in(desk);
        let held = propose(desk, &sales, "crm", json!({ "name": "x" }));
        let mut input = proposal("crm", json!({ "name": "x" }));
        input["criteria"] = json!([{ "name": "credit_limit", "value": 5, "source": "erp", "at": "2026-01-01T00:00:00Z" }]);
        let based = ok(desk, &sales, "propose", input);
        assert_eq!((&held["mode"], &based["mode"]), (&json!("escalate"), &json!("act")));
        // Replayed under what is in force, nothing differs; without the requirement the one that was held would have passed.
        let simulate = |document: Option<&str>| {
            desk.call(&owner, "desk_policy_simulate", json!({ "document": document, "since": "2026-01-01T00:08:00Z" })).expect("it is replayed")
        };
        let same = simulate(None);
        assert_eq!((&same["looked_at"], &same["same"], &same["differing"]), (&json!(2), &json!(2), &json!([])), "{same}");
        let looser = simulate(Some("domains: { crm: { authority: { required_criteria: [] } } }"));
        assert_eq!((&looser["looser"], &looser["differing"][0]["request"]), (&json!(1), &held["request_id"]), "{looser}");
        // Who asks why is told, before and after a person approved.
        let explain = || desk.call(&owner, "desk_policy_explain", json!({ "request": held["request_id"] })).expect("it is explained");
        let why = "criteria: at best escalate: credit_limit is missing";
        assert!(explain()["lines"].to_string().contains(why), "{}", explain());
        approve(desk, &owner, &text(&held, "request_id"));
        assert!(explain()["lines"].to_string().contains(why), "{}", explain());
        let shown = desk.call(&owner, "desk_request_get", json!({ "request": held["request_id"] })).unwrap();
        assert!(shown["reasons"].to_string().contains("credit_limit is missing"), "{shown}");
        assert_eq!(ok(desk, &sales, "begin", json!({ "proposal_id": held["request_id"] }))["go"], true, "a person approved it without them");
        // What they say grows old: then it is not enough any more.
        let explain = || desk.call(&owner, "desk_policy_explain", json!({ "request": based["request_id"] })).expect("it is explained");
        assert_eq!(explain()["now"]["mode"], "act");
        pass(desk, 86_400);
        let owner = signed_in(desk);
        let old = desk.call(&owner, "desk_policy_explain", json!({ "request": based["request_id"] })).unwrap();
        assert!(old["lines"].to_string().contains("credit_limit is too old"), "{old}");
        // Only proposals are asked for them, and an act in words where it says so.
        let act = |act: Value| desk.call(&owner, "desk_policy_explain", json!({ "agent": "sales", "act": act })).unwrap()["lines"].to_string();
        assert!(!act(json!({ "domain": "crm" })).contains("credit_limit"));
        assert!(act(json!({ "domain": "crm", "criteria": [] })).contains("credit_limit is missing"));
        sound(desk);
    }

    fn a_correction_of_an_approval_is_kept_and_moves_no_trust(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        let ask = || {
            let input = json!({ "agentId": "sales", "action": "send_letter", "description": "to the printer", "approvers": ["Owner"] });
            text(&desk.call(&sales, "agents_request_approval", input).unwrap(), "approvalId")
        };
        let (pending, unused, done) = (ask(), ask(), ask());
        for id in [&unused, &done] {
            desk.call(&owner, "desk_request_approve", json!({ "request": id })).unwrap();
        }
        log(desk, &sales, &done, json!({}));
        for (id, state) in [(&pending, "rejected"), (&unused, "rejected"), (&done, "done")] {
            let correct = || ok(desk, &owner, "override", json!({ "proposal_id": id, "action_description": "a", "override_type": "agent_wrong", "description": "d" }));
            let first = correct();
            assert!(first["override_id"].is_string() && is(&first["trust_impact"], 0.0), "{state}: {first}");
            assert_eq!((&first["previous_trust"], first.get("repeated")), (&first["new_trust"], None), "{first}");
            assert!(text(&first, "message").contains("move no trust"), "{first}");
            let again = correct();
            assert_eq!((&again["override_id"], &again["repeated"], again.get("error")), (&first["override_id"], &json!(true), None), "{again}");
            assert_eq!(desk.call(&owner, "desk_request_get", json!({ "request": id })).unwrap()["state"], state);
        }
        assert_eq!(desk.call(&owner, "desk_trust_replay", json!({})).unwrap()["agrees"], true);
        super::sound(desk);
    }

    fn decisions_over_mcp_need_a_token_that_policy_names(desk: &TestDesk) {
        use deskmate_core::call::Surface;
        let owner = desk.claim();
        let id = proposed(desk, &SALES, "crm");
        let approve_on = |surface, caller: &testkit::Caller| desk.call_on(surface, caller, "cowork_approve", json!({ "proposal_id": id }));
        assert_code(&approve_on(Surface::Mcp, &owner).unwrap_err(), Code::Forbidden);
        let token = desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": ["cowork"] })).unwrap();
        let token = testkit::Caller::Secret(text(&token, "token"));
        assert_code(&approve_on(Surface::Mcp, &token).unwrap_err(), Code::Forbidden);
        in_force(desk, "authority: { token_deciders: [Owner] }");
        assert_eq!(approve_on(Surface::Mcp, &token).unwrap()["approved"], true);
    }

    fn what_policy_hides_is_hidden_where_it_is_shown(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "
policies:
  - id: private
    rules: [{ name: hide-ssn, effect: redact, paths: [ssn] }]
mappings: [{ agent_id: '*', domain: '*', policy_id: private }]
");
        let id = text(&propose(desk, &SALES, "crm", json!({ "ssn": "123-45-6789", "name": "x" })), "proposal_id");
        for (caller, tool, input) in [
            (&owner, "get_request", json!({ "request_id": id })),
            (&owner, "list_requests", json!({})),
            (&owner, "audit_trail", json!({ "proposal_id": id })),
            (&owner, "status", json!({})),
        ] {
            let shown = ok(desk, caller, tool, input);
            assert!(!shown.to_string().contains("123-45-6789"), "{tool}: {shown}");
        }
        assert_eq!(ok(desk, &owner, "get_request", json!({ "request_id": id }))["request"]["proposed_change"]["name"], "x");
        // Whoever does it needs it.
        approve(desk, &owner, &id);
        assert_eq!(ok(desk, &SALES, "begin", json!({ "proposal_id": id }))["change"]["ssn"], "123-45-6789");
        // What was done is shown as what was proposed is.
        super::log(desk, &SALES, &id, json!({ "ssn": "123-45-6789", "name": "x" }));
        let report = ok(desk, &owner, "audit_trail", json!({ "proposal_id": id }))["reports"][0].clone();
        assert_eq!(report["executed_change"], json!({ "ssn": "[hidden by policy]", "name": "x" }), "{report}");
    }

    fn status_and_check_trust_agree_after_fading(desk: &TestDesk) {
        let owner = desk.claim();
        for _ in 0..12 {
            let id = proposed(desk, &SALES, "crm");
            approve(desk, &owner, &id);
        }
        pass(desk, 10 * 24 * 3_600);
        let owner = signed_in(desk);
        let trust = ok(desk, &owner, "check_trust", json!({ "agent_id": "sales", "domain": "crm" }));
        let row = ok(desk, &owner, "status", json!({}))["trust_scores"][0].clone();
        assert!((trust["trust_score"].as_f64().unwrap() - 0.44).abs() < 1e-6, "{trust}");
        assert!((row["score"].as_f64().unwrap() - trust["trust_score"].as_f64().unwrap()).abs() < 1e-7 && row["mode"] == trust["mode"], "{row} {trust}");
        assert!((trust["decay_applied"].as_f64().unwrap() - 0.1).abs() < 1e-6, "{trust}");
    }
}

/// Every test that the protocol's page names exists, and every primitive has its row.
#[test]
fn the_page_of_the_protocol_names_tests_and_operations_that_exist() {
    fn sources(folder: &std::path::Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, text);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                text.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(here.join("../../docs/cowork-protocol.md")).unwrap();
    let mut tests = String::new();
    sources(&here.join("tests"), &mut tests);
    let rows: Vec<Vec<&str>> = page.lines().filter(|line| line.starts_with("| ")).map(|line| line.split('|').map(str::trim).collect()).collect();
    let numbers: Vec<u32> = rows.iter().filter_map(|row| row.get(1)?.parse().ok()).collect();
    assert_eq!(numbers, (1..=39).collect::<Vec<_>>());
    let registry = Registry::new();
    for row in rows.iter().filter(|row| row.get(1).is_some_and(|number| number.parse::<u32>().is_ok())) {
        let test = row[4].trim_matches('`');
        assert!(tests.contains(&format!("fn {test}(")), "{}: there is no test {test}", row[1]);
        for name in row[3].split('`').filter(|word| word.starts_with("cowork_") || word.starts_with("desk_")) {
            assert!(registry.get(name).is_some(), "{}: there is no operation {name}", row[1]);
        }
    }
}
