//! What is looked at, for whoever has hands, and what they bring.

use serde::{Deserialize, Serialize};

use super::super::root::Root;
use super::super::scan::Surveyed;

/// What to look at, for whoever has hands.
#[derive(Clone, Debug)]
pub struct Look {
    /// Beneath this root.
    pub root: Root,
    /// From here, relative to it.
    pub path: String,
    /// Only what lies in these folders, relative to it, also behind links; all of it if none is named.
    pub within: Vec<String>,
    /// For what.
    pub what: What,
}

/// The kinds of looks.
#[derive(Clone, Debug)]
pub enum What {
    /// What is there, in a stable order.
    List(ListAsk),
    /// What a file holds.
    Read(ReadAsk),
    /// One thing itself.
    Info,
    /// Where a name or a text is.
    Search(SearchAsk),
    /// What is in the trash.
    Trash(TrashAsk),
}

macro_rules! kinds_of_looks {
    ($($ask:ident => $kind:ident),*) => {$(
        impl From<$ask> for What {
            fn from(ask: $ask) -> Self {
                Self::$kind(ask)
            }
        }

        impl From<$ask> for Surveyed {
            fn from(ask: $ask) -> Self {
                Self::$kind(ask)
            }
        }
    )*};
}

kinds_of_looks!(ListAsk => List, SearchAsk => Search, TrashAsk => Trash);

/// Which entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListAsk {
    /// How many folders deep; 1 is the folder itself.
    pub depth: u32,
    /// With names that begin with a dot.
    pub hidden: bool,
    /// With what ignore files leave out.
    pub ignored: bool,
    /// How many at most.
    pub limit: u32,
    /// Behind this one, relative to the root.
    pub after: Option<String>,
}

/// Which part of a file.
#[derive(Clone, Debug)]
pub struct ReadAsk {
    /// The part.
    pub part: Part,
    /// How many bytes at most.
    pub max_bytes: u64,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// From a byte on.
    From(u64),
    /// The first lines.
    Head(u32),
    /// The last lines.
    Tail(u32),
    /// Lines from one to another, counted from 1.
    Lines(u32, u32),
}

/// What is sought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchAsk {
    /// A glob or a part of the name.
    pub name: Option<String>,
    /// A regular expression for a line.
    pub text: Option<String>,
    /// With names that begin with a dot.
    pub hidden: bool,
    /// With what ignore files leave out.
    pub ignored: bool,
    /// How many at most.
    pub limit: u32,
    /// Behind this place: a path relative to the root, and a line in it, 0 where none was sought.
    pub after: Option<(String, u64)>,
}

/// Which part of the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashAsk {
    /// How many at most.
    pub limit: u32,
    /// Behind this one: when it was put there, in microseconds since 1970, and its id.
    pub after: Option<(i64, String)>,
}

/// One entry that was found; the path is relative to the root.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FoundEntry {
    /// Where.
    pub path: String,
    /// `file`, `folder`, `link` or `other`.
    pub kind: String,
    /// Bytes.
    pub size: u64,
    /// When it was changed last, in microseconds since 1970.
    pub mtime: i64,
}

/// A page of what was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found<T> {
    /// The things, in the order of the look.
    pub entries: Vec<T>,
    /// Whether there are more.
    pub more: bool,
    /// How much was left out on the way.
    #[serde(default)]
    pub left_out: u64,
}

impl<T> Default for Found<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), more: false, left_out: 0 }
    }
}

/// Entries of a folder.
pub type FoundEntries = Found<FoundEntry>;
/// Places where something sought is.
pub type FoundMatches = Found<FoundMatch>;
/// Things in the trash, the newest first.
pub type FoundTrash = Found<TrashEntry>;

/// A part of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FoundText {
    /// Where the file really lies, relative to the root.
    #[serde(default)]
    pub path: Option<String>,
    /// The whole file's size.
    pub size: u64,
    /// How much of it this is.
    pub read_bytes: u64,
    /// Whether the file goes on.
    pub truncated: bool,
    /// As text, if it is text.
    pub text: Option<String>,
    /// Otherwise in base64.
    pub data_base64: Option<String>,
}

/// A place where something sought is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FoundMatch {
    /// The file, relative to the root.
    pub path: String,
    /// The line, counted from 1, if a text was sought.
    pub line: Option<u64>,
    /// That line, cut if it is long.
    pub text: Option<String>,
}

/// Something in the trash.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrashEntry {
    /// Its id there.
    pub id: String,
    /// Where it was, relative to the root.
    pub path: String,
    /// When it was put there, in microseconds since 1970.
    pub deleted_at: i64,
    /// `file`, `folder`, `link` or `other`.
    pub kind: String,
    /// Bytes.
    pub size: u64,
}
