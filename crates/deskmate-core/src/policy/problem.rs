//! What is wrong with a text, where, and what to write instead.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// Something in a document that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// The line, counted from 1; 0 if it did not come from a text.
    pub line: u64,
    /// The column, counted from 1 in characters.
    pub column: u64,
    /// Where it is in the document, such as `policies[0].rules[2].when`.
    pub path: String,
    /// What is wrong, and what to write.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}
