//! Why a page cannot be read.

use std::time::Duration;

/// Why a page cannot be read. The words are ours: what a server says goes nowhere, and neither does the address that a
/// name has, which would tell about the network this runs in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// It is no address of a page.
    #[error("this is not an address of a web page: {0}")]
    Address(String),
    /// Something else than http or https.
    #[error("{0}: is not read; only http: and https: are")]
    Scheme(String),
    /// A name and a password in the address would reach whoever is there.
    #[error("the address holds a name or a password; leave them out")]
    Credentials,
    /// A port that is not among those that may be spoken to.
    #[error("port {0} is not spoken to")]
    Port(u16),
    /// The host is this machine, or in a network that is not the public one.
    #[error("{0} is not on the public internet, and nothing else is read")]
    NotPublic(String),
    /// The name has no address.
    #[error("{0} was not found")]
    NotFound(String),
    /// Nobody answers there.
    #[error("{0} does not answer: {1}")]
    Unreachable(String, String),
    /// The server's certificate, or what else goes wrong with encryption.
    #[error("no secure connection to {0}: {1}")]
    Tls(String, String),
    /// What the server sends is not HTTP, has too large a head, or ends too early.
    #[error("{0} did not answer as a web server does: {1}")]
    Http(String, String),
    /// All of it took too long.
    #[error("the page did not arrive within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// One redirect after another.
    #[error("the page was redirected more than {0} times")]
    Redirects(usize),
    /// A redirect to another host, where those are not followed: its name, and the address.
    #[error("the page sends to another host, {0}, which nobody asked for")]
    Elsewhere(String, String),
    /// A redirect without an address that can be followed.
    #[error("the page redirects without a usable address")]
    RedirectAddress,
    /// From https to http, where others can read along and change what is read.
    #[error("the page redirects from https to http, which is not followed")]
    Downgrade,
    /// Content that is not text.
    #[error("the content is {0}; only text, HTML, JSON and XML are read")]
    Type(String),
    /// A packing that was not asked for.
    #[error("the content is packed as {0}, which was not asked for")]
    Packing(String),
    /// What was announced as gzip is none.
    #[error("the content cannot be unpacked")]
    Unpack,
}
