//! Words to one channel: a webhook as Slack, Mattermost and others have it. Its address is the secret, and is all that it reaches.

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::reach::Asked;
use super::{Fault, Offer, Reach, no_tool, read};

/// How long a message may be.
const TEXT_CHARS_MAX: usize = 12_000;
/// How much of an answer is looked at.
const ANSWER_BYTES_MAX: usize = 4_096;

/// The connector.
pub(crate) struct Webhook {
    reach: Reach,
    url: Url,
    /// The field that holds the text.
    field: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Post {
    text: String,
}

impl Webhook {
    pub(crate) fn new(reach: Reach, url: &str, field: String) -> Result<Self, String> {
        // What is wrong with it is told without it: it is a secret.
        let url = Url::parse(url.trim()).map_err(|error| format!("the address of the webhook cannot be read: {error}"))?;
        Reach::check_private(&url)?;
        Ok(Self { reach, url, field })
    }

    pub(super) fn offers() -> Vec<Offer> {
        vec![Offer {
            name: "post_message",
            about: "Post a message to the channel of this webhook",
            properties: json!({ "text": { "type": "string", "description": "What is said" } }),
            needed: &["text"],
            reads: false,
        }]
    }

    pub(super) async fn call(&self, tool: &str, given: Map<String, Value>) -> Result<Value, Fault> {
        if tool != "post_message" {
            return Err(no_tool(tool));
        }
        let post: Post = read(given)?;
        if post.text.trim().is_empty() || post.text.chars().count() > TEXT_CHARS_MAX {
            return Err(Fault::Failed(format!("text must have between 1 and {TEXT_CHARS_MAX} characters")));
        }
        let mut fields = Map::new();
        fields.insert(self.field.clone(), Value::from(post.text));
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = Bytes::from(Value::Object(fields).to_string());
        let came = self.reach.ask(Asked { method: Method::POST, url: &self.url, headers, body, most: ANSWER_BYTES_MAX }).await?;
        if (200..300).contains(&came.status) {
            Ok(json!({ "posted": true, "status": came.status }))
        } else {
            Err(Fault::Failed(format!("the webhook answered {}", came.status)))
        }
    }
}
