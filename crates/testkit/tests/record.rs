//! The record: what was sealed stays provable, and whoever changes a stored row is found.

use deskmate_core::record::{self, Keyring, Verifier};
use deskmate_core::{Code, Error};
use deskmate_db::Tx;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

/// A desk with a few dozen events.
fn busy(desk: &TestDesk) -> Caller {
    let owner = desk.claim();
    for number in 0..6 {
        desk.register(&owner, &format!("agent-{number}"));
    }
    owner
}

fn first_bad(desk: &TestDesk) -> Option<u64> {
    let report = desk.verify();
    assert!(!report.sound, "the change was not found");
    report.findings.first().and_then(|finding| finding.seq)
}

fn size(desk: &TestDesk) -> u64 {
    desk.desk.db.read_blocking(record::size).unwrap()
}

both! {
    fn an_untouched_record_is_sound(desk: &TestDesk) {
        busy(desk);
        let report = desk.verify();
        assert!(report.sound, "{:?}", report.findings);
        assert_eq!(report.events, size(desk));
    }

    fn a_changed_body_is_found(desk: &TestDesk) {
        busy(desk);
        desk.tamper("update event set body = replace(body, 'agent-2', 'agent-9') where kind = 'agent.registered' and body like '%agent-2%'");
        assert!(first_bad(desk).is_some());
    }

    fn a_changed_column_is_found(desk: &TestDesk) {
        busy(desk);
        desk.tamper("update event set actor = 'somebody' where seq = 5");
        assert_eq!(first_bad(desk), Some(5));
    }

    fn a_changed_payload_is_found(desk: &TestDesk) {
        busy(desk);
        desk.tamper("update event_payload set payload = '{\"name\":\"Eve\"}' where payload like '%Owner%'");
        assert!(first_bad(desk).is_some());
    }

    fn a_payload_that_vanished_without_an_event_is_found(desk: &TestDesk) {
        busy(desk);
        desk.tamper("update event_payload set payload = null, salt = null where payload like '%Owner%'");
        assert!(first_bad(desk).is_some());
    }

    fn a_deleted_entry_is_named(desk: &TestDesk) {
        busy(desk);
        desk.tamper("delete from event where seq = 7");
        assert_eq!(first_bad(desk), Some(7));
    }

    fn the_newest_entry_cut_off_is_found(desk: &TestDesk) {
        busy(desk);
        let last = size(desk) - 1;
        desk.tamper("delete from event where seq = (select max(seq) from event)");
        assert_eq!(first_bad(desk), Some(last));
    }

    fn two_entries_that_changed_places_are_found(desk: &TestDesk) {
        busy(desk);
        desk.tamper("update event set seq = -1 where seq = 3");
        desk.tamper("update event set seq = 3 where seq = 4");
        desk.tamper("update event set seq = 4 where seq = -1");
        assert_eq!(first_bad(desk), Some(3));
    }

    fn a_forged_tree_does_not_help_without_the_key(desk: &TestDesk) {
        busy(desk);
        desk.tamper("update record_hash set hash = (select hash from record_hash where position = 0) where position = 4");
        assert!(first_bad(desk).is_some());
    }

    fn an_agent_that_was_slipped_in_is_found(desk: &TestDesk) {
        busy(desk);
        desk.tamper("insert into agent (id, state, note, created_at, updated_at) values ('ghost', 'active', '', 1, 1)");
        let report = desk.verify();
        assert!(report.findings.iter().any(|finding| finding.what.contains("ghost")), "{:?}", report.findings);
    }

    fn a_revoked_token_that_was_revived_is_found(desk: &TestDesk) {
        let owner = busy(desk);
        desk.call(&owner, "desk_agent_revoke", json!({ "agent": "agent-1" })).unwrap();
        assert!(desk.verify().sound);
        desk.tamper("update credential set revoked_at = null where owner = 'agent-1'");
        assert!(!desk.verify().sound);
    }

    fn a_rollback_shows_against_a_checkpoint_kept_elsewhere(desk: &TestDesk) {
        busy(desk);
        let kept = desk.desk.db.read_blocking(record::newest_checkpoint).unwrap().unwrap();
        let keys = desk.desk.keys.clone();
        let older = size(desk) - 3;
        let verify = move |tx: &mut Tx<'_>| -> Result<_, Error> {
            let mut verifier = Verifier::new(older, &keys, std::slice::from_ref(&kept), Vec::new());
            while verifier.step(tx)? {}
            verifier.finish(tx, &keys)
        };
        let report = desk.desk.db.read_blocking(verify).unwrap();
        assert_eq!(report.findings.first().and_then(|finding| finding.seq), Some(older));
    }

    fn every_event_can_be_proved(desk: &TestDesk) {
        let owner = busy(desk);
        for seq in 0..size(desk) {
            let proof = desk.call(&owner, "desk_record_prove", json!({ "seq": seq })).unwrap();
            let proof: record::Proof = serde_json::from_value(proof).unwrap();
            record::check_proof(&proof, &desk.desk.keys).unwrap();
            let mut forged = proof.clone();
            forged.body = forged.body.replace("\"v\":1", "\"v\":2");
            assert!(record::check_proof(&forged, &desk.desk.keys).is_err());
            assert!(record::check_proof(&proof, &Keyring::default()).is_err(), "a key that is not believed proves nothing");
        }
    }

    fn the_record_only_grows(desk: &TestDesk) {
        let owner = busy(desk);
        let newer = size(desk);
        for older in 1..=newer {
            desk.call(&owner, "desk_record_consistency", json!({ "older": older, "newer": newer })).unwrap();
        }
        assert_code(&desk.refused(&owner, "desk_record_consistency", json!({ "older": 0, "newer": newer })), Code::Invalid);
    }

    fn an_erased_payload_is_gone_and_every_proof_stands(desk: &TestDesk) {
        let owner = busy(desk);
        let events = desk.call(&owner, "desk_record_list", json!({ "kind": "person.added" })).unwrap();
        let seq = events["events"][0]["seq"].as_u64().unwrap();
        assert_eq!(events["events"][0]["payload"]["name"], "Owner");
        desk.call(&owner, "desk_record_erase", json!({ "seq": seq, "reason": "asked for" })).unwrap();
        let event = desk.call(&owner, "desk_record_get", json!({ "seq": seq })).unwrap();
        assert_eq!(event.get("payload"), None::<&Value>);
        desk.call(&owner, "desk_record_prove", json!({ "seq": seq })).unwrap();
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
        assert_code(&desk.refused(&owner, "desk_record_erase", json!({ "seq": seq, "reason": "again" })), Code::NotFound);
    }

    fn an_agent_sees_only_what_concerns_it(desk: &TestDesk) {
        let owner = desk.claim();
        let one = desk.register(&owner, "one");
        desk.register(&owner, "two");
        let seen = desk.call(&one, "desk_record_list", json!({ "limit": 200 })).unwrap();
        let seen = seen["events"].as_array().unwrap();
        assert!(!seen.is_empty());
        assert!(seen.iter().all(|event| event["actor"] == "one" || event["audience"].as_array().unwrap().contains(&json!("one"))), "{seen:?}");
        assert_code(&desk.refused(&one, "desk_record_get", json!({ "seq": 0 })), Code::NotFound);
    }
}
