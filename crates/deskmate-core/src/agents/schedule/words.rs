//! A schedule in words. Common ones read as people say them; for the others every field is named.

use super::cron::{Cron, LAST, bits};

const MONTHS: [&str; 12] = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const WEEKS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
/// How many times of a day are named one by one.
const TIMES_MAX: u32 = 6;

pub(super) fn words(cron: &Cron, zone: &str) -> String {
    let days = days(cron);
    match (times(cron), days.as_deref()) {
        (Times::At(at), days) => format!("{} {at} {zone}", days.unwrap_or("every day")),
        (Times::Every(every), None) => format!("{every} {zone}"),
        (Times::Every(every), Some(days)) => format!("{every}, {days}, {zone}"),
    }
}

/// Single times, or again and again.
enum Times {
    At(String),
    Every(String),
}

fn times(cron: &Cron) -> Times {
    let (seconds, minutes, hours) = (Set::new(cron.seconds, 60), Set::new(cron.minutes, 60), Set::new(cron.hours, 24));
    if seconds.count * minutes.count * hours.count <= TIMES_MAX {
        let seconds_shown = cron.seconds != 1;
        let mut all = Vec::new();
        for hour in bits(cron.hours) {
            for minute in bits(cron.minutes) {
                let times = bits(cron.seconds)
                    .map(|second| if seconds_shown { format!("{hour:02}:{minute:02}:{second:02}") } else { format!("{hour:02}:{minute:02}") });
                all.extend(times);
            }
        }
        return Times::At(format!("at {}", and(&all)));
    }
    if cron.seconds != 1 {
        return match seconds.every("second") {
            Some(every) if minutes.is_all() && hours.is_all() => Times::Every(every),
            _ => Times::At(format!("at the seconds {} of the minutes {} of the hours {}", seconds.ranges(), minutes.ranges(), hours.ranges())),
        };
    }
    match (minutes.only(), minutes.every("minute"), hours.every("hour"), hours.range()) {
        (Some(0), _, Some(every), _) => Times::Every(every),
        (Some(minute), _, Some(every), _) => Times::Every(format!("{every} at minute {minute}")),
        (Some(minute), _, _, Some((first, last))) => Times::At(format!("every hour from {first:02}:{minute:02} to {last:02}:{minute:02}")),
        (_, Some(every), _, _) if hours.is_all() => Times::Every(every),
        (_, Some(every), _, Some((first, last))) => {
            let end = bits(cron.minutes).last().unwrap_or(0);
            Times::At(format!("{every} from {first:02}:00 to {last:02}:{end:02}"))
        }
        _ => Times::At(format!("at the minutes {} of the hours {}", minutes.ranges(), hours.ranges())),
    }
}

/// The days, unless it is every day.
fn days(cron: &Cron) -> Option<String> {
    let months = (cron.months != 0x1ffe).then(|| and(&bits(cron.months).filter_map(|month| MONTHS.get(month as usize - 1)).collect::<Vec<_>>()));
    let any_day = cron.days == 0xffff_fffe;
    let any_weekday = cron.weekdays == 0x7f;
    let of = months.clone().unwrap_or_else(|| "every month".to_owned());
    let within = months.as_ref().map(|months| format!(" in {months}")).unwrap_or_default();
    match (any_day, any_weekday) {
        (true, true) => months.map(|months| format!("every day in {months}")),
        (false, true) if cron.both => Some(match (only(cron.days), only(cron.months), cron.days_from_end) {
            (Some(day), Some(_), 0) => format!("every year on {day} {of}"),
            _ => format!("on {} of {of}", month_days(cron)),
        }),
        (true, false) if cron.both => Some(weekdays(cron, &of, &within)),
        _ if cron.both => Some(format!("on {} of {of} if that is {}", month_days(cron), weekday_names(cron))),
        _ => Some(format!("on {} of {of} and {}", month_days(cron), weekdays(cron, &of, &within))),
    }
}

/// The days of the week as people say them.
fn weekdays(cron: &Cron, of: &str, within: &str) -> String {
    let mut said = Vec::new();
    match cron.weekdays {
        0 => {}
        0x3e => said.push(format!("every weekday{within}")),
        set => said.push(format!("every {}{within}", and(&named(set)))),
    }
    for (weekday, weeks) in WEEKDAYS.iter().zip(cron.weeks) {
        let mut which: Vec<&str> = bits(u64::from(weeks & !LAST)).filter_map(|week| WEEKS.get(week as usize - 1).copied()).collect();
        which.extend((weeks & LAST != 0).then_some("last"));
        if !which.is_empty() {
            said.push(format!("on the {} {weekday} of {of}", and(&which)));
        }
    }
    and(&said)
}

fn weekday_names(cron: &Cron) -> String {
    let mut said: Vec<String> = named(cron.weekdays).into_iter().map(|day| format!("a {day}")).collect();
    for (weekday, weeks) in WEEKDAYS.iter().zip(cron.weeks) {
        said.extend(bits(u64::from(weeks & !LAST)).filter_map(|week| Some(format!("the {} {weekday}", WEEKS.get(week as usize - 1)?))));
        said.extend((weeks & LAST != 0).then(|| format!("the last {weekday}")));
    }
    or(&said)
}

/// Names of weekdays; Sunday ends a week.
fn named(set: u64) -> Vec<&'static str> {
    let order = [1, 2, 3, 4, 5, 6, 0];
    order.into_iter().filter(|day| set & (1 << day) != 0).filter_map(|day: usize| WEEKDAYS.get(day).copied()).collect()
}

fn month_days(cron: &Cron) -> String {
    let mut said: Vec<String> = bits(cron.days).map(|day| format!("the {}", nth(day))).collect();
    if said.len() > 6 {
        said = vec![format!("the days {}", Set::new(cron.days, 32).ranges())];
    }
    for before in bits(cron.days_from_end) {
        said.push(match before {
            0 => "the last day".to_owned(),
            1 => "the day before the last".to_owned(),
            before => format!("the day {before} days before the last"),
        });
    }
    and(&said)
}

fn nth(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// A set of numbers below a bound.
struct Set {
    set: u64,
    below: u32,
    count: u32,
}

impl Set {
    fn new(set: u64, below: u32) -> Self {
        Self { set, below, count: set.count_ones() }
    }

    fn is_all(&self) -> bool {
        self.count == self.below
    }

    fn only(&self) -> Option<u32> {
        only(self.set)
    }

    /// "every 5 minutes": evenly from 0, with the same time between the last and the first of the next round.
    fn every(&self, what: &str) -> Option<String> {
        let step = self.below.checked_div(self.count)?;
        let is_even = step * self.count == self.below && bits(self.set).zip((0..).step_by(step as usize)).all(|(number, expected)| number == expected);
        match (is_even, step) {
            (false, _) => None,
            (true, 1) => Some(format!("every {what}")),
            // What comes so seldom is named by its times.
            (true, _) if self.count < 3 => None,
            (true, step) => Some(format!("every {step} {what}s")),
        }
    }

    /// The first and the last, if everything between them is there.
    fn range(&self) -> Option<(u32, u32)> {
        let (first, last) = (bits(self.set).next()?, bits(self.set).last()?);
        (last - first + 1 == self.count).then_some((first, last))
    }

    /// "0 to 5, 10 and 12".
    fn ranges(&self) -> String {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for number in bits(self.set) {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => runs.push((number, number)),
            }
        }
        let shown: Vec<String> = runs.iter().map(|(first, last)| if first == last { first.to_string() } else { format!("{first} to {last}") }).collect();
        and(&shown)
    }
}

fn only(set: u64) -> Option<u32> {
    set.is_power_of_two().then(|| set.trailing_zeros())
}

fn and<T: AsRef<str>>(words: &[T]) -> String {
    join(words, "and")
}

fn or<T: AsRef<str>>(words: &[T]) -> String {
    join(words, "or")
}

fn join<T: AsRef<str>>(words: &[T], link: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [rest @ .., last] => {
            let rest: Vec<&str> = rest.iter().map(AsRef::as_ref).collect();
            format!("{} {link} {}", rest.join(", "), last.as_ref())
        }
    }
}
