//! Writes text as it is found in a page: white space of any length is one space, blocks stand on lines of their own, and
//! at some length it is enough.

/// What comes between what was written and what comes next. Of several, the greatest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
    Paragraph,
}

/// A text that is being written.
pub(super) struct Writer {
    out: String,
    left: usize,
    truncated: bool,
    gap: Gap,
    /// What the next line begins with.
    prefix: String,
    /// In a cell of a table nothing was written yet: its blocks begin where the cell does.
    fresh_cell: bool,
}

impl Writer {
    pub(super) fn new(chars_max: usize) -> Self {
        Self { out: String::new(), left: chars_max, truncated: false, gap: Gap::None, prefix: String::new(), fresh_cell: false }
    }

    /// Adds words; white space between them is one space.
    pub(super) fn words(&mut self, text: &str) {
        for c in text.chars() {
            if c.is_whitespace() { self.gap(Gap::Space) } else { self.put(c) }
        }
    }

    /// Adds text as it is.
    pub(super) fn exactly(&mut self, text: &str) {
        for c in text.chars().filter(|c| *c != '\r') {
            if c == '\n' && self.out.is_empty() {
                continue;
            }
            self.put(c);
        }
    }

    /// What follows begins a line.
    pub(super) fn line(&mut self) {
        self.gap(Gap::Line);
    }

    /// What follows begins a paragraph.
    pub(super) fn paragraph(&mut self) {
        self.gap(Gap::Paragraph);
    }

    /// What follows begins a line with this, if something follows.
    pub(super) fn prefix(&mut self, prefix: &str) {
        self.line();
        self.prefix.push_str(prefix);
    }

    /// What a line would have begun with, if it had come.
    pub(super) fn forget_prefix(&mut self) {
        self.prefix.clear();
    }

    /// A new cell of a row.
    pub(super) fn cell(&mut self, first: bool) {
        if !first {
            self.gap = Gap::None;
            self.exactly(" | ");
        }
        self.fresh_cell = true;
    }

    /// The end of a row's cells.
    pub(super) fn row(&mut self) {
        self.fresh_cell = false;
        self.line();
    }

    /// How much is written.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// What was written since then.
    pub(super) fn since(&self, len: usize) -> &str {
        self.out.get(len..).unwrap_or_default().trim()
    }

    /// Whether nothing more is taken.
    pub(super) fn is_full(&self) -> bool {
        self.truncated
    }

    /// The text, and whether there was more.
    pub(super) fn finish(self) -> (String, bool) {
        (self.out.trim_end().to_owned(), self.truncated)
    }

    fn gap(&mut self, gap: Gap) {
        if !self.fresh_cell {
            self.gap = self.gap.max(gap);
        }
    }

    fn put(&mut self, c: char) {
        let gap = std::mem::replace(&mut self.gap, Gap::None);
        let between = match gap {
            _ if self.out.is_empty() => "",
            Gap::None => "",
            Gap::Space => " ",
            Gap::Line => "\n",
            Gap::Paragraph => "\n\n",
        };
        self.fresh_cell = false;
        // An empty cell at a row's end leaves a space behind.
        while between.starts_with('\n') && self.out.ends_with(' ') {
            self.out.pop();
            self.left += 1;
        }
        let prefix = std::mem::take(&mut self.prefix);
        for c in between.chars().chain(prefix.chars()).chain(std::iter::once(c)) {
            if self.left == 0 {
                self.truncated = true;
                return;
            }
            self.left -= 1;
            self.out.push(visible(c));
        }
    }
}

/// Control characters have no place in a text, and some do harm in a terminal or a database.
fn visible(c: char) -> char {
    if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c }
}
