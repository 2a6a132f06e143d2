//! `spillbench check`: is a plan valid, and what does it cost?

use crate::analysis::run::{Figures, Verdict, milliseconds};
use crate::args::{GraphArgs, HardwareArgs, PlanFilesArgs};
use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::report::{self, count};
use crate::resolve::{self, Claims, PlanSource, Task};
use clap::Args;
use serde::Serialize;
use spillbench_core::plan::Origin;
use spillbench_core::{Hardware, Machine, Shown};
use std::time::Instant;

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench check Conv_Case0.json --plan plans/\n  \
    spillbench check Conv_Case0.json --schedule s.txt --memory m.txt --spill p.txt --json\n\n\
    Exit status: 0 when the plan is valid, 1 when it is not, 2 when something cannot be read\n\
    or no plan can exist.")]
pub struct CheckArgs {
    #[command(flatten)]
    graph: GraphArgs,
    #[command(flatten)]
    plan: PlanFilesArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    hardware: HardwareArgs,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Checked<'a> {
    task: &'a str,
    plan: &'a str,
    hardware: &'a Hardware,
    #[serde(flatten)]
    figures: Figures<'a>,
    /// Milliseconds that checking and measuring took.
    elapsed_ms: f64,
}

impl CheckArgs {
    /// Checks the plan.
    ///
    /// # Errors
    /// When something cannot be read.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let hardware = resolve::hardware(&self.hardware)?;
        let task = resolve::task(&self.graph, console)?;
        let machine = resolve::machine(&task, &hardware)?;
        let source = resolve::plan_files(&self.plan, &task.name, console)?;
        let checking = console.progress("checking", 1);
        let started = Instant::now();
        let verdict = Verdict::of(&task.graph, &machine, &source.plan)
            .map_err(|e| resolve::run_error(&task, &hardware, e.into()))?;
        let elapsed_ms = milliseconds(started.elapsed());
        drop(checking);
        note_differences(&source, &task, &hardware, &verdict, console);
        report::note_energy(&machine, &hardware, verdict.metrics.as_ref(), console);
        if self.json {
            let figures = verdict.figures();
            let (plan, hardware) = (source.origin.as_str(), &hardware);
            console.json(&Checked { task: &task.name, plan, hardware, figures, elapsed_ms })?;
        } else {
            print(&task, &machine, &hardware, &source, &verdict, console)?;
        }
        Ok(if verdict.report.is_valid() { Outcome::Done } else { Outcome::Refuted })
    }
}

/// Says where a plan document claims what does not hold here.
fn note_differences(source: &PlanSource, task: &Task, hardware: &Hardware, verdict: &Verdict, console: &Console) {
    let Some(claims) = &source.claims else { return };
    if claims.task != task.name {
        let (claimed, name) = (Shown(&claims.task), Shown(&task.name));
        console.note(format_args!("the document is of task \"{claimed}\", checked against \"{name}\""));
    }
    match claims.settings.as_ref().map(Origin::hardware) {
        Some(made) if same_hardware(made, hardware) => note_figures(claims, verdict, console),
        Some(made) if made.name == hardware.name => console.note(format_args!(
            "the plan was made for another {} ({}); --hardware, --capacity, --reserve and --spill-cost set what it is \
             checked on",
            Shown(&hardware.name),
            difference(made, hardware)
        )),
        Some(made) => console.note(format_args!(
            "the plan was made for {}, and is checked on {}; --hardware, --capacity and --reserve set the latter",
            Shown(&made.name),
            Shown(&hardware.name)
        )),
        None => note_figures(claims, verdict, console),
    }
}

fn note_figures(claims: &Claims, verdict: &Verdict, console: &Console) {
    if claims.metrics.is_some() && verdict.metrics.is_some() && claims.metrics != verdict.metrics {
        console.note("the figures in the document are not those of its plan; shown are the measured ones");
    }
}

/// What two descriptions of one name do not agree on.
fn difference(a: &Hardware, b: &Hardware) -> &'static str {
    if a.reservations != b.reservations {
        return "other reservations";
    }
    match (a.caches == b.caches, a.spill_cost == b.spill_cost) {
        (true, true) => "another energy model",
        (true, false) => "another spill cost",
        (false, true) => "other caches",
        (false, false) => "other caches and another spill cost",
    }
}

/// True when two descriptions mean the same, whatever they are called.
fn same_hardware(a: &Hardware, b: &Hardware) -> bool {
    (&a.caches, &a.reservations, a.spill_cost, &a.energy) == (&b.caches, &b.reservations, b.spill_cost, &b.energy)
}

fn print(
    task: &Task,
    machine: &Machine,
    hardware: &Hardware,
    source: &PlanSource,
    verdict: &Verdict,
    console: &mut Console,
) -> Result<(), CliError> {
    let what = format!("{} with the plan {} on {}", Shown(&task.name), source.origin, Shown(&hardware.name));
    match &verdict.metrics {
        Some(metrics) => {
            let nodes = count(task.graph.node_count(), "node");
            let buffers = count(task.graph.buffer_count(), "buffer");
            console.line(format_args!("valid: {what} ({nodes}, {buffers})\n"))?;
            console.line(report::figures(&task.graph, machine, metrics))
        }
        None => {
            console.line(format_args!("not valid: {what}, {}", count(verdict.report.total() as usize, "violation")))?;
            report::violations(&verdict.report, console)?;
            verdict.movement().map_or(Ok(()), |movement| {
                console.line(format_args!("{}; other figures are for valid plans only.", report::movement(movement)))
            })
        }
    }
}
