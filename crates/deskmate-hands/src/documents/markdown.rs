//! Reads the small part of Markdown that documents are written in.

use pulldown_cmark::{Alignment, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::DocumentError;
use super::blocks::{Block, Cell, Side, Span};
use super::clean::clean;

/// Bytes of text that become one Word file or PDF.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Paragraphs, items, cells and changes of style in one text. Each costs memory far beyond its letters.
pub const PARTS_MAX: usize = 50_000;
/// How deep lists and quotes may be nested.
pub const DEPTH_MAX: usize = 12;

/// The blocks of a text.
pub(super) fn parse(text: &str) -> Result<Vec<Block>, DocumentError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(DocumentError::TooLong { max: TEXT_BYTES_MAX });
    }
    let text = clean(text);
    let mut reader = Reader { open: vec![Open::default()], ..Reader::default() };
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        reader.take(event)?;
        if reader.parts > PARTS_MAX {
            return Err(DocumentError::TooManyParts);
        }
    }
    Ok(reader.finish())
}

/// A quote, a list's item or the whole text, while it is read.
#[derive(Default)]
struct Open {
    blocks: Vec<Block>,
    /// The items so far, if this is a list.
    list: Option<(Option<u64>, Vec<Vec<Block>>)>,
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    spans: Vec<Span>,
    code: Option<String>,
    sides: Vec<Side>,
    header: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
    row: Vec<Cell>,
    parts: usize,
    bold: usize,
    italic: usize,
    /// Targets of the links and pictures that are open, and their words so far.
    targets: Vec<(String, String)>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>) -> Result<(), DocumentError> {
        match event {
            Event::Start(tag) => self.start(tag)?,
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) | Event::InlineMath(text) | Event::DisplayMath(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.text(&text, false),
            },
            Event::Code(text) => self.text(&text, true),
            Event::SoftBreak => self.text(" ", false),
            Event::HardBreak => self.text("\n", false),
            Event::Rule => {
                self.paragraph();
                self.push(Block::Rule);
            }
            Event::FootnoteReference(name) => self.text(&name, false),
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }, false),
        }
        Ok(())
    }

    fn start(&mut self, tag: Tag<'_>) -> Result<(), DocumentError> {
        match tag {
            Tag::Strong => self.bold += 1,
            Tag::Emphasis => self.italic += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.targets.push((dest_url.into_string(), String::new())),
            Tag::CodeBlock(_) | Tag::HtmlBlock => {
                self.paragraph();
                self.code = Some(String::new());
            }
            Tag::List(start) => {
                // A list in a tight item follows its words without a paragraph's end.
                self.paragraph();
                self.enter(Open { list: Some((start, Vec::new())), ..Open::default() })?;
            }
            Tag::BlockQuote(_) | Tag::Item => {
                self.paragraph();
                self.enter(Open::default())?;
            }
            Tag::Table(alignments) => {
                self.paragraph();
                self.sides = alignments.into_iter().map(side).collect();
            }
            Tag::Paragraph | Tag::Heading { .. } => self.paragraph(),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Emphasis => self.italic = self.italic.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => self.target(),
            TagEnd::Paragraph => self.paragraph(),
            TagEnd::Heading(level) => {
                let text = std::mem::take(&mut self.spans);
                self.push(Block::Heading { level: number(level), text });
            }
            TagEnd::CodeBlock | TagEnd::HtmlBlock => {
                if let Some(code) = self.code.take() {
                    self.push(Block::Code(code.trim_end_matches('\n').to_owned()));
                }
            }
            TagEnd::TableCell => {
                self.parts += 1;
                self.row.push(std::mem::take(&mut self.spans));
            }
            TagEnd::TableHead => self.header = std::mem::take(&mut self.row),
            TagEnd::TableRow => self.rows.push(std::mem::take(&mut self.row)),
            TagEnd::Table => {
                let (sides, header, rows) = (std::mem::take(&mut self.sides), std::mem::take(&mut self.header), std::mem::take(&mut self.rows));
                self.push(Block::Table { sides, header, rows });
            }
            TagEnd::BlockQuote(_) => {
                self.paragraph();
                if let Some(quote) = self.leave() {
                    self.push(Block::Quote(quote.blocks));
                }
            }
            TagEnd::Item => {
                self.paragraph();
                let item = self.leave();
                if let (Some(item), Some(Open { list: Some((_, items)), .. })) = (item, self.open.last_mut()) {
                    items.push(item.blocks);
                }
            }
            TagEnd::List(_) => {
                if let Some(Open { list: Some((start, items)), .. }) = self.leave() {
                    self.push(Block::List { start, items });
                }
            }
            _ => {}
        }
    }

    /// The words of a link are followed by where it leads, unless they say it themselves.
    fn target(&mut self) {
        let Some((target, words)) = self.targets.pop() else { return };
        if !target.is_empty() && words != target && Some(words.as_str()) != target.strip_prefix("mailto:") {
            self.text(&if words.is_empty() { target } else { format!(" ({target})") }, false);
        }
    }

    fn text(&mut self, text: &str, code: bool) {
        if let Some((_, words)) = self.targets.last_mut() {
            words.push_str(text);
        }
        let (bold, italic) = (self.bold > 0, self.italic > 0);
        match self.spans.last_mut() {
            Some(last) if last.bold == bold && last.italic == italic && last.code == code => last.text.push_str(text),
            _ => {
                self.parts += 1;
                self.spans.push(Span { text: text.to_owned(), bold, italic, code });
            }
        }
    }

    /// Ends the paragraph that is being read, if there is one.
    fn paragraph(&mut self) {
        if !self.spans.is_empty() {
            let spans = std::mem::take(&mut self.spans);
            self.push(Block::Paragraph(spans));
        }
    }

    fn push(&mut self, block: Block) {
        self.parts += 1;
        if let Some(open) = self.open.last_mut() {
            open.blocks.push(block);
        }
    }

    fn enter(&mut self, open: Open) -> Result<(), DocumentError> {
        self.parts += 1;
        // A list and its item count twice; the text itself is always open.
        if self.open.len() > 2 * DEPTH_MAX {
            return Err(DocumentError::TooDeep);
        }
        self.open.push(open);
        Ok(())
    }

    fn leave(&mut self) -> Option<Open> {
        if self.open.len() > 1 { self.open.pop() } else { None }
    }

    fn finish(mut self) -> Vec<Block> {
        self.paragraph();
        self.open.into_iter().next().map(|open| open.blocks).unwrap_or_default()
    }
}

fn number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

fn side(alignment: Alignment) -> Side {
    match alignment {
        Alignment::None | Alignment::Left => Side::Start,
        Alignment::Center => Side::Center,
        Alignment::Right => Side::End,
    }
}
