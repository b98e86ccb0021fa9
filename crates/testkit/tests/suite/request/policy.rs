//! Requests under policies that change, and what people's answers do to trust.

use deskmate_core::Code;
use deskmate_core::call::Surface;
use deskmate_core::policy::{Document, Mode};
use deskmate_core::request::{self, New, Requester, State, StopReason};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

use super::support::{
    act, approve, as_agent, begin, code, decision, find, get, go, invite, kinds, of_person, pass, pending, proposal, run, score, show_presence, sound, stopped,
    submit,
};

fn apply(desk: &TestDesk, owner: &Caller, text: &str) {
    show_presence(desk, owner);
    desk.call(owner, "desk_policy_apply", json!({ "document": text })).unwrap();
}

const DENY: &str = "rules: [{ name: freeze, match: { domain: [crm.deals] }, effect: deny, message: books are closed }]\n";

both! {
    fn what_policy_forbids_today_does_not_begin(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        apply(desk, &owner, DENY);
        let stop = stopped(desk, &made.id);
        assert_eq!(stop.why, StopReason::Forbidden);
        assert!(stop.message.contains("books are closed"), "{}", stop.message);
        let row = find(desk, &made.id);
        assert_eq!((row.state, row.decided_by.as_deref()), (State::Rejected, Some("desk")));
        assert!(get(desk, &owner, &made.id)["grant"]["revoked_at"].is_string());
        assert!(kinds(desk, &owner, 2).contains(&"request.stopped".to_owned()));
        assert_code(&begin(desk, &made.id).unwrap_err(), Code::Conflict);
        sound(desk);
    }

    fn what_policy_asks_for_today_is_asked_for_again(desk: &TestDesk) {
        let owner = desk.claim();
        let ann = invite(desk, &owner, "Ann", "owner", &[]);
        let made = pending(desk);
        approve(desk, &owner, &made.id).unwrap();
        let with = score(desk);
        apply(desk, &owner, "rules: [{ name: two, match: { domain: [crm.deals] }, effect: require_approval, quorum: 2 }]\n");
        assert_eq!(stopped(desk, &made.id).why, StopReason::Stricter);
        let row = find(desk, &made.id);
        assert_eq!((row.state, row.quorum, row.round), (State::Pending, 2, 2));
        assert!(score(desk) < with, "the answer no longer stands, so it no longer counts");
        approve(desk, &owner, &made.id).unwrap();
        assert_eq!(approve(desk, &ann, &made.id).unwrap()["approved"], true);
        go(desk, &made.id);
        sound(desk);
    }

    fn what_passed_without_a_person_needs_the_same_answer_again(desk: &TestDesk) {
        desk.claim();
        let made = submit(desk, "code", &New { decision: decision(Mode::Act), ..proposal() });
        assert_eq!(stopped(desk, &made.id).why, StopReason::Stricter, "its trust does not carry it today");
        assert_eq!(find(desk, &made.id).state, State::Pending);
        sound(desk);
    }

    fn nobody_approves_what_policy_forbids(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        apply(desk, &owner, "policies: [{ id: crm, rules: [{ field: amount, constraint: value_range, max: 400, reason: too much }] }]\nmappings: [{ agent_id: code, domain: '*', policy_id: crm }]\n");
        let refused = code(approve(desk, &owner, &made.id));
        assert_code(&refused, Code::Conflict);
        assert!(refused.message.contains("too much"), "{refused}");
        let worse = desk.refused(&owner, "desk_request_approve", json!({ "request": made.id, "edits": { "amount": 900 } }));
        assert_code(&worse, Code::Conflict);
        assert_eq!(find(desk, &made.id).round, 1, "a refused edit leaves nothing behind");
        desk.call(&owner, "desk_request_approve", json!({ "request": made.id, "edits": { "amount": 300 } })).unwrap();
        assert_eq!(go(desk, &made.id).arguments, json!({ "amount": 300 }));
        sound(desk);
    }

    fn a_token_that_policy_names_decides_but_nothing_grave(desk: &TestDesk) {
        let owner = desk.claim();
        apply(desk, &owner, "authority: { token_deciders: [Owner] }\n");
        let token = |scopes: Value| {
            let made = desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": scopes })).unwrap();
            Caller::Secret(made["token"].as_str().unwrap().to_owned())
        };
        let all = token(json!(["*"]));
        for surface in [Surface::Mcp, Surface::Rest] {
            let made = pending(desk);
            desk.call_on(surface, &all, "desk_request_approve", json!({ "request": made.id })).unwrap();
        }
        let mut grave = decision(Mode::Suggest);
        grave.risk = "high".to_owned();
        let made = submit(desk, "code", &New { decision: grave, ..proposal() });
        assert_code(&desk.refused(&all, "desk_request_approve", json!({ "request": made.id })), Code::Forbidden);
        let narrow = token(json!(["desk:read"]));
        let made = pending(desk);
        assert_code(&desk.refused(&narrow, "desk_request_approve", json!({ "request": made.id })), Code::Forbidden);
        assert_code(&desk.call_on(Surface::Mcp, &owner, "desk_request_approve", json!({ "request": made.id })).unwrap_err(), Code::Forbidden);
        sound(desk);
    }

    fn a_remembered_approval_stands_in_for_trust_and_nothing_else(desk: &TestDesk) {
        let owner = desk.claim();
        desk.register(&owner, "code");
        let code_agent = deskmate_core::call::Actor::agent("code", true);
        let judge = |arguments: Value, change: fn(&mut deskmate_core::policy::Act)| {
            let mut like = act(arguments);
            change(&mut like);
            run(desk, &code_agent, Surface::Mcp, move |cx| request::judge(cx, &like, &Requester::of(&cx.actor.clone()), false)).unwrap().mode
        };
        assert_eq!(judge(json!({ "amount": 7 }), |_| ()), Mode::Escalate);
        let new = proposal();
        let made = run(desk, &code_agent, Surface::Mcp, move |cx| request::submit(cx, new.clone())).unwrap();
        show_presence(desk, &owner);
        let approved = desk.call(&owner, "desk_request_approve", json!({ "request": made.id, "remember": "session", "hours": 2 })).unwrap();
        assert_eq!(judge(json!({ "amount": 7 }), |_| ()), Mode::Act);
        assert_ne!(judge(json!({ "amount": 7, "note": "x" }), |_| ()), Mode::Act, "another field");
        assert_ne!(judge(json!({ "amount": 7 }), |act| act.taint.push("web".to_owned())), Mode::Act, "from outside");
        assert_ne!(judge(json!({ "amount": 7 }), |act| act.action = "delete".to_owned()), Mode::Act, "another action");
        assert_ne!(judge(json!({ "amount": 7 }), |act| act.domain = "billing".to_owned()), Mode::Act, "another domain");
        assert_ne!(judge(json!({ "amount": 7 }), |act| act.field = Some("deal_stage".to_owned())), Mode::Act, "a high-risk field");
        pass(desk, 2 * 3_600 + 1);
        assert_eq!(judge(json!({ "amount": 7 }), |_| ()), Mode::Escalate, "its time is over");
        show_presence(desk, &owner);
        let new = proposal();
        let made = run(desk, &code_agent, Surface::Mcp, move |cx| request::submit(cx, new.clone())).unwrap();
        desk.call(&owner, "desk_request_approve", json!({ "request": made.id, "remember": "session" })).unwrap();
        assert_eq!(judge(json!({ "amount": 7 }), |_| ()), Mode::Act);
        desk.call(&owner, "desk_request_undo", json!({ "request": made.id })).unwrap();
        assert_eq!(judge(json!({ "amount": 7 }), |_| ()), Mode::Escalate, "it went with the approval");
        assert!(approved["standing_approval"]["expires_at"].is_string());
        sound(desk);
    }

    fn a_remembered_approval_ends_with_the_role_of_whoever_gave_it(desk: &TestDesk) {
        let owner = desk.claim();
        let ann = invite(desk, &owner, "Ann", "approver", &["crm.*"]);
        let made = pending(desk);
        desk.call(&ann, "desk_request_approve", json!({ "request": made.id, "remember": "session" })).unwrap();
        let waived = || as_agent(desk, "code", |cx| request::waived_by(cx, "code", &proposal().act)).unwrap();
        assert_eq!(waived().as_deref(), Some(made.id.as_str()));
        desk.call(&owner, "desk_person_change", json!({ "person": super::support::person_id(desk, &ann), "domains": ["billing"] })).unwrap();
        assert_eq!(waived(), None);
    }

    fn a_person_needs_a_second_one_only_where_policy_says(desk: &TestDesk) {
        let owner = desk.claim();
        let judge = |domain: &'static str| desk.act(move |cx| {
            let act = deskmate_core::policy::Act { domain: domain.to_owned(), ..act(json!({ "amount": 7 })) };
            request::judge(cx, &act, &of_person("p"), false)
        }).unwrap().mode;
        apply(desk, &owner, "policies: [{ id: crm, rules: [] }]\nmappings: [{ agent_id: code, domain: crm.deals, policy_id: crm }]\nrules: [{ name: four-eyes, match: { domain: [payroll] }, effect: require_approval }, { name: never, match: { domain: [prod] }, effect: deny }]\n");
        assert_eq!((judge("crm.deals"), judge("payroll"), judge("prod")), (Mode::Act, Mode::Suggest, Mode::Deny));
    }

    fn what_a_person_has_to_see_a_person_may_do(desk: &TestDesk) {
        let owner = desk.claim();
        let judge = |domain: &'static str, change: Value, who: Requester| desk.act(move |cx| {
            let act = deskmate_core::policy::Act { domain: domain.to_owned(), ..act(change.clone()) };
            request::judge(cx, &act, &who, false)
        }).unwrap().mode;
        let person = || of_person("p");
        // Fields of high risk on this desk, in a policy, and a text that may touch any of them.
        apply(desk, &owner, "policies: [{ id: pay, rules: [{ field: salary, constraint: high_risk }, { field: grade, constraint: readonly }] }]\nmappings: [{ agent_id: '*', domain: pay.all, policy_id: pay }, { agent_id: '*', domain: crm.*, policy_id: default }]\nrules: [{ name: four-eyes, match: { domain: [crm.gifts] }, effect: require_approval }]\n");
        for change in [json!({ "owner": "bo" }), json!({ "change": "make it better" }), json!("make it better")] {
            assert_eq!(judge("crm.deals", change.clone(), person()), Mode::Act, "{change}");
            assert_eq!(judge("crm.gifts", change.clone(), person()), Mode::Suggest, "a second person is asked for: {change}");
            let (agent, token) = (Requester::agent("code", true), Requester { verified: false, ..person() });
            assert!(judge("crm.deals", change.clone(), agent) < Mode::Act && judge("crm.deals", change.clone(), token) < Mode::Act, "nobody is there: {change}");
        }
        assert_eq!(judge("pay.all", json!({ "salary": 7 }), person()), Mode::Act);
        assert_eq!(judge("pay.all", json!({ "grade": 7 }), person()), Mode::Deny);
        assert_eq!(judge("pay.all", json!({ "change": "more for me" }), person()), Mode::Suggest, "what it may not touch cannot be seen");
        // Where more fires than is named, what is left out may ask for somebody else.
        let many: serde_json::Map<String, Value> = (0..200).map(|number| (format!("billing_{number}"), json!(1))).collect();
        assert_eq!(judge("crm.deals", Value::Object(many), person()), Mode::Suggest);
    }

    fn a_promotion_waits_for_a_person(desk: &TestDesk) {
        let owner = desk.claim();
        let promotions = || desk.call(&owner, "desk_request_list", json!({ "kind": "promotion" })).unwrap()["requests"].as_array().unwrap().clone();
        apply(desk, &owner, "trust: { auto_promote_after: 3 }\nfeedback: { approval_trust_impact: 0.01 }\n");
        for _ in 0..3 {
            assert!(promotions().is_empty());
            approve(desk, &owner, &pending(desk).id).unwrap();
        }
        let asked = promotions();
        assert_eq!((asked.len(), asked[0]["requester"].as_str(), asked[0]["risk"].as_str()), (1, Some("code"), Some("high")));
        let id = asked[0]["request"].as_str().unwrap();
        pass(desk, 61);
        assert_code(&code(approve(desk, &owner, id)), Code::Forbidden);
        show_presence(desk, &owner);
        approve(desk, &owner, id).unwrap();
        assert!((score(desk) - 0.5).abs() < 1e-9);
        assert!(promotions().is_empty());
        sound(desk);
    }

    fn a_promotion_is_asked_for_after_an_override_too(desk: &TestDesk) {
        let owner = desk.claim();
        let promotions = || desk.call(&owner, "desk_request_list", json!({ "kind": "promotion" })).unwrap()["requests"].as_array().unwrap().len();
        apply(desk, &owner, "trust: { auto_promote_after: 5 }\nfeedback: { approval_trust_impact: 0.01 }\n");
        for _ in 0..4 {
            approve(desk, &owner, &pending(desk).id).unwrap();
        }
        assert_eq!(promotions(), 0);
        super::support::reject(desk, &owner, &pending(desk).id).unwrap();
        assert_eq!(promotions(), 1, "four of five");
        sound(desk);
    }

    fn a_promotion_happens_alone_where_the_settings_say_so(desk: &TestDesk) {
        // Guard: `promote_alone` in `trust::approved`.
        let owner = desk.claim();
        apply(desk, &owner, "trust: { auto_promote_after: 3, promotion: auto }\nfeedback: { approval_trust_impact: 0.01 }\n");
        for _ in 0..2 {
            approve(desk, &owner, &pending(desk).id).unwrap();
        }
        assert!((score(desk) - 0.32).abs() < 1e-9, "nothing is due yet");
        approve(desk, &owner, &pending(desk).id).unwrap();
        assert!((score(desk) - 0.5).abs() < 1e-9, "the next threshold at once");
        let asked = desk.call(&owner, "desk_request_list", json!({ "kind": "promotion", "view": "all" })).unwrap();
        assert_eq!(asked["requests"], json!([]), "nobody is asked");
        let told = desk.call(&owner, "desk_record_list", json!({ "kind": "trust.changed" })).unwrap();
        assert_eq!((&told["events"][0]["facts"]["cause"], &told["events"][0]["facts"]["target"]), (&json!("promoted"), &json!(500_000_000)));
        sound(desk);
    }

    fn a_refused_promotion_begins_anew(desk: &TestDesk) {
        let owner = desk.claim();
        apply(desk, &owner, "trust: { auto_promote_after: 2 }\n");
        let promotions = || desk.call(&owner, "desk_request_list", json!({ "kind": "promotion" })).unwrap()["requests"].as_array().unwrap().clone();
        for _ in 0..2 {
            approve(desk, &owner, &pending(desk).id).unwrap();
        }
        let id = promotions()[0]["request"].as_str().unwrap().to_owned();
        super::support::reject(desk, &owner, &id).unwrap();
        let before = score(desk);
        approve(desk, &owner, &pending(desk).id).unwrap();
        assert!(promotions().is_empty());
        approve(desk, &owner, &pending(desk).id).unwrap();
        assert_eq!(promotions().len(), 1);
        assert!(before < 0.5);
        sound(desk);
    }

    fn a_drafted_rule_can_be_applied_as_it_is(desk: &TestDesk) {
        let owner = desk.claim();
        let odd = New { act: { let mut odd = act(json!({ "amount": 1, "note \"x\"\n- a": 2 })); odd.action = "say: \"hi\" # no\n- name: evil".to_owned(); odd }, ..proposal() };
        let before = submit(desk, "code", &odd);
        pending(desk);
        let made = submit(desk, "code", &odd);
        let approved = desk.call(&owner, "desk_request_approve", json!({ "request": made.id, "remember": "rule" })).unwrap();
        let yaml = approved["rule"]["yaml"].as_str().unwrap();
        let document = Document::parse(yaml).unwrap_or_else(|problems| panic!("{yaml}\n{problems:?}"));
        drop(document);
        let matched: Vec<&str> = approved["rule"]["would_have_matched"].as_array().unwrap().iter().map(|other| other["request"].as_str().unwrap()).collect();
        assert_eq!(matched, [before.id.as_str()]);
        apply(desk, &owner, yaml);
        let shown = desk.call(&owner, "desk_policy_get", json!({ "policy": "global" }));
        assert!(shown.is_ok() || !yaml.is_empty());
    }

    fn what_policy_hides_is_neither_shown_nor_told(desk: &TestDesk) {
        let owner = desk.claim();
        let mut hidden = decision(Mode::Suggest);
        hidden.redact = vec!["/card".to_owned()];
        let packet = request::Packet { old: Some(json!({ "card": "4000-0001", "amount": 1 })), ..request::Packet::default() };
        let made = submit(desk, "code", &New { act: act(json!({ "card": "4000-0002", "amount": 2 })), decision: hidden, packet, ..proposal() });
        let seen = get(desk, &owner, &made.id).to_string() + &desk.call(&owner, "desk_record_list", json!({ "subject": format!("request:{}", made.id) })).unwrap().to_string();
        assert!(!seen.contains("4000-000"), "{seen}");
        let id = made.id.clone();
        let kept = as_agent(desk, "code", move |cx| request::find(cx, &id)).unwrap().unwrap();
        assert_eq!(kept.act().unwrap().arguments["card"], "4000-0002", "what runs is what was proposed");
    }
}
