//! `spillbench compare`: one row per heuristic, the best marked.

use crate::analysis::gap::{Bounds, Gap};
use crate::analysis::run::{Figures, Run, milliseconds};
use crate::args::{GRAPH_HELP, GapArgs, HardwareArgs, LogArgs, PlannerArgs, ScheduleArgs};
use crate::console::{Console, Outcome, Verbosity};
use crate::error::CliError;
use crate::report::{self, Grid, grouped};
use crate::resolve::{self, Task};
use crate::trace::DecisionLog;
use clap::Args;
use rayon::prelude::*;
use serde::Serialize;
use spillbench_bounds::Cover;
use spillbench_bounds::attribution::When;
use spillbench_core::planner::{Observer, Workspace};
use spillbench_core::{Hardware, Machine, Schedule, Shown};
use spillbench_heuristics::Policy;
use std::path::PathBuf;

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench compare Conv_Case0.json FlashAttention_Case0.json\n  \
    spillbench compare Conv_Case0.json --heuristics belady,life-size --placement first-fit\n\n\
    The row marked * moves least; among equals, it takes the fewest cycles. No plan that moves no more\n\
    nodes than this one (covers: the whole schedule, or the order of ops) moves less than bound; gap is\n\
    what is moved beyond that.\n\n\
    Exit status: 0 when all plans are valid, 1 when one is not (a defect), 2 when something cannot be read\n\
    or no plan exists.")]
pub struct CompareArgs {
    /// The graphs.
    #[arg(value_name = "GRAPH", required = true, help = GRAPH_HELP)]
    graphs: Vec<PathBuf>,
    /// The victim heuristics, or all
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', default_value = "all")]
    heuristics: Vec<String>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) log: LogArgs,
    #[command(flatten)]
    gap: GapArgs,
    #[command(flatten)]
    schedule: ScheduleArgs,
    #[command(flatten)]
    planner: PlannerArgs,
    #[command(flatten)]
    hardware: HardwareArgs,
}

/// A graph made ready for planning.
struct Ready {
    task: Task,
    machine: Machine,
    schedule: Schedule,
}

/// One row of `--json`.
#[derive(Debug, Serialize)]
struct Row<'a> {
    task: &'a str,
    heuristic: &'a str,
    best: bool,
    #[serde(flatten)]
    figures: Figures<'a>,
    #[serde(flatten)]
    gap: Gap,
    elapsed_ms: f64,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Comparison<'a> {
    hardware: &'a Hardware,
    rows: Vec<Row<'a>>,
}

impl CompareArgs {
    /// Plans every graph with every heuristic.
    ///
    /// # Errors
    /// When an input cannot be read or no plan exists.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let heuristics = resolve::heuristics(&self.heuristics)?;
        let base = resolve::policy(Policy::default().heuristic.name, &self.planner)?;
        let when = resolve::when(&self.gap.bound)?;
        let hardware = resolve::hardware(&self.hardware)?;
        let ready = self.ready(&hardware, console)?;
        let policies: Vec<_> = heuristics.into_iter().map(|heuristic| Policy { heuristic, ..base.clone() }).collect();
        let runs = run_all(&ready, &policies, &hardware, console)?;
        let valid = runs.iter().all(|r| r.verdict.report.is_valid());
        let mut tables = Vec::with_capacity(ready.len());
        for (ready, runs) in ready.iter().zip(runs.chunks(policies.len().max(1))) {
            tables.push(rows(ready, &policies, runs, &gaps(ready, runs, when, &hardware, console)?));
        }
        for (ready, rows) in ready.iter().zip(&tables) {
            // The bounds of the wider covers leave out more.
            if let Some(cover) = rows.iter().filter_map(|row| row.gap.bound_cover).max() {
                report::note_reservations(&ready.task.graph, &ready.machine, cover, console);
            }
        }
        if tables.iter().flatten().any(|row| row.gap.uncovered) {
            console.note(format_args!("where no bound stands, {}", report::UNCOVERED));
        }
        if self.json {
            console.json(&Comparison { hardware: &hardware, rows: tables.into_iter().flatten().collect() })?;
        } else {
            for (i, (ready, rows)) in ready.iter().zip(&tables).enumerate() {
                let space = if i == 0 { "" } else { "\n" };
                let task = Shown(&ready.task.name);
                let table = table(rows);
                console.line(format_args!("{space}{task} on {}\n{}", Shown(&hardware.name), table.trim_end()))?;
            }
        }
        Ok(if valid { Outcome::Done } else { Outcome::Refuted })
    }

    fn ready(&self, hardware: &Hardware, console: &Console) -> Result<Vec<Ready>, CliError> {
        if self.graphs.len() > 1 && self.schedule.schedule.is_some() {
            return Err(CliError::usage(
                "one schedule cannot belong to several graphs",
                "compare one graph at a time when --schedule is given",
            ));
        }
        let read = |path: &PathBuf| {
            let task = resolve::task_at(path, None, console)?;
            let machine = resolve::machine(&task, hardware)?;
            let schedule = resolve::schedule(&self.schedule, &task, Some(&machine), console)?;
            let misfits = machine.misfits(&task.graph);
            if !misfits.is_empty() {
                return Err(resolve::misfit(&task, hardware, misfits));
            }
            Ok(Ready { task, machine, schedule })
        };
        self.graphs.iter().map(read).collect()
    }
}

/// All runs, graph by graph and heuristic by heuristic, whatever the number of threads. With `-v`
/// they go one after the other, so that their logs do; each line begins with the heuristic and, where
/// there are several, the task.
fn run_all(ready: &[Ready], policies: &[Policy], hardware: &Hardware, console: &Console) -> Result<Vec<Run>, CliError> {
    let cells: Vec<_> = ready.iter().flat_map(|r| policies.iter().map(move |p| (r, p))).collect();
    let progress = console.progress("planning", cells.len() as u64);
    let plan = |workspace: &mut Workspace, (r, policy): (&Ready, &Policy), log: Option<&mut dyn Observer>| {
        let run = Run::new((&r.task.graph, &r.machine, &r.schedule), policy, workspace, log)
            .map_err(|e| resolve::run_error(&r.task, hardware, e));
        progress.step();
        run
    };
    if console.verbosity() < Verbosity::Verbose {
        return cells
            .into_par_iter()
            .map_init(Workspace::default, |workspace, cell| plan(workspace, cell, None))
            .collect();
    }
    let mut workspace = Workspace::default();
    let logged = |(r, policy): (&Ready, &Policy)| {
        let task = if ready.len() > 1 { format!("{}, ", Shown(&r.task.name)) } else { String::new() };
        let label = format!("{task}{}: ", policy.heuristic.name);
        plan(&mut workspace, (r, policy), Some(&mut DecisionLog::labelled(&r.task.graph, label)))
    };
    cells.into_iter().map(logged).collect()
}

/// How far each run is from the bound that covers it; one bound serves all runs that it covers.
fn gaps(ready: &Ready, runs: &[Run], when: When, hardware: &Hardware, console: &Console) -> Result<Vec<Gap>, CliError> {
    let _progress = console.progress("bounding", 1);
    let mut bounds = Bounds::new((&ready.task.graph, &ready.machine, &ready.schedule), when);
    let gap = |run: &Run| match &run.verdict.metrics {
        Some(metrics) => bounds.of(&run.plan, metrics.extra_movement),
        None => Ok(Gap::default()),
    };
    let gaps = runs.iter().map(gap).collect::<Result<_, _>>();
    gaps.map_err(|e| resolve::run_error(&ready.task, hardware, e))
}

fn rows<'a>(ready: &'a Ready, policies: &'a [Policy], runs: &'a [Run], gaps: &[Gap]) -> Vec<Row<'a>> {
    let worth = |run: &Run| run.verdict.metrics.as_ref().map(|m| (m.extra_movement, m.makespan));
    let best = runs.iter().filter_map(worth).min();
    let row = |((policy, run), gap): ((&'a Policy, &'a Run), &Gap)| Row {
        task: &ready.task.name,
        heuristic: policy.heuristic.name,
        best: best.is_some() && worth(run) == best,
        figures: run.verdict.figures(),
        gap: *gap,
        elapsed_ms: milliseconds(run.planning),
    };
    policies.iter().zip(runs).zip(gaps).map(row).collect()
}

fn table(rows: &[Row<'_>]) -> String {
    let bounded = rows.iter().any(|row| row.gap.bound.is_some() || row.gap.uncovered);
    let bound_head: &[&str] = if bounded { &["bound", "gap", "<covers"] } else { &[] };
    let rest = ["spills", "backed", "generated", "by fragmentation", "makespan", "ms"];
    let mut grid = Grid::new(&[&["<", "<heuristic", "moved"], bound_head, &rest].concat());
    for row in rows {
        let f = &row.figures;
        let number = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), grouped);
        let mark = if !f.valid {
            "!"
        } else if row.best {
            "*"
        } else {
            ""
        };
        let mut cells = vec![mark.to_owned(), row.heuristic.to_owned(), number(f.extra_movement.map(Into::into))];
        if bounded {
            let covers = row.gap.bound_cover.map_or("-", Cover::name);
            let [bound, gap] = [row.gap.bound, row.gap.gap].map(|b| number(b.map(Into::into)));
            cells.extend([bound, gap, covers.to_owned()]);
        }
        cells.extend([
            number(f.spill_count),
            number(f.movement.map(|m| m.backed.into())),
            number(f.movement.map(|m| m.generated.into())),
            number(f.movement.map(|m| m.fragmentation.into())),
            number(f.makespan.map(Into::into)),
            format!("{:.1}", row.elapsed_ms),
        ]);
        grid.row(cells);
    }
    grid.to_string()
}
