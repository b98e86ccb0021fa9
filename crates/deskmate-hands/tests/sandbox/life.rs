//! Nothing outlives its run, whoever ends it.

use crate::bench::{Bench, alive, text, ways};
use deskmate_hands::sandbox::{Ended, Namespaces};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Starts a daemon in the classical way and says whether it could.
const DAEMON: &str = "import os, sys, time
r, w = os.pipe()
if os.fork() == 0:
  try: os.setsid(); how = b'free'
  except OSError: how = b'held'
  if os.fork() == 0:
    for n in (0, 1, 2): os.close(n)
    os.write(w, how); os.execv('/proc/self/exe' if os.path.exists('/proc/self/exe') else sys.executable, ['python3', '-S', '-c', 'import time; time.sleep(300)', sys.argv[1]])
  os._exit(0)
os.wait(); print(os.read(r, 4).decode()); time.sleep(float(sys.argv[2]))";

fn gone(word: &str) {
    let begun = Instant::now();
    while !alive(word).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?} lives", alive(word));
        sleep(Duration::from_millis(20));
    }
}

fn word(name: &str, way: impl std::fmt::Debug) -> String {
    format!("{name}-{way:?}-{}", std::process::id())
}

#[test]
fn a_daemon_ends_with_the_program() {
    let bench = Bench::new();
    let free = word("outside", "");
    let outside = bench.outside(&format!("import sys; sys.argv = ['', '{free}', '0.3']\n{DAEMON}"));
    assert_eq!(text(&outside.stdout), "free\n", "{}", text(&outside.stderr));
    assert_eq!(alive(&free).len(), 1, "outside a daemon stays");
    let found = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    for id in found.filter(|id| std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| text(&line).contains(&free))) {
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), rustix::process::Signal::KILL).unwrap();
    }
    for way in ways() {
        let mut spec = bench.python(DAEMON);
        spec.args.extend([word("daemon", way).into(), "0.3".into()]);
        // With namespaces it may have a session of its own, which helps it nothing.
        assert_eq!(bench.prints(&spec, way), if way == Namespaces::Required { "free\n" } else { "held\n" });
        assert_eq!(alive(&word("daemon", way)), Vec::<String>::new(), "at the moment the answer is there");
    }
}

#[test]
fn stopping_ends_all_of_it() {
    let bench = Bench::new();
    for way in ways() {
        let mut spec = bench.python(DAEMON);
        spec.args.extend([word("stopped", way).into(), "300".into()]);
        let (mut command, request) = bench.request(&spec, way, b"", Some(1500));
        let outcome = Bench::answer(Bench::start(&mut command, &request)).outcome.unwrap();
        assert_eq!(outcome.ended, Ended::Stopped);
        assert_eq!(text(&outcome.stdout.bytes).len(), 5, "it had begun");
        assert_eq!(alive(&word("stopped", way)), Vec::<String>::new());
        bench.nothing_left();
    }
}

#[test]
fn stopped_before_it_began_it_never_runs_on() {
    let bench = Bench::new();
    for way in ways() {
        let (mut command, request) = bench.request(&bench.python("import time; time.sleep(60)"), way, b"", Some(0));
        let outcome = Bench::answer(Bench::start(&mut command, &request)).outcome.unwrap();
        assert_eq!(outcome.ended, Ended::Stopped);
    }
}

#[test]
fn when_the_desk_is_killed_all_of_it_ends() {
    let bench = Bench::new();
    for way in ways() {
        let word = word("orphan", way);
        let mut spec = bench.python(DAEMON);
        spec.args.extend([word.clone().into(), "300".into()]);
        let (mut command, request) = bench.request(&spec, way, b"", None);
        let mut desk = Bench::start(&mut command, &request);
        let begun = Instant::now();
        // The program, and the daemon that it started.
        while alive(&word).len() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(20), "it never began");
            sleep(Duration::from_millis(20));
        }
        desk.kill().unwrap();
        desk.wait().unwrap();
        gone(&word);
        while std::fs::read_dir(bench.path("scratch")).unwrap().next().is_some() {
            assert!(begun.elapsed() < Duration::from_secs(40), "its private directory stays");
            sleep(Duration::from_millis(20));
        }
    }
}
