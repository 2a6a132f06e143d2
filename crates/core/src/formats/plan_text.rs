//! Plans as three text files: `<task>_schedule.txt`, `<task>_memory.txt`, `<task>_spill.txt`.

use super::text::{lines, number, shorten};
use super::{FormatError, schedule_text};
use crate::plan::{Placed, Plan, Spill};
use crate::units::{BufId, Offset};
use std::io::Write;

/// Reads the schedule file of a plan: ids of all nodes, spill nodes included.
///
/// # Errors
/// Broken syntax, with its line.
pub use schedule_text::read as read_schedule;

/// Reads a memory file: `BufId:Offset`, one line per buffer.
///
/// # Errors
/// Broken syntax, with its line.
pub fn read_memory(bytes: &[u8]) -> Result<Vec<Placed>, FormatError> {
    pairs(bytes).map(|pairs| pairs.into_iter().map(|(buf, offset)| Placed { buf, offset }).collect())
}

/// Reads a spill file: `BufId:NewOffset`, one line per spill; it may be empty.
///
/// # Errors
/// Broken syntax, with its line.
pub fn read_spills(bytes: &[u8]) -> Result<Vec<Spill>, FormatError> {
    pairs(bytes).map(|pairs| pairs.into_iter().map(|(buf, offset)| Spill { buf, offset, cause: None }).collect())
}

fn pairs(bytes: &[u8]) -> Result<Vec<(BufId, Offset)>, FormatError> {
    lines(bytes)?
        .map(|(line, text)| {
            let (buf, offset) = text
                .split_once(':')
                .ok_or_else(|| FormatError::at(line, format!("{:?} is not BufId:Offset", shorten(text))))?;
            Ok((BufId(number(buf, line, "the buffer id")?), address(offset, line)?))
        })
        .collect()
}

/// An address: what lies below 0 is for the checker to judge.
fn address(text: &str, line: usize) -> Result<Offset, FormatError> {
    match text.strip_prefix('-').filter(|rest| rest.bytes().all(|b| b.is_ascii_digit())) {
        Some(below) => number(below, line, "the offset").map(|n| Offset::from_signed(-n.cast_signed())),
        None => number(text, line, "the offset").map(Offset),
    }
}

/// Writes the schedule file of a plan.
///
/// # Errors
/// When the writer fails.
pub fn write_schedule(plan: &Plan, out: impl Write) -> std::io::Result<()> {
    schedule_text::write(&plan.schedule, out)
}

/// Writes the memory file of a plan.
///
/// # Errors
/// When the writer fails.
pub fn write_memory(plan: &Plan, mut out: impl Write) -> std::io::Result<()> {
    plan.memory.iter().try_for_each(|p| writeln!(out, "{}:{}", p.buf, p.offset))
}

/// Writes the spill file of a plan; empty when nothing is spilled.
///
/// # Errors
/// When the writer fails.
pub fn write_spills(plan: &Plan, mut out: impl Write) -> std::io::Result<()> {
    plan.spills.iter().try_for_each(|s| writeln!(out, "{}:{}", s.buf, s.offset))
}
