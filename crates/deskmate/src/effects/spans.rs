//! Spans on their way to an OpenTelemetry collector. They are gathered for a moment and sent together; while the collector
//! is away the queue fills, what does not fit is dropped, and the log says how much that was. No call ever waits for it.

use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::sync::mpsc::Receiver as Queue;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::outbound::Receiver;
use crate::config::Collector;
use crate::telemetry::{self, QUEUE_MAX, Span, Spans};

/// How many spans are sent together, and for how long the first of them waits for others.
const BATCH_MAX: usize = 512;
const GATHER: Duration = Duration::from_secs(1);
/// How long a collector that is away is left alone, first and at most.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How often the log says how many were dropped.
const SAY_EVERY: Duration = Duration::from_mins(1);
/// How long the end of the server waits for the last spans.
const LAST: Duration = Duration::from_secs(2);

/// The effect, running.
pub(super) struct Exporter {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Begins to send what comes out of the queue. `instance` tells this process from others of the same desk.
    pub(super) fn start(collector: &Collector, queue: Queue<Span>, spans: Spans, instance: String) -> Self {
        let mut headers: HeaderMap = collector.headers.iter().cloned().collect();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(telemetry::CONTENT_TYPE));
        let receiver = Receiver::new(collector.url.clone(), collector.ca_file.clone());
        let stop = CancellationToken::new();
        let told = spans.counts().1;
        let sender = Sender { receiver, headers, instance, spans, stop: stop.clone(), away: false, told, said: Instant::now() };
        Self { task: tokio::spawn(sender.run(queue)), stop }
    }

    /// Sends what is left, for a short time: nobody calls any more.
    pub(super) async fn finish(self) {
        self.stop.cancel();
        if tokio::time::timeout(LAST, self.task).await.is_err() {
            tracing::warn!("the collector did not take the last spans in time");
        }
    }
}

struct Sender {
    receiver: Receiver,
    headers: HeaderMap,
    instance: String,
    spans: Spans,
    stop: CancellationToken,
    /// Whether the last attempt failed.
    away: bool,
    /// How many dropped spans the log knows of, and when it was told.
    told: u64,
    said: Instant,
}

impl Sender {
    async fn run(mut self, mut queue: Queue<Span>) {
        while let Some(batch) = self.gather(&mut queue).await {
            self.deliver(&batch).await;
        }
        let mut rest = Vec::new();
        while let Ok(span) = queue.try_recv() {
            rest.push(span);
        }
        for batch in rest.chunks(BATCH_MAX) {
            self.deliver(batch).await;
        }
        self.say_dropped();
    }

    /// The next spans to send together; `None` when the server stops.
    async fn gather(&self, queue: &mut Queue<Span>) -> Option<Vec<Span>> {
        let mut batch = Vec::new();
        tokio::select! {
            () = self.stop.cancelled() => return None,
            found = queue.recv_many(&mut batch, BATCH_MAX) => if found == 0 { return None },
        }
        let until = Instant::now() + GATHER;
        while batch.len() < BATCH_MAX {
            let room = BATCH_MAX - batch.len();
            let more = tokio::select! {
                () = self.stop.cancelled() => break,
                more = timeout_at(until, queue.recv_many(&mut batch, room)) => more,
            };
            if !more.is_ok_and(|found| found > 0) {
                break;
            }
        }
        Some(batch)
    }

    /// Sends a batch, again and again while the collector is away; once when the server stops.
    async fn deliver(&mut self, batch: &[Span]) {
        let body = Bytes::from(telemetry::encode(&self.instance, batch));
        let mut pause = PAUSE;
        loop {
            let why = match self.receiver.post(self.headers.clone(), body.clone()).await.map(|answer| answer.status) {
                Ok(status) if status.is_success() => {
                    self.spans.sent(batch.len());
                    if std::mem::take(&mut self.away) {
                        tracing::info!("the collector takes spans again");
                    }
                    self.say_dropped_now_and_then();
                    return;
                }
                Ok(status) if !is_passing(status) => {
                    // The same again would be refused again.
                    self.give_up(batch, &format!("the collector answered {}", status.as_u16()));
                    return;
                }
                Ok(status) => format!("the collector answered {}", status.as_u16()),
                Err(why) => why,
            };
            if self.stop.is_cancelled() {
                self.give_up(batch, &why);
                return;
            }
            if !std::mem::replace(&mut self.away, true) {
                tracing::warn!(why, "the collector takes no spans; {QUEUE_MAX} are kept for it, and more are dropped");
            }
            self.say_dropped_now_and_then();
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn give_up(&mut self, batch: &[Span], why: &str) {
        self.spans.dropped(batch.len());
        if !std::mem::replace(&mut self.away, true) {
            tracing::warn!(why, "the collector takes no spans; these are dropped");
        }
        self.say_dropped_now_and_then();
    }

    fn say_dropped_now_and_then(&mut self) {
        if self.said.elapsed() >= SAY_EVERY {
            self.say_dropped();
        }
    }

    fn say_dropped(&mut self) {
        let dropped = self.spans.counts().1;
        if dropped > self.told {
            tracing::warn!(spans = dropped - self.told, in_all = dropped, "spans were dropped: the collector did not take them in time");
        }
        (self.told, self.said) = (dropped, Instant::now());
    }
}

/// Whether a refusal is one that passes, as OTLP lists them.
fn is_passing(status: StatusCode) -> bool {
    matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
}
