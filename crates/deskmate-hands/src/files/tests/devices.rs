//! A second file system mounted beneath the root: steps across it copy, check and then remove. The test runs itself again
//! in a mount namespace of its own, which an ordinary user may have too.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::kit::{AT, Kit, open, picture};
use crate::files::{Access, Code, Done, Mounts, Probe, Step, apply, digest_of, list_trash, probe, resume, resume_undo, sweep_trash, undo};

const PLACE: &str = "DESKMATE_HANDS_MOUNTED";

/// Where another device is mounted, for a test that was started again with one.
#[expect(clippy::disallowed_methods, reason = "a test tells itself in the environment where it is")]
fn place() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

#[test]
fn c8_steps_across_devices_copy_check_and_remove() {
    match place() {
        Some(place) => across(&place),
        None => mounted("c8_steps_across_devices_copy_check_and_remove", ""),
    }
}

#[test]
fn c8_in_bulk_too_a_copy_is_on_the_disk_before_its_source_goes() {
    if let Some(place) = place() {
        return bulk(&place);
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let watched = format!("strace -f -y -s 4096 -e trace=fsync,syncfs,unlinkat -o '{}'", trace.display());
    mounted("c8_in_bulk_too_a_copy_is_on_the_disk_before_its_source_goes", &watched);
    // Where nothing can be mounted, nothing was tried.
    let Ok(trace) = fs::read_to_string(trace) else { return };
    let mut before: Vec<&str> = Vec::new();
    let mut gone = Vec::new();
    for line in trace.lines() {
        if line.contains("unlinkat(") && line.contains("/inside/mnt>, \".deskmate-") && line.contains("-out.tmp") {
            gone.push(std::mem::take(&mut before));
        } else if !line.contains("unlinkat(") {
            before.push(line);
        }
    }
    assert_eq!(gone.len(), 3, "{trace}");
    let synced = |before: &[&str], end: &str| before.iter().any(|line| line.contains("fsync(") && line.contains(end));
    let settled = |before: &[&str]| before.iter().any(|line| line.contains("syncfs("));
    assert!(synced(&gone[0], "-in.tmp>") && synced(&gone[0], "/inside/new/deep>") && settled(&gone[0]), "a file: {:#?}", gone[0]);
    assert!(synced(&gone[1], "-in.tmp/a/b>") && synced(&gone[1], "-in.tmp/a>") && synced(&gone[1], "/inside>") && settled(&gone[1]), "{:#?}", gone[1]);
    assert!(synced(&gone[2], "-in.tmp>") && synced(&gone[2], "/.trash/files>") && settled(&gone[2]), "the trash: {:#?}", gone[2]);
}

/// Runs a test again where another file system is mounted beneath its folder. The machine that checks every change runs as
/// root, and there it has to work.
fn mounted(test: &str, watched: &str) {
    let kit = Kit::new();
    kit.folder("mnt");
    let script = format!("mount -t tmpfs tmpfs \"${PLACE}/mnt\" || exit 77; exec {watched} \"$0\" --exact files::tests::devices::{test}");
    let again = Command::new("unshare").args(["-rm", "sh", "-c", &script]).arg(std::env::current_exe().unwrap()).env(PLACE, kit.at("")).output();
    match again {
        Ok(output) if output.status.success() => assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed")),
        Ok(output) if output.status.code() == Some(101) => panic!("{}", String::from_utf8_lossy(&output.stdout)),
        other if rustix::process::geteuid().is_root() => panic!("nothing can be mounted here: {other:?}"),
        // No namespaces for this user: nothing can be mounted, and nothing is shown.
        _ => testkit::skipped("no file system can be mounted by this account, so steps between two of them were not tested; run as root"),
    }
}

/// What comes from the other device, many steps at once.
fn bulk(place: &Path) {
    let root = open(place, Access::Write, &[]).in_bulk();
    for (path, text) in [("mnt/file", "text"), ("mnt/tree/a/b", "deep"), ("mnt/gone", "gone")] {
        fs::create_dir_all(place.join(path).parent().unwrap()).unwrap();
        fs::write(place.join(path), text).unwrap();
    }
    apply(&root, &Step::move_to(&root, "mnt/file", "new/deep/file").unwrap()).unwrap();
    apply(&root, &Step::move_to(&root, "mnt/tree", "tree").unwrap()).unwrap();
    apply(&root, &Step::trash(&root, "mnt/gone", AT).unwrap()).unwrap();
    assert_eq!(fs::read_to_string(place.join("new/deep/file")).unwrap(), "text");
    assert_eq!(fs::read_to_string(place.join("tree/a/b")).unwrap(), "deep");
}

fn across(place: &Path) {
    let root = open(place, Access::Write, &[]);
    let put = |path: &str, text: &str| {
        fs::create_dir_all(place.join(path).parent().unwrap()).unwrap();
        fs::write(place.join(path), text).unwrap();
    };
    put("file", "text");
    fs::set_permissions(place.join("file"), fs::Permissions::from_mode(0o640)).unwrap();
    put("tree/a/b", "deep");
    std::os::unix::fs::symlink("a/b", place.join("tree/link")).unwrap();
    put("mnt/there", "there");
    assert_ne!(fs::metadata(place).unwrap().dev(), fs::metadata(place.join("mnt")).unwrap().dev());
    let start = picture(place);
    let mut done = Vec::new();
    for step in [
        Step::move_to(&root, "file", "mnt/new/file"),
        Step::move_to(&root, "tree", "mnt/tree"),
        Step::trash(&root, "mnt/there", AT),
        Step::copy_to(&root, "file", "mnt/copy"),
    ] {
        // Something that was moved by then can't be copied.
        let Ok(step) = step else { continue };
        assert_eq!(probe(&root, &step, None).unwrap(), Probe::NotDone);
        match apply(&root, &step) {
            Ok(one) => done.push(one),
            Err(fault) => assert_eq!(fault.code, Code::NotFound),
        }
        assert!(!matches!(probe(&root, &step, None).unwrap(), Probe::Done(_)));
    }
    assert_eq!(done.len(), 3);
    assert_eq!(fs::read_to_string(place.join("mnt/tree/a/b")).unwrap(), "deep");
    assert!(!place.join("tree").exists() && !place.join("mnt/there").exists());
    assert_eq!(list_trash(&root, None, 9).unwrap().entries[0].from.as_deref(), Some("mnt/there"));
    let replaced = apply(&root, &Step::replace(&root, "mnt/new/file", b"other".to_vec(), AT).unwrap()).unwrap();
    assert_eq!((list_trash(&root, None, 9).unwrap().entries.len(), fs::read_to_string(place.join("mnt/new/file")).unwrap().as_str()), (2, "other"));
    undo(&root, &replaced).unwrap();
    for one in done.iter().rev() {
        undo(&root, one).unwrap();
    }
    assert_eq!(picture(place), start);
    assert!(list_trash(&root, None, 9).unwrap().entries.is_empty());
    // What is at the target stays, and nothing is left half done.
    put("mnt/file", "mine");
    assert_eq!(apply(&root, &Step::move_to(&root, "file", "mnt/file").unwrap()).unwrap_err().code, Code::Exists);
    assert_eq!(fs::read_dir(place.join("mnt")).unwrap().count(), 2);
    fs::remove_file(place.join("mnt/file")).unwrap();
    assert_eq!(picture(place), start);
    // What would go across is known by what it holds: other content of the same length and time is not it.
    let (mut step, mut within) = (Step::move_to(&root, "file", "mnt/file").unwrap(), Step::move_to(&root, "file", "other").unwrap());
    let as_it_was = within.clone();
    assert!(Mounts::default().take_digest(&root, &mut step) && !Mounts::default().take_digest(&root, &mut within));
    assert_eq!(within, as_it_was, "what keeps its inode needs no digest");
    let was = fs::metadata(place.join("file")).unwrap().modified().unwrap();
    put("file", "TEXT");
    fs::File::options().write(true).open(place.join("file")).unwrap().set_modified(was).unwrap();
    assert_eq!(apply(&root, &step).unwrap_err().code, Code::Changed);
    assert!(place.join("file").exists() && !place.join("mnt/file").exists());
    // So is what comes back out of the trash and goes across; a folder has no digest, and what stays needs none.
    put("mnt/kept", "kept");
    put("mnt/folder/inner", "inner");
    let id = |path: &str| match apply(&root, &Step::trash(&root, path, AT).unwrap()).unwrap() {
        Done::Trashed { id, .. } => id,
        other => panic!("{other:?}"),
    };
    let (kept, folder) = (id("mnt/kept"), id("mnt/folder"));
    let known = |step: &Step| matches!(step, Step::Restore { identity, .. } if identity.sha256.is_some());
    let (mut step, mut within) = (Step::restore(&root, &kept, None).unwrap(), Step::restore(&root, &kept, Some("kept")).unwrap());
    assert!(Mounts::default().take_digest(&root, &mut step) && known(&step));
    assert!(!Mounts::default().take_digest(&root, &mut within) && !known(&within));
    let mut whole = Step::restore(&root, &folder, None).unwrap();
    assert!(Mounts::default().take_digest(&root, &mut whole) && !known(&whole));
    apply(&root, &whole).unwrap();
    let lies = place.join(".trash/files").join(&kept);
    let was = fs::metadata(&lies).unwrap().modified().unwrap();
    fs::write(&lies, "KEPT").unwrap();
    fs::File::options().write(true).open(&lies).unwrap().set_modified(was).unwrap();
    assert_eq!(apply(&root, &step).unwrap_err().code, Code::Changed);
    assert!(lies.exists() && !place.join("mnt/kept").exists());
}

#[test]
fn what_goes_across_devices_and_is_cut_short_is_ended_or_taken_back() {
    match place() {
        Some(place) => cut_short(&place),
        None => mounted("what_goes_across_devices_and_is_cut_short_is_ended_or_taken_back", ""),
    }
}

/// The temporary name of a tag: of what arrives, of what leaves, or of what is set aside within its folder.
fn temporary(step: &impl serde::Serialize, end: &str) -> String {
    named(&serde_json::to_vec(step).unwrap(), end)
}

fn named(tagged: &[u8], end: &str) -> String {
    format!(".deskmate-{}{end}.tmp", digest_of(tagged).to_string().get(..16).unwrap())
}

/// A copy as going to another device makes it.
fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// All names, with those that nobody is shown.
fn hidden(place: &Path) -> Vec<String> {
    let found = Command::new("find").arg(place).args(["-name", ".deskmate-*"]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn cut_short(place: &Path) {
    let root = open(place, Access::Write, &[]);
    for folder in ["here", "mnt/there"] {
        fs::create_dir_all(place.join(folder)).unwrap();
    }
    fs::write(place.join("here/file"), "text").unwrap();
    std::os::unix::fs::symlink("where/ever", place.join("here/link")).unwrap();
    fs::create_dir_all(place.join("here/folder/a")).unwrap();
    fs::write(place.join("here/folder/a/b"), "deep").unwrap();
    fs::write(place.join("here/folder/c"), "more").unwrap();
    // The clock of the file system: the folders are from before.
    std::thread::sleep(std::time::Duration::from_millis(50));
    fs::write(place.join("clock"), "").unwrap();
    let begun = Some(root.stat("clock").unwrap().mtime_ns);
    fs::remove_file(place.join("clock")).unwrap();
    let start = picture(place);
    for name in ["file", "link", "folder"] {
        let (from, to) = (format!("here/{name}"), format!("mnt/there/{name}"));
        let planned = || {
            let mut step = Step::move_to(&root, &from, &to).unwrap();
            assert!(Mounts::default().take_digest(&root, &mut step));
            step
        };
        let step = planned();
        let (source, target) = (place.join(&from), place.join(&to));
        let (arriving, leaving) = (place.join("mnt/there").join(temporary(&step, "-in")), place.join("here").join(temporary(&step, "-out")));
        let as_it_was = |what: &str| {
            assert_eq!(picture(place), start, "{name}: {what}");
            assert!(hidden(place).is_empty(), "{name}: {what}: {:?}", hidden(place));
        };
        // The copy was made, and the source not set aside yet; then it was.
        copy(&source, &arriving);
        assert_eq!(resume(&root, &step, begun).unwrap(), Probe::NotDone, "{name}");
        as_it_was("copied");
        copy(&source, &arriving);
        fs::rename(&source, &leaving).unwrap();
        assert_eq!(resume(&root, &step, begun).unwrap(), Probe::NotDone, "{name}");
        as_it_was("set aside");
        // The copy got its name, and the source was not removed yet, or not all of it.
        for part in [false, true] {
            let step = planned();
            let leaving = place.join("here").join(temporary(&step, "-out"));
            copy(&source, &target);
            fs::rename(&source, &leaving).unwrap();
            if part && name == "folder" {
                fs::remove_dir_all(leaving.join("a")).unwrap();
            }
            let Probe::Done(moved) = resume(&root, &step, begun).unwrap() else { panic!("{name}") };
            assert!(!is_there(&source) && is_there(&target) && hidden(place).is_empty(), "{name}");
            // What was done is told again, and it can be taken back.
            assert!(matches!(resume(&root, &step, begun).unwrap(), Probe::Done(_)), "{name}");
            undo(&root, &moved).unwrap();
            as_it_was("taken back");
        }
        // Somebody changed the copy: nothing is removed, and nothing is hidden.
        let step = &planned();
        copy(&source, &target);
        fs::rename(&source, place.join("here").join(temporary(step, "-out"))).unwrap();
        match name {
            "file" => fs::write(&target, "changed").unwrap(),
            "link" => {
                fs::remove_file(&target).unwrap();
                std::os::unix::fs::symlink("elsewhere", &target).unwrap();
            }
            _ => fs::remove_file(target.join("a/b")).unwrap(),
        }
        assert!(resume(&root, step, begun).is_err(), "{name}");
        assert!(is_there(&source) && is_there(&target) && hidden(place).is_empty(), "{name}");
        let take_away = || fs::remove_file(&target).or_else(|_| fs::remove_dir_all(&target)).unwrap();
        take_away();
        as_it_was("left alone");
        // Something that somebody else put there is not it.
        copy(&source, &target);
        assert_eq!(resume(&root, step, begun).unwrap(), Probe::NotDone, "{name}");
        assert_eq!(apply(&root, step).unwrap_err().code, Code::Exists);
        take_away();
        as_it_was("somebody else's");
        // All of it was done, and nobody was told.
        let done = apply(&root, step).unwrap();
        assert!(matches!(probe(&root, step, begun).unwrap(), Probe::Done(_)), "{name}");
        if name != "file" {
            assert!(matches!(probe(&root, step, Some(i64::MAX)).unwrap(), Probe::Unclear(_)), "{name}: it may be an old one");
        }
        // So it is with the way back: set aside, in its place, and done.
        let (arriving, leaving) = (place.join("here").join(temporary(&done, "-in")), place.join("mnt/there").join(temporary(&done, "-out")));
        copy(&target, &arriving);
        fs::rename(&target, &leaving).unwrap();
        assert!(!resume_undo(&root, &done).unwrap(), "{name}");
        assert!(is_there(&target) && !is_there(&source) && hidden(place).is_empty());
        copy(&target, &source);
        fs::rename(&target, &leaving).unwrap();
        assert!(resume_undo(&root, &done).unwrap(), "{name}");
        as_it_was("taken back after all");
        assert_eq!(probe(&root, step, begun).unwrap(), Probe::NotDone, "{name}");
    }
}

#[test]
fn the_trash_and_what_is_replaced_across_devices_after_a_crash() {
    match place() {
        Some(place) => cut_short_in_the_trash(&place),
        None => mounted("the_trash_and_what_is_replaced_across_devices_after_a_crash", ""),
    }
}

fn cut_short_in_the_trash(place: &Path) {
    let root = open(place, Access::Write, &[]);
    let begun = Some(0);
    let put = |text: &str| fs::write(place.join("mnt/doc"), text).unwrap();
    put("old");
    let trash = place.join(".trash/files");
    // To the trash: set aside there, and the copy is in its place.
    let mut step = Step::trash(&root, "mnt/doc", AT).unwrap();
    Mounts::default().take_digest(&root, &mut step);
    let Step::Trash { id, .. } = &step else { panic!() };
    let trashed = apply(&root, &step).unwrap();
    assert!(matches!(probe(&root, &step, begun).unwrap(), Probe::Done(_)));
    undo(&root, &trashed).unwrap();
    assert_eq!(probe(&root, &step, begun).unwrap(), Probe::NotDone, "it is back");
    let mut step = Step::trash(&root, "mnt/doc", AT).unwrap();
    Mounts::default().take_digest(&root, &mut step);
    let Step::Trash { id: anew, .. } = &step else { panic!() };
    assert_ne!(anew, id);
    copy(&place.join("mnt/doc"), &trash.join(anew));
    fs::rename(place.join("mnt/doc"), place.join("mnt").join(temporary(&step, "-out"))).unwrap();
    assert!(matches!(resume(&root, &step, begun).unwrap(), Probe::Done(Done::Trashed { .. })));
    // And out of it.
    let mut back = Step::restore(&root, anew, Some("mnt/doc")).unwrap();
    Mounts::default().take_digest(&root, &mut back);
    let aside = trash.join(temporary(&back, "-out"));
    copy(&trash.join(anew), &place.join("mnt").join(temporary(&back, "-in")));
    fs::rename(trash.join(anew), &aside).unwrap();
    assert_eq!(sweep_trash(&root, i64::MAX).unwrap(), 0, "it may be all that is left");
    assert_eq!(resume(&root, &back, begun).unwrap(), Probe::NotDone);
    copy(&trash.join(anew), &place.join("mnt/doc"));
    fs::rename(trash.join(anew), &aside).unwrap();
    assert!(matches!(resume(&root, &back, begun).unwrap(), Probe::Done(Done::Restored { .. })));
    assert!(hidden(place).is_empty() && fs::read_to_string(place.join("mnt/doc")).unwrap() == "old");
    // What is replaced goes to the trash the same way: exchanged, on its way, and there.
    let start = picture(place);
    for state in 0..4 {
        let step = Step::replace(&root, "mnt/doc", b"new".to_vec(), AT).unwrap();
        let Step::Replace { kept, .. } = &step else { panic!() };
        let at = |end: &str| place.join("mnt").join(named(kept.as_bytes(), end));
        if state < 3 {
            fs::create_dir_all(&trash).unwrap();
            fs::rename(place.join("mnt/doc"), at("")).unwrap();
            put("new");
        }
        match state {
            1 => {
                copy(&at(""), &trash.join(named(kept.as_bytes(), "-in")));
                fs::rename(at(""), at("-out")).unwrap();
            }
            2 => {
                copy(&at(""), &trash.join(kept));
                fs::rename(at(""), at("-out")).unwrap();
            }
            3 => drop(apply(&root, &step).unwrap()),
            _ => {}
        }
        let Probe::Done(done) = resume(&root, &step, begun).unwrap() else { panic!("{state}: {:?}", resume(&root, &step, begun)) };
        assert!(trash.join(kept).exists() && hidden(place).is_empty(), "{state}: {:?}", hidden(place));
        undo(&root, &done).unwrap();
        assert_eq!(picture(place), start, "{state}");
        assert_eq!(probe(&root, &step, begun).unwrap(), Probe::NotDone, "{state}");
    }
}
