//! Which secrets there are, rebuilt from the record: a value that was put back or exchanged in the store shows.

use std::collections::BTreeMap;

use deskmate_db::Tx;
use serde_json::Value;

use super::{operations, seal};
use crate::Result;
use crate::record::{Body, Finding, Projection, differences};

/// Secrets by name: the version, and the digest of the encrypted value until it was removed.
#[derive(Default)]
pub struct SecretProjection {
    secrets: BTreeMap<String, (i64, String)>,
}

impl Projection for SecretProjection {
    fn apply(&mut self, _seq: u64, body: &Body) {
        if [operations::SET.name, operations::ROTATED.name, operations::REMOVED.name].contains(&body.kind.as_str()) {
            let text = |name: &str| body.facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let version = body.facts.get("version").and_then(Value::as_i64).unwrap_or(0);
            self.secrets.insert(text("secret"), (version, text("sealed")));
        }
    }

    fn compare(&self, tx: &mut Tx<'_>) -> Result<Vec<Finding>> {
        let (mut stored, mut findings) = (BTreeMap::new(), Vec::new());
        for row in tx.query("select name, version, nonce, sealed from secret order by name", &[])? {
            let (nonce, sealed): (Option<Vec<u8>>, Option<Vec<u8>>) = (row.get(2)?, row.get(3)?);
            let digest = nonce.zip(sealed).map(|(nonce, sealed)| seal::digest(&nonce, &sealed)).unwrap_or_default();
            stored.insert(row.get::<String>(0)?, (row.get::<i64>(1)?, digest));
        }
        differences(&self.secrets, &stored, |name| format!("secret {name}"), &mut findings);
        Ok(findings)
    }
}
