//! Pairing an extension or a program with a person, on both engines.

use std::time::Duration;

use deskmate_core::call::{Call, Credential, Surface};
use deskmate_core::{Code, identity};
use p256::ecdsa::SigningKey;
use p256::ecdsa::signature::Signer;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both, wait};

const PASSPHRASE: &str = "correct horse";

fn start(desk: &TestDesk, owner: &Caller, kind: &str) -> String {
    let made = desk.call(owner, "desk_pairing_start", json!({ "kind": kind, "name": "On my laptop" })).unwrap();
    made["code"].as_str().unwrap().to_owned()
}

fn pair(desk: &TestDesk, input: Value) -> deskmate_core::Result<Value> {
    desk.call(&Caller::Nobody, "desk_pair", input)
}

fn key() -> SigningKey {
    SigningKey::from_slice(&[9; 32]).unwrap()
}

fn public_key() -> String {
    data_encoding::BASE64.encode(key().verifying_key().to_encoded_point(false).as_bytes())
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap().to_owned()
}

both! {
    fn a_program_gets_a_token_for_the_workspace(desk: &TestDesk) {
        let owner = desk.claim();
        let made = desk.call(&owner, "desk_pairing_start", json!({ "kind": "program", "name": "My script" })).unwrap();
        let code = text(&made, "code");
        assert_eq!((code.len(), code.matches('-').count()), (14, 2), "short enough to type: {code}");
        let paired = pair(desk, json!({ "code": code.to_lowercase().replace('-', "") })).unwrap();
        assert_eq!((paired["kind"].as_str(), paired["name"].as_str(), paired.get("session")), (Some("program"), Some("My script"), None));
        let token = Caller::Secret(text(&paired, "token"));
        assert!(desk.call(&token, "workspace_list_plans", json!({})).is_ok());
        assert_code(&desk.refused(&token, "desk_agent_list", json!({})), Code::Forbidden);
        assert_code(&desk.refused(&token, "desk_pairing_start", json!({ "kind": "program", "name": "another" })), Code::Forbidden);
        let listed = desk.call(&owner, "desk_token_list", json!({})).unwrap();
        assert_eq!((&listed["tokens"][0]["note"], &listed["tokens"][0]["credential"]), (&json!("My script"), &paired["credential"]));
        desk.world.pass(Duration::from_hours(89 * 24));
        assert!(desk.call(&token, "workspace_list_plans", json!({})).is_ok());
        desk.world.pass(Duration::from_hours(25));
        assert_code(&desk.refused(&token, "workspace_list_plans", json!({})), Code::Unauthenticated);
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn a_paired_token_is_revoked_like_any_other(desk: &TestDesk) {
        let owner = desk.claim();
        let paired = pair(desk, json!({ "code": start(desk, &owner, "program") })).unwrap();
        desk.call(&owner, "desk_token_revoke", json!({ "credential": paired["credential"] })).unwrap();
        assert_code(&desk.refused(&Caller::Secret(text(&paired, "token")), "workspace_list_plans", json!({})), Code::Unauthenticated);
    }

    fn an_extension_gets_a_session_bound_to_its_key_and_not_present(desk: &TestDesk) {
        let owner = desk.claim();
        let code = start(desk, &owner, "extension");
        assert_code(&pair(desk, json!({ "code": code })).unwrap_err(), Code::Invalid);
        assert_code(&pair(desk, json!({ "code": code, "public_key": "AAAA" })).unwrap_err(), Code::Invalid);
        let paired = pair(desk, json!({ "code": code, "public_key": public_key() })).unwrap();
        let session = text(&paired, "session");
        assert_eq!(paired.get("token"), None);
        let signature: p256::ecdsa::Signature = key().sign(b"what was shown");
        let secret = session.clone();
        let checks = move |tx: &mut deskmate_db::Tx<'_>| {
            let signed = identity::verify_signature(tx, &secret, b"what was shown", Some(&signature.to_bytes()))?;
            Ok::<_, deskmate_core::Error>((identity::has_key(tx, &secret)?, signed.is_some()))
        };
        assert_eq!(desk.desk.db.read_blocking(checks).unwrap(), (true, true));
        let caller = Caller::Secret(session.clone());
        let you = desk.call(&caller, "desk_whoami", json!({})).unwrap();
        assert_eq!((you["kind"].as_str(), you["role"].as_str(), you["present"].as_bool()), (Some("person"), Some("owner"), Some(false)));
        assert!(desk.refused(&caller, "desk_agent_add", json!({ "agent": "code" })).needs_presence);
        assert_eq!(desk.call(&caller, "desk_show_presence", json!({ "passphrase": PASSPHRASE })).unwrap()["shown"], true);
        desk.register(&caller, "code");
        let unproved = Call { credential: Credential::Secret { secret: session, proved: false }, surface: Surface::Rest, operation: "desk_sign_out".to_owned(), input: json!({}) };
        assert_code(&wait(desk.desk.call(unproved)).unwrap_err(), Code::Forbidden);
        let listed = desk.call(&owner, "desk_session_list", json!({})).unwrap();
        let named = |session: &&Value| session["name"] == "On my laptop";
        assert_eq!(listed["sessions"].as_array().unwrap().iter().filter(named).count(), 1, "{listed:#}");
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn a_code_is_good_once_for_ten_minutes_and_until_a_newer_one(desk: &TestDesk) {
        let owner = desk.claim();
        let (older, other) = (start(desk, &owner, "program"), start(desk, &owner, "extension"));
        let newer = start(desk, &owner, "program");
        let good = || pair(desk, json!({ "code": newer }));
        let refusals = [pair(desk, json!({ "code": older })).unwrap_err(), pair(desk, json!({ "code": "7K3F-9QMD-X2TP" })).unwrap_err(), pair(desk, json!({ "code": "no code" })).unwrap_err()];
        good().unwrap();
        let used = good().unwrap_err();
        desk.world.pass(Duration::from_mins(10));
        let late = pair(desk, json!({ "code": other, "public_key": public_key() })).unwrap_err();
        for refused in refusals.iter().chain([&used, &late]) {
            assert_code(refused, Code::Unauthenticated);
            assert_eq!((&refused.message, &refused.hint), (&used.message, &used.hint), "whatever is wrong, the answer is the same");
        }
    }

    fn a_code_is_of_its_person(desk: &TestDesk) {
        let owner = desk.claim();
        let link = desk.call(&owner, "desk_person_invite", json!({ "name": "Vera", "role": "viewer" })).unwrap();
        let joined = desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": link["code"], "passphrase": "sesame 1" })).unwrap();
        let vera = Caller::Secret(text(&joined, "session"));
        let (hers, second) = (start(desk, &vera, "program"), start(desk, &owner, "program"));
        let paired = pair(desk, json!({ "code": hers })).unwrap();
        assert_eq!((paired["person"].clone(), paired["role"].as_str()), (joined["person"].clone(), Some("viewer")), "another person's newer code ends nothing");
        pair(desk, json!({ "code": second })).unwrap();
        let left = start(desk, &vera, "program");
        desk.call(&owner, "desk_person_change", json!({ "person": joined["person"], "active": false })).unwrap();
        assert_code(&pair(desk, json!({ "code": left })).unwrap_err(), Code::Unauthenticated);
    }

    fn making_a_code_needs_presence_and_the_record_never_shows_it(desk: &TestDesk) {
        let owner = desk.claim();
        desk.world.pass(Duration::from_mins(6));
        assert!(desk.refused(&owner, "desk_pairing_start", json!({ "kind": "program", "name": "x" })).needs_presence);
        desk.call(&owner, "desk_show_presence", json!({ "passphrase": PASSPHRASE })).unwrap();
        assert_code(&desk.refused(&owner, "desk_pairing_start", json!({ "kind": "program", "name": " " })), Code::Invalid);
        let again = json!({ "kind": "program", "name": "x", "idempotency_key": "k" });
        let code = text(&desk.call(&owner, "desk_pairing_start", again.clone()).unwrap(), "code");
        assert_ne!(desk.call(&owner, "desk_pairing_start", again).unwrap()["code"], json!(code), "it is shown once");
        pair(desk, json!({ "code": code })).unwrap();
        let told = desk.call(&owner, "desk_record_list", json!({ "limit": 200 })).unwrap();
        let issued = |kind: &str| told["events"].as_array().unwrap().iter().filter(|event| event["kind"] == "credential.issued" && event["facts"]["kind"] == kind).count();
        assert_eq!((issued("pairing"), issued("personal")), (1, 1), "{told:#}");
        assert!(!told.to_string().contains(&code) && !told.to_string().contains(&code.replace('-', "")));
    }

    fn pairing_leaves_a_lock_alone(desk: &TestDesk) {
        let owner = desk.claim();
        let code = start(desk, &owner, "extension");
        desk.call(&Caller::Nobody, "desk_sign_in", json!({ "name": "Owner", "passphrase": "wrong guess" })).unwrap();
        pair(desk, json!({ "code": code, "public_key": public_key() })).unwrap();
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }
}
