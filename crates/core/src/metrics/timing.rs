//! When each step of a plan runs: the timing models `segment` and `literal`, the busy time of
//! every pipe, and the bound no timing of the plan can beat.
//!
//! A step starts once all of these have ended: its predecessors by graph, implied and spill edges;
//! the step before it on its pipe; and, where it takes addresses, what the model says must have
//! left them. Cache nodes take 0 cycles and no pipe; a spill node takes its place on its pipe even
//! at 0 cycles.

use super::MeasureError;
use super::last_release::{AddressRanges, LastRelease};
use super::residency::{Segment, of_steps};
use super::steps::{Step, Steps};
use crate::graph::{Graph, NodeKind};
use crate::hardware::Machine;
use crate::index::{BufIx, CacheIx, NodeIx, PipeIx, Pos};
use crate::plan::Plan;
use crate::units::Cycles;
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

/// What may hold up a step, beyond its predecessors.
#[derive(Clone, Copy, PartialEq)]
enum Model {
    /// Its pipe, and for every acquire the last release of each of its addresses.
    Segment,
    /// Its pipe, and for every `ALLOC` each earlier `FREE` whose buffer's initial addresses overlap.
    Literal,
    /// Nothing: the end of the last step is the longest path.
    Precedence,
}

/// A plan that is ready to be timed.
struct Timed<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    steps: &'a Steps,
    ranges: &'a AddressRanges,
}

impl Timed<'_> {
    /// Times every step in order and returns the makespan.
    fn run(&self, model: Model, mut visit: impl FnMut(Span)) -> Result<Cycles, MeasureError> {
        let mut clock = Clock::new(self, model);
        let mut makespan = Cycles(0);
        for &step in self.steps.as_slice() {
            let span = match step {
                Step::Node(n) => clock.node(n),
                Step::SpillOut { buf, .. } => clock.spill_out(buf),
                Step::SpillIn { buf, .. } => clock.spill_in(buf),
            };
            let span = span.ok_or(MeasureError::Overflow { what: "cycles" })?;
            makespan = makespan.max(span.end);
            visit(span);
        }
        Ok(makespan)
    }
}

/// What is known while the steps are timed in order. A step's span is `None` past 2⁶⁴ − 1.
struct Clock<'a> {
    plan: &'a Timed<'a>,
    model: Model,
    ends: TiVec<NodeIx, Cycles>,
    pipe_free: TiVec<PipeIx, Cycles>,
    bufs: TiVec<BufIx, BufClock>,
    released: TiVec<CacheIx, LastRelease<Cycles>>,
    next_segment: u32,
}

#[derive(Clone, Copy, Default)]
struct BufClock {
    /// End of the `ALLOC` or `SPILL_IN` of the current segment.
    ready: Cycles,
    /// End of the last of its users, `ready` at least.
    quiet: Cycles,
    /// The current segment.
    segment: u32,
    /// The segment that its `ALLOC` began.
    first_segment: u32,
}

impl<'a> Clock<'a> {
    fn new(plan: &'a Timed<'a>, model: Model) -> Self {
        Self {
            plan,
            model,
            ends: ti_vec![Cycles(0); plan.graph.node_count()],
            pipe_free: ti_vec![Cycles(0); plan.machine.pipe_names().len()],
            bufs: ti_vec![BufClock::default(); plan.graph.buffer_count()],
            released: plan.ranges.clocks(),
            next_segment: 0,
        }
    }

    fn node(&mut self, n: NodeIx) -> Option<Span> {
        let graph = self.plan.graph;
        let ready = graph.predecessors(n).iter().map(|&p| self.ends[p]).max().unwrap_or_default();
        let span = match graph.kind(n) {
            NodeKind::Alloc(b) => {
                self.bufs[b].first_segment = self.next_segment;
                let at = ready.max(self.acquire(b, self.model != Model::Precedence));
                self.begin(b, at);
                Span { start: at, end: at, pipe: None }
            }
            NodeKind::Free(b) => {
                let at = ready.max(self.bufs[b].quiet);
                self.release(b, at, true);
                Span { start: at, end: at, pipe: None }
            }
            NodeKind::Op => {
                let operands = graph.operands(n);
                let ready = operands.iter().map(|&b| self.bufs[b].ready).fold(ready, Cycles::max);
                let span = self.occupy(graph.pipe(n)?, ready, graph.cycles(n)?)?;
                operands.iter().for_each(|&b| self.bufs[b].quiet = self.bufs[b].quiet.max(span.end));
                span
            }
        };
        self.ends[n] = span.end;
        Some(span)
    }

    fn spill_out(&mut self, b: BufIx) -> Option<Span> {
        let buf = self.plan.graph.buf(b);
        let cost = if buf.backed { Cycles(0) } else { self.plan.machine.spill_cost().cycles(buf.size) };
        let pipe = self.plan.machine.cache(buf.cache).spill_out_pipe;
        let span = self.occupy(pipe, self.bufs[b].quiet, cost)?;
        self.release(b, span.end, false);
        self.begin(b, span.end);
        Some(span)
    }

    fn spill_in(&mut self, b: BufIx) -> Option<Span> {
        let buf = self.plan.graph.buf(b);
        let cost = self.plan.machine.spill_cost().cycles(buf.size);
        let pipe = self.plan.machine.cache(buf.cache).spill_in_pipe;
        let ready = self.acquire(b, self.model == Model::Segment).max(self.bufs[b].quiet);
        let span = self.occupy(pipe, ready, cost)?;
        self.begin(b, span.end);
        Some(span)
    }

    /// Runs `cycles` on a pipe, once it is free and `ready` has come.
    fn occupy(&mut self, pipe: PipeIx, ready: Cycles, cycles: Cycles) -> Option<Span> {
        let free = &mut self.pipe_free[pipe];
        let start = if self.model == Model::Precedence { ready } else { ready.max(*free) };
        // A saturated cost is one that passed 2⁶⁴ − 1.
        let end = Cycles(start.0.checked_add(cycles.0).filter(|_| cycles.0 < u64::MAX)?);
        *free = end;
        Some(Span { start, end, pipe: Some(pipe) })
    }

    fn begin(&mut self, b: BufIx, at: Cycles) {
        self.bufs[b].ready = at;
        self.bufs[b].quiet = at;
    }

    /// Enters the next segment; when it `waits`, until its addresses have been left.
    fn acquire(&mut self, b: BufIx, waits: bool) -> Cycles {
        self.bufs[b].segment = self.next_segment;
        self.next_segment += 1;
        let cache = self.plan.graph.buf(b).cache;
        let range = self.plan.ranges.get(self.bufs[b].segment);
        if waits { self.released[cache].latest(range) } else { Cycles(0) }
    }

    /// Leaves the current segment at `at`, by the `FREE` or by a `SPILL_OUT`.
    fn release(&mut self, b: BufIx, at: Cycles, by_free: bool) {
        let segment = match self.model {
            Model::Segment => self.bufs[b].segment,
            Model::Literal if by_free => self.bufs[b].first_segment,
            _ => return,
        };
        self.released[self.plan.graph.buf(b).cache].release(self.plan.ranges.get(segment), at);
    }
}
