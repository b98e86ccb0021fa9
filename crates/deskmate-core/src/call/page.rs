//! Lists come in pages: `limit` and `cursor` in, `next_cursor` out, absent at the end.

use data_encoding::BASE64URL_NOPAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{PAGE_DEFAULT, PAGE_MAX};
use crate::{Error, Result};

/// A page that a caller asks for.
#[derive(Clone, Debug, Default)]
pub struct PageIn {
    /// How many rows, within the bounds.
    pub limit: u32,
    /// Where the previous page ended: a time and an id.
    pub after: Option<(i64, String)>,
}

impl PageIn {
    /// Reads `limit` and `cursor` of an input.
    pub fn new(limit: Option<u32>, cursor: Option<&str>) -> Result<Self> {
        let limit = limit.unwrap_or(PAGE_DEFAULT);
        if limit == 0 || limit > PAGE_MAX {
            return Err(Error::invalid("limit", format!("must be between 1 and {PAGE_MAX}")));
        }
        let after = cursor.map(|cursor| decode(cursor).ok_or_else(|| Error::invalid("cursor", "is not a cursor that this operation gave out")));
        Ok(Self { limit, after: after.transpose()? })
    }

    /// One row more than the page, which shows whether there is another.
    pub fn look_ahead(&self) -> u32 {
        self.limit + 1
    }
}

fn decode(cursor: &str) -> Option<(i64, String)> {
    let text = String::from_utf8(BASE64URL_NOPAD.decode(cursor.as_bytes()).ok()?).ok()?;
    let (time, id) = text.split_once(' ')?;
    if id.contains('\0') {
        return None;
    }
    Some((time.parse().ok()?, id.to_owned()))
}

/// A page of rows.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Cuts the row that was looked at ahead and says where the next page begins.
    pub fn cut(mut items: Vec<T>, page: &PageIn, key: impl Fn(&T) -> (i64, String)) -> Self {
        let limit = page.limit as usize;
        let more = items.len() > limit;
        items.truncate(limit);
        let last = if more { items.last().map(key) } else { None };
        let next_cursor = last.map(|(time, id)| Self::cursor(time, &id));
        Self { items, next_cursor }
    }

    /// The cursor that says where a page ended.
    pub(crate) fn cursor(time: i64, id: &str) -> String {
        BASE64URL_NOPAD.encode(format!("{time} {id}").as_bytes())
    }
}
