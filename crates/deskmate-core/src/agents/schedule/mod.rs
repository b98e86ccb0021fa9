//! When an agent runs: cron in a time zone. Pure: the moment comes in, and moments go out, as microseconds since 1970.
//!
//! Where clocks are set forward or back, two rules hold. A schedule that names certain hours is about times of day: each
//! runs once. A time that the clocks jump over runs at the first moment after the jump; several of them run together, once. A
//! time that they show twice runs the first time. A schedule that names every hour goes by the hand of the clock: it runs
//! whenever the clock shows a fitting time, each time, and never for a time that was not shown.
//!
//! Time zones come with the program and not from the machine, so that a desk answers the same everywhere.

mod cron;
mod words;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use crate::{Error, Result};
use cron::Cron;

pub use cron::CRON_BYTES_MAX;

/// How many moments one call names.
pub const MOMENTS_MAX: usize = 1_000;
/// How many times of day, or changes of the clock, a search passes before it gives up.
const TRIES_MAX: usize = 10_000;
const SECOND: i64 = 1_000_000;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone by its name, such as `Europe/Berlin`.
pub fn zone(name: &str) -> Result<TimeZone> {
    if name.len() <= 64
        && let Ok(zone) = ZONES.get(name)
    {
        return Ok(zone);
    }
    let city = name.replace(' ', "_");
    let near = ZONES.available().find(|known| known.as_str().rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case(&city)));
    let example = near.map_or_else(|| "Europe/Berlin".to_owned(), |near| near.as_str().to_owned());
    Err(Error::invalid("time_zone", format!("is not a time zone: write for example {example}")))
}

/// When something runs.
#[derive(Clone, Debug)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
    zone_name: String,
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.cron.text == other.cron.text && self.zone_name == other.zone_name
    }
}

/// What was due in a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The moments, the earliest first.
    pub at: Vec<i64>,
    /// Whether there were more than could be named.
    pub more: bool,
}

impl Schedule {
    /// Reads a cron expression with five fields, with six if seconds stand before them, or a short name such as `@daily`; and
    /// a time zone.
    pub fn read(cron: &str, time_zone: &str) -> Result<Self> {
        let zone = zone(time_zone)?;
        let zone_name = zone.iana_name().unwrap_or("UTC").to_owned();
        Ok(Self { cron: Cron::read(cron)?, zone, zone_name })
    }

    /// The expression in one spelling: large letters, one space between fields, short names written out.
    pub fn cron(&self) -> &str {
        &self.cron.text
    }

    /// The name of the time zone.
    pub fn time_zone(&self) -> &str {
        &self.zone_name
    }

    /// The schedule for people, such as "every weekday at 09:00 Europe/Berlin".
    pub fn words(&self) -> String {
        words::words(&self.cron, &self.zone_name)
    }

    /// The first moment after another at which it runs.
    pub fn next_after(&self, after: i64) -> Option<i64> {
        let second = Timestamp::from_second(after.div_euclid(SECOND)).ok()?;
        let next = if self.cron.is_every_hour() { self.by_the_hand(second) } else { self.by_time_of_day(second) };
        next.map(Timestamp::as_microsecond)
    }

    /// The first `count` moments after another, at most [`MOMENTS_MAX`].
    pub fn next(&self, after: i64, count: usize) -> Vec<i64> {
        let step = |at: &i64| self.next_after(*at);
        std::iter::successors(self.next_after(after), step).take(count.min(MOMENTS_MAX)).collect()
    }

    /// What was due after one moment, until another and at it: the first `most`, at most [`MOMENTS_MAX`].
    pub fn missed(&self, after: i64, until: i64, most: usize) -> Missed {
        let most = most.min(MOMENTS_MAX);
        let mut at = Vec::new();
        let mut last = after;
        while let Some(next) = self.next_after(last).filter(|next| *next <= until) {
            if at.len() == most {
                return Missed { at, more: true };
            }
            at.push(next);
            last = next;
        }
        Missed { at, more: false }
    }

    /// How much later than `at` something with this id runs, so that not everything begins at once: always the same for the
    /// same id, less than `most`, and less than the time until it runs again.
    pub fn jitter(&self, id: &str, most: i64, at: i64) -> i64 {
        let gap = self.next_after(at).map_or(most, |next| next.saturating_sub(at));
        let bound = u128::from(most.min(gap).max(0).unsigned_abs());
        let digest = Sha256::digest(id.as_bytes());
        let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        i64::try_from((u128::from(number) * bound) >> 64).unwrap_or(0)
    }

    /// Whenever the clock shows a fitting time, each time.
    fn by_the_hand(&self, after: Timestamp) -> Option<Timestamp> {
        let mut since = after;
        let mut from = step(self.zone.to_datetime(after))?;
        for _ in 0..TRIES_MAX {
            let offset = self.zone.to_offset(since);
            let at = offset.to_timestamp(self.cron.next_from(from)?).ok()?;
            match self.zone.following(since).next() {
                // The clocks change first: from there on they show something else.
                Some(change) if at >= change.timestamp() => {
                    since = change.timestamp();
                    from = self.zone.to_datetime(since);
                }
                _ => return Some(at),
            }
        }
        None
    }

    /// Each fitting time of day once.
    fn by_time_of_day(&self, after: Timestamp) -> Option<Timestamp> {
        let here = self.zone.to_datetime(after);
        let mut from = step(here)?;
        if let AmbiguousOffset::Fold { before, after: later } = self.zone.to_ambiguous_timestamp(here).offset()
            && self.zone.to_offset(after) == later
        {
            // The clock shows these times again: they ran already.
            from = from.max(before.to_datetime(self.last_change(after)?));
        }
        for _ in 0..TRIES_MAX {
            let found = self.cron.next_from(from)?;
            let at = self.moment_of(found)?;
            if at > after {
                return Some(at);
            }
            from = step(found)?;
        }
        None
    }

    /// The moment of a time of day: of two the first, and of a time that is jumped over the end of the jump.
    fn moment_of(&self, time: DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(time).offset() {
            AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => offset.to_timestamp(time).ok(),
            AmbiguousOffset::Gap { before, .. } => self.last_change(before.to_timestamp(time).ok()?),
        }
    }

    /// The last moment, not after another, at which the clocks changed.
    fn last_change(&self, at: Timestamp) -> Option<Timestamp> {
        let after = at.checked_add(SignedDuration::from_secs(1)).ok()?;
        self.zone.preceding(after).next().map(|change| change.timestamp())
    }
}

/// A second later on the clock.
fn step(time: DateTime) -> Option<DateTime> {
    time.checked_add(SignedDuration::from_secs(1)).ok()
}

/// The time zone of a city, such as `Berlin` or `new york`.
pub fn zone_of_city(city: &str) -> Option<String> {
    let city = city.trim().replace(' ', "_");
    let is_city = |name: &str| name.contains('/') && !name.starts_with("Etc/") && name.rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case(&city));
    ZONES.available().find(|name| is_city(name.as_str())).map(|name| name.as_str().to_owned())
}
