//! People with subscriptions, agents that ask, and hands that send nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use deskmate_core::call::{Actor, Cx, Errand, Fetched, Hands, Surface};
use deskmate_core::notify::{self, Channel, ChannelKind, Letter, Outcome, OutletRow, Reminders, Taken};
use deskmate_core::policy::{Act, Decision, Mode, Needs};
use deskmate_core::request::{self, New, Packet, Request, RequestKind};
use deskmate_core::{Error, Result, job, parse_time};
use serde_json::{Value, json};
use testkit::{Caller, TestDesk};

pub const PASSPHRASE: &str = "correct horse";
pub const BASE: &str = "https://desk.example";

pub fn outlet(name: &str, kind: ChannelKind) -> OutletRow {
    OutletRow { name: name.to_owned(), kind, target: "somewhere".to_owned(), digest: "d".to_owned(), tells: false, links: true, addresses: Vec::new() }
}

/// Mail, a chat and a phone; from now on everything is followed.
pub fn begin(desk: &TestDesk) -> u64 {
    let outlets = [
        outlet("mail", ChannelKind::Email),
        outlet("chat", ChannelKind::Slack),
        outlet("phone", ChannelKind::Ntfy),
        OutletRow { addresses: vec!["*@example.org".to_owned()], ..outlet("work", ChannelKind::Email) },
        OutletRow { links: false, ..outlet("careful", ChannelKind::Email) },
        outlet("bot", ChannelKind::Telegram),
        OutletRow { tells: true, ..outlet("hook", ChannelKind::Webhook) },
    ];
    register(desk, &outlets)
}

pub fn register(desk: &TestDesk, outlets: &[OutletRow]) -> u64 {
    let outlets = outlets.to_vec();
    desk.act(move |cx| {
        notify::register(cx, &outlets)?;
        notify::begin(cx)
    })
    .unwrap()
}

/// Looks on in the record and makes notifications of it.
pub fn follow(desk: &TestDesk, from: u64) -> u64 {
    follow_with(desk, from, &Reminders::default())
}

pub fn follow_with(desk: &TestDesk, from: u64, reminders: &Reminders) -> u64 {
    let reminders = reminders.clone();
    let look = desk.desk.db.read_blocking(move |tx| notify::look(tx, from, 10_000)).unwrap();
    desk.act(move |cx| notify::follow_with(cx, &[], &reminders, &look)).unwrap()
}

pub fn remind(desk: &TestDesk) -> u32 {
    desk.act(|cx| notify::remind_due(cx, 100)).unwrap()
}

pub fn at(text: &str) -> i64 {
    parse_time("", text).unwrap()
}

pub fn pass(desk: &TestDesk, seconds: u64) {
    desk.world.pass(Duration::from_secs(seconds));
}

pub fn set(desk: &TestDesk, person: &Caller, input: Value) -> Result<Value> {
    desk.call(person, "desk_subscription_set", input)
}

pub fn listed(desk: &TestDesk, person: &Caller) -> Vec<Value> {
    let listed = desk.call(person, "desk_notification_list", json!({})).unwrap();
    listed["notifications"].as_array().unwrap().clone()
}

/// The channel of a person's own.
pub fn channel(desk: &TestDesk, person: &Caller, name: &str) -> Channel {
    let own = format!("person/{}/{name}", person_id(desk, person));
    desk.act(move |cx| notify::channel_of(cx, &own)).unwrap().expect("a channel")
}

/// What goes out of one notification, as its job takes it.
pub fn take(desk: &TestDesk, notification: &Value) -> Option<Letter> {
    let (id, own) = (text(notification, "notification"), text(notification, "channel"));
    let taken = desk.act(move |cx| {
        let channel = notify::channel_of(cx, &own)?.ok_or_else(|| Error::not_found("no channel"))?;
        notify::take(cx, &id, &channel, Some(BASE))
    });
    match taken.unwrap() {
        Taken::Send { letter, .. } => Some(*letter),
        Taken::Nothing => None,
    }
}

pub fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("{field} in {value}")).to_owned()
}

/// Takes every due job of notifications, as the worker does.
pub fn claim(desk: &TestDesk) -> Vec<job::Claimed> {
    desk.act(|cx| job::claim(cx, "worker", &[notify::JOB], 30_000_000, 100)).unwrap()
}

pub fn invite(desk: &TestDesk, owner: &Caller, name: &str, role: &str, domains: &[&str]) -> Caller {
    let link = desk.call(owner, "desk_person_invite", json!({ "name": name, "role": role, "domains": domains })).unwrap();
    let joined = desk.call(&Caller::Nobody, "desk_accept_invitation", json!({ "code": link["code"], "passphrase": PASSPHRASE })).unwrap();
    Caller::Secret(text(&joined, "session"))
}

pub fn person_id(desk: &TestDesk, person: &Caller) -> String {
    text(&desk.call(person, "desk_whoami", json!({})).unwrap(), "id")
}

pub fn show_presence(desk: &TestDesk, person: &Caller) {
    assert_eq!(desk.call(person, "desk_show_presence", json!({ "passphrase": PASSPHRASE })).unwrap()["shown"], true);
}

pub fn decision(risk: &str) -> Decision {
    Decision {
        mode: Mode::Suggest,
        mapping_found: false,
        policies: Vec::new(),
        rulebook: String::new(),
        rules_checked: 0,
        hits: Vec::new(),
        high_risk_field: false,
        risk: risk.to_owned(),
        reasons: Vec::new(),
        needs: Needs { quorum: 1, approvers: Vec::new(), grant_seconds: 900, expires_seconds: 7 * 86_400 },
        redact: Vec::new(),
        hides: Vec::new(),
        waived_by: None,
        counters: None,
    }
}

pub fn proposal(domain: &str, risk: &str) -> New {
    let act = Act {
        kind: "propose".to_owned(),
        tool: "cowork_propose".to_owned(),
        domain: domain.to_owned(),
        action: "update".to_owned(),
        target: "deal-7".to_owned(),
        arguments: json!({ "amount": 500 }),
        ..Act::default()
    };
    let packet = Packet { reasoning: Some("the customer agreed".to_owned()), ..Packet::default() };
    New { packet, ..New::new(RequestKind::Proposal, "Raise the amount for ada@example.com", act, decision(risk)) }
}

/// Makes a request as the agent `code` in open mode.
pub fn ask(desk: &TestDesk, new: &New) -> Request {
    run(desk, &Actor::agent("code", false), new)
}

pub fn run(desk: &TestDesk, actor: &Actor, new: &New) -> Request {
    let (own, new, actor) = (desk.desk.clone(), new.clone(), actor.clone());
    let submit = move |tx: &mut deskmate_db::Tx<'_>| {
        let mut cx: Cx<'_, '_> = own.cx(tx, actor.clone(), Surface::Mcp);
        request::submit(&mut cx, new.clone())
    };
    let made = desk.desk.db.write_blocking(submit).unwrap();
    desk.seal();
    made
}

pub fn state(desk: &TestDesk, id: &str) -> request::State {
    let id = id.to_owned();
    desk.act(move |cx| request::find(cx, &id)).unwrap().unwrap().state
}

pub fn events(desk: &TestDesk, kind: &str) -> Vec<Value> {
    let answer = desk.call(&Caller::System, "desk_record_list", json!({ "kind": kind, "limit": 200 })).unwrap();
    answer["events"].as_array().unwrap().clone()
}

/// Every row of the store as text.
pub fn every_row(desk: &TestDesk) -> String {
    let read = |tx: &mut deskmate_db::Tx<'_>| -> Result<String> {
        let mut all = String::new();
        for (table, _) in deskmate_core::TABLES {
            for row in tx.query_text(&format!("select * from \"{table}\""), &[])? {
                for value in row.values() {
                    if let deskmate_db::Value::Text(value) = value {
                        all.push_str(value);
                        all.push('\n');
                    }
                }
            }
        }
        Ok(all)
    };
    desk.desk.db.read_blocking(read).unwrap()
}

pub fn sound(desk: &TestDesk) {
    let report = desk.verify();
    assert!(report.sound, "{:?}", report.findings);
}

/// An outlet, and where to.
type Sent = (String, Option<String>);

/// Hands that answer as they are told, and keep what they were asked for.
#[derive(Clone, Default)]
pub struct Post {
    pub sent: Arc<Mutex<Vec<Sent>>>,
    pub outcome: Arc<Mutex<Outcome>>,
}

impl Hands for Post {
    fn run(&self, errand: Errand) -> Fetched<'_> {
        let Errand::Tell(tell) = errand else { panic!("another errand") };
        self.sent.lock().unwrap().push((tell.channel.outlet.clone(), tell.channel.to.clone()));
        let outcome = serde_json::to_value(self.outcome.lock().unwrap().clone()).unwrap();
        Box::pin(async move { Ok(outcome) })
    }
}
