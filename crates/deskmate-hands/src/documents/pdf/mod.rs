//! Blocks to a PDF: A4 pages with margins and page numbers, in a font that is part of the file. Text is shaped and broken
//! into lines as Unicode says, from right to left where the script runs so. What the built-in font lacks, such as Chinese,
//! Japanese and Korean, is taken from fonts of the system; what no font has is reported, and the replacement character (�)
//! stands for it.
//!
//! Not supported: emoji in colours, pictures, hyphenation, and tags for screen readers.

mod flow;
mod fonts;
mod paint;
mod system;
mod table;
mod text;

use std::path::PathBuf;

use super::DocumentError;
use super::blocks::{Block, Span};
use super::markdown::parse;
use flow::Flow;
use fonts::Fonts;
pub use system::font_folders;

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
    /// The characters that no font has, each once, in Unicode's order. A � stands wherever one of them would.
    pub missing: Vec<char>,
}

/// A PDF from a text in a small part of Markdown. Fonts for what the built-in ones lack are looked for in these folders.
pub fn pdf(text: &str, folders: &[PathBuf]) -> Result<Pdf, DocumentError> {
    let blocks = parse(text)?;
    let mut fonts = Fonts::new();
    let mut texts = Vec::new();
    gather(&blocks, &mut texts);
    fonts.borrow(texts.into_iter(), folders);
    let mut flow = Flow::new(&mut fonts);
    flow.blocks(&blocks, 0.0)?;
    let pages = flow.finish();
    let count = pages.len();
    let bytes = paint::paint(pages, &mut fonts, title(&blocks))?;
    Ok(Pdf { bytes, pages: count, missing: fonts.missing() })
}

/// All texts of blocks.
fn gather<'b>(blocks: &'b [Block], texts: &mut Vec<&'b str>) {
    let of = |span: &'b Span| span.text.as_str();
    for block in blocks {
        match block {
            Block::Heading { text, .. } | Block::Paragraph(text) => texts.extend(text.iter().map(of)),
            Block::Table { header, rows, .. } => texts.extend(header.iter().chain(rows.iter().flatten()).flatten().map(of)),
            Block::Code(text) => texts.push(text),
            Block::Quote(inner) => gather(inner, texts),
            Block::List { items, .. } => items.iter().for_each(|item| gather(item, texts)),
            Block::Rule => {}
        }
    }
}

/// The first heading is what viewers show as the file's name.
fn title(blocks: &[Block]) -> Option<String> {
    blocks.iter().find_map(|block| match block {
        Block::Heading { text, .. } => Some(text.iter().map(|span| span.text.as_str()).collect()),
        _ => None,
    })
}
