//! File formats: graphs as JSON or a CSV pair, schedules, plans as three text files or one JSON
//! document, hardware as TOML, and timed plans as traces.
//!
//! Readers take bytes and report line and column, or node and field; nothing here prints. Text may
//! begin with a byte-order mark, use CRLF and end in blank lines; nothing else is forgiven.

pub mod chrome_trace;
pub mod graph_csv;
pub mod graph_json;
pub mod hardware_toml;
pub mod output;
pub mod plan_json;
pub mod plan_text;
pub mod schedule_text;
mod text;

use crate::graph::GraphErrors;
use std::fmt;
use thiserror::Error;

/// A place in a text, both counted from 1; column 0 stands for the whole line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1; 0 when the whole line is meant.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if self.column > 0 { write!(f, ", column {}", self.column) } else { Ok(()) }
    }
}

/// Why a text could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// The text is empty, or blank.
    #[error("the file is empty")]
    Empty,
    /// The text breaks the syntax or a field has the wrong type.
    #[error("{}{message}", .place.map(|p| format!("{p}: ")).unwrap_or_default())]
    Syntax {
        /// Where.
        place: Option<Place>,
        /// What.
        message: String,
    },
    /// The text was read, and the graph it describes is unsound.
    #[error(transparent)]
    Graph(#[from] GraphErrors),
}

impl FormatError {
    pub(crate) fn at(line: usize, message: impl Into<String>) -> Self {
        Self::Syntax { place: Some(Place { line, column: 0 }), message: message.into() }
    }
}

impl From<serde_json::Error> for FormatError {
    fn from(error: serde_json::Error) -> Self {
        let place = (error.line() > 0).then(|| Place { line: error.line(), column: error.column() });
        let text = error.to_string();
        let message = match text.rfind(" at line ") {
            Some(end) if place.is_some() => text[..end].to_owned(),
            _ => text,
        };
        Self::Syntax { place, message }
    }
}

/// The bytes of a text without its byte-order mark.
///
/// # Errors
/// [`FormatError::Empty`] when nothing but white space is left.
pub(crate) fn body(bytes: &[u8]) -> Result<&[u8], FormatError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) { Err(FormatError::Empty) } else { Ok(bytes) }
}
