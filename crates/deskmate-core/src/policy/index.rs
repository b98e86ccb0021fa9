//! Finding the few rules that concern an act among many: patterns by hash instead of one after another.

use std::collections::HashMap;

use globset::{GlobBuilder, GlobMatcher};

use super::model::Match;
use super::{Act, Standing};

/// Numbers under patterns that are exact or end in `*`. A look-up costs one hash for the exact ones and one for each
/// length that a prefix has.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    exact: HashMap<Box<str>, Vec<u32>>,
    prefix: HashMap<Box<str>, Vec<u32>>,
    lengths: Vec<usize>,
}

impl Patterns {
    pub(super) fn add(&mut self, pattern: &str, number: u32) {
        let (map, key) = match pattern.strip_suffix('*') {
            None => (&mut self.exact, pattern),
            Some(prefix) => {
                if !self.lengths.contains(&prefix.len()) {
                    self.lengths.push(prefix.len());
                    self.lengths.sort_unstable();
                }
                (&mut self.prefix, prefix)
            }
        };
        map.entry(key.into()).or_default().push(number);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefix.is_empty()
    }

    /// Calls for every number whose pattern fits, shorter prefixes last.
    pub(super) fn find(&self, name: &str, mut found: impl FnMut(u32)) {
        if !self.exact.is_empty()
            && let Some(numbers) = self.exact.get(name)
        {
            numbers.iter().copied().for_each(&mut found);
        }
        for length in self.lengths.iter().rev() {
            if let Some(numbers) = name.get(..*length).and_then(|prefix| self.prefix.get(prefix)) {
                numbers.iter().copied().for_each(&mut found);
            }
        }
    }

    /// Whether any pattern fits.
    pub(super) fn fits(&self, name: &str) -> bool {
        let mut fits = false;
        self.find(name, |_| fits = true);
        fits
    }

    /// The numbers of the most specific pattern that fits: the exact one, else the longest prefix.
    pub(super) fn best(&self, name: &str) -> Option<(usize, &[u32])> {
        if let Some(numbers) = self.exact.get(name) {
            return Some((usize::MAX, numbers));
        }
        self.lengths.iter().rev().find_map(|length| {
            let numbers = name.get(..*length).and_then(|prefix| self.prefix.get(prefix))?;
            Some((*length, numbers.as_slice()))
        })
    }
}

/// One pattern of a `match`.
#[derive(Debug)]
enum Glob {
    Exact(Box<str>),
    Prefix(Box<str>),
    Pattern(GlobMatcher),
}

impl Glob {
    fn new(pattern: &str) -> Result<Self, String> {
        let plain = |text: &str| !text.contains(['*', '?', '[', ']', '{', '}', '\\']);
        if plain(pattern) {
            return Ok(Self::Exact(pattern.into()));
        }
        if let Some(prefix) = pattern.strip_suffix('*').filter(|prefix| plain(prefix)) {
            return Ok(Self::Prefix(prefix.into()));
        }
        let built = GlobBuilder::new(pattern).literal_separator(false).backslash_escape(true).build();
        built.map(|glob| Self::Pattern(glob.compile_matcher())).map_err(|error| error.kind().to_string())
    }

    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => **exact == *name,
            Self::Prefix(prefix) => name.starts_with(&**prefix),
            Self::Pattern(glob) => glob.is_match(name),
        }
    }

    /// The pattern as [`Patterns`] takes it, if it does.
    fn simple(&self) -> Option<String> {
        match self {
            Self::Exact(exact) => Some(exact.to_string()),
            Self::Prefix(prefix) => Some(format!("{prefix}*")),
            Self::Pattern(_) => None,
        }
    }
}

/// Whether a pattern of a `match` can be read.
pub(super) fn check_glob(pattern: &str) -> Result<(), String> {
    Glob::new(pattern).map(|_| ())
}

/// Whether a pattern of a `match` fits a text. One that cannot be read fits nothing.
pub(crate) fn fits_pattern(pattern: &str, text: &str) -> bool {
    Glob::new(pattern).is_ok_and(|glob| glob.fits(text))
}

/// What a `match` looks at, in the order of its lists.
const DIMENSIONS: usize = 5;

/// The values of an act in that order.
pub(super) fn values<'a>(act: &'a Act, standing: &'a Standing) -> [&'a str; DIMENSIONS] {
    [&act.kind, &act.tool, &act.domain, &standing.agent, &act.environment]
}

/// The `match` of a rule, compiled. An empty list fits everything.
#[derive(Debug, Default)]
struct Matcher([Vec<Glob>; DIMENSIONS]);

impl Matcher {
    fn new(rule: &Match) -> Result<Self, String> {
        let mut matcher = Self::default();
        for (globs, patterns) in matcher.0.iter_mut().zip(rule.lists()) {
            *globs = patterns.iter().map(|pattern| Glob::new(pattern)).collect::<Result<_, _>>()?;
        }
        Ok(matcher)
    }

    fn fits(&self, values: &[&str; DIMENSIONS]) -> bool {
        self.0.iter().zip(values).all(|(globs, value)| globs.is_empty() || globs.iter().any(|glob| glob.fits(value)))
    }
}

/// The rules of a policy by what they match.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// By the number of the rule; `None` for rules about fields.
    matchers: Vec<Option<Matcher>>,
    by: [Patterns; DIMENSIONS],
    /// Rules that have to be looked at one by one.
    rest: Vec<u32>,
}

impl Matches {
    /// Files rules under that part of their `match` which the fewest rules share.
    pub(super) fn new<'m>(rules: impl Iterator<Item = Option<&'m Match>>) -> Result<Self, String> {
        let matchers = rules.map(|rule| rule.map(Matcher::new).transpose()).collect::<Result<_, _>>()?;
        let mut filed = Self { matchers, ..Self::default() };
        let mut shared: [HashMap<String, usize>; DIMENSIONS] = Default::default();
        for matcher in filed.matchers.iter().flatten() {
            for (counts, globs) in shared.iter_mut().zip(&matcher.0) {
                for pattern in globs.iter().filter_map(Glob::simple) {
                    *counts.entry(pattern).or_default() += 1;
                }
            }
        }
        for (number, matcher) in (0_u32..).zip(&filed.matchers) {
            let Some(matcher) = matcher else { continue };
            let mut best: Option<(usize, usize, Vec<String>)> = None;
            for (dimension, (counts, globs)) in shared.iter().zip(&matcher.0).enumerate() {
                let Some(patterns) = globs.iter().map(Glob::simple).collect::<Option<Vec<_>>>().filter(|patterns| !patterns.is_empty()) else { continue };
                let company = patterns.iter().map(|pattern| counts.get(pattern).copied().unwrap_or(0)).sum();
                if best.as_ref().is_none_or(|(least, ..)| company < *least) {
                    best = Some((company, dimension, patterns));
                }
            }
            match best {
                None => filed.rest.push(number),
                Some((_, dimension, patterns)) => {
                    for pattern in patterns {
                        if let Some(index) = filed.by.get_mut(dimension) {
                            index.add(&pattern, number);
                        }
                    }
                }
            }
        }
        Ok(filed)
    }

    /// Calls for every rule that is about an act with these values; a rule can come twice.
    pub(super) fn find(&self, values: &[&str; DIMENSIONS], mut found: impl FnMut(u32)) {
        let mut fitting = |number: u32| {
            if self.matchers.get(number as usize).is_some_and(|matcher| matcher.as_ref().is_some_and(|matcher| matcher.fits(values))) {
                found(number);
            }
        };
        for (patterns, value) in self.by.iter().zip(values) {
            if !patterns.is_empty() {
                patterns.find(value, &mut fitting);
            }
        }
        self.rest.iter().copied().for_each(&mut fitting);
    }
}
