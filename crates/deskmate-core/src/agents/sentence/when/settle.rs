//! From what was found about times to one cron expression, or to the reason why there is none.

use std::collections::BTreeSet;

use super::super::tokens::Token;
use super::{Often, When, is_day, listed};
use crate::agents::schedule;

impl When<'_> {
    /// Puts everything that was found together.
    pub(super) fn settle(&mut self) {
        if let Some(other) = self.others.first() {
            self.plan.problems.push(format!("it says how often more than once; \"{other}\" is left out"));
        }
        if self.weekdays != 0 {
            match &self.often {
                None | Some(Often::Days(1) | Often::Weeks(1)) => self.often = Some(Often::Weekdays(self.weekdays)),
                Some(Often::Weekdays(mask)) => self.often = Some(Often::Weekdays(mask | self.weekdays)),
                _ => {}
            }
        }
        let mut times = std::mem::take(&mut self.times);
        // "in the evening at half past six"
        if self.part.as_deref().is_some_and(|part| part.starts_with("evening") || part.starts_with("afternoon")) {
            times.iter_mut().filter(|(hour, _)| (1..12).contains(hour)).for_each(|(hour, _)| *hour += 12);
        }
        if self.often.is_none() {
            if times.is_empty() && self.part.is_none() {
                return;
            }
            // A single time is no schedule, and making one of it would run the agent again and again.
            let single = |token: &&Token| matches!(token.text.as_str(), "tomorrow" | "today" | "tonight" | "next" | "this");
            let names_a_day = |at: usize| {
                matches!(self.word(at), "tomorrow" | "today" | "tonight")
                    || matches!(self.next(at + 1), "week" | "month" | "morning" | "evening" | "afternoon" | "night" | "weekend")
                    || is_day(self.next(at + 1))
            };
            if let Some(at) = (0..self.tokens.len()).find(|at| self.tokens.get(*at).as_ref().is_some_and(single) && names_a_day(*at)) {
                self.plan.problems.push(format!("\"{}\" is a single time; an agent runs again and again", self.word(at)));
                return;
            }
            self.plan.assumed.push("every day, because it names a time and no days".to_owned());
            self.often = Some(Often::Days(1));
        }
        let Some(often) = self.often.clone() else { return };
        let weekdays = if self.weekdays == 0 || matches!(often, Often::Weekdays(_)) { "*".to_owned() } else { listed(self.weekdays) };
        self.plan.cron = match often {
            Often::Seconds(count) => self.interval(count, 60, "second").map(|step| format!("{step} * * * * {weekdays}")),
            Often::Minutes(count) if count % 60 == 0 && count > 0 => self.hours(count / 60, &times, &weekdays),
            Often::Minutes(count) => {
                let hours = self.window.map_or_else(|| "*".to_owned(), |(first, last)| format!("{first}-{}", last.saturating_sub(1).max(first)));
                self.interval(count, 60, "minute").map(|step| format!("{step} {hours} * * {weekdays}"))
            }
            Often::Hours(count) => self.hours(count, &times, &weekdays),
            Often::TimesAnHour(count) => match 60_u32.checked_div(count).filter(|step| step * count == 60) {
                Some(step) => Some(format!("*/{step} * * * {weekdays}")),
                None => self.cannot(format!("{count} times an hour do not come at even distances")),
            },
            Often::TimesADay(count) => self.times_a_day(count, &times, &weekdays),
            Often::TimesAWeek(count) => {
                let days = match count {
                    2 => "1,4",
                    3 => "1,3,5",
                    5 => "1-5",
                    6 => "1-6",
                    7 => "*",
                    _ => return self.cannot_now(format!("{count} times a week: on which days?")),
                };
                self.plan.assumed.push(format!("the days of the week ({days}, 1 is Monday)"));
                self.at(&times).map(|(minute, hour)| format!("{minute} {hour} * * {days}"))
            }
            Often::Days(1) => self.at(&times).map(|(minute, hour)| format!("{minute} {hour} * * {weekdays}")),
            Often::Days(7) | Often::Weeks(1) => self.weekly(&times),
            Often::Days(count) if (2..=15).contains(&count) => {
                self.plan.assumed.push(format!("every {count} days are counted from the first of each month"));
                self.at(&times).map(|(minute, hour)| format!("{minute} {hour} */{count} * *"))
            }
            Often::Days(count) => self.cannot(format!("every {count} days is more than a schedule can say")),
            Often::Weeks(count) => self.cannot(format!("every {count} weeks is more than a schedule can say; name days of the month")),
            Often::Months(count) if count > 0 && 12 % count == 0 => {
                let months = if count == 1 { "*".to_owned() } else { format!("*/{count}") };
                self.plan.assumed.push("the first of the month".to_owned());
                self.at(&times).map(|(minute, hour)| format!("{minute} {hour} 1 {months} *"))
            }
            Often::Months(count) => self.cannot(format!("every {count} months do not come at even distances in a year")),
            Often::Years => {
                self.plan.assumed.push("the first of January".to_owned());
                self.at(&times).map(|(minute, hour)| format!("{minute} {hour} 1 1 *"))
            }
            Often::Weekdays(mask) => match self.window {
                // "on weekdays from 9 to 17" says when, and not how often.
                Some((first, _)) if times.is_empty() => {
                    self.plan.assumed.push(format!("once a day, at {first:02}:00"));
                    Some(format!("0 {first} * * {}", listed(mask)))
                }
                _ => self.at(&times).map(|(minute, hour)| format!("{minute} {hour} * * {}", listed(mask))),
            },
            Often::InMonth(day, weekday) => self.at(&times).map(|(minute, hour)| format!("{minute} {hour} {day} * {weekday}")),
            Often::InYear(month, day) => self.at(&times).map(|(minute, hour)| format!("{minute} {hour} {day} {month} *")),
        };
        if let Some(cron) = &self.plan.cron
            && let Err(error) = schedule::Schedule::read(cron, "UTC")
        {
            self.plan.problems.push(format!("the schedule {}", error.message));
            self.plan.cron = None;
        }
    }

    pub(super) fn cannot(&mut self, why: String) -> Option<String> {
        self.plan.problems.push(why);
        None
    }

    pub(super) fn cannot_now(&mut self, why: String) {
        self.plan.problems.push(why);
    }

    pub(super) fn interval(&mut self, count: u32, round: u32, what: &str) -> Option<String> {
        match count {
            0 => self.cannot(format!("every 0 {what}s is no time")),
            1 => Some("*".to_owned()),
            count if count < round && round.is_multiple_of(count) => Some(format!("*/{count}")),
            count => self.cannot(format!("every {count} {what}s do not come at even distances")),
        }
    }

    pub(super) fn hours(&mut self, count: u32, times: &[(u32, u32)], weekdays: &str) -> Option<String> {
        let minute = times.first().map_or(0, |(_, minute)| *minute);
        let step = match count {
            0 => return self.cannot("every 0 hours is no time".to_owned()),
            1 => self.window.map_or_else(|| "*".to_owned(), |(first, last)| format!("{first}-{last}")),
            count if count < 24 && 24 % count == 0 => self.window.map_or_else(|| format!("*/{count}"), |(first, last)| format!("{first}-{last}/{count}")),
            24 => return self.at(times).map(|(minute, hour)| format!("{minute} {hour} * * {weekdays}")),
            count if count % 24 == 0 && count / 24 <= 15 => {
                let days = count / 24;
                self.plan.assumed.push(format!("every {days} days are counted from the first of each month"));
                return self.at(times).map(|(minute, hour)| format!("{minute} {hour} */{days} * *"));
            }
            count => return self.cannot(format!("every {count} hours do not come at even distances in a day")),
        };
        Some(format!("{minute} {step} * * {weekdays}"))
    }

    pub(super) fn times_a_day(&mut self, count: u32, times: &[(u32, u32)], weekdays: &str) -> Option<String> {
        if times.len() as u64 == u64::from(count) {
            return self.at(times).map(|(minute, hour)| format!("{minute} {hour} * * {weekdays}"));
        }
        let hours = match count {
            2 => "9,17".to_owned(),
            3 => "8,13,18".to_owned(),
            count if count > 0 && count <= 24 && 24 % count == 0 => format!("*/{}", 24 / count),
            count => return self.cannot(format!("{count} times a day do not come at even distances")),
        };
        self.plan.assumed.push(format!("the hours {hours}"));
        Some(format!("0 {hours} * * {weekdays}"))
    }

    pub(super) fn weekly(&mut self, times: &[(u32, u32)]) -> Option<String> {
        let days = if self.weekdays == 0 {
            self.plan.assumed.push("Monday".to_owned());
            "1".to_owned()
        } else {
            listed(self.weekdays)
        };
        self.at(times).map(|(minute, hour)| format!("{minute} {hour} * * {days}"))
    }

    /// Minute and hours of the times, or of what stands there if nobody says.
    pub(super) fn at(&mut self, times: &[(u32, u32)]) -> Option<(u32, String)> {
        if let Some((_, minute)) = times.first() {
            let (same, other): (Vec<_>, Vec<_>) = times.iter().partition(|(_, more)| more == minute);
            if let Some((hour, more)) = other.first() {
                self.plan.problems.push(format!("one schedule has the same minute in every hour, so {hour:02}:{more:02} is left out"));
            }
            let hours: BTreeSet<u32> = same.iter().map(|(hour, _)| *hour).collect();
            return Some((*minute, hours.iter().map(u32::to_string).collect::<Vec<_>>().join(",")));
        }
        let part = self.part.clone().unwrap_or_else(|| "day".to_owned());
        let time = self.lexicon.times.get(&part).cloned().unwrap_or_else(|| "09:00".to_owned());
        self.plan.assumed.push(if part == "day" { format!("{time}, because it names no time") } else { format!("{time} for \"{part}\"") });
        let (hour, minute) = time.split_once(':')?;
        Some((minute.parse().ok()?, hour.parse::<u32>().ok()?.to_string()))
    }
}
