//! Word files, unpacked and read as XML.

use std::io::Cursor;

use crate::documents::word;

/// A part of the file as text.
fn part(bytes: &[u8], name: &str) -> String {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    std::io::read_to_string(archive.by_name(name).unwrap()).unwrap()
}

fn document(text: &str) -> String {
    part(&word(text).unwrap(), "word/document.xml")
}

/// The text of each paragraph.
fn paragraphs(text: &str) -> Vec<String> {
    let read = docx_rs::read_docx(&word(text).unwrap()).unwrap();
    let body = read.document.children.iter();
    body.filter_map(|child| match child {
        docx_rs::DocumentChild::Paragraph(paragraph) => Some(paragraph.raw_text()),
        _ => None,
    })
    .collect()
}

#[test]
fn headings_are_styles_and_text_is_text() {
    let text = "# Bericht\n\nÜber *alles* und **noch** `mehr`.\n\n## Київ\n\nΕλλάδα 東京 🦀 مرحبا\n";
    assert_eq!(paragraphs(text), ["Bericht", "Über alles und noch mehr.", "Київ", "Ελλάδα 東京 🦀 مرحبا"]);
    let xml = document(text);
    assert!(xml.contains(r#"<w:pStyle w:val="Heading1""#) && xml.contains(r#"<w:pStyle w:val="Heading2""#), "{xml}");
    assert!(xml.contains("<w:i />") && xml.contains("<w:b />") && xml.contains("Courier New"), "{xml}");
    let bytes = word(text).unwrap();
    let styles = part(&bytes, "word/styles.xml");
    assert!(styles.contains(r#"w:styleId="Heading6""#) && styles.contains("heading 1"), "{styles}");
    assert!(part(&bytes, "word/footer1.xml").contains("PAGE"));
}

#[test]
fn lists_are_lists() {
    let text = "- one\n- two\n  - inner\n\n5. five\n6. six\n\n   more of six\n\n1. again\n";
    assert_eq!(paragraphs(text), ["one", "two", "inner", "five", "six", "more of six", "again"]);
    let xml = document(text);
    assert_eq!(xml.matches(r#"<w:numId w:val="1" />"#).count(), 3, "{xml}");
    // CommonMark: one list of numbers that goes on.
    assert_eq!(xml.matches(r#"<w:numId w:val="2" />"#).count(), 3, "{xml}");
    let numbering = part(&word(text).unwrap(), "word/numbering.xml");
    assert!(numbering.contains(r#"<w:start w:val="5" />"#), "{numbering}");
    let two = document("1. a\n\ntext\n\n1. b\n");
    assert!(two.contains(r#"<w:numId w:val="2" />"#) && two.contains(r#"<w:numId w:val="3" />"#), "each list counts for itself");
}

#[test]
fn tables_are_tables() {
    let xml = document("| Name | Sum |\n|---|--:|\n| Anna & Co | **7** |\n| <b>x</b> | |\n\nafter\n");
    assert_eq!(xml.matches("<w:tr>").count(), 3, "{xml}");
    assert_eq!(xml.matches("<w:tc>").count(), 6, "{xml}");
    assert!(xml.contains("Anna &amp; Co") && xml.contains("&lt;b&gt;"), "{xml}");
    assert_eq!(xml.matches(r#"<w:jc w:val="end" />"#).count(), 3, "{xml}");
    assert!(xml.contains("after"));
}

#[test]
fn code_keeps_its_lines_and_spaces() {
    let xml = document("```\nfn main() {\n    1 < 2\n\tx\n}\n```\n");
    assert!(xml.contains("    1 &lt; 2"), "{xml}");
    assert!(xml.contains(r#"xml:space="preserve""#), "{xml}");
    assert_eq!(xml.matches("<w:br").count(), 3, "{xml}");
    assert!(xml.contains("<w:tab />"), "{xml}");
}

#[test]
fn links_and_html_stay_text() {
    assert_eq!(
        paragraphs("See [the page](https://example.org/x) and <https://example.org/y> and ![a cat](cat.png).\n\n<script>alert(1)</script>\n"),
        ["See the page (https://example.org/x) and https://example.org/y and a cat (cat.png).", "<script>alert(1)</script>"]
    );
    let bytes = word("[x](https://example.org)").unwrap();
    assert!(!part(&bytes, "word/_rels/document.xml.rels").contains("example.org"), "nothing in the file leads elsewhere");
}

#[test]
fn the_same_text_gives_the_same_bytes() {
    let text = "# A\n\n- b\n\n1. c\n\n| d |\n|---|\n| e |\n\n> f\n\n---\n";
    let first = word(text).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2100));
    drop(word("another in between").unwrap());
    assert!(first == word(text).unwrap());
    let mut archive = zip::ZipArchive::new(Cursor::new(&first)).unwrap();
    for index in 0..archive.len() {
        assert_eq!(archive.by_index(index).unwrap().last_modified(), Some(zip::DateTime::default()), "no file has the time of the day");
    }
}
