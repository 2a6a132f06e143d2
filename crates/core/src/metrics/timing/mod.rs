//! When each step of a plan runs: the timing models `segment` and `literal`, the busy time of
//! every pipe, and the bound no timing of the plan can beat.
//!
//! A step starts once all of these have ended: its predecessors by graph, implied and spill edges;
//! the step before it on its pipe; and, where it takes addresses, what the model says must have
//! left them. Cache nodes take 0 cycles and no pipe; a spill node takes its place on its pipe even
//! at 0 cycles.
//!
//! [`segment`] only times a plan. [`TimedPlan`] also knows what each step waited for: it names the
//! critical path, splits the idle time of every pipe by cause, and times a changed order of the
//! steps without timing all of them again.

mod addresses;
mod clock;
mod critical;
mod evaluate;
mod floor;
mod idle;
mod links;
mod network;
mod reorder;

pub use critical::{CriticalPath, CriticalStep, KindTotal};
pub use floor::{Floor, graph_floor};
pub use idle::{Gap, IdleCause, PipeUse};
pub use links::{Link, LinkKind};
pub use network::TimedPlan;

use super::MeasureError;
use super::last_release::AddressRanges;
use super::residency::{Segment, of_steps};
use super::steps::Steps;
use crate::graph::Graph;
use crate::hardware::Machine;
use crate::index::{PipeIx, Pos};
use crate::plan::Plan;
use crate::units::Cycles;
use clock::{Model, Timed};
use typed_index_collections::{TiVec, ti_vec};

/// When and where one step runs: from `start` to `end`, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it starts.
    pub start: Cycles,
    /// When it ends.
    pub end: Cycles,
    /// The pipe that it holds meanwhile; `None` for cache nodes.
    pub pipe: Option<PipeIx>,
}

/// When every step of a plan runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The step at each position of the plan's schedule.
    pub spans: TiVec<Pos, Span>,
    /// When the last step ends.
    pub makespan: Cycles,
}

/// Times a plan by the model `segment`; `None` when some op has no pipe or no cycles.
///
/// # Errors
/// When the plan is not valid; when a time passes 2⁶⁴ − 1.
pub fn segment(graph: &Graph, machine: &Machine, plan: &Plan) -> Result<Option<Timeline>, MeasureError> {
    if !graph.has_timing() {
        return Ok(None);
    }
    let steps = Steps::resolve(graph, plan)?;
    let segments = of_steps(graph, machine, &steps)?;
    let ranges = AddressRanges::of(graph, &segments);
    let timed = Timed { graph, machine, steps: &steps, ranges: &ranges };
    let mut spans = TiVec::with_capacity(steps.as_slice().len());
    let makespan = timed.run(Model::Segment, |span| spans.push(span))?;
    Ok(Some(Timeline { spans, makespan }))
}

/// The timing figures of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// Cycles of the plan by the model `segment`.
    pub makespan: Cycles,
    /// Cycles of the plan by the model `literal`.
    pub makespan_literal: Cycles,
    /// The larger of the busiest pipe and the longest path over graph, implied and spill edges.
    pub lower_bound: Cycles,
    /// Cycles that each pipe works.
    pub busy: TiVec<PipeIx, Cycles>,
}

/// Times a resolved plan; `None` when some op has no pipe or no cycles.
///
/// # Errors
/// When a time passes 2⁶⁴ − 1.
pub fn of_segments(
    graph: &Graph,
    machine: &Machine,
    steps: &Steps,
    segments: &[Segment],
) -> Result<Option<Times>, MeasureError> {
    if !graph.has_timing() {
        return Ok(None);
    }
    let ranges = AddressRanges::of(graph, segments);
    let timed = Timed { graph, machine, steps, ranges: &ranges };
    let mut busy = ti_vec![Cycles(0); machine.pipe_names().len()];
    // All of a pipe's work is done one after another, so its sum is at most the makespan.
    let makespan = timed.run(Model::Segment, |span| {
        if let Some(pipe) = span.pipe {
            busy[pipe] += span.end - span.start;
        }
    })?;
    let makespan_literal = timed.run(Model::Literal, |_| {})?;
    let critical_path = timed.run(Model::Precedence, |_| {})?;
    let lower_bound = busy.iter().copied().fold(critical_path, Cycles::max);
    Ok(Some(Times { makespan, makespan_literal, lower_bound, busy }))
}
