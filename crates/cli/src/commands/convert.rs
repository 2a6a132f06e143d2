//! `spillbench convert`: a graph from JSON to a CSV pair, or back.

use crate::args::GraphArgs;
use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::outputs::Outputs;
use crate::resolve::{self, EDGES_CSV, GraphFormat, NODES_CSV, Task};
use clap::Args;
use spillbench_core::formats::output::FileSet;
use spillbench_core::formats::{graph_csv, graph_json};
use std::path::PathBuf;

/// Arguments of `convert`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench convert Conv_Case0.json --out csv/\n  \
    spillbench convert csv/Conv_Case0_Nodes.csv > Conv_Case0.json")]
pub struct ConvertArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// The format to write; by default the one that GRAPH is not in
    #[arg(long, value_name = "FORMAT")]
    to: Option<GraphFormat>,
    /// The directory to write into.
    #[arg(
        long,
        value_name = "DIR",
        help = "Write <TASK>.json, or <TASK>_Nodes.csv and <TASK>_Edges.csv, into this directory; without it, JSON \
                goes to standard output"
    )]
    out: Option<PathBuf>,
}

impl ConvertArgs {
    /// Writes the graph in the other format.
    ///
    /// # Errors
    /// When the graph cannot be read or the files cannot be written.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let task = resolve::task(&self.graph, console)?;
        let to = self.to.unwrap_or(match task.format {
            GraphFormat::Json => GraphFormat::Csv,
            GraphFormat::Csv => GraphFormat::Json,
        });
        let names: &[&str] = if to == GraphFormat::Json { &[".json"] } else { &[NODES_CSV, EDGES_CSV] };
        let names = names.iter().map(|end| format!("{}{end}", task.name));
        Outputs::new().files("--out", self.out.as_deref(), names).check()?;
        if to == GraphFormat::Csv && graph_csv::drops_meta(&task.graph) {
            console.note("CSV has no place for the Meta object, which is dropped");
        }
        match (to, &self.out) {
            (GraphFormat::Json, None) => graph_json::write(&task.graph, console.out()).map_err(CliError::Stdout)?,
            (GraphFormat::Csv, None) => {
                return Err(CliError::usage(
                    "a CSV graph is two files, which standard output cannot hold",
                    "give a directory for them (--out DIR)",
                ));
            }
            (_, Some(dir)) => {
                let mut files = FileSet::new(dir)?;
                add(&mut files, &task, to)?;
                for path in files.commit()? {
                    console.line(path.display())?;
                }
            }
        }
        Ok(Outcome::Done)
    }
}

fn add(files: &mut FileSet, task: &Task, to: GraphFormat) -> Result<(), CliError> {
    let Task { name, graph, .. } = task;
    match to {
        GraphFormat::Json => files.write(&format!("{name}.json"), |out| graph_json::write(graph, out))?,
        GraphFormat::Csv => {
            files.write(&format!("{name}{NODES_CSV}"), |out| graph_csv::write_nodes(graph, out))?;
            files.write(&format!("{name}{EDGES_CSV}"), |out| graph_csv::write_edges(graph, out))?;
        }
    }
    Ok(())
}
