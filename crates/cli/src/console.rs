//! Where output goes: results to standard output, buffered; notes and progress to standard error.

use crate::error::CliError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::ExitCode;
use std::time::Duration;

/// How much is said on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors only.
    Quiet,
    /// Notices and progress.
    Normal,
    /// Each decision of the planner, too.
    Verbose,
}

impl Verbosity {
    /// What `-v` and `-q` ask for.
    pub fn from_flags(verbose: bool, quiet: bool) -> Self {
        match (verbose, quiet) {
            (true, _) => Self::Verbose,
            (false, true) => Self::Quiet,
            (false, false) => Self::Normal,
        }
    }
}

/// How a command ended that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Exit status 0.
    Done,
    /// Exit status 1: the answer is no, such as a plan that is not valid.
    Refuted,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::Refuted => Self::from(1),
        }
    }
}

/// The output of one run.
#[derive(Debug)]
pub struct Console {
    out: BufWriter<StdoutLock<'static>>,
    verbosity: Verbosity,
}

impl Console {
    /// The console of this process.
    pub fn new(verbosity: Verbosity) -> Self {
        Self { out: BufWriter::with_capacity(1 << 16, io::stdout().lock()), verbosity }
    }

    /// How much may be said.
    pub fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// Standard output, buffered.
    pub fn out(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// Writes a line to standard output.
    ///
    /// # Errors
    /// When standard output is closed or full.
    pub fn line(&mut self, line: impl std::fmt::Display) -> Result<(), CliError> {
        writeln!(self.out, "{line}").map_err(CliError::Stdout)
    }

    /// Writes a value as indented JSON to standard output.
    ///
    /// # Errors
    /// When standard output is closed or full.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        serde_json::to_writer_pretty(&mut self.out, value).map_err(|e| CliError::Stdout(e.into()))?;
        writeln!(self.out).map_err(CliError::Stdout)
    }

    /// Says something on standard error, unless `-q` was given.
    pub fn note(&self, note: impl std::fmt::Display) {
        if self.verbosity > Verbosity::Quiet {
            // Nothing can be done when standard error is closed.
            let _ = writeln!(io::stderr().lock(), "note: {note}");
        }
    }

    /// A progress bar of `steps` steps on standard error. It draws nothing within the first second,
    /// nor with `-q`, nor where standard error is no terminal.
    pub fn progress(&self, what: &'static str, steps: u64) -> ProgressBar {
        let hidden = self.verbosity == Verbosity::Quiet || steps < 2 || !io::stderr().is_terminal();
        if hidden {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr_with_hz(4));
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} ({eta} left)") {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_secs(1));
        bar
    }

    /// Sends what is buffered.
    ///
    /// # Errors
    /// When standard output is closed or full.
    pub fn flush(&mut self) -> Result<(), CliError> {
        self.out.flush().map_err(CliError::Stdout)
    }
}
