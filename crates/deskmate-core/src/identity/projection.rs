//! The identity rows that carry authority, rebuilt from the record.

use std::collections::BTreeMap;

use deskmate_db::Tx;
use serde_json::Value;

use super::sessions::{PAIRED, rebuilt_factor};
use super::token::SecretKind;
use super::{agents, people, rows, sessions};
use crate::record::{Body, Finding, Projection, differences};
use crate::{Result, hex};

/// People, agents and credentials as the record says they are: one line of text for each row.
#[derive(Default)]
pub struct IdentityProjection {
    agents: BTreeMap<String, &'static str>,
    people: BTreeMap<String, PersonFacts>,
    credentials: BTreeMap<String, CredentialFacts>,
    newest: i64,
}

#[derive(Default, PartialEq, Eq, Debug)]
struct PersonFacts {
    role: String,
    domains: String,
    state: String,
    factor: String,
    failures: i64,
    locked_until: Option<i64>,
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct CredentialFacts {
    kind: String,
    owner: String,
    hash: String,
    scopes: String,
    expires_at: i64,
    revoked_at: Option<i64>,
    present_until: Option<i64>,
    failures: i64,
}

impl Projection for IdentityProjection {
    fn apply(&mut self, _seq: u64, body: &Body) {
        self.newest = self.newest.max(body.at);
        let text = |name: &str| body.facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |name: &str| body.facts.get(name).and_then(Value::as_i64);
        let kind = body.kind.as_str();
        if kind == agents::REGISTERED.name {
            self.agents.insert(text("agent"), "active");
        } else if kind == agents::REVOKED.name {
            self.agents.insert(text("agent"), "revoked");
        } else if kind == people::ADDED.name {
            let (role, domains, factor) = (text("role"), text("domains"), text("factor"));
            let facts = PersonFacts { role, domains, state: "active".to_owned(), factor, ..PersonFacts::default() };
            self.people.insert(text("person"), facts);
        } else if kind == people::CHANGED.name {
            let person = self.people.entry(text("person")).or_default();
            (person.role, person.domains, person.state) = (text("role"), text("domains"), text("state"));
        } else if kind == sessions::PASSPHRASE_SET.name {
            self.people.entry(text("person")).or_default().factor = text("factor");
        } else if kind == rows::ISSUED.name {
            let facts = CredentialFacts {
                kind: text("kind"),
                owner: text("owner"),
                hash: text("hash"),
                scopes: text("scopes"),
                expires_at: number("expires_at").unwrap_or(0),
                revoked_at: None,
                present_until: None,
                failures: 0,
            };
            // Whoever signs in has just given the right passphrase; who pairs has not.
            let signs_in = facts.kind == SecretKind::Session.name() && !facts.scopes.contains(PAIRED);
            if let Some(person) = self.people.get_mut(&facts.owner).filter(|_| signs_in) {
                (person.failures, person.locked_until) = (0, None);
            }
            self.credentials.insert(text("credential"), facts);
        } else if kind == rows::REVOKED.name {
            let (at, now) = (number("at").unwrap_or(0), number("now").unwrap_or(0));
            let credential = self.credentials.entry(text("credential")).or_default();
            credential.expires_at = credential.expires_at.min(at);
            if at <= now {
                credential.revoked_at = Some(at);
            }
        } else if kind == sessions::PRESENT.name {
            let credential = self.credentials.entry(text("credential")).or_default();
            (credential.present_until, credential.failures) = (number("until"), 0);
        } else if kind == sessions::SIGN_IN_FAILED.name && body.facts.contains_key("credential") {
            self.credentials.entry(text("credential")).or_default().failures = number("failures").unwrap_or(0);
        } else if kind == sessions::SIGN_IN_FAILED.name {
            let person = self.people.entry(text("person")).or_default();
            (person.failures, person.locked_until) = (number("failures").unwrap_or(0), None);
        } else if kind == sessions::LOCKED.name {
            self.people.entry(text("person")).or_default().locked_until = number("until");
        }
    }

    fn compare(&self, tx: &mut Tx<'_>) -> Result<Vec<Finding>> {
        let mut stored = Self::default();
        for row in tx.query("select id, state from agent order by id", &[])? {
            let state: String = row.get(1)?;
            stored.agents.insert(row.get(0)?, if state == "active" { "active" } else { "revoked" });
        }
        for row in tx.query("select id, role, domains, state, factor, failures, locked_until from person order by id", &[])? {
            let factor: Option<String> = row.get(4)?;
            let facts = PersonFacts {
                role: row.get(1)?,
                domains: row.get(2)?,
                state: row.get(3)?,
                factor: rebuilt_factor(factor.as_deref()),
                failures: row.get(5)?,
                locked_until: row.get(6)?,
            };
            stored.people.insert(row.get(0)?, facts);
        }
        for row in tx.query("select id, kind, owner, hash, scopes, expires_at, revoked_at, present_until, failures from credential order by id", &[])? {
            let hash: Vec<u8> = row.get(3)?;
            let facts = CredentialFacts {
                kind: row.get(1)?,
                owner: row.get(2)?,
                hash: hex(&hash),
                scopes: row.get(4)?,
                expires_at: row.get(5)?,
                revoked_at: row.get(6)?,
                present_until: row.get(7)?,
                failures: row.get(8)?,
            };
            stored.credentials.insert(row.get(0)?, facts);
        }
        let mut findings = Vec::new();
        differences(&self.agents, &stored.agents, |id| format!("agent {id}"), &mut findings);
        differences(&self.people, &stored.people, |id| format!("person {id}"), &mut findings);
        // Rows of credentials that have ended go after a time; without its row none is good.
        let is_kept = |(id, facts): &(&String, &CredentialFacts)| facts.expires_at >= self.newest || stored.credentials.contains_key(*id);
        let kept = self.credentials.iter().filter(is_kept).map(|(id, facts)| (id.clone(), facts.clone())).collect();
        differences(&kept, &stored.credentials, |id| format!("credential {id}"), &mut findings);
        Ok(findings)
    }
}
