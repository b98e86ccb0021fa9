//! What a program is given, it has.

use crate::bench::{Bench, text, ways};
use deskmate_hands::sandbox::{Captured, Ended, GivenFile, Namespaces, Network, Report, Spec};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

#[test]
fn this_machine_says_what_it_can_enforce() {
    let bench = Bench::new();
    let report = bench.respond(&bench.python(""), Namespaces::WhereAvailable).report.unwrap();
    assert!(report.seccomp && report.landlock > 0 && !report.root, "{report:?}");
    assert_eq!(report.namespaces, report.namespaces_why.is_none(), "{report:?}");
    assert!(ways().next().is_some());
}

#[test]
fn what_a_machine_lacks_is_refused_in_words() {
    let whole = Report { machine: "a test".into(), landlock: 6, seccomp: true, namespaces: true, ..Report::default() };
    let missing = |report: &Report, way| report.missing(way, Network::None).join("; ");
    for way in [Namespaces::Required, Namespaces::Never, Namespaces::WhereAvailable] {
        assert_eq!(missing(&whole, way), "");
        assert!(missing(&Report { seccomp: false, ..whole.clone() }, way).contains("seccomp"));
        assert!(missing(&Report { landlock: 0, ..whole.clone() }, way).contains("Landlock"));
        assert!(missing(&Report { root: true, ..whole.clone() }, way).contains("root"));
        let neither = Report { landlock: 5, namespaces: false, namespaces_why: Some("said no".into()), ..whole.clone() };
        assert!(missing(&neither, way).contains("namespaces"), "{way:?}");
    }
    // An older Landlock is enough where a view of its own helps, and only there.
    let older = Report { landlock: 2, ..whole.clone() };
    assert_eq!(missing(&older, Namespaces::WhereAvailable), "");
    assert!(missing(&older, Namespaces::Never).contains("Landlock version 6"));
    let alone = Report { namespaces: false, namespaces_why: Some("said no".into()), ..whole };
    assert_eq!(missing(&alone, Namespaces::WhereAvailable), "");
    assert!(missing(&alone, Namespaces::Required).contains("said no"));
}

#[test]
fn as_root_nothing_runs() {
    let bench = Bench::new();
    let (_, request) = bench.request(&bench.python("print('ran')"), Namespaces::WhereAvailable, b"", None);
    let Some(mut command) = bench.as_root() else { return };
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let error = Bench::answer(Bench::start(&mut command, &request)).error.unwrap_or_default();
    assert!(error.contains("runs as root"), "{error}");
}

#[test]
fn python_runs_and_says_how_it_ended() {
    let bench = Bench::new();
    for way in ways() {
        let code = "import sys, json, datetime, subprocess, threading, socket, tempfile, asyncio
a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'
t = threading.Thread(target=lambda: print('thread')); t.start(); t.join()
asyncio.run(asyncio.sleep(0))
with tempfile.TemporaryFile() as f: f.write(b'x')
open('made', 'w').write('here'); print(open('made').read(), sys.stdin.read())
print('é', file=sys.stderr); sys.exit(7)";
        let (mut command, request) = bench.request(&bench.python(code), way, b"given", None);
        let outcome = Bench::answer(Bench::start(&mut command, &request)).outcome.unwrap();
        assert_eq!(outcome.ended, Ended::Exited { code: 7 }, "{way:?}: {}", text(&outcome.stderr.bytes));
        assert_eq!(text(&outcome.stdout.bytes), "thread\nhere given\n");
        assert_eq!(text(&outcome.stderr.bytes), "é\n");
        assert!(!outcome.stdout.truncated && outcome.stdout.total == 18);
        assert_eq!(outcome.namespaces, way == Namespaces::Required);
        bench.nothing_left();
    }
}

#[test]
fn an_exit_a_signal_and_a_program_that_does_not_start_are_told_apart() {
    let bench = Bench::new();
    bench.put("open/not-a-program", "\x7fELF nothing");
    fs::set_permissions(bench.path("open/not-a-program"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for way in ways() {
        let outcome = bench.run(&bench.python("import os, signal; os.kill(os.getpid(), signal.SIGTERM)"), way);
        assert_eq!(outcome.ended, Ended::Signalled { signal: 15 });
        let mut spec = Spec::new(bench.path("open/not-a-program"));
        spec.read_only.push(bench.path("open"));
        let outcome = bench.run(&spec, way);
        assert_eq!(outcome.ended, Ended::Exited { code: 126 });
        assert!(text(&outcome.stderr.bytes).starts_with("the program could not be started"), "{}", text(&outcome.stderr.bytes));
    }
}

#[test]
fn granted_paths_are_there_and_a_link_leads_where_it_led() {
    let bench = Bench::new();
    symlink(bench.path("open"), bench.path("link")).unwrap();
    for way in ways() {
        let mut spec = bench.python("import os; print(open(BENCH + '/link/note').read(), os.getcwd() == BENCH + '/open'); open('kept', 'w').write('kept')");
        spec.read_write.push(bench.path("link"));
        spec.directory = Some(bench.path("link"));
        assert_eq!(bench.prints(&spec, way), "the note True\n");
        assert_eq!(fs::read_to_string(bench.path("open/kept")).unwrap(), "kept");
        fs::remove_file(bench.path("open/kept")).unwrap();
    }
}

#[test]
fn the_environment_holds_only_what_was_named() {
    let bench = Bench::new();
    for way in ways() {
        let mut spec = bench.python("import os; print(sorted(os.environ)); print(os.environ['HOME'] == os.environ['TMPDIR'] == os.getcwd())");
        spec.environment.insert("NAMED".into(), "yes".into());
        let (mut command, request) = bench.request(&spec, way, b"", None);
        command.env("DESKMATE_TOKEN", "dma_secret").env("LD_PRELOAD", "");
        let outcome = Bench::answer(Bench::start(&mut command, &request)).outcome.unwrap();
        assert_eq!(text(&outcome.stdout.bytes), "['HOME', 'LANG', 'NAMED', 'TMPDIR']\nTrue\n");
    }
}

#[test]
fn a_spec_that_cannot_be_meant_is_refused() {
    let bench = Bench::new();
    let refused = |spec: &Spec, word: &str| {
        for way in ways() {
            let response = bench.respond(spec, way);
            assert!(response.outcome.is_none());
            assert!(response.error.as_ref().is_some_and(|error| error.contains(word)), "{:?} does not speak of {word}", response.error);
        }
    };
    let spec = || bench.python("print('ran')");
    refused(&Spec { program: "python3".into(), ..spec() }, "absolute");
    refused(&Spec { program: "/usr/bin/env".into(), ..spec() }, "may be read and executed");
    refused(&Spec { read_write: vec!["/".into()], ..spec() }, "root of the file system");
    refused(&Spec { read_write: vec!["/nowhere/at/all".into()], ..spec() }, "/nowhere/at/all");
    refused(&Spec { directory: Some(bench.path("home")), ..spec() }, "granted");
    let mut both = spec();
    both.read_write.push(bench.path("open"));
    both.read_only.push(bench.path("open/note"));
    refused(&both, "read-only within");
    // Also when a link hides it.
    symlink(bench.path("open/note"), bench.path("hidden")).unwrap();
    let mut both = spec();
    both.read_write.push(bench.path("open"));
    both.read_only.push(bench.path("hidden"));
    refused(&both, "read-only within");
    let mut named = spec();
    named.files.push(GivenFile { name: "../main.py".into(), content: Vec::new() });
    refused(&named, "not the name of a file");
    refused(&Spec { files: Vec::new(), ..spec() }, "was given");
}

#[test]
fn output_beyond_its_bound_is_counted_and_dropped() {
    let bench = Bench::new();
    for way in ways() {
        let mut spec = bench.python("import sys\nfor _ in range(3000): print('x' * 999)\nsys.stderr.write('y' * 70000)");
        spec.limits.output = 1000;
        let outcome = bench.run(&spec, way);
        assert_eq!(outcome.ended, Ended::Exited { code: 0 });
        let is = |captured: &Captured, total: u64| captured.truncated && captured.total == total && captured.bytes.len() == 1000;
        assert!(is(&outcome.stdout, 3_000_000), "{} of {}", outcome.stdout.bytes.len(), outcome.stdout.total);
        assert!(is(&outcome.stderr, 70_000), "{} of {}", outcome.stderr.bytes.len(), outcome.stderr.total);
    }
}
