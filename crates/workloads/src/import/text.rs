//! What the text importers share: lines, and where in them something is wrong.

use crate::error::WorkloadError;
use thiserror::Error;

/// Why a text could not be imported. Lines count from 1.
#[derive(Debug, Error)]
pub enum TextError {
    /// Nothing but white space, or nothing behind the header.
    #[error("the file holds no rows")]
    Empty,
    /// Bytes that are no text.
    #[error("line {line}: not UTF-8 text")]
    NotText {
        /// The line.
        line: u64,
    },
    /// A column that must be there and is not.
    #[error("the header has no column {column} (it has: {found})")]
    MissingColumn {
        /// The column, with the other name it may have.
        column: &'static str,
        /// What the header has.
        found: String,
    },
    /// A column that stands twice.
    #[error("the header has the column {column} twice")]
    RepeatedColumn {
        /// The column.
        column: String,
    },
    /// A row with more or fewer fields than there are columns.
    #[error("line {line}: {found} field(s), not {wanted}")]
    Fields {
        /// The line.
        line: u64,
        /// How many it has.
        found: usize,
        /// How many it should have.
        wanted: &'static str,
    },
    /// A field that is not what its column holds.
    #[error("line {line}: {column} is {value:?}, not {wanted}")]
    Field {
        /// The line.
        line: u64,
        /// The column.
        column: &'static str,
        /// The field, shortened.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// A life that ends before it begins.
    #[error("line {line}: the life of {id:?} is [{lower}, {upper}), which is empty")]
    EmptyLife {
        /// The line.
        line: u64,
        /// The buffer.
        id: String,
        /// Its first moment.
        lower: i64,
        /// The first moment behind it.
        upper: i64,
    },
    /// An id that stands twice.
    #[error("line {line}: id {id:?} stands already in line {first}")]
    RepeatedId {
        /// The line.
        line: u64,
        /// The id.
        id: String,
        /// The line where it stands first.
        first: u64,
    },
    /// More nodes than a graph may have, or sizes that add up past 2⁶³.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
}

impl TextError {
    pub(super) fn field(line: u64, column: &'static str, value: &str, wanted: &'static str) -> Self {
        let value = match value.char_indices().nth(40) {
            Some((end, _)) => format!("{}...", &value[..end]),
            None => value.to_owned(),
        };
        Self::Field { line, column, value, wanted }
    }
}

/// The text without a byte-order mark.
pub(super) fn text(bytes: &[u8]) -> Result<&str, TextError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let before = &bytes[..e.valid_up_to()];
        TextError::NotText { line: 1 + before.iter().filter(|&&b| b == b'\n').count() as u64 }
    })?;
    if text.trim().is_empty() { Err(TextError::Empty) } else { Ok(text) }
}
