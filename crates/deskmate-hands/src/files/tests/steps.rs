//! Random trees and random steps: a step that fails changes nothing, `probe` tells the truth before and after, and all
//! steps undone in reverse give back the same bytes, modes and times.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use proptest::sample::Index;

use super::kit::{AT, Kit};
use crate::files::{Access, Done, Fault, Probe, Step, apply, list_trash, probe, undo};

#[derive(Debug, Clone)]
enum Thing {
    File(Vec<u8>, u32, u32),
    Folder(u32),
    Link(String),
}

#[derive(Debug, Clone)]
enum Act {
    Move(String, String),
    Copy(String, String),
    Write(String, Vec<u8>, Option<u32>),
    Replace(String, Vec<u8>),
    MakeFolder(String),
    RemoveEmptyFolder(String),
    Trash(String),
    Restore(Index, Option<String>),
}

/// Few names, so that steps meet each other.
fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "ä b"]), 1..4).prop_map(|parts| parts.join("/"))
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

fn thing() -> impl Strategy<Value = Thing> {
    prop_oneof![
        4 => (bytes(), prop::sample::select(vec![0o644, 0o600, 0o755, 0o400]), any::<u32>()).prop_map(|(bytes, mode, time)| Thing::File(bytes, mode, time)),
        1 => prop::sample::select(vec![0o755, 0o700]).prop_map(Thing::Folder),
        1 => path().prop_map(Thing::Link),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (path(), path()).prop_map(|(from, to)| Act::Move(from, to)),
        2 => (path(), path()).prop_map(|(from, to)| Act::Copy(from, to)),
        2 => (path(), bytes(), prop::option::of(Just(0o640))).prop_map(|(to, bytes, mode)| Act::Write(to, bytes, mode)),
        2 => (path(), bytes()).prop_map(|(path, bytes)| Act::Replace(path, bytes)),
        1 => path().prop_map(Act::MakeFolder),
        1 => path().prop_map(Act::RemoveEmptyFolder),
        3 => path().prop_map(Act::Trash),
        2 => (any::<Index>(), prop::option::of(path())).prop_map(|(index, to)| Act::Restore(index, to)),
    ]
}

fn plant(kit: &Kit, tree: &[(String, Thing)]) {
    for (path, thing) in tree {
        let place = kit.at(path);
        if fs::create_dir_all(place.parent().unwrap()).is_err() || kit.is_there(path) {
            continue;
        }
        match thing {
            Thing::File(bytes, mode, time) => {
                fs::write(&place, bytes).unwrap();
                let time = SystemTime::UNIX_EPOCH + Duration::new((*time).into(), time % 1_000_000_000);
                fs::File::open(&place).unwrap().set_modified(time).unwrap();
                fs::set_permissions(&place, fs::Permissions::from_mode(*mode)).unwrap();
            }
            Thing::Folder(mode) => {
                fs::create_dir(&place).unwrap();
                fs::set_permissions(&place, fs::Permissions::from_mode(*mode)).unwrap();
            }
            Thing::Link(text) => std::os::unix::fs::symlink(text, &place).unwrap(),
        }
    }
}

fn plan(kit: &Kit, act: &Act) -> Result<Step, Fault> {
    let root = &kit.root;
    match act {
        Act::Move(from, to) => Step::move_to(root, from, to),
        Act::Copy(from, to) => Step::copy_to(root, from, to),
        Act::Write(to, bytes, mode) => Step::write_new(root, to, bytes.clone(), *mode),
        Act::Replace(path, bytes) => Step::replace(root, path, bytes.clone(), AT),
        Act::MakeFolder(path) => Step::make_folder(root, path),
        Act::RemoveEmptyFolder(path) => Step::remove_empty_folder(root, path, AT),
        Act::Trash(path) => Step::trash(root, path, AT),
        Act::Restore(index, to) => {
            let trash = list_trash(root, None, 100)?.entries;
            let id = if trash.is_empty() { String::new() } else { index.get(&trash).id.clone() };
            Step::restore(root, &id, to.as_deref())
        }
    }
}

fn is_exact(step: &Step) -> bool {
    matches!(step, Step::Move { .. } | Step::Trash { .. } | Step::RemoveEmptyFolder { .. } | Step::Restore { .. } | Step::Replace { .. })
}

fn run(tree: &[(String, Thing)], acts: &[Act]) -> Result<(), TestCaseError> {
    let mut kit = Kit::with(Access::Write, &["never"]);
    kit.root = kit.root.in_bulk();
    plant(&kit, tree);
    let start = kit.picture();
    let mut undoing: Vec<Done> = Vec::new();
    for act in acts {
        let before = kit.picture();
        let Ok(step) = plan(&kit, act) else { continue };
        let step: Step = serde_json::from_str(&serde_json::to_string(&step).unwrap()).unwrap();
        let told = probe(&kit.root, &step, None).unwrap();
        match apply(&kit.root, &step) {
            Err(fault) => prop_assert_eq!(kit.picture(), before, "{:?} failed with {} and changed something", &step, fault),
            Ok(done) => {
                let expected = if is_exact(&step) { matches!(told, Probe::NotDone) } else { !matches!(told, Probe::Done(_)) };
                prop_assert!(expected, "before {:?}: {:?}", &step, told);
                let told = probe(&kit.root, &step, None).unwrap();
                let expected = if is_exact(&step) { matches!(told, Probe::Done(_)) } else { !matches!(told, Probe::NotDone) };
                prop_assert!(expected, "after {:?}: {:?}", &step, told);
                undoing.push(serde_json::from_str(&serde_json::to_string(&done).unwrap()).unwrap());
            }
        }
    }
    for done in undoing.iter().rev() {
        undo(&kit.root, done).map_err(|fault| TestCaseError::fail(format!("{done:?}: {fault}")))?;
    }
    prop_assert_eq!(kit.picture(), start);
    prop_assert!(list_trash(&kit.root, None, 10).unwrap().entries.is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_steps_undone_give_back_what_was(tree in prop::collection::vec((path(), thing()), 0..12), acts in prop::collection::vec(act(), 1..14)) {
        run(&tree, &acts)?;
    }
}
