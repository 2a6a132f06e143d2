//! The manifest of a run: all that is needed to make its tables and figures again.

use crate::hash::Hash;
use crate::study::Study;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// Version and commit of the tool.
pub fn tool() -> String {
    format!("spillbench {} ({})", env!("CARGO_PKG_VERSION"), env!("SPILLBENCH_COMMIT"))
}

/// The manifest of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Name of the experiment.
    pub experiment: String,
    /// Version of the tool.
    pub version: String,
    /// Commit that the tool was built from.
    pub commit: String,
    /// Hash of the text of the experiment.
    pub experiment_hash: String,
    /// The text of the experiment.
    pub experiment_text: String,
    /// The graphs, each with the hash of its content.
    pub graphs: Vec<GraphManifest>,
    /// What was skipped, and why.
    pub skipped: Vec<String>,
    /// The seed that all seeds derive from; each row holds its own.
    pub seed: u64,
    /// The shard, as `1/3`, if not all cells were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// Cells of the experiment.
    pub cells: u64,
    /// Rows in the table.
    pub rows: u64,
    /// Rows taken from a journal instead of being run.
    pub resumed: u64,
    /// The machine.
    pub host: Host,
    /// Threads that ran cells.
    pub jobs: usize,
    /// When the run began, in UTC.
    pub start: String,
    /// When the last cell was done, in UTC.
    pub end: String,
    /// Wall time of the cells themselves; each cell's own stands in `timings.csv`.
    pub cell_seconds: CellSeconds,
}

/// A graph of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphManifest {
    /// Its name in the table.
    pub name: String,
    /// The hash of its content.
    pub hash: String,
    /// Its nodes.
    pub nodes: usize,
}

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its operating system and architecture.
    pub system: String,
    /// Its processor, where that is known.
    pub processor: Option<String>,
    /// Cores that the process may use.
    pub cores: usize,
}

/// Wall time of cells, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellSeconds {
    /// All of them.
    pub total: f64,
    /// The mean.
    pub mean: f64,
    /// The longest.
    pub longest: f64,
}

impl Host {
    /// This machine.
    pub fn here() -> Self {
        let file = |path: &str| std::fs::read_to_string(path).ok();
        let name = file("/proc/sys/kernel/hostname").map(|s| s.trim().to_owned());
        let name = name.or_else(|| std::env::var("HOSTNAME").ok()).or_else(|| std::env::var("COMPUTERNAME").ok());
        let processor = file("/proc/cpuinfo").and_then(|text| {
            let line = text.lines().find(|l| l.starts_with("model name"))?;
            line.split_once(':').map(|(_, model)| model.trim().to_owned())
        });
        Self {
            name: name.unwrap_or_else(|| "unknown".to_owned()),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            processor,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// A moment as `2025-01-31T12:00:00Z`.
pub fn moment(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

impl Manifest {
    /// The manifest of a study, with nothing yet of its run.
    pub fn of(study: &Study) -> Self {
        let graphs = study.graphs.iter().map(|g| GraphManifest {
            name: g.name.clone(),
            hash: g.hash.to_string(),
            nodes: g.graph.node_count(),
        });
        Self {
            experiment: study.experiment.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("SPILLBENCH_COMMIT").to_owned(),
            experiment_hash: Hash::of(study.experiment.text.as_bytes()).to_string(),
            experiment_text: study.experiment.text.clone(),
            graphs: graphs.collect(),
            skipped: study.notices.iter().map(ToString::to_string).collect(),
            seed: study.experiment.seed,
            shard: None,
            cells: study.cell_count(),
            rows: 0,
            resumed: 0,
            host: Host::here(),
            jobs: rayon::current_num_threads(),
            start: String::new(),
            end: String::new(),
            cell_seconds: CellSeconds::default(),
        }
    }
}
