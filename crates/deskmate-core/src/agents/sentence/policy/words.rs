//! The words and patterns of `rules.yaml`, compiled once.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::super::lexicon::{Pattern, sets};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    verbs: BTreeMap<String, Vec<String>>,
    words: BTreeMap<String, Vec<String>>,
    effects: BTreeMap<Said, Vec<String>>,
    doings: Vec<DoingFile>,
    holds: Vec<HoldsFile>,
    fields: Vec<FieldsFile>,
    says: Vec<FieldsFile>,
    environments: Vec<NamesFile>,
    taints: Vec<TaintFile>,
    filler: Vec<String>,
    wider: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DoingFile {
    does: String,
    patterns: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldsFile {
    holds: String,
    patterns: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldsFile {
    says: String,
    names: Vec<String>,
    patterns: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamesFile {
    names: Vec<String>,
    patterns: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaintFile {
    name: String,
    patterns: Vec<String>,
}

/// What a sentence wants to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    RequireApproval,
    Redact,
    Rate,
    Log,
    Deny,
    Only,
    Allow,
}

/// What a part of a sentence is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// What is done; empty for everything.
    Does(String),
    /// What texts hold.
    Holds(String),
    /// Fields by their names.
    Fields(String, Vec<String>),
    /// What the agent says in a field.
    Says(String, Vec<String>),
    Environment(Vec<String>),
    Taint(String),
}

/// Everything, compiled.
pub(super) struct Words {
    pub(super) effects: Vec<(Said, Vec<Pattern>)>,
    pub(super) about: Vec<(About, Vec<Pattern>)>,
    pub(super) filler: Vec<String>,
    pub(super) wider: Vec<String>,
}

static WORDS: LazyLock<Result<Words, String>> = LazyLock::new(|| Words::read(include_str!("../rules.yaml")));

/// The words, or what is wrong with them.
pub(super) fn words() -> crate::Result<&'static Words> {
    WORDS.as_ref().map_err(|why| crate::Error::new(crate::Code::Internal, format!("the words for policies cannot be read: {why}")))
}

impl Words {
    fn read(text: &str) -> Result<Self, String> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        let (sets, _) = sets(&file.verbs, &file.words);
        let compile = |patterns: &[String]| patterns.iter().map(|pattern| Pattern::read(pattern, &sets)).collect::<Result<Vec<_>, _>>();
        let mut about = Vec::new();
        for one in &file.doings {
            about.push((About::Does(one.does.clone()), compile(&one.patterns)?));
        }
        for one in &file.holds {
            about.push((About::Holds(one.holds.clone()), compile(&one.patterns)?));
        }
        for one in &file.fields {
            about.push((About::Fields(one.says.clone(), one.names.clone()), compile(&one.patterns)?));
        }
        for one in &file.says {
            about.push((About::Says(one.says.clone(), one.names.clone()), compile(&one.patterns)?));
        }
        for one in &file.environments {
            about.push((About::Environment(one.names.clone()), compile(&one.patterns)?));
        }
        for one in &file.taints {
            about.push((About::Taint(one.name.clone()), compile(&one.patterns)?));
        }
        let effects = file.effects.iter().map(|(said, patterns)| Ok((*said, compile(patterns)?))).collect::<Result<_, String>>()?;
        Ok(Self { effects, about, filler: file.filler, wider: file.wider })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read_and_names_only_what_there_is() {
        let words = match Words::read(include_str!("../rules.yaml")) {
            Ok(words) => words,
            Err(why) => panic!("{why}"),
        };
        for (about, _) in &words.about {
            let (question, word) = match about {
                About::Does(word) if !word.is_empty() => ("does", word),
                About::Holds(word) => ("holds", word),
                _ => continue,
            };
            assert!(crate::policy::questions().any(|(known, name, _)| known == question && name == word), "{question} {word}");
        }
    }
}
