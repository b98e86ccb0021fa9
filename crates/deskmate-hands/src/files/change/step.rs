//! What a step is, and what is kept of one that was done.

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::super::fault::{Code, Fault};
use super::super::identity::{Digest, Identity, Kind};
use super::super::path::{self, NAME_MAX};
use super::super::root::Root;
use super::super::{digest_of, sys};
use super::spot::{Spot, carries_nothing_withheld};
use super::trash::{self, Trash};

/// The most that one step writes.
const CONTENT_MAX: usize = 16 * 1024 * 1024;

/// Content that a step writes: text as text, so that people can read it where the step is shown, anything else in base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Blob(pub Vec<u8>);

impl Blob {
    /// The digest of the content.
    pub fn digest(&self) -> Digest {
        digest_of(&self.0)
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wire {
    Text(String),
    Base64(String),
}

impl From<Blob> for Wire {
    fn from(blob: Blob) -> Self {
        // A NUL can't be stored as text everywhere.
        match String::from_utf8(blob.0) {
            Ok(text) if !text.contains('\0') => Self::Text(text),
            Ok(text) => Self::Base64(BASE64.encode(text.as_bytes())),
            Err(bytes) => Self::Base64(BASE64.encode(bytes.as_bytes())),
        }
    }
}

impl TryFrom<Wire> for Blob {
    type Error = &'static str;

    fn try_from(wire: Wire) -> Result<Self, Self::Error> {
        match wire {
            Wire::Text(text) => Ok(Self(text.into_bytes())),
            Wire::Base64(text) => BASE64.decode(text.as_bytes()).map(Self).map_err(|_| "the content is not base64"),
        }
    }
}

/// One change, with the identity of what it acts on. Times are microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Step {
    /// Gives a file, link or folder another place; folders on the way are made.
    Move { from: String, to: String, identity: Identity },
    /// Copies a file or link.
    Copy { from: String, to: String, identity: Identity },
    /// Writes a file that is not there yet.
    Write {
        to: String,
        content: Blob,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// Puts other content in the place of a file; the old file goes to the trash under `kept`.
    Replace { path: String, identity: Identity, content: Blob, kept: String, at_us: i64 },
    /// Makes a folder, and those on the way.
    MakeFolder { path: String },
    /// Moves a folder to the trash if it is empty. It is not removed at once, so that steps before this one can be undone:
    /// a folder that is made anew would be another one.
    RemoveEmptyFolder { path: String, id: String, at_us: i64, identity: Identity },
    /// Moves a file, link or whole folder to the trash.
    Trash { from: String, id: String, at_us: i64, identity: Identity },
    /// Brings something back from the trash.
    Restore { id: String, to: String, identity: Identity },
    /// Removes something from the trash for good.
    Purge { id: String, identity: Identity },
}

/// What was done, and what undoing it needs. `made` are folders that were made on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "done", rename_all = "snake_case")]
pub enum Done {
    /// It is at `to` now.
    Moved { from: String, to: String, identity: Identity, made: Vec<String> },
    /// A copy with this identity was made.
    Copied { to: String, identity: Identity, made: Vec<String> },
    /// A file with this identity was written.
    Written { to: String, identity: Identity, made: Vec<String> },
    /// `new` is in the place of `old`, which lies in the trash under `kept`.
    Replaced { path: String, kept: String, old: Identity, new: Identity },
    /// The folders were made, the last one is the one that was asked for.
    FolderMade { path: String, made: Vec<String> },
    /// It lies in the trash.
    Trashed { from: String, id: String, at_us: i64, identity: Identity },
    /// It is out of the trash, where it had come from `from` at `at_us`.
    Restored { id: String, to: String, identity: Identity, from: Option<String>, at_us: Option<i64>, made: Vec<String> },
    /// It is gone for good.
    Purged { id: String },
}

/// Making steps: each looks at what is there now and writes its identity down.
impl Step {
    /// A move.
    pub fn move_to(root: &Root, from: &str, to: &str) -> Result<Self, Fault> {
        let (from, to) = (changeable(root, from)?, changeable(root, to)?);
        let identity = taken_along(root, &from)?;
        into_itself(root, &from, &to, identity.kind)?;
        Ok(Self::Move { from, to, identity })
    }

    /// A copy of a file or link; the digest of a file is taken.
    pub fn copy_to(root: &Root, from: &str, to: &str) -> Result<Self, Fault> {
        let (from, to) = (changeable(root, from)?, changeable(root, to)?);
        let identity = root.identify(&from, true)?;
        if !matches!(identity.kind, Kind::File | Kind::Link) {
            return Err(root.fault(Code::NotAFile, &from, ONLY_FILES));
        }
        Ok(Self::Copy { from, to, identity })
    }

    /// A new file. The mode is what the process gives new files unless it is said.
    pub fn write_new(root: &Root, to: &str, content: Vec<u8>, mode: Option<u32>) -> Result<Self, Fault> {
        let to = changeable(root, to)?;
        bounded(root, &to, &content)?;
        Ok(Self::Write { to, content: Blob(content), mode })
    }

    /// Other content for a file; the digest of what is there is taken.
    pub fn replace(root: &Root, path: &str, content: Vec<u8>, at_us: i64) -> Result<Self, Fault> {
        let path = changeable(root, path)?;
        bounded(root, &path, &content)?;
        let identity = root.identify(&path, true)?;
        if identity.kind != Kind::File {
            return Err(root.fault(Code::NotAFile, &path, "not a regular file"));
        }
        Ok(Self::Replace { kept: trash_id(&path, &identity, at_us), path, identity, content: Blob(content), at_us })
    }

    /// The same replacement with another content, which is made of what is there.
    pub fn holding(mut self, root: &Root, new: Vec<u8>) -> Result<Self, Fault> {
        if let Self::Replace { path, content, .. } = &mut self {
            bounded(root, path, &new)?;
            *content = Blob(new);
        }
        Ok(self)
    }

    /// A new folder.
    pub fn make_folder(root: &Root, path: &str) -> Result<Self, Fault> {
        Ok(Self::MakeFolder { path: changeable(root, path)? })
    }

    /// The removal of an empty folder.
    pub fn remove_empty_folder(root: &Root, path: &str, at_us: i64) -> Result<Self, Fault> {
        let path = changeable(root, path)?;
        let identity = root.identify(&path, false)?;
        Ok(Self::RemoveEmptyFolder { id: trash_id(&path, &identity, at_us), path, at_us, identity })
    }

    /// The way to the trash.
    pub fn trash(root: &Root, path: &str, at_us: i64) -> Result<Self, Fault> {
        let from = changeable(root, path)?;
        let identity = taken_along(root, &from)?;
        Ok(Self::Trash { id: trash_id(&from, &identity, at_us), from, at_us, identity })
    }

    /// The way back from the trash, to where it came from unless another place is said.
    pub fn restore(root: &Root, id: &str, to: Option<&str>) -> Result<Self, Fault> {
        let trash = Trash::open(root)?;
        let identity = trash.look(root, id)?;
        let to = match to {
            Some(to) => to.to_owned(),
            None => trash.info(id).map(|info| info.from).ok_or_else(|| root.fault(Code::NotFound, id, "the trash does not say where it came from"))?,
        };
        Ok(Self::Restore { id: id.to_owned(), to: changeable(root, &to)?, identity })
    }

    /// The removal from the trash for good.
    pub fn purge(root: &Root, id: &str) -> Result<Self, Fault> {
        let identity = Trash::open(root)?.look(root, id)?;
        Ok(Self::Purge { id: id.to_owned(), identity })
    }

    /// A tag of this step and no other, for the names of its temporary files: a second attempt finds those of the first.
    pub(super) fn tag(&self) -> String {
        match self {
            // Undoing must find what was set aside, and knows only the name in the trash.
            Self::Replace { kept, .. } => tag_of(kept.as_bytes()),
            step => tag_of(&serde_json::to_vec(step).unwrap_or_default()),
        }
    }
}

pub(super) fn tag_of(bytes: &[u8]) -> String {
    digest_of(bytes).to_string().chars().take(16).collect()
}

pub(super) const ONLY_FILES: &str = "only files and links can be copied";

/// A folder does not go into itself.
pub(super) fn into_itself(root: &Root, from: &str, to: &str, kind: Kind) -> Result<(), Fault> {
    let inside = kind == Kind::Folder && path::lies_in(to, from);
    if inside { Err(root.fault(Code::Invalid, to, "a folder can't be moved into itself")) } else { Ok(()) }
}

/// What a path stands for that goes elsewhere with all that lies in it: nobody has to approve what will be refused.
fn taken_along(root: &Root, path: &str) -> Result<Identity, Fault> {
    let identity = root.identify(path, false)?;
    carries_nothing_withheld(root, &Spot::find(root, &root.changeable(path)?)?, identity.kind, path)?;
    Ok(identity)
}

fn changeable(root: &Root, path: &str) -> Result<String, Fault> {
    root.changeable(path).map(|path| path.as_str().to_owned())
}

pub(super) fn bounded(root: &Root, path: &str, content: &[u8]) -> Result<(), Fault> {
    if content.len() > CONTENT_MAX { Err(root.fault(Code::TooLarge, path, "more than 16 MiB at once")) } else { Ok(()) }
}

/// A name in the trash: the file's own, so that people recognise it, and a mark of this thing at this time.
fn trash_id(path: &str, identity: &Identity, at_us: i64) -> String {
    let mut hash = Sha256::new();
    for number in [identity.dev, identity.ino, identity.born_ns.unwrap_or_default().cast_unsigned(), at_us.cast_unsigned()] {
        hash.update(number.to_le_bytes());
    }
    hash.update(path.as_bytes());
    let mark: String = Digest(hash.finalize().into()).to_string().chars().take(16).collect();
    let name = path::split(path).map_or("", |(_, name)| name);
    let room = NAME_MAX - trash::INFO_END.len() - mark.len() - 1;
    let end = name.floor_char_boundary(room);
    format!("{}.{mark}", name.get(..end).unwrap_or_default())
}

/// Looks whether the thing at a name is the one that a step means, unchanged; with its digest if the step has one.
pub(super) fn check(root: &Root, spot: &Spot, meant: &Identity) -> Result<Identity, Fault> {
    let changed = || root.fault(Code::Changed, &spot.path, "is not what it was when this was planned");
    let mut found = sys::look(spot.folder(), spot.name.as_str()).map_err(|errno| root.errno(&spot.path, errno))?;
    if !meant.is_unchanged(&found) {
        return Err(changed());
    }
    if meant.sha256.is_some() && found.kind == Kind::File {
        found = super::super::digest::identify(root, spot.folder(), &spot.name, &spot.path)?;
        if !meant.is_unchanged(&found) {
            return Err(changed());
        }
    }
    Ok(found)
}
