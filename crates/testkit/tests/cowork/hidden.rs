//! What policy hides.

use deskmate_core::Code;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, both};

use super::*;

const HIDDEN: &str = "[hidden by policy]";

/// Fields that nobody is to see.
fn hiding(desk: &TestDesk) {
    in_force(desk, "rules: [{ name: hide, effect: redact, paths: [ssn, customer.card] }]");
}

/// The arguments of a request as a person sees them.
fn shown(desk: &TestDesk, person: &Caller, id: &str) -> Value {
    desk.call(person, "desk_request_get", json!({ "request": id })).expect("the request is shown")["act"]["arguments"].clone()
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
}
