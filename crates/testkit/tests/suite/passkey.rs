//! Passkeys: another way to show that one is there, beside a passphrase or in its place, on both engines. The authenticator is made here, bit by bit, so that
//! each of its promises can be broken alone.

use std::time::Duration;

use data_encoding::{BASE64, BASE64URL_NOPAD};
use deskmate_core::Code;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::{Caller, TestDesk, assert_code, both};

const HOST: &str = "deskmate.localhost";
const SPKI_HEAD: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE";

/// An authenticator, and what the browser around it says.
struct Passkey {
    id: &'static [u8],
    seed: u8,
    host: &'static str,
    port: u16,
    flags: u8,
    ceremony: Option<&'static str>,
}

impl Passkey {
    const GOOD: Self = Self { id: b"a passkey", seed: 7, host: HOST, port: 7373, flags: 0b101, ceremony: None };

    fn key(&self) -> SigningKey {
        SigningKey::from_slice(&[self.seed; 32]).unwrap()
    }

    fn id(&self) -> String {
        BASE64URL_NOPAD.encode(self.id)
    }

    /// The client's data and the authenticator's, for a purpose.
    fn data(&self, purpose: &str, bound: &str, asked_at: i64) -> (Vec<u8>, Vec<u8>) {
        let challenge = BASE64URL_NOPAD.encode(&Sha256::digest(format!("deskmate passkey {purpose}\n{bound}\n{asked_at}")));
        let ceremony = self.ceremony.unwrap_or(if ["add", "first"].contains(&purpose) { "webauthn.create" } else { "webauthn.get" });
        let client = json!({ "type": ceremony, "challenge": challenge, "origin": format!("http://{}:{}", self.host, self.port), "crossOrigin": false });
        let mut authenticator = Sha256::digest(self.host).to_vec();
        authenticator.extend([self.flags, 0, 0, 0, 0]);
        (client.to_string().into_bytes(), authenticator)
    }

    fn added(&self, person: &str, asked_at: i64) -> Value {
        self.made("add", person, asked_at)
    }

    /// The first passkey of somebody who comes with a link, made for it and for the new key of their browser.
    fn first(&self, code: &str, key: &str, asked_at: i64) -> Value {
        self.made("first", &format!("{code}\n{key}"), asked_at)
    }

    fn made(&self, purpose: &str, bound: &str, asked_at: i64) -> Value {
        let (client, authenticator) = self.data(purpose, bound, asked_at);
        let point = self.key().verifying_key().to_encoded_point(false).as_bytes().to_vec();
        let spki = [BASE64.decode(format!("{SPKI_HEAD}AAAA").as_bytes()).unwrap()[..26].to_vec(), point].concat();
        json!({
            "id": self.id(), "public_key": BASE64.encode(&spki), "asked_at": asked_at, "note": "the blue one",
            "client_data": BASE64.encode(&client), "authenticator_data": BASE64.encode(&authenticator),
        })
    }

    fn answer(&self, purpose: &str, bound: &str, asked_at: i64) -> Value {
        let (client, authenticator) = self.data(purpose, bound, asked_at);
        let signature: Signature = self.key().sign(&[authenticator.as_slice(), Sha256::digest(&client).as_slice()].concat());
        json!({
            "id": self.id(), "asked_at": asked_at, "client_data": BASE64.encode(&client),
            "authenticator_data": BASE64.encode(&authenticator), "signature": BASE64.encode(signature.to_der().as_bytes()),
        })
    }
}

fn now_ms(desk: &TestDesk) -> i64 {
    deskmate_core::World::now(desk.world.as_ref()) / 1_000
}

fn person(desk: &TestDesk, caller: &Caller) -> String {
    desk.call(caller, "desk_whoami", json!({})).unwrap()["id"].as_str().unwrap().to_owned()
}

fn browser_key() -> String {
    BASE64.encode(SigningKey::from_slice(&[9; 32]).unwrap().verifying_key().to_encoded_point(false).as_bytes())
}

/// The code of a link that claims the desk.
fn claim_code(desk: &TestDesk) -> String {
    desk.act(deskmate_core::identity::issue_claim).unwrap().code
}

both! {
    fn a_passkey_alone_claims_and_decides(desk: &TestDesk) {
        let (code, key) = (claim_code(desk), browser_key());
        let passkey = Passkey::GOOD.first(&code, &key, now_ms(desk));
        let claimed = desk.call(&Caller::Nobody, "desk_claim", json!({ "code": code, "name": "Ada", "passkey": passkey, "public_key": key })).unwrap();
        assert_eq!(claimed["role"], "owner");
        let id = claimed["person"].as_str().unwrap();
        desk.world.pass(Duration::from_mins(6));
        let signed_in = |now| desk.call(&Caller::Nobody, "desk_sign_in", json!({ "passkey": Passkey::GOOD.answer("sign-in", &key, now), "public_key": key }));
        let owner = Caller::Secret(signed_in(now_ms(desk)).unwrap()["session"].as_str().unwrap().to_owned());
        desk.world.pass(Duration::from_mins(6));
        assert_code(&desk.refused(&owner, "desk_agent_add", json!({ "agent": "code" })), Code::Forbidden);
        desk.call(&owner, "desk_show_presence", json!({ "passkey": Passkey::GOOD.answer("presence", id, now_ms(desk)) })).unwrap();
        desk.call(&owner, "desk_agent_add", json!({ "agent": "code" })).unwrap();
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn who_has_only_a_passkey_is_told_how_to_set_a_passphrase(desk: &TestDesk) {
        let (code, key) = (claim_code(desk), browser_key());
        let passkey = Passkey::GOOD.first(&code, &key, now_ms(desk));
        let claimed = desk.call(&Caller::Nobody, "desk_claim", json!({ "code": code, "name": "Ada", "passkey": passkey, "public_key": key })).unwrap();
        let owner = Caller::Secret(claimed["session"].as_str().unwrap().to_owned());
        for _ in 0..6 {
            let refused = desk.refused(&Caller::Nobody, "desk_sign_in", json!({ "name": "Ada", "passphrase": "a guess" }));
            assert!(refused.code == Code::Unauthenticated && refused.hint.as_deref().is_some_and(|hint| hint.contains("/passkeys")), "nothing is guessed: {refused:?}");
        }
        assert_code(&desk.refused(&owner, "desk_show_presence", json!({ "passphrase": "a guess" })), Code::Unauthenticated);
        let listed = desk.call(&owner, "desk_passkey_list", json!({})).unwrap();
        assert_eq!(listed["passphrase"], false);
        let last = json!({ "passkey": listed["passkeys"][0]["passkey"] });
        assert_code(&desk.refused(&owner, "desk_passkey_remove", last.clone()), Code::Conflict);
        assert_code(&desk.refused(&owner, "desk_passphrase_set", json!({ "passphrase": "short" })), Code::Invalid);
        let other = Passkey { id: b"another", ..Passkey::GOOD }.added(claimed["person"].as_str().unwrap(), now_ms(desk));
        let other = desk.call(&owner, "desk_passkey_add", other).unwrap();
        desk.call(&owner, "desk_passkey_remove", json!({ "passkey": other["passkey"] })).unwrap();
        desk.call(&owner, "desk_passphrase_set", json!({ "passphrase": "correct horse" })).unwrap();
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
        assert_eq!(desk.call(&owner, "desk_passkey_list", json!({})).unwrap()["passphrase"], true);
        desk.call(&owner, "desk_passkey_remove", last).unwrap();
        desk.call(&Caller::Nobody, "desk_sign_in", json!({ "name": "Ada", "passphrase": "correct horse" })).unwrap();
    }

    fn a_passphrase_is_set_by_its_person_who_is_there(desk: &TestDesk) {
        let owner = desk.claim();
        desk.call(&owner, "desk_passphrase_set", json!({ "passphrase": "another one" })).unwrap();
        assert_eq!(desk.call(&Caller::Nobody, "desk_sign_in", json!({ "name": "Owner", "passphrase": "correct horse" })).unwrap()["signed_in"], false);
        desk.call(&Caller::Nobody, "desk_sign_in", json!({ "name": "Owner", "passphrase": "another one" })).unwrap();
        desk.world.pass(Duration::from_mins(6));
        let refused = desk.refused(&owner, "desk_passphrase_set", json!({ "passphrase": "a third one" }));
        assert!(refused.code == Code::Forbidden && refused.needs_presence, "{refused:?}");
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn an_invitation_is_accepted_with_a_passkey_that_was_made_for_it(desk: &TestDesk) {
        let owner = desk.claim();
        let id = person(desk, &owner);
        let invited = |name: &str| desk.call(&owner, "desk_person_invite", json!({ "name": name, "role": "approver" })).unwrap()["code"].as_str().unwrap().to_owned();
        let (code, other, key, now) = (invited("Ann"), invited("Bo"), browser_key(), now_ms(desk));
        let accept = |passkey: Value| json!({ "code": code, "passkey": passkey, "public_key": key });
        let wrong = [
            ("another link", Passkey::GOOD.first(&other, &key, now)),
            ("another browser", Passkey::GOOD.first(&code, "another key", now)),
            ("another purpose", Passkey::GOOD.added(&code, now)),
            ("a person", Passkey::GOOD.added(&id, now)),
            ("nobody verified", Passkey { flags: 0b001, ..Passkey::GOOD }.first(&code, &key, now)),
            ("another ceremony", Passkey { ceremony: Some("webauthn.get"), ..Passkey::GOOD }.first(&code, &key, now)),
            ("too old", Passkey::GOOD.first(&code, &key, now - 6 * 60 * 1_000)),
        ];
        for (what, passkey) in wrong {
            let refused = desk.refused(&Caller::Nobody, "desk_accept_invitation", accept(passkey));
            assert_eq!(refused.code, Code::Invalid, "{what}: {refused}");
        }
        let good = Passkey::GOOD.first(&code, &key, now);
        for bad in [
            json!({ "code": code, "passkey": good }),
            json!({ "code": code, "passkey": good, "passphrase": "correct horse", "public_key": key }),
            json!({ "code": code, "public_key": key }),
        ] {
            assert_code(&desk.refused(&Caller::Nobody, "desk_accept_invitation", bad), Code::Invalid);
        }
        let joined = desk.call(&Caller::Nobody, "desk_accept_invitation", accept(good.clone())).unwrap();
        assert_eq!((joined["name"].as_str(), joined["role"].as_str()), (Some("Ann"), Some("approver")));
        assert_code(&desk.refused(&Caller::Nobody, "desk_accept_invitation", accept(good)), Code::Unauthenticated);
        let again = json!({ "code": other, "passkey": Passkey::GOOD.first(&other, &key, now), "public_key": key });
        assert_code(&desk.refused(&Caller::Nobody, "desk_accept_invitation", again), Code::Conflict);
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn a_passkey_shows_presence_and_signs_in(desk: &TestDesk) {
        let owner = desk.claim();
        let id = person(desk, &owner);
        let added = desk.call(&owner, "desk_passkey_add", Passkey::GOOD.added(&id, now_ms(desk))).unwrap();
        assert_eq!((added["note"].as_str(), added["host"].as_str()), (Some("the blue one"), Some(HOST)));
        assert_eq!(desk.call(&owner, "desk_passkey_list", json!({})).unwrap()["passkeys"][0]["passkey"], added["passkey"]);
        desk.world.pass(Duration::from_mins(6));
        assert_code(&desk.refused(&owner, "desk_agent_add", json!({ "agent": "code" })), Code::Forbidden);
        let shown = desk.call(&owner, "desk_show_presence", json!({ "passkey": Passkey::GOOD.answer("presence", &id, now_ms(desk)) })).unwrap();
        assert_eq!(shown["shown"], true);
        desk.call(&owner, "desk_agent_add", json!({ "agent": "code" })).unwrap();
        let key = browser_key();
        let signed_in = desk.call(&Caller::Nobody, "desk_sign_in", json!({ "passkey": Passkey::GOOD.answer("sign-in", &key, now_ms(desk)), "public_key": key })).unwrap();
        assert_eq!(signed_in["name"], "Owner");
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn whatever_is_wrong_with_its_answer_shows_nothing(desk: &TestDesk) {
        let owner = desk.claim();
        let id = person(desk, &owner);
        desk.call(&owner, "desk_passkey_add", Passkey::GOOD.added(&id, now_ms(desk))).unwrap();
        let key = browser_key();
        let now = now_ms(desk);
        let wrong = [
            ("another key", Passkey { seed: 8, ..Passkey::GOOD }.answer("presence", &id, now)),
            ("unknown", Passkey { id: b"another", ..Passkey::GOOD }.answer("presence", &id, now)),
            ("another host", Passkey { host: "evil.localhost", ..Passkey::GOOD }.answer("presence", &id, now)),
            ("a page on another port", Passkey { port: 3000, ..Passkey::GOOD }.answer("presence", &id, now)),
            ("nobody verified", Passkey { flags: 0b001, ..Passkey::GOOD }.answer("presence", &id, now)),
            ("nobody there", Passkey { flags: 0b100, ..Passkey::GOOD }.answer("presence", &id, now)),
            ("another ceremony", Passkey { ceremony: Some("webauthn.create"), ..Passkey::GOOD }.answer("presence", &id, now)),
            ("another purpose", Passkey::GOOD.answer("sign-in", &id, now)),
            ("another person", Passkey::GOOD.answer("presence", "somebody else", now)),
            ("too old", Passkey::GOOD.answer("presence", &id, now - 6 * 60 * 1_000)),
            ("from the future", Passkey::GOOD.answer("presence", &id, now + 6 * 60 * 1_000)),
        ];
        for (what, answer) in wrong {
            let refused = desk.refused(&owner, "desk_show_presence", json!({ "passkey": answer }));
            assert_eq!(refused.code, Code::Unauthenticated, "{what}: {refused}");
            let clock = ["too old", "from the future"].contains(&what);
            assert_eq!(refused.message.contains("360 s"), clock, "who is off by the clock is told so: {what}: {refused}");
        }
        let other = Passkey::GOOD.answer("sign-in", "another key", now);
        assert_code(&desk.refused(&Caller::Nobody, "desk_sign_in", json!({ "passkey": other, "public_key": key })), Code::Unauthenticated);
        let good = Passkey::GOOD.answer("sign-in", &key, now);
        for bad in [json!({ "passkey": good }), json!({ "passkey": good, "passphrase": "correct horse", "public_key": key }), json!({})] {
            assert_code(&desk.refused(&Caller::Nobody, "desk_sign_in", bad), Code::Invalid);
        }
    }

    fn only_its_owner_has_and_removes_it(desk: &TestDesk) {
        let owner = desk.claim();
        let id = person(desk, &owner);
        let link = desk.call(&owner, "desk_person_invite", json!({ "name": "Ann", "role": "approver" })).unwrap();
        let joined = desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": link["code"], "passphrase": "sesame 1" })).unwrap();
        let ann = Caller::Secret(joined["session"].as_str().unwrap().to_owned());
        let added = desk.call(&owner, "desk_passkey_add", Passkey::GOOD.added(&id, now_ms(desk))).unwrap();
        let passkey = json!({ "passkey": added["passkey"] });
        assert_code(&desk.refused(&ann, "desk_passkey_remove", passkey.clone()), Code::NotFound);
        let ann_id = person(desk, &ann);
        assert_code(&desk.refused(&ann, "desk_show_presence", json!({ "passkey": Passkey::GOOD.answer("presence", &ann_id, now_ms(desk)) })), Code::Unauthenticated);
        assert_code(&desk.refused(&ann, "desk_passkey_add", Passkey::GOOD.added(&ann_id, now_ms(desk))), Code::Conflict);
        assert_code(&desk.refused(&ann, "desk_passkey_add", Passkey { flags: 0b001, ..Passkey::GOOD }.added(&ann_id, now_ms(desk))), Code::Invalid);
        desk.call(&owner, "desk_passkey_remove", passkey).unwrap();
        assert_code(&desk.refused(&owner, "desk_show_presence", json!({ "passkey": Passkey::GOOD.answer("presence", &id, now_ms(desk)) })), Code::Unauthenticated);
        assert_code(&desk.refused(&owner, "desk_passkey_add", Passkey::GOOD.added(&id, now_ms(desk))), Code::Conflict);
        assert!(desk.verify().sound);
    }

    fn guessing_passphrases_does_not_lock_a_passkey_out(desk: &TestDesk) {
        let owner = desk.claim();
        let id = person(desk, &owner);
        desk.call(&owner, "desk_passkey_add", Passkey::GOOD.added(&id, now_ms(desk))).unwrap();
        for _ in 0..5 {
            desk.call(&Caller::Nobody, "desk_sign_in", json!({ "name": "Owner", "passphrase": "a guess" })).unwrap();
        }
        assert_code(&desk.refused(&Caller::Nobody, "desk_sign_in", json!({ "name": "Owner", "passphrase": "correct horse" })), Code::Limited);
        let key = browser_key();
        desk.call(&Caller::Nobody, "desk_sign_in", json!({ "passkey": Passkey::GOOD.answer("sign-in", &key, now_ms(desk)), "public_key": key })).unwrap();
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
        desk.call(&Caller::Nobody, "desk_sign_in", json!({ "name": "Owner", "passphrase": "correct horse" })).unwrap();
    }
}
