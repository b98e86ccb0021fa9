//! The list: its order, filters and pages, and the way the engines walk for it.

use deskmate_core::call::Surface;
use deskmate_core::policy::{Decision, Mode};
use deskmate_core::record::SEALED_OF_REQUEST;
use deskmate_core::request::{self, INDEXED, INDEXED_PENDING, New, Priority, RequestKind};
use deskmate_core::{Code, MIGRATIONS, format_time};
use deskmate_db::{Engine, Param, Result};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both, plan};

use super::support::{act, approve, decision, invite, pass, pending, proposal, reject, submit};

fn ids(desk: &TestDesk, person: &Caller, input: Value) -> Vec<String> {
    let (mut found, mut input) = (Vec::new(), input);
    loop {
        let page = desk.call(person, "desk_request_list", input.clone()).unwrap();
        found.extend(page["requests"].as_array().unwrap().iter().map(|request| request["request"].as_str().unwrap().to_owned()));
        match page.get("next_cursor") {
            Some(cursor) => input["cursor"] = cursor.clone(),
            None => return found,
        }
    }
}

both! {
    fn w21_the_inbox_is_in_order_and_comes_in_pages(desk: &TestDesk) {
        let owner = desk.claim();
        let priorities = [Priority::Normal, Priority::Low, Priority::Urgent, Priority::Normal, Priority::High];
        let made: Vec<String> = priorities.into_iter().map(|priority| submit(desk, "code", &New { priority, ..proposal() }).id).collect();
        let order: Vec<String> = [2, 4, 3, 0, 1].into_iter().map(|at: usize| made[at].clone()).collect();
        for limit in [1, 2, 3, 50] {
            assert_eq!(ids(desk, &owner, json!({ "limit": limit })), order, "limit {limit}");
        }
        approve(desk, &owner, &made[0]).unwrap();
        reject(desk, &owner, &made[1]).unwrap();
        assert_eq!(ids(desk, &owner, json!({})), [made[2].clone(), made[4].clone(), made[3].clone()]);
        assert_eq!(ids(desk, &owner, json!({ "state": "approved" })), [made[0].clone()]);
        assert_eq!(ids(desk, &owner, json!({ "state": "rejected" })), [made[1].clone()]);
        let newest: Vec<String> = made.iter().rev().cloned().collect();
        assert_eq!(ids(desk, &owner, json!({ "view": "all", "limit": 2 })), newest);
    }

    fn the_newest_is_told_wherever_it_stands(desk: &TestDesk) {
        let owner = desk.claim();
        let newest = |input: Value| desk.call(&owner, "desk_request_list", input).unwrap().get("newest_at").cloned();
        assert_eq!(newest(json!({})), None, "nothing waits");
        let made_at = |priority: Priority| {
            pass(desk, 1);
            let made = submit(desk, "code", &New { priority, ..proposal() });
            (made.id, Value::from(format_time(made.created_at)))
        };
        for priority in [Priority::Low, Priority::Urgent, Priority::Normal, Priority::High, Priority::Urgent, Priority::Low] {
            let (_, at) = made_at(priority);
            assert_eq!(newest(json!({ "limit": 1 })), Some(at), "{priority:?} stands behind others, and is the newest");
        }
        let (asked, at) = made_at(Priority::Normal);
        assert_eq!(newest(json!({})), Some(at.clone()));
        desk.call(&owner, "desk_request_ask", json!({ "request": asked, "question": "why?" })).unwrap();
        assert!(newest(json!({})).is_some_and(|newest| newest.as_str() < at.as_str()), "what waits for an answer does not wait for people");
        assert_eq!(newest(json!({ "requester": "code" })), None, "it is told of the inbox as it is");
    }

    fn a_filter_is_kept_for_its_person_alone(desk: &TestDesk) {
        let owner = desk.claim();
        let kept = |who: &Caller| desk.call(who, "desk_filter_list", json!({})).unwrap()["filters"].clone();
        assert_eq!(kept(&owner), json!([]));
        let risky = json!({ "risk": "high", "older_than_minutes": 60 });
        desk.call(&owner, "desk_filter_keep", json!({ "name": "old and risky", "filter": risky })).unwrap();
        desk.call(&owner, "desk_filter_keep", json!({ "name": "mine", "filter": { "kind": "tool_call" } })).unwrap();
        desk.call(&owner, "desk_filter_keep", json!({ "name": "mine", "filter": { "kind": "plan", "view": "all" } })).unwrap();
        assert_eq!(kept(&owner), json!([{ "name": "old and risky", "filter": risky }, { "name": "mine", "filter": { "kind": "plan", "view": "all" } }]));
        let other = invite(desk, &owner, "Bo", "viewer", &[]);
        assert_eq!(kept(&other), json!([]), "what somebody looks for is theirs");
        assert_code(&desk.refused(&other, "desk_filter_forget", json!({ "name": "mine" })), Code::NotFound);
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_filter_list", json!({})), Code::Forbidden);
        for filter in [json!({}), json!({ "risk": "some" }), json!({ "rows": 500 }), json!({ "search": "x".repeat(501) })] {
            assert_code(&desk.refused(&owner, "desk_filter_keep", json!({ "name": "bad", "filter": filter })), Code::Invalid);
        }
        assert_code(&desk.refused(&owner, "desk_filter_keep", json!({ "name": " ", "filter": risky })), Code::Invalid);
        desk.call(&owner, "desk_filter_forget", json!({ "name": "mine" })).unwrap();
        for number in 1..50 {
            desk.call(&owner, "desk_filter_keep", json!({ "name": number.to_string(), "filter": risky })).unwrap();
        }
        assert_code(&desk.refused(&owner, "desk_filter_keep", json!({ "name": "one too many", "filter": risky })), Code::Invalid);
        desk.call(&owner, "desk_filter_keep", json!({ "name": "7", "filter": { "domain": "crm" } })).unwrap();
        assert!(desk.verify().sound, "{:?}", desk.verify().findings);
    }

    fn what_is_most_at_stake_comes_first_and_of_that_the_newest(desk: &TestDesk) {
        let owner = desk.claim();
        let at_stake = |risk: &str, priority| {
            let decision = Decision { risk: risk.to_owned(), ..decision(Mode::Suggest) };
            submit(desk, "code", &New { decision, priority, ..proposal() }).id
        };
        let [high, critical, low] = ["high", "critical", "low"].map(|risk| at_stake(risk, Priority::Normal));
        let hidden = at_stake("critical", Priority::Low);
        let urgent = at_stake("low", Priority::Urgent);
        let newer = at_stake("high", Priority::Normal);
        assert_eq!(ids(desk, &owner, json!({ "limit": 2 })), [urgent, critical, hidden, newer, high, low]);
    }

    fn requests_from_before_places_get_the_same_ones(desk: &TestDesk) {
        for (risk, priority) in ["low", "medium", "high", "critical"].iter().flat_map(|risk| [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent].map(|one| (risk, one))) {
            submit(desk, "code", &New { decision: Decision { risk: (*risk).to_owned(), ..decision(Mode::Suggest) }, priority, ..proposal() });
        }
        let step = MIGRATIONS.iter().find(|step| step.version == 10).unwrap().sql;
        let update = step.split(';').find(|statement| statement.trim_start().starts_with("update")).unwrap();
        let places = || -> Vec<(i64, String)> {
            let rows = desk.desk.db.write_blocking(|tx| tx.query("select place, id from request order by place, id", &[])).unwrap();
            rows.iter().map(|row| (row.get(0).unwrap(), row.get(1).unwrap())).collect()
        };
        let kept = places();
        desk.desk.db.write_blocking(|tx| { tx.execute("update request set place = 0", &[])?; tx.batch(update) }).unwrap();
        assert_eq!(places(), kept);
    }

    fn filters_filter(desk: &TestDesk) {
        let owner = desk.claim();
        let mine = pending(desk).id;
        let others = submit(desk, "other", &New { title: "Send the Invoice".to_owned(), ..proposal() }).id;
        let mut billing = act(json!({}));
        billing.domain = "billing".to_owned();
        let handoff = submit(desk, "code", &New { kind: RequestKind::Handoff, act: billing, ..proposal() }).id;
        assert_eq!(ids(desk, &owner, json!({ "requester": "other" })), std::slice::from_ref(&others));
        assert_eq!(ids(desk, &owner, json!({ "domain": "billing" })), std::slice::from_ref(&handoff));
        assert_eq!(ids(desk, &owner, json!({ "kind": "handoff" })), std::slice::from_ref(&handoff));
        assert_eq!(ids(desk, &owner, json!({ "requester": "code", "domain": "crm.deals" })), std::slice::from_ref(&mine));
        assert_eq!(ids(desk, &owner, json!({ "search": "invoice" })), std::slice::from_ref(&others));
        assert_eq!(ids(desk, &owner, json!({ "view": "all", "kind": "handoff", "requester": "other" })), Vec::<String>::new());
        for filter in [json!({ "view": "all", "domain": "billing" }), json!({ "view": "all", "kind": "handoff" })] {
            assert_eq!(ids(desk, &owner, filter), std::slice::from_ref(&handoff));
        }
        assert_eq!(ids(desk, &owner, json!({ "risk": "medium" })).len(), 3);
        assert_eq!(ids(desk, &owner, json!({ "risk": "high" })), Vec::<String>::new());
        desk.call(&owner, "desk_request_delegate", json!({ "request": others, "to": "Owner" })).unwrap();
        for filter in [json!({ "assignee": "Owner" }), json!({ "assignee": "Owner", "search": "invoice" }), json!({ "assignee": "Owner", "view": "all" })] {
            assert_eq!(ids(desk, &owner, filter), std::slice::from_ref(&others));
        }
        desk.world.pass(std::time::Duration::from_secs(10 * 60 + 1));
        let young = submit(desk, "third", &proposal()).id;
        assert_eq!(ids(desk, &owner, json!({ "older_than_minutes": 10 })).len(), 3);
        assert!(!ids(desk, &owner, json!({ "older_than_minutes": 10 })).contains(&young));
        for bad in [json!({ "assignee": "nobody" }), json!({ "risk": "much" })] {
            desk.refused(&owner, "desk_request_list", bad);
        }
        for bad in [json!({ "cursor": "x" }), json!({ "limit": 0 }), json!({ "limit": 201 }), json!({ "view": "inbox", "state": "done" })] {
            desk.refused(&owner, "desk_request_list", bad);
        }
    }

    fn an_agent_sees_only_its_own(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        let other = desk.register(&owner, "other");
        for operation in ["desk_request_list", "desk_request_get", "desk_request_wait"] {
            assert_eq!(desk.refused(&other, operation, json!({ "request": made.id })).code, deskmate_core::Code::Forbidden);
        }
        let id = made.id.clone();
        let seen = super::support::as_agent(desk, "other", move |cx| request::find(cx, &id)).unwrap();
        assert!(seen.is_none());
        let events = desk.call(&other, "desk_record_list", json!({ "subject": format!("request:{}", made.id) })).unwrap();
        assert_eq!(events["events"], json!([]));
    }

    fn waiting_ends_with_news(desk: &TestDesk) {
        let owner = desk.claim();
        let made = pending(desk);
        let wait = |input: Value| desk.call_on(Surface::Rest, &owner, "desk_request_wait", input).unwrap()["changed"].clone();
        assert_eq!(wait(json!({ "request": made.id })), false);
        assert_eq!(wait(json!({ "request": made.id, "version": 1 })), false);
        desk.call(&owner, "desk_request_ask", json!({ "request": made.id, "question": "why?" })).unwrap();
        assert_eq!(wait(json!({ "request": made.id, "version": 1 })), true);
        assert_eq!(wait(json!({ "request": made.id })), false);
        approve(desk, &owner, &made.id).unwrap();
        assert_eq!(wait(json!({ "request": made.id })), true);
    }

    fn statements_go_through_their_index(desk: &TestDesk) {
        fill(desk);
        let engine = desk.desk.db.engine();
        let plans: Result<Vec<String>> = desk.desk.db.write_blocking(move |tx| {
            if engine == Engine::Postgres {
                tx.batch("analyze request; analyze act_grant; analyze standing_approval; analyze event")?;
            }
            statements().iter().map(|(sql, _)| plan(tx, sql, &params(sql))).collect()
        });
        for ((sql, index), plan) in statements().iter().zip(plans.unwrap()) {
            let uses = plan.split([' ', '\n']).any(|word| word == *index);
            assert!(uses, "{sql}\ndoes not use {index}:\n{plan}");
            for bad in ["TEMP B-TREE", "SCAN request", "SCAN act_grant", "SCAN standing_approval", "SCAN event", "Sort", "Seq Scan"] {
                assert!(!plan.contains(bad), "{sql}\nhas {bad}:\n{plan}");
            }
        }
    }
}

fn statements() -> Vec<(&'static str, &'static str)> {
    let pending = INDEXED_PENDING.iter().flat_map(|(views, index)| views.iter().map(move |sql| (*sql, *index)));
    INDEXED.iter().copied().chain(pending).chain([(SEALED_OF_REQUEST, "event_of_request")]).collect()
}

/// Requests in every state, most of them ended, and what hangs on them: statistics that a desk in use would have.
fn fill(desk: &TestDesk) {
    desk.act(|cx| {
        for number in 0..1_500_u32 {
            let new = New { requester: Some(request::Requester::agent(format!("agent{}", number % 9), false)), escalate_seconds: Some(3_600), ..proposal() };
            let new = if number % 50 == 0 { New { kind: RequestKind::Handoff, ..new } } else { new };
            let new = if number % 9 == 0 { New { assignee: Some(format!("person{}", number % 4)), ..new } } else { new };
            request::submit(cx, new)?;
        }
        cx.tx.execute("update request set state = 'done' where id in (select id from request order by id limit 1200)", &[])?;
        cx.tx.execute("insert into act_grant (id, request, agent, digest, granted_at, expires_at) select 'g' || id, id, requester, digest, created_at, created_at from request", &[])?;
        cx.tx.execute("insert into standing_approval (id, request, agent, domain, pattern, person, created_at, expires_at) select 's' || id, id, requester, domain, '{}', 'p', created_at, created_at from request", &[])?;
        Ok(())
    }).unwrap();
}

/// A value for each parameter, of the type that stands there and of a usual size: planners look at it.
fn params(sql: &str) -> Vec<Param<'static>> {
    let (number, text) = (Param::Int, Param::Text("agent1"));
    let soon = 1_767_225_600_000_000;
    let all = if sql == SEALED_OF_REQUEST {
        vec![Param::Text("request:0"), number(1)]
    } else if sql.contains("(place, id) >") {
        let of = if sql.contains("kind = $5") { Param::Text("handoff") } else { text };
        vec![number(0), text, number(21), number(soon), of]
    } else if sql.contains("(created_at, id) <") {
        let owner = if sql.contains("state = $4") {
            Param::Text("approved")
        } else if sql.contains("kind = $4") {
            Param::Text("handoff")
        } else {
            text
        };
        vec![number(i64::MAX), text, number(20), owner]
    } else if sql.contains("created_at < $2") {
        vec![text, number(i64::MAX), number(20)]
    } else if sql.contains("_at <= $1") || sql.contains("_until <= $1") {
        vec![number(soon), number(20)]
    } else {
        vec![text, text, number(soon)]
    };
    let count = (1..=9).take_while(|number| sql.contains(&format!("${number}"))).count();
    all.into_iter().take(count).collect()
}
