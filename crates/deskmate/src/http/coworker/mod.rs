//! The jobs API for programs that were written for the file coworker. It translates: headers into a credential, messages into
//! calls, and answers into JSON or protobuf. Under `/api/coworker`, and at a door of its own where the settings name one.

mod exchange;
#[cfg(test)]
mod tests;
mod wire;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use deskmate_core::call::{Call, Credential, Op, Outcome, Surface};
use deskmate_core::program::{self, KINDS};
use deskmate_core::{Code, Error, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::exchange::{Refusal, answered, read};
use self::wire::{
    ApproveRequest, ApproveResponse, CancelJobResponse, GetJobResponse, GetResultResponse, HandshakeRequest, HandshakeResponse, ListJobsResponse,
    ListToolsResponse, SubmitJobRequest, SubmitJobResponse, Tool,
};
use super::Shared;
use super::rest::query;

const SESSION_HEADER: &str = "x-coworker-session";
const TOKEN_HEADER: &str = "x-coworker-token";
/// Whoever may call this may use the API.
const LIST: &str = "desk_program_job_list";

/// The addresses of the API.
pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/handshake", post(handshake))
        .route("/tools", get(tools))
        .route("/approve", post(approve))
        .route("/jobs", get(list).post(submit))
        .route("/jobs/{id}", get(job))
        .route("/jobs/{id}/wait", get(wait))
        .route("/jobs/{id}/result", get(result))
        .route("/jobs/{id}/cancel", post(cancel))
}

/// Calls an operation and reads its answer as a message.
async fn call<M: DeserializeOwned>(shared: &Shared, credential: Credential, operation: &str, input: Value) -> Result<M> {
    let call = Call { credential, surface: Surface::Rest, operation: operation.to_owned(), input };
    let answer = shared.app.call(call).await?;
    let (Outcome::Done(value) | Outcome::NotYet(value)) = answer.outcome;
    serde_json::from_value(value).map_err(|error| Error::new(Code::Internal, format!("an answer of {operation} is unreadable: {error}")))
}

/// The credential of a program: the two headers belong together.
async fn enter(shared: &Shared, headers: &HeaderMap) -> Result<Credential, Refusal> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty());
    let (Some(session), Some(token)) = (header(SESSION_HEADER), header(TOKEN_HEADER)) else {
        let missing = Error::new(Code::Unauthenticated, "X-Coworker-Session and X-Coworker-Token are needed");
        return Err(Refusal::missing(missing.hint("POST /handshake with a pairing code gives them")));
    };
    let credential = Credential::Secret { secret: token.to_owned(), proved: false };
    let actor = shared.app.admit(&credential, LIST).await?;
    // Digests tell nothing by the time that comparing them takes.
    let same = actor.credential.as_deref().is_some_and(|own| Sha256::digest(own) == Sha256::digest(session));
    if same { Ok(credential) } else { Err(Error::forbidden("this session and this token do not belong together").into()) }
}

async fn handshake(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let answer = async {
        let HandshakeRequest { code } = read(&headers, &body)?;
        if code.is_empty() {
            let refused = Error::forbidden("a handshake needs a pairing code");
            let page = shared.app.page("/people/you");
            return Err(refused.hint(format!("a person makes one at {page}: \"Pair a browser extension or a program\"")).into());
        }
        let paired: Value = call(&shared, Credential::Nobody, "desk_pair", json!({ "code": code })).await?;
        let text = |field: &str| paired.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(HandshakeResponse { session_id: text("credential"), token: text("token") })
    };
    answered(&headers, answer.await)
}

async fn tools(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let answer = async {
        enter(&shared, &headers).await?;
        let known = KINDS.iter().filter(|kind| shared.app.desk.registry.get(kind.operation).is_some());
        let tools = known.map(|kind| Tool {
            name: kind.name.to_owned(),
            r#type: kind.number,
            params: kind.params.iter().map(|&name| name.to_owned()).collect(),
            requires_approval: kind.requires_approval.then_some(true),
        });
        Ok(ListToolsResponse { tools: tools.collect() })
    };
    answered(&headers, answer.await)
}

/// What `desk_program_approval` answers.
#[derive(Deserialize)]
struct Approval {
    request_id: String,
    plan_hash: String,
    ttl_seconds: Option<i64>,
}

/// Nobody approves here. Where a person has, the answer names their approval; otherwise it says where they decide.
async fn approve(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let answer = async {
        let credential = enter(&shared, &headers).await?;
        let ApproveRequest { plan_job_id, ttl_seconds } = read(&headers, &body)?;
        let input = json!({ "plan_job_id": plan_job_id, "ttl_seconds": ttl_seconds });
        let Approval { request_id, plan_hash, ttl_seconds } = call(&shared, credential, "desk_program_approval", input).await?;
        let Some(ttl_seconds) = ttl_seconds else {
            let refused = Error::forbidden(format!("a person decides in Deskmate, at {}", shared.app.page_of_request(&request_id)));
            return Err(refused.hint("who asks for a plan does not approve it; once a person has, a job of the type 5 does it").into());
        };
        Ok(ApproveResponse { approval_token: request_id, plan_job_id, plan_hash, ttl_seconds })
    };
    answered(&headers, answer.await)
}

async fn submit(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let answer = async {
        let credential = enter(&shared, &headers).await?;
        let SubmitJobRequest { job_id, dedupe_key, r#type, allowed_roots, params, .. } = read(&headers, &body)?;
        if !job_id.is_empty() {
            return Err(Error::invalid("job_id", "is not yours to give: the desk names its jobs").into());
        }
        // What cannot become an input is refused now, not when its turn comes.
        program::input(&shared.app.desk.registry, r#type, &params)?;
        let input = json!({ "dedupe_key": dedupe_key, "type": r#type, "allowed_roots": allowed_roots, "params": params });
        let taken: SubmitJobResponse = call(&shared, credential, "desk_program_job_submit", input).await?;
        shared.app.queued.send_modify(|calls| *calls += 1);
        Ok(taken)
    };
    answered(&headers, answer.await)
}

/// An operation of the API's own.
fn op<'s>(shared: &'s Shared, operation: &str) -> Result<&'s Op> {
    shared.app.desk.registry.get(operation).map(std::convert::AsRef::as_ref).ok_or_else(|| Error::not_found("there is no such operation"))
}

async fn list(State(shared): State<Shared>, headers: HeaderMap, uri: Uri) -> Response {
    let answer = async {
        let credential = enter(&shared, &headers).await?;
        let input = query(op(&shared, LIST)?, uri.query().unwrap_or_default())?;
        Ok(call::<ListJobsResponse>(&shared, credential, LIST, input).await?)
    };
    answered(&headers, answer.await)
}

/// Calls what is about one job.
async fn about<M: DeserializeOwned>(shared: &Shared, headers: &HeaderMap, uri: &Uri, operation: &str, id: String) -> Result<M, Refusal> {
    let credential = enter(shared, headers).await?;
    let mut input = query(op(shared, operation)?, uri.query().unwrap_or_default())?;
    if let Some(fields) = input.as_object_mut() {
        fields.insert("job".to_owned(), Value::from(id));
    }
    Ok(call(shared, credential, operation, input).await?)
}

async fn job(State(shared): State<Shared>, Path(id): Path<String>, headers: HeaderMap, uri: Uri) -> Response {
    answered(&headers, about::<GetJobResponse>(&shared, &headers, &uri, "desk_program_job_get", id).await)
}

async fn wait(State(shared): State<Shared>, Path(id): Path<String>, headers: HeaderMap, uri: Uri) -> Response {
    answered(&headers, about::<GetJobResponse>(&shared, &headers, &uri, "desk_program_job_wait", id).await)
}

async fn result(State(shared): State<Shared>, Path(id): Path<String>, headers: HeaderMap, uri: Uri) -> Response {
    answered(&headers, about::<GetResultResponse>(&shared, &headers, &uri, "desk_program_job_result", id).await)
}

async fn cancel(State(shared): State<Shared>, Path(id): Path<String>, headers: HeaderMap, uri: Uri) -> Response {
    answered(&headers, about::<CancelJobResponse>(&shared, &headers, &uri, "desk_program_job_cancel", id).await)
}
