//! Prefetch: a pass over a finished plan, ours or a stranger's, that brings each `SPILL_IN` forward.
//!
//! A `SPILL_IN` may move up to a number of op nodes earlier, to where its addresses are free: not
//! before its own `SPILL_OUT`, not before the last release of any of its addresses. Releases stay
//! where they are and every reload stays behind those it waits for, so any subset of the moves gives
//! a valid plan; the offsets, the spills and with them the movement do not change.
//!
//! A move can cost time, when a reload takes its pipe from something more urgent. So moves are tried
//! in batches, all of them first: a batch that makes the plan slower is split in halves, and a single
//! move that does is dropped.

use crate::graph::{Graph, NodeKind};
use crate::hardware::Machine;
use crate::index::{Pos, indices};
use crate::metrics::MeasureError;
use crate::metrics::last_release::AddressRanges;
use crate::metrics::residency;
use crate::metrics::steps::{Step, Steps};
use crate::metrics::timing;
use crate::plan::Plan;
use crate::units::Cycles;
use typed_index_collections::{TiVec, ti_vec};

/// How many times a plan is timed at most while moves are tried; what has not been tried by then is
/// dropped.
const TRIALS: usize = 256;

/// A `SPILL_IN` that may come earlier.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// Where it stands.
    from: Pos,
    /// The step that it may stand just before.
    to: Pos,
}

/// Brings each `SPILL_IN` of `plan` up to `window` op nodes earlier where its space is free and the
/// makespan does not rise. Where the graph has no timing, every reload comes as early as it may.
///
/// # Errors
/// When the plan is not valid, or its makespan passes 2⁶⁴ − 1 cycles.
pub fn prefetch(graph: &Graph, machine: &Machine, plan: &Plan, window: u32) -> Result<Plan, MeasureError> {
    let steps = Steps::resolve(graph, plan)?;
    let moves = moves(graph, machine, &steps, window as usize)?;
    let makespan = timing::segment(graph, machine, plan)?.map(|t| t.makespan);
    let mut search = Search { graph, machine, plan, accepted: vec![false; moves.len()], moves, makespan, trials: 0 };
    search.accept(0, search.moves.len())?;
    let mut result = search.apply();
    if let Some(counters) = &mut result.counters {
        counters.prefetched = search.accepted.iter().filter(|&&a| a).count() as u64;
    }
    Ok(result)
}

/// The moves that pass at least one op, in the order of the schedule.
fn moves(graph: &Graph, machine: &Machine, steps: &Steps, window: usize) -> Result<Vec<Move>, MeasureError> {
    let segments = residency::of_steps(graph, machine, steps)?;
    let ranges = AddressRanges::of(graph, &segments);
    // Positions from 1, so that 0 stands for "never".
    let mut released = ranges.clocks::<u32>();
    let mut current: TiVec<crate::index::BufIx, u32> = ti_vec![0; graph.buffer_count()];
    let mut gone_at: TiVec<crate::index::BufIx, u32> = ti_vec![0; graph.buffer_count()];
    let (mut next_segment, mut ops, mut moves) = (0u32, Vec::new(), Vec::new());
    let steps = steps.as_slice();
    for pos in indices(steps) {
        let after = pos.index() as u32 + 1;
        let (acquires, releases) = match steps[pos] {
            Step::Node(n) => match graph.kind(n) {
                NodeKind::Alloc(b) => (Some(b), None),
                NodeKind::Free(b) => (None, Some(b)),
                NodeKind::Op => {
                    ops.push(pos);
                    (None, None)
                }
            },
            Step::SpillOut { buf, .. } => (None, Some(buf)),
            Step::SpillIn { buf, .. } => (Some(buf), None),
        };
        if let Some(b) = releases {
            released[graph.buf(b).cache].release(ranges.get(current[b]), after);
            gone_at[b] = after;
        }
        if let Some(b) = acquires {
            if let Step::SpillIn { .. } = steps[pos] {
                let free_from = released[graph.buf(b).cache].latest(ranges.get(next_segment)).max(gone_at[b]);
                // The first of the ops that the window lets it pass.
                let reach = ops.len().saturating_sub(window);
                let earliest = ops.get(reach).map_or(pos, |&op| op.max(Pos::new(free_from as usize)));
                if ops.last().is_some_and(|&op| op >= earliest) {
                    moves.push(Move { from: pos, to: earliest });
                }
            }
            current[b] = next_segment;
            next_segment += 1;
        }
    }
    Ok(moves)
}

/// The moves taken so far, and the makespan with them.
struct Search<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    plan: &'a Plan,
    moves: Vec<Move>,
    accepted: Vec<bool>,
    makespan: Option<Cycles>,
    trials: usize,
}

impl Search<'_> {
    /// Takes moves `first..end` together if that does not raise the makespan, otherwise the halves.
    fn accept(&mut self, first: usize, end: usize) -> Result<(), MeasureError> {
        if first == end || self.trials == TRIALS {
            return Ok(());
        }
        self.trials += 1;
        self.accepted[first..end].fill(true);
        let makespan = timing::segment(self.graph, self.machine, &self.apply())?.map(|t| t.makespan);
        if makespan <= self.makespan {
            self.makespan = makespan;
            return Ok(());
        }
        self.accepted[first..end].fill(false);
        if end - first == 1 {
            return Ok(());
        }
        let middle = first + (end - first) / 2;
        self.accept(first, middle)?;
        self.accept(middle, end)
    }

    /// The plan with the accepted moves made.
    fn apply(&self) -> Plan {
        let mut taken: Vec<Move> = self.moves.iter().zip(&self.accepted).filter(|m| *m.1).map(|m| *m.0).collect();
        let mut moved_away = vec![false; self.plan.schedule.len()];
        taken.iter().for_each(|m| moved_away[m.from.index()] = true);
        taken.sort_by_key(|m| m.to);
        let mut taken = taken.into_iter().peekable();
        let mut schedule = Vec::with_capacity(self.plan.schedule.len());
        for (pos, &id) in self.plan.schedule.iter().enumerate() {
            while let Some(m) = taken.next_if(|m| m.to.index() == pos) {
                schedule.push(self.plan.schedule[m.from.index()]);
            }
            if !moved_away[pos] {
                schedule.push(id);
            }
        }
        Plan { schedule, ..self.plan.clone() }
    }
}
