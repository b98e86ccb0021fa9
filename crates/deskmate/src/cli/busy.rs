//! A sign of life for people at a terminal while something takes longer than a second.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// What is done sooner needs no sign.
const AFTER: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// Whether somebody shows already that something goes on: what it does inside needs no sign of its own.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// While this lives, something goes on.
pub(super) struct Busy {
    taken: bool,
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

/// Shows on a terminal what is being done, once it takes long.
pub(super) fn busy(what: &'static str) -> Busy {
    let taken = !TAKEN.swap(true, Ordering::Relaxed);
    let shown = (taken && std::io::stderr().is_terminal()).then(|| {
        let (end, ended) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            if ended.recv_timeout(AFTER) == Err(RecvTimeoutError::Timeout) {
                let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed}").unwrap_or_else(|_| ProgressStyle::default_spinner());
                let sign = ProgressBar::new_spinner().with_style(style).with_message(what).with_elapsed(AFTER);
                sign.enable_steady_tick(TICK);
                // It ends when the other end is dropped.
                let _ended = ended.recv();
                sign.finish_and_clear();
            }
        });
        (end, thread)
    });
    Busy { taken, shown }
}

/// Keeps signs away, for what draws the whole screen itself.
pub(super) fn quiet() -> Busy {
    Busy { taken: !TAKEN.swap(true, Ordering::Relaxed), shown: None }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.shown.take() {
            drop(end);
            // The line is cleared before anything else is printed.
            drop(thread.join());
        }
        if self.taken {
            TAKEN.store(false, Ordering::Relaxed);
        }
    }
}
