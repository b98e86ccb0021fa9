//! What a file is, apart from its name: device, inode and birth tell whether it is the same one, size, time, mode and
//! digest whether it was changed.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What kind of thing a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link; it stands for itself.
    Link,
    /// A device, a FIFO or a socket; never opened.
    Other,
}

/// A SHA-256 of a whole file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = HEXLOWER.decode(text.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or("a SHA-256 is 64 lower-case hexadecimal digits")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What a file was when somebody looked. Numbers that may pass 2^53 are written as text, so that they survive JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The device.
    #[serde(with = "as_text")]
    pub dev: u64,
    /// The inode.
    #[serde(with = "as_text")]
    pub ino: u64,
    /// File, folder, link or other.
    pub kind: Kind,
    /// Permission bits.
    pub mode: u32,
    /// Length in bytes; of a link, that of its text.
    pub size: u64,
    /// When the content was last changed, in nanoseconds since 1970.
    #[serde(with = "as_text")]
    pub mtime_ns: i64,
    /// When the inode was made, where the file system says so: a number that is used again has another birth.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "as_moment")]
    pub born_ns: Option<i64>,
    /// The digest of the whole content, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
}

impl Identity {
    /// The same inode, whatever happened to it since.
    pub fn is_same_thing(&self, other: &Self) -> bool {
        let born = self.born_ns.is_none() || other.born_ns.is_none() || self.born_ns == other.born_ns;
        self.dev == other.dev && self.ino == other.ino && self.kind == other.kind && born
    }

    /// The same inode, and as far as can be seen unchanged. Of a folder only itself and its mode count: its time and size
    /// change with every step that is done inside it.
    pub fn is_unchanged(&self, other: &Self) -> bool {
        let content = self.kind == Kind::Folder || (self.size == other.size && self.mtime_ns == other.mtime_ns);
        let digest = self.sha256.is_none() || other.sha256.is_none() || self.sha256 == other.sha256;
        self.is_same_thing(other) && self.mode == other.mode && content && digest
    }
}

/// A name in a listing, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The path beneath the root.
    pub path: String,
    /// What it is.
    #[serde(flatten)]
    pub identity: Identity,
}

/// Whole numbers as decimal text.
mod as_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<T: Display, S: Serializer>(number: &T, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(number)
    }

    pub(super) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        String::deserialize(from)?.parse().map_err(|_| D::Error::custom("a whole number as text"))
    }
}

/// A moment in nanoseconds as decimal text, for where there may be none.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Moment(#[serde(with = "as_text")] i64);

mod as_moment {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Moment;

    #[expect(clippy::ref_option, reason = "serde hands the field over like this")]
    pub(super) fn serialize<S: Serializer>(moment: &Option<i64>, to: S) -> Result<S::Ok, S::Error> {
        moment.map(Moment).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
        Ok(Option::<Moment>::deserialize(from)?.map(|moment| moment.0))
    }
}
