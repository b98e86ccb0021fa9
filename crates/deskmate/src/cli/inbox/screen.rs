//! What the full screen shows, and what each key does. Knows neither terminal nor server: a key comes in, an order to
//! the server may come out.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

use super::text::{moment, part};
use super::{PAGE, PAGES_MAX, View};

/// How bad it was, in the order of the keys, and what Enter stands for.
pub(super) const SEVERITIES: [&str; 4] = ["low", "medium", "high", "critical"];
pub(super) const USUAL_SEVERITY: &str = "medium";

/// How many requests below the cursor are there before somebody comes to them.
const AHEAD: usize = 50;
/// How many are read on to at most: for ever to want more than is read would be to read without end.
const MOST: usize = (PAGE * PAGES_MAX) as usize;

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
    /// The request that is being decided, as it was shown when that began: whatever the list does meanwhile, no other is meant.
    about: Option<Value>,
    /// The last thing that happened, and whether it went wrong.
    pub(super) said: Option<(String, bool)>,
    last_approved: Option<(String, String)>,
}

impl Screen {
    pub(super) fn new(view: View, search: Option<String>) -> Self {
        Self {
            view,
            search,
            requests: Vec::new(),
            more: false,
            selected: 0,
            details: None,
            scroll: 0,
            doing: Doing::Looking,
            about: None,
            said: None,
            last_approved: None,
        }
    }

    /// The request under the cursor.
    pub(super) fn current(&self) -> Option<&Value> {
        self.requests.get(self.selected)
    }

    pub(super) fn current_id(&self) -> Option<String> {
        self.current().map(|request| part(request, "request"))
    }

    /// How many requests are wanted: those down to the cursor, and some below it.
    pub(super) fn wanted(&self) -> usize {
        self.selected.saturating_add(AHEAD).min(MOST)
    }

    /// Whether the cursor comes near the end of what is here while there is more.
    pub(super) fn is_near_the_end(&self) -> bool {
        self.more && self.requests.len() < self.wanted()
    }

    /// Takes a fresh list in. The cursor stays on its request, or near where it was. What is being decided and is not there any more is
    /// not decided: the screen would show another one beside the question.
    pub(super) fn take(&mut self, requests: Vec<Value>, more: bool) {
        let id = self.current_id();
        self.requests = requests;
        self.more = more;
        let same = id.and_then(|id| self.requests.iter().position(|request| part(request, "request") == id));
        self.selected = same.unwrap_or(self.selected).min(self.requests.len().saturating_sub(1));
        let is_gone = |about: &Value| !self.requests.iter().any(|request| part(request, "request") == part(about, "request"));
        if let Some(about) = self.about.take_if(|about| is_gone(about)) {
            self.doing = Doing::Looking;
            self.said = Some((format!("This is not in the list any more, and you decided nothing: {}", part(&about, "title")), true));
        }
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
    pub(super) fn failed(&mut self, order: Order, needs_presence: bool, message: &str) {
        self.said = Some((message.to_owned(), true));
        if needs_presence && matches!(order, Order::Call { .. }) {
            self.doing = Doing::Presence { text: String::new(), then: Box::new(order) };
        }
    }

    /// What a key does.
    pub(super) fn press(&mut self, key: KeyEvent, now: i64) -> Option<Order> {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Some(Order::Quit);
        }
        let order = self.press_on(key, now);
        if matches!(self.doing, Doing::Looking | Doing::Help | Doing::Presence { .. }) {
            self.about = None;
        }
        order
    }

    fn press_on(&mut self, key: KeyEvent, now: i64) -> Option<Order> {
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
            KeyCode::Char('/') => self.doing = writing(Writing::Search),
            KeyCode::Char('v') => {
                self.view = self.view.next();
                return Some(Order::Reload);
            }
            KeyCode::Char('u') => return self.undo(),
            KeyCode::Char('a' | 'e' | 'r' | '?' | 'd' | 'z') if self.current().is_none() => return self.say("There is nothing to decide here."),
            // A handoff is answered with what to do, not with a yes.
            KeyCode::Char('a') if self.current().is_some_and(|request| part(request, "kind") == "handoff") => {
                return self.begin(writing(Writing::Instructions));
            }
            KeyCode::Char('a') => return self.begin(Doing::Approving),
            KeyCode::Char('e') => match self.shown() {
                Some(request) => return Some(Order::Edit { request: request.clone() }),
                None => return self.say(NOT_HERE),
            },
            KeyCode::Char('r') => return self.begin(writing(Writing::Reason)),
            KeyCode::Char('?') => return self.begin(writing(Writing::Question)),
            KeyCode::Char('d') => return self.begin(writing(Writing::Delegate)),
            KeyCode::Char('z') => return self.begin(writing(Writing::Snooze)),
            _ => {}
        }
        None
    }

    /// Begins to decide the request under the cursor, as it is shown now.
    fn begin(&mut self, doing: Doing) -> Option<Order> {
        let Some(shown) = self.shown().cloned() else { return self.say(NOT_HERE) };
        self.about = Some(shown);
        self.doing = doing;
        None
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
                    let about = self.about.as_ref()?;
                    let types = about.get("reason_types").and_then(Value::as_array).into_iter().flatten();
                    let types = types.filter_map(Value::as_str).map(str::to_owned).collect();
                    self.doing = Doing::ChoosingType { reason: text, types, usual: part(about, "usual_reason_type") };
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

    fn approve(&mut self, reason: Option<String>) -> Option<Order> {
        let input = reason.map_or_else(|| json!({}), |reason| json!({ "reason": reason }));
        self.order("desk_request_approve", input, "Approved")
    }

    fn undo(&mut self) -> Option<Order> {
        let Some((request, title)) = self.last_approved.take() else {
            return self.say("You have approved nothing yet that could be taken back.");
        };
        Some(Order::Call { operation: "desk_request_undo", input: json!({ "request": request }), done: format!("Taken back: {title}") })
    }

    /// What is decided is what was shown: its digest goes along. Only putting off is no word about what is in it.
    fn order(&mut self, operation: &'static str, mut input: Value, word: &str) -> Option<Order> {
        let about = self.about.take()?;
        let fields = input.as_object_mut()?;
        fields.insert("request".to_owned(), json!(part(&about, "request")));
        if operation != "desk_request_snooze" {
            fields.insert("expected_digest".to_owned(), json!(part(&about, "digest")));
        }
        Some(Order::Call { operation, input, done: format!("{word}: {}", part(&about, "title")) })
    }

    fn say(&mut self, text: &str) -> Option<Order> {
        self.said = Some((text.to_owned(), false));
        None
    }
}

fn writing(what: Writing) -> Doing {
    Doing::Writing { what, text: String::new() }
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

/// The choices with their keys, as [`chosen`] takes them. What is usual stands first, because the line may be cut.
pub(super) fn choices(names: &[impl AsRef<str>], usual: &str) -> String {
    let keys = (1..36).filter_map(|digit| char::from_digit(digit, 36));
    let keyed = keys.zip(names).map(|(key, name)| format!("{key} {}", name.as_ref()));
    let others = names.len().checked_sub(35).filter(|others| *others > 0);
    let others = others.map(|others| format!("and {others} more, by `deskmate inbox reject --type`"));
    [format!("Enter = {usual}")].into_iter().chain(keyed).chain(others).collect::<Vec<_>>().join("  ")
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
        assert_eq!(keys(&mut screen, "ja"), None, "the second one's details are not shown yet");
        assert_eq!((screen.said.take(), &screen.doing), (Some((NOT_HERE.to_owned(), false)), &Doing::Looking));
    }

    #[test]
    fn what_is_decided_is_what_was_shown_when_that_began() {
        let others = || vec![json!({ "request": "r0", "title": "zero" }), json!({ "request": "r2", "title": "two" })];
        for begun in ["a", "r", "rtoo much", "rtoo much\n", "rtoo much\n1", "?wh", "dMi", "z2"] {
            let mut screen = screen();
            assert_eq!(keys(&mut screen, begun), None);
            // Somebody else decided it, and the next one comes under the cursor.
            screen.take(others(), false);
            screen.show(Some(json!({ "request": "r2", "digest": "d2" })));
            assert_eq!(screen.doing, Doing::Looking, "{begun}");
            assert!(screen.said.as_ref().is_some_and(|(said, is_wrong)| *is_wrong && said.contains("decided nothing")), "{begun}");
            assert_eq!(keys(&mut screen, "y"), None, "{begun}");
        }
        // Others come and go beside it, and its own contents change.
        let mut screen = screen();
        assert_eq!(keys(&mut screen, "rtoo much\n1"), None);
        screen.take([others(), vec![json!({ "request": "r1", "title": "one" })]].concat(), false);
        screen.show(Some(json!({ "request": "r1", "digest": "d3" })));
        let order = call(keys(&mut screen, "\n"));
        assert_eq!((&order.1["request"], &order.1["expected_digest"]), (&json!("r1"), &json!("d1")), "the desk refuses what was changed meanwhile");
        // Searching is about no request.
        assert_eq!(keys(&mut screen, "/on"), None);
        screen.take(others(), false);
        assert_eq!(keys(&mut screen, "e\n"), Some(Order::Reload));
        assert_eq!(screen.search.as_deref(), Some("one"));
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
        let expected = json!({ "request": "r1", "expected_digest": "d1", "reason": "too much", "type": "agent_wrong", "severity": "critical" });
        assert_eq!(order, ("desk_request_reject", expected));
        let order = call(keys(&mut screen, "rno\n\n\n"));
        assert_eq!(order.1["type"], "human_preference", "what the request says is usual");
        assert_eq!(order.1["severity"], "medium");
        // A domain has types of its own, and may have many.
        let own: Vec<String> = (1..=12).map(|number| format!("own{number}")).collect();
        screen.show(Some(json!({ "request": "r1", "digest": "d1", "reason_types": own, "usual_reason_type": "own1" })));
        assert_eq!(call(keys(&mut screen, "rno\n2\n")).1["type"], "own2");
        assert_eq!(call(keys(&mut screen, "rno\nc\n")).1["type"], "own12");
        assert_eq!(call(keys(&mut screen, "rno\n\n\n")).1["type"], "own1");
        let line = choices(&own, "own1");
        assert!(line.starts_with("Enter = own1  1 own1  2 own2") && line.ends_with("9 own9  a own10  b own11  c own12"), "{line}");
        let many: Vec<String> = (1..=37).map(|number| format!("own{number}")).collect();
        assert!(choices(&many, "own1").ends_with("z own35  and 2 more, by `deskmate inbox reject --type`"));
        assert_eq!(keys(&mut screen, "rno\u{1b}q"), Some(Order::Quit), "escape leaves the line, and then q is a key again");
    }

    #[test]
    fn asking_putting_off_and_giving_away() {
        let mut screen = screen();
        assert_eq!(call(keys(&mut screen, "?why\n")), ("desk_request_ask", json!({ "request": "r1", "expected_digest": "d1", "question": "why" })));
        assert_eq!(call(keys(&mut screen, "z2h\n")).1["until"], "1970-01-01T02:00:00.000000Z");
        assert_eq!(keys(&mut screen, "zsoon\n"), None);
        assert_eq!(screen.said.as_ref().map(|said| said.1), Some(true));
        keys(&mut screen, "j");
        screen.show(Some(json!({ "request": "r2", "digest": "d2" })));
        assert_eq!(call(keys(&mut screen, "dMia\n")), ("desk_request_delegate", json!({ "request": "r2", "expected_digest": "d2", "to": "Mia" })));
    }

    #[test]
    fn presence_is_asked_for_where_it_is_missing_and_the_order_goes_on() {
        let mut screen = screen();
        let order = keys(&mut screen, "ay").unwrap();
        screen.failed(order.clone(), false, "over MCP a session never decides, even with desk_show_presence");
        assert_eq!(screen.doing, Doing::Looking, "no passphrase helps");
        screen.failed(order.clone(), true, "approving this needs your passphrase again");
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
    fn more_is_wanted_when_the_cursor_comes_near_the_end() {
        let mut screen = screen();
        let rows = |count: usize| (0..count).map(|number| json!({ "request": format!("r{number}") })).collect::<Vec<_>>();
        screen.take(rows(100), true);
        assert!(!screen.is_near_the_end());
        keys(&mut screen, "G");
        assert!(screen.is_near_the_end() && screen.wanted() > 100);
        screen.take(rows(300), true);
        assert!(!screen.is_near_the_end());
        keys(&mut screen, "G");
        screen.take(rows(300), false);
        assert!(!screen.is_near_the_end(), "there is no more");
        screen.take(rows(MOST), true);
        keys(&mut screen, "G");
        assert!(!screen.is_near_the_end(), "further than this nothing is read");
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
