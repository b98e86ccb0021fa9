//! Doing a held call that a person approved, once, whether its caller is still there or not.

use deskmate_core::call::Surface;
use deskmate_core::gateway;
use deskmate_core::job::Outcome;
use deskmate_core::{Error, Result};
use serde_json::{Value, json};

use super::Running;

pub(super) async fn run(running: &Running) -> Result<Outcome> {
    let (app, input) = (&running.app, &running.claimed.input);
    let id = input.get("call").and_then(Value::as_str).ok_or_else(|| Error::invalid("call", "is not named"))?.to_owned();
    let call = id.clone();
    let Some(handed) = app.desk.act(Surface::System, move |cx| gateway::begin(cx, &call)).await? else {
        return Ok(Outcome::Done(json!({ "call": id, "handed_on": false })));
    };
    let taken = Box::pin(app.gateway.hand_on_held(app, handed)).await;
    // The job ends after this: whoever looks at the call then knows what came of it.
    let ended = taken.ended;
    app.desk.act(Surface::System, move |cx| gateway::end(cx, std::slice::from_ref(&ended))).await?;
    Ok(Outcome::Done(json!({ "call": id, "handed_on": true })))
}
