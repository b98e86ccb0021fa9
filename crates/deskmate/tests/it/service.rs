//! Servers in the background, and services.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::desk::{Desk, is_root};
use crate::running::{Place, names, text, until};

fn holder(place: &Place) -> Value {
    serde_json::from_slice(&std::fs::read(place.home().join("desk.lock")).unwrap()).unwrap()
}

/// Makes the running server look like one of an older version.
fn age(place: &Place) {
    // It writes down where it listens last of all; before that, it would write over this.
    let read = || serde_json::from_slice::<Value>(&std::fs::read(place.home().join("desk.lock")).ok()?).ok();
    until("the server has said where it listens", || read().is_some_and(|holder| holder["url"].is_string()));
    let mut holder = holder(place);
    holder["version"] = "0.0.1".into();
    std::fs::write(place.home().join("desk.lock"), holder.to_string()).unwrap();
}

#[test]
fn a_server_in_the_background_ends_when_nobody_needs_it() {
    let place = Place::new();
    let home = place.home();
    let mut running = place.start(&home, &["--background", "--linger", "1s"]);
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(1_500) {
        place.json(&home, &["status"]);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(!running.has_ended(), "requests keep it up");
    until("it ends by itself", || running.has_ended());
    assert!(!home.join("http.sock").exists());
    let log = std::fs::read_to_string(home.join("server.log")).unwrap();
    assert!(log.contains("nobody needs this server"), "{log}");
}

#[test]
fn an_open_stream_keeps_it_up() {
    use std::io::{Read, Write};
    let place = Place::new();
    let mut running = place.start(&place.home(), &["--background", "--linger", "1s"]);
    let mut stream = std::os::unix::net::UnixStream::connect(place.home().join("http.sock")).unwrap();
    stream.write_all(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\nX-Deskmate-Agent: code\r\n\r\n").unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    std::thread::sleep(Duration::from_millis(2_500));
    assert!(!running.has_ended());
    drop(stream);
    until("it ends after the stream", || running.has_ended());
}

#[test]
fn a_connected_agent_keeps_it_up() {
    let place = Place::new();
    let mut running = place.start(&place.home(), &["--background", "--linger", "1s"]);
    let mut shim = place.command(&place.home(), &["mcp", "--agent", "code"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(2_500));
    assert!(!running.has_ended());
    drop(shim.stdin.take());
    shim.wait().unwrap();
    until("it ends after the agent left", || running.has_ended());
}

#[test]
fn many_agents_at_once_get_one_server() {
    let place = Place::new();
    let shims: Vec<_> =
        (0..6).map(|_| place.command(&place.home(), &["mcp", "--agent", "code"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()).collect();
    until("a server answers", || std::os::unix::net::UnixStream::connect(place.home().join("http.sock")).is_ok());
    let status = place.json(&place.home(), &["status"]);
    assert_eq!((&status["background"], &status["set_up"]), (&true.into(), &"shared user".into()), "{status}");
    for mut shim in shims {
        drop(shim.stdin.take());
        assert!(shim.wait().unwrap().success());
    }
    let log = std::fs::read_to_string(place.home().join("server.log")).unwrap();
    assert_eq!(log.lines().filter(|line| line.contains("listening")).count(), 1, "{log}");
    assert!(!log.contains("held by another"), "{log}");
    assert_eq!(place.json(&place.home(), &["stop"])["stopped"], true);
}

#[test]
fn a_large_log_is_put_aside() {
    let place = Place::new();
    let home = place.home();
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("server.log"), vec![b'x'; (10 << 20) + 1]).unwrap();
    place.start(&home, &["--background", "--linger", "off"]).stop();
    assert!(std::fs::metadata(home.join("server.log.1")).unwrap().len() > 10 << 20);
    let log = std::fs::read_to_string(home.join("server.log")).unwrap();
    assert!(log.starts_with("20") && log.contains("listening"), "{log}");
    assert_eq!(text(&place.run(&home, &["service", "logs", "--lines", "1"])).lines().count(), 1);
}

#[test]
fn a_refusal_is_logged_with_its_caller() {
    let place = Place::new();
    let home = place.home();
    let running = place.start(&home, &["--background", "--linger", "off"]);
    assert_eq!(place.run(&home, &["call", "desk_policy_apply", "--agent", "code", "document=x"]).status.code(), Some(3));
    let log = std::fs::read_to_string(home.join("server.log")).unwrap();
    let refused = log.lines().find(|line| line.contains("refused")).unwrap_or_else(|| panic!("{log}"));
    assert!(refused.contains("caller=\"name-code\"") && refused.contains("desk_policy_apply"), "{refused}");
    running.stop();
}

#[test]
fn a_newer_program_replaces_a_server_in_the_background() {
    let place = Place::new();
    let home = place.home();
    let mut running = place.start(&home, &["--background"]);
    let before = running.pid();
    place.json(&home, &["call", "desk_status"]);
    assert_eq!(holder(&place)["pid"], before);
    age(&place);
    place.json(&home, &["call", "desk_status"]);
    until("the old one has ended", || running.has_ended());
    let after = holder(&place);
    assert_ne!(after["pid"], before);
    assert_eq!((after["version"].as_str(), after["background"].as_bool()), (Some(env!("CARGO_PKG_VERSION")), Some(true)));
    let session = std::fs::read_to_string(format!("/proc/{}/stat", after["pid"])).unwrap();
    let session = session.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap().to_owned();
    assert_eq!(session, after["pid"].to_string(), "it leads a session of its own");

    // One that cannot start says why.
    age(&place);
    std::fs::write(home.join("deskmate.yaml"), "listen_on: x\n").unwrap();
    let failed = place.run(&home, &["call", "desk_status"]);
    assert!(text(&failed).contains("listen_on"), "{}", text(&failed));
    assert_eq!(place.json(&home, &["status"])["running"], false);
}

#[test]
fn nobody_replaces_a_server_in_the_foreground_or_a_service() {
    let place = Place::new();
    let home = place.home();
    for words in [&[][..], &["--background", "--linger", "off"]] {
        let mut running = place.start(&home, words);
        age(&place);
        let answered = place.run(&home, &["call", "desk_status"]);
        assert!(answered.status.success());
        assert!(String::from_utf8_lossy(&answered.stderr).contains("version 0.0.1"), "{}", text(&answered));
        assert!(!running.has_ended());
        running.stop();
    }
}

#[test]
fn status_names_the_set_up() {
    let place = Place::new();
    let home = place.home();
    let running = place.start(&home, &["--background", "--linger", "off", "--separate-user"]);
    let status = place.json(&home, &["status"]);
    assert_eq!(status["set_up"], "separate user", "{status}");
    assert_eq!((&status["policy_mode"], &status["engine"], &status["background"]), (&"strict".into(), &"sqlite".into(), &true.into()));
    assert!(status["uptime_seconds"].is_u64());
    running.stop();
    std::fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o750)).unwrap();
    let running = place.start(&home, &["--separate-user"]);
    let status = place.json(&home, &["status"]);
    assert_eq!((&status["set_up"], &status["background"]), (&"shared user".into(), &false.into()), "a directory that others can enter");
    running.stop();
}

/// A `systemctl` that writes down what it is asked.
fn fake_systemctl(place: &Place) -> std::ffi::OsString {
    let bin = place.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = format!("#!/bin/sh\necho \"$*\" >> {}\n", place.path("asked").display());
    std::fs::write(bin.join("systemctl"), script).unwrap();
    std::fs::set_permissions(bin.join("systemctl"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut path = bin.into_os_string();
    path.push(":/usr/bin:/bin");
    path
}

#[test]
fn a_service_is_installed_once_and_its_data_outlives_it() {
    let place = Place::new();
    let home = place.home();
    place.filled(&home, &[]);
    let path = fake_systemctl(&place);
    let run = |words: &[&str]| place.command(&home, words).env("PATH", &path).output().unwrap();
    let asked = || std::fs::read_to_string(place.path("asked")).unwrap_or_default();
    let unit = place.path(".config/systemd/user/deskmate.service");

    let shown = run(&["service", "install", "--dry-run"]);
    assert!(text(&shown).contains("systemctl --user enable --now deskmate.service"), "{}", text(&shown));
    assert!(!unit.exists() && asked().is_empty());

    assert!(run(&["service", "install"]).status.success());
    let first = std::fs::read_to_string(&unit).unwrap();
    assert!(first.contains(&format!("up --background --linger off --home {}\n", home.display())), "{first}");
    assert!(asked().ends_with("--user daemon-reload\n--user enable --now deskmate.service\n"), "{}", asked());
    assert!(run(&["service", "install"]).status.success());
    assert_eq!(std::fs::read_to_string(&unit).unwrap(), first);
    assert!(!asked().contains("restart"));
    std::fs::write(&unit, "old").unwrap();
    assert!(run(&["service", "install"]).status.success());
    assert!(asked().ends_with("--user restart deskmate.service\n"));

    // A server that runs on after an upgrade makes way for this program, and only then.
    let server = place.start(&home, &["--background", "--linger", "off"]);
    let restarts = || asked().lines().filter(|line| line.contains("restart")).count();
    assert!(run(&["service", "install"]).status.success());
    assert_eq!(restarts(), 1, "{}", asked());
    age(&place);
    let status: Value = serde_json::from_slice(&run(&["service", "status", "--json"]).stdout).unwrap();
    assert_eq!((&status["running_version"], &status["version"]), (&"0.0.1".into(), &env!("CARGO_PKG_VERSION").into()), "{status}");
    let renewed = run(&["service", "install"]);
    assert_eq!(restarts(), 2, "{}", asked());
    assert!(text(&renewed).contains("version 0.0.1 was replaced"), "{}", text(&renewed));
    server.stop();

    let status: Value = serde_json::from_slice(&run(&["service", "status", "--json"]).stdout).unwrap();
    assert_eq!((&status["installed"], &status["up_to_date"]), (&true.into(), &true.into()), "{status}");
    let gone = run(&["service", "uninstall"]);
    assert!(text(&gone).contains("data stays"), "{}", text(&gone));
    assert!(!unit.exists() && home.join("desk.db").exists());
    assert!(run(&["service", "uninstall"]).status.success());
}

#[test]
fn without_a_manager_the_unit_is_written_and_the_rest_is_said() {
    let place = Place::new();
    std::fs::create_dir(place.path("empty")).unwrap();
    let output = place.command(&place.home(), &["service", "install"]).env("PATH", place.path("empty")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("systemd does not answer here"), "{}", text(&output));
    assert!(text(&output).contains("  systemctl --user enable --now deskmate.service"));
    assert!(place.path(".config/systemd/user/deskmate.service").is_file());
}

#[test]
fn the_units_are_what_systemd_understands() {
    let place = Place::new();
    let folder = place.path("100% \"mine\"");
    std::fs::create_dir(&folder).unwrap();
    let separate = ["service", "install", "--dry-run", "--user", "deskmate"];
    let rooted = [&separate[..], &["--root", folder.to_str().unwrap()]].concat();
    for words in [&["service", "install", "--dry-run"][..], &separate, &rooted] {
        let shown = place.json(&place.home(), words);
        let unit = place.path("deskmate.service");
        // The account exists only where the service was installed; systemd would complain about nothing else.
        let content = shown["content"].as_str().unwrap().replace("User=deskmate\nGroup=deskmate\n", "");
        std::fs::write(&unit, content).unwrap();
        let Ok(checked) = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output() else {
            testkit::skipped("there is no systemd-analyze, so systemd was not asked about the units");
            break;
        };
        let said = text(&checked);
        assert!(!said.contains("deskmate.service"), "{said}");
    }
    assert!(names(&place.path(".config")).is_empty());
    assert_eq!(place.run(&place.home(), &["service", "install", "--dry-run", "--root", "/srv"]).status.code(), Some(2), "your own account needs none");
    let nowhere = place.run(&place.home(), &[&separate[..], &["--root", "/no/such/folder"]].concat());
    assert!(!nowhere.status.success() && text(&nowhere).contains("/no/such/folder"), "{}", text(&nowhere));
}

#[test]
fn an_account_of_its_own_is_said_how_to_reach() {
    let place = Place::new();
    let shown = text(&place.run(&place.home(), &["service", "install", "--dry-run", "--user", "deskmate"]));
    for part in
        ["sudo -u deskmate ", " claim --home /var/lib/deskmate", " agent add code --home /var/lib/deskmate", "connect claude-code --url http://127.0.0.1:7373"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!text(&place.run(&place.home(), &["service", "install", "--dry-run"])).contains("sudo"));
}

/// Reads every file, lists the directory, opens both sockets and leaves a file; says what of it worked.
const TRY_ALL: &str = "
import os, socket, sys
home, worked = sys.argv[1], []
def attempt(what, act):
    try:
        act()
        worked.append(what)
    except PermissionError:
        pass
def connect(name):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(home + '/' + name)
for name in ['desk.db', 'record.key', 'desk.lock', 'server.log']:
    attempt(name, lambda: open(home + '/' + name).close())
for name in ['desk.sock', 'http.sock']:
    attempt(name, lambda: connect(name))
attempt('list', lambda: os.listdir(home))
attempt('write', lambda: open(home + '/left-by-another', 'w').close())
print(' '.join(worked))
";

#[test]
fn another_account_gets_neither_files_nor_sockets() {
    if !is_root() {
        testkit::skipped("only root can act as two other accounts, so the separate user was not tested; run as root");
        return;
    }
    let desk = Desk::ordinary();
    // As `service install --user` leaves it.
    std::fs::set_permissions(desk.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let mut server = desk.command(&["up", "--background", "--linger", "off", "--separate-user"]).stdin(Stdio::null()).spawn().unwrap();
    let url = desk.url();
    let as_account = |id: &str| {
        // The system's own: one of somebody's home is not for other accounts.
        let account = ["--reuid", id, "--regid", id, "--clear-groups", "--", "/usr/bin/python3", "-c", TRY_ALL];
        let done = Command::new("setpriv").args(account).arg(desk.path()).output().unwrap();
        assert!(done.status.success(), "{}", text(&done));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    };
    assert_eq!(as_account("65533"), "", "of another account nothing works");
    assert_eq!(as_account("65534"), "desk.db record.key desk.lock server.log desk.sock http.sock list write", "its own account does all of it");
    let status: Value = crate::http::get(&url, "/healthz", &[]).json();
    assert_eq!(status["set_up"], "separate user");
    // Nobody gets a link to claim it with over the network.
    assert_eq!(crate::http::post(&url, "/api/desk_new_claim_link", &[], "{}").status, 403);
    assert!(desk.run(&["stop"]).status.success());
    server.wait().unwrap();
}
