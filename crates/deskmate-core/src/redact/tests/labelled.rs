//! The labelled set: what must be found, what must be left, and how well that goes, kind by kind.
//!
//! In a positive, `«…»` stands around what must go. `{a36}` is 36 random characters: `a` letters and digits, `u` capital
//! letters and digits, `b` base 32, `h` hexadecimal, `s` base64 for URLs, `d` digits; `{+}` is nothing. So no line of this
//! repository looks like a secret.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::negatives::NEGATIVES;
use super::positives::POSITIVES;
use crate::redact::{self, Kind};

/// The least of both that a kind must reach. A name has no form: what announces it is all there is to go by.
fn least(kind: Kind) -> f64 {
    if kind == Kind::Name { 0.9 } else { 0.95 }
}

/// Where the figures stand for people, between two marks.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/data-protection.md");
const BEGINS: &str = "<!-- figures: written by the test of the labelled set -->\n";
const ENDS: &str = "<!-- end of figures -->\n";

/// Compares the figures with the document, or writes them there with `UPDATE=1`.
#[expect(clippy::disallowed_methods, reason = "tests are told by their environment to write")]
fn keep_figures(figures: &str) {
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let (head, rest) = document.split_once(BEGINS).unwrap();
    let (kept, tail) = rest.split_once(ENDS).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(DOCUMENT, [head, BEGINS, figures, ENDS, tail].concat()).unwrap();
    } else {
        assert_eq!(kept, figures, "the figures in docs/data-protection.md are others; UPDATE=1 writes them");
    }
}

/// Fills in what is random, the same at every run.
pub(super) fn filled(template: &str, seed: u64) -> String {
    let mut chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut drawn = |from: &str| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let letters: Vec<char> = from.chars().collect();
        letters[usize::try_from(chance >> 33).unwrap() % letters.len()]
    };
    let mut parts = template.split('{');
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}').map_or((part, None), |(code, rest)| (code, Some(rest)));
        let (letter, count) = code.split_at_checked(1).unwrap_or_default();
        let alphabet = match letter {
            "a" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            "u" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
            "b" => "abcdefghijklmnopqrstuvwxyz234567",
            "h" => "0123456789abcdef",
            "s" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
            "d" => "0123456789",
            _ => "",
        };
        match (count.parse::<usize>(), rest) {
            (Ok(count), Some(rest)) if !alphabet.is_empty() => {
                text.extend((0..count).map(|_| drawn(alphabet)));
                text.push_str(rest);
            }
            _ if code == "+" => text.push_str(rest.unwrap_or_default()),
            _ => text.extend(["{", part]),
        }
    }
    text
}

/// The text, what must come out, and what must be gone.
fn labelled(kind: Kind, template: &str, seed: u64) -> (String, String, Vec<String>) {
    let filled = filled(template, seed);
    let (mut text, mut expected, mut secrets) = (String::new(), String::new(), Vec::new());
    for (number, part) in filled.split(['«', '»']).enumerate() {
        text.push_str(part);
        if number % 2 == 0 {
            expected.push_str(part);
        } else {
            expected.push_str(&kind.mark());
            secrets.push(part.to_owned());
        }
    }
    (text, expected, secrets)
}

#[derive(Default)]
struct Score {
    right: f64,
    missed: f64,
    wrong: f64,
}

#[test]
fn precision_and_recall_of_every_kind() {
    let mut scores: BTreeMap<Kind, Score> = BTreeMap::new();
    let mut told = Vec::new();
    for (seed, (kind, template)) in (1..).zip(POSITIVES) {
        let (text, expected, secrets) = labelled(*kind, template, seed);
        assert!(!secrets.is_empty(), "{template}");
        let found = redact::text(&text);
        let score = scores.entry(*kind).or_default();
        if secrets.iter().any(|secret| found.text.contains(secret)) || found.found.of(*kind) == 0 {
            score.missed += 1.0;
            told.push(format!("missed   {}: {text:?} became {:?}", kind.name(), found.text));
        } else {
            score.right += 1.0;
        }
        if found.text != expected && found.found.of(*kind) > 0 {
            score.wrong += 1.0;
            told.push(format!("too much {}: {text:?} became {:?}, not {expected:?}", kind.name(), found.text));
        }
    }
    for (seed, template) in (1_000..).zip(NEGATIVES) {
        let text = filled(template, seed);
        let found = redact::text(&text);
        for (kind, count) in found.found.iter() {
            scores.entry(kind).or_default().wrong += f64::from(u32::try_from(count).unwrap());
            told.push(format!("wrong    {}: {text:?} became {:?}", kind.name(), found.text));
        }
    }
    println!("{} positives, {} negatives", POSITIVES.len(), NEGATIVES.len());
    let mut low = Vec::new();
    let mut figures = format!(
        "{} texts with something to find, {} without.\n\n| kind | precision | recall | found | missed | wrong | least |\n|---|---|---|---|---|---|---|\n",
        POSITIVES.len(),
        NEGATIVES.len()
    );
    for (kind, score) in &scores {
        let (precision, recall) = (score.right / (score.right + score.wrong).max(1.0), score.right / (score.right + score.missed).max(1.0));
        println!("{:20} precision {precision:.3}  recall {recall:.3}  ({} right, {} missed, {} wrong)", kind.name(), score.right, score.missed, score.wrong);
        let least = least(*kind);
        let (right, missed, wrong) = (score.right, score.missed, score.wrong);
        writeln!(figures, "| `{}` | {precision:.3} | {recall:.3} | {right} | {missed} | {wrong} | {least} |", kind.name()).unwrap();
        if precision < least || recall < least {
            low.push(kind.name());
        }
    }
    println!("{}", told.join("\n"));
    assert!(POSITIVES.len() >= 150 && NEGATIVES.len() >= 150);
    assert!(low.is_empty(), "too low: {low:?}\n{}", told.join("\n"));
    keep_figures(&figures);
}

#[test]
fn every_kind_that_a_text_can_have_is_in_the_set() {
    let others = [Kind::Known, Kind::SecretField, Kind::TooDeep, Kind::Unclear];
    for kind in Kind::ALL.into_iter().filter(|kind| !others.contains(kind)) {
        let count = POSITIVES.iter().filter(|(known, _)| *known == kind).count();
        assert!(count >= 4, "{} has {count}", kind.name());
    }
}
