//! What a text consists of, whatever it was written as and whatever it becomes.

/// One thing after another, down the page.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    /// A heading and how deep it is, from 1 to 6.
    Heading { level: u8, text: Vec<Span> },
    /// Text that wraps.
    Paragraph(Vec<Span>),
    /// A list; numbered from `start`, if there is one.
    List { start: Option<u64>, items: Vec<Vec<Block>> },
    /// A table. Every row has as many cells as the header, and each column a side.
    Table { sides: Vec<Side>, header: Vec<Cell>, rows: Vec<Vec<Cell>> },
    /// Lines that are shown as they are.
    Code(String),
    /// What somebody else said.
    Quote(Vec<Block>),
    /// A line across the page.
    Rule,
}

/// Where the text of a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Where reading begins.
    Start,
    Center,
    End,
}

/// What stands in a cell of a table.
pub(super) type Cell = Vec<Span>;

/// A piece of text that looks the same throughout. A line break in it is a line break.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) code: bool,
}
