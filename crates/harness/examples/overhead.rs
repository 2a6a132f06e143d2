//! What the workbench costs beside the runs themselves: a graph planned, checked and measured under
//! many seeds in a loop, or swept. Instructions are counted, where the difference of two numbers of cells
//! leaves out what is done once, by
//!
//! ```text
//! cargo build --release -p spillbench-harness --example overhead
//! for mode in loop sweep; do for cells in 100 600; do
//!   valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/overhead $mode $cells
//! done; done
//! ```
//!
//! and the peak of memory over the number of cells is told by
//! `/usr/bin/time -v target/release/examples/overhead sweep 100000 100`.

use spillbench_core::planner::Workspace;
use spillbench_core::schedule::Normalize;
use spillbench_core::{Hardware, Machine, PlannerConfig, Schedule, checker, metrics};
use spillbench_harness::experiment::{ExperimentFile, parse};
use spillbench_harness::study::{Folders, Study};
use spillbench_harness::sweep::{self, Options, Silent};
use spillbench_heuristics::{Policy, heuristic};
use std::error::Error;

const USAGE: &str = "usage: overhead loop|sweep CELLS [NODES]";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(mode), Some(cells)) = (arguments.next(), arguments.next()) else { return Err(USAGE.into()) };
    let graph = format!("layered-dag(nodes={})", arguments.next().as_deref().unwrap_or("500"));
    match mode.as_str() {
        "loop" => run_loop(&graph, cells.parse()?),
        "sweep" => run_sweep(&graph, cells.parse()?),
        _ => Err(USAGE.into()),
    }
}

fn run_loop(graph: &str, cells: u64) -> Result<(), Box<dyn Error>> {
    let graph = spillbench_workloads::generate(&graph.parse()?)?;
    let machine = Machine::resolve(&graph, &Hardware::default()).map_err(|e| format!("{e:?}"))?;
    let schedule = Schedule::default_for(&graph).normalized(&graph, Normalize::default());
    let heuristic = heuristic("random").ok_or("no such heuristic")?;
    let (mut workspace, mut moved) = (Workspace::default(), 0);
    for seed in 0..cells {
        let policy = Policy { heuristic, config: PlannerConfig::default(), seed };
        let plan = policy.plan(&graph, &machine, &schedule, &mut workspace)?;
        if !checker::check(&graph, &machine, &plan).is_valid() {
            return Err("an invalid plan".into());
        }
        moved += metrics::measure(&graph, &machine, &plan)?.extra_movement.0;
    }
    println!("{cells} plans moved {moved} bytes");
    Ok(())
}

fn run_sweep(graph: &str, cells: u64) -> Result<(), Box<dyn Error>> {
    let text = format!(
        "name = \"overhead\"\nbound = \"never\"\nrepetitions = {cells}\n\
         [axes]\ngraphs = \"{graph}\"\nheuristics = \"random\"\n"
    );
    let ExperimentFile::Study(experiment) = parse(&text)? else { return Err("no study".into()) };
    let study = Study::load(*experiment, &Folders { base: ".".into(), data: ".".into() })?;
    let folder = tempfile::tempdir()?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let swept = pool.install(|| sweep::run(&study, folder.path(), &Options::default(), &mut Silent))?;
    println!("{} rows", swept.runs.len());
    Ok(())
}
