//! PDFs, with their text taken out by another library.

use crate::documents::*;

/// With the built-in fonts alone.
fn pdf(text: &str) -> Result<Pdf, DocumentError> {
    crate::documents::pdf(text, &[])
}

fn read(bytes: &[u8]) -> String {
    pdf_extract::extract_text_from_mem(bytes).unwrap()
}

/// The text without regard to where lines end.
fn words(bytes: &[u8]) -> String {
    read(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn pages(bytes: &[u8]) -> Vec<String> {
    pdf_extract::extract_text_from_mem_by_pages(bytes).unwrap()
}

#[test]
fn text_can_be_read_back() {
    let made = pdf("# Bericht\n\nÜber *alles* und **noch** `mehr`: Київ, Ελλάδα, Łódź, €.\n\n> quoted\n\n---\n\n- one\n- two\n\n3. three\n").unwrap();
    let text = words(&made.bytes);
    for part in ["Bericht", "Über alles und noch mehr", ": Київ, Ελλάδα, Łódź, €.", "quoted", "• one", "• two", "3. three", "1 / 1"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!((made.pages, made.missing), (1, Vec::new()));
    assert!(made.bytes.starts_with(b"%PDF-"));
    assert!(made.bytes.len() < 100_000, "only the signs that are used are in the file: {}", made.bytes.len());
}

#[test]
fn what_the_font_lacks_is_reported_and_leaves_a_mark() {
    let made = pdf("東京 und 🦀, **京** `東` text\n").unwrap();
    assert_eq!(made.missing, ['京', '東', '🦀']);
    assert_eq!(words(&made.bytes), "�� und �, � � text 1 / 1");
    assert_eq!(pdf("ÄЖΩ אב مرحبا").unwrap().missing, Vec::<char>::new());
}

#[test]
fn what_the_built_in_font_lacks_comes_from_the_system() {
    // What Debian's fonts-droid-fallback installs; ./test sees to it.
    let folders = ["/usr/share/fonts/truetype/droid".into()];
    let text = "# 東京\n\n中文字体, 日本語かな, 한국어, **京** *語* `東` und 🦀 ͸\n\n| 名前 | 値 |\n|---|---|\n| &#x5C71; | 1 |\n";
    let made = crate::documents::pdf(text, &folders).unwrap();
    assert_eq!(made.missing, ['\u{378}', '국', '어', '한', '🦀'], "what no font has is told");
    let shown = words(&made.bytes);
    for part in ["東京", "中文字体", "日本語", "かな", "���", "京", "語", "名前", "山", "� �"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert!(made.bytes.len() < 150_000, "only the signs that are used are in the file: {}", made.bytes.len());
    assert_eq!(crate::documents::pdf(text, &folders).unwrap().bytes, made.bytes, "the same text gives the same bytes");
    // Files that are no fonts, and folders that are not there, are passed over.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.ttf"), "no font").unwrap();
    std::fs::write(folder.path().join("b.ttf"), std::fs::read("/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf").unwrap().get(..5_000).unwrap())
        .unwrap();
    let made = crate::documents::pdf("東", &[folder.path().to_owned(), "/nowhere".into()]).unwrap();
    assert_eq!(made.missing, ['東']);
}

#[test]
fn the_bold_font_borrows_what_it_lacks() {
    // Both are in the upright font for text only.
    for text in ["# ℁", "`ℵ`", "**𝔸**"] {
        let made = pdf(text).unwrap();
        assert_eq!(made.missing, Vec::<char>::new(), "{text}");
    }
}

#[test]
fn long_texts_have_many_numbered_pages() {
    let text = (0..300)
        .map(|n| format!("Paragraph {n} says something that is long enough to be seen on a line, and then some more of it.\n\n"))
        .collect::<Vec<_>>()
        .concat();
    let made = pdf(&text).unwrap();
    assert!(made.pages > 5, "{}", made.pages);
    let pages = pages(&made.bytes);
    assert_eq!(pages.len(), made.pages);
    for (number, page) in pages.iter().enumerate() {
        assert!(page.contains(&format!("{} / {}", number + 1, made.pages)), "{page}");
    }
    let all = words(&made.bytes);
    for n in 0..300 {
        assert!(all.contains(&format!("Paragraph {n} says")), "{n}");
    }
}

#[test]
fn tables_wrap_and_repeat_their_header() {
    let rows = (0..120).map(|n| format!("| {n} | {} |\n", "words that wrap in their cell ".repeat(6))).collect::<Vec<_>>().concat();
    let made = pdf(&format!("| Number | Words |\n|---|---|\n{rows}")).unwrap();
    assert!(made.pages > 3);
    for page in pages(&made.bytes) {
        assert!(page.contains("Number"), "{page}");
    }
    let cell = "long cell ".repeat(2_000);
    let made = pdf(&format!("| a | b |\n|---|---|\n| {cell} | x |\n| last | row |\n")).unwrap();
    assert!((3..12).contains(&made.pages), "a row that is higher than a page goes on on the next: {}", made.pages);
    assert_eq!(words(&made.bytes).matches("long").count(), 2_000);
    assert!(words(&made.bytes).contains("last"));
}

#[test]
fn a_high_header_does_not_fill_every_page() {
    let head = "head ".repeat(3_000);
    let rows = "| x | y |\n".repeat(200);
    let made = pdf(&format!("| {head} | b |\n|---|---|\n{rows}")).unwrap();
    assert!(made.pages < 20, "{}", made.pages);
}

#[test]
fn long_words_are_broken() {
    let word = "x".repeat(5_000);
    let made = pdf(&word).unwrap();
    assert!(made.pages >= 1);
    assert_eq!(read(&made.bytes).matches('x').count(), 5_000);
}

#[test]
fn right_to_left_and_combining_marks_are_shaped() {
    let made = pdf("مرحبا بالعالم\n\nשלום עולם\n\ne\u{301}a\u{308}o\u{302}\u{323}\n").unwrap();
    assert_eq!(made.missing, Vec::<char>::new());
    assert!(!words(&made.bytes).is_empty());
}

#[test]
fn the_same_text_gives_the_same_bytes() {
    let text = "# A\n\n*b* **c** `d` 🦀\n\n| e | f |\n|---|---|\n| g | h |\n";
    let first = pdf(text).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!(first == pdf(text).unwrap());
    let plain = String::from_utf8_lossy(&first.bytes).into_owned();
    assert!(!plain.contains("CreationDate") && !plain.contains("ModDate"));
}

#[test]
fn too_much_is_said() {
    assert_eq!(pdf(&"x\n\n".repeat(TEXT_BYTES_MAX / 3 + 1)), Err(DocumentError::TooLong { max: TEXT_BYTES_MAX }));
    assert_eq!(pdf(&"x\n\n".repeat(20_000)), Err(DocumentError::TooManyPages));
    let columns = |count: usize| format!("{}|\n{}|\n", "| a ".repeat(count), "|---".repeat(count));
    assert!(pdf(&columns(TABLE_COLUMNS_MAX)).is_ok());
    assert_eq!(pdf(&columns(TABLE_COLUMNS_MAX + 1)), Err(DocumentError::TableTooWide { columns: TABLE_COLUMNS_MAX + 1 }));
}

#[test]
fn nothing_is_one_empty_page() {
    assert_eq!(pdf("").unwrap().pages, 1);
    assert_eq!(pdf("\n\n  \n").unwrap().pages, 1);
}
