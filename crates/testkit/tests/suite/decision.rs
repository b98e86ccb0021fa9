//! An answer says what the desk decided on the act that the call intends, for whoever counts and logs calls.

use deskmate_core::call::{Call, Credential, Outcome, Surface};
use deskmate_core::policy::Mode;
use serde_json::{Value, json};
use testkit::{TestDesk, both, wait};

const CRM: &str = "
policies:
  - id: crm-write
    rules:
      - { field: amount, constraint: value_range, min: 0, max: 500000, reason: too much }
mappings:
  - { agent_id: '*', domain: crm.*, policy_id: crm-write }
";

fn decision(desk: &TestDesk, operation: &str, input: Value) -> Option<Mode> {
    let call = Call { credential: Credential::Named(Some("code".to_owned())), surface: Surface::Rest, operation: operation.to_owned(), input };
    let answer = wait(desk.desk.call(call)).unwrap();
    assert!(matches!(answer.outcome, Outcome::Done(_)));
    answer.decision
}

fn proposal(amount: i64, key: &str) -> Value {
    let change = json!({ "amount": amount }).to_string();
    json!({ "domain": "crm.deals", "action": "update", "target": "deal/1", "proposed_change": change, "confidence": 0.8, "reasoning": "because", "idempotency_key": key })
}

both! {
    fn an_answer_says_what_was_decided(desk: &TestDesk) {
        let owner = desk.claim();
        desk.call(&owner, "desk_policy_apply", json!({ "document": CRM })).unwrap();
        assert_eq!(decision(desk, "cowork_propose", proposal(5, "a")), Some(Mode::Escalate));
        assert_eq!(decision(desk, "cowork_propose", proposal(5, "a")), None, "the same call again decides nothing");
        assert_eq!(decision(desk, "cowork_propose", proposal(750_000, "b")), Some(Mode::Deny));
        assert_eq!(decision(desk, "bridge_read_messages", json!({})), None);
    }
}
