//! `spillbench bound`: how little any plan could move, and on request the least itself.

use crate::analysis::least::{Least, least};
use crate::analysis::run::{Verdict, milliseconds};
use crate::args::{GraphArgs, HardwareArgs, ScheduleArgs, parse_time};
use crate::commands::plan;
use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::report::{self, Grid, count, grouped, grouped_bytes};
use crate::resolve::{self, Task};
use clap::Args;
use serde::Serialize;
use spillbench_bounds::certificate::Certificate;
use spillbench_bounds::{Bound, BoundKind, Cover, Limits, OrdersBound, across_orders, bound, pack};
use spillbench_core::formats::output::FileSet;
use spillbench_core::formats::plan_json::PlanDocument;
use spillbench_core::{Bytes, Hardware, Machine, Schedule, Shown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Search nodes of `--exact` where no limit is given.
const EXACT_NODES: u64 = 1_000_000;

/// Arguments of `bound`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench bound Conv_Case0.json --normalize memory --certificate conv.json\n  \
    spillbench bound Conv_Case0.json --covers every-order\n  \
    spillbench bound FlashAttention_Case0.json --exact --time 5m --out plans/\n\n\
    A bound holds for the plans it covers: schedule (all nodes stay where the schedule has them),\n\
    op-order or ops (the ops keep their order, ALLOC and FREE may move), every-order or orders (every\n\
    plan of the graph). The first two are minimum-cost flows; the last solves sets of buffers over all\n\
    orders. --exact searches the least movement of a plan that keeps the schedule, beside the plans of all\n\
    heuristics: exit status 0 whether it is proven or the limit came first; the output says which.")]
pub struct BoundArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// Which plans it holds for: schedule, op-order (ops) or every-order (orders)
    #[arg(long, value_name = "PLANS", default_value = "schedule")]
    covers: String,
    /// Search the least movement of a plan that keeps the schedule
    #[arg(long)]
    exact: bool,
    /// Search nodes at most; with every-order, states [default: 1,000,000 nodes without --time;
    /// 60,000,000 states]
    #[arg(long, value_name = "N", alias = "limit-nodes")]
    nodes: Option<u64>,
    /// How long --exact may search, such as 500ms, 60s or 5m
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "exact")]
    time: Option<Duration>,
    /// Write what proves the bound into this file, for `spillbench certify`
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

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Bounded<'a> {
    task: &'a str,
    hardware: &'a Hardware,
    bound: Bytes,
    bound_kind: &'static str,
    bound_cover: &'static str,
    per_cache: Vec<CacheShare<'a>>,
    /// The sets of a bound over every order.
    sets: Option<Vec<SetShare<'a>>>,
    /// What `--exact` found.
    exact: Option<ExactShare<'a>>,
    elapsed_ms: f64,
}

#[derive(Debug, Serialize)]
struct CacheShare<'a> {
    cache: &'a str,
    bound: Bytes,
    steps: Option<usize>,
    gaps: Option<usize>,
    contended_gaps: Option<usize>,
}

#[derive(Debug, Serialize)]
struct SetShare<'a> {
    cache: &'a str,
    buffers: usize,
    bound: Bytes,
    optimal: bool,
    states: u64,
}

#[derive(Debug, Serialize)]
struct ExactShare<'a> {
    extra_movement: Bytes,
    bound: Bytes,
    optimal: bool,
    nodes: u64,
    /// The heuristic whose plan it is; null for one that the search found.
    heuristic: Option<&'static str>,
    per_cache: Vec<ExactCacheShare<'a>>,
}

#[derive(Debug, Serialize)]
struct ExactCacheShare<'a> {
    cache: &'a str,
    extra_movement: Bytes,
    bound: Bytes,
}

/// A bound of either kind.
enum Found {
    Flow(Bound),
    Orders(OrdersBound),
}

impl Found {
    fn value(&self) -> Bytes {
        match self {
            Self::Flow(bound) => bound.value,
            Self::Orders(bound) => bound.value,
        }
    }

    fn kind(&self) -> BoundKind {
        match self {
            Self::Flow(bound) => bound.kind,
            Self::Orders(_) => BoundKind::Partition,
        }
    }

    fn certificate(&self) -> &Certificate {
        match self {
            Self::Flow(bound) => &bound.certificate,
            Self::Orders(bound) => &bound.certificate,
        }
    }

    fn per_cache<'a>(&'a self, task: &'a Task) -> Vec<CacheShare<'a>> {
        match self {
            Self::Flow(bound) => {
                let share = |c: &'a spillbench_bounds::CacheBound| CacheShare {
                    cache: &c.cache,
                    bound: c.value,
                    steps: Some(c.steps),
                    gaps: Some(c.gaps),
                    contended_gaps: Some(c.stats.contended_gaps),
                };
                bound.per_cache.iter().map(share).collect()
            }
            Self::Orders(bound) => {
                let share = |cache: &'a String| {
                    let sets = bound.sets.iter().filter(|s| s.cache == *cache);
                    let value = sets.fold(0u64, |sum, s| sum.saturating_add(s.bound.0));
                    CacheShare { cache, bound: Bytes(value), steps: None, gaps: None, contended_gaps: None }
                };
                task.graph.cache_names().iter().map(share).collect()
            }
        }
    }
}

impl BoundArgs {
    /// Bounds, and searches where that was asked for.
    ///
    /// # Errors
    /// When an input cannot be read, no plan exists, or a file cannot be written.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let cover = resolve::cover(&self.covers)?;
        self.check(cover)?;
        // A directory that cannot be made is told before any work.
        let files = self.out.as_ref().map(FileSet::new).transpose()?;
        let certificate = self.certificate.as_deref().map(OneFile::new).transpose()?;
        let hardware = resolve::hardware(&self.hardware)?;
        let task = resolve::task(&self.graph, console)?;
        let machine = resolve::machine(&task, &hardware)?;
        let schedule = resolve::schedule(&self.schedule, &task, Some(&machine), console)?;
        let started = Instant::now();
        let found = self.bound((&task, &machine, &schedule), cover, &hardware, console)?;
        let least = match &found {
            Found::Flow(flow) if self.exact => {
                Some(self.search((&task, &machine, &schedule), flow, &hardware, console)?)
            }
            _ => None,
        };
        let elapsed_ms = milliseconds(started.elapsed());
        if let Some(file) = certificate {
            file.write(|out| found.certificate().write(out))?;
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
                plan::write(files, &PlanDocument { task: task.name.clone(), settings: None, plan, metrics })?;
            }
        }
        if self.json {
            console.json(&bounded(&task, &hardware, cover, &found, least.as_ref(), elapsed_ms))?;
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
        Ok(())
    }

    fn bound(
        &self,
        (task, machine, schedule): (&Task, &Machine, &Schedule),
        cover: Cover,
        hardware: &Hardware,
        console: &Console,
    ) -> Result<Found, CliError> {
        let _progress = console.progress("bounding", 1);
        let found = if cover == Cover::EveryOrder {
            let mut limits = Limits::default();
            limits.states = self.nodes.unwrap_or(limits.states);
            across_orders(&task.graph, machine, &limits).map(Found::Orders)
        } else {
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
        let nodes = self.nodes.or(self.time.is_none().then_some(EXACT_NODES));
        let limits = pack::Limits { nodes, time: self.time };
        least((&task.graph, machine, schedule), flow, limits).map_err(|e| resolve::run_error(task, hardware, e))
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
            Found::Orders(bound) => set_grid(bound),
        })?;
        console.line(statement(cover, found.kind(), found.value()))?;
        self.certificate.as_deref().map_or(Ok(()), |file| console.line(format_args!("Certificate: {}", file.display())))
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

fn set_grid(bound: &OrdersBound) -> Grid {
    let mut grid = Grid::new(&["<cache", "buffers", "states", "bound", "<"]);
    for s in &bound.sets {
        let solved = if s.optimal { "optimal over all orders" } else { "at the limit of states" };
        let numbers = [grouped(s.buffers.len() as u64), grouped(s.states), grouped(s.bound)];
        grid.row(std::iter::once(s.cache.clone()).chain(numbers).chain([solved.to_owned()]));
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

fn bounded<'a>(
    task: &'a Task,
    hardware: &'a Hardware,
    cover: Cover,
    found: &'a Found,
    least: Option<&'a Least>,
    elapsed_ms: f64,
) -> Bounded<'a> {
    let sets = match found {
        Found::Flow(_) => None,
        Found::Orders(bound) => {
            let share = |s: &'a spillbench_bounds::SetBound| SetShare {
                cache: &s.cache,
                buffers: s.buffers.len(),
                bound: s.bound,
                optimal: s.optimal,
                states: s.states,
            };
            Some(bound.sets.iter().map(share).collect())
        }
    };
    let exact = least.map(|least| ExactShare {
        extra_movement: least.movement,
        bound: least.bound,
        optimal: least.is_optimal(),
        nodes: least.nodes,
        heuristic: least.heuristic,
        per_cache: least
            .per_cache
            .iter()
            .map(|c| ExactCacheShare { cache: &c.cache, extra_movement: c.movement, bound: c.bound })
            .collect(),
    });
    Bounded {
        task: &task.name,
        hardware,
        bound: found.value(),
        bound_kind: found.kind().name(),
        bound_cover: cover.name(),
        per_cache: found.per_cache(task),
        sets,
        exact,
        elapsed_ms,
    }
}

/// One file to be written whole; that it can be is found out before any work.
pub(super) struct OneFile {
    files: FileSet,
    name: String,
}

impl OneFile {
    /// A file at `path`.
    ///
    /// # Errors
    /// When its directory cannot be made, or it names no file.
    pub(super) fn new(path: &Path) -> Result<Self, CliError> {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        if name.is_empty() {
            let what = format!("{} names no file", path.display());
            return Err(CliError::usage(what, "give the path of a file to write"));
        }
        Ok(Self { files: FileSet::new(path.parent().unwrap_or(Path::new("")))?, name })
    }

    /// Writes it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(
        mut self,
        fill: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>,
    ) -> Result<(), CliError> {
        self.files.write(&self.name, |out| fill(out))?;
        self.files.commit()?;
        Ok(())
    }
}
