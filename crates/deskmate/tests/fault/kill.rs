//! kill -9 at random moments under load. What was acknowledged is there afterwards, nothing is there twice, and the
//! record is sound. `DESKMATE_KILL_ROUNDS=10000` makes a longer run.

use std::collections::BTreeSet;
use std::time::Duration;

use super::support::{Chance, Desk, Http, verify, waiting};

const WRITERS: u64 = 4;

/// What the writers of one round tried and what was acknowledged to them.
#[derive(Default)]
struct Round {
    tried: BTreeSet<String>,
    acknowledged: Vec<(String, String)>,
}

/// One writer: sends until the server is gone.
fn write(address: &str, round: u64, writer: u64) -> Round {
    let mut done = Round::default();
    let Ok(mut http) = Http::open(address) else { return done };
    for number in 0.. {
        let content = format!("{round}/{writer}/{number}");
        done.tried.insert(content.clone());
        match http.send("writer", &format!("reader-{round}"), &content) {
            Ok(answer) => {
                let id = answer.good()["message_id"].as_str().expect("an id").to_owned();
                done.acknowledged.push((id, content));
            }
            Err(_) => break,
        }
    }
    done
}

fn check(desk: &Desk, round: u64, wrote: &Round) {
    let found = waiting(&mut desk.http(), &format!("reader-{round}"));
    let there: BTreeSet<_> = found.iter().cloned().collect();
    for message in &wrote.acknowledged {
        assert!(there.contains(message), "round {round}: {message:?} was acknowledged and is gone");
    }
    let contents: BTreeSet<_> = found.iter().map(|(_, content)| content.clone()).collect();
    assert_eq!(contents.len(), found.len(), "round {round}: something is there twice");
    assert!(contents.is_subset(&wrote.tried), "round {round}: something is there that nobody wrote");
}

#[test]
fn acknowledged_writes_survive_kill_9_at_any_moment() {
    let rounds: u64 = std::env::var("DESKMATE_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(200);
    let mut chance = Chance::new("kill");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    let mut last = Round::default();
    let mut total = 0;
    for round in 0..rounds {
        let mut desk = Desk::start(&home);
        if round > 0 {
            check(&desk, round - 1, &last);
        }
        let moment = Duration::from_micros(5_000 + chance.below(55_000));
        last = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    scope.spawn({
                        let address = desk.address.clone();
                        move || write(&address, round, writer)
                    })
                })
                .collect();
            std::thread::sleep(moment);
            desk.child.kill().expect("the server can be killed");
            desk.ended();
            writers.into_iter().fold(Round::default(), |mut all, writer| {
                let one = writer.join().expect("the writer ends");
                all.tried.extend(one.tried);
                all.acknowledged.extend(one.acknowledged);
                all
            })
        });
        total += last.acknowledged.len();
        if round % 20 == 19 {
            verify(&home);
        }
    }
    check(&Desk::start(&home), rounds - 1, &last);
    println!("{rounds} rounds, {total} acknowledged messages, {} events", verify(&home));
    assert!(total as u64 > rounds, "the writers hardly wrote: {total}");
}
