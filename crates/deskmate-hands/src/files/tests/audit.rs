//! The audit file: added to at its end, never through a link, never over what somebody else wrote.

use std::fs;

use super::kit::{AT, Kit};
use crate::files::{Access, AuditEnd, Code, Step, add_to_audit, audit_end, set_audit_aside};

const FILE: &str = ".deskmate-audit.jsonl";

#[test]
fn lines_are_added_and_the_last_one_is_found() {
    let kit = Kit::new();
    assert_eq!(audit_end(&kit.root).unwrap(), AuditEnd::Nothing);
    add_to_audit(&kit.root, "{\"seq\":1}\n").unwrap();
    add_to_audit(&kit.root, "{\"seq\":2}\n{\"seq\":3}\n").unwrap();
    assert_eq!(audit_end(&kit.root).unwrap(), AuditEnd::Line("{\"seq\":3}".to_owned()));
    assert_eq!(fs::read_to_string(kit.at(FILE)).unwrap(), "{\"seq\":1}\n{\"seq\":2}\n{\"seq\":3}\n");
}

#[test]
fn what_was_cut_is_told_and_can_be_set_aside() {
    let kit = Kit::new();
    kit.put(FILE, "{\"seq\":1}\n{\"se");
    assert_eq!(audit_end(&kit.root).unwrap(), AuditEnd::Unreadable);
    set_audit_aside(&kit.root, AT).unwrap();
    assert_eq!(audit_end(&kit.root).unwrap(), AuditEnd::Nothing);
    assert_eq!(fs::read_to_string(kit.at(&format!("{FILE}.{AT}"))).unwrap(), "{\"seq\":1}\n{\"se");
    kit.put(FILE, "again\n");
    assert_eq!(set_audit_aside(&kit.root, AT).unwrap_err().code, Code::Exists, "nothing is overwritten");
}

#[test]
fn nothing_is_written_through_a_link_or_a_second_name() {
    let kit = Kit::new();
    kit.link(FILE, kit.outside().join("secret"));
    assert_eq!(audit_end(&kit.root).unwrap(), AuditEnd::Unreadable);
    assert!(add_to_audit(&kit.root, "x\n").is_err());
    fs::remove_file(kit.at(FILE)).unwrap();
    fs::hard_link(kit.outside().join("secret"), kit.at(FILE)).unwrap();
    assert_eq!(audit_end(&kit.root).unwrap(), AuditEnd::Unreadable);
    assert!(add_to_audit(&kit.root, "x\n").is_err());
    assert_eq!(fs::read_to_string(kit.outside().join("secret")).unwrap(), "OUTSIDE");
}

#[test]
fn it_is_written_where_changes_may_be_and_by_no_step() {
    let read_only = Kit::with(Access::Read, &[]);
    assert_eq!(add_to_audit(&read_only.root, "x\n").unwrap_err().code, Code::ReadOnly);
    let kit = Kit::new();
    kit.put(FILE, "x\n");
    assert_eq!(Step::trash(&kit.root, FILE, AT).unwrap_err().code, Code::Reserved);
}
