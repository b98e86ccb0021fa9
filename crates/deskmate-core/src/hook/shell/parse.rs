//! The grammar of command lines, as POSIX has it and bash extends it. A line that does not follow it is refused, never
//! guessed at; how deep it nests and how much of it is read is bounded.

use super::syntax::{Command, Part, Pipeline, Word, evaluates};
use super::words::{BREAKS, names_variables};

/// How deep commands and words may nest.
const DEPTH_MAX: usize = 32;
/// How many commands and words all levels have together.
const NODES_MAX: usize = 4_000;

/// Why a line is refused.
pub(super) type Refusal = &'static str;

/// Which grammar a line is read in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grammar {
    /// With what bash and zsh add.
    Extended,
    /// Of a shell that may have none of that: it reads the same characters as other commands.
    Posix,
}

/// Reads a line.
pub(super) fn parse(line: &str, grammar: Grammar) -> Result<Vec<Pipeline>, Refusal> {
    if line.contains('\0') {
        return Err("a character stands in it that some shells leave out");
    }
    Parser { text: line.chars().collect(), at: 0, depth: 0, nodes: 0, here: Vec::new(), grammar }.whole()
}

/// Whether a character is one that some shells take for a blank and others for a part of a word.
pub(super) fn is_doubtful(char: char) -> bool {
    char.is_control() && !matches!(char, '\t' | '\n')
}

/// Where in a line the reader is.
pub(super) struct Parser {
    pub(super) text: Vec<char>,
    pub(super) at: usize,
    depth: usize,
    nodes: usize,
    /// Here-documents whose text follows after this line.
    pub(super) here: Vec<Here>,
    pub(super) grammar: Grammar,
}

/// A here-document that was announced.
pub(super) struct Here {
    /// Where its text ends.
    pub(super) end: String,
    pub(super) strips_tabs: bool,
    pub(super) is_quoted: bool,
    /// The end of the line that its text follows.
    pub(super) begins: usize,
}

/// Words that end a list of commands.
const ENDS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac"];

impl Parser {
    pub(super) fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    pub(super) fn starts(&self, what: &str) -> bool {
        what.chars().enumerate().all(|(ahead, char)| self.peek_at(ahead) == Some(char))
    }

    pub(super) fn take(&mut self, what: &str) -> bool {
        let starts = self.starts(what);
        if starts {
            self.at += what.chars().count();
        }
        starts
    }

    /// One more thing on a deeper level.
    pub(super) fn enter(&mut self) -> Result<(), Refusal> {
        self.depth += 1;
        self.count()?;
        if self.depth > DEPTH_MAX { Err("it nests too deep") } else { Ok(()) }
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn count(&mut self) -> Result<(), Refusal> {
        self.nodes += 1;
        if self.nodes > NODES_MAX { Err("it has too many parts") } else { Ok(()) }
    }

    /// Whether an escaped line end stands here that parts no characters which mean something else together.
    pub(super) fn joins_lines(&self) -> bool {
        let is_apart = |char: Option<&char>| char.is_none_or(|char| matches!(char, ' ' | '\t' | '\n'));
        let before = self.at.checked_sub(1).and_then(|at| self.text.get(at));
        self.starts("\\\n") && (is_apart(before) || is_apart(self.text.get(self.at + 2)))
    }

    /// Passes over blanks, escaped line ends and comments; not over line ends.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.joins_lines() => self.at += 2,
                Some('#') => {
                    while self.peek().is_some_and(|char| char != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// Passes over line ends and blanks, and reads the here-documents that begin after a line end.
    fn lines(&mut self) -> Result<(), Refusal> {
        loop {
            self.blanks();
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.line_end()?;
        }
    }

    fn line_end(&mut self) -> Result<(), Refusal> {
        // Their text was taken when they were announced, at the first line end after that: it must be this one.
        if self.here.iter().any(|here| here.begins != self.at) {
            return Err("a line that announces a here-document goes on in the next one");
        }
        self.at += 1;
        for here in std::mem::take(&mut self.here) {
            self.skip_here(&here);
        }
        Ok(())
    }

    /// No text of a here-document is still to come. Shells differ in where it stands if something else begins or ends before.
    pub(super) fn no_here(&self) -> Result<(), Refusal> {
        if self.here.is_empty() { Ok(()) } else { Err("a here-document does not begin where its command ends") }
    }

    /// Commands to the end of the text.
    fn whole(&mut self) -> Result<Vec<Pipeline>, Refusal> {
        let list = self.list(&[])?;
        self.no_here()?;
        if self.at < self.text.len() { Err("something stands where no command can") } else { Ok(list) }
    }

    /// Commands until one of these words, a closing parenthesis or brace, or the end.
    pub(super) fn list(&mut self, ends: &[&str]) -> Result<Vec<Pipeline>, Refusal> {
        self.enter()?;
        let mut list = Vec::new();
        loop {
            self.lines()?;
            if self.peek().is_none_or(|char| char == ')') || self.starts(";;") || self.starts(";&") || self.at_end_word(ends) {
                break;
            }
            list.push(self.pipeline()?);
            self.blanks();
            if self.starts(";;") || self.starts(";&") {
                break;
            }
            if self.take("&&") || self.take("||") {
                self.lines()?;
                if self.peek().is_none() {
                    return Err("a command is missing");
                }
            } else if !(self.take(";") || self.take("&")) && self.peek() != Some('\n') {
                break;
            }
        }
        self.leave();
        Ok(list)
    }

    /// Whether a word stands here that ends the list.
    fn at_end_word(&self, ends: &[&str]) -> bool {
        ends.iter().any(|end| self.at_word(end))
    }

    /// Whether exactly this word stands here.
    fn at_word(&self, word: &str) -> bool {
        self.starts(word) && self.peek_at(word.chars().count()).is_none_or(|next| BREAKS.contains(next))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_there = self.at_word(word);
        if is_there {
            self.at += word.chars().count();
        }
        is_there
    }

    fn expect_word(&mut self, word: &'static str) -> Result<(), Refusal> {
        self.lines()?;
        if self.take_word(word) { Ok(()) } else { Err("a compound command has no end") }
    }

    fn pipeline(&mut self) -> Result<Pipeline, Refusal> {
        let mut pipeline = Pipeline::default();
        loop {
            self.lines()?;
            while self.take_word("!") || self.take_word("time") || self.take_word("coproc") {
                self.blanks();
                while self.take_word("-p") {
                    self.blanks();
                }
            }
            pipeline.commands.push(self.command()?);
            self.blanks();
            if self.starts("||") || !(self.take("|&") || self.take("|")) {
                return Ok(pipeline);
            }
        }
    }

    fn command(&mut self) -> Result<Command, Refusal> {
        self.enter()?;
        let command = self.any_command();
        self.leave();
        command
    }

    fn any_command(&mut self) -> Result<Command, Refusal> {
        self.blanks();
        if self.starts("((") {
            return self.arithmetic();
        }
        if self.take("(") {
            let body = self.list(&[])?;
            self.lines()?;
            return if self.take(")") { self.compound(vec![body], Vec::new(), true) } else { Err("a parenthesis has no end") };
        }
        if self.take_word("{") {
            let body = self.list(&["}"])?;
            self.expect_word("}")?;
            return self.compound(vec![body], Vec::new(), false);
        }
        if self.take_word("if") {
            return self.conditional();
        }
        if self.take_word("while") || self.take_word("until") {
            let condition = self.list(&["do"])?;
            self.expect_word("do")?;
            let body = self.list(&["done"])?;
            self.expect_word("done")?;
            return self.compound(vec![condition, body], Vec::new(), false);
        }
        if self.take_word("for") || self.take_word("select") {
            return self.repeat();
        }
        if self.take_word("case") {
            return self.cases();
        }
        if self.take_word("[[") {
            return self.test();
        }
        if self.take_word("function") {
            self.blanks();
            self.word()?.ok_or("a function has no name")?;
            self.blanks();
            if self.take("(") {
                self.blanks();
                if !self.take(")") {
                    return Err("a function takes no list");
                }
            }
            return self.function();
        }
        if ENDS.iter().any(|end| self.at_word(end)) || self.at_word("}") {
            return Err("a word that ends a command stands alone");
        }
        self.simple()
    }

    /// What follows a compound command: redirections.
    fn compound(&mut self, bodies: Vec<Vec<Pipeline>>, words: Vec<Word>, is_apart: bool) -> Result<Command, Refusal> {
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(Command::Compound { bodies, words, redirects, is_apart, sets: None }),
            }
        }
    }

    fn function(&mut self) -> Result<Command, Refusal> {
        self.lines()?;
        Ok(Command::Function { body: Box::new(self.command()?) })
    }

    fn conditional(&mut self) -> Result<Command, Refusal> {
        let mut bodies = vec![self.list(&["then"])?];
        self.expect_word("then")?;
        loop {
            bodies.push(self.list(&["elif", "else", "fi"])?);
            self.lines()?;
            if self.take_word("elif") {
                bodies.push(self.list(&["then"])?);
                self.expect_word("then")?;
            } else if !self.take_word("else") {
                self.expect_word("fi")?;
                return self.compound(bodies, Vec::new(), false);
            }
        }
    }

    fn repeat(&mut self) -> Result<Command, Refusal> {
        self.blanks();
        let (mut words, mut name) = (Vec::new(), None);
        if self.starts("((") {
            let Command::Compound { words: counted, .. } = self.arithmetic()? else { return Err("a loop has no bounds") };
            words.extend(counted);
        } else {
            name = Some(self.word()?.ok_or("a loop has no name")?.shown());
            self.lines()?;
            if self.take_word("in") {
                self.blanks();
                while let Some(word) = self.word()? {
                    words.push(word);
                    self.blanks();
                }
            }
        }
        self.blanks();
        self.take(";");
        self.lines()?;
        let (open, close) = if self.take_word("{") { ("", "}") } else { ("do", "done") };
        if !open.is_empty() {
            self.expect_word("do")?;
        }
        let body = self.list(&[close])?;
        self.expect_word(if close == "}" { "}" } else { "done" })?;
        let mut command = self.compound(vec![body], words, false)?;
        if let Command::Compound { sets, .. } = &mut command {
            *sets = name;
        }
        Ok(command)
    }

    fn cases(&mut self) -> Result<Command, Refusal> {
        self.blanks();
        let mut words = vec![self.word()?.ok_or("a case has no subject")?];
        self.lines()?;
        if !self.take_word("in") {
            return Err("a case has no patterns");
        }
        let mut bodies = Vec::new();
        loop {
            self.lines()?;
            if self.take_word("esac") {
                return self.compound(bodies, words, false);
            }
            self.take("(");
            loop {
                self.blanks();
                words.push(self.word()?.ok_or("a case has an empty pattern")?);
                self.blanks();
                if !self.take("|") {
                    break;
                }
            }
            if !self.take(")") {
                return Err("a pattern of a case has no end");
            }
            bodies.push(self.list(&["esac"])?);
            self.lines()?;
            let more = self.take(";;&") || self.take(";;") || self.take(";&");
            if !more && !self.at_word("esac") {
                return Err("a case has no end");
            }
        }
    }

    /// `[[ … ]]`: words until its end. What they print or read is looked at, the rest compares.
    fn test(&mut self) -> Result<Command, Refusal> {
        self.only_extended()?;
        let mut words = Vec::new();
        // Where a shell does not know it, another command stands behind `||` and in the next line, unless a parenthesis stands where
        // none can, so that it reads none of it.
        let (mut may_run, mut begins, mut is_refused) = (false, false, false);
        loop {
            self.blanks();
            if self.peek() == Some('\n') {
                (may_run, begins) = (true, true);
            }
            self.lines()?;
            if self.take_word("]]") {
                if evaluates(&words) {
                    words.push(Word { parts: vec![Part::Evaluated] });
                }
                return self.compound(Vec::new(), words, false);
            }
            if self.take("||") || self.take("|") {
                (may_run, begins) = (true, true);
                continue;
            }
            if self.take("&&") {
                begins = may_run;
                continue;
            }
            let is_channel = self.starts("<(") || self.starts(">(");
            if self.take("(") {
                self.blanks();
                is_refused |= !begins && self.peek() != Some(')');
                continue;
            }
            if self.take(")") || self.take("< ") {
                continue;
            }
            if !is_channel && (self.starts("<") || self.starts(">")) {
                return Err("some shells see a redirection here");
            }
            let word = self.word()?.ok_or("a test has no end")?;
            let text = word.shown();
            if begins && !is_refused && !text.starts_with('-') && text != "!" && word.is_named() {
                return Err("some shells run this as a command");
            }
            begins &= text == "!";
            words.push(word);
        }
    }

    /// Refuses what only bash and zsh know, where another shell may read it.
    pub(super) fn only_extended(&self) -> Result<(), Refusal> {
        if self.grammar == Grammar::Extended { Ok(()) } else { Err("this shell may read it as other commands") }
    }

    fn simple(&mut self) -> Result<Command, Refusal> {
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            if words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                assignments.push(assignment);
                continue;
            }
            let Some(word) = self.word()? else { break };
            words.push(word);
            if words.len() == 1 && redirects.is_empty() && assignments.is_empty() && self.empty_list() {
                return self.function();
            }
        }
        if words.is_empty() && assignments.is_empty() && redirects.is_empty() {
            return Err("a command is missing");
        }
        Ok(Command::Simple { assignments, words, redirects })
    }

    /// `()` after a name: a function follows.
    fn empty_list(&mut self) -> bool {
        let before = self.at;
        self.blanks();
        if self.take("(") {
            self.blanks();
            if self.take(")") {
                return true;
            }
        }
        self.at = before;
        false
    }

    /// `NAME=value` before a command.
    fn assignment(&mut self) -> Result<Option<(String, Word)>, Refusal> {
        let mut ahead = 0;
        while self.peek_at(ahead).is_some_and(|char| char == '_' || char.is_ascii_alphabetic() || (ahead > 0 && char.is_ascii_digit())) {
            ahead += 1;
        }
        let name_end = ahead;
        if ahead > 0 && self.peek_at(ahead) == Some('[') {
            while self.peek_at(ahead).is_some_and(|char| !BREAKS.contains(char) && !matches!(char, ']' | '$' | '`' | '\'' | '"' | '\\')) {
                ahead += 1;
            }
            if self.peek_at(ahead) != Some(']') {
                return Ok(None);
            }
            ahead += 1;
        }
        if self.peek_at(ahead) == Some('+') {
            ahead += 1;
        }
        if name_end == 0 || self.peek_at(ahead) != Some('=') {
            return Ok(None);
        }
        let mut name: String = self.text.iter().skip(self.at).take(name_end).collect();
        // What stands in brackets behind a name is arithmetic.
        if self.text.iter().skip(self.at + name_end).take(ahead - name_end).any(|char| char.is_alphabetic()) {
            name.push('…');
        }
        self.at += ahead + 1;
        if self.take("(") {
            self.no_here()?;
            let mut value = Word::default();
            loop {
                self.lines()?;
                if self.take(")") {
                    self.no_here()?;
                    // What follows without a blank belongs to it, also a sharp.
                    let ends = self.peek().is_none_or(|next| BREAKS.contains(next));
                    return if ends { Ok(Some((name, value))) } else { Err("something stands behind a list") };
                }
                value.parts.extend(self.word()?.ok_or("a list has no end")?.parts);
            }
        }
        Ok(Some((name, self.word()?.unwrap_or_default())))
    }

    /// `(( … ))`: nothing in it names a program, but what it reads may.
    fn arithmetic(&mut self) -> Result<Command, Refusal> {
        self.only_extended()?;
        self.at += 2;
        let mut open = 0_usize;
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return Err("arithmetic has no end"),
                Some('(') => open += 1,
                Some(')') if open > 0 => open -= 1,
                Some(')') => {
                    self.at += 1;
                    if !self.take(")") {
                        return Err("a parenthesis in arithmetic has no partner");
                    }
                    // In parentheses other shells see commands.
                    if text.contains(['/', '>', '\'', '"', '\\']) {
                        return Err("some shells read this arithmetic as commands");
                    }
                    let mut word = self.inside(&text)?;
                    if names_variables(&text) {
                        word.parts.push(Part::Evaluated);
                    }
                    return self.compound(Vec::new(), vec![word], false);
                }
                Some(_) => {}
            }
            text.extend(self.peek());
            self.at += 1;
        }
    }

    /// A reader of a text within this one.
    fn deeper(&self, text: &str) -> Self {
        Self { text: text.chars().collect(), at: 0, depth: self.depth, nodes: self.nodes, here: Vec::new(), grammar: self.grammar }
    }

    /// Reads what stands in a text where quotes mean nothing and `$` does: here-documents, arithmetic.
    pub(super) fn inside(&mut self, text: &str) -> Result<Word, Refusal> {
        self.enter()?;
        let mut inner = self.deeper(text);
        let word = inner.expansions()?;
        self.nodes = inner.nodes;
        self.leave();
        Ok(word)
    }

    /// Reads commands out of a text of its own, on a deeper level.
    pub(super) fn commands_in(&mut self, text: &str) -> Result<Vec<Pipeline>, Refusal> {
        self.enter()?;
        let mut inner = self.deeper(text);
        let list = inner.whole()?;
        self.nodes = inner.nodes;
        self.leave();
        Ok(list)
    }
}
