//! How long an answer takes: `cargo bench -p bench --bench decide`.
//!
//! Goals: with 1,000 rules, 20 of them with conditions that must be evaluated, p50 40 µs and p99 200 µs; an act that no
//! condition concerns, p50 3 µs; reading and compiling a file of 1,000 rules, 200 ms.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use deskmate_core::policy::{Act, Counters, Document, Parts, Rulebook, Standing, decide};
use deskmate_core::trust::Points;
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

/// Percentiles of single answers.
fn measure(name: &str, goal: &str, rulebook: &Rulebook, act: &Act, checked: u32) {
    let standing = Standing {
        agent: "sales".to_owned(),
        verified: true,
        paused: false,
        score: Points::of(0.9),
        decided: 40,
        over_a_persons_edit: false,
        waived_by: None,
        attached: None,
    };
    let counters = Counters::default();
    let answer = decide(rulebook, act, &standing, &counters, 1_794_825_000_000_000);
    assert_eq!((answer.rules_checked, answer.hits.len()), (checked, 0), "{answer:#?}");
    let mut times = Vec::new();
    for round in 0..60_000_u32 {
        let start = Instant::now();
        black_box(decide(black_box(rulebook), black_box(act), &standing, &counters, 1_794_825_000_000_000));
        let elapsed = start.elapsed();
        if round >= 10_000 {
            times.push(elapsed.as_secs_f64() * 1e6);
        }
    }
    show(name, "µs", times, goal);
}

/// Exact percentiles of what was measured; nothing is put into buckets.
fn show(name: &str, unit: &str, mut times: Vec<f64>, goal: &str) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    let (least, most) = (at(0.0), at(1.0));
    assert!(least > 0.0, "a clock that stands still measures nothing");
    println!("{name:<46} least {least:>8.2}   p50 {:>8.2}   p99 {:>8.2}   most {most:>9.2} {unit}   n {}   {goal}", at(0.5), at(0.99), times.len());
}

/// Nanoseconds that this thread was on a processor, where the system tells: a busy machine does not count.
fn on_cpu() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Milliseconds of a few runs: by the clock, and on the processor.
fn phase<T>(name: &str, goal: &str, mut run: impl FnMut() -> T) {
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        let (start, before) = (Instant::now(), on_cpu());
        black_box(run());
        wall.push(start.elapsed().as_secs_f64() * 1e3);
        if let (Some(before), Some(after)) = (before, on_cpu()) {
            cpu.push((after - before) / 1e6);
        }
    }
    show(&format!("{name}, by the clock"), "ms", wall, goal);
    if !cpu.is_empty() && cpu.iter().all(|time| *time > 0.0) {
        show(&format!("{name}, on the processor"), "ms", cpu, "");
    }
}

fn main() {
    let text = file();
    let rulebook = compile(&text);
    measure("an act that no condition concerns", "(p50 3 µs)", &rulebook, &act("elsewhere"), 0);
    measure("1,000 rules, 20 conditions evaluated", "(p50 40 µs, p99 200 µs)", &rulebook, &act("crm.deals"), 20);
    measure("no policy at all", "", &compile(""), &act("crm.deals"), 0);
    phase("read and compile 1,000 rules", "(200 ms)", || compile(&text));
    phase("  of it: reading the text", "", || Document::parse(&text).expect("it is right"));
    let parts = Document::parse(&text).expect("it is right").over(&Parts::default());
    phase("  of it: compiling", "", || Rulebook::compile(parts.clone(), BTreeMap::new()).expect("it is right"));
}
