//! The log without what is secret or personal: every line is looked through before it is written. What the desk writes there
//! itself has no such thing; what others said stands in its errors.

use std::io::{self, Write};

use deskmate_core::redact::Redactor;
use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

/// Where lines go, looked through.
pub(crate) struct Clean<M> {
    to: M,
    redactor: Redactor,
}

impl<M> Clean<M> {
    pub(crate) fn new(to: M) -> Self {
        Self { to, redactor: Redactor::all() }
    }
}

impl<'w, M: MakeWriter<'w>> MakeWriter<'w> for Clean<M> {
    type Writer = Line<'w, M::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        Line { to: self.to.make_writer(), redactor: &self.redactor }
    }
}

/// One line on its way: the logger writes each in one piece.
pub(crate) struct Line<'w, W> {
    to: W,
    redactor: &'w Redactor,
}

impl<W: Write> Write for Line<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.to.write_all(cleaned(self.redactor, &text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A line of JSON stays one: a number that is taken out becomes a text.
fn cleaned(redactor: &Redactor, line: &str) -> String {
    match serde_json::from_str::<Value>(line) {
        Ok(value @ Value::Object(_)) => {
            let clean = redactor.value(&value);
            if clean.found.is_empty() { line.to_owned() } else { format!("{}\n", clean.value) }
        }
        _ => redactor.text(line).text,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_line_has_what_is_secret_or_personal() {
        let (text, json) = (Kept::default(), Kept::default());
        for (kept, is_json) in [(&text, false), (&json, true)] {
            let own = kept.clone();
            let builder = tracing_subscriber::fmt().with_ansi(false).with_writer(Clean::new(move || own.clone()));
            let say = || {
                tracing::warn!(call = "gateway_call", code = 4_111_111_111_111_111_u64, "upstream said: jane@example.org has password=hunter2-and-more");
                tracing::info!(operation = "desk_status", took = 12, "called");
            };
            if is_json { tracing::subscriber::with_default(builder.json().finish(), say) } else { tracing::subscriber::with_default(builder.finish(), say) }
        }
        for kept in [&text, &json] {
            let said = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
            assert!(!said.contains("jane@") && !said.contains("hunter2") && !said.contains("4111111111111111"), "{said}");
            assert!(said.contains("gateway_call") && said.contains("[redacted:email]") && said.contains("desk_status"), "{said}");
            assert_eq!(said.lines().count(), 2, "{said}");
        }
        let lines = String::from_utf8(json.0.lock().unwrap().clone()).unwrap();
        assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
    }
}
