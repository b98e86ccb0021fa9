//! From commands to acts: pipes, folders that change on the way, redirections, and commands in commands.

use super::looking::tells_secrets;
use super::parse::{Grammar, Refusal, parse};
use super::programs::{self, Call, Given};
use super::syntax::{Command, Direction, Part, Pipeline, Redirect, Word};
use super::tables::{OWN, lists, may_set};
use super::{LINE_BYTES_MAX, ShellAct, Target, Verb, joined};

/// How often a line may stand in a line.
const LINES_DEEP_MAX: usize = 8;
/// How many acts one line has; beyond, it is not known.
const ACTS_MAX: usize = 500;
/// How many folders a command may be in.
const FOLDERS_MAX: usize = 8;

/// What a line does, under collection.
pub(super) struct Walk {
    acts: Vec<ShellAct>,
    /// The folders that a command may run in; `None` where nobody knows.
    folders: Option<Vec<String>>,
    /// Bytes of lines that may still be read.
    room: usize,
}

/// Where a command stands.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Whether its input is the output of another command.
    is_fed: bool,
    /// How many lines it stands in.
    deep: usize,
}

impl Walk {
    pub(super) fn new(folder: Option<&str>) -> Self {
        let folders = folder.filter(|folder| folder.starts_with('/')).map(|folder| vec![joined("/", folder)]);
        Self { acts: Vec::new(), folders, room: 4 * LINE_BYTES_MAX }
    }

    pub(super) fn done(mut self) -> Vec<ShellAct> {
        if self.acts.len() > ACTS_MAX {
            self.acts.truncate(ACTS_MAX);
            self.acts.push(ShellAct::unknown("", "the line does too much to be looked at"));
        }
        self.acts
    }

    pub(super) fn add(&mut self, act: ShellAct) {
        if self.acts.len() <= ACTS_MAX {
            self.acts.push(act);
        }
    }

    /// A line of its own.
    pub(super) fn line(&mut self, line: &str, deep: usize, grammar: Grammar) {
        let refused: Refusal = if deep > LINES_DEEP_MAX || self.room < line.len() {
            "lines stand in lines too deep"
        } else {
            self.room -= line.len();
            match parse(line, grammar) {
                Ok(list) => return self.list(&list, Place { is_fed: false, deep }),
                Err(why) => why,
            }
        };
        self.add(ShellAct::unknown("", refused));
    }

    fn list(&mut self, list: &[Pipeline], place: Place) {
        for pipeline in list {
            for (number, command) in pipeline.commands.iter().enumerate() {
                self.command(command, Place { is_fed: place.is_fed || number > 0, ..place });
            }
        }
    }

    fn command(&mut self, command: &Command, place: Place) {
        match command {
            Command::Simple { assignments, words, redirects } => {
                for (name, value) in assignments {
                    self.word(value, place);
                    if value.hides_command() {
                        self.add(ShellAct::unknown(name, "a text in it may be read as a command later"));
                    }
                    if !may_set(name, value) {
                        self.add(ShellAct::unknown(name, "what programs make of this variable is not known here"));
                    }
                }
                for word in words {
                    self.word(word, place);
                }
                self.redirects(redirects, place);
                let fed = redirects.iter().rev().find(|redirect| redirect.is_input());
                let text = fed.map(|redirect| redirect.word.literal().filter(|_| redirect.direction == Direction::Here).map_or(Given::Open, Given::Known));
                self.call(words, redirects, text, place);
            }
            Command::Compound { bodies, words, redirects, is_apart, sets } => {
                if sets.as_ref().is_some_and(|name| !lists(OWN, name)) {
                    self.add(ShellAct::unknown("", "what programs make of its variable is not known here"));
                }
                for word in words {
                    self.word(word, place);
                    if word.hides_command() {
                        self.add(ShellAct::unknown("", "a text in it is read as a number, and that can run commands"));
                    }
                }
                self.redirects(redirects, place);
                let is_fed = place.is_fed || redirects.iter().any(Redirect::is_input);
                let before = is_apart.then(|| self.folders.clone());
                for body in bodies {
                    self.list(body, Place { is_fed, ..place });
                }
                if let Some(before) = before {
                    self.folders = before;
                }
            }
            Command::Function { body } => {
                self.command(body, place);
                self.add(ShellAct::unknown("", "it gives a name to commands of its own"));
            }
        }
    }

    /// Commands that stand in a word.
    fn word(&mut self, word: &Word, place: Place) {
        if word.parts.contains(&Part::Evaluated) {
            self.add(ShellAct::unknown("", "what a variable holds is read once more, and that can run commands"));
        }
        for part in &word.parts {
            if let Part::Output(list) | Part::Channel(list) = part {
                let before = self.folders.clone();
                self.list(list, Place { is_fed: false, ..place });
                self.folders = before;
            }
        }
    }

    fn redirects(&mut self, redirects: &[Redirect], place: Place) {
        for redirect in redirects {
            self.word(&redirect.word, place);
            if redirect.sets().is_some_and(|name| !lists(OWN, name)) {
                self.add(ShellAct::unknown("", "what programs make of its variable is not known here"));
            }
            let verb = match redirect.direction {
                Direction::Read => Verb::FileRead,
                Direction::Write => Verb::FileWrite,
                Direction::Here => {
                    if tells_secrets(std::slice::from_ref(&redirect.word)) {
                        self.add(ShellAct { is_secret: true, ..ShellAct::new(Verb::FileRead, "") });
                    }
                    continue;
                }
                Direction::Descriptor => continue,
            };
            if redirect.word.shown() == "!" {
                self.add(ShellAct::unknown("", "shells differ in where this writes to"));
            }
            let target = self.target(&redirect.word);
            let is_network = target.shown.starts_with("/dev/tcp/") || target.shown.starts_with("/dev/udp/");
            let is_nothing = matches!(target.shown.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty");
            if is_network {
                self.add(ShellAct { targets: vec![target], ..ShellAct::new(Verb::NetFetch, "") });
            } else if !is_nothing {
                self.add(ShellAct { targets: vec![target], ..ShellAct::new(verb, "") });
            }
        }
    }

    /// A program and its arguments.
    fn call(&mut self, words: &[Word], redirects: &[Redirect], text: Option<Given>, place: Place) {
        let Some((first, arguments)) = words.split_first() else { return };
        if first.has_glob() || !first.is_named() || first.shown().contains(['{', '}']) || first.shown().starts_with('=') {
            self.add(ShellAct::unknown("", "which program it runs shows only when it runs"));
            // What it would be run on is still looked at by those who read the line.
            return;
        }
        let name = first.literal().unwrap_or_default();
        if name.is_empty() {
            return;
        }
        if name.contains('=') || name.contains('[') && name != "[" {
            self.add(ShellAct::unknown("", "it may set a variable, and what stands in brackets there can run commands"));
        }
        let is_fed = place.is_fed || redirects.iter().any(|redirect| redirect.direction == Direction::Read);
        programs::call(self, &Call { name: &name, arguments, is_fed, text, deep: place.deep, is_raised: false });
    }

    /// A word as something that an act is done to.
    pub(super) fn target(&self, word: &Word) -> Target {
        let shown = word.shown();
        let is_open = !word.is_named() || word.has_tilde();
        self.place(shown, is_open)
    }

    /// A text as something that an act is done to.
    pub(super) fn place(&self, shown: String, is_open: bool) -> Target {
        // `.*` is also the folder above, and a choice may be anything that it lists.
        let climbs = shown.split('/').any(|part| {
            part.starts_with('.') && part.contains(['*', '?', '[']) && !part.trim_start_matches('.').starts_with(|c: char| c.is_ascii_alphanumeric())
        });
        let is_open = is_open || shown.starts_with('~') || climbs || shown.contains('{');
        let places = match &self.folders {
            _ if is_open => None,
            _ if shown.starts_with('/') => Some(vec![joined("/", &shown)]),
            Some(folders) => Some(folders.iter().map(|folder| joined(folder, &shown)).collect()),
            None => None,
        };
        Target { shown, places }
    }

    /// The folder itself.
    pub(super) fn here(&self) -> Target {
        self.place(".".to_owned(), false)
    }

    /// A command that goes elsewhere. It may fail, so where it was counts as well.
    pub(super) fn go(&mut self, to: Option<&Word>) {
        let target = to.map_or_else(|| Target { shown: "~".to_owned(), places: None }, |word| self.target(word));
        let known = target.places.clone();
        // What names no file works on the folder that it is in.
        self.add(ShellAct { program: "cd".to_owned(), ..ShellAct::look(target) });
        self.folders = match (self.folders.take(), known) {
            (Some(mut folders), Some(more)) => {
                for folder in more {
                    if !folders.contains(&folder) {
                        folders.push(folder);
                    }
                }
                (folders.len() <= FOLDERS_MAX).then_some(folders)
            }
            _ => None,
        };
    }
}
