//! Options of programs, told apart by exact lists. What a list does not have, also a long option that is cut short, is not
//! guessed at: the same letters may write or run something.
//!
//! A list is words: `-abc` are letters without a value, `-x:` is a letter with one, `-#` is a number, `--name` is a long
//! option. Behind either stands what it takes: `:` a text, `<` a file that is looked at, `>` a file that is written, `?` a
//! text that is there only in the same word.

use super::syntax::{Part, Word};

/// What marks values in a list.
const MARKS: [char; 4] = [':', '<', '>', '?'];

/// The arguments of a program, told apart.
#[derive(Default)]
pub(super) struct Options<'w> {
    given: Vec<(&'static str, Vec<Word>)>,
    /// What is no option.
    pub(super) operands: Vec<&'w Word>,
    /// Files that options name to be looked at, and what may be one.
    pub(super) reads: Vec<Word>,
    /// Files that options name to be written.
    pub(super) writes: Vec<Word>,
    /// Whether what a word is may be another thing than it seems, because of a value before it.
    pub(super) is_doubtful: bool,
}

impl<'w> Options<'w> {
    /// Whether one of these options was given, by letter or name.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.given.iter().any(|(name, _)| names.contains(name))
    }

    /// How often these options were given.
    pub(super) fn times(&self, names: &[&str]) -> usize {
        self.given.iter().filter(|(name, _)| names.contains(name)).count()
    }

    /// The values of an option that was given, the last time it was.
    pub(super) fn value(&self, name: &str) -> Option<&[Word]> {
        self.given.iter().rev().find(|(given, _)| *given == name).map(|(_, values)| values.as_slice())
    }

    /// The first values of an option, each time it was given.
    pub(super) fn values<'o>(&'o self, names: &'o [&str]) -> impl Iterator<Item = &'o Word> {
        self.given.iter().filter(|(name, _)| names.contains(name)).filter_map(|(_, values)| values.first())
    }

    /// Takes the values that are still missing out of the words that follow.
    fn take(&mut self, values: &mut Vec<Word>, name: &str, marks: &str, words: &mut impl Iterator<Item = &'w Word>) -> Option<()> {
        for _ in values.len()..marks.chars().filter(|mark| *mark != '?').count() {
            let value = words.next()?;
            self.is_doubtful |= is_doubtful(name, value);
            values.push(value.clone());
        }
        Some(())
    }

    fn give(&mut self, name: &'static str, marks: &'static str, values: Vec<Word>) {
        for (mark, value) in marks.chars().filter(|mark| *mark != '?').zip(&values) {
            match mark {
                '>' => self.writes.push(value.clone()),
                '<' => self.reads.push(value.clone()),
                // What it is shows when it runs, and it may be several words.
                _ if !value.is_named() => self.reads.push(value.clone()),
                _ => {}
            }
        }
        self.given.push((name, values));
    }
}

/// Tells arguments apart; `None` where something is not in the lists. With `leads`, the first word that is no option ends them.
pub(super) fn read<'w>(lists: &[&'static str], words: &'w [Word], leads: bool) -> Option<Options<'w>> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.shown();
        if text == "--" {
            options.operands.extend(words);
            break;
        }
        if !text.starts_with('-') || text == "-" {
            options.operands.push(word);
            if leads {
                options.operands.extend(words);
                break;
            }
            continue;
        }
        // A pattern leaves the beginning of a word as it is; anything else may change it. What it stands for may be nothing, so that an
        // option takes the next word for its value.
        let before = word.beginning();
        let is_settled = before == text || before.starts_with("--") && before.contains('=') && word.is_named();
        if !is_settled {
            return None;
        }
        let value = |text: &str| if word.has_glob() { Word { parts: vec![Part::Glob(text.to_owned())] } } else { super::words::quoted(text.to_owned()) };
        if let Some(long) = text.strip_prefix("--") {
            let (name, own) = long.split_once('=').map_or((long, None), |(name, own)| (name, Some(own)));
            let (name, marks) = tokens(lists).filter_map(|token| token.strip_prefix("--")).map(declared).find(|(declared, _)| *declared == name)?;
            let mut values: Vec<Word> = own.map(value).into_iter().collect();
            if !values.is_empty() && marks.is_empty() {
                return None;
            }
            options.take(&mut values, name, marks, &mut words)?;
            options.give(name, marks, values);
            continue;
        }
        let mut letters = text.get(1..)?;
        if letters.chars().all(|char| char.is_ascii_digit()) && tokens(lists).any(|token| token == "-#") {
            continue;
        }
        while let Some(letter) = letters.chars().next() {
            letters = letters.get(letter.len_utf8()..)?;
            let (name, marks) = short(lists, letter)?;
            if marks.is_empty() {
                options.give(name, marks, Vec::new());
                continue;
            }
            let mut values: Vec<Word> = Some(letters).filter(|rest| !rest.is_empty()).map(value).into_iter().collect();
            options.take(&mut values, name, marks, &mut words)?;
            options.give(name, marks, values);
            break;
        }
    }
    Some(options)
}

/// Whether a value may be several words, which moves all that follow, or looks like an option, which it may be where the program sees it
/// otherwise than the lists. Only patterns often begin with a dash.
fn is_doubtful(name: &str, value: &Word) -> bool {
    let is_option = value.shown().strip_prefix('-').is_some_and(|rest| rest.starts_with(|first: char| !first.is_ascii_digit()));
    value.may_be_several() || is_option && !matches!(name, "e" | "regexp")
}

fn tokens(lists: &[&'static str]) -> impl Iterator<Item = &'static str> {
    lists.iter().flat_map(|list| list.split_whitespace())
}

/// What a word of a list declares: names, and the marks behind them.
fn declared(token: &'static str) -> (&'static str, &'static str) {
    let name = token.trim_end_matches(MARKS);
    (name, token.get(name.len()..).unwrap_or_default())
}

fn short(lists: &[&'static str], letter: char) -> Option<(&'static str, &'static str)> {
    tokens(lists).filter(|token| !token.starts_with("--")).filter_map(|token| token.strip_prefix('-')).find_map(|token| {
        let (letters, marks) = declared(token);
        let at = letters.find(letter).filter(|_| letter != '#')?;
        Some((letters.get(at..at + letter.len_utf8())?, marks))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "-ab -o> -n: -i? -# --all --out> --pairs:: --color?";

    fn read_of(line: &[&str]) -> Option<(usize, Vec<String>)> {
        let words: Vec<Word> = line.iter().map(|text| super::super::words::quoted((*text).to_owned())).collect();
        read(&[LIST], &words, false).map(|options| (options.operands.len(), options.writes.iter().map(Word::shown).collect()))
    }

    #[test]
    fn only_what_is_listed_is_an_option() {
        let written = |file: &str| vec![file.to_owned()];
        assert_eq!(read_of(&["-ab", "x", "--all", "-5", "-i", "y", "-", "--color=x"]), Some((3, Vec::new())));
        assert_eq!(read_of(&["-aof", "x"]), Some((1, written("f"))));
        assert_eq!(read_of(&["x", "-bo", "f"]), Some((1, written("f"))));
        assert_eq!(read_of(&["--out=f"]), Some((0, written("f"))));
        assert_eq!(read_of(&["--out", "f", "--pairs", "a", "b", "--", "-o", "g"]), Some((2, written("f"))));
        assert_eq!(read_of(&["-ioof"]), Some((0, Vec::new())), "the rest of the word is its value");
        for other in [["-c"].as_slice(), &["-ac"], &["--al"], &["--all=x"], &["--ou", "f"], &["-o"], &["--pairs", "a"], &["-5a"], &["-a#"]] {
            assert_eq!(read_of(other), None, "{other:?}");
        }
    }
}
