//! `spillbench generate`: makes a graph of a family.

use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::report::count;
use crate::write;
use clap::Args;
use spillbench_workloads::{WorkloadError, WorkloadSpec, generate};
use std::path::PathBuf;

/// Arguments of `generate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench generate matmul m=4 n=8 k=4 --out matmul.json\n  \
    spillbench generate layered-dag nodes=5000 pressure=1.5 --seed 7 --out dag.csv\n  \
    spillbench generate 'fft(stages=4)' | spillbench inspect -\n\n\
    `spillbench list workloads` shows the families with their parameters, defaults and ranges.")]
pub struct GenerateArgs {
    /// A family, or a whole specification such as 'matmul(m=8,n=8)'
    #[arg(value_name = "FAMILY")]
    family: String,
    /// Parameters that differ from their defaults
    #[arg(value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// What random choices start from [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The file to write.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "-",
        help = "Write NAME.json, or with NAME.csv the pair NAME_Nodes.csv and NAME_Edges.csv; - for JSON on standard \
                output"
    )]
    out: PathBuf,
}

impl GenerateArgs {
    /// Writes the graph.
    ///
    /// # Errors
    /// When there is no such family or parameter, a value is out of range, the graph would be too
    /// large, or the file cannot be written.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let target = write::Target::of(&self.out)?;
        let seed = self.seed.map(|seed| format!("seed={seed}"));
        let settings: Vec<_> = self.settings.into_iter().chain(seed).collect();
        let spec = WorkloadSpec::from_settings(&self.family, &settings).map_err(WorkloadError::from)?;
        let graph = generate(&spec)?;
        for path in target.write(&graph, console)? {
            console.line(path.strip_prefix(".").unwrap_or(&path).display())?;
        }
        console.note(format_args!(
            "{spec}: {}, {}, {}",
            count(graph.node_count(), "node"),
            count(graph.edge_count(), "edge"),
            count(graph.buffer_count(), "buffer")
        ));
        Ok(Outcome::Done)
    }
}
