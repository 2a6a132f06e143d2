//! `spillbench import`: makes a graph of a model, an interval file or a trace.

use crate::args::HardwareArgs;
use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::input::Expect;
use crate::outputs::Outputs;
use crate::report::grouped_bytes;
use crate::resolve;
use crate::write::Target;
use clap::{Args, Subcommand};
use spillbench_core::Graph;
use spillbench_workloads::import::intervals::{self, IntervalOptions};
use spillbench_workloads::import::onnx::{self, OnnxOptions};
use spillbench_workloads::import::trace::{self, TraceOptions};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Arguments of `import`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench import onnx resnet50.onnx --dim batch=4 --out resnet50.json\n  \
    spillbench import intervals A.1048576.csv | spillbench plan - --capacity UB=1M --out plan/\n  \
    spillbench import trace accesses.txt --out trace.json")]
pub struct ImportArgs {
    #[command(subcommand)]
    format: Format,
}

/// What is imported.
#[derive(Debug, Subcommand)]
enum Format {
    /// A neural network in ONNX: tensors are cut into tiles, operators lowered to instructions
    Onnx(OnnxArgs),
    /// Buffers with fixed lives, in CSV: id, lower, upper (exclusive), size and optional columns; or
    /// start and end (inclusive)
    Intervals(TextArgs),
    /// Accesses of a cache, one per line: time, id, size and optionally the next access
    Trace(TextArgs),
}

#[derive(Debug, Args)]
struct FileArgs {
    /// The file to import; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
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

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  spillbench import onnx resnet50.onnx --dim batch=4 --out resnet50.json")]
struct OnnxArgs {
    #[command(flatten)]
    files: FileArgs,
    /// Units of a tile; by default as many as leave room for a few tiles in every cache
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    tile: Option<u64>,
    /// Bytes that one unit of size stands for; by default the least power of two that keeps the graph
    /// within --max-nodes
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    bytes_per_unit: Option<u64>,
    /// The most nodes of the graph
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = OnnxOptions::default().max_nodes)]
    max_nodes: u64,
    /// The value of a symbolic dimension; may be repeated; those not given are 1
    #[arg(long, value_name = "NAME=N")]
    dim: Vec<Dim>,
    #[command(flatten)]
    hardware: HardwareArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  spillbench import intervals A.1048576.csv --out A.json")]
struct TextArgs {
    #[command(flatten)]
    files: FileArgs,
    /// The cache that all buffers are in
    #[arg(long, value_name = "NAME", default_value = "UB")]
    cache: String,
}

/// `NAME=N`.
#[derive(Clone, Debug)]
struct Dim(String, u64);

impl FromStr for Dim {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once('=').filter(|(name, _)| !name.is_empty());
        let value = parts.and_then(|(name, value)| Some((name, value.parse().ok().filter(|&v| v > 0)?)));
        let (name, value) = value.ok_or("expected NAME=N with a whole number from 1 up, such as batch=4")?;
        Ok(Self(name.to_owned(), value))
    }
}

impl ImportArgs {
    /// Writes the graph.
    ///
    /// # Errors
    /// When the file cannot be read, makes no sense, or the graph cannot be written.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        match self.format {
            Format::Onnx(args) => args.run(console),
            Format::Intervals(args) => args.intervals(console),
            Format::Trace(args) => args.trace(console),
        }
    }
}

impl OnnxArgs {
    fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let target = Target::of(&self.files.out)?;
        if self.bytes_per_unit == Some(0) {
            return Err(CliError::usage("--bytes-per-unit is 0", "give a whole number from 1 up"));
        }
        let options = OnnxOptions {
            hardware: resolve::hardware(&self.hardware)?,
            tile: self.tile,
            bytes_per_unit: self.bytes_per_unit,
            dims: self.dim.into_iter().map(|Dim(name, value)| (name, value)).collect(),
            max_nodes: self.max_nodes,
        };
        let file = &self.files.file;
        let bytes = resolve::read(file, Expect::Bytes)?;
        let (graph, notices) = onnx::import(&bytes, &options).map_err(in_file(file))?;
        finish(&graph, &notices, &target, console)
    }
}

impl TextArgs {
    fn intervals(self, console: &mut Console) -> Result<Outcome, CliError> {
        let target = Target::of(&self.files.out)?;
        let file = &self.files.file;
        let bytes = resolve::read(file, Expect::Text)?;
        let options = IntervalOptions { cache: self.cache };
        let (graph, _, notices) = intervals::import(&bytes, &options).map_err(in_file(file))?;
        let height = intervals::read(&bytes).map(|(list, _)| intervals::height_lower_bound(&list));
        let height = height.map_err(in_file(file))?;
        let outcome = finish(&graph, &notices, &target, console)?;
        let height = grouped_bytes(height);
        console.note(format_args!("no packing is lower than {height}: the most that are live at once"));
        Ok(outcome)
    }

    fn trace(self, console: &mut Console) -> Result<Outcome, CliError> {
        let target = Target::of(&self.files.out)?;
        let file = &self.files.file;
        let bytes = resolve::read(file, Expect::Text)?;
        let options = TraceOptions { cache: self.cache };
        let (graph, _, notices) = trace::import(&bytes, &options).map_err(in_file(file))?;
        finish(&graph, &notices, &target, console)
    }
}

fn in_file<E: Into<spillbench_workloads::import::ImportError>>(file: &Path) -> impl FnOnce(E) -> CliError {
    move |source| CliError::Import { file: file.to_owned(), source: Box::new(source.into()) }
}

fn finish(
    graph: &Graph,
    notices: &[impl Display],
    target: &Target,
    console: &mut Console,
) -> Result<Outcome, CliError> {
    for notice in notices.iter().take(20) {
        console.note(notice);
    }
    if notices.len() > 20 {
        console.note(format_args!("and {} more", notices.len() - 20));
    }
    Outputs::new().graph("--out", target).check()?;
    target.write_and_tell(graph, None, console)?;
    Ok(Outcome::Done)
}
