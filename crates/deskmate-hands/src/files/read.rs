//! Reading a file, or a part of it, never more than a bound.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::digest::BLOCK;
use super::fault::{Code, Fault};
use super::identity::Identity;
use super::root::Root;

/// The most that one call reads, whatever is asked for.
pub const READ_MAX: u64 = 16 * 1024 * 1024;
/// The most that is passed over to find a line.
const SOUGHT_MAX: u64 = 256 * 1024 * 1024;
/// A NUL up to here makes a file binary, as for git.
const BINARY_SAMPLE: usize = 8_000;

/// Which part of a file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// From the first byte on.
    Whole,
    /// Bytes from an offset on.
    Bytes {
        /// The first byte.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// The first lines.
    Head(u64),
    /// The last lines.
    Tail(u64),
    /// Lines by number, the first one is 1, both ends included.
    Lines {
        /// The first line.
        from: u64,
        /// The last line.
        to: u64,
    },
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where in the file they begin.
    pub offset: u64,
    /// Set if the part that was asked for goes on beyond what is here because of the bound.
    pub truncated: bool,
    /// Whether the file looks like something other than text: a NUL among its first bytes or the bytes read.
    pub binary: bool,
    /// Where the file really lies, if a link led there.
    pub path: String,
    /// The file when it was opened.
    pub identity: Identity,
}

/// Reads a part of a file, at most `most` bytes of it and never more than [`READ_MAX`]. A link is followed if it stays
/// beneath the root.
pub fn read(root: &Root, path: &str, part: Part, most: u64) -> Result<Content, Fault> {
    let (file, place, identity) = root.look_at_file(root.path(path)?)?;
    let reader = Reader { file: file.as_fd(), size: identity.size, most: most.min(READ_MAX) };
    let cut = match part {
        Part::Whole => reader.bytes(0, u64::MAX),
        Part::Bytes { offset, length } => reader.bytes(offset, length),
        Part::Head(count) => reader.lines(1, count),
        Part::Lines { from, to } => reader.lines(from.max(1), to),
        Part::Tail(count) => reader.tail(count),
    };
    let cut = cut.map_err(|stopped| match stopped {
        Stopped::Errno(errno) => root.errno(place.as_str(), errno),
        Stopped::TooFar => root.fault(Code::TooLarge, place.as_str(), "the lines lie more than 256 MiB into the file; read it by bytes"),
    })?;
    let mut sample = vec![0; BINARY_SAMPLE];
    let sampled = fill(file.as_fd(), &mut sample, 0).map_err(|errno| root.errno(place.as_str(), errno))?;
    let binary = sample.get(..sampled).is_some_and(|sample| sample.contains(&0)) || cut.bytes.contains(&0);
    Ok(Content { bytes: cut.bytes, offset: cut.offset, truncated: cut.truncated, binary, path: place.as_str().to_owned(), identity })
}

struct Cut {
    bytes: Vec<u8>,
    offset: u64,
    truncated: bool,
}

enum Stopped {
    Errno(Errno),
    TooFar,
}

impl From<Errno> for Stopped {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

struct Reader<'a> {
    file: BorrowedFd<'a>,
    size: u64,
    most: u64,
}

impl Reader<'_> {
    fn bytes(&self, offset: u64, length: u64) -> Result<Cut, Stopped> {
        let wanted = length.min(self.size.saturating_sub(offset));
        let taken = wanted.min(self.most);
        let mut bytes = vec![0; usize::try_from(taken).unwrap_or_default()];
        let read = fill(self.file, &mut bytes, offset)?;
        bytes.truncate(read);
        Ok(Cut { truncated: wanted > taken, bytes, offset })
    }

    /// Lines `from..=to`, found by reading from the start in blocks.
    fn lines(&self, from: u64, to: u64) -> Result<Cut, Stopped> {
        let mut cut = Cut { bytes: Vec::new(), offset: 0, truncated: false };
        let mut block = vec![0; BLOCK];
        let (mut at, mut line) = (0_u64, 1_u64);
        while line <= to {
            if line < from && at > SOUGHT_MAX {
                return Err(Stopped::TooFar);
            }
            let read = fill(self.file, &mut block, at)?;
            let mut rest = block.get(..read).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            at += read as u64;
            while !rest.is_empty() && line <= to {
                let (this, next) = rest.split_at(memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1));
                if line < from {
                    cut.offset += this.len() as u64;
                } else {
                    let space = usize::try_from(self.most).unwrap_or_default().saturating_sub(cut.bytes.len());
                    cut.bytes.extend(this.iter().take(space));
                    if this.len() > space {
                        cut.truncated = true;
                        return Ok(cut);
                    }
                }
                line += u64::from(this.ends_with(b"\n"));
                rest = next;
            }
        }
        Ok(cut)
    }

    /// The last lines, found by reading backwards in blocks; of lines that are too long for the bound, their end.
    fn tail(&self, count: u64) -> Result<Cut, Stopped> {
        let mut start = self.size;
        let mut found = 0_u64;
        let mut block = vec![0; BLOCK];
        let floor = self.size.saturating_sub(self.most);
        'blocks: while start > floor && count > 0 {
            let begin = start.saturating_sub(BLOCK as u64).max(floor);
            let length = usize::try_from(start - begin).unwrap_or_default();
            let Some(space) = block.get_mut(..length) else { break };
            let read = fill(self.file, space, begin)?;
            for (index, byte) in space.iter().take(read).enumerate().rev() {
                let place = begin + index as u64;
                // A newline at the very end closes the last line, it does not begin another.
                if *byte == b'\n' && place + 1 < self.size {
                    found += 1;
                    if found == count {
                        start = place + 1;
                        break 'blocks;
                    }
                }
            }
            start = begin;
        }
        let truncated = count > 0 && found < count && start > 0;
        let mut bytes = vec![0; usize::try_from(self.size - start).unwrap_or_default()];
        let read = fill(self.file, &mut bytes, start)?;
        bytes.truncate(read);
        Ok(Cut { bytes, offset: start, truncated })
    }
}

/// Fills the space from an offset on; less only at the end of the file.
pub(super) fn fill(file: BorrowedFd<'_>, space: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while let Some(left) = space.get_mut(filled..).filter(|left| !left.is_empty()) {
        match rustix::io::pread(file, left, offset.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(filled)
}
