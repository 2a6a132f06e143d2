//! From arguments to objects: graphs, hardware, schedules, policies, and names that may be
//! misspelt.

mod graph;
mod hardware;
mod names;
mod plan_files;
mod policy;

pub use graph::{EDGES_CSV, GraphFormat, NODES_CSV, Task, task, task_at};
pub use hardware::{hardware, machine, misfit};
pub use names::unknown;
pub use plan_files::{Claims, MEMORY_TXT, PLAN_JSON, PlanSource, SCHEDULE_TXT, SPILL_TXT, plan_files};
pub use policy::{NO_STRATEGY, heuristics, policy, settings};

use crate::analysis::run::RunError;
use crate::args::ScheduleArgs;
use crate::console::Console;
use crate::error::{CliError, shown};
use crate::input::{self, Expect};
use spillbench_core::formats::{FormatError, schedule_text};
use spillbench_core::hardware::Hardware;
use spillbench_core::planner::PlanError;
use spillbench_core::schedule::{Normalize, Schedule};
use std::path::Path;

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

/// The level of normalising.
///
/// # Errors
/// When there is no such level.
pub fn normalize(name: &str) -> Result<Normalize, CliError> {
    let level = Normalize::ALL.iter().find(|l| l.1 == name).map(|l| l.0);
    level.ok_or_else(|| unknown("level of normalising", name, Normalize::ALL.iter().map(|l| l.1)))
}

/// The name of a level of normalising.
pub fn normalize_name(level: Normalize) -> &'static str {
    Normalize::ALL.iter().find(|l| l.0 == level).map_or("?", |l| l.1)
}

/// The error of a run that has no result, told of the graph it is about.
pub fn run_error(task: &Task, hardware: &Hardware, error: RunError) -> CliError {
    match error {
        RunError::Plan(PlanError::Misfit(misfits)) => misfit(task, hardware, misfits),
        source => CliError::Run { file: task.file.clone(), source },
    }
}

/// The schedule, normalised.
///
/// # Errors
/// When it cannot be read or does not belong to the graph.
pub fn schedule(args: &ScheduleArgs, task: &Task, console: &Console) -> Result<Schedule, CliError> {
    let level = normalize(&args.normalize)?;
    Ok(given_schedule(args, task, console)?.normalized(&task.graph, level))
}

/// The schedule as it was given, or the default one, with a note where that is not the order of ids.
///
/// # Errors
/// As [`schedule`].
pub fn given_schedule(args: &ScheduleArgs, task: &Task, console: &Console) -> Result<Schedule, CliError> {
    let Some(path) = &args.schedule else {
        let schedule = Schedule::default_for(&task.graph);
        if !schedule.order().is_sorted_by_key(|&n| task.graph.id(n)) {
            console.note(format_args!(
                "{}: some edge goes from a larger to a smaller id, so nodes do not simply go by id: each time the \
                 smallest id whose predecessors are done comes next",
                shown(&task.file)
            ));
        }
        return Ok(schedule);
    };
    let ids = schedule_text::read(&read(path, Expect::Numbers)?).map_err(in_file(path))?;
    Schedule::from_ids(&task.graph, &ids).map_err(|source| CliError::Schedule { file: path.clone(), source })
}
