//! Where output goes: results to standard output, buffered; notes and progress to standard error.

use crate::error::CliError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
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
    /// Exit status 1: the answer is no, such as a plan that is not valid, or none within a limit.
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

/// Standard output, which whoever reads it may close: what is written after that goes nowhere, so
/// that a command still ends as it would have.
#[derive(Debug)]
struct Patient<W> {
    to: W,
    closed: bool,
}

impl<W: Write> Patient<W> {
    fn forgive<T>(&mut self, result: io::Result<T>, instead: T) -> io::Result<T> {
        match result {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(instead)
            }
            other => other,
        }
    }
}

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let written = self.to.write(bytes);
        self.forgive(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.to.flush();
        self.forgive(flushed, ())
    }
}

/// The output of one run.
#[derive(Debug)]
pub struct Console {
    out: BufWriter<Patient<StdoutLock<'static>>>,
    verbosity: Verbosity,
}

impl Console {
    /// The console of this process.
    pub fn new(verbosity: Verbosity) -> Self {
        let stdout = Patient { to: io::stdout().lock(), closed: false };
        Self { out: BufWriter::with_capacity(1 << 16, stdout), verbosity }
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
    /// When standard output cannot be written.
    pub fn line(&mut self, line: impl std::fmt::Display) -> Result<(), CliError> {
        writeln!(self.out, "{line}").map_err(CliError::Stdout)
    }

    /// Writes a value as indented JSON to standard output.
    ///
    /// # Errors
    /// When standard output cannot be written.
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

    /// Shows progress on standard error while the result lives: of `steps` steps, or without a
    /// measure where there is only one. Nothing is shown within the first second, with `-q`, with
    /// `-v` (whose lines are progress enough), nor where standard error is no terminal.
    pub fn progress(&self, what: &'static str, steps: u64) -> Progress {
        let shown = self.verbosity == Verbosity::Normal && io::stderr().is_terminal();
        if shown { Progress::later(what, steps) } else { Progress { bar: ProgressBar::hidden(), done: None } }
    }

    /// As [`Console::progress`], for work that may take minutes: where no progress can be shown, a
    /// note says after a while what goes on, unless `-q` was given.
    pub fn long_progress(&self, what: &'static str) -> Progress {
        let quiet = self.verbosity == Verbosity::Quiet;
        let shown = self.verbosity == Verbosity::Normal && io::stderr().is_terminal();
        if quiet || shown { self.progress(what, 1) } else { Progress::noted_later(what) }
    }

    /// Sends what is buffered.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn flush(&mut self) -> Result<(), CliError> {
        self.out.flush().map_err(CliError::Stdout)
    }
}

/// Progress of one piece of work; taken off the screen when dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// Closing the channel ends the thread that waits to show the bar.
    done: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    const PATIENCE: Duration = Duration::from_secs(1);

    fn later(what: &'static str, steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let template =
            if steps > 1 { "{msg} {bar:30} {pos}/{len}, {per_sec}, {eta} left" } else { "{spinner} {msg}, {elapsed}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        let (sender, receiver) = mpsc::channel();
        let late = bar.clone();
        let waiter = std::thread::spawn(move || {
            if receiver.recv_timeout(Self::PATIENCE) == Err(RecvTimeoutError::Timeout) {
                late.set_draw_target(ProgressDrawTarget::stderr_with_hz(4));
                late.enable_steady_tick(Duration::from_millis(250));
            }
        });
        Self { bar, done: Some((sender, waiter)) }
    }

    /// One note instead of a bar.
    fn noted_later(what: &'static str) -> Self {
        let (sender, receiver) = mpsc::channel();
        let waiter = std::thread::spawn(move || {
            if receiver.recv_timeout(Self::PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // Nothing can be done when standard error is closed.
                let _ = writeln!(io::stderr().lock(), "note: still {what}");
            }
        });
        Self { bar: ProgressBar::hidden(), done: Some((sender, waiter)) }
    }

    /// Says where the work stands.
    pub fn say(&self, what: String) {
        self.bar.set_message(what);
    }

    /// Notes that a step is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, waiter)) = self.done.take() {
            drop(sender);
            // The thread only draws; that it failed would be no reason to fail.
            let _ = waiter.join();
            self.bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many writes, then is closed.
    struct Closing(usize);

    impl Write for Closing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.0.checked_sub(1) {
                Some(left) => {
                    self.0 = left;
                    Ok(bytes.len())
                }
                None => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn output_that_nobody_reads_goes_nowhere() {
        let mut out = Patient { to: Closing(1), closed: false };
        for _ in 0..3 {
            out.write_all(b"line\n").unwrap();
        }
        assert!(out.closed);
        out.flush().unwrap();
    }

    #[test]
    fn progress_ends_at_once_when_the_work_does() {
        let started = std::time::Instant::now();
        let progress = Progress::later("testing", 3);
        progress.step();
        drop(progress);
        assert!(started.elapsed() < Progress::PATIENCE);
    }
}
