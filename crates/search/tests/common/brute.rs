//! The least movement over all orders, evictions and addresses of a small graph, by Dijkstra's
//! algorithm over what is done and what stands where. It shares nothing with the search.
//!
//! Nothing is lost by these choices: a buffer comes at a use of it and goes where another takes its
//! place (a shorter segment stays valid), it goes for good after its last use, and it starts at
//! address 0 or where segments of the graph's sizes stacked from 0 can end (whatever packs can be
//! pushed down until every segment rests on another or on the floor).

use spillbench_core::index::{BufIx, NodeIx};
use spillbench_core::{Graph, Machine, NodeKind};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

const AWAY: u8 = u8::MAX;

struct Brute {
    /// Per op: operands, and the ops before it.
    operands: Vec<Vec<usize>>,
    before: Vec<u32>,
    /// Per buffer: size, cost of a spill, cache, the ops that use it, where it may start.
    size: Vec<u8>,
    cost: Vec<u64>,
    cache: Vec<usize>,
    users: Vec<u32>,
    starts: Vec<Vec<u8>>,
    caches: usize,
}

/// The least movement of a valid plan over all topological orders; `None` past `states` states.
/// The graph has at most 32 ops, bytes below 255, and no edges of cache nodes but the implied ones.
pub fn least_movement(graph: &Graph, machine: &Machine, states: usize) -> Option<u64> {
    Brute::new(graph, machine).solve(states)
}

impl Brute {
    fn new(graph: &Graph, machine: &Machine) -> Self {
        let ops: Vec<NodeIx> = graph.nodes().filter(|&n| graph.kind(n) == NodeKind::Op).collect();
        let place = |n: NodeIx| ops.iter().position(|&o| o == n);
        assert!(ops.len() <= 32);
        let mask = |nodes: &[NodeIx]| nodes.iter().filter_map(|&n| place(n)).fold(0u32, |m, o| m | 1 << o);
        let bufs: Vec<BufIx> = graph.bufs().collect();
        let size: Vec<u8> = bufs.iter().map(|&b| u8::try_from(graph.buf(b).size.0).expect("a small size")).collect();
        let cache: Vec<usize> = bufs.iter().map(|&b| graph.buf(b).cache.index()).collect();
        let starts = (0..bufs.len())
            .map(|b| {
                let capacity = machine.cache(graph.buf(bufs[b]).cache).capacity.0.min(254) as usize;
                let sizes: Vec<usize> =
                    (0..bufs.len()).filter(|&o| cache[o] == cache[b]).map(|o| size[o] as usize).collect();
                let mut ends = vec![false; capacity + 1];
                ends[0] = true;
                for at in 0..=capacity {
                    for &s in sizes.iter().filter(|&&s| at + s <= capacity) {
                        ends[at + s] |= ends[at];
                    }
                }
                (0..=capacity).filter(|&at| ends[at] && at + size[b] as usize <= capacity).map(|at| at as u8).collect()
            })
            .collect();
        Self {
            operands: ops.iter().map(|&n| graph.operands(n).iter().map(|b| b.index()).collect()).collect(),
            before: ops.iter().map(|&n| mask(graph.predecessors(n))).collect(),
            cost: (0..bufs.len())
                .map(|b| {
                    let loaded =
                        ops.iter().any(|&n| graph.op_name(n) == "COPY_IN" && graph.operands(n).contains(&bufs[b]));
                    u64::from(size[b]) * if loaded { 1 } else { 2 }
                })
                .collect(),
            users: bufs.iter().map(|&b| mask(graph.users(b))).collect(),
            caches: machine.cache_count(),
            size,
            cache,
            starts,
        }
    }

    fn solve(&self, states: usize) -> Option<u64> {
        let all = if self.before.len() == 32 { u32::MAX } else { (1u32 << self.before.len()) - 1 };
        let mut known: HashMap<(u32, Vec<u8>), u64> = HashMap::new();
        let mut queue = BinaryHeap::new();
        let first = (0u32, vec![AWAY; self.size.len()]);
        known.insert(first.clone(), 0);
        queue.push(Reverse((0u64, first.0.leading_zeros(), first)));
        while let Some(Reverse((cost, _, (done, at)))) = queue.pop() {
            if done == all {
                return Some(cost);
            }
            if known.len() > states {
                return None;
            }
            if known[&(done, at.clone())] < cost {
                continue;
            }
            for op in (0..self.before.len()).filter(|&o| done >> o & 1 == 0 && self.before[o] & !done == 0) {
                let mut outcomes = vec![(cost, at.clone())];
                for cache in 0..self.caches {
                    outcomes = outcomes.iter().flat_map(|(c, at)| self.enter(op, cache, *c, at)).collect();
                }
                let done = done | 1 << op;
                for (cost, mut at) in outcomes {
                    for (place, users) in at.iter_mut().zip(&self.users) {
                        if users & !done == 0 {
                            *place = AWAY;
                        }
                    }
                    let state = (done, at);
                    if known.get(&state).is_none_or(|&k| cost < k) {
                        known.insert(state.clone(), cost);
                        // Among equal costs, those with more done first.
                        queue.push(Reverse((cost, 32 - done.count_ones(), state)));
                    }
                }
            }
        }
        None
    }

    /// All ways to have the operands of `op` in `cache` resident.
    fn enter(&self, op: usize, cache: usize, cost: u64, at: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let here = |b: usize| self.cache[b] == cache;
        let residents: Vec<usize> = (0..at.len()).filter(|&b| here(b) && at[b] != AWAY).collect();
        let mut found = Vec::new();
        for chosen in 0u32..1 << residents.len() {
            let gone: Vec<usize> =
                (0..residents.len()).filter(|i| chosen >> i & 1 == 1).map(|i| residents[i]).collect();
            let mut next = at.to_vec();
            gone.iter().for_each(|&b| next[b] = AWAY);
            let cost = cost + gone.iter().map(|&b| self.cost[b]).sum::<u64>();
            let coming: Vec<usize> =
                self.operands[op].iter().copied().filter(|&b| here(b) && next[b] == AWAY).collect();
            let mut places = vec![next];
            for &b in &coming {
                places = places.iter().flat_map(|next| self.place(b, next)).collect();
            }
            // What went had to go: something new stands where it stood.
            places.retain(|next| gone.iter().all(|&g| coming.iter().any(|&b| self.meet(g, at[g], b, next[b]))));
            found.extend(places.into_iter().map(|next| (cost, next)));
        }
        found
    }

    fn place(&self, b: usize, at: &[u8]) -> Vec<Vec<u8>> {
        let clear = |&start: &u8| {
            (0..at.len()).all(|o| at[o] == AWAY || self.cache[o] != self.cache[b] || !self.meet(o, at[o], b, start))
        };
        let placed = |start: u8| {
            let mut next = at.to_vec();
            next[b] = start;
            next
        };
        self.starts[b].iter().copied().filter(clear).map(placed).collect()
    }

    /// True when two buffers at these addresses overlap.
    fn meet(&self, a: usize, at_a: u8, b: usize, at_b: u8) -> bool {
        let end = |x: usize, at: u8| u16::from(at) + u16::from(self.size[x]);
        u16::from(at_a) < end(b, at_b) && u16::from(at_b) < end(a, at_a)
    }
}
