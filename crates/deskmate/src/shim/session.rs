//! What the shim remembers of a conversation: which requests are under way, and what must be said again to a new server.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};

use super::line::{self, Head};
use super::link::Fault;

const INITIALIZE: &str = "initialize";
const LISTEN: &str = "subscriptions/listen";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A request without an answer.
struct Flight {
    /// The line, where it is said again to a new server instead of being failed.
    again: Option<Vec<u8>>,
    /// Whether it keeps the shim busy. A stream of notifications stays open for ever and is nothing that is waited for.
    busy: bool,
}

/// One conversation of the client, over however many servers.
#[derive(Default)]
pub(super) struct Session {
    flights: HashMap<String, Flight>,
    /// The handshake of the older era.
    initialize: Option<(String, Vec<u8>)>,
    initialized: Option<Vec<u8>>,
    /// Subscriptions of the older era, by address.
    subscribed: BTreeMap<String, Vec<u8>>,
    /// Answers that the client already has.
    swallow: HashSet<String>,
    /// Acknowledgements of streams that the client already has.
    swallow_acknowledged: usize,
    replays: u64,
}

impl Session {
    /// A line on its way to the server.
    pub(super) fn note(&mut self, head: &Head, line: &[u8]) {
        match head {
            Head::Request { id, method } => {
                let mut flight = Flight { again: None, busy: true };
                match method.as_str() {
                    INITIALIZE => {
                        self.initialize = Some((id.clone(), line.to_vec()));
                        flight.again = Some(line.to_vec());
                    }
                    LISTEN => flight = Flight { again: Some(line.to_vec()), busy: false },
                    "resources/subscribe" => {
                        if let Some(Value::String(uri)) = line::param(line, "uri") {
                            self.subscribed.insert(uri, line.to_vec());
                        }
                    }
                    "resources/unsubscribe" => {
                        if let Some(Value::String(uri)) = line::param(line, "uri") {
                            self.subscribed.remove(&uri);
                        }
                    }
                    _ => {}
                }
                self.flights.insert(id.clone(), flight);
            }
            Head::Notification { method } => match method.as_str() {
                "notifications/initialized" => self.initialized = Some(line.to_vec()),
                // A cancelled request gets no answer.
                "notifications/cancelled" => {
                    if let Some(id) = line::param(line, "requestId") {
                        self.flights.remove(&id.to_string());
                    }
                }
                _ => {}
            },
            Head::Answer { .. } | Head::Other | Head::Unreadable => {}
        }
    }

    /// Whether the client is to see a line of the server.
    pub(super) fn passes(&mut self, head: &Head) -> bool {
        match head {
            Head::Answer { id, .. } => !self.swallow.remove(id),
            Head::Notification { method } if method == ACKNOWLEDGED && self.swallow_acknowledged > 0 => {
                self.swallow_acknowledged -= 1;
                false
            }
            _ => true,
        }
    }

    /// The client has a line of the server. Only now is the request over: whoever waits for that may end the process.
    pub(super) fn passed(&mut self, head: &Head) {
        if let Head::Answer { id, failed } = head {
            self.flights.remove(id);
            // A handshake that failed is not tried again behind the client's back.
            if *failed && self.initialize.as_ref().is_some_and(|(handshake, _)| handshake == id) {
                self.initialize = None;
            }
        }
    }

    /// The server is gone: answers for what was under way and is not said again.
    pub(super) fn lost(&mut self) -> Vec<Vec<u8>> {
        self.swallow.clear();
        self.swallow_acknowledged = 0;
        let message = "the desk's server went away during this call; whether it was done is not known";
        let data = json!({ "code": "unavailable", "message": message, "hint": "ask again, with the same idempotency_key if you gave one", "retryable": true });
        let failed: Vec<String> = self.flights.iter().filter(|(_, flight)| flight.again.is_none()).map(|(id, _)| id.clone()).collect();
        failed
            .iter()
            .map(|id| {
                self.flights.remove(id);
                line::error(Some(id), -32000, message, &data)
            })
            .collect()
    }

    /// No server can be reached: answers for everything that waits for one. Streams that the client had before stay in
    /// mind for the next attempt.
    pub(super) fn given_up(&mut self, fault: &Fault, keep_streams: bool) -> Vec<Vec<u8>> {
        let failed: Vec<String> = self.flights.iter().filter(|(_, flight)| flight.busy || !keep_streams).map(|(id, _)| id.clone()).collect();
        failed
            .iter()
            .map(|id| {
                self.flights.remove(id);
                fault.answer(id)
            })
            .collect()
    }

    /// What a new server must be told first so that the client can go on.
    pub(super) fn replay(&mut self) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        if let Some((id, line)) = &self.initialize {
            if !self.flights.contains_key(id) {
                self.swallow.insert(id.clone());
            }
            lines.push(line.clone());
            lines.extend(self.initialized.clone());
        }
        for line in self.subscribed.values() {
            self.replays += 1;
            let id = format!("deskmate-replay-{}", self.replays);
            if let Some(line) = line::with_id(line, &id) {
                self.swallow.insert(Value::from(id).to_string());
                lines.push(line);
            }
        }
        for flight in self.flights.values().filter(|flight| !flight.busy) {
            self.swallow_acknowledged += 1;
            lines.extend(flight.again.clone());
        }
        lines
    }

    /// Whether the client waits for an answer.
    pub(super) fn busy(&self) -> bool {
        self.flights.values().any(|flight| flight.busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(session: &mut Session, line: &str) {
        session.note(&Head::of(line.as_bytes()), line.as_bytes());
    }

    fn server(session: &mut Session, line: &str) -> bool {
        let head = Head::of(line.as_bytes());
        let passes = session.passes(&head);
        session.passed(&head);
        passes
    }

    #[test]
    fn a_new_server_hears_the_handshake_and_the_client_does_not_hear_the_answer() {
        let mut session = Session::default();
        client(&mut session, r#"{"id":0,"method":"initialize"}"#);
        assert!(server(&mut session, r#"{"id":0,"result":{}}"#));
        client(&mut session, r#"{"method":"notifications/initialized"}"#);
        client(&mut session, r#"{"id":1,"method":"resources/subscribe","params":{"uri":"a"}}"#);
        assert!(server(&mut session, r#"{"id":1,"result":{}}"#));
        client(&mut session, r#"{"id":2,"method":"tools/call"}"#);
        let lost = session.lost();
        assert_eq!(lost.len(), 1);
        assert!(String::from_utf8_lossy(&lost[0]).contains("\"id\":2"));
        let lines = session.replay();
        assert_eq!(lines.len(), 3);
        assert!(!server(&mut session, r#"{"id":0,"result":{}}"#));
        assert!(!server(&mut session, r#"{"id":"deskmate-replay-1","result":{}}"#));
        assert!(!session.busy());
    }

    #[test]
    fn a_handshake_that_was_under_way_is_answered_by_the_new_server() {
        let mut session = Session::default();
        client(&mut session, r#"{"id":0,"method":"initialize"}"#);
        assert!(session.lost().is_empty());
        assert_eq!(session.replay().len(), 1);
        assert!(server(&mut session, r#"{"id":0,"result":{}}"#));
    }

    #[test]
    fn a_handshake_that_failed_is_forgotten() {
        let mut session = Session::default();
        client(&mut session, r#"{"id":0,"method":"initialize"}"#);
        assert!(server(&mut session, r#"{"id":0,"error":{"code":-32602,"message":"no"}}"#));
        assert!(session.replay().is_empty());
    }

    #[test]
    fn streams_go_on_and_are_acknowledged_once() {
        let mut session = Session::default();
        client(&mut session, r#"{"id":5,"method":"subscriptions/listen"}"#);
        assert!(!session.busy());
        assert!(server(&mut session, r#"{"method":"notifications/subscriptions/acknowledged"}"#));
        assert!(session.lost().is_empty());
        assert_eq!(session.replay().len(), 1);
        assert!(!server(&mut session, r#"{"method":"notifications/subscriptions/acknowledged"}"#));
        client(&mut session, r#"{"method":"notifications/cancelled","params":{"requestId":5}}"#);
        assert!(session.replay().is_empty());
    }
}
