//! The constructor `cluster`: parts of the graph that generated buffers tie together are laid one by
//! one, or two in lockstep, always those that load the least of the bytes they touch.
//!
//! Whether a buffer need be loaded is asked of the past: it is a hit if its cache was never full
//! since its last use, where every hit takes its bytes in between. That is the retrospective optimum
//! of Jain & Lin (*Back to the Future*, ISCA 2016: OPTgen).

use crate::model::{ItemIx, Model};
use crate::order::Readiness;
use crate::ties::Ties;
use spillbench_core::index::{BufIx, CacheIx};
use std::collections::BTreeSet;
use typed_index_collections::{TiVec, ti_vec};

/// Buffers looked at, over all candidates of all steps, roughly at most.
const WORK: usize = 200_000_000;

/// What decides between candidates that load equally much of what they touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taste {
    /// Use that is left for the bytes touched: the longer what is resident then serves, the fewer
    /// times all is exchanged.
    Lasting,
    /// The numbers of the clusters.
    Plain,
}

/// The order.
pub(crate) fn order(model: &Model<'_>, ties: &Ties, taste: Taste) -> Vec<ItemIx> {
    let clusters = Clusters::of(model, ties);
    let buffers: usize = clusters.bufs.iter().map(Vec::len).sum();
    let per_step = WORK / (buffers * 2).max(1);
    let past = Past {
        capacity: model.graph().caches().map(|c| model.machine().cache(c).capacity.0).collect(),
        taken: ti_vec![Vec::new(); model.machine().cache_count()],
        last_use: ti_vec![None; model.graph().buffer_count()],
        time: 0,
    };
    let blocked = clusters.items.iter().enumerate().map(|(c, items)| clusters.waits(model, c, items)).collect();
    let left = clusters.users.iter().map(|users| users.len() as u32).collect();
    let builder = Builder {
        model,
        ties,
        blocked,
        readiness: Readiness::of(model),
        ready: BTreeSet::new(),
        clusters,
        past,
        done: vec![false; model.len()],
        left,
        order: Vec::new(),
        pairs: per_step.clamp(16, 4096),
        taste,
    };
    builder.run()
}

/// The clusters, numbered by their first items.
struct Clusters {
    of: Vec<u32>,
    items: Vec<Vec<ItemIx>>,
    /// The buffers that each shares with others.
    bufs: Vec<Vec<BufIx>>,
    /// The clusters that use each buffer.
    users: TiVec<BufIx, Vec<u32>>,
}

impl Clusters {
    fn of(model: &Model<'_>, ties: &Ties) -> Self {
        let mut parent: Vec<u32> = (0..model.len() as u32).collect();
        for &b in ties.shared().iter().filter(|&&b| ties.is_generated(b)) {
            let items = ties.items(b);
            items.windows(2).for_each(|w| unite(&mut parent, w[0].index(), w[1].index()));
        }
        let mut of = vec![u32::MAX; model.len()];
        let mut items: Vec<Vec<ItemIx>> = Vec::new();
        for item in model.items() {
            let root = find(&mut parent, item.index());
            if of[root] == u32::MAX {
                of[root] = items.len() as u32;
                items.push(Vec::new());
            }
            of[item.index()] = of[root];
            items[of[root] as usize].push(item);
        }
        let mut users: TiVec<BufIx, Vec<u32>> = ti_vec![Vec::new(); model.graph().buffer_count()];
        let mut bufs = vec![Vec::new(); items.len()];
        for &b in ties.shared() {
            let mut clusters: Vec<u32> = ties.items(b).iter().map(|i| of[i.index()]).collect();
            clusters.sort_unstable();
            clusters.dedup();
            clusters.iter().filter(|_| !ties.is_generated(b)).for_each(|&c| bufs[c as usize].push(b));
            users[b] = clusters;
        }
        Self { of, items, bufs, users }
    }

    /// How many edges from other clusters a cluster waits for.
    fn waits(&self, model: &Model<'_>, cluster: usize, items: &[ItemIx]) -> usize {
        let other = |p: &&ItemIx| self.of[p.index()] as usize != cluster;
        items.iter().map(|&i| model.predecessors(i).iter().filter(other).count()).sum()
    }
}

fn find(parent: &mut [u32], mut at: usize) -> usize {
    while parent[at] as usize != at {
        parent[at] = parent[parent[at] as usize];
        at = parent[at] as usize;
    }
    at
}

fn unite(parent: &mut [u32], a: usize, b: usize) {
    let (a, b) = (find(parent, a), find(parent, b));
    // The smaller becomes the root, so that the first item names the cluster.
    parent[a.max(b)] = a.min(b) as u32;
}

/// What the caches held, seen from now.
struct Past {
    capacity: TiVec<CacheIx, u64>,
    /// The bytes taken at every time.
    taken: TiVec<CacheIx, Vec<u64>>,
    last_use: TiVec<BufIx, Option<u32>>,
    time: u32,
}

impl Past {
    /// The most bytes taken from each time on, back to where the cache was full: pairs of the first
    /// such time and the values from there.
    fn levels(&self, cache: CacheIx) -> (usize, Vec<u64>) {
        let (taken, capacity) = (&self.taken[cache], self.capacity[cache]);
        let mut levels = Vec::new();
        let mut most = 0;
        for &t in taken.iter().rev() {
            most = t.max(most);
            if most >= capacity {
                break;
            }
            levels.push(most);
        }
        levels.reverse();
        (taken.len() - levels.len(), levels)
    }

    fn is_hit(&self, buf: BufIx, size: u64, cache: CacheIx, levels: &(usize, Vec<u64>)) -> bool {
        let Some(last) = self.last_use[buf] else { return false };
        match (last as usize + 1).checked_sub(levels.0) {
            None => false,
            Some(at) => levels.1.get(at).copied().unwrap_or(0).saturating_add(size) <= self.capacity[cache],
        }
    }

    /// Uses the buffers of an item now.
    fn run(&mut self, model: &Model<'_>, item: ItemIx) {
        self.taken.iter_mut().for_each(|t| t.push(0));
        for &b in model.steps(item).flat_map(|s| model.accesses(s)) {
            let buf = model.graph().buf(b);
            let (taken, size) = (&mut self.taken[buf.cache], buf.size.0);
            let now = self.time as usize;
            if self.last_use[b] == Some(self.time) {
                continue;
            }
            taken[now] = taken[now].saturating_add(size);
            if let Some(last) = self.last_use[b].replace(self.time) {
                let between = &mut taken[last as usize + 1..now];
                // From the end, since a full cache is near more often than not.
                if between.iter().rev().all(|&t| t.saturating_add(size) <= self.capacity[buf.cache]) {
                    between.iter_mut().for_each(|t| *t += size);
                }
            }
        }
        self.time += 1;
    }
}

struct Builder<'a> {
    model: &'a Model<'a>,
    ties: &'a Ties,
    clusters: Clusters,
    /// Edges from outside that each cluster waits for.
    blocked: Vec<usize>,
    ready: BTreeSet<u32>,
    readiness: Readiness,
    past: Past,
    done: Vec<bool>,
    /// The clusters still to be laid that use each buffer.
    left: TiVec<BufIx, u32>,
    order: Vec<ItemIx>,
    /// Pairs to look at in one step.
    pairs: usize,
    taste: Taste,
}

/// What a candidate would cost: bytes loaded of bytes touched; and what use is left for the bytes it
/// touches: each times the clusters that will want it later.
#[derive(Clone, Copy, Debug)]
struct Rating {
    loaded: u128,
    touched: u128,
    future: u128,
}

impl Rating {
    fn is_below(&self, other: &Self, taste: Taste) -> bool {
        let (mine, theirs) = (self.loaded * other.touched.max(1), other.loaded * self.touched.max(1));
        mine < theirs || (taste == Taste::Lasting && mine == theirs && self.future > other.future)
    }
}

impl Builder<'_> {
    fn run(mut self) -> Vec<ItemIx> {
        self.ready = (0..self.blocked.len() as u32).filter(|&c| self.blocked[c as usize] == 0).collect();
        let mut loose = 0;
        while self.order.len() < self.model.len() {
            match self.choose() {
                Some((one, None)) => self.lay(one),
                Some((one, Some(two))) => self.lay_zipped(one, two),
                // Clusters that wait for each other: items go one by one until some cluster may.
                None => {
                    let ready = |i: &ItemIx| !self.done[i.index()] && self.readiness.is_ready(*i);
                    let from = (loose..self.model.len()).map(ItemIx::new).find(ready);
                    let Some(item) = from else { break };
                    while loose < self.model.len() && self.done[loose] {
                        loose += 1;
                    }
                    self.put(item);
                }
            }
        }
        self.order
    }

    /// The ready cluster, or pair of clusters with a buffer in common, of the best rating.
    fn choose(&self) -> Option<(u32, Option<u32>)> {
        let levels: TiVec<CacheIx, _> = self.model.graph().caches().map(|c| self.past.levels(c)).collect();
        let size = |b: BufIx| self.model.graph().buf(b).size.0;
        let is_hit = |b: BufIx| {
            let cache = self.model.graph().buf(b).cache;
            self.past.is_hit(b, size(b), cache, &levels[cache])
        };
        let mut best: Option<(Rating, (u32, Option<u32>))> = None;
        let mut offer = |rating: Rating, who| {
            if best.as_ref().is_none_or(|b| rating.is_below(&b.0, self.taste)) {
                best = Some((rating, who));
            }
        };
        let bytes = |c: u32, skip_hits: bool| {
            let bufs = self.clusters.bufs[c as usize].iter().filter(|&&b| !skip_hits || !is_hit(b));
            bufs.map(|&b| u128::from(size(b))).sum::<u128>()
        };
        let mut pairs = self.pairs;
        let mut partners: Vec<u32> = Vec::new();
        for &one in &self.ready {
            let (loaded, touched) = (bytes(one, true), bytes(one, false));
            let mine = &self.clusters.bufs[one as usize];
            let use_left = |b: BufIx, taken: u32| u128::from(size(b)) * u128::from(self.left[b].saturating_sub(taken));
            let future = mine.iter().map(|&b| use_left(b, 1)).sum::<u128>();
            offer(Rating { loaded, touched, future }, (one, None));
            partners.clear();
            for &b in &self.clusters.bufs[one as usize] {
                let later = self.clusters.users[b].iter().filter(|&&two| two > one && self.ready.contains(&two));
                partners.extend(later.take(pairs));
            }
            partners.sort_unstable();
            partners.dedup();
            for &two in partners.iter().take(pairs) {
                pairs -= 1;
                let (mut loaded, mut future) = (loaded, future);
                for &b in &self.clusters.bufs[two as usize] {
                    if mine.binary_search(&b).is_ok() {
                        // The second use of what both use is one less to come.
                        future -= u128::from(size(b)).min(future);
                    } else {
                        future += use_left(b, 1);
                        loaded += if is_hit(b) { 0 } else { u128::from(size(b)) };
                    }
                }
                offer(Rating { loaded, touched: touched + bytes(two, false), future }, (one, Some(two)));
            }
        }
        best.map(|b| b.1)
    }

    fn put(&mut self, item: ItemIx) {
        if std::mem::replace(&mut self.done[item.index()], true) {
            return;
        }
        self.order.push(item);
        self.past.run(self.model, item);
        let own = self.clusters.of[item.index()];
        self.readiness.done(self.model, item, |_| {});
        for &s in self.model.successors(item) {
            let cluster = self.clusters.of[s.index()];
            if cluster != own {
                self.blocked[cluster as usize] -= 1;
                if self.blocked[cluster as usize] == 0 {
                    self.ready.insert(cluster);
                }
            }
        }
    }

    /// Takes a cluster from those to be laid.
    fn take(&mut self, cluster: u32) {
        self.ready.remove(&cluster);
        self.clusters.bufs[cluster as usize].iter().for_each(|&b| self.left[b] -= 1);
    }

    fn lay(&mut self, cluster: u32) {
        self.take(cluster);
        self.lay_items(cluster);
    }

    fn lay_items(&mut self, cluster: u32) {
        for i in 0..self.clusters.items[cluster as usize].len() {
            self.put(self.clusters.items[cluster as usize][i]);
        }
    }

    /// Lays two clusters in lockstep: each item of the first, then the item of the second that
    /// shares a buffer with it, each after what it waits for.
    fn lay_zipped(&mut self, one: u32, two: u32) {
        self.take(one);
        self.take(two);
        let mut stack = Vec::new();
        for i in 0..self.clusters.items[one as usize].len() {
            let item = self.clusters.items[one as usize][i];
            let partner = self.partner(item, two);
            for wanted in [Some(item), partner].into_iter().flatten() {
                stack.push(wanted);
                while let Some(&top) = stack.last() {
                    match self.model.predecessors(top).iter().find(|p| !self.done[p.index()]) {
                        Some(&before) => stack.push(before),
                        None => {
                            stack.pop();
                            self.put(top);
                        }
                    }
                }
            }
        }
        self.lay_items(two);
    }

    fn partner(&self, item: ItemIx, cluster: u32) -> Option<ItemIx> {
        let shared = self.ties.bufs(item).iter().filter(|&&b| !self.ties.is_generated(b));
        let users = shared.flat_map(|&b| self.ties.items(b)).copied();
        users.into_iter().find(|i| self.clusters.of[i.index()] == cluster && !self.done[i.index()])
    }
}
