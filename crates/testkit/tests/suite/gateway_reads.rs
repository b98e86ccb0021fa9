//! What is asked of servers behind the desk besides calls of their tools, on both engines: it is decided, on the record, and counts
//! as read.

use deskmate_core::call::Credential;
use deskmate_core::gateway::{ReadKind, Reading};
use deskmate_core::{Code, Result};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both, wait};

const MOUNTS: &str = "
gateway:
  mounts:
    - { name: mail, command: mail-server }
rules:
";

const ALL: [(ReadKind, &str); 4] = [
    (ReadKind::Resource, "resource.read"),
    (ReadKind::Subscription, "resource.subscribe"),
    (ReadKind::Prompt, "prompt.get"),
    (ReadKind::Completion, "completion.complete"),
];

fn people(desk: &TestDesk) -> (Caller, Caller) {
    let owner = desk.claim();
    rules(desk, &owner, " []");
    (owner.clone(), desk.register(&owner, "code"))
}

fn rules(desk: &TestDesk, owner: &Caller, rules: &str) {
    desk.call(owner, "desk_policy_apply", json!({ "document": format!("{}{rules}", MOUNTS.trim_end()) })).unwrap();
}

fn read(desk: &TestDesk, who: &Caller, reading: Reading) -> Result<()> {
    let Caller::Secret(secret) = who else { panic!("who reads has a token") };
    let credential = Credential::Secret { secret: secret.clone(), proved: false };
    let done = wait(desk.desk.read_of_mount(credential, "mail".to_owned(), reading, None));
    desk.seal();
    done.map(drop)
}

fn prompt(topic: &str) -> Reading {
    let arguments = json!({ "topic": topic, "password": "hunter2hunter2" });
    Reading { kind: ReadKind::Prompt, name: "digest".to_owned(), arguments: arguments.as_object().unwrap().clone() }
}

fn told(desk: &TestDesk, owner: &Caller, kind: &str) -> Vec<Value> {
    desk.call(owner, "desk_record_list", json!({ "kind": kind })).unwrap()["events"].as_array().unwrap().clone()
}

fn tainted(desk: &TestDesk, owner: &Caller) -> bool {
    !desk.call(owner, "desk_taint_list", json!({ "agent": "code" })).unwrap()["items"].as_array().unwrap().is_empty()
}

both! {
    fn whatever_is_asked_of_a_server_is_on_the_record(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        read(desk, &agent, Reading::plain(ReadKind::Subscription, "x://one")).unwrap();
        assert!(!tainted(desk, &owner), "whoever follows something has read nothing yet");
        read(desk, &agent, prompt("news")).unwrap();
        let listed = desk.call(&owner, "desk_taint_list", json!({ "agent": "code" })).unwrap();
        assert_eq!(listed["items"][0]["origin"], json!("mount:mail"), "{listed}");
        for kind in [ReadKind::Completion, ReadKind::Resource] {
            desk.call(&owner, "desk_taint_clear", json!({ "agent": "code", "reason": "I read it" })).unwrap();
            read(desk, &agent, Reading::plain(kind, "x://{topic}")).unwrap();
            assert!(tainted(desk, &owner), "{kind:?} counts as read");
        }
        let events = told(desk, &owner, "mount.read");
        let mut kinds: Vec<&str> = events.iter().map(|event| event["facts"]["kind"].as_str().unwrap()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, ["completion.complete", "prompt.get", "resource.read", "resource.subscribe"]);
        let prompt = events.iter().find(|event| event["facts"]["kind"] == "prompt.get").unwrap();
        let given = &prompt["payload"]["arguments"];
        assert!(given["topic"] == "news" && !given["password"].as_str().unwrap().contains("hunter2"), "{prompt}");
        assert_eq!((prompt["facts"]["domain"].as_str(), prompt["facts"]["digest"].as_str().map(str::len)), (Some("gateway.mail"), Some(64)), "{prompt}");
        assert!(desk.verify().findings.is_empty());
    }

    fn rules_name_each_of_them_and_see_what_a_prompt_is_given(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        for (kind, verb) in ALL {
            for effect in ["deny", "require_approval"] {
                let rule = format!("\n  - {{ name: not-so, match: {{ kind: {verb} }}, effect: {effect}, message: not by agents, alternative: ask Ada }}\n");
                rules(desk, &owner, &rule);
                for (other, _) in ALL {
                    let answer = read(desk, &agent, Reading::plain(other, "x://one"));
                    assert_eq!(answer.is_err(), other == kind, "{verb} {effect}: {other:?}");
                    if let Err(error) = answer {
                        assert_code(&error, Code::Forbidden);
                        assert!(error.message.contains("not by agents") && error.hint.as_deref() == Some("ask Ada"), "{error:?}");
                    }
                }
            }
        }
        let denied = told(desk, &owner, "act.denied");
        assert_eq!(denied.len(), ALL.len(), "each that a rule denies is told, and none that asks for a person: {denied:?}");
        assert_eq!(told(desk, &owner, "mount.read").len(), ALL.len() * 2 * 3, "what was refused was not read");
        let about = "\n  - { name: topics, match: { kind: prompt.get }, when: 'args.arguments.topic == \"pay\"', effect: deny, message: not about pay }\n";
        rules(desk, &owner, about);
        read(desk, &agent, prompt("news")).unwrap();
        let refused = read(desk, &agent, prompt("pay")).unwrap_err();
        assert!(refused.message.contains("not about pay"), "{refused:?}");
        let denied = told(desk, &owner, "act.denied");
        let event = denied.iter().find(|event| event["payload"]["act"]["arguments"]["arguments"]["topic"] == "pay").unwrap_or_else(|| panic!("{denied:?}"));
        assert!(!event.to_string().contains("hunter2"), "{event}");
    }

    fn who_is_stopped_and_what_is_switched_off_gets_nothing(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let all_are = |code: Code, says: &str| {
            for (kind, verb) in ALL {
                let error = read(desk, &agent, Reading::plain(kind, "x://one")).unwrap_err();
                assert_code(&error, code);
                assert!(error.message.contains(says), "{verb}: {error:?}");
            }
        };
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        all_are(Code::Forbidden, "paused");
        assert!(told(desk, &owner, "act.denied").is_empty(), "who is paused cannot fill the record");
        desk.call(&owner, "desk_resume", json!({ "agent": "code" })).unwrap();
        desk.call(&owner, "desk_mount_switch", json!({ "name": "mail", "enabled": false })).unwrap();
        all_are(Code::NotFound, "switched off");
        desk.call(&owner, "desk_mount_add", json!({ "mount": { "name": "mail", "command": "x", "enabled": true, "scan": "require" }, "replace": true })).unwrap();
        all_are(Code::Unavailable, "looked through");
        assert!(told(desk, &owner, "mount.read").is_empty() && !tainted(desk, &owner));
    }

    fn who_is_denied_too_often_is_put_off(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        rules(desk, &owner, "\n  - { name: none, match: { kind: prompt.get }, effect: deny, message: no prompts }\n");
        let codes: Vec<Code> = (0..100).map(|_| read(desk, &agent, prompt("news")).unwrap_err().code).collect();
        let denied = codes.iter().filter(|code| **code == Code::Forbidden).count();
        assert!(codes[..denied].iter().all(|code| *code == Code::Forbidden) && codes[denied..].iter().all(|code| *code == Code::Limited), "{codes:?}");
        assert!((1..100).contains(&denied), "{denied}");
        let told = desk.call(&owner, "desk_record_list", json!({ "kind": "act.denied", "limit": 200 })).unwrap();
        assert_eq!(told["events"].as_array().unwrap().len(), denied);
    }
}
