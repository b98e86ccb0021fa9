//! What conditions can ask of an act beyond its parts: `does('delete')`, `holds('card')`, `largest('amount')`, `count('ids')`,
//! `says('consent')`. What is asked for is written out in the condition, so it is checked when that is read; the answer is made
//! of the whole act, once, and only if it is asked for. What cannot be told has no answer, and the rule that asks for it fires.
//!
//! - [`doing`]: what an act does, by the words of its kind, tool and action.
//! - [`sql`]: what SQL in its texts would do.
//! - [`names`]: one spelling for the names of fields.

mod doing;
mod names;
mod sql;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use cel::common::ast::{Expr, IdedExpr, LiteralValue};
use serde_json::Value;

use super::Act;
use super::change::{Change, Held};
use super::yaml::nearest;
use crate::limits::{CONDITION_BYTES_MAX, CONDITION_VALUES_MAX};
use crate::redact::{self, Kind};
use doing::Doing;
use sql::Sql;

pub(super) use names::snake;

/// The functions, each with an example.
pub(super) const ASKS: [(&str, &str); 5] =
    [("does", "does('delete')"), ("holds", "holds('card')"), ("largest", "largest('amount')"), ("count", "count('ids')"), ("says", "says('consent')")];

/// Between the parts of a key; no name has it.
const APART: char = '\u{1f}';
/// Before the values of a key.
const VALUES: char = '\u{1e}';
/// How many names or values one question has.
const NAMES_MAX: usize = 100;
/// How long one of them is.
const NAME_BYTES_MAX: usize = 200;

/// What a text can hold: the name, and what it is.
pub(super) const HELD: &[(&str, &str)] = &[
    ("email", "an e-mail address"),
    ("phone", "a telephone number"),
    ("card", "the number of a payment card, with its check digit"),
    ("iban", "a bank account"),
    ("ssn", "a social security number of the United States"),
    ("personal", "any of these"),
    ("secret", "a password, a token or a key"),
    ("sql_insert", "SQL that adds rows"),
    ("sql_update", "SQL that changes rows"),
    ("sql_delete", "SQL that deletes rows"),
    ("sql_write", "any of these three"),
    ("sql_all_rows", "SQL that changes or deletes rows without a condition"),
    ("sql_schema", "SQL that makes, changes or drops tables, rights and the like"),
    ("sql_drop", "SQL that drops"),
];
/// Words that say no, or nothing.
const NO: [&str; 14] = ["", "no", "none", "false", "n", "n/a", "na", "null", "0", "off", "unknown", "tbd", "-", "?"];
/// Fields that say who gets something.
const RECIPIENTS: [&str; 16] = [
    "to",
    "cc",
    "bcc",
    "recipient",
    "recipients",
    "email",
    "emails",
    "e_mail",
    "address",
    "addresses",
    "to_email",
    "to_address",
    "email_address",
    "invitees",
    "attendees",
    "mailto",
];

/// What acts do: the name, and what it is.
pub(super) fn doings() -> impl Iterator<Item = (&'static str, &'static str)> {
    doing::DOINGS.iter().map(|doing| (doing.name, doing.what))
}

/// What an act does, as far as its words tell.
pub(crate) fn doings_of(act: &Act) -> Vec<&'static str> {
    let Some(told) = doing::words_of(act) else { return Vec::new() };
    doing::DOINGS.iter().filter(|doing| doing.is_told_by(&told)).map(|doing| doing.name).collect()
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Does(String),
    Holds(String),
    Largest(Vec<String>),
    Count(Vec<String>),
    Says(Vec<String>, Vec<String>),
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    Yes(bool),
    Number(f64),
    Whole(i64),
}

impl Ask {
    /// Whether a field of this name is asked for.
    pub(super) fn is_about(&self, field: &str) -> bool {
        match self {
            Self::Does(_) | Self::Holds(_) => false,
            Self::Largest(names) | Self::Count(names) | Self::Says(names, _) => names.iter().any(|name| name == field),
        }
    }

    /// Reads a call of one of the functions.
    pub(super) fn read(name: &str, arguments: &[IdedExpr]) -> Result<Self, String> {
        let example = ASKS.iter().find(|(known, _)| *known == name).map_or("", |(_, example)| *example);
        let texts: Option<Vec<Vec<String>>> = arguments.iter().map(texts).collect();
        let texts = texts.ok_or_else(|| format!("what `{name}` asks for has to be written out, so that it can be checked: write for example {example}"))?;
        let one = |known: &[&str]| match texts.as_slice() {
            [only] => match only.as_slice() {
                [word] if known.contains(&word.as_str()) => Ok(word.clone()),
                [word] => {
                    let hint = nearest(word, known).map_or_else(|| format!("there are {}", known.join(", ")), |near| format!("did you mean `{near}`?"));
                    Err(format!("`{name}` does not know `{}`: {hint}", super::yaml::short(word)))
                }
                _ => Err(format!("`{name}` takes one word: write for example {example}")),
            },
            _ => Err(format!("`{name}` takes one word: write for example {example}")),
        };
        let fields = |list: &[String]| {
            let names: Vec<String> = list.iter().map(|name| snake(name)).collect();
            if names.is_empty() || names.iter().any(String::is_empty) {
                Err(format!("`{name}` takes names of fields: write for example {example}"))
            } else {
                Ok(names)
            }
        };
        match (name, texts.as_slice()) {
            ("does", _) => one(&doing::DOINGS.iter().map(|doing| doing.name).collect::<Vec<_>>()).map(Self::Does),
            ("holds", _) => one(&HELD.iter().map(|(name, _)| *name).collect::<Vec<_>>()).map(Self::Holds),
            ("largest", [names]) => fields(names).map(Self::Largest),
            ("count", [names]) => fields(names).map(Self::Count),
            ("says", [names]) => Ok(Self::Says(fields(names)?, Vec::new())),
            ("says", [names, values]) if !values.is_empty() => Ok(Self::Says(fields(names)?, values.iter().map(|value| plain(value)).collect())),
            _ => Err(format!("`{name}` is not written so: write for example {example}")),
        }
    }

    /// Whether it is answered by a number, and by a whole one.
    pub(super) fn is_number(&self) -> (bool, bool) {
        (matches!(self, Self::Largest(_) | Self::Count(_)), matches!(self, Self::Count(_)))
    }

    /// The name under which a condition finds the answer.
    pub(super) fn key(&self) -> String {
        let joined = |names: &[String]| names.join(&APART.to_string());
        match self {
            Self::Does(what) => format!("does{APART}{what}"),
            Self::Holds(what) => format!("holds{APART}{what}"),
            Self::Largest(names) => format!("largest{APART}{}", joined(names)),
            Self::Count(names) => format!("count{APART}{}", joined(names)),
            Self::Says(names, values) if values.is_empty() => format!("says{APART}{}", joined(names)),
            Self::Says(names, values) => format!("says{APART}{}{VALUES}{}", joined(names), joined(values)),
        }
    }

    fn of_key(key: &str) -> Option<Self> {
        let (name, rest) = key.split_once(APART)?;
        let split = |text: &str| text.split(APART).map(str::to_owned).collect();
        Some(match name {
            "does" => Self::Does(rest.to_owned()),
            "holds" => Self::Holds(rest.to_owned()),
            "largest" => Self::Largest(split(rest)),
            "count" => Self::Count(split(rest)),
            "says" => match rest.split_once(VALUES) {
                None => Self::Says(split(rest), Vec::new()),
                Some((names, values)) => Self::Says(split(names), split(values)),
            },
            _ => return None,
        })
    }
}

/// Whether the key of a question asks for what an act is called with: all but what it does.
pub(super) fn is_about_the_change(key: &str) -> bool {
    Ask::of_key(key).is_some_and(|ask| !matches!(ask, Ask::Does(_)))
}

/// A text that is written out, or a list of them.
fn texts(argument: &IdedExpr) -> Option<Vec<String>> {
    let text = |expression: &Expr| match expression {
        Expr::Literal(LiteralValue::String(text)) => {
            Some(text.inner().to_owned()).filter(|text| text.len() <= NAME_BYTES_MAX && !text.contains(char::is_control))
        }
        _ => None,
    };
    match &argument.expr {
        Expr::List(list) if list.elements.len() <= NAMES_MAX => list.elements.iter().map(|element| text(&element.expr)).collect(),
        one => text(one).map(|one| vec![one]),
    }
}

/// A value as it is compared.
fn plain(text: &str) -> String {
    text.trim().to_lowercase()
}

/// An act under questioning. What several questions need is found once.
pub(super) struct Look<'a> {
    act: &'a Act,
    change: &'a Change<'a>,
    told: OnceLock<Option<BTreeSet<String>>>,
    kinds: OnceLock<BTreeSet<Kind>>,
    sql: OnceLock<Sql>,
}

impl<'a> Look<'a> {
    pub(super) fn new(act: &'a Act, change: &'a Change<'a>) -> Self {
        Self { act, change, told: OnceLock::new(), kinds: OnceLock::new(), sql: OnceLock::new() }
    }

    /// The answer to a question, if it can be told. `within_bounds` says whether the arguments are small enough to be looked
    /// through.
    pub(super) fn answer(&self, key: &str, within_bounds: impl FnOnce() -> bool) -> Option<Answer> {
        match Ask::of_key(key)? {
            Ask::Does(what) => {
                let told = self.told.get_or_init(|| doing::words_of(self.act)).as_ref()?;
                Some(Answer::Yes(Doing::named(&what)?.is_told_by(told)))
            }
            Ask::Holds(what) => within_bounds().then(|| Answer::Yes(self.holds(&what))),
            Ask::Largest(names) => self.largest(&names).map(Answer::Number),
            Ask::Count(names) => self.is_clear().then(|| Answer::Whole(i64::try_from(self.under(&names).count()).unwrap_or(i64::MAX))),
            Ask::Says(names, values) => self.is_clear().then(|| Answer::Yes(self.says(&names, &values))),
        }
    }

    /// Whether every field of the change can be seen.
    fn is_clear(&self) -> bool {
        !self.change.over && !self.change.opaque
    }

    /// What stands under fields with one of some names.
    fn under<'s>(&'s self, names: &'s [String]) -> impl Iterator<Item = &'s Held<'a>> + 's {
        self.change.entries().filter(|(path, last, _)| !path.is_empty() && names.contains(&snake(last))).map(|(_, _, held)| held)
    }

    fn largest(&self, names: &[String]) -> Option<f64> {
        if !self.is_clear() {
            return None;
        }
        let mut largest = None;
        for held in self.under(names) {
            let number = match held {
                Held::Number(number) => *number,
                Held::Text(text) => text.trim().parse::<f64>().ok()?,
                Held::Null | Held::Many => continue,
                // A field that is named and has no number could have any.
                Held::Missing | Held::Bool(_) => return None,
            };
            if !number.is_finite() {
                return None;
            }
            largest = Some(largest.map_or(number, |largest: f64| largest.max(number)));
        }
        Some(largest.unwrap_or(0.0))
    }

    fn says(&self, names: &[String], values: &[String]) -> bool {
        let mut any = false;
        for held in self.under(names) {
            let said = match held {
                Held::Missing | Held::Null => String::new(),
                Held::Bool(value) => value.to_string(),
                Held::Number(number) => number.to_string(),
                Held::Text(text) => plain(text),
                Held::Many => "…".to_owned(),
            };
            if values.is_empty() {
                if NO.contains(&said.as_str()) {
                    return false;
                }
                any = true;
            } else {
                any |= values.contains(&said);
            }
        }
        any
    }

    fn holds(&self, what: &str) -> bool {
        let kinds = || self.kinds.get_or_init(|| redact::kinds_in(&self.act.arguments));
        let sql = || self.sql.get_or_init(|| self.sql());
        match what {
            "sql_insert" => sql().inserts,
            "sql_update" => sql().updates,
            "sql_delete" => sql().deletes,
            "sql_write" => sql().writes(),
            "sql_all_rows" => sql().all_rows,
            "sql_schema" => sql().schema,
            "sql_drop" => sql().drops,
            _ => kinds().iter().any(|kind| fits(what, *kind)),
        }
    }

    fn sql(&self) -> Sql {
        let mut found = Sql::default();
        for text in self.texts().filter(|text| sql::may_be(text)) {
            found.add(sql::read(text));
        }
        found
    }

    /// Every text in the change, also in JSON that is kept in a text.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let whole = self.act.arguments.as_str();
        let held = self.change.entries().filter_map(|(_, _, held)| match held {
            Held::Text(text) => Some(&**text),
            _ => None,
        });
        whole.into_iter().chain(held)
    }

    /// The texts as a list, unless it is too long.
    pub(super) fn all_texts(&self) -> Option<Vec<&str>> {
        let texts: Vec<&str> = self.texts().take(CONDITION_VALUES_MAX + 1).collect();
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        (!self.change.over && texts.len() <= CONDITION_VALUES_MAX && bytes <= CONDITION_BYTES_MAX).then_some(texts)
    }

    /// The names of all fields in one spelling.
    pub(super) fn fields(&self) -> Option<Vec<String>> {
        let names: BTreeSet<String> = self.change.entries().map(|(_, last, _)| snake(last)).filter(|name| !name.is_empty()).collect();
        (self.is_clear() && names.len() <= CONDITION_VALUES_MAX).then(|| names.into_iter().collect())
    }

    /// Who gets it: addresses in small letters, and whatever else stands in their place.
    pub(super) fn recipients(&self) -> Option<Vec<String>> {
        let names: Vec<String> = RECIPIENTS.iter().map(|name| (*name).to_owned()).collect();
        let mut found = BTreeSet::new();
        for held in self.under(&names) {
            if let Held::Text(text) = held {
                found.extend(text.split([',', ';', '\n']).map(address).filter(|address| !address.is_empty()));
            }
            if found.len() > CONDITION_VALUES_MAX {
                return None;
            }
        }
        self.is_clear().then(|| found.into_iter().collect())
    }
}

/// `Ada <ada@example.com>` as `ada@example.com`.
fn address(text: &str) -> String {
    let inner = text.rsplit_once('<').map_or(text, |(_, rest)| rest.split('>').next().unwrap_or(rest));
    inner.trim().to_lowercase()
}

/// Whether a finding is of the kind that is asked for. What could not be looked into may be anything.
fn fits(what: &str, kind: Kind) -> bool {
    match kind {
        Kind::TooDeep | Kind::Unclear => true,
        kind if Kind::PERSONAL.contains(&kind) => what == kind.name() || what == "personal",
        _ => what == "secret",
    }
}

/// The kind of data in `holds(KIND)`, as rules name what they hide.
pub(super) fn held_kind(pattern: &str) -> Option<&str> {
    pattern.strip_prefix("holds(")?.strip_suffix(')')
}

/// What is wrong with the kind of data that a rule hides.
pub(super) fn held_problem(kind: &str) -> Option<String> {
    let known: Vec<&str> = HELD.iter().map(|(name, _)| *name).filter(|name| !name.starts_with("sql_")).collect();
    (!known.contains(&kind)).then(|| format!("`holds({})` is not known: write holds(…) with one of {}", super::yaml::short(kind), known.join(", ")))
}

/// Whether a text or a number under a key holds one of some kinds of data.
pub(super) fn holds_any(kinds: &[&str], key: &str, value: &Value) -> bool {
    let mut table = serde_json::Map::new();
    table.insert(key.to_owned(), value.clone());
    redact::kinds_in(&Value::Object(table)).into_iter().any(|found| kinds.iter().any(|what| fits(what, found)))
}
