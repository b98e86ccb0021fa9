//! Looks at trees of any size. They take longer than a call may, so a job of the queue looks, and its result is kept within
//! bounds: what is most worth knowing, and whether there is more.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::judge;
use super::look::{ListAsk, SearchAsk, TrashAsk, bounded, told};
use super::place::{self, Place};
use super::root::{self, Root};
use crate::call::{Cx, Wait};
use crate::job::{self, NewJob, Progress};
use crate::limits::{SCANS_MAX, TREE_LINES_MAX, WAIT_MAX};
use crate::{Code, Error, Result, hex};

/// The kind of the job that looks.
pub const SCAN_JOB: &str = "workspace.scan";

/// What a job has to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survey {
    /// Beneath which root.
    pub root: String,
    /// The folder, relative to it.
    pub path: String,
    /// Only what lies in these folders, relative to the root, also behind links; all of it if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<String>,
    /// For what.
    pub what: Surveyed,
}

/// The kinds of such looks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Surveyed {
    /// Counts, sizes by extension, the first, the largest and the newest files.
    Index {
        /// With the SHA-256 of every file.
        hash_files: bool,
    },
    /// Names, nested.
    Tree {
        /// How many folders deep.
        depth: u32,
        /// With names that begin with a dot.
        hidden: bool,
        /// With what ignore files leave out.
        ignored: bool,
        /// How many lines at most.
        limit: u32,
    },
    /// The largest folders and files.
    Sizes {
        /// How many levels of folders are told one by one.
        depth: u32,
    },
    /// Files with the same content.
    Duplicates {
        /// Smaller ones are passed over.
        min_bytes: u64,
    },
    /// A page of a folder, which was too long for a call.
    List(ListAsk),
    /// A page of a search, which was too long for a call.
    Search(SearchAsk),
    /// A page of the trash, which was too long for a call.
    Trash(TrashAsk),
}

/// A file of a scan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScannedFile {
    /// Where, as other operations take it.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// When it was changed last.
    pub mtime: String,
    /// Its extension; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ext: Option<String>,
    /// The digest of the whole file, if it was asked for and could be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// How much there is with one extension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScannedExtension {
    /// In small letters; empty for files without one.
    pub ext: String,
    /// How many files.
    pub count: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// What a folder holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScannedFolder {
    /// Where.
    pub path: String,
    /// Bytes of all files in it, however deep.
    pub bytes: u64,
    /// How many files.
    pub count: u64,
}

/// What lies in a folder, all together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScannedTotal {
    /// Files.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Names that cannot be spoken of, and what could not be read or lies too deep.
    pub left_out: u64,
}

/// What `scan_index` finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexFound {
    /// All together.
    pub total: ScannedTotal,
    /// Files whose digest was taken, of the whole file each.
    pub hashed: u64,
    /// The first files by their paths.
    pub files: Vec<ScannedFile>,
    /// Whether there are more; `list_files` gives them in pages.
    pub truncated: bool,
    /// What takes most, by extension.
    pub extensions: Vec<ScannedExtension>,
    /// The largest files.
    pub largest: Vec<ScannedFile>,
    /// The files that were changed last.
    pub newest: Vec<ScannedFile>,
}

/// What `tree` finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeFound {
    /// One name in each line, two spaces deeper for each folder; folders end in `/`, links in `@`, files have their size.
    pub tree: String,
    /// Whether it stopped before the end.
    pub truncated: bool,
    /// Names that cannot be spoken of, and what could not be read or lies too deep.
    pub left_out: u64,
}

/// What `sizes` finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizesFound {
    /// All together.
    pub total: ScannedTotal,
    /// The largest folders.
    pub folders: Vec<ScannedFolder>,
    /// Whether there are more of them.
    pub truncated: bool,
    /// The largest files.
    pub largest: Vec<ScannedFile>,
}

/// Files with the same content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SameFiles {
    /// Bytes of each.
    pub size: u64,
    /// The digest of each, of the whole file.
    pub sha256: String,
    /// How many there are.
    pub count: u64,
    /// Where; the first ones.
    pub paths: Vec<String>,
}

/// What `duplicates` finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DuplicatesFound {
    /// Those that waste most first.
    pub groups: Vec<SameFiles>,
    /// Bytes that all copies but one of each take.
    pub wasted: u64,
    /// Whether there are more groups, or files that were not compared.
    pub truncated: bool,
}

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
    let unreadable = |error: serde_json::Error| Error::new(Code::Internal, format!("the result of job {id} is unreadable: {error}"));
    let result = seen.result.map(T::deserialize).transpose().map_err(unreadable)?;
    let ended = seen.state.is_end();
    Ok(Scan { job: id.to_owned(), state: seen.state, ended, progress: seen.progress, result, error: seen.error.filter(|_| ended) })
}

/// Whether a look that a call put into the queue has ended.
pub(super) fn followed<T: DeserializeOwned>(cx: &mut Cx<'_, '_>, answer: &Value) -> Result<Wait<Scan<T>>> {
    let scan = stands(cx, answer.get("job").and_then(Value::as_str).unwrap_or_default())?;
    Ok(if scan.ended { Wait::Ready(scan) } else { Wait::NotYet(scan) })
}

/// What a job has to look at, and beneath which root as it is in force.
pub fn surveyed(cx: &mut Cx<'_, '_>, input: &Value) -> Result<(Root, Survey)> {
    let survey = Survey::deserialize(input).map_err(|_| Error::conflict("what this job should look at is unreadable"))?;
    Ok((root::find(cx, Some(&survey.root))?, survey))
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

/// See a folder as a tree of names, some levels deep. It holds until it is done, up to 25 seconds; after that the answer names
/// the job to wait for.
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
    /// How long to wait, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(super) fn tree(cx: &mut Cx<'_, '_>, input: TreeOf) -> Result<Scan<TreeFound>> {
    let (depth, limit) = (bounded("depth", input.depth, 3, 100)?, bounded("limit", input.limit, 500, TREE_LINES_MAX)?);
    begin(cx, "tree", input.root.as_deref(), Surveyed::Tree { depth, hidden: input.hidden, ignored: input.ignored, limit })
}

/// Find what takes most space: the largest folders and files of a tree of any size. It holds until it is done, up to 25
/// seconds; after that the answer names the job to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SizesOf {
    /// The folder: the name of a root, or a path beneath it. The only root if not given.
    root: Option<String>,
    /// How many levels of folders are told one by one; 1 if not given, at most 20.
    depth: Option<u32>,
    /// How long to wait, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(super) fn sizes(cx: &mut Cx<'_, '_>, input: SizesOf) -> Result<Scan<SizesFound>> {
    let depth = bounded("depth", input.depth, 1, 20)?;
    begin(cx, "sizes", input.root.as_deref(), Surveyed::Sizes { depth })
}

/// Find files with the same content in a tree of any size, those that waste most first. It holds until it is done, up to 25
/// seconds; after that the answer names the job to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DuplicatesOf {
    /// The folder: the name of a root, or a path beneath it. The only root if not given.
    root: Option<String>,
    /// Smaller files are passed over; 1 if not given.
    min_bytes: Option<u64>,
    /// How long to wait, at most 25 seconds; 25 if not given.
    #[expect(dead_code, reason = "whoever holds the call reads it")]
    timeout_seconds: Option<u64>,
}

pub(super) fn duplicates(cx: &mut Cx<'_, '_>, input: DuplicatesOf) -> Result<Scan<DuplicatesFound>> {
    begin(cx, "duplicates", input.root.as_deref(), Surveyed::Duplicates { min_bytes: input.min_bytes.unwrap_or(1) })
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
