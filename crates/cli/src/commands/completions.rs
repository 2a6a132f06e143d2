//! `spillbench completions`: a completion script for a shell.

use crate::args::Cli;
use crate::console::{Console, Outcome};
use crate::error::CliError;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  spillbench completions bash > ~/.local/share/bash-completion/completions/spillbench"
)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl CompletionsArgs {
    /// Prints the script.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        // The generator panics when its writer fails, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "spillbench", &mut script);
        console.out().write_all(&script).map_err(CliError::Stdout)?;
        Ok(Outcome::Done)
    }
}
