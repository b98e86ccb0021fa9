//! The desk's hands: what operations need from outside, and what plans do to files. Here the desk's words are put into
//! those of `deskmate-hands`, which knows nothing of the desk.
//!
//! - [`look`]: errands of operations that only look.
//! - [`make`]: what is asked for becomes steps; [`document`]: the bytes of those that are written.
//! - [`act`]: steps are done, looked for after a crash, and taken back.

pub(crate) mod act;
mod document;
mod look;
pub(crate) mod make;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deskmate_core::call::{Errand, Fetched, Hands};
use deskmate_core::workspace::{Root, RootAccess};
use deskmate_core::{Code, Error, Result};
use deskmate_hands::files;
use tokio::sync::Semaphore;

/// Looks at once: each may keep the disk busy.
const LOOKS_AT_ONCE: usize = 8;
/// How long one look may take.
const LOOK_MAX: Duration = Duration::from_secs(20);

/// Hands that reach this machine's files. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Machine {
    open: Arc<Mutex<HashMap<String, (Root, files::Root)>>>,
    looks: Arc<Semaphore>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self { open: Arc::default(), looks: Arc::new(Semaphore::new(LOOKS_AT_ONCE)) }
    }

    /// The open folder of a root. It is opened once, and anew when what is in force says something else of it.
    pub(crate) fn root(&self, root: &Root) -> Result<files::Root> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, folder)) = open.get(&root.name)
            && known == root
        {
            return Ok(folder.clone());
        }
        let access = match root.access {
            RootAccess::Read => files::Access::Read,
            RootAccess::Write => files::Access::Write,
        };
        let spec = files::RootSpec { name: root.name.clone(), path: PathBuf::from(&root.path), access, deny: root.deny.clone() };
        let folder = files::Root::open(&spec).map_err(fault)?;
        open.insert(root.name.clone(), (root.clone(), folder.clone()));
        Ok(folder)
    }
}

impl Hands for Machine {
    fn run(&self, errand: Errand) -> Fetched<'_> {
        let machine = self.clone();
        Box::pin(async move {
            let busy = || Error::new(Code::Unavailable, "too many looks at files are under way").hint("try again in a moment");
            let permit = tokio::time::timeout(LOOK_MAX, Arc::clone(&machine.looks).acquire_owned()).await.map_err(|_| busy())?.map_err(|_| busy())?;
            let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
            let stopped = Arc::clone(&stop);
            let looked = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                match errand {
                    Errand::Look(look) => look::run(&machine.root(&look.root)?, &look, &stopped),
                }
            });
            let Ok(looked) = tokio::time::timeout(LOOK_MAX, looked).await else {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
                return Err(Error::new(Code::Unavailable, "this look takes too long").hint("look at less: a smaller folder, or a lower depth"));
            };
            looked.map_err(|_| Error::new(Code::Internal, "a look at files ended unexpectedly"))?
        })
    }
}

/// A fault of a file, as callers of the desk know faults.
pub(crate) fn fault(fault: files::Fault) -> Error {
    use files::Code as F;
    match fault.code {
        F::NotFound => Error::not_found(fault.message),
        F::Invalid | F::NotAFile | F::NotAFolder | F::TooLarge | F::TooDeep => Error::invalid("path", fault.message),
        F::Denied | F::Escapes | F::ThroughLink | F::ReadOnly | F::Reserved => Error::forbidden(fault.message),
        F::Exists | F::Changed | F::NotEmpty | F::Cancelled | F::Irreversible => Error::conflict(fault.message),
        F::CrossDevice | F::Full | F::Unsupported | F::Io => Error::new(Code::Unavailable, fault.message),
    }
}
