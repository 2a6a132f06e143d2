//! What the integration tests share.
#![allow(dead_code)] // Each test takes what it needs.

use spillbench_harness::experiment::{Complaints, ExperimentFile, parse};
use spillbench_harness::study::{Folders, Study};
use spillbench_harness::sweep::{self, Options, Silent, Swept};
use spillbench_harness::table::Table;
use std::path::Path;

/// Loads a study whose plain paths are relative to `base`.
pub fn try_study(text: &str, base: &Path) -> Result<Study, Complaints> {
    let ExperimentFile::Study(experiment) = parse(text)? else { panic!("a study") };
    Study::load(*experiment, &Folders { base: base.to_owned(), data: base.join("absent") })
}

/// Loads a study that needs no files.
pub fn study(text: &str) -> Study {
    try_study(text, Path::new(".")).unwrap_or_else(|complaints| panic!("{complaints}"))
}

/// What a sweep came to, with its tables in memory.
pub struct Ran {
    pub runs: Table,
    pub timed: Table,
    swept: Swept,
}

impl std::ops::Deref for Ran {
    type Target = Swept;

    fn deref(&self) -> &Swept {
        &self.swept
    }
}

/// Runs a study on so many threads.
pub fn run(study: &Study, folder: &Path, options: &Options, threads: usize) -> Ran {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let swept = pool.install(|| sweep::run(study, folder, options, &mut Silent)).unwrap();
    Ran { runs: swept.runs.table().unwrap(), timed: swept.timed.table().unwrap(), swept }
}

/// The table of rows as CSV.
pub fn csv(ran: &Ran) -> String {
    let mut bytes = Vec::new();
    ran.runs.write(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// A small study with every axis, infeasible cells among them.
pub const SMALL: &str = r#"
name = "small"
seed = 7
repetitions = 2
[axes]
graphs = ["chain(nodes=120,width=4)", "conv(layers=2,rows=2)"]
cost_models = ["affine", { model = "bandwidth", bytes_per_cycle = 64 }]
normalize = ["free", "memory"]
heuristics = ["life-size", "lru", "random"]
strategies = ["default", "postpone-first"]
placements = ["best-fit", "next-fit"]
prefetch = [0, 4]
[capacities]
L1 = [512, 2048]
UB = "0.5x..1x step 0.5x"
"#;
