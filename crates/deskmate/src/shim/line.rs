//! Lines of JSON-RPC, read no further than needed: whose turn it is, and which request it belongs to.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read as _};

use serde::Deserialize;
use serde_json::{Value, json};

/// The longest line that is taken, here as on the other side of the socket.
pub(super) use deskmate_core::limits::MCP_LINE_BYTES_MAX as LINE_BYTES_MAX;

/// How deep a line may nest.
pub(super) const DEPTH_MAX: usize = 100;
/// How much of a longer one is kept to find its id.
const PREFIX_BYTES: usize = 4 * 1024;
/// A buffer that grew beyond this for one long line is given back.
const KEPT_BYTES: usize = 256 * 1024;

/// What a read found.
pub(super) enum Read<'l> {
    /// A line with its newline.
    Line(&'l [u8]),
    /// The beginning of a line that is too long; the rest was dropped.
    TooLong(&'l [u8]),
    /// The stream ended.
    End,
}

/// A stream cut into lines of bounded length.
pub(super) struct Lines<R> {
    stream: BufReader<R>,
    line: Vec<u8>,
}

impl<R: std::io::Read> Lines<R> {
    pub(super) fn new(stream: R) -> Self {
        Self { stream: BufReader::with_capacity(16 * 1024, stream), line: Vec::new() }
    }

    /// The next line that is not empty. Bytes after the last newline are no line.
    pub(super) fn next(&mut self) -> Read<'_> {
        loop {
            self.line.clear();
            self.line.shrink_to(KEPT_BYTES);
            let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
            let read = (&mut self.stream).take(limit).read_until(b'\n', &mut self.line);
            match read {
                Ok(0) | Err(_) => return Read::End,
                Ok(_) if self.line.ends_with(b"\n") => {
                    if self.line.trim_ascii().is_empty() {
                        continue;
                    }
                    return Read::Line(&self.line);
                }
                Ok(_) if self.line.len() < LINE_BYTES_MAX => return Read::End,
                Ok(_) => {
                    self.line.truncate(PREFIX_BYTES);
                    if self.stream.skip_until(b'\n').is_err() {
                        return Read::End;
                    }
                    return Read::TooLong(&self.line);
                }
            }
        }
    }
}

#[derive(Deserialize)]
struct Raw<'l> {
    #[serde(borrow)]
    method: Option<Cow<'l, str>>,
    id: Option<Value>,
    error: Option<serde::de::IgnoredAny>,
}

/// What a line is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// A request with its id, written as JSON.
    Request { id: String, method: String },
    /// A notification.
    Notification { method: String },
    /// An answer to the request with this id.
    Answer { id: String, failed: bool },
    /// Something else, which the other side may complain about.
    Other,
    /// No JSON at all, which the other side would pass over in silence.
    Unreadable,
}

impl Head {
    pub(super) fn of(line: &[u8]) -> Self {
        let Ok(raw) = serde_json::from_slice::<Raw<'_>>(line) else {
            let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
            return if is_json { Self::Other } else { Self::Unreadable };
        };
        match (raw.method, raw.id) {
            (Some(method), Some(id)) => Self::Request { id: id.to_string(), method: method.into_owned() },
            (Some(method), None) => Self::Notification { method: method.into_owned() },
            (None, Some(id)) => Self::Answer { id: id.to_string(), failed: raw.error.is_some() },
            (None, None) => Self::Other,
        }
    }

    pub(super) fn request_id(&self) -> Option<&str> {
        match self {
            Self::Request { id, .. } => Some(id),
            _ => None,
        }
    }
}

/// Whether a line nests deeper than the server's reader goes. It would drop such a line, and the caller would wait for ever.
pub(super) fn too_deep(line: &[u8]) -> bool {
    let (mut depth, mut text, mut escaped) = (0_usize, false, false);
    line.iter().any(|byte| {
        match (text, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => text = !text,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEPTH_MAX
    })
}

/// A member of a line's `params`.
pub(super) fn param(line: &[u8], name: &str) -> Option<Value> {
    let mut line: Value = serde_json::from_slice(line).ok()?;
    line.get_mut("params")?.get_mut(name).map(Value::take)
}

/// The same line under another id.
pub(super) fn with_id(line: &[u8], id: &str) -> Option<Vec<u8>> {
    let mut line: Value = serde_json::from_slice(line).ok()?;
    line.as_object_mut()?.insert("id".to_owned(), Value::from(id));
    Some(text_line(&line))
}

/// A JSON-RPC error for the request with this id; `null` where it is not known.
pub(super) fn error(id: Option<&str>, code: i32, message: &str, data: &Value) -> Vec<u8> {
    let id: Value = id.and_then(|id| serde_json::from_str(id).ok()).unwrap_or(Value::Null);
    let mut error = json!({ "code": code, "message": message });
    if let (Some(error), false) = (error.as_object_mut(), data.is_null()) {
        error.insert("data".to_owned(), data.clone());
    }
    text_line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

fn text_line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// The id in the beginning of a line that was too long to be read: clients write it before the parameters.
pub(super) fn id_in_prefix(start: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(start);
    let head = text.split("\"params\"").next()?;
    let (_, after) = head.split_once("\"id\"")?;
    let value = after.trim_start().strip_prefix(':')?;
    let id: Value = serde_json::Deserializer::from_str(value).into_iter().next()?.ok()?;
    (id.is_string() || id.is_number()).then(|| id.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn heads_are_read_without_the_rest() {
        assert_eq!(Head::of(b"{\"id\":1,\"method\":\"ping\",\"params\":{\"id\":9}}\n"), Head::Request { id: "1".into(), method: "ping".into() });
        assert_eq!(Head::of(b"{\"method\":\"a\\u0062\"}\n"), Head::Notification { method: "ab".into() });
        assert_eq!(Head::of(b"{\"id\":\"x\",\"result\":{}}\n"), Head::Answer { id: "\"x\"".into(), failed: false });
        assert_eq!(Head::of(b"{\"id\":1,\"error\":{}}\n"), Head::Answer { id: "1".into(), failed: true });
        assert_eq!(Head::of(b"[1]\n"), Head::Other);
        assert_eq!(Head::of(b"nonsense\n"), Head::Unreadable);
    }

    #[test]
    fn depth_counts_brackets_outside_texts() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth)).into_bytes();
        assert!(!too_deep(&nested(DEPTH_MAX)));
        assert!(too_deep(&nested(DEPTH_MAX + 1)));
        assert!(!too_deep(format!("{{\"a\":\"\\\"{}\"}}", "[".repeat(500)).as_bytes()));
    }

    #[test]
    fn lines_are_bounded_and_the_next_one_is_whole() {
        let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"params\":\"{}\"}}\n", "x".repeat(LINE_BYTES_MAX));
        let stream = [b"\n \n{}\n", long.as_bytes(), b"{\"id\":8}\nrest"].concat();
        let mut lines = Lines::new(stream.as_slice());
        assert!(matches!(lines.next(), Read::Line(b"{}\n")));
        let Read::TooLong(start) = lines.next() else { panic!("the long line was taken") };
        assert_eq!(id_in_prefix(start).as_deref(), Some("7"));
        assert!(matches!(lines.next(), Read::Line(b"{\"id\":8}\n")));
        assert!(matches!(lines.next(), Read::End));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_have_a_head_and_nothing_else_happens(bytes in prop::collection::vec(any::<u8>(), 0..300), json in "[\\[\\]{}\",:a-z0-9\\\\ ]{0,80}") {
            for line in [bytes.as_slice(), json.as_bytes()] {
                let head = Head::of(line);
                let is_json = serde_json::from_slice::<Value>(line).is_ok();
                prop_assert_eq!(head == Head::Unreadable, !is_json, "what is JSON is never passed over in silence");
                prop_assert!(error(head.request_id(), -1, "m", &Value::Null).ends_with(b"\n"));
                drop((too_deep(line), param(line, "name"), with_id(line, "x"), id_in_prefix(line)));
            }
        }

        #[test]
        fn a_request_keeps_its_id_and_method(
            id in prop_oneof![any::<i64>().prop_map(Value::from), any::<String>().prop_map(Value::from)], method in any::<String>(), content in any::<String>(),
        ) {
            let line = text_line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "content": content } }));
            prop_assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1), "a line is one line, whatever is in it");
            prop_assert_eq!(Head::of(&line), Head::Request { id: id.to_string(), method: method.clone() });
            prop_assert_eq!(param(&line, "content"), Some(Value::from(content)));
            prop_assert_eq!(Head::of(&with_id(&line, "other").unwrap()), Head::Request { id: "\"other\"".into(), method });
            prop_assert_eq!(Head::of(&error(Some(&id.to_string()), -1, "m", &Value::Null)), Head::Answer { id: id.to_string(), failed: true });
        }

        #[test]
        fn a_stream_is_cut_at_its_newlines(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..400)) {
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let expected: Vec<&[u8]> = bytes[..whole].split_inclusive(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
            let (mut lines, mut found) = (Lines::new(bytes.as_slice()), Vec::new());
            while let Read::Line(line) = lines.next() {
                found.push(line.to_vec());
            }
            prop_assert_eq!(found, expected);
        }
    }
}
