//! Addresses that are watched and read: those that the mount names, and nothing beneath another path, host or port.

use std::time::{Duration, Instant};

use deskmate_hands::web::{Client, Limits};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, header};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::reach::{Asked, Came};
use super::{Fault, Offer, Reach, no_tool, read};

/// How much of an answer is taken.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// How much of it is passed on as text.
const TEXT_CHARS_MAX: usize = 50_000;

/// The connector.
pub(crate) struct Http {
    reach: Reach,
    allowed: Vec<Url>,
    /// Headers of every request, which may be secrets.
    headers: HeaderMap,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Check {
    url: String,
    slow_ms: Option<f64>,
    #[serde(default)]
    has: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Get {
    url: String,
}

impl Http {
    /// `headers` are names with values.
    pub(crate) fn new(reach: Reach, allowed: &[String], headers: Vec<(String, String)>) -> Result<Self, String> {
        if allowed.is_empty() {
            return Err("it reaches nothing: name addresses with --allow".to_owned());
        }
        let allowed = allowed.iter().map(|url| named(url)).collect::<Result<Vec<_>, _>>()?;
        if let Some(open) = allowed.iter().find(|_| !headers.is_empty()).and_then(|_| allowed.iter().find(|url| Reach::check_private(url).is_err())) {
            return Err(format!("headers may be secrets, and {open} is neither https: nor on this machine"));
        }
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            let wrong = || format!("{name} cannot be sent as a header");
            let (name, mut value) =
                (HeaderName::try_from(&name).map_err(|_| wrong())?, HeaderValue::try_from(value).map_err(|_| format!("the value of {name} cannot be sent"))?);
            if matches!(name, header::HOST | header::CONNECTION | header::CONTENT_LENGTH | header::TRANSFER_ENCODING) {
                return Err(format!("{name} is set by the desk itself"));
            }
            value.set_sensitive(true);
            sent.insert(name, value);
        }
        Ok(Self { reach, allowed, headers: sent })
    }

    pub(super) fn offers() -> Vec<Offer> {
        let url = json!({ "type": "string", "description": "An address that the mount allows" });
        vec![
            Offer {
                name: "check_url",
                about: "Ask an address once, and say whether it is up, slow or down, with why",
                properties: json!({ "url": url, "slow_ms": { "type": "number", "description": "After how many milliseconds it is slow" },
                    "has": { "type": "string", "description": "A text that a good answer has in it" } }),
                needed: &["url"],
                reads: true,
            },
            Offer { name: "get_url", about: "Read what an address answers, as text", properties: json!({ "url": url }), needed: &["url"], reads: true },
            Offer {
                name: "read_page",
                about: "Read a page as text, without its markup; without the mount's headers",
                properties: json!({ "url": url }),
                needed: &["url"],
                reads: true,
            },
        ]
    }

    pub(super) async fn call(&self, tool: &str, given: Map<String, Value>) -> Result<Value, Fault> {
        match tool {
            "check_url" => self.check(read(given)?).await,
            "get_url" => {
                let get: Get = read(given)?;
                let url = self.allowed(&get.url)?;
                let came = self.get(&url).await?;
                let text = String::from_utf8_lossy(&came.body);
                let shown: String = text.chars().take(TEXT_CHARS_MAX).collect();
                let kind = came.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
                let truncated = came.cut || shown.len() < text.len();
                Ok(json!({ "url": url.as_str(), "status": came.status, "content_type": kind, "text": shown, "truncated": truncated }))
            }
            "read_page" => self.page(read(given)?).await,
            other => Err(no_tool(other)),
        }
    }

    /// An address, if it lies beneath one that is allowed.
    fn allowed(&self, url: &str) -> Result<Url, Fault> {
        let url = named(url)?;
        if self.allowed.iter().any(|allowed| lies_beneath(&url, allowed)) {
            return Ok(url);
        }
        let all: Vec<&str> = self.allowed.iter().map(Url::as_str).collect();
        Err(Fault::Failed(format!("{url} is not allowed; this connector reaches {}", all.join(", "))))
    }

    async fn get(&self, url: &Url) -> Result<Came, String> {
        let asked = Asked { method: Method::GET, url, headers: self.headers.clone(), body: Bytes::new(), most: BODY_BYTES_MAX };
        self.reach.look(asked).await
    }

    async fn check(&self, check: Check) -> Result<Value, Fault> {
        let url = self.allowed(&check.url)?;
        let started = Instant::now();
        let came = self.get(&url).await;
        let ms = started.elapsed().as_millis();
        let slow = check.slow_ms.filter(|slow| *slow > 0.0).map(|slow| Duration::from_secs_f64((slow / 1_000.0).min(600.0)));
        let (state, status, why) = match came {
            Err(why) => ("down", None, why),
            Ok(came) if came.status >= 400 => ("down", Some(came.status), format!("it answered {}", came.status)),
            Ok(came) if !check.has.is_empty() && !String::from_utf8_lossy(&came.body).contains(&check.has) => {
                ("down", Some(came.status), format!("its answer has no {:?} in it", check.has))
            }
            Ok(came) if slow.is_some_and(|slow| started.elapsed() > slow) => ("slow", Some(came.status), format!("it took {ms} ms")),
            Ok(came) => ("up", Some(came.status), String::new()),
        };
        Ok(json!({ "url": url.as_str(), "state": state, "status": status, "ms": u64::try_from(ms).unwrap_or(u64::MAX), "why": why }))
    }

    async fn page(&self, get: Get) -> Result<Value, Fault> {
        let url = self.allowed(&get.url)?;
        let addresses = self.reach.addresses(&url).await?;
        let ports = url.port_or_known_default().into_iter().collect();
        // A redirect could lead anywhere, and what is allowed is what was named.
        let limits = Limits { redirects: 0, ports, ..Limits::default() };
        let page = Client::reaching(addresses).trusting(self.reach.tls()).fetch(url.as_str(), &limits).await.map_err(|error| error.to_string())?;
        Ok(json!({ "url": page.url, "status": page.status, "content_type": page.content_type, "title": page.title, "text": page.text,
            "truncated": page.truncated }))
    }
}

fn named(url: &str) -> Result<Url, String> {
    let read = Url::parse(url.trim()).map_err(|error| format!("{url:?} is no address: {error}"))?;
    if !matches!(read.scheme(), "http" | "https") || read.host().is_none() {
        return Err(format!("{url:?} is no address of http: or https:"));
    }
    if !read.username().is_empty() || read.password().is_some() {
        return Err("an address must not hold a password".to_owned());
    }
    Ok(read)
}

/// Whether an address has the same scheme, host and port, and a path within.
fn lies_beneath(url: &Url, allowed: &Url) -> bool {
    let within = |path: &str, of: &str| path == of || path.strip_prefix(of.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'));
    url.origin() == allowed.origin() && within(url.path(), allowed.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_beneath_a_named_address_is_reached() {
        let allowed = named("https://api.example.org/v1").unwrap();
        for (url, fits) in [
            ("https://api.example.org/v1", true),
            ("https://api.example.org/v1/orders?x=1", true),
            ("https://api.example.org/v10", false),
            ("https://api.example.org/v1/../admin", false),
            ("https://api.example.org/v1/%2e%2e/admin", false),
            ("http://api.example.org/v1", false),
            ("https://api.example.org:8443/v1", false),
            ("https://api.example.org.evil.example/v1", false),
        ] {
            assert_eq!(lies_beneath(&named(url).unwrap(), &allowed), fits, "{url}");
        }
        assert!(named("https://me:pw@example.org/").is_err() && named("file:///etc/passwd").is_err());
        let reach = || Reach::new(None, false).unwrap();
        assert!(Http::new(reach(), &[], Vec::new()).is_err());
        assert!(Http::new(reach(), &["http://example.org/".into()], vec![("x-key".into(), "k".into())]).is_err(), "no secret in the open");
        assert!(Http::new(reach(), &["http://127.0.0.1:9/".into()], vec![("x-key".into(), "k".into())]).is_ok());
    }
}
