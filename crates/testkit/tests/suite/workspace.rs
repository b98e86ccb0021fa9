//! Work on files, on both engines: roots, looking, and plans from the asking to the end. Who has hands is played by the
//! tests; what hands really do is tested where they are.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use deskmate_core::Code;
use deskmate_core::call::{Actor, Errand, Fetched, Hands};
use deskmate_core::gateway::taint;
use deskmate_core::job;
use deskmate_core::workspace::plan::{self, Action, NextPart, PLAN_JOB, PlanState, Step, StepOutcome, StepState};
use deskmate_core::workspace::{AuditCheck, AuditNext, FoundEntries, FoundEntry, audit_next};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

const ROOTS: &str = "
workspace:
  roots:
    - { name: notes, path: /srv/notes, access: write, deny: ['**/.env'] }
    - { name: manuals, path: /srv/notes/manuals }
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

fn step(number: usize) -> Step {
    Step {
        action: Action::Move,
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

/// What the job that makes a plan does, with these steps in parts of two.
fn make(desk: &TestDesk, asked: &Value, steps: Vec<Step>) {
    let job = asked["plan_job_id"].as_str().unwrap().to_owned();
    desk.act(move |cx| {
        let claimed = job::claim(cx, "worker", &[PLAN_JOB], 30_000_000, 10)?;
        let claimed = claimed.into_iter().find(|claimed| claimed.job == job).unwrap();
        let making = plan::making(cx, &job)?.unwrap();
        for (number, part) in (0..).zip(steps.chunks(2)) {
            plan::add_part(cx, &making.plan, number, &plan::Part::of(part)?)?;
        }
        plan::made(cx, &making.plan)?;
        job::finish(cx, &job, "worker", claimed.fence, job::Outcome::Done(json!({}))).map(drop)
    })
    .unwrap();
}

/// A plan of an agent that waits for a person.
fn ready(desk: &TestDesk, agent: &Caller, count: usize) -> Value {
    let asked = desk.call(agent, "workspace_organize_plan", json!({ "root": "notes", "reasoning": "tidy" })).unwrap();
    assert_eq!(asked["state"], "planning");
    make(desk, &asked, (0..count).map(step).collect());
    get(desk, agent, &asked)
}

fn get(desk: &TestDesk, caller: &Caller, plan: &Value) -> Value {
    desk.call(caller, "workspace_get_plan", json!({ "plan_id": plan["plan_id"] })).unwrap()
}

fn execute(desk: &TestDesk, caller: &Caller, plan: &Value) -> Value {
    desk.call(caller, "workspace_execute_plan", json!({ "plan_id": plan["plan_id"] })).unwrap()
}

fn approve(desk: &TestDesk, owner: &Caller, plan: &Value) {
    desk.call(owner, "desk_request_approve", json!({ "request": plan["request_id"] })).unwrap();
}

/// What the job that does a plan does, with an outcome for each step.
fn run(desk: &TestDesk, plan: &Value, outcome: impl Fn(usize) -> StepState + Send + 'static) -> PlanState {
    let id = plan["plan_id"].as_str().unwrap().to_owned();
    desk.act(move |cx| {
        let executing = plan::executing(cx, &id)?.unwrap();
        let mut at = 0;
        for (number, digest, _) in &executing.parts {
            let NextPart::Go(steps) = plan::begin_part(cx, &id, *number, digest)? else { panic!("paused") };
            let outcomes: Vec<StepOutcome> = steps.iter().map(|_| (StepOutcome::new(outcome(at), None), at += 1).0).collect();
            plan::end_part(cx, &id, *number, &outcomes)?;
        }
        plan::ended(cx, &id, None)
    })
    .unwrap()
}

fn sound(desk: &TestDesk) {
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
        desk.lend(Puppet { answer: json!(FoundEntries { entries, more: true }), asked: Arc::clone(&asked) });
        let list = |place: &str| desk.call(&agent, "workspace_list_files", json!({ "root": place }));
        let page = list("notes").unwrap();
        assert_eq!((&page["items"][0]["path"], &page["truncated"], &page["next_cursor"]), (&json!("notes/2026/a.md"), &json!(true), &json!("2026/a.md")));
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

    fn a_rule_keeps_agents_from_looking(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        desk.lend(Puppet { answer: json!(FoundEntries::default()), asked: Arc::default() });
        apply(desk, &owner, "rules:\n  - { name: no-manuals, match: { kind: file.read, domain: files.manuals }, effect: deny, message: not for agents }\n");
        let refusal = desk.refused(&agent, "workspace_list_files", json!({ "root": "manuals" }));
        assert_code(&refusal, Code::Forbidden);
        assert!(refusal.message.contains("not for agents"), "{refusal:?}");
        desk.call(&agent, "workspace_list_files", json!({ "root": "notes" })).unwrap();
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        assert_code(&desk.refused(&agent, "workspace_list_files", json!({ "root": "notes" })), Code::Forbidden);
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

    fn the_audit_file_goes_on_behind_its_last_line(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &agent, 3);
        approve(desk, &owner, &plan);
        execute(desk, &agent, &plan);
        run(desk, &plan, |_| StepState::Done);
        desk.seal();
        let next = |last: Option<String>| desk.act(move |cx| audit_next(cx, "notes", last.as_deref())).unwrap();
        let AuditNext::Lines { text: all, late: 0 } = next(None) else { panic!("nothing was written yet") };
        let lines: Vec<&str> = all.lines().collect();
        assert_eq!(lines.len(), 3);
        // Cut anywhere, it goes on with the next line.
        for cut in 0..3 {
            assert_eq!(next(Some(lines[cut].to_owned())), AuditNext::Lines { text: lines[cut + 1..].iter().map(|line| format!("{line}\n")).collect(), late: 0 });
        }
        let forged = lines[2].replacen("\"leaf\":\"", "\"leaf\":\"0", 1);
        for bad in [forged.as_str(), "{}", "not ours", "{\"action\":\"move\",\"from\":\"a\",\"to\":\"b\",\"ts_unix_ms\":1}"] {
            assert_eq!(next(Some(bad.to_owned())), AuditNext::NotOurs, "{bad}");
        }
        assert_eq!(desk.act(|cx| audit_next(cx, "manuals", None)).unwrap(), AuditNext::Lines { text: String::new(), late: 0 }, "each root has its own");
        // A minute after the plan has ended its lines should have been there.
        desk.world.pass(Duration::from_secs(61));
        assert!(matches!(next(Some(lines[0].to_owned())), AuditNext::Lines { late: 2, .. }));
    }

    fn an_audit_file_is_verified_from_its_first_line_to_its_last(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        for _ in 0..2 {
            let plan = ready(desk, &agent, 3);
            approve(desk, &owner, &plan);
            execute(desk, &agent, &plan);
            run(desk, &plan, |_| StepState::Done);
        }
        desk.seal();
        let AuditNext::Lines { text, .. } = desk.act(|cx| audit_next(cx, "notes", None)).unwrap() else { panic!("nothing was written yet") };
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 6);
        // The first bad line, and how many are missing at the end.
        let verify = |lines: Vec<String>| {
            desk.act(move |cx| {
                let mut check = AuditCheck::new("notes");
                if let Some(bad) = check.check(cx, &lines)? {
                    return Ok((Some(bad.line), 0));
                }
                assert_eq!(check.lines(), lines.len() as u64);
                Ok((None, check.missing(cx, 100)?.0))
            })
            .unwrap()
        };
        let with = |change: &dyn Fn(&mut Vec<String>)| {
            let mut lines = lines.clone();
            change(&mut lines);
            verify(lines)
        };
        assert_eq!(verify(lines.clone()), (None, 0));
        assert_eq!(with(&|lines| lines.truncate(4)), (None, 0), "they may still be on their way");
        desk.world.pass(Duration::from_secs(61));
        assert_eq!(with(&|lines| lines.truncate(4)), (None, 2), "cut");
        assert_eq!(with(&Vec::clear), (None, 6), "gone");
        assert_eq!(with(&|lines| lines[2] = lines[2].replace("a2.txt", "b2.txt")), (Some(3), 0), "edited");
        assert_eq!(with(&|lines| lines[3] = lines[3].replacen("\"leaf\":\"", "\"leaf\":\"0", 1)), (Some(4), 0), "another hash");
        assert_eq!(with(&|lines| drop(lines.remove(1))), (Some(2), 0), "one was taken out");
        assert_eq!(with(&|lines| drop(lines.drain(0..3))), (Some(1), 0), "a whole event was taken out");
        assert_eq!(with(&|lines| lines.swap(3, 4)), (Some(4), 0), "two changed places");
        assert_eq!(with(&|lines| lines.insert(5, lines[4].clone())), (Some(6), 0), "one stands there twice");
        assert_eq!(with(&|lines| lines.push(lines[5].clone())), (Some(7), 0), "one too many");
        assert_eq!(with(&|lines| lines.insert(0, String::new())), (Some(1), 0), "no line of ours");
        // Plans go after a while: the lines of theirs that were written stay good by their places and hashes, and need not be there.
        desk.world.pass(Duration::from_secs(3600));
        let now = desk.desk.world.now();
        desk.act(move |cx| plan::prune(cx, now, 10)).unwrap();
        assert_eq!(verify(lines.clone()), (None, 0));
        assert_eq!(with(&Vec::clear), (None, 0));
        assert_eq!(with(&|lines| drop(lines.drain(0..3))), (None, 0));
        assert_eq!(with(&|lines| drop(lines.remove(1))), (Some(2), 0));
        assert_eq!(with(&|lines| lines[3] = lines[3].replacen("\"leaf\":\"", "\"leaf\":\"0", 1)), (Some(4), 0));
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

    fn steps_that_were_changed_behind_the_back_are_not_done(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &agent, 3);
        approve(desk, &owner, &plan);
        desk.tamper("update plan_part set body = replace(body, 'txt/a1.txt', 'txt/evil')");
        assert_code(&desk.refused(&agent, "workspace_execute_plan", json!({ "plan_id": plan["plan_id"] })), Code::Conflict);
        assert_eq!(get(desk, &agent, &plan)["begun"], false);
        desk.tamper("update plan_part set body = replace(body, 'txt/evil', 'txt/a1.txt')");
        execute(desk, &agent, &plan);
        let id = plan["plan_id"].as_str().unwrap().to_owned();
        let parts = { let id = id.clone(); desk.act(move |cx| Ok(plan::executing(cx, &id)?.unwrap().parts)).unwrap() };
        desk.tamper("update plan_part set body = replace(body, 'txt/a1.txt', 'txt/evil')");
        let refused = desk.act(move |cx| plan::begin_part(cx, &id, parts[0].0, &parts[0].1).map(drop)).unwrap_err();
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

    fn only_a_rule_lets_a_plan_pass_without_a_person(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        apply(desk, &owner, "policies:\n  - id: tidy\n    rules: [{ name: tidy, match: { kind: file.change }, effect: allow, waive_trust: true }]\nmappings:\n  - { agent_id: code, domain: files.notes, policy_id: tidy }\n");
        let plan = ready(desk, &agent, 2);
        assert_eq!((&plan["decision"], &plan["state"]), (&json!("approved"), &json!("ready")), "{plan}");
        assert_eq!(execute(desk, &agent, &plan)["state"], "running");
        run(desk, &plan, |_| StepState::Done);
        apply(desk, &owner, "policies:\n  - id: tidy\n    rules: [{ name: tidy, match: { kind: propose }, effect: allow, waive_trust: true }]\n");
        assert_eq!(ready(desk, &agent, 2)["decision"], "pending");
        apply(desk, &owner, "rules:\n  - { name: frozen, match: { kind: file.change }, effect: deny, message: frozen }\n");
        let plan = ready(desk, &agent, 2);
        assert_eq!(plan["state"], "failed");
        assert!(plan["note"].as_str().unwrap().contains("frozen"), "{plan}");
        sound(desk);
    }

    fn a_persons_own_plan_needs_no_other_person(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &owner, 2);
        assert_eq!(plan["decision"], "approved");
        assert_eq!(execute(desk, &owner, &plan)["state"], "running");
        assert_eq!(run(desk, &plan, |_| StepState::Done), PlanState::Done);
        // A person may also begin what an agent planned and a person approved.
        let plan = ready(desk, &agent, 2);
        approve(desk, &owner, &plan);
        assert_eq!(execute(desk, &owner, &plan)["state"], "running");
    }

    fn a_plan_that_a_token_asked_for_waits_for_a_person_who_is_there(desk: &TestDesk) {
        let (owner, _) = people(desk);
        let made = desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": ["workspace", "desk_request_approve"] })).unwrap();
        let token = Caller::Secret(made["token"].as_str().unwrap().to_owned());
        let plan = ready(desk, &token, 2);
        assert_eq!(plan["decision"], "pending", "{plan}");
        assert_eq!(execute(desk, &token, &plan)["begun"], false);
        assert_code(&desk.refused(&token, "desk_request_approve", json!({ "request": plan["request_id"] })), Code::Forbidden);
        let id = desk.call(&owner, "desk_whoami", json!({})).unwrap()["id"].as_str().unwrap().to_owned();
        apply(desk, &owner, &format!("authority: {{ token_deciders: [{id}] }}\n"));
        assert_code(&desk.refused(&token, "desk_request_approve", json!({ "request": plan["request_id"] })), Code::Forbidden);
        // It is their own token, but it was not they who asked: with presence shown they decide it like an agent's.
        approve(desk, &owner, &plan);
        assert_eq!(execute(desk, &token, &plan)["state"], "running");
        assert_eq!(run(desk, &plan, |_| StepState::Done), PlanState::Done);
        sound(desk);
    }

    fn a_second_person_decides_what_a_token_asked_for_where_a_rule_wants_one(desk: &TestDesk) {
        let (owner, _) = people(desk);
        apply(desk, &owner, "rules:\n  - { name: two, match: { kind: file.change }, effect: require_approval, message: two of us }\n");
        let made = desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": ["workspace"] })).unwrap();
        let plan = ready(desk, &Caller::Secret(made["token"].as_str().unwrap().to_owned()), 2);
        assert_eq!(plan["decision"], "pending");
        assert_code(&desk.refused(&owner, "desk_request_approve", json!({ "request": plan["request_id"] })), Code::Forbidden);
    }

    fn a_pause_holds_a_plan_between_its_parts(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &agent, 3);
        approve(desk, &owner, &plan);
        execute(desk, &agent, &plan);
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        let id = plan["plan_id"].as_str().unwrap().to_owned();
        let paused = desk.act(move |cx| {
            let parts = plan::executing(cx, &id)?.unwrap().parts;
            Ok(matches!(plan::begin_part(cx, &id, parts[0].0, &parts[0].1)?, NextPart::Paused))
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
