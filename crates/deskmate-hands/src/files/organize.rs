//! Planning where files should go. Nothing is looked at or changed here: what was scanned goes in, moves come out.

use std::collections::{HashMap, HashSet};

use globset::GlobSet;
use serde::{Deserialize, Serialize};

use super::identity::{Identity, Kind};
use super::path::{self, DEPTH_MAX, NAME_MAX, PATH_MAX, RelPath, VERSION_CONTROL};
use super::withheld;

/// Rules at most.
const RULES_MAX: usize = 1_000;

/// Something that was scanned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The path beneath the root.
    pub path: String,
    /// What it is.
    pub identity: Identity,
}

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

/// A plan: moves that do not get in each other's way, in the order of their sources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The moves.
    pub moves: Vec<Move>,
    /// What stays.
    pub left_out: LeftOut,
}

/// Plans. `entries` must hold everything beneath the folder, also what is hidden: names that are taken are known from them.
pub fn organize(entries: impl IntoIterator<Item = Found>, spec: &OrganizeSpec) -> Result<Plan, String> {
    let base = RelPath::parse(&spec.path)?;
    if path::is_reserved(base.as_str()) {
        return Err("the folder belongs to the desk".to_owned());
    }
    let sorter = Sorter::new(&spec.how)?;
    let mut entries: Vec<Found> = entries.into_iter().filter(|entry| path::lies_in(&entry.path, base.as_str())).collect();
    entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let repositories: HashSet<&str> = entries.iter().filter_map(|entry| repository(&entry.path)).filter(|folder| *folder != base.as_str()).collect();
    let mut plan = Plan::default();
    let mut names = Names::new(&entries);
    for entry in &entries {
        let within = beneath(&entry.path, base.as_str());
        if entry.identity.kind == Kind::Folder || within.is_empty() || (!spec.deep && within.contains('/')) {
            continue;
        }
        if within.split('/').any(|part| part.starts_with('.') || path::keeper(part).is_some()) {
            plan.left_out.hidden += 1;
        } else if entry.identity.kind != Kind::File {
            plan.left_out.not_files += 1;
        } else if !repositories.is_empty() && folders(&entry.path).any(|folder| repositories.contains(folder)) {
            plan.left_out.repository += 1;
        } else {
            place(&mut plan, &mut names, &sorter, entry, base.as_str(), spec.keep_folders);
        }
    }
    Ok(plan)
}

fn place(plan: &mut Plan, names: &mut Names<'_>, sorter: &Sorter, entry: &Found, base: &str, keep_folders: bool) {
    let within = beneath(&entry.path, base);
    let (inside, name) = path::split(within).unwrap_or_default();
    let Some(class) = sorter.folder(within, name, &entry.identity) else {
        plan.left_out.in_place += 1;
        return;
    };
    let class_path = path::join(base, &class);
    // What lies in its folder already stays, however deep.
    if path::lies_in(&entry.path, &class_path) && (keep_folders || path::join(&class_path, name) == entry.path) {
        plan.left_out.in_place += 1;
        return;
    }
    let folder = names.folder(&class_path);
    let folder = if keep_folders && !inside.is_empty() { path::join(&folder, inside) } else { folder };
    match names.free(&folder, name) {
        Some(to) => plan.moves.push(Move { from: entry.path.clone(), to, identity: entry.identity }),
        None => plan.left_out.nameless += 1,
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

/// Names that are taken: by what is there, and by what the plan puts there.
struct Names<'a> {
    there: HashMap<&'a str, Kind>,
    planned: HashSet<String>,
    /// The number that was last tried for a name, so that many of one name do not try all of them again.
    tried: HashMap<String, u32>,
    /// Folders whose name something else has.
    renamed: HashMap<String, String>,
}

impl<'a> Names<'a> {
    fn new(entries: &'a [Found]) -> Self {
        let there = entries.iter().map(|entry| (entry.path.as_str(), entry.identity.kind)).collect();
        Self { there, planned: HashSet::new(), tried: HashMap::new(), renamed: HashMap::new() }
    }

    fn is_taken(&self, path: &str) -> bool {
        self.there.contains_key(path) || self.planned.contains(path)
    }

    /// A folder, or one like it if a file has its name.
    fn folder(&mut self, folder: &str) -> String {
        if let Some(known) = self.renamed.get(folder) {
            return known.clone();
        }
        let mut free = String::new();
        for part in folder.split('/').filter(|part| !part.is_empty()) {
            let is_file = |path: &str| self.there.get(path).is_some_and(|kind| *kind != Kind::Folder) || self.planned.contains(path);
            let wanted = path::join(&free, part);
            free = if is_file(&wanted) {
                (2..u32::MAX).map(|number| format!("{wanted} ({number})")).find(|path| !is_file(path)).unwrap_or(wanted)
            } else {
                wanted
            };
        }
        self.renamed.insert(folder.to_owned(), free.clone());
        free
    }

    /// A free name in a folder: `name.ext`, `name (2).ext` and so on.
    fn free(&mut self, folder: &str, name: &str) -> Option<String> {
        let wanted = path::join(folder, name);
        let depth = wanted.split('/').count();
        if depth > DEPTH_MAX || wanted.len() > PATH_MAX || name.len() > NAME_MAX {
            return None;
        }
        if !self.is_taken(&wanted) {
            self.planned.insert(wanted.clone());
            return Some(wanted);
        }
        let (stem, extension) = match name.rfind('.').filter(|at| *at > 0) {
            Some(at) => (name.get(..at)?, name.get(at..)?),
            None => (name, ""),
        };
        let mut number = self.tried.get(&wanted).copied().unwrap_or(1);
        let free = loop {
            number = number.checked_add(1)?;
            let end = format!(" ({number}){extension}");
            let room = NAME_MAX.checked_sub(end.len())?;
            let stem = stem.get(..stem.floor_char_boundary(room))?;
            let path = path::join(folder, &format!("{stem}{end}"));
            if !self.is_taken(&path) {
                break path;
            }
        };
        self.tried.insert(wanted, number);
        self.planned.insert(free.clone());
        (free.len() <= PATH_MAX).then_some(free)
    }
}
