//! The commands, one file each: its arguments, with an example in its help, and its `run`.
//!
//! A new command is a file here, a variant of [`Command`] and an arm of [`Command::run`].

mod completions;
mod inspect;
mod list;

use crate::console::{Console, Outcome};
use crate::error::CliError;
use clap::Subcommand;

/// What `spillbench` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what a graph is made of, and whether it fits
    Inspect(inspect::InspectArgs),
    /// List what names stand for: heuristics, strategies, placements, presets, ...
    List(list::ListArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// When it cannot do its work.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        match self {
            Self::Inspect(args) => args.run(console),
            Self::List(args) => args.run(console),
            Self::Completions(args) => args.run(console),
        }
    }
}
