//! One cache of the evaluator: what is fixed, and the state of the current order.

use super::BLOCK;
use crate::evaluator::Gap;
use crate::model::{ItemIx, Model};
use spillbench_core::NodeKind;
use spillbench_core::index::{BufIx, CacheIx};
use std::ops::Range;

pub(super) const NOWHERE: u32 = u32::MAX;

/// A buffer of the cache: what is fixed, and what the simulation notes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buf {
    pub size: u64,
    /// What one spill of it costs.
    pub cost: u64,
    /// 1 / the unshifted cost.
    pub weight: f64,
    /// Its uses among [`Cache::uses`].
    pub first_use: u32,
    pub end_use: u32,
    /// The simulation in which `low`, `high` and `next` were set.
    pub stamp: u64,
    pub next_stamp: u64,
    /// The ranks of its first and last use in the window.
    pub low: u32,
    pub high: u32,
    /// Position of its next use.
    pub next: u32,
    /// Its place among the residents.
    pub at: u32,
    /// The step that needs it now.
    pub pin: u64,
    /// The simulation in which its way into the window was accounted for.
    pub touched: u64,
}

/// One use of a buffer in the current order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub pos: u32,
    pub access: u32,
}

/// One cache that some order can overfill.
pub(super) struct Cache {
    pub capacity: u64,
    pub bufs: Vec<Buf>,
    /// The buffers of the graph that `bufs` stand for.
    pub members: Vec<BufIx>,
    /// The steps of every item that touch this cache, and the accesses of every step.
    item_steps: Vec<u32>,
    step_accesses: Vec<u32>,
    pub access_buf: Vec<u32>,
    access_global: Vec<u32>,
    /// The uses of each buffer by position.
    pub uses: Vec<Use>,
    /// The place of every access in `uses`.
    pub rank: Vec<u32>,
    /// Whether every access finds its buffer resident, or is the first of all.
    pub hit: Vec<bool>,
    /// The accesses that miss, and the place of every access among them.
    misses: Vec<u32>,
    miss_at: Vec<u32>,
    /// The cost of the misses in every block.
    pub charged: Vec<u64>,
    /// The residents just before every block.
    pub snapshots: Vec<Vec<u32>>,
    pub scratch: Scratch,
}

/// Storage of the simulation.
#[derive(Default)]
pub(super) struct Scratch {
    pub stamp: u64,
    pub step: u64,
    pub residents: Vec<u32>,
    pub next: Vec<u32>,
    pub chosen: Vec<u32>,
    pub dropped: Vec<u32>,
}

impl Cache {
    /// The part of `model` that concerns `cache`; `None` when no order overfills it.
    pub(super) fn new(model: &Model<'_>, cache: CacheIx, shift: u32) -> Option<Self> {
        let graph = model.graph();
        let capacity = model.machine().cache(cache).capacity.0;
        let in_cache = |&&b: &&BufIx| graph.buf(b).cache == cache;
        if !can_overfill(model, cache, capacity) {
            return None;
        }
        let mut local = vec![NOWHERE; graph.buffer_count()];
        let (mut bufs, mut members): (Vec<Buf>, Vec<BufIx>) = (Vec::new(), Vec::new());
        let (mut item_steps, mut step_accesses) = (vec![0], vec![0]);
        let (mut access_buf, mut access_global) = (Vec::new(), Vec::new());
        for item in model.items() {
            for step in model.steps(item) {
                let first = model.first_access(step);
                let touched = model.accesses(step).iter().enumerate().filter(|(_, b)| in_cache(b));
                let before = access_buf.len();
                for (i, &b) in touched {
                    let ix = &mut local[b.index()];
                    if *ix == NOWHERE {
                        *ix = bufs.len() as u32;
                        members.push(b);
                        bufs.push(new_buf(graph.buf(b), shift));
                    }
                    bufs[*ix as usize].end_use += 1;
                    access_buf.push(*ix);
                    access_global.push((first + i) as u32);
                }
                if access_buf.len() > before {
                    step_accesses.push(access_buf.len() as u32);
                }
            }
            item_steps.push(step_accesses.len() as u32 - 1);
        }
        let mut first = 0;
        for buf in &mut bufs {
            let count = buf.end_use;
            (buf.first_use, buf.end_use) = (first, first + count);
            first += count;
        }
        let (accesses, blocks) = (access_buf.len(), model.len().div_ceil(BLOCK));
        Some(Self {
            capacity,
            bufs,
            members,
            item_steps,
            step_accesses,
            access_buf,
            access_global,
            uses: vec![Use { pos: 0, access: 0 }; accesses],
            rank: vec![0; accesses],
            hit: vec![true; accesses],
            misses: Vec::new(),
            miss_at: vec![NOWHERE; accesses],
            charged: vec![0; blocks],
            snapshots: vec![Vec::new(); blocks],
            scratch: Scratch::default(),
        })
    }

    /// Takes up the uses of `order`; what is resident is for the simulation to say.
    pub(super) fn load(&mut self, order: &[ItemIx]) {
        let mut filled: Vec<u32> = self.bufs.iter().map(|b| b.first_use).collect();
        for (pos, &item) in order.iter().enumerate() {
            for access in self.accesses_of(item) {
                let slot = &mut filled[self.access_buf[access] as usize];
                self.uses[*slot as usize] = Use { pos: pos as u32, access: access as u32 };
                self.rank[access] = *slot;
                *slot += 1;
            }
        }
        self.hit.fill(true);
        self.miss_at.fill(NOWHERE);
        self.misses.clear();
        self.charged.fill(0);
        self.snapshots.iter_mut().for_each(Vec::clear);
    }

    #[inline]
    pub(super) fn steps_of(&self, item: ItemIx) -> Range<usize> {
        self.item_steps[item.index()] as usize..self.item_steps[item.index() + 1] as usize
    }

    #[inline]
    pub(super) fn accesses_in(&self, step: usize) -> Range<usize> {
        self.step_accesses[step] as usize..self.step_accesses[step + 1] as usize
    }

    #[inline]
    pub(super) fn accesses_of(&self, item: ItemIx) -> Range<usize> {
        let steps = self.steps_of(item);
        self.step_accesses[steps.start] as usize..self.step_accesses[steps.end] as usize
    }

    #[inline]
    pub(super) fn is_touched_by(&self, item: ItemIx) -> bool {
        !self.steps_of(item).is_empty()
    }

    /// The cost of the misses in some blocks.
    pub(super) fn charged_in(&self, blocks: Range<usize>) -> u64 {
        self.charged[blocks].iter().sum()
    }

    /// Notes whether an access of the current order finds its buffer.
    pub(super) fn set_hit(&mut self, access: usize, hit: bool) {
        self.hit[access] = hit;
        let at = self.miss_at[access];
        if hit && at != NOWHERE {
            self.misses.swap_remove(at as usize);
            if let Some(&moved) = self.misses.get(at as usize) {
                self.miss_at[moved as usize] = at;
            }
            self.miss_at[access] = NOWHERE;
        } else if !hit && at == NOWHERE {
            self.miss_at[access] = self.misses.len() as u32;
            self.misses.push(access as u32);
        }
    }

    pub(super) fn fault_count(&self) -> usize {
        self.misses.len()
    }

    /// The gap before the `at`-th access that misses.
    pub(super) fn fault(&self, at: usize) -> Gap {
        let rank = self.rank[self.misses[at] as usize] as usize;
        // An access that misses is never the first of its buffer.
        Gap { from: self.uses[rank - 1].pos as usize, to: self.uses[rank].pos as usize }
    }

    pub(super) fn write_hits(&self, hits: &mut [bool]) {
        self.misses.iter().for_each(|&a| hits[self.access_global[a as usize] as usize] = false);
    }
}

fn new_buf(buffer: &spillbench_core::graph::Buffer, shift: u32) -> Buf {
    let cost = buffer.movement().0;
    Buf {
        size: buffer.size.0,
        cost: (cost >> shift).max(1),
        weight: 1.0 / cost as f64,
        first_use: 0,
        end_use: 0,
        stamp: 0,
        next_stamp: 0,
        low: 0,
        high: 0,
        next: 0,
        at: NOWHERE,
        pin: 0,
        touched: 0,
    }
}

/// False when the buffers that live inside one item, item by item, and all others together fit.
fn can_overfill(model: &Model<'_>, cache: CacheIx, capacity: u64) -> bool {
    let graph = model.graph();
    let home = |b: BufIx| {
        let mut items = graph.users(b).iter().map(|&n| model.item_of(n));
        let first = items.next().flatten()?;
        items.all(|i| i == Some(first)).then_some(first)
    };
    let mut inside = vec![0u64; model.len()];
    let mut across = 0u64;
    for b in graph.bufs().filter(|&b| graph.buf(b).cache == cache) {
        let plain = graph.successors(graph.buf(b).alloc).iter().all(|&n| is_of(graph, n, b))
            && graph.predecessors(graph.buf(b).free).iter().all(|&n| is_of(graph, n, b));
        let sum = match home(b).filter(|_| plain) {
            Some(item) => &mut inside[item.index()],
            None => &mut across,
        };
        *sum = sum.saturating_add(graph.buf(b).size.0);
    }
    across.saturating_add(inside.into_iter().max().unwrap_or(0)) > capacity
}

/// True when the node belongs to the buffer anyway: its user, its `ALLOC`, its `FREE`.
fn is_of(graph: &spillbench_core::Graph, node: spillbench_core::index::NodeIx, buf: BufIx) -> bool {
    match graph.kind(node) {
        NodeKind::Alloc(b) | NodeKind::Free(b) => b == buf,
        NodeKind::Op => graph.operands(node).contains(&buf),
    }
}
