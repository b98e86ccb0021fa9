//! That the whole record was verified is told in it: whoever asks later learns when, and what was found.

use serde_json::Value;

use super::VERIFY_JOB;
use super::entry::{Event, Kind};
use crate::Result;
use crate::call::Cx;

/// The record was verified.
pub const VERIFIED: Kind = Kind { name: "record.verified", says: "The whole record was verified; the facts say whether it was found sound." };

/// Tells what came of verifying the record, once the job for it is done.
pub(crate) fn job_ended(cx: &mut Cx<'_, '_>, kind: &str, result: Option<&str>) -> Result<()> {
    let Some(report) = result.filter(|_| kind == VERIFY_JOB).and_then(|text| serde_json::from_str::<Value>(text).ok()) else { return Ok(()) };
    let fact = |name: &str| report.get(name).cloned().unwrap_or_default();
    cx.emit(Event::new(VERIFIED, "record").fact("sound", fact("sound")).fact("events", fact("events")).fact("root", fact("root")))
}
