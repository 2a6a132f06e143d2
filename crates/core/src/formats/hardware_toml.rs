//! Hardware files, in TOML.

use super::{FormatError, Place, body};
use crate::hardware::Hardware;

/// Reads a hardware description and checks it.
///
/// # Errors
/// Broken TOML, an unknown or missing key, a value of the wrong type (with line and column), no
/// cache, a capacity or bandwidth of 0, an empty name of a cache or pipe.
pub fn read(bytes: &[u8]) -> Result<Hardware, FormatError> {
    let text = std::str::from_utf8(body(bytes)?)
        .map_err(|_| FormatError::Syntax { place: None, message: "not UTF-8 text".to_owned() })?;
    let hardware: Hardware = toml::from_str(text).map_err(|e| FormatError::Syntax {
        place: e.span().map(|span| place(text, span.start)),
        message: e.message().to_owned(),
    })?;
    hardware.validate().map_err(|e| FormatError::Syntax { place: None, message: e.to_string() })?;
    Ok(hardware)
}

/// Line and column, from 1, of a byte of `text`.
pub fn place(text: &str, byte: usize) -> Place {
    let before = &text.as_bytes()[..byte.min(text.len())];
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|&&b| b != b'\n').count() + 1;
    Place { line, column }
}

/// The description as a file.
pub fn write(hardware: &Hardware) -> String {
    toml::to_string_pretty(hardware).unwrap_or_else(|e| format!("# {e}\n"))
}
