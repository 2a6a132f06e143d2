//! `optimize --pareto`: the front of movement and makespan, as a table, a figure and plans.

use super::{INTERRUPTED, OptimizeArgs, time};
use crate::analysis::run::Verdict;
use crate::commands::plan;
use crate::console::{Console, Outcome, Progress as Bar};
use crate::error::CliError;
use crate::outputs::Outputs;
use crate::report::{Grid, count, grouped};
use crate::resolve::Task;
use serde::Serialize;
use spillbench_core::formats::output::FileSet;
use spillbench_core::formats::plan_json::PlanDocument;
use spillbench_core::plan::SearchSettings;
use spillbench_core::{Hardware, Machine, Plan};
use spillbench_harness::HarnessError;
use spillbench_harness::experiment::{FigureOptions, figure_from_options};
use spillbench_harness::figure::{self, Drawn};
use spillbench_harness::table::Table;
use spillbench_search::{FRONT_STEPS, Front, Monitor, Progress, SearchConfig, Start, Until, search_front};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The part of the time after which no more orders are tried to begin from.
const BEGINNING: f64 = 0.5;

/// The part of the time after which no more is searched: plans are made and retimed in the rest.
const SEARCHING: f64 = 0.8;

/// The table and the figure of a front.
pub(super) const FILES: [&str; 3] = ["front.csv", "front.svg", "front.png"];

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Found<'a> {
    task: &'a str,
    points: Vec<Point>,
    evaluations: u64,
    elapsed_ms: f64,
}

#[derive(Debug, Serialize)]
struct Point {
    movement: u64,
    makespan: u64,
    energy: Option<u64>,
}

/// Searches for the front; writes and shows it.
///
/// # Errors
/// When no plan exists, the graph cannot be timed, or a file cannot be written.
pub(super) fn run(
    args: &OptimizeArgs,
    config: &SearchConfig,
    (task, hardware, machine): (&Task, &Hardware, &Machine),
    start: Start<'_>,
    (started, limit): (Instant, Option<Duration>),
    console: &mut Console,
) -> Result<Outcome, CliError> {
    let interrupted = || INTERRUPTED.load(Ordering::Relaxed);
    let settle = time::passes(started, limit, Until::SETTLE);
    let begin = time::passes(started, limit, BEGINNING);
    let stop = || interrupted() || limit.is_some_and(|limit| started.elapsed() >= limit);
    // Each search has an equal part of the time between beginning and making plans.
    let over = |step: usize| {
        limit.is_some_and(|limit| {
            let part = (step + 1) as f64 / FRONT_STEPS as f64;
            started.elapsed() >= limit.mul_f64(BEGINNING + (SEARCHING - BEGINNING) * part)
        })
    };
    let until = Until { settle: &settle, begin: &begin, stop: &stop };
    let mut shown = Shown { bar: console.progress("searching", 1) };
    let front = search_front(&task.graph, machine, start, config, &until, &over, &mut shown)
        .map_err(|e| time::error(task, hardware, e))?;
    drop(shown);
    if let Some(directory) = &args.out {
        write((task, machine), &front, &args.settings("pareto", config, hardware), directory)?;
    }
    let evaluations = front.progress.evaluations;
    if args.json {
        let elapsed_ms = started.elapsed().as_secs_f64() * 1000.0;
        let points =
            front.points.iter().map(|p| Point { movement: p.movement, makespan: p.makespan, energy: p.energy });
        console.json(&Found { task: &task.name, points: points.collect(), evaluations, elapsed_ms })?;
        return Ok(Outcome::Done);
    }
    console.line(format_args!("{} on {}\n", task.name, hardware.name))?;
    // A machine states energy or does not: for all points alike.
    let energy = front.points.iter().any(|p| p.energy.is_some()).then_some(">energy");
    let head: Vec<_> = [">movement", ">makespan"].into_iter().chain(energy).collect();
    let mut grid = Grid::new(&head);
    for p in &front.points {
        grid.row([p.movement, p.makespan].into_iter().chain(p.energy).map(grouped));
    }
    console.line(grid)?;
    let (plans, seconds) = (count(front.points.len(), "plan"), started.elapsed().as_secs_f64());
    console.line(format_args!("{plans}, {} evaluations in {seconds:.1} s.", grouped(evaluations)))?;
    Ok(Outcome::Done)
}

/// Writes `front.csv`, its figure, and a directory with the plan of each point.
fn write(
    (task, machine): (&Task, &Machine),
    front: &Front,
    settings: &SearchSettings,
    directory: &Path,
) -> Result<(), CliError> {
    let points = (0..front.points.len()).map(|i| directory.join(name_of(i)));
    let outputs = points.fold(Outputs::new(), |outputs, point| outputs.plan("--out", Some(&point), &task.name));
    outputs.check()?;
    let mut table = Table::new(["point", "graph", "extra_movement", "makespan", "energy", "plan"]);
    for (i, point) in front.points.iter().enumerate() {
        let name = name_of(i);
        let metrics = Verdict::of(&task.graph, machine, &point.plan).ok().and_then(|v| v.metrics);
        let settings = Some(settings.clone().into());
        let document = PlanDocument { task: task.name.clone(), settings, plan: point.plan.clone(), metrics };
        plan::write(FileSet::new(directory.join(&name))?, &document)?;
        let energy = point.energy.map(|e| e.to_string()).unwrap_or_default();
        let figures: [String; 4] =
            [(i + 1).to_string(), task.name.clone(), point.movement.to_string(), point.makespan.to_string()];
        table.push(figures.into_iter().chain([energy, name]));
    }
    let drawn = draw(&table)?;
    let mut csv = Vec::new();
    // Writing into memory does not fail.
    table.write(&mut csv).unwrap_or_default();
    let mut files = FileSet::new(directory)?;
    for (name, contents) in FILES.iter().zip([&csv[..], drawn.svg.as_bytes(), &drawn.png]) {
        files.add(name, contents)?;
    }
    files.commit()?;
    Ok(())
}

/// The directory of a point, which count from 1.
fn name_of(point: usize) -> String {
    format!("point-{:02}", point + 1)
}

/// Makespan over movement.
fn draw(table: &Table) -> Result<Drawn, CliError> {
    let keys = [("value", "makespan"), ("x", "extra_movement"), ("series", "graph"), ("scale", "linear")];
    let keys = keys.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let spec = figure_from_options(&FigureOptions { kind: "curves".to_owned(), keys }).map_err(HarnessError::Figure)?;
    let name = || "front".to_owned();
    let empty = || HarnessError::Drawing { figure: name(), message: "no plan".to_owned() };
    Ok(Drawn::of(&figure::of_rows(table, &spec).ok_or_else(empty)?, &name())?)
}

/// Shows where the search is.
struct Shown {
    bar: Bar,
}

impl Monitor for Shown {
    fn improved(&mut self, _plan: &Plan, _progress: Progress) {}

    fn met(&mut self, progress: Progress) {
        let evaluations = grouped(progress.evaluations);
        self.bar.say(format!("least makespan {}, {evaluations} evaluations", super::value(progress.best)));
    }
}
