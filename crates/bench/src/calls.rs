//! Single operations in process, without surfaces, and best in memory: what they cost by themselves. A profiler sees nothing else here,
//! for example `valgrind --tool=callgrind bench calls --operation create --home /dev/shm/x`.

use std::path::Path;
use std::time::Instant;

use clap::ValueEnum;
use deskmate_core::call::Credential;
use serde_json::json;

use crate::agents::{approval, claimed, description};
use crate::floor::micros;
use crate::inbox::{call, propose};
use crate::large::quantiles;
use crate::load::times;

/// An operation, or all of them in turn.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    Propose,
    Create,
    Ask,
    Audit,
    Test,
    Check,
}

/// Makes each call so often, and prints how long it took.
pub fn run(home: &Path, only: Option<Operation>, rounds: u32) {
    let (desk, _, runtime) = claimed(home);
    for round in 0..rounds {
        let made = runtime.block_on(call(&desk, bench(), "agents_create_agent", description(round)));
        assert!(made["agentId"].is_string(), "{made}");
    }
    for operation in Operation::value_variants().iter().filter(|each| only.is_none_or(|only| only == **each)) {
        let mut found = times();
        for round in 0..rounds {
            let agent = format!("counter-{round}");
            let (name, input) = match operation {
                Operation::Propose => ("cowork_propose", propose(u64::from(round)).input),
                Operation::Create => ("agents_create_agent", description(rounds + round)),
                Operation::Ask => ("agents_request_approval", approval(round)),
                Operation::Audit => ("agents_audit_log", json!({ "agentId": agent })),
                Operation::Test => ("agents_test_agent", json!({ "agentId": agent, "scenario": "An ordinary day" })),
                Operation::Check => ("agents_check_compliance", json!({ "agentId": agent, "framework": "SOC2" })),
            };
            let started = Instant::now();
            runtime.block_on(call(&desk, bench(), name, input));
            found.saturating_record(micros(started.elapsed()));
        }
        let (p50, p99) = quantiles(&found);
        println!("{}: p50 {p50:.3} ms, p99 {p99:.3} ms", operation.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned()));
    }
    desk.db.close();
}

fn bench() -> Credential {
    Credential::Named(Some("bench".to_owned()))
}
