//! The objective `peak`: bytes live at once, capacities ignored, with at most one live buffer in
//! each exclusive cache.
//!
//! A buffer is live from its first to its last use. The cost of an order is the number of blocks ×
//! its peak, plus the sum of the peaks of its blocks: the first alone would leave almost every move
//! without effect. A second live buffer in an exclusive cache weighs as much as all that counts.

use crate::evaluator::{Change, Evaluator, Gap};
use crate::model::{ItemIx, Model};
use spillbench_core::index::CacheIx;
use spillbench_core::{Graph, Machine, NodeKind, Plan};
use typed_index_collections::{TiVec, ti_vec};

/// Positions between two checkpoints.
const BLOCK: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Buf {
    /// Its size where it counts, otherwise 0.
    size: u64,
    /// Its exclusive cache, if any.
    exclusive: Option<CacheIx>,
    first_use: u32,
    end_use: u32,
    stamp: u64,
    low: u32,
    seen: u32,
}

/// What is live between two steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Live {
    bytes: u64,
    /// Live buffers of each exclusive cache.
    counts: Vec<u32>,
}

/// The evaluator of peak demand.
pub struct Peak<'a> {
    model: &'a Model<'a>,
    bufs: Vec<Buf>,
    /// The place of every access among the uses of its buffer, by position.
    rank: Vec<u32>,
    /// What is live before every block, and the peak within it.
    before: Vec<Live>,
    peaks: Vec<u64>,
    place: Vec<u32>,
    penalty: u64,
    cost: u64,
    stamp: u64,
    window: Vec<ItemIx>,
    window_peaks: Vec<u64>,
    window_before: Vec<Live>,
}

impl<'a> Peak<'a> {
    /// An evaluator of the orders of `model`, holding the order of its items as they are numbered.
    pub fn new(model: &'a Model<'a>) -> Self {
        let (graph, machine) = (model.graph(), model.machine());
        let shift = size_shift(model);
        let mut bufs: Vec<Buf> = graph
            .bufs()
            .map(|b| {
                let cache = machine.cache(graph.buf(b).cache);
                Buf {
                    size: if cache.counts_in_peak { graph.buf(b).size.0 >> shift } else { 0 },
                    exclusive: cache.exclusive.then_some(graph.buf(b).cache),
                    first_use: 0,
                    end_use: 0,
                    stamp: 0,
                    low: 0,
                    seen: 0,
                }
            })
            .collect();
        (0..model.step_count()).flat_map(|s| model.accesses(s)).for_each(|b| bufs[b.index()].end_use += 1);
        let mut first = 0;
        for buf in &mut bufs {
            (buf.first_use, first) = (first, first + buf.end_use);
            buf.end_use = first;
        }
        let blocks = model.len().div_ceil(BLOCK);
        let penalty = bufs.iter().map(|b| b.size).sum::<u64>().max(1);
        let mut new = Self {
            model,
            bufs,
            rank: vec![0; model.access_count()],
            before: vec![Live::default(); blocks],
            peaks: vec![0; blocks],
            place: vec![0; model.len()],
            penalty,
            cost: 0,
            stamp: 0,
            window: Vec::new(),
            window_peaks: Vec::new(),
            window_before: Vec::new(),
        };
        new.reset(&model.items().collect::<Vec<_>>());
        new
    }

    /// The peak of the current order: bytes, penalties included.
    pub fn peak(&self) -> u64 {
        self.peaks.iter().copied().max().unwrap_or(0)
    }

    fn access_range(&self, item: ItemIx) -> impl Iterator<Item = std::ops::Range<usize>> + use<'a> {
        let model = self.model;
        model.steps(item).map(move |s| {
            let first = model.first_access(s);
            first..first + model.accesses(s).len()
        })
    }

    /// Walks the window, which begins a block; fills `window_peaks` and `window_before`.
    fn walk(&mut self, first: usize) {
        self.stamp += 1;
        let model = self.model;
        let window = std::mem::take(&mut self.window);
        for &item in &window {
            for step in model.steps(item) {
                for (i, b) in model.accesses(step).iter().enumerate() {
                    let rank = self.rank[model.first_access(step) + i];
                    let buf = &mut self.bufs[b.index()];
                    buf.low = if buf.stamp == self.stamp { buf.low.min(rank) } else { rank };
                    (buf.stamp, buf.seen) = (self.stamp, 0);
                }
            }
        }
        let mut live = self.before.get(first / BLOCK).cloned().unwrap_or_default();
        self.window_peaks.clear();
        self.window_before.clear();
        for (i, &item) in window.iter().enumerate() {
            if i.is_multiple_of(BLOCK) {
                self.window_peaks.push(0);
                self.window_before.push(live.clone());
            }
            for step in model.steps(item) {
                let here = self.step(step, &mut live);
                if let Some(peak) = self.window_peaks.last_mut() {
                    *peak = here.max(*peak);
                }
            }
        }
        self.window = window;
    }

    /// Brings the buffers of a step to life, and those that it uses last to their end; returns what
    /// the step weighs.
    fn step(&mut self, step: usize, live: &mut Live) -> u64 {
        let accesses = self.model.accesses(step);
        for b in accesses {
            let buf = &mut self.bufs[b.index()];
            if buf.low == buf.first_use && buf.seen == 0 {
                live.bytes += buf.size;
                if let Some(cache) = buf.exclusive {
                    let least = cache.index() + 1;
                    live.counts.resize(live.counts.len().max(least), 0);
                    live.counts[cache.index()] += 1;
                }
            }
            buf.seen += 1;
        }
        let surplus: u64 = live.counts.iter().map(|&c| u64::from(c.saturating_sub(1))).sum();
        let weight = live.bytes + surplus * self.penalty;
        for b in accesses {
            let buf = &self.bufs[b.index()];
            if buf.low + buf.seen == buf.end_use {
                live.bytes -= buf.size;
                if let Some(cache) = buf.exclusive {
                    live.counts[cache.index()] -= 1;
                }
            }
        }
        weight
    }

    /// The cost with the peaks of the window in place of those stored.
    fn cost_with(&self, first: usize) -> u64 {
        let (start, end) = (first / BLOCK, first / BLOCK + self.window_peaks.len());
        let outside = self.peaks[..start].iter().chain(&self.peaks[end..]);
        let (peak, sum) = outside.chain(&self.window_peaks).fold((0, 0u64), |(p, s), &x| (x.max(p), s + x));
        peak * self.peaks.len() as u64 + sum
    }

    fn keep(&mut self, first: usize) {
        self.cost = self.cost_with(first);
        let start = first / BLOCK;
        for (i, (peak, before)) in self.window_peaks.iter().zip(&mut self.window_before).enumerate() {
            self.peaks[start + i] = *peak;
            self.before[start + i] = std::mem::take(before);
        }
        // The uses of the window in their new order: `low` is the first rank of each buffer in it.
        let window = std::mem::take(&mut self.window);
        for (i, &item) in window.iter().enumerate() {
            self.place[item.index()] = (first + i) as u32;
            for range in self.access_range(item) {
                for access in range {
                    let buf = &mut self.bufs[self.model.accesses_flat()[access].index()];
                    self.rank[access] = buf.low;
                    buf.low += 1;
                }
            }
        }
        self.window = window;
    }
}

impl Evaluator for Peak<'_> {
    fn reset(&mut self, order: &[ItemIx]) -> u64 {
        let mut filled: Vec<u32> = self.bufs.iter().map(|b| b.first_use).collect();
        for &item in order {
            for access in self.access_range(item).flatten() {
                let slot = &mut filled[self.model.accesses_flat()[access].index()];
                self.rank[access] = *slot;
                *slot += 1;
            }
        }
        if let Some(first) = self.before.first_mut() {
            *first = Live::default();
        }
        self.window.clear();
        self.window.extend_from_slice(order);
        self.walk(0);
        self.keep(0);
        self.cost
    }

    fn probe(&mut self, order: &[ItemIx], change: Change<'_>, limit: u64) -> Option<u64> {
        let first = change.align(order, BLOCK, &mut self.window);
        self.walk(first);
        Some(self.cost_with(first)).filter(|&cost| cost <= limit)
    }

    fn commit(&mut self, order: &[ItemIx], change: Change<'_>) {
        let first = change.align(order, BLOCK, &mut self.window);
        self.walk(first);
        self.keep(first);
    }

    fn cost(&self) -> u64 {
        self.cost
    }

    /// A gap between two uses of a buffer that is live at the peak.
    fn fault(&self, draw: u64) -> Option<Gap> {
        let peak = self.peak();
        let tall: Vec<_> = (0..self.peaks.len()).filter(|&b| self.peaks[b] == peak).collect();
        let block = *tall.get((draw % tall.len().max(1) as u64) as usize)?;
        let at = block * BLOCK + (draw >> 32) as usize % BLOCK;
        let graph = self.model.graph();
        let count = graph.buffer_count();
        let start = (draw >> 8) as usize % count.max(1);
        (0..count.min(64)).map(|i| (start + i * 7919) % count).find_map(|b| {
            let buf = &self.bufs[b];
            if buf.size == 0 {
                return None;
            }
            let users = graph.users(spillbench_core::index::BufIx::new(b));
            let places = users.iter().filter_map(|&n| self.model.item_of(n)).map(|i| self.place[i.index()] as usize);
            let from = places.clone().filter(|&p| p <= at).max()?;
            let to = places.filter(|&p| p > at).min()?;
            Some(Gap { from, to })
        })
    }
}

/// How far sizes must be shifted so that no cost passes 2⁶².
fn size_shift(model: &Model<'_>) -> u32 {
    let graph = model.graph();
    let sum: u128 = graph.bufs().map(|b| u128::from(graph.buf(b).size.0)).sum();
    let weight = sum.saturating_mul(2 * (graph.buffer_count() as u128 + 2) * (model.len() as u128 + 2));
    (128 - weight.leading_zeros()).saturating_sub(62)
}

/// True when a plan never has two buffers of an exclusive cache between `ALLOC` and `FREE` at once.
pub(crate) fn keeps_exclusive(graph: &Graph, machine: &Machine, plan: &Plan) -> bool {
    let mut live: TiVec<CacheIx, u32> = ti_vec![0; machine.cache_count()];
    plan.schedule.iter().filter_map(|&id| graph.node_by_id(id)).all(|n| {
        match graph.kind(n) {
            NodeKind::Alloc(b) => live[graph.buf(b).cache] += 1,
            NodeKind::Free(b) => live[graph.buf(b).cache] = live[graph.buf(b).cache].saturating_sub(1),
            NodeKind::Op => {}
        }
        graph.caches().all(|c| !machine.cache(c).exclusive || live[c] <= 1)
    })
}
