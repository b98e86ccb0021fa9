//! kill -9 at random moments while schedules are due. A moment has one run, no moment is lost, every run is done, and what it does
//! happens once. `DESKMATE_RUN_KILL_ROUNDS=100` makes a longer run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::cluster::{Cluster, desk_on};
use super::support::{Chance, Desk, eventually, verify, verify_on, waiting};

const SECOND: i64 = 1_000_000;
/// The longest that a run waits for a new worker: the lease of the lost one, the sweep, and backoff for several losses.
const SETTLED: Duration = Duration::from_mins(5);

fn rounds() -> u64 {
    std::env::var("DESKMATE_RUN_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(12)
}

/// Agents that are due every second, each of whose runs tells the reader two things.
fn deploy(desk: &Desk, session: &str, names: &[&str], placed: &serde_json::Value) {
    let steps = json!([
        { "id": "one", "do": "bridge_send_message", "with": { "to": "reader", "content": "{{run.id}}/1" } },
        { "id": "two", "do": "bridge_send_message", "with": { "to": "reader", "content": "{{run.id}}/2" } }
    ]);
    for name in names {
        let agent =
            json!({ "name": name, "description": "Ticks", "policies": [], "steps": steps, "schedule": "* * * * * *", "overlap": true, "missed": "catch_up" });
        desk.with(session, "agents_create_agent", &agent).good();
        let mut input = json!({ "agentId": name });
        input.as_object_mut().expect("an object").extend(placed.as_object().expect("an object").clone());
        let done = desk.with(session, "agents_deploy_agent", &input).good();
        assert_eq!(done["deployed"], true, "{done}");
    }
}

/// A run as the store has it.
struct Run {
    id: String,
    agent: String,
    moment: i64,
    state: String,
    created_at: i64,
    error: String,
}

const RUNS: &str = "select id, agent, moment, state, created_at, coalesce(error, '') from agent_run order by agent, moment";

fn runs(lines: &[String]) -> Vec<Run> {
    let read = |line: &String| {
        let parts: Vec<&str> = line.split('|').collect();
        let number = |at: usize| parts[at].parse().expect("a number");
        Run {
            id: parts[0].to_owned(),
            agent: parts[1].to_owned(),
            moment: number(2),
            state: parts[3].to_owned(),
            created_at: number(4),
            error: parts[5..].join("|"),
        }
    };
    lines.iter().map(read).collect()
}

fn sqlite(home: &Path, sql: &str) -> Vec<String> {
    let output = Command::new("sqlite3").args(["-cmd", ".timeout 10000"]).arg(home.join("desk.db")).arg(sql).output().expect("sqlite3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Waits until every run that is due by now has ended, and checks each of them and what it did. The schedules go on meanwhile.
fn check(desk: &Desk, agents: usize, ask: &dyn Fn(&str) -> Vec<String>) -> usize {
    eventually("it ticks", Duration::from_secs(20), || ask(RUNS).len() > 4 * agents);
    let until: i64 = ask("select max(moment) from agent_run")[0].parse().expect("a moment");
    eventually("every run has ended", SETTLED, || {
        std::thread::sleep(Duration::from_millis(200));
        ask(&format!("select count(*) from agent_run where finished_at is null and moment <= {until}")) == ["0"]
    });
    let told = waiting(&mut desk.http(), "reader");
    let known = runs(&ask(RUNS));
    let all: Vec<&Run> = known.iter().filter(|run| run.moment <= until).collect();
    let mut of: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in &all {
        of.entry(&run.agent).or_default().push(run);
        assert_eq!(run.state, "done", "run {} of {}: {}", run.id, run.agent, run.error);
    }
    assert_eq!(of.len(), agents);
    // A run is made in one transaction with the next moment, which is the first second after it. So each run's moment follows from when the
    // one before was made: a moment that got lost, or was there twice, breaks the chain.
    for (agent, runs) in &of {
        for pair in runs.windows(2) {
            let next = (pair[0].created_at / SECOND + 1) * SECOND;
            assert_eq!(pair[1].moment, next, "{agent}: the moment after {} is not there", pair[0].moment);
        }
    }
    let different: BTreeSet<&str> = told.iter().map(|(_, content)| content.as_str()).collect();
    assert_eq!(told.len(), different.len(), "something was done twice");
    for run in &all {
        let done = ["1", "2"].map(|part| different.contains(format!("{}/{part}", run.id).as_str()));
        assert_eq!(done, [true, true], "run {} of {} did not do what it says", run.id, run.agent);
    }
    let ids: BTreeSet<&str> = known.iter().map(|run| run.id.as_str()).collect();
    assert!(different.iter().all(|told| told.split('/').next().is_some_and(|id| ids.contains(id))), "something was done for no run");
    all.len()
}

#[test]
fn no_run_is_lost_or_doubled_however_often_the_server_is_killed() {
    let mut chance = Chance::new("schedule");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let (mut desk, session) = Desk::owned(&home);
    deploy(&desk, &session, &["a", "b", "c", "d"], &json!({}));
    for _ in 0..rounds() {
        std::thread::sleep(Duration::from_millis(100 + chance.below(1_400)));
        desk.child.kill().expect("the server can be killed");
        desk.ended();
        desk = Desk::start(&home);
    }
    let ask = |sql: &str| sqlite(&home, sql);
    let count = check(&desk, 4, &ask);
    desk.stop();
    println!("{} kills, {count} runs, {} events", rounds(), verify(&home));
}

/// A server of the desk, and how it is started again.
struct Member {
    desk: Desk,
    home: PathBuf,
    node: bool,
}

#[test]
fn no_run_is_lost_or_doubled_however_often_servers_of_one_desk_are_killed() {
    let Some(cluster) = Cluster::start() else { return };
    let mut chance = Chance::new("schedule of several");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let first = directory.path().join("one");
    let (desk, session) = Desk::owned_on(&first, Some(&cluster.url));
    deploy(&desk, &session, &["a", "b"], &json!({}));
    deploy(&desk, &session, &["c", "d"], &json!({ "environment": "cloud", "labels": ["gpu"] }));
    let mut nodes = 0..;
    let mut node = || {
        // Whoever takes the place of a node that is gone has a name of its own.
        let name = format!("east-{}", nodes.next().unwrap_or_default());
        let home = directory.path().join(&name);
        Member { desk: cluster.node(&home, &first, &name, "gpu"), home, node: true }
    };
    let mut members = vec![Member { desk, home: first.clone(), node: false }, node(), node()];
    for _ in 0..rounds() {
        std::thread::sleep(Duration::from_millis(100 + chance.below(1_400)));
        let which = usize::try_from(chance.below(3)).unwrap_or_default();
        let killed = &mut members[which];
        killed.desk.child.kill().expect("the server can be killed");
        killed.desk.ended();
        members[which] = if killed.node {
            node()
        } else {
            let home = killed.home.clone();
            let desk = desk_on(&home, &cluster.url).unwrap_or_else(|ended| panic!("{}", ended.stderr));
            Member { desk, home, node: false }
        };
    }
    let ask = |sql: &str| cluster.ask(sql);
    let begun = Instant::now();
    let count = check(&members[0].desk, 4, &ask);
    // The schedules go on: what has not begun has no node yet.
    let elsewhere = ask("select count(*) from agent_run where agent in ('c', 'd') and started_at is not null and (node is null or node not like 'east-%')");
    assert_eq!(elsewhere, ["0"], "what is for nodes was done elsewhere");
    assert_ne!(ask("select count(*) from agent_run where agent in ('c', 'd') and node like 'east-%'"), ["0"]);
    assert_eq!(ask("select count(*) from agent_run where agent in ('a', 'b') and node is not null"), ["0"], "what is local was done elsewhere");
    println!("{} kills, {count} runs, settled after {:?}", rounds(), begun.elapsed());
    drop(members);
    println!("{} events", verify_on(&first, &cluster.url));
}
