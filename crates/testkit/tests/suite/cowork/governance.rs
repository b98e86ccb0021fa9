//! What does not fit, and how good proposals are.

use deskmate_core::Code;
use deskmate_core::cowork::INDEXED;
use deskmate_db::Param;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

use super::{SALES, SUPPORT, approve, in_force, is, log, no, ok, pass, proposed, signed_in, text};

fn report(desk: &TestDesk, caller: &Caller, input: Value) -> Value {
    ok(desk, caller, "governance_report", input)
}

fn of_type(report: &Value, kind: &str) -> Vec<Value> {
    report["governance_issues"].as_array().unwrap().iter().filter(|issue| issue["type"] == kind).cloned().collect()
}

both! {
    fn acts_that_do_not_fit_their_approval_are_found(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "governance: { rubber_stamp_count: 100 }");
        // Done for a proposal that is not there, or is another's.
        let others = proposed(desk, &SUPPORT, "crm");
        let orphan = log(desk, &SALES, "nonsense", json!({}));
        assert_eq!(orphan["findings"], json!(["orphaned_execution"]));
        let stolen = log(desk, &SALES, &others, json!({}));
        assert_eq!((&stolen["findings"], &stolen["proposal_id"]), (&json!(["orphaned_execution"]), &Value::Null));
        // Done while people decide, after they said no, beyond what they said.
        let early = proposed(desk, &SALES, "crm");
        log(desk, &SALES, &early, json!({ "name": "x" }));
        approve(desk, &owner, &early);
        let refused = proposed(desk, &SALES, "crm");
        ok(desk, &owner, "override", json!({ "proposal_id": refused, "action_description": "a", "override_type": "edge_case", "description": "d" }));
        log(desk, &SALES, &refused, json!({ "name": "x" }));
        let beyond = proposed(desk, &SALES, "crm");
        approve(desk, &owner, &beyond);
        log(desk, &SALES, &beyond, json!({ "name": "y" }));
        // Done for no proposal, with a reason and without one; a person's own act is nobody's business here.
        let told = ok(desk, &SALES, "log", json!({ "domain": "crm", "action": "a", "actor": "agent", "reasoning": "it had to be done" }));
        assert_eq!(told["findings"], json!(["orphaned_execution"]));
        let silent = ok(desk, &SALES, "log", json!({ "domain": "crm", "action": "a", "actor": "agent" }));
        assert_eq!(silent["findings"], json!(["orphaned_execution", "missing_intent"]));
        let own = ok(desk, &owner, "log", json!({ "domain": "crm", "action": "a", "actor": "human" }));
        assert_eq!(own.get("findings"), None, "{own}");
        let report_ = report(desk, &owner, json!({}));
        let proposal = |kind: &str| of_type(&report_, kind)[0]["proposal_id"].clone();
        let orphans: Vec<Value> = of_type(&report_, "orphaned_execution").iter().map(|issue| issue["action_id"].clone()).collect();
        assert_eq!(orphans.len(), 4, "{report_}");
        assert!([&orphan, &stolen, &told, &silent].iter().all(|log| orphans.contains(&log["action_id"])), "{report_}");
        assert_eq!(proposal("execution_before_approval"), json!(early));
        assert_eq!(proposal("execution_without_approval"), json!(refused));
        assert_eq!(proposal("execution_beyond_approval"), json!(beyond));
        assert_eq!(of_type(&report_, "missing_intent").len(), 1);
        assert_eq!((&report_["issue_count"], &report_["audit_report"]["orphaned"]), (&json!(8), &json!(5)));
        assert_eq!(report_["governance_issues"][0]["severity"], "high");
        // Filters filter issues too; pages hold all of them once.
        assert_eq!(report(desk, &owner, json!({ "agent_id_filter": "support" }))["issue_count"], 0);
        assert_eq!(report(desk, &owner, json!({ "domain_filter": "elsewhere" }))["issue_count"], 0);
        assert_eq!(report(desk, &owner, json!({ "type_filter": "missing_intent" }))["issue_count"], 1);
        let (mut seen, mut input) = (Vec::new(), json!({ "limit": 4 }));
        loop {
            let page = report(desk, &owner, input.clone());
            seen.extend(page["governance_issues"].as_array().unwrap().clone());
            let Some(next) = page["next_cursor"].as_str() else { break };
            input["cursor"] = json!(next);
        }
        assert_eq!(json!(seen), report_["governance_issues"]);
        assert_code(&no(desk, &owner, "governance_report", json!({ "start_time": "yesterday" })), Code::Invalid);
        assert_code(&no(desk, &owner, "governance_report", json!({ "start_time": "2026-01-02T00:00:00Z", "end_time": "2026-01-01T00:00:00Z" })), Code::Invalid);
        assert_eq!(report(desk, &owner, json!({ "end_time": "2025-12-31T00:00:00Z" }))["audit_report"]["total"], 0);
    }

    fn what_is_older_than_the_report_is_found_where_it_still_matters(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "governance: { slow_decision_seconds: 60 }\nauthority: { request_seconds: 8640000, grant_seconds: 8640000 }");
        let (waits, early) = (proposed(desk, &SALES, "crm"), proposed(desk, &SALES, "crm"));
        approve(desk, &owner, &proposed(desk, &SUPPORT, "crm"));
        pass(desk, 40 * 86_400);
        log(desk, &SALES, &early, json!({ "name": "x" }));
        let owner = signed_in(desk);
        let report_ = report(desk, &owner, json!({}));
        let slow: Vec<Value> = of_type(&report_, "slow_decision").iter().map(|issue| issue["proposal_id"].clone()).collect();
        assert!(slow.contains(&json!(waits)) && slow.len() == 2, "{report_}");
        assert_eq!(of_type(&report_, "execution_before_approval")[0]["proposal_id"], json!(early), "{report_}");
        assert_eq!((&report_["audit_report"]["proposed"], &report(desk, &owner, json!({ "agent_id_filter": "support" }))["issue_count"]), (&json!(0), &json!(0)));
    }

    fn what_was_decided_lately_is_found_however_old_the_request_is(desk: &TestDesk) {
        desk.claim();
        in_force(desk, "governance: { slow_decision_seconds: 3600, rubber_stamp_count: 3, rubber_stamp_seconds: 60 }\nauthority: { request_seconds: 14400, break_glass: owner }\nrules: [{ name: two, match: { domain: [two] }, effect: require_approval, quorum: 2, message: two people }]");
        let queue: Vec<String> = (0..3).map(|_| proposed(desk, &SALES, "crm")).collect();
        let (alone, forgotten, unvoted) = (proposed(desk, &SALES, "two"), proposed(desk, &SALES, "crm"), proposed(desk, &SALES, "lost"));
        let elsewhere = proposed(desk, &SUPPORT, "crm");
        pass(desk, 3 * 3_600);
        let owner = signed_in(desk);
        for id in queue.iter().chain([&unvoted]) {
            approve(desk, &owner, id);
        }
        let digest = desk.call(&owner, "desk_request_get", json!({ "request": alone })).unwrap()["digest"].clone();
        desk.call(&owner, "desk_request_break_glass", json!({ "request": alone, "expected_digest": digest, "reason": "the shop is down and nobody else answers" })).unwrap();
        ok(desk, &owner, "override", json!({ "proposal_id": elsewhere, "action_description": "a", "override_type": "edge_case", "description": "d" }));
        desk.tamper("delete from vote where request in (select id from request where domain = 'lost')");
        pass(desk, 3_601);
        let owner = signed_in(desk);
        let since = |mut input: Value| {
            input["start_time"] = json!("2026-01-01T02:30:00Z");
            report(desk, &owner, input)
        };
        let found = since(json!({}));
        let ids = |kind: &str| {
            let mut ids: Vec<String> = of_type(&found, kind).iter().map(|issue| text(issue, "proposal_id")).collect();
            ids.sort();
            ids
        };
        let sorted = |mut ids: Vec<String>| {
            ids.sort();
            ids
        };
        assert_eq!(ids("slow_decision"), sorted([queue.clone(), vec![unvoted.clone(), alone.clone(), elsewhere.clone()]].concat()), "{found}");
        assert_eq!(ids("proposal_never_approved"), [forgotten.as_str()]);
        assert_eq!(ids("missing_approval"), [unvoted.as_str()]);
        assert_eq!(ids("break_glass"), [alone.as_str()]);
        assert_eq!((ids("rubber_stamping").len(), &found["audit_report"]["proposed"]), (1, &json!(0)), "{found}");
        // Filters hold for them too.
        assert_eq!(since(json!({ "agent_id_filter": "support" }))["issue_count"], 1);
        assert_eq!(since(json!({ "domain_filter": "two" }))["issues_by_type"], json!({ "break_glass": 1, "slow_decision": 1 }));
        assert_eq!(report(desk, &owner, json!({ "start_time": "2026-01-01T02:30:00Z", "end_time": "2026-01-01T02:40:00Z" }))["issue_count"], 0, "nothing was decided yet then");
    }

    fn a_report_that_does_not_say_what_was_done_is_found(desk: &TestDesk) {
        let owner = desk.claim();
        let [untold, told_later, failed] = [(); 3].map(|()| {
            let id = proposed(desk, &SALES, "crm");
            approve(desk, &owner, &id);
            id
        });
        let say = |id: &str, outcome: &str| ok(desk, &SALES, "log", json!({ "domain": "crm", "action": "a", "actor": "agent", "proposal_id": id, "outcome": outcome }));
        assert_eq!(say(&untold, "done")["findings"], json!(["execution_not_told"]));
        assert_eq!(say(&failed, "failed").get("findings"), None, "nothing was done");
        ok(desk, &SALES, "begin", json!({ "proposal_id": told_later }));
        say(&told_later, "ambiguous");
        log(desk, &SALES, &told_later, json!({ "name": "x" }));
        let found = of_type(&report(desk, &owner, json!({})), "execution_not_told");
        assert_eq!((found.len(), &found[0]["proposal_id"], &found[0]["severity"]), (1, &json!(untold), &json!("low")), "{found:?}");
    }

    fn statements_of_the_report_go_through_their_index(desk: &TestDesk) {
        desk.claim();
        proposed(desk, &SALES, "crm");
        let plans: deskmate_db::Result<Vec<String>> = desk.desk.db.write_blocking(|tx| {
            let (time, of) = (Param::Int(1_767_225_600_000_000), Param::Text(""));
            INDEXED.iter().map(|(sql, _)| testkit::plan(tx, sql, &[time, time, of, of, Param::Int(21)])).collect()
        });
        for ((sql, index), plan) in INDEXED.iter().zip(plans.unwrap()) {
            assert!(plan.contains(index), "{sql}\ndoes not use {index}:\n{plan}");
        }
    }

    fn slow_open_and_forgotten_things_are_found(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "governance: { slow_decision_seconds: 60, open_outcome_seconds: 30 }\nauthority: { request_seconds: 600 }");
        let (ambiguous, begun) = (proposed(desk, &SALES, "crm"), proposed(desk, &SALES, "crm"));
        approve(desk, &owner, &ambiguous);
        approve(desk, &owner, &begun);
        ok(desk, &SALES, "log", json!({ "domain": "crm", "action": "a", "actor": "agent", "proposal_id": ambiguous, "outcome": "ambiguous" }));
        ok(desk, &SALES, "begin", json!({ "proposal_id": begun }));
        let (slow, late, forgotten) = (proposed(desk, &SALES, "crm"), proposed(desk, &SALES, "crm"), proposed(desk, &SALES, "crm"));
        assert_eq!(report(desk, &owner, json!({}))["issue_count"], 0);
        pass(desk, 61);
        approve(desk, &owner, &late);
        let now = report(desk, &owner, json!({}));
        let ids = |kind: &str| {
            let mut ids: Vec<String> = of_type(&now, kind).iter().map(|issue| text(issue, "proposal_id")).collect();
            ids.sort();
            ids
        };
        let sorted = |mut ids: Vec<String>| {
            ids.sort();
            ids
        };
        assert_eq!(ids("ambiguous_open"), sorted(vec![ambiguous, begun]));
        assert_eq!(ids("slow_decision"), sorted(vec![slow.clone(), late, forgotten.clone()]));
        pass(desk, 3_600);
        let owner = signed_in(desk);
        let later = report(desk, &owner, json!({ "type_filter": "proposal_never_approved" }));
        assert_eq!(later["issue_count"], 2, "{later}");
        assert_eq!(report(desk, &SUPPORT, json!({}))["issue_count"], 0);
    }

    fn a_person_settles_what_an_agent_left_open(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "governance: { open_outcome_seconds: 30 }");
        let link = desk.call(&owner, "desk_person_invite", json!({ "name": "Ann", "role": "approver", "domains": ["elsewhere"] })).unwrap();
        let joined = desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": link["code"], "passphrase": "correct horse" })).unwrap();
        let ann = Caller::Secret(text(&joined, "session"));
        let (ambiguous, begun, granted) = (proposed(desk, &SALES, "crm"), proposed(desk, &SALES, "crm"), proposed(desk, &SALES, "crm"));
        for id in [&ambiguous, &begun, &granted] {
            approve(desk, &owner, id);
        }
        ok(desk, &SALES, "log", json!({ "domain": "crm", "action": "a", "actor": "agent", "proposal_id": ambiguous, "outcome": "ambiguous" }));
        ok(desk, &SALES, "begin", json!({ "proposal_id": begun }));
        pass(desk, 31);
        let open = of_type(&report(desk, &owner, json!({})), "ambiguous_open");
        assert_eq!(open.len(), 2, "{open:?}");
        assert!(open.iter().all(|issue| text(issue, "recommendation").contains("report it with cowork_log, its proposal_id and the outcome")), "{open:?}");
        let say = |id: &str, outcome: Value| json!({ "domain": "crm", "action": "looked", "actor": "human", "proposal_id": id, "outcome": outcome });
        // Whoever does not decide there settles nothing; a report without an outcome is a report only.
        assert_code(&no(desk, &ann, "log", say(&begun, json!("done"))), Code::Forbidden);
        assert_eq!(ok(desk, &owner, "log", say(&begun, Value::Null))["state"], "executing");
        assert_eq!(ok(desk, &owner, "log", say(&ambiguous, json!("ambiguous")))["state"], "ambiguous");
        assert_eq!(ok(desk, &owner, "log", say(&ambiguous, json!("failed")))["state"], "failed");
        let mut done = say(&begun, json!("done"));
        done["executed_change"] = json!("{\"name\": \"x\"}");
        let settled = ok(desk, &owner, "log", done);
        assert_eq!((&settled["state"], &settled["actor"], &settled["matches"]), (&json!("done"), &json!("human"), &json!("exact")), "{settled}");
        assert!(of_type(&report(desk, &owner, json!({})), "ambiguous_open").is_empty());
        // A grant that is not used stays the agent's, and what is settled stays as it is.
        assert_eq!(ok(desk, &owner, "log", say(&granted, json!("done")))["state"], "approved");
        assert_eq!(ok(desk, &owner, "log", say(&ambiguous, json!("done")))["state"], "failed");
        super::sound(desk);
    }

    fn what_is_left_out_of_a_report_is_said_and_found_by_a_filter(desk: &TestDesk) {
        let owner = desk.claim();
        for caller in [&SALES, &SUPPORT] {
            let id = proposed(desk, caller, "crm");
            approve(desk, &owner, &id);
            ok(desk, caller, "begin", json!({ "proposal_id": id }));
            pass(desk, 1);
        }
        // A thousand more of the same, before the other's.
        desk.tamper(
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000) insert into request (id, kind, state, requester_kind, requester, \
             verified, domain, rank, mode, risk, quorum, expires_at, created_at, updated_at, version, round, rulebook, digest) select 'old-' || i, kind, state, \
             requester_kind, requester, verified, domain, rank, mode, risk, quorum, expires_at, created_at, updated_at, version, round, rulebook, digest \
             from request, n where requester = 'sales' and state = 'executing'",
        );
        pass(desk, 40 * 86_400);
        let owner = signed_in(desk);
        let open = |input: Value| {
            let found = report(desk, &owner, input);
            (found["issues_by_type"]["ambiguous_open"].clone(), found["older_cut"].clone(), found["cut"].clone())
        };
        assert_eq!(open(json!({})), (json!(1000), json!(true), json!(false)));
        assert_eq!(open(json!({ "agent_id_filter": "support" })), (json!(1), json!(false), json!(false)), "however many of others there are");
        assert_eq!(open(json!({ "domain_filter": "elsewhere" })), (Value::Null, json!(false), json!(false)));
    }

    fn an_outcome_left_open_is_found_however_old_it_is(desk: &TestDesk) {
        let owner = desk.claim();
        let (ambiguous, begun) = (proposed(desk, &SALES, "crm"), proposed(desk, &SALES, "crm"));
        for id in [&ambiguous, &begun] {
            approve(desk, &owner, id);
        }
        ok(desk, &SALES, "log", json!({ "domain": "crm", "action": "a", "actor": "agent", "proposal_id": ambiguous, "outcome": "ambiguous" }));
        ok(desk, &SALES, "begin", json!({ "proposal_id": begun }));
        pass(desk, 40 * 86_400);
        let owner = signed_in(desk);
        let found = report(desk, &owner, json!({}));
        let mut ids: Vec<String> = of_type(&found, "ambiguous_open").iter().map(|issue| text(issue, "proposal_id")).collect();
        ids.sort();
        assert_eq!(ids, [ambiguous, begun], "{found}");
        assert_eq!(found["audit_report"]["proposed"], 0, "they are no proposals of this stretch of time");
        assert_eq!(of_type(&report(desk, &SALES, json!({})), "ambiguous_open").len(), 2);
        assert!(of_type(&report(desk, &SUPPORT, json!({})), "ambiguous_open").is_empty());
        assert!(of_type(&report(desk, &owner, json!({ "domain_filter": "elsewhere" })), "ambiguous_open").is_empty());
    }

    fn approvals_that_settle_nothing_alone_are_stamps_too(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "governance: { rubber_stamp_count: 3, rubber_stamp_seconds: 10 }\nrules: [{ name: two, effect: require_approval, quorum: 2, message: two people }]");
        let ids: Vec<String> = (0..3).map(|_| proposed(desk, &SALES, "crm")).collect();
        for id in &ids {
            let answer = desk.call(&owner, "desk_request_approve", json!({ "request": id })).unwrap();
            assert_eq!(answer["state"], "pending", "{answer}");
        }
        let found = of_type(&report(desk, &owner, json!({})), "rubber_stamping");
        let me = text(&desk.call(&owner, "desk_whoami", json!({})).unwrap(), "id");
        assert_eq!((found.len(), &found[0]["person_id"]), (1, &json!(me)), "{found:?}");
    }

    fn rubber_stamping_and_missing_approvals_are_found(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "governance: { rubber_stamp_count: 3, rubber_stamp_seconds: 10 }");
        let ids: Vec<String> = (0..7).map(|_| proposed(desk, &SALES, "crm")).collect();
        approve(desk, &owner, &ids[0]);
        pass(desk, 30);
        approve(desk, &owner, &ids[1]);
        approve(desk, &owner, &ids[2]);
        assert_eq!(report(desk, &owner, json!({}))["issue_count"], 0);
        approve(desk, &owner, &ids[3]);
        let found = of_type(&report(desk, &owner, json!({})), "rubber_stamping");
        let me = text(&desk.call(&owner, "desk_whoami", json!({})).unwrap(), "id");
        assert_eq!((found.len(), &found[0]["person_id"]), (1, &json!(me)), "{found:?}");
        // It is about people, so an agent is not told.
        assert_eq!(report(desk, &SALES, json!({}))["issue_count"], 0);
        // A batch whose list was shown is one decision.
        pass(desk, 60);
        let preview = ok(desk, &owner, "bulk_approve", json!({ "feedback": "f", "preview": true }));
        ok(desk, &owner, "bulk_approve", json!({ "feedback": "f", "expected_set": preview["set_digest"] }));
        assert_eq!(of_type(&report(desk, &owner, json!({})), "rubber_stamping").len(), 1);
        // Of one whose list nobody saw, each member is.
        for _ in 0..3 {
            proposed(desk, &SALES, "crm");
        }
        pass(desk, 60);
        ok(desk, &owner, "bulk_approve", json!({ "feedback": "f" }));
        assert_eq!(of_type(&report(desk, &owner, json!({})), "rubber_stamping").len(), 2);
        let seen: Vec<Value> = super::told(desk, &owner, "batch.decided").iter().map(|event| event["facts"]["seen"].clone()).collect();
        assert_eq!(seen, [json!(false), json!(true)]);
        // An approval whose vote somebody deleted.
        desk.tamper("delete from vote");
        let missing = of_type(&report(desk, &owner, json!({})), "missing_approval");
        assert_eq!(missing.len(), 10);
    }

    fn quality_is_told_by_agent_and_domain(desk: &TestDesk) {
        let owner = desk.claim();
        let (a, b) = (proposed(desk, &SALES, "crm"), proposed(desk, &SALES, "crm"));
        pass(desk, 10);
        approve(desk, &owner, &a);
        pass(desk, 20);
        ok(desk, &owner, "override", json!({ "proposal_id": b, "action_description": "a", "override_type": "edge_case", "description": "d" }));
        let mut again = super::proposal("crm", json!({ "name": "z" }));
        again["supersedes"] = json!(proposed(desk, &SALES, "crm"));
        ok(desk, &SALES, "propose", again);
        ok(desk, &SALES, "log", json!({ "domain": "crm", "action": "a", "actor": "agent", "proposal_id": a, "quality": 0.8, "cost": 2.5, "outcome": "done" }));
        let quality = report(desk, &owner, json!({}))["quality"][0].clone();
        assert_eq!((&quality["agent_id"], &quality["domain"], &quality["proposals"], &quality["decided"]), (&json!("sales"), &json!("crm"), &json!(4), &json!(2)));
        assert!(is(&quality["accuracy"], 0.5) && is(&quality["retry_rate"], 0.25) && is(&quality["mean_confidence"], 0.9), "{quality}");
        assert!(is(&quality["mean_quality"], 0.8) && is(&quality["success_rate"], 1.0) && is(&quality["cost"], 2.5), "{quality}");
        let (p50, p95) = (quality["latency_p50_seconds"].as_f64().unwrap(), quality["latency_p95_seconds"].as_f64().unwrap());
        assert!((p50 - 10.0).abs() < 0.01 && (p95 - 30.0).abs() < 0.01, "{quality}");
        let narrow = report(desk, &owner, json!({ "end_time": "2026-01-01T00:00:05Z" }))["quality"][0].clone();
        assert_eq!(narrow["proposals"], 2);
    }
}
