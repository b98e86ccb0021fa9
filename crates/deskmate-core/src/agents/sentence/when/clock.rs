//! Times of the day, as they are written and said.

use super::super::tokens::{Break, Kind, number_at};
use super::{When, is_day, whole};

impl When<'_> {
    /// A time of day: hour, minute, and how many pieces it takes. Without a word for it a number alone is no time.
    pub(super) fn clock(&self, at: usize, is_time: bool) -> Option<((u32, u32), usize)> {
        let word = self.word(at);
        match word {
            "noon" | "midday" => return Some(((12, 0), 1)),
            "midnight" => return Some(((0, 0), 1)),
            "half" if self.next(at + 1) == "past" => {
                let (hour, taken) = number_at(self.tokens, at + 2)?;
                return self.afternoon(whole(hour)?, 30, at + 2 + taken).map(|(time, more)| (time, 2 + taken + more));
            }
            _ => {}
        }
        let first = self.tokens.get(at)?;
        let (hour, minute, mut taken, mut is_time) = match first.kind {
            Kind::Number if first.text.contains(':') => {
                let (hour, minute) = first.text.split_once(':')?;
                (hour.parse().ok()?, minute.get(..2)?.parse().ok()?, 1, true)
            }
            Kind::Number => (first.text.parse().ok()?, 0, 1, is_time),
            Kind::Word if is_time => {
                let (number, taken) = number_at(self.tokens, at)?;
                (whole(number)?, 0, taken, is_time)
            }
            _ => return None,
        };
        let mut hour: u32 = hour;
        match self.next(at + taken) {
            "am" if (1..=12).contains(&hour) => {
                hour %= 12;
                (taken, is_time) = (taken + 1, true);
            }
            "pm" if (1..=12).contains(&hour) => {
                hour = hour % 12 + 12;
                (taken, is_time) = (taken + 1, true);
            }
            "oclock" | "h" | "hrs" | "uhr" => (taken, is_time) = (taken + 1, true),
            _ => {}
        }
        if !is_time || hour > 23 || minute > 59 {
            return None;
        }
        let is_plain = taken == 1 && minute == 0 && !first.text.contains(':');
        // "at 9 in the evening"
        if let Some(((hour, minute), more)) = self.afternoon(hour, minute, at + taken).filter(|(_, more)| *more > 0) {
            return Some(((hour, minute), taken + more));
        }
        // "at 5 customers", "by 20 percent", "at 100": what is counted is no time.
        if is_plain && !self.is_after_time(at + taken) {
            return None;
        }
        Some(((hour, minute), taken))
    }

    /// Whether what follows a bare number leaves it a time.
    pub(super) fn is_after_time(&self, at: usize) -> bool {
        let next = self.next(at);
        self.tokens.get(at).is_none_or(|token| token.before != Break::No || token.kind == Kind::Zone)
            || matches!(
                next,
                "every"
                    | "each"
                    | "on"
                    | "daily"
                    | "in"
                    | "utc"
                    | "gmt"
                    | "cet"
                    | "and"
                    | "or"
                    | "sharp"
                    | "to"
                    | "-"
                    | "until"
                    | "till"
                    | "back"
                    | "from"
                    | "for"
                    | "with"
                    | "via"
                    | "then"
                    | "by"
                    | "local"
                    | "berlin"
                    | "london"
                    | "&"
            )
            || self.lexicon.bases.contains_key(next)
            || is_day(next)
            || matches!(self.next(at + 1), "time")
    }

    pub(super) fn afternoon(&self, hour: u32, minute: u32, at: usize) -> Option<((u32, u32), usize)> {
        let skip = usize::from(self.next(at) == "in") + usize::from(self.next(at) == "in" && self.next(at + 1) == "the");
        let skip = if self.next(at) == "at" { 1 } else { skip };
        let late = match self.next(at + skip) {
            "evening" | "afternoon" | "night" => true,
            "morning" => false,
            _ => return (hour < 24).then_some(((hour, minute), 0)),
        };
        let hour = if late && (1..12).contains(&hour) && !(self.next(at + skip) == "night" && hour < 6) { hour + 12 } else { hour };
        (hour < 24).then_some(((hour, minute), skip + 1))
    }
}
