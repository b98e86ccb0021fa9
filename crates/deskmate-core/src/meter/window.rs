//! A rolling window over numbered uses. What is in it is a run of numbers, so that counting is a subtraction, and only
//! when its oldest use has left it is the new oldest one searched. The last uses lie in the meter itself, which is written at
//! every use anyway; older ones lie in a table of their own, to which they go many at once.

use std::collections::VecDeque;

use deskmate_db::args;

use crate::Result;
use crate::call::Cx;

/// How long a use counts, in microseconds.
pub(super) const WINDOW: i64 = 3_600_000_000;
/// The microseconds of a day.
const DAY: i64 = 86_400_000_000;
/// A clock that is behind by no more than this, such as another node's, is waited for. If it is further behind, it was
/// set back, and the window's own time goes on from where it was.
const SKEW_MAX: i64 = 300_000_000;
/// So many uses go to the table at once.
pub(super) const RUN: usize = 32;

/// What the scope of a meter of calls of tools begins with; the domain follows. No domain has a space.
pub(super) const CALLS: &str = "call ";

/// A row of `meter`.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    /// The domain, empty for all domains together; after [`CALLS`] for calls of tools.
    pub(super) scope: String,
    /// The number of the next use.
    pub(super) next: i64,
    /// The number of the oldest use in the window, and its time.
    pub(super) first: i64,
    pub(super) first_at: i64,
    /// The time of the last use, and how far that time is ahead of the clock.
    pub(super) last_at: i64,
    pub(super) ahead: i64,
    /// Uses below this number are deleted.
    pub(super) pruned: i64,
    /// The day, and what was used up on it.
    pub(super) day: i64,
    pub(super) calls: i64,
    pub(super) cost: i64,
    pub(super) denied: i64,
    /// Until when attempts are put off.
    pub(super) held_until: i64,
    /// The times of the last uses, the last of them that of `next - 1`.
    pub(super) recent: VecDeque<i64>,
}

impl Meter {
    /// A meter that nothing was used up of.
    pub(super) fn new(scope: &str) -> Self {
        Self {
            scope: scope.to_owned(),
            next: 1,
            first: 1,
            first_at: 0,
            last_at: 0,
            ahead: 0,
            pruned: 1,
            day: 0,
            calls: 0,
            cost: 0,
            denied: 0,
            held_until: 0,
            recent: VecDeque::new(),
        }
    }

    /// The window's own time at a moment of the clock: it never goes back.
    pub(super) fn time(&self, now: i64) -> Time {
        let at = now.saturating_add(self.ahead);
        if at >= self.last_at {
            return Time { at, ahead: self.ahead };
        }
        let behind = self.last_at - at;
        Time { at: self.last_at, ahead: if behind > SKEW_MAX { self.ahead.saturating_add(behind) } else { self.ahead } }
    }

    /// How many uses are in the window.
    pub(super) fn used(&self) -> i64 {
        self.next - self.first
    }

    /// Begins a new day if it is one. A clock that was set back brings no old day's room back.
    pub(super) fn turn(&mut self, now: i64) {
        let today = now.div_euclid(DAY);
        if today > self.day {
            (self.day, self.calls, self.cost, self.denied) = (today, 0, 0, 0);
        } else if today < self.day - 1 {
            self.day = today;
        }
    }

    /// Lets go of the uses that have left the window.
    pub(super) fn slide(&mut self, cx: &mut Cx<'_, '_>, agent: &str, at: i64) -> Result<()> {
        let cut = at.saturating_sub(WINDOW);
        if self.first < self.next && self.first_at <= cut {
            (self.first, self.first_at) = self.first_after(cx, agent, cut)?;
            while self.recent_from() < self.first && self.recent.pop_front().is_some() {}
        }
        Ok(())
    }

    /// The number of the first use that lies in the meter itself.
    fn recent_from(&self) -> i64 {
        self.next - i64::try_from(self.recent.len()).unwrap_or(i64::MAX)
    }

    /// The oldest uses that lie in the meter itself, once there are enough of them: the number of the first, and their times.
    /// They lie there no longer. When that is differs between agents, so that many that act alike do not all come at once.
    pub(super) fn take_run(&mut self, agent: &str) -> Option<(i64, Vec<i64>)> {
        let apart = agent.bytes().map(usize::from).sum::<usize>() % RUN;
        let from = self.recent_from();
        (self.recent.len() >= RUN + apart).then(|| (from, self.recent.drain(..RUN).collect()))
    }

    /// How many uses are younger than a time within the window.
    pub(super) fn used_after(&self, cx: &mut Cx<'_, '_>, agent: &str, cut: i64) -> Result<i64> {
        if self.used() == 0 || self.first_at > cut {
            return Ok(self.used());
        }
        if self.last_at <= cut {
            return Ok(0);
        }
        Ok(self.next - self.first_after(cx, agent, cut)?.0)
    }

    /// Whether a use in the window was at exactly this time.
    pub(super) fn has_use_at(&self, cx: &mut Cx<'_, '_>, agent: &str, at: i64) -> Result<bool> {
        if self.used() == 0 || at <= self.first_at || at > self.last_at {
            return Ok(self.used() > 0 && at == self.first_at);
        }
        Ok(self.first_after(cx, agent, at - 1)?.1 == at)
    }

    /// Whether what was used up at a moment of the clock is among what counts for the day.
    pub(super) fn is_day_of(&self, moment: i64) -> bool {
        moment.div_euclid(DAY) == self.day
    }

    /// The number and the time of the first use after a time; `first` is known to be no later than it. Times never fall
    /// as numbers grow, so the steps double until one is past it, and then halve.
    fn first_after(&self, cx: &mut Cx<'_, '_>, agent: &str, cut: i64) -> Result<(i64, i64)> {
        let (mut before, mut step) = (self.first, 1);
        let mut found = (self.next, 0);
        while before + step < self.next {
            match self.at(cx, agent, before + step)? {
                Some(at) if at > cut => {
                    found = (before + step, at);
                    break;
                }
                _ => (before, step) = (before + step, step * 2),
            }
        }
        while found.0 - before > 1 {
            let middle = before + (found.0 - before) / 2;
            match self.at(cx, agent, middle)? {
                Some(at) if at > cut => found = (middle, at),
                _ => before = middle,
            }
        }
        Ok(found)
    }

    /// When a use was; `None` if it is deleted, which happens only to those that have left the window.
    pub(super) fn at(&self, cx: &mut Cx<'_, '_>, agent: &str, number: i64) -> Result<Option<i64>> {
        if let Ok(place) = usize::try_from(number - self.recent_from()) {
            return Ok(self.recent.get(place).copied());
        }
        let row = cx.tx.optional("select at from meter_use where agent = $1 and scope = $2 and number = $3", args![agent, self.scope, number])?;
        Ok(row.map(|row| row.get(0)).transpose()?)
    }

    /// When there is room again for one more of `cap`.
    pub(super) fn room_at(&self, cx: &mut Cx<'_, '_>, agent: &str, at: i64, cap: i64) -> Result<i64> {
        if cap <= 0 {
            return Ok(at + WINDOW);
        }
        let leaves = if self.used() == cap { Some(self.first_at) } else { self.at(cx, agent, self.next - cap)? };
        Ok(leaves.unwrap_or(at) + WINDOW)
    }

    /// Writes one more use down; its number.
    pub(super) fn add(&mut self, time: Time, cost: i64) -> i64 {
        let number = self.next;
        if self.first == number {
            self.first_at = time.at;
        }
        self.next += 1;
        self.recent.push_back(time.at);
        (self.last_at, self.ahead) = (time.at, time.ahead);
        self.calls += 1;
        self.cost = self.cost.saturating_add(cost);
        number
    }
}

/// A moment of the window's own time, and how far it is ahead of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) at: i64,
    pub(super) ahead: i64,
}

/// How long it is until the next day begins (UTC), in microseconds.
pub(super) fn until_tomorrow(now: i64) -> i64 {
    DAY - now.rem_euclid(DAY)
}
