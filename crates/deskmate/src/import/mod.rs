//! Reading what another server left: of a cowork server its configuration and its database, of an AgentOS server its data directory.
//! Nothing of it is written, and a token never leaves this process: only its hash is sent to the desk.

mod agentos;
mod database;
mod settings;
mod token;

use deskmate_core::import::{Outcome, Report};
use serde_json::Value;

pub(crate) use agentos::read as read_agentos;
pub(crate) use database::read as read_database;
pub(crate) use settings::read as read_settings;

/// What a configuration says, in the desk's own words.
#[derive(Default)]
pub(crate) struct Found {
    /// Policies, mappings and settings, as a document.
    pub(crate) document: Option<String>,
    /// Agents with the hashes of their tokens.
    pub(crate) agents: Vec<Value>,
    /// Where the database is, as the configuration names it.
    pub(crate) storage_path: Option<String>,
    /// What was changed or refused on the way.
    pub(crate) report: Report,
}

impl Found {
    fn changed(&mut self, kind: &str, what: impl Into<String>, why: impl Into<String>) {
        self.report.note(kind, what, Outcome::Changed, Some(why.into()));
    }

    fn refused(&mut self, kind: &str, what: impl Into<String>, why: impl Into<String>) {
        self.report.note(kind, what, Outcome::Refused, Some(why.into()));
    }
}
