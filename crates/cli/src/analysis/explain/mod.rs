//! Why a plan spills: each decision with who held the space, where the cost falls, and which single
//! change would have saved most.
//!
//! Positions are places in the schedule of the plan, spill nodes included, from 0; scores are those
//! that the heuristic gave, by positions before any spill.

mod buffers;
mod decisions;
mod groups;
mod reserved;
mod timeline;
mod what_if;

pub use buffers::{BufferCost, Event};
pub use decisions::{Collector, DecisionStory, Held, VictimStory};
pub use groups::{CacheShare, OpShare, Share};
pub use reserved::{ClearingStory, Forced};
pub use timeline::CacheTimeline;
pub use what_if::{Outcome as WhatIf, Setting, what_if};

use super::run::{Run, RunError};
use serde::Serialize;
use spillbench_core::index::{BufIx, NodeIx, Pos};
use spillbench_core::metrics::{MeasureError, Segment, Step, Steps, residency};
use spillbench_core::{Graph, Machine};
use typed_index_collections::{TiVec, ti_vec};

/// What is told about one plan, but for other plans.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// Failed requests for space in all.
    pub failed_requests: usize,
    /// The failed requests that cost most, dearest first.
    pub decisions: Vec<DecisionStory>,
    /// What went out of the way of reservations, without any request.
    pub by_reservations: Forced,
    /// The reservations that moved most out of their way, dearest first.
    pub reservations: Vec<ClearingStory>,
    /// Failed requests and movement by cache.
    pub by_cache: Vec<CacheShare>,
    /// Failed requests and movement by what asked for space.
    pub by_op: Vec<OpShare>,
    /// Buffers that moved in all.
    pub moved_buffers: usize,
    /// The buffers that moved most.
    pub buffers: Vec<BufferCost>,
    /// Occupancy and fragmentation by tenths of the schedule, per cache.
    pub timeline: Vec<CacheTimeline>,
}

/// A plan with the places of everything in it.
pub struct Mapped<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    steps: Steps,
    segments: Vec<Segment>,
    /// Where each node stands in the plan.
    place: TiVec<NodeIx, Pos>,
    /// Where the `SPILL_OUT` of each spill stands.
    outs: Vec<Pos>,
}

impl<'a> Mapped<'a> {
    /// Places everything.
    ///
    /// # Errors
    /// When the plan is not valid.
    pub fn new(graph: &'a Graph, machine: &'a Machine, run: &Run) -> Result<Self, MeasureError> {
        let steps = Steps::resolve(graph, &run.plan)?;
        let segments = residency::of_steps(graph, machine, &steps)?;
        let mut place = ti_vec![Pos::new(0); graph.node_count()];
        let mut outs = vec![Pos::new(0); run.plan.spills.len()];
        for (pos, &step) in steps.as_slice().iter_enumerated() {
            match step {
                Step::Node(n) => place[n] = pos,
                Step::SpillOut { spill, .. } => outs[spill as usize] = pos,
                Step::SpillIn { .. } => {}
            }
        }
        Ok(Self { graph, machine, steps, segments, place, outs })
    }

    /// The position of the first use of `buf` after `pos`, or of its `FREE`.
    fn next_use(&self, buf: BufIx, pos: Pos) -> Pos {
        let uses = self.graph.users(buf).iter().map(|&n| self.place[n]).filter(|&p| p > pos);
        uses.min().unwrap_or(self.place[self.graph.buf(buf).free])
    }
}

/// Explains a run whose decisions were collected; `top` bounds the lists of decisions and buffers.
///
/// # Errors
/// When the plan is not valid.
pub fn explain(
    graph: &Graph,
    machine: &Machine,
    run: &Run,
    collector: &Collector,
    top: usize,
) -> Result<Explanation, RunError> {
    let mapped = Mapped::new(graph, machine, run)?;
    Ok(Explanation {
        failed_requests: collector.len(),
        decisions: decisions::dearest(&mapped, collector, top),
        by_reservations: reserved::forced(graph, collector),
        reservations: reserved::dearest(&mapped, collector, top),
        by_cache: groups::by_cache(graph, collector),
        by_op: groups::by_op(graph, collector),
        moved_buffers: buffers::moved(&mapped).len(),
        buffers: buffers::dearest(&mapped, top),
        timeline: timeline::timeline(&mapped)?,
    })
}
