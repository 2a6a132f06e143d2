//! From arguments to objects: graphs, hardware, machines, schedules, and names that may be
//! misspelt.

use crate::args::{GraphArgs, HardwareArgs, ScheduleArgs};
use crate::console::Console;
use crate::error::CliError;
use crate::input::{self, Expect, is_stdin};
use spillbench_core::formats::{FormatError, graph_json, hardware_toml, schedule_text};
use spillbench_core::graph::{Graph, Notice};
use spillbench_core::hardware::{Hardware, Machine, PRESETS, SpillCost};
use spillbench_core::schedule::{Normalize, Schedule};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A graph with the name of its task.
#[derive(Debug)]
pub struct Task {
    /// The name that begins the names of its files.
    pub name: String,
    /// Where the graph came from; `-` for standard input.
    pub file: PathBuf,
    /// The graph.
    pub graph: Graph,
}

/// Reads the graph and says what was passed over.
///
/// # Errors
/// When it cannot be read or is unsound.
pub fn task(args: &GraphArgs, console: &Console) -> Result<Task, CliError> {
    let (graph, notices) = read_json(&args.graph)?;
    for notice in notices {
        console.note(format_args!("{}: {}", args.graph.display(), word_notice(&notice)));
    }
    let name = task_name(args.task.clone().unwrap_or_else(|| stem(&args.graph)))?;
    Ok(Task { name, file: args.graph.clone(), graph })
}

fn stem(path: &Path) -> String {
    if is_stdin(path) {
        return "stdin".to_owned();
    }
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// A task name becomes part of file names, so it must not lead elsewhere.
fn task_name(name: String) -> Result<String, CliError> {
    let plain = Path::new(&name).file_name() == Some(OsStr::new(&name));
    if plain && !name.contains(['\0', '\\']) {
        return Ok(name);
    }
    Err(CliError::usage(format!("{name:?} is no name for a task"), "it begins file names: give --task NAME without /"))
}

type Read = (Graph, Vec<Notice>);

fn read_json(path: &Path) -> Result<Read, CliError> {
    let text = read(path, Expect::JsonObject)?;
    graph_json::read(&text).map_err(in_file(path))
}

/// Reads a file, naming it in the error.
///
/// # Errors
/// As [`input::read`].
pub fn read(path: &Path, expect: Expect) -> Result<Vec<u8>, CliError> {
    input::read(path, expect).map_err(|source| CliError::Read { file: path.to_owned(), expect, source })
}

fn in_file(path: &Path) -> impl FnOnce(FormatError) -> CliError {
    move |source| CliError::Format { file: path.to_owned(), source }
}

fn word_notice(notice: &Notice) -> String {
    match notice {
        Notice::UnknownKey { key, count } => format!("the key {key:?} is unknown and ignored (seen {})", times(*count)),
        Notice::MoreUnknownKeys { keys } => format!("{keys} more unknown keys are ignored"),
        Notice::StrayField { field, on_cache_node, count, first } => {
            let whom = if *on_cache_node { "cache nodes" } else { "ops" };
            format!("{field} means nothing on {whom} and is ignored on {count} (the first is node {first})")
        }
        Notice::NoTiming { ops, first } => {
            format!("{ops} ops have no Pipe or no Cycles (the first is node {first}): timing figures are null")
        }
    }
}

fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// The hardware, with the changes that the arguments ask for.
///
/// # Errors
/// When the file cannot be read, or a name is unknown.
pub fn hardware(args: &HardwareArgs) -> Result<Hardware, CliError> {
    let mut hardware = match Hardware::preset(&args.hardware) {
        Some(preset) => preset,
        None => hardware_file(&args.hardware)?,
    };
    for capacity in &args.capacity {
        hardware.set_capacity(&capacity.cache, capacity.bytes)?;
    }
    if let Some(model) = &args.spill_cost {
        hardware.spill_cost = spill_cost(model)?;
        hardware.validate()?;
    }
    Ok(hardware)
}

fn hardware_file(name: &str) -> Result<Hardware, CliError> {
    let path = Path::new(name);
    let looks_like_a_path = is_stdin(path) || path.exists() || path.components().count() > 1 || name.contains('.');
    if !looks_like_a_path {
        return Err(unknown("preset or file", name, PRESETS.iter().map(|p| p.name)));
    }
    hardware_toml::read(&read(path, Expect::Text)?).map_err(in_file(path))
}

fn spill_cost(model: &str) -> Result<SpillCost, CliError> {
    let (name, numbers) = model.split_once(':').unwrap_or((model, ""));
    let mut numbers = numbers.split(',').filter(|_| model.contains(':')).map(str::parse::<u64>);
    let parts = (name, numbers.next().transpose(), numbers.next().transpose(), numbers.next());
    match parts {
        ("davinci", Ok(None), Ok(None), None) => Ok(SpillCost::default()),
        ("bandwidth", Ok(None), Ok(None), None) => Ok(SpillCost::bandwidth()),
        ("affine", Ok(Some(cycles_per_byte)), Ok(overhead), None) => {
            Ok(SpillCost::Affine { cycles_per_byte, overhead_cycles: overhead.unwrap_or(0) })
        }
        ("bandwidth", Ok(Some(bytes_per_cycle)), Ok(overhead), None) => {
            Ok(SpillCost::Bandwidth { bytes_per_cycle, overhead_cycles: overhead.unwrap_or(0) })
        }
        ("davinci" | "bandwidth" | "affine", ..) => Err(CliError::usage(
            format!("{model:?} is no cost of spills"),
            "write davinci, bandwidth, affine:CYCLES_PER_BYTE[,OVERHEAD] or bandwidth:BYTES_PER_CYCLE[,OVERHEAD], \
             with whole numbers",
        )),
        _ => Err(unknown("cost model", name, ["davinci", "bandwidth", "affine"])),
    }
}

/// The hardware as the graph sees it.
///
/// # Errors
/// When the graph names a cache that the hardware does not have.
pub fn machine(task: &Task, hardware: &Hardware) -> Result<Machine, CliError> {
    Machine::resolve(&task.graph, hardware).map_err(|misfits| misfit(task, hardware, misfits))
}

/// The error that says what does not fit.
pub fn misfit(task: &Task, hardware: &Hardware, misfits: Vec<spillbench_core::hardware::FitError>) -> CliError {
    CliError::Misfit { file: task.file.clone(), hardware: hardware.name.clone(), misfits }
}

/// The level of normalising.
///
/// # Errors
/// When there is no such level.
pub fn normalize(name: &str) -> Result<Normalize, CliError> {
    let level = Normalize::ALL.iter().find(|l| l.1 == name).map(|l| l.0);
    level.ok_or_else(|| unknown("level of normalising", name, Normalize::ALL.iter().map(|l| l.1)))
}

/// The schedule, normalised, and the level.
///
/// # Errors
/// When it cannot be read or does not belong to the graph.
pub fn schedule(args: &ScheduleArgs, task: &Task) -> Result<Schedule, CliError> {
    let level = normalize(&args.normalize)?;
    let schedule = match &args.schedule {
        None => Schedule::default_for(&task.graph),
        Some(path) if is_stdin(path) && is_stdin(&task.file) => {
            return Err(CliError::usage(
                "both the graph and the schedule are to come from standard input",
                "give one of them as a file",
            ));
        }
        Some(path) => {
            let ids = schedule_text::read(&read(path, Expect::Numbers)?).map_err(in_file(path))?;
            Schedule::from_ids(&task.graph, &ids).map_err(|source| CliError::Schedule { file: path.clone(), source })?
        }
    };
    Ok(schedule.normalized(&task.graph, level))
}

/// The error for a name that nothing has, with the nearest name where one is near.
pub fn unknown<'a>(kind: &'static str, name: &str, known: impl IntoIterator<Item = &'a str>) -> CliError {
    const NEAR: f64 = 0.75;
    let known: Vec<_> = known.into_iter().map(str::to_owned).collect();
    let wanted = name.to_ascii_lowercase();
    let likeness = |k: &String| strsim::jaro_winkler(&wanted, &k.to_ascii_lowercase());
    let meant = known.iter().map(|k| (likeness(k), k)).filter(|l| l.0 >= NEAR).max_by(|a, b| a.0.total_cmp(&b.0));
    CliError::UnknownName { kind, name: name.to_owned(), meant: meant.map(|m| m.1.clone()), known }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(name: &str) -> Option<String> {
        match unknown("placement", name, ["best-fit", "first-fit", "two-ended"]) {
            CliError::UnknownName { meant, .. } => meant,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        assert_eq!(meant("bestfit").as_deref(), Some("best-fit"));
        assert_eq!(meant("Fist-Fit").as_deref(), Some("first-fit"));
        assert_eq!(meant("zzz"), None);
    }

    #[test]
    fn cost_models_take_parameters() {
        assert_eq!(spill_cost("davinci").unwrap(), SpillCost::default());
        assert_eq!(spill_cost("bandwidth").unwrap(), SpillCost::bandwidth());
        let affine = SpillCost::Affine { cycles_per_byte: 3, overhead_cycles: 0 };
        assert_eq!(spill_cost("affine:3").unwrap(), affine);
        let bandwidth = SpillCost::Bandwidth { bytes_per_cycle: 64, overhead_cycles: 10 };
        assert_eq!(spill_cost("bandwidth:64,10").unwrap(), bandwidth);
        for wrong in ["affine", "davinci:1", "bandwidth:x", "bandwidth:", "affine:,2", "bandwidth:1,2,3", "free"] {
            assert!(spill_cost(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_task_name_leads_nowhere_else() {
        assert_eq!(task_name("Conv_Case0".to_owned()).unwrap(), "Conv_Case0");
        for wrong in ["", ".", "..", "a/b", "/a", "a/", "a\\b", "a\0b"] {
            assert!(task_name(wrong.to_owned()).is_err(), "{wrong:?}");
        }
    }
}
