//! Workbooks, read back with calamine.

use std::io::Cursor;

use calamine::{Data, Range, Reader, Xlsx};
use serde_json::{Value, json};

use crate::documents::*;

fn open(bytes: &[u8]) -> Xlsx<Cursor<Vec<u8>>> {
    Xlsx::new(Cursor::new(bytes.to_vec())).unwrap()
}

fn cells(bytes: &[u8]) -> Range<Data> {
    open(bytes).worksheet_range_at(0).unwrap().unwrap()
}

fn rows(value: Value) -> Vec<Value> {
    value.as_array().unwrap().clone()
}

/// A part of the file as text.
fn part(bytes: &[u8], name: &str) -> String {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    std::io::read_to_string(archive.by_name(name).unwrap()).unwrap()
}

#[test]
fn values_keep_their_kind() {
    let bytes = excel(&rows(json!([
        {"a": 1, "b": "zwei", "c": true, "d": null, "e": [1, {"x": "y"}]},
        {"a": -2.5, "b": "Ünïcødé Ελλάδα Київ 東京 🦀", "c": false, "f": {"k": null}},
    ])))
    .unwrap();
    let cells = cells(&bytes);
    let header: Vec<String> = cells.rows().next().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(header, ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(cells[(1, 0)], Data::Float(1.0));
    assert_eq!(cells[(1, 1)], Data::String("zwei".into()));
    assert_eq!(cells[(1, 2)], Data::Bool(true));
    assert_eq!(cells[(1, 3)], Data::Empty);
    assert_eq!(cells[(1, 4)], Data::String(r#"[1,{"x":"y"}]"#.into()));
    assert_eq!(cells[(1, 5)], Data::Empty);
    assert_eq!(cells[(2, 0)], Data::Float(-2.5));
    assert_eq!(cells[(2, 1)], Data::String("Ünïcødé Ελλάδα Київ 東京 🦀".into()));
    assert_eq!(cells[(2, 5)], Data::String(r#"{"k":null}"#.into()));
}

#[test]
fn texts_are_never_formulas() {
    let texts = ["=1+1", "=HYPERLINK(\"http://evil/\",\"x\")", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", "{=1}", "'=1"];
    let given: Vec<Value> = texts.iter().map(|text| json!({ "=1+1": text })).collect();
    let bytes = excel(&given).unwrap();
    let read = cells(&bytes);
    assert_eq!(read[(0, 0)], Data::String("=1+1".into()));
    for (row, text) in texts.iter().enumerate() {
        assert_eq!(read[(row + 1, 0)], Data::String(text.replace('\r', "\n")), "{text}");
    }
    let formulas = open(&bytes).worksheet_formula("Sheet1").unwrap();
    assert!(formulas.cells().all(|(_, _, formula)| formula.is_empty()), "{formulas:?}");
    let sheet = part(&bytes, "xl/worksheets/sheet1.xml");
    assert!(!sheet.contains("<f>") && !sheet.contains("<f ") && !sheet.contains("hyperlink"), "{sheet}");
    assert!(part(&bytes, "xl/styles.xml").contains("quotePrefix"));
}

#[test]
fn large_whole_numbers_keep_their_digits() {
    let bytes =
        excel(&rows(json!([{ "n": 9_007_199_254_740_992_u64 }, { "n": 9_007_199_254_740_993_u64 }, { "n": i64::MIN }, { "n": u64::MAX }, { "n": 1e300 }])))
            .unwrap();
    let cells = cells(&bytes);
    assert_eq!(cells[(1, 0)], Data::Float(9_007_199_254_740_992.0));
    assert_eq!(cells[(2, 0)], Data::String("9007199254740993".into()));
    assert_eq!(cells[(3, 0)], Data::String("-9223372036854775808".into()));
    assert_eq!(cells[(4, 0)], Data::String("18446744073709551615".into()));
    assert_eq!(cells[(5, 0)], Data::Float(1e300));
}

#[test]
fn the_header_is_bold_and_stays_in_view() {
    let bytes = excel(&rows(json!([{ "name": "a rather long value that makes its column wider" }]))).unwrap();
    let sheet = part(&bytes, "xl/worksheets/sheet1.xml");
    assert!(sheet.contains(r#"state="frozen""#) && sheet.contains("<cols>"), "{sheet}");
    assert!(part(&bytes, "xl/styles.xml").contains("<b/>"));
}

#[test]
fn no_rows_are_an_empty_sheet() {
    assert!(cells(&excel(&[]).unwrap()).is_empty());
    assert!(cells(&excel(&[json!({})]).unwrap()).is_empty());
}

#[test]
fn columns_can_be_given_in_order() {
    let given = rows(json!([{ "a": 1, "z": 2 }, { "m": 3 }]));
    let bytes = excel_in_order(&["z", "m", "a"], &given).unwrap();
    let cells = cells(&bytes);
    let header: Vec<String> = cells.rows().next().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(header, ["z", "m", "a"]);
    assert_eq!(cells[(1, 0)], Data::Float(2.0));
    assert_eq!(cells[(2, 1)], Data::Float(3.0));
    assert_eq!(excel_in_order(&["z", "a"], &given), Err(DocumentError::UnknownColumn { row: 2, column: "m".into() }));
    assert_eq!(excel_in_order(&["z", "z"], &given), Err(DocumentError::ColumnTwice { column: "z".into() }));
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let given: Vec<Value> = (0..500).map(|n| json!({ "name": format!("row {n}"), "text": format!("={n}"), "n": n, "even": n % 2 == 0 })).collect();
    let first = excel(&given).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!(first == excel(&given).unwrap());
    assert!(part(&first, "docProps/core.xml").contains("2000-01-01T00:00:00Z"));
}

#[test]
fn the_limits_of_excel_are_said() {
    let long = "x".repeat(CELL_UNITS_MAX);
    assert!(excel(&[json!({ "a": long })]).is_ok());
    // Excel counts what lies beyond the first plane twice.
    let long = "🦀".repeat(CELL_UNITS_MAX / 2 + 1);
    let error = excel(&[json!({ "a": long })]).unwrap_err();
    assert_eq!(error, DocumentError::CellTooLong { row: 1, column: "a".into(), length: 32_768 });
    assert!(error.to_string().contains("32767"), "{error}");
    let error = excel(&[json!({ "n".repeat(40_000): 1 })]).unwrap_err();
    assert!(matches!(error, DocumentError::CellTooLong { row: 0, .. }), "{error}");

    assert_eq!(excel(&vec![Value::Null; ROWS_MAX]), Err(DocumentError::TooManyRows { rows: ROWS_MAX }));
    let wide: serde_json::Map<String, Value> = (0..=COLUMNS_MAX).map(|n| (n.to_string(), json!(n))).collect();
    assert_eq!(excel(&[Value::Object(wide)]), Err(DocumentError::TooManyColumns { columns: COLUMNS_MAX + 1 }));
    let row = json!({ "a": "x".repeat(32_000) });
    assert_eq!(excel(&vec![row; 1_100]), Err(DocumentError::TooLong { max: SHEET_BYTES_MAX }));
    assert_eq!(excel(&[json!({}), json!([1])]), Err(DocumentError::NotAnObject { row: 2 }));
}

#[test]
fn control_characters_are_seen() {
    let bytes = excel(&[json!({ "a": "x\u{0}\u{8}\u{1b}y\u{fffe}", "b": "_x0041_ <&>\"' ]]>", "c": "one\ntwo\tthree " })]).unwrap();
    let cells = cells(&bytes);
    assert_eq!(cells[(1, 0)], Data::String("x���y�".into()));
    assert_eq!(cells[(1, 2)], Data::String("one\ntwo\tthree ".into()));
    let strings = part(&bytes, "xl/sharedStrings.xml");
    // What looks like Excel's own way to write a character is not taken for one.
    assert!(strings.contains("_x005F_x0041_ &lt;&amp;&gt;"), "{strings}");
}
