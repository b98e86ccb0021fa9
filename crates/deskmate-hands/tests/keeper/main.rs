//! Nothing that a keeper started outlives whoever it was started for.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use deskmate_hands::keeper::{Held, Keeper};

    const GRACE: Duration = Duration::from_millis(300);

    fn start(script: &str) -> (Child, Held) {
        let keeper = Keeper::new(GRACE).unwrap().with_executable(env!("CARGO_BIN_EXE_sandbox-probe"));
        let (mut command, lifeline) = keeper.command(OsStr::new("sh"), ["-c", script]).unwrap();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        (child, lifeline.started())
    }

    fn line(child: &mut Child) -> String {
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn alive(pid: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
    }

    fn gone(pids: &str) {
        let begun = Instant::now();
        while pids.split(' ').any(alive) {
            assert!(begun.elapsed() < Duration::from_secs(10), "{pids} live");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn streams_and_the_code_pass_through() {
        let (mut child, _held) = start("read word; echo \"got $word\"; echo bad >&2; exit 7");
        child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
        assert_eq!(line(&mut child), "got hello");
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!((errors.as_str(), child.wait().unwrap().code()), ("bad\n", Some(7)));
        let (mut child, _held) = start("kill -9 $$");
        assert_eq!(child.wait().unwrap().code(), Some(137), "as shells say it");
    }

    #[test]
    fn all_of_it_ends_with_the_lifeline_also_what_refuses_and_what_left() {
        let (mut child, held) = start("trap '' TERM; sleep 300 & inner=$!; setsid sleep 300 & sleep 0.1; echo $$ $inner $!; while :; do sleep 1; done");
        let pids = line(&mut child);
        assert!(pids.split(' ').count() == 3 && pids.split(' ').all(alive), "{pids}");
        let begun = Instant::now();
        drop(held);
        child.wait().unwrap();
        gone(&pids);
        assert!(begun.elapsed() >= GRACE, "it was asked first");
    }

    #[test]
    fn one_that_leaves_by_itself_is_not_hurried() {
        let (mut child, held) = start("read word; echo left > /dev/null; exit 5");
        drop((held, child.stdin.take()));
        assert_eq!(child.wait().unwrap().code(), Some(5));
    }

    #[test]
    fn what_is_left_behind_ends_with_the_program() {
        let (mut child, _held) = start("setsid sleep 300 & echo $!; exit 0");
        let pid = line(&mut child);
        child.wait().unwrap();
        gone(&pid);
    }

    #[test]
    fn the_program_ends_with_its_keeper() {
        let (mut child, _held) = start("echo $$; exec sleep 300");
        let pid = line(&mut child);
        child.kill().unwrap();
        child.wait().unwrap();
        gone(&pid);
    }

    #[test]
    fn a_program_that_is_not_there_is_told() {
        let keeper = Keeper::new(GRACE).unwrap().with_executable(env!("CARGO_BIN_EXE_sandbox-probe"));
        let (mut command, lifeline) = keeper.command(OsStr::new("no-such-program"), [] as [&str; 0]).unwrap();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _held = lifeline.started();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(127));
        assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-program cannot be started"));
    }

    #[test]
    fn nobody_else_starts_it() {
        let output = Command::new(env!("CARGO_BIN_EXE_sandbox-probe")).args(["keep-child", "become", "1", "-", "echo", "x"]).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty());
    }
}
