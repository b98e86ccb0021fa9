//! Conditions: what they can ask for, what is refused when they are loaded, and where.

use deskmate_core::policy::{Act, Counters, Mode, decide, outlook, variables};
use serde_json::{Value, json};

use super::support::{NOW, answer, problems, propose, rulebook, trusted};

fn rule(when: &str) -> String {
    format!("rules:\n  - name: r\n    when: {}\n    effect: deny\n", serde_json::to_string(when).unwrap())
}

fn holds(when: &str, act: &Act) -> bool {
    let book = rulebook(&rule(when));
    let counters = Counters {
        calls_minute: 1,
        calls_hour: 2,
        calls_day: 3,
        calls_hour_all: 4,
        calls_day_all: 5,
        cost_day: 6_500_000,
        denied_day: 7,
        pending: 8,
        ..Counters::default()
    };
    let decision = decide(&book, act, &trusted("ann-bot"), &counters, NOW);
    assert!(decision.hits.iter().all(|hit| !hit.failed), "{when}: {:?}", decision.hits);
    decision.mode == Mode::Deny
}

fn example() -> Act {
    Act {
        environment: "production".to_owned(),
        field: Some("amount".to_owned()),
        cost: 1_500_000,
        taint: vec!["web".to_owned(), "mail".to_owned()],
        ..propose("crm.deals", json!({ "amount": 2000, "rate": 0.5, "tags": ["a", "b"], "to": { "name": "Ann" }, "text": "DROP TABLE x", "none": null }))
    }
}

#[test]
fn a_condition_sees_the_whole_act() {
    for when in [
        "act.kind == 'propose' && act.tool == 'cowork_propose' && act.domain == 'crm.deals'",
        "act.environment == 'production' && act.action == 'update' && act.target == 'record 1' && act.field == 'amount'",
        "act.cost > 1 && act.cost < 1.6 && act.cost == 1.5",
        "'web' in act.taint && size(act.taint) == 2 && act.taint.exists(t, t.startsWith('m'))",
        "args.amount > 1000 && args.amount <= 2000.0 && args.rate < 1",
        "args.tags.all(t, t in ['a', 'b']) && args.tags.exists_one(t, t == 'a') && args.tags[0] == 'a'",
        "args.to.name == 'Ann' && args['to']['name'].endsWith('nn') && has(args.to) && !has(args.missing) && args.none == null",
        "args.text.matches('(?i)drop +table') && args.text.lowerAscii().contains('drop') && args.text.size() == 12",
        "'amount' in changed && changed.exists(p, p == 'to.name') && !('value' in changed)",
        "agent.id == 'ann-bot' && agent.verified && trust.score == 1.0 && trust.decided == 40",
        "counters.calls_minute == 1 && counters.calls_hour == 2 && counters.calls_day == 3 && counters.calls_hour_all == 4",
        "counters.calls_day_all == 5 && counters.cost_day == 6.5 && counters.denied_day == 7 && counters.pending == 8",
        "time.year == 2026 && time.month == 11 && time.day == 16 && time.hour == 10 && time.minute == 30 && time.weekday == 1",
        "now > 1700000000 && double(args.amount) / 2.0 == 1000.0 && string(args.amount) == '2000' && int('5') == 5",
        "args.tags.filter(t, t != 'a').size() == 1 && args.tags.map(t, t + '!') == ['a!', 'b!']",
        "args.amount > 5 ? act.kind != 'x' : false",
        "args.missing == 1 || args.amount == 2000",
    ] {
        assert!(holds(when, &example()), "{when}");
        assert!(!holds(&format!("!({when})"), &example()), "!({when})");
    }
}

#[test]
fn every_variable_is_documented_and_there() {
    for (name, what) in variables() {
        assert!(!what.is_empty());
        let when = format!("[{name}].size() == 1");
        assert!(holds(&when, &example()), "{name}");
    }
}

fn said(when: &str) -> Vec<String> {
    problems(&rule(when))
}

#[test]
fn what_cannot_be_right_is_refused_when_it_is_loaded() {
    for (when, part) in [
        ("act.knd == 'x'", "did you mean `act.kind`?"),
        ("amount > 5", "the name `amount` is not known"),
        ("act == 'x'", "`act` is no value by itself"),
        ("act['kind'] == 'x'", "`act` is no value by itself"),
        ("has(act.field)", "always has all its parts"),
        ("lower(act.kind) == 'x'", "the function `lower` is not known"),
        ("act.kind.contain('x')", "did you mean `contains`?"),
        ("act.kind.contains()", "takes 1 argument, not 0"),
        ("size(act.kind, 2) == 1", "takes 1 argument, not 2"),
        ("contains(act.kind, 'x')", "is called on a value"),
        ("act.kind.int() == 1", "is not called on a value"),
        ("act.kind > 5", "a text cannot be compared with a whole number"),
        ("act.kind == 5", "never equal"),
        ("counters.calls_hour == '5'", "never equal"),
        ("act.cost * 2 > 5.0", "do not mix"),
        ("act.kind + 5 == 'x'", "cannot be reckoned with"),
        ("!act.kind", "`!` needs a yes or no, not a text"),
        ("act.kind && true", "`&&` needs a yes or no"),
        ("act.kind", "not a yes or no"),
        ("counters.pending", "not a yes or no"),
        ("5 in act.taint", "never has a whole number"),
        ("'a' in act.kind", "a.contains(b)"),
        ("act.kind[0] == 'a'", "cannot be indexed"),
        ("act.taint['a'] == 'a'", "indexed with a whole number"),
        ("act.kind.name == 'x'", "a text has no `name`"),
        ("act.kind.exists(k, k == 'x')", "cannot be looped over"),
        ("args.a.exists(x, args.b.exists(y, x == y))", "a loop inside a loop"),
        ("args.a.all(x, args.b.map(y, y).size() > x)", "a loop inside a loop"),
        ("args.a.exists(args, args == 1)", "`args` is taken"),
        ("args.x.matches(args.y)", "has to be written out"),
        ("args.x.matches('(')", "the pattern cannot be read"),
        ("args.x.matches('(?=a)')", "look-around"),
        ("args.items.map(x)", "`map` is not written so"),
        ("args.x == 1u", "without `u`"),
        ("args.x == b'a'", "no bytes"),
        ("dyn(act.kind) == 5", "the function `dyn` is not known"),
        ("type(args) == string", "not known"),
        ("Message{a: 1}.a == 1", "no messages"),
        ("args.?x == 1", "not CEL"),
        ("args.x ==", "not CEL"),
        ("act.kind == 'propose", "not CEL"),
        ("", "is empty"),
        ("has(args)", "not CEL"),
    ] {
        let said = said(when);
        assert!(said.iter().any(|problem| problem.contains(part)), "{when}: {said:?}");
        assert!(said.iter().all(|problem| problem.contains("rules[0].when")), "{said:?}");
    }
    assert!(said(&format!("args.x == '{}'", "y".repeat(2_100)))[0].contains("at most 2000"));
    assert!(said(&vec!["args"; 300].join("||"))[0].contains("parts"), "too many parts");
    for deep in [
        format!("{}true{}", "[".repeat(900), "]".repeat(900)),
        format!("args{} == 1", ".a".repeat(900)),
        format!("args{} == 1", "[0]".repeat(600)),
        format!("{}1{}", "{'a': ".repeat(200), "}".repeat(200)),
        format!("{}true", "true ? false : ".repeat(100)),
        format!("{}1{} == 1", "int(".repeat(300), ")".repeat(300)),
        format!("args == 1{}", " + 1".repeat(400)),
    ] {
        assert!(!said(&deep).is_empty(), "nesting is bounded: {deep}");
    }
}

#[test]
fn loops_one_after_another_are_fine() {
    assert!(said("args.a.filter(x, x > 1).exists(y, y < 5) && args.b.all(z, z != 1)").is_empty());
}

/// The place is that of the fault in the file, however the condition is written.
#[test]
fn a_fault_is_placed_in_the_file() {
    let plain = "rules:\n  - name: r\n    when: act.kind == 'x' && act.knd == 'y'\n    effect: deny\n";
    assert!(problems(plain)[0].starts_with("3:30: "), "{:?}", problems(plain));
    let single = "rules:\n  - name: r\n    when: 'act.kind == ''x'' && act.knd == ''y'''\n    effect: deny\n";
    assert!(problems(single)[0].starts_with("3:33: "), "{:?}", problems(single));
    let double = "rules:\n  - name: r\n    when: \"act.kind == \\\"x\\\" && act.knd == 'y'\"\n    effect: deny\n";
    assert!(problems(double)[0].starts_with("3:33: "), "{:?}", problems(double));
    let block = "rules:\n  - name: r\n    when: |\n      act.kind == 'x' &&\n        act.knd == 'y'\n    effect: deny\n";
    assert!(problems(block)[0].starts_with("5:9: "), "{:?}", problems(block));
    let folded = "rules:\n  - name: r\n    when: >-\n      act.kind == 'x' &&\n      act.knd == 'y'\n    effect: deny\n";
    assert!(problems(folded)[0].starts_with("5:7: "), "{:?}", problems(folded));
    let umlaut = "rules:\n  - name: r\n    when: act.kind == 'ü€' && act.knd == 'y'\n    effect: deny\n";
    assert!(problems(umlaut)[0].starts_with("3:31: "), "{:?}", problems(umlaut));
    let function = "rules:\n  - name: r\n    when: act.kind.contain('x')\n    effect: deny\n";
    assert!(problems(function)[0].starts_with("3:20: "), "{:?}", problems(function));
    let syntax = "rules:\n  - name: r\n    when: act.kind == == 'y'\n    effect: deny\n";
    assert!(problems(syntax)[0].starts_with("3:23: "), "{:?}", problems(syntax));
}

#[test]
fn a_missing_or_mistyped_value_is_an_error_and_fires() {
    let book = rulebook(&rule("args.amount > 1000"));
    let mode = |arguments: Value| {
        let decision = answer(&book, "a", &propose("d", arguments));
        (decision.mode, decision.hits.iter().any(|hit| hit.failed))
    };
    assert_eq!(mode(json!({ "amount": 2_000 })), (Mode::Deny, false));
    assert_eq!(mode(json!({ "amount": 500 })), (Mode::Act, false));
    for arguments in [json!({}), json!({ "amount": "500" }), json!({ "amount": null }), json!([]), json!("text"), json!(null)] {
        assert_eq!(mode(arguments.clone()), (Mode::Deny, true), "{arguments}");
    }
}

#[test]
fn the_rulebook_knows_what_its_conditions_ask_for() {
    let book = rulebook(&rule("counters.calls_minute > 5"));
    assert!(book.asks_for("counters.calls_minute") && !book.asks_for("counters.calls_day"));
}

#[test]
fn an_outlook_sets_aside_what_depends_on_what_an_act_is_called_with() {
    let foreseen = |when: &str, field: Option<&str>| {
        let act = Act { field: field.map(str::to_owned), ..propose("d", json!({})) };
        let seen = outlook(&rulebook(&rule(when)), &act, &trusted("a"), &Counters::default(), NOW);
        (seen.decision.mode, seen.open.len())
    };
    for when in [
        "args.amount > 1000",
        "has(args.amount)",
        "!has(args.ticket)",
        "'amount' in changed",
        "!('ticket' in changed)",
        "'amount' in fields",
        "texts.exists(text, text == 'x')",
        "recipients.all(who, who == 'ada@example.com')",
        "holds('card')",
        "!holds('card')",
        "largest('amount') > 5.0",
        "count('ids') == 0",
        "!says('consent')",
        "act.kind == 'propose' && args.amount > 1000",
    ] {
        assert_eq!(foreseen(when, None), (Mode::Act, 1), "{when}");
    }
    // What can be told already is told.
    for (when, mode) in [
        ("act.kind == 'propose'", Mode::Deny),
        ("act.kind == 'propose' || args.amount > 1000", Mode::Deny),
        ("args.amount > 1000 || act.kind == 'propose'", Mode::Deny),
        ("act.kind == 'other' && args.amount > 1000", Mode::Act),
        ("does('delete') && args.amount > 1000", Mode::Act),
        ("act.tool == 'args'", Mode::Act),
    ] {
        assert_eq!(foreseen(when, None), (mode, 0), "{when}");
    }
    // Of an act that names its field, what is changed is known, and its value is not.
    for (when, mode, open) in [("'amount' in changed", Mode::Deny, 0), ("'other' in fields", Mode::Act, 0), ("largest('amount') > 5.0", Mode::Act, 1)] {
        assert_eq!(foreseen(when, Some("amount")), (mode, open), "{when}");
    }
    let book = rulebook("rules:\n  - { field: amount, constraint: value_range, max: 5 }\n  - { field: id, constraint: readonly }\n");
    for (field, mode, open) in [("amount", Mode::Act, 1), ("id", Mode::Deny, 0), ("name", Mode::Act, 0)] {
        let act = Act { field: Some(field.to_owned()), ..propose("d", json!({})) };
        let seen = outlook(&book, &act, &trusted("a"), &Counters::default(), NOW);
        assert_eq!((seen.decision.mode, seen.open.len()), (mode, open), "{field}");
    }
}
