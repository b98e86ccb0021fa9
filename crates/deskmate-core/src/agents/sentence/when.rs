//! How often and when, from the words of a sentence to cron. What cron cannot say is said instead.

mod clock;
mod settle;

use std::collections::BTreeSet;

use super::lexicon::{Found, Lexicon};
use super::tokens::{Break, Kind, Token, number_at};
use super::whole;
use crate::agents::schedule;

/// A schedule that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) cron: Option<String>,
    pub(super) zone: Option<String>,
    /// The pieces of the sentence that it came from.
    pub(super) used: BTreeSet<usize>,
    /// What the sentence left open, and what stands there now.
    pub(super) assumed: Vec<String>,
    /// What cannot be done.
    pub(super) problems: Vec<String>,
}

/// How often.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Often {
    Seconds(u32),
    Minutes(u32),
    Hours(u32),
    Days(u32),
    Weeks(u32),
    Months(u32),
    Years,
    /// Bit 0 is Sunday.
    Weekdays(u8),
    /// So many times in a day.
    TimesADay(u32),
    TimesAnHour(u32),
    TimesAWeek(u32),
    /// The day field and the weekday field of cron.
    InMonth(String, String),
    /// Months as cron has them, and the day.
    InYear(String, u32),
}

const WEEKDAYS: [(&str, u8); 23] = [
    ("sunday", 0),
    ("sundays", 0),
    ("sun", 0),
    ("monday", 1),
    ("mondays", 1),
    ("mon", 1),
    ("tuesday", 2),
    ("tuesdays", 2),
    ("tue", 2),
    ("tues", 2),
    ("wednesday", 3),
    ("wednesdays", 3),
    ("wed", 3),
    ("thursday", 4),
    ("thursdays", 4),
    ("thu", 4),
    ("thurs", 4),
    ("friday", 5),
    ("fridays", 5),
    ("fri", 5),
    ("saturday", 6),
    ("saturdays", 6),
    ("sat", 6),
];
const MONTHS: [&str; 12] = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];
const ORDINALS: [(&str, u32); 7] = [("first", 1), ("second", 2), ("third", 3), ("fourth", 4), ("fifth", 5), ("last", 0), ("final", 0)];
const WORKDAYS: u8 = 0b011_1110;
const WEEKEND: u8 = 0b100_0001;

struct When<'t> {
    lexicon: &'t Lexicon,
    tokens: &'t [Token],
    plan: Planned,
    often: Option<Often>,
    weekdays: u8,
    times: Vec<(u32, u32)>,
    window: Option<(u32, u32)>,
    /// A part of the day, and the word for it.
    part: Option<String>,
    others: Vec<String>,
}

/// Finds a schedule in a sentence.
pub(super) fn find(lexicon: &Lexicon, tokens: &[Token]) -> Planned {
    let mut when =
        When { lexicon, tokens, plan: Planned::default(), often: None, weekdays: 0, times: Vec::new(), window: None, part: None, others: Vec::new() };
    when.written_cron();
    if when.plan.cron.is_none() {
        when.scan();
        when.settle();
    }
    when.zone();
    when.plan
}

/// A time of day at a place: hour and minute, and how many pieces it takes.
pub(super) fn clock_at(lexicon: &Lexicon, tokens: &[Token], at: usize) -> Option<((u32, u32), usize)> {
    let when = When { lexicon, tokens, plan: Planned::default(), often: None, weekdays: 0, times: Vec::new(), window: None, part: None, others: Vec::new() };
    when.clock(at, true)
}

/// Days of the week at a place, as bits from Sunday on, and how many pieces they take.
pub(super) fn weekdays_at(lexicon: &Lexicon, tokens: &[Token], at: usize) -> Option<(u8, usize)> {
    let when = When { lexicon, tokens, plan: Planned::default(), often: None, weekdays: 0, times: Vec::new(), window: None, part: None, others: Vec::new() };
    match when.word(at) {
        "weekdays" | "weekday" | "workdays" => Some((WORKDAYS, 1)),
        "weekends" | "weekend" => Some((WEEKEND, 1)),
        "business" | "working" if matches!(when.next(at + 1), "day" | "days") => Some((WORKDAYS, 2)),
        _ => when.weekday_list(at),
    }
}

impl When<'_> {
    fn word(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text.as_str())
    }

    /// A word that follows without a comma or the end of a sentence.
    fn next(&self, at: usize) -> &str {
        self.tokens.get(at).filter(|token| token.before == Break::No).map_or("", |token| token.text.as_str())
    }

    fn take(&mut self, start: usize, end: usize) {
        self.plan.used.extend(start..end);
    }

    /// A cron expression that somebody wrote out: five or six fields after one another.
    fn written_cron(&mut self) {
        let glued = |at: usize| self.tokens.get(at).zip(self.tokens.get(at + 1)).is_some_and(|(one, other)| one.end == other.start);
        let is_part = |token: &Token| {
            matches!(token.kind, Kind::Number | Kind::Sign) && token.text.chars().all(|letter| letter.is_ascii_digit() || "*/,-#".contains(letter))
                || is_day(&token.text)
        };
        let mut start = 0;
        while start < self.tokens.len() {
            let mut fields: Vec<String> = Vec::new();
            let mut at = start;
            let mut has_star = false;
            while let Some(token) = self.tokens.get(at).filter(|token| is_part(token)) {
                let mut field = token.text.clone();
                while glued(at) && self.tokens.get(at + 1).is_some_and(is_part) {
                    at += 1;
                    field.push_str(self.word(at));
                }
                at += 1;
                has_star |= field.starts_with('*');
                fields.push(field);
                if fields.len() == 6 {
                    break;
                }
            }
            let text = fields.join(" ");
            if fields.len() >= 5 && has_star && schedule::Schedule::read(&text, "UTC").is_ok() {
                let begin = if start > 0 && matches!(self.word(start - 1), "cron" | "schedule" | "crontab") { start - 1 } else { start };
                self.take(begin, at);
                self.plan.cron = Some(text);
                return;
            }
            start += 1;
        }
        // A short name such as @daily.
        for at in 0..self.tokens.len() {
            let name = format!("@{}", self.word(at + 1));
            if self.word(at) == "@" && glued(at) && schedule::Schedule::read(&name, "UTC").is_ok() {
                self.take(at, at + 2);
                self.plan.cron = Some(name);
                return;
            }
        }
    }

    fn scan(&mut self) {
        let mut at = 0;
        while at < self.tokens.len() {
            let taken =
                self.often_at(at).or_else(|| self.weekdays_at(at)).or_else(|| self.window_at(at)).or_else(|| self.times_at(at)).or_else(|| self.part_at(at));
            match taken {
                Some(taken) => {
                    self.take(at, at + taken);
                    at += taken;
                }
                None => at += 1,
            }
        }
    }

    /// Notes how often; of two different ones the first counts.
    fn note(&mut self, often: Often, at: usize, taken: usize) -> usize {
        match &self.often {
            None => self.often = Some(often),
            // "weekly on Mondays", "every month on the first": the second says more.
            Some(Often::Weeks(1)) if matches!(often, Often::Weekdays(_)) => self.often = Some(often),
            Some(Often::Months(1)) if matches!(often, Often::InMonth(..)) => self.often = Some(often),
            Some(Often::Years) if matches!(often, Often::InYear(..)) => self.often = Some(often),
            Some(Often::Days(1)) if matches!(often, Often::TimesADay(_) | Often::Hours(_) | Often::Minutes(_)) => self.often = Some(often),
            Some(Often::Months(months)) if *months > 1 && matches!(often, Often::InMonth(..)) => {}
            Some(known) if *known == often => {}
            Some(Often::Weekdays(_) | Often::InMonth(..) | Often::Hours(_) | Often::Minutes(_) | Often::TimesADay(_))
                if matches!(often, Often::Days(1) | Often::Weeks(1) | Often::Months(1)) => {}
            Some(_) => self.others.push(self.words(at, at + taken)),
        }
        taken
    }

    fn words(&self, start: usize, end: usize) -> String {
        (start..end).map(|at| self.word(at)).collect::<Vec<_>>().join(" ")
    }

    fn often_at(&mut self, at: usize) -> Option<usize> {
        let word = self.word(at).to_owned();
        let often = match word.as_str() {
            "hourly" => Some(Often::Hours(1)),
            "daily" => Some(Often::Days(1)),
            "weekly" => Some(Often::Weeks(1)),
            "monthly" => Some(Often::Months(1)),
            "quarterly" => Some(Often::Months(3)),
            "yearly" | "annually" | "annual" => Some(Often::Years),
            "fortnightly" | "biweekly" => Some(Often::Weeks(2)),
            "minutely" => Some(Often::Minutes(1)),
            "nightly" => {
                self.part.get_or_insert_with(|| "night".to_owned());
                Some(Often::Days(1))
            }
            _ => None,
        };
        if let Some(often) = often {
            return Some(self.note(often, at, 1));
        }
        // "at 5 past every hour"
        if let Some((minute, taken)) = number_at(self.tokens, at)
            && self.next(at + taken) == "past"
            && matches!(self.next(at + taken + 1), "every" | "each" | "the")
            && self.next(at + taken + 2) == "hour"
            && let Some(minute) = whole(minute).filter(|minute| *minute < 60)
        {
            self.times.push((0, minute));
            return Some(self.note(Often::Hours(1), at, taken + 3));
        }
        if let Some(taken) = self.every_at(at).or_else(|| self.times_a_at(at)).or_else(|| self.in_month_at(at)).or_else(|| self.in_year_at(at)) {
            return Some(taken);
        }
        None
    }

    /// "every 15 minutes", "each day", "every other day", "every half hour", "every first Monday", "every morning".
    fn every_at(&mut self, at: usize) -> Option<usize> {
        if !matches!(self.word(at), "every" | "each" | "all") {
            return None;
        }
        let is_every = self.word(at) == "every";
        let next = self.next(at + 1).to_owned();
        // "every half hour", "every half an hour", "every quarter of an hour"
        if next == "half" {
            let end = (at + 2..at + 5).find(|place| self.next(*place) == "hour")?;
            return Some(self.note(Often::Minutes(30), at, end + 1 - at));
        }
        if next == "quarter" {
            let hour = (at + 2..at + 5).find(|place| self.next(*place) == "hour");
            return Some(match hour {
                Some(end) => self.note(Often::Minutes(15), at, end + 1 - at),
                None => self.note(Often::Months(3), at, 2),
            });
        }
        // "every second Sunday" is one of the month, or every two weeks; it is not every second.
        if matches!(next.as_str(), "second" | "other") && is_day(self.next(at + 2)) {
            if next == "second"
                && let Some(taken) = self.in_month_from(at, at + 1).filter(|taken| *taken > 3)
            {
                return Some(taken);
            }
            self.often = None;
            return Some(self.note(Often::Weeks(2), at, 3));
        }
        if next == "fortnight" {
            return Some(self.note(Often::Weeks(2), at, 2));
        }
        let (count, mut taken) = match number_at(self.tokens, at + 1).filter(|_| self.tokens.get(at + 1).is_some_and(|token| token.before == Break::No)) {
            Some((number, taken)) => (whole(number)?, taken + 1),
            None if matches!(next.as_str(), "other" | "second") && unit(self.next(at + 2), 1).is_some() => (2, 2),
            None if next == "third" && unit(self.next(at + 2), 1).is_some() => (3, 2),
            None if next == "single" => (1, 2),
            None => (1, 1),
        };
        if self.word(at) == "all" && taken == 1 {
            return None;
        }
        if let Some(often) = unit(self.next(at + taken), count) {
            taken += 1;
            // "every hour of the day", "each day of the week"
            if self.next(at + taken) == "of" && self.next(at + taken + 1) == "the" && matches!(self.next(at + taken + 2), "week" | "day" | "year" | "month") {
                taken += 3;
            }
            return Some(self.note(often, at, taken));
        }
        if taken > 1 {
            return None;
        }
        match next.as_str() {
            "weekday" | "workday" | "weekdays" => Some(self.note(Often::Weekdays(WORKDAYS), at, 2)),
            "business" | "working" | "work" if matches!(self.next(at + 2), "day" | "days") => Some(self.note(Often::Weekdays(WORKDAYS), at, 3)),
            "weekend" | "weekends" => Some(self.note(Often::Weekdays(WEEKEND), at, 2)),
            part if self.lexicon.times.contains_key(part) && part != "day" => {
                self.part = Some(part.to_owned());
                Some(self.note(Often::Days(1), at, 2))
            }
            day if is_day(day) => {
                let (mask, taken) = self.weekday_list(at + 1)?;
                // "every Monday morning"
                Some(self.note(Often::Weekdays(mask), at, taken + 1))
            }
            ordinal if is_every && (ordinal_of(ordinal).is_some() || self.day_number(at + 1).is_some()) => {
                self.in_month_from(at, at + 1).or_else(|| self.in_year_at(at))
            }
            _ => None,
        }
    }

    /// "twice a day", "three times per week", "once an hour".
    fn times_a_at(&mut self, at: usize) -> Option<usize> {
        let (count, mut taken) = match self.word(at) {
            "once" => (1, 1),
            "twice" => (2, 1),
            "thrice" => (3, 1),
            _ => {
                let (number, taken) = number_at(self.tokens, at)?;
                matches!(self.next(at + taken), "times" | "time" | "x").then_some(())?;
                (whole(number)?, taken + 1)
            }
        };
        let adverb = match self.next(at + taken) {
            "daily" => Some("day"),
            "hourly" => Some("hour"),
            "weekly" => Some("week"),
            "monthly" => Some("month"),
            "yearly" => Some("year"),
            _ => None,
        };
        if adverb.is_none() {
            if !matches!(self.next(at + taken), "a" | "an" | "per" | "each" | "every" | "/") {
                return None;
            }
            taken += 1;
        }
        let often = match (adverb.unwrap_or_else(|| self.next(at + taken)), count) {
            ("day", 1) => Often::Days(1),
            ("day", count) => Often::TimesADay(count),
            ("hour", 1) => Often::Hours(1),
            ("hour", count) => Often::TimesAnHour(count),
            ("minute", 1) => Often::Minutes(1),
            ("week", 1) => Often::Weeks(1),
            ("week", count) => Often::TimesAWeek(count),
            ("month", 1) => Often::Months(1),
            ("month", 2) => Often::InMonth("1,15".to_owned(), "*".to_owned()),
            ("year", 1) => Often::Years,
            ("year", 2) => Often::Months(6),
            ("quarter", 1) | ("year", 4) => Often::Months(3),
            ("night" | "morning" | "evening", 1) => {
                self.part = Some(self.next(at + taken).to_owned());
                Often::Days(1)
            }
            _ => return None,
        };
        Some(self.note(often, at, taken + 1))
    }

    /// "on the first of every month", "the last Friday of the month", "at the end of the month".
    fn in_month_at(&mut self, at: usize) -> Option<usize> {
        let mut place = at;
        if matches!(self.word(place), "on" | "at" | "by") {
            place += 1;
        }
        if matches!(self.next_or_first(place, at), "the" | "each" | "every") {
            place += 1;
        }
        if place == at {
            return None;
        }
        let begin = match self.next(place) {
            "end" => Some(("L", 1)),
            "start" | "beginning" => Some(("1", 1)),
            "middle" => Some(("15", 1)),
            _ => None,
        };
        if let Some((day, taken)) = begin {
            let after = self.of_month(place + taken).or_else(|| self.of_week(place + taken).filter(|_| true));
            if let Some(end) = self.of_month(place + taken) {
                return Some(self.note(Often::InMonth(day.to_owned(), "*".to_owned()), at, end - at));
            }
            let end = after?;
            let day = if day == "L" { 1 << 5 } else { 1 << 1 };
            return Some(self.note(Often::Weekdays(day), at, end - at));
        }
        self.in_month_from(at, place)
    }

    fn next_or_first(&self, place: usize, first: usize) -> &str {
        if place == first { self.word(place) } else { self.next(place) }
    }

    /// From "first", "15th" or "last" on.
    fn in_month_from(&mut self, at: usize, place: usize) -> Option<usize> {
        if let Some(nth) = ordinal_of(self.next(place)) {
            // "the first Monday of the month"
            if let Some(day) = weekday(self.next(place + 1)) {
                let end = self.of_month(place + 2).or_else(|| (self.word(at) == "every").then_some(place + 2))?;
                let field = if nth == 0 { format!("{day}L") } else { format!("{day}#{nth}") };
                return Some(self.note(Often::InMonth("*".to_owned(), field), at, end - at));
            }
            let (skip, is_workday) = match self.next(place + 1) {
                "day" => (1, false),
                "business" | "working" if self.next(place + 2) == "day" => (2, true),
                "weekday" | "workday" => (1, true),
                _ => (0, false),
            };
            let end = self.of_month(place + 1 + skip)?;
            if is_workday {
                self.plan
                    .problems
                    .push("a certain working day of the month is more than a schedule can say; name the day of the month or of the week".to_owned());
                return Some(end - at);
            }
            let field = if nth == 0 { "L".to_owned() } else { nth.to_string() };
            return Some(self.note(Often::InMonth(field, "*".to_owned()), at, end - at));
        }
        // "the 1st and 15th of each month"
        let (day, mut taken) = self.day_number(place)?;
        let mut days = vec![day.to_string()];
        while matches!(self.next(place + taken), "and" | "or" | "&")
            || self.tokens.get(place + taken).is_some_and(|token| token.before == Break::Soft && token.kind == Kind::Number)
        {
            let skip = usize::from(matches!(self.next(place + taken), "and" | "or" | "&"));
            if matches!(self.next(place + taken + skip), "the" | "on") {
                taken += 1;
            }
            let Some((more, length)) = self.day_number(place + taken + skip) else { break };
            days.push(more.to_string());
            taken += skip + length;
        }
        let end = self.of_month(place + taken).or_else(|| {
            (place > at && days.len() == 1 && self.word(at) == "on" && self.next(place + taken) != "of" && !is_month(self.next(place + taken)))
                .then_some(place + taken)
        })?;
        Some(self.note(Often::InMonth(days.join(","), "*".to_owned()), at, end - at))
    }

    /// "of the month", "of each month", "in every month", "a month": the end of it.
    fn of_month(&self, at: usize) -> Option<usize> {
        let mut place = at;
        if matches!(self.next(place), "of" | "in") {
            place += 1;
        }
        if matches!(self.next(place), "the" | "each" | "every" | "a") {
            place += 1;
        }
        (place > at && matches!(self.next(place), "month" | "months")).then_some(place + 1)
    }

    fn of_week(&self, at: usize) -> Option<usize> {
        let mut place = at;
        if self.next(place) == "of" {
            place += 1;
        }
        if matches!(self.next(place), "the" | "each" | "every" | "a") {
            place += 1;
        }
        (place > at && self.next(place) == "week").then_some(place + 1)
    }

    /// `1st`, `15th`, `15.`: the number and how many pieces it takes.
    fn day_number(&self, at: usize) -> Option<(u32, usize)> {
        let token = self.tokens.get(at).filter(|token| token.kind == Kind::Number)?;
        let day: u32 = token.text.parse().ok().filter(|day| (1..=31).contains(day))?;
        matches!(self.next(at + 1), "st" | "nd" | "rd" | "th").then_some((day, 2))
    }

    /// "every year on 3 March", "each January 1st".
    fn in_year_at(&mut self, at: usize) -> Option<usize> {
        let mut place = at;
        if matches!(self.word(place), "on" | "each" | "every") {
            place += 1;
        }
        if self.next_or_first(place, at) == "the" {
            place += 1;
        }
        let month_of = |word: &str| {
            MONTHS
                .iter()
                .position(|month| *month == word || (word.len() >= 3 && month.starts_with(word) && word != "mar" && word != "may"))
                .and_then(|month| u32::try_from(month + 1).ok())
        };
        let plain = |at: usize| {
            self.tokens
                .get(at)
                .filter(|token| token.kind == Kind::Number)
                .and_then(|token| token.text.parse::<u32>().ok())
                .filter(|day| (1..=31).contains(day))
                .map(|day| (day, 1))
        };
        let named = |at: usize| ordinal_of(self.next(at)).filter(|day| *day > 0).map(|day| (day, 1));
        let day_at = |at: usize| self.day_number(at).or_else(|| plain(at)).or_else(|| named(at));
        let (day, month, mut end) = if let Some(month) = month_of(self.next_or_first(place, at)) {
            let (day, length) = day_at(place + 1)?;
            (day, month, place + 1 + length)
        } else {
            let (day, length) = day_at(place)?;
            let skip = usize::from(self.next(place + length) == "of");
            (day, month_of(self.next(place + length + skip))?, place + length + skip + 1)
        };
        // A year makes it a single day.
        if self.tokens.get(end).is_some_and(|token| token.kind == Kind::Number && token.text.len() == 4) {
            self.plan.problems.push(format!("{} is a single day; an agent runs again and again", self.words(at, end + 1)));
            return Some(end + 1 - at);
        }
        // "on the 1st of January and July"
        let mut months = vec![month.to_string()];
        while let Some(month) = matches!(self.next(end), "and" | "or" | "&").then(|| month_of(self.next(end + 1))).flatten() {
            months.push(month.to_string());
            end += 2;
        }
        Some(self.note(Often::InYear(months.join(","), day), at, end - at))
    }

    /// "on Mondays and Thursdays", "Monday to Friday", "on weekdays".
    fn weekdays_at(&mut self, at: usize) -> Option<usize> {
        let skip = usize::from(matches!(self.word(at), "on" | "only"));
        let skip = skip + usize::from(skip == 1 && self.next(at + 1) == "each");
        let first = self.next_or_first(at + skip, at).to_owned();
        match first.as_str() {
            "weekdays" | "workdays" => return Some(self.days(WORKDAYS, skip + 1)),
            "weekends" => return Some(self.days(WEEKEND, skip + 1)),
            "business" | "working" | "week" if self.next(at + skip + 1) == "days" => return Some(self.days(WORKDAYS, skip + 2)),
            _ => {}
        }
        if !is_day(&first) || matches!(first.as_str(), "sun" | "sat" | "wed" | "mon" | "fri" | "thu" | "tue") && skip == 0 && self.next(at + 1) != "-" {
            return None;
        }
        // A single Monday: "next Monday", "this Friday".
        if at > 0 && matches!(self.word(at - 1), "next" | "this" | "coming" | "last" | "since" | "until" | "before" | "for" | "of") && !first.ends_with('s') {
            return None;
        }
        let (mask, taken) = self.weekday_list(at + skip)?;
        let is_plural = first.ends_with("days");
        let has_time = self.clock(at + taken, false).is_some() || self.next(at + taken) == "at";
        if skip == 0
            && !is_plural
            && mask.is_power_of_two()
            && at > 0
            && self.often.is_none()
            && !has_time
            && !matches!(self.word(at - 1), "run" | "runs" | "and")
        {
            return None;
        }
        Some(self.days(mask, skip + taken))
    }

    fn days(&mut self, mask: u8, taken: usize) -> usize {
        self.weekdays |= mask;
        taken
    }

    /// Days of the week that follow one another in the text.
    fn weekday_list(&self, at: usize) -> Option<(u8, usize)> {
        let first = weekday(self.word(at))?;
        let mut mask = 1 << first;
        let mut taken = 1;
        if matches!(self.next(at + 1), "to" | "through" | "till" | "until" | "-" | "thru")
            && let Some(last) = weekday(self.next(at + 2))
        {
            let mut day = first;
            while day != last {
                day = (day + 1) % 7;
                mask |= 1 << day;
            }
            return Some((mask, 3));
        }
        loop {
            let link = usize::from(matches!(self.next(at + taken), "and" | "or" | "&" | "/"));
            let is_list = link == 1 || self.tokens.get(at + taken).is_some_and(|token| token.before == Break::Soft);
            let place = at + taken + link;
            // ", and Friday"
            let place = if link == 0 && matches!(self.word(place), "and" | "or") { place + 1 } else { place };
            match weekday(self.word(place)).filter(|_| is_list) {
                Some(day) => {
                    mask |= 1 << day;
                    taken = place + 1 - at;
                }
                None => return Some((mask, taken)),
            }
        }
    }

    /// "between 9 and 17", "from 8am to 6pm", "during business hours".
    fn window_at(&mut self, at: usize) -> Option<usize> {
        if matches!(self.word(at), "during" | "in" | "within" | "throughout" | "inside")
            && let Some(place) = (at + 1..=at + 2).find(|place| matches!(self.next(*place), "business" | "office" | "working" | "work" | "opening"))
            && self.next(place + 1) == "hours"
        {
            self.window = Some((9, 17));
            return Some(place + 2 - at);
        }
        let between = match self.word(at) {
            "between" | "from" => true,
            _ if self.tokens.get(at).is_some_and(|token| token.kind == Kind::Number) => false,
            _ => return None,
        };
        let start = at + usize::from(between);
        let (first, one) = self.clock(start, true)?;
        let link = start + one;
        if !matches!(self.next(link), "and" | "to" | "-" | "until" | "till") || (!between && self.next(link) != "-") {
            return None;
        }
        let (last, two) = self.clock(link + 1, true)?;
        // "9-5" is from nine to five in the afternoon.
        let last = if last.0 <= first.0 && last.0 < 12 && first.0 < 12 { (last.0 + 12, last.1) } else { last };
        let is_clear = between || one > 1 || two > 1 || self.word(start).contains(':');
        if !is_clear && !matches!(self.word(at.wrapping_sub(1)), "at" | "hours" | "weekdays" | "fri" | "friday") {
            return None;
        }
        self.window = Some((first.0, last.0));
        Some(link + 1 + two - at)
    }

    /// "at 9", "9:30 pm", "at noon and midnight".
    fn times_at(&mut self, at: usize) -> Option<usize> {
        // Until then is not at that time.
        if at > 0 && matches!(self.word(at - 1), "until" | "till" | "after" | "since" | "before") {
            return None;
        }
        let has_at = matches!(self.word(at), "at" | "by" | "around" | "@" | "about");
        let start = at + usize::from(has_at);
        let (time, mut taken) = self.clock(start, has_at)?;
        let mut times = vec![time];
        taken += start - at;
        loop {
            let mut place = at + taken;
            let link = matches!(self.next(place), "and" | "or" | "&");
            place += usize::from(link);
            let listed = link || self.tokens.get(place).is_some_and(|token| token.before == Break::Soft);
            place += usize::from(listed && !link && self.word(place) == "and");
            place += usize::from(listed && self.word(place) == "at");
            match self.clock(place, has_at).filter(|_| listed) {
                // "at 9 and 5 files": a number alone counts only where nothing is counted with it.
                Some((time, more)) if more > 1 || self.word(place).contains(':') || is_named_time(self.word(place)) || self.ends(place + more) => {
                    times.push(time);
                    taken = place + more - at;
                }
                _ => break,
            }
        }
        self.times.extend(times);
        Some(taken)
    }

    /// Whether a part of the sentence ends here, or a word follows that counts nothing.
    fn ends(&self, at: usize) -> bool {
        self.tokens.get(at).is_none_or(|token| {
            token.before != Break::No || matches!(token.text.as_str(), "every" | "each" | "on" | "daily" | "in" | "utc" | "and" | "sharp" | "oclock" | "to")
        })
    }

    /// "in the morning", "at night", "overnight".
    fn part_at(&mut self, at: usize) -> Option<usize> {
        let word = self.word(at);
        let (part, taken) = match word {
            "overnight" | "mornings" | "evenings" | "nights" | "afternoons" => (word.to_owned(), 1),
            "in" if self.next(at + 1) == "the"
                && matches!(self.next(at + 2), "morning" | "mornings" | "evening" | "evenings" | "afternoon" | "afternoons" | "night") =>
            {
                (self.word(at + 2).to_owned(), 3)
            }
            "at" if matches!(self.next(at + 1), "night" | "lunchtime" | "bedtime" | "sunrise") => (self.word(at + 1).to_owned(), 2),
            "morning" | "evening" | "night" | "afternoon" if self.often.is_some() || self.weekdays != 0 => (word.to_owned(), 1),
            _ => return None,
        };
        // "at the end of the day in the morning" says it twice: the first counts.
        self.part.get_or_insert(part);
        Some(taken)
    }

    /// The words for the time zone.
    fn zone(&mut self) {
        for at in 0..self.tokens.len() {
            let Some(token) = self.tokens.get(at) else { break };
            if token.kind == Kind::Zone {
                self.plan.zone = Some(token.text.clone());
                self.take(at, at + 1);
                return;
            }
            let named = self.lexicon.zones.iter().find_map(|(pattern, zone)| pattern.at(self.tokens, at).map(|found| (found, zone.clone())));
            if let Some((Found { end, .. }, zone)) = named {
                let is_time = self.next(end) == "time" || self.word(end.saturating_sub(1)) == "time";
                let after_time = at > 0 && self.plan.used.contains(&(at - 1));
                if is_time || after_time || token.text == "utc" || token.text == "gmt" {
                    self.plan.zone = Some(zone);
                    self.take(at, end + usize::from(self.next(end) == "time"));
                    return;
                }
            }
            // "Berlin time", "New York time"
            if self.next(at + 1) == "time" || (self.next(at + 2) == "time" && token.kind == Kind::Word) {
                let length = if self.next(at + 1) == "time" { 1 } else { 2 };
                let city = self.words(at, at + length);
                if let Some(zone) = schedule::zone_of_city(&city) {
                    self.plan.zone = Some(zone);
                    self.take(at, at + length + 1);
                    return;
                }
            }
        }
    }
}

fn weekday(word: &str) -> Option<u8> {
    WEEKDAYS.iter().find(|(name, _)| *name == word).map(|(_, day)| *day)
}

fn is_day(word: &str) -> bool {
    weekday(word).is_some()
}

fn is_month(word: &str) -> bool {
    MONTHS.contains(&word)
}

fn is_named_time(word: &str) -> bool {
    matches!(word, "noon" | "midnight" | "midday")
}

fn ordinal_of(word: &str) -> Option<u32> {
    ORDINALS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number)
}

fn unit(word: &str, count: u32) -> Option<Often> {
    Some(match word {
        "second" | "seconds" | "sec" | "secs" => Often::Seconds(count),
        "minute" | "minutes" | "min" | "mins" => Often::Minutes(count),
        "hour" | "hours" | "hr" | "hrs" => Often::Hours(count),
        "day" | "days" => Often::Days(count),
        "week" | "weeks" => Often::Weeks(count),
        "month" | "months" => Often::Months(count),
        "quarter" | "quarters" => Often::Months(count.saturating_mul(3)),
        "year" | "years" if count == 1 => Often::Years,
        _ => return None,
    })
}

/// Days as cron has them.
fn listed(mask: u8) -> String {
    match mask {
        WORKDAYS => "1-5".to_owned(),
        0x7f => "*".to_owned(),
        mask => (0..7).filter(|day| mask & (1 << day) != 0).map(|day| day.to_string()).collect::<Vec<_>>().join(","),
    }
}
