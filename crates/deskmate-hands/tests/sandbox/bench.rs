//! What the tests stand on: an ordinary account, a place of its own, programs inside and outside of the sandbox.

use deskmate_hands::sandbox::{Ended, Namespaces, Network, Outcome, Report, Spec, python_spec};
use serde::Deserialize;
use serde_json::json;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The account that has nothing, on every Linux.
const NOBODY: u32 = 65534;

/// The ways to run: with namespaces and without, as far as this machine has them. There must be one.
pub(crate) fn ways() -> impl Iterator<Item = Namespaces> {
    static MISSING: OnceLock<Vec<(Namespaces, Vec<String>)>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let bench = Bench::new();
        let report = bench.respond(&bench.python(""), Namespaces::WhereAvailable).report.unwrap();
        let found = [Namespaces::Required, Namespaces::Never].map(|way| (way, report.missing(way, Network::None)));
        assert!(found.iter().any(|(_, missing)| missing.is_empty()), "nothing can be confined here: {found:?}");
        for (way, missing) in found.iter().filter(|(_, missing)| !missing.is_empty()) {
            testkit::skipped(&format!("programs were not confined with namespaces {way:?}, because this machine lacks: {}", missing.join(", ")));
        }
        found.into()
    });
    missing.iter().filter(|(_, missing)| missing.is_empty()).map(|(way, _)| *way)
}

/// A place with a secret, a directory that may be granted, and one for private directories.
pub(crate) struct Bench {
    place: TempDir,
    probe: PathBuf,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Response {
    pub(crate) outcome: Option<Outcome>,
    pub(crate) error: Option<String>,
    pub(crate) report: Option<Report>,
}

fn root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A command that runs under an ordinary account.
pub(crate) fn ordinary(program: impl AsRef<Path>) -> Command {
    if !root() {
        return Command::new(program.as_ref());
    }
    let mut command = Command::new("setpriv");
    let id = NOBODY.to_string();
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]).arg(program.as_ref());
    command
}

/// Copies a program in a process of its own: while this one has it open for writing, a child that another test starts just
/// then has it too, and nobody can execute it.
pub(crate) fn copy(from: &str, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

impl Bench {
    pub(crate) fn new() -> Self {
        let place = tempfile::Builder::new().prefix("sandbox-test-").tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // The build may lie where an ordinary account cannot look.
        let probe = place.path().join("probe");
        copy(env!("CARGO_BIN_EXE_sandbox-probe"), &probe);
        let bench = Self { place, probe };
        for directory in ["home", "open", "scratch"] {
            fs::create_dir(bench.path(directory)).unwrap();
            Self::give(&bench.path(directory));
        }
        bench.put("home/secret", "the secret");
        bench.put("open/note", "the note");
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Makes it the ordinary account's own.
    pub(crate) fn give(path: &Path) {
        if root() {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        Self::give(&self.path(name));
    }

    /// This code, with `BENCH` as the path of this place.
    fn code(&self, code: &str) -> String {
        format!("BENCH = {:?}\n{code}", self.place.path().to_str().unwrap())
    }

    pub(crate) fn python(&self, code: &str) -> Spec {
        python_spec(&self.code(code)).unwrap()
    }

    /// The same code under the same account without a sandbox.
    pub(crate) fn outside(&self, code: &str) -> Output {
        ordinary("/usr/bin/python3").args(["-I", "-S", "-c", &self.code(code)]).current_dir(self.path("open")).env_clear().output().unwrap()
    }

    /// The command that runs a spec, and what it reads.
    pub(crate) fn request(&self, spec: &Spec, way: Namespaces, input: &[u8], stop_after_ms: Option<u64>) -> (Command, Vec<u8>) {
        let request = json!({ "spec": spec, "input": input, "namespaces": way, "scratch": self.path("scratch"), "stop_after_ms": stop_after_ms });
        let mut command = ordinary(&self.probe);
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        (command, serde_json::to_vec(&request).unwrap())
    }

    /// The probe as root, or as what looks like root from within: in a user namespace whoever made it is. None where an
    /// ordinary account cannot make one.
    pub(crate) fn as_root(&self) -> Option<Command> {
        if root() {
            return Some(Command::new(&self.probe));
        }
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--"]).arg(&self.probe);
        ways().any(|way| way == Namespaces::Required).then_some(command)
    }

    pub(crate) fn start(command: &mut Command, request: &[u8]) -> Child {
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(request).unwrap();
        child
    }

    pub(crate) fn answer(child: Child) -> Response {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "the probe ended with {}", output.status);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn respond(&self, spec: &Spec, way: Namespaces) -> Response {
        let (mut command, request) = self.request(spec, way, b"", None);
        Self::answer(Self::start(&mut command, &request))
    }

    pub(crate) fn run(&self, spec: &Spec, way: Namespaces) -> Outcome {
        let response = self.respond(spec, way);
        self.nothing_left();
        response.outcome.unwrap_or_else(|| panic!("{way:?}: {:?}, on {:?}", response.error, response.report))
    }

    /// This code does what it is after outside (it prints `done`) and cannot inside, in either way.
    pub(crate) fn only_outside(&self, code: &str) {
        let outside = self.outside(code);
        assert_eq!(text(&outside.stdout), "done\n", "outside: {}", text(&outside.stderr));
        self.never_inside(code);
    }

    /// This code cannot do inside what it is after; it fails with an error of the operating system.
    pub(crate) fn never_inside(&self, code: &str) {
        for way in ways() {
            let outcome = self.run(&self.python(code), way);
            assert_eq!(text(&outcome.stdout.bytes), "", "{way:?}: it got through\n{code}");
            assert_eq!(outcome.ended, Ended::Exited { code: 1 }, "{way:?}: {}\n{code}", text(&outcome.stderr.bytes));
            let last = text(&outcome.stderr.bytes).lines().last().unwrap_or_default().to_owned();
            let by_the_system = ["PermissionError", "FileNotFoundError", "OSError", "ProcessLookupError", "BlockingIOError"];
            assert!(by_the_system.iter().any(|name| last.starts_with(name)), "{way:?}: it failed for another reason: {last}\n{code}");
        }
    }

    /// What this spec prints when it ends well.
    pub(crate) fn prints(&self, spec: &Spec, way: Namespaces) -> String {
        let outcome = self.run(spec, way);
        assert_eq!(outcome.ended, Ended::Exited { code: 0 }, "{way:?}: {}", text(&outcome.stderr.bytes));
        text(&outcome.stdout.bytes)
    }

    /// No private directory stays.
    pub(crate) fn nothing_left(&self) {
        let left: Vec<_> = fs::read_dir(self.path("scratch")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.is_empty(), "{left:?} stayed behind");
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The processes whose command line holds this word.
pub(crate) fn alive(word: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        path.file_name()?.to_str()?.parse::<u32>().ok()?;
        let line = text(&fs::read(path.join("cmdline")).ok()?).replace('\0', " ");
        line.contains(word).then_some(line)
    });
    processes.collect()
}
