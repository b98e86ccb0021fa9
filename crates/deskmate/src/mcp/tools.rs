//! Operations as tools: the list of an endpoint, and the way from a `tools/call` to an operation and back.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deskmate_core::call::{Answer, Call, Credential, Effect, Op, Outcome, Registry, Surface, Toolset};
use deskmate_core::{Code, Error};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, MetaObject, ProgressNotificationParam, ProgressToken, Tool,
    ToolAnnotations,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, interval_at};

use super::held;
use super::mount::{Mount, Servers};
use super::suggest;
use super::tasks;
use crate::app::{App, Heard};
use crate::hook::{Client, permission, question};

/// How often a waiting call says that it is still there. Clients give up after 30 s of silence or more.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
/// The field by which a caller says how long to wait, and how long one is held that can follow a task.
const TIMEOUT: &str = "timeout_seconds";
const TASK_AFTER_SECONDS: u64 = 1;
/// Under this key an answer says that nobody proved who called.
pub(super) const UNVERIFIED: &str = "deskmate/unverified";
/// Under this key a refusal is repeated for programs.
const ERROR: &str = "deskmate/error";
/// The operation whose answer begins with words for people.
const STATUS: &str = "cowork_status";
/// The field of an answer that tells people what is in it.
const MESSAGE: &str = "message";
/// The operations that tell what came out of any job.
const JOB_RESULTS: [&str; 2] = ["desk_job_get", "desk_job_wait"];
/// The operation that takes what a client's hook says.
const HOOK_EVENT: &str = "hook_event";

/// What stands behind a tool's name.
struct Entry {
    operation: String,
    toolset: Toolset,
    /// It only waits: nothing is lost when the client gives up on it.
    waits: bool,
    /// It begins something, and may hold until that has ended.
    follows: bool,
    /// Its answer names a job, and its caller says how long to wait for that: read from its schemas when it is first asked for.
    names_job: OnceLock<bool>,
}

impl Entry {
    fn names_job(&self, registry: &Registry) -> bool {
        *self.names_job.get_or_init(|| registry.get(&self.operation).is_some_and(|op| names_job(op)))
    }
}

/// The tools of an endpoint.
pub(super) struct Tools {
    ops: Vec<(String, Arc<Op>)>,
    list: OnceLock<Vec<Tool>>,
    by_name: HashMap<String, Entry>,
}

impl Tools {
    /// The operations of the mounted toolsets, in the stable order of their full names.
    pub(super) fn new(registry: &Registry, mount: &Mount) -> Self {
        let plain = mount.toolsets.len() == 1 && matches!(mount.servers, Servers::None);
        let mut tools = Self { ops: Vec::new(), list: OnceLock::new(), by_name: HashMap::new() };
        for op in registry.of_toolsets(&mount.toolsets).filter(|op| !mount.read_only || op.effect == Effect::Read) {
            let name = if plain { op.name.to_owned() } else { op.full_name() };
            tools.ops.push((name.clone(), Arc::clone(op)));
            let entry = Entry { operation: op.full_name(), toolset: op.toolset, waits: op.waits, follows: op.is_followed(), names_job: OnceLock::new() };
            tools.by_name.insert(name, entry);
        }
        tools
    }

    /// Whether a tool of this name is among them.
    pub(super) fn is_named(&self, tool: &str) -> bool {
        self.by_name.contains_key(tool)
    }

    /// Whether a tool reaches files beneath roots, or what jobs found there.
    pub(super) fn works_on_files(&self, tool: &str) -> bool {
        let tells_of_jobs = |entry: &Entry| JOB_RESULTS.contains(&entry.operation.as_str());
        self.by_name.get(tool).is_some_and(|entry| entry.toolset == Toolset::Workspace || tells_of_jobs(entry))
    }

    /// What an operation is called here, by its full name, if it is among them.
    pub(super) fn name_of(&self, operation: &str) -> Option<&str> {
        self.ops.iter().find(|(_, op)| op.full_name() == operation).map(|(name, _)| name.as_str())
    }

    /// All tools, rendered when somebody asks for them first.
    pub(super) fn list(&self) -> &[Tool] {
        self.list.get_or_init(|| self.ops.iter().map(|(name, op)| render(op, name.clone())).collect())
    }

    /// Does what a `tools/call` asks.
    pub(super) async fn call(
        &self,
        app: &App,
        credential: Credential,
        mut request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(entry) = self.by_name.get(request.name.as_ref()) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {}", request.name), None));
        };
        if entry.operation == held::WAIT
            && let Some(answer) = held::instead(app, &credential, &request, context).await?
        {
            return Ok(answer);
        }
        if let Some(asked) = suggest::ask(app, &credential, &entry.operation, &mut request, context).await? {
            return Ok(asked);
        }
        let named = matches!(credential, Credential::Named(_));
        let tasks = entry.follows && context.client_capabilities().unwrap_or_default().supports_tasks();
        let mut input = request.arguments.unwrap_or_default();
        if tasks && entry.names_job(&app.desk.registry) {
            // Whoever can follow a task is not held for long.
            input.entry(TIMEOUT).or_insert_with(|| TASK_AFTER_SECONDS.into());
        }
        let input = Value::Object(input);
        if entry.toolset == Toolset::Hook {
            return Ok(CallToolResponse::Complete(hooked(app, credential, &entry.operation, input).await));
        }
        let call = Call { credential, surface: Surface::Mcp, operation: entry.operation.clone(), input };
        let outcome = match (entry.waits, entry.follows) {
            (true, _) => patiently(app, call, context).await?,
            (false, true) => audibly(app, call, context).await,
            (false, false) => app.call(call).await,
        };
        Ok(match outcome {
            Ok(answer) => match tasks.then(|| tasks::begun(app, &answer)).flatten() {
                Some(task) => CallToolResponse::Task(task),
                None => CallToolResponse::Complete(done(entry, answer)),
            },
            Err(error) => CallToolResponse::Complete(refused(entry.toolset, &error, named)),
        })
    }
}

/// Whether an operation's answer names a job, and its caller says how long to wait for that.
fn names_job(op: &Op) -> bool {
    let has = |schema: &Value, field: &str| schema.pointer(&format!("/properties/{field}")).is_some();
    has(&op.output(), "job") && has(op.input(), TIMEOUT)
}

/// A hook of the kind `mcp_tool`, or the tool that is asked in the place of a prompt: one text, as Claude Code reads it.
async fn hooked(app: &App, credential: Credential, operation: &str, asked: Value) -> CallToolResult {
    let named = matches!(credential, Credential::Named(_));
    let is_event = operation == HOOK_EVENT;
    let input = if is_event { filled_in(&asked) } else { question(&asked) };
    let call = Call { credential, surface: Surface::Mcp, operation: operation.to_owned(), input };
    let answer = match app.call(call).await {
        Ok(answer) => answer,
        Err(error) => return refused(Toolset::Hook, &error, named),
    };
    let meta = (!answer.actor.verified).then(unverified);
    let (Outcome::Done(value) | Outcome::NotYet(value)) = answer.outcome;
    let Ok(out) = serde_json::from_value(value) else {
        return refused(Toolset::Hook, &Error::new(Code::Internal, "an answer is unreadable"), named);
    };
    let said = if is_event { Client::ClaudeCode.outgoing(&asked, &out) } else { permission(asked.get("input").unwrap_or(&Value::Null), &out) };
    CallToolResult::success(vec![ContentBlock::text(said.to_string())]).with_meta(meta)
}

/// What Claude Code says through the template that it was given, which also says under which name it knows the desk. It fills in where
/// a server comes from; where an older template does not ask for that, nobody knows it.
fn filled_in(asked: &Value) -> Value {
    let mut input = Client::ClaudeCode.incoming(asked);
    if let Some(fields) = input.as_object_mut() {
        let source = asked.get("mcp_source").and_then(Value::as_str).unwrap_or_default();
        fields.entry("mcp_source").or_insert_with(|| source.into());
        for settled in ["desk_server", "desk_in_project"] {
            fields.extend(asked.get(settled).map(|value| (settled.to_owned(), value.clone())));
        }
    }
    input
}

fn render(op: &Op, name: String) -> Tool {
    let read_only = op.effect == Effect::Read;
    let hints = ToolAnnotations::with_title(op.title())
        .read_only(read_only)
        .destructive(op.hints.destructive)
        .idempotent(op.hints.idempotent)
        .open_world(op.hints.open_world);
    let tool = Tool::new(Cow::Owned(name), Cow::Owned(op.description().to_owned()), object(op.input())).with_title(op.title()).with_annotations(hints);
    // A hook is answered with one text in the words of its client.
    if op.toolset == Toolset::Hook { tool } else { tool.with_raw_output_schema(object(&op.output())) }
}

fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

/// A call that may hold: it says that it is still there, and ends at once when the client no longer wants it.
async fn patiently(app: &App, call: Call, context: &RequestContext<RoleServer>) -> Result<Result<Answer, Error>, ErrorData> {
    let (heard, far) = listening(context);
    tokio::select! {
        answer = app.call_heard(call, heard.as_ref()) => Ok(answer),
        () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was cancelled", None)),
        () = still_waiting(context, far) => Err(ErrorData::internal_error("the client is gone", None)),
    }
}

/// A call that does something and may then hold: it says that it is still there, and goes on whoever listens.
async fn audibly(app: &App, call: Call, context: &RequestContext<RoleServer>) -> Result<Answer, Error> {
    let (heard, far) = listening(context);
    let call = app.call_heard(call, heard.as_ref());
    tokio::pin!(call);
    tokio::select! {
        answer = &mut call => answer,
        () = still_waiting(context, far) => call.await,
    }
}

/// Where a held call says how far that has come for which it waits, if its client wants to know, and where that is read.
fn listening(context: &RequestContext<RoleServer>) -> (Option<Heard>, watch::Receiver<Option<String>>) {
    let (heard, far) = watch::channel(None);
    (context.meta.get_progress_token().map(|_| heard), far)
}

/// Tells the client every few seconds that a call is still waiting, if it wants to know. Ends only when the client is gone.
async fn still_waiting(context: &RequestContext<RoleServer>, far: watch::Receiver<Option<String>>) {
    match context.meta.get_progress_token() {
        Some(token) => tell_progress(context.peer.clone(), token, &far).await,
        None => std::future::pending().await,
    }
}

async fn tell_progress(peer: Peer<RoleServer>, token: ProgressToken, far: &watch::Receiver<Option<String>>) {
    let started = Instant::now();
    let mut tick = interval_at(started + PROGRESS_EVERY, PROGRESS_EVERY);
    loop {
        tick.tick().await;
        let said = far.borrow().clone().unwrap_or_else(|| "still waiting".to_owned());
        let note = ProgressNotificationParam::new(token.clone(), started.elapsed().as_secs_f64()).with_message(said);
        if peer.notify_progress(note).await.is_err() {
            return;
        }
    }
}

/// An answer as structured content with its text copy.
fn done(entry: &Entry, answer: Answer) -> CallToolResult {
    let (Outcome::Done(value) | Outcome::NotYet(value)) = answer.outcome;
    let meta = (!answer.actor.verified).then(unverified);
    let texts = match entry.toolset {
        Toolset::Cowork => cowork_texts(&entry.operation, &value),
        // Words for people come first; what programs read, after them.
        Toolset::Agents if value.get(MESSAGE).is_some_and(Value::is_string) => {
            let words = value.get(MESSAGE).and_then(Value::as_str).unwrap_or_default();
            vec![words.to_owned(), value.to_string()]
        }
        _ => return CallToolResult::structured(value).with_meta(meta),
    };
    let mut result = CallToolResult::success(texts.into_iter().map(ContentBlock::text).collect());
    result.structured_content = Some(value);
    result.with_meta(meta)
}

/// Texts as clients of earlier cowork servers expect them: indented JSON, and for the status words for people before it.
fn cowork_texts(operation: &str, value: &Value) -> Vec<String> {
    let mut value = value.clone();
    let words = value.as_object_mut().filter(|_| operation == STATUS).and_then(|fields| fields.remove("text"));
    let words = words.as_ref().and_then(Value::as_str).map(str::to_owned);
    words.into_iter().chain([format!("{value:#}")]).collect()
}

/// A refusal that the model can read and repair. It is text and metadata but not structured content: clients check
/// that against the tool's output schema even when the call failed, and would show their own complaint instead.
pub(super) fn refused(toolset: Toolset, error: &Error, named: bool) -> CallToolResult {
    let mut value = json!(error);
    let mut meta = if named { unverified() } else { MetaObject::new() };
    meta.insert(ERROR.to_owned(), value.clone());
    if toolset == Toolset::Cowork
        && let Some(fields) = value.as_object_mut()
    {
        fields.insert("error".to_owned(), Value::Bool(true));
        if matches!(error.code, Code::Unauthenticated | Code::Forbidden) {
            fields.insert("auth_error".to_owned(), Value::Bool(true));
        }
    }
    CallToolResult::error(vec![ContentBlock::text(value.to_string())]).with_meta(Some(meta))
}

pub(super) fn unverified() -> MetaObject {
    let mut meta = MetaObject::new();
    meta.insert(UNVERIFIED.to_owned(), Value::Bool(true));
    meta
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(toolsets: &[Toolset], read_only: bool) -> Vec<String> {
        let tools = Tools::new(&Registry::new(), &Mount { toolsets: toolsets.to_vec(), servers: Servers::None, read_only });
        tools.list().iter().map(|tool| tool.name.to_string()).collect()
    }

    #[test]
    fn names_are_plain_alone_and_full_together() {
        assert!(names(&[Toolset::Bridge], false).contains(&"send_message".to_owned()));
        let together = names(&[Toolset::Bridge, Toolset::Desk], false);
        assert!(together.contains(&"bridge_send_message".to_owned()) && together.contains(&"desk_whoami".to_owned()));
        assert_eq!(together, names(&[Toolset::Bridge, Toolset::Desk], false));
        // A client puts the server's name before it and drops what is longer than 128.
        assert!(together.iter().all(|name| name.len() <= 64));
    }

    #[test]
    fn what_clients_are_served_is_what_it_was() {
        let mount = Mount { toolsets: vec![Toolset::Cowork, Toolset::Bridge], servers: Servers::None, read_only: false };
        crate::snapshot::check_json("tools.json", &json!(Tools::new(&Registry::new(), &mount).list()));
    }

    #[test]
    fn the_cowork_toolset_answers_as_its_clients_expect() {
        let texts = |operation: &str, value: &Value| cowork_texts(operation, value);
        let status = json!({ "text": "All quiet.", "session_id": "session_1" });
        assert_eq!(texts(STATUS, &status)[0], "All quiet.");
        assert_eq!(serde_json::from_str::<Value>(&texts(STATUS, &status)[1]).unwrap(), json!({ "session_id": "session_1" }));
        assert_eq!(texts("cowork_log", &json!({ "logged": true })), ["{\n  \"logged\": true\n}"]);
        let text_of = |toolset, error: &Error| {
            let result = json!(refused(toolset, error, false));
            assert_eq!(result.get("isError"), Some(&json!(true)));
            let text = result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default().to_owned();
            serde_json::from_str::<Value>(&text).unwrap()
        };
        let refusal = text_of(Toolset::Cowork, &Error::new(Code::Unauthenticated, "no credential was given").hint("send it"));
        assert_eq!((&refusal["error"], &refusal["auth_error"]), (&json!(true), &json!(true)));
        assert_eq!((&refusal["code"], &refusal["hint"]), (&json!("unauthenticated"), &json!("send it")));
        let wrong = text_of(Toolset::Cowork, &Error::invalid("domain", "must not be empty"));
        assert_eq!((wrong.get("error"), wrong.get("auth_error")), (Some(&json!(true)), None));
        assert_eq!(text_of(Toolset::Bridge, &Error::forbidden("no")).get("error"), None);
    }

    #[test]
    fn the_schemas_of_a_tool_are_read_once() {
        let registry = Registry::new();
        let tools = Tools::new(&registry, &Mount { toolsets: vec![Toolset::Workspace], servers: Servers::None, read_only: false });
        let names = |tool: &str| tools.by_name.get(tool).expect("a tool").names_job(&registry);
        assert!(names("scan_index") && !names("list_roots"));
        let kept = |tool: &str| tools.by_name.get(tool).expect("a tool").names_job.get().copied();
        assert_eq!((kept("scan_index"), kept("list_roots"), kept("sizes")), (Some(true), Some(false), None));
    }

    #[test]
    fn read_only_has_no_writes() {
        let registry = Registry::new();
        for name in names(&[Toolset::Bridge], true) {
            assert_eq!(registry.find(&name).map(|op| op.effect), Some(Effect::Read), "{name}");
        }
    }
}
