//! Compliance from evidence, on both engines: each control once where it is met and once where it is not, events that exist and are proved, and
//! what changes nothing.

use std::collections::BTreeMap;

use deskmate_core::agents::template;
use deskmate_core::compliance::{self, Framework, Report, Status};
use deskmate_core::desk::STARTED;
use deskmate_core::job::{self, Outcome};
use deskmate_core::record::{self, Event, Keyring};
use deskmate_core::{Code, call::Surface};
use deskmate_db::Param;
use serde_json::{Map, Value, json};
use testkit::{Backend, Caller, TestDesk, assert_code, both};

/// The controls that clients of earlier servers know.
const KNOWN: [(&str, &[&str]); 8] = [
    ("SOC2", &["CC6.1", "CC6.6", "CC7.2", "CC8.1"]),
    ("GDPR", &["Art.5", "Art.17", "Art.25", "Art.30"]),
    ("HIPAA", &["164.312(a)", "164.312(b)", "164.312(d)", "164.312(e)"]),
    ("PCI_DSS", &["Req 3", "Req 7", "Req 10"]),
    ("CCPA", &["1798.100", "1798.105"]),
    ("NIST", &["ID.AM", "PR.AC", "DE.AE"]),
    ("ISO27001", &["A.9", "A.12"]),
    ("FEDRAMP", &["AC-2", "AU-2"]),
];

/// Policies made of templates, for everybody everywhere.
fn document(templates: &[&str]) -> String {
    let policies: Vec<Value> = templates.iter().map(|id| json!(template::policy(id).unwrap().fill(id, &Map::new()).unwrap())).collect();
    let mappings: Vec<Value> = templates.iter().map(|id| json!({ "agent": "*", "domain": "*", "policy": id })).collect();
    json!({ "policies": policies, "mappings": mappings }).to_string()
}

const ALL: [&str; 9] = [
    "soc2-security",
    "gdpr-compliance",
    "hipaa-healthcare",
    "pci-dss-payments",
    "ccpa-privacy",
    "nist-csf",
    "iso27001-controls",
    "fedramp-moderate",
    "secrets-protection",
];

/// What an assessment-results document of OSCAL 1.1.3 has to have, as far as ours says anything: its required members, and their types.
fn oscal_faults(document: &Value) -> Vec<String> {
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    let is_token = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'))
    };
    let is_uuid = |value: &Value| {
        let parts: Vec<&str> = value.as_str().unwrap_or_default().split('-').collect();
        let hex = |part: &&str| part.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
        let version = parts.get(2).is_some_and(|part| part.starts_with(['4', '5']));
        let variant = parts.get(3).is_some_and(|part| part.starts_with(['8', '9', 'a', 'b']));
        parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(hex) && version && variant
    };
    let is_time = |value: &Value| value.as_str().is_some_and(|text| text.ends_with('Z') && deskmate_core::parse_time("", text).is_ok());
    let mut faults = Vec::new();
    let mut need = |of: &Value, at: &str, what: &str| {
        let value = of.pointer(at).unwrap_or(&Value::Null);
        let fits = match what {
            "uuid" => is_uuid(value),
            "time" => is_time(value),
            "token" => is_token(value),
            "list" => value.as_array().is_some_and(|list| !list.is_empty()),
            "state" => value == "satisfied" || value == "not-satisfied",
            "target" => value == "statement-id" || value == "objective-id",
            _ => is_text(value),
        };
        if !fits {
            faults.push(format!("{at} is no {what}: {value}"));
        }
    };
    let each = |of: &Value, at: &str| of.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default();
    let whole = &document["assessment-results"];
    for (at, what) in [
        ("/uuid", "uuid"),
        ("/metadata/title", "text"),
        ("/metadata/last-modified", "time"),
        ("/metadata/version", "text"),
        ("/import-ap/href", "text"),
        ("/results", "list"),
    ] {
        need(whole, at, what);
    }
    need(whole, "/metadata/oscal-version", "text");
    for result in each(whole, "/results") {
        for (at, what) in [
            ("/uuid", "uuid"),
            ("/title", "text"),
            ("/description", "text"),
            ("/start", "time"),
            ("/end", "time"),
            ("/reviewed-controls/control-selections", "list"),
        ] {
            need(&result, at, what);
        }
        for control in each(&result, "/reviewed-controls/control-selections/0/include-controls") {
            need(&control, "/control-id", "token");
        }
        for finding in each(&result, "/findings") {
            for (at, what) in [
                ("/uuid", "uuid"),
                ("/title", "text"),
                ("/description", "text"),
                ("/target/type", "target"),
                ("/target/target-id", "token"),
                ("/target/status/state", "state"),
            ] {
                need(&finding, at, what);
            }
            for related in each(&finding, "/related-observations") {
                need(&related, "/observation-uuid", "uuid");
            }
        }
        for observation in each(&result, "/observations") {
            for (at, what) in [("/uuid", "uuid"), ("/description", "text"), ("/methods", "list"), ("/collected", "time")] {
                need(&observation, at, what);
            }
            for evidence in each(&observation, "/relevant-evidence") {
                need(&evidence, "/description", "text");
            }
        }
    }
    for resource in each(whole, "/back-matter/resources") {
        need(&resource, "/uuid", "uuid");
    }
    // What is pointed at is there, and there once.
    let ids: Vec<Value> = each(whole, "/results/0/observations").iter().map(|observation| observation["uuid"].clone()).collect();
    let points = each(whole, "/results/0/findings")
        .iter()
        .flat_map(|finding| each(finding, "/related-observations"))
        .map(|related| related["observation-uuid"].clone())
        .collect::<Vec<_>>();
    if points != ids {
        faults.push("findings and observations do not belong together".to_owned());
    }
    if whole["metadata"]["oscal-version"] != "1.1.3"
        || whole.pointer("/import-ap/href") != whole.pointer("/back-matter/resources/0/uuid").and_then(Value::as_str).map(|id| json!(format!("#{id}"))).as_ref()
    {
        faults.push("another version, or a plan that is not there".to_owned());
    }
    faults
}

fn apply(desk: &TestDesk, owner: &Caller, templates: &[&str]) {
    desk.call(owner, "desk_policy_apply", json!({ "document": document(templates) })).unwrap();
}

/// A server that listens here only, or for everybody and unprotected.
fn started(desk: &TestDesk, safe: bool) {
    let event = move || {
        Event::new(STARTED, "desk").fact("listen_loopback", safe).fact("listen_tls", false).fact("listen_proxy", false).fact("checkpoints_copied", safe)
    };
    desk.act(move |cx| cx.emit(event())).unwrap();
}

/// The record is verified by the job for it.
fn verified(desk: &TestDesk, owner: &Caller) {
    desk.call(owner, "desk_record_verify", json!({})).unwrap();
    let sound = desk.verify();
    desk.act(move |cx| {
        let claimed = job::claim(cx, "test", &[record::VERIFY_JOB], 30_000_000, 1)?.pop().unwrap();
        job::finish(cx, &claimed.job, "test", claimed.fence, Outcome::Done(json!(sound)))
    })
    .unwrap();
}

/// A desk where everything is as it should be, its owner, and the agent that is looked at.
fn good(desk: &TestDesk) -> (Caller, Caller) {
    let owner = desk.claim();
    let answer = desk.call(&owner, "desk_agent_add", json!({ "agent": "clerk", "note": "answers letters" })).unwrap();
    let clerk = Caller::Secret(answer["token"].as_str().unwrap().to_owned());
    apply(desk, &owner, &ALL);
    started(desk, true);
    verified(desk, &owner);
    (owner, clerk)
}

/// A desk where nothing is.
fn bare(desk: &TestDesk) -> Caller {
    let owner = desk.claim();
    let open = "rules:\n  - { name: passes, match: { kind: agent.deploy }, effect: allow, waive_trust: true, message: fine }\npolicy_mode: permissive\nhooks: { mode: observe }\n";
    desk.call(&owner, "desk_policy_apply", json!({ "document": open })).unwrap();
    desk.agent("clerk", "bridge_send_message", json!({ "to": "ada", "content": "hello" })).unwrap();
    started(desk, false);
    owner
}

fn report(desk: &TestDesk, who: &Caller, agent: &str, framework: &str) -> Report {
    let answer = desk.call(who, "agents_check_compliance", json!({ "agentId": agent, "framework": framework })).unwrap();
    serde_json::from_value(answer["report"].clone()).unwrap()
}

fn statuses(desk: &TestDesk, who: &Caller, agent: &str) -> BTreeMap<String, Status> {
    let of = |framework: &str| report(desk, who, agent, framework).controls;
    KNOWN.iter().flat_map(|(framework, _)| of(framework).into_iter().map(move |control| (format!("{framework} {}", control.id), control.status))).collect()
}

fn assert_all(desk: &TestDesk, owner: &Caller, wanted: Status) {
    for (framework, controls) in KNOWN {
        let report = report(desk, owner, "clerk", framework);
        for id in controls {
            let control = report.controls.iter().find(|control| control.id == *id).unwrap_or_else(|| panic!("{framework} has no {id}"));
            assert_eq!(control.status, wanted, "{framework} {}", serde_json::to_string_pretty(control).unwrap());
        }
    }
}

both! {
    fn every_control_that_clients_know_is_met_where_all_is_well(desk: &TestDesk) {
        let (owner, _) = good(desk);
        assert_all(desk, &owner, Status::Met);
    }

    fn and_not_met_where_nothing_is(desk: &TestDesk) {
        let owner = bare(desk);
        assert_all(desk, &owner, Status::NotMet);
        let answer = desk.call(&owner, "agents_check_compliance", json!({ "agentId": "clerk", "framework": "NIST", "generateReport": false })).unwrap();
        assert!(answer.get("report").is_none() && answer["verdict"] == "gaps" && answer["score"].as_u64().unwrap() < 50, "{answer}");
    }

    fn a_policy_that_is_only_a_name_changes_nothing(desk: &TestDesk) {
        let owner = desk.claim();
        desk.register(&owner, "clerk");
        started(desk, true);
        let before = statuses(desk, &owner, "clerk");
        let empty = |id: &str| json!({ "id": id, "rules": [{ "name": "about_nothing", "match": { "kind": ["never.done"] }, "effect": "log", "message": "x" }] });
        let policies: Vec<Value> = ["soc2-security", "pii-protection", "gdpr-compliance", "hipaa-healthcare"].iter().map(|id| empty(id)).collect();
        let mappings: Vec<Value> = ["soc2-security", "pii-protection", "gdpr-compliance", "hipaa-healthcare"].iter().map(|id| json!({ "agent": "*", "domain": "*", "policy": id })).collect();
        desk.call(&owner, "desk_policy_apply", json!({ "document": json!({ "policies": policies, "mappings": mappings }).to_string() })).unwrap();
        let mut after = statuses(desk, &owner, "clerk");
        // That there are rules at all is what this one asks for.
        after.insert("FEDRAMP AC-6".to_owned(), before["FEDRAMP AC-6"]);
        assert_eq!(before, after);
    }

    fn each_policy_shows_what_it_is_for_and_nothing_else(desk: &TestDesk) {
        let owner = desk.claim();
        desk.register(&owner, "clerk");
        started(desk, true);
        for (policy, met, not) in [
            ("pci-dss-payments", "PCI_DSS Req 3", "HIPAA 164.312(a)"),
            ("hipaa-healthcare", "HIPAA 164.312(a)", "PCI_DSS Req 3"),
            ("gdpr-compliance", "GDPR Art.5", "PCI_DSS Req 3"),
            ("secrets-protection", "NIST PR.DS", "PCI_DSS Req 3"),
        ] {
            apply(desk, &owner, &[policy]);
            let found = statuses(desk, &owner, "clerk");
            assert_eq!((found[met], found[not]), (Status::Met, Status::NotMet), "{policy}");
        }
    }

    fn a_policy_that_is_attached_to_the_agent_counts_among_its_rules(desk: &TestDesk) {
        let owner = desk.claim();
        let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "ada", "content": "hello" } }]);
        let made = desk.call(&owner, "agents_create_agent", json!({ "description": "Tell Ada hello", "name": "teller", "steps": steps, "policies": [] })).unwrap();
        let rules = |framework: &str, control: &str| {
            let report = report(desk, &owner, "teller", framework);
            let control = report.controls.into_iter().find(|one| one.id == control).unwrap();
            control.checks.into_iter().find(|check| check.settings.iter().any(|setting| setting.name == "agent.rules")).unwrap()
        };
        let controls = [("PCI_DSS", "Req 7"), ("FEDRAMP", "AC-6")];
        for (framework, control) in controls {
            assert_eq!(rules(framework, control).status, Status::NotMet, "{framework} {control}");
        }
        desk.call(&owner, "agents_attach_policy", json!({ "agentId": made["agentId"], "policyId": "pci-dss-payments" })).unwrap();
        for (framework, control) in controls {
            assert_eq!(rules(framework, control).status, Status::Met, "{framework} {control}");
        }
    }

    fn deploying_turns_nothing_red_by_itself(desk: &TestDesk) {
        let (owner, clerk) = good(desk);
        // One person is enough for a deployment here.
        apply(desk, &owner, &["soc2-security", "iso27001-controls", "secrets-protection"]);
        let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "ada", "content": "hello" } }]);
        let made = desk.call(&clerk, "agents_create_agent", json!({ "description": "Tell Ada hello", "name": "teller", "steps": steps })).unwrap();
        let before = statuses(desk, &owner, "teller");
        let asked = desk.call(&clerk, "agents_deploy_agent", json!({ "agentId": made["agentId"] })).unwrap();
        desk.call(&owner, "desk_show_presence", json!({ "passphrase": "correct horse" })).unwrap();
        desk.call(&owner, "desk_request_approve", json!({ "request": asked["requestId"] })).unwrap();
        let after = statuses(desk, &owner, "teller");
        for (control, status) in &after {
            assert!(*status <= before[control] || *status == Status::Met, "{control} was {:?} and is {status:?}", before[control]);
        }
        let soc2 = report(desk, &owner, "teller", "SOC2");
        let deployed = soc2.controls.iter().find(|control| control.id == "CC8.1").unwrap();
        assert_eq!((deployed.status, deployed.checks[1].status), (Status::Met, Status::Met), "{deployed:?}");
        assert!(deployed.checks[1].events.iter().any(|event| event.kind == "agent.deployed"));
    }

    fn who_deploys_what_they_wrote_themselves_is_shown_as_that(desk: &TestDesk) {
        let (owner, _) = good(desk);
        apply(desk, &owner, &["soc2-security", "secrets-protection"]);
        let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "ada", "content": "hello" } }]);
        let made = desk.call(&owner, "agents_create_agent", json!({ "description": "Tell Ada hello", "name": "teller", "steps": steps })).unwrap();
        let before = statuses(desk, &owner, "teller")["SOC2 CC8.1"];
        let deployed = desk.call(&owner, "agents_deploy_agent", json!({ "agentId": made["agentId"] })).unwrap();
        assert_eq!(deployed["deployed"], true, "{deployed}");
        let soc2 = report(desk, &owner, "teller", "SOC2");
        assert_eq!(soc2.controls.iter().find(|control| control.id == "CC8.1").unwrap().status, before);
        let duties = soc2.controls.iter().find(|control| control.id == "CC6.3").unwrap();
        assert_eq!((duties.status, duties.checks[0].status), (Status::Partly, Status::NotMet), "{duties:?}");
        assert!(duties.checks[0].events[0].against);
    }

    fn who_deploys_what_they_wrote_long_ago_is_shown_as_that_too(desk: &TestDesk) {
        let (owner, _) = good(desk);
        apply(desk, &owner, &["soc2-security", "secrets-protection"]);
        let steps = json!([{ "id": "tell", "do": "bridge_send_message", "with": { "to": "ada", "content": "hello" } }]);
        let made = desk.call(&owner, "agents_create_agent", json!({ "description": "Tell Ada hello", "name": "teller", "steps": steps })).unwrap();
        for _ in 0..60 {
            desk.call(&owner, "agents_test_agent", json!({ "agentId": made["agentId"], "scenario": "Tell Ada" })).unwrap();
        }
        desk.call(&owner, "agents_deploy_agent", json!({ "agentId": made["agentId"] })).unwrap();
        let soc2 = report(desk, &owner, "teller", "SOC2");
        let check = &soc2.controls.iter().find(|control| control.id == "CC6.3").unwrap().checks[0];
        assert!(check.status == Status::NotMet && check.events[0].against, "{check:?}");
    }

    fn the_events_behind_an_answer_are_there_and_proved(desk: &TestDesk) {
        let (owner, _) = good(desk);
        let mut proved = 0;
        for (framework, _) in KNOWN {
            for check in report(desk, &owner, "clerk", framework).controls.iter().flat_map(|control| &control.checks) {
                assert!(!check.events.is_empty() || !check.settings.is_empty() || !check.probes.is_empty() || check.status == Status::CannotBeShown, "{check:?}");
                for event in &check.events {
                    let (seq, keys) = (event.seq, desk.desk.keys.clone());
                    let proof = desk.desk.db.read_blocking(move |tx| record::prove(tx, seq, &keys)).unwrap();
                    record::check_proof(&proof, &desk.desk.keys).unwrap();
                    assert!(proof.body.contains(&event.kind), "{event:?}");
                    proved += 1;
                }
            }
        }
        assert!(proved > 10, "{proved}");
    }

    fn a_look_that_was_cut_short_makes_nothing_met(desk: &TestDesk) {
        let (owner, _) = good(desk);
        let many = "id: OWN\ntitle: Own\nedition: '1'\ncannot: []\ncontrols:\n  - id: E\n    title: t\n    asks: a\n    checks:\n      - { shows: x, every: { kinds: [desk.started], of: desk, that: decided } }\n      - { shows: y, events: { kinds: [desk.started], of: desk, at_most: 1000000 } }\n";
        let own = Framework::read(many).unwrap();
        let mut with = desk.desk.clone();
        with.frameworks = with.frameworks.with([own]);
        for _ in 0..11 {
            desk.act(|cx| {
                for _ in 0..1_000 {
                    cx.emit(Event::new(STARTED, "desk").fact("rulebook", "x").fact("listen_loopback", true))?;
                }
                Ok(())
            }).unwrap();
        }
        let call = deskmate_core::call::Call {
            credential: match &owner { Caller::Secret(secret) => deskmate_core::call::Credential::Secret { secret: secret.clone(), proved: true }, _ => unreachable!() },
            surface: Surface::Rest,
            operation: "agents_check_compliance".to_owned(),
            input: json!({ "agentId": "clerk", "framework": "OWN" }),
        };
        let answer = testkit::wait(with.call(call)).unwrap();
        let deskmate_core::call::Outcome::Done(answer) = answer.outcome else { panic!() };
        let report: Report = serde_json::from_value(answer["report"].clone()).unwrap();
        let control = &report.controls[0];
        assert_eq!(control.status, Status::Partly, "{control:?}");
        assert!(control.checks.iter().all(|check| check.cut && check.status == Status::Partly && check.looked_at == 10_000), "{control:?}");
    }

    fn what_was_denied_and_done_all_the_same_is_found(desk: &TestDesk) {
        let (owner, _) = good(desk);
        // Nothing of the desk does this; somebody who got around it would.
        let said = |kind: &'static str| record::Kind { name: kind, says: "" };
        desk.act(move |cx| {
            for kind in ["request.created", "request.rejected", "request.started"] {
                cx.emit(Event::new(said(kind), "request:r1").fact("requester", "clerk").fact("decided_by", "x"))?;
            }
            Ok(())
        }).unwrap();
        let soc2 = report(desk, &owner, "clerk", "SOC2");
        let control = soc2.controls.iter().find(|control| control.id == "CC8.1").unwrap();
        assert_eq!(control.status, Status::NotMet);
        assert!(control.checks[2].events.iter().any(|event| event.against && event.subject == "request:r1"), "{control:?}");
    }

    fn an_agent_sees_itself_and_not_what_is_set(desk: &TestDesk) {
        let (owner, clerk) = good(desk);
        let other = desk.register(&owner, "other");
        assert_code(&desk.refused(&other, "agents_check_compliance", json!({ "agentId": "clerk", "framework": "SOC2" })), Code::NotFound);
        assert_code(&desk.refused(&owner, "agents_check_compliance", json!({ "agentId": "nobody", "framework": "SOC2" })), Code::NotFound);
        assert_code(&desk.refused(&owner, "agents_check_compliance", json!({ "agentId": "clerk", "framework": "SOC3" })), Code::Invalid);
        assert_code(&desk.refused(&owner, "agents_check_compliance", json!({ "agentId": "clerk", "framework": "SOC2", "days": 0 })), Code::Invalid);
        assert_code(&desk.refused(&clerk, "agents_compliance_report", json!({ "agentId": "clerk", "framework": "SOC2", "format": "json" })), Code::Forbidden);
        let own = report(desk, &clerk, "clerk", "SOC2");
        assert!(own.controls.iter().flat_map(|control| &control.checks).all(|check| check.settings.iter().all(|setting| setting.value.is_none())));
        assert!(own.controls.iter().flat_map(|control| &control.checks).flat_map(|check| &check.events).all(|event| event.kind != "desk.started"));
        assert_eq!(own.counts, report(desk, &owner, "clerk", "SOC2").counts, "what comes out is the same");
    }

    fn a_bundle_is_verified_without_the_desk_and_every_change_is_found(desk: &TestDesk) {
        let (owner, _) = good(desk);
        let get = |format: &str| desk.call(&owner, "agents_compliance_report", json!({ "agentId": "clerk", "framework": "SOC2", "format": format })).unwrap();
        let bundle = get("bundle")["content"].as_str().unwrap().to_owned();
        let keys = || Some(Keyring::new(desk.desk.keys.keys().to_vec()));
        let verify = |text: &str| compliance::verify_bundle(text.lines().map(|line| Ok(line.to_owned())), keys(), &[]);
        let sound = verify(&bundle).unwrap();
        assert!(sound.sound && sound.events >= 3, "{sound:?}");
        assert!(compliance::is_bundle(bundle.lines().next().unwrap()) && !compliance::is_bundle("{}"));
        for (what, with) in [
            ("\"status\":\"met\"", "\"status\":\"not_met\""),
            ("\"score\":", "\"score\":1"),
            ("agent.registered", "agent.revoked"),
            ("\\\"kind\\\":\\\"desk.started\\\"", "\\\"kind\\\":\\\"desk.claimed\\\""),
        ] {
            assert!(bundle.contains(what), "{what}");
            let changed = bundle.replacen(what, with, 1);
            assert!(verify(&changed).is_err() || !verify(&changed).unwrap().sound, "{what}");
        }
        let cut: Vec<&str> = bundle.lines().take(2).collect();
        assert!(!verify(&cut.join("\n")).unwrap().sound);
        let other = Keyring::new(vec!["deskmate/other+5ed58d8a+AQ/4o0i0dJ5mEYPvWHUVDbDhtJrP5yBFPnQqMqYpBnGk".to_owned()]);
        assert!(!compliance::verify_bundle(bundle.lines().map(|line| Ok(line.to_owned())), Some(other), &[]).unwrap().sound);
        // What no event shows is at least what the desk said: a change that contradicts nothing is found all the same.
        let (first, events) = bundle.split_once('\n').unwrap();
        let rewritten = |change: &dyn Fn(&mut Value)| {
            let mut header: Value = serde_json::from_str(first).unwrap();
            change(&mut header);
            verify(&format!("{header}\n{events}")).unwrap()
        };
        assert!(rewritten(&|_| {}).sound, "how it is written down does not matter");
        let softer = rewritten(&|header| {
            let checks = header["report"]["controls"].as_array_mut().unwrap().iter_mut().flat_map(|control| control["checks"].as_array_mut().unwrap());
            let settings = checks.filter_map(|check| check.get_mut("settings")).flat_map(|settings| settings.as_array_mut().unwrap());
            settings.into_iter().next().unwrap()["value"] = json!("as the auditor wants it");
        });
        assert!(!softer.sound && softer.findings.len() == 1 && softer.findings[0].what.contains("was changed"), "{softer:?}");
        let unsigned = rewritten(&|header| drop(header.as_object_mut().unwrap().remove("signature")));
        assert!(!unsigned.sound && unsigned.findings[0].what.contains("not signed"), "{unsigned:?}");
        let swapped = rewritten(&|header| header["signature"] = header["checkpoint"].clone());
        assert!(!swapped.sound, "the signature of a checkpoint is not one of a report");
        let page = get("html")["content"].as_str().unwrap().to_owned();
        assert!(page.contains("CC6.1") && page.contains("What no program can attest") && !page.contains("<script"));
        assert!(get("csv")["content"].as_str().unwrap().lines().count() > 10);
        assert!(get("markdown")["content"].as_str().unwrap().starts_with("# SOC 2"));
        let oscal: Value = serde_json::from_str(get("oscal")["content"].as_str().unwrap()).unwrap();
        let result = &oscal["assessment-results"]["results"][0];
        let states: Vec<&str> = result["findings"].as_array().unwrap().iter().map(|finding| finding["target"]["status"]["state"].as_str().unwrap()).collect();
        assert!(states.contains(&"satisfied") && !result["findings"].to_string().contains("CC1.1"), "{states:?}");
        let faults = oscal_faults(&oscal);
        assert!(faults.is_empty(), "{faults:#?}");
        // The check finds what is missing or is something else.
        for (at, value) in [
            ("/assessment-results/uuid", json!("not-a-uuid")),
            ("/assessment-results/metadata/last-modified", json!("yesterday")),
            ("/assessment-results/results/0/reviewed-controls", Value::Null),
            ("/assessment-results/results/0/findings/0/target/status/state", json!("met")),
            ("/assessment-results/results/0/observations/0/methods", json!([])),
        ] {
            let mut wrong = oscal.clone();
            *wrong.pointer_mut(at).unwrap_or_else(|| panic!("no {at}")) = value;
            assert!(!oscal_faults(&wrong).is_empty(), "{at}");
        }
        assert!(desk.verify().sound);
    }

    fn looks_back_go_through_indexes(desk: &TestDesk) {
        let params = [Param::Text("request:x"), Param::Int(1), Param::Int(1)];
        let plans: deskmate_db::Result<Vec<String>> = desk.desk.db.read_blocking(move |tx| compliance::INDEXED.iter().map(|(sql, _)| testkit::plan(tx, sql, &params)).collect());
        for ((sql, index), plan) in compliance::INDEXED.iter().zip(plans.unwrap()) {
            assert!(plan.contains(index), "{sql}\ndoes not use {index}:\n{plan}");
        }
    }
}

#[test]
fn adding_a_control_takes_a_data_file() {
    let mut desk = TestDesk::new(Backend::Sqlite);
    let owner = desk.claim();
    desk.register(&owner, "clerk");
    let text = "id: HOUSE\ntitle: House rules\nedition: '1'\ncannot: [Whether people keep them.]\ncontrols:\n  - id: H1\n    title: Claimed\n    asks: The desk has an owner.\n    checks:\n      - { shows: It has, setting: { name: desk.claimed, is: true } }\n  - id: H2\n    title: Manners\n    asks: People are kind.\n    cannot: No program shows it.\n";
    desk.desk.frameworks = desk.desk.frameworks.with([Framework::read(text).unwrap()]);
    let report = report(&desk, &owner, "clerk", "house");
    assert_eq!(report.controls.iter().map(|control| control.status).collect::<Vec<_>>(), [Status::Met, Status::CannotBeShown]);
    assert_eq!((report.score, report.counts.cannot_be_shown), (Some(100), 1));
    assert!(desk.call(&owner, "agents_list_frameworks", json!({})).unwrap().to_string().contains("H2"));
}
