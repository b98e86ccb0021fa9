//! The secret store, on both engines.

use deskmate_core::call::{Actor, Call, Credential, Signed, Surface};
use deskmate_core::limits::SECRET_BYTES_MAX;
use deskmate_core::secret::{Key, Safe, resolve};
use deskmate_core::{Code, Result, TABLES};
use serde_json::{Value, json};
use testkit::{Backend, Caller, TestDesk, assert_code, both, wait};

const VALUE: &str = "hunter2-Zx9\u{e4}-do-not-tell";

fn set(desk: &TestDesk, owner: &Caller, name: &str, value: &str) -> Value {
    desk.call(owner, "desk_secret_set", json!({ "name": name, "value": value })).unwrap()
}

/// What the server itself gets.
fn resolved(desk: &TestDesk, name: &str) -> Result<String> {
    let name = name.to_owned();
    desk.act(move |cx| resolve(cx, &name).map(|value| value.to_string()))
}

fn events(desk: &TestDesk, owner: &Caller) -> Vec<Value> {
    let listed = desk.call(owner, "desk_record_list", json!({ "limit": 200 })).unwrap();
    listed["events"].as_array().unwrap().clone()
}

/// Every row of the store as text.
fn every_row(desk: &TestDesk) -> String {
    let read = |tx: &mut deskmate_db::Tx<'_>| -> Result<String> {
        let mut text = String::new();
        for (table, _) in TABLES {
            for row in tx.query_text(&format!("select * from \"{table}\""), &[])? {
                for value in row.values() {
                    match value {
                        deskmate_db::Value::Text(value) => text.push_str(value),
                        deskmate_db::Value::Bytes(bytes) => text.push_str(&String::from_utf8_lossy(bytes)),
                        other => text.push_str(&format!("{other:?}")),
                    }
                    text.push('\n');
                }
            }
        }
        Ok(text)
    };
    desk.desk.db.read_blocking(read).unwrap()
}

both! {
    fn a_secret_is_kept_shown_without_its_value_and_resolved_by_the_server_alone(desk: &TestDesk) {
        let owner = desk.claim();
        let made = set(desk, &owner, "mail", VALUE);
        assert_eq!((&made["name"], &made["version"], made["fingerprint"].as_str().unwrap().len()), (&json!("mail"), &json!(1), 8));
        assert!(made.get("value").is_none() && made.get("rotated_at").is_none());
        assert_eq!(resolved(desk, "mail").unwrap(), VALUE);
        let listed = desk.call(&owner, "desk_secret_list", json!({})).unwrap();
        assert_eq!(listed["secrets"], json!([made]));
        assert!(listed.get("locked").is_none());
        assert!(!every_row(desk).contains("hunter2"), "encrypted wherever it lies");
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn only_an_owner_who_is_there_puts_secrets_in(desk: &TestDesk) {
        let owner = desk.claim();
        let agent = desk.register(&owner, "code");
        let token = desk.call(&owner, "desk_token_create", json!({ "note": "all", "scopes": ["*"] })).unwrap();
        let token = Caller::Secret(token["token"].as_str().unwrap().to_owned());
        let calls = [
            ("desk_secret_set", json!({ "name": "mail", "value": VALUE })),
            ("desk_secret_rotate", json!({ "name": "mail", "value": VALUE })),
            ("desk_secret_remove", json!({ "name": "mail" })),
        ];
        for (operation, input) in calls {
            for caller in [&agent, &token] {
                assert_code(&desk.refused(caller, operation, input.clone()), Code::Forbidden);
            }
        }
        assert_code(&desk.refused(&agent, "desk_secret_list", json!({})), Code::Forbidden);
        let invited = desk.call(&owner, "desk_person_invite", json!({ "name": "Member", "role": "member" })).unwrap();
        let joined = desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": invited["code"], "passphrase": "another horse" })).unwrap();
        let member = Caller::Secret(joined["session"].as_str().unwrap().to_owned());
        assert_code(&desk.refused(&member, "desk_secret_set", json!({ "name": "mail", "value": VALUE })), Code::Forbidden);
        assert_code(&desk.refused(&member, "desk_secret_list", json!({})), Code::Forbidden);
    }

    fn no_caller_resolves_a_secret(desk: &TestDesk) {
        let owner = desk.claim();
        set(desk, &owner, "mail", VALUE);
        for actor in [Actor::agent("code", true), Actor::agent("code", false)] {
            let own = desk.desk.clone();
            let tried = move |tx: &mut deskmate_db::Tx<'_>| Ok::<_, deskmate_core::Error>(resolve(&mut own.cx(tx, actor.clone(), Surface::Mcp), "mail").err());
            assert_code(&desk.desk.db.read_blocking(tried).unwrap().expect("refused"), Code::Forbidden);
        }
    }

    fn rotation_keeps_the_name_and_tells_the_version(desk: &TestDesk) {
        let owner = desk.claim();
        let first = set(desk, &owner, "mail", VALUE);
        let second = desk.call(&owner, "desk_secret_rotate", json!({ "name": "mail", "value": "another-Value7" })).unwrap();
        assert_eq!((&second["version"], &second["created_at"]), (&json!(2), &first["created_at"]));
        assert!(second["rotated_at"].is_string() && second["rotated_by"] == first["created_by"]);
        assert_ne!(second["fingerprint"], first["fingerprint"]);
        assert_eq!(resolved(desk, "mail").unwrap(), "another-Value7");
        let same = desk.refused(&owner, "desk_secret_rotate", json!({ "name": "mail", "value": "another-Value7" }));
        assert_eq!((same.code, same.field.as_deref()), (Code::Invalid, Some("value")));
        assert_code(&desk.refused(&owner, "desk_secret_rotate", json!({ "name": "nothing", "value": "x" })), Code::NotFound);
        let told = events(desk, &owner);
        let rotated = told.iter().find(|event| event["kind"] == "secret.rotated").unwrap();
        assert_eq!((&rotated["facts"]["secret"], &rotated["facts"]["version"], rotated.get("payload")), (&json!("mail"), &json!(2), None));
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn a_removed_secret_says_so_at_its_next_use_and_its_versions_go_on(desk: &TestDesk) {
        let owner = desk.claim();
        set(desk, &owner, "mail", VALUE);
        desk.desk.safe.uses("mount:post", ["mail".to_owned()]);
        assert_eq!(desk.call(&owner, "desk_secret_list", json!({})).unwrap()["secrets"][0]["used_by"], json!(["mount:post"]));
        let removed = desk.call(&owner, "desk_secret_remove", json!({ "name": "mail" })).unwrap();
        assert_eq!(removed["used_by"], json!(["mount:post"]));
        let error = resolved(desk, "mail").unwrap_err();
        assert_code(&error, Code::NotFound);
        assert!(error.message.contains("was removed") && error.hint.unwrap().contains("deskmate secret set mail"), "{}", error.message);
        assert!(resolved(desk, "other").unwrap_err().message.contains("there is no secret other"));
        assert_eq!(desk.call(&owner, "desk_secret_list", json!({})).unwrap()["secrets"], json!([]));
        assert_code(&desk.refused(&owner, "desk_secret_remove", json!({ "name": "mail" })), Code::NotFound);
        assert_eq!(set(desk, &owner, "mail", "again-Value7")["version"], 2);
        desk.desk.safe.uses("mount:post", []);
        assert_eq!(desk.call(&owner, "desk_secret_list", json!({})).unwrap()["secrets"][0]["used_by"], json!([]));
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn bad_names_and_values_are_refused_without_being_repeated(desk: &TestDesk) {
        let owner = desk.claim();
        for name in ["", "Hunter2", "-a", ".a", "_a", "a b", "a/b", "a:b", "\u{e4}", &"a".repeat(65), "a\n"] {
            let error = desk.refused(&owner, "desk_secret_set", json!({ "name": name, "value": "x" }));
            assert_eq!((error.code, error.field.as_deref()), (Code::Invalid, Some("name")), "{name:?}");
            assert!(!error.to_string().contains("Hunter2"), "{error}");
        }
        assert_code(&desk.refused(&owner, "desk_secret_set", json!({ "name": "mail", "value": "hunter2\0" })), Code::Invalid);
        for value in [json!(""), json!("hunter2".repeat(SECRET_BYTES_MAX / 7 + 1)), json!(["hunter2"]), json!(22_772_277), json!({ "hunter2": 1 })] {
            let error = desk.refused(&owner, "desk_secret_set", json!({ "name": "mail", "value": value }));
            assert_eq!((error.code, error.field.as_deref()), (Code::Invalid, Some("value")), "{error}");
            assert!(!error.to_string().contains("hunter2") && !error.to_string().contains("22772277"), "{error}");
        }
        let twice = || desk.call(&owner, "desk_secret_set", json!({ "name": "a.b-c_9", "value": "x".repeat(SECRET_BYTES_MAX) }));
        assert!(twice().is_ok());
        assert_code(&twice().unwrap_err(), Code::Conflict);
        let keyed = desk.refused(&owner, "desk_secret_set", json!({ "name": "k", "value": VALUE, "idempotency_key": "1" }));
        assert_eq!(keyed.field.as_deref(), Some("idempotency_key"), "nothing that is derived from a value is kept");
    }

    fn rows_that_somebody_exchanged_open_nothing_and_are_found(desk: &TestDesk) {
        let owner = desk.claim();
        set(desk, &owner, "one", "first-Value1");
        set(desk, &owner, "two", "second-Value2");
        desk.tamper("update secret set nonce = (select nonce from secret where name = 'one'), sealed = (select sealed from secret where name = 'one') where name = 'two'");
        let error = resolved(desk, "two").unwrap_err();
        assert!(error.message.contains("was changed in the store") && !error.message.contains("first"), "{error}");
        let report = desk.verify();
        assert!(!report.sound && report.findings.iter().any(|finding| finding.what.contains("secret two")), "{:?}", report.findings);
    }

    fn an_older_value_that_somebody_put_back_is_refused(desk: &TestDesk) {
        let owner = desk.claim();
        set(desk, &owner, "one", "first-Value1");
        desk.tamper("insert into secret (name, version, nonce, sealed, fingerprint, created_at, created_by) \
                     select 'kept', version, nonce, sealed, fingerprint, created_at, created_by from secret where name = 'one'");
        desk.call(&owner, "desk_secret_rotate", json!({ "name": "one", "value": "second-Value2" })).unwrap();
        desk.tamper("update secret set nonce = (select nonce from secret where name = 'kept'), sealed = (select sealed from secret where name = 'kept') where name = 'one'");
        assert!(resolved(desk, "one").is_err(), "the version is bound to it");
        desk.tamper("update secret set version = 1 where name = 'one'");
        let report = desk.verify();
        assert!(report.findings.iter().any(|finding| finding.what.contains("secret one")), "{:?}", report.findings);
    }

    fn a_server_with_another_key_refuses_secrets_and_nothing_else(desk: &TestDesk) {
        let owner = desk.claim();
        set(desk, &owner, "mail", VALUE);
        let other = Safe::new(Key::parse(&Key::generate(&[3; 32])).unwrap());
        for (safe, why) in [(other, "is not the one"), (Safe::closed("its key is missing"), "its key is missing"), (Safe::default(), "no key")] {
            let mut elsewhere = desk.desk.clone();
            elsewhere.safe = safe;
            let own = elsewhere.clone();
            let resolving = elsewhere.db.read_blocking(move |tx| Ok::<_, deskmate_core::Error>(resolve(&mut own.cx(tx, Actor::system(), Surface::System), "mail").err()));
            let error = resolving.unwrap().expect("refused");
            assert_eq!(error.code, Code::Unavailable);
            assert!(error.message.contains(why), "{error}");
            let call = |operation: &str, input: Value| {
                let Caller::Secret(secret) = &owner else { panic!() };
                let credential = Credential::Secret { secret: secret.clone(), proved: true };
                wait(elsewhere.call(Call { credential, surface: Surface::Rest, operation: operation.to_owned(), input }))
            };
            for operation in ["desk_secret_set", "desk_secret_rotate"] {
                let name = if operation == "desk_secret_set" { "new" } else { "mail" };
                assert_code(&call(operation, json!({ "name": name, "value": "x-Value9" })).unwrap_err(), Code::Unavailable);
            }
            let listed = format!("{:?}", call("desk_secret_list", json!({})).unwrap().outcome);
            assert!(listed.contains("locked") && listed.contains("mail"), "{listed}");
            assert!(call("desk_agent_list", json!({})).is_ok(), "everything else works");
        }
        desk.seal();
        // A desk whose key is lost begins anew when nothing is left that it opened.
        let mut elsewhere = desk.desk.clone();
        elsewhere.safe = Safe::new(Key::parse(&Key::generate(&[3; 32])).unwrap());
        desk.call(&owner, "desk_secret_remove", json!({ "name": "mail" })).unwrap();
        let Caller::Secret(secret) = &owner else { panic!() };
        let credential = Credential::Secret { secret: secret.clone(), proved: true };
        let input = json!({ "name": "mail", "value": "x-Value9" });
        wait(elsewhere.call(Call { credential, surface: Surface::Rest, operation: "desk_secret_set".to_owned(), input })).unwrap();
        desk.seal();
        assert_code(&resolved(desk, "mail").unwrap_err(), Code::Unavailable);
    }

    fn what_a_browser_signed_over_a_secret_is_not_kept(desk: &TestDesk) {
        let owner = desk.claim();
        let Caller::Secret(secret) = &owner else { panic!() };
        let signed = || Signed { text: "POST\ndigest-of-the-body".to_owned(), signature: "c2lnbmVk".to_owned(), key: "a2V5".to_owned() };
        let calls = [("desk_secret_set", json!({ "name": "mail", "value": VALUE })), ("desk_show_presence", json!({ "passphrase": "correct horse" }))];
        for (operation, input) in calls {
            let credential = Credential::Signed { secret: secret.clone(), signed: signed() };
            wait(desk.desk.call(Call { credential, surface: Surface::Rest, operation: operation.to_owned(), input })).unwrap();
            desk.seal();
        }
        assert!(!every_row(desk).contains("digest-of-the-body"), "a digest of a short secret is a way to guess it");
    }

    fn lists_come_in_pages(desk: &TestDesk) {
        let owner = desk.claim();
        for number in 0..5 {
            set(desk, &owner, &format!("s{number}"), "some-Value1");
        }
        let first = desk.call(&owner, "desk_secret_list", json!({ "limit": 3 })).unwrap();
        let second = desk.call(&owner, "desk_secret_list", json!({ "limit": 3, "cursor": first["next_cursor"] })).unwrap();
        let names = |page: &Value| page["secrets"].as_array().unwrap().iter().map(|secret| secret["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!((names(&first), names(&second)), (vec!["s0".to_owned(), "s1".to_owned(), "s2".to_owned()], vec!["s3".to_owned(), "s4".to_owned()]));
        assert!(second.get("next_cursor").is_none());
        let marks: std::collections::BTreeSet<String> =
            first["secrets"].as_array().unwrap().iter().map(|secret| secret["fingerprint"].as_str().unwrap().to_owned()).collect();
        assert_eq!(marks.len(), 3, "the same value under two names shows no likeness");
    }
}

#[test]
fn a_secret_survives_a_restart() {
    let mut desk = TestDesk::new(Backend::Sqlite);
    let owner = desk.claim();
    set(&desk, &owner, "mail", VALUE);
    desk.restart();
    assert_eq!(resolved(&desk, "mail").unwrap(), VALUE);
}
