//! From the arguments of a command to all that it works on: what is planned with what, or a plan with the
//! hardware that it is looked at on.

use super::{Task, given_schedule, hardware, hardware_of_plan, machine, normalize, plan_files, policy, task_at};
use crate::args::{GraphArgs, HardwareArgs, PlanFilesArgs, PlanningArgs};
use crate::console::Console;
use crate::error::CliError;
use crate::resolve::PlanSource;
use spillbench_core::hardware::{Hardware, Machine};
use spillbench_core::schedule::{Normalize, Schedule};
use spillbench_heuristics::Policy;
use std::path::Path;

/// A schedule of a graph, and how it is planned.
pub struct Prepared {
    /// The graph.
    pub task: Task,
    /// The hardware.
    pub hardware: Hardware,
    /// The hardware as the graph sees it.
    pub machine: Machine,
    /// Heuristic, strategies, placement and the rest.
    pub policy: Policy,
    /// How the schedule is normalised.
    pub normalize: Normalize,
    /// The schedule as it was given.
    pub given: Schedule,
    /// The schedule, normalised.
    pub schedule: Schedule,
}

/// Resolves what is planned; names are told to be wrong before anything large is read.
///
/// # Errors
/// When a name is unknown, or something cannot be read or does not belong together.
pub fn prepare(graph: &GraphArgs, planning: &PlanningArgs, console: &Console) -> Result<Prepared, CliError> {
    let hardware = hardware(&planning.hardware)?;
    let policy = policy(&planning.heuristic.heuristic, &planning.planner)?;
    let normalize = normalize(&planning.schedule.normalize)?;
    let task = super::task(graph, console)?;
    let machine = machine(&task, &hardware)?;
    let given = given_schedule(&planning.schedule, &task, Some(&machine), console)?;
    let schedule = given.clone().normalized(&task.graph, normalize);
    Ok(Prepared { task, hardware, machine, policy, normalize, given, schedule })
}

/// A plan of a graph, and the hardware that it is looked at on.
pub struct GivenPlan {
    /// The graph.
    pub task: Task,
    /// The plan.
    pub source: PlanSource,
    /// The hardware that was asked for, or that of the plan document.
    pub hardware: Hardware,
    /// The hardware as the graph sees it.
    pub machine: Machine,
}

/// Resolves a plan; `name` is that of the task, by default the stem of the file of the graph.
///
/// # Errors
/// When something cannot be read or does not belong together.
pub fn given_plan(
    (graph, name): (&Path, Option<&str>),
    plan: &PlanFilesArgs,
    on: &HardwareArgs,
    console: &Console,
) -> Result<GivenPlan, CliError> {
    let task = task_at(graph, name, console)?;
    let source = plan_files(plan, &task.name, console)?;
    let hardware = hardware_of_plan(on, &source)?;
    let machine = machine(&task, &hardware)?;
    Ok(GivenPlan { task, source, hardware, machine })
}
