//! Where the runs of an agent are done, as it is said when the agent is deployed, and as the queue keeps it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{NODE_LABEL_CHARS_MAX, NODE_LABELS_MAX};
use crate::{Error, Result};

/// Where an agent runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Environment {
    /// On the server where it was deployed. Servers without a name are alike: any of them does its runs.
    #[default]
    Local,
    /// On any node that offers itself and has the labels.
    Cloud,
}

impl Environment {
    /// The stable name, by which rules know it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Cloud => "cloud",
        }
    }
}

/// Where runs are done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// On any server without a name.
    #[default]
    Anywhere,
    /// On the node of this name.
    Node(String),
    /// On any node that has all of these labels.
    Cloud(Vec<String>),
}

const NODE: &str = "node:";
const CLOUD: &str = "cloud:";

impl Place {
    /// As it is stored. A label has no comma in it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Anywhere => crate::job::ANYWHERE.to_owned(),
            Self::Node(name) => format!("{NODE}{name}"),
            Self::Cloud(labels) => format!("{CLOUD}{}", labels.join(",")),
        }
    }

    /// What is stored. What is not known is a node that is nowhere, so that nobody does it by mistake.
    pub(super) fn read(text: &str) -> Self {
        if text == crate::job::ANYWHERE {
            Self::Anywhere
        } else if let Some(labels) = text.strip_prefix(CLOUD) {
            Self::Cloud(labels.split(',').filter(|label| !label.is_empty()).map(str::to_owned).collect())
        } else {
            Self::Node(text.strip_prefix(NODE).unwrap_or(text).to_owned())
        }
    }

    /// Whether a node that offers itself may do it.
    pub(super) fn is_for(&self, node: &str, labels: &[String]) -> bool {
        match self {
            Self::Anywhere => false,
            Self::Node(name) => name == node,
            Self::Cloud(wanted) => wanted.iter().all(|label| labels.contains(label)),
        }
    }

    pub(super) fn environment(&self) -> Environment {
        if matches!(self, Self::Cloud(_)) { Environment::Cloud } else { Environment::Local }
    }

    pub(super) fn labels(&self) -> &[String] {
        if let Self::Cloud(labels) = self { labels } else { &[] }
    }

    pub(super) fn node(&self) -> Option<&str> {
        if let Self::Node(name) = self { Some(name) } else { None }
    }
}

/// Labels in order, each once.
pub(super) fn check_labels(labels: &[String]) -> Result<Vec<String>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '=');
    if let Some(wrong) = labels.iter().find(|label| label.is_empty() || label.len() > NODE_LABEL_CHARS_MAX || !label.chars().all(plain)) {
        return Err(Error::invalid("labels", format!("{wrong:?} must be 1 to {NODE_LABEL_CHARS_MAX} letters, digits, '-', '_', '.' or '='")));
    }
    if labels.len() > NODE_LABELS_MAX {
        return Err(Error::invalid("labels", format!("there can be at most {NODE_LABELS_MAX}")));
    }
    let labels: std::collections::BTreeSet<&String> = labels.iter().collect();
    Ok(labels.into_iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cloud(labels: &[&str]) -> Place {
        Place::Cloud(labels.iter().map(|label| (*label).to_owned()).collect())
    }

    #[test]
    fn what_is_stored_is_read_again() {
        for place in [Place::Anywhere, Place::Node("east-1".to_owned()), Place::Node("cloud".to_owned()), cloud(&[]), cloud(&["eu", "gpu=a100"])] {
            assert_eq!(Place::read(&place.text()), place);
        }
        assert_eq!(Place::read("moon"), Place::Node("moon".to_owned()), "nobody takes what nobody knows");
    }

    #[test]
    fn a_node_needs_all_labels_and_what_is_local_to_others_is_not_its() {
        let own = ["eu".to_owned(), "gpu".to_owned()];
        for (place, fits) in [
            (cloud(&[]), true),
            (cloud(&["gpu"]), true),
            (cloud(&["eu", "gpu"]), true),
            (cloud(&["gpu", "us"]), false),
            (Place::Node("east".to_owned()), true),
            (Place::Node("west".to_owned()), false),
            (Place::Anywhere, false),
        ] {
            assert_eq!(place.is_for("east", &own), fits, "{place:?}");
        }
    }

    #[test]
    fn labels_are_plain_words_in_order() {
        let given = |labels: &[&str]| check_labels(&labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>());
        assert_eq!(given(&["gpu", "eu", "gpu"]).unwrap(), ["eu", "gpu"]);
        for wrong in [vec![""], vec!["a,b"], vec!["a b"], vec!["ü"], vec!["x"; NODE_LABELS_MAX + 1]] {
            assert!(given(&wrong).is_err(), "{wrong:?}");
        }
    }
}
