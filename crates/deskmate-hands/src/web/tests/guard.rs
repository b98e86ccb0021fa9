//! What must not be reached is not reached, however it is written and whoever sends there.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::RootCertStore;

use super::server::{Server, html, redirect};
use crate::web::resolve::{Addresses, Resolve};
use crate::web::{Client, FetchError, Limits, fetch, is_public};

/// Knows the names it is told.
#[derive(Clone, Default)]
pub(super) struct Names {
    pub(super) known: HashMap<String, Vec<IpAddr>>,
    pub(super) asked: Arc<AtomicUsize>,
}

impl Names {
    pub(super) fn of(known: &[(&str, &[&str])]) -> Self {
        let known = known.iter().map(|(name, found)| ((*name).to_owned(), found.iter().map(|address| address.parse().unwrap()).collect()));
        Self { known: known.collect(), asked: Arc::default() }
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> Addresses<'a> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { self.known.get(name).cloned().ok_or_else(|| io::Error::other("no such name")) })
    }
}

const INNER: [&str; 62] = [
    "http://127.0.0.1/",
    "https://127.0.0.1/",
    "http://127.255.255.254/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://any.localhost/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.0.0.1./",
    "http://127。0。0。1/",
    "http://①②⑦.0.0.1/",
    "http://%31%32%37.0.0.1/",
    "http://0.0.0.0/",
    "http://0/",
    "http://0.1.2.3/",
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://0xa9fea9fe/",
    "http://2852039166/",
    "http://100.64.0.1/",
    "http://100.127.255.255/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://192.0.2.1/",
    "http://192.88.99.1/",
    "http://198.18.0.1/",
    "http://198.19.255.255/",
    "http://198.51.100.1/",
    "http://203.0.113.1/",
    "http://224.0.0.1/",
    "http://239.255.255.250/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[::]/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:169.254.169.254]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:a00:1::1]/",
    "http://[2001::1]/",
    "http://[2001:db8::1]/",
    "http://[3fff::1]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[ff02::1]/",
];

#[tokio::test]
async fn inner_addresses_are_refused_in_every_spelling() {
    for url in INNER {
        let error = fetch(url, &Limits::default()).await.unwrap_err();
        assert!(matches!(error, FetchError::NotPublic(_)), "{url}: {error}");
    }
}

#[test]
fn strangers_are_public() {
    for address in ["8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "168.63.129.17"] {
        assert!(is_public(address.parse().unwrap()), "{address}");
    }
    for address in ["2606:4700:4700::1111", "2a00::1", "2001:4860:4860::8888", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"] {
        assert!(is_public(address.parse().unwrap()), "{address}");
    }
}

#[tokio::test]
async fn only_pages_on_the_usual_ports_are_asked_for() {
    let limits = Limits::default();
    let cases = [
        ("file:///etc/passwd", FetchError::Scheme("file".into())),
        ("ftp://example.org/", FetchError::Scheme("ftp".into())),
        ("gopher://127.0.0.1/", FetchError::Scheme("gopher".into())),
        ("javascript:alert(1)", FetchError::Scheme("javascript".into())),
        ("data:text/html,x", FetchError::Scheme("data".into())),
        ("http://me:secret@example.org/", FetchError::Credentials),
        ("http://me@example.org/", FetchError::Credentials),
        ("http://:secret@example.org/", FetchError::Credentials),
        ("http://example.org:22/", FetchError::Port(22)),
        ("https://example.org:8443/", FetchError::Port(8443)),
        ("http://example.org:0/", FetchError::Port(0)),
    ];
    for (url, expected) in cases {
        assert_eq!(fetch(url, &limits).await, Err(expected), "{url}");
    }
    for url in ["", "example.org", "/etc/passwd", "http://", "http://[::1", "http://exa mple.org/", "http://1.2.3.4.5/", "http://256.1.1.1/"] {
        assert!(matches!(fetch(url, &limits).await, Err(FetchError::Address(_))), "{url}");
    }
    assert!(matches!(fetch(&format!("http://example.org/{}", "x".repeat(10_000)), &limits).await, Err(FetchError::Address(_))));
}

#[tokio::test]
async fn names_are_judged_by_all_their_addresses() {
    let server = Server::answering(|_| html("inner")).await;
    let names = Names::of(&[
        ("inner.example", &["127.0.0.1"]),
        ("private.example", &["10.1.2.3"]),
        ("mapped.example", &["::ffff:127.0.0.1"]),
        ("six.example", &["::1"]),
        ("both.example", &["93.184.215.14", "127.0.0.1"]),
        ("metadata.example", &["2606:4700::1", "169.254.169.254"]),
        ("nowhere.example", &[]),
    ]);
    let client = Client::new().with(names, RootCertStore::empty());
    let port = server.address.port();
    for name in ["inner", "private", "mapped", "six", "both", "metadata"] {
        let url = format!("http://{name}.example:{port}/");
        assert_eq!(client.fetch(&url, &server.limits()).await, Err(FetchError::NotPublic(format!("{name}.example"))), "{name}");
    }
    for name in ["nowhere.example", "unknown.example"] {
        assert_eq!(client.fetch(&format!("http://{name}/"), &server.limits()).await, Err(FetchError::NotFound(name.into())));
    }
    assert_eq!(server.times_asked(), 0, "nothing was connected to");
}

#[tokio::test]
async fn a_name_is_looked_up_once_and_stays_the_name() {
    let server = Server::answering(html).await;
    let names = Names::of(&[("page.example", &["127.0.0.1"])]);
    let client = Client::reaching(vec![server.address]).with(names.clone(), RootCertStore::empty());
    let port = server.address.port();
    let page = client.fetch(&format!("http://page.example:{port}/a?b=c#d"), &server.limits()).await.unwrap();
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    assert!(page.text.starts_with("GET /a?b=c HTTP/1.1"), "{}", page.text);
    assert!(page.text.contains(&format!("host: page.example:{port}")), "{}", page.text);
    assert!(!page.text.to_lowercase().contains("cookie") && !page.text.to_lowercase().contains("authorization"), "{}", page.text);
    assert_eq!(page.url, format!("http://page.example:{port}/a?b=c"));
}

/// What is allowed is one port of one address, not the machine.
#[tokio::test]
async fn the_allowance_of_tests_is_exact() {
    let (allowed, other) = (Server::answering(|_| html("one")).await, Server::answering(|_| html("two")).await);
    let limits = Limits { ports: vec![allowed.address.port(), other.address.port()], ..Limits::default() };
    let client = Client::reaching(vec![allowed.address]);
    assert!(client.fetch(&allowed.url("/"), &limits).await.is_ok());
    assert_eq!(client.fetch(&other.url("/"), &limits).await, Err(FetchError::NotPublic("127.0.0.1".into())));
}

#[tokio::test]
async fn redirects_are_judged_like_addresses() {
    for inner in INNER {
        let server = Server::answering(move |_| redirect(inner)).await;
        // HTTP heads are bytes; what is no ASCII is a redirect like any other.
        assert!(matches!(server.read("/").await, Err(FetchError::NotPublic(_))), "{inner}: {:?}", server.read("/").await);
    }
    let other = Server::answering(|_| html("inner")).await;
    let to = other.url("/");
    let server = Server::answering(move |_| redirect(&to)).await;
    let limits = Limits { ports: vec![server.address.port(), other.address.port()], ..Limits::default() };
    assert_eq!(server.read_within("/", &limits).await, Err(FetchError::NotPublic("127.0.0.1".into())));
    assert_eq!(other.times_asked(), 0);

    let cases = [
        ("file:///etc/passwd", FetchError::Scheme("file".into())),
        ("http://a:b@example.org/", FetchError::Credentials),
        ("http://example.org:25/", FetchError::Port(25)),
        ("//169.254.169.254/latest", FetchError::NotPublic("169.254.169.254".into())),
        ("http://[::1", FetchError::RedirectAddress),
    ];
    for (to, expected) in cases {
        let server = Server::answering(move |_| redirect(to)).await;
        assert_eq!(server.read("/").await, Err(expected), "{to}");
    }
}

#[tokio::test]
async fn a_redirect_to_a_name_is_resolved_and_judged() {
    let server = Server::answering(|_| redirect("http://rebound.example/")).await;
    let names = Names::of(&[("rebound.example", &["127.0.0.1"])]);
    let client = Client::reaching(vec![server.address]).with(names, RootCertStore::empty());
    assert_eq!(client.fetch(&server.url("/"), &server.limits()).await, Err(FetchError::NotPublic("rebound.example".into())));
}
