//! The templates that there are, by what they are of, what they belong to, and words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::template;
use crate::call::Cx;
use crate::limits::NAME_CHARS_MAX;
use crate::{Result, check_text, policy};

/// The templates that agents and policies are often made of.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListTemplates {
    /// `agent`, `policy` or `all`, which is also what holds if nothing is given.
    #[serde(rename = "type")]
    kind: Option<TemplateKind>,
    /// Only those of this category.
    category: Option<String>,
    /// Only those with this text in their name, description or tags.
    search: Option<String>,
    /// Only policies that help with this framework, such as `SOC2`.
    framework: Option<String>,
}

/// What a template is of.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TemplateKind {
    Agent,
    Policy,
    #[default]
    All,
}

/// Templates.
#[derive(Serialize, JsonSchema)]
pub(super) struct Templates {
    /// Which there are, in words, for people.
    message: String,
    /// Of agents.
    agents: Vec<template::AgentTemplate>,
    /// Of policies.
    policies: Vec<PolicyTemplate>,
    /// Files of this desk's own templates that could not be taken in, each with what is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
}

/// A template of a policy.
#[derive(Serialize, JsonSchema)]
struct PolicyTemplate {
    /// Its name.
    id: String,
    /// Its title for people.
    title: String,
    /// What it is for.
    description: String,
    /// What it belongs to.
    category: String,
    /// The framework that it helps with.
    framework: Option<String>,
    /// Its gaps, with what stands in each if nobody says.
    parameters: Vec<policy::Parameter>,
    /// Its text, as it would stand in a file.
    text: String,
}

pub(super) fn templates(cx: &mut Cx<'_, '_>, input: ListTemplates) -> Result<Templates> {
    for (field, text) in [("category", &input.category), ("search", &input.search), ("framework", &input.framework)] {
        check_text(field, text.as_deref().unwrap_or_default(), NAME_CHARS_MAX)?;
    }
    let kind = input.kind.unwrap_or_default();
    let search = input.search.as_deref().map(str::to_lowercase);
    let fits = |category: Option<&str>, texts: &[&str]| {
        input.category.as_deref().is_none_or(|wanted| category == Some(wanted))
            && search.as_deref().is_none_or(|wanted| texts.iter().any(|text| text.to_lowercase().contains(wanted)))
    };
    let agents = cx.templates.all().filter(|found| {
        let tags = found.tags.join(" ");
        kind != TemplateKind::Policy && input.framework.is_none() && fits(Some(&found.category), &[&found.id, &found.title, &found.description, &tags])
    });
    let policies = cx.templates.policies().filter(|found| {
        let framework = input.framework.as_deref().is_none_or(|wanted| found.framework.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(wanted)));
        let tags = found.tags.join(" ");
        kind != TemplateKind::Agent && framework && fits(Some(&found.category), &[&found.id, &found.title, &found.description, &tags])
    });
    let policies = policies.map(|found| PolicyTemplate {
        id: found.id.clone(),
        title: found.title.clone(),
        description: found.description.clone(),
        category: found.category.clone(),
        framework: found.framework.clone(),
        parameters: found.parameters.clone(),
        text: found.text().to_owned(),
    });
    // Where files lie on the machine is for people.
    let problems = if cx.actor.is_agent() { Vec::new() } else { cx.templates.problems().to_vec() };
    let (agents, policies): (Vec<_>, Vec<_>) = (agents.cloned().collect(), policies.collect());
    Ok(Templates { message: in_words(&agents, &policies), agents, policies, problems })
}

fn in_words(agents: &[template::AgentTemplate], policies: &[PolicyTemplate]) -> String {
    let mut lines = vec![format!("{} templates of agents, {} of policies.", agents.len(), policies.len())];
    lines.extend(agents.iter().map(|found| format!("Agent {} ({}, {}): {}", found.id, found.category, found.difficulty, found.description)));
    lines.extend(policies.iter().map(|found| format!("Policy {} ({}): {}", found.id, found.category, found.description)));
    lines.join("\n")
}
