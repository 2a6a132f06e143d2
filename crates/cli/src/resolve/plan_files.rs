//! From `--plan`, or `--schedule`, `--memory` and `--spill`, to a plan.

use super::{in_file, read};
use crate::args::PlanFilesArgs;
use crate::console::Console;
use crate::error::CliError;
use crate::input::Expect;
use spillbench_core::formats::plan_json::{self, PlanDocument};
use spillbench_core::formats::plan_text;
use spillbench_core::metrics::Metrics;
use spillbench_core::plan::{Origin, Plan};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Endings of the names of plan files, after the name of the task.
pub const SCHEDULE_TXT: &str = "_schedule.txt";
/// See [`SCHEDULE_TXT`].
pub const MEMORY_TXT: &str = "_memory.txt";
/// See [`SCHEDULE_TXT`].
pub const SPILL_TXT: &str = "_spill.txt";
/// See [`SCHEDULE_TXT`].
pub const PLAN_JSON: &str = "_plan.json";

/// A plan with where it came from and, for plan documents, how it says it was made.
#[derive(Debug)]
pub struct PlanSource {
    /// The plan.
    pub plan: Plan,
    /// What it came from, for messages.
    pub origin: String,
    /// What its document claims beside the plan; `None` for text files.
    pub claims: Option<Claims>,
}

/// What a plan document says of its plan.
#[derive(Debug)]
pub struct Claims {
    /// The task.
    pub task: String,
    /// How the plan was made.
    pub settings: Option<Origin>,
    /// What it measures.
    pub metrics: Option<Metrics>,
}

/// The three text files of a plan.
struct TextFiles {
    schedule: PathBuf,
    memory: PathBuf,
    spill: PathBuf,
}

/// Reads the plan of a task.
///
/// # Errors
/// When a file is missing or cannot be read.
pub fn plan_files(args: &PlanFilesArgs, task: &str, console: &Console) -> Result<PlanSource, CliError> {
    match (&args.plan, &args.schedule, &args.memory, &args.spill) {
        (Some(path), ..) if path.is_dir() => from_dir(path, task, console),
        (Some(path), ..) => from_document(path),
        (None, Some(schedule), Some(memory), Some(spill)) => {
            let files = TextFiles { schedule: schedule.clone(), memory: memory.clone(), spill: spill.clone() };
            let origin = format!("{}, {}, {}", schedule.display(), memory.display(), spill.display());
            Ok(PlanSource { plan: files.read()?, origin, claims: None })
        }
        (None, schedule, memory, spill) => {
            let options = [("--schedule", schedule), ("--memory", memory), ("--spill", spill)];
            let missing: Vec<_> = options.iter().filter(|o| o.1.is_none()).map(|o| o.0).collect();
            Err(CliError::usage(
                if missing.len() == 3 {
                    "no plan is given".to_owned()
                } else {
                    format!("{} missing", missing.join(", "))
                },
                "give --plan DIR, --plan FILE.json, or all three of --schedule, --memory and --spill",
            ))
        }
    }
}

impl TextFiles {
    fn of(dir: &Path, task: &str) -> Self {
        let file = |suffix| dir.join(format!("{task}{suffix}"));
        Self { schedule: file(SCHEDULE_TXT), memory: file(MEMORY_TXT), spill: file(SPILL_TXT) }
    }

    fn missing(&self) -> Vec<String> {
        let all = [&self.schedule, &self.memory, &self.spill];
        all.into_iter().filter(|p| !p.exists()).map(|p| file_name(p)).collect()
    }

    fn read(&self) -> Result<Plan, CliError> {
        let text = |path: &Path| read(path, Expect::Pairs);
        Ok(Plan {
            schedule: plan_text::read_schedule(&read(&self.schedule, Expect::Numbers)?)
                .map_err(in_file(&self.schedule))?,
            memory: plan_text::read_memory(&text(&self.memory)?).map_err(in_file(&self.memory))?,
            spills: plan_text::read_spills(&text(&self.spill)?).map_err(in_file(&self.spill))?,
            counters: None,
        })
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn from_document(path: &Path) -> Result<PlanSource, CliError> {
    let document = plan_json::read(&read(path, Expect::Plan)?).map_err(in_file(path))?;
    let PlanDocument { task, settings, plan, metrics } = document;
    Ok(PlanSource { plan, origin: path.display().to_string(), claims: Some(Claims { task, settings, metrics }) })
}

/// The plan of a task among the files of a directory: the document where there is one, otherwise the
/// three text files.
fn from_dir(dir: &Path, task: &str, console: &Console) -> Result<PlanSource, CliError> {
    let (document, texts) = (dir.join(format!("{task}{PLAN_JSON}")), TextFiles::of(dir, task));
    let missing = texts.missing();
    if document.exists() {
        let source = from_document(&document)?;
        // A process killed while it replaced a plan leaves text files of two plans, or not all.
        let same = missing.is_empty().then(|| texts.read().is_ok_and(|plan| same_plan(&plan, &source.plan)));
        if same == Some(false) || (1..3).contains(&missing.len()) {
            console.note(format_args!(
                "the text files of {task} beside {} do not hold its plan, which is the one that counts; to check \
                 them, give --schedule, --memory and --spill",
                document.display()
            ));
        }
        return Ok(source);
    }
    if missing.is_empty() {
        let origin = format!("{}{{schedule,memory,spill}}.txt", dir.join(format!("{task}_")).display());
        return Ok(PlanSource { plan: texts.read()?, origin, claims: None });
    }
    Err(missing_files(dir, task, &missing))
}

/// True when two plans say the same, causes and counters left out.
fn same_plan(a: &Plan, b: &Plan) -> bool {
    let moves = |plan: &Plan| plan.spills.iter().map(|s| (s.buf, s.offset)).collect::<Vec<_>>();
    a.schedule == b.schedule && a.memory == b.memory && moves(a) == moves(b)
}

fn missing_files(dir: &Path, task: &str, missing: &[String]) -> CliError {
    let there = tasks_in(dir);
    let what = format!("{}: no {task}{PLAN_JSON}, and no {} either", dir.display(), missing.join(", no "));
    let help = if there.is_empty() {
        "the directory holds no plan at all; `spillbench plan GRAPH --out DIR` writes one".to_owned()
    } else {
        let shown: Vec<_> = there.iter().take(10).map(String::as_str).collect();
        let more = there.len() - shown.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("there are plans of {}{more}; give --task NAME if the graph has another name", shown.join(", "))
    };
    CliError::usage(what, help)
}

/// The tasks whose plans a directory holds, whole or in part.
fn tasks_in(dir: &Path) -> BTreeSet<String> {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let task = |name: String| {
        [SCHEDULE_TXT, MEMORY_TXT, SPILL_TXT, PLAN_JSON].iter().find_map(|s| name.strip_suffix(s)).map(str::to_owned)
    };
    names.filter_map(task).collect()
}
