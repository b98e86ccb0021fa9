//! What is in force, on both engines.

use std::sync::Arc;

use deskmate_core::Code;
use deskmate_core::policy::{self, Document, Parts, Rulebook, Stored};
use serde_json::json;
use testkit::{TestDesk, both};

use super::support::{REFERENCE, answer, propose};

fn parts(text: &str) -> Parts {
    Document::parse(text).unwrap_or_else(|problems| panic!("{problems:#?}")).over(&Parts::default())
}

fn put(desk: &TestDesk, parts: &Parts) -> Stored {
    let parts = parts.clone();
    // A call that changes nothing tells nothing, so the desk's own act says something besides.
    desk.act(move |cx| policy::store(cx, &parts, "ann")).unwrap()
}

fn current(desk: &TestDesk) -> Arc<Rulebook> {
    desk.act(policy::current).unwrap()
}

fn sound(desk: &TestDesk) {
    let report = desk.verify();
    assert!(report.sound, "{:?}", report.findings);
}

fn finding(desk: &TestDesk, what: &str) {
    let report = desk.verify();
    assert!(report.findings.iter().any(|finding| finding.what.contains(what)), "{what}: {:?}", report.findings);
}

both! {
    fn what_is_put_in_force_is_in_force(desk: &TestDesk) {
        let before = current(desk);
        assert!(before.parts().policies.is_empty());
        let text = format!("policy_mode: permissive\ntrust: {{ default_level: 0.4 }}\ndomains: {{ d: {{ authority: {{ volume_cap: 7 }} }} }}\n{REFERENCE}");
        let target = parts(&text);
        let stored = put(desk, &target);
        assert_eq!(stored.policies.iter().map(|policy| (policy.policy.as_str(), policy.version)).collect::<Vec<_>>(), [("crm-write", 1), ("support-write", 1)]);
        assert_eq!((stored.mapped.len(), stored.settings.len()), (3, 3));
        let book = current(desk);
        assert_eq!((book.parts(), book.digest()), (&target, stored.digest.as_str()));
        assert_ne!(book.digest(), before.digest());
        assert_eq!(book.settings("d").authority.volume_cap, 7);
        sound(desk);
    }

    fn the_same_again_changes_nothing_and_tells_nothing(desk: &TestDesk) {
        put(desk, &parts(REFERENCE));
        let (book, events) = (current(desk), desk.verify().events);
        let again = put(desk, &parts(REFERENCE));
        assert!(again.is_empty() && again.digest == book.digest());
        assert_eq!(desk.verify().events, events);
        assert!(Arc::ptr_eq(&book, &current(desk)), "it is compiled once");
    }

    fn a_change_is_a_new_version_and_the_old_one_stays(desk: &TestDesk) {
        put(desk, &parts(REFERENCE));
        let mut target = parts(REFERENCE);
        target.policies.get_mut("crm-write").unwrap().rules.pop();
        let second = put(desk, &target);
        assert_eq!(second.policies.iter().map(|policy| (policy.policy.as_str(), policy.version)).collect::<Vec<_>>(), [("crm-write", 2)]);
        assert_eq!(current(desk).policy("crm-write").unwrap().1, 2);
        let third = put(desk, &Parts::default());
        assert_eq!((third.retired.len(), third.unmapped.len()), (2, 3));
        assert!(current(desk).parts().policies.is_empty());
        let fourth = put(desk, &parts(REFERENCE));
        assert_eq!(fourth.policies.iter().map(|policy| policy.version).collect::<Vec<_>>(), [3, 2], "versions are never used twice");
        sound(desk);
    }

    fn settings_go_back_to_their_defaults(desk: &TestDesk) {
        put(desk, &parts("authority: { volume_cap: 3 }\npolicy_mode: permissive"));
        put(desk, &parts(""));
        assert_eq!(current(desk).settings("d").authority.volume_cap, 50);
        sound(desk);
    }

    fn what_is_wrong_is_refused_whole(desk: &TestDesk) {
        let mut target = parts(REFERENCE);
        target.policies.remove("crm-write");
        let error = desk.act(move |cx| policy::store(cx, &target, "ann")).unwrap_err();
        assert_eq!(error.code, Code::Invalid);
        assert!(error.message.contains("there is no policy `crm-write`"), "{error}");
        assert!(current(desk).parts().mappings.is_empty());
    }

    fn a_policy_that_was_changed_around_the_desk_is_found_and_stops_decisions(desk: &TestDesk) {
        put(desk, &parts(REFERENCE));
        desk.tamper("update policy set body = replace(body, '\"max\":50', '\"max\":5000000')");
        finding(desk, "policy crm-write version 1: the row differs");
        let error = fresh(desk).unwrap_err();
        assert_eq!(error.code, Code::Internal);
        assert!(error.hint.unwrap().contains("audit verify"));
    }

    fn a_mapping_that_was_taken_away_around_the_desk_is_found(desk: &TestDesk) {
        put(desk, &parts(REFERENCE));
        desk.tamper("delete from mapping where agent = 'support-agent'");
        finding(desk, "mapping of support-agent and support.tickets to support-write: the record tells of it, but the row is gone");
        assert_eq!(fresh(desk).unwrap_err().code, Code::Internal);
    }

    fn a_setting_that_was_changed_around_the_desk_is_found(desk: &TestDesk) {
        put(desk, &parts("authority: { volume_cap: 3 }"));
        desk.tamper("update setting set body = '{\"volume_cap\":3000}'");
        finding(desk, "setting authority : the row differs");
        assert_eq!(fresh(desk).unwrap_err().code, Code::Internal);
    }

    fn a_rulebook_that_was_forgotten_around_the_desk_is_found(desk: &TestDesk) {
        put(desk, &parts(REFERENCE));
        desk.tamper("delete from desk where key = 'rulebook'");
        finding(desk, "rulebook: the desk names another digest");
        assert_eq!(fresh(desk).unwrap_err().code, Code::Internal, "no rulebook is not an empty one");
    }

    fn a_stored_policy_that_cannot_be_read_denies(desk: &TestDesk) {
        put(desk, &parts(REFERENCE));
        let body = r#"{"id":"crm-write","rules":[{"effect":"deny","name":"r","when":"gone(act.kind)"}]}"#;
        let sneak = move |cx: &mut deskmate_core::call::Cx<'_, '_>| -> deskmate_core::Result<()> {
            cx.tx.execute("update policy set body = $1 where name = 'crm-write'", deskmate_db::args![body])?;
            Ok(())
        };
        desk.act(sneak).unwrap();
        // As if the binary were newer than the policy: the content is what was put in force, but no longer understood.
        let named = desk.act(policy::stored_digest).unwrap();
        desk.act(move |cx| Ok(cx.tx.execute("update desk set value = $1 where key = 'rulebook'", deskmate_db::args![named])?)).unwrap();
        let book = fresh(desk).unwrap();
        let decision = answer(&book, "crm-agent", &propose("crm.deals", json!({ "name": "x" })));
        assert_eq!((decision.mode, decision.hits[0].rule_id.as_str()), (policy::Mode::Deny, "unreadable_policy"));
        assert_eq!(answer(&book, "support-agent", &propose("support.tickets", json!({ "name": "x" }))).mode, policy::Mode::Act, "the others go on");
    }
}

/// As a desk that was started anew sees it.
fn fresh(desk: &TestDesk) -> deskmate_core::Result<Arc<Rulebook>> {
    let mut other = desk.desk.clone();
    other.rulebooks = policy::Cache::default();
    testkit::wait(other.act(deskmate_core::call::Surface::System, policy::current))
}
