//! Servers that offer themselves for runs, as processes: runs are placed on them, and a node that is killed in the middle loses them to
//! another one, which resumes, repeats or reports each as its agent says.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::support::{Desk, deskmate, eventually, up, verify_on, waiting};

/// How long it takes at most until a killed node's runs are another one's: its lease, the sweep, the backoff.
const TAKEN_OVER: Duration = Duration::from_secs(150);

struct People<'d> {
    desk: &'d Desk,
    session: String,
}

impl People<'_> {
    fn call(&self, operation: &str, input: Value) -> Value {
        self.desk.with(&self.session, operation, &input).good()
    }

    /// Makes an agent and deploys it.
    fn deploy(&self, name: &str, definition: Value, placed: Value) -> Value {
        let merged = |mut one: Value, more: Value| {
            one.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            one
        };
        self.call("agents_create_agent", merged(json!({ "name": name, "description": "Works", "policies": [] }), definition));
        let done = self.call("agents_deploy_agent", merged(json!({ "agentId": name }), placed));
        assert_eq!(done["deployed"], true, "{done}");
        done
    }

    fn start(&self, name: &str) -> String {
        self.call("agents_run_agent", json!({ "agentId": name }))["runId"].as_str().expect("a run").to_owned()
    }

    fn run(&self, id: &str) -> Value {
        self.call("agents_get_run", json!({ "runId": id }))
    }

    fn ended(&self, id: &str) -> Value {
        eventually("the run has ended", TAKEN_OVER, || self.run(id)["ended"] == true);
        self.run(id)
    }

    /// A page as the owner sees it.
    fn page(&self, path: &str) -> String {
        let bearer = format!("Bearer {}", self.session);
        let answer = self.desk.http().get(path, &[("authorization", &bearer)]).expect("the server answers");
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.text()
    }

    fn node(&self, name: &str) -> Value {
        let all = self.call("agents_list_nodes", json!({}));
        all["nodes"].as_array().expect("nodes").iter().find(|node| node["name"] == name).cloned().unwrap_or_default()
    }
}

fn tell(to: &str) -> Value {
    json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": to, "content": "all" } }])
}

/// Tells so many things, waits until somebody sends a message to its agent, and tells as many again.
fn waits(to: &str, count: usize) -> Value {
    let lines: Vec<String> = (0..count).map(|number| format!("{number}")).collect();
    json!([
        { "id": "many", "do": "lines", "with": { "text": lines.join("\n") } },
        { "id": "before", "do": "bridge_send_message", "for_each": "{{steps.many.items}}", "with": { "to": to, "content": "before {{item}}" } },
        { "id": "wait", "do": "bridge_wait_for_messages", "with": {} },
        { "id": "after", "do": "bridge_send_message", "for_each": "{{steps.many.items}}", "with": { "to": to, "content": "after {{item}}" } }
    ])
}

fn program() -> Value {
    let code = "import time\nprint('under way', flush=True)\ntime.sleep(15)\nprint('{\"done\": true}')\n";
    json!({ "kind": "command", "command": ["python3", "main.py"], "files": { "main.py": code } })
}

fn contents(desk: &Desk, reader: &str) -> Vec<String> {
    waiting(&mut desk.http(), reader).into_iter().map(|(_, content)| content).collect()
}

#[test]
fn a_node_that_dies_loses_its_runs_to_another_as_each_agent_says() {
    let Some(cluster) = Cluster::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = |name: &str| directory.path().join(name);
    let (one, session) = Desk::owned_on(&home("one"), Some(&cluster.url));
    let people = People { desk: &one, session };
    let cloud = || json!({ "environment": "cloud", "labels": ["gpu"] });
    let steps = |steps: Value, then: &str| json!({ "steps": steps, "ifInterrupted": then });
    let done = people.deploy("resumed", json!({ "steps": waits("resumed-reader", 20) }), cloud());
    assert!(done["message"].as_str().is_some_and(|says| says.contains("Its runs wait for a node with the labels gpu")), "{done}");
    people.deploy("repeated", steps(waits("repeated-reader", 1), "again"), cloud());
    people.deploy("reported", steps(waits("reported-reader", 1), "end"), cloud());
    people.deploy("program", json!({ "runner": program() }), cloud());
    people.deploy("program-again", json!({ "runner": program(), "ifInterrupted": "again" }), cloud());
    people.deploy("elsewhere", json!({ "steps": tell("nobody") }), json!({ "environment": "cloud", "labels": ["gpu", "moon"] }));
    people.deploy("here", json!({ "steps": tell("here-reader") }), json!({}));
    let runs = ["resumed", "repeated", "reported", "program", "program-again"].map(|name| people.start(name));
    let far = people.start("elsewhere");
    // What is local is done by the server that was asked, and what no node is there for says what it waits for.
    assert_eq!(people.ended(&people.start("here"))["state"], "done");
    for run in runs.iter().chain([&far]) {
        let seen = people.run(run);
        assert!(seen["state"] == "queued" && seen["waitsFor"].as_str().is_some_and(|what| what.contains("no node is there now")), "{seen}");
    }
    let mut east = cluster.node(&home("east"), &home("one"), "east", "gpu, eu");
    for run in &runs {
        eventually("it runs on the node", Duration::from_secs(30), || {
            let seen = people.run(run);
            seen["state"] == "running" && seen["node"] == "east"
        });
    }
    let log = |run: &str| people.call("agents_run_log", json!({ "runId": run }))["lines"].to_string();
    for run in &runs[3..] {
        eventually("the program is under way", Duration::from_secs(30), || log(run).contains("under way"));
    }
    for reader in ["resumed-reader", "repeated-reader", "reported-reader"] {
        eventually("its steps are under way", Duration::from_secs(30), || !contents(&one, reader).is_empty());
    }
    shown_as_there(&people, &home("one"));
    east.signal("KILL");
    east.ended();
    for name in ["resumed", "repeated", "reported"] {
        one.http().send("code", name, "go on").expect("the server answers").good();
    }
    let west = cluster.node(&home("west"), &home("one"), "west", "gpu");
    let [resumed, repeated, reported, program, again] = runs.each_ref().map(|run| people.ended(run));
    for seen in [&resumed, &repeated, &again] {
        assert!(seen["state"] == "done" && seen["node"] == "west", "{seen}");
    }
    let told = contents(&one, "resumed-reader");
    let different: BTreeSet<&String> = told.iter().collect();
    assert_eq!((told.len(), different.len()), (40, 40), "each step was done once");
    let mut twice = contents(&one, "repeated-reader");
    twice.sort();
    assert_eq!(twice, ["after 0", "before 0", "before 0"], "it began anew");
    for seen in [&reported, &program] {
        assert!(seen["state"] == "ambiguous" && seen["error"].as_str().is_some_and(|why| why.contains("interrupted")), "{seen}");
    }
    assert_eq!(contents(&one, "reported-reader"), ["before 0"]);
    assert_eq!(again["result"], json!({ "done": true }), "{again}");
    let gone = people.node("east");
    assert!(gone["here"] == false && gone["goneAt"].is_string() && gone["runs"] == 0, "{gone}");
    assert_eq!(people.node("west")["here"], true);
    let waits = people.run(&far);
    assert!(waits["state"] == "queued" && waits["waitsFor"].as_str().is_some_and(|what| what.contains("there are west (gpu)")), "{waits}");
    assert!(people.page("/agents").contains(">gone<"), "the page shows who is gone");
    let page = people.page(&format!("/runs/{far}"));
    assert!(page.contains("It waits for ") && page.contains("a node with the labels gpu, moon"), "{page}");
    assert_eq!(people.call("agents_stop_run", json!({ "runId": far }))["state"], "stopped");
    drop(west);
    verify_on(&home("one"), &cluster.url);
}

/// The operation, the command line and the pages tell of a node.
fn shown_as_there(people: &People<'_>, home: &Path) {
    let node = people.node("east");
    assert_eq!((&node["here"], &node["labels"], &node["runs"]), (&json!(true), &json!(["eu", "gpu"]), &json!(5)), "{node}");
    let status = deskmate(home, &["status", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert!(status["nodes"][0]["name"] == "east" && status["nodes"][0]["here"] == true, "{status}");
    let plain = String::from_utf8_lossy(&deskmate(home, &["status"]).stdout).into_owned();
    assert!(plain.contains("east"), "{plain}");
    let (all, one) = (people.page("/agents"), people.page("/agents/resumed"));
    assert!(all.contains("id=\"node-east\"") && all.contains(">there<"), "{all}");
    assert!(one.contains("On any node that offers itself"), "{one}");
    let public = people.desk.http().get("/api/desk_status", &[]).expect("the server answers").good();
    assert!(public["nodes"].is_null() && public["claimed"] == true, "names of machines are not for everybody: {public}");
}

#[test]
fn a_node_on_sqlite_and_a_node_without_a_name_do_not_start() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("home");
    for (words, says) in [(vec!["--node", "east"], "needs PostgreSQL"), (vec!["--node-labels", "gpu"], "needs a name")] {
        let mut command = up(&home);
        command.args(&words);
        let Err(ended) = Desk::launch(command, &home, &home) else { panic!("{words:?} started") };
        assert!(ended.code == Some(1) && ended.stderr.contains(says) && ended.stderr.contains(words[0]), "{:?}: {}", ended.code, ended.stderr);
    }
}

#[test]
fn two_servers_with_one_name_are_told_and_one_takes_runs() {
    let Some(cluster) = Cluster::start() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = |name: &str| directory.path().join(name);
    let (one, session) = Desk::owned_on(&home("one"), Some(&cluster.url));
    let people = People { desk: &one, session };
    let first = cluster.node(&home("first"), &home("one"), "east", "gpu");
    let _second = cluster.node(&home("second"), &home("one"), "east", "eu");
    let log = || std::fs::read_to_string(home("second").join("server.log")).unwrap_or_default();
    eventually("the second one is told", Duration::from_secs(20), || log().contains("another server has this name"));
    assert_eq!((people.node("east")["labels"].clone(), people.node("east")["here"].clone()), (json!(["gpu"]), json!(true)));
    people.deploy("local", json!({ "steps": tell("reader") }), json!({ "environment": "cloud", "labels": ["eu"] }));
    let run = people.start("local");
    std::thread::sleep(Duration::from_secs(1));
    assert!(people.run(&run)["waitsFor"].is_string(), "who has not the name takes none");
    // The first one ends and says so; the name is free at once.
    let mut first = first;
    first.stop();
    let seen = people.ended(&run);
    assert!(seen["state"] == "done" && seen["node"] == "east", "{seen}");
}
