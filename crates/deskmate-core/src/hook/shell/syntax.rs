//! What a command line is made of, as far as it matters for what it does.

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Characters that stand for themselves. `plain` if nothing quoted them.
    Text { text: String, plain: bool },
    /// A variable, by its name; its value is not known.
    Variable(String),
    /// What another command prints: `$(…)`, backticks.
    Output(Vec<Pipeline>),
    /// A file that stands for another command: `<(…)`, `>(…)`.
    Channel(Vec<Pipeline>),
    /// `*`, `?`, `[…]`, `{a,b}`: names that are known when it runs.
    Glob(String),
    /// Arithmetic: a number that is not known.
    Number,
    /// A path beneath this one.
    Beneath(String),
    /// What the shell reads once more when it runs, so that what a variable holds can run commands: arithmetic with names,
    /// variables that name others.
    Evaluated,
    /// Nothing quotes what stands before this, so it may become several words.
    Split,
}

/// A word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
}

impl Word {
    /// The text, if it is known.
    pub(super) fn literal(&self) -> Option<String> {
        self.parts.iter().map(|part| if let Part::Text { text, .. } = part { Some(text.as_str()) } else { None }).collect()
    }

    /// The text as it is shown, with what is not known in its place.
    pub(super) fn shown(&self) -> String {
        let mut shown = String::new();
        for part in &self.parts {
            match part {
                Part::Text { text, .. } | Part::Glob(text) | Part::Beneath(text) => shown.push_str(text),
                Part::Variable(name) => shown.push_str(&format!("${{{name}}}")),
                Part::Output(_) => shown.push_str("$(…)"),
                Part::Channel(_) => shown.push_str("<(…)"),
                Part::Number => shown.push_str("$((…))"),
                Part::Evaluated | Part::Split => {}
            }
        }
        shown
    }

    /// Whether all of it is known but the names that a pattern stands for, or what lies beneath a path.
    pub(super) fn is_named(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text { .. } | Part::Glob(_) | Part::Beneath(_)))
    }

    /// Whether it may become an option, or several words, when it runs.
    pub(super) fn is_loose(&self) -> bool {
        let first = self.parts.iter().find(|part| !matches!(part, Part::Text { text, .. } if text.is_empty()));
        let is_text = matches!(first, None | Some(Part::Text { .. } | Part::Beneath(_) | Part::Channel(_)));
        !is_text || self.parts.contains(&Part::Split) || self.chooses() || self.has_glob() && self.shown().starts_with('-')
    }

    /// Whether it may become several words when it runs, though what they begin with is known.
    pub(super) fn may_be_several(&self) -> bool {
        self.is_loose() || self.parts.iter().any(|part| matches!(part, Part::Glob(_) | Part::Beneath(_)))
    }

    /// Whether a brace that nothing quotes may stand for several words, though a quote in it hides where it ends.
    fn chooses(&self) -> bool {
        let opens = |part: &Part| matches!(part, Part::Text { text, plain: true } if text.contains('{'));
        let shown = self.shown();
        self.parts.iter().any(opens) && shown.split_once('{').is_some_and(|(_, rest)| rest.contains(',') || rest.contains(".."))
    }

    /// What is known of its beginning.
    pub(super) fn beginning(&self) -> String {
        self.parts.iter().map_while(|part| if let Part::Text { text, .. } = part { Some(text.as_str()) } else { None }).collect()
    }

    /// Whether it can only be a number.
    pub(super) fn is_number(&self) -> bool {
        let digits = |text: &str| text.trim_start_matches(['-', '+']).chars().all(|char| char.is_ascii_digit());
        self.parts.iter().all(|part| match part {
            Part::Text { text, .. } => digits(text),
            Part::Variable(name) => matches!(name.as_str(), "?" | "#" | "$" | "!"),
            Part::Number => true,
            _ => false,
        })
    }

    /// Whether a quoted text in it would be a command where the shell reads it once more, as it does with numbers and the
    /// names of variables.
    pub(super) fn hides_command(&self) -> bool {
        let texts = self.parts.iter().filter_map(|part| if let Part::Text { text, .. } = part { Some(text.as_str()) } else { None });
        let text: String = texts.collect();
        text.contains("$(") || text.contains("${") || text.contains('`')
    }

    /// Whether a part of it is a pattern.
    pub(super) fn has_glob(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Glob(_)))
    }

    /// Whether it begins with a tilde that stands for a home directory.
    pub(super) fn has_tilde(&self) -> bool {
        matches!(self.parts.first(), Some(Part::Text { text, plain: true }) if text.starts_with('~'))
    }
}

/// Whether a test reads one of its words as a number or as the name of a variable: then what stands in it can run commands.
pub(super) fn evaluates(words: &[Word]) -> bool {
    let is_name = |word: &Word| word.literal().is_some_and(|name| name.chars().all(|char| char == '_' || char.is_ascii_alphanumeric()));
    words.iter().enumerate().any(|(at, word)| match word.literal().as_deref() {
        Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") => {
            [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| words.get(at)).any(|word| !word.is_number())
        }
        Some("-t") => words.get(at + 1).is_some_and(|word| !word.is_number() && word.literal().is_none_or(|text| text != "]")),
        Some("-v" | "-R") => words.get(at + 1).is_some_and(|word| !is_name(word)),
        _ => false,
    })
}

/// What a redirection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Out of a file.
    Read,
    /// Into a file.
    Write,
    /// A text that stands in the line itself.
    Here,
    /// To another descriptor.
    Descriptor,
}

/// A redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    pub(super) direction: Direction,
    /// The file, or the text of a here-document.
    pub(super) word: Word,
    /// The number of the descriptor that changes, or the variable that gets a new one.
    pub(super) of: String,
}

impl Redirect {
    /// Whether it changes what a program reads as its input.
    pub(super) fn is_input(&self) -> bool {
        self.of.parse() == Ok(0_u32)
    }

    /// The variable that it sets.
    pub(super) fn sets(&self) -> Option<&str> {
        Some(self.of.as_str()).filter(|of| of.parse::<u32>().is_err())
    }
}

/// Commands whose output goes into the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pipeline {
    pub(super) commands: Vec<Command>,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// A program with its arguments.
    Simple { assignments: Vec<(String, Word)>, words: Vec<Word>, redirects: Vec<Redirect> },
    /// Several commands in a form that decides which of them run: all of them may. `words` are looked at as well;
    /// `sets` is the variable of a loop.
    Compound { bodies: Vec<Vec<Pipeline>>, words: Vec<Word>, redirects: Vec<Redirect>, is_apart: bool, sets: Option<String> },
    /// Commands under a name.
    Function { body: Box<Command> },
}
