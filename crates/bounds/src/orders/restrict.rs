//! The graph restricted to a set of buffers: what of a plan the set sees.
//!
//! For a set `B` of buffers of one cache, the restriction keeps the ops that use a buffer of `B`,
//! each after those that reach it in the graph; only buffers of `B` take room for longer than an op,
//! and only their spills cost. While an op runs, its other operands of that cache take room too. A plan
//! of the graph, with everything else struck out, is a plan of the restriction.

use super::bits::{self, Bits};
use rustc_hash::FxHashSet;
use spillbench_core::index::{BufIx, CacheIx, NodeIx, Pos};
use spillbench_core::{Graph, Machine, Schedule};
use typed_index_collections::TiVec;

/// A restriction, in numbers of its own: ops and buffers count from 0.
#[derive(Clone, Debug)]
pub(super) struct Restriction {
    /// Bytes of the cache, less those of the operands of each op that are not of the set.
    pub room: Vec<u64>,
    /// Size of each buffer.
    pub sizes: Vec<u64>,
    /// What a spill of each buffer moves.
    pub costs: Vec<u64>,
    /// The ops that use each buffer.
    pub users: Vec<Bits>,
    /// The buffers that each op uses, by number.
    pub operands: Vec<Vec<u32>>,
    /// The ops that each op must follow.
    pub before: Vec<Bits>,
}

impl Restriction {
    /// Restricts `graph` to `buffers`, which are of one cache, each once, with what a spill of each
    /// costs, which is more than nothing; `order` is any schedule.
    ///
    /// An op that uses a single buffer of the set, before all other users of it, and leaves no less room
    /// than they do, is left out where all that must follow it is such a user or must follow one: it needs
    /// nothing that the next user does not need, and may run just before that.
    pub(super) fn new(graph: &Graph, machine: &Machine, order: &Order, priced: &[(BufIx, u64)]) -> Self {
        let buffers: Vec<BufIx> = priced.iter().map(|p| p.0).collect();
        let room = Room::new(graph, machine, &buffers);
        let mut used: Vec<NodeIx> = buffers.iter().flat_map(|&b| graph.users(b)).copied().collect();
        used.sort_unstable();
        let single: Vec<NodeIx> = used.chunk_by(|a, b| a == b).filter(|c| c.len() == 1).map(|c| c[0]).collect();
        used.dedup();
        let before = Before::new(graph, order, &used);
        let loads: Vec<NodeIx> = (buffers.iter())
            .filter(|&&b| graph.users(b).len() > 1)
            .filter_map(|&b| {
                let users = graph.users(b);
                let leaves_most = |u| users.iter().all(|&other| room.beside(other) <= room.beside(u));
                let may_wait = |u| leaves_most(u) && before.leads(u, users) && before.waits_for(u, users);
                users.iter().find(|&&u| single.binary_search(&u).is_ok() && may_wait(u))
            })
            .copied()
            .collect();
        used.retain(|u| !loads.contains(u));
        let before = Before::new(graph, order, &used);
        let words = bits::words(used.len());
        let mut users = vec![bits::empty(words); buffers.len()];
        let mut operands = vec![Vec::new(); used.len()];
        for (i, &b) in buffers.iter().enumerate() {
            for op in graph.users(b).iter().filter_map(|&n| before.number(n)) {
                bits::insert(&mut users[i], op);
                operands[op].push(i as u32);
            }
        }
        Self {
            room: used.iter().map(|&n| room.beside(n)).collect(),
            sizes: buffers.iter().map(|&b| graph.buf(b).size.0).collect(),
            costs: priced.iter().map(|p| p.1).collect(),
            before: used.iter().map(|&n| before.of(n).into()).collect(),
            users,
            operands,
        }
    }

    pub(super) fn ops(&self) -> usize {
        self.operands.len()
    }
}

/// What ops leave of a cache to a set of its buffers.
struct Room<'a> {
    graph: &'a Graph,
    /// The cache and its bytes; `None` for an empty set.
    cache: Option<(CacheIx, u64)>,
    buffers: FxHashSet<BufIx>,
}

impl<'a> Room<'a> {
    fn new(graph: &'a Graph, machine: &Machine, buffers: &[BufIx]) -> Self {
        let cache = buffers.first().map(|&b| graph.buf(b).cache);
        let cache = cache.map(|cache| (cache, machine.cache(cache).capacity.0));
        Self { graph, cache, buffers: buffers.iter().copied().collect() }
    }

    /// The bytes beside the operands of `op` that are not of the set.
    fn beside(&self, op: NodeIx) -> u64 {
        let Some((cache, capacity)) = self.cache else { return 0 };
        let others = self.graph.operands(op).iter().filter(|b| !self.buffers.contains(b));
        let others = others.map(|&b| self.graph.buf(b)).filter(|buf| buf.cache == cache);
        others.fold(capacity, |room, buf| room.saturating_sub(buf.size.0))
    }
}

/// A schedule with the position of every node.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub nodes: TiVec<Pos, NodeIx>,
    pub positions: TiVec<NodeIx, Pos>,
}

impl Order {
    pub(super) fn new(schedule: &Schedule) -> Self {
        Self { nodes: schedule.order().clone(), positions: schedule.positions() }
    }
}

/// Which of some ops reach each other, by bit sets that flow along a schedule, from the first of
/// the ops to the last.
struct Before<'a> {
    ops: &'a [NodeIx],
    words: usize,
    positions: &'a TiVec<NodeIx, Pos>,
    first: usize,
    reach: Vec<u64>,
}

impl<'a> Before<'a> {
    /// `ops` are sorted.
    fn new(graph: &Graph, order: &'a Order, ops: &'a [NodeIx]) -> Self {
        let places = ops.iter().map(|&n| order.positions[n].index());
        let first = places.clone().min().unwrap_or(0);
        let end = places.max().map_or(0, |last| last + 1);
        let words = bits::words(ops.len());
        let reach = vec![0; (end - first) * words];
        let mut before = Self { ops, words, positions: &order.positions, first, reach };
        for &n in &order.nodes.raw[first..end] {
            let to = before.place(n).unwrap_or(0);
            graph.for_each_predecessor(n, |p| {
                let Some(from) = before.place(p) else { return };
                for w in 0..words {
                    before.reach[to + w] |= before.reach[from + w];
                }
                if let Some(i) = before.number(p) {
                    bits::insert(&mut before.reach[to..to + words], i);
                }
            });
        }
        before
    }

    /// Where the set of `node` begins, if it stands no earlier than the first of the ops.
    fn place(&self, node: NodeIx) -> Option<usize> {
        self.positions[node].index().checked_sub(self.first).map(|at| at * self.words)
    }

    fn number(&self, node: NodeIx) -> Option<usize> {
        self.ops.binary_search(&node).ok()
    }

    fn of(&self, op: NodeIx) -> &[u64] {
        self.place(op).map_or(&[], |at| &self.reach[at..at + self.words])
    }

    /// True when all ops that `op` precedes are among the others of `users` or preceded by one of them.
    fn waits_for(&self, op: NodeIx, users: &[NodeIx]) -> bool {
        let Some(number) = self.number(op) else { return false };
        let mut others = bits::empty(self.words);
        users.iter().filter(|&&u| u != op).filter_map(|&u| self.number(u)).for_each(|i| bits::insert(&mut others, i));
        self.ops.iter().enumerate().all(|(i, &n)| {
            let before = self.of(n);
            !bits::contains(before, number) || bits::contains(&others, i) || !bits::is_disjoint(before, &others)
        })
    }

    /// True when `op`, one of the ops, precedes all others of `users`.
    fn leads(&self, op: NodeIx, users: &[NodeIx]) -> bool {
        let number = self.number(op);
        users.iter().all(|&u| u == op || number.is_some_and(|i| bits::contains(self.of(u), i)))
    }
}
