//! Many clients at once, each with one request under way.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use hdrhistogram::Histogram;

use crate::http::Connection;
use crate::server::{Server, binary};

/// What the clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Durable `send_message`.
    Send,
    /// `read_messages`, a page of the default size.
    Read,
    /// One send for every four reads.
    Mixed,
    /// Durable `cowork_propose`, each of which waits for a person.
    Propose,
}

/// Proposals that one agent makes before the next one takes over: fewer than an hour holds.
const PROPOSALS_EACH: usize = 40;

/// The agent of a proposal, and what it proposes.
pub fn proposal(client: usize, turn: usize) -> (String, String) {
    let body = format!(
        r#"{{"domain":"crm.deals","action":"update","target":"deal/{turn}","proposed_change":"{{\"next_step\":\"call {turn}\"}}","confidence":0.8,"reasoning":"{}"}}"#,
        "x".repeat(100)
    );
    (format!("bench-{client}-{}", turn / PROPOSALS_EACH), body)
}

#[derive(Args, Clone)]
pub struct LoadArgs {
    /// What the clients do
    #[arg(long, value_enum, default_value = "send")]
    pub scenario: Scenario,
    /// How many clients
    #[arg(long, default_value_t = 64)]
    pub clients: usize,
    /// For how long
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// A running server in open mode; without it one is started and thrown away
    #[arg(long)]
    pub url: Option<String>,
    /// PostgreSQL for the server that is started
    #[arg(long)]
    pub database_url: Option<String>,
}

/// What came out.
pub struct Figures {
    /// Answered calls in a second.
    pub rate: f64,
    /// Microseconds from request to answer.
    pub times: Histogram<u64>,
    /// Calls that were refused or failed.
    pub failed: u64,
}

impl Figures {
    /// A quantile in milliseconds.
    pub fn ms(&self, quantile: f64) -> f64 {
        ms(self.times.value_at_quantile(quantile))
    }

    /// One line for people.
    pub fn line(&self) -> String {
        format!(
            "{:.0} calls/s, p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms, max {:.2} ms, {} failed",
            self.rate,
            self.ms(0.5),
            self.ms(0.9),
            self.ms(0.99),
            ms(self.times.max()),
            self.failed
        )
    }
}

/// Microseconds as milliseconds.
#[expect(clippy::cast_precision_loss, reason = "times are far below 2^53 microseconds")]
pub fn ms(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}

/// An empty set of times up to a minute.
pub fn times() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are sound")
}

/// Runs the load against a server, started for it if need be.
pub fn run(args: &LoadArgs, program: Option<&Path>) -> Figures {
    if let Some(url) = &args.url {
        return drive(url, args);
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(&binary(program), home.path(), args.database_url.as_deref());
    drive(&server.url, args)
}

/// Drives a running server.
pub fn drive(url: &str, args: &LoadArgs) -> Figures {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let shared = Arc::new(Mutex::new((times(), 0_u64)));
        let warm = Instant::now() + Duration::from_millis(500);
        let until = warm + Duration::from_secs(args.seconds);
        let mut clients = Vec::new();
        for number in 0..args.clients {
            let (url, scenario, shared) = (url.to_owned(), args.scenario, Arc::clone(&shared));
            clients.push(tokio::spawn(async move {
                let (own, failed) = client(&url, scenario, number, warm, until).await;
                let mut shared = shared.lock().expect("no client panicked");
                shared.0.add(own).expect("the bounds are the same");
                shared.1 += failed;
            }));
        }
        for client in clients {
            client.await.expect("no client panicked");
        }
        let (times, failed) = std::mem::replace(&mut *shared.lock().expect("no client panicked"), (times(), 0));
        #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
        let rate = times.len() as f64 / args.seconds as f64;
        Figures { rate, times, failed }
    })
}

async fn client(url: &str, scenario: Scenario, number: usize, warm: Instant, until: Instant) -> (Histogram<u64>, u64) {
    let mut connection = Connection::open(url).await.expect("the server answers");
    let agent = format!("bench-{number}");
    // A mailbox holds a bounded number of unread messages, so each client goes round several.
    let bodies: Vec<String> = (0..16).map(|to| format!(r#"{{"to":"inbox-{number}-{to}","content":"{}"}}"#, "x".repeat(200))).collect();
    let (mut own, mut failed, mut turn) = (times(), 0, 0_usize);
    while Instant::now() < until {
        let send = scenario == Scenario::Send || (scenario == Scenario::Mixed && turn.is_multiple_of(5));
        let started = Instant::now();
        let answer = if scenario == Scenario::Propose {
            let (agent, body) = proposal(number, turn);
            connection.call("cowork_propose", &agent, &body).await
        } else if send {
            connection.call("bridge_send_message", &agent, &bodies[turn % bodies.len()]).await
        } else {
            connection.call("bridge_read_messages", &agent, "{}").await
        };
        turn += 1;
        let took = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        match answer {
            Ok((200, _)) if started >= warm => own.saturating_record(took),
            Ok((200, _)) => {}
            Ok((status, _)) => {
                if failed == 0 {
                    eprintln!("status {status}: {}", connection.json());
                }
                failed += 1;
            }
            Err(error) => panic!("the connection broke: {error}"),
        }
    }
    (own, failed)
}
