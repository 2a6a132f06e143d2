//! Plans as one JSON document: schedule, addresses and spills with how the plan was made and what
//! it measures.
//!
//! The document holds no wall time, so the same plan is the same bytes; reading what was written
//! gives back every number. Unknown keys are refused, with their place.

use super::{FormatError, Place, body};
use crate::metrics::Metrics;
use crate::plan::{Counters, Origin, Placed, Plan, Spill};
use crate::units::{Id, MAX_ID};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// What the key `format` says.
pub const FORMAT: &str = "spillbench-plan";

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// A plan with what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanDocument {
    /// Name of the task: what the files of the plan begin with.
    pub task: String,
    /// How the plan was made, where that is known.
    pub settings: Option<Origin>,
    /// The plan.
    pub plan: Plan,
    /// What it measures, where it was measured.
    pub metrics: Option<Metrics>,
}

/// The document as it is read, its keys in the order in which they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    format: String,
    version: u32,
    task: String,
    #[serde(default)]
    settings: Option<Origin>,
    #[serde(default)]
    metrics: Option<Metrics>,
    #[serde(default)]
    counters: Option<Counters>,
    schedule: Vec<Id>,
    memory: Vec<Placed>,
    spills: Vec<Spill>,
}

/// Reads a plan document. What its ids mean is for the checker to say.
///
/// # Errors
/// Broken JSON, an unknown or missing key or a value of the wrong type, with line and column;
/// another format or version; an id past 2⁶³ − 1; settings with an impossible hardware.
pub fn read(bytes: &[u8]) -> Result<PlanDocument, FormatError> {
    let bytes = body(bytes)?;
    let keys: Keys = match serde_json::from_slice(bytes) {
        Ok(keys) => keys,
        Err(error) => return Err(other_version(bytes).unwrap_or_else(|| error.into())),
    };
    if keys.format != FORMAT || keys.version != VERSION {
        return Err(other(&keys.format, keys.version));
    }
    let no_place = |message| FormatError::Syntax { place: None, message };
    let memory = keys.memory.iter().map(|p| ("memory", p.buf.0));
    let spills = keys.spills.iter().map(|s| ("spills", s.buf.0));
    let ids = keys.schedule.iter().map(|id| ("schedule", id.0)).chain(memory).chain(spills);
    if let Some((list, id)) = ids.into_iter().find(|i| i.1 > MAX_ID) {
        return Err(no_place(format!("id {id} in {list} passes 2^63-1")));
    }
    if let Some(settings) = &keys.settings {
        settings.hardware().validate().map_err(|e| no_place(format!("settings.hardware: {e}")))?;
    }
    let plan = Plan { schedule: keys.schedule, memory: keys.memory, spills: keys.spills, counters: keys.counters };
    Ok(PlanDocument { task: keys.task, settings: keys.settings, plan, metrics: keys.metrics })
}

/// The error that names another version, where that is why a document does not read.
fn other_version(bytes: &[u8]) -> Option<FormatError> {
    #[derive(Deserialize)]
    struct Head {
        format: String,
        version: u32,
    }
    let head: Head = serde_json::from_slice(bytes).ok()?;
    (head.format != FORMAT || head.version != VERSION).then(|| other(&head.format, head.version))
}

fn other(format: &str, version: u32) -> FormatError {
    let message = format!("the format is {format:?} version {version}, not {FORMAT:?} version {VERSION}");
    FormatError::Syntax { place: None::<Place>, message }
}

/// Writes a plan document: long lists several items a line, the rest one value a line.
///
/// # Errors
/// When the writer fails.
pub fn write(document: &PlanDocument, mut out: impl Write) -> io::Result<()> {
    let PlanDocument { task, settings, plan, metrics } = document;
    writeln!(out, "{{\n  \"format\": \"{FORMAT}\",\n  \"version\": {VERSION},")?;
    write_value(&mut out, "task", task)?;
    write_value(&mut out, "settings", settings)?;
    write_value(&mut out, "metrics", metrics)?;
    write_value(&mut out, "counters", &plan.counters)?;
    write_list(&mut out, "schedule", &plan.schedule, 20)?;
    out.write_all(b",\n")?;
    write_list(&mut out, "memory", &plan.memory, 4)?;
    out.write_all(b",\n")?;
    write_list(&mut out, "spills", &plan.spills, 2)?;
    out.write_all(b"\n}\n")
}

fn write_value(out: &mut impl Write, key: &str, value: &impl Serialize) -> io::Result<()> {
    // A line end in pretty JSON is layout: inside a string it is escaped.
    let text = serde_json::to_string_pretty(value)?.replace('\n', "\n  ");
    writeln!(out, "  \"{key}\": {text},")
}

fn write_list<T: Serialize>(out: &mut impl Write, key: &str, items: &[T], per_line: usize) -> io::Result<()> {
    write!(out, "  \"{key}\": [")?;
    for (i, item) in items.iter().enumerate() {
        let separator: &[u8] = match i {
            0 => b"\n    ",
            _ if i % per_line == 0 => b",\n    ",
            _ => b", ",
        };
        out.write_all(separator)?;
        serde_json::to_writer(&mut *out, item)?;
    }
    out.write_all(if items.is_empty() { b"]" } else { b"\n  ]" })
}
