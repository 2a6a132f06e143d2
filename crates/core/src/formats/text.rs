//! Line-oriented texts: one record per line, blank lines only at the end.

use super::FormatError;
use crate::units::MAX_ID;

/// The lines of a text with their numbers from 1; a byte-order mark, CRLF and blank lines at the
/// end are forgiven. An empty text has no lines.
pub(super) fn lines(bytes: &[u8]) -> Result<impl Iterator<Item = (usize, &str)>, FormatError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = bytes[..e.valid_up_to()].iter().filter(|&&b| b == b'\n').count() + 1;
        FormatError::at(line, "not UTF-8 text")
    })?;
    let text = text.trim_end_matches(['\n', '\r', ' ', '\t']);
    let count = if text.is_empty() { 0 } else { usize::MAX };
    Ok(text.split('\n').take(count).enumerate().map(|(i, line)| (i + 1, line.strip_suffix('\r').unwrap_or(line))))
}

/// A whole number from 0 to 2⁶³ − 1 that fills `text`.
pub(super) fn number(text: &str, line: usize, what: &str) -> Result<u64, FormatError> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let value = if digits { text.parse::<u64>().ok().filter(|&v| v <= MAX_ID) } else { None };
    value.ok_or_else(|| {
        FormatError::at(line, format!("{what} is {:?}, not a whole number from 0 to 2^63-1", shorten(text)))
    })
}

pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
