//! Calls that cannot be read as such: in a batch, without an id, with arguments that are no object. They are answered, or passed over,
//! before anybody could decide about them, and so nothing of them is done; the record tells of them all the same.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use deskmate_core::call::Credential;
use deskmate_core::limits::MCP_LINE_BYTES_MAX;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::io::{AsyncRead, ReadBuf};

use super::caller::Caller;
use super::handler::Server;
use crate::app::App;

const CALL: &str = "tools/call";
/// A buffer that grew beyond this for one long line is given back.
const KEPT_BYTES: usize = 256 * 1024;

/// An object, whatever is in it.
struct Fields;

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Fields, A::Error> {
                while all.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Fields)
            }
        }
        given.deserialize_map(Any)
    }
}

/// A message as far as it has to be well formed, if it is a call.
#[derive(Deserialize)]
struct Message<'t> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'t, str>>,
    #[serde(borrow)]
    method: Option<Cow<'t, str>>,
    id: Option<Value>,
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Params {
    name: Option<String>,
    #[serde(rename = "arguments")]
    _arguments: Option<Fields>,
    #[serde(rename = "_meta")]
    _meta: Option<Fields>,
}

/// Whether a text names a call of a tool and is none that can be read.
pub(super) fn is_malformed_call(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let Ok(message) = serde_json::from_slice::<Message<'_>>(text) else { return names_call(text) };
    let has_id = message.id.is_some_and(|id| id.is_string() || id.is_i64() || id.is_u64());
    let is_whole = has_id && message.jsonrpc.as_deref() == Some("2.0") && message.params.is_some_and(|params| params.name.is_some());
    message.method.as_deref() == Some(CALL) && !is_whole
}

/// Whether there is a call somewhere in a text, which need not be JSON.
fn names_call(text: &[u8]) -> bool {
    fn names(value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().any(names),
            value => value.get("method").and_then(Value::as_str) == Some(CALL),
        }
    }
    serde_json::from_slice::<Value>(text).map_or_else(|_| text.windows(CALL.len()).any(|part| part == CALL.as_bytes()), |value| names(&value))
}

/// A stream of lines, passed on as it is; of calls in it that cannot be read the record is told.
pub(crate) struct Watched<R> {
    stream: R,
    app: App,
    credential: Credential,
    line: Vec<u8>,
    is_too_long: bool,
}

impl Server {
    /// What a caller sends over its connection, watched.
    pub(crate) fn watched<R>(&self, stream: R) -> Watched<R> {
        let credential = match &self.caller {
            Caller::Connection(credential) => credential.clone(),
            Caller::Request => Credential::Nobody,
        };
        Watched { stream, app: self.endpoint.app.clone(), credential, line: Vec::new(), is_too_long: false }
    }
}

impl<R> Watched<R> {
    fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.is_too_long |= self.line.len() + part.len() > MCP_LINE_BYTES_MAX;
            if !self.is_too_long {
                self.line.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                // Of a line that is too long, and therefore dropped, the beginning says enough.
                let is_malformed = if self.is_too_long { names_call(&self.line) } else { is_malformed_call(&self.line) };
                if is_malformed {
                    self.app.malformed(&self.credential, &self.line, true);
                }
                self.is_too_long = false;
                self.line.clear();
                self.line.shrink_to(KEPT_BYTES);
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.take(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_a_malformed_call_only_if_they_name_one(bytes in prop::collection::vec(any::<u8>(), 0..300), text in "[\\[\\]{}\":,a-z/ 0-9]{0,80}") {
            for text in [bytes.as_slice(), text.as_bytes()] {
                let (malformed, names) = (is_malformed_call(text), names_call(text));
                prop_assert!(!malformed || names, "{}", String::from_utf8_lossy(text));
            }
        }

        #[test]
        fn a_whole_call_passes_and_no_part_of_one_does(name in "(?s).{0,40}", id in any::<i64>(), value in "(?s).{0,40}", cut in any::<prop::sample::Index>()) {
            let call = json!({ "method": CALL, "jsonrpc": "2.0", "id": id, "params": { "name": name, "arguments": { &value: [value] } } });
            let text = call.to_string();
            prop_assert!(names_call(text.as_bytes()) && !is_malformed_call(text.as_bytes()), "{text}");
            prop_assert!(is_malformed_call(json!([call]).to_string().as_bytes()), "in a batch");
            let at = text.find(CALL).map_or(0, |at| at + CALL.len());
            let cut = at + cut.index(text.len() - at);
            prop_assert!(is_malformed_call(&text.as_bytes()[..cut]), "cut at {cut}: {text}");
        }
    }

    #[test]
    fn calls_that_cannot_be_read_are_known_as_such() {
        let good = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}"#;
        for text in [
            good,
            &format!("\u{feff}{good}\n"),
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"read","arguments":{"a":[1]},"_meta":{}}}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"read","arguments":null}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":7,"arguments":"tools/call"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"method":"tools/call"}}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            "nonsense",
            "",
        ] {
            assert!(!is_malformed_call(text.as_bytes()), "{text}");
        }
        for text in [
            &format!("[{good}]"),
            &format!("[[{good}],1]"),
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"read"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"tools\/call","params":{"name":"read"}}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"read"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":"no object"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"read"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rea"#,
        ] {
            assert!(is_malformed_call(text.as_bytes()), "{text}");
        }
    }
}
