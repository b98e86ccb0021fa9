//! Numbers and times in statements about acts.

use std::collections::BTreeSet;

use super::super::tokens::{Break, Kind, number_at};
use super::super::when::{clock_at, weekdays_at};
use super::{Reading, Statement};

/// How a number is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// It fires above the number.
    Above,
    /// It fires at the number and above.
    From,
    /// It fires below the number.
    Below,
}

/// What is counted or measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Amount {
    /// Money in the arguments.
    Money(Compared, f64),
    /// Records, files or the like.
    Count(Compared, f64),
    Recipients(Compared, f64),
    /// Acts in a `minute`, an `hour` or a `day`.
    Rate(&'static str, f64),
    /// What the act costs, or with `true` what the day costs.
    Cost(bool, f64),
}

/// Hours and days.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// From and to, in minutes of the day.
    pub(super) hours: Option<(u32, u32)>,
    /// Bits from Sunday on.
    pub(super) days: Option<u8>,
    /// Whether it is outside of these that is meant.
    pub(super) outside: bool,
}

const ABOVE: [&[&str]; 15] = [
    &["more", "than"],
    &["greater", "than"],
    &["larger", "than"],
    &["bigger", "than"],
    &["higher", "than"],
    &["in", "excess", "of"],
    &["above"],
    &["over"],
    &["exceeding"],
    &["exceed"],
    &["exceeds"],
    &["beyond"],
    &["worth", "more", "than"],
    &["of", "more", "than"],
    &["past"],
];
/// What begins with a word that may be a part of an effect, too.
const NO_MORE: [&[&str]; 4] = [&["at", "most"], &["no", "more", "than"], &["not", "more", "than"], &["up", "to"]];
const MOST: [&[&str]; 7] = [&["maximum", "of"], &["max", "of"], &["maximum"], &["max"], &["limit", "of"], &["capped", "at"], &["to"]];
const LEAST: [&[&str]; 2] = [&["at", "least"], &["starting", "at"]];
const BELOW: [&[&str]; 6] = [&["less", "than"], &["fewer", "than"], &["smaller", "than"], &["lower", "than"], &["below"], &["under"]];

const MONEY: [&str; 19] =
    ["euro", "euros", "eur", "dollar", "dollars", "usd", "pound", "pounds", "gbp", "chf", "francs", "$", "€", "£", "bucks", "cents", "yen", "sek", "credits"];
const COUNTED: [&str; 41] = [
    "record",
    "records",
    "row",
    "rows",
    "item",
    "items",
    "entry",
    "entries",
    "contact",
    "contacts",
    "customer",
    "customers",
    "user",
    "users",
    "account",
    "accounts",
    "file",
    "files",
    "document",
    "documents",
    "order",
    "orders",
    "ticket",
    "tickets",
    "object",
    "objects",
    "key",
    "keys",
    "folder",
    "folders",
    "page",
    "pages",
    "product",
    "products",
    "lines",
    "deals",
    "leads",
    "invoices",
    "photos",
    "tables",
    "things",
];
const ADDRESSED: [&str; 8] = ["recipient", "recipients", "people", "addresses", "receivers", "addressees", "persons", "contacts_at_once"];

impl Reading<'_> {
    fn starts(&self, at: usize, phrases: &[&[&str]]) -> Option<usize> {
        let fits = |phrase: &&&[&str]| phrase.iter().enumerate().all(|(offset, word)| self.word(at + offset) == *word);
        phrases.iter().filter(fits).map(|phrase| phrase.len()).max()
    }

    pub(super) fn amounts(&self, statement: &mut Statement, used: &mut BTreeSet<usize>) {
        let mut at = statement.start;
        while at < statement.end {
            let (compared, length) = if let Some(length) = self.starts(at, &NO_MORE) {
                (Some(Compared::Above), length)
            } else if used.contains(&at) {
                (None, 0)
            } else if let Some(length) = self.starts(at, &LEAST) {
                (Some(Compared::From), length)
            } else if let Some(length) = self.starts(at, &MOST) {
                (Some(Compared::Above), length)
            } else if let Some(length) = self.starts(at, &ABOVE) {
                (Some(Compared::Above), length)
            } else if let Some(length) = self.starts(at, &BELOW) {
                (Some(Compared::Below), length)
            } else {
                (None, 0)
            };
            match self.amount_at(at + length, compared, statement) {
                Some((amount, end)) => {
                    used.extend(at..end);
                    statement.amounts.push((at, amount));
                    at = end;
                }
                None => at += 1,
            }
        }
    }

    /// A number with what it counts.
    fn amount_at(&self, at: usize, compared: Option<Compared>, statement: &mut Statement) -> Option<(Amount, usize)> {
        let is_sign = MONEY.contains(&self.word(at)) && self.tokens.get(at).is_some_and(|token| token.kind == Kind::Sign);
        let place = at + usize::from(is_sign);
        if place >= statement.end || statement.quorum.is_some() && compared.is_none() {
            return None;
        }
        let (number, taken) = number_at(self.tokens, place)?;
        let mut end = place + taken;
        let is_money = is_sign || MONEY.contains(&self.word(end));
        if MONEY.contains(&self.word(end)) {
            end += 1;
        }
        let unit = end;
        // "100 API calls per minute": some words may stand between.
        let period = (end..(end + 5).min(statement.end))
            .find(|at| matches!(self.word(*at), "per" | "a" | "an" | "each" | "every" | "/" | "in") && self.is_period(*at + 1));
        let (from, to) = (statement.start, statement.end);
        let text = |word: &str| (from..to).any(|at| self.word(at) == word);
        let is_cost =
            text("cost") || text("costs") || text("costing") || text("budget") || text("spend") || text("spends") || text("spending") || text("spent");
        if let Some(period) = period.filter(|period| (end..*period).all(|at| self.tokens.get(at).is_none_or(|token| token.before == Break::No))) {
            let after = period + 1 + usize::from(matches!(self.word(period + 1), "a" | "an" | "single" | "one"));
            let name = match self.word(after) {
                "minute" => "minute",
                "hour" => "hour",
                "day" => "day",
                other => {
                    statement.cannot.push(format!("how much there is per {other}: acts are counted per minute, hour and day, and costs per day"));
                    return Some((Amount::Cost(true, number), after + 1));
                }
            };
            if is_money || is_cost && name == "day" {
                if name != "day" {
                    statement.cannot.push(format!("costs per {name}: they are counted per day"));
                }
                return Some((Amount::Cost(true, number), after + 1));
            }
            return Some((Amount::Rate(name, number), after + 1));
        }
        let is_daily = self.word(unit) == "daily" || (is_cost && text("daily")) || (is_cost && text("day"));
        let compared = match (self.word(end), self.word(end + 1)) {
            ("or", "more") => {
                end += 2;
                Some(Compared::From)
            }
            _ => compared,
        };
        if is_cost && (is_money || compared.is_some() || text("budget")) {
            return Some((Amount::Cost(is_daily || text("budget"), number), end + usize::from(self.word(end) == "daily")));
        }
        if is_money {
            return Some((Amount::Money(compared?, number), end));
        }
        let counted = (end..(end + 3).min(statement.end)).find(|at| COUNTED.contains(&self.word(*at)) || ADDRESSED.contains(&self.word(*at)));
        if let Some(counted) = counted {
            let is_people = ADDRESSED.contains(&self.word(counted));
            let amount = if is_people { Amount::Recipients(compared?, number) } else { Amount::Count(compared?, number) };
            return Some((amount, counted + 1));
        }
        let compared = compared?;
        if matches!(
            self.word(end),
            "percent"
                | "%"
                | "mb"
                | "gb"
                | "kb"
                | "bytes"
                | "megabytes"
                | "gigabytes"
                | "times"
                | "months"
                | "month"
                | "years"
                | "year"
                | "days"
                | "weeks"
                | "hours"
                | "minutes"
                | "seconds"
        ) {
            statement.cannot.push(format!(
                "\"{}\": conditions know amounts of money, numbers of records and recipients, and acts in a minute, hour or day",
                self.said(place, end + 1)
            ));
            return Some((Amount::Count(compared, number), end + 1));
        }
        // A bare number beside money is money: "payments above 500".
        Some((Amount::Money(compared, number), end))
    }

    fn is_period(&self, at: usize) -> bool {
        let at = at + usize::from(matches!(self.word(at), "a" | "an" | "single" | "one"));
        matches!(self.word(at), "minute" | "hour" | "day" | "second" | "week" | "month" | "year" | "run" | "quarter")
    }

    pub(super) fn times(&self, statement: &mut Statement, used: &mut BTreeSet<usize>) {
        let mut times = Times::default();
        let mut at = statement.start;
        while at < statement.end {
            at += self.time_at(at, statement, &mut times, used).max(1);
        }
        if times.hours.is_none() && times.days.is_none() {
            return;
        }
        let zoned = (statement.start..statement.end).find(|at| {
            self.tokens.get(*at).is_some_and(|token| token.kind == Kind::Zone && !matches!(token.text.as_str(), "Etc/UTC"))
                || (self.word(*at) == "time" && *at > 0 && !used.contains(&(*at - 1)) && self.word(*at - 1) != "utc" && !self.is_plain(*at - 1))
        });
        if let Some(zoned) = zoned {
            statement
                .cannot
                .push(format!("times of another zone (\"{}\"): conditions know UTC", self.said(zoned.saturating_sub(1).max(statement.start), zoned + 1)));
        }
        statement.times = Some(times);
    }

    fn is_plain(&self, at: usize) -> bool {
        self.words.filler.iter().chain(&self.lexicon.stops).any(|word| word == self.word(at))
    }

    /// How many pieces speak of a time here.
    fn time_at(&self, at: usize, statement: &Statement, times: &mut Times, used: &mut BTreeSet<usize>) -> usize {
        let word = self.word(at);
        let minutes = |(hour, minute): (u32, u32)| hour * 60 + minute;
        let mut note = |taken: usize| {
            used.extend(at..at + taken);
            taken
        };
        if matches!(word, "office" | "business" | "working" | "work") && self.word(at + 1) == "hours" {
            times.hours.get_or_insert((9 * 60, 17 * 60));
            times.days.get_or_insert(0b011_1110);
            let before = at.checked_sub(1).map_or("", |before| self.word(before));
            times.outside |= matches!(before, "outside" | "after") || at >= 2 && self.word(at - 2) == "outside";
            return note(2);
        }
        if matches!(word, "between" | "from")
            && let Some((first, one)) = clock_at(self.lexicon, self.tokens, at + 1)
            && matches!(self.word(at + 1 + one), "and" | "to" | "until" | "till" | "-")
            && let Some((last, two)) = clock_at(self.lexicon, self.tokens, at + 2 + one)
        {
            times.hours = Some((minutes(first), minutes(last)));
            times.outside |= at > statement.start && self.word(at - 1) == "outside";
            return note(2 + one + two);
        }
        if matches!(word, "after" | "before" | "until" | "till")
            && let Some((time, taken)) = clock_at(self.lexicon, self.tokens, at + 1)
        {
            let (from, to) = times.hours.unwrap_or((0, 24 * 60));
            times.hours = Some(if word == "after" {
                (minutes(time), if to == 24 * 60 { 24 * 60 } else { to })
            } else {
                (if from == 0 { 0 } else { from }, minutes(time))
            });
            return note(1 + taken);
        }
        if (word == "at" && self.word(at + 1) == "night") || word == "overnight" || word == "nights" || word == "night" {
            times.hours.get_or_insert((22 * 60, 6 * 60));
            return note(if word == "at" { 2 } else { 1 });
        }
        if let Some((days, taken)) = weekdays_at(self.lexicon, self.tokens, at).filter(|_| !used_word(word)) {
            times.days = Some(times.days.unwrap_or(0) | days);
            let skip = 0;
            return note(taken + skip);
        }
        0
    }
}

/// Short names of days that are words as well.
fn used_word(word: &str) -> bool {
    matches!(word, "sun" | "sat" | "wed" | "fri" | "mon" | "thu" | "tue")
}
