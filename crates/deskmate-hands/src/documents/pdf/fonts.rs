//! The fonts of PDFs: DejaVu, which is part of the program, is free and covers Latin, Greek, Cyrillic, Armenian, Georgian,
//! Hebrew, Arabic and many signs; and for what it lacks, fonts of the system. Italics are upright letters, slanted: the real ones
//! would double the size.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use krilla::text::Font;
use parley::fontique::{Blob, Charmap, Collection, CollectionOptions, FontInfoOverride, SourceCache};
use parley::{FontContext, FontData, LayoutContext};
use unicode_segmentation::UnicodeSegmentation;

use super::system;

/// Text.
pub(super) const SANS: &str = "text";
/// Code.
pub(super) const MONO: &str = "code";
/// The font with the most characters once more, for those that the bold one and the one for code lack.
pub(super) const WIDEST: &str = "widest";

/// Fonts of the system, for what the others lack.
pub(super) const SYSTEM: [&str; 8] = ["system-1", "system-2", "system-3", "system-4", "system-5", "system-6", "system-7", "system-8"];

/// The library counts the bytes of a letter with all its marks in one byte.
const CLUSTER_BYTES_MAX: usize = 64;

/// The fonts, what is needed to set text in them, and what they were found to lack.
pub(super) struct Fonts {
    pub(super) context: FontContext,
    pub(super) layouts: LayoutContext<()>,
    /// Which of the characters that were set the fonts have.
    known: BTreeMap<char, bool>,
    embedded: HashMap<(u64, u32), Option<Font>>,
    covers: Vec<Charmap<'static>>,
    /// What the fonts of the system that were borrowed have.
    borrowed: BTreeSet<char>,
}

impl Fonts {
    pub(super) fn new() -> Self {
        let mut collection = Collection::new(CollectionOptions { shared: false, system_fonts: false });
        let (regular, mono) = (dejavu::sans::regular(), dejavu::sans_mono::regular());
        let mut covers = Vec::new();
        for (family, bytes) in [(SANS, regular), (SANS, dejavu::sans::bold()), (MONO, mono), (WIDEST, regular)] {
            let named = FontInfoOverride { family_name: Some(family), ..FontInfoOverride::default() };
            let registered = collection.register_fonts(Blob::new(Arc::new(bytes)), Some(named));
            let fonts = registered.into_iter().flat_map(|(_, fonts)| fonts);
            covers.extend(fonts.filter_map(|font| font.charmap_index().charmap(bytes)));
        }
        Self {
            context: FontContext { collection, source_cache: SourceCache::default() },
            layouts: LayoutContext::new(),
            known: BTreeMap::new(),
            embedded: HashMap::new(),
            covers,
            borrowed: BTreeSet::new(),
        }
    }

    /// Looks for fonts of the system for what the built-in ones lack of these texts.
    pub(super) fn borrow<'t>(&mut self, texts: impl Iterator<Item = &'t str>, folders: &[PathBuf]) {
        let lacking: BTreeSet<char> = texts.flat_map(str::chars).filter(|c| !c.is_ascii() && !self.is_built_in(*c)).collect();
        if lacking.is_empty() || folders.is_empty() {
            return;
        }
        let mut left = lacking.clone();
        for (family, bytes) in SYSTEM.iter().zip(system::borrow(folders, &mut left, SYSTEM.len())) {
            let named = FontInfoOverride { family_name: Some(family), ..FontInfoOverride::default() };
            self.context.collection.register_fonts(Blob::new(Arc::new(bytes)), Some(named));
        }
        self.borrowed = lacking.difference(&left).copied().collect();
    }

    fn is_built_in(&self, c: char) -> bool {
        self.covers.iter().any(|font| font.map(c).is_some_and(|glyph| glyph != 0))
    }

    /// The text as it can be set: what the fonts lack is remembered, and the replacement character stands for it.
    pub(super) fn settable(&mut self, text: &str) -> String {
        let mut set = String::with_capacity(text.len());
        for cluster in text.graphemes(true) {
            let begun = set.len();
            for c in cluster.chars() {
                // Marks without end on one letter are more than the library counts; a space without width parts them.
                if set.len() - begun >= CLUSTER_BYTES_MAX && (set.len() - begun) % CLUSTER_BYTES_MAX < c.len_utf8() {
                    set.push('\u{200B}');
                }
                match c {
                    '\t' => set.push_str("    "),
                    c if c.is_ascii() || self.has(c) => set.push(c),
                    _ => set.push(char::REPLACEMENT_CHARACTER),
                }
            }
        }
        set
    }

    fn has(&mut self, c: char) -> bool {
        if let Some(known) = self.known.get(&c) {
            return *known || c == char::REPLACEMENT_CHARACTER;
        }
        let has = self.borrowed.contains(&c) || self.is_built_in(c);
        self.known.insert(c, has);
        has || c == char::REPLACEMENT_CHARACTER
    }

    /// Notes letters for which no font had a sign when they were set.
    pub(super) fn lacks(&mut self, text: &str) {
        self.known.extend(text.chars().filter(|c| !c.is_control() && !c.is_whitespace()).map(|c| (c, false)));
    }

    /// What the fonts lacked of all that was set.
    pub(super) fn missing(self) -> Vec<char> {
        self.known.into_iter().filter(|(_, has)| !has).map(|(c, _)| c).collect()
    }

    /// The font as the writer of the file knows it.
    pub(super) fn embedded(&mut self, font: &FontData) -> Option<Font> {
        let (data, index) = (font.data.clone(), font.index);
        let load = || {
            let (bytes, _) = data.into_raw_parts();
            Font::new(bytes.into(), index)
        };
        self.embedded.entry((font.data.id(), index)).or_insert_with(load).clone()
    }
}
