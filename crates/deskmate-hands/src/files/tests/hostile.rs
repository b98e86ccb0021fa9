//! Somebody swaps folders and links under our hands, all the time: nothing outside the root is read, named or changed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::kit::{AT, Kit, picture};
use crate::files::{
    Access, Code, ListSpec, Part, READ_MAX, Root, RootSpec, ScanSpec, SearchSpec, Step, Watch, apply, digest_of, duplicates, list, list_trash, read, scan,
    search_content, undo,
};

const ROUNDS: u64 = 10_000;

/// Folder `a`, link `b` to the outside, file `f` and link `g` change places, at every level.
fn swap_for_ever(kit: &Kit, stop: &AtomicBool, swaps: &AtomicU64) {
    let pairs = [("a", "b"), ("deep/a", "deep/b"), ("f", "g"), ("deep/a/f", "deep/a/g"), ("deep", "shallow"), (".trash", "elsewhere")];
    while !stop.load(Ordering::Relaxed) || swaps.load(Ordering::Relaxed) < ROUNDS {
        for (one, other) in pairs {
            let _ = renameat_with(CWD, kit.at(one), CWD, kit.at(other), RenameFlags::EXCHANGE);
        }
        swaps.fetch_add(1, Ordering::Relaxed);
        // Both go on in turn also where there are few cores.
        std::thread::yield_now();
    }
}

/// Answers how many looks saw something.
fn look(root: &Root, round: u64) -> u64 {
    let mut seen = 0;
    let outside = digest_of(b"OUTSIDE");
    for path in ["a/x", "f", "deep/a/f", "deep/a/x", "b/secret", "deep/b/secret", "g"] {
        if let Ok(content) = read(root, path, Part::Whole, READ_MAX) {
            assert!(content.bytes.starts_with(b"INSIDE"), "{path} in round {round}");
            seen += 1;
        }
        if let Ok(identity) = root.identify(path, true) {
            assert_ne!(identity.sha256, Some(outside), "{path} in round {round}");
        }
    }
    if !round.is_multiple_of(50) {
        return seen;
    }
    for path in ["", "a", "deep", "deep/a"] {
        if let Ok(listing) = list(root, &ListSpec { path: path.into(), depth: 9, hidden: true, ignored: true, ..ListSpec::default() }, &Watch::default()) {
            assert!(listing.entries.iter().all(|entry| !entry.path.contains("secret")), "{path} in round {round}");
        }
        let _ = scan(root, &ScanSpec { path: path.into(), digest: true, ..ScanSpec::default() }, &Watch::default(), &mut |entry| {
            assert!(!entry.path.contains("secret") && entry.identity.sha256 != Some(outside), "{} in round {round}", entry.path);
            std::ops::ControlFlow::Continue(())
        });
        let spec = SearchSpec { path: path.into(), ..SearchSpec::default() };
        if let Ok(found) = search_content(root, "OUTSIDE", &spec, &Watch::default()) {
            assert_eq!(found.hits, [], "round {round}");
        }
    }
    if let Ok(found) = duplicates(root, &crate::files::DuplicatesSpec::default(), &Watch::default()) {
        assert!(found.groups.iter().all(|group| group.sha256 != outside));
    }
    let _ = list_trash(root, None, 100);
    seen
}

/// Whatever works is undone; what fails must fail with a word for it. Answers whether it worked.
fn change(root: &Root, round: u64) -> bool {
    let at_us = AT + i64::try_from(round).unwrap();
    let step = match round % 8 {
        0 => Step::move_to(root, "a/x", "deep/a/moved"),
        1 => Step::move_to(root, "a", "moved"),
        2 => Step::write_new(root, &format!("deep/a/new/{round}"), b"INSIDE".to_vec(), None),
        3 => Step::copy_to(root, "f", "deep/a/copy"),
        4 => Step::replace(root, "deep/a/f", b"INSIDE 2".to_vec(), at_us),
        5 => Step::trash(root, "deep/a", at_us),
        6 => Step::trash(root, "b", at_us),
        _ => Step::make_folder(root, "deep/a/made/by/us"),
    };
    let Ok(step) = step else { return false };
    match apply(root, &step) {
        Ok(done) => {
            let _ = undo(root, &done);
            true
        }
        Err(fault) => {
            let expected = [Code::NotFound, Code::Changed, Code::ThroughLink, Code::Exists, Code::NotAFolder, Code::NotAFile, Code::NotEmpty];
            assert!(expected.contains(&fault.code), "{fault:?}");
            false
        }
    }
}

/// Stops the other one also when this one fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn s10_nothing_outside_is_touched_while_names_are_swapped() {
    let mut kit = Kit::new();
    kit.root = kit.root.in_bulk();
    kit.put("a/x", "INSIDE")
        .put("f", "INSIDE")
        .put("deep/a/f", "INSIDE")
        .put("deep/a/x", "INSIDE")
        .put("shallow/a/x", "INSIDE")
        .folder(".trash/files")
        .folder(".trash/info");
    kit.link("b", kit.outside()).link("g", kit.outside().join("secret")).link("deep/b", "../../outside").link("deep/a/g", "../../../outside/secret");
    kit.link("elsewhere", "../outside");
    fs::create_dir_all(kit.outside().join("files")).unwrap();
    fs::create_dir_all(kit.outside().join("info")).unwrap();
    fs::write(kit.outside().join("x"), "OUTSIDE").unwrap();
    fs::write(kit.outside().join("f"), "OUTSIDE").unwrap();
    let state = || {
        let times: Vec<_> = ["", "secret", "files", "info"]
            .iter()
            .map(|path| fs::metadata(kit.outside().join(path)).unwrap())
            .map(|found| (found.mtime(), found.mtime_nsec()))
            .collect();
        (picture(&kit.outside()), times)
    };
    let before = state();
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| swap_for_ever(&kit, &stop, &swaps));
        let _stop = Stop(&stop);
        let (mut seen, mut changed) = (0, 0);
        for round in 0..ROUNDS {
            seen += look(&kit.root, round);
            changed += u64::from(change(&kit.root, round));
        }
        // Or else nothing was tried.
        println!("{seen} files read, {changed} steps done");
        assert!(seen > 100 && changed > 100, "{seen} files read, {changed} steps done");
    });
    assert_eq!(state(), before);
    assert!(swaps.into_inner() >= ROUNDS);
}

/// The root itself and a link to the outside change places. What is opened by its path anew each time is what the desk keeps for itself
/// as well, which nobody may get at.
#[test]
fn s10_nothing_outside_is_read_while_the_root_itself_is_swapped() {
    let kit = Kit::new();
    kit.put("f", "INSIDE");
    let (folder, link) = (kit.outside().with_file_name("inside"), kit.outside().with_file_name("link"));
    std::os::unix::fs::symlink(kit.outside(), &link).unwrap();
    fs::write(kit.outside().join("f"), "OUTSIDE").unwrap();
    let spec = RootSpec { name: "desk".into(), path: folder.clone(), access: Access::Write, deny: Vec::new(), own: vec![kit.outside()] };
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
        let _stop = Stop(&stop);
        let (mut root, mut seen, mut refused) = (kit.root.clone(), 0, 0);
        let most = ROUNDS / 10;
        while seen < most || refused < most || swaps.load(Ordering::Relaxed) < most {
            std::thread::yield_now();
            if !root.is_in_place() {
                match root.reopen(&RootSpec { own: Vec::new(), ..spec.clone() }) {
                    Ok(anew) => root = anew,
                    Err(fault) => {
                        assert!([Code::ThroughLink, Code::NotFound].contains(&fault.code), "{fault:?}");
                        refused += 1;
                    }
                }
            }
            for root in [Ok(root.clone()), Root::open(&spec)] {
                match root.and_then(|root| read(&root, "f", Part::Whole, READ_MAX)) {
                    Ok(content) => {
                        assert_eq!(content.bytes, b"INSIDE");
                        seen += 1;
                    }
                    Err(fault) => assert!([Code::Invalid, Code::NotFound].contains(&fault.code), "{fault:?}"),
                }
            }
        }
    });
}
