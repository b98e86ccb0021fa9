//! Measures the scan of a folder against `find`, and its digests against `sha256sum`, on the same warm tree in one run:
//! `cargo run --release -p deskmate-hands --example scan-rate -- DIR [digest]`.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use deskmate_hands::files::{Access, Entries, Fault, How, OrganizeSpec, Organizer, Root, RootSpec, ScanSpec, Summary, Watch, scan};

const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, digest) = match arguments.as_slice() {
        [folder] => (PathBuf::from(folder), false),
        [folder, word] if word == "digest" => (PathBuf::from(folder), true),
        _ => return Err("usage: scan-rate DIR [digest]".into()),
    };
    let folder = folder.canonicalize()?;
    let root = Root::open(&RootSpec { name: "measured".into(), path: folder.clone(), access: Access::Read, deny: Vec::new(), own: Vec::new() })?;
    let mut summary = once(&root, digest)?;
    let (mut ours, mut theirs) = (f64::MAX, f64::MAX);
    // Turn by turn, so that what else happens on the machine falls on both; the best of each counts.
    for _ in 0..ROUNDS {
        let start = Instant::now();
        summary = once(&root, digest)?;
        ours = ours.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let mut other = if digest {
            let mut shell = Command::new("sh");
            shell.args(["-c", "find \"$0\" -type f -print0 | xargs -0 -n 64 -P \"$(nproc)\" sha256sum"]);
            shell
        } else {
            Command::new("find")
        };
        other.arg(&folder);
        if !digest {
            other.args(["-printf", "%s %T@ %p\\n"]);
        }
        let status = other.stdout(Stdio::null()).status()?;
        theirs = theirs.min(start.elapsed().as_secs_f64());
        if !status.success() {
            return Err("the other program failed".into());
        }
    }
    let (amount, unit, name) =
        if digest { (as_float(summary.bytes) / 1e6, "MB/s", "sha256sum, as many as cores") } else { (as_float(summary.entries), "entries/s", "find -printf") };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} entries, {} files, {} bytes; best of {ROUNDS} rounds", summary.entries, summary.files, summary.bytes)?;
    writeln!(out, "scan: {:.0} {unit} in {ours:.4} s", amount / ours)?;
    writeln!(out, "{name}: {:.0} {unit} in {theirs:.4} s", amount / theirs)?;
    writeln!(out, "ratio: {:.2}", theirs / ours)?;
    if let Some(peak) = std::fs::read_to_string("/proc/self/status")?.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        writeln!(out, "most memory in use: {}", peak.trim())?;
    }
    if !digest {
        let entries = gathered(&root)?;
        let start = Instant::now();
        let spec = OrganizeSpec { path: String::new(), how: How::Extension, deep: true, keep_folders: false };
        let moves = Organizer::new(entries, &spec)?.moves().count();
        writeln!(out, "organise: {moves} moves planned in {:.4} s", start.elapsed().as_secs_f64())?;
    }
    Ok(())
}

fn gathered(root: &Root) -> Result<Entries, Fault> {
    let mut entries = Entries::default();
    scan(root, &ScanSpec::default(), &Watch::default(), &mut |entry| {
        entries.push(entry.path, &entry.identity);
        ControlFlow::Continue(())
    })?;
    Ok(entries)
}

fn once(root: &Root, digest: bool) -> Result<Summary, Fault> {
    let mut length = 0_usize;
    scan(root, &ScanSpec { digest, ..ScanSpec::default() }, &Watch::default(), &mut |entry| {
        length += entry.path.len();
        ControlFlow::Continue(())
    })
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn as_float(number: u64) -> f64 {
    number as f64
}
