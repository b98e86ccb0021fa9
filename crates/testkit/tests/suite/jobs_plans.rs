//! How the engines look for jobs: through the index that was made for it, and without sorting what they find.

use deskmate_core::job::{self, INDEXED, NewJob, Priority};
use deskmate_db::{Engine, Param, Result};
use serde_json::json;
use testkit::{TestDesk, both, plan};

/// Jobs in every state, most of them ended, and a backlog: statistics that a desk in use would have.
fn fill(desk: &TestDesk) {
    desk.act(|cx| {
        for number in 0..3_000_i64 {
            let kind = if number % 3 == 0 { "work" } else { "other" };
            let priority = if number % 10 == 0 { Priority::Urgent } else { Priority::Normal };
            job::enqueue(cx, NewJob { priority, unique_key: Some(format!("k{number}")), run_at: Some(number), ..NewJob::new(kind, json!({ "number": number })) })?;
        }
        cx.tx.execute("update job set state = 'done', finished_at = run_at where run_at < 2000", &[])?;
        cx.tx.execute("update job set state = 'running' where run_at between 2000 and 2100", &[])?;
        cx.tx.execute("insert into lease (subject, holder, fence, acquired_at, renewed_at, expires_at, ttl) select 'job:' || id, 'w', 1, 0, 0, run_at, 1 from job where run_at < 2100", &[])?;
        cx.tx.execute("insert into job_attempt (job, number, worker, fence, started_at) select id, 1, 'w', 1, run_at from job where run_at < 2100", &[])?;
        Ok(())
    }).unwrap();
}

/// A value for each parameter, of the type that stands there and of a usual size: planners look at it.
fn params(sql: &str) -> Vec<Param<'static>> {
    let (number, text, place) = (Param::Int, Param::Text("work"), Param::Text(""));
    let all = if sql.contains("(created_at, id) <") {
        vec![number(i64::MAX), text, number(200), text, text]
    } else if sql.contains("priority = $3") {
        vec![text, place, number(1), number(10_000), number(10)]
    } else if sql.contains("place = $2") || sql.contains("place > $2") {
        vec![text, place]
    } else if sql.contains("unique_key = $2") {
        vec![text, text]
    } else if sql.contains("like $2") {
        vec![text, text, number(10)]
    } else if sql.contains("id > $1") {
        vec![text, number(200)]
    } else {
        vec![number(1_000), number(200)]
    };
    let count = (1..=5).take_while(|number| sql.contains(&format!("${number}"))).count();
    all.into_iter().take(count).collect()
}

both! {
    fn statements_go_through_their_index(desk: &TestDesk) {
        fill(desk);
        let analysed = desk.desk.db.engine();
        let plans: Result<Vec<String>> = desk.desk.db.write_blocking(move |tx| {
            // SQLite keeps no statistics unless asked, and a desk does not ask; PostgreSQL gathers them by itself, later.
            if analysed == Engine::Postgres {
                tx.batch("analyze job; analyze lease; analyze job_attempt")?;
            }
            INDEXED.iter().map(|(sql, _)| plan(tx, sql, &params(sql))).collect()
        });
        for ((sql, index), plan) in INDEXED.iter().zip(plans.unwrap()) {
            assert!(plan.contains(index), "{sql}\ndoes not use {index}:\n{plan}");
            for bad in ["TEMP B-TREE", "SCAN job", "SCAN lease", "Sort", "Seq Scan"] {
                assert!(!plan.contains(bad), "{sql}\nhas {bad}:\n{plan}");
            }
        }
    }
}
