//! Looks that take longer than a call should. Hands that see that they will not be quick say so, and the same look goes into
//! the queue; the answer names the job, and the job's result is the page that the call would have brought.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::place::Place;
use super::super::scan::{self, Surveyed};
use super::model::{FoundEntries, FoundMatches, FoundTrash};
use super::{Files, Matches, Trash};
use crate::call::{Cx, Wait};
use crate::job::Progress;
use crate::limits::LATE_PAGE_BYTES_MAX;
use crate::{Code, Error, Result};

/// A page that a job may bring later.
pub(in crate::workspace) trait Page: DeserializeOwned {
    /// Nothing yet, and where to wait for it.
    fn later(job: String, progress: Option<Progress>) -> Self;
}

/// Puts a look into the queue.
pub(super) fn queue<P: Page>(cx: &mut Cx<'_, '_>, operation: &'static str, place: &Place, what: Surveyed) -> Result<P> {
    Ok(P::later(scan::queue(cx, operation, place, what)?, None))
}

/// Whether an answer names a job that still looks.
pub(in crate::workspace) fn goes_on(answer: &Value) -> bool {
    answer.get("job").is_some()
}

/// Whether the job that an answer names is done: then its page is the answer.
pub(in crate::workspace) fn followed<P: Page>(cx: &mut Cx<'_, '_>, answer: &Value) -> Result<Wait<P>> {
    let job = answer.get("job").and_then(Value::as_str).unwrap_or_default();
    let stands = scan::stands::<P>(cx, job)?;
    if !stands.ended {
        return Ok(Wait::NotYet(P::later(job.to_owned(), stands.progress)));
    }
    stands.result.map(Wait::Ready).ok_or_else(|| Error::conflict(stands.error.unwrap_or_else(|| "the look was stopped".to_owned())))
}

/// The page of what a job found, in the words of the operation that wanted it. What is more than a job keeps is left for the
/// next page.
pub fn page(root: &str, what: &Surveyed, found: Value) -> Result<Value> {
    match what {
        Surveyed::List(_) => {
            let mut found: FoundEntries = read(found)?;
            found.more |= cut(&mut found.entries)?;
            write(&Files::of(root, found))
        }
        Surveyed::Search(_) => {
            let mut found: FoundMatches = read(found)?;
            found.truncated |= cut(&mut found.matches)?;
            write(&Matches::of(root, found))
        }
        Surveyed::Trash(_) => {
            let mut found: FoundTrash = read(found)?;
            found.more |= cut(&mut found.entries)?;
            write(&Trash::of(root, found))
        }
        _ => Ok(found),
    }
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

fn read<T: DeserializeOwned>(found: Value) -> Result<T> {
    T::deserialize(found).map_err(|error| unreadable(&error))
}

fn write<T: Serialize>(page: &T) -> Result<Value> {
    serde_json::to_value(page).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Error {
    Error::new(Code::Internal, format!("what was found is unreadable: {error}"))
}
