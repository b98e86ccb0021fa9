//! The policy cases of the earlier server, by their numbers, and its weaknesses, by theirs.

use deskmate_core::policy::{Act, Counters, Effect, HIGH_RISK_LIST, Mode, decide, mode_of_trust};
use deskmate_core::trust::Points;
use serde_json::{Value, json};

use super::support::{NOW, REFERENCE, answer, field, ids, propose, rulebook, trusted};

fn policies_of(agent: &str, domain: &str) -> Vec<String> {
    let book = rulebook(REFERENCE);
    let decision = answer(&book, agent, &propose(domain, json!({})));
    let names: Vec<String> = decision.policies.iter().map(|policy| policy.policy.clone()).collect();
    assert_eq!(decision.mapping_found, !names.is_empty(), "a mapping names policies");
    assert_eq!(book.mapped(agent, domain).unwrap_or_default(), names);
    names
}

#[test]
fn case_13_to_15_a_mapping_is_found_by_agent_and_domain() {
    assert_eq!(policies_of("crm-agent", "crm.deals"), ["crm-write"]);
    assert_eq!(policies_of("crm-agent", "support.tickets"), ["support-write"]);
    assert_eq!(policies_of("support-agent", "support.tickets"), ["support-write"]);
}

#[test]
fn case_16_and_17_no_mapping_is_found_for_other_pairs() {
    assert!(policies_of("support-agent", "crm.deals").is_empty());
    assert!(policies_of("unknown-agent", "crm.deals").is_empty());
}

/// There an unmapped pair just went on by trust.
#[test]
fn case_18_changed_by_w13_an_unmapped_pair_is_held_for_a_person() {
    let decision = answer(&rulebook(REFERENCE), "support-agent", &propose("crm.deals", json!({ "contact_name": "Ann" })));
    assert_eq!((decision.mapping_found, decision.mode), (false, Mode::Escalate));
    assert!(decision.hard_stops().next().is_none(), "it is held, not blocked");
    assert_eq!(decision.reasons[0].source, "mapping");
    assert!(decision.reasons[0].would_change.is_some());
}

#[test]
fn case_19_a_high_risk_field_is_a_warning() {
    let decision = answer(&rulebook(REFERENCE), "crm-agent", &field("crm.deals", "billing_address", json!("1 Main St")));
    assert!(decision.warnings().count() >= 1);
    assert_eq!(decision.hard_stops().count(), 0);
}

#[test]
fn case_20_a_readonly_field_is_a_hard_stop() {
    let decision = answer(&rulebook(REFERENCE), "crm-agent", &field("crm.deals", "owner", json!("bob")));
    let stop = decision.hard_stops().next().expect("a hard stop");
    assert_eq!((stop.rule_id.as_str(), stop.severity.as_str(), stop.field.as_deref()), ("readonly_owner", "hard_stop", Some("owner")));
    assert_eq!((stop.policy.as_str(), stop.version, stop.reason.as_str()), ("crm-write", 1, "Owners are set by people"));
    assert_eq!(decision.mode, Mode::Deny);
}

#[test]
fn case_21_and_22_a_range_holds_at_its_bounds() {
    let book = rulebook(REFERENCE);
    for fits in [json!(25), json!(0), json!(50), json!(49.99)] {
        let decision = answer(&book, "crm-agent", &field("crm.deals", "commission", fits.clone()));
        assert!(!ids(&decision).contains(&"value_range_commission"), "{fits}");
    }
    for beyond in [json!(75), json!(-1), json!(50.01)] {
        let decision = answer(&book, "crm-agent", &field("crm.deals", "commission", beyond.clone()));
        let stop = decision.hard_stops().next().unwrap_or_else(|| panic!("{beyond} passes"));
        assert_eq!((stop.rule_id.as_str(), stop.severity.as_str()), ("value_range_commission", "hard_stop"));
        assert_eq!(stop.alternative.as_deref(), Some("a number that the rule allows; people know which"), "bounds are not for agents");
        let would_change = decision.reasons[0].would_change.as_deref().unwrap();
        assert!(would_change.starts_with("a number from 0 to 50, or"), "{would_change}");
    }
}

#[test]
fn case_23_and_24_an_enum_has_only_its_values() {
    let book = rulebook(REFERENCE);
    assert!(!ids(&answer(&book, "crm-agent", &field("crm.deals", "deal_stage", json!("qualified")))).contains(&"enum_deal_stage"));
    for other in ["invalid_stage", "Qualified", ""] {
        let decision = answer(&book, "crm-agent", &field("crm.deals", "deal_stage", json!(other)));
        assert!(ids(&decision).contains(&"enum_deal_stage"), "{other}");
        assert_eq!(decision.mode, Mode::Deny);
    }
}

#[test]
fn case_25_a_wildcard_names_the_field_that_it_met() {
    let decision = answer(&rulebook(REFERENCE), "crm-agent", &field("crm.deals", "billing_phone", json!("555")));
    assert!(decision.hits.iter().any(|hit| hit.rule_id == "high_risk_billing_*" && hit.field.as_deref() == Some("billing_phone")));
}

#[test]
fn case_26_other_fields_are_free() {
    let decision = answer(&rulebook(REFERENCE), "crm-agent", &field("crm.deals", "contact_name", json!("Ann")));
    assert!(decision.hits.is_empty(), "{:?}", decision.hits);
    assert_eq!((decision.mode, decision.rules_checked), (Mode::Act, 0));
}

#[test]
fn case_27_and_28_a_policy_is_found_by_its_id() {
    let book = rulebook(REFERENCE);
    assert_eq!(book.policy("crm-write").map(|(policy, version)| (policy.rules.len(), version)), Some((4, 1)));
    assert!(book.policy("unknown").is_none());
}

#[test]
fn case_29_every_violation_is_named() {
    let act = propose("crm.deals", json!({ "owner": "bob", "commission": 75, "billing_phone": "555" }));
    let decision = answer(&rulebook(REFERENCE), "crm-agent", &act);
    let policy: Vec<&str> = decision.hits.iter().filter(|hit| hit.policy == "crm-write").map(|hit| hit.rule_id.as_str()).collect();
    assert_eq!(policy, ["value_range_commission", "readonly_owner", "high_risk_billing_*"]);
}

/// The shipped configuration, sales-agent, crm.deals, deal_stage: the rule and the desk's list.
#[test]
fn rules_checked_counts_the_rules_that_were_looked_at() {
    let book = rulebook(
        "policies:\n  - id: p\n    rules:\n      - { field: deal_stage, constraint: high_risk }\n      - { field: 'utm_*', constraint: readonly }\n\
         mappings:\n  - { agent_id: a, domain: d, policy_id: p }\n",
    );
    assert_eq!(answer(&book, "a", &field("d", "deal_stage", json!("won"))).rules_checked, 2);
}

#[test]
fn the_list_of_the_desk_follows_the_policy_and_drops_its_star() {
    let decision = answer(&rulebook(REFERENCE), "crm-agent", &field("crm.deals", "billing_phone", json!("555")));
    assert_eq!(ids(&decision), ["high_risk_billing_*", "global_high_risk_billing_"]);
    assert_eq!((decision.hits[1].policy.as_str(), decision.hits[1].severity.as_str()), (HIGH_RISK_LIST, "warning"));
}

/// Cases 1 to 7, as far as policy is concerned; 2 is changed by W14.
#[test]
fn case_1_to_7_trust_and_the_list_of_high_risk_fields() {
    let book = rulebook("");
    let mode = |score: f64, name: &str| {
        let standing = deskmate_core::policy::Standing { score: Points::of(score), ..trusted("a") };
        decide(&book, &field("d", name, json!("x")), &standing, &Counters::default(), NOW).mode
    };
    assert_eq!(mode(0.3, "contact_name"), Mode::Escalate);
    assert_eq!(mode(0.3, "deal_stage"), Mode::Escalate, "there it was lifted to suggest");
    assert_eq!(mode(0.6, "contact_name"), Mode::Suggest);
    assert_eq!(mode(0.85, "contact_name"), Mode::Act);
    assert_eq!(mode(0.85, "commission"), Mode::Suggest);
    for (name, high) in [("billing_address", true), ("billing_email", true), ("shipping_address", false), ("utm_source", true), ("utm_campaign", true)] {
        assert_eq!(book.is_high_risk("d", name), high, "{name}");
        assert_eq!(answer(&book, "a", &field("d", name, json!("x"))).high_risk_field, high, "{name}");
    }
    let settings = book.settings("d");
    assert_eq!((mode_of_trust(settings, Points(499_999_999)), mode_of_trust(settings, Points(799_999_999))), (Mode::Escalate, Mode::Suggest));
}

const AMOUNT: &str = "
policies:
  - id: p
    rules:
      - { field: amount, constraint: value_range, min: 0, max: 500000 }
      - { field: owner, constraint: readonly }
      - { field: status, constraint: enum, values: [open, closed] }
      - { field: note, constraint: regex, pattern: '^[a-z ]+$' }
mappings:
  - { agent_id: a, domain: d, policy_id: p }
";

fn mode_of(arguments: Value, declared: Option<&str>) -> Mode {
    let act = Act { field: declared.map(str::to_owned), ..propose("d", arguments) };
    answer(&rulebook(AMOUNT), "a", &act).mode
}

/// There the agent chose which field a rule saw, and in which form.
#[test]
fn w11_the_whole_change_is_looked_at() {
    for arguments in [
        json!({ "amount": 750_000 }),
        json!({ "deal": { "amount": 750_000 } }),
        json!({ "changes": [{ "amount": 750_000 }] }),
        json!({ "field": "amount", "value": 750_000 }),
        json!([{ "field": "name", "value": "x" }, { "field": "amount", "value": 750_000 }]),
        json!({ "op": "replace", "path": "/deal/amount", "value": 750_000 }),
        json!({ "payload": "{\"amount\": 750000}" }),
        json!({ "raw": "{\"amount\": 750000}" }),
        json!({ "amount": [1, 750_000] }),
        json!({ "field": "deal.amount", "new_value": 750_000 }),
        json!({ "/amount": 750_000 }),
        json!({ "/deal/amount": 750_000 }),
        json!({ "deal": { "/0/amount": 750_000 } }),
        json!({ "/deal": { "amount": 750_000 } }),
        json!({ "column": "amount", "newValue": 750_000 }),
        json!({ "property": "amount", "becomes": 750_000 }),
        json!({ "attribute": "/deal/amount", "becomes": 750_000 }),
    ] {
        for declared in [None, Some("amount"), Some("harmless")] {
            assert_eq!(mode_of(arguments.clone(), declared), Mode::Deny, "{arguments} with {declared:?}");
        }
    }
    assert_eq!(mode_of(json!({ "value": 750_000 }), Some("amount")), Mode::Deny);
    assert_eq!(mode_of(json!(750_000), Some("amount")), Mode::Deny);
    assert_eq!(mode_of(json!({ "amount": 1_000, "name": "x" }), None), Mode::Act, "what is right passes");
    assert_eq!(mode_of(json!({ "amount": 1_000 }), Some("amount")), Mode::Act);
    assert_eq!(mode_of(json!({ "/amount": 1_000, "column": "amount", "newValue": 2_000 }), None), Mode::Act);
    assert_eq!(mode_of(json!({ "path": "/srv/amount", "content": "x" }), None), Mode::Act, "a path may be that of a file");
    assert_eq!(mode_of(json!({ "owner": { "id": 7 } }), None), Mode::Deny, "below a readonly field nothing changes either");
    assert_eq!(mode_of(json!({ "field": "owner" }), None), Mode::Deny);
}

/// A text tells the rules nothing, so people look at it.
#[test]
fn w11_a_change_that_cannot_be_looked_into_is_not_done_alone() {
    let act = propose("d", json!({ "raw": "please set the amount to 750000" }));
    let decision = answer(&rulebook(AMOUNT), "a", &act);
    assert_eq!((decision.mode, ids(&decision)), (Mode::Suggest, vec!["opaque_change", "global_high_risk_opaque"]));
    for text in [json!({ "raw": "please set the owner to bo" }), json!("owner = bo")] {
        for declared in [None, Some("note".to_owned())] {
            let decision = answer(&rulebook(""), "a", &deskmate_core::policy::Act { field: declared, ..propose("d", text.clone()) });
            assert_eq!((decision.mode, ids(&decision), decision.high_risk_field), (Mode::Suggest, vec!["global_high_risk_opaque"], true), "{text}");
            let reason = decision.reasons.iter().find(|reason| reason.source == "high_risk").expect("the list has a say");
            assert!(reason.text.contains("cannot be looked into"), "{reason:?}");
        }
    }
    let standing = deskmate_core::policy::Standing { waived_by: Some("a person".to_owned()), ..trusted("a") };
    assert_eq!(decide(&rulebook(""), &act, &standing, &Counters::default(), NOW).mode, Mode::Suggest, "nothing lifts it");
    assert_eq!(answer(&rulebook(""), "a", &propose("d", json!({ "raw": "{\"name\": 1}" }))).mode, Mode::Act, "JSON in a text is looked into");
    assert_eq!(answer(&rulebook("authority: { high_risk_fields: [] }"), "a", &act).mode, Mode::Act, "where no rule and no list is about fields, none is blind");
}

/// Words stay words beside a decoy, in a list, in a further text, and under whatever key speaks of the change itself.
#[test]
fn w11_words_do_not_hide_behind_other_fields_or_in_lists() {
    let rules = rulebook(AMOUNT);
    for words in [
        json!({ "raw": "set the amount to 750000", "x": 1 }),
        json!({ "name": "x", "Raw ": "set the amount to 750000" }),
        json!({ "deal": { "raw": "set the amount to 750000", "name": "x" } }),
        json!({ "raw": ["set the amount to 750000"], "name": "x" }),
        json!(["set the amount to 750000", "then set the owner to bo"]),
        json!([{ "name": "x" }, "and set the owner to bo"]),
        json!([["set the owner to bo"]]),
        json!({ "changes": ["set the owner to bo"], "name": "x" }),
        json!({ "changes": [{ "name": "x" }, "and set the owner to bo"] }),
        json!({ "": "set the owner to bo" }),
        json!("[\"set the owner to bo\"]"),
        json!({ "raw": "[\"set the owner to bo\"]" }),
        json!({ "payload": "{\"raw\": \"set the owner to bo\", \"x\": 1}" }),
        json!({ "payload": "{\"amount\": 750000, \"amount\": 1}" }),
    ] {
        let decision = answer(&rules, "a", &propose("d", words.clone()));
        assert_eq!((decision.mode, ids(&decision)), (Mode::Suggest, vec!["opaque_change", "global_high_risk_opaque"]), "{words}");
        assert!(decision.high_risk_field, "{words}");
    }
    for plain in [
        json!({ "raw": 1, "x": 1 }),
        json!({ "raw": "{\"name\": 1}", "x": "1" }),
        json!({ "tags": ["red", "very red"], "name": "two words" }),
        json!({ "changes": [{ "name": "two words" }] }),
        json!({ "field": "name", "value": "two words" }),
        json!({ "payload": "[\"a\", \"b\"]" }),
        json!([1, true, null]),
    ] {
        let decision = answer(&rules, "a", &propose("d", plain.clone()));
        assert_eq!((decision.mode, ids(&decision)), (Mode::Act, vec![]), "{plain}");
    }
    let deep = json!({ "payload": format!("{}{{\"amount\": 750000}}{}", "[".repeat(130), "]".repeat(130)) });
    assert_eq!(mode_of(deep, None), Mode::Deny, "what nests too deep to be read is too much to look at");
}

/// There text that was a number met no range, and what was no text met neither enum nor regex.
#[test]
fn w12_types_do_not_evade_rules() {
    for (arguments, mode) in [
        (json!({ "amount": "750000" }), Mode::Deny),
        (json!({ "amount": " 1e6 " }), Mode::Deny),
        (json!({ "amount": "1000" }), Mode::Act),
        (json!({ "amount": "a lot" }), Mode::Deny),
        (json!({ "amount": "NaN" }), Mode::Deny),
        (json!({ "amount": "inf" }), Mode::Deny),
        (json!({ "amount": null }), Mode::Deny),
        (json!({ "amount": true }), Mode::Deny),
        (json!({ "amount": { "cents": 5 } }), Mode::Deny),
        (json!({ "amount": [] }), Mode::Deny),
        (json!({ "status": "open" }), Mode::Act),
        (json!({ "status": 1 }), Mode::Deny),
        (json!({ "status": null }), Mode::Deny),
        (json!({ "status": ["open", "other"] }), Mode::Deny),
        (json!({ "note": "all fine" }), Mode::Act),
        (json!({ "note": 5 }), Mode::Deny),
        (json!({ "note": ["all fine", 5] }), Mode::Deny),
    ] {
        assert_eq!(mode_of(arguments.clone(), None), mode, "{arguments}");
    }
    for declared in ["amount", "status", "note"] {
        let act = Act { field: Some(declared.to_owned()), ..propose("d", json!({})) };
        let decision = answer(&rulebook(AMOUNT), "a", &act);
        assert_eq!(decision.mode, Mode::Deny, "{declared}");
        assert!(decision.hits[0].reason.contains("missing"), "{:?}", decision.hits);
    }
}

#[test]
fn w13_an_unmapped_pair_is_held_once_there_are_mappings() {
    let unmapped = propose("fresh.domain", json!({ "x": 1 }));
    assert_eq!(answer(&rulebook(AMOUNT), "a", &unmapped).mode, Mode::Escalate);
    let none = answer(&rulebook(""), "a", &unmapped);
    assert_eq!((none.mode, none.mapping_found), (Mode::Act, false), "while there is no mapping at all, the default policy applies");
    assert_eq!((none.policies[0].policy.as_str(), none.policies[0].version), ("default", 0));
    let permissive = answer(&rulebook(&format!("policy_mode: permissive\n{AMOUNT}")), "a", &unmapped);
    assert_eq!((permissive.mode, permissive.mapping_found, permissive.policies[0].policy.as_str()), (Mode::Act, false, "default"));
}

#[test]
fn w14_high_risk_only_ever_lowers_the_mode() {
    let book = rulebook(
        "policies:\n  - id: p\n    rules:\n      - { field: salary, constraint: high_risk }\nmappings:\n  - { agent_id: a, domain: d, policy_id: p }\n",
    );
    let mode = |score: f64, name: &str| {
        let standing = deskmate_core::policy::Standing { score: Points::of(score), ..trusted("a") };
        decide(&book, &field("d", name, json!("x")), &standing, &Counters::default(), NOW).mode
    };
    assert_eq!((mode(0.9, "salary"), mode(0.9, "name")), (Mode::Suggest, Mode::Act), "a rule of a policy holds like the desk's own list");
    assert_eq!((mode(0.05, "salary"), mode(0.05, "deal_stage")), (Mode::Escalate, Mode::Escalate), "and neither lifts");
    let decision = answer(&book, "a", &field("d", "salary", json!(1)));
    assert!(!decision.high_risk_field, "the flag is about the desk's own list");
    assert_eq!(decision.hits[0].effect, Effect::RequireApproval);
}

/// There the answer alone said which policy held, and the desk's list was not asked where no mapping was.
#[test]
fn w16_a_decision_says_under_what_it_was_made() {
    let book = rulebook(REFERENCE);
    let decision = answer(&book, "crm-agent", &field("crm.deals", "owner", json!("x")));
    assert_eq!(decision.rulebook, book.digest());
    assert_eq!(decision.policies.iter().map(|policy| (policy.policy.as_str(), policy.version)).collect::<Vec<_>>(), [("crm-write", 1)]);
    assert_eq!((decision.hits[0].policy.as_str(), decision.hits[0].version, decision.hits[0].field.as_deref()), ("crm-write", 1, Some("owner")));
    let unmapped = answer(&book, "nobody", &field("elsewhere", "owner", json!("x")));
    assert_eq!(ids(&unmapped), ["global_high_risk_owner"]);
    assert!(unmapped.high_risk_field);
    let text = serde_json::to_string(&decision).unwrap();
    assert_eq!(serde_json::from_str::<deskmate_core::policy::Decision>(&text).unwrap(), decision, "it can be kept with the request");
}
