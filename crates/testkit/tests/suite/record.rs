//! The record: what was sealed stays provable, and whoever changes a stored row is found.

use std::sync::Arc;
use std::time::Duration;

use deskmate_core::record::{self, BundleHeader, BundleLine, Frontier, Keyring, Sealer, SigningKey, Verifier};
use deskmate_core::{Code, Error, World, format_time};
use deskmate_db::{Engine, Tx, args};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};
use tlog_tiles::record_hash;

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

fn newest_checkpoint(desk: &TestDesk) -> String {
    desk.desk.db.read_blocking(record::newest_checkpoint).unwrap().unwrap()
}

/// Rewrites every event and the whole tree over them, as somebody with the store in hand and without the key can, and
/// puts back an older checkpoint that was really signed.
fn forge(desk: &TestDesk, older: String) {
    let rewrite = move |tx: &mut Tx<'_>| -> Result<(), deskmate_db::Error> {
        let mut frontier = Frontier::default();
        let mut position = 0_i64;
        for row in tx.query("select seq, body from event order by seq", &[])? {
            let body = row.get::<String>(1)?.replace("\"surface\":\"mcp\"", "\"surface\":\"web\"");
            tx.execute("update event set body = $2 where seq = $1", args![row.get::<i64>(0)?, body])?;
            let mut nodes = Vec::new();
            frontier.append(record_hash(body.as_bytes()), |node| nodes.push(node));
            for node in nodes {
                tx.execute("update record_hash set hash = $2 where position = $1", args![position, node.0])?;
                position += 1;
            }
        }
        tx.execute("update desk set value = $1 where key = 'checkpoint'", args![older])?;
        Ok(())
    };
    desk.desk.db.write_blocking(rewrite).unwrap();
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

    fn w32_the_newest_entry_cut_off_is_found(desk: &TestDesk) {
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

    fn a_changed_node_is_found(desk: &TestDesk) {
        busy(desk);
        desk.tamper("update record_hash set hash = (select hash from record_hash where position = 0) where position = 4");
        assert!(first_bad(desk).is_some());
    }

    fn w32_a_forged_tree_does_not_help_without_the_key(desk: &TestDesk) {
        let owner = desk.claim();
        let (older, vouched) = (newest_checkpoint(desk), size(desk));
        desk.register(&owner, "code");
        let newest = newest_checkpoint(desk);
        forge(desk, older);
        assert_eq!(first_bad(desk), Some(vouched), "an older checkpoint vouches for nothing behind it");
        forge(desk, newest);
        first_bad(desk);
    }

    fn a_sealer_does_not_go_on_from_a_forged_record(desk: &TestDesk) {
        let owner = desk.claim();
        let older = newest_checkpoint(desk);
        desk.register(&owner, "code");
        let key = Arc::new(SigningKey::parse(&SigningKey::generate("deskmate/test", &[7; 32])).unwrap());
        let other = Arc::new(SigningKey::parse(&SigningKey::generate("deskmate/test", &[8; 32])).unwrap());
        let start = |key: &Arc<SigningKey>| {
            let key = Arc::clone(key);
            desk.desk.db.read_blocking(move |tx| Sealer::new(tx, Arc::clone(&key), Box::new(|_| {})).map(drop))
        };
        start(&key).unwrap();
        assert_code(&start(&other).unwrap_err(), Code::Unavailable);
        forge(desk, older);
        assert_code(&start(&key).unwrap_err(), Code::Unavailable);
        if desk.desk.db.engine() == Engine::Postgres {
            let staged = "insert into event_staged (id, at, actor_kind, actor, kind, subject, body) values ('x', 1, 'system', 'desk', 'x', 'x', '{}')";
            desk.tamper(staged);
            let sealed = desk.desk.db.write_blocking(move |tx| record::seal_staged(tx, &key));
            assert_code(&sealed.unwrap_err(), Code::Unavailable);
        }
    }

    fn a_bundle_with_a_checkpoint_over_less_is_not_sound(desk: &TestDesk) {
        busy(desk);
        let lines = desk.desk.db.read_blocking(|tx| -> Result<Vec<String>, Error> {
            let rows = tx.query("select body from event order by seq", &[])?;
            rows.iter().map(|row| Ok(row.get(0)?)).collect()
        }).unwrap();
        let verify = |checkpoint: &str, lines: &[String]| {
            let header = BundleHeader::new(lines.len() as u64, Vec::new(), checkpoint.to_owned());
            let lines = lines.iter().map(|body| json!(BundleLine { body: body.clone(), salt: None, payload: None }));
            let bundle: Vec<String> = std::iter::once(json!(header)).chain(lines).map(|line| line.to_string()).collect();
            record::verify_bundle(bundle.into_iter().map(Ok), Some(desk.desk.keys.as_ref().clone()), &[]).unwrap()
        };
        let about = |report: &record::Report| report.findings.iter().filter(|finding| finding.what.contains("checkpoint")).count();
        assert_eq!(about(&verify(&newest_checkpoint(desk), &lines)), 0, "payloads are missing, but the checkpoint fits");
        let more = [lines.clone(), vec![lines[0].clone()]].concat();
        assert_eq!(about(&verify(&newest_checkpoint(desk), &more)), 1, "an invented entry behind the checkpoint");
    }

    fn what_waits_for_the_sealer_counts(desk: &TestDesk) {
        let owner = desk.claim();
        let Caller::Secret(secret) = owner else { unreachable!() };
        let call = deskmate_core::call::Call {
            credential: deskmate_core::call::Credential::Secret { secret, proved: true },
            surface: deskmate_core::call::Surface::Mcp,
            operation: "desk_agent_add".to_owned(),
            input: json!({ "agent": "code" }),
        };
        testkit::wait(desk.desk.call(call)).unwrap();
        let report = desk.verify();
        assert!(report.sound, "{:?}", report.findings);
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

    fn w32_a_rollback_shows_against_a_checkpoint_kept_elsewhere(desk: &TestDesk) {
        busy(desk);
        let kept = newest_checkpoint(desk);
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

    fn kept_checkpoints_go_after_their_time_and_the_newest_stays(desk: &TestDesk) {
        for number in 0..5 {
            desk.world.pass(Duration::from_mins(1));
            desk.agent("code", "bridge_send_message", json!({ "to": "cowork", "content": format!("number {number}") })).unwrap();
        }
        let kept = || -> Vec<(i64, i64)> {
            let rows = |tx: &mut Tx<'_>| tx.query("select size, at from checkpoint order by size", &[]);
            let rows = desk.desk.db.read_blocking(rows).map_err(|error: deskmate_db::Error| error.to_string()).unwrap();
            rows.iter().map(|row| (row.get(0).unwrap(), row.get(1).unwrap())).collect()
        };
        let all = kept();
        assert!(all.len() >= 5, "{all:?}");
        let prune = |before: i64, limit: u32| desk.act(move |cx| record::prune_checkpoints(cx, before, limit)).unwrap();
        assert_eq!((prune(all[0].1, 10), kept()), (0, all.clone()), "what is as old as the bound stays");
        assert_eq!((prune(all[2].1, 1), kept()), (1, all[1..].to_vec()), "the oldest goes first, and no more than a slice");
        assert_eq!((prune(all[2].1, 10), kept()), (1, all[2..].to_vec()));
        let before = kept();
        assert_eq!((prune(i64::MAX, 10), kept()), (before.len() as u64 - 1, before[before.len() - 1..].to_vec()), "the newest stays however old it is");
        assert_eq!(prune(i64::MAX, 10), 0);
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
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
        let keys = &desk.desk.keys;
        let newest = || desk.desk.db.read_blocking(record::newest_checkpoint).unwrap().unwrap();
        let mut kept = vec![newest()];
        for number in 0..9 {
            desk.call(&owner, "desk_agent_add", json!({ "agent": format!("another-{number}") })).unwrap();
            desk.seal();
            kept.push(newest());
        }
        let (newer, last) = (size(desk), newest());
        for (place, note) in kept.iter().enumerate() {
            let older = keys.open(note).unwrap().size();
            let answer = desk.call(&owner, "desk_record_consistency", json!({ "older": older, "newer": newer })).unwrap();
            let hashes: Vec<String> = serde_json::from_value(answer["hashes"].clone()).unwrap();
            record::check_consistency(&hashes, note, &last, keys).unwrap();
            if older < newer {
                assert!(record::check_consistency(&hashes[1..], note, &last, keys).is_err(), "a part of a proof proves nothing");
                let mut forged = hashes.clone();
                forged[0] = data_encoding::BASE64.encode(&[7; 32]);
                assert!(record::check_consistency(&forged, note, &last, keys).is_err());
                assert!(record::check_consistency(&hashes, &kept[(place + 1) % kept.len()], &last, keys).is_err(), "it is for that checkpoint alone");
            }
        }
        assert_code(&desk.refused(&owner, "desk_record_consistency", json!({ "older": 0, "newer": newer })), Code::Invalid);
    }

    fn an_erased_payload_is_gone_and_every_proof_stands(desk: &TestDesk) {
        let owner = busy(desk);
        desk.call(&owner, "desk_agent_add", json!({ "agent": "noted", "note": "for Eve" })).unwrap();
        let events = desk.call(&owner, "desk_record_list", json!({ "subject": "agent:noted" })).unwrap();
        let seq = events["events"][0]["seq"].as_u64().unwrap();
        assert_eq!(events["events"][0]["payload"]["note"], "for Eve");
        desk.call(&owner, "desk_record_erase", json!({ "seq": seq, "reason": "asked for" })).unwrap();
        let event = desk.call(&owner, "desk_record_get", json!({ "seq": seq })).unwrap();
        assert_eq!(event.get("payload"), None::<&Value>);
        let agents = desk.call(&owner, "desk_agent_list", json!({})).unwrap();
        assert!(!agents.to_string().contains("Eve"), "{agents}");
        desk.call(&owner, "desk_record_prove", json!({ "seq": seq })).unwrap();
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
        assert_code(&desk.refused(&owner, "desk_record_erase", json!({ "seq": seq, "reason": "again" })), Code::NotFound);
    }

    fn the_name_of_somebody_who_left_can_be_erased(desk: &TestDesk) {
        let owner = desk.claim();
        let link = desk.call(&owner, "desk_person_invite", json!({ "name": "Xerxes", "role": "member" })).unwrap();
        let joined = desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": link["code"], "passphrase": "sesame 1" })).unwrap();
        let events = desk.call(&owner, "desk_record_list", json!({ "kind": "person.added" })).unwrap();
        let erase = json!({ "seq": events["events"][0]["seq"], "reason": "asked for" });
        assert_code(&desk.refused(&owner, "desk_record_erase", erase.clone()), Code::Conflict);
        desk.call(&owner, "desk_person_change", json!({ "person": joined["person"], "active": false })).unwrap();
        desk.call(&owner, "desk_record_erase", erase).unwrap();
        let people = desk.call(&owner, "desk_person_list", json!({})).unwrap();
        assert!(!people["people"].to_string().contains("Xerxes"), "{people}");
        for sql in ["select count(*) from event where body like '%Xerxes%'", "select count(*) from credential where owner like '%Xerxes%' or note like '%Xerxes%'"] {
            let found: i64 = desk.desk.db.read_blocking(move |tx| tx.one(sql, &[])?.get(0)).unwrap();
            assert_eq!(found, 0, "{sql}");
        }
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn erased_paths_are_gone_from_their_release_too(desk: &TestDesk) {
        let owner = desk.claim();
        desk.agent("code", "bridge_reserve_paths", json!({ "paths": ["secret/plan.md"] })).unwrap();
        desk.agent("code", "bridge_release_paths", json!({ "paths": ["secret/plan.md"] })).unwrap();
        let events = desk.call(&owner, "desk_record_list", json!({ "kind": "paths.reserved" })).unwrap();
        assert!(events.to_string().contains("secret"));
        desk.call(&owner, "desk_record_erase", json!({ "seq": events["events"][0]["seq"], "reason": "asked for" })).unwrap();
        let all = desk.call(&owner, "desk_record_list", json!({ "limit": 200 })).unwrap();
        assert!(!all.to_string().contains("secret"), "{all}");
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn a_page_of_the_record_is_bounded_by_bytes(desk: &TestDesk) {
        let owner = desk.claim();
        let content = "x".repeat(200 * 1024);
        for _ in 0..5 {
            desk.agent("code", "bridge_send_message", json!({ "to": "cowork", "content": content })).unwrap();
        }
        let (mut seen, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
        loop {
            let mut input = json!({ "kind": "message.sent", "limit": 200 });
            if cursor.is_string() {
                input["cursor"] = cursor;
            }
            let page = desk.call(&owner, "desk_record_list", input).unwrap();
            assert!(page.to_string().len() < 600 * 1024);
            pages += 1;
            seen.extend(page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()));
            cursor = page["next_cursor"].clone();
            if !cursor.is_string() {
                break;
            }
        }
        assert_eq!(seen.len(), 5);
        assert!(pages > 2 && seen.windows(2).all(|pair| pair[0] > pair[1]), "{seen:?}");
    }

    fn the_record_is_searched_by_time(desk: &TestDesk) {
        let owner = desk.claim();
        let mut moments = Vec::new();
        for number in 0..4 {
            desk.world.pass(Duration::from_hours(24));
            moments.push(format_time(desk.world.now()));
            desk.agent("code", "bridge_send_message", json!({ "to": "cowork", "content": format!("number {number}") })).unwrap();
        }
        // Another server's clock is behind: its event comes later in the record and happened before.
        desk.world.step_back(Duration::from_mins(5));
        desk.agent("late", "bridge_send_message", json!({ "to": "cowork", "content": "number 4" })).unwrap();
        let found = |more: Value| -> Vec<String> {
            let mut input = json!({ "kind": "message.sent" });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let events = desk.call(&owner, "desk_record_list", input).unwrap();
            events["events"].as_array().unwrap().iter().map(|event| event["payload"]["content"].as_str().unwrap().replace("number ", "")).collect()
        };
        assert_eq!(found(json!({})), ["4", "3", "2", "1", "0"]);
        assert_eq!(found(json!({ "since": moments[2] })), ["4", "3", "2"]);
        assert_eq!(found(json!({ "since": moments[3] })), ["3"]);
        assert_eq!(found(json!({ "until": moments[3] })), ["4", "2", "1", "0"]);
        assert_eq!(found(json!({ "since": moments[1], "until": moments[2] })), ["1"]);
        assert_eq!(found(json!({ "since": moments[2], "until": moments[1] })), [""; 0]);
        assert_eq!(found(json!({ "since": "2020-01-01T00:00:00+02:00", "until": "2021-01-01T00:00:00Z" })), [""; 0]);
        let first = desk.call(&owner, "desk_record_list", json!({ "kind": "message.sent", "until": moments[3], "limit": 2 })).unwrap();
        assert_eq!(found(json!({ "until": moments[3], "cursor": first["next_cursor"] })), ["1", "0"]);
        for wrong in [json!({ "since": "yesterday" }), json!({ "until": "2026-01-01" })] {
            assert_code(&desk.refused(&owner, "desk_record_list", wrong), Code::Invalid);
        }
    }

    fn the_record_is_searched_by_words(desk: &TestDesk) {
        let owner = desk.claim();
        let one = desk.register(&owner, "one");
        let two = desk.register(&owner, "two");
        desk.call(&one, "bridge_send_message", json!({ "to": "one", "content": "The Überweisung of \"7\" is late." })).unwrap();
        desk.call(&two, "bridge_create_task", json!({ "to": "two", "title": "Look after the überweisung" })).unwrap();
        let found = |caller: &Caller, more: Value| -> Vec<String> {
            let events = desk.call(caller, "desk_record_list", more).unwrap();
            events["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(found(&owner, json!({ "search": "ÜBERWEISUNG" })), ["task.created", "message.sent"]);
        assert_eq!(found(&owner, json!({ "search": "überweisung", "actor": "one" })), ["message.sent"]);
        assert_eq!(found(&one, json!({ "search": "überweisung" })), ["message.sent"], "an agent finds nothing that it may not see");
        assert_eq!(found(&owner, json!({ "search": "of \"7\"" })), ["message.sent"], "words are sought in the text, not in its JSON");
        assert_eq!(found(&owner, json!({ "search": "AGENT:TWO" })), ["agent.registered"], "in subjects");
        assert_eq!(found(&owner, json!({ "search": "desk.claim" })), ["desk.claimed"], "in kinds");
        assert_eq!(found(&owner, json!({ "search": "nowhere" })), [""; 0]);
        let sent = desk.call(&owner, "desk_record_list", json!({ "kind": "message.sent" })).unwrap();
        assert_eq!(sent["events"][0].get("erased"), None);
        desk.call(&owner, "desk_record_erase", json!({ "seq": sent["events"][0]["seq"], "reason": "asked for" })).unwrap();
        assert_eq!(found(&owner, json!({ "search": "überweisung" })), ["task.created"], "what was erased is not found");
        let sent = desk.call(&owner, "desk_record_list", json!({ "kind": "message.sent", "search": "message" })).unwrap();
        assert_eq!(sent["events"][0]["erased"], true);
        assert_code(&desk.refused(&owner, "desk_record_list", json!({ "search": "x".repeat(501) })), Code::Invalid);
    }

    fn a_search_for_words_ends_after_so_many_events_and_goes_on(desk: &TestDesk) {
        let owner = desk.claim();
        desk.agent("code", "bridge_send_message", json!({ "to": "cowork", "content": "a needle" })).unwrap();
        for batch in 0..4 {
            let row = |number| json!({ "table": "timeline", "row": { "id": format!("t-{batch}-{number}"), "session_id": "s", "actor": "agent",
                "event_type": "proposal", "reference_id": "p", "summary": "straw", "created_at": "2025-12-31T10:00:00.000Z" } });
            desk.call(&owner, "desk_import_cowork", json!({ "rows": (0..500).map(row).collect::<Vec<_>>() })).unwrap();
        }
        assert!(size(desk) > 2_000);
        let (mut cursor, mut pages, mut found) = (Value::Null, 0, 0);
        loop {
            let mut input = json!({ "search": "a needle" });
            if cursor.is_string() {
                input["cursor"] = cursor;
            }
            let page = desk.call(&owner, "desk_record_list", input).unwrap();
            (pages, found) = (pages + 1, found + page["events"].as_array().unwrap().len());
            cursor = page["next_cursor"].clone();
            if !cursor.is_string() {
                break;
            }
        }
        assert_eq!((found, pages), (1, size(desk).div_ceil(2_000)));
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
