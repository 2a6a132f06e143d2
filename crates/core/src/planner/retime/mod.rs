//! Retiming: a pass over a finished plan, ours or a stranger's, that gives its steps a better order.
//!
//! The addresses, the spills and the segment in which each op finds its operands stay, and with them
//! the movement. What a step must wait for is read from the plan: its predecessors by graph, implied
//! and spill edges, and for an acquire the last release of each of its addresses in the order in
//! which they stand. All else of the order is given up and made anew, so that reloads come where
//! their pipe is idle and their space free, and spills leave as early as they can.
//!
//! 1. `list` schedules the network as a job shop whose machines are the pipes: of the steps that
//!    could run next on a pipe, the one with the longest path behind it goes first (list scheduling
//!    by tails; Graham 1969, Giffler & Thompson 1960 for waiting for a step that is about to be
//!    ready).
//! 2. The best of these schedules is justified: scheduled backward by its ends, then forward by the
//!    starts of that, for as long as that helps (forward-backward improvement, Li & Willis 1992;
//!    Valls, Ballestín & Quintanilla 2005).
//! 3. `swaps` exchanges neighbours of one pipe on the critical path, by taboo search
//!    (Nowicki & Smutnicki 1996).
//!
//! The number of schedules that are tried is fixed, so that the result does not depend on the
//! machine. A plan that does not get faster is given back as it was.

mod list;
mod network;
mod swaps;

use super::reserve;
use crate::graph::Graph;
use crate::hardware::Machine;
use crate::index::StepIx;
use crate::metrics::MeasureError;
use crate::metrics::timing::TimedPlan;
use crate::plan::Plan;
use crate::units::Cycles;
use list::{Direction, List};
use network::Network;
use typed_index_collections::{TiSlice, TiVec};

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Rounds of scheduling backward and forward at most.
    pub rounds: usize,
    /// Swaps on the critical path that are tried at most.
    pub swaps: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self { rounds: 12, swaps: 1000 }
    }
}

/// A plan that has been retimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retimed {
    /// The plan: the given one where nothing better was found.
    pub plan: Plan,
    /// Cycles of the given plan.
    pub before: Cycles,
    /// Cycles of `plan`, at most `before`.
    pub after: Cycles,
}

impl Retimed {
    /// The cycles saved.
    pub fn saved(&self) -> Cycles {
        self.before - self.after
    }
}

/// Gives the steps of `plan` an order that takes fewer cycles, if it finds one; `None` when the graph
/// has no timing. Offsets and spills are those of `plan`, and its order of the steps of each buffer
/// and of the buffers at each address.
///
/// # Errors
/// When the plan is not valid, or all its cycles together pass 2⁶⁴ − 1.
pub fn retime(graph: &Graph, machine: &Machine, plan: &Plan) -> Result<Option<Retimed>, MeasureError> {
    retime_with(graph, machine, plan, Effort::default())
}

/// As [`retime`], with a given effort.
///
/// # Errors
/// As [`retime`].
pub fn retime_with(
    graph: &Graph,
    machine: &Machine,
    plan: &Plan,
    effort: Effort,
) -> Result<Option<Retimed>, MeasureError> {
    let Some(mut timed) = TimedPlan::new(graph, machine, plan)? else { return Ok(None) };
    let before = timed.makespan();
    let bound = timed.address_floor().cycles;
    if before > bound {
        let mut best = Best { makespan: before, order: timed.order().raw.to_vec() };
        schedules(&timed, effort.rounds, bound, &mut best);
        timed.reorder(0.into(), &best.order)?;
        swaps::improve(&mut timed, effort.swaps, bound);
    }
    let after = timed.makespan();
    if after >= before {
        return Ok(Some(Retimed { plan: plan.clone(), before, after: before }));
    }
    let slower = plan;
    let mut plan = Plan { schedule: timed.schedule(), ..plan.clone() };
    if !reserve::keeps(graph, machine, &plan) {
        return Ok(Some(Retimed { plan: slower.clone(), before, after: before }));
    }
    if let Some(counters) = &mut plan.counters {
        counters.cycles_saved += (before - after).0;
    }
    Ok(Some(Retimed { plan, before, after }))
}

/// The best order so far.
struct Best {
    makespan: Cycles,
    order: Vec<StepIx>,
}

/// Looks for the best order among list schedules, until one reaches the bound.
fn schedules(timed: &TimedPlan<'_>, rounds: usize, bound: Cycles, best: &mut Best) {
    let network = Network::of(timed);
    let tails = network.tails(timed);
    let mut list = List::new(timed, &network);
    let mut start: Option<(Cycles, TiVec<StepIx, Cycles>)> = None;
    // How long a pipe may wait for a more urgent step, in shares of what it would run instead.
    for patience in [0, 1, 2, 4] {
        let makespan = list.run(Direction::Forward, patience, &|s| tails[s] + timed.cycles(s));
        take(timed, &network, list.order(), makespan, best);
        if start.as_ref().is_none_or(|s| makespan < s.0) {
            start = Some((makespan, ends(timed, list.starts())));
        }
    }
    let Some((_, mut ends_of)) = start else { return };
    let mut idle_rounds = 0;
    for round in 0..rounds {
        if best.makespan <= bound || idle_rounds == 3 {
            return;
        }
        let patience = [0, 4, 2, 1][round % 4];
        // Backward, time runs from the end: what ended last comes first.
        list.run(Direction::Backward, patience, &|s| ends_of[s]);
        let starts = list.starts().to_owned();
        let makespan = list.run(Direction::Forward, patience, &|s| starts[s] + timed.cycles(s));
        ends_of = ends(timed, list.starts());
        let better = take(timed, &network, list.order(), makespan, best);
        idle_rounds = if better { 0 } else { idle_rounds + 1 };
    }
}

fn ends(timed: &TimedPlan<'_>, starts: &TiSlice<StepIx, Cycles>) -> TiVec<StepIx, Cycles> {
    starts.iter_enumerated().map(|(s, &start)| start + timed.cycles(s)).collect()
}

/// Keeps a schedule that is better than the best.
fn take(timed: &TimedPlan<'_>, network: &Network, run: &[StepIx], makespan: Cycles, best: &mut Best) -> bool {
    let is_better = makespan < best.makespan;
    if is_better {
        *best = Best { makespan, order: network.interleave(timed, run) };
    }
    is_better
}
