//! Who may talk to this server at all: requests must name it by one of its own names, and pages must be its own.
//! This is what keeps a web page on another site, or a name that was made to point here, out. A browser's extension is no
//! page: it may call operations, with a credential that it brings itself and never with the browser's cookie.

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use deskmate_core::Error;

use super::Shared;
use super::credential::now_ms;
use super::rest::Failure;

/// The desk's time in milliseconds since 1970, with every answer: browsers sign with it, because their own clock may be off.
const NOW: &str = "deskmate-now";
/// Where a code is changed for a session. Nobody who calls it has a credential yet.
const PAIRING: &str = "/api/desk_pair";

/// The names and origins under which the desk may be called.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    hosts: Vec<String>,
    port: u16,
    tls: bool,
    proxied: bool,
    /// Origins that pages have besides, with their ports.
    elsewhere: Vec<String>,
}

impl Allowed {
    /// Loopback names always, and the configured ones.
    pub(crate) fn new(hosts: &[String], port: u16, tls: bool) -> Self {
        let mut all: Vec<String> = ["localhost", "127.0.0.1", "[::1]", "deskmate.localhost"].map(str::to_owned).into();
        all.extend(hosts.iter().cloned());
        Self { hosts: all, port, tls, proxied: false, elsewhere: Vec::new() }
    }

    /// Says whether a proxy adds TLS in front of the desk.
    #[must_use]
    pub(crate) fn behind_proxy(self, proxied: bool) -> Self {
        Self { proxied, ..self }
    }

    /// Names further origins at which people open the desk, such as that of a proxy on a port of its own.
    #[must_use]
    pub(crate) fn opened_at<'o>(self, origins: impl Iterator<Item = &'o str>) -> Self {
        Self { elsewhere: origins.map(with_port).collect(), ..self }
    }

    /// Whether pages come over TLS, the desk's own or a proxy's: then the cookie is sent no other way.
    pub(super) fn is_tls(&self) -> bool {
        self.tls || self.proxied
    }

    /// The host names, for the MCP endpoint's own check.
    pub(crate) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The origins that our own pages have, with their port. The second is that of a proxy that adds TLS at the usual one.
    pub(crate) fn origins(&self) -> Vec<String> {
        let scheme = if self.tls { "https" } else { "http" };
        let with_port = self.hosts.iter().map(|host| format!("{scheme}://{host}:{}", self.port));
        with_port.chain(self.hosts.iter().map(|host| format!("https://{host}:443"))).chain(self.elsewhere.iter().cloned()).collect()
    }

    fn host_is_ours(&self, host: &str) -> bool {
        let end = if host.starts_with('[') { host.find(']').map(|end| end + 1) } else { host.find(':') };
        let (name, rest) = host.split_at(end.unwrap_or(host.len()));
        let port_or_none = rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
        port_or_none && self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn origin_is_ours(&self, origin: &str) -> bool {
        let origin = with_port(origin);
        self.origins().iter().any(|own| own.eq_ignore_ascii_case(&origin))
    }
}

/// Whether an extension of a browser sent this. No page can have such an origin: browsers write it themselves.
fn is_extension(origin: &str) -> bool {
    ["chrome-extension://", "moz-extension://"].iter().any(|scheme| origin.starts_with(scheme))
}

/// What extensions may ask for: operations with a credential of their own, and getting one with a pairing code.
fn extension_may(request: &Request) -> bool {
    let path = request.uri().path();
    let pairs = request.method() == Method::POST && path == PAIRING;
    path.starts_with("/api/") && (pairs || request.headers().contains_key(AUTHORIZATION))
}

/// An origin with its port, which browsers leave out where it is the usual one.
fn with_port(origin: &str) -> String {
    let Some((scheme, host)) = origin.split_once("://") else { return origin.to_owned() };
    let has_port = host.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
    match scheme.to_ascii_lowercase().as_str() {
        "https" if !has_port => format!("{origin}:443"),
        "http" if !has_port => format!("{origin}:80"),
        _ => origin.to_owned(),
    }
}

/// Refuses requests that name another host, or that a page of another origin sent.
pub(super) async fn check(State(shared): State<Shared>, mut request: Request, next: Next) -> Response {
    let headers = request.headers();
    let host = request.uri().host().or_else(|| text(headers, &HOST));
    // HTTP over the local socket has no host of its own; the command line sends `localhost`.
    if !host.is_some_and(|host| shared.allowed.host_is_ours(host)) {
        return Failure(Error::forbidden("this desk is not called by that host name").hint("add it to `hosts` in deskmate.yaml")).into_response();
    }
    if headers.contains_key(ORIGIN) && !text(headers, &ORIGIN).is_some_and(|origin| shared.allowed.origin_is_ours(origin)) {
        if !text(headers, &ORIGIN).is_some_and(is_extension) {
            return Failure(Error::forbidden("pages of another origin may not call this desk")).into_response();
        }
        if !extension_may(&request) {
            return Failure(Error::forbidden("an extension calls operations only, with a session of its own").hint("pair it with this desk")).into_response();
        }
        // The browser adds the cookie of whoever is signed in here, which the extension is not.
        request.headers_mut().remove(COOKIE);
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    headers.entry("cache-control").or_insert(HeaderValue::from_static("no-store"));
    headers.insert(NOW, HeaderValue::from(now_ms(&shared)));
    response
}

fn text<'h>(headers: &'h HeaderMap, name: &axum::http::HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_own_names_and_origins_pass() {
        let allowed = Allowed::new(&["desk.example.org".to_owned()], 7373, false);
        for good in ["localhost", "LOCALHOST:7373", "127.0.0.1:7373", "[::1]:7373", "desk.example.org"] {
            assert!(allowed.host_is_ours(good), "{good}");
        }
        for bad in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:7373", "", "[::2]"] {
            assert!(!allowed.host_is_ours(bad), "{bad}");
        }
        assert!(allowed.origin_is_ours("http://localhost:7373"));
        assert!(!allowed.origin_is_ours("http://localhost:3000"));
        assert!(!allowed.origin_is_ours("null"));
        assert!(allowed.origin_is_ours("https://desk.example.org"), "a proxy adds TLS");
        assert!(allowed.origin_is_ours("https://[::1]"));
        assert!(!allowed.origin_is_ours("https://desk.example.org:8443"));
        assert!(!allowed.origin_is_ours("http://desk.example.org"));
        let opened = allowed.opened_at(["https://desk.example.org:8443", "http://localhost:9000"].into_iter());
        for good in ["https://desk.example.org:8443", "http://localhost:9000", "http://localhost:7373", "https://desk.example.org"] {
            assert!(opened.origin_is_ours(good), "{good}");
        }
        for bad in ["https://desk.example.org:9443", "http://desk.example.org:8443", "http://localhost:8443"] {
            assert!(!opened.origin_is_ours(bad), "{bad}");
        }
        assert!(Allowed::new(&[], 80, false).origin_is_ours("http://localhost"), "the usual port is left out");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_other_text_is_a_host_or_an_origin_of_ours(
            any in any::<String>(), own in 0_usize..5, scheme in "(https?|HTTP|ftp|chrome-extension)?", before in "[a-z.@:/\\[\\]]{0,4}", after in "[a-z0-9.@:/\\[\\] ]{0,6}",
        ) {
            let allowed = Allowed::new(&["desk.example.org".to_owned()], 7373, false);
            let name = allowed.hosts()[own].clone();
            let named = |host: &str| allowed.hosts().iter().any(|own| {
                let rest = host.to_ascii_lowercase().strip_prefix(own.as_str()).map(str::to_owned);
                rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit())))
            });
            for host in [any.clone(), format!("{before}{name}{after}")] {
                prop_assert_eq!(allowed.host_is_ours(&host), named(&host), "{:?}", host);
            }
            let mut own_origins = allowed.origins();
            own_origins.extend(allowed.hosts().iter().map(|host| format!("https://{host}")));
            for origin in [any, format!("{scheme}://{before}{name}{after}"), format!("{scheme}://{name}")] {
                prop_assert_eq!(allowed.origin_is_ours(&origin), own_origins.contains(&origin.to_ascii_lowercase()), "{:?}", origin);
            }
        }
    }
}
