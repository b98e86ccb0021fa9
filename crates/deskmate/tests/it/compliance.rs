//! Compliance from outside: reports as files, bundles that are verified without the desk, and a desk's own frameworks.

use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::Value;

use super::desk::Desk;

fn as_person(desk: &Desk, args: &[&str]) -> Output {
    let mut child =
        desk.command(&[args, &["--passphrase-stdin"]].concat()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn reports_are_files_and_a_bundle_is_verified_without_the_desk() {
    let desk = Desk::new();
    desk.register("clerk");
    let checked = as_person(&desk, &["compliance", "check", "clerk", "SOC2"]);
    assert_eq!(checked.status.code(), Some(7), "{}", said(&checked));
    assert!(said(&checked).contains("CC6.1") && said(&checked).contains("not met"), "{}", said(&checked));
    let report = |form: &str| {
        let file = desk.path().join(format!("report.{form}"));
        let done = as_person(&desk, &["compliance", "report", "clerk", "SOC2", "--format", form, "--out", file.to_str().unwrap()]);
        assert!(done.status.success(), "{form}: {}", said(&done));
        let again = as_person(&desk, &["compliance", "report", "clerk", "SOC2", "--format", form, "--out", file.to_str().unwrap()]);
        assert!(!again.status.success(), "a file that is there is left alone");
        (std::fs::read(&file).unwrap(), file)
    };
    assert!(report("html").0.starts_with(b"<!doctype html>"));
    assert!(report("pdf").0.starts_with(b"%PDF-"));
    let json: Value = serde_json::from_slice(&report("json").0).unwrap();
    let listens = json["controls"].as_array().unwrap().iter().find(|control| control["id"] == "CC6.6").unwrap();
    assert_eq!(listens["checks"][0]["status"], "met", "the server told that it listens here only: {listens}");
    assert_eq!(listens["checks"][0]["events"][0]["kind"], "desk.started");
    let oscal: Value = serde_json::from_slice(&report("oscal").0).unwrap();
    assert!(oscal["assessment-results"]["results"][0]["findings"].is_array());
    let (bytes, bundle) = report("bundle");
    assert!(desk.run(&["stop"]).status.success());
    let verified = desk.run(&["audit", "verify", bundle.to_str().unwrap()]);
    assert!(verified.status.success() && said(&verified).contains("The evidence is sound"), "{}", said(&verified));
    let text = String::from_utf8(bytes).unwrap();
    std::fs::write(&bundle, text.replace("\"status\":\"not_met\"", "\"status\":\"met\"")).unwrap();
    assert_eq!(desk.run(&["audit", "verify", bundle.to_str().unwrap()]).status.code(), Some(7));
    std::fs::write(&bundle, text.replacen("\\\"subject\\\":", "\\\"subject\\\" :", 1)).unwrap();
    let changed = desk.run(&["audit", "verify", bundle.to_str().unwrap()]);
    assert_eq!(changed.status.code(), Some(7), "{}", said(&changed));
}

#[test]
fn a_framework_of_the_desks_own_is_a_file() {
    let desk = Desk::new();
    desk.register("clerk");
    assert!(desk.run(&["stop"]).status.success());
    let good = "id: HOUSE\ntitle: House rules\nedition: '1'\ncannot: []\ncontrols:\n  - id: H1\n    title: Claimed\n    asks: The desk has an owner.\n    checks:\n      - { shows: It has, setting: { name: desk.claimed, is: true } }\n";
    let folder = desk.path().join("compliance");
    std::fs::create_dir(&folder).unwrap();
    let (house, broken) = (folder.join("house.yaml"), folder.join("broken.yaml"));
    std::fs::write(&house, good).unwrap();
    std::fs::write(&broken, good.replace("desk.claimed", "moon.phase")).unwrap();
    assert!(desk.run(&["compliance", "frameworks", house.to_str().unwrap()]).status.success());
    let wrong = desk.run(&["compliance", "frameworks", broken.to_str().unwrap()]);
    assert!(!wrong.status.success() && said(&wrong).contains("moon.phase"), "{}", said(&wrong));
    desk.up();
    let met = as_person(&desk, &["compliance", "check", "clerk", "HOUSE"]);
    assert!(met.status.success() && said(&met).contains("1 met"), "{}", said(&met));
    let listed = as_person(&desk, &["compliance", "frameworks", "--json"]);
    assert!(said(&listed).contains("broken.yaml") && said(&listed).contains("HOUSE"), "{}", said(&listed));
}
