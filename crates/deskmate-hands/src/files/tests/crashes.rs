//! What `probe` says when the process ended somewhere in the middle: each case is what the disk looks like then.

use std::fs;

use super::kit::{AT, Kit};
use crate::files::{Code, Done, Probe, Step, apply, digest_of, list_trash, probe, resume, settle, sweep_trash, undo};

/// What is left under a temporary name while a file is replaced.
fn aside(kept: &str) -> String {
    format!(".deskmate-{}.tmp", digest_of(kept.as_bytes()).to_string().get(..16).unwrap())
}

fn told(kit: &Kit, step: &Step) -> Probe {
    probe(&kit.root, step, None).unwrap()
}

fn done(kit: &Kit, step: &Step) -> Done {
    match told(kit, step) {
        Probe::Done(done) => done,
        other => panic!("{other:?}"),
    }
}

#[test]
fn taking_back_what_was_copied() {
    let kit = Kit::new();
    kit.put("a", "a");
    let step = Step::copy_to(&kit.root, "a", "x/b").unwrap();
    let copied = apply(&kit.root, &step).unwrap();
    // It was set aside, and not yet removed.
    let tag = digest_of(&serde_json::to_vec(&copied).unwrap()).to_string();
    let left = format!("x/.deskmate-{}-0.tmp", tag.get(..16).unwrap());
    fs::rename(kit.at("x/b"), kit.at(&left)).unwrap();
    assert_eq!(told(&kit, &step), Probe::NotDone);
    settle(&kit.root, &copied).unwrap();
    assert!(!kit.at(&left).exists() && !kit.at("x").exists(), "nothing of it is left");
    assert_eq!(kit.text("a").as_deref(), Some("a"));
    // What somebody else put under such a name stays.
    let copied = apply(&kit.root, &step).unwrap();
    let tag = digest_of(&serde_json::to_vec(&copied).unwrap()).to_string();
    undo(&kit.root, &copied).unwrap();
    let other = format!("x/.deskmate-{}-0.tmp", tag.get(..16).unwrap());
    kit.put(&other, "not ours");
    settle(&kit.root, &copied).unwrap();
    assert_eq!(kit.text(&other).as_deref(), Some("not ours"));
}

#[test]
fn a_move() {
    let kit = Kit::new();
    kit.put("a", "a");
    let step = Step::move_to(&kit.root, "a", "x/y/b").unwrap();
    assert_eq!(told(&kit, &step), Probe::NotDone);
    // The folders were made.
    kit.folder("x/y");
    assert_eq!(told(&kit, &step), Probe::NotDone);
    // A file system without the one call: linked, and not yet unlinked.
    fs::hard_link(kit.at("a"), kit.at("x/y/b")).unwrap();
    assert!(matches!(told(&kit, &step), Probe::Unclear(_)));
    fs::remove_file(kit.at("a")).unwrap();
    undo(&kit.root, &done(&kit, &step)).unwrap();
    assert_eq!(kit.text("a").as_deref(), Some("a"));
    // Gone altogether; and another file in its place with perhaps the same inode is not it.
    fs::remove_file(kit.at("a")).unwrap();
    kit.put("x/y/b", "another");
    assert!(matches!(told(&kit, &step), Probe::Unclear(_)));
}

#[test]
fn folders_that_were_made_for_it_are_known_by_their_age() {
    let kit = Kit::new();
    kit.put("a", "a").put("b", "b").put("c", "c").folder("old");
    std::thread::sleep(std::time::Duration::from_millis(50));
    kit.put("clock", "");
    let begun = kit.root.stat("clock").unwrap().mtime_ns;
    if kit.root.stat("").unwrap().born_ns.is_none() {
        return;
    }
    let away = apply(&kit.root, &Step::trash(&kit.root, "c", AT).unwrap()).unwrap();
    let Done::Trashed { id, .. } = &away else { panic!("{away:?}") };
    let before = kit.picture();
    for step in [
        Step::move_to(&kit.root, "a", "old/x/y/a").unwrap(),
        Step::copy_to(&kit.root, "b", "old/x/y/b").unwrap(),
        Step::write_new(&kit.root, "old/x/y/new", b"new".to_vec(), None).unwrap(),
        Step::make_folder(&kit.root, "old/x/y").unwrap(),
        Step::restore(&kit.root, id, Some("old/x/y/c")).unwrap(),
    ] {
        apply(&kit.root, &step).unwrap();
        // The process ended before anybody was told, so only the disk knows.
        let Probe::Done(done) = probe(&kit.root, &step, Some(begun)).unwrap() else { panic!("{step:?}") };
        undo(&kit.root, &done).unwrap();
        assert_eq!(kit.picture(), before, "nothing that was made for it is left, and what was there before is: {step:?}");
    }
}

#[test]
fn a_folder_that_went_with_what_lay_in_it_is_taken_back_too() {
    let kit = Kit::new();
    kit.put("a", "a");
    if kit.root.stat("").unwrap().born_ns.is_none() {
        return;
    }
    let before = kit.picture();
    let folder = apply(&kit.root, &Step::make_folder(&kit.root, "x/y").unwrap()).unwrap();
    let step = Step::move_to(&kit.root, "a", "x/y/a").unwrap();
    apply(&kit.root, &step).unwrap();
    // The process ended: by their age, the folders may have been made for what was moved into them.
    let Probe::Done(moved) = probe(&kit.root, &step, Some(0)).unwrap() else { panic!() };
    undo(&kit.root, &moved).unwrap();
    undo(&kit.root, &folder).unwrap();
    assert_eq!(kit.picture(), before);
}

#[test]
fn an_inode_that_was_used_again_is_not_the_same_thing() {
    let kit = Kit::new();
    for _ in 0..50 {
        kit.put("a", "a");
        let step = Step::move_to(&kit.root, "a", "b").unwrap();
        fs::remove_file(kit.at("a")).unwrap();
        kit.put("b", "a");
        assert!(matches!(told(&kit, &step), Probe::Unclear(_)), "{:?} {:?}", step, kit.root.stat("b"));
        fs::remove_file(kit.at("b")).unwrap();
    }
}

#[test]
fn the_way_to_the_trash_and_back() {
    let kit = Kit::new();
    kit.put("a/f", "text");
    let step = Step::trash(&kit.root, "a", AT).unwrap();
    let Step::Trash { id, .. } = &step else { panic!() };
    assert_eq!(told(&kit, &step), Probe::NotDone);
    // The note was written, half.
    kit.put(&format!(".trash/info/{id}.trashinfo"), "[Trash In").folder(".trash/files");
    assert_eq!(told(&kit, &step), Probe::NotDone);
    assert!(list_trash(&kit.root, None, 9).unwrap().entries.is_empty());
    apply(&kit.root, &step).unwrap();
    let Done::Trashed { from, .. } = done(&kit, &step) else { panic!() };
    assert_eq!((from.as_str(), list_trash(&kit.root, None, 9).unwrap().entries[0].from.as_deref()), ("a", Some("a")));
    // It was renamed by restoring, and the note is still there.
    let back = Step::restore(&kit.root, id, None).unwrap();
    assert_eq!(told(&kit, &back), Probe::NotDone);
    fs::rename(kit.at(&format!(".trash/files/{id}")), kit.at("a")).unwrap();
    let restored = done(&kit, &back);
    assert!(list_trash(&kit.root, None, 9).unwrap().entries.is_empty());
    undo(&kit.root, &restored).unwrap();
    assert_eq!(told(&kit, &back), Probe::NotDone);
    apply(&kit.root, &back).unwrap();
    assert_eq!(kit.text("a/f").as_deref(), Some("text"));
}

#[test]
fn replacing() {
    let kit = Kit::new();
    kit.put("d/doc", "old");
    let step = Step::replace(&kit.root, "d/doc", b"new".to_vec(), AT).unwrap();
    let Step::Replace { kept, .. } = &step else { panic!() };
    let before = kit.picture();
    // The new content was written under its temporary name, half; a second attempt begins anew.
    kit.put(&format!("d/{}", aside(kept)), "ne");
    assert_eq!(told(&kit, &step), Probe::NotDone);
    let first = apply(&kit.root, &step).unwrap();
    assert_eq!(done(&kit, &step), first);
    undo(&kit.root, &first).unwrap();
    assert_eq!(kit.picture(), before);
    // The two were exchanged, and the old one did not get to the trash.
    let first = apply(&kit.root, &step).unwrap();
    fs::rename(kit.at(&format!(".trash/files/{kept}")), kit.at(&format!("d/{}", aside(kept)))).unwrap();
    assert_eq!(done(&kit, &step), first);
    assert_eq!(apply(&kit.root, &step).unwrap_err().code, Code::Changed);
    undo(&kit.root, &first).unwrap();
    assert_eq!(kit.picture(), before);
    // In two steps: the old one is gone to the trash, the new one is not there yet.
    kit.folder(".trash/files");
    fs::rename(kit.at("d/doc"), kit.at(&format!(".trash/files/{kept}"))).unwrap();
    assert!(matches!(told(&kit, &step), Probe::Unclear(_)));
}

#[test]
fn what_can_not_be_told_is_not_guessed() {
    let kit = Kit::new();
    kit.put("a", "a");
    // Not every file system keeps when a file came to be.
    let ages = fs::metadata(kit.at("a")).unwrap().created().is_ok();
    for (name, step) in [
        ("copy", Step::copy_to(&kit.root, "a", "copy").unwrap()),
        ("new", Step::write_new(&kit.root, "new", b"x".to_vec(), None).unwrap()),
        ("made", Step::make_folder(&kit.root, "made").unwrap()),
    ] {
        assert_eq!(told(&kit, &step), Probe::NotDone);
        let applied = apply(&kit.root, &step).unwrap();
        assert!(matches!(told(&kit, &step), Probe::Unclear(why) if why.starts_with("it is there")), "{name}");
        // What came to be after the step was begun, with the content that was meant, is known; anything else is not.
        assert_eq!(matches!(probe(&kit.root, &step, Some(0)).unwrap(), Probe::Done(_)), ages, "{name}");
        assert!(matches!(probe(&kit.root, &step, Some(i64::MAX)).unwrap(), Probe::Unclear(_)), "{name}");
        if name != "made" {
            undo(&kit.root, &applied).unwrap();
            kit.put(name, "something else");
            assert!(matches!(probe(&kit.root, &step, Some(0)).unwrap(), Probe::Unclear(_)), "{name}");
        }
    }
    let Done::Trashed { id, .. } = apply(&kit.root, &Step::trash(&kit.root, "a", AT).unwrap()).unwrap() else { panic!() };
    let step = Step::purge(&kit.root, &id).unwrap();
    assert_eq!(told(&kit, &step), Probe::NotDone);
    apply(&kit.root, &step).unwrap();
    assert!(matches!(told(&kit, &step), Probe::Unclear(_)));
}

#[test]
fn what_was_to_be_deleted_for_good_does_not_stay_hidden() {
    let kit = Kit::new();
    let half_deleted = |name: &str| {
        kit.put(&format!("{name}/a/b"), "private").put(&format!("{name}/c"), "private");
        let Done::Trashed { id, .. } = apply(&kit.root, &Step::trash(&kit.root, name, AT).unwrap()).unwrap() else { panic!() };
        let step = Step::purge(&kit.root, &id).unwrap();
        let tag = digest_of(&serde_json::to_vec(&step).unwrap()).to_string();
        let left = format!(".trash/files/.deskmate-{}.tmp", tag.get(..16).unwrap());
        fs::rename(kit.at(&format!(".trash/files/{id}")), kit.at(&left)).unwrap();
        fs::remove_file(kit.at(&left).join("c")).unwrap();
        (step, left)
    };
    // The process ended while it was removed: whoever goes on removes the rest.
    let (step, left) = half_deleted("plan");
    assert!(matches!(told(&kit, &step), Probe::Unclear(_)), "it is not gone yet");
    assert!(matches!(resume(&kit.root, &step, Some(0)).unwrap(), Probe::Done(Done::Purged { .. })));
    assert!(!kit.is_there(&left) && fs::read_dir(kit.at(".trash/info")).unwrap().count() == 0);
    // Where nobody goes on, it is swept away after a while, and nothing else is.
    let (_, left) = half_deleted("retention");
    kit.put("kept", "kept").put(".trash/files/.deskmate-0123456789abcdef-out.tmp", "on its way back");
    apply(&kit.root, &Step::trash(&kit.root, "kept", AT).unwrap()).unwrap();
    assert_eq!(sweep_trash(&kit.root, 0).unwrap(), 0, "somebody may be at it");
    assert!(kit.is_there(&left));
    assert_eq!(sweep_trash(&kit.root, i64::MAX).unwrap(), 1);
    assert!(!kit.is_there(&left) && kit.is_there(".trash/files/.deskmate-0123456789abcdef-out.tmp"));
    assert_eq!(list_trash(&kit.root, None, 9).unwrap().entries.len(), 1);
}

#[test]
fn a_link_that_was_copied() {
    let kit = Kit::new();
    kit.link("link", "where/ever");
    let step = Step::copy_to(&kit.root, "link", "copy").unwrap();
    // The clock of the file system: what is made from now on is not older than this.
    kit.put("clock", "");
    let begun = kit.root.stat("clock").unwrap().mtime_ns;
    let since = |since: i64| probe(&kit.root, &step, Some(since)).unwrap();
    assert_eq!(since(begun), Probe::NotDone);
    apply(&kit.root, &step).unwrap();
    let Probe::Done(copied) = since(begun) else { panic!("{:?}", since(begun)) };
    // One from before, and one that leads elsewhere, is somebody else's.
    assert!(matches!(since(begun + 60_000_000_000), Probe::Unclear(_)));
    undo(&kit.root, &copied).unwrap();
    assert!(!kit.is_there("copy"));
    kit.link("copy", "some/place");
    assert!(matches!(since(begun), Probe::Unclear(_)));
}
