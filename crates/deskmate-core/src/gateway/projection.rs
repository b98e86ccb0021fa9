//! What people know of tools, rebuilt from the record: what agents are shown, and what is served without anybody having seen it,
//! cannot be exchanged in the store.

use std::collections::BTreeMap;

use deskmate_db::Tx;
use serde_json::Value;

use super::tool::{self, ToolState};
use crate::record::{Body, Finding, Projection, differences};
use crate::{Result, hex};

/// A tool as the record tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pin {
    state: String,
    /// The digest of what agents are shown.
    digest: String,
    /// The digest of what waits for a person.
    offered: Option<String>,
    accepted_by: Option<String>,
}

/// Tools by mount and name.
#[derive(Default)]
pub struct ToolProjection {
    tools: BTreeMap<(String, String), Pin>,
    /// The mounts that were looked at.
    met: BTreeMap<String, bool>,
}

impl Projection for ToolProjection {
    fn apply(&mut self, _seq: u64, body: &Body) {
        let text = |name: &str| body.facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (key, digest) = ((text("mount"), text("tool")), text("digest"));
        let known = ToolState::Known.name().to_owned();
        match body.kind.as_str() {
            kind if kind == tool::MET.name => {
                self.met.insert(key.0, true);
            }
            kind if kind == tool::PINNED.name => {
                // A record that began before looks were told has only this of them.
                self.met.insert(key.0.clone(), true);
                self.tools.insert(key, Pin { state: known, digest, ..Pin::default() });
            }
            kind if kind == tool::OFFERED.name => {
                // What nobody has accepted yet stands under what it was when it came.
                let pin = self.tools.entry(key).or_insert_with(|| Pin { digest: digest.clone(), ..Pin::default() });
                (pin.state, pin.offered) = (text("state"), Some(digest));
            }
            kind if kind == tool::SETTLED.name => self.change(&key, |pin| (pin.state, pin.offered) = (known, None)),
            kind if kind == tool::GONE.name => {
                if self.tools.get(&key).is_some_and(|pin| pin.state == ToolState::New.name()) {
                    self.tools.remove(&key);
                }
                self.change(&key, |pin| (pin.state, pin.offered) = (ToolState::Gone.name().to_owned(), None));
            }
            kind if kind == tool::ACCEPTED.name => {
                self.change(&key, |pin| *pin = Pin { state: known, digest, offered: None, accepted_by: Some(body.actor.id.clone()) });
            }
            kind if kind == tool::FORGOTTEN.name => {
                self.met.remove(&key.0);
                self.tools.retain(|(mount, _), _| *mount != key.0);
            }
            _ => {}
        }
    }

    fn compare(&self, tx: &mut Tx<'_>) -> Result<Vec<Finding>> {
        let (mut stored, mut findings) = (BTreeMap::new(), Vec::new());
        let rows = tx.query("select mount, tool, state, digest, definition, offered_digest, offered, accepted_by from mount_tool order by mount, tool", &[])?;
        for row in &rows {
            let key = (row.get::<String>(0)?, row.get::<String>(1)?);
            let (digest, offered) = (row.get::<Vec<u8>>(3)?, row.get::<Option<Vec<u8>>>(5)?);
            let (definition, definition_offered) = (row.get::<String>(4)?, row.get::<Option<String>>(6)?);
            // The texts are not in the facts, but their digests are.
            for (text, digest) in [(Some(definition), Some(&digest)), (definition_offered, offered.as_ref())] {
                if !fits(text.as_deref(), digest) {
                    findings.push(Finding { seq: None, what: format!("the tool {} of {}: its definition is not the one of its digest", key.1, key.0) });
                }
            }
            let pin = Pin { state: row.get(2)?, digest: hex(&digest), offered: offered.as_deref().map(hex), accepted_by: row.get(7)? };
            stored.insert(key, pin);
        }
        let met = tx.query("select mount from mount_met order by mount", &[])?;
        let met = met.iter().map(|row| Ok((row.get::<String>(0)?, true))).collect::<Result<BTreeMap<_, _>>>()?;
        differences(&self.met, &met, |mount| format!("the first look at the mount {mount}"), &mut findings);
        differences(&self.tools, &stored, |(mount, tool)| format!("the tool {tool} of {mount}"), &mut findings);
        Ok(findings)
    }
}

impl ToolProjection {
    fn change(&mut self, key: &(String, String), change: impl FnOnce(&mut Pin)) {
        if let Some(pin) = self.tools.get_mut(key) {
            change(pin);
        }
    }
}

/// Whether a text is the one that a digest is over.
fn fits(text: Option<&str>, digest: Option<&Vec<u8>>) -> bool {
    match (text, digest) {
        (None, None) => true,
        (Some(text), Some(digest)) => {
            serde_json::from_str::<Value>(text).ok().and_then(|value| tool::kept(&value).ok()).is_some_and(|(.., own)| own.as_slice() == digest.as_slice())
        }
        _ => false,
    }
}
