//! Work on files, on both engines: roots, looking, and plans from the asking to the end. Who has hands is played by the
//! tests; what hands really do is tested where they are.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deskmate_core::call::{Actor, Cx, Errand, Fetched, Hands};
use deskmate_core::gateway::taint;
use deskmate_core::job::{self, Hold};
use deskmate_core::workspace::plan::{self, Action, EXECUTE_JOB, NextPart, PLAN_JOB, PlanState, Step, StepOutcome, StepState};
use deskmate_core::workspace::{FoundEntries, FoundEntry};
use deskmate_core::{Code, Result};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

use super::workspace_tools::program;

const ROOTS: &str = "
workspace:
  roots:
    - { name: notes, path: /srv/notes, access: write, deny: ['**/.env'] }
    - { name: manuals, path: /srv/notes/manuals }
";

/// What a worker would write about a plan that it does not hold any more.
type Late = fn(&mut Cx<'_, '_>, &Hold, &str) -> Result<()>;

pub(super) fn apply(desk: &TestDesk, owner: &Caller, text: &str) -> Value {
    desk.call(owner, "desk_policy_apply", json!({ "document": text })).unwrap()
}

/// A desk with roots, its owner and an agent.
pub(super) fn people(desk: &TestDesk) -> (Caller, Caller) {
    let owner = desk.claim();
    apply(desk, &owner, ROOTS);
    let agent = desk.register(&owner, "code");
    (owner, agent)
}

pub(super) fn step(number: usize) -> Step {
    Step {
        action: Action::Move,
        undoes: None,
        was: None,
        from: Some(format!("a{number}.txt")),
        to: Some(format!("txt/a{number}.txt")),
        exact: json!({ "action": "move", "ino": number }),
        diff: None,
        irreversible: None,
        warning: None,
        blocked: None,
        bytes: 10,
    }
}

/// Takes a job as a worker does: the one with this id, or the one that does this plan.
pub(crate) fn take(cx: &mut Cx<'_, '_>, worker: &str, kind: &str, of: &str) -> Result<Hold> {
    let claimed = job::claim(cx, worker, &[kind], 30_000_000, 10)?;
    let claimed = claimed.into_iter().find(|claimed| claimed.job == of || claimed.input["plan"] == of).unwrap();
    Ok(Hold { job: claimed.job, worker: worker.to_owned(), fence: claimed.fence })
}

fn id_of(plan: &Value) -> String {
    plan["plan_id"].as_str().unwrap().to_owned()
}

/// The job that does a plan that was begun.
fn taken(desk: &TestDesk, worker: &'static str, plan: &Value) -> Hold {
    let id = id_of(plan);
    desk.act(move |cx| take(cx, worker, EXECUTE_JOB, &id)).unwrap()
}

/// What the job that makes a plan does, with these steps in parts of two.
pub(super) fn make(desk: &TestDesk, asked: &Value, steps: Vec<Step>) {
    let job = asked["plan_job_id"].as_str().unwrap().to_owned();
    desk.act(move |cx| {
        let hold = take(cx, "worker", PLAN_JOB, &job)?;
        let making = plan::making(cx, &hold)?.unwrap();
        for (number, part) in (0..).zip(steps.chunks(2)) {
            plan::add_part(cx, &hold, &making.plan, number, &plan::Part::of(part)?)?;
        }
        plan::made(cx, &hold, &making.plan)?;
        job::finish(cx, &job, &hold.worker, hold.fence, job::Outcome::Done(json!({}))).map(drop)
    })
    .unwrap();
}

/// A plan of an agent that waits for a person.
pub(super) fn ready(desk: &TestDesk, agent: &Caller, count: usize) -> Value {
    let asked = desk.call(agent, "workspace_organize_plan", json!({ "root": "notes", "reasoning": "tidy" })).unwrap();
    assert_eq!(asked["state"], "planning");
    make(desk, &asked, (0..count).map(step).collect());
    get(desk, agent, &asked)
}

pub(super) fn get(desk: &TestDesk, caller: &Caller, plan: &Value) -> Value {
    desk.call(caller, "workspace_get_plan", json!({ "plan_id": plan["plan_id"] })).unwrap()
}

pub(super) fn execute(desk: &TestDesk, caller: &Caller, plan: &Value) -> Value {
    desk.call(caller, "workspace_execute_plan", json!({ "plan_id": plan["plan_id"] })).unwrap()
}

pub(super) fn approve(desk: &TestDesk, owner: &Caller, plan: &Value) {
    desk.call(owner, "desk_request_approve", json!({ "request": plan["request_id"] })).unwrap();
}

/// What the job that does a plan does, with an outcome for each step.
pub(super) fn run(desk: &TestDesk, plan: &Value, outcome: impl Fn(usize) -> StepState + Send + 'static) -> PlanState {
    let (id, hold) = (id_of(plan), taken(desk, "worker", plan));
    desk.act(move |cx| {
        let executing = plan::executing(cx, &hold, &id)?.unwrap();
        let mut at = 0;
        for (number, digest, _) in &executing.parts {
            let NextPart::Go(steps) = plan::begin_part(cx, &hold, &id, *number, digest)? else { panic!("paused") };
            let outcomes: Vec<StepOutcome> = steps.iter().map(|_| (StepOutcome::new(outcome(at), None), at += 1).0).collect();
            plan::end_part(cx, &hold, &id, *number, &outcomes)?;
        }
        plan::ended(cx, &hold, &id, None)
    })
    .unwrap()
}

pub(super) fn sound(desk: &TestDesk) {
    let report = desk.verify();
    assert!(report.sound, "{:?}", report.findings);
}

/// Hands that bring one answer and remember what they were asked for.
struct Puppet {
    answer: Value,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Hands for Puppet {
    fn run(&self, errand: Errand) -> Fetched<'_> {
        let Errand::Look(look) = errand else { panic!("{errand:?}") };
        self.asked.lock().unwrap().push(format!("{} {} {:?}", look.root.path, look.path, look.root.deny));
        let answer = self.answer.clone();
        Box::pin(async move { Ok(answer) })
    }
}

both! {
    fn looks_of_who_is_put_off_or_paused_fill_no_record(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        desk.lend(Puppet { answer: json!(FoundEntries { entries: Vec::new(), more: false, left_out: 0 }), asked: Arc::default() });
        let list = || desk.call(&agent, "workspace_list_files", json!({ "root": "notes" }));
        let told = || {
            desk.seal();
            desk.call(&owner, "desk_record_list", json!({ "kind": "act.denied" })).unwrap()["events"].as_array().unwrap().len()
        };
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        for _ in 0..3 {
            assert_code(&list().unwrap_err(), Code::Forbidden);
        }
        assert_eq!(told(), 0, "that it is paused was told once");
        desk.call(&owner, "desk_resume", json!({ "agent": "code" })).unwrap();
        apply(desk, &owner, "rules:\n  - { name: closed, match: { kind: file.read }, effect: deny, message: closed }\n");
        for _ in 0..10 {
            assert_code(&list().unwrap_err(), Code::Forbidden);
        }
        assert_eq!(told(), 10);
        for _ in 0..3 {
            let error = list().unwrap_err();
            assert_code(&error, Code::Limited);
            assert!(error.retry_after_ms.is_some_and(|after| after > 0), "{error:?}");
        }
        assert_eq!(told(), 10, "who is put off is told when to ask again");
        apply(desk, &owner, "rules: []\n");
        desk.world.pass(Duration::from_secs(61));
        list().unwrap();
        sound(desk);
    }

    fn a_plan_for_a_document_is_the_doing_of_the_tool_that_asked_for_it(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        for (operation, content) in [("create_excel", json!({ "data": [{ "a": 1 }] })), ("create_word", json!({ "content": "x" })), ("create_pdf", json!({ "content": "x" }))] {
            let tool = format!("workspace_{operation}");
            let mut input = json!({ "path": "notes/reports/x" });
            input.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
            let asked = desk.call(&agent, &tool, input.clone()).unwrap();
            make(desk, &asked, vec![step(1)]);
            let request = get(desk, &agent, &asked)["request_id"].clone();
            assert_eq!(desk.call(&owner, "desk_request_get", json!({ "request": request })).unwrap()["act"]["tool"], json!(tool));
            // A test of it is answered by the same rules.
            let rule = format!("  - {{ name: by_{operation}, match: {{ tool: {tool} }}, when: \"args.paths == ['reports/x']\", effect: deny, message: none }}\n");
            apply(desk, &owner, &format!("rules:\n{rule}"));
            let steps = json!([{ "id": "a", "do": tool, "with": input }]);
            let made = desk.call(&owner, "agents_create_agent", json!({ "description": "Write it", "steps": steps, "policies": [] })).unwrap();
            let tested = desk.call(&owner, "agents_test_agent", json!({ "agentId": made["agentId"], "scenario": "Write it" })).unwrap();
            assert!(tested["violations"].to_string().contains(&format!("by_{operation}")), "{tested}");
        }
    }

    fn a_plan_carries_what_its_agent_has_read(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let read = |plan: &Value| desk.call(&owner, "desk_request_get", json!({ "request": plan["request_id"] })).unwrap()["act"]["taint"].clone();
        assert_ne!(read(&ready(desk, &agent, 1)), json!(["web"]));
        desk.act(|cx| {
            cx.actor = Actor::agent("code", true);
            taint::add(cx, Some("a session"), "web")
        })
        .unwrap();
        assert_eq!(read(&ready(desk, &agent, 1)), json!(["web"]));
    }

    fn a_root_that_is_new_loosens_and_one_that_goes_tightens(desk: &TestDesk) {
        let owner = desk.claim();
        let judged = desk.call(&owner, "desk_policy_check", json!({ "document": ROOTS })).unwrap();
        assert_eq!(judged["loosens"], true, "{judged}");
        apply(desk, &owner, ROOTS);
        let judged = desk.call(&owner, "desk_policy_check", json!({ "document": "workspace: { roots: [] }" })).unwrap();
        assert_eq!(judged["loosens"], false, "{judged}");
        for bad in ["workspace: { roots: [{ name: a, path: '/' }] }", "domains: { crm: { workspace: { roots: [] } } }", "workspace: { root: [] }"] {
            assert_code(&desk.refused(&owner, "desk_policy_apply", json!({ "document": bad })), Code::Invalid);
        }
        sound(desk);
    }

    fn agents_see_roots_by_name_and_people_where_they_are(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let roots = desk.call(&agent, "workspace_list_roots", json!({})).unwrap();
        assert_eq!(roots["roots"][0]["name"], "notes");
        assert!(!roots.to_string().contains("/srv"), "{roots}");
        assert_eq!(desk.call(&owner, "workspace_list_roots", json!({})).unwrap()["roots"][1]["path"], "/srv/notes/manuals");
    }

    fn owners_open_change_and_close_roots_one_by_one(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let names = || desk.call(&agent, "workspace_list_roots", json!({})).unwrap()["roots"].clone();
        desk.call(&owner, "workspace_open_root", json!({ "name": "music", "path": "/srv/music" })).unwrap();
        assert_eq!(names()[2], json!({ "name": "music", "access": "read", "deny": [] }));
        desk.call(&owner, "workspace_open_root", json!({ "name": "notes", "access": "read" })).unwrap();
        assert_eq!(names()[0], json!({ "name": "notes", "access": "read", "deny": ["**/.env"] }), "what was not named stays");
        assert_code(&desk.refused(&owner, "workspace_open_root", json!({ "name": "notes", "path": "/srv/x", "deny": [], "new": true })), Code::Conflict);
        assert_eq!(names()[0]["deny"], json!(["**/.env"]), "what was meant as a new one changes none");
        desk.call(&owner, "workspace_open_root", json!({ "name": "notes", "deny": ["*.key"] })).unwrap();
        assert_eq!(names()[0]["deny"], json!(["*.key"]), "all of them, in place of those before");
        desk.call(&owner, "workspace_close_root", json!({ "name": "notes" })).unwrap();
        assert_eq!(names().as_array().unwrap().len(), 2);
        for (bad, code) in [(json!({ "name": "new" }), Code::Invalid), (json!({ "name": "A", "path": "/srv/a" }), Code::Invalid), (json!({ "name": "all", "path": "/" }), Code::Invalid)] {
            assert_code(&desk.refused(&owner, "workspace_open_root", bad), code);
        }
        assert_code(&desk.refused(&agent, "workspace_open_root", json!({ "name": "etc", "path": "/etc" })), Code::Forbidden);
        assert_code(&desk.refused(&owner, "workspace_close_root", json!({ "name": "notes" })), Code::NotFound);
        sound(desk);
    }

    fn places_are_found_beneath_roots_only(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let entries = vec![FoundEntry { path: "2026/a.md".to_owned(), kind: "file".to_owned(), size: 3, mtime: 0 }];
        desk.lend(Puppet { answer: json!(FoundEntries { entries, more: true, left_out: 2 }), asked: Arc::clone(&asked) });
        let list = |place: &str| desk.call(&agent, "workspace_list_files", json!({ "root": place }));
        let page = list("notes").unwrap();
        assert_eq!((&page["items"][0]["path"], &page["truncated"], &page["next_cursor"]), (&json!("notes/2026/a.md"), &json!(true), &json!("2026/a.md")));
        assert_eq!(page["left_out"], 2, "what was left out is told");
        list("notes/2026/").unwrap();
        list("/srv/notes/2026/./x").unwrap();
        // The innermost root counts: it may be guarded more.
        list("/srv/notes/manuals/a").unwrap();
        let seen = asked.lock().unwrap().clone();
        assert_eq!(seen, ["/srv/notes  [\"**/.env\"]", "/srv/notes 2026 [\"**/.env\"]", "/srv/notes 2026/x [\"**/.env\"]", "/srv/notes/manuals a []"]);
        for (bad, code) in [("other", Code::NotFound), ("/srv/notesx", Code::NotFound), ("/etc", Code::NotFound), ("notes/../x", Code::Invalid), ("notes/a\nb", Code::Invalid), ("", Code::NotFound)] {
            let refusal = list(bad).unwrap_err();
            assert_code(&refusal, code);
            assert!(!format!("{refusal:?}").contains("/srv/notes "), "no path of the machine is told: {refusal:?}");
        }
        assert_code(&desk.refused(&agent, "workspace_list_files", json!({})), Code::Invalid);
        // Agents' looks are on the record, people's own are not.
        desk.seal();
        let told = |caller: &Caller| desk.call(caller, "desk_record_list", json!({ "kind": "workspace.looked" })).unwrap()["events"].as_array().unwrap().len();
        assert_eq!(told(&owner), 4);
        desk.call(&owner, "workspace_list_files", json!({ "root": "notes" })).unwrap();
        desk.seal();
        assert_eq!(told(&owner), 4);
    }

    fn a_rule_about_a_path_is_asked_about_the_place_that_a_link_leads_to(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        apply(desk, &owner, "rules:\n  - { name: no-payroll, match: { kind: file.read, domain: files.notes }, when: 'args.path.startsWith(\"notes/payroll\")', effect: deny, message: not for agents }\n");
        let read = |caller: &Caller, lies: &str| {
            let found = json!({ "path": lies, "size": 1, "read_bytes": 1, "truncated": false, "text": "x", "data_base64": null });
            desk.lend(Puppet { answer: found, asked: Arc::default() });
            desk.call(caller, "workspace_read_file", json!({ "path": "notes/link/x" }))
        };
        let refusal = read(&agent, "payroll/x").unwrap_err();
        assert_code(&refusal, Code::Forbidden);
        assert!(refusal.message.contains("not for agents"), "{refusal:?}");
        assert_eq!(read(&owner, "payroll/x").unwrap_err().code, Code::Forbidden, "the rule is for everybody");
        assert_eq!(read(&agent, "open/x").unwrap()["path"], "notes/link/x");
        desk.seal();
        let events = desk.call(&owner, "desk_record_list", json!({ "kind": "workspace.looked" })).unwrap();
        assert_eq!(events["events"][0]["payload"]["path"], "notes/open/x", "what was read is on the record: {events}");
    }

    fn a_rule_keeps_agents_from_looking(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        desk.lend(Puppet { answer: json!(FoundEntries::default()), asked: Arc::default() });
        apply(desk, &owner, "rules:\n  - { name: no-manuals, match: { kind: file.read, domain: files.manuals }, effect: deny, message: not for agents }\n");
        let refusal = desk.refused(&agent, "workspace_list_files", json!({ "root": "manuals" }));
        assert_code(&refusal, Code::Forbidden);
        assert!(refusal.message.contains("not for agents"), "{refusal:?}");
        desk.call(&agent, "workspace_list_files", json!({ "root": "notes" })).unwrap();
        // The refusal is on the record and counted, whichever way it was looked.
        assert_code(&desk.refused(&agent, "workspace_read_file", json!({ "path": "manuals/a" })), Code::Forbidden);
        assert_code(&desk.refused(&agent, "workspace_tree", json!({ "root": "manuals" })), Code::Forbidden);
        desk.seal();
        let told = desk.call(&owner, "desk_record_list", json!({ "kind": "act.denied" })).unwrap();
        let rules: Vec<&serde_json::Value> = told["events"].as_array().unwrap().iter().map(|event| &event["facts"]["rules"][0]["rule"]).collect();
        assert_eq!(rules, ["no-manuals", "no-manuals", "no-manuals"], "{told}");
        assert_eq!(desk.act(|cx| deskmate_core::meter::counters(cx, "code", "files.manuals")).unwrap().denied_day, 3);
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        assert_code(&desk.refused(&agent, "workspace_list_files", json!({ "root": "notes" })), Code::Forbidden);
    }

    fn a_rule_that_keeps_agents_from_looking_keeps_plans_from_showing_them(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let payroll = "rules:\n  - { name: no-payroll, match: { kind: file.read, domain: files.notes }, when: 'args.path.startsWith(\"notes/payroll\")', effect: deny, message: not for agents }\n";
        apply(desk, &owner, payroll);
        let one = |step: Value| ("workspace_change_plan", json!({ "root": "notes/payroll", "steps": [{ "action": "write", "to": "new", "text": "x" }, step] }));
        let shown = [
            one(json!({ "action": "replace", "to": "a", "text": "x" })),
            one(json!({ "action": "replace", "to": "a", "edits": [{ "old": "x", "new": "y" }] })),
            one(json!({ "action": "copy", "from": "a", "to": "b" })),
            one(json!({ "action": "move", "from": "a", "to": "b" })),
            one(json!({ "action": "trash", "from": "a" })),
            ("workspace_organize_plan", json!({ "root": "notes/payroll" })),
            ("workspace_organize_plan", json!({ "root": "notes", "moves": [{ "from": "payroll/a", "to": "b" }] })),
            ("workspace_soft_delete", json!({ "path": "notes/payroll/a" })),
        ];
        for (count, (tool, input)) in (1..).zip(shown) {
            let refusal = desk.refused(&agent, tool, input.clone());
            assert_code(&refusal, Code::Forbidden);
            assert!(refusal.message.contains("not for agents"), "{refusal:?}");
            assert_eq!(desk.act(|cx| deskmate_core::meter::counters(cx, "code", "files.notes")).unwrap().denied_day, count);
            // Trying out an agent that would ask for it is answered by the same rule.
            let steps = json!([{ "id": "a", "do": tool, "with": input }]);
            let made = desk.call(&owner, "agents_create_agent", json!({ "description": "Do it", "steps": steps, "policies": [] })).unwrap();
            let tested = desk.call(&owner, "agents_test_agent", json!({ "agentId": made["agentId"], "scenario": "Do it" })).unwrap();
            assert!(tested["violations"].to_string().contains("no-payroll"), "{tested}");
        }
        assert_eq!(desk.call(&agent, "workspace_list_plans", json!({})).unwrap()["plans"], json!([]));
        // What shows nothing of what is there is asked for as before, and what may be looked at is on the record as a look.
        let (tool, new) = one(json!({ "action": "make_folder", "to": "c" }));
        desk.call(&agent, tool, new).unwrap();
        let looked = || {
            desk.seal();
            let events = desk.call(&owner, "desk_record_list", json!({ "kind": "workspace.looked" })).unwrap()["events"].clone();
            let told = |event: &Value| (event["facts"]["operation"].clone(), event["payload"]["path"].clone());
            events.as_array().unwrap().iter().map(told).collect::<Vec<_>>()
        };
        assert_eq!(looked(), []);
        desk.call(&agent, "workspace_change_plan", json!({ "root": "notes", "steps": [{ "action": "replace", "to": "open/a", "text": "x" }] })).unwrap();
        assert_eq!(looked(), [(json!("change_plan"), json!("notes/open/a"))]);
        desk.call(&agent, "workspace_organize_plan", json!({ "root": "notes/open" })).unwrap();
        assert_eq!(looked()[0], (json!("organize_plan"), json!("notes/open")));
    }

    fn a_plan_waits_for_a_person_and_is_done_once(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &agent, 5);
        assert_eq!((&plan["state"], &plan["decision"], &plan["count"], &plan["bytes"]), (&json!("ready"), &json!("pending"), &json!(5), &json!(50)));
        assert_eq!(plan["steps"][4]["from"], "notes/a4.txt");
        let waits = execute(desk, &agent, &plan);
        assert_eq!((&waits["begun"], &waits["state"]), (&json!(false), &json!("ready")));
        approve(desk, &owner, &plan);
        let runs = execute(desk, &agent, &plan);
        assert_eq!((&runs["begun"], &runs["state"]), (&json!(true), &json!("running")));
        assert_eq!(execute(desk, &agent, &plan)["job_id"], runs["job_id"], "a second call begins nothing");
        assert_eq!(run(desk, &plan, |_| StepState::Done), PlanState::Done);
        let done = get(desk, &agent, &plan);
        assert_eq!((&done["state"], &done["applied"], &done["decision"]), (&json!("done"), &json!(5), &json!("done")));
        assert_eq!(done["steps"][2]["outcome"], "done");
        desk.seal();
        let kinds = desk.call(&owner, "desk_record_list", json!({ "subject": format!("plan:{}", plan["plan_id"].as_str().unwrap()) })).unwrap();
        let kinds: Vec<&str> = kinds["events"].as_array().unwrap().iter().rev().map(|event| event["kind"].as_str().unwrap()).collect();
        let part = ["plan.steps.intended", "plan.steps.ended"];
        assert_eq!(kinds, [&["plan.asked", "plan.made", "plan.begun"], &part[..], &part[..], &part[..], &["plan.ended"]].concat());
        sound(desk);
    }

    fn steps_of_a_plan_are_found_by_what_came_of_them(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &agent, 9);
        let page = |outcome: &str, limit: u32, cursor: &Value| {
            desk.call(&agent, "workspace_get_plan", json!({ "plan_id": plan["plan_id"], "outcome": outcome, "limit": limit, "cursor": cursor })).unwrap()
        };
        let numbers = |page: &Value| -> Vec<i64> { page["steps"].as_array().unwrap().iter().map(|step| step["number"].as_i64().unwrap()).collect() };
        let all = |outcome: &str| numbers(&page(outcome, 50, &Value::Null));
        assert_eq!((all("left").len(), all("done").len()), (9, 0), "nothing came of any yet");
        approve(desk, &owner, &plan);
        execute(desk, &agent, &plan);
        let ends = [StepState::Done, StepState::Failed, StepState::Done, StepState::Done, StepState::Skipped, StepState::Failed, StepState::Unclear, StepState::Done];
        // All parts but the last end, and then somebody stops it.
        let (id, hold) = (id_of(&plan), taken(desk, "worker", &plan));
        desk.act(move |cx| {
            let executing = plan::executing(cx, &hold, &id)?.unwrap();
            for ((number, digest, _), ended) in executing.parts.iter().zip(ends.chunks(2)) {
                plan::begin_part(cx, &hold, &id, *number, digest)?;
                let outcomes: Vec<StepOutcome> = ended.iter().map(|state| StepOutcome::new(*state, None)).collect();
                plan::end_part(cx, &hold, &id, *number, &outcomes)?;
            }
            plan::ended(cx, &hold, &id, Some("stopped"))
        })
        .unwrap();
        for (outcome, expected) in [("done", vec![1, 3, 4, 8]), ("failed", vec![2, 6]), ("skipped", vec![5]), ("unclear", vec![7]), ("left", vec![9])] {
            assert_eq!(all(outcome), expected, "{outcome}");
            let (mut found, mut cursor) = (Vec::new(), Value::Null);
            loop {
                let one = page(outcome, 1, &cursor);
                assert!(numbers(&one).len() <= 1, "{one}");
                found.extend(numbers(&one));
                cursor = one["next_cursor"].clone();
                if cursor.is_null() {
                    break;
                }
            }
            assert_eq!(found, expected, "{outcome}, one by one");
        }
        assert_eq!(page("failed", 50, &Value::Null)["steps"][1]["outcome"], "failed");
        assert_code(&desk.refused(&agent, "workspace_get_plan", json!({ "plan_id": plan["plan_id"], "outcome": "ambiguous" })), Code::Invalid);
    }

    fn who_is_narrowed_to_folders_does_no_plan_that_goes_beyond_them(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let within = |folders: &[&str], plan: &Value| desk.call_within(folders, &agent, "workspace_execute_plan", json!({ "plan_id": plan["plan_id"] }));
        let plan = ready(desk, &agent, 3);
        approve(desk, &owner, &plan);
        for folders in [&["/srv/notes/txt"][..], &["/srv/notes/manuals", "/etc"], &[]] {
            assert_code(&within(folders, &plan).unwrap_err(), Code::Forbidden);
        }
        assert_eq!(within(&["/srv/notes/txt", "/srv"], &plan).unwrap()["state"], "running");
        let of = |steps: Vec<Step>| {
            let asked = desk.call(&agent, "workspace_organize_plan", json!({ "root": "notes" })).unwrap();
            make(desk, &asked, steps);
            let plan = get(desk, &agent, &asked);
            approve(desk, &owner, &plan);
            plan
        };
        let inside = |number| Step { from: Some(format!("sub/a{number}")), to: Some(format!("sub/txt/a{number}")), ..step(number) };
        let restore = Step { action: Action::Restore, from: Some("sub".to_owned()), to: Some("sub/a".to_owned()), ..step(1) };
        assert_code(&within(&["/srv/notes/sub"], &of(vec![inside(1), inside(2), step(3)])).unwrap_err(), Code::Forbidden);
        assert_code(&within(&["/srv/notes/sub"], &of(vec![restore])).unwrap_err(), Code::Forbidden);
        assert_eq!(within(&["/srv/notes/sub"], &of(vec![inside(1), inside(2), inside(3)])).unwrap()["state"], "running");
        sound(desk);
    }

    fn who_is_narrowed_to_folders_reads_no_plan_that_goes_beyond_them(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let asked = |root: &str| desk.call(&agent, "workspace_organize_plan", json!({ "root": root })).unwrap();
        let of = |root: &str, folder: &str| {
            let (from, to) = (Some(format!("{folder}/a")), Some(format!("{folder}/txt/a")));
            let asked = asked(root);
            make(desk, &asked, vec![Step { from, to, diff: Some("--- a\n+++ a\n+text\n".to_owned()), ..step(1) }]);
            id_of(&asked)
        };
        // One that reaches into the folder from elsewhere, one that goes elsewhere, one that is still being made, and one without a folder.
        let (inside, into, beyond, making) = (of("notes/sub", "sub"), of("notes", "sub"), of("notes", "other"), id_of(&asked("notes")));
        // And programs: one without a folder, and one that is given some.
        let code = id_of(&program(desk, &agent, json!({ "code": "print(1)" })));
        let lent = program(desk, &agent, json!({ "code": "print(1)", "root": "notes/sub", "read": ["in"], "write": ["out"], "timeout_seconds": 7 }));
        let given = json!({ "read": ["notes/sub/in"], "write": ["notes/sub/out"], "timeout_seconds": 7 });
        assert_eq!(lent["steps"][0]["given"], given, "{lent}");
        let lent = id_of(&lent);
        let all = [&inside, &into, &beyond, &making, &code, &lent];
        let seen = |folders: &[&str]| -> BTreeSet<String> {
            let call = |operation: &str, input: Value| desk.call_within(folders, &agent, &format!("workspace_{operation}"), input);
            let listed = call("list_plans", json!({})).unwrap();
            let listed: BTreeSet<String> = listed["plans"].as_array().unwrap().iter().map(id_of).collect();
            for plan in all {
                let input = json!({ "plan_id": plan });
                let numbered = json!({ "plan_id": plan, "number": 1 });
                let waited = json!({ "plan_id": plan, "timeout_seconds": 0 });
                for (operation, input) in [("get_plan", input), ("wait_for_plan", waited), ("read_diff", numbered)] {
                    let answer = call(operation, input);
                    let refused = answer.as_ref().is_err_and(|error| error.code == Code::Forbidden);
                    assert_eq!(refused, !listed.contains(plan), "{operation} within {folders:?}: {answer:?}");
                }
            }
            listed
        };
        let named = |plans: &[&String]| plans.iter().map(|plan| (*plan).clone()).collect::<BTreeSet<String>>();
        assert_eq!(seen(&["/srv"]), named(&all));
        assert_eq!(seen(&["/srv/notes/sub"]), named(&[&inside, &into, &code, &lent]));
        assert_eq!(seen(&["/srv/notes/sub/txt", "/etc"]), named(&[&code]));
        assert_eq!(seen(&["/srv/notes/other", "/srv/notes/sub"]), named(&[&inside, &into, &beyond, &code, &lent]));
        desk.call(&owner, "workspace_close_root", json!({ "name": "notes" })).unwrap();
        assert_eq!(seen(&["/srv"]), named(&[&code]), "of a root that is closed nobody knows where it lay");
    }

    fn how_far_a_plan_is_is_told_and_counted_from_what_has_ended(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let told = |percent: Option<u8>, text: &str| Some(job::Progress { percent, text: Some(text.to_owned()) });
        let asked = desk.call(&agent, "workspace_organize_plan", json!({ "root": "notes" })).unwrap();
        assert_eq!(asked["progress"], Value::Null);
        let (making, looked) = (asked["plan_job_id"].as_str().unwrap().to_owned(), told(None, "looked at 7 entries"));
        desk.act(move |cx| {
            let hold = take(cx, "worker", PLAN_JOB, &making)?;
            job::heartbeat(cx, &making, "worker", hold.fence, looked.clone(), None).map(drop)
        })
        .unwrap();
        assert_eq!(get(desk, &agent, &asked)["progress"], json!({ "text": "looked at 7 entries" }));
        let plan = ready(desk, &agent, 5);
        approve(desk, &owner, &plan);
        execute(desk, &agent, &plan);
        let (id, hold, half) = (id_of(&plan), taken(desk, "worker", &plan), told(Some(40), "2 of 5 steps"));
        let ended = desk.act(move |cx| {
            let first = plan::executing(cx, &hold, &id)?.unwrap();
            let (number, digest, _) = first.parts[0].clone();
            plan::begin_part(cx, &hold, &id, number, &digest)?;
            plan::end_part(cx, &hold, &id, number, &[StepOutcome::new(StepState::Done, None), StepOutcome::new(StepState::Skipped, None)])?;
            job::heartbeat(cx, &hold.job, "worker", hold.fence, half.clone(), None)?;
            // Whoever takes it up after a crash goes on counting from here.
            Ok((first.ended, plan::executing(cx, &hold, &id)?.unwrap().ended))
        });
        assert_eq!(ended.unwrap(), (0, 2));
        assert_eq!(get(desk, &agent, &plan)["progress"], json!({ "percent": 40, "text": "2 of 5 steps" }));
        desk.call(&owner, "desk_job_cancel", json!({ "job": get(desk, &agent, &plan)["job_id"] })).unwrap();
    }

    fn nothing_that_is_named_is_left_unheeded(desk: &TestDesk) {
        let (_, agent) = people(desk);
        let (plan, other) = (ready(desk, &agent, 1), ready(desk, &agent, 1));
        for (operation, input, field) in [
            ("execute_plan", json!({ "plan_id": plan["plan_id"], "plan_job_id": other["plan_job_id"] }), "plan_job_id"),
            ("organize_plan", json!({ "root": "notes", "moves": [{ "from": "a", "to": "b" }], "policy": "by_date" }), "moves"),
            ("organize_plan", json!({ "root": "notes", "moves": [{ "from": "a", "to": "b" }], "recursive": true }), "moves"),
            ("restore", json!({ "root": "notes", "workspace_root": "manuals", "trash_id": "a" }), "workspace_root"),
            ("list_files", json!({ "root": "notes", "recursive": false, "depth": 5 }), "depth"),
            ("list_trash", json!({ "root": "notes/sub" }), "root"),
            ("restore", json!({ "root": "notes/sub", "trash_id": "a" }), "root"),
        ] {
            let refused = desk.refused(&agent, &format!("workspace_{operation}"), input.clone());
            assert_eq!((refused.code, refused.field.as_deref()), (Code::Invalid, Some(field)), "{operation} {input}: {refused:?}");
        }
        execute(desk, &agent, &plan);
        desk.call(&agent, "workspace_execute_plan", json!({ "plan_id": plan["plan_id"], "plan_job_id": plan["plan_job_id"] })).unwrap();
    }

    fn a_plan_ends_with_the_job_that_somebody_stopped(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let asked = desk.call(&agent, "workspace_organize_plan", json!({ "root": "notes" })).unwrap();
        desk.call(&owner, "desk_job_cancel", json!({ "job": asked["plan_job_id"] })).unwrap();
        assert_eq!(get(desk, &agent, &asked)["state"], "failed");
        let plan = ready(desk, &agent, 3);
        approve(desk, &owner, &plan);
        let runs = execute(desk, &agent, &plan);
        desk.call(&owner, "desk_job_cancel", json!({ "job": runs["job_id"] })).unwrap();
        let stopped = get(desk, &agent, &plan);
        assert_eq!((&stopped["state"], &stopped["applied"], &stopped["decision"]), (&json!("partly"), &json!(0), &json!("failed")), "{stopped}");
        sound(desk);
    }

    fn who_lost_the_job_of_a_plan_writes_nothing_of_it(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let refused = |by: &Hold, act: fn(&mut Cx<'_, '_>, &Hold, &str) -> Result<()>, plan: &Value| {
            let (hold, id) = (by.clone(), id_of(plan));
            assert_code(&desk.act(move |cx| act(cx, &hold, &id)).unwrap_err(), Code::Conflict);
        };
        let rescued = || assert_eq!(desk.act(|cx| job::rescue(cx, 10)).unwrap().len(), 1);
        // Making it: the lease of the first worker runs out, and a second one takes it up.
        let asked = desk.call(&agent, "workspace_organize_plan", json!({ "root": "notes" })).unwrap();
        let job = asked["plan_job_id"].as_str().unwrap().to_owned();
        let (mine, theirs) = (job.clone(), job);
        let first = desk.act(move |cx| take(cx, "first", PLAN_JOB, &mine)).unwrap();
        let making: [Late; 4] = [
            |cx, hold, _| plan::making(cx, hold).map(drop),
            |cx, hold, id| plan::add_part(cx, hold, id, 0, &plan::Part::of(&[step(7)])?),
            |cx, hold, id| plan::made(cx, hold, id),
            |cx, hold, id| plan::not_made(cx, hold, id, "late"),
        ];
        desk.world.pass(Duration::from_secs(31));
        making.iter().for_each(|act| refused(&first, *act, &asked));
        rescued();
        desk.world.pass(Duration::from_secs(5));
        let second = desk.act(move |cx| take(cx, "second", PLAN_JOB, &theirs)).unwrap();
        making.iter().for_each(|act| refused(&first, *act, &asked));
        let (hold, id) = (second, id_of(&asked));
        desk.act(move |cx| {
            plan::making(cx, &hold)?;
            plan::add_part(cx, &hold, &id, 0, &plan::Part::of(&[step(0), step(1)])?)?;
            plan::made(cx, &hold, &id)?;
            job::finish(cx, &hold.job, "second", hold.fence, job::Outcome::Done(json!({}))).map(drop)
        })
        .unwrap();
        // Doing it: the first worker comes back while the second one is in the middle of the part.
        let plan = get(desk, &agent, &asked);
        assert_eq!((&plan["state"], &plan["count"]), (&json!("ready"), &json!(2)), "{plan}");
        approve(desk, &owner, &plan);
        execute(desk, &agent, &plan);
        let begin = |cx: &mut Cx<'_, '_>, hold: &Hold, id: &str| {
            let parts = plan::executing(cx, hold, id)?.unwrap().parts;
            plan::begin_part(cx, hold, id, parts[0].0, &parts[0].1).map(drop)
        };
        let end = |cx: &mut Cx<'_, '_>, hold: &Hold, id: &str| plan::end_part(cx, hold, id, 0, &[StepOutcome::new(StepState::Skipped, None), StepOutcome::new(StepState::Skipped, None)]);
        let first = taken(desk, "first", &plan);
        let (hold, id) = (first.clone(), id_of(&plan));
        desk.act(move |cx| begin(cx, &hold, &id)).unwrap();
        let doing: [Late; 4] = [
            |cx, hold, id| plan::executing(cx, hold, id).map(drop),
            |cx, hold, id| plan::begin_part(cx, hold, id, 0, &[0; 32]).map(drop),
            end,
            |cx, hold, id| plan::ended(cx, hold, id, None).map(drop),
        ];
        desk.world.pass(Duration::from_secs(31));
        doing.iter().for_each(|act| refused(&first, *act, &plan));
        rescued();
        desk.world.pass(Duration::from_secs(5));
        let second = taken(desk, "second", &plan);
        let (hold, id) = (second.clone(), id_of(&plan));
        desk.act(move |cx| begin(cx, &hold, &id)).unwrap();
        doing.iter().for_each(|act| refused(&first, *act, &plan));
        assert_eq!((&get(desk, &agent, &plan)["state"], &get(desk, &agent, &plan)["skipped"]), (&json!("running"), &json!(0)));
        let (hold, id) = (second, id_of(&plan));
        desk.act(move |cx| {
            plan::end_part(cx, &hold, &id, 0, &[StepOutcome::new(StepState::Done, None), StepOutcome::new(StepState::Done, None)])?;
            plan::ended(cx, &hold, &id, None)
        })
        .unwrap();
        assert_eq!(get(desk, &agent, &plan)["applied"], 2);
        sound(desk);
    }

    fn the_way_back_says_what_does_not_come_back(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &agent, 2);
        approve(desk, &owner, &plan);
        execute(desk, &agent, &plan);
        run(desk, &plan, |_| StepState::Done);
        let undo = desk.call(&agent, "workspace_undo_plan", json!({ "plan_id": plan["plan_id"] })).unwrap();
        let warned = Step { action: Action::Undo, warning: Some("it was changed since, and goes back as it is now".to_owned()), ..step(0) };
        make(desk, &undo, vec![warned, Step { action: Action::Undo, ..step(1) }]);
        let request = get(desk, &agent, &undo)["request_id"].clone();
        let told = desk.call(&owner, "desk_request_get", json!({ "request": request })).unwrap();
        let told = told["reversibility"].as_str().unwrap_or_else(|| panic!("{told:#}"));
        assert!(told.contains("folders that it changes get the time at which it does") && told.contains("1 of 2 steps carry a warning"), "{told}");
    }

    fn what_a_plan_holds_can_be_erased(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &agent, 3);
        approve(desk, &owner, &plan);
        desk.seal();
        let subject = format!("plan:{}", plan["plan_id"].as_str().unwrap());
        let events = || desk.call(&owner, "desk_record_list", json!({ "subject": subject })).unwrap()["events"].clone();
        let first = events().as_array().unwrap().last().unwrap()["seq"].clone();
        desk.call(&owner, "desk_record_erase", json!({ "seq": first, "reason": "they asked" })).unwrap();
        desk.seal();
        for shown in [events(), get(desk, &agent, &plan)] {
            assert!(!shown.to_string().contains("a1.txt"), "{shown:#}");
        }
        assert_code(&desk.refused(&agent, "workspace_execute_plan", json!({ "plan_id": plan["plan_id"] })), Code::Conflict);
        sound(desk);
    }

    fn what_became_of_each_step_is_what_became_of_the_plan(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        for (outcomes, state, request) in [
            ([StepState::Done, StepState::Skipped, StepState::Done], PlanState::Partly, "done"),
            ([StepState::Failed, StepState::Skipped, StepState::Failed], PlanState::Partly, "failed"),
            ([StepState::Done, StepState::Unclear, StepState::Done], PlanState::Ambiguous, "ambiguous"),
        ] {
            let plan = ready(desk, &agent, 3);
            approve(desk, &owner, &plan);
            execute(desk, &agent, &plan);
            assert_eq!(run(desk, &plan, move |at| outcomes[at]), state);
            assert_eq!(get(desk, &agent, &plan)["decision"], request);
        }
        sound(desk);
    }

    fn the_chain_of_a_plan_is_whole_where_each_step_was_done(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let ran = |outcomes: [StepState; 3]| {
            let plan = ready(desk, &agent, 3);
            approve(desk, &owner, &plan);
            execute(desk, &agent, &plan);
            run(desk, &plan, move |at| outcomes[at]);
            desk.seal();
            plan["request_id"].clone()
        };
        let trail = |request: &Value| desk.call(&owner, "cowork_audit_trail", json!({ "proposal_id": request })).unwrap();
        let (partly, erased, whole) = (ran([StepState::Done, StepState::Skipped, StepState::Done]), ran([StepState::Done; 3]), ran([StepState::Done; 3]));
        let told = trail(&partly);
        assert_eq!((&told["verified"], &told["trail"]["state"], &told["trail"]["status"]), (&json!(false), &json!("done"), &json!("executed")), "{told:#}");
        assert!(told["problems"].to_string().contains("each step of its plan"), "{told:#}");
        let told = trail(&whole);
        assert_eq!((&told["verified"], &told["problems"], &told["trail"]["status"]), (&json!(true), &json!([]), &json!("verified")), "{told:#}");
        assert!(told["trail"]["executed_timestamp"].is_string(), "{told:#}");
        let last = told["chain"].as_array().unwrap().iter().filter(|link| link["stage"] == "outcome").map(|link| &link["kind"]).collect::<Vec<_>>();
        assert_eq!(last, ["plan.ended", "request.finished"], "{told:#}");
        // It stays so where what was approved was erased, and when the plan has gone after its time.
        let events = desk.call(&owner, "desk_record_list", json!({ "subject": format!("request:{}", erased.as_str().unwrap()) })).unwrap();
        let created = events["events"].as_array().unwrap().iter().find(|event| event["kind"] == "request.created").unwrap();
        desk.call(&owner, "desk_record_erase", json!({ "seq": created["seq"], "reason": "they asked" })).unwrap();
        desk.seal();
        assert_eq!(trail(&erased)["verified"], true, "{:#}", trail(&erased));
        desk.act(|cx| plan::prune(cx, cx.now() + 1, 10)).unwrap();
        assert_eq!(trail(&whole)["verified"], true, "{:#}", trail(&whole));
    }

    fn steps_that_were_changed_behind_the_back_are_not_done(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &agent, 3);
        approve(desk, &owner, &plan);
        desk.tamper("update plan_part set body = replace(body, 'txt/a1.txt', 'txt/evil')");
        assert_code(&desk.refused(&agent, "workspace_execute_plan", json!({ "plan_id": plan["plan_id"] })), Code::Conflict);
        assert_eq!(get(desk, &agent, &plan)["begun"], false);
        desk.tamper("update plan_part set body = replace(body, 'txt/evil', 'txt/a1.txt')");
        execute(desk, &agent, &plan);
        let (id, hold) = (id_of(&plan), taken(desk, "worker", &plan));
        let parts = { let (id, hold) = (id.clone(), hold.clone()); desk.act(move |cx| Ok(plan::executing(cx, &hold, &id)?.unwrap().parts)).unwrap() };
        desk.tamper("update plan_part set body = replace(body, 'txt/a1.txt', 'txt/evil')");
        let refused = desk.act(move |cx| plan::begin_part(cx, &hold, &id, parts[0].0, &parts[0].1).map(drop)).unwrap_err();
        assert_code(&refused, Code::Conflict);
    }

    fn a_root_that_moved_is_not_what_was_approved(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &agent, 2);
        approve(desk, &owner, &plan);
        apply(desk, &owner, &ROOTS.replace("path: /srv/notes,", "path: /srv/elsewhere,"));
        assert_code(&desk.refused(&agent, "workspace_execute_plan", json!({ "plan_id": plan["plan_id"] })), Code::Conflict);
    }

    fn an_agent_decides_nothing_about_its_plan_and_reports_nothing(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &agent, 2);
        assert_code(&desk.refused(&agent, "desk_request_approve", json!({ "request": plan["request_id"] })), Code::Forbidden);
        let edits = json!({ "request": plan["request_id"], "edits": { "plan": "x" } });
        assert_code(&desk.refused(&owner, "desk_request_approve", edits), Code::Invalid);
        approve(desk, &owner, &plan);
        assert_code(&desk.refused(&agent, "cowork_begin", json!({ "proposal_id": plan["request_id"] })), Code::Conflict);
        desk.call(&agent, "cowork_log", json!({ "domain": "files.notes", "action": "did it", "actor": "agent", "confidence": 1.0, "reasoning": "", "proposal_id": plan["request_id"] })).unwrap();
        assert_eq!(get(desk, &agent, &plan)["decision"], "approved", "the desk does it, and the desk says what came of it");
        let other = desk.register(&owner, "other");
        for operation in ["workspace_get_plan", "workspace_execute_plan", "workspace_undo_plan", "workspace_wait_for_plan"] {
            assert_code(&desk.refused(&other, operation, json!({ "plan_id": plan["plan_id"] })), Code::NotFound);
        }
        assert_eq!(desk.call(&other, "workspace_list_plans", json!({})).unwrap()["plans"], json!([]));
        assert_eq!(desk.call(&agent, "workspace_list_plans", json!({})).unwrap()["plans"].as_array().unwrap().len(), 1);
    }

    fn a_pause_holds_a_plan_between_its_parts(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &agent, 3);
        approve(desk, &owner, &plan);
        execute(desk, &agent, &plan);
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        let (id, hold) = (id_of(&plan), taken(desk, "worker", &plan));
        let paused = desk.act(move |cx| {
            let parts = plan::executing(cx, &hold, &id)?.unwrap().parts;
            Ok(matches!(plan::begin_part(cx, &hold, &id, parts[0].0, &parts[0].1)?, NextPart::Paused))
        });
        assert!(paused.unwrap());
        assert_code(&desk.refused(&agent, "workspace_soft_delete", json!({ "path": "notes/a" })), Code::Forbidden);
    }

    fn what_cannot_be_planned_is_refused_at_once(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let steps = |steps: Value| json!({ "root": "notes", "steps": steps });
        for bad in [
            steps(json!([])),
            steps(json!([{ "action": "move", "from": "a" }])),
            steps(json!([{ "action": "move", "from": "../a", "to": "b" }])),
            steps(json!([{ "action": "trash", "from": "." }])),
            steps(json!([{ "action": "write", "to": "a" }])),
            steps(json!([{ "action": "write", "to": "a", "text": "x", "from": "b" }])),
            steps(json!([{ "action": "replace", "to": "a", "text": "x", "edits": [{ "old": "a", "new": "b" }] }])),
            steps(json!([{ "action": "purge", "from": "a" }])),
            steps(json!([{ "action": "move", "from": "a", "to": "b", "text": "x" }])),
        ] {
            assert_code(&desk.refused(&agent, "workspace_change_plan", bad), Code::Invalid);
        }
        let moves: Vec<Value> = (0..1_001).map(|number| json!({ "from": format!("a{number}"), "to": format!("b{number}") })).collect();
        let refused = desk.refused(&agent, "workspace_organize_plan", json!({ "root": "notes", "moves": moves }));
        assert_eq!((refused.code, refused.field.as_deref()), (Code::Invalid, Some("moves")), "{refused:?}");
        assert_code(&desk.refused(&agent, "workspace_soft_delete", json!({ "path": "manuals/a" })), Code::Forbidden);
        assert_code(&desk.refused(&agent, "workspace_soft_delete", json!({ "path": "notes" })), Code::Invalid);
        assert_code(&desk.refused(&agent, "workspace_restore", json!({ "root": "notes", "trash_id": "a/b" })), Code::Invalid);
        assert_code(&desk.refused(&agent, "workspace_purge_trash", json!({ "root": "notes", "trash_ids": ["a"] })), Code::Forbidden);
        assert_code(&desk.refused(&agent, "workspace_organize_plan", json!({ "root": "notes", "policy": "by_mood" })), Code::Invalid);
        let asked = desk.call(&owner, "workspace_purge_trash", json!({ "root": "notes", "trash_ids": ["a"] })).unwrap();
        assert_eq!(asked["kind"], "purge");
    }

    fn statements_of_plans_go_through_their_index(desk: &TestDesk) {
        let (_, agent) = people(desk);
        for _ in 0..8 {
            ready(desk, &agent, 1);
        }
        let plans: deskmate_db::Result<Vec<String>> = desk.desk.db.write_blocking(|tx| {
            let params = [deskmate_db::Param::Int(i64::MAX), deskmate_db::Param::Text("x"), deskmate_db::Param::Int(20), deskmate_db::Param::Text("agent"), deskmate_db::Param::Text("code")];
            let by_age = [deskmate_db::Param::Int(i64::MAX), deskmate_db::Param::Int(20)];
            let given = |sql: &str| if sql.contains("$5") { &params[..] } else if sql.contains("$3") { &params[..3] } else { &by_age[..] };
            plan::INDEXED.iter().map(|(sql, _)| testkit::plan(tx, sql, given(sql))).collect()
        });
        for ((sql, index), plan) in plan::INDEXED.iter().zip(plans.unwrap()) {
            assert!(plan.contains(index), "{sql}\n{plan}");
        }
    }
}
