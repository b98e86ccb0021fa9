//! Tools beside files and plans of files, on both engines: what was done before, pages of the web, looks at trees,
//! programs. Who has hands is
//! played by the tests.

use std::sync::{Arc, Mutex};

use deskmate_core::call::{Errand, Fetched, Hands, Tried};
use deskmate_core::job;
use deskmate_core::workspace::plan::{self, Action, Ask, EXECUTE_JOB, PLAN_JOB, Step, StepOutcome, StepState};
use deskmate_core::workspace::scan::{self, SCAN_JOB};
use deskmate_core::workspace::{self, FoundEntries, FoundEntry};
use deskmate_core::{Code, Error};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

use super::workspace::take;

const ROOTS: &str = "
workspace:
  roots:
    - { name: notes, path: /srv/notes, access: write }
    - { name: manuals, path: /srv/manuals }
";

fn apply(desk: &TestDesk, owner: &Caller, text: &str) -> Value {
    desk.call(owner, "desk_policy_apply", json!({ "document": text })).unwrap()
}

/// A desk with roots, its owner and an agent.
fn people(desk: &TestDesk) -> (Caller, Caller) {
    let owner = desk.claim();
    apply(desk, &owner, ROOTS);
    let agent = desk.register(&owner, "code");
    (owner, agent)
}

/// Hands that are never quick.
struct Slow;

impl Hands for Slow {
    fn run(&self, errand: Errand) -> Fetched<'_> {
        panic!("{errand:?} is not waited for")
    }

    fn quickly(&self, _: Errand) -> Tried<'_> {
        Box::pin(async { Ok(None) })
    }
}

/// Hands that bring one answer, or a fault, and remember which pages were asked for.
struct Puppet {
    answer: Result<Value, Error>,
    pages: Arc<Mutex<Vec<String>>>,
}

impl Puppet {
    fn lend(desk: &TestDesk, answer: Result<Value, Error>) -> Arc<Mutex<Vec<String>>> {
        let pages: Arc<Mutex<Vec<String>>> = Arc::default();
        desk.lend(Self { answer, pages: Arc::clone(&pages) });
        pages
    }
}

impl Hands for Puppet {
    fn run(&self, errand: Errand) -> Fetched<'_> {
        if let Errand::Page { url } = errand {
            self.pages.lock().unwrap().push(url);
        }
        let answer = self.answer.clone();
        Box::pin(async move { answer })
    }
}

fn page() -> Value {
    json!({ "url": "https://example.org/a", "status": 200, "content_type": "text/html", "title": "A", "text": "hello", "truncated": false, "fetched_bytes": 5 })
}

/// The events of a kind that somebody sees.
fn told(desk: &TestDesk, caller: &Caller, kind: &str) -> Vec<Value> {
    desk.seal();
    desk.call(caller, "desk_record_list", json!({ "kind": kind })).unwrap()["events"].as_array().unwrap().clone()
}

fn past(desk: &TestDesk, caller: &Caller, input: Value) -> Value {
    desk.call(caller, "workspace_search_past_actions", input).unwrap()
}

fn kinds(found: &Value) -> Vec<&str> {
    found["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

/// A program of an agent that is asked for and made, as its job makes it.
pub(super) fn program(desk: &TestDesk, agent: &Caller, input: Value) -> Value {
    Puppet::lend(desk, Ok(Value::Null));
    let asked = desk.call(agent, "workspace_execute_python", input).unwrap();
    let job = asked["plan_job_id"].as_str().unwrap().to_owned();
    desk.act(move |cx| {
        let hold = take(cx, "worker", PLAN_JOB, &job)?;
        let making = plan::making(cx, &hold)?.unwrap();
        let Ask::Python { program } = making.ask else { panic!("not a program") };
        let step = Step {
            action: Action::Run,
            undoes: None,
            was: None,
            from: None,
            to: None,
            exact: json!(program),
            diff: Some(program.code.clone()),
            irreversible: Some("it is not taken back".to_owned()),
            warning: None,
            blocked: None,
            bytes: 0,
        };
        plan::add_part(cx, &hold, &making.plan, 0, &plan::Part::of(&[step])?)?;
        plan::made(cx, &hold, &making.plan)
    })
    .unwrap();
    desk.call(agent, "workspace_get_plan", json!({ "plan_id": asked["plan_id"] })).unwrap()
}

both! {
    fn a_look_at_a_tree_is_a_job_of_whoever_asked(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let other = desk.register(&owner, "other");
        let scan = |caller: &Caller, root: &str| desk.call(caller, "workspace_sizes", json!({ "root": root })).unwrap();
        let begun = scan(&agent, "notes/2026");
        assert_eq!((&begun["state"], &begun["ended"]), (&json!("waiting"), &json!(false)), "{begun}");
        assert_eq!(scan(&agent, "notes/2026/")["job"], begun["job"], "the same look is not begun twice");
        assert_ne!(scan(&owner, "notes/2026")["job"], begun["job"], "but for each who asks");
        assert_eq!(told(desk, &owner, "workspace.looked").len(), 1);
        let wait = json!({ "job": begun["job"] });
        assert_code(&desk.refused(&other, "workspace_wait_for_scan", wait.clone()), Code::NotFound);
        let job = begun["job"].as_str().unwrap().to_owned();
        desk.act(move |cx| {
            let claimed = job::claim(cx, "worker", &[SCAN_JOB], 30_000_000, 10)?.into_iter().find(|claimed| claimed.job == job).unwrap();
            let (root, survey) = scan::surveyed(cx, &claimed.input)?;
            assert_eq!((root.path.as_str(), survey.path.as_str()), ("/srv/notes", "2026"));
            let total = json!({ "files": 1, "folders": 0, "bytes": 3, "left_out": 0 });
            let found = json!({ "total": total, "folders": [], "truncated": false, "largest": [] });
            job::finish(cx, &job, "worker", claimed.fence, job::Outcome::Done(found)).map(drop)
        })
        .unwrap();
        let done = desk.call(&agent, "workspace_wait_for_scan", wait).unwrap();
        assert_eq!((&done["ended"], &done["result"]["total"]["bytes"]), (&json!(true), &json!(3)), "{done}");
        let plan = desk.call(&agent, "workspace_organize_plan", json!({ "root": "notes" })).unwrap();
        assert_code(&desk.refused(&agent, "workspace_wait_for_scan", json!({ "job": plan["plan_job_id"] })), Code::NotFound);
        for number in 0..8 {
            scan(&agent, &format!("notes/{number}"));
        }
        assert_code(&desk.refused(&agent, "workspace_tree", json!({ "root": "notes" })), Code::Limited);
        apply(desk, &owner, "rules:\n  - { name: no-manuals, match: { kind: file.read, domain: files.manuals }, effect: deny, message: not for agents }\n");
        assert_code(&desk.refused(&agent, "workspace_duplicates", json!({ "root": "manuals" })), Code::Forbidden);
    }

    fn a_look_at_a_tree_goes_on_where_its_last_page_ended(desk: &TestDesk) {
        let (_owner, agent) = people(desk);
        let sha256 = "0f".repeat(32);
        // With what is asked, what a job of an earlier server was told, and a cursor.
        let looks = [
            ("tree", json!({ "depth": 3, "hidden": false, "ignored": false, "limit": 500 }), "2026/odd\nname".to_owned()),
            ("sizes", json!({ "depth": 1 }), "18446744073709551615:2026/a:b".to_owned()),
            ("duplicates", json!({ "min_bytes": 1 }), format!("87:{sha256}:99")),
            ("duplicates", json!({ "min_bytes": 1 }), format!("3:{sha256}:30:2026/a:b")),
        ];
        for (tool, earlier, cursor) in looks {
            let look = |input: Value| desk.call(&agent, &format!("workspace_{tool}"), input).unwrap()["job"].as_str().unwrap().to_owned();
            let first = look(json!({ "root": "notes/2026" }));
            let next = || look(json!({ "root": "notes/2026", "limit": 999, "cursor": cursor }));
            let job = next();
            assert_ne!(job, first, "another page is another look");
            assert_eq!(job, next(), "the same page is the same look");
            let (last, given) = (job.clone(), cursor.clone());
            desk.act(move |cx| {
                let (_, before) = scan::surveyed(cx, &json!({ "root": "notes", "path": "2026", "what": { tool: earlier } }))?;
                for claimed in job::claim(cx, "worker", &[SCAN_JOB], 30_000_000, 10)? {
                    let (_, survey) = scan::surveyed(cx, &claimed.input)?;
                    if claimed.job == first {
                        assert_eq!(survey, before, "what is wanted if nobody says more is what it always was");
                    } else {
                        let wanted = &claimed.input["what"][tool];
                        assert_eq!((&wanted["after"], &wanted["limit"]), (&json!(given), &json!(999)), "{wanted}");
                    }
                    let found = json!({ "truncated": true, "next_cursor": given });
                    job::finish(cx, &claimed.job, "worker", claimed.fence, job::Outcome::Done(found))?;
                }
                Ok(())
            })
            .unwrap();
            let done = desk.call(&agent, "workspace_wait_for_scan", json!({ "job": last })).unwrap();
            assert_eq!((&done["ended"], &done["result"]["next_cursor"]), (&json!(true), &json!(cursor)), "{done}");
        }
    }

    fn a_cursor_that_no_page_gave_is_refused(desk: &TestDesk) {
        let (_owner, agent) = people(desk);
        let sha256 = "0f".repeat(32);
        let long = "x/".repeat(40_000);
        let name = "x".repeat(256);
        let nobodys = |tool: &str, cursors: &[&str]| {
            for cursor in cursors {
                let mut input = json!({ "root": "notes", "cursor": cursor });
                if tool == "search_files" {
                    input["name"] = json!("x");
                }
                let error = desk.refused(&agent, &format!("workspace_{tool}"), input);
                assert_code(&error, Code::Invalid);
                assert_eq!(error.field.as_deref(), Some("cursor"), "{tool} {cursor}: {error:?}");
            }
        };
        for tool in ["tree", "list_files"] {
            nobodys(tool, &["..", "a/../../b", "a/..", &name, &long]);
        }
        nobodys("search_files", &["a", "x:a", "1:../a", &format!("1:{long}")]);
        nobodys("sizes", &["", "a", ":a", "-1:a", "1e3:a", "18446744073709551616:a", &format!("1:{long}")]);
        nobodys("duplicates", &["", "1:2", "1:zz:3", &format!("1:{sha256}"), &format!("1:{sha256}:x"), &format!("1:{}:3:a", sha256.to_uppercase())]);
        for (tool, input) in [("tree", json!({ "limit": 5_001 })), ("sizes", json!({ "limit": 1_001 })), ("sizes", json!({ "limit": 0 })), ("duplicates", json!({ "limit": 1_001 }))] {
            assert_code(&desk.refused(&agent, &format!("workspace_{tool}"), input), Code::Invalid);
        }
        assert_eq!(told(desk, &agent, "workspace.looked").len(), 0, "and nobody looked");
    }

    fn a_look_that_takes_long_goes_on_in_the_queue(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        desk.lend(Slow);
        let list = |caller: &Caller| desk.call(caller, "workspace_list_files", json!({ "root": "notes/2026", "limit": 2 })).unwrap();
        let begun = list(&agent);
        let job = begun["job"].as_str().unwrap().to_owned();
        assert_eq!((&begun["items"], &begun["truncated"]), (&json!([]), &json!(true)), "{begun}");
        assert_eq!(list(&agent)["job"], job, "the same look is not begun twice");
        assert_ne!(list(&owner)["job"], job, "and everybody has their own");
        for (tool, input) in [("search_files", json!({ "root": "notes", "text": "x" })), ("list_trash", json!({ "root": "notes" }))] {
            assert!(desk.call(&agent, &format!("workspace_{tool}"), input).unwrap()["job"].is_string(), "{tool}");
        }
        let wait = json!({ "job": job });
        assert_eq!(desk.call(&agent, "workspace_wait_for_scan", wait.clone()).unwrap()["ended"], false);
        desk.act(move |cx| {
            let claimed = job::claim(cx, "worker", &[SCAN_JOB], 30_000_000, 10)?.into_iter().find(|claimed| claimed.job == job).unwrap();
            let (_, survey) = scan::surveyed(cx, &claimed.input)?;
            let entries = ["2026/a", "2026/b"].map(|path| FoundEntry { path: path.to_owned(), kind: "file".to_owned(), size: 1, mtime: 0 });
            let found = workspace::page(&survey.root, &survey.what, json!(FoundEntries { entries: entries.into(), more: true, left_out: 3 }))?;
            // Paths without end are more than a job keeps: the rest is on the next page.
            let long = |number| FoundEntry { path: format!("{number}/{}", "x".repeat(4_000)), kind: "file".to_owned(), size: 1, mtime: 0 };
            let cut = workspace::page(&survey.root, &survey.what, json!(FoundEntries { entries: (0..2_000).map(long).collect(), more: false, left_out: 0 }))?;
            let (count, last) = (cut["items"].as_array().unwrap().len(), cut["items"].as_array().unwrap().last().unwrap()["path"].clone());
            assert!(count > 50 && cut.to_string().len() < 1024 * 1024 && cut["truncated"] == true, "{count}");
            assert_eq!(format!("notes/{}", cut["next_cursor"].as_str().unwrap()), last);
            job::finish(cx, &claimed.job, "worker", claimed.fence, job::Outcome::Done(found)).map(drop)
        })
        .unwrap();
        let done = desk.call(&agent, "workspace_wait_for_scan", wait).unwrap();
        assert_eq!((&done["result"]["items"][1]["path"], &done["result"]["next_cursor"]), (&json!("notes/2026/b"), &json!("2026/b")), "{done}");
        assert_eq!(done["result"]["left_out"], 3, "{done}");
        apply(desk, &owner, "rules:\n  - { name: no-manuals, match: { kind: file.read, domain: files.manuals }, effect: deny, message: not for agents }\n");
        assert_code(&desk.refused(&agent, "workspace_list_files", json!({ "root": "manuals" })), Code::Forbidden);
    }

    fn a_program_is_bound_by_its_code_and_what_it_is_given(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        for (input, forge, mend) in [
            (
                json!({ "code": "print(1)" }),
                "update plan_part set body = replace(body, 'print(1)', 'print(2)')",
                "update plan_part set body = replace(body, 'print(2)', 'print(1)')",
            ),
            (
                json!({ "code": "print(1)", "root": "notes", "read": ["in"], "write": ["out"] }),
                "update plan_part set body = replace(body, '[\"out\"]', '[\"all\"]')",
                "update plan_part set body = replace(body, '[\"all\"]', '[\"out\"]')",
            ),
        ] {
            let plan = program(desk, &agent, input);
            assert_eq!((&plan["state"], &plan["decision"], &plan["kind"]), (&json!("ready"), &json!("pending"), &json!("python")), "{plan}");
            desk.call(&owner, "desk_request_approve", json!({ "request": plan["request_id"] })).unwrap();
            desk.tamper(forge);
            assert_code(&desk.refused(&agent, "workspace_execute_plan", json!({ "plan_id": plan["plan_id"] })), Code::Conflict);
            desk.tamper(mend);
            let begun = desk.call(&agent, "workspace_execute_plan", json!({ "plan_id": plan["plan_id"] })).unwrap();
            assert_eq!(begun["state"], "running", "{begun}");
            let (id, ran) = (plan["plan_id"].as_str().unwrap().to_owned(), StepOutcome::new(StepState::Done, None));
            desk.act(move |cx| {
                let hold = take(cx, "worker", EXECUTE_JOB, &id)?;
                let executing = plan::executing(cx, &hold, &id)?.unwrap();
                let (number, digest, _) = &executing.parts[0];
                plan::begin_part(cx, &hold, &id, *number, digest)?;
                plan::end_part(cx, &hold, &id, *number, std::slice::from_ref(&ran))?;
                plan::ended(cx, &hold, &id, None).map(drop)
            })
            .unwrap();
        }
        let report = desk.verify();
        assert!(report.sound, "{:?}", report.findings);
    }

    fn only_a_rule_that_names_the_verb_lets_a_program_pass(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let with = |rule: &str| format!("policies:\n  - id: p\n    rules: [{{ name: r, {rule} effect: allow, waive_trust: true }}]\nmappings:\n  - {{ agent_id: code, domain: code, policy_id: p }}\n");
        for (rule, decision) in [("", "pending"), ("match: { domain: code },", "pending"), ("match: { kind: file.change },", "pending"), ("match: { kind: code.run },", "approved")] {
            apply(desk, &owner, &with(rule));
            let plan = program(desk, &agent, json!({ "code": "print(1)" }));
            assert_eq!(plan["decision"], decision, "{rule}: {plan}");
        }
        // What a rule let pass needs that rule still when it is done.
        let plan = program(desk, &agent, json!({ "code": "print(1)" }));
        assert_eq!(plan["decision"], "approved");
        apply(desk, &owner, &with("match: { domain: code },"));
        let stopped = desk.call(&agent, "workspace_execute_plan", json!({ "plan_id": plan["plan_id"] })).unwrap();
        assert_eq!((&stopped["begun"], stopped["note"].as_str().is_some_and(|note| note.contains("not in force"))), (&json!(false), true), "{stopped}");
        apply(desk, &owner, "rules:\n  - { name: none, match: { kind: code.run }, when: 'args.program.code.contains(\"os\")', effect: deny, message: no os }\n");
        let plan = program(desk, &agent, json!({ "code": "import os" }));
        assert!(plan["state"] == "failed" && plan["note"].as_str().unwrap().contains("no os"), "{plan}");
    }

    fn a_program_that_cannot_be_confined_or_meant_is_refused(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        Puppet::lend(desk, Err(Error::new(Code::Unavailable, "this machine cannot confine a program")));
        for caller in [&agent, &owner] {
            assert_code(&desk.refused(caller, "workspace_execute_python", json!({ "code": "print(1)" })), Code::Unavailable);
        }
        assert_eq!(desk.call(&owner, "workspace_list_plans", json!({})).unwrap()["plans"], json!([]));
        Puppet::lend(desk, Ok(Value::Null));
        for wrong in [
            json!({ "code": " " }),
            json!({ "code": "x".repeat(48 * 1024 + 1) }),
            json!({ "code": "print(1)", "timeout_seconds": 0 }),
            json!({ "code": "print(1)", "timeout_seconds": 301 }),
            json!({ "code": "print(1)", "root": "notes" }),
            json!({ "code": "print(1)", "root": "notes", "read": [""] }),
            json!({ "code": "print(1)", "root": "notes", "read": ["../x"] }),
            json!({ "code": "print(1)", "root": "notes", "read": ["in/a"], "write": ["in"] }),
        ] {
            assert_code(&desk.refused(&agent, "workspace_execute_python", wrong), Code::Invalid);
        }
        assert_code(&desk.refused(&agent, "workspace_execute_python", json!({ "code": "print(1)", "root": "manuals", "write": ["out"] })), Code::Forbidden);
        desk.call(&agent, "workspace_execute_python", json!({ "code": "print(1)", "root": "manuals", "read": ["in"] })).unwrap();
        // A key that is kept answers the first plan again.
        let once = || desk.call(&owner, "workspace_execute_python", json!({ "code": "print(1)", "idempotency_key": "k" })).unwrap()["plan_id"].clone();
        assert_eq!(once(), once());
    }

    fn what_a_look_found_is_for_who_reaches_all_of_it(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let begun = |folders: &[&str], root: &str| {
            let scan = desk.call_within(folders, &agent, "workspace_sizes", json!({ "root": root })).unwrap();
            let job = scan["job"].as_str().unwrap().to_owned();
            desk.act({
                let job = job.clone();
                move |cx| {
                    let hold = take(cx, "worker", SCAN_JOB, &job)?;
                    let found = json!({ "total": { "files": 1, "folders": 0, "bytes": 3, "left_out": 0 }, "folders": [], "truncated": false, "largest": [] });
                    job::finish(cx, &job, &hold.worker, hold.fence, job::Outcome::Done(found)).map(drop)
                }
            })
            .unwrap();
            job
        };
        let (whole, part) = (begun(&["/srv"], "notes/a"), begun(&["/srv/notes/a", "/srv/notes/b"], "notes/a"));
        let read = |folders: &[&str], job: &str| {
            let ways = ["workspace_wait_for_scan", "desk_job_get", "desk_job_wait"];
            let answers = ways.map(|operation| desk.call_within(folders, &agent, operation, json!({ "job": job })));
            assert!(answers.iter().all(|answer| answer.is_ok() == answers[0].is_ok()), "one answers as the other: {answers:?}");
            answers.into_iter().for_each(|answer| match answer {
                Ok(done) => assert!(done["result"].is_object(), "{done}"),
                Err(error) => assert_code(&error, Code::Forbidden),
            });
            desk.call_within(folders, &agent, ways[0], json!({ "job": job })).is_ok()
        };
        for (folders, sees_whole, sees_part) in [
            (&["/srv/notes"][..], true, true),
            (&["/srv/notes/a", "/srv/notes/b"], false, true),
            (&["/srv/notes/b", "/srv/notes/a/", "/etc"], false, true),
            // A link in the one folder may lead into the other.
            (&["/srv/notes/a"], false, false),
            (&["/srv/notes/b"], false, false),
            (&["/srv/manuals"], false, false),
            (&[], false, false),
        ] {
            assert_eq!((read(folders, &whole), read(folders, &part)), (sees_whole, sees_part), "{folders:?}");
        }
        desk.call(&owner, "workspace_close_root", json!({ "name": "notes" })).unwrap();
        assert!(!read(&["/srv"], &whole), "nobody knows any more where it lay");
        assert!(desk.call(&agent, "workspace_wait_for_scan", json!({ "job": whole })).is_ok(), "who is not narrowed reads its own");
    }

    fn what_was_done_with_files_is_found_by_those_who_may_see_it(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let other = desk.register(&owner, "other");
        Puppet::lend(desk, Ok(json!(FoundEntries::default())));
        desk.call(&agent, "workspace_list_files", json!({ "root": "notes/2026" })).unwrap();
        desk.call(&agent, "workspace_list_files", json!({ "root": "manuals/2026" })).unwrap();
        desk.call(&agent, "workspace_soft_delete", json!({ "path": "notes/2026/old.md" })).unwrap();
        desk.call(&agent, "bridge_send_message", json!({ "to": "other", "content": "about 2026" })).unwrap();
        desk.seal();
        let looked = "workspace.looked";
        assert_eq!(kinds(&past(desk, &agent, json!({ "query": "2026" }))), ["plan.asked", looked, looked, looked], "the newest first");
        assert_eq!(kinds(&past(desk, &owner, json!({ "query": "OLD.md" }))), ["plan.asked", looked], "people see all, in capitals or not");
        assert_eq!(kinds(&past(desk, &other, json!({ "query": "2026" }))), [""; 0], "another agent's acts are not there");
        for root in ["notes", "notes/", "/srv/notes", "/srv/notes/2026"] {
            assert_eq!(kinds(&past(desk, &agent, json!({ "query": "2026", "workspace_root": root }))), ["plan.asked", looked, looked], "{root}");
        }
        // It is a search of the record: no folder is opened for it, whatever is named.
        assert_eq!(kinds(&past(desk, &agent, json!({ "query": "2026", "workspace_root": "gone" }))), [""; 0]);
        assert_code(&desk.refused(&agent, "workspace_search_past_actions", json!({ "query": "x", "workspace_root": "/etc" })), Code::NotFound);
        let first = past(desk, &agent, json!({ "query": "2026", "limit": 3 }));
        let rest = past(desk, &agent, json!({ "query": "2026", "limit": 3, "cursor": first["next_cursor"] }));
        assert_eq!((kinds(&first).len(), kinds(&rest).len(), &rest["next_cursor"]), (3, 1, &Value::Null));
    }

    fn who_is_narrowed_to_folders_finds_nothing_that_was_done_beneath_other_roots(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        desk.call(&owner, "workspace_open_root", json!({ "name": "inner", "path": "/srv/notes/inner" })).unwrap();
        program(desk, &agent, json!({ "code": "print(1)" }));
        Puppet::lend(desk, Ok(json!(FoundEntries::default())));
        for root in ["notes", "manuals", "inner"] {
            desk.call(&agent, "workspace_list_files", json!({ "root": format!("{root}/2026") })).unwrap();
        }
        let found = |folders: &[&str], query: &str| -> Vec<String> {
            let events = desk.call_within(folders, &agent, "workspace_search_past_actions", json!({ "query": query })).unwrap()["events"].clone();
            events.as_array().unwrap().iter().map(|event| event["facts"]["root"].as_str().unwrap().to_owned()).collect()
        };
        for (folders, expected) in [
            (&["/srv"][..], &["inner", "manuals", "notes"][..]),
            (&["/srv/manuals"], &["manuals"]),
            (&["/srv/notes"], &["inner", "notes"]),
            (&["/srv/notes/inner"], &["inner"]),
            (&["/srv/notes/2025", "/srv/manuals/"], &["manuals", "notes"]),
            (&["/etc"], &[]),
        ] {
            assert_eq!(found(folders, "2026"), expected, "{folders:?}");
        }
        assert_eq!(found(&["/srv/manuals"], "plan.asked"), [""], "what was done in no folder lies outside of none");
        let named = |root: &str| desk.call_within(&["/srv/manuals"], &agent, "workspace_search_past_actions", json!({ "query": "2026", "workspace_root": root }));
        assert_eq!(kinds(&named("manuals").unwrap()), ["workspace.looked"]);
        assert_code(&named("notes").unwrap_err(), Code::Forbidden);
    }

    fn pages_are_read_only_where_an_owner_said_so(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let pages = Puppet::lend(desk, Ok(page()));
        let browse = |caller: &Caller| desk.call(caller, "workspace_browse_web", json!({ "url": "https://example.org/a?token=secret#part" }));
        let refusal = browse(&agent).unwrap_err();
        assert_code(&refusal, Code::Forbidden);
        assert!(refusal.hint.is_some_and(|hint| hint.contains("workspace: { web: true }")));
        assert!(pages.lock().unwrap().is_empty());
        let judged = desk.call(&owner, "desk_policy_check", json!({ "document": "workspace: { web: true }" })).unwrap();
        assert_eq!(judged["loosens"], true, "{judged}");
        apply(desk, &owner, "workspace: { web: true }");
        let judged = desk.call(&owner, "desk_policy_check", json!({ "document": "workspace: { web: false }" })).unwrap();
        assert_eq!(judged["loosens"], false, "{judged}");
        let found = browse(&agent).unwrap();
        assert_eq!((&found["text"], &found["status"]), (&json!("hello"), &json!(200)));
        assert!(found["origin"].as_str().unwrap().contains("not instructions"), "{found}");
        let events = told(desk, &owner, "workspace.web.asked");
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["payload"]["url"], "https://example.org/a", "what stands behind the path may be a secret");
        assert_eq!(events[0]["actor"], "code");
        let read = told(desk, &owner, "taint.added");
        assert_eq!((read.len(), &read[0]["subject"], &read[0]["facts"]["origin"]), (1, &json!("agent:code"), &json!("web")), "{read:?}");
        browse(&owner).unwrap();
        assert_eq!(told(desk, &owner, "workspace.web.asked").len(), 1, "a person's own reading is no news");
        for bad in ["ftp://example.org/", "example.org", "file:///etc/passwd", "https:///", "data:text/plain,x"] {
            assert_code(&desk.refused(&agent, "workspace_browse_web", json!({ "url": bad })), Code::Invalid);
        }
        assert_eq!(pages.lock().unwrap().len(), 2);
    }

    fn a_rule_keeps_agents_from_a_page_and_what_failed_is_told_too(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let rule = "workspace: { web: true }\nrules:\n  - { name: no-intranet, match: { kind: web.read }, when: 'args.host.endsWith(\".corp.example\")', effect: deny, message: not for agents }\n";
        apply(desk, &owner, rule);
        let pages = Puppet::lend(desk, Err(Error::new(Code::Unavailable, "nobody answers there")));
        let refusal = desk.refused(&agent, "workspace_browse_web", json!({ "url": "https://wiki.corp.example/" }));
        assert_code(&refusal, Code::Forbidden);
        assert!(refusal.message.contains("not for agents"), "{refusal:?}");
        assert!(pages.lock().unwrap().is_empty());
        // An address alone can carry something out, so it is told before anybody goes there.
        assert_code(&desk.refused(&agent, "workspace_browse_web", json!({ "url": "https://example.org/out" })), Code::Unavailable);
        assert_eq!(told(desk, &owner, "workspace.web.asked").len(), 1);
        assert_eq!(kinds(&past(desk, &agent, json!({ "query": "example.org/out" }))), ["workspace.web.asked"]);
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        assert_code(&desk.refused(&agent, "workspace_browse_web", json!({ "url": "https://example.org/" })), Code::Forbidden);
        let report = desk.verify();
        assert!(report.sound, "{:?}", report.findings);
    }
}
