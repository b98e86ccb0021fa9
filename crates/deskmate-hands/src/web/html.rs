//! From HTML to text that reads well: headings, lists, tables and the targets of links stay; programs, styles and what is
//! hidden go.
//!
//! The page is read tag by tag and never becomes a tree: a tree can be made so deep that building it takes hours.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use url::Url;

use super::skip::{Skip, begins_skip};
use super::writer::Writer;

/// What a page says.
pub(super) struct Read {
    pub(super) title: Option<String>,
    pub(super) text: String,
    pub(super) truncated: bool,
}

/// How long one page may keep a processor busy; ordinary ones take a few milliseconds.
const TIME: Duration = Duration::from_secs(2);
/// How much is read between two looks at the clock.
const PIECE_CHARS: usize = 4_096;
/// Longer titles are cut.
const TITLE_CHARS: usize = 300;
/// Longer targets of links are cut.
const TARGET_CHARS: usize = 500;
/// Lists are set in no further than this.
const LISTS_SHOWN: usize = 8;

/// Text that is no page.
pub(super) fn plain(text: &str, chars_max: usize) -> Read {
    let mut writer = Writer::new(chars_max);
    writer.exactly(text);
    let (text, truncated) = writer.finish();
    Read { title: None, text, truncated }
}

/// Reads a page. Links are told relative to where it was found.
pub(super) fn read(html: &str, url: &Url, chars_max: usize) -> Read {
    let tokenizer = Tokenizer::new(Page(RefCell::new(State::new(url, chars_max))), TokenizerOpts::default());
    let begun = Instant::now();
    let mut rest = html;
    let mut cut = false;
    while !rest.is_empty() && !cut {
        let at = rest.char_indices().nth(PIECE_CHARS).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(at);
        rest = after;
        let queue = BufferQueue::default();
        queue.push_back(StrTendril::from(piece));
        while !queue.is_empty() {
            drop(tokenizer.feed(&queue));
        }
        cut = !rest.is_empty() && (begun.elapsed() > TIME || tokenizer.sink.0.borrow().writer.is_full());
    }
    if !cut {
        tokenizer.end();
    }
    let mut state = tokenizer.sink.0.into_inner();
    state.end_link();
    let title: String = state.title.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE_CHARS).collect();
    let (text, truncated) = state.writer.finish();
    Read { title: (!title.is_empty()).then_some(title), text, truncated: truncated || cut }
}

/// Takes tags and text as they come.
struct Page(RefCell<State>);

impl TokenSink for Page {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut state = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => state.text(&text),
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                state.start(&tag);
                return raw(&tag.name);
            }
            Token::TagToken(tag) => state.end(&tag.name),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// In these, what looks like a tag is none.
fn raw(name: &str) -> TokenSinkResult<()> {
    match name {
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" | "noscript" => TokenSinkResult::RawData(RawKind::Rawtext),
        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
        "plaintext" => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}

struct State {
    writer: Writer,
    base: Url,
    title: String,
    in_title: bool,
    /// What is being left out.
    skip: Option<Skip>,
    /// The lists that are open, and the next number of those that count.
    lists: Vec<Option<u64>>,
    /// Where the open link leads, and where its words began.
    link: Option<(String, usize)>,
    /// How many elements are open that keep white space as it is.
    exact: usize,
    first_cell: bool,
}

impl State {
    fn new(url: &Url, chars_max: usize) -> Self {
        let writer = Writer::new(chars_max);
        Self { writer, base: url.clone(), title: String::new(), in_title: false, skip: None, lists: Vec::new(), link: None, exact: 0, first_cell: true }
    }

    fn text(&mut self, text: &str) {
        if self.skip.is_some() {
            return;
        }
        if self.in_title {
            self.title.push_str(text);
        } else if self.exact > 0 {
            self.writer.exactly(text);
        } else {
            self.writer.words(text);
        }
    }

    fn start(&mut self, tag: &Tag) {
        if let Some(skip) = &mut self.skip {
            if !skip.start(&tag.name) {
                return;
            }
            self.skip = None;
        }
        if begins_skip(tag) {
            self.skip = Some(Skip::new(&tag.name));
            return;
        }
        let name: &str = &tag.name;
        match name {
            // A second title is a picture's or somebody's mistake.
            "title" => self.in_title = self.title.is_empty(),
            "base" => self.base = attribute(tag, "href").and_then(|href| self.base.join(href).ok()).unwrap_or_else(|| self.base.clone()),
            "a" => {
                self.end_link();
                self.link = attribute(tag, "href").and_then(|href| self.target(href)).map(|target| (target, self.writer.len()));
            }
            "img" => {
                if let Some(alt) = attribute(tag, "alt").map(str::trim).filter(|alt| !alt.is_empty()) {
                    self.writer.words(&format!("[image: {alt}]"));
                }
            }
            "br" => self.writer.line(),
            "hr" => {
                self.writer.paragraph();
                self.writer.words("---");
                self.writer.paragraph();
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.writer.paragraph();
                let level = name.bytes().last().map_or(1, |digit| usize::from(digit - b'0'));
                self.writer.prefix(&format!("{} ", "#".repeat(level)));
            }
            "ul" | "ol" => {
                self.block(name);
                let start = attribute(tag, "start").and_then(|start| start.trim().parse().ok()).unwrap_or(1);
                self.lists.push((name == "ol").then_some(start));
            }
            "li" => self.item(),
            "tr" => {
                self.writer.row();
                self.first_cell = true;
            }
            "td" | "th" => self.writer.cell(std::mem::take(&mut self.first_cell)),
            "pre" => {
                self.writer.paragraph();
                self.exact += 1;
            }
            _ => self.block(name),
        }
    }

    fn end(&mut self, name: &str) {
        if let Some(skip) = &mut self.skip {
            if !skip.end(name) {
                return;
            }
            let done = skip.is(name);
            self.skip = None;
            if done {
                return;
            }
        }
        match name {
            "title" => self.in_title = false,
            "a" => self.end_link(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.writer.forget_prefix();
                self.writer.paragraph();
            }
            "ul" | "ol" => {
                self.lists.pop();
                self.block(name);
            }
            "li" => self.writer.forget_prefix(),
            "pre" => {
                self.exact = self.exact.saturating_sub(1);
                self.writer.paragraph();
            }
            "td" | "th" => {}
            "tr" | "table" => {
                self.writer.row();
                self.block(name);
            }
            _ => self.block(name),
        }
    }

    /// What begins or ends something that stands for itself.
    fn block(&mut self, name: &str) {
        match name {
            "ul" | "ol" if !self.lists.is_empty() => self.writer.line(),
            "p" | "blockquote" | "figure" | "table" | "ul" | "ol" | "dl" => self.writer.paragraph(),
            "div" | "section" | "article" | "header" | "footer" | "main" | "nav" | "aside" | "figcaption" | "address" | "fieldset" | "form" | "details"
            | "summary" | "dt" | "dd" | "tr" | "caption" | "center" | "legend" | "option" | "body" | "head" | "html" | "hgroup" | "search" | "menu"
            | "optgroup" | "tbody" | "thead" | "tfoot" => self.writer.line(),
            _ => {}
        }
    }

    fn item(&mut self) {
        self.writer.line();
        self.writer.forget_prefix();
        let depth = self.lists.len().clamp(1, LISTS_SHOWN) - 1;
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "- ".to_owned(),
        };
        self.writer.prefix(&format!("{}{marker}", "  ".repeat(depth)));
    }

    /// Where a link leads, if it leads out of the page to something that can be read.
    fn target(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let target = self.base.join(href).ok().filter(|target| matches!(target.scheme(), "http" | "https" | "mailto" | "tel"))?;
        let target = target.as_str();
        let shown: String = target.chars().take(TARGET_CHARS).collect();
        Some(if shown.len() < target.len() { format!("{shown}…") } else { shown })
    }

    fn end_link(&mut self) {
        if let Some((target, begun)) = self.link.take() {
            let words = self.writer.since(begun);
            if !words.is_empty() && words != target {
                self.writer.words(&format!(" ({target})"));
            }
        }
    }
}

fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attrs.iter().find(|attribute| &*attribute.name.local == name).map(|attribute| &*attribute.value)
}
