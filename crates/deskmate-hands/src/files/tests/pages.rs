//! Pages of looks at trees: all of them together are one whole look, wherever they end, whatever happens in between, and whoever
//! wrote the cursor.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::kit::Kit;
use crate::files::duplicates::duplicates_holding;
use crate::files::sizes::sizes_holding;
use crate::files::{
    Access, Code, Digest, Duplicates, DuplicatesSpec, ListSpec, Progress, Same, SameSpec, SizesSpec, Tree, TreeSpec, Watch, digest_of, duplicates, list, same,
    sizes, tree,
};

/// Folders in folders, names that sort differently as paths than as names, names that nobody can speak of.
fn deep() -> Kit {
    let kit = Kit::with(Access::Read, &["**/*.env", "denied/"]);
    for folder in ["a", "a/b", "a/b/c", "a/b/c/d", "a-b", "denied", "out", "z"] {
        for file in ["1", "2", "x.env", "y.log"] {
            kit.put(&format!("{folder}/{file}"), folder);
        }
        let odd = kit.at(folder).join(std::ffi::OsStr::from_bytes(b"1\xff"));
        fs::write(odd, "").unwrap();
    }
    kit.put(".gitignore", "*.log\nout/\n").put("a/b/odd\nname", "");
    kit
}

fn drawn(kit: &Kit, spec: &TreeSpec) -> Tree {
    tree(&kit.root, spec, &Watch::default()).unwrap()
}

/// All pages of a tree; `between` is called before each but the first.
fn all_pages(kit: &Kit, spec: &TreeSpec, between: impl Fn()) -> Vec<Tree> {
    let mut pages = vec![drawn(kit, spec)];
    while let Some(after) = pages.last().unwrap().next.clone() {
        between();
        pages.push(drawn(kit, &TreeSpec { after: Some(after), ..spec.clone() }));
    }
    pages
}

#[test]
fn the_pages_of_a_tree_are_the_tree_wherever_they_end() {
    let kit = deep();
    for path in ["", "a", "a/b/c"] {
        let spec = TreeSpec { path: path.into(), depth: 9, ..TreeSpec::default() };
        let whole = drawn(&kit, &spec);
        assert!(whole.left_out > 0 && whole.next.is_none());
        for (limit, bytes) in (1..20).map(|limit| (limit, usize::MAX)).chain((0..80).map(|bytes| (usize::MAX, bytes))) {
            let pages = all_pages(&kit, &TreeSpec { limit, bytes, ..spec.clone() }, || ());
            assert_eq!(pages.iter().map(|page| page.text.as_str()).collect::<String>(), whole.text, "{path} {limit} {bytes}");
            assert_eq!(pages.iter().map(|page| page.left_out).sum::<u64>(), whole.left_out, "{path} {limit} {bytes}");
            assert!(pages.iter().all(|page| page.text.lines().count() <= limit && page.text.len() <= bytes.max(20)), "{path} {limit} {bytes}");
        }
    }
    let whole = drawn(&kit, &TreeSpec { depth: 9, ..TreeSpec::default() });
    assert!(!whole.text.contains("env") && !whole.text.contains("log") && !whole.text.contains("denied") && !whole.text.contains("out"), "{}", whole.text);
    // In the middle of a deep folder: the page says where its first line lies.
    let middle = drawn(&kit, &TreeSpec { depth: 9, after: Some("a/b/c/1".into()), limit: 2, ..TreeSpec::default() });
    assert_eq!((middle.text.as_str(), middle.begins_in.as_deref()), ("      2  5\n      d/\n", Some("a/b/c")));
    let listed = |after| list(&kit.root, &ListSpec { depth: 9, limit: 1, after, ..ListSpec::default() }, &Watch::default()).unwrap();
    let (mut page, mut unnamed) = (listed(None), 0);
    while let Some(next) = page.next {
        unnamed += page.unnamed;
        page = listed(Some(next));
    }
    assert_eq!(unnamed + page.unnamed, whole.left_out, "no name is counted on two pages");
}

#[test]
fn a_tree_that_changes_between_pages_shows_what_stays_exactly_once() {
    let spec = TreeSpec { depth: 9, limit: 1, hidden: true, ..TreeSpec::default() };
    let kit = Kit::new();
    for number in 0..20 {
        kit.put(&format!("d{}/e/f{number:02}", number % 3), "");
    }
    let stays: Vec<String> = drawn(&kit, &TreeSpec { limit: 99, ..spec.clone() }).text.lines().map(|line| line.trim().to_owned()).collect();
    let step = Cell::new(0);
    let pages = all_pages(&kit, &spec, || {
        // Before, at and behind where the walk is: things come and go.
        let number = step.replace(step.get() + 1);
        kit.put(&format!("a{number}"), "").put(&format!("d1/e/f03-{number}"), "").put(&format!("d0/new{number}/x"), "");
        if number > 0 {
            fs::remove_file(kit.at(&format!("d1/e/f03-{}", number - 1))).unwrap();
            fs::remove_dir_all(kit.at(&format!("d0/new{}", number - 1))).unwrap();
        }
    });
    let shown: Vec<String> = pages.iter().flat_map(|page| page.text.lines()).map(|line| line.trim().to_owned()).collect();
    let kept: Vec<&String> = shown.iter().filter(|line| stays.contains(line)).collect();
    assert_eq!(kept, stays.iter().collect::<Vec<_>>());
    // Where the last page ended there is nothing any more, or something else.
    let after = |after: &str| drawn(&kit, &TreeSpec { after: Some(after.into()), limit: 2, ..spec.clone() }).text;
    let rest = after("d2/e/f14");
    fs::remove_file(kit.at("d2/e/f14")).unwrap();
    assert_eq!(after("d2/e/f14"), rest);
    kit.folder("d2/e/f14");
    assert_eq!(after("d2/e/f14"), rest);
    kit.put("d2/e/f14/inside", "");
    assert_eq!(after("d2/e/f14").lines().next(), Some("      inside  0"));
    fs::remove_dir_all(kit.at("d2")).unwrap();
    assert_eq!(after("d2/e/f14"), "");
}

#[test]
fn a_cursor_that_somebody_made_up_shows_nothing_else() {
    let kit = deep();
    kit.link("a/link", kit.outside()).link("a/loop", "b");
    let page = |path: &str, after: &str| {
        tree(&kit.root, &TreeSpec { path: path.into(), depth: 9, after: Some(after.into()), ..TreeSpec::default() }, &Watch::default())
    };
    let whole = drawn(&kit, &TreeSpec { depth: 9, ..TreeSpec::default() }).text;
    let shown =
        ["denied/1", "denied", "out/1", "a/link/secret", "a/loop/c/1", ".git/x", ".trash/files/x", "/etc/passwd", "/", "", "a//./b", "zz/zz/zz", "\u{7f}\n"];
    for cursor in shown {
        assert!(whole.ends_with(&page("", cursor).unwrap().text), "{cursor:?}");
    }
    assert_eq!(page("", "denied/1").unwrap().text, "z/\n  1  1\n  2  1\n");
    assert_eq!(page("a", "link/secret").unwrap().text, "loop@\n");
    for cursor in ["..", "a/../..", "../outside/secret", "a/b/../../../outside", "a\0b"] {
        assert_eq!(page("a", cursor).unwrap_err().code, Code::Invalid, "{cursor:?}");
    }
    // Only some folders of a root: a cursor does not lead out of them.
    let narrow = kit.root.within(&["a/b".to_owned()]);
    for cursor in ["../1", "../../z/1"] {
        let spec = TreeSpec { path: "a/b".into(), depth: 9, after: Some(cursor.into()), ..TreeSpec::default() };
        assert_eq!(tree(&narrow, &spec, &Watch::default()).unwrap_err().code, Code::Invalid);
    }
}

#[test]
fn the_pages_of_sizes_are_all_folders_however_few_are_counted_at_a_time() {
    let kit = deep();
    for number in 0..30 {
        // Many of one size, and some that hold nothing.
        kit.put(&format!("many/f{number}/x"), &"x".repeat(number / 7)).folder(&format!("many/none{number}"));
    }
    let spec = SizesSpec { depth: 9, limit: 1_000, ..SizesSpec::default() };
    let whole = sizes(&kit.root, &spec, &Watch::default()).unwrap();
    assert!(!whole.more && whole.folders.len() > 60 && whole.folders.iter().all(|folder| !folder.path.contains("denied")));
    for (limit, held) in [(1, 1_000), (7, 1_000), (7, 20), (1_000, 10), (33, 40)] {
        let (mut spec, mut folders) = (SizesSpec { limit, ..spec.clone() }, Vec::new());
        loop {
            let page = sizes_holding(&kit.root, &spec, held, &Watch::default()).unwrap();
            assert_eq!((page.total, &page.largest), (whole.total, &whole.largest));
            assert!(page.folders.len() <= limit);
            spec.after = page.folders.last().map(|last| (last.bytes, last.path.clone()));
            folders.extend(page.folders);
            if !page.more {
                break;
            }
        }
        assert_eq!(folders, whole.folders, "{limit} {held}");
    }
}

/// Groups of two and more, of all sorts of lengths, with files of the same length that are not the same.
fn copies() -> Kit {
    let kit = Kit::new();
    for length in 1..40_usize {
        for copy in 0..=length % 4 {
            kit.put(&format!("d/{}{length}-{copy}", "deep/".repeat(copy)), &"x".repeat(length * 10));
        }
        kit.put(&format!("alone/{length}"), &"y".repeat(length * 10));
    }
    for number in 0..50 {
        kit.put(&format!("many/{number:02}"), "the same");
    }
    fs::hard_link(kit.at("many/07"), kit.at("many/7th")).unwrap();
    fs::hard_link(kit.at("many/08"), kit.at("a-name-before")).unwrap();
    kit
}

/// A page, and how many files were read for it, which is what is told last.
fn page_of(kit: &Kit, spec: &DuplicatesSpec, held: usize) -> (Duplicates, u64) {
    let files = AtomicU64::new(0);
    let progress = |progress: Progress| files.store(progress.entries, Ordering::Relaxed);
    let page = duplicates_holding(&kit.root, spec, held, &Watch { cancel: None, progress: Some(&progress) }).unwrap();
    (page, files.into_inner())
}

#[test]
fn the_pages_of_duplicates_are_all_groups_and_later_ones_read_less() {
    let kit = copies();
    let spec = DuplicatesSpec { limit: 1_000, ..DuplicatesSpec::default() };
    let (whole, read) = page_of(&kit, &spec, 1_000);
    assert!(!whole.more && !whole.cut && whole.groups.len() == 31);
    let waste: Vec<u64> = whole.groups.iter().map(Same::wasted).collect();
    assert!(waste.is_sorted_by(|a, b| a >= b) && whole.wasted == Some(waste.iter().sum()));
    for (limit, held) in [(1, 1_000), (4, 1_000), (4, 60), (1_000, 60), (7, 200)] {
        let (mut spec, mut groups, mut reads) = (DuplicatesSpec { limit, ..spec.clone() }, Vec::new(), Vec::new());
        loop {
            let (page, read) = page_of(&kit, &spec, held);
            assert_eq!((page.wasted, page.cut), (whole.wasted.filter(|_| spec.after.is_none()), false));
            spec.after = page.groups.last().map(|last| (last.wasted(), last.sha256));
            groups.extend(page.groups);
            reads.push(read);
            if !page.more {
                break;
            }
        }
        assert_eq!(groups, whole.groups, "{limit} {held}");
        if held == 1_000 {
            assert!(reads[0] == read && reads[1..].iter().all(|files| *files < read), "{reads:?} of {read}");
        }
    }
    // Of one length no more are compared than are held, and the answer says so.
    assert!(page_of(&kit, &spec, 10).0.cut);
}

#[test]
fn a_page_of_pairs_reads_those_pairs() {
    let kit = Kit::new();
    for length in 1..=60_usize {
        for copy in ["a", "b"] {
            kit.put(&format!("{copy}/{length}"), &"x".repeat(length));
        }
    }
    let mut spec = DuplicatesSpec { limit: 5, ..DuplicatesSpec::default() };
    let mut reads = Vec::new();
    loop {
        let (page, read) = page_of(&kit, &spec, 1_000);
        spec.after = page.groups.last().map(|last| (last.wasted(), last.sha256));
        reads.push(read);
        if !page.more {
            break;
        }
    }
    // All of them once, to count what they waste; then the pair that is known, those of the page, and the one behind it.
    assert_eq!((reads.len(), reads[0]), (12, 120));
    assert!(reads[1..].iter().all(|files| *files <= 2 * (1 + 5 + 1)), "{reads:?}");
}

#[test]
fn all_paths_of_one_content_come_in_pages() {
    let kit = copies();
    let found = duplicates(&kit.root, &DuplicatesSpec { paths: 3, ..DuplicatesSpec::default() }, &Watch::default()).unwrap();
    let group = found.groups.iter().find(|group| group.sha256 == digest_of(b"the same")).unwrap();
    // Two names of one file are one file, and the first of them is told.
    assert_eq!((group.count, group.paths.join(" ").as_str()), (50, "a-name-before many/00 many/01"));
    let page = |size: u64, sha256: Digest, after: &str, limit: usize| {
        same(&kit.root, &SameSpec { path: String::new(), hidden: false, size, sha256, after: after.into(), limit }, &Watch::default()).unwrap()
    };
    for limit in [1, 7, 50, 1_000] {
        let mut paths = group.paths.clone();
        loop {
            let (next, more) = page(group.size, group.sha256, paths.last().unwrap(), limit);
            assert!(next.len() <= limit);
            paths.extend(next);
            if !more {
                break;
            }
        }
        assert_eq!((paths.len(), paths.iter().collect::<BTreeSet<_>>().len(), paths.is_sorted()), (50, 50, true));
    }
    assert_eq!(page(group.size, digest_of(b"another"), "", 10), (Vec::new(), false));
    assert_eq!(page(group.size + 1, group.sha256, "", 10), (Vec::new(), false));
}
