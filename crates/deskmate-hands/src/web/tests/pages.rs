//! Whole pages, as they come from a server.

use super::server::{Server, answer, html};

#[tokio::test]
async fn a_page_says_where_it_was_found_and_what_it_is() {
    let server = Server::answering(|_| html("<!doctype html><title> A  page\n</title><h1>Hello</h1><p>wörld</p>")).await;
    let page = server.read("/x").await.unwrap();
    assert_eq!(page.url, server.url("/x"));
    assert_eq!(page.status, 200);
    assert_eq!(page.content_type, "text/html");
    assert_eq!(page.title.as_deref(), Some("A page"));
    assert_eq!(page.text, "# Hello\n\nwörld");
    assert!(!page.truncated);
    assert_eq!(page.fetched_bytes, 66);
}

#[tokio::test]
async fn a_page_that_is_not_there_is_a_page() {
    let server = Server::answering(|_| answer("404 Not Found", &["content-type: text/html"], b"<h1>Nothing here</h1>")).await;
    let page = server.read("/").await.unwrap();
    assert_eq!((page.status, page.text.as_str()), (404, "# Nothing here"));
}

#[tokio::test]
async fn chunked_bodies_are_read() {
    let server =
        Server::answering(|_| b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n".to_vec())
            .await;
    assert_eq!(server.read("/").await.unwrap().text, "abcdef");
}

#[tokio::test]
async fn texts_are_decoded_as_they_are_written() {
    let cyrillic = encoding_rs::WINDOWS_1251.encode("Київ").0.into_owned();
    let japanese = encoding_rs::SHIFT_JIS.encode("<meta charset='Shift_JIS'>東京").0.into_owned();
    let latin = encoding_rs::WINDOWS_1252.encode("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>größer</a>").0.into_owned();
    let mut wide = vec![0xff, 0xfe];
    wide.extend("Ελλάδα".encode_utf16().flat_map(u16::to_le_bytes));
    let cases: [(&str, Vec<u8>, &str); 8] = [
        ("text/plain; charset=windows-1251", cyrillic, "Київ"),
        ("text/html", japanese, "東京"),
        ("application/xml", latin, "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>größer</a>"),
        ("text/plain; charset=iso-8859-1", wide, "Ελλάδα"),
        ("text/plain; charset=\"UTF-8\"", "größer".into(), "größer"),
        ("text/plain; charset=nonsense", "größer".into(), "größer"),
        ("text/plain", b"gr\xf6\xdfer".to_vec(), "gr\u{fffd}\u{fffd}er"),
        ("text/html", "<meta charset=utf-16>größer".into(), "größer"),
    ];
    for (named, body, expected) in cases {
        let server = Server::answering(move |_| answer("200 OK", &[&format!("content-type: {named}")], &body)).await;
        assert_eq!(server.read("/").await.unwrap().text, expected, "{named}");
    }
}
