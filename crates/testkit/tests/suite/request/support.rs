//! Agents that ask and people that answer.

use std::time::Duration;

use deskmate_core::call::{Actor, Cx, Surface};
use deskmate_core::policy::{Act, Decision, Mode, Needs};
use deskmate_core::request::{self, Begun, New, Packet, Request, RequestKind, Requester};
use deskmate_core::{Error, Result};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk};

pub const PASSPHRASE: &str = "correct horse";

/// Runs something as an actor, over a surface.
pub fn run<T: Send + 'static>(desk: &TestDesk, actor: &Actor, surface: Surface, act: impl Fn(&mut Cx<'_, '_>) -> Result<T> + Send + 'static) -> Result<T> {
    let (own, actor) = (desk.desk.clone(), actor.clone());
    let done = desk.desk.db.write_blocking(move |tx| act(&mut own.cx(tx, actor.clone(), surface)));
    desk.seal();
    done
}

/// Runs something as an agent in open mode.
pub fn as_agent<T: Send + 'static>(desk: &TestDesk, agent: &str, act: impl Fn(&mut Cx<'_, '_>) -> Result<T> + Send + 'static) -> Result<T> {
    run(desk, &Actor::agent(agent, false), Surface::Mcp, act)
}

pub fn act(arguments: Value) -> Act {
    Act {
        kind: "propose".to_owned(),
        tool: "cowork_propose".to_owned(),
        domain: "crm.deals".to_owned(),
        action: "update".to_owned(),
        target: "deal-7".to_owned(),
        arguments,
        ..Act::default()
    }
}

pub fn decision(mode: Mode) -> Decision {
    Decision {
        mode,
        mapping_found: false,
        policies: Vec::new(),
        rulebook: String::new(),
        rules_checked: 0,
        hits: Vec::new(),
        high_risk_field: false,
        risk: "medium".to_owned(),
        reasons: Vec::new(),
        needs: Needs { quorum: 1, approvers: Vec::new(), grant_seconds: 900, expires_seconds: 7 * 86_400 },
        redact: Vec::new(),
        hides: Vec::new(),
        waived_by: None,
        counters: None,
    }
}

/// A proposal that waits for a person.
pub fn proposal() -> New {
    let packet = Packet { reasoning: Some("the customer agreed".to_owned()), old: Some(json!({ "amount": 100 })), ..Packet::default() };
    let new = New::new(RequestKind::Proposal, "Raise the amount", act(json!({ "amount": 500 })), decision(Mode::Suggest));
    New { packet, confidence: Some(0.9), ..new }
}

/// Makes a request as an agent in open mode.
pub fn submit(desk: &TestDesk, agent: &str, new: &New) -> Request {
    let new = new.clone();
    as_agent(desk, agent, move |cx| request::submit(cx, new.clone())).unwrap()
}

/// A proposal of the agent `code` that waits for a person.
pub fn pending(desk: &TestDesk) -> Request {
    submit(desk, "code", &proposal())
}

/// Begins what was approved, as the agent `code`.
pub fn begin(desk: &TestDesk, id: &str) -> Result<Begun> {
    let id = id.to_owned();
    as_agent(desk, "code", move |cx| request::begin(cx, &id, None))
}

pub fn go(desk: &TestDesk, id: &str) -> Act {
    match begin(desk, id).unwrap() {
        Begun::Go(permit) => permit.act,
        Begun::Stopped(stop) => panic!("stopped: {}", stop.message),
    }
}

pub fn stopped(desk: &TestDesk, id: &str) -> request::Stop {
    match begin(desk, id).unwrap() {
        Begun::Go(_) => panic!("it was let go"),
        Begun::Stopped(stop) => *stop,
    }
}

pub fn finish(desk: &TestDesk, id: &str, outcome: request::Outcome) -> Result<Request> {
    let id = id.to_owned();
    as_agent(desk, "code", move |cx| request::finish(cx, &id, outcome))
}

pub fn find(desk: &TestDesk, id: &str) -> Request {
    let id = id.to_owned();
    desk.act(move |cx| request::find(cx, &id)).unwrap().unwrap()
}

pub fn get(desk: &TestDesk, person: &Caller, id: &str) -> Value {
    desk.call(person, "desk_request_get", json!({ "request": id })).unwrap()
}

pub fn approve(desk: &TestDesk, person: &Caller, id: &str) -> Result<Value> {
    desk.call(person, "desk_request_approve", json!({ "request": id }))
}

pub fn reject(desk: &TestDesk, person: &Caller, id: &str) -> Result<Value> {
    desk.call(person, "desk_request_reject", json!({ "request": id, "reason": "not now" }))
}

/// A further person with a role in some domains, signed in.
pub fn invite(desk: &TestDesk, owner: &Caller, name: &str, role: &str, domains: &[&str]) -> Caller {
    let link = desk.call(owner, "desk_person_invite", json!({ "name": name, "role": role, "domains": domains })).unwrap();
    let joined = desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": link["code"], "passphrase": PASSPHRASE })).unwrap();
    Caller::Secret(joined["session"].as_str().unwrap().to_owned())
}

/// Gives the passphrase again.
pub fn show_presence(desk: &TestDesk, person: &Caller) {
    assert_eq!(desk.call(person, "desk_show_presence", json!({ "passphrase": PASSPHRASE })).unwrap()["shown"], true);
}

pub fn person_id(desk: &TestDesk, person: &Caller) -> String {
    desk.call(person, "desk_whoami", json!({})).unwrap()["id"].as_str().unwrap().to_owned()
}

/// The score of the agent `code` in `crm.deals`, in open mode.
pub fn score(desk: &TestDesk) -> f64 {
    desk.act(|cx| Ok(deskmate_core::trust::look(cx, "code", "crm.deals", false)?.score.to_f64())).unwrap()
}

pub fn pass(desk: &TestDesk, seconds: u64) {
    desk.world.pass(Duration::from_secs(seconds));
}

pub fn sound(desk: &TestDesk) {
    let report = desk.verify();
    assert!(report.sound, "{:?}", report.findings);
}

/// Whose request it is.
pub fn of_person(id: &str) -> Requester {
    Requester { kind: deskmate_core::call::ActorKind::Person, id: id.to_owned(), verified: true }
}

pub fn code<T>(outcome: Result<T>) -> Error {
    match outcome {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error,
    }
}

/// The kinds of the newest events, newest first.
pub fn kinds(desk: &TestDesk, person: &Caller, count: usize) -> Vec<String> {
    let listed = desk.call(person, "desk_record_list", json!({ "limit": count })).unwrap();
    listed["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
}
