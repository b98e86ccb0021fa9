//! Names of people, by what stands before them: a title, a greeting, the end of a letter, a field of a form. A name alone looks
//! like any other words and is left.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::kind::Kind;
use super::scan::{Scan, Span};

/// How many words of a name are read at most, and how many letters of each.
const WORDS_MOST: usize = 5;
const LETTERS_MOST: usize = 32;
/// How much may stand between what announces a name and the name.
const GAP_MOST: usize = 8;

/// What a word says about what follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Announces {
    /// `Mr`, `Frau`: written with one capital letter, and a name follows.
    Title,
    /// `Dear`: a name, or any word for somebody.
    Greeting,
    /// `my name is`.
    Said,
    /// `first name`: a sign, then the name.
    Field,
    /// `regards`: a comma, a new line, and the name alone on it.
    Closing,
}

/// The words, in lower case.
const ANNOUNCES: &[(&str, Announces)] = &[
    ("mr", Announces::Title),
    ("mrs", Announces::Title),
    ("ms", Announces::Title),
    ("dr", Announces::Title),
    ("prof", Announces::Title),
    ("herr", Announces::Title),
    ("herrn", Announces::Title),
    ("frau", Announces::Title),
    ("mme", Announces::Title),
    ("monsieur", Announces::Title),
    ("madame", Announces::Title),
    ("sra", Announces::Title),
    ("signor", Announces::Title),
    ("signora", Announces::Title),
    ("mevrouw", Announces::Title),
    ("dear", Announces::Greeting),
    ("my name is", Announces::Said),
    ("mein name ist", Announces::Said),
    ("je m'appelle", Announces::Said),
    ("me llamo", Announces::Said),
    ("mi chiamo", Announces::Said),
    ("mijn naam is", Announces::Said),
    ("first name", Announces::Field),
    ("last name", Announces::Field),
    ("full name", Announces::Field),
    ("given name", Announces::Field),
    ("family name", Announces::Field),
    ("maiden name", Announces::Field),
    ("customer name", Announces::Field),
    ("patient name", Announces::Field),
    ("contact name", Announces::Field),
    ("employee name", Announces::Field),
    ("account holder", Announces::Field),
    ("first_name", Announces::Field),
    ("last_name", Announces::Field),
    ("full_name", Announces::Field),
    ("given_name", Announces::Field),
    ("family_name", Announces::Field),
    ("customer_name", Announces::Field),
    ("patient_name", Announces::Field),
    ("contact_name", Announces::Field),
    ("firstname", Announces::Field),
    ("lastname", Announces::Field),
    ("fullname", Announces::Field),
    ("surname", Announces::Field),
    ("cardholder", Announces::Field),
    ("beneficiary", Announces::Field),
    ("patient", Announces::Field),
    ("vorname", Announces::Field),
    ("nachname", Announces::Field),
    ("regards", Announces::Closing),
    ("sincerely", Announces::Closing),
];

/// Words with a capital letter that are for anybody, or begin something else than a name.
const NOBODY: &[&str] = &[
    "all",
    "team",
    "sir",
    "sirs",
    "madam",
    "customer",
    "customers",
    "colleague",
    "colleagues",
    "friend",
    "friends",
    "user",
    "users",
    "reader",
    "readers",
    "everyone",
    "everybody",
    "hiring",
    "manager",
    "support",
    "admin",
    "doctor",
    "member",
    "members",
    "valued",
    "god",
    "lord",
    "and",
    "or",
    "the",
    "none",
    "null",
    "true",
    "false",
    "string",
    "required",
    "optional",
    "unknown",
    "your",
    "please",
    "test",
    "example",
    "n",
    "diary",
    "santa",
];
/// Small words within names.
const PARTICLES: &[&str] = &["van", "von", "der", "den", "de", "del", "della", "di", "da", "la", "le", "bin", "al", "zu", "ten", "ter"];

/// Keys under which a name stands, letters only.
const KEYS: &[&str] = &[
    "firstname",
    "lastname",
    "fullname",
    "surname",
    "givenname",
    "familyname",
    "middlename",
    "maidenname",
    "forename",
    "customername",
    "patientname",
    "contactname",
    "employeename",
    "cardholdername",
    "accountholder",
    "accountholdername",
    "vorname",
    "nachname",
    "prenom",
    "apellido",
    "apellidos",
    "cognome",
];

fn automaton() -> Option<&'static AhoCorasick> {
    static AUTOMATON: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let built = AUTOMATON.get_or_init(|| {
        let words = ANNOUNCES.iter().map(|(word, _)| *word);
        AhoCorasick::builder().ascii_case_insensitive(true).match_kind(MatchKind::LeftmostLongest).build(words).ok()
    });
    built.as_ref()
}

/// Whether a key, letters only and in lower case, is one under which a name stands.
pub(super) fn is_key(key: &str) -> bool {
    KEYS.iter().any(|word| key.ends_with(word))
}

/// Whether a text can be the name that its key says it is.
pub(super) fn is_one(text: &str) -> bool {
    let text = text.trim();
    let is_plain = text.chars().all(|letter| letter.is_alphabetic() || matches!(letter, ' ' | '.' | '-' | '\'' | '\u{2019}'));
    let letters = text.chars().take(5 * LETTERS_MOST).filter(|letter| letter.is_alphabetic()).count();
    is_plain && (2..4 * LETTERS_MOST).contains(&letters) && !NOBODY.contains(&text.to_lowercase().as_str())
}

/// Finds names.
pub(super) fn find(scan: &Scan<'_>, spans: &mut Vec<Span>) {
    let Some(automaton) = automaton() else {
        // It is built from constants, and a test builds it; without it nothing could be told, so nothing passes.
        spans.push(scan.span(0, scan.text.len(), Kind::Unclear));
        return;
    };
    for found in automaton.find_iter(scan.text) {
        let Some((_, announces)) = ANNOUNCES.get(found.pattern().as_usize()) else { continue };
        let is_word = scan.begins(found.start()) && !scan.byte(found.end()).is_some_and(|byte| byte.is_ascii_alphanumeric());
        if is_word {
            spans.extend(announced(scan, *announces, found.start(), found.end()));
        }
    }
}

fn announced(scan: &Scan<'_>, announces: Announces, start: usize, end: usize) -> Option<Span> {
    let blank = |byte: u8| matches!(byte, b' ' | b'\t');
    let (from, alone) = match announces {
        Announces::Title | Announces::Greeting => {
            let word = scan.part(start, end);
            let is_written = word.starts_with(|letter: char| letter.is_ascii_uppercase()) && !word.bytes().skip(1).any(|byte| byte.is_ascii_uppercase());
            let point = scan.run(end, 1, |byte| byte == b'.' && announces == Announces::Title);
            let from = scan.run(point, GAP_MOST, blank);
            (is_written && from > point).then_some((from, false))?
        }
        Announces::Said => {
            let from = scan.run(end, GAP_MOST, |byte| blank(byte) || byte == b':');
            (from > end).then_some((from, false))?
        }
        Announces::Field => {
            let closed = scan.run(end, GAP_MOST, |byte| blank(byte) || matches!(byte, b'"' | b'\'' | b'\\' | b'`'));
            let sign = scan.run(closed, 2, |byte| matches!(byte, b':' | b'='));
            let from = scan.run(sign, GAP_MOST, |byte| blank(byte) || matches!(byte, b'"' | b'\'' | b'\\' | b'`'));
            (sign > closed).then_some((from, false))?
        }
        Announces::Closing => {
            let line = scan.run(end, GAP_MOST, |byte| blank(byte) || matches!(byte, b',' | b'.' | b'!' | b'\r'));
            let from = scan.run(line, GAP_MOST, |byte| matches!(byte, b'\n' | b'\r' | b' ' | b'\t'));
            (scan.byte(line) == Some(b'\n')).then_some((from, true))?
        }
    };
    let stop = name_end(scan, from)?;
    let goes_on = alone && scan.byte(stop).is_some_and(|byte| !matches!(byte, b'\n' | b'\r'));
    (!goes_on).then(|| scan.span(from, stop, Kind::Name))
}

/// Where the name that begins here ends: words with a capital letter, initials, and small words between them.
fn name_end(scan: &Scan<'_>, from: usize) -> Option<usize> {
    let rest = scan.text.get(from..)?;
    let mut stop = None;
    let mut at = 0;
    for number in 0..WORDS_MOST {
        let word = word(rest.get(at..)?);
        let lower = word.to_lowercase();
        let is_particle = PARTICLES.contains(&lower.as_str()) && word == lower;
        // Somebody's title may go on: `Herr Dr. Meier`.
        let is_title = number == 0 && matches!(word, "Dr" | "Prof");
        if is_name(word) && !NOBODY.contains(&lower.as_str()) {
            let is_initial = word.chars().count() == 1;
            let point = usize::from((is_initial || is_title) && rest.get(at + word.len()..).is_some_and(|rest| rest.starts_with('.')));
            at += word.len() + point;
            if !is_initial && !is_title {
                stop = Some(at);
            }
        } else if is_particle {
            at += word.len();
        } else {
            break;
        }
        let next = rest.get(at..)?;
        if !next.starts_with(' ') {
            break;
        }
        at += 1;
    }
    stop.map(|stop| from + stop)
}

/// The letters that stand here, with apostrophes and hyphens between them.
fn word(text: &str) -> &str {
    let length =
        text.chars().take(LETTERS_MOST).take_while(|letter| letter.is_alphabetic() || matches!(letter, '\'' | '\u{2019}' | '-')).map(char::len_utf8).sum();
    text.get(..length).unwrap_or_default().trim_end_matches(['\'', '\u{2019}', '-'])
}

/// A capital letter, and then small ones: what is all in capitals is rather an abbreviation. `O'Neil` and `McDonald` are names.
fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase) && (word.chars().count() == 1 || letters.any(char::is_lowercase))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_automaton_is_built() {
        assert!(super::automaton().is_some());
    }
}
