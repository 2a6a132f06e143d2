//! The `spillbench` command line: the only place that prints, words errors and chooses exit codes.
//!
//! Arguments are parsed low ([`args`]: syntax), then resolved high ([`resolve`]: graphs, hardware,
//! schedules). Each command is one file in [`commands`]; [`report`] holds what their output shares.

mod analysis;
mod args;
mod commands;
mod console;
mod error;
mod input;
mod outputs;
mod report;
mod resolve;
mod trace;
mod write;

use clap::Parser;
use console::{Console, Verbosity};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    let mut console = Console::new(Verbosity::from_flags(cli.command.verbose(), cli.quiet));
    let outcome = cli.command.run(&mut console).and_then(|outcome| console.flush().map(|()| outcome));
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(error) => error::report(&error),
    }
}
