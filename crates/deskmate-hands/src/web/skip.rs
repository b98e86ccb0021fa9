//! Leaves out parts of a page until they end. HTML lets many elements end without saying so; as much of its rules is kept
//! here as is needed to find the end of something hidden.

use html5ever::tokenizer::Tag;

/// What is never part of the text, with everything in it.
const DROPPED: [&str; 16] = [
    "script", "style", "noscript", "template", "iframe", "object", "svg", "math", "canvas", "audio", "video", "select", "datalist", "textarea", "noembed",
    "noframes",
];
/// What has no end.
const VOID: [&str; 14] = ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];
/// What holds elements that end when the next one begins.
const HOLDERS: [&str; 7] = ["ul", "ol", "dl", "table", "select", "menu", "body"];
/// What ends a paragraph by beginning.
const BLOCKS: [&str; 30] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "center",
    "details",
    "dialog",
    "div",
    "dl",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "ul",
];

/// Whether an element is left out: because of what it is, or because it is hidden.
pub(super) fn begins_skip(tag: &Tag) -> bool {
    let name: &str = &tag.name;
    if VOID.contains(&name) || (tag.self_closing && matches!(name, "svg" | "math")) {
        return false;
    }
    let is_hidden = tag.attrs.iter().any(|attribute| match &*attribute.name.local {
        "hidden" => true,
        "aria-hidden" => attribute.value.trim().eq_ignore_ascii_case("true"),
        "style" => {
            let style: String = attribute.value.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
            style.contains("display:none") || style.contains("visibility:hidden")
        }
        _ => false,
    });
    let is_closed = name == "dialog" && !tag.attrs.iter().any(|attribute| &*attribute.name.local == "open");
    // A page that hides itself whole shows itself with a program later.
    (is_hidden && !matches!(name, "html" | "body" | "title")) || is_closed || DROPPED.contains(&name)
}

/// An element that is left out, until it ends.
pub(super) struct Skip {
    name: String,
    /// Elements of the same name within it.
    same: usize,
    /// Lists, tables and the like within it.
    holders: usize,
}

impl Skip {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), same: 0, holders: 0 }
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// Whether a start tag ends it, because the two cannot be in each other.
    pub(super) fn start(&mut self, name: &str) -> bool {
        let ends = self.holders == 0
            && match self.name.as_str() {
                "p" => BLOCKS.contains(&name),
                "li" | "option" | "tr" => self.is(name),
                "dt" | "dd" => matches!(name, "dt" | "dd"),
                "td" | "th" => matches!(name, "td" | "th" | "tr"),
                _ => false,
            };
        if HOLDERS.contains(&name) {
            self.holders += 1;
        }
        if self.is(name) {
            self.same += 1;
        }
        ends
    }

    /// Whether an end tag ends it: its own, or that of what holds it.
    pub(super) fn end(&mut self, name: &str) -> bool {
        if self.is(name) {
            let last = self.same == 0;
            self.same = self.same.saturating_sub(1);
            self.holders = self.holders.saturating_sub(usize::from(HOLDERS.contains(&name)));
            return last;
        }
        if HOLDERS.contains(&name) {
            let held = matches!(self.name.as_str(), "p" | "li" | "option" | "dt" | "dd" | "td" | "th" | "tr");
            if held && self.holders == 0 {
                return true;
            }
            self.holders = self.holders.saturating_sub(1);
        }
        false
    }
}
