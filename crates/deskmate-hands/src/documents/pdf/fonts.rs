//! The fonts that are part of every PDF: DejaVu, which is free and covers Latin, Greek, Cyrillic, Armenian, Georgian,
//! Hebrew, Arabic and many signs. Italics are its upright letters, slanted: the real ones would double the size.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use krilla::text::Font;
use parley::fontique::{Blob, Charmap, Collection, CollectionOptions, FontInfoOverride, SourceCache};
use parley::{FontContext, FontData, LayoutContext};
use unicode_segmentation::UnicodeSegmentation;

/// Text.
pub(super) const SANS: &str = "text";
/// Code.
pub(super) const MONO: &str = "code";
/// The font with the most characters once more, for those that the bold one and the one for code lack.
pub(super) const WIDEST: &str = "widest";

/// The library counts the bytes of a letter with all its marks in one byte.
const CLUSTER_BYTES_MAX: usize = 64;

/// The fonts, what is needed to set text in them, and what they were found to lack.
pub(super) struct Fonts {
    pub(super) context: FontContext,
    pub(super) layouts: LayoutContext<()>,
    /// Which of the characters that were set the fonts have.
    known: BTreeMap<char, bool>,
    embedded: HashMap<u64, Option<Font>>,
    covers: Vec<Charmap<'static>>,
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
        }
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
        let covers = &self.covers;
        let has = *self.known.entry(c).or_insert_with(|| covers.iter().any(|font| font.map(c).is_some_and(|glyph| glyph != 0)));
        has || c == char::REPLACEMENT_CHARACTER
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
        self.embedded.entry(font.data.id()).or_insert_with(load).clone()
    }
}
