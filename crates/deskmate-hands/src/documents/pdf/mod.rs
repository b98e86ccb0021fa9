//! Blocks to a PDF: A4 pages with margins and page numbers, in a font that is part of the file. Text is shaped and broken
//! into lines as Unicode says, from right to left where the script runs so. What the font lacks is reported, and the
//! replacement character (�) stands for it.
//!
//! Not supported: scripts that the font lacks (Chinese, Japanese, Korean, the scripts of India, most emoji), pictures,
//! hyphenation, and tags for screen readers.

mod flow;
mod fonts;
mod paint;
mod table;
mod text;

use super::DocumentError;
use super::blocks::Block;
use super::markdown::parse;
use flow::Flow;
use fonts::Fonts;

/// Pages that are made at once.
pub const PAGES_MAX: usize = 500;
/// Columns of a table that fit on a page.
pub const TABLE_COLUMNS_MAX: usize = 20;

/// A PDF and what could not be shown in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdf {
    /// The file.
    pub bytes: Vec<u8>,
    /// How many pages it has.
    pub pages: usize,
    /// The characters that the font lacks, each once, in Unicode's order. A � stands wherever one of them would.
    pub missing: Vec<char>,
}

/// A PDF from a text in a small part of Markdown.
pub fn pdf(text: &str) -> Result<Pdf, DocumentError> {
    let blocks = parse(text)?;
    let mut fonts = Fonts::new();
    let mut flow = Flow::new(&mut fonts);
    flow.blocks(&blocks, 0.0)?;
    let pages = flow.finish();
    let count = pages.len();
    let bytes = paint::paint(pages, &mut fonts, title(&blocks))?;
    Ok(Pdf { bytes, pages: count, missing: fonts.missing() })
}

/// The first heading is what viewers show as the file's name.
fn title(blocks: &[Block]) -> Option<String> {
    blocks.iter().find_map(|block| match block {
        Block::Heading { text, .. } => Some(text.iter().map(|span| span.text.as_str()).collect()),
        _ => None,
    })
}
