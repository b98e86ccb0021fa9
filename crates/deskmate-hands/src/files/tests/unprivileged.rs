//! The tests often run as root, whom nothing is denied: here they run again as somebody else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::kit::{AT, Kit};
use crate::files::{Code, ListSpec, Part, ScanSpec, Step, Watch, apply, list, read, scan};

#[test]
fn what_the_system_denies_is_told_and_passed_over() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let kit = Kit::new();
    kit.put("closed/x", "").put("unreadable", "").put("fixed/y", "");
    for (path, mode) in [("closed", 0o000), ("unreadable", 0o000), ("fixed", 0o555)] {
        fs::set_permissions(kit.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    let listing = list(&kit.root, &ListSpec { depth: 9, ..ListSpec::default() }, &Watch::default()).unwrap();
    assert_eq!((listing.entries.len(), listing.unreadable), (4, 1));
    let summary = scan(&kit.root, &ScanSpec { digest: true, ..ScanSpec::default() }, &Watch::default(), &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    assert_eq!((summary.entries, summary.unreadable), (4, 2));
    assert_eq!(read(&kit.root, "unreadable", Part::Whole, 9).unwrap_err().code, Code::Denied);
    let before = fs::read_dir(kit.at("fixed")).unwrap().count();
    for step in
        [Step::trash(&kit.root, "fixed/y", AT), Step::write_new(&kit.root, "fixed/new", Vec::new(), None), Step::move_to(&kit.root, "unreadable", "fixed/z")]
    {
        assert_eq!(apply(&kit.root, &step.unwrap()).unwrap_err().code, Code::Denied);
    }
    assert_eq!(fs::read_dir(kit.at("fixed")).unwrap().count(), before);
    for path in ["closed", "fixed"] {
        fs::set_permissions(kit.at(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn all_of_it_holds_for_a_user_without_rights() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // The program is copied to where everybody may start it from.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut again = Command::new("setpriv");
    again.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).arg("files::").current_dir(folder.path()).env("TMPDIR", folder.path());
    // What it cannot test there was tested here, and that file is not its own.
    again.env_remove("DESKMATE_SKIPPED");
    match again.args(["--skip", "hostile"]).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        Err(error) => testkit::skipped(&format!("setpriv does not run ({error}), so files were not tested under an account without rights")),
    }
}
