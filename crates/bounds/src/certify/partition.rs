//! Solves the sets of a partition again.
//!
//! The lemma: what a plan does to a set of buffers of one cache is a plan of the ops that use them,
//! in an order that the graph allows, beside whatever else these ops need there. So sets add up as long
//! as no spill is charged more than it costs in all of them. Here a state is what is done and what is
//! resident; see the comments at each step for why it loses no plan.

use super::{CertifyError, Misfit};
use crate::certificate::BufferSet;
use rustc_hash::FxHashMap;
use spillbench_core::index::{BufIx, CacheIx, NodeIx};
use spillbench_core::{Bytes, Graph, Machine};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Sets with more ops than this prove nothing: they could not be searched.
const MOST_OPS: usize = 4096;
/// All sets together get the states of this many, so that a certificate of many hard ones ends, too.
const MOST_HARD: u64 = 12;
/// What the states of one set may take, in bytes: where a state is large, there are fewer of them,
/// whatever number was allowed.
const MOST_BYTES: u64 = 2 << 30;

/// Which buffers have a share in a set, by index, once it is clear that none is shared out for more
/// than its spill costs.
pub(super) fn shared_out(graph: &Graph, sets: &[BufferSet]) -> Result<Vec<bool>, CertifyError> {
    let mut left: Vec<u64> = graph.bufs().map(|b| graph.buf(b).movement().0).collect();
    let mut is_shared = vec![false; left.len()];
    for set in sets {
        for (b, share) in members(graph, set)?.1 {
            let buf = graph.buf(b);
            let rest = left[b.index()].checked_sub(share);
            left[b.index()] = rest.ok_or(CertifyError::Overshared { buf: buf.id, cost: buf.movement() })?;
            is_shared[b.index()] |= share > 0;
        }
    }
    Ok(is_shared)
}

/// The cache of a set, and its buffers with what a spill costs in it.
fn members(graph: &Graph, set: &BufferSet) -> Result<(CacheIx, BTreeMap<BufIx, u64>), CertifyError> {
    let caches = graph.cache_names().len();
    let unknown = || CertifyError::Cache { cache: set.cache.clone(), why: Misfit::Absent { of: caches } };
    let cache = graph.caches().find(|&c| graph.cache_name(c) == set.cache).ok_or_else(unknown)?;
    let buffers = set.buffers.len();
    if let Some(shares) = set.shares.as_ref().map(Vec::len).filter(|&shares| shares != buffers) {
        return Err(CertifyError::ShareCount { cache: set.cache.clone(), buffers, shares });
    }
    let mut members = BTreeMap::new();
    for (i, &id) in set.buffers.iter().enumerate() {
        let wrong = |why| CertifyError::Buffer { buf: id, cache: set.cache.clone(), why };
        let b = graph.buf_by_id(id).ok_or_else(|| wrong(Misfit::Absent { of: graph.buffer_count() }))?;
        if graph.buf(b).cache != cache {
            return Err(wrong(Misfit::Elsewhere));
        }
        let share = set.shares.as_ref().map_or_else(|| graph.buf(b).movement(), |shares| shares[i]);
        if members.insert(b, share.0).is_some() {
            return Err(wrong(Misfit::Twice));
        }
    }
    Ok((cache, members))
}

/// What the sets prove for every cache, by cache index; at most `states` states are looked at per set.
pub(super) fn evaluate(
    graph: &Graph,
    machine: &Machine,
    sets: &[BufferSet],
    states: u64,
) -> Result<Vec<Bytes>, CertifyError> {
    let mut proven = vec![Bytes(0); graph.cache_names().len()];
    for (cache, cost) in each(graph, machine, sets, states)? {
        let sum = &mut proven[cache.index()];
        sum.0 = sum.0.saturating_add(cost);
    }
    Ok(proven)
}

/// The cache of each set, and what the set proves.
pub(super) fn each(
    graph: &Graph,
    machine: &Machine,
    sets: &[BufferSet],
    states: u64,
) -> Result<Vec<(CacheIx, u64)>, CertifyError> {
    let mut left = states.saturating_mul(MOST_HARD);
    let mut proven = Vec::with_capacity(sets.len());
    for set in sets {
        let (cache, mut members) = members(graph, set)?;
        // What costs nothing is resident for free where an op needs it; other operands take room anyhow.
        members.retain(|_, share| *share > 0);
        // The same buffers may be shared out to many sets, so that stating a set is work, too.
        let mut work = 0;
        let game = (left > 0).then(|| Game::new(graph, machine.cache(cache).capacity.0, cache, &members, &mut work));
        left = left.saturating_sub(work);
        let (cost, work) = game.flatten().map_or((0, 0), |game| game.least_cost(states.min(left)));
        left = left.saturating_sub(work);
        proven.push((cache, cost));
    }
    Ok(proven)
}

/// The ops that use a set of buffers, and nothing else of the graph.
struct Game {
    /// The bytes of the cache, less what each op needs there of other buffers.
    room: Vec<u64>,
    sizes: Vec<u64>,
    costs: Vec<u64>,
    /// The buffers of each op and the ops of each buffer.
    needs: Vec<Vec<usize>>,
    users: Vec<Vec<usize>>,
    /// The ops that must have run before each op; chains of them are not spelled out.
    after: Vec<Vec<usize>>,
}

type Set = Vec<u64>;

fn has(set: &[u64], i: usize) -> bool {
    set[i >> 6] & (1 << (i & 63)) != 0
}

fn flip(set: &mut [u64], i: usize) {
    set[i >> 6] ^= 1 << (i & 63);
}

impl Game {
    /// States the game; adds to `work` what that is in states.
    fn new(graph: &Graph, capacity: u64, cache: CacheIx, costs: &BTreeMap<BufIx, u64>, work: &mut u64) -> Option<Self> {
        let buffers: Vec<BufIx> = costs.keys().copied().collect();
        let mut ops: Vec<NodeIx> = buffers.iter().flat_map(|&b| graph.users(b)).copied().collect();
        ops.sort_unstable();
        ops.dedup();
        if ops.len() > MOST_OPS {
            return None;
        }
        let room = |op: &NodeIx| {
            let others = graph.operands(*op).iter().filter(|&b| graph.buf(*b).cache == cache && !costs.contains_key(b));
            others.fold(capacity, |room, &b| room.saturating_sub(graph.buf(b).size.0))
        };
        // An op that is the first user of its only buffer here may as well run just before the next
        // user, if that leaves no more room, so it is struck out, unless something else may be waiting
        // for it.
        *work += (ops.len() as u64).pow(2) / 16;
        let after = direct(graph, &ops, work);
        let reach = closure(&after);
        let idle = |at: usize| {
            let mut mine = buffers.iter().filter(|&&b| graph.users(b).contains(&ops[at]));
            let (Some(&b), None) = (mine.next(), mine.next()) else { return false };
            let mut others = graph.users(b).iter().filter(|&&u| u != ops[at]).peekable();
            let leads = others.peek().is_some()
                && others.all(|u| {
                    room(u) <= room(&ops[at]) && ops.binary_search(u).is_ok_and(|other| has(&reach[other], at))
                });
            let users: Vec<usize> = graph.users(b).iter().filter_map(|u| ops.binary_search(u).ok()).collect();
            let others = || users.iter().filter(|&&u| u != at);
            let is_behind = |op: usize| others().any(|&u| u == op || has(&reach[op], u));
            leads && (0..ops.len()).all(|op| !has(&reach[op], at) || is_behind(op))
        };
        let kept: Vec<NodeIx> = (0..ops.len()).filter(|&at| !idle(at)).map(|at| ops[at]).collect();
        let place = |n: &NodeIx| kept.binary_search(n).ok();
        let users: Vec<Vec<usize>> =
            buffers.iter().map(|&b| graph.users(b).iter().filter_map(place).collect()).collect();
        let mut needs = vec![Vec::new(); kept.len()];
        for (b, users) in users.iter().enumerate() {
            users.iter().for_each(|&u| needs[u].push(b));
        }
        let sizes = buffers.iter().map(|&b| graph.buf(b).size.0).collect();
        let room = kept.iter().map(room).collect();
        let costs = costs.values().copied().collect();
        Some(Self { room, sizes, costs, needs, users, after: direct(graph, &kept, work) })
    }

    /// The bytes that a state takes at most: its two sets among the known and among the open ones,
    /// with what holds them.
    fn state_bytes(&self) -> u64 {
        let words = self.needs.len().div_ceil(64) + self.sizes.len().div_ceil(64);
        2 * (8 * words as u64 + 128)
    }

    /// The least cost, or a bound on it when `limit` is reached, and how much of it was used.
    /// Dijkstra's algorithm; the cost of a buffer's absence is paid when it leaves.
    fn least_cost(&self, limit: u64) -> (u64, u64) {
        let limit = limit.min(MOST_BYTES / self.state_bytes());
        let mut open = BinaryHeap::new();
        let mut known: FxHashMap<Set, Vec<(Set, u64)>> = FxHashMap::default();
        let mut work = 0u64;
        let mut done = vec![0; self.needs.len().div_ceil(64)];
        let mut inside = vec![0; self.sizes.len().div_ceil(64)];
        self.coast(&mut done, &mut inside);
        known.insert(done.clone(), vec![(inside.clone(), 0)]);
        open.push((Reverse(0), done, inside));
        let mut reached = 0;
        while let Some((Reverse(cost), done, inside)) = open.pop() {
            reached = cost;
            if done.iter().map(|w| w.count_ones() as usize).sum::<usize>() == self.needs.len() || work > limit {
                break;
            }
            let still_known = known.get(&done).is_some_and(|k| k.iter().any(|(i, c)| *c == cost && *i == inside));
            if !still_known {
                continue;
            }
            for op in (0..self.needs.len()).filter(|&op| self.may_run(&done, op)) {
                self.each_way(&inside, op, &mut |leaving: &[usize]| {
                    let (mut next_done, mut next_inside) = (done.clone(), inside.clone());
                    leaving.iter().for_each(|&b| flip(&mut next_inside, b));
                    let paid = leaving.iter().fold(cost, |sum, &b| sum.saturating_add(self.costs[b]));
                    self.play(&mut next_done, &mut next_inside, op);
                    self.coast(&mut next_done, &mut next_inside);
                    let rivals = known.entry(next_done.clone()).or_default();
                    work += 1 + rivals.len() as u64 / 32;
                    if !rivals.iter().any(|(rival, c)| self.rivals(rival, *c, &next_inside, paid)) {
                        rivals.retain(|(rival, c)| !self.rivals(&next_inside, paid, rival, *c));
                        rivals.push((next_inside.clone(), paid));
                        open.push((Reverse(paid), next_done, next_inside));
                    }
                    work <= limit
                });
                if work > limit {
                    // Whatever was not looked at costs at least as much as this state.
                    return (cost, work);
                }
            }
        }
        (reached, work)
    }

    /// Whether the first of two states with the same ops done is at least as good: it can become
    /// the second by paying for what only it has inside, and what only the second has inside the
    /// first gets back for nothing.
    fn rivals(&self, inside: &[u64], cost: u64, other: &[u64], other_cost: u64) -> bool {
        let mut total = cost;
        for b in (0..self.sizes.len()).filter(|&b| has(inside, b) && !has(other, b)) {
            total = total.saturating_add(self.costs[b]);
        }
        total <= other_cost
    }

    fn may_run(&self, done: &[u64], op: usize) -> bool {
        !has(done, op) && self.after[op].iter().all(|&before| has(done, before))
    }

    fn begun(&self, done: &[u64], b: usize) -> bool {
        self.users[b].iter().any(|&u| has(done, u))
    }

    /// Whether `op` is all that is left to do with `b`.
    fn finishes(&self, done: &[u64], b: usize, op: usize) -> bool {
        self.users[b].iter().all(|&u| u == op || has(done, u))
    }

    fn bytes(&self, inside: &[u64]) -> u64 {
        (0..self.sizes.len()).filter(|&b| has(inside, b)).map(|b| self.sizes[b]).sum()
    }

    /// Bytes that come in for `op`.
    fn incoming(&self, inside: &[u64], op: usize) -> u64 {
        self.needs[op].iter().filter(|&&b| !has(inside, b)).map(|&b| self.sizes[b]).sum()
    }

    fn play(&self, done: &mut [u64], inside: &mut [u64], op: usize) {
        flip(done, op);
        for &b in &self.needs[op] {
            let over = self.users[b].iter().all(|&u| has(done, u));
            if has(inside, b) == over {
                flip(inside, b);
            }
        }
    }

    /// Runs ops that are no worse to run now than ever: they fit as things are, whatever comes in
    /// for them goes at once, but for at most one new buffer that takes the place of a resident one
    /// that goes, no smaller and no cheaper, and stands in for it from now on.
    fn coast(&self, done: &mut [u64], inside: &mut [u64]) {
        while let Some(op) = (0..self.needs.len()).find(|&op| self.may_run(done, op) && self.is_safe(done, inside, op))
        {
            self.play(done, inside, op);
        }
    }

    fn is_safe(&self, done: &[u64], inside: &[u64], op: usize) -> bool {
        if self.bytes(inside) + self.incoming(inside, op) > self.room[op] {
            return false;
        }
        let mut staying = self.needs[op].iter().filter(|&&b| !has(inside, b) && !self.finishes(done, b, op));
        match (staying.next(), staying.next()) {
            (None, _) => true,
            (Some(&new), None) if !self.begun(done, new) => self.needs[op].iter().any(|&old| {
                let goes = has(inside, old) && self.finishes(done, old, op);
                goes && self.sizes[old] >= self.sizes[new] && self.costs[old] >= self.costs[new]
            }),
            _ => false,
        }
    }

    /// Calls `visit` with every set of residents that may leave for `op`, until it says stop. More
    /// than what is needed never leaves: it could leave later and cost the same.
    fn each_way(&self, inside: &[u64], op: usize, visit: &mut dyn FnMut(&[usize]) -> bool) {
        let over = (self.bytes(inside) + self.incoming(inside, op)).saturating_sub(self.room[op]);
        let mut others: Vec<usize> =
            (0..self.sizes.len()).filter(|&b| has(inside, b) && !self.needs[op].contains(&b)).collect();
        others.sort_by_key(|&b| Reverse(self.sizes[b]));
        self.leave(&others, over, &mut Vec::new(), visit);
    }

    /// Larger buffers are decided first, so that the last to leave is the smallest that does, and
    /// none could have stayed.
    fn leave(
        &self,
        others: &[usize],
        over: u64,
        leaving: &mut Vec<usize>,
        visit: &mut dyn FnMut(&[usize]) -> bool,
    ) -> bool {
        if over == 0 {
            return visit(leaving);
        }
        let mut left: u64 = others.iter().map(|&b| self.sizes[b]).sum();
        for (i, &b) in others.iter().enumerate() {
            if left < over {
                break;
            }
            leaving.push(b);
            let go_on = self.leave(&others[i + 1..], over.saturating_sub(self.sizes[b]), leaving, visit);
            leaving.pop();
            if !go_on {
                return false;
            }
            left -= self.sizes[b];
        }
        true
    }
}

/// For each op, the ops of the list that are met first on the ways back from it.
fn direct(graph: &Graph, ops: &[NodeIx], work: &mut u64) -> Vec<Vec<usize>> {
    let mut seen = vec![usize::MAX; graph.node_count()];
    let mut visited = graph.node_count() as u64 / 16;
    let mut ways = Vec::new();
    let mut met = Vec::with_capacity(ops.len());
    for (at, &op) in ops.iter().enumerate() {
        let mut found = Vec::new();
        ways.push(op);
        while let Some(node) = ways.pop() {
            visited += 1;
            graph.for_each_predecessor(node, |p| {
                if seen[p.index()] != at {
                    seen[p.index()] = at;
                    match ops.binary_search(&p) {
                        Ok(before) => found.push(before),
                        Err(_) => ways.push(p),
                    }
                }
            });
        }
        met.push(found);
    }
    *work += visited / 16;
    met
}

/// All ops before each op.
fn closure(after: &[Vec<usize>]) -> Vec<Set> {
    let words = after.len().div_ceil(64);
    let mut all: Vec<Option<Set>> = vec![None; after.len()];
    let mut stack: Vec<usize> = (0..after.len()).collect();
    while let Some(&op) = stack.last() {
        let waiting: Vec<usize> = after[op].iter().copied().filter(|&p| all[p].is_none()).collect();
        if all[op].is_some() || waiting.is_empty() {
            stack.pop();
            let mut set = vec![0; words];
            for &p in &after[op] {
                if !has(&set, p) {
                    flip(&mut set, p);
                }
                set.iter_mut().zip(all[p].iter().flatten()).for_each(|(s, w)| *s |= w);
            }
            all[op] = Some(set);
        } else {
            stack.extend(waiting);
        }
    }
    all.into_iter().map(Option::unwrap_or_default).collect()
}
