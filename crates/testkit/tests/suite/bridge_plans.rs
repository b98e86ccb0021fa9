//! How the engines look for messages and tasks: through the index that was made for it, and without sorting what they
//! find. PostgreSQL has no statistics on a new desk and gathers them later, so it must plan well both ways.

use deskmate_core::bridge::indexed;
use deskmate_db::{Engine, Param, Result, args};
use testkit::{TestDesk, both, plan};

/// Messages, tasks and reservations of several actors in several projects, most of them long done with: what a desk in
/// use has.
fn fill(desk: &TestDesk) {
    desk.act(|cx| {
        for number in 0..3_000_i64 {
            let (id, actor) = (format!("id{number:05}"), format!("actor{}", number % 30));
            let project = if number % 10 == 0 { "other" } else { "default" };
            let done = (number % 20 != 0).then_some(number);
            cx.tx.execute(
                "insert into message (id, project, sender_kind, sender, verified, origin, to_name, thread, rank, content, created_at) \
                 values ($1, $2, 'agent', $3, false, 'mcp', 'x', $4, 2, 'hello', $5)",
                args![id, project, actor, format!("thread{}", number % 100), number],
            )?;
            cx.tx.execute(
                "insert into delivery (message, recipient, project, rank, created_at, acknowledged_at) values ($1, $2, $3, 2, $4, $5)",
                args![id, format!("actor{}", number % 29), project, number, done],
            )?;
            let state = if done.is_some() { "completed" } else if number % 40 == 0 { "in_progress" } else { "pending" };
            cx.tx.execute(
                "insert into task (id, project, sender_kind, sender, verified, origin, recipient, title, state, rank, open_blockers, erased, attempt, \
                 version, created_at, updated_at, finished_at) \
                 values ($1, $2, 'agent', $3, false, 'mcp', $4, 'do it', $5, 2, 0, false, 0, 1, $6, $6, $7)",
                args![id, project, actor, format!("actor{}", number % 29), state, number, done],
            )?;
            cx.tx.execute(
                "insert into task_note (id, task, actor_kind, actor, verified, created_at) values ($1, $2, 'agent', $3, false, $4)",
                args![id, format!("id{:05}", number % 300), actor, number],
            )?;
            cx.tx.execute(
                "insert into reservation (id, project, holder_kind, holder, verified, mode, paths, created_at, released_at) \
                 values ($1, $2, 'agent', $3, false, 'shared', '[]', $4, $5)",
                args![id, project, actor, number, done],
            )?;
            cx.tx.execute(
                "insert into bridge_file_row (kind, foreign_id, id, recipient, spelled) values ('message', $1, $1, '', $1), ('task', $1, $1, '', $1)",
                args![id],
            )?;
        }
        cx.tx.execute("insert into lease (subject, holder, fence, acquired_at, renewed_at, expires_at, ttl) select 'task:' || id, 'w', 1, 0, 0, created_at, 1 from task", &[])?;
        cx.tx.execute("insert into lease (subject, holder, fence, acquired_at, renewed_at, expires_at, ttl) select 'paths:' || id, 'w', 1, 0, 0, created_at, 1 from reservation", &[])?;
        Ok(())
    })
    .unwrap();
}

/// Values of a usual size: planners look at them.
fn params(types: &str) -> Vec<Param<'static>> {
    let value = |letter| match letter {
        't' => Param::Text("actor3"),
        'k' => Param::Text("message"),
        'b' => Param::Bool(false),
        _ => Param::Int(200),
    };
    types.chars().map(value).collect()
}

fn check(desk: &TestDesk, when: &str) {
    let plans: Result<Vec<String>> = desk.desk.db.write_blocking(|tx| indexed().into_iter().map(|(sql, _, types)| plan(tx, sql, &params(types))).collect());
    let mut wrong = Vec::new();
    for ((sql, indexes, _), plan) in indexed().into_iter().zip(plans.unwrap()) {
        let mut faults: Vec<&str> = ["TEMP B-TREE", "Sort", "Seq Scan"].into_iter().filter(|bad| plan.contains(bad)).collect();
        for index in indexes.split(' ') {
            // SQLite has its own names for keys.
            let name = index.strip_suffix("_pkey").map(|table| format!("sqlite_autoindex_{table}_1")).unwrap_or_default();
            let goes_through = |line: &str| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == index || word == name);
            faults.extend((!plan.lines().any(goes_through)).then_some(index));
        }
        // A walk along an index in its own order is fine: the statement's limit ends it.
        faults.extend(plan.lines().any(|line| line.contains("SCAN ") && !line.contains("INDEX")).then_some("SCAN"));
        if !faults.is_empty() {
            wrong.push(format!("{sql}\nshould go through {indexes}; {faults:?} is wrong or missing:\n{plan}\n"));
        }
    }
    assert!(wrong.is_empty(), "{when}:\n{}", wrong.join("\n"));
}

both! {
    fn statements_go_through_their_index(desk: &TestDesk) {
        fill(desk);
        check(desk, "without statistics");
        if desk.desk.db.engine() == Engine::Postgres {
            let analysed: Result<()> = desk.desk.db.write_blocking(|tx| tx.batch("analyze"));
            analysed.unwrap();
            check(desk, "with statistics");
        }
    }
}
