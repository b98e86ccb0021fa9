//! Words: quotes, variables, substitutions and patterns.

use super::parse::{Parser, Refusal, is_doubtful};
use super::syntax::{Part, Word};

/// Characters that end a word unless something quotes them.
pub(super) const BREAKS: &str = " \t\n;&|()<>";

const DOUBTFUL: Refusal = "a character stands in it that shells take for different things";
const JOINED: Refusal = "a line is joined where it means something else together";

/// A text that stands for itself.
pub(super) fn quoted(text: String) -> Word {
    Word { parts: vec![Part::Text { text, plain: false }] }
}

/// A word under collection: characters that belong together become one part.
#[derive(Default)]
struct Made {
    parts: Vec<Part>,
    is_there: bool,
}

impl Made {
    fn push(&mut self, char: char, plain: bool) {
        self.is_there = true;
        if let Some(Part::Text { text, plain: before }) = self.parts.last_mut()
            && *before == plain
        {
            text.push(char);
        } else {
            self.parts.push(Part::Text { text: char.to_string(), plain });
        }
    }

    fn add(&mut self, part: Part) {
        self.is_there = true;
        self.parts.push(part);
    }
}

/// Whether what a part stands for may be several words where nothing quotes it.
fn splits(part: &Part) -> bool {
    match part {
        Part::Variable(name) => !matches!(name.as_str(), "?" | "#" | "$" | "!"),
        Part::Output(_) | Part::Evaluated => true,
        _ => false,
    }
}

/// Whether arithmetic goes by the values of variables, which are read as arithmetic again.
pub(super) fn names_variables(text: &str) -> bool {
    text.contains(|char: char| char.is_alphabetic() || matches!(char, '_' | '$' | '`'))
}

/// What follows the name of a variable in braces without being read as arithmetic, as a name or as a prompt.
fn is_plain_operator(rest: &str) -> bool {
    let is_slice = |text: &str| text.chars().all(|char| char.is_ascii_digit() || matches!(char, ' ' | ':' | '-'));
    let is_element = |text: &str| text.strip_suffix(']').is_some_and(|text| matches!(text, "@" | "*") || text.chars().all(|char| char.is_ascii_digit()));
    match rest.strip_prefix(':') {
        Some(after) => after.starts_with(['-', '+', '?']) || is_slice(after),
        None => rest.is_empty() || rest.starts_with(['-', '+', '?', '%', '#', '/', '^', ',']) || rest.strip_prefix('[').is_some_and(is_element),
    }
}

impl Parser {
    /// The next word, if one stands here.
    pub(super) fn word(&mut self) -> Result<Option<Word>, Refusal> {
        let mut made = Made::default();
        self.count()?;
        while let Some(char) = self.peek() {
            if (char == '<' || char == '>') && self.peek_at(1) == Some('(') {
                self.at += 2;
                let list = self.until_parenthesis()?;
                made.add(Part::Channel(list));
                continue;
            }
            if BREAKS.contains(char) {
                break;
            }
            self.at += 1;
            match char {
                _ if is_doubtful(char) => return Err(DOUBTFUL),
                '\\' => match self.peek() {
                    Some('\n') => {
                        self.at -= 1;
                        if !self.joins_lines() {
                            return Err(JOINED);
                        }
                        self.at += 2;
                    }
                    Some(next) if is_doubtful(next) => return Err(DOUBTFUL),
                    Some(next) => {
                        self.at += 1;
                        made.push(next, false);
                    }
                    None => made.push('\\', false),
                },
                '\'' => self.single(&mut made)?,
                '"' => self.double(&mut made)?,
                '$' if self.peek() == Some('\'') => {
                    self.only_extended()?;
                    self.at += 1;
                    self.escaped(&mut made)?;
                }
                '$' if self.peek() == Some('"') => {
                    self.only_extended()?;
                    self.at += 1;
                    self.double(&mut made)?;
                }
                '$' => {
                    self.dollar(&mut made, true)?;
                    if made.parts.last().is_some_and(splits) {
                        made.add(Part::Split);
                    }
                }
                '`' => {
                    self.backticks(&mut made)?;
                    made.add(Part::Split);
                }
                '*' | '?' => made.add(Part::Glob(char.to_string())),
                '[' if self.is_class() => made.add(Part::Glob(char.to_string())),
                '{' if self.is_choice() => made.add(Part::Glob(char.to_string())),
                _ => made.push(char, true),
            }
        }
        if !made.is_there {
            return Ok(None);
        }
        // An empty text in quotes is a word, and it is empty.
        Ok(Some(Word { parts: made.parts }))
    }

    /// Whether an open brace begins `{a,b}` or `{1..9}`.
    fn is_choice(&self) -> bool {
        let (mut ahead, mut open, mut chooses) = (0, 1_usize, false);
        while let Some(char) = self.peek_at(ahead) {
            match char {
                '{' => open += 1,
                '}' => {
                    open -= 1;
                    if open == 0 {
                        return chooses;
                    }
                }
                ',' => chooses = true,
                '.' if self.peek_at(ahead + 1) == Some('.') => chooses = true,
                ' ' | '\t' | '\n' | ';' => return false,
                _ => {}
            }
            ahead += 1;
        }
        false
    }

    /// Whether an open bracket has its partner in the same word.
    fn is_class(&self) -> bool {
        self.text.iter().skip(self.at).take_while(|char| !BREAKS.contains(**char)).any(|char| *char == ']')
    }

    fn single(&mut self, made: &mut Made) -> Result<(), Refusal> {
        made.is_there = true;
        made.parts.push(Part::Text { text: String::new(), plain: false });
        loop {
            let char = self.peek().ok_or("a quote has no end")?;
            self.at += 1;
            if char == '\'' {
                return Ok(());
            }
            made.push(char, false);
        }
    }

    /// `$'…'`, with its escapes. A quote among them would end it in shells that do not know this form.
    fn escaped(&mut self, made: &mut Made) -> Result<(), Refusal> {
        made.is_there = true;
        made.parts.push(Part::Text { text: String::new(), plain: false });
        loop {
            let char = self.peek().ok_or("a quote has no end")?;
            self.at += 1;
            match char {
                '\'' => return Ok(()),
                '\\' => {
                    let escape = self.peek().ok_or("a quote has no end")?;
                    self.at += 1;
                    let char = match escape {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        'a' => '\u{7}',
                        'b' => '\u{8}',
                        'e' | 'E' => '\u{1b}',
                        'f' => '\u{c}',
                        'v' => '\u{b}',
                        '\\' | '"' | '?' => escape,
                        'x' => self.coded(16, 2)?,
                        'u' => self.coded(16, 4)?,
                        'U' => self.coded(16, 8)?,
                        '0'..='7' => {
                            self.at -= 1;
                            self.coded(8, 3)?
                        }
                        _ => return Err("shells differ in what they make of this escape"),
                    };
                    made.push(char, false);
                }
                _ => made.push(char, false),
            }
        }
    }

    /// A character by its number.
    fn coded(&mut self, base: u32, digits: usize) -> Result<char, Refusal> {
        let mut number = 0_u32;
        let mut read = 0;
        while read < digits
            && let Some(digit) = self.peek().and_then(|char| char.to_digit(base))
        {
            number = number.saturating_mul(base).saturating_add(digit);
            self.at += 1;
            read += 1;
        }
        // Of a byte, only as much is used as fits into one.
        let is_byte = base != 8 || number <= 0xff;
        char::from_u32(number).filter(|char| is_byte && *char != '\0').ok_or("a number in a quote is no character")
    }

    fn double(&mut self, made: &mut Made) -> Result<(), Refusal> {
        made.is_there = true;
        made.parts.push(Part::Text { text: String::new(), plain: false });
        loop {
            let char = self.peek().ok_or("a quote has no end")?;
            self.at += 1;
            match char {
                '"' => return Ok(()),
                _ if is_doubtful(char) => return Err(DOUBTFUL),
                '\\' => match self.peek() {
                    Some('\n') => self.at += 1,
                    Some(next @ ('"' | '\\' | '$' | '`')) => {
                        self.at += 1;
                        made.push(next, false);
                    }
                    _ => made.push('\\', false),
                },
                '$' => self.dollar(made, false)?,
                '`' => self.backticks(made)?,
                _ => made.push(char, false),
            }
        }
    }

    /// What stands in a text where only `$`, backticks and backslashes mean something.
    pub(super) fn expansions(&mut self) -> Result<Word, Refusal> {
        let mut made = Made::default();
        while let Some(char) = self.peek() {
            self.at += 1;
            match char {
                '\\' if matches!(self.peek(), Some('$' | '`' | '\\')) => {
                    made.push(self.peek().unwrap_or('\\'), false);
                    self.at += 1;
                }
                '$' => self.dollar(&mut made, false)?,
                '`' => self.backticks(&mut made)?,
                _ => made.push(char, false),
            }
        }
        Ok(Word { parts: made.parts })
    }

    /// What follows a `$`.
    fn dollar(&mut self, made: &mut Made, plain: bool) -> Result<(), Refusal> {
        self.count()?;
        if self.starts("\\\n") {
            return Err(JOINED);
        }
        if self.starts("((") {
            return self.sum(made);
        }
        if self.take("(") {
            let list = self.until_parenthesis()?;
            made.add(Part::Output(list));
            return Ok(());
        }
        if self.take("{") {
            return self.braced(made);
        }
        if self.take("[") {
            return Err("arithmetic is written in an old form");
        }
        let mut name = String::new();
        while let Some(char) = self.peek().filter(|char| *char == '_' || char.is_ascii_alphanumeric()) {
            name.push(char);
            self.at += 1;
            if name.starts_with(|first: char| first.is_ascii_digit()) {
                break;
            }
        }
        if name.is_empty() {
            let Some(char @ ('@' | '*' | '#' | '?' | '-' | '$' | '!')) = self.peek() else {
                made.push('$', plain);
                return Ok(());
            };
            self.at += 1;
            name.push(char);
        }
        if self.starts("\\\n") {
            return Err(JOINED);
        }
        let is_list = name == "@";
        made.add(Part::Variable(name));
        if is_list {
            made.add(Part::Split);
        }
        // Some shells read what stands there as arithmetic.
        if self.peek() == Some('[') && !self.peek_at(1).is_some_and(|char| char.is_ascii_digit()) {
            made.add(Part::Evaluated);
        }
        Ok(())
    }

    fn until_parenthesis(&mut self) -> Result<Vec<super::syntax::Pipeline>, Refusal> {
        self.no_here()?;
        let list = self.list(&[])?;
        self.no_here()?;
        if self.take(")") { Ok(list) } else { Err("a substitution has no end") }
    }

    /// `$((…))`, or a substitution whose first command is in parentheses.
    fn sum(&mut self, made: &mut Made) -> Result<(), Refusal> {
        let mut ahead = 2;
        let mut open = 0_usize;
        loop {
            match self.peek_at(ahead) {
                None => return Err("arithmetic has no end"),
                Some('(') => open += 1,
                Some(')') if open > 0 => open -= 1,
                Some(')') => break,
                Some(_) => {}
            }
            ahead += 1;
        }
        if self.peek_at(ahead + 1) != Some(')') {
            self.at += 1;
            let list = self.until_parenthesis()?;
            made.add(Part::Output(list));
            return Ok(());
        }
        let text: String = self.text.iter().skip(self.at + 2).take(ahead - 2).collect();
        if text.contains(['\'', '"', '\\']) {
            return Err("a quote stands in arithmetic");
        }
        self.at += ahead + 2;
        self.nested(&text, made)?;
        made.add(if names_variables(&text) { Part::Evaluated } else { Part::Number });
        Ok(())
    }

    /// `${…}`: a variable, and whatever stands in its default or pattern. What quotes mean in there differs from shell to shell,
    /// and with what stands around.
    fn braced(&mut self, made: &mut Made) -> Result<(), Refusal> {
        let (mut open, mut text) = (1_usize, String::new());
        loop {
            let char = self.peek().ok_or("a variable in braces has no end")?;
            self.at += 1;
            match char {
                '\\' | '\'' | '"' => return Err("shells differ in what they make of a quote in a variable in braces"),
                '<' | '>' if self.peek() == Some('(') => return Err("a command stands in a variable in braces"),
                '{' => open += 1,
                '}' => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                _ => {}
            }
            text.push(char);
        }
        self.nested(&text, made)?;
        let counted = text.strip_prefix('#').filter(|rest| !rest.is_empty());
        let own = counted.unwrap_or(&text);
        let mut name: String = own.chars().take_while(|char| *char == '_' || char.is_ascii_alphanumeric()).collect();
        if name.is_empty() {
            name.extend(own.chars().next().filter(|char| matches!(char, '@' | '*' | '#' | '?' | '-' | '$')));
        }
        let rest = own.strip_prefix(name.as_str()).unwrap_or_default();
        let is_plain = !name.is_empty() && is_plain_operator(rest);
        match counted {
            Some(_) if is_plain => made.add(Part::Number),
            // With anything behind its name it may be another text altogether.
            _ => made.add(Part::Variable(if is_plain && rest.is_empty() { name } else { format!("{name}…") })),
        }
        if !is_plain {
            made.add(Part::Evaluated);
        }
        if own.starts_with('@') || own.contains("[@]") {
            made.add(Part::Split);
        }
        Ok(())
    }

    /// Substitutions that stand in a text which is otherwise not looked at.
    fn nested(&mut self, text: &str, made: &mut Made) -> Result<(), Refusal> {
        self.enter()?;
        if text.contains(['$', '`']) {
            let word = self.inside(text)?;
            made.parts.extend(word.parts.into_iter().filter(|part| matches!(part, Part::Output(_) | Part::Channel(_) | Part::Evaluated)));
        }
        self.leave();
        Ok(())
    }

    fn backticks(&mut self, made: &mut Made) -> Result<(), Refusal> {
        let mut text = String::new();
        loop {
            let char = self.peek().ok_or("a backtick has no end")?;
            self.at += 1;
            match char {
                '`' => break,
                '\\' if self.peek() == Some('"') => return Err("what this quote means depends on what stands around the backticks"),
                '\\' if matches!(self.peek(), Some('`' | '$' | '\\')) => {
                    text.extend(self.peek());
                    self.at += 1;
                }
                _ => text.push(char),
            }
        }
        let list = self.commands_in(&text)?;
        made.add(Part::Output(list));
        Ok(())
    }
}
