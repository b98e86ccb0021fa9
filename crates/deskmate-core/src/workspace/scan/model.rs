//! What a job looks at, and what it finds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::look::{ListAsk, SearchAsk, TrashAsk};
use super::cursor::{SameAfter, SizesAfter};

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
        /// Behind this one, relative to the folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    },
    /// The largest folders and files.
    Sizes {
        /// How many levels of folders are told one by one.
        depth: u32,
        /// How many folders at most.
        #[serde(default = "folders")]
        limit: u32,
        /// Behind this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<SizesAfter>,
    },
    /// Files with the same content.
    Duplicates {
        /// Smaller ones are passed over.
        min_bytes: u64,
        /// How many groups, or paths of one, at most.
        #[serde(default = "groups")]
        limit: u32,
        /// Behind this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<SameAfter>,
    },
    /// A page of a folder, which was too long for a call.
    List(ListAsk),
    /// A page of a search, which was too long for a call.
    Search(SearchAsk),
    /// A page of the trash, which was too long for a call.
    Trash(TrashAsk),
}

/// How many folders a page holds if nobody says.
pub(super) const fn folders() -> u32 {
    200
}

/// How many groups a page holds if nobody says.
pub(super) const fn groups() -> u32 {
    100
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
    /// One name in each line, two spaces deeper for each folder; folders end in `/`, links in `@`, files have their size. All
    /// pages below each other are the whole tree.
    pub tree: String,
    /// Whether it stopped before the end; then `next_cursor` leads on.
    pub truncated: bool,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// On every page but the first: the folder that the first line lies in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins_in: Option<String>,
    /// Names that cannot be spoken of, and what could not be read or lies too deep.
    pub left_out: u64,
}

/// What `sizes` finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizesFound {
    /// All together.
    pub total: ScannedTotal,
    /// The largest folders first.
    pub folders: Vec<ScannedFolder>,
    /// Whether there are more of them; then `next_cursor` leads on.
    pub truncated: bool,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The largest files, with the first page.
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
    /// Give this as `cursor` for more of its paths. Absent where there are no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What `duplicates` finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DuplicatesFound {
    /// Those that waste most first.
    pub groups: Vec<SameFiles>,
    /// Bytes that all copies but one of each take, over all pages, as the first one counted them; of one content where only its paths
    /// are asked for.
    pub wasted: u64,
    /// Whether there are more groups, or files that were not compared.
    pub truncated: bool,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
