//! Servers that offer themselves for runs, where runs are done, and what becomes of those whose server is lost.

use std::sync::Arc;
use std::time::Duration;

use deskmate_core::agents::template::{AgentTemplate, Library};
use deskmate_core::agents::{self, Definition, IfInterrupted, RUN_JOB, RunState, Server, node};
use deskmate_core::call::{Call, Credential, Desk, Outcome as Answered, Surface};
use deskmate_core::job::{self, ANYWHERE, Claimed, Hold};
use deskmate_core::{Code, Result};
use deskmate_db::Engine;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both, wait};

const TTL: i64 = 30_000_000;

/// A server of the desk beside the one of the test.
struct Beside<'d> {
    test: &'d TestDesk,
    desk: Desk,
    fence: i64,
}

/// The desk as another server sees it.
fn server(test: &TestDesk, id: &str, name: Option<&str>, labels: &[&str]) -> Desk {
    let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
    Desk { server: Arc::new(Server::new(id, name, &labels).unwrap()), ..test.desk.clone() }
}

fn beat(test: &TestDesk, desk: &Desk, fence: Option<i64>) -> Option<i64> {
    let held = wait(desk.act(Surface::System, move |cx| node::beat(cx, fence))).unwrap();
    test.seal();
    held
}

impl<'d> Beside<'d> {
    fn start(test: &'d TestDesk, name: Option<&str>, labels: &[&str]) -> Self {
        let desk = server(test, &format!("server-{}", name.unwrap_or("nameless")), name, labels);
        let fence = beat(test, &desk, None).expect("nobody has this name");
        Self { test, desk, fence }
    }

    fn beat(&self) {
        assert_eq!(beat(self.test, &self.desk, Some(self.fence)), Some(self.fence));
    }

    fn call(&self, caller: &Caller, operation: &str, input: Value) -> Value {
        let Caller::Secret(secret) = caller else { panic!("a session is needed") };
        let credential = Credential::Secret { secret: secret.clone(), proved: true };
        let answer = wait(self.desk.call(Call { credential, surface: Surface::Rest, operation: operation.to_owned(), input })).unwrap();
        self.test.seal();
        match answer.outcome {
            Answered::Done(value) | Answered::NotYet(value) => value,
        }
    }

    /// The runs that it takes now.
    fn take(&self) -> Vec<Claimed> {
        self.try_take().unwrap()
    }

    fn try_take(&self) -> Result<Vec<Claimed>> {
        let (fence, named) = (self.fence, self.desk.server.name().is_some());
        let taken = wait(self.desk.act(Surface::System, move |cx| {
            let places = node::places(cx)?;
            if named { node::claim_runs(cx, fence, "worker", &places, TTL, 9) } else { job::claim_at(cx, "worker", &[RUN_JOB], &places, TTL, 9) }
        }));
        self.test.seal();
        taken
    }

    /// Begins the run of a job that it took.
    fn begin(&self, job: &Claimed) -> bool {
        let run = job.input["run"].as_str().unwrap().to_owned();
        let begun = wait(self.desk.act(Surface::System, move |cx| Ok(agents::begin(cx, &run)?.is_some()))).unwrap();
        self.test.seal();
        begun
    }
}

fn made(test: &TestDesk, owner: &Caller, name: &str, more: Value) -> String {
    let mut input = json!({ "description": "Says something", "name": name, "steps": [{ "id": "say", "do": "log", "with": { "text": "here" } }] });
    for (field, value) in more.as_object().unwrap() {
        input[field] = value.clone();
    }
    text(&test.call(owner, "agents_create_agent", input).unwrap(), "agentId")
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("{field}: {value}")).to_owned()
}

/// Made, deployed in the cloud, and started; its run.
fn in_the_cloud(test: &TestDesk, owner: &Caller, name: &str, labels: &[&str]) -> String {
    made(test, owner, name, json!({}));
    let done = test.call(owner, "agents_deploy_agent", json!({ "agentId": name, "environment": "cloud", "labels": labels })).unwrap();
    assert_eq!(done["deployed"], true, "{done}");
    text(&test.call(owner, "agents_run_agent", json!({ "agentId": name })).unwrap(), "runId")
}

fn run(test: &TestDesk, owner: &Caller, id: &str) -> Value {
    test.call(owner, "agents_get_run", json!({ "runId": id })).unwrap()
}

fn ids(jobs: &[Claimed]) -> Vec<String> {
    jobs.iter().map(|job| text(&job.input, "run")).collect()
}

fn is_sqlite(test: &TestDesk) -> bool {
    test.desk.db.engine() == Engine::Sqlite
}

fn told(test: &TestDesk, owner: &Caller, kind: &str) -> usize {
    let found = test.call(owner, "desk_record_list", json!({ "kind": kind, "limit": 200 })).unwrap();
    found["events"].as_array().unwrap().len()
}

both! {
    fn the_cloud_needs_postgresql_and_labels_need_the_cloud(desk: &TestDesk) {
        let owner = desk.claim();
        made(desk, &owner, "teller", json!({}));
        let deploy = |more: Value| {
            let mut input = json!({ "agentId": "teller" });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            input
        };
        let refused = desk.refused(&owner, "agents_deploy_agent", deploy(json!({ "labels": ["gpu"] })));
        assert!(refused.code == Code::Invalid && refused.field.as_deref() == Some("labels"), "{refused}");
        assert_code(&desk.refused(&owner, "agents_deploy_agent", deploy(json!({ "environment": "moon" }))), Code::Invalid);
        let cloud = deploy(json!({ "environment": "cloud", "labels": ["gpu", "eu"] }));
        if is_sqlite(desk) {
            let refused = desk.refused(&owner, "agents_deploy_agent", cloud);
            assert!(refused.code == Code::Invalid && refused.field.as_deref() == Some("environment"), "{refused}");
            assert!(refused.hint.as_deref().is_some_and(|hint| hint.contains("local") && hint.contains("deskmate move")), "{refused:?}");
            let nodes = desk.call(&owner, "agents_list_nodes", json!({})).unwrap();
            assert!(text(&nodes, "message").contains("SQLite") && nodes["nodes"] == json!([]), "{nodes}");
            return;
        }
        assert_code(&desk.refused(&owner, "agents_deploy_agent", deploy(json!({ "environment": "cloud", "labels": ["a b"] }))), Code::Invalid);
        let done = desk.call(&owner, "agents_deploy_agent", cloud).unwrap();
        assert!(text(&done, "message").contains("a node with the labels eu, gpu; no node is there now"), "{done}");
        assert_eq!((&done["agent"]["environment"], &done["agent"]["labels"]), (&json!("cloud"), &json!(["eu", "gpu"])));
        let stopped = desk.call(&owner, "agents_stop_agent", json!({ "agentId": "teller" })).unwrap();
        assert!(stopped["environment"].is_null() && stopped["labels"].is_null(), "{stopped}");
    }

    fn a_node_is_there_while_it_gives_signs_of_life(desk: &TestDesk) {
        let owner = desk.claim();
        let east = Beside::start(desk, Some("east"), &["gpu", "eu"]);
        Beside::start(desk, None, &[]);
        let list = || desk.call(&owner, "agents_list_nodes", json!({})).unwrap();
        let found = list();
        assert_eq!(found["nodes"].as_array().unwrap().len(), 1);
        let node = &found["nodes"][0];
        assert_eq!((&node["name"], &node["here"], &node["labels"], &node["runs"]), (&json!("east"), &json!(true), &json!(["eu", "gpu"]), &json!(0)));
        assert_eq!((&found["servers"], told(desk, &owner, "node.here")), (&json!(1), 1));
        assert_eq!(east.call(&owner, "agents_list_nodes", json!({}))["thisNode"], "east");
        desk.world.pass(Duration::from_secs(20));
        east.beat();
        desk.world.pass(Duration::from_secs(20));
        assert_eq!(list()["nodes"][0]["here"], true, "a sign of life counts for half a minute");
        assert!(desk.act(node::is_due).unwrap(), "the one without a name gave none");
        desk.act(node::sweep).unwrap();
        assert_eq!(list()["servers"], 0);
        desk.world.pass(Duration::from_secs(11));
        let gone = list();
        assert_eq!((&gone["nodes"][0]["here"], told(desk, &owner, "node.gone")), (&json!(false), 0), "{gone}");
        desk.act(node::sweep).unwrap();
        desk.act(node::sweep).unwrap();
        assert_eq!(told(desk, &owner, "node.gone"), 1, "it is told once");
        assert!(list()["nodes"][0]["goneAt"].is_string());
        assert_code(&east.try_take().unwrap_err(), Code::Conflict);
        // It comes back as itself.
        let again = beat(desk, &east.desk, Some(east.fence)).unwrap();
        assert!(again > east.fence && list()["nodes"][0]["here"] == true);
        wait(east.desk.act(Surface::System, move |cx| node::leave(cx, again))).unwrap();
        desk.seal();
        assert_eq!((&list()["nodes"][0]["here"], told(desk, &owner, "node.gone")), (&json!(false), 2), "who ends says so");
        desk.world.pass(Duration::from_hours(31 * 24));
        desk.act(node::sweep).unwrap();
        let left: i64 = desk.act(|cx| Ok(cx.tx.one("select count(*) from node", &[])?.get(0)?)).unwrap();
        assert_eq!(left, 0, "who is gone for long is forgotten");
        assert!(!desk.act(node::is_due).unwrap());
    }

    fn a_name_is_one_server_s(desk: &TestDesk) {
        let first = Beside::start(desk, Some("east"), &["gpu"]);
        let second = server(desk, "server-other", Some("east"), &[]);
        assert_eq!(beat(desk, &second, None), None);
        desk.world.pass(Duration::from_secs(31));
        let fence = beat(desk, &second, None).unwrap();
        assert!(fence > first.fence, "whoever was away has lost it");
        assert_eq!(beat(desk, &first.desk, Some(first.fence)), None);
        assert_code(&first.try_take().unwrap_err(), Code::Conflict);
        for (name, labels) in [(None, vec!["gpu".to_owned()]), (Some("e ast"), Vec::new()), (Some("east"), vec!["a,b".to_owned()])] {
            assert!(Server::new("x", name, &labels).is_err(), "{name:?} {labels:?}");
        }
    }

    fn runs_of_the_cloud_are_for_nodes_with_the_labels(desk: &TestDesk) {
        if is_sqlite(desk) { return; }
        let owner = desk.claim();
        let plain = Beside::start(desk, None, &[]);
        let (gpu, any) = (in_the_cloud(desk, &owner, "gpu", &["gpu", "eu"]), in_the_cloud(desk, &owner, "any", &[]));
        let waits = text(&run(desk, &owner, &gpu), "waitsFor");
        assert!(waits.starts_with("a node with the labels eu, gpu; no node is there now") && waits.contains("--node-labels eu,gpu"), "{waits}");
        assert!(text(&run(desk, &owner, &any), "waitsFor").starts_with("a node that offers itself"));
        assert!(plain.take().is_empty(), "who does not offer itself takes none");
        let west = Beside::start(desk, Some("west"), &["gpu"]);
        let waits = text(&run(desk, &owner, &gpu), "waitsFor");
        assert!(waits.contains("there are west (gpu)"), "{waits}");
        assert_eq!(ids(&west.take()), [any.as_str()], "one label is not both");
        let east = Beside::start(desk, Some("east"), &["eu", "gpu", "fast"]);
        assert!(run(desk, &owner, &gpu)["waitsFor"].is_null(), "it waits for its turn only");
        let taken = east.take();
        assert_eq!(ids(&taken), [gpu.as_str()]);
        assert!(east.begin(&taken[0]));
        assert_eq!(run(desk, &owner, &gpu)["node"], "east");
        let nodes = desk.call(&owner, "agents_list_nodes", json!({ "limit": 1 })).unwrap();
        assert_eq!((&nodes["nodes"][0]["name"], &nodes["nodes"][0]["runs"]), (&json!("east"), &json!(1)));
        let next = desk.call(&owner, "agents_list_nodes", json!({ "limit": 1, "cursor": nodes["next_cursor"] })).unwrap();
        assert!(next["nodes"][0]["name"] == "west" && next["next_cursor"].is_null(), "{next}");
    }

    fn a_run_whose_node_is_lost_waits_for_another_and_says_so(desk: &TestDesk) {
        if is_sqlite(desk) { return; }
        let owner = desk.claim();
        let id = in_the_cloud(desk, &owner, "gpu", &["gpu"]);
        let east = Beside::start(desk, Some("east"), &["gpu"]);
        let taken = east.take();
        assert!(east.begin(&taken[0]));
        desk.world.pass(Duration::from_secs(31));
        assert_eq!(desk.act(|cx| job::rescue(cx, 9)).unwrap().len(), 1);
        let seen = run(desk, &owner, &id);
        assert!(seen["state"] == "running" && text(&seen, "waitsFor").contains("the labels gpu"), "{seen}");
        desk.world.pass(Duration::from_secs(10));
        let west = Beside::start(desk, Some("west"), &["gpu"]);
        let taken = west.take();
        assert_eq!(ids(&taken), [id.as_str()]);
        assert!(west.begin(&taken[0]));
        assert_eq!((&run(desk, &owner, &id)["node"], told(desk, &owner, "run.taken_up")), (&json!("west"), 1));
    }

    fn what_is_local_is_done_where_it_was_deployed(desk: &TestDesk) {
        if is_sqlite(desk) { return; }
        let owner = desk.claim();
        let (plain, other) = (Beside::start(desk, None, &[]), server(desk, "server-too", None, &[]));
        let (east, west) = (Beside::start(desk, Some("east"), &[]), Beside::start(desk, Some("west"), &[]));
        for name in ["here", "there"] {
            made(desk, &owner, name, json!({}));
        }
        plain.call(&owner, "agents_deploy_agent", json!({ "agentId": "here" }));
        let done = east.call(&owner, "agents_deploy_agent", json!({ "agentId": "there", "environment": "local" }));
        assert_eq!((&done["agent"]["environment"], &done["agent"]["node"]), (&json!("local"), &json!("east")));
        // Whoever starts it, it runs there.
        let start = |name: &str| text(&west.call(&owner, "agents_run_agent", json!({ "agentId": name })), "runId");
        let (here, there) = (start("here"), start("there"));
        assert!(west.take().is_empty());
        assert_eq!(ids(&east.take()), [there.as_str()]);
        assert_eq!(wait(other.act(Surface::System, node::places)).unwrap(), [ANYWHERE]);
        assert_eq!(ids(&plain.take()), [here.as_str()]);
        // Where no server without a name is left, nodes do what was theirs; what was deployed on a node waits for that one.
        let (here, there) = (start("here"), start("there"));
        desk.world.pass(Duration::from_secs(31));
        let west = Beside::start(desk, Some("north"), &[]);
        assert!(west.take().is_empty(), "it may only be starting again");
        desk.world.pass(Duration::from_millis(29_500));
        assert_eq!(ids(&west.take()), [here.as_str()]);
        let waits = text(&run(desk, &owner, &there), "waitsFor");
        assert!(waits.starts_with("the node east, which is gone since") && waits.contains("deploy it elsewhere"), "{waits}");
    }

    fn what_people_approve_is_also_where_it_runs(desk: &TestDesk) {
        if is_sqlite(desk) { return; }
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        made(desk, &code, "teller", json!({}));
        let asked = desk.call(&code, "agents_deploy_agent", json!({ "agentId": "teller", "environment": "cloud", "labels": ["gpu"], "autoStart": true })).unwrap();
        let request = text(&asked, "requestId");
        let shown = desk.call(&owner, "desk_request_get", json!({ "request": request })).unwrap();
        let arguments = &shown["act"]["arguments"];
        assert_eq!((&arguments["environment"], &arguments["labels"]), (&json!("cloud"), &json!(["gpu"])), "{shown}");
        desk.call(&owner, "desk_request_approve", json!({ "request": request, "expected_digest": shown["digest"] })).unwrap();
        let status = desk.call(&owner, "agents_get_agent_status", json!({ "agentId": "teller" })).unwrap();
        assert_eq!((&status["environment"], &status["labels"]), (&json!("cloud"), &json!(["gpu"])), "{status}");
        assert!(text(&status["runs"][0], "waitsFor").contains("gpu"), "{status}");
        assert_eq!(desk.act(|cx| job::waiting_places(cx, RUN_JOB, 9)).unwrap(), ["cloud:gpu"]);
    }

    fn a_rule_can_say_where_agents_run(desk: &TestDesk) {
        if is_sqlite(desk) { return; }
        let owner = desk.claim();
        let text_of = "rules:\n  - { name: eu_only, match: { kind: [agent.deploy] }, when: \"args.environment == 'cloud' && !('eu' in args.labels)\", effect: deny, message: Only in the EU }\n";
        desk.call(&owner, "desk_policy_apply", json!({ "document": text_of })).unwrap();
        made(desk, &owner, "teller", json!({}));
        let deploy = |labels: Value| desk.call(&owner, "agents_deploy_agent", json!({ "agentId": "teller", "environment": "cloud", "labels": labels })).unwrap();
        let refused = deploy(json!(["gpu"]));
        assert!(refused["deployed"] == false && text(&refused, "message").contains("Only in the EU"), "{refused}");
        assert_eq!(deploy(json!(["eu", "gpu"]))["deployed"], true);
    }

    fn a_run_ends_when_the_queue_gives_it_up(desk: &TestDesk) {
        let owner = desk.claim();
        made(desk, &owner, "teller", json!({}));
        desk.call(&owner, "agents_deploy_agent", json!({ "agentId": "teller" })).unwrap();
        let start = || text(&desk.call(&owner, "agents_run_agent", json!({ "agentId": "teller" })).unwrap(), "runId");
        let job_of = |run: &str| {
            let jobs = desk.call(&owner, "desk_job_list", json!({ "kind": RUN_JOB })).unwrap();
            let found = jobs["jobs"].as_array().unwrap().iter().map(|job| text(job, "job")).find(|job| {
                desk.call(&owner, "desk_job_get", json!({ "job": job })).unwrap()["input"]["run"] == run
            });
            found.unwrap()
        };
        let take = || {
            let taken = desk.act(|cx| job::claim(cx, "worker", &[RUN_JOB], TTL, 1)).unwrap().pop().expect("a run is due");
            let run = text(&taken.input, "run");
            desk.act(move |cx| Ok(agents::begin(cx, &run)?.is_some())).unwrap();
        };
        // Its job is cancelled while it waits.
        let first = start();
        desk.call(&owner, "desk_job_cancel", json!({ "job": job_of(&first) })).unwrap();
        assert_eq!((&run(desk, &owner, &first)["state"], &run(desk, &owner, &first)["ended"]), (&json!("stopped"), &json!(true)));
        // It is stopped between two attempts: nobody is at it who could notice.
        let second = start();
        take();
        desk.world.pass(Duration::from_secs(31));
        desk.act(|cx| job::rescue(cx, 9)).unwrap();
        let stopped = desk.call(&owner, "agents_stop_run", json!({ "runId": second })).unwrap();
        assert_eq!(stopped["state"], "stopped");
        // Its workers are lost as often as it is tried.
        let third = start();
        while desk.call(&owner, "desk_job_get", json!({ "job": job_of(&third) })).unwrap()["state"] == "waiting" {
            desk.world.pass(Duration::from_hours(2));
            take();
            desk.world.pass(Duration::from_secs(31));
            desk.act(|cx| job::rescue(cx, 9)).unwrap();
        }
        let seen = run(desk, &owner, &third);
        assert!(seen["state"] == "failed" && text(&seen, "error").contains("no sign of life"), "{seen}");
        assert_eq!(told(desk, &owner, "run.ended"), 3, "each is told once");
    }

    fn runs_that_nobody_does_keep_no_other_agent_from_beginning(desk: &TestDesk) {
        let owner = desk.claim();
        for name in ["piled", "other"] {
            made(desk, &owner, name, json!({ "schedule": "* * * * * *", "overlap": true }));
            desk.call(&owner, "agents_deploy_agent", json!({ "agentId": name })).unwrap();
        }
        for _ in 0..100 {
            desk.call(&owner, "agents_run_agent", json!({ "agentId": "piled" })).unwrap();
        }
        desk.world.pass(Duration::from_secs(2));
        assert_eq!(desk.act(|cx| agents::start_due(cx, 100)).unwrap(), 2);
        let newest = |name: &str| desk.call(&owner, "agents_list_runs", json!({ "agentId": name, "limit": 1 })).unwrap()["runs"][0]["state"].clone();
        assert_eq!((newest("piled"), newest("other")), (json!("skipped"), json!("queued")));
    }

    fn an_agent_says_what_becomes_of_a_run_that_is_left_in_the_middle(desk: &TestDesk) {
        let owner = desk.claim();
        let command = json!({ "kind": "command", "command": ["true"] });
        let of = |more: Value| -> Result<Definition> {
            let mut input = json!({ "description": "Does something" });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let sketched = desk.call(&owner, "agents_sketch_agent", input)?;
            Ok(serde_json::from_value(sketched["definition"].clone()).unwrap())
        };
        for (more, holds) in [
            (json!({ "steps": [] }), IfInterrupted::Resume),
            (json!({ "steps": [], "ifInterrupted": "again" }), IfInterrupted::Again),
            (json!({ "steps": [], "ifInterrupted": "end" }), IfInterrupted::End),
            (json!({ "runner": command }), IfInterrupted::End),
            (json!({ "runner": command, "ifInterrupted": "again" }), IfInterrupted::Again),
            (json!({ "runner": { "kind": "command", "command": ["true"], "given": { "if_interrupted": "again" } } }), IfInterrupted::Again),
        ] {
            assert_eq!(of(more.clone()).unwrap().when_interrupted(), holds, "{more}");
        }
        assert_code(&of(json!({ "runner": command, "ifInterrupted": "resume" })).unwrap_err(), Code::Invalid);
        // A template says it for all that are made of it, unless one of them says it itself.
        let text_of = "id: greeter\ntitle: Greeter\ndescription: Says hello.\ncategory: custom\ntask: Say hello.\nsteps: [{ id: say, do: log, with: { text: hello } }]\nif_interrupted: end\n";
        let own = AgentTemplate::read(text_of).unwrap();
        let with_own = Beside { desk: Desk { templates: Library::of(vec![("greeter.yaml".to_owned(), own)], Vec::new()), ..desk.desk.clone() }, test: desk, fence: 0 };
        for (more, says) in [(json!({}), "end"), (json!({ "ifInterrupted": "again" }), "again")] {
            let mut input = json!({ "template": "greeter" });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(with_own.call(&owner, "agents_sketch_agent", input)["definition"]["if_interrupted"], says);
        }
        made(desk, &owner, "teller", json!({}));
        let changed = desk.call(&owner, "agents_update_agent", json!({ "agentId": "teller", "ifInterrupted": "end" })).unwrap();
        assert_eq!(changed["definition"]["if_interrupted"], "end");
    }

    fn who_lost_a_run_tells_nothing_of_it(desk: &TestDesk) {
        let owner = desk.claim();
        made(desk, &owner, "teller", json!({}));
        desk.call(&owner, "agents_deploy_agent", json!({ "agentId": "teller" })).unwrap();
        let id = text(&desk.call(&owner, "agents_run_agent", json!({ "agentId": "teller" })).unwrap(), "runId");
        let mine = desk.act(|cx| job::claim(cx, "worker", &[RUN_JOB], TTL, 1)).unwrap().pop().unwrap();
        let begun = id.clone();
        desk.act(move |cx| Ok(agents::begin(cx, &begun)?.is_some())).unwrap();
        desk.world.pass(Duration::from_secs(31));
        let (job, fence, ended) = (mine.job.clone(), mine.fence, id.clone());
        let late = desk.act(move |cx| {
            job::held(cx, &Hold { job: job.clone(), worker: "worker".to_owned(), fence })?;
            agents::end(cx, &ended, RunState::Done, Ok(json!({})), 1)
        });
        assert_code(&late.unwrap_err(), Code::Conflict);
        assert_eq!(run(desk, &owner, &id)["state"], "running");
    }
}
