//! The browser extension's way in: a session of its own in the Authorization header, signed by the browser's key.

use data_encoding::BASE64;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::desk::Desk;
use super::http::{Answer, get, post};

const CHROME: &str = "chrome-extension://abcdefghijklmnopabcdefghijklmnop";
const FIREFOX: &str = "moz-extension://0b5e7a3c-6a51-4a52-8f2c-0c0f6f0d3c11";

/// A browser that signed in: its key and its session.
struct Browser {
    url: String,
    key: SigningKey,
    session: String,
}

impl Browser {
    fn sign_in(url: &str) -> Self {
        let key = SigningKey::from_slice(&[7; 32]).expect("a key");
        let browser = Self { url: url.to_owned(), key, session: String::new() };
        let answer = post(url, "/api/desk_sign_in", &[], &json!({ "passphrase": "correct horse", "public_key": browser.public() }).to_string());
        let session = json_of(&answer)["session"].as_str().expect("a session").to_owned();
        Self { session, ..browser }
    }

    /// The headers that sign a call.
    #[expect(clippy::disallowed_methods, reason = "a browser signs with the time of its own clock")]
    fn signs(&self, path: &str, body: &str) -> [(&'static str, String); 2] {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_millis();
        self.signs_at(path, body, &now.to_string())
    }

    /// The same at a time.
    fn signs_at(&self, path: &str, body: &str, now: &str) -> [(&'static str, String); 2] {
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(body));
        let signature: Signature = self.key.sign(format!("POST\n{path}\n{digest}\n{now}").as_bytes());
        [("Deskmate-Signature", BASE64.encode(&signature.to_bytes())), ("Deskmate-Signed-At", now.to_string())]
    }

    fn public(&self) -> String {
        BASE64.encode(self.key.verifying_key().to_encoded_point(false).as_bytes())
    }

    fn call(&self, path: &str, body: &str, signed: &[(&str, String)], more: &[(&str, &str)]) -> Answer {
        let bearer = format!("Bearer {}", self.session);
        let mut headers = vec![("Authorization", bearer.as_str())];
        headers.extend(signed.iter().map(|(name, value)| (*name, value.as_str())));
        headers.extend(more);
        post(&self.url, path, &headers, body)
    }
}

fn json_of(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("not JSON: {}", answer.body))
}

#[test]
fn a_session_in_the_header_decides_only_with_a_signature_of_its_key() {
    let desk = Desk::new();
    desk.register("code");
    let browser = Browser::sign_in(&desk.url());
    let (path, body) = ("/api/desk_agent_add", json!({ "agent": "other" }).to_string());
    let unsigned = browser.call(path, &body, &[], &[]);
    assert_eq!(unsigned.status, 403, "{}", unsigned.body);
    let elsewhere = browser.call(path, &body, &browser.signs("/api/desk_pause", &body), &[]);
    assert_eq!(elsewhere.status, 403, "a signature over something else: {}", elsewhere.body);
    let signature = browser.signs(path, &body);
    let added = browser.call(path, &body, &signature, &[("Origin", CHROME)]);
    assert!(json_of(&added)["token"].as_str().is_some_and(|token| token.starts_with("dma_")), "{}", added.body);
    let body = json!({ "agent": "third" }).to_string();
    assert_eq!(browser.call(path, &body, &signature, &[]).status, 403, "a signature of another body");
    let listed = browser.call("/api/desk_agent_list", "{}", &[], &[]);
    assert_eq!(listed.status, 200, "the session alone still reads: {}", listed.body);
    let names: Vec<_> = json_of(&listed)["agents"].as_array().expect("agents").iter().map(|agent| agent["agent"].clone()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

/// What a header of an answer says.
fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let mut lines = answer.head.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

#[test]
fn a_browser_signs_with_the_desks_time_whatever_the_clocks_say() {
    let desk = Desk::new();
    desk.register("code");
    assert!(desk.run(&["stop"]).status.success());
    // Something was told while this machine's clock was an hour ahead, and then the clock was set right.
    let store = rusqlite::Connection::open(desk.path().join("desk.db")).expect("the store");
    store.execute("update event set at = at + 3600000000 where seq = (select max(seq) from event)", []).expect("written");
    drop(store);
    let browser = Browser::sign_in(&desk.up());
    let (path, body) = ("/api/desk_agent_add", json!({ "agent": "other" }).to_string());
    let own = browser.call(path, &body, &browser.signs(path, &body), &[]);
    let message = json_of(&own)["error"]["message"].as_str().expect("a message").to_owned();
    assert!(own.status == 401 && message.contains(" s behind the desk's"), "{}: {message}", own.status);
    let now = header(&own, "deskmate-now").expect("the desk's time").to_owned();
    let forged = [("Deskmate-Signature", BASE64.encode(&[1; 64])), ("Deskmate-Signed-At", now.clone())];
    assert_eq!(browser.call(path, &body, &forged, &[]).status, 403, "who did not sign learns nothing of clocks");
    let added = browser.call(path, &body, &browser.signs_at(path, &body, &now), &[]);
    assert_eq!(added.status, 200, "{}", added.body);
    assert_eq!(browser.call(path, &body, &browser.signs_at(path, &body, &now), &[]).status, 403, "once");
    let log = std::fs::read_to_string(desk.path().join("server.log")).expect("a log");
    assert!(log.contains("ahead of this machine's clock, because event"), "{log}");
    let looked: Value = serde_json::from_slice(&desk.run(&["doctor", "--json"]).stdout).expect("JSON");
    let clock = looked["desk"].as_array().expect("checks").iter().find(|check| check["what"] == "clock");
    assert!(clock.is_some_and(|clock| clock["state"] == "warning"), "{looked}");
}

#[test]
fn extensions_call_operations_with_a_credential_of_their_own_only() {
    let desk = Desk::new();
    desk.register("code");
    let url = desk.url();
    let browser = Browser::sign_in(&url);
    let bearer = format!("Bearer {}", browser.session);
    let cookie = format!("deskmate_session={}", browser.session);
    for origin in [CHROME, FIREFOX] {
        let origin = ("Origin", origin);
        let known = post(&url, "/api/desk_whoami", &[origin, ("Authorization", &bearer)], "{}");
        assert_eq!(json_of(&known)["name"], "Ada", "{}", known.body);
        assert!(!known.head.to_ascii_lowercase().contains("access-control"), "{}", known.head);
        for headers in [vec![origin], vec![origin, ("Cookie", &cookie)], vec![origin, ("X-Deskmate-Agent", "code")]] {
            assert_eq!(post(&url, "/api/desk_whoami", &headers, "{}").status, 403, "{headers:?}");
        }
        assert_eq!(get(&url, "/", &[origin, ("Cookie", &cookie), ("Authorization", &bearer)]).status, 403, "a page");
        assert_eq!(post(&url, "/session/sign-in", &[origin, ("Authorization", &bearer)], "{}").status, 403, "what gives a cookie");
        assert_eq!(post(&url, "/mcp", &[origin, ("Authorization", &bearer)], "{}").status, 403, "MCP");
    }
    for page in ["https://evil.example", "http://localhost:1", "null", "chrome-extension.evil.example", "https://chrome-extension://x"] {
        for path in ["/api/desk_whoami", "/api/desk_pair"] {
            assert_eq!(post(&url, path, &[("Origin", page), ("Authorization", &bearer)], "{}").status, 403, "{page}");
        }
    }
}

#[test]
fn a_code_pairs_an_extension_whoever_is_signed_in_to_the_pages() {
    let desk = Desk::new();
    desk.register("code");
    let url = desk.url();
    let page = Browser::sign_in(&url);
    let (path, body) = ("/api/desk_pairing_start", json!({ "kind": "extension", "name": "mine" }).to_string());
    let code = json_of(&page.call(path, &body, &page.signs(path, &body), &[]))["code"].as_str().expect("a code").to_owned();
    let (path, body) = ("/api/desk_sign_out", "{}");
    assert_eq!(page.call(path, body, &page.signs(path, body), &[]).status, 200);
    // The browser still sends the cookie of a session that has ended, which would not get in.
    let cookie = format!("deskmate_session={}", page.session);
    let body = json!({ "code": code, "public_key": page.public() }).to_string();
    let paired = post(&url, "/api/desk_pair", &[("Origin", CHROME), ("Cookie", &cookie)], &body);
    let session = json_of(&paired)["session"].as_str().unwrap_or_else(|| panic!("{}", paired.body)).to_owned();
    let extension = Browser { session, ..page };
    let (path, body) = ("/api/desk_agent_add", json!({ "agent": "other" }).to_string());
    let asked = extension.call(path, &body, &extension.signs(path, &body), &[("Origin", FIREFOX)]);
    assert_eq!(json_of(&asked)["error"]["needs_presence"], true, "a code shows nobody's presence: {}", asked.body);
    let body = json!({ "passphrase": "correct horse" }).to_string();
    let shown = extension.call("/api/desk_show_presence", &body, &extension.signs("/api/desk_show_presence", &body), &[("Origin", FIREFOX)]);
    assert_eq!(json_of(&shown)["shown"], true, "{}", shown.body);
    let body = json!({ "agent": "other" }).to_string();
    assert_eq!(extension.call(path, &body, &extension.signs(path, &body), &[("Origin", FIREFOX)]).status, 200);
}
