//! The timed search: first for an order that moves little, then from there for time.

use super::anneal::Candidate;
use super::emit;
use super::goal::{Figures, Goal};
use super::islands::Archipelago;
use super::program::{Program, Untimed, tails};
use crate::islands::{Monitor, Progress, SearchConfig, Start, search};
use crate::model::Model;
use crate::objective::LeastMovement;
use crate::order;
use crate::realize;
use crate::ties::Ties;
use spillbench_core::checker::check;
use spillbench_core::index::{BufIx, NodeIx, PipeIx};
use spillbench_core::metrics::{MeasureError, measure};
use spillbench_core::planner::PlanError;
use spillbench_core::planner::retime::{Effort, retime_with};
use spillbench_core::{Graph, Machine, Plan, Schedule};
use thiserror::Error;
use typed_index_collections::{TiVec, ti_vec};

/// How much a plan may move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Any number of bytes.
    None,
    /// At most so many bytes.
    Bytes(u64),
    /// At most so many percent more than the least movement that the search knows of.
    Percent(f64),
}

/// What a timed search makes small.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    /// The makespan, in cycles, within a limit of movement.
    Makespan(Limit),
    /// `per_byte` · movement + `per_cycle` · makespan.
    Weighted {
        /// For each byte of extra data movement.
        per_byte: u64,
        /// For each cycle of the makespan.
        per_cycle: u64,
    },
    /// The energy of the machine's model, in picojoules.
    Energy,
}

/// When a search ends.
pub struct Until<'a> {
    /// Says that the search for an order that moves little should give way to that for time.
    pub settle: &'a (dyn Fn() -> bool + Sync),
    /// Says that the search for time should begin with what has been tried to begin from.
    pub begin: &'a (dyn Fn() -> bool + Sync),
    /// Says that all should end.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl Until<'_> {
    /// The part of a budget in time after which `settle` should say so.
    pub const SETTLE: f64 = 0.15;
    /// The part of a budget in time after which `begin` should say so.
    pub const BEGIN: f64 = 0.8;
}

/// Why a timed search has no result.
#[derive(Debug, Error)]
pub enum TimedError {
    /// No plan exists at all.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The graph or its cycles cannot be timed.
    #[error(transparent)]
    Untimed(#[from] Untimed),
    /// A plan cannot be measured.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// The machine states no energy.
    #[error("the hardware has no energy model")]
    NoEnergy,
    /// No plan found moves as little as asked.
    #[error("no plan found moves at most {limit} bytes; the least found is {least}")]
    Limit {
        /// The limit in bytes.
        limit: u64,
        /// The least movement of any plan found.
        least: u64,
        /// Evaluations made.
        evaluations: u64,
    },
}

/// What a timed search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedFound {
    /// The best plan.
    pub plan: Plan,
    /// Its value under the aim.
    pub value: u64,
    /// Its makespan and movement.
    pub figures: Figures,
    /// The least movement of any plan that the search came across, in bytes.
    pub least: u64,
    /// The limit of movement in bytes.
    pub limit: Option<u64>,
    /// How the search ended up there.
    pub progress: Progress,
}

/// Searches the orders of `graph` for a plan that is best by `aim`, until it is told to stop or the
/// configuration says so. The plan is valid, keeps to the limit, and is never worse than that of
/// `start` ([`search`]) where that one keeps to it.
///
/// # Errors
/// [`TimedError`].
pub fn search_time<'a>(
    graph: &Graph,
    machine: &Machine,
    start: impl Into<Start<'a>>,
    aim: Aim,
    config: &SearchConfig,
    until: &Until<'_>,
    monitor: &mut dyn Monitor,
) -> Result<TimedFound, TimedError> {
    let start = start.into();
    let price = prices(graph, machine, aim)?;
    let model = Model::new(graph, machine);
    let program = Program::new(&model, &price)?;
    let ties = Ties::of(&model);
    let mut course = Course::new(&program, aim, config, monitor);
    course.settle_movement(start, until)?;
    let orders = course.orders(start.schedule, &ties);
    let size = (config.islands, config.threads);
    let islands = Archipelago::new(&program, &ties, size, orders, course.goal, config.seed, &|| {
        (until.begin)() || (until.stop)()
    });
    if let Some(mut islands) = islands {
        course.settle_time(&mut islands, until);
    }
    course.end(until)
}

/// One search on its way.
pub(super) struct Course<'a> {
    program: &'a Program<'a>,
    aim: Aim,
    pub goal: Goal,
    config: &'a SearchConfig,
    monitor: &'a mut dyn Monitor,
    /// The plan that moves least, and what it moves.
    pub least: Option<(u64, Plan)>,
    best: Option<(u64, Plan, Figures)>,
    /// The plan that the search starts from.
    first: Option<Plan>,
    pub progress: Progress,
    /// The cost of the last candidate that was made a plan.
    realized: u64,
}

/// The part of a budget in evaluations that the search for little movement may spend.
const MOVEMENT_SHARE: u64 = 2;

impl<'a> Course<'a> {
    pub(super) fn new(
        program: &'a Program<'a>,
        aim: Aim,
        config: &'a SearchConfig,
        monitor: &'a mut dyn Monitor,
    ) -> Self {
        let goal = match aim {
            Aim::Makespan(Limit::Bytes(limit)) => Goal::makespan(Some(limit)),
            Aim::Makespan(_) => Goal::makespan(None),
            Aim::Weighted { per_byte, per_cycle } => Goal::weighted(per_byte, per_cycle),
            Aim::Energy => energy_goal(program),
        };
        let progress = Progress { evaluations: 0, best: u64::MAX, start: u64::MAX };
        let (least, best, first, realized) = (None, None, None, u64::MAX);
        Self { program, aim, goal, config, monitor, least, best, first, progress, realized }
    }

    /// Searches for a plan that moves little, and settles the limit by it.
    pub(super) fn settle_movement(&mut self, start: Start<'_>, until: &Until<'_>) -> Result<(), TimedError> {
        let (graph, machine) = (self.program.model.graph(), self.program.model.machine());
        let target = self.goal.limit;
        let evaluations = self.config.evaluations.map(|n| n / MOVEMENT_SHARE);
        let config = SearchConfig { evaluations, target, ..self.config.clone() };
        let stop = || (until.settle)() || (until.stop)();
        let mut first = First::default();
        let found = search(graph, machine, start, &LeastMovement, &config, &stop, &mut first)?;
        self.progress.evaluations = found.progress.evaluations;
        if let Aim::Makespan(Limit::Percent(percent)) = self.aim {
            self.goal.limit = Some(found.value.saturating_add((found.value as f64 * percent / 100.0) as u64));
        }
        self.first.clone_from(&first.plan);
        for plan in first.plan.iter().chain([&found.plan]) {
            self.offer(plan.clone())?;
            if self.progress.start == u64::MAX {
                self.progress.start = self.progress.best;
            }
        }
        self.least = Some((found.value, found.plan));
        Ok(())
    }

    /// The orders that the search for time begins from.
    pub(super) fn orders(&self, start: &Schedule, ties: &Ties) -> Vec<Vec<crate::model::ItemIx>> {
        let model = self.program.model;
        let least = self.least.as_ref().and_then(|(_, plan)| order::schedule_of(model.graph(), plan));
        let mut orders: Vec<_> = least.iter().chain([start]).map(|s| model.order_of(s)).collect();
        orders.extend(order::constructed(model, ties));
        orders.dedup();
        orders.retain(|o| !o.is_empty());
        orders
    }

    /// Anneals until the end.
    fn settle_time(&mut self, islands: &mut Archipelago<'_>, until: &Until<'_>) {
        if let Some(start) = islands.allowed_start().cloned() {
            self.realize(&start);
        }
        while !self.is_done() && !(until.stop)() {
            self.round(islands, until);
        }
    }

    /// Lets the islands anneal to their next meeting, and makes a plan of what is better.
    fn round(&mut self, islands: &mut Archipelago<'_>, until: &Until<'_>) {
        let left = self.config.evaluations.map_or(u64::MAX, |n| n.saturating_sub(self.progress.evaluations));
        let (made, allowed) = islands.round(left, until.stop);
        self.progress.evaluations += made;
        if let Some(candidate) = allowed.filter(|c| c.cost < self.realized).cloned() {
            self.realize(&candidate);
        }
        self.met();
    }

    /// Tells whoever follows where the search stands.
    pub(super) fn met(&mut self) {
        self.monitor.met(self.progress);
    }

    /// The least movement of any plan so far.
    pub(super) fn least_movement(&self) -> u64 {
        self.least.as_ref().map_or(0, |l| l.0)
    }

    /// The plan that moves least, the best one, and that of the start.
    pub(super) fn plans(&self) -> impl Iterator<Item = Plan> + use<> {
        let (least, best) = (self.least.as_ref().map(|l| &l.1), self.best.as_ref().map(|b| &b.1));
        [least.cloned(), best.cloned(), self.first.clone()].into_iter().flatten()
    }

    fn is_done(&self) -> bool {
        let spent = self.config.evaluations.is_some_and(|n| self.progress.evaluations >= n);
        let reached = self.config.target.is_some_and(|t| self.progress.best <= t);
        spent || reached
    }

    /// Makes a plan of a candidate, and takes it if it is better.
    fn realize(&mut self, candidate: &Candidate) {
        self.realized = candidate.cost;
        if let Some((plan, _)) = emit::plan(self.program, &candidate.order, candidate.rules) {
            // What the decoder makes can be measured; if it could not, it would not be offered.
            let _ = self.offer(plan);
        }
    }

    /// Takes a plan if it is valid, keeps to the limit and is better.
    fn offer(&mut self, plan: Plan) -> Result<(), MeasureError> {
        let (graph, machine) = (self.program.model.graph(), self.program.model.machine());
        let figures = figures(self.program, &plan)?;
        let value = self.goal.value(figures);
        let better = self.best.as_ref().is_none_or(|b| value < b.0);
        if better && self.goal.allows(figures.moved) && check(graph, machine, &plan).is_valid() {
            self.progress.best = value;
            self.monitor.improved(&plan, self.progress);
            self.best = Some((value, plan, figures));
        }
        Ok(())
    }

    /// What the search found.
    fn end(mut self, until: &Until<'_>) -> Result<TimedFound, TimedError> {
        if let Some((_, plan, _)) = &self.best {
            let (graph, machine) = (self.program.model.graph(), self.program.model.machine());
            // A reload that comes earlier may come into a reservation; then the plan stays as it was.
            let _ = self.offer(polished(graph, machine, plan.clone(), (until.stop)()));
        }
        let least = self.least.map_or(u64::MAX, |l| l.0);
        let limit = self.goal.limit;
        let Some((value, plan, figures)) = self.best else {
            let (limit, evaluations) = (limit.unwrap_or(u64::MAX), self.progress.evaluations);
            return Err(TimedError::Limit { limit, least, evaluations });
        };
        let least = least.min(figures.moved);
        Ok(TimedFound { plan, value, figures, least, limit, progress: self.progress })
    }
}

/// What one spill of each buffer costs beside bytes and cycles: picojoules, where energy counts.
///
/// # Errors
/// When energy is the aim and the machine states none.
pub(super) fn prices<'a>(
    graph: &'a Graph,
    machine: &'a Machine,
    aim: Aim,
) -> Result<Box<dyn Fn(BufIx) -> u64 + 'a>, TimedError> {
    match (aim, machine.energy()) {
        (Aim::Energy, None) => Err(TimedError::NoEnergy),
        (Aim::Energy, Some(energy)) => Ok(Box::new(|b| energy.spill(graph, machine, b))),
        _ => Ok(Box::new(|_| 0)),
    }
}

fn energy_goal(program: &Program<'_>) -> Goal {
    let (graph, machine) = (program.model.graph(), program.model.machine());
    let Some(energy) = machine.energy() else { return Goal::energy(0, 0) };
    let base = graph.nodes().fold(0u64, |sum, n| sum.saturating_add(energy.op(graph, n)));
    Goal::energy(base, energy.per_cycle())
}

/// A plan of more steps than this is retimed without swaps when there is little time: they take
/// seconds.
const LARGE: usize = 10_000;

/// The plan retimed; itself where that does not help.
pub(super) fn polished(graph: &Graph, machine: &Machine, plan: Plan, in_haste: bool) -> Plan {
    let all = Effort::default();
    let effort = if in_haste && plan.schedule.len() > LARGE { Effort { swaps: 0, ..all } } else { all };
    match retime_with(graph, machine, &plan, effort) {
        Ok(Some(retimed)) => retimed.plan,
        _ => plan,
    }
}

/// Cycles that no plan of `graph` beats, spills left out: of each pipe, the shortest path to any of
/// its ops, the work of all, and the shortest path behind any; and the longest path of all. 0 without
/// timing.
pub fn least_makespan(graph: &Graph) -> u64 {
    if !graph.has_timing() {
        return 0;
    }
    let order = graph.topological_order();
    let cycles = |n: NodeIx| graph.cycles(n).map_or(0, |c| c.0);
    let mut heads: TiVec<NodeIx, u64> = ti_vec![0; graph.node_count()];
    for &n in &order {
        let end = heads[n].saturating_add(cycles(n));
        graph.for_each_successor(n, |s| heads[s] = heads[s].max(end));
    }
    let tails = tails(graph);
    let mut pipes: TiVec<PipeIx, (u64, u64, u64)> = ti_vec![(u64::MAX, 0, u64::MAX); graph.pipe_names().len()];
    let mut longest = 0;
    for n in order {
        longest = longest.max(heads[n].saturating_add(cycles(n)));
        if let Some(pipe) = graph.pipe(n) {
            let (head, work, tail) = &mut pipes[pipe];
            (*head, *tail) = ((*head).min(heads[n]), (*tail).min(tails[n]));
            *work = work.saturating_add(cycles(n));
        }
    }
    let used = pipes.into_iter().filter(|p| p.0 < u64::MAX);
    used.fold(longest, |most, (head, work, tail)| most.max(head.saturating_add(work).saturating_add(tail)))
}

/// The figures of any plan of the program's graph.
///
/// # Errors
/// When the plan cannot be measured.
pub(super) fn figures(program: &Program<'_>, plan: &Plan) -> Result<Figures, MeasureError> {
    let (graph, machine) = (program.model.graph(), program.model.machine());
    let makespan = measure(graph, machine, plan)?.makespan.map_or(0, |m| m.0);
    let spilled = plan.spills.iter().filter_map(|s| graph.buf_by_id(s.buf));
    let price = spilled.fold(0u64, |sum, b| sum.saturating_add(program.price(b)));
    Ok(Figures { makespan, moved: realize::movement(graph, plan), price })
}

/// Remembers the first plan of a search.
#[derive(Default)]
struct First {
    plan: Option<Plan>,
}

impl Monitor for First {
    fn improved(&mut self, plan: &Plan, _progress: Progress) {
        self.plan.get_or_insert_with(|| plan.clone());
    }
}
