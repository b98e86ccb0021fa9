//! What owners set for single tools of servers behind the desk, on both engines: one rule among all others, with a version, that
//! asks for the passphrase again where it loosens something.

use std::time::Duration;

use deskmate_core::Code;
use deskmate_core::call::{Errand, Fetched, Hands};
use deskmate_core::policy::{self, Document, draft};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

const RULES: &str = "
rules:
  - { name: reading, match: { kind: email.read }, effect: allow, waive_trust: true, message: reading is fine }
  - { name: no-wipe, match: { tool: mail_wipe }, effect: deny, message: nobody wipes mail, alternative: archive it }
  - { field: amount, constraint: value_range, max: 12.5, reason: not so much }
tests:
  - { name: reading passes, act: { kind: email.read }, trust: 0.3, mode: act }
";

/// A server that offers tools of these names.
struct Offers(Vec<String>);

impl Hands for Offers {
    fn run(&self, errand: Errand) -> Fetched<'_> {
        assert!(matches!(errand, Errand::Mount(_)), "not a look at a mount");
        let tools: Vec<Value> = self.0.iter().map(|name| json!({ "name": name, "inputSchema": { "type": "object" } })).collect();
        let found = json!({ "server": { "name": "x" }, "protocol": "2026-07-28", "tools": tools, "micros": 1500 });
        Box::pin(async move { Ok(found) })
    }
}

pub(super) fn mount(desk: &TestDesk, owner: &Caller, name: &str, tools: &[&str]) {
    desk.call(owner, "desk_mount_add", json!({ "mount": { "name": name, "command": "x", "verbs": { "read_*": "email.read" } }, "replace": true })).unwrap();
    desk.lend(Offers(tools.iter().map(|name| (*name).to_owned()).collect()));
    let looked = desk.call(owner, "desk_mount_test", json!({ "name": name })).unwrap();
    assert_eq!(looked["tools"], json!(tools.len()), "{looked}");
}

/// A desk with a server, its owner and an agent.
fn people(desk: &TestDesk) -> (Caller, Caller) {
    let owner = desk.claim();
    desk.call(&owner, "desk_policy_apply", json!({ "document": RULES })).unwrap();
    mount(desk, &owner, "mail", &["read_mail", "send", "wipe"]);
    (owner.clone(), desk.register(&owner, "code"))
}

fn input(tool: &str, answer: &str) -> Value {
    json!({ "mount": "mail", "tool": tool, "answer": answer })
}

fn set(desk: &TestDesk, owner: &Caller, tool: &str, answer: &str) -> Value {
    desk.call(owner, "desk_mount_answer", input(tool, answer)).unwrap()
}

/// What the page shows of a tool.
fn shown(desk: &TestDesk, owner: &Caller, mount: &str, tool: &str) -> Value {
    let answers = desk.call(owner, "desk_mount_policy", json!({ "name": mount, "agent": "code" })).unwrap();
    answers["tools"].as_array().unwrap().iter().find(|one| one["name"] == tool).unwrap_or_else(|| panic!("{answers}")).clone()
}

fn state(desk: &TestDesk, agent: &Caller, mount: &str, tool: &str) -> String {
    let answer = desk.call(agent, "gateway_call", json!({ "mount": mount, "tool": tool, "arguments": { "n": tool.len() } })).unwrap();
    answer["state"].as_str().unwrap().to_owned()
}

fn global(desk: &TestDesk, owner: &Caller) -> Value {
    desk.call(owner, "desk_policy_get", json!({ "policy": "global" })).unwrap()
}

fn rule_names(desk: &TestDesk, owner: &Caller) -> Vec<String> {
    let rules = global(desk, owner)["body"]["rules"].as_array().unwrap().clone();
    rules.iter().filter_map(|rule| rule["name"].as_str()).map(str::to_owned).collect()
}

fn show_presence(desk: &TestDesk, person: &Caller) {
    assert_eq!(desk.call(person, "desk_show_presence", json!({ "passphrase": "correct horse" })).unwrap()["shown"], true);
}

both! {
    fn an_owner_sets_what_one_tool_gets_and_every_other_rule_stays(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let before = global(desk, &owner);
        assert_eq!((state(desk, &agent, "mail", "send"), shown(desk, &owner, "mail", "send").get("set")), ("held".into(), None));
        let passing = set(desk, &owner, "send", "pass");
        assert_eq!((&passing["rule"], &passing["changed"], &passing["loosened"]), (&json!("tool:mail:send"), &json!(true), &json!(true)), "{passing}");
        assert_eq!(passing["policies"], json!([{ "policy": "global", "version": 2 }]), "{passing}");
        let other = desk.register(&owner, "other");
        assert_eq!((state(desk, &other, "mail", "send"), state(desk, &other, "mail", "wipe")), ("passed".into(), "denied".into()));
        let send = shown(desk, &owner, "mail", "send");
        assert_eq!((&send["mode"], &send["set"]), (&json!("act"), &json!("pass")));
        let hit = &send["hits"][0];
        assert_eq!((&hit["rule_id"], &hit["policy"], &hit["version"]), (&json!("tool:mail:send"), &json!("global"), &json!(2)), "{send}");
        // A person is asked, whatever the trust; and then it is forbidden, and not there for agents.
        let asking = desk.call(&owner, "desk_mount_answer", json!({ "mount": "mail", "tool": "send", "answer": "ask", "reason": "they cost money" })).unwrap();
        assert_eq!(asking["loosened"], json!(false), "{asking}");
        assert_eq!((state(desk, &other, "mail", "send"), &shown(desk, &owner, "mail", "send")["hits"][0]["reason"]), ("held".into(), &json!("they cost money")));
        assert_eq!(set(desk, &owner, "send", "forbid")["loosened"], json!(false));
        let send = shown(desk, &owner, "mail", "send");
        assert_eq!((&send["mode"], &send["set"], &send["listed"]), (&json!("deny"), &json!("forbid"), &json!(false)), "{send}");
        let third = desk.register(&owner, "third");
        assert_eq!(state(desk, &third, "mail", "send"), "denied");
        assert_eq!(rule_names(desk, &owner), ["reading", "no-wipe", "tool:mail:send"]);
        // Back to what the policies say: exactly what was there before is there again.
        let back = set(desk, &owner, "send", "policies");
        assert_eq!((back.get("rule"), &back["loosened"]), (None, &json!(true)), "{back}");
        let after = global(desk, &owner);
        assert_eq!((&after["body"], &after["version"]), (&before["body"], &json!(5)));
        assert!(after["body"]["tests"].is_array() && state(desk, &third, "mail", "read_mail") == "passed");
        // Each was a version that an owner accepted, and an earlier one can be put in force again.
        desk.seal();
        let told = desk.call(&owner, "desk_record_list", json!({ "kind": "policy.accepted", "subject": "policy:global" })).unwrap();
        assert_eq!(told["events"].as_array().unwrap().len(), 5, "{told}");
        assert!(told["events"].as_array().unwrap().iter().all(|event| event["actor_kind"] == "person"), "{told}");
        let forbidding = desk.call(&owner, "desk_policy_get", json!({ "policy": "global", "version": 4 })).unwrap()["body"]["rules"].clone();
        desk.call(&owner, "desk_policy_apply", json!({ "document": json!({ "rules": forbidding }).to_string() })).unwrap();
        assert_eq!(shown(desk, &owner, "mail", "send")["set"], json!("forbid"));
        // The same again changes nothing.
        assert_eq!(set(desk, &owner, "send", "forbid")["changed"], json!(false));
        assert!(desk.verify().findings.is_empty());
    }

    fn what_another_rule_restricts_stays_restricted(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        set(desk, &owner, "wipe", "pass");
        let wipe = shown(desk, &owner, "mail", "wipe");
        assert_eq!((&wipe["mode"], &wipe["set"]), (&json!("deny"), &json!("pass")), "{wipe}");
        assert!(wipe["why"][0].as_str().unwrap().contains("nobody wipes mail"), "and it says which: {wipe}");
        assert_eq!(state(desk, &agent, "mail", "wipe"), "denied");
        set(desk, &owner, "read_mail", "ask");
        assert_eq!((state(desk, &agent, "mail", "read_mail"), &shown(desk, &owner, "mail", "read_mail")["mode"]), ("held".into(), &json!("suggest")));
    }

    fn what_loosens_asks_for_the_passphrase_again_and_what_tightens_does_not(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let digest = || desk.call(&owner, "desk_policy_get", json!({})).unwrap()["digest"].clone();
        // The owner is there, and gave the passphrase a while ago.
        let late = || {
            show_presence(desk, &owner);
            desk.world.pass(Duration::from_secs(90));
        };
        let refused = |answer: &str| {
            late();
            let before = digest();
            let error = desk.refused(&owner, "desk_mount_answer", input("send", answer));
            assert!(error.needs_presence, "{answer}: {error}");
            assert_eq!(digest(), before, "{answer}: nothing of it holds");
        };
        let taken = |answer: &str| {
            late();
            assert_eq!(set(desk, &owner, "send", answer)["loosened"], json!(false), "{answer}");
        };
        refused("pass");
        taken("ask");
        refused("pass");
        refused("policies");
        taken("forbid");
        refused("ask");
        refused("policies");
        show_presence(desk, &owner);
        set(desk, &owner, "send", "pass");
        taken("policies");
        show_presence(desk, &owner);
        set(desk, &owner, "send", "pass");
        taken("forbid");
        assert_eq!(state(desk, &agent, "mail", "send"), "denied");
        // Where it is the only rule for everybody, they go with it.
        show_presence(desk, &owner);
        desk.call(&owner, "desk_policy_apply", json!({ "document": "rules: []" })).unwrap();
        set(desk, &owner, "send", "pass");
        taken("policies");
        assert_eq!(shown(desk, &owner, "mail", "send")["mode"], json!("escalate"));
        assert!(desk.verify().findings.is_empty());
    }

    fn only_owners_set_it_for_tools_that_are_there_as_they_saw_them(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        assert_code(&desk.refused(&agent, "desk_mount_answer", input("send", "pass")), Code::Forbidden);
        let link = desk.call(&owner, "desk_person_invite", json!({ "name": "Bo", "role": "approver", "domains": ["*"] })).unwrap();
        let joined = desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": link["code"], "passphrase": "correct horse" })).unwrap();
        let approver = Caller::Secret(joined["session"].as_str().unwrap().to_owned());
        assert_code(&desk.refused(&approver, "desk_mount_answer", input("send", "forbid")), Code::Forbidden);
        assert_code(&desk.refused(&owner, "desk_mount_answer", input("nothing", "forbid")), Code::NotFound);
        assert_code(&desk.refused(&owner, "desk_mount_answer", json!({ "mount": "none", "tool": "send", "answer": "pass" })), Code::NotFound);
        assert_code(&desk.refused(&owner, "desk_mount_answer", input("send", "perhaps")), Code::Invalid);
        assert_code(&desk.refused(&owner, "desk_mount_answer", json!({ "mount": "mail", "tool": "send", "answer": "ask", "reason": "x".repeat(501) })), Code::Invalid);
        let seen = desk.call(&owner, "desk_mount_policy", json!({ "name": "mail", "agent": "code" })).unwrap()["rulebook"].clone();
        let asked = |seen: &Value| json!({ "mount": "mail", "tool": "send", "answer": "ask", "expected_rulebook": seen });
        set(desk, &owner, "wipe", "ask");
        assert_code(&desk.refused(&owner, "desk_mount_answer", asked(&seen)), Code::Conflict);
        let seen = desk.call(&owner, "desk_mount_policy", json!({ "name": "mail", "agent": "code" })).unwrap()["rulebook"].clone();
        desk.call(&owner, "desk_mount_answer", asked(&seen)).unwrap();
    }

    fn a_rule_that_somebody_wrote_on_is_theirs(desk: &TestDesk) {
        let (owner, _) = people(desk);
        set(desk, &owner, "send", "ask");
        let mut rules = global(desk, &owner)["body"]["rules"].clone();
        rules[3]["quorum"] = json!(2);
        desk.call(&owner, "desk_policy_apply", json!({ "document": json!({ "rules": rules }).to_string() })).unwrap();
        let send = shown(desk, &owner, "mail", "send");
        assert_eq!((send.get("set"), &send["hits"][0]["rule_id"]), (None, &json!("tool:mail:send")), "it says more than can be set: {send}");
        for answer in ["pass", "ask", "forbid", "policies"] {
            let error = desk.refused(&owner, "desk_mount_answer", input("send", answer));
            assert_code(&error, Code::Conflict);
            assert!(error.message.contains("tool:mail:send"), "{error}");
        }
        assert_eq!(global(desk, &owner)["body"]["rules"], rules);
    }

    fn no_name_of_a_tool_reaches_another_one(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let (long, longer) = ("x".repeat(127), "x".repeat(128));
        let odd = ["__proto__", "constructor", "..", "a.b-c", "-", "tool", &long, &longer];
        mount(desk, &owner, "odd", &odd);
        for (number, name) in odd.iter().enumerate() {
            let put = |answer: &str| desk.call(&owner, "desk_mount_answer", json!({ "mount": "odd", "tool": name, "answer": answer })).unwrap();
            assert_eq!(put("pass")["answer"], json!("pass"));
            assert_eq!(shown(desk, &owner, "odd", name)["mode"], json!("act"), "{name}");
            for other in &odd[number + 1..] {
                assert_eq!(shown(desk, &owner, "odd", other)["mode"], json!("escalate"), "{name} let {other} pass");
            }
            put("forbid");
        }
        assert!(odd.iter().all(|name| shown(desk, &owner, "odd", name)["mode"] == "deny"));
        // Beside each other these two tools are called the same: what is given is given to one, what is taken is taken from both.
        mount(desk, &owner, "a", &["b_c"]);
        mount(desk, &owner, "a_b", &["c"]);
        let put = |answer: &str| drop(desk.call(&owner, "desk_mount_answer", json!({ "mount": "a", "tool": "b_c", "answer": answer })).unwrap());
        put("pass");
        assert_eq!((state(desk, &agent, "a", "b_c"), state(desk, &agent, "a_b", "c")), ("passed".into(), "held".into()));
        put("forbid");
        assert_eq!((&shown(desk, &owner, "a", "b_c")["mode"], &shown(desk, &owner, "a_b", "c")["mode"]), (&json!("deny"), &json!("deny")));
        assert_eq!(shown(desk, &owner, "a_b", "c").get("set"), None);
        assert!(desk.verify().findings.is_empty());
    }

    fn a_mount_that_goes_takes_along_what_let_its_tools_pass(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        set(desk, &owner, "send", "pass");
        set(desk, &owner, "read_mail", "forbid");
        desk.call(&owner, "desk_mount_remove", json!({ "name": "mail" })).unwrap();
        assert_eq!(rule_names(desk, &owner), ["reading", "no-wipe", "tool:mail:read_mail"]);
        // Another server comes under the same name.
        mount(desk, &owner, "mail", &["read_mail", "send"]);
        assert_eq!((state(desk, &agent, "mail", "send"), state(desk, &agent, "mail", "read_mail")), ("held".into(), "denied".into()));
        assert!(desk.verify().findings.is_empty());
    }

    fn a_mount_that_settings_leave_out_goes_as_one_that_is_removed(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        set(desk, &owner, "send", "pass");
        set(desk, &owner, "read_mail", "forbid");
        let applied = |document: &str| desk.call(&owner, "desk_policy_apply", json!({ "document": document })).unwrap();
        applied("gateway: { mounts: [] }");
        assert_eq!(rule_names(desk, &owner), ["reading", "no-wipe", "tool:mail:read_mail"]);
        // Another server comes under the same name: it is looked at for the first time, and nothing was set for it.
        mount(desk, &owner, "mail", &["send", "other"]);
        assert_eq!(state(desk, &agent, "mail", "send"), "held");
        // Also where a section takes the place of the rules and of the mounts at once.
        set(desk, &owner, "send", "pass");
        let rules = json!(global(desk, &owner)["body"]["rules"]);
        applied(&json!({ "rules": rules, "gateway": { "mounts": [{ "name": "others", "command": "x" }] } }).to_string());
        assert_eq!(rule_names(desk, &owner), ["reading", "no-wipe", "tool:mail:read_mail"]);
        desk.seal();
        let told = desk.call(&owner, "desk_record_list", json!({ "kind": "mount.forgotten" })).unwrap();
        assert_eq!(told["events"].as_array().unwrap().len(), 2, "{told}");
        assert!(desk.verify().findings.is_empty());
    }

    fn a_mount_that_the_file_leaves_out_goes_as_one_that_is_removed(desk: &TestDesk) {
        let owner = desk.claim();
        let submit = |text: &str| {
            let document = Document::parse_within(text, policy::FILE_KEYS).unwrap();
            desk.act(move |cx| draft::submit(cx, &document)).unwrap()
        };
        let waits = submit("gateway: { mounts: [{ name: mail, command: x }] }");
        desk.call(&owner, "desk_request_approve", json!({ "request": waits.request })).unwrap();
        mount(desk, &owner, "mail", &["send"]);
        set(desk, &owner, "send", "pass");
        assert_eq!(submit("gateway: { mounts: [] }").applied.len(), 1, "what takes away applies at once");
        mount(desk, &owner, "mail", &["send"]);
        assert_eq!(state(desk, &desk.register(&owner, "code"), "mail", "send"), "held");
        assert!(desk.verify().findings.is_empty());
    }
}
