//! Sending, reading, acknowledging, receipts, threads and waiting.

use std::time::Duration;

use deskmate_core::Code;
use deskmate_core::call::{Call, Credential, Outcome, Surface};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both, wait};

use super::{CODE, COWORK, EVE, each, events, no, ok, send, sound, text};

/// Whether a wait has something to answer.
fn ready(desk: &TestDesk, name: &str, operation: &str, input: Value) -> bool {
    let call = Call { credential: Credential::Named(Some(name.to_owned())), surface: Surface::Mcp, operation: operation.to_owned(), input };
    matches!(wait(desk.desk.call(call)).expect("the wait is answered").outcome, Outcome::Done(_))
}

both! {
    fn a_peek_changes_nothing(desk: &TestDesk) {
        let id = send(desk, &CODE, "cowork", "hello");
        let before = events(desk);
        for _ in 0..3 {
            assert_eq!(each(&ok(desk, &COWORK, "read_messages", json!({})), "messages", "message_id"), [id.as_str()]);
        }
        assert_eq!(events(desk), before);
        let read = ok(desk, &COWORK, "read_messages", json!({ "mark_read": true, "idempotency_key": "k" }));
        assert_eq!(each(&read, "messages", "message_id"), [id.as_str()]);
        assert_eq!(events(desk), before + 1);
        assert_eq!(ok(desk, &COWORK, "read_messages", json!({ "idempotency_key": "ignored" }))["messages"], json!([]));
        assert_eq!(ok(desk, &COWORK, "read_messages", json!({ "mark_read": true }))["messages"], json!([]));
        sound(desk);
    }

    fn a_long_conversation_of_others_is_looked_through_in_pages(desk: &TestDesk) {
        ok(desk, &CODE, "send_message", json!({ "to": "cowork", "content": "mine first", "thread": "main" }));
        let flood = "insert into message (id, project, sender_kind, sender, verified, origin, to_name, thread, rank, content, created_at) \
             with recursive n(i) as (select 1 union all select i + 1 from n where i < 4500) \
             select 'f' || i, 'default', 'agent', 'x', false, 'mcp', 'y', 'main', 2, 'theirs', \
                 (select max(created_at) from message) + i from n";
        desk.tamper(flood);
        desk.world.pass(std::time::Duration::from_secs(1));
        ok(desk, &CODE, "send_message", json!({ "to": "cowork", "content": "mine last", "thread": "main" }));
        let (mut seen, mut input, mut pages) = (Vec::new(), json!({ "thread": "main" }), 0);
        loop {
            let page = ok(desk, &COWORK, "get_thread", input.clone());
            seen.extend(each(&page, "messages", "content"));
            pages += 1;
            match page.get("next_cursor") {
                Some(cursor) => input["cursor"] = cursor.clone(),
                None => break,
            }
        }
        assert_eq!((seen.as_slice(), pages), (["mine first".to_owned(), "mine last".to_owned()].as_slice(), 3));
        assert_code(&no(desk, &EVE, "get_thread", json!({ "thread": "nowhere" })), Code::NotFound);
    }

    fn messages_are_found_by_what_they_say_by_those_who_may_read_them(desk: &TestDesk) {
        let owner = desk.claim();
        let found = |who: &Caller, input: Value| each(&ok(desk, who, "search_messages", input), "messages", "message_id");
        let first = send(desk, &CODE, "cowork", "The release is GREEN, says Käthe");
        ok(desk, &CODE, "set_group", json!({ "name": "team", "members": ["cowork", "eve"] }));
        let to_all = send(desk, &CODE, "group:team", "is the Release out?");
        let answer = send(desk, &COWORK, "code", "release it");
        let to_oneself = send(desk, &CODE, "code", "remember the release");
        let web = text(&ok(desk, &COWORK, "send_message", json!({ "to": "code", "content": "release of the web", "project": "web" })), "message_id");
        send(desk, &CODE, "cowork", "something else");
        let before = events(desk);
        assert_eq!(found(&CODE, json!({ "text": "RELEASE" })), [&to_oneself, &answer, &to_all, &first].map(String::as_str), "what it sent and got, each once");
        assert_eq!(found(&COWORK, json!({ "text": "release" })), [&answer, &to_all, &first].map(String::as_str));
        assert_eq!(found(&EVE, json!({ "text": "release" })), [to_all.as_str()], "what is between others stays there");
        assert_eq!(found(&COWORK, json!({ "text": "KÄTHE" })), [first.as_str()]);
        assert_eq!(found(&CODE, json!({ "text": "release", "project": "web" })), [web.as_str()]);
        assert_eq!(found(&owner, json!({ "text": "release" })).len(), 4, "people see all");
        assert_eq!(found(&CODE, json!({ "text": "no such words" })), Vec::<String>::new());
        let page = ok(desk, &CODE, "search_messages", json!({ "text": "release", "limit": 3 }));
        assert_eq!((page["messages"].as_array().unwrap().len(), &page["more"]), (3, &json!(true)));
        assert_eq!(found(&CODE, json!({ "text": "release", "limit": 3, "cursor": page["next_cursor"] })), [first.as_str()]);
        assert_eq!(page["messages"][0]["trust"], "unverified, claims to be code");
        assert_eq!(events(desk), before, "looking changes nothing");
        for text in ["", "  ", &"x".repeat(2_000)] {
            assert_eq!(no(desk, &CODE, "search_messages", json!({ "text": text })).field.as_deref(), Some("text"));
        }
        let sent = desk.call(&owner, "desk_record_list", json!({ "kind": "message.sent" })).unwrap();
        let seq = sent["events"].as_array().unwrap().iter().find(|event| event["subject"] == format!("message:{first}")).unwrap()["seq"].clone();
        desk.call(&owner, "desk_record_erase", json!({ "seq": seq, "reason": "asked to" })).unwrap();
        assert_eq!(found(&COWORK, json!({ "text": "käthe" })), Vec::<String>::new(), "what was erased is not found");
    }

    fn a_full_mailbox_is_searched_in_pages(desk: &TestDesk) {
        let first = send(desk, &CODE, "cowork", "a needle");
        desk.tamper(
            "insert into message (id, project, sender_kind, sender, verified, origin, to_name, thread, rank, content, created_at) \
             with recursive n(i) as (select 1 union all select i + 1 from n where i < 4500) \
             select 'f' || i, 'default', 'agent', 'x', false, 'mcp', 'cowork', 'main', 2, 'hay', (select max(created_at) from message) + i from n",
        );
        desk.tamper("insert into delivery (message, recipient, project, rank, created_at) select id, 'cowork', project, rank, created_at from message where sender = 'x'");
        desk.world.pass(Duration::from_secs(1));
        let last = send(desk, &COWORK, "code", "another needle");
        let (mut seen, mut input, mut pages) = (Vec::new(), json!({ "text": "needle" }), 0);
        loop {
            let page = ok(desk, &COWORK, "search_messages", input.clone());
            seen.extend(each(&page, "messages", "message_id"));
            pages += 1;
            match page.get("next_cursor") {
                Some(cursor) => input["cursor"] = cursor.clone(),
                None => break,
            }
        }
        assert_eq!((seen, pages), (vec![last, first], 3));
    }

    fn an_input_is_bounded_on_every_surface(desk: &TestDesk) {
        let paths: Vec<String> = (0..90).map(|n| format!("{n}-{}", "x".repeat(20 * 1024))).collect();
        let error = no(desk, &CODE, "reserve_paths", json!({ "paths": paths }));
        assert_eq!((error.code, error.field.as_deref()), (Code::Invalid, Some("input")), "{error}");
    }

    fn waiting_can_be_for_mail_of_any_project(desk: &TestDesk) {
        ok(desk, &CODE, "send_message", json!({ "to": "cowork", "content": "x", "project": "web" }));
        assert!(!ready(desk, "cowork", "bridge_wait_for_messages", json!({})));
        assert!(ready(desk, "cowork", "bridge_wait_for_messages", json!({ "any_project": true })));
        assert!(!ready(desk, "eve", "bridge_wait_for_messages", json!({ "any_project": true })));
    }

    fn a_token_for_reading_peeks_and_does_not_acknowledge(desk: &TestDesk) {
        let owner = desk.claim();
        send(desk, &CODE, "Owner", "hello");
        let token = desk.call(&owner, "desk_token_create", json!({ "note": "a script", "scopes": ["bridge:read"] })).unwrap();
        let reader = Caller::Secret(text(&token, "token"));
        assert_eq!(each(&ok(desk, &reader, "read_messages", json!({})), "messages", "content"), ["hello"]);
        assert_code(&no(desk, &reader, "read_messages", json!({ "mark_read": true })), Code::Forbidden);
        assert_code(&no(desk, &reader, "send_message", json!({ "to": "code", "content": "x" })), Code::Forbidden);
    }

    fn mark_read_acknowledges_exactly_what_was_returned(desk: &TestDesk) {
        let ids: Vec<String> = (0..5).map(|n| send(desk, &CODE, "cowork", &format!("{n}"))).collect();
        let read = ok(desk, &COWORK, "read_messages", json!({ "mark_read": true, "limit": 2 }));
        assert_eq!(each(&read, "messages", "message_id"), ids[..2]);
        assert_eq!(read["more"], true);
        assert_eq!(each(&ok(desk, &COWORK, "read_messages", json!({})), "messages", "message_id"), ids[2..]);
    }

    fn urgent_comes_first_then_oldest(desk: &TestDesk) {
        for (content, priority) in [("a", "low"), ("b", "normal"), ("c", "urgent"), ("d", "high"), ("e", "urgent")] {
            ok(desk, &CODE, "send_message", json!({ "to": "cowork", "content": content, "priority": priority }));
        }
        assert_eq!(each(&ok(desk, &COWORK, "read_messages", json!({})), "messages", "content"), ["c", "e", "d", "b", "a"]);
        // The cursor walks the same order without acknowledging anything.
        let mut seen = Vec::new();
        let mut input = json!({ "limit": 2 });
        loop {
            let page = ok(desk, &COWORK, "read_messages", input.clone());
            seen.extend(each(&page, "messages", "content"));
            let Some(next) = page["next_cursor"].as_str() else { break };
            input["cursor"] = json!(next);
        }
        assert_eq!(seen, ["c", "e", "d", "b", "a"]);
        assert_code(&no(desk, &COWORK, "read_messages", json!({ "cursor": "bad!" })), Code::Invalid);
        assert_code(&no(desk, &COWORK, "read_messages", json!({ "cursor": "MSB4" })), Code::Invalid);
        assert_code(&no(desk, &COWORK, "read_messages", json!({ "limit": 0 })), Code::Invalid);
        assert_code(&no(desk, &COWORK, "read_messages", json!({ "limit": 201 })), Code::Invalid);
    }

    fn acknowledging_is_per_recipient_and_idempotent(desk: &TestDesk) {
        let id = send(desk, &CODE, "cowork", "hello");
        let done = ok(desk, &COWORK, "acknowledge_messages", json!({ "message_ids": [id.to_uppercase()] }));
        assert_eq!(done, json!({ "acknowledged": [id], "already": [] }));
        let again = ok(desk, &COWORK, "acknowledge_messages", json!({ "message_ids": [id] }));
        assert_eq!(again, json!({ "acknowledged": [], "already": [id] }));
        assert_code(&no(desk, &EVE, "acknowledge_messages", json!({ "message_ids": [id] })), Code::NotFound);
        assert_code(&no(desk, &CODE, "acknowledge_messages", json!({ "message_ids": [id] })), Code::NotFound);
        assert_code(&no(desk, &COWORK, "acknowledge_messages", json!({ "message_ids": [] })), Code::Invalid);
        sound(desk);
    }

    fn a_thread_shows_each_participant_its_part(desk: &TestDesk) {
        let first = send(desk, &CODE, "cowork", "question");
        let reply = ok(desk, &COWORK, "send_message", json!({ "to": "code", "content": "answer", "reply_to": first }));
        assert_eq!(text(&reply, "thread"), first);
        // Whoever guesses a thread's name and writes into it still reads only its own part.
        ok(desk, &EVE, "send_message", json!({ "to": "eve", "content": "me too", "thread": first }));
        assert_eq!(each(&ok(desk, &EVE, "get_thread", json!({ "thread": first })), "messages", "content"), ["me too"]);
        assert_eq!(each(&ok(desk, &CODE, "get_thread", json!({ "thread": first })), "messages", "content"), ["question", "answer"]);
        assert_code(&no(desk, &Caller::Agent("mallory"), "get_thread", json!({ "thread": first })), Code::NotFound);
        let owner = desk.claim();
        assert_eq!(each(&ok(desk, &owner, "get_thread", json!({ "thread": first, "limit": 200 })), "messages", "content"), ["question", "answer", "me too"]);
        let page = ok(desk, &owner, "get_thread", json!({ "thread": first, "limit": 2 }));
        let next = ok(desk, &owner, "get_thread", json!({ "thread": first, "cursor": page["next_cursor"] }));
        assert_eq!(each(&next, "messages", "content"), ["me too"]);
        assert_code(&no(desk, &EVE, "send_message", json!({ "to": "code", "content": "x", "reply_to": first })), Code::NotFound);
        assert_code(&no(desk, &CODE, "send_message", json!({ "to": "cowork", "content": "x", "reply_to": first, "thread": "other" })), Code::Invalid);
    }

    fn receipts_are_for_the_sender(desk: &TestDesk) {
        let id = send(desk, &CODE, "cowork", "hello");
        assert_eq!(ok(desk, &CODE, "get_receipts", json!({ "message_id": id }))["waiting"], 1);
        ok(desk, &COWORK, "acknowledge_messages", json!({ "message_ids": [id] }));
        let receipts = ok(desk, &CODE, "get_receipts", json!({ "message_id": id }));
        assert_eq!((receipts["acknowledged"].clone(), receipts["receipts"][0]["recipient"].clone()), (json!(1), json!("cowork")));
        assert!(receipts["receipts"][0]["acknowledged_at"].is_string());
        assert_code(&no(desk, &COWORK, "get_receipts", json!({ "message_id": id })), Code::Forbidden);
        assert_code(&no(desk, &EVE, "get_receipts", json!({ "message_id": id })), Code::NotFound);
        send(desk, &CODE, "cowork", "second");
        let sent = ok(desk, &CODE, "list_sent_messages", json!({ "limit": 1 }));
        assert_eq!((each(&sent, "messages", "content"), sent["more"].clone()), (vec!["second".to_owned()], json!(true)));
        let sent = ok(desk, &CODE, "list_sent_messages", json!({ "cursor": sent["next_cursor"] }));
        assert_eq!(each(&sent, "messages", "content"), ["hello"]);
        assert!(sent["messages"][0]["receipts"][0]["acknowledged_at"].is_string());
        assert_eq!(ok(desk, &EVE, "list_sent_messages", json!({}))["messages"], json!([]));
    }

    fn a_person_writes_and_is_written_to_by_name(desk: &TestDesk) {
        let owner = desk.claim();
        let id = send(desk, &CODE, "Owner", "please look");
        let read = ok(desk, &owner, "read_messages", json!({}));
        assert_eq!(each(&read, "messages", "message_id"), [id.as_str()]);
        let reply = ok(desk, &owner, "send_message", json!({ "to": "code", "content": "looked", "reply_to": id }));
        assert_eq!(text(&reply, "thread"), id);
        let got = &ok(desk, &CODE, "read_messages", json!({}))["messages"][0];
        assert_eq!((got["sender_kind"].as_str(), got["sender_name"].as_str(), got["trust"].as_str()), (Some("person"), Some("Owner"), Some("verified person")));
        // The person's id is no name for an agent, so that nobody reads a person's mail by going under it.
        let person: &'static str = Box::leak(text(got, "sender").into_boxed_str());
        assert_code(&no(desk, &Caller::Agent(person), "read_messages", json!({})), Code::Invalid);
        ok(desk, &owner, "acknowledge_messages", json!({ "message_ids": [id] }));
        assert_eq!(ok(desk, &CODE, "get_receipts", json!({ "message_id": id }))["acknowledged"], 1);
        sound(desk);
    }

    fn a_closed_desk_knows_its_recipients(desk: &TestDesk) {
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        let refusal = no(desk, &code, "send_message", json!({ "to": "cowrok", "content": "x" }));
        assert_code(&refusal, Code::NotFound);
        assert_eq!(refusal.field.as_deref(), Some("to"));
        let cowork = desk.register(&owner, "cowork");
        send(desk, &code, "cowork", "x");
        let got = &ok(desk, &cowork, "read_messages", json!({}))["messages"][0];
        assert_eq!((got["verified"].as_bool(), got["trust"].as_str()), (Some(true), Some("verified agent")));
    }

    fn what_comes_later_is_newer_whatever_the_clock_says(desk: &TestDesk) {
        let first = send(desk, &CODE, "cowork", "one");
        // A message that another server committed later, or took in by an older clock.
        desk.world.step_back(Duration::from_secs(60));
        let second = send(desk, &EVE, "cowork", "two");
        let got = ok(desk, &COWORK, "wait_for_messages", json!({ "after": first }));
        assert_eq!(each(&got, "messages", "message_id"), [second.as_str()]);
        assert!(!ready(desk, "cowork", "bridge_wait_for_messages", json!({ "after": second })));
        // One message to several is later than what each of them has got, and so is the next one to each.
        ok(desk, &CODE, "set_group", json!({ "name": "team", "members": ["aside", "cowork"] }));
        let both = send(desk, &CODE, "group:team", "three");
        let next = send(desk, &CODE, "aside", "four");
        let got = ok(desk, &COWORK, "wait_for_messages", json!({ "after": second }));
        assert_eq!(each(&got, "messages", "message_id"), [both.as_str()]);
        let got = ok(desk, &Caller::Agent("aside"), "wait_for_messages", json!({ "after": both }));
        assert_eq!(each(&got, "messages", "message_id"), [next.as_str()]);
        let got = ok(desk, &COWORK, "read_messages", json!({}));
        assert_eq!(each(&got, "messages", "message_id"), [first.as_str(), second.as_str(), both.as_str()]);
    }

    fn nobody_passes_by_a_waiter_who_follows_the_newest(desk: &TestDesk) {
        // Senders whose moments and commits are in no order, and a reader who always waits after the newest it has seen.
        let (senders, each_sends) = (4, 15);
        let mut seen: Vec<String> = Vec::new();
        std::thread::scope(|scope| {
            for sender in ["s0", "s1", "s2", "s3"] {
                scope.spawn(move || {
                    for number in 0..each_sends {
                        send(desk, &Caller::Agent(sender), "cowork", &format!("{sender} {number}"));
                    }
                });
            }
            let begun = std::time::Instant::now();
            while seen.len() < senders * each_sends && begun.elapsed() < Duration::from_secs(30) {
                let after = seen.last().map_or(json!({}), |newest| json!({ "after": newest }));
                let got = ok(desk, &COWORK, "wait_for_messages", after);
                seen.extend(got["messages"].as_array().unwrap().iter().map(|message| message["message_id"].as_str().unwrap().to_owned()));
            }
        });
        assert_eq!(seen.len(), senders * each_sends, "a message came that the waiter never saw");
    }

    fn a_wait_ends_with_a_message(desk: &TestDesk) {
        let wait_op = "bridge_wait_for_messages";
        assert!(!ready(desk, "cowork", wait_op, json!({})));
        let first = send(desk, &CODE, "cowork", "one");
        assert!(ready(desk, "cowork", wait_op, json!({ "timeout_seconds": 0 })));
        assert!(!ready(desk, "cowork", wait_op, json!({ "after": first })));
        assert!(!ready(desk, "cowork", wait_op, json!({ "project": "other" })));
        assert!(!ready(desk, "eve", wait_op, json!({})));
        let second = send(desk, &CODE, "cowork", "two");
        let got = ok(desk, &COWORK, "wait_for_messages", json!({ "after": first }));
        assert_eq!(each(&got, "messages", "message_id"), [second.as_str()]);
        assert_code(&no(desk, &COWORK, "wait_for_messages", json!({ "timeout_seconds": 26 })), Code::Invalid);
        assert_code(&no(desk, &EVE, "wait_for_messages", json!({ "after": first })), Code::NotFound);
    }

    fn many_send_and_read_at_once_and_nothing_is_lost(desk: &TestDesk) {
        let call = |name: &str, operation: &str, input: Value| {
            let credential = Credential::Named(Some(name.to_owned()));
            wait(desk.desk.call(Call { credential, surface: Surface::Mcp, operation: operation.to_owned(), input })).expect("the call is answered")
        };
        let read = std::thread::scope(|scope| {
            let senders: Vec<_> = ["a", "b", "c"]
                .into_iter()
                .map(|name| scope.spawn(move || (0..10).for_each(|n| drop(call(name, "bridge_send_message", json!({ "to": "cowork", "content": format!("{name}{n}") }))))))
                .collect();
            let reader = scope.spawn(move || {
                let mut read = Vec::new();
                while read.len() < 30 {
                    let Outcome::Done(page) = call("cowork", "bridge_read_messages", json!({ "mark_read": true, "limit": 4 })).outcome else { continue };
                    read.extend(each(&page, "messages", "content"));
                }
                read
            });
            senders.into_iter().for_each(|sender| sender.join().expect("the sender ends"));
            reader.join().expect("the reader ends")
        });
        let distinct: std::collections::BTreeSet<&String> = read.iter().collect();
        assert_eq!((read.len(), distinct.len()), (30, 30));
        desk.seal();
        assert_eq!(ok(desk, &COWORK, "read_messages", json!({}))["messages"], json!([]));
        sound(desk);
    }

    fn erased_content_is_gone_and_says_so(desk: &TestDesk) {
        let owner = desk.claim();
        send(desk, &CODE, "cowork", "my secret");
        let kept = ok(desk, &COWORK, "read_messages", json!({ "mark_read": true, "idempotency_key": "k" }));
        assert_eq!(each(&kept, "messages", "content"), ["my secret"]);
        let sent = desk.call(&owner, "desk_record_list", json!({ "kind": "message.sent" })).unwrap();
        assert_eq!(sent["events"][0]["payload"]["content"], "my secret");
        desk.call(&owner, "desk_record_erase", json!({ "seq": sent["events"][0]["seq"], "reason": "asked to" })).unwrap();
        let shown = ok(desk, &CODE, "list_sent_messages", json!({}))["messages"][0].clone();
        assert_eq!((shown["erased"].as_bool(), shown.get("content")), (Some(true), None));
        // The kept answer for a retry does not bring it back either.
        assert!(!ok(desk, &COWORK, "read_messages", json!({ "mark_read": true, "idempotency_key": "k" })).to_string().contains("secret"));
        sound(desk);
    }

    fn text_stays_as_it_is_and_nul_is_refused(desk: &TestDesk) {
        let odd = "line one\nline two\r\n\t{\"jsonrpc\": \"2.0\", \"method\": \"x\"}\u{2028}\u{7}'; drop table message; -- 🦀";
        send(desk, &CODE, "cowork", odd);
        assert_eq!(each(&ok(desk, &COWORK, "read_messages", json!({})), "messages", "content"), [odd]);
        let fields = [
            ("send_message", json!({ "to": "cowork", "content": "x", "project": "p", "thread": "t", "reply_to": "r" })),
            ("read_messages", json!({ "project": "p", "cursor": "c" })),
            ("acknowledge_messages", json!({ "message_ids": "ids" })),
            ("get_thread", json!({ "thread": "t", "cursor": "c" })),
            ("create_task", json!({ "to": "cowork", "title": "t", "description": "d", "project": "p", "deadline": "d", "thread": "t" })),
            ("update_task", json!({ "task_id": "i", "status": "failed", "result": "r" })),
            ("add_task_note", json!({ "task_id": "i", "note": "n" })),
            ("reserve_paths", json!({ "paths": "p", "reason": "r", "project": "p" })),
            ("set_group", json!({ "name": "n", "members": "m" })),
        ];
        for (operation, input) in fields {
            for field in input.as_object().unwrap().keys() {
                let list = field == "message_ids" || field == "paths" || field == "members";
                for bad in ["a\0b", "\0"] {
                    let mut input = input.clone();
                    input[field] = if list { json!([bad]) } else { json!(bad) };
                    assert_code(&no(desk, &CODE, operation, input), Code::Invalid);
                }
                // Newlines and JSON are either kept as text or refused, and never break anything.
                let mut input = input.clone();
                input[field] = if list { json!([odd]) } else { json!(odd) };
                if let Err(error) = desk.call(&CODE, &format!("bridge_{operation}"), input) {
                    assert!(matches!(error.code, Code::Invalid | Code::NotFound), "{operation} {field}: {error}");
                }
            }
        }
        for content in ["", " \n "] {
            assert_code(&no(desk, &CODE, "send_message", json!({ "to": "cowork", "content": content })), Code::Invalid);
        }
        assert_eq!(no(desk, &CODE, "send_message", json!({ "to": "cowork", "content": "x", "surprise": 1 })).field.as_deref(), Some("surprise"));
        assert_eq!(no(desk, &CODE, "send_message", json!({ "to": "", "content": "x" })).field.as_deref(), Some("to"));
        assert_code(&no(desk, &CODE, "send_message", json!({ "to": "desk", "content": "x" })), Code::Invalid);
        sound(desk);
    }

    fn a_full_mailbox_limits_senders(desk: &TestDesk) {
        let id = send(desk, &CODE, "cowork", "first");
        desk.tamper("update mailbox set unread = 100000 where recipient = 'cowork'");
        let refusal = no(desk, &CODE, "send_message", json!({ "to": "cowork", "content": "more" }));
        assert_code(&refusal, Code::Limited);
        assert!(refusal.retry_after_ms.is_some());
        ok(desk, &COWORK, "acknowledge_messages", json!({ "message_ids": [id] }));
        send(desk, &CODE, "cowork", "more");
    }
}
