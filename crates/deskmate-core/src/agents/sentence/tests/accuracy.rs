//! How often each field comes out as a person reads it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::super::{Given, Sketch, sketch};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Labelled {
    text: String,
    /// Words that the name has.
    #[serde(default)]
    name: Vec<String>,
    #[serde(default)]
    source: Option<String>,
    steps: BTreeSet<String>,
    #[serde(default)]
    output: BTreeSet<String>,
    #[serde(default)]
    cron: Option<String>,
    #[serde(default)]
    zone: Option<String>,
    #[serde(default)]
    data: BTreeSet<String>,
    #[serde(default)]
    limits: BTreeSet<String>,
    #[serde(default)]
    template: Option<String>,
    #[serde(default)]
    policies: Vec<String>,
    #[serde(default)]
    approval: bool,
    #[serde(default)]
    trigger: bool,
    #[serde(default)]
    forbidden: bool,
    #[serde(default)]
    unclear: bool,
}

/// What differs in each field; `None` where a label says nothing about it.
fn compared(label: &Labelled, got: &Sketch) -> Vec<(&'static str, Option<String>)> {
    let kinds = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect::<BTreeSet<String>>();
    let differs = |is: bool, expected: String, found: String| (!is).then(|| format!("expected {expected}, found {found}"));
    let steps = kinds(got.steps.iter().map(|step| step.kind.as_str()).collect());
    let output = kinds(got.output.iter().map(|part| part.kind.as_str()).collect());
    let data = kinds(got.data.iter().map(|data| data.kind.as_str()).collect());
    let limits: BTreeSet<String> =
        got.limits.iter().map(|limit| format!("{} {} {}", limit.most, limit.what, limit.per.as_deref().unwrap_or_default()).trim().to_owned()).collect();
    let source = got.source.as_ref().map(|part| part.kind.clone());
    let cron = got.schedule.as_ref().map(|planned| planned.cron.clone());
    let zone = got.schedule.as_ref().map(|planned| planned.time_zone.clone());
    let chosen: Vec<&str> = got.policies.iter().map(|chosen| chosen.template.as_str()).collect();
    let missing: Vec<&String> = label.policies.iter().filter(|policy| !chosen.contains(&policy.as_str())).collect();
    let template = got.templates.first().map(|found| found.id.clone());
    let mut fields = vec![
        ("name", differs(label.name.iter().all(|word| got.name.split('-').any(|part| part == word)), format!("{:?}", label.name), got.name.clone())),
        ("source", differs(label.source == source, format!("{:?}", label.source), format!("{source:?}"))),
        ("steps", differs(label.steps == steps, format!("{:?}", label.steps), format!("{steps:?}"))),
        ("output", differs(label.output == output, format!("{:?}", label.output), format!("{output:?}"))),
        ("schedule", differs(label.cron == cron, format!("{:?}", label.cron), format!("{cron:?}"))),
        ("data", differs(label.data == data, format!("{:?}", label.data), format!("{data:?}"))),
        ("limits", differs(label.limits == limits, format!("{:?}", label.limits), format!("{limits:?}"))),
        ("policies", differs(missing.is_empty(), format!("{missing:?}"), format!("{chosen:?}"))),
        ("approval", differs(label.approval == got.approval.is_some(), label.approval.to_string(), format!("{:?}", got.approval))),
        ("trigger", differs(label.trigger == got.trigger.is_some(), label.trigger.to_string(), format!("{:?}", got.trigger))),
        ("forbidden", differs(label.forbidden != got.forbidden.is_empty(), label.forbidden.to_string(), format!("{:?}", got.forbidden))),
        ("unclear", differs(label.unclear != got.not_understood.is_empty(), label.unclear.to_string(), format!("{:?}", got.not_understood))),
    ];
    if label.zone.is_some() {
        fields.push(("zone", differs(label.zone == zone, format!("{:?}", label.zone), format!("{zone:?}"))));
    }
    if label.template.is_some() {
        fields.push((
            "template",
            differs(
                label.template == template,
                format!("{:?}", label.template),
                format!("{:?}", got.templates.iter().map(|found| (&found.id, found.score)).collect::<Vec<_>>()),
            ),
        ));
    }
    fields
}

/// How many answers are right for each field, and of how many; for steps also one by one: how many of those that a person reads
/// are found, and how many of those that are found a person reads.
fn measure(text: &str) -> BTreeMap<&'static str, (usize, usize)> {
    let labels: Vec<Labelled> = serde_saphyr::from_str(text).unwrap();
    let mut right: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
    for label in &labels {
        let got = sketch(&label.text, &Given::default(), "UTC").unwrap();
        let found: BTreeSet<String> = got.steps.iter().map(|step| step.kind.clone()).collect();
        let both = label.steps.intersection(&found).count();
        for (name, all) in [("steps that are found", label.steps.len()), ("steps that are right", found.len())] {
            let (good, total) = right.entry(name).or_default();
            *good += both;
            *total += all;
        }
        for (field, difference) in compared(label, &got) {
            let (good, all) = right.entry(field).or_default();
            *all += 1;
            match difference {
                None => *good += 1,
                Some(difference) => println!("{field}: {}: {difference}", label.text),
            }
        }
    }
    right
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn check(name: &str, text: &str, floors: &[(&str, f64)]) {
    let measured = measure(text);
    let mut low = Vec::new();
    for (field, (good, all)) in &measured {
        let percent = *good as f64 * 100.0 / *all as f64;
        println!("{name}: {field}: {good} of {all}, {percent:.1} %");
        let floor = floors.iter().find(|(known, _)| known == field).map_or_else(|| panic!("{field} has no floor"), |(_, floor)| *floor);
        if percent < floor {
            low.push(format!("{field} is {percent:.1} %, below {floor} %"));
        }
    }
    assert!(low.is_empty(), "{name}: {low:#?}");
}

#[test]
fn the_set_with_which_the_rules_were_made() {
    let floors = [
        ("approval", 99.0),
        ("data", 98.0),
        ("forbidden", 99.0),
        ("limits", 99.0),
        ("name", 99.0),
        ("output", 98.0),
        ("policies", 99.0),
        ("schedule", 99.0),
        ("source", 98.0),
        ("steps", 96.0),
        ("steps that are found", 98.0),
        ("steps that are right", 98.0),
        ("template", 98.0),
        ("trigger", 99.0),
        ("unclear", 98.0),
        ("zone", 99.0),
    ];
    check("made with", include_str!("labelled.yaml"), &floors);
}

/// The floors are just under what was measured when the sentences were new to the rules.
#[test]
fn sentences_that_were_written_afterwards() {
    let floors = [
        ("approval", 97.0),
        ("data", 94.0),
        ("forbidden", 98.0),
        ("limits", 99.0),
        ("name", 97.0),
        ("output", 81.0),
        ("policies", 96.0),
        ("schedule", 95.0),
        ("source", 85.0),
        ("steps", 63.0),
        ("steps that are found", 80.0),
        ("steps that are right", 80.0),
        ("template", 91.0),
        ("trigger", 97.0),
        ("unclear", 84.0),
        ("zone", 99.0),
    ];
    check("held out", include_str!("held_out.yaml"), &floors);
}
