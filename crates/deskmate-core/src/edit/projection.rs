//! Who set which field, rebuilt from the record: a row that somebody removed would let agents overwrite people.

use std::collections::BTreeMap;

use deskmate_db::{Tx, args};
use serde_json::Value;

use super::EDITED;
use super::operations::RELEASED;
use crate::Result;
use crate::record::{Body, Finding, Projection};

/// Fields by record and name, with who set them and when.
#[derive(Default)]
pub struct EditProjection {
    fields: BTreeMap<(String, String), (String, String, i64)>,
}

impl Projection for EditProjection {
    fn apply(&mut self, _seq: u64, body: &Body) {
        let names = |fact: &str| {
            let names = body.facts.get(fact).and_then(Value::as_array);
            names.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        for field in names(EDITED) {
            self.fields.insert((body.subject.clone(), field), (body.actor.kind.clone(), body.actor.id.clone(), body.at));
        }
        if body.kind == RELEASED.name {
            for field in names("released") {
                self.fields.remove(&(body.subject.clone(), field));
            }
        }
    }

    fn compare(&self, tx: &mut Tx<'_>) -> Result<Vec<Finding>> {
        let mut stored = BTreeMap::new();
        for row in tx.query("select subject, field, set_by_kind, set_by, set_at from field_edit order by subject, field", &[])? {
            stored.insert((row.get::<String>(0)?, row.get::<String>(1)?), (row.get::<String>(2)?, row.get::<String>(3)?, row.get::<i64>(4)?));
        }
        let mut findings = Vec::new();
        let mut find = |(subject, field): &(String, String), why: &str| {
            findings.push(Finding { seq: None, what: format!("the field {field} of {subject}: {why}") });
        };
        for (key, row) in &stored {
            match self.fields.get(key) {
                None => find(key, "a row says who set it, but the record does not tell of it"),
                Some(told) if told != row => find(key, "who set it differs from what the record tells"),
                Some(_) => {}
            }
        }
        for key in self.fields.keys().filter(|key| !stored.contains_key(*key)) {
            if !is_gone(tx, &key.0)? {
                find(key, "the record tells who set it, but the row is gone");
            }
        }
        Ok(findings)
    }
}

/// Whether retention deleted the record itself.
fn is_gone(tx: &mut Tx<'_>, subject: &str) -> Result<bool> {
    let Some(task) = subject.strip_prefix("task:") else { return Ok(false) };
    Ok(tx.optional("select id from task where id = $1", args![task])?.is_none())
}
