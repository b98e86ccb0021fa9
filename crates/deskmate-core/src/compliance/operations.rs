//! Asking how an agent stands against a framework, and getting the report as a file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Counts, Report, Verdict};
use super::{bundle, check, render};
use crate::agents::subject;
use crate::call::{Cx, Errand};
use crate::limits::COMPLIANCE_DAYS_MAX;
use crate::record;
use crate::{Error, Result, format_time};

/// Check how an agent stands against a framework, from what the record and the settings of this desk show. Each control is met, partly, not
/// met, or cannot be shown from here; each answer names the events and settings behind it. It makes nobody compliant.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CheckCompliance {
    /// The agent's id or name.
    agent_id: String,
    /// SOC2, GDPR, HIPAA, PCI_DSS, CCPA, NIST, ISO27001, FEDRAMP, or one of the desk's own.
    framework: String,
    /// Whether to answer with every control and its evidence; yes if not given. Without it the answer is the verdict and the score.
    #[serde(default = "yes")]
    generate_report: bool,
    /// How many days to look back; 90 if not given.
    days: Option<u32>,
}

fn yes() -> bool {
    true
}

/// How an agent stands.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Compliance {
    /// The agent's name.
    agent: String,
    /// The framework.
    framework: String,
    /// What it comes to, of what can be shown.
    verdict: Verdict,
    /// Of the controls that can be shown, the share that is met, in percent; those partly met count half. Absent where none can.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<u8>,
    /// How many controls stand how.
    counts: Counts,
    /// In words.
    message: String,
    /// Every control with what shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<Report>,
}

pub(super) fn check(cx: &mut Cx<'_, '_>, input: CheckCompliance) -> Result<Compliance> {
    let mut report = made(cx, &input.agent_id, &input.framework, input.days)?;
    if cx.actor.is_agent() {
        let actor = cx.actor.clone();
        check::for_agent(&mut report, |seq| Ok(record::find_event(cx.tx, seq)?.is_some_and(|event| event.visible_to(&actor))))?;
    }
    let Counts { met, partly, not_met, cannot_be_shown } = report.counts;
    let message = format!("{}: {met} met, {partly} partly, {not_met} not met; {cannot_be_shown} cannot be shown from here. {}", report.title, report.notice);
    Ok(Compliance {
        agent: report.agent.clone(),
        framework: report.framework.clone(),
        verdict: report.verdict,
        score: report.score,
        counts: report.counts,
        message,
        report: input.generate_report.then_some(report),
    })
}

/// Makes a report for whoever may see the agent.
fn made(cx: &mut Cx<'_, '_>, agent: &str, framework: &str, days: Option<u32>) -> Result<Report> {
    let days = days.unwrap_or(check::DAYS);
    if days == 0 || days > COMPLIANCE_DAYS_MAX {
        return Err(Error::invalid("days", format!("must be between 1 and {COMPLIANCE_DAYS_MAX}")));
    }
    let framework = cx.frameworks.find(framework)?;
    let subject = subject(cx, agent)?;
    check::report(cx, &framework, &subject, days)
}

/// List the frameworks that agents can be checked against, with their controls.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFrameworks {}

/// Frameworks.
#[derive(Serialize, JsonSchema)]
pub(super) struct Frameworks {
    frameworks: Vec<FrameworkOut>,
    /// What is wrong with files of this desk's own that could not be taken in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
}

/// One framework.
#[derive(Serialize, JsonSchema)]
struct FrameworkOut {
    /// Its name.
    id: String,
    /// Its title.
    title: String,
    /// Which edition of it.
    edition: String,
    /// Its controls.
    controls: Vec<ControlName>,
    /// What no program can attest of it.
    cannot: Vec<String>,
}

/// One control.
#[derive(Serialize, JsonSchema)]
struct ControlName {
    /// Its name.
    id: String,
    /// Its title.
    title: String,
    /// How many checks show it.
    checks: usize,
}

#[expect(clippy::unnecessary_wraps, reason = "an operation answers so")]
pub(super) fn list(cx: &mut Cx<'_, '_>, _: ListFrameworks) -> Result<Frameworks> {
    let control = |control: &super::Control| ControlName { id: control.id.clone(), title: control.title.clone(), checks: control.checks.len() };
    let frameworks = cx.frameworks.all().map(|framework| FrameworkOut {
        id: framework.id.clone(),
        title: framework.title.clone(),
        edition: framework.edition.clone(),
        controls: framework.controls.iter().map(control).collect(),
        cannot: framework.cannot.clone(),
    });
    let problems = if cx.actor.is_agent() { Vec::new() } else { cx.frameworks.problems().to_vec() };
    Ok(Frameworks { frameworks: frameworks.collect(), problems })
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Format {
    /// A page that needs nothing else.
    Html,
    /// A text in Markdown; agents_compliance_pdf makes a PDF of it.
    Markdown,
    /// A line for each check.
    Csv,
    /// The report as it is.
    Json,
    /// Assessment results in the form of OSCAL.
    Oscal,
    /// The report with the events that it names and their proofs: `deskmate audit verify FILE` verifies it without the desk.
    Bundle,
}

/// Get the report of an agent and a framework as a file: html, markdown, csv, json, oscal, or a bundle with proofs that an auditor verifies
/// without the desk.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ComplianceReport {
    /// The agent's id or name.
    agent_id: String,
    /// The framework.
    framework: String,
    /// The form.
    format: Format,
    /// How many days to look back; 90 if not given.
    days: Option<u32>,
}

/// A file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Download {
    /// A name for it.
    file_name: String,
    /// Its media type.
    media_type: String,
    /// What is in it.
    content: String,
}

pub(super) fn download(cx: &mut Cx<'_, '_>, input: ComplianceReport) -> Result<Download> {
    let report = made(cx, &input.agent_id, &input.framework, input.days)?;
    let (ending, media_type, content) = match input.format {
        Format::Html => ("html", "text/html; charset=utf-8", render::html(&report)),
        Format::Markdown => ("md", "text/markdown; charset=utf-8", render::markdown(&report)),
        Format::Csv => ("csv", "text/csv; charset=utf-8", render::csv(&report)),
        Format::Json => ("json", "application/json", render::json(&report)?),
        Format::Oscal => ("oscal.json", "application/json", render::oscal(&report, cx)?),
        Format::Bundle => ("evidence.jsonl", "application/jsonl", bundle::make(cx, &report)?),
    };
    let file_name = file_name(&report.framework, &report.agent, &report.at, ending);
    Ok(Download { file_name, media_type: media_type.to_owned(), content })
}

fn file_name(framework: &str, agent: &str, at: &str, ending: &str) -> String {
    let day: String = at.chars().take(10).collect();
    let name: String = agent.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    format!("{}-{name}-{day}.{ending}", framework.to_lowercase())
}

/// Get the report of an agent and a framework as PDF.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CompliancePdf {
    /// The agent's id or name.
    agent_id: String,
    /// The framework.
    framework: String,
    /// How many days to look back; 90 if not given.
    days: Option<u32>,
}

/// What the hands made.
#[derive(Deserialize)]
pub(super) struct Printed {
    base64: String,
}

/// A PDF.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pdf {
    /// A name for it.
    file_name: String,
    /// Its media type.
    media_type: &'static str,
    /// Its bytes, base64.
    base64: String,
}

pub(super) fn print(cx: &mut Cx<'_, '_>, input: &CompliancePdf) -> Result<Errand> {
    let report = made(cx, &input.agent_id, &input.framework, input.days)?;
    Ok(Errand::Pdf { text: render::markdown(&report) })
}

pub(super) fn printed(cx: &mut Cx<'_, '_>, input: CompliancePdf, found: Printed) -> Result<Pdf> {
    let framework = cx.frameworks.find(&input.framework)?;
    let subject = subject(cx, &input.agent_id)?;
    Ok(Pdf { file_name: file_name(&framework.id, &subject.agent, &format_time(cx.now()), "pdf"), media_type: "application/pdf", base64: found.base64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compliance::Status;

    #[test]
    fn only_what_can_be_shown_counts() {
        let control = |status: Status| crate::compliance::ControlOut {
            id: "x".to_owned(),
            title: String::new(),
            asks: String::new(),
            status,
            cannot: None,
            advice: None,
            checks: Vec::new(),
        };
        let weigh = |statuses: &[Status]| Report::weigh(&statuses.iter().map(|status| control(*status)).collect::<Vec<_>>());
        assert_eq!((weigh(&[Status::CannotBeShown]).1, weigh(&[Status::CannotBeShown]).2), (None, Verdict::NothingShown));
        assert_eq!((weigh(&[Status::Met, Status::CannotBeShown]).1, weigh(&[Status::Met, Status::CannotBeShown]).2), (Some(100), Verdict::Shown));
        assert_eq!((weigh(&[Status::Met, Status::Partly]).1, weigh(&[Status::Met, Status::Partly]).2), (Some(75), Verdict::Gaps));
        let many: Vec<Status> = std::iter::once(Status::NotMet).chain(std::iter::repeat_n(Status::Met, 299)).collect();
        assert_eq!(weigh(&many).1, Some(99), "nothing is rounded up to all");
    }
}
