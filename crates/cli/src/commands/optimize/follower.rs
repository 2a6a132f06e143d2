//! What follows a search: writes and shows what it finds.

use super::{Goal, INTERRUPTED, rate, standing, value};
use crate::analysis::floor::Floor;
use crate::analysis::run::Verdict;
use crate::commands::plan;
use crate::console::Progress as Bar;
use crate::error::CliError;
use crate::report::grouped;
use crate::resolve::Task;
use spillbench_core::formats::output::FileSet;
use spillbench_core::formats::plan_json::PlanDocument;
use spillbench_core::plan::SearchSettings;
use spillbench_core::{Machine, Plan};
use spillbench_search::{Monitor, Progress};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Writes and shows what the search finds.
pub(super) struct Follower<'a> {
    pub task: &'a Task,
    pub machine: &'a Machine,
    pub goal: Goal,
    pub floor: &'a Floor,
    /// Set when the best plan meets the bound.
    pub proven: &'a AtomicBool,
    pub settings: SearchSettings,
    pub out: Option<&'a Path>,
    pub trace: Option<&'a Path>,
    /// The trace so far.
    pub lines: String,
    pub started: Instant,
    pub bar: Bar,
    pub verbose: bool,
    pub written: Vec<PathBuf>,
    pub failure: Option<CliError>,
}

impl Follower<'_> {
    fn write(&mut self, plan: &Plan) -> Result<(), CliError> {
        if let Some(directory) = self.out {
            let metrics = Verdict::of(&self.task.graph, self.machine, plan).ok().and_then(|v| v.metrics);
            let settings = Some(self.settings.clone().into());
            let document = PlanDocument { task: self.task.name.clone(), settings, plan: plan.clone(), metrics };
            self.written = plan::write(FileSet::new(directory)?, &document)?;
        }
        if let Some(trace) = self.trace {
            let directory = trace.parent().unwrap_or(Path::new(""));
            let name = trace.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            let mut files = FileSet::new(directory)?;
            files.add(name, self.lines.as_bytes())?;
            files.commit()?;
        }
        Ok(())
    }
}

impl Monitor for Follower<'_> {
    fn improved(&mut self, plan: &Plan, progress: Progress) {
        let seconds = self.started.elapsed().as_secs_f64();
        // Writing to a string does not fail.
        let _ = writeln!(self.lines, "{},{seconds:.3},{}", progress.evaluations, progress.best);
        if self.verbose {
            let (evaluations, best) = (grouped(progress.evaluations), value(progress.best));
            eprintln!("{seconds:9.3} s, {evaluations} evaluations: {} {best}", self.goal.name());
        }
        if let Err(error) = self.write(plan) {
            INTERRUPTED.store(true, Ordering::Relaxed);
            self.failure.get_or_insert(error);
        }
    }

    fn met(&mut self, progress: Progress) {
        let rate = grouped(rate(progress.evaluations, self.started.elapsed()) as u64);
        let bound = self.floor.value();
        self.proven.fetch_or(bound.is_some_and(|bound| progress.best <= bound), Ordering::Relaxed);
        let standing = standing(self.goal, progress, bound);
        self.bar.say(format!("{standing}; {} evaluations, {rate}/s", grouped(progress.evaluations)));
    }
}
