//! A cron expression: what is written, as sets of numbers, and the search for the next time of day that fits.

use jiff::civil::{Date, DateTime};

use crate::{Error, Result};

/// How long an expression may be.
pub const CRON_BYTES_MAX: usize = 200;
/// After so many years the calendar is the same again, weekdays and all.
const CYCLE_YEARS: i16 = 400;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// Short names for whole expressions.
const SHORT: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The bit that stands for "the last" among the weeks of a month.
pub(super) const LAST: u8 = 1;

/// What an expression means. Bit `n` of a set stands for the number `n`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cron {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u64,
    pub(super) days: u64,
    /// Days counted from the end of the month: bit 0 is the last one.
    pub(super) days_from_end: u64,
    pub(super) months: u64,
    /// Bit 0 is Sunday.
    pub(super) weekdays: u64,
    /// For each weekday, which of those in a month: bits 1 to 5, and [`LAST`].
    pub(super) weeks: [u8; 7],
    /// Whether day of month and day of week both have to fit, because one of them begins with `*`. Two lists add up.
    pub(super) both: bool,
    pub(super) text: String,
}

/// A field: its name, its bounds and the names of its numbers.
struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const SECONDS: Field = Field { name: "seconds", min: 0, max: 59, names: &[] };
const MINUTES: Field = Field { name: "minutes", min: 0, max: 59, names: &[] };
const HOURS: Field = Field { name: "hours", min: 0, max: 23, names: &[] };
const DAYS: Field = Field { name: "day of month", min: 1, max: 31, names: &[] };
const MONTH: Field = Field { name: "month", min: 1, max: 12, names: &MONTHS };
/// 7 is Sunday as well.
const WEEKDAY: Field = Field { name: "day of week", min: 0, max: 7, names: &WEEKDAYS };

fn wrong(message: impl Into<String>) -> Error {
    Error::invalid("schedule", message.into())
}

impl Cron {
    /// Reads five fields, six with seconds before them, or a short name.
    pub(super) fn read(text: &str) -> Result<Self> {
        if text.len() > CRON_BYTES_MAX {
            return Err(wrong(format!("is {} bytes long; a cron expression has at most {CRON_BYTES_MAX}", text.len())));
        }
        let written = text.trim().to_ascii_lowercase();
        let text = match written.strip_prefix('@') {
            None => written,
            Some(_) => SHORT.iter().find(|(name, _)| *name == written).map(|(_, meaning)| (*meaning).to_owned()).ok_or_else(|| {
                let names: Vec<&str> = SHORT.iter().map(|(name, _)| *name).collect();
                wrong(format!("does not know this short name; there are {}", names.join(", ")))
            })?,
        };
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let (second, [minute, hour, day, month, weekday]) = match fields.as_slice() {
            [minute, hour, day, month, weekday] => ("0", [*minute, *hour, *day, *month, *weekday]),
            [second, minute, hour, day, month, weekday] => (*second, [*minute, *hour, *day, *month, *weekday]),
            _ => {
                let count = fields.len();
                return Err(wrong(format!("has {count} fields; write five (minute, hour, day of month, month, day of week), or six with seconds before them")));
            }
        };
        let (days, days_from_end) = days_of_month(day)?;
        let (weekdays, weeks) = days_of_week(weekday)?;
        let cron = Self {
            seconds: numbers(&SECONDS, second)?,
            minutes: numbers(&MINUTES, minute)?,
            hours: numbers(&HOURS, hour)?,
            days,
            days_from_end,
            months: numbers(&MONTH, month)?,
            weekdays,
            weeks,
            both: is_open(day) || is_open(weekday),
            text: fields.join(" ").to_ascii_uppercase(),
        };
        // 2000 begins a cycle of the calendar, so a day that is not in it does not exist.
        let exists = (2000..2000 + CYCLE_YEARS).any(|year| bits(cron.months).any(|month| cron.days_in(year, month) != 0));
        if exists { Ok(cron) } else { Err(wrong("names a day that no month has")) }
    }

    /// Whether it names every hour, so that it goes by the hand of the clock rather than by times of day.
    pub(super) fn is_every_hour(&self) -> bool {
        self.hours == full(&HOURS)
    }

    /// The days of a month that fit, as bits 1 to 31.
    pub(super) fn days_in(&self, year: i16, month: u32) -> u64 {
        let Some(first) = i8::try_from(month).ok().and_then(|month| Date::new(year, month, 1).ok()) else { return 0 };
        let length = u32::from(first.days_in_month().unsigned_abs());
        let first = u32::from(first.weekday().to_sunday_zero_offset().unsigned_abs());
        let (mut by_day, mut by_weekday) = (0, 0);
        for day in 1..=length {
            let bit = 1_u64 << day;
            if self.days & bit != 0 || self.days_from_end & (1 << (length - day)) != 0 {
                by_day |= bit;
            }
            let weekday = (first + day - 1) % 7;
            let weeks = self.weeks.get(weekday as usize).copied().unwrap_or(0);
            let is_last = day + 7 > length;
            if self.weekdays & (1 << weekday) != 0 || weeks & (1 << day.div_ceil(7)) != 0 || (is_last && weeks & LAST != 0) {
                by_weekday |= bit;
            }
        }
        if self.both { by_day & by_weekday } else { by_day | by_weekday }
    }

    /// The first time of day, on the clock of its place, that fits and is not before another.
    pub(super) fn next_from(&self, from: DateTime) -> Option<DateTime> {
        let last_year = from.year().saturating_add(CYCLE_YEARS).min(9_999);
        for year in from.year()..=last_year {
            let is_first_year = year == from.year();
            for month in bits(self.months) {
                let first = u32::from(from.month().unsigned_abs());
                if is_first_year && month < first {
                    continue;
                }
                let is_first_month = is_first_year && month == first;
                for day in bits(self.days_in(year, month)) {
                    let today = u32::from(from.day().unsigned_abs());
                    if is_first_month && day < today {
                        continue;
                    }
                    let start =
                        if is_first_month && day == today { [from.hour(), from.minute(), from.second()].map(i8::unsigned_abs).map(u32::from) } else { [0; 3] };
                    if let Some([hour, minute, second]) = self.next_time(start) {
                        let part = |number: u32| i8::try_from(number).ok();
                        return DateTime::new(year, part(month)?, part(day)?, part(hour)?, part(minute)?, part(second)?, 0).ok();
                    }
                }
            }
        }
        None
    }

    /// The first time that fits on a day, not before another.
    fn next_time(&self, [hour, minute, second]: [u32; 3]) -> Option<[u32; 3]> {
        for h in bits(self.hours).filter(|h| *h >= hour) {
            let minute = if h == hour { minute } else { 0 };
            for m in bits(self.minutes).filter(|m| *m >= minute) {
                let second = if h == hour && m == minute { second } else { 0 };
                if let Some(s) = bits(self.seconds).find(|s| *s >= second) {
                    return Some([h, m, s]);
                }
            }
        }
        None
    }
}

/// The numbers of a set, in order.
pub(super) fn bits(set: u64) -> impl Iterator<Item = u32> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let next = (rest != 0).then(|| rest.trailing_zeros())?;
        rest &= rest - 1;
        Some(next)
    })
}

fn full(field: &Field) -> u64 {
    (field.min..=field.max).fold(0, |set, number| set | 1 << number)
}

/// Whether a field of days begins with a star, or leaves itself to the other.
fn is_open(text: &str) -> bool {
    text.starts_with(['*', '?'])
}

fn number(field: &Field, text: &str) -> Result<u32> {
    let named = field.names.iter().position(|name| text.len() >= 3 && *name == text).and_then(|at| u32::try_from(at).ok());
    let value = match named {
        Some(at) => Some(at + u32::from(field.max == 12)),
        None => text.parse::<u32>().ok().filter(|_| text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit())),
    };
    value.filter(|value| (field.min..=field.max).contains(value)).ok_or_else(|| {
        let or_name = if field.names.is_empty() { "" } else { ", or a name of three letters" };
        wrong(format!("has `{text}` as {}: write a number from {} to {}{or_name}", field.name, field.min, field.max))
    })
}

/// The numbers of one part between commas: `*`, `5`, `1-5`, each also with `/2`.
fn part(field: &Field, text: &str) -> Result<u64> {
    let (range, step) = match text.split_once('/') {
        None => (text, None),
        Some((range, step)) => {
            let step = step.parse::<u32>().ok().filter(|step| (1..=field.max).contains(step));
            let step = step.ok_or_else(|| wrong(format!("has `{text}` as {}: a step is a number from 1 to {}", field.name, field.max)))?;
            (range, Some(step))
        }
    };
    let (first, last) = match range.split_once('-') {
        _ if range == "*" => (field.min, if field.max == 7 { 6 } else { field.max }),
        Some((first, last)) => {
            let first = number(field, first)?;
            let mut last = number(field, last)?;
            // The end of a week is its Sunday.
            if field.max == 7 && last == 0 && first > 0 {
                last = 7;
            }
            if first > last {
                return Err(wrong(format!("has `{range}` as {}: a range goes upwards; write two ranges with a comma between them", field.name)));
            }
            (first, last)
        }
        // `5/15` goes on to the end.
        None if step.is_some() => (number(field, range)?, if field.max == 7 { 6 } else { field.max }),
        None => {
            let only = number(field, range)?;
            (only, only)
        }
    };
    Ok((first..=last).step_by(step.unwrap_or(1) as usize).fold(0, |set, number| set | 1 << number))
}

fn numbers(field: &Field, text: &str) -> Result<u64> {
    text.split(',').try_fold(0, |set, one| Ok(set | part(field, one)?))
}

/// Days of the month, and those counted from its end: `L` is the last, `L-2` two before it.
fn days_of_month(text: &str) -> Result<(u64, u64)> {
    let (mut days, mut from_end) = (0, 0);
    for one in text.split(',') {
        if one == "?" {
            days |= full(&DAYS);
        } else if let Some(before) = one.strip_prefix('l') {
            let before = if before.is_empty() { Some(0) } else { before.strip_prefix('-').and_then(|number| number.parse::<u32>().ok()) };
            let before = before.filter(|before| *before <= 30);
            from_end |= 1 << before.ok_or_else(|| wrong(format!("has `{one}` as day of month: write L for the last day, or L-2 for two before it")))?;
        } else if one.ends_with('w') {
            return Err(wrong("has a W as day of month, which is not known here: name the days of the week"));
        } else {
            days |= part(&DAYS, one)?;
        }
    }
    Ok((days, from_end))
}

/// Days of the week, and those of a certain week of the month: `mon#2` is the second Monday, `friL` the last Friday.
fn days_of_week(text: &str) -> Result<(u64, [u8; 7])> {
    let mut days = 0;
    let mut weeks = [0_u8; 7];
    for one in text.split(',') {
        let in_week = match one.split_once('#') {
            Some((day, week)) => {
                let week = week.parse::<u32>().ok().filter(|week| (1..=5).contains(week));
                let week = week.ok_or_else(|| wrong(format!("has `{one}` as day of week: after # stands a number from 1 to 5")))?;
                Some((day, 1 << week))
            }
            None => one.strip_suffix('l').map(|day| (day, LAST)),
        };
        match in_week {
            Some(("", _)) => return Err(wrong("has no day before L or # as day of week: write for example FRIL for the last Friday")),
            Some((day, bit)) => {
                if let Some(weeks) = weeks.get_mut((number(&WEEKDAY, day)? % 7) as usize) {
                    *weeks |= bit;
                }
            }
            None if one == "?" => days |= 0x7f,
            None => days |= part(&WEEKDAY, one)?,
        }
    }
    // Sunday is 0 and 7.
    Ok(((days & 0x7f) | (days >> 7 & 1), weeks))
}
