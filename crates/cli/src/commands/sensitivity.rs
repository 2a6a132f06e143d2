//! `spillbench sensitivity`: what one byte more of each cache is worth.

use crate::analysis::run::{Run, RunError};
use crate::args::{GraphArgs, PlanningArgs};
use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::outputs::Outputs;
use crate::report::{self, Grid, grouped, grouped_bytes};
use crate::resolve::{self, Prepared, Task};
use clap::Args;
use rayon::prelude::*;
use serde::Serialize;
use spillbench_bounds::model::{Cover, ModelError, models};
use spillbench_bounds::{CacheModel, sensitivity};
use spillbench_core::hardware::Hardware;
use spillbench_core::index::CacheIx;
use spillbench_core::planner::{PlanError, Workspace};
use spillbench_core::{Bytes, Schedule, Shown};
use spillbench_harness::results;
use spillbench_heuristics::Policy;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Arguments of `sensitivity`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench sensitivity Conv_Case0.json\n  \
    spillbench sensitivity Conv_Case0.json --heuristic belady --step 64 --csv prices.csv\n\n\
    The price of a byte is the sum of the dual prices of the flow bound over the steps of a cache, in\n\
    bytes of movement per byte of capacity. Less that price is a subgradient of the bound as a function\n\
    of the capacity: it lies between its left and its right derivative, and is the derivative where\n\
    there is one. So N bytes more save no more of the bound than N times the price, and N bytes less\n\
    cost no less. The movement of a plan is no such function: it may jump, and rise with more room.")]
pub struct SensitivityArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// How many bytes more and less the bound and the plan are computed for
    #[arg(long, value_name = "BYTES", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    step: u64,
    /// Of which plans the bound speaks: schedule (ALLOC and FREE stay where they stand) or op-order
    /// (they may move, as they do when an ALLOC is postponed)
    #[arg(long, value_name = "COVER", default_value = "op-order")]
    cover: String,
    /// Also write the table into this CSV file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    planning: PlanningArgs,
}

/// One cache; also what `--json` prints of it.
#[derive(Debug, Serialize)]
struct Priced<'a> {
    cache: &'a str,
    capacity: Bytes,
    /// The flow bound.
    bound: Bytes,
    /// The price of a byte.
    price: u64,
    /// What the step saves of the bound.
    bound_saved_by_more: Bytes,
    /// What the step costs; null where nothing fits any more.
    bound_cost_of_less: Option<Bytes>,
    /// What the plan moves in all caches.
    movement: Bytes,
    /// The same with the step more of this cache, and less; null where there is no plan.
    movement_with_more: Option<Bytes>,
    movement_with_less: Option<Bytes>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Sensitivities<'a> {
    task: &'a str,
    hardware: &'a Hardware,
    cover: &'a str,
    step: u64,
    heuristic: &'a str,
    caches: Vec<Priced<'a>>,
}

impl SensitivityArgs {
    /// Prices every cache.
    ///
    /// # Errors
    /// When an input cannot be read, no plan exists, or the file cannot be written.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let covers = || Cover::ALL.iter().map(|c| c.1).filter(|&name| name != Cover::EveryOrder.name());
        let cover = Cover::by_name(&self.cover).filter(|&c| c != Cover::EveryOrder);
        let cover = cover.ok_or_else(|| resolve::unknown("cover of one schedule", &self.cover, covers()))?;
        let Prepared { task, hardware, machine, policy, schedule, .. } =
            resolve::prepare(&self.graph, &self.planning, console)?;
        Outputs::new().file("--csv", self.csv.as_deref()).check()?;
        let models = models(&task.graph, &machine, &schedule, cover).map_err(|error| match error {
            ModelError::Misfit(misfits) => resolve::misfit(&task, &hardware, misfits),
            other => CliError::usage(other.to_string(), "give the schedule of this graph"),
        })?;
        report::note_reservations(&task.graph, &machine, cover, console);
        let working = console.progress("pricing", 1);
        let moved = |hardware: &Hardware| movement(&task, hardware, &schedule, &policy);
        let movement = moved(&hardware)?.ok_or(RunError::Plan(PlanError::Misfit(Vec::new())));
        let movement = movement.map_err(|e| resolve::run_error(&task, &hardware, e))?;
        let price = |(cache, model): (CacheIx, &CacheModel)| {
            let found = sensitivity(model, Bytes(self.step));
            // A step past what is unbounded makes no more room.
            let more = model.capacity.0.saturating_add(self.step).min(Hardware::UNBOUNDED.max(model.capacity).0);
            let at = |capacity: Option<u64>| {
                capacity.map_or(Ok(None), |bytes| moved(&with(&hardware, task.graph.cache_name(cache), bytes)))
            };
            Ok(Priced {
                cache: task.graph.cache_name(cache),
                capacity: model.capacity,
                bound: found.bound,
                price: found.price,
                bound_saved_by_more: found.saved_by_more,
                bound_cost_of_less: found.cost_of_less,
                movement,
                movement_with_more: at(Some(more))?,
                movement_with_less: at(model.capacity.0.checked_sub(self.step).filter(|&less| less > 0))?,
            })
        };
        let priced: Vec<_> = models.iter_enumerated().filter(|(_, m)| !m.steps.is_empty()).collect();
        let caches = priced.into_par_iter().map(price).collect::<Result<Vec<_>, CliError>>()?;
        drop(working);
        if let Some(path) = &self.csv {
            results::write_file(path, |out| out.write_all(csv(&caches, self.step).as_bytes()))?;
        }
        if self.json {
            let (task, heuristic, step) = (task.name.as_str(), policy.heuristic.name, self.step);
            console.json(&Sensitivities { task, hardware: &hardware, cover: cover.name(), step, heuristic, caches })?;
            return Ok(Outcome::Done);
        }
        console.line(format_args!(
            "{} on {}: {}, bound of cover {}, a step of {}\n",
            Shown(&task.name),
            Shown(&hardware.name),
            policy.heuristic.name,
            cover.name(),
            grouped_bytes(Bytes(self.step))
        ))?;
        console.line(table(&caches))?;
        let bound: u64 = caches.iter().map(|c| c.bound.0).fold(0, u64::saturating_add);
        console.line(format_args!(
            "The plan moves {}; no plan covered moves less than {}.",
            grouped_bytes(movement),
            grouped(bound)
        ))?;
        if let Some(path) = &self.csv {
            console.line(path.display())?;
        }
        Ok(Outcome::Done)
    }
}

/// What a plan on `hardware` moves; `None` where there is none.
fn movement(task: &Task, hardware: &Hardware, schedule: &Schedule, policy: &Policy) -> Result<Option<Bytes>, CliError> {
    let machine = resolve::machine(task, hardware)?;
    match Run::new((&task.graph, &machine, schedule), policy, &mut Workspace::default(), None) {
        Ok(run) => Ok(run.verdict.metrics.map(|m| m.extra_movement)),
        Err(RunError::Plan(PlanError::Misfit(_))) => Ok(None),
        Err(error) => Err(resolve::run_error(task, hardware, error)),
    }
}

fn with(hardware: &Hardware, cache: &str, bytes: u64) -> Hardware {
    let mut hardware = hardware.clone();
    if let Some(spec) = hardware.caches.get_mut(cache) {
        spec.capacity = Bytes(bytes);
    }
    hardware
}

fn table(caches: &[Priced<'_>]) -> Grid {
    let mut grid = Grid::new(&[
        "<cache",
        "capacity",
        "bound",
        "price",
        "more saves",
        "less costs",
        "moved",
        "with more",
        "with less",
    ]);
    for c in caches {
        let plan = |moved: Option<Bytes>| moved.map_or_else(|| "no plan".to_owned(), grouped);
        grid.row([
            c.cache.to_owned(),
            grouped(c.capacity),
            grouped(c.bound),
            grouped(c.price),
            grouped(c.bound_saved_by_more),
            plan(c.bound_cost_of_less),
            grouped(c.movement),
            plan(c.movement_with_more),
            plan(c.movement_with_less),
        ]);
    }
    grid
}

fn csv(caches: &[Priced<'_>], step: u64) -> String {
    let mut text = "cache,capacity,step,bound,price,bound_saved_by_more,bound_cost_of_less,movement,\
                    movement_with_more,movement_with_less\n"
        .to_owned();
    for c in caches {
        let cell = |b: Option<Bytes>| b.map_or_else(String::new, |b| b.to_string());
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{},{},{step},{},{},{},{},{},{},{}",
            csv_text(c.cache),
            c.capacity,
            c.bound,
            c.price,
            c.bound_saved_by_more,
            cell(c.bound_cost_of_less),
            c.movement,
            cell(c.movement_with_more),
            cell(c.movement_with_less)
        );
    }
    text
}

/// A name as a CSV cell.
pub(super) fn csv_text(name: &str) -> String {
    if name.contains([',', '"', '\n', '\r']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_owned() }
}
