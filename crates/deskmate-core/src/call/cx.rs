//! The context of one call.

use std::sync::Arc;

use deskmate_db::Tx;

use super::actor::{Actor, Signed, Surface};
use super::pipeline::Desk;
use super::registry::Registry;
use crate::agents::{Server, template};
use crate::compliance::Library;
use crate::policy::{self, Cache, Rulebook};
use crate::record::{Event, Keyring};
use crate::secret::Safe;
use crate::{Result, World, protection};

/// What an operation is given: who acts, the open transaction, time and chance. There is nothing else to reach for.
pub struct Cx<'t, 'c> {
    /// The open transaction.
    pub tx: &'t mut Tx<'c>,
    /// Who acts.
    pub actor: Actor,
    /// Over which surface.
    pub surface: Surface,
    /// The keys whose signatures are believed, and the one that signs.
    pub keys: Arc<Keyring>,
    /// The operations that the desk has.
    pub(crate) registry: Arc<Registry>,
    /// The key of the secrets, and who names them.
    pub(crate) safe: Safe,
    /// The frameworks that agents can be checked against.
    pub(crate) frameworks: Library,
    /// The templates that agents can be made from.
    pub(crate) templates: template::Library,
    /// The server that does this.
    pub(crate) server: Arc<Server>,
    /// The rulebook that was used last.
    pub(crate) rulebooks: Cache,
    /// The rulebook in force, once this call asked for it.
    pub(crate) rulebook: Option<Arc<Rulebook>>,
    /// The folders on the desk's machine that the caller's client narrows itself to, if it does.
    pub(crate) within: Option<Arc<[String]>>,
    /// The connection over which the call came, if it came over one that lasts.
    pub(crate) session: Option<Arc<str>>,
    /// What the caller's browser signed. Every event of the call keeps it.
    pub(crate) signed: Option<Signed>,
    /// What the desk answered to the act that this call intends, if it intends one; of several the most restrictive.
    pub(crate) decision: Option<policy::Mode>,
    /// What the call tried was counted and is not told, because it is no news.
    pub(crate) only_counted: bool,
    world: Arc<dyn World>,
    now: i64,
}

impl<'t, 'c> Cx<'t, 'c> {
    /// A context of a desk over an open transaction. The whole call happens at one moment.
    pub(super) fn new(tx: &'t mut Tx<'c>, actor: Actor, surface: Surface, desk: &Desk) -> Self {
        Self {
            tx,
            actor,
            surface,
            keys: Arc::clone(&desk.keys),
            registry: Arc::clone(&desk.registry),
            safe: desk.safe.clone(),
            rulebooks: desk.rulebooks.clone(),
            frameworks: desk.frameworks.clone(),
            templates: desk.templates.clone(),
            server: Arc::clone(&desk.server),
            rulebook: None,
            within: desk.within.clone(),
            session: desk.session.clone(),
            signed: None,
            decision: None,
            only_counted: false,
            now: desk.world.now(),
            world: Arc::clone(&desk.world),
        }
    }

    /// The moment of the call: microseconds since 1970 in UTC.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// A fresh id that sorts by time.
    pub fn new_id(&self) -> String {
        self.world.new_id()
    }

    /// 256 unguessable bits.
    pub fn secret(&self) -> [u8; 32] {
        self.world.secret()
    }

    /// Notes what the desk answered to an intended act, for whoever counts and logs calls.
    pub(crate) fn decided(&mut self, mode: policy::Mode) {
        self.decision = Some(self.decision.map_or(mode, |earlier| earlier.min(mode)));
    }

    /// Tells the record what happened. It is sealed with the changes of this call, or neither is.
    pub fn emit(&mut self, mut event: Event) -> Result<()> {
        event.signed.clone_from(&self.signed);
        let actor = self.actor.clone();
        self.emit_as(&actor, event)
    }

    /// Tells the record what somebody else's row says happened: only for edges that bring in foreign rows.
    pub fn emit_as(&mut self, actor: &Actor, event: Event) -> Result<()> {
        let event = protection::trace(self, event);
        let entry = event.entry(actor, self.surface, self.now, self.world.as_ref())?;
        self.tx.stage(Box::new(entry));
        Ok(())
    }
}
