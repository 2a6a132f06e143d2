//! The front of movement and makespan, and of energy where the machine states it: one search after
//! another, from the least movement upward, each going on from what those before it found.

use super::anneal::Candidate;
use super::emit;
use super::goal::{Figures, Goal};
use super::islands::Archipelago;
use super::program::Program;
use super::search::{Aim, Course, Limit, TimedError, Until, figures, polished, prices};
use crate::islands::{Monitor, Progress, SearchConfig, Start};
use crate::model::Model;
use crate::ties::Ties;
use spillbench_core::checker::check;
use spillbench_core::metrics::measure;
use spillbench_core::{Graph, Machine, Plan};

/// Percent above the least movement within which each search looks; the last looks everywhere.
const STEPS: [Option<f64>; 10] =
    [Some(0.0), Some(1.0), Some(2.0), Some(5.0), Some(10.0), Some(25.0), Some(50.0), Some(100.0), Some(200.0), None];

/// A plan that no other found beats in every figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontPoint {
    /// The plan.
    pub plan: Plan,
    /// Bytes of extra data movement.
    pub movement: u64,
    /// Cycles by the timing model `segment`.
    pub makespan: u64,
    /// Picojoules, where the machine states an energy model.
    pub energy: Option<u64>,
}

/// A front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// By rising movement.
    pub points: Vec<FrontPoint>,
    /// Evaluations made, and the least makespan at any movement.
    pub progress: Progress,
}

/// The number of searches that make a front.
pub const FRONT_STEPS: usize = STEPS.len();

/// Searches for the plans of `graph` that no other beats in movement, makespan and, where the machine
/// states it, energy. `over` says that the `k`-th of [`FRONT_STEPS`] searches should end.
///
/// # Errors
/// [`TimedError`].
pub fn search_front<'a>(
    graph: &Graph,
    machine: &Machine,
    start: impl Into<Start<'a>>,
    config: &SearchConfig,
    until: &Until<'_>,
    over: &(dyn Fn(usize) -> bool + Sync),
    monitor: &mut dyn Monitor,
) -> Result<Front, TimedError> {
    let start = start.into();
    let price =
        prices(graph, machine, if machine.energy().is_some() { Aim::Energy } else { Aim::Makespan(Limit::None) })?;
    let model = Model::new(graph, machine);
    let program = Program::new(&model, &price)?;
    let ties = Ties::of(&model);
    let mut course = Course::new(&program, Aim::Makespan(Limit::None), config, monitor);
    course.settle_movement(start, until)?;
    let orders = course.orders(start.schedule, &ties);
    let size = (config.islands, config.threads);
    let mut found: Vec<Candidate> = Vec::new();
    let islands = Archipelago::new(&program, &ties, size, orders, course.goal, config.seed, &|| {
        (until.begin)() || (until.stop)()
    });
    if let Some(mut islands) = islands {
        islands.collect();
        for step in 0..STEPS.len() {
            let goal = Goal::makespan(limit(course.least_movement(), step));
            islands.set_goal(goal, &found);
            let budget = share(config, course.progress.evaluations, step);
            let mut spent = 0;
            let stop = || over(step) || (until.stop)();
            while spent < budget && !stop() {
                let (made, allowed) = islands.round(budget - spent, &stop);
                if let Some(allowed) = allowed {
                    course.progress.best = course.progress.best.min(allowed.figures.makespan);
                }
                (spent, course.progress.evaluations) = (spent + made, course.progress.evaluations + made);
                course.met();
            }
            merge(&mut found, islands.front());
        }
    }
    let mut plans: Vec<Plan> = course.plans().collect();
    plans.dedup();
    // The fastest first: should the time end, they are worth most.
    found.sort_by_key(|c| (c.figures.makespan, c.figures.moved, c.figures.price));
    let emitted = found.iter().take_while(|_| !(until.stop)());
    plans.extend(emitted.filter_map(|c| emit::plan(&program, &c.order, c.rules)).map(|p| p.0));
    let points = points(&program, plans, until)?;
    let best = points.last().map_or(u64::MAX, |p| p.makespan);
    Ok(Front { points, progress: Progress { best, ..course.progress } })
}

/// The limit of movement of one search.
fn limit(least: u64, step: usize) -> Option<u64> {
    STEPS[step].map(|percent| least.saturating_add((least as f64 * percent / 100.0) as u64))
}

/// The evaluations that one search may make of what is left.
fn share(config: &SearchConfig, made: u64, step: usize) -> u64 {
    let left = config.evaluations.map(|n| n.saturating_sub(made));
    left.map_or(u64::MAX, |left| left / (STEPS.len() - step) as u64)
}

/// Adds candidates to those that nothing beats.
fn merge(found: &mut Vec<Candidate>, more: Vec<Candidate>) {
    for candidate in more {
        if !found.iter().any(|c| c.figures.dominates(candidate.figures)) {
            found.retain(|c| !candidate.figures.dominates(c.figures));
            found.push(candidate);
        }
    }
}

/// The valid plans that no other beats, by rising movement; retimed as far as there is time.
fn points(program: &Program<'_>, plans: Vec<Plan>, until: &Until<'_>) -> Result<Vec<FrontPoint>, TimedError> {
    let (graph, machine) = (program.model.graph(), program.model.machine());
    let mut kept: Vec<(Figures, Plan)> = Vec::new();
    for plan in plans {
        let plan = if (until.stop)() {
            plan
        } else {
            let retimed = polished(graph, machine, plan.clone(), (until.settle)());
            // A reload that comes earlier may come into a reservation; then the plan stays as it was.
            if check(graph, machine, &retimed).is_valid() { retimed } else { plan }
        };
        let Ok(figures) = figures(program, &plan) else { continue };
        if check(graph, machine, &plan).is_valid() && !kept.iter().any(|(k, _)| k.dominates(figures)) {
            kept.retain(|(k, _)| !figures.dominates(*k));
            kept.push((figures, plan));
        }
    }
    kept.sort_by_key(|(f, _)| (f.moved, f.makespan, f.price));
    let point = |(figures, plan): (Figures, Plan)| {
        let energy = measure(graph, machine, &plan)?.energy;
        Ok(FrontPoint { plan, movement: figures.moved, makespan: figures.makespan, energy })
    };
    kept.into_iter().map(point).collect()
}
