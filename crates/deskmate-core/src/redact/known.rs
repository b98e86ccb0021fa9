//! Values that are known to be secret, in every form in which a program is likely to hand them on.

use aho_corasick::{AhoCorasick, MatchKind};
use data_encoding::{BASE64, BASE64URL, HEXLOWER, HEXUPPER};

use super::kind::Kind;
use super::scan::{Scan, Span};
use crate::{Code, Error, Result};

/// Shorter encoded forms are found by chance in any text.
const ENCODED_LEAST: usize = 6;
/// So long is a line of a value that is known by itself. A shorter one says nothing of it, and stands in other texts too.
const LINE_LEAST: usize = 8;

/// A set of values, for [`Redactor::knowing`](super::Redactor::knowing). It has no `Debug`.
pub struct Known {
    forms: AhoCorasick,
    /// Where the forms that are base64 begin: what stands beside them holds bits of the value too.
    base64_from: usize,
}

impl Known {
    /// Knows these values, and each longer line of one that has several: what is looked through line by line never holds all of it. An empty
    /// one is none.
    pub fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Result<Self> {
        let (mut plain, mut encoded) = (Vec::new(), Vec::new());
        let with_lines = |value: &'v str| std::iter::once(value).chain(lines(value));
        for value in values.into_iter().filter(|value| !value.is_empty()).flat_map(with_lines) {
            plain.push(value.to_owned());
            plain.extend(written(value).into_iter().filter(|form| form != value));
            encoded.extend(in_base64(value));
        }
        encoded.retain(|form| form.len() >= ENCODED_LEAST);
        let base64_from = plain.len();
        let forms = AhoCorasick::builder().match_kind(MatchKind::Standard).build(plain.iter().chain(&encoded));
        let forms = forms.map_err(|_| Error::new(Code::Internal, "the known secrets are too large to be looked for"))?;
        Ok(Self { forms, base64_from })
    }

    pub(super) fn find(&self, scan: &Scan<'_>, spans: &mut Vec<Span>) {
        for found in self.forms.find_overlapping_iter(scan.text) {
            let (mut start, mut end) = (found.start(), found.end());
            if found.pattern().as_usize() >= self.base64_from {
                start = scan.run_back(start, 1, is_base64);
                end = scan.run(scan.run(end, 1, is_base64), 2, |byte| byte == b'=');
            }
            spans.push(scan.span(start, end, Kind::Known));
        }
    }
}

/// The longer lines of a value that has several.
fn lines(value: &str) -> impl Iterator<Item = &str> {
    value.lines().map(str::trim).filter(move |line| line.len() >= LINE_LEAST && line.len() < value.len())
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// The value as JSON, a URL, a form, HTML and hexadecimal digits write it.
fn written(value: &str) -> Vec<String> {
    let json = serde_json::Value::from(value).to_string();
    let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or_default().to_owned();
    let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;");
    let url = in_url(value, false);
    let mut forms = vec![url.clone(), lower_escapes(&url), in_url(value, true), url::form_urlencoded::byte_serialize(value.as_bytes()).collect(), json, html];
    forms.extend([HEXLOWER.encode(value.as_bytes()), HEXUPPER.encode(value.as_bytes())].into_iter().filter(|form| form.len() >= ENCODED_LEAST));
    forms
}

/// Percent-encoded: everything but letters, digits and `-._~`, or leaving alone what may stand in a path too.
fn in_url(value: &str, is_path: bool) -> String {
    let stays = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (is_path && b"!$&'()*+,;=:@/".contains(&byte));
    value.bytes().map(|byte| if stays(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn lower_escapes(url: &str) -> String {
    let mut parts = url.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (escape, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        format!("{text}%{}{rest}", escape.to_ascii_lowercase())
    })
}

/// The characters of base64 that the value alone decides, wherever in something longer it stands: after a multiple of three
/// bytes, after one more, and after two more.
fn in_base64(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3_usize {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(value.as_bytes());
        let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for encoding in [BASE64, BASE64URL] {
            let form = encoding.encode(&bytes).get(from..to).unwrap_or_default().to_owned();
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    forms
}
