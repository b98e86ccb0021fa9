//! What is asked for and what comes back.

use std::time::Duration;

/// How much a page may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// From the first look at the address to the last byte, with all redirects.
    pub time: Duration,
    /// Bytes of an answer's head.
    pub head_bytes: usize,
    /// Bytes of an answer's body, as it is sent and once more as it is unpacked. What lies beyond is cut off.
    pub body_bytes: usize,
    /// Characters of the text. What lies beyond is cut off.
    pub text_chars: usize,
    /// How often an answer may send elsewhere.
    pub redirects: usize,
    /// Whether it may send to another host.
    pub elsewhere: bool,
    /// The ports that may be spoken to.
    pub ports: Vec<u16>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(20),
            head_bytes: 64 << 10,
            body_bytes: 2 << 20,
            text_chars: 50_000,
            redirects: 5,
            elsewhere: true,
            ports: vec![80, 443],
        }
    }
}

/// A page as text. It comes from outside: whoever shows it says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Where it was found, after all redirects.
    pub url: String,
    /// The status of the answer; a page that says that it was not found is a page, too.
    pub status: u16,
    /// The kind of content as the server names it, without parameters.
    pub content_type: String,
    /// The page's title, if it has one.
    pub title: Option<String>,
    /// Its text.
    pub text: String,
    /// Whether something was cut off, of the body or of the text.
    pub truncated: bool,
    /// How many bytes of the body were read, as they were sent.
    pub fetched_bytes: usize,
}
