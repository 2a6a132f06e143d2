//! What the decoder walks: the items of a model as steps with their pipes, cycles and buffers.

use crate::model::{ItemIx, Model};
use spillbench_core::hardware::smallest_capacities;
use spillbench_core::index::{BufIx, NodeIx, PipeIx};
use spillbench_core::{Cycles, Graph, NodeKind};
use std::ops::Range;
use thiserror::Error;
use typed_index_collections::{TiVec, ti_vec};

/// One node of an item: an op, or a gate.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub node: NodeIx,
    /// Pipe and cycles; `None` for gates, which take neither.
    pub work: Option<Work>,
    /// Its buffers among [`Program::accesses`].
    pub accesses: Range<usize>,
    /// The nodes whose ends it waits for, among [`Program::waits`].
    pub waits: Range<usize>,
}

/// What an op does to its pipe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub pipe: usize,
    pub cycles: u64,
    /// Cycles of the longest path behind it.
    pub tail: u64,
}

/// A buffer that a step needs resident, or at least alive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The buffer, by its place in [`Program::bufs`].
    pub buf: u32,
    /// False where only an odd edge asks for it: then its contents and later users do not wait.
    pub is_operand: bool,
    /// True where the odd edge is one from its `ALLOC`, whose end the step waits for.
    pub after_alloc: bool,
}

/// A buffer that some step uses.
#[derive(Clone, Debug)]
pub(super) struct Buf {
    pub ix: BufIx,
    pub size: u64,
    /// Bytes that one spill of it moves.
    pub moved: u64,
    /// What one spill of it costs beside bytes and cycles: energy, where that is the objective.
    pub price: u64,
    pub cache: usize,
    /// Cycles of its `SPILL_IN` and its `SPILL_OUT`.
    pub cycles_in: u64,
    pub cycles_out: u64,
    /// The load that stands just before its first use.
    pub load: Option<(NodeIx, Work)>,
    /// Its uses by position, among those of all buffers.
    pub uses: Range<usize>,
    /// The nodes that its `ALLOC` and its `FREE` wait for beyond its users, among
    /// [`Program::waits`].
    pub alloc_waits: Range<usize>,
    pub free_waits: Range<usize>,
}

/// One cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub capacity: u64,
    pub pipe_in: usize,
    pub pipe_out: usize,
}

/// Why orders of a graph cannot be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Untimed {
    /// Some op has no pipe or no cycles.
    #[error("some op has no pipe or no cycles")]
    NoTiming,
    /// The cycles, bytes or prices of all that may happen pass what can be summed.
    #[error("cycles, sizes or energies are too large to search: their sum passes 2^52")]
    OutOfRange,
}

/// Cycles, bytes and prices of a whole plan must stay below this.
const MOST: u128 = 1 << 52;

/// The items of a model as the decoder walks them.
#[derive(Debug)]
pub(super) struct Program<'a> {
    pub model: &'a Model<'a>,
    item_steps: Vec<u32>,
    pub steps: Vec<Step>,
    pub accesses: Vec<Access>,
    pub waits: Vec<NodeIx>,
    /// Those that several items use come first.
    pub bufs: Vec<Buf>,
    pub shared: usize,
    pub rooms: Vec<Room>,
    /// Cycles of all ops of each pipe, and of the shortest path behind any of them.
    pub work: Vec<u64>,
    pub least_tail: Vec<u64>,
    /// Buffers that no step uses.
    pub unused: Vec<BufIx>,
}

impl<'a> Program<'a> {
    /// The program of a model; `price` is what one spill of a buffer costs beside bytes and cycles.
    pub(super) fn new(model: &'a Model<'a>, price: &dyn Fn(BufIx) -> u64) -> Result<Self, Untimed> {
        let graph = model.graph();
        if !graph.has_timing() {
            return Err(Untimed::NoTiming);
        }
        let least = smallest_capacities(graph);
        let rooms = graph.caches().map(|c| {
            let cache = model.machine().cache(c);
            // What is reserved at any time is left alone throughout, where that leaves enough to walk
            // at all; otherwise plans that touch it are refused when they are checked.
            let reserved = model.machine().reservations().iter().filter(|r| r.cache == c);
            let usable = reserved.fold(cache.capacity.0, |left, r| left.saturating_sub(r.bytes.0));
            let capacity = if usable >= least[c].0.0 { usable } else { cache.capacity.0 };
            let (pipe_in, pipe_out) = (cache.spill_in_pipe.index(), cache.spill_out_pipe.index());
            Room { capacity, pipe_in, pipe_out }
        });
        let pipes = model.machine().pipe_names().len();
        let mut program = Self {
            model,
            item_steps: vec![0],
            steps: Vec::new(),
            accesses: Vec::new(),
            waits: Vec::new(),
            bufs: Vec::new(),
            shared: 0,
            rooms: rooms.collect(),
            work: vec![0; pipes],
            least_tail: vec![u64::MAX; pipes],
            unused: Vec::new(),
        };
        let local = program.find_bufs(price);
        let tails = tails(graph);
        program.find_loads(&local, &tails);
        program.find_steps(&local, &tails);
        program.sum_work();
        if program.is_in_range() { Ok(program) } else { Err(Untimed::OutOfRange) }
    }

    /// What one spill of a buffer costs beside bytes and cycles; 0 for buffers that no step uses.
    pub(super) fn price(&self, buf: BufIx) -> u64 {
        self.bufs.iter().find(|b| b.ix == buf).map_or(0, |b| b.price)
    }

    /// The steps of an item.
    #[inline]
    pub(super) fn steps_of(&self, item: ItemIx) -> Range<usize> {
        self.item_steps[item.index()] as usize..self.item_steps[item.index() + 1] as usize
    }

    /// The accesses of an item.
    #[inline]
    pub(super) fn accesses_of(&self, item: ItemIx) -> Range<usize> {
        let steps = self.steps_of(item);
        match steps.is_empty() {
            true => 0..0,
            false => self.steps[steps.start].accesses.start..self.steps[steps.end - 1].accesses.end,
        }
    }

    pub(super) fn pipes(&self) -> usize {
        self.work.len()
    }

    /// Numbers the buffers that steps use, shared ones first; returns their numbers.
    fn find_bufs(&mut self, price: &dyn Fn(BufIx) -> u64) -> TiVec<BufIx, u32> {
        let (model, graph) = (self.model, self.model.graph());
        let mut items: TiVec<BufIx, Option<(ItemIx, bool, usize)>> = ti_vec![None; graph.buffer_count()];
        for item in model.items() {
            for_each_step(model, item, |_, accessed| {
                accessed.iter().for_each(|a| match &mut items[a.0] {
                    Some((first, shared, uses)) => (*shared, *uses) = (*shared || *first != item, *uses + 1),
                    none => *none = Some((item, false, 1)),
                })
            });
        }
        let mut local = ti_vec![u32::MAX; graph.buffer_count()];
        let mut first_use = 0;
        for wants_shared in [true, false] {
            for b in graph.bufs() {
                let Some((_, _, uses)) = items[b].filter(|i| i.1 == wants_shared) else { continue };
                local[b] = self.bufs.len() as u32;
                let buf = self.buf(b, first_use..first_use + uses, price(b));
                self.bufs.push(buf);
                first_use += uses;
            }
            self.shared = if wants_shared { self.bufs.len() } else { self.shared };
        }
        self.unused = graph.bufs().filter(|&b| items[b].is_none()).collect();
        local
    }

    fn buf(&mut self, ix: BufIx, uses: Range<usize>, price: u64) -> Buf {
        let (graph, machine) = (self.model.graph(), self.model.machine());
        let buffer = graph.buf(ix);
        let cycles = machine.spill_cost().cycles(buffer.size).0;
        let alloc_waits = self.push_waits(graph.predecessors(buffer.alloc).iter().copied());
        let is_other = |&&n: &&NodeIx| n != buffer.alloc && !graph.users(ix).contains(&n);
        let free_waits = self.push_waits(graph.predecessors(buffer.free).iter().filter(is_other).copied());
        Buf {
            ix,
            size: buffer.size.0,
            moved: buffer.movement().0,
            price,
            cache: buffer.cache.index(),
            cycles_in: cycles,
            cycles_out: if buffer.backed { 0 } else { cycles },
            load: None,
            uses,
            alloc_waits,
            free_waits,
        }
    }

    fn push_waits(&mut self, nodes: impl Iterator<Item = NodeIx>) -> Range<usize> {
        let first = self.waits.len();
        self.waits.extend(nodes);
        first..self.waits.len()
    }

    fn find_loads(&mut self, local: &TiVec<BufIx, u32>, tails: &TiVec<NodeIx, u64>) {
        let (model, graph) = (self.model, self.model.graph());
        for n in graph.nodes().filter(|&n| graph.kind(n) == NodeKind::Op && model.item_of(n).is_none()) {
            if let (&[b], Some(work)) = (graph.operands(n), work(model, n, tails))
                && local[b] != u32::MAX
            {
                self.bufs[local[b] as usize].load = Some((n, work));
            }
        }
    }

    fn find_steps(&mut self, local: &TiVec<BufIx, u32>, tails: &TiVec<NodeIx, u64>) {
        let (model, graph) = (self.model, self.model.graph());
        for item in model.items() {
            for_each_step(model, item, |node, accessed| {
                let first = self.accesses.len();
                let after = |b: BufIx| graph.predecessors(node).contains(&graph.buf(b).alloc);
                let access = |&(b, is_operand): &(BufIx, bool)| Access {
                    buf: local[b],
                    is_operand,
                    after_alloc: !is_operand && after(b),
                };
                self.accesses.extend(accessed.iter().map(access));
                // What its accesses stand for: the ALLOCs of its buffers, and the loads before them.
                let is_implied = |p: NodeIx| match graph.kind(p) {
                    NodeKind::Alloc(_) => true,
                    NodeKind::Op => model.item_of(p).is_none(),
                    NodeKind::Free(_) => false,
                };
                let is_op = graph.kind(node) == NodeKind::Op;
                let before = graph.predecessors(node).iter().copied().filter(|&p| is_op && !is_implied(p));
                let waits = self.push_waits(before);
                let accesses = first..self.accesses.len();
                self.steps.push(Step { node, work: work(model, node, tails), accesses, waits });
            });
            self.item_steps.push(self.steps.len() as u32);
        }
    }

    fn sum_work(&mut self) {
        let loads = self.bufs.iter().filter_map(|b| b.load.map(|l| l.1));
        let all: Vec<Work> = self.steps.iter().filter_map(|s| s.work).chain(loads).collect();
        for work in all {
            self.work[work.pipe] = self.work[work.pipe].saturating_add(work.cycles);
            self.least_tail[work.pipe] = self.least_tail[work.pipe].min(work.tail);
        }
        self.least_tail.iter_mut().filter(|t| **t == u64::MAX).for_each(|t| *t = 0);
    }

    /// True when no plan that the decoder can make passes what it can sum: every step may at worst
    /// move each of its buffers, and make each resident one go.
    fn is_in_range(&self) -> bool {
        let work: u128 = self.work.iter().map(|&w| u128::from(w)).sum();
        let worst = |of: &dyn Fn(&Buf) -> u64| self.bufs.iter().map(|b| u128::from(of(b))).max().unwrap_or(0);
        let spills = (self.accesses.len() as u128 + 1) * 8;
        let per_spill =
            worst(&|b| b.cycles_in).max(worst(&|b| b.moved)).max(worst(&|b| b.price)).max(worst(&|b| b.size));
        work.saturating_add(spills.saturating_mul(per_spill)) < MOST
    }
}

/// Calls `visit` with every node of an item that is a step, and the buffers it needs resident; an
/// `ALLOC` or `FREE` that is a gate needs its own.
fn for_each_step(model: &Model<'_>, item: ItemIx, mut visit: impl FnMut(NodeIx, &[(BufIx, bool)])) {
    let graph = model.graph();
    let mut steps = model.steps(item);
    let mut accessed = Vec::new();
    for &node in model.nodes(item) {
        accessed.clear();
        match graph.kind(node) {
            NodeKind::Alloc(b) | NodeKind::Free(b) => accessed.push((b, true)),
            NodeKind::Op => {
                let operands = graph.operands(node);
                let step = steps.next().map_or(&[][..], |s| model.accesses(s));
                accessed.extend(step.iter().map(|&b| (b, operands.contains(&b))));
            }
        }
        visit(node, &accessed);
    }
}

fn work(model: &Model<'_>, node: NodeIx, tails: &TiVec<NodeIx, u64>) -> Option<Work> {
    let graph = model.graph();
    let pipe: PipeIx = graph.pipe(node)?;
    Some(Work { pipe: pipe.index(), cycles: graph.cycles(node)?.0, tail: tails[node] })
}

/// The cycles of the longest path behind each node.
pub(super) fn tails(graph: &Graph) -> TiVec<NodeIx, u64> {
    let mut tails = ti_vec![0u64; graph.node_count()];
    for n in graph.topological_order().into_iter().rev() {
        let mut tail = 0;
        graph.for_each_successor(n, |s| {
            let cycles = graph.cycles(s).unwrap_or(Cycles(0)).0;
            tail = tail.max(cycles.saturating_add(tails[s]));
        });
        tails[n] = tail;
    }
    tails
}
