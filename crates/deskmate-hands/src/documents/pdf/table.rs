//! Tables: columns as wide as they need to be where there is room, cells that wrap, rows that go on on the next page, and
//! the header again at each page's top.

use std::rc::Rc;

use super::TABLE_COLUMNS_MAX;
use super::flow::{Flow, Mark, TEXT_HEIGHT};
use super::text::{Laid, Look, set, wrap};
use crate::documents::DocumentError;
use crate::documents::blocks::{Cell, Side};

/// Between a cell's border and its text.
const PADDING: f32 = 4.0;
const SIZE: f32 = 9.5;
const BORDER: f32 = 0.6;
/// A header that is higher than this is not repeated.
const HEADER_MAX: f32 = TEXT_HEIGHT / 4.0;
/// What there must be room for to begin a row that goes on on the next page.
const BROKEN_MIN: f32 = 48.0;

/// Where a table's columns are.
struct Columns {
    x: f32,
    widths: Vec<f32>,
}

/// A row whose cells are set, and how many lines of each are on a page already.
struct Row {
    cells: Vec<(Rc<Laid>, usize)>,
    header: bool,
}

impl Flow<'_> {
    pub(super) fn table(&mut self, sides: &[Side], header: &[Cell], rows: &[Vec<Cell>], (x, width): (f32, f32)) -> Result<(), DocumentError> {
        if header.len() > TABLE_COLUMNS_MAX {
            return Err(DocumentError::TableTooWide { columns: header.len() });
        }
        let mut set_rows: Vec<Vec<Laid>> = Vec::with_capacity(rows.len() + 1);
        for (number, row) in std::iter::once(header).chain(rows.iter().map(Vec::as_slice)).enumerate() {
            let look = Look { size: SIZE, bold: number == 0 };
            set_rows.push(row.iter().map(|cell| set(self.fonts, cell, look)).collect());
        }
        let columns = Columns { x, widths: widths(&set_rows, header.len(), width) };
        let mut rows = set_rows.into_iter().enumerate().map(|(number, cells)| {
            let wrapped = cells.into_iter().zip(&columns.widths).zip(sides).map(|((mut laid, width), side)| {
                wrap(&mut laid, width - 2.0 * PADDING, *side);
                (Rc::new(laid), 0)
            });
            Row { cells: wrapped.collect(), header: number == 0 }
        });
        let Some(head) = rows.next() else { return Ok(()) };
        self.room(head.height() + BORDER)?;
        self.row(&columns, head.again(), None)?;
        let repeated = (head.height() <= HEADER_MAX).then_some(&head);
        for row in rows {
            self.row(&columns, row, repeated)?;
        }
        Ok(())
    }

    /// Puts a row, on as many pages as it needs. It is broken only if it would not fit on a page of its own.
    fn row(&mut self, columns: &Columns, mut row: Row, header: Option<&Row>) -> Result<(), DocumentError> {
        let page = TEXT_HEIGHT - header.map_or(0.0, Row::height);
        let needed = if row.height() <= page { row.height() } else { BROKEN_MIN };
        if self.room(needed)? {
            self.header(columns, header)?;
        }
        loop {
            let height = self.strip(columns, &mut row);
            self.down(height);
            if row.is_done() {
                return Ok(());
            }
            self.turn()?;
            self.header(columns, header)?;
        }
    }

    fn header(&mut self, columns: &Columns, header: Option<&Row>) -> Result<(), DocumentError> {
        header.map_or(Ok(()), |header| self.row(columns, header.again(), None))
    }

    /// Puts as many lines of each cell as fit, and at least one. Says how high it is.
    fn strip(&mut self, columns: &Columns, row: &mut Row) -> f32 {
        let (top, room) = (self.y(), self.left() - 2.0 * PADDING);
        let mut marks = Vec::new();
        let mut height: f32 = 0.0;
        let mut x = columns.x;
        for ((laid, done), width) in row.cells.iter_mut().zip(&columns.widths) {
            let mut y = 0.0;
            while *done < laid.layout.len() {
                let line = laid.height(*done);
                if y > 0.0 && y + line > room {
                    break;
                }
                marks.push(Mark::Line { laid: Rc::clone(laid), line: *done, x: x + PADDING, y: top + PADDING + y });
                y += line;
                *done += 1;
            }
            height = height.max(y);
            x += width;
        }
        let height = height + 2.0 * PADDING;
        let width = x - columns.x;
        if row.header {
            self.fill(columns.x, top, width, height, 236);
        }
        self.fill(columns.x, top, width, BORDER, 130);
        self.fill(columns.x, top + height, width, BORDER, 130);
        let mut x = columns.x;
        self.fill(x, top, BORDER, height, 130);
        for width in &columns.widths {
            x += width;
            self.fill(x, top, BORDER, height, 130);
        }
        for mark in marks {
            self.mark(mark);
        }
        height
    }
}

impl Row {
    /// How high what is left of the row is.
    fn height(&self) -> f32 {
        let text = self.cells.iter().map(|(laid, done)| (*done..laid.layout.len()).map(|line| laid.height(line)).sum());
        text.fold(0.0, f32::max) + 2.0 * PADDING
    }

    fn is_done(&self) -> bool {
        self.cells.iter().all(|(laid, done)| *done >= laid.layout.len())
    }

    /// The same row from its beginning.
    fn again(&self) -> Self {
        Self { cells: self.cells.iter().map(|(laid, _)| (Rc::clone(laid), 0)).collect(), header: self.header }
    }
}

/// How wide the columns are: as wide as their texts where there is room; otherwise the wide ones share what the narrow
/// ones leave.
fn widths(rows: &[Vec<Laid>], columns: usize, room: f32) -> Vec<f32> {
    let mut wanted = vec![0.0_f32; columns];
    for row in rows {
        for (laid, wanted) in row.iter().zip(&mut wanted) {
            // A little more than it measures, so that rounding does not break a word.
            *wanted = wanted.max(laid.layout.calculate_content_widths().max + 2.0 * PADDING + 0.5);
        }
    }
    let mut order: Vec<(usize, f32)> = wanted.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut left = room;
    for (number, (column, width)) in order.into_iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a table has few columns")]
        let share = left / (columns - number) as f32;
        let given = width.min(share);
        if let Some(wanted) = wanted.get_mut(column) {
            *wanted = given;
        }
        left -= given;
    }
    wanted
}
