//! How much parts of a sentence speak for a template whose file does not say it: its own words are read like any sentence.

use super::lexicon::lexicon;
use super::tokens::{Kind, tokens};
use super::{Given, sketch};
use crate::agents::template::{AgentTemplate, Likeness};

/// What a step or a source of its task is worth, and what a word of its name is.
const DOES: u32 = 2;
const NAMED: u32 = 3;

/// What speaks for it: the steps and sources of its task and its example, and the words of its name, title and tags.
pub(in crate::agents) fn likeness(template: &AgentTemplate) -> Likeness {
    let mut like = Likeness::default();
    // What cannot be read as a sentence says nothing.
    for read in [&template.task, &template.example].into_iter().filter_map(|text| sketch(text, &Given::default(), "UTC").ok()) {
        like.steps.extend(read.steps.into_iter().map(|step| (step.kind, DOES)));
        like.sources.extend(read.source.into_iter().map(|source| (source.kind, DOES)));
    }
    let Ok(lexicon) = lexicon() else { return like };
    let names = [template.id.replace('-', " "), template.title.clone(), template.tags.join(" ").replace('-', " ")].join(" ");
    for token in tokens(&names).into_iter().filter(|token| token.kind == Kind::Word && token.text.len() > 2 && !lexicon.stops.contains(&token.text)) {
        // These stand in every such sentence.
        if !matches!(token.text.as_str(), "agent" | "agents" | "automation" | "create" | "template") {
            let other = token.text.strip_suffix('s').map_or_else(|| format!("{}s", token.text), str::to_owned);
            like.words.extend([(token.text, NAMED), (other, NAMED)]);
        }
    }
    like
}
