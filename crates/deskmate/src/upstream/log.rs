//! What an upstream writes on its standard error: the last lines of it, within bounds.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::time::Instant;

use super::spec::Spec;

/// How much is kept.
const LINES_MAX: usize = 200;
const BYTES_MAX: usize = 64 * 1024;
/// How much of one line is kept.
const LINE_BYTES_MAX: usize = 2 * 1024;
/// How much is read within a time; who writes faster waits.
const READ_BYTES: usize = 1024 * 1024;
const READ_TIME: Duration = Duration::from_millis(250);

/// The last lines.
#[derive(Default)]
pub(crate) struct Log {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<String>,
    bytes: usize,
    /// How many lines there were in all.
    total: u64,
}

impl Log {
    /// Adds a line, and lets go of the oldest ones.
    pub(super) fn add(&self, line: &str) {
        let mut line = line.to_owned();
        if line.len() > LINE_BYTES_MAX {
            line.truncate(line.floor_char_boundary(LINE_BYTES_MAX));
            line.push('…');
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes += line.len();
        kept.total += 1;
        kept.lines.push_back(line);
        while kept.lines.len() > LINES_MAX || kept.bytes > BYTES_MAX {
            let Some(oldest) = kept.lines.pop_front() else { break };
            kept.bytes -= oldest.len();
        }
    }

    /// All lines that are kept, the oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).lines.iter().cloned().collect()
    }

    /// The last few lines after a mark, for an error.
    pub(super) fn tail(&self, since: u64, most: usize) -> Option<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let new = usize::try_from(kept.total.saturating_sub(since)).unwrap_or(usize::MAX).min(most);
        let lines: Vec<&str> = kept.lines.iter().rev().take(new).map(String::as_str).filter(|line| !line.is_empty()).collect();
        (!lines.is_empty()).then(|| lines.into_iter().rev().collect::<Vec<_>>().join(" | "))
    }

    /// Where the log is now.
    pub(super) fn mark(&self) -> u64 {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).total
    }

    /// Adds what comes, line by line, until it ends.
    pub(super) async fn follow(&self, stream: impl AsyncRead + Unpin, spec: &Spec) {
        let mut stream = BufReader::new(stream);
        let (mut line, mut cut) = (Vec::new(), false);
        let (mut read, mut since) = (0, Instant::now());
        loop {
            if read >= READ_BYTES {
                tokio::time::sleep_until(since + READ_TIME).await;
                (read, since) = (0, Instant::now());
            }
            let (used, ended) = match stream.fill_buf().await {
                Ok([]) | Err(_) => break,
                Ok(bytes) => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    let used = end.map_or(bytes.len(), |end| end + 1);
                    let room = (2 * LINE_BYTES_MAX).saturating_sub(line.len());
                    line.extend(bytes.iter().take(used.min(room)));
                    cut |= used > room;
                    (used, end.is_some())
                }
            };
            stream.consume(used);
            read += used;
            if ended {
                self.add_bytes(&line, spec);
                line.clear();
                cut = false;
            }
        }
        if !line.is_empty() || cut {
            self.add_bytes(&line, spec);
        }
    }

    fn add_bytes(&self, line: &[u8], spec: &Spec) {
        let text = String::from_utf8_lossy(line);
        // Whoever reads this has a terminal or a page that must not be written to by a stranger.
        let plain: String = text.trim_end().chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect();
        self.add(&spec.hide(&plain));
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::Transport;
    use super::*;

    #[tokio::test]
    async fn a_flood_leaves_its_last_lines_without_secrets() {
        let mut spec = Spec::new("x", Transport::Http { url: "http://127.0.0.1".into(), headers: [].into() });
        spec.hidden = vec!["hunter22".into()];
        let log = Log::default();
        let huge = "y".repeat(1 << 20);
        let flood: String = (0..5_000).map(|n| format!("line {n}\n")).chain([huge, "\nkey=hunter22 \u{1b}[31m\nlast".into()]).collect();
        log.follow(flood.as_bytes(), &spec).await;
        let lines = log.lines();
        assert!(lines.len() <= LINES_MAX && lines.iter().map(String::len).sum::<usize>() <= BYTES_MAX + 8);
        assert_eq!(lines.last().map(String::as_str), Some("last"));
        assert_eq!(lines[lines.len() - 2], "key=*** \u{fffd}[31m");
        assert!(lines[lines.len() - 3].len() < 2 * LINE_BYTES_MAX && lines[lines.len() - 4] == "line 4999");
        assert_eq!(log.tail(0, 2).as_deref(), Some("key=*** \u{fffd}[31m | last"));
        assert_eq!(log.tail(log.mark(), 5), None, "nothing since the mark");
        let begun = Instant::now();
        log.follow(vec![b'y'; 3 * READ_BYTES + 1].as_slice(), &spec).await;
        assert!(begun.elapsed() >= 2 * READ_TIME, "it is read at a bounded pace: {:?}", begun.elapsed());
    }
}
