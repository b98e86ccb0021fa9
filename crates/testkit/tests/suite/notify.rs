//! Notifications on both engines: what rings, when, how often, and what becomes of it.

use std::collections::BTreeSet;
use std::time::Duration;

use deskmate_core::notify::{self, Channel, ChannelKind, Details, Failure, Message, OutletRow, Quiet, Taken, Topic};
use deskmate_core::record::{Event, Kind};
use deskmate_core::{Code, job, parse_time};
use jiff::civil::time;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

const PAUSED: Kind = Kind { name: "pause.set", says: "" };
const LOCKED: Kind = Kind { name: "person.locked", says: "" };
const CREATED: Kind = Kind { name: "request.created", says: "" };

fn channel(name: &str) -> Channel {
    Channel { target: "https://example.org".to_owned(), digest: "d".to_owned(), attempts: 3, ..Channel::new(name, ChannelKind::Webhook) }
}

/// The outlet behind a channel.
fn outlet(channel: &Channel) -> OutletRow {
    OutletRow {
        name: channel.name.clone(),
        kind: channel.kind,
        target: channel.target.clone(),
        digest: channel.digest.clone(),
        tells: true,
        links: false,
        addresses: Vec::new(),
    }
}

fn quiet(urgent_passes: bool) -> Quiet {
    Quiet { from: time(22, 0, 0, 0), to: time(7, 0, 0, 0), zone: TimeZone::get("Europe/Berlin").unwrap(), urgent_passes }
}

fn at(text: &str) -> i64 {
    parse_time("", text).unwrap()
}

/// Makes channels known and begins to follow.
fn begin(desk: &TestDesk, channels: &[Channel]) -> u64 {
    let outlets: Vec<OutletRow> = channels.iter().map(outlet).collect();
    desk.act(move |cx| {
        notify::register(cx, &outlets)?;
        notify::begin(cx)
    })
    .unwrap()
}

fn follow(desk: &TestDesk, channels: &[Channel], from: u64) -> u64 {
    let channels = channels.to_vec();
    let look = desk.desk.db.read_blocking(move |tx| notify::look(tx, from, 10_000)).unwrap();
    desk.act(move |cx| notify::follow(cx, &channels, &look)).unwrap()
}

/// Tells the record something, often.
fn happens(desk: &TestDesk, kind: Kind, times: usize) {
    desk.act(move |cx| (0..times).try_for_each(|number| cx.emit(Event::new(kind, format!("pause:{number}")).fact("agent", format!("agent-{number}")))))
        .unwrap();
}

fn listed(desk: &TestDesk) -> Value {
    desk.call(&Caller::System, "desk_notification_list", json!({})).unwrap()
}

fn only(desk: &TestDesk) -> Value {
    let listed = listed(desk);
    let [notification] = listed["notifications"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    notification.clone()
}

/// Takes every due job of notifications, as the worker does.
fn claim(desk: &TestDesk) -> Vec<job::Claimed> {
    desk.act(|cx| job::claim(cx, "worker", &[notify::JOB], 30_000_000, 100)).unwrap()
}

fn take(desk: &TestDesk, id: &str, channel: &Channel) -> Option<Message> {
    let (id, channel) = (id.to_owned(), channel.clone());
    match desk.act(move |cx| notify::take(cx, &id, &channel, None)).unwrap() {
        Taken::Send { body, message, .. } => {
            assert_eq!(serde_json::from_str::<Message>(&body).unwrap(), *message);
            Some(*message)
        }
        Taken::Nothing => None,
    }
}

fn fail(desk: &TestDesk, id: &str, failure: Failure) {
    let id = id.to_owned();
    desk.act(move |cx| notify::failed(cx, &id, 1, &failure)).unwrap();
}

fn kinds(desk: &TestDesk, kind: &str) -> usize {
    let answer = desk.call(&Caller::System, "desk_record_list", json!({ "kind": kind, "limit": 200 })).unwrap();
    answer["events"].as_array().unwrap().len()
}

/// Proposes something as an agent in open mode, and answers the request.
fn propose(desk: &TestDesk, target: &str) -> String {
    let input =
        json!({ "domain": "crm.deals", "action": "update", "target": target, "proposed_change": "{\"amount\": 1}", "confidence": 0.5, "reasoning": "because" });
    let answer = desk.agent("code", "cowork_propose", input).unwrap();
    answer["request_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// The ids of all notifications, newest first.
fn ids(desk: &TestDesk) -> Vec<String> {
    listed(desk)["notifications"].as_array().unwrap().iter().map(|one| one["notification"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_kind_that_rings_is_told_by_somebody() {
    let told: Vec<&str> = deskmate_core::call::event_catalogue().iter().map(|kind| kind.name).collect();
    for kind in notify::RINGING {
        assert!(told.contains(kind), "{kind}");
    }
}

both! {
    fn a_thousand_events_ring_once_and_once_more_after_a_while(desk: &TestDesk) {
        let channels = [channel("team")];
        let from = begin(desk, &channels);
        happens(desk, PAUSED, 1_000);
        let next = follow(desk, &channels, from);
        let first = only(desk);
        assert_eq!((&first["count"], &first["state"]), (&json!(1_000), &json!("open")));
        assert_eq!(first["items"].as_array().unwrap().len(), 20);
        // At once, but together with what comes in the same half second.
        assert!(claim(desk).is_empty());
        desk.world.pass(Duration::from_millis(600));
        let claimed = claim(desk);
        assert_eq!((claimed.len(), claimed[0].attempts_max, &claimed[0].input["channel"]), (1, 3, &json!("team")));
        let id = first["notification"].as_str().unwrap();
        let message = take(desk, id, &channels[0]).unwrap();
        assert_eq!((message.data.count, message.data.items.len(), message.title()), (1_000, 20, "Deskmate: 1000 things need you".to_owned()));
        // A further attempt sends the same, and what comes now waits for the next one.
        happens(desk, PAUSED, 7);
        follow(desk, &channels, next);
        assert_eq!(take(desk, id, &channels[0]).unwrap(), message);
        let second = listed(desk)["notifications"][0].clone();
        assert_eq!((&second["count"], &second["state"]), (&json!(7), &json!("open")));
        let wait = at(second["due_at"].as_str().unwrap()) - at(first["due_at"].as_str().unwrap());
        assert_eq!(wait, 60_000_000);
        let done = id.to_owned();
        desk.act(move |cx| notify::arrived(cx, &done, 1, None)).unwrap();
        assert!(take(desk, id, &channels[0]).is_none());
        assert_eq!(kinds(desk, "notification.delivered"), 1);
    }

    fn following_twice_tells_once(desk: &TestDesk) {
        let channels = [channel("a"), channel("b")];
        let from = begin(desk, &channels);
        // Who begins later does not begin anew, and what happened before is not told.
        happens(desk, PAUSED, 3);
        assert_eq!(begin(desk, &channels), from);
        let next = follow(desk, &channels, from);
        assert_eq!(follow(desk, &channels, from), follow(desk, &channels, next));
        let listed = listed(desk);
        let counts: Vec<i64> = listed["notifications"].as_array().unwrap().iter().map(|one| one["count"].as_i64().unwrap()).collect();
        assert_eq!(counts, [3, 3]);
    }

    fn a_look_reads_only_what_may_ring(desk: &TestDesk) {
        let channels = [channel("team")];
        let from = begin(desk, &channels);
        desk.agent("code", "bridge_send_message", json!({ "to": "eve", "content": "hello" })).unwrap();
        let look = desk.desk.db.read_blocking(move |tx| notify::look(tx, from, 100)).unwrap();
        let seen = look.next;
        assert!(!look.rings() && look.next > from, "{look:?}");
        happens(desk, PAUSED, 1);
        assert!(desk.desk.db.read_blocking(move |tx| notify::look(tx, seen, 100)).unwrap().rings());
        // What was looked at without need is passed over.
        assert_eq!(follow(desk, &channels, seen), seen + 1);
        assert_eq!(only(desk)["count"], 1);
    }

    fn quiet_hours_put_off_what_is_not_urgent(desk: &TestDesk) {
        // The clock of the test begins at one in the night in Berlin.
        let channels = [Channel { quiet: Some(quiet(true)), ..channel("open") }, Channel { quiet: Some(quiet(false)), ..channel("shut") }];
        let from = begin(desk, &channels);
        happens(desk, PAUSED, 2);
        happens(desk, LOCKED, 1);
        let next = follow(desk, &channels, from);
        let due = |name: &str, urgent: bool| {
            let listed = listed(desk);
            let fits = |one: &&Value| one["channel"] == name && one["urgent"] == urgent;
            at(listed["notifications"].as_array().unwrap().iter().find(fits).unwrap()["due_at"].as_str().unwrap())
        };
        let morning = at("2026-01-01T06:00:00Z");
        assert_eq!((due("open", false), due("shut", false), due("shut", true)), (morning, morning, morning));
        assert!(due("open", true) < at("2026-01-01T00:00:10Z"));
        desk.world.pass(Duration::from_secs(3_600));
        assert_eq!(claim(desk).len(), 1);
        happens(desk, PAUSED, 3);
        follow(desk, &channels, next);
        desk.world.pass(Duration::from_secs(5 * 3_600));
        assert_eq!(claim(desk).len(), 3);
        // All of the night is told together.
        let listed = listed(desk);
        assert!(listed["notifications"].as_array().unwrap().iter().filter(|one| one["urgent"] == false).all(|one| one["count"] == 5), "{listed}");
    }

    fn a_channel_tells_what_it_is_for(desk: &TestDesk) {
        let deals = Channel { topics: BTreeSet::from([Topic::Requests]), domains: vec!["crm.*".to_owned()], ..channel("deals") };
        let guard = Channel { topics: BTreeSet::from([Topic::Security, Topic::Trust]), ..channel("guard") };
        let channels = [deals, guard];
        let from = begin(desk, &channels);
        happens(desk, PAUSED, 1);
        happens(desk, LOCKED, 1);
        desk.act(|cx| {
            let created = |domain: &str, state: &str| {
                Event::new(CREATED, "request:1").fact("request_kind", "proposal").fact("state", state).fact("domain", domain).fact("rank", 2).fact("requester", "code")
            };
            cx.emit(created("crm.deals", "pending"))?;
            // What policy let pass at once waits for nobody.
            cx.emit(created("crm.deals", "approved"))?;
            cx.emit(created("support", "pending"))?;
            let trust = |cause: &str, demoted: bool| Event::new(Kind { name: "trust.changed", says: "" }, "trust").fact("agent", "code").fact("domain", "crm.deals").fact("cause", cause).fact("demoted", demoted);
            cx.emit(trust("approved", false))?;
            cx.emit(trust("promoted", false))?;
            cx.emit(trust("overridden", true))
        })
        .unwrap();
        follow(desk, &channels, from);
        let listed = listed(desk);
        let told = |name: &str, urgent: bool| {
            let found = listed["notifications"].as_array().unwrap().iter().find(|one| one["channel"] == name && one["urgent"] == urgent);
            found.map_or(Vec::new(), |one| one["items"].as_array().unwrap().iter().map(|item| item["event"].as_str().unwrap().to_owned()).collect())
        };
        assert_eq!(told("deals", false), ["request.created"]);
        assert_eq!(told("guard", true), ["person.locked"]);
        assert_eq!(told("guard", false), ["trust.changed", "trust.changed"]);
        assert!(told("deals", true).is_empty());
    }

    fn what_does_not_arrive_is_given_up_visibly(desk: &TestDesk) {
        let channels = [channel("team")];
        let from = begin(desk, &channels);
        happens(desk, PAUSED, 1);
        let next = follow(desk, &channels, from);
        let id = only(desk)["notification"].as_str().unwrap().to_owned();
        take(desk, &id, &channels[0]).unwrap();
        fail(desk, &id, Failure { error: "the receiver answered 500".to_owned(), last: false, gone: false, permanent: false });
        let one = only(desk);
        assert_eq!((&one["state"], &one["error"]), (&json!("sending"), &json!("the receiver answered 500")));
        fail(desk, &id, Failure { error: "the receiver answered 500".to_owned(), last: true, gone: false, permanent: false });
        assert_eq!(only(desk)["state"], "failed");
        assert_eq!(kinds(desk, "notification.given_up"), 1);
        let team = listed(desk)["channels"][0].clone();
        assert!(team["error"].is_string() && team["failed_at"].is_string() && team.get("disabled_at").is_none(), "{team}");
        // Retention takes it after its time.
        desk.world.pass(Duration::from_secs(60));
        let now = at("2026-01-02T00:00:00Z");
        assert_eq!(desk.act(move |cx| notify::prune(cx, now, 10)).unwrap(), 1);
        assert!(listed(desk)["notifications"].as_array().unwrap().is_empty());
        happens(desk, PAUSED, 1);
        follow(desk, &channels, next);
        assert_eq!(only(desk)["state"], "open");
    }

    fn a_receiver_that_is_gone_turns_its_channel_off(desk: &TestDesk) {
        let owner = desk.claim();
        let channels = [channel("team")];
        let from = begin(desk, &channels);
        happens(desk, PAUSED, 1);
        let next = follow(desk, &channels, from);
        let id = only(desk)["notification"].as_str().unwrap().to_owned();
        take(desk, &id, &channels[0]).unwrap();
        fail(desk, &id, Failure { error: "410".to_owned(), last: false, gone: true, permanent: false });
        assert!(listed(desk)["channels"][0]["disabled_at"].is_string());
        assert_eq!((kinds(desk, "notification.channel_disabled"), kinds(desk, "notification.given_up")), (1, 1));
        happens(desk, PAUSED, 1);
        let next = follow(desk, &channels, next);
        assert_eq!(only(desk)["state"], "failed");
        assert_code(&desk.refused(&owner, "desk_notification_test", json!({ "channel": "team" })), Code::Conflict);
        // The same address stays off over a restart, another one is on; a person turns it on too.
        begin(desk, &channels);
        assert!(listed(desk)["channels"][0]["disabled_at"].is_string());
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_notification_enable", json!({ "channel": "team" })), Code::Forbidden);
        desk.call(&owner, "desk_notification_enable", json!({ "channel": "team" })).unwrap();
        assert!(listed(desk)["channels"][0].get("disabled_at").is_none());
        happens(desk, PAUSED, 1);
        follow(desk, &channels, next);
        assert_eq!(listed(desk)["notifications"].as_array().unwrap().len(), 2);
    }

    fn what_was_decided_meanwhile_is_not_told(desk: &TestDesk) {
        let owner = desk.claim();
        let channels = [Channel { details: Details::Redacted, ..channel("wordy") }, channel("terse")];
        let from = begin(desk, &channels);
        let first = propose(desk, "evil\u{1b}]0;title\u{7}\u{202e} target");
        let second = propose(desk, "deal/2");
        let next = follow(desk, &channels, from);
        desk.call(&owner, "desk_request_reject", json!({ "request": second, "reason": "no" })).unwrap();
        let ids = ids(desk);
        let wordy = take(desk, &ids[1], &channels[0]).unwrap();
        assert_eq!((wordy.data.count, wordy.data.items.len(), &wordy.data.items[0].subject), (1, 1, &format!("request:{first}")));
        let item = &wordy.data.items[0];
        assert_eq!((item.agent.as_deref(), item.domain.as_deref(), item.request_kind.as_deref()), (Some("code"), Some("crm.deals"), Some("proposal")));
        // What the agent wrote is shown without what would steer a screen, and only where the channel shows texts.
        let title = item.title.clone().unwrap();
        assert!(title.contains("target") && !title.chars().any(|c| c.is_control() || c == '\u{202e}'), "{title:?}");
        let terse = take(desk, &ids[0], &channels[1]).unwrap();
        assert_eq!(terse.data.items[0].title, None);
        // Where all was decided, nothing is sent.
        let third = propose(desk, "deal/3");
        let next = follow(desk, &channels, next);
        desk.call(&owner, "desk_request_reject", json!({ "request": third, "reason": "no" })).unwrap();
        assert_eq!(follow(desk, &channels, next), { desk.seal(); desk.desk.db.read_blocking(deskmate_core::record::size).unwrap() });
        let open: Vec<String> = listed(desk)["notifications"].as_array().unwrap().iter().filter(|one| one["state"] == "open").map(|one| one["notification"].as_str().unwrap().to_owned()).collect();
        assert_eq!(open.len(), 2);
        assert!(take(desk, &open[0], &channels[0]).is_none());
        assert!(listed(desk)["notifications"].as_array().unwrap().iter().any(|one| one["state"] == "dropped"));
        assert!(desk.verify().sound);
    }

    fn an_erased_text_is_not_sent(desk: &TestDesk) {
        let owner = desk.claim();
        let channels = [Channel { details: Details::Redacted, ..channel("wordy") }];
        let from = begin(desk, &channels);
        propose(desk, "a secret target");
        follow(desk, &channels, from);
        let id = ids(desk).remove(0);
        assert!(take(desk, &id, &channels[0]).unwrap().data.items[0].title.as_deref().unwrap().contains("secret"));
        let created = desk.call(&Caller::System, "desk_record_list", json!({ "kind": "request.created" })).unwrap();
        desk.call(&owner, "desk_record_erase", json!({ "seq": created["events"][0]["seq"], "reason": "asked for" })).unwrap();
        let again = take(desk, &id, &channels[0]).unwrap();
        assert!(again.data.items[0].title.is_none() && !format!("{again:?}").contains("secret"), "{again:?}");
    }

    fn people_learn_of_edits_promotions_and_pauses(desk: &TestDesk) {
        let owner = desk.claim();
        let channels = [channel("team")];
        let from = begin(desk, &channels);
        let task = desk.agent("code", "bridge_create_task", json!({ "to": "cowork", "title": "t" })).unwrap()["task_id"].clone();
        desk.call(&owner, "bridge_update_task", json!({ "task_id": task, "title": "by a person" })).unwrap();
        desk.agent("code", "bridge_update_task", json!({ "task_id": task, "title": "by the agent" })).unwrap();
        // The third correction in a row demotes.
        for number in 0..3 {
            let request = propose(desk, &format!("deal/{number}"));
            desk.call(&owner, "desk_request_reject", json!({ "request": request, "reason": "wrong", "type": "agent_wrong" })).unwrap();
        }
        desk.call(&owner, "desk_pause", json!({ "agent": "code" })).unwrap();
        for _ in 0..5 {
            drop(desk.call(&Caller::Nobody, "desk_sign_in", json!({ "name": "Owner", "passphrase": "wrong" })));
        }
        follow(desk, &channels, from);
        let listed = listed(desk);
        // Two that were opened at the same moment come in either order.
        let mut told = listed["notifications"].as_array().unwrap().clone();
        told.sort_by_key(|one| one["urgent"].as_bool());
        let topics: Vec<&str> = told.iter().flat_map(|one| one["items"].as_array().unwrap()).map(|item| item["topic"].as_str().unwrap()).collect();
        assert_eq!(topics, ["edits", "requests", "requests", "requests", "trust", "pauses", "security"], "{listed}");
        let trust = told[0]["items"].as_array().unwrap().iter().find(|item| item["topic"] == "trust").unwrap();
        assert_eq!((&trust["state"], &trust["agent"]), (&json!("demoted"), &json!("code")));
    }

    fn two_servers_tell_once(desk: &TestDesk) {
        let channels = [channel("team")];
        let from = begin(desk, &channels);
        happens(desk, PAUSED, 50);
        let look = desk.desk.db.read_blocking(move |tx| notify::look(tx, from, 10_000)).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (desk, look, channels) = (&desk.desk, look.clone(), channels.to_vec());
                scope.spawn(move || testkit::wait(desk.act(deskmate_core::call::Surface::System, move |cx| notify::follow(cx, &channels, &look))).unwrap());
            }
        });
        assert_eq!(only(desk)["count"], 50);
    }

    fn a_test_goes_out_at_once_and_moves_nothing(desk: &TestDesk) {
        let owner = desk.claim();
        let channels = [Channel { quiet: Some(quiet(false)), ..channel("team") }];
        begin(desk, &channels);
        assert_code(&desk.refused(&owner, "desk_notification_test", json!({ "channel": "nobody" })), Code::NotFound);
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_notification_test", json!({ "channel": "team" })), Code::Forbidden);
        assert_code(&desk.refused(&Caller::Agent("code"), "desk_notification_list", json!({})), Code::Forbidden);
        let test = desk.call(&owner, "desk_notification_test", json!({ "channel": "team" })).unwrap();
        let claimed = claim(desk);
        assert_eq!(json!(claimed[0].job), test["job"]);
        let message = take(desk, test["notification"].as_str().unwrap(), &channels[0]).unwrap();
        assert_eq!((message.r#type.as_str(), message.lines(5)), ("desk.test", vec!["this is a test".to_owned()]));
        assert_eq!(kinds(desk, "notification.tested"), 1);
        // A channel that left the configuration is known no more.
        begin(desk, &[]);
        assert_code(&desk.refused(&owner, "desk_notification_test", json!({ "channel": "team" })), Code::NotFound);
    }
}

#[test]
fn quiet_hours_follow_the_clocks_of_their_zone() {
    let night = quiet(false);
    // Winter time, before and after midnight, at the edges, and in the day.
    assert_eq!(night.until(at("2026-01-10T21:00:00Z")), Some(at("2026-01-11T06:00:00Z")));
    assert_eq!(night.until(at("2026-01-11T05:59:59Z")), Some(at("2026-01-11T06:00:00Z")));
    assert_eq!(night.until(at("2026-01-11T06:00:00Z")), None);
    assert_eq!(night.until(at("2026-01-11T20:59:59Z")), None);
    // The night in which the clocks go forward ends an hour earlier, the one in which they go back an hour later.
    assert_eq!(night.until(at("2026-03-28T21:00:00Z")), Some(at("2026-03-29T05:00:00Z")));
    assert_eq!(night.until(at("2026-10-24T20:00:00Z")), Some(at("2026-10-25T06:00:00Z")));
    let noon = Quiet { from: time(12, 0, 0, 0), to: time(13, 30, 0, 0), ..night };
    assert_eq!(noon.until(at("2026-01-11T11:00:00Z")), Some(at("2026-01-11T12:30:00Z")));
    assert_eq!(noon.until(at("2026-01-11T12:30:00Z")), None);
}
