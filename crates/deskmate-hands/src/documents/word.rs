//! Blocks to a Word file. Headings are Word's own heading styles, so that its navigation and tables of contents find them;
//! lists are Word's lists, and can be edited as such.

use std::io::Cursor;

use docx_rs::{
    AbstractNumbering, AlignmentType, BreakType, Docx, Footer, IndentLevel, Level, LevelJc, LevelText, LineSpacing, NumberFormat, Numbering, NumberingId,
    PageNum, Paragraph, Run, RunFonts, Shading, SpecialIndentType, Start, Style, StyleType, Table, TableCell, TableRow, WidthType,
};

use super::DocumentError;
use super::blocks::{Block, Cell, Side, Span};
use super::markdown::parse;

/// Twentieths of a point by which each level of a list or a quote is further in.
const INDENT: i32 = 360;
/// A bullet or a number stands before its lines, not in them.
const HANGING: SpecialIndentType = SpecialIndentType::Hanging(INDENT);
/// The levels that Word's lists have.
const LEVELS: usize = 9;
/// What a page is wide between its margins, in twentieths of a point.
const TEXT_WIDTH: usize = 9_026;
/// The number of the list of bullets; numbered lists have one each, from the next on.
const BULLETS: usize = 1;
const MONOSPACE: &str = "Courier New";

/// A Word file from a text in a small part of Markdown.
pub fn word(text: &str) -> Result<Vec<u8>, DocumentError> {
    let blocks = parse(text)?;
    let mut writer = Writer { docx: empty(), paragraphs: 0, lists: BULLETS };
    let footer = writer.paragraph().align(AlignmentType::Center).add_page_num(PageNum::new());
    writer.docx = writer.docx.footer(Footer::new().add_paragraph(footer));
    writer.blocks(&blocks, Place::default());
    let mut bytes = Vec::new();
    writer.docx.pack(Cursor::new(&mut bytes)).map_err(|error| DocumentError::Unwritable(error.to_string()))?;
    Ok(bytes)
}

/// A file with the styles and the bullets, without content.
fn empty() -> Docx {
    let mut docx = Docx::new()
        .created_at("2000-01-01T00:00:00Z")
        .updated_at("2000-01-01T00:00:00Z")
        .page_size(11_906, 16_838)
        .default_size(22)
        .default_fonts(fonts("Calibri"))
        .default_line_spacing(LineSpacing::new().after(120))
        .add_abstract_numbering(levels(BULLETS, None))
        .add_numbering(Numbering::new(BULLETS, BULLETS));
    for (level, size) in [32, 28, 26, 24, 22, 22].into_iter().enumerate() {
        let number = level + 1;
        let style = Style::new(format!("Heading{number}"), StyleType::Paragraph)
            .name(format!("heading {number}"))
            .based_on("Normal")
            .next("Normal")
            .bold()
            .size(size)
            .outline_lvl(level)
            .line_spacing(LineSpacing::new().before(240).after(120));
        docx = docx.add_style(style);
    }
    docx
}

/// Where a block stands.
#[derive(Clone, Copy, Default)]
struct Place {
    /// How far in, in levels.
    level: usize,
    /// The list and its level, if the next paragraph begins an item.
    item: Option<(usize, usize)>,
    /// How many lists it stands in.
    lists: usize,
}

struct Writer {
    docx: Docx,
    paragraphs: u32,
    lists: usize,
}

impl Writer {
    /// A paragraph with an id of its own. The library counts them for the whole program, which would make two files differ.
    fn paragraph(&mut self) -> Paragraph {
        self.paragraphs += 1;
        Paragraph::new().id(format!("{:08x}", self.paragraphs))
    }

    fn blocks(&mut self, blocks: &[Block], place: Place) {
        let mut place = place;
        for block in blocks {
            self.block(block, place);
            place.item = None;
        }
        // An item without anything still has its bullet or its number.
        if place.item.is_some() {
            let paragraph = self.paragraph();
            self.add(placed(paragraph, place));
        }
    }

    fn block(&mut self, block: &Block, place: Place) {
        match block {
            Block::Heading { level, text } => {
                let paragraph = runs(self.paragraph().style(&format!("Heading{level}")).keep_next(true), text);
                self.add(placed(paragraph, place));
            }
            Block::Paragraph(spans) => {
                let paragraph = runs(self.paragraph(), spans);
                self.add(placed(paragraph, place));
            }
            Block::Code(text) => {
                let span = Span { text: text.clone(), code: true, ..Span::default() };
                let paragraph = runs(self.paragraph(), &[span]);
                self.add(placed(paragraph, place));
            }
            Block::Quote(blocks) => self.blocks(blocks, Place { level: place.level + 1, ..place }),
            Block::Rule => {
                let paragraph = self.paragraph().align(AlignmentType::Center).add_run(Run::new().add_text("⁂"));
                self.add(paragraph);
            }
            Block::List { start, items } => {
                let list = self.list(*start);
                let level = place.lists.min(LEVELS - 1);
                for item in items {
                    self.blocks(item, Place { level: place.level + 1, item: Some((list, level)), lists: place.lists + 1 });
                }
            }
            Block::Table { sides, header, rows } => self.table(sides, header, rows, place),
        }
    }

    /// The number of a list. Each that is numbered counts for itself.
    fn list(&mut self, start: Option<u64>) -> usize {
        let Some(start) = start else { return BULLETS };
        self.lists += 1;
        let docx = std::mem::take(&mut self.docx);
        // Markdown's numbers have nine digits at most.
        let start = usize::try_from(start).unwrap_or(1);
        self.docx = docx.add_abstract_numbering(levels(self.lists, Some(start))).add_numbering(Numbering::new(self.lists, self.lists));
        self.lists
    }

    fn table(&mut self, sides: &[Side], header: &[Cell], rows: &[Vec<Cell>], place: Place) {
        let width = TEXT_WIDTH / header.len().max(1);
        let mut written = vec![self.row(sides, header, width, true)];
        written.extend(rows.iter().map(|row| self.row(sides, row, width, false)));
        let table = Table::new(written).set_grid(vec![width; header.len()]).width(TEXT_WIDTH, WidthType::Dxa).indent(indent(place));
        self.docx = std::mem::take(&mut self.docx).add_table(table);
        // Without something between them, Word makes two tables one.
        let paragraph = self.paragraph();
        self.add(paragraph);
    }

    fn row(&mut self, sides: &[Side], cells: &[Cell], width: usize, header: bool) -> TableRow {
        let cells = cells.iter().zip(sides).map(|(spans, side)| {
            let spans: Vec<Span> = spans.iter().map(|span| Span { bold: span.bold || header, ..span.clone() }).collect();
            let paragraph = match side {
                Side::Start => self.paragraph(),
                Side::Center => self.paragraph().align(AlignmentType::Center),
                Side::End => self.paragraph().align(AlignmentType::End),
            };
            let cell = TableCell::new().width(width, WidthType::Dxa).add_paragraph(runs(paragraph, &spans));
            if header { cell.shading(Shading::new().fill("EEEEEE")) } else { cell }
        });
        TableRow::new(cells.collect()).cant_split()
    }

    fn add(&mut self, paragraph: Paragraph) {
        self.docx = std::mem::take(&mut self.docx).add_paragraph(paragraph);
    }
}

/// The paragraph with its bullet or as far in as it belongs.
fn placed(paragraph: Paragraph, place: Place) -> Paragraph {
    match place.item {
        Some((list, level)) => paragraph.numbering(NumberingId::new(list), IndentLevel::new(level)).indent(Some(indent(place)), Some(HANGING), None, None),
        None if place.level > 0 => paragraph.indent(Some(indent(place)), None, None, None),
        None => paragraph,
    }
}

fn indent(place: Place) -> i32 {
    i32::try_from(place.level).unwrap_or_default().saturating_mul(INDENT)
}

/// The levels of a list: bullets, or numbers from `start`.
fn levels(id: usize, start: Option<usize>) -> AbstractNumbering {
    (0..LEVELS).fold(AbstractNumbering::new(id), |list, level| {
        let (format, text) = if start.is_some() { ("decimal", format!("%{}.", level + 1)) } else { ("bullet", "•".to_owned()) };
        let left = i32::try_from(level + 1).unwrap_or_default().saturating_mul(INDENT);
        let level = Level::new(level, Start::new(start.unwrap_or(1)), NumberFormat::new(format), LevelText::new(text), LevelJc::new("left"));
        list.add_level(level.indent(Some(left), Some(HANGING), None, None))
    })
}

fn runs(paragraph: Paragraph, spans: &[Span]) -> Paragraph {
    spans.iter().fold(paragraph, |paragraph, span| paragraph.add_run(run(span)))
}

fn run(span: &Span) -> Run {
    let mut run = Run::new();
    for (number, line) in span.text.split('\n').enumerate() {
        if number > 0 {
            run = run.add_break(BreakType::TextWrapping);
        }
        for (number, piece) in line.split('\t').enumerate() {
            if number > 0 {
                run = run.add_tab();
            }
            if !piece.is_empty() {
                run = run.add_text(piece);
            }
        }
    }
    if span.bold {
        run = run.bold();
    }
    if span.italic {
        run = run.italic();
    }
    if span.code {
        run = run.fonts(fonts(MONOSPACE));
    }
    run
}

fn fonts(name: &str) -> RunFonts {
    RunFonts::new().ascii(name).hi_ansi(name).cs(name).east_asia(name)
}
