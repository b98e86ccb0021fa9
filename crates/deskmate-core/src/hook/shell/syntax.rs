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
                Part::Text { text, .. } | Part::Glob(text) => shown.push_str(text),
                Part::Variable(name) => shown.push_str(&format!("${{{name}}}")),
                Part::Output(_) => shown.push_str("$(…)"),
                Part::Channel(_) => shown.push_str("<(…)"),
                Part::Number => shown.push_str("$((…))"),
            }
        }
        shown
    }

    /// Whether all of it is known but the names that a pattern stands for.
    pub(super) fn is_named(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text { .. } | Part::Glob(_)))
    }

    /// Whether a quoted text in it would be a command where the shell reads it once more, as it does with numbers and the
    /// names of variables.
    pub(super) fn hides_command(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Text { text, .. } if text.contains("$(") || text.contains('`')))
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
    /// Several commands in a form that decides which of them run: all of them may. `words` are looked at as well.
    Compound { bodies: Vec<Vec<Pipeline>>, words: Vec<Word>, redirects: Vec<Redirect>, is_apart: bool },
    /// Commands under a name.
    Function { body: Box<Command> },
}
