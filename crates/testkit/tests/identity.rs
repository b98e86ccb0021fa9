//! Who may do what, on both engines.

use deskmate_core::Code;
use serde_json::json;
use testkit::{Caller, assert_code, both};

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

    fn an_agent_never_configures(desk: &TestDesk) {
        let owner = desk.claim();
        let code = desk.register(&owner, "code");
        for (op, input) in [("desk_agent_add", json!({"agent": "evil"})), ("desk_agent_rotate", json!({"agent": "code"})), ("desk_record_erase", json!({"seq": 0, "reason": "x"}))] {
            assert_code(&desk.refused(&code, op, input), Code::Forbidden);
        }
    }

    fn a_changed_row_is_found(desk: &TestDesk) {
        let owner = desk.claim();
        desk.register(&owner, "code");
        desk.tamper("update person set role = 'viewer'");
        assert!(!desk.verify().sound);
    }
}
