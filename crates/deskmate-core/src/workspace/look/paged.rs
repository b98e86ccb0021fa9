//! Looks that come in pages. Hands that see that they will not be quick say so, and the same look goes into the queue; the answer
//! names the job, and the job's result is the page that the call would have brought.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::judge;
use super::super::place::Place;
use super::super::scan::{self, Surveyed};
use super::model::{Found, What};
use super::{Files, Matches, Trash, errand, told};
use crate::call::{Cx, Errand, Wait};
use crate::job::Progress;
use crate::limits::LATE_PAGE_BYTES_MAX;
use crate::{Code, Error, Result};

/// What a caller asks for.
pub(in crate::workspace) trait Paged {
    /// The operation.
    const OPERATION: &'static str;
    /// What hands, or a job, are asked for.
    type Ask: Into<What> + Into<Surveyed>;
    /// What is answered.
    type Page: Page;

    /// Where to look.
    fn place(&self, cx: &mut Cx<'_, '_>) -> Result<Place>;
    /// What to look for.
    fn ask(&self) -> Result<Self::Ask>;
}

/// What is answered.
pub(in crate::workspace) trait Page: Serialize + DeserializeOwned {
    /// One thing on it, as it was found.
    type Entry: Serialize + DeserializeOwned;

    /// A page of what was found beneath a root.
    fn new(root: &str, entries: Vec<Self::Entry>, end: End) -> Self;
    /// Where a page ends whose last one this is.
    fn cursor(last: &Self::Entry) -> String;
}

/// How a page ends, and how one goes on.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(in crate::workspace) struct End {
    /// Whether there are more; then `next_cursor` leads on.
    truncated: bool,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// How much was left out on the way to the last of them: names that cannot be spoken of, what could not be read or lies too deep; of
    /// a search for a text also files that are binary or longer than 64 MiB, and lines of which only the first 64 KiB were looked at.
    #[serde(default)]
    left_out: u64,
    /// Given while a job still looks, which has the page when it is done: wait with wait_for_scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// How far that job has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

fn asked<P: Paged>(cx: &mut Cx<'_, '_>, input: &P) -> Result<(Place, P::Ask)> {
    let place = input.place(cx)?;
    judge::may_look(cx, P::OPERATION, &place)?;
    Ok((place, input.ask()?))
}

/// What hands are sent for.
pub(in crate::workspace) fn wants<P: Paged>(cx: &mut Cx<'_, '_>, input: &P) -> Result<Errand> {
    let (place, what) = asked(cx, input)?;
    Ok(errand(&place, what.into()))
}

/// The page of what they brought.
pub(in crate::workspace) fn tells<P: Paged>(cx: &mut Cx<'_, '_>, input: P, found: Found<<P::Page as Page>::Entry>) -> Result<P::Page> {
    let place = input.place(cx)?;
    told(cx, P::OPERATION, &place, found.entries.len() as u64)?;
    Ok(of(&place.root.name, found))
}

/// Puts a look into the queue.
pub(in crate::workspace) fn queues<P: Paged>(cx: &mut Cx<'_, '_>, input: P) -> Result<P::Page> {
    let (place, what) = asked(cx, &input)?;
    Ok(later(scan::queue(cx, P::OPERATION, &place, what.into())?, None))
}

/// Whether an answer names a job that still looks.
pub(in crate::workspace) fn goes_on(answer: &Value) -> bool {
    answer.get("job").is_some()
}

/// Whether the job that an answer names is done: then its page is the answer.
pub(in crate::workspace) fn followed<P: Paged>(cx: &mut Cx<'_, '_>, answer: &Value) -> Result<Wait<P::Page>> {
    let job = answer.get("job").and_then(Value::as_str).unwrap_or_default();
    let stands = scan::stands::<P::Page>(cx, job)?;
    if !stands.ended {
        return Ok(Wait::NotYet(later(job.to_owned(), stands.progress)));
    }
    stands.result.map(Wait::Ready).ok_or_else(|| Error::conflict(stands.error.unwrap_or_else(|| "the look was stopped".to_owned())))
}

fn of<P: Page>(root: &str, found: Found<P::Entry>) -> P {
    let next_cursor = found.entries.last().filter(|_| found.more).map(P::cursor);
    P::new(root, found.entries, End { truncated: found.more, next_cursor, left_out: found.left_out, job: None, progress: None })
}

/// Nothing yet, and where to wait for it.
fn later<P: Page>(job: String, progress: Option<Progress>) -> P {
    P::new("", Vec::new(), End { truncated: true, next_cursor: None, left_out: 0, job: Some(job), progress })
}

/// The page of what a job found, in the words of the operation that wanted it.
pub fn page(root: &str, what: &Surveyed, found: Value) -> Result<Value> {
    match what {
        Surveyed::List(_) => late::<Files>(root, found),
        Surveyed::Search(_) => late::<Matches>(root, found),
        Surveyed::Trash(_) => late::<Trash>(root, found),
        _ => Ok(found),
    }
}

/// What is more than a job keeps is left for the next page.
fn late<P: Page>(root: &str, found: Value) -> Result<Value> {
    let mut found: Found<P::Entry> = Found::deserialize(found).map_err(|error| unreadable(&error))?;
    found.more |= cut(&mut found.entries)?;
    serde_json::to_value(of::<P>(root, found)).map_err(|error| unreadable(&error))
}

/// Leaves out what does not fit any more; says whether anything was.
fn cut<T: Serialize>(entries: &mut Vec<T>) -> Result<bool> {
    let mut room = LATE_PAGE_BYTES_MAX;
    for at in 0..entries.len() {
        // The root's name and the time in words come on top, and a path is told with its last name once more.
        let bytes = entries.get(at).map(serde_json::to_string).transpose().map_err(|error| unreadable(&error))?.map_or(0, |text| 2 * text.len() + 200);
        let Some(left) = room.checked_sub(bytes) else {
            entries.truncate(at.max(1));
            return Ok(true);
        };
        room = left;
    }
    Ok(false)
}

fn unreadable(error: &serde_json::Error) -> Error {
    Error::new(Code::Internal, format!("what was found is unreadable: {error}"))
}
