//! Programs of agents through the built binary, under an ordinary account: approved, run once, and confined.

use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desk::{Client, Desk, give, is_root, until};
use crate::http::{get, post};
use crate::workspace::{agent, approve, ask, desk, desk_of, open, person};

/// A desk under an ordinary account, whose root has a folder to read and one to write into.
fn ordinary() -> (Desk, tempfile::TempDir, String) {
    let (desk, folder, token) = desk_of(Desk::ordinary());
    for name in ["in", "out", "guarded"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("in/data.txt"), "41").unwrap();
    std::fs::write(folder.path().join("guarded/x.env"), "secret").unwrap();
    for name in ["", "in", "in/data.txt", "out", "guarded", "guarded/x.env", "sub", "sub/d.txt"] {
        give(&folder.path().join(name));
    }
    (desk, folder, token)
}

fn run(desk: &Desk, client: &mut Client, input: Value) -> Value {
    let plan = ask(client, "execute_python", input);
    assert_eq!((&plan["state"], &plan["decision"]), (&json!("ready"), &json!("pending")), "{plan}");
    approve(desk, &plan);
    ask(client, "execute_plan", json!({ "plan_id": plan["plan_id"] }))
}

/// The processes whose command line holds this word.
fn alive(word: &str) -> usize {
    let lines = std::fs::read_dir("/proc").unwrap().filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

#[test]
fn a_program_runs_once_and_only_after_a_person_saw_it() {
    let (desk, folder, token) = ordinary();
    let mut client = agent(&desk, &token);
    let code = "import os, sys\nw = os.environ['WORKSPACE']\nn = int(open(w + '/in/data.txt').read())\nopen(w + '/out/sum.txt', 'a').write(f'{n + 1}\\n')\nprint('the sum', n + 1, w + '/in')\nprint('oh', file=sys.stderr)";
    let plan = ask(&mut client, "execute_python", json!({ "code": code, "root": "notes", "read": ["in"], "write": ["out"], "reasoning": "to add" }));
    assert_eq!((&plan["state"], &plan["kind"], &plan["decision"]), (&json!("ready"), &json!("python"), &json!("pending")), "{plan}");
    assert!(plan["moves"][0]["irreversible"].is_string(), "{plan}");
    let waits = ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"] }));
    assert_eq!(waits["begun"], false, "{waits}");
    assert!(!folder.path().join("out/sum.txt").exists());
    let request = person(&desk, &["call", "desk_request_get", &format!("request={}", plan["request_id"].as_str().unwrap()), "--passphrase-stdin", "--json"]);
    let program = &request["act"]["arguments"]["program"];
    assert_eq!((&program["code"], &program["read"], &program["write"]), (&json!(code), &json!(["in"]), &json!(["out"])), "{request}");
    assert_eq!((&request["act"]["kind"], &request["risk"]), (&json!("code.run"), &json!("high")));
    let given = json!({ "read": ["notes/in"], "write": ["notes/out"], "timeout_seconds": 30 });
    assert_eq!(plan["moves"][0]["given"], given, "{plan}");
    what_is_given_stands_before_whoever_decides(&desk, plan["request_id"].as_str().unwrap());
    approve(&desk, &plan);
    let done = ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"] }));
    let ran = &done["moves"][0]["ran"];
    assert_eq!(
        (&done["state"], &ran["exit_code"], &ran["stdout"], &ran["stderr"]),
        (&json!("done"), &json!(0), &json!("the sum 42 in\n"), &json!("oh\n")),
        "what it says of where its folder lies stands as everybody knows it: {done}"
    );
    assert_eq!((&ran["written"], &ran["all_listed"]), (&json!(["out/sum.txt"]), &json!(true)), "{ran}");
    ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"] }));
    assert_eq!(std::fs::read_to_string(folder.path().join("out/sum.txt")).unwrap(), "42\n", "once");
    let past = ask(&mut client, "search_past_actions", json!({ "query": "exit_code" }));
    assert_eq!(past["events"][0]["kind"], "plan.steps.ended", "{past}");
    let doctor = desk.run(&["doctor", "--json"]);
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!(doctor["programs"]["can_run"], true, "{doctor}");
}

/// On the terminal, and on the request's page without unfolding anything.
fn what_is_given_stands_before_whoever_decides(desk: &Desk, request: &str) {
    let mut shown = desk.command(&["inbox", "show", request, "--passphrase-stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    shown.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    let shown = String::from_utf8(shown.wait_with_output().unwrap().stdout).unwrap();
    for told in ["may read: notes/in\n", "may read and change: notes/out\n", "may take 30 seconds\n"] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    let url = desk.url();
    let session = post(&url, "/api/desk_sign_in", &[], &json!({ "name": "Ada", "passphrase": "correct horse" }).to_string()).json();
    let cookie = format!("deskmate_session={}", session["session"].as_str().unwrap());
    let page = get(&url, &format!("/requests/{request}"), &[("Cookie", &cookie)]);
    assert_eq!(page.status, 200, "{}", page.body);
    let unfolded: String = page
        .body
        .split("<details")
        .enumerate()
        .map(|(at, part)| if at == 0 { part } else { part.rsplit_once("</details>").map_or("", |(_, rest)| rest) })
        .collect();
    for told in ["notes/in<", "notes/out<", "May take 30 seconds."] {
        assert!(unfolded.contains(told), "{told}: {unfolded}");
    }
}

#[test]
fn a_program_reaches_nothing_that_it_was_not_given() {
    let (desk, folder, token) = ordinary();
    let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    let mut client = agent(&desk, &token);
    let home = desk.path().to_str().unwrap();
    let code = format!(
        "import os, socket
home, root = {home:?}, {root:?}
def unix(kind, path):
    s = socket.socket(socket.AF_UNIX, kind); s.connect(path)
tries = {{
  'the desk': lambda: open(home + '/desk.db', 'rb').read(1),
  'its folder': lambda: os.listdir(home),
  'its key': lambda: open(home + '/record.key').read(),
  'shadow': lambda: open('/etc/shadow').read(),
  'passwd': lambda: open('/etc/passwd').read(),
  'beside': lambda: open(root + '/a.txt').read(),
  'write where it reads': lambda: open(root + '/in/new', 'w'),
  'write beside': lambda: open(root + '/new', 'w'),
  'secret': lambda: os.environ['A_SECRET'],
  'parent': lambda: open(f'/proc/{{os.getppid()}}/environ').read(1),
  'tcp': lambda: socket.create_connection(('127.0.0.1', {tcp}), 2),
  'udp': lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp})),
  'unix': lambda: unix(socket.SOCK_STREAM, home + '/desk.sock'),
  'http': lambda: unix(socket.SOCK_STREAM, home + '/http.sock'),
}}
for name, act in tries.items():
    try: act()
    except (OSError, KeyError): pass
    else: print('reached', name)
print('tried', len(tries))",
        root = folder.path().to_str().unwrap(),
        tcp = tcp.local_addr().unwrap().port(),
        udp = udp.local_addr().unwrap().port()
    );
    let done = run(&desk, &mut client, json!({ "code": code, "root": "notes", "read": ["in"] }));
    assert_eq!(done["moves"][0]["ran"]["stdout"], "tried 14\n", "{done}");
    assert!(tcp.accept().is_err() && udp.recv(&mut [0; 8]).is_err(), "nothing came");
    // Nothing is given that would give more than it says.
    symlink(desk.path(), folder.path().join("link")).unwrap();
    symlink(folder.path().join("in"), folder.path().join("inner")).unwrap();
    for (grant, says) in [("link", "link"), ("inner", "link"), ("a.txt", "not a folder"), ("guarded", "withholds"), ("nowhere", "nowhere")] {
        let plan = ask(&mut client, "execute_python", json!({ "code": "print(1)", "root": "notes", "read": [grant] }));
        assert_eq!(plan["state"], "failed", "{grant}: {plan}");
        assert!(plan["note"].as_str().unwrap().contains(says), "{grant}: {plan}");
        assert!(!plan.to_string().contains(home), "{plan}");
    }
    for wrong in [json!({ "read": ["."] }), json!({ "write": ["in/../../x"] }), json!({ "read": ["in/a"], "write": ["in"] }), json!({ "read": ["/etc"] })] {
        let mut input = wrong.clone();
        input["code"] = json!("print(1)");
        input["root"] = json!("notes");
        let answer = client.tool("execute_python", input);
        let failed = answer["isError"] == true || answer["structuredContent"]["state"] == "failed";
        assert!(failed, "{wrong}: {answer}");
    }
    open(&desk, &format!("workspace: {{ roots: [{{ name: notes, path: {} }}, {{ name: home, path: {home}, access: write }}] }}\n", folder.path().display()));
    std::fs::create_dir(desk.path().join("within")).unwrap();
    let plan = ask(&mut client, "execute_python", json!({ "code": "print(1)", "root": "home", "write": ["within"] }));
    assert!(plan["note"].as_str().is_some_and(|note| note.contains("the desk's own data")), "{plan}");
    let answer = client.tool("execute_python", json!({ "code": "print(1)", "root": "notes", "write": ["out"] }));
    assert!(answer.to_string().contains("for looking only"), "{answer}");
}

#[test]
fn a_program_is_bounded_and_its_children_end_with_it() {
    let (desk, folder, token) = ordinary();
    let mut client = agent(&desk, &token);
    let marker = format!("marker_{}", std::process::id());
    let code = format!(
        "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(120) # {marker}'])\nprint('begun')\ntime.sleep(120)"
    );
    let begun = Instant::now();
    let done = run(&desk, &mut client, json!({ "code": code, "timeout_seconds": 2 }));
    let ran = &done["moves"][0]["ran"];
    assert_eq!(
        (&ran["ended"], &ran["stdout"], &done["failed"], &done["decision"]),
        (&json!("timed_out"), &json!("begun\n"), &json!(1), &json!("failed")),
        "{done}"
    );
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(alive(&marker), 0, "nothing of it is left");
    let code = "import os, time\nopen(os.environ['WORKSPACE'] + '/out/begun', 'w')\ntime.sleep(100)";
    let plan = ask(&mut client, "execute_python", json!({ "code": code, "root": "notes", "write": ["out"], "timeout_seconds": 120 }));
    approve(&desk, &plan);
    let begun = ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"], "timeout_seconds": 0 }));
    until("it runs", || folder.path().join("out/begun").exists().then_some(()));
    person(&desk, &["call", "desk_job_cancel", &format!("job={}", begun["job_id"].as_str().unwrap()), "--passphrase-stdin", "--json"]);
    let done = ask(&mut client, "wait_for_plan", json!({ "plan_id": plan["plan_id"] }));
    assert_eq!((&done["moves"][0]["ran"]["ended"], &done["state"]), (&json!("stopped"), &json!("partly")), "{done}");
    let code = "import sys\nsys.stdout.write('x' * 300000)\nsys.stderr.write('y\\0')\nsys.exit(3)";
    let done = run(&desk, &mut client, json!({ "code": code }));
    let ran = &done["moves"][0]["ran"];
    assert_eq!(
        (&ran["exit_code"], &ran["stdout_truncated"], &ran["stderr_truncated"]),
        (&json!(3), &json!(true), &json!(false)),
        "{}",
        done["moves"][0]["note"]
    );
    assert_eq!(ran["stdout"].as_str().unwrap().len(), 64 * 1024);
    assert_eq!((&done["state"], &done["moves"][0]["outcome"]), (&json!("partly"), &json!("failed")), "an exit code is told, not swallowed");
}

#[test]
fn a_program_whose_desk_is_killed_is_ambiguous_and_does_not_run_again() {
    let (desk, folder, token) = ordinary();
    let mut client = agent(&desk, &token);
    let code = "import os, time\np = os.environ['WORKSPACE'] + '/out/runs'\nopen(p, 'a').write('run\\n')\ntime.sleep(20)\nopen(p, 'a').write('end\\n')";
    let plan = ask(&mut client, "execute_python", json!({ "code": code, "root": "notes", "write": ["out"] }));
    approve(&desk, &plan);
    ask(&mut client, "execute_plan", json!({ "plan_id": plan["plan_id"], "timeout_seconds": 0 }));
    let runs = folder.path().join("out/runs");
    until("it runs", || runs.exists().then_some(()));
    desk.kill_server();
    desk.up();
    let mut client = agent(&desk, &token);
    let deadline = Instant::now() + Duration::from_mins(2);
    let done = loop {
        let found = ask(&mut client, "wait_for_plan", json!({ "plan_id": plan["plan_id"], "timeout_seconds": 10 }));
        if found["state"] != "running" {
            break found;
        }
        assert!(Instant::now() < deadline, "{found}");
    };
    assert_eq!((&done["state"], &done["decision"], &done["unclear"]), (&json!("ambiguous"), &json!("ambiguous"), &json!(1)), "{done}");
    assert_eq!(std::fs::read_to_string(&runs).unwrap(), "run\n", "it ended with its desk, and was not begun again");
}

#[test]
fn where_programs_cannot_be_confined_the_call_is_refused() {
    // An ordinary account can play root only where it may make namespaces; root itself is there to be tried with.
    if !is_root() {
        testkit::skipped("only root can see that programs are not run for it, so that was not tested; run as root");
        return;
    }
    let (desk, _folder, token) = desk();
    let mut client = agent(&desk, &token);
    let refused = client.tool("execute_python", json!({ "code": "print(1)" }));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused.to_string().contains("runs as root") && refused.to_string().contains("deskmate doctor"), "{refused}");
    assert_eq!(ask(&mut client, "list_plans", json!({}))["plans"], json!([]));
    let doctor = String::from_utf8(desk.run(&["doctor"]).stdout).unwrap();
    assert!(doctor.contains("They do not run here") && doctor.contains("runs as root"), "{doctor}");
}
