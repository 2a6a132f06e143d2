//! `spillbench bound`: how little any plan could move, and on request the least itself.

mod shares;

use crate::analysis::least::{Least, least};
use crate::analysis::run::{Verdict, milliseconds};
use crate::args::{GraphArgs, HardwareArgs, PlanFilesArgs, ScheduleArgs, parse_time};
use crate::commands::plan;
use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::outputs::Outputs;
use crate::report::{self, Grid, count, grouped, grouped_bytes};
use crate::resolve::{self, Task};
use crate::write::OneFile;
use clap::Args;
use shares::{Bounded, CacheShare, Found, grid_cache};
use spillbench_bounds::certify::DEFAULT_STATES;
use spillbench_bounds::{Bound, BoundKind, Cover, Limits, OrdersBound, across_orders_near, bound, pack};
use spillbench_core::formats::output::FileSet;
use spillbench_core::formats::plan_json::PlanDocument;
use spillbench_core::plan::ExactSettings;
use spillbench_core::{BufId, Bytes, Hardware, Machine, Schedule, Shown};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Search nodes of `--exact` where no limit is given.
const EXACT_NODES: u64 = 1_000_000;

/// Arguments of `bound`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench bound Conv_Case0.json --normalize memory --certificate conv.json\n  \
    spillbench bound Conv_Case0.json --covers every-order\n  \
    spillbench bound Conv_Case0.json --covers every-order --spills-of plans/\n  \
    spillbench bound FlashAttention_Case0.json --exact --time 5m --out plans/\n\n\
    A bound holds for the plans it covers: schedule (all nodes stay where the schedule has them),\n\
    op-order or ops (the ops keep their order, ALLOC and FREE may move), every-order or orders (every\n\
    plan of the graph). The first two are minimum-cost flows; the last solves sets of buffers over all\n\
    orders, which share out what a spill of a buffer costs, adds up what they need, and has its\n\
    certificate evaluated as `certify` does, with 10,000,000 states for a set or twice those of --nodes:\n\
    what is told is what that proves. Of a set at the limit of states, certify with more --states may\n\
    prove more. --exact searches the least movement of a plan that keeps the schedule, beside\n\
    the plans of all heuristics.\n\n\
    Exit status: 0 when there is a bound, and with --exact a plan, whether it is proven or the limit came\n\
    first (the output says which); 1 when that plan turns out not to be valid (a defect), 2 when something\n\
    cannot be read or written, or no plan exists.")]
pub struct BoundArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// Which plans it holds for: schedule, op-order (ops) or every-order (orders)
    #[arg(long, value_name = "PLANS", default_value = "schedule")]
    covers: String,
    /// Search the least movement of a plan that keeps the schedule
    #[arg(long)]
    exact: bool,
    /// Search nodes at most; with every-order, states of the search for sets [default: 1,000,000 nodes without --time;
    /// 60,000,000 states, which may take minutes, and a quarter more for sharing]
    #[arg(long, value_name = "N", visible_alias = "states", alias = "limit-nodes")]
    nodes: Option<u64>,
    /// With every-order, look for sets also where ops use what this plan spills: a directory or a plan
    /// document
    #[arg(long, value_name = "PLAN")]
    spills_of: Option<PathBuf>,
    /// How long --exact may search, such as 500ms, 60s or 5m
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    time: Option<Duration>,
    /// Write what proves the bound into this file, for `spillbench certify`; with --exact, the flow
    /// bound, not what the search proves
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Write the best plan of --exact into this directory, in the files of `spillbench plan`
    #[arg(long, value_name = "DIR", requires = "exact")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    schedule: ScheduleArgs,
    #[command(flatten)]
    hardware: HardwareArgs,
}

impl BoundArgs {
    /// Bounds, and searches where that was asked for.
    ///
    /// # Errors
    /// When an input cannot be read, no plan exists, or a file cannot be written.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let cover = resolve::cover(&self.covers)?;
        self.check(cover)?;
        let hardware = resolve::hardware(&self.hardware)?;
        if self.exact && !hardware.reservations.is_empty() {
            let help = "search without --reserve, or give --covers alone for a bound";
            return Err(CliError::usage("an exact search does not keep to reservations", help));
        }
        if cover == Cover::EveryOrder && !hardware.reservations.is_empty() {
            let help = "leave --reserve out: what is proven without reservations holds with them, too; one that never \
                        ends is a smaller --capacity";
            return Err(CliError::usage("a bound over every order knows no place for a reservation", help));
        }
        // A directory that cannot be made is told before any work.
        let files = self.out.as_ref().map(FileSet::new).transpose()?;
        let certificate = self.certificate.as_deref().map(OneFile::new).transpose()?;
        let task = resolve::task(&self.graph, console)?;
        let machine = resolve::machine(&task, &hardware)?;
        let schedule = resolve::schedule(&self.schedule, &task, Some(&machine), console)?;
        let spilled = self.spilled(&task, console)?;
        let outputs = Outputs::new().file("--certificate", self.certificate.as_deref());
        outputs.plan("--out", self.out.as_deref(), &task.name).check()?;
        report::note_reservations(&task.graph, &machine, cover, console);
        let started = Instant::now();
        let found = self.bound((&task, &machine, &schedule), (cover, &spilled), &hardware, console)?;
        let least = match &found {
            Found::Flow(flow) if self.exact => {
                Some(self.search((&task, &machine, &schedule), flow, &hardware, console)?)
            }
            _ => None,
        };
        let elapsed_ms = milliseconds(started.elapsed());
        if let Some(file) = certificate {
            let subject = resolve::subject(&task.graph, (cover != Cover::EveryOrder).then_some(&schedule));
            file.write(|out| found.certificate().clone().about(subject).write(out))?;
        }
        if let Some(least) = &least {
            let verdict = Verdict::of(&task.graph, &machine, &least.plan)
                .map_err(|e| resolve::run_error(&task, &hardware, e.into()))?;
            if !verdict.report.is_valid() {
                console.line("The plan found is not valid: this is a defect; it is not written.")?;
                report::violations(&verdict.report, console)?;
                return Ok(Outcome::Refuted);
            }
            if let Some(files) = files {
                let (plan, metrics) = (least.plan.clone(), verdict.metrics);
                let settings = Some(self.settings(least, &hardware)?.into());
                plan::write(files, &PlanDocument { task: task.name.clone(), settings, plan, metrics })?;
            }
        }
        if self.json {
            console.json(&Bounded::new((&task, &hardware, cover), &found, least.as_ref(), elapsed_ms))?;
        } else {
            self.print(&task, &hardware, cover, &found, console)?;
            least.map_or(Ok(()), |least| print_exact(&least, console))?;
            console.line(format_args!("Found in {elapsed_ms:.1} ms."))?;
        }
        Ok(Outcome::Done)
    }

    fn check(&self, cover: Cover) -> Result<(), CliError> {
        if cover == Cover::EveryOrder && self.schedule.schedule.is_some() {
            let what = "a bound that covers every order has no schedule";
            return Err(CliError::usage(what, "leave --schedule out, or give --covers schedule or op-order"));
        }
        if self.exact && cover != Cover::Schedule {
            let what = format!("--exact covers plans that keep the schedule, not {}", cover.name());
            return Err(CliError::usage(what, "leave --covers out"));
        }
        if self.nodes.is_some() && !self.exact && cover != Cover::EveryOrder {
            let what = "--nodes limits a search, and nothing is searched";
            return Err(CliError::usage(what, "give --exact or --covers every-order, or leave --nodes out"));
        }
        if self.spills_of.is_some() && cover != Cover::EveryOrder {
            let what = "--spills-of says where to look for sets of buffers, and none are looked for";
            return Err(CliError::usage(what, "give --covers every-order, or leave --spills-of out"));
        }
        if self.time.is_some() && !self.exact {
            let (what, help) = match cover {
                Cover::EveryOrder => ("a bound over every order is limited in states, not in time", "give --nodes N"),
                _ => ("--time limits a search, and nothing is searched", "give --exact, or leave --time out"),
            };
            return Err(CliError::usage(what, help));
        }
        Ok(())
    }

    /// What the plan of --spills-of spills.
    fn spilled(&self, task: &Task, console: &Console) -> Result<Vec<BufId>, CliError> {
        let Some(plan) = self.spills_of.clone() else { return Ok(Vec::new()) };
        let args = PlanFilesArgs { plan: Some(plan), schedule: None, memory: None, spill: None };
        let source = resolve::plan_files(&args, &task.name, console)?;
        Ok(source.plan.spills.iter().map(|spill| spill.buf).collect())
    }

    fn bound(
        &self,
        (task, machine, schedule): (&Task, &Machine, &Schedule),
        (cover, spilled): (Cover, &[BufId]),
        hardware: &Hardware,
        console: &Console,
    ) -> Result<Found, CliError> {
        let found = if cover == Cover::EveryOrder {
            let _progress = console.long_progress("bounding over all orders (--nodes N limits the states)");
            let mut limits = Limits::default();
            limits.states = self.nodes.unwrap_or(limits.states);
            let found = across_orders_near(&task.graph, machine, &limits, spilled)
                .map_err(|e| resolve::run_error(task, hardware, e.into()))?;
            // What is told is what `certify` finds by default, unless few states are asked for.
            let states = DEFAULT_STATES.min(limits.states.saturating_mul(2));
            let confirmed = found.confirmed(&task.graph, machine, states);
            let file = self.certificate.as_ref().unwrap_or(&task.file);
            return confirmed.map(Found::Orders).map_err(|e| resolve::certify_error(task, hardware, file, e, None));
        } else {
            let _progress = console.progress("bounding", 1);
            bound(&task.graph, machine, schedule, cover).map(Found::Flow)
        };
        found.map_err(|e| resolve::run_error(task, hardware, e.into()))
    }

    fn search(
        &self,
        (task, machine, schedule): (&Task, &Machine, &Schedule),
        flow: &Bound,
        hardware: &Hardware,
        console: &Console,
    ) -> Result<Least, CliError> {
        let _progress = console.progress("searching", 1);
        let limits = pack::Limits { nodes: self.exact_nodes(), time: self.time };
        least((&task.graph, machine, schedule), flow, limits).map_err(|e| resolve::run_error(task, hardware, e))
    }

    fn exact_nodes(&self) -> Option<u64> {
        self.nodes.or(self.time.is_none().then_some(EXACT_NODES))
    }

    /// How the plan was found, for the plan file.
    fn settings(&self, least: &Least, hardware: &Hardware) -> Result<ExactSettings, CliError> {
        Ok(ExactSettings {
            exact_nodes: self.exact_nodes(),
            heuristic: least.heuristic.map(str::to_owned),
            retime: false,
            normalize: resolve::normalize(&self.schedule.normalize)?,
            hardware: hardware.clone(),
        })
    }

    fn print(
        &self,
        task: &Task,
        hardware: &Hardware,
        cover: Cover,
        found: &Found,
        console: &mut Console,
    ) -> Result<(), CliError> {
        console.line(format_args!(
            "{} on {}: {}, {}\n",
            Shown(&task.name),
            Shown(&hardware.name),
            count(task.graph.node_count(), "node"),
            count(task.graph.buffer_count(), "buffer")
        ))?;
        console.line(match found {
            Found::Flow(_) => flow_grid(&found.per_cache(task)),
            Found::Orders(bound) => set_grid(task, bound),
        })?;
        console.line(statement(cover, found.kind(), found.value()))?;
        let of = if self.exact { " (of the flow bound, not of what --exact proves)" } else { "" };
        let certificate = self.certificate.as_deref();
        certificate.map_or(Ok(()), |file| console.line(format_args!("Certificate: {}{of}", file.display())))
    }
}

/// What a bound says, in one sentence.
fn statement(cover: Cover, kind: BoundKind, value: Bytes) -> String {
    let plans = report::covered(cover);
    format!("No plan that {plans} moves less than {} ({} bound).", grouped_bytes(value), kind.name())
}

fn flow_grid(shares: &[CacheShare<'_>]) -> Grid {
    let mut grid = Grid::new(&["<cache", "steps", "gaps", "contended gaps", "bound"]);
    let number = |n: Option<usize>| n.map_or_else(String::new, |n| grouped(n as u64));
    for s in shares {
        grid.row([s.cache.to_owned(), number(s.steps), number(s.gaps), number(s.contended_gaps), grouped(s.bound)]);
    }
    grid
}

fn set_grid(task: &Task, bound: &OrdersBound) -> Grid {
    let mut grid = Grid::new(&["<cache", "buffers", "states", "bound", "<"]);
    for s in &bound.sets {
        let solved = if s.optimal { "optimal over all orders" } else { "at the limit of states" };
        let shared = if s.shares.is_some() { ", sharing costs" } else { "" };
        let numbers = [grouped(s.buffers.len() as u64), grouped(s.states), grouped(s.bound)];
        grid.row(std::iter::once(s.cache.clone()).chain(numbers).chain([format!("{solved}{shared}")]));
    }
    for g in &bound.grids {
        let what = format!("windows over a grid of {}", count(g.products, "product"));
        let numbers = [grouped(g.buffers.len() as u64), String::new(), grouped(g.grid.bound)];
        grid.row(std::iter::once(grid_cache(task, g).to_owned()).chain(numbers).chain([what]));
    }
    grid
}

fn print_exact(least: &Least, console: &mut Console) -> Result<(), CliError> {
    let mut grid = Grid::new(&["<cache", "bound", "moved", "<"]);
    for c in &least.per_cache {
        let proven = if c.movement == c.bound { "optimal" } else { "not proven" };
        let numbers = [c.bound, c.movement].map(grouped);
        grid.row(std::iter::once(c.cache.clone()).chain(numbers).chain([proven.to_owned()]));
    }
    console.line(format_args!("\n{grid}"))?;
    let nodes = count(usize::try_from(least.nodes).unwrap_or(usize::MAX), "search node");
    let by = least.heuristic.map_or_else(String::new, |name| format!(", of {name},"));
    let (moved, bound) = (grouped_bytes(least.movement), grouped_bytes(least.bound));
    console.line(match least.is_optimal() {
        true => {
            format!("Optimal: the plan found{by} moves {moved}, and none that keeps this schedule moves less ({nodes}).")
        }
        false => format!(
            "At the limit ({nodes}): the best plan found{by} moves {moved}, and none that keeps this schedule moves less \
             than {bound}."
        ),
    })
}
