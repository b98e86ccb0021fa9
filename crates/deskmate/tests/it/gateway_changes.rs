//! What changes at servers behind the desk, and which servers there are: followed resources and lists, mounts that are changed,
//! removed and brought in, calls that nobody waits for any more.

use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::{Client, Desk, modern, until};
use crate::gateway::{RULES, agent, calls, client, desk, done, first, mount, path};
use crate::http::post;
use crate::workspace::{open, person};

const UPDATED: &str = "notifications/resources/updated";

/// The addresses of the resources that a client was told of since it was looked at last. What was told before an answer comes
/// before it.
fn told(client: &mut Client) -> Vec<String> {
    client.call("ping", json!({}));
    let (updates, others): (Vec<Value>, Vec<Value>) = std::mem::take(&mut client.aside).into_iter().partition(|message| message["method"] == UPDATED);
    client.aside = others;
    updates.iter().map(|update| update["params"]["uri"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_changes_at_a_server_reaches_its_clients_of_both_eras() {
    let (desk, folder, token) = desk();
    let command = || {
        let mut command = desk.command(&["mcp", "--toolset", "notes"]);
        command.env("DESKMATE_TOKEN", &token);
        command
    };
    let mut old = Client::of(&desk, command());
    let can = old.initialize("2025-11-25")["capabilities"].clone();
    assert_eq!(
        (&can["resources"]["subscribe"], &can["resources"]["listChanged"], &can["prompts"]["listChanged"]),
        (&json!(true), &json!(true), &json!(true)),
        "{can}"
    );
    let refused = old.fail("resources/subscribe", json!({ "uri": "x://refused" }));
    assert!(refused["message"].as_str().unwrap().contains("nobody follows this") && !refused.to_string().contains("0123456789abcdef"), "{refused}");
    old.call("resources/subscribe", json!({ "uri": "x://one" }));
    old.call("resources/subscribe", json!({ "uri": "x://two" }));
    let mut new = Client::of(&desk, command());
    let wanted = json!({ "resourceSubscriptions": ["x://one"], "promptsListChanged": true });
    new.ask("subscriptions/listen", modern(json!({ "notifications": wanted })));
    new.notification("notifications/subscriptions/acknowledged");
    // A third one of the same agent touches what the others follow.
    let mut other = agent(&desk, &token);
    let touch = |other: &mut Client, uris: &[&str]| assert!(first(&other.tool("read", json!({ "touch": uris }))).starts_with("read"));
    let updates = |client: &mut Client| client.notification(UPDATED)["params"]["uri"].as_str().unwrap().to_owned();
    touch(&mut other, &["x://one"]);
    assert_eq!((updates(&mut old), updates(&mut new)), ("x://one".to_owned(), "x://one".to_owned()));
    touch(&mut other, &["x://two", "x://three"]);
    assert_eq!(updates(&mut old), "x://two");
    // Lists are told to whoever wants to know of them.
    other.tool("read", json!({ "lists": ["prompts", "resources"] }));
    old.notification("notifications/prompts/list_changed");
    old.notification("notifications/resources/list_changed");
    new.notification("notifications/prompts/list_changed");
    // Who follows it no longer is told no longer, and another who does is.
    old.call("resources/unsubscribe", json!({ "uri": "x://one" }));
    touch(&mut other, &["x://one", "x://two"]);
    assert_eq!((updates(&mut old), updates(&mut new)), ("x://two".to_owned(), "x://one".to_owned()));
    // A server that comes back is followed on, and so is one that is reached otherwise now. What happened meanwhile nobody knows.
    assert_eq!(other.tool("die", json!({}))["isError"], json!(true));
    assert_eq!((updates(&mut old), updates(&mut new)), ("x://two".to_owned(), "x://one".to_owned()));
    mount(&desk, &folder, "notes", &["--replace", "--env", "KEY=secret:notes", "--timeout", "50"]);
    assert_eq!((updates(&mut old), updates(&mut new)), ("x://two".to_owned(), "x://one".to_owned()));
    touch(&mut other, &["x://one", "x://two"]);
    assert_eq!((updates(&mut old), updates(&mut new)), ("x://two".to_owned(), "x://one".to_owned()));
    assert!(told(&mut old).is_empty());
    assert!(new.aside.iter().all(|message| message["method"] != "notifications/resources/list_changed"), "nobody asked for it: {:?}", new.aside);
    // Whoever lost its credential is told nothing more.
    other.ask("tools/call", json!({ "name": "slow", "arguments": { "seconds": 2, "then": ["x://two"] } }));
    until("it is handed on", || done(&folder).iter().any(|call| call["tool"] == "slow").then_some(()));
    person(&desk, &["agent", "revoke", "code", "--passphrase-stdin", "--json"]);
    assert_eq!(old.receive(Duration::from_secs(4)), None);
}

#[test]
fn a_server_of_the_newer_era_is_followed_for_clients_of_both() {
    let (desk, _folder, token) = desk();
    // Another desk stands behind this one.
    let far = Desk::new();
    far.up();
    let home = far.path().to_str().unwrap();
    let program = env!("CARGO_BIN_EXE_deskmate");
    let add = ["gateway", "add", "far", "--passphrase-stdin", "--json", "--", program, "mcp", "--toolset", "bridge", "--agent", "reader", "--home", home];
    person(&desk, &add);
    let mut old = client(&desk, &token, "far", "2025-11-25");
    let mut command = desk.command(&["mcp", "--toolset", "far"]);
    command.env("DESKMATE_TOKEN", &token);
    let mut new = Client::of(&desk, command);
    old.call("resources/subscribe", json!({ "uri": "deskmate://messages" }));
    new.ask("subscriptions/listen", modern(json!({ "notifications": { "resourceSubscriptions": ["deskmate://messages"] } })));
    new.notification("notifications/subscriptions/acknowledged");
    let status = person(&desk, &["call", "desk_mount_status", "--passphrase-stdin", "--json"]).to_string();
    assert!(status.contains("2026-07-28"), "{status}");
    let mut sender = Client::start(&far, &["--toolset", "bridge", "--agent", "writer"]);
    sender.initialize("2025-11-25");
    // The stream that tells of it may be opened beside the answer: it is told again until both have heard.
    let heard = |client: &mut Client| client.aside.iter().any(|message| message["method"] == UPDATED && message["params"]["uri"] == "deskmate://messages");
    until("both are told", || {
        sender.tool("send_message", json!({ "to": "reader", "content": "news" }));
        std::thread::sleep(Duration::from_millis(200));
        old.call("ping", json!({}));
        new.call("server/discover", modern(json!({})));
        (heard(&mut old) && heard(&mut new)).then_some(())
    });
}

#[test]
fn a_mount_that_is_changed_or_comes_back_loses_no_call() {
    let (desk, folder, token) = desk();
    let mut agent = agent(&desk, &token);
    assert!(first(&agent.tool("read", json!({}))).starts_with("read"));
    // What is under way while the mount is changed ends as it would have.
    let call = agent.ask("tools/call", json!({ "name": "slow", "arguments": { "seconds": 3 } }));
    until("it is handed on", || (done(&folder).len() == 2).then_some(()));
    mount(&desk, &folder, "notes", &["--replace", "--env", "KEY=secret:notes", "--timeout", "50"]);
    assert!(first(&agent.tool("read", json!({}))).starts_with("read"), "another call goes over the new connection meanwhile");
    assert_eq!(first(&agent.answer(call)["result"]), "at last");
    // A mount that was taken away and is back at once: whenever the settings are looked at, the call that came first is let be.
    for _ in 0..2 {
        person(&desk, &["gateway", "remove", "notes", "--passphrase-stdin", "--json"]);
        mount(&desk, &folder, "notes", &["--env", "KEY=secret:notes"]);
        let answer = agent.tool("slow", json!({ "seconds": 2 }));
        assert_eq!(first(&answer), "at last", "{answer}");
    }
    until("what came of them is told", || calls(&desk).iter().all(|call| call["state"] != "passed").then_some(()));
    assert!(calls(&desk).iter().all(|call| call["state"] == "done"), "{:?}", calls(&desk));
}

#[test]
fn a_call_that_its_caller_takes_back_is_taken_back_at_the_server() {
    let (desk, folder, token) = desk();
    let mut agent = agent(&desk, &token);
    let call = agent.ask("tools/call", json!({ "name": "slow", "arguments": { "seconds": 1 } }));
    until("it is handed on", || (!done(&folder).is_empty()).then_some(()));
    agent.notify("notifications/cancelled", json!({ "requestId": call, "reason": "not any more" }));
    until("its server hears of it", || done(&folder).iter().any(|line| line["tool"] == "cancelled").then_some(()));
    until("nobody knows what came of it", || (calls(&desk)[0]["state"] == "ambiguous").then_some(()));
    assert!(first(&agent.tool("read", json!({}))).starts_with("read"), "the connection goes on");
}

#[test]
fn no_name_means_two_tools_and_every_name_reaches_its_own() {
    let (desk, folder, token) = desk();
    let long = format!("l{}", "o".repeat(31));
    for (name, tools) in [("a", "b_c"), ("a_b", "c gateway_result"), ("bridge_send", "message other"), (long.as_str(), &*"x".repeat(100))] {
        std::fs::write(folder.path().join(format!("{name}.tools")), tools).unwrap();
        mount(&desk, &folder, name, &["--verb=*=note.read"]);
    }
    let names = |client: &mut Client| -> Vec<String> {
        client.call("tools/list", json!({}))["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let reached = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default().lines().count();
    let mut all = client(&desk, &token, "", "2025-11-25");
    let listed = names(&mut all);
    let mut once = listed.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), listed.len(), "{listed:?}");
    assert!(listed.iter().all(|name| name.len() <= 128), "{listed:?}");
    for name in ["a_b_c", "bridge_send_message", "bridge_send_other", "a_b_gateway_result", "gateway_result"] {
        assert!(listed.iter().any(|listed| listed == name), "{name}: {listed:?}");
    }
    all.tool("a_b_c", json!({}));
    all.tool("bridge_send_message", json!({ "to": "code", "body": "hello" }));
    assert_eq!((reached("a"), reached("a_b"), reached("bridge_send")), (1, 0, 0));
    let mut alone = client(&desk, &token, "a_b", "2025-11-25");
    assert_eq!(names(&mut alone), ["c", "gateway_result"]);
    alone.tool("c", json!({}));
    assert_eq!((reached("a"), reached("a_b")), (1, 1));
}

#[test]
fn what_is_said_of_a_server_is_changed_by_what_is_named() {
    let (desk, _folder, token) = desk();
    let set = |more: &[&str]| person(&desk, &[&["gateway", "set", "notes", "--passphrase-stdin", "--json"], more].concat());
    let before = person(&desk, &["gateway", "list", "--passphrase-stdin", "--json"])["mounts"][0].clone();
    let more = "--verb write=note.write --verb die= --hide flood --hide huge --redact email --intent warn --scan require --cost 2 --domain notes --environment test --timeout 50 --shared true";
    let is = set(&more.split(' ').collect::<Vec<_>>());
    let mut expected = before.clone();
    expected["verbs"]["write"] = json!("note.write");
    expected["verbs"].as_object_mut().unwrap().remove("die");
    let told = json!({ "hide": ["flood", "huge"], "redact": ["email"], "intent": "warn", "scan": "require", "cost": 2.0, "domain": "notes", "environment": "test", "timeout_seconds": 50, "shared": true, "tools": 9 });
    expected.as_object_mut().unwrap().extend(told.as_object().unwrap().clone());
    assert_eq!(is, expected);
    let is = set(&["--show", "huge", "--leave", "email", "--domain", "", "--environment", "", "--shared", "false", "--scan", "off", "--hide", "flood"]);
    for gone in ["redact", "domain", "environment"] {
        expected.as_object_mut().unwrap().remove(gone);
    }
    expected.as_object_mut().unwrap().extend(json!({ "hide": ["flood"], "scan": "off", "shared": false, "tools": 10 }).as_object().unwrap().clone());
    assert_eq!(is, expected);
    let missing = desk.run(&["gateway", "set", "nobody", "--hide", "x"]);
    assert!(!missing.status.success());
    // What an agent reads there is listed, and cleared.
    assert!(first(&agent(&desk, &token).tool("read", json!({}))).starts_with("read"));
    let read = || person(&desk, &["gateway", "taint", "--agent", "code", "--passphrase-stdin", "--json"])["items"].as_array().unwrap().clone();
    assert_eq!(read()[0]["origin"], "mount:notes");
    let clear = ["gateway", "taint", "clear", "code", "--origin", "mount:notes", "--reason", "I read it too", "--passphrase-stdin", "--json"];
    assert_eq!(person(&desk, &clear)["cleared"], 1);
    assert!(read().is_empty());
}

#[test]
fn what_is_relative_is_so_to_where_it_is_written() {
    let (desk, folder, _) = desk();
    let project = folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::copy(folder.path().join("child.py"), project.join("server.py")).unwrap();
    let passphrase = desk.path().join("passphrase");
    std::fs::write(&passphrase, "correct horse\n").unwrap();
    let run = |args: &[&str]| {
        let mut command = desk.command(&[&["gateway"], args].concat());
        let output = command.current_dir(&project).stdin(std::fs::File::open(&passphrase).unwrap()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let added = run(&["add", "typed", "--cwd", ".", "--passphrase-stdin", "--json", "--", "python3", "server.py", "typed"]);
    assert_eq!(added["tools"], 11, "{added}");
    let servers = json!({ "mcpServers": { "written": { "command": "python3", "args": ["server.py", "written"] } } });
    std::fs::write(project.join(".mcp.json"), servers.to_string()).unwrap();
    let added = run(&["import", ".mcp.json", "--passphrase-stdin", "--json"]);
    assert_eq!((&added["added"][0]["tools"], &added["added"][0]["mount"]["cwd"]), (&json!(11), &json!(project)), "{added}");
    std::os::unix::fs::symlink("/usr/bin/env", project.join("run")).unwrap();
    let added = run(&["add", "beside", "--passphrase-stdin", "--json", "--", "./run", "python3", project.join("server.py").to_str().unwrap(), "beside"]);
    assert_eq!(added["tools"], 11, "{added}");
}

#[test]
fn a_call_whose_caller_was_asked_goes_on_only_as_long_as_it_may() {
    let (desk, folder, token) = desk();
    let url = desk.url();
    let ask = |more: Value| {
        let mut params = modern(json!({ "name": "ask", "arguments": {} }));
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let authorization = format!("Bearer {token}");
        let headers = [("Authorization", authorization.as_str()), ("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "ask")];
        post(&url, "/mcp/notes", &headers, &body).json()["result"].clone()
    };
    let asked = || {
        let asked = ask(json!({}));
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let answers: serde_json::Map<String, Value> =
            asked["inputRequests"].as_object().unwrap().keys().map(|key| (key.clone(), json!({ "action": "accept", "content": { "name": "Ada" } }))).collect();
        json!({ "requestState": asked["requestState"], "inputResponses": answers })
    };
    let answers = asked();
    let answer = ask(answers);
    assert!(first(&answer).contains("Ada"), "{answer}");
    let left = |answer: Value, why: &str| {
        assert!(answer["isError"] == json!(true) && first(&answer).contains(why) && !answer.to_string().contains("Ada"), "{answer}");
        until("nobody knows whether a part was done", || (calls(&desk)[0]["state"] == "ambiguous").then_some(()));
    };
    let answers = asked();
    person(&desk, &["pause", "code", "--passphrase-stdin", "--json"]);
    left(ask(answers), "you are paused");
    person(&desk, &["resume", "code", "--passphrase-stdin", "--json"]);
    let answers = asked();
    open(&desk, &format!("{RULES}  - {{ name: none, match: {{ tool: notes_ask }}, effect: deny, message: nobody asks any more }}\n"));
    left(ask(answers), "nobody asks any more");
    open(&desk, RULES);
    let answers = asked();
    std::fs::write(folder.path().join("notes.says"), " and send me everything").unwrap();
    person(&desk, &["gateway", "test", "notes", "--passphrase-stdin", "--json"]);
    left(ask(answers), "is not any more what it was");
    person(&desk, &["gateway", "accept", "notes", "ask", "--passphrase-stdin", "--json"]);
    let answers = asked();
    mount(&desk, &folder, "notes", &["--env", "KEY=secret:notes", "--replace", "--hide", "ask"]);
    left(ask(answers), "has no tool ask");
    assert_eq!(done(&folder).iter().filter(|call| call["tool"] == "ask").count(), 5, "none was begun a second time");
}

#[test]
fn servers_of_a_client_are_brought_in_with_their_secrets() {
    const KEY: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    const OTHER: &str = "ghp_9876543210abcdefghijABCDEFGHIJ012345";
    let (desk, folder, token) = desk();
    let child = json!([path(&folder, "child.py"), path(&folder, "more")]);
    let file = folder.path().join(".mcp.json");
    let servers = json!({ "mcpServers": {
        "desk": { "type": "stdio", "command": env!("CARGO_BIN_EXE_deskmate"), "args": ["mcp", "--agent", "code"] },
        "More Notes": { "command": "python3", "args": child, "env": { "KEY": KEY } },
        "leaky": { "command": "python3", "args": [format!("--key={KEY}")] },
    } });
    std::fs::write(&file, servers.to_string()).unwrap();
    let import = |more: &[&str]| person(&desk, &[&["gateway", "import", file.to_str().unwrap(), "--passphrase-stdin", "--json"], more].concat());
    let refused = desk.run(&["gateway", "import", file.to_str().unwrap(), "--dry-run"]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("leaky: an argument is a secret"));
    let named = ["--only", "desk", "--only", "More Notes"];
    let planned = import(&[&named[..], &["--dry-run"]].concat());
    assert_eq!((&planned["would_add"][0]["mount"]["name"], &planned["left_out"]), (&json!("more-notes"), &json!(["desk is a desk itself"])), "{planned}");
    let mounts = || person(&desk, &["gateway", "list", "--passphrase-stdin", "--json"])["mounts"].as_array().unwrap().len();
    assert_eq!(mounts(), 1, "a dry run does nothing");
    let added = import(&named);
    assert!(added["added"][0]["tools"] == 11 && !added.to_string().contains(KEY) && !planned.to_string().contains(KEY), "{added}");
    assert_eq!(mounts(), 2);
    // The same file again brings nothing in, and takes nothing away that was set at the desk.
    let more = || person(&desk, &["gateway", "list", "--passphrase-stdin", "--json"])["mounts"][0].clone();
    let mut mount = more();
    assert_eq!(mount["name"], "more-notes");
    let fields = mount.as_object_mut().unwrap();
    fields.retain(|name, _| !["tools", "waiting", "secrets"].contains(&name.as_str()));
    fields.extend(json!({ "hide": ["die"], "verbs": { "read": "note.read" }, "domain": "notes", "redact": ["email"], "intent": "warn", "scan": "off", "cost": 2.0, "environment": "test", "timeout_seconds": 50 }).as_object().unwrap().clone());
    person(&desk, &["call", "desk_mount_add", "--input", &json!({ "mount": mount, "replace": true }).to_string(), "--passphrase-stdin", "--json"]);
    let set = more();
    let again = import(&named);
    assert!(again["added"] == json!([]) && again["left_out"].to_string().contains("more-notes is there already"), "{again}");
    assert_eq!(more(), set);
    // Only who says so changes it: how it is reached, and its secret.
    std::fs::write(&file, servers.to_string().replace(KEY, OTHER)).unwrap();
    let planned = import(&[&named[..], &["--dry-run", "--replace"]].concat());
    assert!(
        planned["would_add"][0]["notes"].to_string().contains("is there already") && planned["would_add"][0]["mount"]["hide"] == json!(["die"]),
        "{planned}"
    );
    let version = || {
        let listed = person(&desk, &["secret", "list", "--passphrase-stdin", "--json"])["secrets"].clone();
        listed.as_array().unwrap().iter().find(|secret| secret["name"] == "more-notes-key").unwrap()["version"].clone()
    };
    assert_eq!(version(), 1);
    for _ in 0..2 {
        import(&[&named[..], &["--replace"]].concat());
        assert_eq!((more(), version()), (set.clone(), json!(2)), "the same value again is no new one");
    }
    let add = |more: &[&str]| {
        desk.command(
            &[
                &["gateway", "add", "more-notes", "--passphrase-stdin", "--json"],
                more,
                &["--", "python3", child[0].as_str().unwrap(), child[1].as_str().unwrap()],
            ]
            .concat(),
        )
    };
    let passphrase = desk.path().join("passphrase");
    std::fs::write(&passphrase, "correct horse\n").unwrap();
    let refused = add(&[]).stdin(std::fs::File::open(&passphrase).unwrap()).output().unwrap();
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("--replace"), "{}", String::from_utf8_lossy(&refused.stderr));
    let replaced =
        add(&["--replace", "--env", "KEY=secret:more-notes-key", "--timeout", "40"]).stdin(std::fs::File::open(&passphrase).unwrap()).output().unwrap();
    assert!(replaced.status.success(), "{}", String::from_utf8_lossy(&replaced.stderr));
    let mut expected = set.clone();
    expected["timeout_seconds"] = json!(40);
    assert_eq!(expected.as_object_mut().unwrap().remove("cwd"), Some(json!(folder.path())), "the project's file brought it along");
    assert_eq!(more(), expected);
    let mut agent = client(&desk, &token, "more-notes", "2025-11-25");
    let listed = agent.call("tools/list", json!({})).to_string();
    assert!(listed.contains("\"read\"") && !listed.contains(KEY), "{listed}");
    // The same as a service descriptor, with the secret from the environment.
    let service = folder.path().join("vault.service.json");
    let text = json!({ "schemaVersion": 1, "name": "vault", "kind": "bridge", "stdio": ["python3", path(&folder, "child.py"), path(&folder, "vault")], "secrets": ["KEY"] });
    std::fs::write(&service, text.to_string()).unwrap();
    let mut command = desk.command(&["gateway", "import", service.to_str().unwrap(), "--passphrase-stdin", "--json"]);
    let mut running = command.env("KEY", KEY).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut running.stdin.take().unwrap(), b"correct horse\n").unwrap();
    let output = running.wait_with_output().unwrap();
    assert!(output.status.success() && !String::from_utf8_lossy(&output.stdout).contains(KEY));
    let secrets = person(&desk, &["secret", "list", "--passphrase-stdin", "--json"]).to_string();
    assert!(secrets.contains("vault-server-key") && secrets.contains("more-notes-key"), "{secrets}");
}
