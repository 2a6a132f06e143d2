//! `spillbench retime`: a faster order for a plan, its addresses and spills being as they are.

use crate::analysis::run::{Verdict, milliseconds};
use crate::args::{GraphArgs, HardwareArgs, PlanFilesArgs};
use crate::commands::plan::{where_written, write};
use crate::console::{Console, Outcome};
use crate::error::{CliError, shown};
use crate::outputs::Outputs;
use crate::report::{self, count, grouped, percent};
use crate::resolve::{self, GivenPlan, PlanSource, Task};
use clap::Args;
use serde::Serialize;
use spillbench_core::formats::output::FileSet;
use spillbench_core::formats::plan_json::PlanDocument;
use spillbench_core::planner::retime::retime;
use spillbench_core::{Bytes, Cycles, Hardware, Machine, Shown};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Arguments of `retime`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench retime Conv_Case0.json --plan plans/ --out faster/\n  \
    spillbench retime Conv_Case0.json --schedule s.txt --memory m.txt --spill p.txt --json\n\n\
    Any valid plan will do. Reloads come where their pipe is idle and their space free, spills leave early; no \
    address, no spill and so no byte of the movement changes, and a plan that does not get faster stays as it is. The \
    hardware is that of the plan document unless another is given. Without --out nothing is written.\n\n\
    Exit status: 0 when it is done, 1 when the plan is not valid, 2 when something cannot be read or written, \
    or the graph has no timing.")]
pub struct RetimeArgs {
    #[command(flatten)]
    graph: GraphArgs,
    #[command(flatten)]
    plan: PlanFilesArgs,
    /// Write the plan into this directory, as `spillbench plan --out` does
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    hardware: HardwareArgs,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    task: &'a str,
    plan: &'a str,
    hardware: &'a str,
    before: Cycles,
    after: Cycles,
    saved: Cycles,
    extra_movement: Option<Bytes>,
    /// Milliseconds that retiming took.
    elapsed_ms: f64,
}

impl RetimeArgs {
    /// Retimes the plan, checks the result, shows and writes it.
    ///
    /// # Errors
    /// When something cannot be read or written, or some op has no pipe or no cycles.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let files = self.out.as_ref().map(FileSet::new).transpose()?;
        let graph = (&*self.graph.graph, self.graph.task.as_deref());
        let GivenPlan { task, source, hardware, machine } =
            resolve::given_plan(graph, &self.plan, &self.hardware, console)?;
        Outputs::new().plan("--out", self.out.as_deref(), &task.name).check()?;
        let failed = |e| resolve::run_error(&task, &hardware, e);
        if valid_plan(&task, &machine, &hardware, &source, console)?.is_none() {
            return Ok(Outcome::Refuted);
        }
        let retiming = console.progress("retiming", 1);
        let started = Instant::now();
        let retimed = retime(&task.graph, &machine, &source.plan).map_err(|e| failed(e.into()))?;
        let retimed = ask_timed(retimed, &self.graph.graph)?;
        let elapsed_ms = milliseconds(started.elapsed());
        drop(retiming);
        let verdict = Verdict::of(&task.graph, &machine, &retimed.plan).map_err(|e| failed(e.into()))?;
        if !verdict.report.is_valid() {
            console.line("The retimed plan is not valid: this is a defect of retiming; nothing is written.")?;
            report::violations(&verdict.report, console)?;
            return Ok(Outcome::Refuted);
        }
        let (before, after, saved) = (retimed.before, retimed.after, retimed.saved());
        let origin = source.claims.and_then(|claims| claims.settings);
        let settings = origin.map(|origin| origin.retimed(hardware.clone()));
        let metrics = verdict.metrics.clone();
        let document = PlanDocument { task: task.name.clone(), settings, plan: retimed.plan, metrics };
        let written = files.map(|files| write(files, &document)).transpose()?;
        let movement = verdict.metrics.as_ref().map(|m| m.extra_movement);
        if self.json {
            let (task, plan, hardware) = (task.name.as_str(), source.origin.as_str(), hardware.name.as_str());
            let extra_movement = movement;
            console.json(&Report { task, plan, hardware, before, after, saved, extra_movement, elapsed_ms })?;
            return Ok(Outcome::Done);
        }
        console.line(format_args!(
            "{} with the plan {} on {}: {} cycles, {} as retimed; {} saved ({}) in {elapsed_ms:.1} ms.",
            Shown(&task.name),
            source.origin,
            Shown(&hardware.name),
            grouped(before),
            grouped(after),
            count(saved.0 as usize, "cycle"),
            percent(saved.0, before.0)
        ))?;
        if let Some(metrics) = &verdict.metrics {
            console.line(format_args!("{}, as before.", report::movement(&metrics.movement)))?;
        }
        console.line(where_written(written))?;
        Ok(Outcome::Done)
    }
}

/// The verdict on a plan that is valid; `None`, with all its faults told, when it is not.
pub(super) fn valid_plan(
    task: &Task,
    machine: &Machine,
    hardware: &Hardware,
    source: &PlanSource,
    console: &mut Console,
) -> Result<Option<Verdict>, CliError> {
    let verdict =
        Verdict::of(&task.graph, machine, &source.plan).map_err(|e| resolve::run_error(task, hardware, e.into()))?;
    if verdict.report.is_valid() {
        return Ok(Some(verdict));
    }
    console.line(format_args!(
        "not valid: {} with the plan {} on {}, {}",
        Shown(&task.name),
        source.origin,
        Shown(&hardware.name),
        count(verdict.report.total() as usize, "violation")
    ))?;
    report::violations(&verdict.report, console)?;
    Ok(None)
}

/// What timing gives; a graph without timing is an error of the command.
pub(super) fn ask_timed<T>(timed: Option<T>, graph: &Path) -> Result<T, CliError> {
    timed.ok_or_else(|| {
        CliError::usage(
            format!("{}: no timing, because some op has no Pipe or no Cycles", shown(graph)),
            "give every op both; `spillbench inspect` shows where they are missing",
        )
    })
}
