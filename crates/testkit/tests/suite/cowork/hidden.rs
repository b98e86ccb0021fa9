//! What policy hides.

use deskmate_core::Code;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, both};

use super::*;

const HIDDEN: &str = "[hidden by policy]";
/// It has no form by which anything but a rule would take it out.
const SECRET: &str = "a quiet harbour";

/// Fields that nobody is to see.
fn hiding(desk: &TestDesk) {
    in_force(desk, "rules: [{ name: hide, effect: redact, paths: [ssn, customer.card] }]");
}

/// The arguments of a request as a person sees them.
fn shown(desk: &TestDesk, person: &Caller, id: &str) -> Value {
    desk.call(person, "desk_request_get", json!({ "request": id })).expect("the request is shown")["act"]["arguments"].clone()
}

/// All that people are shown of a request, and that the record tells of it.
fn seen(desk: &TestDesk, person: &Caller, id: &str) -> String {
    let one = desk.call(person, "desk_request_get", json!({ "request": id })).expect("the request is shown");
    let told = desk.call(person, "desk_record_list", json!({ "subject": format!("request:{id}") })).expect("the record can be read");
    let all = [one, told, ok(desk, person, "get_request", json!({ "request_id": id })), ok(desk, person, "audit_trail", json!({ "proposal_id": id }))];
    all.map(|shown| shown.to_string()).concat()
}

fn unseen(desk: &TestDesk, person: &Caller, id: &str, what: &str) {
    let seen = seen(desk, person, id);
    assert!(!seen.contains(SECRET), "{what}: {seen}");
}

/// The columns of requests, events, kept answers and reports in which a text stands.
fn rows_with(desk: &TestDesk, what: &str) -> Vec<String> {
    const PLACES: [(&str, &str); 8] = [
        ("request.act", "select act from request where act is not null order by id"),
        ("request.packet", "select packet from request where packet is not null order by id"),
        ("request.decision", "select decision from request where decision is not null order by id"),
        ("request.title", "select title from request where title is not null order by id"),
        ("event.payload", "select payload from event_payload where payload is not null order by seq"),
        ("idempotency.answer", "select answer from idempotency order by key"),
        ("execution.body", "select body from execution where body is not null order by id"),
        ("standing_approval.pattern", "select pattern from standing_approval order by id"),
    ];
    let mut found = Vec::new();
    for (name, sql) in PLACES {
        let rows = desk.desk.db.read_blocking(move |tx| Ok::<_, deskmate_core::Error>(tx.query(sql, &[])?)).unwrap();
        found.extend(rows.iter().filter(|row| row.get::<String>(0).unwrap().contains(what)).map(|_| name.to_owned()));
    }
    found
}

/// The hidden value lies open nowhere: the act of the one request has it, encrypted, until it has ended.
fn only_in_the_act(desk: &TestDesk, when: &str) {
    assert!(rows_with(desk, SECRET).is_empty(), "{when}: {:?}", rows_with(desk, SECRET));
    let sealed = desk.desk.db.read_blocking(|tx| Ok::<_, deskmate_core::Error>(tx.query("select id from request where sealed is not null", &[])?.len()));
    assert_eq!(sealed.unwrap(), usize::from(when != "done"), "{when}");
}

both! {
    fn what_is_hidden_comes_back_into_what_a_person_edits(desk: &TestDesk) {
        let owner = desk.claim();
        hiding(desk);
        let change = json!({ "ssn": "123-45-6789", "note": "a", "people": [{ "n": 1, "ssn": "1" }, { "n": 2, "ssn": "2" }] });
        let asked = || text(&propose(desk, &SALES, "crm", change.clone()), "proposal_id");
        let approve = |id: &str, edits: Value| desk.call(&owner, "desk_request_approve", json!({ "request": id, "edits": edits }));
        let done = |id: &str| ok(desk, &SALES, "begin", json!({ "proposal_id": id }))["change"].clone();

        // As it was shown, with another note, and another number of one of the people.
        let id = asked();
        let mut edits = shown(desk, &owner, &id);
        assert_eq!((&edits["ssn"], &edits["people"][1]["ssn"]), (&json!(HIDDEN), &json!(HIDDEN)));
        edits["note"] = json!("b");
        edits["people"][0]["n"] = json!(7);
        edits["people"][1]["ssn"] = json!("3");
        approve(&id, edits).unwrap();
        assert_eq!(done(&id), json!({ "ssn": "123-45-6789", "note": "b", "people": [{ "n": 7, "ssn": "1" }, { "n": 2, "ssn": "3" }] }));

        // Taken away, it is gone.
        let id = asked();
        approve(&id, json!({ "note": "b", "people": [{ "n": 3 }] })).unwrap();
        assert_eq!(done(&id), json!({ "note": "b", "people": [{ "n": 3 }] }));

        // Nothing else was edited; and what cannot be told is refused, so that these words are never carried out.
        let id = asked();
        for edits in [
            change.clone(),
            shown(desk, &owner, &id),
            json!({ "ssn": HIDDEN, "note": HIDDEN }),
            json!({ "other": HIDDEN }),
            json!({ "people": [{ "n": 2, "ssn": HIDDEN }] }),
            json!({ "people": [{ "n": 2, "ssn": HIDDEN }, { "n": 1, "ssn": HIDDEN }] }),
            json!({ "people": { "n": 1, "ssn": HIDDEN } }),
        ] {
            let refused = approve(&id, edits.clone()).expect_err("it is refused");
            assert_eq!((refused.code, refused.field.as_deref()), (Code::Invalid, Some("edits")), "{edits}: {refused}");
        }
        sound(desk);
    }

    fn a_hidden_value_is_kept_only_where_the_act_needs_it(desk: &TestDesk) {
        let owner = desk.claim();
        hiding(desk);
        let change = json!({ "ssn": SECRET, "note": "a" });
        let mut input = proposal("crm", change.clone());
        input["target_state"] = json!({ "ssn": SECRET, "note": "b" }).to_string().into();
        input["criteria"] = json!([{ "name": "ssn", "value": SECRET, "source": "crm", "at": "2026-01-01T00:00:00Z" }]);
        let id = text(&ok(desk, &SALES, "propose", input), "proposal_id");
        only_in_the_act(desk, "proposed");
        unseen(desk, &owner, &id, "proposed");
        // A person edits it, and a rule that hides more comes meanwhile.
        let mut edits = shown(desk, &owner, &id);
        edits["note"] = json!("c");
        in_force(desk, "rules: [{ name: hide, effect: redact, paths: [ssn] }, { name: more, effect: redact, paths: [note] }]");
        desk.call(&owner, "desk_request_approve", json!({ "request": id, "edits": edits })).unwrap();
        only_in_the_act(desk, "edited");
        let told = rows_with(desk, "\"note\":\"a\"");
        assert_eq!(told, ["event.payload"], "a later rule hides it in the request; what the record told before stays told");
        // Stopped under other rules, it goes back to people, who still do not see it.
        in_force(desk, "rules: [{ name: look, effect: require_approval }]");
        let begun = ok(desk, &SALES, "begin", json!({ "proposal_id": id, "target_state": json!({ "ssn": SECRET, "note": "b" }).to_string() }));
        assert_eq!((&begun["go"], &begun["stopped"]), (&json!(false), &json!("stricter")), "{begun}");
        unseen(desk, &owner, &id, "stopped");
        only_in_the_act(desk, "stopped");
        approve(desk, &owner, &id);
        assert_eq!(ok(desk, &SALES, "begin", json!({ "proposal_id": id }))["change"], json!({ "ssn": SECRET, "note": "c" }), "whoever does it gets it");
        only_in_the_act(desk, "begun");
        log(desk, &SALES, &id, json!({ "ssn": SECRET, "note": "c" }));
        only_in_the_act(desk, "done");
        sound(desk);
    }

    fn a_hidden_field_is_hidden_in_every_form_of_a_change(desk: &TestDesk) {
        let owner = desk.claim();
        hiding(desk);
        let forms = [
            (None, json!({ "ssn": SECRET })),
            (None, json!({ "person": { "ssn": SECRET } })),
            (None, json!({ "person.ssn": SECRET })),
            (None, json!([{ "ssn": [SECRET] }])),
            (None, json!({ "field": "ssn", "value": SECRET })),
            (None, json!({ "fields": [{ "name": "ssn", "new_value": SECRET, "old_value": SECRET }] })),
            (None, json!([{ "op": "replace", "path": "/people/0/ssn", "value": SECRET }])),
            (None, json!([{ "op": "add", "path": "/customer", "value": { "card": SECRET } }])),
            (None, json!({ "column": "ssn", "from": SECRET, "to": SECRET })),
            (None, json!({ "/person/ssn": SECRET })),
            (None, json!({ "/customer": { "card": SECRET } })),
            (None, json!({ "column": "ssn", "oldValue": SECRET, "newValue": SECRET })),
            (None, json!({ "property": "ssn", "becomes": SECRET })),
            (None, json!({ "note": json!({ "a": [{ "ssn": SECRET }] }).to_string() })),
            (None, json!({ "raw": json!({ "field": "ssn", "value": SECRET }).to_string() })),
            (Some("ssn"), json!({ "value": SECRET, "old": SECRET })),
            (Some("person.ssn"), json!({ "new": SECRET })),
            (Some("customer"), json!({ "value": { "card": SECRET } })),
            (Some("ssn"), json!(SECRET)),
        ];
        for (field, change) in forms {
            let mut input = proposal("crm", change.clone());
            input["field"] = json!(field);
            // What is there now has the same form.
            input["target_state"] = json!(change.to_string());
            let id = text(&ok(desk, &SALES, "propose", input), "proposal_id");
            assert!(seen(desk, &owner, &id).contains(HIDDEN), "{change}");
            unseen(desk, &owner, &id, &change.to_string());
            approve(desk, &owner, &id);
            assert_eq!(ok(desk, &SALES, "begin", json!({ "proposal_id": id }))["change"], change, "whoever does it needs it");
        }
        // Other fields stay as they are.
        let change = json!({ "name": "ssn", "text": "{ssn", "to": [1, { "a": null }], "of": { "field": "note", "value": "plain" } });
        let id = text(&propose(desk, &SALES, "crm", change.clone()), "proposal_id");
        assert_eq!(shown(desk, &owner, &id), change);
        sound(desk);
    }

    fn a_hidden_field_is_hidden_in_all_that_goes_with_a_proposal(desk: &TestDesk) {
        let owner = desk.claim();
        hiding(desk);
        let mut input = proposal("crm", json!({ "note": "plain", "person": { "age": 7 } }));
        input["target_state"] = json!(json!({ "person": { "ssn": SECRET, "age": 6 }, "customer": { "card": SECRET } }).to_string());
        input["criteria"] = json!([{ "name": "ssn", "value": SECRET, "source": "erp", "at": "2026-01-01T00:00:00Z" }, { "name": "limit", "value": 5, "source": "erp" }]);
        let id = text(&ok(desk, &SALES, "propose", input), "proposal_id");
        unseen(desk, &owner, &id, "old values and criteria");
        let shown = ok(desk, &owner, "get_request", json!({ "request_id": id }));
        assert_eq!(shown["request"]["context"]["criteria"][1]["value"], 5, "{shown}");
        let shown = desk.call(&owner, "desk_request_get", json!({ "request": id })).unwrap();
        assert!(shown["changes"].to_string().contains("\"old\":6"), "{shown}");
    }

    fn a_hidden_field_stays_hidden_when_an_edit_takes_away_why(desk: &TestDesk) {
        let owner = desk.claim();
        in_force(desk, "rules: [{ name: hide, when: args.private == true, effect: redact, paths: [ssn] }]");
        let id = text(&propose(desk, &SALES, "crm", json!({ "ssn": SECRET, "private": true })), "proposal_id");
        desk.call(&owner, "desk_request_approve", json!({ "request": id, "edits": { "ssn": HIDDEN, "private": false } })).unwrap();
        unseen(desk, &owner, &id, "edited");
        assert_eq!(ok(desk, &SALES, "begin", json!({ "proposal_id": id }))["change"], json!({ "ssn": SECRET, "private": false }));
    }

    fn a_hidden_field_is_hidden_in_what_was_done(desk: &TestDesk) {
        let owner = desk.claim();
        hiding(desk);
        let approved = |change: &Value| {
            let id = text(&propose(desk, &SALES, "crm", change.clone()), "proposal_id");
            approve(desk, &owner, &id);
            id
        };
        let change = json!({ "ssn": SECRET, "note": "plain" });
        let id = approved(&change);
        assert_eq!(log(desk, &SALES, &id, change.clone())["matches"], "exact");
        unseen(desk, &owner, &id, "as approved");
        // Something that was not approved, and something that nobody asked for.
        let id = approved(&json!({ "note": "plain" }));
        assert_eq!(log(desk, &SALES, &id, json!({ "note": "plain", "person": { "ssn": SECRET } }))["matches"], "differs");
        unseen(desk, &owner, &id, "something else");
        ok(desk, &SALES, "log", json!({ "domain": "crm", "action": "did it", "actor": "agent", "executed_change": change.to_string() }));
        ok(desk, &owner, "log", json!({ "domain": "crm", "action": "did it", "actor": "human", "executed_change": change.to_string() }));
        let told = told(desk, &owner, "action.logged");
        assert_eq!(told.len(), 4);
        assert!(told.iter().all(|event| event["payload"]["body"]["executed_change"]["note"] == "plain"), "{told:?}");
        assert!(!json!(told).to_string().contains(SECRET), "{told:?}");
        let kept = desk.act(|cx| {
            let rows = cx.tx.query("select body from execution", deskmate_db::args![])?;
            rows.iter().map(|row| Ok(row.get::<String>(0)?)).collect::<deskmate_core::Result<Vec<_>>>()
        });
        let kept = kept.unwrap().concat();
        assert!(kept.contains(HIDDEN) && !kept.contains(SECRET), "{kept}");
        sound(desk);
    }
}
