//! The desk's hands: what operations need from outside, and what plans do to files. Here the desk's words are put into
//! those of `deskmate-hands`, which knows nothing of the desk.
//!
//! - [`look`]: errands of operations that only look; [`page`]: pages of the web.
//! - [`make`]: what is asked for becomes steps; [`document`]: the bytes of those that are written.
//! - [`survey`]: looks at trees of any size.
//! - [`python`]: programs in the sandbox.
//! - [`act`]: steps are done, looked for after a crash, and taken back.

pub(crate) mod act;
mod document;
mod look;
pub(crate) mod make;
mod page;
pub(crate) mod python;
pub(crate) mod survey;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use deskmate_core::call::{Errand, Fetched, Hands, Tried};
use deskmate_core::notify::{Outcome, Tell};
use deskmate_core::workspace::{Look, Root, RootAccess};
use deskmate_core::{Code, Error, Result};
use deskmate_hands::files::Watch;
use deskmate_hands::sandbox::Runner;
use deskmate_hands::{files, web};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::app::App;
use crate::effects::notify::webhook::Refused;
use crate::effects::notify::{self, Outlets};

/// Looks at once: each may keep the disk busy.
const LOOKS_AT_ONCE: usize = 8;
/// Pages of the web that are read at once.
const PAGES_AT_ONCE: usize = 8;
/// Messages that somebody sends to try an outlet, at once.
const MESSAGES_AT_ONCE: usize = 4;
/// How long one look may take.
const LOOK_MAX: Duration = Duration::from_secs(20);
/// How long a server waits for its roots when it starts.
const OPEN_MAX: Duration = Duration::from_secs(5);
/// How long a look may take that can go on in the queue instead.
const LOOK_QUICK: Duration = Duration::from_secs(2);

/// Hands that reach this machine's files. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Machine {
    open: Arc<Mutex<HashMap<String, (Root, files::Root)>>>,
    looks: Arc<Semaphore>,
    pages: Arc<Semaphore>,
    messages: Arc<Semaphore>,
    /// Whoever writes audit files: one at a time, so that no line is written twice.
    audits: Arc<tokio::sync::Mutex<()>>,
    client: Arc<web::Client>,
    runner: Arc<Runner>,
    /// The desk's data directory, and what is kept outside of it: nobody who works with files gets at it.
    own: Arc<OnceLock<Vec<PathBuf>>>,
    /// Whoever keeps the connections to servers behind the desk.
    visitor: Arc<OnceLock<App>>,
    /// By which people are told.
    outlets: Arc<OnceLock<Outlets>>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self {
            open: Arc::default(),
            looks: Arc::new(Semaphore::new(LOOKS_AT_ONCE)),
            pages: Arc::new(Semaphore::new(PAGES_AT_ONCE)),
            messages: Arc::new(Semaphore::new(MESSAGES_AT_ONCE)),
            audits: Arc::default(),
            client: Arc::default(),
            runner: Arc::default(),
            own: Arc::default(),
            visitor: Arc::default(),
            outlets: Arc::default(),
        }
    }

    /// The turn to write to audit files.
    pub(crate) async fn audits(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.audits.lock().await
    }

    /// Says where the desk's own data lies.
    pub(crate) fn keeps(&self, own: Vec<PathBuf>) {
        self.own.get_or_init(|| own);
    }

    /// Where the desk's own data lies: its data directory first.
    pub(crate) fn own(&self) -> &[PathBuf] {
        self.own.get().map_or(&[], Vec::as_slice)
    }

    /// The desk's data directory.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.own().first().map(PathBuf::as_path)
    }

    /// What confines programs.
    pub(crate) fn runner(&self) -> Arc<Runner> {
        Arc::clone(&self.runner)
    }

    /// Says who keeps the connections to servers behind the desk.
    pub(crate) fn visits(&self, app: &App) {
        self.visitor.get_or_init(|| app.clone());
    }

    /// Says by which outlets people are told.
    pub(crate) fn tells(&self, outlets: &Outlets) {
        self.outlets.get_or_init(|| outlets.clone());
    }

    /// Sends a message to a person now, and answers what became of it: that it did not arrive is an answer, too.
    async fn tell(&self, tell: &Tell) -> Result<Value> {
        let starting = || Error::new(Code::Unavailable, "this server is only starting").hint("try again in a moment");
        let (app, outlets) = self.visitor.get().zip(self.outlets.get()).ok_or_else(starting)?;
        let unknown = || Error::not_found(format!("this server's configuration has no outlet {}", tell.channel.outlet));
        let outlet = outlets.find(&tell.channel.outlet).ok_or_else(unknown)?;
        let sent = notify::send(app, outlet, tell.channel.to.as_deref(), &tell.letter(outlets.base(app))).await;
        let failed = |error: String, permanent: bool| Outcome { arrived: false, error: Some(error), permanent, receipt: None };
        let outcome = match sent {
            Ok(receipt) => Outcome { arrived: true, error: None, permanent: false, receipt },
            Err(Refused::Gone) => failed("the receiver says that it is gone for good".to_owned(), true),
            Err(Refused::Never(error)) => failed(error, true),
            Err(Refused::Later { error, by }) => failed(format!("{error}, and asks to wait {} s", by.as_secs()), false),
            Err(Refused::Other(error)) => failed(error, false),
        };
        serde_json::to_value(outcome).map_err(|error| Error::new(Code::Internal, error.to_string()))
    }

    /// Opens roots before anybody works with files: where their paths lead now is where they are from here on. One that cannot be opened
    /// is when somebody asks for it.
    pub(crate) async fn open_all(&self, roots: Vec<Root>) {
        let machine = self.clone();
        let opened = tokio::task::spawn_blocking(move || {
            for root in &roots {
                if let Err(error) = machine.root(root) {
                    tracing::warn!(root = root.name, %error, "a root does not open");
                }
            }
        });
        // A file system that does not answer keeps no server from starting.
        drop(tokio::time::timeout(OPEN_MAX, opened).await);
    }

    /// The open folder of a root. It is opened once, and anew when what is in force says something else of it, or when another folder is
    /// in its place by now. Links in its path are followed the first time only.
    pub(crate) fn root(&self, root: &Root) -> Result<files::Root> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.get(&root.name).filter(|(known, _)| known.path == root.path);
        if let Some((known, folder)) = known
            && known == root
            && folder.is_in_place()
        {
            return Ok(folder.clone());
        }
        let access = match root.access {
            RootAccess::Read => files::Access::Read,
            RootAccess::Write => files::Access::Write,
        };
        let spec = files::RootSpec { name: root.name.clone(), path: PathBuf::from(&root.path), access, deny: root.deny.clone(), own: self.own().to_vec() };
        let folder = known.map_or_else(|| files::Root::open(&spec), |(_, folder)| folder.reopen(&spec)).map_err(fault)?;
        open.insert(root.name.clone(), (root.clone(), folder.clone()));
        Ok(folder)
    }

    /// Does one look on a thread, and gives up on it when it takes too long.
    async fn look(self, look: Box<Look>) -> Result<Value> {
        let permit = place(&self.looks).await?;
        let late = || Error::new(Code::Unavailable, "this look takes too long").hint("look at less: a smaller folder, or a lower depth");
        self.look_within(LOOK_MAX, permit, look).await?.ok_or_else(late)
    }

    /// Does one look on a thread; `None` if it is not done after this time.
    async fn look_within(self, time: Duration, permit: OwnedSemaphorePermit, look: Box<Look>) -> Result<Option<Value>> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let looked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let watch = Watch { cancel: Some(&*stopped), progress: None };
            look::run(&self.root(&look.root)?.within(&look.within), &look.path, &look.what, &watch)
        });
        let Ok(looked) = tokio::time::timeout(time, looked).await else {
            stop.store(true, Ordering::Relaxed);
            return Ok(None);
        };
        looked.map_err(|_| Error::new(Code::Internal, "a look at files ended unexpectedly"))?.map(Some)
    }
}

fn busy() -> Error {
    Error::new(Code::Unavailable, "too many looks are under way").hint("try again in a moment")
}

/// A place among those who look at the same time.
async fn place(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit> {
    tokio::time::timeout(LOOK_MAX, Arc::clone(places).acquire_owned()).await.map_err(|_| busy())?.map_err(|_| busy())
}

impl Hands for Machine {
    fn run(&self, errand: Errand) -> Fetched<'_> {
        let machine = self.clone();
        Box::pin(async move {
            match errand {
                Errand::Look(look) => machine.look(look).await,
                Errand::Sandbox => {
                    let looked = tokio::task::spawn_blocking(move || python::possible(&machine)).await;
                    looked.map_err(|_| Error::new(Code::Internal, "a look at this machine ended unexpectedly"))?.map(|()| Value::Null)
                }
                Errand::Mount(mount) => {
                    let app =
                        machine.visitor.get().ok_or_else(|| Error::new(Code::Unavailable, "this server is only starting").hint("try again in a moment"))?;
                    let found = app.gateway.visit(app, &mount).await?;
                    serde_json::to_value(found).map_err(|error| Error::new(Code::Internal, error.to_string()))
                }
                Errand::Pdf { text } => {
                    let _permit = place(&machine.looks).await?;
                    let made = tokio::task::spawn_blocking(move || document::make("pdf", &Value::String(text)));
                    let made = made.await.map_err(|error| Error::new(Code::Internal, error.to_string()))??;
                    Ok(serde_json::json!({ "base64": data_encoding::BASE64.encode(&made.bytes) }))
                }
                Errand::Connections => Ok(machine.visitor.get().map(|app| app.gateway.connections()).unwrap_or_default()),
                Errand::Page { url } => {
                    let _permit = place(&machine.pages).await?;
                    page::read(&machine.client, &url).await
                }
                Errand::Tell(tell) => {
                    let _permit = place(&machine.messages).await?;
                    machine.tell(&tell).await
                }
            }
        })
    }

    fn quickly(&self, errand: Errand) -> Tried<'_> {
        let machine = self.clone();
        Box::pin(async move {
            let look = match errand {
                Errand::Look(look) => look,
                other => return machine.run(other).await.map(Some),
            };
            // Where all places are taken by looks that take long, the queue is the right place to wait.
            match tokio::time::timeout(LOOK_QUICK, Arc::clone(&machine.looks).acquire_owned()).await {
                Ok(permit) => machine.look_within(LOOK_QUICK, permit.map_err(|_| busy())?, look).await,
                Err(_) => Ok(None),
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_the_place_of_a_root_is_not_followed() {
        let around = tempfile::tempdir().unwrap();
        let at = |name: &str| around.path().join(name);
        for (folder, text) in [("kept", "INSIDE"), ("elsewhere", "OUTSIDE")] {
            std::fs::create_dir(at(folder)).unwrap();
            std::fs::write(at(folder).join("file"), text).unwrap();
        }
        // The operator's own path may be a link: that was followed when it was opened first.
        std::os::unix::fs::symlink(at("kept"), at("notes")).unwrap();
        let root = |access| Root { name: "notes".to_owned(), path: at("notes").to_str().unwrap().to_owned(), access, deny: Vec::new() };
        let machine = Machine::new();
        let read = |access| {
            let content = files::read(&machine.root(&root(access))?, "file", files::Part::Whole, 100).map_err(fault)?;
            Ok::<_, Error>(String::from_utf8(content.bytes).unwrap())
        };
        assert_eq!(read(RootAccess::Write).unwrap(), "INSIDE");
        std::fs::remove_file(at("notes")).unwrap();
        std::os::unix::fs::symlink(at("elsewhere"), at("notes")).unwrap();
        assert_eq!(read(RootAccess::Write).unwrap(), "INSIDE");
        assert_eq!(read(RootAccess::Read).unwrap(), "INSIDE", "also where something else is said of the root");
        std::fs::rename(at("kept"), at("away")).unwrap();
        std::os::unix::fs::symlink(at("elsewhere"), at("kept")).unwrap();
        assert_eq!(read(RootAccess::Read).unwrap_err().code, Code::Forbidden);
        std::fs::remove_file(at("kept")).unwrap();
        std::fs::create_dir(at("kept")).unwrap();
        std::fs::write(at("kept/file"), "ANEW").unwrap();
        assert_eq!(read(RootAccess::Read).unwrap(), "ANEW", "a folder that was made anew is no link");
    }
}
