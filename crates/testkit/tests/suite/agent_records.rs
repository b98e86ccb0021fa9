//! What the record tells of an agent, and approvals that are asked for by name, on both engines.

use std::time::Duration;

use deskmate_core::call::Surface;
use deskmate_core::notify::{self, ChannelKind, OutletRow};
use deskmate_core::record::{Event, Kind};
use deskmate_core::{Code, format_time};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

const NOTED: Kind = Kind { name: "action.logged", says: "" };

fn people(desk: &TestDesk) -> (Caller, Caller) {
    let owner = desk.claim();
    (owner.clone(), desk.register(&owner, "code"))
}

fn log(desk: &TestDesk, who: &Caller, input: Value) -> Value {
    desk.call(who, "agents_audit_log", input).unwrap()
}

fn seqs(log: &Value) -> Vec<u64> {
    log["entries"].as_array().unwrap().iter().map(|entry| entry["seq"].as_u64().unwrap()).collect()
}

/// Acts of an agent, told as it would.
fn acts(desk: &TestDesk, agent: &'static str, count: usize) {
    desk.act(move |cx| {
        let actor = deskmate_core::call::Actor::agent(agent, true);
        for number in 0..count {
            cx.emit_as(&actor, Event::new(NOTED, format!("execution:{number}")).fact("verb", if number % 2 == 0 { "mail.send" } else { "file.read" }))?;
        }
        Ok(())
    })
    .unwrap();
}

fn join(desk: &TestDesk, owner: &Caller, name: &str, role: &str, domains: Value) -> Caller {
    let code = desk.call(owner, "desk_person_invite", json!({ "name": name, "role": role, "domains": domains })).unwrap()["code"].clone();
    let joined = desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": code, "passphrase": "a passphrase of mine" })).unwrap();
    Caller::Secret(joined["session"].as_str().unwrap().to_owned())
}

fn ask(desk: &TestDesk, who: &Caller, more: Value) -> deskmate_core::Result<Value> {
    let mut input = json!({ "agentId": "code", "action": "read_report", "description": "Read the report of May", "approvers": ["Owner"] });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    desk.call(who, "agents_request_approval", input)
}

both! {
    fn the_log_is_newest_first_and_small_limits_give_the_newest(desk: &TestDesk) {
        let (owner, code) = people(desk);
        acts(desk, "code", 30);
        acts(desk, "other", 30);
        let all = log(desk, &owner, json!({ "agentId": "code" }));
        let places = seqs(&all);
        assert!(places.is_sorted_by(|a, b| a > b) && places.len() > 30, "{places:?}");
        assert!(all["entries"].as_array().unwrap().iter().all(|entry| entry["actor"] == "code" || entry["target"] == "agent:code"), "{all}");
        assert_eq!(seqs(&log(desk, &owner, json!({ "agentId": "code", "limit": 3 }))), places[..3]);
        assert_eq!(all["summary"]["total"], places.len());
        assert_eq!((&all["summary"]["complete"], &all["summary"]["topActions"][0]["action"]), (&json!(true), &json!("action.logged")));
        let (mut paged, mut cursor) = (Vec::new(), None);
        loop {
            let mut input = json!({ "agentId": "code", "limit": 7 });
            if let Some(cursor) = cursor { input["cursor"] = cursor; }
            let page = log(desk, &owner, input);
            paged.extend(seqs(&page));
            match page.get("next_cursor") { Some(next) => cursor = Some(next.clone()), None => break }
        }
        assert_eq!(paged, places, "pages are the same in all, none twice and none missing");
        assert_eq!(seqs(&log(desk, &code, json!({ "agentId": "code" }))), places, "an agent reads its own");
        for wrong in [json!({ "limit": 0 }), json!({ "limit": -1 }), json!({ "limit": 1001 }), json!({ "startTime": "yesterday" }), json!({ "cursor": "x" }), json!({ "startTime": "2027-01-01T00:00:00Z", "endTime": "2026-01-01T00:00:00Z" })] {
            let mut input = json!({ "agentId": "code" });
            input.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
            assert_code(&desk.refused(&owner, "agents_audit_log", input), Code::Invalid);
        }
        let other = desk.register(&owner, "third");
        assert_code(&desk.refused(&other, "agents_audit_log", json!({ "agentId": "code" })), Code::NotFound);
    }

    fn the_log_is_a_file_and_its_proofs_are_checked(desk: &TestDesk) {
        let (owner, code) = people(desk);
        acts(desk, "code", 30);
        let asked = ask(desk, &code, json!({})).unwrap();
        let all = seqs(&log(desk, &owner, json!({ "agentId": "code" })));
        let export = |more: Value| {
            let mut input = json!({ "agentId": "code" });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            desk.call(&code, "agents_export_audit", input).unwrap()
        };
        let lines = export(json!({ "format": "json_lines" }));
        let read: Vec<Value> = lines["content"].as_str().unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read.iter().map(|line| line["seq"].as_u64().unwrap()).collect::<Vec<_>>(), all, "{lines}");
        assert!(lines.get("next_cursor").is_none() && lines["events"] == all.len());
        let table = export(json!({ "format": "csv", "actionFilter": "request" }));
        let text = table["content"].as_str().unwrap();
        assert!(text.starts_with("seq,id,timestamp,agent,actor,") && text.contains(asked["approvalId"].as_str().unwrap()) && text.contains("PENDING"), "{text}");
        assert!(table["fileName"].as_str().unwrap().ends_with(".csv") && text.lines().count() == 2, "{table}");
        let verify = |who: &Caller, more: Value| {
            let mut input = json!({ "agentId": "code" });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            desk.call(who, "agents_verify_audit", input).unwrap()
        };
        let sound = verify(&code, json!({}));
        assert_eq!((&sound["sound"], sound["events"].as_u64()), (&json!(true), Some(all.len() as u64)), "{sound}");
        assert!(sound["checkpoint"].as_str().unwrap().starts_with("deskmate/test\n"), "{sound}");
        let page = verify(&owner, json!({ "limit": 5 }));
        assert_eq!((&page["events"], verify(&owner, json!({ "cursor": page["next_cursor"] }))["events"].as_u64()), (&json!(5), Some(all.len() as u64 - 5)));
        let other = desk.register(&owner, "third");
        for operation in ["agents_export_audit", "agents_verify_audit"] {
            let format = if operation == "agents_export_audit" { json!({ "agentId": "code", "format": "csv" }) } else { json!({ "agentId": "code" }) };
            assert_code(&desk.refused(&other, operation, format), Code::NotFound);
        }
        // Whoever has the store in hand changes what a line says, or what was sealed.
        desk.tamper("update event set kind = 'action.forgotten' where kind = 'action.logged' and subject = 'execution:3'");
        desk.tamper("update event set body = replace(body, 'mail.send', 'mail.read') where kind = 'action.logged' and subject = 'execution:4'");
        let changed = verify(&owner, json!({}));
        assert_eq!((&changed["sound"], changed["findings"].as_array().unwrap().len()), (&json!(false), 2), "{changed}");
        assert!(changed["message"].as_str().unwrap().contains("2 OF"), "{changed}");
    }

    fn since_an_hour_ago_and_filters_find_what_fits(desk: &TestDesk) {
        let (_, code) = people(desk);
        acts(desk, "code", 10);
        desk.world.pass(Duration::from_hours(30));
        acts(desk, "code", 4);
        let hour_ago = format_time(deskmate_core::World::now(&*desk.world) - 3_600_000_000);
        let recent = log(desk, &code, json!({ "agentId": "code", "startTime": hour_ago }));
        assert_eq!(seqs(&recent).len(), 4, "{recent}");
        let before = log(desk, &code, json!({ "agentId": "code", "endTime": hour_ago, "actionFilter": "MAIL" }));
        assert_eq!(seqs(&before).len(), 5, "{before}");
        assert_eq!(seqs(&log(desk, &code, json!({ "agentId": "code", "actionFilter": "mail", "limit": 2 }))).len(), 2);
        assert!(seqs(&log(desk, &code, json!({ "agentId": "code", "actionFilter": "no such thing" }))).is_empty());
        let mut paged = Vec::new();
        let mut page = log(desk, &code, json!({ "agentId": "code", "actionFilter": "mail", "limit": 3 }));
        loop {
            paged.extend(seqs(&page));
            let Some(cursor) = page.get("next_cursor").cloned() else { break };
            page = log(desk, &code, json!({ "agentId": "code", "actionFilter": "mail", "limit": 3, "cursor": cursor }));
        }
        assert_eq!(paged, seqs(&log(desk, &code, json!({ "agentId": "code", "actionFilter": "mail" }))), "page by page it is the same, each once");
        desk.world.pass(Duration::from_hours(40 * 24));
        assert_eq!(log(desk, &code, json!({ "agentId": "code" }))["summary"]["total"], 0, "the summary is of 30 days");
    }

    fn a_line_says_how_what_waits_stands(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let asked = ask(desk, &code, json!({})).unwrap();
        let line = |desk: &TestDesk| log(desk, &owner, json!({ "agentId": "code" }))["entries"].as_array().unwrap().iter().find(|entry| entry["action"] == "request.created").unwrap().clone();
        assert_eq!((&line(desk)["outcome"], &line(desk)["request"]["state"]), (&json!("PENDING"), &json!("pending")));
        desk.call(&owner, "desk_request_reject", json!({ "request": asked["approvalId"], "reason": "no" })).unwrap();
        assert_eq!((&line(desk)["outcome"], &line(desk)["request"]["state"]), (&json!("BLOCKED"), &json!("rejected")));
    }

    fn an_approval_is_a_request_that_only_the_named_people_decide(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let ada = join(desk, &owner, "ada@example.com", "approver", json!(["desk.agents"]));
        let grace = join(desk, &owner, "Grace", "approver", json!(["*"]));
        let asked = ask(desk, &code, json!({ "approvers": ["ada@example.com"] })).unwrap();
        assert_eq!((&asked["approval"]["riskLevel"], &asked["approval"]["requiredApprovals"]), (&json!("low"), &json!(1)), "{asked}");
        let id = asked["approvalId"].clone();
        assert_code(&desk.refused(&code, "desk_request_approve", json!({ "request": id })), Code::Forbidden);
        assert_code(&desk.refused(&grace, "desk_request_approve", json!({ "request": id })), Code::Forbidden);
        desk.call(&ada, "desk_request_approve", json!({ "request": id })).unwrap();
        let now = desk.call(&code, "agents_get_approval", json!({ "approvalId": id })).unwrap();
        assert_eq!((&now["status"], &now["approvers"]), (&json!("approved"), &json!(["ada@example.com"])), "{now}");
        let begun = desk.call(&code, "cowork_begin", json!({ "proposal_id": id })).unwrap();
        assert_eq!(begun["go"], true, "{begun}");
        assert_eq!(desk.call(&owner, "agents_list_approvals", json!({ "agentId": "code" })).unwrap()["approvals"].as_array().unwrap().len(), 1);
        assert!(desk.verify().sound);
    }

    fn risk_comes_from_the_act_and_the_quorum_is_lowered_only_loudly(desk: &TestDesk) {
        let (owner, code) = people(desk);
        join(desk, &owner, "Grace", "approver", json!(["*"]));
        let two = ask(desk, &code, json!({ "action": "delete_customer", "approvers": ["Owner", "Grace", "Grace"] })).unwrap();
        assert_eq!((&two["approval"]["riskLevel"], &two["approval"]["requiredApprovals"]), (&json!("critical"), &json!(2)), "{two}");
        assert!(two.get("warning").is_none());
        let one = ask(desk, &code, json!({ "action": "delete_customer" })).unwrap();
        assert!(one["approval"]["requiredApprovals"] == 1 && one["warning"].as_str().unwrap().contains("FEWER PEOPLE"), "{one}");
        let shown = desk.call(&owner, "desk_request_get", json!({ "request": one["approvalId"] })).unwrap();
        assert!(shown.to_string().contains("FEWER PEOPLE"), "who decides is told, too: {shown}");
        assert_eq!(ask(desk, &code, json!({ "action": "send_letter" })).unwrap()["approval"]["riskLevel"], "medium");
        for words in ["for production", "financial", "about sensitive customers"] {
            let asked = ask(desk, &code, json!({ "description": words })).unwrap();
            assert_eq!(asked["approval"]["riskLevel"], "low", "what is written about it changes nothing: {asked}");
        }
        for (environment, risk) in [("production", "critical"), ("Prod-EU", "critical"), ("staging", "low")] {
            assert_eq!(ask(desk, &code, json!({ "environment": environment })).unwrap()["approval"]["riskLevel"], risk, "{environment}");
        }
        assert_eq!(ask(desk, &code, json!({ "domain": "finance.payments" })).unwrap()["approval"]["riskLevel"], "critical");
        assert_eq!(ask(desk, &code, json!({ "action": "frobnicate" })).unwrap()["approval"]["riskLevel"], "medium", "what nobody understands is not harmless");
        let rules = "rules:\n  - { name: three, effect: require_approval, quorum: 3, message: three people }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": rules })).unwrap();
        let refused = ask(desk, &code, json!({})).unwrap_err();
        assert!(refused.message.contains("policy asks for 3 people"), "what a rule wants is not lowered: {refused}");
        let there = "rules:\n  - { name: not_live, match: { environment: [live] }, effect: deny, message: not there }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": there })).unwrap();
        assert!(ask(desk, &code, json!({ "environment": "live" })).unwrap()["message"].as_str().unwrap().contains("not there"), "rules see where it would happen");
        desk.call(&owner, "desk_policy_apply", json!({ "document": "rules:\n  - { name: never, effect: deny, message: not here }\n" })).unwrap();
        let denied = ask(desk, &code, json!({})).unwrap();
        assert!(denied.get("approvalId").is_none() && denied["message"].as_str().unwrap().contains("policy forbids it"), "{denied}");
    }

    fn who_is_no_person_here_is_refused_with_how_to_invite_them(desk: &TestDesk) {
        let (owner, code) = people(desk);
        join(desk, &owner, "Viewer", "viewer", json!([]));
        join(desk, &owner, "Elsewhere", "approver", json!(["crm.*"]));
        let stranger = ask(desk, &code, json!({ "approvers": ["nobody@example.com"] })).unwrap_err();
        assert_code(&stranger, Code::Invalid);
        assert!(stranger.hint.unwrap().contains("deskmate person invite"));
        for approvers in [json!([]), json!(["Viewer"]), json!(["Elsewhere"]), json!(["Owner", "nobody@example.com"])] {
            assert_code(&ask(desk, &code, json!({ "approvers": approvers })).unwrap_err(), Code::Invalid);
        }
        ask(desk, &code, json!({ "approvers": ["Elsewhere"], "domain": "crm.deals" })).unwrap();
        for hours in [json!(0), json!(-1), json!(721), json!(1e300)] {
            assert_code(&ask(desk, &code, json!({ "expiresInHours": hours })).unwrap_err(), Code::Invalid);
        }
        for text in [json!({ "action": " " }), json!({ "description": "" })] {
            assert_code(&ask(desk, &code, text).unwrap_err(), Code::Invalid);
        }
    }

    fn an_approver_is_found_by_the_address_at_which_they_are_told(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let mail = OutletRow { name: "mail".into(), kind: ChannelKind::Email, target: "somewhere".into(), digest: "d".into(), tells: false, links: true, addresses: Vec::new() };
        desk.act(move |cx| notify::register(cx, std::slice::from_ref(&mail))).unwrap();
        let ada = join(desk, &owner, "Ada", "approver", json!(["*"]));
        let tell = |who: &Caller| desk.call(who, "desk_subscription_set", json!({ "outlet": "mail", "address": "ada@example.org" })).unwrap();
        assert_code(&ask(desk, &code, json!({ "approvers": ["ada@example.org"] })).unwrap_err(), Code::Invalid);
        tell(&ada);
        // The same address for a digest is another way to the same person.
        desk.call(&ada, "desk_subscription_set", json!({ "outlet": "mail", "name": "weekly", "address": "ada@example.org" })).unwrap();
        let asked = ask(desk, &code, json!({ "approvers": ["Ada@Example.org"] })).unwrap();
        assert_eq!(asked["approval"]["approvers"], json!(["Ada"]), "{asked}");
        desk.call(&ada, "desk_request_approve", json!({ "request": asked["approvalId"] })).unwrap();
        let grace = join(desk, &owner, "Grace", "approver", json!(["*"]));
        tell(&grace);
        let refused = ask(desk, &code, json!({ "approvers": ["ada@example.org"] })).unwrap_err();
        assert_code(&refused, Code::Invalid);
        assert_eq!(ask(desk, &code, json!({ "approvers": ["Ada"] })).unwrap()["approval"]["approvers"], json!(["Ada"]), "by name she is still found");
    }

    fn an_agent_asks_for_itself_and_for_those_that_it_made(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let other = desk.register(&owner, "other");
        join(desk, &owner, "Grace", "approver", json!(["*"]));
        let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "ada", "content": "hello" } }]);
        let made = desk.call(&code, "agents_create_agent", json!({ "description": "Tell Ada", "name": "teller", "steps": steps })).unwrap();
        let asked = ask(desk, &code, json!({ "agentId": made["agentId"] })).unwrap();
        assert_eq!(asked["approval"]["agent"], "teller");
        assert_code(&ask(desk, &other, json!({})).unwrap_err(), Code::NotFound);
        assert_code(&ask(desk, &other, json!({ "agentId": "teller" })).unwrap_err(), Code::NotFound);
        for operation in ["agents_get_approval", "agents_cancel_approval"] {
            assert_code(&desk.refused(&other, operation, json!({ "approvalId": asked["approvalId"] })), Code::NotFound);
        }
        let cancelled = desk.call(&code, "agents_cancel_approval", json!({ "approvalId": asked["approvalId"], "reason": "not needed" })).unwrap();
        assert_eq!(cancelled["status"], "cancelled");
        assert_code(&desk.refused(&code, "agents_cancel_approval", json!({ "approvalId": asked["approvalId"] })), Code::Conflict);
        let own = ask(desk, &code, json!({ "expiresInHours": 1 })).unwrap();
        desk.world.pass(Duration::from_hours(2));
        assert_eq!(desk.call(&code, "agents_get_approval", json!({ "approvalId": own["approvalId"] })).unwrap()["status"], "expired");
        let input = json!({ "agentId": "code", "action": "read", "description": "x", "approvers": ["Grace"] });
        let asks = desk.call_on(Surface::Rest, &owner, "agents_request_approval", input).unwrap();
        assert_eq!(asks["approval"]["agent"], "code", "a person asks for an agent");
        assert!(desk.verify().sound);
    }

    fn whoever_asks_in_an_agents_name_does_not_decide_it(desk: &TestDesk) {
        let (owner, code) = people(desk);
        let grace = join(desk, &owner, "Grace", "approver", json!(["*"]));
        let token = desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": ["agents"] })).unwrap();
        let token = Caller::Secret(token["token"].as_str().unwrap_or_else(|| panic!("{token}")).to_owned());
        let me = desk.call(&owner, "desk_whoami", json!({})).unwrap()["id"].clone();
        let until = format_time(deskmate_core::World::now(&*desk.world) + 3_600_000_000);
        desk.call(&grace, "desk_stand_in_name", json!({ "stand_in": "Owner", "until": until })).unwrap();
        let as_a_person = |who: &Caller, approvers: Value| {
            desk.call_on(Surface::Rest, who, "agents_request_approval", json!({ "agentId": "code", "action": "delete_customer", "description": "x", "approvers": approvers }))
        };
        for who in [&owner, &token] {
            for approvers in [json!(["Owner"]), json!(["Grace", "Owner"])] {
                let refused = as_a_person(who, approvers).unwrap_err();
                assert_code(&refused, Code::Invalid);
                assert!(refused.message.contains("you ask for it"), "{refused}");
            }
            // Not as the stand-in of somebody who is named either, and nobody gives it to them.
            let asked = as_a_person(who, json!(["Grace"])).unwrap();
            let request = json!({ "request": asked["approvalId"] });
            for operation in ["desk_request_approve", "desk_request_reject"] {
                let mut input = request.clone();
                input["reason"] = json!("because");
                let refused = desk.refused(&owner, operation, input);
                assert_code(&refused, Code::Forbidden);
                assert!(refused.message.contains("you ask for it"), "{refused}");
            }
            assert_code(&desk.refused(&grace, "desk_request_delegate", json!({ "request": asked["approvalId"], "to": "Owner" })), Code::Invalid);
            assert_eq!(desk.call(&grace, "desk_request_get", request.clone()).unwrap()["asked_by"], me);
            desk.call(&grace, "desk_request_approve", request).unwrap();
            let begun = desk.call(&code, "cowork_begin", json!({ "proposal_id": asked["approvalId"] })).unwrap();
            assert_eq!(begun["go"], true, "{begun}");
        }
        // Who cannot reject it takes it back.
        let asked = as_a_person(&owner, json!(["Grace"])).unwrap();
        assert_eq!(desk.call(&owner, "agents_cancel_approval", json!({ "approvalId": asked["approvalId"] })).unwrap()["status"], "cancelled");
        // A row in which somebody erased who asked is not what the record tells.
        let asked = as_a_person(&owner, json!(["Grace"])).unwrap();
        assert!(desk.verify().sound);
        desk.tamper("update request set asked_by = null where state = 'pending'");
        assert!(!desk.verify().sound);
        assert_code(&desk.refused(&owner, "desk_request_approve", json!({ "request": asked["approvalId"] })), Code::Conflict);
    }
}
