//! Handing work to people and getting it back.

use deskmate_core::Code;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

use super::{SALES, SUPPORT, in_force, is, no, ok, proposed, sound, text, told};

fn handoff() -> Value {
    json!({ "domain": "crm", "reason": "two records disagree", "confidence": 0.3, "attempted_actions": "[\"merge\"]", "context": "{\"deal\": 1}" })
}

/// A handoff in a domain that an owner answers.
fn answered(desk: &TestDesk, owner: &Caller, domain: &str) {
    let mut input = handoff();
    input["domain"] = json!(domain);
    let id = text(&ok(desk, &SALES, "handoff", input), "handoff_id");
    ok(desk, owner, "resolve_handoff", json!({ "handoff_id": id, "resolution": "done" }));
}

both! {
    fn who_is_stopped_hands_nothing_over(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "rules:\n      - { name: not-here, match: { kind: [handoff], domain: [quiet] }, effect: deny, message: nobody is here, alternative: use crm }\n      - { name: no-sums, when: args.amount > 5, effect: deny, message: too much }\n      - { field: goal, constraint: readonly }");
        let mut input = handoff();
        input["goal"] = json!("one record");
        // A rule for all kinds of acts does not keep an agent from asking for help.
        ok(desk, &SALES, "handoff", input.clone());
        input["domain"] = json!("quiet");
        let refused = no(desk, &SALES, "handoff", input);
        assert_code(&refused, Code::Forbidden);
        assert_eq!((refused.message.as_str(), refused.hint.as_deref()), ("nobody is here", Some("use crm")));
        desk.seal();
        let denied = told(desk, &owner, "act.denied");
        assert_eq!((denied.len(), &denied[0]["facts"]["rules"][0]["rule"]), (1, &json!("not-here")), "{denied:?}");
        // The kill switch holds for handoffs too.
        desk.call(&owner, "desk_pause", json!({ "agent": "sales" })).unwrap();
        let refused = no(desk, &SALES, "handoff", handoff());
        assert_code(&refused, Code::Forbidden);
        assert!(refused.message.contains("paused") && refused.hint.is_some(), "{refused:?}");
        assert_eq!(ok(desk, &owner, "status", json!({}))["open_handoffs"], 1);
        desk.call(&owner, "desk_resume", json!({ "agent": "sales" })).unwrap();
        ok(desk, &SALES, "handoff", handoff());
        sound(desk);
    }

    fn who_was_denied_too_much_hands_nothing_over_for_a_while(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "rules:\n      - { field: id, constraint: readonly }");
        while ok(desk, &SALES, "propose", super::proposal("crm", json!({ "id": 1 })))["volume_cap_error"] != true {}
        assert_code(&no(desk, &SALES, "handoff", handoff()), Code::Limited);
        assert_eq!(ok(desk, &owner, "status", json!({}))["open_handoffs"], 0);
    }

    fn what_does_not_fit_into_an_answer_is_said(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "authority: { pending_max: 1000 }");
        for _ in 0..200 {
            answered(desk, &owner, "crm");
        }
        let all = ok(desk, &SALES, "check_handoff", json!({}));
        assert_eq!((&all["count"], &all["more"], &all["more_handoffs"]), (&json!(200), &json!(false), &json!(false)));
        answered(desk, &owner, "tickets");
        let all = ok(desk, &SALES, "check_handoff", json!({}));
        assert_eq!((&all["count"], &all["more"]), (&json!(200), &json!(true)), "one more waits than the answer holds");
        // Looking at one domain finds what stands behind the others.
        let one = ok(desk, &SALES, "check_handoff", json!({ "domain": "tickets" }));
        assert_eq!((&one["count"], &one["more"], &one["pending_instructions"][0]["domain"]), (&json!(1), &json!(false), &json!("tickets")));
        let left = ok(desk, &SALES, "acknowledge_instructions", json!({ "instruction_ids": [one["pending_instructions"][0]["instruction_id"]] }));
        assert_eq!(left["waiting"], 200);
        let mut input = handoff();
        for _ in 0..201 {
            ok(desk, &SALES, "handoff", input.clone());
        }
        input["domain"] = json!("tickets");
        ok(desk, &SALES, "handoff", input);
        assert_eq!(ok(desk, &SALES, "check_handoff", json!({}))["more_handoffs"], true);
        let one = ok(desk, &SALES, "check_handoff", json!({ "domain": "tickets" }));
        assert_eq!((one["pending_handoffs"].as_array().unwrap().len(), &one["more_handoffs"]), (1, &json!(false)));
    }

    fn what_was_shown_is_what_is_answered(desk: &TestDesk) {
        let owner = desk.claim();
        let id = text(&ok(desk, &SALES, "handoff", handoff()), "handoff_id");
        let mut answer = json!({ "handoff_id": id, "resolution": "the second one", "expected_digest": "00" });
        assert_code(&no(desk, &owner, "resolve_handoff", answer.clone()), Code::Conflict);
        assert_eq!(ok(desk, &SALES, "check_handoff", json!({}))["pending_instructions"], json!([]), "nothing was answered");
        answer["expected_digest"] = desk.call(&owner, "desk_request_get", json!({ "request": id })).unwrap()["digest"].clone();
        assert_eq!(ok(desk, &owner, "resolve_handoff", answer)["resolved"], true);
        sound(desk);
    }

    fn a_packet_holds_everything_a_person_needs(desk: &TestDesk) {
        let owner = desk.claim();
        let open = proposed(desk, &SALES, "crm");
        let mut input = handoff();
        for (field, value) in [
            ("goal", json!("one record")),
            ("state", json!("{\"records\": 2}")),
            ("ruled_out", json!(["merging by name: two Smiths"])),
            ("open_requests", json!([open])),
            ("proposal_id", json!(open)),
            ("priority", json!("high")),
            ("assignee", json!("Owner")),
            ("timeout_seconds", json!(600)),
        ] {
            input[field] = value;
        }
        let handed = ok(desk, &SALES, "handoff", input);
        assert_eq!((&handed["mode"], &handed["proposal_id"]), (&json!("escalate"), &json!(open)));
        let packet = &handed["context_packet"];
        assert_eq!((&packet["goal"], &packet["state"], &packet["tried"]), (&json!("one record"), &json!({ "records": 2 }), &json!(["merge"])));
        assert_eq!((&packet["ruled_out"][0], &packet["open_requests"][0]["state"]), (&json!("merging by name: two Smiths"), &json!("pending")));
        assert_eq!((&packet["reasoning"], &packet["context"]), (&json!("two records disagree"), &json!({ "deal": 1 })));
        assert!(is(&packet["confidence"], 0.3) && handed["escalates_at"].is_string(), "{handed}");
        // The person sees it in the status and in the queue.
        let status = ok(desk, &owner, "status", json!({}));
        let shown = &status["handoffs"][0];
        assert_eq!((&shown["handoff_id"], &shown["priority"], &shown["reason"], &shown["context"]), (&handed["handoff_id"], &json!("high"), &json!("two records disagree"), packet));
        let request = ok(desk, &owner, "get_request", json!({ "request_id": handed["handoff_id"] }));
        assert_eq!((&request["request"]["kind"], &request["request"]["context"]), (&json!("handoff"), packet));
        assert!(request["request"]["assignee"].is_string());
        // Another agent's requests are nobody's to hand over.
        let mut stolen = handoff();
        stolen["proposal_id"] = json!(open);
        assert_code(&no(desk, &SUPPORT, "handoff", stolen), Code::NotFound);
    }

    fn settings_of_handoffs_have_their_effect(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "handoff: { include_reasoning: false, include_confidence: false, include_attempted: false, timeout_seconds: 60 }\ndomains: { text: { handoff: { context_format: text, include_reasoning: true } } }");
        let handed = ok(desk, &SALES, "handoff", handoff());
        let packet = &handed["context_packet"];
        for left_out in ["reasoning", "confidence", "tried"] {
            assert!(packet.get(left_out).is_none(), "{packet}");
        }
        let shown = ok(desk, &owner, "get_request", json!({ "request_id": handed["handoff_id"] })).to_string();
        assert!(!shown.contains("two records disagree") && !shown.contains("merge"), "{shown}");
        let mut input = handoff();
        input["domain"] = json!("text");
        let packet = ok(desk, &SALES, "handoff", input)["context_packet"].clone();
        assert!(text(&packet, "text").contains("reasoning: two records disagree") && packet.as_object().unwrap().len() == 1, "{packet}");
        // A minute without an answer, and it goes to the owners.
        super::pass(desk, 61);
        desk.act(|cx| deskmate_core::request::escalate_due(cx, 10)).unwrap();
        assert_eq!(told(desk, &owner, "request.escalated").len(), 2);
    }

    fn a_handoff_goes_to_the_owners_before_it_expires(desk: &TestDesk) {
        desk.claim();
        in_force(desk, "authority: { request_seconds: 600 }\nhandoff: { timeout_seconds: 3600 }");
        let mut long = handoff();
        long["timeout_seconds"] = json!(30 * 86_400);
        for input in [handoff(), long] {
            let handed = ok(desk, &SALES, "handoff", input);
            assert!(text(&handed, "escalates_at") < text(&handed, "expires_at"), "{handed}");
        }
        super::pass(desk, 3_601);
        assert_eq!(desk.act(|cx| Ok((deskmate_core::request::expire_due(cx, 10)?, deskmate_core::request::escalate_due(cx, 10)?))).unwrap(), (0, 1));
        assert_eq!(told(desk, &super::signed_in(desk), "request.escalated").len(), 1);
        // Then the owners have as long as anybody has.
        super::pass(desk, 600);
        assert_eq!(desk.act(|cx| deskmate_core::request::expire_due(cx, 10)).unwrap(), 1);
    }

    fn a_handoff_is_for_somebody_who_can_answer_it(desk: &TestDesk) {
        let owner = desk.claim();
        for (name, role, domains) in [("Ann", "approver", json!(["billing"])), ("Mo", "member", json!([])), ("Bea", "approver", json!(["crm"]))] {
            let link = desk.call(&owner, "desk_person_invite", json!({ "name": name, "role": role, "domains": domains })).unwrap();
            desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": link["code"], "passphrase": "correct horse" })).unwrap();
        }
        let to = |name: &str| {
            let mut input = handoff();
            input["assignee"] = json!(name);
            input
        };
        for name in ["Ann", "Mo"] {
            let refused = no(desk, &SALES, "handoff", to(name));
            assert_eq!((refused.code, refused.field.as_deref()), (Code::Invalid, Some("assignee")), "{refused}");
            assert!(refused.message.contains("decides in crm"), "{refused}");
        }
        for name in ["Bea", "Owner"] {
            ok(desk, &SALES, "handoff", to(name));
        }
    }

    fn every_mode_of_handing_over_is_known(desk: &TestDesk) {
        for mode in ["escalate", "review", "collaborate", "delegate", "takeover"] {
            let mut input = handoff();
            input["handoff_mode"] = json!(mode);
            assert_eq!(ok(desk, &SALES, "handoff", input)["mode"], mode);
        }
        let mut wrong = handoff();
        wrong["handoff_mode"] = json!("abandon");
        assert_code(&no(desk, &SALES, "handoff", wrong), Code::Invalid);
    }

    fn an_answer_from_the_inbox_is_delivered_too(desk: &TestDesk) {
        let owner = desk.claim();
        let id = text(&ok(desk, &SALES, "handoff", handoff()), "handoff_id");
        desk.call(&owner, "desk_request_approve", json!({ "request": id, "reason": "keep the older one" })).unwrap();
        let waited = ok(desk, &SALES, "wait_for_decision", json!({ "request_id": id }));
        assert_eq!((&waited["decided"], &waited["request"]["instructions"][0]["instructions"]), (&json!(true), &json!("keep the older one")), "{waited}");
        let check = ok(desk, &SALES, "check_handoff", json!({}));
        assert_eq!((&check["pending_instructions"][0]["instructions"], &check["pending_instructions"][0]["hand_back"]), (&json!("keep the older one"), &json!(true)));
        // Refused by the inbox: it is not resolved, and says so.
        let id = text(&ok(desk, &SALES, "handoff", handoff()), "handoff_id");
        desk.call(&owner, "desk_request_reject", json!({ "request": id, "reason": "not ours" })).unwrap();
        assert_eq!(ok(desk, &SALES, "wait_for_decision", json!({ "request_id": id }))["request"]["state"], "rejected");
        assert_eq!(ok(desk, &owner, "resolve_handoff", json!({ "handoff_id": id, "resolution": "r" }))["error"], true);
        // Trust is not moved by handoffs.
        assert_eq!(ok(desk, &SALES, "check_trust", json!({ "domain": "crm" }))["sample_size"], 0);
        sound(desk);
    }

    fn a_handoff_that_was_rejected_or_expired_is_told_until_acknowledged(desk: &TestDesk) {
        let owner = desk.claim();
        let me = text(&desk.call(&owner, "desk_whoami", json!({})).unwrap(), "id");
        let rejected = text(&ok(desk, &SALES, "handoff", handoff()), "handoff_id");
        desk.call(&owner, "desk_request_reject", json!({ "request": rejected, "reason": "not ours" })).unwrap();
        let expired = text(&ok(desk, &SALES, "handoff", handoff()), "handoff_id");
        super::pass(desk, 8 * 86_400);
        // What has expired is not gone before the desk has told so.
        let check = ok(desk, &SALES, "check_handoff", json!({}));
        assert_eq!((&check["pending_handoffs"][1]["handoff_id"], &check["pending_handoffs"][1]["status"]), (&json!(expired), &json!("expired")), "{check}");
        desk.act(|cx| deskmate_core::request::expire_due(cx, 10)).unwrap();
        for _ in 0..2 {
            let check = ok(desk, &SALES, "check_handoff", json!({}));
            let (no, late) = (&check["pending_instructions"][0], &check["pending_instructions"][1]);
            assert_eq!((&no["handoff_id"], &no["resolution"], &no["resolved_by"]), (&json!(rejected), &json!("not ours"), &json!(me)), "{check}");
            assert_eq!((&late["handoff_id"], &late["resolution"]), (&json!(expired), &json!("nobody answered before this expired")));
            assert_eq!(late.get("resolved_by"), None, "{late}");
            for said in [no, late] {
                assert_eq!((&said["hand_back"], &said["instructions"]), (&json!(false), &Value::Null));
            }
            let status: Vec<&Value> = check["pending_handoffs"].as_array().unwrap().iter().map(|handoff| &handoff["status"]).collect();
            assert_eq!(status, ["rejected", "expired"]);
        }
        let timeline = ok(desk, &SALES, "status", json!({}))["timeline"].to_string();
        assert!(timeline.contains("nobody answered what sales handed over in crm"), "{timeline}");
        for id in [rejected, expired] {
            ok(desk, &SALES, "acknowledge_instructions", json!({ "handoff_id": id }));
        }
        let check = ok(desk, &SALES, "check_handoff", json!({}));
        assert_eq!((&check["count"], &check["pending_handoffs"]), (&json!(0), &json!([])), "{check}");
        // What the agent took back itself, it knows.
        let id = text(&ok(desk, &SALES, "handoff", handoff()), "handoff_id");
        ok(desk, &SALES, "cancel_request", json!({ "request_id": id }));
        assert_eq!(ok(desk, &SALES, "check_handoff", json!({}))["count"], 0);
        sound(desk);
    }

    fn each_answer_names_who_gave_it(desk: &TestDesk) {
        let owner = desk.claim();
        let link = desk.call(&owner, "desk_person_invite", json!({ "name": "Ann", "role": "approver", "domains": ["*"] })).unwrap();
        let joined = desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": link["code"], "passphrase": "correct horse" })).unwrap();
        let ann = Caller::Secret(text(&joined, "session"));
        let [first, second] = [&owner, &ann].map(|person| text(&desk.call(person, "desk_whoami", json!({})).unwrap(), "id"));
        let id = text(&ok(desk, &SALES, "handoff", handoff()), "handoff_id");
        for person in [&owner, &ann] {
            ok(desk, person, "resolve_handoff", json!({ "handoff_id": id, "resolution": "r" }));
        }
        let check = ok(desk, &SALES, "check_handoff", json!({}));
        let by: Vec<String> = check["pending_instructions"].as_array().unwrap().iter().map(|said| text(said, "resolved_by")).collect();
        assert_eq!(by, [first, second]);
        sound(desk);
        // The name is on the record: another one in its place is noticed.
        desk.tamper("update instruction set person = 'somebody' where number = 2");
        assert!(!desk.verify().sound);
    }

    fn either_flag_hands_back_and_instructions_alone_do_not(desk: &TestDesk) {
        let owner = desk.claim();
        let resolve = |fields: Value| {
            let id = text(&ok(desk, &SALES, "handoff", handoff()), "handoff_id");
            let mut input = json!({ "handoff_id": id, "resolution": "r" });
            input.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            (ok(desk, &owner, "resolve_handoff", input), id)
        };
        for flag in ["hand_back", "hand_back_to_agent"] {
            let (resolved, _) = resolve(json!({ flag: true, "instructions": "i" }));
            assert_eq!((&resolved["hand_back"], &resolved["instructions"]), (&json!(true), &json!("i")));
        }
        let (plain, id) = resolve(json!({ "instructions": "i" }));
        assert!(plain.get("hand_back").is_none() && plain.get("instructions").is_none(), "{plain}");
        // What was said is delivered all the same.
        let check = ok(desk, &SALES, "check_handoff", json!({}));
        let said = check["pending_instructions"].as_array().unwrap().iter().find(|said| said["handoff_id"] == json!(id)).unwrap();
        assert_eq!((&said["instructions"], &said["hand_back"]), (&json!("i"), &json!(false)));
    }
}
