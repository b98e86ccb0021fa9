//! Jobs as people and agents see them, on both engines.

use std::time::Duration;

use deskmate_core::Code;
use deskmate_core::call::{ActorKind, Call, Credential, Outcome as Answered, Surface};
use deskmate_core::job::{self, Claimed, NewJob, Outcome, Owner, State};
use deskmate_core::limits::JOB_RUNS_MAX;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both, wait};

const TTL: i64 = 30_000_000;

fn add_for(desk: &TestDesk, agent: &str, kind: &str) -> String {
    let job = NewJob { owner: Some(Owner { kind: ActorKind::Agent, id: agent.to_owned() }), ..NewJob::new(kind, json!({ "n": 1 })) };
    desk.act(move |cx| job::enqueue(cx, job.clone())).unwrap().job
}

fn take(desk: &TestDesk) -> Claimed {
    desk.act(|cx| job::claim(cx, "w1", &["work", "other"], TTL, 1)).unwrap().pop().expect("a job is due")
}

fn end(desk: &TestDesk, outcome: Outcome) -> State {
    let claimed = take(desk);
    desk.act(move |cx| job::finish(cx, &claimed.job, "w1", claimed.fence, outcome.clone())).unwrap()
}

fn ids(page: &Value) -> Vec<String> {
    page["jobs"].as_array().unwrap().iter().map(|job| job["job"].as_str().unwrap().to_owned()).collect()
}

/// Follows the pages to their end.
fn pages(desk: &TestDesk, caller: &Caller, mut input: Value) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    loop {
        let page = desk.call(caller, "desk_job_list", input.clone()).unwrap();
        all.push(ids(&page));
        match page.get("next_cursor") {
            Some(cursor) => input["cursor"] = cursor.clone(),
            None => return all,
        }
    }
}

/// Whether a wait has its answer.
fn ready(desk: &TestDesk, agent: &str, job: &str) -> bool {
    let call = Call {
        credential: Credential::Named(Some(agent.to_owned())),
        surface: Surface::Mcp,
        operation: "desk_job_wait".to_owned(),
        input: json!({ "job": job, "timeout_seconds": 25 }),
    };
    matches!(wait(desk.desk.call(call)).unwrap().outcome, Answered::Done(_))
}

both! {
    fn lists_come_in_pages_newest_first(desk: &TestDesk) {
        let mut made: Vec<String> = (0..5).map(|_| add_for(desk, "code", "work")).collect();
        made.reverse();
        let listed = pages(desk, &Caller::System, json!({ "limit": 2 }));
        assert_eq!(listed.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
        assert_eq!(listed.concat(), made);
        assert_eq!(pages(desk, &Caller::System, json!({ "limit": 5 })), std::slice::from_ref(&made));
        assert_eq!(pages(desk, &Caller::Agent("code"), json!({ "limit": 4 })).concat(), made);
        for input in [json!({ "limit": 0 }), json!({ "limit": 201 }), json!({ "cursor": "?" }), json!({ "state": "gone" }), json!({ "owner": "code" })] {
            assert_code(&desk.refused(&Caller::System, "desk_job_list", input), Code::Invalid);
        }
    }

    fn lists_narrow_by_state_and_kind(desk: &TestDesk) {
        let done = add_for(desk, "code", "work");
        end(desk, Outcome::Done(json!(1)));
        let failed = add_for(desk, "code", "other");
        end(desk, Outcome::Failed { error: "x".to_owned(), retry: false });
        let waiting = add_for(desk, "code", "work");
        for caller in [Caller::System, Caller::Agent("code")] {
            let list = |input| pages(desk, &caller, input).concat();
            assert_eq!(list(json!({ "state": "done" })), std::slice::from_ref(&done));
            assert_eq!(list(json!({ "state": "failed" })), std::slice::from_ref(&failed));
            assert_eq!(list(json!({ "kind": "work" })), [waiting.clone(), done.clone()]);
            assert_eq!(list(json!({ "kind": "work", "state": "waiting", "limit": 1 })), std::slice::from_ref(&waiting));
            assert!(list(json!({ "kind": "other", "state": "done" })).is_empty());
        }
    }

    fn one_call_looks_at_a_bounded_number_of_jobs(desk: &TestDesk) {
        let rare = add_for(desk, "code", "other");
        desk.act(|cx| {
            for _ in 0..5_100 {
                job::enqueue(cx, NewJob { owner: Some(Owner { kind: ActorKind::Agent, id: "code".to_owned() }), ..NewJob::new("work", json!(null)) })?;
            }
            Ok(())
        }).unwrap();
        let found = pages(desk, &Caller::Agent("code"), json!({ "kind": "other" }));
        assert_eq!(found, [Vec::new(), vec![rare.clone()]], "a page without a fitting job says where to go on");
        assert_eq!(pages(desk, &Caller::System, json!({ "kind": "other" })), [vec![rare]], "where there is an index, one page is enough");
    }

    fn an_agent_sees_and_stops_only_its_own(desk: &TestDesk) {
        let own = add_for(desk, "code", "work");
        let foreign = add_for(desk, "mail", "work");
        let of_the_desk = desk.act(|cx| job::enqueue(cx, NewJob::new("work", json!(null)))).unwrap().job;
        let of_a_person = desk.act(|cx| job::enqueue(cx, NewJob { owner: Some(Owner { kind: ActorKind::Person, id: "code".to_owned() }), ..NewJob::new("work", json!(null)) })).unwrap().job;
        assert_eq!(pages(desk, &Caller::Agent("code"), json!({})), [vec![own.clone()]]);
        for job in [foreign.as_str(), &of_the_desk, &of_a_person, "nothing"] {
            for op in ["desk_job_get", "desk_job_wait", "desk_job_cancel"] {
                assert_code(&desk.refused(&Caller::Agent("code"), op, json!({ "job": job })), Code::NotFound);
            }
        }
        assert_eq!(desk.agent("code", "desk_job_get", json!({ "job": own })).unwrap()["input"], json!({ "n": 1 }));
        assert_eq!(desk.agent("code", "desk_job_cancel", json!({ "job": own })).unwrap()["state"], "cancelled");
        let owner = desk.claim();
        assert_eq!(pages(desk, &owner, json!({})).concat().len(), 4, "people see all");
        assert_eq!(desk.call(&owner, "desk_job_cancel", json!({ "job": foreign })).unwrap()["state"], "cancelled");
        assert!(desk.verify().sound);
    }

    fn a_wait_is_ready_when_the_job_has_ended(desk: &TestDesk) {
        let job = add_for(desk, "code", "work");
        assert!(!ready(desk, "code", &job));
        let claimed = take(desk);
        assert!(!ready(desk, "code", &job));
        assert_eq!(desk.agent("code", "desk_job_wait", json!({ "job": job })).unwrap()["ended"], false);
        desk.act(move |cx| job::finish(cx, &claimed.job, "w1", claimed.fence, Outcome::Done(json!("all of it")))).unwrap();
        assert!(ready(desk, "code", &job));
        let waited = desk.agent("code", "desk_job_wait", json!({ "job": job, "timeout_seconds": 0 })).unwrap();
        assert_eq!((&waited["ended"], &waited["state"], &waited["result"]), (&json!(true), &json!("done"), &json!("all of it")));
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_job_wait", json!({ "job": job, "timeout_seconds": 26 })), Code::Invalid);
    }

    fn every_end_ends_a_wait(desk: &TestDesk) {
        let failed = Outcome::Failed { error: "x".to_owned(), retry: false };
        for (outcome, error) in [(failed, Some("x")), (Outcome::Ambiguous { what: "no answer".to_owned() }, Some("no answer")), (Outcome::Cancelled, None)] {
            let job = add_for(desk, "code", "work");
            let state = end(desk, outcome);
            assert!(ready(desk, "code", &job));
            let waited = desk.agent("code", "desk_job_wait", json!({ "job": job })).unwrap();
            assert_eq!((waited["state"].as_str(), waited["error"].as_str()), (Some(state.name()), error));
        }
    }

    fn cancelling_is_asked_for_once(desk: &TestDesk) {
        let waiting = add_for(desk, "code", "work");
        for _ in 0..2 {
            assert_eq!(desk.agent("code", "desk_job_cancel", json!({ "job": waiting })).unwrap()["state"], "cancelled");
        }
        assert!(desk.act(|cx| job::claim(cx, "w1", &["work"], TTL, 1)).unwrap().is_empty());
        let running = add_for(desk, "code", "work");
        take(desk);
        for _ in 0..2 {
            assert_eq!(desk.agent("code", "desk_job_cancel", json!({ "job": running })).unwrap()["state"], "running");
        }
        assert_eq!(desk.agent("code", "desk_job_get", json!({ "job": running })).unwrap()["cancel_requested"], true);
        let asked = desk.call(&Caller::System, "desk_record_list", json!({ "kind": "job.cancel_requested" })).unwrap();
        assert_eq!(asked["events"].as_array().unwrap().len(), 1);
        assert_eq!(asked["events"][0]["actor"], "code");
        let done = add_for(desk, "code", "other");
        end(desk, Outcome::Done(json!(1)));
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_job_cancel", json!({ "job": done })), Code::Conflict);
        assert!(desk.verify().sound);
    }

    fn people_send_a_failed_job_round_again(desk: &TestDesk) {
        let job = add_for(desk, "code", "work");
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_job_retry", json!({ "job": job })), Code::Forbidden);
        let owner = desk.claim();
        assert_code(&desk.refused(&owner, "desk_job_retry", json!({ "job": job })), Code::Conflict);
        end(desk, Outcome::Failed { error: "x".to_owned(), retry: false });
        assert_eq!(desk.call(&owner, "desk_job_retry", json!({ "job": job })).unwrap()["state"], "waiting");
        assert!(desk.call(&owner, "desk_job_get", json!({ "job": job })).unwrap().get("finished_at").is_none());
        let again = take(desk);
        assert_eq!((again.job.as_str(), again.attempt, again.fence), (job.as_str(), 2, 2));
        desk.act(move |cx| job::finish(cx, &again.job, "w1", again.fence, Outcome::Ambiguous { what: "no answer".to_owned() })).unwrap();
        desk.call(&owner, "desk_job_retry", json!({ "job": job })).unwrap();
        assert_eq!(end(desk, Outcome::Done(json!("at last"))), State::Done);
        let shown = desk.call(&owner, "desk_job_get", json!({ "job": job })).unwrap();
        let outcomes: Vec<&str> = shown["attempts"].as_array().unwrap().iter().map(|attempt| attempt["outcome"].as_str().unwrap()).collect();
        assert_eq!((outcomes, &shown["result"], shown.get("error")), (vec!["failed", "ambiguous", "done"], &json!("at last"), None));
        assert_code(&desk.refused(&owner, "desk_job_retry", json!({ "job": job })), Code::Conflict);
        assert!(desk.verify().sound);
    }

    fn sending_round_again_has_its_bounds(desk: &TestDesk) {
        let keyed = || NewJob { attempts_max: 1, unique_key: Some("k".to_owned()), ..NewJob::new("work", json!(null)) };
        let first = desk.act(move |cx| job::enqueue(cx, keyed())).unwrap().job;
        let fail = || end(desk, Outcome::Failed { error: "x".to_owned(), retry: true });
        let retry = |job: &str| desk.call(&Caller::System, "desk_job_retry", json!({ "job": job }));
        assert_eq!(fail(), State::Failed);
        let second = desk.act(move |cx| job::enqueue(cx, keyed())).unwrap();
        assert!(second.created);
        assert_code(&retry(&first).unwrap_err(), Code::Conflict);
        assert_eq!(end(desk, Outcome::Done(json!(1))), State::Done);
        for _ in 1..JOB_RUNS_MAX {
            retry(&first).unwrap();
            assert_eq!(fail(), State::Failed, "it gets one more attempt each time");
        }
        assert_code(&retry(&first).unwrap_err(), Code::Conflict);
        let shown = desk.call(&Caller::System, "desk_job_get", json!({ "job": first })).unwrap();
        assert_eq!(shown["attempts"].as_array().unwrap().len(), usize::try_from(JOB_RUNS_MAX).unwrap());
    }

    fn times_are_spelled_for_everybody(desk: &TestDesk) {
        let job = add_for(desk, "code", "work");
        desk.world.pass(Duration::from_secs(1));
        end(desk, Outcome::Done(json!(1)));
        let shown = desk.agent("code", "desk_job_get", json!({ "job": job })).unwrap();
        let times = [&shown["run_at"], &shown["created_at"], &shown["updated_at"], &shown["finished_at"], &shown["attempts"][0]["started_at"], &shown["attempts"][0]["ended_at"]];
        assert!(times.iter().all(|time| time.as_str().is_some_and(|time| time.starts_with("2026-01-01T00:00:") && time.ends_with('Z'))), "{times:?}");
    }
}
