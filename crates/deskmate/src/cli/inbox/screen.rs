//! What the full screen shows, and what each key does. Knows neither terminal nor server: a key comes in, an order to
//! the server may come out.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

use super::View;
use super::text::{moment, part};

/// How bad it was, in the order of the keys, and what Enter stands for.
pub(super) const SEVERITIES: [&str; 4] = ["low", "medium", "high", "critical"];
pub(super) const USUAL_SEVERITY: &str = "medium";

const NOT_HERE: &str = "Its details are not here yet; try again.";

/// What the person is doing.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Doing {
    /// Looking through the list.
    Looking,
    /// Reading the keys.
    Help,
    /// About to approve.
    Approving,
    /// Writing something.
    Writing { what: Writing, text: String },
    /// Choosing what was wrong, after the reason, among what the request's domain knows.
    ChoosingType { reason: String, types: Vec<String>, usual: String },
    /// Choosing how bad it was.
    ChoosingSeverity { reason: String, kind: String },
    /// Giving the passphrase again, and then doing this.
    Presence { text: String, then: Box<Order> },
}

/// What is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    Instructions,
    Reason,
    Question,
    Delegate,
    Snooze,
    Search,
}

impl Writing {
    /// What the line asks for.
    pub(super) fn prompt(self) -> &'static str {
        match self {
            Self::Instructions => "What should the agent do now?",
            Self::Reason => "Why not? The agent learns from it",
            Self::Question => "What do you want to know from the agent?",
            Self::Delegate => "To whom? A person's name",
            Self::Snooze => "For how long? 2h, 1d, or a time",
            Self::Search => "Titles with this text",
        }
    }
}

/// What the server or the terminal is asked to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Order {
    /// Call an operation, and say this when it is done.
    Call { operation: &'static str, input: Value, done: String },
    /// Open the arguments in an editor and approve what comes back.
    Edit { request: Value },
    /// Read the list again, from its beginning.
    Reload,
    /// Show that the person is there, and then do the order.
    ShowPresence { passphrase: String, then: Box<Order> },
    /// Leave.
    Quit,
}

/// The screen.
pub(super) struct Screen {
    pub(super) view: View,
    pub(super) search: Option<String>,
    pub(super) requests: Vec<Value>,
    pub(super) more: bool,
    pub(super) selected: usize,
    pub(super) details: Option<Value>,
    pub(super) scroll: u16,
    pub(super) doing: Doing,
    /// The last thing that happened, and whether it went wrong.
    pub(super) said: Option<(String, bool)>,
    last_approved: Option<(String, String)>,
}

impl Screen {
    pub(super) fn new(view: View, search: Option<String>) -> Self {
        Self { view, search, requests: Vec::new(), more: false, selected: 0, details: None, scroll: 0, doing: Doing::Looking, said: None, last_approved: None }
    }

    /// The request under the cursor.
    pub(super) fn current(&self) -> Option<&Value> {
        self.requests.get(self.selected)
    }

    pub(super) fn current_id(&self) -> Option<String> {
        self.current().map(|request| part(request, "request"))
    }

    /// Takes a fresh list in. The cursor stays on its request, or near where it was.
    pub(super) fn take(&mut self, requests: Vec<Value>, more: bool) {
        let id = self.current_id();
        self.requests = requests;
        self.more = more;
        let same = id.and_then(|id| self.requests.iter().position(|request| part(request, "request") == id));
        self.selected = same.unwrap_or(self.selected).min(self.requests.len().saturating_sub(1));
    }

    /// Takes the details of the request under the cursor in.
    pub(super) fn show(&mut self, details: Option<Value>) {
        let other = self.details.as_ref().map(|shown| part(shown, "request")) != details.as_ref().map(|shown| part(shown, "request"));
        if other {
            self.scroll = 0;
        }
        self.details = details;
    }

    /// Tells how an order ended.
    pub(super) fn done(&mut self, order: &Order, said: &str) {
        if let Order::Call { operation: "desk_request_approve", input, .. } = order {
            self.last_approved = Some((part(input, "request"), said.to_owned()));
        }
        self.said = Some((said.to_owned(), false));
    }

    /// Tells that an order failed. Where the person has to show again that they are there, they are asked.
    pub(super) fn failed(&mut self, order: Order, code: &str, message: &str) {
        self.said = Some((message.to_owned(), true));
        let decides = matches!(order, Order::Call { .. });
        if decides && code == "forbidden" && (message.contains("that you are there") || message.contains("presence")) {
            self.doing = Doing::Presence { text: String::new(), then: Box::new(order) };
        }
    }

    /// What a key does.
    pub(super) fn press(&mut self, key: KeyEvent, now: i64) -> Option<Order> {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Some(Order::Quit);
        }
        match std::mem::replace(&mut self.doing, Doing::Looking) {
            Doing::Looking => self.look(key),
            Doing::Help => None,
            Doing::Approving => match key.code {
                KeyCode::Char('y') | KeyCode::Enter => self.approve(None),
                _ => self.say("Nothing was approved."),
            },
            Doing::Writing { what, text } => self.write(what, text, key, now),
            Doing::ChoosingType { reason, types, usual } => match chosen(key, &types, &usual) {
                Some(kind) => {
                    self.doing = Doing::ChoosingSeverity { reason, kind: kind.to_owned() };
                    None
                }
                None => self.say("Nothing was rejected."),
            },
            Doing::ChoosingSeverity { reason, kind } => match chosen(key, &SEVERITIES, USUAL_SEVERITY) {
                Some(severity) => self.order("desk_request_reject", json!({ "reason": reason, "type": kind, "severity": severity }), "Rejected"),
                None => self.say("Nothing was rejected."),
            },
            Doing::Presence { mut text, then } => match edit(&mut text, key) {
                Typed::Done if !text.is_empty() => Some(Order::ShowPresence { passphrase: text, then }),
                Typed::Done | Typed::Left => self.say("Nothing was decided."),
                Typed::On => {
                    self.doing = Doing::Presence { text, then };
                    None
                }
            },
        }
    }

    fn look(&mut self, key: KeyEvent) -> Option<Order> {
        self.said = None;
        let last = self.requests.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Some(Order::Quit),
            KeyCode::Char('j') | KeyCode::Down => self.selected = (self.selected + 1).min(last),
            KeyCode::Char('k') | KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Char('g') | KeyCode::Home => self.selected = 0,
            KeyCode::Char('G') | KeyCode::End => self.selected = last,
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll = self.scroll.saturating_add(10),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::Char('h') => self.doing = Doing::Help,
            KeyCode::Char('R') => return Some(Order::Reload),
            KeyCode::Char('/') => self.writing(Writing::Search),
            KeyCode::Char('v') => {
                self.view = self.view.next();
                return Some(Order::Reload);
            }
            KeyCode::Char('u') => return self.undo(),
            KeyCode::Char('a' | 'e' | 'r' | '?' | 'd' | 'z') if self.current().is_none() => return self.say("There is nothing to decide here."),
            // A handoff is answered with what to do, not with a yes.
            KeyCode::Char('a') if self.current().is_some_and(|request| part(request, "kind") == "handoff") => self.writing(Writing::Instructions),
            KeyCode::Char('a') => self.doing = Doing::Approving,
            KeyCode::Char('e') => return self.details.clone().map(|request| Order::Edit { request }),
            KeyCode::Char('r') => self.writing(Writing::Reason),
            KeyCode::Char('?') => self.writing(Writing::Question),
            KeyCode::Char('d') => self.writing(Writing::Delegate),
            KeyCode::Char('z') => self.writing(Writing::Snooze),
            _ => {}
        }
        None
    }

    fn writing(&mut self, what: Writing) {
        self.doing = Doing::Writing { what, text: String::new() };
    }

    fn write(&mut self, what: Writing, mut text: String, key: KeyEvent, now: i64) -> Option<Order> {
        match edit(&mut text, key) {
            Typed::On => {
                self.doing = Doing::Writing { what, text };
                None
            }
            Typed::Left => None,
            Typed::Done => match what {
                Writing::Search => {
                    self.search = Some(text).filter(|text| !text.is_empty());
                    Some(Order::Reload)
                }
                Writing::Instructions => self.approve(Some(text)),
                Writing::Reason => {
                    let Some(shown) = self.shown() else { return self.say(NOT_HERE) };
                    let types =
                        shown.get("reason_types").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
                    self.doing = Doing::ChoosingType { reason: text, types, usual: part(shown, "usual_reason_type") };
                    None
                }
                Writing::Question => self.order("desk_request_ask", json!({ "question": text }), "Asked"),
                Writing::Delegate => self.order("desk_request_delegate", json!({ "to": text }), "Given away"),
                Writing::Snooze => {
                    if let Some(until) = moment(&text, now) {
                        return self.order("desk_request_snooze", json!({ "until": until }), "Put off");
                    }
                    self.said = Some((format!("{text:?} is not a time: write for example 2h or 2026-11-15T09:30:00Z"), true));
                    None
                }
            },
        }
    }

    /// The details of the request under the cursor, once they are here.
    fn shown(&self) -> Option<&Value> {
        self.details.as_ref().filter(|shown| Some(part(shown, "request")) == self.current_id())
    }

    /// What is approved is what was shown: its digest goes along.
    fn approve(&mut self, reason: Option<String>) -> Option<Order> {
        let Some(digest) = self.shown().map(|shown| part(shown, "digest")) else { return self.say(NOT_HERE) };
        let mut input = json!({ "expected_digest": digest });
        if let (Some(input), Some(reason)) = (input.as_object_mut(), reason) {
            input.insert("reason".to_owned(), Value::String(reason));
        }
        self.order("desk_request_approve", input, "Approved")
    }

    fn undo(&mut self) -> Option<Order> {
        let Some((request, title)) = self.last_approved.take() else {
            return self.say("You have approved nothing yet that could be taken back.");
        };
        Some(Order::Call { operation: "desk_request_undo", input: json!({ "request": request }), done: format!("Taken back: {title}") })
    }

    fn order(&mut self, operation: &'static str, mut input: Value, word: &str) -> Option<Order> {
        let (id, title) = (self.current_id()?, self.current().map(|request| part(request, "title")).unwrap_or_default());
        input.as_object_mut()?.insert("request".to_owned(), Value::String(id));
        Some(Order::Call { operation, input, done: format!("{word}: {title}") })
    }

    fn say(&mut self, text: &str) -> Option<Order> {
        self.said = Some((text.to_owned(), false));
        None
    }
}

enum Typed {
    On,
    Done,
    Left,
}

fn edit(text: &mut String, key: KeyEvent) -> Typed {
    match key.code {
        KeyCode::Enter => return Typed::Done,
        KeyCode::Esc => return Typed::Left,
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => text.clear(),
        KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => text.push(c),
        _ => {}
    }
    Typed::On
}

/// The choice that a key stands for: 1 to 9, then letters, and Enter for what is usual.
fn chosen<'a>(key: KeyEvent, choices: &'a [impl AsRef<str>], usual: &'a str) -> Option<&'a str> {
    match key.code {
        KeyCode::Enter => Some(usual),
        KeyCode::Char(c) => choices.get(usize::try_from(c.to_digit(36)?.checked_sub(1)?).ok()?).map(AsRef::as_ref),
        _ => None,
    }
}

/// The choices with their keys, as [`chosen`] takes them.
pub(super) fn choices(names: &[impl AsRef<str>], usual: &str) -> String {
    let keys = (1..36).filter_map(|digit| char::from_digit(digit, 36));
    let keyed = keys.zip(names).map(|(key, name)| format!("{key} {}", name.as_ref()));
    keyed.chain([format!("Enter = {usual}")]).collect::<Vec<_>>().join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen() -> Screen {
        let mut screen = Screen::new(View::Inbox, None);
        screen.take(vec![json!({ "request": "r1", "title": "one" }), json!({ "request": "r2", "title": "two" })], false);
        let types = ["agent_wrong", "human_preference", "missing_context"];
        screen.show(Some(json!({ "request": "r1", "digest": "d1", "reason_types": types, "usual_reason_type": "human_preference" })));
        screen
    }

    fn keys(screen: &mut Screen, keys: &str) -> Option<Order> {
        let mut order = None;
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                other => KeyCode::Char(other),
            };
            order = screen.press(KeyEvent::new(code, KeyModifiers::NONE), 0);
        }
        order
    }

    fn call(order: Option<Order>) -> (&'static str, Value) {
        match order {
            Some(Order::Call { operation, input, .. }) => (operation, input),
            other => panic!("no call: {other:?}"),
        }
    }

    #[test]
    fn approving_asks_once_and_sends_the_digest_of_what_was_shown() {
        let mut screen = screen();
        assert_eq!(keys(&mut screen, "a"), None);
        assert_eq!(call(keys(&mut screen, "y")), ("desk_request_approve", json!({ "request": "r1", "expected_digest": "d1" })));
        assert_eq!(keys(&mut screen, "an"), None, "any other key leaves it");
        assert_eq!(keys(&mut screen, "jay"), None, "the second one's details are not shown yet");
        assert!(screen.said.is_some_and(|(said, _)| said.contains("not here yet")));
    }

    #[test]
    fn a_handoff_is_answered_with_instructions() {
        let mut screen = Screen::new(View::Inbox, None);
        screen.take(vec![json!({ "request": "r1", "kind": "handoff", "title": "stuck" })], false);
        screen.show(Some(json!({ "request": "r1", "digest": "d1" })));
        let order = call(keys(&mut screen, "atry the other key\n"));
        assert_eq!(order, ("desk_request_approve", json!({ "request": "r1", "expected_digest": "d1", "reason": "try the other key" })));
    }

    #[test]
    fn rejecting_takes_a_reason_a_type_and_a_severity() {
        let mut screen = screen();
        let order = call(keys(&mut screen, "rtoo much\n14"));
        assert_eq!(order, ("desk_request_reject", json!({ "request": "r1", "reason": "too much", "type": "agent_wrong", "severity": "critical" })));
        let order = call(keys(&mut screen, "rno\n\n\n"));
        assert_eq!(order.1["type"], "human_preference", "what the request says is usual");
        assert_eq!(order.1["severity"], "medium");
        // A domain has types of its own, and may have many.
        let own: Vec<String> = (1..=12).map(|number| format!("own{number}")).collect();
        screen.show(Some(json!({ "request": "r1", "digest": "d1", "reason_types": own, "usual_reason_type": "own1" })));
        assert_eq!(call(keys(&mut screen, "rno\n2\n")).1["type"], "own2");
        assert_eq!(call(keys(&mut screen, "rno\nc\n")).1["type"], "own12");
        assert_eq!(call(keys(&mut screen, "rno\n\n\n")).1["type"], "own1");
        assert!(choices(&own, "own1").ends_with("9 own9  a own10  b own11  c own12  Enter = own1"));
        assert_eq!(keys(&mut screen, "jrno\n"), None, "the second one's details are not shown yet");
        assert_eq!((screen.said.take(), &screen.doing), (Some((NOT_HERE.to_owned(), false)), &Doing::Looking));
        assert_eq!(keys(&mut screen, "rno\u{1b}q"), Some(Order::Quit), "escape leaves the line, and then q is a key again");
    }

    #[test]
    fn asking_putting_off_and_giving_away() {
        let mut screen = screen();
        assert_eq!(call(keys(&mut screen, "?why\n")), ("desk_request_ask", json!({ "request": "r1", "question": "why" })));
        assert_eq!(call(keys(&mut screen, "z2h\n")).1["until"], "1970-01-01T02:00:00.000000Z");
        assert_eq!(keys(&mut screen, "zsoon\n"), None);
        assert_eq!(screen.said.as_ref().map(|said| said.1), Some(true));
        assert_eq!(call(keys(&mut screen, "jdMia\n")), ("desk_request_delegate", json!({ "request": "r2", "to": "Mia" })));
    }

    #[test]
    fn presence_is_asked_for_where_it_is_missing_and_the_order_goes_on() {
        let mut screen = screen();
        let order = keys(&mut screen, "ay").unwrap();
        screen.failed(order.clone(), "forbidden", "this needs you to show that you are there");
        let Some(Order::ShowPresence { passphrase, then }) = keys(&mut screen, "correct horse\n") else { panic!("no passphrase was asked for") };
        assert_eq!((passphrase.as_str(), *then), ("correct horse", order));
    }

    #[test]
    fn the_last_approval_can_be_taken_back_once() {
        let mut screen = screen();
        let order = keys(&mut screen, "ay").unwrap();
        screen.done(&order, "Approved: one");
        assert_eq!(call(keys(&mut screen, "u")), ("desk_request_undo", json!({ "request": "r1" })));
        assert_eq!(keys(&mut screen, "u"), None);
    }

    #[test]
    fn the_cursor_stays_on_its_request_when_the_list_changes() {
        let mut screen = screen();
        keys(&mut screen, "j");
        screen.take(vec![json!({ "request": "r0" }), json!({ "request": "r1" }), json!({ "request": "r2" })], false);
        assert_eq!(screen.current_id().as_deref(), Some("r2"));
        screen.take(vec![json!({ "request": "r0" })], false);
        assert_eq!(screen.current_id().as_deref(), Some("r0"));
        screen.take(Vec::new(), false);
        assert_eq!((screen.current_id(), keys(&mut screen, "a")), (None, None));
    }
}
