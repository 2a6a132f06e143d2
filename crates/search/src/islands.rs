//! The search: islands that anneal with seeds of their own and meet at fixed evaluation counts.
//!
//! Between two meetings an island depends on nothing but its own state, so the result depends on
//! the seed, the number of islands and the evaluations made, not on the number of threads. At a
//! meeting, new bests become plans and may start the next annealing of any island.

use crate::anneal::{Annealer, Candidate, Cooling, Wanted};
use crate::draw::Draw;
use crate::model::{ItemIx, Model};
use crate::objective::Objective;
use crate::order;
use crate::realize;
use crate::ties::Ties;
use spillbench_core::checker::check;
use spillbench_core::planner::{PlanError, Workspace};
use spillbench_core::{Graph, Machine, Plan, Schedule};
use std::collections::HashSet;

/// How to search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchConfig {
    /// Seed of all random numbers.
    pub seed: u64,
    /// How many annealings go on at once; part of what determines the result.
    pub islands: usize,
    /// How many threads run them; not part of it.
    pub threads: usize,
    /// Evaluations to make over all islands; `None` for no limit.
    pub evaluations: Option<u64>,
    /// The search ends with a plan of at most this value.
    pub target: Option<u64>,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self { seed: 0, islands: 2, threads: 1, evaluations: None, target: None }
    }
}

/// What a search begins with. A schedule alone will do: `(&schedule).into()`.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// An order to begin from.
    pub schedule: &'a Schedule,
    /// A plan to beat: where it is valid, the search starts from its value.
    pub plan: Option<&'a Plan>,
}

impl<'a> From<&'a Schedule> for Start<'a> {
    fn from(schedule: &'a Schedule) -> Self {
        Self { schedule, plan: None }
    }
}

/// Where a search stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Evaluations made by all islands.
    pub evaluations: u64,
    /// The value of the best plan, or [`INFEASIBLE`].
    pub best: u64,
    /// The value of the plan that the search started from, or [`INFEASIBLE`].
    pub start: u64,
}

/// Stands for the value of a plan that breaks what the objective demands of a schedule, such as a
/// start with two live buffers in an exclusive cache under `peak`.
pub const INFEASIBLE: u64 = u64::MAX;

impl Progress {
    /// The value of the best plan; `None` while it breaks what the objective demands.
    pub fn best(&self) -> Option<u64> {
        Some(self.best).filter(|&v| v != INFEASIBLE)
    }

    /// The value of the plan that the search started from; `None` when it breaks that.
    pub fn start(&self) -> Option<u64> {
        Some(self.start).filter(|&v| v != INFEASIBLE)
    }
}

/// Follows a search. Called from the thread that called [`search`].
pub trait Monitor {
    /// A plan better than all before; the first call brings the start.
    fn improved(&mut self, plan: &Plan, progress: Progress);
    /// Called at every meeting.
    fn met(&mut self, _progress: Progress) {}
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The best plan.
    pub plan: Plan,
    /// Its value.
    pub value: u64,
    /// How the search ended up there.
    pub progress: Progress,
}

/// Evaluations of one island between two meetings.
const ROUND: u64 = 2048;
/// Where models are small, meetings are closer: so many evaluations for each item, but at least so
/// many.
const ROUND_PER_ITEM: u64 = 32;
const LEAST_ROUND: u64 = 256;
/// Items of the promising orders that are made plans at a meeting besides the best, for each island;
/// and at most so many orders.
const FINDS: usize = 8192;
const MOST_FINDS: usize = 8;
/// Evaluations of the first annealings; later ones are longer.
const FIRST: u64 = 16_384;
/// And at least so many for each item.
const PER_ITEM: u64 = 48;
/// The longest annealing.
const LONGEST: u64 = 4_194_304;
/// Meetings in a row without an evaluation after which nothing is left to try: every order that
/// the islands begin from costs nothing.
const IDLE: u32 = 16;
/// Temperatures, in units of the objective: from scratch, and from a good order.
const HOT: (f64, f64) = (2.0, 0.06);
const WARM: [(f64, f64); 2] = [(0.35, 0.04), (1.0, 0.04)];

/// Searches the orders of `graph` for a plan of the least `objective`, until `stop` says so or the
/// configuration does. The plan found is valid and never worse than that of `start`: its plan where
/// it has a valid one, otherwise its schedule planned as it stands.
///
/// # Errors
/// When no plan exists.
pub fn search<'a>(
    graph: &Graph,
    machine: &Machine,
    start: impl Into<Start<'a>>,
    objective: &dyn Objective,
    config: &SearchConfig,
    stop: &(dyn Fn() -> bool + Sync),
    monitor: &mut dyn Monitor,
) -> Result<Found, PlanError> {
    let misfits = machine.misfits(graph);
    if !misfits.is_empty() {
        return Err(PlanError::Misfit(misfits));
    }
    let start = start.into();
    let model = Model::new(graph, machine);
    let ties = Ties::of(&model);
    let mut workspace = Workspace::default();
    let first = match start.plan.filter(|plan| check(graph, machine, plan).is_valid()) {
        Some(plan) => plan.clone(),
        None => realize::plan_schedule(graph, machine, start.schedule, &mut workspace)?,
    };
    let value = objective.value(graph, machine, &first).unwrap_or(INFEASIBLE);
    let progress = Progress { evaluations: 0, best: value, start: value };
    monitor.improved(&first, progress);
    let found = Found { plan: first, value, progress };
    let realized = HashSet::new();
    let mut archipelago = Archipelago { model: &model, objective, config, workspace, found, best: None, realized };
    archipelago.settle(&ties, start.schedule, stop, monitor);
    Ok(archipelago.found)
}

struct Archipelago<'a> {
    model: &'a Model<'a>,
    objective: &'a dyn Objective,
    config: &'a SearchConfig,
    workspace: Workspace,
    found: Found,
    /// The best order by the evaluator, whether or not its plan is the best.
    best: Option<Candidate>,
    /// Hashes of the orders that were made plans, with what stays resident in them.
    realized: HashSet<u64>,
}

/// An island between two meetings.
struct Island<'a> {
    annealer: Annealer<'a>,
    runs: u32,
    /// Evaluations to make until the next meeting, and those made.
    share: u64,
    made: u64,
    /// The cost of its best order that was made a plan.
    realized: u64,
}

impl<'a> Archipelago<'a> {
    fn settle(
        &mut self,
        ties: &'a Ties,
        start: &Schedule,
        stop: &(dyn Fn() -> bool + Sync),
        monitor: &mut dyn Monitor,
    ) {
        if self.model.is_empty() {
            return;
        }
        let starts = self.starts(ties, start);
        for candidate in &starts {
            self.realize(candidate, stop, monitor);
            if stop() {
                return;
            }
        }
        let mut islands: Vec<Island<'a>> = (0..self.config.islands.max(1))
            .map(|i| {
                let order = starts[i % starts.len()].order.clone();
                let draw = Draw::new(self.config.seed, i as u64 + 1);
                let evaluator = self.objective.evaluator(self.model);
                let annealer = Annealer::new(self.model, ties, evaluator, order, draw);
                Island { annealer, runs: 0, share: 0, made: 0, realized: u64::MAX }
            })
            .collect();
        let mut idle = 0;
        while !stop() && !self.is_done() && idle < IDLE {
            let best = self.best.clone().unwrap_or_else(|| starts[0].clone());
            for (i, island) in islands.iter_mut().enumerate() {
                if island.annealer.is_done() {
                    self.begin(island, i, &starts, &best);
                }
            }
            self.share(&mut islands);
            let (model, objective, value) = (self.model, self.objective, self.found.value);
            let promising = |cost| objective.promise(model, cost).is_some_and(|p| p < value);
            let count = (FINDS / model.len()).min(MOST_FINDS);
            run_all(&mut islands, self.config.threads.max(1), &|island| {
                let wanted = Wanted { promising: &promising, count };
                island.made = island.annealer.run(island.share, &wanted, &|| stop());
            });
            idle = if islands.iter().all(|i| i.made == 0) { idle + 1 } else { 0 };
            self.meet(&mut islands, stop, monitor);
        }
    }

    /// Says how many evaluations each island makes before the next meeting: together no more than are
    /// left.
    fn share(&self, islands: &mut [Island<'_>]) {
        let left = self.config.evaluations.map_or(u64::MAX, |n| n.saturating_sub(self.found.progress.evaluations));
        let round = (self.model.len() as u64 * ROUND_PER_ITEM).clamp(LEAST_ROUND, ROUND);
        let count = islands.len() as u64;
        for (island, i) in islands.iter_mut().zip(0..) {
            island.share = round.min(left / count + u64::from(i < left % count));
        }
    }

    fn is_done(&self) -> bool {
        let spent = self.config.evaluations.is_some_and(|n| self.found.progress.evaluations >= n);
        let reached = self.found.value <= self.config.target.unwrap_or(0);
        spent || reached
    }

    /// The orders to begin from, cheapest first.
    fn starts(&self, ties: &Ties, start: &Schedule) -> Vec<Candidate> {
        let mut evaluator = self.objective.evaluator(self.model);
        let mut orders = order::constructed(self.model, ties);
        orders.push(self.model.order_of(start));
        let mut starts: Vec<_> = orders
            .into_iter()
            .map(|order| Candidate { cost: evaluator.reset(&order), hits: evaluator.hits(), order })
            .collect();
        starts.sort_by_key(|s| s.cost);
        starts.dedup_by(|a, b| a.order == b.order);
        starts
    }

    /// Begins the next annealing of an island: by turns from the best order, warm, and from another,
    /// hot.
    fn begin(&self, island: &mut Island<'_>, number: usize, starts: &[Candidate], best: &Candidate) {
        let turn = island.runs + number as u32;
        let length = FIRST.max(self.model.len() as u64 * PER_ITEM) << (island.runs / 2).min(16);
        let evaluations = length.min(LONGEST);
        let unit = self.objective.unit(self.model);
        let (order, (from, to)): (Vec<ItemIx>, _) = if turn.is_multiple_of(2) {
            (best.order.clone(), WARM[(turn / 2) as usize % WARM.len()])
        } else {
            // The smaller of two: the cheaper a start, the more often it is taken.
            let draw = island.annealer.draw();
            let at = draw.below(starts.len()).min(draw.below(starts.len()));
            (starts[at].order.clone(), HOT)
        };
        island.annealer.restart(order, Cooling { from: from * unit, to: to * unit, evaluations });
        island.runs += 1;
    }

    /// Turns the islands' new bests into plans.
    fn meet(&mut self, islands: &mut [Island<'_>], stop: &(dyn Fn() -> bool + Sync), monitor: &mut dyn Monitor) {
        for island in islands.iter_mut() {
            self.found.progress.evaluations += std::mem::take(&mut island.made);
        }
        for island in islands {
            let best = island.annealer.best();
            if best.cost < island.realized {
                island.realized = best.cost;
                let best = best.clone();
                self.realize(&best, stop, monitor);
            }
            for candidate in island.annealer.finds() {
                self.realize(&candidate, stop, monitor);
            }
        }
        monitor.met(self.found.progress);
    }

    /// Makes a plan of an order if it may be better than the best.
    fn realize(&mut self, candidate: &Candidate, stop: &(dyn Fn() -> bool + Sync), monitor: &mut dyn Monitor) {
        if self.best.as_ref().is_none_or(|b| candidate.cost < b.cost) {
            self.best = Some(candidate.clone());
        }
        let (graph, machine) = (self.model.graph(), self.model.machine());
        let promise = self.objective.promise(self.model, candidate.cost);
        if promise.is_some_and(|p| p >= self.found.value) || !self.realized.insert(candidate.hash()) {
            return;
        }
        let (order, hits) = (&candidate.order, &candidate.hits);
        let plan = self.objective.realize(self.model, order, hits, &mut self.workspace, &|| stop());
        let Ok(plan) = plan else { return };
        let Some(value) = self.objective.value(graph, machine, &plan) else { return };
        if value < self.found.value && check(graph, machine, &plan).is_valid() {
            self.found.value = value;
            self.found.progress.best = value;
            self.found.plan = plan;
            monitor.improved(&self.found.plan, self.found.progress);
        }
    }
}

/// Runs `work` on every island, on up to `threads` threads.
pub(crate) fn run_all<I: Send>(islands: &mut [I], threads: usize, work: &(dyn Fn(&mut I) + Sync)) {
    if threads == 1 || islands.len() == 1 {
        islands.iter_mut().for_each(work);
        return;
    }
    let share = islands.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for chunk in islands.chunks_mut(share) {
            scope.spawn(move || chunk.iter_mut().for_each(work));
        }
    });
}
