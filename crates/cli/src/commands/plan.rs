//! `spillbench plan`: plans a schedule, checks the plan, shows and writes it.

use crate::analysis::run::{Figures, Run, milliseconds};
use crate::args::{GraphArgs, HardwareArgs, HeuristicArgs, PlannerArgs, ScheduleArgs};
use crate::console::{Console, Outcome, Verbosity};
use crate::error::CliError;
use crate::report::{self, count, grouped};
use crate::resolve::{self, Task};
use crate::trace::DecisionLog;
use clap::Args;
use serde::Serialize;
use spillbench_core::Machine;
use spillbench_core::plan::{Counters, Settings};
use spillbench_core::planner::{Observer, Workspace};
use std::time::{Duration, Instant};

/// Arguments of `plan`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench plan Conv_Case0.json --heuristic belady\n  \
    spillbench plan Conv_Case0.json --capacity L1=3072 --strategies postpone-first -v")]
pub struct PlanArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    schedule: ScheduleArgs,
    #[command(flatten)]
    heuristic: HeuristicArgs,
    #[command(flatten)]
    planner: PlannerArgs,
    #[command(flatten)]
    hardware: HardwareArgs,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Planned<'a> {
    task: &'a str,
    settings: &'a Settings,
    #[serde(flatten)]
    figures: Figures<'a>,
    counters: Option<Counters>,
    /// Milliseconds that planning took, reading and checking left out.
    elapsed_ms: f64,
}

impl PlanArgs {
    /// Plans, checks, writes and shows.
    ///
    /// # Errors
    /// When an input cannot be read, no plan exists, or the files cannot be written.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let started = Instant::now();
        let hardware = resolve::hardware(&self.hardware)?;
        let policy = resolve::policy(&self.heuristic.heuristic, &self.planner)?;
        let normalize = resolve::normalize(&self.schedule.normalize)?;
        let task = resolve::task(&self.graph, console)?;
        let schedule = resolve::schedule(&self.schedule, &task)?;
        let machine = resolve::machine(&task, &hardware)?;
        let reading = started.elapsed();
        let mut log = (console.verbosity() == Verbosity::Verbose).then(|| DecisionLog::to_stderr(&task.graph));
        let observer = log.as_mut().map(|log| log as &mut dyn Observer);
        let run = Run::new((&task.graph, &machine, &schedule), &policy, &mut Workspace::default(), observer)
            .map_err(|e| resolve::run_error(&task, &hardware, e))?;
        drop(log);
        let settings = resolve::settings(&policy, normalize, hardware);
        let outcome = if run.verdict.report.is_valid() { Outcome::Done } else { Outcome::Refuted };
        if self.json {
            let (figures, counters, elapsed_ms) =
                (run.verdict.figures(), run.plan.counters, milliseconds(run.planning));
            console.json(&Planned { task: &task.name, settings: &settings, figures, counters, elapsed_ms })?;
        } else {
            print(&task, &machine, &settings, &run, reading, console)?;
        }
        Ok(outcome)
    }
}

fn print(
    task: &Task,
    machine: &Machine,
    settings: &Settings,
    run: &Run,
    reading: Duration,
    console: &mut Console,
) -> Result<(), CliError> {
    console.line(format_args!(
        "{} on {}: {}, {}; {}, {}, {}, normalize {}",
        task.name,
        settings.hardware.name,
        count(task.graph.node_count(), "node"),
        count(task.graph.buffer_count(), "buffer"),
        settings.heuristic,
        if settings.strategies.is_empty() { "no strategy".to_owned() } else { settings.strategies.join("+") },
        settings.placement,
        resolve::normalize_name(settings.normalize),
    ))?;
    if let Some(metrics) = &run.verdict.metrics {
        console.line(format_args!("\n{}", report::figures(&task.graph, machine, metrics)))?;
    } else {
        console.line("\nThe plan is not valid: this is a defect of the planner.")?;
        report::violations(&run.verdict.report, console)?;
    }
    if let Some(counters) = &run.plan.counters {
        console.line(requests(counters))?;
    }
    console.line(format_args!(
        "Planned in {:.1} ms; read in {:.1}, checked and measured in {:.1}.",
        milliseconds(run.planning),
        milliseconds(reading),
        milliseconds(run.checking)
    ))
}

/// What the planner did, in one sentence.
fn requests(c: &Counters) -> String {
    let met = [
        ("single", c.single),
        ("multi", c.multi),
        ("window", c.window),
        ("postponed", c.postponed),
        ("last resort", c.last_resort),
    ];
    let met: Vec<_> = met.iter().filter(|m| m.1 > 0).map(|m| format!("{} {}", m.0, grouped(m.1))).collect();
    let mut text = format!("{} requests for space, {} found no hole", grouped(c.requests), grouped(c.failed_requests));
    if !met.is_empty() {
        text.push_str(&format!(": {}", met.join(", ")));
    }
    if c.repacks > 0 {
        text.push_str(&format!(" ({} repacks)", grouped(c.repacks)));
    }
    if c.prefetched > 0 {
        text.push_str(&format!("; {} reloads prefetched", grouped(c.prefetched)));
    }
    text + "."
}
