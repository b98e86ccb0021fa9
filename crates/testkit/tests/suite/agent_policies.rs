//! Policies that hold for one agent, and tests of agents, on both engines. Where a test is named after a defect, it is one that servers
//! before this had.

use deskmate_core::Code;
use deskmate_core::agents::{self, RunState, template};
use deskmate_core::call::{Call, Credential, Desk, Outcome, Surface};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both, wait};

use crate::agent_sentences::SENTENCE;

pub(crate) fn people(desk: &TestDesk) -> (Caller, Caller) {
    let owner = desk.claim();
    (owner.clone(), desk.register(&owner, "code"))
}

pub(crate) fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}

pub(crate) fn names(value: &Value, field: &str) -> Vec<String> {
    value.as_array().unwrap().iter().map(|one| text(one, field)).collect()
}

pub(crate) fn teller(desk: &TestDesk, who: &Caller, more: Value) -> String {
    let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "code", "content": "{{params.words}}" } }]);
    let mut input = json!({ "description": "Say hello to code", "steps": steps, "params": { "words": "hello" }, "policies": [] });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    text(&desk.call(who, "agents_create_agent", input).unwrap(), "agentId")
}

pub(crate) fn attach(desk: &TestDesk, who: &Caller, agent: &str, policy: &str, more: Value) -> Value {
    let mut input = json!({ "agentId": agent, "policyId": policy });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    desk.call(who, "agents_attach_policy", input).unwrap()
}

pub(crate) fn deploy(desk: &TestDesk, owner: &Caller, agent: &str) {
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

both! {
    fn the_status_of_an_agent_has_its_last_test_and_its_conflicts(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let id = teller(desk, &owner, json!({}));
        let status = |more: Value| {
            let mut input = json!({ "agentId": id });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            desk.call(&owner, "agents_get_agent_status", input).unwrap()
        };
        assert_eq!((&status(json!({}))["lastTest"], &status(json!({}))["conflicts"]), (&Value::Null, &Value::Null));
        let (counted, uncounted) = (status(json!({})), status(json!({ "includeMetrics": false })));
        assert!(counted["metrics"].is_object() && uncounted.get("metrics").is_none_or(Value::is_null), "{uncounted}");
        assert!(text(&counted, "message").contains("Last 30 days") && !text(&uncounted, "message").contains("Last 30 days"), "{uncounted}");
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
        desk.seal();
        let trail = desk.call(&owner, "cowork_audit_trail", json!({ "proposal_id": request })).unwrap();
        assert_eq!((&trail["verified"], &trail["problems"]), (&json!(true), &json!([])), "the desk itself made the call: {trail}");
        let report = desk.call(&owner, "cowork_governance_report", json!({})).unwrap();
        assert_eq!((&report["audit_report"]["executed"], &report["audit_report"]["verified_chains"]), (&json!(1), &json!(1)), "{report}");
        let again = say(desk, &run, "may I?");
        assert!(again["state"] == "held_for_person" && again["request_id"] != waits["request_id"], "an approval works once: {again}");
        let other = text(&say(desk, &run, "and this?"), "request_id");
        desk.call(&owner, "desk_request_reject", json!({ "request": other, "reason": "no" })).unwrap();
        assert_eq!(say(desk, &run, "and this?")["refused_by_policy"], true);
        assert!(desk.verify().sound);
    }

    fn an_attached_policy_holds_the_deployment_of_its_agent_whoever_deploys_it(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let try_it = |who: &Caller, id: &str, more: Value| {
            let mut input = json!({ "agentId": id });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            desk.call(who, "agents_deploy_agent", input).unwrap()
        };
        assert_eq!(try_it(&owner, &teller(desk, &owner, json!({})), json!({}))["deployed"], true, "a person's own act needs nobody else");
        // A rule that forbids it: nothing is deployed without a way back.
        let id = teller(desk, &owner, json!({}));
        attach(desk, &owner, &id, "production-safety", json!({ "values": { "environments": ["cloud"] } }));
        let refused = try_it(&owner, &id, json!({}));
        assert!(refused["deployed"] == false && text(&refused, "message").contains("without a way back (instead: say the rollback_plan)"), "{refused}");
        assert_eq!(desk.call(&owner, "agents_get_agent_status", json!({ "agentId": id })).unwrap()["status"], "draft");
        assert_code(&desk.refused(&owner, "agents_deploy_agent", json!({ "agentId": id, "rollbackPlan": " " })), Code::Invalid);
        assert_eq!(try_it(&owner, &id, json!({ "rollbackPlan": "agents_stop_agent" }))["deployed"], true, "it is not what the rules call production");
        // A rule that asks for somebody else, by where it is deployed.
        let id = teller(desk, &owner, json!({}));
        attach(desk, &owner, &id, "production-safety", json!({ "values": { "environments": ["local"] } }));
        let waits = try_it(&owner, &id, json!({ "rollbackPlan": "stop it" }));
        assert_eq!(waits["deployed"], false, "{waits}");
        let request = text(&waits, "requestId");
        let shown = desk.call(&owner, "desk_request_get", json!({ "request": request })).unwrap();
        assert!(shown["reversibility"].as_str().unwrap().starts_with("stop it"), "{shown}");
        assert_code(&desk.refused(&owner, "desk_request_approve", json!({ "request": request })), Code::Forbidden);
        // What an agent wishes is denied by them as well, and what its approval meets is what holds then.
        let own = teller(desk, &code, json!({}));
        attach(desk, &code, &own, "production-safety", json!({}));
        assert!(text(&try_it(&code, &own, json!({})), "message").contains("way back"));
        let asked = text(&try_it(&code, &own, json!({ "rollbackPlan": "stop it" })), "requestId");
        desk.call(&owner, "desk_request_approve", json!({ "request": asked })).unwrap();
        assert_eq!(desk.call(&owner, "agents_get_agent_status", json!({ "agentId": own })).unwrap()["status"], "deployed");
        // Rules about other acts are no matter of the deployment.
        for policy in ["human-review", "pii-protection", "rate-limiting", "cost-control", "data-deletion", "secrets-protection", "read-only-access", "known-recipients"] {
            let id = teller(desk, &owner, json!({}));
            attach(desk, &owner, &id, policy, json!({}));
            assert_eq!(try_it(&owner, &id, json!({}))["deployed"], true, "{policy}");
        }
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

    fn a_program_is_tested_by_its_own_test_before_it_is_deployed(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let rule = "rules:\n  - { name: tested_first, match: { kind: [agent.deploy] }, when: \"!args.tested && args.definition.runner.kind != 'cli'\", effect: deny, message: test it first }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": rule })).unwrap();
        let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "code", "content": "hello" } }]);
        let made = desk.call(&code, "agents_create_agent", json!({ "description": "Say hello", "language": "python", "steps": steps })).unwrap();
        let id = text(&made, "agentId");
        let is_deployed = || desk.call(&owner, "agents_deploy_agent", json!({ "agentId": id })).unwrap()["deployed"] == true;
        let tried = |state: RunState| {
            let tested = desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "Say hello to jane@example.org" })).unwrap();
            assert!(tested.get("passed").is_none() && text(&tested, "message").contains("its own test"), "{tested}");
            let run = text(&tested, "runId");
            desk.act(move |cx| {
                assert!(agents::begin(cx, &run)?.is_some_and(|begun| begun.test));
                agents::end(cx, &run, state, if state == RunState::Done { Ok(json!({})) } else { Err("exit code 1".to_owned()) }, 0)
            })
            .unwrap();
            desk.call(&owner, "agents_get_agent_status", json!({ "agentId": id })).unwrap()["lastTest"].clone()
        };
        assert!(!is_deployed(), "it was not tested");
        assert_eq!(tried(RunState::Stopped), Value::Null, "what was stopped shows nothing");
        assert!(tried(RunState::Failed)["passed"] == false && !is_deployed());
        let passed = tried(RunState::Done);
        assert_eq!((&passed["passed"], &passed["strict"], &passed["current"]), (&json!(true), &json!(true), &json!(true)));
        desk.call(&owner, "agents_update_agent", json!({ "agentId": id, "description": "Say hello again" })).unwrap();
        assert!(!is_deployed(), "it is another one now");
        tried(RunState::Done);
        let told = desk.call(&owner, "desk_record_list", json!({ "kind": "agent.tested", "limit": 1 })).unwrap();
        assert_eq!((&told["events"][0]["facts"]["passed"], &told["events"][0]["payload"]["scenario"]), (&json!(true), &json!("Say hello to [redacted:email]")));
        assert!(is_deployed());
        for more in [json!({ "mockData": { "tell": {} } }), json!({ "strict": false })] {
            let mut input = json!({ "agentId": id, "scenario": "x" });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_code(&desk.refused(&owner, "agents_test_agent", input), Code::Invalid);
        }
        // A client of a model has no test, and it is said how a rule leaves it out.
        let runner = json!({ "kind": "cli", "client": "claude-code", "prompt": "Say hello" });
        let cli = text(&desk.call(&owner, "agents_create_agent", json!({ "description": "Say hello", "runner": runner })).unwrap(), "agentId");
        let error = desk.refused(&owner, "agents_test_agent", json!({ "agentId": cli, "scenario": "x" }));
        assert!(error.code == Code::Conflict && error.hint.as_deref().is_some_and(|hint| hint.contains("runner.kind != 'cli'")), "{error:?}");
        deploy(desk, &owner, &cli);
        assert!(desk.verify().sound);
    }

    fn a_test_sees_all_of_a_proposal(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let rules = "rules:\n  - { name: dear, when: 'act.cost > 10.0', effect: deny, message: too dear }\n  - { name: strange, when: \"'web' in act.taint\", effect: deny, message: from the web }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": rules })).unwrap();
        let tested = |more: Value| {
            let mut with = json!({ "domain": "crm.deals", "action": "update_field", "target": "deal/1", "proposed_change": { "amount": 5 }, "confidence": 0.9, "reasoning": "x" });
            with.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let id = teller(desk, &owner, json!({ "steps": [{ "id": "ask", "do": "cowork_propose", "with": with }] }));
            desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "Ask for it" })).unwrap()
        };
        assert_eq!(tested(json!({}))["passed"], true);
        for (more, says) in [(json!({ "cost": 20.0 }), "too dear"), (json!({ "taint": ["web"] }), "from the web")] {
            let seen = tested(more);
            assert!(seen["passed"] == false && seen["violations"].to_string().contains(says), "{seen}");
        }
        assert_eq!(tested(json!({ "cost": 2.5 }))["estimate"]["cost"], 2.5);
        let wrong = tested(json!({ "confidence": 7 }));
        assert!(wrong["passed"] == false && wrong["steps"][0]["error"].as_str().unwrap().contains("confidence"), "{wrong}");
    }

    fn a_test_decides_every_act_and_lists_the_first(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let document = "rules:\n  - { name: not_this, when: \"texts.exists(text, text.contains('number 201'))\", effect: deny, message: not this one }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": document })).unwrap();
        let tested_with = |lines: usize, calls: u32, on_error: &str, answer: Value| {
            let text: Vec<String> = (1..=lines).map(|number| format!("number {number}")).collect();
            let steps = json!([
                { "id": "all", "do": "lines", "with": { "text": text.join("\n") } },
                { "id": "tell", "do": "bridge_send_message", "for_each": "{{steps.all.items}}", "on_error": on_error, "with": { "to": "code", "content": "{{item}}" } }
            ]);
            let input = json!({ "description": "Tells a lot", "steps": steps, "policies": [], "budget": { "calls": calls } });
            let id = desk.call(&owner, "agents_create_agent", input).unwrap()["agentId"].clone();
            let mocks = json!({ "tell": answer });
            desk.call(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "x", "mockData": mocks })).unwrap()
        };
        let tested = |lines: usize, calls: u32, on_error: &str| tested_with(lines, calls, on_error, json!({ "message_id": "m" }));
        let fine = tested(200, 1_000, "stop");
        assert!(fine["passed"] == true && fine["moreActs"] == 0, "{fine}");
        let forbidden = tested(203, 1_000, "go_on");
        assert_eq!((&forbidden["passed"], forbidden["acts"].as_array().unwrap().len(), &forbidden["moreActs"]), (&json!(false), 200, &json!(3)), "{forbidden}");
        assert_eq!(forbidden["violations"].as_array().unwrap().len(), 1, "{forbidden}");
        assert!(forbidden["message"].as_str().unwrap().contains("203 acts were decided"), "{forbidden}");
        let many = tested(2_001, 100_000, "go_on");
        assert!(many["passed"] == false && many["steps"][1]["error"].as_str().unwrap().contains("2000 acts"), "{many}");
        let large = tested_with(200, 1_000, "go_on", json!({ "message_id": "m".repeat(200_000) }));
        assert!(large["passed"] == false && large["steps"][1]["error"].as_str().unwrap().contains("more than 16 MB"), "{large}");
        // A run would end there, whatever may go on.
        let short = tested(200, 100, "go_on");
        assert!(short["passed"] == false && short["steps"][1]["error"].as_str().unwrap().contains("budget of 100 calls"), "{short}");
    }

    fn a_template_of_policies_from_a_file_is_listed_and_attached(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let file = "template: { id: no-falcon, title: No falcon, description: Nobody speaks of it., category: operational, parameters: [{ name: word, kind: text, default: falcon, about: what nobody speaks of }] }\n\
                    rules:\n  - { name: not_this, when: \"texts.exists(text, text.contains(${word}))\", effect: deny, message: \"not about ${word}\" }\n";
        let own = template::File::read(file).unwrap();
        let other = Desk { templates: template::Library::of(vec![("no-falcon.yaml".to_owned(), own)], Vec::new()), ..desk.desk.clone() };
        let Caller::Secret(secret) = owner.clone() else { panic!("a session is needed") };
        let call = |operation: &str, input: Value| {
            let credential = Credential::Secret { secret: secret.clone(), proved: true };
            let answer = wait(other.call(Call { credential, surface: Surface::Rest, operation: operation.to_owned(), input }));
            desk.seal();
            answer.map(|answer| match answer.outcome {
                Outcome::Done(value) | Outcome::NotYet(value) => value,
            })
        };
        let listed = call("agents_list_templates", json!({ "type": "policy", "search": "falcon" })).unwrap();
        assert_eq!((names(&listed["policies"], "id"), &listed["policies"][0]["text"]), (vec!["no-falcon".to_owned()], &json!(file)), "{listed}");
        let id = teller(desk, &owner, json!({}));
        call("agents_attach_policy", json!({ "agentId": id, "policyId": "no-falcon", "values": { "word": "eagle" } })).unwrap();
        deploy(desk, &owner, &id);
        let (_, run) = running(desk, &owner, &id);
        assert!(say(desk, &run, "falcon")["message_id"].is_string());
        assert!(text(&say(desk, &run, "an eagle"), "message").contains("not about eagle"), "what was attached holds, whatever becomes of the file");
        let taken = call("agents_create_policy", json!({ "description": "Never delete files", "category": "custom", "name": "no-falcon" })).unwrap_err();
        assert_code(&taken, Code::Conflict);
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
        let loose = desk.refused(&owner, "agents_test_agent", json!({ "agentId": id, "scenario": "x", "dryRun": false, "strict": false }));
        assert!(loose.code == Code::Invalid && loose.field.as_deref() == Some("strict"), "{loose:?}");
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
