//! The inbox of a desk with much history: the time of a page, with each of the filters that people use.

use std::path::Path;
use std::time::Instant;

use deskmate_core::call::{Call, Credential, Desk, Surface};
use serde_json::{Value, json};

use crate::floor::micros;
use crate::http::Connection;
use crate::large::{ROUNDS, quantiles};
use crate::load::times;
use crate::server::{Server, binary};
use crate::{fill, load};

/// What people ask the inbox for.
const QUERIES: [(&str, &str); 8] = [
    ("the inbox", "{}"),
    ("one domain", r#"{"domain":"crm.deals"}"#),
    ("one kind", r#"{"kind":"proposal"}"#),
    ("a kind that nothing has", r#"{"kind":"handoff"}"#),
    ("a text that many have", r#"{"search":"deal/1"}"#),
    ("a text that nothing has", r#"{"search":"nowhere"}"#),
    ("one agent", r#"{"requester":"bench-0-0"}"#),
    ("all that was ever decided", r#"{"view":"all"}"#),
];

/// Fills a store with decided and pending requests, and answers p50 and p99 of each query in milliseconds.
pub fn run(program: Option<&Path>, home: &Path, decided: u64, pending: u64) -> Vec<(&'static str, (f64, f64))> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let desk = fill::open(home);
    let token = runtime.block_on(async {
        let owner = claim(&desk).await;
        // Those that stay pending are old ones and new ones.
        let requests = fill::calls(&desk, decided + pending, propose, |answer| answer["request_id"].as_str().map(str::to_owned)).await;
        let every = (decided + pending) / pending.max(1);
        let chosen: Vec<String> = requests.into_iter().enumerate().filter(|(number, _)| !(*number as u64).is_multiple_of(every)).map(|(_, id)| id).collect();
        let (count, credential) = (chosen.len() as u64, owner.clone());
        let decide = move |number: u64| {
            let operation = if number.is_multiple_of(2) { "desk_request_approve" } else { "desk_request_reject" };
            let input = json!({ "request": chosen[usize::try_from(number).expect("a small number")], "reason": "as measured" });
            Call { credential: credential.clone(), surface: Surface::Rest, operation: operation.to_owned(), input }
        };
        fill::calls(&desk, count, decide, |_| None::<()>).await;
        let input = json!({ "note": "measuring", "scopes": ["desk:read"] });
        call(&desk, owner, "desk_token_create", input).await["token"].as_str().expect("a token").to_owned()
    });
    desk.db.close();
    let server = Server::start(&binary(program), home, None);
    runtime.block_on(async {
        let mut connection = Connection::open(&server.url).await.expect("the server answers").with_token(token);
        let mut all = Vec::new();
        for (what, body) in QUERIES {
            let mut found = times();
            for round in 0..ROUNDS + 100 {
                let started = Instant::now();
                let (status, _) = connection.call("desk_request_list", "", body).await.expect("the server answers");
                assert_eq!(status, 200, "{}", connection.json());
                if round >= 100 {
                    found.saturating_record(micros(started.elapsed()));
                }
            }
            all.push((what, quantiles(&found)));
        }
        all
    })
}

pub(crate) fn propose(number: u64) -> Call {
    let number = usize::try_from(number).expect("a small number");
    let (agent, body) = load::proposal(0, number);
    let mut input: Value = serde_json::from_str(&body).expect("it is JSON");
    input["domain"] = json!(["crm.deals", "crm.people", "billing", "files"][number % 4]);
    Call { credential: Credential::Named(Some(agent)), surface: Surface::Rest, operation: "cowork_propose".to_owned(), input }
}

pub(crate) async fn claim(desk: &Desk) -> Credential {
    let link = desk.act(Surface::System, deskmate_core::identity::issue_claim).await.expect("a link");
    let input = json!({ "code": link.code, "name": "Owner", "passphrase": "correct horse" });
    let answer = call(desk, Credential::Nobody, "desk_claim", input).await;
    Credential::Secret { secret: answer["session"].as_str().expect("a session").to_owned(), proved: true }
}

pub(crate) async fn call(desk: &Desk, credential: Credential, operation: &str, input: Value) -> Value {
    let call = Call { credential, surface: Surface::Rest, operation: operation.to_owned(), input };
    match desk.call(call).await.expect("it is answered").outcome {
        deskmate_core::call::Outcome::Done(answer) | deskmate_core::call::Outcome::NotYet(answer) => answer,
    }
}
