//! Files that were not granted.

use crate::bench::{Bench, copy, text, ways};
use deskmate_hands::sandbox::{Ended, Meant};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[test]
fn nothing_outside_can_be_read_or_listed() {
    let bench = Bench::new();
    bench.only_outside("open(BENCH + '/home/secret').read(); print('done')");
    bench.only_outside("import os; os.listdir(BENCH + '/home'); print('done')");
    bench.only_outside("open('/etc/passwd').read(); print('done')");
    bench.only_outside("import os; os.listdir('/tmp'); print('done')");
    bench.only_outside("import os; os.listdir('/proc/self/fd'); print('done')");
    bench.only_outside("import os; os.listdir('/'); [open('/etc/hostname').read()]; print('done')");
}

#[test]
fn nothing_outside_can_be_changed() {
    let bench = Bench::new();
    for act in [
        "open(BENCH + '/home/new', 'w').write('x')",
        "os.remove(BENCH + '/home/gone')",
        "os.truncate(BENCH + '/home/secret', 3)",
        "os.open(BENCH + '/home/secret', os.O_RDONLY | os.O_TRUNC)",
        "os.chmod(BENCH + '/home', 0o777)",
        "os.utime(BENCH + '/home/secret', (0, 0))",
        "os.setxattr(BENCH + '/home/secret', 'user.x', b'x')",
        "os.listxattr(BENCH + '/home/secret')",
        "os.link(BENCH + '/home/secret', BENCH + '/home/linked')",
        "os.rename(BENCH + '/home/secret', BENCH + '/home/moved')",
    ] {
        let afresh = || {
            for name in ["gone", "new", "linked", "moved", "secret"] {
                drop(fs::remove_file(bench.path("home").join(name)));
            }
            bench.put("home/gone", "");
            bench.put("home/secret", "the secret");
        };
        afresh();
        let code = format!("import os; {act}; print('done')");
        let outside = bench.outside(&code);
        assert_eq!(text(&outside.stdout), "done\n", "outside: {}", text(&outside.stderr));
        afresh();
        bench.never_inside(&code);
        assert_eq!(fs::read_to_string(bench.path("home/secret")).unwrap(), "the secret");
    }
}

#[test]
fn what_may_be_read_cannot_be_changed() {
    let bench = Bench::new();
    bench.put("open/note", "the note");
    for act in ["open(NOTE, 'a').write('x')", "os.remove(NOTE)", "os.chmod(NOTE, 0o777)", "os.utime(NOTE, (0, 0))", "os.truncate(NOTE, 1)"] {
        for way in ways() {
            let mut spec = bench.python(&format!("import os; NOTE = BENCH + '/open/note'; open(NOTE).read(); print('read'); {act}; print('changed')"));
            spec.read_only.push(bench.path("open"));
            let outcome = bench.run(&spec, way);
            assert_eq!(text(&outcome.stdout.bytes), "read\n", "{way:?} {act}");
            assert_eq!(fs::read_to_string(bench.path("open/note")).unwrap(), "the note");
            assert_eq!(fs::metadata(bench.path("open/note")).unwrap().mode() & 0o777, 0o644);
        }
    }
}

#[test]
fn a_link_in_a_writable_directory_leads_nowhere() {
    let bench = Bench::new();
    for act in [
        "os.symlink(BENCH + '/home/secret', 'way'); print(open('way').read())",
        "os.symlink(BENCH + '/home', 'way'); print(open('way/secret').read())",
        "os.symlink(BENCH + '/home/new', 'way'); print(open('way', 'w').write('x'))",
        "os.link(BENCH + '/home/secret', 'way'); print(open('way').read())",
        "os.rename(BENCH + '/home/secret', 'way'); print(open('way').read())",
        "os.symlink('/proc/1/root', 'way'); print(open('way' + BENCH + '/home/secret').read())",
        "os.chdir('/'); os.chdir('..'); print(open('.' + BENCH + '/home/secret').read())",
        "d = os.open('.', os.O_RDONLY); print(open(os.open('../' * 20 + BENCH[1:] + '/home/secret', os.O_RDONLY, dir_fd=d)).read())",
    ] {
        let afresh = || {
            for name in ["home/new", "open/way"] {
                drop(fs::remove_file(bench.path(name)));
            }
            bench.put("home/secret", "the secret");
        };
        let code = format!("import os; {act}");
        // The root of the first process is closed to an ordinary account anyway.
        if !act.contains("/proc/1") {
            let outside = bench.outside(&code);
            assert!(outside.status.success() && !outside.stdout.is_empty(), "outside: {act}: {}", text(&outside.stderr));
        }
        for way in ways() {
            afresh();
            let mut spec = bench.python(&code);
            spec.read_write.push(bench.path("open"));
            spec.directory = Some(bench.path("open"));
            let outcome = bench.run(&spec, way);
            assert_eq!(text(&outcome.stdout.bytes), "", "{way:?} {act}");
            assert_eq!(outcome.ended, Ended::Exited { code: 1 }, "{way:?} {act}: {}", text(&outcome.stderr.bytes));
            assert!(!bench.path("home/new").exists());
            assert_eq!(fs::read_to_string(bench.path("home/secret")).unwrap(), "the secret");
        }
        afresh();
    }
}

#[test]
fn what_it_leaves_is_removed_and_links_are_not_followed() {
    let bench = Bench::new();
    let code = "import os
os.makedirs('a/b/c'); open('a/b/c/x', 'w').write('x'); os.symlink(BENCH + '/home', 'a/home'); os.symlink('/', 'root')
os.mkfifo('pipe'); os.mkdir('closed', 0); os.mkdir('a/closed', 0)";
    for way in ways() {
        bench.run(&bench.python(code), way);
        assert_eq!(fs::read_to_string(bench.path("home/secret")).unwrap(), "the secret");
    }
}

#[test]
fn it_makes_no_file_that_runs_as_its_owner() {
    let bench = Bench::new();
    for act in
        ["os.chmod('main.py', 0o4755)", "os.chmod('main.py', 0o2755)", "os.close(os.open('x', os.O_CREAT | os.O_WRONLY, 0o6755))", "os.mknod('x', 0o104755)"]
    {
        let code = format!("import os; os.umask(0); open('main.py', 'a').close(); {act}; print('done')");
        bench.only_outside(&code);
        fs::remove_file(bench.path("open/main.py")).unwrap();
        drop(fs::remove_file(bench.path("open/x")));
    }
}

#[test]
fn an_open_file_is_asked_only_what_is_harmless() {
    let bench = Bench::new();
    // The flags of a file (`FS_IOC_SETFLAGS`, here `nodump`) can be set through an open file that may only be read.
    let code = "import fcntl; f = open(BENCH + '/open/note'); fcntl.ioctl(f, 0x40086602, (64).to_bytes(8, 'little')); print('done')";
    let outside = bench.outside(code);
    assert!(text(&outside.stdout) == "done\n" || text(&outside.stderr).contains("Errno 95"), "{}", text(&outside.stderr));
    for way in ways() {
        let mut spec = bench.python(code);
        spec.read_only.push(bench.path("open"));
        let outcome = bench.run(&spec, way);
        assert!(outcome.stdout.bytes.is_empty() && text(&outcome.stderr.bytes).contains("Operation not permitted"), "{way:?}");
    }
}

#[test]
fn a_program_that_runs_as_its_owner_gives_nothing() {
    let bench = Bench::new();
    // As root the tests make a copy of `id` that runs as root; otherwise only the flag that forbids it is looked at.
    copy("/usr/bin/id", &bench.path("open/id"));
    fs::set_permissions(bench.path("open/id"), fs::Permissions::from_mode(0o4755)).unwrap();
    let path = bench.path("open/id");
    let outside = crate::bench::ordinary(&path).arg("-u").output().unwrap();
    let owner = fs::metadata(&path).unwrap().uid();
    assert_eq!(text(&outside.stdout).trim(), owner.to_string());
    let ordinary = crate::bench::ordinary("/usr/bin/id").arg("-u").output().unwrap();
    for way in ways() {
        let mut spec = bench.python("import os; os.execv(BENCH + '/open/id', ['id', '-u'])");
        spec.read_only.push(bench.path("open"));
        assert_eq!(bench.prints(&spec, way), text(&ordinary.stdout));
        let flag = bench.python("import ctypes; print(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))");
        assert_eq!(bench.prints(&flag, way), "1\n");
    }
}

#[test]
fn what_it_wrote_cannot_be_executed() {
    let bench = Bench::new();
    bench.only_outside("import os, shutil\nopen('copy', 'wb').write(open('/usr/lib/locale/C.utf8/LC_CTYPE', 'rb').read(0) or b'#!/usr/bin/python3\\nprint(\"done\")\\n')\nos.close(os.open('other', os.O_CREAT, 0o755)); open('other', 'w').write(open('copy').read()); os.execv('./other', ['other'])");
}

#[test]
fn what_was_put_in_the_place_of_a_granted_folder_is_not_given() {
    let bench = Bench::new();
    for way in ways() {
        let granted = bench.path("open");
        let found = fs::metadata(&granted).unwrap();
        let mut spec = bench.python("import os; print(sorted(os.listdir(BENCH + '/open')))");
        spec.read_only.push(granted.clone());
        spec.meant.push(Meant { path: granted.clone(), dev: found.dev(), ino: found.ino() });
        assert_eq!(bench.prints(&spec, way), "['note']\n", "{way:?}");
        let aside = bench.path("aside");
        fs::rename(&granted, &aside).unwrap();
        // Another folder under the same name: only whoever has hold of it can tell.
        fs::rename(bench.path("home"), &granted).unwrap();
        let response = bench.respond(&spec, way);
        assert!(response.outcome.is_none() && response.error.as_ref().is_some_and(|error| error.contains("not any more the one")), "{way:?}: {response:?}");
        fs::rename(&granted, bench.path("home")).unwrap();
        // A link to another folder, and one to the very folder.
        for target in ["home", "aside"] {
            std::os::unix::fs::symlink(bench.path(target), &granted).unwrap();
            let response = bench.respond(&spec, way);
            assert!(response.outcome.is_none() && response.error.as_ref().is_some_and(|error| error.contains("not any more the one")), "{way:?}: {response:?}");
            fs::remove_file(&granted).unwrap();
        }
        fs::rename(&aside, &granted).unwrap();
        bench.nothing_left();
    }
}
