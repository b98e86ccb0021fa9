//! Secrets that are known by what stands before them: a header, a URL, or the name of what they are given to.

use data_encoding::{BASE64, BASE64_NOPAD};

use super::keys::{Class, class_of, is_placeholder, looks_random};
use super::kind::Kind;
use super::scan::{Scan, Span};

/// What a word may announce.
#[derive(Clone, Copy)]
pub(super) enum Announces {
    /// A private key in armour.
    Armour,
    /// A URL with a password.
    Url,
    /// A bearer token.
    Bearer,
    /// A name and password.
    Basic,
    /// A header with either, or something else.
    Authorization,
    /// A value for something called so.
    Value,
}

/// The words, in lower case.
pub(super) const ANNOUNCES: &[(&str, Announces)] = &[
    ("-----begin", Announces::Armour),
    ("://", Announces::Url),
    ("bearer", Announces::Bearer),
    ("basic", Announces::Basic),
    ("authorization", Announces::Authorization),
    ("pass", Announces::Value),
    ("pwd", Announces::Value),
    ("secret", Announces::Value),
    ("token", Announces::Value),
    ("key", Announces::Value),
    ("credential", Announces::Value),
    ("auth", Announces::Value),
    ("cookie", Announces::Value),
    ("session", Announces::Value),
    ("jwt", Announces::Value),
    ("otp", Announces::Value),
];

/// How much of a name is looked at, of a value, and of the authority of a URL. A longer value goes whole, once it is one.
const NAME_MOST: usize = 64;
const VALUE_MOST: usize = 1_024;
const AUTHORITY_MOST: usize = 512;
const SPACES_MOST: usize = 16;

/// What was walked already.
#[derive(Default)]
pub(super) struct Walk {
    /// Where the last private key ended.
    armour_end: usize,
    /// No private key ends after here.
    unarmoured: bool,
    /// Where the run of letters ends in which the last name stood.
    name_end: usize,
    /// Where the last value ended.
    value_end: usize,
}

impl Walk {
    pub(super) fn look(&mut self, scan: &Scan<'_>, announces: Announces, start: usize, end: usize, spans: &mut Vec<Span>) {
        match announces {
            Announces::Armour => spans.extend(self.armour(scan, start, end)),
            Announces::Url => spans.extend(url_password(scan, end)),
            Announces::Bearer => spans.extend(bearer(scan, start, end)),
            Announces::Basic => spans.extend(basic(scan, start, end)),
            Announces::Authorization if start >= self.value_end => {
                if let Some(span) = authorization(scan, end) {
                    self.value_end = span.end;
                    spans.push(span);
                }
            }
            // A name with several such words is looked at once, and what is taken out already is not.
            Announces::Value if start >= self.name_end && start >= self.value_end => {
                self.name_end = scan.run(end, usize::MAX, is_name);
                if let Some(span) = assignment(scan, start, self.name_end) {
                    self.value_end = span.end;
                    spans.push(span);
                }
            }
            Announces::Authorization | Announces::Value => {}
        }
    }

    /// From the line that begins a private key to the one that ends it; without that, as far as it looks like one.
    fn armour(&mut self, scan: &Scan<'_>, start: usize, end: usize) -> Option<Span> {
        if start < self.armour_end {
            return None;
        }
        let line = scan.part(end, scan.run(end, NAME_MOST, |byte| byte.is_ascii_alphanumeric() || byte == b' '));
        if !line.to_ascii_uppercase().contains("PRIVATE KEY") {
            return None;
        }
        let body = end + line.len();
        let closing = if self.unarmoured { None } else { scan.text.get(body..).and_then(|rest| rest.find("-----END")) };
        self.unarmoured |= closing.is_none();
        let stop = match closing {
            Some(at) => scan.run(body + at + "-----END".len(), 2 * NAME_MOST, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'-')),
            None => scan.run(scan.run(body, 5, |byte| byte == b'-'), usize::MAX, is_armoured),
        };
        self.armour_end = stop;
        Some(scan.span(start, stop, Kind::PrivateKey))
    }
}

/// Whether a line begins a private key in armour that does not end on it.
pub fn opens_key(line: &str) -> bool {
    let line = line.to_ascii_uppercase();
    line.rsplit_once("-----BEGIN").is_some_and(|(_, key)| key.contains("PRIVATE KEY") && !key.contains("-----END"))
}

/// Whether a line behind one that begins a private key belongs to it: as much of it as armour holds, and what may be said of the key before that.
pub fn is_of_key(line: &str) -> bool {
    let is_header = |(name, _): (&str, &str)| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    ends_key(line) || line.bytes().all(is_armoured) || line.split_once(": ").is_some_and(is_header)
}

/// Whether a private key ends on a line.
pub fn ends_key(line: &str) -> bool {
    line.contains("-----END")
}

fn is_armoured(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || matches!(byte, b'+' | b'/' | b'=' | b'\\' | b':' | b',')
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_credential(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b'-' | b':')
}

/// `scheme://name:PASSWORD@host`
fn url_password(scan: &Scan<'_>, from: usize) -> Option<Span> {
    let stop = scan.run(from, AUTHORITY_MOST, |byte| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`'));
    let authority = scan.part(from, stop);
    let colon = authority.find(':')?;
    let name_ends = authority.find(['/', '?', '#', '@']).unwrap_or(authority.len());
    if name_ends < colon {
        return None;
    }
    let rest = authority.get(colon + 1..)?;
    let path = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // A slash may be part of a password that nobody escaped, but after a port it is not.
    let is_port = rest.get(..path).is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    let at = match rest.get(..path).and_then(|rest| rest.rfind('@')) {
        Some(at) => at,
        None if is_port || path == rest.len() => return None,
        None => rest.find('@')?,
    };
    let password = rest.get(..at)?;
    if password.is_empty() || is_placeholder(password) && !password.eq_ignore_ascii_case("password") && !password.eq_ignore_ascii_case("secret") {
        return None;
    }
    let start = from + colon + 1;
    Some(scan.span(start, start + at, Kind::ConnectionPassword))
}

/// The token after `Bearer`.
fn bearer(scan: &Scan<'_>, start: usize, end: usize) -> Option<Span> {
    let from = scan.run(end, SPACES_MOST, is_blank);
    if !scan.begins(start) || from == end {
        return None;
    }
    let stop = scan.run(from, VALUE_MOST, is_credential);
    let token = scan.part(from, stop).trim_end_matches(['.', ':']);
    let is_word = token.bytes().skip(1).all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'.' | b'/'))
        || !token.bytes().any(|byte| byte.is_ascii_alphanumeric());
    if token.len() < 8 || is_word || is_placeholder(token) {
        return None;
    }
    let whole = if stop - from < VALUE_MOST { from + token.len() } else { scan.run(from, usize::MAX, is_credential) };
    Some(scan.span(from, whole, Kind::Bearer))
}

/// What follows `Basic`, if it is a name and a password.
fn basic(scan: &Scan<'_>, start: usize, end: usize) -> Option<Span> {
    let from = scan.run(end, SPACES_MOST, is_blank);
    if !scan.begins(start) || from == end {
        return None;
    }
    let stop = scan.run(from, VALUE_MOST, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    is_basic(scan.part(from, stop)).then(|| scan.span(from, stop, Kind::BasicAuth))
}

fn is_basic(text: &str) -> bool {
    let bare = text.trim_end_matches('=');
    let decoded = BASE64.decode(text.as_bytes()).or_else(|_| BASE64_NOPAD.decode(bare.as_bytes())).unwrap_or_default();
    bare.len() >= 6 && decoded.contains(&b':') && std::str::from_utf8(&decoded).is_ok_and(|text| !text.chars().any(char::is_control))
}

/// What an `Authorization` header says after its scheme.
fn authorization(scan: &Scan<'_>, end: usize) -> Option<Span> {
    let (from, _) = separator(scan, end, b":=")?;
    let (from, _) = open_quote(scan, from);
    let word_end = scan.run(from, NAME_MOST, |byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let scheme = scan.part(from, word_end).to_ascii_lowercase();
    let schemes = ["bearer", "basic", "token", "apikey", "api-key", "digest", "negotiate", "ntlm", "aws4-hmac-sha256", "hmac", "bot", "key", "jwt"];
    let at = scan.run(word_end, SPACES_MOST, is_blank);
    if at == word_end || !schemes.contains(&scheme.as_str()) {
        return None;
    }
    let is_said = |byte: u8| !byte.is_ascii_control() && !matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>');
    let line = scan.part(at, scan.text.floor_char_boundary(scan.run(at, VALUE_MOST, is_said)));
    // A scheme with parameters goes on to the end of its line, any other to the next space.
    let has_parameters = line.contains('=') && line.contains(',');
    let said = if has_parameters { line } else { line.split([' ', '\\']).next().unwrap_or_default() };
    if said.len() < 6 || is_placeholder(said) {
        return None;
    }
    let whole = scan.run(at, usize::MAX, |byte| is_said(byte) && (has_parameters || !matches!(byte, b' ' | b'\\')));
    let kind = if scheme == "basic" { Kind::BasicAuth } else { Kind::Bearer };
    Some(scan.span(at, whole, kind))
}

/// Skips what may stand between a name and its value, and tells which sign it was and whether there was room around it.
fn separator(scan: &Scan<'_>, from: usize, signs: &[u8]) -> Option<(usize, Between)> {
    let closed = scan.run(from, 3, |byte| matches!(byte, b'"' | b'\'' | b'`' | b']' | b'\\'));
    let spaced = scan.run(closed, SPACES_MOST, is_blank);
    let sign = scan.byte(spaced).filter(|byte| signs.contains(byte))?;
    let after = scan.run(spaced, 2, |byte| matches!(byte, b':' | b'=' | b'>'));
    let end = scan.run(after, SPACES_MOST, is_blank);
    Some((end, Between { sign, is_spaced: spaced > closed || end > after, is_quoted: closed > from }))
}

/// What stood between a name and its value.
#[derive(Clone, Copy)]
struct Between {
    sign: u8,
    is_spaced: bool,
    /// The name was in quotes.
    is_quoted: bool,
}

/// Skips an opening quote, also one that is escaped, and tells which one it was.
fn open_quote(scan: &Scan<'_>, from: usize) -> (usize, Option<u8>) {
    let escaped = scan.run(from, 3, |byte| byte == b'\\');
    match scan.byte(escaped).filter(|byte| matches!(byte, b'"' | b'\'' | b'`')) {
        Some(quote) => (escaped + 1, Some(quote)),
        None => (from, None),
    }
}

/// A value that is given to something with the name of a secret.
fn assignment(scan: &Scan<'_>, word: usize, name_end: usize) -> Option<Span> {
    let name_start = scan.run_back(word, NAME_MOST, is_name).max(name_end.saturating_sub(2 * NAME_MOST));
    let name = scan.part(name_start, name_end).trim_end_matches(['.', '-']);
    let name_end = name_start + name.len();
    let is_flag = name.starts_with("--");
    // Most names stand in a sentence, and nothing is given to them.
    let (from, between) = separator(scan, name_end, b":=").or_else(|| said(scan, name_end, is_flag))?;
    let class = class_of(name).or_else(|| class_of(&two_words(scan, name_start, name_end)))?;
    let first = scan.run_back(name_start, NAME_MOST, |byte| is_blank(byte) || matches!(byte, b'-' | b'"' | b'\''));
    let opens_line =
        first == 0 || scan.before(first) == Some(b'\n') || scan.text.get(..first).is_some_and(|head| head.ends_with("export") || head.ends_with("ENV"));
    let (from, quote) = open_quote(scan, from);
    let (stop, given) = value(scan, from, quote, class, opens_line && between.sign != 0);
    let given = Given { value: given, is_quoted: quote.is_some(), between, opens_line, name };
    if !given.is_secret(class) {
        return None;
    }
    // A value that is longer than what was looked at ends where it ends.
    let whole = if stop - from < VALUE_MOST { stop } else { value_end(scan, from, quote, usize::MAX) };
    Some(scan.span(from, whole, Kind::SecretAssignment))
}

/// `api key` and `access token` are names of two words.
fn two_words(scan: &Scan<'_>, start: usize, end: usize) -> String {
    let Some(gap) = start.checked_sub(1).filter(|gap| scan.byte(*gap) == Some(b' ')) else { return String::new() };
    scan.part(scan.run_back(gap, NAME_MOST, |byte| byte.is_ascii_alphabetic()), end).replace(' ', "_")
}

/// `password is …` and `--password …`
fn said(scan: &Scan<'_>, end: usize, is_flag: bool) -> Option<(usize, Between)> {
    let from = scan.run(end, SPACES_MOST, is_blank);
    let between = Between { sign: 0, is_spaced: true, is_quoted: false };
    if from == end {
        return None;
    }
    if is_flag {
        return (scan.byte(from) != Some(b'-')).then_some((from, between));
    }
    let is = scan.is_at(from, "is ").then_some(from + 3)?;
    Some((scan.run(is, SPACES_MOST, |byte| is_blank(byte) || byte == b':'), between))
}

/// The value and where it ends: at its quote, at the end of a line that it has for itself, or where something else begins.
fn value<'t>(scan: &Scan<'t>, from: usize, quote: Option<u8>, class: Class, has_line: bool) -> (usize, &'t str) {
    let line = scan.run(from, VALUE_MOST, |byte| !matches!(byte, b'\n' | b'\r' | 0));
    let mut stop = value_end(scan, from, quote, line - from);
    if quote.is_none() && (has_line || class == Class::Cookie) {
        let text = scan.part(from, scan.text.floor_char_boundary(line));
        let text = text.split(" #").next().unwrap_or(text).trim_end();
        // Only a value without spaces has the line for itself: a sentence goes on, and so does a list of settings.
        let goes_on = text.split(['&', ';']).skip(1).any(|next| next.contains('='));
        if class == Class::Cookie || !(text.contains(' ') || goes_on) {
            stop = from + text.len();
        }
    }
    let text = scan.part(from, scan.text.floor_char_boundary(stop));
    let text = if quote.is_some() { text.trim_end_matches('\\') } else { text.trim_end_matches([',', ';', '.']) };
    (from + text.len(), text)
}

fn value_end(scan: &Scan<'_>, from: usize, quote: Option<u8>, most: usize) -> usize {
    match quote {
        Some(quote) => scan.run(from, most, |byte| byte != quote && !matches!(byte, b'\n' | b'\r' | 0)),
        None => scan.run(from, most, |byte| {
            !byte.is_ascii_whitespace() && !matches!(byte, b',' | b';' | b'&' | b')' | b']' | b'}' | b'<' | b'>' | b'"' | b'\'' | b'`' | b'|')
        }),
    }
}

/// A value in its place.
struct Given<'t> {
    value: &'t str,
    is_quoted: bool,
    between: Between,
    opens_line: bool,
    name: &'t str,
}

impl Given<'_> {
    fn is_secret(&self, class: Class) -> bool {
        if is_placeholder(self.value) || self.value.eq_ignore_ascii_case(self.name) {
            return false;
        }
        match class {
            Class::Cookie => self.between.sign == b':' && self.value.len() >= 8 && self.value.contains('='),
            Class::Token => looks_random(self.value) && (self.is_quoted || !self.is_code()),
            Class::Password => self.is_password(),
        }
    }

    fn is_password(&self) -> bool {
        let value = self.value;
        if value.len() < 4 {
            return false;
        }
        if value.contains(' ') {
            // What is said about passwords is no password, unless whole sentences are meant to be one.
            let is_prose = value.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b' ' || matches!(byte, b'.' | b',' | b'\'' | b'!' | b'?'));
            return self.is_quoted && (!is_prose || self.name.to_ascii_lowercase().contains("passphrase"));
        }
        let is_word = value.bytes().skip(1).all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'.' | b'_' | b'-' | b'/'));
        if self.is_quoted {
            // A label repeats the word.
            return !value.to_ascii_lowercase().contains("passw") || !is_word;
        }
        if self.is_code() {
            return false;
        }
        match self.between.sign {
            b'=' => !(is_word && self.between.is_spaced),
            b':' => !is_word || (self.opens_line && self.between.is_spaced && !self.between.is_quoted && !value.ends_with('-')),
            _ => !is_word,
        }
    }

    /// Calls, members and variables of a program.
    fn is_code(&self) -> bool {
        let value = self.value;
        let is_path =
            value.contains('.') && value.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_'));
        value.contains('(') && self.between.is_spaced || value.ends_with("()") || is_path || value.starts_with(['{', '[', '&', '*', '@'])
    }
}
