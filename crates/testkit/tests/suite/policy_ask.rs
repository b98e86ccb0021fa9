//! Replaying drafts over the record, and saying why, on both engines.

use std::time::Instant;

use deskmate_core::policy::{Act, Decision, Document, Mode, Parts, Rulebook, Settings, run_cases};
use deskmate_core::request::{self, New, RequestKind, Requester};
use deskmate_core::{Code, World};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

const CRM: &str = "
policies:
  - id: crm-write
    rules:
      - { field: amount, constraint: value_range, min: 0, max: 500000, reason: too much, }
      - { name: night, effect: require_approval, when: 'time.hour >= 22', message: Not at night }
mappings:
  - { agent_id: '*', domain: crm.*, policy_id: crm-write }
";

fn propose(desk: &TestDesk, who: &Caller, domain: &str, change: &Value) -> Value {
    let input =
        json!({ "domain": domain, "action": "update", "target": "deal 7", "proposed_change": change.to_string(), "confidence": 0.9, "reasoning": "asked to" });
    desk.call(who, "cowork_propose", input).unwrap()
}

/// Everything is let pass that nothing else holds.
const GO: &str = "rules: [{ name: go, effect: allow, waive_trust: true }]\n";

fn explain(desk: &TestDesk, owner: &Caller, input: Value) -> Value {
    desk.call(owner, "desk_policy_explain", input).unwrap()
}

fn simulate(desk: &TestDesk, owner: &Caller, input: Value) -> Value {
    desk.call(owner, "desk_policy_simulate", input).unwrap()
}

both! {
    fn a_plan_is_explained_with_what_holds_it(desk: &TestDesk) {
        let owner = desk.claim();
        desk.register(&owner, "sales");
        desk.call(&owner, "desk_policy_apply", json!({ "document": GO })).unwrap();
        let change = |kind: &str| Act { kind: kind.to_owned(), domain: "crm.deals".to_owned(), ..Act::default() };
        let plan = desk.act(move |cx| {
            let (who, act) = (Requester::agent("sales", true), change("file.change"));
            let decision = Decision { mode: Mode::Suggest, ..request::judge(cx, &act, &who, false)? };
            request::submit(cx, New { requester: Some(who), ..New::new(RequestKind::Plan, "tidy up", act, decision) })
        });
        let why = explain(desk, &owner, json!({ "request": plan.unwrap().id }));
        assert_eq!(why["now"]["mode"], "suggest", "{why}");
        assert!(why["lines"].to_string().contains("policy: at best suggest: this waits for a person, whatever the trust"), "{why}");
        // The same for acts that somebody might intend.
        for (kind, mode) in [("propose", "act"), ("file.change", "suggest"), ("code.run", "suggest"), ("agent.deploy", "suggest"), ("tool.call", "suggest"), ("handoff", "suggest")] {
            let why = explain(desk, &owner, json!({ "agent": "sales", "act": { "kind": kind, "domain": "crm.deals" } }));
            assert_eq!(why["now"]["mode"], mode, "{kind}: {why}");
        }
        let named = "rules: [{ name: go, match: { kind: [file.change] }, effect: allow, waive_trust: true }]\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": named })).unwrap();
        let why = explain(desk, &owner, json!({ "agent": "sales", "act": { "kind": "file.change", "domain": "crm.deals" } }));
        assert_eq!(why["now"]["mode"], "act", "{why}");
    }

    fn an_edit_is_explained_with_the_value_that_a_person_set(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        desk.call(&owner, "desk_policy_apply", json!({ "document": GO })).unwrap();
        desk.register(&owner, "code");
        let task = desk.call(&sales, "bridge_create_task", json!({ "to": "code", "title": "first" })).unwrap()["task_id"].clone();
        desk.call(&owner, "bridge_update_task", json!({ "task_id": task, "title": "by a person" })).unwrap();
        let held = desk.call(&sales, "bridge_update_task", json!({ "task_id": task, "title": "by the agent" })).unwrap();
        let why = explain(desk, &owner, json!({ "request": held["held"]["request_id"] }));
        assert_eq!(why["now"]["mode"], "suggest", "{why}");
        assert!(why["lines"].to_string().contains("edit: at best suggest: a person set what this would overwrite"), "{why}");
    }

    fn a_handoff_is_explained_as_what_people_are_asked(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        desk.call(&owner, "desk_policy_apply", json!({ "document": GO })).unwrap();
        let handoff = json!({ "domain": "crm", "reason": "r", "confidence": 0.3, "attempted_actions": "[]", "context": "{}" });
        let handed = desk.call(&sales, "cowork_handoff", handoff).unwrap()["handoff_id"].clone();
        let why = explain(desk, &owner, json!({ "request": handed }));
        assert_eq!((&why["then"]["mode"], &why["now"]["mode"]), (&json!("suggest"), &json!("suggest")), "{why}");
        assert!(why["lines"].to_string().contains("policy: at best suggest: the agent hands this over"), "{why}");
        desk.call(&owner, "desk_pause", json!({ "agent": "sales" })).unwrap();
        let why = explain(desk, &owner, json!({ "request": handed }));
        assert_eq!(why["now"]["mode"], "deny", "{why}");
        assert!(why["lines"].to_string().contains("sales is paused"), "{why}");
    }

    fn a_draft_is_replayed_over_what_agents_asked_and_were_denied(desk: &TestDesk) {
        let owner = desk.claim();
        desk.call(&owner, "desk_policy_apply", json!({ "document": CRM })).unwrap();
        let sales = desk.register(&owner, "sales");
        for amount in [5, 600, 7_000] {
            assert_eq!(propose(desk, &sales, "crm.deals", &json!({ "amount": amount }))["mode"], "escalate");
        }
        assert_eq!(propose(desk, &sales, "crm.deals", &json!({ "amount": 750_000 }))["policy_error"], true);
        let same = simulate(desk, &owner, json!({}));
        assert_eq!((&same["looked_at"], &same["same"], &same["differing"]), (&json!(4), &json!(4), &json!([])), "{same}");
        let stricter = simulate(desk, &owner, json!({ "document": CRM.replace("500000", "1000") }));
        assert_eq!((&stricter["stricter"], &stricter["looser"]), (&json!(1), &json!(0)), "{stricter}");
        let one = &stricter["differing"][0];
        assert_eq!((one["then"].as_str(), one["now"].as_str(), one["agent"].as_str()), (Some("escalate"), Some("deny"), Some("sales")), "{one}");
        assert_eq!(one["hits"], json!(["value_range_amount"]));
        let looser = simulate(desk, &owner, json!({ "document": CRM.replace("500000", "900000") }));
        assert_eq!((&looser["stricter"], &looser["looser"]), (&json!(0), &json!(1)), "{looser}");
        assert_eq!(looser["differing"][0]["then"], "deny");
        let trusted = simulate(desk, &owner, json!({ "document": format!("{CRM}rules: [{{ name: go, effect: allow, waive_trust: true }}]\n") }));
        assert_eq!(trusted["looser"], 3, "{trusted}");
    }

    fn a_replay_knows_what_stood_in_for_trust(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        let held = propose(desk, &sales, "crm.deals", &json!({ "amount": 1, "owner": 1 }));
        assert_eq!(held["mode"], "escalate");
        desk.call(&owner, "desk_request_approve", json!({ "request": held["request_id"], "remember": "session" })).unwrap();
        assert_eq!(propose(desk, &sales, "crm.deals", &json!({ "amount": 2 }))["mode"], "act");
        // Here it lifts what trust alone would hold, and a person still decides.
        assert_eq!(propose(desk, &sales, "crm.deals", &json!({ "owner": 2 }))["mode"], "suggest");
        let same = simulate(desk, &owner, json!({}));
        assert_eq!((&same["looked_at"], &same["same"], &same["differing"]), (&json!(3), &json!(3), &json!([])), "{same}");
        let stricter = simulate(desk, &owner, json!({ "document": "rules: [{ field: amount, constraint: high_risk }]" }));
        assert_eq!((&stricter["stricter"], &stricter["same"]), (&json!(1), &json!(2)), "{stricter}");
    }

    fn a_replay_knows_what_was_used_up(desk: &TestDesk) {
        let owner = desk.claim();
        let sales = desk.register(&owner, "sales");
        let rate = |counter: &str, most: u32| format!("rules: [{{ name: rate, when: counters.{counter} >= {most}, effect: deny, message: slowly }}]");
        // Before any rule asks for it, what is used up is not told.
        assert_eq!(propose(desk, &sales, "before", &json!({ "amount": 0 }))["mode"], "escalate");
        let before = simulate(desk, &owner, json!({ "document": rate("calls_hour", 2) }));
        assert_eq!((&before["looked_at"], &before["same"], &before["without_counters"]), (&json!(1), &json!(1), &json!(1)), "{before}");
        desk.world.pass(std::time::Duration::from_secs(1));
        desk.call(&owner, "desk_policy_apply", json!({ "document": rate("calls_hour", 2) })).unwrap();
        let since = deskmate_core::format_time(desk.world.now());
        let modes: Vec<Value> = [1, 2, 3].map(|amount| propose(desk, &sales, "crm", &json!({ "amount": amount }))["policy_error"].clone()).to_vec();
        assert_eq!(modes, [Value::Null, Value::Null, json!(true)]);
        let replay = |document: Option<String>| simulate(desk, &owner, json!({ "document": document, "since": since }));
        let same = replay(None);
        assert_eq!((&same["looked_at"], &same["same"], &same["differing"], &same["without_counters"]), (&json!(3), &json!(3), &json!([]), &json!(0)), "{same}");
        let stricter = replay(Some(rate("calls_hour", 1)));
        assert_eq!((&stricter["stricter"], &stricter["same"], &stricter["looser"]), (&json!(1), &json!(2), &json!(0)), "{stricter}");
        let seen = desk.call(&owner, "desk_request_get", json!({ "request": stricter["differing"][0]["request"] })).unwrap();
        assert_eq!(seen["act"]["arguments"], json!({ "amount": 2 }), "the second one");
        let looser = replay(Some(rate("calls_hour", 3)));
        assert_eq!((&looser["stricter"], &looser["looser"]), (&json!(0), &json!(1)), "{looser}");
        // What nobody asked for then is not known, whatever else is.
        let minute = replay(Some(rate("calls_minute", 1)));
        assert_eq!((&minute["without_counters"], &minute["stricter"], &minute["looser"]), (&json!(3), &json!(0), &json!(1)), "{minute}");
    }

    fn a_replay_comes_in_pages_and_can_be_narrowed(desk: &TestDesk) {
        let owner = desk.claim();
        for (agent, domain) in [("sales", "crm.deals"), ("sales", "crm.leads"), ("support", "crm.deals")] {
            for amount in [1, 2] {
                propose(desk, &Caller::Agent(agent), domain, &json!({ "amount": amount }));
            }
        }
        let document = "rules: [{ name: none, effect: deny }]";
        let mut cursor = Value::Null;
        let mut seen = Vec::new();
        for _ in 0..3 {
            let page = simulate(desk, &owner, json!({ "document": document, "limit": 2, "cursor": cursor }));
            seen.extend(page["differing"].as_array().unwrap().iter().map(|one| one["seq"].as_u64().unwrap()));
            cursor = page["next_cursor"].clone();
        }
        assert_eq!((seen.len(), &cursor), (6, &Value::Null), "{seen:?}");
        assert!(seen.windows(2).all(|pair| pair[0] > pair[1]), "newest first: {seen:?}");
        let narrowed = simulate(desk, &owner, json!({ "document": document, "agent": "sales", "domain": "crm.deals" }));
        assert_eq!((&narrowed["looked_at"], &narrowed["stricter"]), (&json!(2), &json!(2)));
        let later = simulate(desk, &owner, json!({ "document": document, "since": "2030-01-01T00:00:00Z" }));
        assert_eq!(later["looked_at"], 0);
        assert_code(&desk.refused(&owner, "desk_policy_simulate", json!({ "document": "polices: []" })), Code::Invalid);
        assert_code(&desk.refused(&owner, "desk_policy_simulate", json!({ "cursor": "x" })), Code::Invalid);
    }

    fn people_are_told_why_and_what_would_change_it(desk: &TestDesk) {
        let owner = desk.claim();
        desk.call(&owner, "desk_policy_apply", json!({ "document": CRM })).unwrap();
        let sales = desk.register(&owner, "sales");
        let asked = propose(desk, &sales, "crm.deals", &json!({ "amount": 5 }));
        let why = desk.call(&owner, "desk_policy_explain", json!({ "request": asked["proposal_id"] })).unwrap();
        assert_eq!((&why["then"]["mode"], &why["now"]["mode"], &why["agent"]), (&json!("escalate"), &json!("escalate"), &json!("sales")), "{why}");
        let lines = why["lines"].to_string();
        assert!(lines.contains("trust") && lines.contains("0.5"), "{lines}");
        assert!(!lines.contains("Why it was"), "{lines}");
        // Where the answer would be another one now, the reasons of then are told as well.
        desk.call(&owner, "desk_policy_apply", json!({ "document": CRM.replace("500000", "1") })).unwrap();
        let why = desk.call(&owner, "desk_policy_explain", json!({ "request": asked["proposal_id"] })).unwrap();
        let lines: Vec<&str> = why["lines"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let at = |text: &str| lines.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{text} in {lines:?}"));
        assert!(at("Why it was escalate:") < at("trust: at best escalate") && at("trust: at best escalate") < at("Why it would be deny:"), "{lines:?}");
        assert!(at("Why it would be deny:") < at("too much"), "{lines:?}");
        desk.call(&owner, "desk_policy_apply", json!({ "document": CRM })).unwrap();
        let act = json!({ "domain": "crm.deals", "arguments": { "amount": 750_000 } });
        let why = desk.call(&owner, "desk_policy_explain", json!({ "agent": "sales", "act": act })).unwrap();
        assert_eq!(why["now"]["mode"], "deny");
        assert!(why["lines"].to_string().contains("too much"), "{why}");
        let error = desk.refused(&sales, "desk_policy_explain", json!({ "request": asked["proposal_id"] }));
        assert_code(&error, Code::Forbidden);
        for wrong in [json!({}), json!({ "request": "x", "agent": "sales", "act": {} }), json!({ "agent": "sales" }), json!({ "agent": "sales", "act": { "frob": 1 } })] {
            assert_code(&desk.refused(&owner, "desk_policy_explain", wrong), Code::Invalid);
        }
        assert_code(&desk.refused(&owner, "desk_policy_explain", json!({ "request": "0" })), Code::NotFound);
    }
}

/// The YAML of the page on policies.
fn examples() -> Vec<String> {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy.md");
    let page = std::fs::read_to_string(page).expect("the page");
    page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

#[test]
fn the_examples_of_the_page_work() {
    let mut cases = 0;
    for example in examples() {
        let document = Document::parse(&example).unwrap_or_else(|problems| panic!("{example}\n{problems:#?}"));
        let rulebook =
            Rulebook::compile(document.over(&Parts::default()), std::collections::BTreeMap::new()).unwrap_or_else(|problems| panic!("{problems:#?}"));
        for case in run_cases(&rulebook, None) {
            assert!(case.passed, "{case:#?}");
            cases += 1;
        }
    }
    assert!(cases >= 10, "{cases}");
}

/// Every setting is on the page, with its default.
#[test]
fn the_settings_of_the_page_are_all_there_are_with_their_defaults() {
    let example = examples().into_iter().find(|example| example.starts_with("trust:\n")).expect("the settings");
    let document = Document::parse(&example).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let built_in = serde_json::to_value(Settings::default()).unwrap();
    for (section, patch) in &document.desk {
        for (name, value) in patch {
            let usual = &built_in[section.name()][name];
            assert!(usual == value || (usual.is_number() && usual.as_f64() == value.as_f64()), "{}.{name}: {value} is {usual}", section.name());
        }
        let open = ["volume_cap_per_agent", "calls_per_day", "cost_per_day"];
        let all = built_in[section.name()].as_object().unwrap().keys();
        let missing: Vec<&String> = all.filter(|name| !patch.contains_key(*name) && !open.contains(&name.as_str())).collect();
        assert!(missing.is_empty(), "the page does not name {missing:?} of {}", section.name());
    }
    assert_eq!(document.desk.len(), built_in.as_object().unwrap().len());
}

/// 1,000 rules, a fifth of them with conditions: read and compiled within 200 ms. Without optimisation it takes longer.
#[test]
fn a_thousand_rules_are_read_quickly() {
    let mut text = String::from("policies:\n");
    for policy in 0..10 {
        text.push_str(&format!("  - id: policy-{policy}\n    description: The rules of team {policy}\n    rules:\n"));
        for rule in 0..100 {
            text.push_str(&match rule % 5 {
                0 => format!("      - {{ field: field_{rule}, constraint: value_range, min: 0, max: {rule}000, reason: out of bounds }}\n"),
                1 => format!("      - {{ field: state_{rule}, constraint: enum, values: [open, closed, waiting], reason: not a state }}\n"),
                2 => format!("      - {{ field: code_{rule}, constraint: regex, pattern: '^[A-Z]{{2,3}}-[0-9]{{1,{}}}$' }}\n", rule + 1),
                3 => format!("      - name: rule_{rule}\n        match: {{ domain: [crm.*], kind: [propose] }}\n        effect: deny\n        when: args.amount > {rule}00.0 && counters.calls_hour > 5\n        message: Too much at once\n"),
                _ => format!("      - name: rule_{rule}\n        match: {{ tool: ['mail.*'] }}\n        effect: require_approval\n        severity: high\n        message: Somebody looks at mails first\n"),
            });
        }
    }
    text.push_str("mappings:\n");
    for policy in 0..10 {
        text.push_str(&format!("  - {{ agent_id: agent-{policy}, domain: '*', policy_id: policy-{policy} }}\n"));
    }
    let begun = Instant::now();
    let document = Document::parse(&text).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let rulebook = Rulebook::compile(document.over(&Parts::default()), std::collections::BTreeMap::new()).unwrap();
    let took = begun.elapsed();
    assert_eq!(rulebook.parts().policies.values().map(|policy| policy.rules.len()).sum::<usize>(), 1_000);
    println!("1,000 rules, {} bytes: {took:?}", text.len());
    let bound = if cfg!(debug_assertions) { 10_000 } else { 200 };
    assert!(took.as_millis() <= bound, "{took:?}");
}
