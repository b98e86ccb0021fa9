//! The loop of the full screen: keys in, orders out, a look at the server every second or two.

use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use serde_json::{Value, json};

use super::super::busy::quiet;
use super::super::client::Client;
use super::super::{Failure, Global};
use super::bell::{Bell, requests};
use super::draw::draw;
use super::screen::{Order, Screen};
use super::text::part;
use super::{Filter, PAGE, PAGES_MAX, plan};
use crate::config;
use crate::world::wall as now;

/// How often the server is looked at.
const LOOK: Duration = Duration::from_millis(1_500);

pub(super) fn run(global: &Global, filter: Filter, bell: bool) -> Result<(), Failure> {
    let client = Client::present(global)?;
    let mut live = Live { client, screen: Screen::new(filter.view, filter.search.clone()), filter, bell, seen: Bell::default(), looked: None };
    // The first look fails before the screen is taken, where its message can be read.
    live.reload()?;
    let mut terminal = ratatui::init();
    let done = live.run(&mut terminal);
    ratatui::restore();
    live.client.leave();
    done
}

struct Live {
    client: Client,
    filter: Filter,
    screen: Screen,
    bell: bool,
    /// What was seen so far.
    seen: Bell,
    looked: Option<Instant>,
}

impl Live {
    fn run(&mut self, terminal: &mut DefaultTerminal) -> Result<(), Failure> {
        let _own = quiet();
        loop {
            self.refresh();
            terminal.draw(|frame| draw(frame, &self.screen, now()))?;
            if !event::poll(LOOK)? {
                continue;
            }
            let Event::Key(key) = event::read()? else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            match self.screen.press(key, now()) {
                None => {}
                Some(Order::Quit) => return Ok(()),
                Some(Order::Edit { request }) => self.edit(terminal, &request),
                Some(order) => self.carry_out(order),
            }
        }
    }

    /// Reads the list again when it is time, and the details of what is under the cursor. A failure is shown, not fatal.
    fn refresh(&mut self) {
        if (self.screen.is_near_the_end() || self.looked.is_none_or(|at| at.elapsed() >= LOOK))
            && let Err(failure) = self.reload()
        {
            self.screen.said = Some((failure.text(), true));
            return;
        }
        let wanted = self.screen.current().map(|request| (part(request, "request"), part(request, "version")));
        let shown = self.screen.details.as_ref().map(|shown| (part(shown, "request"), part(shown, "version")));
        if wanted != shown {
            let details = wanted.and_then(|(request, _)| plan::get(&self.client, &request).ok());
            self.screen.show(details);
        }
    }

    fn reload(&mut self) -> Result<(), Failure> {
        self.looked = Some(Instant::now());
        self.filter.view = self.screen.view;
        self.filter.search.clone_from(&self.screen.search);
        let asked = self.filter.input();
        let page = self.client.call("desk_request_list", &asked)?;
        if self.seen.hears(&asked, &page).is_some() && self.bell {
            ring();
        }
        let client = &self.client;
        let (rows, more) = read_on(page, self.screen.wanted(), |cursor| {
            let further = Filter { limit: Some(PAGE), cursor: Some(cursor), ..self.filter.clone() };
            client.call("desk_request_list", &further.input())
        })?;
        self.screen.take(rows, more);
        Ok(())
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Call { operation, ref input, ref done } => match self.client.call(operation, input) {
                Ok(_) => {
                    let said = done.clone();
                    self.screen.done(&order, &said);
                    self.looked = None;
                }
                Err(failure) => self.tell(order, &failure),
            },
            Order::ShowPresence { passphrase, then } => match self.client.show_presence(&passphrase) {
                Ok(true) => self.carry_out(*then),
                Ok(false) => self.screen.said = Some(("The passphrase is wrong; nothing was decided.".to_owned(), true)),
                Err(failure) => self.screen.said = Some((failure.text(), true)),
            },
            Order::Reload => self.looked = None,
            Order::Edit { .. } | Order::Quit => {}
        }
    }

    fn tell(&mut self, order: Order, failure: &Failure) {
        let needs_presence = matches!(failure, Failure::Desk(error) if error.needs_presence);
        self.screen.failed(order, needs_presence, &failure.text());
        self.looked = None;
    }

    /// Opens the arguments in the person's editor and approves what comes back, if it was changed.
    fn edit(&mut self, terminal: &mut DefaultTerminal, request: &Value) {
        ratatui::restore();
        let edited = in_editor(request.pointer("/act/arguments").unwrap_or(&Value::Null));
        *terminal = ratatui::init();
        match edited {
            Err(failure) => self.screen.said = Some((failure.text(), true)),
            Ok(None) => self.screen.said = Some(("Nothing was changed, and nothing approved.".to_owned(), false)),
            Ok(Some(edits)) => {
                let input = json!({ "request": part(request, "request"), "expected_digest": part(request, "digest"), "edits": edits });
                let done = format!("Approved with your edits: {}", part(request, "title"));
                self.carry_out(Order::Call { operation: "desk_request_approve", input, done });
            }
        }
    }
}

/// The requests of a page, and of those after it until there are as many as are wanted; and whether there are more.
fn read_on(mut page: Value, wanted: usize, mut after: impl FnMut(String) -> Result<Value, Failure>) -> Result<(Vec<Value>, bool), Failure> {
    let mut rows = requests(&page).to_vec();
    for _ in 0..PAGES_MAX {
        let Some(next) = page.get("next_cursor").and_then(Value::as_str).filter(|_| rows.len() < wanted) else { break };
        page = after(next.to_owned())?;
        rows.extend_from_slice(requests(&page));
    }
    Ok((rows, page.get("next_cursor").is_some()))
}

fn ring() {
    // Without a bell there is still the list.
    drop(std::io::stderr().write_all(b"\x07"));
}

fn in_editor(arguments: &Value) -> Result<Option<Value>, Failure> {
    let mut file = tempfile::Builder::new().prefix("deskmate-").suffix(".json").tempfile()?;
    file.write_all(serde_json::to_string_pretty(arguments).unwrap_or_default().as_bytes())?;
    file.flush()?;
    let editor = config::env("VISUAL").or_else(|| config::env("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let status = Command::new(program).args(words).arg(file.path()).status();
    let status = status.map_err(|error| Failure::Other(format!("the editor {program:?} did not start: {error}: set EDITOR")))?;
    if !status.success() {
        return Err(Failure::Other(format!("{program} ended without saving; nothing was approved")));
    }
    let text = std::fs::read(file.path())?;
    let edited = deskmate_core::call::parse_strict(&text)?;
    Ok((edited != *arguments).then_some(edited))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_on_as_far_as_it_is_wanted() {
        let page = |from: usize| {
            let rows: Vec<Value> = (from..from + 50).map(|number| json!({ "request": format!("r{number}") })).collect();
            let next = (from < 200).then(|| (from + 50).to_string());
            json!({ "requests": rows, "next_cursor": next })
        };
        let without_null = |mut page: Value| {
            if page["next_cursor"].is_null() {
                page.as_object_mut().unwrap().remove("next_cursor");
            }
            page
        };
        for (wanted, count, more, calls) in [(0, 50, true, 0), (50, 50, true, 0), (51, 100, true, 1), (250, 250, false, 4), (9_999, 250, false, 4)] {
            let mut asked = 0;
            let (rows, is_more) = read_on(page(0), wanted, |cursor| {
                asked += 1;
                Ok(without_null(page(cursor.parse().unwrap())))
            })
            .unwrap();
            assert_eq!((rows.len(), is_more, asked), (count, more, calls), "{wanted}");
            assert_eq!(rows.last().map(|row| part(row, "request")), Some(format!("r{}", count - 1)));
        }
        assert!(read_on(page(0), 51, |_| Err(Failure::Other("away".to_owned()))).is_err(), "a failure is told, and no end");
    }
}
