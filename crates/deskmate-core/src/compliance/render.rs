//! A report in the forms that people, tables and other programs read.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Builder;

use super::report::{Checked, ControlOut, Report, Status, Verdict};
use crate::call::Cx;
use crate::{Code, Error, Result, csv_cell};

fn verdict(report: &Report) -> String {
    let score = report.score.map_or_else(String::new, |score| format!(", {score} %"));
    let words = match report.verdict {
        Verdict::Shown => "All controls that can be shown from here are met",
        Verdict::Gaps => "There are gaps",
        Verdict::NothingShown => "Nothing can be shown from here",
    };
    let counts = report.counts;
    format!("{words}{score}: {} met, {} partly, {} not met; {} cannot be shown from here.", counts.met, counts.partly, counts.not_met, counts.cannot_be_shown)
}

/// What a check is based on, one line each.
fn evidence(check: &Checked) -> Vec<String> {
    let value = |value: &Option<Value>| value.as_ref().map_or_else(|| "not seen from here".to_owned(), Value::to_string);
    let settings = check.settings.iter().map(|setting| format!("setting {} = {} ({})", setting.name, value(&setting.value), setting.wanted));
    let probes = check.probes.iter().map(|probe| {
        let rules = if probe.rules.is_empty() { "no rule".to_owned() } else { probe.rules.join(", ") };
        format!("asked {} in {}: {} by {rules}", probe.act, probe.domain, probe.answer)
    });
    let events = check.events.iter().map(|event| {
        let against = if event.against { " (against it)" } else { "" };
        format!("event {} {} of {} by {} at {}{against}", event.seq, event.kind, event.subject, event.actor, event.at)
    });
    settings.chain(probes).chain(events).collect()
}

fn looked(check: &Checked) -> String {
    match (check.looked_at, check.cut) {
        (0, _) => String::new(),
        (looked, false) => format!(" ({} found, {looked} events looked at)", check.found),
        (looked, true) => format!(" ({} found, {looked} events looked at, and there are more)", check.found),
    }
}

/// As Markdown, of which a PDF is made.
pub(super) fn markdown(report: &Report) -> String {
    let mut text = format!("# {}: {}\n\n", plain(&report.title), plain(&report.agent));
    text.push_str(&format!("{}\n\n{}\n\n", verdict(report), report.notice));
    text.push_str(&format!(
        "Edition: {}. Made at {}, of events since {}. {} events were looked at.\n\n",
        plain(&report.edition),
        report.at,
        report.since,
        report.looked_at
    ));
    for control in &report.controls {
        text.push_str(&format!("## {} {}: {}\n\n{}\n\n", plain(&control.id), plain(&control.title), control.status.words(), plain(&control.asks)));
        for check in &control.checks {
            text.push_str(&format!("- {}: {}. {}{}\n", plain(&check.shows), check.status.words(), plain(&check.why), looked(check)));
            for line in evidence(check) {
                text.push_str(&format!("  - {}\n", plain(&line)));
            }
        }
        if let Some(cannot) = &control.cannot {
            text.push_str(&format!("- Cannot be shown from here: {}\n", plain(cannot)));
        }
        if let Some(advice) = &control.advice {
            text.push_str(&format!("- What to do: {}\n", plain(advice)));
        }
        text.push('\n');
    }
    text.push_str("## What no program can attest\n\n");
    for cannot in &report.cannot {
        text.push_str(&format!("- {}\n", plain(cannot)));
    }
    let checkpoint = report.record.checkpoint.as_deref().unwrap_or("none");
    text.push_str(&format!("\n## Where the record stood\n\n{} events.\n\n```\n{checkpoint}```\n", report.record.size));
    text
}

/// A text that means nothing more than what it says in Markdown.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '!' | '&' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// As a page that needs nothing else, and runs nothing.
pub(super) fn html(report: &Report) -> String {
    let mut text = String::from(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
    );
    text.push_str(&format!("<title>{}: {}</title>", escaped(&report.title), escaped(&report.agent)));
    text.push_str(
        "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1f;background:#fff}\
         table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #ccc}\
         .status{font-weight:600}.met{color:#0a6b2d}.partly{color:#7a5200}.not_met{color:#a4141d}.cannot_be_shown{color:#555}\
         pre{overflow-wrap:anywhere;white-space:pre-wrap}li{overflow-wrap:anywhere}</style></head><body>",
    );
    text.push_str(&format!(
        "<h1>{}: {}</h1><p><strong>{}</strong></p><p>{}</p>",
        escaped(&report.title),
        escaped(&report.agent),
        verdict(report),
        escaped(&report.notice)
    ));
    text.push_str(&format!(
        "<p>Edition: {}. Made at {}, of events since {}. {} events were looked at.</p>",
        escaped(&report.edition),
        report.at,
        report.since,
        report.looked_at
    ));
    text.push_str("<table><thead><tr><th scope=\"col\">Control</th><th scope=\"col\">Title</th><th scope=\"col\">Status</th></tr></thead><tbody>");
    for control in &report.controls {
        text.push_str(&format!(
            "<tr><th scope=\"row\"><a href=\"#{4}\">{0}</a></th><td>{1}</td><td class=\"status {2}\">{3}</td></tr>",
            escaped(&control.id),
            escaped(&control.title),
            control.status.name(),
            control.status.words(),
            token(&control.id)
        ));
    }
    text.push_str("</tbody></table>");
    for control in &report.controls {
        html_control(&mut text, control);
    }
    text.push_str("<h2>What no program can attest</h2><ul>");
    for cannot in &report.cannot {
        text.push_str(&format!("<li>{}</li>", escaped(cannot)));
    }
    let checkpoint = report.record.checkpoint.as_deref().unwrap_or("none");
    text.push_str(&format!("</ul><h2>Where the record stood</h2><p>{} events.</p><pre>{}</pre></body></html>\n", report.record.size, escaped(checkpoint)));
    text
}

fn html_control(text: &mut String, control: &ControlOut) {
    text.push_str(&format!(
        "<section id=\"{5}\"><h2>{0} {1}: <span class=\"status {2}\">{3}</span></h2><p>{4}</p><ul>",
        escaped(&control.id),
        escaped(&control.title),
        control.status.name(),
        control.status.words(),
        escaped(&control.asks),
        token(&control.id)
    ));
    for check in &control.checks {
        text.push_str(&format!(
            "<li>{}: <span class=\"status {}\">{}</span>. {}{}<ul>",
            escaped(&check.shows),
            check.status.name(),
            check.status.words(),
            escaped(&check.why),
            looked(check)
        ));
        for line in evidence(check) {
            text.push_str(&format!("<li>{}</li>", escaped(&line)));
        }
        text.push_str("</ul></li>");
    }
    for (what, said) in [("Cannot be shown from here", &control.cannot), ("What to do", &control.advice)] {
        if let Some(said) = said {
            text.push_str(&format!("<li>{what}: {}</li>", escaped(said)));
        }
    }
    text.push_str("</ul></section>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

/// As a table: a line for each check, and for each control without any.
pub(super) fn csv(report: &Report) -> String {
    let mut text = "framework,agent,control,title,status,check,check_status,why,found,looked_at,cut,evidence\r\n".to_owned();
    let mut line = |cells: [&str; 12]| {
        text.push_str(&cells.map(csv_cell).join(","));
        text.push_str("\r\n");
    };
    for control in &report.controls {
        let begin = [report.framework.as_str(), &report.agent, &control.id, &control.title, control.status.name()];
        if control.checks.is_empty() {
            let [framework, agent, id, title, status] = begin;
            line([framework, agent, id, title, status, "", "", control.cannot.as_deref().unwrap_or_default(), "0", "0", "false", ""]);
        }
        for check in &control.checks {
            let [framework, agent, id, title, status] = begin;
            let (found, looked_at, cut, evidence) = (check.found.to_string(), check.looked_at.to_string(), check.cut.to_string(), evidence(check).join("; "));
            line([framework, agent, id, title, status, &check.shows, check.status.name(), &check.why, &found, &looked_at, &cut, &evidence]);
        }
    }
    text
}

/// As it is.
pub(super) fn json(report: &Report) -> Result<String> {
    pretty(&json!(report))
}

fn pretty(value: &Value) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Error::new(Code::Internal, error.to_string()))
}

/// An id that is the same whenever the same is said.
fn id(report: &Report, what: &str) -> String {
    let digest = Sha256::new().chain_update(format!("{}\0{}\0{}\0{what}", report.agent, report.framework, report.at)).finalize();
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(byte, part)| *byte = part);
    Builder::from_random_bytes(bytes).into_uuid().to_string()
}

/// A control's name as OSCAL writes names.
fn token(id: &str) -> String {
    let text: String = id.to_lowercase().chars().map(|c| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' }).collect();
    let text = text.trim_end_matches('-').to_owned();
    if text.starts_with(|c: char| c.is_alphabetic() || c == '_') { text } else { format!("_{text}") }
}

/// As assessment results of OSCAL. What cannot be shown is no finding: it is said in the remarks.
pub(super) fn oscal(report: &Report, cx: &Cx<'_, '_>) -> Result<String> {
    let shown = || report.controls.iter().filter(|control| control.status != Status::CannotBeShown);
    let mut observations = Vec::new();
    let mut findings = Vec::new();
    for control in shown() {
        let mut related = Vec::new();
        for (number, check) in (1..).zip(&control.checks) {
            let uuid = id(report, &format!("observation {} {number}", control.id));
            related.push(json!({ "observation-uuid": uuid }));
            let mut observation = json!({
                "uuid": uuid,
                "title": check.shows,
                "description": format!("{}: {}{}", check.status.words(), check.why, looked(check)),
                "methods": ["TEST"],
                "collected": report.at,
            });
            let evidence: Vec<Value> = evidence(check).into_iter().map(|line| json!({ "description": line })).collect();
            if let Some(fields) = observation.as_object_mut().filter(|_| !evidence.is_empty()) {
                fields.insert("relevant-evidence".to_owned(), json!(evidence));
            }
            observations.push(observation);
        }
        let (state, reason) = match control.status {
            Status::Met => ("satisfied", "pass"),
            Status::Partly => ("not-satisfied", "other"),
            _ => ("not-satisfied", "fail"),
        };
        let target = json!({ "type": "objective-id", "target-id": token(&control.id), "status": { "state": state, "reason": reason } });
        findings.push(json!({
            "uuid": id(report, &format!("finding {}", control.id)),
            "title": format!("{} {}", control.id, control.title),
            "description": format!("{} This is {}.", control.asks, control.status.words()),
            "target": target,
            "related-observations": related,
        }));
    }
    let unseen: Vec<&str> = report.controls.iter().filter(|control| control.status == Status::CannotBeShown).map(|control| control.id.as_str()).collect();
    let remarks = format!(
        "{} Cannot be shown from here: {}. {}",
        report.notice,
        if unseen.is_empty() { "none".to_owned() } else { unseen.join(", ") },
        report.cannot.join(" ")
    );
    let (plan, names) = (id(report, "plan"), shown().map(|control| json!({ "control-id": token(&control.id) })).collect::<Vec<_>>());
    let selection = if names.is_empty() { json!({ "description": "none can be shown" }) } else { json!({ "include-controls": names }) };
    let mut result = json!({
        "uuid": id(report, "result"),
        "title": format!("{}: {}", report.title, report.agent),
        "description": verdict(report),
        "start": report.since,
        "end": crate::format_time(cx.now()),
        "reviewed-controls": { "control-selections": [selection] },
        "remarks": remarks,
    });
    if let Some(fields) = result.as_object_mut().filter(|_| !findings.is_empty()) {
        fields.insert("observations".to_owned(), json!(observations));
        fields.insert("findings".to_owned(), json!(findings));
    }
    pretty(&json!({ "assessment-results": {
        "uuid": id(report, "document"),
        "metadata": { "title": format!("{} ({}): {}", report.title, report.edition, report.agent), "last-modified": report.at, "version": report.at, "oscal-version": "1.1.3" },
        "import-ap": { "href": format!("#{plan}") },
        "results": [result],
        "back-matter": { "resources": [{ "uuid": plan, "title": format!("The checks of {}", report.title), "description": "The controls and checks of this desk's data file for the framework." }] },
    }}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_becomes_a_page_a_formula_or_a_heading() {
        assert_eq!(escaped("<script>'\"&"), "&lt;script&gt;&#39;&quot;&amp;");
        assert_eq!((csv_cell("=1+1").as_str(), csv_cell("a,\"b\"").as_str()), ("'=1+1", "\"a,\"\"b\"\"\""));
        assert_eq!(plain("# a\n[b](c)"), "\\# a \\[b\\](c)");
        assert_eq!((token("Req 3"), token("164.312(a)"), token("CC6.1")), ("req-3".to_owned(), "_164.312-a".to_owned(), "cc6.1".to_owned()));
    }
}
