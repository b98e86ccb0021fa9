//! Redirections and here-documents.

use super::parse::{Here, Parser, Refusal};
use super::syntax::{Direction, Redirect};
use super::words::{self, BREAKS};

/// Whether a redirection to this goes to an open file, and not into one of this name.
fn is_descriptor(text: &str) -> bool {
    let number = text.strip_suffix('-').unwrap_or(text);
    number.chars().all(|char| char.is_ascii_digit())
}

impl Parser {
    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, Refusal> {
        let before = self.at;
        let is_open = self.take("{");
        let mut of = String::new();
        while let Some(char) = self.peek().filter(|char| if is_open { *char != '}' && !BREAKS.contains(*char) } else { char.is_ascii_digit() }) {
            of.push(char);
            self.at += 1;
        }
        if of.is_empty() || is_open && !self.take("}") || !matches!(self.peek(), Some('<' | '>')) {
            self.at = before;
            of.clear();
        }
        // A file that stands for a command is a word.
        if self.starts("<(") || self.starts(">(") {
            self.at = before;
            return Ok(None);
        }
        if of.is_empty() {
            of.push(if self.starts("<") { '0' } else { '1' });
        }
        if self.starts("<<") && !self.starts("<<<") {
            self.at += 2;
            let strips_tabs = self.take("-");
            return self.here(strips_tabs, of).map(Some);
        }
        let direction = if self.take("<<<") {
            Direction::Here
        } else if self.take("&>>") || self.take("&>") || self.take(">>") || self.take(">|") || self.take("<>") {
            Direction::Write
        } else if self.take("<&") {
            Direction::Descriptor
        } else if self.take(">&") {
            // Into a file, unless a descriptor follows.
            if self.peek().is_some_and(|char| char.is_ascii_digit() || char == '-') { Direction::Descriptor } else { Direction::Write }
        } else if self.take(">") {
            Direction::Write
        } else if self.take("<") {
            Direction::Read
        } else {
            self.at = before;
            return Ok(None);
        };
        self.blanks();
        let word = self.word()?.ok_or("a redirection has no target")?;
        if direction == Direction::Descriptor && !is_descriptor(&word.shown()) {
            return Err("a descriptor is none");
        }
        Ok(Some(Redirect { direction, word, of }))
    }

    /// A here-document: its text stands after this line, and is read there now.
    fn here(&mut self, strips_tabs: bool, of: String) -> Result<Redirect, Refusal> {
        self.blanks();
        let start = self.at;
        let end = self.word()?.ok_or("a here-document has no end")?.literal().ok_or("the end of a here-document is not a plain word")?;
        let written = || self.text.iter().skip(start).take(self.at - start);
        if written().any(|char| matches!(char, '$' | '\n')) {
            return Err("the end of a here-document is not a plain word");
        }
        let is_quoted = written().any(|char| matches!(char, '\'' | '"' | '\\'));
        let after = self.at;
        while self.peek().is_some_and(|char| char != '\n') {
            self.at += 1;
        }
        let here = Here { end, strips_tabs, is_quoted, begins: self.at };
        self.at += 1;
        for earlier in std::mem::take(&mut self.here) {
            self.skip_here(&earlier);
            self.here.push(earlier);
        }
        let lines = self.skip_here(&here);
        self.at = after;
        if !is_quoted && lines.iter().any(|line| line.ends_with('\\')) {
            return Err("a line of a here-document is joined with the next one");
        }
        let mut text = lines.join("\n");
        text.push('\n');
        let word = if here.is_quoted { words::quoted(text) } else { self.inside(&text)? };
        self.here.push(here);
        Ok(Redirect { direction: Direction::Here, word, of })
    }

    /// Passes over the text of a here-document, and answers its lines.
    pub(super) fn skip_here(&mut self, here: &Here) -> Vec<String> {
        let mut lines = Vec::new();
        while self.at < self.text.len() {
            let line: String = self.text.iter().skip(self.at).take_while(|char| **char != '\n').collect();
            self.at = (self.at + line.chars().count() + 1).min(self.text.len());
            let line = if here.strips_tabs { line.trim_start_matches('\t').to_owned() } else { line };
            if line == here.end {
                break;
            }
            lines.push(line);
        }
        lines
    }
}
