//! `spillbench plan`: plans a schedule, checks the plan, shows and writes it.

use crate::analysis::gap::{Bounds, Gap};
use crate::analysis::run::{Figures, Run, Verdict, milliseconds};
use crate::args::{GapArgs, GraphArgs, LogArgs, PlanningArgs};
use crate::console::{Console, Outcome, Verbosity};
use crate::error::CliError;
use crate::outputs::Outputs;
use crate::report::{self, count, grouped};
use crate::resolve::{self, MEMORY_TXT, PLAN_JSON, Prepared, SCHEDULE_TXT, SPILL_TXT, Task};
use crate::trace::DecisionLog;
use clap::Args;
use serde::Serialize;
use spillbench_bounds::attribution::When;
use spillbench_core::formats::output::FileSet;
use spillbench_core::formats::plan_json::{self, PlanDocument};
use spillbench_core::formats::plan_text;
use spillbench_core::plan::{Counters, Settings};
use spillbench_core::planner::{Observer, Workspace};
use spillbench_core::{Bytes, Machine};
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of `plan`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench plan Conv_Case0.json --heuristic belady --out plans/\n  \
    spillbench plan Conv_Case0.json --capacity L1=3072 --strategies postpone-first -v\n  \
    spillbench plan Conv_Case0.json --reserve L1:512@100..2000\n\n\
    Without --out nothing is written. Exit status: 0 when there is a plan, 1 when it turns out not to be valid\n\
    (a defect), 2 when something cannot be read or written, or no plan exists.")]
pub struct PlanArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// The directory to write into.
    #[arg(
        long,
        value_name = "DIR",
        help = "Write <TASK>_schedule.txt, <TASK>_memory.txt, <TASK>_spill.txt and <TASK>_plan.json into this directory"
    )]
    out: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) log: LogArgs,
    #[command(flatten)]
    gap: GapArgs,
    #[command(flatten)]
    planning: PlanningArgs,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Planned<'a> {
    task: &'a str,
    settings: &'a Settings,
    #[serde(flatten)]
    figures: Figures<'a>,
    #[serde(flatten)]
    gap: Gap,
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
        // A directory that cannot be made is told before any work.
        let files = self.out.as_ref().map(FileSet::new).transpose()?;
        let when = resolve::when(&self.gap.bound)?;
        let Prepared { task, hardware, machine, policy, normalize, schedule, .. } =
            resolve::prepare(&self.graph, &self.planning, console)?;
        Outputs::new().plan("--out", self.out.as_deref(), &task.name).check()?;
        let reading = started.elapsed();
        let mut log = (console.verbosity() == Verbosity::Verbose).then(|| DecisionLog::to_stderr(&task.graph));
        let observer = log.as_mut().map(|log| log as &mut dyn Observer);
        let planning = console.progress("planning and checking", 1);
        let run = Run::new((&task.graph, &machine, &schedule), &policy, &mut Workspace::default(), observer)
            .map_err(|e| resolve::run_error(&task, &hardware, e))?;
        drop((log, planning));
        let settings = resolve::settings(&policy, normalize, hardware.clone());
        if !run.verdict.report.is_valid() {
            console.line("The plan is not valid: this is a defect of the planner; nothing is written.")?;
            report::violations(&run.verdict.report, console)?;
            return Ok(Outcome::Refuted);
        }
        let Run { plan, verdict, planning, checking } = run;
        let metrics = verdict.metrics.clone();
        let moved = metrics.as_ref().map_or(Bytes(0), |m| m.extra_movement);
        let bounding = console.progress("bounding", 1);
        let gap = Bounds::new((&task.graph, &machine, &schedule), when).of(&plan, moved);
        let gap = gap.map_err(|e| resolve::run_error(&task, &hardware, e))?;
        drop(bounding);
        if let Some(cover) = gap.bound_cover {
            report::note_reservations(&task.graph, &machine, cover, console);
        }
        report::note_energy(&machine, &hardware, metrics.as_ref(), console);
        let document = PlanDocument { task: task.name.clone(), settings: Some(settings.clone().into()), plan, metrics };
        let written = files.map(|files| write(files, &document)).transpose()?;
        let shown = Shown { task: &task, settings: &settings, document: &document, verdict: &verdict, gap, when };
        if self.json {
            shown.json(milliseconds(planning), console)?;
        } else {
            shown.print(&machine, console)?;
            console.line(format_args!(
                "Planned in {:.1} ms; read in {:.1}, checked and measured in {:.1}.",
                milliseconds(planning),
                milliseconds(reading),
                milliseconds(checking)
            ))?;
            console.line(where_written(written))?;
        }
        Ok(Outcome::Done)
    }
}

/// Writes the three text files and, last, the document.
///
/// The document is what counts: its one rename replaces a whole plan by a whole plan, while a process
/// killed between the renames of the texts leaves some of either plan. Readers therefore prefer it,
/// and where there is none yet it is put there first, so that no mixture ever stands alone.
pub(super) fn write(mut files: FileSet, document: &PlanDocument) -> Result<Vec<PathBuf>, CliError> {
    let PlanDocument { task, plan, .. } = document;
    let name = format!("{task}{PLAN_JSON}");
    if !files.path(&name).exists() {
        files.write(&name, |out| plan_json::write(document, out))?;
        files.commit_so_far()?;
    }
    files.write(&format!("{task}{SCHEDULE_TXT}"), |out| plan_text::write_schedule(plan, out))?;
    files.write(&format!("{task}{MEMORY_TXT}"), |out| plan_text::write_memory(plan, out))?;
    files.write(&format!("{task}{SPILL_TXT}"), |out| plan_text::write_spills(plan, out))?;
    files.write(&name, |out| plan_json::write(document, out))?;
    Ok(files.commit()?)
}

/// Where a plan was written, in one line.
pub(super) fn where_written(paths: Option<Vec<PathBuf>>) -> String {
    let Some(paths) = paths else {
        return "Nothing is written: --out DIR names a directory for the plan.".to_owned();
    };
    let paths: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    format!("Written: {}", paths.join(", "))
}

/// A valid plan as it is shown.
struct Shown<'a> {
    task: &'a Task,
    settings: &'a Settings,
    document: &'a PlanDocument,
    verdict: &'a Verdict,
    gap: Gap,
    when: When,
}

impl Shown<'_> {
    fn json(&self, elapsed_ms: f64, console: &mut Console) -> Result<(), CliError> {
        console.json(&Planned {
            task: &self.task.name,
            settings: self.settings,
            figures: self.verdict.figures(),
            gap: self.gap,
            counters: self.document.plan.counters,
            elapsed_ms,
        })
    }

    fn print(&self, machine: &Machine, console: &mut Console) -> Result<(), CliError> {
        console.line(report::headline(self.task, self.settings))?;
        if let Some(metrics) = &self.verdict.metrics {
            console.line(format_args!("\n{}", report::figures(&self.task.graph, machine, metrics)))?;
        }
        report::gap(&self.gap, self.when).map_or(Ok(()), |line| console.line(line))?;
        self.document.plan.counters.map_or(Ok(()), |counters| console.line(requests(&counters)))
    }
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
    let mut text =
        format!("{} for space, {} found no hole", count(c.requests as usize, "request"), grouped(c.failed_requests));
    if !met.is_empty() {
        text.push_str(&format!(": {}", met.join(", ")));
    }
    if c.repacks > 0 {
        text.push_str(&format!(" ({})", count(c.repacks as usize, "repack")));
    }
    if c.prefetched > 0 {
        text.push_str(&format!("; {} prefetched", count(c.prefetched as usize, "reload")));
    }
    if c.cycles_saved > 0 {
        text.push_str(&format!("; retiming saved {}", count(c.cycles_saved as usize, "cycle")));
    }
    if c.reserved > 0 {
        text.push_str(&format!("; {} out of the way of reservations", count(c.reserved as usize, "buffer")));
    }
    text + "."
}
