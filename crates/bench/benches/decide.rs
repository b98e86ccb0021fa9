//! How long an answer takes: `cargo bench -p bench --bench decide`.
//!
//! Goals: with 1,000 rules, 20 of them with conditions that must be evaluated, p50 40 µs and p99 200 µs; an act that no
//! condition concerns, p50 3 µs; reading and compiling a file of 1,000 rules, 200 ms.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use deskmate_core::policy::{Act, Counters, Document, Parts, Rulebook, Standing, decide};
use deskmate_core::trust::Points;
use hdrhistogram::Histogram;
use serde_json::json;

/// A file of 1,000 rules: 20 with conditions about every proposal in `crm.deals`, the others about other acts and fields.
fn file() -> String {
    let mut text = String::from("policies:\n  - id: crm\n    rules:\n");
    for number in 0..20 {
        let condition = match number % 5 {
            0 => format!("args.amount > {} && act.kind == 'propose'", 1_000_000 + number),
            1 => format!("counters.calls_hour > {} || trust.score < 0.0{number}", 100 + number),
            2 => format!("act.target.startsWith('account-{number}') && args.amount >= 10"),
            3 => format!("'origin-{number}' in act.taint || changed.exists(p, p == 'secret_{number}')"),
            _ => format!("has(args.note) && args.note.matches('(?i)drop +table {number}')"),
        };
        text += &format!("      - {{ name: watched-{number}, match: {{ domain: crm.deals }}, when: {condition:?}, effect: require_approval }}\n");
    }
    for number in 0..980 {
        text += &match number % 7 {
            0 => format!("      - {{ field: field_{number}, constraint: readonly, reason: Not this one }}\n"),
            1 => format!("      - {{ field: amount_{number}, constraint: value_range, min: 0, max: {number} }}\n"),
            2 => format!("      - {{ name: r{number}, match: {{ tool: tool_{number} }}, when: args.size > {number}, effect: deny, message: Too large }}\n"),
            3 => format!(
                "      - {{ name: r{number}, match: {{ domain: area{number}.* }}, when: act.cost > {number}.5, effect: require_approval, quorum: 2 }}\n"
            ),
            4 => format!("      - {{ name: r{number}, match: {{ agent: bot-{number}, kind: propose }}, effect: log }}\n"),
            5 => format!(
                "      - {{ name: r{number}, match: {{ kind: file.write, domain: [files, docs{number}] }}, when: \"act.target.matches('^/etc/{number}')\", effect: deny }}\n"
            ),
            _ => format!("      - {{ field: 'prefix_{number}_*', constraint: regex, pattern: '^[a-z]{{{{1,{}}}}}$' }}\n", number % 20 + 1)
                .replace("{{", "{")
                .replace("}}", "}"),
        };
    }
    text += "mappings:\n  - { agent_id: '*', domain: '*', policy_id: crm }\n";
    text
}

fn compile(text: &str) -> Rulebook {
    let document = Document::parse(text).unwrap_or_else(|problems| panic!("{problems:#?}"));
    Rulebook::compile(document.over(&Parts::default()), BTreeMap::new()).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn act(domain: &str) -> Act {
    Act {
        kind: "propose".to_owned(),
        tool: "cowork_propose".to_owned(),
        domain: domain.to_owned(),
        action: "update".to_owned(),
        target: "deal 4711".to_owned(),
        arguments: json!({ "amount": 1_200, "note": "a short note for the people who decide", "contact_name": "Ann", "tags": ["a", "b"] }),
        ..Act::default()
    }
}

/// Percentiles of single answers, in nanoseconds.
fn measure(name: &str, goal: &str, rulebook: &Rulebook, act: &Act, checked: u32) {
    let standing =
        Standing { agent: "sales".to_owned(), verified: true, paused: false, score: Points::of(0.9), decided: 40, over_a_persons_edit: false, waived_by: None };
    let counters = Counters::default();
    let answer = decide(rulebook, act, &standing, &counters, 1_794_825_000_000_000);
    assert_eq!((answer.rules_checked, answer.hits.len()), (checked, 0), "{answer:#?}");
    let mut times = Histogram::<u64>::new(3).expect("a histogram");
    for round in 0..60_000_u32 {
        let start = Instant::now();
        black_box(decide(black_box(rulebook), black_box(act), &standing, &counters, 1_794_825_000_000_000));
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if round >= 10_000 {
            times.saturating_record(nanos);
        }
    }
    let micros = |quantile: f64| times.value_at_quantile(quantile) as f64 / 1_000.0;
    println!("{name:<44} p50 {:>8.2} µs   p99 {:>8.2} µs   ({goal})", micros(0.5), micros(0.99));
}

fn main() {
    let text = file();
    let rulebook = compile(&text);
    measure("an act that no condition concerns", "p50 3 µs", &rulebook, &act("elsewhere"), 0);
    measure("1,000 rules, 20 conditions evaluated", "p50 40 µs, p99 200 µs", &rulebook, &act("crm.deals"), 20);
    measure("no policy at all", "", &compile(""), &act("crm.deals"), 0);
    let mut times: Vec<f64> = (0..20)
        .map(|_| {
            let start = Instant::now();
            black_box(compile(black_box(&text)));
            start.elapsed().as_secs_f64() * 1_000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    println!("{:<44} p50 {:>8.2} ms   p99 {:>8.2} ms   (200 ms)", "read and compile a file of 1,000 rules", at(50), at(99));
}
