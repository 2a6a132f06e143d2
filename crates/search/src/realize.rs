//! From an order to a plan: packed whole where that succeeds, otherwise by the planner under many
//! policies, the cheapest taken.

use crate::evaluator::Evaluator;
use crate::model::{ItemIx, Model};
use crate::pack;
use crate::residency::Residency;
use spillbench_core::checker::check;
use spillbench_core::heuristic::{Request, View};
use spillbench_core::index::{BufIx, Pos};
use spillbench_core::planner::{self, PlanError, PlannerConfig, Strategy, Workspace};
use spillbench_core::{Graph, Machine, Placement, Plan, Schedule, VictimHeuristic};
use typed_index_collections::{TiVec, ti_vec};

/// The extra data movement of a plan, in bytes.
pub fn movement(graph: &Graph, plan: &Plan) -> u64 {
    let bufs = plan.spills.iter().filter_map(|s| graph.buf_by_id(s.buf));
    bufs.fold(0, |sum, b| sum.saturating_add(graph.buf(b).movement().0))
}

/// The cheapest valid plan found for an order of items whose accesses hit as `hits` says, or as
/// [`Residency`] says where `hits` is empty. Once `stop`
/// says so, no further policy is tried.
///
/// # Errors
/// As [`planner::plan`].
pub(crate) fn realize(
    model: &Model<'_>,
    order: &[ItemIx],
    hits: &[bool],
    workspace: &mut Workspace,
    stop: &dyn Fn() -> bool,
) -> Result<Plan, PlanError> {
    let all;
    let hits = if hits.len() == model.access_count() {
        hits
    } else {
        let mut residency = Residency::new(model);
        residency.reset(order);
        all = residency.hits();
        &all
    };
    let (graph, machine) = (model.graph(), model.machine());
    if let Some(plan) = pack::pack(model, order, hits, stop).filter(|p| check(graph, machine, p).is_valid()) {
        return Ok(plan);
    }
    let schedule = model.schedule(order);
    let misses = misses(model, order, hits, &schedule);
    let all = CHAINS.iter().flat_map(|&c| Placement::ALL.iter().map(move |p| (c, p.0)));
    plan_cheaply(graph, machine, &schedule, &misses, &all.collect::<Vec<_>>(), workspace, stop)
}

/// The cheaper plan of a schedule as it stands under the two policies that most often win.
///
/// # Errors
/// As [`planner::plan`].
pub(crate) fn plan_schedule(
    graph: &Graph,
    machine: &Machine,
    schedule: &Schedule,
    workspace: &mut Workspace,
) -> Result<Plan, PlanError> {
    let policies = [(CHAINS[0], Placement::TwoEnded), (CHAINS[1], Placement::BestFit)];
    plan_cheaply(graph, machine, schedule, &ti_vec![Vec::new(); graph.buffer_count()], &policies, workspace, &|| false)
}

type Policy = (&'static [Strategy], Placement);

const CHAINS: [&[Strategy]; 3] = [
    &[Strategy::Window],
    &[Strategy::Single, Strategy::Multi, Strategy::Postpone],
    &[Strategy::Postpone, Strategy::Window],
];

fn plan_cheaply(
    graph: &Graph,
    machine: &Machine,
    schedule: &Schedule,
    misses: &TiVec<BufIx, Vec<Pos>>,
    policies: &[Policy],
    workspace: &mut Workspace,
    stop: &dyn Fn() -> bool,
) -> Result<Plan, PlanError> {
    let mut best: Option<(u64, Plan)> = None;
    let mut failure = None;
    for (i, &(strategies, placement)) in policies.iter().enumerate() {
        if i > 0 && stop() {
            break;
        }
        let config = PlannerConfig { strategies: strategies.to_vec(), placement, ..Default::default() };
        match planner::plan(graph, machine, schedule, &config, &mut Guided { misses }, workspace) {
            Ok(plan) => {
                let moved = movement(graph, &plan);
                if best.as_ref().is_none_or(|b| moved < b.0) && check(graph, machine, &plan).is_valid() {
                    best = Some((moved, plan));
                }
            }
            Err(error) => failure = Some(error),
        }
    }
    match (best, failure) {
        (Some((_, plan)), _) => Ok(plan),
        (None, Some(error)) => Err(error),
        (None, None) => Err(PlanError::OtherGraph { schedule: schedule.len(), graph: graph.node_count() }),
    }
}

/// The positions at which each buffer misses, rising.
fn misses(model: &Model<'_>, order: &[ItemIx], hits: &[bool], schedule: &Schedule) -> TiVec<BufIx, Vec<Pos>> {
    let place = schedule.positions();
    let mut misses: TiVec<BufIx, Vec<Pos>> = ti_vec![Vec::new(); model.graph().buffer_count()];
    for step in order.iter().flat_map(|&i| model.steps(i)) {
        for (i, &buf) in model.accesses(step).iter().enumerate() {
            if !hits[model.first_access(step) + i] {
                misses[buf].push(place[model.step_node(step)]);
            }
        }
    }
    misses
}

/// Evicts first what misses at its next use anyway; otherwise by distance × min(missing, size) /
/// cost.
struct Guided<'a> {
    misses: &'a TiVec<BufIx, Vec<Pos>>,
}

impl VictimHeuristic for Guided<'_> {
    fn score(&self, view: View<'_>, request: &Request, buf: BufIx) -> f64 {
        let next = view.state(buf).next_use;
        let distance = next.index().saturating_sub(request.pos.index()) as f64;
        // Above every other score: positions stay below 2³².
        let paid = if self.misses[buf].binary_search(&next).is_ok() { 1e30 } else { 1.0 };
        let buffer = view.buf(buf);
        paid * distance * request.missing.min(buffer.size).0 as f64 / buffer.movement().0 as f64
    }
}
