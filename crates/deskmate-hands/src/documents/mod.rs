//! Documents for people, made from what an agent gives: rows become an Excel workbook, text becomes a Word file or a PDF.
//! Each is a function from content to bytes and nothing else: no clock, no chance, and of files only fonts of the system, for
//! letters that the built-in ones lack. The same content gives the same bytes on one machine; what a person looks at and approves
//! is kept, and is what is written later.
//!
//! The text of Word files and PDFs is a small part of Markdown: headings, paragraphs, lists, tables, quotes, code, bold
//! and italic. What is not understood stays as text: HTML is shown, not followed, and a link is its words and its target.

mod blocks;
mod clean;
mod error;
mod excel;
mod markdown;
mod pdf;
mod word;

pub use error::DocumentError;
pub use excel::{CELL_UNITS_MAX, CELLS_MAX, COLUMNS_MAX, ROWS_MAX, SHEET_BYTES_MAX, excel, excel_in_order};
pub use markdown::{DEPTH_MAX, PARTS_MAX, TEXT_BYTES_MAX};
pub use pdf::{PAGES_MAX, Pdf, TABLE_COLUMNS_MAX, font_folders, pdf};
pub use word::word;

#[cfg(test)]
mod tests;
