//! What an upstream is: how it is reached, and the bounds that are kept around it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use deskmate_core::limits::ANSWER_BYTES_MAX;
use deskmate_core::{Error, Result};
use hyper::Uri;

/// An upstream, with its secrets resolved. A spec that differs from the one before it makes a new connection.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Spec {
    /// The mount's name.
    pub(crate) name: String,
    /// How it is reached.
    pub(crate) transport: Transport,
    /// Whether all agents share one connection. Then what the upstream asks for is declined, because it names no caller.
    pub(crate) shared: bool,
    /// Whom its questions go to, where one connection serves one agent.
    pub(crate) questions: Questions,
    /// Values that must never be seen, wherever the upstream itself writes them.
    pub(crate) hidden: Vec<String>,
    /// The bounds.
    pub(crate) bounds: Bounds,
}

/// Whom the questions of an upstream go to. Over standard streams a question does not say which call it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Questions {
    /// To nobody.
    Declined,
    /// To whoever made the call that is under way, and to nobody when there are several: they may be of several callers.
    OfTheOnlyCall,
    /// To whoever made the newest call: all calls are of the same agent.
    OfTheNewestCall,
}

/// How an upstream is reached.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Transport {
    /// A program that speaks over its standard streams.
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, String>, cwd: Option<PathBuf> },
    /// A server that speaks Streamable HTTP. Without TLS it must be on this machine.
    Http { url: String, headers: BTreeMap<String, String> },
    /// A peer in the same process.
    #[cfg(test)]
    Within(super::tests::Within),
}

/// How much an upstream may take, send and use up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The largest message that is taken from it.
    pub(crate) answer_bytes: usize,
    /// How long it may take to start and to say what it is.
    pub(crate) start: Duration,
    /// How long a call may take. Progress begins the time anew.
    pub(crate) call: Duration,
    /// How long a call may take in all, with whatever progress.
    pub(crate) call_total: Duration,
    /// How many calls may be under way.
    pub(crate) in_flight: usize,
    /// How long a connection stays that nobody uses or follows.
    pub(crate) idle: Duration,
    /// How often a connection that is quiet is asked whether it still answers.
    pub(crate) probe: Duration,
    /// How long a program has to end once it is asked to.
    pub(crate) grace: Duration,
    /// After how many failures in a row it is given up.
    pub(crate) failures: u32,
    /// How long to wait after the first failure; twice as long after each further one, up to a minute.
    pub(crate) backoff: Duration,
    /// How many messages a second may come that nobody asked for; what comes faster waits.
    pub(crate) unasked_per_second: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            answer_bytes: ANSWER_BYTES_MAX,
            start: Duration::from_secs(30),
            call: Duration::from_mins(1),
            call_total: Duration::from_mins(10),
            in_flight: 256,
            idle: Duration::from_mins(10),
            probe: Duration::from_mins(1),
            grace: Duration::from_secs(3),
            failures: 5,
            backoff: Duration::from_millis(500),
            unasked_per_second: 2_000,
        }
    }
}

/// Headers that the protocol or HTTP itself sets.
const RESERVED: &[&str] = &["accept", "connection", "content-length", "content-type", "host", "last-event-id", "transfer-encoding"];

impl Spec {
    /// A spec with the usual bounds.
    pub(crate) fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self { name: name.into(), transport, shared: false, questions: Questions::OfTheNewestCall, hidden: Vec::new(), bounds: Bounds::default() }
    }

    /// Whom its questions go to.
    pub(super) fn questions(&self) -> Questions {
        if self.shared { Questions::Declined } else { self.questions }
    }

    /// Refuses what could never be reached.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.transport {
            Transport::Stdio { command, args, env, .. } => {
                if command.is_empty() {
                    return Err(Error::invalid("command", "must not be empty"));
                }
                if [command].into_iter().chain(args).any(|word| word.contains('\0')) {
                    return Err(Error::invalid("args", "must not hold NUL"));
                }
                if env.iter().any(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')) {
                    return Err(Error::invalid("env", "names must not be empty or hold `=`, and nothing may hold NUL"));
                }
                if let Some(name) = env.keys().find(|name| name.starts_with("DESKMATE_")) {
                    return Err(Error::invalid("env", format!("{name} is the desk's own and is never given to a mounted server")));
                }
            }
            Transport::Http { url, headers } => {
                let parsed: Uri = url.parse().map_err(|_| Error::invalid("url", "is not an address"))?;
                if !matches!(parsed.scheme_str(), Some("http" | "https")) || parsed.host().is_none_or(str::is_empty) {
                    return Err(Error::invalid("url", "must begin with https://, or with http:// for a server on this machine"));
                }
                if parsed.authority().is_some_and(|authority| authority.as_str().contains('@')) {
                    return Err(Error::invalid("url", "must not hold a password").hint("send it as a header, from the secret store"));
                }
                for (name, value) in headers {
                    if hyper::header::HeaderName::try_from(name).is_err() || hyper::header::HeaderValue::try_from(value).is_err() {
                        return Err(Error::invalid("headers", format!("{name:?} or its value cannot be sent as a header")));
                    }
                    let lower = name.to_ascii_lowercase();
                    if lower.starts_with("mcp-") || RESERVED.contains(&lower.as_str()) {
                        return Err(Error::invalid("headers", format!("{name} is set by the desk itself")));
                    }
                }
            }
            #[cfg(test)]
            Transport::Within(_) => {}
        }
        Ok(())
    }

    /// A text without the values that must not be seen.
    pub(crate) fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // Short values would blacken half of every line, and are no secrets that hold.
        for value in self.hidden.iter().filter(|value| value.len() >= 6) {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), "***");
            }
        }
        text
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec").field("name", &self.name).field("transport", &self.transport).field("shared", &self.shared).finish_non_exhaustive()
    }
}

/// Names only: values may be secrets.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &args.len())
                .field("env", &env.keys().collect::<Vec<_>>())
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers } => {
                let place = url.split(['?', '#']).next().unwrap_or_default();
                f.debug_struct("Http").field("url", &place).field("headers", &headers.keys().collect::<Vec<_>>()).finish()
            }
            #[cfg(test)]
            Self::Within(_) => f.write_str("Within"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(url: &str, header: &str) -> Spec {
        Spec::new("x", Transport::Http { url: url.to_owned(), headers: [(header.to_owned(), "secret-value".to_owned())].into() })
    }

    fn program(env: &str) -> Spec {
        let env = [(env.to_owned(), "secret-value".to_owned())].into();
        Spec::new("x", Transport::Stdio { command: "node".into(), args: vec!["--key=secret-value".into()], env, cwd: None })
    }

    #[test]
    fn nothing_secret_is_printed() {
        for spec in [http("https://example.org/mcp?key=secret-value", "authorization"), program("API_KEY")] {
            let printed = format!("{spec:?}");
            assert!(!printed.contains("secret-value") && (printed.contains("API_KEY") || printed.contains("authorization")), "{printed}");
        }
        let spec = Spec { hidden: vec!["hunter22".into(), "on".into()], ..program("A") };
        assert_eq!(spec.hide("on: hunter22!"), "on: ***!");
    }

    #[test]
    fn what_cannot_be_reached_is_refused() {
        assert!(http("https://example.org/mcp", "authorization").check().is_ok() && program("API_KEY").check().is_ok());
        for bad in ["", "example.org", "ftp://example.org", "https://", "https://me:secret@example.org/", "/mcp"] {
            assert!(http(bad, "x-key").check().is_err(), "{bad}");
        }
        for bad in ["host", "Content-Length", "MCP-Session-Id", "two words", ""] {
            assert!(http("http://127.0.0.1:1/mcp", bad).check().is_err(), "{bad}");
        }
        for bad in ["DESKMATE_TOKEN", "A=B", ""] {
            assert!(program(bad).check().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_changed_secret_is_a_changed_spec() {
        let mut other = program("API_KEY");
        assert_eq!(other, program("API_KEY"));
        if let Transport::Stdio { env, .. } = &mut other.transport {
            env.insert("API_KEY".into(), "rotated-value".into());
        }
        assert_ne!(other, program("API_KEY"));
    }
}
