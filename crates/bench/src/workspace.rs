//! Work on files: scanning and hashing beside the system's own tools on the same warm tree, and plans of many moves through
//! a running server.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use deskmate_core::call::Credential;
use deskmate_hands::files::{Access, Root, RootSpec, ScanSpec, Watch, scan};
use serde_json::{Value, json};

use crate::fill;
use crate::http::Connection;
use crate::inbox::{call, claim};
use crate::server::{Server, binary};

/// Runs of each, in turns; the median counts.
const TURNS: usize = 5;
const FOLDERS: u64 = 100;

/// How much to do.
#[derive(clap::Args, Clone, Copy)]
pub struct Args {
    /// Files that are scanned, and moved by a plan
    #[arg(long, default_value_t = 100_000)]
    pub files: u64,
    /// Moves that are done
    #[arg(long, default_value_t = 10_000)]
    pub moves: u64,
    /// Files of one megabyte that are hashed
    #[arg(long, default_value_t = 300)]
    pub hashed: u64,
}

/// What was found.
pub struct Found {
    /// Entries a second, ours and that of `find` with what it finds out of each.
    pub scan: (f64, f64),
    /// Megabytes a second, ours on one core and that of `sha256sum`.
    pub hash: (f64, f64),
    /// Seconds to plan, and how many moves that are.
    pub plan: (f64, u64),
    /// Moves a second, and how many were done.
    pub execute: (f64, u64),
    /// Resident memory of the server in kilobytes: before, and the most seen.
    pub memory: (u64, u64),
}

/// Measures it all in a directory that is thrown away.
pub fn run(program: Option<&Path>, args: Args) -> Found {
    let whole = tempfile::tempdir().expect("a temporary directory");
    let many = whole.path().join("many");
    fill_folders(&many, args.files, 20);
    let scan = scanned(&many);
    let large = whole.path().join("large");
    fill_folders(&large, args.hashed, 1_000_000);
    let hash = hashed(&large);
    let few = whole.path().join("few");
    fill_folders(&few, args.moves, 20);
    let (plan, execute, memory) = planned(program, &whole.path().join("desk"), &many, &few);
    Found { scan, hash, plan, execute, memory }
}

fn fill_folders(root: &Path, files: u64, bytes: usize) {
    let text = vec![b'x'; bytes];
    for folder in 0..FOLDERS.min(files) {
        let path = root.join(format!("folder-{folder:03}"));
        std::fs::create_dir_all(&path).expect("a folder");
        for file in (folder..files).step_by(usize::try_from(FOLDERS).expect("a small number")) {
            std::fs::write(path.join(format!("file-{file:07}.{}", ["txt", "pdf", "png", "dat"][(file % 4) as usize])), &text).expect("a file");
        }
    }
}

fn open(path: &Path) -> Root {
    Root::open(&RootSpec { name: "bench".to_owned(), path: path.to_owned(), access: Access::Read, deny: Vec::new(), own: Vec::new() }).expect("a root")
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The times of two ways to do the same, in turns.
fn in_turns(mut ours: impl FnMut(), mut theirs: impl FnMut()) -> (f64, f64) {
    let mut times = (Vec::new(), Vec::new());
    for turn in 0..=TURNS {
        let started = Instant::now();
        ours();
        let between = Instant::now();
        theirs();
        // The first turn warms the caches.
        if turn > 0 {
            times.0.push((between - started).as_secs_f64());
            times.1.push(between.elapsed().as_secs_f64());
        }
    }
    (median(times.0), median(times.1))
}

fn shell(script: &str, at: &Path) {
    let done = Command::new("sh").args(["-c", script]).current_dir(at).stdout(Stdio::null()).status().expect("a shell");
    assert!(done.success(), "{script} failed");
}

fn scanned(path: &Path) -> (f64, f64) {
    let root = open(path);
    let mut entries = 0;
    let ours = || {
        let mut each = |_: deskmate_hands::files::Scanned<'_>| ControlFlow::Continue(());
        entries = scan(&root, &ScanSpec::default(), &Watch { cancel: None, progress: None }, &mut each).expect("it is scanned").entries;
    };
    let (ours, theirs) = in_turns(ours, || shell("find . -printf '%y %s %T@ %i %p\\n'", path));
    (entries as f64 / ours, entries as f64 / theirs)
}

fn hashed(path: &Path) -> (f64, f64) {
    let root = open(path);
    let mut bytes = 0;
    let spec = ScanSpec { digest: true, threads: 1, ..ScanSpec::default() };
    let ours = || {
        bytes = 0;
        let mut each = |found: deskmate_hands::files::Scanned<'_>| {
            bytes += found.identity.sha256.map_or(0, |_| found.identity.size);
            ControlFlow::Continue(())
        };
        scan(&root, &spec, &Watch { cancel: None, progress: None }, &mut each).expect("it is hashed");
    };
    let (ours, theirs) = in_turns(ours, || shell("find . -type f -print0 | xargs -0 sha256sum", path));
    let megabytes = bytes as f64 / 1e6;
    (megabytes / ours, megabytes / theirs)
}

type Planned = ((f64, u64), (f64, u64), (u64, u64));

/// Plans over a large folder, and does one over a smaller one, as their owner, who needs nobody else for them.
fn planned(program: Option<&Path>, home: &Path, many: &Path, few: &Path) -> Planned {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    std::fs::create_dir(home).expect("a directory");
    let desk = fill::open(home);
    let token = runtime.block_on(async {
        let owner = claim(&desk).await;
        for (name, path) in [("many", many), ("few", few)] {
            call(&desk, owner.clone(), "workspace_open_root", json!({ "name": name, "path": path, "access": "write" })).await;
        }
        let Credential::Secret { secret, .. } = owner else { panic!("an owner has a session") };
        secret
    });
    desk.db.close();
    let server = Server::start(&binary(program), home, None);
    runtime.block_on(async {
        let mut connection = Connection::open(&server.url).await.expect("the server answers").with_token(token);
        let before = server.rss_kb();
        let mut most = before;
        let started = Instant::now();
        let plan = settled(&server, &mut connection, "workspace_organize_plan", json!({ "root": "many", "recursive": true }), &mut most).await;
        let planning = (started.elapsed().as_secs_f64(), plan["count"].as_u64().expect("a count"));
        let plan = settled(&server, &mut connection, "workspace_organize_plan", json!({ "root": "few", "recursive": true }), &mut most).await;
        let started = Instant::now();
        let done = settled(&server, &mut connection, "workspace_execute_plan", json!({ "plan_id": plan["plan_id"] }), &mut most).await;
        let moved = done["applied"].as_u64().expect("a count");
        (planning, (moved as f64 / started.elapsed().as_secs_f64(), moved), (before, most))
    })
}

/// Calls what begins something, and waits until that has come to its next stop.
async fn settled(server: &Server, connection: &mut Connection, operation: &str, input: Value, most: &mut u64) -> Value {
    let mut answer = said(connection, operation, &input).await;
    while matches!(answer["state"].as_str(), Some("planning" | "running")) {
        *most = server.rss_kb().max(*most);
        answer = said(connection, "workspace_wait_for_plan", &json!({ "plan_id": answer["plan_id"], "timeout_seconds": 25 })).await;
    }
    *most = server.rss_kb().max(*most);
    answer
}

async fn said(connection: &mut Connection, operation: &str, input: &Value) -> Value {
    let (status, _) = connection.call(operation, "", &input.to_string()).await.expect("the server answers");
    let answer = connection.json();
    assert_eq!(status, 200, "{operation}: {answer}");
    answer
}
