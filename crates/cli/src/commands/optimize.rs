//! `spillbench optimize`: searches for a schedule whose plan moves or holds less, or takes less time
//! or energy.
//!
//! Whenever a better plan is found it is written, the document by one rename, so that whoever ends the
//! search, and however, finds the best plan so far on disk.

mod follower;
mod front;
mod time;

use crate::analysis::floor::{self, Floor};
use crate::analysis::run::{RunError, Verdict};
use crate::args::{GraphArgs, HardwareArgs, parse_time};
use crate::commands::plan;
use crate::console::{Console, Outcome, Verbosity};
use crate::error::CliError;
use crate::outputs::Outputs;
use crate::report::{self, grouped};
use crate::resolve::{self, Task};
use clap::Args;
use follower::Follower;
use serde::Serialize;
use spillbench_core::checker::check;
use spillbench_core::formats::output::FileSet;
use spillbench_core::plan::SearchSettings;
use spillbench_core::{Hardware, Machine};
use spillbench_search::{
    Aim, Found, Limit, OBJECTIVES, Objective, Progress, SearchConfig, Start, TIMED_OBJECTIVES, TimedError, Until,
    Weights, objective, search, search_time,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Arguments of `optimize`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    spillbench optimize Conv_Case0.json --out plans/\n  \
    spillbench optimize Conv_Case0.json --objective peak --evaluations 100000 --seed 7\n  \
    spillbench optimize Conv_Case0.json --objective makespan --max-movement +5% --out plans/\n  \
    spillbench optimize Conv_Case0.json --objective weighted 1:2\n  \
    spillbench optimize Conv_Case0.json --pareto --out front/\n\n\
    makespan, weighted and energy first search for little movement, with 15 % of the time or half\n\
    of the evaluations, and go on from there. --max-movement +P% is relative to the least movement\n\
    found then.\n\n\
    With --evaluations and without --time, the result depends on nothing but the arguments; --jobs\n\
    only says how many threads work. Ctrl-C ends the search with the best plan so far, a second one\n\
    at once. However it ends, <TASK>_plan.json in the --out directory holds the best plan whole; a\n\
    process that is killed may leave text files of two plans, which check notices.\n\n\
    The bound holds for every schedule: for movement a quick one by partition, unless --bound-file\n\
    brings a better; for peak the operands of one op; for makespan the busiest pipe with what must\n\
    stand before and behind its work, without spills; for weighted the sum of these; for energy\n\
    none. --bound-file is verified while a search with --time goes on, otherwise before it. The gap is best - bound, over best.\n\n\
    Exit status: 0 when a plan is found, 1 when none found is within --max-movement or allowed by the\n\
    objective, 2 when something cannot be read, planned or written, 130 after a second Ctrl-C.")]
pub struct OptimizeArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// A and B of the objective weighted
    #[arg(value_name = "A:B")]
    weights: Option<Weights>,
    /// What is made small: movement, peak, makespan, weighted (A x movement + B x makespan), energy
    #[arg(long, value_name = "NAME", default_value = "movement")]
    objective: String,
    /// The most that a plan may move under the objective makespan: bytes, or percent above the least
    #[arg(long, value_name = "X|+P%")]
    max_movement: Option<Limit>,
    /// The front of movement and makespan (and energy, where the hardware states it) in place of one
    /// plan: a table, a figure, and one plan per point
    #[arg(long, conflicts_with_all = ["objective", "weights", "max_movement", "target", "trace", "bound_file"])]
    pareto: bool,
    /// How long to search, such as 500ms, 60s or 5m [default: 60s, or no limit with --evaluations]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    time: Option<Duration>,
    /// How many orders to evaluate at most, over all islands
    #[arg(long, value_name = "N")]
    evaluations: Option<u64>,
    /// What random choices start from
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Threads [default: the processors there are]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Searches that go on at once and exchange what they find; part of what determines the result
    #[arg(long, value_name = "N", default_value_t = SearchConfig::default().islands as u16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    islands: u16,
    /// What to start from: an order of `spillbench list orders`, a schedule file, or a plan by its
    /// directory or document, which the result is never worse than
    #[arg(long, value_name = "ORDER|FILE|DIR", default_value = "id")]
    start: String,
    /// End the search at a plan of at most this value
    #[arg(long, value_name = "X")]
    target: Option<u64>,
    /// A certificate of a lower bound on movement over every order: once verified, what the gap is told
    /// against, and a value at which the search ends
    #[arg(long, value_name = "CERT")]
    bound_file: Option<PathBuf>,
    /// The directory to write into.
    #[arg(long, value_name = "DIR", help = "Write the best plan into this directory whenever it improves")]
    out: Option<PathBuf>,
    /// Write each improvement into this CSV file: evaluations, seconds, value
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    hardware: HardwareArgs,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Optimized<'a> {
    task: &'a str,
    objective: &'a str,
    /// Null where the start is no plan that the objective allows.
    start: Option<u64>,
    best: Option<u64>,
    /// No plan under any schedule has less; null where no bound is known.
    bound: Option<u64>,
    /// `best - bound` over `best`.
    gap: Option<f64>,
    evaluations: u64,
    evaluations_per_second: f64,
    elapsed_ms: f64,
    /// Under objectives that time plans: what the plan may move, and the least movement found.
    max_movement: Option<u64>,
    least_movement: Option<u64>,
}

/// Set by Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

impl OptimizeArgs {
    /// Searches, and writes and shows the best plan.
    ///
    /// # Errors
    /// When an input cannot be read, no plan exists, or a file cannot be written.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        // A directory that cannot be made is told before any work.
        self.out.as_ref().map(FileSet::new).transpose()?;
        let goal = self.goal()?;
        let hardware = resolve::hardware(&self.hardware)?;
        if !hardware.reservations.is_empty() {
            return Err(CliError::usage(
                "a search does not keep to reservations",
                "search without --reserve, then plan the schedule found with it (plan --schedule)",
            ));
        }
        let task = Arc::new(resolve::task(&self.graph, console)?);
        let machine = Arc::new(resolve::machine(&task, &hardware)?);
        let (schedule, plan) = resolve::start(&self.start, &task, &machine, console)?;
        let plan = plan.filter(|plan| {
            let holds = check(&task.graph, &machine, plan).is_valid();
            if !holds {
                console.note(format_args!("{} is not valid here: only its order is taken", self.start));
            }
            holds
        });
        let start = Start { schedule: &schedule, plan: plan.as_ref() };
        // Without the handler, Ctrl-C ends the process, and the plan on disk is the best so far.
        let _ = ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
        let started = Instant::now();
        let mut floor = if self.pareto { Floor::unknown() } else { self.floor(goal, &task, &machine)? };
        self.outputs(&task.name).check()?;
        let limit = self.time.or(self.evaluations.is_none().then_some(Duration::from_secs(60)));
        if limit.is_none() && self.bound_file.is_some() {
            // What ends the search is to depend on the arguments only.
            let _waiting = console.progress("verifying the certificate", 1);
            console.note("verifying the certificate before the search");
            floor.wait(|| INTERRUPTED.load(Ordering::Relaxed));
        }
        floor.ask()?;
        let config = self.config(&floor);
        if self.pareto {
            return front::run(&self, &config, (&task, &hardware, &machine), start, (started, limit), console);
        }
        // Where time is the budget anyway, a plan that the bound proves best ends the search, too.
        let proven = AtomicBool::new(false);
        let late = |limit| proven.load(Ordering::Relaxed) || floor.is_refused() || started.elapsed() >= limit;
        let stop = || INTERRUPTED.load(Ordering::Relaxed) || limit.is_some_and(late);
        let mut follower = Follower {
            task: &task,
            machine: &machine,
            goal,
            floor: &floor,
            proven: &proven,
            settings: self.settings(goal.name(), &config, &hardware),
            out: self.out.as_deref(),
            trace: self.trace.as_deref(),
            lines: "evaluations,seconds,value\n".to_owned(),
            started,
            bar: console.progress("searching", 1),
            verbose: console.verbosity() == Verbosity::Verbose,
            written: Vec::new(),
            failure: None,
        };
        let (found, limits) = match goal {
            Goal::Order(goal) => search(&task.graph, &machine, start, goal, &config, &|| stop(), &mut follower)
                .map(|found| (found, None))
                .map_err(|e| resolve::run_error(&task, &hardware, RunError::Plan(e)))?,
            Goal::Time(_, aim) => {
                let settle = time::passes(started, limit, Until::SETTLE);
                let begin = time::passes(started, limit, Until::BEGIN);
                let until = Until { settle: &settle, begin: &begin, stop: &stop };
                let found = search_time(&task.graph, &machine, start, aim, &config, &until, &mut follower);
                let found = match found {
                    Err(TimedError::Limit { limit, least, evaluations }) => {
                        follower.failure.take().map_or(Ok(()), Err)?;
                        drop(follower);
                        let unmet = Unmet { goal, limit, least, evaluations, elapsed: started.elapsed() };
                        return self.report_unmet(&unmet, &task, console);
                    }
                    other => other.map_err(|e| time::error(&task, &hardware, e))?,
                };
                let limits = Some((found.least, found.limit));
                (Found { plan: found.plan, value: found.value, progress: found.progress }, limits)
            }
        };
        let elapsed = started.elapsed();
        let Follower { written, failure, .. } = follower;
        failure.map_or(Ok(()), Err)?;
        floor.ask()?;
        if limit.is_none() && floor.is_pending() {
            // What is printed is to depend on the arguments only.
            let _waiting = console.progress("waiting for the bound; Ctrl-C goes without", 1);
            floor.wait(|| INTERRUPTED.load(Ordering::Relaxed));
        }
        if floor.is_pending() && self.bound_file.is_some() {
            console.note("the certificate was not verified in that time, so there is no bound");
        }
        let Progress { evaluations, best, .. } = found.progress;
        let bound = floor.value();
        // A plan is found in any case, but it may hold what the objective forbids.
        let outcome = if found.progress.best().is_some() { Outcome::Done } else { Outcome::Refuted };
        if self.json {
            let (task, objective) = (task.name.as_str(), goal.name());
            let (elapsed_ms, evaluations_per_second) = (elapsed.as_secs_f64() * 1000.0, rate(evaluations, elapsed));
            let gap = bound.map(|bound| gap(best, bound));
            let (least_movement, max_movement) = (limits.map(|l| l.0), limits.and_then(|l| l.1));
            console.json(&Optimized {
                task,
                objective,
                start: found.progress.start(),
                best: found.progress.best(),
                bound,
                gap,
                evaluations,
                evaluations_per_second,
                elapsed_ms,
                max_movement,
                least_movement,
            })?;
            return Ok(outcome);
        }
        let verdict = Verdict::of(&task.graph, &machine, &found.plan)
            .map_err(|e| resolve::run_error(&task, &hardware, RunError::Measure(e)))?;
        console.line(format_args!("{} on {}", task.name, hardware.name))?;
        if let Some(metrics) = &verdict.metrics {
            console.line(format_args!("\n{}", report::figures(&task.graph, &machine, metrics)))?;
        }
        console.line(format_args!(
            "{}; {} evaluations in {:.1} s, {}/s.",
            standing(goal, found.progress, bound),
            grouped(evaluations),
            elapsed.as_secs_f64(),
            grouped(rate(evaluations, elapsed) as u64)
        ))?;
        if let Some((least, limit)) = limits {
            console.line(time::limits(least, limit))?;
        }
        console.line(plan::where_written(self.out.is_some().then_some(written)))?;
        Ok(outcome)
    }

    /// Says that no plan found keeps to the limit of movement.
    fn report_unmet(&self, unmet: &Unmet, task: &Task, console: &mut Console) -> Result<Outcome, CliError> {
        let Unmet { goal, limit, least, evaluations, elapsed } = *unmet;
        if self.json {
            console.json(&Optimized {
                task: &task.name,
                objective: goal.name(),
                start: None,
                best: None,
                bound: None,
                gap: None,
                evaluations,
                evaluations_per_second: rate(evaluations, elapsed),
                elapsed_ms: elapsed.as_secs_f64() * 1000.0,
                max_movement: Some(limit),
                least_movement: Some(least),
            })?;
        } else {
            console.line(time::unmet(task, limit, least))?;
            console.line("Raise --max-movement, or search longer; nothing is written.")?;
        }
        Ok(Outcome::Refuted)
    }

    /// The files that will be written, as far as that is known.
    fn outputs(&self, task: &str) -> Outputs {
        let outputs = Outputs::new().file("--trace", self.trace.as_deref());
        match self.pareto {
            true => outputs.files("--out", self.out.as_deref(), front::FILES),
            false => outputs.plan("--out", self.out.as_deref(), task),
        }
    }

    /// What is made small.
    fn goal(&self) -> Result<Goal, CliError> {
        let aim = time::aim(&self.objective, self.weights, self.max_movement)?;
        let names = || OBJECTIVES.iter().map(|o| o.0).chain(TIMED_OBJECTIVES.iter().map(|o| o.0));
        match (objective(&self.objective), aim) {
            (_, Some((name, aim))) => Ok(Goal::Time(name, aim)),
            (Some(goal), None) => Ok(Goal::Order(goal)),
            (None, None) => Err(resolve::unknown("objective", &self.objective, names())),
        }
    }

    /// The bound of the objective: certified, known at once, or looked for from now on.
    fn floor(&self, goal: Goal, task: &Arc<Task>, machine: &Arc<Machine>) -> Result<Floor, CliError> {
        match (goal.name(), &self.bound_file) {
            ("movement", Some(path)) => Floor::certified(path, task, machine),
            ("movement", None) => Ok(Floor::of_movement(task, machine)),
            (name, Some(_)) => Err(CliError::usage(
                format!("--bound-file holds a bound on movement, and the objective is {name}"),
                "leave out one of them",
            )),
            ("makespan", None) => Ok(Floor::known(time::least_makespan(&task.graph))),
            ("peak", None) => Ok(Floor::known(floor::of_peak(&task.graph, machine))),
            (_, None) => Ok(match goal {
                // Least movement and least makespan, each by itself, bound their sum.
                Goal::Time(_, Aim::Weighted { per_byte, per_cycle }) => {
                    let base = time::least_makespan(&task.graph).saturating_mul(per_cycle);
                    Floor::of_movement(task, machine).within(per_byte, base)
                }
                _ => Floor::unknown(),
            }),
        }
    }

    /// How plans are found, for plan files: by a search for `objective`.
    fn settings(&self, objective: &str, config: &SearchConfig, hardware: &Hardware) -> SearchSettings {
        SearchSettings {
            objective: objective.to_owned(),
            seed: config.seed,
            islands: config.islands,
            evaluations: config.evaluations,
            target: self.target,
            weights: self.weights.map(|weights| weights.to_string()),
            max_movement: self.max_movement.map(|limit| limit.to_string()),
            retime: false,
            start: self.start.clone(),
            hardware: hardware.clone(),
        }
    }

    fn config(&self, floor: &Floor) -> SearchConfig {
        let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        SearchConfig {
            seed: self.seed,
            islands: self.islands.into(),
            threads: self.jobs.map_or_else(processors, usize::from),
            evaluations: self.evaluations,
            // A bound still in the making would end the search by the clock. One of 0 ends it anyway.
            target: self.target.max(floor.settled().filter(|&bound| bound > 0)),
        }
    }
}

/// A search whose plans all move more than they may.
struct Unmet {
    goal: Goal,
    limit: u64,
    least: u64,
    evaluations: u64,
    elapsed: Duration,
}

/// What is made small.
#[derive(Clone, Copy)]
enum Goal {
    /// An objective of orders.
    Order(&'static dyn Objective),
    /// An objective of timed plans, with its name.
    Time(&'static str, Aim),
}

impl Goal {
    fn name(self) -> &'static str {
        match self {
            Self::Order(goal) => goal.name(),
            Self::Time(name, _) => name,
        }
    }
}

/// A value, where a plan may break what the objective demands.
fn value(value: u64) -> String {
    if value == u64::MAX { "none".to_owned() } else { grouped(value) }
}

/// How far a value is from what bounds it, as a share of the value.
fn gap(best: u64, bound: u64) -> f64 {
    if best <= bound { 0.0 } else { (best - bound) as f64 / best as f64 }
}

/// Evaluations per second.
fn rate(evaluations: u64, elapsed: Duration) -> f64 {
    evaluations as f64 / elapsed.as_secs_f64().max(1e-9)
}

/// Where a search stands, in words.
fn standing(goal: Goal, progress: Progress, bound: Option<u64>) -> String {
    let Progress { best, start, .. } = progress;
    let stands = format!("{} {} from {}", goal.name(), value(best), value(start));
    let Some(bound) = bound else { return stands };
    let gap = match (best, gap(best, bound)) {
        (u64::MAX, _) => String::new(),
        (_, 0.0) => ", optimal".to_owned(),
        (_, gap) => format!(", gap {:.1} %", gap * 100.0),
    };
    format!("{stands}, bound {}{gap}", grouped(bound))
}
