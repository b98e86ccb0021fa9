//! Looking at the running server, stopping it, and claiming it.

use std::io::IsTerminal;

use serde_json::{Value, json};

use super::busy::busy;
use super::client::{As, Client};
use super::output::{print, say};
use super::{Failure, Global};
use crate::background;

pub(super) fn status(global: &Global) -> Result<(), Failure> {
    let client = Client::new(global)?;
    let Some(holder) = client.home().running() else {
        let answer = json!({ "running": false, "home": client.home().path() });
        print(&answer, global.json)?;
        return if global.json { Ok(()) } else { say("start it with `deskmate up`") };
    };
    let mut answer = client.get("/api/desk_status")?;
    let health = client.get("/healthz")?;
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("running".to_owned(), json!(true));
        fields.insert("process".to_owned(), json!(holder.pid));
        fields.insert("address".to_owned(), json!(holder.url));
        fields.insert("home".to_owned(), json!(client.home().path()));
        for (name, value) in health.as_object().into_iter().flatten().filter(|(name, _)| *name != "ok") {
            fields.insert(name.clone(), value.clone());
        }
    }
    print(&answer, global.json)
}

pub(super) fn stop(global: &Global) -> Result<(), Failure> {
    let client = Client::new(global)?;
    let Some(holder) = client.home().running() else {
        return print(&json!({ "stopped": false, "message": "no desk was running" }), global.json);
    };
    let busy = busy("waiting until the server has ended");
    background::stop(client.home(), &holder)?;
    drop(busy);
    print(&json!({ "stopped": true, "process": holder.pid }), global.json)
}

pub(super) fn claim(global: &Global) -> Result<(), Failure> {
    // A link printed where a program reads it would be a link that an agent can use.
    if !std::io::stdout().is_terminal() {
        return Err(Failure::Other("`deskmate claim` prints its link on a terminal only".to_owned()));
    }
    let client = Client::new(global)?.with(As::Nobody);
    let answer = client.call("desk_new_claim_link", &json!({}))?;
    let code = answer.get("code").and_then(Value::as_str).unwrap_or_default();
    let base = client.home().running().and_then(|holder| holder.url).unwrap_or_default();
    let link = format!("{base}/claim?code={code}");
    if global.json {
        return print(&json!({ "claim": link }), true);
    }
    say(&format!("Claim this desk within ten minutes:\n\n  {link}\n"))
}
