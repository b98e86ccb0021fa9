//! The one path from a call to its answer: authenticate, authorise, once only, run, tell the record.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use deskmate_db::{Db, Tx};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::actor::{Access, Actor, Credential, Presence, Surface};
use super::cx::Cx;
use super::decode::{check_size, check_value};
use super::errand::{Errand, Hands};
use super::idempotency::Key;
use super::op::{Effect, Need, Op, Outcome, Prepared, Without};
use super::registry::Registry;
use crate::agents::{self, Passage};
use crate::compliance::Library;
use crate::gateway::{self, Reading};
use crate::policy::{self, Cache};
use crate::record::Keyring;
use crate::secret::Safe;
use crate::{Code, Error, Result, World, identity};

/// Who may see what mounted servers offer may ask something of them.
const LIST_TOOLS: &str = "gateway_list_tools";

/// A call as a surface hands it over.
#[derive(Clone)]
pub struct Call {
    /// What the caller brought to show who it is.
    pub credential: Credential,
    /// Over which surface it came.
    pub surface: Surface,
    /// The operation's full name.
    pub operation: String,
    /// The input, a JSON object.
    pub input: Value,
}

/// What comes back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The answer or "not yet".
    pub outcome: Outcome,
    /// Who acted.
    pub actor: Actor,
    /// What the desk answered to the act that the call intends, if it intends one.
    pub decision: Option<policy::Mode>,
    /// Whether it is the answer that an earlier call under the same key got: what that began is not begun again.
    pub again: bool,
}

/// The things outside the desk that are away now, by name. Whoever speaks to them keeps this current.
#[derive(Clone, Debug, Default)]
pub struct Away {
    names: Arc<RwLock<BTreeSet<&'static str>>>,
}

impl Away {
    /// Says whether something can be reached.
    pub fn set(&self, outside: &'static str, is_away: bool) {
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        if is_away {
            names.insert(outside)
        } else {
            names.remove(outside)
        };
    }

    /// Whether something is away.
    pub fn is_away(&self, outside: &str) -> bool {
        self.names.read().unwrap_or_else(PoisonError::into_inner).contains(outside)
    }
}

/// Whether agents must show who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// No agent is registered yet: a name is enough, and marked as unverified.
    Open,
    /// Every agent needs its token.
    Closed,
}

/// A desk: its store, its operations, time and chance. Cheap to clone.
#[derive(Clone)]
pub struct Desk {
    /// The store.
    pub db: Db,
    /// What can be done.
    pub registry: Arc<Registry>,
    /// Time and chance.
    pub world: Arc<dyn World>,
    /// The keys whose signatures are believed, and the one that signs.
    pub keys: Arc<Keyring>,
    /// The key of the secrets, and who names them.
    pub safe: Safe,
    /// What of outside is away now.
    pub away: Away,
    /// Whether callers without a credential may name themselves at all: only where every caller is on this machine.
    pub open_allowed: bool,
    /// The rulebook that was used last.
    pub rulebooks: Cache,
    /// The frameworks that agents can be checked against.
    pub frameworks: Library,
    /// The templates that agents can be made from.
    pub templates: crate::agents::template::Library,
    /// The server that this is.
    pub server: Arc<crate::agents::Server>,
    /// Who looks at what is outside.
    pub hands: Arc<dyn Hands>,
    /// The folders that a client narrows its calls to; see [`Desk::within`].
    pub within: Option<Arc<[String]>>,
    /// The connection over which calls come; see [`Desk::in_session`].
    pub session: Option<Arc<str>>,
}

impl Desk {
    /// The same desk for a client that narrows its calls to what lies in these folders, named by whole paths. What is open
    /// becomes less by it, and never more.
    #[must_use]
    pub fn within(&self, folders: Arc<[String]>) -> Self {
        Self { within: Some(folders), ..self.clone() }
    }

    /// The same desk for the calls of one connection, which have in common what they have read. Only a surface says which it is,
    /// never a caller.
    #[must_use]
    pub fn in_session(&self, session: Arc<str>) -> Self {
        Self { session: Some(session), ..self.clone() }
    }

    /// Does what a call asks, in one transaction.
    pub async fn call(&self, call: Call) -> Result<Answer> {
        let (op, missing) = self.admissible(&call)?;
        let mut answer = match self.decide_where(op, call).await {
            Ok(answer) => answer,
            Err(error) => return Err(self.with_denied_told(error).await?),
        };
        if let (Some(missing), Outcome::Done(Value::Object(fields)) | Outcome::NotYet(Value::Object(fields))) = (missing, &mut answer.outcome) {
            fields.insert("degraded".to_owned(), Value::from(missing));
        }
        Ok(answer)
    }

    /// Lets somebody ask something of a mounted server that is no call of a tool, unless that is forbidden. It is on the record before
    /// it is asked.
    pub async fn read_of_mount(&self, credential: Credential, mount: String, reading: Reading, session: Option<Arc<str>>) -> Result<Actor> {
        let desk = self.clone();
        let told = self.db.write(move |tx| {
            let actor = desk.admit(tx, &credential, LIST_TOOLS)?;
            gateway::read(&mut desk.cx(tx, actor.clone(), Surface::Mcp), &mount, &reading, session.as_deref())?;
            Ok(actor)
        });
        match told.await {
            Err(error) => Err(self.with_denied_told(error).await?),
            told => told,
        }
    }

    /// A refusal, once the record was told of the act that it denied, if it did.
    async fn with_denied_told(&self, mut error: Error) -> Result<Error> {
        if let Some(denied) = error.denied.take() {
            let desk = self.clone();
            self.db.write(move |tx| denied.tell(tx, &desk)).await?;
        }
        Ok(error)
    }

    /// Does what a call of a plain write asks, and looks at something more as the desk itself, in the same transaction. A look that fails
    /// undoes the call: after a failure of the store nothing of the transaction could be kept, and only so is it tried again.
    pub async fn call_and<T, F>(&self, call: Call, mut look: F) -> Result<(Answer, T)>
    where
        T: Send + 'static,
        F: FnMut(&mut Cx<'_, '_>, &Answer) -> Result<T> + Send + 'static,
    {
        let (op, _) = self.admissible(&call)?;
        let desk = self.clone();
        let write = move |tx: &mut Tx<'_>| {
            let answer = desk.run(tx, &op, &call, None)?;
            let more = look(&mut desk.cx(tx, Actor::system(), Surface::System), &answer)?;
            Ok((answer, more))
        };
        self.db.write(write).await
    }

    /// The operation of a call that may be tried, and what it has to do without.
    fn admissible(&self, call: &Call) -> Result<(Arc<Op>, Option<&'static str>)> {
        let Some(op) = self.registry.get(&call.operation).cloned() else {
            return Err(Error::not_found(format!("there is no operation {}", call.operation)).hint("`deskmate call --list` shows all"));
        };
        check_value(&call.input, 0)?;
        check_size(&call.input)?;
        match op.need().filter(|need| self.away.is_away(need.outside)) {
            None => Ok((op, None)),
            Some(Need { outside, without: Without::Closed { next_step } }) => {
                Err(Error::new(Code::Unavailable, format!("{outside} cannot be reached, and {} does nothing without it", call.operation)).hint(next_step))
            }
            Some(Need { without: Without::Open { missing }, .. }) => Ok((op, Some(missing))),
        }
    }

    /// Looks outside between its two steps, reads on a reader, writes on the writer.
    async fn decide_where(&self, op: Arc<Op>, call: Call) -> Result<Answer> {
        let desk = self.clone();
        if op.is_look() {
            let (own, wanted, asked) = (self.clone(), Arc::clone(&op), call.clone());
            let ask = move |tx: &mut Tx<'_>| own.wants(tx, &wanted, &asked);
            let wanted = if op.is_told_first() { self.db.write(ask).await? } else { self.db.read(ask).await? };
            let Some((errand, is_told)) = wanted else {
                return Err(Error::new(Code::Internal, "a look that looks at nothing"));
            };
            let found = if op.is_queued() { self.hands.quickly(errand).await? } else { Some(self.hands.run(errand).await?) };
            let Some(found) = found else {
                return self.db.write(move |tx| desk.late(tx, &op, &call)).await;
            };
            let found: Prepared = Arc::new(found);
            let tell = move |tx: &mut Tx<'_>| desk.run(tx, &op, &call, Some(&found));
            return if is_told { self.db.write(tell).await } else { self.db.read(tell).await };
        }
        if op.effect_of(&call.input) == Effect::Read {
            return self.db.read(move |tx| desk.run(tx, &op, &call, None)).await;
        }
        let prepared = if op.is_prepared() {
            let (desk, op, call) = (self.clone(), Arc::clone(&op), call.clone());
            self.db.read_slowly(move |tx| desk.prepare(tx, &op, &call)).await?
        } else {
            None
        };
        self.db.write(move |tx| desk.run(tx, &op, &call, prepared.as_ref())).await
    }

    /// What became of the answer to a call that began something.
    pub async fn follow(&self, call: &Call, answer: &Answer) -> Result<Option<Outcome>> {
        let (Some(op), Outcome::Done(said)) = (self.registry.get(&call.operation).cloned(), &answer.outcome) else { return Ok(None) };
        let (desk, actor, surface, said) = (self.clone(), answer.actor.clone(), call.surface, said.clone());
        self.db.read(move |tx| op.follow(&mut desk.cx(tx, actor.clone(), surface), &said)).await
    }

    /// Runs something of the desk's own, in one transaction.
    pub async fn act<T, F>(&self, surface: Surface, mut act: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Cx<'_, '_>) -> Result<T> + Send + 'static,
    {
        let desk = self.clone();
        self.db.write(move |tx| act(&mut desk.cx(tx, Actor::system(), surface))).await
    }

    /// A context in an open transaction.
    pub fn cx<'t, 'c>(&self, tx: &'t mut Tx<'c>, actor: Actor, surface: Surface) -> Cx<'t, 'c> {
        Cx::new(tx, actor, surface, self)
    }

    /// Who calls, and the input without what only says who calls.
    fn enter(&self, tx: &mut Tx<'_>, op: &Op, call: &Call) -> Result<(Actor, Value)> {
        let mut input = call.input.clone();
        let claims = identity::Claims::take(op, &mut input)?;
        let actor = match (&call.credential, op.access) {
            (Credential::Nobody | Credential::Named(_), Access::Public) => Actor::system(),
            (Credential::Local, Access::Public | Access::Local) => Actor::local(),
            (Credential::Nobody | Credential::Named(_), Access::Local) => return Err(not_local(op)),
            _ => identity::authenticate(tx, &call.credential, &claims, self.world.now(), self.open_allowed)?,
        };
        authorise(op, op.effect_of(&input), &actor)?;
        Ok((actor, input))
    }

    /// Who a credential is, if that actor may call an operation that only looks: for surfaces that read on without a call.
    pub fn admit(&self, tx: &mut Tx<'_>, credential: &Credential, operation: &str) -> Result<Actor> {
        let op = self.registry.get(operation).ok_or_else(|| Error::not_found(format!("there is no operation {operation}")))?;
        let actor = identity::authenticate(tx, credential, &identity::Claims::default(), self.world.now(), self.open_allowed)?;
        authorise(op, Effect::Read, &actor)?;
        Ok(actor)
    }

    /// What an operation needs from outside, and whether the record is told of it: a person's own looking is no news.
    fn wants(&self, tx: &mut Tx<'_>, op: &Op, call: &Call) -> Result<Option<(Errand, bool)>> {
        let (actor, mut input) = self.enter(tx, op, call)?;
        if op.takes_key() {
            Key::take(&mut input)?;
        }
        let is_told = op.effect == Effect::Write || (actor.is_agent() && !op.is_told_first());
        Ok(op.wants(&mut self.cx(tx, actor, call.surface), &input)?.map(|errand| (errand, is_told)))
    }

    /// Puts a look that takes long into the queue.
    fn late(&self, tx: &mut Tx<'_>, op: &Op, call: &Call) -> Result<Answer> {
        let (actor, input) = self.enter(tx, op, call)?;
        let mut cx = self.cx(tx, actor, call.surface);
        let outcome = op.late(&mut cx, input)?;
        Ok(Answer { outcome, actor: cx.actor, decision: cx.decision, again: false })
    }

    fn prepare(&self, tx: &mut Tx<'_>, op: &Op, call: &Call) -> Result<Option<Prepared>> {
        let (actor, mut input) = self.enter(tx, op, call)?;
        if op.takes_key() {
            Key::take(&mut input)?;
        }
        op.prepare(&mut self.cx(tx, actor, call.surface), &input)
    }

    fn run(&self, tx: &mut Tx<'_>, op: &Op, call: &Call, prepared: Option<&Prepared>) -> Result<Answer> {
        let (actor, mut input) = self.enter(tx, op, call)?;
        let mut cx = self.cx(tx, actor, call.surface);
        // What a browser signs names the digest of the whole body: with a secret in it, that would be a way to guess it.
        if let Credential::Signed { signed, .. } = &call.credential
            && !op.has_secret_input()
        {
            cx.signed = Some(signed.clone());
        }
        let effect = op.effect_of(&input);
        // A key on a call that only reads asks for nothing: reading twice is the same as reading once.
        let key = if op.takes_key() { Key::take(&mut input)? } else { None };
        if effect == Effect::Read {
            let outcome = op.run(&mut cx, input, prepared)?;
            return Ok(Answer { outcome, actor: cx.actor, decision: cx.decision, again: false });
        }
        let name = op.full_name();
        if let Some(key) = &key
            && let Some(answer) = key.answered(&mut cx, &name)?
        {
            // What was decided then is not decided again.
            return Ok(Answer { outcome: Outcome::Done(answer), actor: cx.actor, decision: None, again: true });
        }
        let approved = match agents::pass(&mut cx, op, &input, key.as_ref().map(Key::text))? {
            Passage::Free(approved) => approved,
            Passage::Refused(said) => return Ok(Answer { outcome: Outcome::Done(said), actor: cx.actor, decision: cx.decision, again: false }),
            Passage::Waits(said) => return Ok(Answer { outcome: Outcome::NotYet(said), actor: cx.actor, decision: cx.decision, again: false }),
        };
        let before = cx.tx.staged();
        let outcome = op.run(&mut cx, input, prepared)?;
        if let Some(request) = &approved {
            agents::passed(&mut cx, request)?;
        }
        if let Outcome::Done(answer) = &outcome {
            let untold = cx.tx.staged() == before;
            let no_news = cx.only_counted || op.is_untold(answer);
            if untold && !op.hints.idempotent && !no_news {
                return Err(Error::new(Code::Internal, format!("{name} changed something and told the record nothing")));
            }
            if let Some(key) = key.as_ref().filter(|_| !untold || !no_news) {
                key.keep(&mut cx, &name, &op.keepable(answer))?;
            }
        }
        Ok(Answer { outcome, actor: cx.actor, decision: cx.decision, again: false })
    }
}

/// Checks the operation's authorisation row.
fn authorise(op: &Op, effect: Effect, actor: &Actor) -> Result<()> {
    let ways = crate::request::WAYS;
    if let Some(scopes) = &actor.scopes {
        let effect = if effect == Effect::Read { "read" } else { "write" };
        let fits = |scope: &String| {
            let (name, limit) = scope.split_once(':').unwrap_or((scope, "write"));
            op.is_in_scope(name) && (limit == "write" || limit == effect)
        };
        if !scopes.iter().any(fits) {
            return Err(Error::forbidden(format!("this token's scopes do not cover {}", op.full_name())));
        }
    }
    if actor.presence == Presence::Unproved && effect == Effect::Write && op.access != Access::Public {
        return Err(Error::forbidden("a session's cookie alone only reads: what changes something is signed by the browser that signed in").hint(ways));
    }
    match op.access {
        Access::Public => Ok(()),
        Access::System if actor.is_system() => Ok(()),
        Access::System => Err(Error::forbidden("only the desk itself does this")),
        _ if actor.is_system() => Ok(()),
        Access::Local => Err(not_local(op)),
        Access::Anyone if actor.is_agent() => Ok(()),
        Access::Anyone => need_role(actor, if effect == Effect::Read { super::Role::Viewer } else { super::Role::Member }),
        Access::Person(_) | Access::Present(_) | Access::Decides(_) if actor.is_agent() => {
            Err(Error::forbidden(format!("{} needs a person's credential, and this is an agent's", op.full_name())).hint(ways))
        }
        Access::Person(role) => need_role(actor, role),
        Access::Present(role) | Access::Decides(role) => {
            need_role(actor, role)?;
            let named_later = matches!(op.access, Access::Decides(_)) && actor.scopes.is_some();
            if actor.presence == Presence::Shown || named_later {
                Ok(())
            } else {
                Err(Error::needs_presence("this needs you to show that you are there").hint(ways))
            }
        }
    }
}

fn not_local(op: &Op) -> Error {
    Error::forbidden(format!("{} is only for the account that the server runs under, over the server's local socket", op.full_name()))
        .hint("`deskmate claim` on a terminal of that account asks for it")
}

fn need_role(actor: &Actor, role: super::Role) -> Result<()> {
    if actor.role.is_some_and(|own| own >= role) {
        return Ok(());
    }
    Err(Error::forbidden(format!("this needs the role {} or more", role.name())))
}
