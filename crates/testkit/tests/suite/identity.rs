//! Who is who, and who may do what, on both engines.

use std::time::Duration;

use deskmate_core::call::{Access, Call, Credential, Effect, Registry, Signed, Surface};
use deskmate_core::{Code, identity};
use p256::ecdsa::signature::Signer;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both, wait};

const PASSPHRASE: &str = "correct horse";

fn secret(value: &Value, field: &str) -> Caller {
    Caller::Secret(value[field].as_str().unwrap().to_owned())
}

fn sign_in(desk: &TestDesk, passphrase: &str) -> Value {
    desk.call(&Caller::Nobody, "desk_sign_in", json!({ "name": "Owner", "passphrase": passphrase })).unwrap()
}

fn invite(desk: &TestDesk, owner: &Caller, name: &str, role: &str) -> Caller {
    let link = desk.call(owner, "desk_person_invite", json!({ "name": name, "role": role })).unwrap();
    let joined = desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": link["code"], "passphrase": "sesame 1" })).unwrap();
    secret(&joined, "session")
}

both! {
    fn claiming_and_registering_close_the_desk(desk: &TestDesk) {
        assert_eq!(desk.agent("code", "desk_whoami", json!({})).unwrap()["mode"], "open");
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        let you = desk.call(&code, "desk_whoami", json!({})).unwrap();
        assert_eq!((you["id"].as_str(), you["verified"].as_bool(), you["mode"].as_str()), (Some("code"), Some(true), Some("closed")));
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_whoami", json!({})), Code::Unauthenticated);
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn revoking_the_last_agent_does_not_open_the_desk_again(desk: &TestDesk) {
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        desk.call(&owner, "desk_agent_revoke", json!({ "agent": "code" })).unwrap();
        assert_code(&desk.refused(&code, "desk_whoami", json!({})), Code::Unauthenticated);
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_whoami", json!({})), Code::Unauthenticated);
    }

    fn agents_that_only_named_themselves_are_listed_where_asked(desk: &TestDesk) {
        for agent in ["zoe", "code", "bo", "code"] {
            desk.agent(agent, "bridge_send_message", json!({ "to": "anybody", "content": "hello" })).unwrap();
        }
        let owner = desk.claim();
        desk.world.pass(Duration::from_mins(1));
        let code = desk.register(&owner, "code");
        desk.call(&owner, "desk_agent_add", json!({ "agent": "mute" })).unwrap();
        desk.call(&code, "bridge_send_message", json!({ "to": "mute", "content": "with a token" })).unwrap();
        let list = |input: Value| desk.call(&owner, "desk_agent_list", input).unwrap();
        let names = |listed: &Value| -> Vec<(String, String)> {
            let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
            listed["agents"].as_array().unwrap().iter().map(|row| (text(row, "agent"), text(row, "state"))).collect()
        };
        let pair = |agent: &str, state: &str| (agent.to_owned(), state.to_owned());
        assert_eq!(names(&list(json!({}))), [pair("code", "active"), pair("mute", "active")]);
        let all = list(json!({ "unregistered": true }));
        assert_eq!(names(&all), [pair("bo", "unregistered"), pair("code", "active"), pair("mute", "active"), pair("zoe", "unregistered")], "and no person");
        assert!(all["agents"][1]["last_active_at"].as_str() > all["agents"][0]["last_active_at"].as_str(), "{all:#}");
        assert_eq!(all["agents"][2].get("last_active_at"), None, "it did nothing yet");
        let first = list(json!({ "unregistered": true, "limit": 3 }));
        let second = list(json!({ "unregistered": true, "limit": 3, "cursor": first["next_cursor"] }));
        for (agent, unregistered, found) in [("bo", true, 1), ("bo", false, 0), ("code", true, 1), ("nobody", true, 0)] {
            assert_eq!(list(json!({ "agent": agent, "unregistered": unregistered }))["agents"].as_array().unwrap().len(), found, "{agent}");
        }
        assert_eq!((first["agents"].as_array().unwrap().len(), names(&second), second.get("next_cursor")), (3, vec![pair("zoe", "unregistered")], None));
    }

    fn an_agent_never_decides_or_configures(desk: &TestDesk) {
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        for op in Registry::new().all().filter(|op| matches!(op.access, Access::Person(_) | Access::Present(_) | Access::Decides(_) | Access::System)) {
            assert_code(&desk.refused(&code, &op.full_name(), json!({})), Code::Forbidden);
        }
    }

    fn what_configures_needs_presence(desk: &TestDesk) {
        let owner = desk.claim();
        desk.world.pass(Duration::from_mins(6));
        for op in Registry::new().all().filter(|op| matches!(op.access, Access::Present(_) | Access::Decides(_))) {
            let refused = desk.refused(&owner, &op.full_name(), json!({}));
            assert_code(&refused, Code::Forbidden);
            assert!(refused.needs_presence, "a page knows from this that it has to ask: {refused}");
        }
        let shown = desk.call(&owner, "desk_show_presence", json!({ "passphrase": PASSPHRASE })).unwrap();
        assert_eq!(shown["shown"], true);
        desk.register(&owner, "code");
    }

    fn a_session_that_is_not_proved_only_reads(desk: &TestDesk) {
        let Caller::Secret(session) = desk.claim() else { unreachable!() };
        let ask = |operation: &str, input: Value| {
            let credential = Credential::Secret { secret: session.clone(), proved: false };
            wait(desk.desk.call(Call { credential, surface: Surface::Web, operation: operation.to_owned(), input }))
        };
        assert!(ask("desk_agent_list", json!({})).is_ok());
        for op in Registry::new().all().filter(|op| op.effect_of(&json!({})) == Effect::Write && op.access != Access::Public) {
            assert_code(&ask(&op.full_name(), json!({})).unwrap_err(), Code::Forbidden);
        }
        assert_code(&ask("bridge_send_message", json!({ "to": "code", "content": "Owner: push" })).unwrap_err(), Code::Forbidden);
        assert!(ask("bridge_read_messages", json!({})).is_ok(), "a peek is a read");
        assert_code(&ask("bridge_read_messages", json!({ "mark_read": true })).unwrap_err(), Code::Forbidden);
    }

    fn only_the_local_socket_gives_the_link_that_claims(desk: &TestDesk) {
        let ask = |credential: Credential| {
            let call = Call { credential, surface: Surface::Cli, operation: "desk_new_claim_link".to_owned(), input: json!({}) };
            wait(desk.desk.call(call))
        };
        for credential in [Credential::Nobody, Credential::Named(None), Credential::Named(Some("code".to_owned()))] {
            assert_code(&ask(credential).unwrap_err(), Code::Forbidden);
        }
        assert!(ask(Credential::Local).is_ok());
        let whoami = Call { credential: Credential::Local, surface: Surface::Cli, operation: "desk_whoami".to_owned(), input: json!({}) };
        assert_code(&wait(desk.desk.call(whoami)).unwrap_err(), Code::Unauthenticated);
    }

    fn a_browsers_key_cannot_be_taken_away_or_replaced(desk: &TestDesk) {
        desk.claim();
        let key = |seed: u8| p256::ecdsa::SigningKey::from_slice(&[seed; 32]).unwrap();
        let public = |key: &p256::ecdsa::SigningKey| data_encoding::BASE64.encode(key.verifying_key().to_encoded_point(false).as_bytes());
        let input = json!({ "name": "Owner", "passphrase": PASSPHRASE, "public_key": public(&key(3)) });
        let session = desk.call(&Caller::Nobody, "desk_sign_in", input).unwrap()["session"].as_str().unwrap().to_owned();
        let has_key = || {
            let session = session.clone();
            desk.desk.db.read_blocking(move |tx| identity::has_key(tx, &session)).unwrap()
        };
        let signed_by = |seed: u8| {
            let signature: p256::ecdsa::Signature = key(seed).sign(b"what was shown");
            let session = session.clone();
            let check = move |tx: &mut deskmate_db::Tx<'_>| identity::verify_signature(tx, &session, b"what was shown", Some(&signature.to_bytes()));
            desk.desk.db.read_blocking(check).unwrap().is_some()
        };
        assert!(has_key() && signed_by(3) && !signed_by(4));
        let other = key(4).verifying_key().to_encoded_point(false).as_bytes().to_vec();
        desk.desk.db.write_blocking(move |tx| tx.execute("update session_key set public_key = $1", deskmate_db::args![other])).map_err(|error: deskmate_db::Error| error.to_string()).unwrap();
        assert!(has_key() && !signed_by(3) && !signed_by(4), "a key that was put in proves nothing");
        desk.tamper("delete from session_key");
        assert!(has_key(), "a session of a browser does not become one of the terminal");
        assert!(desk.verify().sound);
        desk.tamper("update credential set scopes = '[]' where scopes like '%key:%'");
        assert!(!has_key());
        assert!(!desk.verify().sound, "the record tells that the session had a key");
    }

    fn the_record_keeps_what_a_browser_signed(desk: &TestDesk) {
        let Caller::Secret(secret) = desk.claim() else { panic!("an owner has a session") };
        let signed = Signed { text: "POST".to_owned(), signature: "c2lnbmVk".to_owned(), key: "a2V5".to_owned() };
        let credential = Credential::Signed { secret: secret.clone(), signed };
        let input = json!({ "agent": "code" });
        wait(desk.desk.call(Call { credential, surface: Surface::Web, operation: "desk_agent_add".to_owned(), input })).unwrap();
        desk.seal();
        let events = desk.call(&Caller::Secret(secret), "desk_record_list", json!({ "subject": "agent:code" })).unwrap();
        assert_eq!(events["events"][0]["signed"], json!({ "text": "POST", "signature": "c2lnbmVk", "key": "a2V5" }), "{events}");
        assert!(desk.verify().sound);
    }

    fn counters_of_wrong_passphrases_are_compared(desk: &TestDesk) {
        desk.claim();
        for _ in 0..5 {
            sign_in(desk, "wrong");
        }
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
        desk.tamper("update person set failures = 0, locked_until = null");
        assert!(!desk.verify().sound);
    }

    fn a_right_passphrase_ends_the_count(desk: &TestDesk) {
        desk.claim();
        sign_in(desk, "wrong");
        sign_in(desk, PASSPHRASE);
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn an_argument_makes_nobody_somebody_else(desk: &TestDesk) {
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        let Caller::Secret(other) = desk.register(&owner, "other") else { unreachable!() };
        assert_code(&desk.refused(&code, "desk_whoami", json!({ "agent_id": "other" })), Code::Forbidden);
        assert_eq!(desk.call(&code, "desk_whoami", json!({ "agent_id": "code" })).unwrap()["id"], "code");
        assert_eq!(desk.call(&code, "desk_whoami", json!({ "agent_token": other })).unwrap()["id"], "code", "the credential wins");
        let by_argument = desk.call(&Caller::Nobody, "desk_whoami", json!({ "agent_token": other })).unwrap();
        assert_eq!(by_argument["id"], "other");
    }

    fn in_open_mode_the_argument_names_the_caller(desk: &TestDesk) {
        let call = |input: Value| {
            let call = Call { credential: Credential::Named(None), surface: Surface::Mcp, operation: "desk_whoami".to_owned(), input };
            wait(desk.desk.call(call))
        };
        assert_eq!(call(json!({ "agent_id": "code" })).unwrap().actor.id, "code");
        assert_code(&call(json!({})).unwrap_err(), Code::Unauthenticated);
        for bad in ["", "desk", "a b", "x\n", "../x", &"x".repeat(129)] {
            assert_code(&call(json!({ "agent_id": bad })).unwrap_err(), Code::Invalid);
        }
    }

    fn an_agent_cannot_take_a_persons_id(desk: &TestDesk) {
        let owner = desk.claim();
        let people = desk.call(&owner, "desk_person_list", json!({})).unwrap();
        let id = people["people"][0]["person"].as_str().unwrap().to_owned();
        let call = Call { credential: Credential::Named(Some(id.clone())), surface: Surface::Mcp, operation: "desk_whoami".to_owned(), input: json!({}) };
        assert_code(&wait(desk.desk.call(call)).unwrap_err(), Code::Invalid);
        assert_code(&desk.refused(&owner, "desk_agent_add", json!({ "agent": id })), Code::Invalid);
    }

    fn tokens_expire_rotate_and_are_revoked(desk: &TestDesk) {
        let owner = desk.claim();
        let answer = desk.call(&owner, "desk_agent_add", json!({ "agent": "code", "expires_in_days": 1 })).unwrap();
        let first = secret(&answer, "token");
        let rotated = desk.call(&owner, "desk_agent_rotate", json!({ "agent": "code", "grace_minutes": 10 })).unwrap();
        let second = secret(&rotated, "token");
        assert!(desk.call(&first, "desk_whoami", json!({})).is_ok(), "the old token still works during the grace time");
        desk.world.pass(Duration::from_mins(11));
        assert_code(&desk.refused(&first, "desk_whoami", json!({})), Code::Unauthenticated);
        assert!(desk.call(&second, "desk_whoami", json!({})).is_ok());
        desk.world.pass(Duration::from_hours(24 * 366));
        assert_code(&desk.refused(&second, "desk_whoami", json!({})), Code::Unauthenticated);
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn a_token_is_stored_only_as_its_hash(desk: &TestDesk) {
        let owner = desk.claim();
        let made = desk.call(&owner, "desk_agent_add", json!({ "agent": "code", "idempotency_key": "k" })).unwrap();
        let token = made["token"].as_str().unwrap().to_owned();
        let tables = ["select hash from credential", "select payload from event_payload", "select body from event", "select answer from idempotency"];
        for sql in tables {
            let rows = desk.desk.db.read_blocking(move |tx| tx.query(sql, &[])).unwrap();
            assert!(rows.iter().all(|row| !format!("{row:?}").contains(&token)), "{sql}");
        }
    }

    fn nothing_is_kept_of_a_passphrase_but_its_slow_hash(desk: &TestDesk) {
        desk.claim();
        for (operation, input) in [
            ("desk_sign_in", json!({ "passphrase": PASSPHRASE, "idempotency_key": "k" })),
            ("desk_claim", json!({ "code": "x", "name": "x", "passphrase": PASSPHRASE, "idempotency_key": "k" })),
            ("desk_accept_invitation", json!({ "code": "x", "passphrase": PASSPHRASE, "idempotency_key": "k" })),
        ] {
            let error = desk.refused(&Caller::Nobody, operation, input);
            assert_eq!((error.code, error.field.as_deref()), (Code::Invalid, Some("idempotency_key")), "{operation}");
        }
        let kept = desk.desk.db.read_blocking(|tx| tx.query("select digest from idempotency", &[])).map_err(|error: deskmate_db::Error| error.to_string());
        assert!(kept.unwrap().is_empty());
        let schemas = Registry::new();
        let takes_key = |name: &str| schemas.get(name).unwrap().input().pointer("/properties/idempotency_key").is_some();
        assert!(!takes_key("desk_sign_in") && !takes_key("desk_show_presence") && takes_key("desk_agent_add"));
    }

    fn an_error_does_not_repeat_a_secret(desk: &TestDesk) {
        let owner = desk.claim();
        for (caller, operation, input) in [
            (&Caller::Nobody, "desk_sign_in", json!({ "passphrase": 123_456 })),
            (&Caller::Nobody, "desk_claim", json!({ "code": 123_456, "name": "x", "passphrase": "y" })),
            (&owner, "desk_show_presence", json!({ "passphrase": [123_456] })),
        ] {
            let error = desk.refused(caller, operation, input);
            assert_code(&error, Code::Invalid);
            assert!(!error.to_string().contains("123456"), "{error}");
        }
    }

    fn whoever_guesses_outside_cannot_keep_the_owner_out(desk: &TestDesk) {
        let owner = desk.claim();
        for _ in 0..5 {
            sign_in(desk, "wrong guess");
        }
        let shown = desk.call(&owner, "desk_show_presence", json!({ "passphrase": PASSPHRASE })).unwrap();
        assert_eq!(shown["shown"], true, "a session that is signed in is not locked by others");
        let input = json!({ "name": "Owner", "passphrase": PASSPHRASE });
        assert_code(&desk.refused(&Caller::Nobody, "desk_sign_in", input.clone()), Code::Limited);
        let local = Call { credential: Credential::Local, surface: Surface::Cli, operation: "desk_sign_in".to_owned(), input };
        assert!(wait(desk.desk.call(local)).is_ok(), "the server's own account comes in");
        desk.seal();
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
        assert!(sign_in(desk, PASSPHRASE)["session"].is_string(), "and with that the lock is over");
    }

    fn a_session_ends_after_wrong_passphrases_of_its_own(desk: &TestDesk) {
        let owner = desk.claim();
        for _ in 0..2 {
            assert_eq!(desk.call(&owner, "desk_show_presence", json!({ "passphrase": "wrong" })).unwrap()["shown"], false);
        }
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
        desk.call(&owner, "desk_show_presence", json!({ "passphrase": PASSPHRASE })).unwrap();
        for _ in 0..5 {
            desk.call(&owner, "desk_show_presence", json!({ "passphrase": "wrong" })).unwrap();
        }
        assert_code(&desk.refused(&owner, "desk_whoami", json!({})), Code::Unauthenticated);
        assert!(sign_in(desk, PASSPHRASE)["session"].is_string(), "signing in is not locked by that");
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn an_owner_ends_an_invitation_or_one_token_of_an_agent(desk: &TestDesk) {
        let owner = desk.claim();
        let link = desk.call(&owner, "desk_person_invite", json!({ "name": "Eve", "role": "owner" })).unwrap();
        let open = desk.call(&owner, "desk_person_list", json!({})).unwrap();
        assert_eq!((&open["invitations"][0]["credential"], open["invitations"][0]["role"].as_str()), (&link["credential"], Some("owner")));
        let member = invite(desk, &owner, "Ben", "member");
        let end = json!({ "credential": link["credential"] });
        assert_code(&desk.refused(&member, "desk_token_revoke", end.clone()), Code::NotFound);
        desk.call(&owner, "desk_token_revoke", end).unwrap();
        let accept = json!({ "code": link["code"], "passphrase": "sesame 1" });
        assert_code(&desk.refused(&Caller::Nobody, "desk_accept_invitation", accept), Code::Unauthenticated);
        assert!(desk.call(&owner, "desk_person_list", json!({})).unwrap()["invitations"].as_array().unwrap().is_empty());
        let made = desk.call(&owner, "desk_agent_add", json!({ "agent": "code" })).unwrap();
        desk.call(&owner, "desk_token_revoke", json!({ "credential": made["credential"] })).unwrap();
        assert_code(&desk.refused(&secret(&made, "token"), "desk_whoami", json!({})), Code::Unauthenticated);
    }

    fn lists_of_agents_and_people_come_in_pages(desk: &TestDesk) {
        let owner = desk.claim();
        for name in ["a", "b", "c"] {
            desk.register(&owner, name);
        }
        invite(desk, &owner, "Ben", "member");
        for (operation, field, count) in [("desk_agent_list", "agents", 3), ("desk_person_list", "people", 2)] {
            let (mut seen, mut cursor) = (0, Value::Null);
            loop {
                let mut input = json!({ "limit": 1 });
                if cursor.is_string() {
                    input["cursor"] = cursor;
                }
                let page = desk.call(&owner, operation, input).unwrap();
                seen += page[field].as_array().unwrap().len();
                cursor = page["next_cursor"].clone();
                if !cursor.is_string() {
                    break;
                }
            }
            assert_eq!(seen, count, "{operation}");
        }
    }

    fn what_ended_long_ago_goes_and_the_record_stays_sound(desk: &TestDesk) {
        let owner = desk.claim();
        desk.call(&owner, "desk_agent_add", json!({ "agent": "code", "expires_in_days": 1 })).unwrap();
        desk.world.pass(Duration::from_hours(48));
        let now = desk.desk.world.now();
        let pruned = desk.act(move |cx| identity::prune_credentials(cx, now, 10)).unwrap();
        assert_eq!(pruned, 2, "the link that was used, and the token that expired");
        sign_in(desk, PASSPHRASE);
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
        desk.tamper("delete from credential where kind = 'session'");
        assert!(!desk.verify().sound, "what is still good is missed");
    }

    fn lists_show_the_newest_that_are_good(desk: &TestDesk) {
        let owner = desk.claim();
        let flood = "insert into credential (id, kind, owner, hash, scopes, created_at, expires_at, revoked_at) \
             with recursive n(i) as (select 1 union all select i + 1 from n where i < 1200) \
             select 'x' || i, 'session', (select id from person), cast('h' || i as BYTES), '[]', i, 2, 2 from n";
        let flood = if desk.desk.db.engine() == deskmate_db::Engine::Sqlite { flood.replace("BYTES", "blob") } else { flood.replace("BYTES", "bytea") };
        desk.tamper(flood.leak());
        let sessions = desk.call(&owner, "desk_session_list", json!({})).unwrap();
        assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "ended ones do not crowd out what is good");
    }

    fn five_wrong_passphrases_lock_and_the_record_tells(desk: &TestDesk) {
        let owner = desk.claim();
        for _ in 0..5 {
            assert_eq!(sign_in(desk, "wrong guess")["signed_in"], false);
        }
        let locked = desk.refused(&Caller::Nobody, "desk_sign_in", json!({ "name": "Owner", "passphrase": PASSPHRASE }));
        assert_code(&locked, Code::Limited);
        assert!(locked.retry_after_ms.is_some());
        let told = desk.call(&owner, "desk_record_list", json!({ "kind": "person.locked" })).unwrap();
        assert_eq!(told["events"].as_array().unwrap().len(), 1);
        desk.world.pass(Duration::from_mins(2));
        assert!(sign_in(desk, PASSPHRASE)["session"].is_string());
        assert_eq!(sign_in(desk, "wrong guess")["signed_in"], false, "the count begins anew");
        assert!(sign_in(desk, PASSPHRASE)["session"].is_string());
    }

    fn the_claim_link_works_once_and_ten_minutes(desk: &TestDesk) {
        let link = desk.act(deskmate_core::identity::issue_claim).unwrap();
        let newer = desk.act(deskmate_core::identity::issue_claim).unwrap();
        let claim = |code: &str| json!({ "code": code, "name": "Owner", "passphrase": PASSPHRASE });
        let look = |code: &str, kind: identity::SecretKind| {
            let code = code.to_owned();
            desk.act(move |cx| identity::check_link(cx, &code, kind))
        };
        assert_code(&desk.refused(&Caller::Nobody, "desk_claim", claim(&link.code)), Code::Unauthenticated);
        assert_code(&look(&link.code, identity::SecretKind::Claim).unwrap_err(), Code::Unauthenticated);
        look(&newer.code, identity::SecretKind::Claim).unwrap();
        assert_code(&look(&newer.code, identity::SecretKind::Invitation).unwrap_err(), Code::Unauthenticated);
        desk.world.pass(Duration::from_mins(11));
        assert_code(&look(&newer.code, identity::SecretKind::Claim).unwrap_err(), Code::Unauthenticated);
        assert_code(&desk.refused(&Caller::Nobody, "desk_claim", claim(&newer.code)), Code::Unauthenticated);
        let link = desk.act(deskmate_core::identity::issue_claim).unwrap();
        let short = json!({ "code": link.code, "name": "Owner", "passphrase": "short" });
        assert_code(&desk.refused(&Caller::Nobody, "desk_claim", short), Code::Invalid);
        look(&link.code, identity::SecretKind::Claim).unwrap();
        desk.call(&Caller::Nobody, "desk_claim", claim(&link.code)).expect("looking uses nothing up");
        assert_code(&desk.refused(&Caller::Nobody, "desk_claim", claim(&link.code)), Code::Unauthenticated);
        assert_code(&look(&link.code, identity::SecretKind::Claim).unwrap_err(), Code::Unauthenticated);
        assert!(desk.act(deskmate_core::identity::issue_claim).is_err(), "a desk with an owner gives no more links");
    }

    fn roles_bound_what_a_person_may_do(desk: &TestDesk) {
        let owner = desk.claim();
        let viewer = invite(desk, &owner, "Vera", "viewer");
        let member = invite(desk, &owner, "Mara", "member");
        assert!(desk.call(&viewer, "desk_agent_list", json!({})).is_ok());
        assert_code(&desk.refused(&viewer, "bridge_send_message", json!({ "to": "code", "content": "x" })), Code::Forbidden);
        assert!(desk.call(&member, "bridge_send_message", json!({ "to": "code", "content": "x" })).is_ok());
        assert_code(&desk.refused(&member, "desk_agent_add", json!({ "agent": "x" })), Code::Forbidden);
        let people = desk.call(&owner, "desk_person_list", json!({})).unwrap();
        let id = |name: &str| people["people"].as_array().unwrap().iter().find(|person| person["name"] == name).unwrap()["person"].clone();
        desk.call(&owner, "desk_person_change", json!({ "person": id("Mara"), "active": false })).unwrap();
        assert_code(&desk.refused(&member, "desk_whoami", json!({})), Code::Unauthenticated);
        assert_code(&desk.refused(&owner, "desk_person_change", json!({ "person": id("Owner"), "role": "viewer" })), Code::Conflict);
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn an_invitation_is_good_once(desk: &TestDesk) {
        let owner = desk.claim();
        let link = desk.call(&owner, "desk_person_invite", json!({ "name": "Ida", "role": "approver", "domains": ["crm.deals"] })).unwrap();
        let accept = json!({ "code": link["code"], "passphrase": "sesame 1" });
        desk.call(&Caller::Nobody, "desk_accept_invitation", accept.clone()).unwrap();
        assert_code(&desk.refused(&Caller::Nobody, "desk_accept_invitation", accept), Code::Unauthenticated);
    }

    fn a_personal_token_keeps_to_its_scopes_and_never_configures(desk: &TestDesk) {
        let owner = desk.claim();
        let make = |scopes: Value| secret(&desk.call(&owner, "desk_token_create", json!({ "note": "script", "scopes": scopes })).unwrap(), "token");
        let reads = make(json!(["bridge:read"]));
        assert!(desk.call(&reads, "bridge_get_tasks", json!({})).is_ok());
        assert_code(&desk.refused(&reads, "bridge_send_message", json!({ "to": "code", "content": "x" })), Code::Forbidden);
        assert_code(&desk.refused(&reads, "desk_agent_list", json!({})), Code::Forbidden);
        let all = make(json!(["*"]));
        assert!(desk.call(&all, "bridge_send_message", json!({ "to": "code", "content": "x" })).is_ok());
        assert_code(&desk.refused(&all, "desk_agent_add", json!({ "agent": "x" })), Code::Forbidden);
        for bad in [json!([]), json!(["Bridge"]), json!(["bridge:all"]), json!([""])] {
            assert_code(&desk.refused(&owner, "desk_token_create", json!({ "note": "x", "scopes": bad })), Code::Invalid);
        }
        for (unknown, hint) in [("brigde:read", "`bridge`"), ("bridge_send_mesage", "`bridge_send_message`"), ("nothing_like_it", "--list")] {
            let refused = desk.refused(&owner, "desk_token_create", json!({ "note": "x", "scopes": ["bridge", unknown] }));
            assert_eq!((refused.code, refused.field.as_deref()), (Code::Invalid, Some("scopes")), "{unknown}");
            assert!(refused.hint.as_ref().is_some_and(|told| told.contains(hint)), "{refused:?}");
        }
        make(json!(["bridge_send_message", "desk_record_list:read", "*:read"]));
        let list = desk.call(&owner, "desk_token_list", json!({})).unwrap();
        let id = list["tokens"].as_array().unwrap().last().unwrap()["credential"].clone();
        desk.call(&owner, "desk_token_revoke", json!({ "credential": id })).unwrap();
        assert_code(&desk.refused(&reads, "bridge_get_tasks", json!({})), Code::Unauthenticated);
    }

    fn signing_out_and_ending_sessions_works_at_once(desk: &TestDesk) {
        let first = desk.claim();
        let second = secret(&sign_in(desk, PASSPHRASE), "session");
        let sessions = desk.call(&second, "desk_session_list", json!({})).unwrap();
        assert_eq!(sessions["sessions"].as_array().unwrap().len(), 2);
        let other = sessions["sessions"].as_array().unwrap().iter().find(|session| session["this_one"] == false).unwrap()["session"].clone();
        desk.call(&second, "desk_session_revoke", json!({ "session": other })).unwrap();
        assert_code(&desk.refused(&first, "desk_whoami", json!({})), Code::Unauthenticated);
        desk.call(&second, "desk_sign_out", json!({})).unwrap();
        assert_code(&desk.refused(&second, "desk_whoami", json!({})), Code::Unauthenticated);
    }

    fn a_changed_row_is_found(desk: &TestDesk) {
        let owner = desk.claim();
        desk.register(&owner, "code");
        desk.tamper("update person set role = 'viewer'");
        assert!(!desk.verify().sound);
    }

    fn a_replaced_passphrase_is_found(desk: &TestDesk) {
        desk.claim();
        desk.tamper("update person set factor = 'another'");
        assert!(desk.verify().findings.iter().any(|finding| finding.what.starts_with("person")));
    }

    fn the_same_key_does_something_once(desk: &TestDesk) {
        let owner = desk.claim();
        let add = json!({ "agent": "code", "idempotency_key": "k1" });
        let first = desk.call(&owner, "desk_agent_add", add.clone()).unwrap();
        let again = desk.call(&owner, "desk_agent_add", add).unwrap();
        assert_eq!(again["credential"], first["credential"]);
        assert_eq!(again["token"], "shown once, when it was made", "a secret is not kept for a second answer");
        assert_code(&desk.refused(&owner, "desk_agent_add", json!({ "agent": "other", "idempotency_key": "k1" })), Code::Conflict);
        for bad in [json!(""), json!(7), json!("x".repeat(256)), json!("a\u{0}b")] {
            assert_code(&desk.refused(&owner, "desk_agent_add", json!({ "agent": "z", "idempotency_key": bad })), Code::Invalid);
        }
        desk.world.pass(Duration::from_hours(24 * 8));
        desk.call(&owner, "desk_show_presence", json!({ "passphrase": PASSPHRASE })).unwrap();
        assert_code(&desk.refused(&owner, "desk_agent_add", json!({ "agent": "code", "idempotency_key": "k1" })), Code::Conflict);
    }

    fn keys_go_after_seven_days(desk: &TestDesk) {
        let send = |key: &str| desk.agent("code", "bridge_send_message", json!({ "to": "x", "content": "y", "idempotency_key": key })).unwrap();
        let kept = || -> Vec<String> {
            let rows = desk.desk.db.read_blocking(|tx| tx.query("select key from idempotency order by key", &[]));
            let rows = rows.map_err(|error: deskmate_db::Error| error.to_string()).unwrap();
            rows.iter().map(|row| row.get(0).unwrap()).collect()
        };
        let prune = |limit: u32| desk.act(move |cx| deskmate_core::call::prune_keys(cx, limit)).unwrap();
        send("a");
        desk.world.pass(Duration::from_hours(1));
        send("b");
        desk.world.pass(Duration::from_hours(24 * 6));
        send("c");
        assert_eq!((prune(10), kept()), (0, vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]), "none is seven days old");
        desk.world.pass(Duration::from_hours(24));
        assert_eq!((prune(1), kept()), (1, vec!["b".to_owned(), "c".to_owned()]), "the oldest goes first, and no more than a slice");
        assert_eq!((prune(10), kept()), (1, vec!["c".to_owned()]));
        assert_eq!(prune(10), 0, "what is younger stays");
    }

    fn an_unknown_field_is_named(desk: &TestDesk) {
        let error = desk.refused(&Caller::Agent("code"), "bridge_send_message", json!({ "to": "x", "content": "y", "colour": "red" }));
        assert_code(&error, Code::Invalid);
        assert_eq!(error.field.as_deref(), Some("colour"));
        let error = desk.refused(&Caller::Agent("code"), "bridge_send_message", json!({ "to": "x" }));
        assert_eq!(error.field.as_deref(), Some("content"));
        let error = desk.refused(&Caller::Agent("code"), "bridge_send_message", json!({ "to": 7, "content": "y" }));
        assert_eq!(error.field.as_deref(), Some("to"));
    }
}
