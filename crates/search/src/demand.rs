//! List scheduling by demand: always the ready item that brings least new bytes to life, less those
//! that it ends.

use crate::model::{ItemIx, Model};
use crate::order::{Readiness, Smallest};
use crate::ties::Ties;
use spillbench_core::index::{BufIx, CacheIx};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use typed_index_collections::{TiVec, ti_vec};

/// The order. With `exclusive`, no second buffer of an exclusive cache is brought to life while one
/// is live, as long as something else is ready.
pub(crate) fn order(model: &Model<'_>, ties: &Ties, exclusive: bool) -> Vec<ItemIx> {
    let graph = model.graph();
    let mut list = ListSchedule {
        model,
        ties,
        readiness: Readiness::of(model),
        left: graph.bufs().map(|b| ties.items(b).len() as u32).collect(),
        started: ti_vec![false; graph.buffer_count()],
        live: ti_vec![0; model.machine().cache_count()],
        heap: BinaryHeap::new(),
        key: vec![i128::MAX; model.len()],
        held: Vec::new(),
        exclusive,
    };
    model.items().filter(|&i| list.readiness.is_ready(i)).collect::<Vec<_>>().into_iter().for_each(|i| list.rate(i));
    list.run()
}

struct ListSchedule<'a> {
    model: &'a Model<'a>,
    ties: &'a Ties,
    readiness: Readiness,
    /// Items that still use each buffer.
    left: TiVec<BufIx, u32>,
    started: TiVec<BufIx, bool>,
    live: TiVec<CacheIx, u32>,
    /// Ready items by demand; those whose demand changed since stand there twice.
    heap: BinaryHeap<Smallest<(i128, ItemIx)>>,
    key: Vec<i128>,
    held: Vec<ItemIx>,
    exclusive: bool,
}

impl ListSchedule<'_> {
    fn run(mut self) -> Vec<ItemIx> {
        let mut order = Vec::with_capacity(self.model.len());
        let mut done = vec![false; self.model.len()];
        loop {
            let item = match self.heap.pop() {
                Some(Reverse((key, item))) if done[item.index()] || self.key[item.index()] != key => continue,
                Some(Reverse((_, item))) if self.exclusive && self.starts_second(item) => {
                    self.held.push(item);
                    continue;
                }
                Some(Reverse((_, item))) => item,
                None => match self
                    .held
                    .iter()
                    .copied()
                    .filter(|i| !done[i.index()])
                    .min_by_key(|&i| (self.key[i.index()], i))
                {
                    Some(item) => item,
                    None => return order,
                },
            };
            done[item.index()] = true;
            order.push(item);
            self.take(item);
        }
    }

    /// Puts a ready item into the heap by its demand.
    fn rate(&mut self, item: ItemIx) {
        let mut demand = 0i128;
        for &b in self.ties.bufs(item) {
            let size = i128::from(self.model.graph().buf(b).size.0);
            demand += if self.started[b] { 0 } else { size };
            demand -= if self.left[b] == 1 { size } else { 0 };
        }
        if self.key[item.index()] != demand {
            self.key[item.index()] = demand;
            self.heap.push(Reverse((demand, item)));
        }
    }

    fn starts_second(&self, item: ItemIx) -> bool {
        let graph = self.model.graph();
        self.ties.bufs(item).iter().any(|&b| {
            let cache = graph.buf(b).cache;
            self.model.machine().cache(cache).exclusive && !self.started[b] && self.live[cache] > 0
        })
    }

    fn take(&mut self, item: ItemIx) {
        let (ties, model) = (self.ties, self.model);
        let mut changed = Vec::new();
        for &b in ties.bufs(item) {
            let cache = model.graph().buf(b).cache;
            if !std::mem::replace(&mut self.started[b], true) {
                self.live[cache] += 1;
                changed.extend_from_slice(ties.items(b));
            }
            self.left[b] -= 1;
            match self.left[b] {
                0 => {
                    self.live[cache] -= 1;
                    let held = std::mem::take(&mut self.held);
                    self.heap.extend(held.into_iter().map(|i| Reverse((self.key[i.index()], i))));
                }
                1 => changed.extend_from_slice(ties.items(b)),
                _ => {}
            }
        }
        let mut ready = Vec::new();
        self.readiness.done(model, item, |i| ready.push(i));
        changed.retain(|&i| self.readiness.is_ready(i) && self.key[i.index()] != i128::MAX);
        ready.into_iter().chain(changed).for_each(|i| self.rate(i));
    }
}
