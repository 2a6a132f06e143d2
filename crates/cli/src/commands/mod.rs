//! The commands, one file each: its arguments, with an example in its help, and its `run`.
//!
//! A new command is a file here, a variant of [`Command`] and an arm of [`Command::run`].

mod bound;
mod certify;
mod check;
mod compare;
mod completions;
mod convert;
mod diff;
mod explain;
mod figure;
mod generate;
mod import;
mod inspect;
mod list;
mod optimize;
mod pack;
mod partition;
mod plan;
mod plot;
mod retime;
mod sensitivity;
mod sweep;
mod timing;

use crate::console::{Console, Outcome};
use crate::error::CliError;
use clap::Subcommand;

/// What `spillbench` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Plan a schedule: addresses for every buffer, and the spills that make it fit
    Plan(plan::PlanArgs),
    /// Check a plan by the rules, and measure it
    Check(check::CheckArgs),
    /// Plan with every victim heuristic and show them side by side
    Compare(compare::CompareArgs),
    /// Search for a schedule whose plan moves or holds less, or takes less time or energy
    Optimize(optimize::OptimizeArgs),
    /// Bound from below what any plan moves, or find the least
    Bound(bound::BoundArgs),
    /// Say what a certificate of a lower bound proves
    Certify(certify::CertifyArgs),
    /// Find offsets for buffers of fixed lives within a capacity
    Pack(pack::PackArgs),
    /// Give a plan a faster order, its addresses and spills being as they are
    Retime(retime::RetimeArgs),
    /// Show when a plan runs what, why pipes are idle, and the critical path
    Timing(timing::TimingArgs),
    /// Split a fixed number of bytes among caches for least movement
    Partition(partition::PartitionArgs),
    /// Price one byte more of each cache, by the lower bound and by plans
    Sensitivity(sensitivity::SensitivityArgs),
    /// Say why a plan spills, what that costs, and which single change would save most
    Explain(explain::ExplainArgs),
    /// Make a graph: a lowered operator or a synthetic structure, by family and parameters
    Generate(generate::GenerateArgs),
    /// Make a graph of what you have: an ONNX model, an interval file, an access trace
    Import(import::ImportArgs),
    /// Run every cell of an experiment, and leave its tables and figures
    Sweep(sweep::SweepArgs),
    /// Draw a figure from the rows of a sweep again
    Plot(plot::PlotArgs),
    /// Draw one plan: its address map, its timeline, or what is resident when
    Figure(figure::FigureArgs),
    /// Say what changed between the results of two sweeps, cell by cell
    Diff(diff::DiffArgs),
    /// Show what a graph is made of, and whether it fits
    Inspect(inspect::InspectArgs),
    /// Turn a graph from JSON into a CSV pair, or back
    Convert(convert::ConvertArgs),
    /// List what names stand for: heuristics, strategies, placements, presets, ...
    List(list::ListArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// True when `-v` asks for the log of the planner's decisions.
    pub fn verbose(&self) -> bool {
        match self {
            Self::Plan(args) => args.log.verbose,
            Self::Compare(args) => args.log.verbose,
            Self::Explain(args) => args.log.verbose,
            _ => false,
        }
    }

    /// Runs the command.
    ///
    /// # Errors
    /// When it cannot do its work.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        match self {
            Self::Plan(args) => args.run(console),
            Self::Check(args) => args.run(console),
            Self::Compare(args) => args.run(console),
            Self::Optimize(args) => args.run(console),
            Self::Bound(args) => args.run(console),
            Self::Certify(args) => args.run(console),
            Self::Pack(args) => args.run(console),
            Self::Retime(args) => args.run(console),
            Self::Timing(args) => args.run(console),
            Self::Partition(args) => args.run(console),
            Self::Sensitivity(args) => args.run(console),
            Self::Explain(args) => args.run(console),
            Self::Generate(args) => args.run(console),
            Self::Import(args) => args.run(console),
            Self::Sweep(args) => args.run(console),
            Self::Plot(args) => args.run(console),
            Self::Figure(args) => args.run(console),
            Self::Diff(args) => args.run(console),
            Self::Inspect(args) => args.run(console),
            Self::Convert(args) => args.run(console),
            Self::List(args) => args.run(console),
            Self::Completions(args) => args.run(console),
        }
    }
}
