//! Looks at trees of any size. They take longer than a call may, so a job of the queue looks, and its result is kept within
//! bounds: a page with what is most worth knowing, and where the next one begins.
//!
//! - [`model`]: what a job looks at, and what it finds; [`cursor`]: where a page ended.

mod cursor;
mod model;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::judge;
use super::look::{bounded, told};
use super::place::{self, Place, lies_in};
use super::reach::Reach;
use super::root::{self, Root};
use crate::call::{Cx, Wait};
use crate::job::{self, NewJob, Progress};
use crate::limits::{SCAN_PAGE_MAX, SCANS_MAX, TREE_LINES_MAX, WAIT_MAX};
use crate::{Code, Error, Result, hex};

pub use cursor::{SameAfter, SizesAfter};
pub use model::{DuplicatesFound, IndexFound, SameFiles, ScannedExtension, ScannedFile, ScannedFolder, ScannedTotal, SizesFound, Survey, Surveyed, TreeFound};

/// The kind of the job that looks.
pub const SCAN_JOB: &str = "workspace.scan";

/// A look at a tree: how it stands, and what was found once it has ended.
#[derive(Serialize, JsonSchema)]
pub(super) struct Scan<T> {
    /// The job that looks; `desk_job_cancel` stops it.
    job: String,
    /// How that stands.
    state: job::State,
    /// Whether it has ended; if not, ask again with wait_for_scan, or wait with desk_job_wait.
    pub(super) ended: bool,
    /// How far it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) progress: Option<Progress>,
    /// What was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<T>,
    /// Why nothing was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// Puts a look into the queue and answers with its job. The same one that is under way is not begun twice.
pub(super) fn queue(cx: &mut Cx<'_, '_>, operation: &'static str, place: &Place, what: Surveyed) -> Result<String> {
    let survey = Survey { root: place.root.name.clone(), path: place.path.clone(), within: place.within.clone(), what };
    let key = hex(&crate::digest(&json!([cx.actor.kind.name(), cx.actor.id, survey]))?);
    let new = NewJob { priority: job::Priority::Urgent, unique_key: Some(key), ..NewJob::new(SCAN_JOB, json!(survey)) };
    if cx.actor.is_agent() && job::under_way(cx, SCAN_JOB)? >= SCANS_MAX {
        return Err(Error::limited(format!("{SCANS_MAX} looks of yours are under way already"), 5_000).hint("wait for them, or cancel their jobs"));
    }
    let begun = job::enqueue(cx, new)?;
    if begun.created {
        told(cx, operation, place, 0)?;
    }
    Ok(begun.job)
}

fn begin<T: DeserializeOwned>(cx: &mut Cx<'_, '_>, operation: &'static str, named: Option<&str>, what: Surveyed) -> Result<Scan<T>> {
    let place = place::find(cx, "root", named)?;
    judge::may_look(cx, operation, &place)?;
    let job = queue(cx, operation, &place, what)?;
    stands(cx, &job)
}

/// How a look stands.
pub(super) fn stands<T: DeserializeOwned>(cx: &mut Cx<'_, '_>, id: &str) -> Result<Scan<T>> {
    let seen = job::seen(cx, id, SCAN_JOB)?;
    check_reach(cx, &seen.input)?;
    let unreadable = |error: serde_json::Error| Error::new(Code::Internal, format!("the result of job {id} is unreadable: {error}"));
    let result = seen.result.map(T::deserialize).transpose().map_err(unreadable)?;
    let ended = seen.state.is_end();
    Ok(Scan { job: id.to_owned(), state: seen.state, ended, progress: seen.progress, result, error: seen.error.filter(|_| ended) })
}

/// Refuses a look that went beyond the folders that the caller's client names: what it found is not for that caller. It counts where the
/// look was let, and not where it began, because links lead elsewhere.
pub(crate) fn check_reach(cx: &mut Cx<'_, '_>, input: &Value) -> Result<()> {
    if cx.within.is_none() {
        return Ok(());
    }
    let survey = survey_of(input)?;
    // Of a root that is not in force any more nobody knows where it lay.
    let reached = match root::root_named(cx, &survey.root)?.map(|root| Reach::of(cx, &root)) {
        Some(Reach::Whole) => true,
        Some(Reach::Parts(folders)) => !survey.within.is_empty() && survey.within.iter().all(|looked| folders.iter().any(|folder| lies_in(looked, folder))),
        None => false,
    };
    if reached { Ok(()) } else { Err(place::outside(cx)?) }
}

/// Whether a look that a call put into the queue has ended.
pub(super) fn followed<T: DeserializeOwned>(cx: &mut Cx<'_, '_>, answer: &Value) -> Result<Wait<Scan<T>>> {
    let scan = stands(cx, answer.get("job").and_then(Value::as_str).unwrap_or_default())?;
    Ok(if scan.ended { Wait::Ready(scan) } else { Wait::NotYet(scan) })
}

/// What a job has to look at, and beneath which root as it is in force.
pub fn surveyed(cx: &mut Cx<'_, '_>, input: &Value) -> Result<(Root, Survey)> {
    let survey = survey_of(input)?;
    Ok((root::find(cx, Some(&survey.root))?, survey))
}

fn survey_of(input: &Value) -> Result<Survey> {
    Survey::deserialize(input).map_err(|_| Error::conflict("what this job should look at is unreadable"))
}

/// Look at a whole tree, of any size: how many files, sizes by extension, the first, largest and newest files, and with
/// `hash_files` their digests. It holds until it is done, up to 25 seconds; after that the answer names the job to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScanIndex {
    /// The folder: the name of a root, or a path beneath it. The only root if not given.
    root: Option<String>,
    /// Take the SHA-256 of every file, of all of it.
    #[serde(default)]
    hash_files: bool,
    /// How long to wait, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(super) fn scan_index(cx: &mut Cx<'_, '_>, input: ScanIndex) -> Result<Scan<IndexFound>> {
    begin(cx, "scan_index", input.root.as_deref(), Surveyed::Index { hash_files: input.hash_files })
}

/// See a folder as a tree of names, some levels deep, in a stable order and in pages. It holds until it is done, up to 25 seconds;
/// after that the answer names the job to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TreeOf {
    /// The folder: the name of a root, or a path beneath it. The only root if not given.
    root: Option<String>,
    /// How many folders deep; 3 if not given, at most 100.
    depth: Option<u32>,
    /// With names that begin with a dot.
    #[serde(default)]
    hidden: bool,
    /// With what ignore files leave out.
    #[serde(default)]
    ignored: bool,
    /// How many lines; 500 if not given, at most 5000.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
    /// How long to wait, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(super) fn tree(cx: &mut Cx<'_, '_>, input: TreeOf) -> Result<Scan<TreeFound>> {
    let (depth, limit) = (bounded("depth", input.depth, 3, 100)?, bounded("limit", input.limit, 500, TREE_LINES_MAX)?);
    let after = input.cursor.as_deref().map(place::behind).transpose()?;
    begin(cx, "tree", input.root.as_deref(), Surveyed::Tree { depth, hidden: input.hidden, ignored: input.ignored, limit, after })
}

/// Find what takes most space: the largest folders and files of a tree of any size, in pages. It holds until it is done, up to 25
/// seconds; after that the answer names the job to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SizesOf {
    /// The folder: the name of a root, or a path beneath it. The only root if not given.
    root: Option<String>,
    /// How many levels of folders are told one by one; 1 if not given, at most 20.
    depth: Option<u32>,
    /// How many folders; 200 if not given, at most 1000.
    limit: Option<u32>,
    /// Where the previous page ended. A folder that grows or shrinks between two pages may be on both or on none.
    cursor: Option<String>,
    /// How long to wait, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(super) fn sizes(cx: &mut Cx<'_, '_>, input: SizesOf) -> Result<Scan<SizesFound>> {
    let (depth, limit) = (bounded("depth", input.depth, 1, 20)?, bounded("limit", input.limit, model::folders(), SCAN_PAGE_MAX)?);
    let after = input.cursor.as_deref().map(str::parse).transpose()?;
    begin(cx, "sizes", input.root.as_deref(), Surveyed::Sizes { depth, limit, after })
}

/// Find files with the same content in a tree of any size, those that waste most first, in pages. Of each content the first 20
/// paths are told, and more with the cursor that stands with them. It holds until it is done, up to 25 seconds; after that the
/// answer names the job to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DuplicatesOf {
    /// The folder: the name of a root, or a path beneath it. The only root if not given.
    root: Option<String>,
    /// Smaller files are passed over; 1 if not given.
    min_bytes: Option<u64>,
    /// How many contents, or paths of one; 100 if not given, at most 1000.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
    /// How long to wait, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(super) fn duplicates(cx: &mut Cx<'_, '_>, input: DuplicatesOf) -> Result<Scan<DuplicatesFound>> {
    let limit = bounded("limit", input.limit, model::groups(), SCAN_PAGE_MAX)?;
    let after = input.cursor.as_deref().map(str::parse).transpose()?;
    begin(cx, "duplicates", input.root.as_deref(), Surveyed::Duplicates { min_bytes: input.min_bytes.unwrap_or(1), limit, after })
}

/// Wait for a look (scan_index, tree, sizes, duplicates, and list_files, search_files or list_trash that named a job) that took
/// longer than its call, for at most 25 seconds. If it has not ended by then, the answer says so: ask again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitForScan {
    /// The job that the call named.
    job: String,
    /// How long to wait, at most 25 seconds; 25 if not given.
    timeout_seconds: Option<u64>,
}

pub(super) fn wait_for_scan(cx: &mut Cx<'_, '_>, input: WaitForScan) -> Result<Wait<Scan<Value>>> {
    let longest = WAIT_MAX.as_secs();
    if input.timeout_seconds.is_some_and(|seconds| seconds > longest) {
        return Err(Error::invalid("timeout_seconds", format!("must be at most {longest}")).hint("ask again for longer waits"));
    }
    followed(cx, &json!({ "job": input.job }))
}
