//! Speaking to the running server over its local socket, as whoever the caller can show to be.

use std::cell::Cell;
use std::io::{BufRead, IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use deskmate_core::{Code, Error, identity};
use serde_json::{Value, json};

use super::busy::busy;
use super::{Failure, Global};
use crate::home::Home;
use crate::http::UNVERIFIED;
use crate::{background, config};

/// Longer than any wait of an operation.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Whom a command speaks as.
pub(super) enum As {
    /// Whoever the token belongs to.
    Token(String),
    /// An agent by name, in open mode.
    Agent(String),
    /// Nobody yet.
    Nobody,
}

/// A connection to the server.
pub(super) struct Client {
    home: Home,
    who: As,
    /// Whether the session was opened for this command alone, and ends with it.
    signed_in: bool,
    /// Whether the last answer went to a name that nothing proves.
    unverified: Cell<bool>,
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.signed_in {
            // Without a server there is nobody to tell; the secret is gone with this process all the same.
            drop(self.request("POST", "/api/desk_sign_out", "{}"));
        }
    }
}

impl Client {
    pub(super) fn new(global: &Global) -> Result<Self, Failure> {
        let home = Home::new(config::home(global.home.clone())?);
        let who = token(global)?.map_or(As::Nobody, As::Token);
        Ok(Self { home, who, signed_in: false, unverified: Cell::default() })
    }

    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    pub(super) fn has_token(&self) -> bool {
        matches!(self.who, As::Token(_))
    }

    #[must_use]
    pub(super) fn with(mut self, who: As) -> Self {
        self.who = who;
        self
    }

    /// A client that speaks as a person who has just shown that they are there. Nothing of it is kept: its session
    /// ends with it.
    pub(super) fn present(global: &Global) -> Result<Self, Failure> {
        let client = Self::new(global)?.with(As::Nobody);
        // Nobody types a passphrase for a desk that is not there, or that has nobody who could have one.
        if client.get("/api/desk_status")?.get("claimed").and_then(Value::as_bool) == Some(false) {
            return Err(identity::no_owner().into());
        }
        let passphrase = passphrase(global, "Passphrase: ")?;
        let mut input = json!({ "passphrase": passphrase });
        if let (Some(name), Some(fields)) = (config::env("DESKMATE_PERSON"), input.as_object_mut()) {
            fields.insert("name".to_owned(), Value::String(name));
        }
        let answer = client.call("desk_sign_in", &input)?;
        match answer.get("session").and_then(Value::as_str) {
            Some(session) => {
                let mut client = client.with(As::Token(session.to_owned()));
                client.signed_in = true;
                Ok(client)
            }
            None => Err(Error::new(Code::Unauthenticated, "the passphrase is wrong").into()),
        }
    }

    /// Whether the last answer went to a name that nothing proves.
    pub(super) fn is_unverified(&self) -> bool {
        self.unverified.get()
    }

    /// Ends the session that [`Client::present`] opened. A token stays as it is.
    pub(super) fn leave(&self) {
        // The session ends by itself anyhow; a server that is gone needs no good-bye.
        if matches!(&self.who, As::Token(token) if token.starts_with("dms_")) {
            drop(self.call("desk_sign_out", &json!({})));
        }
    }

    /// Shows again that the person is there, for what asks for it again.
    pub(super) fn show_presence(&self, passphrase: &str) -> Result<bool, Failure> {
        let answer = self.call("desk_show_presence", &json!({ "passphrase": passphrase }))?;
        Ok(answer.get("shown").and_then(Value::as_bool).unwrap_or(false))
    }

    /// Calls an operation.
    pub(super) fn call(&self, operation: &str, input: &Value) -> Result<Value, Failure> {
        let _busy = busy("waiting for the desk");
        background::renew(&self.home)?;
        self.request("POST", &format!("/api/{operation}"), &input.to_string())
    }

    /// Calls an operation of a server that runs; none is looked for or started anew.
    pub(super) fn ask(&self, operation: &str, input: &Value) -> Result<Value, Failure> {
        self.request("POST", &format!("/api/{operation}"), &input.to_string())
    }

    pub(super) fn get(&self, path: &str) -> Result<Value, Failure> {
        self.request("GET", path, "")
    }

    /// One request on one connection. The server is ours and local, so a few lines are enough.
    fn request(&self, method: &str, path: &str, body: &str) -> Result<Value, Failure> {
        let mut stream = UnixStream::connect(self.home.http_socket()).map_err(|_| self.not_running())?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let who = match &self.who {
            As::Token(token) => format!("Authorization: Bearer {token}\r\n"),
            As::Agent(agent) => format!("X-Deskmate-Agent: {agent}\r\n"),
            As::Nobody => String::new(),
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Deskmate-Surface: cli\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{who}\r\n",
            body.len()
        );
        let mut answer = Vec::new();
        let done = stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).and_then(|()| stream.read_to_end(&mut answer));
        if done.is_err() || !is_whole(&answer) {
            return Err(cut_off().into());
        }
        self.unverified.set(says_unverified(&answer));
        read_answer(&answer)
    }

    fn not_running(&self) -> Failure {
        let error = Error::new(Code::Unavailable, format!("no desk runs in {}", self.home.path().display()));
        error.hint("start it with `deskmate up`, or name another data directory with --home").into()
    }
}

/// The server ended, or did not answer in time, while it had this to do.
fn cut_off() -> Error {
    let error = Error::new(Code::Unavailable, "the desk did not answer to the end, so it is not known whether this was done");
    error.hint("try again when `deskmate status` shows that it runs; what changes something is done once where both calls give the same idempotency_key")
}

/// Whether an answer came to its end.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|end| end == b"\r\n\r\n") else { return false };
    let (head, body) = answer.split_at(end + 4);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    if head.contains("transfer-encoding: chunked") {
        return body.ends_with(b"0\r\n\r\n");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    length.is_none_or(|length| body.len() >= length)
}

/// Whether the head of an answer has the mark of open mode.
fn says_unverified(answer: &[u8]) -> bool {
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n").and_then(|end| answer.get(..end)).unwrap_or_default();
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.trim_ascii().to_ascii_lowercase());
    lines.any(|line| line == format!("{UNVERIFIED}: true").as_bytes())
}

fn read_answer(answer: &[u8]) -> Result<Value, Failure> {
    let unreadable = || Failure::Other("the server's answer is unreadable".to_owned());
    let text = std::str::from_utf8(answer).map_err(|_| unreadable())?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(unreadable)?;
    let status: u16 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(unreadable)?;
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { dechunk(body).ok_or_else(unreadable)? } else { body.to_owned() };
    let value: Value = serde_json::from_str(&body).map_err(|_| unreadable())?;
    if status < 400 {
        return Ok(value);
    }
    let error = value.get("error").cloned().unwrap_or_default();
    let part = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
    let code = match part("code").as_deref() {
        Some("invalid") => Code::Invalid,
        Some("unauthenticated") => Code::Unauthenticated,
        Some("forbidden") => Code::Forbidden,
        Some("not_found") => Code::NotFound,
        Some("conflict") => Code::Conflict,
        Some("limited") => Code::Limited,
        Some("unavailable") => Code::Unavailable,
        _ => Code::Internal,
    };
    let mut told = Error::new(code, part("message").unwrap_or_else(|| "the server refused".to_owned()));
    (told.hint, told.field, told.incident) = (part("hint"), part("field"), part("incident").map(Into::into));
    told.retry_after_ms = error.get("retry_after_ms").and_then(Value::as_u64);
    told.needs_presence = error.get("needs_presence").and_then(Value::as_bool).unwrap_or_default();
    Err(told.into())
}

fn dechunk(mut body: &str) -> Option<String> {
    let mut text = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n")?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(text);
        }
        text.push_str(rest.get(..size)?);
        body = rest.get(size..)?.strip_prefix("\r\n")?;
    }
}

/// The token to use: a file that the caller names, or the environment.
pub(super) fn token(global: &Global) -> Result<Option<String>, Failure> {
    match &global.token_file {
        Some(file) => {
            let text = std::fs::read_to_string(file).map_err(|error| Failure::Other(format!("{}: {error}", file.display())))?;
            Ok(Some(text.trim().to_owned()))
        }
        None => Ok(config::env("DESKMATE_TOKEN")),
    }
}

/// Asks for the passphrase: on the terminal, without showing it, or on standard input if the caller says so.
pub(super) fn passphrase(global: &Global, prompt: &str) -> Result<String, Failure> {
    if global.passphrase_stdin {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
    }
    if !std::io::stderr().is_terminal() {
        return Err(Failure::Other("this needs your passphrase, and there is no terminal to ask on: use --passphrase-stdin".to_owned()));
    }
    rpassword::prompt_password(prompt).map_err(Failure::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_whether_it_helps_to_show_that_one_is_there() {
        for (body, helps) in
            [(r#"{"error":{"code":"forbidden","message":"m","needs_presence":true}}"#, true), (r#"{"error":{"code":"forbidden","message":"m"}}"#, false)]
        {
            match read_answer(format!("HTTP/1.1 403 Forbidden\r\n\r\n{body}").as_bytes()) {
                Err(Failure::Desk(error)) => assert_eq!((error.code, error.needs_presence), (Code::Forbidden, helps)),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn an_answer_that_was_cut_off_is_told_from_one_that_cannot_be_read() {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
        for whole in [whole, chunked] {
            assert!(is_whole(whole.as_bytes()) && read_answer(whole.as_bytes()).is_ok(), "{whole}");
            for end in 0..whole.len() {
                assert!(!is_whole(&whole.as_bytes()[..end]), "{end} bytes of {whole}");
            }
        }
        assert_eq!(cut_off().code, Code::Unavailable);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Whatever answers on the socket, the command ends with an error and not by a fault of its own.
        #[test]
        fn any_answer_is_read_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), body in "(?s).{0,80}") {
            drop((read_answer(&bytes), says_unverified(&bytes), is_whole(&bytes)));
            for head in ["HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", "HTTP/1.1 x"] {
                drop(read_answer(format!("{head}\r\n\r\n{body}").as_bytes()));
                drop(read_answer(format!("{head}\r\n\r\nfffffffffffffff\r\n{body}\r\n0\r\n").as_bytes()));
            }
        }
    }
}
