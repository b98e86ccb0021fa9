//! The audit file in a workspace, on both engines: what the record adds to it, and how it is verified.

use std::time::Duration;

use deskmate_core::workspace::plan::{self, StepState};
use deskmate_core::workspace::{AuditCheck, AuditNext, audit_next};
use testkit::both;

use super::workspace::{approve, execute, people, ready, run};

both! {
    fn the_audit_file_goes_on_behind_its_last_line(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        let plan = ready(desk, &agent, 3);
        approve(desk, &owner, &plan);
        execute(desk, &agent, &plan);
        run(desk, &plan, |_| StepState::Done);
        desk.seal();
        let next = |last: Option<String>| desk.act(move |cx| audit_next(cx, "notes", last.as_deref())).unwrap();
        let AuditNext::Lines { text: all, late: 0 } = next(None) else { panic!("nothing was written yet") };
        let lines: Vec<&str> = all.lines().collect();
        assert_eq!(lines.len(), 3);
        // Cut anywhere, it goes on with the next line.
        for cut in 0..3 {
            assert_eq!(next(Some(lines[cut].to_owned())), AuditNext::Lines { text: lines[cut + 1..].iter().map(|line| format!("{line}\n")).collect(), late: 0 });
        }
        let forged = lines[2].replacen("\"leaf\":\"", "\"leaf\":\"0", 1);
        for bad in [forged.as_str(), "{}", "not ours", "{\"action\":\"move\",\"from\":\"a\",\"to\":\"b\",\"ts_unix_ms\":1}"] {
            assert_eq!(next(Some(bad.to_owned())), AuditNext::NotOurs, "{bad}");
        }
        assert_eq!(desk.act(|cx| audit_next(cx, "manuals", None)).unwrap(), AuditNext::Lines { text: String::new(), late: 0 }, "each root has its own");
        // A minute after the plan has ended its lines should have been there.
        desk.world.pass(Duration::from_secs(61));
        assert!(matches!(next(Some(lines[0].to_owned())), AuditNext::Lines { late: 2, .. }));
    }

    fn an_audit_file_is_verified_from_its_first_line_to_its_last(desk: &TestDesk) {
        let (owner, agent) = people(desk);
        for _ in 0..2 {
            let plan = ready(desk, &agent, 3);
            approve(desk, &owner, &plan);
            execute(desk, &agent, &plan);
            run(desk, &plan, |_| StepState::Done);
        }
        desk.seal();
        let AuditNext::Lines { text, .. } = desk.act(|cx| audit_next(cx, "notes", None)).unwrap() else { panic!("nothing was written yet") };
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 6);
        // The first bad line, and how many are missing at the end.
        let verify = |lines: Vec<String>| {
            desk.act(move |cx| {
                let mut check = AuditCheck::new("notes");
                if let Some(bad) = check.check(cx, &lines)? {
                    return Ok((Some(bad.line), 0));
                }
                assert_eq!(check.lines(), lines.len() as u64);
                Ok((None, check.missing(cx, 100)?.0))
            })
            .unwrap()
        };
        let with = |change: &dyn Fn(&mut Vec<String>)| {
            let mut lines = lines.clone();
            change(&mut lines);
            verify(lines)
        };
        assert_eq!(verify(lines.clone()), (None, 0));
        assert_eq!(with(&|lines| lines.truncate(4)), (None, 0), "they may still be on their way");
        desk.world.pass(Duration::from_secs(61));
        assert_eq!(with(&|lines| lines.truncate(4)), (None, 2), "cut");
        assert_eq!(with(&Vec::clear), (None, 6), "gone");
        assert_eq!(with(&|lines| lines[2] = lines[2].replace("a2.txt", "b2.txt")), (Some(3), 0), "edited");
        assert_eq!(with(&|lines| lines[3] = lines[3].replacen("\"leaf\":\"", "\"leaf\":\"0", 1)), (Some(4), 0), "another hash");
        assert_eq!(with(&|lines| drop(lines.remove(1))), (Some(2), 0), "one was taken out");
        assert_eq!(with(&|lines| drop(lines.drain(0..3))), (Some(1), 0), "a whole event was taken out");
        assert_eq!(with(&|lines| lines.swap(3, 4)), (Some(4), 0), "two changed places");
        assert_eq!(with(&|lines| lines.insert(5, lines[4].clone())), (Some(6), 0), "one stands there twice");
        assert_eq!(with(&|lines| lines.push(lines[5].clone())), (Some(7), 0), "one too many");
        assert_eq!(with(&|lines| lines.insert(0, String::new())), (Some(1), 0), "no line of ours");
        // Plans go after a while: the lines of theirs that were written stay good by their places and hashes, and need not be there.
        desk.world.pass(Duration::from_secs(3600));
        let now = desk.desk.world.now();
        desk.act(move |cx| plan::prune(cx, now, 10)).unwrap();
        assert_eq!(verify(lines.clone()), (None, 0));
        assert_eq!(with(&Vec::clear), (None, 0));
        assert_eq!(with(&|lines| drop(lines.drain(0..3))), (None, 0));
        assert_eq!(with(&|lines| drop(lines.remove(1))), (Some(2), 0));
        assert_eq!(with(&|lines| lines[3] = lines[3].replacen("\"leaf\":\"", "\"leaf\":\"0", 1)), (Some(4), 0));
    }
}
