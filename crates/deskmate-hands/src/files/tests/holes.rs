//! One test for each hole and bug of the tools that this replaces, named after it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, Instant};

use super::kit::{AT, Kit, open, organize};
use crate::files::{
    Access, Code, Done, Entries, Fault, How, Identity, Kind, ListSpec, Listing, OrganizeSpec, Part, READ_MAX, Root, RootSpec, Rule, ScanSpec, SearchSpec, Step,
    Watch, apply, digest_of, list, list_trash, read, scan, search_content, undo,
};

fn all(root: &Root) -> Entries {
    let mut found = Entries::default();
    scan(root, &ScanSpec::default(), &Watch::default(), &mut |entry| {
        found.push(entry.path, &entry.identity);
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    found
}

fn paths_of(root: &Root) -> Vec<String> {
    let mut found = all(root);
    found.sort_within("");
    found.iter().map(|(path, _)| path.to_owned()).collect()
}

fn paths(listing: &Listing) -> Vec<&str> {
    listing.entries.iter().map(|entry| entry.path.as_str()).collect()
}

fn code<T: std::fmt::Debug>(answer: Result<T, Fault>) -> Code {
    let fault = answer.unwrap_err();
    // No fault tells where the root lies.
    assert!(!fault.message.contains("/tmp") && !fault.message.contains("inside/"), "{}", fault.message);
    fault.code
}

fn whole(root: &Root, path: &str) -> Result<String, Fault> {
    read(root, path, Part::Whole, READ_MAX).map(|content| String::from_utf8(content.bytes).unwrap())
}

#[test]
fn s2_a_root_is_a_folder_that_the_operator_named() {
    for path in ["", "/", "//", "/.", "/..", "relative", "."] {
        let spec = RootSpec { name: "desk".into(), path: path.into(), access: Access::Read, deny: Vec::new(), own: Vec::new() };
        assert_eq!(code(Root::open(&spec)), Code::Invalid, "{path}");
    }
    let spec = RootSpec { name: "desk".into(), path: "/nowhere/at/all".into(), access: Access::Read, deny: Vec::new(), own: Vec::new() };
    let fault = Root::open(&spec).unwrap_err();
    assert_eq!((fault.code, fault.message.as_str()), (Code::NotFound, "desk: not found"));
    let kit = Kit::new();
    for path in ["/etc/passwd", "../outside/secret", "a/../../outside/secret"] {
        assert_eq!(code(whole(&kit.root, path)), Code::Invalid);
        assert_eq!(code(list(&kit.root, &ListSpec { path: path.into(), ..ListSpec::default() }, &Watch::default())), Code::Invalid);
    }
}

#[test]
fn s4_to_s7_a_step_does_only_what_it_was_made_for() {
    let kit = Kit::new();
    kit.put("a", "one");
    let step = Step::move_to(&kit.root, "a", "b").unwrap();
    // The thing was changed since.
    fs::write(kit.at("a"), "another").unwrap();
    assert_eq!(code(apply(&kit.root, &step)), Code::Changed);
    // Another thing has its name.
    let step = Step::move_to(&kit.root, "a", "b").unwrap();
    fs::rename(kit.at("a"), kit.at("kept")).unwrap();
    kit.put("a", "another");
    assert_eq!(code(apply(&kit.root, &step)), Code::Changed);
    // The same length and time, but other content: the digest tells.
    let identity = kit.root.identify("a", true).unwrap();
    let step = Step::Move { from: "a".into(), to: "b".into(), identity };
    let time = fs::metadata(kit.at("a")).unwrap().modified().unwrap();
    let file = fs::File::options().write(true).open(kit.at("a")).unwrap();
    std::io::Write::write_all(&mut &file, b"forgery").unwrap();
    file.set_modified(time).unwrap();
    assert_eq!(code(apply(&kit.root, &step)), Code::Changed);
    // Done once, it can't be done again.
    let step = Step::move_to(&kit.root, "a", "b").unwrap();
    apply(&kit.root, &step).unwrap();
    assert_eq!(code(apply(&kit.root, &step)), Code::NotFound);
    // A step survives being stored.
    let text = serde_json::to_string(&step).unwrap();
    assert_eq!(serde_json::from_str::<Step>(&text).unwrap(), step);
}

#[test]
fn s9_nothing_is_overwritten_and_what_belongs_to_the_desk_is_out_of_reach() {
    let kit = Kit::new();
    kit.put("a", "a").put("b", "b").put(".coworker_audit.jsonl", "log").put(".deskmate-audit.jsonl", "log").folder("empty");
    for step in [
        Step::move_to(&kit.root, "a", "b"),
        Step::move_to(&kit.root, "a", "empty"),
        Step::copy_to(&kit.root, "a", "b"),
        Step::write_new(&kit.root, "b", b"x".to_vec(), None),
        Step::make_folder(&kit.root, "empty"),
    ] {
        assert_eq!(code(apply(&kit.root, &step.unwrap())), Code::Exists);
    }
    for reserved in [".trash", ".trash/files/x", ".TRASH/x", ".coworker_audit.jsonl", "deep/.deskmate-audit.jsonl", ".deskmate-1.tmp"] {
        assert_eq!(code(Step::move_to(&kit.root, reserved, "c")), Code::Reserved);
        assert_eq!(code(Step::move_to(&kit.root, "a", reserved)), Code::Reserved);
        assert_eq!(code(Step::write_new(&kit.root, reserved, Vec::new(), None)), Code::Reserved);
        assert_eq!(code(Step::trash(&kit.root, reserved, AT)), Code::Reserved);
        assert_eq!(code(Step::replace(&kit.root, reserved, Vec::new(), AT)), Code::Reserved);
        // Nor by a step that was made elsewhere.
        let step = Step::Write { to: reserved.into(), content: crate::files::Blob(Vec::new()), mode: None };
        assert_eq!(code(apply(&kit.root, &step)), Code::Reserved);
    }
    assert_eq!((kit.text("a").as_deref(), kit.text("b").as_deref(), kit.text(".coworker_audit.jsonl").as_deref()), (Some("a"), Some("b"), Some("log")));
}

#[test]
fn s10_no_link_is_followed_for_a_change_and_none_leads_out() {
    let kit = Kit::new();
    kit.put("a", "a").put("real/x", "x").link("out", kit.outside()).link("up", "../outside").link("inner", "real").link("abs", kit.at("real"));
    for path in ["out/secret", "up/secret", "abs/x"] {
        assert_eq!(code(whole(&kit.root, path)), Code::Escapes, "{path}");
    }
    assert_eq!(whole(&kit.root, "inner/x").unwrap(), "x");
    for step in [
        Step::Move { from: "a".into(), to: "out/a".into(), identity: kit.root.identify("a", false).unwrap() },
        Step::Move { from: "a".into(), to: "inner/a".into(), identity: kit.root.identify("a", false).unwrap() },
        Step::write_new(&kit.root, "up/new", b"x".to_vec(), None).unwrap(),
        Step::make_folder(&kit.root, "out/new/folder").unwrap(),
    ] {
        assert_eq!(code(apply(&kit.root, &step)), Code::ThroughLink);
    }
    assert_eq!(fs::read_dir(kit.outside()).unwrap().count(), 1);
    // A trash that is a link is no trash.
    kit.link(".trash", kit.outside());
    assert_eq!(code(apply(&kit.root, &Step::trash(&kit.root, "a", AT).unwrap())), Code::ThroughLink);
    assert!(list_trash(&kit.root, None, 10).is_err());
    assert_eq!(fs::read_dir(kit.outside()).unwrap().count(), 1);
}

#[test]
fn s11_what_a_link_leads_to_is_not_looked_at() {
    let kit = Kit::new();
    kit.link("file", kit.outside().join("secret")).link("folder", kit.outside()).link("nothing", "missing");
    let listing = list(&kit.root, &ListSpec { depth: 9, ..ListSpec::default() }, &Watch::default()).unwrap();
    assert_eq!(paths(&listing), ["file", "folder", "nothing"]);
    assert!(listing.entries.iter().all(|entry| entry.identity.kind == Kind::Link));
    let spec = ScanSpec { digest: true, ..ScanSpec::default() };
    scan(&kit.root, &spec, &Watch::default(), &mut |entry| {
        assert_eq!((entry.identity.kind, entry.identity.sha256), (Kind::Link, None));
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    let hits = search_content(&kit.root, "OUTSIDE", &SearchSpec::default(), &Watch::default()).unwrap();
    assert_eq!((hits.hits.len(), hits.files), (0, 0));
    assert_eq!(kit.root.stat("file").unwrap().kind, Kind::Link);
}

#[test]
fn s12_every_read_has_a_bound() {
    let kit = Kit::new();
    let file = fs::File::create(kit.at("long")).unwrap();
    file.set_len(5_000_000_000).unwrap();
    for part in [Part::Whole, Part::Bytes { offset: 0, length: u64::MAX }, Part::Head(u64::MAX), Part::Tail(u64::MAX), Part::Lines { from: 0, to: u64::MAX }] {
        let content = read(&kit.root, "long", part, u64::MAX).unwrap();
        assert_eq!((content.bytes.len() as u64, content.truncated, content.binary), (READ_MAX, true, true), "{part:?}");
    }
    assert!(read(&kit.root, "long", Part::Bytes { offset: u64::MAX, length: 1 }, 1).is_ok_and(|content| content.bytes.is_empty()));
    assert_eq!(code(read(&kit.root, "long", Part::Lines { from: 2, to: 3 }, 10)), Code::TooLarge);
}

#[test]
fn s13_only_what_is_in_the_trash_can_be_restored() {
    let kit = Kit::new();
    kit.put("a", "a").put("b", "b");
    assert_eq!(code(Step::restore(&kit.root, "b", Some("c"))), Code::NotFound);
    apply(&kit.root, &Step::trash(&kit.root, "a", AT).unwrap()).unwrap();
    for id in ["../../b", "..", ".", "", "/etc/passwd", "info", "x/../../../b", "../info", "a\0"] {
        assert_eq!(code(Step::restore(&kit.root, id, Some("c"))), Code::NotFound, "{id}");
        let step = Step::Restore { id: id.into(), to: "c".into(), identity: kit.root.identify("b", false).unwrap() };
        assert_eq!(code(apply(&kit.root, &step)), Code::NotFound, "{id}");
        let step = Step::Purge { id: id.into(), identity: kit.root.identify("b", false).unwrap() };
        assert_eq!(code(apply(&kit.root, &step)), Code::NotFound, "{id}");
    }
    assert_eq!(kit.text("b").as_deref(), Some("b"));
}

#[test]
fn s14_searching_keeps_to_the_root_and_to_what_it_shows() {
    let kit = Kit::with(Access::Read, &[".env", "/private"]);
    kit.put("a/.env", "KEY=1").put("private/x", "KEY=2").put("open", "KEY=3").link("env", "a/.env").link("door", "private").put(".trash/files/x", "KEY=4");
    let spec = SearchSpec { hidden: true, ignored: true, ..SearchSpec::default() };
    let hits = search_content(&kit.root, "KEY", &spec, &Watch::default()).unwrap();
    assert_eq!(hits.hits.iter().map(|hit| hit.path.as_str()).collect::<Vec<_>>(), ["open"]);
    // The same answer whether it is there or not, by whatever way.
    let gone = |path: &str| {
        let fault = whole(&kit.root, path).unwrap_err();
        (fault.code, fault.message.replace(path, "PATH"))
    };
    for path in ["a/.env", "b/.env", "private", "private/x", "private/y", ".trash/files/x", "env", "door/x", "door/y", "a/.ENV"] {
        assert_eq!(gone(path), (Code::NotFound, "desk: PATH: not found".to_owned()), "{path}");
        assert_eq!(code(kit.root.stat(path).map(|found| assert_eq!(found.kind, Kind::Link, "{path}")).and(whole(&kit.root, path))), Code::NotFound);
        assert!(list(&kit.root, &ListSpec { path: path.into(), ..ListSpec::default() }, &Watch::default()).is_err_and(|fault| fault.code == Code::NotFound));
    }
    assert_eq!(paths_of(&kit.root), ["a", "door", "env", "open"]);
}

#[test]
fn s14_what_is_withheld_can_not_be_carried_into_the_open() {
    let kit = Kit::with(Access::Write, &["/config/secret", "*.key"]);
    kit.put("config/secret", "s").put("config/open", "o").put("plain/x", "x");
    let planned = [Step::move_to(&kit.root, "config", "other"), Step::trash(&kit.root, "config", AT)];
    // Planned before the root began to withhold it.
    let before = open(&kit.at(""), Access::Write, &[]);
    let done = [Step::move_to(&before, "config", "other"), Step::trash(&before, "config", AT)].map(|step| apply(&kit.root, &step.unwrap()).unwrap_err());
    for fault in planned.map(Result::unwrap_err).into_iter().chain(done) {
        assert_eq!(fault.code, Code::Denied);
        assert!(!fault.message.contains("secret"), "{}", fault.message);
    }
    assert_eq!(code(Step::move_to(&kit.root, "config/secret", "x")), Code::NotFound);
    assert_eq!(code(Step::write_new(&kit.root, "new.key", Vec::new(), None)), Code::NotFound);
    assert_eq!(code(Step::move_to(&kit.root, "plain/x", "plain/x.key")), Code::NotFound);
    apply(&kit.root, &Step::move_to(&kit.root, "plain", "other").unwrap()).unwrap();
}

#[test]
fn s14_what_was_put_away_before_it_was_withheld_comes_out_nowhere_else() {
    let kit = Kit::new();
    kit.put("config/secret", "s").put("key", "k");
    let trashed = ["config", "key"].map(|path| match apply(&kit.root, &Step::trash(&kit.root, path, AT).unwrap()).unwrap() {
        Done::Trashed { id, .. } => id,
        other => panic!("{other:?}"),
    });
    let strict = open(&kit.at(""), Access::Write, &["/config/secret", "/key"]);
    assert_eq!(list_trash(&strict, None, 9).unwrap().entries.len(), 1);
    let [folder, file] = trashed.map(|id| apply(&strict, &Step::restore(&strict, &id, Some("open")).unwrap()).map_err(|fault| fault.code));
    assert_eq!((folder, file), (Err(Code::Denied), Err(Code::NotFound)));
    let entry = list_trash(&strict, None, 9).unwrap().entries.remove(0);
    apply(&strict, &Step::restore(&strict, &entry.id, None).unwrap()).unwrap();
    assert_eq!(code(whole(&strict, "config/secret")), Code::NotFound);
}

#[test]
fn s20_the_audit_file_can_be_read_and_nothing_else() {
    let kit = Kit::new();
    kit.put(".coworker_audit.jsonl", "{}\n").put("x.jsonl", "{}");
    assert_eq!(whole(&kit.root, ".coworker_audit.jsonl").unwrap(), "{}\n");
    let plan = organize(all(&kit.root), &OrganizeSpec { path: String::new(), how: How::Extension, deep: true, keep_folders: false }).unwrap();
    assert_eq!(plan.moves.iter().map(|planned| planned.to.as_str()).collect::<Vec<_>>(), ["jsonl/x.jsonl"]);
}

#[test]
fn c6_organising_leaves_repositories_trash_and_audit_files_alone() {
    let kit = Kit::new();
    kit.put(".git/config", "").put(".git/objects/ab/cd", "").put("project/.git/HEAD", "").put("project/src/main.rs", "").put(".trash/files/old.txt", "");
    kit.put(".deskmate-audit.jsonl", "").put(".config/settings.json", "").put("wc/.svn/entries", "").put("hg/.hg/x", "").put("a.txt", "").put("sub/b.TXT", "");
    let spec = OrganizeSpec { path: String::new(), how: How::Extension, deep: true, keep_folders: false };
    let plan = organize(all(&kit.root), &spec).unwrap();
    let moves: Vec<_> = plan.moves.iter().map(|planned| (planned.from.as_str(), planned.to.as_str())).collect();
    assert_eq!(moves, [("a.txt", "txt/a.txt"), ("sub/b.TXT", "txt/b.TXT")]);
    assert_eq!((plan.left_out.hidden, plan.left_out.repository), (7, 1));
    // Only the folder's own files unless more is asked for.
    let plan = organize(all(&kit.root), &OrganizeSpec { deep: false, ..spec.clone() }).unwrap();
    assert_eq!(plan.moves.len(), 1);
    let plan = organize(all(&kit.root), &OrganizeSpec { keep_folders: true, ..spec }).unwrap();
    assert_eq!(plan.moves.last().map(|planned| planned.to.as_str()), Some("txt/sub/b.TXT"));
}

#[test]
fn c7_two_files_of_one_name_get_two_places_and_every_planned_move_happens() {
    let kit = Kit::new();
    kit.put("a/x.txt", "1").put("b/x.txt", "2").put("c/x.txt", "3").put("txt/x.txt", "4").put("txt/x (2).txt", "5").put("pdf", "a file").put("d/y.pdf", "6");
    let spec = OrganizeSpec { path: String::new(), how: How::Extension, deep: true, keep_folders: false };
    let plan = organize(all(&kit.root), &spec).unwrap();
    for planned in &plan.moves {
        apply(&kit.root, &Step::Move { from: planned.from.clone(), to: planned.to.clone(), identity: planned.identity }).unwrap();
    }
    let texts = ["txt/x (3).txt", "txt/x (4).txt", "txt/x (5).txt", "txt/x.txt", "txt/x (2).txt", "pdf (2)/y.pdf", "no_ext/pdf"].map(|path| kit.text(path));
    assert_eq!(texts.map(Option::unwrap_or_default), ["1", "2", "3", "4", "5", "6", "a file"]);
    // What is organised stays as it is, but for the folder that had to wait for its name.
    let again = organize(all(&kit.root), &spec).unwrap();
    assert_eq!(again.moves.iter().map(|planned| planned.to.as_str()).collect::<Vec<_>>(), ["pdf/y.pdf"]);
    // A folder that the plan makes is a name that is taken, too, and so is every folder above it.
    let (docs, deep) = (("z*", "docs"), ("b*", "docs/zebra/old"));
    let kept = [("y", "docs"), ("a", "docs/k"), ("l", "docs/k")];
    for (rules, files, went) in [
        (&[("b*", "docs/zebra"), docs][..], &["banana", "zebra"][..], &["docs/zebra/banana", "docs/zebra (2)"][..]),
        (&[deep, docs], &["banana", "zebra"], &["docs/zebra/old/banana", "docs/zebra (2)"]),
        (&kept, &["a", "k/a/y"], &["docs/k/a", "docs/k/a (2)/y"]),
        (&kept, &["k/l/y", "l"], &["docs/k/l/y", "docs/k/l (2)"]),
    ] {
        let kit = Kit::new();
        for file in files {
            kit.put(file, file);
        }
        let rules = rules.iter().map(|(glob, folder)| Rule { glob: (*glob).into(), folder: (*folder).into() }).collect();
        let plan = organize(all(&kit.root), &OrganizeSpec { how: How::Rules(rules), keep_folders: true, ..spec.clone() }).unwrap();
        for planned in &plan.moves {
            apply(&kit.root, &Step::Move { from: planned.from.clone(), to: planned.to.clone(), identity: planned.identity }).unwrap();
        }
        assert_eq!(went.iter().map(|path| kit.text(path).unwrap_or_default()).collect::<Vec<_>>(), files);
    }
}

#[test]
fn c8_the_trash_takes_the_link_itself_keeps_names_apart_and_gives_all_back() {
    let kit = Kit::new();
    kit.put("target", "t").link("link", "target").put("a/same", "1").put("b/same", "2").put("tree/x/y", "3");
    let mut done = Vec::new();
    for path in ["link", "a/same", "b/same", "tree"] {
        done.push(apply(&kit.root, &Step::trash(&kit.root, path, AT).unwrap()).unwrap());
        assert!(!kit.is_there(path));
    }
    assert_eq!(kit.text("target").as_deref(), Some("t"));
    let listing = list_trash(&kit.root, None, 2).unwrap();
    let next = list_trash(&kit.root, listing.next.as_deref(), 10).unwrap();
    let mut from: Vec<_> = listing.entries.iter().chain(&next.entries).map(|entry| (entry.from.clone().unwrap(), entry.at_us)).collect();
    from.sort();
    assert_eq!(from, ["a/same", "b/same", "link", "tree"].map(|path| (path.to_owned(), Some(AT))));
    let note = fs::read_dir(kit.at(".trash/info")).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.to_string_lossy().contains("link")).unwrap();
    assert_eq!(fs::read_to_string(note).unwrap(), "[Trash Info]\nPath=link\nDeletionDate=2023-11-14T22:13:20\n");
    for entry in listing.entries.iter().chain(&next.entries) {
        apply(&kit.root, &Step::restore(&kit.root, &entry.id, None).unwrap()).unwrap();
    }
    assert_eq!((kit.text("a/same").as_deref(), kit.text("b/same").as_deref(), kit.text("tree/x/y").as_deref()), (Some("1"), Some("2"), Some("3")));
    assert_eq!(fs::read_link(kit.at("link")).unwrap().to_str(), Some("target"));
    assert!(list_trash(&kit.root, None, 10).unwrap().entries.is_empty());
    assert_eq!(fs::read_dir(kit.at(".trash/info")).unwrap().count(), 0);
    // What is there is not overwritten by restoring.
    let Done::Trashed { id, .. } = apply(&kit.root, &Step::trash(&kit.root, "target", AT).unwrap()).unwrap() else { panic!() };
    kit.put("target", "new");
    assert_eq!(code(apply(&kit.root, &Step::restore(&kit.root, &id, None).unwrap())), Code::Exists);
    apply(&kit.root, &Step::restore(&kit.root, &id, Some("other/place")).unwrap()).unwrap();
    assert_eq!((kit.text("target").as_deref(), kit.text("other/place").as_deref()), (Some("new"), Some("t")));
}

#[test]
fn c8_purging_removes_from_the_trash_and_nothing_else() {
    let kit = Kit::new();
    kit.put("tree/x/y", "3").link("tree/out", kit.outside()).put("keep", "k");
    let Done::Trashed { id, .. } = apply(&kit.root, &Step::trash(&kit.root, "tree", AT).unwrap()).unwrap() else { panic!() };
    let done = apply(&kit.root, &Step::purge(&kit.root, &id).unwrap()).unwrap();
    assert_eq!(code(undo(&kit.root, &done)), Code::Irreversible);
    assert!(list_trash(&kit.root, None, 10).unwrap().entries.is_empty());
    assert_eq!(fs::read_dir(kit.at(".trash/files")).unwrap().count() + fs::read_dir(kit.at(".trash/info")).unwrap().count(), 0);
    assert!(kit.is_there("keep") && kit.outside().join("secret").exists());
}

#[test]
fn what_the_earlier_server_put_into_the_trash_comes_back_once_it_lies_with_the_rest() {
    let kit = Kit::new();
    let id = "a.txt.1700000000000";
    kit.put(&format!(".trash/{id}"), "1").folder(".trash/files").folder(".trash/info");
    assert!(list_trash(&kit.root, None, 10).unwrap().entries.is_empty());
    fs::rename(kit.at(".trash").join(id), kit.at(".trash/files").join(id)).unwrap();
    let listed = list_trash(&kit.root, None, 10).unwrap().entries;
    assert_eq!((listed[0].id.as_str(), listed[0].from.as_deref()), (id, None));
    assert_eq!(code(Step::restore(&kit.root, id, None)), Code::NotFound);
    apply(&kit.root, &Step::restore(&kit.root, id, Some("a.txt")).unwrap()).unwrap();
    assert_eq!(kit.text("a.txt").as_deref(), Some("1"));
}

#[test]
fn c9_a_digest_is_of_the_whole_file() {
    let kit = Kit::new();
    let mut bytes = vec![7_u8; 26 * 1024 * 1024];
    fs::write(kit.at("one"), &bytes).unwrap();
    *bytes.last_mut().unwrap() = 8;
    fs::write(kit.at("two"), &bytes).unwrap();
    let (one, two) = (kit.root.identify("one", true).unwrap(), kit.root.identify("two", true).unwrap());
    assert!(one.sha256.is_some() && one.sha256 != two.sha256);
    assert_eq!(two.sha256, Some(digest_of(&bytes)));
    scan(&kit.root, &ScanSpec { digest: true, ..ScanSpec::default() }, &Watch::default(), &mut |entry| {
        let meant = if entry.path == "one" { one } else { two };
        assert_eq!(entry.identity, meant);
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
}

#[test]
fn c10_nothing_waits_for_a_fifo() {
    let kit = Kit::new();
    let folder = rustix::fs::open(kit.at(""), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    rustix::fs::mknodat(&folder, "fifo", rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(kit.at("socket")).unwrap();
    let start = Instant::now();
    for path in ["fifo", "socket"] {
        assert_eq!(code(whole(&kit.root, path)), Code::NotAFile);
        assert_eq!(kit.root.stat(path).unwrap().kind, Kind::Other);
        assert_eq!(kit.root.identify(path, true).unwrap().kind, Kind::Other);
        assert_eq!(code(Step::copy_to(&kit.root, path, "copy")), Code::NotAFile);
    }
    let summary = scan(&kit.root, &ScanSpec { digest: true, ..ScanSpec::default() }, &Watch::default(), &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    assert_eq!((summary.entries, summary.files), (2, 0));
    search_content(&kit.root, "x", &SearchSpec::default(), &Watch::default()).unwrap();
    // It can be put away like anything else.
    let done = apply(&kit.root, &Step::trash(&kit.root, "fifo", AT).unwrap()).unwrap();
    undo(&kit.root, &done).unwrap();
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn c14_a_listing_has_pages_depth_filters_and_ignore_rules() {
    let kit = Kit::new();
    kit.put(".gitignore", "node_modules/\n*.log\n!keep.log\n/top\n").put("node_modules/x/y.js", "").put("a.log", "").put("keep.log", "").put("top", "");
    kit.put("src/top", "")
        .put("src/a.rs", "")
        .put("src/.ignore", "gen\n")
        .put("src/gen/b.rs", "")
        .put("src/deep/er/c.rs", "")
        .put(".hidden/x", "")
        .put(".git/x", "");
    kit.put("src-x", "");
    let get = |spec: ListSpec| list(&kit.root, &spec, &Watch::default()).unwrap();
    let deep = ListSpec { depth: 9, ..ListSpec::default() };
    let shown = get(deep.clone());
    let expected = ["keep.log", "src", "src/a.rs", "src/deep", "src/deep/er", "src/deep/er/c.rs", "src/top", "src-x"];
    assert_eq!(paths(&shown), expected);
    assert_eq!(paths(&get(ListSpec { path: "src".into(), ..deep.clone() })), expected[2..7]);
    assert_eq!(paths(&get(ListSpec::default())), ["keep.log", "src", "src-x"]);
    assert_eq!(paths(&get(ListSpec { include: vec!["*.rs".into()], ..deep.clone() })), ["src/a.rs", "src/deep/er/c.rs"]);
    assert_eq!(get(ListSpec { hidden: true, ignored: true, ..deep.clone() }).entries.len(), 21);
    // Pages of any length add up to the same, also when something is added and removed in between.
    for limit in 1..9 {
        let (mut after, mut seen) = (None, Vec::new());
        loop {
            let page = get(ListSpec { after, limit, ..deep.clone() });
            assert!(page.entries.len() <= limit);
            seen.extend(page.entries.iter().map(|entry| entry.path.clone()));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, expected, "{limit}");
    }
    let page = get(ListSpec { limit: 4, ..deep.clone() });
    fs::remove_dir_all(kit.at("src/deep")).unwrap();
    assert_eq!(paths(&get(ListSpec { after: page.next, ..deep.clone() })), ["src/top", "src-x"]);
    assert_eq!(code(list(&kit.root, &ListSpec { path: "src".into(), after: Some("elsewhere".into()), ..deep }, &Watch::default())), Code::Invalid);
}

#[test]
fn a_root_for_reading_changes_nothing() {
    let kit = Kit::new();
    kit.put("a", "a");
    let step = Step::trash(&kit.root, "a", AT).unwrap();
    let reading = open(&kit.at(""), Access::Read, &[]);
    assert_eq!(code(apply(&reading, &step)), Code::ReadOnly);
    let done = apply(&kit.root, &step).unwrap();
    assert_eq!(code(undo(&reading, &done)), Code::ReadOnly);
}

#[test]
fn only_an_empty_folder_is_removed_and_the_very_same_comes_back() {
    let kit = Kit::new();
    kit.put("full/x", "").folder("empty");
    let inode = fs::metadata(kit.at("empty")).unwrap().ino();
    assert_eq!(code(apply(&kit.root, &Step::remove_empty_folder(&kit.root, "full", AT).unwrap())), Code::NotEmpty);
    assert_eq!(code(apply(&kit.root, &Step::remove_empty_folder(&kit.root, "full/x", AT).unwrap())), Code::NotAFolder);
    let done = apply(&kit.root, &Step::remove_empty_folder(&kit.root, "empty", AT).unwrap()).unwrap();
    assert!(!kit.is_there("empty"));
    undo(&kit.root, &done).unwrap();
    assert_eq!(fs::metadata(kit.at("empty")).unwrap().ino(), inode);
}

#[test]
fn replacing_keeps_the_old_file_and_undoing_brings_the_very_same_back() {
    let kit = Kit::new();
    kit.put("a/doc", "old");
    fs::set_permissions(kit.at("a/doc"), fs::Permissions::from_mode(0o640)).unwrap();
    let before = (kit.picture(), fs::metadata(kit.at("a/doc")).unwrap().ino());
    let done = apply(&kit.root, &Step::replace(&kit.root, "a/doc", b"new".to_vec(), AT).unwrap()).unwrap();
    assert_eq!(kit.text("a/doc").as_deref(), Some("new"));
    assert_eq!(fs::metadata(kit.at("a/doc")).unwrap().permissions().mode() & 0o777, 0o640);
    let kept = list_trash(&kit.root, None, 10).unwrap().entries;
    assert_eq!(kept.iter().map(|entry| entry.from.as_deref().unwrap()).collect::<Vec<_>>(), ["a/doc"]);
    undo(&kit.root, &done).unwrap();
    assert_eq!((kit.picture(), fs::metadata(kit.at("a/doc")).unwrap().ino()), before);
    assert!(list_trash(&kit.root, None, 10).unwrap().entries.is_empty());
    // What was edited since is not thrown away.
    let done = apply(&kit.root, &Step::replace(&kit.root, "a/doc", b"new".to_vec(), AT).unwrap()).unwrap();
    fs::write(kit.at("a/doc"), "edited").unwrap();
    assert_eq!(code(undo(&kit.root, &done)), Code::Changed);
    assert_eq!(kit.text("a/doc").as_deref(), Some("edited"));
}

#[test]
fn reading_parts() {
    let kit = Kit::new();
    kit.put("f", "one\ntwo\nthree\nfour").put("e", "").put("n", "\n\n");
    let get = |path: &str, part| String::from_utf8(read(&kit.root, path, part, 100).unwrap().bytes).unwrap();
    assert_eq!(get("f", Part::Whole), "one\ntwo\nthree\nfour");
    assert_eq!(get("f", Part::Bytes { offset: 4, length: 3 }), "two");
    assert_eq!(get("f", Part::Head(2)), "one\ntwo\n");
    assert_eq!(get("f", Part::Tail(2)), "three\nfour");
    assert_eq!(get("f", Part::Tail(9)), "one\ntwo\nthree\nfour");
    assert_eq!(get("f", Part::Lines { from: 2, to: 3 }), "two\nthree\n");
    assert_eq!(get("f", Part::Lines { from: 9, to: 10 }), "");
    assert_eq!((get("e", Part::Tail(3)), get("n", Part::Tail(1)), get("n", Part::Head(1))), (String::new(), "\n".into(), "\n".into()));
    let cut = read(&kit.root, "f", Part::Tail(3), 6).unwrap();
    assert_eq!((cut.bytes.as_slice(), cut.offset, cut.truncated), (b"e\nfour".as_slice(), 12, true));
    let cut = read(&kit.root, "f", Part::Lines { from: 2, to: 4 }, 5).unwrap();
    assert_eq!((cut.bytes.as_slice(), cut.offset, cut.truncated), (b"two\nt".as_slice(), 4, true));
}

#[test]
fn an_identity_survives_json_whole() {
    let identity = Identity {
        dev: u64::MAX,
        ino: u64::MAX,
        kind: Kind::File,
        mode: 0o644,
        size: 5,
        mtime_ns: 1_700_000_000_123_456_789,
        born_ns: Some(-1),
        sha256: Some(digest_of(b"x")),
    };
    let text = serde_json::to_string(&identity).unwrap();
    assert!(text.contains("\"1700000000123456789\"") && text.contains("\"born_ns\":\"-1\""), "{text}");
    assert_eq!(serde_json::from_str::<Identity>(&text).unwrap(), identity);
    let plain = Identity { born_ns: None, sha256: None, ..identity };
    assert_eq!(serde_json::from_str::<Identity>(&serde_json::to_string(&plain).unwrap()).unwrap(), plain);
}

#[test]
fn what_is_the_desks_own_is_not_there() {
    let kit = Kit::new();
    kit.put("me/.desk/store", "SECRET").put("me/key.pem", "SECRET").put("me/note", "SECRET-less").put("me/deep/x", "x");
    kit.link("way", "me/.desk/store").link("me/other", ".desk");
    let own = vec![kit.at("me/.desk"), kit.at("me/key.pem"), kit.at("me/deep/later")];
    let spec = RootSpec { name: "desk".into(), path: kit.at(""), access: Access::Write, deny: Vec::new(), own };
    let root = Root::open(&spec).unwrap();
    let whole = ListSpec { depth: 9, hidden: true, ignored: true, ..ListSpec::default() };
    let names: Vec<String> = list(&root, &whole, &Watch::default()).unwrap().entries.into_iter().map(|entry| entry.path).collect();
    assert_eq!(names, ["me", "me/deep", "me/deep/x", "me/note", "me/other", "way"]);
    // A file that comes to be there later, as those beside a store do.
    kit.put("me/deep/later", "SECRET");
    for path in ["me/.desk/store", "me/.DESK/store", "me/key.pem", "way", "me/other/store", "me/deep/later"] {
        assert_eq!(code(read(&root, path, Part::Whole, 99)), Code::NotFound, "{path}");
    }
    assert_eq!(code(list(&root, &ListSpec { path: "me/.desk".into(), ..whole }, &Watch::default())), Code::NotFound);
    assert_eq!(code(root.stat("me/other/store")), Code::NotFound);
    let scanned: Vec<String> = paths_of(&root);
    assert!(scanned.len() == 6 && !scanned.iter().any(|path| path.contains(".desk") || path.contains("key")), "{scanned:?}");
    let hits = search_content(&root, "SECRET", &SearchSpec { hidden: true, ignored: true, ..SearchSpec::default() }, &Watch::default()).unwrap().hits;
    assert_eq!(hits.iter().map(|hit| hit.path.as_str()).collect::<Vec<_>>(), ["me/note"]);
    // No plan takes it, writes into it, or carries it away with a folder around it.
    assert_eq!(code(Step::move_to(&root, "me/.desk/store", "mine")), Code::NotFound);
    assert_eq!(code(Step::copy_to(&root, "me/key.pem", "mine")), Code::NotFound);
    assert_eq!(code(Step::trash(&root, "me/.desk", AT)), Code::NotFound);
    assert_eq!(code(Step::write_new(&root, "me/.desk/new", Vec::new(), None)), Code::NotFound);
    assert_eq!(code(Step::move_to(&root, "me", "mine")), Code::Denied);
    assert_eq!(code(Step::trash(&root, "me", AT)), Code::Denied);
    // A root that is the desk's own folder, or lies in it, is none.
    for path in ["me/.desk", "me/.desk/inner"] {
        kit.folder(path);
        let inside = RootSpec { path: kit.at(path), ..spec.clone() };
        assert_eq!(code(Root::open(&inside)), Code::Invalid, "{path}");
    }
}
