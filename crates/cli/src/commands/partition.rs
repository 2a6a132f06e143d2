//! `spillbench partition`: how to split a fixed number of bytes among caches.

use crate::analysis::run::{Run, RunError};
use crate::args::{GraphArgs, PlanningArgs, parse_bytes};
use crate::commands::plot;
use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::outputs::Outputs;
use crate::report::{Grid, grouped, grouped_bytes};
use crate::resolve::{self, Prepared, Task};
use clap::Args;
use serde::Serialize;
use spillbench_core::hardware::{Hardware, smallest_capacities};
use spillbench_core::index::CacheIx;
use spillbench_core::metrics::Metrics;
use spillbench_core::planner::{PlanError, Workspace};
use spillbench_core::units::Cycles;
use spillbench_core::{Bytes, Graph, Schedule, Shown};
use spillbench_harness::experiment::{FigureOptions, figure_from_options};
use spillbench_harness::figure::{self, Drawn};
use spillbench_harness::partition::{self, Curve, PartitionError};
use spillbench_harness::results;
use spillbench_harness::table::Table;
use spillbench_heuristics::Policy;
use std::path::PathBuf;

/// Arguments of `partition`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench partition Conv_Case0.json --heuristic belady\n  \
    spillbench partition Conv_Case0.json --total 4K --caches L1,UB --granularity 64 --figure curves\n\n\
    Each cache gets at least what the operands of any one node need. A heuristic may move more with more\n\
    room, so a split may leave bytes over. The movement told is that of a plan with the split as a whole.")]
pub struct PartitionArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// Bytes to be split [default: what the hardware gives these caches together]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    total: Option<Bytes>,
    /// The caches that share them [default: all that have buffers]; the others keep theirs
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    caches: Vec<String>,
    /// Try multiples of this many bytes [default: a power of two, about a hundredth of the total]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    granularity: Option<Bytes>,
    /// Also write what each cache moves at each capacity into this CSV file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Also draw that as STEM.svg and STEM.png
    #[arg(long, value_name = "STEM")]
    figure: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    planning: PlanningArgs,
}

/// One cache; also what `--json` prints of it.
#[derive(Debug, Serialize)]
struct Share {
    cache: String,
    /// Most bytes that one node needs at once.
    smallest: Bytes,
    /// Its capacity by the hardware, scaled to the total, and what it moves there; null without a plan.
    default_capacity: Bytes,
    default_movement: Option<Bytes>,
    /// Its capacity in the split, and what it moves there.
    capacity: Bytes,
    movement: Bytes,
}

/// A plan on one split.
#[derive(Debug, Serialize)]
struct Planned {
    movement: Bytes,
    makespan: Option<Cycles>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Partitioned<'a> {
    task: &'a str,
    hardware: &'a str,
    heuristic: &'a str,
    total: Bytes,
    granularity: Bytes,
    /// Bytes that the split leaves over.
    unused: Bytes,
    caches: &'a [Share],
    /// Plans with the default split and with this one, all caches counted.
    default: Option<Planned>,
    split: Planned,
    curves: Vec<Points<'a>>,
}

/// A curve under `--json`.
#[derive(Debug, Serialize)]
struct Points<'a> {
    cache: &'a str,
    /// Pairs of capacity and movement.
    points: &'a [(Bytes, Bytes)],
}

/// What is split, and how plans are made.
struct Problem<'a> {
    task: &'a Task,
    hardware: &'a Hardware,
    schedule: &'a Schedule,
    policy: &'a Policy,
    caches: Vec<CacheIx>,
    total: Bytes,
}

impl PartitionArgs {
    /// Finds the split.
    ///
    /// # Errors
    /// When an input cannot be read, the total is too small, or a file cannot be written.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let Prepared { task, hardware, machine, policy, schedule, .. } =
            resolve::prepare(&self.graph, &self.planning, console)?;
        if !hardware.reservations.is_empty() {
            return Err(CliError::usage("a split takes no reservations", "partition the caches without --reserve"));
        }
        let outputs = Outputs::new().file("--csv", self.csv.as_deref());
        outputs.figure("--figure", self.figure.as_deref()).check()?;
        let caches = caches(&self.caches, &task.graph)?;
        let capacity = |&c: &CacheIx| u128::from(machine.cache(c).capacity.0);
        let given: u128 = caches.iter().map(capacity).sum();
        let total = self.total.unwrap_or(Bytes(u64::try_from(given).unwrap_or(u64::MAX)));
        // Shares of the total, rounded down, so that they add up to no more than it.
        let scaled = |c| Bytes((capacity(c) * u128::from(total.0) / given.max(1)) as u64);
        let default: Vec<Bytes> = caches.iter().map(scaled).collect();
        if let Some(granularity) = self.granularity.filter(|&g| g.0 == 0 || g > total) {
            let what = format!("--granularity {granularity} gives no capacities within {}", grouped_bytes(total));
            return Err(CliError::usage(what, "give a granularity from 1 byte to the total"));
        }
        let granularity = self.granularity.unwrap_or_else(|| Bytes((total.0 / 128).max(1).next_power_of_two()));
        let (hardware, schedule, policy) = (&hardware, &schedule, &policy);
        let problem = Problem { task: &task, hardware, schedule, policy, caches, total };
        let failed = |error: PartitionError| problem.error(error);
        let graph = &task.graph;
        let capacities =
            partition::capacities(graph, &problem.caches, total, granularity, std::slice::from_ref(&default));
        let working = console.progress("planning capacities", 1);
        let curves = capacities.and_then(|c| partition::curves(graph, hardware, schedule, policy, &problem.caches, &c));
        let curves = curves.map_err(failed)?;
        drop(working);
        let chosen = partition::split(&curves, total);
        let chosen = chosen.ok_or_else(|| failed(PartitionError::TooFew { needed: 0, total }))?;
        let shares = problem.shares(&curves, &chosen, &default);
        let split: Vec<Bytes> = shares.iter().map(|s| s.capacity).collect();
        let before =
            if shares.iter().all(|s| s.default_capacity >= s.smallest) { problem.plan(&default)? } else { None };
        let after = problem.plan(&split)?.ok_or_else(|| failed(PartitionError::TooFew { needed: 0, total }))?;
        self.write(&problem, &curves, console)?;
        let found = Found { granularity, shares, curves, before, after };
        if self.json {
            found.json(&problem, console)?
        } else {
            found.print(&problem, console)?
        }
        Ok(Outcome::Done)
    }

    fn write(&self, problem: &Problem<'_>, curves: &[Curve], console: &mut Console) -> Result<(), CliError> {
        if self.csv.is_none() && self.figure.is_none() {
            return Ok(());
        }
        let mut table = Table::new(["cache", "capacity", "extra_movement"]);
        for curve in curves {
            let name = problem.task.graph.cache_name(curve.cache).to_owned();
            for (capacity, moved) in &curve.points {
                table.push([name.clone(), capacity.to_string(), moved.to_string()]);
            }
        }
        if let Some(path) = &self.csv {
            results::write_file(path, |out| table.write(out))?;
        }
        if let Some(stem) = &self.figure {
            let keys = [
                ("value", "extra_movement"),
                ("x", "capacity"),
                ("series", "cache"),
                ("facet", "cache"),
                ("width", "page"),
            ];
            let keys = keys.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
            let spec = figure_from_options(&FigureOptions { kind: "curves".to_owned(), keys });
            let spec = spec.map_err(spillbench_harness::HarnessError::Figure)?;
            if let Some(scene) = figure::of_rows(&table, &spec) {
                // With --json, standard output is for the one object.
                let drawn = Drawn::of(&scene, "curves")?;
                if self.json {
                    plot::write_quietly(&drawn, stem)?;
                } else {
                    plot::write(&drawn, stem, console)?;
                }
            }
        }
        Ok(())
    }
}

/// The caches of those names; all that have buffers when none is named.
fn caches(names: &[String], graph: &Graph) -> Result<Vec<CacheIx>, CliError> {
    let used = |c: &CacheIx| graph.bufs().any(|b| graph.buf(b).cache == *c);
    let all: Vec<CacheIx> = graph.caches().filter(used).collect();
    if let Some(name) = names.iter().find(|name| !all.iter().any(|&c| graph.cache_name(c) == *name)) {
        return Err(resolve::unknown(
            "cache with buffers in this graph",
            name,
            all.iter().map(|&c| graph.cache_name(c)),
        ));
    }
    let named = |c: &CacheIx| names.is_empty() || names.iter().any(|name| graph.cache_name(*c) == name);
    Ok(all.into_iter().filter(named).collect())
}

impl Problem<'_> {
    fn error(&self, error: PartitionError) -> CliError {
        match error {
            PartitionError::Plan(e) => resolve::run_error(self.task, self.hardware, RunError::Plan(e)),
            PartitionError::Measure(e) => resolve::run_error(self.task, self.hardware, RunError::Measure(e)),
            PartitionError::Machine(misfits) => resolve::misfit(self.task, self.hardware, misfits),
            PartitionError::TooFine { .. } => CliError::usage(error.to_string(), "give a larger --granularity"),
            PartitionError::TooFew { .. } => {
                CliError::usage(error.to_string(), "give a larger --total; `spillbench inspect` lists what nodes need")
            }
        }
    }

    fn metrics(&self, capacities: &[Bytes]) -> Result<Option<Metrics>, CliError> {
        let graph = &self.task.graph;
        let hardware = partition::with_capacities(graph, self.hardware, &self.caches, capacities);
        let machine = resolve::machine(self.task, &hardware)?;
        match Run::new((graph, &machine, self.schedule), self.policy, &mut Workspace::default(), None) {
            Ok(run) => Ok(run.verdict.metrics),
            Err(RunError::Plan(PlanError::Misfit(_))) => Ok(None),
            Err(error) => Err(resolve::run_error(self.task, &hardware, error)),
        }
    }

    /// What a plan with these capacities comes to, checked; `None` where there is none.
    fn plan(&self, capacities: &[Bytes]) -> Result<Option<Planned>, CliError> {
        let metrics = self.metrics(capacities)?;
        Ok(metrics.map(|m| Planned { movement: m.extra_movement, makespan: m.makespan }))
    }

    fn shares(&self, curves: &[Curve], chosen: &[usize], default: &[Bytes]) -> Vec<Share> {
        let smallest = smallest_capacities(&self.task.graph);
        let share = |((curve, &point), &default): ((&Curve, &usize), &Bytes)| Share {
            cache: self.task.graph.cache_name(curve.cache).to_owned(),
            smallest: smallest[curve.cache].0.max(Bytes(1)),
            default_capacity: default,
            default_movement: curve.points.iter().find(|p| p.0 == default).map(|p| p.1),
            capacity: curve.points[point].0,
            movement: curve.points[point].1,
        };
        curves.iter().zip(chosen).zip(default).map(share).collect()
    }
}

/// The split with all that is told of it.
struct Found {
    granularity: Bytes,
    shares: Vec<Share>,
    curves: Vec<Curve>,
    before: Option<Planned>,
    after: Planned,
}

impl Found {
    fn unused(&self, total: Bytes) -> Bytes {
        self.shares.iter().fold(total, |left, s| left.saturating_sub(s.capacity))
    }

    fn json(self, problem: &Problem<'_>, console: &mut Console) -> Result<(), CliError> {
        let graph = &problem.task.graph;
        let curves = self.curves.iter().map(|c| Points { cache: graph.cache_name(c.cache), points: &c.points });
        let (unused, curves) = (self.unused(problem.total), curves.collect());
        console.json(&Partitioned {
            task: &problem.task.name,
            hardware: &problem.hardware.name,
            heuristic: problem.policy.heuristic.name,
            total: problem.total,
            granularity: self.granularity,
            unused,
            caches: &self.shares,
            default: self.before,
            split: self.after,
            curves,
        })
    }

    fn print(self, problem: &Problem<'_>, console: &mut Console) -> Result<(), CliError> {
        console.line(format_args!(
            "{} on {}: {} of {} in multiples of {}, {}\n",
            Shown(&problem.task.name),
            Shown(&problem.hardware.name),
            grouped_bytes(problem.total),
            self.shares.iter().map(|s| Shown(&s.cache).to_string()).collect::<Vec<_>>().join(", "),
            grouped(self.granularity),
            problem.policy.heuristic.name
        ))?;
        let mut grid = Grid::new(&["<cache", "smallest", "default", "moved", "split", "moved by split"]);
        let none = || "no plan".to_owned();
        for s in &self.shares {
            let moved = s.default_movement.map_or_else(none, grouped);
            let smallest = grouped(s.smallest);
            grid.row([
                s.cache.clone(),
                smallest,
                grouped(s.default_capacity),
                moved,
                grouped(s.capacity),
                grouped(s.movement),
            ]);
        }
        console.line(grid)?;
        let told = |plan: &Planned| {
            let cycles = plan.makespan.map_or_else(String::new, |c| format!(" in {} cycles", grouped(c)));
            format!("{}{cycles}", grouped_bytes(plan.movement))
        };
        let before = self.before.as_ref().map_or_else(none, told);
        console.line(format_args!(
            "A plan with the split moves {}; with the default split: {before}.",
            told(&self.after)
        ))?;
        if self.unused(problem.total).0 > 0 {
            console.line(format_args!("{} of the total gain nothing.", grouped_bytes(self.unused(problem.total))))?;
        }
        let expected: u64 = self.shares.iter().map(|s| s.movement.0).fold(0, u64::saturating_add);
        if self.shares.len() == problem.task.graph.caches().len() && expected != self.after.movement.0 {
            console.note("caches are not independent under this policy: the plan moves other than its caches apart");
        }
        Ok(())
    }
}
