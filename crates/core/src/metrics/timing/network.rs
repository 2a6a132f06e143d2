//! A plan as a network of steps: what each waits for, in forms that a change of the order can
//! update in place.

use super::Span;
use super::addresses::{AddressMap, Piece};
use crate::graph::{Graph, NodeKind};
use crate::hardware::Machine;
use crate::index::{BufIx, CacheIx, NodeIx, PipeIx, Pos, SegIx, StepIx, indices};
use crate::metrics::MeasureError;
use crate::metrics::residency::{Segment, of_steps};
use crate::metrics::steps::{Step, Steps};
use crate::plan::{Plan, SpillIds};
use crate::units::{Bytes, Cycles, Id, Offset};
use smallvec::SmallVec;
use typed_index_collections::{TiSlice, TiVec, ti_vec};

/// Stands for no step.
pub(super) const NONE: StepIx = StepIx::NONE;

/// What a step is, without its buffer.
#[derive(Clone, Copy)]
pub(super) enum Ends {
    Node(NodeIx),
    Out(usize),
    Back(usize),
}

/// The address range of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub cache: CacheIx,
    pub low: u64,
    pub high: u64,
}

/// A valid plan with the time of every step by the model `segment`, and all that each step waits for.
///
/// The steps, the addresses and the spills are those of the plan. Their order can be changed
/// ([`TimedPlan::reorder`]); everything then is as if the plan had been read in the new order.
///
/// Reading a plan takes O((n + e) log n) for n steps and e links.
#[derive(Debug)]
pub struct TimedPlan<'a> {
    pub(super) graph: &'a Graph,
    pub(super) machine: &'a Machine,
    spill_ids: SpillIds,
    spilled: Vec<BufIx>,
    pub(super) pipes: TiVec<StepIx, Option<PipeIx>>,
    pub(super) cycles: TiVec<StepIx, Cycles>,
    pub(super) order: TiVec<Pos, StepIx>,
    pub(super) places: TiVec<StepIx, Pos>,
    /// The segment that an acquire opens or a release closes; of no meaning for ops.
    pub(super) own_segment: TiVec<StepIx, SegIx>,
    /// The segment in which each op finds each of its operands; those of an op from `held_from`.
    pub(super) held: Vec<SegIx>,
    pub(super) held_from: TiVec<NodeIx, u32>,
    pub(super) users: TiVec<SegIx, SmallVec<[StepIx; 4]>>,
    pub(super) release_of: TiVec<SegIx, StepIx>,
    pub(super) extents: TiVec<SegIx, Extent>,
    /// What a segment lies over: the pieces of its addresses that were released before.
    pub(super) over: TiVec<SegIx, SmallVec<[Piece; 2]>>,
    /// The segments that lie over this one, once for each piece.
    pub(super) under: TiVec<SegIx, SmallVec<[SegIx; 4]>>,
    pub(super) pipe_before: TiVec<StepIx, StepIx>,
    pub(super) pipe_after: TiVec<StepIx, StepIx>,
    pub(super) pipe_last: TiVec<PipeIx, StepIx>,
    pub(super) starts: TiVec<StepIx, Cycles>,
    pub(super) ends: TiVec<StepIx, Cycles>,
    pub(super) scratch: super::reorder::Scratch,
}

impl<'a> TimedPlan<'a> {
    /// Reads and times a plan; `None` when some op has no pipe or no cycles.
    ///
    /// # Errors
    /// When the plan is not valid; when the cycles of all steps together pass 2⁶⁴ − 1.
    pub fn new(graph: &'a Graph, machine: &'a Machine, plan: &Plan) -> Result<Option<Self>, MeasureError> {
        if !graph.has_timing() {
            return Ok(None);
        }
        let steps = Steps::resolve(graph, plan)?;
        let segments = of_steps(graph, machine, &steps)?;
        let spilled: Vec<_> = plan.spills.iter().filter_map(|s| graph.buf_by_id(s.buf)).collect();
        let mut timed = Self::unlinked(graph, machine, spilled);
        timed.weigh()?;
        timed.link(&steps, &segments)?;
        timed.evaluate();
        Ok(Some(timed))
    }

    /// All the storage, and nothing known yet.
    fn unlinked(graph: &'a Graph, machine: &'a Machine, spilled: Vec<BufIx>) -> Self {
        let steps = graph.node_count() + 2 * spilled.len();
        let segments = graph.buffer_count() + spilled.len();
        let mut held_from = TiVec::with_capacity(graph.node_count());
        let mut uses = 0u32;
        for n in graph.nodes() {
            held_from.push(uses);
            uses += if graph.kind(n) == NodeKind::Op { graph.operands(n).len() as u32 } else { 0 };
        }
        let nowhere = Extent { cache: CacheIx::new(0), low: 0, high: 0 };
        Self {
            graph,
            machine,
            spill_ids: SpillIds::after(graph.max_id()),
            spilled,
            pipes: ti_vec![None; steps],
            cycles: ti_vec![Cycles(0); steps],
            order: TiVec::with_capacity(steps),
            places: ti_vec![Pos::new(0); steps],
            own_segment: ti_vec![SegIx::new(0); steps],
            held: vec![SegIx::new(0); uses as usize],
            held_from,
            users: ti_vec![SmallVec::new(); segments],
            release_of: ti_vec![NONE; segments],
            extents: ti_vec![nowhere; segments],
            over: ti_vec![SmallVec::new(); segments],
            under: ti_vec![SmallVec::new(); segments],
            pipe_before: ti_vec![NONE; steps],
            pipe_after: ti_vec![NONE; steps],
            pipe_last: ti_vec![NONE; machine.pipe_names().len()],
            starts: ti_vec![Cycles(0); steps],
            ends: ti_vec![Cycles(0); steps],
            scratch: super::reorder::Scratch::new(steps, graph.buffer_count(), segments),
        }
    }

    /// Sets pipe and cycles of every step. That all cycles together are a number makes every time
    /// one, in whatever order.
    fn weigh(&mut self) -> Result<(), MeasureError> {
        for n in self.graph.nodes().filter(|&n| self.graph.kind(n) == NodeKind::Op) {
            let step = self.node_step(n);
            self.pipes[step] = self.graph.pipe(n);
            self.cycles[step] = self.graph.cycles(n).unwrap_or_default();
        }
        for (k, &b) in self.spilled.iter().enumerate() {
            let buf = self.graph.buf(b);
            let cost = self.machine.spill_cost().cycles(buf.size);
            let cache = self.machine.cache(buf.cache);
            let (out, back) = (self.out_step(k), self.back_step(k));
            self.pipes[out] = Some(cache.spill_out_pipe);
            self.cycles[out] = if buf.backed { Cycles(0) } else { cost };
            self.pipes[back] = Some(cache.spill_in_pipe);
            self.cycles[back] = cost;
        }
        // A saturated cost is one that passed 2⁶⁴ − 1.
        let total = self.cycles.iter().try_fold(0u64, |sum, c| sum.checked_add(c.0).filter(|&sum| sum < u64::MAX));
        total.map(|_| ()).ok_or(MeasureError::Overflow { what: "cycles" })
    }

    /// Follows the steps in order and sets what each waits for.
    fn link(&mut self, steps: &Steps, segments: &[Segment]) -> Result<(), MeasureError> {
        for s in segments {
            let seg = s.reloaded_by.map_or_else(|| self.first_segment(s.buf), |k| self.spill_segment(k as usize));
            self.extents[seg] = Extent { cache: s.cache, low: s.offset.0, high: s.offset.end(s.size).0 };
        }
        let mut maps: TiVec<CacheIx, AddressMap> = self.graph.caches().map(|_| AddressMap::default()).collect();
        let mut current: TiVec<BufIx, SegIx> = ti_vec![SegIx::new(0); self.graph.buffer_count()];
        for pos in indices(steps.as_slice()) {
            let step = self.step_ix(steps.as_slice()[pos]);
            self.order.push(step);
            self.places[step] = pos;
            match steps.as_slice()[pos] {
                Step::Node(n) => match self.graph.kind(n) {
                    NodeKind::Alloc(b) => {
                        current[b] = self.first_segment(b);
                        self.open(step, current[b], &mut maps)?;
                    }
                    NodeKind::Free(b) => self.close(step, current[b], &mut maps),
                    NodeKind::Op => self.use_operands(n, step, &current),
                },
                Step::SpillOut { buf, .. } => self.close(step, current[buf], &mut maps),
                Step::SpillIn { spill, buf } => {
                    current[buf] = self.spill_segment(spill as usize);
                    self.open(step, current[buf], &mut maps)?;
                }
            }
            if let Some(pipe) = self.pipes[step] {
                let before = std::mem::replace(&mut self.pipe_last[pipe], step);
                self.pipe_before[step] = before;
                if before != NONE {
                    self.pipe_after[before] = step;
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, step: StepIx, seg: SegIx, maps: &mut TiVec<CacheIx, AddressMap>) -> Result<(), MeasureError> {
        self.own_segment[step] = seg;
        let Extent { cache, low, high } = self.extents[seg];
        let (over, under, own) = (&mut self.over[seg], &mut self.under, &self.own_segment);
        let is_free = maps[cache].acquire(low, high, |piece| {
            over.push(piece);
            under[own[piece.by]].push(seg);
        });
        if is_free { Ok(()) } else { Err(self.overlap(step, self.places[step])) }
    }

    /// The error of an acquire at `pos` over addresses that are held.
    pub(super) fn overlap(&self, step: StepIx, pos: Pos) -> MeasureError {
        let seg = self.own_segment[step];
        let buf = self.graph.buf(self.buf_of(seg)).id;
        MeasureError::Overlap { pos: pos.index(), buf, offset: Offset(self.extents[seg].low) }
    }

    fn close(&mut self, step: StepIx, seg: SegIx, maps: &mut TiVec<CacheIx, AddressMap>) {
        self.own_segment[step] = seg;
        self.release_of[seg] = step;
        let Extent { cache, low, high } = self.extents[seg];
        maps[cache].release(low, high, step);
    }

    fn use_operands(&mut self, n: NodeIx, step: StepIx, current: &TiSlice<BufIx, SegIx>) {
        let from = self.held_from[n] as usize;
        for (i, &b) in self.graph.operands(n).iter().enumerate() {
            self.held[from + i] = current[b];
            self.users[current[b]].push(step);
        }
    }
}

/// Names of steps and segments.
impl<'a> TimedPlan<'a> {
    /// The graph of the plan.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The machine that the plan is for.
    pub fn machine(&self) -> &'a Machine {
        self.machine
    }

    /// The steps in order.
    pub fn order(&self) -> &TiSlice<Pos, StepIx> {
        &self.order
    }

    /// Where a step stands.
    #[inline]
    pub fn place(&self, step: StepIx) -> Pos {
        self.places[step]
    }

    /// What a step is.
    pub fn step(&self, step: StepIx) -> Step {
        match self.ends_of(step) {
            Ends::Node(n) => Step::Node(n),
            Ends::Out(k) => Step::SpillOut { spill: k as u32, buf: self.spilled[k] },
            Ends::Back(k) => Step::SpillIn { spill: k as u32, buf: self.spilled[k] },
        }
    }

    /// The external id of a step.
    pub fn id(&self, step: StepIx) -> Id {
        let id = match self.ends_of(step) {
            Ends::Node(n) => Some(self.graph.id(n)),
            Ends::Out(k) => self.spill_ids.out(k),
            Ends::Back(k) => self.spill_ids.back(k),
        };
        // The step was resolved from an id, so it has one.
        id.unwrap_or_default()
    }

    /// The pipe of a step; `None` for cache nodes.
    #[inline]
    pub fn pipe(&self, step: StepIx) -> Option<PipeIx> {
        self.pipes[step]
    }

    /// What a step takes: 0 for cache nodes.
    #[inline]
    pub fn cycles(&self, step: StepIx) -> Cycles {
        self.cycles[step]
    }

    /// When a step starts.
    #[inline]
    pub fn start(&self, step: StepIx) -> Cycles {
        self.starts[step]
    }

    /// When a step ends.
    #[inline]
    pub fn end(&self, step: StepIx) -> Cycles {
        self.ends[step]
    }

    /// When and where a step runs.
    pub fn span(&self, step: StepIx) -> Span {
        Span { start: self.starts[step], end: self.ends[step], pipe: self.pipes[step] }
    }

    /// The steps of a pipe, from the first to the last.
    pub fn on_pipe(&self, pipe: PipeIx) -> Vec<StepIx> {
        let last = Some(self.pipe_last[pipe]).filter(|&s| s != NONE);
        let before = |&s: &StepIx| Some(self.pipe_before[s]).filter(|&s| s != NONE);
        let mut steps: Vec<_> = std::iter::successors(last, before).collect();
        steps.reverse();
        steps
    }

    /// Of every residency segment, its cache and size, and from when until when it holds them: from
    /// the start of its `ALLOC` or `SPILL_IN` to the end of its `FREE` or `SPILL_OUT`, half-open.
    pub fn residencies(&self) -> impl Iterator<Item = (CacheIx, Bytes, Cycles, Cycles)> {
        self.extents.iter_enumerated().map(|(seg, extent)| {
            let (from, to) = (self.starts[self.acquire(seg)], self.ends[self.release_of[seg]]);
            (extent.cache, Bytes(extent.high - extent.low), from, to)
        })
    }

    /// The ids of the steps in order: the schedule of the plan.
    pub fn schedule(&self) -> Vec<Id> {
        self.order.iter().map(|&s| self.id(s)).collect()
    }

    /// True for `ALLOC` and `FREE`.
    pub(crate) fn is_cache_node(&self, step: StepIx) -> bool {
        self.pipes[step].is_none()
    }

    pub(super) fn step_ix(&self, step: Step) -> StepIx {
        match step {
            Step::Node(n) => self.node_step(n),
            Step::SpillOut { spill, .. } => self.out_step(spill as usize),
            Step::SpillIn { spill, .. } => self.back_step(spill as usize),
        }
    }

    #[inline]
    pub(super) fn ends_of(&self, step: StepIx) -> Ends {
        let nodes = self.graph.node_count();
        match step.index().checked_sub(nodes) {
            None => Ends::Node(NodeIx::new(step.index())),
            Some(k) if k % 2 == 0 => Ends::Out(k / 2),
            Some(k) => Ends::Back(k / 2),
        }
    }

    #[inline]
    pub(super) fn node_step(&self, n: NodeIx) -> StepIx {
        StepIx::new(n.index())
    }

    #[inline]
    pub(super) fn out_step(&self, k: usize) -> StepIx {
        StepIx::new(self.graph.node_count() + 2 * k)
    }

    #[inline]
    pub(super) fn back_step(&self, k: usize) -> StepIx {
        StepIx::new(self.graph.node_count() + 2 * k + 1)
    }

    fn first_segment(&self, b: BufIx) -> SegIx {
        SegIx::new(b.index())
    }

    fn spill_segment(&self, k: usize) -> SegIx {
        SegIx::new(self.graph.buffer_count() + k)
    }

    /// True for a segment that an `ALLOC` opens.
    #[inline]
    pub(super) fn is_first(&self, seg: SegIx) -> bool {
        seg.index() < self.graph.buffer_count()
    }

    /// The step that opens a segment.
    #[inline]
    pub(super) fn acquire(&self, seg: SegIx) -> StepIx {
        match seg.index().checked_sub(self.graph.buffer_count()) {
            None => self.node_step(self.graph.buf(BufIx::new(seg.index())).alloc),
            Some(k) => self.back_step(k),
        }
    }

    /// The buffer of a segment.
    pub(super) fn buf_of(&self, seg: SegIx) -> BufIx {
        match seg.index().checked_sub(self.graph.buffer_count()) {
            None => BufIx::new(seg.index()),
            Some(k) => self.spilled[k],
        }
    }

    /// The segments in which an op finds its operands, in their order.
    #[inline]
    pub(super) fn held(&self, n: NodeIx) -> &[SegIx] {
        let from = self.held_from[n] as usize;
        &self.held[from..from + self.graph.operands(n).len()]
    }
}
