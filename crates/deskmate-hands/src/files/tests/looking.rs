//! Looking: trees, searches, sizes, duplicates, and the ways that only old kernels and file systems take.

use std::fs;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::io::Errno;

use super::kit::{Kit, organize};
use crate::files::sys;
use crate::files::{
    Code, DuplicatesSpec, Entries, Entry, How, Identity, IndexSpec, Kind, ListSpec, OrganizeSpec, Progress, Rule, ScanSpec, SearchSpec, SizesSpec, TreeSpec,
    Watch, digest_of, duplicates, index, list, scan, search_content, search_names, sizes, tree,
};

#[test]
fn a_tree_has_the_shape_of_the_folder() {
    let kit = Kit::new();
    kit.put("s/a/b/c", "123").put("s/a/d", "").put("s/z\n", "").link("s/l", "z").put("s/.hidden", "");
    let spec = TreeSpec { path: "s".into(), depth: 9, ..TreeSpec::default() };
    let whole = tree(&kit.root, &spec, &Watch::default()).unwrap();
    assert_eq!((whole.text.as_str(), whole.next), ("a/\n  b/\n    c  3\n  d  0\nl@\nz\\n  0\n", None));
    let cut = tree(&kit.root, &TreeSpec { limit: 2, ..spec.clone() }, &Watch::default()).unwrap();
    assert_eq!((cut.text.as_str(), cut.next.as_deref(), cut.begins_in.as_deref()), ("a/\n  b/\n", Some("a/b"), Some("s")));
    let flat = tree(&kit.root, &TreeSpec { depth: 1, hidden: true, ..spec }, &Watch::default()).unwrap();
    assert_eq!(flat.text, ".hidden  0\na/\nl@\nz\\n  0\n");
}

#[test]
fn searching_by_name_and_by_content() {
    let kit = Kit::new();
    let long = format!("{}needle{}\nafter needle\n", "x".repeat(300), "y".repeat(300_000));
    kit.put("a/Report.txt", "one\nneedle two\r\nthree needle")
        .put("b/report.md", "")
        .put("c/long", &long)
        .put("d/bin", "needle\0")
        .put("far", &format!("{}needle", "z".repeat(70_000)));
    let spec = SearchSpec::default();
    let names = |text: &str, spec: &SearchSpec| {
        let found = search_names(&kit.root, text, spec, &Watch::default()).unwrap();
        (found.entries.into_iter().map(|entry| entry.path).collect::<Vec<_>>().join(" "), found.truncated)
    };
    assert_eq!(names("report", &spec), ("b/report.md".into(), false));
    assert_eq!(names("report", &SearchSpec { any_case: true, ..spec.clone() }), ("a/Report.txt b/report.md".into(), false));
    assert_eq!(names("", &SearchSpec { include: vec!["*.{txt,md}".into()], limit: 1, ..spec.clone() }), ("a/Report.txt".into(), true));
    let hits = search_content(&kit.root, "ne+dle", &spec, &Watch::default()).unwrap();
    let lines: Vec<_> = hits.hits.iter().map(|hit| (hit.path.as_str(), hit.line, hit.column)).collect();
    // Beyond the start of a line that is too long nothing is looked for.
    assert_eq!(lines, [("a/Report.txt", 2, 0), ("a/Report.txt", 3, 6), ("c/long", 1, 300), ("c/long", 2, 6)]);
    assert_eq!((hits.hits[0].text.as_str(), hits.hits[2].text.contains("needle"), hits.hits[2].text.len()), ("needle two", true, 500));
    // The binary one, and the two lines that are too long.
    assert_eq!((hits.files, hits.left_out, hits.truncated), (4, 3, false));
    assert!(search_content(&kit.root, "needle", &SearchSpec { limit: 2, ..spec.clone() }, &Watch::default()).unwrap().truncated);
    for pattern in ["(", "(a{1000}){1000}{1000}"] {
        assert_eq!(search_content(&kit.root, pattern, &spec, &Watch::default()).unwrap_err().code, Code::Invalid);
    }
}

#[test]
fn what_a_search_leaves_out_is_counted_once_over_all_pages() {
    let kit = Kit::new();
    let (fits, long) = ("x".repeat(64 * 1024), format!("{}\n", "x".repeat(64 * 1024 + 1)));
    // A line that just fits, and one that does not, before, between and behind what is found.
    kit.put("a", &format!("{fits}\r\n{long}needle\n{long}needle\n{fits}")).put("b", "needle\n\0").put("c", "needle\n").put("d/bin", "\0").put("e", &long);
    fs::File::create(kit.at("f")).unwrap().set_len(65 << 20).unwrap();
    fs::write(kit.at("").join(std::ffi::OsStr::from_bytes(b"c\xff")), "").unwrap();
    let (mut after, mut counts) = (None, Vec::new());
    loop {
        let found = search_content(&kit.root, "needle", &SearchSpec { limit: 1, after: after.take(), ..SearchSpec::default() }, &Watch::default()).unwrap();
        counts.push(found.left_out);
        match found.hits.into_iter().next() {
            Some(hit) if found.truncated => after = Some((hit.path, hit.line)),
            _ => break,
        }
    }
    // On the last page: b, the name that is none, d/bin, the line of e, and f.
    assert_eq!(counts, [1, 1, 5]);
    let whole = search_content(&kit.root, "needle", &SearchSpec::default(), &Watch::default()).unwrap();
    assert_eq!((whole.hits.len(), whole.left_out), (3, 7));
    let names = |after: Option<&str>, limit: usize| {
        let spec = SearchSpec { after: after.map(|path| (path.to_owned(), 0)), limit, ..SearchSpec::default() };
        let found = search_names(&kit.root, "", &spec, &Watch::default()).unwrap();
        (found.entries.len(), found.truncated, found.left_out)
    };
    assert_eq!((names(None, 3), names(Some("c"), 9), names(None, 9)), ((3, true, 0), (4, false, 1), (7, false, 1)));
}

#[test]
fn lines_that_cross_blocks_are_found_once() {
    let kit = Kit::new();
    let mut text = String::new();
    for number in 0..60_000 {
        text.push_str(&format!("line {number}{}\n", if number % 1000 == 7 { " needle" } else { "" }));
    }
    kit.put("f", &text);
    let hits = search_content(&kit.root, "needle$", &SearchSpec::default(), &Watch::default()).unwrap();
    assert_eq!(hits.hits.iter().map(|hit| hit.line).collect::<Vec<_>>(), (0..60).map(|number| number * 1000 + 8).collect::<Vec<u64>>());
}

#[test]
fn an_index_counts_everything_and_tells_the_first_largest_and_newest() {
    let kit = Kit::new();
    for number in 0..300 {
        kit.put(&format!("many/{number:03}.dat"), &"x".repeat(number));
    }
    kit.put("b.TXT", "one").put(".hidden", "two").put("plain", "three").link("out", kit.outside().join("secret"));
    let newest = fs::File::options().write(true).open(kit.at("plain")).unwrap();
    newest.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_000)).unwrap();
    let spec = IndexSpec { digest: true, first: 3, top: 2, ..IndexSpec::default() };
    let found = index(&kit.root, &spec, &Watch::default()).unwrap();
    let names = |entries: &[Entry]| entries.iter().map(|entry| entry.path.clone()).collect::<Vec<_>>();
    assert_eq!((found.total.files, found.total.folders, found.hashed), (303, 1, 303));
    assert_eq!(names(&found.first), [".hidden", "b.TXT", "many/000.dat"]);
    assert_eq!(names(&found.largest), ["many/299.dat", "many/298.dat"]);
    assert_eq!(names(&found.newest)[0], "plain");
    assert_eq!(found.first[1].identity.sha256, Some(digest_of(b"one")));
    let extensions: Vec<_> = found.extensions.iter().map(|one| (one.extension.as_str(), one.files, one.bytes)).collect();
    assert_eq!(extensions, [("dat", 300, 44_850), ("", 2, 8)]);
    assert_eq!(index(&kit.root, &IndexSpec { hidden: false, ..IndexSpec::default() }, &Watch::default()).unwrap().total.files, 302);
}

#[test]
fn sizes_add_up_and_duplicates_are_found() {
    let kit = Kit::new();
    kit.put("a/1", "same").put("a/b/2", "same").put("c/3", "same").put("c/4", "sane").put("5", "other").put("6", "");
    fs::hard_link(kit.at("5"), kit.at("7")).unwrap();
    let all = sizes(&kit.root, &SizesSpec { depth: 2, ..SizesSpec::default() }, &Watch::default()).unwrap();
    let told: Vec<_> = all.folders.iter().map(|folder| (folder.path.as_str(), folder.bytes, folder.files)).collect();
    assert_eq!(told, [("a", 8, 2), ("c", 8, 2), ("a/b", 4, 1)]);
    assert_eq!((all.total.bytes, all.total.files, all.total.folders), (26, 7, 3));
    assert_eq!(all.largest.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["5", "7", "a/1", "a/b/2", "c/3", "c/4", "6"]);
    let found = duplicates(&kit.root, &DuplicatesSpec::default(), &Watch::default()).unwrap();
    assert_eq!(found.groups.iter().map(|group| group.paths.join(" ")).collect::<Vec<_>>(), ["a/1 a/b/2 c/3"]);
    assert_eq!((found.wasted, found.more, found.cut), (Some(8), false, false));
}

#[test]
fn a_scan_sees_everything_once_whatever_the_threads() {
    let kit = Kit::new();
    for folder in 0..40 {
        for file in 0..(folder * 20) {
            kit.put(&format!("d{}/e{folder}/f{file}", folder % 7), "x");
        }
    }
    fs::write(kit.at("").join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
    let listing = list(&kit.root, &ListSpec { depth: 9, limit: 10_000, ..ListSpec::default() }, &Watch::default()).unwrap();
    let (mut after, mut expected, mut unnamed) = (listing.next, listing.entries, listing.unnamed);
    while let Some(next) = after {
        let page = list(&kit.root, &ListSpec { depth: 9, limit: 10_000, after: Some(next), ..ListSpec::default() }, &Watch::default()).unwrap();
        expected.extend(page.entries);
        unnamed += page.unnamed;
        after = page.next;
    }
    expected.sort_by(|a, b| a.path.cmp(&b.path));
    for threads in 1..5 {
        let last = AtomicU64::new(0);
        let progress = |progress: Progress| {
            last.fetch_max(progress.entries, Ordering::Relaxed);
        };
        let mut found = Vec::new();
        let watch = Watch { cancel: None, progress: Some(&progress) };
        let summary = scan(&kit.root, &ScanSpec { threads, ..ScanSpec::default() }, &watch, &mut |entry| {
            found.push((entry.path.to_owned(), entry.identity));
            ControlFlow::Continue(())
        })
        .unwrap();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(found, expected.iter().map(|entry| (entry.path.clone(), entry.identity)).collect::<Vec<_>>());
        assert_eq!((summary.entries, summary.unnamed, unnamed), (found.len() as u64, 1, 1));
        assert_eq!(last.into_inner(), summary.entries);
        // It stops when told to, and when cancelled.
        let mut count = 0;
        let stopped = scan(&kit.root, &ScanSpec { threads, ..ScanSpec::default() }, &Watch::default(), &mut |_| {
            count += 1;
            if count == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(stopped.is_ok() && count == 10);
        let cancel = AtomicBool::new(true);
        let watch = Watch { cancel: Some(&cancel), progress: None };
        assert_eq!(scan(&kit.root, &ScanSpec::default(), &watch, &mut |_| ControlFlow::Continue(())).unwrap_err().code, Code::Cancelled);
    }
}

#[test]
fn a_long_folder_is_listed_in_bounded_portions() {
    let kit = Kit::new();
    for number in 0..100 {
        kit.put(&format!("f{number:03}"), "");
    }
    let folder = fs::File::open(kit.at("")).unwrap();
    let (mut last, mut seen) = (None, Vec::new());
    loop {
        let (names, more) = sys::names_after(folder.as_fd(), last.as_deref(), 7).unwrap();
        seen.extend(names.iter().map(|name| name.to_str().unwrap().to_owned()));
        last = names.last().cloned();
        if !more {
            break;
        }
    }
    assert_eq!(seen, (0..100).map(|number| format!("f{number:03}")).collect::<Vec<_>>());
}

#[test]
fn a_kernel_without_openat2_is_as_strict() {
    let kit = Kit::new();
    kit.put("a/b/f", "x").link("a/link", "b").link("a/b/flink", "f").link("out", kit.outside());
    let folder = fs::File::open(kit.at("")).unwrap();
    for (path, flags) in ["", "a", "a/b", "a/b/f", "a/link", "a/link/f", "a/b/flink", "out", "out/secret", "a/b/f/x", "none", "none/x"]
        .into_iter()
        .flat_map(|path| [(path, sys::FOLDER), (path, sys::FILE)])
    {
        let (one, other) = (sys::open_beneath(folder.as_fd(), path, flags), sys::open_by_steps(folder.as_fd(), path, flags));
        assert_eq!(one.as_ref().err(), other.as_ref().err(), "{path}");
        if let (Ok(one), Ok(other)) = (one, other) {
            assert_eq!(sys::look_at(one.as_fd()).unwrap(), sys::look_at(other.as_fd()).unwrap());
        }
    }
}

#[test]
fn a_file_system_without_the_call_replaces_nothing_either() {
    let kit = Kit::new();
    kit.put("f", "f").put("taken", "t").put("d/x", "x").folder("full").put("full/y", "").link("l", "f");
    let folder = fs::File::open(kit.at("")).unwrap();
    let rename = |from, to| sys::rename_new_by_link(folder.as_fd(), from, folder.as_fd(), to);
    for (from, to) in [("f", "taken"), ("d", "taken"), ("d", "full"), ("l", "f")] {
        assert_eq!(rename(from, to), Err(Errno::EXIST), "{from} {to}");
    }
    for (from, to) in [("f", "g"), ("d", "e"), ("l", "m")] {
        rename(from, to).unwrap();
    }
    assert_eq!((kit.text("g").as_deref(), kit.text("e/x").as_deref(), kit.text("taken").as_deref()), (Some("f"), Some("x"), Some("t")));
    assert!(!kit.is_there("f") && !kit.is_there("d") && fs::read_link(kit.at("m")).is_ok());
}

fn entries(files: impl IntoIterator<Item = (String, u64, i64)>) -> Entries {
    let mut entries = Entries::default();
    for (path, size, mtime_ns) in files {
        entries.push(&path, &Identity { dev: 1, ino: 1, kind: Kind::File, mode: 0o644, size, mtime_ns, born_ns: None, sha256: None });
    }
    entries
}

#[test]
fn organising_by_date_size_and_rules() {
    let files = || entries([("x/a.jpg".into(), 5, 1_700_000_000_000_000_000), ("x/b.pdf".into(), 2_000_000, -1), ("x/c.txt".into(), 20_000, 0)]);
    let plan = |how| {
        let plan = organize(files(), &OrganizeSpec { path: "x".into(), how, deep: true, keep_folders: false }).unwrap();
        plan.moves.into_iter().map(|planned| planned.to).collect::<Vec<_>>()
    };
    assert_eq!(plan(How::Date), ["x/2023/11/a.jpg", "x/1969/12/b.pdf", "x/1970/01/c.txt"]);
    assert_eq!(plan(How::Size), ["x/tiny/a.jpg", "x/medium/b.pdf", "x/small/c.txt"]);
    let rule = |glob: &str, folder: &str| Rule { glob: glob.into(), folder: folder.into() };
    assert_eq!(plan(How::Rules(vec![rule("*.{JPG,png}", "pictures/new"), rule("a*", "never")])), ["x/pictures/new/a.jpg"]);
    for bad in [rule("[", "x"), rule("*", "../x"), rule("*", ".trash"), rule("*", "/abs")] {
        assert!(organize(files(), &OrganizeSpec { path: String::new(), how: How::Rules(vec![bad]), deep: true, keep_folders: false }).is_err());
    }
}

#[test]
fn a_hundred_thousand_moves_are_planned_without_two_to_one_place() {
    let files = entries((0..100_000).map(|number| (format!("d{}/name-{}.txt", number % 1_000, number % 300), 1, 0)));
    let plan = organize(files, &OrganizeSpec { path: String::new(), how: How::Extension, deep: true, keep_folders: false }).unwrap();
    let targets: std::collections::HashSet<_> = plan.moves.iter().map(|planned| planned.to.as_str()).collect();
    assert_eq!((plan.moves.len(), targets.len()), (100_000, 100_000));
}
