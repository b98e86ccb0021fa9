//! An operation that needs something outside says what happens without it.

use deskmate_core::call::{Cx, Op, Registry, Toolset, Without};
use deskmate_core::{Code, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use testkit::{Backend, TestDesk, assert_code};

/// Look at the weather, which only the network knows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Look {}

/// The weather.
#[derive(Serialize, JsonSchema)]
struct Weather {
    sky: String,
}

fn look(_: &mut Cx<'_, '_>, _: Look) -> Result<Weather> {
    Ok(Weather { sky: "clear".to_owned() })
}

fn desk(without: Without) -> TestDesk {
    let op = Op::read(Toolset::Bridge, "look", look).needs("network", without);
    TestDesk::with(Backend::Sqlite, Registry::of([op]))
}

#[test]
fn closed_does_nothing_and_names_the_next_step() {
    let desk = desk(Without::Closed { next_step: "connect the cable" });
    assert!(desk.agent("code", "bridge_look", json!({})).is_ok());
    desk.desk.away.set("network", true);
    let error = desk.agent("code", "bridge_look", json!({})).unwrap_err();
    assert_code(&error, Code::Unavailable);
    assert_eq!(error.hint.as_deref(), Some("connect the cable"));
    desk.desk.away.set("network", false);
    assert!(desk.agent("code", "bridge_look", json!({})).is_ok());
}

#[test]
fn open_does_what_it_can_and_says_what_is_missing() {
    let desk = desk(Without::Open { missing: "the forecast" });
    desk.desk.away.set("network", true);
    let answer = desk.agent("code", "bridge_look", json!({})).unwrap();
    assert_eq!((answer["sky"].as_str(), answer["degraded"].as_str()), (Some("clear"), Some("the forecast")));
}
