//! How the full screen looks: the list on the left, everything about one request on the right, the keys below.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, List, ListItem, ListState, Padding, Paragraph, Wrap};
use serde_json::Value;

use super::screen::{Doing, SEVERITIES, Screen, USUAL_SEVERITY, choices};
use super::text::{Tone, details, distance, part};

const KEYS: &str = " a approve  e edit  r reject  ? ask  d give away  z put off  u undo  v view  / search  h help  q quit";
const HELP: &[(&str, &str)] = &[
    ("j k ↓ ↑ g G", "through the list"),
    ("space, page keys", "through the details"),
    ("a", "approve exactly what is shown"),
    ("e", "change its arguments in your editor, then approve that"),
    ("r", "reject with a reason, a type and a severity"),
    ("?", "ask the agent something first"),
    ("d", "give it to another person"),
    ("z", "put it off"),
    ("u", "take your last approval back, while nobody has used it"),
    ("v", "inbox, asked, snoozed, pending, all"),
    ("/", "only titles with a text in them"),
    ("R", "read the list again"),
    ("q", "leave"),
];

/// Paints the screen.
pub(super) fn draw(frame: &mut Frame<'_>, screen: &Screen, now: i64) {
    let [head, body, foot] = Layout::vertical([Constraint::Length(1), Constraint::Min(3), Constraint::Length(1)]).areas(frame.area());
    frame.render_widget(Paragraph::new(title(screen)).style(Style::new().add_modifier(Modifier::REVERSED)), head);
    if screen.requests.is_empty() {
        frame.render_widget(Paragraph::new(nothing(screen)).block(Block::new().padding(Padding::uniform(2))), body);
    } else if body.width < 90 {
        let [above, below] = Layout::vertical([Constraint::Percentage(40), Constraint::Percentage(60)]).areas(body);
        list(frame, screen, now, above);
        shown(frame, screen, now, below);
    } else {
        let [left, right] = Layout::horizontal([Constraint::Percentage(42), Constraint::Percentage(58)]).areas(body);
        list(frame, screen, now, left);
        shown(frame, screen, now, right);
    }
    frame.render_widget(footer(screen), foot);
    if screen.doing == Doing::Help {
        help(frame, body);
    }
}

fn title(screen: &Screen) -> String {
    let count = screen.requests.len();
    let more = if screen.more { " or more" } else { "" };
    let search = screen.search.as_ref().map_or(String::new(), |text| format!("  with {text:?}"));
    format!(" Deskmate  {}: {count}{more}{search}", screen.view.name())
}

fn nothing(screen: &Screen) -> String {
    match (screen.view, &screen.search) {
        (_, Some(text)) => format!("Nothing here has {text:?} in its title. / and Enter shows everything again."),
        (super::View::Inbox, None) => "Nothing waits for you. New requests show up here by themselves.".to_owned(),
        (view, None) => format!("Nothing is in this view ({}). v goes on to the next one.", view.name()),
    }
}

fn list(frame: &mut Frame<'_>, screen: &Screen, now: i64, area: Rect) {
    let items = screen.requests.iter().map(|request| ListItem::new(row(request, now)));
    let list = List::new(items).block(Block::new().borders(Borders::RIGHT)).highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = ListState::default().with_selected(Some(screen.selected));
    frame.render_stateful_widget(list, area, &mut state);
}

fn row(request: &Value, now: i64) -> Line<'static> {
    let risk = part(request, "risk");
    let mark = match risk.as_str() {
        "critical" => Span::styled("!! ", Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)),
        "high" => Span::styled("!  ", Style::new().fg(Color::Red)),
        "medium" => Span::styled("·  ", Style::new().fg(Color::Yellow)),
        _ => Span::raw("   "),
    };
    let age = format!("{:>4}  ", distance(&part(request, "created_at"), now));
    let title = part(request, "title").replace('\n', " ");
    Line::from(vec![
        mark,
        Span::styled(age, Style::new().add_modifier(Modifier::DIM)),
        Span::raw(format!("{}  ", part(request, "requester"))),
        Span::raw(title),
    ])
}

fn shown(frame: &mut Frame<'_>, screen: &Screen, now: i64, area: Rect) {
    let lines: Vec<Line<'static>> = match &screen.details {
        None => vec![Line::raw("…")],
        Some(request) => details(request, now).into_iter().flat_map(|(tone, text)| styled(tone, text)).collect(),
    };
    let text = Paragraph::new(lines).wrap(Wrap { trim: false }).scroll((screen.scroll, 0)).block(Block::new().padding(Padding::horizontal(1)));
    frame.render_widget(text, area);
}

fn styled(tone: Tone, text: String) -> Vec<Line<'static>> {
    let style = match tone {
        Tone::Head => Style::new().add_modifier(Modifier::BOLD),
        Tone::Plain => Style::new(),
        Tone::Old => Style::new().fg(Color::Red),
        Tone::New => Style::new().fg(Color::Green),
        Tone::Warning => Style::new().fg(Color::Yellow),
        Tone::Faint => Style::new().add_modifier(Modifier::DIM),
    };
    let mut lines: Vec<Line<'static>> = text.lines().map(|line| Line::styled(line.to_owned(), style)).collect();
    if tone == Tone::Head && !lines.is_empty() {
        lines.insert(0, Line::raw(""));
    }
    lines
}

fn footer(screen: &Screen) -> Paragraph<'static> {
    let text = match &screen.doing {
        Doing::Looking | Doing::Help => match &screen.said {
            Some((said, true)) => return Paragraph::new(format!(" {said}")).style(Style::new().fg(Color::Red)),
            Some((said, false)) => return Paragraph::new(format!(" {said}")).style(Style::new().fg(Color::Green)),
            None => KEYS.to_owned(),
        },
        Doing::Approving => " Approve exactly this? y yes, any other key no".to_owned(),
        Doing::Writing { what, text } => format!(" {}: {text}▏", what.prompt()),
        Doing::ChoosingType { types, usual, .. } => format!(" What was wrong? {}", choices(types, usual)),
        Doing::ChoosingSeverity { .. } => format!(" How bad? {}", choices(&SEVERITIES, USUAL_SEVERITY)),
        Doing::Presence { text, .. } => format!(" This needs you again. Passphrase: {}▏", "•".repeat(text.chars().count())),
    };
    Paragraph::new(text).style(Style::new().add_modifier(Modifier::BOLD))
}

fn help(frame: &mut Frame<'_>, body: Rect) {
    let height = u16::try_from(HELP.len() + 2).unwrap_or(u16::MAX).min(body.height);
    let width = 76.min(body.width);
    let area = Rect { x: body.x + (body.width - width) / 2, y: body.y + (body.height - height) / 2, width, height };
    let lines: Vec<Line<'static>> = HELP.iter().map(|(keys, what)| Line::raw(format!("{keys:>18}  {what}"))).collect();
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" Keys ")), area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::super::View;
    use super::*;

    fn painted(screen: &Screen, width: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, 30)).unwrap();
        terminal.draw(|frame| draw(frame, screen, 3_600_000_000)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn an_empty_inbox_says_so() {
        let text = painted(&Screen::new(View::Inbox, None), 100);
        assert!(text.contains("Nothing waits for you") && text.contains("a approve"), "{text}");
    }

    #[test]
    fn a_request_shows_what_a_person_needs() {
        let mut screen = Screen::new(View::Inbox, None);
        let request = json!({
            "request": "r1", "title": "Raise the commission", "requester": "crm-agent", "verified": true, "kind": "proposal", "state": "pending",
            "waits_for": "people", "domain": "crm.deals", "risk": "high", "mode": "suggest", "priority": "normal", "digest": "abc",
            "created_at": "1970-01-01T00:00:00Z", "expires_at": "1970-01-02T00:00:00Z", "quorum": 2, "approvals": 1, "confidence": 0.7,
            "act": { "action": "update", "target": "deal/7" }, "changes": [{ "path": "/commission", "old": 5, "new": 10 }], "reasoning": "The contract says so.",
            "hits": [{ "rule_id": "high_risk_commission", "policy": "crm-write", "version": 3, "reason": "money", "severity": "warning" }],
            "trust": { "score": 0.62, "accuracy": 0.9, "sample_size": 20, "interval": [0.7, 0.97] },
        });
        screen.take(vec![request.clone()], false);
        screen.show(Some(request));
        for width in [80, 140] {
            let text = painted(&screen, width);
            for expected in ["crm-agent", "- /commission: 5", "+ /commission: 10", "1 of 2 people", "70 % sure"] {
                assert!(text.contains(expected), "{expected} at {width}:\n{text}");
            }
        }
        assert!(painted(&screen, 140).contains("high_risk_commission"));
    }

    #[test]
    fn a_plan_shows_what_it_changes() {
        let mut screen = Screen::new(View::Inbox, None);
        let diff = "--- notes/a\n+++ notes/a\n@@ -1 +1 @@\n-one\n+two\n";
        let request = json!({
            "request": "r1", "kind": "plan", "title": "change in notes", "act": { "action": "change", "target": "notes" },
            "plan": { "plan_id": "p1", "count": 70, "steps": [
                { "number": 1, "action": "replace", "to": "notes/a", "diff": diff, "diff_bytes": 90_000 },
                { "number": 2, "action": "move", "from": "notes/b", "to": "notes/c", "warning": "takes .git along" },
                { "number": 3, "action": "undo", "undoes": "trash", "to": "notes/d", "blocked": "it was deleted for ever" },
                { "number": 4, "action": "purge", "from": "7-old.txt", "was": "notes/old.txt", "irreversible": "what leaves the trash is gone" },
            ] },
        });
        screen.take(vec![request.clone()], false);
        screen.show(Some(request));
        let text = painted(&screen, 200);
        for expected in [
            "-one",
            "+two",
            "Steps 1 to 4 of 70",
            "/workspace/plans/p1",
            "of 90000 bytes",
            "2. move  notes/b → notes/c",
            "warning: takes .git along",
            "3. undo of trash  notes/d",
            "left out: it was deleted for ever",
            "4. purge  7-old.txt (was notes/old.txt)",
            "cannot be undone",
        ] {
            assert!(text.contains(expected), "{expected}:\n{text}");
        }
    }

    #[test]
    fn a_passphrase_is_never_painted() {
        let mut screen = Screen::new(View::Inbox, None);
        screen.doing = Doing::Presence { text: "correct horse".to_owned(), then: Box::new(super::super::screen::Order::Reload) };
        let text = painted(&screen, 100);
        assert!(!text.contains("horse") && text.contains("•••"), "{text}");
    }
}
