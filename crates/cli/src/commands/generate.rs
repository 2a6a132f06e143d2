//! `spillbench generate`: makes a graph of a family.

use crate::args::HardwareArgs;
use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::outputs::Outputs;
use crate::resolve;
use crate::write;
use clap::Args;
use spillbench_core::{Graph, Machine};
use spillbench_workloads::{WorkloadError, WorkloadSpec, fit_tile, generate};
use std::path::PathBuf;

/// Arguments of `generate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench generate matmul m=4 n=8 k=4 --out matmul.json\n  \
    spillbench generate layered-dag nodes=5000 pressure=1.5 --seed 7 --out dag.csv\n  \
    spillbench generate 'fft(stages=4)' | spillbench inspect -\n  \
    spillbench generate conv --hardware npu.toml --out conv.json\n\n\
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
    /// Size the tiles to this hardware, a file (TOML) or the name of a preset: the largest power of
    /// two that its caches take, unless tile=N is given; refused where the graph cannot fit
    #[arg(long, value_name = "FILE|PRESET")]
    hardware: Option<String>,
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
        let (spec, graph) = match &self.hardware {
            Some(hardware) => sized(spec, &settings, &self.family, hardware)?,
            None => {
                let graph = generate(&spec)?;
                (spec, graph)
            }
        };
        Outputs::new().graph("--out", &target).check()?;
        target.write_and_tell(&graph, Some(&spec.to_string()), console)?;
        Ok(Outcome::Done)
    }
}

/// The spec and its graph, with tiles sized to a hardware unless the settings name a tile.
fn sized(
    spec: WorkloadSpec,
    settings: &[String],
    family: &str,
    hardware: &str,
) -> Result<(WorkloadSpec, Graph), CliError> {
    let args =
        HardwareArgs { hardware: hardware.to_owned(), capacity: Vec::new(), reserve: Vec::new(), spill_cost: None };
    let hardware = resolve::hardware(&args)?;
    let has_tile = family.contains("tile=") || settings.iter().any(|s| s.trim_start().starts_with("tile="));
    let (spec, graph) = if has_tile {
        let graph = generate(&spec)?;
        (spec, graph)
    } else {
        fit_tile(&spec, &hardware)?
    };
    let misfits = match Machine::resolve(&graph, &hardware) {
        Ok(machine) => machine.misfits(&graph),
        Err(misfits) => misfits,
    };
    if misfits.is_empty() {
        return Ok((spec, graph));
    }
    Err(CliError::Misfit { file: spec.to_string().into(), hardware: hardware.name, misfits })
}
