//! Everything in one run, as the table of docs/performance.md.

use std::path::Path;

use crate::load::{LoadArgs, Scenario};
use crate::{bridge, fill, floor, hook, inbox, large, load};

/// What `bench all` takes beside the binary.
pub struct Plan<'a> {
    pub program: Option<&'a Path>,
    pub messages: u64,
    pub seconds: u64,
    pub database_url: Option<&'a str>,
    pub home: &'a Path,
}

struct Table {
    rows: Vec<[String; 3]>,
}

impl Table {
    fn add(&mut self, what: &str, target: &str, found: String) {
        eprintln!("{what}: {found} (target {target})");
        self.rows.push([what.to_owned(), target.to_owned(), found]);
    }

    fn print(&self) {
        println!("| what | target | measured |\n|---|---|---|");
        for [what, target, found] in &self.rows {
            println!("| {what} | {target} | {found} |");
        }
    }
}

/// Runs everything and prints the table.
pub fn all(plan: &Plan<'_>) {
    let mut table = Table { rows: Vec::new() };
    for (what, target, propose) in [("send", "≤ 0.6 ms", false), ("proposal", "≤ 0.8 ms", true)] {
        let beyond = floor::run(plan.program, 1_000, propose);
        let found = format!("{:.2} ms ({:.2} ms against {:.2} ms)", beyond.beyond(), beyond.call, beyond.disk);
        table.add(&format!("one durable {what} beyond one 4 kB append with fdatasync, p50"), target, found);
    }
    let beyond = hook::run(plan.program, 500);
    let found = format!("{:.2} ms ({:.2} ms against {:.2} ms)", beyond.beyond(), beyond.call, beyond.disk);
    table.add("one hook as a fresh process, durable, beyond one such append, p50", "≤ 6 ms", found);
    loads(plan, &mut table);
    inboxes(plan, &mut table);
    stores(plan, &mut table);
    println!("{}\n", machine());
    table.print();
}

fn loads(plan: &Plan<'_>, table: &mut Table) {
    let load = |scenario, clients, database_url: Option<&str>| {
        let args = LoadArgs { scenario, clients, seconds: plan.seconds, url: None, database_url: database_url.map(str::to_owned) };
        load::run(&args, plan.program).line()
    };
    table.add("send, 64 clients, SQLite", "≥ 5,000/s", load(Scenario::Send, 64, None));
    table.add("read, 64 clients, SQLite", "", load(Scenario::Read, 64, None));
    table.add("mixed, 64 clients, SQLite", "", load(Scenario::Mixed, 64, None));
    table.add("propose, 64 clients, SQLite", "≥ 4,000/s, p99 ≤ 30 ms", load(Scenario::Propose, 64, None));
    if let Some(url) = plan.database_url {
        table.add("send, 64 clients, PostgreSQL", "≥ 1,000/s", load(Scenario::Send, 64, Some(url)));
    }
}

fn inboxes(plan: &Plan<'_>, table: &mut Table) {
    let home = tempfile::tempdir().expect("a temporary directory");
    for (what, (p50, p99)) in inbox::run(plan.program, home.path(), 100_000, 5_000) {
        table.add(&format!("a page of {what}, 100,000 decided and 5,000 pending requests"), "p99 ≤ 5 ms", format!("p50 {p50:.2} ms, p99 {p99:.2} ms"));
    }
}

fn stores(plan: &Plan<'_>, table: &mut Table) {
    let small = tempfile::tempdir().expect("a temporary directory");
    fill::run(small.path(), 1_000, 10);
    let big = plan.home;
    if !big.join("desk.db").is_file() {
        let rate = fill::run(big, plan.messages, 100);
        table.add(&format!("filling a store with {} messages in process", plan.messages), "", format!("{rate:.0}/s"));
    }
    let bytes = std::fs::metadata(big.join("desk.db")).map_or(0, |file| file.len());
    let (p50, p99) = large::quantiles(&large::read(plan.program, small.path()));
    table.add("read_messages, a page of 50, store of 1,000 messages", "", format!("p50 {p50:.2} ms, p99 {p99:.2} ms"));
    let (p50, p99) = large::quantiles(&large::read(plan.program, big));
    table.add(&format!("read_messages, a page of 50, store of {} messages", plan.messages), "p99 ≤ 5 ms", format!("p50 {p50:.2} ms, p99 {p99:.2} ms"));
    let (p50, p99) = large::quantiles(&large::prove(big));
    table.add("inclusion proof from that store", "≤ 1 ms", format!("p50 {p50:.2} ms, p99 {p99:.2} ms"));
    let (seconds, events) = large::verify(plan.program, big);
    table.add(&format!("audit verify of {events} events"), "≤ 10 s", format!("{seconds:.1} s"));
    let (p50, p99) = large::quantiles(&large::start(plan.program, big));
    table.add(&format!("start to first answer, store of {} MB", bytes / 1_000_000), "≤ 150 ms", format!("p50 {p50:.0} ms, worst {p99:.0} ms"));
    let (idle, half, full) = large::memory(plan.program, big, 100_000);
    let mb = |kb: u64| format!("{}.{} MB", kb / 1_000, kb % 1_000 / 100);
    table.add("resident memory, idle", "≤ 25 MB", mb(idle));
    table.add("the same after 50,000 and 100,000 calls", "flat", format!("{}, {}", mb(half), mb(full)));
    let life = bridge::run(plan.program, big);
    for (what, phase) in [("copied into a new bridge file", life.copying), ("compared with it at the start", life.comparing), ("in step with it", life.in_step)]
    {
        table.add(&format!("that store while it is {what}"), "reads p99 ≤ 5 ms, a row within 1 s", phase.line());
    }
    match large::shim(plan.program, small.path()) {
        None => table.add("shim start to first answer", "p50 ≤ 15 ms", "not measured: this binary has no `mcp` command".to_owned()),
        Some((times, rss)) => {
            let (p50, p99) = large::quantiles(&times);
            table.add("shim start to first answer", "p50 ≤ 15 ms", format!("p50 {p50:.1} ms, p99 {p99:.1} ms"));
            table.add("shim, resident memory", "≤ 8 MB", mb(rss));
        }
    }
}

/// The machine in one line.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim().to_owned()));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = read("/proc/meminfo");
    let memory = memory.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1_000_000;
    let mounts = read("/proc/mounts");
    let disk = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (device, at, kind) = (words.next()?, words.next()?, words.next()?);
        (at == "/").then(|| format!("{kind} on {device}"))
    });
    format!(
        "{cores} cores ({}), {memory} GB memory, {}, Linux {}; the load tool runs on the same cores",
        model.unwrap_or_default(),
        disk.unwrap_or_default(),
        read("/proc/sys/kernel/osrelease").trim()
    )
}
