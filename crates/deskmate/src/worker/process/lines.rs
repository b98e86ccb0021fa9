//! From what a program writes to lines of a log: whole lines, without secrets, within the run's budget.

use deskmate_core::redact::{self, Redactor};
use deskmate_hands::sandbox::Stream;

/// A line is cut here; nobody reads longer ones, and a program may write without ever ending one.
const LINE_BYTES_MAX: usize = 8 * 1024;
/// Lines that wait to be written down; whoever writes faster loses some, and that is said.
const WAITING_MAX: usize = 2_000;

/// What one stream has written of a line.
#[derive(Default)]
struct Open {
    bytes: Vec<u8>,
    /// Whether the rest of the line is left out.
    cut: bool,
}

/// Lines that wait to be written down.
pub(super) struct Lines {
    open: [Open; 2],
    /// Whether a stream is within a private key: each line is looked through alone, and only the first of a key says what it is.
    in_key: [bool; 2],
    waiting: Vec<(String, String)>,
    room: u64,
    /// Lines that were left out since it was said last.
    dropped: u64,
    is_full: bool,
    redactor: Redactor,
}

impl Lines {
    pub(super) fn new(bytes: u32, redactor: Redactor) -> Self {
        Self { open: Default::default(), in_key: [false; 2], waiting: Vec::new(), room: u64::from(bytes), dropped: 0, is_full: false, redactor }
    }

    /// Adds what a stream has written.
    pub(super) fn add(&mut self, stream: Stream, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.is_full {
                return;
            }
            let [output, errors] = &mut self.open;
            let open = if stream == Stream::Output { output } else { errors };
            let (text, ends) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let room = LINE_BYTES_MAX.saturating_sub(open.bytes.len());
            open.bytes.extend(text.iter().take(room));
            open.cut |= text.len() > room;
            if ends {
                let open = std::mem::take(open);
                self.line(stream, &open);
            }
        }
    }

    fn line(&mut self, stream: Stream, open: &Open) {
        let text = String::from_utf8_lossy(&open.bytes);
        let text = text.trim_end();
        if text.is_empty() || self.is_of_key(stream, text) {
            return;
        }
        if self.waiting.len() >= WAITING_MAX {
            self.dropped += 1;
            return;
        }
        let Some(room) = self.room.checked_sub(text.len() as u64) else {
            self.is_full = true;
            self.waiting.push(("desk".to_owned(), "what it says from here on is left out: its budget for logs is used up".to_owned()));
            return;
        };
        self.room = room;
        let mut clean = self.redactor.text(text).text;
        if open.cut {
            clean.push_str(" […]");
        }
        let source = if stream == Stream::Output { "stdout" } else { "stderr" };
        self.waiting.push((source.to_owned(), clean));
    }

    /// Whether a line is of a private key that began on one before it. That one stands for all of them.
    fn is_of_key(&mut self, stream: Stream, text: &str) -> bool {
        let [output, errors] = &mut self.in_key;
        let in_key = if stream == Stream::Output { output } else { errors };
        let is_of_key = *in_key && redact::is_of_key(text);
        *in_key = redact::opens_key(text) || (is_of_key && !redact::ends_key(text));
        is_of_key
    }

    /// The lines since the last time; at the end also those that were never ended.
    pub(super) fn take(&mut self, all: bool) -> Vec<(String, String)> {
        if all && !self.is_full {
            let open = std::mem::take(&mut self.open);
            for (stream, open) in [Stream::Output, Stream::Errors].into_iter().zip(&open) {
                self.line(stream, open);
            }
        }
        let mut lines = std::mem::take(&mut self.waiting);
        if std::mem::take(&mut self.dropped) > 0 {
            lines.push(("desk".to_owned(), "some lines are left out: it writes faster than anybody reads".to_owned()));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use deskmate_core::redact::Known;

    use super::*;

    fn texts(lines: Vec<(String, String)>) -> Vec<String> {
        lines.into_iter().map(|(source, text)| format!("{source}: {text}")).collect()
    }

    #[test]
    fn lines_come_whole_from_both_streams_and_without_secrets() {
        let known = Arc::new(Known::new(["hunter2hunter2"]).unwrap());
        let mut lines = Lines::new(1_000, Redactor::all().knowing(known));
        lines.add(Stream::Output, b"one\ntw");
        lines.add(Stream::Errors, b"oh\n");
        assert_eq!(texts(lines.take(false)), ["stdout: one", "stderr: oh"]);
        lines.add(Stream::Output, b"o hunter2");
        lines.add(Stream::Output, b"hunter2\nlast");
        let said = texts(lines.take(true));
        assert!(said[0].starts_with("stdout: two ") && !said[0].contains("hunter2"), "{said:?}");
        assert_eq!(said[1], "stdout: last");
    }

    #[test]
    fn a_private_key_is_left_out_from_its_first_line_to_its_last() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIBAAKCAQEA7bq\nyQ==\n";
        let mut lines = Lines::new(10_000, Redactor::all());
        lines.add(Stream::Output, format!("it is {key}").as_bytes());
        lines.add(Stream::Errors, b"one\n");
        lines.add(Stream::Output, b"bDcKd0c\n-----END RSA PRIVATE KEY-----\ntwo\n");
        lines.add(Stream::Output, format!("{key}it went on, and has no end.\nthree\n").as_bytes());
        let mark = "[redacted:private_key]";
        let first = format!("stdout: it is {mark}");
        let said = texts(lines.take(true));
        assert_eq!(said, [&first, "stderr: one", "stdout: two", &format!("stdout: {mark}"), "stdout: it went on, and has no end.", "stdout: three"]);
        // What is not written down because too much waits is of the key all the same.
        lines.add(Stream::Output, "x\n".repeat(WAITING_MAX).as_bytes());
        lines.add(Stream::Output, key.as_bytes());
        assert_eq!(lines.take(false).len(), WAITING_MAX + 1);
        lines.add(Stream::Output, b"bDcKd0c\n-----END RSA PRIVATE KEY-----\nfour\n");
        assert_eq!(texts(lines.take(true)), ["stdout: four"]);
    }

    #[test]
    fn more_than_the_budget_is_left_out_and_that_is_said_once() {
        let mut lines = Lines::new(10, Redactor::all());
        lines.add(Stream::Output, b"12345\n67890\nmore\nand more\n");
        assert_eq!(texts(lines.take(true)), ["stdout: 12345", "stdout: 67890", "desk: what it says from here on is left out: its budget for logs is used up"]);
        lines.add(Stream::Output, b"again\n");
        assert!(lines.take(true).is_empty());
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let mut lines = Lines::new(1_000_000, Redactor::all());
        for _ in 0..100 {
            lines.add(Stream::Output, &[b'x'; 1_000]);
        }
        let said = texts(lines.take(true));
        assert!(said.len() == 1 && said[0].ends_with("[…]") && said[0].len() < LINE_BYTES_MAX + 100, "{}", said[0].len());
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Whatever a program writes, in whatever pieces: the same lines come of it, and no more than its budget.
        #[test]
        fn any_output_is_the_same_lines_however_it_is_cut(
            bytes in proptest::collection::vec(proptest::prop_oneof![proptest::num::u8::ANY, proptest::strategy::Just(b'\n')], 0..300), at in proptest::prelude::any::<proptest::sample::Index>(),
            room in 0_u32..400,
        ) {
            let said = |pieces: [&[u8]; 2]| {
                let mut lines = Lines::new(room, Redactor::secrets());
                for piece in pieces {
                    lines.add(Stream::Output, piece);
                }
                texts(lines.take(true))
            };
            let (one, other) = bytes.split_at(at.index(bytes.len() + 1));
            let whole = said([&bytes, &[]]);
            proptest::prop_assert_eq!(&whole, &said([one, other]));
            proptest::prop_assert!(whole.iter().filter(|line| line.starts_with("desk: ")).count() <= 1);
        }
    }
}
