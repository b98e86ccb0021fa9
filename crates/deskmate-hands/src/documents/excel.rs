//! Rows to an Excel workbook with one sheet. Texts are written as texts whatever they begin with, so that nothing in them
//! is ever computed: a cell that says `=1+1` shows `=1+1`.

use std::collections::HashMap;

use rust_xlsxwriter::{DocProperties, ExcelDateTime, Format, Workbook, Worksheet, XlsxError};
use serde_json::Value;

use super::DocumentError;
use super::clean::clean;

/// Rows of a sheet, with its header.
pub const ROWS_MAX: usize = 1_048_576;
/// Columns of a sheet.
pub const COLUMNS_MAX: usize = 16_384;
/// Characters of a cell, counted in UTF-16 as Excel does.
pub const CELL_UNITS_MAX: usize = 32_767;
/// Cells that are written at once; more would take gigabytes of memory.
pub const CELLS_MAX: usize = 2_000_000;
/// Bytes of text in all cells together.
pub const SHEET_BYTES_MAX: usize = 32 << 20;

/// The widest a column is made by itself, in pixels; longer texts are still there.
const COLUMN_PIXELS_MAX: u32 = 420;
/// From here on not every whole number is a number of Excel's.
const EXACT_MAX: u64 = 1 << 53;

/// A workbook from rows that are objects. The columns are the names of all rows in the order in which they are first
/// found. JSON objects have no order of their own, and without serde_json's `preserve_order` their names are found in
/// alphabetical order; [`excel_in_order`] says the order instead.
pub fn excel(rows: &[Value]) -> Result<Vec<u8>, DocumentError> {
    let mut columns: Vec<&str> = Vec::new();
    let mut places: HashMap<&str, u16> = HashMap::new();
    if rows.len() >= ROWS_MAX {
        return Err(DocumentError::TooManyRows { rows: rows.len() });
    }
    for (index, row) in rows.iter().enumerate() {
        let row = row.as_object().ok_or(DocumentError::NotAnObject { row: index + 1 })?;
        for name in row.keys() {
            if !places.contains_key(name.as_str()) {
                places.insert(name, place(columns.len())?);
                columns.push(name);
            }
        }
    }
    write(&columns, &places, rows)
}

/// A workbook with these columns, in this order. A row that has a value for another column is an error: it would be lost.
pub fn excel_in_order<S: AsRef<str>>(columns: &[S], rows: &[Value]) -> Result<Vec<u8>, DocumentError> {
    let columns: Vec<&str> = columns.iter().map(AsRef::as_ref).collect();
    let mut places: HashMap<&str, u16> = HashMap::new();
    if rows.len() >= ROWS_MAX {
        return Err(DocumentError::TooManyRows { rows: rows.len() });
    }
    for (index, name) in columns.iter().enumerate() {
        if places.insert(name, place(index)?).is_some() {
            return Err(DocumentError::ColumnTwice { column: beginning(name) });
        }
    }
    write(&columns, &places, rows)
}

/// A column's place, or that there are too many.
fn place(index: usize) -> Result<u16, DocumentError> {
    match u16::try_from(index) {
        Ok(place) if index < COLUMNS_MAX => Ok(place),
        _ => Err(DocumentError::TooManyColumns { columns: index + 1 }),
    }
}

fn write(columns: &[&str], places: &HashMap<&str, u16>, rows: &[Value]) -> Result<Vec<u8>, DocumentError> {
    let mut workbook = Workbook::new();
    // The library would write the time of the day into the file.
    let made = ExcelDateTime::from_ymd(2000, 1, 1).map_err(unwritable)?;
    workbook.set_properties(&DocProperties::new().set_creation_datetime(&made));
    let sheet = workbook.add_worksheet();
    let mut pen = Pen { sheet, quoted: Format::new().set_quote_prefix(), cells: 0, bytes: 0 };
    let bold = Format::new().set_bold();
    for (column, name) in (0_u16..).zip(columns) {
        let text = pen.text(0, name, name)?;
        pen.sheet.write_string_with_format(0, column, text, &bold).map_err(unwritable)?;
    }
    for (index, row) in (1_u32..).zip(rows) {
        let number = index as usize;
        let row = row.as_object().ok_or(DocumentError::NotAnObject { row: number })?;
        for (name, value) in row {
            let Some(&column) = places.get(name.as_str()) else {
                return Err(DocumentError::UnknownColumn { row: number, column: beginning(name) });
            };
            pen.cell(index, column, name, value)?;
        }
    }
    sheet.set_freeze_panes(1, 0).map_err(unwritable)?;
    sheet.set_autofit_max_width(COLUMN_PIXELS_MAX);
    sheet.autofit();
    workbook.save_to_buffer().map_err(unwritable)
}

/// Writes cells and counts them.
struct Pen<'a> {
    sheet: &'a mut Worksheet,
    quoted: Format,
    cells: usize,
    bytes: usize,
}

impl Pen<'_> {
    fn cell(&mut self, row: u32, column: u16, name: &str, value: &Value) -> Result<(), DocumentError> {
        self.cells += 1;
        if self.cells > CELLS_MAX {
            return Err(DocumentError::TooManyCells);
        }
        match value {
            Value::Null => Ok(()),
            Value::Bool(value) => self.sheet.write_boolean(row, column, *value).map(drop).map_err(unwritable),
            Value::Number(number) => match number.as_f64() {
                Some(value) if !is_inexact(number) => self.sheet.write_number(row, column, value).map(drop).map_err(unwritable),
                _ => self.string(row, column, name, &number.to_string()),
            },
            Value::String(text) => self.string(row, column, name, text),
            Value::Array(_) | Value::Object(_) => self.string(row, column, name, &value.to_string()),
        }
    }

    fn string(&mut self, row: u32, column: u16, name: &str, text: &str) -> Result<(), DocumentError> {
        let text = self.text(row as usize, name, text)?;
        // Such a text is no formula in the file. The mark keeps it a text when somebody edits the cell, too.
        let written = if text.starts_with(['=', '+', '-', '@', '\t', '\n']) {
            self.sheet.write_string_with_format(row, column, text, &self.quoted)
        } else {
            self.sheet.write_string(row, column, text)
        };
        written.map(drop).map_err(unwritable)
    }

    /// The text as it is written, when it fits.
    fn text(&mut self, row: usize, name: &str, text: &str) -> Result<String, DocumentError> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > SHEET_BYTES_MAX {
            return Err(DocumentError::TooLong { max: SHEET_BYTES_MAX });
        }
        let text = clean(text);
        let length = text.encode_utf16().count();
        if length > CELL_UNITS_MAX {
            return Err(DocumentError::CellTooLong { row, column: beginning(name), length });
        }
        Ok(text.into_owned())
    }
}

/// Whether a number would change its digits in Excel, whose numbers are all floating.
fn is_inexact(number: &serde_json::Number) -> bool {
    number.as_u64().is_some_and(|value| value > EXACT_MAX) || number.as_i64().is_some_and(|value| value.unsigned_abs() > EXACT_MAX)
}

/// As much of a name as a message needs.
fn beginning(name: &str) -> String {
    name.chars().take(60).collect()
}

fn unwritable(error: XlsxError) -> DocumentError {
    DocumentError::Unwritable(error.to_string())
}
