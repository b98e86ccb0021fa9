//! The queue on both engines: what workers rely on.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deskmate_core::call::{ActorKind, Cx, Desk, Surface};
use deskmate_core::job::{self, ANYWHERE, Beat, Claimed, Enqueued, Hold, IfLost, NewJob, Outcome, Owner, Priority, Progress, State};
use deskmate_core::limits::{INPUT_BYTES_MAX, JOB_ATTEMPTS_MAX, JOB_ERROR_BYTES_MAX, JOB_STEP_BYTES_MAX};
use deskmate_core::{Code, Result, parse_time};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both, wait};

const TTL: i64 = 30_000_000;
const SECOND: i64 = 1_000_000;

fn new(kind: &str) -> NewJob {
    NewJob::new(kind, json!({ "of": kind }))
}

fn put(desk: &TestDesk, job: NewJob) -> Result<Enqueued> {
    desk.act(move |cx| job::enqueue(cx, job.clone()))
}

fn add(desk: &TestDesk, job: NewJob) -> String {
    put(desk, job).unwrap().job
}

fn take(desk: &TestDesk, worker: &'static str, kinds: &'static [&'static str], limit: u32) -> Vec<Claimed> {
    desk.act(move |cx| job::claim(cx, worker, kinds, TTL, limit)).unwrap()
}

fn take_one(desk: &TestDesk, worker: &'static str) -> Claimed {
    take(desk, worker, &["work"], 1).pop().expect("a job is due")
}

fn beat(desk: &TestDesk, worker: &'static str, job: &Claimed, progress: Option<Progress>, step: Option<Value>) -> Result<Beat> {
    let job = job.clone();
    desk.act(move |cx| job::heartbeat(cx, &job.job, worker, job.fence, progress.clone(), step.clone()))
}

fn end(desk: &TestDesk, worker: &'static str, job: &Claimed, outcome: Outcome) -> Result<State> {
    let job = job.clone();
    desk.act(move |cx| job::finish(cx, &job.job, worker, job.fence, outcome.clone()))
}

fn fail(desk: &TestDesk, worker: &'static str, job: &Claimed) -> State {
    end(desk, worker, job, Outcome::Failed { error: "no route".to_owned(), retry: true }).unwrap()
}

fn get(desk: &TestDesk, job: &str) -> Value {
    desk.call(&Caller::System, "desk_job_get", json!({ "job": job })).unwrap()
}

fn told(desk: &TestDesk, job: &str) -> Vec<String> {
    let events = desk.call(&Caller::System, "desk_record_list", json!({ "subject": format!("job:{job}") })).unwrap();
    let mut kinds: Vec<String> = events["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect();
    kinds.reverse();
    kinds
}

/// A worker that does well, fails or dies in turn, until it is sent home; answers the jobs for which it was told `done`.
fn unsteady(desk: &Desk, worker: &str, mood: usize, closed: &AtomicBool) -> Vec<String> {
    let (mut done, mut turn) = (Vec::new(), mood);
    while !closed.load(Ordering::SeqCst) {
        let name = worker.to_owned();
        let claimed = wait(desk.act(Surface::System, move |cx| job::claim(cx, &name, &["work"], TTL, 2))).unwrap();
        for claimed in claimed {
            turn += 1;
            let outcome = match turn % 3 {
                0 => continue,
                1 => Outcome::Failed { error: "not today".to_owned(), retry: true },
                _ => Outcome::Done(json!(worker)),
            };
            let (name, job, told) = (worker.to_owned(), claimed.job.clone(), outcome.clone());
            let ended = wait(desk.act(Surface::System, move |cx| job::finish(cx, &job, &name, claimed.fence, told.clone())));
            match ended {
                Ok(State::Done) => done.push(claimed.job),
                Ok(_) => {}
                Err(error) => assert_code(&error, Code::Conflict),
            }
        }
    }
    done
}

fn sound(desk: &TestDesk) {
    let report = desk.verify();
    assert!(report.sound, "{:?}", report.findings);
}

fn time_of(value: &Value) -> i64 {
    parse_time("time", value.as_str().unwrap()).unwrap()
}

both! {
    fn a_job_that_was_put_off_waits_at_least_so_long(desk: &TestDesk) {
        for (by, least, most) in [(Duration::from_secs(600), 600, 600), (Duration::ZERO, 2, 3), (Duration::MAX, 86_400, 86_400)] {
            let id = add(desk, new("work"));
            let claimed = take_one(desk, "w1");
            let ended = end(desk, "w1", &claimed, Outcome::PutOff { error: "busy".to_owned(), by }).unwrap();
            assert_eq!(ended, State::Waiting);
            let job = get(desk, &id);
            let waits = (time_of(&job["run_at"]) - time_of(&job["updated_at"])) / SECOND;
            assert!((least..=most).contains(&waits), "{by:?}: {waits}");
            assert_eq!((&job["error"], &job["attempts"][0]["outcome"]), (&json!("busy"), &json!("failed")));
            desk.call(&Caller::System, "desk_job_cancel", json!({ "job": id })).unwrap();
        }
        let id = add(desk, NewJob { attempts_max: 1, ..new("work") });
        let claimed = take_one(desk, "w1");
        assert_eq!(end(desk, "w1", &claimed, Outcome::PutOff { error: "busy".to_owned(), by: Duration::ZERO }).unwrap(), State::Failed);
        assert_eq!(get(desk, &id)["state"], "failed", "the last attempt is the last");
        sound(desk);
    }

    fn a_job_runs_and_its_result_is_kept(desk: &TestDesk) {
        let id = add(desk, new("work"));
        let claimed = take_one(desk, "w1");
        assert_eq!((claimed.job.as_str(), claimed.kind.as_str(), claimed.attempt, claimed.fence), (id.as_str(), "work", 1, 1));
        assert_eq!((claimed.input.clone(), claimed.step.clone(), claimed.cancel_requested), (json!({ "of": "work" }), None, false));
        assert_eq!(get(desk, &id)["state"], "running");
        assert_eq!(end(desk, "w1", &claimed, Outcome::Done(json!({ "sent": 3 }))).unwrap(), State::Done);
        let job = get(desk, &id);
        assert_eq!((&job["state"], &job["result"], &job["attempt"]), (&json!("done"), &json!({ "sent": 3 }), &json!(1)));
        assert_eq!((&job["attempts"][0]["outcome"], &job["attempts"][0]["worker"]), (&json!("done"), &json!("w1")));
        assert_eq!(job["attempts"][0]["ended_at"], job["finished_at"]);
        assert!(take(desk, "w1", &["work"], 10).is_empty());
        assert_code(&end(desk, "w1", &claimed, Outcome::Done(json!(4))).unwrap_err(), Code::Conflict);
        assert_eq!(told(desk, &id), ["job.enqueued", "job.started", "job.finished"]);
        sound(desk);
    }

    fn a_job_comes_with_the_callers_transaction_or_not_at_all(desk: &TestDesk) {
        let undone: Result<()> = desk.act(|cx| {
            job::enqueue(cx, new("work"))?;
            Err(deskmate_core::Error::conflict("changed my mind"))
        });
        assert!(undone.is_err());
        assert!(take(desk, "w1", &["work"], 10).is_empty());
        assert_eq!(desk.act(|cx| job::next_due(cx, &["work"], &[ANYWHERE.to_owned()])).unwrap(), None);
    }

    fn what_the_queue_does_not_take(desk: &TestDesk) {
        let large = json!("x".repeat(INPUT_BYTES_MAX));
        let far = 4_102_444_800_000_000;
        for (field, job) in [
            ("kind", NewJob::new("", json!({}))),
            ("kind", NewJob::new("Some Work", json!({}))),
            ("input", NewJob::new("work", large)),
            ("unique_key", NewJob { unique_key: Some(String::new()), ..new("work") }),
            ("unique_key", NewJob { unique_key: Some("a\0b".to_owned()), ..new("work") }),
            ("attempts_max", NewJob { attempts_max: 0, ..new("work") }),
            ("attempts_max", NewJob { attempts_max: JOB_ATTEMPTS_MAX + 1, ..new("work") }),
            ("run_at", NewJob { run_at: Some(far), ..new("work") }),
        ] {
            let error = put(desk, job).unwrap_err();
            assert_code(&error, Code::Invalid);
            assert_eq!(error.field.as_deref(), Some(field));
        }
        for ttl in [0, -1, SECOND, i64::MAX] {
            assert_code(&desk.act(move |cx| job::claim(cx, "w1", &["work"], ttl, 1)).unwrap_err(), Code::Invalid);
        }
    }

    fn a_unique_key_stands_for_one_job(desk: &TestDesk) {
        let keyed = |kind: &str| NewJob { unique_key: Some("daily".to_owned()), ..new(kind) };
        let first = put(desk, keyed("work")).unwrap();
        assert!(first.created);
        assert_eq!(put(desk, keyed("work")).unwrap(), Enqueued { job: first.job.clone(), created: false }, "while it waits");
        assert!(put(desk, keyed("other")).unwrap().created, "keys are per kind");
        let claimed = take_one(desk, "w1");
        assert!(!put(desk, keyed("work")).unwrap().created, "while it runs");
        fail(desk, "w1", &claimed);
        assert!(!put(desk, keyed("work")).unwrap().created, "while it waits for another attempt");
        desk.world.pass(Duration::from_secs(60));
        let claimed = take_one(desk, "w1");
        end(desk, "w1", &claimed, Outcome::Done(json!(null))).unwrap();
        let second = put(desk, keyed("work")).unwrap();
        assert!(second.created && second.job != first.job);
    }

    fn of_many_who_enqueue_one_key_at_once_one_creates(desk: &TestDesk) {
        let created: Vec<Enqueued> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| {
                let desk = desk.desk.clone();
                scope.spawn(move || {
                    let keyed = |cx: &mut Cx<'_, '_>| job::enqueue(cx, NewJob { unique_key: Some("k".to_owned()), ..new("work") });
                    wait(desk.act(Surface::System, keyed)).unwrap()
                })
            }).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(created.iter().filter(|enqueued| enqueued.created).count(), 1);
        assert_eq!(created.iter().map(|enqueued| &enqueued.job).collect::<BTreeSet<_>>().len(), 1);
    }

    fn urgent_before_usual_and_due_longest_first(desk: &TestDesk) {
        let now = 1_767_225_600_000_000;
        let at = |kind: &str, priority, seconds: i64| add(desk, NewJob { priority, run_at: Some(now - seconds * SECOND), ..new(kind) });
        let background = at("work", Priority::Background, 900);
        let late = at("other", Priority::Normal, 10);
        let early = at("work", Priority::Normal, 20);
        let urgent = at("work", Priority::Urgent, 0);
        at("unknown", Priority::Urgent, 50);
        let two = take(desk, "w1", &["work", "other"], 2);
        let rest = take(desk, "w2", &["other", "work", "other"], 10);
        let order: Vec<String> = two.into_iter().chain(rest).map(|claimed| claimed.job).collect();
        assert_eq!(order, [urgent, early, late, background]);
    }

    fn a_job_with_a_place_is_given_only_to_who_asks_for_that_place(desk: &TestDesk) {
        let at = |place: &str| add(desk, NewJob { place: place.to_owned(), ..new("work") });
        let (there, anywhere) = (at("cloud:gpu"), at(""));
        at("node:east");
        let claim = |places: &[&str]| {
            let places: Vec<String> = places.iter().map(|place| (*place).to_owned()).collect();
            let taken = desk.act(move |cx| job::claim_at(cx, "w1", &["work"], &places, TTL, 9)).unwrap();
            taken.into_iter().map(|job| job.job).collect::<Vec<_>>()
        };
        assert_eq!(desk.act(|cx| job::waiting_places(cx, "work", 9)).unwrap(), ["cloud:gpu", "node:east"]);
        assert_eq!(desk.act(|cx| job::waiting_places(cx, "work", 1)).unwrap(), ["cloud:gpu"]);
        assert!(desk.act(|cx| job::waiting_places(cx, "other", 9)).unwrap().is_empty());
        assert_eq!(claim(&[ANYWHERE]), [anywhere]);
        // What waits elsewhere keeps nobody busy who may not take it.
        assert_eq!(desk.act(|cx| job::next_due(cx, &["work"], &[ANYWHERE.to_owned()])).unwrap(), None);
        assert!(claim(&[ANYWHERE, "cloud:eu"]).is_empty());
        assert_eq!(claim(&["cloud:gpu", "cloud:eu"]), [there]);
        assert_eq!(desk.act(|cx| job::waiting_places(cx, "work", 9)).unwrap(), ["node:east"]);
    }

    fn a_scheduled_job_waits_for_its_time(desk: &TestDesk) {
        let at = 1_767_225_600_000_000 + 3_600 * SECOND;
        let id = add(desk, NewJob { run_at: Some(at), priority: Priority::Urgent, ..new("work") });
        assert_eq!(desk.act(|cx| job::next_due(cx, &["work"], &[ANYWHERE.to_owned()])).unwrap(), Some(at));
        let usual = add(desk, new("work"));
        assert_eq!(take(desk, "w1", &["work"], 10).into_iter().map(|claimed| claimed.job).collect::<Vec<_>>(), [usual]);
        desk.world.pass(Duration::from_secs(3_601));
        assert_eq!(take_one(desk, "w1").job, id);
    }

    fn periodic_work_is_in_the_queue_once(desk: &TestDesk) {
        let every = 600 * SECOND;
        let ensure = |desk: &TestDesk| desk.act(move |cx| job::ensure_scheduled(cx, "work", "sweep", every)).unwrap();
        let first = ensure(desk);
        assert!(first.created);
        assert!(!ensure(desk).created);
        let due = time_of(&get(desk, &first.job)["run_at"]);
        assert_eq!(due % every, 0, "runs stand on a grid");
        assert!(take(desk, "w1", &["work"], 1).is_empty());
        desk.world.pass(Duration::from_secs(1_900));
        let claimed = take_one(desk, "w1");
        assert!(!ensure(desk).created, "while it runs there is no next one");
        end(desk, "w1", &claimed, Outcome::Done(json!(null))).unwrap();
        let next = ensure(desk);
        assert!(next.created);
        assert_eq!(time_of(&get(desk, &next.job)["run_at"]), due + 3 * every, "missed runs are not made up for");
        assert_code(&desk.act(|cx| job::ensure_scheduled(cx, "work", "sweep", 0)).unwrap_err(), Code::Invalid);
    }

    fn workers_at_once_share_the_jobs(desk: &TestDesk) {
        let count = 40;
        let all: BTreeSet<String> = (0..count).map(|_| add(desk, new("work"))).collect();
        let claimed: Vec<Claimed> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|number| {
                let desk = desk.desk.clone();
                scope.spawn(move || {
                    let mut own = Vec::new();
                    // On PostgreSQL a look can pass over rows that another worker is just taking.
                    for _ in 0..count {
                        let claim = move |cx: &mut Cx<'_, '_>| job::claim(cx, &format!("w{number}"), &["work"], TTL, 3);
                        own.extend(wait(desk.act(Surface::System, claim)).unwrap());
                    }
                    own
                })
            }).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(claimed.len(), all.len(), "each job runs under exactly one lease");
        assert_eq!(claimed.iter().map(|claimed| claimed.job.clone()).collect::<BTreeSet<_>>(), all);
        assert!(claimed.iter().all(|claimed| claimed.fence == 1 && claimed.attempt == 1));
        desk.seal();
        sound(desk);
    }

    fn among_unsteady_workers_each_job_is_done_once(desk: &TestDesk) {
        let all: BTreeSet<String> = (0..12).map(|_| add(desk, new("work"))).collect();
        let closed = AtomicBool::new(false);
        let done: Vec<String> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..3).map(|number| {
                let (desk, closed) = (desk.desk.clone(), &closed);
                scope.spawn(move || unsteady(&desk, &format!("w{number}"), number, closed))
            }).collect();
            // Time runs so fast that some leases end while their worker is at it.
            let open = |cx: &mut Cx<'_, '_>| {
                job::rescue(cx, 10)?;
                Ok(cx.tx.query("select id from job where finished_at is null order by id limit 1", &[])?.len())
            };
            while wait(desk.desk.act(Surface::System, open)).unwrap() > 0 {
                desk.world.pass(Duration::from_secs(5));
            }
            closed.store(true, Ordering::SeqCst);
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        desk.seal();
        let failed: BTreeSet<String> = all.iter().filter(|job| get(desk, job)["state"] == "failed").cloned().collect();
        assert_eq!(done.len() + failed.len(), all.len(), "no job was told done twice: {done:?}");
        assert_eq!(done.into_iter().chain(failed).collect::<BTreeSet<_>>(), all);
        for job in &all {
            let attempts = get(desk, job)["attempts"].as_array().unwrap().clone();
            assert!(attempts.iter().all(|attempt| attempt["outcome"].is_string()), "every attempt was closed: {attempts:?}");
            assert!(attempts.windows(2).all(|pair| pair[0]["ended_at"].as_str() <= pair[1]["started_at"].as_str()), "no two at a time: {attempts:?}");
        }
        sound(desk);
    }

    fn the_only_server_takes_what_one_before_it_left_behind(desk: &TestDesk) {
        let id = add(desk, new("work"));
        let claimed = take_one(desk, "w1");
        let rescued = desk.act(|cx| job::rescue_all(cx, 10)).unwrap();
        assert_eq!((rescued.len(), &rescued[0].job), (1, &id), "also with a lease that lasts");
        assert_code(&beat(desk, "w1", &claimed, None, None).unwrap_err(), Code::Conflict);
        desk.world.pass(Duration::from_secs(5));
        take_one(desk, "w2");
        sound(desk);
    }

    fn a_sign_of_life_keeps_the_job_and_carries_progress(desk: &TestDesk) {
        let id = add(desk, new("work"));
        let claimed = take_one(desk, "w1");
        let events = told(desk, &id).len();
        for percent in [10, 50] {
            desk.world.pass(Duration::from_secs(25));
            let progress = Progress { percent: Some(percent), text: Some("reading".to_owned()) };
            let beat = beat(desk, "w1", &claimed, Some(progress), Some(json!({ "line": percent }))).unwrap();
            assert!(!beat.cancel_requested && beat.expires_at > claimed.expires_at);
            assert!(desk.act(|cx| job::rescue(cx, 10)).unwrap().is_empty(), "a live lease is left alone");
        }
        beat(desk, "w1", &claimed, None, None).unwrap();
        let job = get(desk, &id);
        assert_eq!((&job["progress"], &job["step"]), (&json!({ "percent": 50, "text": "reading" }), &json!({ "line": 50 })));
        assert_eq!(told(desk, &id).len(), events, "signs of life are no news");
        let large = json!("x".repeat(JOB_STEP_BYTES_MAX));
        assert_code(&beat(desk, "w1", &claimed, None, Some(large)).unwrap_err(), Code::Invalid);
        let beyond = Progress { percent: Some(101), text: None };
        assert_code(&beat(desk, "w1", &claimed, Some(beyond), None).unwrap_err(), Code::Invalid);
        assert_code(&beat(desk, "w2", &claimed, None, None).unwrap_err(), Code::Conflict);
        fail(desk, "w1", &claimed);
        desk.world.pass(Duration::from_secs(5));
        assert_eq!(take_one(desk, "w2").step, Some(json!({ "line": 50 })), "the next attempt goes on where this one was");
    }

    fn who_holds_a_job_can_be_told_from_who_held_it(desk: &TestDesk) {
        add(desk, new("work"));
        let job = take_one(desk, "w1");
        let held = |worker: &'static str, fence: i64| {
            let job = job.job.clone();
            desk.act(move |cx| job::held(cx, &Hold { job: job.clone(), worker: worker.to_owned(), fence }))
        };
        assert!(held("w1", job.fence).is_ok());
        for (worker, fence) in [("w2", job.fence), ("w1", job.fence + 1)] {
            assert_code(&held(worker, fence).unwrap_err(), Code::Conflict);
        }
        desk.world.pass(Duration::from_secs(31));
        assert_code(&held("w1", job.fence).unwrap_err(), Code::Conflict);
    }

    fn a_lost_worker_loses_its_job(desk: &TestDesk) {
        let id = add(desk, new("work"));
        let lost = take_one(desk, "w1");
        assert!(desk.act(|cx| job::rescue(cx, 10)).unwrap().is_empty());
        desk.world.pass(Duration::from_secs(31));
        assert!(take(desk, "w2", &["work"], 10).is_empty(), "a job runs until it is rescued");
        let rescued = desk.act(|cx| job::rescue(cx, 10)).unwrap();
        assert_eq!(rescued.iter().map(|rescued| (rescued.job.as_str(), rescued.attempt, rescued.state)).collect::<Vec<_>>(), [(id.as_str(), 1, State::Waiting)]);
        assert!(desk.act(|cx| job::rescue(cx, 10)).unwrap().is_empty(), "once");
        desk.world.pass(Duration::from_secs(3));
        let second = take_one(desk, "w1");
        assert_eq!((second.job.as_str(), second.attempt, second.fence), (id.as_str(), 2, 2));
        assert_code(&beat(desk, "w1", &lost, None, None).unwrap_err(), Code::Conflict);
        assert_code(&end(desk, "w1", &lost, Outcome::Done(json!("late"))).unwrap_err(), Code::Conflict);
        assert_eq!(end(desk, "w1", &second, Outcome::Done(json!("right"))).unwrap(), State::Done);
        let job = get(desk, &id);
        assert_eq!(job["result"], "right");
        assert_eq!(job["attempts"][0]["outcome"], "lost");
        assert!(job["attempts"][0]["error"].as_str().unwrap().starts_with("worker lost"));
        assert_eq!(told(desk, &id), ["job.enqueued", "job.started", "job.rescued", "job.started", "job.finished"]);
        sound(desk);
    }

    fn a_lost_job_ends_where_it_cannot_go_on(desk: &TestDesk) {
        let last = add(desk, NewJob { attempts_max: 1, ..new("work") });
        let once = add(desk, NewJob { if_lost: IfLost::Ambiguous, ..new("work") });
        let unwanted = add(desk, new("work"));
        assert_eq!(take(desk, "w1", &["work"], 10).len(), 3);
        let stop = unwanted.clone();
        desk.act(move |cx| job::cancel(cx, &stop)).unwrap();
        desk.world.pass(Duration::from_secs(31));
        let two = desk.act(|cx| job::rescue(cx, 2)).unwrap();
        let rest = desk.act(|cx| job::rescue(cx, 2)).unwrap();
        assert_eq!((two.len(), rest.len()), (2, 1), "as many as were asked for");
        for (id, state) in [(&last, "failed"), (&once, "ambiguous"), (&unwanted, "cancelled")] {
            assert_eq!(get(desk, id)["state"], state);
            assert_eq!(told(desk, id).last().map(String::as_str), Some("job.finished"));
        }
        sound(desk);
    }

    fn failures_are_tried_again_later_and_later(desk: &TestDesk) {
        let id = add(desk, NewJob { attempts_max: 4, ..new("work") });
        for (attempt, seconds) in [(1, 2), (2, 4), (3, 8)] {
            let claimed = take_one(desk, "w1");
            assert_eq!((claimed.attempt, claimed.fence), (attempt, attempt));
            let before = time_of(&get(desk, &id)["updated_at"]);
            assert_eq!(fail(desk, "w1", &claimed), State::Waiting);
            let waits = time_of(&get(desk, &id)["run_at"]) - before;
            assert!((seconds * SECOND..seconds * SECOND * 5 / 4 + SECOND / 100).contains(&waits), "attempt {attempt} waits {waits}");
            assert!(take(desk, "w1", &["work"], 1).is_empty());
            desk.world.pass(Duration::from_micros(u64::try_from(waits).unwrap()));
        }
        let claimed = take_one(desk, "w1");
        assert_eq!(fail(desk, "w1", &claimed), State::Failed);
        desk.world.pass(Duration::from_secs(100_000));
        assert!(take(desk, "w1", &["work"], 1).is_empty(), "what is dead stays dead");
        let job = get(desk, &id);
        assert_eq!((&job["state"], &job["error"]), (&json!("failed"), &json!("no route")));
        assert_eq!(job["attempts"].as_array().unwrap().iter().filter(|attempt| attempt["error"] == "no route" && attempt["outcome"] == "failed").count(), 4);
        assert_eq!(told(desk, &id).iter().filter(|kind| *kind == "job.retried").count(), 3);
        sound(desk);
    }

    fn each_outcome_has_its_state(desk: &TestDesk) {
        let failed = |retry| Outcome::Failed { error: "x".to_owned(), retry };
        let what = "the mail server did not answer".to_owned();
        for (outcome, state) in [(failed(false), State::Failed), (failed(true), State::Waiting), (Outcome::Cancelled, State::Cancelled), (Outcome::Ambiguous { what }, State::Ambiguous)] {
            let id = add(desk, NewJob { run_at: Some(1), ..new("work") });
            let claimed = take_one(desk, "w1");
            assert_eq!(end(desk, "w1", &claimed, outcome).unwrap(), state);
            assert_eq!(get(desk, &id)["state"], state.name());
        }
    }

    fn reports_have_bounds(desk: &TestDesk) {
        let id = add(desk, new("work"));
        let claimed = take_one(desk, "w1");
        let large = Outcome::Done(json!("x".repeat(INPUT_BYTES_MAX)));
        assert_code(&end(desk, "w1", &claimed, large).unwrap_err(), Code::Invalid);
        assert_eq!(get(desk, &id)["state"], "running", "the worker can still report");
        let error = format!("a\0b{}", "é".repeat(JOB_ERROR_BYTES_MAX));
        end(desk, "w1", &claimed, Outcome::Failed { error, retry: false }).unwrap();
        let kept = get(desk, &id)["error"].as_str().unwrap().to_owned();
        assert!(kept.len() <= JOB_ERROR_BYTES_MAX && kept.starts_with("a\u{fffd}b") && kept.ends_with("(cut)"), "a failure is told, if shorter");
    }

    fn cancelling_reaches_the_job_that_runs(desk: &TestDesk) {
        let id = add(desk, new("work"));
        let claimed = take_one(desk, "w1");
        assert!(!beat(desk, "w1", &claimed, None, None).unwrap().cancel_requested);
        let stop = id.clone();
        assert_eq!(desk.act(move |cx| job::cancel(cx, &stop)).unwrap(), State::Running);
        assert!(beat(desk, "w1", &claimed, None, None).unwrap().cancel_requested);
        assert_eq!(end(desk, "w1", &claimed, Outcome::Cancelled).unwrap(), State::Cancelled);
        assert_eq!(told(desk, &id), ["job.enqueued", "job.started", "job.cancel_requested", "job.finished"]);

        let id = add(desk, new("work"));
        let claimed = take_one(desk, "w1");
        desk.act(move |cx| job::cancel(cx, &id.clone())).unwrap();
        assert_eq!(fail(desk, "w1", &claimed), State::Cancelled, "what was to stop is not tried again");
        sound(desk);
    }

    fn what_ended_long_ago_is_deleted_in_slices(desk: &TestDesk) {
        for _ in 0..5 {
            add(desk, new("work"));
            let claimed = take_one(desk, "w1");
            end(desk, "w1", &claimed, Outcome::Done(json!(null))).unwrap();
        }
        let waiting = add(desk, NewJob { run_at: Some(1), ..new("later") });
        desk.world.pass(Duration::from_secs(3_600));
        let before = desk.act(|cx| Ok(cx.now())).unwrap();
        let young = add(desk, new("work"));
        let claimed = take_one(desk, "w1");
        end(desk, "w1", &claimed, Outcome::Done(json!(null))).unwrap();
        for (jobs, more) in [(2, true), (2, true), (1, false), (0, false)] {
            let pruned = desk.act(move |cx| job::prune(cx, before, 2)).unwrap();
            assert_eq!((pruned.jobs, pruned.more), (jobs, more));
        }
        let listed = desk.call(&Caller::System, "desk_job_list", json!({})).unwrap();
        let left: Vec<&str> = listed["jobs"].as_array().unwrap().iter().map(|job| job["job"].as_str().unwrap()).collect();
        assert_eq!(left, [young.as_str(), waiting.as_str()]);
        let rows = desk.act(|cx| Ok((cx.tx.query("select job from job_attempt order by job, number", &[])?.len(), cx.tx.query("select subject from lease order by subject", &[])?.len())));
        assert_eq!(rows.unwrap(), (1, 1), "attempts and leases go with their jobs");
        let events = desk.call(&Caller::System, "desk_record_list", json!({ "kind": "jobs.pruned" })).unwrap();
        assert_eq!(events["events"].as_array().unwrap().len(), 3, "deleting nothing is no news");
        sound(desk);
    }

    fn a_job_belongs_to_whoever_enqueued_it_or_is_named(desk: &TestDesk) {
        let own = add(desk, new("work"));
        let named = add(desk, NewJob { owner: Some(Owner { kind: ActorKind::Agent, id: "code".to_owned() }), ..new("work") });
        assert_eq!((&get(desk, &own)["owner_kind"], &get(desk, &own)["owner"]), (&json!("system"), &json!("desk")));
        assert_eq!((&get(desk, &named)["owner_kind"], &get(desk, &named)["owner"]), (&json!("agent"), &json!("code")));
        let seen = desk.agent("code", "desk_record_list", json!({})).unwrap();
        let subjects: BTreeSet<&str> = seen["events"].as_array().unwrap().iter().map(|event| event["subject"].as_str().unwrap()).collect();
        assert_eq!(subjects, BTreeSet::from([format!("job:{named}").as_str()]), "the owner is told, nobody else");
    }
}
