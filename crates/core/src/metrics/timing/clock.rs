//! One pass over the steps of a plan, under any of the timing models.

use super::Span;
use crate::graph::{Graph, NodeKind};
use crate::hardware::Machine;
use crate::index::{BufIx, CacheIx, NodeIx, PipeIx};
use crate::metrics::MeasureError;
use crate::metrics::last_release::{AddressRanges, LastRelease};
use crate::metrics::steps::{Step, Steps};
use crate::units::Cycles;
use typed_index_collections::{TiVec, ti_vec};

/// What may hold up a step, beyond its predecessors.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Model {
    /// Its pipe, and for every acquire the last release of each of its addresses.
    Segment,
    /// Its pipe, and for every `ALLOC` each earlier `FREE` whose buffer's initial addresses overlap.
    Literal,
    /// Nothing: the end of the last step is the longest path.
    Precedence,
}

/// A plan that is ready to be timed.
pub(super) struct Timed<'a> {
    pub(super) graph: &'a Graph,
    pub(super) machine: &'a Machine,
    pub(super) steps: &'a Steps,
    pub(super) ranges: &'a AddressRanges,
}

impl Timed<'_> {
    /// Times every step in order and returns the makespan.
    pub(super) fn run(&self, model: Model, mut visit: impl FnMut(Span)) -> Result<Cycles, MeasureError> {
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
