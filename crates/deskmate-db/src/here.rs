//! Work on the thread of whoever asks for it. The way to a thread of the store and back costs more than a small read, so one caller at a
//! time is spared it; the others go that way, and the runtime keeps its other threads.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::Result;
use crate::sqlite::{open_reader, read_one};
use crate::work::Work;

/// The one place for such work.
#[derive(Clone)]
pub(crate) struct Here {
    /// What reads there, and whose lock is the place. Nothing once the store is closed.
    reader: Arc<Mutex<Option<Connection>>>,
}

/// The place, while somebody has it.
pub(crate) struct Taken<'h> {
    reader: MutexGuard<'h, Option<Connection>>,
    runtime: Handle,
}

impl Here {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self { reader: Arc::new(Mutex::new(Some(open_reader(path)?))) })
    }

    /// The place, if nobody has it and the runtime can spare this thread.
    pub(crate) fn take(&self) -> Option<Taken<'_>> {
        let runtime = own_runtime()?;
        let reader = self.reader.try_lock().ok().filter(|reader| reader.is_some())?;
        Some(Taken { reader, runtime })
    }

    /// Does a read on this thread; gives it back if that cannot be.
    pub(crate) fn read(&self, work: Box<dyn Work>) -> Option<Box<dyn Work>> {
        let Some(taken) = self.take() else { return Some(work) };
        let Some(reader) = taken.reader.as_ref() else { return Some(work) };
        taken.let_others_go_on();
        read_one(reader, work);
        None
    }

    pub(crate) fn close(&self) {
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Taken<'_> {
    /// One thread of a runtime waits for the network for all of them, and that may have been this one, which now works or waits for the
    /// disk. Two tasks at once make the runtime wake another thread, which then waits in its place; one task alone would stay here.
    pub(crate) fn let_others_go_on(&self) {
        for _ in 0..2 {
            drop(self.runtime.spawn(async {}));
        }
    }
}

/// The runtime that this thread belongs to, if that has other threads.
pub(crate) fn own_runtime() -> Option<Handle> {
    Handle::try_current().ok().filter(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread && runtime.metrics().num_workers() > 1)
}
