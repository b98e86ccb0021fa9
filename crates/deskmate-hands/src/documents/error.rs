//! Why a document cannot be made.

use super::{CELL_UNITS_MAX, CELLS_MAX, COLUMNS_MAX, DEPTH_MAX, PAGES_MAX, PARTS_MAX, ROWS_MAX, TABLE_COLUMNS_MAX};

/// Why a document cannot be made, in words that say what to change. Rows are counted from 1, without the header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// A row is a list, a text or a number.
    #[error("row {row} is not an object with a value for each column")]
    NotAnObject {
        /// Which row.
        row: usize,
    },
    /// A column was named twice.
    #[error("the column {column:?} is named twice")]
    ColumnTwice {
        /// Its name.
        column: String,
    },
    /// A row has a value that none of the named columns holds: it would be lost.
    #[error("row {row} has a value for {column:?}, which is not one of the columns")]
    UnknownColumn {
        /// Which row.
        row: usize,
        /// The name without a column.
        column: String,
    },
    /// A text is longer than Excel's cells are. Row 0 is the header.
    #[error("the text in row {row}, column {column:?} has {length} characters; a cell of Excel holds at most {CELL_UNITS_MAX}")]
    CellTooLong {
        /// Which row; 0 is the header.
        row: usize,
        /// Which column, cut to its beginning.
        column: String,
        /// How long the text is, counted as Excel does.
        length: usize,
    },
    /// More rows than a sheet has.
    #[error("{rows} rows are too many; a sheet of Excel holds at most {ROWS_MAX} and one of them is the header")]
    TooManyRows {
        /// How many there are.
        rows: usize,
    },
    /// More columns than a sheet has.
    #[error("{columns} columns are too many; a sheet of Excel holds at most {COLUMNS_MAX}")]
    TooManyColumns {
        /// How many there are.
        columns: usize,
    },
    /// More values than are written at once.
    #[error("more than {CELLS_MAX} cells are too many for one workbook; split it")]
    TooManyCells,
    /// The content is too long.
    #[error("the content is longer than {max} bytes; split it")]
    TooLong {
        /// How long it may be.
        max: usize,
    },
    /// The text has more parts than are made into one document.
    #[error("the text has more than {PARTS_MAX} paragraphs, cells and changes of style; split it")]
    TooManyParts,
    /// Lists in lists, or quotes in quotes, beyond what can be shown.
    #[error("lists and quotes are nested more than {DEPTH_MAX} deep")]
    TooDeep,
    /// The PDF would have more pages than are made at once.
    #[error("the document has more than {PAGES_MAX} pages; split it")]
    TooManyPages,
    /// A table has more columns than fit beside each other on a page.
    #[error("a table has {columns} columns; at most {TABLE_COLUMNS_MAX} fit on a page")]
    TableTooWide {
        /// How many it has.
        columns: usize,
    },
    /// The library that writes the format gave up. This is a fault of this program, not of the content.
    #[error("the document could not be written: {0}")]
    Unwritable(String),
}
