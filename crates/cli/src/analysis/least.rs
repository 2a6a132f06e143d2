//! The least movement of a schedule: the exact search beside the plans of all heuristics, whichever
//! is better.
//!
//! The search knows no heuristic and may meet its limit with a poor plan, or look long for one that a
//! heuristic finds at once; a heuristic proves nothing. Together they give the better plan and the
//! bound.

use super::run::RunError;
use spillbench_bounds::attribution::cover_of;
use spillbench_bounds::exact::exact;
use spillbench_bounds::{Bound, Cover, pack};
use spillbench_core::metrics::Movement;
use spillbench_core::plan::Plan;
use spillbench_core::planner::{PlannerConfig, Strategy, Workspace};
use spillbench_core::{Bytes, Graph, Machine, Schedule};
use spillbench_heuristics::{HEURISTICS, Policy};

/// The best plan that keeps a schedule, as far as is known.
#[derive(Debug)]
pub struct Least {
    /// The plan.
    pub plan: Plan,
    /// What it moves.
    pub movement: Bytes,
    /// No plan that keeps the schedule moves less.
    pub bound: Bytes,
    /// The share of every cache of the graph, in its order.
    pub per_cache: Vec<LeastCache>,
    /// Search nodes used.
    pub nodes: u64,
    /// The heuristic whose plan it is; `None` for the search.
    pub heuristic: Option<&'static str>,
}

/// The share of one cache.
#[derive(Debug)]
pub struct LeastCache {
    /// Name of the cache.
    pub cache: String,
    /// What the plan moves in it.
    pub movement: Bytes,
    /// No plan that keeps the schedule moves less in it.
    pub bound: Bytes,
}

impl Least {
    /// True when no plan that keeps the schedule moves less.
    pub fn is_optimal(&self) -> bool {
        self.movement == self.bound
    }
}

/// A plan of a heuristic.
struct Planned {
    heuristic: &'static str,
    plan: Plan,
    movement: Movement,
}

/// Searches within `limits`; `flow` is the flow bound of the schedule.
///
/// # Errors
/// When there is no plan at all, or none that the file format can tell.
pub fn least(
    (graph, machine, schedule): (&Graph, &Machine, &Schedule),
    flow: &Bound,
    limits: pack::Limits,
) -> Result<Least, RunError> {
    let planned = best_planned((graph, machine, schedule))?;
    if let Some(planned) = planned.as_ref().filter(|p| p.movement.bytes() <= flow.value) {
        let bounds = flow.per_cache.iter().map(|c| (c.cache.clone(), c.value));
        return Ok(planned.as_least(flow.value, bounds, 0));
    }
    let found = exact(graph, machine, schedule, limits)?;
    if let Some(planned) = planned.filter(|p| p.movement.bytes() < found.movement) {
        let bounds = found.per_cache.iter().map(|c| (c.cache.clone(), c.bound));
        return Ok(planned.as_least(found.bound, bounds, found.nodes));
    }
    let share =
        |c: spillbench_bounds::exact::ExactCache| LeastCache { cache: c.cache, movement: c.movement, bound: c.bound };
    Ok(Least {
        plan: found.plan,
        movement: found.movement,
        bound: found.bound,
        per_cache: found.per_cache.into_iter().map(share).collect(),
        nodes: found.nodes,
        heuristic: None,
    })
}

/// The plan of least movement among those that heuristics make without moving a node, the first of
/// several.
fn best_planned((graph, machine, schedule): (&Graph, &Machine, &Schedule)) -> Result<Option<Planned>, RunError> {
    let mut best: Option<Planned> = None;
    let mut workspace = Workspace::default();
    for strategies in [Strategy::DEFAULT_CHAIN.to_vec(), vec![Strategy::Window]] {
        let config = PlannerConfig { strategies, attempts: 0, ..PlannerConfig::default() };
        for heuristic in HEURISTICS {
            let policy = Policy { heuristic, config: config.clone(), seed: 0 };
            let plan = policy.plan(graph, machine, schedule, &mut workspace)?;
            let movement = Movement::of(graph, &plan)?;
            let better = best.as_ref().is_none_or(|b| movement.bytes() < b.movement.bytes());
            if better && cover_of(graph, schedule, &plan) == Cover::Schedule {
                best = Some(Planned { heuristic: heuristic.name, plan, movement });
            }
        }
    }
    Ok(best)
}

impl Planned {
    fn as_least(&self, bound: Bytes, bounds: impl Iterator<Item = (String, Bytes)>, nodes: u64) -> Least {
        let share = |(cache, bound): (String, Bytes)| {
            let movement = self.movement.by_cache.get(&cache).map_or(Bytes(0), |split| split.bytes());
            LeastCache { cache, movement, bound }
        };
        Least {
            plan: self.plan.clone(),
            movement: self.movement.bytes(),
            bound,
            per_cache: bounds.map(share).collect(),
            nodes,
            heuristic: Some(self.heuristic),
        }
    }
}
