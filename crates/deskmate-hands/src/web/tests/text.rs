//! HTML as text, without a server.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use url::Url;

use crate::web::html::{plain, read};

fn text(html: &str) -> String {
    read(html, &Url::parse("https://example.org/a/b?c").unwrap(), 100_000).text
}

#[test]
fn headings_lists_and_tables_stay() {
    assert_eq!(text("<h1>One</h1><h2>Two <em>and</em> more</h2>text<h6>Six</h6>"), "# One\n\n## Two and more\n\ntext\n\n###### Six");
    assert_eq!(text("<p>a<ul><li>b<li>c<ul><li>d</ul></li></ul><ol start=3><li>e</li><li>f</ol>g"), "a\n\n- b\n- c\n  - d\n\n3. e\n4. f\n\ng");
    assert_eq!(
        text("<table><caption>Sums</caption><thead><tr><th>Name<th>Sum<tbody><tr><td><p>Anna</p></td><td> 7 </td></tr><tr><td>B<td></table>after"),
        "Sums\nName | Sum\nAnna | 7\nB |\n\nafter"
    );
    assert_eq!(text("<dl><dt>a<dd>b</dl><blockquote>c</blockquote><hr>d<br>e"), "a\nb\n\nc\n\n---\n\nd\ne");
    assert_eq!(text("<pre>  one\n    two  x\n</pre>three"), "  one\n    two  x\n\n\nthree");
    assert_eq!(text("  a \n\n b&nbsp;&amp;&lt;c&gt; <b>d</b>e <!-- no --> f"), "a b &<c> de f");
}

#[test]
fn links_say_where_they_lead() {
    assert_eq!(text("<a href='/x'>there</a>."), "there (https://example.org/x).");
    assert_eq!(text("<a href='d?e=f#g'>there</a>"), "there (https://example.org/a/d?e=f#g)");
    assert_eq!(text("<a href='https://example.org/'>https://example.org/</a>"), "https://example.org/");
    assert_eq!(text("<a href='#top'>up</a> <a href='javascript:alert(1)'>no</a> <a href='data:text/html,x'>no</a> <a>no</a>"), "up no no no");
    assert_eq!(text("<a href='mailto:a@example.org'>write</a>"), "write (mailto:a@example.org)");
    assert_eq!(text("<base href='https://other.example/z/'><a href=y>there</a>"), "there (https://other.example/z/y)");
    assert_eq!(text("<a href=/1>one<a href=/2>two"), "one (https://example.org/1)two (https://example.org/2)");
    assert_eq!(text("<a href=/1></a><a href=/2><img src=x alt='a cat'></a><img src=y>"), "[image: a cat] (https://example.org/2)");
}

#[test]
fn programs_and_what_is_hidden_go() {
    let html = "<head><style>p { color: red }</style><script>if (a < b) { document.write('<p>no</p>') }</script></head>\
        <body>a<noscript>no</noscript><template><p>no</p></template><div hidden>no<div>no</div>no</div>b\
        <p style='DISPLAY : none'>no<p>c<span aria-hidden=true>no</span><svg><title>no</title><text>no</text></svg>\
        <ul><li hidden>no<ul><li>no</ul><li>d</ul><iframe src=x>no</iframe><textarea>no</textarea><dialog>no</dialog><input hidden>e<select><option>no</select>";
    let read = read(html, &Url::parse("https://example.org/").unwrap(), 1_000);
    assert_eq!(read.text, "ab\n\nc\n\n- d\n\ne");
    assert_eq!(read.title, None);
    assert_eq!(text("<table><tr hidden><td>no<tr><td>a<td hidden>no<td>b</table>c"), "a | b\n\nc");
    assert_eq!(text("<div><p hidden>no</div>"), "");
    assert_eq!(text("<body hidden>a<script>b"), "a");
}

#[test]
fn text_is_only_text() {
    assert_eq!(text("a\u{0}\u{1b}[31m\u{8}b&#27;&#0;c"), "a\u{fffd}[31m\u{fffd}b\u{fffd}\u{fffd}c");
    assert_eq!(plain("a\r\n\u{0}\tb\n", 100).text, "a\n\u{fffd}\tb");
    assert_eq!(text("&lt;script&gt;alert(1)&lt;/script&gt;"), "<script>alert(1)</script>");
}

#[test]
fn long_texts_are_cut() {
    let url = Url::parse("https://example.org/").unwrap();
    let long = read(&"<p>äö</p>".repeat(1_000), &url, 10);
    assert_eq!((long.text.as_str(), long.truncated), ("äö\n\näö\n\näö", true));
    let exact = read("<p>abc</p><p></p>", &url, 3);
    assert_eq!((exact.text.as_str(), exact.truncated), ("abc", false));
    let cut = plain("äöü", 2);
    assert_eq!((cut.text.as_str(), cut.truncated), ("äö", true));
    assert!(!plain("äö", 2).truncated);
    let title = read(&format!("<title>{}</title>", "t".repeat(5_000)), &url, 10);
    assert_eq!(title.title.unwrap().len(), 300);
}

#[test]
fn hostile_pages_take_little_time() {
    let pieces =
        ["<div>", "<b><i>", "<p>", "<table><tr><td>", "<ul><li>", "<a href=x>", "<svg>", "<!--", "&", "&amp", "<", "</", "<p hidden>", "<title>", "<pre>\n"];
    for piece in pieces {
        let html = piece.repeat((1 << 18) / piece.len());
        let begun = Instant::now();
        drop(text(&html));
        assert!(begun.elapsed() < Duration::from_secs(20), "{piece}: {:?}", begun.elapsed());
    }
    let attributes: Vec<String> = (0..200_000).map(|n| format!(" a{n}")).collect();
    let begun = Instant::now();
    let read = read(&format!("<p{}>x", attributes.concat()), &Url::parse("https://example.org/").unwrap(), 100);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(read.truncated || read.text == "x");
}

proptest! {
    #[test]
    fn random_pages_never_panic(pieces in prop::collection::vec(prop_oneof![
        Just("<p>".to_owned()), Just("<p hidden>".to_owned()), Just("</p>".to_owned()), Just("<li>".to_owned()), Just("</ul>".to_owned()), Just("<ol start=9>".to_owned()),
        Just("<td>".to_owned()), Just("<tr hidden>".to_owned()), Just("</table>".to_owned()), Just("<h3>".to_owned()), Just("<a href=/ä>".to_owned()), Just("</a>".to_owned()),
        Just("<script>".to_owned()), Just("</script>".to_owned()), Just("<!--".to_owned()), Just("<pre>".to_owned()), Just("&#x1F980;".to_owned()), any::<String>(),
    ], 0..100), max in 0_usize..200) {
        let read = read(&pieces.concat(), &Url::parse("https://example.org/").unwrap(), max);
        prop_assert!(read.text.chars().count() <= max);
        prop_assert!(!read.text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
    }
}
