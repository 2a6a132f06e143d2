//! From arguments to objects: graphs, hardware, schedules, policies, and names that may be
//! misspelt.

mod graph;
mod hardware;
mod names;
mod plan_files;
mod policy;
mod prepare;

pub use graph::{EDGES_CSV, GraphFormat, NODES_CSV, Task, task, task_at};
pub use hardware::{hardware, hardware_of_plan, machine, misfit};
pub use names::unknown;
pub use plan_files::{Claims, MEMORY_TXT, PLAN_JSON, PlanSource, SCHEDULE_TXT, SPILL_TXT, plan_files};
pub use policy::{NO_STRATEGY, heuristics, policy, settings};
pub use prepare::{GivenPlan, Prepared, given_plan, prepare};

use crate::analysis::run::RunError;
use crate::args::{PlanFilesArgs, ScheduleArgs};
use crate::console::Console;
use crate::error::{CliError, shown};
use crate::input::{self, Expect};
use spillbench_bounds::attribution::When;
use spillbench_bounds::exact::ExactError;
use spillbench_bounds::{CertifyError, Cover, ModelError, Subject};
use spillbench_core::formats::{FormatError, schedule_text};
use spillbench_core::hardware::{Hardware, Machine};
use spillbench_core::plan::SpillIds;
use spillbench_core::planner::PlanError;
use spillbench_core::schedule::{Normalize, Schedule};
use spillbench_core::{Graph, Plan};
use spillbench_harness::hash;
use spillbench_search::{ORDERS, Order};
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
        RunError::Plan(PlanError::Misfit(misfits))
        | RunError::Bound(ModelError::Misfit(misfits))
        | RunError::Exact(ExactError::Model(ModelError::Misfit(misfits))) => misfit(task, hardware, misfits),
        source => CliError::Run { file: task.file.clone(), source },
    }
}

/// The error of a certificate that proves nothing, told of the graph where that is at fault. `other` says
/// what else the certificate was made for, as far as that is known.
pub fn certify_error(
    task: &Task,
    hardware: &Hardware,
    file: &Path,
    error: CertifyError,
    other: Option<String>,
) -> CliError {
    match error {
        CertifyError::Misfit(misfits) => misfit(task, hardware, misfits),
        source => CliError::Certify { file: file.to_owned(), source, other },
    }
}

/// What a certificate for a graph, and a schedule of it, says that it is of.
pub fn subject(graph: &Graph, schedule: Option<&Schedule>) -> Subject {
    Subject {
        graph: hash::graph(graph).to_string(),
        schedule: schedule.map(|schedule| hash::schedule(graph, schedule).to_string()),
        nodes: graph.node_count(),
        buffers: graph.buffer_count(),
    }
}

/// The plans that a bound covers, by name.
///
/// # Errors
/// When there is no such name.
pub fn cover(name: &str) -> Result<Cover, CliError> {
    let long = match name {
        "ops" => "op-order",
        "orders" => "every-order",
        other => other,
    };
    Cover::by_name(long).ok_or_else(|| unknown("cover", name, Cover::ALL.iter().map(|c| c.1)))
}

/// When plans are compared with bounds, by name.
///
/// # Errors
/// When there is no such name.
pub fn when(name: &str) -> Result<When, CliError> {
    let found = When::ALL.iter().find(|w| w.1 == name).map(|w| w.0);
    found.ok_or_else(|| unknown("choice for --bound", name, When::ALL.iter().map(|w| w.1)))
}

/// The schedule, normalised.
///
/// # Errors
/// When it cannot be read or does not belong to the graph.
pub fn schedule(
    args: &ScheduleArgs,
    task: &Task,
    machine: Option<&Machine>,
    console: &Console,
) -> Result<Schedule, CliError> {
    let level = normalize(&args.normalize)?;
    Ok(given_schedule(args, task, machine, console)?.normalized(&task.graph, level))
}

/// The schedule as it was given, or the default one, with a note where that is not the order of ids.
///
/// # Errors
/// As [`schedule`].
pub fn given_schedule(
    args: &ScheduleArgs,
    task: &Task,
    machine: Option<&Machine>,
    console: &Console,
) -> Result<Schedule, CliError> {
    let order = order(&args.order)?;
    let by_id = task.graph.id_order();
    if args.schedule.is_none() && order.name == "id" && !task.graph.is_topological(&by_id) {
        console.note(format_args!(
            "{}: some edge goes from a larger to a smaller id, so nodes do not simply go by id: each time the \
             smallest id whose predecessors are done comes next",
            shown(&task.file)
        ));
    }
    Ok(match (&args.schedule, machine) {
        (Some(path), _) => schedule_in(path, task)?,
        (None, Some(machine)) => order.schedule(&task.graph, machine),
        // Where the hardware lacks a cache of the graph, nothing can be planned, only looked at.
        (None, None) => Schedule::default_for(&task.graph),
    })
}

/// The order of that name.
fn order(name: &str) -> Result<&'static Order, CliError> {
    spillbench_search::order(name).ok_or_else(|| unknown("order", name, ORDERS.iter().map(|o| o.name)))
}

/// The schedule that a search starts from, by the name of an order, in a file, or that of a plan, with
/// every `FREE` just after the last use; and that plan.
///
/// # Errors
/// As [`schedule`]; when there is neither such an order nor such a file.
pub fn start(
    name: &str,
    task: &Task,
    machine: &Machine,
    console: &Console,
) -> Result<(Schedule, Option<Plan>), CliError> {
    let path = Path::new(name);
    let is_plan = spillbench_search::order(name).is_none() && (path.is_dir() || name.ends_with(PLAN_JSON));
    let (schedule, plan) = if is_plan {
        let (schedule, plan) = schedule_of_plan(path, task, console)?;
        (schedule, Some(plan))
    } else {
        (named_schedule(name, task, machine)?, None)
    };
    Ok((schedule.normalized(&task.graph, Normalize::Free), plan))
}

/// A schedule by the name of an order or in a file.
///
/// # Errors
/// As [`start`].
pub fn named_schedule(name: &str, task: &Task, machine: &Machine) -> Result<Schedule, CliError> {
    match spillbench_search::order(name) {
        Some(order) => Ok(order.schedule(&task.graph, machine)),
        None if Path::new(name).exists() || input::is_stdin(Path::new(name)) => schedule_in(Path::new(name), task),
        None => Err(unknown("file or order", name, ORDERS.iter().map(|o| o.name))),
    }
}

/// The schedule of a plan without its spills, and the plan.
fn schedule_of_plan(path: &Path, task: &Task, console: &Console) -> Result<(Schedule, Plan), CliError> {
    let args = PlanFilesArgs { plan: Some(path.to_owned()), schedule: None, memory: None, spill: None };
    let plan = plan_files(&args, &task.name, console)?.plan;
    let spill_ids = SpillIds::after(task.graph.max_id());
    let ids: Vec<_> =
        plan.schedule.iter().copied().filter(|&id| spill_ids.end(id, plan.spills.len()).is_none()).collect();
    let schedule =
        Schedule::from_ids(&task.graph, &ids).map_err(|source| CliError::Schedule { file: path.to_owned(), source })?;
    Ok((schedule, plan))
}

fn schedule_in(path: &Path, task: &Task) -> Result<Schedule, CliError> {
    let ids = schedule_text::read(&read(path, Expect::Numbers)?).map_err(in_file(path))?;
    Schedule::from_ids(&task.graph, &ids).map_err(|source| CliError::Schedule { file: path.to_owned(), source })
}
