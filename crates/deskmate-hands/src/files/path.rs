//! Paths beneath a root: what a text must be like to be one, and the names that belong to the desk.

/// The longest path in bytes, as for the kernel.
pub const PATH_MAX: usize = 4095;
/// The longest name in bytes.
pub const NAME_MAX: usize = 255;
/// The deepest nesting of folders, for paths and for walks: each level of a walk holds a handle.
pub const DEPTH_MAX: usize = 128;

/// Where deleted things go, beneath the root.
pub const TRASH: &str = ".trash";
/// Where a copy of what was done is written, beneath the root.
pub const AUDIT_FILE: &str = ".deskmate-audit.jsonl";
/// Audit files, ours and the one of an earlier server: readable, but no step touches them.
pub const AUDIT_FILES: [&str; 2] = [AUDIT_FILE, ".coworker_audit.jsonl"];
/// Folders of version control.
pub const VERSION_CONTROL: [&str; 7] = [".git", ".hg", ".svn", ".bzr", ".jj", "_darcs", ".pijul"];
/// Folders that operating systems, file systems and file managers keep for themselves.
pub const SYSTEM: [&str; 16] = [
    "lost+found",
    "$RECYCLE.BIN",
    "System Volume Information",
    ".Trashes",
    ".Spotlight-V100",
    ".fseventsd",
    ".DocumentRevisions-V100",
    ".TemporaryItems",
    ".Trash",
    ".zfs",
    ".snapshots",
    ".snapshot",
    "@eaDir",
    "#recycle",
    ".AppleDouble",
    ".gvfs",
];

const TEMPORARY_START: &str = ".deskmate-";
const TEMPORARY_END: &str = ".tmp";
const ASIDE_END: &str = "-out";

/// A path beneath a root that keeps to the rules; empty for the root itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct RelPath(String);

impl RelPath {
    /// Reads a path. Empty parts and `.` are dropped; `..`, an absolute path, NUL and what is too long are refused.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > PATH_MAX {
            return Err("the path is longer than 4095 bytes");
        }
        if text.contains('\0') {
            return Err("the path holds a NUL");
        }
        if text.starts_with('/') {
            return Err("the path must be relative to the root");
        }
        let mut clean = String::with_capacity(text.len());
        let mut depth = 0;
        for part in text.split('/').filter(|part| !part.is_empty() && *part != ".") {
            if part == ".." {
                return Err("the path may not hold `..`");
            }
            if part.len() > NAME_MAX {
                return Err("a name is longer than 255 bytes");
            }
            depth += 1;
            if depth > DEPTH_MAX {
                return Err("the path is deeper than 128 folders");
            }
            push(&mut clean, part);
        }
        Ok(Self(clean))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The folder that it is in, and its name; none for the root itself.
    pub(super) fn split(&self) -> Option<(&str, &str)> {
        split(&self.0)
    }
}

/// Adds a name to a path in place.
pub(super) fn push(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(name);
}

/// A name within a folder.
pub(super) fn join(folder: &str, name: &str) -> String {
    let mut path = String::with_capacity(folder.len() + name.len() + 1);
    path.push_str(folder);
    push(&mut path, name);
    path
}

/// The folder and the name of a clean path; none for the root itself.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    match path.rsplit_once('/') {
        Some(parts) => Some(parts),
        None if path.is_empty() => None,
        None => Some(("", path)),
    }
}

/// Whether `path` is `folder` or lies in it.
pub(super) fn lies_in(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether the path lies in the trash. Upper and lower case are one, since on some file systems they are.
pub(super) fn in_trash(path: &str) -> bool {
    path.starts_with('.') && path.split('/').next().is_some_and(|first| same_name(first, TRASH))
}

/// A temporary file of ours: not listed, not readable, not changeable from outside.
pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY_START) && name.ends_with(TEMPORARY_END)
}

/// The name of a temporary file.
pub(super) fn temporary(tag: &str) -> String {
    format!("{TEMPORARY_START}{tag}{TEMPORARY_END}")
}

/// The temporary name of what is on its way to another device and not gone from here.
pub(super) fn set_aside(tag: &str) -> String {
    temporary(&format!("{tag}{ASIDE_END}"))
}

/// Whether a temporary name is that of what was set aside.
pub(super) fn is_set_aside(name: &str) -> bool {
    name.strip_suffix(TEMPORARY_END).is_some_and(|name| name.ends_with(ASIDE_END))
}

/// Whether the name is that of an audit file, or of one that was set aside: those have the moment behind it.
pub(super) fn is_audit(name: &str) -> bool {
    let moment = |end: &str| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit());
    let aside = name.rsplit_once('.').filter(|(_, end)| moment(end)).map_or(name, |(before, _)| before);
    name.starts_with('.') && AUDIT_FILES.iter().any(|audit| same_name(aside, audit))
}

/// What can't be looked at by its path: the trash has its own operations, and temporary files are nobody's business.
pub(super) fn is_ours(path: &str) -> bool {
    in_trash(path) || path.split('/').any(is_temporary)
}

/// What no step may name as its source or target.
pub(super) fn is_reserved(path: &str) -> bool {
    is_ours(path) || path.split('/').any(is_audit)
}

/// Whose a name is, if it is a folder that belongs to others than the people who keep files beside it: no step names anything
/// in it. Upper and lower case are one.
pub(super) fn keeper(name: &str) -> Option<&'static str> {
    let is_one_of = |names: &[&str]| names.iter().any(|one| same_name(name, one));
    if is_one_of(&VERSION_CONTROL) {
        return Some("belongs to version control, which keeps it by itself");
    }
    // What a desktop throws away on a drive that is not the home's own: `.Trash-1000`.
    let trash = name.get(..7).is_some_and(|start| same_name(start, ".Trash-"));
    (trash || is_one_of(&SYSTEM)).then_some("belongs to the operating system")
}

/// The same for whatever lies in a path.
pub(super) fn keeper_of(path: &str) -> Option<&'static str> {
    path.split('/').find_map(keeper)
}

fn same_name(a: &str, b: &str) -> bool {
    a.to_uppercase() == b.to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_clean_or_refused() {
        let clean = |text: &str| RelPath::parse(text).map(|path| path.as_str().to_owned());
        assert_eq!(clean("a//b/./c/").as_deref(), Ok("a/b/c"));
        assert_eq!(clean(".").as_deref(), Ok(""));
        for bad in ["/etc", "..", "a/../b", "a\0b", &"x".repeat(256), &"a/".repeat(129), &"a".repeat(5000)] {
            assert!(clean(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_the_desk_are_known_in_any_case() {
        assert!(is_reserved(".trash/files/x") && is_reserved(".TRASH") && is_reserved("a/.Deskmate-Audit.jsonl"));
        assert!(keeper_of("a/.GIT/config").is_some() && keeper_of("x/lost+found").is_some() && keeper_of(".trash-1000/files").is_some());
        assert!(keeper_of("git/.gitignore").is_none() && keeper_of(".github/x").is_none() && keeper_of("a/trash").is_none());
        assert!(is_reserved(".deskmate-audit.jsonl.1700000000000000") && is_reserved(".Deskmate-audit.JSONL.1") && !is_ours(".deskmate-audit.jsonl.1"));
        assert!(!is_reserved(".deskmate-audit.jsonl.bak") && !is_reserved(".deskmate-audit.jsonl.") && !is_reserved(".notes.1"));
        assert!(is_reserved("a/.deskmate-00.tmp") && is_ours(".tra\u{17f}h"));
        assert!(!is_reserved("a/.trash") && !is_reserved("trash") && !is_ours(".coworker_audit.jsonl"));
    }
}
