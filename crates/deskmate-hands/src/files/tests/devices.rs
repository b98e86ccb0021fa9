//! A second file system mounted beneath the root: steps across it copy, check and then remove. The test runs itself again
//! in a mount namespace of its own, which an ordinary user may have too.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::kit::{AT, Kit, open, picture};
use crate::files::{Access, Code, Probe, Step, apply, list_trash, probe, undo};

const PLACE: &str = "DESKMATE_HANDS_MOUNTED";

#[test]
fn c8_steps_across_devices_copy_check_and_remove() {
    if let Some(place) = std::env::var_os(PLACE) {
        return across(&PathBuf::from(place));
    }
    let kit = Kit::new();
    kit.folder("mnt");
    let script = "mount -t tmpfs tmpfs \"$PLACE/mnt\" || exit 77; exec \"$0\" --exact files::tests::devices::c8_steps_across_devices_copy_check_and_remove";
    let script = script.replace("$PLACE", &format!("${PLACE}"));
    let again = Command::new("unshare").args(["-rm", "sh", "-c", &script]).arg(std::env::current_exe().unwrap()).env(PLACE, kit.at("")).output();
    match again {
        Ok(output) if output.status.success() => assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed")),
        Ok(output) if output.status.code() == Some(101) => panic!("{}", String::from_utf8_lossy(&output.stdout)),
        // No namespaces here: nothing can be mounted, and nothing is shown.
        other => println!("not tried: {other:?}"),
    }
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
}
