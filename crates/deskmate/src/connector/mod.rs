//! Connectors: small MCP servers of the desk's own, for what agents need of the world outside and no other program offers. Each is
//! mounted like any other server, so every call of it is decided, held, told and cleaned by the gateway; what it reaches is what its
//! mount names and nothing else. It runs as a process of its own: what it reads from strangers is read outside the desk.
//!
//! - [`http`]: addresses that are watched and read. [`webhook`]: words to one channel.
//! - [`mail`]: a mailbox, and a server that takes mail. [`database`]: questions, and nothing but questions.
//! - [`storage`]: backups in a folder, on WebDAV or in S3, checked and brought back.
//! - [`reach`]: how they speak HTTP.

mod database;
mod http;
mod mail;
mod reach;
mod storage;
mod webhook;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, serve_server_with_ct};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub(crate) use database::{Database, Source};
pub(crate) use http::Http;
pub(crate) use mail::{Access, Mail};
pub(crate) use reach::Reach;
pub(crate) use storage::{Folder, Place, S3, Storage, Webdav, credentials};
pub(crate) use webhook::Webhook;

/// How long a process that has to end has for that.
const ENDING: Duration = Duration::from_secs(1);

/// Why a call did not do what it was for.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Nothing was done, for this reason.
    Failed(String),
    /// It was sent, and nobody knows what came of it.
    Unknown(String),
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// A tool, as it is declared.
pub(crate) struct Offer {
    name: &'static str,
    about: &'static str,
    /// The properties of what it is given, as JSON Schema; those that are needed.
    properties: Value,
    needed: &'static [&'static str],
    reads: bool,
}

impl Offer {
    fn tool(&self) -> Tool {
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), Value::from("object"));
        schema.insert("properties".to_owned(), self.properties.clone());
        schema.insert("required".to_owned(), Value::from(self.needed.to_vec()));
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        let annotations = ToolAnnotations::new().read_only(self.reads).destructive(false).open_world(true);
        Tool::new(self.name, self.about, Arc::new(schema)).annotate(annotations)
    }
}

/// A connector.
pub(crate) enum Connector {
    Http(Http),
    Webhook(Webhook),
    Mail(Mail),
    Database(Database),
    Storage(Storage),
}

impl Connector {
    fn offers(&self) -> Vec<Offer> {
        match self {
            Self::Http(_) => Http::offers(),
            Self::Webhook(_) => Webhook::offers(),
            Self::Mail(mail) => mail.offers(),
            Self::Database(_) => Database::offers(),
            Self::Storage(_) => Storage::offers(),
        }
    }

    async fn call(&self, tool: &str, given: Map<String, Value>) -> Result<Value, Fault> {
        match self {
            Self::Http(http) => http.call(tool, given).await,
            Self::Webhook(webhook) => webhook.call(tool, given).await,
            Self::Mail(mail) => mail.call(tool, given).await,
            Self::Database(database) => database.call(tool, given).await,
            Self::Storage(storage) => storage.call(tool, given).await,
        }
    }
}

/// Reads what a tool is given. What it does not know is refused: it would have no effect.
fn read<T: DeserializeOwned>(given: Map<String, Value>) -> Result<T, Fault> {
    // A step names what is not there as nothing.
    let given: Map<String, Value> = given.into_iter().filter(|(_, value)| !value.is_null()).collect();
    serde_json::from_value(Value::Object(given)).map_err(|error| Fault::Failed(format!("what it is given cannot be read: {error}")))
}

fn no_tool(name: &str) -> Fault {
    Fault::Failed(format!("there is no tool {name}"))
}

/// The connector as its client sees it.
struct Served {
    connector: Connector,
    stop: CancellationToken,
}

impl ServerHandler for Served {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("deskmate-connector", env!("CARGO_PKG_VERSION")))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.connector.offers().iter().map(Offer::tool).collect()))
    }

    async fn call_tool(&self, request: CallToolRequestParams, _: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        match self.connector.call(&request.name, request.arguments.unwrap_or_default()).await {
            Ok(value) => Ok(CallToolResponse::Complete(CallToolResult::structured(value))),
            Err(Fault::Failed(why)) => Ok(CallToolResponse::Complete(CallToolResult::error(vec![ContentBlock::text(why)]))),
            Err(Fault::Unknown(why)) => {
                // Whatever were answered would say that it was done or that it was not. A server that goes away says neither, and
                // the desk knows how to tell that.
                tracing::error!("nobody knows whether it was done: {why}");
                self.stop.cancel();
                std::future::pending().await
            }
        }
    }
}

/// Serves a connector on standard input and output, until that ends.
pub(crate) fn serve(connector: Connector) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let served = runtime.block_on(async {
        let stop = CancellationToken::new();
        let served = Served { connector, stop: stop.clone() };
        let running = serve_server_with_ct(served, (tokio::io::stdin(), tokio::io::stdout()), stop.clone()).await.map_err(|error| error.to_string())?;
        tokio::select! {
            ended = running.waiting() => ended.map(drop).map_err(|error| error.to_string()),
            () = stop.cancelled() => Err("it was given up in the middle of a call".to_owned()),
        }
    });
    // Standard input is read by a thread that ends with the next byte only.
    runtime.shutdown_timeout(ENDING);
    served
}
