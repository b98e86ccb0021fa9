//! Servers that want to take more than they get.

use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::AsyncWriteExt;

use super::server::{Server, answer, head, html, redirect};
use crate::web::{FetchError, Limits};

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn slow_servers_are_left() {
    let silent = Server::serving(|stream| async move {
        tokio::time::sleep(Duration::from_mins(1)).await;
        drop(stream);
    })
    .await;
    let dripping = Server::serving(|mut stream| async move {
        head(&mut stream).await;
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n").await);
        while stream.write_all(b".").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let turning = Server::serving(|mut stream| async move {
        head(&mut stream).await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        drop(stream.write_all(&redirect("/again")).await);
    })
    .await;
    for server in [&silent, &dripping, &turning] {
        let time = Duration::from_millis(300);
        let begun = Instant::now();
        assert_eq!(server.read_within("/", &Limits { time, ..server.limits() }).await, Err(FetchError::TimedOut(time)));
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn endless_bodies_are_cut() {
    let server = Server::serving(|mut stream| async move {
        head(&mut stream).await;
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n").await);
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    })
    .await;
    let limits = Limits { body_bytes: 100_000, text_chars: 1_000_000, ..server.limits() };
    let page = server.read_within("/", &limits).await.unwrap();
    assert!(page.truncated);
    assert_eq!((page.fetched_bytes, page.text.len()), (100_000, 100_000));

    let page = server.read_within("/", &Limits { text_chars: 10, ..limits }).await.unwrap();
    assert_eq!((page.text.as_str(), page.truncated), ("xxxxxxxxxx", true));
}

#[tokio::test]
async fn large_heads_are_refused() {
    let endless = Server::serving(|mut stream| async move {
        head(&mut stream).await;
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\n").await);
        while stream.write_all(format!("x-long: {}\r\n", "y".repeat(1_000)).as_bytes()).await.is_ok() {}
    })
    .await;
    let long = Server::answering(|_| answer("200 OK", &["content-type: text/plain", &format!("x: {}", "y".repeat(200_000))], b"")).await;
    let many = Server::answering(|_| {
        let lines: Vec<String> = (0..5_000).map(|n| format!("x{n}: y")).collect();
        answer("200 OK", &lines.iter().map(String::as_str).collect::<Vec<_>>(), b"")
    })
    .await;
    for server in [endless, long, many] {
        let error = server.read("/").await.unwrap_err();
        assert_eq!(error, FetchError::Http("127.0.0.1".into(), "its head is too large".into()));
    }
}

#[tokio::test]
async fn what_is_no_http_is_refused() {
    for said in [&b"SSH-2.0-OpenSSH_9.9\r\n"[..], b"", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\ncontent-type: text/plain\r\n\r\nshort", b"\x16\x03\x01\0\0"]
    {
        let server = Server::answering(move |_| said.to_vec()).await;
        let error = server.read("/").await.unwrap_err();
        assert!(matches!(error, FetchError::Http(..)), "{error}");
        assert!(!error.to_string().contains("OpenSSH"), "what a server says is not repeated");
    }
}

#[tokio::test]
async fn packed_content_is_unpacked_within_bounds() {
    let type_line = "content-type: text/plain";
    let server = Server::answering(move |_| answer("200 OK", &[type_line, "content-encoding: gzip"], &packed("größer".as_bytes()))).await;
    let page = server.read("/").await.unwrap();
    assert_eq!((page.text.as_str(), page.truncated), ("größer", false));

    let bomb = packed(&vec![b'a'; 16 << 20]);
    let size = bomb.len();
    let server = Server::answering(move |_| answer("200 OK", &[type_line, "content-encoding: gzip"], &bomb)).await;
    let page = server.read_within("/", &Limits { body_bytes: 200_000, text_chars: usize::MAX, ..server.limits() }).await.unwrap();
    assert!(page.truncated && page.text.len() == 200_000 && page.fetched_bytes == size, "{} {}", page.text.len(), page.fetched_bytes);

    let server = Server::answering(move |_| answer("200 OK", &[type_line, "content-encoding: gzip"], b"no gzip")).await;
    assert_eq!(server.read("/").await, Err(FetchError::Unpack));
    for other in ["br", "zstd", "deflate", "gzip, gzip"] {
        let server = Server::answering(move |_| answer("200 OK", &[type_line, &format!("content-encoding: {other}")], b"x")).await;
        assert_eq!(server.read("/").await, Err(FetchError::Packing(other.into())));
    }
}

#[tokio::test]
async fn what_is_no_text_is_refused() {
    for named in ["image/png", "application/pdf", "application/octet-stream", "application/zip", "video/mp4", "application/javascript", "text", "image/svg+xml"]
    {
        let server = Server::answering(move |_| answer("200 OK", &[&format!("content-type: {named}")], b"x")).await;
        assert_eq!(server.read("/").await, Err(FetchError::Type(named.into())));
    }
    let server = Server::answering(|_| answer("200 OK", &[], b"x")).await;
    assert_eq!(server.read("/").await, Err(FetchError::Type("of no known type".into())));
    for named in ["text/plain", "text/csv", "TEXT/Markdown", "application/json", "application/ld+json; x=y", "application/xml", "application/rss+xml"] {
        let server = Server::answering(move |_| answer("200 OK", &[&format!("content-type: {named}")], b"{\"a\": \"<b>\"}\n")).await;
        let page = server.read("/").await.unwrap();
        assert_eq!(page.text, "{\"a\": \"<b>\"}", "{named}");
    }
}

#[tokio::test]
async fn another_host_is_named_and_not_asked() {
    let server = Server::answering(|head| match head.split(' ').nth(1).unwrap() {
        "/" => redirect("/here"),
        "/here" => html("<p>there"),
        _ => redirect("https://example.org/a?b=c"),
    })
    .await;
    let limits = Limits { elsewhere: false, ..server.limits() };
    assert_eq!(server.read_within("/", &limits).await.unwrap().text, "there");
    let sent = FetchError::Elsewhere("example.org".to_owned(), "https://example.org/a?b=c".to_owned());
    assert_eq!(server.read_within("/away", &limits).await, Err(sent));
}

#[tokio::test]
async fn redirects_are_followed_a_few_times() {
    let server = Server::answering(|head| match head.split(' ').nth(1).unwrap() {
        "/0" => html("<p>there"),
        path => redirect(&format!("/{}", path.trim_start_matches('/').parse::<u32>().unwrap_or(100) - 1)),
    })
    .await;
    let page = server.read("/5").await.unwrap();
    assert_eq!((page.text.as_str(), page.url), ("there", server.url("/0")));
    assert_eq!(server.read("/6").await, Err(FetchError::Redirects(5)));
    assert_eq!(server.times_asked(), 12);
    let loops = Server::answering(|_| redirect("/")).await;
    assert_eq!(loops.read("/").await, Err(FetchError::Redirects(5)));
    assert_eq!(loops.times_asked(), 6);
    assert_eq!(loops.read_within("/", &Limits { redirects: 0, ..loops.limits() }).await, Err(FetchError::Redirects(0)));
}
