//! Planning where files should go. Nothing is looked at or changed here: what was scanned goes in, moves come out, one at a time.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use globset::GlobSet;
use serde::{Deserialize, Serialize};

use super::entries::Entries;
use super::identity::{Identity, Kind};
use super::path::{self, DEPTH_MAX, NAME_MAX, PATH_MAX, RelPath, VERSION_CONTROL};
use super::withheld;

/// Rules at most.
const RULES_MAX: usize = 1_000;

/// Where files matching a glob go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Without a `/` it matches names anywhere.
    pub glob: String,
    /// The folder, beneath the one that is organised.
    pub folder: String,
}

/// By what files are told apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// By extension, lower case: `pdf`, and `no_ext` for those without.
    Extension,
    /// By the time of the last change, UTC: `2026/03`.
    Date,
    /// By length: `tiny` (under 10 kB), `small` (1 MB), `medium` (100 MB), `large` (1 GB), `huge`.
    Size,
    /// By rules; the first that matches counts, files that none matches stay.
    Rules(Vec<Rule>),
}

/// What to organise, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrganizeSpec {
    /// The folder; empty for the root.
    #[serde(default)]
    pub path: String,
    /// By what.
    pub how: How,
    /// Also files in folders beneath; otherwise only the folder's own.
    #[serde(default)]
    pub deep: bool,
    /// With `deep`: keep the folders that a file lies in beneath its new one, rather than put all files together.
    #[serde(default)]
    pub keep_folders: bool,
}

/// One planned move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Where it is.
    pub from: String,
    /// Where it goes.
    pub to: String,
    /// What it is.
    pub identity: Identity,
}

/// How many files were left where they are, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// They are where they belong already, or no rule speaks of them.
    pub in_place: u64,
    /// Hidden, or in a hidden folder or one of the system: version control, settings, the trash, audit files.
    pub hidden: u64,
    /// In a folder that is under version control: its files belong together.
    pub repository: u64,
    /// Links, devices and the like.
    pub not_files: u64,
    /// No name could be found for them.
    pub nameless: u64,
}

/// A folder that is to be organised, with all that lies in it. Its memory is what [`Entries`] take.
pub struct Organizer {
    entries: Entries,
    base: String,
    sorter: Sorter,
    /// Folders that are under version control.
    repositories: HashSet<String>,
    deep: bool,
    keep_folders: bool,
}

impl Organizer {
    /// Gets ready. `entries` must hold everything beneath the folder, also what is hidden: names that are taken are known
    /// from them.
    pub fn new(mut entries: Entries, spec: &OrganizeSpec) -> Result<Self, String> {
        let base = RelPath::parse(&spec.path)?.as_str().to_owned();
        if path::is_reserved(&base) {
            return Err("the folder belongs to the desk".to_owned());
        }
        let sorter = Sorter::new(&spec.how)?;
        entries.sort_within(&base);
        let repositories = entries.iter().filter_map(|(path, _)| repository(path)).filter(|folder| *folder != base).map(str::to_owned).collect();
        Ok(Self { entries, base, sorter, repositories, deep: spec.deep, keep_folders: spec.keep_folders })
    }

    /// The moves, which do not get in each other's way, in the order of their sources.
    pub fn moves(&self) -> Moves<'_> {
        Moves { of: self, at: 0, names: Names::new(&self.entries), left_out: LeftOut::default() }
    }
}

/// Moves, one after another.
pub struct Moves<'o> {
    of: &'o Organizer,
    at: usize,
    names: Names<'o>,
    left_out: LeftOut,
}

impl Moves<'_> {
    /// What stays, of what was looked at so far.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }
}

impl Iterator for Moves<'_> {
    type Item = Move;

    fn next(&mut self) -> Option<Move> {
        loop {
            let (path, identity) = self.of.entries.get(self.at)?;
            self.at += 1;
            if let Some(to) = self.place(path, &identity) {
                return Some(Move { from: path.to_owned(), to, identity });
            }
        }
    }
}

impl<'o> Moves<'o> {
    /// Where an entry goes, unless it stays.
    fn place(&mut self, path: &'o str, identity: &Identity) -> Option<String> {
        let of = self.of;
        let within = beneath(path, &of.base);
        if identity.kind == Kind::Folder || within.is_empty() || (!of.deep && within.contains('/')) {
            return None;
        }
        if within.split('/').any(|part| part.starts_with('.') || path::keeper(part).is_some()) {
            self.left_out.hidden += 1;
            return None;
        }
        if identity.kind != Kind::File {
            self.left_out.not_files += 1;
            return None;
        }
        if !of.repositories.is_empty() && folders(path).any(|folder| of.repositories.contains(folder)) {
            self.left_out.repository += 1;
            return None;
        }
        let (inside, name) = path::split(within).unwrap_or_default();
        let Some(class) = of.sorter.folder(within, name, identity) else {
            self.left_out.in_place += 1;
            return None;
        };
        let class_path = path::join(&of.base, &class);
        // What lies in its folder already stays, however deep.
        if path::lies_in(path, &class_path) && (of.keep_folders || path::join(&class_path, name) == path) {
            self.left_out.in_place += 1;
            return None;
        }
        let folder = self.names.folder(&if of.keep_folders { path::join(&class_path, inside) } else { class_path });
        let free = self.names.free(&folder, name);
        self.left_out.nameless += u64::from(free.is_none());
        free
    }
}

/// The rest of a path beneath a folder.
fn beneath<'a>(path: &'a str, folder: &str) -> &'a str {
    path.strip_prefix(folder).unwrap_or(path).trim_start_matches('/')
}

/// The folders that a path lies in, the outermost first.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

/// The folder that this entry shows to be under version control.
fn repository(entry: &str) -> Option<&str> {
    let (folder, name) = path::split(entry)?;
    VERSION_CONTROL.contains(&name).then_some(folder)
}

enum Sorter {
    Extension,
    Date,
    Size,
    Rules(GlobSet, Vec<String>),
}

impl Sorter {
    fn new(how: &How) -> Result<Self, String> {
        let How::Rules(rules) = how else {
            return Ok(match how {
                How::Date => Self::Date,
                How::Size => Self::Size,
                How::Extension | How::Rules(_) => Self::Extension,
            });
        };
        if rules.len() > RULES_MAX {
            return Err(format!("more than {RULES_MAX} rules"));
        }
        let globs: Vec<String> = rules.iter().map(|rule| rule.glob.clone()).collect();
        let mut folders = Vec::with_capacity(rules.len());
        for rule in rules {
            let folder = RelPath::parse(&rule.folder)?;
            if path::is_reserved(folder.as_str()) {
                return Err(format!("the folder `{}` belongs to the desk", folder.as_str()));
            }
            folders.push(folder.as_str().to_owned());
        }
        Ok(Self::Rules(withheld::set(&globs, true)?, folders))
    }

    fn folder(&self, within: &str, name: &str, identity: &Identity) -> Option<String> {
        match self {
            Self::Extension => Some(extension(name).unwrap_or_else(|| "no_ext".to_owned())),
            Self::Date => {
                let at = jiff::Timestamp::from_second(identity.mtime_ns.div_euclid(1_000_000_000)).unwrap_or_default();
                let date = at.to_zoned(jiff::tz::TimeZone::UTC).date();
                Some(format!("{:04}/{:02}", date.year(), date.month()))
            }
            Self::Size => Some(
                match identity.size {
                    0..10_000 => "tiny",
                    10_000..1_000_000 => "small",
                    1_000_000..100_000_000 => "medium",
                    100_000_000..1_000_000_000 => "large",
                    1_000_000_000.. => "huge",
                }
                .to_owned(),
            ),
            Self::Rules(globs, folders) => globs.matches(within).first().and_then(|first| folders.get(*first)).cloned(),
        }
    }
}

/// The extension of a name in small letters, if it has one that deserves the word.
pub fn extension(name: &str) -> Option<String> {
    let (stem, extension) = name.rsplit_once('.')?;
    (!stem.is_empty() && is_plain(extension)).then(|| extension.to_lowercase())
}

/// An extension that can name a folder: not half a sentence after a full stop.
fn is_plain(extension: &str) -> bool {
    !extension.is_empty() && extension.len() <= 20 && extension.chars().all(char::is_alphanumeric)
}

/// Names that are taken: by what is there, and by what the plan puts there. What is planned is held by folder and name, and the
/// name is mostly that of the source.
struct Names<'a> {
    entries: &'a Entries,
    folders: HashMap<String, Folder>,
    /// Those folders with all above them: what is not there yet, the plan makes.
    made: HashSet<String>,
    planned: HashSet<(u32, Cow<'a, str>)>,
    /// The number that was last tried for a name, so that many of one name do not try all of them again.
    tried: HashMap<(u32, &'a str), u32>,
    /// Folders whose name something else has.
    renamed: HashMap<String, String>,
}

/// A folder that something goes to.
#[derive(Clone, Copy)]
struct Folder {
    id: u32,
    /// Whether anything lies in it now.
    is_there: bool,
}

impl<'a> Names<'a> {
    fn new(entries: &'a Entries) -> Self {
        Self { entries, folders: HashMap::new(), made: HashSet::new(), planned: HashSet::new(), tried: HashMap::new(), renamed: HashMap::new() }
    }

    fn is_taken(&self, at: Folder, folder: &str, name: &str) -> bool {
        let path = path::join(folder, name);
        let is_there = at.is_there && self.entries.kind_of(&path).is_some();
        is_there || self.made.contains(&path) || self.planned.contains(&(at.id, Cow::Borrowed(name)))
    }

    /// Whether something that is no folder has this path, or will have it.
    fn is_file(&self, path: &str) -> bool {
        let (folder, name) = path::split(path).unwrap_or_default();
        let planned = || self.folders.get(folder).is_some_and(|at| self.planned.contains(&(at.id, Cow::Borrowed(name))));
        self.entries.kind_of(path).is_some_and(|kind| kind != Kind::Folder) || planned()
    }

    fn known(&mut self, folder: &str) -> Folder {
        if let Some(known) = self.folders.get(folder) {
            return *known;
        }
        let id = u32::try_from(self.folders.len()).unwrap_or(u32::MAX);
        let new = Folder { id, is_there: self.entries.has_beneath(folder) };
        self.folders.insert(folder.to_owned(), new);
        self.made.extend(folders(folder).chain([folder]).map(str::to_owned));
        new
    }

    /// A folder, or one like it if a file has its name.
    fn folder(&mut self, folder: &str) -> String {
        if let Some(known) = self.renamed.get(folder) {
            return known.clone();
        }
        let mut free = String::new();
        for part in folder.split('/').filter(|part| !part.is_empty()) {
            let wanted = path::join(&free, part);
            free = if self.is_file(&wanted) {
                (2..u32::MAX).map(|number| format!("{wanted} ({number})")).find(|path| !self.is_file(path)).unwrap_or(wanted)
            } else {
                wanted
            };
        }
        self.renamed.insert(folder.to_owned(), free.clone());
        free
    }

    /// A free name in a folder: `name.ext`, `name (2).ext` and so on.
    fn free(&mut self, folder: &str, name: &'a str) -> Option<String> {
        // Also where nothing comes of it, the folder keeps its name from now on.
        let at = self.known(folder);
        let wanted = path::join(folder, name);
        let depth = wanted.split('/').count();
        if depth > DEPTH_MAX || wanted.len() > PATH_MAX || name.len() > NAME_MAX {
            return None;
        }
        if !self.is_taken(at, folder, name) {
            self.planned.insert((at.id, Cow::Borrowed(name)));
            return Some(wanted);
        }
        let (stem, extension) = match name.rfind('.').filter(|at| *at > 0) {
            Some(at) => (name.get(..at)?, name.get(at..)?),
            None => (name, ""),
        };
        let mut number = self.tried.get(&(at.id, name)).copied().unwrap_or(1);
        let free = loop {
            number = number.checked_add(1)?;
            let end = format!(" ({number}){extension}");
            let room = NAME_MAX.checked_sub(end.len())?;
            let free = format!("{}{end}", stem.get(..stem.floor_char_boundary(room))?);
            if !self.is_taken(at, folder, &free) {
                break free;
            }
        };
        self.tried.insert((at.id, name), number);
        let path = path::join(folder, &free);
        self.planned.insert((at.id, Cow::Owned(free)));
        (path.len() <= PATH_MAX).then_some(path)
    }
}
