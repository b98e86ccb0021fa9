//! What a server brings for its secrets: the key, if it has it, and who on it names which secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use super::key::Key;
use crate::{Code, Error, Result};

/// The key of a server's secrets, or why it has none. Cheap to clone.
#[derive(Clone)]
pub struct Safe {
    key: Arc<Result<Key, String>>,
    users: Arc<RwLock<BTreeMap<String, BTreeSet<String>>>>,
}

impl Default for Safe {
    fn default() -> Self {
        Self::closed("this server was given no key for secrets")
    }
}

impl Safe {
    /// A safe that this key opens.
    pub fn new(key: Key) -> Self {
        Self { key: Arc::new(Ok(key)), users: Arc::default() }
    }

    /// A safe without a key, and why: everything but secrets works.
    pub fn closed(why: impl Into<String>) -> Self {
        Self { key: Arc::new(Err(why.into())), users: Arc::default() }
    }

    /// Says which secrets something on this server names, such as `mount:files`; nothing, when it is gone.
    pub fn uses(&self, user: &str, secrets: impl IntoIterator<Item = String>) {
        let names: BTreeSet<String> = secrets.into_iter().collect();
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        if names.is_empty() {
            users.remove(user);
        } else {
            users.insert(user.to_owned(), names);
        }
    }

    /// Who names a secret.
    pub(super) fn users_of(&self, secret: &str) -> Vec<String> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        users.iter().filter(|(_, names)| names.contains(secret)).map(|(user, _)| user.clone()).collect()
    }

    pub(super) fn key(&self) -> Result<Key> {
        match &*self.key {
            Ok(key) => Ok(key.clone()),
            Err(why) => Err(Error::new(Code::Unavailable, format!("secrets cannot be used here: {why}")).hint("docs/secrets.md says how to put it right")),
        }
    }
}
