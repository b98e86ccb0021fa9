//! A report with the events that it names and their proofs: one JSON line for the report, one for each event. The desk signs the first line, so
//! that settings and probes, which no event proves, are at least what the desk said. Whoever has it verifies it without the desk. It holds no
//! payloads: what people wrote is not evidence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::check::together;
use super::report::Report;
use crate::call::Cx;
use crate::record::{self, Body, Finding, Keyring, Proof, check_proof};
use crate::{Error, Result, digest, format_time};

/// The format's name, first in every bundle.
const FORMAT: &str = "deskmate-evidence-1";

/// The field of the first line that signs all others.
const SIGNATURE: &str = "signature";

/// The first line, without its signature.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    /// How many events follow.
    events: usize,
    /// The signed checkpoint that vouches for all of them.
    checkpoint: String,
    /// The public keys that the desk believes. A reader who has them from elsewhere uses those.
    keys: Vec<String>,
    report: Report,
}

/// An event and its way to the root.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    seq: u64,
    /// The sealed text.
    body: String,
    /// The hashes from the leaf to the root, base64.
    hashes: Vec<String>,
}

/// What came of verifying a bundle.
#[derive(Clone, Debug, Serialize)]
pub struct EvidenceReport {
    /// Whether nothing was found.
    pub sound: bool,
    /// The agent that it is about.
    pub agent: String,
    /// The framework.
    pub framework: String,
    /// How many events were proved.
    pub events: usize,
    /// What does not fit.
    pub findings: Vec<Finding>,
}

/// The bundle of a report.
pub(super) fn make(cx: &mut Cx<'_, '_>, report: &Report) -> Result<String> {
    let keys = cx.keys.clone();
    let mut lines = Vec::new();
    for seq in report.events() {
        let Proof { body, hashes, .. } = record::prove(cx.tx, seq, &keys)?;
        lines.push(json!(Line { seq, body, hashes }).to_string());
    }
    let checkpoint = record::newest_checkpoint(cx.tx)?.ok_or_else(|| Error::not_found("the record is empty"))?;
    let header = Header { format: FORMAT.to_owned(), events: lines.len(), checkpoint, keys: keys.keys().to_vec(), report: report.clone() };
    let mut first = json!(header);
    let signature = keys.vouch(FORMAT, &digest(&first)?)?;
    if let Some(fields) = first.as_object_mut() {
        fields.insert(SIGNATURE.to_owned(), signature.into());
    }
    lines.insert(0, first.to_string());
    lines.push(String::new());
    Ok(lines.join("\n"))
}

/// Whether the first line of a file is that of such a bundle.
pub fn is_bundle(first: &str) -> bool {
    #[derive(Deserialize)]
    struct Named {
        format: String,
    }
    serde_json::from_str::<Named>(first).is_ok_and(|named| named.format == FORMAT)
}

/// Verifies a bundle: the desk signed the report as it stands there; each event that it names is there, is what the report says of it, and is in
/// the record that the checkpoint vouches for; and the report's conclusions are those of its checks. `keys` are the reader's own; without any, the bundle's are used, which shows
/// only that it is consistent with itself. `kept` are checkpoints from elsewhere.
pub fn verify_bundle(lines: impl Iterator<Item = std::io::Result<String>>, keys: Option<Keyring>, kept: &[String]) -> Result<EvidenceReport> {
    let mut lines = lines.map(|line| line.map_err(|error| Error::invalid("bundle", error.to_string())));
    let first = lines.next().ok_or_else(|| Error::invalid("bundle", "is empty"))??;
    let (header, signature) = read_first(&first)?;
    let keys = keys.unwrap_or_else(|| Keyring::new(header.keys.clone()));
    let mut findings = Vec::new();
    let mut find = |seq: Option<u64>, what: String| findings.push(Finding { seq, what });
    let checkpoint = keys.open(&header.checkpoint);
    if let Err(error) = &checkpoint {
        find(None, format!("the checkpoint {error}"));
    }
    // What was signed is what was written, also where a later reader knows more fields.
    match signature {
        None => find(None, "the report is not signed".to_owned()),
        Some(signed) => {
            if let Err(error) = keys.check_vouched(&signed.note, FORMAT, &signed.digest) {
                find(None, format!("the report was changed, or another desk made it: its {error}"));
            }
        }
    }
    for note in kept {
        match (keys.open(note), &checkpoint) {
            (Err(error), _) => find(None, format!("a kept checkpoint {error}")),
            (Ok(kept), Ok(own)) if kept.size() == own.size() && kept.hash() != own.hash() => {
                find(None, "a kept checkpoint of the same size names another root".to_owned());
            }
            _ => {}
        }
    }
    let mut proved: BTreeMap<u64, Body> = BTreeMap::new();
    for (number, line) in (2..).zip(lines) {
        let line = line?;
        if line.is_empty() {
            continue;
        }
        let Line { seq, body, hashes } = serde_json::from_str(&line).map_err(|error| Error::invalid("bundle", format!("line {number}: {error}")))?;
        let proof = Proof { seq, body, hashes, checkpoint: header.checkpoint.clone(), key: String::new() };
        match (check_proof(&proof, &keys), serde_json::from_str::<Body>(&proof.body)) {
            (Ok(()), Ok(body)) => drop(proved.insert(seq, body)),
            (Err(error), _) => find(Some(seq), format!("its proof does not hold: {error}")),
            (_, Err(_)) => find(Some(seq), "its sealed text is unreadable".to_owned()),
        }
    }
    for (seq, what) in differences(&header.report, &proved) {
        find(seq, what);
    }
    if header.events != proved.len() {
        find(None, format!("{} events were promised, {} are proved", header.events, proved.len()));
    }
    Ok(EvidenceReport { sound: findings.is_empty(), agent: header.report.agent, framework: header.report.framework, events: proved.len(), findings })
}

/// A signature, and the digest that it has to be of.
struct Signed {
    note: String,
    digest: [u8; 32],
}

/// The first line, and its signature if it has one.
fn read_first(line: &str) -> Result<(Header, Option<Signed>)> {
    let bad = |error: serde_json::Error| Error::invalid("bundle", format!("line 1: {error}"));
    let mut first: Value = serde_json::from_str(line).map_err(bad)?;
    let signature = first.as_object_mut().and_then(|fields| fields.remove(SIGNATURE));
    let signed = match signature {
        None => None,
        Some(Value::String(note)) => Some(Signed { note, digest: digest(&first)? }),
        Some(_) => return Err(Error::invalid("bundle", "line 1: the signature is no text")),
    };
    Ok((serde_json::from_value(first).map_err(bad)?, signed))
}

/// Where a report says something else than the events that were proved, or than its own checks.
fn differences(report: &Report, proved: &BTreeMap<u64, Body>) -> Vec<(Option<u64>, String)> {
    let mut found = Vec::new();
    for control in &report.controls {
        if control.status != together(&control.checks) {
            found.push((None, format!("{} is called {}, and its checks say {}", control.id, control.status.words(), together(&control.checks).words())));
        }
        for event in control.checks.iter().flat_map(|check| &check.events) {
            match proved.get(&event.seq) {
                None => found.push((Some(event.seq), format!("{} names it, and it is not proved", control.id))),
                Some(body) if body.kind != event.kind || body.subject != event.subject || body.actor.id != event.actor || format_time(body.at) != event.at => {
                    found.push((Some(event.seq), format!("{} says something else of it than what was sealed", control.id)));
                }
                Some(_) => {}
            }
        }
    }
    let (counts, score, verdict) = Report::weigh(&report.controls);
    if counts != report.counts || score != report.score || verdict != report.verdict {
        found.push((None, "the counts, the score or the verdict are not those of the controls".to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Whatever a file holds, it is refused or found not to be sound: nobody signed it.
        #[test]
        fn any_bytes_are_refused_or_not_sound(text in "(?s).{0,80}", note in "[a-zA-Z0-9+/=\n —]{0,60}", seq in 0_u64..9, events in 0_usize..3) {
            let counts = json!({ "met": 0, "partly": 0, "notMet": 0, "cannotBeShown": 0 });
            let report = json!({
                "agent": "a", "framework": "f", "title": "t", "edition": "e", "at": "", "since": "", "verdict": "nothing_shown", "counts": counts,
                "controls": [], "lookedAt": 0, "cannot": [], "record": { "size": 1, "checkpoint": note, "keys": [note] }, "notice": ""
            });
            let first = json!({ "format": FORMAT, "events": events, "checkpoint": note, "keys": [note], "report": report, "signature": note }).to_string();
            assert!(read_first(&first).is_ok(), "{:?}", read_first(&first).err());
            let line = json!({ "seq": seq, "body": text, "hashes": [note] }).to_string();
            for lines in [vec![text.clone()], vec![first.clone()], vec![first.clone(), text.clone()], vec![first, line]] {
                let kept = [note.clone()];
                for kept in [&kept[..], &[]] {
                    let read = verify_bundle(lines.iter().cloned().map(Ok), None, kept);
                    assert!(read.is_err() || read.is_ok_and(|report| !report.sound), "{lines:?}");
                }
            }
        }
    }
}
