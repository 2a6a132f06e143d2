//! `spillbench inspect`: what a graph is made of, where it presses, and whether it fits.

use crate::analysis::profile::{BufferProfile, CacheProfile, MovedBuffer, Profile, most_moved};
use crate::args::{GraphArgs, HardwareArgs, ScheduleArgs};
use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::report::{Grid, capacity, count, grouped, percent};
use crate::resolve::{self, Task};
use clap::Args;
use serde::Serialize;
use spillbench_core::Shown;
use spillbench_core::hardware::{FitError, Hardware, Machine};
use spillbench_core::plan::Plan;
use spillbench_core::planner::{PlanError, Workspace};
use spillbench_core::schedule::Schedule;
use spillbench_core::units::Bytes;
use spillbench_heuristics::Policy;

/// Arguments of `inspect`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  spillbench inspect Conv_Case0.json --capacity L1=3072")]
pub struct InspectArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// How many buffers and sizes each list shows
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 5)]
    top: usize,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    schedule: ScheduleArgs,
    #[command(flatten)]
    hardware: HardwareArgs,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Inspection<'a> {
    task: &'a str,
    hardware: &'a str,
    fits: bool,
    misfits: Vec<String>,
    #[serde(flatten)]
    profile: &'a Profile,
    /// The buffers that the default policy moves most; null where no plan exists.
    most_moved: Option<Vec<MovedBuffer>>,
}

impl InspectArgs {
    /// Prints what the graph is made of.
    ///
    /// # Errors
    /// When an input cannot be read.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let hardware = resolve::hardware(&self.hardware)?;
        let task = resolve::task(&self.graph, console)?;
        let machine = Machine::resolve(&task.graph, &hardware).ok();
        let schedule = resolve::schedule(&self.schedule, &task, machine.as_ref(), console)?;
        let (misfits, plan) = try_plan(&task, &hardware, &schedule)?;
        let profile = Profile::of(&task.graph, &schedule, &hardware, self.top);
        let inspection = Inspection {
            task: &task.name,
            hardware: &hardware.name,
            fits: misfits.is_empty(),
            misfits: misfits.iter().map(ToString::to_string).collect(),
            profile: &profile,
            most_moved: plan.map(|plan| most_moved(&task.graph, &schedule, &plan, self.top)),
        };
        if self.json {
            console.json(&inspection)?;
        } else {
            print(&inspection, self.top, console)?;
        }
        Ok(Outcome::Done)
    }
}

/// What stands in the way of any plan, or the plan of the default policy.
fn try_plan(task: &Task, hardware: &Hardware, schedule: &Schedule) -> Result<(Vec<FitError>, Option<Plan>), CliError> {
    let machine = match Machine::resolve(&task.graph, hardware) {
        Ok(machine) => machine,
        Err(unknown) => return Ok((unknown, None)),
    };
    match Policy::default().plan(&task.graph, &machine, schedule, &mut Workspace::default()) {
        Ok(plan) => Ok((Vec::new(), Some(plan))),
        Err(PlanError::Misfit(misfits)) => Ok((misfits, None)),
        Err(error) => Err(resolve::run_error(task, hardware, error.into())),
    }
}

fn print(inspection: &Inspection<'_>, top: usize, console: &mut Console) -> Result<(), CliError> {
    let Inspection { task, profile, .. } = inspection;
    let (task, hardware) = (Shown(task), Shown(inspection.hardware));
    let timing = if profile.has_timing { "" } else { ", without full timing" };
    console.line(format_args!(
        "{task}: {}, {}, {}{timing}",
        count(profile.nodes, "node"),
        count(profile.edges, "edge"),
        count(profile.buffers, "buffer")
    ))?;
    console.line(format_args!("\nCaches on {hardware}\n{}", cache_grid(&profile.caches)))?;
    console.line(format_args!(
        "Operands: the smallest capacities under which any plan exists\n{}",
        operand_grid(profile)
    ))?;
    console.line(format_args!("Buffer sizes\n{}", size_grid(&profile.caches, top)))?;
    console.line(format_args!("Ops\n{}", op_grid(profile)))?;
    console.line(format_args!("Most used buffers\n{}", buffer_grid(&profile.most_used)))?;
    console.line(format_args!("Longest-lived buffers\n{}", buffer_grid(&profile.longest_lived)))?;
    match inspection.most_moved.as_deref() {
        None => {}
        Some([]) => console.line("The default policy plans it without a spill.")?,
        Some(moved) => {
            console.line(format_args!("Buffers that the default policy moves most\n{}", moved_grid(moved)))?;
        }
    }
    print_fit(inspection, top, console)
}

fn print_fit(inspection: &Inspection<'_>, top: usize, console: &mut Console) -> Result<(), CliError> {
    if inspection.fits {
        return console.line(format_args!("A plan exists on {}.", Shown(inspection.hardware)));
    }
    console.line(format_args!("No plan exists on {}:", Shown(inspection.hardware)))?;
    inspection.misfits.iter().take(top.max(1)).try_for_each(|m| console.line(format_args!("  {m}")))?;
    match inspection.misfits.len().saturating_sub(top.max(1)) {
        0 => Ok(()),
        more => console.line(format_args!("  and {more} more")),
    }
}

fn cache_grid(caches: &[CacheProfile]) -> Grid {
    let mut grid =
        Grid::new(&["<cache", "capacity", "buffers", "backed", "bytes", "peak demand", "of capacity", "at node"]);
    for c in caches {
        let of_capacity = match c.capacity {
            Some(Hardware::UNBOUNDED) | None => "-".to_owned(),
            Some(Bytes(capacity)) => percent(c.peak_demand.0, capacity),
        };
        grid.row([
            c.cache.clone(),
            c.capacity.map_or_else(|| "none".to_owned(), capacity),
            grouped(c.buffers as u64),
            grouped(c.backed as u64),
            grouped(c.bytes),
            grouped(c.peak_demand),
            of_capacity,
            c.peak_node.map_or_else(|| "-".to_owned(), |n| n.to_string()),
        ]);
    }
    grid
}

fn operand_grid(profile: &Profile) -> Grid {
    let mut grid = Grid::new(&["<cache", "bytes", "at node", "<op", "most operands of one op"]);
    for c in &profile.caches {
        grid.row([
            c.cache.clone(),
            grouped(c.smallest_capacity),
            c.smallest_capacity_node.to_string(),
            c.smallest_capacity_op.clone(),
            grouped(c.most_operands as u64),
        ]);
    }
    grid
}

/// The sizes that hold most bytes, per cache; the rest in one row.
fn size_grid(caches: &[CacheProfile], top: usize) -> Grid {
    let mut grid = Grid::new(&["<cache", "size", "buffers", "bytes"]);
    for c in caches {
        let mut sizes: Vec<_> = c.sizes.iter().map(|s| (s.size.0 * s.buffers as u64, s.size, s.buffers)).collect();
        sizes.sort_by(|a, b| b.cmp(a));
        let rest = sizes.split_off(top.min(sizes.len()));
        for (bytes, size, buffers) in sizes {
            grid.row([c.cache.clone(), grouped(size), grouped(buffers as u64), grouped(bytes)]);
        }
        if !rest.is_empty() {
            let (bytes, buffers) = rest.iter().fold((0, 0), |sum, r| (sum.0 + r.0, sum.1 + r.2));
            let label = format!("{} more", rest.len());
            grid.row([c.cache.clone(), label, grouped(buffers as u64), grouped(bytes)]);
        }
    }
    grid
}

fn op_grid(profile: &Profile) -> Grid {
    let mut grid = Grid::new(&["<op", "<pipe", "nodes", "cycles"]);
    for o in &profile.ops {
        let pipe = o.pipe.clone().unwrap_or_else(|| "-".to_owned());
        let cycles = o.cycles.map_or_else(|| "-".to_owned(), grouped);
        grid.row([o.op.clone(), pipe, grouped(o.nodes as u64), cycles]);
    }
    grid
}

const BUFFER_HEAD: [&str; 6] = ["buffer", "<cache", "size", "<kind", "uses", "life"];

fn buffer_cells(b: &BufferProfile) -> [String; 6] {
    [
        b.buf.to_string(),
        b.cache.clone(),
        grouped(b.size),
        if b.backed { "backed" } else { "generated" }.to_owned(),
        grouped(b.uses as u64),
        grouped(b.life as u64),
    ]
}

fn buffer_grid(buffers: &[BufferProfile]) -> Grid {
    let mut grid = Grid::new(&BUFFER_HEAD);
    for b in buffers {
        grid.row(buffer_cells(b));
    }
    grid
}

fn moved_grid(buffers: &[MovedBuffer]) -> Grid {
    let mut grid = Grid::new(&[&BUFFER_HEAD[..], &["spills", "moved"]].concat());
    for b in buffers {
        grid.row(buffer_cells(&b.buffer).into_iter().chain([grouped(b.spills as u64), grouped(b.moved)]));
    }
    grid
}
