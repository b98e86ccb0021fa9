//! What is said beforehand of taking steps back is what comes of it.

use std::fs;

use super::kit::{AT, Kit};
use crate::files::{Back, Done, Step, apply, list_trash, undo};

fn done(kit: &Kit, step: Result<Step, crate::files::Fault>) -> Done {
    apply(&kit.root, &step.unwrap()).unwrap()
}

fn why(kit: &Kit, done: &Done) -> String {
    Back::default().check(&kit.root, done).unwrap_err()
}

#[test]
fn what_cannot_come_back_is_told_with_why() {
    let kit = Kit::new();
    kit.put("a", "a").put("b", "b").put("c", "c").put("d", "d").put("e", "e");
    let moved = done(&kit, Step::move_to(&kit.root, "a", "to/a"));
    let trashed = done(&kit, Step::trash(&kit.root, "b", AT));
    let replaced = done(&kit, Step::replace(&kit.root, "c", b"new".to_vec(), AT));
    let copied = done(&kit, Step::copy_to(&kit.root, "d", "copy"));
    let written = done(&kit, Step::write_new(&kit.root, "new", b"new".to_vec(), None));
    let folder = done(&kit, Step::make_folder(&kit.root, "folder/inner"));
    for one in [&moved, &trashed, &replaced, &copied, &written, &folder] {
        Back::default().check(&kit.root, one).unwrap();
    }
    kit.put("a", "another");
    assert_eq!(why(&kit, &moved), "something else is at a by now");
    fs::remove_file(kit.at("a")).unwrap();
    fs::remove_file(kit.at("to/a")).unwrap();
    assert_eq!(why(&kit, &moved), "it is not there any more");
    kit.put("to/a", "another");
    assert_eq!(why(&kit, &moved), "something else is at to/a by now");
    for path in ["copy", "new"] {
        fs::write(kit.at(path), "edited since").unwrap();
    }
    assert_eq!(why(&kit, &copied), "it was changed since");
    assert_eq!(why(&kit, &written), "it was changed since");
    kit.put("folder/inner/x", "x");
    assert_eq!(why(&kit, &folder), "the folder is not empty");
    for entry in list_trash(&kit.root, None, 9).unwrap().entries {
        done(&kit, Step::purge(&kit.root, &entry.id));
    }
    assert_eq!(why(&kit, &trashed), "it is not in the trash any more");
    assert_eq!(why(&kit, &replaced), "it is not in the trash any more");
    let gone = done(&kit, Step::trash(&kit.root, "e", AT));
    let Done::Trashed { id, .. } = &gone else { panic!("{gone:?}") };
    let purged = done(&kit, Step::purge(&kit.root, id));
    assert_eq!(why(&kit, &purged), "what was deleted for ever is gone");
}

#[test]
fn steps_that_build_on_each_other_are_looked_at_in_their_order() {
    let kit = Kit::new();
    kit.put("a", "a").put("c", "c").put("tree/x", "x").put("name", "file");
    let before = kit.picture();
    let steps: Vec<Done> = [
        done(&kit, Step::move_to(&kit.root, "a", "b")),
        done(&kit, Step::move_to(&kit.root, "c", "a")),
        done(&kit, Step::replace(&kit.root, "tree/x", b"other".to_vec(), AT)),
        done(&kit, Step::move_to(&kit.root, "tree", "wood")),
        done(&kit, Step::move_to(&kit.root, "wood/x", "leaf")),
        done(&kit, Step::trash(&kit.root, "name", AT)),
        done(&kit, Step::write_new(&kit.root, "name/inside", b"now a folder".to_vec(), None)),
        done(&kit, Step::make_folder(&kit.root, "empty")),
        done(&kit, Step::write_new(&kit.root, "empty/x", Vec::new(), None)),
    ]
    .into();
    let mut back = Back::default();
    for one in steps.iter().rev() {
        assert_eq!(back.check(&kit.root, one), Ok(None), "{one:?}");
    }
    for one in steps.iter().rev() {
        undo(&kit.root, one).unwrap();
    }
    assert_eq!(kit.picture(), before);
}

#[test]
fn what_was_changed_since_goes_back_as_it_is_and_that_is_told() {
    let kit = Kit::new();
    kit.put("a", "a").put("b", "b").put("c", "c").put("d", "d");
    let moved = done(&kit, Step::move_to(&kit.root, "a", "to/a"));
    let trashed = done(&kit, Step::trash(&kit.root, "b", AT));
    let replaced = done(&kit, Step::replace(&kit.root, "c", b"new".to_vec(), AT));
    let away = done(&kit, Step::trash(&kit.root, "d", AT));
    let Done::Trashed { id: d, .. } = &away else { panic!("{away:?}") };
    let restored = done(&kit, Step::restore(&kit.root, d, Some("e")));
    let (Done::Trashed { id: b, .. }, Done::Replaced { kept: c, .. }) = (&trashed, &replaced) else { panic!("{trashed:?} {replaced:?}") };
    let places = ["to/a".to_owned(), format!(".trash/files/{b}"), format!(".trash/files/{c}"), "e".to_owned()];
    for (one, place) in [&moved, &trashed, &replaced, &restored].into_iter().zip(places) {
        assert_eq!(Back::default().check(&kit.root, one), Ok(None), "{one:?}");
        fs::write(kit.at(&place), "edited since").unwrap();
        let told = Back::default().check(&kit.root, one);
        assert_eq!(told, Ok(Some("it was changed since, and goes back as it is now".to_owned())), "{one:?}");
        undo(&kit.root, one).unwrap();
    }
    assert_eq!((kit.text("a").as_deref(), kit.text("b").as_deref()), (Some("edited since"), Some("edited since")));
}

/// Numbers that look like chance and come again for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn path(&mut self) -> String {
        let depth = 1 + self.below(3);
        (0..depth).map(|_| ["a", "b", "c"][usize::try_from(self.below(3)).unwrap()]).collect::<Vec<_>>().join("/")
    }
}

#[test]
fn whatever_was_done_and_happened_since_the_word_about_it_holds() {
    let (mut all, mut blocked) = (0, 0);
    for seed in 0..300 {
        let mut chance = Chance(seed * 7_919 + 3);
        let kit = Kit::new();
        let mut steps = Vec::new();
        for number in 0..14 {
            let (one, other) = (chance.path(), chance.path());
            let text = format!("{number}").into_bytes();
            let step = match chance.below(7) {
                0 => Step::move_to(&kit.root, &one, &other),
                1 => Step::copy_to(&kit.root, &one, &other),
                2 => Step::replace(&kit.root, &one, text, AT + number),
                3 => Step::trash(&kit.root, &one, AT + number),
                4 => Step::make_folder(&kit.root, &one),
                5 => match list_trash(&kit.root, None, 1).unwrap().entries.first() {
                    Some(entry) => Step::restore(&kit.root, &entry.id, Some(&other)),
                    None => continue,
                },
                _ => Step::write_new(&kit.root, &one, text, None),
            };
            // What cannot be done was not done.
            steps.extend(step.and_then(|step| apply(&kit.root, &step)));
        }
        for _ in 0..chance.below(3) {
            let path = kit.at(&chance.path());
            match chance.below(3) {
                0 => drop(fs::write(path, "somebody else")),
                1 => drop(fs::remove_file(path)),
                _ => drop(fs::rename(path, kit.at("aside"))),
            }
        }
        let mut back = Back::default();
        let said: Vec<_> = steps.iter().rev().map(|one| (one, back.check(&kit.root, one))).collect();
        for (one, said) in said {
            all += 1;
            match said {
                Ok(_) => undo(&kit.root, one).unwrap_or_else(|fault| panic!("seed {seed}: {one:?}: {fault}, of {steps:#?}")),
                Err(why) => {
                    blocked += 1;
                    assert!(undo(&kit.root, one).is_err(), "seed {seed}: {one:?} was called impossible: {why}, of {steps:#?}");
                }
            }
        }
    }
    assert!(all > 1_000 && blocked > 50 && blocked * 2 < all, "{blocked} of {all}");
}
