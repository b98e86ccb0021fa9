//! The desk's own connectors over TLS: whoever has the right certificate is spoken to, and nobody else is sent anything.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::desk::{Client, Desk, until};
use crate::notify::read;
use crate::secret::typed;
use crate::smtp::{MailServer, Protected, nobody};
use crate::tls;
use crate::workspace::{open, person};

/// A server over TLS that keeps what is put, and answers with it.
struct Web {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Web {
    fn new(certificate: &Path) -> Self {
        let config = Arc::new(tls::config(certificate));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut kept: BTreeMap<String, Vec<u8>> = [("/page".to_owned(), b"<title>Tides</title><p>high at noon</p>".to_vec())].into();
            for stream in listener.incoming().map_while(Result::ok) {
                let mut stream = rustls::StreamOwned::new(rustls::ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
                let Some((head, body)) = read(&mut stream) else { continue };
                let mut words = head.split([' ', '?']);
                let (method, path) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
                seen.lock().unwrap().push(format!("{method} {path}"));
                let (status, answer) = match method.as_str() {
                    "GET" | "HEAD" => kept.get(&path).map_or(("404 Not Found", Vec::new()), |found| ("200 OK", found.clone())),
                    "PUT" => {
                        kept.insert(path, body);
                        ("201 Created", Vec::new())
                    }
                    _ => ("201 Created", Vec::new()),
                };
                let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", answer.len());
                let body = if method == "HEAD" { &[][..] } else { &answer };
                drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).and_then(|()| stream.flush()));
                stream.conn.send_close_notify();
                drop(stream.flush());
            }
        });
        Self { port, asked }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

/// Every connector that speaks HTTP, each with what it is asked.
fn asks(desk: &Desk, port: u16, ca: Option<&Path>) -> Vec<(&'static str, Value)> {
    let base = format!("https://127.0.0.1:{port}");
    let ca: Vec<&str> = ca.map(|file| vec!["--ca-file", file.to_str().unwrap()]).unwrap_or_default();
    let connector = |args: &[&str], env: &[(&str, &str)]| {
        let mut command = desk.command(&[&["connector"], args, &ca].concat());
        command.envs(env.iter().copied());
        let mut client = Client::of(desk, command);
        client.initialize("2025-11-25");
        client
    };
    let mut web = connector(&["http", "--allow", &base], &[]);
    let mut said = Vec::new();
    for (tool, path) in [("check_url", "/page"), ("get_url", "/page"), ("read_page", "/page")] {
        said.push((tool, web.tool(tool, json!({ "url": format!("{base}{path}") }))));
    }
    let mut chat = connector(&["webhook"], &[("WEBHOOK_URL", &format!("{base}/hook"))]);
    said.push(("post_message", chat.tool("post_message", json!({ "text": "hello" }))));
    let mut dav = connector(&["storage", "--to", &format!("{base}/dav"), "--user", "ada"], &[("WEBDAV_PASSWORD", "correct horse")]);
    let mut s3 = connector(&["storage", "--to", &base, "--bucket", "desk"], &[("S3_KEY", "key"), ("S3_SECRET", "correct horse")]);
    for (name, client) in [("webdav", &mut dav), ("s3", &mut s3)] {
        said.push((name, client.tool("put_object", json!({ "name": "note", "text": "kept" }))));
        said.push((name, client.tool("get_object", json!({ "name": "note" }))));
    }
    said
}

#[test]
fn connectors_speak_tls_to_whom_the_certificate_vouches_for_and_to_nobody_else() {
    let desk = Desk::new();
    let folder = |name: &str, names: &str| {
        let folder = desk.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        tls::certificate(&folder, names);
        folder
    };
    let (right, other, named) =
        (folder("right", "DNS:localhost,IP:127.0.0.1"), folder("other", "DNS:localhost,IP:127.0.0.1"), folder("named", "DNS:elsewhere.example"));
    let server = Web::new(&right);
    for (tool, said) in asks(&desk, server.port, Some(&right.join("cert.pem"))) {
        assert_ne!(said["isError"], true, "{tool}: {said}");
        let got = &said["structuredContent"];
        let fits = match tool {
            "check_url" => got["state"] == "up",
            "get_url" => got["text"].as_str().unwrap().contains("high at noon"),
            "read_page" => got["title"] == "Tides" && got["text"] == "high at noon",
            "post_message" => got["posted"] == true,
            _ => got["kept"] == true || got["text"] == "kept",
        };
        assert!(fits, "{tool}: {said}");
    }
    let asked = server.asked();
    for wanted in ["GET /page", "POST /hook", "PUT /dav/objects/note", "PUT /desk/objects/note"] {
        assert!(asked.iter().any(|one| one == wanted), "{wanted}: {asked:?}");
    }
    let elsewhere = Web::new(&named);
    for (why, server, ca) in [
        ("nobody on this machine vouches for it", &server, None),
        ("somebody else is vouched for", &server, Some(other.join("cert.pem"))),
        ("it is another's certificate", &elsewhere, Some(named.join("cert.pem"))),
    ] {
        for (tool, said) in asks(&desk, server.port, ca.as_deref()) {
            let refused = said["isError"] == true || said["structuredContent"]["state"] == "down";
            let text = said.to_string().to_lowercase();
            assert!(refused && ["tls", "certificate", "secure connection"].iter().any(|word| text.contains(word)), "{why}: {tool}: {said}");
        }
        assert_eq!(server.asked(), Vec::<String>::new(), "{why}: nothing is sent before it is known to whom");
    }
}

#[test]
fn a_mail_that_the_server_may_have_taken_is_told_as_such_and_one_that_it_cannot_have_is_not() {
    let desk = Desk::new();
    let token = desk.register("code");
    open(&desk, "rules:\n  - { name: outside, match: { kind: outside.write }, effect: allow, waive_trust: true, message: fine }\n");
    let server = MailServer::new(Protected::No, None, &["close", "451 4.3.0 later"]);
    let imap = format!("imap://{}", nobody());
    assert!(typed(&desk, &["secret", "set", "mailbox"], "of-nobody-47").status.success());
    for (mount, smtp) in [("mail", server.port), ("lost", nobody().port())] {
        let smtp = format!("smtp://127.0.0.1:{smtp}");
        let words = ["mail", "--imap", &imap, "--user", "desk", "--from", "desk@example.net", "--smtp", &smtp, "--allow-to", "example.org"];
        let given = ["gateway", "add", mount, "--passphrase-stdin", "--json", "--env", "IMAP_PASSWORD=secret:mailbox", "--verb=send_mail=outside.write"];
        person(&desk, &[&given[..], &["--", "deskmate", "connector"], &words].concat());
    }
    let mut agent = crate::gateway::client(&desk, &token, "gateway", "2025-11-25");
    let mut sent = |mount: &str| {
        let arguments = json!({ "to": "ada@example.org", "subject": "Hello", "text": "hello" });
        let said = agent.tool("gateway_call", json!({ "mount": mount, "tool": "send_mail", "arguments": arguments }));
        let call = said["structuredContent"]["call_id"].clone();
        until("what came of it is told", || {
            let told = person(&desk, &["call", "gateway_result", "--input", &json!({ "call_id": call }).to_string(), "--passphrase-stdin", "--json"]);
            Some(told["state"].clone()).filter(|state| state != "passed")
        })
    };
    assert_eq!(sent("mail"), "ambiguous", "it went away after it had the mail");
    assert_eq!(sent("mail"), "failed", "it said that it did not take it");
    assert_eq!(sent("lost"), "failed", "nobody was there to take it");
    assert_eq!(sent("mail"), "done");
    assert_eq!(server.wait(1).len(), 1);
}
