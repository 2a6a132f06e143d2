//! Schedules: one node id per line, or a JSON array of ids.

use super::text::{lines, number};
use super::{FormatError, body};
use crate::units::{Id, MAX_ID};
use std::io::Write;

/// Reads a schedule in either form; what the ids mean is checked by `Schedule::from_ids`.
///
/// # Errors
/// Broken syntax, with its line; an empty file.
pub fn read(bytes: &[u8]) -> Result<Vec<Id>, FormatError> {
    let text = body(bytes)?;
    if text.trim_ascii_start().first() == Some(&b'[') {
        let ids: Vec<Id> = serde_json::from_slice(text)?;
        return match ids.iter().position(|id| id.0 > MAX_ID) {
            Some(place) => Err(FormatError::Syntax {
                place: None,
                message: format!("id {} at element {place} passes 2^63-1", ids[place]),
            }),
            None => Ok(ids),
        };
    }
    lines(text)?.map(|(line, text)| number(text, line, "the node id").map(Id)).collect()
}

/// Writes one id per line.
///
/// # Errors
/// When the writer fails.
pub fn write(ids: &[Id], mut out: impl Write) -> std::io::Result<()> {
    ids.iter().try_for_each(|id| writeln!(out, "{id}"))
}
