//! Puts blocks on pages, from top to bottom.

use std::rc::Rc;

use super::PAGES_MAX;
use super::fonts::Fonts;
use super::text::{Laid, Look, set, wrap};
use crate::documents::DocumentError;
use crate::documents::blocks::{Block, Side, Span};

/// A4, in points.
pub(super) const PAGE_WIDTH: f32 = 595.28;
pub(super) const PAGE_HEIGHT: f32 = 841.89;
/// What stays empty on each side. The page's number stands in the lower one.
pub(super) const MARGIN: f32 = 56.0;
const TOP: f32 = MARGIN;
const BOTTOM: f32 = PAGE_HEIGHT - MARGIN;
const RIGHT: f32 = PAGE_WIDTH - MARGIN;
/// What a page holds from top to bottom.
pub(super) const TEXT_HEIGHT: f32 = BOTTOM - TOP;

/// How far a list's items and a quote stand in.
const INDENT: f32 = 20.0;
/// However deep a list is nested, its lines keep this width.
const WIDTH_MIN: f32 = 160.0;
/// Between two blocks.
const GAP: f32 = 7.0;
/// What there must be room for below a heading, so that it does not stand alone at a page's end.
const BELOW_HEADING: f32 = 36.0;

/// Something on a page.
pub(super) enum Mark {
    /// A line of a text with its upper left corner.
    Line { laid: Rc<Laid>, line: usize, x: f32, y: f32 },
    /// A rectangle that is filled, in a shade from 0 (black) to 255 (white).
    Fill { x: f32, y: f32, width: f32, height: f32, shade: u8 },
}

/// What is on a page.
pub(super) type Page = Vec<Mark>;

/// The pages so far, and where the next thing goes.
pub(super) struct Flow<'a> {
    pub(super) fonts: &'a mut Fonts,
    pages: Vec<Page>,
    y: f32,
}

impl<'a> Flow<'a> {
    pub(super) fn new(fonts: &'a mut Fonts) -> Self {
        Self { fonts, pages: vec![Page::new()], y: TOP }
    }

    pub(super) fn finish(self) -> Vec<Page> {
        self.pages
    }

    /// Puts blocks one below another, so far in from the margin.
    pub(super) fn blocks(&mut self, blocks: &[Block], indent: f32) -> Result<(), DocumentError> {
        for (number, block) in blocks.iter().enumerate() {
            if number > 0 {
                self.y += GAP;
            }
            self.block(block, indent)?;
        }
        Ok(())
    }

    fn block(&mut self, block: &Block, indent: f32) -> Result<(), DocumentError> {
        let x = left(indent);
        match block {
            Block::Heading { level, text } => {
                let size = match level {
                    1 => 20.0,
                    2 => 16.0,
                    3 => 13.5,
                    4 => 12.0,
                    _ => 10.5,
                };
                let laid = self.laid(text, Look { size, bold: true }, RIGHT - x);
                if self.y > TOP {
                    self.y += size * 0.5;
                    let height: f32 = (0..laid.layout.len()).map(|line| laid.height(line)).sum();
                    self.room(height.min(TEXT_HEIGHT - BELOW_HEADING) + BELOW_HEADING)?;
                }
                self.lines(&laid, x)
            }
            Block::Paragraph(spans) => {
                let laid = self.laid(spans, Look::BODY, RIGHT - x);
                self.lines(&laid, x)
            }
            Block::Code(text) => self.code(text, x),
            Block::Quote(blocks) => {
                let from = (self.pages.len(), self.y);
                self.blocks(blocks, indent + INDENT)?;
                self.bar(from, x + INDENT * 0.4);
                Ok(())
            }
            Block::Rule => {
                self.room(GAP)?;
                self.fill(x, self.y + GAP / 2.0, RIGHT - x, 0.7, 160);
                self.y += GAP;
                Ok(())
            }
            Block::List { start, items } => self.list(*start, items, indent),
            Block::Table { sides, header, rows } => self.table(sides, header, rows, (x, RIGHT - x)),
        }
    }

    fn list(&mut self, start: Option<u64>, items: &[Vec<Block>], indent: f32) -> Result<(), DocumentError> {
        for (number, item) in items.iter().enumerate() {
            if number > 0 {
                self.y += GAP / 2.0;
            }
            let text = start.map_or_else(|| "•".to_owned(), |start| format!("{}.", start.saturating_add(number as u64)));
            let marker = self.laid(&[Span { text, ..Span::default() }], Look::BODY, PAGE_WIDTH);
            // A long number gets the room it needs.
            let inner = INDENT.max(marker.layout.width() + 5.0);
            let height = marker.height(0);
            self.room(height)?;
            self.mark(Mark::Line { laid: marker, line: 0, x: left(indent + INDENT) - INDENT, y: self.y });
            let (page, y) = (self.pages.len(), self.y);
            self.blocks(item, indent + inner)?;
            if (self.pages.len(), self.y) == (page, y) {
                self.y += height;
            }
        }
        Ok(())
    }

    fn code(&mut self, text: &str, x: f32) -> Result<(), DocumentError> {
        let span = Span { text: text.to_owned(), code: true, ..Span::default() };
        let laid = self.laid(&[span], Look { size: 9.5, bold: false }, RIGHT - x - 12.0);
        for line in 0..laid.layout.len() {
            let height = laid.height(line);
            self.room(height)?;
            self.fill(x, self.y, RIGHT - x, height, 243);
            self.mark(Mark::Line { laid: Rc::clone(&laid), line, x: x + 6.0, y: self.y });
            self.y += height;
        }
        Ok(())
    }

    /// A bar beside a quote, on every page that it stands on.
    fn bar(&mut self, (page, y): (usize, f32), x: f32) {
        let (last, end) = (self.pages.len(), self.y);
        for (number, marks) in (1..).zip(&mut self.pages).skip(page.saturating_sub(1)) {
            let top = if number == page { y } else { TOP };
            let bottom = if number == last { end } else { BOTTOM };
            if bottom > top {
                marks.push(Mark::Fill { x, y: top, width: 2.0, height: bottom - top, shade: 190 });
            }
        }
    }

    /// Text in lines of a width.
    pub(super) fn laid(&mut self, spans: &[Span], look: Look, width: f32) -> Rc<Laid> {
        let mut laid = set(self.fonts, spans, look);
        wrap(&mut laid, width, Side::Start);
        Rc::new(laid)
    }

    /// Puts all lines of a text one below another.
    fn lines(&mut self, laid: &Rc<Laid>, x: f32) -> Result<(), DocumentError> {
        for line in 0..laid.layout.len() {
            let height = laid.height(line);
            self.room(height)?;
            self.mark(Mark::Line { laid: Rc::clone(laid), line, x, y: self.y });
            self.y += height;
        }
        Ok(())
    }

    /// Begins a new page if this much does not fit on this one. What fits on no page stays where it is.
    pub(super) fn room(&mut self, height: f32) -> Result<bool, DocumentError> {
        if height <= self.left() || self.y <= TOP {
            return Ok(false);
        }
        self.turn()?;
        Ok(true)
    }

    /// Begins a new page.
    pub(super) fn turn(&mut self) -> Result<(), DocumentError> {
        if self.pages.len() >= PAGES_MAX {
            return Err(DocumentError::TooManyPages);
        }
        self.pages.push(Page::new());
        self.y = TOP;
        Ok(())
    }

    /// How much room this page has left.
    pub(super) fn left(&self) -> f32 {
        BOTTOM - self.y
    }

    pub(super) fn y(&self) -> f32 {
        self.y
    }

    pub(super) fn down(&mut self, by: f32) {
        self.y += by;
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        if let Some(page) = self.pages.last_mut() {
            page.push(mark);
        }
    }

    pub(super) fn fill(&mut self, x: f32, y: f32, width: f32, height: f32, shade: u8) {
        self.mark(Mark::Fill { x, y, width, height, shade });
    }
}

/// Where lines begin that are this far in.
fn left(indent: f32) -> f32 {
    (MARGIN + indent).min(RIGHT - WIDTH_MIN)
}
