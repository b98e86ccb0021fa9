//! Telling all together at a time of the day, or once a week.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// When everything is told together.
#[derive(Clone, Debug)]
pub struct Digest {
    /// On which day of the week; on each day if not given.
    pub weekday: Option<Weekday>,
    /// At what time.
    pub at: Time,
    /// Whose clock counts.
    pub zone: TimeZone,
    /// Whether what is urgent is told at once.
    pub urgent_passes: bool,
}

impl Digest {
    /// The first moment after another at which it is due.
    pub fn next(&self, now: i64) -> Option<i64> {
        let mut day = Timestamp::from_microsecond(now).ok()?.to_zoned(self.zone.clone()).date();
        // Today may be over, and the right day of the week is at most a week ahead.
        for _ in 0..=7 {
            if self.weekday.is_none_or(|weekday| weekday == day.weekday())
                && let Some(due) = self.moment(day).filter(|due| *due > now)
            {
                return Some(due);
            }
            day = day.checked_add(1.day()).ok()?;
        }
        None
    }

    /// A time that the clocks jump over or show twice is the later moment, or the first of both.
    fn moment(&self, day: Date) -> Option<i64> {
        Some(day.to_datetime(self.at).to_zoned(self.zone.clone()).ok()?.timestamp().as_microsecond())
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::time;

    use super::*;
    use crate::parse_time;

    fn at(text: &str) -> i64 {
        parse_time("", text).unwrap()
    }

    fn digest(weekday: Option<Weekday>) -> Digest {
        Digest { weekday, at: time(8, 30, 0, 0), zone: TimeZone::get("Europe/Berlin").unwrap(), urgent_passes: false }
    }

    #[test]
    fn a_daily_digest_comes_at_its_time_in_summer_and_in_winter() {
        let daily = digest(None);
        assert_eq!(daily.next(at("2026-01-10T06:00:00Z")), Some(at("2026-01-10T07:30:00Z")));
        assert_eq!(daily.next(at("2026-01-10T07:30:00Z")), Some(at("2026-01-11T07:30:00Z")), "what comes at that very moment waits for the next one");
        assert_eq!(daily.next(at("2026-03-28T12:00:00Z")), Some(at("2026-03-29T06:30:00Z")), "the clocks went forward in that night");
        assert_eq!(daily.next(at("2026-10-24T12:00:00Z")), Some(at("2026-10-25T07:30:00Z")), "and back in that one");
    }

    #[test]
    fn a_weekly_digest_comes_on_its_day() {
        let weekly = digest(Some(Weekday::Monday));
        // 2026-01-12 is a Monday.
        assert_eq!(weekly.next(at("2026-01-10T06:00:00Z")), Some(at("2026-01-12T07:30:00Z")));
        assert_eq!(weekly.next(at("2026-01-12T07:29:59Z")), Some(at("2026-01-12T07:30:00Z")));
        assert_eq!(weekly.next(at("2026-01-12T07:30:00Z")), Some(at("2026-01-19T07:30:00Z")));
    }

    #[test]
    fn the_day_is_that_of_the_zone() {
        let far = Digest { at: time(0, 15, 0, 0), zone: TimeZone::get("Pacific/Auckland").unwrap(), ..digest(Some(Weekday::Thursday)) };
        // Wednesday noon in UTC is Thursday in Auckland, 13 hours ahead.
        assert_eq!(far.next(at("2026-01-07T10:00:00Z")), Some(at("2026-01-07T11:15:00Z")));
    }
}
