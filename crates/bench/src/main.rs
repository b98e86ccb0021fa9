//! Measures a desk. Build the server first: `cargo build --release -p deskmate`, then for example
//! `cargo run --release -p bench -- load --clients 64 --seconds 10`.

mod agents;
mod bridge;
mod calls;
mod fill;
mod floor;
mod gateway;
mod hook;
mod http;
mod inbox;
mod large;
mod load;
mod report;
mod server;
mod workspace;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "bench", about = "Measures a desk")]
struct Cli {
    /// The server's binary; the one beside this program if not given
    #[arg(long, global = true)]
    binary: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Many clients at once
    Load(load::LoadArgs),
    /// One durable send or proposal against one append with fdatasync
    Floor {
        /// How many of each
        #[arg(long, default_value_t = 1_000)]
        rounds: u32,
        /// Measure proposals instead of sends
        #[arg(long)]
        propose: bool,
    },
    /// One hook as a fresh process against one append with fdatasync
    Hook {
        /// How many of each
        #[arg(long, default_value_t = 500)]
        rounds: u32,
    },
    /// A server called directly, through another gateway, and through the desk
    Gateway(gateway::Args),
    /// The server that `gateway` calls
    #[command(hide = true)]
    Echo,
    /// Make a large store in a data directory
    Fill {
        #[arg(long)]
        home: PathBuf,
        #[arg(long, default_value_t = 1_000_000)]
        messages: u64,
        /// Over how many mailboxes they are spread
        #[arg(long, default_value_t = 100)]
        recipients: u64,
    },
    /// read_messages on a store that `fill` made
    ReadLarge {
        #[arg(long)]
        home: PathBuf,
    },
    /// Verify the record of a store that `fill` made, and prove events of it
    Verify {
        #[arg(long)]
        home: PathBuf,
    },
    /// Start the server and the shim on a store that `fill` made, and look at their memory
    Start {
        #[arg(long)]
        home: PathBuf,
    },
    /// The bridge file of a store that `fill` made: copied, compared, and written by hand
    Bridge {
        #[arg(long)]
        home: PathBuf,
    },
    /// The inbox of a store with much history
    Inbox {
        #[arg(long, default_value_t = 100_000)]
        decided: u64,
        #[arg(long, default_value_t = 5_000)]
        pending: u64,
    },
    /// Scanning, hashing, planning and moving files
    Workspace(workspace::Args),
    /// Agents that the desk runs: starting, making, asking, looking back, waiting and beginning together
    Agents(agents::Args),
    /// Single operations in process, without surfaces: what they cost by themselves
    Calls {
        /// A new data directory, best in memory
        #[arg(long)]
        home: PathBuf,
        /// Only this one
        #[arg(long)]
        operation: Option<calls::Operation>,
        #[arg(long, default_value_t = 1_000)]
        rounds: u32,
    },
    /// Everything, as a table
    All {
        #[arg(long, default_value_t = 1_000_000)]
        messages: u64,
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// PostgreSQL for the load on it
        #[arg(long)]
        database_url: Option<String>,
        /// Where the large store is made, or found from before; a temporary directory if not given
        #[arg(long)]
        home: Option<PathBuf>,
    },
}

fn main() {
    let cli = Cli::parse();
    let program = cli.binary.as_deref();
    let line = |what: &str, (p50, p99): (f64, f64)| println!("{what}: p50 {p50:.2} ms, p99 {p99:.2} ms");
    match cli.command {
        Command::Load(args) => println!("{:?}, {} clients: {}", args.scenario, args.clients, load::run(&args, program).line()),
        Command::Floor { rounds, propose } => {
            let found = floor::run(program, rounds, propose);
            let what = if propose { "proposal" } else { "send" };
            println!("append 4 kB and fdatasync p50 {:.3} ms, durable {what} p50 {:.3} ms, beyond {:.3} ms", found.disk, found.call, found.beyond());
        }
        Command::Hook { rounds } => {
            let found = hook::run(program, rounds);
            println!("append 4 kB and fdatasync p50 {:.3} ms, one hook p50 {:.3} ms, beyond {:.3} ms", found.disk, found.call, found.beyond());
        }
        Command::Gateway(args) => {
            let found = gateway::run(program, &args);
            println!("append 4 kB and fdatasync: p50 {:.3} ms", found.disk);
            let direct = found.ways.first().map_or(0.0, |(_, (p50, _))| *p50);
            for (way, (p50, p99)) in &found.ways {
                println!(
                    "one client {way}: p50 {p50:.3} ms, p99 {p99:.3} ms, beyond the direct call {:.3} ms, and the append {:.3} ms",
                    p50 - direct,
                    p50 - direct - found.disk
                );
            }
            for (way, figures) in &found.many {
                println!("{} clients, {way}: {}", args.clients, figures.line());
            }
            let (before, quarter, all) = found.memory;
            println!("resident memory of the desk: {before} kB before, {quarter} kB after {} calls more, {all} kB after {}", args.calls / 4, args.calls);
        }
        Command::Echo => gateway::serve(),
        Command::Fill { home, messages, recipients } => println!("{:.0} messages/s", fill::run(&home, messages, recipients)),
        Command::ReadLarge { home } => line("read_messages, a page of 50", large::quantiles(&large::read(program, &home))),
        Command::Verify { home } => {
            line("inclusion proof", large::quantiles(&large::prove(&home)));
            let (seconds, events) = large::verify(program, &home);
            println!("audit verify of {events} events: {seconds:.2} s");
        }
        Command::Start { home } => {
            line("start to first answer", large::quantiles(&large::start(program, &home)));
            match large::shim(program, &home) {
                None => println!("shim: this binary has no `mcp` command"),
                Some((times, rss)) => {
                    line("shim start to first answer", large::quantiles(&times));
                    println!("shim, resident memory: {rss} kB");
                }
            }
            let (idle, half, full) = large::memory(program, &home, 100_000);
            println!("resident memory: idle {idle} kB, after 50,000 calls {half} kB, after 100,000 calls {full} kB");
        }
        Command::Bridge { home } => {
            let life = bridge::run(program, &home);
            for (what, phase) in [("copying", life.copying), ("comparing", life.comparing), ("in step", life.in_step)] {
                println!("{what}: {}", phase.line());
            }
        }
        Command::Inbox { decided, pending } => {
            let temporary = tempfile::tempdir().expect("a temporary directory");
            inbox::run(program, temporary.path(), decided, pending).into_iter().for_each(|(what, found)| line(what, found));
        }
        Command::Workspace(args) => {
            let found = workspace::run(program, args);
            let ratio = |(ours, theirs): (f64, f64)| ours / theirs;
            println!("scan: {:.0} entries/s, find {:.0}, {:.2} times as fast", found.scan.0, found.scan.1, ratio(found.scan));
            println!("hash: {:.0} MB/s, sha256sum {:.0}, {:.0} % of it", found.hash.0, found.hash.1, 100.0 * ratio(found.hash));
            println!("planning {} moves: {:.2} s", found.plan.1, found.plan.0);
            println!("doing {} moves: {:.0}/s", found.execute.1, found.execute.0);
            println!("resident memory: {} kB before, at most {} kB", found.memory.0, found.memory.1);
        }
        Command::Agents(args) => agents::run(program, &args),
        Command::Calls { home, operation, rounds } => calls::run(&home, operation, rounds),
        Command::All { messages, seconds, database_url, home } => {
            let temporary = tempfile::tempdir().expect("a temporary directory");
            let home = home.unwrap_or_else(|| temporary.path().to_owned());
            report::all(&report::Plan { program, messages, seconds, database_url: database_url.as_deref(), home: &home });
        }
    }
}
