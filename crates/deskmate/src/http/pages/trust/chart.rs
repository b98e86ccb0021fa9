//! Charts as SVG. Places are in percent, so that a chart fits any width and its words stay as large as the page's own.

use deskmate_core::format_time;
use maud::{Markup, html};

use super::{Bucket, Change, Shown, signed};

/// Where the plot is within the picture, in percent: left, right, top and bottom.
const PLOT: (f64, f64, f64, f64) = (9.0, 97.0, 5.0, 88.0);

/// A place across, of a share of the plot's width.
fn across(share: f64) -> String {
    let (left, right, ..) = PLOT;
    format!("{:.2}%", left + (right - left) * share.clamp(0.0, 1.0))
}

/// A place from above, of a value between 0 and 1.
fn up(value: f64) -> String {
    let (.., top, bottom) = PLOT;
    format!("{:.2}%", bottom - (bottom - top) * value.clamp(0.0, 1.0))
}

fn microseconds(at: &str) -> Option<i64> {
    at.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond)
}

/// The span of time that a chart shows.
struct Span {
    from: i64,
    to: i64,
}

impl Span {
    #[expect(clippy::cast_precision_loss, reason = "only for drawing")]
    fn across(&self, at: i64) -> String {
        across((at - self.from) as f64 / (self.to - self.from).max(1) as f64)
    }
}

/// A moment as every text in a drawing begins with it, which the script puts into the reader's zone.
fn day(at: i64) -> String {
    format!("{} UTC", format_time(at).chars().take(16).collect::<String>().replace('T', " "))
}

/// The score as steps from change to change. Between two changes it fades, so the line falls.
pub(super) fn over_time(shown: &Shown, now: i64) -> Markup {
    let oldest = shown.history.last().and_then(|change| microseconds(&change.at));
    let Some(from) = oldest else { return html! { p.hint { "Nothing moved it yet." } } };
    let span = Span { from, to: now.max(from + 1) };
    let thresholds = [(0.0, ""), (shown.suggest_from, "people decide"), (shown.act_from, "may act alone"), (1.0, "")];
    let raised = shown.act_from - 0.8 > 0.01;
    html! {
        svg.chart role="img" aria-labelledby="chart-title chart-text" {
            title id="chart-title" { "The score over time" }
            desc id="chart-text" { (in_words(shown)) }
            @for (value, what) in thresholds {
                line.grid x1=(across(0.0)) x2=(across(1.0)) y1=(up(value)) y2=(up(value)) {}
                text.axis x="8%" y=(up(value)) dy="4" text-anchor="end" { (value) }
                @if !what.is_empty() { text.mode x=(across(0.0)) dx="4" y=(up(value)) dy="-4" { (what) } }
            }
            @if raised { text.axis x="8%" y=(up(0.8)) dy="4" text-anchor="end" { "0.8" } }
            text.axis x=(across(0.0)) y="98%" data-time=(format_time(span.from)) { (day(span.from)) }
            text.axis x=(across(1.0)) y="98%" text-anchor="end" data-time=(format_time(span.to)) { (day(span.to)) }
            @for row in &shown.rows { (series(shown, &span, row.verified, row.score)) }
        }
        @if shown.rows.len() > 1 { p.hint { "The whole line is what it earned with its token, the broken one what it earned by its name alone." } }
        p.hint { (in_words(shown)) }
    }
}

/// The steps of one score, and a point for each change.
fn series(shown: &Shown, span: &Span, verified: bool, score: f64) -> Markup {
    let class = if verified || shown.rows.len() == 1 { "step" } else { "step broken" };
    let changes: Vec<(i64, &Change)> =
        shown.history.iter().rev().filter(|change| change.verified == verified).filter_map(|change| Some((microseconds(&change.at)?, change))).collect();
    let next = changes.iter().skip(1).map(|(at, change)| (*at, change.previous)).chain([(span.to, score)]);
    html! {
        @for ((at, change), (until, faded)) in changes.iter().zip(next) {
            line class=(class) x1=(span.across(*at)) x2=(span.across(*at)) y1=(up(change.previous)) y2=(up(change.new)) {}
            line class=(class) x1=(span.across(*at)) x2=(span.across(until)) y1=(up(change.new)) y2=(up(faded)) {}
        }
        @for (at, change) in &changes {
            circle class=(if change.new < change.previous { "down" } else { "up" }) cx=(span.across(*at)) cy=(up(change.new)) r="4" {
                title data-time=(format_time(*at)) { (day(*at)) ": " (change.cause.replace('_', " ")) " " (signed(change.impact)) ", from " (format!("{:.3}", change.previous)) " to " (format!("{:.3}", change.new)) }
            }
        }
    }
}

/// What the chart shows, for those who do not see it.
fn in_words(shown: &Shown) -> String {
    let (raised, lowered) = shown.history.iter().fold((0, 0), |(raised, lowered), change| match change.new.total_cmp(&change.previous) {
        std::cmp::Ordering::Greater => (raised + 1, lowered),
        std::cmp::Ordering::Less => (raised, lowered + 1),
        std::cmp::Ordering::Equal => (raised, lowered),
    });
    let now: Vec<String> = shown.rows.iter().map(|row| format!("{:.2}{}", row.score, if row.verified { "" } else { " by name alone" })).collect();
    format!(
        "{raised} changes raised it and {lowered} lowered it; now it is {}. From {} on people decide on its proposals instead of taking over, from {} on it may act alone.",
        now.join(" and "),
        shown.suggest_from,
        shown.act_from
    )
}

/// How sure the agent was, against how often it was right.
pub(super) fn calibration(buckets: &[Bucket]) -> Markup {
    html! {
        svg.chart.square role="img" aria-label="How sure it was against how often it was approved; the table has the numbers" {
            line.ideal x1=(across(0.0)) y1=(up(0.0)) x2=(across(1.0)) y2=(up(1.0)) {}
            @for value in [0.0, 0.5, 1.0] {
                line.grid x1=(across(0.0)) x2=(across(1.0)) y1=(up(value)) y2=(up(value)) {}
                text.axis x="8%" y=(up(value)) dy="4" text-anchor="end" { (value) }
                text.axis x=(across(value)) y="98%" text-anchor=(if value < 0.1 { "start" } else if value > 0.9 { "end" } else { "middle" }) { (value) }
            }
            @for bucket in buckets {
                circle.up cx=(across(bucket.mean_confidence)) cy=(up(bucket.approved)) r=(radius(bucket.count)) {
                    title { (super::percent(bucket.mean_confidence)) " sure, " (super::percent(bucket.approved)) " approved of " (bucket.count) }
                }
            }
        }
    }
}

/// A point grows with its count, and stays small.
#[expect(clippy::cast_precision_loss, reason = "only for drawing")]
fn radius(count: i64) -> String {
    format!("{:.1}", (3.0 + (count.max(0) as f64).sqrt()).min(12.0))
}
