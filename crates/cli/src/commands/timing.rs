//! `spillbench timing`: when the steps of a plan run, and what they wait for.

use crate::args::{GraphArgs, HardwareArgs, PlanFilesArgs};
use crate::commands::retime::{ask_timed, valid_plan};
use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::outputs::Outputs;
use crate::report::{Grid, count, grouped, percent};
use crate::resolve::{self, GivenPlan, Task};
use clap::Args;
use indexmap::IndexMap;
use serde::Serialize;
use spillbench_core::formats::chrome_trace;
use spillbench_core::index::{StepIx, indices};
use spillbench_core::metrics::steps::Step;
use spillbench_core::metrics::timing::{CriticalPath, Floor, IdleCause, KindTotal, LinkKind, PipeUse, TimedPlan};
use spillbench_core::{Cycles, Id, Machine, Shown};
use spillbench_harness::results;
use std::path::PathBuf;

/// Arguments of `timing`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench timing Conv_Case0.json --plan plans/\n  \
    spillbench timing Conv_Case0.json --plan plans/ --critical-path\n  \
    spillbench timing Conv_Case0.json --plan plans/ --trace conv.json\n\n\
    The trace opens in https://ui.perfetto.dev and in chrome://tracing, one microsecond for each cycle. The hardware \
    is that of the plan document unless another is given.\n\n\
    Exit status: 0 when the plan is timed, 1 when it is not valid, 2 when something cannot be read or written, or the \
    graph has no timing.")]
pub struct TimingArgs {
    #[command(flatten)]
    graph: GraphArgs,
    #[command(flatten)]
    plan: PlanFilesArgs,
    /// List the steps of the critical path
    #[arg(long)]
    critical_path: bool,
    /// Write the plan as Chrome trace JSON: pipes as tracks, caches as counters, spills as arrows
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    hardware: HardwareArgs,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    task: &'a str,
    plan: &'a str,
    hardware: &'a str,
    makespan: Cycles,
    floor: FloorReport<'a>,
    pipes: IndexMap<&'a str, PipeUse>,
    critical_path: PathReport<'a>,
}

/// What no order of any plan with the same spills can beat, and the pipe that says so.
#[derive(Debug, Serialize)]
struct FloorReport<'a> {
    cycles: Cycles,
    pipe: Option<&'a str>,
    head: Cycles,
    work: Cycles,
    tail: Cycles,
}

#[derive(Debug, Serialize)]
struct PathReport<'a> {
    steps: usize,
    waits: &'a [KindTotal],
    last: Cycles,
    /// Null unless `--critical-path` is given.
    nodes: Option<Vec<PathNode<'a>>>,
}

#[derive(Debug, Serialize)]
struct PathNode<'a> {
    node: Id,
    op: &'a str,
    pipe: Option<&'a str>,
    start: Cycles,
    cycles: Cycles,
    link: Option<LinkKind>,
}

impl TimingArgs {
    /// Times the plan, shows where the time goes, and writes the trace.
    ///
    /// # Errors
    /// When something cannot be read or written, or some op has no pipe or no cycles.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let graph = (&*self.graph.graph, self.graph.task.as_deref());
        let GivenPlan { task, source, hardware, machine } =
            resolve::given_plan(graph, &self.plan, &self.hardware, console)?;
        Outputs::new().file("--trace", self.trace.as_deref()).check()?;
        if valid_plan(&task, &machine, &hardware, &source, console)?.is_none() {
            return Ok(Outcome::Refuted);
        }
        let timed = TimedPlan::new(&task.graph, &machine, &source.plan);
        let timed = ask_timed(timed.map_err(|e| resolve::run_error(&task, &hardware, e.into()))?, &self.graph.graph)?;
        if let Some(path) = &self.trace {
            results::write_file(path, |out| chrome_trace::write(&timed, &task.name, out))?;
        }
        let path = timed.critical_path();
        if self.json {
            console.json(&self.report(&timed, &path, &task, &source.origin, &hardware.name))?;
        } else {
            let title = (Shown(&task.name), Shown(&hardware.name));
            console.line(format_args!("{} with the plan {} on {}", title.0, source.origin, title.1))?;
            self.print(&timed, &path, console)?;
        }
        Ok(Outcome::Done)
    }

    fn report<'a>(
        &self,
        timed: &'a TimedPlan<'_>,
        path: &'a CriticalPath,
        task: &'a Task,
        plan: &'a str,
        hardware: &'a str,
    ) -> Report<'a> {
        let Floor { cycles, pipe, head, work, tail } = timed.floor();
        let names = timed.machine().pipe_names();
        let pipe = pipe.map(|p| names[p].as_str());
        let nodes = self.critical_path.then(|| path.steps.iter().map(|s| node(timed, s.step, s.link)).collect());
        Report {
            task: &task.name,
            plan,
            hardware,
            makespan: timed.makespan(),
            floor: FloorReport { cycles, pipe, head, work, tail },
            pipes: indices(names).map(|p| (names[p].as_str(), timed.pipe_use(p))).collect(),
            critical_path: PathReport { steps: path.steps.len(), waits: &path.by_kind, last: path.last, nodes },
        }
    }

    fn print(&self, timed: &TimedPlan<'_>, path: &CriticalPath, console: &mut Console) -> Result<(), CliError> {
        let makespan = timed.makespan();
        let floor = timed.floor();
        console.line(format_args!(
            "Makespan {} cycles; floor with these spills {}: {}.\n",
            grouped(makespan),
            grouped(floor.cycles),
            floor_words(&floor, timed.machine())
        ))?;
        console.line(pipe_grid(timed))?;
        console.line(format_args!("Critical path: {}", count(path.steps.len(), "step")))?;
        console.line(wait_grid(path, makespan))?;
        if self.critical_path {
            console.line(path_grid(timed, path))?;
        }
        match &self.trace {
            Some(path) => console.line(format_args!("Written: {}", path.display())),
            None => Ok(()),
        }
    }
}

/// Where a floor comes from.
fn floor_words(floor: &Floor, machine: &Machine) -> String {
    let Floor { pipe: Some(pipe), head, work, tail, .. } = floor else {
        return "so long is the longest path of dependencies".to_owned();
    };
    let name = Shown(&machine.pipe_names()[*pipe]);
    format!("{} before {name} can begin, {} on it, {} behind", grouped(*head), grouped(*work), grouped(*tail))
}

/// How each pipe that has work spends the makespan.
fn pipe_grid(timed: &TimedPlan<'_>) -> Grid {
    let mut grid = Grid::new(&["<pipe", "steps", "busy", "of makespan", "head", "data", "address", "order", "tail"]);
    let names = timed.machine().pipe_names();
    for pipe in indices(names) {
        let used = timed.pipe_use(pipe);
        if used.steps == 0 {
            continue;
        }
        let shares = [names[pipe].clone(), grouped(used.steps as u64), grouped(used.busy)];
        let of = percent(used.busy.0, timed.makespan().0);
        let idle = IdleCause::ALL.map(|cause| grouped(used.idle(cause)));
        grid.row(shares.into_iter().chain([of]).chain(idle));
    }
    grid
}

/// What the critical path waits for, by kind of link.
fn wait_grid(path: &CriticalPath, makespan: Cycles) -> Grid {
    let mut grid = Grid::new(&["<waits by", "times", "cycles", "of makespan", "<for"]);
    for total in &path.by_kind {
        let what = match total.kind {
            LinkKind::Graph => "an edge of the graph",
            LinkKind::Implied => "an implied edge",
            LinkKind::Spill => "a spill of the buffer",
            LinkKind::Pipe => "the pipe",
            LinkKind::Address => "addresses to be released",
        };
        let share = percent(total.cycles.0, makespan.0);
        let name = total.kind.name().to_owned();
        grid.row([name, grouped(total.waits as u64), grouped(total.cycles), share, what.to_owned()]);
    }
    let share = percent(path.last.0, makespan.0);
    grid.row(["-".to_owned(), String::new(), grouped(path.last), share, "the end: the last step".to_owned()]);
    grid
}

fn node<'a>(timed: &'a TimedPlan<'_>, step: StepIx, link: Option<LinkKind>) -> PathNode<'a> {
    let op = match timed.step(step) {
        Step::Node(n) => timed.graph().op_name(n),
        Step::SpillOut { .. } => "SPILL_OUT",
        Step::SpillIn { .. } => "SPILL_IN",
    };
    let pipe = timed.pipe(step).map(|p| timed.machine().pipe_names()[p].as_str());
    PathNode { node: timed.id(step), op, pipe, start: timed.start(step), cycles: timed.cycles(step), link }
}

/// The steps of the path, from the first.
fn path_grid(timed: &TimedPlan<'_>, path: &CriticalPath) -> Grid {
    let mut grid = Grid::new(&["node", "<op", "<pipe", "start", "cycles", "<waits by"]);
    for s in &path.steps {
        let n = node(timed, s.step, s.link);
        grid.row([
            n.node.to_string(),
            n.op.to_owned(),
            n.pipe.unwrap_or("-").to_owned(),
            grouped(n.start),
            grouped(n.cycles),
            n.link.map_or("-", LinkKind::name).to_owned(),
        ]);
    }
    grid
}
