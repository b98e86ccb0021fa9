//! MCP over standard streams, as a hostile program may speak it: lines of bounded length, whatever stands in them, at a
//! bounded pace. Whether a call has left this process is marked on it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::log::Log;
use super::relay::{Call, Ledger};
use super::spec::{Bounds, Spec};

/// The codes under which this transport answers in the upstream's place.
pub(super) const TOO_LARGE: ErrorCode = ErrorCode(-32_801);
pub(super) const UNREADABLE: ErrorCode = ErrorCode(-32_802);

/// How many lines that are no messages may follow each other.
const STRAY_LINES_MAX: u32 = 50;
/// How much may wait for a program that does not read.
const UNREAD_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How much of the beginning and of the end of a line that is too long is kept, to find out whose answer it is.
const HEAD_BYTES: usize = 1024;
const TAIL_BYTES: usize = 256;
/// How many times the largest message a line may be before nobody waits for its end.
const LINE_TIMES_MAX: usize = 16;
/// A buffer that grew beyond this for one long line is given back.
const KEPT_BYTES: usize = 256 * 1024;

/// What a connection and whoever made it share.
pub(super) struct Wire {
    pub(super) ledger: Arc<Ledger>,
    /// Cancelled when nothing more can come.
    pub(super) closed: CancellationToken,
    log: Arc<Log>,
    why: Mutex<Option<String>>,
    unread: AtomicUsize,
}

impl Wire {
    pub(super) fn new(log: Arc<Log>) -> Arc<Self> {
        Arc::new(Self { ledger: Arc::default(), closed: CancellationToken::new(), log, why: Mutex::default(), unread: AtomicUsize::new(0) })
    }

    /// Why the connection was ended from this side, if it was.
    pub(super) fn why(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn end(&self, why: String) {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }
}

/// One message on its way out.
struct Out {
    bytes: Vec<u8>,
    call: Option<Arc<Call>>,
    done: oneshot::Sender<io::Result<()>>,
}

/// Slows down what comes too fast.
pub(super) struct Pace {
    per_second: f64,
    left: f64,
    seen: Instant,
}

impl Pace {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let per_second = f64::from(bounds.unasked_per_second.max(1));
        Self { per_second, left: per_second, seen: Instant::now() }
    }

    /// Takes note of a message, and says until when to wait before the next one is read.
    pub(super) fn took(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let refill = now.duration_since(self.seen).as_secs_f64() * self.per_second;
        (self.left, self.seen) = ((self.left + refill).min(self.per_second) - 1.0, now);
        (self.left < 0.0).then(|| now + Duration::from_secs_f64(-self.left / self.per_second))
    }
}

/// The client's side of a pair of streams.
pub(super) struct Lines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// The end of a line that is too long, while it is dropped.
    tail: Option<Vec<u8>>,
    /// How much of it was dropped.
    dropped: usize,
    stray: u32,
    pace: Pace,
    wait: Option<Instant>,
    most: usize,
    spec: Arc<Spec>,
    wire: Arc<Wire>,
    out: Option<mpsc::UnboundedSender<Out>>,
}

impl<R: AsyncRead + Send + Unpin> Lines<R> {
    pub(super) fn new(read: R, write: impl AsyncWrite + Send + Unpin + 'static, spec: Arc<Spec>, wire: Arc<Wire>) -> Self {
        let (out, queue) = mpsc::unbounded_channel();
        tokio::spawn(write_on(write, queue, Arc::clone(&wire)));
        Self {
            read: BufReader::with_capacity(32 * 1024, read),
            line: Vec::new(),
            tail: None,
            dropped: 0,
            stray: 0,
            pace: Pace::new(&spec.bounds),
            wait: None,
            most: spec.bounds.answer_bytes,
            spec,
            wire,
            out: Some(out),
        }
    }

    /// Reads on until a line is whole. May be dropped at any await and called again.
    async fn read_line(&mut self) -> Option<Read> {
        loop {
            let bytes = self.read.fill_buf().await.ok().filter(|bytes| !bytes.is_empty())?;
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(bytes.len(), |end| end + 1);
            let piece = bytes.get(..used).unwrap_or_default();
            if let Some(tail) = &mut self.tail {
                tail.extend_from_slice(piece);
                let surplus = tail.len().saturating_sub(TAIL_BYTES);
                tail.drain(..surplus);
                self.dropped += surplus;
                if self.dropped > self.most.saturating_mul(LINE_TIMES_MAX) {
                    self.wire.end(format!("it wrote {} bytes to its standard output without the end of a line", self.dropped));
                    return None;
                }
            } else if self.line.len() + used > self.most {
                let all: Vec<u8> = self.line.iter().chain(piece).copied().collect();
                self.tail = Some(all.get(all.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default().to_vec());
                self.line = all.into_iter().take(HEAD_BYTES).collect();
            } else {
                self.line.extend_from_slice(piece);
            }
            self.read.consume(used);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                self.dropped = 0;
                return Some(match self.tail.take() {
                    Some(tail) => Read::TooLong { head: line, tail },
                    None => Read::Line(line),
                });
            }
        }
    }

    /// The message of a line; `None` where it holds none.
    fn message(&mut self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let text = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
        if text.is_empty() {
            return None;
        }
        let error = match serde_json::from_slice::<ServerJsonRpcMessage>(text) {
            Ok(message) => {
                self.stray = 0;
                if matches!(message, ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_)) {
                    self.wait = self.pace.took();
                }
                return self.wire.ledger.aside(message);
            }
            Err(error) => error,
        };
        if let Some(id) = serde_json::from_slice::<Answer>(text).ok().and_then(|answer| answer.method.is_none().then_some(answer.id)?) {
            return Some(ServerJsonRpcMessage::error(ErrorData::new(UNREADABLE, error.to_string(), None), Some(id)));
        }
        let shown: String = self.spec.hide(&String::from_utf8_lossy(text)).chars().filter(|c| !c.is_control()).take(200).collect();
        self.wire.log.add(&format!("(on standard output) {shown}"));
        self.stray += 1;
        self.wait = self.pace.took();
        if self.stray > STRAY_LINES_MAX {
            self.wire.end(format!("it writes something else than JSON-RPC on its standard output, such as: {shown}"));
        }
        None
    }

    async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(wait) = self.wait {
                tokio::time::sleep_until(wait).await;
                self.wait = None;
            }
            let message = match self.read_line().await? {
                Read::Line(mut line) => {
                    let message = self.message(&line);
                    line.clear();
                    line.shrink_to(KEPT_BYTES);
                    self.line = line;
                    message
                }
                Read::TooLong { head, tail } => {
                    let Some(id) = whose(&head, &tail) else {
                        self.wire.end(format!("it sent a message of more than {} bytes that is no answer to a call", self.most));
                        return None;
                    };
                    Some(ServerJsonRpcMessage::error(ErrorData::new(TOO_LARGE, "too large", None), Some(id)))
                }
            };
            if self.wire.why().is_some() {
                return None;
            }
            if message.is_some() {
                return message;
            }
        }
    }
}

enum Read {
    Line(Vec<u8>),
    TooLong { head: Vec<u8>, tail: Vec<u8> },
}

#[derive(Deserialize)]
struct Answer {
    id: Option<RequestId>,
    method: Option<serde::de::IgnoredAny>,
}

/// Whose answer a line is of which only the beginning and the end are known. Servers write the id before the result or
/// after it.
fn whose(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let id = |text: String| serde_json::from_str::<Answer>(&text).ok().filter(|answer| answer.method.is_none())?.id;
    let head = String::from_utf8_lossy(head);
    let before = ["\"result\"", "\"error\""].iter().filter_map(|key| head.split_once(key)).map(|(before, _)| before).min_by_key(|before| before.len())?;
    if let Some(id) = id(format!("{before}\"result\":0}}")) {
        return Some(id);
    }
    let tail = String::from_utf8_lossy(tail);
    let tail = tail.trim_end().strip_suffix('}')?;
    let (_, after) = tail.rsplit_once(['}', ']'])?;
    id(format!("{{{}}}", after.trim_start().strip_prefix(',')?))
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleClient> for Lines<R> {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let sent = self.queue(&message);
        async move { sent?.await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())) }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let message = self.next().await;
        if message.is_none() {
            self.wire.closed.cancel();
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        self.out = None;
        Ok(())
    }
}

impl<R> Lines<R> {
    /// Puts a message into the queue, in the order in which messages are sent.
    fn queue(&self, message: &ClientJsonRpcMessage) -> io::Result<oneshot::Receiver<io::Result<()>>> {
        let out = self.out.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut bytes = serde_json::to_vec(message)?;
        bytes.push(b'\n');
        if self.wire.unread.load(Ordering::Relaxed) + bytes.len() > UNREAD_BYTES_MAX {
            return Err(io::Error::other("it does not read what is sent to it"));
        }
        let call = self.wire.ledger.enter(message);
        self.wire.unread.fetch_add(bytes.len(), Ordering::Relaxed);
        let (done, sent) = oneshot::channel();
        out.send(Out { bytes, call, done }).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(sent)
    }
}

impl<R> Drop for Lines<R> {
    fn drop(&mut self) {
        self.wire.closed.cancel();
    }
}

/// Writes what is queued until the queue or the other side ends.
async fn write_on(mut write: impl AsyncWrite + Unpin, mut queue: mpsc::UnboundedReceiver<Out>, wire: Arc<Wire>) {
    while let Some(out) = queue.recv().await {
        let done = write_whole(&mut write, &out).await;
        wire.unread.fetch_sub(out.bytes.len(), Ordering::Relaxed);
        let failed = done.is_err();
        let _ = out.done.send(done);
        if failed {
            return;
        }
    }
}

async fn write_whole(write: &mut (impl AsyncWrite + Unpin), out: &Out) -> io::Result<()> {
    let mut rest = out.bytes.as_slice();
    while !rest.is_empty() {
        let is_whole = rest.len() == out.bytes.len();
        let count = poll_fn(|cx| {
            // Marked before it is written: the program may answer, or go, before this thread comes to anything else.
            if !out.call.as_deref().is_none_or(Call::leave) {
                return Poll::Ready(Ok(None));
            }
            let written = Pin::new(&mut *write).poll_write(cx, rest);
            if is_whole && !matches!(written, Poll::Ready(Ok(1..))) {
                out.call.iter().for_each(|call| call.is_back());
            }
            written.map_ok(Some)
        });
        match count.await? {
            // Nobody waits for it any more.
            None => return Ok(()),
            Some(0) => return Err(io::ErrorKind::WriteZero.into()),
            Some(count) => rest = rest.get(count..).unwrap_or_default(),
        }
    }
    write.flush().await
}

#[cfg(test)]
mod tests {
    use super::super::spec;
    use super::*;

    fn lines(text: &[u8], most: usize) -> (Lines<&[u8]>, Arc<Wire>) {
        let mut spec = Spec::new("x", spec::Transport::Http { url: String::new(), headers: [].into() });
        spec.bounds.answer_bytes = most;
        let wire = Wire::new(Arc::default());
        (Lines::new(text, tokio::io::sink(), Arc::new(spec), Arc::clone(&wire)), wire)
    }

    async fn all(text: &[u8], most: usize) -> (Vec<String>, Option<String>) {
        let (mut lines, wire) = lines(text, most);
        let mut found = Vec::new();
        while let Some(message) = lines.receive().await {
            found.push(serde_json::to_string(&message).unwrap());
        }
        assert!(wire.closed.is_cancelled());
        (found, wire.why())
    }

    #[tokio::test]
    async fn an_answer_that_is_too_large_fails_its_own_call_only() {
        let big = "x".repeat(5_000);
        let text = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{big}\"}}]}}}}\n\
             {{\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{big}\",\"id\":9}}]}},\"jsonrpc\":\"2.0\",\"id\":\"8\"}}\n\
             {{\"jsonrpc\":\"2.0\",\"id\":10,\"result\":{{}}}}\n"
        );
        let (found, why) = all(text.as_bytes(), 2_000).await;
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("-32801") && found[0].contains("\"id\":7"), "{}", found[0]);
        assert!(found[1].contains("-32801") && found[1].contains("\"id\":\"8\""), "{}", found[1]);
        assert!(found[2].contains("\"id\":10") && !found[2].contains("error"));
        assert_eq!(why, None);
        let (found, why) = all(format!("{{\"method\":\"notifications/message\",\"params\":\"{big}\"}}\n").as_bytes(), 2_000).await;
        assert!(found.is_empty() && why.is_some_and(|why| why.contains("2000 bytes")));
    }

    #[tokio::test]
    async fn garbage_ends_the_connection_and_a_few_stray_lines_do_not() {
        let answer = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
        let (found, why) = all(format!("\n \r\nServer started!\n\u{feff}{answer}[1,2]\n{answer}").as_bytes(), 1_000).await;
        assert_eq!((found.len(), why), (2, None));
        let (found, why) = all(format!("{}{answer}", "Hello!\n".repeat(60)).as_bytes(), 1_000).await;
        assert!(found.is_empty() && why.is_some_and(|why| why.contains("Hello!")));
        let (found, why) = all(&[0xFF; 900], 1_000).await;
        assert!(found.is_empty() && why.is_none(), "a line that never ends is none");
        let (found, why) = all(format!("{}\n{answer}", "x".repeat(200_000)).as_bytes(), 1_000).await;
        assert!(found.is_empty() && why.is_some_and(|why| why.contains("without the end of a line")), "nobody waits for it for ever");
    }

    #[tokio::test]
    async fn an_answer_that_cannot_be_read_fails_its_own_call() {
        let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
        let (found, why) = all(format!("{{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{{\"structuredContent\":{deep}}}}}\n").as_bytes(), 10_000).await;
        assert_eq!(why, None);
        assert!(found.len() == 1 && found[0].contains("-32802") && found[0].contains("\"id\":3"), "{found:?}");
    }

    #[tokio::test]
    async fn what_is_said_to_be_unsent_is_never_sent() {
        let (near, mut far) = tokio::io::duplex(4);
        let out = |call: &Arc<Call>| Out { bytes: b"0123456789".to_vec(), call: Some(Arc::clone(call)), done: oneshot::channel().0 };
        let mut near = near;
        let given_up = Call::new(None);
        assert!(!given_up.give_up(), "it was not sent");
        write_whole(&mut near, &out(&given_up)).await.unwrap();
        // It stands before a program that reads four bytes and no more: some of it has left.
        let begun = Call::new(None);
        let stuck = tokio::time::timeout(Duration::from_millis(50), write_whole(&mut near, &out(&begun))).await;
        assert!(stuck.is_err() && begun.give_up(), "nobody knows what four bytes do");
        // And this one has not: the program reads nothing.
        let waits = Call::new(None);
        let stuck = tokio::time::timeout(Duration::from_millis(50), write_whole(&mut near, &out(&waits))).await;
        assert!(stuck.is_err() && !waits.give_up());
        drop(near);
        let mut read = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut far, &mut read).await.unwrap();
        assert_eq!(read, b"0123", "nothing of what was given up");
    }

    #[tokio::test]
    async fn a_flood_is_read_at_a_bounded_pace() {
        let note = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n";
        let begun = Instant::now();
        let (found, _) = all(note.repeat(3_000).as_bytes(), 1_000).await;
        assert_eq!(found.len(), 3_000, "nothing is lost");
        assert!(begun.elapsed() > Duration::from_millis(450), "2,000 at once, then 2,000 a second: {:?}", begun.elapsed());
        let answers = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n".repeat(3_000);
        let (mut lines, _) = lines(answers.as_bytes(), 1_000);
        while lines.receive().await.is_some() {
            assert!(lines.wait.is_none(), "answers are what was asked for");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Whatever a program writes, in whatever pieces: a line that is too long is nobody's answer, or that of its own id.
        #[test]
        fn any_line_is_somebodys_answer_or_nobodys(
            head in proptest::collection::vec(proptest::num::u8::ANY, 0..200), tail in "[\\]}, \"a-z0-9:]{0,60}", id in 0_i64..1_000,
            text in "[a-z \\\\\"{}\\[\\],:]{0,40}", after in proptest::bool::ANY,
        ) {
            drop((whose(&head, tail.as_bytes()), whose(tail.as_bytes(), &head)));
            let result = serde_json::json!({ "text": text }).to_string();
            let (head, tail) = if after {
                ("{\"jsonrpc\":\"2.0\",\"result\":{".to_owned(), format!("{result},\"id\":{id}}}"))
            } else {
                (format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{"), format!("{result}}}"))
            };
            proptest::prop_assert_eq!(whose(head.as_bytes(), tail.as_bytes()), Some(RequestId::Number(id)));
        }

        #[test]
        fn any_bytes_are_read_to_their_end(bytes in proptest::collection::vec(proptest::prop_oneof![proptest::num::u8::ANY, proptest::strategy::Just(b'\n')], 0..300), most in 1_usize..60) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let found = runtime.block_on(async {
                let (mut lines, _wire) = lines(&bytes, most);
                let mut found = Vec::new();
                while let Some(line) = lines.read_line().await {
                    found.extend(if let Read::Line(line) = line { Some(line.len()) } else { None });
                }
                found
            });
            proptest::prop_assert!(found.iter().all(|length| *length <= most));
            proptest::prop_assert!(found.len() < bytes.split(|byte| *byte == b'\n').count());
        }
    }
}
