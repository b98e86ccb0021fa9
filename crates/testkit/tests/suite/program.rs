//! Jobs of paired programs in the queue, on both engines: whose they are, doing each once, what they are narrowed to.

use deskmate_core::Code;
use deskmate_core::call::{Call, Credential, Surface};
use deskmate_core::workspace::plan;
use deskmate_core::{job, program};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both, wait};

use super::workspace::take;

const ROOTS: &str = "workspace: { roots: [{ name: notes, path: /srv/notes, access: write }, { name: manuals, path: /srv/manuals }] }\n";

/// A desk with roots, and its owner.
fn owner(desk: &TestDesk) -> Caller {
    let owner = desk.claim();
    desk.call(&owner, "desk_policy_apply", json!({ "document": ROOTS })).unwrap();
    owner
}

/// A program that is paired with a person: its token, and the id of its credential.
fn paired(desk: &TestDesk, person: &Caller) -> (Caller, String) {
    let made = desk.call(person, "desk_pairing_start", json!({ "kind": "program", "name": "a program" })).unwrap();
    let paired = desk.call(&Caller::Nobody, "desk_pair", json!({ "code": made["code"] })).unwrap();
    (Caller::Secret(paired["token"].as_str().unwrap().to_owned()), paired["credential"].as_str().unwrap().to_owned())
}

fn submit(desk: &TestDesk, program: &Caller, input: Value) -> deskmate_core::Result<Value> {
    desk.call(program, "desk_program_job_submit", input)
}

fn listing(key: &str) -> Value {
    json!({ "dedupe_key": key, "type": 2, "params": { "root": "notes" } })
}

/// What a worker does with the oldest job, and how it ends.
fn work(desk: &TestDesk, outcome: job::Outcome) -> program::Work {
    desk.act(move |cx| {
        let claimed = job::claim(cx, "worker", &[program::JOB], 30_000_000, 1)?.remove(0);
        let work = program::begin(cx, &claimed.input)?;
        job::finish(cx, &claimed.job, "worker", claimed.fence, outcome.clone())?;
        Ok(work)
    })
    .unwrap()
}

/// The job with which a program asked for a plan, and that plan, which waits for a person.
fn planned(desk: &TestDesk, program: &Caller) -> (Value, Value) {
    let asked = desk.call(program, "workspace_organize_plan", json!({ "root": "notes" })).unwrap();
    let (plan, job) = (asked["plan_id"].as_str().unwrap().to_owned(), asked["plan_job_id"].as_str().unwrap().to_owned());
    let made = plan.clone();
    let step = plan::Step {
        action: plan::Action::Move,
        undoes: None,
        was: None,
        from: Some("a".to_owned()),
        to: Some("b".to_owned()),
        exact: json!({}),
        diff: None,
        irreversible: None,
        warning: None,
        blocked: None,
        bytes: 1,
    };
    desk.act(move |cx| {
        let hold = take(cx, "worker", plan::PLAN_JOB, &job)?;
        plan::making(cx, &hold)?;
        plan::add_part(cx, &hold, &made, 0, &plan::Part::of(std::slice::from_ref(&step))?)?;
        plan::made(cx, &hold, &made)?;
        job::finish(cx, &job, "worker", hold.fence, job::Outcome::Done(json!({}))).map(drop)
    })
    .unwrap();
    let asked = submit(desk, program, json!({ "dedupe_key": plan, "type": 4, "params": { "root": "notes" } })).unwrap();
    work(desk, job::Outcome::Done(json!({ "plan_id": plan })));
    (asked["job_id"].clone(), desk.call(program, "workspace_get_plan", json!({ "plan_id": plan })).unwrap())
}

both! {
    fn a_job_goes_through_the_queue_and_tells_how_it_stands(desk: &TestDesk) {
        let owner = owner(desk);
        let (program, credential) = paired(desk, &owner);
        let taken = submit(desk, &program, listing("a")).unwrap();
        assert_eq!((&taken["created_new"], &taken["status"]), (&json!(true), &json!(1)));
        let get = || desk.call(&program, "desk_program_job_get", json!({ "job": taken["job_id"] })).unwrap();
        let told = get();
        assert_eq!((&told["status"], &told["dedupe_key"], &told["type"], &told["params"]), (&json!(1), &json!("a"), &json!(2), &json!({ "root": "notes" })));
        assert_code(&desk.refused(&program, "desk_program_job_result", json!({ "job": taken["job_id"] })), Code::NotFound);
        let work = work(desk, job::Outcome::Done(json!({ "items": [] })));
        assert_eq!((work.credential, work.number), (credential, 2));
        let told = get();
        assert_eq!(told["status"], 3);
        assert!(told["started_at_ms"].is_i64() && told["finished_at_ms"].is_i64(), "{told}");
        let result = desk.call(&program, "desk_program_job_result", json!({ "job": taken["job_id"] })).unwrap();
        assert_eq!(data_encoding::BASE64.decode(result["bytes_base64"].as_str().unwrap().as_bytes()).unwrap(), br#"{"items":[]}"#);
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn the_same_job_is_done_once_and_another_under_its_key_is_a_conflict(desk: &TestDesk) {
        let owner = owner(desk);
        let (program, _) = paired(desk, &owner);
        let first = submit(desk, &program, listing("a")).unwrap();
        work(desk, job::Outcome::Done(json!({})));
        let again = submit(desk, &program, listing("a")).unwrap();
        assert_eq!((&again["created_new"], &again["job_id"], &again["status"]), (&json!(false), &first["job_id"], &json!(3)), "the status is the real one");
        let mut other = listing("a");
        other["params"]["root"] = json!("manuals");
        assert_code(&submit(desk, &program, other.clone()).unwrap_err(), Code::Conflict);
        other["type"] = json!(4);
        assert_eq!(submit(desk, &program, other).unwrap()["created_new"], true, "keys are by type");
        let (second, _) = paired(desk, &owner);
        assert_ne!(submit(desk, &second, listing("a")).unwrap()["job_id"], first["job_id"], "and by program");
        assert_code(&submit(desk, &program, listing("")).unwrap_err(), Code::Invalid);
    }

    fn a_program_sees_its_own_jobs_only(desk: &TestDesk) {
        let owner = owner(desk);
        let ((first, _), (second, _)) = (paired(desk, &owner), paired(desk, &owner));
        let job = submit(desk, &first, listing("a")).unwrap()["job_id"].clone();
        for operation in ["get", "wait", "result", "cancel"] {
            assert_code(&desk.refused(&second, &format!("desk_program_job_{operation}"), json!({ "job": job })), Code::NotFound);
        }
        assert_eq!(desk.call(&second, "desk_program_job_list", json!({})).unwrap()["jobs"], json!([]));
        assert_code(&desk.refused(&owner, "desk_program_job_list", json!({})), Code::Forbidden);
        let agent = desk.register(&owner, "code");
        assert_code(&desk.refused(&agent, "desk_program_job_submit", listing("a")), Code::Forbidden);
        let execute = json!({ "dedupe_key": "x", "type": 5, "params": { "plan_job_id": job } });
        submit(desk, &second, execute).unwrap();
        let claim = desk.act(|cx| job::claim(cx, "worker", &[program::JOB], 30_000_000, 9)).unwrap();
        let (own, foreign) = (claim[0].input.clone(), claim[1].input.clone());
        assert!(desk.act(move |cx| program::begin(cx, &own)).is_ok());
        assert_code(&desk.act(move |cx| program::begin(cx, &foreign)).unwrap_err(), Code::NotFound);
        assert_code(&desk.refused(&first, "desk_program_job_submit", json!({ "dedupe_key": "x", "type": 99 })), Code::Invalid);
    }

    fn lists_come_in_pages_and_a_waiting_job_is_cancelled_at_once(desk: &TestDesk) {
        let owner = owner(desk);
        let (program, _) = paired(desk, &owner);
        for key in ["a", "b", "c"] {
            submit(desk, &program, listing(key)).unwrap();
        }
        let list = |input: Value| desk.call(&program, "desk_program_job_list", input).unwrap();
        let first = list(json!({ "limit": 2 }));
        assert_eq!((&first["jobs"][0]["dedupe_key"], &first["jobs"][1]["dedupe_key"]), (&json!("c"), &json!("b")));
        let second = list(json!({ "limit": 2, "cursor": first["next_cursor"] }));
        assert_eq!((second["jobs"].as_array().unwrap().len(), second.get("next_cursor")), (1, None));
        let cancel = json!({ "job": first["jobs"][0]["job_id"] });
        assert_eq!(desk.call(&program, "desk_program_job_cancel", cancel.clone()).unwrap()["status"], 5);
        assert_eq!(desk.call(&program, "desk_program_job_get", cancel).unwrap()["status"], 5);
    }

    fn roots_are_narrowed_and_never_widened(desk: &TestDesk) {
        let owner = owner(desk);
        let (program, _) = paired(desk, &owner);
        let ask = |roots: Value, params: Value, number: i32| {
            let key = format!("{roots}{params}{number}");
            submit(desk, &program, json!({ "dedupe_key": key, "type": number, "allowed_roots": roots, "params": params })).map(drop).map_err(|error| error.code)
        };
        for (roots, path, expected) in [
            (json!(["/etc"]), "/etc/passwd", Err(Code::Forbidden)),
            (json!(["notes", "/"]), "notes/a", Err(Code::Forbidden)),
            (json!(["notes/sub"]), "notes/a", Err(Code::Forbidden)),
            (json!(["notes/sub"]), "notes/subway", Err(Code::Forbidden)),
            (json!(["notes/sub"]), "manuals/sub/a", Err(Code::Forbidden)),
            (json!(["notes/sub"]), "notes/sub/a", Ok(())),
            (json!(["/srv/notes/sub", "manuals"]), "/srv/manuals/b", Ok(())),
            (json!([]), "notes/a", Ok(())),
        ] {
            assert_eq!(ask(roots.clone(), json!({ "path": path }), 3), expected, "{roots} {path}");
        }
        assert_eq!(ask(json!(["manuals"]), json!({ "path": "manuals/a", "restore_to": "notes/a" }), 7), Err(Code::Forbidden));
        // The record is searched by whole roots, or not at all.
        for (roots, params, expected) in [
            (json!(["notes"]), json!({ "query": "x" }), Ok(())),
            (json!(["notes", "/srv/manuals"]), json!({ "query": "x", "workspace_root": "manuals" }), Ok(())),
            (json!(["notes"]), json!({ "query": "x", "workspace_root": "manuals" }), Err(Code::Forbidden)),
            (json!(["manuals", "notes/sub"]), json!({ "query": "x" }), Err(Code::Invalid)),
        ] {
            assert_eq!(ask(roots.clone(), params.clone(), 13), expected, "{roots} {params}");
        }
        ask(json!(["notes/sub"]), json!({}), 2).unwrap();
        let mut claimed = desk.act(|cx| job::claim(cx, "worker", &[program::JOB], 30_000_000, 9)).unwrap();
        let input = claimed.pop().unwrap().input;
        assert_eq!(desk.act(move |cx| program::begin(cx, &input)).unwrap().params["root"], "notes/sub", "the first one stands for the folder that is not named");
    }

    fn who_stops_the_job_of_a_plan_stops_the_plan(desk: &TestDesk) {
        let owner = owner(desk);
        let (program, _) = paired(desk, &owner);
        let (planned, ready) = planned(desk, &program);
        let plan = ready["plan_id"].as_str().unwrap().to_owned();
        desk.call(&owner, "desk_request_approve", json!({ "request": ready["request_id"] })).unwrap();
        submit(desk, &program, json!({ "dedupe_key": "x", "type": 5, "params": { "plan_job_id": planned } })).unwrap();
        let input = desk.act(|cx| job::claim(cx, "worker", &[program::JOB], 30_000_000, 1)).unwrap().remove(0).input;
        let begun = input.clone();
        assert_eq!(desk.act(move |cx| program::begin(cx, &begun)).unwrap().plan, Some(plan.clone()));
        let running = desk.call(&program, "workspace_execute_plan", json!({ "plan_id": plan })).unwrap();
        assert_eq!(running["state"], "running", "{running}");
        desk.act(move |cx| program::stop(cx, &input)).unwrap();
        assert_eq!(desk.call(&owner, "desk_job_get", json!({ "job": running["job_id"] })).unwrap()["state"], "cancelled");
        let stopped = desk.call(&program, "workspace_get_plan", json!({ "plan_id": plan })).unwrap();
        assert_eq!((&stopped["state"], &stopped["applied"]), (&json!("partly"), &json!(0)), "{stopped}");
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn an_approval_ends_as_soon_as_its_program_says_and_never_later(desk: &TestDesk) {
        let owner = owner(desk);
        let ((program, _), (other, _)) = (paired(desk, &owner), paired(desk, &owner));
        let approve = |plan: &Value| desk.call(&owner, "desk_request_approve", json!({ "request": plan["request_id"] })).unwrap();
        let ask = |job: &Value, seconds: Value| desk.call(&program, "desk_program_approval", json!({ "plan_job_id": job, "ttl_seconds": seconds }));
        let left = |job: &Value, seconds: Value| ask(job, seconds).unwrap()["ttl_seconds"].as_i64();
        let execute = |plan: &Value| desk.call(&program, "workspace_execute_plan", json!({ "plan_id": plan["plan_id"] }));
        let (job, plan) = planned(desk, &program);
        let waits = ask(&job, json!(60)).unwrap();
        assert_eq!(waits, json!({ "request_id": plan["request_id"], "plan_hash": plan["plan_hash"] }), "what nobody approved is not made shorter");
        approve(&plan);
        let usual = left(&job, Value::Null).unwrap();
        assert!((800..=900).contains(&usual), "as long as policy says: {usual}");
        assert!(left(&job, json!(86_400)).unwrap() <= usual, "and not longer");
        assert_code(&ask(&job, json!(0)).unwrap_err(), Code::Invalid);
        assert_code(&desk.refused(&other, "desk_program_approval", json!({ "plan_job_id": job, "ttl_seconds": 1 })), Code::NotFound);
        assert_eq!(left(&job, json!(60)), Some(60));
        assert!(left(&job, json!(600)).unwrap() <= 60, "what was given up does not come back");
        desk.world.pass(std::time::Duration::from_secs(61));
        for refused in [execute(&plan), ask(&job, Value::Null)] {
            let refused = refused.unwrap_err();
            assert_code(&refused, Code::Conflict);
            assert!(refused.message.contains("expired"), "{refused:?}");
        }
        // Within its time it is used once, as any other is.
        let (job, plan) = planned(desk, &program);
        approve(&plan);
        assert_eq!(left(&job, json!(60)), Some(60));
        assert_eq!(execute(&plan).unwrap()["state"], "running");
        assert_eq!(left(&job, json!(60)), None);
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
        // Nobody makes a good grant out of one that was changed behind the desk's back.
        let (job, plan) = planned(desk, &program);
        approve(&plan);
        desk.tamper("update act_grant set expires_at = expires_at + 86400000000 where used_at is null and revoked_at is null");
        assert_code(&ask(&job, json!(60)).unwrap_err(), Code::Conflict);
    }

    fn a_token_that_is_revoked_ends_what_waits_with_it(desk: &TestDesk) {
        let owner = owner(desk);
        let (_, credential) = paired(desk, &owner);
        let ask = || {
            let call = Call { credential: Credential::Kept(credential.clone()), surface: Surface::Rest, operation: "workspace_list_plans".to_owned(), input: json!({}) };
            wait(desk.desk.call(call))
        };
        let actor = ask().unwrap().actor;
        assert_eq!((actor.scopes, actor.credential.as_ref()), (Some(vec!["workspace".to_owned()]), Some(&credential)));
        desk.call(&owner, "desk_token_revoke", json!({ "credential": credential })).unwrap();
        assert_code(&ask().unwrap_err(), Code::Unauthenticated);
        let sessions = desk.call(&owner, "desk_session_list", json!({})).unwrap();
        let session = sessions["sessions"][0]["session"].as_str().unwrap().to_owned();
        let call = Call { credential: Credential::Kept(session), surface: Surface::Rest, operation: "workspace_list_plans".to_owned(), input: json!({}) };
        assert_code(&wait(desk.desk.call(call)).unwrap_err(), Code::Unauthenticated);
    }
}
