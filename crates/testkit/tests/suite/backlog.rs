//! What waits, in numbers: who may ask, that the numbers are right, and what they cost, on both engines.

use deskmate_core::job::{self, NewJob};
use deskmate_core::{Code, backlog};
use deskmate_db::{Engine, Param, Result};
use serde_json::{Value, json};
use testkit::{Caller, assert_code, both, plan};

fn proposal(target: &str) -> Value {
    json!({ "domain": "crm.deals", "action": "update", "target": target, "proposed_change": "{\"a\":1}", "confidence": 0.8, "reasoning": "because" })
}

both! {
    fn what_waits_is_counted(desk: &TestDesk) {
        let owner = desk.claim();
        let count = || {
            desk.seal();
            desk.call(&owner, "desk_backlog", json!({})).unwrap()
        };
        let before = count();
        assert_eq!(before["requests_pending"], json!({ "approval": 0, "deploy": 0, "edit": 0, "handoff": 0, "plan": 0, "policy": 0, "promotion": 0, "proposal": 0, "tool_call": 0 }));
        assert_eq!(before["jobs"], json!({ "running": 0, "waiting": 0 }));
        for number in 0..3 {
            desk.agent("code", "cowork_propose", proposal(&format!("deal/{number}"))).unwrap();
        }
        desk.act(|cx| {
            job::enqueue(cx, NewJob::new("work", json!({})))?;
            job::enqueue(cx, NewJob::new("work", json!({})))?;
            job::claim(cx, "w1", &["work"], 30_000_000, 1)
        })
        .unwrap();
        let after = count();
        assert_eq!(after["requests_pending"]["proposal"], 3);
        assert_eq!(after["jobs"], json!({ "running": 1, "waiting": 1 }));
        assert_eq!(after["events_unsealed"], 0);
        assert_eq!(after["events"], desk.call(&owner, "desk_status", json!({})).unwrap()["events"]);
        assert!(after["events"].as_u64() > before["events"].as_u64());
    }

    fn only_people_count_what_waits(desk: &TestDesk) {
        let owner = desk.claim();
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_backlog", json!({})), Code::Forbidden);
        let code = desk.register(&owner, "code");
        assert_code(&desk.refused(&code, "desk_backlog", json!({})), Code::Forbidden);
        assert_code(&desk.refused(&Caller::Nobody, "desk_backlog", json!({})), Code::Unauthenticated);
        let token = |scope: &str| {
            let made = desk.call(&owner, "desk_token_create", json!({ "note": "watching", "scopes": [scope] })).unwrap();
            Caller::Secret(made["token"].as_str().unwrap().to_owned())
        };
        desk.call(&token("desk_backlog:read"), "desk_backlog", json!({})).unwrap();
        assert_code(&desk.refused(&token("bridge:read"), "desk_backlog", json!({})), Code::Forbidden);
    }

    fn counting_reads_no_history(desk: &TestDesk) {
        desk.act(|cx| {
            for number in 0..2_000_i64 {
                job::enqueue(cx, NewJob { run_at: Some(number), ..NewJob::new("work", json!({})) })?;
            }
            cx.tx.execute("update job set state = 'done', finished_at = run_at where run_at < 1900", &[])?;
            Ok(())
        })
        .unwrap();
        let engine = desk.desk.db.engine();
        let plans: Result<Vec<String>> = desk.desk.db.write_blocking(move |tx| {
            if engine == Engine::Postgres {
                tx.batch("analyze job; analyze request")?;
            }
            backlog::INDEXED.iter().map(|sql| plan(tx, sql, &[Param::Text("proposal")][..usize::from(sql.contains("$1"))])).collect()
        });
        for (sql, plan) in backlog::INDEXED.iter().zip(plans.unwrap()) {
            let index = ["request_pending_by_kind", "job_waiting", "job_running", "job_by_state"].iter().any(|index| plan.contains(index));
            assert!(index && !plan.contains("SCAN") && !plan.contains("Seq Scan"), "{sql}\n{plan}");
        }
    }
}
