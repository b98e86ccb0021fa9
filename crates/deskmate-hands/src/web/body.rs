//! From the bytes of an answer to its text: unpacks, decodes and cuts.

use std::io::Read;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use flate2::read::MultiGzDecoder;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use url::Url;

use super::html;
use super::{FetchError, Limits, Page};

/// In how many bytes from its beginning a page says how it is written.
const DECLARATION_BYTES: usize = 1_024;

/// What an answer's head says about its body.
#[derive(Debug)]
pub(super) struct Kind {
    content_type: String,
    charset: Option<&'static Encoding>,
    gzip: bool,
}

impl Kind {
    /// Reads the head, and refuses what is not text.
    pub(super) fn of(head: &HeaderMap) -> Result<Self, FetchError> {
        let given = head.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut parts = given.split(';');
        let content_type = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        if !is_text(&content_type) {
            let named: String = content_type.chars().take(100).collect();
            return Err(FetchError::Type(if named.is_empty() { "of no known type".to_owned() } else { named }));
        }
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            if name.trim().eq_ignore_ascii_case("charset") { Encoding::for_label(value.trim().trim_matches(['"', '\'']).as_bytes()) } else { None }
        });
        let packing = head.get(CONTENT_ENCODING).map_or("", |value| value.to_str().unwrap_or("?")).trim().to_ascii_lowercase();
        let gzip = match packing.as_str() {
            "" | "identity" => false,
            "gzip" | "x-gzip" => true,
            other => return Err(FetchError::Packing(other.chars().take(30).collect())),
        };
        Ok(Self { content_type, charset, gzip })
    }

    /// The page that these bytes are.
    pub(super) fn page(self, url: Url, status: u16, bytes: Vec<u8>, truncated: bool, limits: &Limits) -> Result<Page, FetchError> {
        let fetched_bytes = bytes.len();
        let (bytes, unpacked_truncated) = if self.gzip { unpack(&bytes, truncated, limits.body_bytes)? } else { (bytes, false) };
        let text = self.decode(&bytes);
        let is_html = matches!(self.content_type.as_str(), "text/html" | "application/xhtml+xml");
        let read = if is_html { html::read(&text, &url, limits.text_chars) } else { html::plain(&text, limits.text_chars) };
        Ok(Page {
            url: url.into(),
            status,
            content_type: self.content_type,
            title: read.title,
            text: read.text,
            truncated: truncated || unpacked_truncated || read.truncated,
            fetched_bytes,
        })
    }

    /// A mark at the text's beginning says how it is written; then the head; then the text itself.
    fn decode(&self, bytes: &[u8]) -> String {
        let encoding = self.charset.or_else(|| declared(bytes)).unwrap_or(UTF_8);
        let (text, _, _) = encoding.decode(bytes);
        text.into_owned()
    }
}

fn is_text(content_type: &str) -> bool {
    let Some((family, kind)) = content_type.split_once('/') else { return false };
    match family {
        "text" => true,
        "application" => matches!(kind, "json" | "xml" | "xhtml+xml") || kind.ends_with("+json") || kind.ends_with("+xml"),
        _ => false,
    }
}

/// Unpacks at most so many bytes: a few packed ones can be any number. Says whether there was more.
fn unpack(packed: &[u8], cut: bool, max: usize) -> Result<(Vec<u8>, bool), FetchError> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    let read = MultiGzDecoder::new(packed).take(limit).read_to_end(&mut bytes);
    // What was cut off before its end still has a beginning.
    if read.is_err() && (!cut || bytes.is_empty()) {
        return Err(FetchError::Unpack);
    }
    let more = bytes.len() > max;
    bytes.truncate(max);
    Ok((bytes, more))
}

/// What HTML and XML say near their beginning: `charset=…` or `encoding="…"`.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes.get(..DECLARATION_BYTES.min(bytes.len()))?;
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let encoding = ["charset=", "encoding="].iter().find_map(|mark| {
        let (_, rest) = start.split_once(mark)?;
        let label: String = rest.trim_start_matches(['"', '\'', ' ']).chars().take_while(|c| c.is_ascii_alphanumeric() || "-_:".contains(*c)).collect();
        Encoding::for_label(label.as_bytes())
    })?;
    // Whoever can read this declaration does not read UTF-16.
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}
