//! Schedules against known changes of clocks, and against looking at every second.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::{MOMENTS_MAX, SECOND, Schedule, zone};

fn at(text: &str) -> i64 {
    crate::parse_time("at", text).unwrap()
}

fn shown(micros: i64) -> String {
    Timestamp::from_microsecond(micros).unwrap().to_string()
}

fn next(cron: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    Schedule::read(cron, zone).unwrap().next(at(after), count).into_iter().map(shown).collect()
}

#[test]
fn fields_names_ranges_steps_and_lists() {
    let after = "2026-01-01T00:00:00Z";
    for (cron, expected) in [
        ("0 9 * * *", "2026-01-01T09:00:00Z"),
        ("30 15 9 * * *", "2026-01-01T09:15:30Z"),
        ("*/15 * * * *", "2026-01-01T00:15:00Z"),
        ("5/20 * * * *", "2026-01-01T00:05:00Z"),
        ("0 9 * * MON-FRI", "2026-01-01T09:00:00Z"),
        ("0 9 * * sat-sun", "2026-01-03T09:00:00Z"),
        ("0 9 * * 7", "2026-01-04T09:00:00Z"),
        ("0 9 * * 6-7", "2026-01-03T09:00:00Z"),
        ("0 0 1 feb,apr *", "2026-02-01T00:00:00Z"),
        ("0 0 L * *", "2026-01-31T00:00:00Z"),
        ("0 0 L-30 * *", "2026-03-01T00:00:00Z"),
        ("0 0 L 2 *", "2026-02-28T00:00:00Z"),
        ("0 0 * * 1#2", "2026-01-12T00:00:00Z"),
        ("0 0 * * friL", "2026-01-30T00:00:00Z"),
        ("0 0 * * 0L", "2026-01-25T00:00:00Z"),
        ("0 0 ? * WED", "2026-01-07T00:00:00Z"),
        ("0 0 15 * 2", "2026-01-06T00:00:00Z"),
        ("0 0 */2 * 2", "2026-01-13T00:00:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ("0 0 * 2 1#5", "2044-02-29T00:00:00Z"),
        ("@daily", "2026-01-02T00:00:00Z"),
        ("@hourly", "2026-01-01T01:00:00Z"),
        ("@weekly", "2026-01-04T00:00:00Z"),
        ("@monthly", "2026-02-01T00:00:00Z"),
        ("@Yearly", "2027-01-01T00:00:00Z"),
        ("  0   9  * *   * ", "2026-01-01T09:00:00Z"),
    ] {
        assert_eq!(next(cron, "UTC", after, 1), [expected], "{cron}");
    }
}

#[test]
fn what_cannot_be_read_is_said() {
    for (cron, said) in [
        ("", "has 0 fields"),
        ("* * * *", "has 4 fields"),
        ("* * * * * * *", "has 7 fields"),
        ("60 * * * *", "`60` as minutes: write a number from 0 to 59"),
        ("* 24 * * *", "`24` as hours"),
        ("* * 0 * *", "`0` as day of month"),
        ("* * * 13 *", "`13` as month"),
        ("* * * * 8", "`8` as day of week"),
        ("* * * * mo", "`mo` as day of week"),
        ("*/0 * * * *", "a step is a number from 1 to 59"),
        ("*/90 * * * *", "a step is a number from 1 to 59"),
        ("10-5 * * * *", "a range goes upwards"),
        ("-5 * * * *", "minutes"),
        ("1,,2 * * * *", "minutes"),
        ("+5 * * * *", "minutes"),
        ("* * L-31 * *", "write L for the last day"),
        ("* * 15W * *", "W"),
        ("* * * * L", "has no day before L"),
        ("* * * * 1#6", "a number from 1 to 5"),
        ("0 0 30 2 *", "a day that no month has"),
        ("0 0 31 4,6,9,11 *", "a day that no month has"),
        ("@reboot", "there are @yearly"),
        ("@every 5m", "there are @yearly"),
        ("५ * * * *", "minutes"),
    ] {
        let error = Schedule::read(cron, "UTC").unwrap_err();
        assert!(error.message.contains(said), "{cron}: {}", error.message);
        assert_eq!(error.field.as_deref(), Some("schedule"));
    }
    assert!(Schedule::read(&"1,".repeat(200), "UTC").is_err());
    for (name, said) in
        [("Berlin", "Europe/Berlin"), ("new york", "America/New_York"), ("Mars/Olympus", "write for example"), ("../../etc/passwd", "write for example")]
    {
        let error = Schedule::read("@daily", name).unwrap_err();
        assert!(error.message.contains(said), "{name}: {}", error.message);
        assert_eq!(error.field.as_deref(), Some("time_zone"));
    }
    assert_eq!(
        Schedule::read("0  9 * * Mon", "europe/berlin").map(|it| (it.cron().to_owned(), it.time_zone().to_owned())).unwrap(),
        ("0 9 * * MON".to_owned(), "Europe/Berlin".to_owned())
    );
}

#[test]
fn a_time_that_the_clocks_jump_over_runs_once_right_after_the_jump() {
    // Berlin, 29 March 2026: at 02:00 it is 03:00, which is 01:00 UTC.
    let before = "2026-03-28T12:00:00Z";
    assert_eq!(next("30 2 * * *", "Europe/Berlin", before, 3), ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"]);
    assert_eq!(next("*/10 2 * * *", "Europe/Berlin", before, 2), ["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"]);
    // Together with what runs then anyway.
    assert_eq!(next("30 2,3 * * *", "Europe/Berlin", before, 3), ["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"]);
    assert_eq!(next("0 2-3 * * *", "Europe/Berlin", before, 2), ["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"]);
    // Half an hour on Lord Howe Island, 4 October 2026: at 02:00 it is 02:30, 15:30 UTC.
    assert_eq!(next("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", 2), ["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"]);
    // Midnight itself in Beirut, 29 March 2026, and a whole day in Samoa, 30 December 2011.
    assert_eq!(next("0 0 * * *", "Asia/Beirut", "2026-03-28T12:00:00Z", 2), ["2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"]);
    assert_eq!(next("0 9 * * *", "Pacific/Apia", "2011-12-29T20:00:00Z", 2), ["2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z"]);
}

#[test]
fn a_time_that_the_clocks_show_twice_runs_the_first_time_only() {
    // Berlin, 25 October 2026: at 03:00 it is 02:00 again, which is 01:00 UTC.
    assert_eq!(next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2), ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    assert_eq!(next("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1), ["2026-10-26T01:30:00Z"], "asked in the second of both hours");
    assert_eq!(next("* * 2 * * *", "Europe/Berlin", "2026-10-25T00:59:59Z", 1), ["2026-10-26T01:00:00Z"]);
    // New York, 1 November 2026: at 02:00 it is 01:00 again.
    assert_eq!(next("0,30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", 3), ["2026-11-01T05:00:00Z", "2026-11-01T05:30:00Z", "2026-11-02T06:00:00Z"]);
}

#[test]
fn every_hour_goes_by_the_hand_of_the_clock() {
    assert_eq!(
        next("30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", 4),
        ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z", "2026-10-25T03:30:00Z"]
    );
    assert_eq!(next("30 * * * *", "Europe/Berlin", "2026-03-28T23:45:00Z", 3), ["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"]);
    assert_eq!(next("15 * * * *", "Australia/Lord_Howe", "2026-10-03T14:00:00Z", 3), ["2026-10-03T14:45:00Z", "2026-10-03T16:15:00Z", "2026-10-03T17:15:00Z"]);
}

#[test]
fn far_days_are_found_without_a_scan() {
    let schedule = Schedule::read("0 0 29 2 *", "America/Sao_Paulo").unwrap();
    // Minute by minute, this would take hours.
    for _ in 0..1_000 {
        assert_eq!(schedule.next_after(at("2096-03-01T00:00:00Z")).map(shown).as_deref(), Some("2104-02-29T03:00:00Z"));
    }
}

#[test]
fn what_was_missed_is_bounded() {
    let schedule = Schedule::read("0 * * * *", "UTC").unwrap();
    let missed = schedule.missed(at("2026-01-01T00:00:00Z"), at("2026-01-01T03:00:00Z"), 10);
    assert_eq!((missed.at.len(), missed.more), (3, false), "the first moment is not in it, the last is");
    let missed = schedule.missed(at("2026-01-01T00:00:00Z"), at("2026-01-01T03:00:00Z"), 2);
    assert_eq!((missed.at, missed.more), (vec![at("2026-01-01T01:00:00Z"), at("2026-01-01T02:00:00Z")], true));
    let missed = schedule.missed(at("2000-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"), usize::MAX);
    assert_eq!((missed.at.len(), missed.more), (MOMENTS_MAX, true));
    assert_eq!(schedule.missed(at("2026-01-02T00:00:00Z"), at("2026-01-01T00:00:00Z"), 5).at, Vec::<i64>::new());
    assert_eq!(schedule.next(0, usize::MAX).len(), MOMENTS_MAX);
    assert_eq!((schedule.next_after(i64::MAX), schedule.next_after(i64::MIN)), (None, None));
}

#[test]
fn jitter_is_steady_and_less_than_the_time_between_two_runs() {
    let schedule = Schedule::read("*/5 * * * *", "UTC").unwrap();
    let now = at("2026-01-01T00:00:00Z");
    let offset = schedule.jitter("agent-1", 60 * SECOND, now);
    assert_eq!(offset, schedule.jitter("agent-1", 60 * SECOND, now + 300 * SECOND));
    assert_eq!(schedule.jitter("agent-1", 0, now), 0);
    assert_eq!(schedule.jitter("agent-1", -5, now), 0);
    let all: Vec<i64> = (0..1_000).map(|id| schedule.jitter(&format!("agent-{id}"), i64::MAX, now)).collect();
    assert!(all.iter().all(|offset| (0..300 * SECOND).contains(offset)));
    let early = all.iter().filter(|offset| **offset < 150 * SECOND).count();
    assert!((400..600).contains(&early), "spread over the time between: {early} of 1000 in its first half");
}

#[test]
fn words_for_people() {
    for (cron, words) in [
        ("0 9 * * 1-5", "every weekday at 09:00 Europe/Berlin"),
        ("0 2 * * *", "every day at 02:00 Europe/Berlin"),
        ("* * * * *", "every minute Europe/Berlin"),
        ("*/5 * * * *", "every 5 minutes Europe/Berlin"),
        ("*/5 * * * 1-5", "every 5 minutes, every weekday, Europe/Berlin"),
        ("0 * * * *", "every hour Europe/Berlin"),
        ("15 * * * *", "every hour at minute 15 Europe/Berlin"),
        ("0 */2 * * *", "every 2 hours Europe/Berlin"),
        ("0 */6 * * *", "every day at 00:00, 06:00, 12:00 and 18:00 Europe/Berlin"),
        ("0 9,17 * * *", "every day at 09:00 and 17:00 Europe/Berlin"),
        ("*/15 9-17 * * mon-fri", "every weekday every 15 minutes from 09:00 to 17:45 Europe/Berlin"),
        ("0 8-18 * * *", "every day every hour from 08:00 to 18:00 Europe/Berlin"),
        ("0 0 1,15 * *", "on the 1st and the 15th of every month at 00:00 Europe/Berlin"),
        ("0 0 L * *", "on the last day of every month at 00:00 Europe/Berlin"),
        ("0 8 * * 1#1", "on the first Monday of every month at 08:00 Europe/Berlin"),
        ("0 8 * * friL", "on the last Friday of every month at 08:00 Europe/Berlin"),
        ("0 0 29 2 *", "every year on 29 February at 00:00 Europe/Berlin"),
        ("0 0 * * 0,6", "every Saturday and Sunday at 00:00 Europe/Berlin"),
        ("0 0 1 * 1", "on the 1st of every month and every Monday at 00:00 Europe/Berlin"),
        ("0 0 */15 * 1", "on the 1st, the 16th and the 31st of every month if that is a Monday at 00:00 Europe/Berlin"),
        ("0 9 * 1,7 mon", "every Monday in January and July at 09:00 Europe/Berlin"),
        ("30 0 9 * * *", "every day at 09:00:30 Europe/Berlin"),
        ("*/10 * * * * *", "every 10 seconds Europe/Berlin"),
        ("1-7,9 1,3-12 * * *", "every day at the minutes 1 to 7 and 9 of the hours 1 and 3 to 12 Europe/Berlin"),
        ("* * 3 * * *", "every day at the seconds 0 to 59 of the minutes 0 to 59 of the hours 3 Europe/Berlin"),
    ] {
        assert_eq!(Schedule::read(cron, "Europe/Berlin").unwrap().words(), words, "{cron}");
    }
}

/// What a schedule means, second by second, read from its text anew: the moments between two others.
fn looked_at_each_second(cron: &str, zone_name: &str, from: i64, seconds: i64) -> Vec<i64> {
    let zone = zone(zone_name).unwrap();
    let fields: Vec<&str> = cron.split(' ').collect();
    let fits = |field: &str, number: i64| {
        field.split(',').any(|part| match part.split_once('/') {
            Some((_, step)) => number % step.parse::<i64>().unwrap() == 0,
            None => {
                part == "*"
                    || part.split_once('-').map_or_else(
                        || part.parse::<i64>().unwrap() == number,
                        |(first, last)| (first.parse().unwrap()..=last.parse().unwrap()).contains(&number),
                    )
            }
        })
    };
    let matches = |time: DateTime| {
        let day = fits(fields[3], i64::from(time.day()));
        let weekday = fits(fields[5], i64::from(time.weekday().to_sunday_zero_offset()));
        let days = if fields[3].starts_with('*') || fields[5].starts_with('*') { day && weekday } else { day || weekday };
        let clock = fits(fields[0], i64::from(time.second())) && fits(fields[1], i64::from(time.minute())) && fits(fields[2], i64::from(time.hour()));
        clock && days && fits(fields[4], i64::from(time.month()))
    };
    let here = |second: i64| zone.to_datetime(Timestamp::from_second(second).unwrap());
    let mut found = Vec::new();
    let mut latest: Option<DateTime> = None;
    let mut before: Option<DateTime> = None;
    // A day earlier, so that it is known what the clock showed already.
    for second in from - 90_000..=from + seconds {
        let now = here(second);
        let runs = if fields[2] == "*" {
            matches(now)
        } else {
            let is_new = latest.is_none_or(|latest| now > latest);
            let jumped = before.is_some_and(|before| {
                let mut between = before.checked_add(SignedDuration::from_secs(1)).unwrap();
                let mut any = false;
                while between < now {
                    any |= matches(between);
                    between = between.checked_add(SignedDuration::from_secs(1)).unwrap();
                }
                any
            });
            is_new && (matches(now) || jumped)
        };
        if runs && second > from {
            found.push(second * SECOND);
        }
        latest = latest.max(Some(now));
        before = Some(now);
    }
    found
}

fn field(max: u32, min: u32) -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("*".to_owned()),
        3 => (min..=max).prop_map(|number| number.to_string()),
        1 => (min..=max, min..=max).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (min..=max, min..=max).prop_map(|(a, b)| format!("{a},{b}")),
        1 => (2..=max.min(12)).prop_map(move |step| if min == 0 { format!("*/{step}") } else { "*".to_owned() }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 16, ..ProptestConfig::default() })]
    /// Around changes of the clock and away from them.
    #[test]
    fn next_is_what_looking_at_every_second_finds(
        second in prop_oneof![4 => Just("0".to_owned()), 1 => field(59, 0)],
        minute in field(59, 0),
        hour in prop_oneof![2 => field(23, 0), 3 => prop::sample::select(vec!["1", "2", "3", "2-3", "0", "1,2"]).prop_map(str::to_owned)],
        day in prop_oneof![3 => Just("*".to_owned()), 1 => field(31, 1)],
        weekday in prop_oneof![3 => Just("*".to_owned()), 1 => field(6, 0)],
        (place, day_of_change) in prop::sample::select(vec![
            ("Europe/Berlin", "2026-03-29T01:00:00Z"), ("Europe/Berlin", "2026-10-25T01:00:00Z"),
            ("America/New_York", "2026-03-08T07:00:00Z"), ("America/New_York", "2026-11-01T06:00:00Z"),
            ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"), ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
            ("Asia/Beirut", "2026-03-28T22:00:00Z"), ("Africa/Casablanca", "2026-03-22T02:00:00Z"),
            ("America/St_Johns", "2026-11-01T04:30:00Z"), ("Asia/Kolkata", "2026-05-05T00:00:00Z"),
        ]),
        before in 0_i64..100_000,
    ) {
        let cron = format!("{second} {minute} {hour} {day} * {weekday}");
        let from = at(day_of_change) / SECOND - before;
        let span = 130_000;
        let expected = looked_at_each_second(&cron, place, from, span);
        let schedule = Schedule::read(&cron, place).unwrap();
        let got: Vec<i64> = schedule.next(from * SECOND, 60).into_iter().take_while(|at| *at <= (from + span) * SECOND).collect();
        prop_assert_eq!(&got, &expected[..expected.len().min(60)], "{} in {}", cron, place);
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(cron in "\\PC{0,40}|([0-9*,/#L?@a-z-]| ){0,30}", place in "\\PC{0,20}") {
        let _ = zone(&place);
        if let Ok(schedule) = Schedule::read(&cron, "Europe/Berlin") {
            prop_assert!(schedule.next_after(0).is_some());
            prop_assert!(!schedule.words().is_empty());
            let again = Schedule::read(schedule.cron(), schedule.time_zone()).unwrap();
            prop_assert_eq!(again.cron, schedule.cron);
        }
    }

    #[test]
    fn moments_go_upwards(minute in field(59, 0), hour in field(23, 0), weekday in field(6, 0), after in -2_000_000_000_i64..4_000_000_000) {
        let schedule = Schedule::read(&format!("{minute} {hour} * * {weekday}"), "America/New_York").unwrap();
        let mut last = after * SECOND;
        for next in schedule.next(last, 20) {
            prop_assert!(next > last);
            last = next;
        }
    }
}
