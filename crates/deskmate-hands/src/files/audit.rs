//! The audit file in a root: a copy of what the record says was done there, for whoever looks at the folder and not at the
//! desk. Steps never touch it; only here is it written, and only at its end.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};

use rustix::fs::{Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::fault::{Code, Fault};
use super::identity::Kind;
use super::path::AUDIT_FILE;
use super::root::Root;
use super::sys;

/// The longest line that is looked for at the end.
const LINE_MAX: u64 = 64 * 1024;
const NOT_OWN: &str = "it is not a file of its own any more";
/// To add to a file; one that is not there is made. Should something else be there by now, opening it does not wait.
const TO_ADD: OFlags =
    OFlags::RDWR.union(OFlags::CREATE).union(OFlags::APPEND).union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// How the audit file ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditEnd {
    /// There is none, or nothing is in it.
    Nothing,
    /// With this line.
    Line(String),
    /// With something that is no whole line of text: it was cut, or somebody else wrote it.
    Unreadable,
}

/// How the audit file of a root ends.
pub fn audit_end(root: &Root) -> Result<AuditEnd, Fault> {
    let handle = match sys::open_beneath(root.folder(), AUDIT_FILE, sys::FILE) {
        Ok(handle) => handle,
        Err(Errno::NOENT) => return Ok(AuditEnd::Nothing),
        Err(Errno::LOOP) => return Ok(AuditEnd::Unreadable),
        Err(errno) => return Err(root.errno(AUDIT_FILE, errno)),
    };
    let mut file = File::from(handle);
    if !is_own(&file) {
        return Ok(AuditEnd::Unreadable);
    }
    let failed = |_| root.fault(Code::Io, AUDIT_FILE, "it could not be read");
    let length = file.seek(SeekFrom::End(0)).map_err(failed)?;
    file.seek(SeekFrom::Start(length.saturating_sub(LINE_MAX))).map_err(failed)?;
    let mut end = Vec::new();
    file.take(LINE_MAX).read_to_end(&mut end).map_err(failed)?;
    if end.is_empty() {
        return Ok(AuditEnd::Nothing);
    }
    let whole = end.strip_suffix(b"\n").map(|lines| lines.rsplit(|byte| *byte == b'\n').next().unwrap_or(lines));
    Ok(whole.and_then(|line| String::from_utf8(line.to_vec()).ok()).map_or(AuditEnd::Unreadable, AuditEnd::Line))
}

/// The audit file of a root from its beginning, some lines at a time.
pub struct AuditLines {
    file: BufReader<File>,
    length: u64,
    read: u64,
}

/// Opens the audit file of a root for reading; `None` if there is none.
pub fn audit_lines(root: &Root) -> Result<Option<AuditLines>, Fault> {
    let handle = match sys::open_beneath(root.folder(), AUDIT_FILE, sys::FILE) {
        Ok(handle) => handle,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(root.fault(Code::Changed, AUDIT_FILE, NOT_OWN)),
        Err(errno) => return Err(root.errno(AUDIT_FILE, errno)),
    };
    let file = File::from(handle);
    if !is_own(&file) {
        return Err(root.fault(Code::Changed, AUDIT_FILE, NOT_OWN));
    }
    let length = file.metadata().map_or(0, |found| found.len());
    Ok(Some(AuditLines { file: BufReader::new(file), length, read: 0 }))
}

impl AuditLines {
    /// How much of it was read, in hundredths.
    pub fn percent(&self) -> u8 {
        u8::try_from(self.read.saturating_mul(100).checked_div(self.length).unwrap_or(100).min(100)).unwrap_or(100)
    }

    /// The next lines, at most so many; none at the end. One that is too long, no text or not whole is empty.
    pub fn some(&mut self, most: usize) -> Result<Vec<String>, Fault> {
        let failed = |_| Fault::new(Code::Io, "", AUDIT_FILE, "it could not be read");
        let mut lines = Vec::new();
        while lines.len() < most {
            let mut line = Vec::new();
            let read = self.file.by_ref().take(LINE_MAX).read_until(b'\n', &mut line).map_err(failed)?;
            if read == 0 {
                break;
            }
            self.read += read as u64;
            let whole = line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
            lines.push(whole.unwrap_or_default().to_owned());
        }
        Ok(lines)
    }
}

/// Adds whole lines to the audit file of a root, and brings them to the disk.
pub fn add_to_audit(root: &Root, lines: &str) -> Result<(), Fault> {
    root.for_writing()?;
    let handle = rustix::fs::openat(root.folder(), AUDIT_FILE, TO_ADD, Mode::RUSR | Mode::WUSR).map_err(|errno| root.errno(AUDIT_FILE, errno))?;
    let mut file = File::from(handle);
    if !is_own(&file) {
        return Err(root.fault(Code::Changed, AUDIT_FILE, NOT_OWN));
    }
    file.write_all(lines.as_bytes()).and_then(|()| file.sync_data()).map_err(|error| match error.raw_os_error() {
        Some(errno) => root.errno(AUDIT_FILE, Errno::from_raw_os_error(errno)),
        None => root.fault(Code::Io, AUDIT_FILE, "it could not be written"),
    })
}

/// Gives the audit file of a root another name, so that a new one can begin, and answers that name. What is in it stays.
pub fn set_audit_aside(root: &Root, at_us: i64) -> Result<String, Fault> {
    root.for_writing()?;
    let name = format!("{AUDIT_FILE}.{at_us}");
    let renamed = rustix::fs::renameat_with(root.folder(), AUDIT_FILE, root.folder(), name.as_str(), RenameFlags::NOREPLACE);
    renamed.map(|()| name).map_err(|errno| root.errno(AUDIT_FILE, errno))
}

/// Whether it is a plain file that has no second name, which could lie outside of the root.
fn is_own(file: &File) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    sys::look_at(file.as_fd()).is_ok_and(|found| found.kind == Kind::File) && file.metadata().is_ok_and(|found| found.nlink() == 1)
}
