//! The declaration of an operation, from which every surface is made.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::actor::{Access, Role};
use super::cx::Cx;
use super::decode::parse_strict;
use super::errand::Errand;
use crate::{Code, Error, Result};

/// A named group of operations that can be mounted alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Toolset {
    /// Messages, tasks and reservations between actors.
    Bridge,
    /// Intentions, decisions, trust and handoffs.
    Cowork,
    /// Files beneath roots, and plans that change them.
    Workspace,
    /// Other MCP servers behind the desk.
    Gateway,
    /// Agents that the desk runs.
    Agents,
    /// What clients' hooks ask before and after an agent's own tool calls. Mounted only by name.
    Hook,
    /// The desk itself: record, jobs, identity. Served to people and their programs, not mounted for agents.
    Desk,
    /// Fixtures for protocol tests; never part of a released binary.
    Conformance,
}

impl Toolset {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bridge => "bridge",
            Self::Cowork => "cowork",
            Self::Workspace => "workspace",
            Self::Gateway => "gateway",
            Self::Agents => "agents",
            Self::Hook => "hook",
            Self::Desk => "desk",
            Self::Conformance => "conformance",
        }
    }
}

/// The names that toolsets have or will have: nothing else that is served may be called so.
pub const RESERVED: &[&str] = &[
    "bridge",
    "cowork",
    "workspace",
    "gateway",
    "desk",
    "conformance",
    "agents",
    "board",
    "calendar",
    "guard",
    "vault",
    "transcripts",
    "whatsapp",
    "hook",
    "all",
];

/// Whether an operation changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It only looks.
    Read,
    /// It changes rows and tells the record.
    Write,
}

/// What a client may expect of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hints {
    /// It may undo or overwrite something.
    pub destructive: bool,
    /// Calling it twice is the same as once.
    pub idempotent: bool,
    /// It reaches beyond the desk.
    pub open_world: bool,
}

/// Something outside the desk that an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Need {
    /// Its name, for example `smtp`.
    pub outside: &'static str,
    /// What happens without it.
    pub without: Without,
}

/// What an operation does when something outside is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Without {
    /// It does nothing and names the next step.
    Closed {
        /// What the caller should do.
        next_step: &'static str,
    },
    /// It does what it can, and its answer says in `degraded` what is missing.
    Open {
        /// What is missing.
        missing: &'static str,
    },
}

/// The answer of an operation that can wait.
pub enum Wait<T> {
    /// Here it is.
    Ready(T),
    /// Nothing yet; this is the answer if the time runs out.
    NotYet(T),
}

/// An answer on its way to a surface.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The answer.
    Done(Value),
    /// Nothing yet: a surface may wait and ask again.
    NotYet(Value),
}

/// What a slow first step worked out, before the transaction that writes.
pub(crate) type Prepared = Arc<dyn Any + Send + Sync>;
type Run = dyn Fn(&mut Cx<'_, '_>, Value, Option<&Prepared>) -> Result<Outcome> + Send + Sync;
type Prepare = dyn Fn(&mut Cx<'_, '_>, &Value) -> Result<Prepared> + Send + Sync;
type Follow = dyn Fn(&mut Cx<'_, '_>, &Value) -> Result<Outcome> + Send + Sync;
type Wants = dyn Fn(&mut Cx<'_, '_>, &Value) -> Result<Errand> + Send + Sync;
type Late = dyn Fn(&mut Cx<'_, '_>, Value) -> Result<Outcome> + Send + Sync;

/// What the input type says of itself.
struct Described {
    description: String,
    schema: Value,
    /// It has a use of its own for an `agent_id`.
    own_agent_id: bool,
}

/// One thing that can be done.
pub struct Op {
    /// Its name within its toolset.
    pub name: &'static str,
    /// Its toolset.
    pub toolset: Toolset,
    /// Whether it may change anything; [`Op::effect_of`] tells it for one call.
    pub effect: Effect,
    /// Whether it may hold the caller for a while.
    pub waits: bool,
    /// Who may call it.
    pub access: Access,
    /// What a client may expect.
    pub hints: Hints,
    input_schema: fn() -> Value,
    output_schema: fn() -> Value,
    described: OnceLock<Described>,
    run: Box<Run>,
    prepare: Option<Box<Prepare>>,
    wants: Option<Box<Wants>>,
    follow: Option<Box<Follow>>,
    follow_when: Option<fn(&Value) -> bool>,
    asked_again: bool,
    late: Option<Box<Late>>,
    writes_when: Option<fn(&Value) -> bool>,
    secrets: &'static [&'static str],
    secret_input: &'static [&'static str],
    needs: Option<Need>,
    names_caller: bool,
    untold_when: Option<fn(&Value) -> bool>,
    told_first: bool,
    scope: Option<&'static str>,
}

impl Op {
    /// An operation that only looks.
    pub fn read<I, O>(toolset: Toolset, name: &'static str, run: fn(&mut Cx<'_, '_>, I) -> Result<O>) -> Self
    where
        I: DeserializeOwned + JsonSchema + 'static,
        O: Serialize + JsonSchema + 'static,
    {
        let hints = Hints { destructive: false, idempotent: true, open_world: false };
        Self::declare::<I, O>(toolset, name, Effect::Read, hints, Box::new(move |cx, input, _| Ok(Outcome::Done(encode(&run(cx, decode(input)?)?)?))))
    }

    /// An operation that changes something. Unless told otherwise it adds and does not overwrite.
    pub fn write<I, O>(toolset: Toolset, name: &'static str, run: fn(&mut Cx<'_, '_>, I) -> Result<O>) -> Self
    where
        I: DeserializeOwned + JsonSchema + 'static,
        O: Serialize + JsonSchema + 'static,
    {
        let hints = Hints { destructive: false, idempotent: false, open_world: false };
        Self::declare::<I, O>(toolset, name, Effect::Write, hints, Box::new(move |cx, input, _| Ok(Outcome::Done(encode(&run(cx, decode(input)?)?)?))))
    }

    /// A read that may hold until there is something to answer.
    pub fn wait<I, O>(toolset: Toolset, name: &'static str, run: fn(&mut Cx<'_, '_>, I) -> Result<Wait<O>>) -> Self
    where
        I: DeserializeOwned + JsonSchema + 'static,
        O: Serialize + JsonSchema + 'static,
    {
        let hints = Hints { destructive: false, idempotent: true, open_world: false };
        let run: Box<Run> = Box::new(move |cx, input, _| match run(cx, decode(input)?)? {
            Wait::Ready(answer) => Ok(Outcome::Done(encode(&answer)?)),
            Wait::NotYet(answer) => Ok(Outcome::NotYet(encode(&answer)?)),
        });
        Self { waits: true, ..Self::declare::<I, O>(toolset, name, Effect::Read, hints, run) }
    }

    /// A write with a slow first step, such as checking a passphrase. That step only reads, and does not hold the writer.
    pub fn prepared<I, P, O>(
        toolset: Toolset,
        name: &'static str,
        prepare: fn(&mut Cx<'_, '_>, &I) -> Result<P>,
        run: fn(&mut Cx<'_, '_>, I, &P) -> Result<O>,
    ) -> Self
    where
        I: DeserializeOwned + JsonSchema + 'static,
        P: Any + Send + Sync,
        O: Serialize + JsonSchema + 'static,
    {
        let hints = Hints { destructive: false, idempotent: false, open_world: false };
        let run: Box<Run> = Box::new(move |cx, input, prepared| {
            let prepared = prepared.and_then(|prepared| prepared.downcast_ref::<P>());
            let prepared = prepared.ok_or_else(|| Error::new(Code::Internal, "the first step of this operation did not run"))?;
            Ok(Outcome::Done(encode(&run(cx, decode(input)?, prepared)?)?))
        });
        let prepare: Box<Prepare> = Box::new(move |cx, input| Ok(Arc::new(prepare(cx, &decode(input.clone())?)?) as Prepared));
        Self { prepare: Some(prepare), ..Self::declare::<I, O>(toolset, name, Effect::Write, hints, run) }
    }

    /// A look at something outside: `wants` says at what, and `tell` makes an answer of what was found there. It changes
    /// nothing; that an agent looked is told to the record.
    pub fn look<I, F, O>(
        toolset: Toolset,
        name: &'static str,
        wants: fn(&mut Cx<'_, '_>, &I) -> Result<Errand>,
        tell: fn(&mut Cx<'_, '_>, I, F) -> Result<O>,
    ) -> Self
    where
        I: DeserializeOwned + JsonSchema + 'static,
        F: DeserializeOwned + 'static,
        O: Serialize + JsonSchema + 'static,
    {
        let hints = Hints { destructive: false, idempotent: true, open_world: false };
        let run: Box<Run> = Box::new(move |cx, input, found| {
            let found = found.and_then(|found| found.downcast_ref::<Value>());
            let found = found.ok_or_else(|| Error::new(Code::Internal, "nobody looked before this operation told of it"))?;
            let found = F::deserialize(found).map_err(|error| Error::new(Code::Internal, format!("what was found is unreadable: {error}")))?;
            Ok(Outcome::Done(encode(&tell(cx, decode(input)?, found)?)?))
        });
        let wants: Box<Wants> = Box::new(move |cx, input| wants(cx, &decode(input.clone())?));
        Self { wants: Some(wants), ..Self::declare::<I, O>(toolset, name, Effect::Read, hints, run) }
    }

    fn declare<I: JsonSchema, O: JsonSchema>(toolset: Toolset, name: &'static str, effect: Effect, hints: Hints, run: Box<Run>) -> Self {
        let access = if toolset == Toolset::Desk { Access::Person(Role::Viewer) } else { Access::Anyone };
        Self {
            name,
            toolset,
            effect,
            waits: false,
            access,
            hints,
            input_schema: || schema_of::<I>(Contract::Deserialize),
            output_schema: || schema_of::<O>(Contract::Serialize),
            described: OnceLock::new(),
            run,
            prepare: None,
            wants: None,
            follow: None,
            follow_when: None,
            asked_again: false,
            late: None,
            writes_when: None,
            secrets: &[],
            secret_input: &[],
            needs: None,
            names_caller: false,
            untold_when: None,
            told_first: false,
            scope: None,
        }
    }

    /// It begins something that ends later: a surface may hold the caller until `follow`, which reads what became of its
    /// answer, is ready with a newer one.
    #[must_use]
    pub fn followed<O: Serialize + 'static>(mut self, follow: fn(&mut Cx<'_, '_>, &Value) -> Result<Wait<O>>) -> Self {
        self.follow = Some(Box::new(move |cx, answer| match follow(cx, answer)? {
            Wait::Ready(answer) => Ok(Outcome::Done(encode(&answer)?)),
            Wait::NotYet(answer) => Ok(Outcome::NotYet(encode(&answer)?)),
        }));
        self
    }

    /// Only some answers begin something that ends later. When it has ended the same call is made once more, and that
    /// answer counts: what was waited for may be used up by it.
    #[must_use]
    pub fn followed_when<O: Serialize + 'static>(mut self, says_so: fn(&Value) -> bool, follow: fn(&mut Cx<'_, '_>, &Value) -> Result<Wait<O>>) -> Self {
        self.asked_again = true;
        self.followed_if(says_so, follow)
    }

    /// Only some answers begin something that ends later, and `follow` has the newer one then.
    #[must_use]
    pub fn followed_if<O: Serialize + 'static>(mut self, says_so: fn(&Value) -> bool, follow: fn(&mut Cx<'_, '_>, &Value) -> Result<Wait<O>>) -> Self {
        self.follow_when = Some(says_so);
        self.followed(follow)
    }

    /// A look that may take longer than a call should: then `late` puts it into the queue, and its answer says so.
    #[must_use]
    pub fn queued<I: DeserializeOwned + 'static, O: Serialize + 'static>(mut self, late: fn(&mut Cx<'_, '_>, I) -> Result<O>) -> Self {
        self.late = Some(Box::new(move |cx, input| Ok(Outcome::Done(encode(&late(cx, decode(input)?)?)?))));
        self
    }

    /// Says who may call it.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Names a scope of personal tokens that covers it besides its own name and toolset.
    #[must_use]
    pub fn within(mut self, scope: &'static str) -> Self {
        self.scope = Some(scope);
        self
    }

    /// Whether a scope of a personal token names it.
    pub(crate) fn is_in_scope(&self, name: &str) -> bool {
        name == "*" || name == self.toolset.name() || Some(name) == self.scope || name == self.full_name()
    }

    /// A field of the input that came as text, read by the type that the schema gives it.
    pub fn value_of(&self, field: &str, text: &str) -> Result<Value> {
        let kind = self.input().pointer(&format!("/properties/{field}/type")).and_then(Value::as_str);
        let fits = |value: &Value| match kind {
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("boolean") => value.is_boolean(),
            Some("array") => value.is_array(),
            Some("object") => value.is_object(),
            _ => value.is_number(),
        };
        match kind {
            Some(kind @ ("integer" | "number" | "boolean" | "array" | "object")) => {
                let wrong = || Error::invalid(field, format!("must be of the type {kind}"));
                parse_strict(text.as_bytes()).ok().filter(fits).ok_or_else(wrong)
            }
            _ => Ok(Value::from(text)),
        }
    }

    /// Names the fields of the answer that are shown once and never kept.
    #[must_use]
    pub fn shows_once(mut self, secrets: &'static [&'static str]) -> Self {
        self.secrets = secrets;
        self
    }

    /// Names the fields of the input that are secrets. Nothing that is derived from them is kept, so such an operation
    /// takes no idempotency key, and no error repeats them.
    #[must_use]
    pub fn takes_secrets(mut self, secrets: &'static [&'static str]) -> Self {
        self.secret_input = secrets;
        self
    }

    /// Whether its input has secrets.
    pub(crate) fn has_secret_input(&self) -> bool {
        !self.secret_input.is_empty()
    }

    /// Whether a field of the input is a secret.
    pub fn is_secret(&self, field: &str) -> bool {
        self.secret_input.contains(&field)
    }

    /// Shows the arguments `agent_id` and `agent_token` with which existing clients say who they are. They do not reach
    /// the operation, unless it has a use of its own for an `agent_id`: the credential decides, and what differs from it
    /// is refused.
    #[must_use]
    pub fn names_caller(mut self) -> Self {
        self.names_caller = true;
        self
    }

    /// What it does, for its caller: the documentation of the input type.
    pub fn description(&self) -> &str {
        &self.described().description
    }

    /// The schema of its input. Schemas are made when somebody asks for them: most of an idle desk never does.
    pub fn input(&self) -> &Value {
        &self.described().schema
    }

    /// The schema of its answer, made anew at every call.
    pub fn output(&self) -> Value {
        let mut schema = (self.output_schema)();
        take_description(&mut schema);
        schema
    }

    /// Whether `agent_id` is an input of its own, and not only says who calls.
    pub(crate) fn has_own_agent_id(&self) -> bool {
        self.described().own_agent_id
    }

    fn described(&self) -> &Described {
        self.described.get_or_init(|| {
            let mut schema = (self.input_schema)();
            let description = take_description(&mut schema);
            let mut own_agent_id = false;
            if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                own_agent_id = properties.contains_key("agent_id");
                self.add_common(properties);
            }
            Described { description, schema, own_agent_id }
        })
    }

    /// Adds the inputs that many operations share.
    fn add_common(&self, properties: &mut Map<String, Value>) {
        let mut add = |name: &str, says: &str| {
            properties.entry(name).or_insert_with(|| json!({ "type": "string", "description": says }));
        };
        if self.takes_key() {
            add("idempotency_key", "A key of your choice. The same call with the same key within 7 days is done once and gets the first answer again.");
        }
        if self.names_caller {
            add("agent_id", "Your agent id. Who you are comes from your credential, and another id is refused; in open mode this names you.");
            add("agent_token", "Your token, for clients that can send it in no better way than as an argument. It is checked and never kept.");
        }
    }

    /// Whether a call may bring a key for doing it once.
    pub(crate) fn takes_key(&self) -> bool {
        self.effect == Effect::Write && self.secret_input.is_empty()
    }

    /// An error about a secret field, without what was given there.
    fn veil(&self, error: Error) -> Error {
        match error.field.as_deref().filter(|field| self.secret_input.contains(field)) {
            Some(field) if error.message.starts_with("invalid ") => Error::invalid(field, "must be a text"),
            _ => error,
        }
    }

    /// Tells answers that changed nothing, such as "too many in this hour". They need no event, and are not kept for a
    /// repeated call, which may fare better.
    #[must_use]
    pub fn untold_when(mut self, says_so: fn(&Value) -> bool) -> Self {
        self.untold_when = Some(says_so);
        self
    }

    /// Whether an answer changed nothing.
    pub(crate) fn is_untold(&self, answer: &Value) -> bool {
        self.untold_when.is_some_and(|says_so| says_so(answer))
    }

    /// Says what of outside it needs, and what happens without it.
    #[must_use]
    pub fn needs(mut self, outside: &'static str, without: Without) -> Self {
        self.needs = Some(Need { outside, without });
        self
    }

    /// What of outside it needs.
    pub fn need(&self) -> Option<Need> {
        self.needs
    }

    /// The answer as it may be kept for a repeated call.
    pub(crate) fn keepable(&self, answer: &Value) -> Value {
        let mut kept = answer.clone();
        for secret in self.secrets {
            if let Some(field) = kept.get_mut(secret) {
                *field = Value::from("shown once, when it was made");
            }
        }
        kept
    }

    /// It may undo or overwrite something.
    #[must_use]
    pub fn destructive(mut self) -> Self {
        self.hints.destructive = true;
        self
    }

    /// Calling it twice is the same as once.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.hints.idempotent = true;
        self
    }

    /// It reaches beyond the desk.
    #[must_use]
    pub fn open_world(mut self) -> Self {
        self.hints.open_world = true;
        self
    }

    /// A look whose answer is written down: the record is told whoever looks.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.effect = Effect::Write;
        self
    }

    /// A look that leaves a trace outside: its first step tells the record, before anybody looks.
    #[must_use]
    pub fn told_first(mut self) -> Self {
        self.told_first = true;
        self
    }

    /// It needs this errand done before: what goes wrong there is the answer, and nothing is changed.
    #[must_use]
    pub fn after<I: DeserializeOwned + 'static>(mut self, errand: fn(&I) -> Errand) -> Self {
        // What is wrong with the input is told first.
        self.wants = Some(Box::new(move |_, input| Ok(errand(&decode(input.clone())?))));
        self
    }

    /// It changes something only when its input says so; any other call is a read and does not go through the writer.
    #[must_use]
    pub fn writes_when(mut self, says_so: fn(&Value) -> bool) -> Self {
        self.writes_when = Some(says_so);
        self
    }

    /// Whether a call with this input changes anything.
    pub fn effect_of(&self, input: &Value) -> Effect {
        match self.writes_when {
            Some(says_so) if !says_so(input) => Effect::Read,
            _ => self.effect,
        }
    }

    /// The name where several toolsets are mounted together; names that begin with their toolset stay.
    pub fn full_name(&self) -> String {
        let toolset = self.toolset.name();
        if self.name.starts_with(&format!("{toolset}_")) { self.name.to_owned() } else { format!("{toolset}_{}", self.name) }
    }

    /// A title for people: the name with spaces.
    pub fn title(&self) -> String {
        let mut title = self.name.replace('_', " ");
        if let Some(first) = title.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        title
    }

    pub(crate) fn run(&self, cx: &mut Cx<'_, '_>, input: Value, prepared: Option<&Prepared>) -> Result<Outcome> {
        (self.run)(cx, input, prepared).map_err(|error| self.veil(error))
    }

    /// The slow first step, if there is one.
    pub(crate) fn prepare(&self, cx: &mut Cx<'_, '_>, input: &Value) -> Result<Option<Prepared>> {
        self.prepare.as_ref().map(|prepare| prepare(cx, input).map_err(|error| self.veil(error))).transpose()
    }

    pub(crate) fn is_prepared(&self) -> bool {
        self.prepare.is_some()
    }

    /// What it needs from outside, if it is a look.
    pub(crate) fn wants(&self, cx: &mut Cx<'_, '_>, input: &Value) -> Result<Option<Errand>> {
        self.wants.as_ref().map(|wants| wants(cx, input).map_err(|error| self.veil(error))).transpose()
    }

    /// Whether something goes on after its answer.
    pub fn is_followed(&self) -> bool {
        self.follow.is_some()
    }

    /// Whether something goes on after this answer, of an operation of which only some answers are followed.
    pub fn goes_on(&self, answer: &Value) -> Option<bool> {
        self.follow_when.map(|says_so| says_so(answer))
    }

    /// Whether the call is made once more when what its answer began has ended.
    pub fn is_asked_again(&self) -> bool {
        self.asked_again
    }

    /// Whether it can go on in the queue.
    pub(crate) fn is_queued(&self) -> bool {
        self.late.is_some()
    }

    /// Puts what takes long into the queue.
    pub(crate) fn late(&self, cx: &mut Cx<'_, '_>, input: Value) -> Result<Outcome> {
        let late = self.late.as_ref().ok_or_else(|| Error::new(Code::Internal, "this look cannot go into the queue"))?;
        late(cx, input).map_err(|error| self.veil(error))
    }

    /// What became of an answer.
    pub(crate) fn follow(&self, cx: &mut Cx<'_, '_>, answer: &Value) -> Result<Option<Outcome>> {
        self.follow.as_ref().map(|follow| follow(cx, answer)).transpose()
    }

    pub(crate) fn is_look(&self) -> bool {
        self.wants.is_some()
    }

    pub(crate) fn is_told_first(&self) -> bool {
        self.told_first
    }
}

fn decode<I: DeserializeOwned>(input: Value) -> Result<I> {
    // Nearly every input is good, and keeping track of where one stands in it takes time.
    I::deserialize(&input).or_else(|_| serde_path(input))
}

/// Names the field that does not fit.
fn serde_path<I: DeserializeOwned>(input: Value) -> Result<I> {
    serde_path_to_error::deserialize(input).map_err(|error| {
        let path = error.path().to_string();
        let message = error.into_inner().to_string();
        let named = message.split('`').nth(1).filter(|_| message.starts_with("unknown field") || message.starts_with("missing field"));
        let field = named.map_or_else(|| if path == "." { "input".to_owned() } else { path }, str::to_owned);
        Error::invalid(&field, message)
    })
}

fn encode<O: Serialize>(answer: &O) -> Result<Value> {
    serde_json::to_value(answer).map_err(|error| Error::new(Code::Internal, format!("the answer cannot be written: {error}")))
}

/// The schema of what is read or of what is written: a field that may be left out of an answer is not required there.
fn schema_of<T: JsonSchema>(contract: Contract) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        settings.contract = contract;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    Plain.transform(&mut schema);
    let mut value = schema.to_value();
    if let Some(object) = value.as_object_mut() {
        object.remove("title");
        object.entry("type").or_insert_with(|| json!("object"));
        if object.get("type") == Some(&json!("object")) {
            object.entry("properties").or_insert_with(|| json!({}));
        }
    }
    value
}

/// Several clients refuse `["string", "null"]` and number formats of Rust; an optional field is simply not required.
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::Array(types)) = schema.get("type") {
            let named: Vec<Value> = types.iter().filter(|name| **name != json!("null")).cloned().collect();
            if let [only] = named.as_slice() {
                schema.insert("type".to_owned(), only.clone());
            }
        }
        if let Some(Value::Array(choices)) = schema.get("enum") {
            let named: Vec<Value> = choices.iter().filter(|choice| !choice.is_null()).cloned().collect();
            schema.insert("enum".to_owned(), Value::Array(named));
        }
        if let Some(Value::Array(choices)) = schema.get("anyOf").cloned() {
            let named: Vec<Value> = choices.into_iter().filter(|choice| *choice != json!({ "type": "null" })).collect();
            if let [Value::Object(only)] = named.as_slice() {
                schema.remove("anyOf");
                for (key, value) in only {
                    if schema.get(key).is_none() {
                        schema.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        if let Some(Value::Array(choices)) = schema.get("oneOf").cloned() {
            name_choices(schema, &choices);
        }
        if matches!(schema.get("format"), Some(Value::String(format)) if format.starts_with("uint") || format.starts_with("int") || format == "double") {
            schema.remove("format");
        }
        if schema.get("default") == Some(&Value::Null) {
            schema.remove("default");
        }
        transform_subschemas(self, schema);
    }
}

/// Choices with a description each become a plain `enum`, which every client understands, with the descriptions in words.
fn name_choices(schema: &mut Schema, choices: &[Value]) {
    let names: Vec<Value> = choices.iter().filter_map(|choice| choice.get("const").cloned()).collect();
    if names.len() != choices.len() || !names.iter().all(Value::is_string) {
        return;
    }
    let explained = choices.iter().filter_map(|choice| Some(format!("`{}`: {}", choice.get("const")?.as_str()?, choice.get("description")?.as_str()?)));
    let explained = explained.collect::<Vec<_>>().join(" ");
    let own = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = format!("{own} {explained}").trim().to_owned();
    schema.remove("oneOf");
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), Value::Array(names));
    schema.insert("description".to_owned(), Value::String(description));
}

fn take_description(schema: &mut Value) -> String {
    let description = schema.as_object_mut().and_then(|object| object.remove("description"));
    description.and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default()
}
