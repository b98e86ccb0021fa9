//! Who looks at a page, and what operations answer them. A page does nothing else: whatever it shows was answered by an
//! operation to the person who is signed in.

use axum::extract::FromRequestParts;
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use deskmate_core::call::{Call, Credential, Op, Outcome, Registry, Role, Surface};
use deskmate_core::limits::PAGE_MAX;
use deskmate_core::{Code, Error, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::super::rest::status_of;
use super::super::{Shared, credential};
use super::shell;

/// How many people a page knows by name; of a larger desk, the others are shown by their ids.
const PEOPLE_MAX: usize = 2_000;
/// How often a list is asked for more rows: each time it looks through some thousand.
const ASKED_MAX: usize = 40;

/// Somebody who is signed in, at one page.
#[derive(Clone)]
pub(super) struct Visit {
    shared: Shared,
    credential: Credential,
    /// Who it is.
    pub(super) you: You,
    /// How long the record was before anything of the page was read: what comes later may be missing on it.
    pub(super) size: u64,
}

/// What `desk_whoami` tells.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct You {
    pub(super) id: String,
    pub(super) kind: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) role: String,
}

impl Visit {
    /// What can be called at this desk.
    pub(super) fn registry(&self) -> &Registry {
        &self.shared.app.desk.registry
    }

    /// Whether their role may call an operation at all: what it may not is not offered.
    pub(super) fn may_call(&self, op: &Op) -> bool {
        op.access.is_for(Role::from_name(&self.you.role), op.effect)
    }

    fn may(&self, operation: &str) -> bool {
        self.registry().get(operation).is_some_and(|op| self.may_call(op))
    }

    /// Whether they decide requests and pause agents, or look on.
    pub(super) fn decides(&self) -> bool {
        self.may("desk_request_approve") && self.may("desk_pause")
    }

    /// Whether they work along: write messages, give tasks, claim them.
    pub(super) fn writes(&self) -> bool {
        self.may("bridge_send_message")
    }

    /// The people of the desk: what the record says of them by id is shown by name.
    pub(super) async fn people(&self) -> Result<People, Fault> {
        let (people, _) = self.gather("desk_person_list", "people", json!({}), PEOPLE_MAX).await?;
        Ok(People { people })
    }

    /// What time it is here, in microseconds.
    pub(super) fn now(&self) -> i64 {
        self.shared.app.desk.world.now()
    }

    /// Asks an operation, and takes of its answer what the page shows.
    pub(super) async fn ask<T: DeserializeOwned>(&self, operation: &str, input: Value) -> Result<T, Fault> {
        Ok(ask(&self.shared, &self.credential, operation, input).await?)
    }

    /// As many rows of a list as are wanted, from as many pages of the operation as that takes, and whether there are more.
    /// A page may be short before the end, so it is asked so often at most.
    pub(super) async fn gather<T: DeserializeOwned>(&self, operation: &str, list: &str, input: Value, wanted: usize) -> Result<(Vec<T>, bool), Fault> {
        let (rows, next) = self.gather_from(operation, list, input, wanted, "").await?;
        Ok((rows, next.is_some()))
    }

    /// Like [`Visit::gather`], from a cursor on, with the cursor of what follows.
    pub(super) async fn gather_from<T: DeserializeOwned>(
        &self,
        operation: &str,
        list: &str,
        input: Value,
        wanted: usize,
        from: &str,
    ) -> Result<(Vec<T>, Option<String>), Fault> {
        let (mut rows, mut input): (Vec<T>, Map<String, Value>) = (Vec::new(), input.as_object().cloned().unwrap_or_default());
        let mut next = Some(from.to_owned()).filter(|from| !from.is_empty());
        for _ in 0..ASKED_MAX {
            input.extend(next.take().map(|cursor| ("cursor".to_owned(), Value::from(cursor))));
            input.insert("limit".to_owned(), Value::from((wanted - rows.len()).min(PAGE_MAX as usize)));
            let mut page: Map<String, Value> = self.ask(operation, Value::Object(input.clone())).await?;
            if let Some(job) = page.get("job").and_then(Value::as_str) {
                let late = Error::new(Code::Unavailable, format!("this takes long: job {job} still looks"));
                return Err(late.hint("look again in a while, at less, or at less of it").into());
            }
            let found = serde_json::from_value(page.remove(list).unwrap_or_default());
            rows.extend::<Vec<T>>(found.map_err(|error| Error::new(Code::Internal, format!("a page does not understand {operation}: {error}")))?);
            next = page.get("next_cursor").and_then(Value::as_str).map(str::to_owned);
            if next.is_none() || rows.len() >= wanted {
                break;
            }
        }
        Ok((rows, next))
    }
}

/// The people of the desk.
pub(super) struct People {
    pub(super) people: Vec<Person>,
}

#[derive(Deserialize)]
pub(super) struct Person {
    pub(super) person: String,
    pub(super) name: String,
    pub(super) role: String,
    pub(super) state: String,
}

impl People {
    /// The name of whoever an id stands for: a person's, or an agent's own.
    pub(super) fn name<'p>(&'p self, id: &'p str) -> &'p str {
        self.people.iter().find(|person| person.person == id).map_or(id, |person| person.name.as_str())
    }
}

async fn ask<T: DeserializeOwned>(shared: &Shared, credential: &Credential, operation: &str, input: Value) -> Result<T> {
    let call = Call { credential: credential.clone(), surface: Surface::Web, operation: operation.to_owned(), input };
    let (Outcome::Done(answer) | Outcome::NotYet(answer)) = shared.app.call(call).await?.outcome;
    serde_json::from_value(answer).map_err(|error| Error::new(Code::Internal, format!("a page does not understand {operation}: {error}")))
}

impl FromRequestParts<Shared> for Visit {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Fault> {
        let size = *shared.app.live.size().borrow();
        let credential = credential::of(shared, &parts.method, &parts.uri, &parts.headers, &[]).await?;
        let you: You = ask(shared, &credential, "desk_whoami", json!({})).await.map_err(|error| signed_out(error, &parts.uri))?;
        if you.kind != "person" {
            return Err(signed_out(Error::new(Code::Unauthenticated, "pages are for people"), &parts.uri));
        }
        Ok(Self { shared: shared.clone(), credential, you, size })
    }
}

fn signed_out(error: Error, wanted: &Uri) -> Fault {
    let wanted = wanted.path_and_query().map_or("/", |path| path.as_str());
    let next = serde_urlencoded::to_string([("next", wanted)]).unwrap_or_default();
    Fault { sign_in: (error.code == Code::Unauthenticated).then(|| format!("/sign-in?{next}")), error }
}

/// Why a page cannot be shown.
pub(super) struct Fault {
    error: Error,
    /// Where to go first.
    sign_in: Option<String>,
}

impl Fault {
    /// Whether what was asked for is not there.
    pub(super) fn is_missing(&self) -> bool {
        self.error.code == Code::NotFound
    }

    /// The field of what was asked that is wrong, if it was asked wrongly.
    pub(super) fn field(&self) -> Option<&str> {
        self.error.field.as_deref().filter(|_| self.error.code == Code::Invalid)
    }

    /// What is wrong, in words.
    pub(super) fn message(&self) -> &str {
        &self.error.message
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self { error, sign_in: None }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        if let Some(place) = self.sign_in.as_deref().and_then(|place| HeaderValue::from_str(place).ok()) {
            return (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response();
        }
        let mut response = (status_of(self.error.code), shell::fault(&self.error)).into_response();
        // A desk that cannot answer cannot answer for the shell either.
        if self.error.code != Code::Unavailable {
            response.extensions_mut().insert(Faulted(self.error));
        }
        response
    }
}

/// What a page says that is not the one that was asked for.
#[derive(Clone)]
struct Faulted(Error);

/// A page that says what is wrong, within the shell for whoever is signed in: the ways on and the kill switch are in reach there too.
pub(super) async fn in_shell(shared: &Shared, mut asked: Parts, response: Response) -> Response {
    let Some(Faulted(error)) = response.extensions().get::<Faulted>().filter(|_| asked.method == Method::GET).cloned() else { return response };
    let Ok(visit) = Visit::from_request_parts(&mut asked, shared).await else { return response };
    match shell::show_fault(&visit, &error).await {
        Ok(page) => (response.status(), page).into_response(),
        Err(_) => response,
    }
}
