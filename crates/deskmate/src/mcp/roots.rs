//! The roots of an MCP client: folders that it narrows itself to, for the tools that work on files. A client of the older era is
//! asked once for each connection, and again when it says that they changed; one of the newer era with each call, since nothing
//! there says so.

use std::path::Component;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deskmate_core::call::{Actor, Surface};
use deskmate_core::{Code, Error, workspace};
use rmcp::model::{CallToolRequestParams, ClientNotification, InputRequests, InputRequiredResult, JsonRpcMessage, ProtocolVersion};
use rmcp::service::{RequestContext, RxJsonRpcMessage};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use url::Url;

use super::handler::Server;

/// How long a client may take to name them.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// More than this nobody names.
const ROOTS_MAX: usize = 200;
/// The question's name among those of a call.
const QUESTION: &str = "roots";

/// What the client of a connection named, until it says that it changed.
#[derive(Clone, Default)]
pub(super) struct Known(Arc<Mutex<Named>>);

/// How often they changed, and what was named since, if anything was.
type Named = (u64, Option<Arc<[String]>>);

impl Known {
    fn lock(&self) -> MutexGuard<'_, Named> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// They changed: what was named before does not count, and neither does an answer that is on its way.
    fn forget(&self) {
        let mut known = self.lock();
        *known = (known.0 + 1, None);
    }
}

impl Server {
    /// Heeds a message in the order in which the client sent it. Whatever is answered is answered beside other messages, so a call
    /// could overtake the word that roots changed which came before it.
    pub(crate) fn heed(&self, message: &RxJsonRpcMessage<RoleServer>) {
        if let JsonRpcMessage::Notification(told) = message
            && let ClientNotification::RootsListChangedNotification(_) = told.notification
        {
            self.roots.forget();
        }
    }
}

/// How far the tools of a call reach.
pub(super) enum Reach {
    /// As far as the desk lets them.
    All,
    /// Into these folders, by whole paths.
    Within(Arc<[String]>),
    /// The client has to be asked first.
    Ask(Box<InputRequiredResult>),
}

/// How far a call reaches by what its client says. A client that has roots and does not name them reaches nothing.
pub(super) async fn reach(server: &Server, request: &CallToolRequestParams, context: &RequestContext<RoleServer>) -> Result<Reach, Error> {
    if context.client_capabilities().is_none_or(|client| client.roots.is_none()) || !heeded(server).await? {
        return Ok(Reach::All);
    }
    if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
        return match request.input_responses.as_ref().and_then(|answers| answers.get(QUESTION)) {
            Some(answer) => folders(answer.get("roots").cloned()).await.map(Reach::Within),
            None => Ok(Reach::Ask(Box::new(InputRequiredResult::from_input_requests(question().map_err(|error| silent(&error.message))?)))),
        };
    }
    let (round, known) = server.roots.lock().clone();
    if let Some(known) = known {
        return Ok(Reach::Within(known));
    }
    let folders = folders(ask(context).await?.get("roots").cloned()).await?;
    let mut known = server.roots.lock();
    if server.lasting && known.0 == round {
        known.1 = Some(Arc::clone(&folders));
    }
    Ok(Reach::Within(folders))
}

/// Asks a client of the older era.
#[expect(deprecated, reason = "the protocol drops roots; clients of the older era still have them")]
async fn ask(context: &RequestContext<RoleServer>) -> Result<Value, Error> {
    let named = tokio::time::timeout(ANSWER_MAX, context.peer.list_roots()).await;
    let named = named.map_err(|_| silent("it did not answer"))?.map_err(|error| silent(&error.to_string()))?;
    serde_json::to_value(named).map_err(|error| silent(&error.to_string()))
}

/// Whether the settings in force heed the roots of clients.
async fn heeded(server: &Server) -> Result<bool, Error> {
    let desk = server.endpoint.app.desk.clone();
    server.endpoint.app.desk.db.read(move |tx| workspace::heeds_client_roots(&mut desk.cx(tx, Actor::system(), Surface::System))).await
}

fn question() -> Result<InputRequests, ErrorData> {
    serde_json::from_value(json!({ QUESTION: { "method": "roots/list" } })).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn silent(why: &str) -> Error {
    let error = Error::new(Code::Unavailable, format!("your client has roots and does not name them: {why}"));
    error.hint("its roots narrow what these tools reach; an owner can turn that off with `client_roots: false` under `workspace`")
}

/// The folders of roots, as they are named and as they really lie. What is no folder of this machine narrows to nothing.
async fn folders(roots: Option<Value>) -> Result<Arc<[String]>, Error> {
    let Some(Value::Array(roots)) = roots else { return Err(silent("its answer is no list")) };
    if roots.len() > ROOTS_MAX {
        return Err(silent(&format!("{} are too many", roots.len())));
    }
    let named: Vec<String> = roots.iter().filter_map(|root| folder(root.get("uri")?.as_str()?)).collect();
    let found = tokio::task::spawn_blocking(move || {
        let real: Vec<String> = named.iter().filter_map(|folder| std::fs::canonicalize(folder).ok()?.to_str().map(str::to_owned)).collect();
        let mut all: Vec<String> = named.into_iter().chain(real).collect();
        all.sort();
        all.dedup();
        all.into()
    });
    found.await.map_err(|_| Error::new(Code::Internal, "looking for folders ended unexpectedly"))
}

/// The whole path that a root names.
fn folder(uri: &str) -> Option<String> {
    let address = Url::parse(uri).ok().filter(|address| address.scheme() == "file")?;
    let path = address.to_file_path().ok()?;
    // A slash that is written as `%2f` hides a step upwards from the parser of addresses.
    let leads_up = path.components().any(|part| part == Component::ParentDir);
    (path.is_absolute() && !leads_up).then(|| path.to_str().map(str::to_owned)).flatten()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_a_client_names_is_a_whole_path_or_nothing(text in "(?s).{0,80}", parts in prop::collection::vec("(\\.\\.?|%2e%2e|%2e%2e%2f|\\.\\.%2f|[a-z%\\\\:?#/ ]{0,8})", 0..8)) {
            for uri in [text.clone(), format!("file://{text}"), format!("file:///{text}"), format!("file:///{}", parts.join("/"))] {
                if let Some(path) = folder(&uri) {
                    let path = Path::new(&path);
                    prop_assert!(path.is_absolute() && !path.components().any(|part| part == Component::ParentDir), "{uri}: {}", path.display());
                }
            }
        }

        #[test]
        fn a_folder_comes_back_as_it_was_named(names in prop::collection::vec("[^/\0]{1,12}", 1..5)) {
            prop_assume!(names.iter().all(|name| name != "." && name != ".."));
            let path = format!("/{}", names.join("/"));
            let uri = Url::from_file_path(&path).unwrap();
            let found = folder(uri.as_str());
            // What looks like a drive comes back with a slash behind it: the same folder.
            prop_assert_eq!(found.as_deref().map(Path::new), Some(Path::new(&path)), "{}", uri);
        }
    }

    #[test]
    fn roots_are_folders_of_this_machine() {
        assert_eq!(folder("file:///home/me/notes").as_deref(), Some("/home/me/notes"));
        assert_eq!(folder("file:///home/me/a%20b/").as_deref(), Some("/home/me/a b/"));
        assert_eq!(folder("file:///home/me/x/../../you").as_deref(), Some("/home/you"), "as it leads, not as it is written");
        for other in ["file:///home/me/%2e%2e%2fyou", "https://example.org/home", "file://elsewhere/home", "home/me", "", "file:///a%00b"] {
            assert!(folder(other).is_none_or(|path| path.contains('\0')), "{other}");
        }
    }
}
