//! Where a page ended, for looks whose order is not that of paths. Callers give back what they were given, as text; a look only
//! compares with it and opens nothing that it names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::super::place;
use crate::limits::PATH_CURSOR_BYTES_MAX;
use crate::{Error, Result, check_text};

/// Behind a folder, where the largest come first. As text, since a size may pass what JSON counts exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SizesAfter {
    /// How much it holds.
    pub bytes: u64,
    /// Which, relative to the root.
    pub path: String,
}

/// Behind a part of the files with the same content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SameAfter {
    /// Behind a group, where those that waste most come first.
    Group {
        /// What it wastes.
        bytes: u64,
        /// Its digest.
        sha256: String,
        /// What all groups waste: it takes all of them to count that, so later pages repeat it.
        wasted: u64,
    },
    /// Behind a path of a group.
    Path {
        /// Bytes of each file.
        size: u64,
        /// Their digest.
        sha256: String,
        /// How many there are: repeated like the waste of all.
        count: u64,
        /// The path, relative to the root.
        path: String,
    },
}

impl fmt::Display for SizesAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.bytes, self.path)
    }
}

impl fmt::Display for SameAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group { bytes, sha256, wasted } => write!(f, "{bytes}:{sha256}:{wasted}"),
            Self::Path { size, sha256, count, path } => write!(f, "{size}:{sha256}:{count}:{path}"),
        }
    }
}

impl FromStr for SizesAfter {
    type Err = Error;

    fn from_str(cursor: &str) -> Result<Self> {
        check_text("cursor", cursor, PATH_CURSOR_BYTES_MAX)?;
        let (bytes, path) = cursor.split_once(':').ok_or_else(place::no_cursor)?;
        Ok(Self { bytes: number(bytes)?, path: path.to_owned() })
    }
}

impl FromStr for SameAfter {
    type Err = Error;

    fn from_str(cursor: &str) -> Result<Self> {
        check_text("cursor", cursor, PATH_CURSOR_BYTES_MAX)?;
        let parts: Vec<&str> = cursor.splitn(4, ':').collect();
        let [first, sha256, third, path @ ..] = parts.as_slice() else { return Err(place::no_cursor()) };
        if sha256.len() != 64 || !sha256.bytes().all(|one| matches!(one, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(place::no_cursor());
        }
        let (first, third, sha256) = (number(first)?, number(third)?, (*sha256).to_owned());
        Ok(match path {
            [path] => Self::Path { size: first, sha256, count: third, path: (*path).to_owned() },
            _ => Self::Group { bytes: first, sha256, wasted: third },
        })
    }
}

/// A number as it is written here, and in no other way.
fn number(text: &str) -> Result<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text).ok_or_else(place::no_cursor)
}

macro_rules! as_text {
    ($($cursor:ty),*) => {$(
        impl TryFrom<String> for $cursor {
            type Error = Error;

            fn try_from(text: String) -> Result<Self> {
                text.parse()
            }
        }

        impl From<$cursor> for String {
            fn from(cursor: $cursor) -> Self {
                cursor.to_string()
            }
        }
    )*};
}

as_text!(SizesAfter, SameAfter);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_anything_else_is_refused() {
        let sha256 = "0f".repeat(32);
        let sizes = SizesAfter { bytes: u64::MAX, path: "a:b/c\nd".into() };
        assert_eq!(sizes.to_string().parse::<SizesAfter>().unwrap(), sizes);
        let group = SameAfter::Group { bytes: 7, sha256: sha256.clone(), wasted: u64::MAX };
        let path = SameAfter::Path { size: 7, sha256: sha256.clone(), count: 3, path: ":a:b/c".into() };
        for one in [group, path] {
            let text = serde_json::to_value(&one).unwrap();
            assert_eq!(serde_json::from_value::<SameAfter>(text).unwrap(), one);
        }
        for bad in ["", ":", "7", "-1:a", "+7:a", "07:a", "18446744073709551616:a", "7:a\0b", "x:a"] {
            let error = bad.parse::<SizesAfter>().unwrap_err();
            assert_eq!((error.code, error.field.as_deref()), (crate::Code::Invalid, Some("cursor")), "{bad}");
        }
        for bad in ["7:a", "7:00:7", &format!("7:{}:7", sha256.to_uppercase()), &format!("7:{sha256}:"), &format!("7:{sha256}"), &format!("x:{sha256}:7:p")] {
            assert!(bad.parse::<SameAfter>().is_err(), "{bad}");
        }
        assert!(format!("7:{}", "x".repeat(PATH_CURSOR_BYTES_MAX)).parse::<SizesAfter>().is_err());
    }
}
