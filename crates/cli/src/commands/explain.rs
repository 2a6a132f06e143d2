//! `spillbench explain`: why a plan spills, and what would save most.

mod print;

use crate::analysis::explain::{Collector, Explanation, Setting, WhatIf, explain, what_if};
use crate::analysis::gap::{Gap, excess};
use crate::analysis::run::{Figures, Run, milliseconds};
use crate::args::{GapArgs, GraphArgs, LogArgs, PlanningArgs};
use crate::console::{Console, Outcome, Verbosity};
use crate::error::CliError;
use crate::report;
use crate::resolve::{self, Prepared, Task};
use crate::trace::DecisionLog;
use clap::Args;
use serde::Serialize;
use spillbench_bounds::Attribution;
use spillbench_core::plan::Settings;
use spillbench_core::planner::{Clearing, Decision, Observer, Workspace};
use std::time::Instant;

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench explain Conv_Case0.json\n  \
    spillbench explain Conv_Case0.json --heuristic belady --top 3 --capacity L1=3072\n\n\
    Positions are places in the schedule of the plan, spill nodes included, counted from 0. What is moved\n\
    is split into what capacity forces (a lower bound), what this order forces beyond the best known one\n\
    (--best-order), what the choice of victims adds, and what contiguous addresses add. What goes out of\n\
    the way of a reservation answers no request, and is told apart.\n\n\
    Exit status: 0 when there is a plan, 1 when it turns out not to be valid (a defect), 2 when something\n\
    cannot be read or no plan exists.")]
pub struct ExplainArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// How many requests, buffers and changes are shown
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 5)]
    top: usize,
    /// Show all of them
    #[arg(long, conflicts_with = "top")]
    all: bool,
    /// Do not plan again with single changes
    #[arg(long)]
    no_what_if: bool,
    /// The best order known: a file, or an order of `spillbench list orders`; its bound is what
    /// capacity alone forces
    #[arg(long, value_name = "FILE|ORDER")]
    best_order: Option<String>,
    #[command(flatten)]
    gap: GapArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) log: LogArgs,
    #[command(flatten)]
    planning: PlanningArgs,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Explained<'a> {
    task: &'a str,
    settings: &'a Settings,
    #[serde(flatten)]
    figures: Figures<'a>,
    #[serde(flatten)]
    explanation: &'a Explanation,
    #[serde(flatten)]
    gap: Gap,
    attribution: Option<Attribution>,
    what_if: &'a [WhatIf],
    /// Milliseconds that everything but reading took.
    elapsed_ms: f64,
}

/// Collects decisions and, with `-v`, logs them too.
struct Both<'a, L: Observer>(&'a mut Collector, Option<L>);

impl<L: Observer> Observer for Both<'_, L> {
    fn decided(&mut self, decision: &Decision<'_>) {
        self.0.decided(decision);
        if let Some(log) = &mut self.1 {
            log.decided(decision);
        }
    }

    fn cleared(&mut self, clearing: &Clearing<'_>) {
        self.0.cleared(clearing);
        if let Some(log) = &mut self.1 {
            log.cleared(clearing);
        }
    }
}

impl ExplainArgs {
    /// Plans, explains, and plans again with each change.
    ///
    /// # Errors
    /// When an input cannot be read or no plan exists.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let when = resolve::when(&self.gap.bound)?;
        let Prepared { task, hardware, machine, policy, normalize, given, schedule } =
            resolve::prepare(&self.graph, &self.planning, console)?;
        let started = Instant::now();
        let mut collector = Collector::default();
        let log = (console.verbosity() == Verbosity::Verbose).then(|| DecisionLog::to_stderr(&task.graph));
        let mut observer = Both(&mut collector, log);
        let inputs = (&task.graph, &machine, &schedule);
        let planning = console.progress("planning and checking", 1);
        let run = Run::new(inputs, &policy, &mut Workspace::default(), Some(&mut observer))
            .map_err(|e| resolve::run_error(&task, &hardware, e))?;
        drop((observer, planning));
        let settings = resolve::settings(&policy, normalize, hardware.clone());
        if !run.verdict.report.is_valid() {
            console.line("The plan is not valid: this is a defect of the planner.")?;
            report::violations(&run.verdict.report, console)?;
            return Ok(Outcome::Refuted);
        }
        let best = self.best_order.as_deref().map(|name| resolve::named_schedule(name, &task, &machine)).transpose()?;
        let best = best.map(|schedule| schedule.normalized(&task.graph, normalize));
        let excess = excess(inputs, &policy, &run, (best.as_ref(), when))
            .map_err(|e| resolve::run_error(&task, &hardware, e))?;
        if let Some(cover) = excess.gap.bound_cover {
            report::note_reservations(&task.graph, &machine, cover, console);
        }
        let top = if self.all { usize::MAX } else { self.top };
        let explanation = explain(&task.graph, &machine, &run, &collector, top)
            .map_err(|e| resolve::run_error(&task, &hardware, e))?;
        let setting = Setting { graph: &task.graph, hardware: &hardware, given: &given, normalize, policy: &policy };
        let changes = self.what_if(&setting, &schedule, &run, &collector, &task, console)?;
        if self.json {
            console.json(&Explained {
                task: &task.name,
                settings: &settings,
                figures: run.verdict.figures(),
                explanation: &explanation,
                gap: excess.gap,
                attribution: excess.attribution,
                what_if: &changes,
                elapsed_ms: milliseconds(started.elapsed()),
            })?;
        } else {
            console.line(report::headline(&task, &settings))?;
            print::explanation(&explanation, &run, console)?;
            print::excess_of(&excess, when, console)?;
            print::changes(&changes, &run, top, console)?;
        }
        Ok(Outcome::Done)
    }

    fn what_if(
        &self,
        setting: &Setting<'_>,
        normalized: &spillbench_core::Schedule,
        run: &Run,
        collector: &Collector,
        task: &Task,
        console: &Console,
    ) -> Result<Vec<WhatIf>, CliError> {
        if self.no_what_if || collector.is_empty() {
            return Ok(Vec::new());
        }
        let changes = setting.changes(&collector.pressed(setting.graph));
        let progress = console.progress("planning with single changes", changes.len() as u64);
        let outcomes = what_if(setting, normalized, run, changes, || progress.step());
        outcomes.map_err(|e| resolve::run_error(task, setting.hardware, e))
    }
}
