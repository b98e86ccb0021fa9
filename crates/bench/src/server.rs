//! A server of its own for a measurement, stopped with it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A running server.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub url: String,
}

impl Server {
    /// Starts the binary on a data directory and waits until it listens.
    pub fn start(binary: &Path, home: &Path, database_url: Option<&str>) -> Self {
        let mut command = Command::new(binary);
        command.args(["up", "--background", "--log", "warn", "--listen", "127.0.0.1:0", "--home"]).arg(home).env("HOME", home);
        command.env_remove("DESKMATE_DATABASE_URL").stdin(Stdio::null()).stdout(Stdio::null());
        if let Some(url) = database_url {
            command.env("DESKMATE_DATABASE_URL", url);
        }
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", binary.display()));
        let started = Instant::now();
        loop {
            if let Some(url) = listening(home, child.id()) {
                return Self { child, url };
            }
            if let Ok(Some(status)) = child.try_wait() {
                panic!("the server ended at once: {status}");
            }
            assert!(started.elapsed() < Duration::from_secs(60), "the server does not come up");
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// The processor time that it has used so far, in user and system mode.
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("the server runs");
        // The name of the program stands in brackets and may hold spaces; times follow it, in hundredths of a second.
        let after = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>()).expect("a line of figures");
        let ticks: u64 = after[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Resident memory in kilobytes.
    pub fn rss_kb(&self) -> u64 {
        rss_kb(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let stopped = Command::new("kill").arg(self.child.id().to_string()).status();
        if stopped.is_ok_and(|status| status.success()) {
            drop(self.child.wait());
        } else {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

fn listening(home: &Path, pid: u32) -> Option<String> {
    let holder: Value = serde_json::from_str(&std::fs::read_to_string(home.join("desk.lock")).ok()?).ok()?;
    if holder["pid"].as_u64() != Some(u64::from(pid)) {
        return None;
    }
    holder["url"].as_str().map(str::to_owned)
}

/// Resident memory of a process in kilobytes.
pub fn rss_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The server beside this program, unless another one is named.
pub fn binary(given: Option<&Path>) -> PathBuf {
    let own = std::env::current_exe().expect("this program has a path");
    let path = given.map_or_else(|| own.with_file_name("deskmate"), Path::to_owned);
    assert!(path.is_file(), "{} is missing: build it with `cargo build --release -p deskmate`, or name one with --binary", path.display());
    path
}
