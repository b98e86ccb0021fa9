//! Figures for Prometheus: counters that calls add to, and gauges that are set when somebody reads them. Every label has
//! its words from a fixed list.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use deskmate_core::backlog::Backlog;
use prometheus::{Encoder, Gauge, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, Result, TextEncoder};

use super::{Fate, Spans};

/// Upper bounds of the durations, in seconds: from a read to a call that waits as long as it may.
const DURATIONS: [f64; 13] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
/// Words that are there from the start, so that a first event shows as a step and not as a new line.
const MODES: [&str; 4] = ["act", "deny", "escalate", "suggest"];
const ENDS: [&str; 4] = ["ambiguous", "cancelled", "done", "failed"];

/// The figures of this process.
pub(crate) struct Figures {
    registry: Registry,
    calls: IntCounterVec,
    durations: HistogramVec,
    decisions: IntCounterVec,
    jobs_ended: IntCounterVec,
    sessions: IntGauge,
    streams: IntGauge,
    /// What is read from elsewhere. Held while it is set and written out, so that two readers do not mix.
    read: Mutex<Read>,
}

struct Read {
    requests: IntGaugeVec,
    jobs: IntGaugeVec,
    events: IntGauge,
    unsealed: IntGauge,
    commits: IntCounter,
    writes: IntCounter,
    spans_sent: IntCounter,
    spans_dropped: IntCounter,
}

impl Figures {
    /// Figures that are all at nought. `started` is in microseconds since 1970.
    pub(super) fn new(engine: &str, started: i64) -> Result<Self> {
        let registry = Registry::new();
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counters.clone())).map(|()| counters)
        };
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone())).map(|()| counter)
        };
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            let gauges = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauges.clone())).map(|()| gauges)
        };
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone())).map(|()| gauge)
        };
        let read = Read {
            requests: gauges("deskmate_requests_pending", "Requests that wait for people.", &["kind"])?,
            jobs: gauges("deskmate_jobs", "Jobs that wait or run.", &["state"])?,
            events: gauge("deskmate_record_events", "Events in the sealed record.")?,
            unsealed: gauge("deskmate_record_unsealed_events", "Events that wait to be sealed; never any with SQLite.")?,
            commits: counter("deskmate_commits_total", "Commits of the SQLite writer.")?,
            writes: counter("deskmate_committed_writes_total", "Writes in these commits: divided by them, the size of a batch.")?,
            spans_sent: counter("deskmate_spans_sent_total", "Spans that the OpenTelemetry collector took.")?,
            spans_dropped: counter("deskmate_spans_dropped_total", "Spans that it never got.")?,
        };
        let durations = HistogramOpts::new("deskmate_call_duration_seconds", "Time from a call to its answer.").buckets(DURATIONS.to_vec());
        let durations = HistogramVec::new(durations, &["operation"])?;
        registry.register(Box::new(durations.clone()))?;
        gauges("deskmate_build_info", "Always 1; the labels say what runs.", &["version", "engine"])?
            .with_label_values(&[env!("CARGO_PKG_VERSION"), engine])
            .set(1);
        let since = Gauge::new("process_start_time_seconds", "When this process started, in seconds since 1970.")?;
        since.set(Duration::from_micros(started.unsigned_abs()).as_secs_f64());
        registry.register(Box::new(since))?;
        let figures = Self {
            calls: counters("deskmate_calls_total", "Calls of operations.", &["operation", "surface", "outcome"])?,
            durations,
            decisions: counters("deskmate_decisions_total", "What the desk answered to intended acts.", &["mode"])?,
            jobs_ended: counters("deskmate_jobs_ended_total", "Jobs that came to an end on this server.", &["state"])?,
            sessions: gauge("deskmate_mcp_sessions", "MCP clients that are connected over the local socket.")?,
            streams: gauge("deskmate_streams_open", "Live streams that are open over HTTP.")?,
            read: Mutex::new(read),
            registry: registry.clone(),
        };
        for (counters, words) in [(&figures.decisions, MODES), (&figures.jobs_ended, ENDS)] {
            for word in words {
                drop(counters.with_label_values(&[word]));
            }
        }
        Ok(figures)
    }

    /// Counts a call.
    pub(super) fn called(&self, operation: &str, surface: &'static str, fate: Fate, took: Duration) {
        self.calls.with_label_values(&[operation, surface, fate.outcome]).inc();
        self.durations.with_label_values(&[operation]).observe(took.as_secs_f64());
        if let Some(mode) = fate.decision {
            self.decisions.with_label_values(&[mode]).inc();
        }
    }

    /// Counts the end of a job; one that is tried again has not ended.
    pub(super) fn job_ended(&self, state: &str) {
        if ENDS.contains(&state) {
            self.jobs_ended.with_label_values(&[state]).inc();
        }
    }

    pub(super) fn session(&self) -> Open {
        Open::new(&self.sessions)
    }

    /// A live stream is open as long as this lives.
    pub(crate) fn stream(&self) -> Open {
        Open::new(&self.streams)
    }

    /// All figures in the text format, with what was read for it.
    pub(crate) fn text(&self, backlog: &Backlog, commits: Option<(u64, u64)>, spans: Option<&Spans>) -> Result<(String, String)> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        for (gauges, numbers) in [(&read.requests, &backlog.requests_pending), (&read.jobs, &backlog.jobs)] {
            for (word, number) in numbers {
                gauges.with_label_values(&[word]).set(*number);
            }
        }
        read.events.set(number(backlog.events));
        read.unsealed.set(backlog.events_unsealed);
        let (sent, dropped) = spans.map_or((0, 0), Spans::counts);
        let (commits, writes) = commits.unwrap_or_default();
        for (counter, now) in [(&read.commits, commits), (&read.writes, writes), (&read.spans_sent, sent), (&read.spans_dropped, dropped)] {
            counter.inc_by(now.saturating_sub(counter.get()));
        }
        let encoder = TextEncoder::new();
        Ok((encoder.format_type().to_owned(), encoder.encode_to_string(&self.registry.gather())?))
    }
}

/// Something that is open and counted.
pub(crate) struct Open(IntGauge);

impl Open {
    fn new(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Instant;

    use super::*;

    fn backlog(pending: i64) -> Backlog {
        let requests_pending = BTreeMap::from([("proposal".to_owned(), pending)]);
        Backlog { requests_pending, jobs: BTreeMap::from([("waiting".to_owned(), 2)]), events: 7, events_unsealed: 0 }
    }

    const DONE: Fate = Fate { outcome: "done", actor: "agent", decision: None, fault: false };

    #[test]
    fn figures_are_what_was_counted_and_read() {
        let figures = Figures::new("sqlite", 1_700_000_000_000_000).unwrap();
        figures.called("desk_status", "rest", DONE, Duration::from_millis(2));
        figures.called("cowork_propose", "mcp", Fate { decision: Some("suggest"), ..DONE }, Duration::from_millis(2));
        figures.job_ended("done");
        figures.job_ended("waiting");
        let open = figures.stream();
        let (kind, text) = figures.text(&backlog(3), Some((2, 9)), None).unwrap();
        assert_eq!(kind, "text/plain; version=0.0.4");
        for line in [
            "deskmate_calls_total{operation=\"desk_status\",outcome=\"done\",surface=\"rest\"} 1",
            "deskmate_call_duration_seconds_bucket{operation=\"desk_status\",le=\"0.001\"} 0",
            "deskmate_call_duration_seconds_bucket{operation=\"desk_status\",le=\"0.0025\"} 1",
            "deskmate_decisions_total{mode=\"suggest\"} 1",
            "deskmate_decisions_total{mode=\"deny\"} 0",
            "deskmate_jobs_ended_total{state=\"done\"} 1",
            "deskmate_requests_pending{kind=\"proposal\"} 3",
            "deskmate_jobs{state=\"waiting\"} 2",
            "deskmate_record_events 7",
            "deskmate_commits_total 2",
            "deskmate_committed_writes_total 9",
            "deskmate_streams_open 1",
            "process_start_time_seconds 1700000000",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("jobs_ended_total{state=\"waiting\"}"));
        drop(open);
        let (_, text) = figures.text(&backlog(0), Some((3, 10)), None).unwrap();
        for line in ["deskmate_requests_pending{kind=\"proposal\"} 0", "deskmate_committed_writes_total 10", "deskmate_streams_open 0"] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn counting_a_call_costs_next_to_nothing() {
        let figures = Figures::new("sqlite", 0).unwrap();
        let (rounds, started) = (100_000_u32, Instant::now());
        for _ in 0..rounds {
            figures.called("bridge_send_message", "rest", DONE, Duration::from_micros(700));
        }
        let each = started.elapsed() / rounds;
        // Unoptimised and on a busy machine: one that took a lock for every call, or wrote, would be far beyond it.
        assert!(each < Duration::from_micros(20), "{each:?}");
    }
}
