//! The section `node`: whether this server offers itself for runs of agents, under which name, and what it has.

use deskmate_core::agents::Server;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::{Location, Spanned};

use super::{ConfigError, Given, Result, env};

/// The section as it is written.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NodeSection {
    /// The name under which this server offers itself for runs of agents; without one it does not. It needs PostgreSQL, and no other
    /// server of the desk may have it.
    #[schemars(with = "Option<String>")]
    name: Option<Spanned<String>>,
    /// What this server has, as agents that are deployed with `cloud` ask for it, for example `gpu`.
    #[schemars(with = "Vec<String>")]
    labels: Vec<Spanned<String>>,
}

/// A server that offers itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) labels: Vec<String>,
}

/// A value of a flag or a variable, with which of them it is.
fn given(flag: Option<&String>, flag_name: &str, env_name: &str) -> Option<(String, String)> {
    let flag = flag.filter(|value| !value.is_empty()).map(|value| (value.clone(), flag_name.to_owned()));
    flag.or_else(|| env(env_name).map(|value| (value, env_name.to_owned())))
}

pub(super) fn settle(from: &Given, section: NodeSection, database_url: &str, at: &impl Fn(Location) -> String) -> Result<Option<Node>> {
    let name = given(from.node.as_ref(), "--node", "DESKMATE_NODE").or_else(|| section.name.map(|name| (name.value, at(name.referenced))));
    let written = section.labels.first().map(|first| at(first.referenced));
    let (labels, labels_at) = match given(from.node_labels.as_ref(), "--node-labels", "DESKMATE_NODE_LABELS") {
        Some((labels, whence)) => (labels.split(',').map(|label| label.trim().to_owned()).collect(), Some(whence)),
        None => (section.labels.into_iter().map(|label| label.value).collect::<Vec<_>>(), written),
    };
    let whence = |field: Option<&str>| {
        let labels = field == Some("labels");
        let named = name.as_ref().map(|(_, whence)| whence.clone());
        if labels { labels_at.clone() } else { named }.unwrap_or_else(|| "node".to_owned())
    };
    let checked = Server::new("", name.as_ref().map(|(name, _)| name.as_str()), &labels);
    checked.map_err(|error| ConfigError(format!("{}: {}", whence(error.field.as_deref()), error.message)))?;
    let Some((name, named_at)) = name else { return Ok(None) };
    if database_url.starts_with("sqlite:") {
        return Err(ConfigError(format!(
            "{named_at}: a node needs PostgreSQL: a desk on SQLite has one server, and nobody could place runs on another one; set a database URL, or take the name away"
        )));
    }
    Ok(Some(Node { name, labels }))
}
