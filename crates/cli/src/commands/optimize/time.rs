//! The objectives of `optimize` that time plans: what they are called, their limits, their errors.

use crate::analysis::run::RunError;
use crate::error::{CliError, shown};
use crate::report::grouped;
use crate::resolve::{self, Task};
use spillbench_core::{Graph, Hardware};
use spillbench_search::{Aim, Limit, TIMED_OBJECTIVES, TimedError, Weights};
use std::time::{Duration, Instant};

/// The aim of an objective by name; `None` when it does not time plans.
///
/// # Errors
/// When weights or a limit are missing, or given for another objective.
pub(super) fn aim(
    name: &str,
    weights: Option<Weights>,
    limit: Option<Limit>,
) -> Result<Option<(&'static str, Aim)>, CliError> {
    let known = TIMED_OBJECTIVES.iter().map(|o| o.0).find(|&n| n == name);
    if weights.is_some() != (known == Some("weighted")) {
        return Err(CliError::usage(
            "A:B and --objective weighted go together".to_owned(),
            "for example: --objective weighted 1:2",
        ));
    }
    if limit.is_some() && known != Some("makespan") {
        return Err(CliError::usage(
            "--max-movement is for --objective makespan".to_owned(),
            "a search for movement may end at --target",
        ));
    }
    Ok(match (known, weights) {
        (Some(name @ "makespan"), _) => Some((name, Aim::Makespan(limit.unwrap_or(Limit::None)))),
        (Some(name @ "weighted"), Some(weights)) => Some((name, weights.into())),
        (Some(name @ "energy"), _) => Some((name, Aim::Energy)),
        _ => None,
    })
}

/// Says when a part of the time has passed.
pub(super) fn passes(started: Instant, limit: Option<Duration>, part: f64) -> impl Fn() -> bool + Sync {
    let part = limit.map(|limit| limit.mul_f64(part));
    move || part.is_some_and(|part| started.elapsed() >= part)
}

/// Cycles that no plan of the graph beats: of each pipe, the shortest path to any of its ops, its
/// work, and the shortest path behind any; and the longest path of all. 0 without timing.
pub(super) fn least_makespan(graph: &Graph) -> u64 {
    spillbench_search::least_makespan(graph)
}

/// What the limits of movement were, in words.
pub(super) fn limits(least: u64, limit: Option<u64>) -> String {
    let least = grouped(least);
    match limit {
        Some(limit) => format!("At most {} bytes moved; the least movement found is {least}.", grouped(limit)),
        None => format!("No limit of movement; the least found is {least}."),
    }
}

/// The error of a search that has no result.
pub(super) fn error(task: &Task, hardware: &Hardware, error: TimedError) -> CliError {
    let file = shown(&task.file);
    match error {
        TimedError::Plan(error) => resolve::run_error(task, hardware, RunError::Plan(error)),
        TimedError::Measure(error) => resolve::run_error(task, hardware, RunError::Measure(error)),
        TimedError::Untimed(error) => {
            CliError::usage(format!("{file}: {error}"), "--objective movement and peak need no timing")
        }
        TimedError::NoEnergy => CliError::usage(
            format!("the hardware {} states no energy", hardware.name),
            "add an [energy] table to the hardware file, or take --hardware davinci-energy",
        ),
        TimedError::Limit { limit, least, .. } => {
            CliError::usage(unmet(task, limit, least), "raise --max-movement, or search longer")
        }
    }
}

/// That no plan found keeps to a limit of movement, in words.
pub(super) fn unmet(task: &Task, limit: u64, least: u64) -> String {
    let (limit, least) = (grouped(limit), grouped(least));
    format!("{}: no plan found moves at most {limit} bytes; the least found is {least}.", shown(&task.file))
}
