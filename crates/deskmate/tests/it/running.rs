//! A desk in a temporary directory, driven through the binary.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A directory with everything that a test's commands can touch.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// A command on a data directory, with nothing of the machine's own settings.
    pub(crate) fn command(&self, home: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deskmate"));
        for name in ["DESKMATE_DATABASE_URL", "DESKMATE_TOKEN", "DESKMATE_PERSON", "DESKMATE_LOG", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(name);
        }
        command.env("HOME", self.directory.path()).env("DESKMATE_HOME", home).env("DESKMATE_LISTEN", "127.0.0.1:0").args(words).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, home: &Path, words: &[&str]) -> Output {
        self.command(home, words).output().expect("the command runs")
    }

    /// Runs a command that must succeed and reads its JSON.
    pub(crate) fn json(&self, home: &Path, words: &[&str]) -> Value {
        let output = self.run(home, &[words, &["--json"]].concat());
        assert!(output.status.success(), "{words:?}: {}", text(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Runs a command with a line on its standard input.
    pub(crate) fn with_line(&self, home: &Path, words: &[&str], line: &str) -> Output {
        use std::io::Write;
        let mut child = self.command(home, words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        // A command that refuses before it asks closes its end.
        drop(writeln!(child.stdin.take().expect("a pipe"), "{line}"));
        child.wait_with_output().expect("it ends")
    }

    /// The root of a desk's record, verified.
    pub(crate) fn root(&self, home: &Path) -> String {
        let report = self.json(home, &["audit", "verify"]);
        assert_eq!(report["sound"], true, "{report}");
        report["root"].as_str().expect("a root").to_owned()
    }

    pub(crate) fn start(&self, home: &Path, words: &[&str]) -> Running {
        let child = self.command(home, &[&["up"], words].concat()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let running = Running { child, home: home.to_owned() };
        until("the server answers", || std::os::unix::net::UnixStream::connect(running.home.join("http.sock")).is_ok());
        running
    }

    /// A desk with some events, stopped.
    pub(crate) fn filled(&self, home: &Path, words: &[&str]) {
        let running = self.start(home, words);
        for _ in 0..5 {
            self.json(home, &["call", "desk_new_claim_link"]);
        }
        running.stop();
    }
}

/// A server that ends with the test.
pub(crate) struct Running {
    child: Child,
    home: PathBuf,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("its state").is_some()
    }

    pub(crate) fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it can be told");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(20), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The names in a directory.
pub(crate) fn names(path: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
