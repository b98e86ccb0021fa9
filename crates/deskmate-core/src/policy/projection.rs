//! What is in force, rebuilt from the record.

use std::collections::BTreeMap;

use deskmate_db::Tx;
use serde_json::Value;

use super::store::{self, ACCEPTED, CHANGED, MAPPED, RETIRED, SETTING, UNMAPPED};
use crate::record::{Body, Finding, Projection, differences};
use crate::{Result, hex};

/// Policies, mappings and settings as the record says they are.
#[derive(Default)]
pub struct PolicyProjection {
    policies: BTreeMap<(String, i64), PolicyFacts>,
    mappings: BTreeMap<(String, String, String), Accepted>,
    settings: BTreeMap<(String, String), (String, Accepted)>,
    digest: Option<String>,
}

#[derive(Default, PartialEq, Eq)]
struct PolicyFacts {
    in_force: bool,
    digest: String,
    accepted: Accepted,
}

/// Who accepted something, and when.
#[derive(Default, PartialEq, Eq)]
struct Accepted {
    by: String,
    at: i64,
}

impl Projection for PolicyProjection {
    fn apply(&mut self, _seq: u64, body: &Body) {
        let text = |name: &str| body.facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let version = body.facts.get("version").and_then(Value::as_i64).unwrap_or(0);
        let accepted = || Accepted { by: text("by"), at: body.at };
        let kind = body.kind.as_str();
        if kind == ACCEPTED.name || kind == RETIRED.name {
            let name = text("policy");
            for ((_, _), facts) in self.policies.range_mut((name.clone(), i64::MIN)..=(name.clone(), i64::MAX)) {
                facts.in_force = false;
            }
            if kind == ACCEPTED.name {
                self.policies.insert((name, version), PolicyFacts { in_force: true, digest: text("digest"), accepted: accepted() });
            }
        } else if kind == MAPPED.name {
            self.mappings.insert((text("agent"), text("domain"), text("policy")), accepted());
        } else if kind == UNMAPPED.name {
            self.mappings.remove(&(text("agent"), text("domain"), text("policy")));
        } else if kind == SETTING.name {
            let key = (text("section"), text("domain"));
            if body.facts.contains_key("digest") {
                self.settings.insert(key, (text("digest"), accepted()));
            } else {
                self.settings.remove(&key);
            }
        } else if kind == CHANGED.name {
            self.digest = Some(text("digest"));
        }
    }

    fn compare(&self, tx: &mut Tx<'_>) -> Result<Vec<Finding>> {
        let mut stored = Self::default();
        for row in tx.query("select name, version, state, body, digest, accepted_by, accepted_at from policy order by name, version", &[])? {
            let (state, body, digest): (String, String, Vec<u8>) = (row.get(2)?, row.get(3)?, row.get(4)?);
            // A row whose text does not fit its own digest fits no event either.
            let digest = if store::sha256(&body).as_slice() == digest { hex(&digest) } else { String::new() };
            let accepted = Accepted { by: row.get(5)?, at: row.get(6)? };
            stored.policies.insert((row.get(0)?, row.get(1)?), PolicyFacts { in_force: state == "in_force", digest, accepted });
        }
        for row in tx.query("select agent, domain, policy, accepted_by, accepted_at from mapping order by agent, domain, policy", &[])? {
            stored.mappings.insert((row.get(0)?, row.get(1)?, row.get(2)?), Accepted { by: row.get(3)?, at: row.get(4)? });
        }
        for row in tx.query("select section, domain, body, accepted_by, accepted_at from setting order by section, domain", &[])? {
            let body: String = row.get(2)?;
            stored.settings.insert((row.get(0)?, row.get(1)?), (hex(&store::sha256(&body)), Accepted { by: row.get(3)?, at: row.get(4)? }));
        }
        let mut findings = Vec::new();
        differences(&self.policies, &stored.policies, |(name, version)| format!("policy {name} version {version}"), &mut findings);
        differences(&self.mappings, &stored.mappings, |(agent, domain, policy)| format!("mapping of {agent} and {domain} to {policy}"), &mut findings);
        differences(&self.settings, &stored.settings, |(section, domain)| format!("setting {section} {domain}"), &mut findings);
        if store::named_digest(tx)? != self.digest {
            findings.push(Finding { seq: None, what: "rulebook: the desk names another digest than the record".to_owned() });
        }
        Ok(findings)
    }
}
